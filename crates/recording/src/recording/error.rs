//! Why a recording, or a part of it, cannot be.

use std::path::PathBuf;
use talea_record::log::LogError;
use talea_record::namespace::NameSpaceError;
use talea_record::stream::{AttachError, DirectoryError};
use talea_record::{CreateError, TraceError};
use thiserror::Error;

/// Why something could not be recorded. What has been recorded before is in the log.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// A stream cannot be followed.
    #[error("cannot follow {path}: {source}")]
    Attach {
        /// The stream.
        path: PathBuf,
        /// Why.
        source: AttachError,
    },
    /// A stream of another system than the one whose tables the log has.
    #[error(
        "{path} is of system \"{found}\", and this recording of \"{recorded}\"; record it into a file of its own"
    )]
    OtherSystem {
        /// The stream.
        path: PathBuf,
        /// Its system.
        found: String,
        /// The recording's.
        recorded: String,
    },
    /// The tables came when the log had begun without.
    #[error(
        "{path} began when the recording had been under way for long without its tables; attach to it instead"
    )]
    TooLate {
        /// The stream.
        path: PathBuf,
    },
    /// The directory of a stream is damaged.
    #[error("the directory of {path} is damaged: {source}")]
    Directory {
        /// The stream.
        path: PathBuf,
        /// How.
        source: DirectoryError,
    },
    /// Somebody made the file of a stream shorter.
    #[error("{path} was made shorter while it was followed, by another program")]
    Shortened {
        /// The stream.
        path: PathBuf,
    },
    /// The log has no room for another family.
    #[error("family \"{family}\" of {path} has no place in the recording: {source}")]
    Family {
        /// The stream.
        path: PathBuf,
        /// The family.
        family: String,
        /// Why.
        source: NameSpaceError,
    },
    /// The log cannot be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The log could not be written.
    #[error(transparent)]
    Write(#[from] LogError),
}

impl RecordingError {
    /// Whether the stream is still being created, so that it can be followed later.
    pub fn is_premature(&self) -> bool {
        let RecordingError::Attach { source: AttachError::Trace(error), .. } = self else { return false };
        matches!(error, TraceError::Empty | TraceError::Unfinished)
    }
}
