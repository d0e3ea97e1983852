//! What releases a task in place of a period, and when its values are exchanged.

use crate::channel::Subscription;
use crate::keyword::keywords;
use crate::ports::OutputAddress;
use std::sync::Arc;
use talea_time::Duration;

/// What releases a task in place of its period.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// Values on an output of another task.
    Output {
        /// The output.
        output: OutputAddress,
        /// Every how many of them, at least 1.
        every: u32,
        /// Which of them count.
        on: OnValue,
    },
    /// Something outside: a descriptor that becomes ready, or a handle in the program.
    External {
        /// When that happens where there is no outside: in simulations and in runs without code.
        arrivals: OutsideArrivals,
    },
    /// Events of a channel that it has subscribed to.
    Events(Subscription),
}

keywords! {
    /// Which values of an output count for a trigger.
    OnValue {
        /// Every value.
        Value = "value",
        /// Values that differ from the one before; the first does.
        Change = "change",
    }
}

/// When something outside happens, drawn from the system's seed where it is random.
#[derive(Clone, Debug, PartialEq)]
pub enum OutsideArrivals {
    /// Every `period` after the common start, each up to `jitter` later.
    Periodic {
        /// From one to the next, more than zero.
        period: Duration,
        /// The greatest delay, shorter than the period.
        jitter: Duration,
    },
    /// At least the task's separation apart, and exponentially distributed beyond that.
    Sporadic {
        /// The mean distance, no shorter than the separation.
        mean: Duration,
    },
    /// Exponentially distributed distances, without a least one.
    Poisson {
        /// The mean distance, more than zero.
        mean: Duration,
    },
    /// At these times after the common start, none before the one ahead of it, and then no more. Lists written in the system file and
    /// lists read from a file become the same thing.
    Listed(Arc<[Duration]>),
    /// Never.
    None,
}

/// How far apart triggered releases are: at most `burst - 1 + ceil(D / separation)` of them fall into any time `D`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Separation {
    /// The distance in the long run, more than zero.
    pub separation: Duration,
    /// How many may come at once after a pause, from 1.
    pub burst: u32,
    /// What happens to those that come too early.
    pub excess: Excess,
}

impl Separation {
    /// The burst where none is stated.
    pub const DEFAULT_BURST: u32 = 1;
}

keywords! {
    /// What happens to what triggers a task earlier than its separation allows. All of it is counted.
    Excess {
        /// Its release waits until the separation is over.
        Defer = "defer",
        /// It releases nothing.
        Drop = "drop",
        /// It releases at once, which breaks what the analysis counts with.
        Count = "count",
    }
}

impl Excess {
    /// That of a task that states none.
    pub const DEFAULT: Excess = Excess::Defer;
}

keywords! {
    /// When values between a task and others are published and taken. Values that are handed on within an instance are not concerned.
    Communication {
        /// Published when a job completes, taken when a job begins.
        Implicit = "implicit",
        /// Logical execution time: published at the end of the period, taken at the arrival.
        Let = "let",
    }
}

impl Communication {
    /// That of a task that states none.
    pub const DEFAULT: Communication = Communication::Implicit;
}
