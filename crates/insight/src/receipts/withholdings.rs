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
