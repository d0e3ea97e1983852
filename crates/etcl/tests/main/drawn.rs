//! Events and constraints that are drawn from a tape, for the second evaluator and as the crate has them.

use crate::judge::{Datum, ENUMS, Go, Start, Tree, Way, World, repository_id};
use crate::tape::Tape;
use std::sync::Arc;
use talea_etcl::{Event, OwnedEnum, OwnedEnumType, OwnedStruct, OwnedUnion, OwnedValue, Properties};

const NAMES: [&str; 8] = ["a", "b", "c", "d", "RED", "GREEN", "value", "domain_name"];
const TEXTS: [&str; 7] = ["", "a", "ab", "b", "aab", "ö", "'\\"];
const NUMBERS: [i64; 9] = [0, 1, 2, -1, 3, 7, i64::MAX, i64::MIN, 1 << 53];
const FLOATS: [f64; 7] = [0.0, 1.0, 0.5, -1.0, 2.0, 1e308, 9007199254740993.0];

fn plain(tape: &mut Tape) -> Datum {
    if tape.is_one_in(8) {
        let bits = tape.number();
        return tape.pick(&[
            Datum::Int(bits.cast_signed()),
            Datum::Float(f64::from_bits(bits)),
            Datum::Uint(bits),
            // Near what floating-point numbers can tell apart.
            Datum::Float(bits as f64),
        ]);
    }
    match tape.below(6) {
        0 => Datum::Int(tape.pick(&NUMBERS)),
        1 => Datum::Bool(tape.below(2) == 1),
        2 => Datum::Str(tape.pick(&TEXTS).into()),
        3 => Datum::Float(tape.pick(&FLOATS)),
        4 => Datum::Uint(tape.pick(&[0, 1, 7, 1 << 63, u64::MAX])),
        _ => label(tape),
    }
}

fn label(tape: &mut Tape) -> Datum {
    let of = tape.below(ENUMS.len());
    Datum::Enum(of, tape.below(ENUMS[of].1.len()))
}

fn datum(tape: &mut Tape, depth: usize) -> Datum {
    if depth == 0 || tape.below(2) == 0 {
        return plain(tape);
    }
    match tape.below(4) {
        0 => Datum::Seq(tape.list(4, |tape| datum(tape, depth - 1))),
        1 => Datum::Struct(tape.pick(&[None, Some("S".into())]), pairs(tape, depth - 1)),
        2 => Datum::List(pairs(tape, depth - 1)),
        _ => {
            let disc = tape.pick(&[Datum::Int(1), Datum::Str("x".into()), Datum::Enum(0, 1), Datum::Uint(7)]);
            let default = tape.below(2) == 1;
            let labels = if default { Vec::new() } else { vec![disc.clone(), Datum::Int(2)] };
            let (member, value) = (tape.pick(&NAMES).into(), datum(tape, depth - 1).into());
            Datum::Union { disc: disc.into(), labels, member, default, value }
        }
    }
}

fn pairs(tape: &mut Tape, depth: usize) -> Vec<(String, Datum)> {
    let mut pairs: Vec<(String, Datum)> = Vec::new();
    for name in &NAMES {
        if tape.is_one_in(2) {
            pairs.push(((*name).into(), datum(tape, depth)));
        }
    }
    pairs
}

/// An event as the second evaluator has it.
pub fn world(tape: &mut Tape) -> World {
    let mut text = || tape.pick(&TEXTS).to_string();
    let (domain, kind, event) = (text(), text(), text());
    World {
        domain,
        kind,
        event,
        header: pairs(tape, 1),
        data: pairs(tape, 3),
        rest: if tape.below(2) == 1 { Some(datum(tape, 2)) } else { None },
        now: 5,
    }
}

/// A path that often leads somewhere: its steps follow what there is.
fn way(tape: &mut Tape, world: &World) -> Way {
    let name: String = tape.pick(&NAMES).into();
    let mut steps = Vec::new();
    let (start, mut here) = match tape.below(6) {
        0 | 1 => (Start::Dollar(name.clone()), find(world, &name)),
        2 => {
            steps.push(Go::Dot(name.clone()));
            (Start::Whole, find(world, &name))
        }
        3 => {
            steps.extend([Go::Dot("filterable_data".into()), Go::Pick(name.clone())]);
            (Start::Whole, world.data.iter().find(|pair| pair.0 == name).map(|pair| pair.1.clone()))
        }
        4 => {
            let there: [&[&str]; 6] = [
                &["header", "fixed_header", "event_type", "domain_name"],
                &["header", "fixed_header", "event_name"],
                &["header", "variable_header"],
                &["remainder_of_body"],
                &["curtime"],
                &["header", "fixed_header", "nothing"],
            ];
            steps.extend(tape.pick(&there).iter().map(|name| Go::Dot((*name).into())));
            let rest = matches!(&steps[0], Go::Dot(name) if name == "remainder_of_body");
            (Start::Whole, if rest { world.rest.clone() } else { None })
        }
        _ => (Start::Dollar(tape.pick(&["curtime", "type_name"]).into()), None),
    };
    for _ in 0..tape.below(5) {
        let step = if tape.is_one_in(6) { None } else { here.as_ref().and_then(|here| fitting(tape, here)) };
        let step = step.unwrap_or_else(|| {
            tape.pick(&[
                Go::Nth(0),
                Go::Index(1),
                Go::Dot("a".into()),
                Go::Pick("b".into()),
                Go::ArmDefault,
                Go::ArmInt(7),
                Go::Length,
                Go::TypeId,
            ])
        });
        here = here.and_then(|here| inner(&here, &step));
        let is_last = matches!(step, Go::Length | Go::Disc | Go::TypeId | Go::ReposId);
        steps.push(step);
        if is_last || is_plain(here.as_ref()) {
            break;
        }
    }
    Way(start, steps)
}

fn is_plain(datum: Option<&Datum>) -> bool {
    datum.is_some_and(|datum| {
        !matches!(datum, Datum::Seq(_) | Datum::Struct(..) | Datum::List(_) | Datum::Union { .. })
    })
}

fn find(world: &World, name: &str) -> Option<Datum> {
    world.header.iter().chain(&world.data).find(|pair| pair.0 == name).map(|pair| pair.1.clone())
}

/// A step that what is there has, or nearly.
fn fitting(tape: &mut Tape, here: &Datum) -> Option<Go> {
    let name: String = tape.pick(&NAMES).into();
    let at = tape.below(4);
    Some(match here {
        Datum::Seq(_) => tape.pick(&[Go::Index(at), Go::Index(0), Go::Length]),
        Datum::Struct(..) => tape.pick(&[Go::Dot(name), Go::Nth(at), Go::TypeId, Go::ReposId]),
        Datum::List(_) => tape.pick(&[Go::Pick(name), Go::Index(at), Go::Length]),
        Datum::Union { member, .. } => tape.pick(&[
            Go::Dot(member.clone()),
            Go::Disc,
            Go::ArmDefault,
            Go::ArmInt(1),
            Go::ArmInt(2),
            Go::ArmStr("x".into()),
            Go::ArmStr("GREEN".into()),
        ]),
        Datum::Pair(..) => {
            tape.pick(&[Go::Dot("name".into()), Go::Dot("value".into()), Go::Nth(1), Go::Nth(2)])
        }
        Datum::Enum(..) => tape.pick(&[Go::TypeId, Go::ReposId]),
        _ => return None,
    })
}

/// What a step leads to, for drawing the next one.
fn inner(here: &Datum, step: &Go) -> Option<Datum> {
    match (here, step) {
        (Datum::Seq(elements), Go::Index(at)) => elements.get(*at).cloned(),
        (Datum::Struct(_, pairs) | Datum::List(pairs), Go::Dot(name) | Go::Pick(name)) => {
            pairs.iter().find(|pair| pair.0 == *name).map(|pair| pair.1.clone())
        }
        (Datum::List(pairs), Go::Index(at)) => {
            pairs.get(*at).map(|pair| Datum::Pair(pair.0.clone(), pair.1.clone().into()))
        }
        (Datum::Pair(_, value) | Datum::Union { value, .. }, _) => Some((**value).clone()),
        _ => None,
    }
}

fn operand(tape: &mut Tape, world: &World, depth: usize) -> Tree {
    if depth > 0 && tape.is_one_in(4) {
        let operator = tape.pick(&["+", "-", "*", "/"]);
        return Tree::Two(
            operator,
            operand(tape, world, depth - 1).into(),
            operand(tape, world, depth - 1).into(),
        );
    }
    match tape.below(4) {
        0 => Tree::Lit(literal(tape)),
        1 => Tree::At(Way(Start::Bare(tape.pick(&NAMES).into()), Vec::new())),
        _ => Tree::At(way(tape, world)),
    }
}

/// Something that can be compared with a property that is there: most pairs that are drawn blindly cannot.
fn aligned(tape: &mut Tape, world: &World) -> Option<(Tree, Tree)> {
    let all: Vec<&(String, Datum)> = world.header.iter().chain(&world.data).collect();
    let plain: Vec<&(String, Datum)> = all.into_iter().filter(|pair| is_plain(Some(&pair.1))).collect();
    if plain.is_empty() {
        return None;
    }
    let (name, datum) = tape.pick(&plain);
    let property = |name: &str| Tree::At(Way(Start::Dollar(name.into()), Vec::new()));
    let other = match datum {
        _ if tape.is_one_in(3) => {
            let kind = std::mem::discriminant(datum);
            let alike: Vec<_> =
                plain.iter().filter(|pair| std::mem::discriminant(&pair.1) == kind).copied().collect();
            property(&tape.pick(&alike).0)
        }
        Datum::Enum(of, _) if tape.below(2) == 0 => {
            Tree::At(Way(Start::Bare(tape.pick(ENUMS[*of].1).into()), Vec::new()))
        }
        Datum::Enum(..) | Datum::Int(_) | Datum::Uint(_) => Tree::Lit(Datum::Int(tape.pick(&NUMBERS))),
        Datum::Float(_) => Tree::Lit(Datum::Float(tape.pick(&FLOATS))),
        Datum::Bool(_) => Tree::Lit(Datum::Bool(tape.below(2) == 0)),
        _ => Tree::Lit(Datum::Str(tape.pick(&TEXTS).into())),
    };
    let property = property(name);
    Some(if tape.below(2) == 0 { (property, other) } else { (other, property) })
}

fn literal(tape: &mut Tape) -> Datum {
    match plain(tape) {
        // Small ones are written as signed integers.
        Datum::Uint(value) if i64::try_from(value).is_ok() => Datum::Int(value as i64),
        Datum::Enum(..) => Datum::Bool(true),
        // Infinite numbers, and what is no number, cannot be written.
        Datum::Float(value) if !value.is_finite() => Datum::Float(0.0),
        other => other,
    }
}

/// A constraint of so many levels, which often asks for what the event has.
pub fn tree(tape: &mut Tape, world: &World, depth: usize) -> Tree {
    let below = |tape: &mut Tape| tree(tape, world, depth - 1);
    let kinds = if depth == 0 { 6 } else { 10 };
    match tape.below(kinds) {
        0 | 1 => {
            let relation = tape.pick(&["==", "!=", "<", "<=", ">", ">="]);
            let aligned = if tape.below(2) == 0 { aligned(tape, world) } else { None };
            let (left, right) = aligned.unwrap_or_else(|| (operand(tape, world, 2), operand(tape, world, 2)));
            let is_text =
                matches!((&left, &right), (Tree::Lit(Datum::Str(_)), _) | (_, Tree::Lit(Datum::Str(_))));
            let relation = if is_text && tape.is_one_in(3) { "~" } else { relation };
            Tree::Two(relation, left.into(), right.into())
        }
        2 => Tree::Exist(way(tape, world)),
        3 => Tree::In(operand(tape, world, 1).into(), way(tape, world)),
        4 => Tree::Two("~", operand(tape, world, 0).into(), operand(tape, world, 0).into()),
        5 => match tape.below(3) {
            0 => operand(tape, world, 1),
            1 => Tree::Lit(Datum::Bool(tape.below(2) == 0)),
            _ => match way(tape, world) {
                Way(start, mut steps) => {
                    steps.retain(|step| !matches!(step, Go::Length | Go::Disc | Go::TypeId | Go::ReposId));
                    Tree::Default(Way(start, steps))
                }
            },
        },
        6 => Tree::Not(below(tape).into()),
        7 => Tree::And(vec![below(tape), below(tape), below(tape)]),
        8 => Tree::Or(vec![below(tape), below(tape), below(tape)]),
        _ => Tree::Two(tape.pick(&["==", ">"]), below(tape).into(), below(tape).into()),
    }
}

fn owned(datum: &Datum) -> OwnedValue {
    let properties = |pairs: &[(String, Datum)]| {
        pairs.iter().map(|(name, datum)| (name, owned(datum))).collect::<Properties>()
    };
    match datum {
        Datum::Bool(value) => (*value).into(),
        Datum::Int(value) => (*value).into(),
        Datum::Uint(value) => (*value).into(),
        Datum::Float(value) => (*value).into(),
        Datum::Str(text) => text.as_str().into(),
        Datum::Seq(elements) => elements.iter().map(owned).collect::<Vec<_>>().into(),
        Datum::Struct(name, members) => OwnedStruct {
            type_name: name.clone(),
            repository_id: name.as_deref().map(repository_id),
            members: properties(members),
        }
        .into(),
        Datum::List(pairs) => properties(pairs).into(),
        Datum::Enum(of, at) => {
            let (name, labels) = ENUMS[*of];
            let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
            let label = labels[*at].clone();
            let of = OwnedEnumType { name: name.into(), repository_id: repository_id(name), labels };
            OwnedEnum::new(Arc::new(of), &label).expect("it is a label").into()
        }
        Datum::Union { disc, labels, member, default, value } => OwnedUnion {
            type_name: None,
            repository_id: None,
            discriminator: owned(disc),
            selectors: labels.iter().map(owned).collect(),
            member: member.clone(),
            is_default_arm: *default,
            value: owned(value),
        }
        .into(),
        Datum::Pair(..) => panic!("pairs are parts of lists"),
    }
}

/// The event as the crate has it.
pub fn event(world: &World) -> Event {
    let properties = |pairs: &[(String, Datum)]| {
        pairs.iter().map(|(name, datum)| (name, owned(datum))).collect::<Properties>()
    };
    let event = Event::new(&*world.domain, &*world.kind, &*world.event)
        .with_variable_header(properties(&world.header))
        .with_filterable_data(properties(&world.data));
    match &world.rest {
        Some(rest) => event.with_remainder_of_body(owned(rest)),
        None => event,
    }
}
