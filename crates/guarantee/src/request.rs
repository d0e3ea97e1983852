//! What a child asks of its scheduler.

use crate::guarantee::Guarantee;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU32;

/// What a child asks of its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Nothing in particular.
    #[default]
    Nothing,
    /// A priority; larger is higher.
    Priority(i32),
    /// A relative share.
    Weight(NonZeroU32),
    /// A guarantee: a reservation or a slower processor.
    Guarantee(Guarantee),
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Nothing => f.write_str("nothing"),
            Request::Priority(priority) => write!(f, "priority {priority}"),
            Request::Weight(weight) => write!(f, "share {weight}"),
            Request::Guarantee(guarantee) => write!(f, "{guarantee}"),
        }
    }
}
