//! The notification service and the real-time event channel: suppliers push events, filters and quality of service decide who has them and when,
//! consumers have them delivered as work of their lanes.
//!
//! | The standard's object | Here |
//! |---|---|
//! | EventChannelFactory, EventChannel | [`EventChannelFactory`], [`EventChannel`] |
//! | SupplierAdmin, ConsumerAdmin | [`SupplierAdmin`], [`ConsumerAdmin`]; number 0 is the default one |
//! | ProxyConsumer (the supplier's end) | [`SupplierBuilder`], [`Supplier`] for push, [`PullSupplier`] for pull; found by its number, [`SupplierHandle`] |
//! | ProxySupplier (the consumer's end) | [`ConsumerBuilder`], [`ConnectedConsumer`] for push, [`PullConsumer`] for pull; sequences by [`connect_sequence`](ConsumerBuilder::connect_sequence) and [`SequencePullConsumer`]; found by its number, [`ConsumerHandle`] |
//! | Filter, MappingFilter | [`Filter`], [`MappingFilter`] |
//! | FilterAdmin | [`FilterAdmin`], which consumers, suppliers and admins return from `filters()` |
//! | priority_filter, lifetime_filter | [`MappingAdmin`], which consumers and their admins return from `priority_filter()` and `lifetime_filter()` |
//! | FilterFactory | [`Filter::new`] and [`MappingFilter::new`]; [`Filter::parse`] and [`MappingFilter::add_constraint`] for the constraint language |
//! | QoS and admin properties | [`qos`], [`AdminProperties`] |
//! | ThreadPool, ThreadPoolLanes | [`ThreadPool`] |
//! | statistics by name | [`Monitor`] |
//! | the event channel's Observer, `is_gateway` | [`EventChannel::observe`], [`ConsumerBuilder::gateway`], [`SupplierBuilder::gateway`] |
//! | structured, typed and Any events | [`Event`] with [`Content`] of any type |
//!
//! # An event's life
//!
//! ```text
//!   EventPool ──loan──► written ──done──► Event ──push──► waits for each consumer ──► delivered ──► nobody has it: free again
//! ```
//!
//! # Where deliveries are done
//!
//! Channels know nothing of threads. A [`Workplace`](talea_operation::Workplace) declares the operations of consumers and posts jobs at instants; whoever
//! pushes brings the means to post ([`Post`](talea_operation::Post)): the job in which it happens, or a thread's own. A factory may be made before there is a
//! workplace, so that suppliers can belong to operations that are registered before the run is prepared; it is [bound](EventChannelFactory::bind) then.
//!
//! # What is real-time safe
//!
//! Pushing an event of a pool whose type was offered, filters that do not allocate, queueing, conditions and delivering: they neither allocate nor
//! lock, in as many steps as consumers have subscribed to the type and events wait. Making, connecting, disconnecting and changing are not. On a thread
//! of the program's own the first event allocates, unless it has called [`prepare_thread`]; those that execute jobs do so before the run, if the program
//! has made a channel by then.

#![forbid(unsafe_code)]

mod admin;
mod attached;
mod changes;
mod channel;
mod condition;
mod connect;
mod connected;
mod constraint;
mod consumer;
pub mod declared;
mod delivery;
mod encoded;
mod event;
mod fields;
mod filter;
mod gone;
mod grouped;
mod interest;
mod kept;
mod limits;
mod mapping;
mod monitor;
mod observer;
mod observing;
mod partners;
mod pattern;
mod place;
mod pool;
mod posting;
mod publications;
mod pulled;
mod queue;
mod replaced;
mod shared;
mod signal;
mod stated;
mod statistics;
mod stream;
mod supplier;
mod topology;
mod waiting;
mod work;

pub use admin::{ConsumerAdmin, SupplierAdmin};
pub use attached::{FilterAdmin, MappingAdmin};
pub use channel::{BindError, EventChannel, EventChannelFactory, NeverBytes};
pub use condition::{Collect, Condition, TimeCame};
pub use connect::{ConnectError, ConsumerBuilder};
pub use connected::{
    ConnectedConsumer, ConsumerHandle, NotNow, NotReconnected, PullConsumer, SequencePullConsumer,
};
pub use constraint::{ConstraintError, HeaderProblem};
pub use consumer::Connection;
pub use delivery::Delivery;
pub use event::{Content, Event, EventPool, EventType, Header, Loan, Origin, WallClock};
pub use fields::{FieldProblem, HeaderFields};
pub use filter::{ConstraintId, Expression, Filter, FilterId, GroupOperator, NotEvaluated, Verdict};
pub use interest::{Interest, Observed, Sources};
pub use limits::{AdminProperties, LimitExceeded};
pub use mapping::{MappedValue, MappingError, MappingFilter};
pub use monitor::{Monitor, Monitored, Numeric, UnknownStatistic};
pub use observer::Observer;
pub use partners::{Partner, PartnersChanged};
pub use pool::ThreadPool;
pub use pulled::{PullPace, PullStatistics, PullSupplier, Supplied};
pub use shared::ObtainInfoMode;
pub use statistics::{ChannelStatistics, ConsumerStatistics, Statistic};
pub use stream::EventStream;
pub use supplier::{PushError, Pushed, Supplier, SupplierBuilder, SupplierHandle};
pub use talea_etcl::{self as etcl, Event as StructuredEvent, Filterable};
pub use talea_event::{Outcome, TypePattern, TypePatternError, qos};
pub use talea_linux::replaced::prepare_thread;
pub use talea_wire as wire;
pub use topology::Changed;
pub use waiting::WaitSet;
pub use work::{Miss, MissedJob};
