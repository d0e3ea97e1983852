//! The lists of values that fields of builtin events have.

use super::declare::codes;
use super::field::Coded;
use serde::{Deserialize, Serialize};
use talea_event::{EventLoss, Outcome};
use talea_policy::arrangement;

codes! {
    /// How a run ended.
    RunOutcome "run_end" {
        /// At its planned end, or where somebody stopped it: it says so itself.
        Over = 0 "over",
        /// Its process was gone and had not ended it. A recorder says so, of an instant when the process was there or had just
        /// been.
        CutOff = 1 "cut-off",
    }
    /// Why an instance was skipped.
    SkipReason "skip_reason" {
        /// The overrun policy is `skip-next` and the previous job was unfinished.
        Overrun = 1 "overrun",
        /// More instances in flight than the bounded tables hold.
        Full = 2 "full",
        /// It came earlier than is declared of what releases its task, and such instances are dropped.
        Early = 3 "early",
        /// The event that it was for has expired while it waited for its guard.
        Expired = 4 "expired",
        /// The overrun policy is `merge` and the previous job had not begun: that one stands for both.
        Merged = 5 "merged",
    }
    /// Why word of a completed job does not reach another node.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    LossReason "loss_reason" {
        /// A link lost it on the way, as it may.
        Link = 0 "link",
        /// The way was full: the node does not keep up with its messages.
        Full = 1 "full",
        /// The node had left the run.
        Left = 2 "left",
        /// There was no way to the node.
        Absent = 3 "absent",
        /// It is longer than a message may be.
        TooLong = 4 "too-long",
        /// The node had no room to hold it until it was due.
        NoRoom = 5 "no-room",
    }
    /// Why records are lost.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    LossCause "loss_cause" {
        /// They were overwritten, or the kernel's buffer was full, before anybody came to read them.
        Overwritten = 0 "overwritten",
        /// The recorder had no memory left to keep what it had not settled.
        RecorderFull = 1 "recorder-full",
        /// The threads that wrote them had no ring.
        NoRing = 2 "no-ring",
        /// The log was damaged.
        Damaged = 3 "damaged",
    }
    /// Why a value that was to be kept is not.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    ValueLoss "value_loss" {
        /// There was no room for it: values came faster than they are kept.
        NoRoom = 1 "no-room",
        /// It is longer than values that are kept may be.
        TooLong = 2 "too-long",
        /// The code that makes bytes of it panicked.
        Failed = 3 "failed",
    }
    /// Why a value does not reach a reader.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    DropReason "drop_reason" {
        /// There was no room for it.
        NoRoom = 0 "no-room",
        /// A link lost it on the way, as it may.
        Link = 1 "link",
    }
    /// Why events are not delivered.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    EventLossReason "event_loss" {
        /// As many waited for the task as may, and they went by the discard policy.
        Discarded = 1 "discarded",
        /// They were not worth being delivered any more.
        Expired = 2 "expired",
    }
    /// What a job asks that it is not handed, and what of its own answers is recorded.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    Question "question" {
        /// What time it is.
        Time = 1 "time",
        /// Whether it is to stop; only the first yes is recorded.
        Stop = 2 "stop",
        /// When it was released, if a guard held it beyond its nominal release.
        Release = 3 "release",
        /// From when on the newest value of an input was visible to it, if it came from another node.
        Visible = 4 "visible",
        /// What the code of a consumer said of what it was handed in a call, as [`CallOutcome`].
        Outcome = 5 "outcome",
        /// How long a job executes at most that the job wanted to post last, and that was refused.
        RefusedWcet = 6 "refused_wcet",
    }
    /// What the code of a consumer said of what it was handed. A panic is a failure.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    CallOutcome "call_outcome" {
        /// It has it.
        Ok = 0 "ok",
        /// It is to have it again, later.
        Retry = 1 "retry",
        /// It can make nothing of it.
        Discard = 2 "discard",
        /// It has failed, and is disconnected.
        Fail = 3 "fail",
    }
    /// What came of a job that was to be posted.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    PostOutcome "post_outcome" {
        /// It was released.
        Posted = 0 "posted",
        /// As many jobs of the operation as there is room for were unfinished.
        Full = 1 "full",
        /// The run was over.
        NotRunning = 2 "not-running",
    }
    /// What dispatching costs time for.
    #[derive(Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    CostKind "cost_kind" {
        /// Changing from one job to another.
        Switch = 1 "switch",
        /// Putting jobs into a lane's order and choosing the first.
        Queue = 2 "queue",
        /// Waking up in time and releasing what is due.
        Release = 3 "release",
        /// Handing a completion to another node, or taking it, and pushing events.
        Delivery = 4 "delivery",
    }
    /// What a thread of a run is for.
    ThreadRole "thread_role" {
        /// It runs the jobs of a lane.
        Lane = 1 "lane",
        /// It releases jobs by the clock.
        Release = 2 "release",
        /// It takes messages from other nodes.
        Receiver = 3 "receiver",
        /// It is a thread of the program, and does none of these.
        Program = 4 "program",
        /// It is of a process that serves the recorded program and is no part of its system, such as the one that starts those
        /// of several nodes.
        Companion = 5 "companion",
    }
    /// Where a wake-up came from.
    WakeContext "wake_context" {
        /// The waking thread itself.
        Thread = 1 "thread",
        /// A soft interrupt; the waking thread is the one it interrupted or that serves it.
        SoftInterrupt = 2 "soft-interrupt",
        /// An interrupt, such as that of a timer; the waking thread is the one it interrupted.
        Interrupt = 3 "interrupt",
    }
    /// What an interrupt's number counts.
    #[derive(Hash, PartialOrd, Ord)]
    InterruptKind "interrupt_kind" {
        /// The kernel's interrupt lines, as in /proc/interrupts.
        Device = 1 "device",
        /// The kernel's soft interrupts, in the order of /proc/softirqs from 0 on.
        Soft = 2 "soft",
        /// The vectors of an x86 processor's own controller: timer, rescheduling, calls between processors.
        Local = 3 "local",
    }
    /// How a guarantee was broken.
    ViolationSide "violation_side" {
        /// Less was granted than promised.
        Least = 1 "least",
        /// More was granted than promised.
        Most = 2 "most",
        /// As much was granted and less received, for the kernel withheld it.
        Withheld = 3 "withheld",
        /// No more was granted than promised and more received, for the thread ran where or when nobody let it.
        Exceeded = 4 "exceeded",
        /// The same, for the kernel kept whoever was to hold the thread from it.
        HeldLate = 5 "held-late",
    }
    /// What set off a decision of a hierarchy of schedulers.
    #[derive(Hash, PartialOrd, Ord)]
    Trigger "trigger" {
        /// A thread wanted a processor, or none any more.
        Thread = 1 "thread",
        /// A thread went on to another job.
        Job = 2 "job",
        /// A scheduler's time had come: the end of a budget, quantum, slot or period.
        Timer = 3 "timer",
        /// Schedulers were asked again when all that happened at the instant was known.
        SchedulingPoint = 4 "scheduling-point",
        /// The hierarchy was changed.
        Change = 5 "change",
        /// It was so when the run began.
        Beginning = 6 "beginning",
        /// The processor was left to ordinary threads for a moment, before the kernel would take it for longer, or was had again.
        Supply = 7 "supply",
    }
    /// What became of an edge of a hierarchy.
    ChangeKind "change_kind" {
        /// It is part of the hierarchy from now on.
        Added = 1 "added",
        /// It is no longer.
        Removed = 2 "removed",
        /// It stays and is promised the same, but what is asked above it or a scheduler at one of its ends is another.
        Altered = 3 "altered",
    }
    /// Who changes a hierarchy.
    #[derive(Hash, PartialOrd, Ord)]
    ChangeAuthor "change_author" {
        /// It was not recorded.
        Unknown = 0 "unknown",
        /// The run itself, which does what its description says.
        Run = 1 "run",
        /// The program that runs the hierarchy, by a call.
        Program = 2 "program",
        /// Who asks from outside, through the control socket.
        Operator = 3 "operator",
        /// The thread or program that is scheduled.
        Member = 4 "member",
    }
    /// What a hierarchy is changed for.
    #[derive(Hash, PartialOrd, Ord)]
    ChangeReason "change_reason" {
        /// It was not recorded.
        Unknown = 0 "unknown",
        /// The description says so, from the beginning.
        Described = 1 "described",
        /// A thread was added.
        ThreadAdded = 2 "thread-added",
        /// A thread was removed.
        ThreadRemoved = 3 "thread-removed",
        /// A scheduler was added.
        SchedulerAdded = 4 "scheduler-added",
        /// A scheduler was removed.
        SchedulerRemoved = 5 "scheduler-removed",
        /// A scheduler was replaced by another one.
        SchedulerReplaced = 6 "scheduler-replaced",
        /// A thread or scheduler got other parents.
        Moved = 7 "moved",
        /// A thread or scheduler asks for something else.
        RequestChanged = 8 "request-changed",
        /// A thread or scheduler begins a reservation.
        Reserved = 9 "reserved",
        /// It ends its reservation and goes back to where it was.
        ReservationEnded = 10 "reservation-ended",
        /// What was scheduled has ended.
        Ended = 11 "ended",
        /// What was to be scheduled could not be taken in, and the room that was made for it is given up.
        NotAdmitted = 12 "not-admitted",
    }
    /// What a thread is to a hierarchy of schedulers.
    MemberRole "member_role" {
        /// It is scheduled.
        Scheduled = 1 "scheduled",
        /// It has a processor where who is granted it does not want it.
        Sentinel = 2 "sentinel",
        /// It preempts everybody for a moment, to decide.
        Infrastructure = 3 "infrastructure",
    }
}

impl Codes {
    /// The name of `value`, if the list has it.
    pub fn label(self, value: u64) -> Option<&'static str> {
        self.entries().iter().find(|(code, _)| u64::from(*code) == value).map(|(_, name)| *name)
    }
}

impl CostKind {
    /// Its place in [`Self::ALL`].
    pub fn place(self) -> usize {
        self as usize - 1
    }
}

impl ThreadRole {
    /// Whether the thread is one of the system that is described.
    pub fn is_of_system(self) -> bool {
        matches!(self, ThreadRole::Lane | ThreadRole::Release | ThreadRole::Receiver)
    }
}

impl From<EventLoss> for EventLossReason {
    fn from(loss: EventLoss) -> Self {
        match loss {
            EventLoss::Discarded => EventLossReason::Discarded,
            EventLoss::Expired => EventLossReason::Expired,
        }
    }
}

impl CallOutcome {
    /// What it is called.
    pub fn name(self) -> &'static str {
        Self::CODES.label(self.code().into()).expect("each code has a name")
    }
}

impl From<Outcome> for CallOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => CallOutcome::Ok,
            Outcome::Retry => CallOutcome::Retry,
            Outcome::Discard => CallOutcome::Discard,
            Outcome::Fail => CallOutcome::Fail,
        }
    }
}

impl From<arrangement::ChangeAuthor> for ChangeAuthor {
    fn from(author: arrangement::ChangeAuthor) -> Self {
        match author {
            arrangement::ChangeAuthor::Run => ChangeAuthor::Run,
            arrangement::ChangeAuthor::Program => ChangeAuthor::Program,
            arrangement::ChangeAuthor::Operator { .. } => ChangeAuthor::Operator,
            arrangement::ChangeAuthor::Member => ChangeAuthor::Member,
        }
    }
}

impl From<arrangement::ChangeReason> for ChangeReason {
    fn from(reason: arrangement::ChangeReason) -> Self {
        match reason {
            arrangement::ChangeReason::Described => ChangeReason::Described,
            arrangement::ChangeReason::ThreadAdded => ChangeReason::ThreadAdded,
            arrangement::ChangeReason::ThreadRemoved => ChangeReason::ThreadRemoved,
            arrangement::ChangeReason::SchedulerAdded => ChangeReason::SchedulerAdded,
            arrangement::ChangeReason::SchedulerRemoved => ChangeReason::SchedulerRemoved,
            arrangement::ChangeReason::SchedulerReplaced => ChangeReason::SchedulerReplaced,
            arrangement::ChangeReason::Moved => ChangeReason::Moved,
            arrangement::ChangeReason::RequestChanged => ChangeReason::RequestChanged,
            arrangement::ChangeReason::Reserved => ChangeReason::Reserved,
            arrangement::ChangeReason::ReservationEnded => ChangeReason::ReservationEnded,
            arrangement::ChangeReason::Ended => ChangeReason::Ended,
            arrangement::ChangeReason::NotAdmitted => ChangeReason::NotAdmitted,
        }
    }
}

impl SkipReason {
    /// The reason as a clause.
    pub fn in_words(self) -> &'static str {
        match self {
            SkipReason::Overrun => "the job before is unfinished",
            SkipReason::Full => "too many instances in flight",
            SkipReason::Early => "it came too early",
            SkipReason::Expired => "its event has expired",
            SkipReason::Merged => "one before it has not begun and stands for both",
        }
    }
}
