//! `talea trace`.

mod events;
mod explain;
mod export;
mod flow;
mod follow;
mod list;
mod named;
mod passive;
mod place;
mod promises;
mod read;
mod record;
mod show;
mod stats;
mod switch;
mod verify;

use super::failure::Failure;
use crate::cli::failure::path_shown;
use crate::cli::output::tell;
use clap::{Args, Subcommand};
use std::fmt::Display;
use std::io;
use std::path::Path;
use talea_record::recorded_events::Beginning;
use talea_record::stream::Switching;
use talea_record::{Damage, Metadata, NameSpace, RecordedEvents, TraceError, TraceFile, TraceKind};

/// Record, follow, explain, verify and export traces
///
/// A trace is a file of records: which job was released, started, preempted and completed when. `talea run` and `talea sim` write one
/// with --out; `talea trace record` writes one from outside, with the kernel's context switches if permitted.
///
/// A program that runs keeps its latest records in shared memory, its stream. Wherever a trace is read, such a program can be named
/// instead, by its process number or name, as shown by `talea trace list`. Events come in families, such as "job"; event
/// "complete" of that family is written job.complete, or only complete.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea run examples/ofp.toml --for 2s --out out
  talea trace show out/trace.talea --events complete --limit 20
  talea trace show ofp --follow --events complete
  talea trace read ofp
  talea trace stats out/trace.talea
  talea trace explain out/trace.talea
  talea trace verify examples/ofp.toml out/trace.talea
  talea trace export out/trace.talea --perfetto out/ofp.pftrace --svg out/ofp.svg --length 400ms")]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

// The summary and the description of a command stand on its options, unless two share these: a comment here would replace both.
#[derive(Subcommand)]
enum Command {
    Record(record::Options),
    List(list::Options),
    /// Switch events of a running program on
    ///
    /// The program writes these events into its stream from then on, whether or not anybody reads it. Commands that follow a program
    /// (`trace show --follow`, `trace record`) switch on what they need by themselves.
    #[command(after_help = "\
Examples:
  talea trace enable ofp dispatch
  talea trace enable 4711 nav.fix,job")]
    Enable(switch::Options),
    /// Switch events of a running program off
    ///
    /// This takes back what `talea trace enable` has switched on. Events that somebody follows stay on until they stop following,
    /// and are listed.
    #[command(after_help = "\
Examples:
  talea trace disable ofp all
  talea trace disable ofp 'job.re*'")]
    Disable(switch::Options),
    Read(read::Options),
    Show(show::Options),
    Stats(stats::Options),
    Explain(explain::Options),
    Flow(flow::Options),
    Verify(verify::Options),
    Export(export::Options),
}

pub fn main(options: &Options) -> super::Outcome {
    match &options.command {
        Command::Record(options) => record::main(options),
        Command::List(options) => list::main(options),
        Command::Enable(options) => switch::main(options, Switching::On),
        Command::Disable(options) => switch::main(options, Switching::Off),
        Command::Read(options) => read::main(options),
        Command::Show(options) => show::main(options),
        Command::Stats(options) => stats::main(options),
        Command::Flow(options) => flow::main(options),
        Command::Verify(options) => verify::main(options),
        Command::Explain(options) => explain::main(options),
        Command::Export(options) => export::main(options),
    }
}

pub(super) fn open(path: &Path) -> Result<TraceFile, Failure> {
    let trace = TraceFile::open(path).map_err(|error| unreadable(path, &error))?;
    if trace.kind() == TraceKind::Rings {
        tell!("note: {} holds rings, the latest records of each thread", path_shown(path));
    }
    Ok(trace)
}

fn unreadable(path: &Path, error: &TraceError) -> Failure {
    let help = match error {
        TraceError::NotATrace if path.extension().is_some_and(|extension| extension == "toml") => {
            "this may be a system; where a command takes both, the system comes first, and then the trace"
        }
        TraceError::OtherVersion { .. } => "read it with the Talea that wrote it, or record it anew",
        TraceError::Empty | TraceError::Unfinished => "",
        TraceError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            "traces and streams are for the user alone who made them; ask for a copy, or read it as that user"
        }
        TraceError::Io(_) | TraceError::NoFile(_) | TraceError::NotATrace => {
            "`talea run` and `talea sim` write trace.talea into the folder given with --out, and `talea trace record` the \
             file given with --out"
        }
        _ => "the file is damaged or was cut off; record it anew",
    };
    let error: &dyn Display = match error {
        TraceError::Io(error) => error,
        error => error,
    };
    Failure::new(format!("cannot read the trace {}: {error}", path_shown(path)), help)
}

/// What was before a recording is missing in everything that is computed from it.
fn warn_of_beginning(metadata: &Metadata, told: &RecordedEvents) {
    if metadata.has_system() && told.beginning() == Beginning::UnderWay {
        tell!("note: the recording began with the run under way, so it tells of the rest of the run only");
    }
}

/// The families of events that the trace may hold.
fn name_space(trace: &TraceFile, path: &Path) -> Result<NameSpace, Failure> {
    trace.name_space().map_err(|error| unreadable(path, &error))
}

/// What is wrong with the file is said once it has been read, beside what was found in the rest.
fn warn_of_damage(path: &Path, damage: &Damage) {
    for sentence in damage.sentences() {
        let what = if damage.is_none() { "note" } else { "warning" };
        tell!("{what}: {}: {sentence}", path_shown(path));
    }
}
