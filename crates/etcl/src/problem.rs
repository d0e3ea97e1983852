//! What is wrong with a constraint, and where.

use std::fmt;

/// A stretch of a constraint's text, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte behind the last one; equal to `start` where something is missing.
    pub end: u32,
}

impl Span {
    /// From byte `start` up to byte `end` of a text of less than 4 GiB, which [`Limits`](crate::Limits) ensure.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Span { start: start as u32, end: end as u32 }
    }

    /// From the beginning of this stretch to the end of the other.
    pub(crate) fn to(self, end: Span) -> Self {
        Span { start: self.start, end: end.end }
    }

    /// As a range of indices.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Line and column of its beginning in `text`, both from 1; a column is a character.
    pub fn line_and_column(self, text: &str) -> (usize, usize) {
        let before = text.get(..self.start as usize).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (line, column)
    }
}

/// Why a constraint is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// It does not follow the grammar.
    Syntax,
    /// It is larger than its [`Limits`](crate::Limits) permit, or these cannot be granted.
    Limit,
    /// It cannot be evaluated without an error, whatever comes, because of a type.
    Type,
    /// It names what the type that it is compiled for does not have.
    Name,
}

/// Something wrong with a constraint. The constraint has no effect; nothing else has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Why.
    pub kind: ProblemKind,
    /// Where in the text.
    pub span: Span,
    /// The line of its beginning, from 1.
    pub line: usize,
    /// The character of its beginning in the line, from 1.
    pub column: usize,
    /// What is wrong; of the grammar, what was expected and what was found.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

impl Problem {
    pub(crate) fn new(
        kind: ProblemKind,
        text: &str,
        span: Span,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (line, column) = span.line_and_column(text);
        Problem { kind, span, line, column, message: message.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}; {}", self.line, self.column, self.message, self.remedy)
    }
}

impl std::error::Error for Problem {}
