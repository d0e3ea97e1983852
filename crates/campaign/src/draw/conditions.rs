//! Conditions over several events and over time, in place of events that each release a task.

use super::micros;
use rand::{Rng, RngExt};
use talea_model::{Condition, Description, Subscription, Trigger};
use talea_samples::conditions::nested;

/// Some tasks await something made of the types to which they have subscribed. Each of these still leads to some of their jobs.
pub fn nest(description: &mut Description, rng: &mut impl Rng) {
    for task in description.tasks.iter_mut().filter(|task| !task.inherits_deadline) {
        let Some(Trigger::Events(Subscription { condition, .. })) = &mut task.trigger else { continue };
        let Condition::Types(types) = condition else { continue };
        if !rng.random_ratio(2, 3) {
            continue;
        }
        let leaf = |pattern| {
            let of_type = Condition::of_types([pattern]);
            let filter = |text: &str| Condition::Matching(text.to_owned());
            match rng.random_range(0..6) {
                0 => Condition::all_of_one([of_type, filter("x < 6")]),
                1 => Condition::all_of_one([of_type, Condition::negation(filter("x < 2"))]),
                _ => of_type,
            }
        };
        let leaves: Vec<Condition> = types.iter().cloned().map(leaf).collect();
        *condition = nested(&mut |below| rng.random_range(0..below), &leaves, micros(2_000));
    }
}
