//! What holds of any bytes, whoever sends them as an event: tests draw bytes for it, and so does the fuzz target `event_message`.

use allocation_counter::measure;
use std::collections::BTreeSet;
use std::fmt::Debug;
use talea_etcl::{Event, OwnedValue, Properties};
use talea_wire::{Body, BodyProblem, Encoding, Limits, Message, Problem, WireError};

/// Limits of which each has one that many events are beyond.
fn narrow() -> [Limits; 4] {
    let wide = Limits::default();
    [
        Limits { bytes: 60, ..wide },
        Limits { name_bytes: 5, ..wide },
        Limits { properties: 1, ..wide },
        Limits { depth: 1, ..wide },
    ]
}

/// Bytes of memory for each byte of an event, and beside these: a list's first part is made room for before it is read, one for each level.
const MEMORY_PER_BYTE: u64 = 160;
const MEMORY: u64 = 512 << 10;

/// Reads them as an event, and as a value, within usual limits and narrower ones.
///
/// # Panics
/// Something is not as the crate says.
pub fn hold(bytes: &[u8]) {
    hold_event(bytes);
    if let Err(WireError { at, problem: Problem::HeaderLength { said, has } }) =
        Message::decode(bytes, &Limits::default())
    {
        // With the length that it is said to have, the length of its header is right.
        let repaired = [&bytes[..at], &number(has), &bytes[at + number(said).len()..]].concat();
        let error = hold_event(&repaired);
        assert!(!matches!(error, Some(Problem::HeaderLength { .. })), "{bytes:x?} repaired: {error:?}");
    }
    hold_value(bytes);
}

/// A number as events have it.
fn number(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// An event that has exactly these bytes, or a problem that it returns.
fn hold_event(bytes: &[u8]) -> Option<Problem> {
    let narrow = narrow().map(|limits| (Message::decode(bytes, &limits), limits));
    let message = match in_proportion(bytes, || Message::decode(bytes, &Limits::default())) {
        Ok(message) => message,
        Err(error) => {
            told(bytes, &error);
            let is_refused = narrow.iter().all(|(read, _)| read.is_err());
            assert!(is_refused, "{bytes:x?}: narrower limits accept what wider ones do not: {error}");
            return Some(error.problem);
        }
    };
    let mut extent = Extent::default();
    extent.message(&message);
    for (read, limits) in narrow {
        let is_within = extent.is_within(bytes, &limits);
        match read {
            Ok(read) => {
                assert!(is_within, "{bytes:x?} is accepted within {limits:?} with {extent:?}");
                // As text, so that a floating-point number that is none equals itself.
                assert_eq!(format!("{read:?}"), format!("{message:?}"));
            }
            Err(error) => {
                let is_of_limits = matches!(error.problem, Problem::Limit { .. });
                assert!(is_of_limits && !is_within, "{bytes:x?} within {limits:?}: {error} of {extent:?}");
            }
        }
    }
    assert_eq!(message.encode(), bytes, "{message:?}");
    assert_eq!(message.encoded_len(), bytes.len(), "{message:?}");
    let mut room = vec![0; bytes.len()];
    assert_eq!(message.encode_into(&mut room), Ok(bytes.len()), "{message:?}");
    assert_eq!(room, bytes, "{message:?}");
    let refused = message.encode_into(&mut room[1..]).expect_err("a byte is missing");
    assert_eq!((refused.needed, refused.room), (bytes.len(), bytes.len() - 1));
    hold_body(&message);
    None
}

/// What is read of a body is in proportion to it, and is refused with words where it is nothing.
fn hold_body(message: &Message<'_>) {
    let Body { encoding, bytes } = message.body;
    match message.to_structured(&Limits::default()) {
        Ok(event) => {
            assert_eq!(event.domain_name(), message.header.domain);
            let remainder = Message::remainder(&event);
            let expected = (encoding == Encoding::Value).then_some(bytes);
            assert_eq!(remainder.as_deref(), expected, "{message:?}");
        }
        Err(problem) => {
            assert!(encoding == Encoding::Value && !problem.to_string().is_empty(), "{message:?}");
        }
    }
    let read = in_proportion(bytes, || message.body.read_as::<Vec<(String, u32)>>());
    match (read, encoding) {
        (Err(problem), _) => assert!(!problem.to_string().is_empty()),
        (Ok(_), Encoding::Json | Encoding::Postcard | Encoding::Cdr) => {}
        (Ok(value), other) => panic!("{other} is read as {value:?}"),
    }
}

/// A value that has exactly these bytes, or a problem.
fn hold_value(bytes: &[u8]) {
    let body = Body { encoding: Encoding::Value, bytes };
    let narrow = narrow().map(|limits| (body.value(&limits), limits));
    match in_proportion(bytes, || body.value(&Limits::default())) {
        Ok(value) => {
            let mut extent = Extent::default();
            extent.value(&value, 1);
            for (read, limits) in narrow {
                // Bytes are limited as a whole in events alone.
                match extent.is_within(&[], &limits) {
                    true => assert!(
                        read.is_ok() || bytes.len() > limits.bytes,
                        "{bytes:x?}: {read:?} of {extent:?}"
                    ),
                    false => {
                        assert!(read.is_err(), "{bytes:x?} is accepted within {limits:?} with {extent:?}")
                    }
                }
            }
            assert_eq!(talea_wire::value_len(&value), bytes.len(), "{value:?}");
            let event = Event::new("d", "t", "").with_remainder_of_body(value);
            assert_eq!(Message::remainder(&event).as_deref(), Some(bytes), "{event:?}");
        }
        Err(BodyProblem::Wire(error)) => {
            told(bytes, &error);
            let is_refused = narrow.iter().all(|(read, _)| read.is_err());
            assert!(is_refused, "{bytes:x?}: narrower limits accept what wider ones do not: {error}");
        }
        Err(other) => panic!("{bytes:x?}: {other}"),
    }
}

fn told(bytes: &[u8], error: &WireError) {
    assert!(error.at <= bytes.len() && !error.to_string().is_empty(), "{bytes:x?}: {error:?}");
}

/// What is read of the bytes, with no more memory at once than in proportion to them.
fn in_proportion<T: Debug>(bytes: &[u8], read: impl FnOnce() -> T) -> T {
    let mut value = None;
    let used = measure(|| value = Some(read()));
    let most = MEMORY + MEMORY_PER_BYTE * bytes.len() as u64;
    assert!(used.bytes_max <= most, "{} bytes of memory for {}: {bytes:x?}", used.bytes_max, bytes.len());
    value.expect("it was read")
}

/// How large an event is, counted from outside.
#[derive(Debug, Default)]
struct Extent {
    name_bytes: usize,
    properties: usize,
    depth: usize,
}

impl Extent {
    fn is_within(&self, bytes: &[u8], limits: &Limits) -> bool {
        bytes.len() <= limits.bytes
            && self.name_bytes <= limits.name_bytes
            && self.properties <= limits.properties
            && self.depth <= limits.depth
    }

    fn name(&mut self, name: &str) {
        self.name_bytes = self.name_bytes.max(name.len());
    }

    fn message(&mut self, message: &Message<'_>) {
        let header = &message.header;
        [header.domain, header.type_name, header.event_name].into_iter().for_each(|name| self.name(name));
        if let Encoding::Named(name) = message.body.encoding {
            self.name(name);
        }
        self.properties(&message.variable_header, 0);
        self.properties(&message.filterable_data, 0);
    }

    fn properties(&mut self, properties: &Properties, depth: usize) {
        self.properties = self.properties.max(properties.len());
        differ(properties.iter().map(|(name, _)| name));
        for (name, value) in properties.iter() {
            self.name(name);
            self.value(value, depth + 1);
        }
    }

    fn value(&mut self, value: &OwnedValue, depth: usize) {
        self.depth = self.depth.max(depth);
        let names = |extent: &mut Self, names: [&Option<String>; 2]| {
            names.into_iter().flatten().for_each(|name| extent.name(name));
        };
        match value {
            OwnedValue::Sequence(elements) => {
                elements.iter().for_each(|element| self.value(element, depth + 1));
            }
            OwnedValue::List(properties) => self.properties(properties, depth),
            OwnedValue::Struct(value) => {
                names(self, [&value.type_name, &value.repository_id]);
                self.properties(&value.members, depth);
            }
            OwnedValue::Enum(label) => {
                use talea_etcl::Node as _;
                [label.type_name(), label.repository_id()]
                    .into_iter()
                    .flatten()
                    .for_each(|name| self.name(name));
                self.properties = self.properties.max(label.len());
                let names = || (0..label.len()).filter_map(|place| label.name_at(place));
                differ(names());
                names().for_each(|name| self.name(name));
            }
            OwnedValue::Union(union) => {
                names(self, [&union.type_name, &union.repository_id]);
                self.name(&union.member);
                self.value(&union.discriminator, depth + 1);
                union.selectors.iter().for_each(|selector| self.value(selector, depth + 1));
                self.value(&union.value, depth + 1);
            }
            OwnedValue::Boolean(_)
            | OwnedValue::Integer(_)
            | OwnedValue::Unsigned(_)
            | OwnedValue::Float(_)
            | OwnedValue::Text(_) => {}
        }
    }
}

/// No name is there twice.
fn differ<'n>(names: impl Iterator<Item = &'n str>) {
    let names: Vec<&str> = names.collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), distinct.len(), "{names:?}");
}
