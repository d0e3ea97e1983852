//! Why a task may miss, in one sentence, and what its bound is made of.

use super::names::{Names, causes, largest_first, obstacle};
use super::witness::{Fate, Miss};
use talea_analysis::system::{OperationBound, Part, SystemBounds, lossy_trigger};
use talea_model::OperationId;
use talea_time::Duration;

/// The subtask and, in its window, the part that contributes most; `None` where there is no bound.
pub(super) fn dominating(names: &Names<'_>, bounds: &SystemBounds, task: usize) -> Option<String> {
    bounds.tasks[task].response.ok()?;
    let slowest = slowest_step(names, bounds, task);
    let parts = causes(bounds, slowest.operation);
    let part = parts.iter().max_by_key(|part| part.time)?;
    let cause = names.cause(slowest, part.cause);
    let alone = names.system.operations_of(task).len() == 1;
    Some(if alone { cause } else { format!("{}: {cause}", names.operation(slowest.operation)) })
}

/// Why the task is not sure to hold.
pub(super) fn sentence(names: &Names<'_>, bounds: &SystemBounds, task: usize, miss: Option<Miss>) -> String {
    let described = &names.system.tasks[task];
    let bound = &bounds.tasks[task];
    let last = &bounds.operations[bound.last.index()];
    let reason = match bound.response {
        Err(reason) => format!("there is no bound: {}", obstacle(names, bounds, last, reason)),
        Ok(response) if response <= described.deadline && bounds.loses_none(names.system, task) => {
            let mut lossy = lossy_trigger(names.system, task)
                .into_iter()
                .chain(names.system.messages_that_may_be_lost(task));
            let message = lossy.next().map_or_else(String::new, |(from, to)| {
                format!(", such as that from {} to {}", names.operation(from), names.operation(to))
            });
            format!("it is in time unless a message is lost{message}")
        }
        Ok(response) if response <= described.deadline && described.trigger.is_some() => {
            super::triggers::may_leave_out(names.system, task)
        }
        Ok(response) if response <= described.deadline => format!(
            "it is in time, but its first subtasks may still run when the next instance arrives after {}, which its \
             overrun policy ({}) then makes up for",
            described.period, described.overrun
        ),
        Ok(response) => {
            let over = response - described.deadline;
            format!(
                "it is sure only after {response}, {over} beyond its deadline: {}",
                decomposition(names, bounds, slowest_step(names, bounds, task))
            )
        }
    };
    let seen = miss.map(|miss| {
        let fate = match (miss.fate, miss.lateness_ns) {
            (Fate::Late, Some(late)) => format!("{} late", Duration::from_nanos(late)),
            (Fate::Aborted, _) => "aborted".into(),
            (Fate::Skipped, _) => "skipped".into(),
            _ => "not done by its deadline".into(),
        };
        let arrival = Duration::from_nanos(miss.arrival_ns);
        format!("; with worst-case executions the instance arriving at {arrival} is {fate}")
    });
    format!("{reason}{}", seen.unwrap_or_default())
}

/// The step of the slowest path through the task that adds most.
fn slowest_step<'a>(names: &Names<'_>, bounds: &'a SystemBounds, task: usize) -> &'a OperationBound {
    let response = |operation: OperationId| match &bounds.operations[operation.index()].response {
        Ok(response) => response.bound,
        Err(_) => Duration::MAX,
    };
    let mut operation = bounds.tasks[task].last;
    let mut slowest = (operation, Duration::ZERO);
    loop {
        let predecessors = &names.system.operations()[operation.index()].predecessors;
        let before = predecessors.iter().copied().max_by_key(|before| response(*before));
        let step = response(operation) - before.map_or(Duration::ZERO, response);
        if step > slowest.1 {
            slowest = (operation, step);
        }
        match before {
            Some(before) => operation = before,
            None => return &bounds.operations[slowest.0.index()],
        }
    }
}

/// The largest parts of an operation's window: `3 x sensors in lane high 50ms (30ms), …`.
fn decomposition(names: &Names<'_>, bounds: &SystemBounds, bound: &OperationBound) -> String {
    const SHOWN: usize = 4;
    let Ok(response) = &bound.response else { return String::new() };
    let mut parts: Vec<Part> = causes(bounds, bound.operation);
    largest_first(&mut parts, SHOWN);
    let mut texts: Vec<String> = parts
        .iter()
        .take(SHOWN)
        .map(|part| {
            let times = if part.jobs > 1 { format!("{} × ", part.jobs) } else { String::new() };
            format!("{times}{} ({})", names.cause(bound, part.cause), part.time)
        })
        .collect();
    let rest: i64 = parts.iter().skip(SHOWN).map(|part| part.time.as_nanos()).sum();
    if rest > 0 {
        texts.push(format!("and {} more", Duration::from_nanos(rest)));
    }
    let when = match response.arrival {
        arrival if arrival < Duration::ZERO => format!(", released up to {} late,", -arrival),
        arrival if arrival > Duration::ZERO => {
            format!(", arriving {arrival} after the beginning of a busy period,")
        }
        _ => String::new(),
    };
    let name = names.operation(bound.operation);
    format!("{name}{when} can wait for {}", texts.join(", "))
}
