//! Who ran where and when: a run's schedule as segments.

use crate::occupancy::{Occupancy, Occupant, ProcessorHolder};
use std::sync::Arc;
use talea_record::event::Typed;
use talea_record::{Definition, JobId, Metadata, Record};
use talea_time::Instant;

/// Who had a processor for a [`Segment`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// This job.
    Job(JobId),
    /// What was added to a hierarchy while the run lasted, by its name there. There are no jobs of it.
    Member(Arc<str>),
    /// One of these jobs, or one after the other: they had all begun, and nobody saw which of them ran.
    SharedUnseen(Vec<JobId>),
}

/// A stretch of time in which one job, or what was added to a hierarchy, had one processor, or several shared it unseen. Longer than nothing; a job that gets back
/// its processor in the very instant in which it lost it has one segment, not two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When it got the processor.
    pub start: Instant,
    /// When it lost it.
    pub end: Instant,
    /// Index of the node.
    pub node: usize,
    /// The processor by its Linux number, or [`Record::NO_CPU`] if the records do not say.
    pub cpu: u16,
    /// Who had it.
    pub runner: Runner,
}

impl Segment {
    /// The job, if it is known which one.
    pub fn job(&self) -> Option<JobId> {
        match self.runner {
            Runner::Job(job) => Some(job),
            Runner::Member(_) | Runner::SharedUnseen(_) => None,
        }
    }
}

/// Derives segments from records as they come, in memory that does not grow with them.
///
/// Segments of one processor come in the order of time, each when the next one begins or the run ends. Who has a processor
/// is what all records together tell: the kernel's switches and interrupts, where they were recorded, take it from a job and
/// give it back; where they were not, and real threads have no real-time priorities, jobs that have begun on one processor share
/// it [unseen](Runner::SharedUnseen). A segment that is open when records are lost ends with the last thing that is known.
#[derive(Debug)]
pub struct Segments {
    occupancy: Occupancy,
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// In the order of the occupancy's.
    processors: Vec<Processor>,
    state: NodeState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NodeState {
    #[default]
    Running,
    Ended,
}

#[derive(Debug)]
struct Processor {
    cpu: u16,
    running: Option<(Runner, Instant)>,
    /// The segment before, which grows if the same job comes back at once.
    finished: Option<Segment>,
}

impl Segments {
    /// For a run of the system that `metadata` describe.
    pub fn new(metadata: &Metadata) -> Self {
        Segments {
            occupancy: Occupancy::new(metadata),
            nodes: metadata.nodes.iter().map(|_| Node::default()).collect(),
        }
    }

    /// Takes what was defined meanwhile.
    pub fn define(&mut self, definition: &Definition) {
        self.occupancy.define(definition);
    }

    /// Takes a record and hands the segments that it completes to `emit`.
    pub fn feed(&mut self, record: &Record, mut emit: impl FnMut(Segment)) {
        self.occupancy.apply(record);
        match record.typed() {
            Typed::RunEnd(end) => {
                let index = usize::from(end.node);
                if let Some(node) = self.nodes.get_mut(index) {
                    node.state = NodeState::Ended;
                    node.leave_all(index, record.time);
                }
            }
            Typed::Start(_)
            | Typed::Resume(_)
            | Typed::Preempt(_)
            | Typed::Wait(_)
            | Typed::Block(_)
            | Typed::Unblock(_)
            | Typed::Complete(_)
            | Typed::Abort(_) => {
                if let Some(node) = self.occupancy.node_of(record.job()) {
                    self.look(node, record.time, &mut emit);
                }
            }
            Typed::Lost(lost) => {
                if !lost.is_of_kernel() {
                    let known = lost.since_or_zero().min(record.time);
                    self.nodes.iter_mut().enumerate().for_each(|(index, node)| node.leave_all(index, known));
                }
                self.look_everywhere(record.time, &mut emit);
            }
            Typed::Switch(_)
            | Typed::IrqEnter(_)
            | Typed::IrqExit(_)
            | Typed::Thread(_)
            | Typed::Member(_)
            | Typed::EdgeChange(_) => self.look_everywhere(record.time, &mut emit),
            Typed::VpRequest(_) | Typed::VpGrant(_) | Typed::VpRevoke(_) | Typed::VpRelease(_) => {
                if let Some(node) = self.occupancy.node_of_edge(usize::from(record.source)) {
                    self.look(node, record.time, &mut emit);
                }
            }
            _ => {}
        }
    }

    fn look_everywhere(&mut self, now: Instant, emit: &mut impl FnMut(Segment)) {
        (0..self.nodes.len()).for_each(|node| self.look(node, now, emit));
    }

    /// Who has the processors of the node from `now` on.
    fn look(&mut self, index: usize, now: Instant, emit: &mut impl FnMut(Segment)) {
        let Segments { occupancy, nodes, .. } = self;
        let node = &mut nodes[index];
        if node.state == NodeState::Ended {
            return;
        }
        for (place, told) in occupancy.processors(index).iter().enumerate() {
            if node.processors.len() == place {
                node.processors.push(Processor { cpu: told.cpu, running: None, finished: None });
            }
            let processor = &mut node.processors[place];
            let holder = occupancy.known_holder(index, place);
            let name = |edge: usize| occupancy.member_name(edge);
            if !processor.is_with(holder, name, || occupancy.unseen_sharers(index)) {
                processor.leave(index, now);
                let runner = match holder {
                    ProcessorHolder::By(Occupant::Job(job)) => Runner::Job(job),
                    ProcessorHolder::By(Occupant::Member(edge)) => Runner::Member(name(edge).into()),
                    ProcessorHolder::SharedUnseen => {
                        Runner::SharedUnseen(occupancy.unseen_sharers(index).collect())
                    }
                    ProcessorHolder::By(_) => continue,
                };
                processor.enter(runner, now, emit);
            }
        }
    }

    /// Hands out what is left; jobs that still run lose their processors at `end`.
    pub fn finish(mut self, end: Instant, mut emit: impl FnMut(Segment)) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            node.leave_all(index, end);
            node.processors.sort_by_key(|processor| processor.cpu);
            let finished = node.processors.iter_mut().filter_map(|processor| processor.finished.take());
            finished.for_each(&mut emit);
        }
    }
}

impl Node {
    /// Whoever has processors of the node loses them.
    fn leave_all(&mut self, index: usize, end: Instant) {
        self.processors.iter_mut().for_each(|processor| processor.leave(index, end));
    }
}

impl Processor {
    /// Whether it is still in the same hands.
    fn is_with<'a, S: Iterator<Item = JobId>>(
        &self,
        now: ProcessorHolder,
        name: impl Fn(usize) -> &'a str,
        sharers: impl FnOnce() -> S,
    ) -> bool {
        match (&self.running, now) {
            (Some((Runner::Job(before), _)), ProcessorHolder::By(Occupant::Job(job))) => *before == job,
            (Some((Runner::Member(before), _)), ProcessorHolder::By(Occupant::Member(edge))) => {
                **before == *name(edge)
            }
            (Some((Runner::SharedUnseen(before), _)), ProcessorHolder::SharedUnseen) => {
                sharers().eq(before.iter().copied())
            }
            (None, ProcessorHolder::By(who)) => !matches!(who, Occupant::Job(_) | Occupant::Member(_)),
            _ => false,
        }
    }

    /// Whoever has the processor loses it.
    fn leave(&mut self, node: usize, end: Instant) {
        if let Some((runner, start)) = self.running.take()
            && start < end
        {
            debug_assert!(self.finished.is_none(), "entering hands out the segment before");
            self.finished = Some(Segment { start, end, node, cpu: self.cpu, runner });
        }
    }

    fn enter(&mut self, runner: Runner, now: Instant, emit: &mut impl FnMut(Segment)) {
        let start = match self.finished.take() {
            Some(before) if before.runner == runner && before.end == now => before.start,
            before => {
                before.into_iter().for_each(emit);
                now
            }
        };
        self.running = Some((runner, start));
    }
}
