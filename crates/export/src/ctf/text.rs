//! Names as TSDL can hold them: identifiers, string literals, and lists in which none occurs twice.

use std::collections::HashSet;

/// `name` as an identifier for a field: what is not an ASCII letter, digit or underscore becomes an underscore, and
/// one more underscore stands before it all, which readers take away again. So no name is a keyword or begins with a
/// digit. An empty name becomes `_unnamed`.
pub(super) fn identifier(name: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name = if name.is_empty() { "unnamed" } else { name };
    std::iter::once('_').chain(name.chars().map(legal)).collect()
}

/// `text` as a string literal. Control characters, which readers treat differently, become blanks.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            c if c.is_control() => literal.push(' '),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// `text` as a comment.
pub(super) fn comment(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("/* {} */", line.replace("*/", "* /"))
}

/// Names given so far, among which each new one is made different.
#[derive(Debug, Default)]
pub(super) struct Distinct(HashSet<String>);

impl Distinct {
    /// `name`, with the first number from 2 on behind it that makes it differ from all before.
    pub fn name(&mut self, name: String) -> String {
        let candidates = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}_{n}")));
        let mut free = candidates.skip_while(|candidate| self.0.contains(candidate));
        let name = free.next().expect("numbers do not end");
        self.0.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_legal_whatever_the_name() {
        let found: Vec<String> =
            ["speed", "event", "3rd gear", "größe", "", "a-b"].map(identifier).into_iter().collect();
        assert_eq!(found, ["_speed", "_event", "_3rd_gear", "_gr__e", "_unnamed", "_a_b"]);
    }

    #[test]
    fn literals_keep_quotes_and_unicode_on_one_line() {
        assert_eq!(literal("a \"b\" \\ ü\n*/"), "\"a \\\"b\\\" \\\\ ü */\"");
        assert_eq!(comment("a */ b\nc"), "/* a * / b c */");
    }

    #[test]
    fn names_that_became_equal_are_told_apart() {
        let mut names = Distinct::default();
        let found: Vec<String> =
            ["a", "a", "a_2", "b", "a"].into_iter().map(|name| names.name(name.into())).collect();
        assert_eq!(found, ["a", "a_2", "a_2_2", "b", "a_3"]);
    }
}
