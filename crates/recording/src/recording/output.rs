//! The log of a recording: what waits for its head, the draft, and the log itself.

use super::{DRAFT_AFTER, PENDING_FOR, PENDING_MAX, RecordingError};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use talea_record::declaration::Family;
use talea_record::event::{RunEnd, builtin};
use talea_record::log::{LogWriter, is_device};
use talea_record::namespace::NameSpaceError;
use talea_record::stream::clock;
use talea_record::{
    AskedEvents, CreateError, Definition, Event, Metadata, Record, RunOutcome, Sink, ThreadRole, Typed,
};
use talea_text::links::resolved;
use talea_time::{Duration, Instant};

/// The log, and what waits for it.
#[derive(Debug)]
pub(super) struct Output {
    path: PathBuf,
    /// What the recording is called where no system says so.
    name: String,
    /// The tables of the system, as soon as a stream of it is followed.
    tables: Option<Metadata>,
    /// The builtin events that every stream was asked for, as soon as one is followed.
    recorded: Option<BTreeSet<String>>,
    /// The builtin events that a stream knows and was not asked for.
    unrecorded: BTreeSet<String>,
    families: Vec<Family>,
    definitions: Vec<Definition>,
    stage: Stage,
    /// All records so far, until the log is begun for good.
    waiting: Vec<Record>,
    /// A draft at first.
    log: Option<LogWriter>,
    /// How long records wait for tables.
    patience: Duration,
    /// Why there will be no log.
    failure: Option<CreateError>,
    runs: Runs,
}

/// Which runs are under way.
#[derive(Debug, Default)]
struct Runs {
    /// Nodes and the processes that have threads there: one runs the node, others may be programs below its schedulers.
    processes: BTreeSet<(u16, u32)>,
    ended: BTreeSet<u16>,
    cut_off: u64,
}

impl Runs {
    /// The record as it belongs into the log: that a run was cut off is said of one that is of the process which is gone,
    /// and that has not ended.
    fn admit(&mut self, record: Record) -> Option<Record> {
        // Most records are neither, and need not be decoded.
        if record.event.family() != builtin::RUN.number {
            return Some(record);
        }
        match record.typed() {
            // Other threads of programs are at no node.
            Typed::Thread(thread) if thread.role.known().is_some_and(ThreadRole::is_of_system) => {
                self.processes.insert((thread.node as u16, thread.pid));
            }
            Typed::RunEnd(end) if end.how == RunOutcome::CutOff => {
                let is_its = self.processes.contains(&(end.node, record.causal as u32));
                if !is_its || !self.ended.insert(end.node) {
                    return None;
                }
                self.cut_off += 1;
                return Some(Record { causal: 0, ..record });
            }
            Typed::RunEnd(end) => _ = self.ended.insert(end.node),
            _ => {}
        }
        Some(record)
    }
}

/// Whether the log has its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Tables may come that belong into it.
    Open,
    /// It is what it will be.
    Begun,
}

impl Output {
    /// A log at `path` of something called `name`.
    pub fn new(path: &Path, name: &str) -> Self {
        Output {
            // Where a link of the user leads, it goes on leading. Of another one the log says so when it is begun.
            path: resolved(path).unwrap_or_else(|_| path.into()),
            name: name.into(),
            tables: None,
            recorded: None,
            unrecorded: BTreeSet::new(),
            families: Vec::new(),
            definitions: Vec::new(),
            stage: Stage::Open,
            waiting: Vec::new(),
            log: None,
            patience: PENDING_FOR,
            failure: None,
            runs: Runs::default(),
        }
    }

    /// How many nodes the system has.
    pub fn nodes(&self) -> u16 {
        let nodes = self.tables.as_ref().map_or(0, |tables| tables.nodes.len());
        u16::try_from(nodes).expect("records can number nodes")
    }

    /// How many of their runs were cut off.
    pub fn cut_off(&self) -> u64 {
        self.runs.cut_off
    }

    /// No tables will come but those that are there already.
    pub fn expect_no_tables(&mut self) {
        self.patience = Duration::ZERO;
    }

    /// Completes the log, and returns how many records it has.
    pub fn finish(mut self) -> Result<u64, RecordingError> {
        self.begin();
        self.result()?;
        Ok(self.log.map(LogWriter::finish).transpose()?.unwrap_or(0))
    }

    /// Whether a stream with these tables can be a part of the log.
    pub fn is_to_have(&self, tables: &Metadata, path: &Path) -> Result<(), RecordingError> {
        match &self.tables {
            _ if tables.nodes.is_empty() => Ok(()),
            None if self.stage == Stage::Begun => Err(RecordingError::TooLate { path: path.into() }),
            Some(had) if !is_same_system(had, tables) => Err(RecordingError::OtherSystem {
                path: path.into(),
                found: tables.system.clone(),
                recorded: had.system.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// The tables of a stream that has been found fit.
    pub fn take_tables(&mut self, tables: Metadata) {
        if self.tables.is_none() && !tables.nodes.is_empty() {
            self.tables = Some(tables);
        }
    }

    /// Arrivals of the run count from `start`.
    pub fn learn_start(&mut self, start: Instant) {
        if let Some(tables) = self.tables.as_mut().filter(|tables| tables.start == Instant::ZERO) {
            tables.start = start;
        }
    }

    /// A stream is followed and asked for these builtin events, and not for those others that it knows. Streams that come after the log has its head
    /// are taken to be asked for the same.
    pub fn note_events(&mut self, AskedEvents { events, others }: AskedEvents) {
        match &mut self.recorded {
            Some(recorded) => recorded.retain(|event| events.contains(event)),
            None => self.recorded = Some(events),
        }
        self.unrecorded.extend(others);
    }

    /// Another process may have registered the same family.
    pub fn enter(&mut self, family: Family) -> Result<(), NameSpaceError> {
        if self.families.contains(&family) {
            return Ok(());
        }
        if let Some(log) = &mut self.log {
            log.enter_family(&family)?;
        }
        self.families.push(family);
        Ok(())
    }

    /// Has the log know what was defined while the run lasts.
    pub fn define(&mut self, definition: &Definition) {
        if self.definitions.contains(definition) {
            return;
        }
        if let Some(log) = &mut self.log {
            log.define(definition);
        }
        self.definitions.push(definition.clone());
    }

    /// What the recorder is called among the consumers of a stream.
    pub fn consumer_name(&self) -> String {
        let file = self.path.file_name().unwrap_or(self.path.as_os_str());
        format!("record into {}", file.display())
    }

    /// Begins the log if everything is known that its head tells, or too much is waiting or for too long, and writes out
    /// what there is of it.
    pub fn settle(&mut self, now: Instant) {
        let waits_longer_than =
            |time: Duration| self.waiting.first().is_some_and(|first| now - first.time > time);
        let is_known = match &self.tables {
            Some(tables) => tables.start != Instant::ZERO,
            None => waits_longer_than(self.patience),
        };
        if is_known || self.waiting.len() >= PENDING_MAX {
            self.begin();
        } else if self.log.is_none() && waits_longer_than(DRAFT_AFTER) && !is_device(&self.path) {
            self.write(&self.path.clone());
        }
        self.log.iter_mut().for_each(LogWriter::flush);
    }

    /// Begins the log for good, with what has been waiting. A draft stays until it is replaced.
    pub fn begin(&mut self) {
        if self.stage == Stage::Begun || self.failure.is_some() {
            return;
        }
        // A program may have begun to write before it was found, while the kernel's events were taken already.
        self.waiting.sort_by_key(|record| record.time);
        match self.log.take() {
            None => self.write(&self.path.clone()),
            Some(_) => {
                self.write(&draft_of(&self.path));
                let renamed = self.log.as_mut().map_or(Ok(()), |log| log.rename(&self.path));
                self.failure = renamed.err().or(self.failure.take());
                if self.failure.is_some() {
                    self.log = None;
                }
            }
        }
        if self.failure.is_none() {
            (self.stage, self.waiting) = (Stage::Begun, Vec::new());
        }
    }

    /// Creates the log at `path` with everything there is.
    fn write(&mut self, path: &Path) {
        let first = || self.waiting.iter().map(|record| record.time).min();
        let mut metadata = match &self.tables {
            // Where the run is still to start, readers look for its mark.
            Some(tables) => tables.clone(),
            None => Metadata { start: first().unwrap_or(Instant::ZERO), ..Metadata::bare(&self.name) },
        };
        metadata.recorded.clone_from(&self.recorded);
        metadata.unrecorded.clone_from(&self.unrecorded);
        metadata.realtime_offset_ns = Some(clock::realtime_offset_ns());
        match LogWriter::create(path, &metadata) {
            Ok(mut log) => {
                for family in &self.families {
                    log.enter_family(family).expect("each family has a number and a name of its own");
                }
                self.definitions.iter().for_each(|definition| log.define(definition));
                self.waiting.iter().for_each(|record| log.record(*record));
                self.log = Some(log);
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// The first failure, which ends the recording; nothing more is written.
    pub fn result(&mut self) -> Result<(), RecordingError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure.into());
        }
        match self.log.take_if(|log| log.has_failed()) {
            Some(log) => log.finish().map(|_| ()).map_err(RecordingError::from),
            None => Ok(()),
        }
    }
}

impl Sink for Output {
    fn record(&mut self, record: Record) {
        let Some(record) = self.runs.admit(record) else { return };
        if let Some(log) = &mut self.log {
            log.record(record);
        }
        if self.stage == Stage::Begun {
            return;
        }
        self.waiting.push(record);
        // With the beginning of a run its tables lack nothing.
        if let Some(tables) = &mut self.tables
            && record.event == Event::RUN_START
        {
            tables.start = record.time;
            self.begin();
        }
    }
}

/// A place for another file until it takes the name of this one. One that a recorder has left there when it was killed is
/// replaced by the next one into the same file that needs the place, or [removed](super::Recording::remove_left_behind).
pub(super) fn draft_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".talea-draft");
    path.with_file_name(name)
}

/// What the log is to say of `node`, should it be one of the process `pid`, which stands where records say what they are about
/// until [`Runs::hear`] has found that out.
pub(super) fn cut_off(time: Instant, node: u16, pid: u32) -> Record {
    let record = RunEnd { node, how: RunOutcome::CutOff.into() }.at(time, Record::NO_CPU);
    Record { causal: pid.into(), ..record }
}

/// Whether both are of one run: all tables are equal, but for the instant of the start, which not every process may
/// know yet.
fn is_same_system(a: &Metadata, b: &Metadata) -> bool {
    Metadata { start: b.start, origin: b.origin, ..a.clone() } == *b
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_record::event::Thread;

    #[test]
    fn only_runs_of_the_process_that_is_gone_and_has_not_ended_them_are_cut_off() {
        let mut runs = Runs::default();
        let thread = |node, pid| {
            let (lane, role) = (None, ThreadRole::Lane.into());
            Thread { tid: 7, pid, node, lane, role }.at(Instant::ZERO, Record::NO_CPU)
        };
        for (node, pid) in [(0, 100), (1, 100), (2, 200)] {
            runs.admit(thread(node, pid));
        }
        let over = RunEnd { node: 1, how: RunOutcome::Over.into() };
        runs.admit(over.at(Instant::ZERO, Record::NO_CPU));
        let gone = |node| cut_off(Instant::ZERO, node, 100);
        let said: Vec<_> = [gone(0), gone(1), gone(2), gone(3), gone(0)]
            .into_iter()
            .filter_map(|record| runs.admit(record))
            .map(|record| (record.source, record.causal))
            .collect();
        assert_eq!((said, runs.cut_off), (vec![(0, 0)], 1));
    }
}
