//! `talea trace`.

use super::failure::{Failure, Verdict};
use super::options::positive;
use super::{artefacts, output, report};
use clap::{Args, Subcommand};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use talea_lab::timeline;
use talea_time::Duration;
use talea_trace::{
    Accounting, PerfettoExport, Record, ScheduleCsv, TraceError, TraceFile, TraceKind, export_csv,
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
#[group(id = "formats", required = true, multiple = true, args = ["perfetto", "csv", "schedule", "svg"])]
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
    Ok(Verdict::Fine)
}

fn stats(options: &Stats) -> super::Outcome {
    let trace = open(&options.trace)?;
    let mut accounting = Accounting::new(trace.metadata(), options.sample);
    let cut = trace.replay(&mut accounting).map_err(|error| unreadable(&options.trace, &error))?;
    let end = accounting.last();
    let report = accounting.finish(end);
    if cut > 0 {
        eprintln!("warning: the last {cut} bytes are part of a record; the writer was cut off");
    }
    if options.json {
        output::json(&report)?;
    } else {
        let mut lines = output::Lines::new();
        lines.line(&format!("{} under {}", report.system, report.strategy))?;
        lines.line(&report::text(&report))?;
    }
    Ok(Verdict::Fine)
}

fn export(options: &Export) -> super::Outcome {
    let trace = open(&options.trace)?;
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |error: &dyn std::fmt::Display| Failure::file("write", &path, error)
    };
    let create = |path: &Path| {
        File::create(path).map(BufWriter::new).map_err(|error| Failure::file("create", path, error))
    };
    let end = artefacts::last(&trace, &options.trace)?;
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
        let from = trace.metadata().start + options.from;
        let mut builder = timeline::Builder::new(trace.metadata(), from, from + options.length);
        trace.replay(&mut builder).map_err(unreadable)?;
        builder.finish(end).draw(path).map_err(|error| failed(path)(&error))?;
    }
    let written = [&options.perfetto, &options.csv, &options.schedule, &options.svg].into_iter().flatten();
    let written: Vec<String> = written.map(|path| path.display().to_string()).collect();
    output::Lines::new().line(&format!("written: {}", written.join(", ")))?;
    Ok(Verdict::Fine)
}
