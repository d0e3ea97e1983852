//! Rules about what releases tasks in place of a period.

use super::times::{Least, TIME_LIMIT, violation_of};
use super::{Place, Unresolved, Violation};
use crate::channel::{Arrivals, SubscriptionOwner};
use crate::description::{Description, Overrun, Task};
use crate::ports::{OutputAddress, PORT_LIMIT};
use crate::rate::{Published, arrivals, periods};
use crate::trigger::{Communication, Excess, OnValue, OutsideArrivals, Separation, Trigger};
use talea_time::Duration;

/// How many tasks of a cycle a message names.
const CYCLE_NAMES: usize = 8;

/// Checks all triggers. Tasks whose trigger names an output that was not found are left alone.
pub(super) fn check(description: &Description, unresolved: &Unresolved, found: &mut Vec<Violation>) {
    let periods = periods(&description.tasks);
    for (index, task) in description.tasks.iter().enumerate() {
        if let Some(separation) = task.separation {
            check_separation(index, task, separation, found);
        }
        if unresolved.contains(&Place::Trigger(index, "output")) {
            continue;
        }
        match &task.trigger {
            None if task.separation.is_some() => {
                found.push(Violation {
                    related: Some(Place::Task(index, "trigger")),
                    ..Violation::error(
                        Place::Task(index, "separation"),
                        format!("task \"{}\" has a separation and no trigger", task.name),
                        "remove it, as the period keeps releases apart, or write a trigger in place of the period",
                    )
                });
            }
            None => {}
            Some(Trigger::External { arrivals }) => {
                check_outside(index, task, arrivals, found);
                check_triggered(index, task, found);
            }
            Some(Trigger::Events(_)) => check_triggered(index, task, found),
            Some(Trigger::Output { output, every, on }) => {
                check_triggered(index, task, found);
                let values = Values { output: *output, every: *every, on: *on };
                values.check(description, index, &periods, found);
            }
        }
    }
    check_cycles(&description.tasks, found);
}

fn check_separation(index: usize, task: &Task, separation: Separation, found: &mut Vec<Violation>) {
    let Separation { separation, burst, .. } = separation;
    let owner = || format!("task \"{}\"", task.name);
    let place = |key| Place::Task(index, key);
    found.extend(violation_of(separation, Least::AboveZero, place("separation"), "separation", owner));
    if burst == 0 || burst as usize > PORT_LIMIT {
        found.push(Violation::error(
            place("burst"),
            format!("task \"{}\" has a burst of {burst}", task.name),
            format!("write a whole number from 1 to {PORT_LIMIT}"),
        ));
    }
}

/// What only tasks with a period can have.
fn check_triggered(index: usize, task: &Task, found: &mut Vec<Violation>) {
    let by = if matches!(task.trigger, Some(Trigger::Events(_))) { "subscription" } else { "trigger" };
    let mut refuse = |key, message: String, remedy: &str| {
        found.push(Violation {
            related: Some(Place::Task(index, by)),
            ..Violation::error(Place::Task(index, key), message, remedy)
        });
    };
    let name = &task.name;
    if task.phase != Duration::ZERO {
        let message = format!("task \"{name}\" has a phase and a {by}");
        refuse("phase", message, "remove the phase; it arrives when it is triggered");
    }
    if task.jitter != Duration::ZERO {
        let message = format!("task \"{name}\" has a jitter and a {by}");
        let remedy = "remove the jitter; it is released when it is triggered, and arrivals = { periodic = \"20ms\", jitter = \"2ms\" } \
                      says how irregular the outside is";
        refuse("jitter", message, remedy);
    }
    if task.communication == Communication::Let {
        let message = format!("task \"{name}\" has logical execution time and a {by}");
        let remedy = "write communication = \"implicit\", or a period in place of the trigger; values are published at the end of a period";
        refuse("communication", message, remedy);
    }
    if task.sync.needs_periodic_arrivals() {
        let message = format!("task \"{name}\" has a {by} and is synchronised by {}", task.sync);
        let remedy = "write another sync at the task, such as \"modified-phase-modification\"; this one needs periodic arrivals";
        refuse("sync", message, remedy);
    }
}

/// A trigger from outside.
fn check_outside(index: usize, task: &Task, arrivals: &OutsideArrivals, found: &mut Vec<Violation>) {
    let name = &task.name;
    if task.separation.is_none() {
        found.push(Violation {
            related: Some(Place::Task(index, "separation")),
            ..Violation::error(
                Place::Task(index, "trigger"),
                format!("task \"{name}\" is triggered from outside without a separation"),
                "add separation = \"5ms\"; nothing else bounds how often it is released",
            )
        });
    }
    let place = Place::Task(index, "arrivals");
    let owner = || format!("the arrivals of task \"{name}\"");
    let mut time = |time, least, what| {
        let fault = violation_of(time, least, place, what, owner);
        let is_sound = fault.is_none();
        found.extend(fault);
        is_sound
    };
    let fault = match arrivals {
        OutsideArrivals::None => None,
        OutsideArrivals::Periodic { period, jitter } => {
            // Without arrivals in the file they are those of the separation, about which one message is enough.
            let is_preset = task.separation.is_some_and(|separation| separation.separation == *period);
            let is_sound =
                if is_preset { *period > Duration::ZERO } else { time(*period, Least::AboveZero, "period") };
            (time(*jitter, Least::Zero, "jitter") && is_sound && jitter >= period).then(|| {
                (
                    format!("{}: the jitter {jitter} is not shorter than the period {period}", owner()),
                    "make it shorter; arrivals at random distances are { poisson = \"20ms\" }",
                )
            })
        }
        OutsideArrivals::Sporadic { mean } => {
            let least = task.separation.map_or(Duration::ZERO, |separation| separation.separation);
            (time(*mean, Least::AboveZero, "mean distance") && *mean < least).then(|| {
                (
                    format!("{}: the mean distance {mean} is shorter than the separation {least}", owner()),
                    "make it longer, or write { poisson = \"...\" }, which heeds no separation",
                )
            })
        }
        OutsideArrivals::Poisson { mean } => {
            time(*mean, Least::AboveZero, "mean distance");
            None
        }
        OutsideArrivals::Listed(times) if times.is_empty() => Some((
            format!("{} are an empty list", owner()),
            "list at least one time, or write arrivals = \"none\"",
        )),
        OutsideArrivals::Listed(times) => {
            let is_sound = times.iter().all(|at| time(*at, Least::Zero, "times"));
            let early = times.windows(2).find(|pair| pair[1] < pair[0]).filter(|_| is_sound);
            early.map(|pair| {
                (
                    format!("{}: {} stands behind {}", owner(), pair[1], pair[0]),
                    "list the times in their order",
                )
            })
        }
    };
    if let Some((message, remedy)) = fault {
        found.push(Violation {
            related: Some(Place::Task(index, "separation")),
            ..Violation::error(place, message, remedy)
        });
    }
}

/// A trigger by the values of an output.
struct Values {
    output: OutputAddress,
    every: u32,
    on: OnValue,
}

impl Values {
    fn check(
        &self,
        description: &Description,
        index: usize,
        periods: &[Option<Duration>],
        found: &mut Vec<Violation>,
    ) {
        let Values { output, every, on } = *self;
        let name = &description.tasks[index].name;
        if every == 0 {
            found.push(Violation::error(
                Place::Trigger(index, "every"),
                format!("task \"{name}\" is triggered by every 0th value"),
                "write a whole number from 1",
            ));
        }
        let Some((producer, published)) = description.output_at(output) else {
            let from = output.operation;
            found.push(Violation::error(
                Place::Trigger(index, "output"),
                format!(
                    "task \"{name}\" is triggered by output number {} of subtask number {} of task number {}, which does not exist",
                    output.output, from.subtask, from.task
                ),
                "they are counted from 0",
            ));
            return;
        };
        let between = periods[output.operation.task]
            .map(|period| Duration::from_nanos(period.as_nanos().saturating_mul(every.into())));
        if producer.communication == Communication::Let {
            found.push(Violation {
                related: Some(Place::Task(output.operation.task, "communication")),
                ..Violation::error(
                    Place::Trigger(index, "output"),
                    format!(
                        "task \"{name}\" is triggered by output \"{}\" of task \"{}\", which has logical execution time",
                        published.name, producer.name
                    ),
                    format!(
                        "give the task period = \"{}\" and a phase instead; the values are published at the end of each period",
                        between.unwrap_or(producer.period)
                    ),
                )
            });
        }
        let (Some(period), Some(between)) = (periods[output.operation.task], between) else { return };
        match description.tasks[index].separation {
            None if between > TIME_LIMIT && period <= TIME_LIMIT && every > 0 => {
                found.push(Violation::error(
                    Place::Trigger(index, "every"),
                    format!("task \"{name}\" is triggered by every {every}th value, less often than once in ten years"),
                    "make the number smaller",
                ));
            }
            Some(Separation { separation, excess: Excess::Defer, .. })
                if on == OnValue::Value
                    && Duration::ZERO < between
                    && between < separation
                    && description.tasks[index].overrun != Overrun::Merge =>
            {
                found.push(Violation {
                    related: Some(Place::Trigger(index, "output")),
                    ..Violation::warning(
                        Place::Task(index, "separation"),
                        format!(
                            "task \"{name}\" is triggered every {between} and released every {separation}: ever more releases wait"
                        ),
                        "shorten the separation, write every = ... at the trigger, excess = \"drop\", or overrun = \"merge\"",
                    )
                });
            }
            _ => {}
        }
    }
}

/// Tasks that trigger each other have nothing that makes them begin, and once begun would run without end.
fn check_cycles(tasks: &[Task], found: &mut Vec<Violation>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Walked {
        Not,
        Now,
        Whole,
    }
    let published = Published::of(tasks);
    let triggering = |task: usize| -> Vec<usize> {
        let arrivals = arrivals(tasks, &published, task);
        let producers = arrivals.iter().flat_map(Arrivals::producers).map(|(producer, _)| *producer);
        producers.filter(|producer| *producer < tasks.len()).collect()
    };
    let mut walked = vec![Walked::Not; tasks.len()];
    for start in 0..tasks.len() {
        if walked[start] != Walked::Not {
            continue;
        }
        // The way from the start to where the walk is, each step with those that trigger it and are not walked to yet.
        let mut way = vec![(start, triggering(start))];
        walked[start] = Walked::Now;
        while let Some((at, before)) = way.last_mut() {
            let at = *at;
            let Some(next) = before.pop() else {
                walked[at] = Walked::Whole;
                way.pop();
                continue;
            };
            match walked[next] {
                Walked::Not => {
                    walked[next] = Walked::Now;
                    way.push((next, triggering(next)));
                }
                Walked::Now => {
                    let first = way.iter().position(|(task, _)| *task == next).expect("it is on the way");
                    // The walk goes from what is triggered to what triggers it.
                    let mut cycle: Vec<usize> = way[first..].iter().rev().map(|(task, _)| *task).collect();
                    let least = (0..cycle.len()).min_by_key(|position| cycle[*position]);
                    cycle.rotate_left(least.expect("a cycle is not empty"));
                    found.push(cycle_violation(tasks, &cycle));
                }
                Walked::Whole => {}
            }
        }
    }
}

fn cycle_violation(tasks: &[Task], cycle: &[usize]) -> Violation {
    let name = |task: &usize| tasks[*task].name.as_str();
    let message = match cycle {
        [alone] => format!("task \"{}\" triggers itself: a cycle without a delay", name(alone)),
        _ => {
            let names: Vec<&str> = cycle.iter().take(CYCLE_NAMES).map(name).collect();
            let end = if cycle.len() > CYCLE_NAMES { "..." } else { names[0] };
            format!("tasks trigger each other, a cycle without a delay: {}, {end}", names.join(", "))
        }
    };
    let whom = if cycle.len() == 1 { "it" } else { "one of them" };
    let remedy = format!(
        "give {whom} a period or trigger = \"external\", and let it read the value by an input with take = \"latest\""
    );
    let place = match tasks[cycle[0]].trigger {
        Some(Trigger::Events(_)) => Place::Subscription(SubscriptionOwner::Task(cycle[0]), "channel"),
        _ => Place::Trigger(cycle[0], "output"),
    };
    Violation::error(place, message, remedy)
}
