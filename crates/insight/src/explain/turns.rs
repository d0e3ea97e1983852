//! What would help where schedulers of a hierarchy gave the processor to others, in words.

use super::{Blamed, Explanation, Explanations};
use talea_guarantee::guarantee::{Guarantee, Hardness};
use talea_guarantee::scheduler::{Asks, Parameter, SchedulerKind};
use talea_record::EdgeEntry;

impl Explanations {
    /// Who is below an edge: `video below RES`.
    pub(super) fn edge_name(&self, edge: usize) -> String {
        match self.metadata.edges.get(edge) {
            Some(entry) => format!("{} below {}", entry.child, entry.parent),
            None => format!("edge {edge}"),
        }
    }

    /// A scheduler above both gave its processor to another.
    pub(super) fn turn_remedy(&self, blamed: Blamed, explanation: &Explanation) -> String {
        let of_edge = match blamed {
            Blamed::Edge(edge) | Blamed::EdgeTo { edge, .. } | Blamed::EdgeFor { edge, .. } => {
                self.metadata.edges.get(edge)
            }
            _ => None,
        };
        let Some(other) = of_edge else { return "see `talea trace verify`".into() };
        let EdgeEntry { parent, child, .. } = other;
        let Some(own) = self.below_on_way(explanation, other) else {
            return format!("give {child} less below {parent}");
        };
        let promised = match self.promise(other, &own) {
            Some(guarantee) => format!("{parent} promises {own} {guarantee} and {child} {}", other.guarantee),
            None => format!("{parent} promises {own} nothing"),
        };
        let more = match self.asked_by(other) {
            Asked::Plan => {
                format!(
                    "an earlier or longer entry for {own} in its plan would help, or a shorter one for {child}, if it has one"
                )
            }
            Asked::For(Asks::Priority) => {
                format!("a higher priority than {child} would help, or less work there")
            }
            Asked::For(Asks::Level) => {
                format!("a higher level for {own} would help, or less work of {child}")
            }
            Asked::For(Asks::Share | Asks::WarpedShare) => {
                format!("a greater share for {own} would help, or a smaller one for {child}")
            }
            Asked::For(Asks::Nothing | Asks::NoChildren) => {
                format!(
                    "less work of {child} would help, or a scheduler for {own} of which more can be asked"
                )
            }
            Asked::For(Asks::Guarantee(_) | Asks::GuaranteeOrJobs(_) | Asks::AtMost(_)) | Asked::Unknown => {
                match self.is_capped_beside(blamed, explanation) {
                    true => format!("promise {own} more, or softly, so that it has what {child} leaves, too"),
                    false => format!("promise {own} more, or {child} less"),
                }
            }
        };
        format!("{promised}: {more}")
    }

    /// Whether who stands beside the one that had the turn, on the way down to the job that is explained, has no more than its guarantee, whoever else
    /// wants less.
    pub(super) fn is_capped_beside(&self, blamed: Blamed, explanation: &Explanation) -> bool {
        let (Blamed::Edge(edge) | Blamed::EdgeTo { edge, .. } | Blamed::EdgeFor { edge, .. }) = blamed else {
            return false;
        };
        let Some(other) = self.metadata.edges.get(edge) else { return false };
        let own = self.below_on_way(explanation, other);
        let guarantee = own.and_then(|own| self.promise(other, &own)?.parse::<Guarantee>().ok());
        let reservation = guarantee.as_ref().and_then(Guarantee::as_reservation);
        reservation.is_some_and(|reservation| reservation.hardness() == Hardness::Hard)
    }

    /// The scheduler above asked for no processor.
    pub(super) fn used_up_remedy(&self, blamed: Blamed) -> String {
        let of_edge = match blamed {
            Blamed::Edge(edge) => self.metadata.edges.get(edge),
            _ => None,
        };
        match of_edge {
            Some(edge @ EdgeEntry { parent, child, guarantee, .. }) => match self.asked_by(edge) {
                Asked::Plan => format!(
                    "{parent} runs {child} when its plan says so, and not beyond: an entry for {child} at that time would help, or a longer \
                     one, or gaps = \"event-driven\""
                ),
                Asked::For(_) | Asked::Unknown => match promised(guarantee) {
                    Some(guarantee) => format!(
                        "{parent} keeps {guarantee} for {child} and nothing beyond: keep more for it, or have it want less"
                    ),
                    None => format!(
                        "{parent} keeps nothing for {child}: have it keep some, or have {child} want less"
                    ),
                },
            },
            None => "see `talea trace verify`".into(),
        }
    }

    /// Who stands below the scheduler of `other`'s edge on the way down to the job that is explained.
    fn below_on_way(&self, explanation: &Explanation, other: &EdgeEntry) -> Option<String> {
        let hop = explanation.hops.last()?;
        let lane = &self.metadata.lanes[self.metadata.operations[hop.job.operation.index()].lane];
        let name = self.metadata.place_name(lane)?;
        let edges = || self.metadata.edges.iter().filter(|edge| edge.node == lane.node);
        // Breadth first, from the job's place upwards; every edge is passed once.
        let mut way: Vec<&EdgeEntry> = edges().filter(|edge| edge.child == name).collect();
        let mut place = 0;
        while let Some(edge) = way.get(place).copied() {
            if edge.parent == other.parent {
                return Some(edge.child.clone());
            }
            place += 1;
            let above: Vec<&EdgeEntry> = edges().filter(|above| above.child == edge.parent).collect();
            for edge in above {
                if !way.contains(&edge) {
                    way.push(edge);
                }
            }
        }
        None
    }

    /// What the scheduler of `other`'s edge promises `child`, by what was said last; none for nothing.
    fn promise(&self, other: &EdgeEntry, child: &str) -> Option<&str> {
        let of_child =
            |edge: &&EdgeEntry| edge.node == other.node && edge.parent == other.parent && edge.child == child;
        let last = self.metadata.edges.iter().rfind(of_child);
        last.and_then(|edge| promised(&edge.guarantee))
    }

    /// By what the scheduler of the edge can be made to serve one child more and another less.
    fn asked_by(&self, edge: &EdgeEntry) -> Asked {
        let mut schedulers = self.metadata.schedulers.iter();
        let above = schedulers.find(|one| one.node == edge.node && one.name == edge.parent);
        match above.and_then(|above| SchedulerKind::named(&above.kind)) {
            Some(kind) if kind.parameters.iter().any(|parameter| parameter.name == Parameter::PLAN.name) => {
                Asked::Plan
            }
            Some(kind) => Asked::For(kind.asks),
            None => Asked::Unknown,
        }
    }
}

/// What decides about the turns of a scheduler's children.
enum Asked {
    /// A plan that the description gives, whatever the children ask for.
    Plan,
    /// What each of them asks for.
    For(Asks),
    /// It is not known: a program's own kind, or a trace that does not say of which kind the scheduler is.
    Unknown,
}

/// A guarantee that says something.
fn promised(guarantee: &str) -> Option<&str> {
    Some(guarantee).filter(|guarantee| *guarantee != "NULL")
}
