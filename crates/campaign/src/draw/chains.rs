//! Cause-effect chains over connections of all kinds, and inputs that read a writer a second time.

use super::{micros, one_of};
use rand::{Rng, RngExt};
use talea_model::{Chain, Description, Full, Input, OperationAddress, Take, Trigger};

/// The most operations of a chain.
const LONGEST: usize = 6;

/// Adds up to three chains, as far as something is connected.
pub fn add(description: &mut Description, rng: &mut impl Rng) {
    let operations: Vec<OperationAddress> = addresses(description).collect();
    for number in 0..rng.random_range(1..=3) {
        let first = one_of(rng, &operations);
        let path = walk(description, rng, first);
        if path.len() < 2 {
            continue;
        }
        let mut limit = || rng.random_ratio(1, 2).then(|| micros(one_of(rng, &[3_000, 20_000, 90_000])));
        let (latency, reaction, age) = (limit(), limit(), limit());
        description.chains.push(Chain { name: format!("way {number}"), path, latency, reaction, age });
    }
}

/// Some operations read what they read by one more input, in another way: what comes by the two need not be of the same job.
pub fn read_twice(description: &mut Description, rng: &mut impl Rng) {
    for subtask in description.tasks.iter_mut().flat_map(|task| &mut task.subtasks) {
        let Some(first) = subtask.inputs.first().cloned() else { continue };
        if rng.random_ratio(1, 2) {
            continue;
        }
        let take = match rng.random_range(0..2) {
            0 => Take::Latest,
            _ => Take::Each {
                capacity: one_of(rng, &[1, 3]),
                full: one_of(rng, &[Full::Oldest, Full::Newest]),
            },
        };
        let place = if rng.random_ratio(1, 2) { 0 } else { subtask.inputs.len() };
        subtask.inputs.insert(place, Input { name: "again".into(), take, ..first });
    }
}

fn addresses(description: &Description) -> impl Iterator<Item = OperationAddress> + '_ {
    let of_task = |(task, of): (usize, &talea_model::Task)| {
        (0..of.subtasks.len()).map(move |subtask| OperationAddress { task, subtask })
    };
    description.tasks.iter().enumerate().flat_map(of_task)
}

/// From one operation to another that is connected with it, and so on.
fn walk(description: &Description, rng: &mut impl Rng, first: OperationAddress) -> Vec<OperationAddress> {
    let mut path = vec![first];
    let length = rng.random_range(2..=LONGEST);
    while path.len() < length {
        let from = path[path.len() - 1];
        let is_next = |to: &OperationAddress| !path.contains(to) && are_connected(description, from, *to);
        let next: Vec<OperationAddress> = addresses(description).filter(is_next).collect();
        if next.is_empty() {
            break;
        }
        path.push(one_of(rng, &next));
    }
    path
}

fn are_connected(description: &Description, from: OperationAddress, to: OperationAddress) -> bool {
    let task = &description.tasks[to.task];
    let (writer, reader) = (&description.tasks[from.task].subtasks[from.subtask], &task.subtasks[to.subtask]);
    let is_released = reader.after.is_empty()
        && match &task.trigger {
            Some(Trigger::Output { output, .. }) => output.operation == from,
            Some(Trigger::Events(subscription)) => {
                writer.events.iter().any(|event| subscription.hands_on(event))
            }
            Some(Trigger::External { .. }) | None => false,
        };
    is_released
        || from.task == to.task && reader.after.contains(&from.subtask)
        || reader.inputs.iter().any(|input| input.from.operation == from)
        || reader
            .subscription
            .as_ref()
            .is_some_and(|own| writer.events.iter().any(|event| own.hands_on(event)))
}
