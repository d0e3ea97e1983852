//! What would help where schedulers of a hierarchy gave the processor to others, in words.

use super::{Blamed, Explanation, Explanations};
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
        let kind = self.metadata.schedulers.iter().find(|one| one.node == other.node && one.name == *parent);
        let more = match kind.map(|one| one.kind.as_str()) {
            Some("fixed-priority") => {
                format!("a higher priority than {child} would help, or less work there")
            }
            _ => format!("promise {own} more, or {child} less"),
        };
        format!("{promised}: {more}")
    }

    /// The scheduler above asked for no processor.
    pub(super) fn used_up_remedy(&self, blamed: Blamed) -> String {
        let of_edge = match blamed {
            Blamed::Edge(edge) => self.metadata.edges.get(edge),
            _ => None,
        };
        match of_edge {
            Some(EdgeEntry { parent, child, guarantee, .. }) => {
                format!(
                    "{parent} keeps {guarantee} for {child} and nothing beyond: keep more for it, or have it want less"
                )
            }
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
        last.map(|edge| edge.guarantee.as_str()).filter(|guarantee| *guarantee != "NULL")
    }
}
