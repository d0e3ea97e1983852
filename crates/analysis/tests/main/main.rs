//! Evidence for the analyses: a scheduler that knows nothing of them, another implementation, and hostile numbers.
//!
//! A failing property prints its smallest input and a `cc` line; the line goes by itself into `proptest-regressions/`,
//! from where `cargo test -p talea-analysis` replays it first.

#![forbid(unsafe_code)]

mod batches;
mod cause_effect;
mod chain;
mod chains_simulated;
mod edf;
mod fixed_priority;
mod hierarchies;
mod hostile;
mod naive;
mod protocols;
mod reference;
mod responses;
mod sets;
mod soundness;
mod subdeadlines;
