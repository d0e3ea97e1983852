//! What a trace says of the promises in hierarchies of schedulers: which were broken, when, and by how much.
//!
//! Who ran the hierarchy judged every promise, but where the kernel decides, to which the hierarchy was lowered, and wrote a [`Violation`] for each that it found broken. That a promise
//! was kept, or how often it was judged, no record tells. Where the kernel's switches were known, there are also those of promises
//! that the hierarchy kept and the kernel's withholding broke.

use serde::Serialize;
use talea_model::UNDEFINED;
use talea_record::event::{Violation, ViolationSide};
use talea_record::{Metadata, Record, Sink};
use talea_time::Instant;

/// Breaches that are listed one by one; all are counted.
pub const LISTED: usize = 1_000;

/// Collects what VIOLATION records tell, in memory that does not grow with them.
#[derive(Debug)]
pub struct Promises {
    edges: Vec<EdgeReport>,
    breaches: Vec<Breach>,
    start_ns: i64,
    unlisted: u64,
}

/// What became of the promise to one edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EdgeReport {
    /// Name of its node.
    pub node: String,
    /// The scheduler above.
    pub parent: String,
    /// The scheduler or thread below.
    pub child: String,
    /// What is promised.
    pub guarantee: String,
    /// Whether it was watched; not where the kernel decides, to which the hierarchy was lowered.
    pub watched: bool,
    /// How often it was found broken by what was granted.
    pub broken: u64,
    /// How often it was kept by what was granted, and broken by the kernel, which withheld some of it, or kept whoever was to hold the thread from that.
    pub withheld: u64,
    /// The worst of both: the one of the greatest amount.
    pub worst: Option<Breach>,
}

/// A promise found broken in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Breach {
    /// Index of the edge.
    pub edge: usize,
    /// Beginning of the window, in nanoseconds since the run's start.
    pub from_ns: i64,
    /// Its end.
    pub to_ns: i64,
    /// By how much.
    pub amount_ns: i64,
    /// Whether it was too little or too much.
    pub side: Side,
}

/// Which bound was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Less was granted than promised.
    TooLittle,
    /// As much was granted as promised and less received, for the kernel withheld it.
    Withheld,
    /// More was received than allowed.
    TooMuch,
    /// No more was granted than allowed and more received, for the kernel kept whoever was to hold the thread from it.
    HeldLate,
}

/// What a trace says of all promises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromisesReport {
    /// Every edge by its number, watched or not, also those that are not [known](EdgeReport::is_known).
    pub edges: Vec<EdgeReport>,
    /// The first [`LISTED`] breaches, in the order of their records.
    pub breaches: Vec<Breach>,
    /// Those beyond.
    pub unlisted: u64,
}

impl Promises {
    /// Of a trace with `metadata`.
    ///
    /// # Panics
    /// If `metadata` do not pass [`Metadata::check`].
    pub fn new(metadata: &Metadata) -> Self {
        metadata.check().expect("metadata are consistent");
        let edge = |edge: &talea_record::EdgeEntry| EdgeReport {
            node: metadata.nodes[edge.node].name.clone(),
            parent: edge.parent.clone(),
            child: edge.child.clone(),
            guarantee: edge.guarantee.clone(),
            watched: edge.is_defined() && metadata.nodes[edge.node].decided_by.is_ours(),
            broken: 0,
            withheld: 0,
            worst: None,
        };
        Promises {
            edges: metadata.edges.iter().map(edge).collect(),
            breaches: Vec::new(),
            start_ns: metadata.start.as_nanos(),
            unlisted: 0,
        }
    }

    /// The result at the end of the trace.
    pub fn finish(self) -> PromisesReport {
        PromisesReport { edges: self.edges, breaches: self.breaches, unlisted: self.unlisted }
    }
}

impl EdgeReport {
    /// Whether the trace says what it is: a number may have been left out, or be another node's of which nothing was heard.
    pub fn is_known(&self) -> bool {
        !self.child.starts_with(UNDEFINED)
    }
}

impl PromisesReport {
    /// How many of [`Self::broken`] were kept by what was granted, and broken by the kernel.
    pub fn withheld(&self) -> u64 {
        self.edges.iter().map(|edge| edge.withheld).sum()
    }

    /// How many edges were watched.
    pub fn watched(&self) -> usize {
        self.edges.iter().filter(|edge| edge.watched).count()
    }

    /// All breaches.
    pub fn broken(&self) -> u64 {
        self.edges.iter().map(|edge| edge.broken + edge.withheld).sum()
    }
}

impl Sink for Promises {
    fn record(&mut self, record: Record) {
        let Some(violation) = Violation::read(&record) else { return };
        let index = usize::from(violation.edge);
        let Some(edge) = self.edges.get_mut(index) else { return };
        let since_start = |at: Instant| at.as_nanos().saturating_sub(self.start_ns);
        let breach = Breach {
            edge: index,
            from_ns: since_start(violation.from),
            to_ns: since_start(violation.to),
            amount_ns: violation.amount_ns(),
            side: match violation.side.known() {
                Some(ViolationSide::Least) => Side::TooLittle,
                Some(ViolationSide::Withheld) => Side::Withheld,
                Some(ViolationSide::HeldLate) => Side::HeldLate,
                Some(ViolationSide::Most | ViolationSide::Exceeded) | None => Side::TooMuch,
            },
        };
        match breach.side {
            Side::Withheld | Side::HeldLate => edge.withheld += 1,
            Side::TooLittle | Side::TooMuch => edge.broken += 1,
        }
        if edge.worst.is_none_or(|worst| worst.amount_ns < breach.amount_ns) {
            edge.worst = Some(breach);
        }
        match self.breaches.len() < LISTED {
            true => self.breaches.push(breach),
            false => self.unlisted += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_record::{DecidedBy, Definition, EdgeEntry, NodeEntry};
    use talea_time::Duration;

    #[test]
    fn breaches_stand_at_their_edges_with_the_worst() {
        let mut metadata = Metadata::bare("hierarchy");
        metadata.start = Instant::from_nanos(1_000);
        metadata.nodes.push(talea_record::NodeEntry {
            name: "one".into(),
            cpus: vec![0],
            switches: talea_record::Switches::default(),
            decided_by: talea_record::DecidedBy::default(),
        });
        for child in ["a", "b"] {
            let (parent, child, guarantee) = ("J".into(), child.into(), "PS 0.5".into());
            metadata.edges.push(EdgeEntry { node: 0, parent, child, guarantee });
        }
        let mut promises = Promises::new(&metadata);
        let sides = [
            ViolationSide::Least,
            ViolationSide::Most,
            ViolationSide::Withheld,
            ViolationSide::Exceeded,
            ViolationSide::HeldLate,
        ];
        let amounts = [(1_100, 5), (1_200, 9), (1_300, 7), (1_400, 3), (1_500, 2)];
        for ((from, amount), side) in amounts.into_iter().zip(sides) {
            let [from, to] = [from, from + 50].map(Instant::from_nanos);
            let (amount, side) = (Duration::from_nanos(amount), side.into());
            promises.record(Violation { amount, edge: 1, from, to, side }.at(to, Record::NO_CPU));
        }
        let report = promises.finish();
        assert_eq!((report.broken(), report.withheld(), report.edges[0].broken), (5, 2, 0));
        assert_eq!((report.edges[1].broken, report.edges[1].withheld), (3, 2));
        let worst = Breach { edge: 1, from_ns: 200, to_ns: 250, amount_ns: 9, side: Side::TooMuch };
        assert_eq!((report.edges[1].worst, report.breaches.len()), (Some(worst), 5));
        let sides: Vec<Side> = report.breaches.iter().map(|breach| breach.side).collect();
        assert_eq!(sides, [Side::TooLittle, Side::TooMuch, Side::Withheld, Side::TooMuch, Side::HeldLate]);
    }

    #[test]
    fn what_the_kernel_decides_is_not_watched() {
        let mut metadata = Metadata::bare("hierarchies");
        for (node, decided_by) in [DecidedBy::Ours, DecidedBy::Kernel].into_iter().enumerate() {
            let switches = talea_record::Switches::default();
            metadata.nodes.push(NodeEntry { name: node.to_string(), cpus: vec![0], switches, decided_by });
            let (parent, child, guarantee) = ("J".into(), "a".into(), "PS 0.5".into());
            metadata.edges.push(EdgeEntry { node, parent, child, guarantee });
        }
        let report = Promises::new(&metadata).finish();
        assert_eq!((report.watched(), report.edges.len()), (1, 2));
        assert!(report.edges[0].watched && !report.edges[1].watched);
    }

    /// Nodes take numbers in turns for what is added while they run.
    #[test]
    fn a_number_that_was_left_out_is_no_promise() {
        let mut metadata = Metadata::bare("hierarchies");
        let (name, switches, decided_by) = ("one".into(), Default::default(), DecidedBy::Ours);
        metadata.nodes.push(NodeEntry { name, cpus: vec![0], switches, decided_by });
        let (parent, child, guarantee) = ("J".into(), "a".into(), "PS 0.5".into());
        let entry = EdgeEntry { node: 0, parent, child, guarantee };
        metadata.define(&Definition::Edge { number: 1, entry });
        let report = Promises::new(&metadata).finish();
        assert_eq!(report.watched(), 1);
        assert_eq!(report.edges.iter().map(EdgeReport::is_known).collect::<Vec<_>>(), [false, true]);
    }
}
