//! The schedulers of the hierarchy, one file each.
//!
//! Each file says where the algorithm comes from, what it needs and gives, what it costs and when not to use
//! it. New schedulers are new files: nothing else in the crate names them.

mod fixed_priority;
mod lane;

pub use fixed_priority::FixedPriority;
pub use lane::LaneScheduler;
