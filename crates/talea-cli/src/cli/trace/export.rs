//! `talea trace export`.

use super::events::{EventFilter, Events};
use super::{name_space, named, open, unreadable, warn_of_damage};
use crate::cli::artefacts::SEE_SHARING;
use crate::cli::draft::{self, Draft, FolderDraft, Readers};
use crate::cli::failure::path_shown;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::options::{apart, positive};
use crate::cli::output::tell;
use crate::cli::{artefacts, output};
use clap::{ArgGroup, Args};
use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
#[cfg(feature = "parquet")]
use talea_export::ParquetExport;
use talea_export::{CtfError, CtfExport, PerfettoExport, ScheduleCsv, export_csv, processes_of_nodes};
use talea_figure::timeline;
use talea_record::{Definition, NameSpace, Record, Sink, TraceError, TraceFile};
use talea_time::{Duration, Instant};

/// Write a trace in the formats of other programs
///
/// Several formats can be asked for at once; --schedule and pictures use all events, whatever --events says. However long the trace is, memory use stays the same.
#[derive(Args)]
#[command(
    group(
        ArgGroup::new("formats")
            .required(true)
            .multiple(true)
            .args(["perfetto", "ctf", "parquet", "csv", "schedule", "svg", "ages"])
    ),
    group(ArgGroup::new("pictures").multiple(true).args(["svg", "ages"])),
    override_usage = "talea trace export [OPTIONS] <FORMATS>... <PID|NAME|FILE>",
    after_help = "\
Examples:
  talea trace export out/trace.talea --perfetto out/run.pftrace  # for https://ui.perfetto.dev
  talea trace export ofp --perfetto ofp.pftrace  # what a running program's rings hold
  talea trace export out/trace.talea --ctf out/ctf && babeltrace2 out/ctf
  talea trace export out/trace.talea --parquet out/run.parquet
  duckdb -c \"SELECT avg(field_cost) FROM 'out/run.parquet' WHERE event = 'cost'\"
  talea trace export out/trace.talea --csv out/jobs.csv --events job,-job.preempt
  talea trace export out/trace.talea --csv out/run.csv --schedule out/schedule.csv
  talea trace export out/trace.talea --svg out/run.svg --from 1s --length 400ms
  talea trace export out/trace.talea --ages out/ages.svg --length 2s  # how old the data is that jobs take"
)]
pub struct Options {
    /// The trace: a file, or a program that runs, by process number or name
    #[arg(value_name = "PID|NAME|FILE")]
    trace: PathBuf,
    /// For the Perfetto UI (ui.perfetto.dev): a track per processor, lane and thread, with arrows between jobs
    #[arg(long, value_name = "FILE", help_heading = "Formats")]
    perfetto: Option<PathBuf>,
    /// For babeltrace2 and Trace Compass: a folder in the Common Trace Format 1.8
    #[arg(long, value_name = "DIR", help_heading = "Formats")]
    ctf: Option<PathBuf>,
    /// For DuckDB, pandas and others: every record is a row, every field a typed column; only in a talea that was built with
    /// --features parquet
    #[arg(long, value_name = "FILE", help_heading = "Formats")]
    parquet: Option<PathBuf>,
    /// Every record is a row, with its fields as name=value;...
    #[arg(long, value_name = "FILE", help_heading = "Formats")]
    csv: Option<PathBuf>,
    /// Who ran when, as CSV: start_ns,end_ns,node,cpu,task,subtask,job; the task is ? where several jobs had begun on a processor
    /// and no context switches were recorded that say which of them ran
    #[arg(long, value_name = "FILE", help_heading = "Formats")]
    schedule: Option<PathBuf>,
    #[command(flatten)]
    events: EventFilter,
    /// A picture of a part of the schedule
    #[arg(long, value_name = "FILE", help_heading = "Formats")]
    svg: Option<PathBuf>,
    /// A picture of how old the values are that jobs take from other operations, by input
    #[arg(long, value_name = "FILE", help_heading = "Formats")]
    ages: Option<PathBuf>,
    /// Where the picture begins, as the time since the run began [default: the beginning of the trace]
    #[arg(long, value_name = "TIME", requires = "pictures", help_heading = "Picture")]
    from: Option<Duration>,
    /// How much time the picture shows
    #[arg(long, value_name = "TIME", requires = "pictures", help_heading = "Picture", default_value = "500ms", value_parser = positive)]
    length: Duration,
}

/// The trace, and what all formats need of it.
struct Source<'a> {
    options: &'a Options,
    /// Where the trace is.
    path: PathBuf,
    trace: TraceFile,
    names: NameSpace,
    /// What records are about, if not all are asked for.
    events: Option<Events>,
    /// The instants from which and up to which it tells of the run.
    span: (Instant, Instant),
}

/// Writes one format.
type Write = fn(&Source<'_>, &Path) -> Result<(), Failure>;

pub fn main(options: &Options) -> crate::cli::Outcome {
    if options.parquet.is_some() && !cfg!(feature = "parquet") {
        return Err(Failure::new(
            "this talea was built without Parquet",
            "build it with `cargo build --release --features parquet`, or take --csv, which DuckDB and pandas read, too",
        ));
    }
    let writes_records = options.perfetto.is_some()
        || options.ctf.is_some()
        || options.parquet.is_some()
        || options.csv.is_some();
    if !options.events.is_empty() && !writes_records {
        return Err(Failure::new(
            "--events says which records are written, and --schedule and pictures use all of them",
            "leave --events out, or ask for --perfetto, --ctf, --parquet or --csv",
        ));
    }
    let path = named::file(&options.trace)?;
    let trace = open(&path)?;
    let names = name_space(&trace, &path)?;
    let events = options.events.chosen(&names)?;
    let formats: &[(&Option<PathBuf>, Write)] = &[
        (&options.perfetto, perfetto),
        (&options.ctf, ctf),
        #[cfg(feature = "parquet")]
        (&options.parquet, parquet),
        (&options.csv, csv),
        (&options.schedule, schedule),
        (&options.svg, svg),
        (&options.ages, ages),
    ];
    let wanted: Vec<(&PathBuf, Write)> =
        formats.iter().filter_map(|(path, write)| Some((path.as_ref()?, *write))).collect();
    for (index, (written, _)) in wanted.iter().enumerate() {
        apart(written, &path)?;
        wanted[..index].iter().try_for_each(|(other, _)| apart(written, other))?;
    }
    let goes_to_output = wanted.iter().any(|(path, _)| draft::is_output(path));
    draft::remove_on_interrupt()?;
    let (span, damage) = artefacts::span(&trace, &path)?;
    warn_of_damage(&path, &damage);
    let source = Source { options, names, events, path, trace, span };
    wanted.iter().try_for_each(|(path, write)| write(&source, path))?;
    let written: Vec<String> = wanted.iter().map(|(path, _)| path_shown(path)).collect();
    let told = format!("written: {}", written.join(", "));
    if goes_to_output {
        tell!("{told}");
    } else {
        output::print(&told)?;
    }
    Ok(Verdict::Fine)
}

impl Source<'_> {
    /// Gives all records to a format.
    fn replay(&self, sink: &mut impl Sink) -> Result<(), Failure> {
        self.trace.replay(sink).map(|_| ()).map_err(|error| self.cut(&error))
    }

    /// Whether the record is among those that were asked for.
    fn lets_through(&self, record: &Record) -> bool {
        // Parts come with events that were asked for, and say nothing by themselves.
        record.is_part() || self.events.as_ref().is_none_or(|events| events.contain(record.event))
    }

    /// The trace could not be read to its end.
    fn cut(&self, error: &TraceError) -> Failure {
        Failure::new(format!("cannot read the trace {}: {error}", path_shown(&self.path)), "")
    }

    /// Writes the file `path`, as a whole or not at all.
    fn write_whole(
        &self,
        path: &Path,
        write: impl FnOnce(&Draft) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let goes_to_output = draft::is_output(path);
        let draft = Draft::create(path, Readers::Like(&self.path))?;
        let left = draft.left(path);
        let written = write(&draft).and_then(|()| draft.finish().map_err(|error| unwritten(path, error)));
        if written.is_err() && goes_to_output && output::is_gone() {
            std::process::exit(0);
        }
        written.map_err(|failure| with_help(failure, left))
    }
}

/// What was asked for, for a format that takes records as they come.
struct Chosen<'a, S> {
    source: &'a Source<'a>,
    sink: &'a mut S,
}

impl<S: Sink> Sink for Chosen<'_, S> {
    fn record(&mut self, record: Record) {
        if self.source.lets_through(&record) {
            self.sink.record(record);
        }
    }

    fn define(&mut self, definition: &Definition) {
        self.sink.define(definition);
    }
}

fn with_help(failure: Failure, left: String) -> Failure {
    match failure {
        Failure::Message { message, help } if help.is_empty() => Failure::new(message, left),
        other => other,
    }
}

fn buffered(draft: &Draft) -> BufWriter<&File> {
    BufWriter::new(draft.file())
}

fn unwritten(path: &Path, error: impl Display) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path_shown(path)), "")
}

fn perfetto(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    source.write_whole(path, |draft| {
        let records = source.trace.records().map_err(|error| unreadable(&source.path, &error))?;
        let processes = processes_of_nodes(source.trace.metadata(), records.map_while(Result::ok));
        let mut export =
            PerfettoExport::new(source.trace.metadata(), &source.names, &processes, buffered(draft));
        source.replay(&mut Chosen { source, sink: &mut export })?;
        let written = export.finish(source.span.1).and_then(|mut output| output.flush());
        written.map_err(|error| unwritten(path, error))
    })
}

fn ctf(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    let refused = |error| match error {
        CtfError::Prepare { folder, source } => Failure::uncreated("the folder", &folder, &source),
        CtfError::Write { source, .. } => unwritten(path, source),
        error => Failure::new(error, ""),
    };
    CtfExport::check(path).map_err(refused)?;
    let draft = FolderDraft::create(path, &source.path)?;
    let left = draft.left(path);
    let write = |draft: FolderDraft| {
        let export = CtfExport::create(draft.path(), source.trace.metadata(), &source.names);
        let mut export = export.map_err(refused)?;
        source.replay(&mut Chosen { source, sink: &mut export })?;
        let summary = export.finish().map_err(refused)?;
        draft.finish().map_err(|error| unwritten(path, error))?;
        Ok(summary)
    };
    let summary = write(draft).map_err(|failure| with_help(failure, left))?;
    if summary.raised > 0 {
        tell!(
            "note: {} events that were recorded late have the time of the event before them in {}",
            summary.raised,
            path_shown(path)
        );
    }
    Ok(())
}

#[cfg(feature = "parquet")]
fn parquet(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    source.write_whole(path, |draft| {
        let mut export = ParquetExport::new(source.trace.metadata(), &source.names, buffered(draft))
            .map_err(|error| unwritten(path, error))?;
        source.replay(&mut Chosen { source, sink: &mut export })?;
        let mut output = export.finish().map_err(|error| unwritten(path, error))?;
        output.flush().map_err(|error| unwritten(path, error))
    })
}

fn csv(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    source.write_whole(path, |draft| {
        let mut broken = None;
        let records = source.trace.records().map_err(|error| source.cut(&error))?;
        let records = records.map_while(|record| record.map_err(|error| broken = Some(error)).ok());
        let records = records.filter(|record| source.lets_through(record));
        export_csv(source.trace.metadata(), &source.names, records, buffered(draft))
            .map_err(|error| unwritten(path, error))?;
        broken.map_or(Ok(()), |error| Err(source.cut(&error)))
    })
}

fn schedule(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    source.write_whole(path, |draft| {
        let mut schedule = ScheduleCsv::new(source.trace.metadata(), buffered(draft));
        source.replay(&mut schedule)?;
        let unseen = schedule.finish(source.span.1).map_err(|error| unwritten(path, error))?;
        artefacts::warn_of_unseen(path, unseen);
        Ok(())
    })
}

fn svg(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    let (from, to) = stretch(source)?;
    source.write_whole(path, |draft| {
        let mut builder = timeline::Builder::new(source.trace.metadata(), from, to);
        source.replay(&mut builder)?;
        let picture = builder.finish(source.span.1);
        if picture.has_unseen() {
            tell!(
                "warning: {} shows where several jobs shared a processor and nobody saw which of them ran; {SEE_SHARING}",
                path_shown(path)
            );
        }
        let picture = picture.svg().map_err(|error| unwritten(path, error))?;
        draft.file().write_all(picture.as_bytes()).map_err(|error| unwritten(path, error))
    })
}

fn ages(source: &Source<'_>, path: &Path) -> Result<(), Failure> {
    let (from, to) = stretch(source)?;
    let mut builder = talea_figure::ages::Builder::new(source.trace.metadata(), from, to);
    source.replay(&mut builder)?;
    let chart = builder.finish().ok_or_else(|| {
        Failure::new(
            "no job took a value in that stretch of the trace",
            "inputs of the system say what is taken; the trace needs the events port.take and job.release",
        )
    })?;
    source.write_whole(path, |draft| {
        let picture = chart.svg().map_err(|error| unwritten(path, error))?;
        draft.file().write_all(picture.as_bytes()).map_err(|error| unwritten(path, error))
    })
}

/// What the picture is to show.
fn stretch(source: &Source<'_>) -> Result<(Instant, Instant), Failure> {
    let (start, (begins, ends)) = (source.trace.metadata().start, source.span);
    let from = source.options.from.map_or(begins, |from| start.saturating_add(from));
    if from >= ends {
        let length = |to: Instant| to.saturating_since(start).rounded();
        return Err(Failure::new(
            format!(
                "the picture would begin {} after the start of the run, of which the trace tells from {} to {}",
                length(from),
                length(begins),
                length(ends)
            ),
            "let it begin earlier, with --from",
        ));
    }
    if from < begins {
        tell!(
            "note: the trace begins {} after the start of the run",
            begins.saturating_since(start).rounded()
        );
    }
    Ok((from, from.saturating_add(source.options.length)))
}
