//! Who runs where: the engine and fixed priority over lanes, against the definition.

mod lanes;
mod threads;
mod tree;

pub use talea_conformance::Machine;
