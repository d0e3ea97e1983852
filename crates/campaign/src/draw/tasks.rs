//! Tasks for the nodes that have lanes.

use super::{micros, one_of};
use rand::{Rng, RngExt};
use talea_model::{
    Communication, Criticality, Description, Execution, Join, Overrun, Subtask, Synchronisation, Task,
    Trigger,
};
use talea_time::{Duration, Work};

/// Periods in microseconds: some divide each other, others do not.
const PERIODS: [i64; 7] = [2_000, 4_000, 5_000, 8_000, 10_000, 21_000, 40_000];

/// Adds tasks whose subtasks are on `nodes`.
pub fn add(description: &mut Description, rng: &mut impl Rng, nodes: &[usize]) {
    let count = rng.random_range(1..=5);
    // Of one processor, in hundredths: from hardly anything to more than there is.
    let load = one_of(rng, &[20, 50, 80, 95, 120]) * nodes.len() as i64;
    for index in 0..count {
        let period = micros(one_of(rng, &PERIODS));
        let share = load * rng.random_range(50..150) / 100 / count;
        let subtasks = one_of(rng, &[1, 1, 1, 2, 3, 4]);
        let work = Duration::from_nanos((period.as_nanos() / 100 * share / subtasks as i64).max(1_000));
        let mut task = Task {
            name: format!("t{index}"),
            period,
            deadline: halves(period, one_of(rng, &[1, 2, 2, 2, 3, 6])),
            phase: micros(one_of(rng, &[0, 0, 300, 7_000])),
            jitter: if rng.random_ratio(1, 4) { halves(period, 1) } else { Duration::ZERO },
            criticality: one_of(rng, Criticality::ALL),
            importance: rng.random_range(-1..2),
            trigger: None,
            inherits_deadline: false,
            inherits_criticality: false,
            separation: None,
            communication: Communication::Implicit,
            overrun: one_of(rng, Overrun::ALL),
            sync: if rng.random_ratio(1, 3) {
                one_of(rng, Synchronisation::ALL)
            } else {
                Synchronisation::Greedy
            },
            subtasks: (0..subtasks).map(|place| subtask(rng, place, (work, period), nodes)).collect(),
        };
        keep_mergeable(&mut task);
        description.tasks.push(task);
    }
}

/// Where instances cannot be merged, they queue up.
pub(super) fn keep_mergeable(task: &mut Task) {
    if task.overrun == Overrun::Merge && !task.can_merge() {
        task.overrun = Overrun::Queue;
    }
}

fn halves(period: Duration, count: i64) -> Duration {
    Duration::from_nanos(period.as_nanos() / 2 * count)
}

fn subtask(
    rng: &mut impl Rng,
    place: usize,
    (work, period): (Duration, Duration),
    nodes: &[usize],
) -> Subtask {
    let wcet = Work::from_nanos(work.as_nanos());
    let after: Vec<usize> = match place {
        0 => Vec::new(),
        _ if rng.random_ratio(1, 8) => Vec::new(),
        _ => (0..place).filter(|before| before + 1 == place || rng.random_ratio(1, 4)).collect(),
    };
    let join = match after.len() {
        0 | 1 => Join::All,
        many => one_of(rng, &[Join::All, Join::All, Join::First, Join::Count(many as u32)]),
    };
    Subtask {
        name: format!("s{place}"),
        node: one_of(rng, nodes),
        lanes: None,
        wcet,
        exec: match rng.random_range(0..4) {
            0 => Execution::Uniform(Work::from_nanos(wcet.as_nanos() / 2), wcet),
            1 => Execution::List([wcet, Work::from_nanos(wcet.as_nanos() / 3)].into()),
            _ => Execution::Constant(wcet),
        },
        after,
        join,
        bound: rng.random_ratio(1, 3).then_some(halves(period, one_of(rng, &[1, 2]))),
        outputs: Vec::new(),
        inputs: Vec::new(),
        events: Vec::new(),
        subscription: None,
    }
}

/// Some of those that release others are as critical as these.
pub fn inherit(description: &mut Description, rng: &mut impl Rng) {
    for heir in 0..description.tasks.len() {
        let releases = |task: &Task| match &task.trigger {
            Some(Trigger::Output { output, .. }) => output.operation.task == heir,
            Some(Trigger::Events(_) | Trigger::External { .. }) | None => false,
        };
        if description.tasks.iter().any(releases) && rng.random_ratio(1, 2) {
            description.tasks[heir].inherits_criticality = true;
        }
    }
}
