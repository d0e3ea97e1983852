//! `talea trace export`.

use super::{name_space, named, open, unreadable, warn_of_cut};
use crate::cli::failure::{Failure, Verdict};
use crate::cli::options::{distinct, positive};
use crate::cli::{artefacts, output};
use clap::{ArgGroup, Args};
use std::fmt::Display;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use talea_lab::timeline;
use talea_time::{Duration, Instant};
use talea_trace::{
    CtfError, CtfExport, NameSpace, ParquetExport, PerfettoExport, ScheduleCsv, Sink, TraceError, TraceFile,
    export_csv,
};

/// Write the trace for other programs
#[derive(Args)]
#[command(
    group(
        ArgGroup::new("formats")
            .required(true)
            .multiple(true)
            .args(["perfetto", "ctf", "parquet", "csv", "schedule", "svg"])
    ),
    after_help = "\
Any formats can be asked for at once. Memory does not grow with the trace.

Examples:
  talea trace export out/trace.talea --perfetto out/run.pftrace     open it at https://ui.perfetto.dev
  talea trace export ofp --perfetto ofp.pftrace                     what a running program's rings hold
  talea trace export out/trace.talea --ctf out/ctf                  babeltrace2 out/ctf, or Trace Compass
  talea trace export out/trace.talea --parquet out/run.parquet
      duckdb -c \"SELECT field_kind, sum(field_cost) FROM 'out/run.parquet' WHERE event = 'cost' GROUP BY ALL\"
  talea trace export out/trace.talea --csv out/run.csv --schedule out/schedule.csv
  talea trace export out/trace.talea --svg out/run.svg --from 1s --length 400ms"
)]
pub struct Options {
    /// The trace, or the program that publishes it, by process number or name
    #[arg(value_name = "PID|NAME|FILE")]
    trace: PathBuf,
    /// For the Perfetto UI: tracks of processors, lanes and threads, with flows
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// For babeltrace2 and Trace Compass: a folder in the Common Trace Format 1.8
    #[arg(long, value_name = "DIR")]
    ctf: Option<PathBuf>,
    /// Every record as a row, every field as a typed column
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Every record as a row, with its fields as name=value;...
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

/// The trace, and what all formats need of it.
struct Source<'a> {
    options: &'a Options,
    /// Where the trace is.
    path: PathBuf,
    trace: TraceFile,
    names: NameSpace,
    /// The instant of its last record.
    end: Instant,
}

/// Writes one format.
type Write = fn(&Source<'_>, &Path) -> Result<(), Failure>;

pub fn main(options: &Options) -> crate::cli::Outcome {
    let path = named::file(&options.trace)?;
    let trace = open(&path)?;
    let formats: [(&Option<PathBuf>, Write); 6] = [
        (&options.perfetto, perfetto),
        (&options.ctf, ctf),
        (&options.parquet, parquet),
        (&options.csv, csv),
        (&options.schedule, schedule),
        (&options.svg, svg),
    ];
    let wanted: Vec<(&PathBuf, Write)> =
        formats.into_iter().filter_map(|(path, write)| Some((path.as_ref()?, write))).collect();
    for (index, (written, _)) in wanted.iter().enumerate() {
        distinct(written, &path)?;
        wanted[..index].iter().try_for_each(|(other, _)| distinct(written, other))?;
    }
    warn_of_cut(&trace.records().map_err(|error| unreadable(&path, &error))?);
    let end = artefacts::last(&trace, &path)?;
    let source = Source { options, names: name_space(&trace, &path)?, path, trace, end };
    wanted.iter().try_for_each(|(path, write)| write(&source, path))?;
    let written: Vec<String> = wanted.iter().map(|(path, _)| path.display().to_string()).collect();
    output::print(&format!("written: {}", written.join(", ")))?;
    Ok(Verdict::Fine)
}

impl Source<'_> {
    /// Gives all records to a format that is written to `path`.
    fn replay(&self, path: &Path, sink: &mut impl Sink) -> Result<(), Failure> {
        self.trace.replay(sink).map(|_| ()).map_err(|error| self.cut(path, &error))
    }

    /// The trace could not be read to its end.
    fn cut(&self, path: &Path, error: &TraceError) -> Failure {
        let trace = self.path.display();
        Failure::new(format!("cannot read the trace {trace}: {error}"), incomplete(path))
    }
}

fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    artefacts::create(path).map(BufWriter::new)
}

fn unwritten(path: &Path, error: impl Display) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()), incomplete(path))
}

fn incomplete(path: &Path) -> String {
    format!("{} is incomplete; do not use it", path.display())
}

fn perfetto(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    let mut export = PerfettoExport::new(source.trace.metadata(), &source.names, create(path)?);
    source.replay(path, &mut export)?;
    export.finish(source.end).map(|_| ()).map_err(|error| unwritten(path, error))
}

fn ctf(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    let mut export =
        CtfExport::create(path, source.trace.metadata(), &source.names).map_err(|error| match error {
            CtfError::Prepare { folder, source } => Failure::uncreated("the folder", &folder, &source),
            error => Failure::new(error, ""),
        })?;
    source.replay(path, &mut export)?;
    let summary = export.finish().map_err(|error| Failure::new(error, incomplete(path)))?;
    if summary.raised > 0 {
        eprintln!(
            "note: {} events that were recorded late have the time of the event before them in {}",
            summary.raised,
            path.display()
        );
    }
    Ok(())
}

fn parquet(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    let mut export = ParquetExport::new(source.trace.metadata(), &source.names, create(path)?)
        .map_err(|error| unwritten(path, error))?;
    source.replay(path, &mut export)?;
    export.finish().map(|_| ()).map_err(|error| unwritten(path, error))
}

fn csv(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    let output = create(path)?;
    let mut broken = None;
    let records = source.trace.records().map_err(|error| source.cut(path, &error))?;
    let records = records.map_while(|record| record.map_err(|error| broken = Some(error)).ok());
    export_csv(source.trace.metadata(), &source.names, records, output)
        .map_err(|error| unwritten(path, error))?;
    broken.map_or(Ok(()), |error| Err(source.cut(path, &error)))
}

fn schedule(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    let mut schedule = ScheduleCsv::new(source.trace.metadata(), create(path)?);
    source.replay(path, &mut schedule)?;
    schedule.finish(source.end).map_err(|error| unwritten(path, error))
}

fn svg(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    let (from, to) = stretch(source)?;
    // The drawing library says less about a file that cannot be made.
    create(path)?;
    let mut builder = timeline::Builder::new(source.trace.metadata(), from, to);
    source.replay(path, &mut builder)?;
    builder.finish(source.end).draw(path).map_err(|error| unwritten(path, error))
}

/// What the picture is to show.
fn stretch(source: &Source<'_>) -> Result<(Instant, Instant), Failure> {
    let (start, options) = (source.trace.metadata().start, source.options);
    let from = start.saturating_add(options.from);
    if from >= source.end {
        return Err(Failure::new(
            format!(
                "--from {} is not within the run, which lasted {}",
                options.from,
                source.end.saturating_since(start)
            ),
            "let the picture begin earlier",
        ));
    }
    Ok((from, from.saturating_add(options.length)))
}
