//! Structured events and constraints on them.

use super::one_of;
use rand::{Rng, RngExt};
use std::sync::Arc;
use talea_etcl::{Event, OwnedEnum, OwnedEnumType, OwnedStruct, OwnedUnion, OwnedValue, Properties};

/// Names that events and constraints have in common, so that some of them are found.
const NAMES: [&str; 8] = ["a", "b", "charge", "cell", "Priority", "points", "x", "status"];
const TEXTS: [&str; 5] = ["", "a", "hot", "pump hot", "Prüfstand"];
const INTEGERS: [i64; 8] = [0, 1, -1, 2, 20, 100, i64::MAX, i64::MIN];
const FLOATS: [f64; 7] = [0.0, 1.5, -2.5, 20.0, 1e300, f64::INFINITY, f64::NAN];
/// How deep values and expressions go.
const DEPTH: u32 = 4;

/// An event with properties of all kinds.
pub fn event(rng: &mut impl Rng) -> Event {
    let event = Event::new(one_of(rng, &["Robot", "Plant", ""]), one_of(rng, &["Battery", "Pump"]), "n");
    let event = event.with_variable_header(properties(rng, 1)).with_filterable_data(properties(rng, DEPTH));
    match rng.random_ratio(1, 2) {
        true => event.with_remainder_of_body(value(rng, DEPTH)),
        false => event,
    }
}

fn properties(rng: &mut impl Rng, depth: u32) -> Properties {
    (0..rng.random_range(0..5)).map(|_| (one_of(rng, &NAMES), value(rng, depth))).collect()
}

fn values(rng: &mut impl Rng, depth: u32) -> Vec<OwnedValue> {
    (0..rng.random_range(0..4)).map(|_| value(rng, depth)).collect()
}

fn value(rng: &mut impl Rng, depth: u32) -> OwnedValue {
    let kinds = if depth == 0 { 6 } else { 10 };
    match rng.random_range(0..kinds) {
        0 => rng.random::<bool>().into(),
        1 => one_of(rng, &INTEGERS).into(),
        2 => one_of(rng, &[0, 7, u64::MAX]).into(),
        3 => one_of(rng, &FLOATS).into(),
        4 => one_of(rng, &TEXTS).into(),
        5 => label(rng).into(),
        6 => values(rng, depth - 1).into(),
        7 => properties(rng, depth - 1).into(),
        8 => {
            let (type_name, repository_id) = (Some("Point".to_owned()), None);
            OwnedStruct { type_name, repository_id, members: properties(rng, depth - 1) }.into()
        }
        _ => OwnedUnion {
            type_name: None,
            repository_id: Some("IDL:U:1.0".into()),
            discriminator: value(rng, 0),
            selectors: values(rng, 0),
            member: one_of(rng, &NAMES).into(),
            is_default_arm: rng.random(),
            value: value(rng, depth - 1),
        }
        .into(),
    }
}

fn label(rng: &mut impl Rng) -> OwnedEnum {
    let labels: Vec<String> = ["red", "green", "blue"].map(str::to_owned).into();
    let label = labels[rng.random_range(0..3)].clone();
    let (name, repository_id) = ("Colour".to_owned(), "IDL:Colour:1.0".to_owned());
    OwnedEnum::new(Arc::new(OwnedEnumType { name, repository_id, labels }), &label).expect("it has it")
}

/// A text that is a constraint, as a rule.
pub fn constraint(rng: &mut impl Rng) -> String {
    let mut text = String::new();
    expression(rng, DEPTH + 1, &mut text);
    text
}

fn expression(rng: &mut impl Rng, depth: u32, text: &mut String) {
    if depth == 0 || rng.random_ratio(1, 4) {
        return operand(rng, text);
    }
    let operators = ["and", "or", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "~", "in"];
    match rng.random_range(0..5) {
        0 => {
            text.push_str("not (");
            expression(rng, depth - 1, text);
            text.push(')');
        }
        1 => {
            text.push_str("exist ");
            path(rng, text);
        }
        more => {
            // Without parentheses the grammar decides what belongs together, or that it does not.
            let parentheses = if more == 2 { ("", "") } else { ("(", ")") };
            text.push_str(parentheses.0);
            expression(rng, depth - 1, text);
            text.push(' ');
            text.push_str(one_of(rng, &operators));
            text.push(' ');
            expression(rng, depth - 1, text);
            text.push_str(parentheses.1);
        }
    }
}

fn operand(rng: &mut impl Rng, text: &mut String) {
    let literals = [
        "0",
        "1",
        "-1",
        "20",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "1.5",
        ".5",
        "1e300",
        "1.5e-3",
        "''",
        "'hot'",
        "'it\\'s'",
        "'Prüfstand'",
        "TRUE",
        "FALSE",
        "red",
        "green",
    ];
    match rng.random_range(0..3) {
        0 => text.push_str(one_of(rng, &literals)),
        _ => path(rng, text),
    }
}

fn path(rng: &mut impl Rng, text: &mut String) {
    let roots =
        ["$", "$.", "", "$.filterable_data", "$.remainder_of_body", "$.header.variable_header", "$curtime"];
    let root = one_of(rng, &roots);
    text.push_str(root);
    if matches!(root, "$" | "$." | "") {
        text.push_str(one_of(rng, &NAMES));
    }
    for _ in 0..rng.random_range(0..3) {
        let name = one_of(rng, &NAMES);
        match rng.random_range(0..8) {
            0 => text.push_str(&format!("({name})")),
            1 => text.push_str(&format!("[{}]", rng.random_range(0..4))),
            2 => text.push_str(&format!(".{}", rng.random_range(0..4))),
            3 => text.push_str(one_of(rng, &[".()", ".(1)", ".(-3)", ".('hot')"])),
            4 => text.push_str(one_of(rng, &["._length", "._d", "._type_id", "._repos_id"])),
            _ => text.push_str(&format!(".{name}")),
        }
    }
}
