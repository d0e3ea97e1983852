//! `talea trace export`.

use super::{open, unreadable, warn_of_cut};
use crate::cli::failure::{Failure, Verdict};
use crate::cli::options::{distinct, positive};
use crate::cli::{artefacts, output};
use clap::{ArgGroup, Args};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use talea_lab::timeline;
use talea_time::{Duration, Instant};
use talea_trace::{PerfettoExport, ScheduleCsv, TraceError, TraceFile, export_csv};

/// Write the trace for other programs
#[derive(Args)]
#[command(group(ArgGroup::new("formats").required(true).multiple(true).args(["perfetto", "csv", "schedule", "svg"])))]
pub struct Options {
    /// The trace
    trace: PathBuf,
    /// For the Perfetto UI: a track per processor and lane
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Every record as a row
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Who ran when: start_ns,end_ns,node,cpu,task,subtask,job
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,
    /// A picture of a stretch of the schedule
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Where the picture begins, from the start of the run
    #[arg(long, value_name = "TIME", default_value = "0s")]
    from: Duration,
    /// How much the picture shows
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = positive)]
    length: Duration,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let trace = open(&options.trace)?;
    let paths: Vec<&PathBuf> =
        [&options.perfetto, &options.csv, &options.schedule, &options.svg].into_iter().flatten().collect();
    paths.iter().try_for_each(|path| distinct(path, &options.trace))?;
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |error: &dyn std::fmt::Display| Failure::file("write", &path, error)
    };
    let create = |path: &Path| artefacts::create(path).map(BufWriter::new);
    let end = artefacts::last(&trace, &options.trace)?;
    warn_of_cut(&trace.records().map_err(|error| unreadable(&options.trace, &error))?);
    let unreadable = |error: TraceError| unreadable(&options.trace, &error);
    if let Some(path) = &options.perfetto {
        let mut export = PerfettoExport::new(trace.metadata(), create(path)?);
        trace.replay(&mut export).map_err(unreadable)?;
        export.finish(end).map_err(|error| failed(path)(&error))?;
    }
    if let Some(path) = &options.csv {
        let mut broken = None;
        let records = trace.records().map_err(unreadable)?;
        let records = records.map_while(|record| record.map_err(|error| broken = Some(error)).ok());
        export_csv(trace.metadata(), records, create(path)?).map_err(|error| failed(path)(&error))?;
        broken.map_or(Ok(()), |error| Err(unreadable(error)))?;
    }
    if let Some(path) = &options.schedule {
        let mut schedule = ScheduleCsv::new(trace.metadata(), create(path)?);
        trace.replay(&mut schedule).map_err(unreadable)?;
        schedule.finish(end).map_err(|error| failed(path)(&error))?;
    }
    if let Some(path) = &options.svg {
        let (from, to) = stretch(&trace, options, end)?;
        // The drawing library says less about a file that cannot be made.
        create(path)?;
        let mut builder = timeline::Builder::new(trace.metadata(), from, to);
        trace.replay(&mut builder).map_err(unreadable)?;
        builder.finish(end).draw(path).map_err(|error| failed(path)(&error))?;
    }
    let written: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    output::print(&format!("written: {}", written.join(", ")))?;
    Ok(Verdict::Fine)
}

/// What the picture is to show of a run whose last record is of instant `end`.
fn stretch(trace: &TraceFile, options: &Options, end: Instant) -> Result<(Instant, Instant), Failure> {
    let start = trace.metadata().start;
    let from = start.saturating_add(options.from);
    if from >= end {
        return Err(Failure::new(
            format!("--from {} is not within the run, which lasted {}", options.from, end - start),
            "let the picture begin earlier",
        ));
    }
    Ok((from, from.saturating_add(options.length)))
}
