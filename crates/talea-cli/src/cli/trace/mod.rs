//! `talea trace`.

mod explain;
mod export;
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
use clap::{Args, Subcommand};
use std::fmt::Display;
use std::io;
use std::path::Path;
use talea_record::stream::Switching;
use talea_record::told::Beginning;
use talea_record::{Damage, Metadata, NameSpace, Told, TraceError, TraceFile, TraceKind};

/// Record programs from outside, follow them, and look into traces: records, numbers, reasons, and exports.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea run examples/ofp.toml --for 2s --out out
  talea trace show out/trace.talea --event complete --limit 20
  talea trace show ofp --follow --event complete
  talea trace read ofp
  talea trace stats out/trace.talea
  talea trace explain out/trace.talea
  talea trace verify examples/ofp.toml out/trace.talea
  talea trace export out/trace.talea --perfetto out/ofp.pftrace --svg out/ofp.svg --length 400ms

Where a trace is read, the stream of a program that runs, or has run, can be named instead: see `talea trace list`.")]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Record programs and the kernel from outside
    Record(record::Options),
    /// Show the programs that can be followed, and what they can tell
    List(list::Options),
    /// Switch events of a running program on
    Enable(switch::Options),
    /// Switch events of a running program off
    Disable(switch::Options),
    /// Read counters, histograms and objects of a program
    Read(read::Options),
    /// Print records, one per line
    Show(show::Options),
    Stats(stats::Options),
    Explain(explain::Options),
    Verify(verify::Options),
    /// Write the trace for other programs
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
        Command::Verify(options) => verify::main(options),
        Command::Explain(options) => explain::main(options),
        Command::Export(options) => export::main(options),
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
    let help = match error {
        TraceError::OtherVersion { .. } => "read it with the Talea that wrote it, or record it anew",
        TraceError::Empty | TraceError::Unfinished => "",
        TraceError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            "traces and streams are for the user alone who made them; ask for a copy, or read it as that user"
        }
        TraceError::Io(_) | TraceError::NotATrace => {
            "`talea run` and `talea sim` write trace.talea into the folder given with --out, and `talea trace record` the \
             file given with --out"
        }
        _ => "the file is damaged or was cut off; record it anew",
    };
    let error: &dyn Display = match error {
        TraceError::Io(error) => error,
        error => error,
    };
    Failure::new(format!("cannot read the trace {}: {error}", path.display()), help)
}

/// What was before a recording is missing in everything that is computed from it.
fn warn_of_beginning(metadata: &Metadata, told: &Told) {
    if metadata.has_system() && told.beginning() == Beginning::UnderWay {
        eprintln!(
            "note: the recording began with the run under way, so it tells of the rest of the run only"
        );
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
        eprintln!("{what}: {}: {sentence}", path.display());
    }
}
