//! Who runs where: the engine and fixed priority over lanes, against the definition.

mod lanes;
mod machine;
mod threads;
mod tree;

pub use machine::Machine;
