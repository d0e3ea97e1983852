//! Tests that could not be run where they were started, said so that it is seen.
//!
//! The test harness keeps to itself what a test that passes prints with the printing macros, and counts it as passed. So the reason
//! is written past it to standard error, and, where [`FILE`] names a file, as a line to that: `cargo xtask test` lists them at its end.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Command, Output};

/// The environment variable that names the file.
pub const FILE: &str = "TALEA_SKIPPED";

const MARK: &str = "skipped: ";

/// Notes that the calling test, or the part of it that `reason` begins with, is skipped.
pub fn skip(reason: impl Display) {
    let reason = reason.to_string();
    let reason = reason.trim().replace('\n', "; ");
    // The harness names its threads after tests; in one alone the test runs on the main thread.
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").map_or(String::new(), |name| format!("{name}: "));
    // Where there is no standard error, nobody can be told.
    let _unseen = writeln!(std::io::stderr(), "{MARK}{test}{reason}");
    let Some(file) = std::env::var_os(FILE) else { return };
    let line = format!("{}\t{}\n", test.trim_end_matches(": "), reason);
    let noted =
        OpenOptions::new().append(true).open(&file).and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = noted {
        let _unseen = writeln!(std::io::stderr(), "{}: {error}", file.display());
    }
}

/// Runs a program in which [`skip`] may be called, and which may not be able to write to the file any more: it is called here
/// once more for what it said.
///
/// # Errors
/// The program cannot be started.
pub fn output_of(command: &mut Command) -> std::io::Result<Output> {
    let output = command.env_remove(FILE).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().filter_map(|line| Some(line.split_once(MARK)?.1)).for_each(skip);
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: &str = "TALEA_TEST_SKIPS";

    #[test]
    fn what_is_skipped_is_seen_without_asking_the_harness() {
        if std::env::var_os(INSIDE).is_some() {
            return skip("one reason\nin two lines");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skipped");
        std::fs::write(&file, "").unwrap();
        let test = "skipped::tests::what_is_skipped_is_seen_without_asking_the_harness";
        let mut itself = Command::new(std::env::current_exe().unwrap());
        let output = itself.args(["--exact", test, "--test-threads=2"]).env(INSIDE, "1").env(FILE, &file);
        let output = output.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.contains("skipped: ") && said.contains("one reason"),
            "{said}"
        );
        let noted = std::fs::read_to_string(file).unwrap();
        assert_eq!(noted.lines().count(), 1, "{noted}");
        assert!(noted.ends_with("\tone reason; in two lines\n"), "{noted}");
    }
}
