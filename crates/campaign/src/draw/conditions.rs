//! Conditions over several events and over time, in place of events that each release a task.

use super::micros;
use rand::{Rng, RngExt};
use talea_event::TypePattern;
use talea_model::{Condition, Description, EventTypeName, Subscription, Trigger};
use talea_samples::conditions::nested;

/// Some tasks await something made of the types to which they have subscribed. Each of these still leads to some of their jobs.
pub fn nest(description: &mut Description, rng: &mut impl Rng) {
    let events =
        description.tasks.iter_mut().flat_map(|task| &mut task.subtasks).flat_map(|own| &mut own.events);
    let mut sources = Vec::new();
    for event in events {
        event.source = rng.random_range(0..4);
        sources.push((event.event_type.clone(), event.source));
    }
    for task in description.tasks.iter_mut().filter(|task| !task.inherits_deadline) {
        let Some(Trigger::Events(Subscription { condition, .. })) = &mut task.trigger else { continue };
        let Condition::Types(types) = condition else { continue };
        if !rng.random_ratio(2, 3) {
            continue;
        }
        let leaf = |pattern: TypePattern| {
            let is_of_type = |(of, _): &&(EventTypeName, u32)| pattern.matches(&of.domain, &of.name);
            let source = sources.iter().find(is_of_type).map_or(0, |(_, source)| *source);
            let of_type = Condition::of_types([pattern]);
            let filter = |text: &str| Condition::Matching(text.to_owned());
            match rng.random_range(0..9) {
                0 => Condition::all_of_one([of_type, filter("x < 6")]),
                1 => Condition::all_of_one([of_type, Condition::negation(filter("x < 2"))]),
                2 => Condition::all_of_one([of_type, Condition::Source(source)]),
                3 => Condition::all_of_one([of_type, Condition::Masked { mask: 2, value: source & 2 }]),
                4 => Condition::all_of_one([of_type, Condition::negation(Condition::Source(source ^ 1))]),
                _ => of_type,
            }
        };
        let leaves: Vec<Condition> = types.iter().cloned().map(leaf).collect();
        *condition = nested(&mut |below| rng.random_range(0..below), &leaves, micros(2_000));
    }
}
