//! `talea trace stats`.

use super::{open, unreadable, warn_of_cut};
use crate::cli::failure::Verdict;
use crate::cli::options::positive;
use crate::cli::{output, report};
use clap::Args;
use std::path::PathBuf;
use talea_time::Duration;
use talea_trace::Accounting;

/// Compute the table of results again
#[derive(Args)]
pub struct Options {
    /// The trace
    trace: PathBuf,
    /// Length of the samples of effectiveness
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive)]
    sample: Duration,
    /// Print the report as JSON instead
    #[arg(long)]
    json: bool,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let trace = open(&options.trace)?;
    let mut accounting = Accounting::new(trace.metadata(), options.sample);
    trace.replay(&mut accounting).map_err(|error| unreadable(&options.trace, &error))?;
    let end = accounting.last();
    let report = accounting.finish(end);
    warn_of_cut(&trace.records().map_err(|error| unreadable(&options.trace, &error))?);
    if options.json {
        output::json(&report)?;
    } else {
        let mut lines = output::Lines::new();
        lines.line(&format!("{} under {}", report.system, report.strategy))?;
        lines.line(&report::text(&report))?;
        lines.finish()?;
    }
    Ok(Verdict::Fine)
}
