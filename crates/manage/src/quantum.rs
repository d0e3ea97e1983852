//! Quanta, and entries of plans, that real threads cannot keep.

use talea_model::{LEAST_RUN_QUANTUM, Setting, System};
use talea_time::Duration;
use thiserror::Error;

/// A quantum of which real threads would spend much on switching. Each of them would be one more expiry of the dispatcher's timer, at
/// the highest of the hierarchy's priorities.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "scheduler \"{scheduler}\": {what} of {quantum} is too short for real threads, between which a switch takes some 5us; give it \
     {LEAST_RUN_QUANTUM} or more (`talea check` and `talea sim` take any)"
)]
pub struct ShortQuantum {
    /// Whose.
    pub scheduler: String,
    /// What is too short: a quantum, or an entry of a plan.
    pub what: &'static str,
    /// How long it is.
    pub quantum: Duration,
}

impl ShortQuantum {
    /// Refuses a quantum below [`LEAST_RUN_QUANTUM`].
    pub(crate) fn refuse(scheduler: &str, quantum: Duration) -> Result<(), Self> {
        match quantum < LEAST_RUN_QUANTUM {
            true => Err(ShortQuantum { scheduler: scheduler.into(), what: "a quantum", quantum }),
            false => Ok(()),
        }
    }

    /// Refuses a plan with an entry below [`LEAST_RUN_QUANTUM`].
    pub(crate) fn refuse_entries<'a>(
        scheduler: &str,
        mut settings: impl Iterator<Item = &'a Setting>,
    ) -> Result<(), Self> {
        settings.try_for_each(|setting| {
            let Setting::Plan(plan) = setting else { return Ok(()) };
            match plan.entries().iter().find(|entry| entry.duration < LEAST_RUN_QUANTUM) {
                Some(entry) => {
                    let (scheduler, quantum) = (scheduler.into(), entry.duration);
                    Err(ShortQuantum { scheduler, what: "an entry of a plan", quantum })
                }
                None => Ok(()),
            }
        })
    }

    /// Refuses a node with such a quantum.
    pub fn refuse_on(system: &System, node: usize) -> Result<(), Self> {
        let mut own = system.schedulers.iter().filter(|scheduler| scheduler.node == node);
        own.try_for_each(|scheduler| {
            let settings = scheduler.settings.iter().map(|(_, setting)| setting);
            ShortQuantum::refuse_entries(&scheduler.name, settings)?;
            scheduler.quantum.map_or(Ok(()), |quantum| ShortQuantum::refuse(&scheduler.name, quantum))
        })
    }
}
