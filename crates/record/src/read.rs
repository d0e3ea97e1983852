//! Reading trace files, of rings or logs, finished or still being written.

mod ordered;
mod screened;

use crate::damage::{Damage, Rules};
use crate::directory::{Directory, DirectoryError};
use crate::layout::{Body, HEADER_BYTES, Header, TraceError};
use crate::log::Closing;
use crate::mapping::Mapping;
use crate::merge::{Merge, RecordSource};
use crate::passive::{self, Reading, ReadingError, words_of};
use crate::ring::{RingReader, open_readers};
use crate::{Event, Metadata, NameSpace, Origin, Record, Sink, written};
use ordered::OrderedLog;
use rustix::io::Errno;
use screened::{LogReader, ScreenedRing, last_seal};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use talea_ring::control::Control;
use talea_ring::region::Region;
use talea_text::ReadError;
use talea_time::Instant;
use thiserror::Error;

/// An opened trace file.
#[derive(Debug)]
pub struct TraceFile {
    /// The tables with which the run began.
    tables: Metadata,
    /// The same with what was defined by the time of opening.
    metadata: Metadata,
    header: Header,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Rings(Arc<Mapping>),
    Log(Arc<File>),
}

/// What kind of trace a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// Rings of a run: the latest records of each writer.
    Rings,
    /// The complete trace of a run.
    Log,
}

/// Why a file cannot be opened, in the words of the system where those say it.
fn not_opened(error: ReadError) -> TraceError {
    match error {
        ReadError::Io(error) => error.into(),
        ReadError::Absent => io::Error::from(Errno::NOENT).into(),
        ReadError::Denied => io::Error::from(Errno::ACCESS).into(),
        other => TraceError::NoFile(other),
    }
}

/// The file with its length and its head, which is valid.
fn head(path: &Path) -> Result<(File, u64, Header), TraceError> {
    let file = talea_text::read::file(path).map_err(not_opened)?;
    let bytes = file.metadata()?.len();
    let mut head = vec![0; bytes.min(HEADER_BYTES as u64) as usize];
    file.read_exact_at(&mut head, 0)?;
    let header = Header::decode(&head, bytes)?;
    Ok((file, bytes, header))
}

/// The control pages of a ring file as they were when they were read. Nothing is mapped: a process that has locked its memory would
/// hold all of the file in it.
pub(crate) fn control_pages(path: &Path) -> Result<Vec<AtomicU64>, TraceError> {
    let (file, _, header) = head(path)?;
    let region = header.regions.control;
    let mut bytes = vec![0; (region.end - region.start) as usize];
    file.read_exact_at(&mut bytes, region.start)?;
    let words = bytes.chunks_exact(size_of::<u64>());
    Ok(words.map(|word| AtomicU64::new(u64::from_le_bytes(word.try_into().expect("eight bytes")))).collect())
}

impl TraceFile {
    /// Opens a ring file or a log and validates everything but its records.
    ///
    /// # Errors
    /// See [`TraceError`]. The path is not part of the message; the caller knows it.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let (file, bytes, header) = head(path)?;
        let mut json = vec![0; header.metadata_bytes as usize];
        file.read_exact_at(&mut json, HEADER_BYTES as u64)?;
        let mut tables: Metadata = written::document(&json)?;
        tables.check()?;
        let content = match header.body {
            Body::Log => {
                check_tables(&file, &header, &json, bytes)?;
                Content::Log(Arc::new(file))
            }
            Body::Rings { .. } => {
                let length = header.all_bytes().expect("checked with the head and the length of the file");
                let mapping = Mapping::readable(&file, length)?;
                let control = Control::new(mapping.part(header.regions.control.clone()));
                tables.start = control.run_start().map_or(tables.start, Instant::from_nanos);
                Content::Rings(Arc::new(mapping))
            }
        };
        let mut trace = TraceFile { metadata: tables.clone(), tables, header, content };
        if trace.lacks_start() {
            trace.tables.start = trace.find_start();
        }
        // A directory that is damaged is told by whoever reads it for its own sake.
        trace.metadata = trace.defined().unwrap_or_else(|_| trace.tables.clone());
        Ok(trace)
    }

    /// Whether the head of a log was written before the run on real threads had started, which is never at 0.
    fn lacks_start(&self) -> bool {
        let Metadata { origin, start, .. } = self.tables;
        self.kind() == TraceKind::Log
            && self.tables.has_system()
            && matches!(origin, Origin::Threads { .. })
            && start == Instant::ZERO
    }

    /// The start that the records tell of; of a run that did not get there, the instant of the first record.
    fn find_start(&self) -> Instant {
        // What cannot be read is told to whoever reads the records for their own sake.
        let readable = || self.records().into_iter().flatten().map_while(Result::ok);
        let start = readable().find(|record| record.event == Event::RUN_START);
        start.or_else(|| readable().next()).map_or(Instant::ZERO, |record| record.time)
    }

    /// The tables with which the run began, which are the same for all processes of one run.
    pub fn tables(&self) -> &Metadata {
        &self.tables
    }

    /// The tables behind the numbers in the records, with what was defined by the time of opening.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The families that the records may belong to: the builtin ones and those registered in the file by now.
    ///
    /// # Errors
    /// [`TraceError::Directory`] if they are damaged, or the file cannot be read.
    pub fn name_space(&self) -> Result<NameSpace, TraceError> {
        Ok(self.directory()?.name_space().clone())
    }

    /// The families registered in the file by now, with their passive entities.
    ///
    /// # Errors
    /// As [`Self::name_space`].
    pub fn directory(&self) -> Result<Directory, TraceError> {
        let bytes = self.header.regions.directory.clone();
        let mut directory = Directory::default();
        match &self.content {
            Content::Rings(mapping) => {
                let refreshed = directory.refresh(&Region::new(mapping.part(bytes)));
                // What is gone reads as anything.
                whole(mapping).and(refreshed.map_err(TraceError::from))?;
            }
            Content::Log(file) => {
                let mut used = [0; 8];
                file.read_exact_at(&mut used, bytes.start)?;
                let used = u64::from_le_bytes(used);
                if used > bytes.end - bytes.start - 8 {
                    return Err(DirectoryError::Length { entry: 0 }.into());
                }
                let mut documents = vec![0; used as usize];
                file.read_exact_at(&mut documents, bytes.start + 8)?;
                directory.parse(&documents)?;
            }
        }
        Ok(directory)
    }

    /// What the passive entity `name`, as `family.name`, holds now. Nothing is reset. A log has none.
    ///
    /// # Errors
    /// If there is none of that name, or the directory is damaged.
    pub fn reading(&self, name: &str) -> Result<Reading, TraceError> {
        let entry = self.directory()?.passive(name)?.clone();
        match &self.content {
            Content::Rings(mapping) => {
                let area = mapping.part(self.header.regions.passive.clone());
                let reading = passive::read(&entry, &area[words_of(&entry)]);
                whole(mapping).map(|()| reading)
            }
            Content::Log(_) => Err(ReadingError::Unknown { name: name.to_owned(), suggestion: None }.into()),
        }
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The mapped file; `None` of a log.
    pub(crate) fn mapping(&self) -> Option<&Arc<Mapping>> {
        match &self.content {
            Content::Rings(mapping) => Some(mapping),
            Content::Log(_) => None,
        }
    }

    /// Rings or log.
    pub fn kind(&self) -> TraceKind {
        match self.content {
            Content::Rings(_) => TraceKind::Rings,
            Content::Log(_) => TraceKind::Log,
        }
    }

    /// Readers of the file's rings from their beginning, which follow writers at work. A log has none.
    pub fn rings(&self) -> Vec<RingReader> {
        match &self.content {
            Content::Rings(mapping) => open_readers(mapping, &self.header),
            Content::Log(_) => Vec::new(),
        }
    }

    /// The records in the order of time (of rings: from where all of them have theirs), up to what has been written by now,
    /// in memory that does not grow with the file. Those that cannot be are left out; see [`crate::damage`].
    ///
    /// # Errors
    /// If the file cannot be read, or its families cannot.
    pub fn records(&self) -> Result<Records, TraceError> {
        Ok(Records(match &self.content {
            Content::Rings(mapping) => {
                let rings: Vec<RingReader> = self.rings().into_iter().map(RingReader::up_to_now).collect();
                // Read after the rings' ends: families are there before their first events.
                let rules = self.rules()?;
                let rings = rings.into_iter().enumerate();
                let mut rings: Vec<ScreenedRing> =
                    rings.map(|(number, ring)| ScreenedRing::new(ring, number, &rules)).collect();
                let overwritten = |ring: &mut ScreenedRing| {
                    ring.peek().filter(|first| first.event == Event::LOST).map(|first| first.time)
                };
                let whole_from = rings.iter_mut().filter_map(overwritten).max();
                Source::Rings { merge: Merge::new(rings), whole_from, mapping: Some(Arc::clone(mapping)) }
            }
            Content::Log(file) => {
                let bytes = file.metadata()?.len();
                // Read after the length: families are there before their first events.
                let reader = LogReader::new(file, self.header.data_offset..bytes, &self.rules()?)?;
                Source::Log(Box::new(OrderedLog::new(reader)))
            }
        }))
    }

    fn rules(&self) -> Result<Arc<Rules>, TraceError> {
        Ok(Arc::new(Rules::new(&self.defined()?, &self.name_space()?)))
    }

    /// The tables with what has been defined by now.
    fn defined(&self) -> Result<Metadata, TraceError> {
        let mut metadata = self.tables.clone();
        self.directory()?.definitions().iter().for_each(|definition| metadata.define(definition));
        Ok(metadata)
    }

    /// Gives all records to `sink` in the order of time.
    ///
    /// # Errors
    /// If reading fails; `sink` has the records before that.
    pub fn replay(&self, sink: &mut dyn Sink) -> Result<Replayed, TraceError> {
        let mut count = 0;
        let mut records = self.records()?;
        for record in &mut records {
            sink.record(record?);
            count += 1;
        }
        Ok(Replayed { records: count, damage: records.damage() })
    }
}

/// What was read of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Records that were delivered.
    pub records: u64,
    /// What is wrong with the file.
    pub damage: Damage,
}

/// Whether the tables of a log are those that its writer sealed. Nobody can say of one without a seal.
fn check_tables(file: &File, header: &Header, metadata: &[u8], bytes: u64) -> Result<(), TraceError> {
    let whole = (bytes - header.data_offset) / Record::BYTES as u64 * Record::BYTES as u64;
    let Some((_, seal)) = last_seal(file, header.data_offset..header.data_offset + whole)? else {
        return Ok(());
    };
    let region = &header.regions.directory;
    let mut used = [0; 8];
    file.read_exact_at(&mut used, region.start)?;
    let used = u64::from_le_bytes(used);
    let fits = match seal.closing {
        Closing::More => seal.directory <= used,
        Closing::Last => seal.directory == used,
    };
    if !fits || used > region.end - region.start - 8 {
        return Err(TraceError::AlteredTables);
    }
    let mut documents = vec![0; seal.directory as usize];
    file.read_exact_at(&mut documents, region.start + 8)?;
    let mut sum = crc32fast::Hasher::new();
    sum.update(metadata);
    sum.update(&documents);
    if sum.finalize() == seal.tables { Ok(()) } else { Err(TraceError::AlteredTables) }
}

/// What was read of the mapping is what was written.
fn whole(mapping: &Mapping) -> Result<(), TraceError> {
    if mapping.is_cut() { Err(TraceError::Shortened) } else { Ok(()) }
}

/// The records of a file, from [`TraceFile::records`].
#[derive(Debug)]
pub struct Records(Source);

#[derive(Debug)]
enum Source {
    Rings {
        merge: Merge<ScreenedRing>,
        /// The instant from which every ring has its records; what others have from before would be misunderstood.
        whole_from: Option<Instant>,
        /// Until the end was reached.
        mapping: Option<Arc<Mapping>>,
    },
    Log(Box<OrderedLog>),
}

impl Records {
    /// What has been found wrong with the file so far; all of it when the last record has been delivered.
    pub fn damage(&self) -> Damage {
        match &self.0 {
            Source::Rings { merge, .. } => {
                merge.sources().iter().fold(Damage::default(), |damage, ring| damage.and(ring.damage()))
            }
            Source::Log(reader) => reader.damage().clone(),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::Rings { merge, whole_from, mapping } => {
                let is_whole = |record: &Record| {
                    whole_from.is_none_or(|from| record.time >= from)
                        || record.event.family() == Event::THREAD.family()
                };
                let next = std::iter::from_fn(|| merge.next_available()).find(is_whole).map(Ok);
                next.or_else(|| mapping.take().and_then(|mapping| whole(&mapping).err()).map(Err))
            }
            Source::Log(reader) => reader.next(),
        }
    }
}

/// The files do not belong to one run: their tables differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "trace file {index} (counted from 0) describes another system than the first one; merge files of one run only"
)]
pub struct DifferentRuns {
    /// The first file that differs from file 0.
    pub index: usize,
}

impl Merge {
    /// Follows all rings of several files, such as those of the node processes of one run. Logs among
    /// them contribute nothing.
    ///
    /// # Errors
    /// If the tables of the files differ.
    pub fn of_files(files: &[TraceFile]) -> Result<Self, DifferentRuns> {
        let tables = |metadata: &Metadata| {
            // One process may lack real-time priority where another has it.
            let mut tables = metadata.clone();
            tables.origin = files[0].tables().origin;
            tables
        };
        for (index, file) in files.iter().enumerate() {
            if tables(file.tables()) != *files[0].tables() {
                return Err(DifferentRuns { index });
            }
        }
        Ok(Merge::new(files.iter().flat_map(TraceFile::rings).collect()))
    }
}
