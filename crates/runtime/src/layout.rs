//! The fixed tables of a run: where each operation runs and what follows it.

use std::path::PathBuf;
use std::sync::OnceLock;
use talea_model::{
    Communication, Criticality, Execution, InputId, InputSite, LaneDispatch, OnValue, OperationId,
    OutputSite, Overrun, Synchronisation, System, Trigger,
};
use talea_policy::demand::{self, Purpose};
use talea_policy::discipline::Discipline;
use talea_policy::release::bounds::ResponseBounds;
use talea_policy::release::guard::Guards;
use talea_policy::strategy::{Lane, LaneRules, Plan};
use talea_time::{Duration, Instant, Work};

/// What the threads need to know about one operation.
#[derive(Clone, Debug)]
pub(crate) struct OperationSite {
    pub id: OperationId,
    pub name: Box<str>,
    pub task: usize,
    pub node: usize,
    /// Index over the lanes of all nodes.
    pub lane: usize,
    /// Position in the lane's member list.
    pub rank: u32,
    pub wcet: Work,
    pub predecessors: u32,
    /// How many of them are needed.
    pub needed: u32,
    /// In the order in which they are told: other nodes first, since their processors can start at
    /// once, then this node's lanes from the highest.
    pub successors: Box<[OperationId]>,
    /// Index among the operations of this process, if it is one of them.
    pub local: Option<usize>,
    /// Its place among the guards of its node, if it is not released greedily.
    pub guard: Option<usize>,
    /// From its release to its completion, if its successors are released by that.
    pub bound: Option<Duration>,
    pub origin: Origin,
    /// Of its task.
    pub period: Duration,
    /// Its task's criticality.
    pub band: Criticality,
    pub exec: Execution,
    /// Stream of its synthetic execution times.
    pub stream: u64,
    pub visibility: Visibility,
    /// In the order of the description, as all ports.
    pub inputs: Box<[InputPlace]>,
    pub outputs: Box<[OutputPlace]>,
}

/// When values that a job publishes are visible, and as of when a job takes others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// From the completion on; as of the beginning.
    AtOnce,
    /// From so long after the arrival on, or later if the job is late; as of the arrival, which is `deadline` before the job's deadline.
    AtPeriodEnds { period: Duration, deadline: Duration },
}

/// An input of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputPlace {
    /// Its number among all inputs of the system.
    pub id: u32,
    /// Whose values it has.
    pub from: OperationId,
    /// Whether that is in another process.
    pub is_elsewhere: bool,
    /// Whether values may be there before they are visible: those of a task with logical execution time.
    pub comes_early: bool,
    /// Whether a job takes the value of its own instance.
    pub is_of_instance: bool,
}

/// An output of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputPlace {
    /// Its number among all outputs of the system.
    pub id: u32,
    /// The numbers of the inputs of this process that read it.
    pub readers: Box<[u32]>,
    /// The inputs of other processes that read it, with whose they are.
    pub readers_elsewhere: Box<[(OperationId, InputId)]>,
    pub triggers: Box<[ValueTrigger]>,
}

impl OutputPlace {
    /// Whether other processes read it.
    pub fn is_sent(&self) -> bool {
        !self.readers_elsewhere.is_empty()
    }
}

/// A task that values release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueTrigger {
    pub task: usize,
    /// Each so-many-th.
    pub every: u64,
    pub on: OnValue,
}

/// A task that is released otherwise than by its period.
#[derive(Clone, Debug)]
pub(crate) struct TriggeredTask {
    /// Its first subtasks in this process.
    pub firsts: Box<[OperationId]>,
    /// From the arrival to the deadline.
    pub deadline: Duration,
    /// Whether it has that of the job which releases it instead.
    pub inherits: bool,
    pub overrun: Overrun,
    /// Whether something outside does it.
    pub is_external: bool,
}

/// What its jobs come from, by which they are dated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An arrival of its task, which is the nominal release, the deadline so much later.
    Arrival { deadline: Duration },
    /// A trigger of its task, the deadline so much later, however long a guard holds the instance.
    Trigger { deadline: Duration },
    /// Its predecessors, or a job of another task that releases it; the deadline is theirs.
    Others,
    /// A program that posts them, or a channel of it, each with a deadline of its own, or so long after it is posted.
    Posting { deadline: Duration, is_of_channel: bool },
}

impl OperationSite {
    /// When a job with these times was due to be released: at the arrival, however long a guard held it, or when it was.
    pub fn nominal_release(&self, release: Instant, deadline: Instant) -> Instant {
        match self.origin {
            Origin::Arrival { deadline: after } | Origin::Trigger { deadline: after } => deadline - after,
            Origin::Others | Origin::Posting { .. } => release,
        }
    }
}

/// One lane among the lanes of all nodes, or the place of a thread of a hierarchy, which records number with them.
#[derive(Clone, Debug)]
pub(crate) struct LaneSite {
    pub node: usize,
    /// Index within its node's plan, behind which the threads follow.
    pub level: usize,
    /// What its queue is like, if it is executed: a lane, or an own thread of a lowered hierarchy.
    pub lane: Option<Lane>,
}

/// Which nodes this process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hosted {
    /// All of them.
    All,
    /// One of several processes that share a directory.
    Node { node: usize, directory: PathBuf },
}

impl Hosted {
    pub fn hosts(&self, node: usize) -> bool {
        match self {
            Hosted::All => true,
            Hosted::Node { node: own, .. } => *own == node,
        }
    }
}

/// The tables.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub operations: Vec<OperationSite>,
    pub lanes: Vec<LaneSite>,
    /// Operations of this process; the position is [`OperationSite::local`]. Those that can be declared follow.
    pub local: Vec<OperationId>,
    /// Those that can be declared while the run lasts, behind the others.
    posted: Box<[OnceLock<OperationSite>]>,
    /// By task.
    pub triggered: Vec<Option<TriggeredTask>>,
}

impl Layout {
    /// The tables of `system`, whose node `i` is served by `plans[i]` and has `guards[i]`, for a process that hosts
    /// the nodes for which `hosts` is true. Of threads of hierarchies those are lanes for which `is_lane` is true; the jobs of others are
    /// nobody's here.
    ///
    /// # Panics
    /// If a plan lacks an operation of its node.
    pub fn new(
        system: &System,
        plans: &[Plan],
        bounds: &ResponseBounds,
        guards: &[Guards],
        (hosts, is_lane): (impl Fn(usize) -> bool, impl Fn(usize) -> bool),
    ) -> Self {
        let mut lanes = Vec::new();
        let mut place = vec![None; system.operations().len()];
        for (node, plan) in plans.iter().enumerate() {
            for (level, lane) in plan.lanes.iter().enumerate() {
                for (rank, member) in lane.members.iter().enumerate() {
                    place[member.index()] = Some((lanes.len(), rank as u32));
                }
                lanes.push(LaneSite { node, level, lane: Some(lane.clone()) });
            }
            for (thread, index) in system.threads_on(node).enumerate() {
                if let Some(operation) = system.operation_of_thread(index) {
                    place[operation.index()] = Some((lanes.len(), 0));
                    let level = plan.lanes.len() + thread;
                    let lane = is_lane(index).then(|| lane_of_thread(system, (index, operation), level));
                    lanes.push(LaneSite { node, level, lane });
                }
            }
        }
        let place = |id: OperationId| place[id.index()].expect("every operation has a lane on its node");
        let mut local = Vec::new();
        let mut operations: Vec<OperationSite> = system
            .operations()
            .iter()
            .map(|operation| {
                let subtask = system.subtask(operation.id);
                let task = &system.tasks[operation.task];
                let mut successors = operation.successors.clone();
                successors.sort_by_key(|successor| {
                    (system.subtask(*successor).node == subtask.node, place(*successor).0)
                });
                let (lane, rank) = place(operation.id);
                let is_ours = hosts(subtask.node) && lanes[lane].lane.is_some();
                let position = is_ours.then(|| {
                    local.push(operation.id);
                    local.len() - 1
                });
                OperationSite {
                    id: operation.id,
                    name: operation.name.as_str().into(),
                    task: operation.task,
                    node: subtask.node,
                    lane,
                    rank,
                    wcet: subtask.wcet,
                    predecessors: operation.predecessors.len() as u32,
                    needed: subtask.join.needed(operation.predecessors.len()) as u32,
                    successors: successors.into(),
                    local: position,
                    guard: None,
                    origin: match operation.predecessors.is_empty() {
                        true if task.inherits_deadline => Origin::Others,
                        true if task.trigger.is_some() => Origin::Trigger { deadline: task.deadline },
                        true => Origin::Arrival { deadline: task.deadline },
                        false => Origin::Others,
                    },
                    bound: (task.sync == Synchronisation::ModifiedPhaseModification)
                        .then(|| bounds.bound(operation.id)),
                    period: task.period,
                    band: task.criticality,
                    exec: subtask.exec.clone(),
                    stream: demand::stream(system.seed, Purpose::Execution, operation.id.index()),
                    visibility: match task.communication {
                        Communication::Implicit => Visibility::AtOnce,
                        Communication::Let => {
                            Visibility::AtPeriodEnds { period: task.period, deadline: task.deadline }
                        }
                    },
                    inputs: inputs_of(system, operation.id, &hosts),
                    outputs: outputs_of(system, operation.id, &hosts),
                }
            })
            .collect();
        for (place, operation) in guards.iter().flat_map(|guards| guards.operations().enumerate()) {
            operations[operation.index()].guard = Some(place);
        }
        let triggered = (0..system.tasks.len()).map(|task| triggered(system, task, &operations)).collect();
        Layout { operations, lanes, local, posted: Box::default(), triggered }
    }

    /// The same with room for so many operations that are declared while the run lasts.
    pub fn with_room(mut self, operations: usize) -> Self {
        let first = self.operations.len();
        self.local.extend((first..first + operations).map(OperationId::from_index));
        self.posted = (0..operations).map(|_| OnceLock::new()).collect();
        self
    }

    /// # Panics
    /// If it is one that can be declared and has not been.
    pub fn operation(&self, id: OperationId) -> &OperationSite {
        match self.operations.get(id.index()) {
            Some(site) => site,
            None => self.posted[id.index() - self.operations.len()].get().expect("it has been declared"),
        }
    }

    /// Enters an operation that is declared.
    ///
    /// # Panics
    /// If there is one of this number.
    pub fn declare(&self, site: OperationSite) {
        let place = &self.posted[site.id.index() - self.operations.len()];
        assert!(place.set(site).is_ok(), "an operation is declared once");
    }

    /// What releases the task otherwise than its period.
    ///
    /// # Panics
    /// If nothing does.
    pub fn triggered(&self, task: usize) -> &TriggeredTask {
        self.triggered[task].as_ref().expect("a task with a trigger")
    }

    /// The first subtasks of the operation's task on its node, of which it is one itself, with their places among those of this process.
    pub fn firsts_beside(&self, operation: OperationId) -> impl Iterator<Item = (usize, OperationId)> {
        let OperationSite { task, node, .. } = *self.operation(operation);
        let firsts = self.triggered(task).firsts.iter().copied().enumerate();
        firsts.filter(move |(_, first)| self.operation(*first).node == node)
    }

    /// Whether a record about the operation stands for all first subtasks of its task on its node.
    pub fn stands_for_node(&self, operation: OperationId) -> bool {
        self.firsts_beside(operation).next().is_some_and(|(_, lead)| lead == operation)
    }

    /// The described operations of this process, in the order of [`OperationSite::local`].
    pub fn local_operations(&self) -> impl Iterator<Item = &OperationSite> {
        self.local[..self.local.len() - self.posted.len()].iter().map(|id| self.operation(*id))
    }
}

fn inputs_of(system: &System, operation: OperationId, hosts: &impl Fn(usize) -> bool) -> Box<[InputPlace]> {
    let place = |site: &InputSite| {
        let from = system.outputs()[site.output.index()].operation;
        let is_elsewhere = !hosts(system.subtask(from).node);
        let comes_early = system.task_of(from).communication == Communication::Let;
        let is_of_instance = site.take == talea_model::Take::Instance;
        InputPlace { id: site.id.index() as u32, from, is_elsewhere, comes_early, is_of_instance }
    };
    system.inputs_of(operation).iter().map(place).collect()
}

fn outputs_of(system: &System, operation: OperationId, hosts: &impl Fn(usize) -> bool) -> Box<[OutputPlace]> {
    let place = |site: &OutputSite| {
        let reader = |input: &InputId| system.inputs()[input.index()].operation;
        let is_here = |input: &&InputId| hosts(system.subtask(reader(input)).node);
        let elsewhere = site.readers.iter().filter(|input| !is_here(input));
        let trigger = |task: &usize| match system.tasks[*task].trigger {
            Some(Trigger::Output { every, on, .. }) => ValueTrigger { task: *task, every: every.into(), on },
            _ => unreachable!("the task is among those that the output triggers"),
        };
        OutputPlace {
            id: site.id.index() as u32,
            readers_elsewhere: elsewhere.map(|input| (reader(input), *input)).collect(),
            readers: site.readers.iter().filter(is_here).map(|input| input.index() as u32).collect(),
            triggers: site.triggers.iter().map(trigger).collect(),
        }
    };
    system.outputs_of(operation).iter().map(place).collect()
}

fn triggered(system: &System, task: usize, operations: &[OperationSite]) -> Option<TriggeredTask> {
    let described = &system.tasks[task];
    let is_external = matches!(described.trigger.as_ref()?, Trigger::External { .. });
    let firsts = system.operations_of(task).iter().filter(|operation| operation.predecessors.is_empty());
    let firsts = firsts.map(|operation| operation.id).filter(|id| operations[id.index()].local.is_some());
    let (deadline, inherits, overrun) = (described.deadline, described.inherits_deadline, described.overrun);
    Some(TriggeredTask { firsts: firsts.collect(), deadline, inherits, overrun, is_external })
}

/// The lane of a thread whose bursts are done one after the other.
fn lane_of_thread(system: &System, (thread, operation): (usize, OperationId), level: usize) -> Lane {
    let (dispatch, label) = (LaneDispatch::NonPreemptive, system.threads[thread].name.clone());
    let rules = LaneRules { dispatch, laxity: system.laxity, late: system.late };
    Lane {
        level,
        label,
        discipline: Discipline::Fifo,
        rules,
        tick: None,
        members: vec![operation],
        under: None,
    }
}
