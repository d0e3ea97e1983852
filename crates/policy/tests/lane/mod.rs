//! What is in a lane, and who is next.

mod model;
mod ordering;
mod queue;

pub use model::LaneModel;

use proptest::prelude::*;
use talea_model::{LaneDispatch, Late, Laxity};
use talea_policy::discipline::Discipline;
use talea_policy::job::Job;
use talea_policy::strategy::LaneRules;
use talea_time::{Instant, Work};

pub fn at(ns: i64) -> Instant {
    Instant::from_nanos(ns)
}

pub fn work(ns: i64) -> Work {
    Work::from_nanos(ns)
}

pub fn disciplines() -> impl Strategy<Value = Discipline> {
    prop_oneof![Just(Discipline::Fifo), Just(Discipline::Deadline), Just(Discipline::Laxity)]
}

pub fn rules() -> impl Strategy<Value = LaneRules> {
    let one_of = proptest::sample::select::<LaneDispatch>;
    (one_of(LaneDispatch::ALL), proptest::sample::select(Laxity::ALL), proptest::sample::select(Late::ALL))
        .prop_map(|(dispatch, laxity, late)| LaneRules { dispatch, laxity, late })
}

/// Jobs whose times are so few that ties of every kind are frequent. Rank and number are the caller's to
/// make unique; the tag is `tag`.
pub fn job(tag: u32) -> impl Strategy<Value = Job> {
    (0..6i64, 0..12i64, 1..5i64).prop_map(move |(release, deadline, wcet)| Job {
        release: at(release),
        deadline: at(release + deadline),
        wcet: work(wcet),
        rank: tag % 3,
        number: u64::from(tag / 3),
        tag,
    })
}
