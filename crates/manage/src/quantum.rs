//! Quanta that real threads cannot keep.

use talea_model::{LEAST_RUN_QUANTUM, System};
use talea_time::Duration;
use thiserror::Error;

/// A quantum of which real threads would spend much on switching. Each of them would be one more expiry of the dispatcher's timer, at
/// the highest of the hierarchy's priorities.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "scheduler \"{scheduler}\": a quantum of {quantum} is too short for real threads, between which a switch takes some 5us; give it \
     {LEAST_RUN_QUANTUM} or more (`talea check` and `talea sim` take any)"
)]
pub struct ShortQuantum {
    /// Whose.
    pub scheduler: String,
    /// How long it is.
    pub quantum: Duration,
}

impl ShortQuantum {
    /// Refuses a quantum below [`LEAST_RUN_QUANTUM`].
    pub(crate) fn refuse(scheduler: &str, quantum: Duration) -> Result<(), Self> {
        match quantum < LEAST_RUN_QUANTUM {
            true => Err(ShortQuantum { scheduler: scheduler.into(), quantum }),
            false => Ok(()),
        }
    }

    /// Refuses a node with such a quantum.
    pub fn refuse_on(system: &System, node: usize) -> Result<(), Self> {
        let own = system.schedulers.iter().filter(|scheduler| scheduler.node == node);
        let mut quanta = own.filter_map(|scheduler| Some((&scheduler.name, scheduler.quantum?)));
        quanta.try_for_each(|(name, quantum)| ShortQuantum::refuse(name, quantum))
    }
}
