//! What the records of a run refer to by number, stored beside them so that a trace stands alone.

use crate::connections::{
    ChainEntry, HopEntry, InputEntry, OutputEntry, PublicationEntry, ReleasedBy, chains_of, inputs_of,
    outputs_of, publications_of,
};
use crate::event::Start;
use crate::record::JobId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use talea_model::{Criticality, OperationId, System, Trigger, UNDEFINED};
use talea_policy::demand::{self, Purpose};
use talea_policy::strategy::Plan;
use talea_time::{Duration, Instant, Work};
use thiserror::Error;

/// The tables behind the numbers in records, and what the run was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// Name of the system.
    pub system: String,
    /// Keyword of the strategy; `its schedulers` where no node has lanes.
    pub strategy: String,
    /// Virtual or real time.
    pub origin: Origin,
    /// The instant from which arrivals count: job `k` of a task arrives at `start + phase + k * period`.
    pub start: Instant,
    /// Nodes, by index.
    pub nodes: Vec<NodeEntry>,
    /// Lanes over all nodes, by index; a record's `source`.
    pub lanes: Vec<LaneEntry>,
    /// Tasks, by index.
    pub tasks: Vec<TaskEntry>,
    /// Operations, by [`talea_model::OperationId`].
    pub operations: Vec<OperationEntry>,
    /// Schedulers of the nodes' hierarchies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedulers: Vec<SchedulerEntry>,
    /// Edges of the nodes' hierarchies of schedulers, by index; watched unless the kernel schedules the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeEntry>,
    /// Threads that stand behind lanes and edges or serve the run, in the order in which they were [defined](crate::Definition::Thread). Not in
    /// simulations and traces of old.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadEntry>,
    /// How the kernel schedules the threads of nodes of which it [decides](DecidedBy::Kernel). Not in traces of old.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_policies: Vec<KernelPolicyEntry>,
    /// Outputs of operations, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputEntry>,
    /// Inputs of operations, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputEntry>,
    /// What operations push into channels, by index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publications: Vec<PublicationEntry>,
    /// Cause-effect chains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainEntry>,
    /// Whether the records of messages say of whom they tell, and are there where a chain leads over a link. Not in traces of old.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub names_senders: bool,
    /// By how much who judged the edges' promises let them be short. `None` where nobody judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise_tolerance: Option<Duration>,
    /// Whether the records say of posted jobs with what handle they were posted, and what posting was answered: [`crate::event::Post`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_posts: bool,
    /// The builtin events, as `job.release`, that every stream of a recording was asked for; those of the kernel, which
    /// tells what it is permitted to, are not among them. `None` where nobody chose: the log of a run itself has
    /// everything, and of rings it is unknown what was wanted when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<BTreeSet<String>>,
    /// The builtin events that a stream of a recording could have told and was not asked for, those of the kernel apart. Traces of old do not say it:
    /// an event that is in neither set may not have been known then.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unrecorded: BTreeSet<String>,
    /// The seed of what was drawn on real threads; that of a simulation is its [origin](Self::origin)'s. `None` in traces of old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What made the time of day of the times on CLOCK_MONOTONIC when the log was begun: nanoseconds to be added. `None` in
    /// virtual time, and of rings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realtime_offset_ns: Option<i64>,
}

/// Who made the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Origin {
    /// The virtual-time simulator with this seed.
    Simulation {
        /// The seed.
        seed: u64,
    },
    /// Real threads. `realtime` is false if any lane ran without real-time priority ("no-rt").
    Threads {
        /// Whether every lane had a real-time priority.
        realtime: bool,
    },
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// Its name.
    pub name: String,
    /// Its processors by Linux number.
    pub cpus: Vec<u16>,
    /// Whether its records say who has its processors.
    #[serde(default, skip_serializing_if = "Switches::are_all_recorded")]
    pub switches: Switches,
    /// Who decides on it.
    #[serde(default, skip_serializing_if = "DecidedBy::is_ours")]
    pub decided_by: DecidedBy,
}

/// Who decides what a node runs next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecidedBy {
    /// Its lanes or its schedulers, whose decisions are recorded.
    #[default]
    Ours,
    /// The kernel, to which its hierarchy was lowered: no record tells of decisions.
    Kernel,
}

impl DecidedBy {
    /// Whether the decisions are those of Talea's own policies.
    pub fn is_ours(&self) -> bool {
        *self == DecidedBy::Ours
    }
}

/// Whether records of jobs say when a job that has begun has a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switches {
    /// They do, as far as [`Origin`] permits it.
    #[default]
    Recorded,
    /// They do where its schedulers granted it one. Besides, a job may begin, go on and end where the processor is left unused: threads that
    /// have no maximum are parked, and not stopped.
    Granted,
    /// They do not: the kernel schedules the threads by itself. What a job received is not known, nor how often it was
    /// preempted.
    Unseen,
}

impl Switches {
    /// Whether they are recorded, all or those that were granted.
    pub fn are_recorded(&self) -> bool {
        *self != Switches::Unseen
    }

    /// Whether all of them are.
    pub fn are_all_recorded(&self) -> bool {
        *self == Switches::Recorded
    }
}

/// A scheduler of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerEntry {
    /// Index of the node.
    pub node: usize,
    /// Its name.
    pub name: String,
    /// Its kind; [`LANES`] of those that stand for lanes.
    pub kind: String,
}

/// The kind of schedulers that stand for lanes.
pub const LANES: &str = "lanes";

/// An edge of a hierarchy of schedulers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeEntry {
    /// Index of the node.
    pub node: usize,
    /// The scheduler above.
    pub parent: String,
    /// The scheduler or thread below.
    pub child: String,
    /// What is promised, in time of the real processor.
    pub guarantee: String,
}

impl EdgeEntry {
    /// Its name for people: `RES to video`.
    pub fn name(&self) -> String {
        format!("{} to {}", self.parent, self.child)
    }

    /// Whether it is known what it is: numbers of edges that were added while a run was under way may be those of another node, or not
    /// have been used.
    pub fn is_defined(&self) -> bool {
        !self.child.starts_with(UNDEFINED)
    }
}

/// How the kernel schedules a thread to which it was lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelPolicyEntry {
    /// Index of the thread's lane.
    pub lane: usize,
    /// The policy.
    pub policy: KernelPolicy,
}

/// A policy of the kernel (sched(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelPolicy {
    /// SCHED_DEADLINE, before all priorities: a reservation that stops until its next period.
    Deadline,
    /// SCHED_FIFO or SCHED_RR at this priority, from 1 (least) to 99.
    RealTime(u8),
    /// SCHED_OTHER, behind all priorities: shares of what is left.
    Other,
}

/// A thread of the machine that records speak of by its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadEntry {
    /// When it was known to be this one: an earlier record with its number may be of another thread.
    pub since: Instant,
    /// Its Linux number.
    pub tid: u32,
    /// The number of its process.
    pub pid: u32,
    /// Its name as the kernel has it (`comm`), at most 15 bytes.
    pub name: String,
    /// Index of the node that it works for.
    pub node: usize,
}

/// What executes: a task, or a thread of a hierarchy, whose bursts are jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// A task.
    #[default]
    Task,
    /// A thread.
    Thread,
    /// Work that the description does not know: what a program posts while the run lasts. It has no period, and until it is
    /// [defined](crate::Definition::Operation) no name but its number.
    Posted,
}

impl Activity {
    /// Whether it is a task.
    pub fn is_task(&self) -> bool {
        *self == Activity::Task
    }

    /// Whether it is a thread.
    pub fn is_thread(&self) -> bool {
        *self == Activity::Thread
    }

    /// Whether it is posted work.
    pub fn is_posted(&self) -> bool {
        *self == Activity::Posted
    }
}

/// A lane of a node, or the place of a thread under its scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneEntry {
    /// Index of its node.
    pub node: usize,
    /// Level on its node, 0 highest.
    pub level: usize,
    /// What it is for.
    pub label: String,
    /// `fifo`, `deadline` or `laxity`; `thread` for the place of a thread, whose level says nothing.
    pub discipline: String,
    /// The scheduler of kind [`LANES`] that it is a lane of. Levels of lanes of different schedulers say nothing about each other. None where
    /// the lanes of the node are below no scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
}

impl LaneEntry {
    /// Whether it is the place of a thread under its scheduler.
    pub fn is_thread(&self) -> bool {
        self.discipline == "thread"
    }
}

/// An operation whose jobs are posted, in this lane, and its task, in which it is alone; each job is due so long after it is posted unless it says so
/// itself.
pub(crate) fn posted_entries(
    name: &str,
    task: usize,
    (lane, wcet): (usize, Work),
    (deadline, criticality): (Duration, Criticality),
) -> (OperationEntry, TaskEntry) {
    let name = name.to_owned();
    let operation = OperationEntry {
        name: name.clone(),
        task,
        lane,
        wcet,
        predecessors: Vec::new(),
        is_last: true,
        keeps_reads: false,
        is_of_channel: false,
        keeps_events: false,
    };
    let task = TaskEntry {
        name,
        period: Duration::ZERO,
        deadline,
        phase: Duration::ZERO,
        jitter: Duration::ZERO,
        jitter_stream: 0,
        criticality,
        activity: Activity::Posted,
        released_by: ReleasedBy::Outside,
        inherits_deadline: false,
        keeps_events: false,
    };
    (operation, task)
}

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskEntry {
    /// Its name.
    pub name: String,
    /// Its period.
    pub period: Duration,
    /// Its relative end-to-end deadline.
    pub deadline: Duration,
    /// Arrival of its first instance after the start.
    pub phase: Duration,
    /// Greatest delay from arrival to release that the description asks for.
    pub jitter: Duration,
    /// The stream of [`talea_policy::demand`] that the delay of each instance is drawn from.
    pub jitter_stream: u64,
    /// Its criticality; critical is hard.
    pub criticality: Criticality,
    /// What it is.
    #[serde(default, skip_serializing_if = "Activity::is_task")]
    pub activity: Activity,
    /// What releases it; but for its period, nobody knows beforehand when an instance arrives.
    #[serde(default, skip_serializing_if = "ReleasedBy::is_period")]
    pub released_by: ReleasedBy,
    /// Whether its instances have arrival and deadline of the jobs that release them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inherits_deadline: bool,
    /// Whether the events that release it are kept; older traces say it so, of its first operation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_events: bool,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationEntry {
    /// Its name.
    pub name: String,
    /// Index of its task.
    pub task: usize,
    /// Index of the lane that serves it.
    pub lane: usize,
    /// Its worst-case execution time.
    pub wcet: Work,
    /// Operations it waits for; empty for a first subtask.
    pub predecessors: Vec<usize>,
    /// Whether no operation waits for it; a task's instance is complete when all its last operations are.
    pub is_last: bool,
    /// Whether what its jobs read of the descriptor that releases them is kept: [`crate::event::Value`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_reads: bool,
    /// Whether a channel posts its jobs, by which it hands on events. Not in traces of old.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_channel: bool,
    /// Whether the events that its jobs take are kept: [`crate::event::Value`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_events: bool,
}

impl TaskEntry {
    fn of(system: &System, index: usize) -> Self {
        let task = &system.tasks[index];
        TaskEntry {
            name: task.name.clone(),
            period: task.period,
            deadline: task.deadline,
            phase: task.phase,
            jitter: task.jitter,
            jitter_stream: demand::stream(system.seed, Purpose::Jitter, index),
            criticality: task.criticality,
            activity: match system.thread_of_task(index) {
                Some(_) => Activity::Thread,
                None => Activity::Task,
            },
            released_by: match task.trigger {
                None => ReleasedBy::Period,
                Some(Trigger::Output { .. }) => ReleasedBy::Values,
                Some(Trigger::External { .. }) => ReleasedBy::Outside,
                Some(Trigger::Events(_)) => ReleasedBy::Events,
            },
            inherits_deadline: task.inherits_deadline,
            keeps_events: false,
        }
    }
}

/// The lanes of all nodes, behind those of each node the places of its threads, and the lane of every operation.
fn lanes_of(system: &System, plans: &[Plan]) -> (Vec<LaneEntry>, Vec<Option<usize>>) {
    let mut lane_of = vec![None; system.operations().len()];
    let mut lanes = Vec::new();
    for (node, plan) in plans.iter().enumerate() {
        for lane in &plan.lanes {
            for member in &lane.members {
                lane_of[member.index()] = Some(lanes.len());
            }
            lanes.push(LaneEntry {
                node,
                level: lane.level,
                label: lane.label.clone(),
                discipline: lane.discipline.to_string(),
                under: lane.under.map(|scheduler| system.schedulers[scheduler].name.clone()),
            });
        }
        for (place, thread) in system.threads_on(node).enumerate() {
            let Some(operation) = system.operation_of_thread(thread) else { continue };
            lane_of[operation.index()] = Some(lanes.len());
            lanes.push(LaneEntry {
                node,
                level: plan.lanes.len() + place,
                label: system.threads[thread].name.clone(),
                discipline: "thread".into(),
                under: None,
            });
        }
    }
    (lanes, lane_of)
}

impl Metadata {
    /// The tables for `system` whose node `i` is served by the lanes of `plans[i]`, and whose threads, if they [are
    /// tasks](System::with_threads_as_tasks), have places of their own behind the lanes of their node.
    ///
    /// # Panics
    /// If a plan lacks an operation of its node, which [`talea_policy::strategy::plan_node`] rules out.
    pub fn new(system: &System, plans: &[Plan], origin: Origin, start: Instant) -> Self {
        let (lanes, lane_of) = lanes_of(system, plans);
        let operations = system
            .operations()
            .iter()
            .map(|operation| OperationEntry {
                name: operation.name.clone(),
                task: operation.task,
                lane: lane_of[operation.id.index()].expect("every operation has a lane on its node"),
                wcet: system.subtask(operation.id).wcet,
                predecessors: operation.predecessors.iter().map(|id| id.index()).collect(),
                is_last: operation.successors.is_empty(),
                keeps_reads: false,
                is_of_channel: false,
                keeps_events: false,
            })
            .collect();
        let tasks = (0..system.tasks.len()).map(|index| TaskEntry::of(system, index)).collect();
        let nodes = system
            .nodes
            .iter()
            .map(|node| NodeEntry {
                name: node.name.clone(),
                cpus: node.cpus.clone(),
                switches: Switches::default(),
                decided_by: DecidedBy::default(),
            })
            .collect();
        let strategy = match system.has_lanes() {
            true => system.strategy.to_string(),
            false => "its schedulers".into(),
        };
        let name = system.name.clone();
        let schedulers = system
            .schedulers
            .iter()
            .map(|scheduler| SchedulerEntry {
                node: scheduler.node,
                name: scheduler.name.clone(),
                kind: scheduler.kind.to_string(),
            })
            .collect();
        let edges = Vec::new();
        let (promise_tolerance, recorded, realtime_offset_ns) = (None, None, None);
        let seed = matches!(origin, Origin::Threads { .. }).then_some(system.seed);
        Metadata {
            system: name,
            strategy,
            origin,
            start,
            nodes,
            lanes,
            tasks,
            operations,
            schedulers,
            edges,
            threads: Vec::new(),
            kernel_policies: Vec::new(),
            outputs: outputs_of(system),
            inputs: inputs_of(system),
            publications: publications_of(system),
            chains: chains_of(system),
            names_senders: true,
            promise_tolerance,
            keeps_posts: false,
            recorded,
            unrecorded: BTreeSet::new(),
            seed,
            realtime_offset_ns,
        }
    }

    /// The seed of what was drawn, if it is known.
    pub fn seed(&self) -> Option<u64> {
        match self.origin {
            Origin::Simulation { seed } => Some(seed),
            Origin::Threads { .. } => self.seed,
        }
    }

    /// Adds places for `count` operations that are defined while the run lasts, each a task of its own. Readers leave out those that
    /// never are. Where there are no lanes, nothing is added.
    pub fn reserve_posted(&mut self, count: usize) {
        if self.lanes.is_empty() {
            return;
        }
        for _ in 0..count {
            let name = format!("{UNDEFINED}{}", self.operations.len());
            let nothing = (Duration::ZERO, Criticality::DEFAULT);
            let (entry, task) = posted_entries(&name, self.tasks.len(), (0, Work::ZERO), nothing);
            self.tasks.push(task);
            self.operations.push(entry);
        }
    }

    /// Whether the events that jobs of the operation take are kept.
    pub fn keeps_events_of(&self, operation: OperationId) -> bool {
        let entry = &self.operations[operation.index()];
        let is_first = entry.predecessors.is_empty();
        entry.keeps_events || is_first && self.tasks[entry.task].keeps_events
    }

    /// Whether the task is one that the description has, or that was defined.
    pub fn is_there(&self, task: usize) -> bool {
        let entry = &self.tasks[task];
        !(entry.activity.is_posted() && entry.name.starts_with(UNDEFINED))
    }

    /// The names of the tasks that there are, by which users ask for one.
    pub fn task_names(&self) -> impl Iterator<Item = &str> {
        let there = self.tasks.iter().enumerate().filter(|(task, _)| self.is_there(*task));
        there.map(|(_, entry)| entry.name.as_str())
    }

    /// What a program that is no Talea system has to say: its name, on real threads, and empty tables.
    pub fn bare(name: &str) -> Self {
        Metadata {
            system: name.to_owned(),
            strategy: String::new(),
            origin: Origin::Threads { realtime: false },
            start: Instant::ZERO,
            nodes: Vec::new(),
            lanes: Vec::new(),
            tasks: Vec::new(),
            operations: Vec::new(),
            schedulers: Vec::new(),
            edges: Vec::new(),
            threads: Vec::new(),
            kernel_policies: Vec::new(),
            outputs: Vec::new(),
            inputs: Vec::new(),
            publications: Vec::new(),
            chains: Vec::new(),
            names_senders: true,
            promise_tolerance: None,
            keeps_posts: false,
            recorded: None,
            unrecorded: BTreeSet::new(),
            seed: None,
            realtime_offset_ns: None,
        }
    }

    /// Name of a job for people: `nav.filter #12`.
    pub fn job_name(&self, job: JobId) -> String {
        match self.operations.get(job.operation.index()) {
            Some(operation) => format!("{} #{}", operation.name, job.instance),
            None => format!("operation {} #{}", job.operation.index(), job.instance),
        }
    }

    /// The job that posted the one that starts, if that is posted work.
    pub fn posted_by(&self, start: &Start) -> Option<JobId> {
        let entry = self.operations.get(start.job.operation.index())?;
        start.posted_by.0.filter(|_| self.tasks[entry.task].activity.is_posted())
    }

    /// Name of an operation within its task: `filter` for `nav.filter`, `nav` for the task `nav` of one
    /// operation.
    ///
    /// # Panics
    /// If there is no such operation.
    pub fn subtask_name(&self, operation: usize) -> &str {
        let entry = &self.operations[operation];
        let task = &self.tasks[entry.task].name;
        entry.name.strip_prefix(task.as_str()).and_then(|rest| rest.strip_prefix('.')).unwrap_or(&entry.name)
    }

    /// How the kernel schedules the thread of the lane, if that was recorded.
    pub fn kernel_policy(&self, lane: usize) -> Option<KernelPolicy> {
        self.kernel_policies.iter().find(|entry| entry.lane == lane).map(|entry| entry.policy)
    }

    /// The lane's place in the order of its node, 0 before all others: its level, or that of its thread's policy where the kernel decides.
    pub fn rank(&self, lane: usize) -> usize {
        match self.kernel_policy(lane) {
            None => self.lanes[lane].level,
            Some(KernelPolicy::Deadline) => 0,
            Some(KernelPolicy::RealTime(priority)) => 100 - usize::from(priority.min(99)),
            Some(KernelPolicy::Other) => 100,
        }
    }

    /// The thread that had this number at `time`, if it was defined by then: the latest of those that had it. It may have ended since.
    pub fn thread(&self, tid: u32, time: Instant) -> Option<&ThreadEntry> {
        let of_then = self.threads.iter().filter(|entry| entry.tid == tid && entry.since <= time);
        // Of several from the same instant on the one that was defined last.
        of_then.max_by_key(|entry| entry.since)
    }

    /// Whether there are tables of a system. Without, records tell of programs and of the machine, but of no jobs.
    pub fn has_system(&self) -> bool {
        !self.nodes.is_empty()
    }

    /// The first node on which a hierarchy of schedulers, not lanes alone, says who runs next; none in most systems.
    pub fn hierarchy(&self) -> Option<usize> {
        let of_threads = self.lanes.iter().filter(|lane| lane.discipline == "thread").map(|lane| lane.node);
        self.edges.iter().map(|edge| edge.node).chain(of_threads).min()
    }

    /// The name by which edges know who stands at the place of `lane`: the thread's, or that of the scheduler that stands for the
    /// node's lanes; none where lanes are below no other scheduler.
    pub fn place_name<'a>(&'a self, lane: &'a LaneEntry) -> Option<&'a str> {
        if lane.is_thread() {
            return Some(&lane.label);
        }
        // Traces of old do not say it; a node had one such scheduler then.
        let is_lanes = |scheduler: &&SchedulerEntry| scheduler.node == lane.node && scheduler.kind == LANES;
        let only = || self.schedulers.iter().find(is_lanes).map(|scheduler| scheduler.name.as_str());
        lane.under.as_deref().or_else(only)
    }

    /// Whether the levels of two lanes say which of them is higher: they are lanes of the same place.
    pub fn are_ranked(&self, one: usize, other: usize) -> bool {
        let place = |lane: usize| (self.lanes[lane].node, self.place_name(&self.lanes[lane]));
        place(one) == place(other)
    }

    /// The schedulers above the thread whose place is `lane`, the root first. Of several ways up it is the first described;
    /// none where no edge is watched.
    pub fn schedulers_above(&self, lane: &LaneEntry) -> Vec<&str> {
        let above = |child: &str| {
            let mut edges = self.edges.iter().filter(|edge| edge.node == lane.node);
            edges.find(|edge| edge.child == child).map(|edge| edge.parent.as_str())
        };
        let mut path: Vec<&str> = Vec::new();
        let mut next = above(&lane.label);
        // Damaged tables may go round in circles.
        while let Some(scheduler) = next.filter(|scheduler| !path.contains(scheduler)) {
            path.push(scheduler);
            next = above(scheduler);
        }
        path.reverse();
        path
    }

    /// Checks that the tables refer to each other correctly, as [`Self::new`] makes them and a
    /// damaged file may not.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), MetadataError> {
        let within = |table: &'static str, entry: usize, index: usize, length: usize| {
            if index < length {
                Ok(())
            } else {
                Err(MetadataError::Reference { table, entry, index, length })
            }
        };
        for (table, length, limit) in [
            ("nodes", self.nodes.len(), usize::from(u16::MAX)),
            ("lanes", self.lanes.len(), usize::from(u16::MAX)),
            ("operations", self.operations.len(), talea_model::OperationId::LIMIT),
        ] {
            if length > limit {
                return Err(MetadataError::TooMany { table, length, limit });
            }
        }
        for (entry, lane) in self.lanes.iter().enumerate() {
            within("lanes", entry, lane.node, self.nodes.len())?;
        }
        for (entry, scheduler) in self.schedulers.iter().enumerate() {
            within("schedulers", entry, scheduler.node, self.nodes.len())?;
        }
        for (entry, edge) in self.edges.iter().enumerate() {
            within("edges", entry, edge.node, self.nodes.len())?;
        }
        for (entry, policy) in self.kernel_policies.iter().enumerate() {
            within("kernel_policies", entry, policy.lane, self.lanes.len())?;
        }
        for (entry, thread) in self.threads.iter().enumerate() {
            within("threads", entry, thread.node, self.nodes.len())?;
        }
        let mut has_last = vec![false; self.tasks.len()];
        for (entry, operation) in self.operations.iter().enumerate() {
            within("operations", entry, operation.task, self.tasks.len())?;
            within("operations", entry, operation.lane, self.lanes.len())?;
            for predecessor in &operation.predecessors {
                within("operations", entry, *predecessor, self.operations.len())?;
            }
            has_last[operation.task] |= operation.is_last;
        }
        self.check_connections(within)?;
        match has_last.iter().position(|has| !has) {
            Some(task) => Err(MetadataError::NoLastOperation { task: self.tasks[task].name.clone() }),
            None => Ok(()),
        }
    }

    /// The same of outputs, inputs and chains.
    fn check_connections(
        &self,
        within: impl Fn(&'static str, usize, usize, usize) -> Result<(), MetadataError>,
    ) -> Result<(), MetadataError> {
        for (entry, output) in self.outputs.iter().enumerate() {
            within("outputs", entry, output.operation, self.operations.len())?;
            for releases in &output.releases {
                within("outputs", entry, releases.task, self.tasks.len())?;
            }
        }
        for (entry, input) in self.inputs.iter().enumerate() {
            within("inputs", entry, input.operation, self.operations.len())?;
            within("inputs", entry, input.output, self.outputs.len())?;
        }
        for (entry, publication) in self.publications.iter().enumerate() {
            if let Some(operation) = publication.operation {
                within("publications", entry, operation, self.operations.len())?;
            }
            for task in &publication.subscribers {
                within("publications", entry, *task, self.tasks.len())?;
            }
            for taker in &publication.takers {
                within("publications", entry, *taker, self.operations.len())?;
            }
        }
        for (entry, chain) in self.chains.iter().enumerate() {
            if chain.operations.len() != chain.hops.len() + 1 {
                return Err(MetadataError::BrokenChain { chain: chain.name.clone() });
            }
            for operation in &chain.operations {
                within("chains", entry, *operation, self.operations.len())?;
            }
            for hop in &chain.hops {
                for input in hop.inputs() {
                    within("chains", entry, *input, self.inputs.len())?;
                }
                if let HopEntry::Triggers { output, .. } = hop {
                    within("chains", entry, *output, self.outputs.len())?;
                }
            }
        }
        Ok(())
    }
}

/// A contradiction within [`Metadata`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MetadataError {
    /// An entry refers to another one that is not there.
    #[error("entry {entry} of {table} refers to entry {index} of a table of {length}")]
    Reference {
        /// The table of the entry.
        table: &'static str,
        /// The entry.
        entry: usize,
        /// What it refers to.
        index: usize,
        /// Length of the table it refers to.
        length: usize,
    },
    /// A table is longer than records can number.
    #[error("{table} has {length} entries; records can number {limit}")]
    TooMany {
        /// The table.
        table: &'static str,
        /// Its length.
        length: usize,
        /// The greatest possible length.
        limit: usize,
    },
    /// A chain that does not say what connects each operation with the next.
    #[error("chain \"{chain}\" does not connect each of its operations with the next")]
    BrokenChain {
        /// Its name.
        chain: String,
    },
    /// A task that can never complete.
    #[error("task \"{task}\" has no last operation")]
    NoLastOperation {
        /// Its name.
        task: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_stand_above_a_thread_from_the_root_down_also_where_tables_are_damaged() {
        let mut metadata = Metadata::bare("x");
        let edges =
            [("FP", "RES"), ("RES", "J"), ("FP", "J"), ("J", "a"), ("P", "Q"), ("Q", "P"), ("P", "b")];
        metadata.edges = edges
            .map(|(parent, child)| EdgeEntry {
                node: 0,
                parent: parent.into(),
                child: child.into(),
                guarantee: "NULL".into(),
            })
            .into();
        let thread = |node: usize, label: &str| LaneEntry {
            node,
            level: 0,
            label: label.into(),
            discipline: "thread".into(),
            under: None,
        };
        assert_eq!(metadata.schedulers_above(&thread(0, "a")), ["FP", "RES", "J"]);
        assert_eq!(metadata.schedulers_above(&thread(0, "b")), ["Q", "P"]);
        assert!(metadata.schedulers_above(&thread(1, "a")).is_empty(), "another node");
    }
}
