//! The constraint language from outside: published vectors, a second evaluator, random texts and trees, and types of one's own.

mod allocation;
mod bounds;
mod derived;
mod errors;
mod explained;
mod judge;
mod judged;
mod read;
mod roundtrip;
mod semantics;
mod tape;
mod texts;
mod vectors;
