//! The evidence for the policies: laws, models written apart from the code, and promises of the literature.
//!
//! A failing property prints its smallest input and a `cc` line; the line goes by itself into
//! `proptest-regressions/`, from where `cargo test -p talea-policy` replays it first.

#![forbid(unsafe_code)]

mod arrangement;
mod hierarchy;
mod lane;
mod scheduler;
mod strategy;
