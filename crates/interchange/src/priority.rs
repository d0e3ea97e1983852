//! Fixed priorities of other programs, as the strategies that give the same order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use talea_model::{Criticality, Description, Strategy, Task};
use talea_time::Duration;

/// What orders tasks as their fixed priorities do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FixedOrder {
    /// Tasks of shorter periods have higher priorities, those of equal periods equal ones: strategy `rms`,
    /// which has a FIFO lane per period.
    RateMonotonic,
    /// At most five priorities: strategy `criticality`, which has a FIFO lane per criticality. One per task.
    Criticality(Vec<Criticality>),
    /// No strategy has the same order.
    Unknown {
        /// How many different priorities there are.
        priorities: usize,
    },
}

/// The order of tasks, each with its period and the priorities of its subtasks; larger is more urgent.
pub(crate) fn fixed_order(tasks: &[(Duration, Vec<i64>)]) -> FixedOrder {
    let mut of_period: BTreeMap<Duration, BTreeSet<i64>> = BTreeMap::new();
    for (period, priorities) in tasks {
        of_period.entry(*period).or_default().extend(priorities);
    }
    let one_each = of_period.values().all(|priorities| priorities.len() == 1);
    let falling = of_period.values().zip(of_period.values().skip(1)).all(|(a, b)| a.first() > b.first());
    if one_each && falling {
        return FixedOrder::RateMonotonic;
    }
    let mut all: Vec<i64> = of_period.into_values().flatten().collect();
    all.sort_unstable();
    all.dedup();
    let levels = Criticality::ALL.len();
    let of_task = |(_, priorities): &(Duration, Vec<i64>)| match priorities.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            let below = all.partition_point(|priority| priority < first);
            Criticality::from_level((levels - all.len() + below) as u8)
        }
        _ => None,
    };
    let criticalities: Option<Vec<_>> =
        if all.len() <= levels { tasks.iter().map(of_task).collect() } else { None };
    match criticalities {
        // One priority for all is one lane; it says nothing about who is critical.
        Some(criticalities) if all.len() == 1 => {
            FixedOrder::Criticality(vec![Criticality::Medium; criticalities.len()])
        }
        Some(criticalities) => FixedOrder::Criticality(criticalities),
        None => FixedOrder::Unknown { priorities: all.len() },
    }
}

/// For each task its level among fixed priorities, 0 the most urgent, and how many levels there are.
///
/// Exact for `rms` and `criticality`. For the strategies that order by time inside a criticality the level
/// keeps the criticalities apart and takes the rate inside; for `edf` and `mlf` it is the rate.
pub(crate) fn levels(description: &Description) -> (Vec<usize>, usize) {
    let key = |task: &Task| match description.strategy {
        Strategy::Rms | Strategy::Edf | Strategy::Mlf => (Reverse(Criticality::Medium), task.period),
        Strategy::Muf | Strategy::RmsMlf => (Reverse(task.criticality), task.period),
        Strategy::Criticality => (Reverse(task.criticality), Duration::ZERO),
    };
    let mut keys: Vec<_> = description.tasks.iter().map(key).collect();
    keys.sort_unstable();
    keys.dedup();
    let level = |task: &Task| keys.partition_point(|other| *other < key(task));
    (description.tasks.iter().map(level).collect(), keys.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(tasks: &[(i64, &[i64])]) -> FixedOrder {
        let tasks: Vec<_> =
            tasks.iter().map(|(ms, list)| (Duration::from_millis(*ms), list.to_vec())).collect();
        fixed_order(&tasks)
    }

    fn criticalities(levels: &[u8]) -> FixedOrder {
        FixedOrder::Criticality(
            levels.iter().map(|level| Criticality::from_level(*level).expect("0 to 4")).collect(),
        )
    }

    #[test]
    fn priorities_by_rate_are_rms() {
        assert_eq!(order(&[(10, &[9]), (20, &[5, 5]), (10, &[9]), (50, &[-1])]), FixedOrder::RateMonotonic);
        assert_eq!(order(&[(10, &[1])]), FixedOrder::RateMonotonic);
    }

    #[test]
    fn few_priorities_are_criticalities() {
        assert_eq!(order(&[(10, &[1]), (20, &[7])]), criticalities(&[3, 4]));
        assert_eq!(order(&[(10, &[7]), (10, &[1]), (5, &[3])]), criticalities(&[4, 2, 3]));
        assert_eq!(order(&[(10, &[7]), (20, &[7])]), criticalities(&[2, 2]), "one lane, nobody critical");
    }

    #[test]
    fn other_priorities_are_unknown() {
        let six: Vec<(i64, &[i64])> = vec![(1, &[1]), (2, &[2]), (3, &[3]), (4, &[4]), (5, &[5]), (6, &[6])];
        assert_eq!(order(&six), FixedOrder::Unknown { priorities: 6 });
        assert_eq!(order(&[(10, &[1, 2])]), FixedOrder::Unknown { priorities: 2 }, "within one task");
    }
}
