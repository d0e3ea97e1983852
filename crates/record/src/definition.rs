//! Definitions that come while a run lasts: what its records refer to by number and the tables from its beginning do not have.
//!
//! A definition stands in the directory of the stream before the first record that has its number, and every reader takes it into
//! the tables. Numbers are never used again. Nodes of one run may be processes that know nothing of each other, so each takes
//! numbers of its own: behind the tables, every node in turn.

use crate::connections::PublicationEntry;
use crate::metadata::{
    EdgeEntry, Metadata, OperationEntry, SchedulerEntry, TaskEntry, ThreadEntry, posted_entries,
};
use serde::{Deserialize, Serialize};
use talea_model::{Criticality, UNDEFINED};
use talea_time::{Duration, Work};

/// What a number stands for, or who there is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Definition {
    /// A scheduler of a hierarchy; one of the same name and node takes the place of another.
    Scheduler {
        /// How many of the node were defined before, which tells it from one that was there earlier.
        serial: u32,
        /// What it is.
        entry: SchedulerEntry,
    },
    /// An edge of a hierarchy.
    Edge {
        /// Its number: index into [`Metadata::edges`].
        number: u16,
        /// What it is.
        entry: EdgeEntry,
    },
    /// An operation whose jobs are posted, in a place that was [reserved](Metadata::reserve_posted) for it.
    Operation {
        /// Its number: index into [`Metadata::operations`].
        number: usize,
        /// What it is.
        entry: OperationEntry,
        /// The task that it is alone in.
        task: TaskEntry,
    },
    /// Events of a type that a program pushes into a channel that it has made.
    Publication {
        /// Its number: index into [`Metadata::publications`], behind those of the tables.
        number: usize,
        /// What it is: of no operation, and with no tasks of the description as subscribers.
        entry: PublicationEntry,
    },
    /// A thread of the machine. Records have its number from the kernel, which may have been another thread's before and may become one's later, so
    /// its definition says from when on it is meant. One whose name has changed is defined again.
    Thread(ThreadEntry),
}

/// As many publications as tables have room for, so that a damaged definition asks for no more memory.
const MOST_PUBLICATIONS: usize = 1 << 16;

/// Definitions of threads that a stream takes at most. Programs may start threads without end, and edges and operations need room, too.
pub const THREADS_DEFINED_MAX: usize = 512;

/// How a node's edges are numbered in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeNumbers {
    /// The node's first one that the tables have from the beginning.
    pub first: usize,
    /// How many of the node the tables have from the beginning.
    pub known: usize,
    /// How many of all nodes they have.
    pub total: usize,
    /// Index of the node.
    pub node: usize,
    /// Number of nodes.
    pub nodes: usize,
}

impl EdgeNumbers {
    /// Those of the node at index `node` in a run that begins with these tables.
    pub fn of(metadata: &Metadata, node: usize) -> Self {
        let of_node = |edge: &&EdgeEntry| edge.node == node;
        EdgeNumbers {
            first: metadata.edges.iter().position(|edge| edge.node == node).unwrap_or(0),
            known: metadata.edges.iter().filter(of_node).count(),
            total: metadata.edges.len(),
            node,
            nodes: metadata.nodes.len(),
        }
    }

    /// The number in records of the node's edge `own`, counted from 0 since the beginning; none beyond what records can number.
    pub fn number(self, own: usize) -> Option<u16> {
        let number = match own.checked_sub(self.known) {
            None => self.first + own,
            Some(later) => self.total + later * self.nodes + self.node,
        };
        u16::try_from(number).ok().filter(|number| *number < u16::MAX)
    }

    /// Whether the tables have the edge from the beginning.
    pub fn knows(self, own: usize) -> bool {
        own < self.known
    }
}

impl Definition {
    /// An operation of this name in this lane whose jobs are posted, alone in its task, each due so long after it is posted unless it says so itself.
    pub fn posted(
        (number, task): (usize, usize),
        name: &str,
        (lane, wcet): (usize, Work),
        (deadline, criticality): (Duration, Criticality),
    ) -> Self {
        let (entry, task) = posted_entries(name, task, (lane, wcet), (deadline, criticality));
        Definition::Operation { number, entry, task }
    }

    /// The same, whose jobs are posted by a channel if `is_of_channel`.
    #[must_use]
    pub fn of_channel(mut self, is_of_channel: bool) -> Self {
        if let Definition::Operation { entry, .. } = &mut self {
            entry.is_of_channel = is_of_channel;
        }
        self
    }

    /// The same: the events that jobs of the operation are handed, or those of the publication, are kept if `keeps_events`.
    #[must_use]
    pub fn keeping_events(mut self, keeps_events: bool) -> Self {
        match &mut self {
            Definition::Operation { entry, .. } => entry.keeps_events = keeps_events,
            Definition::Publication { entry, .. } => entry.is_kept = keeps_events,
            Definition::Scheduler { .. } | Definition::Edge { .. } | Definition::Thread(_) => {}
        }
        self
    }

    /// Events of this type, which a program pushes into the channel that records call so.
    pub fn of_program(number: usize, channel: &str, event_type: &str) -> Self {
        let entry = PublicationEntry {
            name: format!("{channel} {event_type}"),
            operation: None,
            channel: channel.to_owned(),
            event_type: event_type.to_owned(),
            subscribers: Vec::new(),
            takers: Vec::new(),
            is_kept: false,
        };
        Definition::Publication { number, entry }
    }
}

impl Metadata {
    /// Takes a definition into the tables. One that cannot be, as in a damaged file, changes nothing.
    pub fn define(&mut self, definition: &Definition) {
        match definition {
            Definition::Scheduler { entry, .. } if entry.node < self.nodes.len() => {
                let is_same = |one: &&mut SchedulerEntry| one.node == entry.node && one.name == entry.name;
                match self.schedulers.iter_mut().find(is_same) {
                    Some(known) => known.clone_from(entry),
                    None => self.schedulers.push(entry.clone()),
                }
            }
            Definition::Edge { number, entry } if entry.node < self.nodes.len() => {
                let index = usize::from(*number);
                while self.edges.len() <= index {
                    // Another node's, which has not been heard of: nobody's sibling.
                    let (parent, child) = (format!("{UNDEFINED}{}", self.edges.len()), UNDEFINED.to_string());
                    self.edges.push(EdgeEntry { node: entry.node, parent, child, guarantee: "NULL".into() });
                }
                self.edges[index].clone_from(entry);
            }
            Definition::Operation { number, entry, task } if self.is_reserved(*number, entry) => {
                self.tasks[entry.task].clone_from(task);
                self.operations[*number].clone_from(entry);
            }
            Definition::Publication { number, entry } if self.may_be_defined(*number, entry) => {
                while self.publications.len() <= *number {
                    // Of a definition that has been lost.
                    let unknown = || UNDEFINED.to_string();
                    let name = format!("{UNDEFINED}{}", self.publications.len());
                    let (channel, event_type) = (unknown(), unknown());
                    let (subscribers, takers) = (Vec::new(), Vec::new());
                    self.publications.push(PublicationEntry {
                        name,
                        operation: None,
                        channel,
                        event_type,
                        subscribers,
                        takers,
                        is_kept: false,
                    });
                }
                self.publications[*number].clone_from(entry);
            }
            Definition::Thread(entry) if entry.node < self.nodes.len() => {
                if !self.threads.contains(entry) {
                    self.threads.push(entry.clone());
                }
            }
            Definition::Scheduler { .. }
            | Definition::Edge { .. }
            | Definition::Operation { .. }
            | Definition::Publication { .. }
            | Definition::Thread(_) => {}
        }
    }

    /// Whether a publication of this number can be what a definition says: none of an operation's.
    fn may_be_defined(&self, number: usize, entry: &PublicationEntry) -> bool {
        let is_programs = |entry: &PublicationEntry| {
            entry.operation.is_none() && entry.subscribers.is_empty() && entry.takers.is_empty()
        };
        number < MOST_PUBLICATIONS
            && is_programs(entry)
            && self.publications.get(number).is_none_or(is_programs)
    }

    /// Whether an operation of this number can be what a definition says.
    fn is_reserved(&self, number: usize, entry: &OperationEntry) -> bool {
        let known = self.operations.get(number);
        known.is_some_and(|known| known.task == entry.task && self.tasks[known.task].activity.is_posted())
            && entry.lane < self.lanes.len()
            && entry.predecessors.is_empty()
            && entry.is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{DecidedBy, NodeEntry, Switches};
    use talea_time::Instant;

    #[test]
    fn nodes_that_know_nothing_of_each_other_number_their_edges_apart() {
        let mut metadata = Metadata::bare("x");
        let edge = |node: usize, child: &str| EdgeEntry {
            node,
            parent: "FP".into(),
            child: child.into(),
            guarantee: "NULL".into(),
        };
        for name in ["a", "b", "c"] {
            let (switches, decided_by) = (Switches::Recorded, DecidedBy::Ours);
            metadata.nodes.push(NodeEntry { name: name.into(), cpus: vec![0], switches, decided_by });
        }
        metadata.edges = vec![edge(0, "p"), edge(0, "q"), edge(2, "r")];
        let numbers: Vec<EdgeNumbers> = (0..3).map(|node| EdgeNumbers::of(&metadata, node)).collect();
        let of = |node: usize| (0..4).map(|own| numbers[node].number(own).unwrap()).collect::<Vec<u16>>();
        assert_eq!((of(0), of(1), of(2)), (vec![0, 1, 3, 6], vec![4, 7, 10, 13], vec![2, 5, 8, 11]));
        assert_eq!(numbers[0].number(1 << 20), None);

        metadata.define(&Definition::Edge { number: 5, entry: edge(2, "s") });
        assert_eq!((metadata.edges.len(), metadata.edges[5].child.as_str()), (6, "s"));
        metadata.define(&Definition::Edge { number: 3, entry: edge(0, "t") });
        assert_eq!((metadata.edges.len(), metadata.edges[3].name().as_str()), (6, "FP to t"));
        metadata.define(&Definition::Edge { number: 9, entry: edge(7, "nowhere") });
        assert_eq!(metadata.edges.len(), 6, "there is no such node");
        assert_eq!(metadata.check(), Ok(()));
    }

    #[test]
    fn an_operation_takes_a_reserved_place_and_no_other() {
        use crate::metadata::{Activity, LaneEntry};
        let mut metadata = Metadata::bare("x");
        let (switches, decided_by) = (Switches::Recorded, DecidedBy::Ours);
        metadata.nodes.push(NodeEntry { name: "a".into(), cpus: vec![0], switches, decided_by });
        metadata.reserve_posted(1);
        assert!(metadata.operations.is_empty(), "without lanes nothing can be posted");
        let lane = |level: usize| LaneEntry {
            node: 0,
            level,
            label: "all".into(),
            discipline: "fifo".into(),
            under: None,
        };
        metadata.lanes = vec![lane(0), lane(1)];
        metadata.reserve_posted(2);
        assert_eq!((metadata.check(), metadata.is_there(1)), (Ok(()), false));

        let mut task = metadata.tasks[1].clone();
        let mut entry = metadata.operations[1].clone();
        (task.name, entry.name, entry.lane) = ("alarm".into(), "alarm".into(), 1);
        let define = |metadata: &mut Metadata, number: usize, entry: &OperationEntry| {
            metadata.define(&Definition::Operation { number, entry: entry.clone(), task: task.clone() });
        };
        for (number, lane) in [(7, 1), (0, 1), (1, 9)] {
            define(&mut metadata, number, &OperationEntry { lane, ..entry.clone() });
            assert!(!metadata.is_there(1), "{number} in lane {lane}");
        }
        define(&mut metadata, 1, &entry);
        assert!(metadata.is_there(1) && !metadata.is_there(0));
        assert_eq!((metadata.operations[1].lane, metadata.tasks[1].activity), (1, Activity::Posted));
        assert_eq!(metadata.check(), Ok(()));
    }

    #[test]
    fn a_program_publishes_behind_what_the_tables_have() {
        let mut metadata = Metadata::bare("x");
        let entry = |channel: &str, operation| PublicationEntry {
            name: format!("{channel} T/A"),
            operation,
            channel: channel.into(),
            event_type: "T/A".into(),
            subscribers: Vec::new(),
            takers: Vec::new(),
            is_kept: false,
        };
        metadata.publications = vec![entry("described", Some(0))];
        let mut define = |number: usize, entry: PublicationEntry| {
            metadata.define(&Definition::Publication { number, entry });
            metadata.publications.iter().map(|one| one.channel.clone()).collect::<Vec<String>>()
        };
        assert_eq!(define(0, entry("motion", None)), ["described"], "that is an operation's");
        assert_eq!(define(1, entry("motion", Some(0))), ["described"], "an operation's is in the tables");
        assert_eq!(define(1 << 16, entry("motion", None)).len(), 1);
        assert_eq!(define(2, entry("motion", None)), ["described", "?", "motion"]);
        assert_eq!(define(1, entry("late", None)), ["described", "late", "motion"]);
        let text = serde_json::to_string(&Definition::Publication { number: 2, entry: entry("m", None) });
        assert_eq!(
            text.expect("numbers and texts"),
            r#"{"publication":{"number":2,"entry":{"name":"m T/A","channel":"m","event_type":"T/A","subscribers":[]}}}"#
        );
    }

    #[test]
    fn a_thread_is_the_one_that_had_its_number_then() {
        let mut metadata = Metadata::bare("x");
        let thread = |since: i64, tid: u32, name: &str, node: usize| {
            let (since, name) = (Instant::from_nanos(since), name.to_owned());
            Definition::Thread(ThreadEntry { since, tid, pid: 5, name, node })
        };
        metadata.define(&thread(10, 7, "first", 0));
        assert!(metadata.threads.is_empty(), "there is no such node");
        let (switches, decided_by) = (Switches::Recorded, DecidedBy::Ours);
        metadata.nodes.push(NodeEntry { name: "a".into(), cpus: vec![0], switches, decided_by });
        // Nodes are told of one after the other, and a reader may have a definition already.
        for definition in [thread(20, 7, "second", 0), thread(10, 7, "first", 0), thread(20, 7, "second", 0)]
        {
            metadata.define(&definition);
        }
        let name = |time: i64, tid: u32| {
            metadata.thread(tid, Instant::from_nanos(time)).map(|entry| entry.name.as_str())
        };
        assert_eq!((name(9, 7), name(10, 7), name(19, 7)), (None, Some("first"), Some("first")));
        assert_eq!((name(20, 7), name(99, 7), name(99, 8)), (Some("second"), Some("second"), None));
        assert_eq!((metadata.threads.len(), metadata.check()), (2, Ok(())));
    }

    #[test]
    fn a_scheduler_is_put_in_the_place_of_another() {
        let mut metadata = Metadata::bare("x");
        let (switches, decided_by) = (Switches::Recorded, DecidedBy::Ours);
        metadata.nodes.push(NodeEntry { name: "a".into(), cpus: vec![0], switches, decided_by });
        for kind in ["stride", "lottery"] {
            let entry = SchedulerEntry { node: 0, name: "S".into(), kind: kind.into() };
            metadata.define(&Definition::Scheduler { serial: 0, entry });
        }
        assert_eq!(metadata.schedulers.len(), 1);
        assert_eq!(metadata.schedulers[0].kind, "lottery");
    }
}
