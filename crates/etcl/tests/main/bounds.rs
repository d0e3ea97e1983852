//! The bound of a program's steps holds. The judge is an event that counts how often it is looked at.

use crate::endless::{Endless, LAYOUT};
use crate::tape::Tape;
use crate::tapes;
use proptest::prelude::*;
use talea_etcl::{
    Constraint, FaultKind, Filterable, Form, Kind, Layout, Limits, Lookup, Node, ProblemKind, Program,
    Properties, Value,
};
use talea_time::Instant;

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
            "label == NO_LABEL and FALSE",
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
        let looked_at = event.looked_at();
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

/// An event of few names, of which the second half are its numbers.
struct Few(usize);

impl Node for Few {
    fn len(&self) -> usize {
        self.0
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        (position < self.0).then_some(Value::Integer(position as i64))
    }

    fn name_at(&self, position: usize) -> Option<&str> {
        ["a", "b", "c", "d"].get(position).copied()
    }
}

impl Filterable for Few {
    fn layout() -> &'static Layout {
        &LAYOUT
    }

    fn resolve(_: &str, _: Form) -> Lookup {
        Lookup::ByName
    }
}

proptest! {
    /// The budget is no more than the bound: so no evaluation takes more.
    #[test]
    fn among_few_names_of_numbers_the_bound_is_small_and_enough(mut tape in tapes(40), names in 0usize..5) {
        let operand = |tape: &mut Tape| tape.pick(&["a", "$b", "c", "$d", "1", "a + $b * c", "nothing", "-3"]);
        let part = |tape: &mut Tape| {
            let relation = tape.pick(&["==", "!=", "<", "<=", ">", ">="]);
            match tape.below(4) {
                0 => format!("exist {}", tape.pick(&["a", "$b", "d", "nothing"])),
                1 => format!("not {} {relation} {}", operand(tape), operand(tape)).replacen("not ", "not (", 1) + ")",
                2 => format!("a {relation} '{}'", "x".repeat(tape.below(200))),
                _ => format!("{} {relation} {}", operand(tape), operand(tape)),
            }
        };
        let count = 1 + tape.below(6);
        let parts: Vec<String> = (0..count).map(|_| part(&mut tape)).collect();
        let text = parts.join(tape.pick(&[" and ", " or "]));
        let constraint = Constraint::parse(&text).expect("it parses");
        let Ok(whole) = constraint.compile::<Few>() else { return Ok(()) };
        let most = whole.steps_with_numbers(names);
        prop_assert!(most <= whole.steps());
        let within = Limits { evaluation_steps: most, ..Limits::DEFAULT };
        let tight: Program<Few> = Constraint::parse_within(&text, within).and_then(|tight| tight.compile()).expect("it has as many");
        let event = Few(names);
        prop_assert_eq!(tight.evaluate(&event, Instant::ZERO), whole.evaluate(&event, Instant::ZERO), "{}", text);
    }
}

#[test]
fn among_few_names_a_comparison_takes_few_steps() {
    let steps = |text: &str, names| compiled(text, Limits::DEFAULT).steps_with_numbers(names);
    let [none, one, five] = [0, 1, 5].map(|names| steps("$a < 6", names));
    assert!(none < one && five - none == 5 * (one - none) && five < 20, "{none} {one} {five}");
    assert_eq!(steps("$a < 6", usize::MAX), Limits::DEFAULT.evaluation_steps);
    for open in ["'b' ~ $text", "1 in $list", "$list[0] == 1", "$a == b"] {
        assert_eq!(steps(open, 1), Limits::DEFAULT.evaluation_steps, "{open}");
    }
}

/// An event whose only part is a list of names with numbers, of which it has no more than three as a rule.
struct Listed(Properties);

impl Node for Listed {
    fn len(&self) -> usize {
        1
    }

    fn at(&self, position: usize) -> Option<Value<'_>> {
        (position == 0).then_some(Value::List(&self.0))
    }
}

impl Filterable for Listed {
    fn layout() -> &'static Layout {
        &LAYOUT
    }

    fn resolve(_: &str, _: Form) -> Lookup {
        Lookup::At(0, Kind::List)
    }

    fn most_names(list: usize) -> Option<u32> {
        (list == 0).then_some(3)
    }
}

#[test]
fn where_a_list_has_few_names_what_is_looked_up_there_takes_few_steps() {
    let compiled = |text: &str| {
        let program = Constraint::parse(text).and_then(|constraint| constraint.compile::<Listed>());
        program.expect("it compiles")
    };
    let limit = Limits::DEFAULT.evaluation_steps;
    let one = compiled("$list(a) == 1");
    assert!((4..10).contains(&one.steps()), "{}", one.steps());
    let two = compiled("$list(a) == 1 or $list(b) == 2").steps();
    assert!((2 * one.steps()..limit / 100).contains(&two), "{two}");
    let long = compiled(&format!("$list(a) == '{}'", "x".repeat(64)));
    assert_eq!(long.steps(), one.steps() + 2, "32 bytes a step");
    assert!(one.steps_with_numbers(1) < one.steps() && one.steps_with_numbers(300) == one.steps());
    for open in ["$list(a) == $list(b)", "'b' ~ $list(a)", "$list[0].name == 'a'", "$list(a)(b) == 1"] {
        assert_eq!(compiled(open).steps(), limit, "{open}");
    }
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    let with = |names: usize| Listed((0..names).map(|name| (NAMES[name], 1)).collect());
    let last = compiled("$list(c) == 1");
    assert_eq!(last.evaluate(&with(3), Instant::ZERO), Ok(true));
    let fault = last.evaluate(&with(4), Instant::ZERO).expect_err("it has more than it said");
    assert_eq!(fault.kind, FaultKind::TooManySteps);
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
