//! The vocabulary of a system description: plain values, each with its meaning and unit.

use crate::chain::Chain;
use crate::channel::{Channel, Publication, PublicationAddress, Subscription, SubscriptionOwner};
use crate::execution::Execution;
use crate::hierarchy::{Scheduler, Thread};
use crate::keyword::keywords;
use crate::link::{Link, LinkEnds, Route};
use crate::operation::OperationAddress;
use crate::ports::{Input, Output, OutputAddress};
use crate::trigger::{Communication, Separation, Trigger};
use std::fmt;
use talea_time::{Duration, Work};

/// The longest time in a description, ten years, so that no sum of a few times and no instant of a
/// run leaves 64 bits of nanoseconds.
pub const TIME_LIMIT: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A whole system as its author wrote it, with defaults filled in, not yet validated.
///
/// [`crate::System::new`] validates it; [`crate::parse`] reads it from TOML.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The system's name, for reports.
    pub name: String,
    /// How operations are sorted into lanes.
    pub strategy: Strategy,
    /// What happens inside one lane when a more urgent job arrives.
    pub lane_dispatch: LaneDispatch,
    /// Which laxity orders a laxity lane.
    pub laxity: Laxity,
    /// Where late jobs stand in deadline and laxity lanes.
    pub late: Late,
    /// Seed of every pseudo-random choice (execution times, release jitter).
    pub seed: u64,
    /// Costs the simulator charges; all zero unless stated.
    pub overhead: Overhead,
    /// The nodes, at least one.
    pub nodes: Vec<Node>,
    /// What lies between them.
    pub links: Vec<Link>,
    /// The channels of events.
    pub channels: Vec<Channel>,
    /// The end-to-end tasks, at least one unless there are threads.
    pub tasks: Vec<Task>,
    /// Paths through connected operations whose times are bounded and measured.
    pub chains: Vec<Chain>,
    /// The schedulers of nodes that have a hierarchy instead of lanes.
    pub schedulers: Vec<Scheduler>,
    /// The threads under them.
    pub threads: Vec<Thread>,
}

impl Description {
    /// What a message from one node to another meets on its way.
    pub fn route(&self, from: usize, to: usize) -> Route {
        self.link(from, to).unwrap_or_default()
    }

    /// The same, if a link describes it.
    pub fn link(&self, from: usize, to: usize) -> Option<Route> {
        if from == to {
            return None;
        }
        let joins = |link: &&Link| link.ends.directions().any(|direction| direction == (from, to));
        let others = || self.links.iter().find(|link| link.ends == LinkEnds::Others);
        self.links.iter().find(joins).or_else(others).map(|link| link.route)
    }

    /// The subtask there, with its task.
    pub fn subtask_at(&self, address: OperationAddress) -> Option<(&Task, &Subtask)> {
        let task = self.tasks.get(address.task)?;
        Some((task, task.subtasks.get(address.subtask)?))
    }

    /// The output there, with the task that publishes it.
    pub fn output_at(&self, address: OutputAddress) -> Option<(&Task, &Output)> {
        let (task, subtask) = self.subtask_at(address.operation)?;
        Some((task, subtask.outputs.get(address.output)?))
    }

    /// All publications, in file order, by their indices.
    pub fn publications(&self) -> impl Iterator<Item = (PublicationAddress, &Publication)> {
        let subtasks = self.tasks.iter().enumerate().flat_map(|(task, described)| {
            let of = move |subtask| OperationAddress { task, subtask };
            described.subtasks.iter().enumerate().map(move |(subtask, described)| (of(subtask), described))
        });
        subtasks.flat_map(|(operation, described)| {
            let events = described.events.iter().enumerate();
            events.map(move |(event, described)| (PublicationAddress { operation, event }, described))
        })
    }

    /// All subscriptions, in file order.
    pub fn subscriptions(&self) -> impl Iterator<Item = (SubscriptionOwner, &Subscription)> {
        self.tasks.iter().enumerate().flat_map(|(task, described)| {
            let releasing = match &described.trigger {
                Some(Trigger::Events(subscription)) => Some((SubscriptionOwner::Task(task), subscription)),
                _ => None,
            };
            let taken = described.subtasks.iter().enumerate().filter_map(move |(subtask, described)| {
                let owner = SubscriptionOwner::Operation(OperationAddress { task, subtask });
                Some((owner, described.subscription.as_ref()?))
            });
            releasing.into_iter().chain(taken)
        })
    }
}

/// A computer, or a part of one: a set of processors that schedules on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// Processors by their Linux number; the simulator uses only how many there are.
    pub cpus: Vec<u16>,
}

/// An end-to-end task: a chain or graph of subtasks, released together once per period or by a trigger.
///
/// Without a trigger job `k` arrives at `phase + k * period`, is released up to `jitter` later, and is to complete
/// by `deadline` after its *arrival*. With one, a job arrives whenever the trigger fires, or with the job that makes it fire, and without
/// phase or jitter.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Unique name.
    pub name: String,
    /// Distance between arrivals, greater than zero. With a trigger it is derived, so that whatever goes by rates works unchanged:
    /// the [separation](Task::separation), or else the time between the values of the output that lead to a release.
    /// [`System::new`](crate::System::new) puts it in place.
    pub period: Duration,
    /// End-to-end relative deadline; shorter or longer than the period.
    pub deadline: Duration,
    /// Whether its instances have arrival and deadline of the job that releases them. [`Self::deadline`] is derived then, as that of whatever
    /// releases it; [`System::new`](crate::System::new) puts it in place.
    pub inherits_deadline: bool,
    /// Arrival of the first job after the common start.
    pub phase: Duration,
    /// Greatest delay between arrival and release, drawn uniformly per job.
    pub jitter: Duration,
    /// What releases it in place of the period.
    pub trigger: Option<Trigger>,
    /// How far apart triggered releases are; only with a trigger, and always with one from outside.
    pub separation: Option<Separation>,
    /// When values between this task and others are published and taken.
    pub communication: Communication,
    /// What a missed deadline means.
    pub criticality: Criticality,
    /// The criticality is the highest of the tasks that it releases, by values or events, or that take its events, directly or through others;
    /// [`System::new`](crate::System::new) puts it in place.
    pub inherits_criticality: bool,
    /// Static subpriority among operations of one lane; larger is more important.
    pub importance: i32,
    /// What happens at a release while a first subtask of this task is still unfinished.
    pub overrun: Overrun,
    /// When its subtasks with predecessors are released.
    pub sync: Synchronisation,
    /// The subtasks in file order, at least one.
    pub subtasks: Vec<Subtask>,
}

impl Task {
    /// Whether its instances may be merged, so that one stands for several: it begins with one subtask, which takes what there is when it begins.
    pub fn can_merge(&self) -> bool {
        let firsts = self.subtasks.iter().filter(|subtask| subtask.after.is_empty()).count();
        firsts <= 1
            && self.communication == Communication::Implicit
            && !matches!(self.trigger, Some(Trigger::Events(_)))
    }

    /// The name of the operation that the subtask is: `task` for a task of one subtask of the same name, else `task.subtask`.
    pub fn operation_name(&self, subtask: usize) -> String {
        match self.subtasks.as_slice() {
            [alone] if alone.name == self.name => self.name.clone(),
            subtasks => format!("{}.{}", self.name, subtasks[subtask].name),
        }
    }

    /// Whether the subtask `earlier` is a direct or indirect predecessor of `later`.
    pub fn precedes(&self, earlier: usize, later: usize) -> bool {
        let mut seen = vec![false; self.subtasks.len()];
        let mut unvisited = vec![later];
        while let Some(subtask) = unvisited.pop() {
            for &before in self.subtasks.get(subtask).map_or(&[][..], |subtask| &subtask.after) {
                if before == earlier {
                    return true;
                }
                if seen.get(before) == Some(&false) {
                    seen[before] = true;
                    unvisited.push(before);
                }
            }
        }
        false
    }
}

/// One step of a task: an operation that runs on one node.
#[derive(Clone, Debug, PartialEq)]
pub struct Subtask {
    /// Unique within its task.
    pub name: String,
    /// Index into [`Description::nodes`].
    pub node: usize,
    /// The scheduler of kind `lanes` that has it in its lanes, an index into [`Description::schedulers`]. None if it is the only one
    /// of the node, or the node has no hierarchy.
    pub lanes: Option<usize>,
    /// Worst-case execution time the policies and the analysis count with.
    pub wcet: Work,
    /// What synthetic work really takes.
    pub exec: Execution,
    /// Indices of the predecessors within the task; empty for a first subtask.
    pub after: Vec<usize>,
    /// How many of the predecessors it waits for.
    pub join: Join,
    /// A bound on the time from its own release until its successors know of its completion: when they are released under phase
    /// modification and modified phase modification (R_i,k of Sun and Liu). Under phase modification that of a first subtask
    /// counts from the arrival. Filled in by the analysis if the author gives none.
    pub bound: Option<Duration>,
    /// What its jobs publish when they complete, in file order.
    pub outputs: Vec<Output>,
    /// What its jobs take when they begin, in file order.
    pub inputs: Vec<Input>,
    /// The events that its jobs push into channels when they complete, in file order.
    pub events: Vec<Publication>,
    /// The events of which each job takes the next one when it begins, if one waits, whatever has released it.
    pub subscription: Option<Subscription>,
}

/// The struct of all costs, by their keys in `[overhead]`.
macro_rules! overhead {
    ($(#[doc = $doc:literal] $cost:ident,)*) => {
        /// Costs of the mechanisms, charged by the simulator and later counted by the analysis.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Overhead {
            $(#[doc = $doc] pub $cost: Work,)*
        }

        impl Overhead {
            /// All keys in `[overhead]`.
            pub const KEYS: [&'static str; [$($doc),*].len()] = [$(stringify!($cost)),*];

            /// All costs, by their keys.
            pub fn costs(&self) -> impl Iterator<Item = (&'static str, Work)> + use<> {
                Self::KEYS.into_iter().zip([$(self.$cost),*])
            }

            /// Asks for each cost by its key.
            pub fn of(mut cost: impl FnMut(&'static str) -> Work) -> Self {
                Overhead { $($cost: cost(stringify!($cost)),)* }
            }

            /// Of each cost the greater one.
            #[must_use]
            pub fn or_more(&self, other: &Overhead) -> Overhead {
                Overhead { $($cost: self.$cost.max(other.$cost),)* }
            }
        }
    };
}

overhead! {
    /// A processor is given to another job than the one it ran last.
    switch,
    /// One insertion into or removal from a lane's queue.
    queue,
    /// A timer expiry that releases a job.
    timer,
    /// Receiving a message from another node.
    message,
    /// Finding out who has subscribed to an event that is pushed.
    push,
    /// Evaluating a subscription's filter for one event.
    filter,
    /// Having one subscription's queue take an event.
    delivery,
}

keywords! {
    /// How operations are sorted into lanes (Kokyu's strategies; `docs/policies.md`).
    Strategy {
        /// Rate monotonic: one FIFO lane per distinct period, shortest first.
        Rms = "rms",
        /// Earliest deadline first: one deadline lane.
        Edf = "edf",
        /// Minimum laxity first: one laxity lane.
        Mlf = "mlf",
        /// Maximum urgency first: one laxity lane per criticality.
        Muf = "muf",
        /// Critical operations as RMS inside their criticality, the others by laxity below.
        RmsMlf = "rms+mlf",
        /// One FIFO lane per criticality.
        Criticality = "criticality",
    }
}

impl Strategy {
    /// That of a description that names none.
    pub const DEFAULT: Strategy = Strategy::RmsMlf;
}

keywords! {
    /// What happens inside one lane when a more urgent job arrives. Between lanes the higher always preempts.
    LaneDispatch {
        /// A started job keeps its lane until it ends.
        NonPreemptive = "nonpreemptive",
        /// The lane chooses anew at every release and completion.
        Preemptive = "preemptive",
    }
}

keywords! {
    /// Which laxity orders a laxity lane.
    Laxity {
        /// Deadline minus now minus the whole worst case: a constant order.
        Declared = "declared",
        /// Deadline minus now minus what is left of the worst case.
        Remaining = "remaining",
    }
}

keywords! {
    /// Where jobs that can no longer make their deadline stand in deadline and laxity lanes.
    Late {
        /// Behind all jobs that can still make it, most late first (Kokyu's dynamic queues).
        Last = "last",
        /// Where their key puts them: in front.
        None = "none",
    }
}

keywords! {
    /// What happens at a release while the previous job's first subtask is unfinished.
    Overrun {
        /// The new job waits its turn.
        Queue = "queue",
        /// The new job is not released; it counts as skipped.
        SkipNext = "skip-next",
        /// The unfinished job is told to stop, and its successors are not released.
        Abort = "abort",
        /// Like `queue`, but if the previous job has not begun yet, the new one is merged with it: that one takes what is newest when it begins, and
        /// no more than one waits.
        Merge = "merge",
    }
}

impl Overrun {
    /// Whether instances may be left out, or aborted, for which no other stands.
    pub fn loses(self) -> bool {
        match self {
            Overrun::Queue | Overrun::Merge => false,
            Overrun::SkipNext | Overrun::Abort => true,
        }
    }
}

keywords! {
    /// When a subtask with predecessors is released: the synchronisation protocols of Sun and Liu 1996.
    Synchronisation {
        /// At the completion of its predecessors (direct synchronisation).
        Greedy = "greedy",
        /// At that completion, but no earlier than a period after its previous release (rules 1 and 2).
        ReleaseGuard = "release-guard",
        /// As with guards; at an idle point of a node all its guards are reset (rule 3).
        ReleaseGuardIdle = "release-guard-idle",
        /// As with guards; at an idle point of a node one of the instances that wait is let through.
        ReleaseGuardIdleOne = "release-guard-idle-one",
        /// Strictly periodically, later than its task's arrival by the response bounds of the subtasks before it.
        PhaseModification = "phase-modification",
        /// A response bound after the release of its predecessor.
        ModifiedPhaseModification = "modified-phase-modification",
    }
}

impl Synchronisation {
    /// That of a system that names none.
    pub const DEFAULT: Synchronisation = Synchronisation::Greedy;

    /// Whether a guard holds releases apart.
    pub const fn guards(self) -> bool {
        matches!(
            self,
            Synchronisation::ReleaseGuard
                | Synchronisation::ReleaseGuardIdle
                | Synchronisation::ReleaseGuardIdleOne
        )
    }

    /// Whether idle points of its node reset a guard.
    pub const fn heeds_idle_points(self) -> bool {
        matches!(self, Synchronisation::ReleaseGuardIdle | Synchronisation::ReleaseGuardIdleOne)
    }

    /// Whether it releases subtasks at times that only periodic arrivals allow to know.
    pub const fn needs_periodic_arrivals(self) -> bool {
        matches!(self, Synchronisation::PhaseModification)
    }

    /// Whether releases depend on response bounds of the subtasks before.
    pub const fn needs_bounds(self) -> bool {
        matches!(self, Synchronisation::PhaseModification | Synchronisation::ModifiedPhaseModification)
    }
}

/// How many of its predecessors a subtask waits for; those that complete after its release are late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Join {
    /// All.
    #[default]
    All,
    /// One, whichever completes first.
    First,
    /// This many, from 1 to as many as there are.
    Count(u32),
}

impl Join {
    /// How many of `predecessors` must have completed.
    pub const fn needed(self, predecessors: usize) -> usize {
        match self {
            Join::All => predecessors,
            Join::First if predecessors == 0 => 0,
            Join::First => 1,
            Join::Count(count) => count as usize,
        }
    }

    /// Whether a subtask waits for each of its `predecessors`.
    pub const fn waits_for_all(self, predecessors: usize) -> bool {
        self.needed(predecessors) == predecessors
    }
}

/// As it stands in a file, without quotes.
impl fmt::Display for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Join::All => f.pad("all"),
            Join::First => f.pad("first"),
            Join::Count(count) => count.fmt(f),
        }
    }
}

keywords! {
    /// What a missed deadline means. Results and traces have its number, 0 to 4.
    #[derive(PartialOrd, Ord)]
    #[serde(into = "u8", try_from = "u8")]
    Criticality {
        /// 0: nobody notices a miss.
        VeryLow = "very-low",
        /// 1: soft.
        Low = "low",
        /// 2: soft, the default.
        Medium = "medium",
        /// 3: critical.
        High = "high",
        /// 4: the most critical.
        VeryHigh = "very-high",
    }
}

impl Criticality {
    /// That of a task that states none.
    pub const DEFAULT: Criticality = Criticality::Medium;

    /// The criticality of this number, if it is 0 to 4.
    pub fn from_level(level: u8) -> Option<Self> {
        Self::ALL.get(usize::from(level)).copied()
    }

    /// What to write instead of a word that others use: the files of other tools say `hard` and `soft`.
    pub fn meant_by(word: &str) -> Option<&'static str> {
        match word {
            "hard" | "critical" => Some(
                "a task with a hard deadline has the criticality \"high\" or \"very-high\"; write \"high\"",
            ),
            "soft" => Some(
                "a task with a soft deadline has the criticality \"very-low\", \"low\" or \"medium\"; write \"low\"",
            ),
            _ => None,
        }
    }

    /// Its number, 0 to 4.
    pub const fn level(self) -> u8 {
        self as u8
    }

    /// Whether a miss is a failure of the system (hard) rather than a loss of quality (soft).
    pub const fn is_critical(self) -> bool {
        matches!(self, Criticality::High | Criticality::VeryHigh)
    }
}

impl From<Criticality> for u8 {
    fn from(criticality: Criticality) -> u8 {
        criticality.level()
    }
}

impl TryFrom<u8> for Criticality {
    type Error = UnknownLevel;

    fn try_from(level: u8) -> Result<Self, UnknownLevel> {
        Self::from_level(level).ok_or(UnknownLevel(level))
    }
}

/// A number that is no [`Criticality`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("criticality {0} is above 4")]
pub struct UnknownLevel(pub u8);
