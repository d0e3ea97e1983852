//! `vectors/etcl.json`.

use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use talea_etcl::{Constraint, Event, FaultKind, ProblemKind};
use talea_time::Instant;

#[derive(Deserialize)]
struct Case {
    id: String,
    expr: String,
    event: Value,
    expect: Value,
    error: Option<String>,
}

/// The outcome, in the words of the vectors.
fn outcome(case: &Case) -> (Value, Option<&'static str>) {
    let event = Event::from_json(&case.event.to_string()).expect("an event");
    let refused = |kind| match kind {
        ProblemKind::Type => (Value::from("error"), Some("type")),
        _ => (Value::from("error"), Some("parse")),
    };
    let program = match Constraint::parse(&case.expr).and_then(|constraint| constraint.compile::<Event>()) {
        Ok(program) => program,
        Err(problem) => return refused(problem.kind),
    };
    let fault = match program.evaluate(&event, Instant::ZERO) {
        Ok(result) => return (result.into(), None),
        Err(fault) => fault,
    };
    let class = match fault.kind {
        FaultKind::Missing | FaultKind::InactiveArm | FaultKind::UnknownLabel => "missing",
        FaultKind::Index { .. } => "index",
        FaultKind::DivisionByZero => "div0",
        FaultKind::Overflow => "overflow",
        _ => "type",
    };
    ("error".into(), Some(class))
}

#[test]
fn every_vector_passes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/etcl.json");
    let text = std::fs::read_to_string(path).expect("it is there");
    let cases: Vec<Case> = serde_json::from_str(&text).expect("a list of cases");
    assert_eq!(cases.len(), 60);
    for case in &cases {
        let (result, class) = outcome(case);
        assert_eq!((&result, class), (&case.expect, case.error.as_deref()), "{}: {}", case.id, case.expr);
    }
}
