//! `talea trace`.

use super::failure::{Failure, Verdict};
use super::options::{distinct, positive};
use super::{artefacts, output, report};
use clap::{ArgGroup, Args, Subcommand};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use talea_lab::timeline;
use talea_time::{Duration, Instant};
use talea_trace::{
    Accounting, PerfettoExport, Record, Records, ScheduleCsv, TraceError, TraceFile, TraceKind, export_csv,
    format_record,
};

/// Look into a trace: its records, its numbers, and exports for other programs.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea run examples/ofp.toml --for 2s --out out
  talea trace stats out/trace.talea
  talea trace export out/trace.talea --perfetto out/ofp.pftrace --svg out/ofp.svg --length 400ms")]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print records, one per line
    Show(Show),
    /// Compute the table of results again
    Stats(Stats),
    /// Write the trace for other programs
    Export(Export),
}

#[derive(Args)]
struct Show {
    /// The trace
    trace: PathBuf,
    /// Print at most this many records
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    /// Print only records of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
}

#[derive(Args)]
struct Stats {
    /// The trace
    trace: PathBuf,
    /// Length of the samples of effectiveness
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive)]
    sample: Duration,
    /// Print the report as JSON instead
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(group(ArgGroup::new("formats").required(true).multiple(true).args(["perfetto", "csv", "schedule", "svg"])))]
struct Export {
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

pub fn main(options: &Options) -> super::Outcome {
    match &options.command {
        Command::Show(show) => self::show(show),
        Command::Stats(stats) => self::stats(stats),
        Command::Export(export) => self::export(export),
    }
}

fn open(path: &Path) -> Result<TraceFile, Failure> {
    let trace = TraceFile::open(path).map_err(|error| unreadable(path, &error))?;
    if trace.kind() == TraceKind::Rings {
        eprintln!("note: {} holds rings, the latest records of each thread", path.display());
    }
    Ok(trace)
}

fn unreadable(path: &Path, error: &TraceError) -> Failure {
    Failure::new(
        format!("cannot read the trace {}: {error}", path.display()),
        "`talea run` and `talea sim` write trace.talea into the folder given with --out",
    )
}

/// A last record that is not whole is left out by every reader.
fn warn_of_cut(records: &Records) {
    let cut = records.cut_bytes();
    if cut > 0 {
        eprintln!("warning: the last {cut} bytes are part of a record; the writer was cut off");
    }
}

fn show(options: &Show) -> super::Outcome {
    let trace = open(&options.trace)?;
    let metadata = trace.metadata();
    let wanted = match &options.task {
        None => None,
        Some(name) => Some(metadata.tasks.iter().position(|task| task.name == *name).ok_or_else(|| {
            let names: Vec<&str> = metadata.tasks.iter().map(|task| task.name.as_str()).collect();
            Failure::new(
                format!("the trace has no task \"{name}\""),
                format!("choose one of: {}", names.join(", ")),
            )
        })?),
    };
    let mut lines = output::Lines::new();
    let records = trace.records().map_err(|error| unreadable(&options.trace, &error))?;
    warn_of_cut(&records);
    let of_task = |record: &Record| {
        let operation = || metadata.operations.get(record.job().operation.index());
        wanted.is_none_or(|task| record.event.is_job() && operation().is_some_and(|entry| entry.task == task))
    };
    let mut left = options.limit.unwrap_or(usize::MAX);
    for record in records {
        let record = record.map_err(|error| unreadable(&options.trace, &error))?;
        if left == 0 {
            break;
        }
        if of_task(&record) {
            lines.line(&format_record(metadata, &record))?;
            left -= 1;
        }
    }
    lines.finish()?;
    Ok(Verdict::Fine)
}

fn stats(options: &Stats) -> super::Outcome {
    let trace = open(&options.trace)?;
    let mut accounting = Accounting::new(trace.metadata(), options.sample);
    trace.replay(&mut accounting).map_err(|error| unreadable(&options.trace, &error))?;
    let end = accounting.last();
    let report = accounting.finish(end);
    warn_of_cut(&trace.records().map_err(|error| unreadable(&options.trace, &error))?);
    if options.json {
        output::json(&report)?;
    } else {
        let mut lines = output::Lines::new();
        lines.line(&format!("{} under {}", report.system, report.strategy))?;
        lines.line(&report::text(&report))?;
        lines.finish()?;
    }
    Ok(Verdict::Fine)
}

fn export(options: &Export) -> super::Outcome {
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
fn stretch(trace: &TraceFile, options: &Export, end: Instant) -> Result<(Instant, Instant), Failure> {
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
