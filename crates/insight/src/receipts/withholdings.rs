//! When processors were withheld, for everybody who reads a trace.
//!
//! | Trace | Who says that a processor is withheld |
//! |---|---|
//! | of a simulation | the records of what mechanisms cost, below schedulers |
//! | of a hierarchy | the run's auditor (`withheld`); where it says nothing, the decisions beside the kernel's switches, by the same [`Ledger`] |
//! | of lanes, or where the kernel decides for a hierarchy | the kernel's switches beside the run's threads |
//!
//! The auditor saw the same switches by a stream of its own, so its word and what is computed here differ by less than a microsecond. To
//! count nothing twice, what is computed waits for the auditor's word of the same time, which comes some tens of milliseconds later.

use super::Ledger;
use super::processors::{GrantedBy, Spell};
use crate::hierarchy::EdgeState;
use talea_record::event::{self, Typed};
use talea_record::{KernelPolicy, Metadata, Origin, Record, Sink};
use talea_time::{Duration, Instant};

/// For so long what was computed may yet be told by the auditor. Whoever needs it waits longer ([`super::lingering`]).
const PATIENCE: Duration = Duration::from_millis(250);

/// Makes spells of records. Those of a node come when they are over, in no particular order.
#[derive(Debug)]
pub struct Withholdings {
    nodes: Vec<OfNode>,
    node_of_edge: Vec<usize>,
    node_of_lane: Vec<usize>,
    /// With their nodes, not taken yet.
    spells: Vec<(usize, Spell)>,
    /// Whether something was computed of some node that may yet be told. While nothing was, a record concerns its own node at most.
    waits: bool,
}

#[derive(Debug)]
enum Source {
    /// Nothing is granted.
    Nobody,
    /// A simulation: what mechanisms cost.
    Costs,
    /// The kernel's switches.
    Switches(Box<Ledger>),
}

#[derive(Debug)]
struct OfNode {
    source: Source,
    granted_by: GrantedBy,
    /// Whether everything from the node's beginning on has been heard.
    is_whole: bool,
    /// What was computed and may yet be told.
    computed: Vec<Spell>,
}

impl OfNode {
    fn of(metadata: &Metadata, index: usize) -> Self {
        let node = &metadata.nodes[index];
        let has_schedulers =
            metadata.edges.iter().any(|edge| edge.node == index) && node.decided_by.is_ours();
        let granted_by = if has_schedulers { GrantedBy::Schedulers } else { GrantedBy::Kernel };
        let source = match (metadata.origin, granted_by) {
            (Origin::Simulation { .. }, GrantedBy::Schedulers) => Source::Costs,
            (Origin::Simulation { .. }, GrantedBy::Kernel) => Source::Nobody,
            (Origin::Threads { .. }, _) => {
                let reserved = metadata.kernel_policies.iter();
                let reserved = reserved.filter(|entry| entry.policy == KernelPolicy::Deadline);
                let ledger = Ledger::granted_by(granted_by, &node.cpus, Duration::ZERO);
                Source::Switches(Box::new(ledger.with_reserved(reserved.map(|entry| entry.lane).collect())))
            }
        };
        OfNode { source, granted_by, is_whole: granted_by == GrantedBy::Kernel, computed: Vec::new() }
    }

    /// For so long what was computed may be told.
    fn patience(&self) -> Duration {
        match self.granted_by {
            GrantedBy::Schedulers => PATIENCE,
            GrantedBy::Kernel => Duration::ZERO,
        }
    }

    fn take(&mut self, record: &Record) {
        let Source::Switches(ledger) = &mut self.source else { return };
        ledger.record(*record);
        let is_whole = self.is_whole;
        self.computed.extend(ledger.spells().filter(|_| is_whole));
    }

    fn close(&mut self) {
        let Source::Switches(ledger) = &mut self.source else { return };
        ledger.close();
        let is_whole = self.is_whole;
        self.computed.extend(ledger.spells().filter(|_| is_whole));
    }

    /// Decisions were lost since then: what was granted is not known from there on.
    fn lose(&mut self, since: Option<Instant>) {
        if self.granted_by == GrantedBy::Schedulers {
            self.close();
            self.computed.retain(|spell| since.is_some_and(|since| spell.to <= since));
        }
    }
}

impl Withholdings {
    /// For a trace with `metadata`.
    ///
    /// # Panics
    /// If `metadata` do not pass [`Metadata::check`].
    pub fn new(metadata: &Metadata) -> Self {
        metadata.check().expect("metadata are consistent");
        Withholdings {
            nodes: (0..metadata.nodes.len()).map(|index| OfNode::of(metadata, index)).collect(),
            node_of_edge: metadata.edges.iter().map(|edge| edge.node).collect(),
            node_of_lane: metadata.lanes.iter().map(|lane| lane.node).collect(),
            spells: Vec::new(),
            waits: false,
        }
    }

    /// Times for which a processor was withheld that were found to be over since the last call, with their nodes.
    pub fn spells(&mut self) -> impl Iterator<Item = (usize, Spell)> {
        self.spells.drain(..)
    }

    /// Since when what will be told of the node was withheld at the earliest; none if nothing is known to be under way.
    pub fn open_since(&self, node: usize) -> Option<Instant> {
        let of_node = &self.nodes[node];
        let open = match &of_node.source {
            Source::Switches(ledger) => ledger.open_since(),
            Source::Nobody | Source::Costs => None,
        };
        of_node.computed.iter().map(|spell| spell.from).chain(open).min()
    }

    /// The trace is over: what is still under way ended with its last record.
    pub fn close(&mut self) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.close();
            self.spells.extend(node.computed.drain(..).map(|spell| (index, spell)));
        }
    }

    fn told(&mut self, cpu: u16, told: event::Withheld) {
        let event::Withheld { thread, from, to, node } = told;
        let node = usize::from(node);
        let Some(of_node) = self.nodes.get_mut(node).filter(|_| from < to) else { return };
        of_node.computed.retain(|spell| spell.cpu != cpu || spell.to <= from || to <= spell.from);
        self.spells.push((node, Spell { cpu, thread, from, to }));
    }

    fn cost(&mut self, record: &Record, cost: event::Cost) {
        let node = match cost.lane {
            Some(lane) => self.node_of_lane.get(usize::from(lane)).copied(),
            None => Some(cost.node as usize),
        };
        let Some(node) = node.filter(|node| *node < self.nodes.len()) else { return };
        let from = Instant::from_nanos(record.time.as_nanos().saturating_sub(cost.length_ns()));
        if matches!(self.nodes[node].source, Source::Costs) && from < record.time {
            let spell = Spell { cpu: record.cpu, thread: 0, from, to: record.time };
            self.spells.push((node, spell));
        }
    }

    /// The node that the record is about; none if it is about all of them.
    fn node_of(&self, what: &Typed, record: &Record) -> Option<usize> {
        let of_edge = |edge: usize| self.node_of_edge.get(edge).copied().unwrap_or(usize::MAX);
        match what {
            Typed::Member(member) => Some(usize::from(member.node)),
            Typed::RunStart(start) => Some(usize::from(start.node)),
            Typed::RunEnd(end) => Some(usize::from(end.node)),
            Typed::Timer(timer) => Some(usize::from(timer.node)),
            Typed::EdgeChange(change) => Some(of_edge(usize::from(change.edge))),
            _ => EdgeState::told_by(record).map(|(edge, _)| of_edge(edge)),
        }
    }
}

impl Sink for Withholdings {
    fn record(&mut self, record: Record) {
        let what = record.typed();
        match what {
            Typed::Withheld(told) => self.told(record.cpu, told),
            Typed::Cost(cost) => self.cost(&record, cost),
            Typed::NodeLeft(left) => {
                self.nodes.get_mut(left.left as usize).into_iter().for_each(OfNode::close);
                self.waits = true;
            }
            _ => {}
        }
        if let Typed::RunStart(start) = what
            && let Some(node) = self.nodes.get_mut(usize::from(start.node))
        {
            node.is_whole = true;
        }
        let is_heard = matches!(
            what,
            Typed::Switch(_)
                | Typed::Lost(_)
                | Typed::Thread(_)
                | Typed::Timer(_)
                | Typed::Member(_)
                | Typed::EdgeChange(_)
                | Typed::RunStart(_)
                | Typed::RunEnd(_)
        ) || EdgeState::told_by(&record).is_some();
        if !is_heard && !self.waits {
            return;
        }
        let node = self.node_of(&what, &record);
        let only = node.filter(|_| !self.waits);
        let all = self.nodes.len();
        let concerned = only.map_or(0..all, |only| only.min(all)..only.saturating_add(1).min(all));
        self.waits = false;
        for index in concerned {
            let of_node = &mut self.nodes[index];
            if is_heard && node.is_none_or(|node| node == index) {
                of_node.take(&record);
                if let Typed::Lost(lost) = what
                    && !lost.is_of_kernel()
                {
                    of_node.lose(lost.since);
                }
            }
            let patience = of_node.patience();
            let is_certain = |spell: &mut Spell| spell.to.saturating_add(patience) <= record.time;
            let certain = of_node.computed.extract_if(.., is_certain);
            self.spells.extend(certain.map(|spell| (index, spell)));
            self.waits |= !of_node.computed.is_empty();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_record::event::{
        BuiltinEvent, Flag, Lost, Member, NodeLeft, RunStart, Switch, Thread, Timer, Trigger, VpGrant,
        VpRequest, Withheld,
    };
    use talea_record::{
        DecidedBy, EdgeEntry, KernelPolicyEntry, LaneEntry, LossCause, MemberRole, NodeEntry, Switches,
        ThreadRole,
    };

    /// By node: the thread below its one edge. The processor has the node's number.
    const THREADS: [u32; 2] = [71, 72];
    const STRANGER: u32 = 99;

    fn metadata(decided_by: DecidedBy) -> Metadata {
        let mut metadata = Metadata::bare("two nodes");
        metadata.origin = Origin::Threads { realtime: true };
        for node in 0..2 {
            let (name, cpus, label) = (format!("n{node}"), vec![node as u16], format!("t{node}"));
            metadata.nodes.push(NodeEntry { name, cpus, switches: Switches::Recorded, decided_by });
            let (parent, child, guarantee) = ("FP".into(), label.clone(), "NULL".into());
            metadata.edges.push(EdgeEntry { node, parent, child, guarantee });
            metadata.lanes.push(LaneEntry {
                node,
                level: 0,
                label,
                discipline: "thread".into(),
                under: None,
            });
        }
        metadata
    }

    fn us(us: i64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    struct Told(Withholdings);

    impl Told {
        fn of(metadata: &Metadata) -> Self {
            let mut told = Told(Withholdings::new(metadata));
            for (node, tid) in THREADS.into_iter().enumerate() {
                let (edge, lane, role) = (Some(node as u32), Some(node as u16), ThreadRole::Lane.into());
                let node = node as u16;
                told.tell(0, node, Thread { tid, pid: 5, node: node.into(), lane, role });
                let member = MemberRole::Scheduled.into();
                told.tell(0, node, Member { tid, started_by: 0, edge, node, role: member });
                told.tell(0, node, RunStart { planned_end: None, node });
            }
            told
        }

        fn tell(&mut self, at: i64, cpu: u16, what: impl BuiltinEvent) {
            self.0.record(what.at(us(at), cpu));
        }

        /// The nodes' threads have their processors, but for the time between these, in which a stranger does.
        fn keep_from(&mut self, nodes: &[u16], (from, to): (i64, i64)) {
            for at in [10, from, to] {
                for node in nodes {
                    let tid = THREADS[usize::from(*node)];
                    let (from_tid, to_tid) = if at == from { (tid, STRANGER) } else { (STRANGER, tid) };
                    let (from_pid, to_pid, preempted) = (0, 0, Flag(true));
                    self.tell(at, *node, Switch { from_tid, to_tid, from_pid, to_pid, preempted });
                }
            }
            nodes.iter().for_each(|node| self.look(to + 100, *node));
        }

        fn grant(&mut self, edge: u16) {
            let (by, trigger) = (None, Trigger::Thread.into());
            self.tell(5, Record::NO_CPU, VpRequest { edge, by, trigger });
            self.tell(5, edge, VpGrant { edge, by, trigger });
        }

        fn look(&mut self, at: i64, node: u16) {
            self.tell(at, node, Timer { due: us(at), woken: us(at), node });
        }

        /// On which node a processor was withheld, and from when to when, since the last call.
        fn spells(&mut self) -> Vec<(usize, i64, i64)> {
            let us = |at: Instant| at.as_nanos() / 1_000;
            self.0.spells().map(|(node, spell)| (node, us(spell.from), us(spell.to))).collect()
        }

        fn close(&mut self) -> Vec<(usize, i64, i64)> {
            self.0.close();
            self.spells()
        }
    }

    #[test]
    fn what_the_auditor_tells_is_not_counted_once_more() {
        let mut told = Told::of(&metadata(DecidedBy::Ours));
        [0, 1].into_iter().for_each(|edge| told.grant(edge));
        told.keep_from(&[0, 1], (1_000, 3_000));
        assert_eq!(told.spells(), []);
        assert_eq!(told.0.open_since(0), Some(us(1_000)));
        // It saw the same switches by another stream, of one of the two processors.
        let word = |from: i64, to: i64| Withheld { thread: STRANGER, from: us(from), to: us(to), node: 0 };
        told.tell(30_000, 0, word(1_001, 3_001));
        told.tell(30_000, 0, word(5_000, 5_000));
        assert_eq!(told.spells(), [(0, 1_001, 3_001)]);
        assert_eq!([0, 1].map(|node| told.0.open_since(node)), [None, Some(us(1_000))]);
        assert_eq!(told.close(), [(1, 1_000, 3_000)]);
    }

    #[test]
    fn without_the_auditors_word_it_counts_after_a_while_whoever_is_heard_of() {
        let mut told = Told::of(&metadata(DecidedBy::Ours));
        told.grant(0);
        // What the kernel did not tell leaves the grants known.
        let cause = LossCause::Overwritten.into();
        told.tell(7, 0, Lost { records: 7, since: None, ring: Record::KERNEL, cause });
        told.keep_from(&[0], (1_000, 3_000));
        told.look(253_000, 1);
        assert_eq!(told.spells(), [(0, 1_000, 3_000)]);
        assert_eq!(told.close(), []);
    }

    #[test]
    fn a_node_that_leaves_and_a_trace_that_ends_close_what_is_under_way() {
        for has_left in [true, false] {
            let mut told = Told::of(&metadata(DecidedBy::Ours));
            told.grant(0);
            let to =
                |to_tid: u32| Switch { from_tid: 0, to_tid, from_pid: 0, to_pid: 0, preempted: Flag(true) };
            told.tell(1_000, 0, to(STRANGER));
            told.look(4_000, 0);
            if has_left {
                told.tell(5_000, 1, NodeLeft { epoch: 1, left: 0, node: 1 });
                told.tell(9_000, 0, to(THREADS[0]));
            }
            assert_eq!(told.close(), [(0, 1_000, 4_000)], "{has_left}");
        }
    }

    #[test]
    fn where_the_kernel_decides_a_used_up_reservation_is_nobodys_doing() {
        let mut metadata = metadata(DecidedBy::Kernel);
        let entry = |(lane, policy)| KernelPolicyEntry { lane, policy };
        metadata.kernel_policies =
            [KernelPolicy::Deadline, KernelPolicy::RealTime(10)].into_iter().enumerate().map(entry).collect();
        let mut told = Told::of(&metadata);
        told.keep_from(&[0, 1], (1_000, 3_000));
        assert_eq!(told.close(), [(1, 1_000, 3_000)]);
    }
}
