//! Evaluation allocates nothing, whatever it comes to.

use allocation_counter::measure;
use std::hint::black_box;
use talea_etcl::{Constraint, Event, Program};
use talea_time::Instant;

const EVENT: &str = r#"{"domain_name": "Plant", "type_name": "Pump", "event_name": "ev",
    "variable_header": {"priority": 7}, "filterable_data": {"threshold": 15, "price": 2.5, "text": "a hot bearing",
    "list": [1, 2, "x"], "pairs": {"$nv": [["k", 3]]}, "inner": {"a": {"b": true}},
    "color": {"$enum": {"name": "Color", "repos_id": "IDL:C:1.0", "labels": ["RED", "GREEN"], "value": "GREEN"}},
    "union": {"$union": {"disc": 2, "labels": [2], "member": "x", "default": false, "value": 5}}}}"#;

#[test]
fn evaluation_allocates_nothing() {
    let event = Event::from_json(EVENT).expect("an event");
    let programs: Vec<Program<Event>> = [
        "$domain_name == 'Plant' and threshold < 20 and $.header.variable_header(priority) >= 5",
        "'hot' ~ text and 'x' in list and $pairs(k) == 3 and $pairs[0].name == 'k' and $list._length == 3",
        "color == GREEN and $union.(2) == 5 and not default $union._d and $.filterable_data(inner).a.b",
        "(threshold + 1) * (threshold - price * (2 + threshold)) < 1000.0 and (threshold == 15) == (price > 1)",
        "exist $nothing or $inner.a.c == 1",
        "threshold / 0 == 1",
        "color == NO_LABEL",
        "text == 5 or TRUE",
        "$list[9] == 1",
        "not threshold",
    ]
    .iter()
    .map(|text| Constraint::parse(text).and_then(|constraint| constraint.compile()).expect("it compiles"))
    .collect();
    let mut results = Vec::with_capacity(programs.len());
    let allocated = measure(|| {
        for program in &programs {
            results.push(black_box(program.evaluate(black_box(&event), Instant::ZERO)));
        }
    });
    assert_eq!(allocated.count_total, 0, "{results:?}");
    assert_eq!(results.iter().filter(|result| **result == Ok(true)).count(), 4, "{results:?}");
    assert_eq!(results.iter().filter(|result| result.is_err()).count(), 6, "{results:?}");
    assert_ne!(measure(|| drop(black_box(Box::new(1)))).count_total, 0, "the counter counts");
}
