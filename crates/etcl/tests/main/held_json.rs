//! What holds of any text as an event in JSON: tests draw texts for it, and so does the fuzz target `event_json`.

use talea_etcl::{Constraint, Event};
use talea_time::Instant;

/// Reads it; of what is accepted constraints are evaluated.
///
/// # Panics
/// Something is not as the crate says.
pub fn hold(text: &str) {
    match Event::from_json(text) {
        Ok(event) => {
            for constraint in ["exist $.remainder_of_body.a[0]", "$a == 1 or 1 in $a", "$.1[0].value == b"] {
                let constraint = Constraint::parse(constraint).expect("it parses");
                let program = constraint.compile::<Event>().expect("it compiles");
                let _ = program.evaluate(&event, Instant::ZERO);
            }
            // What the event has is what the text has, so no names are there twice.
            for (name, _) in event.filterable_data().iter() {
                let among = event.filterable_data().iter().filter(|(other, _)| other == &name).count();
                assert_eq!(among, 1, "{name:?} of {text:?}");
            }
        }
        Err(problem) => {
            assert!(text.get(problem.span.clone()).is_some(), "{problem:?} is outside of {text:?}");
            assert!(!problem.message.is_empty() && !problem.remedy.is_empty(), "{problem:?}");
            let before = &text[..problem.span.start];
            let line_before = before.rsplit('\n').next().unwrap_or_default();
            let place = (before.matches('\n').count() + 1, line_before.chars().count() + 1);
            assert_eq!((problem.line, problem.column), place, "{text:?}: {problem:?}");
        }
    }
}
