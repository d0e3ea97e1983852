//! `talea trace show`.

use super::{open, unreadable, warn_of_cut};
use crate::cli::failure::{Failure, Verdict};
use crate::cli::output;
use clap::Args;
use std::path::PathBuf;
use talea_trace::{Record, format_record};

/// Print records, one per line
#[derive(Args)]
pub struct Options {
    /// The trace
    trace: PathBuf,
    /// Print at most this many records
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    /// Print only records of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let trace = open(&options.trace)?;
    let metadata = trace.metadata();
    let wanted = match &options.task {
        None => None,
        Some(name) => Some(metadata.tasks.iter().position(|task| task.name == *name).ok_or_else(|| {
            let names: Vec<&str> = metadata.tasks.iter().map(|task| task.name.as_str()).collect();
            Failure::new(
                format!("the trace has no task \"{name}\""),
                format!("choose one of: {}", names.join(", ")),
            )
        })?),
    };
    let mut lines = output::Lines::new();
    let records = trace.records().map_err(|error| unreadable(&options.trace, &error))?;
    warn_of_cut(&records);
    let of_task = |record: &Record| {
        let operation = || metadata.operations.get(record.job().operation.index());
        wanted.is_none_or(|task| record.event.is_job() && operation().is_some_and(|entry| entry.task == task))
    };
    let mut left = options.limit.unwrap_or(usize::MAX);
    for record in records {
        let record = record.map_err(|error| unreadable(&options.trace, &error))?;
        if left == 0 {
            break;
        }
        if of_task(&record) {
            lines.line(&format_record(metadata, &record))?;
            left -= 1;
        }
    }
    lines.finish()?;
    Ok(Verdict::Fine)
}
