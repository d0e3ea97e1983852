//! Tables that fit the output.

use super::shown;
use super::wrap::width;
use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width,
};

/// A table whose first `text_columns` columns are left-aligned and the others, numbers, right-aligned.
///
/// It fits the [width](super::wrap::width) of the output: first the gaps between columns become narrower, then text is broken inside its cells.
/// Where that would break words in pieces, the words behind numbers go below these; and where not even that suffices, the columns are
/// divided among several tables, one below the other, each with the text in front. A heading may have several lines. Columns without any
/// content are left out.
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

/// Words up to this length are not broken.
const WHOLE_WORD: usize = 12;

/// The blanks in front of each column where gaps are narrow, of which one is the column's own.
const NARROW_GAP: usize = 2;

/// How numbers with words behind them, such as `15ms late`, stand in their cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    /// In one line.
    Whole,
    /// In as many lines as it takes.
    Broken,
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
        let shown = self.shown();
        let fits = |text: &String| text.lines().all(|line| line.chars().count() <= columns);
        let in_one_line = |gap: Gap| Some(text_of(&self.table(&shown, Numbers::Whole, gap))).filter(fits);
        if let Some(text) = in_one_line(Gap::Wide).or_else(|| in_one_line(Gap::Narrow)) {
            return text;
        }
        if self.all_need(&shown, Numbers::Whole) <= columns {
            return text_of(&self.squeezed(&shown, Numbers::Whole, columns));
        }
        let parts = self.parts(&shown, columns);
        let parts = parts.iter().map(|part| text_of(&self.squeezed(part, Numbers::Broken, columns)));
        parts.collect::<Vec<_>>().join("\n\n")
    }

    /// The columns of each of the tables into which these are divided. None is divided where the text in front leaves little room beside it.
    fn parts(&self, shown: &[usize], columns: usize) -> Vec<Vec<usize>> {
        let (front, others): (Vec<usize>, Vec<usize>) =
            shown.iter().partition(|column| **column < self.text_columns);
        if self.all_need(&front, Numbers::Broken) > columns / 2 {
            return vec![shown.to_vec()];
        }
        let mut parts = vec![front.clone()];
        for column in others {
            let part = parts.last_mut().expect("there is one at first");
            let needed = self.all_need(part, Numbers::Broken) + self.need(column, Numbers::Broken);
            if needed > columns && part.len() > front.len() {
                parts.push(front.clone());
            }
            parts.last_mut().expect("there is one at first").push(column);
        }
        parts
    }

    /// The least width of these columns in which no word is broken that should not be, with the end of the line below the headings.
    fn all_need(&self, columns: &[usize], numbers: Numbers) -> usize {
        columns.iter().map(|column| self.need(*column, numbers)).sum::<usize>() + 1
    }

    /// The same of one, with the gap in front of it.
    fn need(&self, column: usize, numbers: Numbers) -> usize {
        let cells = std::iter::once(&self.headings).chain(&self.rows).map(|row| &row[column]);
        let lines = cells.flat_map(|cell| cell.lines());
        let length = |text: &str| text.chars().count();
        let of_line = |line: &str| match (self.is_text(column), numbers) {
            (true, _) => line.split(' ').map(length).max().unwrap_or(0).min(WHOLE_WORD),
            (false, Numbers::Whole) => length(line),
            (false, Numbers::Broken) => pieces(line).iter().map(|piece| length(piece)).max().unwrap_or(0),
        };
        lines.map(of_line).max().unwrap_or(0) + NARROW_GAP
    }

    /// The table of these columns with its text in as many lines as it takes.
    fn squeezed(&self, shown: &[usize], numbers: Numbers, columns: usize) -> Table {
        let mut table = self.table(shown, numbers, Gap::Narrow);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(columns).unwrap_or(u16::MAX));
        for (place, column) in shown.iter().enumerate() {
            let constraint = match self.is_text(*column) {
                true => {
                    let with_padding = self.need(*column, numbers) - 1;
                    let least = u16::try_from(with_padding).expect("words are up to a length");
                    ColumnConstraint::LowerBoundary(Width::Fixed(least))
                }
                false => ColumnConstraint::ContentWidth,
            };
            table.column_mut(place).expect("it is shown").set_constraint(constraint);
        }
        table
    }

    fn table(&self, shown: &[usize], numbers: Numbers, gap: Gap) -> Table {
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─')));
        table.set_header(self.cells(&self.headings, shown, numbers));
        for row in &self.rows {
            table.add_row(self.cells(row, shown, numbers));
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

    fn cells(&self, row: &[String], shown: &[usize], numbers: Numbers) -> Vec<Cell> {
        let cell = |column: &usize| match (self.is_text(*column), numbers) {
            (true, _) => Cell::new(&row[*column]).set_alignment(CellAlignment::Left),
            (false, Numbers::Whole) => Cell::new(&row[*column]).set_alignment(CellAlignment::Right),
            (false, Numbers::Broken) => {
                let columns = self.need(*column, numbers) - NARROW_GAP;
                let lines: Vec<String> = row[*column].lines().map(|line| filled(line, columns)).collect();
                Cell::new(lines.join("\n")).set_alignment(CellAlignment::Right)
            }
        };
        shown.iter().map(cell).collect()
    }
}

/// What stays together of a number with words: each word, with the numbers and signs behind it. So `≤ 5ms` is one piece, and `3 of 4 late` three.
fn pieces(line: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match pieces.last_mut() {
            Some(last) if !word.starts_with(char::is_alphabetic) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => pieces.push(word.to_string()),
        }
    }
    pieces
}

/// The pieces of a line in as few lines as they fit in.
fn filled(line: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces(line) {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + piece.chars().count() <= columns => {
                last.push(' ');
                last.push_str(&piece);
            }
            _ => lines.push(piece),
        }
    }
    lines.join("\n")
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

    /// A task and as many numbers with words behind them.
    fn late(numbers: usize) -> Sheet {
        let headings = std::iter::once("task").chain(std::iter::repeat_n("modified-\nmodification", numbers));
        let mut sheet = Sheet::new(1, &headings.collect::<Vec<_>>());
        sheet.row(
            std::iter::once("pressure")
                .chain(std::iter::repeat_n("≤ 18.97ms late", numbers))
                .map(Into::into)
                .collect(),
        );
        sheet
    }

    #[test]
    fn words_behind_numbers_go_below_them_before_words_of_text_are_broken() {
        let lines = |numbers| late(numbers).render_in(100).lines().map(String::from).collect::<Vec<_>>();
        assert_eq!(lines(5).len(), 4, "{:?}", lines(5));
        let broken = lines(6);
        assert_eq!(broken.len(), 5, "{broken:?}");
        assert_eq!(broken[3], format!("  pressure{}", "     ≤ 18.97ms".repeat(6)), "{broken:?}");
        assert_eq!(broken[4], format!("          {}", "          late".repeat(6)), "{broken:?}");
    }

    #[test]
    fn columns_without_room_go_into_a_table_below() {
        let text = late(9).render_in(100);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("  pressure")).count(), 2, "{text}");
        assert_eq!(text.matches("18.97ms").count(), 9, "{text}");
        // In a terminal that leaves no room beside the text, everything stays in one table.
        assert_eq!(late(9).render_in(16).matches("pressure").count(), 1);
    }
}
