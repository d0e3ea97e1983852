//! Events with header and body.

use crate::body::{Body, Encoding, value_bytes};
use crate::limits::Limits;
use crate::problem::{Problem, WireError};
use crate::read::Reader;
use crate::values::write_value;
use crate::values::{read_properties, write_properties};
use crate::write::{NoRoom, Writer};
use std::borrow::Cow;
use talea_etcl::Properties;
use talea_event::qos::Reliability;
use talea_time::{Duration, Instant};

const MARK: [u8; 2] = *b"TE";
/// The version that is written, and read.
pub const VERSION: u8 = 1;

const EVENT_NAME: u16 = 1 << 0;
const SOURCE: u16 = 1 << 1;
const PRIORITY: u16 = 1 << 2;
const TIMEOUT: u16 = 1 << 3;
const START: u16 = 1 << 4;
const STOP: u16 = 1 << 5;
const RELIABILITY: u16 = 1 << 6;
const ORIGIN: u16 = 1 << 7;
const VARIABLE_HEADER: u16 = 1 << 8;
const FILTERABLE_DATA: u16 = 1 << 9;
const KNOWN: u16 = (1 << 10) - 1;

/// The job that has pushed an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// As what it was published, by number.
    pub publication: u32,
    /// The number of the operation.
    pub operation: u32,
    /// The instance of the job.
    pub instance: u64,
}

/// What every event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The domain of its type.
    pub domain: &'a str,
    /// The name of its type in the domain.
    pub type_name: &'a str,
    /// Which event of its type it is; empty if it does not say.
    pub event_name: &'a str,
    /// Who it comes from; 0 if it does not say.
    pub source: u32,
    /// Its priority, greater is more urgent.
    pub priority: Option<i16>,
    /// How long after its push it is worth being delivered; 0 or more.
    pub timeout: Option<Duration>,
    /// It is not delivered before this, on the sender's CLOCK_MONOTONIC.
    pub start: Option<Instant>,
    /// It is not delivered after this, on the same clock.
    pub stop: Option<Instant>,
    /// Whether it is to survive the end of processes.
    pub reliability: Option<Reliability>,
    /// Who pushed it, if that is what a description says.
    pub origin: Option<Origin>,
}

impl<'a> Header<'a> {
    /// One with nothing but a type.
    pub fn new(domain: &'a str, type_name: &'a str) -> Self {
        Header {
            domain,
            type_name,
            event_name: "",
            source: 0,
            priority: None,
            timeout: None,
            start: None,
            stop: None,
            reliability: None,
            origin: None,
        }
    }
}

/// An event to be written, or as it was read.
///
/// ```
/// use talea_wire::{Body, Header, Limits, Message};
///
/// let mut battery = Message::new(Header::new("Robot", "Battery"), Body::raw(&[11, 5]));
/// battery.header.priority = Some(7);
/// let mut bytes = [0; 64];
/// let written = battery.encode_into(&mut bytes)?;
/// assert_eq!(bytes[..written], *b"TE\x01\x04\x00\x0f\x05Robot\x07Battery\x0e\x01\x02\x0b\x05");
/// assert_eq!(Message::decode(&bytes[..written], &Limits::default())?, battery);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'a> {
    /// What every event says.
    pub header: Header<'a>,
    /// Properties in the header of structured events.
    pub variable_header: Cow<'a, Properties>,
    /// Properties by which structured events are filtered.
    pub filterable_data: Cow<'a, Properties>,
    /// The rest.
    pub body: Body<'a>,
}

impl<'a> Message<'a> {
    /// An event without properties.
    pub fn new(header: Header<'a>, body: Body<'a>) -> Self {
        let none = || Cow::Owned(Properties::default());
        Message { header, variable_header: none(), filterable_data: none(), body }
    }

    fn flags(&self) -> u16 {
        let Header { event_name, source, priority, timeout, start, stop, reliability, origin, .. } =
            &self.header;
        [
            (EVENT_NAME, !event_name.is_empty()),
            (SOURCE, *source != 0),
            (PRIORITY, priority.is_some()),
            (TIMEOUT, timeout.is_some()),
            (START, start.is_some()),
            (STOP, stop.is_some()),
            (RELIABILITY, reliability.is_some()),
            (ORIGIN, origin.is_some()),
            (VARIABLE_HEADER, !self.variable_header.is_empty()),
            (FILTERABLE_DATA, !self.filterable_data.is_empty()),
        ]
        .into_iter()
        .filter(|(_, is_there)| *is_there)
        .fold(0, |flags, (flag, _)| flags | flag)
    }

    fn write_header(&self, writer: &mut Writer<'_>) {
        let header = &self.header;
        writer.text(header.domain);
        writer.text(header.type_name);
        if !header.event_name.is_empty() {
            writer.text(header.event_name);
        }
        if header.source != 0 {
            writer.number(u64::from(header.source));
        }
        if let Some(priority) = header.priority {
            writer.signed(i64::from(priority));
        }
        if let Some(timeout) = header.timeout {
            writer.number(timeout.as_nanos().max(0).unsigned_abs());
        }
        [header.start, header.stop].into_iter().flatten().for_each(|at| writer.signed(at.as_nanos()));
        if let Some(reliability) = header.reliability {
            writer.byte(u8::from(reliability == Reliability::Persistent));
        }
        if let Some(Origin { publication, operation, instance }) = header.origin {
            writer.number(u64::from(publication));
            writer.number(u64::from(operation));
            writer.number(instance);
        }
        [&self.variable_header, &self.filterable_data]
            .into_iter()
            .filter(|properties| !properties.is_empty())
            .for_each(|properties| write_properties(writer, properties));
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(&MARK);
        writer.byte(VERSION);
        writer.bytes(&self.flags().to_le_bytes());
        writer.number(Writer::count(|writer| self.write_header(writer)) as u64);
        self.write_header(writer);
        self.body.write(writer);
    }

    /// How many bytes it has. The time is in proportion to these.
    pub fn encoded_len(&self) -> usize {
        Writer::count(|writer| self.write(writer))
    }

    /// Writes it, without allocating, and returns how many bytes it has.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn encode_into(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        let mut writer = Writer::new(out);
        self.write(&mut writer);
        writer.finish()
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.encoded_len()];
        self.write(&mut Writer::new(&mut bytes));
        bytes
    }

    /// Reads an event, which borrows what it can. Allocates for properties alone.
    ///
    /// # Errors
    /// What is wrong with the bytes, and where.
    pub fn decode(bytes: &'a [u8], limits: &Limits) -> Result<Self, WireError> {
        let most = limits.bytes;
        if bytes.len() > most {
            let problem = Problem::Limit { what: "bytes of an event", has: bytes.len(), most };
            return Err(WireError { at: 0, problem });
        }
        let mut reader = Reader::new(bytes, *limits);
        if reader.array("the mark")? != MARK {
            return Err(WireError { at: 0, problem: Problem::Mark });
        }
        let version = reader.byte("the version")?;
        if version != VERSION {
            return Err(WireError { at: 2, problem: Problem::Version(version) });
        }
        let flags = u16::from_le_bytes(reader.array("the flags")?);
        if flags & !KNOWN != 0 {
            return Err(WireError { at: 3, problem: Problem::Flags(flags & !KNOWN) });
        }
        let at = reader.at();
        let said = reader.count(most, "the length of the header")?;
        let began = reader.at();
        let header = read_header(&mut reader, flags)?;
        let properties = |reader: &mut Reader<'a>, flag, what| match flags & flag {
            0 => Ok(Cow::Owned(Properties::default())),
            _ => {
                let at = reader.at();
                let properties = read_properties(reader, 0)?;
                match properties.is_empty() {
                    true => Err(WireError { at, problem: Problem::Empty(what) }),
                    false => Ok(Cow::Owned(properties)),
                }
            }
        };
        let variable_header = properties(&mut reader, VARIABLE_HEADER, "the variable header")?;
        let filterable_data = properties(&mut reader, FILTERABLE_DATA, "the filterable data")?;
        let has = reader.at() - began;
        if has != said {
            return Err(WireError { at, problem: Problem::HeaderLength { said, has } });
        }
        let body = Body::read(&mut reader)?;
        match reader.left() {
            0 => Ok(Message { header, variable_header, filterable_data, body }),
            left => Err(reader.problem(Problem::Trailing(left))),
        }
    }

    /// A structured event with this type and these properties. Its body is the remainder, if it is a value; bodies of other kinds are for who knows
    /// them. Allocates.
    ///
    /// # Errors
    /// The body says that it is a value, and is none.
    pub fn to_structured(&self, limits: &Limits) -> Result<talea_etcl::Event, crate::BodyProblem> {
        let Header { domain, type_name, event_name, .. } = self.header;
        let event = talea_etcl::Event::new(domain, type_name, event_name)
            .with_variable_header(Properties::clone(&self.variable_header))
            .with_filterable_data(Properties::clone(&self.filterable_data));
        match self.body.encoding {
            Encoding::Value => Ok(event.with_remainder_of_body(self.body.value(limits)?)),
            _ => Ok(event),
        }
    }

    /// The remainder of a structured event's body as bytes, to be its message's body. Allocates.
    pub fn remainder(event: &talea_etcl::Event) -> Option<Vec<u8>> {
        event.remainder_of_body().map(value_bytes)
    }

    /// Writes the same, or nothing if there is none; returns how many bytes. Does not allocate.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn remainder_into(event: &talea_etcl::Event, to: &mut [u8]) -> Result<usize, NoRoom> {
        let Some(value) = event.remainder_of_body() else { return Ok(0) };
        let mut writer = Writer::new(to);
        write_value(&mut writer, value);
        writer.finish()
    }
}

fn read_header<'a>(reader: &mut Reader<'a>, flags: u16) -> Result<Header<'a>, WireError> {
    let has = |flag: u16| flags & flag != 0;
    let mut header = Header::new(reader.name("the domain")?, reader.name("the type")?);
    if has(EVENT_NAME) {
        let at = reader.at();
        header.event_name = reader.name("the name of the event")?;
        if header.event_name.is_empty() {
            return Err(WireError { at, problem: Problem::Empty("the name of the event") });
        }
    }
    if has(SOURCE) {
        header.source = reader.number_in(1..=u64::from(u32::MAX), "the source")? as u32;
    }
    if has(PRIORITY) {
        let at = reader.at();
        let priority = i16::try_from(reader.signed("the priority")?);
        header.priority =
            Some(priority.map_err(|_| WireError { at, problem: Problem::Range("the priority") })?);
    }
    if has(TIMEOUT) {
        let timeout = reader.number_in(..=i64::MAX.unsigned_abs(), "the timeout")?;
        header.timeout = Some(Duration::from_nanos(timeout as i64));
    }
    if has(START) {
        header.start = Some(Instant::from_nanos(reader.signed("the start")?));
    }
    if has(STOP) {
        header.stop = Some(Instant::from_nanos(reader.signed("the stop")?));
    }
    if has(RELIABILITY) {
        let persistent = reader.number_in(0..=1, "the reliability")? == 1;
        header.reliability = Some(if persistent { Reliability::Persistent } else { Reliability::BestEffort });
    }
    if has(ORIGIN) {
        let mut number = |what| reader.number_in(..=u64::from(u32::MAX), what);
        let (publication, operation) = (number("the publication")? as u32, number("the operation")? as u32);
        header.origin = Some(Origin { publication, operation, instance: reader.number("the instance")? });
    }
    Ok(header)
}
