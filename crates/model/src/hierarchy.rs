//! The vocabulary of scheduler hierarchies (Regehr and Stankovic 2001): plain values, like the rest of a description.
//!
//! A node is scheduled either by lanes, into which the strategy sorts its operations, or by a hierarchy: schedulers and
//! threads, each under one scheduler or, for those that take several virtual processors, under several. Tasks have a
//! place in a hierarchy too: the scheduler of kind [`Lanes`](SchedulerKind::Lanes) is all lanes of its node, with the
//! virtual processor that it is given in the place of a whole one.

use crate::description::{Execution, UnknownKeyword, keywords};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;
use talea_guarantee::guarantee::{Guarantee, Kind};
use talea_guarantee::remedy::LEAST_QUANTUM_NS;
use talea_time::Duration;

/// The quantum of the kinds that have one, where none is given: that of the published hierarchies.
pub const DEFAULT_QUANTUM: Duration = Duration::from_millis(10);

/// Shorter quanta are described, checked and simulated, but not run: to hand a processor from one real thread to another takes some
/// 5 µs, a tenth of this.
pub const LEAST_RUN_QUANTUM: Duration = Duration::from_nanos(LEAST_QUANTUM_NS as i64);

/// A scheduler of a node's hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// Unique among schedulers and threads.
    pub name: String,
    /// Index into [`crate::Description::nodes`], the same for all of a hierarchy.
    pub node: usize,
    /// What it is.
    pub kind: SchedulerKind,
    /// How long it lets a child run before it chooses anew, for the kinds that [have one](SchedulerKind::has_quantum):
    /// above zero. What exactly it means, the policy says.
    pub quantum: Option<Duration>,
    /// Of a join, whose guarantee its child takes, as an index into the schedulers; left open, whichever is enough.
    pub takes: Option<usize>,
    /// Who schedules it; nobody at the root, which is given the node's processors.
    pub under: Vec<Under>,
}

/// A thread of a node's hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Unique among schedulers and threads.
    pub name: String,
    /// Index into [`crate::Description::nodes`].
    pub node: usize,
    /// What it does.
    pub work: ThreadWork,
    /// What it has to receive, if it is not content with whatever it is given.
    pub requires: Option<Guarantee>,
    /// Who schedules it: one scheduler.
    pub under: Vec<Under>,
}

/// What a thread does.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadWork {
    /// It always wants the processor.
    CpuBound,
    /// It wakes up every `period`, from the common start on, and then wants the processor for a burst, to be done when the
    /// next period begins.
    Bursts {
        /// How much each takes.
        burst: Execution,
        /// Above zero.
        period: Duration,
    },
    /// A command with its arguments, started for the run.
    Command(Vec<String>),
    /// A process that is there already, by its number.
    Process(u32),
}

/// One virtual processor: who gives it, and what is asked of him.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Under {
    /// Index into [`crate::Description::schedulers`].
    pub scheduler: usize,
    /// What is asked for.
    pub request: Request,
}

/// What a child asks of its scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Request {
    /// Nothing in particular.
    #[default]
    Nothing,
    /// A priority; larger is higher. Under time sharing the level at which it begins, 0 to 15.
    Priority(i32),
    /// A relative share.
    Share {
        /// Beside the shares of its siblings.
        weight: NonZeroU32,
        /// By how much of virtual time it is served earlier than its share says; zero unless latency matters more than
        /// bounds.
        warp: Duration,
    },
    /// A guarantee: a reservation, or a slower processor.
    Guarantee(Guarantee),
}

impl Request {
    /// A share without warp.
    pub const fn share(weight: NonZeroU32) -> Self {
        Request::Share { weight, warp: Duration::ZERO }
    }

    /// The key that says it in a system file; none for nothing.
    pub const fn key(&self) -> Option<&'static str> {
        match self {
            Request::Nothing => None,
            Request::Priority(_) => Some("priority"),
            Request::Share { .. } => Some("share"),
            Request::Guarantee(_) => Some("guarantee"),
        }
    }
}

/// `priority 3`, as messages have it.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Nothing => f.write_str("nothing"),
            Request::Priority(priority) => write!(f, "priority {priority}"),
            Request::Share { weight, warp: Duration::ZERO } => write!(f, "share {weight}"),
            Request::Share { weight, warp } => write!(f, "share {weight}, warp {warp}"),
            Request::Guarantee(guarantee) => write!(f, "{guarantee}"),
        }
    }
}

keywords! {
    /// What a scheduler is (`docs/policies.md`; what it accepts and gives, `docs/guarantees.md`).
    SchedulerKind {
        /// The child with the highest priority that wants to run.
        FixedPriority = "fixed-priority",
        /// Its one child, whenever any of several parents runs it.
        Join = "join",
        /// Its one child, until the amount of the period is used.
        Limit = "limit",
        /// Proportional shares with warps (Regehr 2001): who wakes up may preempt.
        ProportionalShare = "proportional-share",
        /// Start-time fair queuing (Goyal, Guo and Vin 1996).
        StartTimeFair = "sfq",
        /// Earliest eligible virtual deadline first (Stoica et al. 1996).
        Eevdf = "eevdf",
        /// Lottery scheduling (Waldspurger and Weihl 1994).
        Lottery = "lottery",
        /// Stride scheduling (Waldspurger and Weihl 1995).
        Stride = "stride",
        /// Surplus fair scheduling of several processors (Chandra et al. 2000).
        SurplusFair = "sfs",
        /// Reservations: EDF with budgets (Regehr 2001).
        Reservation = "reservation",
        /// Constant bandwidth servers that stop at the end of their budget (Abeni and Buttazzo 1998).
        ConstantBandwidth = "cbs",
        /// Total bandwidth servers (Spuri and Buttazzo 1996).
        TotalBandwidth = "tbs",
        /// Rate-monotonic reserves, hard or soft (Oikawa and Rajkumar 1999).
        ResourceKernel = "resource-kernel",
        /// Continuous reservations by a precomputed plan (Jones, Roşu and Roşu 1997).
        Rialto = "rialto",
        /// The same (Jones and Regehr 1999).
        RialtoNt = "rialto-nt",
        /// A plan made on arrival (Stankovic et al. 1999).
        Spring = "spring",
        /// Allowances in superperiods (Atlas and Bestavros 1998).
        StatisticalRateMonotonic = "srms",
        /// Uniformly slower processors (Lipari and Baruah 2000).
        BssI = "bss-i",
        /// The same with protection from each other (Lipari, Carpenter and Baruah 2000).
        PShed = "pshed",
        /// Levels with boosts, after a desktop.
        TimeSharing = "time-sharing",
        /// As Linux schedules ordinary threads.
        Linux = "linux",
        /// As Windows 2000 does.
        Windows2000 = "windows-2000",
        /// In turn.
        RoundRobin = "round-robin",
        /// In the order of arrival.
        Fifo = "fifo",
        /// Earliest deadline first.
        EarliestDeadline = "edf",
        /// Least laxity first.
        LeastLaxity = "laxity",
        /// The node's tasks, in the lanes into which the strategy sorts them.
        Lanes = "lanes",
    }
}

/// What the children of a scheduler ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Nothing.
    Nothing,
    /// A priority of their own.
    Priority,
    /// A level from 0 to 15, or nothing.
    Level,
    /// A share.
    Share,
    /// A share, possibly with a warp.
    WarpedShare,
    /// A guarantee of one of these kinds.
    Guarantee(&'static [Kind]),
    /// A guarantee of this kind, or nothing for as much as there is.
    AtMost(Kind),
    /// It has no children: its threads are tasks.
    NoChildren,
}

impl SchedulerKind {
    /// What its children ask for.
    pub const fn asks(self) -> Asks {
        match self {
            SchedulerKind::FixedPriority => Asks::Priority,
            SchedulerKind::TimeSharing | SchedulerKind::Linux | SchedulerKind::Windows2000 => Asks::Level,
            SchedulerKind::Limit => Asks::AtMost(Kind::Resbh),
            SchedulerKind::ProportionalShare | SchedulerKind::StartTimeFair => Asks::WarpedShare,
            SchedulerKind::Eevdf
            | SchedulerKind::Lottery
            | SchedulerKind::Stride
            | SchedulerKind::SurplusFair => Asks::Share,
            SchedulerKind::Reservation
            | SchedulerKind::ConstantBandwidth
            | SchedulerKind::Spring
            | SchedulerKind::StatisticalRateMonotonic => Asks::Guarantee(&[Kind::Resbh]),
            SchedulerKind::TotalBandwidth => Asks::Guarantee(&[Kind::Resbs]),
            SchedulerKind::ResourceKernel => Asks::Guarantee(&[Kind::Resbs, Kind::Resbh]),
            SchedulerKind::Rialto | SchedulerKind::RialtoNt => Asks::Guarantee(&[Kind::Rescs]),
            SchedulerKind::BssI | SchedulerKind::PShed => Asks::Guarantee(&[Kind::Resu]),
            SchedulerKind::Join
            | SchedulerKind::RoundRobin
            | SchedulerKind::Fifo
            | SchedulerKind::EarliestDeadline
            | SchedulerKind::LeastLaxity => Asks::Nothing,
            SchedulerKind::Lanes => Asks::NoChildren,
        }
    }

    /// Whether it chooses anew after a quantum.
    pub const fn has_quantum(self) -> bool {
        !matches!(
            self,
            SchedulerKind::FixedPriority
                | SchedulerKind::Join
                | SchedulerKind::Limit
                | SchedulerKind::Reservation
                | SchedulerKind::ConstantBandwidth
                | SchedulerKind::TotalBandwidth
                | SchedulerKind::Fifo
                | SchedulerKind::EarliestDeadline
                | SchedulerKind::LeastLaxity
                | SchedulerKind::Lanes
        )
    }

    /// Whether it has one child at most.
    pub const fn has_one_child(self) -> bool {
        matches!(self, SchedulerKind::Join | SchedulerKind::Limit)
    }

    /// Whether it takes virtual processors from several parents, or several processors at the root.
    pub const fn takes_several(self) -> bool {
        matches!(
            self,
            SchedulerKind::FixedPriority
                | SchedulerKind::Join
                | SchedulerKind::SurplusFair
                | SchedulerKind::TimeSharing
                | SchedulerKind::Linux
                | SchedulerKind::Windows2000
        )
    }
}

impl Asks {
    /// Whether `request` is of this form.
    pub fn fits(self, request: &Request) -> bool {
        let is_plain = |warp: &Duration| *warp == Duration::ZERO;
        match (self, request) {
            (Asks::Nothing | Asks::Level | Asks::AtMost(_), Request::Nothing)
            | (Asks::Priority, Request::Priority(_))
            | (Asks::WarpedShare, Request::Share { .. }) => true,
            (Asks::Level, Request::Priority(level)) => (0..=15).contains(level),
            (Asks::Share, Request::Share { warp, .. }) => is_plain(warp),
            (Asks::Guarantee(kinds), Request::Guarantee(guarantee)) => kinds.contains(&guarantee.kind()),
            (Asks::AtMost(kind), Request::Guarantee(guarantee)) => guarantee.kind() == kind,
            _ => false,
        }
    }

    /// What to write, for remedies.
    pub fn wanted(self) -> String {
        let guarantee = |kind: &Kind| match kind {
            Kind::Resu => "guarantee = \"RESU 0.5\"".into(),
            kind => format!("guarantee = \"{kind} 5ms 33ms\""),
        };
        match self {
            Asks::Nothing => "nothing but its name".into(),
            Asks::Priority => "priority = 1, a whole number that no sibling has".into(),
            Asks::Level => "priority = 8, a level from 0 to 15, or nothing but its name".into(),
            Asks::Share => "share = 1, a whole number above zero".into(),
            Asks::WarpedShare => "share = 1, a whole number above zero, and warp if it needs one".into(),
            Asks::Guarantee(kinds) => kinds.iter().map(guarantee).collect::<Vec<_>>().join(" or "),
            Asks::AtMost(kind) => format!("{}, or nothing but its name", guarantee(&kind)),
            Asks::NoChildren => "another scheduler; its threads are the node's tasks".into(),
        }
    }
}
