//! Bytes as decisions that draw an event and a constraint, of which two evaluators have to say the same (`held_evaluation.rs` among the tests of
//! `talea-etcl`).

#![no_main]

#[path = "../../crates/etcl/tests/main/drawn.rs"]
mod drawn;
#[path = "../../crates/etcl/tests/main/endless.rs"]
mod endless;
#[path = "../../crates/etcl/tests/main/held_evaluation.rs"]
mod held_evaluation;
#[path = "../../crates/etcl/tests/main/held_text.rs"]
#[allow(dead_code, reason = "what it holds of any text is another target's")]
mod held_text;
#[path = "../../crates/etcl/tests/main/judge.rs"]
mod judge;
#[path = "../../crates/etcl/tests/main/tape.rs"]
mod tape;

use libfuzzer_sys::fuzz_target;

fuzz_target!(init: talea_fuzz::seed(talea_fuzz::noise(256, 600)), |data: &[u8]| {
    _ = held_evaluation::hold(tape::Tape::new(data.to_vec()));
});
