//! The rows of a table with the places of their cells.

use super::columns::{Column, Unit, delimiter, heading};
use crate::reading::Reading;
use csv::{ReaderBuilder, StringRecord, Trim};
use std::collections::HashMap;
use std::ops::Range;

/// A table whose header has been understood.
pub(super) struct Table {
    columns: HashMap<Column, (usize, Option<Unit>)>,
    /// How many cells the header has.
    width: usize,
    delimiter: u8,
    rows: Vec<Row>,
}

/// A row that is not empty.
pub(super) struct Row {
    cells: StringRecord,
    /// Where it begins.
    start: usize,
}

/// Reads the header and the rows; `None` if the header is wrong.
pub(super) fn read(reading: &mut Reading<'_>) -> Option<Table> {
    let text = reading.lines.text;
    let delimiter = delimiter(text);
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(Trim::All)
        .comment(Some(b'#'))
        .delimiter(delimiter)
        .from_reader(text.as_bytes());
    let mut table = Table { columns: HashMap::new(), width: 0, delimiter, rows: Vec::new() };
    for cells in reader.records() {
        let cells = match cells {
            Ok(cells) => cells,
            Err(error) => {
                reading.error(0..0, format!("the table cannot be read: {error}"), "check its quotes");
                return None;
            }
        };
        if cells.iter().all(str::is_empty) {
            continue;
        }
        let start = cells.position().map_or(0, |position| position.byte() as usize);
        let row = Row { cells, start: skip_to_row(text, start) };
        if table.width > 0 {
            table.rows.push(row);
        } else if !table.read_header(&row, reading) {
            return None;
        }
    }
    Some(table)
}

impl Table {
    fn read_header(&mut self, row: &Row, reading: &mut Reading<'_>) -> bool {
        self.width = row.cells.len();
        // Spreadsheets leave empty cells at the end of every row.
        let unnamed = row.cells.iter().rev().take_while(|cell| cell.is_empty()).count();
        for (index, cell) in row.cells.iter().take(self.width - unnamed).enumerate() {
            if reading.is_full() {
                break;
            }
            match heading(cell) {
                Ok((column, unit)) => {
                    if self.columns.insert(column, (index, unit)).is_some() {
                        let message = format!("the column \"{}\" is there twice", column.name());
                        reading.error(self.span_at(row, index, reading), message, "remove one of them");
                    }
                }
                Err((message, remedy)) => reading.error(self.span_at(row, index, reading), message, remedy),
            }
        }
        for column in [Column::Task, Column::Period, Column::Wcet] {
            if !self.columns.contains_key(&column) && !reading.has_errors() {
                let message = format!("the table has no column \"{}\"", column.name());
                reading.error(row.start..row.start + 1, message, "add it to the first row, and its cells");
            }
        }
        !reading.has_errors()
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The cell of a row; empty if the table or the row has none.
    pub fn cell<'r>(&self, row: &'r Row, column: Column) -> &'r str {
        let cell = self.columns.get(&column).and_then(|(index, _)| row.cells.get(*index));
        cell.unwrap_or_default()
    }

    pub fn unit(&self, column: Column) -> Option<Unit> {
        self.columns.get(&column).and_then(|(_, unit)| *unit)
    }

    /// Reports a row with more cells than the header.
    pub fn check_width(&self, row: &Row, reading: &mut Reading<'_>) {
        let extra = row.cells.iter().skip(self.width).position(|cell| !cell.is_empty());
        if let Some(extra) = extra {
            let message = format!("the row has {} cells, the first row {}", row.cells.len(), self.width);
            let span = self.span_at(row, self.width + extra, reading);
            reading.error(span, message, "remove a cell, or quote one that contains the separator");
        }
    }

    /// Where a cell stands, or the row if it has no such cell.
    pub fn span(&self, row: &Row, column: Column, reading: &Reading<'_>) -> Range<usize> {
        match self.columns.get(&column) {
            Some((index, _)) if *index < row.cells.len() => self.span_at(row, *index, reading),
            _ => self.row_span(row, reading),
        }
    }

    pub fn row_span(&self, row: &Row, reading: &Reading<'_>) -> Range<usize> {
        let rest = &reading.lines.text[row.start..];
        row.start..row.start + rest.find(['\n', '\r']).unwrap_or(rest.len())
    }

    fn span_at(&self, row: &Row, index: usize, reading: &Reading<'_>) -> Range<usize> {
        let bytes = &reading.lines.text.as_bytes()[row.start..];
        let mut start = 0;
        for _ in 0..index {
            start = (cell_end(bytes, start, self.delimiter) + 1).min(bytes.len());
        }
        row.start + start..row.start + cell_end(bytes, start, self.delimiter)
    }
}

/// The end of the cell that begins at `start`; a quote at its beginning hides separators up to the next one
/// that is not doubled.
fn cell_end(bytes: &[u8], start: usize, delimiter: u8) -> usize {
    let mut quoted = bytes.get(start) == Some(&b'"');
    let mut place = start + usize::from(quoted);
    while let Some(byte) = bytes.get(place) {
        if quoted && *byte == b'"' {
            if bytes.get(place + 1) == Some(&b'"') {
                place += 1;
            } else {
                quoted = false;
            }
        } else if !quoted && (*byte == delimiter || matches!(byte, b'\n' | b'\r')) {
            break;
        }
        place += 1;
    }
    place.min(bytes.len())
}

/// The reader counts skipped lines to the row after them.
fn skip_to_row(text: &str, mut start: usize) -> usize {
    loop {
        let rest = &text[start..];
        start += rest.len() - rest.trim_start_matches(['\n', '\r']).len();
        let rest = &text[start..];
        match rest.starts_with('#').then(|| rest.find('\n')).flatten() {
            Some(end) => start += end,
            None => return start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_in_the_text() {
        let text = "# comment\n\ntask,period_ms,wcet_ms\r\n\n# another\n\"a\"\"b\", 10 ,\"1,\n5\"\nc,2,3\n";
        let mut reading = Reading::new("x.csv", text);
        let table = read(&mut reading).expect("the header is good");
        let columns = [Column::Task, Column::Period, Column::Wcet];
        let spans = |row| columns.map(|column| &text[table.span(row, column, &reading)]);
        assert_eq!(spans(&table.rows()[0]), ["\"a\"\"b\"", " 10 ", "\"1,\n5\""]);
        assert_eq!(spans(&table.rows()[1]), ["c", "2", "3"]);
        assert_eq!(columns.map(|column| table.cell(&table.rows()[0], column)), ["a\"b", "10", "1,\n5"]);
    }

    #[test]
    fn empty_rows_and_cells_are_skipped() {
        let text = "task;period;wcet;;\n;;;;\n \na;1ms;2ms\nb;1ms;2ms;;;\n";
        let mut reading = Reading::new("x.csv", text);
        let table = read(&mut reading).expect("the header is good");
        assert_eq!(table.rows().len(), 2);
        table.rows().iter().for_each(|row| table.check_width(row, &mut reading));
        assert!(!reading.has_errors());
    }
}
