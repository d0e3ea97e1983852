//! Structured events from JSON.

use crate::held_json::hold;
use proptest::collection::vec;
use proptest::prelude::*;
use talea_etcl::{Constraint, Event, OwnedValue};
use talea_time::Instant;

fn with_data(data: &str) -> String {
    format!(
        "{{\"domain_name\": \"d\", \"type_name\": \"t\", \"event_name\": \"e\",\n \"variable_header\": {{}},\n \"filterable_data\": {data}}}"
    )
}

#[test]
fn every_kind_of_value_is_read() {
    let text = with_data(
        r#"{"int": 200, "float": 200.0, "exp": 2e2, "u": {"$u64": "18446744073709551615"}, "s": "\u00f6'", "b": false,
            "seq": [1, "x", [true]], "plain": {"z": 1, "a": 2},
            "named": {"$struct": {"name": "T", "repos_id": "IDL:T:1.0", "members": [["m", 5]]}},
            "nv": {"$nv": [["k", 1], ["l", 2]]},
            "enum": {"$enum": {"name": "E", "repos_id": "IDL:E:1.0", "labels": ["A", "B"], "value": "B"}},
            "union": {"$union": {"name": "U", "repos_id": "IDL:U:1.0", "disc": 3, "labels": [3, 4], "member": "x", "default": false, "value": "v"}},
            "other": {"$union": {"disc": 9, "labels": [], "member": "rest", "default": true, "value": 7}}}"#,
    );
    let event = Event::from_json(&text).expect("an event");
    assert_eq!(event.filterable_data().get("int"), Some(&OwnedValue::Integer(200)));
    assert_eq!(event.filterable_data().get("float"), Some(&OwnedValue::Float(200.0)));
    assert_eq!(event.filterable_data().get("exp"), Some(&OwnedValue::Float(200.0)));
    for text in [
        "$u == 18446744073709551615 and $u > int and s == 'ö\\'' and not b",
        "$plain.0 == 1 and $plain.a == 2 and $seq[2][0] and 'x' in seq and $seq._length == 3",
        "$named.m == 5 and $named._type_id == 'T' and $named._repos_id == 'IDL:T:1.0' and not exist $plain._type_id",
        "$nv(l) == 2 and $nv[1].name == 'l' and $nv[0].value == 1 and $nv._length == 2",
        "enum == B and $enum > A and $enum == 1 and $enum._type_id == 'E' and A < enum",
        "$union.(3) == 'v' and $union.(4) == 'v' and $union.x == 'v' and not exist $union.(5) and $union._d == 3",
        "not default $union._d and default $other._d and $other.() == 7 and $other.rest == 7 and not exist $union.()",
        "$other.(9) == 7 and not exist $other.(3)",
        "$.domain_name == 'd' and not exist $.remainder_of_body and $.1(int) == 200 and $.0.0.event_name == 'e'",
    ] {
        let program =
            Constraint::parse(text).and_then(|constraint| constraint.compile::<Event>()).expect(text);
        assert_eq!(program.evaluate(&event, Instant::ZERO), Ok(true), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (data, said) in [
        (
            "{\"a\": 9223372036854775808}",
            "line 3, column 27: this number does not fit a signed integer of 64 bits; write {\"$u64\": \"...\"}",
        ),
        ("{\"a\": 1e999}", "line 3, column 27: this number is too large"),
        ("{\"a\": null}", "line 3, column 27: there is no value null; leave the name out"),
        ("{\"a\": 1, \"a\": 2}", "line 3, column 30: the name \"a\" is there twice"),
        ("{\"a\": {\"$x\": 1}}", "line 3, column 28: there is no kind of value \"$x\"; write $u64"),
        ("{\"a\": {\"$u64\": 5}}", "line 3, column 36: $u64 is a number; write a string"),
        ("{\"a\": {\"$u64\": \"-5\"}}", "line 3, column 36: this is no unsigned integer"),
        (
            "{\"a\": {\"$enum\": {\"name\": \"E\", \"labels\": [\"A\"], \"value\": \"C\"}}}",
            "line 3, column 77: \"C\" is none of the labels",
        ),
        ("{\"a\": {\"$union\": {\"disc\": 1}}}", "line 3, column 38: member is missing; add it"),
        ("{\"a\": {\"$nv\": [[1, 2]]}}", "line 3, column 37: the name of a pair is a number; write a string"),
        ("{\"a\": {\"$nv\": [[\"x\", 2], [\"x\", 3]]}}", "line 3, column 35: there are two values for x"),
        ("[]", "line 3, column 21: filterable_data is an array; write an object of names and values"),
        (
            "{}, \"filterable\": 1",
            "line 3, column 25: there is no key \"filterable\" here; the keys are domain_name",
        ),
    ] {
        let problem = Event::from_json(&with_data(data)).expect_err(data).to_string();
        assert!(problem.starts_with(said), "{data}: {problem}");
    }
    for (text, said) in [
        ("", "line 1, column 1: this is empty"),
        ("[]", "line 1, column 1: an event is an array"),
        ("{}", "line 1, column 1: domain_name is missing"),
    ] {
        let problem = Event::from_json(text).expect_err(text).to_string();
        assert!(problem.starts_with(said), "{text}: {problem}");
    }
    assert!(Event::from_json("{ // remark\n}").is_err(), "JSON has no remarks");
    assert!(
        Event::from_json(&with_data(&format!("{{\"a\": {}{}}}", "[".repeat(9999), "]".repeat(9999))))
            .is_err()
    );
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(bytes in vec(any::<u8>(), 0..80), places in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        hold(&String::from_utf8_lossy(&bytes));
        // A good one with some bytes changed.
        let mut good = with_data("{\"a\": {\"$union\": {\"disc\": 1, \"labels\": [1], \"member\": \"m\", \"value\": -1.5e3}}}").into_bytes();
        for (place, byte) in places {
            let at = place.index(good.len());
            good[at] = byte;
        }
        hold(&String::from_utf8_lossy(&good));
    }
}
