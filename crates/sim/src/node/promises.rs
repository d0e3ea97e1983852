//! What comes of the promises of a node's hierarchy.

use super::Node;
use std::collections::{BTreeMap, BTreeSet};
use talea_guarantee::guarantee::Guarantee;
use talea_insight::EdgeState;
use talea_insight::receipts::EdgeReceipts;
use talea_policy::arrangement::{Kept, Promise, Watch};
use talea_policy::hierarchy::{Transition, VpId, VpState};
use talea_record::decisions::DecisionRecords;
use talea_record::event::Violation;
use talea_record::{EdgeEntry, EdgeNumbers, Record, Sink};
use talea_time::{Duration, Instant, Work};

/// The watch over a node's hierarchy.
pub(super) struct Watching {
    watch: Watch,
    /// Who knows what is received of what is granted, where the mechanisms cost something.
    received: Option<Received>,
    /// The first edge's number over all nodes, for records.
    first_edge: usize,
    /// Why the hierarchy does not compose, if it does not.
    shortcomings: Option<String>,
    /// Makes records of the decisions, if dispatching is recorded.
    records: Option<DecisionRecords>,
    /// By edge, where windows begin in which too little was granted: that no more of it was received is no news.
    ungranted: BTreeMap<usize, BTreeSet<Instant>>,
}

/// What is received of what is granted where the mechanisms cost something.
///
/// A job pays first, before it gets further, with time that its thread has been granted (`ledger` says in which order). Meanwhile
/// neither the thread nor anybody above it receives anything: the processor is withheld.
pub(super) struct Received {
    edges: EdgeReceipts,
    /// By processor: when the job that pays there will have paid.
    until: Vec<Option<Instant>>,
    /// What has become of edges since the last decision.
    decided: Vec<(usize, EdgeState)>,
}

/// Who knows what is received, if that is not what is granted.
pub(super) fn received_of(watch: &mut Option<Box<Watching>>) -> Option<&mut Received> {
    watch.as_mut()?.received.as_mut()
}

impl Received {
    /// Nobody has been granted anything. What is short by no more than `tolerance` is no violation.
    pub fn new(watch: &Watch, tolerance: Duration, processors: usize) -> Self {
        let mut edges = EdgeReceipts::new(tolerance);
        for (edge, (_, _, promise)) in watch.edges().enumerate() {
            let guarantee = promise.map_or(&Guarantee::Null, Promise::guarantee);
            edges.promise(edge, guarantee, promise.and_then(Promise::stated));
        }
        Received { edges, until: vec![None; processors], decided: Vec::new() }
    }

    /// The job that has the processor pays until then, or no more. To be [weighed](Self::weigh) when all have begun or stopped.
    #[cold]
    pub fn pays(&mut self, processor: usize, until: Option<Instant>, now: Instant) {
        self.settle(now);
        self.until[processor] = until;
        self.edges.set_withheld(processor as u16, until.is_some());
    }

    /// Ends the payments that are complete at `now`: from then on is received what is granted.
    fn settle(&mut self, now: Instant) {
        for processor in 0..self.until.len() {
            if let Some(until) = self.until[processor].take_if(|until| *until <= now) {
                self.edges.set_withheld(processor as u16, false);
                self.edges.weigh_all(until);
            }
        }
    }

    /// Takes into account what was decided at `now`, and who began or stopped paying.
    #[cold]
    pub fn weigh(&mut self, now: Instant) {
        self.settle(now);
        for (edge, state) in self.decided.drain(..) {
            self.edges.decided(edge, state, now);
        }
        // Those above run on when the thread below them is another one.
        self.edges.weigh_all(now);
    }

    /// What was granted up to `now`, with what of it was received.
    fn of(&mut self, granted: Vec<Kept>, now: Instant) -> Vec<Kept> {
        self.settle(now);
        self.edges.reach(now);
        let with = |(edge, granted): (usize, Kept)| granted.with_receipts(self.edges.of(edge));
        granted.into_iter().enumerate().map(with).collect()
    }
}

impl Watching {
    pub fn new(
        watch: Watch,
        received: Option<Received>,
        first_edge: usize,
        shortcomings: Option<String>,
    ) -> Self {
        Watching { watch, received, first_edge, shortcomings, records: None, ungranted: BTreeMap::new() }
    }

    /// From now on, writes records of the decisions too.
    pub fn record_decisions(&mut self, cpus: &[u16], edges: EdgeNumbers) {
        self.records = Some(DecisionRecords::new(cpus, edges));
    }

    /// A thread has work from `now` on.
    #[cold]
    pub fn work_arrives(&mut self, vp: VpId, now: Instant) {
        self.watch.work_arrives(vp, now);
    }

    /// A thread has done all its work.
    #[cold]
    pub fn work_is_done(&mut self, vp: VpId, now: Instant) {
        self.watch.work_is_done(vp, now);
    }

    /// Records what came to light about what is granted when somebody asked.
    fn tell_granted(&mut self, now: Instant, sink: &mut dyn Sink) {
        for (edge, violation) in self.watch.found() {
            sink.record(Violation::of(self.first_edge + edge, &violation).at(now, Record::NO_CPU));
            if self.received.is_some() {
                remember(&mut self.ungranted, edge, violation.from);
            }
        }
    }

    /// Records what has come to light about what is received.
    fn tell_received(&mut self, now: Instant, sink: &mut dyn Sink) {
        let Some(received) = &mut self.received else { return };
        received.weigh(now);
        for (edge, violation) in received.edges.broken() {
            let ungranted = self.ungranted.entry(edge).or_default();
            if !ungranted.remove(&violation.from) {
                let withheld = Violation::withheld(self.first_edge + edge, &violation);
                sink.record(withheld.at(now, Record::NO_CPU));
            }
        }
    }
}

impl Node {
    /// The job that has a processor has worked up to `now`. Overheads come first and are no work: what is less than the work that was left
    /// has been done.
    #[inline]
    pub(super) fn tell_work(&mut self, vp: VpId, now: Instant) {
        if let Some(watching) = &mut self.watch {
            let slot = self.slots[vp.index()].as_mut().expect("a job that works has a slot");
            let left = (slot.remaining - (now - slot.since).as_work()).max(Work::ZERO);
            let done = slot.work - slot.work.min(left);
            slot.work -= done;
            if done > Work::ZERO {
                watching.watch.received(vp, (now - done.at_full_speed(), now));
            }
        }
    }

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
        for index in 0..self.processors.len() {
            if let Some(vp) = self.processors[index].running {
                self.tell_work(vp, now);
            }
        }
        let watching = self.watch.as_mut()?;
        let granted = watching.watch.kept(&self.engine.context());
        Some(match &mut watching.received {
            None => granted,
            Some(received) => received.of(granted, now),
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
            let Watching { watch, first_edge, ungranted, received, .. } = &mut **watching;
            watch.note(transition, now, |edge, violation| {
                sink.record(Violation::of(*first_edge + edge, &violation).at(now, Record::NO_CPU));
                if received.is_some() {
                    remember(ungranted, edge, violation.from);
                }
            });
            if let Some(received) = &mut watching.received
                && let Some(edge) = watching.watch.edge_of(transition.vp)
            {
                received.decided.push((edge, edge_state(transition)));
            }
        }
        if watching.watch.has_found() {
            watching.tell_granted(now, sink);
        }
        if watching.received.is_some() {
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

/// Windows in which too little was granted that are remembered of each edge, until it is known what was received in them.
const REMEMBERED: usize = 64;

fn remember(ungranted: &mut BTreeMap<usize, BTreeSet<Instant>>, edge: usize, from: Instant) {
    let of_edge = ungranted.entry(edge).or_default();
    of_edge.insert(from);
    if of_edge.len() > REMEMBERED {
        of_edge.pop_first();
    }
}

/// Where a transition leaves its edge. Processors go by their places.
fn edge_state(transition: Transition) -> EdgeState {
    match transition.state {
        VpState::Waiting => EdgeState::Waiting,
        VpState::Ready => EdgeState::Ready,
        VpState::Running(processor) => EdgeState::Running(processor.index() as u16),
    }
}
