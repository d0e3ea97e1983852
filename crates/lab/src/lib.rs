//! Experiments, comparisons, test vectors and figures: whatever turns runs into results.

#![forbid(unsafe_code)]

pub mod vectors;
