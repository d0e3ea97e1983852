//! The programs in `examples/`.

use std::path::Path;
use std::process::Command;

/// The repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// What the example `name` prints. `cargo test` builds examples beside the tests' folder.
fn output_of(name: &str) -> String {
    let this = std::env::current_exe().expect("this program has a path");
    let examples = this.parent().and_then(|deps| deps.parent()).map(|folder| folder.join("examples"));
    let program = examples.map(|folder| folder.join(name)).filter(|program| program.exists());
    let program =
        program.unwrap_or_else(|| panic!("`cargo test` without `--test` builds the example `{name}`"));
    let output = Command::new(program).current_dir(root()).output().expect("the example starts");
    let text = |bytes| String::from_utf8(bytes).expect("it prints UTF-8");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(output.status.success(), "{}: {stdout}{stderr}", output.status);
    stdout
}

#[test]
fn the_embedding_example_runs() {
    let stdout = output_of("embed");
    let met = stdout.lines().filter(|line| line.starts_with("blink ") && line.contains(": true in "));
    let met = format!("; {} jobs met their deadline", met.count());
    let last = stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("sum ") && last.ends_with(&met), "{stdout}");
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
