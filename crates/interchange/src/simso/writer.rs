//! Writes a simulation that SimSo reads.

use super::schedulers::class_of;
use crate::number::milliseconds;
use crate::priority::levels;
use std::fmt::{self, Write};
use talea_model::{Description, Overrun};
use talea_time::{Duration, Work};

/// One task of SimSo.
pub(super) struct Row {
    /// Letters, digits, `-`, `_` and spaces: nothing that XML escapes.
    pub name: String,
    /// Index of the task that it belongs to.
    pub task: usize,
    pub is_head: bool,
    pub deadline: Duration,
    pub wcet: Work,
    pub mean: Work,
    pub deviation: Work,
    /// Index of the next row of its chain.
    pub followed_by: Option<usize>,
}

/// The file. A cycle is a nanosecond.
pub(super) fn write(description: &Description, processors: usize, average: bool, rows: &[Row]) -> String {
    let mut text = String::new();
    lines(&mut text, description, processors, average, rows).expect("writing to a string succeeds");
    text
}

fn lines(
    out: &mut String,
    description: &Description,
    processors: usize,
    average: bool,
    rows: &[Row],
) -> fmt::Result {
    let class = class_of(description.strategy);
    let has_priorities = class.ends_with("FP");
    // Long enough to see every task ten times.
    let longest = description.tasks.iter().map(|task| task.period).max().unwrap_or_default();
    let duration = (longest * 10).max(Duration::from_secs(1)).as_nanos();
    let model = if average { "acet" } else { "wcet" };
    writeln!(out, "<?xml version=\"1.0\" ?>")?;
    writeln!(out, "<simulation duration=\"{duration}\" cycles_per_ms=\"1000000\" etm=\"{model}\">")?;
    writeln!(
        out,
        "\t<sched class=\"{class}\" overhead=\"0\" overhead_activate=\"0\" overhead_terminate=\"0\"/>"
    )?;
    writeln!(out, "\t<caches memory_access_time=\"100\"/>")?;
    writeln!(out, "\t<processors>")?;
    for number in 1..=processors {
        writeln!(
            out,
            "\t\t<processor name=\"CPU {number}\" id=\"{number}\" cl_overhead=\"{}\" cs_overhead=\"0\" speed=\"1.0\"/>",
            description.overhead.switch.as_nanos()
        )?;
    }
    writeln!(out, "\t</processors>\n\t<tasks>")?;
    if has_priorities {
        writeln!(out, "\t\t<field name=\"priority\" type=\"int\"/>")?;
    }
    let (levels, count) = levels(description);
    for (number, row) in rows.iter().enumerate() {
        let priority = has_priorities.then(|| count - levels[row.task]);
        write_row(out, description, number + 1, row, priority)?;
    }
    writeln!(out, "\t</tasks>\n</simulation>")
}

fn write_row(
    out: &mut String,
    description: &Description,
    id: usize,
    row: &Row,
    priority: Option<usize>,
) -> fmt::Result {
    let task = &description.tasks[row.task];
    let kind = if row.is_head { "Periodic" } else { "APeriodic" };
    let abort = if task.overrun == Overrun::Abort { "yes" } else { "no" };
    let phase = if row.is_head { task.phase } else { Duration::ZERO };
    write!(
        out,
        "\t\t<task name=\"{}\" id=\"{id}\" task_type=\"{kind}\" abort_on_miss=\"{abort}\"",
        row.name
    )?;
    for (key, ns) in [
        ("period", task.period.as_nanos()),
        ("activationDate", phase.as_nanos()),
        ("deadline", row.deadline.as_nanos()),
        ("WCET", row.wcet.as_nanos()),
        ("ACET", row.mean.as_nanos()),
        ("et_stddev", row.deviation.as_nanos()),
    ] {
        write!(out, " {key}=\"{}\"", milliseconds(ns))?;
    }
    if let Some(next) = row.followed_by {
        write!(out, " followed_by=\"{}\"", next + 1)?;
    }
    if let Some(priority) = priority {
        write!(out, " priority=\"{priority}\"")?;
    }
    writeln!(
        out,
        " list_activation_dates=\"\" base_cpi=\"1.0\" instructions=\"0\" mix=\"0.5\" preemption_cost=\"0\"/>"
    )
}
