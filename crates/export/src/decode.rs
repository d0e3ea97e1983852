//! A record in words: what every table and listing shows of it.
//!
//! Numbers become names where the metadata or the format have them. Instants count from [`Metadata::start`], as the
//! record's own time does; the instant 0, with which events say "none", is absent (in virtual time, whose runs start
//! at 0, it is an instant like any other).

use super::table::EventTable;
use super::threads::Writers;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::{self, Write as _};
use talea_record::declaration::{Field, FieldKind, Part, Value};
use talea_record::event::{JobOrNone, Meaning, WordType};
use talea_record::{Definition, EdgeEntry, Event, EventParts, JobId, Metadata, NameSpace, Record};
use talea_text::is_hidden;
use talea_time::{Duration, Instant};

/// A field's value as tables show it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shown<'a> {
    /// There is none.
    Absent,
    /// A number without sign.
    Unsigned(u64),
    /// A number with sign; nanoseconds from the start, or of a length of time.
    Signed(i64),
    /// A number with a fraction.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A text, or the name of what a number stands for.
    Text(Cow<'a, str>),
}

/// The type of a field's [`Shown`] values, besides [`Shown::Absent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ShownKind {
    Unsigned,
    Signed,
    Float,
    Bool,
    Text,
}

/// Decodes records against one name space.
#[derive(Debug)]
pub(crate) struct Decoder {
    metadata: Metadata,
    events: EventTable<Declared>,
    /// As of the latest record that was shown or [learnt from](Decoder::learn).
    writers: RefCell<Writers>,
    /// Likewise, of the event that comes next.
    parts: RefCell<EventParts>,
}

/// A declared event.
#[derive(Debug)]
pub(crate) struct Declared {
    /// Name of its family.
    pub family: String,
    /// Its name.
    pub name: String,
    /// Its number.
    pub event: Event,
    fields: Vec<(Field, Meaning)>,
    has_long: bool,
}

/// A record, as far as it is the same for all events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row<'a> {
    /// Nanoseconds from the start.
    pub time_ns: i64,
    /// The event's name, or its number if no family declares it.
    pub event: Cow<'a, str>,
    /// Its family's name, if one declares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<&'a str>,
    /// Node it happened on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<&'a str>,
    /// Processor it happened on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u16>,
    /// Label of the lane it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<&'a str>,
    /// Task of the job it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<&'a str>,
    /// Name of the job's operation within its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subtask: Option<&'a str>,
    /// Number of the job's instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
    /// Nominal release of the job, from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_ns: Option<i64>,
    /// Deadline of the job, from the start, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<i64>,
    /// Process of the thread that wrote an event of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
}

impl Decoder {
    /// A decoder for a run's records.
    pub fn new(metadata: &Metadata, names: &NameSpace) -> Self {
        let declared = names.families().iter().flat_map(|family| {
            family.events.iter().map(|entry| {
                let event = family.event(entry);
                let fields = entry.fields.iter().map(|field| (field.clone(), event.meaning(&field.name)));
                let (family, name) = (family.name.clone().into_owned(), entry.name.clone().into_owned());
                let has_long = entry.fields.iter().any(|field| field.kind.bound().is_some());
                (event, Declared { family, name, event, fields: fields.collect(), has_long })
            })
        });
        let (events, metadata) = (EventTable::new(declared), metadata.clone());
        Decoder { events, metadata, writers: RefCell::default(), parts: RefCell::default() }
    }

    /// The same, which knows these threads.
    pub fn knowing(mut self, writers: Writers) -> Self {
        self.writers = writers.into();
        self
    }

    /// The threads that are known.
    pub fn into_writers(self) -> Writers {
        self.writers.into_inner()
    }

    /// Learns from a record that is not shown, but comes before those that are.
    pub fn learn(&self, record: &Record) {
        self.writers.borrow_mut().learn(record);
        // A part that does not follow the others leaves their event without bytes.
        self.parts.borrow_mut().learn(record);
    }

    /// The bytes of the record's long field; `None` if it has none, or some of them are missing.
    pub fn long(&self, record: &Record) -> Option<Vec<u8>> {
        let has_long = self.event(record.event).is_some_and(|declared| declared.has_long);
        has_long.then(|| self.parts.borrow().of(record).map(<[u8]>::to_vec)).flatten()
    }

    /// Takes what was defined meanwhile.
    pub fn define(&mut self, definition: &Definition) {
        self.metadata.define(definition);
    }

    /// The run's tables.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Every declared event.
    #[cfg(feature = "parquet")]
    pub fn declared(&self) -> &[Declared] {
        self.events.values()
    }

    /// The event's declaration.
    pub fn event(&self, event: Event) -> Option<&Declared> {
        self.events.get(event)
    }

    /// Process and thread that wrote an event of a program, if they are known.
    pub fn writer(&self, record: &Record) -> (Option<u32>, Option<u32>) {
        self.writers.borrow().of(record).map(|writer| (writer.pid, writer.tid)).unzip()
    }

    /// What all events have. Records are to be given in their order.
    pub fn row(&self, record: &Record) -> Row<'_> {
        self.learn(record);
        let (pid, tid) = self.writer(record);
        let metadata = &self.metadata;
        let declared = self.event(record.event);
        let job = record.event.is_about_job().then(|| record.job_numbers());
        let operation =
            job.and_then(|(operation, _)| metadata.operations.get(operation).zip(Some(operation)));
        Row {
            time_ns: since(record.time, metadata.start),
            event: declared.map_or_else(
                || format!("{:#06x}", record.event.0).into(),
                |declared| declared.name.as_str().into(),
            ),
            family: declared.map(|declared| declared.family.as_str()),
            node: node_name(metadata, record),
            cpu: (record.cpu != Record::NO_CPU).then_some(record.cpu),
            lane: lane_label(metadata, record),
            task: operation.map(|(entry, _)| metadata.tasks[entry.task].name.as_str()),
            subtask: operation.map(|(_, index)| metadata.subtask_name(index)),
            job: job.map(|(_, instance)| instance),
            release_ns: record.dates().map(|dates| since(dates.nominal, metadata.start)),
            deadline_ns: record.deadline().map(|deadline| since(deadline, metadata.start)),
            pid,
            tid,
        }
    }
}

impl Declared {
    /// Names and types of its fields.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, ShownKind)> {
        self.fields.iter().map(|(field, meaning)| (field.name.as_ref(), kind(field.kind, *meaning)))
    }

    /// The values of its fields in `record`, whose long field has these bytes, in the same order.
    pub fn values<'a>(
        &'a self,
        metadata: &'a Metadata,
        record: &'a Record,
        long: Option<&'a [u8]>,
    ) -> impl Iterator<Item = (&'a str, Shown<'a>)> {
        let values = self.fields.iter();
        values.map(move |(field, meaning)| {
            (field.name.as_ref(), shown(metadata, field, *meaning, record, long))
        })
    }
}

impl Declared {
    /// The fields that [`Row`] does not have.
    fn beside_row(&self) -> impl Iterator<Item = &(Field, Meaning)> {
        let in_row = |field: &Field, meaning: Meaning| {
            matches!(meaning, Meaning::Node | Meaning::Lane)
                || (self.event.is_about_job()
                    && field.kind == FieldKind::Job
                    && field.place.part == Part::Causal)
        };
        self.fields.iter().filter(move |(field, meaning)| !in_row(field, *meaning))
    }

    /// Names and types of the fields that [`Row`] does not have.
    #[cfg(feature = "parquet")]
    pub fn kinds_beside_row(&self) -> impl Iterator<Item = (&str, ShownKind)> {
        self.beside_row().map(|(field, meaning)| (field.name.as_ref(), kind(field.kind, *meaning)))
    }

    /// Their values in `record`, in the same order.
    #[cfg(feature = "parquet")]
    pub fn values_beside_row<'a>(
        &'a self,
        metadata: &'a Metadata,
        record: &'a Record,
        long: Option<&'a [u8]>,
    ) -> impl Iterator<Item = Shown<'a>> {
        self.beside_row().map(move |(field, meaning)| shown(metadata, field, *meaning, record, long))
    }

    /// The fields in words, without those that [`Row`] has; instants in seconds from the start.
    pub fn for_people<'a>(
        &'a self,
        metadata: &'a Metadata,
        record: &'a Record,
        long: Option<&'a [u8]>,
    ) -> impl Iterator<Item = (&'a str, String)> {
        let others = self.beside_row();
        others.map(move |(field, meaning)| {
            let value = match (shown(metadata, field, *meaning, record, long), field.kind) {
                (Shown::Absent, _) => "-".to_owned(),
                (Shown::Signed(ns), FieldKind::Instant) => format!("{:.9}s", ns as f64 / 1e9),
                (Shown::Signed(ns), FieldKind::Duration) => Duration::from_nanos(ns).rounded().to_string(),
                (Shown::Text(text), FieldKind::Text | FieldKind::LongText(_)) => format!("{text:?}"),
                (Shown::Unsigned(tid), _) if *meaning == Meaning::Thread => {
                    thread_text(metadata, tid, record.time)
                }
                (value, _) => value.to_string(),
            };
            (field.name.as_ref(), value)
        })
    }
}

fn kind(kind: FieldKind, meaning: Meaning) -> ShownKind {
    match (kind, meaning) {
        (
            _,
            Meaning::Node
            | Meaning::Lane
            | Meaning::Operation
            | Meaning::Edge
            | Meaning::Output
            | Meaning::Input
            | Meaning::Publication
            | Meaning::JobOrNone
            | Meaning::Code(_),
        ) => ShownKind::Text,
        (FieldKind::U64 | FieldKind::U32 | FieldKind::U16 | FieldKind::U8, _) => ShownKind::Unsigned,
        (FieldKind::F64 | FieldKind::F32, _) => ShownKind::Float,
        (FieldKind::Bool, _) => ShownKind::Bool,
        (
            FieldKind::Job
            | FieldKind::Text
            | FieldKind::Bytes8
            | FieldKind::Bytes16
            | FieldKind::LongText(_)
            | FieldKind::LongBytes(_),
            _,
        ) => ShownKind::Text,
        _ => ShownKind::Signed,
    }
}

/// A field's value, of the type that [`kind`] says.
fn shown<'a>(
    metadata: &'a Metadata,
    field: &Field,
    meaning: Meaning,
    record: &Record,
    long: Option<&[u8]>,
) -> Shown<'a> {
    match field.value(record, long) {
        Value::Unsigned(number) => match meaning {
            Meaning::Number | Meaning::Deadline | Meaning::Job | Meaning::Flag | Meaning::Thread => {
                Shown::Unsigned(number)
            }
            named => named_value(metadata, named, number),
        },
        Value::Signed(number) | Value::Duration(number) => Shown::Signed(number),
        Value::Instant(_) if meaning == Meaning::Deadline && record.deadline().is_none() => Shown::Absent,
        Value::Instant(0) if metadata.start != Instant::ZERO => Shown::Absent,
        Value::Instant(ns) => Shown::Signed(since(Instant::from_nanos(ns), metadata.start)),
        Value::Float(number) => Shown::Float(number),
        Value::Bool(value) => Shown::Bool(value),
        Value::Job(job) if job.pack() == u64::MAX => Shown::Absent,
        Value::Job(job) => Shown::Text(job_text(metadata, job).into()),
        Value::Text(text) => Shown::Text(text.into()),
        bytes @ (Value::Bytes(_) | Value::CutBytes(_)) => Shown::Text(bytes.to_string().into()),
        Value::Missing => Shown::Absent,
    }
}

/// The name of what `number` stands for, or the number as text.
fn named_value(metadata: &Metadata, meaning: Meaning, number: u64) -> Shown<'_> {
    let index = usize::try_from(number).unwrap_or(usize::MAX);
    let name = match meaning {
        Meaning::Lane if number == u64::from(Record::NO_LANE) => return Shown::Absent,
        Meaning::Lane => metadata.lanes.get(index).map(|lane| lane.label.as_str()),
        Meaning::Node => metadata.nodes.get(index).map(|node| node.name.as_str()),
        Meaning::Operation => metadata.operations.get(index).map(|operation| operation.name.as_str()),
        Meaning::Edge if number == u64::from(Record::NO_EDGE) => return Shown::Absent,
        Meaning::Edge => {
            let name = metadata.edges.get(index).map(EdgeEntry::name);
            return Shown::Text(name.unwrap_or_else(|| number.to_string()).into());
        }
        Meaning::Output => metadata.outputs.get(index).map(|output| output.name.as_str()),
        Meaning::Input => metadata.inputs.get(index).map(|input| input.name.as_str()),
        Meaning::Publication if number == u64::from(u32::MAX) => return Shown::Absent,
        Meaning::Publication => metadata.publications.get(index).map(|publication| publication.name.as_str()),
        Meaning::Code(codes) => codes.label(number),
        Meaning::JobOrNone => {
            let JobOrNone(job) = JobOrNone::from_bits(number);
            return job.map_or(Shown::Absent, |job| Shown::Text(job_text(metadata, job).into()));
        }
        Meaning::Number | Meaning::Deadline | Meaning::Job | Meaning::Flag | Meaning::Thread => None,
    };
    Shown::Text(name.map_or_else(|| number.to_string().into(), Cow::Borrowed))
}

/// `4711 (ffmpeg)` of a thread that was defined, else its number.
pub(crate) fn thread_text(metadata: &Metadata, tid: u64, time: Instant) -> String {
    let defined = u32::try_from(tid).ok().and_then(|tid| metadata.thread(tid, time));
    defined.map_or_else(|| tid.to_string(), |thread| format!("{tid} ({})", thread.name))
}

/// `nav.filter#12`.
fn job_text(metadata: &Metadata, job: JobId) -> String {
    match metadata.operations.get(job.operation.index()) {
        Some(operation) => format!("{}#{}", operation.name, job.instance),
        None => format!("{}#{}", job.operation.index(), job.instance),
    }
}

/// The lane that a record is about, by its index.
pub(crate) fn lane_of(metadata: &Metadata, record: &Record) -> Option<usize> {
    record.lane().filter(|lane| *lane < metadata.lanes.len())
}

/// The node that a record is about, by its index.
pub(crate) fn node_of(metadata: &Metadata, record: &Record) -> Option<usize> {
    let node = match record.node() {
        Some(node) => node,
        None => metadata.lanes[lane_of(metadata, record)?].node,
    };
    (node < metadata.nodes.len()).then_some(node)
}

pub(crate) fn node_name<'a>(metadata: &'a Metadata, record: &Record) -> Option<&'a str> {
    Some(&metadata.nodes[node_of(metadata, record)?].name)
}

pub(crate) fn lane_label<'a>(metadata: &'a Metadata, record: &Record) -> Option<&'a str> {
    Some(&metadata.lanes[lane_of(metadata, record)?].label)
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Absent => Ok(()),
            Shown::Unsigned(value) => value.fmt(f),
            Shown::Signed(value) => value.fmt(f),
            Shown::Float(value) => value.fmt(f),
            Shown::Bool(value) => value.fmt(f),
            Shown::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for Shown<'_> {
    /// As the JSON value of its type; numbers that JSON does not have as text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Shown::Absent => serializer.serialize_none(),
            Shown::Unsigned(value) => serializer.serialize_u64(*value),
            Shown::Signed(value) => serializer.serialize_i64(*value),
            Shown::Float(value) if value.is_finite() => serializer.serialize_f64(*value),
            Shown::Float(value) => serializer.collect_str(value),
            Shown::Bool(value) => serializer.serialize_bool(*value),
            Shown::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// Appends `name=value;name=value`, with a backslash before `;`, `=` and backslashes in names and values, and `\n`,
/// `\r` for ends of lines.
pub(crate) fn push_pairs<'a>(text: &mut String, pairs: impl Iterator<Item = (&'a str, Shown<'a>)>) {
    for (index, (name, value)) in pairs.enumerate() {
        if index > 0 {
            text.push(';');
        }
        push_escaped(text, name);
        text.push('=');
        match value {
            Shown::Text(value) => push_escaped(text, &value),
            value => write!(text, "{value}").expect("text grows"),
        }
    }
}

fn push_escaped(text: &mut String, plain: &str) {
    for c in plain.chars() {
        match c {
            ';' | '=' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            c if is_hidden(c) => text.extend(c.escape_unicode()),
            c => text.push(c),
        }
    }
}

/// `later - earlier` in nanoseconds; records of damaged files may be centuries apart.
pub(crate) fn since(later: Instant, earlier: Instant) -> i64 {
    later.as_nanos().saturating_sub(earlier.as_nanos())
}
