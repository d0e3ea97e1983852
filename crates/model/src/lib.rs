//! The system description: nodes, end-to-end tasks of subtasks, hierarchies of schedulers, criticality, overheads.
//!
//! A [`Description`] is plain values. A [`System`] is a description that satisfies every rule, with its
//! operations numbered; only a `System` can be checked, simulated or run. It comes from a file
//! ([`read`], [`parse`](parse())), from a program ([`System::builder`]) or from plain values
//! ([`System::new`]); the rules are the same.

#![forbid(unsafe_code)]

mod builder;
mod chain;
mod channel;
mod composition;
mod connection;
mod description;
mod execution;
mod hierarchy;
mod inheritance;
mod keys;
mod keyword;
mod link;
mod machine;
mod operation;
mod parse;
mod plan;
mod ports;
mod problem;
mod rate;
mod reference;
mod schema;
mod slices;
mod suggest;
mod system;
mod trigger;
mod validate;
mod write;

pub use builder::{
    ChainBuilder, InputBuilder, LinkBuilder, OutputBuilder, PublicationBuilder, SchedulerBuilder,
    SubscriptionBuilder, SubtaskBuilder, SystemBuilder, TaskBuilder, ThreadBuilder, TriggerBuilder,
    Violations,
};
pub use chain::Chain;
pub use channel::{
    Arrivals, Channel, Condition, EventTake, EventTypeName, Mapped, Publication, PublicationAddress,
    Subscription, SubscriptionOwner,
};
pub use composition::Scheduling;
pub use connection::{
    ChainSite, Hop, HopKind, InputId, InputSite, OutputId, OutputSite, PublicationId, PublicationSite,
    Subscriber,
};
pub use description::*;
pub use execution::Execution;
pub use hierarchy::*;
pub use keyword::UnknownKeyword;
pub use link::{Link, LinkEnds, LossRate, Route};
pub use machine::{Costs, Machine, MachineError, Mechanism, Withheld};
pub use operation::{Operation, OperationAddress, OperationId, UNDEFINED};
pub use parse::{FILE_BYTES_LIMIT, MemberLines, Parsed, parse, read};
pub use plan::{Plan, PlanEntry, PlanError, PlanFault};
pub use ports::{FieldValues, Full, Input, Output, OutputAddress, PORT_LIMIT, SyntheticField, Take};
pub use problem::{Location, Problem, Problems};
pub use reference::{conversions, reference};
pub use schema::json_schema;
pub use slices::{SLICE, Slices};
pub use system::System;
pub use talea_event::Collect;
pub use trigger::{Communication, Excess, OnValue, OutsideArrivals, Separation, Trigger};
pub use validate::{
    CPU_LIMIT, HIERARCHY_LIMIT, MESSAGE_BYTES, NAME_BYTES_LIMIT, NODE_LIMIT, Place, Severity, TIME_LIMIT,
    VALUE_HEADER_BYTES, Violation, message_bytes, violations,
};
