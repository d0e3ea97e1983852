//! The program in `examples/embed.rs`.

use crate::support::{Done, root};
use std::process::Command;

/// `cargo test` builds examples beside the tests' folder.
#[test]
fn the_embedding_example_runs() {
    let this = std::env::current_exe().expect("this program has a path");
    let program = this.parent().and_then(|deps| deps.parent()).map(|folder| folder.join("examples/embed"));
    let program = program.filter(|program| program.exists());
    let program = program.expect("`cargo test` without `--test` builds the example `embed`");
    let output = Command::new(program).current_dir(root()).output().expect("the example starts");
    let done = Done::from(output).exits(0);
    let met = done.stdout.lines().filter(|line| line.starts_with("blink ") && line.contains(": true in "));
    let met = format!("; {} jobs met their deadline", met.count());
    assert!(done.last_line().starts_with("sum ") && done.last_line().ends_with(&met), "{}", done.stdout);
}

#[test]
fn the_readme_shows_the_files_as_they_are() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).expect("the file is there");
    let readme = read("README.md");
    assert!(readme.contains(&read("examples/hello.toml")), "README's first system is examples/hello.toml");
    let program = read("examples/embed.rs");
    let code =
        program.find("use std").map(|start| &program[start..]).expect("the program begins with imports");
    assert!(readme.contains(code), "README's program is examples/embed.rs");
}
