use serde_json::Value;
use std::path::Path;
use talea_lab::vectors::{self, Outcome, Tally};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors"))
}

#[test]
fn every_uniprocessor_trace_passes() {
    let results = vectors::run_file(&folder().join("traces_uniproc.json")).expect("readable");
    for result in results.iter().filter(|result| result.outcome != Outcome::Passed) {
        println!("{}: {:?}", result.id, result.outcome);
    }
    assert_eq!(Tally::of(&results), Tally { passed: 39, failed: 0, unsupported: 0 });
}

#[test]
fn every_analysis_passes() {
    let results = vectors::run_file(&folder().join("analysis.json")).expect("readable");
    for result in results.iter().filter(|result| result.outcome != Outcome::Passed) {
        println!("{}: {:?}", result.id, result.outcome);
    }
    assert_eq!(Tally::of(&results), Tally { passed: 58, failed: 0, unsupported: 0 });
}

#[test]
fn every_guarantee_passes() {
    for (file, cases) in
        [("hls_matrix.json", 81), ("hls_conversions.json", 154), ("hls_hierarchies.json", 22)]
    {
        let results = vectors::run_file(&folder().join(file)).expect("readable");
        for result in results.iter().filter(|result| result.outcome != Outcome::Passed) {
            println!("{}: {:?}", result.id, result.outcome);
        }
        assert_eq!(Tally::of(&results), Tally { passed: cases, failed: 0, unsupported: 0 }, "{file}");
    }
}

#[test]
fn every_share_passes() {
    let results = vectors::run_file(&folder().join("shares.json")).expect("readable");
    for result in results.iter().filter(|result| result.outcome != Outcome::Passed) {
        println!("{}: {:?}", result.id, result.outcome);
    }
    assert_eq!(Tally::of(&results), Tally { passed: 34, failed: 0, unsupported: 0 });
}

#[test]
fn every_chain_passes() {
    let results = vectors::run_file(&folder().join("release_guard.json")).expect("readable");
    for result in results.iter().filter(|result| result.outcome != Outcome::Passed) {
        println!("{}: {:?}", result.id, result.outcome);
    }
    assert_eq!(Tally::of(&results), Tally { passed: 12, failed: 0, unsupported: 0 });
}

#[test]
fn every_constraint_passes() {
    let results = vectors::run_file(&folder().join("etcl.json")).expect("readable");
    for result in results.iter().filter(|result| result.outcome != Outcome::Passed) {
        println!("{}: {:?}", result.id, result.outcome);
    }
    assert_eq!(Tally::of(&results), Tally { passed: 60, failed: 0, unsupported: 0 });
}

/// Every outcome of a constraint is compared: with either of the others in its place the case fails.
#[test]
fn every_outcome_of_a_constraint_is_compared() {
    let text = std::fs::read_to_string(folder().join("etcl.json")).expect("readable");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("a list");
    let others = |case: &Value| {
        let all = [Value::from(true), Value::from(false), Value::from("error")];
        let case = case.clone();
        all.into_iter()
            .filter(|other| *other != case["expect"])
            .map(|other| {
                let mut case = case.clone();
                case["expect"] = other;
                case
            })
            .collect::<Vec<_>>()
    };
    let tampered: Vec<Value> = cases.iter().flat_map(others).collect();
    let place = tempfile::tempdir().expect("a place for files");
    let path = place.path().join("tampered.json");
    std::fs::write(&path, Value::from(tampered).to_string()).expect("writable");
    let results = vectors::run_file(&path).expect("readable");
    assert_eq!(Tally::of(&results), Tally { passed: 0, failed: 120, unsupported: 0 });
}

#[test]
fn every_field_of_a_share_is_compared() {
    assert!(every_field_is_compared("shares.json", "rt-shares-1") > 1000);
}

/// Every single value that an analysis case expects is compared: another one in its place fails.
#[test]
fn every_field_of_an_analysis_is_compared() {
    assert!(every_field_is_compared("analysis.json", "rt-analysis-1") > 300);
}

/// How many values of `file` were replaced by another one, each in a case of its own.
fn every_field_is_compared(file: &str, format: &str) -> usize {
    let text = std::fs::read_to_string(folder().join(file)).expect("readable");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let place = tempfile::tempdir().expect("a place for files");
    let tampered = place.path().join("tampered.json");
    let mut cases = Vec::new();
    for case in file["cases"].as_array().expect("cases") {
        for (path, value) in leaves("", &case["expect"]) {
            let mut case = case.clone();
            // Another offset may lead to a miss too; two offsets never fit the tasks of a case of three.
            let is_witness = path.starts_with("/witness_offsets_ns");
            let place = if is_witness { "/witness_offsets_ns" } else { &path };
            let other = if is_witness { Value::from([0; 9].to_vec()) } else { another(value) };
            *case["expect"].pointer_mut(place).expect("the leaf is there") = other;
            case["id"] = format!("{} {place}", case["id"]).into();
            cases.push(case);
        }
    }
    let count = cases.len();
    let file = serde_json::json!({"format": format, "cases": cases});
    std::fs::write(&tampered, file.to_string()).expect("writable");
    for result in vectors::run_file(&tampered).expect("readable") {
        assert!(matches!(result.outcome, Outcome::Failed(_)), "{}: {:?}", result.id, result.outcome);
    }
    count
}

/// The same for guarantees, whose cases stand in several lists of three files.
#[test]
fn every_field_of_a_guarantee_is_compared() {
    let place = tempfile::tempdir().expect("a place for files");
    let lists: [(&str, &[&str]); 3] = [
        ("hls_matrix.json", &["cells"]),
        ("hls_conversions.json", &["rewrites", "sfq_formula", "uniformly_slower"]),
        ("hls_hierarchies.json", &["cases"]),
    ];
    for (name, lists) in lists {
        let text = std::fs::read_to_string(folder().join(name)).expect("readable");
        let mut file: Value = serde_json::from_str(&text).expect("JSON");
        let mut values = 0;
        for list in lists {
            let cases: Vec<Value> =
                file[list].as_array().expect("cases").iter().flat_map(with_one_other_value).collect();
            values += cases.len();
            file[list] = cases.into();
        }
        assert!(values > 150, "{name}: only {values} values");
        let tampered = place.path().join(name);
        std::fs::write(&tampered, file.to_string()).expect("writable");
        for result in vectors::run_file(&tampered).expect("readable") {
            assert!(matches!(result.outcome, Outcome::Failed(_)), "{}: {:?}", result.id, result.outcome);
        }
    }
}

/// Copies of a case in which one of the expected values is another.
fn with_one_other_value(case: &Value) -> Vec<Value> {
    let expected = leaves("", case).into_iter().map(|(path, _)| path);
    let expected = expected
        .filter(|path| ["/expect", "/convertible", "/theorem"].iter().any(|start| path.starts_with(start)));
    let other = |path: String| {
        let mut case = case.clone();
        let value = case.pointer_mut(&path).expect("the leaf is there");
        *value = another(value);
        case
    };
    expected.map(other).collect()
}

/// Every number, text, truth value and null below `value`, with its JSON pointer.
fn leaves<'a>(path: &str, value: &'a Value) -> Vec<(String, &'a Value)> {
    let below = |(key, value): (String, &'a Value)| leaves(&format!("{path}/{key}"), value);
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), value)).flat_map(below).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value))
            .flat_map(below)
            .collect(),
        leaf => vec![(path.into(), leaf)],
    }
}

/// A value of the same type that differs by as little as can be.
fn another(value: &Value) -> Value {
    match value {
        Value::Null => 1.into(),
        Value::Bool(truth) => (!truth).into(),
        Value::Number(number) if number.is_f64() => (number.as_f64().expect("a float") + 1e-12).into(),
        Value::Number(number) => (number.as_i64().expect("an integer") + 1).into(),
        Value::String(text) => format!("1{text}").into(),
        other => panic!("{other} is no leaf"),
    }
}

#[test]
fn what_no_runner_knows_is_unsupported_and_nothing_fails() {
    for file in vectors::files(folder()).expect("readable") {
        let results = vectors::run_file(&file).expect("every file has a known shape");
        let tally = Tally::of(&results);
        assert!(!results.is_empty() && tally.failed == 0, "{}: {tally}", file.display());
    }
}
