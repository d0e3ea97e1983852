//! The examples of `--help` work on the files that are shipped, one after the other in a folder that has nothing else.

use crate::support::{folder, root, run, talea, within};
use std::os::unix::fs::symlink;

/// The examples that the help of these commands shows.
fn shown(command: &[&str]) -> Vec<String> {
    let help = run(&[command, &["--help"]].concat()).exits(0).stdout;
    let lines = help.lines().filter_map(|line| line.trim_start().strip_prefix("talea "));
    lines.map(ToString::to_string).collect()
}

/// The arguments of the line: what stands before a remark and before another command. None of those that are run here has quotes.
fn arguments(line: &str) -> Vec<String> {
    let own = line.split(['#', '|', '>', '&']).next().unwrap_or_default();
    let own = own.split("   ").next().unwrap_or_default();
    own.split_whitespace().map(ToString::to_string).collect()
}

#[test]
fn the_examples_of_the_help_work() {
    let place = folder();
    for name in ["examples", "vectors"] {
        symlink(root().join(name), place.path().join(name)).expect("writable");
    }
    let out = within(&place, "out");
    run(&[
        "sim",
        &root().join("examples/ofp.toml").display().to_string(),
        "--for",
        "15s",
        "--fail-on",
        "never",
        "--out",
        &out,
    ])
    .exits(0);
    let commands: [&[&str]; 14] = [
        &["check"],
        &["sim"],
        &["compare"],
        &["export"],
        &["import"],
        &["vectors"],
        &["doctor"],
        &["schema"],
        &["lab", "list"],
        &["trace", "show"],
        &["trace", "stats"],
        &["trace", "verify"],
        &["trace", "explain"],
        &["trace", "export"],
    ];
    let mut ran = 0;
    for command in commands {
        let lines = shown(command);
        assert!(!lines.is_empty(), "{command:?}");
        for line in lines {
            let arguments = arguments(&line);
            // Streams of programs that run, a format that is not built by default, and what takes its time are not for here.
            let is_of_program = |word: &String| word == "ofp" || word == "two-nodes";
            let is_slow = |word: &String| word == "--advise" || word == "--parquet";
            if !line.starts_with(&command.join(" "))
                || arguments.iter().any(|word| is_of_program(word) || is_slow(word))
                || line.contains('\'')
            {
                continue;
            }
            let output = talea(&arguments).current_dir(place.path()).output().expect("it starts");
            let errors = String::from_utf8_lossy(&output.stderr);
            // The answer may be no; that the example cannot be done may not.
            assert!(matches!(output.status.code(), Some(0 | 1)), "talea {line}: {errors}");
            ran += 1;
        }
    }
    assert!(ran >= 25, "{ran}");
}
