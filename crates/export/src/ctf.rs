//! Export in the Common Trace Format 1.8 (<https://diamon.org/ctf/v1.8.3/>), which babeltrace2 and Trace Compass read.
//!
//! An export is a folder of one stream file per processor, one for what happened on none (such as the beginning of a
//! run, or a loss), and the metadata that describe them. Streams of processors are what Trace Compass builds its
//! views from and what LTTng writes; readers merge the streams by time. Nodes that number their processors alike
//! share their streams; events of lanes name the node.
//!
//! | Records have | The export has |
//! |---|---|
//! | family and event | an event `family:event`; kernel events have LTTng's names and fields, see `kernel` |
//! | typed fields | members of these types; a job is two, `_operation` and `_instance` |
//! | the thread that wrote an event of a program | members `vpid` and `vtid` of the event, -1 where it is not known |
//! | lanes, nodes, operations, codes | enumerations with their names |
//! | [`Record::causal`](talea_record::Record::causal) | a member `causal` of program's own events that do not declare it |
//! | [`Lost`] | the event, and `events_discarded` of its stream's packets |
//! | an event that no family declares | `undeclared:0x…` with the raw words |
//! | a deadline | the instant, 2⁶³-1 (`no_deadline` in the environment) of a job that has none |
//! | time | a clock in nanoseconds, with the origin of CLOCK_MONOTONIC or of virtual time |
//!
//! Where the log has the offset that makes dates of CLOCK_MONOTONIC ([`Metadata::realtime_offset_ns`]), the clock has it, too.
//! Instants among the fields are on the same clock, without the offset. Names that TSDL cannot hold are made legal, and different.
//! The metadata come last, so that a folder in which an export was cut off cannot be taken for a whole one.

mod kernel;
mod layout;
mod packets;
mod text;
mod tsdl;

use super::table::EventTable;
use super::threads::Threads;
use layout::Layout;
use packets::{Streams, is_stream_file};
use std::io;
use std::path::{Path, PathBuf};
use talea_record::event::{Lost, builtin};
use talea_record::{Definition, EventParts, Metadata, NameSpace, Record, Sink};
use thiserror::Error;
use tsdl::Domain;

const METADATA: &str = CtfExport::METADATA;
/// What the metadata of every export have.
const SIGNATURE: &[u8] = b"tracer_name = \"talea\";";

/// Writes a CTF trace from records in the order of time.
#[derive(Debug)]
pub struct CtfExport {
    folder: PathBuf,
    metadata: Metadata,
    /// Declared events, and those met so far that no family declares.
    layouts: EventTable<Layout>,
    threads: Threads,
    parts: EventParts,
    streams: Streams,
    domain: Domain,
    records: u64,
    /// The first failure, after which nothing more is written.
    failure: Option<io::Error>,
}

/// What became of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CtfSummary {
    /// Events written, one for each record that is not a part of one.
    pub events: u64,
    /// Events that came behind a later one of their stream, or before the origin of the clock. The format cannot say
    /// so: they carry the time of the event before them, or 0.
    pub raised: u64,
}

/// Why an export failed.
#[derive(Debug, Error)]
pub enum CtfError {
    /// The folder holds something that is not an earlier export. Nothing was changed.
    #[error(
        "{} holds \"{file}\", and readers take every file in a trace's folder for a part of the trace; \
         choose a new or an empty folder", folder.display()
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// Something in it.
        file: String,
    },
    /// The folder cannot be made, or an earlier export in it cannot be read or removed.
    #[error("cannot prepare the folder {}: {source}", folder.display())]
    Prepare {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing failed. What is in the folder lacks its metadata and is no trace.
    #[error(
        "cannot write the trace into {} ({source}); what is there now is incomplete", folder.display()
    )]
    Write {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl CtfExport {
    /// The file that makes a folder of streams a trace.
    pub const METADATA: &str = "metadata";

    /// Whether an export may go to `folder`: there is none yet, or it is empty, or has an earlier export and nothing else.
    ///
    /// # Errors
    /// [`CtfError::Occupied`], or [`CtfError::Prepare`] if it cannot be read or is no folder.
    pub fn check(folder: &Path) -> Result<(), CtfError> {
        match earlier(folder) {
            Err(CtfError::Prepare { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(()),
            found => found.map(|_| ()),
        }
    }

    /// Begins an export into `folder`, which is made if it is not there and replaces an earlier export in it. An export
    /// that fails has lost the earlier one: to keep it, export to another place and rename.
    ///
    /// # Errors
    /// [`CtfError::Occupied`] or [`CtfError::Prepare`].
    pub fn create(folder: &Path, metadata: &Metadata, names: &NameSpace) -> Result<Self, CtfError> {
        prepare(folder)?;
        let declared = names.families().iter();
        let layouts = declared
            .flat_map(|family| family.events.iter().map(|entry| Layout::new(family, entry)))
            .chain(kernel::split_layouts(names))
            .map(|layout| (layout.event, layout));
        Ok(CtfExport {
            folder: folder.into(),
            metadata: metadata.clone(),
            layouts: EventTable::new(layouts),
            threads: Threads::of(metadata),
            parts: EventParts::default(),
            streams: Streams::new(folder),
            domain: Domain::User,
            records: 0,
            failure: None,
        })
    }

    /// Writes what is left, and the metadata.
    ///
    /// # Errors
    /// [`CtfError::Write`] with the first failure.
    pub fn finish(mut self) -> Result<CtfSummary, CtfError> {
        let folder = self.folder.clone();
        let written = match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.streams.end_packets().and_then(|()| {
                let classes = self.streams.classes();
                let text = tsdl::text(&self.metadata, self.domain, &classes, self.layouts.values());
                std::fs::write(folder.join(METADATA), text)
            }),
        };
        match written {
            Ok(()) => Ok(CtfSummary { events: self.records, raised: self.streams.raised() }),
            Err(source) => Err(CtfError::Write { folder, source }),
        }
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let cpu = (record.cpu != Record::NO_CPU).then_some(record.cpu);
        let time = record.time.as_nanos();
        if let Some(lost) = Lost::read(record) {
            self.streams.lost(cpu, time, lost.records)?;
        }
        let event = kernel::split(record);
        if self.layouts.get(event).is_none() {
            self.layouts.insert(event, Layout::undeclared(event));
        }
        let layout = self.layouts.get(event).expect("declared, or just made");
        let (threads, parts) = (&self.threads, &self.parts);
        self.streams.event(cpu, event.0, time, |bytes| layout.write(record, threads, parts, bytes))
    }
}

impl Sink for CtfExport {
    fn record(&mut self, record: Record) {
        if self.failure.is_some() {
            return;
        }
        if record.is_part() {
            // One that does not follow the others leaves their event without bytes.
            self.parts.learn(&record);
            return;
        }
        if record.event.family() == builtin::KERNEL.number {
            self.domain = Domain::Kernel;
        }
        self.threads.learn(&self.metadata, &record);
        self.failure = self.write(&record).err();
        self.threads.forget(&record);
        self.records += 1;
    }

    fn define(&mut self, definition: &Definition) {
        self.metadata.define(definition);
        self.threads.define(definition);
    }
}

/// Makes the folder, or empties it if it has an earlier export and nothing else.
fn prepare(folder: &Path) -> Result<(), CtfError> {
    let failed = |source| CtfError::Prepare { folder: folder.into(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut earlier = earlier(folder)?;
    // The metadata go first: without them what remains is not a trace.
    earlier.sort_by_key(|path| !path.ends_with(METADATA));
    earlier.iter().try_for_each(std::fs::remove_file).map_err(failed)
}

/// The files of an earlier export, besides which the folder has nothing.
fn earlier(folder: &Path) -> Result<Vec<PathBuf>, CtfError> {
    let failed = |source| CtfError::Prepare { folder: folder.into(), source };
    let mut earlier = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let ours = match file.as_str() {
            METADATA => {
                let text = std::fs::read(entry.path()).map_err(failed)?;
                text.windows(SIGNATURE.len()).any(|window| window == SIGNATURE)
            }
            stream => is_stream_file(stream),
        };
        if !ours {
            return Err(CtfError::Occupied { folder: folder.into(), file });
        }
        earlier.push(entry.path());
    }
    Ok(earlier)
}
