//! Changing a running hierarchy by changing its description (Regehr and Stankovic 2001, sections 5.4 and 7: `HLSCtl`).
//!
//! ```text
//!   change ──▶ edited description ──▶ model's rules ──▶ derivation ──▶ blueprint
//!                     │                    │                │             │ difference
//!                  no such name         no meaning     somebody loses     ▼
//!                     └────────────────────┴────────── what it needs   steps, rehearsed on a copy of the engine, then made
//! ```
//!
//! A refusal on the way leaves everything as it was. What an engine has become is what the new description would have been
//! arranged as from the start; children keep what they want, have and have had.
//!
//! [`Live`] is the description of what runs, with everybody's number in the engine; it holds no engine, and nothing here knows
//! of threads, locks or clocks. Threads are taken in by whoever runs them, after the steps that make room for them.

mod change;
mod difference;
mod verdict;

use super::{ArrangeError, Arrangement, Blueprint, ChangeCause, Promise, Watch};
use crate::hierarchy::{Context, Engine, Parameters, SchedulerId, VpId};
use difference::{Step, Walk, altered, moved_promises, steps, vp_between};
use std::collections::{BTreeMap, HashSet};
use talea_guarantee::derivation::Derivation;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::hierarchy::Hierarchy;
use talea_guarantee::proviso::Proviso;
use talea_model::{System, Violation};
use talea_time::Instant;
use verdict::{Derived, broken};

pub use change::{Change, EditError};
pub use difference::StepError;
pub use verdict::{Broken, Insistence, Stake};

/// The description of a node's hierarchy that runs, and who is who in the engine.
#[derive(Clone, Debug)]
pub struct Live {
    system: System,
    node: usize,
    /// What the root is given of each processor.
    given: Guarantee,
    blueprint: Blueprint,
    schedulers: BTreeMap<String, SchedulerId>,
    threads: BTreeMap<String, VpId>,
}

/// A change that nothing speaks against but the schedulers themselves, which have not been asked yet.
#[derive(Clone, Debug)]
pub struct Planned {
    system: System,
    blueprint: Blueprint,
    steps: Vec<Step>,
    /// Edges whose promise changes, and new ones.
    pub promises: Vec<Moved>,
    /// Parents and children of edges that stay and are promised the same, but differ otherwise.
    altered: Vec<(String, String)>,
    /// What breaks all the same, if that was insisted on.
    pub broken: Option<Broken>,
    /// What will be promised, and is not known to be kept.
    pub provisos: Vec<Proviso>,
    /// Those of them that were not before.
    pub newly_doubted: Vec<Proviso>,
}

impl Planned {
    /// What there will be, as posts and promises.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }
}

/// An edge whose promise changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The scheduler above.
    pub parent: String,
    /// The scheduler or thread below.
    pub child: String,
    /// What it was promised; nothing if the edge was not there.
    pub before: Option<Promise>,
    /// What it is promised.
    pub after: Option<Promise>,
}

impl Moved {
    /// Whether the guarantee is the same, and only how far behind its schedulers may be is another: nobody begins anew then.
    pub fn is_restated(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => before.is_like(after),
            _ => false,
        }
    }
}

/// What has become of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renewed {
    schedulers: BTreeMap<String, SchedulerId>,
    /// The virtual processors of schedulers that have gone.
    dropped: Vec<VpId>,
}

/// Why a change is not made. Everything is as before.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refused {
    /// It says nothing that could be done.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The description would break rules.
    #[error("{}", errors(.0))]
    Rules(Vec<Violation>),
    /// No engine could be arranged like that.
    #[error(transparent)]
    Arrange(#[from] ArrangeError),
    /// Somebody would not receive what it has to.
    #[error("{}", .0.findings.join("\n"))]
    Broken(Broken),
    /// A scheduler refuses.
    #[error(transparent)]
    Step(#[from] StepError),
}

fn errors(violations: &[Violation]) -> String {
    let errors = violations.iter().filter(|violation| violation.severity == talea_model::Severity::Error);
    let line = |violation: &Violation| format!("{} ({})", violation.message, violation.remedy);
    errors.map(line).collect::<Vec<_>>().join("\n")
}

/// A thread's place in a plan: what it registers with, where.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadRegistration {
    /// The scheduler above.
    pub parent: SchedulerId,
    /// What that is called.
    pub parent_name: String,
    /// What it registers with.
    pub parameters: Parameters,
    /// What it is to receive.
    pub promise: Option<Promise>,
}

impl Live {
    /// The hierarchy of `node` as it was [arranged](super::arrange_given). Threads are [told](Self::joined) when they are in the engine.
    ///
    /// # Errors
    /// See [`ArrangeError`]; none that arranging has not had.
    ///
    /// # Panics
    /// If the node has no hierarchy, or one of its schedulers no number.
    pub fn new(system: &System, node: usize, arrangement: &Arrangement) -> Result<Self, ArrangeError> {
        let given = &arrangement.given;
        let derived = derived(system, node, given);
        let blueprint = Blueprint::new(system, node, &derived.derivation)?;
        let number = |index: usize| arrangement.schedulers[index].expect("the node's schedulers are seated");
        let schedulers =
            blueprint.schedulers.iter().map(|post| (post.name.clone(), number(post.index))).collect();
        Ok(Live {
            system: system.clone(),
            node,
            given: given.clone(),
            blueprint,
            schedulers,
            threads: BTreeMap::new(),
        })
    }

    /// The description as it is now.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The node.
    pub fn node(&self) -> usize {
        self.node
    }

    /// What the engine has been arranged as.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// The number of a scheduler.
    pub fn scheduler(&self, name: &str) -> Option<SchedulerId> {
        self.schedulers.get(name).copied()
    }

    /// The number of a thread that is in the engine.
    pub fn thread(&self, name: &str) -> Option<VpId> {
        self.threads.get(name).copied()
    }

    /// Threads in the engine.
    pub fn threads(&self) -> impl Iterator<Item = (&str, VpId)> {
        self.threads.iter().map(|(name, vp)| (name.as_str(), *vp))
    }

    /// What has been derived, and why not more, for those who want to look.
    pub fn derivation(&self) -> (Derivation, Option<String>) {
        let Derived { derivation, failure, .. } = self.derived(&self.system);
        (derivation, failure.map(|failure| failure.to_string()))
    }

    /// What is promised, and not known to be kept.
    pub fn provisos(&self) -> Vec<Proviso> {
        self.derived(&self.system).provisos
    }

    fn derived(&self, system: &System) -> Derived {
        derived(system, self.node, &self.given)
    }

    /// A thread of the description is in the engine.
    ///
    /// # Panics
    /// If the description knows no such thread.
    pub fn joined(&mut self, name: &str, vp: VpId) {
        assert!(self.blueprint.post(name).is_some(), "a thread is described before it joins");
        self.threads.insert(name.into(), vp);
    }

    /// A thread has left the engine by itself: it is no more in the description either. Where a scheduler is another one
    /// without it, the next change makes it so.
    pub fn left(&mut self, name: &str) {
        self.threads.remove(name);
        self.blueprint.threads.retain(|post| post.name != name);
        let gone = Change::RemoveThread { name: name.into() };
        if let Ok(description) = gone.apply(&self.system, self.node)
            && let Ok(system) = System::of_running(description)
        {
            self.system = system;
            let indices = self.system.threads.iter().enumerate();
            let index: BTreeMap<&str, usize> =
                indices.map(|(index, thread)| (&*thread.name, index)).collect();
            self.blueprint.threads.iter_mut().for_each(|post| post.index = index[post.name.as_str()]);
        }
    }

    /// The change that removes whoever goes by this name.
    ///
    /// # Errors
    /// [`EditError::Unknown`].
    pub fn removal(&self, name: &str) -> Result<Change, EditError> {
        change::removal(&self.system, self.node, name)
    }

    /// Plans a change.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn plan(&self, change: &Change, insistence: Insistence) -> Result<Planned, Refused> {
        let description = change.apply(&self.system, self.node)?;
        let system = System::of_running(description).map_err(Refused::Rules)?;
        let (before, after) = (self.derived(&self.system), self.derived(&system));
        let known: HashSet<&str> = self.blueprint.posts().map(|post| post.name.as_str()).collect();
        let hierarchy = hierarchy(&system, self.node, &self.given);
        let broken = broken(&before, &known, &after, &hierarchy);
        if let Some(broken) = &broken
            && (insistence == Insistence::Careful || broken.stake == Stake::Admission)
        {
            return Err(Refused::Broken(broken.clone()));
        }
        let blueprint = Blueprint::new(&system, self.node, &after.derivation)?;
        let joining = match change {
            Change::AddThread { name, .. } => Some(name.as_str()),
            _ => None,
        };
        let steps = steps(&self.blueprint, &blueprint, joining);
        let promises = moved_promises(&self.blueprint, &blueprint);
        let altered = altered(&self.blueprint, &blueprint);
        let newly_doubted = after.newly_doubted(&before);
        let provisos = after.provisos;
        Ok(Planned { system, blueprint, steps, promises, altered, broken, provisos, newly_doubted })
    }

    /// Makes the steps of a plan on `engine`: all of them or, if one is refused, none. A thread that the plan removes is gone
    /// already; one that it adds is added afterwards.
    ///
    /// # Errors
    /// The refusal.
    ///
    /// # Panics
    /// If time ran backwards.
    pub fn carry_out(
        &self,
        planned: &Planned,
        engine: &mut Engine,
        now: Instant,
    ) -> Result<Renewed, StepError> {
        if planned.steps.is_empty() {
            return Ok(Renewed { schedulers: self.schedulers.clone(), dropped: Vec::new() });
        }
        self.rehearse(planned, engine, now)?;
        let done = Walk::new(self, engine, now).all(&planned.steps);
        Ok(done.expect("an engine decides as its copy did"))
    }

    /// Makes the steps of a plan on a copy.
    ///
    /// # Errors
    /// The refusal.
    pub fn rehearse(&self, planned: &Planned, engine: &Engine, now: Instant) -> Result<(), StepError> {
        Walk::new(self, &mut engine.clone(), now).all(&planned.steps).map(|_| ())
    }

    /// Takes the description of a plan that has been carried out.
    pub fn adopt(&mut self, planned: Planned, renewed: Renewed) {
        let Planned { system, blueprint, .. } = planned;
        self.threads.retain(|name, _| blueprint.post(name).is_some());
        (self.system, self.blueprint, self.schedulers) = (system, blueprint, renewed.schedulers);
    }

    /// The virtual processor of an edge, if both ends are in the engine.
    pub fn edge(&self, engine: &Engine, parent: &str, child: &str) -> Option<VpId> {
        vp_between(engine, &self.schedulers, &self.threads, (parent, child))
    }

    /// Where a thread of the description belongs.
    pub fn place(&self, thread: &str) -> Option<ThreadRegistration> {
        self.place_in(&self.blueprint, thread)
    }

    /// Where a thread that the plan adds will belong.
    pub fn place_of(&self, planned: &Planned, thread: &str) -> Option<ThreadRegistration> {
        self.place_in(&planned.blueprint, thread)
    }

    fn place_in(&self, blueprint: &Blueprint, thread: &str) -> Option<ThreadRegistration> {
        let tie = blueprint.threads.iter().find(|post| post.name == thread)?.under.first()?;
        let (parameters, promise) = (tie.parameters, tie.promise.clone());
        let (parent, parent_name) = (self.scheduler(&tie.parent)?, tie.parent.clone());
        Some(ThreadRegistration { parent, parent_name, parameters, promise })
    }

    /// Holds the schedulers to what a plan that has been carried out has made of their promises, from the instant of `engine`
    /// on. `cause` is who made the change, and why.
    pub fn hold(
        &self,
        watch: &mut Watch,
        engine: &Engine,
        planned: &Planned,
        renewed: &Renewed,
        cause: ChangeCause,
    ) {
        let cx: Context<'_> = engine.context();
        let vp_of = |parent: &str, child: &str| {
            vp_between(engine, &renewed.schedulers, &self.threads, (parent, child))
        };
        renewed.dropped.iter().for_each(|vp| watch.let_go(*vp, cx.now(), cause));
        for moved @ Moved { parent, child, after, .. } in &planned.promises {
            let Some(vp) = vp_of(parent, child) else { continue };
            if let Some(after) = after.as_ref().filter(|_| moved.is_restated()) {
                watch.restate(vp, after);
                continue;
            }
            watch.let_go(vp, cx.now(), cause);
            watch.hold((parent, child), after.clone(), vp, &cx, cause);
        }
        let altered = planned.altered.iter().filter_map(|(parent, child)| vp_of(parent, child));
        altered.for_each(|vp| watch.alter(vp, cx.now(), cause));
    }
}

fn hierarchy(system: &System, node: usize, given: &Guarantee) -> Hierarchy {
    Hierarchy {
        given: given.clone(),
        ..system.hierarchy(node).expect("the node has a hierarchy, and its root stays")
    }
}

fn derived(system: &System, node: usize, given: &Guarantee) -> Derived {
    Derived::of(&hierarchy(system, node, given))
}
