//! Every malformed file gets its message: `tests/malformed/NAME.toml` is refused with the text of
//! `NAME.txt`. With `TALEA_BLESS=1` in the environment the texts are written instead of compared.

use std::fs;
use std::path::{Path, PathBuf};

/// The files of `tests/FOLDER` that end in `.toml`, by name.
pub fn toml_files(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut files: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
    files.sort();
    files
}

fn report(path: &Path) -> String {
    let name = path.file_name().expect("a file has a name").to_string_lossy();
    let text = fs::read_to_string(path).expect("the file is text");
    let base_dir = path.parent().expect("a file is in a folder");
    match talea_model::parse(&name, &text, base_dir) {
        Ok(_) => panic!("{name} was accepted"),
        Err(problems) => format!("{problems}\n"),
    }
}

#[test]
fn each_file_has_its_text() {
    let bless = std::env::var_os("TALEA_BLESS").is_some();
    let mut differences = Vec::new();
    for file in toml_files("tests/malformed") {
        let golden = file.with_extension("txt");
        let actual = report(&file);
        if bless {
            fs::write(&golden, actual).expect("the golden file can be written");
            continue;
        }
        match fs::read_to_string(&golden) {
            Err(error) => differences.push(format!("{}: {error}", golden.display())),
            Ok(expected) if expected != actual => {
                differences.push(format!("{}\n--- expected\n{expected}--- got\n{actual}", file.display()));
            }
            Ok(_) => {}
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn there_are_enough_files_and_no_text_without_one() {
    let files = toml_files("tests/malformed");
    assert!(files.len() >= 45, "only {} malformed files", files.len());
    let folder = files[0].parent().expect("a file is in a folder");
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            assert!(path.with_extension("toml").exists(), "{} belongs to no file", path.display());
        }
    }
}

#[test]
fn every_problem_has_a_remedy_and_a_place() {
    for file in toml_files("tests/malformed") {
        let text = fs::read_to_string(&file).expect("the file is text");
        let base_dir = file.parent().expect("a file is in a folder");
        let problems = talea_model::parse("file", &text, base_dir).expect_err("it is malformed");
        assert!(problems.list().iter().any(|problem| problem.severity == talea_model::Severity::Error));
        let mut previous = 0;
        for problem in problems.list() {
            assert!(!problem.remedy.is_empty() && !problem.message.is_empty(), "{}", file.display());
            if let Some(location) = &problem.location {
                assert!(text.get(location.span.clone()).is_some(), "{}", file.display());
                assert!(location.span.start >= previous, "{}: out of order", file.display());
                previous = location.span.start;
            }
        }
    }
}
