//! What tests could not test here, which the test harness counts as passed.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Seek, SeekFrom, Write};
use tempfile::NamedTempFile;

/// The tests of a run that say that they are skipped. Shown as a list by reason.
pub struct Skipped(NamedTempFile);

impl Skipped {
    /// Where tests are to say so, and nobody has yet.
    ///
    /// # Errors
    /// There is no room for temporary files.
    pub fn collect() -> io::Result<Self> {
        tempfile::Builder::new().prefix("talea-skipped-").tempfile().map(Skipped)
    }

    /// `test` is skipped for this reason.
    pub fn note(&self, test: &str, reason: &str) {
        let noted = self.0.reopen().and_then(|mut file| {
            file.seek(SeekFrom::End(0))?;
            writeln!(file, "{test}\t{reason}")
        });
        noted.unwrap_or_else(|error| eprintln!("xtask: {test} is skipped, {reason}; not listed: {error}"));
    }

    /// The file's path, for the environment of the tests.
    pub fn file(&self) -> String {
        self.0.path().display().to_string()
    }
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::fs::read_to_string(self.0.path()) {
            Ok(lines) => f.write_str(&listed(&lines)),
            Err(error) => writeln!(f, "xtask: what was skipped cannot be read: {error}"),
        }
    }
}

/// Lines of a test, a tab and its reason, by reason; nothing of none.
fn listed(lines: &str) -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in lines.lines() {
        let (test, reason) = line.split_once('\t').unwrap_or(("", line));
        by_reason.entry(reason).or_default().push(if test.is_empty() { "a test" } else { test });
    }
    if by_reason.is_empty() {
        return String::new();
    }
    let count = lines.lines().count();
    let mut text = format!("xtask: skipped {count} times, which counts as passed:\n");
    for (reason, mut tests) in by_reason {
        tests.sort_unstable();
        tests.dedup();
        text.push_str(&format!("  {reason}\n    {}\n", tests.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_is_listed_by_its_reason() {
        let mut skipped = Skipped::collect().unwrap();
        assert_eq!(skipped.to_string(), "");
        let lines = "b\tno priorities\na\tno priorities\n\tno program\nb\tno priorities\n";
        skipped.0.write_all(lines.as_bytes()).unwrap();
        assert_eq!(
            skipped.to_string(),
            "xtask: skipped 4 times, which counts as passed:\n  no priorities\n    a, b\n  no program\n    a test\n"
        );
    }
}
