//! Export for the Perfetto UI (<https://ui.perfetto.dev>), as a TrackEvent trace.
//!
//! Each node is a process with
//! * a track per processor, whose slices are the segments in which jobs had it,
//! * a track per lane, whose slices are jobs from start to completion, preempted time included, and whose
//!   instants are releases, skips, abortions and deadlines that passed unmet. Jobs of a lane that are
//!   under way at the same time stand on tracks of their own, for slices of one track must nest.
//! * a counter per lane: its queue at the start of each job.
//!
//! Flows connect the jobs of one instance of a task of several operations. Slices carry the number of
//! the instance, the deadline (from [`Metadata::start`]), the response time and the lateness.

mod messages;

use crate::schedule::{Segment, Segments};
use crate::show::job_name;
use crate::{Event, JobId, Metadata, Record, Sink};
use messages::*;
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use talea_time::Instant;

const SEQUENCE: u32 = 1;
const SEQUENCE_BEGINS: u32 = 1;
const UNIT_COUNT: i32 = 2;
/// `Trace.packet`, field 1 with a length.
const PACKET_TAG: u8 = 1 << 3 | 2;

/// Writes a Perfetto trace from records in the order of time.
pub struct PerfettoExport<W: Write> {
    out: Packets<W>,
    metadata: Metadata,
    /// Number of operations of each task.
    operations_of: Vec<usize>,
    segments: Segments,
    /// Processor tracks already described, by node and processor.
    processors: BTreeSet<(usize, u16)>,
    /// The job on each track of each lane.
    lanes: Vec<Vec<Option<u64>>>,
    /// Release and deadline of jobs released and not yet completed or aborted.
    released: BTreeMap<u64, [u64; 2]>,
    last: Instant,
}

/// The file, packet by packet.
struct Packets<W> {
    output: W,
    buffer: Vec<u8>,
    /// The first failure, after which nothing more is written.
    failure: Option<io::Error>,
}

/// A track's number, unique within a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Track {
    Node(usize),
    Processor { node: usize, cpu: u16 },
    Lane { lane: usize, slot: usize },
    Queue(usize),
}

impl Track {
    fn uuid(self) -> u64 {
        let (kind, number) = match self {
            Track::Node(node) => (1, node as u64),
            Track::Processor { node, cpu } => (2, (node as u64) << 16 | u64::from(cpu)),
            Track::Lane { lane, slot } => (3, (slot as u64) << 16 | lane as u64),
            Track::Queue(lane) => (4, lane as u64),
        };
        kind << 56 | number
    }
}

impl<W: Write> PerfettoExport<W> {
    /// Begins a trace in `output`, which need not be buffered if it is memory.
    pub fn new(metadata: &Metadata, output: W) -> Self {
        let mut export = PerfettoExport {
            out: Packets { output, buffer: Vec::new(), failure: None },
            operations_of: (0..metadata.tasks.len())
                .map(|task| metadata.operations.iter().filter(|operation| operation.task == task).count())
                .collect(),
            segments: Segments::new(metadata),
            processors: BTreeSet::new(),
            lanes: vec![Vec::new(); metadata.lanes.len()],
            released: BTreeMap::new(),
            last: metadata.start,
            metadata: metadata.clone(),
        };
        export.describe_all();
        export
    }

    /// Ends open slices at `end`, marks deadlines that passed before it, and returns the output.
    ///
    /// # Errors
    /// The first failure to write.
    pub fn finish(mut self, end: Instant) -> io::Result<W> {
        let end = end.max(self.last);
        let mut rest = Vec::new();
        std::mem::replace(&mut self.segments, Segments::new(&self.metadata))
            .finish(end, |segment| rest.push(segment));
        rest.into_iter().for_each(|segment| self.segment(segment));
        for (job, [_, deadline]) in std::mem::take(&mut self.released) {
            let deadline = Instant::from_nanos(deadline as i64);
            if deadline <= end {
                self.miss(JobId::unpack(job), deadline, Vec::new());
            }
        }
        for lane in 0..self.lanes.len() {
            for slot in 0..self.lanes[lane].len() {
                if self.lanes[lane][slot].is_some() {
                    self.out.event(end, Track::Lane { lane, slot }, Type::SliceEnd, TrackEvent::default());
                }
            }
        }
        match self.out.failure {
            Some(failure) => Err(failure),
            None => self.out.output.flush().map(|()| self.out.output),
        }
    }

    fn describe_all(&mut self) {
        for node in 0..self.metadata.nodes.len() {
            let process_name = Some(self.metadata.nodes[node].name.clone());
            // The process itself has no parent; its number only has to differ from the others'.
            let process = Some(ProcessDescriptor { pid: Some(node as i32 + 1), process_name });
            let uuid = Some(Track::Node(node).uuid());
            self.out.describe(TrackDescriptor { uuid, process, ..TrackDescriptor::default() });
            for cpu in self.metadata.nodes[node].cpus.clone() {
                self.describe_processor(node, cpu);
            }
        }
        for lane in 0..self.metadata.lanes.len() {
            self.describe_lane(lane, 0);
            let name = format!("{} queue", self.lane_name(lane));
            let counter = Some(CounterDescriptor { unit: Some(UNIT_COUNT) });
            let node = self.metadata.lanes[lane].node;
            self.out.describe(TrackDescriptor { counter, ..child(Track::Queue(lane), node, name) });
        }
    }

    fn describe_processor(&mut self, node: usize, cpu: u16) {
        if self.processors.insert((node, cpu)) {
            let name = if cpu == Record::NO_CPU { "CPU unknown".into() } else { format!("CPU {cpu}") };
            self.out.describe(child(Track::Processor { node, cpu }, node, name));
        }
    }

    fn describe_lane(&mut self, lane: usize, slot: usize) {
        let name = match slot {
            0 => self.lane_name(lane),
            _ => format!("{} ({})", self.lane_name(lane), slot + 1),
        };
        let node = self.metadata.lanes[lane].node;
        self.out.describe(child(Track::Lane { lane, slot }, node, name));
    }

    fn lane_name(&self, lane: usize) -> String {
        let entry = &self.metadata.lanes[lane];
        format!("lane {}: {}", entry.level, entry.label)
    }

    fn segment(&mut self, segment: Segment) {
        self.describe_processor(segment.node, segment.cpu);
        let track = Track::Processor { node: segment.node, cpu: segment.cpu };
        let begin = TrackEvent {
            name: Some(self.operation_name(segment.job)),
            categories: vec!["processor".into()],
            debug_annotations: vec![annotation("job", segment.job.instance as i64)],
            ..TrackEvent::default()
        };
        self.out.event(segment.start, track, Type::SliceBegin, begin);
        self.out.event(segment.end, track, Type::SliceEnd, TrackEvent::default());
    }

    fn start(&mut self, record: &Record, lane: usize) {
        let free = self.lanes[lane].iter().position(Option::is_none);
        let slot = free.unwrap_or(self.lanes[lane].len());
        if free.is_none() {
            self.lanes[lane].push(None);
            if slot > 0 {
                self.describe_lane(lane, slot);
            }
        }
        self.lanes[lane][slot] = Some(record.causal);
        let job = record.job();
        let mut debug_annotations = vec![annotation("job", job.instance as i64)];
        if let Some([_, deadline]) = self.released.get(&record.causal) {
            debug_annotations.push(annotation("deadline_ns", self.since_start(*deadline)));
        }
        let begin = TrackEvent {
            name: Some(self.operation_name(job)),
            categories: vec!["job".into()],
            debug_annotations,
            flow_ids: self.flow(job),
            ..TrackEvent::default()
        };
        self.out.event(record.time, Track::Lane { lane, slot }, Type::SliceBegin, begin);
        let queue = TrackEvent { counter_value: Some(i64::from(record.arg)), ..TrackEvent::default() };
        self.out.event(record.time, Track::Queue(lane), Type::Counter, queue);
    }

    /// The job's slice ends, if it has begun.
    fn stop(&mut self, record: &Record, lane: usize, debug_annotations: Vec<DebugAnnotation>) {
        if let Some(slot) = self.lanes[lane].iter().position(|job| *job == Some(record.causal)) {
            self.lanes[lane][slot] = None;
            let end = TrackEvent { debug_annotations, ..TrackEvent::default() };
            self.out.event(record.time, Track::Lane { lane, slot }, Type::SliceEnd, end);
        }
    }

    fn complete(&mut self, record: &Record, lane: usize) {
        self.released.remove(&record.causal);
        let [release, deadline] = record.words.map(|word| word as i64);
        let lateness_ns = record.time.as_nanos().saturating_sub(deadline);
        let response = annotation("response_ns", record.time.as_nanos().saturating_sub(release));
        let lateness = annotation("lateness_ns", lateness_ns);
        self.stop(record, lane, vec![response, lateness.clone()]);
        let is_last = self
            .metadata
            .operations
            .get(record.job().operation.index())
            .is_some_and(|operation| operation.is_last);
        if is_last && lateness_ns > 0 {
            self.miss(record.job(), Instant::from_nanos(deadline), vec![lateness]);
        }
    }

    fn miss(&mut self, job: JobId, deadline: Instant, debug_annotations: Vec<DebugAnnotation>) {
        let Some(lane) = self.metadata.operations.get(job.operation.index()).map(|operation| operation.lane)
        else {
            return;
        };
        let name = Some(format!("deadline missed: {}", job_name(&self.metadata, job)));
        let event =
            TrackEvent { name, categories: vec!["miss".into()], debug_annotations, ..TrackEvent::default() };
        self.out.event(deadline, Track::Lane { lane, slot: 0 }, Type::Instant, event);
    }

    fn instant(&mut self, record: &Record, lane: usize, what: &str) {
        let event = TrackEvent {
            name: Some(format!("{what}: {}", job_name(&self.metadata, record.job()))),
            categories: vec![what.into()],
            debug_annotations: vec![annotation("deadline_ns", self.since_start(record.words[1]))],
            ..TrackEvent::default()
        };
        self.out.event(record.time, Track::Lane { lane, slot: 0 }, Type::Instant, event);
    }

    fn operation_name(&self, job: JobId) -> String {
        let index = job.operation.index();
        self.metadata
            .operations
            .get(index)
            .map_or_else(|| format!("operation {index}"), |entry| entry.name.clone())
    }

    fn since_start(&self, word: u64) -> i64 {
        (word as i64).saturating_sub(self.metadata.start.as_nanos())
    }

    /// The flow of the job's instance, if its task has more than one operation.
    fn flow(&self, job: JobId) -> Vec<u64> {
        match self.metadata.operations.get(job.operation.index()) {
            Some(operation) if self.operations_of[operation.task] > 1 => {
                vec![(operation.task as u64 + 1) << 44 | job.instance]
            }
            _ => Vec::new(),
        }
    }
}

impl<W: Write> Sink for PerfettoExport<W> {
    fn record(&mut self, record: Record) {
        self.last = self.last.max(record.time);
        let mut done = None;
        self.segments.feed(&record, |segment| done = Some(segment));
        if let Some(segment) = done {
            self.segment(segment);
        }
        let lane = usize::from(record.source);
        if lane >= self.lanes.len() {
            return;
        }
        match record.event {
            Event::RELEASE => {
                self.released.insert(record.causal, record.words);
                self.instant(&record, lane, "release");
            }
            Event::START => self.start(&record, lane),
            Event::COMPLETE => self.complete(&record, lane),
            Event::SKIP => self.instant(&record, lane, "skip"),
            Event::ABORT => {
                self.released.remove(&record.causal);
                self.stop(&record, lane, Vec::new());
                self.instant(&record, lane, "abort");
            }
            _ => {}
        }
    }
}

impl<W: Write> Packets<W> {
    fn describe(&mut self, descriptor: TrackDescriptor) {
        self.write(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() });
    }

    fn event(&mut self, time: Instant, track: Track, kind: Type, event: TrackEvent) {
        let event = TrackEvent { r#type: Some(kind as i32), track_uuid: Some(track.uuid()), ..event };
        let timestamp = Some(time.as_nanos().max(0) as u64);
        self.write(TracePacket { timestamp, track_event: Some(event), ..TracePacket::default() });
    }

    fn write(&mut self, mut packet: TracePacket) {
        if self.failure.is_some() {
            return;
        }
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        // Nothing has been encoded before the first packet.
        if self.buffer.is_empty() {
            packet.sequence_flags = Some(SEQUENCE_BEGINS);
        }
        self.buffer.clear();
        self.buffer.push(PACKET_TAG);
        packet.encode_length_delimited(&mut self.buffer).expect("a vector has room");
        self.failure = self.output.write_all(&self.buffer).err();
    }
}

fn child(track: Track, node: usize, name: String) -> TrackDescriptor {
    let (uuid, parent_uuid) = (Some(track.uuid()), Some(Track::Node(node).uuid()));
    TrackDescriptor { uuid, parent_uuid, name: Some(name), ..TrackDescriptor::default() }
}

fn annotation(name: &str, value: i64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.into()), int_value: Some(value) }
}
