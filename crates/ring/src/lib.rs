//! What threads and processes share without locks.
//!
//! | Protocol | Between |
//! |---|---|
//! | [`slots`] | the one writer of a ring and its readers |
//! | [`header`] | threads that take a ring over, and its readers |
//! | [`control`] | consumers of a stream, and those who write events |
//! | [`region`] | the one who appends documents, and readers |
//! | [`object`] | threads that replace a structure as a whole, and readers |
//! | [`line`](mod@line) | the keeper of a clock, and those who read it |
//! | [`inbox`] | producers of numbers and their consumer |
//! | [`bell`] | a sleeper and those who wake it |
//! | [`queue`] | one producer of entries and their consumer |
//! | [`holders`] | the maker of things and those that hold them |
//! | [`hazard`] | who replaces a value, and readers |
//!
//! Those of files run on [words](primitive::Word) of any [memory](primitive::Memory): a mapped file, or plain memory. All
//! atomics come from [`primitive`], so that loom's models (`tests/loom`) run the same source, and Miri runs it in plain memory
//! (`tests/protocols.rs`).

pub mod bell;
pub mod control;
pub mod hazard;
pub mod header;
pub mod holders;
pub mod inbox;
pub mod line;
pub mod object;
pub mod primitive;
pub mod queue;
pub mod region;
pub mod slots;
