//! Remedies that change numbers: what children ask for, and quanta.

use super::trial::Trial;
use super::{Change, Class};
use crate::exact::{Ratio, Share, Span, ratio};
use crate::guarantee::{Guarantee, Reservation};
use crate::hierarchy::{Node, Request};
use crate::label::Label;
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::num::NonZeroU32;

/// The grid on which rates are looked for.
const RATES: u64 = 10_000;

/// Weights are not looked for above this.
const WEIGHT_MAX: u64 = 1_000_000;

/// A whole number of nanoseconds, rounded down; longer times are not looked for.
fn nanos(span: &Span) -> Option<u64> {
    span.nanos().to_integer().to_u64().filter(|nanos| *nanos <= i64::MAX as u64)
}

fn request(trial: &Trial<'_, '_>, edge: usize, to: Request) -> Change {
    let graph = trial.graph();
    Change::Request {
        edge,
        parent: graph.name(graph.parent(edge)).into(),
        child: graph.name(graph.child(edge)).into(),
        from: graph.request(edge).clone(),
        to,
    }
}

fn with_amount(reservation: &Reservation, amount: u64) -> Option<Guarantee> {
    let amount = Span::from_nanos(amount);
    let (continuity, hardness) = (reservation.continuity(), reservation.hardness());
    let changed = Reservation::new(continuity, hardness, amount, reservation.period().clone());
    changed.ok().map(Guarantee::from)
}

fn with_period(reservation: &Reservation, period: u64) -> Option<Guarantee> {
    let period = Span::from_nanos(period);
    let (continuity, hardness) = (reservation.continuity(), reservation.hardness());
    Reservation::new(continuity, hardness, reservation.amount().clone(), period).ok().map(Guarantee::from)
}

/// What a guarantee with one other number asks for.
type Make<'m> = &'m dyn Fn(u64) -> Option<Guarantee>;

/// A share on the grid of rates.
fn rate(steps: u64) -> Option<Guarantee> {
    Share::new(ratio(steps, RATES)).map(Guarantee::Resu)
}

fn relative(from: u64, to: u64) -> Ratio {
    ratio(from.abs_diff(to), from.max(1))
}

/// The child asks for exactly what it requires.
pub(super) fn ask_for_it(trial: &mut Trial<'_, '_>, required: &Label) {
    let edge = trial.graph().above(trial.node())[0];
    let Request::Guarantee(asked) = trial.graph().request(edge) else { return };
    if asked.kind() == required.guarantee().kind() {
        let distance = (required.guarantee().share().ratio() - asked.share().ratio()).abs();
        let change = request(trial, edge, Request::Guarantee(required.guarantee().clone()));
        trial.suggest(Class::Parameter, distance, vec![change]);
    }
}

/// The nearest other request of every edge above the node, and the nearest other quantum of every scheduler there.
pub(super) fn change_ancestors(trial: &mut Trial<'_, '_>) {
    for node in trial.lineage() {
        change_quantum(trial, node);
        for edge in trial.graph().above(node).to_vec() {
            match trial.graph().request(edge).clone() {
                Request::Nothing => {}
                Request::Priority(_) => raise_priority(trial, edge),
                Request::Weight(weight) => change_weight(trial, edge, weight),
                Request::Guarantee(Guarantee::Resu(rate)) => change_rate(trial, edge, &rate),
                Request::Guarantee(Guarantee::Reservation(reservation)) => {
                    change_reservation(trial, edge, &reservation);
                }
                Request::Guarantee(_) => {}
            }
        }
    }
}

fn change_quantum(trial: &mut Trial<'_, '_>, node: crate::hierarchy::NodeId) {
    let Node::Scheduler(algorithm) = trial.graph().node(node) else { return };
    let Some(from) = algorithm.quantum().cloned() else { return };
    let Some(near) = nanos(&from) else { return };
    let scheduler = trial.graph().name(node).to_string();
    let change = |to: u64| {
        let (scheduler, from, to) = (scheduler.clone(), from.clone(), Span::from_nanos(to));
        vec![Change::Quantum { scheduler, from, to }]
    };
    if let Some(to) = trial.nearest(near, 1, change) {
        trial.suggest(Class::Parameter, relative(near, to), change(to));
    }
}

fn raise_priority(trial: &mut Trial<'_, '_>, edge: usize) {
    let graph = trial.graph();
    let siblings = graph.below(graph.parent(edge)).iter().map(|sibling| graph.request(*sibling));
    let priorities = siblings.filter_map(|sibling| match sibling {
        Request::Priority(priority) => Some(*priority),
        _ => None,
    });
    let Some(top) = priorities.max().and_then(|top| top.checked_add(1)) else { return };
    let change = request(trial, edge, Request::Priority(top));
    trial.suggest(Class::Parameter, Ratio::one(), vec![change]);
}

fn change_weight(trial: &mut Trial<'_, '_>, edge: usize, weight: NonZeroU32) {
    let near = u64::from(weight.get());
    let template = request(trial, edge, Request::Weight(weight));
    let change = |to: u64| {
        let to = u32::try_from(to).ok().and_then(NonZeroU32::new).expect("weights are looked for from 1 on");
        vec![with_request(&template, Request::Weight(to))]
    };
    for far in [1, WEIGHT_MAX.max(near)] {
        if let Some(to) = trial.nearest(near, far, change) {
            trial.suggest(Class::Parameter, relative(near, to), change(to));
        }
    }
}

fn with_request(template: &Change, request: Request) -> Change {
    match template.clone() {
        Change::Request { edge, parent, child, from, .. } => {
            Change::Request { edge, parent, child, from, to: request }
        }
        other => other,
    }
}

fn change_rate(trial: &mut Trial<'_, '_>, edge: usize, from: &Share) {
    let steps = (from.ratio() * Ratio::from_integer(RATES.into())).to_integer().to_u64();
    let near = steps.expect("a share has at most all the steps");
    let template = request(trial, edge, Request::Nothing);
    for far in [0, RATES] {
        search(trial, &template, (near, far), &rate);
    }
}

fn change_reservation(trial: &mut Trial<'_, '_>, edge: usize, reservation: &Reservation) {
    let Some((amount, period)) = nanos(reservation.amount()).zip(nanos(reservation.period())) else { return };
    let template = request(trial, edge, Request::Nothing);
    search(trial, &template, (amount, period), &|amount| with_amount(reservation, amount));
    search(trial, &template, (period, amount.max(1)), &|period| with_period(reservation, period));
}

/// Suggests the number nearest to the first of `range`, on the way to the second, with which what `make` makes of it is
/// a request that helps.
fn search(trial: &mut Trial<'_, '_>, template: &Change, (near, far): (u64, u64), make: Make<'_>) {
    let change = |to: u64| match make(to) {
        Some(guarantee) => vec![with_request(template, Request::Guarantee(guarantee))],
        None => Vec::new(),
    };
    if let Some(to) = trial.nearest(near, far, change) {
        trial.suggest(Class::Parameter, relative(near, to), change(to));
    }
}

/// The largest reservation of each child that fits, the shortest period, and all amounts shrunk alike.
///
/// A thread that requires just what it asks for has to require less then.
pub(super) fn shrink_children(trial: &mut Trial<'_, '_>) {
    let children = trial.graph().below(trial.node()).to_vec();
    let mut all = (Vec::new(), Class::Parameter);
    let load = load(trial);
    for edge in children {
        let Request::Guarantee(asked) = trial.graph().request(edge).clone() else { continue };
        match &asked {
            Guarantee::Reservation(reservation) => {
                let Some((amount, period)) = nanos(reservation.amount()).zip(nanos(reservation.period()))
                else {
                    continue;
                };
                fit(trial, edge, &asked, (amount, 0), &|amount| with_amount(reservation, amount));
                let longest = period.saturating_mul(1000).min(i64::MAX as u64);
                fit(trial, edge, &asked, (period, longest), &|period| with_period(reservation, period));
                let share = (Ratio::from_integer(amount.into()) / &load).to_integer().to_u64();
                collect(
                    trial,
                    edge,
                    &asked,
                    share.and_then(|amount| with_amount(reservation, amount)),
                    &mut all,
                );
            }
            Guarantee::Resu(own) => {
                let steps = (own.ratio() * Ratio::from_integer(RATES.into())).ceil().to_integer().to_u64();
                let near = steps.expect("a share has at most all the steps");
                fit(trial, edge, &asked, (near, 0), &rate);
                let part = Share::new(own.ratio() / &load).map(Guarantee::Resu);
                collect(trial, edge, &asked, part, &mut all);
            }
            _ => {}
        }
    }
    let (changes, class) = all;
    if load > Ratio::one() && changes.len() > 1 {
        trial.suggest(class, (&load - Ratio::one()) / &load, changes);
    }
}

/// The sum of what the children of the node ask for.
fn load(trial: &Trial<'_, '_>) -> Ratio {
    let graph = trial.graph();
    let shares = graph.below(trial.node()).iter().map(|edge| match graph.request(*edge) {
        Request::Guarantee(asked) => asked.share().ratio().clone(),
        _ => Ratio::zero(),
    });
    shares.sum()
}

fn collect(
    trial: &Trial<'_, '_>,
    edge: usize,
    asked: &Guarantee,
    to: Option<Guarantee>,
    (changes, class): &mut (Vec<Change>, Class),
) {
    if let Some(to) = to {
        let (own, own_class) = less(trial, edge, asked, to);
        changes.extend(own);
        *class = own_class.max(*class);
    }
}

fn fit(trial: &mut Trial<'_, '_>, edge: usize, asked: &Guarantee, (near, far): (u64, u64), make: Make<'_>) {
    let class = less(trial, edge, asked, asked.clone()).1;
    let graph = trial.graph();
    let templates = less_of(graph, edge, asked);
    let change = |to: u64| make(to).map(&templates).unwrap_or_default();
    if let Some(to) = trial.nearest(near, far, change) {
        trial.suggest(class, relative(near, to), change(to));
    }
}

/// The changes with which the child of `edge` asks for `to`.
fn less(trial: &Trial<'_, '_>, edge: usize, asked: &Guarantee, to: Guarantee) -> (Vec<Change>, Class) {
    let changes = less_of(trial.graph(), edge, asked)(to);
    let class = if changes.len() > 1 { Class::Requirement } else { Class::Parameter };
    (changes, class)
}

fn less_of<'a>(
    graph: &'a crate::hierarchy::Graph<'_>,
    edge: usize,
    asked: &'a Guarantee,
) -> impl Fn(Guarantee) -> Vec<Change> + 'a {
    move |to| {
        let (parent, child) = (graph.name(graph.parent(edge)), graph.name(graph.child(edge)));
        let mut changes = vec![Change::Request {
            edge,
            parent: parent.into(),
            child: child.into(),
            from: graph.request(edge).clone(),
            to: Request::Guarantee(to.clone()),
        }];
        if let Node::Thread(Some(required)) = graph.node(graph.child(edge))
            && required == asked
        {
            changes.push(Change::Requirement { thread: child.into(), from: required.clone(), to });
        }
        changes
    }
}
