//! What holds of a constraint on an event: two evaluators agree, and fewer steps than it takes give no other answer. Tests draw tapes for it,
//! and so does the fuzz target `etcl_evaluate`.

use crate::drawn::{event, tree, world};
use crate::held_text::{evaluated, explains};
use crate::tape::Tape;
use talea_etcl::{Constraint, Event, FaultKind, Limits, ProblemKind};
use talea_time::Instant;

/// What came of a constraint on an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    True,
    False,
    /// There is no answer.
    Fault,
    /// That there can be no answer was known when it was compiled.
    Refused,
}

/// Draws an event and a constraint, and holds what the crate says of them against what the second evaluator does.
///
/// # Panics
/// They differ.
pub fn hold(mut tape: Tape) -> Said {
    let granted = tape.pick(&[4, 16, 64, 256]);
    let world = world(&mut tape);
    let tree = tree(&mut tape, &world, 3);
    let text = tree.to_string();
    let expected = world.judge(&tree).ok();
    let constraint = Constraint::parse_within(&text, Limits { depth: 64, ..Limits::GREATEST });
    let constraint = constraint.unwrap_or_else(|problem| panic!("{text}: {problem}"));
    let event = event(&world);
    let program = match constraint.compile::<Event>() {
        Ok(program) => program,
        // What is refused may not have a result in any event, so not in this one.
        Err(problem) => {
            assert_eq!(expected, None, "{text}: {problem} in {world:?}");
            return Said::Refused;
        }
    };
    let result = evaluated(&text, &program, &event);
    assert_eq!(result.ok(), expected, "{text}: {result:?} on {world:?}");
    explains(&constraint, &event);
    // As it is printed, without most of its parentheses, it means the same.
    let printed = Constraint::parse_within(&constraint.to_string(), Limits::GREATEST).expect("printed");
    let printed = printed.compile::<Event>().expect("the same tree");
    let now = Instant::from_nanos(world.now);
    assert_eq!(printed.evaluate(&event, now).ok(), expected, "{constraint}");
    within(&text, granted, &event, expected);
    match expected {
        Some(true) => Said::True,
        Some(false) => Said::False,
        None => Said::Fault,
    }
}

/// With so many steps at most it is refused, has the same answer, or takes too many.
fn within(text: &str, evaluation_steps: u32, event: &Event, expected: Option<bool>) {
    let limits = Limits { evaluation_steps, ..Limits::GREATEST };
    let constraint = Constraint::parse_within(text, limits).expect("it was parsed before");
    match constraint.compile::<Event>() {
        Ok(program) => {
            assert!(program.steps() <= evaluation_steps, "{text} within {evaluation_steps} steps");
            match evaluated(text, &program, event) {
                Err(fault) if fault.kind == FaultKind::TooManySteps => {}
                result => assert_eq!(result.ok(), expected, "{text} within {evaluation_steps} steps"),
            }
        }
        Err(problem) => assert_eq!(problem.kind, ProblemKind::Limit, "{text}: {problem}"),
    }
}
