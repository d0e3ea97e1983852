//! What can be wrong with a file before its text is read, and the example files.

use crate::malformed::toml_files;
use std::fs;
use std::path::Path;
use talea_model::{FILE_BYTES_LIMIT, read};

fn refusal(path: &Path) -> String {
    let text = read(path).expect_err("the file is refused").to_string();
    text.replace(&path.display().to_string(), "FILE")
}

fn refusal_of(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("system.toml");
    fs::write(&path, bytes).expect("the file can be written");
    refusal(&path)
}

#[test]
fn a_missing_file() {
    assert_eq!(
        refusal(Path::new("no/such.toml")),
        "FILE: error: there is no such file\n  help: check the path"
    );
}

#[test]
fn a_directory() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    assert_eq!(refusal(folder.path()), "FILE: error: this is a directory\n  help: name the file in it");
}

#[test]
fn a_file_of_100_megabytes_is_refused_unread() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("huge.toml");
    // The file has the length but no blocks; reading it would still fill the memory.
    fs::File::create(&path).and_then(|file| file.set_len(100 << 20)).expect("the file can be made");
    assert_eq!(
        refusal(&path),
        "FILE: error: the file has 100.0 MiB; at most 16 MiB are read\n  help: check that this is the file you mean"
    );
}

#[test]
fn a_device_without_end_is_not_read_to_its_end() {
    let text = refusal(Path::new("/dev/zero"));
    assert!(text.starts_with("FILE: error: the file has more"), "{text}");
}

#[test]
fn a_file_of_the_greatest_size_is_read() {
    let mut text =
        "[system]\nname = \"s\"\n[[task]]\nname = \"t\"\nperiod = \"1s\"\nwcet = \"1s\"\n#".to_owned();
    text.push_str(&" ".repeat(FILE_BYTES_LIMIT as usize - text.len()));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("large.toml");
    fs::write(&path, text).expect("the file can be written");
    assert!(read(&path).is_ok());
}

#[test]
fn text_of_another_encoding() {
    assert_eq!(
        refusal_of(b"[system]\nname = \"gr\xf6\xdfe\"\n"),
        "FILE: error: the file is not UTF-8: line 2, byte 11 of the line is 0xf6\n  \
         help: save it as UTF-8; only text can be read"
    );
    let utf16: Vec<u8> = "\u{feff}[system]".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(refusal_of(&utf16), "FILE: error: the file is UTF-16, not UTF-8\n  help: save it as UTF-8");
}

#[test]
fn an_empty_file() {
    assert!(refusal_of(b"").starts_with("FILE: error: the file is empty\n  help: write a [system] table"));
}

#[test]
fn a_trace_is_relative_to_the_system_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good/everything.toml");
    let parsed = read(&path).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(parsed.system.tasks[0].subtasks[3].exec.max(), talea_time::Work::from_millis(20));
}

#[test]
fn good_files_and_examples_have_no_errors() {
    for file in toml_files("tests/good").into_iter().chain(toml_files("../../examples")) {
        let parsed = read(&file).unwrap_or_else(|problems| panic!("{problems}"));
        let warnings: Vec<_> = parsed.warnings.iter().map(|warning| warning.message.as_str()).collect();
        let expected = usize::from(file.ends_with("overload.toml"));
        assert_eq!(warnings.len(), expected, "{}: {warnings:?}", file.display());
    }
}
