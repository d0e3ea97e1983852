//! How wide what is printed may be, and sentences in lines of that width.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::LazyLock;

/// Columns that help, tables and sentences fill at most: what a terminal beside an editor shows, and a page of documentation.
pub const WIDTH: usize = 100;

/// A terminal that is narrower than this gets lines of this width, which it breaks itself.
const NARROWEST: usize = 40;

/// What lines that go on are indented by, beyond the indentation of their first.
const HANGING: usize = 2;

/// A line may begin with a label, set apart by blanks that end before this column; then it goes on beside the label.
const LABELS: usize = 30;

/// The columns that there are: [`WIDTH`], or fewer where standard output is a terminal that has fewer.
pub fn width() -> usize {
    terminal_width(io::stdout()).map_or(WIDTH, |columns| columns.clamp(NARROWEST, WIDTH))
}

/// The same of standard error.
pub fn error_width() -> usize {
    terminal_width(io::stderr()).map_or(WIDTH, |columns| columns.clamp(NARROWEST, WIDTH))
}

/// The columns of the terminal that this output is, if it is one.
fn terminal_width(output: impl IsTerminal + AsFd) -> Option<usize> {
    let size = if output.is_terminal() { rustix::termios::tcgetwinsize(&output).ok() } else { None };
    // Some terminals say that they have none.
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// A record as it is printed: on a terminal that is too narrow for it in several lines. In a pipe or file each record is one line,
/// however long its names are, so that `grep` finds whole records.
pub fn fold(record: &str) -> Cow<'_, str> {
    // Asked once, since there may be millions of records.
    static IN_TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());
    if !*IN_TERMINAL {
        return record.into();
    }
    match terminal_width(io::stdout()) {
        Some(columns) if record.chars().count() > columns => wrapped(record, columns.max(NARROWEST)).into(),
        _ => record.into(),
    }
}

/// Sentences in lines that fit the output. Each line of `text` stays one if it fits, and is else broken at blanks; its further
/// lines are indented a little more than the first, or stand below what is beside its label.
pub fn wrap(text: &str) -> String {
    wrap_in(text, width())
}

/// The same for standard error.
pub fn wrap_error(text: &str) -> String {
    wrap_in(text, error_width())
}

/// A sentence in lines of so many columns, none of which is indented.
pub fn broken_at(text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| broken(line, columns, 0)).collect();
    lines.join("\n")
}

fn wrap_in(text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| wrapped(line, columns)).collect();
    lines.join("\n")
}

/// A text beside a label, such as the first columns of a table: its further lines stand below its first.
pub fn wrap_beside(label: &str, text: &str) -> String {
    broken(&format!("{label}{text}"), width(), label.chars().count())
}

fn wrapped(line: &str, columns: usize) -> String {
    let indent = indentation(line);
    broken(line, columns, label(line, indent).unwrap_or(indent + HANGING))
}

fn indentation(line: &str) -> usize {
    line.chars().take_while(|letter| *letter == ' ').count()
}

/// A line in as many as it takes, of which the second and later ones are indented by `further`.
fn broken(line: &str, columns: usize, further: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_string();
    }
    let indent = indentation(line);
    let mut lines = vec![" ".repeat(indent)];
    let mut used = indent;
    // Blanks within a line stay where it is not broken.
    for (place, word) in line[indent..].split(' ').enumerate() {
        let length = word.chars().count();
        let last = lines.last_mut().expect("there is a line");
        if place > 0 && used + 1 + length > columns {
            lines.push(" ".repeat(further) + word);
            used = further + length;
        } else {
            let blank = if place > 0 { " " } else { "" };
            last.push_str(blank);
            last.push_str(word);
            used += blank.len() + length;
        }
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

/// The column at which stands what is beside the line's label, if it has one.
fn label(line: &str, indent: usize) -> Option<usize> {
    let letters: Vec<char> = line.chars().take(LABELS).collect();
    let gap = (indent..letters.len()).find(|place| letters[*place..].starts_with(&[' ', ' ']))?;
    let beside = letters[gap..].iter().position(|letter| *letter != ' ')?;
    Some(gap + beside)
}

#[cfg(test)]
mod tests {
    use super::{broken, wrapped};

    #[test]
    fn lines_are_broken_at_blanks_and_go_on_indented() {
        assert_eq!(wrapped("one two three", 13), "one two three");
        assert_eq!(wrapped("one two three", 12), "one two\n  three");
        assert_eq!(wrapped("  a:  one two three", 12), "  a:  one\n      two\n      three");
        assert_eq!(wrapped("unbreakable", 5), "unbreakable");
        assert_eq!(wrapped("größer als vier", 10), "größer als\n  vier");
        assert_eq!(broken("  1  2  one two", 12, 8), "  1  2  one\n        two");
    }
}
