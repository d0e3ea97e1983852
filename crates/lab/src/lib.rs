//! Experiments, comparisons, test vectors and figures: whatever turns runs into results.
//!
//! Nothing here measures: every number comes from the records of a run. The exceptions are what changes of a running hierarchy and
//! context switches cost ([`experiments::hierarchies`]), for no record tells when a caller called.

#![forbid(unsafe_code)]

pub mod check;
pub mod compare;
pub mod experiments;
pub mod figure;
pub mod statistics;
pub mod strip;
pub mod table;
pub mod timeline;
pub mod vectors;
