//! The guarantee system against definitions, the paper and itself.

mod conversions;
mod derivations;
mod due;
mod hierarchies;
mod monotone;
mod notation;
mod remedies;
mod sketch;
mod supply;
mod theorems;
