//! Trace: what a run writes, and everything that is computed from it.
//!
//! A run, simulated or real, is a stream of [`Record`]s in the order of time, and [`Metadata`] that say
//! what the numbers in them mean. Whatever takes records is a [`Sink`].
//!
//! | Room | What it does |
//! |---|---|
//! | [`ring`] | per-thread rings in a shared file: one writer, any number of readers, crash-proof |
//! | [`stream`] | rings of a live process: families, switches, consumers, where to find them |
//! | [`event`] | what records say: every event with typed fields, declared once |
//! | [`log`] | a complete trace in one file |
//! | [`namespace`] | families of events, by number and name, and what their words mean |
//! | [`merge`] | several rings, and the kernel's events, as one stream |
//! | [`kernel`] | the kernel's own events: switches, wake-ups, interrupts, system calls, names |
//! | [`read`] | opens either kind of file |
//! | [`damage`] | what in it cannot be, and is left out |
//! | [`recording`] | several processes and the kernel, followed from outside, as one log |
//! | [`contents`] | what a trace holds at all |
//! | [`told`] | what it can tell, and what was not recorded |
//! | [`accounting`] | what the run achieved |
//! | [`schedule`] | who ran where and when |
//! | [`explain`] | why a job took as long as it did |
//! | [`machine`] | who used the processors, where there is no system |
//! | [`usage`] | what the processors' time went into |
//! | [`promises`] | which guarantees of hierarchies were broken |
//! | [`verify`] | whether the policy was obeyed |
//! | [`export`], [`show`] | the trace for other programs and for people |

#![deny(unsafe_code)]

pub mod accounting;
pub mod contents;
pub mod damage;
pub mod event;
pub mod explain;
pub mod export;
pub mod kernel;
mod layout;
pub mod log;
pub mod machine;
#[expect(unsafe_code, reason = "a mapped file is memory that only this module can vouch for")]
mod mapping;
pub mod merge;
mod metadata;
pub mod namespace;
mod occupancy;
pub mod promises;
pub mod read;
mod record;
pub mod recording;
pub mod ring;
pub mod schedule;
pub mod show;
pub mod stream;
pub mod told;
pub mod usage;
pub mod verify;

pub use accounting::{Accounting, Report, Samples};
pub use contents::Contents;
pub use damage::Damage;
pub use event::{
    CostKind, InterruptKind, RunOutcome, SkipReason, ThreadRole, Typed, ViolationSide, WakeContext,
};
pub use export::csv::export_csv;
pub use export::ctf::{CtfError, CtfExport, CtfSummary};
pub use export::parquet::{ParquetError, ParquetExport};
pub use export::perfetto::PerfettoExport;
pub use kernel::{KernelError, KernelOptions, KernelSource, KernelStream};
pub use log::{LogError, LogWriter};
pub use machine::Machine;
pub use merge::{AnySource, Merge, RecordSource};
pub use metadata::*;
pub use namespace::NameSpace;
pub use promises::Promises;
pub use read::{Records, Replayed, TraceError, TraceFile, TraceKind};
pub use record::{Event, JobId, Record};
pub use ring::{CreateError, RingFile, RingReader, RingShape, RingState, RingWriter};
pub use schedule::{Runner, ScheduleCsv, Segment, Segments};
pub use show::{Listing, format_record};
pub use told::Told;
pub use usage::Usage;

/// Whatever takes records as they happen: a ring, a file, the accounting, or several of them.
pub trait Sink {
    /// Takes one record. Records of one writer come in the order of their time.
    fn record(&mut self, record: Record);
}

/// Every sink in turn.
impl<A: Sink, B: Sink> Sink for (A, B) {
    #[inline]
    fn record(&mut self, record: Record) {
        self.0.record(record);
        self.1.record(record);
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    #[inline]
    fn record(&mut self, record: Record) {
        (**self).record(record);
    }
}

impl Sink for Vec<Record> {
    fn record(&mut self, record: Record) {
        self.push(record);
    }
}
