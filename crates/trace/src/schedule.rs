//! Who ran where and when: a run's schedule as segments.

use crate::{Event, JobId, Metadata, Record, Sink};
use std::io::Write;
use talea_time::Instant;
use thiserror::Error;

/// A stretch of time in which one job had one processor. Longer than nothing; a job that gets back its
/// processor in the very instant in which it lost it has one segment, not two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When it got the processor.
    pub start: Instant,
    /// When it lost it.
    pub end: Instant,
    /// Index of the node.
    pub node: usize,
    /// The processor by its Linux number, or [`Record::NO_CPU`] if the records do not say.
    pub cpu: u16,
    /// The job.
    pub job: JobId,
}

/// Derives segments from records as they come, in memory that depends on the processors only.
///
/// Segments of one processor come in the order of time, each when the next one begins or the run ends.
/// A job that starts on a processor which another one still has, takes it: the record of the other
/// one's leaving was lost, or the preemption happened in the kernel unseen.
#[derive(Debug)]
pub struct Segments {
    node_of_lane: Vec<usize>,
    nodes: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// By Linux number.
    processors: Vec<Processor>,
    state: NodeState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NodeState {
    #[default]
    Running,
    Ended,
}

#[derive(Clone, Debug, Default)]
struct Processor {
    running: Option<(JobId, Instant)>,
    /// The segment before, which grows if the same job comes back at once.
    finished: Option<Segment>,
}

impl Segments {
    /// For a run of the system that `metadata` describe.
    pub fn new(metadata: &Metadata) -> Self {
        let nodes = metadata.nodes.iter().map(|_| Node::default()).collect();
        Segments { node_of_lane: metadata.lanes.iter().map(|lane| lane.node).collect(), nodes }
    }

    /// Takes a record and hands the segments that it completes to `emit`.
    pub fn feed(&mut self, record: &Record, mut emit: impl FnMut(Segment)) {
        if record.event == Event::RUN_END {
            if let Some(node) = self.nodes.get_mut(usize::from(record.source)) {
                node.state = NodeState::Ended;
                (0..node.processors.len())
                    .for_each(|cpu| node.leave(usize::from(record.source), cpu, record.time));
            }
            return;
        }
        let Some(&index) = self.node_of_lane.get(usize::from(record.source)) else { return };
        let node = &mut self.nodes[index];
        let job = record.job();
        match record.event {
            Event::START | Event::RESUME if node.state == NodeState::Running => {
                let cpu = usize::from(record.cpu);
                if node.processors.len() <= cpu {
                    node.processors.resize_with(cpu + 1, Processor::default);
                }
                node.leave(index, cpu, record.time);
                node.processors[cpu].enter(job, record.time, &mut emit);
            }
            Event::PREEMPT | Event::COMPLETE => node.stop(index, job, record),
            Event::ABORT if record.arg == 1 => node.stop(index, job, record),
            _ => {}
        }
    }

    /// Hands out what is left; jobs that still run lose their processors at `end`.
    pub fn finish(mut self, end: Instant, mut emit: impl FnMut(Segment)) {
        for (index, node) in self.nodes.iter_mut().enumerate() {
            for cpu in 0..node.processors.len() {
                node.leave(index, cpu, end);
                node.processors[cpu].finished.take().into_iter().for_each(&mut emit);
            }
        }
    }
}

impl Node {
    /// The job loses the processor it has, which is not the record's if its thread has migrated since.
    fn stop(&mut self, node: usize, job: JobId, record: &Record) {
        let has = |processor: &Processor| processor.running.is_some_and(|(running, _)| running == job);
        let named = usize::from(record.cpu);
        let cpu = match self.processors.get(named) {
            Some(processor) if has(processor) => Some(named),
            _ => self.processors.iter().position(has),
        };
        if let Some(cpu) = cpu {
            self.leave(node, cpu, record.time);
        }
    }

    /// Whoever has the processor loses it.
    fn leave(&mut self, node: usize, cpu: usize, end: Instant) {
        let processor = &mut self.processors[cpu];
        if let Some((job, start)) = processor.running.take()
            && start < end
        {
            debug_assert!(processor.finished.is_none(), "entering hands out the segment before");
            processor.finished = Some(Segment { start, end, node, cpu: cpu as u16, job });
        }
    }
}

impl Processor {
    fn enter(&mut self, job: JobId, now: Instant, emit: &mut impl FnMut(Segment)) {
        let start = match self.finished.take() {
            Some(before) if before.job == job && before.end == now => before.start,
            before => {
                before.into_iter().for_each(emit);
                now
            }
        };
        self.running = Some((job, start));
    }
}

/// Name of an operation within its task: `filter` for `nav.filter`, `nav` for the task `nav` of one
/// operation.
pub(crate) fn subtask_name(metadata: &Metadata, operation: usize) -> &str {
    let entry = &metadata.operations[operation];
    let task = &metadata.tasks[entry.task].name;
    entry.name.strip_prefix(task.as_str()).and_then(|rest| rest.strip_prefix('.')).unwrap_or(&entry.name)
}

/// Writing rows of CSV failed, of the schedule or of all records.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct ScheduleError(#[from] csv::Error);

/// Writes the schedule as CSV: `start_ns,end_ns,node,cpu,task,subtask,job`, times counted from
/// [`Metadata::start`], names of nodes, tasks and subtasks, the number of the instance as job. The
/// processor is empty if the records do not name it. Jobs of operations that the metadata do not know
/// are left out.
pub struct ScheduleCsv<W: Write> {
    segments: Segments,
    rows: Rows<W>,
}

struct Rows<W: Write> {
    metadata: Metadata,
    writer: csv::Writer<W>,
    /// The first failure, after which nothing more is written.
    failure: Option<csv::Error>,
}

impl<W: Write> ScheduleCsv<W> {
    /// Writes to `output`, beginning with the line of column names.
    pub fn new(metadata: &Metadata, output: W) -> Self {
        let mut writer = csv::Writer::from_writer(output);
        let failure =
            writer.write_record(["start_ns", "end_ns", "node", "cpu", "task", "subtask", "job"]).err();
        let rows = Rows { metadata: metadata.clone(), writer, failure };
        ScheduleCsv { segments: Segments::new(metadata), rows }
    }

    /// Writes what is left; jobs that still run lose their processors at `end`.
    ///
    /// # Errors
    /// The first failure to write.
    pub fn finish(self, end: Instant) -> Result<(), ScheduleError> {
        let mut rows = self.rows;
        self.segments.finish(end, |segment| rows.write(segment));
        match rows.failure {
            Some(failure) => Err(failure.into()),
            None => Ok(rows.writer.flush().map_err(csv::Error::from)?),
        }
    }
}

impl<W: Write> Rows<W> {
    fn write(&mut self, segment: Segment) {
        let operation = segment.job.operation.index();
        let Some(entry) = self.metadata.operations.get(operation) else { return };
        if self.failure.is_some() {
            return;
        }
        let since_start = |time: Instant| time.as_nanos().saturating_sub(self.metadata.start.as_nanos());
        self.failure = self
            .writer
            .serialize((
                since_start(segment.start),
                since_start(segment.end),
                &self.metadata.nodes[segment.node].name,
                (segment.cpu != Record::NO_CPU).then_some(segment.cpu),
                &self.metadata.tasks[entry.task].name,
                subtask_name(&self.metadata, operation),
                segment.job.instance,
            ))
            .err();
    }
}

impl<W: Write> Sink for ScheduleCsv<W> {
    fn record(&mut self, record: Record) {
        let rows = &mut self.rows;
        self.segments.feed(&record, |segment| rows.write(segment));
    }
}
