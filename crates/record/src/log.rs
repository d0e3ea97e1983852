//! Logs: the complete trace of a run in one file, in the order of time, as a collector or the simulator
//! writes it.
//!
//! A log is the head, metadata and directory of every trace file (see `layout`) and then records to the end of the
//! file. If its writer is killed, the last record may be cut; it is left out on reading and reported.
//!
//! ```text
//!  head metadata directory | 256 records | seal | 256 records | seal | ... | rest | last seal
//! ```
//! A *seal* has the form of a record and is none: it holds a checksum (CRC-32) of the records since the one before and one of
//! metadata and directory, as they were then, and it bounds how far any record until then is behind one that stands before it.
//! The last one says that the log has come to its end. Readers keep seals to themselves, and put in order what came late; what
//! they make of a seal that does not fit is in [`crate::damage`].

use crate::declaration::Family;
use crate::definition::Definition;
use crate::directory::{Directory, Entry, FIRST_SWITCH, encode, encode_definition};
use crate::layout::{Body, Clock, Header, encode_metadata};
use crate::namespace::{NameSpace, NameSpaceError};
use crate::ring::replace;
use crate::{CreateError, Event, Metadata, Record, Sink};
use crc32fast::Hasher;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use talea_text::links::resolved;
use talea_time::{Duration, Instant};
use thiserror::Error;

const BUFFER_BYTES: usize = 1 << 16;

/// Writes a log. Records are buffered; [`Self::finish`] tells whether all of them arrived.
#[derive(Debug)]
pub struct LogWriter {
    file: BufWriter<File>,
    path: PathBuf,
    directory: LogDirectory,
    defined: Vec<Definition>,
    written: u64,
    /// Records that have been taken and not been handed on to `file`: of one stretch between seals.
    block: Vec<u8>,
    /// Of the records since the last seal that have been handed on.
    sum: Hasher,
    since_seal: u64,
    /// The time of the latest record.
    latest: Instant,
    disorder: Disorder,
    /// The first failure, after which nothing more is written.
    failure: Option<io::Error>,
}

/// The directory region of a log; see [`crate::directory`].
#[derive(Debug)]
struct LogDirectory {
    start: u64,
    used: u64,
    room: u64,
    space: NameSpace,
    /// The switch of the next family; nobody switches in a log.
    switch: usize,
    /// Of the metadata and what stands in the directory.
    sum: Hasher,
}

impl LogDirectory {
    fn new(region: Range<u64>, metadata: &[u8]) -> Self {
        let room = region.end - region.start - 8;
        let mut sum = Hasher::new();
        sum.update(metadata);
        let space = NameSpace::default();
        LogDirectory { start: region.start, used: 0, room, space, switch: FIRST_SWITCH, sum }
    }

    fn append_family(&mut self, file: &File, family: &Family) -> io::Result<()> {
        let entry = Entry { family: family.clone(), switch: self.switch, passive: Vec::new() };
        self.append(file, &encode(&entry))?;
        self.switch += entry.span();
        Ok(())
    }

    fn append(&mut self, file: &File, document: &[u8]) -> io::Result<()> {
        if document.len() as u64 > self.room - self.used {
            return Err(io::Error::other(
                "the directory of the log has no room for more families and definitions",
            ));
        }
        file.write_all_at(document, self.start + 8 + self.used)?;
        self.used += document.len() as u64;
        self.sum.update(document);
        file.write_all_at(&self.used.to_le_bytes(), self.start)
    }
}

/// Writing a log failed; the file holds an incomplete but readable trace.
#[derive(Debug, Error)]
#[error("writing {path} failed after about {written} records: {source}")]
pub struct LogError {
    /// The file.
    pub path: PathBuf,
    /// Records accepted before the failure, some of which may not have arrived.
    pub written: u64,
    /// What the system said.
    pub source: io::Error,
}

impl LogWriter {
    /// Creates the log, replacing a file that is already there, also where a [link](talea_text::links) of the user leads. A device that takes what is
    /// written anywhere, as /dev/null, is written to and stays.
    ///
    /// # Errors
    /// [`CreateError::Io`] if the file cannot be created or its head cannot be written, [`CreateError::Link`] if a link leads where nothing
    /// should be written, [`CreateError::NoFile`] if it is
    /// a pipe or a device that takes things in order only. No half of a head is left behind.
    pub fn create(path: &Path, metadata: &Metadata) -> Result<Self, CreateError> {
        let (file, place) = open(path)?;
        Self::begin(file, place, path, metadata).inspect_err(|_| {
            if place == Place::File {
                // The half-made file is of no use; that it cannot be removed changes nothing in the report.
                let _ = resolved(path).map(std::fs::remove_file);
            }
        })
    }

    /// The log in an empty file that is open already and that errors call `path`.
    ///
    /// # Errors
    /// As [`Self::create`]; what becomes of the file is the caller's affair.
    pub fn create_in(file: File, path: &Path, metadata: &Metadata) -> Result<Self, CreateError> {
        let is_file = file.metadata().is_ok_and(|file| file.is_file());
        Self::begin(file, if is_file { Place::File } else { Place::Device }, path, metadata)
    }

    fn begin(file: File, place: Place, path: &Path, metadata: &Metadata) -> Result<Self, CreateError> {
        let json = encode_metadata(metadata);
        let header = Header::new(Body::Log, Clock::of(metadata.origin), json.len() as u64);
        // The directory begins as a hole. The magic comes last: a reader that comes early finds a whole head.
        let head = header.encode();
        let hole = match place {
            Place::File => file.set_len(header.data_offset),
            Place::Device => Ok(()),
        };
        hole.and_then(|()| file.write_all_at(&json, head.len() as u64))
            .and_then(|()| file.write_all_at(&head[8..], 8))
            .and_then(|()| file.write_all_at(&head[..8], 0))
            .and_then(|()| (&file).seek(SeekFrom::Start(header.data_offset)))
            .map_err(|source| match source.kind() {
                io::ErrorKind::NotSeekable => CreateError::NoFile { path: path.into() },
                _ => CreateError::Io { path: path.into(), source },
            })?;
        let directory = LogDirectory::new(header.regions.directory, &json);
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let path = path.into();
        let (defined, sum) = (Vec::new(), Hasher::new());
        let block = Vec::with_capacity(SEALED as usize * Record::BYTES);
        Ok(LogWriter {
            file,
            path,
            directory,
            defined,
            written: 0,
            block,
            sum,
            since_seal: 0,
            latest: Instant::from_nanos(i64::MIN),
            disorder: Disorder::default(),
            failure: None,
        })
    }

    /// Enters the families of `directory` that the log does not have yet. Passive entities stay where they are.
    ///
    /// # Errors
    /// If a family has the number or name of another one, from another process: their records cannot be told apart.
    pub fn enter(&mut self, directory: &Directory) -> Result<(), NameSpaceError> {
        for Entry { family, .. } in directory.entries() {
            let known = self.directory.space.family(&family.name) == Some(family);
            if known || !family.has_records() || self.failure.is_some() {
                continue;
            }
            self.enter_family(family)?;
        }
        directory.definitions().iter().for_each(|definition| self.define(definition));
        Ok(())
    }

    /// Enters one family.
    ///
    /// # Errors
    /// As [`Self::enter`].
    pub fn enter_family(&mut self, family: &Family) -> Result<(), NameSpaceError> {
        self.directory.space.add(family.clone())?;
        if self.failure.is_none() {
            self.failure = self.directory.append_family(self.file.get_ref(), family).err();
        }
        Ok(())
    }

    /// Writes what is buffered and gives the log this name, in place of whatever has it, in one step.
    ///
    /// # Errors
    /// If not everything could be written, and then it is removed; or if it cannot be renamed, and then it keeps its name.
    pub fn rename(&mut self, path: &Path) -> Result<(), CreateError> {
        self.flush();
        if let Some(source) = self.failure.take() {
            // What has the other name may be more than this.
            let _ = std::fs::remove_file(&self.path);
            return Err(CreateError::Io { path: path.into(), source });
        }
        std::fs::rename(&self.path, path).map_err(|source| CreateError::Io { path: path.into(), source })?;
        self.path = path.into();
        Ok(())
    }

    /// Writes what is buffered, so that readers and a crash find it.
    pub fn flush(&mut self) {
        self.hand_on();
        if self.failure.is_none() {
            self.failure = self.file.flush().err();
        }
    }

    /// Whether something could not be written, as [`Self::finish`] says.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Writes what is buffered and returns the number of records in the log.
    ///
    /// # Errors
    /// The first failure since the log was created.
    pub fn finish(mut self) -> Result<u64, LogError> {
        self.seal(Closing::Last);
        self.flush();
        let (written, path) = (self.written, std::mem::take(&mut self.path));
        match self.failure.take() {
            None => Ok(written),
            Some(source) => Err(LogError { path, written, source }),
        }
    }
}

impl LogWriter {
    fn write(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.file.write_all(bytes).err();
        }
    }

    /// Hands on the records that have been taken: many at once, for a checksum of a few bytes costs nearly as much as one of many.
    fn hand_on(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        self.sum.update(&block);
        self.write(&block);
        block.clear();
        self.block = block;
    }

    /// Seals what came since the last seal.
    fn seal(&mut self, closing: Closing) {
        self.hand_on();
        let sum = self.disorder.sealing(std::mem::take(&mut self.sum));
        let records = std::mem::take(&mut self.since_seal);
        let (directory, tables) = (self.directory.used, self.directory.sum.clone().finalize());
        let seal = Seal { records, sum, directory, tables, disorder: self.disorder, closing };
        self.write(&to_bytes(seal.to_record()));
    }
}

impl Sink for LogWriter {
    fn record(&mut self, record: Record) {
        if self.failure.is_some() {
            return;
        }
        self.disorder = self.disorder.max(Disorder::of(self.latest, record.time));
        self.latest = self.latest.max(record.time);
        self.block.extend_from_slice(&to_bytes(record));
        self.written += 1;
        self.since_seal += 1;
        if self.since_seal == SEALED {
            self.seal(Closing::More);
        }
    }

    fn define(&mut self, definition: &Definition) {
        if self.failure.is_none() && !self.defined.contains(definition) {
            self.failure = self.directory.append(self.file.get_ref(), &encode_definition(definition)).err();
            self.defined.push(definition.clone());
        }
    }
}

/// Records from one seal to the next.
pub(crate) const SEALED: u64 = 256;
/// An event of no family, and a time of no clock.
const SEAL: Event = Event(0x00ff);
const SEAL_TIME: Instant = Instant::from_nanos(i64::from_le_bytes(*b"TaleaEnd"));

/// What stands in a log after a stretch of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    /// Records since the last seal.
    pub records: u64,
    /// Their checksum; see [`Disorder::sealing`].
    pub sum: u32,
    /// Bytes of the directory that were used then.
    pub directory: u64,
    /// The checksum of the metadata and of these bytes.
    pub tables: u32,
    /// Of all records until then.
    pub disorder: Disorder,
    pub closing: Closing,
}

/// How far records stand behind later ones at most: nowhere (0), or by less than 2^(n - 1) ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Disorder(u16);

impl Disorder {
    /// That of a record of the time `time` behind one of the time `latest`.
    fn of(latest: Instant, time: Instant) -> Self {
        if time >= latest {
            return Disorder(0);
        }
        let behind = latest.as_nanos().abs_diff(time.as_nanos());
        Disorder(u64::BITS as u16 - behind.leading_zeros() as u16 + 1)
    }

    /// The checksum of records that a seal has, which covers what it says of their order.
    pub fn sealing(self, mut records: Hasher) -> u32 {
        if self != Disorder::default() {
            records.update(&self.0.to_le_bytes());
        }
        records.finalize()
    }

    /// A bound of it, if any record is behind a later one.
    pub fn bound(self) -> Option<Duration> {
        let doublings = self.0.checked_sub(1)?;
        Some(
            1_i64
                .checked_shl(doublings.into())
                .filter(|ns| *ns > 0)
                .map_or(Duration::MAX, Duration::from_nanos),
        )
    }
}

/// Whether the log goes on after a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    More = 1,
    Last = 2,
}

impl Seal {
    fn to_record(self) -> Record {
        let sums = u64::from(self.sum) | u64::from(self.tables) << 32;
        let (time, event, arg) = (SEAL_TIME, SEAL, self.closing as u16);
        Record {
            time,
            causal: self.directory,
            words: [self.records, sums],
            event,
            source: self.disorder.0,
            cpu: Record::NO_CPU,
            arg,
        }
    }

    /// The seal that stands in a record's place, if one does.
    pub fn of(record: &Record) -> Option<Self> {
        let closing = [Closing::More, Closing::Last].into_iter().find(|one| *one as u16 == record.arg)?;
        let [records, sums] = record.words;
        let (sum, tables, directory) = (sums as u32, (sums >> 32) as u32, record.causal);
        let disorder = Disorder(record.source);
        let is_seal = record.event == SEAL && record.time == SEAL_TIME;
        is_seal.then_some(Seal { records, sum, directory, tables, disorder, closing })
    }
}

/// What a log is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    File,
    Device,
}

/// Opens what a log is to be written to.
fn open(path: &Path) -> Result<(File, Place), CreateError> {
    if !is_device(path) {
        return Ok((replace(&resolved(path)?)?, Place::File));
    }
    let device = OpenOptions::new().read(true).write(true).open(path);
    let device = device.map_err(|source| CreateError::Io { path: path.into(), source })?;
    Ok((device, Place::Device))
}

/// Whether something is there that is to be written to and neither replaced nor renamed.
pub fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// A record as it stands in a log.
pub(crate) fn to_bytes(record: Record) -> [u8; Record::BYTES] {
    let mut bytes = [0; Record::BYTES];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(record.to_words()) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The record that [`to_bytes`] gave.
pub(crate) fn from_bytes(bytes: &[u8; Record::BYTES]) -> Record {
    Record::from_words(std::array::from_fn(|word| {
        u64::from_le_bytes(*bytes[word * 8..].first_chunk().expect("a record is five words"))
    }))
}
