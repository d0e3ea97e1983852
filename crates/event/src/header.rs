//! What constraints find in the header of every event, before what its content has.

use talea_etcl::{Filterable, Form, Kind, Layout, Lookup, Member, Node, OwnedValue, VARIABLE_HEADER, Value};
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

/// Where behind [`HEADER`] the list of the user's fields stands.
pub const FIELDS: usize = HEADER.len();
/// The most of the user's fields that a header has.
pub const FIELDS_MOST: u32 = 256;
/// The most bytes that all of them have together, as they are sent.
pub const FIELDS_BYTES_MOST: usize = 16 << 10;
/// What the standard has among the fields of a header and the service knows, and what that is called here.
pub const KNOWN_FIELDS: [(&str, &str); 5] = [
    ("Priority", "priority"),
    ("Timeout", "timeout"),
    ("StartTime", "start"),
    ("StopTime", "stop"),
    ("EventReliability", "reliability"),
];
/// Where among [`HEADER`] the priority stands.
const PRIORITY: usize = 4;

/// A property of a structured event's header that the service knows as a time, in the standard's units. What constraints see of it stands among [`HEADER`].
#[derive(Clone, Copy, Debug)]
pub struct StatedTime {
    /// Its name, which is that among [`HEADER`].
    pub property: &'static str,
    /// What it has to be, as what is said of one that is not.
    pub range: &'static str,
    read: fn(i64) -> Option<Duration>,
}

impl StatedTime {
    /// The instants, which are from the beginning of 1970 then, and the timeout.
    pub const START: StatedTime = StatedTime { property: "StartTime", range: UTC, read: since_1970 };
    /// See [`Self::START`].
    pub const STOP: StatedTime = StatedTime { property: "StopTime", ..Self::START };
    /// How long after its push the event is worth being delivered.
    pub const TIMEOUT: StatedTime = StatedTime { property: "Timeout", range: UNITS, read: timeout_of };
    /// All of them.
    pub const ALL: [StatedTime; 3] = [Self::START, Self::STOP, Self::TIMEOUT];

    /// The time that is stated so. None if it is none, or out of range.
    pub fn read(&self, stated: &OwnedValue) -> Option<Duration> {
        if let OwnedValue::Integer(units) = stated { (self.read)(*units) } else { None }
    }
}

const UTC: &str = "is a time from 1970 to 2250, in units of 100 ns since 15 October 1582";
const UNITS: &str = "is a time from 0 to 90000000000000000, in units of 100 ns";

/// Units of 100 ns from the first day of the Gregorian calendar, from which the standard counts, to that from which Unix does.
const UNIX_EPOCH_UTC: i64 = 122_192_928_000_000_000;
/// The same of 280 years, which nanoseconds have room for.
const LONGEST_UTC: i64 = 280 * 365 * 86_400 * 10_000_000;

fn since_1970(units: i64) -> Option<Duration> {
    let since = units.checked_sub(UNIX_EPOCH_UTC).filter(|since| (0..=LONGEST_UTC).contains(since))?;
    Some(Duration::from_nanos(since * 100))
}

fn timeout_of(units: i64) -> Option<Duration> {
    (0..=90_000_000_000_000_000).contains(&units).then(|| Duration::from_nanos(units * 100))
}

/// Where the header has this name, written in this form, and as what.
pub fn in_header(name: &str, form: Form) -> Option<(usize, Kind)> {
    if form == Form::Bare { None } else { named(name) }
}

fn named(name: &str) -> Option<(usize, Kind)> {
    let place = HEADER.iter().position(|(known, _)| *known == name)?;
    Some((place, HEADER[place].1))
}

/// Where the header has the time that is a property of this name in structured events.
pub fn time_in_header(property: &str) -> Option<(usize, Kind)> {
    StatedTime::ALL.iter().find(|time| time.property == property).and_then(|time| named(time.property))
}

/// Where the header has what these members lead to, one within the other, and as what: one of [`HEADER`], or the list of [`FIELDS`].
pub fn spelled_in_header(members: &[&str]) -> Option<(usize, Kind)> {
    match members {
        ["header", "fixed_header", "event_name"] => named("event_name"),
        ["header", "fixed_header", "event_type", name @ ("domain_name" | "type_name")] => named(name),
        members => (members == VARIABLE_HEADER).then_some((FIELDS, Kind::List)),
    }
}

/// Where the header has what the standard has under this name in the list of fields.
pub fn picked_in_header(name: &str) -> Option<(usize, Kind)> {
    let is_priority = name == "Priority";
    time_in_header(name).or_else(|| is_priority.then_some((PRIORITY, HEADER[PRIORITY].1)))
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

    fn shortcut(members: &[&str]) -> Option<(usize, Kind)> {
        spelled_in_header(members)
    }

    fn picked(list: usize, name: &str) -> Option<(usize, Kind)> {
        if list == FIELDS { picked_in_header(name) } else { None }
    }

    fn most_names(list: usize) -> Option<u32> {
        (list == FIELDS).then_some(FIELDS_MOST)
    }

    fn short(&self, _name: &str) -> Option<Value<'_>> {
        None
    }

    fn short_names(&self) -> usize {
        0
    }
}
