//! Who has which processor right now, as far as the records of jobs, of dispatching and of the kernel tell.
//!
//! Three layers, each of which knows better than the one before where it is recorded:
//!
//! | Layer | Records | What it tells |
//! |---|---|---|
//! | jobs | START, PREEMPT, WAIT, RESUME, COMPLETE, ABORT; of what was added, GRANT, REVOKE, RELEASE of its edge | whose job a processor executes |
//! | lanes | WAKE, SLEEP | that a lane's thread is at work between its jobs |
//! | kernel | SWITCH, IRQ with THREAD, MEMBER, THREAD_NAME | which thread really has the processor, and interrupts |
//!
//! Of other threads the kernel tells the process. Those of the processes that run the system are theirs, not others'.
//!
//! The kernel speaks of threads, and THREAD and MEMBER records say whose one is ([`members`]). Where a node's lanes have none, the
//! kernel does not override the jobs: else the node's own threads would pass for other programs.
//!
//! A thread of the run that has lost its processor although it could go on waits for it until it is somewhere again. Whether the
//! processor is *withheld* meanwhile is said by [`crate::receipts`]; here is told who had it.
//!
//! A job that starts on a processor which another one still has displaces it, and the other one goes on when the displacing
//! one has left. In virtual time, and where real threads have real-time priorities, the higher lane has the one processor
//! meanwhile. Otherwise the kernel chooses unseen between the two, and nobody knows which of them runs
//! ([`Occupancy::is_shared_unseen`]).
//!
//! That no record tells of anybody on a processor makes it idle only where records would tell. After lost records, and
//! where the recording came to a run under way, nothing is known of a processor until a record of its own says something;
//! nor is a processor without a job idle while there are lanes of which nothing was heard yet, for their jobs of before
//! may have any. Where the kernel has been heard of at all, it tells of every processor from its first switch on; before
//! that, and after a loss, one without a job is unknown.

mod members;
mod update;

use members::Below;
use std::collections::{HashMap, HashSet};
use std::fmt;
use talea_record::event::{Coded, IrqEnter};
use talea_record::{Definition, InterruptKind, JobId, KnownThreads, Metadata, NodeEntry, Origin, Record};
use talea_time::Instant;

/// Who has a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupant {
    /// A job executes.
    Job(JobId),
    /// A lane's thread between its jobs.
    Lane(usize),
    /// A thread of what was added to the hierarchy while the run lasted, by the first edge that it was seen behind.
    Member(usize),
    /// The release thread.
    Release,
    /// The thread that takes messages.
    Receiver,
    /// Another thread of a process of the run, by its number: its collector, say, or its first one.
    Companion(u32),
    /// A thread of another program, or of the kernel, by its number.
    Program(u32),
    /// An interrupt handler.
    Interrupt(Interrupt),
    /// Nobody, although a thread of the run that lost the processor could go on. Whether it is withheld so is for [`crate::receipts`] to say.
    IdleBeforeReady,
    /// Nobody that any record tells of.
    Idle,
    /// No record tells although one must have been written.
    Unknown(Unknown),
}

/// Who has a processor, as far as anybody saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessorHolder {
    /// This one.
    By(Occupant),
    /// One of several jobs that have begun, or none of them: [`Occupancy::unseen_sharers`].
    SharedUnseen,
}

/// Why it is not known who has a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Records that would tell were lost.
    Lost,
    /// They are from before the recording.
    BeforeRecording,
}

/// An interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interrupt {
    /// What its number counts: an [`talea_record::InterruptKind`], or 0 if the trace does not say.
    pub kind: u16,
    /// Its number.
    pub number: u64,
}

impl From<IrqEnter> for Interrupt {
    fn from(interrupt: IrqEnter) -> Self {
        Interrupt { kind: interrupt.kind.number(), number: interrupt.irq }
    }
}

impl fmt::Display for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match InterruptKind::from_code(self.kind) {
            Some(InterruptKind::Device) => "line ",
            Some(InterruptKind::Soft) => "soft ",
            Some(InterruptKind::Local) => "vector ",
            None => "",
        };
        write!(f, "{kind}{}", self.number)
    }
}

/// Where a lane's thread is, by the kernel's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThreadState {
    /// They do not tell.
    Unknown,
    /// On a processor.
    Running,
    /// On none although it could go on.
    Preempted,
    /// On none, and it may wait for something else.
    Off,
}

/// Whether a lane's thread is at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SleepState {
    /// The trace has no records of it.
    #[default]
    Unknown,
    Asleep,
    Awake,
}

/// A thread of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunThread {
    Lane(usize),
    /// Of what was added while the run lasted, behind this edge.
    Member(usize),
    Release,
    Receiver,
}

/// What is known of a thread of the run.
#[derive(Debug)]
struct KnownThread {
    role: RunThread,
    /// The edges that it stands behind; none of those that only a THREAD record has told of.
    behind: Vec<usize>,
    /// Its process by its THREAD record, 0 if there was none.
    of_process: u32,
    /// Its process by the first switch since.
    process: Option<u32>,
}

/// The edges of all nodes.
#[derive(Debug)]
struct Edges {
    /// By edge.
    standings: Vec<Standing>,
    metadata: Metadata,
}

/// An edge.
#[derive(Debug)]
struct Standing {
    node: usize,
    below: Below,
    /// Whether a thread was seen behind it.
    has_members: bool,
}

/// A job that has given up its processor until there is room for what it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitingForRoom {
    pub job: JobId,
    /// The input, by its index.
    pub input: usize,
    /// How long at most.
    pub until: Instant,
}

/// A job that waits until another one has ended a call, which has its priority meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockedJob {
    pub job: JobId,
    /// The other one, if that is known.
    pub by: Option<JobId>,
    /// Whether that one has the processor that the job had.
    has_its_processor: bool,
}

#[derive(Debug)]
struct Lane {
    node: usize,
    level: usize,
    /// How many threads of it are known.
    threads: usize,
    awake: SleepState,
    /// The processor of its last record.
    cpu: u16,
    /// The job it last ran, while that is unfinished.
    current: Option<JobId>,
    /// The job of it that has given up its processor until there is room for what it wrote.
    waiting: Option<WaitingForRoom>,
    /// The job of it that waits for another one.
    blocked: Option<BlockedJob>,
    knowledge: LaneKnowledge,
}

/// Who goes on when a job begins on a processor that another one still has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PreemptionRule {
    /// The one of the higher lane.
    ByLevel,
    /// Whichever the kernel chooses, on any processor of the node.
    Unseen,
}

impl PreemptionRule {
    fn of(origin: Origin, node: &NodeEntry) -> Self {
        match origin {
            Origin::Simulation { .. } | Origin::Threads { realtime: true } if node.cpus.len() == 1 => {
                PreemptionRule::ByLevel
            }
            _ => PreemptionRule::Unseen,
        }
    }
}

/// Whether it is known what a lane does, which may have begun to run a job before the records began, or be lost with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneKnowledge {
    Awaited(Unknown),
    Known,
}

/// Whether the beginning of a node's run is in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    Awaited,
    Passed,
}

/// Whether the kernel tells of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KernelRecords {
    None,
    Present,
}

/// One processor of one node.
#[derive(Debug)]
pub(crate) struct Processor {
    /// Its Linux number.
    pub cpu: u16,
    /// The job it executes last, below it those it displaced unseen.
    jobs: Vec<JobId>,
    /// The edges to what was added of which the schedulers gave it to somebody.
    granted: Vec<usize>,
    /// The thread the kernel gave it to; `None` until its first switch, and after a loss until the next one.
    thread: Option<u32>,
    /// Why the thread is not known, while it is not.
    unseen: Unknown,
    interrupts: Vec<Interrupt>,
    /// The threads of the run that lost the processor although they could go on, until they have one.
    waiting: Vec<u32>,
    gap: RecordGap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordGap {
    None,
    /// Nothing has been heard since records were lost, or since the recording came to the run under way.
    Since(Unknown),
}

/// The state of all processors.
#[derive(Debug)]
pub(crate) struct Occupancy {
    lanes: Vec<Lane>,
    lane_of_operation: Vec<usize>,
    nodes: Vec<Vec<Processor>>,
    /// By node.
    preemption_rule: Vec<PreemptionRule>,
    /// Whether a THREAD record of a lane of the node has come.
    identified: Vec<bool>,
    /// By node.
    beginnings: Vec<Beginning>,
    kernel: KernelRecords,
    threads: HashMap<u32, KnownThread>,
    /// Those of them that end by a record and still have a processor.
    ending: HashSet<u32>,
    edges: Edges,
    /// Threads of the run that were made ready and have had no processor since.
    woken: HashSet<u32>,
    /// The processes that the threads of the run are of.
    processes: HashSet<u32>,
    /// Those of them that run the system, not only programs that stand in its hierarchy.
    own_processes: HashSet<u32>,
    /// Threads of these processes, with theirs.
    companions: HashMap<u32, u32>,
    names: KnownThreads,
    is_simulated: bool,
}

impl Occupancy {
    /// Nobody has anything yet.
    pub fn new(metadata: &Metadata) -> Self {
        let lane = |(index, entry): (usize, &talea_record::LaneEntry)| Lane {
            node: entry.node,
            level: metadata.rank(index),
            threads: 0,
            awake: SleepState::Unknown,
            cpu: Record::NO_CPU,
            current: None,
            waiting: None,
            blocked: None,
            knowledge: LaneKnowledge::Known,
        };
        let processors =
            |entry: &talea_record::NodeEntry| entry.cpus.iter().map(|cpu| Processor::new(*cpu)).collect();
        Occupancy {
            lanes: metadata.lanes.iter().enumerate().map(lane).collect(),
            lane_of_operation: metadata.operations.iter().map(|operation| operation.lane).collect(),
            nodes: metadata.nodes.iter().map(processors).collect(),
            preemption_rule: metadata
                .nodes
                .iter()
                .map(|node| PreemptionRule::of(metadata.origin, node))
                .collect(),
            identified: vec![false; metadata.nodes.len()],
            beginnings: vec![Beginning::Awaited; metadata.nodes.len()],
            kernel: KernelRecords::None,
            threads: HashMap::new(),
            ending: HashSet::new(),
            edges: Edges::of(metadata),
            woken: HashSet::new(),
            processes: HashSet::new(),
            own_processes: HashSet::new(),
            companions: HashMap::new(),
            names: KnownThreads::of(metadata),
            is_simulated: matches!(metadata.origin, Origin::Simulation { .. }),
        }
    }

    /// Takes what was defined meanwhile.
    pub fn define(&mut self, definition: &Definition) {
        self.names.define(definition);
        self.edges.define(definition);
        if let Definition::Operation { number, entry, .. } = definition
            && let Some(lane) = self.lane_of_operation.get_mut(*number)
            && entry.lane < self.lanes.len()
        {
            *lane = entry.lane;
        }
    }

    /// The node of a job's operation, if the metadata know it.
    pub fn node_of(&self, job: JobId) -> Option<usize> {
        Some(self.lanes[self.lane_of(job)?].node)
    }

    /// The processors of a node.
    pub fn processors(&self, node: usize) -> &[Processor] {
        &self.nodes[node]
    }

    /// The lane of a job's operation, if the metadata know it.
    pub fn lane_of(&self, job: JobId) -> Option<usize> {
        self.lane_of_operation.get(job.operation.index()).copied()
    }

    /// Whether the lane's thread is at work.
    pub fn awake(&self, lane: usize) -> SleepState {
        self.lanes[lane].awake
    }

    /// The job that keeps the lane while it waits for room at `now`. In virtual time it is known when room came; on threads it is not, for who takes
    /// a value tells of it later.
    pub fn waiting_for_room(&self, lane: usize, now: Instant) -> Option<WaitingForRoom> {
        self.lanes[lane].waiting.filter(|waiting| now < waiting.until)
    }

    /// The job of the lane that waits for another one to end a call.
    pub fn blocked(&self, lane: usize) -> Option<BlockedJob> {
        self.lanes[lane].blocked
    }

    /// The highest lane of which a job waits for this one, and has lent it its priority. Levels grow downwards.
    pub fn lent_by(&self, job: JobId) -> Option<usize> {
        let lends = |lane: &Lane| lane.blocked.is_some_and(|blocked| blocked.by == Some(job));
        let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| lends(lane));
        lanes.min_by_key(|(_, lane)| lane.level).map(|(index, _)| index)
    }

    /// What the thread is called: its own name, or what it does in the run.
    pub fn thread_name(&self, thread: u32) -> Option<&str> {
        self.names.name(thread).filter(|name| !name.is_empty())
    }

    /// Who has the processor at `index` of the node.
    pub fn occupant(&self, node: usize, index: usize) -> Occupant {
        let processor = &self.nodes[node][index];
        match self.interrupt(node, index) {
            Some(interrupt) if processor.gap == RecordGap::None => Occupant::Interrupt(interrupt),
            _ => self.holder(node, index),
        }
    }

    /// The interrupt handler that has the processor now.
    pub fn interrupt(&self, node: usize, index: usize) -> Option<Interrupt> {
        self.nodes[node][index].interrupts.last().copied()
    }

    /// Who has the processor when no interrupt has it.
    pub fn holder(&self, node: usize, index: usize) -> Occupant {
        let processor = &self.nodes[node][index];
        if let RecordGap::Since(unknown) = processor.gap {
            return Occupant::Unknown(unknown);
        }
        match processor.thread {
            Some(thread) if !self.identified[node] && self.says_itself(node, processor, thread) => {}
            // A thread that is not observed may as well be the idle one, unless it keeps a job from its processor.
            Some(Record::UNSEEN_THREAD)
                if processor.jobs.is_empty() && self.granted_member(processor).is_none() =>
            {
                return Occupant::Idle;
            }
            Some(0) if !processor.waiting.is_empty() => return Occupant::IdleBeforeReady,
            Some(thread) => return self.of_thread(node, thread),
            None => {}
        }
        if let Some(job) = processor.jobs.last() {
            return Occupant::Job(*job);
        }
        if let Some(edge) = self.granted_member(processor) {
            return Occupant::Member(edge);
        }
        let nobody = match self.kernel {
            KernelRecords::Present if processor.thread.is_none() => Occupant::Unknown(processor.unseen),
            KernelRecords::None => self.awaited(node).map_or(Occupant::Idle, Occupant::Unknown),
            KernelRecords::Present => Occupant::Idle,
        };
        self.lane_at_work(node, processor).map_or(nobody, Occupant::Lane)
    }

    /// The edge of what was added and was given the processor, if there is anybody.
    fn granted_member(&self, processor: &Processor) -> Option<usize> {
        processor.granted.iter().copied().find(|edge| self.edges.standings[*edge].has_members)
    }

    /// The node of an edge, if the metadata know it.
    pub fn node_of_edge(&self, edge: usize) -> Option<usize> {
        self.edges.standings.get(edge).map(|standing| standing.node)
    }

    /// What [`Occupant::Member`] is called: by what its edge leads to.
    pub fn member_name(&self, edge: usize) -> &str {
        self.edges.name(edge)
    }

    /// Whether there are lanes of the node that may run a job of which no record tells.
    pub fn awaits(&self, node: usize) -> bool {
        self.awaited(node).is_some()
    }

    /// Why not everything is known of the node's lanes.
    fn awaited(&self, node: usize) -> Option<Unknown> {
        let mut lanes = self.lanes.iter().filter(|lane| lane.node == node);
        lanes.find_map(|lane| match lane.knowledge {
            LaneKnowledge::Awaited(unknown) => Some(unknown),
            LaneKnowledge::Known => None,
        })
    }

    /// Whether time is virtual.
    pub fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// Whether the kernel has told of a processor.
    pub fn hears_kernel(&self) -> bool {
        self.kernel == KernelRecords::Present
    }

    /// The lane whose thread says that it works on the processor.
    fn lane_at_work(&self, node: usize, processor: &Processor) -> Option<usize> {
        self.lanes_awake(node, processor.cpu).next()
    }

    /// The lanes whose threads were last heard of on this processor and have not gone to sleep since. Below schedulers they may wait for
    /// their turn.
    pub fn lanes_awake(&self, node: usize, cpu: u16) -> impl Iterator<Item = usize> + '_ {
        let is_here =
            move |lane: &Lane| lane.node == node && lane.awake == SleepState::Awake && lane.cpu == cpu;
        self.lanes.iter().enumerate().filter(move |(_, lane)| is_here(lane)).map(|(index, _)| index)
    }

    /// Whether the run's own records say who has the processor. The idle thread is known without any other.
    fn says_itself(&self, node: usize, processor: &Processor, thread: u32) -> bool {
        !processor.jobs.is_empty() || thread != 0 && self.lane_at_work(node, processor).is_some()
    }

    /// Whether the thread is known to be one of the run's.
    pub fn is_of_run(&self, thread: u32) -> bool {
        self.threads.contains_key(&thread)
    }

    /// The lane that the thread serves.
    pub fn lane_of_thread(&self, thread: u32) -> Option<usize> {
        match self.threads.get(&thread).map(|known| known.role) {
            Some(RunThread::Lane(lane)) => Some(lane),
            _ => None,
        }
    }

    /// Whether the trace says which threads are those of the node's lanes.
    pub fn identifies(&self, node: usize) -> bool {
        self.identified[node]
    }

    /// What the thread does if it has a processor of the node.
    pub fn of_thread(&self, node: usize, thread: u32) -> Occupant {
        match self.threads.get(&thread).map(|known| known.role) {
            None if thread == 0 => Occupant::Idle,
            Some(RunThread::Lane(lane)) if self.lanes[lane].node == node => match &self.lanes[lane] {
                Lane { current: Some(job), .. } => Occupant::Job(*job),
                Lane { knowledge: LaneKnowledge::Awaited(unknown), .. } => Occupant::Unknown(*unknown),
                _ => Occupant::Lane(lane),
            },
            Some(RunThread::Member(edge)) if self.node_of_edge(edge) == Some(node) => Occupant::Member(edge),
            Some(RunThread::Release) => Occupant::Release,
            Some(RunThread::Receiver) => Occupant::Receiver,
            _ if self.is_companion(thread) => Occupant::Companion(thread),
            _ => Occupant::Program(thread),
        }
    }

    fn is_companion(&self, thread: u32) -> bool {
        self.companions.get(&thread).is_some_and(|process| self.processes.contains(process))
    }

    /// Whether the higher lane always has the processor of the node.
    pub fn is_by_level(&self, node: usize) -> bool {
        self.preemption_rule[node] == PreemptionRule::ByLevel
    }

    /// The processor that the job has according to the records of jobs, even if someone else is on it just now.
    pub fn processor_of(&self, node: usize, job: JobId) -> Option<usize> {
        self.nodes[node].iter().position(|processor| processor.jobs.contains(&job))
    }

    /// Whether several jobs that have begun on the processor share it, of which no record says which one runs, nor whether
    /// another one went on elsewhere.
    pub fn is_shared_unseen(&self, node: usize, index: usize) -> bool {
        let processor = &self.nodes[node][index];
        let is_seen = self.is_seen(node, processor);
        let Some((last, displaced)) = processor.jobs.split_last().filter(|_| !is_seen) else { return false };
        let level = |job: &JobId| self.lane_of(*job).map(|lane| self.lanes[lane].level);
        match self.preemption_rule[node] {
            PreemptionRule::ByLevel => displaced.iter().any(|other| level(other) <= level(last)),
            PreemptionRule::Unseen => !displaced.is_empty(),
        }
    }

    /// Whether the kernel says which of the run's threads has the processor at `index` of the node.
    pub fn is_told_by_kernel(&self, node: usize, index: usize) -> bool {
        self.is_seen(node, &self.nodes[node][index])
    }

    /// The same.
    fn is_seen(&self, node: usize, processor: &Processor) -> bool {
        processor.thread.is_some() && self.identified[node]
    }

    /// Who has the processor at `index` of the node. Where jobs share one unseen, those that it does not execute may be on any
    /// other of the node that nobody else is known to have.
    pub fn known_holder(&self, node: usize, index: usize) -> ProcessorHolder {
        match self.occupant(node, index) {
            Occupant::Job(_) if self.is_shared_unseen(node, index) => ProcessorHolder::SharedUnseen,
            Occupant::Idle | Occupant::Lane(_)
                if !self.is_seen(node, &self.nodes[node][index]) && self.is_any_shared_unseen(node) =>
            {
                ProcessorHolder::SharedUnseen
            }
            who => ProcessorHolder::By(who),
        }
    }

    /// The jobs that may have the processors of the node of which nobody saw who has them.
    pub fn unseen_sharers(&self, node: usize) -> impl Iterator<Item = JobId> + '_ {
        let processors = self.nodes[node].iter().enumerate();
        let shared = processors.filter(move |(index, _)| self.is_shared_unseen(node, *index));
        shared.flat_map(|(_, processor)| processor.jobs.iter().copied())
    }

    /// The jobs that have begun on the processor and have not left it, the last one last.
    pub fn sharers(&self, node: usize, index: usize) -> &[JobId] {
        &self.nodes[node][index].jobs
    }

    /// Where the threads of the lane are, or the one of them that is best off.
    pub fn thread_state(&self, lane: usize) -> ThreadState {
        let processors = &self.nodes[self.lanes[lane].node];
        let of_lane = |thread: &u32| self.lane_of_thread(*thread) == Some(lane);
        let mut could_go_on = self.woken.iter().chain(processors.iter().flat_map(|other| &other.waiting));
        let is_told =
            processors.iter().all(|processor| processor.thread.is_some()) && self.lanes[lane].threads > 0;
        if processors.iter().any(|processor| processor.thread.as_ref().is_some_and(of_lane)) {
            ThreadState::Running
        } else if !is_told {
            ThreadState::Unknown
        } else if could_go_on.any(of_lane) {
            ThreadState::Preempted
        } else {
            ThreadState::Off
        }
    }

    /// Whether jobs share any processor of the node unseen.
    pub fn is_any_shared_unseen(&self, node: usize) -> bool {
        (0..self.nodes[node].len()).any(|index| self.is_shared_unseen(node, index))
    }

    /// The job of the lane that has a processor, even if someone else is on it just now.
    pub fn job_of_lane(&self, node: usize, lane: usize) -> Option<JobId> {
        let mut jobs = self.nodes[node].iter().flat_map(|processor| &processor.jobs);
        jobs.find(|job| self.lane_of(**job) == Some(lane)).copied()
    }
}

impl Processor {
    fn new(cpu: u16) -> Self {
        Processor {
            cpu,
            jobs: Vec::new(),
            granted: Vec::new(),
            thread: None,
            unseen: Unknown::BeforeRecording,
            interrupts: Vec::new(),
            waiting: Vec::new(),
            gap: RecordGap::None,
        }
    }
}
