//! The record: 40 bytes, the same from the simulator and from real threads.

use talea_model::OperationId;
use talea_time::Instant;

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
    /// Lane (index into [`crate::Metadata::lanes`]) for job events; of events of a program's own families the thread that wrote it,
    /// as the THREAD record before it numbers it, or [`Record::NO_WRITER`]; otherwise the event defines it.
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
    /// The thread that wrote it is not known.
    pub const NO_WRITER: u16 = u16::MAX;
    /// No edge of a hierarchy.
    pub const NO_EDGE: u32 = u32::MAX;
    /// The source of what the kernel tells; no ring has this number.
    pub const KERNEL: u16 = u16::MAX;
    /// `source` of what was lost from a log because it was damaged.
    pub const DAMAGED: u16 = u16::MAX - 1;
    /// `source` of what threads wrote that had no ring.
    pub const NO_RING: u16 = u16::MAX - 2;
    /// A thread, and a process, that is not observed or not known.
    pub const UNSEEN_THREAD: u32 = u32::MAX;

    /// The record as words, for a ring or a file.
    #[inline]
    pub fn to_words(self) -> [u64; Self::WORDS] {
        let small = u64::from(self.event.0)
            | u64::from(self.source) << 16
            | u64::from(self.cpu) << 32
            | u64::from(self.arg) << 48;
        [self.time.as_nanos() as u64, self.causal, self.words[0], self.words[1], small]
    }

    /// The record that [`Self::to_words`] gave.
    #[inline]
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
    pub fn job_numbers(&self) -> (usize, u64) {
        JobId::numbers(self.causal)
    }

    /// The job a job event is about.
    #[inline]
    pub fn job(&self) -> JobId {
        JobId::unpack(self.causal)
    }
}

/// What happened: a family in the high byte, an event of it in the low byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event(pub u16);

impl Event {
    /// The number of its family.
    #[inline]
    pub fn family(self) -> u8 {
        self.0.to_be_bytes()[0]
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
    #[inline]
    pub fn pack(self) -> u64 {
        (self.operation.index() as u64) << Self::INSTANCE_BITS
            | (self.instance & ((1 << Self::INSTANCE_BITS) - 1))
    }

    /// The job that [`Self::pack`] gave.
    #[inline]
    pub fn unpack(word: u64) -> Self {
        let (operation, instance) = Self::numbers(word);
        JobId { operation: OperationId::from_index(operation), instance }
    }

    /// Index of the operation and number of the instance in a packed job.
    #[inline]
    pub fn numbers(word: u64) -> (usize, u64) {
        ((word >> Self::INSTANCE_BITS) as usize, word & ((1 << Self::INSTANCE_BITS) - 1))
    }
}
