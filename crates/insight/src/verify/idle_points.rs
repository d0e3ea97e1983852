//! Idle points in virtual time: instants at which nothing that was released earlier on a node is unfinished.
//!
//! They follow from releases and ends alone, whatever has the processors. A node that has nothing unfinished after an instant has idle points
//! until its next release, that instant included. On real threads the node's own count decides, of which no record tells.

use std::collections::BTreeMap;
use talea_record::{Event, Record};
use talea_time::Instant;

/// What is known of one node.
#[derive(Debug, Default)]
struct Node {
    /// Unfinished jobs, packed, and when they were released.
    unfinished: BTreeMap<u64, Instant>,
    /// The latest instant with records of jobs that was an idle point.
    latest: Option<Instant>,
    /// After this instant nothing was unfinished, and no record came since.
    quiet: Option<Instant>,
    /// When that was so last, and until when.
    last_quiet: Option<(Instant, Instant)>,
    /// Something was released or ended in this instant.
    is_touched: bool,
}

/// The idle points of all nodes.
#[derive(Debug)]
pub(super) struct IdlePoints {
    nodes: Vec<Node>,
    /// Whether releases and ends are known from the beginning of the run.
    is_known: bool,
}

impl IdlePoints {
    /// Of so many nodes, if somebody asks for them.
    pub fn new(nodes: usize, are_asked_for: bool) -> Self {
        IdlePoints { nodes: (0..nodes).map(|_| Node::default()).collect(), is_known: are_asked_for }
    }

    /// What is unfinished is not known any more.
    pub fn forget(&mut self) {
        self.is_known = false;
        self.nodes.iter_mut().for_each(|node| *node = Node::default());
    }

    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// A job of the node is released or ends, or something else happens to one.
    pub fn take(&mut self, node: usize, record: &Record) {
        if !self.is_known {
            return;
        }
        let node = &mut self.nodes[node];
        node.is_touched = true;
        match record.event {
            Event::RELEASE => _ = node.unfinished.insert(record.causal, record.time),
            Event::COMPLETE | Event::ABORT => _ = node.unfinished.remove(&record.causal),
            _ => {}
        }
    }

    /// The nodes of which records came at `now`, which is over, and for which it was an idle point.
    pub fn end_instant(&mut self, now: Instant) -> Vec<usize> {
        let mut idle = Vec::new();
        for (index, node) in self.nodes.iter_mut().enumerate() {
            if !std::mem::take(&mut node.is_touched) {
                continue;
            }
            node.last_quiet = node.quiet.map(|since| (since, now)).or(node.last_quiet);
            node.quiet = node.unfinished.is_empty().then_some(now);
            if node.unfinished.values().all(|released| *released == now) {
                node.latest = Some(now);
                idle.push(index);
            }
        }
        idle
    }

    /// Whether `at` lies in the latest time in which nothing was unfinished on the node and of which no record tells.
    pub fn is_in_quiet(&self, node: usize, at: Instant) -> bool {
        let node = &self.nodes[node];
        node.quiet.is_some_and(|since| since < at)
            || node.last_quiet.is_some_and(|(since, until)| since < at && at < until)
    }

    /// The latest instant with records of jobs of the node that was an idle point.
    pub fn latest(&self, node: usize) -> Option<Instant> {
        self.nodes[node].latest
    }
}
