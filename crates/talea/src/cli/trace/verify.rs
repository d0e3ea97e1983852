//! `talea trace verify`.

use super::{open, unreadable, warn_of_cut};
use crate::cli::failure::{Failure, Verdict};
use crate::cli::options::{SystemOptions, plans};
use crate::cli::output::{self, Sheet};
use clap::Args;
use std::path::PathBuf;
use talea_time::Duration;
use talea_trace::verify::{OtherSystem, Verifier, VerifyReport, default_tolerance};
use talea_trace::{Metadata, Origin};

/// Check that a trace obeyed the policy of a system: lanes, orders, preemption, releases, precedence, overruns
///
/// Everything is judged from the records and the rules of the system's strategy. A trace of another system is refused;
/// one of the same system under another strategy has violations.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 if there is no violation, 1 if there is one, 2 for bad input.

Examples:
  talea trace verify examples/ofp.toml out/trace.talea
  talea trace verify examples/ofp.toml out/trace.talea --tolerance 50us --json")]
pub struct Options {
    #[command(flatten)]
    system: SystemOptions,
    /// The trace
    trace: PathBuf,
    /// How long a wrong state may last: 0 for simulated traces and 200us for real ones if not given
    #[arg(long, value_name = "TIME")]
    tolerance: Option<Duration>,
    /// List at most this many violations
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    /// Print the result as JSON instead
    #[arg(long)]
    json: bool,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let trace = open(&options.trace)?;
    let system = options.system.read()?;
    let plans = plans(&system)?;
    let metadata = trace.metadata();
    let tolerance = options.tolerance.unwrap_or_else(|| default_tolerance(metadata.origin));
    if tolerance < Duration::ZERO {
        return Err(Failure::new(
            "--tolerance is negative",
            "give how long a wrong state may last, such as 50us",
        ));
    }
    let other = |error: OtherSystem| {
        let (trace, system) = (options.trace.display(), options.system.system.display());
        Failure::new(
            format!("{trace} and {system}: {error}"),
            "give the system file that the run was made with",
        )
    };
    warn_of_cut(&trace.records().map_err(|error| unreadable(&options.trace, &error))?);
    let mut verifier = Verifier::new(metadata, &system, &plans, tolerance).map_err(other)?;
    trace.replay(&mut verifier).map_err(|error| unreadable(&options.trace, &error))?;
    let report = verifier.finish();
    if options.json {
        output::json(&report)?;
    } else {
        print(&report, metadata, options.limit)?;
    }
    Ok(if report.count() == 0 { Verdict::Fine } else { Verdict::Negative })
}

fn print(report: &VerifyReport, metadata: &Metadata, limit: usize) -> Result<(), Failure> {
    let mut lines = output::Lines::new();
    let listed = report.violations.iter().take(limit);
    for violation in listed {
        let [job, other] = [&violation.job, &violation.other].map(|name| name.as_deref());
        let who = match (job, other) {
            (Some(job), Some(other)) => format!("{job} before {other}: "),
            (Some(job), None) => format!("{job}: "),
            _ => String::new(),
        };
        let length = match violation.duration_ns {
            0 => String::new(),
            ns => format!(", for {}", Duration::from_nanos(ns).rounded()),
        };
        let seconds = violation.at_ns as f64 / 1e9;
        lines.line(&format!(
            "{seconds:>14.9}  {:<14}  {who}{}{length}",
            violation.rule.name(),
            violation.text
        ))?;
    }
    let count = report.count();
    let shown = report.violations.len().min(limit) as u64;
    if count > shown {
        lines.line(&format!("{:>14}  and {} more", "...", count - shown))?;
    }
    if count > 0 {
        lines.line(&format!("\n{}", rules(report)))?;
    }
    for line in summary(report, metadata) {
        lines.line(&line)?;
    }
    lines.finish()
}

fn rules(report: &VerifyReport) -> String {
    let mut sheet = Sheet::new(1, &["rule", "violations", "longest"]);
    for rule in &report.rules {
        let longest = match rule.longest_ns {
            0 => "-".into(),
            ns => Duration::from_nanos(ns).rounded().to_string(),
        };
        sheet.row(vec![rule.rule.name().into(), rule.violations.to_string(), longest]);
    }
    sheet.render()
}

fn summary(report: &VerifyReport, metadata: &Metadata) -> Vec<String> {
    let tolerance = Duration::from_nanos(report.tolerance_ns);
    let verdict = match report.count() {
        0 => "obeyed".to_string(),
        1 => "1 violation".to_string(),
        count => format!("{count} violations"),
    };
    let mut lines = vec![format!(
        "{} under {}: {verdict}; {} jobs, tolerance {tolerance}",
        report.system, report.strategy, report.jobs
    )];
    if report.strategy != report.strategy_of_trace {
        lines.push(format!("note: the trace was made under {}", report.strategy_of_trace));
    }
    if metadata.origin == (Origin::Threads { realtime: false }) {
        lines.push(
            "note: the threads of this run had no real-time priority, so lanes did not preempt each other"
                .into(),
        );
    }
    if report.lost_records > 0 {
        lines.push(format!(
            "warning: {} records were lost and {} about jobs could not be judged",
            report.lost_records, report.unjudged
        ));
    }
    lines
}
