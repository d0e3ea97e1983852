//! Values: what operations publish, who reads it, what it releases, and what comes from outside.

use super::tasks::keep_mergeable;
use super::{Size, micros, one_of};
use rand::{Rng, RngExt};
use std::sync::Arc;
use talea_model::{
    Chain, Communication, Criticality, Description, Excess, Execution, FieldValues, Full, Input, Join,
    LaneDispatch, OnValue, OperationAddress, Output, OutputAddress, OutsideArrivals, Overrun, Separation,
    Subtask, Synchronisation, SyntheticField, Take, Task, Trigger,
};
use talea_time::{Duration, Work};

/// Adds outputs, who reads them, tasks that they or something outside release, and chains.
pub fn add(description: &mut Description, rng: &mut impl Rng, size: Size) {
    for task in 0..description.tasks.len() {
        let task = &mut description.tasks[task];
        let pushes = task.subtasks.iter().any(|subtask| !subtask.events.is_empty());
        let may_wait = task.trigger.is_none() && task.sync == Synchronisation::Greedy && !pushes;
        if may_wait && rng.random_ratio(1, 6) {
            task.communication = Communication::Let;
            keep_mergeable(task);
        }
        publish(task, rng);
    }
    for number in 0..rng.random_range(1..=3) {
        let task = if rng.random_ratio(1, 3) {
            Some(from_outside(description, rng, number))
        } else {
            triggered(description, rng, number, size)
        };
        description.tasks.extend(task.map(|mut task| {
            publish(&mut task, rng);
            task
        }));
    }
    read(description, rng, size);
}

/// More tasks exchange their values as planned, mostly such whose jobs may be late or left out.
pub fn plan(description: &mut Description, rng: &mut impl Rng) {
    let triggers = |task: &Task| match task.trigger {
        Some(Trigger::Output { output, .. }) => Some(output.operation.task),
        _ => None,
    };
    let releasing: Vec<usize> = description.tasks.iter().filter_map(triggers).collect();
    for (index, task) in description.tasks.iter_mut().enumerate() {
        let pushes = task.subtasks.iter().any(|subtask| !subtask.events.is_empty());
        let may_wait = task.trigger.is_none() && task.sync == Synchronisation::Greedy && !pushes;
        if may_wait && !releasing.contains(&index) && rng.random_ratio(1, 2) {
            task.communication = Communication::Let;
            task.overrun = one_of(rng, &[Overrun::Queue, Overrun::SkipNext, Overrun::Abort]);
        }
    }
}

/// Some operations of the task have an output.
fn publish(task: &mut Task, rng: &mut impl Rng) {
    for subtask in &mut task.subtasks {
        if rng.random_ratio(1, 2) {
            let fields = vec![SyntheticField { name: "x".into(), values: FieldValues::Uniform(0, 3) }];
            let bytes = one_of(rng, &[8, 64]);
            subtask.outputs.push(Output { name: "value".into(), bytes, fields });
        }
    }
}

/// All operations with an output, with their nodes.
fn outputs(description: &Description) -> Vec<(OperationAddress, usize)> {
    let of_task = |(task, of): (usize, &Task)| {
        let with = of.subtasks.iter().enumerate().filter(|(_, subtask)| !subtask.outputs.is_empty());
        with.map(|(subtask, of)| (OperationAddress { task, subtask }, of.node)).collect::<Vec<_>>()
    };
    description.tasks.iter().enumerate().flat_map(of_task).collect()
}

fn separation(rng: &mut impl Rng) -> Separation {
    Separation {
        separation: micros(one_of(rng, &[5_000, 11_000, 40_000])),
        burst: one_of(rng, &[1, 1, 2, 5]),
        excess: one_of(rng, Excess::ALL),
    }
}

/// A task that something outside releases.
fn from_outside(description: &Description, rng: &mut impl Rng, number: usize) -> Task {
    let separation = separation(rng);
    let apart = separation.separation;
    let arrivals = match rng.random_range(0..5) {
        0 => OutsideArrivals::None,
        1 => OutsideArrivals::Periodic { period: apart, jitter: micros(rng.random_range(0..5_000)) },
        2 => OutsideArrivals::Sporadic { mean: apart * 2 },
        3 => OutsideArrivals::Poisson { mean: apart * 2 },
        _ => {
            let mut times: Vec<Duration> =
                (0..rng.random_range(1..9)).map(|_| micros(rng.random_range(0..200_000))).collect();
            times.sort();
            OutsideArrivals::Listed(Arc::from(times))
        }
    };
    let nodes: Vec<usize> =
        description.tasks.iter().flat_map(|task| &task.subtasks).map(|subtask| subtask.node).collect();
    let node = one_of(rng, &nodes);
    let trigger = Trigger::External { arrivals };
    Task { separation: Some(separation), ..task(rng, format!("o{number}"), trigger, &[node]) }
}

/// A task that values of another one release; none if there are none.
fn triggered(description: &mut Description, rng: &mut impl Rng, number: usize, size: Size) -> Option<Task> {
    let is_sound = |(from, _): &(OperationAddress, usize)| {
        description.tasks[from.task].communication == Communication::Implicit
    };
    let all: Vec<(OperationAddress, usize)> = outputs(description).into_iter().filter(is_sound).collect();
    if all.is_empty() {
        return None;
    }
    let (from, node) = one_of(rng, &all);
    let nodes: Vec<usize> = match size {
        // The nodes of a run are processes, between which only completions go.
        Size::Small => vec![node],
        Size::Large => all.iter().map(|(_, node)| *node).collect(),
    };
    let output = OutputAddress { operation: from, output: 0 };
    let (every, on) =
        (one_of(rng, &[1, 1, 1, 2, 3]), one_of(rng, &[OnValue::Value, OnValue::Value, OnValue::Change]));
    let own = task(rng, format!("v{number}"), Trigger::Output { output, every, on }, &nodes);
    let separation = rng.random_ratio(1, 3).then(|| separation(rng));
    let inherits_deadline = separation.is_none() && rng.random_ratio(1, 2);
    let deadline = if inherits_deadline { description.tasks[from.task].deadline } else { own.deadline };
    let end = own.subtasks.len() - 1;
    let at = description.tasks.len();
    let rest = [0, end].into_iter().take(if end == 0 { 1 } else { 2 });
    let is_way = end == 0 || own.subtasks[end].after.contains(&0);
    if is_way {
        let path = std::iter::once(from).chain(rest.map(|subtask| OperationAddress { task: at, subtask }));
        description.chains.push(Chain {
            name: format!("values {number}"),
            path: path.collect(),
            latency: Some(micros(20_000)),
            reaction: None,
            age: None,
        });
    }
    Some(Task { separation, inherits_deadline, deadline, ..own })
}

/// Inputs let those wait whose values find them full: nobody is critical then, and jobs run to completion, which on threads they need not.
pub fn wait(description: &mut Description, rng: &mut impl Rng, size: Size) {
    let lets_wait: Vec<bool> =
        description.tasks.iter().map(|task| task.communication == Communication::Implicit).collect();
    let mut waits = false;
    for input in
        description.tasks.iter_mut().flat_map(|task| &mut task.subtasks).flat_map(|own| &mut own.inputs)
    {
        if let Take::Each { full, .. } = &mut input.take
            && lets_wait[input.from.operation.task]
        {
            *full = Full::Block { limit: micros(one_of(rng, &[1, 100, 2_000, 30_000])) };
            waits = true;
        }
    }
    if waits {
        if size == Size::Large || rng.random_ratio(2, 3) {
            description.lane_dispatch = LaneDispatch::NonPreemptive;
        }
        for task in description.tasks.iter_mut().filter(|task| task.criticality.is_critical()) {
            task.criticality = Criticality::Medium;
        }
    }
}

/// A task of up to three subtasks, one behind the other or beside each other, on some of `nodes`.
fn task(rng: &mut impl Rng, name: String, trigger: Trigger, nodes: &[usize]) -> Task {
    let (subtasks, beside) = one_of(rng, &[(1, false), (1, false), (2, false), (2, true), (3, true)]);
    let deadline = micros(one_of(rng, &[2_000, 10_000, 60_000]));
    let subtask = |place: usize| Subtask {
        name: format!("s{place}"),
        node: one_of(rng, nodes),
        lanes: None,
        wcet: Work::from_micros(one_of(rng, &[20, 100, 400])),
        exec: Execution::Constant(Work::from_micros(20)),
        after: if beside { Vec::new() } else { (0..place).collect() },
        join: Join::All,
        bound: None,
        outputs: Vec::new(),
        inputs: Vec::new(),
        events: Vec::new(),
        subscription: None,
    };
    let subtasks = (0..subtasks).map(subtask).collect();
    let mut task = Task {
        name,
        // What follows from what releases it.
        period: deadline,
        deadline,
        phase: Duration::ZERO,
        jitter: Duration::ZERO,
        criticality: one_of(rng, Criticality::ALL),
        importance: 0,
        trigger: Some(trigger),
        inherits_deadline: false,
        inherits_criticality: false,
        separation: None,
        communication: Communication::Implicit,
        overrun: one_of(rng, Overrun::ALL),
        sync: Synchronisation::Greedy,
        subtasks,
    };
    keep_mergeable(&mut task);
    task
}

/// Some operations read what others publish.
fn read(description: &mut Description, rng: &mut impl Rng, size: Size) {
    let all = outputs(description);
    for task in 0..description.tasks.len() {
        for subtask in 0..description.tasks[task].subtasks.len() {
            if all.is_empty() || !rng.random_ratio(1, 3) {
                continue;
            }
            let (from, node) = one_of(rng, &all);
            let own = &mut description.tasks[task].subtasks[subtask];
            // From one process to another only successors have values.
            if size == Size::Small && node != own.node && from.task != task {
                continue;
            }
            let is_before = from.task == task && own.after.contains(&from.subtask);
            let is_handed_on = from.task == task && rng.random_ratio(2, 3);
            let take = match rng.random_range(0..3) {
                _ if is_handed_on => Take::Instance,
                0 => Take::Each {
                    capacity: one_of(rng, &[1, 2, 16]),
                    full: one_of(rng, &[Full::Oldest, Full::Newest]),
                },
                _ => Take::Latest,
            };
            if from.task != task || is_before {
                let from = OutputAddress { operation: from, output: 0 };
                own.inputs.push(Input { name: "read".into(), from, take });
            }
        }
    }
}
