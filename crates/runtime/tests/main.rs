//! The runtime against the real kernel. What needs a privilege that is missing says so and is
//! skipped.

#![cfg(not(loom))]

mod exec;
mod inbox;
#[path = "../../manage/tests/main/programs.rs"]
mod programs;
