//! Integration tests of what is computed from records.

mod accounting;
mod explained;
mod plans;
mod posted;
mod slices;
mod verified;
