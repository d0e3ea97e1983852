//! What comes of the promises of a node's hierarchy.

use super::Node;
use crate::toll::Toll;
use std::collections::BTreeMap;
use talea_guarantee::guarantee::Guarantee;
use talea_policy::arrangement::{Kept, Promise, Watch};
use talea_policy::hierarchy::Transition;
use talea_record::decisions::DecisionRecords;
use talea_record::event::Violation;
use talea_record::{EdgeEntry, EdgeNumbers, Record, Sink};
use talea_time::Instant;

/// The watch over a node's hierarchy.
pub(super) struct Watching {
    watch: Watch,
    /// Who knows what is received of what is granted, where the mechanisms cost something.
    toll: Option<Toll>,
    /// The first edge's number over all nodes, for records.
    first_edge: usize,
    /// Why the hierarchy does not compose, if it does not.
    shortcomings: Option<String>,
    /// What has become of virtual processors since the last decision.
    transitions: Vec<Transition>,
    /// Makes records of the decisions, if dispatching is recorded.
    records: Option<DecisionRecords>,
    /// Where the last window begins in which too little was granted on an edge: that no more of it was received is no news.
    ungranted: BTreeMap<usize, Instant>,
}

/// Who knows what is received, if that is not what is granted.
pub(super) fn toll_of(watch: &mut Option<Box<Watching>>) -> Option<&mut Toll> {
    watch.as_mut()?.toll.as_mut()
}

impl Watching {
    pub fn new(watch: Watch, toll: Option<Toll>, first_edge: usize, shortcomings: Option<String>) -> Self {
        let (transitions, ungranted) = (Vec::new(), BTreeMap::new());
        Watching { watch, toll, first_edge, shortcomings, transitions, records: None, ungranted }
    }

    /// From now on, writes records of the decisions too.
    pub fn record_decisions(&mut self, cpus: &[u16], edges: EdgeNumbers) {
        self.records = Some(DecisionRecords::new(cpus, edges));
    }

    /// Records what came to light about what is granted when somebody asked.
    fn tell_granted(&mut self, now: Instant, sink: &mut dyn Sink) {
        for (edge, violation) in self.watch.found() {
            sink.record(Violation::of(self.first_edge + edge, &violation).at(now, Record::NO_CPU));
            self.ungranted.insert(edge, violation.from);
        }
    }

    /// Records what has come to light about what is received.
    fn tell_received(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Some(toll) = &mut self.toll else { return };
        toll.note(&self.transitions, now);
        self.transitions.clear();
        for (edge, violation) in toll.broken() {
            if self.ungranted.get(&edge) != Some(&violation.from) {
                let withheld = Violation::withheld(self.first_edge + edge, &violation);
                sink.record(withheld.at(now, Record::NO_CPU));
            }
        }
    }
}

impl Node {
    /// The edges of its hierarchy that are watched, by number.
    pub fn edges(&self) -> impl Iterator<Item = EdgeEntry> {
        let edges = self.watch.iter().flat_map(|watching| watching.watch.edges());
        edges.map(|(parent, child, promise)| EdgeEntry {
            node: usize::from(self.index),
            parent: parent.into(),
            child: child.into(),
            guarantee: promise.map_or(&Guarantee::Null, Promise::guarantee).to_string(),
        })
    }

    /// Why its hierarchy does not compose; none if it does, or has none.
    pub fn shortcomings(&self) -> Option<&str> {
        self.watch.as_ref().and_then(|watching| watching.shortcomings.as_deref())
    }

    /// What came of the promises of its hierarchy up to `now`; none if it has none.
    pub fn kept(&mut self, now: Instant) -> Option<Vec<Kept>> {
        self.engine.advance(now);
        let watching = self.watch.as_mut()?;
        let granted = watching.watch.kept(&self.engine.context());
        Some(match &mut watching.toll {
            None => granted,
            Some(toll) => toll.received(granted, now),
        })
    }

    /// Notes what every edge of the hierarchy is granted and receives from now on, and records broken promises.
    #[cold]
    pub(super) fn judge(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Some(watching) = &mut self.watch else { return };
        for transition in self.engine.transitions() {
            if let Some(records) = &mut watching.records
                && let Some(record) = records.record(transition, &watching.watch, now)
            {
                sink.record(record);
            }
            if let Some((edge, violation)) = watching.watch.note(transition, now) {
                let broken = Violation::of(watching.first_edge + edge, &violation);
                sink.record(broken.at(now, Record::NO_CPU));
                watching.ungranted.insert(edge, violation.from);
            }
            if watching.toll.is_some() {
                watching.transitions.push(transition);
            }
        }
        if watching.watch.has_found() {
            watching.tell_granted(now, sink);
        }
        if watching.toll.is_some() {
            watching.tell_received(now, sink);
        }
    }

    /// The run ends at `now`: records what has come to light about promises by then.
    pub fn close_promises(&mut self, now: Instant, sink: &mut dyn Sink) {
        if self.kept(now).is_some()
            && let Some(watching) = &mut self.watch
        {
            watching.tell_granted(now, sink);
            watching.tell_received(now, sink);
        }
    }
}
