//! `talea doctor`.

use super::failure::Verdict;
use super::output;
use clap::Args;
use talea_runtime::doctor::{Finding, Status, examine};

/// Test what this machine and account allow, with the fix for what is missing
///
/// Real-time priorities, locked memory, kernel events and the like are really tried, in a thread that ends afterwards. The exit
/// status is 1 if threads with real-time priorities are not permitted.
#[derive(Args)]
#[command(after_help = "Example:\n  talea doctor")]
pub struct Options {
    /// Print the findings as JSON instead
    #[arg(long)]
    json: bool,
}

pub fn main(options: &Options) -> super::Outcome {
    let findings = examine();
    let count = |status: Status| findings.iter().filter(|finding| finding.status == status).count();
    if options.json {
        output::json(&findings.iter().map(as_json).collect::<Vec<_>>())?;
    } else {
        let mut lines = output::Lines::new();
        for finding in &findings {
            lines.prose(&line(finding))?;
        }
        lines.line(&format!(
            "{} ok, {} warnings, {} failures",
            count(Status::Ok),
            count(Status::Warn),
            count(Status::Fail)
        ))?;
        lines.finish()?;
    }
    Ok(if count(Status::Fail) > 0 { Verdict::Negative } else { Verdict::Fine })
}

fn line(finding: &Finding) -> String {
    let mark = match finding.status {
        Status::Ok => "ok  ",
        Status::Warn => "warn",
        Status::Fail => "FAIL",
    };
    let remedy = finding.remedy.as_ref().map_or(String::new(), |remedy| {
        let indented: Vec<String> = remedy.lines().map(|line| format!("\n       {line}")).collect();
        indented.concat()
    });
    format!("{mark}  {}: {}{remedy}", finding.name, finding.found)
}

fn as_json(finding: &Finding) -> serde_json::Value {
    let status = match finding.status {
        Status::Ok => "ok",
        Status::Warn => "warn",
        Status::Fail => "fail",
    };
    serde_json::json!({
        "name": finding.name, "status": status, "found": finding.found, "remedy": finding.remedy,
    })
}
