#![forbid(unsafe_code)]
//! policy
pub mod demand;
pub mod discipline;
pub mod job;
pub mod lane;
pub mod strategy;
