//! Logs: the complete trace of a run in one file, in the order of time, as a collector or the simulator
//! writes it.
//!
//! A log is the head and metadata of every trace file (see `layout`) and then records to the end of the
//! file. If its writer is killed, the last record may be cut; it is left out on reading and reported.

use crate::layout::{Body, Clock, Header, encode_metadata};
use crate::ring::replace;
use crate::{CreateError, Metadata, Record, Sink};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

const BUFFER_BYTES: usize = 1 << 16;

/// Writes a log. Records are buffered; [`Self::finish`] tells whether all of them arrived.
#[derive(Debug)]
pub struct LogWriter {
    file: BufWriter<File>,
    path: PathBuf,
    written: u64,
    /// The first failure, after which nothing more is written.
    failure: Option<io::Error>,
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
    /// Creates the log, replacing a file that is already there.
    ///
    /// # Errors
    /// [`CreateError::Io`] if the file cannot be created or its head cannot be written.
    pub fn create(path: &Path, metadata: &Metadata) -> Result<Self, CreateError> {
        let json = encode_metadata(metadata);
        let header = Header::new(Body::Log, Clock::of(metadata.origin), json.len() as u64);
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, replace(path)?);
        let padding = header.data_offset as usize - crate::layout::HEADER_BYTES - json.len();
        let head = [&header.encode()[..], &json, &[0; 8][..padding]];
        // Flushed so that a reader that comes early finds a whole head.
        head.iter()
            .try_for_each(|part| file.write_all(part))
            .and_then(|()| file.flush())
            .map_err(|source| CreateError::Io { path: path.into(), source })?;
        Ok(LogWriter { file, path: path.into(), written: 0, failure: None })
    }

    /// Writes what is buffered, so that readers and a crash find it.
    pub fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = self.file.flush().err();
        }
    }

    /// Writes what is buffered and returns the number of records in the log.
    ///
    /// # Errors
    /// The first failure since the log was created.
    pub fn finish(mut self) -> Result<u64, LogError> {
        self.flush();
        let (written, path) = (self.written, std::mem::take(&mut self.path));
        match self.failure.take() {
            None => Ok(written),
            Some(source) => Err(LogError { path, written, source }),
        }
    }
}

impl Sink for LogWriter {
    fn record(&mut self, record: Record) {
        if self.failure.is_some() {
            return;
        }
        match self.file.write_all(&to_bytes(record)) {
            Ok(()) => self.written += 1,
            Err(error) => self.failure = Some(error),
        }
    }
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
