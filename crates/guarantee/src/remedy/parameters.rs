//! Remedies that change numbers: what children ask for, and quanta.

use super::trial::{Trial, Way};
use super::{Change, LEAST_QUANTUM_NS};
use crate::exact::{Ratio, Share, Span, ratio};
use crate::guarantee::{Guarantee, Reservation};
use crate::hierarchy::{Graph, Node, NodeId};
use crate::label::Label;
use crate::request::Request;
use num_traits::{One, Signed, ToPrimitive, Zero};
use std::collections::BTreeSet;
use std::num::NonZeroU32;

/// The grid on which rates are looked for.
const RATES: u64 = 10_000;

/// Weights are not looked for above this.
const WEIGHT_MAX: u64 = 1_000_000;

/// A whole number of nanoseconds, rounded down; longer times are not looked for.
fn nanos(span: &Span) -> Option<u64> {
    span.nanos().to_integer().to_u64().filter(|nanos| *nanos <= i64::MAX as u64)
}

fn request(graph: &Graph<'_>, edge: usize, to: Request) -> Change {
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

/// The nearest smaller weight of the heaviest child that does not fail, under every scheduler above those in question.
pub(super) fn lighten_siblings(trial: &mut Trial<'_, '_>) {
    for node in trial.lineage() {
        let graph = trial.graph();
        let weighed = graph.below(node).iter().filter_map(|edge| match graph.request(*edge) {
            Request::Weight(weight) if !trial.is_failing(graph.child(*edge)) => Some((*weight, *edge)),
            _ => None,
        });
        // Of several as heavy, the first.
        let heaviest = weighed.max_by_key(|(weight, edge)| (*weight, std::cmp::Reverse(*edge)));
        if let Some((weight, edge)) = heaviest {
            change_weight(trial, edge, weight);
        }
    }
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
pub(super) fn ask_for_it(trial: &mut Trial<'_, '_>, thread: NodeId, required: &Label) {
    let edge = trial.graph().above(thread)[0];
    let Request::Guarantee(asked) = trial.graph().request(edge) else { return };
    if asked.kind() == required.guarantee().kind() {
        let distance = (required.guarantee().share().ratio() - asked.share().ratio()).abs();
        let change = request(trial.graph(), edge, Request::Guarantee(required.guarantee().clone()));
        trial.suggest(distance, vec![change]);
    }
}

/// The nearest other request of every edge above those in question, and the nearest other quantum of every scheduler there.
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

fn change_quantum(trial: &mut Trial<'_, '_>, node: NodeId) {
    let Node::Scheduler(algorithm) = trial.graph().node(node) else { return };
    let Some(from) = algorithm.quantum().cloned() else { return };
    let Some(near) = nanos(&from) else { return };
    let scheduler = trial.graph().name(node).to_string();
    let change = |to: u64| {
        let (scheduler, from, to) = (scheduler.clone(), from.clone(), Span::from_nanos(to));
        vec![Change::Quantum { scheduler, from, to }]
    };
    if near <= LEAST_QUANTUM_NS {
        return;
    }
    if let Some(to) = trial.nearest(near, LEAST_QUANTUM_NS, Way::Demanding, change) {
        trial.suggest(relative(near, to), change(to));
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
    let change = request(graph, edge, Request::Priority(top));
    trial.suggest(Ratio::one(), vec![change]);
}

fn change_weight(trial: &mut Trial<'_, '_>, edge: usize, weight: NonZeroU32) {
    let near = u64::from(weight.get());
    let graph = trial.graph();
    let change = |to: u64| {
        let to = u32::try_from(to).ok().and_then(NonZeroU32::new).expect("weights are looked for from 1 on");
        vec![request(graph, edge, Request::Weight(to))]
    };
    for far in [1, WEIGHT_MAX.max(near)] {
        if let Some(to) = trial.nearest(near, far, Way::Demanding, change) {
            trial.suggest(relative(near, to), change(to));
        }
    }
}

fn change_rate(trial: &mut Trial<'_, '_>, edge: usize, from: &Share) {
    let steps = (from.ratio() * Ratio::from_integer(RATES.into())).to_integer().to_u64();
    let near = steps.expect("a share has at most all the steps");
    for far in [1, RATES] {
        search(trial, edge, (near, far), &rate);
    }
}

fn change_reservation(trial: &mut Trial<'_, '_>, edge: usize, reservation: &Reservation) {
    let Some((amount, period)) = nanos(reservation.amount()).zip(nanos(reservation.period())) else { return };
    search(trial, edge, (amount, period), &|amount| with_amount(reservation, amount));
    search(trial, edge, (period, amount.max(1)), &|period| with_period(reservation, period));
}

/// Suggests the number nearest to the first of `range`, on the way to the second, with which what `make` makes of it is
/// a request that helps.
fn search(trial: &mut Trial<'_, '_>, edge: usize, (near, far): (u64, u64), make: Make<'_>) {
    let graph = trial.graph();
    let change = |to: u64| {
        let made = make(to).map(|to| request(graph, edge, Request::Guarantee(to)));
        made.into_iter().collect::<Vec<_>>()
    };
    if let Some(to) = trial.nearest(near, far, Way::Demanding, change) {
        trial.suggest(relative(near, to), change(to));
    }
}

/// The largest reservation of each child that fits, the shortest period, and all amounts shrunk alike.
///
/// A thread that requires just what it asks for has to require less then.
pub(super) fn shrink_children(trial: &mut Trial<'_, '_>, node: NodeId) {
    let graph = trial.graph();
    let load = load(graph, node);
    let mut all = Vec::new();
    for edge in graph.below(node) {
        let Request::Guarantee(asked) = graph.request(*edge) else { continue };
        match asked {
            Guarantee::Reservation(asked) => {
                let Some((amount, period)) = nanos(asked.amount()).zip(nanos(asked.period())) else {
                    continue;
                };
                fit(trial, *edge, (amount, 1), &|amount| with_amount(asked, amount));
                let longest = period.saturating_mul(1000).min(i64::MAX as u64);
                fit(trial, *edge, (period, longest), &|period| with_period(asked, period));
                fit_cycle(trial, *edge, period, &|period| with_period(asked, period));
                let part = (Ratio::from_integer(amount.into()) / &load).to_integer().to_u64();
                all.extend(
                    part.filter(|amount| *amount > 0)
                        .and_then(|amount| with_amount(asked, amount))
                        .map(|to| (*edge, to)),
                );
            }
            Guarantee::Resu(asked) => {
                let steps = (asked.ratio() * Ratio::from_integer(RATES.into())).ceil().to_integer().to_u64();
                fit(trial, *edge, (steps.expect("a share has at most all the steps"), 1), &rate);
                let part = Share::new(asked.ratio() / &load).map(Guarantee::Resu);
                all.extend(part.map(|to| (*edge, to)));
            }
            _ => {}
        }
    }
    if load > Ratio::one() && all.len() > 1 {
        let changes = all.into_iter().flat_map(|(edge, to)| shrunk(graph, edge, to)).collect();
        trial.suggest((&load - Ratio::one()) / &load, changes);
    }
}

/// The sum of what the children of a node ask for.
fn load(graph: &Graph<'_>, node: NodeId) -> Ratio {
    let shares = graph.below(node).iter().map(|edge| match graph.request(*edge) {
        Request::Guarantee(asked) => asked.share().ratio().clone(),
        _ => Ratio::zero(),
    });
    shares.sum()
}

/// Suggests the number nearest to the first of `range`, on the way to the second, with which what `make` makes of it
/// can be admitted.
fn fit(trial: &mut Trial<'_, '_>, edge: usize, (near, far): (u64, u64), make: Make<'_>) {
    let graph = trial.graph();
    let change = |to: u64| make(to).map(|to| shrunk(graph, edge, to)).unwrap_or_default();
    if let Some(to) = trial.nearest(near, far, Way::Easing, change) {
        trial.suggest(relative(near, to), change(to));
    }
}

/// Suggests the shortest longer period of a sibling with which the child can be admitted: a plan may be refused for the length of its
/// cycle, which that does not change.
fn fit_cycle(trial: &mut Trial<'_, '_>, edge: usize, period: u64, make: Make<'_>) {
    let graph = trial.graph();
    let siblings = graph.below(graph.parent(edge)).iter();
    let own = siblings.filter_map(|sibling| match graph.request(*sibling) {
        Request::Guarantee(Guarantee::Reservation(reservation)) => nanos(reservation.period()),
        _ => None,
    });
    let longer: BTreeSet<u64> = own.filter(|other| *other > period).collect();
    for to in longer {
        let changes = make(to).map(|to| shrunk(graph, edge, to)).unwrap_or_default();
        if trial.suggest(relative(period, to), changes) {
            return;
        }
    }
}

/// The changes with which the child of `edge` asks for `to`, and requires no more than it if it did not before.
fn shrunk(graph: &Graph<'_>, edge: usize, to: Guarantee) -> Vec<Change> {
    let child = graph.child(edge);
    let requirement = match (graph.node(child), graph.request(edge)) {
        (Node::Thread(Some(required)), Request::Guarantee(asked)) if required == asked => {
            let (thread, from, to) = (graph.name(child).into(), required.clone(), to.clone());
            Some(Change::Requirement { thread, from, to })
        }
        _ => None,
    };
    std::iter::once(request(graph, edge, Request::Guarantee(to))).chain(requirement).collect()
}
