//! Descriptions as engines.

mod live;
mod parameters;
