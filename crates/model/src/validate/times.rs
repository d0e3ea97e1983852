//! Rules about times: signs, the range, and how a task's times fit each other.

use super::{Place, Violation, label};
pub use crate::description::TIME_LIMIT;
use crate::description::{Description, Task};
use crate::execution::Execution;
use talea_time::{Duration, Work};

/// Whether a time may be zero.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Least {
    Zero,
    AboveZero,
}

/// What is wrong with a time by itself: the end of a sentence about it, and the remedy.
fn misfit(time: Duration, least: Least) -> Option<(String, String)> {
    let range = if least == Least::Zero { "zero or more" } else { "more than zero" };
    if time < Duration::ZERO {
        Some((format!("is negative ({time})"), format!("make it {range}")))
    } else if time == Duration::ZERO && least == Least::AboveZero {
        Some(("is zero".into(), format!("make it {range}")))
    } else if time > TIME_LIMIT {
        Some((format!("is longer than ten years ({time})"), "stay below 87600h".into()))
    } else {
        None
    }
}

/// The violation of a time that does not fit by itself. `owner` is asked for only then.
pub(super) fn violation_of(
    time: Duration,
    least: Least,
    place: Place,
    key: &str,
    owner: impl Fn() -> String,
) -> Option<Violation> {
    let (fault, remedy) = misfit(time, least)?;
    Some(Violation::error(place, format!("the {key} of {} {fault}", owner()), remedy))
}

/// The times that concern the whole system.
pub(super) fn check_system(description: &Description, found: &mut Vec<Violation>) {
    for (key, work) in description.overhead.costs() {
        let owner = || "the overhead".into();
        found.extend(violation_of(work.at_full_speed(), Least::Zero, Place::Overhead(key), key, owner));
    }
}

/// The times of a task as a whole.
pub(super) fn check_task(index: usize, task: &Task, found: &mut Vec<Violation>) {
    for (key, time, least) in [
        ("period", task.period, Least::AboveZero),
        ("deadline", task.deadline, Least::AboveZero),
        ("phase", task.phase, Least::Zero),
        ("jitter", task.jitter, Least::Zero),
    ] {
        // That of a triggered task follows from others.
        if key == "period" && task.trigger.is_some() {
            continue;
        }
        // A deadline that was left out is the period or the separation, about which one message is enough.
        let preset = task.separation.map_or(task.period, |separation| separation.separation);
        if key == "deadline" && time == preset && misfit(preset, Least::AboveZero).is_some() {
            continue;
        }
        let owner = || format!("task \"{}\"", task.name);
        found.extend(violation_of(time, least, Place::Task(index, key), key, owner));
    }
    if task.trigger.is_none()
        && task.jitter >= task.period
        && task.period > Duration::ZERO
        && task.jitter <= TIME_LIMIT
    {
        found.push(Violation {
            related: Some(Place::Task(index, "period")),
            ..Violation::error(
                Place::Task(index, "jitter"),
                format!(
                    "task \"{}\": the jitter {} is not shorter than the period {}",
                    task.name, task.jitter, task.period
                ),
                "make it shorter, or jobs could be released in another order than they arrive",
            )
        });
    }
}

/// The times of one subtask, on their own and against its task.
pub(super) fn check_subtask(index: usize, position: usize, task: &Task, found: &mut Vec<Violation>) {
    let subtask = &task.subtasks[position];
    let place = |key| Place::Subtask(index, position, key);
    let owner = || label(task, subtask);
    let wcet = subtask.wcet.at_full_speed();
    if let Some(violation) = violation_of(wcet, Least::AboveZero, place("wcet"), "wcet", owner) {
        found.push(violation);
        return;
    }
    check_bound(index, position, task, found);
    if let Some((fault, remedy)) = execution_misfit(&subtask.exec) {
        let message = format!("the exec of {} {fault}", label(task, subtask));
        found.push(Violation::error(place("exec"), message, remedy));
        return;
    }
    if subtask.exec.max() > subtask.wcet {
        found.push(Violation {
            related: Some(place("wcet")),
            ..Violation::warning(
                place("exec"),
                format!(
                    "{} can take {}, more than its wcet of {}",
                    label(task, subtask),
                    subtask.exec.max(),
                    subtask.wcet
                ),
                "raise the wcet, unless breaking the promise is meant",
            )
        });
    }
    if task.deadline > Duration::ZERO && wcet > task.deadline {
        found.push(Violation {
            related: Some(Place::Task(index, "deadline")),
            ..Violation::warning(
                place("wcet"),
                format!(
                    "the wcet of {}, {}, is longer than the deadline of {}",
                    label(task, subtask),
                    subtask.wcet,
                    task.deadline
                ),
                match task.inherits_deadline {
                    true => "lower the wcet or lengthen the deadline of what releases it, which it inherits; a job that takes this long always misses",
                    false => "lower the wcet or lengthen the deadline; a job that takes this long always misses",
                },
            )
        });
    }
}

/// The response bound of a subtask: on its own, against its worst case, and whether its task's protocol needs one.
fn check_bound(index: usize, position: usize, task: &Task, found: &mut Vec<Violation>) {
    let subtask = &task.subtasks[position];
    let Some(bound) = subtask.bound else { return };
    let place = Place::Subtask(index, position, "bound");
    if let Some(violation) = violation_of(bound, Least::AboveZero, place, "bound", || label(task, subtask)) {
        found.push(violation);
        return;
    }
    if !task.sync.needs_bounds() {
        found.push(Violation {
            related: Some(Place::Task(index, "sync")),
            ..Violation::warning(
                place,
                format!(
                    "the bound of {} has no effect: its task is released by {}",
                    label(task, subtask),
                    task.sync
                ),
                "leave it out; only phase-modification and modified-phase-modification need bounds",
            )
        });
    } else if bound < subtask.wcet.at_full_speed() {
        found.push(Violation {
            related: Some(Place::Subtask(index, position, "wcet")),
            ..Violation::warning(
                place,
                format!(
                    "the bound of {}, {bound}, is shorter than its wcet of {}",
                    label(task, subtask),
                    subtask.wcet
                ),
                "lengthen the bound, or leave it out so that the analysis finds it",
            )
        });
    }
}

pub(super) fn execution_misfit(exec: &Execution) -> Option<(String, String)> {
    let each = |work: &Work| misfit(work.at_full_speed(), Least::Zero);
    match exec {
        Execution::Constant(work) => each(work),
        Execution::Uniform(low, high) => each(low).or_else(|| each(high)).or_else(|| {
            (low > high).then(|| {
                let remedy = format!("write the smaller one first: uniform = [\"{high}\", \"{low}\"]");
                (format!("is uniform from {low} down to {high}"), remedy)
            })
        }),
        Execution::List(list) if list.is_empty() => {
            Some(("is an empty list".into(), "list at least one execution time".into()))
        }
        Execution::List(list) => list.iter().find_map(each),
    }
}
