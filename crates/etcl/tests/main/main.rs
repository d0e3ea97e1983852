//! The constraint language from outside: published vectors, a second evaluator, random texts and trees, and types of one's own.

mod allocation;
mod bounds;
mod derived;
mod drawn;
mod endless;
mod errors;
mod explained;
mod held_evaluation;
mod held_json;
mod held_text;
mod held_typed;
mod judge;
mod judged;
mod read;
mod roundtrip;
mod semantics;
mod tape;
mod texts;
mod vectors;

use proptest::collection::vec;
use proptest::prelude::*;
use tape::Tape;

/// Tapes of up to `length` bytes.
fn tapes(length: usize) -> impl Strategy<Value = Tape> {
    vec(any::<u8>(), 0..length).prop_map(Tape::new)
}
