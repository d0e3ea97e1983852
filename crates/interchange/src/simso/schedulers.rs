//! SimSo's schedulers and the strategies that do the same.

use crate::settings::blank;
use talea_model::{Description, LaneDispatch, Late, Laxity, Strategy};

/// What a scheduler of SimSo is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counterpart {
    /// A strategy.
    Strategy(Strategy),
    /// Fixed priorities from the tasks' field `priority`.
    FixedPriority,
}

/// What the scheduler called `class` is here, if anything. Partitioned, global and uniprocessor variants
/// of one rule order jobs alike; where jobs may run is another question.
pub(super) fn counterpart(class: &str) -> Option<Counterpart> {
    Some(match class {
        "EDF" | "EDF_mono" | "P_EDF" | "P_EDF2" | "P_EDF_WF" | "SCHED_DEADLINE" => {
            Counterpart::Strategy(Strategy::Edf)
        }
        "RM" | "RM_mono" | "P_RM" => Counterpart::Strategy(Strategy::Rms),
        "LLF" => Counterpart::Strategy(Strategy::Mlf),
        "FP" => Counterpart::FixedPriority,
        _ => return None,
    })
}

/// The scheduler that orders jobs as `strategy` does, or nearly.
pub(super) fn class_of(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Rms => "simso.schedulers.RM",
        Strategy::Edf => "simso.schedulers.EDF",
        Strategy::Mlf => "simso.schedulers.LLF",
        Strategy::Muf | Strategy::RmsMlf | Strategy::Criticality => "simso.schedulers.FP",
    }
}

/// Makes `description` order jobs as SimSo does under a scheduler of `strategy`: preempted by any more
/// urgent job, whether the urgent one is late or not, and by the laxity that is left.
pub(super) fn adopt(strategy: Strategy, description: &mut Description) {
    description.strategy = strategy;
    if matches!(strategy, Strategy::Edf | Strategy::Mlf) {
        description.lane_dispatch = LaneDispatch::Preemptive;
        description.late = Late::None;
    }
    if strategy == Strategy::Mlf {
        description.laxity = Laxity::Remaining;
    }
}

/// The settings that `strategy` has after the way to SimSo and back.
pub(super) fn returned(strategy: Strategy) -> Description {
    let mut description = blank("returned".into());
    adopt(strategy, &mut description);
    description
}
