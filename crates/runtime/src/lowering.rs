//! Lowering: from the lanes of a strategy to what the kernel can do by itself. [`hierarchy`] lowers hierarchies of schedulers,
//! by what [`machine`] finds the kernel to offer.
//!
//! A fixed priority over lanes is what SCHED_FIFO offers, so a plan becomes levels, and the kernel
//! preempts between lanes without our help. What it has no policy for, the order *inside* a lane, stays
//! with the lane's thread, or with the controller of a preemptive lane.
//!
//! The default band, top down:
//!
//! | SCHED_FIFO priority | Who |
//! |---|---|
//! | 81 to 99 | left to the kernel's and the user's own threads |
//! | 80 | the release thread of each node; the receiver of messages from other processes |
//! | 79, 78, … | non-preemptive lanes, one priority each, lane 0 first |
//! | three in a row | a preemptive lane: its controller, the granted job, the parked jobs |
//!
//! The release thread stands above all lanes because a release that waits for a job is late for every
//! lane above that job. A controller stands above the jobs of its own lane and below the next higher
//! lane, so that deciding about less urgent work never delays more urgent work.

pub mod hierarchy;
pub mod machine;

use std::ops::RangeInclusive;
use talea_model::LaneDispatch;
use talea_policy::strategy::Plan;
use talea_time::Duration;
use thiserror::Error;

/// Priorities the kernel knows for SCHED_FIFO; larger is higher.
const KERNEL: RangeInclusive<u8> = 1..=99;

/// The SCHED_FIFO priorities a run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// Priority of the release threads; the lanes follow below.
    pub top: u8,
    /// The lowest priority a lane may get.
    pub bottom: u8,
}

impl Default for Band {
    fn default() -> Self {
        Band { top: 80, bottom: 1 }
    }
}

/// The priorities of one lane's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanePriorities {
    /// A non-preemptive lane: one thread.
    Single(u8),
    /// A preemptive lane: a controller and one thread per job under way.
    Banded {
        /// Decides which job is granted.
        controller: u8,
        /// The job that is to run.
        granted: u8,
        /// Jobs that have begun and were outranked.
        parked: u8,
    },
}

/// The kernel settings of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowering {
    /// Priority of the release thread and of the receiver.
    pub release: u8,
    /// Priorities by lane, in the order of the plan.
    pub lanes: Vec<LanePriorities>,
}

/// What the kernel has of a node's threads.
pub(crate) enum NodeSettings {
    /// Those of lanes. Where the lanes have places below other schedulers, they have the priorities of these.
    Lanes(Lowering),
    /// Those of the own threads of a hierarchy, each of which is a lane.
    Hierarchy(hierarchy::Settings),
}

/// Why a plan cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoweringError {
    /// The band is empty or leaves the kernel's range.
    #[error("the band of priorities {top} down to {bottom} is not within 99 down to 1")]
    NoBand {
        /// Its highest priority.
        top: u8,
        /// Its lowest.
        bottom: u8,
    },
    /// The lanes need more priorities than the band has below the release thread.
    #[error(
        "the {lanes} lanes need {needed} priorities but only {available} are left below the release thread; \
         raise the top of the band or choose a strategy with fewer lanes"
    )]
    TooFewPriorities {
        /// How many lanes there are.
        lanes: usize,
        /// Priorities they need: one each, three if preemptive.
        needed: usize,
        /// Priorities to be had.
        available: usize,
    },
    /// A lane that chooses anew at every tick needs the simulator: here lanes choose at events.
    #[error("lane \"{lane}\" chooses anew every {tick}, which only the simulator does")]
    Ticks {
        /// The lane's label.
        lane: String,
        /// Its tick.
        tick: Duration,
    },
    /// A lane's queue decides for one processor; a preemptive lane would have to decide for several.
    #[error(
        "lane \"{lane}\" is preemptive and its node has {cpus} cpus, but a preemptive lane runs on one; \
         give the node one cpu, or split it into one node per cpu"
    )]
    PreemptiveOnSeveralCpus {
        /// The lane's label.
        lane: String,
        /// How many processors its node has.
        cpus: usize,
    },
}

/// Gives every lane of `plan`, on a node of `cpus` processors, its priorities in `band`.
///
/// # Errors
/// What the kernel cannot do, see [`LoweringError`].
pub fn lower(plan: &Plan, cpus: usize, band: Band) -> Result<Lowering, LoweringError> {
    let Band { top, bottom } = band;
    if bottom > top || !KERNEL.contains(&bottom) || !KERNEL.contains(&top) {
        return Err(LoweringError::NoBand { top, bottom });
    }
    if let Some((lane, tick)) = plan.lanes.iter().find_map(|lane| lane.tick.map(|tick| (lane, tick))) {
        return Err(LoweringError::Ticks { lane: lane.label.clone(), tick });
    }
    let is_preemptive = |dispatch| dispatch == LaneDispatch::Preemptive;
    if let Some(lane) = plan.lanes.iter().find(|lane| is_preemptive(lane.rules.dispatch) && cpus > 1) {
        return Err(LoweringError::PreemptiveOnSeveralCpus { lane: lane.label.clone(), cpus });
    }
    let width = |dispatch| if is_preemptive(dispatch) { 3 } else { 1 };
    let needed: usize = plan.lanes.iter().map(|lane| width(lane.rules.dispatch)).sum();
    let available = usize::from(top - bottom);
    if needed > available {
        return Err(LoweringError::TooFewPriorities { lanes: plan.lanes.len(), needed, available });
    }
    let mut below = top;
    let mut next = || {
        below -= 1;
        below
    };
    let lanes = plan
        .lanes
        .iter()
        .map(|lane| match lane.rules.dispatch {
            LaneDispatch::NonPreemptive => LanePriorities::Single(next()),
            LaneDispatch::Preemptive => {
                LanePriorities::Banded { controller: next(), granted: next(), parked: next() }
            }
        })
        .collect();
    Ok(Lowering { release: top, lanes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::{Late, Laxity};
    use talea_policy::discipline::Discipline;
    use talea_policy::strategy::{Lane, LaneRules};

    fn plan(lanes: usize, dispatch: LaneDispatch) -> Plan {
        let rules = LaneRules { dispatch, laxity: Laxity::Declared, late: Late::Last };
        let lane = |level| Lane {
            level,
            label: format!("lane {level}"),
            discipline: Discipline::Fifo,
            rules,
            tick: None,
            members: Vec::new(),
            under: None,
        };
        Plan { lanes: (0..lanes).map(lane).collect(), warnings: Vec::new() }
    }

    #[test]
    fn lanes_follow_the_release_thread_downwards() {
        let lowering = lower(&plan(3, LaneDispatch::NonPreemptive), 2, Band::default()).unwrap();
        assert_eq!(lowering.release, 80);
        assert_eq!(
            lowering.lanes,
            [LanePriorities::Single(79), LanePriorities::Single(78), LanePriorities::Single(77)]
        );
    }

    #[test]
    fn a_preemptive_lane_takes_three_priorities_below_the_lane_above() {
        let lowering = lower(&plan(2, LaneDispatch::Preemptive), 1, Band { top: 50, bottom: 44 }).unwrap();
        assert_eq!(
            lowering.lanes,
            [
                LanePriorities::Banded { controller: 49, granted: 48, parked: 47 },
                LanePriorities::Banded { controller: 46, granted: 45, parked: 44 },
            ]
        );
    }

    #[test]
    fn the_last_priority_is_usable_and_one_lane_more_is_refused() {
        let band = Band { top: 10, bottom: 7 };
        assert!(lower(&plan(3, LaneDispatch::NonPreemptive), 1, band).is_ok());
        assert_eq!(
            lower(&plan(4, LaneDispatch::NonPreemptive), 1, band),
            Err(LoweringError::TooFewPriorities { lanes: 4, needed: 4, available: 3 })
        );
        assert_eq!(
            lower(&plan(2, LaneDispatch::Preemptive), 1, band),
            Err(LoweringError::TooFewPriorities { lanes: 2, needed: 6, available: 3 })
        );
    }

    #[test]
    fn a_preemptive_lane_on_two_cpus_is_refused() {
        assert_eq!(
            lower(&plan(1, LaneDispatch::Preemptive), 2, Band::default()),
            Err(LoweringError::PreemptiveOnSeveralCpus { lane: "lane 0".into(), cpus: 2 })
        );
    }

    #[test]
    fn a_ticking_lane_is_refused() {
        let mut ticking = plan(2, LaneDispatch::NonPreemptive);
        let tick = Duration::from_millis(1);
        ticking.lanes[1].tick = Some(tick);
        assert_eq!(
            lower(&ticking, 1, Band::default()),
            Err(LoweringError::Ticks { lane: "lane 1".into(), tick })
        );
    }

    #[test]
    fn a_band_outside_the_kernels_range_is_refused() {
        for (top, bottom) in [(100, 1), (80, 0), (10, 11)] {
            let refused = lower(&plan(1, LaneDispatch::NonPreemptive), 1, Band { top, bottom });
            assert_eq!(refused, Err(LoweringError::NoBand { top, bottom }));
        }
    }
}
