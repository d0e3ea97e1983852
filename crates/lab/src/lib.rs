//! Experiments, comparisons and test vectors: what turns runs into results.
//!
//! Nothing here measures: every number comes from the records of a run. The exceptions are what changes of a running hierarchy and
//! context switches cost ([`experiments::hierarchies`]), for no record tells when a caller called.

#![forbid(unsafe_code)]

pub mod compare;
pub mod experiments;
pub mod table;
pub mod vectors;
