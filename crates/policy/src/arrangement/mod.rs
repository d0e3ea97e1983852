//! A node's hierarchy of a description, as an engine: what the files say becomes what decides.
//!
//! The schedulers are seated from the root down; the threads are left as [`Leaf`]s, because whoever drives the engine takes
//! them in: a simulation all at once, real threads when they exist. Amounts below a uniformly slower processor count its
//! time; the engine counts the real one's, so they are converted by what the derivation finds on each edge.
//!
//! What is on each edge to be kept is a [`Promise`]: the derived guarantee, or where the hierarchy does not compose that
//! far, what a thread requires all the same.

mod kinds;
mod watch;

use crate::composition::leaf as lane_leaf;
use crate::hierarchy::{Engine, Parameters, Refusal, SchedulerId, VpId};
use crate::scheduler::{Announcing, FixedPriority, KindError};
use crate::strategy::Plan;
use kinds::Facts;
use talea_guarantee::derivation::{Derivation, Failure, NotDerived, derive};
use talea_guarantee::exact::Share;
use talea_guarantee::guarantee::{Guarantee, Hardness};
use talea_model::{SchedulerKind, System, Under};
use talea_time::Duration;

pub use kinds::parameters;
pub use watch::{Basis, Breach, Kept, Side, Watch};

/// A node's schedulers, seated, and the threads that belong below them.
pub struct Arrangement {
    /// The schedulers without threads.
    pub engine: Engine,
    /// By index into the description's schedulers: those of this node.
    pub schedulers: Vec<Option<SchedulerId>>,
    /// The lanes, in the order of the plan, if they have a place in the hierarchy.
    pub lanes: Vec<SchedulerId>,
    /// The node's threads, in file order.
    pub leaves: Vec<Leaf>,
    /// The edges between schedulers, in file order of the lower one.
    pub edges: Vec<Edge>,
    /// Why the hierarchy does not compose, if it does not. It is arranged all the same.
    pub shortcomings: Option<Box<Failure>>,
}

/// An edge between two schedulers.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Index of the scheduler above into the description's.
    pub parent: usize,
    /// Index of the scheduler below into the description's.
    pub child: usize,
    /// The virtual processor between them.
    pub vp: VpId,
    /// What the lower one is to receive, if anything is known.
    pub promise: Option<Promise>,
}

/// A thread's place.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Index into the description's threads.
    pub thread: usize,
    /// The scheduler above it.
    pub parent: SchedulerId,
    /// Its index into the description's schedulers.
    pub scheduler: usize,
    /// What the thread registers with.
    pub parameters: Parameters,
    /// What it is to receive, if anything is known.
    pub promise: Option<Promise>,
}

/// What is to be received on an edge, in time of the real processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The derived guarantee.
    Derived(Guarantee),
    /// Nothing could be derived; this is what the thread requires.
    Required(Guarantee),
}

impl Promise {
    /// The guarantee to be kept.
    pub fn guarantee(&self) -> &Guarantee {
        match self {
            Promise::Derived(guarantee) | Promise::Required(guarantee) => guarantee,
        }
    }

    /// Whether more than the amount would break it.
    pub fn is_maximum(&self) -> bool {
        self.guarantee().as_reservation().is_some_and(|amount| amount.hardness() == Hardness::Hard)
    }
}

/// Why a node's hierarchy cannot be arranged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrangeError {
    /// A scheduler of this kind uses one processor.
    #[error(
        "scheduler \"{scheduler}\" of kind {kind} runs one thread at a time, but is given {given} processors; \
         put it under one of several processors of a fixed-priority or sfs scheduler"
    )]
    OneProcessor {
        /// Its name.
        scheduler: String,
        /// Its kind.
        kind: SchedulerKind,
        /// Virtual processors that it is given.
        given: usize,
    },
    /// There is an analysis of the kind, but no plan of the children's pieces of work in a file.
    #[error(
        "scheduler \"{scheduler}\" of kind {kind} plans pieces of work that a program announces one by one, which a file \
         cannot; it can only be checked"
    )]
    OnlyChecked {
        /// Its name.
        scheduler: String,
        /// Its kind.
        kind: SchedulerKind,
    },
    /// A child of a statistical scheduler has to have a period of its own.
    #[error(
        "\"{child}\" under the srms scheduler \"{scheduler}\" has no period; only threads with bursts have one"
    )]
    NoPeriod {
        /// The scheduler.
        scheduler: String,
        /// The child.
        child: String,
    },
    /// A superperiod is what the next longer period says.
    #[error(
        "\"{child}\" under the srms scheduler \"{scheduler}\" asks for a superperiod of {given}, but {rule}"
    )]
    Superperiod {
        /// The scheduler.
        scheduler: String,
        /// The child.
        child: String,
        /// What it asks for.
        given: Duration,
        /// What it may ask for.
        rule: String,
    },
    /// Numbers of a guarantee need more than 64 bits in nanoseconds.
    #[error(
        "what \"{child}\" asks of \"{scheduler}\", {asked}, is too finely divided to be scheduled; round it"
    )]
    TooFine {
        /// The scheduler.
        scheduler: String,
        /// The child.
        child: String,
        /// What is asked for.
        asked: String,
    },
    /// A scheduler refuses a child.
    #[error("scheduler \"{scheduler}\" refuses \"{child}\": {refusal}")]
    Refused {
        /// The scheduler.
        scheduler: String,
        /// The child.
        child: String,
        /// Why.
        refusal: Refusal,
    },
    /// There is no scheduler with these parameters.
    #[error("scheduler \"{scheduler}\": {error}")]
    NoSuchScheduler {
        /// Its name.
        scheduler: String,
        /// Why.
        error: KindError,
    },
}

impl Arrangement {
    /// Puts a thread into its place. It waits.
    ///
    /// # Errors
    /// [`ArrangeError::Refused`].
    pub fn add_thread(&mut self, system: &System, leaf: &Leaf) -> Result<VpId, ArrangeError> {
        self.engine.add_thread(leaf.parent, leaf.parameters).map_err(|refusal| ArrangeError::Refused {
            scheduler: system.schedulers[leaf.scheduler].name.clone(),
            child: system.threads[leaf.thread].name.clone(),
            refusal,
        })
    }

    /// Holds every scheduler to its promises to others, from now on.
    pub fn watch(&mut self, system: &System, tolerance: Duration) -> Watch {
        self.engine.watch();
        let mut watch = Watch::new(tolerance);
        let name = |index: usize| system.schedulers[index].name.as_str();
        for edge in &self.edges {
            let names = (name(edge.parent), name(edge.child));
            watch.hold(names, edge.promise.clone(), edge.vp, &self.engine.context());
        }
        watch
    }
}

/// Arranges the hierarchy of `node`, whose lanes, if it has any, are those of `plan` and hold `capacity` waiting jobs each
/// without allocating. None if the node has no hierarchy.
///
/// # Errors
/// See [`ArrangeError`]. That a hierarchy does not compose is none, see [`Arrangement::shortcomings`].
pub fn arrange(
    system: &System,
    node: usize,
    plan: &Plan,
    capacity: usize,
) -> Result<Option<Arrangement>, ArrangeError> {
    let Some(hierarchy) = system.hierarchy(node) else { return Ok(None) };
    let (derivation, shortcomings) = match derive(&hierarchy) {
        Ok(derivation) => (derivation, None),
        Err(NotDerived::Failed(failure)) => (failure.derived.clone(), Some(failure)),
        Err(NotDerived::Malformed(malformed)) => {
            panic!("a validated system has sound hierarchies: {malformed:?}")
        }
    };
    let arrangement = Arrangement {
        engine: Engine::new(system.nodes[node].cpus.len()),
        schedulers: vec![None; system.schedulers.len()],
        lanes: Vec::new(),
        leaves: Vec::new(),
        edges: Vec::new(),
        shortcomings,
    };
    let mut builder = Builder { system, node, derivation, arrangement };
    for scheduler in builder.downwards() {
        builder.seat(scheduler, plan, capacity)?;
    }
    builder.place_threads()?;
    builder.arrangement.edges.sort_by_key(|edge| edge.child);
    Ok(Some(builder.arrangement))
}

struct Builder<'a> {
    system: &'a System,
    node: usize,
    derivation: Derivation,
    arrangement: Arrangement,
}

impl Builder<'_> {
    /// The node's schedulers, each behind all above it.
    fn downwards(&self) -> Vec<usize> {
        let schedulers = &self.system.schedulers;
        let mut left: Vec<usize> =
            (0..schedulers.len()).filter(|index| schedulers[*index].node == self.node).collect();
        let mut order: Vec<usize> = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let is_next =
                |index: &usize| schedulers[*index].under.iter().all(|under| order.contains(&under.scheduler));
            let next = left.iter().position(is_next).expect("a validated hierarchy has no circles");
            order.push(left.remove(next));
        }
        order
    }

    fn seat(&mut self, index: usize, plan: &Plan, capacity: usize) -> Result<(), ArrangeError> {
        let scheduler = &self.system.schedulers[index];
        let processors = match scheduler.under.len() {
            0 => self.system.nodes[self.node].cpus.len(),
            parents => parents,
        };
        let facts = Facts { system: self.system, derivation: &self.derivation, index };
        let built = match scheduler.kind {
            SchedulerKind::Lanes => Box::new(FixedPriority::new()),
            _ => {
                let kind = facts.kind(processors)?;
                let announcing = match scheduler.under.iter().any(|under| self.is_slower(under)) {
                    true => Announcing::Deadlines,
                    false => Announcing::Nothing,
                };
                kind.build(announcing).map_err(|error| {
                    let scheduler = scheduler.name.clone();
                    ArrangeError::NoSuchScheduler { scheduler, error }
                })?
            }
        };
        let id = match scheduler.under.is_empty() {
            true => self.arrangement.engine.add_root(built),
            false => {
                let parents: Vec<(SchedulerId, Parameters)> = scheduler
                    .under
                    .iter()
                    .map(|under| self.asks(&scheduler.name, under))
                    .collect::<Result<_, _>>()?;
                let added = self.arrangement.engine.add(built, &parents);
                added.map_err(|refusal| self.refused(&scheduler.name, &scheduler.under, refusal))?
            }
        };
        self.arrangement.schedulers[index] = Some(id);
        let own: Vec<VpId> = self.arrangement.engine.processors_of(id).collect();
        for (under, vp) in scheduler.under.iter().zip(own) {
            let promise = self.promise(&scheduler.name, under, None);
            self.arrangement.edges.push(Edge { parent: under.scheduler, child: index, vp, promise });
        }
        if scheduler.kind == SchedulerKind::Lanes {
            self.arrangement.lanes = plan
                .lanes
                .iter()
                .map(|lane| {
                    let priority = Parameters::Priority(-(lane.level as i32));
                    let added =
                        self.arrangement.engine.add(Box::new(lane_leaf(lane, capacity)), &[(id, priority)]);
                    added.expect("levels are distinct priorities")
                })
                .collect();
        }
        Ok(())
    }

    fn place_threads(&mut self) -> Result<(), ArrangeError> {
        for (index, thread) in self.system.threads.iter().enumerate() {
            if thread.node != self.node {
                continue;
            }
            for under in &thread.under {
                let (parent, parameters) = self.asks(&thread.name, under)?;
                let promise = self.promise(&thread.name, under, thread.requires.as_ref());
                let scheduler = under.scheduler;
                self.arrangement.leaves.push(Leaf { thread: index, parent, scheduler, parameters, promise });
            }
        }
        Ok(())
    }

    /// What `child` registers with.
    fn asks(&self, child: &str, under: &Under) -> Result<(SchedulerId, Parameters), ArrangeError> {
        let parent =
            self.arrangement.schedulers[under.scheduler].expect("parents are seated before children");
        let above = Facts { system: self.system, derivation: &self.derivation, index: under.scheduler };
        Ok((parent, above.parameters_of(child, &under.request)?))
    }

    fn promise(&self, child: &str, under: &Under, required: Option<&Guarantee>) -> Option<Promise> {
        let parent = &self.system.schedulers[under.scheduler].name;
        match self.derivation.between(parent, child) {
            Some(edge) => Some(Promise::Derived(edge.label.absolute())),
            None => required.cloned().map(Promise::Required),
        }
    }

    fn is_slower(&self, under: &Under) -> bool {
        matches!(self.system.schedulers[under.scheduler].kind, SchedulerKind::BssI | SchedulerKind::PShed)
    }

    /// The engine does not tell which of several parents refused.
    fn refused(&self, child: &str, under: &[Under], refusal: Refusal) -> ArrangeError {
        let parents: Vec<&str> =
            under.iter().map(|under| self.system.schedulers[under.scheduler].name.as_str()).collect();
        ArrangeError::Refused { scheduler: parents.join("\" or \""), child: child.into(), refusal }
    }
}

/// The speed of the processor whose time a scheduler's amounts count.
fn pace_of(derivation: &Derivation, scheduler: &str) -> Share {
    let into = derivation.edges.iter().find(|edge| edge.child == scheduler);
    match into.map(|edge| edge.label.absolute()) {
        Some(Guarantee::Resu(rate)) => rate,
        _ => Share::whole(),
    }
}
