//! Tries advice on the schedulers themselves: changes that they do not admit are not suggested.
//!
//! The change is made in the node's description, as a user who follows the advice would make it in the file. The result must be a valid
//! description, and it is set up as a simulation and a run do.

use std::collections::{HashMap, HashSet};
use talea_guarantee::exact::Span;
use talea_guarantee::hierarchy::{self as derived, Hierarchy};
use talea_guarantee::remedy::{Refusal, Ruling};
use talea_guarantee::request::Request as Asked;
use talea_guarantee::scheduler::{Algorithm, Plans};
use talea_model::{Description, Request, Scheduler, SchedulerKind, Settings, System, Under};
use talea_policy::arrangement::{ArrangeError, arrange};
use talea_policy::strategy::Plan;
use talea_time::Duration;

/// Planning anew for one child costs as much as deriving so many edges.
const PLAN_EDGES: usize = 50;

/// Sets the hierarchy of `node` up, only to learn which children its schedulers do not admit. Where a scheduler is refused, the
/// search ends, for what is below it cannot be tried.
pub(super) fn set_up(system: &System, node: usize, plan: &Plan) -> Vec<ArrangeError> {
    match arrange(system, node, plan, 1) {
        Err(error) => vec![error],
        Ok(arrangement) => {
            let mut arrangement = arrangement.expect("the node has a hierarchy");
            let leaves = std::mem::take(&mut arrangement.leaves);
            leaves.iter().filter_map(|leaf| arrangement.add_thread(system, leaf).err()).collect()
        }
    }
}

/// The hierarchy of a node, to be changed and set up on trial.
pub(super) struct TrialSetup<'s> {
    system: &'s System,
    node: usize,
    plan: &'s Plan,
    hierarchy: &'s Hierarchy,
    /// What is asked for on each edge of the hierarchy, as the file says it.
    requests: Vec<&'s Request>,
}

impl<'s> TrialSetup<'s> {
    pub(super) fn new(system: &'s System, node: usize, plan: &'s Plan, hierarchy: &'s Hierarchy) -> Self {
        let schedulers = system.schedulers.iter().filter(|scheduler| scheduler.node == node);
        let threads = system.threads.iter().filter(|thread| thread.node == node);
        let under = schedulers.map(|scheduler| &scheduler.under).chain(threads.map(|thread| &thread.under));
        let requests = under.flatten().map(|under| &under.request).collect();
        TrialSetup { system, node, plan, hierarchy, requests }
    }

    /// The children that the schedulers refuse in `changed`. A change that cannot be written in a file is refused at the root.
    pub(super) fn judge(&self, changed: &Hierarchy) -> Ruling {
        let described = self.described(changed).and_then(|description| System::new(description).ok());
        // The file must say what was derived: times in it are whole nanoseconds.
        let faithful =
            described.filter(|system| system.hierarchy(self.node).is_some_and(|it| is_same(&it, changed)));
        let refused = match faithful {
            Some(system) => set_up(&system, self.node, self.plan).iter().map(refusal).collect(),
            None => {
                let root = changed.schedulers.first().map(|root| root.name.clone()).unwrap_or_default();
                vec![Refusal { scheduler: root.clone(), child: root }]
            }
        };
        Ruling { refused, effort: self.effort(changed) }
    }

    /// The cost in edges: all are described and set up, and schedulers that plan do so for all their children together.
    fn effort(&self, changed: &Hierarchy) -> usize {
        let plans = |scheduler: &&derived::Scheduler| scheduler.algorithm.kind().plans == Plans::Everything;
        let children = |scheduler: &derived::Scheduler| {
            changed.edges.iter().filter(|edge| edge.parent == scheduler.name).count()
        };
        let planned: usize = changed.schedulers.iter().filter(plans).map(children).sum();
        changed.edges.len() + self.system.operations().len() + PLAN_EDGES * planned
    }

    /// The description with the node's hierarchy changed.
    fn described(&self, changed: &Hierarchy) -> Option<Description> {
        let mut description: Description = (**self.system).clone();
        for derived::Scheduler { name, .. } in &changed.schedulers {
            if !description.schedulers.iter().any(|known| known.name == *name) {
                let kind = SchedulerKind::LIMIT;
                let (name, settings, under) = (name.clone(), Settings::of(kind), Vec::new());
                let limit =
                    Scheduler { name, node: self.node, kind, quantum: None, takes: None, settings, under };
                description.schedulers.push(limit);
            }
        }
        let names = description.schedulers.iter().enumerate();
        let indices: HashMap<String, usize> =
            names.map(|(index, scheduler)| (scheduler.name.clone(), index)).collect();
        for scheduler in &changed.schedulers {
            self.set(&mut description.schedulers[indices[&scheduler.name]], &scheduler.algorithm, &indices)?;
        }
        let mut under: HashMap<&str, Vec<Under>> = HashMap::new();
        for (position, edge) in changed.edges.iter().enumerate() {
            let scheduler = indices[&edge.parent];
            let request = self.request(position, edge, description.schedulers[scheduler].kind);
            under.entry(&edge.child).or_default().push(Under { scheduler, request });
        }
        let node = self.node;
        let schedulers = description.schedulers.iter_mut().filter(|scheduler| scheduler.node == node);
        schedulers.for_each(|scheduler| {
            scheduler.under = under.remove(scheduler.name.as_str()).unwrap_or_default()
        });
        for thread in description.threads.iter_mut().filter(|thread| thread.node == node) {
            thread.under = under.remove(thread.name.as_str()).unwrap_or_default();
            let wanted = changed.threads.iter().find(|wanted| wanted.name == thread.name);
            thread.requires = wanted.and_then(|wanted| wanted.requires.clone());
        }
        Some(description)
    }

    /// Makes of `scheduler` one of another algorithm, if it is another. None if its quantum cannot be written.
    fn set(&self, scheduler: &mut Scheduler, to: &Algorithm, indices: &HashMap<String, usize>) -> Option<()> {
        let from = self.hierarchy.schedulers.iter().find(|known| known.name == scheduler.name);
        if from.is_some_and(|from| from.algorithm == *to) {
            return Some(());
        }
        if from.is_none_or(|from| from.algorithm.kind() != to.kind()) {
            scheduler.kind = to.name().parse().ok()?;
            scheduler.settings = Settings::of(scheduler.kind);
            let preset = scheduler.kind.preset_quantum();
            scheduler.quantum = preset.map(|preset| scheduler.quantum.unwrap_or(preset));
        }
        if let Some(quantum) = to.quantum() {
            scheduler.quantum = Some(whole_nanos(quantum)?);
        }
        scheduler.takes = to.takes().and_then(|parent| indices.get(parent).copied());
        Some(())
    }

    /// What the file says on an edge whose scheduler is of `kind` now: what it said, where nothing has changed.
    fn request(&self, position: usize, edge: &derived::Edge, kind: SchedulerKind) -> Request {
        let before = self.hierarchy.edges.get(position);
        let said = self.requests.get(position).copied();
        let same =
            before.is_some_and(|before| before.parent == edge.parent && before.request == edge.request);
        match (said, &edge.request) {
            (Some(said), _) if same && said.fits(kind.asks) => said.clone(),
            (_, Asked::Nothing) => Request::Nothing,
            (_, Asked::Priority(priority)) => Request::Priority(*priority),
            (_, Asked::Weight(weight)) => Request::share(*weight),
            (_, Asked::Guarantee(guarantee)) => Request::Guarantee(guarantee.clone()),
        }
    }
}

/// Whether both say the same, in whichever order.
fn is_same(one: &Hierarchy, other: &Hierarchy) -> bool {
    let has = |hierarchy: &Hierarchy| {
        let names = hierarchy.schedulers.iter().map(|scheduler| (scheduler.name.clone(), scheduler.clone()));
        names.collect::<HashMap<_, _>>()
    };
    let edges = |hierarchy: &Hierarchy| {
        let edges = hierarchy.edges.iter();
        edges
            .map(|edge| (edge.child.clone(), edge.parent.clone(), edge.request.clone()))
            .collect::<HashSet<_>>()
    };
    one.threads == other.threads && has(one) == has(other) && edges(one) == edges(other)
}

fn whole_nanos(span: &Span) -> Option<Duration> {
    let nanos = span.nanos();
    let whole = nanos.is_integer().then(|| i64::try_from(nanos.to_integer()).ok()).flatten();
    whole.map(Duration::from_nanos)
}

fn refusal(error: &ArrangeError) -> Refusal {
    let (scheduler, child) = match error {
        ArrangeError::Refused { scheduler, child, .. } => (scheduler.as_str(), child.as_str()),
        ArrangeError::Configure(error) => error.concerned(),
        ArrangeError::OneProcessor { scheduler, .. }
        | ArrangeError::NoCode { scheduler, .. }
        | ArrangeError::NoSuchScheduler { scheduler, .. } => (scheduler.as_str(), scheduler.as_str()),
    };
    Refusal { scheduler: scheduler.into(), child: child.into() }
}

#[cfg(test)]
mod tests {
    use super::super::{Composition, hierarchies};
    use super::*;
    use std::path::Path;
    use talea_guarantee::remedy::{Effect, Remedy};
    use talea_policy::strategy::plan_lanes_of;

    /// A node of schedulers `(name, kind, under)` and threads `(name, requires, under)`.
    fn file(schedulers: &[[&str; 3]], threads: &[[&str; 3]]) -> String {
        let mut text = "[system]\nname = \"advised\"\n".to_string();
        for [name, kind, under] in schedulers {
            text += &format!("[[scheduler]]\nname = \"{name}\"\nkind = \"{kind}\"\n{under}\n");
        }
        for [name, requires, under] in threads {
            text += &format!("[[thread]]\nname = \"{name}\"\nwork = \"cpu-bound\"\n{requires}\n{under}\n");
        }
        text
    }

    /// What is advised for all, or for the one who fails; every piece of it that is said to mend everything does so when it is
    /// followed and checked anew.
    fn followed(text: &str) -> Vec<String> {
        let system = talea_model::parse("advised.toml", text, Path::new("")).expect("a system").system;
        let plans = plan_lanes_of(&system).expect("plans");
        let check = |system: &System| hierarchies(system, &plans, &mut |_, _| {}).remove(0);
        let checked = check(&system);
        assert_eq!(checked.verdict, Composition::Fails);
        let setup = TrialSetup::new(&system, 0, &plans[0], &checked.hierarchy);
        let counsel = checked.advice.as_ref().expect("advice");
        let each = counsel.each.iter().flat_map(|advice| &advice.remedies);
        let all = counsel.everybody.iter().flat_map(|for_all| &for_all.remedies).chain(each);
        let whole: Vec<&Remedy> = all.filter(|remedy| remedy.effect == Effect::Holds).collect();
        for remedy in &whole {
            let mut changed = checked.hierarchy.clone();
            remedy.changes.iter().for_each(|change| change.apply(&mut changed));
            let mended = setup.described(&changed).expect("it can be written");
            let mended = System::new(mended).unwrap_or_else(|faults| panic!("{remedy}: {faults:?}"));
            assert_eq!(check(&mended).verdict, Composition::Composes, "{remedy}");
        }
        whole.iter().map(|remedy| remedy.words()).collect()
    }

    #[test]
    fn advice_about_plans_is_what_the_planner_takes() {
        let threads = [
            ["t1", "", "under = [{ scheduler = \"S\", guarantee = \"RESBH 6ms 10ms\" }]"],
            ["t2", "", "under = [{ scheduler = \"S\", guarantee = \"RESBH 50ms 100ms\" }]"],
        ];
        let words = followed(&file(&[["S", "spring", ""]], &threads));
        // The shorter period stays the cycle, or both are as long.
        assert!(
            words.iter().any(|words| words.starts_with("let t1 ask S for RESBH 6ms 100ms ")),
            "{words:#?}"
        );
    }

    #[test]
    fn advice_about_a_resource_kernel_passes_its_test_of_priorities() {
        let threads = [
            ["a", "", "under = [{ scheduler = \"K\", guarantee = \"RESBH 3ms 10ms\" }]"],
            ["b", "", "under = [{ scheduler = \"K\", guarantee = \"RESBH 6ms 14ms\" }]"],
            ["c", "", "under = [{ scheduler = \"K\", guarantee = \"RESBH 9ms 30ms\" }]"],
        ];
        let words = followed(&file(&[["K", "resource-kernel", ""]], &threads));
        assert!(words.iter().any(|words| words.starts_with("let b ask K for RESBH ")), "{words:#?}");
    }

    #[test]
    fn advised_limits_are_known_to_keep_what_they_promise() {
        let schedulers = [
            ["FP", "fixed-priority", ""],
            ["R", "reservation", "under = [{ scheduler = \"FP\", priority = 2 }]"],
            [
                "j",
                "join",
                "under = [{ scheduler = \"R\", guarantee = \"RESBH 11ms 42ms\" }, { scheduler = \"FP\", priority = 1 }]",
            ],
        ];
        let threads = [["t", "requires = \"RESBH 11ms 42ms\"", "under = [{ scheduler = \"j\" }]"]];
        let words = followed(&file(&schedulers, &threads));
        assert!(words[0].starts_with("put a limit \"t-limit\" between j and t"), "{words:#?}");
        let threads = [
            [
                "t",
                "requires = \"RESBH 4ms 10ms\"",
                "under = [{ scheduler = \"R\", guarantee = \"RESBS 4ms 10ms\" }]",
            ],
            ["u", "", "under = [{ scheduler = \"R\", guarantee = \"RESBS 4ms 7ms\" }]"],
        ];
        let words = followed(&file(&[["R", "tbs", ""]], &threads));
        assert!(!words.is_empty() && words.iter().all(|words| !words.contains("limit")), "{words:#?}");
    }
}
