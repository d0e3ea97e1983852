//! The JSON Schema accepts what the reader accepts, and refuses what it can see is wrong.

use crate::malformed::toml_files;
use serde_json::{Value, json};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use talea_measure::skip;
use talea_model::json_schema;

/// What Python's jsonschema has against each of the documents. `None`, visibly, if it is not there.
fn faults(documents: &[Value]) -> Option<Vec<Vec<String>>> {
    let works = Command::new("python3").args(["-c", "from jsonschema import Draft202012Validator"]).output();
    match works {
        Ok(output) if output.status.success() => {}
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("python3: {error}"),
        _ => {
            skip("python3 has no jsonschema of 4.0 or later; install the package python3-jsonschema");
            return None;
        }
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model/validate.py");
    let mut python = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let asked = json!({"schema": json_schema(), "documents": documents});
    let mut input = python.stdin.take().expect("it is piped");
    input.write_all(asked.to_string().as_bytes()).expect("it reads all before it answers");
    drop(input);
    let output = python.wait_with_output().expect("it ends");
    assert!(output.status.success(), "the schema is a schema");
    Some(serde_json::from_slice(&output.stdout).expect("lists of messages"))
}

fn document(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).expect("the file is text");
    toml::from_str(text.trim_start_matches('\u{feff}')).ok()
}

#[test]
fn good_files_and_examples_are_valid() {
    let files: Vec<_> = toml_files("tests/good").into_iter().chain(toml_files("../../examples")).collect();
    let documents: Vec<Value> = files
        .iter()
        .map(|file| {
            // A seed of 64 bits is more than other TOML readers take.
            let text =
                fs::read_to_string(file).expect("the file is text").replace("18446744073709551615", "7");
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        })
        .collect();
    let Some(faults) = faults(&documents) else { return };
    assert_eq!(faults.len(), files.len());
    for (file, faults) in files.iter().zip(faults) {
        assert!(faults.is_empty(), "{}: {faults:?}", file.display());
    }
}

/// What only relates values to each other, or needs another file, a schema cannot see.
const INVISIBLE: &[&str] = &[
    "after-",
    "blank",
    "cpus-duplicate",
    "deadline-of-cycle",
    "deadline-zero",
    "exec-trace",
    "exec-uniform-reversed",
    "hierarchy-circle",
    "hierarchy-join-of-one",
    "hierarchy-lanes-misplaced",
    "hierarchy-strategy-without-lanes",
    "hierarchy-tasks-without-place",
    "hierarchy-two-roots",
    "jitter-not",
    "join-out-of-range",
    "link-to-",
    "link-twice",
    "merge",
    "name-duplicate",
    "name-too-long",
    "node-not-said",
    "node-unknown",
    "period-zero",
    "plan-entries",
    "plan-lines",
    "ports-block",
    "ports-unresolved",
    "subscription-cycle",
    "subscription-nodes",
    "subscription-release",
    "subscription-wrong",
    "time-too-fine",
    "time-too-long",
    "trigger-cycle",
    "warnings-beside",
    "wcet-zero",
];

#[test]
fn malformed_files_are_invalid_where_a_schema_can_see_it() {
    let named = |file: &Path| file.file_name().expect("a file has a name").to_string_lossy().into_owned();
    let files = toml_files("tests/malformed");
    let (names, documents): (Vec<String>, Vec<Value>) =
        files.iter().filter_map(|file| Some((named(file), document(file)?))).unzip();
    let Some(faults) = faults(&documents) else { return };
    assert_eq!(faults.len(), names.len());
    let (valid, refused): (Vec<_>, Vec<_>) =
        names.iter().zip(&faults).partition(|(_, faults)| faults.is_empty());
    for (name, _) in valid {
        assert!(INVISIBLE.iter().any(|prefix| name.starts_with(prefix)), "{name} is valid by the schema");
    }
    let refused = refused.len();
    assert!(refused >= 55, "only {refused} malformed files are refused");
}

#[test]
fn every_property_is_described() {
    fn check(schema: &Value, path: &str) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            assert_eq!(schema["additionalProperties"], false, "{path}");
            for (name, property) in properties {
                let path = format!("{path}/{name}");
                let form = path.contains("execution");
                assert!(
                    form || property["description"].as_str().is_some_and(|text| text.len() > 10),
                    "{path}"
                );
                check(property, &path);
                check(property.get("items").unwrap_or(&Value::Null), &path);
            }
        }
    }
    let schema = json_schema();
    check(&schema, "");
    assert_eq!(schema["properties"]["system"]["properties"]["strategy"]["default"], "rms+mlf");
    assert_eq!(
        schema["properties"]["node"]["items"]["properties"]["cpus"]["default"],
        serde_json::json!([0])
    );
}
