//! Explicit plans: who runs when and for how long, as a value and as a table of text.
//!
//! ```text
//! start, duration, child
//! 0ms,   5ms,      video     # the first entry
//! 8ms,   2ms,      audio
//! ```

pub(crate) mod table;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use table::Table;
use talea_time::Duration;

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

/// A text that is no plan, with all that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The mistakes, in the order of the lines; there is one at least.
    pub faults: Vec<PlanFault>,
}

/// One mistake in the text of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFault {
    /// The line, from 1; none for the text as a whole.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl std::error::Error for PlanError {}

/// Each mistake in a line, with its remedy.
impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, fault) in self.faults.iter().enumerate() {
            let separator = if place == 0 { "" } else { "\n" };
            write!(f, "{separator}{fault} ({})", fault.remedy)?;
        }
        Ok(())
    }
}

/// What is wrong, and where.
impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl PlanEntry {
    /// Stands in for an entry that cannot be read, behind the one `before` it: it lasts no time and is nobody's.
    pub(crate) fn stand_in(before: Option<&PlanEntry>) -> Self {
        let start = before.map_or(Duration::ZERO, |before| before.start);
        PlanEntry { start, duration: Duration::ZERO, child: String::new() }
    }
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
}

impl FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let Table { entries, faults, .. } = Table::read(text);
        match faults.is_empty() {
            true => Ok(Plan::new(entries)),
            false => Err(PlanError { faults: faults.into_iter().map(|(_, fault)| fault).collect() }),
        }
    }
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
        let plan: Plan = text.parse().expect("a plan");
        assert_eq!(plan.entries(), [entry(0, 5, "video"), entry(8, 2, "audio")]);
        assert_eq!(Table::read(text).lines, [4, 5]);
        assert!(plan.has("audio") && !plan.has("words"));
        // Columns stand where the first line says.
        let other: Plan = "Child, start,duration\nvideo,0ms,5ms\naudio,8ms,2ms".parse().expect("a plan");
        assert_eq!(other, plan);
    }

    #[test]
    fn all_that_is_wrong_is_said_with_its_line() {
        let refused = |text: &str| {
            let faults = text.parse::<Plan>().expect_err(text).faults;
            faults.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(refused("# nothing\n"), ["there is no entry"]);
        assert_eq!(
            refused("0ms,5ms,a\n\n5ms,5ms\n0ms,5,a\n-1ms,5,\nstart,duration,child"),
            [
                "line 3: there are 3 columns, and the entry has 2",
                "line 4: the duration: the time 5 has no unit",
                "line 5: the start: the time -1ms is negative",
                "line 5: the duration: the time 5 has no unit",
                "line 5: the entry does not say who runs",
                "line 6: the start: \"start\" is not a time",
                "line 6: the duration: \"duration\" is not a time",
            ]
        );
        assert_eq!(
            refused("start, durtion, who\n0ms, 5ms, a"),
            [
                "line 1: unknown column \"durtion\"",
                "line 1: unknown column \"who\"",
                "line 1: there is no column \"child\""
            ]
        );
        assert_eq!(
            refused("start, duration, child, start, note\n0ms, 5, a, 0ms, x"),
            [
                "line 1: there are two columns \"start\"",
                "line 1: unknown column \"note\"",
                "line 2: the duration: the time 5 has no unit"
            ]
        );
        assert_eq!(
            refused("start; duration; child\n0ms; 5ms; a"),
            ["line 1: the first line is neither an entry nor the names of columns"]
        );
        let most = refused(&"1,1,a\n".repeat(1000));
        assert_eq!((most.len(), &*most[100]), (101, "line 50: further lines are not read"));
    }
}
