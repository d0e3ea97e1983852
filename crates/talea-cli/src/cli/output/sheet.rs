//! Tables that fit the output.

use super::shown;
use super::wrap::width;
use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle};

/// A table whose first `text_columns` columns are left-aligned and the others, numbers, right-aligned.
///
/// It fits the [width](super::wrap::width) of the output where the numbers in it allow that: first the gaps between columns
/// become narrower, then text is broken inside its cells. A heading may have several lines. Columns without any content are left
/// out.
pub struct Sheet {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    text_columns: usize,
    last: Last,
}

/// What the last column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// The same as those before it.
    Alike,
    /// Text, behind numbers.
    Text,
}

/// Blanks between columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    Wide,
    Narrow,
}

impl Sheet {
    /// A sheet with these headings.
    pub fn new(text_columns: usize, headings: &[&str]) -> Self {
        let headings = headings.iter().map(ToString::to_string).collect();
        Sheet { headings, rows: Vec::new(), text_columns, last: Last::Alike }
    }

    /// The same with text in the last column.
    pub fn with_text_last(self) -> Self {
        Sheet { last: Last::Text, ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, row: Vec<String>) {
        self.rows.push(row.iter().map(|cell| shown(cell).into_owned()).collect());
    }

    /// The table as text without trailing blanks.
    pub fn render(&self) -> String {
        self.render_in(width())
    }

    /// The same in lines that are indented by two blanks more.
    pub fn render_indented(&self) -> Vec<String> {
        let text = self.render_in(width() - 2);
        text.lines().map(|line| format!("  {line}")).collect()
    }

    fn render_in(&self, columns: usize) -> String {
        let fits = |text: &String| text.lines().all(|line| line.chars().count() <= columns);
        let wide = text_of(&self.table(Gap::Wide));
        if fits(&wide) {
            return wide;
        }
        let narrow = self.table(Gap::Narrow);
        let text = text_of(&narrow);
        if fits(&text) { text } else { text_of(&self.squeezed(narrow, columns)) }
    }

    /// The table with its text in as many lines as it takes. Numbers are not broken, whatever width they take.
    fn squeezed(&self, mut table: Table, columns: usize) -> Table {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
        for (place, column) in self.shown().into_iter().enumerate() {
            if !self.is_text(column)
                && let Some(column) = table.column_mut(place)
            {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table
    }

    fn table(&self, gap: Gap) -> Table {
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─')));
        let shown = self.shown();
        table.set_header(self.cells(&self.headings, &shown));
        for row in &self.rows {
            table.add_row(self.cells(row, &shown));
        }
        if gap == Gap::Narrow {
            table.column_iter_mut().for_each(|column| {
                column.set_padding((1, 0));
            });
        }
        table
    }

    /// The columns with any content.
    fn shown(&self) -> Vec<usize> {
        let is_shown =
            |column: &usize| self.rows.is_empty() || self.rows.iter().any(|row| !row[*column].is_empty());
        (0..self.headings.len()).filter(is_shown).collect()
    }

    fn is_text(&self, column: usize) -> bool {
        column < self.text_columns || (self.last == Last::Text && column + 1 == self.headings.len())
    }

    fn cells(&self, row: &[String], shown: &[usize]) -> Vec<Cell> {
        let align = |column: &usize| {
            let alignment = if self.is_text(*column) { CellAlignment::Left } else { CellAlignment::Right };
            Cell::new(&row[*column]).set_alignment(alignment)
        };
        shown.iter().map(align).collect()
    }
}

fn text_of(table: &Table) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_string()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(name: &str, why: &str) -> Sheet {
        let mut sheet = Sheet::new(1, &["name", "number", "nothing", "why"]).with_text_last();
        sheet.row(vec![name.into(), "123456".into(), String::new(), why.into()]);
        sheet
    }

    #[test]
    fn what_fits_has_wide_gaps_and_no_empty_columns() {
        let text = sheet("a", "because").render();
        assert_eq!(text.lines().last(), Some("  a      123456   because"), "{text}");
    }

    #[test]
    fn gaps_become_narrower_before_text_is_broken() {
        let long = "x".repeat(81);
        let text = sheet("a", &long).render();
        assert_eq!(text.lines().last(), Some(format!("  a     123456  {long}").as_str()), "{text}");
        let longer = "word ".repeat(30);
        let text = sheet("a", &longer).render();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.contains("123456"), "{text}");
    }
}
