//! What runs when a job runs.

use std::sync::{Mutex, MutexGuard};
use talea_operation::Operation;

/// What a job does.
pub(crate) enum Behaviour {
    /// Burns the processor time that [`talea_policy::demand`] draws for it, and nothing else.
    Synthetic,
    /// Calls the user's code, or burns such time, and reads and writes values.
    Operation { has_code: bool, operation: OneAtATime },
}

impl Behaviour {
    pub fn of(operation: Option<Operation>) -> Self {
        match operation {
            None => Behaviour::Synthetic,
            Some(operation) => Behaviour::Operation {
                has_code: operation.has_code(),
                operation: OneAtATime(Mutex::new(operation)),
            },
        }
    }

    /// Whether its jobs call users' code.
    pub fn has_code(&self) -> bool {
        matches!(self, Behaviour::Operation { has_code: true, .. })
    }
}

/// An operation, which the threads of its lane share.
///
/// An operation is in one lane, and the lane runs its jobs one at a time: a non-preemptive lane is one thread, and a preemptive
/// one gives a job no thread while another job of the same operation has one (`preemptive`). So the lock is free whenever it is
/// asked for. It is tried and never waited for; it is how the compiler knows what the lanes know.
pub(crate) struct OneAtATime(Mutex<Operation>);

impl OneAtATime {
    /// The operation, for one job.
    ///
    /// # Panics
    /// If another job has it, which no lane lets happen.
    pub fn take(&self) -> MutexGuard<'_, Operation> {
        match self.0.try_lock() {
            Ok(operation) => operation,
            // The code is called again for the next job whatever state a panic left it in; what it keeps is its own business.
            Err(std::sync::TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(std::sync::TryLockError::WouldBlock) => {
                unreachable!("a lane runs the jobs of an operation one at a time")
            }
        }
    }
}
