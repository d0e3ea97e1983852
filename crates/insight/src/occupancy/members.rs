//! Whose time a thread's is: which edge of a hierarchy it stands behind.
//!
//! MEMBER records say it, of every thread of a program. Who stands behind the edge has the thread's time:
//!
//! | Below the edge is | The time is |
//! |---|---|
//! | a thread of the description | its lane's, whose job goes on in any of the program's threads |
//! | what was added while the run lasted | the edge's, which has no lane |
//! | a scheduler: that of the node's lanes | that of the lane which the thread's THREAD record names |
//!
//! ```text
//!              MEMBER                    edge removed, thread exit and last switch,
//!   stranger ───────────▶ behind edges ─────────────────────────────────────────────▶ stranger
//!                                        or a switch that has the number for another process
//! ```

use super::update::names_process;
use super::{Edges, KnownThread, Occupancy, RunThread, Standing};
use crate::hierarchy::EdgeState;
use talea_record::event::{Member, Switch};
use talea_record::{Definition, MemberRole, Metadata};

/// Who stands below an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    /// A thread of the description, by its lane.
    Described(usize),
    /// A scheduler.
    Scheduler,
    /// Neither: a thread or program that was added.
    Added,
}

impl Edges {
    pub fn of(metadata: &Metadata) -> Self {
        let mut edges = Edges { standings: Vec::new(), metadata: metadata.clone() };
        edges.enter();
        edges
    }

    /// Takes what was defined meanwhile.
    pub fn define(&mut self, definition: &Definition) {
        self.metadata.define(definition);
        if matches!(definition, Definition::Scheduler { .. } | Definition::Edge { .. }) {
            self.enter();
        }
    }

    /// Finds out who stands below each edge.
    fn enter(&mut self) {
        let Edges { standings, metadata } = self;
        for (index, edge) in metadata.edges.iter().enumerate() {
            let is_lane = |lane: &talea_record::LaneEntry| {
                lane.node == edge.node && lane.is_thread() && lane.label == edge.child
            };
            let schedulers = || metadata.schedulers.iter().filter(|scheduler| scheduler.node == edge.node);
            // Traces of old do not name schedulers, and nothing could be added to their hierarchies.
            let is_scheduler =
                schedulers().next().is_none() || schedulers().any(|scheduler| scheduler.name == edge.child);
            let below = match metadata.lanes.iter().position(is_lane) {
                Some(lane) => Below::Described(lane),
                None if is_scheduler => Below::Scheduler,
                None => Below::Added,
            };
            match standings.get_mut(index) {
                Some(standing) => (standing.node, standing.below) = (edge.node, below),
                None => standings.push(Standing { node: edge.node, below, has_members: false }),
            }
        }
    }

    /// What stands below the edge, by name.
    pub fn name(&self, edge: usize) -> &str {
        &self.metadata.edges[edge].child
    }

    /// Whether the two are edges to the same below them.
    fn lead_to_same(&self, one: usize, other: usize) -> bool {
        self.standings[one].node == self.standings[other].node && self.name(one) == self.name(other)
    }

    /// Whether the lane is the place of a thread of the description.
    pub fn is_of_thread(&self, lane: usize) -> bool {
        self.metadata.lanes[lane].is_thread()
    }

    /// Whether THREAD records alone name the threads of some of the node's lanes.
    fn has_other_lanes(&self, node: usize) -> bool {
        self.metadata.lanes.iter().any(|lane| lane.node == node && !lane.is_thread())
    }
}

impl Occupancy {
    /// A thread stands behind an edge from now on.
    pub(super) fn join(&mut self, member: Member) {
        let Some(edge) = member.edge.map(|edge| edge as usize) else { return };
        if member.role.known() != Some(MemberRole::Scheduled) {
            return;
        }
        let Some(standing) = self.edges.standings.get_mut(edge) else { return };
        if standing.node != usize::from(member.node) {
            return;
        }
        let role = match standing.below {
            Below::Described(lane) => RunThread::Lane(lane),
            Below::Added => RunThread::Member(edge),
            Below::Scheduler => return,
        };
        standing.has_members = true;
        if !self.edges.has_other_lanes(usize::from(member.node)) {
            self.identified[usize::from(member.node)] = true;
        }
        let edges = &self.edges;
        match self.threads.get_mut(&member.tid) {
            Some(known) if known.is_same(role, edges) => {
                known.behind.retain(|other| *other != edge);
                known.behind.push(edge);
                known.process = None;
                self.ending.remove(&member.tid);
            }
            _ => self.know(member.tid, KnownThread { behind: vec![edge], ..KnownThread::new(role) }),
        }
    }

    /// The edge is none any more, and who stood behind it goes on as a stranger.
    pub(super) fn part(&mut self, edge: usize) {
        let mut left = Vec::new();
        for (thread, known) in &mut self.threads {
            let had = known.behind.len();
            known.behind.retain(|other| *other != edge);
            if had > 0 && known.behind.is_empty() {
                left.push((*thread, known.of_process));
            }
        }
        for (thread, process) in left {
            self.forget(thread);
            let is_own = || self.own_processes.contains(&process);
            let is_anothers = || self.threads.values().any(|known| known.of_process == process);
            if process != 0 && !is_own() && !is_anothers() {
                self.processes.remove(&process);
            }
        }
        if let Some(standing) = self.edges.standings.get_mut(edge) {
            standing.has_members = false;
        }
    }

    /// The thread of this number ends, but it has its processor until the kernel gives that to another.
    pub(super) fn exit(&mut self, thread: u32) {
        let has = |processor: &super::Processor| processor.thread == Some(thread);
        let is_somewhere = self.nodes.iter().flatten().any(has);
        match self.threads.get(&thread).filter(|known| !known.behind.is_empty()) {
            Some(_) if is_somewhere => _ = self.ending.insert(thread),
            Some(_) => self.forget(thread),
            None => {}
        }
    }

    /// Forgets whose numbers are others' by now, and who had the processor and has ended.
    pub(super) fn recognise(&mut self, cpu: u16, switch: Switch) {
        for (thread, process) in [(switch.from_tid, switch.from_pid), (switch.to_tid, switch.to_pid)] {
            let Some(known) = self.threads.get_mut(&thread) else { continue };
            if names_process(process)
                && *known.process.get_or_insert(process) != process
                && !known.behind.is_empty()
            {
                self.forget(thread);
            }
        }
        if self.ending.is_empty() {
            return;
        }
        let had = self.nodes.iter().flatten().filter(|processor| processor.cpu == cpu);
        let had: Vec<u32> = had.filter_map(|processor| processor.thread).chain([switch.from_tid]).collect();
        for thread in had {
            if thread != switch.to_tid && self.ending.contains(&thread) {
                self.forget(thread);
            }
        }
    }

    /// Learns of a thread, which is another one than whoever had its number before.
    pub(super) fn know(&mut self, thread: u32, known: KnownThread) {
        self.forget(thread);
        if let RunThread::Lane(lane) = known.role {
            self.lanes[lane].threads += 1;
        }
        self.threads.insert(thread, known);
    }

    fn forget(&mut self, thread: u32) {
        let Some(known) = self.threads.remove(&thread) else { return };
        if let RunThread::Lane(lane) = known.role {
            self.lanes[lane].threads -= 1;
        }
        self.woken.remove(&thread);
        self.ending.remove(&thread);
        let processors = self.nodes.iter_mut().flatten();
        processors.for_each(|processor| processor.waiting.retain(|waiting| *waiting != thread));
    }

    /// Who is below the edge comes into another state.
    pub(super) fn decided(&mut self, edge: usize, state: EdgeState) {
        let Some(standing) = self.edges.standings.get(edge).filter(|standing| standing.below == Below::Added)
        else {
            return;
        };
        for processor in &mut self.nodes[standing.node] {
            let had = processor.granted.len();
            processor.granted.retain(|other| *other != edge);
            let has = state == EdgeState::Running(processor.cpu);
            if has {
                processor.granted.push(edge);
            }
            if has || processor.granted.len() < had {
                processor.gap = super::RecordGap::None;
            }
        }
    }
}

impl KnownThread {
    pub fn new(role: RunThread) -> Self {
        KnownThread { role, behind: Vec::new(), of_process: 0, process: None }
    }

    /// Whether a thread of this role would be the same.
    fn is_same(&self, role: RunThread, edges: &Edges) -> bool {
        match (self.role, role) {
            (RunThread::Member(one), RunThread::Member(other)) => edges.lead_to_same(one, other),
            (one, other) => one == other,
        }
    }
}
