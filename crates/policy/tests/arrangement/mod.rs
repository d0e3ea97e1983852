//! Descriptions as engines.

mod live;
