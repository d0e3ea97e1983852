//! Whoever is critical is released by nobody who is less critical, and has events of nobody who is.

use super::{Place, Unresolved, Violation};
use crate::description::{Criticality, Description, Strategy, Task};
use crate::inheritance::{INHERITED, needed};
use crate::trigger::Trigger;
use std::collections::VecDeque;

/// A task whose jobs release those of another, or push events that these take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supply {
    /// The task that comes first.
    pub supplier: usize,
    /// The task that it releases, or that has its events.
    pub consumer: usize,
    /// Where that is written.
    pub place: Place,
    /// What goes from the one to the other, and what it does there.
    pub what: &'static str,
}

/// Criticality flows from consumer to supplier (Kokyu's scheduling service), or the consumer waits for what its supplier waits for: through as many
/// tasks as there are between them. What is stated is not changed silently.
///
/// `supplies` by events; those by values are found here.
pub(super) fn check(
    description: &Description,
    unresolved: &Unresolved,
    mut supplies: Vec<Supply>,
    found: &mut Vec<Violation>,
) {
    inherited(&description.tasks, unresolved, found);
    let by_criticality = match description.strategy {
        Strategy::Muf | Strategy::RmsMlf | Strategy::Criticality => true,
        Strategy::Rms | Strategy::Edf | Strategy::Mlf => false,
    };
    if !by_criticality {
        return;
    }
    for (consumer, task) in description.tasks.iter().enumerate() {
        let place = Place::Task(consumer, "trigger");
        if let Some(Trigger::Output { output, .. }) = &task.trigger
            && !unresolved.contains(&place)
            && output.operation.task < description.tasks.len()
        {
            let what = "values that release";
            supplies.push(Supply { supplier: output.operation.task, consumer, place, what });
        }
    }
    let mut of_supplier = vec![Vec::new(); description.tasks.len()];
    supplies.iter().for_each(|supply| of_supplier[supply.supplier].push(*supply));
    for (supplier, (task, needed)) in description.tasks.iter().zip(needed(&description.tasks)).enumerate() {
        let needed = needed.filter(|needed| needed.is_critical() && *needed > task.criticality);
        let origin = needed.and_then(|needed| nearest(&description.tasks, &of_supplier, supplier, needed));
        let (Some(needed), Some((supply, origin))) = (needed, origin) else { continue };
        let name = |task: usize| &description.tasks[task].name;
        let (what, consumer) = (supply.what, name(supply.consumer));
        let waits = match supply.consumer == origin {
            true => {
                format!("the {what} task \"{consumer}\", which is {}, wait", needed)
            }
            false => format!(
                "the {what} task \"{consumer}\" and, through it, task \"{}\", which is {}, wait",
                name(origin),
                needed
            ),
        };
        let message = format!("task \"{}\" is {}, but {waits} until it has run", task.name, task.criticality);
        let remedy = format!("write criticality = \"{}\" there, too, or \"{INHERITED}\"", needed);
        found.push(Violation {
            related: Some(supply.place),
            ..Violation::warning(Place::Task(supplier, "criticality"), message, remedy)
        });
    }
}

/// Who inherits its criticality supplies somebody.
fn inherited(tasks: &[Task], unresolved: &Unresolved, found: &mut Vec<Violation>) {
    // A trigger that names nothing may have been meant to name it.
    let is_unresolved =
        |place: &Place| matches!(place, Place::Trigger(_, "output") | Place::Subscription(..));
    if tasks.iter().all(|task| !task.inherits_criticality) || unresolved.iter().any(is_unresolved) {
        return;
    }
    let heirs = tasks.iter().zip(needed(tasks)).enumerate();
    for (index, (task, _)) in
        heirs.filter(|(_, (task, needed))| task.inherits_criticality && needed.is_none())
    {
        let message = format!(
            "task \"{}\" inherits its criticality, and releases no task by values or events that has one of its own, nor has one taken its events",
            task.name
        );
        let remedy = "write it, such as criticality = \"high\"";
        found.push(Violation::error(Place::Task(index, "criticality"), message, remedy));
    }
}

/// The nearest task of this criticality that `supplier` releases, or that has its events, directly or through others, with what goes first on the way.
fn nearest(
    tasks: &[Task],
    of_supplier: &[Vec<Supply>],
    supplier: usize,
    criticality: Criticality,
) -> Option<(Supply, usize)> {
    let mut seen = vec![false; tasks.len()];
    let mut next: VecDeque<(Supply, usize)> =
        of_supplier[supplier].iter().map(|supply| (*supply, supply.consumer)).collect();
    while let Some((first, task)) = next.pop_front() {
        if tasks[task].criticality == criticality && !tasks[task].inherits_criticality {
            return Some((first, task));
        }
        if !std::mem::replace(&mut seen[task], true) {
            next.extend(of_supplier[task].iter().map(|supply| (first, supply.consumer)));
        }
    }
    None
}
