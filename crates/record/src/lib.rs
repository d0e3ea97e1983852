//! What a run writes, and how it is read.
//!
//! A run, simulated or real, is a stream of [`Record`]s in the order of time, and [`Metadata`] that say
//! what the numbers in them mean. Whatever takes records is a [`Sink`].
//!
//! | Module | What it does |
//! |---|---|
//! | [`event`] | what records say: every event with typed fields, declared once |
//! | [`declaration`] | families of events, and what their words mean |
//! | [`namespace`] | the families of a trace, by number and name |
//! | [`ring`] | per-thread rings in a shared file: one writer, any number of readers, crash-proof |
//! | [`stream`] | rings of a live process: families, switches, consumers, where to find them |
//! | [`log`] | a complete trace in one file |
//! | [`merge`] | several sources of records as one stream |
//! | [`read`] | opens either kind of file |
//! | [`damage`] | what in it cannot be, and is left out |
//! | [`difference`] | what its tables and those of a description disagree about |
//! | [`contents`] | what a trace holds at all |
//! | [`values`] | bytes of values in records, and back |
//! | [`recorded_events`] | what it can tell, and what was not recorded |

#![deny(unsafe_code)]

mod connections;
pub mod contents;
pub mod damage;
pub mod decisions;
pub mod declaration;
mod definition;
pub mod difference;
mod directory;
pub mod event;
mod layout;
mod live;
pub mod log;
#[expect(unsafe_code, reason = "a mapped file is memory that only this module can vouch for")]
mod mapping;
pub mod merge;
mod metadata;
pub mod namespace;
pub mod parts;
mod passive;
pub mod read;
mod record;
pub mod recorded_events;
pub mod ring;
mod selection;
pub mod stream;
mod suggestion;
mod threads;
pub mod values;
mod written;

pub use connections::{
    ChainEntry, CountedValues, HopEntry, InputEntry, OutputEntry, PublicationEntry, ReleasedBy, ReleasesEntry,
};
pub use contents::Contents;
pub use damage::Damage;
pub use definition::{Definition, EdgeNumbers, THREADS_DEFINED_MAX};
pub use event::{
    CallOutcome, ChangeAuthor, ChangeKind, ChangeReason, CostKind, DropReason, EventLossReason,
    InterruptKind, LossCause, LossReason, MemberRole, PostOutcome, Question, RunOutcome, SkipReason,
    ThreadRole, Trigger, Typed, ValueLoss, ViolationSide, WakeContext,
};
pub use layout::TraceError;
pub use log::{LogError, LogWriter};
pub use merge::{Merge, RecordSource};
pub use metadata::*;
pub use namespace::NameSpace;
pub use parts::EventParts;
pub use read::{Records, Replayed, TraceFile, TraceKind};
pub use record::{Event, JobId, Record};
pub use recorded_events::{AskedEvents, RecordedEvents};
pub use ring::{CreateError, RingFile, RingReader, RingShape, RingState, RingWriter};
pub use threads::{KnownThread, KnownThreads};

/// Whatever takes records as they happen: a ring, a file, the accounting, or several of them.
pub trait Sink {
    /// Takes one record. Records of one writer come in the order of their time.
    fn record(&mut self, record: Record);

    /// Takes what comes to the tables while a run lasts, before the first record that has its number. Who has tables of its own, or hands records on to
    /// others that have some, says what it does with that; all others need not know.
    fn define(&mut self, definition: &Definition) {
        _ = definition;
    }
}

/// Every sink in turn.
impl<A: Sink, B: Sink> Sink for (A, B) {
    #[inline]
    fn record(&mut self, record: Record) {
        self.0.record(record);
        self.1.record(record);
    }

    fn define(&mut self, definition: &Definition) {
        self.0.define(definition);
        self.1.define(definition);
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    #[inline]
    fn record(&mut self, record: Record) {
        (**self).record(record);
    }

    fn define(&mut self, definition: &Definition) {
        (**self).define(definition);
    }
}

impl Sink for Vec<Record> {
    fn record(&mut self, record: Record) {
        self.push(record);
    }
}
