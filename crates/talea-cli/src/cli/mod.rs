//! The command line: arguments in, library calls, tables or JSON out.

mod artefacts;
mod check;
mod compare;
mod contents;
mod ctl;
mod doctor;
mod draft;
#[cfg(test)]
mod examples;
mod export;
mod failure;
mod filter;
mod import;
mod interrupt;
mod lab;
mod limits;
mod lowering;
mod machine;
mod new;
mod options;
mod output;
mod progress;
#[cfg(test)]
mod reference;
mod replay;
mod report;
mod run;
mod sim;
mod trace;
mod translation;
mod usage;
mod vectors;

use clap::{Parser, Subcommand};
use failure::{Failure, Verdict};
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Describe a real-time event-driven system once; check it, simulate it, run it, trace it
///
/// A system file says what the tasks are: periods, deadlines, execution times. `check` computes before anything runs whether
/// the deadlines hold, `sim` plays the system in virtual time, `run` executes it on threads with real-time priorities, and
/// `trace` looks into what was recorded of either. All of them decide by the same scheduling code.
#[derive(Parser)]
#[command(name = "talea", version, max_term_width = output::WIDTH, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  talea check examples/ofp.toml                      do the deadlines hold?
  talea sim examples/ofp.toml --for 1min             a minute in virtual time
  talea run examples/ofp.toml --for 10s              ten seconds on threads of this machine
  talea compare examples/ofp.toml --strategy rms --strategy muf --strategy rms+mlf --sim
  talea help run                                     the options of a command

Times are numbers with a unit: ns, us, ms, s, min or h, such as 2.5ms. docs/glossary.md explains the terms.

Exit status: 0 fine; 1 the answer is no (a hard deadline was missed, a vector failed) or a run's hierarchy of schedulers ended \
early by itself; 2 usage or input error.";

// The summary and the description of a command stand on its options: a comment here would replace both.

#[derive(Subcommand)]
enum Command {
    Run(run::Options),
    Sim(sim::Options),
    Compare(compare::Options),
    Check(check::Options),
    New(new::Options),
    Import(import::Options),
    Export(export::Options),
    Filter(filter::Options),
    Vectors(vectors::Options),
    Lab(lab::Options),
    Trace(trace::Options),
    Replay(replay::Options),
    Ctl(Box<ctl::Options>),
    Doctor(doctor::Options),
    /// Print the JSON Schema of system files
    ///
    /// An editor that is given the schema completes the keys of system files and marks mistakes while one writes.
    #[command(after_help = "Example:\n  talea schema > talea.schema.json")]
    Schema,
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage_error(&error),
    };
    if talea_linux::unthrottle::recover() {
        output::tell!(
            "note: the kernel's limits of real-time threads, which a run had lifted that was killed, are back"
        );
    }
    let outcome = match arguments.command {
        Command::Run(options) => run::main(options),
        Command::Sim(options) => sim::main(&options),
        Command::Compare(options) => compare::main(&options),
        Command::Check(options) => check::main(&options),
        Command::New(options) => new::main(&options),
        Command::Import(options) => import::main(&options),
        Command::Export(options) => export::main(&options),
        Command::Filter(options) => filter::main(&options),
        Command::Vectors(options) => vectors::main(&options),
        Command::Lab(options) => lab::main(&options),
        Command::Trace(options) => trace::main(&options),
        Command::Replay(options) => replay::main(&options),
        Command::Ctl(options) => ctl::main(&options),
        Command::Doctor(options) => doctor::main(&options),
        Command::Schema => output::json(&talea_model::json_schema()).map(|()| Verdict::Fine),
    };
    match outcome {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Negative) => ExitCode::from(1),
        Err(failure) => {
            failure.show();
            ExitCode::from(2)
        }
    }
}

type Outcome = Result<Verdict, Failure>;

/// Help that was asked for, or what is wrong with the arguments, which are quoted and may be anything.
fn usage_error(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Whoever does not read help has seen enough of it.
        let _unread = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render();
    let is_coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let text = if is_coloured { text.ansi().to_string() } else { text.to_string() };
    output::say(text.trim_end());
    ExitCode::from(2)
}

/// The answer that a report gives.
fn verdict(report: &talea_insight::Report, fail_on: options::FailOn) -> Verdict {
    let fine = match fail_on {
        options::FailOn::Hard => report.critical_met() && report.chains_met() && report.promises_kept(),
        options::FailOn::Any => {
            report.all_met()
                && report.chains_met()
                && report.promises_kept()
                && report.unjudged().next().is_none()
        }
        options::FailOn::Never => true,
    };
    if fine { Verdict::Fine } else { Verdict::Negative }
}
