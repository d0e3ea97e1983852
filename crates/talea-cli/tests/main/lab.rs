//! `vectors`, `lab` and `schema`.

use crate::support::{Running, folder, root, run, within, write};
use std::fs;

#[test]
fn the_vectors_of_the_repository_are_counted() {
    let vectors = root().join("vectors").display().to_string();
    let done = run(&["vectors", &vectors]).exits(0);
    assert_eq!(done.last_line(), "460 passed, 0 failed, 5 unsupported");
    assert_eq!(done.stdout.lines().count(), 460 + 5 + 1, "a line per case and one for all");
    let quiet = run(&["vectors", &vectors, "--quiet"]).exits(0);
    assert_eq!(quiet.stdout.lines().count(), 1, "{}", quiet.stdout);
    let json = run(&["vectors", &vectors, "--json"]).exits(0).json();
    assert_eq!((&json["passed"], &json["failed"]), (&460.into(), &0.into()));
}

#[test]
fn a_wrong_vector_is_named_with_its_first_difference() {
    let text = fs::read_to_string(root().join("vectors/traces_uniproc.json")).expect("there");
    let mut file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    file["cases"][0]["expect"]["segments"][1][2] = "nobody".into();
    let place = folder();
    let wrong = write(&place, "wrong.json", &file.to_string());
    let done = run(&["vectors", &wrong, "--quiet"]).exits(1);
    let id = file["cases"][0]["id"].as_str().expect("a name");
    let line = done.stdout.lines().next().expect("a line");
    assert!(line.starts_with("FAILED") && line.contains(id) && line.contains("nobody"), "{line}");
    assert!(line.contains("expected") && line.contains("got"), "{line}");
    assert_eq!(done.last_line(), "38 passed, 1 failed, 0 unsupported");
}

#[test]
fn what_is_not_a_vector_file_is_refused() {
    let place = folder();
    for (name, text, says) in [
        ("not-json.json", "{\n  nonsense", "not-json.json:2:3: not JSON"),
        ("no-format.json", "{}", "no \"format\""),
        ("no-cases.json", "{\"format\": \"rt-trace-1\"}", "\"cases\" is not a list"),
    ] {
        let done = run(&["vectors", &write(&place, name, text)]).exits(2);
        assert!(done.stderr.contains(says), "{}", done.stderr);
    }
    let empty = folder();
    let done = run(&["vectors", &empty.path().display().to_string()]).exits(2);
    assert!(done.stderr.contains("no vector files"), "{}", done.stderr);
}

#[test]
fn experiments_are_listed_and_run() {
    let list = run(&["lab", "list"]).exits(0).fits();
    for name in ["strategies", "s0", "s3"] {
        assert!(list.stdout.lines().any(|line| line.starts_with(name)), "{name}: {}", list.stdout);
    }
    let place = folder();
    let out = within(&place, "out");
    let done = run(&["lab", "run", "strategies", "--sim", "--quick", "--out", &out]).exits(0).fits();
    assert!(done.stdout.contains("holds"), "{}", done.stdout);
    for file in ["strategies.svg", "results.json"] {
        assert!(fs::metadata(place.path().join("out").join(file)).expect(file).len() > 0, "{file}");
    }
}

#[test]
fn the_systems_of_an_experiment_are_for_every_other_command() {
    let place = folder();
    let out = within(&place, "out");
    let arguments = ["lab", "run", "s3", "--sim", "--quick", "--out", &out, "--part"];
    let done = run(&[&arguments[..], &["table-5"]].concat()).exits(0).fits();
    assert!(done.stdout.contains("RESBH 10 33") && done.stdout.contains("holds"), "{}", done.stdout);
    assert!(!done.stdout.contains("figure 3"), "only one part was asked for: {}", done.stdout);
    for entry in fs::read_dir(place.path().join("out/systems")).expect("a folder") {
        let file = entry.expect("readable").path().display().to_string();
        run(&["check", &file]).exits(0);
        run(&["sim", &file, "--for", "200ms"]).exits(0);
    }
    let unknown = run(&[&arguments[..], &["table-5,table-6"]].concat()).exits(2);
    assert!(unknown.stderr.contains("s3 has no part \"table-6\"; choose of: table-5"), "{}", unknown.stderr);
    let whole = run(&["lab", "run", "strategies", "--part", "some"]).exits(2);
    assert!(whole.stderr.contains("done as a whole"), "{}", whole.stderr);
}

#[test]
fn what_is_no_experiment_or_no_folder_is_refused() {
    let unknown = run(&["lab", "run", "s9"]).exits(2);
    assert!(unknown.stderr.contains("no experiment \"s9\""), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("s0, s3, strategies"), "{}", unknown.stderr);
    let both = run(&["lab", "run", "s0", "--sim", "--real"]).exits(2);
    assert!(both.stderr.contains("cannot be used with"), "{}", both.stderr);
    let place = folder();
    let file = write(&place, "in-the-way", "not a folder");
    let refused = run(&["lab", "run", "s0", "--quick", "--out", &file]).exits(2);
    assert!(refused.stderr.contains("in-the-way"), "{}", refused.stderr);
}

#[test]
fn an_interrupted_experiment_leaves_whole_files() {
    let place = folder();
    let out = within(&place, "out");
    let mut running = Running::start(&["lab", "run", "s0", "--sim", "--out", &out]);
    // The systems are written before the first run.
    running.await_file(&place.path().join("out/systems/region-11.toml"));
    running.signal(rustix::process::Signal::INT);
    let done = running.finish();
    match done.status {
        0 => assert!(done.stdout.contains("interrupted after"), "{}", done.stdout),
        _ => assert!(done.exits(2).stderr.contains("cancelled after 0 of"), "no run was complete"),
    }
    for entry in fs::read_dir(place.path().join("out")).expect("a folder") {
        let folder = entry.expect("readable").path();
        for file in fs::read_dir(&folder).expect("a folder") {
            let file = file.expect("readable").path();
            assert!(!file.to_string_lossy().contains("partial"), "{}", file.display());
        }
    }
}

#[test]
fn the_schema_is_json() {
    let schema = run(&["schema"]).exits(0).json();
    assert!(schema["properties"]["task"].is_object(), "{schema}");
}
