//! What a run counts of itself: `talea trace read NAME` shows it in every run, whether or not anybody records.
//!
//! Jobs are counted where their records are written, by the thread that releases or completes them: subtasks each for itself, by the
//! deadline of their instance.

use talea_record::event::BuiltinEvent;
use talea_record::{Event, Record};

talea_record::family! {
    /// What a run counts of its jobs, from its beginning.
    pub results {
        /// Jobs that were released.
        counter released;
        /// Jobs that completed by their deadline, or had none.
        counter met;
        /// Jobs that completed after their deadline or were aborted.
        counter missed;
        /// Nanoseconds from the nominal release of a job to its completion.
        histogram response(lower: 0, width: 100_000, buckets: 200);
        /// Nanoseconds from the deadline of a job to its completion, negative of one that completed earlier.
        histogram lateness(lower: -10_000_000, width: 100_000, buckets: 200);
    }
}

/// Counts what the record of an event tells of a job. The calling thread writes to the run's stream.
#[inline]
pub(crate) fn count<E: BuiltinEvent>(record: &Record) {
    match E::EVENT {
        Event::RELEASE => results::released.add(1),
        Event::ABORT => results::missed.add(1),
        Event::COMPLETE => {
            let Some(dates) = record.dates() else { return };
            results::response.add((record.time - dates.nominal).as_nanos());
            match record.deadline().map(|deadline| (record.time - deadline).as_nanos()) {
                Some(late) if late > 0 => results::missed.add(1),
                _ => results::met.add(1),
            }
            if let Some(deadline) = record.deadline() {
                results::lateness.add((record.time - deadline).as_nanos());
            }
        }
        _ => {}
    }
}
