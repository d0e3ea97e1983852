//! Any text as a constraint: parsed, printed, compiled, evaluated and explained within limits (`held_text.rs` among the tests of `talea-etcl`).

#![no_main]

#[path = "../../crates/etcl/tests/main/endless.rs"]
mod endless;
#[path = "../../crates/etcl/tests/main/held_text.rs"]
mod held_text;

use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: talea_fuzz::seed(talea_fuzz::vectors().into_iter().map(|(constraint, _)| constraint.into_bytes())),
    |data: &[u8]| held_text::hold(&String::from_utf8_lossy(data))
);
