//! What constraints find in the header of every event, before what its content has.

use talea_etcl::{Filterable, Form, Kind, Layout, Lookup, Member, Node, Value};
use talea_time::Duration;

/// The names, which are written with a `$`, and what they are. The last three are times in nanoseconds: instants on the clock of `$curtime`, and how
/// long after its push an event is worth being delivered.
pub const HEADER: [(&str, Kind); 8] = [
    ("domain_name", Kind::Text),
    ("type_name", Kind::Text),
    ("event_name", Kind::Text),
    ("source", Kind::Integer),
    ("priority", Kind::Integer),
    ("StartTime", Kind::Integer),
    ("StopTime", Kind::Integer),
    ("Timeout", Kind::Integer),
];

/// Where among [`HEADER`] a property of a structured event stands that the service knows as a time, whatever the units in which the event has it.
pub fn time_in_header(property: &str) -> Option<(usize, Kind)> {
    let place = HEADER.iter().position(|(known, _)| *known == property)?;
    matches!(property, "StartTime" | "StopTime" | "Timeout").then_some((place, HEADER[place].1))
}

/// Units of 100 ns from the first day of the Gregorian calendar, from which the standard counts, to that from which Unix does.
const UNIX_EPOCH_UTC: i64 = 122_192_928_000_000_000;
/// The same of 280 years, which nanoseconds have room for.
const LONGEST_UTC: i64 = 280 * 365 * 86_400 * 10_000_000;

/// The time since the beginning of 1970, UTC, of a time as structured events state it: in units of 100 ns since 15 October 1582. None if it is out of
/// range.
pub fn since_1970(units: i64) -> Option<Duration> {
    let since = units.checked_sub(UNIX_EPOCH_UTC).filter(|since| (0..=LONGEST_UTC).contains(since))?;
    Some(Duration::from_nanos(since * 100))
}

/// A timeout as structured events state it: in units of 100 ns. None if it is out of range.
pub fn timeout_of(units: i64) -> Option<Duration> {
    (0..=90_000_000_000_000_000).contains(&units).then(|| Duration::from_nanos(units * 100))
}

/// Where the header has this name, written in this form, and as what.
pub fn in_header(name: &str, form: Form) -> Option<(usize, Kind)> {
    let place = HEADER.iter().position(|(known, _)| *known == name).filter(|_| form != Form::Bare)?;
    Some((place, HEADER[place].1))
}

/// An event of which only the header is known: what constraints are held against before there are events. Everything else may be there.
#[derive(Clone, Copy, Debug)]
pub struct AnyEvent;

impl Node for AnyEvent {
    fn len(&self) -> usize {
        HEADER.len()
    }

    fn at(&self, _position: usize) -> Option<Value<'_>> {
        None
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        HEADER.get(position).map(|(name, _)| *name)
    }
}

static MEMBERS: [Member; 0] = [];
static LAYOUT: Layout = Layout { name: "Event", repository_id: None, members: &MEMBERS };

impl Filterable for AnyEvent {
    fn layout() -> &'static Layout {
        &LAYOUT
    }

    fn resolve(name: &str, form: Form) -> Lookup {
        in_header(name, form).map_or(Lookup::ByName, |(place, kind)| Lookup::At(place, kind))
    }

    fn short(&self, _name: &str) -> Option<Value<'_>> {
        None
    }

    fn short_names(&self) -> usize {
        0
    }
}
