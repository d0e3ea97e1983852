//! Constraints in the constraint language ([`talea_etcl`]) over events that carry a type of one's own, or structured events.
//!
//! `$domain_name`, `$type_name`, `$event_name`, `$source`, `$priority`, `$StartTime`, `$StopTime` and `$Timeout` are the event's header; what the header
//! does not state is missing. `$.header.variable_header(name)` is a [field](crate::HeaderFields) of the header, of events with whatever content. Other
//! names are the content's; where it has no members that are known beforehand, as structured events, a field of the header goes before it.
//!
//! Times are in nanoseconds, and the instants among them on the clock of `$curtime`, the instant of the push, which is virtual in a simulation. So
//! `$StartTime > $curtime` says of an event that it is held still. Structured events have these properties in the standard's units; what constraints see
//! of them, also spelled out as `$.header.variable_header(StartTime)`, is what was converted when the event was [made](Event::structured).

use crate::event::{Content, Event, EventType, Header, Parts, WallClock};
use crate::fields::FieldProblem;
use crate::filter::{ConstraintId, Expression, Filter, NotEvaluated};
use crate::mapping::MappingFilter;
use crate::qos::Reliability;
use talea_etcl::{
    Constraint, Filterable, Form, Kind, Layout, Lookup, Node, OwnedValue, Problem, Program, VARIABLE_HEADER,
    Value,
};
use talea_event::{
    EVALUATION_STEP, FIELDS, FIELDS_MOST, StatedTime, TypePattern, in_header, picked_in_header,
    spelled_in_header, time_in_header,
};
use talea_time::{Duration, Instant};
use thiserror::Error;

/// Constraints that a filter has at most, if they are texts: strangers write them.
const MOST_CONSTRAINTS: usize = 256;

/// Why a constraint is refused. The filter is as it was.
#[derive(Debug, Error)]
pub enum ConstraintError {
    /// What is wrong with the text, and where (`InvalidConstraint`).
    #[error(transparent)]
    Invalid(#[from] Problem),
    /// The filter has as many as it may.
    #[error("a filter has at most {MOST_CONSTRAINTS} constraints")]
    TooMany,
    /// What the events carry has a member `header` itself, in which a name that is spelled out stands for whatever is there, and takes as many steps as are
    /// allowed, where the description of a system is about a field of the header.
    #[error(
        "it spells out a field of the header, and what the events carry has a member \"header\" of its own; call that otherwise"
    )]
    OwnHeader,
}

/// The position of the first name of [`HEADER`]: behind all that a content may have, whose positions stay as they are, for `$.0` counts them.
const FIRST_IN_HEADER: usize = 1 << 15;

/// The content, with the header at positions of its own.
impl<T: Content + Filterable> Node for Parts<T> {
    fn len(&self) -> usize {
        self.content.len()
    }

    #[inline]
    fn at(&self, position: usize) -> Option<Value<'_>> {
        let Some(place) = position.checked_sub(FIRST_IN_HEADER) else { return self.content.at(position) };
        let Header { event_type, event_name, source, priority, start, stop, timeout, fields, .. } =
            &self.header;
        match place {
            0 => Some(Value::Text(event_type.domain())),
            1 => Some(Value::Text(event_type.name())),
            2 => Some(Value::Text(event_name.as_deref().unwrap_or_default())),
            3 => Some(Value::Unsigned(u64::from(*source))),
            4 => priority.map(|priority| Value::Integer(i64::from(priority))),
            5 => start.map(|start| Value::Integer(start.as_nanos())),
            6 => stop.map(|stop| Value::Integer(stop.as_nanos())),
            7 => timeout.map(|timeout| Value::Integer(timeout.as_nanos())),
            _ => Some(Value::List(fields.properties())),
        }
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        self.content.name_at(position)
    }

    fn type_name(&self) -> Option<&str> {
        self.content.type_name()
    }

    fn repository_id(&self) -> Option<&str> {
        self.content.repository_id()
    }
}

impl<T: Content + Filterable> Filterable for Parts<T> {
    fn layout() -> &'static Layout {
        T::layout()
    }

    fn resolve(name: &str, form: Form) -> Lookup {
        // A bare name of a structured event is a property of its header first.
        let time = || own_variable_header::<T>().and_then(|_| time_in_header(name));
        match in_header(name, form).or_else(time).map(behind_content) {
            Some((place, kind)) => Lookup::At(place, kind),
            None => T::resolve(name, form),
        }
    }

    fn shortcut(members: &[&str]) -> Option<(usize, Kind)> {
        if T::layout().position("header").is_some() {
            return T::shortcut(members);
        }
        T::shortcut(members).or_else(|| spelled_in_header(members).map(behind_content))
    }

    fn picked(list: usize, name: &str) -> Option<(usize, Kind)> {
        // A structured event has its priority among its properties.
        let place = match own_variable_header::<T>() == Some(list) {
            true => time_in_header(name),
            false if list == FIRST_IN_HEADER + FIELDS => picked_in_header(name),
            false => None,
        };
        place.map(behind_content)
    }

    /// Headers have [limits](crate::HeaderFields), whichever list the fields are in.
    fn most_names(list: usize) -> Option<u32> {
        let is_of_header = list == FIRST_IN_HEADER + FIELDS || own_variable_header::<T>() == Some(list);
        if is_of_header { Some(FIELDS_MOST) } else { T::most_names(list) }
    }

    /// The header's fields go before what the content has under a name, as in structured events.
    fn short(&self, name: &str) -> Option<Value<'_>> {
        self.header.fields.properties().named(name).or_else(|| self.content.short(name))
    }

    fn short_names(&self) -> usize {
        self.header.fields.len() + self.content.short_names()
    }
}

/// The same place in the header, behind what the content has.
fn behind_content((place, kind): (usize, Kind)) -> (usize, Kind) {
    (FIRST_IN_HEADER + place, kind)
}

/// Where content that is a structured event has the properties of its header.
fn own_variable_header<T: Filterable>() -> Option<usize> {
    T::shortcut(&VARIABLE_HEADER).map(|(position, _)| position)
}

/// A constraint that is evaluated on events which carry a `T`; others it does not match, which is counted as an error.
struct Compiled<T>(Program<Parts<T>>);

impl<T: Content + Filterable> Expression for Compiled<T> {
    fn longest(&self) -> Duration {
        EVALUATION_STEP * i64::from(self.0.steps())
    }

    fn holds(&self, event: &Event, now: Instant) -> Result<bool, NotEvaluated> {
        let parts = event.parts::<T>().ok_or(NotEvaluated)?;
        self.0.evaluate(parts, now).map_err(|_| NotEvaluated)
    }
}

/// The same of a system's description, which does not match others, and that is no error. How long it takes, [`Only::longest_among`] says.
pub(crate) struct Only<T>(Program<Parts<T>>);

impl<T: Content + Filterable> Only<T> {
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        Ok(Only(Constraint::parse(text)?.compile()?))
    }

    /// How long that takes at most if what is looked up by name are numbers, of which no event has more than so many.
    pub fn longest_among(&self, numbers: usize) -> Duration {
        EVALUATION_STEP * i64::from(self.0.steps_with_numbers(numbers))
    }

    /// How long that takes at most, whatever the events carry.
    pub fn longest_of_all(&self) -> Duration {
        EVALUATION_STEP * i64::from(self.0.steps())
    }
}

impl<T: Content + Filterable> Expression for Only<T> {
    fn holds(&self, event: &Event, now: Instant) -> Result<bool, NotEvaluated> {
        match event.parts::<T>() {
            Some(parts) => self.0.evaluate(parts, now).map_err(|_| NotEvaluated),
            None => Ok(false),
        }
    }
}

impl Filter {
    /// A filter of one constraint: of events of these types, or of any if there are none, that carry a `T`, those of which `text` holds.
    ///
    /// ```
    /// use talea_notification::{Content, Event, EventType, Filter, Header};
    /// use talea_etcl::Filterable;
    /// use talea_time::Instant;
    ///
    /// #[derive(Filterable)]
    /// struct Battery { charge: f64 }
    /// impl Content for Battery {}
    ///
    /// let low = Filter::parse::<Battery>(&[], "charge < 20 and $domain_name == 'Robot'")?;
    /// let event = Event::new(Header::new(EventType::new("Robot", "Battery")), Battery { charge: 11.5 });
    /// assert!(low.judge(&event, Instant::ZERO).matches);
    /// let problem = Filter::parse::<Battery>(&[], "chrge < 20").unwrap_err().to_string();
    /// assert!(problem.contains("did you mean charge?"), "{problem}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The text is no constraint, or can never be evaluated on a `T`.
    pub fn parse<T: Content + Filterable>(
        types: &[TypePattern],
        text: &str,
    ) -> Result<Self, ConstraintError> {
        let mut filter = Filter::new();
        filter.add_constraint::<T>(types, text)?;
        Ok(filter)
    }

    /// Adds such a constraint (`add_constraints`).
    ///
    /// # Errors
    /// The same, or the filter has as many as it may.
    pub fn add_constraint<T: Content + Filterable>(
        &mut self,
        types: &[TypePattern],
        text: &str,
    ) -> Result<ConstraintId, ConstraintError> {
        if self.constraints().count() >= MOST_CONSTRAINTS {
            return Err(ConstraintError::TooMany);
        }
        Ok(self.add(types, Compiled(Constraint::parse(text)?.compile::<Parts<T>>()?)))
    }
}

impl<V: Copy> MappingFilter<V> {
    /// Adds a constraint behind those before: of events of these types, or of any if there are none, that carry a `T`, those of which `text` holds have
    /// this value (`add_mapping_constraints`).
    ///
    /// ```
    /// use talea_notification::{Content, Event, EventType, Header, MappingFilter};
    /// use talea_etcl::Filterable;
    /// use talea_time::Instant;
    ///
    /// #[derive(Filterable)]
    /// struct Battery { charge: f64 }
    /// impl Content for Battery {}
    ///
    /// let mut priorities = MappingFilter::new().or(1);
    /// priorities.add_constraint::<Battery>(&[], "charge < 5", 9)?;
    /// priorities.add_constraint::<Battery>(&[], "charge < 20", 5)?;
    /// let of = |charge| Event::new(Header::new(EventType::new("Robot", "Battery")), Battery { charge });
    /// let priority = |charge| priorities.value(&of(charge), Instant::ZERO).0;
    /// assert_eq!([3.0, 11.5, 60.0].map(priority), [Some(9), Some(5), Some(1)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The text is no constraint, or can never be evaluated on a `T`, or the filter has as many as it may.
    pub fn add_constraint<T: Content + Filterable>(
        &mut self,
        types: &[TypePattern],
        text: &str,
        value: V,
    ) -> Result<ConstraintId, ConstraintError> {
        self.add_by(|filter| filter.add_constraint::<T>(types, text), value)
    }
}

/// What is wrong with the header of a structured event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderProblem {
    /// A property cannot be what it says.
    #[error("the property {property} in the header of the event {problem}")]
    Property {
        /// Its name.
        property: &'static str,
        /// What it is.
        problem: &'static str,
    },
    /// A limit of fields is exceeded.
    #[error("the header of the event is refused: {0}")]
    Field(#[from] FieldProblem),
}

impl HeaderProblem {
    /// The property that cannot be what it says, if that is the problem.
    pub fn property(&self) -> Option<&'static str> {
        match self {
            HeaderProblem::Property { property, .. } => Some(property),
            HeaderProblem::Field(_) => None,
        }
    }
}

impl Event {
    /// A structured event: its type is its domain and type name, and these properties of its header count, as in the standard: `Priority` (from
    /// -32767 to 32767), `Timeout` (in units of 100 ns), `EventReliability` (0 is best effort, 1 persistent), `StartTime` and `StopTime` (in units of
    /// 100 ns since 15 October 1582, UTC, which is [converted](crate::Header::at_wall_time) here once). Allocates.
    ///
    /// # Errors
    /// One of these has another kind of value, or one outside of its range, or the properties of the header exceed a limit of [fields](crate::HeaderFields).
    pub fn structured(event: talea_etcl::Event) -> Result<Self, HeaderProblem> {
        Event::structured_by(WallClock::now(), event)
    }

    /// The same with times by another clock on the wall than the machine's, which a simulation has.
    ///
    /// # Errors
    /// The same.
    pub fn structured_by(wall: WallClock, event: talea_etcl::Event) -> Result<Self, HeaderProblem> {
        let mut header = Header::new(EventType::new(event.domain_name(), event.type_name()));
        header.event_name =
            Some(event.event_name().into()).filter(|name: &std::sync::Arc<str>| !name.is_empty());
        let number = |property, problem| match event.variable_header().get(property) {
            None => Ok(None),
            Some(OwnedValue::Integer(number)) => Ok(Some(*number)),
            Some(_) => Err(HeaderProblem::Property { property, problem }),
        };
        let range = "is a number from -32767 to 32767";
        header.priority = match number("Priority", range)? {
            Some(number @ -32_767..=32_767) => Some(number as i16),
            Some(_) => return Err(HeaderProblem::Property { property: "Priority", problem: range }),
            None => None,
        };
        let time = |stated: StatedTime| {
            let problem = HeaderProblem::Property { property: stated.property, problem: stated.range };
            let property = event.variable_header().get(stated.property);
            property.map(|property| stated.read(property).ok_or(problem)).transpose()
        };
        header.timeout = time(StatedTime::TIMEOUT)?;
        header.reliability = match number("EventReliability", RELIABILITY)? {
            Some(0) => Some(Reliability::BestEffort),
            Some(1) => Some(Reliability::Persistent),
            Some(_) => {
                return Err(HeaderProblem::Property { property: "EventReliability", problem: RELIABILITY });
            }
            None => None,
        };
        header.start = time(StatedTime::START)?.map(|since| wall.instant_since_1970(since));
        header.stop = time(StatedTime::STOP)?.map(|since| wall.instant_since_1970(since));
        let event = Event::new(header, event);
        match event.header().fields.excess() {
            Some(problem) => Err(problem.clone().into()),
            None => Ok(event),
        }
    }
}

const RELIABILITY: &str = "is 0 (best effort) or 1 (persistent)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::HeaderFields;
    use std::time::SystemTime;

    /// Units of 100 ns from 15 October 1582 to the beginning of 1970, by the calendar: 141427 days.
    const UNIX_EPOCH_UTC: i64 = 141_427 * 86_400 * 10_000_000;
    use talea_etcl::Properties;
    use talea_linux::clock::MonotonicClock;
    use talea_time::Clock;

    #[derive(Filterable)]
    struct Alarm {
        level: i64,
        text: String,
        at: Option<f64>,
    }

    impl Content for Alarm {}

    fn alarm(level: i64, priority: Option<i16>) -> Event {
        let mut header = Header::new(EventType::new("Plant", "Alarm"));
        (header.priority, header.source) = (priority, 7);
        Event::new(header, Alarm { level, text: "pump hot".into(), at: None })
    }

    fn judged(text: &str, event: &Event) -> (bool, u64) {
        let filter = Filter::parse::<Alarm>(&[], text).expect("a constraint");
        let verdict = filter.judge(event, Instant::from_nanos(5));
        (verdict.matches, verdict.errors)
    }

    /// How many fields a header has is limited, so a name that is spelled out takes that many steps at most, whatever the event carries.
    #[test]
    fn filters_by_fields_of_the_header_have_a_bound_of_their_own() {
        let open = Filter::parse::<Alarm>(&[], "'hot' ~ text").expect("a constraint").longest();
        let bound = |filter: Result<Filter, ConstraintError>| filter.expect("a constraint").longest();
        let field = "$.header.variable_header(mission) == 7";
        let one = bound(Filter::parse::<Alarm>(&[], field));
        let steps = i64::from(FIELDS_MOST)..i64::from(FIELDS_MOST) + 8;
        assert!(steps.contains(&(one.as_nanos() / EVALUATION_STEP.as_nanos())), "{one}");
        assert_eq!(bound(Filter::parse::<talea_etcl::Event>(&[], field)), one);
        let two = bound(Filter::parse::<Alarm>(&[], &format!("{field} or {field}")));
        assert!(two > one && two + two < open, "{two}");
        // Names that are not spelled out are looked up in the body of a structured event, too, of which nothing is known.
        assert_eq!(bound(Filter::parse::<talea_etcl::Event>(&[], "mission == 7")), open);
        let full = (1..HeaderFields::MOST as i64).fold(HeaderFields::default(), |mut fields, field| {
            fields.set(&format!("f{field}"), field).expect("there is room");
            fields
        });
        let mut header = Header::new(EventType::new("Plant", "Alarm"));
        header.fields = full;
        header.fields.set("mission", 7).expect("the last one");
        let event = Event::new(header, Alarm { level: 1, text: String::new(), at: None });
        assert_eq!(judged(field, &event), (true, 0));
    }

    #[test]
    fn constraints_see_header_and_content() {
        let event = alarm(4, Some(-3));
        for text in [
            "",
            "level > 3 and 'hot' ~ text",
            "$domain_name == 'Plant' and $type_name == 'Alarm' and $event_name == ''",
            "$source == 7 and $priority < 0 and $curtime == 5",
            "not exist at",
        ] {
            assert_eq!(judged(text, &event), (true, 0), "{text}");
        }
        assert_eq!(judged("level > 4", &event), (false, 0));
        assert_eq!(judged("at > 1.0", &event), (false, 1));
        assert_eq!(judged("$priority < 0", &alarm(4, None)), (false, 1));
        // What carries something else does not match.
        let other = Event::new(
            Header::new(EventType::new("Plant", "Alarm")),
            talea_etcl::Event::new("Plant", "Alarm", ""),
        );
        assert_eq!(judged("level > 3", &other), (false, 1));
        let refused = Filter::parse::<Alarm>(&[], "level > 'three'").unwrap_err();
        assert!(matches!(refused, ConstraintError::Invalid(_)), "{refused}");
    }

    /// A comparison of texts may take as many steps as are allowed, one of numbers takes a few.
    #[test]
    fn the_longest_time_of_a_constraint_is_known() {
        let longest = |text: &str| Filter::parse::<Alarm>(&[], text).expect("a constraint").longest();
        let (few, more) = (longest("level > 3"), longest("level > 3 and level < 9"));
        assert!(few > Duration::ZERO && more > few && more < Duration::from_micros(1), "{few} {more}");
        assert_eq!(longest("'hot' ~ text"), EVALUATION_STEP * 4096);
        let both = Filter::parse::<Alarm>(&[], "level > 3").and_then(|mut filter| {
            filter.add_constraint::<Alarm>(&[], "level > 3 and level < 9")?;
            Ok(filter)
        });
        assert_eq!(both.expect("constraints").longest(), few + more);
    }

    #[test]
    fn structured_events_say_their_header_and_are_filtered_as_they_are() {
        let event = |priority: i64, timeout: i64| {
            let mut header = Properties::default();
            header.insert("Priority", priority);
            header.insert("Timeout", timeout);
            let mut data = Properties::default();
            data.insert("threshold", 15);
            let event = talea_etcl::Event::new("Plant", "Pump", "overload");
            Event::structured(event.with_variable_header(header).with_filterable_data(data))
        };
        let sound = event(9, 20_000).expect("sound");
        assert_eq!(
            (sound.header().priority, sound.header().timeout),
            (Some(9), Some(Duration::from_millis(2)))
        );
        let filter = Filter::parse::<talea_etcl::Event>(
            &[],
            "threshold < 20 and $event_name == 'overload' and Priority == 9",
        );
        assert!(filter.expect("a constraint").judge(&sound, Instant::ZERO).matches);
        assert_eq!(event(40_000, 0).unwrap_err().property(), Some("Priority"));
        assert_eq!(event(0, -1).unwrap_err().property(), Some("Timeout"));
    }

    #[test]
    fn reliability_and_wall_times_of_structured_events_count() {
        let event = |property: &str, value: i64| {
            let mut header = Properties::default();
            header.insert(property, value);
            Event::structured(talea_etcl::Event::new("Plant", "Pump", "").with_variable_header(header))
        };
        let reliability = |value| event("EventReliability", value).map(|event| event.header().reliability);
        assert_eq!(reliability(0), Ok(Some(Reliability::BestEffort)));
        assert_eq!(reliability(1), Ok(Some(Reliability::Persistent)));
        assert_eq!(reliability(2).unwrap_err().property(), Some("EventReliability"));
        // 2 s from now, in the calendar of the standard.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        let soon = UNIX_EPOCH_UTC + (now.as_nanos() / 100) as i64 + 20_000_000;
        let before = MonotonicClock.now();
        let event_soon = event("StartTime", soon).expect("sound");
        let start = event_soon.header().start.expect("it has one");
        let two_seconds = Duration::from_secs(2);
        // The wall clock may be set meanwhile, and the test be kept from running, but not for a minute.
        let error = start - before - two_seconds;
        assert!(error < two_seconds * 30 && -error < two_seconds * 30, "{error}");
        assert!(event("StopTime", soon).expect("sound").header().stop.is_some());
        for wrong in [-1, 0, UNIX_EPOCH_UTC - 1, i64::MAX] {
            assert_eq!(event("StopTime", wrong).unwrap_err().property(), Some("StopTime"), "{wrong}");
        }
    }

    /// Also spelled out, and as a bare name, of a structured event; and in virtual time.
    #[test]
    fn times_of_events_are_on_the_clock_of_the_current_time() {
        let (day, hour) = (86_400 * 10_000_000i64, 3_600 * 10_000_000i64);
        // In a simulation that begins at noon of the second day of 1970.
        let noon = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(36 * 3_600);
        let wall = WallClock::showing(noon, Instant::ZERO);
        let mut header = Properties::default();
        header.insert("StartTime", UNIX_EPOCH_UTC + day + 13 * hour);
        header.insert("StopTime", UNIX_EPOCH_UTC + day + 14 * hour);
        header.insert("Timeout", 20_000);
        let structured = talea_etcl::Event::new("Plant", "Pump", "").with_variable_header(header);
        let structured = Event::structured_by(wall, structured).expect("sound");
        let mut header = Header::new(EventType::new("Plant", "Alarm"));
        let at = |hours: i64| Instant::from_nanos(hours * 3_600_000_000_000);
        (header.start, header.stop) = (Some(at(1)), Some(at(2)));
        header.timeout = Some(Duration::from_millis(2));
        assert_eq!((structured.header().start, structured.header().stop), (header.start, header.stop));
        let typed = Event::new(header, Alarm { level: 1, text: String::new(), at: None });
        let none = alarm(1, None);
        let both = |text: &str, now: Instant| {
            let typed_too = Filter::parse::<Alarm>(&[], text).map(|filter| filter.judge(&typed, now));
            let structured =
                Filter::parse::<talea_etcl::Event>(&[], text).expect("a constraint").judge(&structured, now);
            if let Ok(typed_too) = typed_too {
                assert_eq!(typed_too, structured, "{text}");
            }
            assert_eq!(structured.errors, 0, "{text}");
            structured.matches
        };
        for start in ["$StartTime", "$.StartTime", "$.header.variable_header(StartTime)", "StartTime"] {
            let is_held = |now| both(&format!("{start} > $curtime"), now);
            assert!(is_held(Instant::ZERO) && !is_held(at(1)), "{start}");
            assert!(both(&format!("$curtime + 3600000000000 == {start}"), Instant::ZERO), "{start}");
        }
        let ends = "$StopTime - $curtime < $Timeout and $.header.variable_header(Timeout) == 2000000";
        let moment = |time: Duration| at(2) - time;
        assert!(
            !both(ends, moment(Duration::from_millis(2))) && both(ends, moment(Duration::from_millis(1)))
        );
        assert!(both("exist $.header.variable_header(StopTime)", at(0)));
        let bare = Filter::parse::<talea_etcl::Event>(&[], "exist StopTime").expect("a constraint");
        assert!(bare.judge(&structured, at(0)).matches);
        // What the header does not state is missing.
        assert_eq!(judged("$StartTime > 0", &none), (false, 1));
        assert_eq!(
            judged("not exist $StartTime and not exist $StopTime and not exist $Timeout", &none),
            (true, 0)
        );
        let refused = Filter::parse::<Alarm>(&[], "$StartTime == 'noon'").unwrap_err();
        assert!(matches!(refused, ConstraintError::Invalid(_)), "{refused}");
    }

    /// Of events with content of all kinds: with members that are known, with names that each event has, and structured.
    #[test]
    fn constraints_find_the_fields_of_the_header() {
        use crate::declared::SyntheticEvent;
        let header = || {
            let mut header = Header::new(EventType::new("Plant", "Alarm"));
            header.event_name = Some("left".into());
            header.priority = Some(-3);
            header.fields.set("mission", 7).expect("sound");
            header.fields.set("level", 9).expect("sound");
            header.fields.set("route", vec![3.into(), 5.into()]).expect("sound");
            header
        };
        let typed = Event::new(header(), Alarm { level: 4, text: "pump hot".into(), at: None });
        let synthetic = Event::new(header(), SyntheticEvent::default());
        let data = [("level", 4), ("size", 2)].into_iter().collect();
        let structured = talea_etcl::Event::new("Plant", "Alarm", "left")
            .with_variable_header([("mission", 1), ("old", 1)].into_iter().collect())
            .with_filterable_data(data);
        let structured = Event::new(header(), structured);
        assert!(structured.header().fields.is_empty(), "an event has one variable header");
        let names = |event: &Event| -> Vec<String> {
            event.variable_header().iter().map(|(name, _)| name.to_owned()).collect()
        };
        assert_eq!(names(&typed), ["mission", "level", "route"]);
        assert_eq!(names(&structured), ["mission", "old", "level", "route"]);
        for text in [
            "$.header.variable_header(mission) == 7 and 5 in $.header.variable_header(route)",
            "$.header.variable_header(level) == 9 and not exist $.header.variable_header(size)",
            "$.header.variable_header._length >= 3 and $.header.fixed_header.event_name == 'left'",
            "$.header.fixed_header.event_type.domain_name == 'Plant' and $.header.fixed_header.event_type.type_name == $type_name",
        ] {
            assert_eq!(judged(text, &typed), (true, 0), "{text}");
            for (event, filter) in [
                (&synthetic, Filter::parse::<SyntheticEvent>(&[], text)),
                (&structured, Filter::parse::<talea_etcl::Event>(&[], text)),
            ] {
                let verdict = filter.expect("a constraint").judge(event, Instant::ZERO);
                assert_eq!((verdict.matches, verdict.errors), (true, 0), "{text}");
            }
        }
        // A name that the type of the content has is its member; where nothing is known beforehand, the header goes first.
        assert_eq!(judged("level == 4 and $level == 4 and $.level == 4 and $.0 == 4", &typed), (true, 0));
        let of_short = |event: &Event, filter: Result<Filter, ConstraintError>| {
            filter.expect("a constraint").judge(event, Instant::ZERO).matches
        };
        for text in ["level == 9", "$level == 9", "$.level == 9 and mission == 7"] {
            assert!(of_short(&synthetic, Filter::parse::<SyntheticEvent>(&[], text)), "{text}");
            assert!(of_short(&structured, Filter::parse::<talea_etcl::Event>(&[], text)), "{text}");
        }
        assert_eq!(judged("$.header.variable_header(Priority) == -3", &typed), (true, 0));
        assert_eq!(judged("$.header.variable_header(missing) == 1", &typed), (false, 1));
        let refused = Filter::parse::<Alarm>(&[], "mission == 7").unwrap_err();
        let ConstraintError::Invalid(problem) = refused else { panic!("{refused}") };
        assert_eq!(
            problem.remedy,
            "its members are level, text, at; a field of the header is $.header.variable_header(mission)"
        );
    }

    /// Content that has a member of that name itself is what is meant.
    #[test]
    fn a_header_of_the_content_is_no_header_of_the_event() {
        #[derive(Filterable)]
        struct Inner {
            variable_header: i64,
        }
        #[derive(Filterable)]
        struct Packet {
            header: Inner,
        }
        impl Content for Packet {}
        let mut header = Header::new(EventType::new("Net", "Packet"));
        header.fields.set("a", 1).expect("sound");
        let event = Event::new(header, Packet { header: Inner { variable_header: 3 } });
        let filter = Filter::parse::<Packet>(&[], "$.header.variable_header == 3").expect("a constraint");
        assert!(filter.judge(&event, Instant::ZERO).matches);
    }

    #[test]
    fn the_header_of_a_structured_event_has_the_limits_of_fields() {
        let header = (0..257).map(|number| (format!("n{number}"), number as i64)).collect();
        let event = talea_etcl::Event::new("Plant", "Pump", "").with_variable_header(header);
        let refused = Event::structured(event).unwrap_err();
        assert_eq!(refused, HeaderProblem::Field(FieldProblem::TooMany));
        assert_eq!(
            refused.to_string(),
            "the header of the event is refused: a header has at most 256 fields"
        );
    }

    #[test]
    fn a_filter_has_a_limit() {
        let mut filter = Filter::new();
        for _ in 0..MOST_CONSTRAINTS {
            filter.add_constraint::<Alarm>(&[], "level > 3").expect("there is room");
        }
        assert!(matches!(filter.add_constraint::<Alarm>(&[], "level > 3"), Err(ConstraintError::TooMany)));
    }
}
