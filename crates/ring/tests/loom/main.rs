//! Models of what threads and processes share.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p talea-ring --profile loom --test loom`
#![cfg(loom)]

mod files;
mod handover;
mod hazards;
mod lanes;
