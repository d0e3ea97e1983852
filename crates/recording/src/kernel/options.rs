//! What to record.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A kind of kernel event that can be switched on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelEvent {
    /// [`talea_record::Event::SWITCH`]: which thread has which processor.
    Switches,
    /// [`talea_record::Event::WAKEUP`]: which thread made which thread ready.
    Wakeups,
    /// [`talea_record::Event::IRQ_ENTER`] and [`talea_record::Event::IRQ_EXIT`].
    Interrupts,
    /// [`talea_record::Event::SYSCALL_ENTER`] and [`talea_record::Event::SYSCALL_EXIT`].
    SystemCalls,
    /// [`talea_record::Event::THREAD_NAME`] and [`talea_record::Event::THREAD_EXIT`].
    Names,
}

impl KernelEvent {
    /// All of them, in the order of their numbers as events.
    pub const ALL: [KernelEvent; 5] = [
        KernelEvent::Switches,
        KernelEvent::Wakeups,
        KernelEvent::Interrupts,
        KernelEvent::SystemCalls,
        KernelEvent::Names,
    ];

    /// As it is written on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            KernelEvent::Switches => "switches",
            KernelEvent::Wakeups => "wakeups",
            KernelEvent::Interrupts => "interrupts",
            KernelEvent::SystemCalls => "syscalls",
            KernelEvent::Names => "names",
        }
    }
}

impl fmt::Display for KernelEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No kernel event has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no kernel event is called \"{0}\"; there are switches, wakeups, interrupts, syscalls and names")]
pub struct UnknownKernelEvent(pub String);

impl FromStr for KernelEvent {
    type Err = UnknownKernelEvent;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = KernelEvent::ALL.into_iter().find(|event| event.name() == name);
        found.ok_or_else(|| UnknownKernelEvent(name.into()))
    }
}

/// Whose events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelScope {
    /// Everybody's on the chosen processors. Needs a privilege (see [`super::preflight()`]).
    Machine,
    /// The threads of the process with this number, those that it has and those that they create. Needs no
    /// privilege for switches and names of one's own processes where kernel.perf_event_paranoid is at most 2.
    Process(u32),
}

/// Processors, by their Linux numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Processors {
    /// All that are online when the stream is opened; one that comes online later is not followed.
    Online,
    /// These. A thread is not seen while it is on another one.
    These(BTreeSet<u16>),
}

/// What becomes of wake-ups and system calls of the recording process itself. Its switches are always
/// recorded: they are times in which nobody else had the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorder {
    /// Recorded like everybody's.
    Included,
    /// Left out: wake-ups of its threads and by them, and their system calls, as far as the threads exist when the stream
    /// is opened.
    Excluded,
}

/// What a [`super::KernelStream`] records and with how much memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelOptions {
    /// Whose events.
    pub scope: KernelScope,
    /// On which processors.
    pub processors: Processors,
    /// Which kinds.
    pub events: BTreeSet<KernelEvent>,
    /// Bytes of each processor's buffer, rounded up to a power of two and at least a page. A switch takes 48,
    /// a wake-up 56, and each wake-up of the reader waits for a quarter of it.
    pub buffer_bytes: usize,
    /// Whether the recording process records itself.
    pub recorder: Recorder,
}

impl KernelOptions {
    /// What the kernel grants a user for each processor by default (kernel.perf_event_mlock_kb is 516, of which
    /// a page is not data).
    pub const BUFFER_BYTES: usize = 512 << 10;
}

impl Default for KernelOptions {
    /// Switches, wake-ups and names of everybody on all processors.
    fn default() -> Self {
        KernelOptions {
            scope: KernelScope::Machine,
            processors: Processors::Online,
            events: [KernelEvent::Switches, KernelEvent::Wakeups, KernelEvent::Names].into(),
            buffer_bytes: Self::BUFFER_BYTES,
            recorder: Recorder::Included,
        }
    }
}
