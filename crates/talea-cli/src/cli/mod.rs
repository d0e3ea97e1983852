//! The command line: arguments in, library calls, tables or JSON out.

mod artefacts;
mod check;
mod compare;
mod contents;
mod ctl;
mod doctor;
mod draft;
mod export;
mod failure;
mod import;
mod interrupt;
mod lab;
mod lowering;
mod options;
mod output;
mod progress;
#[cfg(test)]
mod reference;
mod report;
mod run;
mod sim;
mod trace;
mod translation;
mod usage;
mod vectors;

use clap::{Parser, Subcommand};
use failure::{Failure, Verdict};
use std::process::ExitCode;

/// Describe a real-time event-driven system once; check it, simulate it, run it, trace it.
#[derive(Parser)]
#[command(name = "talea", version, max_term_width = output::WIDTH, after_help = AFTER_HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  talea run examples/ofp.toml --for 10s              real threads on this machine
  talea sim examples/ofp.toml --for 1min             the same in virtual time
  talea compare examples/ofp.toml --strategy rms --strategy muf --strategy rms+mlf --sim
  talea check examples/ofp.toml                      lanes and utilisation

Exit status: 0 fine; 1 the answer is no (hard deadline missed, vector failed) or
a run's hierarchy of schedulers ended early by itself; 2 usage or input error.";

#[derive(Subcommand)]
enum Command {
    /// Run a system on real threads of this machine
    Run(run::Options),
    /// Run a system in virtual time
    Sim(sim::Options),
    /// Run a system under several strategies and compare them
    Compare(compare::Options),
    /// Prove or refute that a system's deadlines hold, before it runs
    Check(check::Options),
    /// Make a system file of an rt-app file, a SimSo simulation or a CSV table
    Import(import::Options),
    /// Write a system for rt-app, for SimSo or as a CSV table
    Export(export::Options),
    /// Run test vectors and list what differs
    Vectors(vectors::Options),
    /// List or run experiments
    Lab(lab::Options),
    /// Record, follow, explain, verify and export traces
    Trace(trace::Options),
    /// Look at a running hierarchy of schedulers, and change it while it runs
    Ctl(Box<ctl::Options>),
    /// Test what this machine and account allow, with the fix for what is missing
    Doctor(doctor::Options),
    /// Print the JSON Schema of system files
    #[command(after_help = "Example:\n  talea schema > talea.schema.json")]
    Schema,
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Run(options) => run::main(options),
        Command::Sim(options) => sim::main(&options),
        Command::Compare(options) => compare::main(&options),
        Command::Check(options) => check::main(&options),
        Command::Import(options) => import::main(&options),
        Command::Export(options) => export::main(&options),
        Command::Vectors(options) => vectors::main(&options),
        Command::Lab(options) => lab::main(&options),
        Command::Trace(options) => trace::main(&options),
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

/// The answer that a report gives.
fn verdict(report: &talea_insight::Report, fail_on: options::FailOn) -> Verdict {
    let fine = match fail_on {
        options::FailOn::Hard => report.critical_met() && report.promises_kept(),
        options::FailOn::Any => report.all_met() && report.promises_kept(),
        options::FailOn::Never => true,
    };
    if fine { Verdict::Fine } else { Verdict::Negative }
}
