//! Integration tests of what is computed from records.

mod accounting;
mod blocked;
mod explained;
mod held;
mod members;
mod plans;
mod posted;
mod slices;
mod verified;
mod withheld;
