//! `talea vectors`.

use super::failure::{Failure, Verdict, path_shown};
use super::output;
use clap::Args;
use std::path::PathBuf;
use talea_lab::vectors::{self, CaseResult, Outcome, Tally};
use talea_text::printable;

/// Run test vectors and list what differs
///
/// A test vector is a file with inputs and the results that any implementation has to give; vectors/README.md describes the
/// formats. A line is printed per case; a failed one shows its first difference. Cases of a kind that this version does not know are
/// listed as unsupported and never count as passed. The last line has the counts.
#[derive(Args)]
#[command(after_help = "Example:\n  talea vectors vectors/traces_uniproc.json")]
pub struct Options {
    /// Files of vectors, or folders of such files
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Print only failures and the count
    #[arg(long)]
    quiet: bool,
    /// Print the results as JSON instead
    #[arg(long)]
    json: bool,
}

pub fn main(options: &Options) -> super::Outcome {
    let mut results = Vec::new();
    for path in &options.paths {
        for file in vectors::files(path).map_err(failure)? {
            results.extend(vectors::run_file(&file).map_err(failure)?);
        }
    }
    let tally = Tally::of(&results);
    if options.json {
        output::json(&as_json(&results, tally))?;
    } else {
        let mut lines = output::Lines::new();
        for result in &results {
            if !options.quiet || matches!(result.outcome, Outcome::Failed(_)) {
                lines.line(&line(result))?;
            }
        }
        lines.line(&tally.to_string())?;
        lines.finish()?;
    }
    Ok(if tally.failed > 0 { Verdict::Negative } else { Verdict::Fine })
}

fn failure(error: vectors::VectorError) -> Failure {
    // It names files, which may be called anything.
    Failure::new(printable(&error.to_string()), "give a vector file, or a folder that holds some")
}

fn line(result: &CaseResult) -> String {
    let name = path_shown(result.file.file_name().unwrap_or_default());
    let CaseResult { id, outcome, .. } = result;
    match outcome {
        Outcome::Passed => format!("passed       {name} {id}"),
        Outcome::Failed(difference) => format!("FAILED       {name} {id}: {difference}"),
        Outcome::Unsupported(reason) => format!("unsupported  {name} {id}: {reason}"),
    }
}

fn as_json(results: &[CaseResult], tally: Tally) -> serde_json::Value {
    let case = |result: &CaseResult| {
        let (outcome, detail) = match &result.outcome {
            Outcome::Passed => ("passed", None),
            Outcome::Failed(difference) => ("failed", Some(difference.to_string())),
            Outcome::Unsupported(reason) => ("unsupported", Some(reason.clone())),
        };
        serde_json::json!({ "file": result.file, "id": result.id, "outcome": outcome, "detail": detail })
    };
    serde_json::json!({
        "passed": tally.passed, "failed": tally.failed, "unsupported": tally.unsupported,
        "cases": results.iter().map(case).collect::<Vec<_>>(),
    })
}
