//! Whether the promises that are recorded as broken by what the kernel withheld are those that what was received breaks.
//!
//! What was withheld is in the stream when it has ended, so decisions wait here until nothing before them can be told any more.

use crate::hierarchy::EdgeState;
use crate::receipts::EdgeReceipts;
use crate::receipts::delayed::{Delayed, Due};
use std::collections::BTreeMap;
use talea_guarantee::guarantee::Guarantee;
use talea_record::event::{ChangeKind, Typed, ViolationSide};
use talea_record::{Metadata, Origin, Record, RunOutcome};
use talea_time::{Duration, Instant};

/// For so long decisions wait. Nothing withholds a processor for longer but a machine that stands still.
const PATIENCE: Duration = Duration::from_secs(5);

/// A broken promise: the edge, and from when to when in nanoseconds.
pub(super) type Broken = (usize, i64, i64);

/// What the edges of one node receive.
#[derive(Debug)]
struct NodeReceipts {
    delayed: Delayed,
    has_begun: bool,
    end: Option<Instant>,
    /// From when on nobody told what was withheld.
    unknown_from: Option<Instant>,
}

/// What the edges of all nodes receive, as far as the records tell.
#[derive(Debug)]
pub(super) struct Received {
    node_of: Vec<usize>,
    /// By edge: whether what is recorded of its promise can be found again.
    is_repeated: Vec<bool>,
    nodes: Vec<NodeReceipts>,
    /// Broken promises: how often each was found here, less how often it was recorded.
    broken: BTreeMap<Broken, i64>,
    /// Whether anything was told to have been withheld. Where nothing was, nobody may have looked.
    has_withheld: bool,
}

impl Received {
    /// Of a run with these tables; none where no kernel could withhold anything, or promises are judged by nobody.
    pub fn new(metadata: &Metadata) -> Option<Self> {
        let tolerance =
            metadata.promise_tolerance.filter(|_| matches!(metadata.origin, Origin::Threads { .. }))?;
        let node = |_| NodeReceipts {
            delayed: Delayed::new(EdgeReceipts::new(tolerance)),
            has_begun: false,
            end: None,
            unknown_from: None,
        };
        let mut nodes: Vec<NodeReceipts> = metadata.nodes.iter().map(node).collect();
        let mut is_repeated = vec![false; metadata.edges.len()];
        for (number, edge) in metadata.edges.iter().enumerate() {
            if let Ok(guarantee) = edge.guarantee.parse::<Guarantee>() {
                let edges = &mut nodes[edge.node].delayed.edges;
                edges.promise(number, &guarantee, None);
                is_repeated[number] = edges.judges(number);
            }
        }
        let node_of = metadata.edges.iter().map(|edge| edge.node).collect();
        Some(Received { node_of, is_repeated, nodes, broken: BTreeMap::new(), has_withheld: false })
    }

    /// Takes a record. Returns whether what is received is still known.
    pub fn take(&mut self, record: &Record) -> bool {
        match record.typed() {
            Typed::RunStart(start) => {
                if let Some(node) = self.nodes.get_mut(usize::from(start.node)) {
                    node.has_begun = true;
                }
            }
            // What was withheld at the end of a run that was cut off nobody has told.
            Typed::RunEnd(end) if end.how == RunOutcome::CutOff => return false,
            Typed::RunEnd(end) => {
                if let Some(node) = self.nodes.get_mut(usize::from(end.node)) {
                    node.end = Some(record.time);
                }
            }
            Typed::Lost(lost) => return lost.is_of_kernel(),
            Typed::Withheld(withheld) => {
                self.has_withheld = true;
                let Some(node) = self.nodes.get_mut(usize::from(withheld.node)) else { return false };
                if withheld.from < node.delayed.reached {
                    return false;
                }
                node.delayed.insert(withheld.from, Due::Withheld(record.cpu));
                node.delayed.insert(withheld.to, Due::Given(record.cpu));
            }
            // Windows that end later nobody has judged.
            Typed::Unaudited(told) => {
                let Some(node) = self.nodes.get_mut(usize::from(told.node)) else { return false };
                if told.since < node.delayed.reached {
                    return false;
                }
                node.unknown_from = Some(told.since);
            }
            Typed::Violation(broken) if broken.side == ViolationSide::Withheld => {
                if self.is_repeated.get(usize::from(broken.edge)) != Some(&false) {
                    let key = (usize::from(broken.edge), broken.from.as_nanos(), broken.to.as_nanos());
                    *self.broken.entry(key).or_default() -= 1;
                }
            }
            Typed::EdgeChange(change) if change.what == ChangeKind::Removed => {
                self.decided(record, usize::from(change.edge), Due::Removed(change.edge.into()));
            }
            _ => {
                if let Some((edge, state)) = EdgeState::told_by(record) {
                    self.decided(record, edge, Due::Decided(edge, state));
                }
            }
        }
        true
    }

    fn decided(&mut self, record: &Record, edge: usize, due: Due) {
        let Some(node) = self.node_of.get(edge).map(|node| &mut self.nodes[*node]) else { return };
        if node.end.is_none() {
            let at = record.time.max(node.delayed.reached);
            node.delayed.insert(at, due);
            node.delayed.reach(at - PATIENCE);
        }
    }

    /// Promises that were found broken and not recorded as broken, counted, and the other way round, counted below 0.
    pub fn finish(mut self) -> BTreeMap<Broken, i64> {
        for node in &mut self.nodes {
            let Some(end) = node.end else { continue };
            node.delayed.close(node.unknown_from.map_or(end, |from| from.min(end)));
            for (edge, violation) in node.delayed.edges.broken() {
                let key = (edge, violation.from.as_nanos(), violation.to.as_nanos());
                *self.broken.entry(key).or_default() += 1;
            }
        }
        let is_known = |edge: usize| {
            let node = self.node_of.get(edge).map(|node| &self.nodes[*node]);
            node.is_some_and(|node| node.has_begun && node.end.is_some())
        };
        let is_one = |&((edge, ..), count): &(Broken, i64)| count != 0 && self.has_withheld && is_known(edge);
        std::mem::take(&mut self.broken).into_iter().filter(is_one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipts::Ledger;
    use talea_record::event::{
        Flag, Member, RunEnd, RunStart, Switch, Trigger, Unaudited, Violation, VpGrant, VpRelease, VpRequest,
        Withheld,
    };
    use talea_record::{DecidedBy, EdgeEntry, MemberRole, NodeEntry, Sink, Switches};

    const CPU: u16 = 3;
    const THREAD: u32 = 101;

    fn metadata() -> Metadata {
        let mut metadata = Metadata::bare("x");
        let (switches, decided_by) = (Switches::Recorded, DecidedBy::Ours);
        metadata.origin = Origin::Threads { realtime: true };
        metadata.nodes = vec![NodeEntry { name: "n".into(), cpus: vec![CPU], switches, decided_by }];
        let (parent, child, guarantee) = ("RES".into(), "video".into(), "RESBS 5ms 20ms".into());
        metadata.edges = vec![EdgeEntry { node: 0, parent, child, guarantee }];
        metadata.promise_tolerance = Some(Duration::from_millis(1));
        metadata
    }

    fn ms(ms: i64) -> Instant {
        Instant::from_nanos(1_000_000_000 + ms * 1_000_000)
    }

    /// What a run writes down of a thread that is granted its processor all the time but between jobs, and is kept off it at these times;
    /// what its auditor finds comes at the end. Behind `known_until_ms` it has lost what is told.
    fn told(kept_off: &[(i64, i64)], known_until_ms: i64) -> Vec<Record> {
        let (by, trigger, edge) = (None, Trigger::Thread.into(), 0);
        let switch = |at: i64, to_tid: u32| {
            let switch = Switch { from_tid: 0, to_tid, from_pid: 0, to_pid: 0, preempted: Flag(false) };
            switch.at(ms(at), CPU)
        };
        let member =
            Member { tid: THREAD, started_by: 0, edge: Some(0), node: 0, role: MemberRole::Scheduled.into() };
        let mut records = vec![
            RunStart { planned_end: None, node: 0 }.at(ms(0), Record::NO_CPU),
            member.at(ms(0), Record::NO_CPU),
            VpRequest { edge, by, trigger }.at(ms(1), Record::NO_CPU),
            VpGrant { edge, by, trigger }.at(ms(1), CPU),
            switch(1, THREAD),
        ];
        records.extend(kept_off.iter().flat_map(|(from, to)| [switch(*from, 0), switch(*to, THREAD)]));
        records.push(VpRelease { edge, by, trigger }.at(ms(7_000), CPU));
        records.push(RunEnd { node: 0, how: RunOutcome::Over.into() }.at(ms(7_001), Record::NO_CPU));
        records.sort_by_key(|record| record.time);
        let mut ledger = Ledger::new(&[CPU], Duration::from_millis(1));
        ledger.promise(0, &"RESBS 5ms 20ms".parse().expect("a guarantee"), None);
        let known = records.iter().filter(|record| record.time <= ms(known_until_ms));
        known.for_each(|record| ledger.record(*record));
        let since = ledger.close();
        let withheld = ledger.spells().map(|spell| {
            let (thread, from, to) = (spell.thread, spell.from, spell.to);
            Withheld { thread, from, to, node: 0 }.at(spell.to.max(ms(0)), CPU)
        });
        let withheld: Vec<Record> = withheld.collect();
        let broken = ledger.broken().map(|(_, violation)| {
            Violation::withheld(edge.into(), &violation).at(violation.to, Record::NO_CPU)
        });
        records.extend(withheld.into_iter().chain(broken));
        if since < ms(7_001) {
            records.push(Unaudited { since, node: 0 }.at(ms(7_001), Record::NO_CPU));
        }
        records.sort_by_key(|record| record.time);
        records
    }

    fn judged(records: &[Record]) -> Vec<(Broken, i64)> {
        let mut received = Received::new(&metadata()).expect("promises are judged");
        assert!(records.iter().all(|record| received.take(record)));
        received.finish().into_iter().collect()
    }

    const KEPT_OFF: [(i64, i64); 4] = [(50, 90), (300, 301), (4_000, 4_100), (6_980, 7_050)];

    #[test]
    fn what_the_auditor_finds_is_found_again() {
        let records = told(&KEPT_OFF, i64::MAX / 2_000_000);
        assert!(records.iter().filter(|record| record.event == talea_record::Event::VIOLATION).count() > 1);
        assert_eq!(judged(&records), []);
    }

    #[test]
    fn a_broken_promise_that_is_not_recorded_is_told_and_one_that_was_not_broken() {
        let mut records = told(&KEPT_OFF, i64::MAX / 2_000_000);
        let place = records.iter().position(|record| record.event == talea_record::Event::VIOLATION);
        let mut violation = records.remove(place.expect("one was broken"));
        let missing = judged(&records);
        assert_eq!(missing.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1]);
        violation.words[0] += 1_000_000;
        records.push(violation);
        assert_eq!(judged(&records).iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, -1]);
    }

    /// An auditor that missed something writes down from when on it tells nothing, and what would have been found behind that is no contradiction.
    #[test]
    fn from_when_on_nobody_told_nothing_is_judged() {
        let mut records = told(&[(50, 90), (4_000, 4_039), (6_980, 7_050)], 4_039);
        assert_eq!(judged(&records), []);
        let is_told = |record: &Record| record.event == talea_record::Event::UNAUDITED;
        let unaudited = records.extract_if(.., |record| is_told(record)).next().expect("it is told");
        assert!(!judged(&records).is_empty(), "what is missing behind that is found");
        records.push(unaudited);
        records.retain(|record| record.event != talea_record::Event::VIOLATION);
        assert!(!judged(&records).is_empty(), "before that, it is judged");
    }

    /// How far behind a share may be in the long run stands in no trace.
    #[test]
    fn shares_in_the_long_run_are_not_judged_again() {
        let mut records = told(&KEPT_OFF, i64::MAX / 2_000_000);
        let mut metadata = metadata();
        for guarantee in ["PS 0.25", "RESU 0.25"] {
            metadata.edges[0].guarantee = guarantee.into();
            let mut received = Received::new(&metadata).expect("promises are judged");
            assert!(records.iter().all(|record| received.take(record)));
            assert_eq!(received.finish().into_iter().collect::<Vec<_>>(), [], "{guarantee}");
        }
        records.retain(|record| record.event != talea_record::Event::VIOLATION);
        assert!(!judged(&records).is_empty(), "reservations are");
    }

    #[test]
    fn where_nobody_looked_nothing_is_judged() {
        let mut records = told(&KEPT_OFF, i64::MAX / 2_000_000);
        records.retain(|record| record.event != talea_record::Event::WITHHELD);
        assert_eq!(judged(&records), []);
    }
}
