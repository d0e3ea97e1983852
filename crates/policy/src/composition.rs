//! A strategy's lanes as a hierarchy: fixed priority over lane leaves.
//!
//! ```text
//!   RMS+MLF                fixed priority
//!                 ╱           │          ╲
//!        high 50ms (fifo)  high 100ms (fifo)  low (laxity)
//! ```

use crate::hierarchy::{Engine, Parameters, SchedulerId};
use crate::lane::{LaneQueue, Ties};
use crate::scheduler::{FixedPriority, LaneScheduler};
use crate::strategy::{Lane, Plan};

/// A node's hierarchy, ready for job slots.
pub struct Composition {
    /// The hierarchy.
    pub engine: Engine,
    /// The lane leaves, in the order of the plan.
    pub lanes: Vec<SchedulerId>,
}

/// Builds the hierarchy for `plan` on `processors` processors; every lane's queue holds `capacity` waiting
/// jobs without allocating.
pub fn compose(plan: &Plan, processors: usize, capacity: usize) -> Composition {
    let mut engine = Engine::new(processors);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let lanes = plan
        .lanes
        .iter()
        .map(|lane| {
            let priority = Parameters::Priority(-(lane.level as i32));
            engine
                .add(Box::new(leaf(lane, capacity)), &[(root, priority)])
                .expect("levels are distinct priorities")
        })
        .collect();
    Composition { engine, lanes }
}

fn leaf(lane: &Lane, capacity: usize) -> LaneScheduler {
    let queue = LaneQueue::new(lane.discipline, lane.rules, capacity);
    match lane.tick {
        Some(tick) => LaneScheduler::new(queue.with_ties(Ties::MemberOrder)).with_tick(tick),
        None => LaneScheduler::new(queue),
    }
}
