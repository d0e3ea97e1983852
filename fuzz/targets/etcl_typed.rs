//! Bytes as decisions that draw a value of a program's own type and a constraint, of which the second evaluator has to say the same
//! (`held_typed.rs` among the tests of `talea-etcl`).

#![no_main]

#[path = "../../crates/etcl/tests/main/drawn.rs"]
mod drawn;
#[path = "../../crates/etcl/tests/main/endless.rs"]
mod endless;
#[path = "../../crates/etcl/tests/main/held_evaluation.rs"]
#[allow(dead_code, reason = "what it holds of events is another target's")]
mod held_evaluation;
#[path = "../../crates/etcl/tests/main/held_text.rs"]
#[allow(dead_code, reason = "what it holds of any text is another target's")]
mod held_text;
#[path = "../../crates/etcl/tests/main/held_typed.rs"]
mod held_typed;
#[path = "../../crates/etcl/tests/main/judge.rs"]
mod judge;
#[path = "../../crates/etcl/tests/main/tape.rs"]
mod tape;

use libfuzzer_sys::fuzz_target;

fuzz_target!(init: talea_fuzz::seed(talea_fuzz::noise(256, 600)), |data: &[u8]| {
    _ = held_typed::hold(tape::Tape::new(data.to_vec()));
});
