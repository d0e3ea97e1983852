//! What a run leaves besides its table: result.json, schedule.csv, trace.talea.
//!
//! All of them are drafts until everything is written, so that a full disk leaves nothing half-written and loses nothing of
//! an earlier run. But a run on real threads cannot be repeated: its trace is in its place from the beginning, and what of
//! it could be written stays.

use super::draft::{Draft, Readers};
use super::failure::Failure;
use super::options::{ResultOptions, distinct, make_folder};
use super::{output, report};
use crate::cli::failure::path_shown;
use crate::cli::output::tell;
use serde_json::Value;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use talea_export::ScheduleCsv;
use talea_insight::Report;
use talea_record::{Damage, Definition, Event, LogWriter, Metadata, Record, RecordedEvents, Sink, TraceFile};
use talea_time::{Duration, Instant};

/// Name of the result in an `--out` folder.
const RESULT: &str = "result.json";
/// Name of the schedule in an `--out` folder.
const SCHEDULE: &str = "schedule.csv";
/// Name of the trace in an `--out` folder.
pub const TRACE: &str = "trace.talea";

/// A file of a run under way.
struct Artefact {
    path: PathBuf,
    draft: Draft,
}

impl Artefact {
    /// At a place of its own. What comes of a run is as private as its trace, from which all of it can be had.
    fn create(path: PathBuf) -> Result<Self, Failure> {
        Ok(Artefact { draft: Draft::create(&path, Readers::User)?, path })
    }

    /// In the folder of the results.
    fn create_in(folder: &Path, name: &str) -> Result<Self, Failure> {
        Ok(Artefact { draft: Draft::create_in(folder, name, Readers::User)?, path: folder.join(name) })
    }

    /// What to write to.
    fn writer(&self) -> Result<File, Failure> {
        self.draft.writer().map_err(|error| self.unwritten(error))
    }

    fn unwritten(&self, error: impl Display) -> Failure {
        unwritten(&self.path, error, self.draft.left(&self.path))
    }

    fn finish(self) -> Result<(), Failure> {
        let (path, left) = (self.path.clone(), self.draft.left(&self.path));
        self.draft.finish().map_err(|error| unwritten(&path, error, left))
    }
}

fn unwritten(path: &Path, error: impl Display, left: String) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path_shown(path)), left)
}

/// The files that a run is to leave, begun before it, so that no run is for nothing.
pub struct Reserved {
    result: Option<Artefact>,
    schedules: Vec<Artefact>,
}

impl Reserved {
    /// Makes the folder and drafts in it.
    pub fn create(options: &ResultOptions, system: &Path) -> Result<Self, Failure> {
        make_folder(options.out.as_deref())?;
        if let Some(schedule) = &options.schedule {
            distinct(schedule, system)?;
            for name in [TRACE, RESULT] {
                options.out.iter().try_for_each(|folder| distinct(schedule, &folder.join(name)))?;
            }
        }
        let in_folder = |name| options.out.as_ref().map(|folder| Artefact::create_in(folder, name));
        let (result, schedule) = (in_folder(RESULT).transpose()?, in_folder(SCHEDULE).transpose()?);
        let other = other_schedule(options).map(Artefact::create).transpose()?;
        Ok(Reserved { result, schedules: schedule.into_iter().chain(other).collect() })
    }

    /// Prints the tables or JSON and writes result.json; `more` are tables of what the report does not have.
    pub fn show(
        &mut self,
        options: &ResultOptions,
        heading: &str,
        run: &Value,
        report: &Report,
        more: &[String],
    ) -> Result<(), Failure> {
        let result =
            serde_json::json!({ "run": run, "report": report.to_json(&RecordedEvents::everything()) });
        // Shown first, so that nothing is lost where there is no room for files.
        if options.json {
            output::json(&result)?;
        } else {
            let mut lines = output::Lines::new();
            lines.prose(heading)?;
            lines.line(&report::text(report))?;
            for table in more {
                lines.line(&format!("\n{table}"))?;
            }
            lines.finish()?;
        }
        match self.result.take() {
            Some(artefact) => write_json(artefact, &result),
            None => Ok(()),
        }
    }

    /// Writes the schedules asked for from the trace of a run that is over.
    pub fn schedules_from(self, trace: &Path) -> Result<(), Failure> {
        let unreadable = |error| Failure::file("read", trace, error);
        for artefact in self.schedules {
            let opened = TraceFile::open(trace).map_err(unreadable)?;
            let mut schedule = ScheduleCsv::new(opened.metadata(), BufWriter::new(artefact.writer()?));
            opened.replay(&mut schedule).map_err(unreadable)?;
            let ((_, end), _) = span(&opened, trace)?;
            let unseen = schedule.finish(end).map_err(|error| artefact.unwritten(error))?;
            warn_of_unseen(&artefact.path, unseen);
            artefact.finish()?;
        }
        Ok(())
    }
}

/// Notes that the schedule does not say what ran in some of the time.
pub fn warn_of_unseen(schedule: &Path, unseen: Duration) {
    if unseen > Duration::ZERO {
        tell!(
            "warning: for {} several jobs shared a processor and nobody saw which of them ran: ? in {}; {SEE_SHARING}",
            unseen.rounded(),
            path_shown(schedule)
        );
    }
}

/// How to see next time which of several jobs runs.
pub const SEE_SHARING: &str =
    "to know, record with --kernel switches, or let lanes have real-time priorities (talea doctor)";

fn write_json(artefact: Artefact, result: &Value) -> Result<(), Failure> {
    let mut writer = BufWriter::new(artefact.writer()?);
    let written = output::write_json(&mut writer, result).map_err(io::Error::from);
    let written = written.and_then(|()| writer.write_all(b"\n")).and_then(|()| writer.flush());
    written.map_err(|error| artefact.unwritten(error))?;
    artefact.finish()
}

/// The files of a simulation, which takes records while they come.
pub struct Files {
    reserved: Reserved,
    trace: Option<(Artefact, LogWriter)>,
    schedules: Vec<(Artefact, ScheduleCsv<BufWriter<File>>)>,
}

impl Files {
    /// Whether any of them takes records.
    pub fn are_any(&self) -> bool {
        self.trace.is_some() || !self.schedules.is_empty()
    }

    /// Creates the files asked for.
    pub fn create(options: &ResultOptions, system: &Path, metadata: &Metadata) -> Result<Self, Failure> {
        let mut reserved = Reserved::create(options, system)?;
        let begin_trace = |folder: &PathBuf| {
            let artefact = Artefact::create_in(folder, TRACE)?;
            let left = artefact.draft.left(&artefact.path);
            let log = LogWriter::create_in(artefact.writer()?, &artefact.path, metadata);
            Ok::<_, Failure>((artefact, log.map_err(|error| Failure::new(error, left))?))
        };
        let trace = options.out.as_ref().map(begin_trace).transpose()?;
        let begin_schedule = |artefact: Artefact| {
            let writer = BufWriter::new(artefact.writer()?);
            Ok((artefact, ScheduleCsv::new(metadata, writer)))
        };
        let schedules = std::mem::take(&mut reserved.schedules).into_iter().map(begin_schedule);
        Ok(Files { trace, schedules: schedules.collect::<Result<_, Failure>>()?, reserved })
    }

    /// Prints the table or JSON, and ends the files.
    pub fn finish(
        mut self,
        options: &ResultOptions,
        heading: &str,
        run: &Value,
        report: &Report,
    ) -> Result<(), Failure> {
        self.reserved.show(options, heading, run, report, &[])?;
        if let Some((artefact, log)) = self.trace {
            let left = artefact.draft.left(&artefact.path);
            log.finish().map_err(|error| Failure::new(error, left))?;
            artefact.finish()?;
        }
        let end = Instant::from_nanos(report.end_ns);
        for (artefact, schedule) in self.schedules {
            // In virtual time it is always known what runs.
            let _unseen = schedule.finish(end).map_err(|error| artefact.unwritten(error))?;
            artefact.finish()?;
        }
        tell_folder(options)
    }
}

impl Sink for Files {
    fn record(&mut self, record: Record) {
        if let Some((_, log)) = &mut self.trace {
            log.record(record);
        }
        for (_, schedule) in &mut self.schedules {
            schedule.record(record);
        }
    }

    fn define(&mut self, definition: &Definition) {
        if let Some((_, log)) = &mut self.trace {
            log.define(definition);
        }
        self.schedules.iter_mut().for_each(|(_, schedule)| schedule.define(definition));
    }
}

/// Says where everything is.
pub fn tell_folder(options: &ResultOptions) -> Result<(), Failure> {
    match &options.out {
        Some(folder) if !options.json => {
            output::print(&format!("\n{RESULT}, {SCHEDULE} and {TRACE} are in {}", path_shown(folder)))
        }
        _ => Ok(()),
    }
}

/// The beginning and end of what a trace holds of its run: those of its first record, but not before the run's
/// start, and of its last one; and what is wrong with the file.
pub fn span(trace: &TraceFile, path: &Path) -> Result<((Instant, Instant), Damage), Failure> {
    let unreadable = |error| Failure::file("read", path, error);
    let start = trace.metadata().start;
    let (mut first, mut last) = (None, start);
    let mut records = trace.records().map_err(unreadable)?;
    for record in &mut records {
        let record = record.map_err(unreadable)?;
        last = last.max(record.time);
        // The names of threads that the kernel tells at its start are from before everything.
        if record.event != Event::THREAD_NAME {
            first.get_or_insert(record.time);
        }
    }
    Ok(((first.map_or(start, |first| first.max(start)), last), records.damage()))
}

/// Where else the schedule goes than to the folder of the results.
fn other_schedule(options: &ResultOptions) -> Option<PathBuf> {
    let in_folder = options.out.as_ref().map(|folder| folder.join(SCHEDULE));
    let other = options.schedule.clone();
    other.filter(|other| in_folder.iter().all(|path| distinct(other, path).is_ok()))
}
