//! `talea replay`.

use super::failure::{Failure, Verdict, path_shown, read_system};
use super::interrupt;
use super::output::{self, Lines, Sheet, tell};
use clap::Args;
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use talea_replay::{OutputReport, REPORT, ReplayReport, TRACE, replay_file};
use talea_runtime::Operations;

/// Call the operations of a recorded run again, and compare what they publish and push
///
/// The trace has to have been recorded with --keep-values (in a program, Run::keep_values). Each operation is called in
/// the order of the recorded run, with the values and events that it took then, the instant at which it began, the
/// answers that it was given, what it read of the descriptor that released it, and the handle with which it was posted;
/// consumers of a program's own channels are called with the events that they were handed. What an operation, or a
/// consumer, publishes, and pushes into channels, is compared, byte for byte, with what it published and pushed then,
/// what it posts by operation, handle, deadline and execution time, and what a consumer answers to a delivery (ok,
/// retry, discard, fail). Code that uses only what it is handed publishes the same again; so a difference is a change
/// of the code, or something that the code uses and is not handed. Each operation is judged by itself: the others are
/// handed what was recorded.
///
/// PROGRAM is a program that runs its system with the library (talea::Run). It is started as for a run and gets as far
/// as Run::prepare or Run::run, or with room for posted work, whose operations it has to declare, as Prepared::run,
/// where it replays the trace and ends; so the first system that it prepares has to be that of the trace. What its
/// description has otherwise is said first. Operations that read sensors or sockets by other ways than job.read say so
/// when they are registered (ports.outside()); they are not called, and what they published is taken from the trace.
/// Without a program, the synthetic operations of a system file are replayed, with the seed of the recorded run.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 everything that was compared is equal; 1 something differs; 2 bad input, or nothing could be compared.

Examples:
  talea run examples/robot.toml --for 5s --out out --keep-values all
  talea replay out/trace.talea --system examples/robot.toml
  talea replay robot.trace -- target/release/examples/robot")]
pub struct Options {
    /// The trace of the run
    trace: PathBuf,
    /// The system file, to replay synthetic operations
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    system: Option<PathBuf>,
    /// Print the results as JSON instead
    #[arg(long)]
    json: bool,
    /// The program with the operations, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

pub fn main(options: &Options) -> super::Outcome {
    // What is wrong with the file is told as by every command that reads traces.
    super::trace::open(&options.trace)?;
    let report = match &options.system {
        Some(system) => {
            let system = read_system(system)?.system;
            replay_file(&system, Operations::synthetic(), &options.trace)
                .map_err(|error| Failure::new(error, ""))?
        }
        None if options.program.is_empty() => {
            let help = "give the program that ran the system behind --, or with --system the system file that `talea run` or `talea sim` had";
            return Err(Failure::new("nothing is given whose operations could be called", help));
        }
        None => replayed_by(&options.program, &options.trace)?,
    };
    for sentence in &report.damage {
        tell!("warning: {}: {sentence}", path_shown(&options.trace));
    }
    if options.json {
        output::json(&report)?;
    } else {
        show(&report)?;
    }
    if report.compared() == 0 {
        return Err(Failure::new(
            "nothing was compared: no operation that was called published a value, or pushed an event, that is known",
            "keep the values of operations that are not outside, and of those that they read",
        ));
    }
    Ok(if report.differing() > 0 { Verdict::Negative } else { Verdict::Fine })
}

/// What a program finds that is asked to replay the trace.
fn replayed_by(program: &[OsString], trace: &Path) -> Result<ReplayReport, Failure> {
    let shown = path_shown(&program[0]);
    let trace = std::path::absolute(trace).map_err(|cause| Failure::file("find", trace, cause))?;
    let folder = tempfile::tempdir()
        .map_err(|cause| Failure::new(format!("there is no temporary folder: {cause}"), ""))?;
    let answer = folder.path().join("report.json");
    let mut command = Command::new(&program[0]);
    // Ctrl-C ends the program as it ends this command, which then says so and leaves nothing behind.
    let interrupted = interrupt::flag()?;
    // What the program prints is not the result.
    command.args(&program[1..]).env(TRACE, &trace).env(REPORT, &answer).stdout(std::io::stderr());
    let ended = command.status().map_err(|cause| {
        Failure::new(
            format!("cannot start {shown}: {cause}"),
            "give the program that ran the system, behind --",
        )
    })?;
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::new("interrupted", ""));
    }
    let Ok(answer) = std::fs::read_to_string(&answer) else {
        return Err(Failure::new(
            format!("{shown} ended ({ended}) and has not replayed the trace"),
            "it has to get as far as talea::Run::prepare or run with these arguments",
        ));
    };
    let answer: Value = serde_json::from_str(&answer)
        .map_err(|cause| Failure::new(format!("what {shown} answered is no report: {cause}"), ""))?;
    if let Some(error) = answer["error"].as_str() {
        return Err(Failure::new(error, ""));
    }
    serde_json::from_value(answer["report"].clone()).map_err(|cause| {
        let help = "build it with the same Talea as this command";
        Failure::new(format!("what {shown} answered is no report: {cause}"), help)
    })
}

/// Differences of the description that are listed.
const LISTED: usize = 20;

fn show(report: &ReplayReport) -> Result<(), Failure> {
    let mut lines = Lines::new();
    for difference in report.differences.iter().take(LISTED) {
        lines.prose(&format!("note: {difference}"))?;
    }
    if report.differences.len() > LISTED {
        let more = report.differences.len() - LISTED;
        lines.prose(&format!(
            "note: {more} more are otherwise in the trace than in the description (--json lists them)"
        ))?;
    }
    if !report.differences.is_empty() {
        lines.line("")?;
    }
    let of = |rows: &[OutputReport], name| (!rows.is_empty()).then_some(name);
    let kinds = [of(&report.posts, "posts"), of(&report.outcomes, "answers")];
    let compared: Vec<&str> = ["output", "events"].into_iter().chain(kinds.into_iter().flatten()).collect();
    let compared = listed(&compared, "or");
    let mut sheet =
        Sheet::new(1, &[&compared, "compared", "equal", "differing", "unknown", "note"]).with_text_last();
    let handed_on = report.outputs.iter().chain(&report.publications).chain(&report.posts);
    let rows = handed_on.map(|row| (row, row.output.clone()));
    let answers = report.outcomes.iter().map(|row| (row, format!("{} (answers)", row.output)));
    for (row, name) in rows.chain(answers) {
        let number =
            |number: u64| if row.compared + row.unknown == 0 { "-".into() } else { number.to_string() };
        sheet.row(vec![
            name,
            number(row.compared),
            number(row.compared - row.differing),
            number(row.differing),
            number(row.unknown),
            note(row),
        ]);
    }
    lines.line(&sheet.render())?;
    lines.line("")?;
    if report.lost_records > 0 {
        let (records, are) = if report.lost_records == 1 { ("record", "is") } else { ("records", "are") };
        lines.prose(&format!("warning: {} {records} {are} lost", report.lost_records))?;
    }
    if report.unknown() > 0 {
        lines.prose(&format!(
            "note: {} values, events, posts or answers differ and prove nothing: their jobs had, then or before, taken values that are not recorded, or records are lost or damaged",
            report.unknown()
        ))?;
    }
    for posted in &report.posted {
        let (jobs, are) = if posted.jobs == 1 { ("job", "is") } else { ("jobs", "are") };
        lines.prose(&format!(
            "note: {} {jobs} of {}, which the program posted, {are} not called again: {}",
            posted.jobs,
            posted.operation,
            posted.why.words()
        ))?;
    }
    if report.compared() == 0 {
        return lines.finish();
    }
    let counted = [
        (&report.publications, "event", "events"),
        (&report.posts, "post", "posts"),
        (&report.outcomes, "answer", "answers"),
    ];
    let counted = counted.into_iter().filter_map(|(rows, one, several)| {
        match rows.iter().map(|row| row.compared).sum::<u64>() {
            0 => None,
            1 => Some(format!("1 {one}")),
            number => Some(format!("{number} {several}")),
        }
    });
    let values: u64 = report.outputs.iter().map(|row| row.compared).sum();
    let counted: Vec<String> = counted.chain([format!("{values} values")]).collect();
    let called = format!("{} jobs called again, {} compared", report.called, listed(&counted, "and"));
    match &report.first {
        None => lines.prose(&format!("{called}: all equal"))?,
        Some(first) => {
            lines.prose(&format!("{called}: {} differ", report.differing()))?;
            lines.prose(&format!("the first: {first}"))?;
        }
    }
    lines.finish()
}

/// Several things in a sentence.
fn listed<T: AsRef<str>>(things: &[T], last: &str) -> String {
    let joined = |things: &[T]| things.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match things {
        [before @ .., end] if !before.is_empty() => format!("{} {last} {}", joined(before), end.as_ref()),
        things => joined(things),
    }
}

/// What else there is to say of an output.
fn note(row: &OutputReport) -> String {
    let mut notes = Vec::new();
    if row.is_outside {
        notes.push("not called: taken from the trace".to_owned());
    }
    if !row.is_kept {
        notes.push("not recorded".to_owned());
    }
    if row.unrecorded > 0 {
        notes.push(format!("{} not recorded", row.unrecorded));
    }
    if let Some(first) = &row.first {
        notes.push(format!("from job {} on", first.instance));
    }
    notes.join("; ")
}
