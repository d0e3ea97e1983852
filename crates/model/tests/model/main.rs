//! Tests of reading, writing and describing systems, from outside the crate.

mod builder;
mod data;
mod files;
mod generator;
mod held_file;
mod hierarchy;
mod keys;
mod malformed;
mod robustness;
mod round_trip;
mod schema;
mod speed;

use talea_model::{Parsed, System};

/// The system of a text that has no problems at all.
fn system(text: &str) -> System {
    let Parsed { system, warnings, .. } = parsed(text);
    assert!(warnings.is_empty(), "{warnings:?}");
    system
}

/// A text that has no errors.
fn parsed(text: &str) -> Parsed {
    let base_dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/good");
    talea_model::parse("test.toml", text, base_dir.as_ref())
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// The text of the problems of a text that has errors.
fn refusal(text: &str) -> String {
    let base_dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/good");
    talea_model::parse("test.toml", text, base_dir.as_ref()).expect_err(text).to_string()
}
