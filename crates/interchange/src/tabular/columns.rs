//! The columns of a table and the units in their names.

use crate::names::shown;
use talea_guarantee::suggest::nearest;

/// A column that a table may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Column {
    Task,
    Period,
    Deadline,
    Phase,
    Jitter,
    Criticality,
    Importance,
    Overrun,
    Subtask,
    Node,
    Cpus,
    Wcet,
    Exec,
    After,
}

impl Column {
    /// Every column, in the order in which they are written.
    pub const ALL: [Column; 14] = [
        Column::Task,
        Column::Period,
        Column::Deadline,
        Column::Phase,
        Column::Jitter,
        Column::Criticality,
        Column::Importance,
        Column::Overrun,
        Column::Subtask,
        Column::Node,
        Column::Cpus,
        Column::Wcet,
        Column::Exec,
        Column::After,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Column::Task => "task",
            Column::Period => "period",
            Column::Deadline => "deadline",
            Column::Phase => "phase",
            Column::Jitter => "jitter",
            Column::Criticality => "criticality",
            Column::Importance => "importance",
            Column::Overrun => "overrun",
            Column::Subtask => "subtask",
            Column::Node => "node",
            Column::Cpus => "cpus",
            Column::Wcet => "wcet",
            Column::Exec => "exec",
            Column::After => "after",
        }
    }

    fn holds_times(self) -> bool {
        use Column::{Deadline, Exec, Jitter, Period, Phase, Wcet};
        matches!(self, Period | Deadline | Phase | Jitter | Wcet | Exec)
    }

    fn named(name: &str) -> Option<Column> {
        Self::ALL.into_iter().find(|column| column.name().eq_ignore_ascii_case(name))
    }
}

/// A unit of time that the name of a column says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    pub name: &'static str,
    pub ns: i64,
}

const UNITS: [Unit; 7] = [
    Unit { name: "ns", ns: 1 },
    Unit { name: "us", ns: 1_000 },
    Unit { name: "µs", ns: 1_000 },
    Unit { name: "ms", ns: 1_000_000 },
    Unit { name: "s", ns: 1_000_000_000 },
    Unit { name: "min", ns: 60_000_000_000 },
    Unit { name: "h", ns: 3_600_000_000_000 },
];

/// The column that a cell of the first row names, or what is wrong with it and what to write.
pub(super) fn heading(cell: &str) -> Result<(Column, Option<Unit>), (String, String)> {
    let cell = cell.trim();
    if let Some(column) = Column::named(cell) {
        return Ok((column, None));
    }
    let (base, unit) = split_unit(cell);
    if let Some(unit) = unit
        && let Some(column) = Column::named(base)
    {
        let known = UNITS.into_iter().find(|known| known.name.eq_ignore_ascii_case(unit));
        return match known {
            Some(known) if column.holds_times() => Ok((column, Some(known))),
            Some(_) => Err((
                format!("the column \"{}\" holds no times", column.name()),
                format!("write \"{}\"", column.name()),
            )),
            None => Err((
                format!("the column {} names an unknown unit", shown(cell)),
                format!("the units are ns, us, ms, s, min, h: \"{}_ms\"", column.name()),
            )),
        };
    }
    let names = || Column::ALL.iter().map(|column| column.name());
    let remedy = match nearest(cell, names()).or_else(|| nearest(base, names())) {
        Some(nearest) => match unit.filter(|unit| UNITS.iter().any(|known| known.name == *unit)) {
            Some(unit) => format!("did you mean \"{nearest}_{unit}\"?"),
            None => format!("did you mean \"{nearest}\"?"),
        },
        None => format!("the columns are {}", names().collect::<Vec<_>>().join(", ")),
    };
    Err((format!("unknown column {}", shown(cell)), remedy))
}

/// `period_ms`, `period (ms)` and `period [ms]` as the name and the unit.
fn split_unit(cell: &str) -> (&str, Option<&str>) {
    let closed = cell.strip_suffix([')', ']']);
    let separators: &[char] = if closed.is_some() { &['(', '['] } else { &['_', ' '] };
    match closed.unwrap_or(cell).rsplit_once(separators) {
        Some((base, unit)) => (base.trim(), Some(unit.trim())),
        None => (cell, None),
    }
}

/// What separates the cells of a text: of the candidates the one that its first row has most of.
pub(super) fn delimiter(text: &str) -> u8 {
    let row = first_row(text);
    let count = |candidate: &u8| row.bytes().filter(|byte| byte == candidate).count();
    // Of equals the last wins, which is the comma.
    [b'\t', b';', b','].into_iter().max_by_key(count).unwrap_or(b',')
}

fn first_row(text: &str) -> &str {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.next().unwrap_or_default()
}

/// Whether the first row has at least two names of columns.
pub(crate) fn looks_like_a_table(text: &str) -> bool {
    let separator = char::from(delimiter(text));
    let cells = first_row(text).split(separator).map(|cell| cell.trim().trim_matches('"'));
    cells.filter(|cell| heading(cell).is_ok()).take(2).count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_name_columns_and_units() {
        let ns = |cell: &str| heading(cell).map(|(column, unit)| (column, unit.map(|unit| unit.ns)));
        assert_eq!(ns("Task"), Ok((Column::Task, None)));
        assert_eq!(ns("period_ms"), Ok((Column::Period, Some(1_000_000))));
        assert_eq!(ns(" WCET (us) "), Ok((Column::Wcet, Some(1_000))));
        assert_eq!(ns("deadline [µs]"), Ok((Column::Deadline, Some(1_000))));
        assert_eq!(ns("exec s"), Ok((Column::Exec, Some(1_000_000_000))));
    }

    #[test]
    fn unknown_headings_name_the_nearest() {
        let remedy = |cell: &str| heading(cell).expect_err("unknown").1;
        assert_eq!(remedy("peroid"), "did you mean \"period\"?");
        assert_eq!(remedy("perod_ms"), "did you mean \"period_ms\"?");
        assert_eq!(remedy("task_ms"), "write \"task\"");
        assert!(remedy("period_days").contains("ns, us, ms"));
        assert!(remedy("colour").starts_with("the columns are task, period"));
    }

    #[test]
    fn the_first_row_tells_the_delimiter() {
        assert_eq!(delimiter("# a;b;c\n\ntask,period\n"), b',');
        assert_eq!(delimiter("task;period;wcet"), b';');
        assert_eq!(delimiter("task\tperiod"), b'\t');
        assert_eq!(delimiter("task"), b',');
        assert!(looks_like_a_table("task;wcet_ms\n"));
        assert!(!looks_like_a_table("name = \"x\"\n"));
    }
}
