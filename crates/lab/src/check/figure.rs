//! The build-up of every task's bound, drawn.

use super::{CheckReport, PartKind, TaskCheck};
use crate::figure::{BuildUp, Stack};
use std::error::Error;
use std::path::Path;
use talea_time::Duration;

impl CheckReport {
    /// Draws, for the last subtask of every task, what its bound is made of, beside the deadline, as SVG.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn draw(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let stacks = self.tasks.iter().map(|task| {
            let last = task.subtasks.iter().max_by_key(|subtask| subtask.bound_ns.unwrap_or(i64::MAX));
            let last = last.expect("a task has subtasks");
            let mut parts = [0.0; PartKind::ALL.len()];
            for part in &last.parts {
                parts[part.kind as usize] += part.time_ns as f64 / 1e6;
            }
            Stack {
                label: task.name.clone(),
                begin_ms: -(last.arrival_ns.unwrap_or(0) as f64) / 1e6,
                parts: parts.iter().copied().enumerate().filter(|(_, length)| *length > 0.0).collect(),
                mark_ms: task.deadline_ns as f64 / 1e6,
                note: note(task),
            }
        });
        let title = format!(
            "{} under {}: longest response of each task, and its deadline",
            self.system, self.strategy
        );
        BuildUp {
            title,
            kinds: PartKind::ALL.map(|kind| kind.in_words().into()).to_vec(),
            mark: "deadline".into(),
            stacks: stacks.collect(),
        }
        .draw(path)
    }
}

/// `75.7 ms of 150 ms left`.
fn note(task: &TaskCheck) -> String {
    let time = |ns: i64| Duration::from_nanos(ns).rounded();
    match task.slack_ns {
        Some(slack) if slack >= 0 => format!("{} of {} left", time(slack), time(task.deadline_ns)),
        Some(slack) => format!("{} beyond {}", time(-slack), time(task.deadline_ns)),
        None => format!("no bound, deadline {}", time(task.deadline_ns)),
    }
}
