//! The cells of a row as values.

use super::columns::Column;
use super::rows::{Row, Table};
use crate::Effect;
use crate::names::{did_you_mean, shown};
use crate::number::nanoseconds;
use crate::reading::Reading;
use crate::settings::task_label;
use std::str::FromStr;
use talea_model::{CPU_LIMIT, Criticality, Execution, Overrun, UnknownKeyword};
use talea_time::{Duration, Work};

/// One row, to take values from.
pub(super) struct Cells<'a, 'r, 't> {
    pub table: &'a Table,
    pub row: &'a Row,
    pub reading: &'r mut Reading<'t>,
}

impl<'a> Cells<'a, '_, '_> {
    /// The text of a cell, unless it is empty.
    pub fn text(&self, column: Column) -> Option<&'a str> {
        Some(self.table.cell(self.row, column)).filter(|text| !text.is_empty())
    }

    /// How messages call the row.
    pub fn label(&self) -> String {
        let task = task_label(self.text(Column::Task).unwrap_or_default());
        match self.text(Column::Subtask) {
            Some(subtask) => format!("subtask {} of {task}", shown(subtask)),
            None => task,
        }
    }

    pub fn error(&mut self, column: Column, message: String, remedy: impl Into<String>) {
        let span = self.table.span(self.row, column, self.reading);
        self.reading.error(span, format!("{}: {message}", self.label()), remedy);
    }

    /// A cell that must not be empty.
    pub fn required(&mut self, column: Column) -> Option<&'a str> {
        let text = self.text(column);
        if text.is_none() {
            let name = column.name();
            self.error(
                column,
                format!("the {name} is missing"),
                format!("write it into the column \"{name}\""),
            );
        }
        text
    }

    /// A time, if there is one.
    pub fn time(&mut self, column: Column) -> Option<Duration> {
        let text = self.text(column)?;
        self.time_of(column, text)
    }

    fn time_of(&mut self, column: Column, text: &str) -> Option<Duration> {
        let name = column.name();
        let Some(unit) = self.table.unit(column) else {
            return match text.parse() {
                Ok(time) => Some(time),
                Err(error) => {
                    let remedy = format!("write a time such as 50ms, or call the column \"{name}_ms\"");
                    self.error(column, format!("the {name}: {error}"), remedy);
                    None
                }
            };
        };
        match nanoseconds(text, unit.ns) {
            Ok(time) => {
                let duration = Duration::from_nanos(time.ns);
                if time.rounded {
                    let span = self.table.span(self.row, column, self.reading);
                    let what = format!("is finer than a nanosecond and becomes {duration}");
                    self.reading.lose(Effect::Approximated, span, &self.label(), name, what);
                }
                Some(duration)
            }
            Err(fault) => {
                let remedy = format!("write a number of {}, as the first row says", unit.name);
                self.error(column, format!("the {name} {} {fault}", shown(text)), remedy);
                None
            }
        }
    }

    pub fn work(&mut self, column: Column) -> Option<Work> {
        self.time(column).map(Duration::as_work)
    }

    /// Execution times, if there are any.
    pub fn execution(&mut self) -> Option<Execution> {
        let column = Column::Exec;
        let text = self.text(column)?;
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        if !["uniform", "list"].contains(&first) {
            if first.starts_with(|c: char| c.is_ascii_alphabetic()) {
                let known = ["uniform", "list"];
                let remedy = did_you_mean(
                    first,
                    known,
                    "write a time, \"uniform\" and two times, or \"list\" and times",
                );
                self.error(column, format!("the exec {} is unknown", shown(first)), remedy);
                return None;
            }
            return self.work(column).map(Execution::Constant);
        }
        let mut works = Vec::new();
        for word in words {
            works.push(self.time_of(column, word)?.as_work());
        }
        match (first, works.as_slice()) {
            ("uniform", [low, high]) => Some(Execution::Uniform(*low, *high)),
            ("uniform", _) => {
                let message = format!("a uniform exec has two times, not {}", works.len());
                self.error(column, message, "write the least and the greatest: uniform 1ms 4ms");
                None
            }
            // The model refuses an empty list.
            _ => Some(Execution::List(works.into())),
        }
    }

    pub fn criticality(&mut self) -> Option<Criticality> {
        let text = self.text(Column::Criticality)?;
        let level = text.parse().ok().and_then(Criticality::from_level);
        let known = level.map_or_else(|| text.parse(), Ok);
        let unknown = |UnknownKeyword { known, .. }: UnknownKeyword| {
            let choice = format!("write 0 to 4 or one of {}", known.join(", "));
            let meant = Criticality::meant_by(text);
            let remedy = meant.map_or_else(|| did_you_mean(text, known, choice), Into::into);
            self.error(Column::Criticality, format!("the criticality {} is unknown", shown(text)), remedy);
        };
        known.map_err(unknown).ok()
    }

    pub fn importance(&mut self) -> Option<i32> {
        let text = self.text(Column::Importance)?;
        let number = text.parse().ok();
        if number.is_none() {
            let message = format!("the importance {} is not a whole number of 32 bits", shown(text));
            self.error(Column::Importance, message, "write one, such as 0 or -3");
        }
        number
    }

    pub fn overrun(&mut self) -> Option<Overrun> {
        let text = self.text(Column::Overrun)?;
        match Overrun::from_str(text) {
            Ok(overrun) => Some(overrun),
            Err(UnknownKeyword { known, .. }) => {
                let remedy =
                    did_you_mean(text, known.iter().copied(), format!("write one of {}", known.join(", ")));
                self.error(Column::Overrun, format!("the overrun {} is unknown", shown(text)), remedy);
                None
            }
        }
    }

    pub fn cpus(&mut self) -> Option<Vec<u16>> {
        let text = self.text(Column::Cpus)?;
        let numbers = text.split_whitespace().map(|word| word.parse().ok().filter(|cpu| *cpu < CPU_LIMIT));
        let numbers: Option<Vec<u16>> = numbers.collect();
        if numbers.is_none() {
            let message = format!("the cpus {} are not processor numbers", shown(text));
            self.error(Column::Cpus, message, format!("write numbers from 0 to {}: 0 2", CPU_LIMIT - 1));
        }
        numbers
    }

    /// The names in `after`, if it is not empty.
    pub fn after(&self) -> Option<Vec<&'a str>> {
        let text = self.text(Column::After)?;
        Some(if text == "[]" { Vec::new() } else { text.split_whitespace().collect() })
    }
}
