//! Import and export of every format: what the example files become, what a round trip keeps, and that no input
//! makes a reader panic.

mod data;
mod differences;
mod files;
mod generated;
mod refused;
mod robustness;
mod round_trip;
mod rt_app;
mod simso;
mod tabular;
