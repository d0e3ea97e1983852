//! Named compositions: a strategy's lanes as fixed priority over lane leaves, and the modes of KURT.
//!
//! ```text
//!   RMS+MLF                fixed priority
//!                 ╱           │          ╲
//!        high 50ms (fifo)  high 100ms (fifo)  low (laxity)
//! ```

use crate::hierarchy::{Engine, Parameters, Scheduler, SchedulerId};
use crate::lane::{LaneQueue, Ties};
use crate::scheduler::{ExplicitPlan, FixedPriority, Habits, LaneScheduler, TimeSharing};
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

pub(crate) fn leaf(lane: &Lane, capacity: usize) -> LaneScheduler {
    let queue = LaneQueue::new(lane.discipline, lane.rules, capacity);
    match lane.tick {
        Some(tick) => LaneScheduler::new(queue.with_ties(Ties::MemberOrder)).with_tick(tick),
        None => LaneScheduler::new(queue),
    }
}

/// KURT's modes (Niehaus et al.).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KurtMode {
    /// Time sharing for everybody; the plan is not followed.
    Normal,
    /// The plan first, everybody else by time sharing in its gaps.
    Mixed,
    /// The plan alone.
    Focused,
}

/// The schedulers of a KURT mode: where processes of the plan and others belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kurt {
    /// The plan; nothing in normal mode.
    pub plan: Option<SchedulerId>,
    /// Time sharing; nothing in focused mode, in which others do not run.
    pub others: Option<SchedulerId>,
}

/// Adds to `engine`, which has no root, the hierarchy of `mode` with this plan and these habits.
pub fn kurt(engine: &mut Engine, mode: KurtMode, plan: ExplicitPlan, habits: Habits) -> Kurt {
    match mode {
        KurtMode::Normal => {
            Kurt { plan: None, others: Some(engine.add_root(Box::new(TimeSharing::scheduler(habits)))) }
        }
        KurtMode::Focused => Kurt { plan: Some(engine.add_root(Box::new(plan.scheduler()))), others: None },
        KurtMode::Mixed => {
            let root = engine.add_root(Box::new(FixedPriority::new()));
            let mut below = |scheduler: Box<dyn Scheduler>, priority| {
                engine
                    .add(scheduler, &[(root, Parameters::Priority(priority))])
                    .expect("two distinct priorities")
            };
            let plan = below(Box::new(plan.scheduler()), 1);
            let others = below(Box::new(TimeSharing::scheduler(habits)), 0);
            Kurt { plan: Some(plan), others: Some(others) }
        }
    }
}
