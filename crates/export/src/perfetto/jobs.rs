//! Jobs: who had which processor, the lanes, and the arrows from release to start and from job to successor.

use super::messages::DebugAnnotation;
use super::packets::{Flow, Mark, Packets, Track, annotation};
use crate::decode::since;
use std::collections::BTreeMap;
use talea_insight::schedule::{Runner, Segment, Segments};
use talea_model::OperationId;
use talea_record::event::{Complete, Receive, Send, Start};
use talea_record::{Definition, JobId, Metadata, Record, Typed};
use talea_time::Instant;

const UNIT_COUNT: i32 = 2;

/// The jobs at the place in the trace that has been reached.
pub(super) struct Jobs {
    metadata: Metadata,
    /// By operation.
    successors: Vec<Vec<usize>>,
    segments: Segments,
    /// The job on each track of each lane.
    lanes: Vec<Vec<Option<u64>>>,
    /// Deadlines, where they have one, of jobs released and not yet completed or aborted.
    released: BTreeMap<u64, Option<Instant>>,
}

impl Jobs {
    /// Describes the nodes, their processors and their lanes.
    pub fn new(metadata: &Metadata, processes: &[Option<u32>], out: &mut Packets) -> Self {
        let mut successors = vec![Vec::new(); metadata.operations.len()];
        for (index, operation) in metadata.operations.iter().enumerate() {
            operation.predecessors.iter().for_each(|predecessor| successors[*predecessor].push(index));
        }
        let jobs = Jobs {
            successors,
            segments: Segments::new(metadata),
            lanes: vec![Vec::new(); metadata.lanes.len()],
            released: BTreeMap::new(),
            metadata: metadata.clone(),
        };
        for (node, entry) in metadata.nodes.iter().enumerate() {
            // Nodes that one process runs are one process with the name of the first; the others stand beside it.
            let known = processes.get(node).copied().flatten();
            let is_first = known.is_none() || !processes[..node].contains(&known);
            match is_first {
                true => {
                    let pid = known.map_or(node as i32 + 1, |pid| pid as i32);
                    out.process(Track::Node(node), pid, &entry.name);
                }
                false => out.track(Track::Node(node), None, entry.name.clone()),
            }
            entry.cpus.iter().for_each(|cpu| describe_processor(out, node, *cpu));
        }
        for (lane, entry) in metadata.lanes.iter().enumerate() {
            jobs.describe_lane(out, lane, 0);
            if !entry.is_thread() {
                let name = format!("{} queue", jobs.lane_name(lane));
                out.counter_track(Track::Queue(lane), Some(Track::Node(entry.node)), name, Some(UNIT_COUNT));
            }
        }
        jobs
    }

    /// Takes what was defined meanwhile.
    pub fn define(&mut self, definition: &Definition) {
        self.metadata.define(definition);
        self.segments.define(definition);
    }

    /// Whether the job has been released and not yet ended.
    pub fn is_under_way(&self, job: u64) -> bool {
        self.released.contains_key(&job)
    }

    /// Shows a record, if it is about a job.
    pub fn record(&mut self, record: &Record, out: &mut Packets) {
        let mut done = Vec::new();
        self.segments.feed(record, |segment| done.push(segment));
        done.into_iter().for_each(|segment| self.segment(segment, out));
        let Some(lane) = record.lane().filter(|lane| *lane < self.lanes.len()) else { return };
        match record.typed() {
            Typed::Release(release) => {
                self.released.insert(record.causal, record.deadline());
                let flows = self.flows_into(release.job);
                self.instant(record, lane, "release", flows, out);
            }
            Typed::Start(start) => self.start(record.time, start, lane, out),
            Typed::Complete(complete) => self.complete(record, complete, lane, out),
            Typed::Skip(_) => self.instant(record, lane, "skip", Vec::new(), out),
            Typed::Abort(_) => {
                self.released.remove(&record.causal);
                self.stop(record, lane, Vec::new(), out);
                self.instant(record, lane, "abort", Vec::new(), out);
            }
            Typed::Send(send) => self.send(record.time, send, lane, out),
            Typed::Receive(receive) => self.receive(record.time, receive, lane, out),
            _ => {}
        }
    }

    /// Ends what is under way at `end` and marks deadlines that passed before it.
    pub fn finish(mut self, end: Instant, out: &mut Packets) {
        let mut rest = Vec::new();
        std::mem::replace(&mut self.segments, Segments::new(&self.metadata))
            .finish(end, |segment| rest.push(segment));
        rest.into_iter().for_each(|segment| self.segment(segment, out));
        for (job, deadline) in std::mem::take(&mut self.released) {
            if let Some(deadline) = deadline.filter(|deadline| *deadline <= end) {
                self.miss(JobId::unpack(job), deadline, Vec::new(), out);
            }
        }
        for (lane, slots) in self.lanes.iter().enumerate() {
            for slot in (0..slots.len()).filter(|slot| slots[*slot].is_some()) {
                out.end(end, Track::Lane { lane, slot }, Vec::new());
            }
        }
    }

    fn describe_lane(&self, out: &mut Packets, lane: usize, slot: usize) {
        let name = match slot {
            0 => self.lane_name(lane),
            _ => format!("{} ({})", self.lane_name(lane), slot + 1),
        };
        out.track(Track::Lane { lane, slot }, Some(Track::Node(self.metadata.lanes[lane].node)), name);
    }

    fn lane_name(&self, lane: usize) -> String {
        let entry = &self.metadata.lanes[lane];
        match self.metadata.schedulers_above(entry) {
            _ if !entry.is_thread() => format!("lane {}: {}", entry.level, entry.label),
            path if path.is_empty() => format!("thread {}", entry.label),
            path => format!("thread {} ({})", entry.label, path.join(" / ")),
        }
    }

    fn segment(&self, segment: Segment, out: &mut Packets) {
        describe_processor(out, segment.node, segment.cpu);
        let track = Track::Processor { node: segment.node, cpu: segment.cpu };
        let (name, annotations) = match segment.runner {
            Runner::Job(job) => (self.operation_name(job), vec![annotation("job", job.instance as i64)]),
            Runner::Member(name) => (name.to_string(), Vec::new()),
            Runner::SharedUnseen(jobs) => {
                let among: Vec<String> = jobs.iter().map(|job| self.metadata.job_name(*job)).collect();
                (format!("shared unseen: {}", among.join(", ")), Vec::new())
            }
        };
        let mark = Mark { name, category: "processor", annotations, flows: Vec::new() };
        out.begin(segment.start, track, mark);
        out.end(segment.end, track, Vec::new());
    }

    fn start(&mut self, time: Instant, Start { job, depth, .. }: Start, lane: usize, out: &mut Packets) {
        let free = self.lanes[lane].iter().position(Option::is_none);
        let slot = free.unwrap_or(self.lanes[lane].len());
        if free.is_none() {
            self.lanes[lane].push(None);
            if slot > 0 {
                self.describe_lane(out, lane, slot);
            }
        }
        let causal = job.pack();
        self.lanes[lane][slot] = Some(causal);
        let mut annotations = vec![annotation("job", job.instance as i64)];
        annotations.extend(self.deadline(self.released.get(&causal).copied().flatten()));
        let mut flows = vec![Flow::Job(causal)];
        let (from, instance) = (job.operation.index(), job.instance);
        let successors = self.successors.get(from).map_or(&[][..], Vec::as_slice);
        flows.extend(successors.iter().map(|to| Flow::Edge { from, to: *to, instance }));
        let mark = Mark { name: self.operation_name(job), category: "job", annotations, flows };
        out.begin(time, Track::Lane { lane, slot }, mark);
        if !self.metadata.lanes[lane].is_thread() {
            out.count(time, Track::Queue(lane), depth.into());
        }
    }

    /// The job's slice ends, if it has begun.
    fn stop(&mut self, record: &Record, lane: usize, annotations: Vec<DebugAnnotation>, out: &mut Packets) {
        if let Some(slot) = self.lanes[lane].iter().position(|job| *job == Some(record.causal)) {
            self.lanes[lane][slot] = None;
            out.end(record.time, Track::Lane { lane, slot }, annotations);
        }
    }

    fn complete(&mut self, record: &Record, complete: Complete, lane: usize, out: &mut Packets) {
        self.released.remove(&record.causal);
        let mut annotations = vec![annotation("response_ns", since(record.time, complete.nominal))];
        let deadline = record.deadline();
        let lateness = deadline.map(|deadline| annotation("lateness_ns", since(record.time, deadline)));
        annotations.extend(lateness.clone());
        self.stop(record, lane, annotations, out);
        let operation = self.metadata.operations.get(complete.job.operation.index());
        let ends = operation.is_some_and(|operation| operation.is_last);
        if let Some(missed) = deadline.filter(|deadline| ends && record.time > *deadline) {
            self.miss(complete.job, missed, lateness.into_iter().collect(), out);
        }
    }

    fn miss(&self, job: JobId, deadline: Instant, annotations: Vec<DebugAnnotation>, out: &mut Packets) {
        let Some(operation) = self.metadata.operations.get(job.operation.index()) else { return };
        let name = format!("deadline missed: {}", self.metadata.job_name(job));
        let mark = Mark { name, category: "miss", annotations, flows: Vec::new() };
        out.instant(deadline, Track::Lane { lane: operation.lane, slot: 0 }, mark);
    }

    fn instant(&self, record: &Record, lane: usize, what: &'static str, flows: Vec<Flow>, out: &mut Packets) {
        let mark = Mark {
            name: format!("{what}: {}", self.metadata.job_name(record.job())),
            category: what,
            annotations: self.deadline(record.deadline()).into_iter().collect(),
            flows,
        };
        out.instant(record.time, Track::Lane { lane, slot: 0 }, mark);
    }

    /// A job's completion is told to an operation on another node.
    fn send(&self, time: Instant, Send { job, to, .. }: Send, lane: usize, out: &mut Packets) {
        let (from, instance) = (job.operation.index(), job.instance);
        let Some(to) = usize::try_from(to).ok().filter(|to| *to < self.successors.len()) else {
            return;
        };
        let target = JobId { operation: OperationId::from_index(to), instance };
        let mark = Mark {
            name: format!("send: {}", self.metadata.job_name(target)),
            category: "message",
            annotations: Vec::new(),
            flows: vec![Flow::Edge { from, to, instance }, Flow::Message(target.pack())],
        };
        out.instant(time, Track::Lane { lane, slot: 0 }, mark);
    }

    fn receive(&self, time: Instant, Receive { job, sent, .. }: Receive, lane: usize, out: &mut Packets) {
        let took = sent.map(|sent| annotation("took_ns", since(time, sent)));
        let mark = Mark {
            name: format!("receive: {}", self.metadata.job_name(job)),
            category: "message",
            annotations: took.into_iter().collect(),
            flows: vec![Flow::Message(job.pack())],
        };
        out.instant(time, Track::Lane { lane, slot: 0 }, mark);
    }

    /// The arrows that end in a job's release, and the one that goes on from it.
    fn flows_into(&self, job: JobId) -> Vec<Flow> {
        let (to, instance) = (job.operation.index(), job.instance);
        let mut flows = vec![Flow::Job(job.pack())];
        let Some(operation) = self.metadata.operations.get(to) else { return flows };
        let node = |operation: usize| self.metadata.lanes[self.metadata.operations[operation].lane].node;
        let predecessors = operation.predecessors.iter();
        flows.extend(predecessors.clone().map(|from| Flow::Edge { from: *from, to, instance }));
        if predecessors.clone().any(|from| node(*from) != node(to)) {
            flows.push(Flow::Message(job.pack()));
        }
        flows
    }

    fn operation_name(&self, job: JobId) -> String {
        let index = job.operation.index();
        let entry = self.metadata.operations.get(index);
        entry.map_or_else(|| format!("operation {index}"), |entry| entry.name.clone())
    }

    fn deadline(&self, deadline: Option<Instant>) -> Option<DebugAnnotation> {
        deadline.map(|deadline| annotation("deadline_ns", since(deadline, self.metadata.start)))
    }
}

fn describe_processor(out: &mut Packets, node: usize, cpu: u16) {
    let track = Track::Processor { node, cpu };
    if !out.is_described(track) {
        out.track(track, Some(Track::Node(node)), cpu_name(cpu));
    }
}

/// `CPU 3`.
pub(super) fn cpu_name(cpu: u16) -> String {
    if cpu == Record::NO_CPU { "CPU unknown".into() } else { format!("CPU {cpu}") }
}
