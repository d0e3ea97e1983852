//! Causes: what a stretch of a response time went into.

use crate::occupancy::Interrupt;
use serde::Serialize;
use talea_record::{CostKind, JobId, KernelPolicy};
use talea_time::{Duration, Instant};

/// Why a job was not further at the end of an interval than a response time of nothing would have had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The description asks for this delay between arrival and release.
    Jitter,
    /// The job that releases it, which it has its arrival from, had not done so.
    Releaser,
    /// The release thread was not yet awake although the release was due; without TIMER records, everything up to the
    /// release.
    Timer,
    /// The release thread was awake: it spun, or released others first.
    Releasing,
    /// The completion of `of` was under way to another node.
    Message {
        /// The predecessor.
        of: JobId,
    },
    /// The completion of `of` never came to another node: the message was lost.
    Lost {
        /// The predecessor.
        of: JobId,
    },
    /// The node of `job` had left the run before that completed.
    Left {
        /// The job.
        job: JobId,
    },
    /// Between the completion of a predecessor on the same node and the release.
    Handover,
    /// What was sampled before was all that came out of a chain, until this sample.
    NextSample,
    /// The value was published at the end of the period.
    PeriodEnd,
    /// The value lay there until the job came that used it.
    UntilRead,
    /// The job's guard kept it back, by its task's synchronisation protocol.
    Guard,
    /// A job of the same lane had the lane.
    Peer {
        /// The job.
        job: JobId,
        /// Why it had the lane.
        order: Order,
    },
    /// A job of a higher lane ran.
    Higher {
        /// The job.
        job: JobId,
    },
    /// A job of a lower lane ran: an inversion.
    Lower {
        /// The job.
        job: JobId,
    },
    /// The processor dispatched: a COST record says what it did, or a thread of the run worked between jobs.
    Dispatch {
        /// What it did, if that is recorded.
        kind: Option<CostKind>,
    },
    /// The lane's thread was being woken.
    WakeUp,
    /// No record tells of anybody on the processor.
    Idle,
    /// The events that would tell were not recorded.
    Unrecorded,
    /// The processor was withheld from the job's thread, to which it was granted ([`crate::receipts`]).
    Withheld {
        /// The thread that had it, of whichever program; 0 if nobody.
        thread: u32,
    },
    /// A thread of the run's own process that neither runs jobs nor releases them had the processor, which was not withheld.
    Companion {
        /// Its number.
        thread: u32,
    },
    /// A thread of another program, or of the kernel, had the processor, which was not withheld.
    Program {
        /// Its number.
        thread: u32,
    },
    /// An interrupt handler had the processor.
    Interrupt {
        /// Which.
        interrupt: Interrupt,
    },
    /// A scheduler above had a processor and gave it to who is below this edge, by its index.
    Turn {
        /// The edge.
        edge: usize,
        /// The edge at the end of the way down from there, to a thread or to lanes.
        last: usize,
        /// The job that it was for, if that is known.
        job: Option<JobId>,
    },
    /// The scheduler above this edge wanted no processor for who is below: what it keeps for it was used up.
    UsedUp {
        /// The edge, by its index.
        edge: usize,
    },
    /// The kernel, to which the hierarchy was lowered, had the processor run another thread.
    Kernel {
        /// The operation of that thread; none if nobody had the processor.
        operation: Option<usize>,
        /// What the policies of the two say to that.
        order: KernelOrder,
    },
    /// The processor was left to the kernel in a slice: whoever may take all of one gives the kernel its part so.
    LeftInSlices,
    /// The job itself executed.
    Execution,
    /// Several jobs that had begun shared the processor, and nobody saw which of them ran: this one, another one, or both by
    /// turns.
    Shared,
    /// The job had done its work and waited until a reader of its outputs had room for what it wrote.
    Room {
        /// The reader, by the index of its operation.
        reader: usize,
    },
    /// The job waited until `job` had ended a call, of which there is one at a time: both deliver to the same consumer.
    Serial {
        /// The job that it waited for, if that is known.
        job: Option<JobId>,
    },
    /// A job of a lower lane ran with the priority of one that waited for it to end a call.
    Lent {
        /// The job that ran.
        job: JobId,
    },
    /// The job had begun, its thread slept, and nobody took its place: it waited for something outside.
    Blocked,
    /// Records that would tell were overwritten before they could be read.
    Uncertain,
    /// What would tell is from before the recording.
    Unheard,
    /// The records contradict each other, or end too early.
    Unclear,
    /// So many intervals that they stand in the totals only.
    Condensed,
}

/// Why the kernel had run another thread, by the policies that the two threads have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelOrder {
    /// That one comes before all threads of this one's priority, or class.
    Higher,
    /// Both have one real-time priority: who came first has the processor, until it blocks or its slice is over.
    Equal,
    /// That one comes behind: the kernel had yet to wake this one or to switch to it.
    Lower,
    /// The policies do not say: who of several reservations or ordinary threads runs, and when a reservation is used up, no record tells.
    Untold,
}

impl KernelOrder {
    /// What `other` is to a thread of the policy `own`.
    pub(super) fn of(own: Option<KernelPolicy>, other: Option<KernelPolicy>) -> Self {
        use KernelPolicy::{Deadline, Other, RealTime};
        match (own, other) {
            (Some(RealTime(own)), Some(RealTime(other))) => match other.cmp(&own) {
                std::cmp::Ordering::Greater => KernelOrder::Higher,
                std::cmp::Ordering::Equal => KernelOrder::Equal,
                std::cmp::Ordering::Less => KernelOrder::Lower,
            },
            (Some(RealTime(_) | Other), Some(Deadline)) | (Some(Other), Some(RealTime(_))) => {
                KernelOrder::Higher
            }
            (Some(RealTime(_)), Some(Other)) => KernelOrder::Lower,
            (Some(Deadline), _) | (Some(Other), Some(Other)) | (None, _) | (_, None) => KernelOrder::Untold,
        }
    }
}

/// Why another job had the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Its key is the smaller one, or equal and it came first.
    Ahead,
    /// It had the lane before this job was released and keeps it to its end.
    RunsToCompletion,
    /// Each thread of a preemptive lane had another job, and this one had to wait until one of those had ended.
    NoSlot,
    /// This job was late, and late work goes last.
    LateGoesLast,
    /// Its key is the greater one, and yet it got the lane while this job was released: the lane had not taken this job in,
    /// or orders by what its records do not show.
    Behind,
    /// It is an earlier job of the same thread, which does them one after the other.
    Earlier,
    /// The record of its release is not in the trace.
    Unknown,
}

/// A cause without who is to blame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "they are those of Cause and Order")]
pub enum Kind {
    Jitter,
    Releaser,
    Timer,
    Releasing,
    Message,
    Lost,
    Left,
    Handover,
    NextSample,
    PeriodEnd,
    UntilRead,
    Guard,
    Ahead,
    RunsToCompletion,
    NoSlot,
    LateGoesLast,
    Behind,
    Earlier,
    Peer,
    Higher,
    Lower,
    Switch,
    Queue,
    Release,
    Delivery,
    Dispatch,
    WakeUp,
    Idle,
    Unrecorded,
    Withheld,
    Companion,
    Program,
    Interrupt,
    Turn,
    UsedUp,
    KernelHigher,
    KernelEqual,
    KernelLower,
    KernelUntold,
    LeftInSlices,
    Execution,
    Shared,
    Room,
    Serial,
    Lent,
    Blocked,
    Uncertain,
    Unheard,
    Unclear,
    Condensed,
}

/// Who is to blame for an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Blamed {
    /// Nobody in particular.
    Nobody,
    /// The jobs of the operation of this index.
    Operation(usize),
    /// The thread of this number; 0 is the idle one.
    Thread(u32),
    /// This interrupt.
    Interrupt(Interrupt),
    /// Who is below the edge of this index.
    Edge(usize),
    /// The same, for who is below another edge further down.
    EdgeTo {
        /// Index of the edge.
        edge: usize,
        /// Index of the other one.
        last: usize,
    },
    /// The same, for the jobs of an operation.
    EdgeFor {
        /// Index of the edge.
        edge: usize,
        /// Index of the operation.
        operation: usize,
    },
}

impl Cause {
    /// The cause without who is to blame.
    pub fn kind(self) -> Kind {
        match self {
            Cause::Jitter => Kind::Jitter,
            Cause::Releaser => Kind::Releaser,
            Cause::Timer => Kind::Timer,
            Cause::Releasing => Kind::Releasing,
            Cause::Message { .. } => Kind::Message,
            Cause::Lost { .. } => Kind::Lost,
            Cause::Left { .. } => Kind::Left,
            Cause::Handover => Kind::Handover,
            Cause::NextSample => Kind::NextSample,
            Cause::PeriodEnd => Kind::PeriodEnd,
            Cause::UntilRead => Kind::UntilRead,
            Cause::Guard => Kind::Guard,
            Cause::Peer { order: Order::Ahead, .. } => Kind::Ahead,
            Cause::Peer { order: Order::RunsToCompletion, .. } => Kind::RunsToCompletion,
            Cause::Peer { order: Order::NoSlot, .. } => Kind::NoSlot,
            Cause::Peer { order: Order::LateGoesLast, .. } => Kind::LateGoesLast,
            Cause::Peer { order: Order::Behind, .. } => Kind::Behind,
            Cause::Peer { order: Order::Earlier, .. } => Kind::Earlier,
            Cause::Peer { order: Order::Unknown, .. } => Kind::Peer,
            Cause::Higher { .. } => Kind::Higher,
            Cause::Lower { .. } => Kind::Lower,
            Cause::Dispatch { kind: Some(CostKind::Switch) } => Kind::Switch,
            Cause::Dispatch { kind: Some(CostKind::Queue) } => Kind::Queue,
            Cause::Dispatch { kind: Some(CostKind::Release) } => Kind::Release,
            Cause::Dispatch { kind: Some(CostKind::Delivery) } => Kind::Delivery,
            Cause::Dispatch { kind: None } => Kind::Dispatch,
            Cause::WakeUp => Kind::WakeUp,
            Cause::Idle => Kind::Idle,
            Cause::Unrecorded => Kind::Unrecorded,
            Cause::Withheld { .. } => Kind::Withheld,
            Cause::Companion { .. } => Kind::Companion,
            Cause::Program { .. } => Kind::Program,
            Cause::Interrupt { .. } => Kind::Interrupt,
            Cause::Turn { .. } => Kind::Turn,
            Cause::UsedUp { .. } => Kind::UsedUp,
            Cause::Kernel { order: KernelOrder::Higher, .. } => Kind::KernelHigher,
            Cause::Kernel { order: KernelOrder::Equal, .. } => Kind::KernelEqual,
            Cause::Kernel { order: KernelOrder::Lower, .. } => Kind::KernelLower,
            Cause::Kernel { order: KernelOrder::Untold, .. } => Kind::KernelUntold,
            Cause::LeftInSlices => Kind::LeftInSlices,
            Cause::Execution => Kind::Execution,
            Cause::Shared => Kind::Shared,
            Cause::Room { .. } => Kind::Room,
            Cause::Serial { .. } => Kind::Serial,
            Cause::Lent { .. } => Kind::Lent,
            Cause::Blocked => Kind::Blocked,
            Cause::Uncertain => Kind::Uncertain,
            Cause::Unheard => Kind::Unheard,
            Cause::Unclear => Kind::Unclear,
            Cause::Condensed => Kind::Condensed,
        }
    }

    /// The job that is to blame, if it is one.
    pub fn job(self) -> Option<JobId> {
        match self {
            Cause::Message { of: job }
            | Cause::Lost { of: job }
            | Cause::Left { job }
            | Cause::Peer { job, .. }
            | Cause::Higher { job }
            | Cause::Lower { job }
            | Cause::Lent { job } => Some(job),
            Cause::Serial { job } => job,
            _ => None,
        }
    }

    /// Who is to blame.
    pub fn blamed(self) -> Blamed {
        match self {
            Cause::Companion { thread } | Cause::Program { thread } | Cause::Withheld { thread } => {
                Blamed::Thread(thread)
            }
            Cause::Interrupt { interrupt } => Blamed::Interrupt(interrupt),
            Cause::Turn { edge, job: Some(job), .. } => {
                Blamed::EdgeFor { edge, operation: job.operation.index() }
            }
            Cause::Turn { edge, last, job: None } if edge != last => Blamed::EdgeTo { edge, last },
            Cause::Turn { edge, .. } | Cause::UsedUp { edge } => Blamed::Edge(edge),
            Cause::Room { reader } | Cause::Kernel { operation: Some(reader), .. } => {
                Blamed::Operation(reader)
            }
            _ => self.job().map_or(Blamed::Nobody, |job| Blamed::Operation(job.operation.index())),
        }
    }
}

impl Kind {
    /// What happened, in a few words that a name can follow.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Jitter => "release jitter",
            Kind::Releaser => "until the jobs ahead had released it",
            Kind::Timer => "late wake-up of the release thread",
            Kind::Releasing => "release thread spinning or busy",
            Kind::Message => "message from",
            Kind::Lost => "lost message from",
            Kind::Left => "node left, with the job of",
            Kind::Handover => "hand-over from the predecessor",
            Kind::NextSample => "until the next sample that came through",
            Kind::PeriodEnd => "until the end of the period, at which values are published",
            Kind::UntilRead => "until the job that used the value",
            Kind::Guard => "held by its guard",
            Kind::Ahead => "same lane, ahead by key:",
            Kind::RunsToCompletion => "same lane, not preemptible:",
            Kind::NoSlot => "same lane, which had no free thread:",
            Kind::LateGoesLast => "same lane, late work goes last:",
            Kind::Behind => "same lane, behind by key:",
            Kind::Earlier => "the thread's earlier job:",
            Kind::Peer => "same lane:",
            Kind::Higher => "higher lane:",
            Kind::Lower => "lower lane, an inversion:",
            Kind::Switch => "dispatching: switch",
            Kind::Queue => "dispatching: queue",
            Kind::Release => "dispatching: release",
            Kind::Delivery => "dispatching: delivery",
            Kind::Dispatch => "dispatching, not broken down",
            Kind::WakeUp => "wake-up of the lane's thread",
            Kind::Idle => "ready, processor idle",
            Kind::Unrecorded => "not recorded",
            Kind::Withheld => "the processor withheld by the kernel, had by",
            Kind::Companion => "the program's other thread:",
            Kind::Program => "other program:",
            Kind::Interrupt => "interrupt:",
            Kind::Turn => "the turn of",
            Kind::UsedUp => "time beyond what is kept for",
            Kind::KernelHigher => "higher priority of the kernel:",
            Kind::KernelEqual => "same priority of the kernel, whose turn it was:",
            Kind::KernelLower => "lower priority of the kernel, not yet switched:",
            Kind::KernelUntold => "the kernel's choice, untold:",
            Kind::LeftInSlices => "left to the kernel in slices",
            Kind::Execution => "own execution",
            Kind::Shared => "shared unseen by several begun jobs",
            Kind::Room => "waiting for room in an input of",
            Kind::Serial => "blocked by a delivery to the same consumer:",
            Kind::Lent => "lower lane, with the priority of who waits for its delivery:",
            Kind::Blocked => "blocked by itself",
            Kind::Uncertain => "uncertain, records were lost",
            Kind::Unheard => "unknown, from before the recording",
            Kind::Unclear => "unclear, the records do not say",
            Kind::Condensed => "many short intervals, in the totals only",
        }
    }

    /// Whether nobody knows what the time went into, for want of records that there were.
    pub(super) fn is_uncertain(self) -> bool {
        matches!(self, Kind::Uncertain | Kind::Unheard | Kind::Unclear)
    }

    /// Whether nobody knows what the time went into, for want of events that were not recorded.
    pub(super) fn is_unrecorded(self) -> bool {
        matches!(self, Kind::Unrecorded | Kind::Shared)
    }

    /// Whether the time was the job's own.
    pub fn is_own(self) -> bool {
        matches!(self, Kind::Execution | Kind::Blocked)
    }
}

/// How far a job was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Not yet released.
    Coming,
    /// Released, not yet begun.
    Waiting,
    /// Begun: what is not its own execution is preemption.
    Begun,
}

/// A stretch of the response time with one cause. Longer than nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it begins.
    pub from: Instant,
    /// When it ends.
    pub to: Instant,
    /// Index of the hop it belongs to.
    pub hop: usize,
    /// How far the hop's job was.
    pub stage: Stage,
    /// What it went into.
    pub cause: Cause,
}

impl Interval {
    /// Its length.
    pub fn length(&self) -> Duration {
        length(self.from, self.to)
    }
}

/// `to - from`; records of damaged files may be centuries apart.
pub(crate) fn length(from: Instant, to: Instant) -> Duration {
    Duration::from_nanos(to.as_nanos().saturating_sub(from.as_nanos()))
}
