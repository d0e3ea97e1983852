//! A plan as a table of text: one entry in a line, its cells between commas.
//!
//! The first line may name the columns, in any order; without it they are start, duration, child. Blank lines, and what is behind a
//! `#`, count as nothing. All mistakes are found at once.

use super::{COLUMNS, PlanEntry, PlanFault};
use crate::suggest::{known_words, nearest, time_fault};
use talea_time::Duration;

/// Further mistakes are not looked for.
const FAULTS_LIMIT: usize = 100;

/// What was read of a text, and what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Those that cannot be read have [stand-ins](PlanEntry::stand_in).
    pub entries: Vec<PlanEntry>,
    /// The line of each entry, from 1.
    pub lines: Vec<usize>,
    /// What is wrong, and with which entry.
    pub faults: Vec<(Option<usize>, PlanFault)>,
}

/// Where the cells of an entry stand in its line.
#[derive(Clone, Copy)]
struct Columns {
    /// Of each of [`COLUMNS`].
    places: [usize; COLUMNS.len()],
    /// How many cells a line has.
    count: usize,
}

impl Columns {
    const IN_ORDER: Columns = Columns { places: [0, 1, 2], count: COLUMNS.len() };

    /// Their names as they stand in a line.
    fn names(self) -> String {
        let mut names = COLUMNS;
        names.sort_by_key(|name| {
            COLUMNS.iter().position(|column| column == name).map(|index| self.places[index])
        });
        names.join(", ")
    }
}

impl Table {
    /// Reads a text; the rules of plans are not looked at.
    pub(crate) fn read(text: &str) -> Self {
        let mut table = Table::default();
        let mut columns = None;
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let written = line.split('#').next().unwrap_or("").trim();
            if written.is_empty() {
                continue;
            }
            let (cells, line): (Vec<&str>, usize) = (written.split(',').map(str::trim).collect(), index + 1);
            match columns {
                None if is_heading(&cells) => match table.heading(&cells, line) {
                    Some(named) => columns = Some(named),
                    // Nobody knows which cell of a line is what.
                    None => return table,
                },
                _ => table.entry(&cells, *columns.get_or_insert(Columns::IN_ORDER), line),
            }
            if table.faults.len() >= FAULTS_LIMIT {
                let (line, problem) = (Some(line), "further lines are not read".into());
                table.faults.push((None, PlanFault { line, problem, remedy: "mend these first".into() }));
                break;
            }
        }
        if table.entries.is_empty() && table.faults.is_empty() {
            let remedy =
                "write one in each line: its start, its duration, and who runs, such as 0ms, 5ms, video";
            let (line, problem) = (None, "there is no entry".into());
            table.faults.push((None, PlanFault { line, problem, remedy: remedy.into() }));
        }
        table
    }

    /// Reads the names of the columns; none if some are not there.
    fn heading(&mut self, cells: &[&str], line: usize) -> Option<Columns> {
        let mut fault = |problem: String, remedy: String| {
            self.faults.push((None, PlanFault { line: Some(line), problem, remedy }));
        };
        let mut places = [None; COLUMNS.len()];
        let mut meant = Vec::new();
        let is_column = |cell: &str| COLUMNS.iter().any(|column| column.eq_ignore_ascii_case(cell));
        if !cells.iter().any(|cell| is_column(cell) || nearest(cell, COLUMNS).is_some()) {
            let remedy = format!("write {}, with commas between them", COLUMNS.join(", "));
            fault("the first line is neither an entry nor the names of columns".into(), remedy);
            return None;
        }
        for (place, cell) in cells.iter().enumerate() {
            match COLUMNS.iter().position(|column| column.eq_ignore_ascii_case(cell)) {
                None => {
                    meant.extend(nearest(cell, COLUMNS));
                    fault(format!("unknown column \"{cell}\""), known_words(cell, COLUMNS));
                }
                Some(column) if places[column].is_some() => {
                    let problem = format!("there are two columns \"{}\"", COLUMNS[column]);
                    fault(problem, "leave one of them out".into());
                }
                Some(column) => places[column] = Some(place),
            }
        }
        let absent = COLUMNS.iter().zip(places).filter(|(_, place)| place.is_none());
        for (column, _) in absent.filter(|(column, _)| !meant.contains(column)) {
            let remedy = format!("name the columns {} in the first line, in any order", COLUMNS.join(", "));
            fault(format!("there is no column \"{column}\""), remedy);
        }
        let [Some(start), Some(duration), Some(child)] = places else { return None };
        Some(Columns { places: [start, duration, child], count: cells.len() })
    }

    fn entry(&mut self, cells: &[&str], columns: Columns, line: usize) {
        let number = self.entries.len();
        let mut fault = |problem: String, remedy: String| {
            self.faults.push((Some(number), PlanFault { line: Some(line), problem, remedy }));
        };
        let mut read = PlanEntry::stand_in(self.entries.last());
        if cells.len() == columns.count {
            let [start, duration, child] = columns.places.map(|place| cells[place]);
            let mut time = |column: &str, written: &str| {
                let time = written.parse::<Duration>().map_err(time_fault);
                time.map_err(|(problem, remedy)| fault(format!("the {column}: {problem}"), remedy)).ok()
            };
            if let (Some(start), Some(duration)) = (time("start", start), time("duration", duration)) {
                read = PlanEntry { start, duration, ..read };
            }
            if child.is_empty() {
                fault("the entry does not say who runs".into(), "name a child of the scheduler".into());
            }
            read.child = child.into();
        } else {
            let (count, cells) = (columns.count, cells.len());
            let problem = format!("there are {count} columns, and the entry has {cells}");
            fault(problem, format!("write {}, with commas between them", columns.names()));
        }
        self.entries.push(read);
        self.lines.push(line);
    }
}

/// Whether a first line names columns: no cell of it is a time, right or wrong.
fn is_heading(cells: &[&str]) -> bool {
    !cells.iter().any(|cell| cell.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)))
}
