//! Pictures as SVG of results that other crates have computed; only positions are computed here.
//!
//! | Module | What it shows |
//! |---|---|
//! | [`ages`] | how old the values are that jobs take |
//! | [`bounds`] | what the bound of every task is made of, beside its deadline |
//! | [`hierarchy`] | schedulers and threads, with the guarantee on each edge |
//! | [`timeline`] | a stretch of a run's schedule |
//! | [`response`] | one explained response time |
//! | [`cells`] | what becomes of every combination of values on four axes |
//! | [`chart`] | points and distributions between axes |
//! | [`drawing`] | what they share: bars, time lines, stacks, colours |
//!
//! The drawings leave the choice of a sans-serif font to the program that shows them.

#![forbid(unsafe_code)]

pub mod ages;
pub mod bounds;
pub mod cells;
pub mod chart;
pub mod drawing;
pub mod hierarchy;
mod raster;
pub mod response;
pub mod timeline;

pub use raster::RasterError;
