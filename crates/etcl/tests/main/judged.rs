//! Random constraints on random events, before the crate and before the second evaluator.

use crate::tape::Tape;
use crate::tapes;
use crate::{held_evaluation, held_typed};
use held_evaluation::Said;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Has `hold` judge so many tapes. A generator that draws only errors would show nothing, so each outcome has to come.
fn judged(cases: u32, hold: impl Fn(Tape) -> Option<Said>) {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(cases));
    let [truth, falsehood, fault, refused] = [const { AtomicUsize::new(0) }; 4];
    let result = runner.run(&tapes(600), |tape| {
        let counts: &[&AtomicUsize] = match hold(tape) {
            None => &[],
            Some(Said::True) => &[&truth],
            Some(Said::False) => &[&falsehood],
            Some(Said::Fault) => &[&fault],
            Some(Said::Refused) => &[&fault, &refused],
        };
        counts.iter().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let counts = [truth, falsehood, fault, refused].map(AtomicUsize::into_inner);
    println!("{counts:?} were true, false, errors, and refused beforehand");
    assert!(counts.iter().all(|count| *count > cases as usize / 50), "{counts:?}");
}

fn cases(usual: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

#[test]
fn two_evaluators_agree() {
    judged(cases(40_000), |tape| Some(held_evaluation::hold(tape)));
}

#[test]
fn what_is_known_of_a_type_changes_no_answer() {
    judged(cases(20_000), held_typed::hold);
}
