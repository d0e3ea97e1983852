//! The system description: nodes, end-to-end tasks of subtasks, hierarchies of schedulers, criticality, overheads.
//!
//! A [`Description`] is plain values. A [`System`] is a description that satisfies every rule, with its
//! operations numbered; only a `System` can be checked, simulated or run. It comes from a file
//! ([`read`], [`parse`](parse())), from a program ([`System::builder`]) or from plain values
//! ([`System::new`]); the rules are the same.

#![forbid(unsafe_code)]

mod builder;
mod composition;
mod description;
mod execution;
mod hierarchy;
mod keys;
mod link;
mod machine;
mod operation;
mod parse;
mod plan;
mod problem;
mod reference;
mod schema;
mod slices;
mod suggest;
mod system;
mod validate;
mod write;

pub use builder::{
    LinkBuilder, SchedulerBuilder, SubtaskBuilder, SystemBuilder, TaskBuilder, ThreadBuilder, Violations,
};
pub use composition::Scheduling;
pub use description::*;
pub use execution::Execution;
pub use hierarchy::*;
pub use link::{Link, LinkEnds, LossRate, Route};
pub use machine::{Costs, Machine, MachineError, Mechanism, Withheld};
pub use operation::{Operation, OperationId};
pub use parse::{FILE_BYTES_LIMIT, MemberLines, Parsed, parse, read};
pub use plan::{Plan, PlanEntry, PlanError, PlanFault};
pub use problem::{Location, Problem, Problems};
pub use reference::{conversions, reference};
pub use schema::json_schema;
pub use slices::{SLICE, Slices};
pub use system::System;
pub use validate::{
    CPU_LIMIT, HIERARCHY_LIMIT, NAME_BYTES_LIMIT, NODE_LIMIT, Place, Severity, TIME_LIMIT, Violation,
    violations,
};
