//! `talea trace stats`.

use super::{open, unreadable, warn_of_cut};
use crate::cli::failure::Verdict;
use crate::cli::options::positive;
use crate::cli::{output, report, usage};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use talea_time::Duration;
use talea_trace::usage::UsageReport;
use talea_trace::{Accounting, Report, Usage};

/// Compute the table of results again
#[derive(Args)]
pub struct Options {
    /// The trace
    trace: PathBuf,
    /// Length of the samples of effectiveness
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive)]
    sample: Duration,
    /// Say what single jobs took, too: execution, overhead and response of every operation
    #[arg(long)]
    jobs: bool,
    /// Print the report as JSON instead
    #[arg(long)]
    json: bool,
}

/// The report with what the processors' time went into.
#[derive(Serialize)]
struct Everything<'a> {
    #[serde(flatten)]
    report: &'a Report,
    usage: &'a UsageReport,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let trace = open(&options.trace)?;
    let mut sink = (Accounting::new(trace.metadata(), options.sample), Usage::new(trace.metadata()));
    trace.replay(&mut sink).map_err(|error| unreadable(&options.trace, &error))?;
    let (accounting, usage) = sink;
    let end = accounting.last();
    let report = accounting.finish(end);
    let usage = usage.finish();
    warn_of_cut(&trace.records().map_err(|error| unreadable(&options.trace, &error))?);
    if options.json {
        output::json(&Everything { report: &report, usage: &usage })?;
    } else {
        let mut lines = output::Lines::new();
        lines.line(&format!("{} under {}", report.system, report.strategy))?;
        lines.line(&report::text(&report))?;
        if options.jobs {
            lines.line(&format!("\n{}", usage::jobs(&usage)))?;
        }
        lines.line(&format!("\n{}", usage::text(&usage)))?;
        lines.finish()?;
    }
    Ok(Verdict::Fine)
}
