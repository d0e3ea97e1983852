//! What stands where in the tables that the programs and this process share, in words of eight bytes.

/// A group of threads.
pub(super) mod group {
    pub const WORDS: usize = 8;
    /// Nanoseconds that its threads have had, but for those that one has now.
    pub const RECEIVED: usize = 0;
    /// Wake-ups of its threads.
    pub const WAKE_UPS: usize = 1;
    /// Kinds of events that are told, as bits.
    pub const TOLD: usize = 2;
}

/// A processor.
pub(super) mod site {
    pub const WORDS: usize = 8;
    /// Changes begun and ended: odd during one.
    pub const CHANGES: usize = 0;
    /// From when on the group has it.
    pub const SINCE: usize = 1;
    /// Who has it.
    pub const GROUP: usize = 2;
    pub const THREAD: usize = 3;
    /// Switches that were recorded.
    pub const RECORDED: usize = 4;
    /// Where its record of switches begins, and one more; 0 where none is kept.
    pub const RECORD: usize = 5;
}

/// A switch in the record of a processor.
pub(super) mod switch {
    pub const WORDS: usize = 2;
    pub const TIME: usize = 0;
    /// The thread in the lower half, its group in the upper one.
    pub const TO: usize = 1;
    /// How many a processor's record holds.
    pub const KEPT: usize = 1 << 16;
}

/// What is counted once.
pub(super) mod count {
    pub const WORDS: usize = 2;
    /// Threads that were not entered for want of room.
    pub const NOT_ENTERED: usize = 0;
    /// Events that were not told for want of room.
    pub const NOT_TOLD: usize = 1;
}

/// A thread: its group in the lower half and what it passes on in the upper one, then since when.
pub(super) const THREAD_WORDS: usize = 2;
pub(super) const ENTERED: usize = 1;
/// Of a thread that ends, in place of what it passes on: it creates none any more.
pub(super) const EXITING: u32 = 3;

/// An event: kind and group, thread and process, the other thread, the time.
pub(super) const EVENT_WORDS: usize = 4;

/// Who is in no group.
pub(super) const STRANGERS: u32 = 0;
/// The idle threads.
pub(super) const IDLE: u32 = 1;
/// The first that can be had.
pub(super) const FIRST: u32 = 2;
