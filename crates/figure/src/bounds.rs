//! The build-up of every task's bound, drawn.

use crate::drawing::{BuildUp, Stack};
use std::error::Error;
use talea_check::{CheckReport, PartKind, TaskCheck};
use talea_time::Duration;

/// Rows drawn at most: those closest to their deadlines, or furthest beyond.
const ROWS: usize = 60;

/// The kind of what comes before a subtask's window: its predecessors and release jitter.
const RELEASE: usize = PartKind::ALL.len();

/// Draws, for the subtask of every task that completes last, what its bound is made of, beside the deadline, as SVG.
///
/// # Errors
/// What cannot be drawn, which nothing in it is.
pub fn draw(report: &CheckReport) -> Result<String, Box<dyn Error>> {
    let mut drawn: Vec<&TaskCheck> = report.tasks.iter().collect();
    let mut left_out = String::new();
    if drawn.len() > ROWS {
        let share = |task: &TaskCheck| task.slack_ns.map(|slack| slack as f64 / task.deadline_ns as f64);
        let tightness = |task: &TaskCheck| share(task).unwrap_or(f64::NEG_INFINITY);
        drawn.sort_by(|one, other| tightness(one).total_cmp(&tightness(other)));
        left_out = format!("; the {ROWS} tightest of {} tasks", drawn.len());
        drawn.truncate(ROWS);
    }
    let title = format!(
        "{} under {}: longest response of each task, and its deadline{left_out}",
        report.system, report.strategy
    );
    let mut kinds: Vec<String> = PartKind::ALL.map(|kind| kind.in_words().into()).to_vec();
    kinds.push("released late".into());
    BuildUp { title, kinds, mark: "deadline".into(), stacks: drawn.into_iter().map(stack).collect() }.svg()
}

fn stack(task: &TaskCheck) -> Stack {
    let last = task.subtasks.iter().max_by_key(|subtask| subtask.bound_ns.unwrap_or(i64::MAX));
    let last = last.expect("a task has subtasks");
    let begin_ms = -(last.arrival_ns.unwrap_or(0) as f64) / 1e6;
    let mut lengths = [0.0; RELEASE + 1];
    lengths[RELEASE] = begin_ms.max(0.0);
    for part in &last.parts {
        lengths[part.kind as usize] += part.time_ns as f64 / 1e6;
    }
    if last.parts.is_empty() {
        lengths[PartKind::Method as usize] = last.bound_ns.unwrap_or(0) as f64 / 1e6;
    }
    // What delays the release comes first.
    let order = [RELEASE].into_iter().chain(0..RELEASE);
    let parts = order.map(|kind| (kind, lengths[kind])).filter(|(_, length)| *length > 0.0);
    Stack {
        label: task.name.clone(),
        begin_ms: begin_ms.min(0.0),
        parts: if task.bound_ns.is_some() { parts.collect() } else { Vec::new() },
        mark_ms: task.deadline_ns as f64 / 1e6,
        note: note(task),
    }
}

/// `75.7ms of 150ms left`.
fn note(task: &TaskCheck) -> String {
    let time = |ns: i64| Duration::from_nanos(ns).rounded();
    match task.slack_ns {
        Some(slack) if slack >= 0 => format!("{} of {} left", time(slack), time(task.deadline_ns)),
        Some(slack) => format!("{} beyond {}", time(-slack), time(task.deadline_ns)),
        None => format!("no bound, deadline {}", time(task.deadline_ns)),
    }
}
