//! What is wrong with a file, with its position in it.

use crate::Severity;
use std::fmt;
use std::ops::Range;

/// How many problems the text form spells out; the rest is counted.
const SHOWN: usize = 100;

/// Something wrong with a system file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Error or warning.
    pub severity: Severity,
    /// Where in the file; `None` if it is about the file as a whole.
    pub location: Option<Location>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

/// A stretch of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Bytes of the text; may be empty at the place where something is missing.
    pub span: Range<usize>,
    /// The line of its start, from 1.
    pub line: usize,
    /// The character of its start in the line, from 1.
    pub column: usize,
}

/// All problems of a file that could not be made a system, in the order of their positions, warnings
/// included; those about the file as a whole come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    source_name: String,
    text: String,
    list: Vec<Problem>,
}

impl Problems {
    /// Why the `text` of a file cannot be used: by position, those about the file as a whole first, and at least one of them an error.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(source_name: &str, text: &str, list: Vec<Problem>) -> Self {
        assert!(!list.is_empty(), "a file is refused for a reason");
        Problems { source_name: source_name.into(), text: text.into(), list }
    }

    /// A problem with the file as a whole, of which there is no text to show.
    pub fn whole_file(source_name: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        let problem = Problem { severity: Severity::Error, location: None, message, remedy };
        Self::new(source_name, "", vec![problem])
    }

    /// The name of the file, as it was given.
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// The text that the spans index; empty if the file could not be read as text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The problems by position, those about the file as a whole first. At least one is an error.
    pub fn list(&self) -> &[Problem] {
        &self.list
    }
}

impl std::error::Error for Problems {}

/// For each problem `file:line:column: error: message`, and the remedy on a line of its own.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().take(SHOWN).enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}", problem.in_file(&self.source_name))?;
        }
        if self.list.len() > SHOWN {
            write!(f, "\n{}: and {} more problems", self.source_name, self.list.len() - SHOWN)?;
        }
        Ok(())
    }
}

impl Problem {
    /// As plain text of two lines, with the name of the file in front.
    pub fn in_file<'a>(&'a self, source_name: &'a str) -> impl fmt::Display + 'a {
        InFile { problem: self, source_name }
    }
}

struct InFile<'a> {
    problem: &'a Problem,
    source_name: &'a str,
}

impl fmt::Display for InFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { severity, location, message, remedy } = self.problem;
        write!(f, "{}:", self.source_name)?;
        if let Some(Location { line, column, .. }) = location {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {severity}: {message}\n  help: {remedy}")
    }
}

/// Where the lines of a text begin, so that a position is found without reading the text again.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines { text, starts: std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect() }
    }

    /// The number of the line that holds byte `offset`, from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    pub(crate) fn locate(&self, span: Range<usize>) -> Location {
        let floor = |offset: usize| self.text.floor_char_boundary(offset.min(self.text.len()));
        let span = floor(span.start)..floor(span.end).max(floor(span.start));
        let line = self.line(span.start);
        let before = &self.text[self.starts[line - 1]..span.start];
        Location { line, column: before.chars().count() + 1, span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "a = 1\nµ = \"µs\"\n";
        let lines = Lines::new(text);
        let place = |span| {
            let location = lines.locate(span);
            (location.line, location.column)
        };
        assert_eq!(place(0..1), (1, 1));
        assert_eq!(place(5..6), (1, 6));
        assert_eq!(place(11..12), (2, 5));
        assert_eq!(lines.locate(7..8).span, 6..8, "half a character is widened");
        assert_eq!(place(900..901), (3, 1));
    }
}
