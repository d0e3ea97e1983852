//! Hierarchies: the guarantee on every edge, and whether all schedulers and threads receive what they need.

use super::{Complaint, Difference, same};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use talea_guarantee::derivation::{DerivedEdge, NotDerived, derive};
use talea_guarantee::exact::{Share, Span};
use talea_guarantee::guarantee::{Guarantee, Kind, Reservation};
use talea_guarantee::hierarchy::{Edge, Hierarchy, Scheduler, Thread};
use talea_guarantee::request::Request;
use talea_guarantee::scheduler::{Algorithm, Demand, SchedulerKind};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "note")]
    _note: String,
    root: String,
    nodes: BTreeMap<String, NodeRow>,
    edges: Vec<EdgeRow>,
    expect: Expectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeRow {
    kind: String,
    picks: Option<String>,
    quantum_ns: Option<u64>,
    requires: Option<Guarantee>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EdgeRow {
    from: String,
    to: String,
    priority: Option<i32>,
    weight: Option<NonZeroU32>,
    rate: Option<Share>,
    #[serde(rename = "type")]
    kind: Option<Kind>,
    x_ns: Option<Span>,
    y_ns: Option<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    valid: bool,
    edges: BTreeMap<String, Guarantee>,
    failing_node: Option<String>,
    reason: Option<String>,
}

pub(super) fn judge(case: &Case) -> Result<(), Complaint> {
    let hierarchy = hierarchy(case).map_err(Complaint::Unreadable)?;
    let expect = &case.expect;
    match derive(&hierarchy) {
        Err(malformed @ NotDerived::Malformed(_)) => Err(Complaint::Unreadable(malformed.to_string())),
        Ok(derivation) => {
            same("valid", &expect.valid, &true)?;
            same_edges(&expect.edges, &derivation.edges)?;
            absent("failing_node", expect.failing_node.as_ref())?;
            absent("reason", expect.reason.as_ref())
        }
        Err(NotDerived::Failed(failure)) => {
            same("valid", &expect.valid, &false)?;
            let first = &failure.findings[0];
            same_edges(&expect.edges, &failure.derived.edges[..first.after])?;
            same("failing_node", expect.failing_node.as_ref().unwrap_or(&"nobody".into()), &first.node)?;
            let reason = expect.reason.as_deref().unwrap_or("none");
            same("reason", &reason, &first.problem.word())
        }
    }
}

fn absent(at: &str, expected: Option<&String>) -> Result<(), Complaint> {
    match expected {
        None => Ok(()),
        Some(expected) => {
            let difference =
                Difference { at: at.into(), expected: expected.clone(), got: "nobody fails".into() };
            Err(Complaint::Differs(difference))
        }
    }
}

fn same_edges(expected: &BTreeMap<String, Guarantee>, derived: &[DerivedEdge]) -> Result<(), Complaint> {
    let name = |edge: &DerivedEdge| format!("{}->{}", edge.parent, edge.child);
    let got: BTreeMap<String, &Guarantee> =
        derived.iter().map(|edge| (name(edge), edge.label.guarantee())).collect();
    for edge in expected.keys().chain(got.keys()) {
        let text = |guarantee: Option<&Guarantee>| match guarantee {
            Some(guarantee) => guarantee.to_string(),
            None => "no guarantee".into(),
        };
        same(edge, &text(expected.get(edge)), &text(got.get(edge).copied()))?;
    }
    Ok(())
}

/// The case as a hierarchy. The root is stated in the file and found by us, so they have to agree.
fn hierarchy(case: &Case) -> Result<Hierarchy, String> {
    let (mut schedulers, mut threads) = (Vec::new(), Vec::new());
    for (name, row) in &case.nodes {
        match row.kind.as_str() {
            "THREAD" => threads.push(Thread { name: name.clone(), requires: row.requires.clone() }),
            _ => schedulers.push(Scheduler { name: name.clone(), algorithm: algorithm(row)? }),
        }
    }
    let edges = case.edges.iter().map(|row| {
        let parent = case.nodes.get(&row.from).ok_or(format!("there is no node {}", row.from))?;
        let request = request(row, &algorithm(parent)?)?;
        Ok(Edge { parent: row.from.clone(), child: row.to.clone(), request })
    });
    let edges = edges.collect::<Result<Vec<_>, String>>()?;
    let is_root = !edges.iter().any(|edge| edge.child == case.root);
    if !is_root {
        return Err(format!("the root {} has a parent", case.root));
    }
    Ok(Hierarchy { processors: NonZeroU32::MIN, given: Guarantee::All, schedulers, threads, edges })
}

fn algorithm(row: &NodeRow) -> Result<Algorithm, String> {
    let kind = match row.kind.as_str() {
        "FP" => SchedulerKind::FIXED_PRIORITY,
        "JOIN" => SchedulerKind::JOIN,
        "LIMIT" => SchedulerKind::LIMIT,
        "RES" => SchedulerKind::RESERVATION,
        "SFQ" => SchedulerKind::SFQ,
        "EEVDF" => SchedulerKind::EEVDF,
        "TS" => SchedulerKind::TIME_SHARING,
        "CBS" => SchedulerKind::CBS,
        "SPRING" => SchedulerKind::SPRING,
        "TBS" => SchedulerKind::TBS,
        "RK" => SchedulerKind::RESOURCE_KERNEL,
        "RIALTO" => SchedulerKind::RIALTO,
        "BSSI" => SchedulerKind::BSS_I,
        "PSHED" => SchedulerKind::PSHED,
        "LOTTERY" => SchedulerKind::LOTTERY,
        "STRIDE" => SchedulerKind::STRIDE,
        other => return Err(format!("unknown kind of node \"{other}\"")),
    };
    let algorithm = Algorithm::new(kind, &row.quantum_ns.map_or_else(Span::zero, Span::from_nanos));
    match (algorithm.quantum(), row.quantum_ns) {
        (Some(_), None) => Err(format!("{} lacks its quantum", row.kind)),
        _ if kind.chooses_parent() => Ok(algorithm.taking(row.picks.clone())),
        _ => Ok(algorithm),
    }
}

/// The one parameter that the parent wants; files name it in several ways.
fn request(row: &EdgeRow, parent: &Algorithm) -> Result<Request, String> {
    let lacks = |what: &str| format!("{}->{} lacks its {what}", row.from, row.to);
    match parent.kind().demand() {
        Demand::Nothing | Demand::AtMost(_) => Ok(Request::Nothing),
        Demand::Priority => Ok(Request::Priority(row.priority.ok_or(lacks("priority"))?)),
        Demand::Weight => Ok(Request::Weight(row.weight.ok_or(lacks("weight"))?)),
        Demand::Guarantee([Kind::Resu]) => {
            Ok(Request::Guarantee(Guarantee::Resu(row.rate.clone().ok_or(lacks("rate"))?)))
        }
        Demand::Guarantee(kinds) | Demand::GuaranteeIfAny(kinds) => {
            let kind = row.kind.unwrap_or(kinds[0]);
            let (continuity, hardness) = kind.reservation().ok_or(lacks("type"))?;
            let (amount, period) = row.x_ns.clone().zip(row.y_ns.clone()).ok_or(lacks("x_ns and y_ns"))?;
            let reservation = Reservation::new(continuity, hardness, amount, period);
            Ok(Request::Guarantee(reservation.map_err(|error| error.to_string())?.into()))
        }
    }
}
