//! Remedies that change who schedules how.

use super::Change;
use super::trial::{Trial, Way};
use crate::exact::{Ratio, Share, Span, ratio};
use crate::guarantee::{Continuity, Guarantee, Hardness, Kind, Reservation};
use crate::hierarchy::{Graph, Node, NodeId};
use crate::label::Label;
use crate::request::Request;
use crate::scheduler::{Algorithm, Demand};
use num_traits::{One, ToPrimitive};
use std::num::NonZeroU32;

/// The quantum of a scheduler that had none before.
const QUANTUM_MS: u64 = 10;

/// The period of a reservation under a scheduler that has none yet.
const PERIOD_NS: u64 = 10_000_000;

/// The grid on which rates are looked for.
const STEPS: u64 = 10_000;

/// Joins take from other parents.
pub(super) fn rearrange(trial: &mut Trial<'_, '_>) {
    for node in trial.lineage() {
        let graph = trial.graph();
        let Node::Scheduler(algorithm) = graph.node(node) else { continue };
        let Some(takes) = algorithm.takes() else { continue };
        for edge in graph.above(node) {
            let parent = graph.name(graph.parent(*edge));
            if parent != takes {
                let change = Change::Takes { join: graph.name(node).into(), parent: parent.into() };
                trial.suggest(Ratio::one(), vec![change]);
            }
        }
    }
}

/// A limit above a thread that requires a hard basic reservation. Where its periods may begin at other instants than those of what it
/// is given, this has to hold in every interval: what is asked for above it then has a shorter period, too.
pub(super) fn put_a_limit(trial: &mut Trial<'_, '_>, thread: NodeId, required: &Label) {
    let graph = trial.graph();
    if required.guarantee().kind() != Kind::Resbh {
        return;
    }
    let edge = graph.above(thread)[0];
    let (parent, child) = (graph.name(graph.parent(edge)), graph.name(thread));
    let free = |name: &String| graph.named(name).is_none();
    let names = std::iter::once(format!("{child}-limit"))
        .chain((2_usize..).map(|number| format!("{child}-limit-{number}")));
    let limit = Change::Limit {
        edge,
        parent: parent.into(),
        child: child.into(),
        name: names.into_iter().find(free).expect("there are more names than schedulers"),
        request: required.guarantee().clone(),
    };
    if trial.suggest(Ratio::one(), vec![limit.clone()]) {
        return;
    }
    for above in trial.lineage().into_iter().flat_map(|node| graph.above(node)) {
        let Request::Guarantee(Guarantee::Reservation(asked)) = graph.request(*above) else { continue };
        let nanos = |span: &Span| span.nanos().to_integer().to_u64().filter(|nanos| *nanos > 0);
        let Some((amount, period)) = nanos(asked.amount()).zip(nanos(asked.period())) else { continue };
        let changes = |period: u64| {
            let (continuity, hardness) = (asked.continuity(), asked.hardness());
            let shorter =
                Reservation::new(continuity, hardness, asked.amount().clone(), Span::from_nanos(period));
            let asks = |to: Reservation| under_limit(graph, *above, &limit, to.into());
            shorter.ok().map(asks).into_iter().flatten().collect::<Vec<_>>()
        };
        if let Some(to) = trial.nearest(period, amount, Way::Demanding, changes) {
            trial.suggest(Ratio::from_integer(2.into()), changes(to));
        }
    }
}

/// The limit, and the child of `above`, which is the limit itself where that stands there, asks for `to`.
fn under_limit(graph: &Graph<'_>, above: usize, limit: &Change, to: Guarantee) -> [Change; 2] {
    let child = match limit {
        Change::Limit { edge, name, .. } if *edge == above => name.clone(),
        _ => graph.name(graph.child(above)).into(),
    };
    let (parent, from) = (graph.name(graph.parent(above)).into(), graph.request(above).clone());
    [limit.clone(), Change::Request { edge: above, parent, child, from, to: Request::Guarantee(to) }]
}

/// Another algorithm in the place of those in question and of any scheduler above them.
pub(super) fn other_algorithms(trial: &mut Trial<'_, '_>) {
    for (steps, node) in trial.lineage().into_iter().enumerate() {
        let Node::Scheduler(from) = trial.graph().node(node) else { continue };
        let quantum = from.quantum().cloned().unwrap_or_else(|| Span::from_millis(QUANTUM_MS));
        for to in Algorithm::every(&quantum) {
            // Of those that promise the same one is enough to look at.
            if to.kind().alike.is_some() || to.kind() == from.kind() {
                continue;
            }
            if let Some(requests) = adapted(trial, node, &to) {
                let scheduler = trial.graph().name(node).into();
                let distance = Ratio::from_integer((1 + steps + requests.len()).into());
                let mut changes = vec![Change::Algorithm { scheduler, from: from.clone(), to }];
                changes.extend(requests);
                trial.suggest(distance, changes);
            }
        }
    }
}

/// The node under another scheduler, asking it for as little as helps.
pub(super) fn move_elsewhere(trial: &mut Trial<'_, '_>, node: NodeId) {
    let graph = trial.graph();
    let [edge] = *graph.above(node) else { return };
    let from = graph.parent(edge);
    for parent in graph.schedulers() {
        let Node::Scheduler(algorithm) = graph.node(parent) else { continue };
        if parent == from || graph.is_below(parent, node) || algorithm.kind().has_one_child() {
            continue;
        }
        let change = |request: Option<Request>| -> Vec<Change> {
            let (child, from, to) =
                (graph.name(node).into(), graph.name(from).into(), graph.name(parent).into());
            request.map(|request| Change::Move { edge, child, from, to, request }).into_iter().collect()
        };
        let siblings: Vec<&Request> =
            graph.below(parent).iter().map(|sibling| graph.request(*sibling)).collect();
        let request = match algorithm.kind().demand() {
            Demand::Nothing => Some(Request::Nothing),
            Demand::Weight => Some(Request::Weight(NonZeroU32::MIN)),
            Demand::Priority => {
                let lowest = siblings.iter().filter_map(|sibling| priority(sibling)).min();
                lowest.unwrap_or(1).checked_sub(1).map(Request::Priority)
            }
            Demand::Guarantee(kinds) | Demand::GuaranteeIfAny(kinds) => {
                let period = siblings.iter().filter_map(|sibling| period(sibling)).min().unwrap_or(PERIOD_NS);
                let far = if kinds[0] == Kind::Resu { STEPS } else { period };
                let least =
                    trial.nearest(0, far, Way::Demanding, |amount| change(asking(kinds[0], amount, period)));
                least.and_then(|amount| asking(kinds[0], amount, period))
            }
            Demand::AtMost(_) => None,
        };
        if request.is_some() {
            trial.suggest(Ratio::from_integer(2.into()), change(request));
        }
    }
}

fn priority(request: &Request) -> Option<i32> {
    match request {
        Request::Priority(priority) => Some(*priority),
        _ => None,
    }
}

fn period(request: &Request) -> Option<u64> {
    match request {
        Request::Guarantee(Guarantee::Reservation(reservation)) => {
            reservation.period().nanos().to_integer().to_u64().filter(|period| *period > 0)
        }
        _ => None,
    }
}

/// A request for `amount` of `period`, or for so many steps of a rate.
fn asking(kind: Kind, amount: u64, period: u64) -> Option<Request> {
    let guarantee = match kind.reservation() {
        None => Guarantee::Resu(Share::new(ratio(amount, STEPS))?),
        Some((continuity, hardness)) => {
            let (amount, period) = (Span::from_nanos(amount), Span::from_nanos(period));
            Reservation::new(continuity, hardness, amount, period).ok()?.into()
        }
    };
    Some(Request::Guarantee(guarantee))
}

/// What the children of `node` ask for if it is a `to`; none if what they ask for cannot be said so.
fn adapted(trial: &Trial<'_, '_>, node: NodeId, to: &Algorithm) -> Option<Vec<Change>> {
    let graph = trial.graph();
    let edges = graph.below(node);
    let weights = edges.iter().map(|edge| match graph.request(*edge) {
        Request::Weight(weight) => u64::from(weight.get()),
        _ => 0,
    });
    let sum: u64 = weights.sum();
    let mut changes = Vec::new();
    for (position, edge) in edges.iter().enumerate() {
        let from = graph.request(*edge);
        let request = adapt(from, to.kind().demand(), position, edges.len(), sum)?;
        if request != *from {
            let (parent, child) = (graph.name(node).into(), graph.name(graph.child(*edge)).into());
            changes.push(Change::Request { edge: *edge, parent, child, from: from.clone(), to: request });
        }
    }
    Some(changes)
}

fn adapt(from: &Request, demand: Demand, position: usize, children: usize, sum: u64) -> Option<Request> {
    match (demand, from) {
        (Demand::Nothing, _) => Some(Request::Nothing),
        (Demand::Priority, Request::Priority(_)) | (Demand::Weight, Request::Weight(_)) => Some(from.clone()),
        // The first child is the most important one; there is nothing else to go by.
        (Demand::Priority, _) => i32::try_from(children - position).ok().map(Request::Priority),
        (Demand::Guarantee([Kind::Resu]), Request::Nothing | Request::Priority(_)) => {
            let part = Share::new(ratio(1, children as u64));
            part.map(|rate| Request::Guarantee(Guarantee::Resu(rate)))
        }
        (Demand::Weight, Request::Nothing | Request::Priority(_)) => Some(Request::Weight(NonZeroU32::MIN)),
        (Demand::Guarantee(kinds) | Demand::GuaranteeIfAny(kinds), Request::Guarantee(guarantee)) => {
            of_kind(guarantee, kinds).map(Request::Guarantee)
        }
        (Demand::Guarantee([Kind::Resu]), Request::Weight(weight)) => {
            let part = Ratio::new(weight.get().into(), sum.into());
            Share::new(part).map(|rate| Request::Guarantee(Guarantee::Resu(rate)))
        }
        (Demand::AtMost(kind), Request::Guarantee(guarantee)) => {
            of_kind(guarantee, &[kind]).map(Request::Guarantee)
        }
        (Demand::AtMost(_), Request::Nothing) => Some(Request::Nothing),
        _ => None,
    }
}

/// The same amount and period as a reservation of the first of `kinds`, or of its own kind if that is among them.
fn of_kind(guarantee: &Guarantee, kinds: &[Kind]) -> Option<Guarantee> {
    if kinds.contains(&guarantee.kind()) {
        return Some(guarantee.clone());
    }
    let (continuity, hardness): (Continuity, Hardness) = kinds[0].reservation()?;
    Some(guarantee.as_reservation()?.as_kind(continuity, hardness).into())
}
