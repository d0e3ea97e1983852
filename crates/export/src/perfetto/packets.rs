//! Tracks, events on them, and their packets.

use super::messages::*;
use crate::decode::Shown;
use prost::Message;
use std::collections::HashSet;
use talea_record::{JobId, Record};
use talea_time::Instant;

const SEQUENCE: u32 = 1;
const SEQUENCE_BEGINS: u32 = 1;
/// `Trace.packet`, field 1 with a length.
const PACKET_TAG: u8 = 1 << 3 | 2;

/// A row of the picture. Slices on one track must nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Track {
    /// A node, the parent of what it has.
    Node(usize),
    /// Which jobs had a processor, by the records of jobs.
    Processor { node: usize, cpu: u16 },
    /// Jobs of a lane, as many tracks as there are jobs under way at one time.
    Lane { lane: usize, slot: usize },
    /// How many jobs a lane had.
    Queue(usize),
    /// What dispatching cost on a processor.
    Dispatching { node: usize, cpu: u16 },
    /// From when something was due until the release thread released it.
    Releases(usize),
    /// How long that was.
    ReleaseLateness(usize),
    /// Changes of the node's hierarchy.
    Changes(usize),
    /// The machine as its kernel tells of it, the parent of what follows.
    Kernel,
    /// Which threads had a processor, by the kernel's records.
    KernelProcessor(u16),
    /// Interrupts on a processor.
    Interrupts(u16),
    /// Threads that are not of the run.
    OtherThreads,
    /// When a thread ran.
    Thread(u32),
    /// When a thread was in system calls.
    SystemCalls(u32),
    /// Events of the program on a processor, or on none, by threads that are not known.
    Program(u16),
    /// The number that an event of the program carries.
    Number(u16),
    /// Losses.
    Losses,
}

impl Track {
    /// Its number, unique within a trace.
    fn uuid(self) -> u64 {
        let (kind, number) = match self {
            Track::Node(node) => (1, node as u64),
            Track::Processor { node, cpu } => (2, (node as u64) << 16 | u64::from(cpu)),
            Track::Lane { lane, slot } => (3, (slot as u64) << 16 | lane as u64),
            Track::Queue(lane) => (4, lane as u64),
            Track::Dispatching { node, cpu } => (5, (node as u64) << 16 | u64::from(cpu)),
            Track::Releases(node) => (6, node as u64),
            Track::ReleaseLateness(node) => (7, node as u64),
            Track::Kernel => (8, 0),
            Track::KernelProcessor(cpu) => (9, cpu.into()),
            Track::Interrupts(cpu) => (10, cpu.into()),
            Track::OtherThreads => (11, 0),
            Track::Thread(tid) => (12, tid.into()),
            Track::SystemCalls(tid) => (13, tid.into()),
            Track::Program(cpu) => (14, cpu.into()),
            Track::Number(event) => (15, event.into()),
            Track::Losses => (16, 0),
            Track::Changes(node) => (17, node as u64),
        };
        kind << 56 | number
    }
}

/// An arrow: events with the same flow are connected in the order of their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// From a job's release to its start, and to events of the program that carry it.
    Job(u64),
    /// From a job to the release of its successor: both operations, and the instance.
    Edge { from: usize, to: usize, instance: u64 },
    /// From one node to the other with word for a job.
    Message(u64),
    /// From a wake-up to the thread's running.
    Wakeup(u64),
    /// From where a value is published to where an input takes or drops it: the input, and the instance of the job that published.
    Value { input: usize, instance: u64 },
    /// From where an event is pushed to a job that takes it: its publication, whose job that is, and the job that pushed.
    Event { publication: usize, to: Subscriber, from: JobId },
}

/// Whose jobs take an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subscriber {
    /// A task's, which it releases.
    Task(usize),
    /// An operation's, by a subscription of its own.
    Operation(usize),
    /// Those of all that take it, from one to the next: who these are is not known beforehand where a program pushes.
    Anybody,
}

impl Flow {
    /// Its number: its parts, mixed into 64 bits, in which two flows are as good as never the same.
    fn id(self) -> u64 {
        let (kind, parts) = match self {
            Flow::Job(job) => (1, [job, 0]),
            Flow::Edge { from, to, instance } => (2, [(from as u64) << 32 | to as u64, instance]),
            Flow::Message(job) => (3, [job, 0]),
            Flow::Wakeup(number) => (4, [number, 0]),
            Flow::Value { input, instance } => (5, [input as u64, instance]),
            Flow::Event { publication, to, from } => {
                let (kind, to) = match to {
                    Subscriber::Task(task) => (6, task as u64),
                    Subscriber::Operation(operation) => (7, operation as u64),
                    Subscriber::Anybody => (6, u64::from(u32::MAX)),
                };
                (kind, [(publication as u64) << 32 | to, from.pack()])
            }
        };
        parts.into_iter().fold(mixed(kind), |id, part| mixed(id ^ part)).max(1)
    }
}

/// The finaliser of SplitMix64, a bijection (Steele et al. 2014).
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Packets that wait for being written.
#[derive(Debug, Default)]
pub(super) struct Packets {
    bytes: Vec<u8>,
    begun: bool,
    described: HashSet<Track>,
}

/// What an event shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Mark {
    /// Its name.
    pub name: String,
    /// Its category, by which the picture can be filtered.
    pub category: &'static str,
    /// Values shown on selection.
    pub annotations: Vec<DebugAnnotation>,
    /// The arrows it is on.
    pub flows: Vec<Flow>,
}

impl Packets {
    /// The packets since the last [`Self::clear`].
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets the packets that have been written.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Describes a process, once.
    pub fn process(&mut self, track: Track, pid: i32, name: &str) {
        if self.described.insert(track) {
            let process = Some(ProcessDescriptor { pid: Some(pid), process_name: Some(name.to_owned()) });
            self.describe(TrackDescriptor {
                uuid: Some(track.uuid()),
                process,
                ..TrackDescriptor::default()
            });
        }
    }

    /// Whether the track has been described.
    pub fn is_described(&self, track: Track) -> bool {
        self.described.contains(&track)
    }

    /// Describes a track under a parent or, without one, at the top; again if its name has changed.
    pub fn track(&mut self, track: Track, parent: Option<Track>, name: String) {
        self.described.insert(track);
        self.describe(child(track, parent, name));
    }

    /// Describes a thread's track, again if its name has changed. Where the process is known, viewers put the track to what the kernel tells
    /// of the thread.
    pub fn thread(&mut self, tid: u32, pid: u32, parent: Track, name: &str) {
        let track = Track::Thread(tid);
        self.described.insert(track);
        let is_known = pid != 0 && pid != Record::UNSEEN_THREAD;
        let thread = is_known.then(|| ThreadDescriptor {
            pid: Some(pid as i32),
            tid: Some(tid.into()),
            thread_name: Some(name.to_owned()),
        });
        self.describe(TrackDescriptor { thread, ..child(track, Some(parent), name.to_owned()) });
        if is_known {
            let thread = ProcessTreeThread {
                tid: Some(tid as i32),
                tgid: Some(pid as i32),
                name: Some(name.to_owned()),
            };
            let process_tree = Some(ProcessTree { threads: vec![thread] });
            self.packet(TracePacket { process_tree, ..TracePacket::default() });
        }
    }

    /// What the kernel's scheduler did on a processor in the thread `tid`.
    pub fn scheduling(&mut self, time: Instant, cpu: u16, tid: u32, event: SchedulingEvent) {
        let timestamp = Some(time.as_nanos().max(0) as u64);
        let event = FtraceEvent { timestamp, pid: Some(tid), event: Some(event) };
        let bundle = FtraceEventBundle { cpu: Some(cpu.into()), event: vec![event] };
        self.packet(TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() });
    }

    /// Describes a track of numbers of `unit`.
    pub fn counter_track(&mut self, track: Track, parent: Option<Track>, name: String, unit: Option<i32>) {
        self.described.insert(track);
        let counter = Some(CounterDescriptor { unit });
        self.describe(TrackDescriptor { counter, ..child(track, parent, name) });
    }

    /// A slice begins.
    pub fn begin(&mut self, time: Instant, track: Track, mark: Mark) {
        self.event(time, track, Type::SliceBegin, mark.into());
    }

    /// The slice that began last ends.
    pub fn end(&mut self, time: Instant, track: Track, debug_annotations: Vec<DebugAnnotation>) {
        self.event(time, track, Type::SliceEnd, TrackEvent { debug_annotations, ..TrackEvent::default() });
    }

    /// Something happens.
    pub fn instant(&mut self, time: Instant, track: Track, mark: Mark) {
        self.event(time, track, Type::Instant, mark.into());
    }

    /// The track's number changes.
    pub fn count(&mut self, time: Instant, track: Track, value: i64) {
        let event = TrackEvent { counter_value: Some(value), ..TrackEvent::default() };
        self.event(time, track, Type::Counter, event);
    }

    /// The track's number with a fraction changes.
    pub fn measure(&mut self, time: Instant, track: Track, value: f64) {
        let event = TrackEvent { double_counter_value: Some(value), ..TrackEvent::default() };
        self.event(time, track, Type::Counter, event);
    }

    fn event(&mut self, time: Instant, track: Track, kind: Type, event: TrackEvent) {
        let event = TrackEvent { r#type: Some(kind as i32), track_uuid: Some(track.uuid()), ..event };
        let timestamp = Some(time.as_nanos().max(0) as u64);
        self.packet(TracePacket { timestamp, track_event: Some(event), ..TracePacket::default() });
    }

    fn describe(&mut self, descriptor: TrackDescriptor) {
        self.packet(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() });
    }

    fn packet(&mut self, mut packet: TracePacket) {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        if !self.begun {
            packet.sequence_flags = Some(SEQUENCE_BEGINS);
            self.begun = true;
        }
        self.bytes.push(PACKET_TAG);
        packet.encode_length_delimited(&mut self.bytes).expect("a vector has room");
    }
}

impl From<Mark> for TrackEvent {
    fn from(mark: Mark) -> Self {
        TrackEvent {
            name: Some(mark.name),
            categories: vec![mark.category.to_owned()],
            debug_annotations: mark.annotations,
            flow_ids: mark.flows.into_iter().map(Flow::id).collect(),
            ..TrackEvent::default()
        }
    }
}

fn child(track: Track, parent: Option<Track>, name: String) -> TrackDescriptor {
    let (uuid, parent_uuid) = (Some(track.uuid()), parent.map(Track::uuid));
    TrackDescriptor { uuid, parent_uuid, name: Some(name), ..TrackDescriptor::default() }
}

/// A number shown on selection.
pub(super) fn annotation(name: &str, value: i64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.into()), value: Some(Value::Int(value)) }
}

/// A field shown on selection, with its type.
pub(super) fn typed(name: &str, value: Shown<'_>) -> DebugAnnotation {
    let value = match value {
        Shown::Absent => None,
        Shown::Unsigned(value) => Some(Value::Uint(value)),
        Shown::Signed(value) => Some(Value::Int(value)),
        Shown::Float(value) => Some(Value::Double(value)),
        Shown::Bool(value) => Some(Value::Bool(value)),
        Shown::Text(text) => Some(Value::Text(text.into_owned())),
    };
    DebugAnnotation { name: Some(name.into()), value }
}
