//! `talea lab`.

use super::compare::Watch;
use super::failure::{Failure, Verdict};
use super::output;
use crate::cli::failure::path_shown;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use talea_lab::compare::Clock;
use talea_lab::experiments::{ALL, Effort, Experiment, Extent, Options as ExperimentOptions};

/// List or run experiments
///
/// An experiment repeats a published one: it runs systems, compares what is measured with the claims of the paper, and says of
/// each claim whether it holds on this machine.
#[derive(Args)]
#[command(after_help = "Examples:\n  talea lab list\n  talea lab run strategies --sim --quick")]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the experiments with their parts and sources
    #[command(after_help = "Example:\n  talea lab list")]
    List,
    Run(RunArguments),
}

/// Run an experiment and write its results to a folder
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea lab run strategies --sim --quick
  talea lab run s3 --quick --out out/s3")]
struct RunArguments {
    /// Name of the experiment, as in `talea lab list`
    name: String,
    /// In virtual time [default for all experiments but s3]
    #[arg(long, conflicts_with = "real")]
    sim: bool,
    /// On real threads of this machine [default for s3]
    #[arg(long)]
    real: bool,
    /// Only these parts of the experiment, separated by commas (see `talea lab list`)
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    part: Vec<String>,
    /// With fewer and shorter runs, enough to see the pattern
    #[arg(long)]
    quick: bool,
    /// On real threads, lift what the kernel keeps from real-time threads for as long as it takes (needs root; see `talea run`)
    #[arg(long, conflicts_with = "sim")]
    unthrottle: bool,
    /// Folder for its results [default: out/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn main(options: &Options) -> super::Outcome {
    match &options.command {
        Command::List => list(),
        Command::Run(arguments) => run(arguments),
    }
}

fn list() -> super::Outcome {
    let mut lines = output::Lines::new();
    for experiment in ALL {
        lines.prose(&format!(
            "{:<12} {}\n{:<12} {}",
            experiment.name, experiment.title, "", experiment.source
        ))?;
        if !experiment.parts.is_empty() {
            lines.prose(&format!("{:<12} parts: {}", "", experiment.parts.join(", ")))?;
        }
    }
    lines.finish()?;
    Ok(Verdict::Fine)
}

fn run(arguments: &RunArguments) -> super::Outcome {
    let experiment = Experiment::named(&arguments.name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|experiment| experiment.name).collect();
        Failure::new(
            format!("there is no experiment \"{}\"", arguments.name),
            format!("choose one of: {}", names.join(", ")),
        )
    })?;
    let options = ExperimentOptions {
        clock: match (arguments.sim, arguments.real) {
            (true, _) => Clock::Virtual,
            (_, true) => Clock::Real,
            _ => experiment.usual_clock,
        },
        effort: if arguments.quick { Effort::Quick } else { Effort::Full },
        parts: arguments.part.clone(),
        out: arguments.out.clone().unwrap_or_else(|| PathBuf::from("out").join(experiment.name)),
    };
    super::options::make_folder(Some(options.out.as_path()))?;
    let mut watch = Watch::new(experiment.name)?;
    let _lifted = (arguments.unthrottle && options.clock == Clock::Real).then(super::limits::lift);
    let findings = experiment.run(&options, &mut watch).map_err(|error| Failure::new(error, ""))?;
    watch.done();
    let mut lines = output::Lines::new();
    lines.prose(experiment.title)?;
    lines.line(&format!("\n{}\n", findings.table))?;
    for claim in &findings.claims {
        lines.prose(&format!("{:<19} {}\n{:<19} {}", claim.verdict, claim.statement, "", claim.figures))?;
    }
    let files: Vec<String> = findings.files.iter().map(path_shown).collect();
    lines.prose(&format!("\nwritten: {}", files.join(", ")))?;
    if let Extent::Cancelled { done, all } = findings.extent {
        lines.line(&format!("interrupted after {done} of {all} runs; the results are of these"))?;
    }
    lines.finish()?;
    Ok(Verdict::Fine)
}
