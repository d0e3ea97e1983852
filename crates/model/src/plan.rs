//! Explicit plans: who runs when and for how long, as a value and as a table of text.
//!
//! ```text
//! start, duration, child
//! 0ms,   5ms,      video     # the first entry
//! 8ms,   2ms,      audio
//! ```

use crate::suggest::time_fault;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use talea_time::Duration;
use thiserror::Error;

/// The most entries of a plan.
pub(crate) const ENTRIES_LIMIT: usize = 1_000_000;

/// The columns of a plan as text, which are the keys of an entry in a system file.
pub(crate) const COLUMNS: [&str; 3] = ["start", "duration", "child"];

/// When which child of a scheduler runs, in the order of the starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan(Arc<[PlanEntry]>);

/// `duration` of processor time for `child` from `start` after the beginning of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanEntry {
    /// When.
    pub start: Duration,
    /// How much: above zero.
    pub duration: Duration,
    /// The name of a scheduler or thread below the one that follows the plan.
    pub child: String,
}

/// `2ms from 8ms for "audio"`.
impl fmt::Display for PlanEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {} for \"{}\"", self.duration, self.start, self.child)
    }
}

/// A text that is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{problem}", .line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct PlanError {
    /// The line, from 1; none for the text as a whole.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl Plan {
    /// A plan of these entries, whatever the rules say about it.
    pub fn new(entries: impl Into<Arc<[PlanEntry]>>) -> Self {
        Plan(entries.into())
    }

    /// The entries.
    pub fn entries(&self) -> &[PlanEntry] {
        &self.0
    }

    /// Whether there is an entry for this child.
    pub fn has(&self, child: &str) -> bool {
        self.0.iter().any(|entry| entry.child == child)
    }

    /// Reads a plan and the line of each entry: one entry in a line, start, duration and child with commas between them. Blank lines, what
    /// is behind a `#`, and a first line with the names of the columns count as nothing.
    ///
    /// # Errors
    /// See [`PlanError`]; the rules of plans are not looked at.
    pub(crate) fn with_lines(text: &str) -> Result<(Self, Vec<usize>), PlanError> {
        let mut entries = Vec::new();
        let mut lines = Vec::new();
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let written = line.split('#').next().unwrap_or("").trim();
            let cells: Vec<&str> = written.split(',').map(str::trim).collect();
            if written.is_empty() || (entries.is_empty() && cells == COLUMNS) {
                continue;
            }
            entries.push(entry(&cells, index + 1)?);
            lines.push(index + 1);
        }
        if entries.is_empty() {
            let (line, problem) = (None, "there is no entry".into());
            let remedy =
                "write one in each line: its start, its duration, and who runs, such as 0ms, 5ms, video";
            return Err(PlanError { line, problem, remedy: remedy.into() });
        }
        Ok((Plan::new(entries), lines))
    }
}

impl FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        Plan::with_lines(text).map(|(plan, _)| plan)
    }
}

fn entry(cells: &[&str], line: usize) -> Result<PlanEntry, PlanError> {
    let fault = |problem: String, remedy: String| PlanError { line: Some(line), problem, remedy };
    let [start, duration, child] = cells else {
        let problem = format!("an entry has three columns, {}, not {}", COLUMNS.join(", "), cells.len());
        return Err(fault(problem, "write it as 0ms, 5ms, video".into()));
    };
    let time = |column: &str, written: &str| {
        written.parse::<Duration>().map_err(|error| {
            let (problem, remedy) = time_fault(error);
            fault(format!("the {column}: {problem}"), remedy)
        })
    };
    let (start, duration) = (time("start", start)?, time("duration", duration)?);
    if child.is_empty() {
        return Err(fault(
            "the entry does not say who runs".into(),
            "name a child in the third column".into(),
        ));
    }
    Ok(PlanEntry { start, duration, child: (*child).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start: i64, duration: i64, child: &str) -> PlanEntry {
        let (start, duration) = (Duration::from_millis(start), Duration::from_millis(duration));
        PlanEntry { start, duration, child: child.into() }
    }

    #[test]
    fn a_table_becomes_a_plan() {
        let text =
            "\u{feff}# frames\nstart, duration,child\n\n0ms,5ms,video # first\n  8ms , 2000us, audio\n";
        let (plan, lines) = Plan::with_lines(text).expect("a plan");
        assert_eq!(plan.entries(), [entry(0, 5, "video"), entry(8, 2, "audio")]);
        assert_eq!(lines, [4, 5]);
        assert!(plan.has("audio") && !plan.has("words"));
    }

    #[test]
    fn what_is_no_plan_is_refused_with_its_line() {
        let refused = |text: &str| text.parse::<Plan>().expect_err(text).to_string();
        assert_eq!(refused("# nothing\n"), "there is no entry");
        assert_eq!(
            refused("0ms,5ms,a\n\n5ms,5ms"),
            "line 3: an entry has three columns, start, duration, child, not 2"
        );
        assert_eq!(refused("0ms,5,a"), "line 1: the duration: the time 5 has no unit");
        assert_eq!(refused("-1ms,5ms,a"), "line 1: the start: the time -1ms is negative");
        assert_eq!(refused("0ms,5ms,"), "line 1: the entry does not say who runs");
        assert_eq!(refused("0ms,5ms,a\nstart,duration,child").split(':').next(), Some("line 2"));
    }
}
