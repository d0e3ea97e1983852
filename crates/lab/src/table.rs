//! Tables that are read in a terminal and in a document.

use std::collections::HashSet;

/// Columns of a terminal beside an editor, and of a page.
const WIDTH: usize = 100;

/// Blanks between columns.
const GAP: usize = 2;

/// A share in percent, without the sign: for columns whose heading has it.
pub fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// Rows under headings; the first `text_columns` columns are words, the others numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    text_columns: usize,
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(text_columns: usize, headings: &[&str]) -> Self {
        let headings = headings.iter().map(ToString::to_string).collect();
        Table { text_columns, headings, rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has another number of cells than there are headings.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "a cell for each heading");
        self.rows.push(cells);
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Columns of equal width, without trailing blanks, in lines of at most a hundred columns.
    ///
    /// If the table is wider, its headings take several lines; and if that is not enough, it goes on in further tables below, which
    /// repeat the columns that say which row is which.
    pub fn text(&self) -> String {
        let columns: Vec<usize> = (0..self.headings.len()).collect();
        let whole =
            self.block(&columns, |column| length(&self.headings[column]).max(self.widest_cell(column)));
        if whole.lines().all(|line| length(line) <= WIDTH) {
            return whole;
        }
        let least = |column: usize| {
            let longest_word = self.headings[column].split(' ').map(length).max();
            longest_word.unwrap_or(0).max(self.widest_cell(column))
        };
        let key = self.key_columns();
        let used = |columns: &[usize]| columns.iter().map(|column| least(*column) + GAP).sum::<usize>() - GAP;
        let mut blocks = vec![columns[..key].to_vec()];
        for column in &columns[key..] {
            let block = blocks.last_mut().expect("there is one");
            let is_full = block.len() > key && used(block) + GAP + least(*column) > WIDTH;
            match is_full {
                true => blocks.push([&columns[..key], &[*column]].concat()),
                false => block.push(*column),
            }
        }
        blocks.iter().map(|block| self.block(block, least)).collect::<Vec<_>>().join("\n\n")
    }

    /// Some columns with their headings, which are broken at blanks to fit.
    fn block(&self, columns: &[usize], width: impl Fn(usize) -> usize) -> String {
        let headings: Vec<Vec<String>> =
            columns.iter().map(|column| broken(&self.headings[*column], width(*column))).collect();
        let height = headings.iter().map(Vec::len).max().unwrap_or(0);
        // Headings of fewer lines stand directly above the rows.
        let heading = |line: usize| {
            let cell = |lines: &Vec<String>| {
                let above = height - lines.len();
                line.checked_sub(above).map_or(String::new(), |line| lines[line].clone())
            };
            headings.iter().map(cell).collect::<Vec<_>>()
        };
        let rows = self.rows.iter().map(|row| columns.iter().map(|column| row[*column].clone()).collect());
        let lines = (0..height).map(heading).chain(rows).map(|cells: Vec<String>| {
            let padded = cells.iter().zip(columns).map(|(cell, column)| {
                let width = width(*column);
                if *column < self.text_columns {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_string()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn widest_cell(&self, column: usize) -> usize {
        self.rows.iter().map(|row| length(&row[column])).max().unwrap_or(0)
    }

    /// The fewest columns, from the first on, by which all rows differ; those of words if none do.
    fn key_columns(&self) -> usize {
        let differ = |count: &usize| {
            let keys: HashSet<&[String]> = self.rows.iter().map(|row| &row[..*count]).collect();
            keys.len() == self.rows.len()
        };
        (1..=self.text_columns).find(differ).unwrap_or(self.text_columns)
    }

    /// The same in Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: &Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |", cells.join(" | "))
        };
        let rule =
            (0..self.headings.len()).map(|column| if column < self.text_columns { "---" } else { "---:" });
        let rule = format!("|{}|", rule.collect::<Vec<_>>().join("|"));
        let rows = self.rows.iter().map(line);
        [line(&self.headings), rule].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The words of a text in lines of at most this width, or of one word.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        match last.is_empty() {
            true => last.push_str(word),
            false if length(last) + 1 + length(word) <= width => {
                last.push(' ');
                last.push_str(word);
            }
            false => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(1, &["name", "count"]);
        table.row(vec!["a".into(), "7".into()]);
        table.row(vec!["longer|".into(), "1234".into()]);
        assert_eq!(table.text(), "name     count\na            7\nlonger|   1234");
        assert_eq!(table.markdown(), "| name | count |\n|---|---:|\n| a | 7 |\n| longer\\| | 1234 |");
    }

    #[test]
    fn headings_are_broken_where_the_table_is_too_wide() {
        let mut table = Table::new(1, &["which of them", "count"]);
        table.row(vec!["x".repeat(92), "123456".into()]);
        let text = table.text();
        assert_eq!(text.lines().count(), 2, "it fits as it is: {text}");
        let mut table = Table::new(1, &["name", "jobs that were done in time", "jobs"]);
        table.row(vec!["x".repeat(80), "123456".into(), "7".into()]);
        let text = table.text();
        let lowest = text.lines().rev().nth(1).expect("there are headings");
        assert!(lowest.starts_with("name ") && lowest.ends_with(" time  jobs"), "{text}");
    }

    #[test]
    fn what_does_not_fit_goes_on_below_with_what_tells_rows_apart() {
        let headings: Vec<String> = (0..12).map(|number| format!("experiment-{number}")).collect();
        let mut all = vec!["figure", "edge", "kept"];
        all.extend(headings.iter().map(String::as_str));
        let mut table = Table::new(3, &all);
        for edge in ["FP → RES", "RES → J"] {
            let mut row = vec!["figure 1".to_string(), edge.into(), "yes".into()];
            row.extend((0..12).map(|number| format!("{}", 1_000_000_u64 << number)));
            table.row(row);
        }
        let text = table.text();
        assert!(text.lines().all(|line| length(line) <= WIDTH), "{text}");
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("figure  ")).collect();
        assert_eq!(headings.len(), 3, "{text}");
        assert!(headings.iter().all(|line| line.contains("edge")), "{text}");
        assert_eq!(headings.iter().filter(|line| line.contains("kept")).count(), 1, "{text}");
        assert!(text.contains(&(1_000_000_u64 << 11).to_string()), "{text}");
    }
}
