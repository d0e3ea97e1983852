//! Choosing events and passive entities by name.
//!
//! ```text
//! selection = term { "," term }
//! term      = [ "-" ] ( "all" | family | family "." ( name | "*" ) )
//! ```
//! Terms apply from left to right; `-` takes away what is there already. `all` includes families that are registered
//! later. `job,kernel.switch` are two choices, `nav.*,-nav.fix` is the family without one event.

use super::control::SwitchSet;
use super::directory::Directory;
use std::fmt;
use std::str::FromStr;
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
    Family(String),
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
    /// There is no such family.
    #[error("there is no family \"{name}\"{}", hint("stream", suggestion))]
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

/// What to try instead of a name that is not in what is `listed`.
pub(super) fn hint(listed: &str, suggestion: &Option<String>) -> String {
    match suggestion {
        Some(name) => format!("; did you mean \"{name}\"?"),
        None => format!("; list the {listed} to see what there is"),
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
        let mut unknown = Vec::new();
        let mut is_known = |term: &&Term| {
            let error = term.target.switches(directory).err();
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
        let mut switches = SwitchSet::default();
        for term in &self.terms {
            let meant = term.target.switches(directory)?;
            switches = match term.effect {
                Effect::Include => switches.or(&meant),
                Effect::Exclude => switches.without(&meant),
            };
        }
        Ok(Resolved { switches, later: self.later() })
    }
}

impl Target {
    fn switches(&self, directory: &Directory) -> Result<SwitchSet, SelectionError> {
        let (family, name) = match self {
            Target::All => return Ok(SwitchSet::all()),
            Target::Family(family) => (family, None),
            Target::Entity(family, name) => (family, Some(name)),
        };
        let Some(known) = directory.name_space().family(family) else {
            let names = directory.name_space().families().iter().map(|family| family.name.as_ref());
            return Err(SelectionError::Family {
                name: family.clone(),
                suggestion: nearest(family, names.chain(["all"])),
            });
        };
        let members = || directory.entities().filter(|(of, _, _)| *of == known.name);
        let meant = members().filter(|(_, member, _)| name.is_none_or(|name| name == member));
        let meant: Vec<usize> = meant.map(|(_, _, switch)| switch).collect();
        if let Some(name) = name
            && meant.is_empty()
        {
            let suggestion = nearest(name, members().map(|(_, name, _)| name));
            let suggestion = suggestion.map(|name| format!("{family}.{name}"));
            return Err(SelectionError::Entity { family: family.clone(), name: name.clone(), suggestion });
        }
        Ok(meant.into_iter().collect())
    }
}

/// The name most like `written`, if any is like it.
pub(super) fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let likeness = names.map(|name| (strsim::jaro_winkler(written, name), name));
    let best = likeness.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(likeness, _)| *likeness > 0.7).map(|(_, name)| name.to_owned())
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
            let target = match name.split_once('.').map(|(family, name)| (family.trim(), name.trim())) {
                Some((family, name)) if family.is_empty() || name.is_empty() => return Err(missing()),
                Some(("all" | "*", "*")) => Target::All,
                Some((family, "*")) => Target::Family(family.to_owned()),
                Some((family, name)) => Target::Entity(family.to_owned(), name.to_owned()),
                None if name.is_empty() => return Err(missing()),
                None if name == "all" || name == "*" => Target::All,
                None => Target::Family(name.to_owned()),
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
            Target::Family(family) => f.write_str(family),
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
        assert_eq!(chosen("run.*, -run.thread"), Ok(vec![E::RUN_START, E::RUN_END, E::LOST]));
        assert_eq!(chosen("run,-run,run.thread"), Ok(vec![E::THREAD]));
        assert_eq!(chosen("all,-job,-kernel,-dispatch,-hierarchy"), chosen("run"));
        assert_eq!(chosen("all"), chosen("run,job,dispatch,kernel,hierarchy"));
    }

    #[test]
    fn what_is_not_understood_is_said_with_the_nearest_name() {
        let error = |text| chosen(text).unwrap_err();
        assert_eq!(error("kernl"), "there is no family \"kernl\"; did you mean \"kernel\"?");
        assert_eq!(
            error("kernel.swich"),
            "family \"kernel\" has no \"swich\"; did you mean \"kernel.switch\"?"
        );
        assert_eq!(error("xyzzy"), "there is no family \"xyzzy\"; list the stream to see what there is");
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
        fn no_text_panics_and_what_is_understood_comes_back(text in "[-a-z.*, ]{0,20}") {
            if let Ok(selection) = text.parse::<Selection>() {
                prop_assert_eq!(selection.to_string().parse::<Selection>().unwrap(), selection.clone());
                let _ = selection.resolve(&Directory::default());
            }
        }
    }
}
