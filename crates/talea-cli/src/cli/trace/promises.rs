//! What a trace says of the guarantees in hierarchies of schedulers.

use super::verify;
use crate::cli::failure::path_shown;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::options::{lanes_of, planned};
use crate::cli::output::{self, Sheet, length};
use crate::cli::report;
use serde::Serialize;
use std::path::Path;
use talea_insight::decisions::{Decisions, DecisionsReport, JudgedRecords, Rule};
use talea_insight::promises::{Breach, EdgeReport, PromisesReport, Side};
use talea_insight::verify::{Coverage, Verifier, VerifyReport};
use talea_insight::{Accounting, Promises, Report};
use talea_model::System;
use talea_record::{Contents, Damage, Event, Metadata, Origin, RecordedEvents, TraceFile};
use talea_time::Duration;

/// Whether a hierarchy of schedulers, not lanes alone, decided what runs next.
pub fn has_hierarchy(metadata: &Metadata) -> bool {
    metadata.hierarchy().is_some()
}

/// What withholds processors that were granted: there is no kernel in virtual time.
#[derive(Clone, Copy)]
struct Withholder {
    name: &'static str,
    column: &'static str,
}

impl Withholder {
    fn of(origin: Origin) -> Self {
        match origin {
            Origin::Simulation { .. } => Withholder { name: "the overhead", column: "by overhead" },
            Origin::Threads { .. } => Withholder { name: "the kernel", column: "by the kernel" },
        }
    }
}

/// Every edge with its guarantee, and whether the trace has a breach of it.
pub fn table(promises: &PromisesReport, told: &RecordedEvents, origin: Origin) -> String {
    let is_told = told.has(Event::VIOLATION);
    let by = Withholder::of(origin);
    let mut sheet =
        Sheet::new(4, &["node", "from", "to", "guarantee", "broken", by.column, "worst"]).with_text_last();
    let times = |watched: bool, count: u64| match (is_told, count) {
        (_, 0) if !watched => "not judged".to_string(),
        (false, _) => "?".to_string(),
        (true, 0) => "-".to_string(),
        (true, count) => count.to_string(),
    };
    for edge in promises.edges.iter().filter(|edge| edge.is_known()) {
        let EdgeReport { node, parent, child, guarantee, watched, broken, withheld, worst } = edge;
        let names = [node, parent, child, guarantee].map(String::clone);
        let unknown = if *watched { "-" } else { "not judged" };
        let worst = worst.as_ref().map_or(unknown.into(), |worst| amount(worst, by));
        let (broken, withheld) = (times(*watched, *broken), times(*watched, *withheld));
        sheet.row(names.into_iter().chain([broken, withheld, worst]).collect());
    }
    let mut text = format!("guarantees\n{}", sheet.render());
    if !is_told {
        let names = told.missing(&[Event::VIOLATION]);
        text.push_str(&format!(
            "\n? is what nobody knows, for want of {}; leave --events out",
            names.join(", ")
        ));
    }
    text
}

/// `1.2ms too little in 33ms at 2.04s`.
fn amount(breach: &Breach, by: Withholder) -> String {
    let window = Duration::from_nanos(breach.to_ns.saturating_sub(breach.from_ns)).rounded();
    let side = match breach.side {
        Side::TooLittle => "too little".to_owned(),
        Side::TooMuch => "too much".to_owned(),
        Side::Withheld => format!("withheld by {}", by.name),
        Side::HeldLate => format!("too much, held late by {}", by.name),
    };
    let at = Duration::from_nanos(breach.from_ns).rounded();
    format!("{} {side} in {window} at {at}", length(breach.amount_ns))
}

/// The result of a verification, as JSON.
#[derive(Serialize)]
struct Verified<'a> {
    system: &'a str,
    promises: &'a PromisesReport,
    /// None where they were not recorded.
    decisions: Option<&'a DecisionsReport>,
    /// What was found of the lanes; none where there are none, or their jobs were not recorded.
    lanes: Option<&'a VerifyReport>,
    damage: &'a Damage,
    /// Nodes with lanes that were not judged.
    not_judged: Vec<String>,
}

/// Verifies what a trace of hierarchies lets be verified: the promises that were found broken when it was made.
pub fn verify(
    path: &Path,
    trace: &TraceFile,
    system: &System,
    (json, limit): (Form, usize),
    allowed: (Duration, Duration),
) -> crate::cli::Outcome {
    let metadata = trace.metadata();
    let names = |nodes: &mut dyn Iterator<Item = &String>| nodes.cloned().collect::<Vec<_>>().join(", ");
    let in_trace = names(&mut metadata.nodes.iter().map(|node| &node.name));
    let expected = names(&mut system.nodes.iter().map(|node| &node.name));
    if in_trace != expected || metadata.system != system.name {
        return Err(Failure::new(
            format!(
                "{} is of system \"{}\" with nodes {in_trace}, and the system file of \"{}\" with {expected}",
                path_shown(path),
                metadata.system,
                system.name
            ),
            "give the system file that the run was made with",
        ));
    }
    // Where there are no bounds, releases that go by them are unknown.
    let planned = planned(system, &lanes_of(system)?);
    let system = planned.as_ref().unwrap_or(system);
    let accounting = Accounting::new(metadata, Duration::from_secs(1));
    let decisions = Decisions::new(metadata, system).with_tolerance(allowed.0);
    let mut sink = ((Promises::new(metadata), decisions), (accounting, Contents::new(metadata)));
    let replayed = trace.replay(&mut sink).map_err(|error| super::unreadable(path, &error))?;
    super::warn_of_damage(path, &replayed.damage);
    let ((promises, decisions), (accounting, contents)) = sink;
    let executed = system.with_threads_as_tasks();
    let lanes = lanes(path, trace, (&executed, &contents), allowed)?;
    let lanes = lanes.map(|report| report.with_damage(&replayed.damage));
    let not_judged = if lanes.is_some() { Vec::new() } else { with_lanes(metadata) };
    let (promises, told) = (promises.finish(), RecordedEvents::of(metadata, &contents));
    if !told.has(Event::VIOLATION) {
        return Err(Failure::new(
            format!("{}: broken guarantees were not recorded (hierarchy.violation)", path_shown(path)),
            "leave --events out, or add hierarchy to it",
        ));
    }
    let end = accounting.last();
    let report = accounting.finish(end);
    let has_decisions = contents.count(Event::VP_REQUEST) > 0 && told.has_all(&Decisions::EVENTS);
    let is_lowered = metadata.nodes.iter().any(|node| !node.decided_by.is_ours());
    let has_switches = is_lowered && contents.count(Event::SWITCH) > 0;
    let decisions = (has_decisions || has_switches).then(|| decisions.finish());
    match json {
        Form::Json => {
            let (system, damage) = (system.name.as_str(), &replayed.damage);
            output::json(&Verified {
                system,
                promises: &promises,
                decisions: decisions.as_ref(),
                lanes: lanes.as_ref(),
                damage,
                not_judged,
            })?;
        }
        Form::Text => {
            let mut lines = output::Lines::new();
            let lost = lanes.as_ref().map_or(0, |lanes| lanes.lost_records);
            let lost = lost.max(decisions.as_ref().map_or(0, |decisions| decisions.lost_records));
            print(&mut lines, &promises, decisions.as_ref(), (&report, &told, lost), limit)?;
            if let Some(lanes) = &lanes {
                lines.line("")?;
                verify::tell(&mut lines, lanes, metadata, limit)?;
            }
            let undecided = told.missing(&Decisions::EVENTS);
            if decisions.is_none() && !undecided.is_empty() && !is_lowered {
                lines.prose(&format!(
                    "note: nothing is known of what schedulers decided, for want of {}",
                    undecided.join(", ")
                ))?;
            }
            let has_jobs = lanes.as_ref().is_some_and(|lanes| lanes.jobs + lanes.bursts > 0);
            if decisions.is_none() && !has_jobs {
                lines.prose(nothing(promises.watched()))?;
            }
            if !not_judged.is_empty() {
                lines.prose(&format!(
                    "note: the lanes of {} were not judged, for want of records of jobs",
                    not_judged.join(", ")
                ))?;
            }
            lines.finish()?;
        }
    }
    let wrong =
        decisions.as_ref().map_or(0, DecisionsReport::count) + lanes.as_ref().map_or(0, VerifyReport::count);
    match promises.broken() + wrong {
        0 if !replayed.damage.is_none() => Err(Failure::new(
            format!("{}: what is left shows no broken guarantee, but the trace is damaged", path_shown(path)),
            "record it anew; of what is damaged nobody can say that it was kept",
        )),
        0 => Ok(Verdict::Fine),
        _ => Ok(Verdict::Negative),
    }
}

/// Why there is nothing that could be verified, where somebody watched so many edges.
fn nothing(watched: usize) -> &'static str {
    match watched {
        0 => {
            "nothing could be verified: the kernel decides, to which the hierarchy was lowered, which only its own records tell (--kernel switches,wakeups), and no thread of it has bursts"
        }
        _ => "nothing could be verified: the trace has neither decisions (hls) nor jobs",
    }
}

/// What there was to judge the schedulers by.
fn verified(decisions: &DecisionsReport) -> String {
    let JudgedRecords { requests, grants, revokes, releases, changes, switches } = decisions.judged;
    let count = |count: u64, one: &str, many: &str| match count {
        0 => format!("no {one}"),
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    let windows = count(decisions.cases(Rule::Guarantees), "window of a guarantee", "windows of guarantees");
    let kernel = match switches {
        0 => String::new(),
        _ => format!(", {}", count(switches, "switch of the kernel", "switches of the kernel")),
    };
    if decisions.judged.decisions() + changes == 0 {
        return format!("verified: {}", count(switches, "switch of the kernel", "switches of the kernel"));
    }
    format!(
        "verified: {} ({requests} requests, {grants} grants, {revokes} revocations, {releases} give-backs), {}, {windows}{kernel}",
        count(decisions.judged.decisions(), "decision", "decisions"),
        count(changes, "change of the hierarchy", "changes of the hierarchy"),
    )
}

/// Whether the schedulers decided as they may.
fn tell_decisions(
    lines: &mut output::Lines,
    decisions: &DecisionsReport,
    limit: usize,
) -> Result<(), Failure> {
    lines.prose(&verified(decisions))?;
    let mut sheet = Sheet::new(1, &["decisions", "judged", "violated"]);
    for rule in &decisions.rules {
        let violated = match (rule.cases, rule.violations) {
            (0, 0) => "not judged".to_owned(),
            (_, 0) => "-".into(),
            (_, count) => count.to_string(),
        };
        sheet.row(vec![rule.rule.name().into(), rule.cases.to_string(), violated]);
    }
    lines.line(&format!("\n{}", sheet.render()))?;
    if decisions.lost_kernel_records > 0 {
        lines.prose(&format!(
            "note: {} records of the kernel were lost; whether it obeyed priorities around them is unknown",
            decisions.lost_kernel_records
        ))?;
    }
    for violation in decisions.violations.iter().take(limit) {
        let seconds = violation.at_ns as f64 / 1e9;
        lines.prose(&format!("{seconds:>14.9}  {:<12}  {}", violation.rule.name(), violation.text))?;
    }
    let more = decisions.count().saturating_sub(decisions.violations.len().min(limit) as u64);
    if more > 0 {
        lines.line(&format!("{:>14}  and {more} more", "..."))?;
    }
    Ok(())
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Json,
}

/// What became of the jobs of all nodes and what their lanes did, if that was recorded.
fn lanes(
    path: &Path,
    trace: &TraceFile,
    (executed, contents): (&System, &Contents),
    (tolerance, overhead): (Duration, Duration),
) -> Result<Option<VerifyReport>, Failure> {
    let metadata = trace.metadata();
    let Ok(coverage) = Coverage::of(metadata, contents) else { return Ok(None) };
    let plans = lanes_of(executed)?;
    let verifier = Verifier::new(metadata, executed, &plans, tolerance).map_err(|error| {
        Failure::new(
            format!("{}: {error}", path_shown(path)),
            "give the system file that the run was made with",
        )
    })?;
    let mut verifier = verifier.with_coverage(coverage).with_overhead(overhead);
    trace.replay(&mut verifier).map_err(|error| super::unreadable(path, &error))?;
    Ok(Some(verifier.finish()))
}

/// The names of the nodes with lanes.
fn with_lanes(metadata: &Metadata) -> Vec<String> {
    let of_lanes = metadata.lanes.iter().filter(|lane| !lane.is_thread());
    let mut names: Vec<String> = of_lanes.map(|lane| metadata.nodes[lane.node].name.clone()).collect();
    names.dedup();
    names
}

fn print(
    lines: &mut output::Lines,
    promises: &PromisesReport,
    decisions: Option<&DecisionsReport>,
    (report, told, lost): (&Report, &RecordedEvents, u64),
    limit: usize,
) -> Result<(), Failure> {
    let by = Withholder::of(report.origin);
    for breach in promises.breaches.iter().take(limit) {
        let edge = &promises.edges[breach.edge];
        let seconds = breach.to_ns as f64 / 1e9;
        let (parent, child, guarantee) = (&edge.parent, &edge.child, &edge.guarantee);
        lines.prose(&format!("{seconds:>14.9}  {parent} to {child}, {guarantee}: {}", amount(breach, by)))?;
    }
    let more = promises.broken().saturating_sub(promises.breaches.len().min(limit) as u64);
    if more > 0 {
        lines.line(&format!("{:>14}  and {more} more", "..."))?;
    }
    lines.line(&format!("\n{}", report::threads(report, told)))?;
    lines.line(&format!("\n{}", table(promises, told, report.origin)))?;
    let verdict = match promises.broken() {
        0 if lost > 0 => format!(
            "unknown, for {lost} records were lost; no guarantee was found broken in what is left, and none is known to be kept"
        ),
        0 => "no guarantee was found broken".to_string(),
        1 => "a guarantee was found broken once".to_string(),
        count => format!("guarantees were found broken {count} times"),
    };
    let withheld = match promises.withheld() {
        0 => String::new(),
        count => format!(" ({count} by what {} withheld)", by.name),
    };
    let (watched, system) = (promises.watched(), &report.system);
    if watched == 0 && promises.broken() == 0 {
        lines
            .prose(&format!("{system}: no guarantee was judged, for the kernel decides about all of them"))?;
    } else {
        let others = match promises.edges.iter().filter(|edge| edge.is_known() && !edge.watched).count() {
            0 => String::new(),
            others => format!("; the kernel decides about {others} more, which nobody judged"),
        };
        lines.prose(&format!("{system}: {verdict}{withheld}, of {watched} that were watched{others}"))?;
    }
    match decisions {
        Some(decisions) => tell_decisions(lines, decisions, limit)?,
        None if watched > 0 => lines.prose(
            "note: the trace has no decisions (hls), so the word of who ran the hierarchy is taken for its guarantees",
        )?,
        None => {}
    }
    Ok(())
}
