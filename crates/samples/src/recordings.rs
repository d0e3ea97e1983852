//! Recordings that were not asked for everything.

use talea_record::event::builtin;
pub use talea_record::recorded_events::name_of;
use talea_record::stream::{Directory, Selection};
use talea_record::{AskedEvents, Event, Metadata, Record};

/// Recorded whatever is asked for: whose a ring is, what was lost, the bytes of events that were asked for, and the marks of the run.
const UNASKED: [Event; 5] = [Event::THREAD, Event::LOST, Event::PART, Event::RUN_START, Event::RUN_END];

/// The builtin events that streams tell and a recording may leave out.
pub fn events_to_leave_out() -> impl Iterator<Item = Event> {
    let families = builtin::ALL.iter().filter(|family| family.number != builtin::KERNEL.number);
    let events = families.flat_map(|family| family.events.iter().map(|entry| family.event(entry)));
    events.filter(|event| !UNASKED.contains(event))
}

/// What a recorder makes of a run with these tables and records that is asked for all events but these.
///
/// # Panics
/// If one of them is not builtin.
pub fn recorded_without(
    metadata: &Metadata,
    records: &[Record],
    left_out: &[Event],
) -> (Metadata, Vec<Record>) {
    let names: String = left_out.iter().map(|event| format!(",-{}", name_of(*event))).collect();
    let selection: Selection = format!("all{names}").parse().expect("a selection");
    let asked = AskedEvents::of(&selection, &Directory::default()).expect("they are there");
    let (recorded, unrecorded) = (Some(asked.events), asked.others);
    let metadata = Metadata { recorded, unrecorded, ..metadata.clone() };
    let records = records.iter().filter(|record| !left_out.contains(&record.event)).copied().collect();
    (metadata, records)
}
