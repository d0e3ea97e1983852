//! The examples at the end of each `--help`: they are read as the command would read them, and name files that are shipped.

use super::Arguments;
use clap::{Command, CommandFactory, Parser};
use std::path::Path;

/// The lines of examples in the help of a command and of all below it.
fn examples(command: &Command, found: &mut Vec<String>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let help = help.replace("\\\n", " ");
    found.extend(
        help.lines().filter_map(|line| line.strip_prefix("  talea ")).map(|line| format!("talea {line}")),
    );
    command.get_subcommands().for_each(|command| examples(command, found));
}

/// What the shell would give to the first command of a line: words, without quotes and what is not for it.
pub(super) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut blanks = 0;
    for c in line.chars() {
        match (quote, c) {
            (None, '|' | '>' | '&' | '#') => break,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, ' ') => {
                // What stands apart is a remark.
                blanks += 1;
                if blanks > 2 {
                    break;
                }
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                continue;
            }
            _ => word.push(c),
        }
        blanks = 0;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

#[test]
fn every_example_can_be_read_and_names_what_is_there() {
    // Values of options are read while the arguments are: what they name is relative to the repository.
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut command = Arguments::command();
    command.build();
    let mut found = Vec::new();
    examples(&command, &mut found);
    assert!(found.len() > 60, "{}", found.len());
    for line in &found {
        let words: Vec<String> = words(line)
            .iter()
            .map(|word| word.replace("@examples/", &format!("@{root}/examples/")))
            .collect();
        if let Err(error) = Arguments::try_parse_from(&words) {
            assert!(!error.use_stderr(), "{line}: {error}");
        }
        for word in words.iter().filter(|word| word.starts_with("examples/") || word.starts_with("vectors/"))
        {
            assert!(Path::new(root).join(word).exists(), "{line}: there is no {word}");
        }
    }
}
