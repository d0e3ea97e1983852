//! The evidence for the simulator: its records replayed and judged, a naive simulator to agree with, and
//! memory that does not grow. And, because random systems are at hand here, that what is computed from records is right.
//!
//! A failing property prints its smallest input and a `cc` line; the line goes by itself into
//! `proptest-regressions/`, from where `cargo test -p talea-sim` replays it first.

#![forbid(unsafe_code)]

mod chains;
mod channels;
mod dispatch;
mod explain;
mod guards;
mod hierarchies;
mod links;
mod memory;
mod posting;
mod properties;
mod reference;
mod replay;
mod systems;
mod usage;
mod values;
mod verify;
