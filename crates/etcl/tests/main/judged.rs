//! Random constraints on random events, before the crate and before the second evaluator.

use crate::held_evaluation::{Said, hold};
use crate::tapes;
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn two_evaluators_agree() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(40_000);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(cases));
    let [truth, falsehood, fault, refused] = [const { AtomicUsize::new(0) }; 4];
    let result = runner.run(&tapes(600), |tape| {
        let counts: &[&AtomicUsize] = match hold(tape) {
            Said::True => &[&truth],
            Said::False => &[&falsehood],
            Said::Fault => &[&fault],
            Said::Refused => &[&fault, &refused],
        };
        counts.iter().for_each(|count| _ = count.fetch_add(1, Ordering::Relaxed));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // A generator that draws only errors would show nothing.
    let counts = [truth, falsehood, fault, refused].map(AtomicUsize::into_inner);
    println!("{counts:?} were true, false, errors, and refused beforehand");
    assert!(counts.iter().all(|count| *count > cases as usize / 50), "{counts:?}");
}
