//! `talea trace stats`.

use super::{name_space, named, open, promises, unreadable, warn_of_beginning, warn_of_damage};
use crate::cli::failure::{Failure, Verdict};
use crate::cli::options::positive;
use crate::cli::output::tell;
use crate::cli::{contents, output, report, usage};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use talea_insight::machine::MachineReport;
use talea_insight::promises::PromisesReport;
use talea_insight::usage::UsageReport;
use talea_insight::{Accounting, Machine, Promises, Report, Usage};
use talea_record::contents::ContentsReport;
use talea_record::recorded_events::Beginning;
use talea_record::{Contents, Damage, RecordedEvents};
use talea_time::Duration;

/// Compute the tables of results from a trace
///
/// A trace of a run gives the tables that the run has printed. Other traces, of the kernel or of programs that publish events of
/// their own, have no jobs: their records are counted by event, and the kernel's context switches say who used the processors.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea trace stats out/trace.talea --jobs
  talea trace stats ofp  # of what the rings of a running program hold")]
pub struct Options {
    /// The trace: a file, or a program that runs, by process number or name
    #[arg(value_name = "PID|NAME|FILE")]
    trace: PathBuf,
    /// Length of the samples in which soft deadlines count only if no hard one was missed
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive)]
    sample: Duration,
    /// Show for every operation, too, what its jobs took: execution, overhead and response
    #[arg(long)]
    jobs: bool,
    /// Print the report as JSON instead
    #[arg(long)]
    json: bool,
}

/// The report with what the processors' time went into, and what the trace holds at all.
#[derive(Serialize)]
struct Everything<'a> {
    #[serde(flatten)]
    known: serde_json::Value,
    #[serde(skip)]
    report: &'a Report,
    #[serde(skip)]
    told: &'a RecordedEvents,
    /// Whether the run is in the trace from its beginning.
    beginning: Beginning,
    /// Whether there are tables of a system; without, the report and the usage of nodes are empty.
    has_system: bool,
    usage: &'a UsageReport,
    contents: &'a ContentsReport,
    /// Which guarantees of hierarchies were broken.
    promises: &'a PromisesReport,
    damage: &'a Damage,
    /// Which threads used the processors, by the kernel's records alone; nothing without them.
    machine: Option<&'a MachineReport>,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let path = named::file(&options.trace)?;
    let trace = open(&path)?;
    let metadata = trace.metadata();
    let names = name_space(&trace, &path)?;
    let of_system = (Accounting::new(metadata, options.sample), Usage::new(metadata));
    let mut sink = ((of_system, Promises::new(metadata)), (Contents::new(metadata), Machine::default()));
    let replayed = trace.replay(&mut sink).map_err(|error| unreadable(&path, &error))?;
    let (((accounting, usage), promises), (contents, machine)) = sink;
    let end = accounting.last();
    let machine = machine.finish();
    let told = RecordedEvents::of(metadata, &contents);
    let report = accounting.finish(end);
    let everything = Everything {
        known: report.to_json(&told),
        report: &report,
        told: &told,
        beginning: told.beginning(),
        has_system: metadata.has_system(),
        usage: &usage.finish(),
        contents: &contents.report(&names),
        promises: &promises.finish(),
        damage: &replayed.damage,
        machine: machine.as_ref(),
    };
    warn_of_damage(&path, &replayed.damage);
    warn_of_beginning(metadata, &told);
    if options.json {
        output::json(&everything)?;
    } else if contents.of_jobs() > 0 && metadata.has_system() {
        print_jobs(&everything, options)?;
    } else {
        print_contents(&everything, options)?;
    }
    Ok(Verdict::Fine)
}

fn print_jobs(everything: &Everything, options: &Options) -> Result<(), Failure> {
    let Everything { report, usage, told, .. } = everything;
    let mut lines = output::Lines::new();
    lines.prose(&format!("{} under {}", report.system, report.strategy))?;
    lines.line(&report::text_of(report, told))?;
    if !everything.promises.edges.is_empty() {
        lines.line(&format!("\n{}", promises::table(everything.promises, told, report.origin)))?;
    }
    if options.jobs {
        lines.line(&format!("\n{}", usage::jobs(usage)))?;
    }
    lines.line(&format!("\n{}", usage::text(usage)))?;
    lines.finish()
}

/// What there is in a trace without records of jobs.
fn print_contents(everything: &Everything, options: &Options) -> Result<(), Failure> {
    let Everything { report, has_system, contents, machine, .. } = everything;
    if options.jobs {
        tell!("note: --jobs shows nothing, for the trace tells of no job");
    }
    let missing = everything.told.missing_of_jobs();
    if *has_system && !missing.is_empty() {
        let were = if missing.len() == 1 { "was" } else { "were" };
        let options = RecordedEvents::options_for(&missing);
        tell!(
            "warning: {} {were} not recorded; to have the results of jobs, record with {options}",
            missing.join(", ")
        );
    }
    let mut lines = output::Lines::new();
    let is = if *has_system {
        format!("{} under {}: the trace tells of no job", report.system, report.strategy)
    } else {
        format!("{}: the trace holds no system, only records of programs or of the kernel", report.system)
    };
    lines.prose(&is)?;
    lines.line(&format!("\n{}", contents::text(contents)))?;
    // Without records of jobs, it is unknown what the rest of the processors' time was spent on.
    if let Some(machine) = machine {
        lines.line(&format!("\n{}", contents::machine(machine)))?;
    }
    lines.finish()
}
