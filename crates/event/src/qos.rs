//! Quality of service: properties with a value at a level, and what they come to.
//!
//! A property can be set at some of four levels: channel, admin, proxy, and in the header of an event. A child copies what its parent has **once,
//! when it is created**; later changes above do not reach it (OMG Notification Service 1.1, §2.5.5). Setting merges: what is not named stays. It
//! is all or nothing, and every problem is told at once.

mod problem;
mod property;
mod settings;

pub use problem::{QosError, QosProblem, QosProblems};
pub use property::{Level, PropertyName, PropertyValue};
pub use settings::{DiscardPolicy, OrderPolicy, Qos, QosSettings, Reliability};
