//! What a run leaves besides its table: result.json, schedule.csv, trace.talea.

use super::failure::Failure;
use super::options::{ResultOptions, distinct, make_folder};
use super::{output, report};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use talea_time::Instant;
use talea_trace::{LogWriter, Metadata, Record, Report, ScheduleCsv, Sink, TraceFile};

/// Name of the result in an `--out` folder.
const RESULT: &str = "result.json";
/// Name of the trace in an `--out` folder.
pub const TRACE: &str = "trace.talea";

/// The files that records go to while they come.
pub struct Files {
    trace: Option<LogWriter>,
    schedules: Vec<(PathBuf, ScheduleCsv<std::io::BufWriter<File>>)>,
}

impl Files {
    /// Creates the files asked for.
    pub fn create(options: &ResultOptions, metadata: &Metadata) -> Result<Self, Failure> {
        let trace = match &options.out {
            Some(folder) => {
                let path = folder.join(TRACE);
                Some(
                    LogWriter::create(&path, metadata)
                        .map_err(|error| Failure::file("create", &path, error))?,
                )
            }
            None => None,
        };
        let mut schedules = Vec::new();
        for path in schedule_paths(options) {
            let file = create(&path)?;
            schedules.push((path, ScheduleCsv::new(metadata, std::io::BufWriter::new(file))));
        }
        Ok(Files { trace, schedules })
    }

    /// Ends the files, writes the result, and prints the table or JSON.
    pub fn finish(
        self,
        options: &ResultOptions,
        heading: &str,
        run: &Value,
        report: &Report,
    ) -> Result<(), Failure> {
        show(options, heading, run, report, &[])?;
        if let Some(trace) = self.trace {
            trace.finish().map_err(|error| Failure::new(format!("the trace is incomplete: {error}"), ""))?;
        }
        let end = Instant::from_nanos(report.end_ns);
        for (path, schedule) in self.schedules {
            schedule.finish(end).map_err(|error| Failure::file("write", &path, error))?;
        }
        tell_folder(options)
    }
}

impl Sink for Files {
    fn record(&mut self, record: Record) {
        if let Some(trace) = &mut self.trace {
            trace.record(record);
        }
        for (_, schedule) in &mut self.schedules {
            schedule.record(record);
        }
    }
}

/// Writes result.json and prints the tables or JSON; `more` are tables of what the report does not have.
pub fn show(
    options: &ResultOptions,
    heading: &str,
    run: &Value,
    report: &Report,
    more: &[String],
) -> Result<(), Failure> {
    let result = serde_json::json!({ "run": run, "report": report });
    // Shown first, so that nothing is lost where there is no room for files.
    if options.json {
        output::json(&result)?;
    } else {
        let mut lines = output::Lines::new();
        lines.line(heading)?;
        lines.line(&report::text(report))?;
        for table in more {
            lines.line(&format!("\n{table}"))?;
        }
        lines.finish()?;
    }
    if let Some(folder) = &options.out {
        let path = folder.join(RESULT);
        let text = serde_json::to_string_pretty(&result).map_err(|error| Failure::new(error, ""))?;
        std::fs::write(&path, text + "\n").map_err(|error| Failure::file("write", &path, error))?;
    }
    Ok(())
}

/// Says where everything is.
pub fn tell_folder(options: &ResultOptions) -> Result<(), Failure> {
    match &options.out {
        Some(folder) if !options.json => {
            output::print(&format!("\n{RESULT}, schedule.csv and {TRACE} are in {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Makes the folder and the files that will be asked for after the run, so that no run is for nothing.
pub fn ensure_writable(options: &ResultOptions, system: &Path) -> Result<(), Failure> {
    make_folder(options.out.as_deref())?;
    for path in schedule_paths(options) {
        distinct(&path, system)?;
        if let Some(folder) = &options.out {
            distinct(&path, &folder.join(TRACE))?;
        }
        create(&path)?;
    }
    Ok(())
}

/// Creates a file, or empties it.
pub fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| Failure::uncreated("the file", path, &error))
}

/// Writes the schedules asked for from the trace of a run that is over.
pub fn schedules_from(trace: &Path, options: &ResultOptions) -> Result<(), Failure> {
    for path in schedule_paths(options) {
        let opened = TraceFile::open(trace).map_err(|error| Failure::file("read", trace, error))?;
        let file = create(&path)?;
        let mut schedule = ScheduleCsv::new(opened.metadata(), std::io::BufWriter::new(file));
        opened.replay(&mut schedule).map_err(|error| Failure::file("read", trace, error))?;
        schedule.finish(last(&opened, trace)?).map_err(|error| Failure::file("write", &path, error))?;
    }
    Ok(())
}

/// The instant of a trace's last record.
pub fn last(trace: &TraceFile, path: &Path) -> Result<Instant, Failure> {
    let unreadable = |error| Failure::file("read", path, error);
    let mut last = trace.metadata().start;
    for record in trace.records().map_err(unreadable)? {
        last = last.max(record.map_err(unreadable)?.time);
    }
    Ok(last)
}

fn schedule_paths(options: &ResultOptions) -> Vec<PathBuf> {
    let in_folder = options.out.as_ref().map(|folder| folder.join("schedule.csv"));
    in_folder.into_iter().chain(options.schedule.clone()).collect()
}
