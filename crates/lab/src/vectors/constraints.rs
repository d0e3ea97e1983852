//! `etcl-1`: expressions of the constraint language on structured events.

use super::{Difference, Outcome, unreadable};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use talea_etcl::{Constraint, Event};
use talea_text::printable;
use talea_time::Instant;

#[derive(Deserialize)]
struct Case<'a> {
    expr: String,
    /// As it is written: the members of a struct have an order, and `200.0` is another number than `200`.
    #[serde(borrow)]
    event: &'a RawValue,
    /// `true`, `false` or `"error"`.
    expect: Value,
    error: Option<String>,
}

/// How the evaluation of a constraint ends.
#[derive(Debug, PartialEq)]
enum End {
    True,
    False,
    Error,
    /// The text is none of the language.
    Refused,
}

/// Every case of a file with its outcome.
///
/// # Errors
/// The file is no list of cases.
pub(super) fn judge_all(text: &str) -> Result<Vec<(String, Outcome)>, String> {
    let cases: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(cases.into_iter().map(|case| (id(case), judge(case))).collect())
}

fn id(case: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Named {
        id: String,
    }
    let id = serde_json::from_str(case.get()).map_or("?".into(), |Named { id }| id);
    printable(&id).into_owned()
}

fn judge(case: &RawValue) -> Outcome {
    let case: Case<'_> = match serde_json::from_str(case.get()) {
        Ok(case) => case,
        Err(error) => return unreadable(error.to_string()),
    };
    let event = match Event::from_json(case.event.get()) {
        Ok(event) => event,
        Err(problem) => return unreadable(format!("the event, {problem}")),
    };
    let expected = match &case.expect {
        Value::Bool(true) => End::True,
        Value::Bool(false) => End::False,
        Value::String(word) if word == "error" && case.error.as_deref() == Some("parse") => End::Refused,
        Value::String(word) if word == "error" => End::Error,
        other => return unreadable(format!("\"expect\" is {other}, and neither true, false nor \"error\"")),
    };
    let (end, detail) = evaluated(&case.expr, &event);
    if end == expected {
        return Outcome::Passed;
    }
    let got = detail.map_or_else(|| format!("{end:?}"), |detail| format!("{end:?}: {detail}"));
    let expected = format!("{expected:?}");
    Outcome::Failed(Difference { at: "result".into(), expected, got })
}

/// How the evaluation ends, and why if it ends in an error.
fn evaluated(text: &str, event: &Event) -> (End, Option<String>) {
    let constraint = match Constraint::parse(text) {
        Ok(constraint) => constraint,
        Err(problem) => return (End::Refused, Some(problem.to_string())),
    };
    match constraint.compile().map(|program| program.evaluate(event, Instant::ZERO)) {
        Ok(Ok(true)) => (End::True, None),
        Ok(Ok(false)) => (End::False, None),
        Ok(Err(fault)) => (End::Error, Some(fault.to_string())),
        // What can only end in an error may be refused early.
        Err(problem) => (End::Error, Some(problem.to_string())),
    }
}
