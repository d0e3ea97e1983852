//! A node's hierarchy of a description, as an engine: what the files say becomes what decides.
//!
//! The schedulers are seated from the root down; the threads are left as [`Leaf`]s, because whoever drives the engine takes
//! them in: a simulation all at once, real threads when they exist. Amounts below a uniformly slower processor count its
//! time; the engine counts the real one's, so they are converted by what the derivation finds on each edge.
//!
//! What is on each edge to be kept is a [`Promise`]: the derived guarantee, or where the hierarchy does not compose that
//! far, what a thread requires all the same.

mod blueprint;
mod cause;
mod kept;
pub mod live;
mod stated;
mod watch;
mod work;

use crate::composition::leaf as lane_leaf;
use crate::hierarchy::{Engine, Parameters, Refusal, Scheduler, SchedulerId, VpId};
use crate::scheduler::{ConfigureError, FixedPriority, KindError};
use crate::strategy::Plan;
use talea_guarantee::derivation::{Failure, NotDerived, derive};
use talea_guarantee::guarantee::{Guarantee, Hardness};
use talea_guarantee::monitor::LongRun;
use talea_model::{SchedulerKind, System};
use talea_time::Duration;

pub use blueprint::{Blueprint, Post, PostRole, Tie};
pub use cause::{ChangeAuthor, ChangeCause, ChangeReason};
pub use kept::{Basis, Breach, Kept, Receipts, Side, Verdict};
pub use watch::{Change, Watch};
pub use work::Counts;

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
    /// What the root is given of each processor.
    pub given: Guarantee,
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
    /// The derived guarantee, which holds in the long run or between deadlines, and how far behind the schedulers that there are may be.
    Stated(Guarantee, LongRun),
    /// Nothing could be derived; this is what the thread requires.
    Required(Guarantee),
}

impl Promise {
    /// The guarantee to be kept.
    pub fn guarantee(&self) -> &Guarantee {
        match self {
            Promise::Derived(guarantee) | Promise::Stated(guarantee, _) | Promise::Required(guarantee) => {
                guarantee
            }
        }
    }

    /// What is promised: none where this is what the thread requires alone.
    pub fn derived(&self) -> Option<&Guarantee> {
        match self {
            Promise::Derived(guarantee) | Promise::Stated(guarantee, _) => Some(guarantee),
            Promise::Required(_) => None,
        }
    }

    /// How far behind somebody may be who is promised a share in the long run, or a slower processor.
    pub fn stated(&self) -> Option<LongRun> {
        match self {
            Promise::Stated(_, bound) => Some(*bound),
            Promise::Derived(_) | Promise::Required(_) => None,
        }
    }

    /// Whether the guarantee is the same, on the same grounds, whatever is stated of how far behind it may be.
    pub fn is_like(&self, other: &Promise) -> bool {
        let is_required = |promise: &Promise| matches!(promise, Promise::Required(_));
        self.guarantee() == other.guarantee() && is_required(self) == is_required(other)
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
    /// The kind is declared, and nothing is known of how to make one.
    #[error("scheduler \"{scheduler}\" is of kind {kind}, which this program has heard of and cannot make")]
    NoCode {
        /// Its name.
        scheduler: String,
        /// Its kind.
        kind: SchedulerKind,
    },
    /// The description does not say what the scheduler or a child of it needs.
    #[error(transparent)]
    Configure(#[from] ConfigureError),
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
        let mut watch = Watch::new(tolerance);
        self.watch_by(&mut watch, system);
        watch
    }

    /// The same by a watch that there is already.
    pub fn watch_by(&mut self, watch: &mut Watch, system: &System) {
        self.engine.watch();
        let name = |index: usize| system.schedulers[index].name.as_str();
        for edge in &self.edges {
            let names = (name(edge.parent), name(edge.child));
            let cause = ChangeCause::DESCRIBED;
            watch.hold(names, edge.promise.clone(), edge.vp, &self.engine.context(), cause);
        }
    }
}

/// Arranges the hierarchy of `node`, whose lanes, if it has any, are those of `plan` and hold `capacity` waiting jobs each
/// without allocating. Its root is given whole processors. None if the node has no hierarchy.
///
/// # Errors
/// See [`ArrangeError`]. That a hierarchy does not compose is none, see [`Arrangement::shortcomings`].
pub fn arrange(
    system: &System,
    node: usize,
    plan: &Plan,
    capacity: usize,
) -> Result<Option<Arrangement>, ArrangeError> {
    arrange_given(system, node, plan, capacity, &Guarantee::All)
}

/// The same where the root is given no more than this of each processor.
///
/// # Errors
/// As [`arrange`].
pub fn arrange_given(
    system: &System,
    node: usize,
    plan: &Plan,
    capacity: usize,
    given: &Guarantee,
) -> Result<Option<Arrangement>, ArrangeError> {
    let Some(mut hierarchy) = system.hierarchy(node) else { return Ok(None) };
    hierarchy.given = given.clone();
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
        given: given.clone(),
        shortcomings,
    };
    let blueprint = Blueprint::new(system, node, &derivation)?;
    let lanes = vec![None; plan.lanes.len()];
    let mut builder = Builder { plan, capacity, arrangement, lanes };
    blueprint.schedulers.iter().try_for_each(|post| builder.seat(post))?;
    blueprint.threads.iter().for_each(|post| builder.place(post));
    builder.arrangement.edges.sort_by_key(|edge| edge.child);
    builder.arrangement.lanes = builder.lanes.into_iter().flatten().collect();
    Ok(Some(builder.arrangement))
}

struct Builder<'a> {
    plan: &'a Plan,
    capacity: usize,
    arrangement: Arrangement,
    /// The lanes of the plan that have been seated.
    lanes: Vec<Option<SchedulerId>>,
}

impl Builder<'_> {
    fn seat(&mut self, post: &Post) -> Result<(), ArrangeError> {
        let built: Box<dyn Scheduler> = match &post.role {
            PostRole::Scheduler(kind, announcing) => kind
                .build(*announcing)
                .map_err(|error| ArrangeError::NoSuchScheduler { scheduler: post.name.clone(), error })?,
            PostRole::Lanes => Box::new(FixedPriority::new()),
            PostRole::Thread => panic!("threads are no schedulers"),
        };
        let id = match post.under.is_empty() {
            true => self.arrangement.engine.add_root(built),
            false => {
                let parents: Vec<(SchedulerId, Parameters)> =
                    post.under.iter().map(|tie| (self.parent(tie), tie.parameters)).collect();
                self.arrangement.engine.add(built, &parents).map_err(|refusal| refused(post, refusal))?
            }
        };
        self.arrangement.schedulers[post.index] = Some(id);
        let own: Vec<VpId> = self.arrangement.engine.parents(id).map(|edge| edge.vp).collect();
        for (tie, vp) in post.under.iter().zip(own) {
            let promise = tie.promise.clone();
            self.arrangement.edges.push(Edge { parent: tie.scheduler, child: post.index, vp, promise });
        }
        if post.role == PostRole::Lanes {
            self.add_lanes(post.index, id);
        }
        Ok(())
    }

    /// The lanes of the scheduler `index` of the description, which is `above` them.
    fn add_lanes(&mut self, index: usize, above: SchedulerId) {
        let engine = &mut self.arrangement.engine;
        for lane in self.plan.lanes.iter().filter(|lane| lane.under == Some(index)) {
            let priority = Parameters::Priority(-(lane.level as i32));
            let leaf = lane_leaf(lane, self.capacity);
            let added = engine.add(Box::new(leaf), &[(above, priority)]);
            self.lanes[lane.level] = Some(added.expect("levels are distinct priorities"));
        }
    }

    fn place(&mut self, post: &Post) {
        for tie in &post.under {
            let (parent, parameters, promise) = (self.parent(tie), tie.parameters, tie.promise.clone());
            let (thread, scheduler) = (post.index, tie.scheduler);
            self.arrangement.leaves.push(Leaf { thread, parent, scheduler, parameters, promise });
        }
    }

    fn parent(&self, tie: &Tie) -> SchedulerId {
        self.arrangement.schedulers[tie.scheduler].expect("parents are seated before children")
    }
}

/// The engine does not tell which of several parents refused.
fn refused(post: &Post, refusal: Refusal) -> ArrangeError {
    let parents: Vec<&str> = post.under.iter().map(|tie| tie.parent.as_str()).collect();
    ArrangeError::Refused { scheduler: parents.join("\" or \""), child: post.name.clone(), refusal }
}
