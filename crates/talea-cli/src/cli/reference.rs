//! The reference pages in `docs`, written from the declarations of keys, schedulers and commands.
//!
//! `cargo xtask reference` writes them anew; without it the test here compares.

use super::Arguments;
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write as _;
use std::path::Path;

/// Set to write the pages instead of comparing them.
const WRITE: &str = "TALEA_WRITE_REFERENCE";

/// What stands before the commands.
const HEAD: &str = "\
# The command, option by option

What `talea help COMMAND` shows, on one page. [The glossary](glossary.md) explains the terms. Times are numbers with a unit, `ns`,
`us`, `ms`, `s`, `min` or `h`, such as `2.5ms`. A trace is a file, or a program that runs, by its process number or name.

| Exit status | Meaning |
|---|---|
| 0 | fine |
| 1 | the answer is no: a hard deadline missed or not sure to hold, a guarantee broken, a vector failed, a change refused, a rule violated; or a run's hierarchy of schedulers ended early by itself |
| 2 | usage or input error: nothing was done, or it could not be finished |

Where a command gives these statuses a narrower meaning, its section says so.
";

fn page() -> String {
    let mut page = String::from(HEAD);
    let mut root = Arguments::command();
    root.build();
    for command in root.get_subcommands() {
        describe(command, &mut page);
    }
    page
}

/// A command and its subcommands, without the `help` that each of them has.
fn describe(command: &Command, page: &mut String) {
    if command.get_name() == "help" {
        return;
    }
    let mut shown = command.clone();
    let usage = shown.render_usage().to_string();
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
    let usage = usage.trim_start_matches("Usage: ");
    let _ = write!(page, "\n## `{name}`\n\n{}\n\n```\n{usage}\n```\n", about.unwrap_or_default());
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && argument.get_id() != "help")
        .collect();
    if !arguments.is_empty() {
        page.push_str("\n| Argument | Default | Meaning |\n|---|---|---|\n");
    }
    for argument in arguments {
        let cells = [format!("`{}`", written(argument)), default(argument), meaning(argument)];
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    if let Some(after) = command.get_after_help() {
        let _ = write!(page, "\n```text\n{}\n```\n", super::output::wrap(&after.to_string()));
    }
    command.get_subcommands().for_each(|command| describe(command, page));
}

/// `--for <TIME>`, `[RUN]`.
fn written(argument: &Arg) -> String {
    argument.to_string()
}

fn default(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let values: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if takes_value { values.join(", ") } else { String::new() }
}

fn meaning(argument: &Arg) -> String {
    let help =
        argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let values = argument.get_possible_values();
    let names: Vec<String> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
    match argument.get_action().takes_values() && !names.is_empty() {
        true => format!("{}: {}", help.replace('\n', " "), names.join(", ")),
        false => help.replace('\n', " "),
    }
}

/// A page with `text` in the place that is marked for it.
fn between_markers(page: &str, text: &str) -> String {
    const BEGIN: &str = "<!-- conversions: written by cargo xtask reference -->\n";
    let (before, rest) = page.split_once(BEGIN).expect("the place is marked");
    let (_, after) = rest.split_once("<!-- end -->").expect("its end is marked");
    format!("{before}{BEGIN}\n{text}\n<!-- end -->{after}")
}

/// Commands whose summary says everything.
const BRIEF: [&str; 1] = ["help"];

#[test]
fn every_command_is_described_below_its_summary() {
    let root = Arguments::command();
    let trace = root.find_subcommand("trace").expect("it is there");
    for command in root.get_subcommands().chain(trace.get_subcommands()) {
        let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
        let description = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        let (name, is_brief) = (command.get_name(), BRIEF.contains(&command.get_name()));
        assert!(!summary.contains('\n') && summary.len() <= 88, "{name}: {summary}");
        assert!(is_brief || description.len() > summary.len(), "{name} has a summary only: {summary}");
    }
}

#[test]
fn the_pages_are_those_of_the_declarations() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let guarantees = std::fs::read_to_string(docs.join("guarantees.md")).expect("docs can be read");
    let guarantees = between_markers(&guarantees, &talea_model::conversions());
    let pages =
        [("system-file.md", talea_model::reference()), ("command.md", page()), ("guarantees.md", guarantees)];
    for (name, text) in pages {
        let path = docs.join(name);
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&path, text).expect("docs can be written");
            continue;
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(there == text, "docs/{name} is stale; write it anew: cargo xtask reference");
    }
}
