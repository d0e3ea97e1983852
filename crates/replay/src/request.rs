//! Replaying a trace file, and programs that are asked for it from outside.

use crate::replay::{Replay, ReplayError};
use crate::report::ReplayReport;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use talea_model::System;
use talea_operation::{Operations, PostingRoom, ReplayWorkplace};
use talea_record::{TraceError, TraceFile};
use thiserror::Error;

/// The environment variable that asks a program to replay the trace it names, in place of running its system.
pub const TRACE: &str = "TALEA_REPLAY";
/// The environment variable with the file to which it writes what it found, as JSON.
pub const REPORT: &str = "TALEA_REPLAY_REPORT";

/// Why a trace file cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayFileError {
    /// It cannot be read.
    #[error("{path}: {source}")]
    Trace {
        /// The file.
        path: PathBuf,
        /// Why.
        source: TraceError,
    },
    /// It can be read, and not replayed.
    #[error("{path}: {source}")]
    Replay {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ReplayError,
    },
}

/// A trace file that is about to be replayed.
#[derive(Debug)]
pub struct PreparedReplay {
    path: PathBuf,
    trace: TraceFile,
    replay: Replay,
}

impl PreparedReplay {
    /// Of a run of `system` with these operations.
    ///
    /// # Errors
    /// [`ReplayFileError`]; no code has been called but that which registers operations.
    pub fn open(system: &System, operations: Operations, path: &Path) -> Result<Self, ReplayFileError> {
        let trace =
            TraceFile::open(path).map_err(|source| ReplayFileError::Trace { path: path.into(), source })?;
        let replay = Replay::new(system, trace.metadata(), operations)
            .map_err(|source| ReplayFileError::Replay { path: path.into(), source })?;
        Ok(PreparedReplay { path: path.into(), trace, replay })
    }

    /// See [`Replay::workplace`].
    pub fn workplace(&mut self, room: PostingRoom) -> ReplayWorkplace {
        self.replay.workplace(room)
    }

    /// Calls the operations again as the trace tells, and compares what they publish, push and post with what they published, pushed and posted then.
    ///
    /// # Errors
    /// The trace cannot be read any further.
    pub fn run(self) -> Result<ReplayReport, ReplayFileError> {
        let PreparedReplay { path, trace, mut replay } = self;
        let damage =
            trace.replay(&mut replay).map_err(|source| ReplayFileError::Trace { path, source })?.damage;
        let mut report = replay.finish();
        if damage.impossible > 0 || damage.altered > 0 {
            report.distrust();
        }
        report.damage = damage.sentences();
        Ok(report)
    }
}

/// Calls the operations of `system` again as the trace in this file tells, and compares what they publish with what they published then. Work that was
/// posted is not called again: for that a [`PreparedReplay`] has a place where it is declared.
///
/// # Errors
/// [`ReplayFileError`].
pub fn replay_file(
    system: &System,
    operations: Operations,
    path: &Path,
) -> Result<ReplayReport, ReplayFileError> {
    PreparedReplay::open(system, operations, path)?.run()
}

/// What the program was asked for from outside.
#[derive(Clone, Debug)]
pub struct Request {
    trace: PathBuf,
    report: Option<PathBuf>,
}

impl Request {
    /// The request in the environment, if there is one.
    pub fn from_environment() -> Option<Self> {
        let trace = std::env::var_os(TRACE)?.into();
        Some(Request { trace, report: std::env::var_os(REPORT).map(Into::into) })
    }

    /// Replays and tells who asked. Ends the process: what would follow a run does not follow a replay. The status is 0 if everything is equal, 1 if
    /// something differs, and 2 if the trace cannot be replayed.
    pub fn fulfil(&self, system: &System, operations: Operations) -> ! {
        self.answer(replay_file(system, operations, &self.trace))
    }

    /// The same for a program that is still to declare operations, whose jobs it posted: there is room for so many. Ends the process if the trace cannot be
    /// replayed.
    pub fn prepare(
        self,
        system: &System,
        operations: Operations,
        room: PostingRoom,
    ) -> (ReplayWorkplace, impl FnOnce() -> Infallible + Send + 'static) {
        let mut prepared = match PreparedReplay::open(system, operations, &self.trace) {
            Ok(prepared) => prepared,
            Err(error) => self.answer(Err(error)),
        };
        (prepared.workplace(room), move || self.answer(prepared.run()))
    }

    fn answer(&self, answer: Result<ReplayReport, ReplayFileError>) -> ! {
        let said = match &answer {
            Ok(report) => serde_json::json!({ "report": report }),
            Err(error) => serde_json::json!({ "error": error.to_string() }),
        };
        let written = match &self.report {
            Some(path) => std::fs::write(path, said.to_string()),
            None => {
                println!("{said:#}");
                Ok(())
            }
        };
        let status = match (&answer, written) {
            (Ok(report), Ok(())) => i32::from(report.differing() > 0),
            (Err(error), Ok(())) => {
                eprintln!("replay: {error}");
                2
            }
            (_, Err(error)) => {
                eprintln!("replay: what was found cannot be written: {error}");
                2
            }
        };
        std::process::exit(status)
    }
}
