//! A constraint part by part.

use talea_etcl::{Constraint, Event, PartOutcome, Properties};
use talea_time::Instant;

/// The parts, as indented lines with what became of them.
fn explained(text: &str) -> Vec<String> {
    let data: Properties = [("a", 2), ("b", 3)].into_iter().collect();
    let event = Event::new("Plant", "Pump", "x").with_filterable_data(data);
    let parts =
        Constraint::parse(text).expect("it parses").explain(&event, Instant::ZERO).expect("few steps");
    let line = |part: &talea_etcl::Part| {
        let outcome = match &part.outcome {
            PartOutcome::Value(value) => value.clone(),
            PartOutcome::Label => "label".into(),
            PartOutcome::Fault(fault) => format!("{:?} in {}", fault.kind, &text[fault.span.range()]),
            PartOutcome::Skipped => "-".into(),
        };
        format!("{}{} = {outcome}", " ".repeat(part.depth), part.text)
    };
    parts.iter().map(line).collect()
}

#[test]
fn each_part_has_its_value() {
    let parts = explained("(a + 1) * b == 9 and $domain_name == 'Plant'");
    let expected = [
        "(a + 1) * b == 9 and $domain_name == 'Plant' = TRUE",
        " (a + 1) * b == 9 = TRUE",
        "  (a + 1) * b = 9",
        "   a + 1 = 3",
        "    a = 2",
        "    1 = 1",
        "   b = 3",
        "  9 = 9",
        " $domain_name == 'Plant' = TRUE",
        "  $domain_name = 'Plant'",
        "  'Plant' = 'Plant'",
    ];
    assert_eq!(parts, expected);
}

#[test]
fn what_evaluation_does_not_come_to_is_skipped_and_errors_have_their_place() {
    let parts = explained("a == 2 or b / 0 == 1");
    assert_eq!(parts[0], "a == 2 or b / 0 == 1 = TRUE");
    assert!(parts[4..].iter().all(|line| line.ends_with(" = -")) && parts.len() == 9, "{parts:?}");
    let parts = explained("a == 2 and b / (a - 2) == nothing");
    let expected = [
        "a == 2 and b / (a - 2) == nothing = DivisionByZero in b / (a - 2)",
        " a == 2 = TRUE",
        "  a = 2",
        "  2 = 2",
        " b / (a - 2) == nothing = DivisionByZero in b / (a - 2)",
        "  b / (a - 2) = DivisionByZero in b / (a - 2)",
        "   b = 3",
        "   a - 2 = 0",
        "    a = 2",
        "    2 = 2",
        "  nothing = -",
    ];
    assert_eq!(parts, expected);
}
