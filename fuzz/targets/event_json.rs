//! Any text as an event in JSON (`held_json.rs` among the tests of `talea-etcl`).

#![no_main]

#[path = "../../crates/etcl/tests/main/held_json.rs"]
mod held_json;

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: talea_fuzz::seed(talea_fuzz::vectors().into_iter().map(|(_, event)| event.into_bytes())),
    |data: &[u8]| held_json::hold(&String::from_utf8_lossy(data))
);
