//! The bound of a program's steps holds. The judge is an event that counts how often it is looked at.

use crate::tape::{Tape, tapes};
use proptest::prelude::*;
use std::cell::Cell;
use talea_etcl::{
    Constraint, FaultKind, Filterable, Form, Kind, Layout, Limits, Lookup, Member, Node, ProblemKind,
    Program, Value,
};
use talea_time::Instant;

/// An event whose parts are all the same sequence or struct of a length without end in sight.
#[derive(Debug)]
struct Endless {
    length: usize,
    looked_at: Cell<u64>,
    text: String,
}

impl Endless {
    fn new(length: usize) -> Self {
        Endless { length, looked_at: Cell::new(0), text: "a".repeat(length) }
    }

    fn look(&self) {
        self.looked_at.set(self.looked_at.get() + 1);
    }
}

impl Node for Endless {
    fn len(&self) -> usize {
        self.length
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        self.look();
        Some(match position % 4 {
            0 => Value::Integer(position as i64),
            1 => Value::Sequence(self),
            2 => Value::Struct(self),
            _ => Value::Text(&self.text),
        })
    }

    fn position(&self, name: &str) -> Option<usize> {
        // As if each name were compared.
        self.looked_at.set(self.looked_at.get() + self.length as u64);
        match name {
            "number" => Some(0),
            "list" => Some(1),
            "inner" => Some(2),
            "text" => Some(3),
            _ => None,
        }
    }
}

static LAYOUT: Layout =
    Layout { name: "Endless", repository_id: None, members: &[Member { name: "x", kind: || Kind::Dynamic }] };

impl Filterable for Endless {
    fn layout() -> &'static Layout {
        &LAYOUT
    }

    fn resolve(_: &str, _: Form) -> Lookup {
        Lookup::ByName
    }
}

fn compiled(text: &str, limits: Limits) -> Program<Endless> {
    Constraint::parse_within(text, limits).and_then(|constraint| constraint.compile()).expect("it compiles")
}

/// Comparisons of which each is long.
fn constraint(tape: &mut Tape) -> String {
    let part = |tape: &mut Tape| {
        tape.pick(&[
            "-1 in $list",
            "'b' in $inner.list",
            "'b' ~ $text",
            "$text < $inner.text",
            "$list._length + number == -1",
            "not exist $inner.inner.inner.list[3]",
            "exist $inner.nothing",
            "$inner.list[1][1][2].number != 0",
            "(number + 1) * (number - 2 * (number + 3)) == -1",
        ])
    };
    let parts: Vec<&str> = (0..=tape.below(12)).map(|_| part(tape)).collect();
    parts.join(" or ")
}

proptest! {
    #[test]
    fn no_evaluation_takes_more_steps_than_the_program_says(
        mut tape in tapes(40),
        length in 4usize..3000,
        granted in 100u32..3000,
    ) {
        let text = constraint(&mut tape);
        let limits = Limits { evaluation_steps: granted, ..Limits::DEFAULT };
        let program: Program<Endless> = match Constraint::parse_within(&text, limits).expect("it parses").compile() {
            Ok(program) => program,
            Err(problem) => {
                prop_assert_eq!(problem.kind, ProblemKind::Limit);
                return Ok(());
            }
        };
        prop_assert!(program.steps() <= granted);
        let event = Endless::new(length);
        let _ = program.evaluate(&event, Instant::ZERO);
        let looked_at = event.looked_at.get();
        prop_assert!(looked_at <= u64::from(program.steps()), "{}: {} of {}", text, looked_at, program.steps());
    }
}

#[test]
fn what_would_take_too_long_ends_in_an_error() {
    let event = Endless::new(1 << 20);
    for text in ["-1 in $list", "'b' ~ $text", "$text == $inner.text", "exist $nothing"] {
        let fault = compiled(text, Limits::DEFAULT).evaluate(&event, Instant::ZERO).expect_err("it is long");
        assert_eq!(fault.kind, FaultKind::TooManySteps, "{text}");
    }
    let granted = Limits { evaluation_steps: 1 << 24, ..Limits::DEFAULT };
    assert_eq!(compiled("-1 in $list", granted).evaluate(&event, Instant::ZERO), Ok(false));
    assert_eq!(compiled("$text == $inner.text", granted).evaluate(&event, Instant::ZERO), Ok(true));
}

#[test]
fn the_bound_is_known_beforehand_and_small_where_no_data_are_looked_at() {
    let steps = |text: &str| compiled(text, Limits::DEFAULT).steps();
    assert_eq!(steps(""), 2);
    assert_eq!(steps("1 + 1 == 2"), 3);
    assert_eq!(steps("1 < 2 and 3 < 4"), 5);
    assert_eq!(steps("$a == 1"), Limits::DEFAULT.evaluation_steps);
    let few = Limits { evaluation_steps: 4, ..Limits::DEFAULT };
    let refused = Constraint::parse_within("1 < 2 and 3 < 4", few).expect("it parses").compile::<Endless>();
    assert_eq!(refused.expect_err("five steps").kind, ProblemKind::Limit);
}

#[test]
fn the_stack_is_as_deep_as_right_operands_nest() {
    let stack = |text: &str| compiled(text, Limits::DEFAULT).stack();
    assert_eq!(stack("$a == 1 and $b < 2 or $c + 1 + 2 == $d"), 0);
    assert_eq!(stack("1 + (2 + (3 + (4 + $a))) == 5"), 3);
    assert_eq!(stack("($a == 1) == ($b == 2)"), 1);
    let mut text = String::from("$a");
    for _ in 0..62 {
        text = format!("1 - ({text})");
    }
    let limits = Limits { depth: 64, ..Limits::GREATEST };
    let program = compiled(&format!("{text} == 1"), limits);
    assert_eq!(program.stack(), 61);
    let event = Endless::new(1);
    let fault = program.evaluate(&event, Instant::ZERO).expect_err("there is no such name");
    assert_eq!(fault.kind, FaultKind::Missing);
}
