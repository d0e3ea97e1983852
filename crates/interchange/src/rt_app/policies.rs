//! Scheduling policies and priorities of Linux as a strategy.

use super::thread::{Policy, Thread};
use crate::Effect;
use crate::priority::{FixedOrder, fixed_order};
use crate::reading::Reading;
use std::collections::HashSet;
use talea_model::{Description, LaneDispatch, Late, Strategy};
use talea_time::Duration;

/// The priority that rt-app gives to real-time threads that name none.
const DEFAULT_PRIORITY: i64 = 10;

/// A task and the threads that are its subtasks.
pub(super) struct Scheduled<'a> {
    pub period: Duration,
    pub threads: Vec<(&'a Thread, Policy)>,
}

/// Chooses the strategy that orders the tasks as the policies do, if there is one.
pub(super) fn adopt_policies(
    tasks: &[Scheduled<'_>],
    description: &mut Description,
    reading: &mut Reading<'_>,
) {
    let threads = concerned(tasks);
    let all = |wanted: &[Policy]| threads.iter().all(|(_, policy)| wanted.contains(policy));
    let mut each =
        |is_concerned: fn(&Thread, Policy) -> bool, effect, key: &'static str, what: &'static str| {
            for (thread, _) in threads.iter().filter(|(thread, policy)| is_concerned(thread, *policy)) {
                reading.lose(effect, thread.span.clone(), &thread.label(), key, what);
            }
        };
    if all(&[Policy::Deadline]) {
        // The kernel's earliest deadline first, which knows no place behind the others for late work.
        description.strategy = Strategy::Edf;
        description.lane_dispatch = LaneDispatch::Preemptive;
        description.late = Late::None;
        each(
            |thread, _| thread.attributes.runtime.is_none(),
            Effect::Assumed,
            "dl-runtime",
            "is missing, without which the kernel takes no SCHED_DEADLINE; the wcet is the work",
        );
        each(has_priority, Effect::Lost, "priority", "SCHED_DEADLINE has no priorities");
    } else if all(&[Policy::Fifo, Policy::RoundRobin]) {
        each(
            |_, policy| policy == Policy::RoundRobin,
            Effect::Approximated,
            "policy",
            "SCHED_RR shares time among equals; a lane finishes what it began",
        );
        adopt_priorities(tasks, description, reading);
    } else if all(&[Policy::Other]) {
        each(
            |_, _| true,
            Effect::Assumed,
            "policy",
            "SCHED_OTHER shares time, for which there is no strategy; the default one stands in",
        );
        each(has_priority, Effect::Lost, "priority", "shares of time are not weighted");
    } else {
        each(
            |_, _| true,
            Effect::Approximated,
            "policy",
            "the file mixes scheduling policies; the default strategy orders all of its tasks",
        );
        each(has_priority, Effect::Lost, "priority", "no strategy mixes priorities with other policies");
    }
}

/// The thread objects of all tasks, each once.
fn concerned<'a>(tasks: &[Scheduled<'a>]) -> Vec<(&'a Thread, Policy)> {
    let mut seen = HashSet::new();
    let all = tasks.iter().flat_map(|task| task.threads.iter().copied());
    all.filter(|(thread, _)| seen.insert(thread.span.start)).collect()
}

fn has_priority(thread: &Thread, _: Policy) -> bool {
    thread.attributes.priority.is_some_and(|priority| priority != 0)
}

fn adopt_priorities(tasks: &[Scheduled<'_>], description: &mut Description, reading: &mut Reading<'_>) {
    let priority = |(thread, _): &(&Thread, Policy)| thread.attributes.priority.unwrap_or(DEFAULT_PRIORITY);
    let ordered: Vec<_> =
        tasks.iter().map(|task| (task.period, task.threads.iter().map(priority).collect())).collect();
    match fixed_order(&ordered) {
        FixedOrder::RateMonotonic => description.strategy = Strategy::Rms,
        FixedOrder::Criticality(criticalities) => {
            description.strategy = Strategy::Criticality;
            for ((task, criticality), scheduled) in description.tasks.iter_mut().zip(criticalities).zip(tasks)
            {
                task.criticality = criticality;
                let what = "the strategy \"criticality\" keeps the order of the priorities; high and very-high mean \
                            hard deadlines";
                let (thread, _) = scheduled.threads[0];
                reading.lose(Effect::Approximated, thread.span.clone(), &thread.label(), "priority", what);
            }
        }
        FixedOrder::Unknown { priorities } => {
            let what = format!(
                "no strategy keeps this order of {priorities} priorities; the default one stands in, \
                 \"criticality\" has five levels"
            );
            for scheduled in tasks {
                let (thread, _) = scheduled.threads[0];
                reading.lose(Effect::Lost, thread.span.clone(), &thread.label(), "priority", what.clone());
            }
        }
    }
}
