//! Promises that are derived, and not known to be kept by the schedulers that there are.
//!
//! The published conversions say what a scheduler *can* make of a guarantee. Of a uniformly slower processor they hold for schedulers
//! that keep the deadlines that they announce if these can be kept at all: earliest deadline first with admission (`reservation`, `cbs`,
//! `tbs`, and slower processors below), and shares, which are served in slices of their quantum. A scheduler that orders by something
//! else owes one thing first and serves another; the paper calls such ones adaptable and does not show how.
//!
//! A limit makes a basic reservation hard, whose periods only the scheduler knows that laid them down. A limit whose own ones begin at
//! other instants has to withhold what comes when its period's amount is used up, though it may be the next period's. So it
//! keeps its promise if what it is given holds in *every* interval of its period's length, or if it lays its periods down as that
//! scheduler does: with the same numbers, by the same rule, and told the same.
//!
//! What rests on anything else is marked here, after the derivation and without changing it.

use crate::conversion::Grounds;
use crate::derivation::{Derivation, DerivedEdge, DerivedScheduler, NotDerived, derive};
use crate::guarantee::{Continuity, Guarantee, Hardness};
use crate::hierarchy::Hierarchy;
use crate::label::Label;
use crate::scheduler::{BelowSlower, Periods};
use serde::{Serialize, Serializer};
use std::collections::HashSet;
use std::fmt;

/// A derived guarantee that is not known to be kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proviso {
    /// The position of its edge among those of the hierarchy.
    pub edge: usize,
    /// The scheduler that gives the guarantee.
    pub parent: String,
    /// The scheduler or thread that receives it.
    pub child: String,
    /// Why not.
    pub reason: Doubt,
}

impl fmt::Display for Proviso {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}: {}", self.child, self.parent, self.reason)
    }
}

/// Why a guarantee is not known to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The scheduler orders by something else than the deadlines that a slower processor above it goes by.
    Order {
        /// Its kind.
        kind: &'static str,
    },
    /// A fixed-priority scheduler of several parents cannot tell which of them a deadline is for.
    SeveralParents,
    /// A limit's periods may begin at other instants than those of the basic reservation that it is given.
    Periods,
    /// What the scheduler makes it of is not known to be kept.
    Rests {
        /// The edge that is: its upper
        parent: String,
        /// and lower end.
        child: String,
    },
}

impl Doubt {
    /// What to do about it. None if something above has to be done first.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Doubt::Order { .. } => {
                Some("put a reservation, cbs or tbs scheduler below the slower processor instead")
            }
            Doubt::SeveralParents => Some("put the child below the slower processor itself"),
            Doubt::Periods => Some(
                "let the limit ask for an amount that every interval of its period holds (of x in y: x in 2y - x), or put it below a \
                 reservation, cbs or resource-kernel scheduler itself, with the same amount and period",
            ),
            Doubt::Rests { .. } => None,
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Order { kind } => write!(
                f,
                "derived by the published table, but {kind} does not order by the deadlines that the slower processor above it \
                 goes by, and is not known to keep this"
            ),
            Doubt::SeveralParents => f.write_str(
                "derived by the published table, but fixed-priority tells a slower processor no deadlines where it has \
                 several parents, and is not known to keep this",
            ),
            Doubt::Periods => f.write_str(
                "derived by the published table, but the limit is not told when the periods of what it is given begin, and \
                 where its own begin at other instants it is not known to keep this",
            ),
            Doubt::Rests { parent, child } => {
                write!(f, "it rests on what {child} receives from {parent}, which is not known to be kept")
            }
        }
    }
}

/// The sentence.
impl Serialize for Doubt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The guarantees of a derivation of `hierarchy` that are not known to be kept, in the order of the derivation. One of nothing is.
pub fn provisos(hierarchy: &Hierarchy, derivation: &Derivation) -> Vec<Proviso> {
    let mut doubted: HashSet<usize> = HashSet::new();
    let mut found = Vec::new();
    for edge in derivation.edges.iter().filter(|edge| *edge.label.guarantee() != Guarantee::Null) {
        if let Some(reason) = doubt(hierarchy, derivation, edge, &doubted) {
            doubted.insert(edge.edge);
            let DerivedEdge { edge, parent, child, .. } = edge.clone();
            found.push(Proviso { edge, parent, child, reason });
        }
    }
    found
}

/// The same of what can be derived of `hierarchy`, whether or not everybody receives what it needs.
///
/// # Panics
/// If the hierarchy makes no sense, which validated systems do.
pub fn provisos_of(hierarchy: &Hierarchy) -> Vec<Proviso> {
    match derive(hierarchy) {
        Ok(derivation) => provisos(hierarchy, &derivation),
        Err(NotDerived::Failed(failure)) => provisos(hierarchy, &failure.derived),
        Err(NotDerived::Malformed(faults)) => panic!("a validated system has sound hierarchies: {faults:?}"),
    }
}

fn doubt(
    hierarchy: &Hierarchy,
    derivation: &Derivation,
    edge: &DerivedEdge,
    doubted: &HashSet<usize>,
) -> Option<Doubt> {
    let above = derivation.schedulers.iter().find(|scheduler| scheduler.name == edge.parent)?;
    let used: Vec<&DerivedEdge> = inputs(above, &edge.because)
        .filter_map(|input| derivation.edges.iter().find(|edge| edge.edge == input))
        .collect();
    if let Some(shaky) = used.iter().find(|input| doubted.contains(&input.edge)) {
        return Some(Doubt::Rests { parent: shaky.parent.clone(), child: shaky.child.clone() });
    }
    let scheduler = hierarchy.schedulers.iter().find(|scheduler| scheduler.name == edge.parent)?;
    let kind = scheduler.algorithm.kind();
    if kind.periods == Periods::AsAbove {
        let given = used.first()?;
        return (!lasts_everywhere(given, edge) && !is_in_step(hierarchy, given, edge))
            .then_some(Doubt::Periods);
    }
    let is_slower = |input: &&DerivedEdge| matches!(input.label.absolute(), Guarantee::Resu(_));
    if !used.iter().any(is_slower) {
        return None;
    }
    match kind.below_slower {
        BelowSlower::Unknown => Some(Doubt::Order { kind: kind.name() }),
        BelowSlower::KeptUnderOneParent if above.edges.len() > 1 => Some(Doubt::SeveralParents),
        BelowSlower::Kept | BelowSlower::KeptUnderOneParent => None,
    }
}

/// Whether what a limit is given holds the amount that it gives in every interval of its period's length, whenever that begins.
fn lasts_everywhere(given: &DerivedEdge, gives: &DerivedEdge) -> bool {
    let everywhere = gives.label.guarantee().as_reservation().map(|limited| {
        Label::paced(limited.as_kind(Continuity::Continuous, Hardness::Soft), gives.label.pace())
    });
    everywhere.is_some_and(|everywhere| given.label.reach(&everywhere).is_some())
}

/// Whether a limit lays its periods down as who gives it a basic reservation: it has the same amount and period, by the same rule, and
/// nobody in between or beside it makes that one hear of other requests and other service.
fn is_in_step(hierarchy: &Hierarchy, given: &DerivedEdge, gives: &DerivedEdge) -> bool {
    let numbers = |edge: &DerivedEdge| match edge.label.absolute() {
        Guarantee::Reservation(reservation) => {
            Some((reservation.amount().clone(), reservation.period().clone()))
        }
        _ => None,
    };
    numbers(given) == numbers(gives) && passes_on_periods(hierarchy, &given.parent)
}

fn passes_on_periods(hierarchy: &Hierarchy, scheduler: &str) -> bool {
    let found = hierarchy.schedulers.iter().find(|candidate| candidate.name == scheduler);
    let edges = || hierarchy.edges.iter();
    match found.map(|scheduler| scheduler.algorithm.kind().periods) {
        Some(Periods::WhenOver | Periods::WhenUnsafe | Periods::AsAbove) => true,
        Some(Periods::PassedOn) => {
            let mut above = edges().filter(|edge| edge.child == scheduler);
            match (above.next(), above.next(), edges().filter(|edge| edge.parent == scheduler).count()) {
                (Some(only), None, 1) => passes_on_periods(hierarchy, &only.parent),
                _ => false,
            }
        }
        Some(Periods::Own) | None => false,
    }
}

/// The edges on which a guarantee of `scheduler` rests.
fn inputs<'d>(scheduler: &'d DerivedScheduler, because: &Grounds) -> impl Iterator<Item = usize> + 'd {
    let used = match because {
        Grounds::LowerPriority { .. } | Grounds::Nothing => 0..0,
        Grounds::HighestPriority { rank, .. } => *rank..*rank + 1,
        _ => 0..scheduler.accepted.len(),
    };
    let used = &scheduler.accepted[used];
    used.iter().filter_map(|accepted| scheduler.edges.get(accepted.input)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derivation::derive;

    /// The edges with a proviso of a slower processor with `below` under it: `(name, kind)` from the top down, and what each asks for.
    fn doubted(below: &[(&str, &str, &str)]) -> Vec<String> {
        doubted_under("bss-i", below)
    }

    /// The same below a root `B` of another kind.
    fn doubted_under(root: &str, below: &[(&str, &str, &str)]) -> Vec<String> {
        let mut schedulers = vec![serde_json::json!({"name": "B", "kind": root})];
        let mut edges = Vec::new();
        let mut parent = "B";
        for (name, kind, asks) in below {
            if *kind != "thread" {
                schedulers.push(serde_json::json!({"name": name, "kind": kind}));
            }
            let request = match asks.parse::<i32>() {
                _ if asks.is_empty() => serde_json::json!("nothing"),
                Ok(priority) => serde_json::json!({ "priority": priority }),
                Err(_) => serde_json::json!({ "guarantee": asks }),
            };
            edges.push(serde_json::json!({"parent": parent, "child": name, "request": request}));
            parent = name;
        }
        let hierarchy = serde_json::json!({
            "schedulers": schedulers, "threads": [{"name": "t"}], "edges": edges,
        });
        let hierarchy: Hierarchy = serde_json::from_value(hierarchy).expect("a hierarchy");
        let derivation = derive(&hierarchy).expect("it composes");
        let name = |proviso: Proviso| format!("{} -> {}", proviso.parent, proviso.child);
        provisos(&hierarchy, &derivation).into_iter().map(name).collect()
    }

    #[test]
    fn what_is_served_by_deadlines_below_a_slower_processor_is_known_to_be_kept() {
        for kind in ["reservation", "cbs"] {
            let chain =
                [("F", "fixed-priority", "RESU 0.5"), ("R", kind, "1"), ("t", "thread", "RESBH 1 10")];
            assert!(doubted(&chain).is_empty(), "{kind}");
        }
        let nested = [("P", "pshed", "RESU 0.5"), ("R", "tbs", "RESU 0.5"), ("t", "thread", "RESBS 1 10")];
        assert!(doubted(&nested).is_empty());
    }

    #[test]
    fn other_orders_are_not_and_neither_is_what_rests_on_them() {
        let kernel = [
            ("K", "resource-kernel", "RESU 0.5"),
            ("J", "limit", "RESBS 1 10"),
            ("t", "thread", "RESBH 1 10"),
        ];
        assert_eq!(doubted(&kernel), ["K -> J", "J -> t"]);
        let rialto = [("K", "rialto", "RESU 0.5"), ("t", "thread", "RESCS 1 10")];
        assert_eq!(doubted(&rialto), ["K -> t"]);
    }

    /// Of a limit between `above`, which gives it RESBx 10 20, and a thread that asks it for `asks`.
    fn limited(root: &str, given: &str, between: &[(&str, &str, &str)], asks: &str) -> Vec<String> {
        let mut chain: Vec<(&str, &str, &str)> = between.to_vec();
        match chain.first_mut() {
            Some(first) => {
                first.2 = given;
                chain.push(("L", "limit", "1"));
            }
            None => chain.push(("L", "limit", given)),
        }
        chain.push(("t", "thread", asks));
        doubted_under(root, &chain)
    }

    #[test]
    fn a_limit_knows_the_periods_of_whoever_begins_them_as_it_does() {
        for kind in ["reservation", "cbs", "resource-kernel"] {
            let given = "RESBH 10 20";
            assert!(limited(kind, given, &[], "").is_empty(), "{kind}");
            assert!(limited(kind, given, &[], "RESBH 10 20").is_empty(), "{kind}");
            assert!(limited(kind, given, &[("F", "fixed-priority", "")], "").is_empty(), "{kind}");
            // Other numbers have other periods, but for what every interval holds.
            assert_eq!(limited(kind, given, &[], "RESBH 5 20"), ["L -> t"]);
            assert_eq!(limited(kind, given, &[], "RESBH 20 40"), ["L -> t"]);
            assert!(limited(kind, given, &[], "RESBH 10 30").is_empty(), "Theorem 1");
            assert!(limited(kind, given, &[], "RESBH 10 40").is_empty(), "Theorem 1");
        }
        assert_eq!(limited("tbs", "RESBS 10 20", &[], ""), ["L -> t"]);
        assert!(limited("tbs", "RESBS 10 20", &[], "RESBH 10 30").is_empty());
        assert!(limited("rialto", "RESCS 10 20", &[], "").is_empty(), "every interval");
    }
}
