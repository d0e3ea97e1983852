//! What is printed parses to the same tree.

use crate::tape::Tape;
use crate::tapes;
use proptest::prelude::*;
use talea_etcl::syntax::{
    Arithmetic, Expression, Literal, Node, Path, Relation, Root, Selector, Step, StepKind,
};
use talea_etcl::{Constraint, Limits, Span};

const NAMES: [&str; 10] = ["a", "threshold", "x_1", "and", "or", "not", "TRUE", "default", "e3", "min"];
const RELATIONS: [Relation; 6] = [
    Relation::Equal,
    Relation::Unequal,
    Relation::Less,
    Relation::AtMost,
    Relation::Greater,
    Relation::AtLeast,
];

fn name(tape: &mut Tape) -> String {
    tape.pick(&NAMES).into()
}

fn text(tape: &mut Tape) -> String {
    tape.list(6, |tape| tape.pick(&['a', '\'', '\\', 'ö', '\n', ' ', '$', '\u{1f600}'])).into_iter().collect()
}

fn path(tape: &mut Tape) -> Path {
    let root = match tape.below(3) {
        0 => Root::Bare(name(tape)),
        1 => Root::Dollar(name(tape)),
        _ => Root::Event,
    };
    let mut steps = if matches!(root, Root::Bare(_)) { Vec::new() } else { tape.list(4, step) };
    if !matches!(root, Root::Bare(_)) && tape.is_one_in(4) {
        let last = [StepKind::Length, StepKind::Discriminator, StepKind::TypeId, StepKind::RepositoryId];
        steps.push(tape.pick(&last));
    }
    with_steps(root, steps)
}

fn with_steps(root: Root, steps: Vec<StepKind>) -> Path {
    let span = Span::default();
    let steps = steps.into_iter().map(|kind| Step { kind, span }).collect();
    Path { root, steps, span, root_span: span }
}

fn step(tape: &mut Tape) -> StepKind {
    match tape.below(7) {
        0 => StepKind::Member(name(tape)),
        1 => StepKind::Position(tape.below(20) as u64),
        2 => StepKind::Index(tape.pick(&[0, 7, u64::MAX])),
        3 => StepKind::Pick(name(tape)),
        4 => StepKind::Arm(Selector::Default),
        5 => StepKind::Arm(Selector::Number(tape.pick(&[0, -3, i64::MIN, i64::MAX]))),
        _ => StepKind::Arm(Selector::Text(text(tape))),
    }
}

fn literal(tape: &mut Tape) -> Literal {
    match tape.below(5) {
        0 => Literal::Integer(tape.pick(&[0, 1, -1, 42, i64::MIN, i64::MAX])),
        1 => Literal::Boolean(tape.below(2) == 1),
        2 => Literal::Text(text(tape)),
        3 => Literal::Unsigned(tape.pick(&[1 << 63, u64::MAX])),
        _ => Literal::Float(tape.pick(&[
            0.0,
            1.5,
            -2.5,
            0.1,
            1e300,
            -1e-300,
            f64::MIN_POSITIVE,
            f64::MAX,
            5e-324,
        ])),
    }
}

fn expression(tape: &mut Tape, depth: usize) -> Expression {
    let below = |tape: &mut Tape| expression(tape, depth - 1);
    let operands = |tape: &mut Tape| {
        let mut operands = vec![below(tape), below(tape)];
        operands.extend(tape.list(2, below));
        operands
    };
    let node = match if depth == 0 { tape.below(3) } else { tape.below(12) } {
        0 => Node::Literal(literal(tape)),
        1 => Node::Path(path(tape)),
        2 => Node::Exist(path(tape)),
        3 => Node::Or(operands(tape)),
        4 => Node::And(operands(tape)),
        5 => Node::Not(below(tape).into()),
        6 | 7 => Node::Compare(tape.pick(&RELATIONS), below(tape).into(), below(tape).into()),
        8 => Node::Substring(below(tape).into(), below(tape).into()),
        9 => {
            let bare = with_steps(Root::Bare(name(tape)), tape.list(3, step));
            Node::In(below(tape).into(), if tape.below(2) == 0 { bare } else { path(tape) })
        }
        10 => {
            let mut path = path(tape);
            if matches!(path.root, Root::Bare(_)) {
                path.root = Root::Event;
            }
            path.steps.retain(|step| {
                !matches!(
                    step.kind,
                    StepKind::Length | StepKind::Discriminator | StepKind::TypeId | StepKind::RepositoryId
                )
            });
            Node::Default(path)
        }
        _ => {
            let operators = tape
                .pick(&[[Arithmetic::Add, Arithmetic::Subtract], [Arithmetic::Multiply, Arithmetic::Divide]]);
            let first = below(tape);
            let mut rest = vec![(tape.pick(&operators), below(tape))];
            rest.extend(tape.list(2, |tape| (tape.pick(&operators), below(tape))));
            Node::Arithmetic(first.into(), rest)
        }
    };
    Expression { node, span: Span::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn what_is_printed_parses_to_the_same_tree(mut tape in tapes(300)) {
        let tree = expression(&mut tape, 4);
        let text = tree.to_string();
        let limits = Limits { depth: 64, ..Limits::GREATEST };
        let parsed = Constraint::parse_within(&text, limits);
        let parsed = parsed.unwrap_or_else(|problem| panic!("{text}: {problem}"));
        prop_assert_eq!(parsed.expression(), &tree, "{}", text);
        prop_assert_eq!(parsed.to_string(), text);
    }
}

#[test]
fn parentheses_stand_where_they_are_needed() {
    let printed = |text: &str| Constraint::parse(text).expect("it parses").to_string();
    assert_eq!(printed("((a) and (b or c))"), "a and (b or c)");
    assert_eq!(printed("(1+2)*3 == ((9))"), "(1 + 2) * 3 == 9");
    assert_eq!(printed("not a == b"), "not a == b");
    assert_eq!(printed("not(a == b)"), "not (a == b)");
    assert_eq!(printed("1 - (2 - 3) - 4"), "1 - (2 - 3) - 4");
    assert_eq!(printed("$ . a . 1 [ 2 ] ( x )"), "$.a.1[2](x)");
    assert_eq!(printed("$a.1.2"), "$a.1.2");
    assert_eq!(printed("exist $.a.(+1).('b').()._length"), "exist $.a.(1).('b').()._length");
    assert_eq!(printed("default $u._d and \\and"), "default $u._d and \\and");
    assert_eq!(printed(" \t\r\n"), "TRUE");
}
