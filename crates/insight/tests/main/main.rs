//! Integration tests of what is computed from records.

mod accounting;
mod explained;
mod posted;
mod slices;
mod verified;
