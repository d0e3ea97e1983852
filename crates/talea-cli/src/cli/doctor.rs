//! `talea doctor`.

use super::draft::{Draft, Readers};
use super::failure::{Failure, Verdict};
use super::output;
use clap::Args;
use std::path::PathBuf;
use talea_runtime::doctor::{Finding, Status, Thoroughness, examine, measure};

/// Test what this machine and account allow, with the fix for what is missing
///
/// Real-time priorities, locked memory, kernel events and the like are really tried, in a thread that ends afterwards. The exit
/// status is 1 if threads with real-time priorities are not permitted.
///
/// With --measure it measures instead, for some seconds, what the mechanisms cost on this machine and how long it stalls, and says
/// what the kernel keeps from real-time threads: a profile, for `talea check --machine`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea doctor
  talea doctor --measure --out machine.toml
  talea check examples/mixed.toml --machine machine.toml")]
pub struct Options {
    /// Print the findings as JSON instead
    #[arg(long, conflicts_with = "measure")]
    json: bool,
    /// Measure what this machine costs and withholds, as TOML
    #[arg(long)]
    measure: bool,
    /// Write the profile there; it may be there already
    #[arg(long, value_name = "FILE", requires = "measure")]
    out: Option<PathBuf>,
}

pub fn main(options: &Options) -> super::Outcome {
    if options.measure {
        return profile(options);
    }
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

/// Measures, and says where the profile is.
fn profile(options: &Options) -> super::Outcome {
    let interrupted = super::interrupt::flag()?;
    // Before it measures for seconds, so that it does so for nothing nowhere.
    let draft = options.out.as_ref().map(|out| Draft::create(out, Readers::Usual)).transpose()?;
    let bar = super::progress::bar("measured", 2);
    let measured = measure(Thoroughness::Thorough, |done, parts| {
        bar.set_length(parts as u64);
        bar.set_position(done as u64);
        !interrupted.load(std::sync::atomic::Ordering::Relaxed)
    });
    bar.finish_and_clear();
    let machine = measured.ok_or_else(|| {
        Failure::new("interrupted: nothing was measured to the end", "it takes some seconds")
    })?;
    match draft.zip(options.out.as_ref()) {
        None => output::print(&machine.to_string())?,
        Some((draft, out)) => draft.complete(out, &machine.to_string())?,
    }
    Ok(Verdict::Fine)
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
