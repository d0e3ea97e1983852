//! Choosing events and passive entities by name.
//!
//! ```text
//! selection = term { "," term }
//! term      = [ "-" ] ( "all" | family | family ( "." | ":" ) name | name )
//! ```
//! Terms apply from left to right; `-` takes away what is there already. `all` includes families that are registered
//! later. `job,kernel.switch` are two choices, `nav.*,-nav.fix` is the family without one event. In families and names `*`
//! stands for any letters: `job.re*`, `*.start`. A name alone is a family, or, where no family is called so, what is called so
//! in any family: `complete` is `job.complete`.

mod filter;

pub(crate) use filter::{Choices, EventFilter, RingFilter};

use crate::directory::Directory;
use crate::suggestion::{hint, nearest};
use crate::{Event, NameSpace};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use talea_ring::control::SwitchSet;
use thiserror::Error;

/// Whether events that are registered later are wanted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    /// They are.
    Wanted,
    /// They are not.
    Unwanted,
}

/// What somebody wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    effect: Effect,
    target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Include,
    Exclude,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    All,
    /// A family, or else what is called so in any family.
    Name(String),
    Entity(String, String),
}

/// Why a selection is not understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelectionError {
    /// Nothing is written where a name should stand.
    #[error("a name is missing in \"{0}\"; write for instance job,kernel.switch")]
    Missing(String),
    /// The first term takes something away.
    #[error("\"{0}\" takes away where nothing is chosen yet; write all,{0}")]
    NothingToExclude(String),
    /// There is no such family, nor anything of that name in one.
    #[error("there is no family or event \"{name}\"{}", hint("stream", suggestion))]
    Family {
        /// What was written.
        name: String,
        /// The most similar name.
        suggestion: Option<String>,
    },
    /// The family has nothing of that name.
    #[error("family \"{family}\" has no \"{name}\"{}", hint("stream", suggestion))]
    Entity {
        /// The family.
        family: String,
        /// What was written.
        name: String,
        /// The most similar name, with its family.
        suggestion: Option<String>,
    },
}

/// What can be chosen from.
struct Names<'a, T> {
    /// All families.
    families: Vec<&'a str>,
    /// Family, name and number of each event, and of each passive entity where these can be chosen.
    members: Vec<(&'a str, &'a str, T)>,
}

impl<'a> Names<'a, usize> {
    /// Events and passive entities by their switches.
    fn of_switches(directory: &'a Directory) -> Self {
        let families = directory.name_space().families().iter().map(|family| family.name.as_ref());
        Names { families: families.collect(), members: directory.entities().collect() }
    }
}

impl<'a> Names<'a, Event> {
    /// Events by their numbers.
    fn of_events(names: &'a NameSpace) -> Self {
        let families = names.families().iter();
        let members = families.clone().flat_map(|family| {
            let events = family.events.iter();
            events.map(|entry| (family.name.as_ref(), entry.name.as_ref(), family.event(entry)))
        });
        Names { members: members.collect(), families: families.map(|family| family.name.as_ref()).collect() }
    }
}

/// A name in a selection that is not there, or not yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The family, or `family.name`.
    pub name: String,
    /// What is wrong with it.
    pub error: SelectionError,
}

/// A selection applied to the families there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The switches chosen, with those of families registered later if these are.
    pub switches: SwitchSet,
    /// Whether families registered later are chosen too.
    pub later: Later,
}

impl Selection {
    /// Everything, also what is registered later.
    pub fn all() -> Self {
        Selection { terms: vec![Term { effect: Effect::Include, target: Target::All }] }
    }

    /// Nothing at all.
    pub fn nothing() -> Self {
        Selection::default()
    }

    /// These events or passive entities, as family and name.
    pub fn of<'a>(entities: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let target = |(family, name): (&str, &str)| Target::Entity(family.to_owned(), name.to_owned());
        let term = |entity| Term { effect: Effect::Include, target: target(entity) };
        Selection { terms: entities.into_iter().map(term).collect() }
    }

    /// This, and these events of Talea's own families in any case.
    #[must_use]
    pub fn with(&self, events: &[Event]) -> Self {
        let names = NameSpace::default();
        let named = events.iter().filter_map(|event| names.event(*event));
        let named = named.map(|(family, entry)| (family.name.as_ref(), entry.name.as_ref()));
        Selection { terms: [self.terms.clone(), Self::of(named).terms].concat() }
    }

    /// Whether families registered later are chosen too.
    pub fn later(&self) -> Later {
        let all = self.terms.iter().rev().find(|term| term.target == Target::All);
        match all.map(|term| term.effect) {
            Some(Effect::Include) => Later::Wanted,
            Some(Effect::Exclude) | None => Later::Unwanted,
        }
    }

    /// The part of this selection whose names are in `directory`, and the names that are not: families of a program
    /// may be registered later.
    pub fn known_in(&self, directory: &Directory) -> (Self, Vec<UnknownName>) {
        let names = Names::of_switches(directory);
        let mut unknown = Vec::new();
        let mut is_known = |term: &&Term| {
            let error = term.target.members(&names).err();
            let is_known = error.is_none();
            unknown.extend(error.map(|error| UnknownName { name: term.target.to_string(), error }));
            is_known
        };
        let terms = self.terms.iter().filter(&mut is_known).cloned().collect();
        (Selection { terms }, unknown)
    }

    /// What is chosen of the families in `directory`.
    ///
    /// # Errors
    /// If a name is not there.
    pub fn resolve(&self, directory: &Directory) -> Result<Resolved, SelectionError> {
        let names = Names::of_switches(directory);
        let mut switches = SwitchSet::default();
        for term in &self.terms {
            let meant = match term.target {
                Target::All => SwitchSet::all(),
                _ => term.target.members(&names)?.into_iter().collect(),
            };
            switches = match term.effect {
                Effect::Include => switches.or(&meant),
                Effect::Exclude => switches.without(&meant),
            };
        }
        Ok(Resolved { switches, later: self.later() })
    }

    /// What is chosen of the families in `directory`, as `family.name`.
    ///
    /// # Errors
    /// If a name is not there.
    pub fn names(&self, directory: &Directory) -> Result<BTreeSet<String>, SelectionError> {
        let switches = self.resolve(directory)?.switches;
        let chosen = directory.entities().filter(|(_, _, switch)| switches.contains(*switch));
        Ok(chosen.map(|(family, name, _)| format!("{family}.{name}")).collect())
    }

    /// The events that are chosen of those in `names`.
    ///
    /// # Errors
    /// If a name is not there.
    pub fn events(&self, names: &NameSpace) -> Result<BTreeSet<Event>, SelectionError> {
        let names = Names::of_events(names);
        let mut events = BTreeSet::new();
        for term in &self.terms {
            let meant = term.target.members(&names)?;
            match term.effect {
                Effect::Include => events.extend(meant),
                Effect::Exclude => events.retain(|event| !meant.contains(event)),
            }
        }
        Ok(events)
    }
}

impl Target {
    /// Those of `names` that are meant.
    fn members<T: Copy>(&self, names: &Names<'_, T>) -> Result<Vec<T>, SelectionError> {
        let chosen = |is_meant: &dyn Fn(&str, &str) -> bool| -> Vec<T> {
            let members = names.members.iter().filter(|(family, name, _)| is_meant(family, name));
            members.map(|(_, _, member)| *member).collect()
        };
        let is_family = |written: &str| names.families.iter().any(|family| fits(written, family));
        match self {
            Target::All => Ok(chosen(&|_, _| true)),
            Target::Name(written) if is_family(written) => Ok(chosen(&|family, _| fits(written, family))),
            Target::Name(written) => {
                let all =
                    names.families.iter().copied().chain(names.members.iter().map(|(_, name, _)| *name));
                match chosen(&|_, name| fits(written, name)) {
                    none if none.is_empty() => Err(unknown_family(written, all)),
                    meant => Ok(meant),
                }
            }
            Target::Entity(family, _) if !is_family(family) => {
                Err(unknown_family(family, names.families.iter().copied()))
            }
            Target::Entity(family, written) => {
                let meant = chosen(&|of, name| fits(family, of) && fits(written, name));
                if meant.is_empty() && written != "*" {
                    let members = names.members.iter().filter(|(of, _, _)| fits(family, of));
                    let suggestion = nearest(written, members.map(|(_, name, _)| *name));
                    let suggestion = suggestion.map(|name| format!("{family}.{name}"));
                    let (family, name) = (family.clone(), written.clone());
                    return Err(SelectionError::Entity { family, name, suggestion });
                }
                Ok(meant)
            }
        }
    }
}

fn unknown_family<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> SelectionError {
    SelectionError::Family { name: written.to_owned(), suggestion: nearest(written, known.chain(["all"])) }
}

/// Whether `name` is what is written, where `*` stands for any letters.
fn fits(written: &str, name: &str) -> bool {
    let (first, pieces) = match written.split_once('*') {
        Some((first, rest)) => (first, Vec::from_iter(rest.split('*'))),
        None => return written == name,
    };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let (last, between) = pieces.split_last().expect("splitting gives at least one piece");
    for piece in between {
        // The earliest place leaves most for the pieces to come.
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

impl FromStr for Selection {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let mut terms = Vec::new();
        for written in text.split(',').map(str::trim) {
            let (effect, name) = match written.strip_prefix('-') {
                Some(rest) => (Effect::Exclude, rest.trim()),
                None => (Effect::Include, written),
            };
            let missing = || SelectionError::Missing(text.to_owned());
            let target = match name.split_once(['.', ':']).map(|(family, name)| (family.trim(), name.trim()))
            {
                Some((family, name)) if family.is_empty() || name.is_empty() => return Err(missing()),
                Some(("all" | "*", "*")) => Target::All,
                Some((family, name)) => Target::Entity(family.to_owned(), name.to_owned()),
                None if name.is_empty() => return Err(missing()),
                None if name == "all" || name == "*" => Target::All,
                None => Target::Name(name.to_owned()),
            };
            if terms.is_empty() && effect == Effect::Exclude {
                return Err(SelectionError::NothingToExclude(written.to_owned()));
            }
            terms.push(Term { effect, target });
        }
        Ok(Selection { terms })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::All => f.write_str("all"),
            Target::Name(name) => f.write_str(name),
            Target::Entity(family, name) => write!(f, "{family}.{name}"),
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Term { effect, target }) in self.terms.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let sign = if *effect == Effect::Exclude { "-" } else { "" };
            write!(f, "{comma}{sign}{target}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;
    use proptest::prelude::*;

    fn chosen(text: &str) -> Result<Vec<Event>, String> {
        let directory = Directory::default();
        let selection: Selection = text.parse().map_err(|error: SelectionError| error.to_string())?;
        let set = selection.resolve(&directory).map_err(|error| error.to_string())?.switches;
        let families = directory.name_space().families();
        let events = families.iter().flat_map(|family| family.events.iter().map(|entry| family.event(entry)));
        Ok(events.filter(|event| set.contains(directory.switch(*event).unwrap())).collect())
    }

    #[test]
    fn families_and_events_are_chosen_from_left_to_right() {
        use Event as E;
        assert_eq!(chosen("kernel.switch,run.lost"), Ok(vec![E::LOST, E::SWITCH]));
        assert_eq!(
            chosen("run.*, -run.thread"),
            Ok(vec![E::RUN_START, E::RUN_END, E::LOST, E::MESSAGE_LOST, E::NODE_LEFT, E::STEAL, E::PART])
        );
        assert_eq!(chosen("run,-run,run.thread"), Ok(vec![E::THREAD]));
        assert_eq!(chosen("all,-job,-kernel,-dispatch,-hierarchy,-hls,-port,-event"), chosen("run"));
        assert_eq!(chosen("all"), chosen("run,job,dispatch,kernel,hierarchy,hls,port,event"));
    }

    #[test]
    fn events_can_be_named_alone_by_patterns_and_as_exports_name_them() {
        use Event as E;
        assert_eq!(chosen("complete"), Ok(vec![E::COMPLETE]));
        assert_eq!(chosen("job:complete,run-end"), Ok(vec![E::RUN_END, E::COMPLETE]));
        assert_eq!(chosen("job.re*"), Ok(vec![E::RELEASE, E::RESUME]));
        assert_eq!(
            chosen("*.re*,-j*.resume"),
            chosen("job.release,dispatch.receive,hls.request,hls.revoke,hls.release")
        );
        assert_eq!(chosen("grant"), Ok(vec![E::VP_GRANT]));
        assert_eq!(chosen("irq-*"), chosen("kernel.irq-enter,kernel.irq-exit"));
        assert_eq!(chosen("k*"), chosen("kernel"), "what fits a family is one");
        let names = NameSpace::default();
        for text in ["job.re*", "all,-job,-kernel", "complete,run"] {
            let selection: Selection = text.parse().unwrap();
            let events: Vec<E> = selection.events(&names).unwrap().into_iter().collect();
            assert_eq!(Ok(events), chosen(text), "{text}");
        }
        for (written, name, does) in [
            ("a*", "a", true),
            ("*a*b", "xaxbb", true),
            ("a*a", "a", false),
            ("*", "", true),
            ("a*b*", "acc", false),
        ] {
            assert_eq!(fits(written, name), does, "{written} {name}");
        }
    }

    #[test]
    fn what_is_not_understood_is_said_with_the_nearest_name() {
        let error = |text| chosen(text).unwrap_err();
        assert_eq!(error("kernl"), "there is no family or event \"kernl\"; did you mean \"kernel\"?");
        assert_eq!(
            error("kernel.swich"),
            "family \"kernel\" has no \"swich\"; did you mean \"kernel.switch\"?"
        );
        assert_eq!(
            error("xyzzy"),
            "there is no family or event \"xyzzy\"; list the stream to see what there is"
        );
        assert_eq!(error("complte"), "there is no family or event \"complte\"; did you mean \"complete\"?");
        assert!(error("job.xx*").starts_with("family \"job\" has no \"xx*\""));
        assert_eq!(error("-job"), "\"-job\" takes away where nothing is chosen yet; write all,-job");
        for text in ["", "job,", "job.", ".switch", "all,-", ",job"] {
            assert!(error(text).starts_with("a name is missing in "), "{text}");
        }
    }

    #[test]
    fn names_that_are_not_there_yet_are_told_from_the_others() {
        let selection: Selection = "job,nav.fix,run,-job.strat".parse().unwrap();
        let (known, unknown) = selection.known_in(&Directory::default());
        assert_eq!(known.to_string(), "job,run");
        let names: Vec<_> = unknown.iter().map(|unknown| unknown.name.as_str()).collect();
        assert_eq!(names, ["nav.fix", "job.strat"]);
        assert!(matches!(unknown[0].error, SelectionError::Family { .. }));
        assert!(matches!(unknown[1].error, SelectionError::Entity { .. }));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_understood_comes_back(text in "[-a-z.:*, ]{0,20}") {
            if let Ok(selection) = text.parse::<Selection>() {
                prop_assert_eq!(selection.to_string().parse::<Selection>().unwrap(), selection.clone());
                let _ = selection.resolve(&Directory::default());
            }
        }
    }
}
