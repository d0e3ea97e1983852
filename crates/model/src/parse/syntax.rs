//! Syntax errors: the TOML parser's findings in the words of system files.

use super::Finding;
use crate::Severity;
use crate::problem::Lines;
use std::collections::HashSet;

/// The syntax errors by position, one per line: what follows on the same line is mostly confusion
/// about the first.
pub(super) fn problems(text: &str, lines: &Lines<'_>, errors: &[toml::de::Error]) -> Vec<Finding> {
    let mut found: Vec<_> = errors.iter().map(|error| problem(text, error)).collect();
    found.sort_by_key(|finding| finding.span.as_ref().map(|span| span.start));
    found.dedup_by_key(|finding| finding.span.as_ref().map(|span| lines.line(span.start)));
    // An open list swallows what follows and misses a comma at each line of it.
    found.dedup_by(|later, earlier| later.message == earlier.message && later.message == UNSEPARATED);
    found
}

const UNSEPARATED: &str = "a list or an inline table misses a comma or its end";

fn problem(text: &str, error: &toml::de::Error) -> Finding {
    let span = error.span();
    let written = span.clone().and_then(|span| text.get(span)).unwrap_or("").trim();
    let (message, remedy) = explain(error.message(), written);
    Finding { severity: Severity::Error, span, message, remedy }
}

/// Message and remedy for what the TOML parser says about `written`.
fn explain(message: &str, written: &str) -> (String, String) {
    let begins = |start: &str| message.starts_with(start);
    let quotes_missing = begins("string values must be quoted")
        || ["invalid boolean", "invalid float", "invalid date", "invalid time"].into_iter().any(begins);
    match () {
        () if begins("string values must be quoted") && written.is_empty() => {
            ("a value is missing after \"=\"".into(), "write one, or remove the key".into())
        }
        () if quotes_missing && !written.contains(['"', '\\', '\n']) => {
            (format!("{written} is text without quotes"), format!("write \"{written}\""))
        }
        () if begins("key with no value") => (
            "a key without \"=\" and a value".into(),
            "write key = value; a comment starts with #; what follows here may not have been read".into(),
        ),
        () if begins("duplicate key") => (
            format!("\"{written}\" is there already"),
            "keep one of them; the tables of a list, such as [[task]], have double brackets".into(),
        ),
        () if begins("unclosed table") => {
            ("the header of a table is not closed".into(), "end it with as many ] as it begins with [".into())
        }
        () if begins("missing comma") => (
            UNSEPARATED.into(),
            "separate elements with commas; end a list with ], an inline table with }".into(),
        ),
        () if begins("invalid unquoted key") && written == ":" => {
            ("a key with \":\" behind it".into(), "write key = value, with = instead of :".into())
        }
        () if begins("invalid unquoted key") => (
            format!("{written:?} cannot stand in a key"),
            "the keys of system files consist of lower-case letters and _".into(),
        ),
        () if written == "{" && begins("invalid key-value pair") => (
            "a line begins with {; this looks like JSON".into(),
            "system files are written in TOML: a [system] table, then lines of key = value".into(),
        ),
        () if begins("unclosed array") => ("a list is not closed".into(), "end it with ]".into()),
        () if begins("unclosed inline table") => {
            ("an inline table is not closed".into(), "end it with }".into())
        }
        () if begins("invalid basic string") || begins("invalid literal string") => {
            ("a text is not closed".into(), "end it with the quote it begins with, on the same line".into())
        }
        () => (message.to_owned(), "system files are written in TOML; see https://toml.io".into()),
    }
}

/// Of what was found while reading the tables, that which does not follow from the syntax errors:
/// nothing on their lines, and nothing at all if a table's header is broken, because
/// then keys may have come into the wrong table.
pub(super) fn certain_in_spite_of(
    syntax: &[Finding],
    found: Vec<Finding>,
    text: &str,
    lines: &Lines<'_>,
) -> Vec<Finding> {
    let line_of = |finding: &Finding| finding.span.as_ref().map(|span| lines.line(span.start));
    let broken: HashSet<usize> = syntax.iter().filter_map(line_of).collect();
    let all_lines: Vec<&str> = text.split('\n').collect();
    let header = |line: &usize| all_lines[*line - 1].trim_start().starts_with('[');
    if broken.iter().any(header) {
        return Vec::new();
    }
    let certain = |finding: &Finding| line_of(finding).is_some_and(|line| !broken.contains(&line));
    found.into_iter().filter(certain).collect()
}
