//! `hls-*-1`: the guarantees of hierarchical schedulers.

mod conversions;
mod hierarchies;

use super::{Difference, Outcome, unreadable};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Display;
use talea_guarantee::guarantee::Kind;
use talea_guarantee::rewrite::{Cell, cell};

/// Why a case does not pass.
enum Complaint {
    /// A field is not as expected.
    Differs(Difference),
    /// The case cannot be judged.
    Unreadable(String),
}

/// A cell of the rewrite matrix.
pub(super) fn judge_cell(case: &Value) -> Outcome {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        from: Kind,
        to: Kind,
        convertible: bool,
        theorem: Option<u8>,
    }
    outcome(read(case).and_then(|case: Case| {
        let own = cell(case.from, case.to);
        same("convertible", &case.convertible, &matches!(own, Cell::Convertible(_)))?;
        let theorem = |theorem: Option<u8>| theorem.map_or("no theorem".into(), |number| number.to_string());
        same("theorem", &theorem(case.theorem), &theorem(own.theorem().map(|theorem| theorem.number())))
    }))
}

/// A rewrite, an application of the share formula, or a statement about a slower processor.
pub(super) fn judge_conversion(case: &Value) -> Outcome {
    outcome(conversions::judge(case))
}

/// A hierarchy.
pub(super) fn judge_hierarchy(case: &Value) -> Outcome {
    outcome(read(case).and_then(|case| hierarchies::judge(&case)))
}

fn outcome(judged: Result<(), Complaint>) -> Outcome {
    match judged {
        Ok(()) => Outcome::Passed,
        Err(Complaint::Differs(difference)) => Outcome::Failed(difference),
        Err(Complaint::Unreadable(reason)) => unreadable(reason),
    }
}

fn read<C: DeserializeOwned>(case: &Value) -> Result<C, Complaint> {
    serde_json::from_value(case.clone()).map_err(|error| Complaint::Unreadable(error.to_string()))
}

/// Complains if field `at` is not as expected.
fn same<T: PartialEq + Display>(at: &str, expected: &T, got: &T) -> Result<(), Complaint> {
    if expected == got {
        return Ok(());
    }
    let (expected, got) = (expected.to_string(), got.to_string());
    Err(Complaint::Differs(Difference { at: at.into(), expected, got }))
}
