//! Tables that are read in a terminal and in a document.

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

    /// Columns of equal width, without trailing blanks.
    pub fn text(&self) -> String {
        let lines = std::iter::once(&self.headings).chain(&self.rows);
        let width = |column: usize| lines.clone().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let line = |cells: &Vec<String>| {
            let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column < self.text_columns { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        lines.clone().map(line).collect::<Vec<_>>().join("\n")
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
}
