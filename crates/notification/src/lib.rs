//! The notification service and the real-time event channel: suppliers push events, filters and quality of service decide who has them and when,
//! consumers have them delivered as work of their lanes.
//!
//! TODO
#![forbid(unsafe_code)]

mod admin;
mod channel;
mod condition;
mod connect;
mod consumer;
mod delivery;
mod event;
mod filter;
mod grouped;
mod pattern;
mod place;
pub mod qos;
mod queue;
mod signal;
mod statistics;
mod supplier;
mod topology;

pub use admin::{ConsumerAdmin, SupplierAdmin};
pub use channel::{AdminProperties, BindError, EventChannel, EventChannelFactory};
pub use condition::{Collect, Condition, TimeCame};
pub use connect::{ConnectError, ConnectedConsumer, ConsumerBuilder, NotNow, PullConsumer};
pub use consumer::Connection;
pub use delivery::{Delivery, Outcome};
pub use event::{Content, Event, EventPool, EventType, Header, Loan};
pub use filter::{ConstraintId, Expression, Filter, GroupOperator, MappingFilter, NotEvaluated, Verdict};
pub use pattern::{TypePattern, TypePatternError};
pub use statistics::{ChannelStatistics, ConsumerStatistics, Statistic};
pub use supplier::{PushError, Pushed, Supplier, SupplierBuilder};
pub use topology::Changed;
