//! Whoever is critical is released by nobody who is less critical.

use super::{Place, Unresolved, Violation};
use crate::description::{Criticality, Description, Strategy, Task};
use crate::inheritance::{INHERITED, needed as needed_of};
use crate::trigger::Trigger;
use std::collections::VecDeque;

/// A task whose jobs release those of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    /// The task that comes first.
    pub supplier: usize,
    /// The task that it releases.
    pub consumer: usize,
    /// Where that is written.
    pub place: Place,
    /// By what.
    pub by: &'static str,
}

/// What is needed of a task, and of whom that comes.
#[derive(Clone, Copy)]
struct Needed {
    criticality: Criticality,
    /// The release that needs it, and the critical task for which.
    of: Option<(Release, usize)>,
}

/// Criticality flows from consumer to supplier (Kokyu's scheduling service), or the consumer waits for what its supplier waits for: through as many
/// tasks as there are between them. What is stated is not changed silently.
///
/// `releases` by events; those by values are found here.
pub(super) fn check(
    description: &Description,
    unresolved: &Unresolved,
    mut releases: Vec<Release>,
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
            releases.push(Release { supplier: output.operation.task, consumer, place, by: "values" });
        }
    }
    let needed = needed(description, &releases);
    for (supplier, (task, needed)) in description.tasks.iter().zip(&needed).enumerate() {
        let Some((release, origin)) = needed.of.filter(|_| needed.criticality > task.criticality) else {
            continue;
        };
        let name = |task: usize| &description.tasks[task].name;
        let (by, consumer) = (release.by, name(release.consumer));
        let waits = match release.consumer == origin {
            true => {
                format!("the {by} that release task \"{consumer}\", which is {}, wait", needed.criticality)
            }
            false => format!(
                "the {by} that release task \"{consumer}\" and, through it, task \"{}\", which is {}, wait",
                name(origin),
                needed.criticality
            ),
        };
        let message = format!("task \"{}\" is {}, but {waits} until it has run", task.name, task.criticality);
        let remedy = format!("write criticality = \"{}\" there, too, or \"{INHERITED}\"", needed.criticality);
        found.push(Violation {
            related: Some(release.place),
            ..Violation::warning(Place::Task(supplier, "criticality"), message, remedy)
        });
    }
}

/// Who inherits its criticality releases somebody.
fn inherited(tasks: &[Task], unresolved: &Unresolved, found: &mut Vec<Violation>) {
    // A trigger that names nothing may have been meant to name it.
    let is_unresolved =
        |place: &Place| matches!(place, Place::Trigger(_, "output") | Place::Subscription(..));
    if tasks.iter().all(|task| !task.inherits_criticality) || unresolved.iter().any(is_unresolved) {
        return;
    }
    let heirs = tasks.iter().zip(needed_of(tasks)).enumerate();
    for (index, (task, _)) in
        heirs.filter(|(_, (task, needed))| task.inherits_criticality && needed.is_none())
    {
        let message = format!(
            "task \"{}\" inherits its criticality, and releases no task by values or events that has one of its own",
            task.name
        );
        let remedy = "write it, such as criticality = \"high\"";
        found.push(Violation::error(Place::Task(index, "criticality"), message, remedy));
    }
}

/// Of each task the highest criticality of those that it releases, directly or through others; its own if that is higher.
fn needed(description: &Description, releases: &[Release]) -> Vec<Needed> {
    let own = |criticality| Needed { criticality, of: None };
    let mut needed: Vec<Needed> = description.tasks.iter().map(|task| own(task.criticality)).collect();
    let mut of_consumer = vec![Vec::new(); description.tasks.len()];
    releases.iter().for_each(|release| of_consumer[release.consumer].push(*release));
    let is_critical = |task: &usize| description.tasks[*task].criticality.is_critical();
    let mut changed: VecDeque<usize> = (0..description.tasks.len()).filter(is_critical).collect();
    // Each task changes at most as often as there are criticalities.
    while let Some(consumer) = changed.pop_front() {
        let Needed { criticality, of } = needed[consumer];
        let origin = of.map_or(consumer, |(_, origin)| origin);
        for release in &of_consumer[consumer] {
            if needed[release.supplier].criticality < criticality {
                needed[release.supplier] = Needed { criticality, of: Some((*release, origin)) };
                changed.push_back(release.supplier);
            }
        }
    }
    needed
}
