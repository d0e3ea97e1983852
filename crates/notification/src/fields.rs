//! The user's fields in the header of an event: the standard's variable header, without the properties that the service knows itself.

use std::any::Any;
use talea_etcl::{OwnedValue, Properties};
use talea_event::{FIELDS_BYTES_MOST, FIELDS_MOST, KNOWN_FIELDS};
use talea_wire::{Limits, properties_len, value_len};
use thiserror::Error;

/// Why a field is refused. The header is as it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldProblem {
    /// The service knows this property.
    #[error("{name} has a place of its own: set `{place}` of the header")]
    Known {
        /// The name.
        name: &'static str,
        /// The member of [`Header`](crate::Header) that it stands in.
        place: &'static str,
    },
    /// The name is empty or too long.
    #[error("the name of a field has {has} bytes, and may have from 1 to {}", Limits::default().name_bytes)]
    Name {
        /// Its bytes.
        has: usize,
    },
    /// There are as many fields as there may be.
    #[error("a header has at most {} fields", HeaderFields::MOST)]
    TooMany,
    /// All fields together would have too many bytes.
    #[error(
        "with {name} the fields of the header have {has} bytes, and may have {}: what is longer belongs into the content",
        HeaderFields::MOST_BYTES
    )]
    TooLarge {
        /// The field.
        name: String,
        /// Their bytes, as they are sent.
        has: usize,
    },
    /// Values within values.
    #[error("the value of {name} has more than {} values within each other", Limits::default().depth)]
    TooDeep {
        /// The field.
        name: String,
    },
}

/// The user's fields in the header of an event: pairs of a name and a value, in the order in which they were set first. Names differ.
///
/// They go where the header goes, also as bytes, and constraints find them by `$.header.variable_header(name)` whatever the event carries. An event that
/// is made with them can be read with the limits that [decoding](talea_wire::Limits) has by default.
///
/// ```
/// use talea_notification::{Content, Event, EventType, Filter, Filterable, Header};
/// use talea_time::Instant;
///
/// #[derive(Filterable)]
/// struct Battery { charge: f64 }
/// impl Content for Battery {}
///
/// let mut header = Header::new(EventType::new("Robot", "Battery"));
/// header.fields.set("mission", 7)?;
/// let event = Event::new(header, Battery { charge: 11.5 });
/// let filter = Filter::parse::<Battery>(&[], "charge < 20 and $.header.variable_header(mission) == 7")?;
/// assert!(filter.judge(&event, Instant::ZERO).matches);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeaderFields {
    properties: Properties,
    excess: Option<Box<FieldProblem>>,
}

impl HeaderFields {
    /// As many as there can be.
    pub const MOST: usize = FIELDS_MOST as usize;
    /// As many bytes as all have together, as they are sent.
    pub const MOST_BYTES: usize = FIELDS_BYTES_MOST;

    /// Gives the field this value, in place of the one that it had. Does not allocate if it had one, but for what the value itself allocates.
    ///
    /// # Errors
    /// The name is one that the service knows, or a limit is exceeded.
    pub fn set(&mut self, name: &str, value: impl Into<OwnedValue>) -> Result<(), FieldProblem> {
        if let Some((name, place)) = KNOWN_FIELDS.into_iter().find(|(known, _)| *known == name) {
            return Err(FieldProblem::Known { name, place });
        }
        let value = value.into();
        let before = self.properties.get(name);
        let count = self.properties.len() + usize::from(before.is_none());
        let had = properties_len(&self.properties) - before.map_or(0, value_len);
        let name_len = if before.is_none() { name.len() + 2 } else { 0 };
        allow(name, &value, count, had + name_len + value_len(&value))?;
        self.properties.insert(name, value);
        Ok(())
    }

    /// The same of a field that the validation of a description has allowed and bounded. Of structured content, which has fields of its own, limits are
    /// looked at again when the event is pushed.
    pub(crate) fn put_allowed(&mut self, name: &str, value: impl Into<OwnedValue>) {
        self.properties.insert(name, value.into());
    }

    /// The value of the field of this name.
    pub fn get(&self, name: &str) -> Option<&OwnedValue> {
        self.properties.get(name)
    }

    /// Removes the field of this name; what it had.
    pub fn remove(&mut self, name: &str) -> Option<OwnedValue> {
        self.properties.remove(name)
    }

    /// Removes all fields.
    pub fn clear(&mut self) {
        self.properties.clear();
    }

    /// As properties, in their order.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.properties.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    /// How many bytes they have as they are sent; 0 if there are none.
    pub(crate) fn bytes(&self) -> usize {
        if self.is_empty() { 0 } else { properties_len(&self.properties) }
    }

    /// Those of a message that are not known otherwise.
    pub(crate) fn received(properties: &Properties) -> Self {
        let is_users = |(name, _): &(&str, &OwnedValue)| KNOWN_FIELDS.iter().all(|(known, _)| known != name);
        let fields = properties.iter().filter(is_users).map(|(name, value)| (name, value.clone()));
        let properties: Properties = fields.collect();
        HeaderFields { excess: excess(&properties), properties }
    }

    /// The event is complete. Content that has a variable header itself has them from now on, in place of fields of the same names there, for an event has one
    /// variable header; what is in `settled` is needed to [take them back](Self::take_back). Says for good what exceeds a [limit](Self::excess).
    pub(crate) fn complete(&mut self, content: &mut impl Any, settled: &mut Settled) {
        let content: &mut dyn Any = content;
        match content.downcast_mut::<talea_etcl::Event>() {
            Some(event) => {
                settled.extend(std::mem::take(&mut self.properties).into_pairs().map(|(name, value)| {
                    let before = event.set_in_header(&name, value);
                    (name, before)
                }));
                self.excess = excess(event.variable_header());
            }
            // Each field was looked at when it was set, unless they came from elsewhere.
            None if self.excess.is_some() => self.excess = excess(&self.properties),
            None => {}
        }
    }

    /// The event is to be used again: the header has its fields, and the content is as it was before these were moved there.
    pub(crate) fn take_back(&mut self, content: &mut impl Any, settled: &mut Settled) {
        let content: &mut dyn Any = content;
        let Some(event) = content.downcast_mut::<talea_etcl::Event>() else { return };
        for (name, before) in settled.drain(..) {
            let value = match before {
                Some(before) => event.set_in_header(&name, before),
                None => event.remove_from_header(&name),
            };
            if let Some(value) = value {
                self.properties.insert(&name, value);
            }
        }
    }

    /// What exceeds a limit in the header of an event that is complete: of fields that came as bytes, whose reader had wider limits, and of a structured event,
    /// into which anything can be put. Suppliers refuse to push such an event.
    pub(crate) fn excess(&self) -> Option<&FieldProblem> {
        self.excess.as_deref()
    }
}

/// Fields that were moved into structured content, each with what that had under its name.
pub(crate) type Settled = Vec<(Box<str>, Option<OwnedValue>)>;

/// What exceeds a limit in a variable header.
fn excess(variable_header: &Properties) -> Option<Box<FieldProblem>> {
    if variable_header.is_empty() {
        return None;
    }
    let bytes = properties_len(variable_header);
    let mut allowed =
        variable_header.iter().map(|(name, value)| allow(name, value, variable_header.len(), bytes));
    allowed.find_map(Result::err).map(Box::new)
}

/// Whether there may be this field among so many of so many bytes, itself with them.
fn allow(name: &str, value: &OwnedValue, count: usize, has: usize) -> Result<(), FieldProblem> {
    let limits = Limits::default();
    if !(1..=limits.name_bytes).contains(&name.len()) {
        return Err(FieldProblem::Name { has: name.len() });
    }
    if count > HeaderFields::MOST {
        return Err(FieldProblem::TooMany);
    }
    if !is_within(value, limits.depth) {
        return Err(FieldProblem::TooDeep { name: name.into() });
    }
    if has > HeaderFields::MOST_BYTES {
        return Err(FieldProblem::TooLarge { name: name.into(), has });
    }
    Ok(())
}

/// Whether it has no more than so many values within each other, itself counted.
fn is_within(value: &OwnedValue, depth: usize) -> bool {
    let Some(inner) = depth.checked_sub(1) else { return false };
    let all = |properties: &Properties| properties.iter().all(|(_, value)| is_within(value, inner));
    match value {
        OwnedValue::Sequence(values) => values.iter().all(|value| is_within(value, inner)),
        OwnedValue::List(properties) => all(properties),
        OwnedValue::Struct(members) => all(&members.members),
        OwnedValue::Union(union) => {
            let mut values = union.selectors.iter().chain([&union.discriminator, &union.value]);
            values.all(|value| is_within(value, inner))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_limits_and_what_is_refused_changes_nothing() {
        let mut fields = HeaderFields::default();
        fields.set("mission", 7).expect("sound");
        fields.set("mission", "home").expect("replaced");
        let before = fields.clone();
        let nested = |depth: usize| {
            (1..depth).fold(OwnedValue::Integer(1), |inner, _| OwnedValue::Sequence(vec![inner]))
        };
        let long = "x".repeat(HeaderFields::MOST_BYTES);
        for (name, value, problem) in [
            ("Timeout", 5.into(), "Timeout has a place of its own: set `timeout` of the header"),
            ("", 5.into(), "the name of a field has 0 bytes, and may have from 1 to 255"),
            (&*"n".repeat(256), 5.into(), "the name of a field has 256 bytes, and may have from 1 to 255"),
            (
                "map",
                OwnedValue::from(&*long),
                "with map the fields of the header have 16408 bytes, and may have 16384: what is longer belongs into the content",
            ),
            ("deep", nested(17), "the value of deep has more than 16 values within each other"),
        ] {
            assert_eq!(fields.set(name, value).unwrap_err().to_string(), problem);
            assert_eq!(fields, before);
        }
        fields.set("deep", nested(16)).expect("as deep as may be");
        (2..HeaderFields::MOST).for_each(|number| {
            fields.set(&format!("n{number}"), number as i64).expect("there is room");
        });
        assert_eq!(fields.set("one more", 1), Err(FieldProblem::TooMany));
        fields.set("mission", 8).expect("it is there");
        assert_eq!(fields.remove("deep"), Some(nested(16)));
        fields.set("one more", 1).expect("there is room");
        assert_eq!(
            (fields.len(), fields.get("mission")),
            (HeaderFields::MOST, Some(&OwnedValue::Integer(8)))
        );
    }

    /// The limit of bytes is that of the bytes that are sent: a text as long as fits is allowed, and one byte more is not.
    /// To the byte.
    #[test]
    fn what_a_description_may_have_is_allowed_of_events() {
        let parsed = |last: usize| {
            let name = |number: usize| {
                let length = if number == 255 { last } else { 52 };
                format!("f{number}{}", "x".repeat(length - 1 - number.to_string().len()))
            };
            let fields: Vec<String> =
                (0..256).map(|number| format!("{} = {}", name(number), i64::MIN)).collect();
            let text = format!(
                "[system]\nname = 's'\n[[channel]]\nname = 'c'\n[[task]]\nname = 't'\nperiod = '10ms'\nwcet = '1ms'\n\
                 events = [{{ channel = 'c', type = 'A/B', header_fields = {{ {} }} }}]\n",
                fields.join(", ")
            );
            talea_model::parse("t.toml", &text, ".".as_ref())
        };
        let most = parsed(50).expect("it is as large as it may be");
        assert!(parsed(51).expect_err("one byte more").to_string().contains("16385 bytes"));
        let described = &most.system.tasks[0].subtasks[0].events[0].header_fields;
        let mut properties = Properties::default();
        described.iter().for_each(|field| _ = properties.insert(&field.name, i64::MIN));
        assert_eq!(excess(&properties), None);
        assert_eq!(properties_len(&properties), HeaderFields::MOST_BYTES);
    }

    #[test]
    fn bytes_are_counted_as_they_are_sent() {
        let text = |bytes: usize| OwnedValue::from("x".repeat(bytes));
        let longest = (0..HeaderFields::MOST_BYTES)
            .rev()
            .find(|bytes| HeaderFields::default().set("a", text(*bytes)).is_ok());
        let longest = longest.expect("short ones are");
        let mut fields = HeaderFields::default();
        fields.set("a", text(longest)).expect("it fits");
        assert!(HeaderFields::MOST_BYTES - fields.bytes() <= 1, "{} bytes", fields.bytes());
        fields.set("a", text(longest)).expect("what is replaced does not count");
        assert!(fields.set("b", true).is_err());
    }
}
