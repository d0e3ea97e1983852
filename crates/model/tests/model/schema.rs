//! The JSON Schema accepts what the reader accepts, and refuses what it can see is wrong.

use crate::malformed::toml_files;
use serde_json::Value;
use std::fs;
use std::path::Path;
use talea_model::json_schema;

fn validator() -> jsonschema::Validator {
    let schema = json_schema();
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is a schema");
    jsonschema::draft202012::new(&schema).expect("the schema can be compiled")
}

fn document(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).expect("the file is text");
    toml::from_str(text.trim_start_matches('\u{feff}')).ok()
}

#[test]
fn good_files_and_examples_are_valid() {
    let validator = validator();
    for file in toml_files("tests/good").into_iter().chain(toml_files("../../examples")) {
        // A seed of 64 bits is more than other TOML readers take.
        let text = fs::read_to_string(&file).expect("the file is text").replace("18446744073709551615", "7");
        let document: Value =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let errors: Vec<_> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", file.display());
    }
}

/// What only relates values to each other, or needs another file, a schema cannot see.
const INVISIBLE: &[&str] = &[
    "after-",
    "blank",
    "cpus-duplicate",
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
    "name-duplicate",
    "name-too-long",
    "node-not-said",
    "node-unknown",
    "period-zero",
    "time-too-fine",
    "time-too-long",
    "warnings-beside",
    "wcet-zero",
];

#[test]
fn malformed_files_are_invalid_where_a_schema_can_see_it() {
    let validator = validator();
    let mut refused = 0;
    for file in toml_files("tests/malformed") {
        let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let Some(document) = document(&file) else { continue };
        if validator.is_valid(&document) {
            assert!(INVISIBLE.iter().any(|prefix| name.starts_with(prefix)), "{name} is valid by the schema");
        } else {
            refused += 1;
        }
    }
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
