//! Help and results fit a hundred columns.

use crate::support::{folder, root, run, within};

/// Columns that are printed at most.
const COLUMNS: usize = 100;

/// Fails if what the command prints has a longer line. Records (`trace show`) are lines for programs, however long.
fn fits(arguments: &[&str]) -> String {
    let done = run(arguments);
    assert!(!done.stdout.is_empty(), "talea {}: {}", arguments.join(" "), done.stderr);
    for line in done.stdout.lines() {
        let columns = line.chars().count();
        assert!(columns <= COLUMNS, "talea {}: {columns} columns:\n{line}", arguments.join(" "));
    }
    done.stdout
}

/// The help of a command and of all those below it, and how many there are.
fn help_fits(command: &[&str]) -> usize {
    let help = fits(&[&["help"], command].concat());
    let long = fits(&[command, &["--help"]].concat());
    fits(&[command, &["-h"]].concat());
    assert!(long.contains("\nExample"), "talea {} --help has no example", command.join(" "));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    // What a command does may go on below, further to the right.
    let names =
        listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    let below = names.filter(|name| *name != "help").map(|name| help_fits(&[command, &[name]].concat()));
    1 + below.sum::<usize>()
}

#[test]
fn help_of_every_command_fits() {
    let commands = help_fits(&[]);
    assert!(commands > 30, "only {commands} commands were found");
}

#[test]
fn results_of_every_example_fit() {
    let examples = std::fs::read_dir(root().join("examples")).expect("the folder is there");
    let paths = examples.map(|entry| entry.expect("readable").path());
    for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
        let place = folder();
        let (system, out) = (path.display().to_string(), within(&place, "out"));
        let trace = within(&place, "out/trace.talea");
        fits(&["check", &system, "--explain"]);
        // The folder's path is the test's.
        let done = run(&["sim", &system, "--for", "500ms", "--out", &out]);
        let told = done.stdout.lines().filter(|line| !line.contains(&out));
        told.for_each(|line| assert!(line.chars().count() <= COLUMNS, "{system}: {line}"));
        fits(&["trace", "stats", &trace, "--jobs"]);
        fits(&["trace", "verify", &system, &trace]);
        let text = std::fs::read_to_string(&path).expect("readable");
        if !text.contains("[[scheduler]]") {
            fits(&["check", &system, "--sensitivity"]);
            fits(&["compare", &system, "--sim", "--for", "200ms"]);
            fits(&["trace", "explain", &trace, "--worst"]);
        }
    }
    for command in [&["doctor"][..], &["lab", "list"], &["trace", "list"]] {
        fits(command);
    }
}
