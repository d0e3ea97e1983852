//! The record: 40 bytes, the same from the simulator and from real threads.

use crate::namespace::builtin;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use talea_guarantee::monitor::{Bound, Violation};
use talea_model::OperationId;
use talea_time::{Duration, Instant};

/// Five 64-bit words that say what happened, when, to whom and where.
///
/// Layout in a ring or file, little-endian: `time`, `causal`, `words[0]`, `words[1]`, then one word of
/// `event`, `source`, `cpu`, `arg` with 16 bits each, `event` lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, in nanoseconds on the run's clock (CLOCK_MONOTONIC of the machine, or virtual time).
    pub time: Instant,
    /// What it is about and where it comes from: for job events a packed [`JobId`].
    pub causal: u64,
    /// Two words whose meaning the event defines.
    pub words: [u64; 2],
    /// What happened.
    pub event: Event,
    /// Lane (index into [`crate::Metadata::lanes`]) for job events; otherwise the event defines it.
    pub source: u16,
    /// Processor it happened on, by its Linux number, or [`Record::NO_CPU`].
    pub cpu: u16,
    /// A small number whose meaning the event defines.
    pub arg: u16,
}

impl Record {
    /// Bytes per record.
    pub const BYTES: usize = 40;
    /// 64-bit words per record.
    pub const WORDS: usize = 5;
    /// The event did not happen on a particular processor.
    pub const NO_CPU: u16 = u16::MAX;
    /// The event is not about a particular lane.
    pub const NO_LANE: u16 = u16::MAX;
    /// The source of what the kernel tells; no ring has this number.
    pub const KERNEL: u16 = u16::MAX;
    /// `source` of what was lost from a log because it was damaged.
    pub const DAMAGED: u16 = u16::MAX - 1;
    /// A thread, and a process, that is not observed or not known.
    pub const UNSEEN_THREAD: u32 = u32::MAX;

    /// The record as words, for a ring or a file.
    pub fn to_words(self) -> [u64; Self::WORDS] {
        let small = u64::from(self.event.0)
            | u64::from(self.source) << 16
            | u64::from(self.cpu) << 32
            | u64::from(self.arg) << 48;
        [self.time.as_nanos() as u64, self.causal, self.words[0], self.words[1], small]
    }

    /// The record that [`Self::to_words`] gave.
    pub fn from_words(words: [u64; Self::WORDS]) -> Self {
        Record {
            time: Instant::from_nanos(words[0] as i64),
            causal: words[1],
            words: [words[2], words[3]],
            event: Event(words[4] as u16),
            source: (words[4] >> 16) as u16,
            cpu: (words[4] >> 32) as u16,
            arg: (words[4] >> 48) as u16,
        }
    }

    /// Index of the operation and number of the instance that a job event is about, as [`Self::job`].
    #[inline]
    pub(crate) fn job_numbers(&self) -> (usize, u64) {
        JobId::numbers(self.causal)
    }

    /// A promise to the edge of this number was found broken at `time`.
    pub fn violation(time: Instant, edge: usize, violation: &Violation) -> Self {
        Record {
            time,
            causal: violation.amount().as_nanos() as u64,
            words: [violation.from.as_nanos() as u64, violation.to.as_nanos() as u64],
            event: Event::VIOLATION,
            source: u16::try_from(edge).unwrap_or(u16::MAX),
            cpu: Record::NO_CPU,
            arg: match violation.bound {
                Bound::Least => 1,
                Bound::Most => 2,
            },
        }
    }

    /// A promise to the edge of this number was granted and found not to have been received at `time`, for the kernel withheld it.
    pub fn withheld(time: Instant, edge: usize, violation: &Violation) -> Self {
        Record { arg: 3, ..Record::violation(time, edge, violation) }
    }

    /// The deadline of the job, where the event tells of it (RELEASE, COMPLETE, SKIP and ABORT do); `None` of a job that has
    /// none.
    ///
    /// What always wants a processor is written as one job of more than two centuries with as much time; descriptions are
    /// limited to ten years, so a deadline more than a century after the nominal release is none.
    pub fn deadline(&self) -> Option<Instant> {
        const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);
        let [nominal, deadline] = self.words.map(|word| word as i64);
        let tells = matches!(self.event, Event::RELEASE | Event::COMPLETE | Event::SKIP | Event::ABORT);
        let is_one = deadline.saturating_sub(nominal) <= NEVER.as_nanos();
        (tells && is_one).then_some(Instant::from_nanos(deadline))
    }

    /// The job a job event is about.
    pub fn job(&self) -> JobId {
        JobId::unpack(self.causal)
    }
}

/// What happened: a family in the high byte, an event of it in the low byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event(pub u16);

impl Event {
    /// A run began at `time`. `words[0]`: its planned end, or 0 for none. `source`: node index.
    pub const RUN_START: Event = Event(0x0001);
    /// A run ended at `time`; nothing after this instant counts. `source`: node index; `arg`: a [`RunEnd`].
    pub const RUN_END: Event = Event(0x0002);
    /// `words[0]` records before this one were overwritten or never written and are lost. `words[1]`: the instant of
    /// the last record of the same ring that was not, or 0 if there is none or it is unknown; `source`: the ring they
    /// were lost from, by its number in its file, [`Record::KERNEL`] for events of the kernel on `cpu`, or [`Record::DAMAGED`] for
    /// records of a log that were damaged.
    pub const LOST: Event = Event(0x0003);
    /// A thread of the run is at work. `words[0]`: thread number, process number from bit 32 on; `words[1]`: node
    /// index; `source`: its lane, or [`Record::NO_LANE`]; `arg`: a [`ThreadRole`].
    pub const THREAD: Event = Event(0x0004);

    /// A job was released. `words[0]`: its nominal release (a first subtask's arrival `phase + k * period`,
    /// a successor's actual release); `words[1]`: absolute end-to-end deadline.
    pub const RELEASE: Event = Event(0x0101);
    /// A job began to execute. `arg`: jobs in its lane at that instant including itself, saturating.
    pub const START: Event = Event(0x0102);
    /// A running job lost its processor to `words[0]` (a packed [`JobId`], or `u64::MAX` if unknown).
    pub const PREEMPT: Event = Event(0x0103);
    /// A preempted job got a processor again.
    pub const RESUME: Event = Event(0x0104);
    /// A job completed. Words as in [`Event::RELEASE`].
    pub const COMPLETE: Event = Event(0x0105);
    /// A job of a first subtask was not released: its whole instance is skipped. Words as in
    /// [`Event::RELEASE`]; `arg`: a [`SkipReason`].
    pub const SKIP: Event = Event(0x0106);
    /// A job was aborted; its instance never completes, and what depends on the job is not released. Words as
    /// in [`Event::RELEASE`]; `arg`: 1 if it had been running on `cpu` at that instant, else 0.
    pub const ABORT: Event = Event(0x0107);

    /// A processor spent the `words[0]` nanoseconds up to `time` on dispatching; what jobs executed meanwhile, having
    /// preempted it, is theirs. `arg`: a [`CostKind`]; `words[1]`: how many jobs it was for, the node's index from bit
    /// 32 on; `source`: the lane, or [`Record::NO_LANE`].
    pub const COST: Event = Event(0x0201);
    /// A lane's thread runs again after it slept. `source`: the lane.
    pub const WAKE: Event = Event(0x0202);
    /// A lane has nothing to do and its thread goes to sleep. `source`: the lane.
    pub const SLEEP: Event = Event(0x0203);
    /// The release thread is about to release what was due at the instant `words[0]`; the kernel woke it at
    /// `words[1]`, from where on it spun. `source`: node index.
    pub const TIMER: Event = Event(0x0204);
    /// The completed job `causal` is told to operation `words[0]` on another node. `source`: the job's lane.
    pub const SEND: Event = Event(0x0205);
    /// Word came from another node that a predecessor of job `causal` has completed, sent at the instant `words[0]`, or
    /// 0 if that is unknown. `source`: the job's lane.
    pub const RECEIVE: Event = Event(0x0206);

    /// A processor went from one thread to another: `words[0]` has their thread numbers, `words[1]` their process
    /// numbers, the first's in the low half; 0 is the idle thread and [`Record::UNSEEN_THREAD`] one that is not observed.
    /// `arg`: 1 if the first could have gone on.
    pub const SWITCH: Event = Event(0x0301);
    /// A thread was made ready. `words[0]`: its number, the waker's from bit 32 on; `words[1]`: the processor it will
    /// run on, its kernel priority from bit 32 on (99 less its real-time priority, 100 to 139 for ordinary threads, -1
    /// for deadline threads). `arg`: a [`WakeContext`].
    pub const WAKEUP: Event = Event(0x0302);
    /// An interrupt handler began. `words[0]`: the interrupt's number; `arg`: an [`InterruptKind`].
    pub const IRQ_ENTER: Event = Event(0x0303);
    /// An interrupt handler ended. Words as in [`Event::IRQ_ENTER`].
    pub const IRQ_EXIT: Event = Event(0x0304);
    /// A thread entered a system call. `words[0]`: the call's number; `words[1]`: the thread's.
    pub const SYSCALL_ENTER: Event = Event(0x0305);
    /// A thread left a system call. `words[0]`: its result; `words[1]`: the thread's number, the call's from bit 32 on.
    pub const SYSCALL_EXIT: Event = Event(0x0306);
    /// A thread's name: up to 16 bytes in both words. `causal`: its number, its process's from bit 32 on.
    pub const THREAD_NAME: Event = Event(0x0307);
    /// A thread ended. `words[0]`: its number, its process's from bit 32 on.
    pub const THREAD_EXIT: Event = Event(0x0308);

    /// A guarantee was broken in the window from `words[0]` to `words[1]`, by the nanoseconds in `causal`. `source`: the
    /// edge (index into [`crate::Metadata::edges`]); `arg`: 1 if less was granted than promised, 2 if more,
    /// 3 if as much was granted and less received, for the kernel withheld it.
    pub const VIOLATION: Event = Event(0x0401);

    /// The family of all events about jobs.
    pub(crate) const JOB_FAMILY: u8 = 0x01;

    /// The number of its family.
    pub fn family(self) -> u8 {
        self.0.to_be_bytes()[0]
    }

    /// Whether the event is about a job: its causal id is a job and its source a lane.
    pub fn is_job(self) -> bool {
        (Event::RELEASE.0..=Event::ABORT.0).contains(&self.0)
    }

    /// The name of a builtin event, for listings; `None` for events of other families.
    pub fn name(self) -> Option<&'static str> {
        let [family, number] = self.0.to_be_bytes();
        let family = builtin::ALL.get(usize::from(family))?;
        family.events.iter().find(|entry| entry.number == number).map(|entry| match &entry.name {
            Cow::Borrowed(name) => *name,
            Cow::Owned(_) => unreachable!("builtin names are borrowed"),
        })
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum RunEnd {
    /// At its planned end, or where somebody stopped it: it says so itself.
    Over = 0,
    /// Its process was gone and had not ended it. A recorder says so, of an instant when the process was there or had just
    /// been.
    CutOff = 1,
}

/// Why an instance was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum SkipReason {
    /// The overrun policy is `skip-next` and the previous job was unfinished.
    Overrun = 1,
    /// More instances in flight than the bounded tables hold.
    Full = 2,
}

impl SkipReason {
    /// The reason that a record's `arg` says.
    pub fn from_arg(arg: u16) -> Option<Self> {
        [SkipReason::Overrun, SkipReason::Full].into_iter().find(|reason| *reason as u16 == arg)
    }
}

/// What a thread of a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum ThreadRole {
    /// It runs the jobs of a lane.
    Lane = 1,
    /// It releases jobs by the clock.
    Release = 2,
    /// It takes messages from other nodes.
    Receiver = 3,
    /// It is a thread of the program, and does none of these.
    Program = 4,
    /// It is of a process that serves the recorded program and is no part of its system, such as the one that starts those of
    /// several nodes.
    Companion = 5,
}

impl ThreadRole {
    /// Whether the `arg` of a THREAD record says that the thread is one of the system that is described.
    pub fn is_of_system(arg: u16) -> bool {
        (ThreadRole::Lane as u16..=ThreadRole::Receiver as u16).contains(&arg)
    }
}

/// Where a wake-up came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum WakeContext {
    /// The waking thread itself.
    Thread = 1,
    /// A soft interrupt; the waking thread is the one it interrupted or that serves it.
    SoftInterrupt = 2,
    /// An interrupt, such as that of a timer; the waking thread is the one it interrupted.
    Interrupt = 3,
}

/// What an interrupt's number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum InterruptKind {
    /// The kernel's interrupt lines, as in /proc/interrupts.
    Device = 1,
    /// The kernel's soft interrupts, in the order of /proc/softirqs from 0 on.
    Soft = 2,
    /// The vectors of an x86 processor's own controller: timer, rescheduling, calls between processors.
    Local = 3,
}

/// What dispatching costs time for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u16)]
pub enum CostKind {
    /// Changing from one job to another.
    Switch = 1,
    /// Putting jobs into a lane's order and choosing the first.
    Queue = 2,
    /// Waking up in time and releasing what is due.
    Release = 3,
    /// Handing a completion to another node, or taking it.
    Delivery = 4,
}

impl CostKind {
    /// Every kind.
    pub const ALL: [CostKind; 4] = [CostKind::Switch, CostKind::Queue, CostKind::Release, CostKind::Delivery];

    /// The kind that a record's `arg` says.
    pub fn from_arg(arg: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u16 == arg)
    }

    /// Its place in [`Self::ALL`].
    pub(crate) fn place(self) -> usize {
        self as usize - 1
    }
}

/// One job of one operation, as one word: operation in the high 20 bits, instance in the low 44.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId {
    /// The operation.
    pub operation: OperationId,
    /// The number of the task's instance, from 0; skipped instances are counted.
    pub instance: u64,
}

impl JobId {
    const INSTANCE_BITS: u32 = 44;

    /// The job as one word.
    pub fn pack(self) -> u64 {
        (self.operation.index() as u64) << Self::INSTANCE_BITS
            | (self.instance & ((1 << Self::INSTANCE_BITS) - 1))
    }

    /// The job that [`Self::pack`] gave.
    pub fn unpack(word: u64) -> Self {
        let (operation, instance) = Self::numbers(word);
        JobId { operation: OperationId::from_index(operation), instance }
    }

    /// Index of the operation and number of the instance in a packed job.
    #[inline]
    pub(crate) fn numbers(word: u64) -> (usize, u64) {
        ((word >> Self::INSTANCE_BITS) as usize, word & ((1 << Self::INSTANCE_BITS) - 1))
    }
}
