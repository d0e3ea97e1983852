//! Records that cannot be, and logs that are not what was written: recognised in one place, before anybody computes with
//! them.
//!
//! A **log** is sealed: after every few hundred records, and at its end, stands a checksum of what came since the last one
//! and of the tables before (see [`crate::log`]). So no changed bit goes unnoticed, but nobody can say which record of a
//! stretch it is in. A **record that cannot be** is told by itself and by its neighbours, in logs and in rings: an event that
//! no family declares, a job, lane, node or edge that the tables do not have, a processor beyond every machine's, a time that
//! neither fits what came before nor what comes next. Such records are left out and counted; what is left is delivered.
//!
//! What a record may say and yet not have happened, such as a job that ends twice, is no damage: `verify` of `talea-insight` finds it.

mod rules;

use crate::declaration::Extent;
use crate::event::RunEnd;
use crate::{Event, EventParts, Record, RunOutcome};
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;
use talea_time::{Duration, Instant};

pub(crate) use rules::Rules;

/// Records of one file are at most so much out of order; what comes later was held up by nothing that recorders know.
pub(crate) const DISORDER: Duration = Duration::from_secs(10);
/// A last record that nothing confirms is at most so much behind the one before.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3600);

/// What is wrong with a trace file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Records that nobody can have written. They are left out.
    pub impossible: u64,
    /// The first of them.
    #[serde(serialize_with = "as_text")]
    pub first: Option<(Place, Fault)>,
    /// Stretches of a log whose checksum is not that of their records. What can be is delivered all the same.
    pub altered: u64,
    /// The first of them, in bytes of the file.
    pub first_altered: Option<(u64, u64)>,
    /// Bytes of a last record that is not whole; it is left out.
    pub cut_bytes: u64,
    /// Whether a log ends as its writer ends one.
    pub ending: Ending,
    /// Nodes whose runs were cut off, because their processes were gone before they ended: nothing is wrong with the file,
    /// and the latest that they did is missing.
    pub cut_off: u64,
}

/// Whether a file ends as its writer ends one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It does, or it has no end, as rings.
    #[default]
    Whole,
    /// Its writer is still at work, or was ended by others, or the file was cut off.
    Open,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At this byte of a log.
    Byte(u64),
    /// In the ring of this number of a file of rings.
    Ring(u16),
}

/// Why a record cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No family declares this event.
    Event(Event),
    /// The tables have no operation of this index.
    Operation(usize),
    /// The instance of this number had not arrived by then.
    Instance(u64),
    /// The tables have no lane, node or edge of this index, or the kernel's number stands for another source.
    Source(u16),
    /// No machine has a processor of this number.
    Processor(u16),
    /// Its time does not fit those of its neighbours, or is before the run.
    Time(Instant),
    /// A word or argument has a value that the event does not know.
    Value,
    /// A part of a long field does not follow the one before, or stands before no event that has one.
    Part,
    /// Parts of the event's long field are missing.
    Parts,
}

impl Damage {
    /// Whether there is any, an open end of the file or of the run not counted.
    pub fn is_none(&self) -> bool {
        self.impossible == 0 && self.altered == 0 && self.cut_bytes == 0
    }

    /// A sentence for each kind of damage, without the file's name.
    pub fn sentences(&self) -> Vec<String> {
        let mut told = Vec::new();
        if let Some((place, fault)) = self.first {
            let (records, are) = match self.impossible {
                1 => ("record", "is"),
                _ => ("records", "are"),
            };
            told.push(format!(
                "{} {records} cannot be and {are} left out, the first {place}: {fault}",
                self.impossible
            ));
        }
        if let Some((from, to)) = self.first_altered {
            let (stretches, have) = match self.altered {
                1 => ("stretch of records has", "it is"),
                _ => ("stretches of records have", "the first is"),
            };
            told.push(format!(
                "{} {stretches} another checksum than when written, so what follows from them is in doubt; {have} bytes \
                 {from} to {to}",
                self.altered
            ));
        }
        match (self.cut_bytes, self.ending) {
            (0, Ending::Whole) => {}
            (0, Ending::Open) => told.push(
                "it does not end as its writer ends it: the writer was cut off or is still at work, so the latest records \
                 may be missing"
                    .into(),
            ),
            (cut, _) => told.push(format!("the last {cut} bytes are part of a record; the writer was cut off")),
        }
        if self.cut_off > 0 {
            let what = match self.cut_off {
                1 => "the run was cut off: its process was gone".to_owned(),
                nodes => format!("the runs of {nodes} nodes were cut off: their processes were gone"),
            };
            told.push(format!("{what} before it had ended, so what was under way then has no end"));
        }
        told
    }

    /// What is wrong with both of two parts of a file.
    pub(crate) fn and(mut self, other: &Damage) -> Self {
        self.impossible += other.impossible;
        self.first = self.first.or(other.first);
        self.cut_off += other.cut_off;
        self
    }

    /// A record that is delivered.
    pub(crate) fn pass(&mut self, record: &Record) {
        if RunEnd::read(record).is_some_and(|end| end.how == RunOutcome::CutOff) {
            self.cut_off += 1;
        }
    }

    pub(crate) fn note(&mut self, place: Place, fault: Fault) {
        self.impossible += 1;
        self.first.get_or_insert((place, fault));
    }
}

fn as_text<S: Serializer>(first: &Option<(Place, Fault)>, serializer: S) -> Result<S::Ok, S::Error> {
    first.map(|(place, fault)| format!("{place}: {fault}")).serialize(serializer)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Byte(byte) => write!(f, "at byte {byte}"),
            Place::Ring(ring) => write!(f, "in ring {ring}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Event(event) => write!(f, "no family declares event {:#06x}", event.0),
            Fault::Operation(index) => write!(f, "the tables have no operation {index}"),
            Fault::Instance(number) => write!(f, "instance {number} had not arrived by then"),
            Fault::Source(source) => write!(f, "its event cannot be from source {source}"),
            Fault::Processor(cpu) => write!(f, "no machine has a processor {cpu}"),
            Fault::Time(time) => write!(f, "its time, {} ns, does not fit the others", time.as_nanos()),
            Fault::Value => f.write_str("it has a value that its event does not know"),
            Fault::Part => {
                f.write_str("it is a part of a long field without the others, or without its event")
            }
            Fault::Parts => f.write_str("parts of its long field are missing"),
        }
    }
}

/// Tells the records of one source that cannot be from the others.
#[derive(Debug)]
pub(crate) struct Screen {
    rules: Arc<Rules>,
    latest: Option<Instant>,
    parts: EventParts,
    /// Whether parts before the record that was checked last have no event.
    has_parts_alone: bool,
}

impl Screen {
    pub fn new(rules: &Arc<Rules>) -> Self {
        let (rules, parts) = (Arc::clone(rules), EventParts::default());
        Screen { rules, latest: None, parts, has_parts_alone: false }
    }

    /// What is wrong with the next record of a source, `ahead` of which stands another one, if that is known.
    pub fn check(&mut self, record: &Record, ahead: Option<Record>) -> Option<Fault> {
        let fault = self.rules.check(record).or_else(|| self.misplaced(record, ahead));
        let fault = fault.or_else(|| self.torn(record));
        if fault.is_none() {
            self.latest = self.latest.max(Some(record.time));
        }
        fault
    }

    /// Whether parts are missing before the record. Others may stand between a part and what it is a part of.
    fn torn(&mut self, record: &Record) -> Option<Fault> {
        self.has_parts_alone = false;
        if record.is_part() {
            let had_some = self.parts.has_any();
            let follows = self.parts.learn(record);
            self.has_parts_alone = had_some && follows && self.parts.is_first();
            return (!follows).then_some(Fault::Part);
        }
        if !self.rules.has_long(record.event) {
            return None;
        }
        let is_whole = self.parts.of(record).is_some();
        // Without any bytes there are no parts.
        self.has_parts_alone = self.parts.has_any() && Extent::from_bits(record.arg).bytes() == 0;
        self.parts.forget();
        (!is_whole).then_some(Fault::Parts)
    }

    /// Notes in `damage` what is wrong with parts that stand before the record at `place`, which was checked last: they have no event.
    pub fn note_parts_alone(&mut self, place: Place, damage: &mut Damage) {
        if std::mem::take(&mut self.has_parts_alone) {
            damage.note(place, Fault::Part);
        }
    }

    /// Whether its time fits neither what came before nor what comes next.
    fn misplaced(&self, record: &Record, ahead: Option<Record>) -> Option<Fault> {
        let time = record.time;
        let fault = Some(Fault::Time(time));
        let is_much_later = |a: Instant, b: Instant| a > b.saturating_add(DISORDER);
        if time < Instant::ZERO {
            return fault;
        }
        let Some(latest) = self.latest else {
            return fault.filter(|_| ahead.is_some_and(|ahead| is_much_later(time, ahead.time)));
        };
        if is_much_later(latest, time) {
            return fault;
        }
        match ahead {
            // The one after it goes on where the one before it was.
            Some(ahead) => {
                fault.filter(|_| is_much_later(time, ahead.time) && !is_much_later(latest, ahead.time))
            }
            None if record.event == Event::RUN_END => None,
            None => fault.filter(|_| time > latest.saturating_add(LONGEST_PAUSE)),
        }
    }
}
