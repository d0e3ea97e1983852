//! The laboratory against the vectors in the repository.

mod vectors;
