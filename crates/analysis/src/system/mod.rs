//! Whole systems as they are deployed: nodes, lanes, tasks over several nodes, costs of the mechanisms.
//!
//! [`analyse`] bounds the response time of every operation and task of a [`System`] under the lanes that a strategy
//! made. It is *sound*: if every execution time is at most what the description declares, no job ever takes longer
//! than its bound, whatever the phases. Where a bound is exact its [`Method`] says so.
//!
//! * Within a lane: FIFO by arrival ([`Method::Queue`]), deadline and laxity by key ([`Method::Urgency`]), an operation
//!   alone by response-time analysis. Where the order is not known (late work goes last and some may be late), only
//!   the length of the busy period counts.
//! * Between lanes: the higher lane always preempts. On several processors a lane is served by one at a time.
//! * Triggers: see `triggered.rs`. Cause-effect chains: see `cause_effect.rs`.
//! * Between nodes: a segment that is released greedily by another node has as jitter the worst response of its predecessors
//!   and the message delay, iterated until nothing grows any more: the holistic analysis of Tindell and Clark 1994, with the
//!   best case taken as zero. Graphs wait for their slowest predecessor, or for as many as their join says.
//! * Under release guards and (modified) phase modification releases stay a period apart, so that there is no such jitter and
//!   end-to-end bounds are sums along the chain: the analysis SA/PM of Sun and Liu 1996, in lanes. See `release.rs`.
//! * In a hierarchy of schedulers lanes and threads have less than a processor: what they are promised, as a function of supply (see
//!   `supply.rs`), takes the place of the time that passes. What takes the processor away from them is in the promise; coming back costs a
//!   switch (`interruption.rs`).
//! * Costs of switches, queues, timers and messages: see `model.rs`.
//!
//! The cost of an analysis is that of its windows: for every operation as many as there are arrivals of its lane's
//! members in a busy period, each of some iterations over the members and all operations above. What
//! exceeds the [`Effort`] gets a coarse bound in constant time, or none and the reason.

mod cause_effect;
mod holistic;
mod interruption;
mod lane;
mod leaving;
mod load;
mod model;
mod parts;
mod place;
mod planned;
mod release;
mod segments;
mod stream;
mod supply;
mod taken;
mod triggered;

pub use cause_effect::{ChainBounds, ChainObstacle, ChainStep, ChainStepKind};
pub use leaving::{Leaving, leaving};
pub use load::{NodeLoad, load};
pub use parts::{Cause, Part};
pub use planned::{UnplannedRelease, with_response_bounds, with_response_bounds_on};
pub use supply::{ROUNDING_NS, Supply};
pub use taken::Taken;

use crate::effort::{AnalysisError, Effort};
use lane::{Goal, Interest};
use std::collections::HashMap;
use talea_guarantee::guarantee::Guarantee;
use talea_model::{LossRate, OperationId, System};
use talea_policy::strategy::Plan;
use talea_time::Duration;
use thiserror::Error;

/// How a bound was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Response-time analysis of an operation alone in its lane.
    ResponseTime,
    /// A FIFO lane with peers; a bound.
    Queue,
    /// A deadline or laxity lane with peers; a bound.
    Urgency,
    /// The deadline itself: the processor demand of a deadline lane says that it is met; a bound.
    Demand,
    /// The length of the busy period, which holds in any order; a bound.
    BusyPeriod,
    /// The period of a server into whose budget it fits; a bound.
    Server,
    /// A straight line above all demand; a bound, coarse, where the better ones are too costly.
    LinearBound,
}

/// Why there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Obstacle {
    /// The lane and those above it need more than the whole processor in the long run.
    #[error("the lane and those above it need more than the whole processor")]
    Overload,
    /// A lane above has no bound, so that it may take the processor for good.
    #[error("a higher lane may take the processor for good")]
    Starved,
    /// The task comes from another node, and delays keep growing from one round to the next.
    #[error("delays between the nodes grow without end, or beyond 300 periods")]
    Diverges,
    /// It, or something beside it in its lane, waits for an operation that has no bound.
    #[error("something in its lane waits for an operation without a bound")]
    Waits,
    /// The search was given up.
    #[error(
        "the search is too costly: the load is close to a whole processor, or there are too many operations"
    )]
    TooCostly,
    /// It exceeds the limit that was asked about.
    #[error("it exceeds its limit")]
    BeyondLimit,
    /// A time is longer than can be counted.
    #[error("a time in it is longer than 292 years")]
    Overflow,
    /// It wants the processor for ever.
    #[error("it wants the processor for ever")]
    Endless,
    /// It is a program, of which nothing is known.
    #[error("nothing is known of how much a program wants")]
    Unknown,
    /// Its place in the hierarchy could not be given a guarantee.
    #[error("nothing could be derived about what it receives")]
    NotDerived,
    /// A guarantee is derived for it that is not known to be kept.
    #[error("what is derived for it is not known to be kept")]
    Doubted,
    /// NULL.
    #[error("it is promised nothing, since what stands before it may take the processor for good")]
    NothingPromised,
    /// PS.
    #[error("it is promised a share in the long run, and nothing by any time")]
    LongRun,
    /// RESU.
    #[error("it is promised a slower processor by announced deadlines, and nothing by any other time")]
    ByDeadlines,
    /// Lanes that a hierarchy gives several virtual processors.
    #[error("the hierarchy gives it several virtual processors, which no bound is known for")]
    SeveralProcessors,
    /// Values or events trigger it more often than its separation lets them.
    #[error(
        "it is triggered more often than its separation allows, and no bound is known of what waits until then"
    )]
    Backlog,
    /// What the file draws from outside may come faster than it declares.
    #[error(
        "what triggers it may come faster than its separation and burst declare: the arrivals in the file keep to no such thing"
    )]
    Undeclared,
    /// Jobs that wait for room, in lanes below schedulers.
    #[error(
        "jobs of its lanes wait for room in inputs (full = \"block\"), and whoever sleeps in the midst of a job asks the schedulers above anew: no bound is \
         known for that"
    )]
    Sleeps,
    /// A scheduler may interrupt it as often as it likes, and a switch costs something.
    #[error("it is not known how often {0} interrupts it, and every switch costs something")]
    Switches(&'static str),
}

impl From<AnalysisError> for Obstacle {
    fn from(error: AnalysisError) -> Self {
        match error {
            AnalysisError::TooCostly { .. } => Obstacle::TooCostly,
            AnalysisError::Overflow => Obstacle::Overflow,
        }
    }
}

/// Whether some phasing of the tasks reaches a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// With the right phases and the declared execution times a job takes exactly this long.
    Exact,
    /// No job takes longer; perhaps none takes as long.
    Bound,
}

/// A bound on a response time, with the window that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// From the arrival of the task's instance to the completion of the operation.
    pub bound: Duration,
    /// How it was found.
    pub method: Method,
    /// Whether it is reached.
    pub exactness: Exactness,
    /// The window's length: from the last instant at which nothing that counts was under way to the completion.
    pub window: Duration,
    /// The arrival, counted from the window's beginning: `bound = window - arrival`. Negative for an operation that is
    /// released late, by jitter or by its predecessors.
    pub arrival: Duration,
}

/// What is known of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationBound {
    /// The operation.
    pub operation: OperationId,
    /// Index of its node.
    pub node: usize,
    /// Level of its lane on the node, 0 highest.
    pub level: usize,
    /// Its response time, or why it has no bound.
    pub response: Result<Response, Obstacle>,
}

/// What is known of one task: the latest completion of all its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskBound {
    /// Index of the task.
    pub task: usize,
    /// The operation that completes last, or the first that has no bound.
    pub last: OperationId,
    /// From arrival to the completion of the whole instance, or why it has no bound.
    pub response: Result<Duration, Obstacle>,
}

/// The result of [`analyse`].
#[derive(Debug)]
pub struct SystemBounds {
    /// By operation number.
    pub operations: Vec<OperationBound>,
    /// By task number.
    pub tasks: Vec<TaskBound>,
    model: model::Model,
    solution: holistic::Solution,
    edges: place::Edges,
}

impl SystemBounds {
    /// Gives the threads a bound that have none by what they are promised, and for which the processor is never idle: nobody waits longer
    /// than all the work of the node can last.
    fn bound_by_backlog(&mut self, system: &System) {
        let lagging: Vec<usize> = (0..self.operations.len())
            .filter(|operation| {
                let place = &self.model.nodes[self.model.operations[*operation].node];
                place.may_lag && self.operations[*operation].response.is_err()
            })
            .collect();
        let mut backlogs: HashMap<usize, Option<u64>> = HashMap::new();
        for operation in lagging {
            let node = self.operations[operation].node;
            let backlog = *backlogs.entry(node).or_insert_with(|| self.longest_backlog(system, node));
            let Some(bound) = backlog.and_then(|backlog| i64::try_from(backlog).ok()) else { continue };
            let bound = Duration::from_nanos(bound);
            let (window, arrival) = (bound, Duration::ZERO);
            let (method, exactness) = (Method::BusyPeriod, Exactness::Bound);
            self.operations[operation].response = Ok(Response { bound, method, exactness, window, arrival });
            self.tasks[system.operations()[operation].task].response = Ok(bound);
        }
    }

    /// What fills the window that gives an operation's bound, in no particular order; nothing if it has none. The parts
    /// add up to [`Response::window`].
    pub fn parts(&self, operation: OperationId) -> Vec<Part> {
        match (&self.operations[operation.index()].response, self.solution.worst(operation.index())) {
            (Ok(response), None) => vec![Part { cause: Cause::Withheld, jobs: 0, time: response.window }],
            _ => parts::parts(&self.model, &self.solution, operation),
        }
    }

    /// By task, whether others that inherit its deadline count as one job with it: a part of a window that names the task is of these, too.
    pub fn with_heirs(&self) -> Vec<bool> {
        let tasks = self.model.operations.iter().map(|operation| operation.task + 1).max().unwrap_or(0);
        let mut with_heirs = vec![false; tasks];
        let merged = self.model.segments.iter().filter(|segment| segment.has_followers);
        for operation in merged.flat_map(|segment| &segment.operations) {
            with_heirs[self.model.operations[*operation].task] = true;
        }
        with_heirs
    }

    /// What the lanes or the thread that an operation belongs to receive at least, or why that cannot be said.
    ///
    /// # Errors
    /// The obstacle that all of the lanes' operations have.
    pub fn supply(&self, operation: OperationId) -> Result<Supply, Obstacle> {
        self.model.nodes[self.model.operations[operation.index()].node].supply
    }

    /// A bound on the time from an operation's own release to its completion. That of a first operation includes the jitter of
    /// its release.
    ///
    /// # Errors
    /// Why it has none.
    pub fn from_release(&self, operation: OperationId) -> Result<Duration, Obstacle> {
        self.operations[operation.index()].response.as_ref().map_err(|obstacle| *obstacle)?;
        let response =
            self.solution.response_from_release(&self.model, operation.index()).ok_or(Obstacle::Waits)?;
        i64::try_from(response).map(Duration::from_nanos).map_err(|_| Obstacle::Overflow)
    }

    /// The same until all its successors know of the completion: what phase modification and modified phase modification call R.
    ///
    /// # Errors
    /// Why it has none.
    pub fn until_known(&self, system: &System, operation: OperationId) -> Result<Duration, Obstacle> {
        let delay = Duration::from_nanos(model::slowest_delay(system, operation) as i64);
        self.from_release(operation)?.checked_add(delay).ok_or(Obstacle::Overflow)
    }

    /// Whether guards of `task` that are reset at idle points are in a non-preemptive lane ordered by deadline or laxity. It is an
    /// open question whether releases stay apart there as far as a response can see; the bounds count on no such thing.
    pub fn counts_idle_points_as_open(&self, task: usize) -> bool {
        let segments = self.model.segments.iter().filter(|segment| segment.task == task);
        segments.into_iter().any(|segment| segment.entry.is_open())
    }

    /// Whether every instance of `task` is sure to be served and to meet its deadline.
    pub fn holds(&self, system: &System, task: usize) -> bool {
        let in_time = self.tasks[task].response.is_ok_and(|bound| bound <= system.tasks[task].deadline);
        in_time && self.loses_none(system, task) && !messages_may_be_lost(system, task)
    }

    /// Whether the task's overrun policy is sure to have nothing to do: instances queue up, or the first subtasks are
    /// done by the time the next instance arrives.
    pub fn loses_none(&self, system: &System, task: usize) -> bool {
        let described = &system.tasks[task];
        let in_time = |operation: &talea_model::Operation| {
            let response = &self.operations[operation.id.index()].response;
            !operation.predecessors.is_empty()
                || matches!(response, Ok(response) if response.bound <= described.period)
        };
        let firsts = system.operations_of(task).iter().filter(|operation| operation.predecessors.is_empty());
        if described.trigger.is_some() {
            return !firsts.into_iter().any(|first| self.solution.loses(&self.model, first.id.index()));
        }
        !described.overrun.loses() || system.operations_of(task).iter().all(in_time)
    }
}

/// Whether a message of the task may be lost: between its operations, or the one that triggers it.
pub fn messages_may_be_lost(system: &System, task: usize) -> bool {
    lossy_trigger(system, task).is_some() || system.messages_that_may_be_lost(task).next().is_some()
}

/// The operations between which the message is that triggers the task, if their link may lose it.
pub fn lossy_trigger(system: &System, task: usize) -> Option<(OperationId, OperationId)> {
    let producer = system.outputs()[system.trigger_output(task)?.index()].operation;
    let node = |id| system.subtask(id).node;
    let firsts = system.operations_of(task).iter().filter(|operation| operation.predecessors.is_empty());
    let is_lossy = |first: &OperationId| system.route(node(producer), node(*first)).loss > LossRate::NONE;
    firsts.map(|first| first.id).find(is_lossy).map(|first| (producer, first))
}

/// Whether the arrivals that the file draws from outside for a task may come faster than it declares.
pub fn breaks_declaration(system: &System, task: usize) -> bool {
    triggered::breaks_declaration(&system.tasks[task])
}

/// Bounds every response time of `system`, whose nodes have these lanes, or have them in their hierarchies.
///
/// The operations of threads, in their order, follow those of the tasks, and so do the tasks that they
/// [are](System::with_threads_as_tasks).
///
/// # Errors
/// [`AnalysisError::Overflow`] where already the costs of one task exceed the range of times. Whatever else prevents a
/// bound stands at the operations concerned.
pub fn analyse(system: &System, plans: &[Plan], effort: &mut Effort) -> Result<SystemBounds, AnalysisError> {
    analyse_on(system, plans, &[], effort)
}

/// The same where each processor of a node gives no more than this: a whole one where nothing is said of the node.
///
/// # Errors
/// As for [`analyse`].
pub fn analyse_on(
    system: &System,
    plans: &[Plan],
    given: &[Guarantee],
    effort: &mut Effort,
) -> Result<SystemBounds, AnalysisError> {
    let system = &system.with_threads_as_tasks();
    let (places, edges) = place::places(system, plans, given, effort);
    let model = model::Model::new(system, &places, effort)?;
    let interest = vec![Interest::Worst; model.operations.len()];
    let solution = holistic::solve(&model, Goal(&interest), effort);
    let (operations, tasks) = solution.bounds(system, &model);
    let mut bounds = SystemBounds { operations, tasks, model, solution, edges };
    bounds.bound_by_backlog(system);
    Ok(bounds)
}

/// Whether every job of the tasks with `targets[task]` meets its deadline: what [`analyse`] and
/// [`SystemBounds::holds`] say, at a fraction of the cost. (Where the effort runs out, either may know more than the
/// other; what either proves is true.)
///
/// # Errors
/// As for [`analyse`].
///
/// # Panics
/// If there is not one target for each task, or one for each task and then each thread.
pub fn hold(
    system: &System,
    plans: &[Plan],
    targets: &[bool],
    effort: &mut Effort,
) -> Result<bool, AnalysisError> {
    let (tasks, threads) = (system.tasks.len(), system.threads.len());
    assert!(
        [tasks, tasks + threads].contains(&targets.len()),
        "a target for every task, and for every thread"
    );
    if (0..tasks).filter(|task| targets[*task]).any(|task| messages_may_be_lost(system, task)) {
        return Ok(false);
    }
    let system = &system.with_threads_as_tasks();
    let targets: Vec<bool> = (0..system.tasks.len()).map(|task| targets.get(task) == Some(&true)).collect();
    let (places, _) = place::places(system, plans, &[], effort);
    let model = model::Model::new(system, &places, effort)?;
    let interest = model.interest(system, &targets);
    let solution = holistic::solve(&model, Goal(&interest), effort);
    let asked = system.operations().iter().filter(|operation| targets[operation.task]);
    let within = |operation: &talea_model::Operation| {
        let index = operation.id.index();
        let response = || solution.response_from_arrival(index);
        let in_time = |limit: u64| response().is_some_and(|response| response <= i128::from(limit));
        let is_kept = !operation.predecessors.is_empty() || !solution.loses(&model, index);
        is_kept && model.limit(system, index).is_none_or(in_time)
    };
    Ok(asked.into_iter().all(within))
}
