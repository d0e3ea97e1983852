//! The schedulers of the hierarchy, one file each.
//!
//! Each file says where the algorithm comes from, what it needs and gives, what it costs and when not to use
//! it, and has the [`Row`] by which one is made of a description: besides the table of rows nothing else in the crate names them. Those
//! that give one processor at a time to one of their children are [`Rule`]s of the one [`Uniprocessor`].

mod asking;
pub mod config;
mod configuration;
mod eevdf;
mod explicit_plan;
mod facts;
mod fair_queue;
mod fixed_priority;
mod join;
mod lane;
mod limit;
mod lottery;
mod reservation;
mod resource_kernel;
mod rialto;
mod round_robin;
mod slots;
mod slower_processor;
mod spring;
mod srms;
mod stride;
mod surplus_fair;
mod table;
mod time_sharing;
mod total_bandwidth;
mod uniprocessor;
mod virtual_time;

pub use configuration::{Config, Configuration, KindError};
pub use eevdf::{Eevdf, VirtualRequest};
pub use explicit_plan::{Beginning, ExplicitPlan, Gaps, PlanEntry, PlanError, Planned, Repeat};
pub use facts::{ConfigureError, Facts};
pub use fair_queue::{FairQueue, FairShare, WakeUp};
pub use fixed_priority::FixedPriority;
pub use join::Join;
pub use lane::LaneScheduler;
pub use limit::{Allowance, Limit, Renewal};
pub use lottery::{Draws, Lottery, SeededDraws, TICKET_PARTS, Tickets};
pub use reservation::{Budget, Exhaustion, Reservation};
pub use resource_kernel::{Reserved, ResourceKernel};
pub use rialto::{Rialto, Rialtoed};
pub use round_robin::{RoundRobin, Turn};
pub use slower_processor::{Rated, SlowerProcessor};
pub use spring::{Guaranteed, Spring};
pub use srms::{Statistical, StatisticalRateMonotonic};
pub use stride::{STRIDE1, Stride, StrideAccount};
pub use surplus_fair::{SurplusFair, readjusted};
pub use table::{Configure, Register, Row, register, row, rows};
pub use time_sharing::{Habits, Level, TOP_LEVEL, TimeSharing};
pub use total_bandwidth::{Bandwidth, Requests, TotalBandwidth};
pub use uniprocessor::{Announcing, Client, Clients, Rule, Stint, Uniprocessor};
pub use virtual_time::{Pace, Virtual};
