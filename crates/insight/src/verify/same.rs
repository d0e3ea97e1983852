//! Whether a trace is one of the system it is to be compared with.

use talea_record::Metadata;
use talea_record::difference::{Difference, list_differences, schedule_differences};
use thiserror::Error;

/// The trace belongs to another system.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the trace belongs to another system: {what} is {in_trace} in the trace and {expected} in the system file"
)]
pub struct OtherSystem {
    /// What differs.
    pub what: String,
    /// What it is in the trace.
    pub in_trace: String,
    /// What it is in the system.
    pub expected: String,
}

/// Compares everything but strategy, lanes and seed, which are what a verification is about or does not need, and posted work, of which
/// no description says anything.
pub(super) fn check(trace: &Metadata, expected: &Metadata) -> Result<(), OtherSystem> {
    let mut differences = list_differences(trace, expected);
    differences.extend(schedule_differences(trace, expected));
    match differences.into_iter().next() {
        Some(Difference { what, in_trace, described: expected }) => {
            Err(OtherSystem { what, in_trace, expected })
        }
        None => Ok(()),
    }
}
