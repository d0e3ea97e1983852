//! The laboratory against the vectors in the repository, and the simulator against the runtime.

mod conformance;
mod hierarchies;
mod regions;
mod vectors;
