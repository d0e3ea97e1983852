//! Rules about cause-effect chains.

use super::times::{Least, violation_of};
use super::{Place, Spelling, Unresolved, Violation, check_name, check_unique};
use crate::chain::Chain;
use crate::connection::connection_between;
use crate::description::Description;
use crate::operation::OperationAddress;
use crate::ports::PORT_LIMIT;
use crate::trigger::Trigger;
use std::collections::HashSet;

/// Checks all chains. The paths of those that name an operation that was not found are left alone.
pub(super) fn check(description: &Description, unresolved: &Unresolved, found: &mut Vec<Violation>) {
    let chains = &description.chains;
    if chains.len() > PORT_LIMIT {
        found.push(Violation::error(
            Place::Chain(PORT_LIMIT, "name"),
            format!("the system has {} chains, more than {PORT_LIMIT}", chains.len()),
            "describe it as several systems",
        ));
    }
    check_unique("chain", "chain", chains.iter().map(|chain| chain.name.as_str()), found, |chain| {
        Place::Chain(chain, "name")
    });
    for (index, chain) in chains.iter().enumerate() {
        check_name("chain", &chain.name, Spelling::Words, Place::Chain(index, "name"), found);
        for (key, limit) in chain.limits() {
            let owner = || format!("chain \"{}\"", chain.name);
            found.extend(violation_of(limit, Least::AboveZero, Place::Chain(index, key), key, owner));
        }
        if !unresolved.contains(&Place::Chain(index, "path")) {
            check_path(description, index, chain, found);
        }
    }
}

fn check_path(description: &Description, index: usize, chain: &Chain, found: &mut Vec<Violation>) {
    let mut refuse = |message: String, remedy: String| {
        let message = format!("chain \"{}\" {message}", chain.name);
        found.push(Violation::error(Place::Chain(index, "path"), message, remedy));
    };
    if let [] | [_] = chain.path[..] {
        let remedy = "name at least two: path = [\"the-cause\", \"the-effect\"]".into();
        let count = if chain.path.is_empty() { "no operation" } else { "one operation only" };
        return refuse(format!("leads through {count}"), remedy);
    }
    let missing = chain.path.iter().find(|step| description.subtask_at(**step).is_none());
    if let Some(OperationAddress { task, subtask }) = missing {
        let message =
            format!("leads through subtask number {subtask} of task number {task}, which does not exist");
        return refuse(message, "they are counted from 0".into());
    }
    let mut seen = HashSet::new();
    if let Some(again) = chain.path.iter().find(|step| !seen.insert(**step)) {
        let message = format!("leads through \"{}\" twice", name(description, *again));
        return refuse(
            message,
            "name each operation once; a chain ends where its effect is first seen".into(),
        );
    }
    for pair in chain.path.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if connection_between(&description.tasks, from, to).is_none() {
            let (one, other) = (name(description, from), name(description, to));
            let remedy = match connection_between(&description.tasks, to, from) {
                Some(_) => format!("\"{one}\" comes behind \"{other}\"; write them in that order"),
                None => what_connects(description, from, to),
            };
            refuse(format!("leads from \"{one}\" to \"{other}\", which are not connected"), remedy);
        }
    }
}

fn name(description: &Description, step: OperationAddress) -> String {
    description.tasks[step.task].operation_name(step.subtask)
}

/// What would connect two operations.
fn what_connects(description: &Description, from: OperationAddress, to: OperationAddress) -> String {
    let (one, other) = (name(description, from), name(description, to));
    let (_, first) = description.subtask_at(from).expect("it was found to exist");
    let (consumer, second) = description.subtask_at(to).expect("it was found to exist");
    let output = first.outputs.first().map_or("value", |output| output.name.as_str());
    let add = match first.outputs.is_empty() {
        true => format!("add outputs = [{{ name = \"{output}\" }}] to \"{one}\" and "),
        false => String::new(),
    };
    let input = format!("inputs = [{{ name = \"{output}\", from = \"{one}.{output}\" }}] to \"{other}\"");
    let input = if first.outputs.is_empty() { input } else { format!("add {input}") };
    let release = if from.task == to.task {
        format!(", or name \"{}\" in its \"after\"", first.name)
    } else if matches!(consumer.trigger, Some(Trigger::Events(_))) && second.after.is_empty() {
        format!(", or let \"{one}\" publish events to which task \"{}\" has subscribed", consumer.name)
    } else if second.subscription.is_some() {
        format!(", or let \"{one}\" publish events to which \"{other}\" has subscribed")
    } else if second.after.is_empty() {
        format!(", or trigger task \"{}\" by it: trigger = {{ output = \"{one}.{output}\" }}", consumer.name)
    } else {
        String::new()
    };
    format!("{add}{input}{release}")
}
