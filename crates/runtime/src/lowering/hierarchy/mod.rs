//! From a hierarchy of schedulers to plain settings of the kernel: a pure function, description in, settings or reasons out.
//!
//! What the kernel offers is what its documentation says, and no more is counted on:
//!
//! - A thread under fixed priority: SCHED_FIFO with a priority of its own, because the runnable thread of the highest priority
//!   runs, and stays at the head of its list while a higher one runs (sched(7)).
//! - Fixed priority under fixed priority: the same priorities, flattened, because the order of the inner one stands where the
//!   outer one has it, as nobody of another priority comes between.
//! - FIFO over threads: SCHED_FIFO with one priority, because who wakes up goes to the end of its list (sched(7)); a burst that
//!   follows another without a pause does, too, by sched_yield(2).
//! - Round robin over threads: SCHED_RR with one priority, because that is the same with a slice, of which a thread that a higher
//!   one preempts keeps the rest (sched(7)); the slice is one for the whole machine.
//! - Hard reservations over threads, above all else: SCHED_DEADLINE, because that is a constant bandwidth server that stops until
//!   its next period (Documentation/scheduler/sched-deadline.rst), with the wake-up rule of
//!   [`Reservation`](talea_policy::scheduler::Reservation).
//! - `linux` over threads, below all else: SCHED_OTHER, because it is that by name, and promises nothing.
//!
//! A hierarchy is lowered *as a whole or not at all*. A thread that the kernel alone schedules above the infrastructure would
//! take time from threads that this has granted it: budgets would be charged and promises judged for time that nobody
//! received. Below it, it would have to wait for threads that are only parked, which may use idle processors. So one part that cannot be
//! lowered keeps the others, which then [say so](Reason::BesideKept).
//!
//! A hierarchy that does not compose stays, too: the infrastructure judges what threads require all the same. So does one of whose
//! promises not all are [known to be kept](talea_guarantee::proviso).

mod levels;
mod reason;
mod survey;

pub use reason::Reason;

use super::machine::Machine;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;
use survey::Surveyor;
use talea_guarantee::derivation::{NotDerived, derive};
use talea_guarantee::proviso::{Proviso, provisos};
use talea_linux::sched::Policy;
use talea_model::System;
use talea_policy::arrangement::Blueprint;
use talea_time::{Duration, Work};

/// Priorities of lowered threads: where managed sets are and above, below the kernel's interrupt threads at 50, and below the
/// lanes of most nodes. The release thread has the next above those in use.
pub const PRIORITIES: RangeInclusive<u8> = 10..=48;

/// What the thread reserves that releases the bursts of reserved threads: it has to come before them.
pub const RELEASE_BUDGET: Work = Work::from_nanos(50_000);
/// Its deadline and period.
pub const RELEASE_PERIOD: Duration = Duration::from_millis(1);

/// What becomes of a node's hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowering {
    /// Everybody: schedulers, each behind all above it, and then threads.
    pub parts: Vec<Part>,
    /// The kernel's settings, if all of it is lowered.
    pub settings: Option<Settings>,
}

/// What becomes of a scheduler or thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// What becomes of it.
    pub outcome: PartOutcome,
}

/// What becomes of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum PartOutcome {
    /// The kernel does it.
    Lowered(Form),
    /// The infrastructure does.
    Stays(Reason),
}

/// As what the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Priorities, a scheduler's or several.
    Priorities,
    /// Reservations of its threads.
    Reservations,
    /// This policy: a thread's, or that of all threads of a scheduler.
    Policy(Policy),
}

/// A lowered hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The policy of the thread that releases bursts, before all of which it comes.
    pub release: Policy,
    /// The priority above all levels, for who watches over them.
    pub above: u8,
    /// The threads, in file order.
    pub threads: Vec<ThreadSetting>,
    /// Whether the threads see each other's switches.
    pub switches: Switches,
}

/// A lowered thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadSetting {
    /// Index into the description's threads.
    pub thread: usize,
    /// Its policy.
    pub policy: Policy,
    /// Whether others have its priority.
    pub level: Level,
}

/// Who else has a thread's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Nobody.
    Own,
    /// Others, with which it takes turns.
    Shared,
}

/// Whether it is known without the kernel's own records who has the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switches {
    /// Threads of the run alone, which preempt each other like nested calls: who begins has displaced who was there.
    Nested,
    /// The kernel switches among them at moments that nobody is told.
    Unseen,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Priorities => f.write_str("priorities of the kernel"),
            Form::Reservations => f.write_str("reservations of the kernel"),
            Form::Policy(policy) => policy.fmt(f),
        }
    }
}

/// A part of a node's hierarchy in words, for results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartAccount {
    /// Its name.
    pub name: String,
    /// What the kernel has it as, if it is lowered.
    pub lowered_to: Option<String>,
    /// Why the infrastructure keeps it, if it does.
    pub stays_because: Option<String>,
}

impl Lowering {
    /// Every part in words.
    pub fn account(&self) -> Vec<PartAccount> {
        let account = |part: &Part| {
            let (lowered_to, stays_because) = match &part.outcome {
                PartOutcome::Lowered(form) => (Some(form.to_string()), None),
                PartOutcome::Stays(reason) => (None, Some(reason.to_string())),
            };
            PartAccount { name: part.name.clone(), lowered_to, stays_because }
        };
        self.parts.iter().map(account).collect()
    }

    /// The parts that keep the hierarchy with the infrastructure, with the reasons; none if it is lowered.
    pub fn obstacles(&self) -> impl Iterator<Item = (&str, &Reason)> {
        self.parts.iter().filter_map(|part| match &part.outcome {
            PartOutcome::Stays(reason)
                if !matches!(reason, Reason::BesideKept { .. } | Reason::Below { .. }) =>
            {
                Some((part.name.as_str(), reason))
            }
            _ => None,
        })
    }

    /// The same hierarchy, kept by the infrastructure because the kernel does not give the part of this name what it is
    /// to have.
    pub(crate) fn keep(&mut self, name: &str, reason: Reason) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.name == name) {
            part.outcome = PartOutcome::Stays(reason);
        }
        self.keep_company();
    }

    /// Whoever could be lowered stays with those that cannot.
    fn keep_company(&mut self) {
        let Some(with) = self.obstacles().next().map(|(name, _)| name.to_owned()) else { return };
        self.settings = None;
        for part in &mut self.parts {
            if let PartOutcome::Lowered(_) = part.outcome {
                part.outcome = PartOutcome::Stays(Reason::BesideKept { with: with.clone() });
            }
        }
    }
}

/// What becomes of the hierarchy of `node` on this machine. None if it has none, or none that can be arranged; why not,
/// [`arrange`](talea_policy::arrangement::arrange) says.
pub fn lower_hierarchy(system: &System, node: usize, machine: &Machine) -> Option<Lowering> {
    let hierarchy = system.hierarchy(node)?;
    let (derivation, composes) = match derive(&hierarchy) {
        Ok(derivation) => (derivation, true),
        Err(NotDerived::Failed(failure)) => (failure.derived, false),
        Err(NotDerived::Malformed(malformed)) => {
            panic!("a validated system has sound hierarchies: {malformed:?}")
        }
    };
    let blueprint = Blueprint::new(system, node, &derivation).ok()?;
    let root = blueprint.schedulers.first()?.name.clone();
    let mut lowering = Surveyor::new(system, node, machine, &blueprint).survey();
    let doubted = provisos(&hierarchy, &derivation).into_iter().next();
    match doubted {
        _ if !composes => lowering.keep(&root, Reason::NotComposed),
        Some(Proviso { parent, child, .. }) => {
            lowering.keep(&root, Reason::NotKnownToBeKept { parent, child });
        }
        None => {}
    }
    Some(lowering)
}

#[cfg(test)]
mod tests;
