//! What a run counts of itself: `talea trace read NAME` shows it in every run, whether or not anybody records.
//!
//! Jobs are counted where their records are written, by the thread that releases or completes them: subtasks each for itself, by the
//! deadline of their instance. The jobs of a hierarchy's threads are recorded by its dispatcher, in whichever thread that is at work, and so
//! are counted in the stream of its ring.

use talea_record::event::BuiltinEvent;
use talea_record::stream::passive::Counter;
use talea_record::{Event, Record, RingWriter};

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

/// What the record of an event tells of a job, to be counted.
enum Told {
    Nothing,
    Release,
    Abort,
    /// With the nanoseconds since its nominal release, and since its deadline if it has one.
    Completion {
        response: i64,
        lateness: Option<i64>,
    },
}

impl Told {
    #[inline]
    fn of(event: Event, record: &Record) -> Self {
        match event {
            Event::RELEASE => Told::Release,
            Event::ABORT => Told::Abort,
            Event::COMPLETE => record.dates().map_or(Told::Nothing, |dates| Told::Completion {
                response: (record.time - dates.nominal).as_nanos(),
                lateness: record.deadline().map(|deadline| (record.time - deadline).as_nanos()),
            }),
            _ => Told::Nothing,
        }
    }

    /// The counter that goes up by one.
    #[inline]
    fn counter(&self) -> Option<&'static Counter> {
        match self {
            Told::Nothing => None,
            Told::Release => Some(&results::released),
            Told::Abort | Told::Completion { lateness: Some(1..), .. } => Some(&results::missed),
            Told::Completion { .. } => Some(&results::met),
        }
    }
}

/// Counts what the record of an event tells of a job. The calling thread writes to the run's stream.
#[inline]
pub(crate) fn count<E: BuiltinEvent>(record: &Record) {
    let told = Told::of(E::EVENT, record);
    if let Some(counter) = told.counter() {
        counter.add(1);
    }
    if let Told::Completion { response, lateness } = told {
        results::response.add(response);
        lateness.into_iter().for_each(|lateness| results::lateness.add(lateness));
    }
}

/// The same of a record that goes to `writer`, whichever thread writes it: those of a hierarchy's members.
#[inline]
pub(crate) fn count_in(writer: &RingWriter, record: &Record) {
    let told = Told::of(record.event, record);
    if let Some(counter) = told.counter() {
        counter.add_in(writer, 1);
    }
    if let Told::Completion { response, lateness } = told {
        results::response.add_in(writer, response);
        lateness.into_iter().for_each(|lateness| results::lateness.add_in(writer, lateness));
    }
}
