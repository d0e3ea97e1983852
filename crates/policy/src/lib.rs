//! Policies: pure state machines into which `now` comes and from which decisions go out.
//!
//! * [`strategy`]: from operations to lanes, or to the complete list of anomalies.
//! * [`discipline`] and [`lane`]: the order inside a lane, as a key function and as a queue.
//! * [`hierarchy`]: who runs next, as a hierarchy of small schedulers; [`scheduler`] holds them.
//! * [`composition`]: a strategy's lanes as such a hierarchy.
//! * [`arrangement`]: the hierarchy of a description as such.
//! * [`release`]: when jobs arrive and are released: overruns, joins, guards.
//! * [`demand`]: seeded execution times and release jitter, equal for every strategy and clock.
//!
//! The simulator and the Linux runtime drive the same objects. Nothing here reads a clock, locks or spawns.

#![forbid(unsafe_code)]

pub mod arrangement;
pub mod composition;
pub mod demand;
pub mod discipline;
pub mod hierarchy;
pub mod job;
pub mod lane;
pub mod release;
pub mod scheduler;
pub mod strategy;
