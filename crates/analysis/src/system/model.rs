//! A system as numbers: what the analysis knows of nodes, lanes, tasks and costs.
//!
//! **Segments.** Subtasks of one task that follow each other on one node without leaving it form a *segment*: from the
//! release of its first subtask until all of them are done there is always one of them ready, because a successor on
//! the same node is released at the instant at which its last predecessor completes. All strategies put the subtasks
//! of a task on one node into one lane. So for everybody else a segment is one job with the work of all its subtasks,
//! and no window of a lane begins in the middle of one. Only where a task comes from another node does jitter grow.
//! Under other protocols than greedy release, and where a subtask waits for some of its predecessors only, every subtask
//! with predecessors is a segment of its own.
//!
//! **Costs** (after Katcher, Arakawa and Strosnider 1993, and Burns, Tindell and Wellings 1995): every job pays for its
//! way into and out of the queue and for being switched to; to others it also costs the switch back to the one it
//! preempted. Every timer expiry on the node delays everybody there, whatever it releases.

use super::lane::Interest;
use super::release::{After, Entry, Pacing, Predecessor};
use crate::effort::AnalysisError;
use talea_model::{
    Execution, LaneDispatch, Late, Laxity, LossRate, Operation as Subtask, OperationId, Overrun, Route,
    Synchronisation, System,
};
use talea_policy::discipline::Discipline;
use talea_policy::strategy::{Lane as LanePlan, LaneRules, Plan};
use talea_time::{Duration, Work};

#[derive(Debug)]
pub(super) struct Model {
    pub nodes: Vec<Node>,
    pub segments: Vec<Segment>,
    /// By operation number.
    pub operations: Vec<Operation>,
    /// Whether a job that is preempted pays for coming back.
    pub switches_cost: bool,
}

#[derive(Debug)]
pub(super) struct Node {
    /// Highest first.
    pub lanes: Vec<Lane>,
    pub processors: usize,
    /// What delays every lane of the node: a cost with each release of a segment's task.
    pub interrupts: Vec<Interrupt>,
}

#[derive(Debug)]
pub(super) struct Interrupt {
    pub segment: usize,
    pub cost: u64,
}

#[derive(Debug)]
pub(super) struct Lane {
    pub discipline: Discipline,
    pub rules: LaneRules,
    pub segments: Vec<usize>,
}

/// Subtasks of a task that follow each other on one node.
#[derive(Debug)]
pub(super) struct Segment {
    pub task: usize,
    pub period: u64,
    pub deadline: u64,
    pub entry: Entry,
    /// Numbers of its operations, predecessors first.
    pub operations: Vec<usize>,
    /// What one instance costs everybody else.
    pub cost: u64,
    /// The largest cost of one of its operations.
    pub longest: u64,
    /// Least and greatest worst case that its operations declare.
    pub declared: (u64, u64),
    /// Whether one of its operations may take no time at all.
    pub instantaneous: bool,
    /// Whether an instance may be skipped or aborted.
    pub sheds: bool,
    /// By how much one of its operations can exceed the worst case it declares, its costs included.
    pub excess: u64,
}

#[derive(Debug)]
pub(super) struct Operation {
    pub node: usize,
    pub lane: usize,
    pub segment: usize,
    /// Processor time of one job, its costs included.
    pub cost: u64,
    /// What others of the same segment may do before it in the same instance: everything but its successors.
    pub beside: u64,
    /// Its direct predecessors inside the segment.
    pub after: Vec<usize>,
    pub declared: u64,
}

impl Lane {
    /// Whether the choice may change at a scheduling point although no job came or went.
    fn reconsiders(&self) -> bool {
        self.rules.dispatch == LaneDispatch::Preemptive
            && (self.discipline.moves_while_running(self.rules.laxity) || self.separates_late())
    }

    pub fn separates_late(&self) -> bool {
        self.rules.late == Late::Last && self.discipline != Discipline::Fifo
    }

    /// Whether a started job's key moves: its laxity shrinks while others run and stands still while it runs.
    pub fn key_moves(&self) -> bool {
        self.rules.dispatch == LaneDispatch::Preemptive
            && self.discipline == Discipline::Laxity
            && self.rules.laxity == Laxity::Remaining
    }
}

impl Model {
    pub fn new(system: &System, plans: &[Plan]) -> Result<Self, AnalysisError> {
        let segment_of = segments(system);
        let count = segment_of.iter().copied().max().map_or(0, |last| last + 1);
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (operation, segment) in segment_of.iter().enumerate() {
            members[*segment].push(operation);
        }
        let mut operations = Vec::with_capacity(segment_of.len());
        for subtask in system.operations() {
            operations.push(Operation::new(system, subtask, &segment_of)?);
        }
        for own in &mut members {
            own.sort_by_key(|index| system.operations()[*index].topological_rank);
        }
        let mut segments: Vec<Segment> = members
            .iter()
            .map(|own| Segment::new(system, own, &operations))
            .collect::<Result<_, AnalysisError>>()?;
        set_beside(system, &segments, &mut operations)?;
        let nodes: Vec<Node> = plans
            .iter()
            .enumerate()
            .map(|(index, plan)| Node::new(system, index, plan, &segments, &mut operations))
            .collect::<Result<_, AnalysisError>>()?;
        for lane in nodes.iter().flat_map(|node| &node.lanes) {
            for segment in &lane.segments {
                if let Entry::After(after) = &mut segments[*segment].entry {
                    after.pacing = after.pacing.within(lane);
                }
            }
        }
        Ok(Model { nodes, segments, operations, switches_cost: system.overhead.switch > Work::ZERO })
    }
}

impl Model {
    /// What must be found out about each operation to know whether the `targets` among the tasks hold.
    pub fn interest(&self, system: &System, targets: &[bool]) -> Vec<Interest> {
        let shared = |node: &Node| node.processors > 1;
        let of_operation = |(index, operation): (usize, &Operation)| {
            let described = &system.operations()[index];
            let elsewhere =
                |successor: &OperationId| self.operations[successor.index()].segment != operation.segment;
            // Its response delays something else: a release, or on several processors the lanes below.
            if described.successors.iter().any(elsewhere) || shared(&self.nodes[operation.node]) {
                return Interest::Worst;
            }
            match self.limit(system, index) {
                Some(limit) if targets[described.task] => Interest::Limit(limit),
                _ => Interest::Nothing,
            }
        };
        self.operations.iter().enumerate().map(of_operation).collect()
    }

    /// The response that an operation must not exceed if its task is to hold: the deadline for one that no other is sure to
    /// wait for, the period for a first one whose overrun would lose an instance.
    pub fn limit(&self, system: &System, operation: usize) -> Option<u64> {
        let described = &system.operations()[operation];
        let segment = &self.segments[self.operations[operation].segment];
        let waits = |successor: &OperationId| {
            let predecessors = system.operations()[successor.index()].predecessors.len();
            system.subtask(*successor).join.waits_for_all(predecessors)
        };
        let deadline = (!described.successors.iter().any(waits)).then_some(segment.deadline);
        let period = (described.predecessors.is_empty() && segment.sheds).then_some(segment.period);
        deadline.into_iter().chain(period).min()
    }
}

/// The segment of every operation.
///
/// An operation continues a segment if it is released at the completion of all its predecessors, all of them belong to that
/// one and it is on their node; otherwise it begins one. Where idle points reset guards nothing continues: the completion
/// of a subtask at which its successor is released is an idle point, and at those windows begin. First subtasks of a task on
/// one node are released together and begin one together.
fn segments(system: &System) -> Vec<usize> {
    let has_resets = nodes_with_resets(system);
    let mut segment_of = vec![usize::MAX; system.operations().len()];
    let mut count = 0;
    let mut begin = || {
        count += 1;
        count - 1
    };
    for task in 0..system.tasks.len() {
        let mut in_order: Vec<&Subtask> = system.operations_of(task).iter().collect();
        in_order.sort_by_key(|operation| operation.topological_rank);
        let mut firsts: Vec<(usize, usize)> = Vec::new();
        for operation in in_order {
            let node = system.subtask(operation.id).node;
            let before = operation.predecessors.as_slice();
            let at_once = system.tasks[task].sync == Synchronisation::Greedy
                && !has_resets[node]
                && system.subtask(operation.id).join.waits_for_all(before.len());
            let continued =
                before.first().filter(|_| at_once).map(|first| segment_of[first.index()]).filter(|segment| {
                    before.iter().all(|before| {
                        segment_of[before.index()] == *segment && system.subtask(*before).node == node
                    })
                });
            segment_of[operation.id.index()] = match continued {
                Some(segment) => segment,
                None if operation.predecessors.is_empty() => {
                    match firsts.iter().find(|(known, _)| *known == node) {
                        Some((_, segment)) => *segment,
                        None => {
                            let segment = begin();
                            firsts.push((node, segment));
                            segment
                        }
                    }
                }
                None => begin(),
            };
        }
    }
    segment_of
}

/// The nodes where idle points reset guards.
fn nodes_with_resets(system: &System) -> Vec<bool> {
    let mut has_resets = vec![false; system.nodes.len()];
    for operation in system.operations().iter().filter(|operation| !operation.predecessors.is_empty()) {
        has_resets[system.subtask(operation.id).node] |=
            system.tasks[operation.task].sync.heeds_idle_points();
    }
    has_resets
}

/// What an operation may find done by the others of its segment before it is its turn.
fn set_beside(
    system: &System,
    segments: &[Segment],
    operations: &mut [Operation],
) -> Result<(), AnalysisError> {
    let switch = nanos(system.overhead.switch);
    for segment in segments.iter().filter(|segment| segment.operations.len() > 1) {
        for &operation in &segment.operations {
            let mut later = vec![operation];
            let mut next = 0;
            while next < later.len() {
                for successor in &system.operations()[later[next]].successors {
                    let successor = successor.index();
                    if segment.operations.contains(&successor) && !later.contains(&successor) {
                        later.push(successor);
                    }
                }
                next += 1;
            }
            let others = segment.operations.iter().filter(|other| !later.contains(other));
            let with_switch = |other: &usize| checked(operations[*other].cost, switch);
            operations[operation].beside =
                others.map(with_switch).try_fold(0, |sum, cost| checked(sum, cost?))?;
        }
    }
    Ok(())
}

impl Operation {
    fn new(system: &System, operation: &Subtask, segment_of: &[usize]) -> Result<Self, AnalysisError> {
        let segment = segment_of[operation.id.index()];
        let subtask = system.subtask(operation.id);
        let overhead = &system.overhead;
        let remote = operation.predecessors.iter().any(|before| system.subtask(*before).node != subtask.node);
        let costs = [
            nanos(subtask.wcet.max(subtask.exec.max())),
            nanos(overhead.queue),
            nanos(overhead.queue),
            nanos(overhead.switch),
            if remote { nanos(overhead.message) } else { 0 },
        ];
        let inside = |before: &&OperationId| segment_of[before.index()] == segment;
        Ok(Operation {
            node: subtask.node,
            lane: 0,
            segment,
            cost: sum(costs)?,
            beside: 0,
            after: operation.predecessors.iter().filter(inside).map(|before| before.index()).collect(),
            declared: nanos(subtask.wcet),
        })
    }
}

impl Segment {
    fn new(system: &System, own: &[usize], operations: &[Operation]) -> Result<Self, AnalysisError> {
        let first = &system.operations()[own[0]];
        let task = &system.tasks[first.task];
        let switch = nanos(system.overhead.switch);
        let entry = if first.predecessors.is_empty() {
            Entry::Release(length(task.jitter))
        } else {
            Entry::After(after(system, first))
        };
        let costs = || own.iter().map(|operation| operations[*operation].cost);
        let declared = || own.iter().map(|operation| operations[*operation].declared);
        let excess = own.iter().map(|operation| {
            let operation = &operations[*operation];
            operation.cost.saturating_sub(operation.declared)
        });
        let back = switch.checked_mul(own.len() as u64).ok_or(AnalysisError::Overflow)?;
        Ok(Segment {
            task: first.task,
            period: length(task.period),
            deadline: length(task.deadline),
            entry,
            operations: own.to_vec(),
            cost: checked(sum(costs())?, back)?,
            longest: costs().max().unwrap_or(0),
            declared: (declared().min().unwrap_or(0), declared().max().unwrap_or(0)),
            instantaneous: own.iter().any(|operation| {
                least(&system.subtask(system.operations()[*operation].id).exec) == Work::ZERO
            }),
            sheds: task.overrun != Overrun::Queue,
            excess: excess.max().unwrap_or(0),
        })
    }
}

/// The way of a message from one operation to another.
fn route(system: &System, from: OperationId, to: OperationId) -> Route {
    system.route(system.subtask(from).node, system.subtask(to).node)
}

/// How long it takes until all successors of an operation know of its completion.
pub(super) fn slowest_delay(system: &System, operation: OperationId) -> u64 {
    let successors = &system.operations()[operation.index()].successors;
    successors.iter().map(|to| length(route(system, operation, *to).longest())).max().unwrap_or(0)
}

/// What the release of an operation with predecessors waits for.
fn after(system: &System, operation: &Subtask) -> After {
    let task = &system.tasks[operation.task];
    let subtask = system.subtask(operation.id);
    let predecessor = |id: &OperationId| {
        let before = system.subtask(*id);
        Predecessor {
            operation: id.index(),
            delay: length(route(system, *id, operation.id).longest()),
            keeps_order: route(system, *id, operation.id).jitter == Duration::ZERO,
            slowest_delay: slowest_delay(system, *id),
            bound: before.bound.map(length),
        }
    };
    let all = operation.predecessors.len();
    let needed = subtask.join.needed(all);
    // An instance of a predecessor may be shed or its message lost, and then others must do. Of timers, those of the first to
    // complete count.
    let mut routes = operation.predecessors.iter().map(|id| route(system, *id, operation.id));
    let may_take_all = task.overrun != Overrun::Queue
        || task.sync == Synchronisation::ModifiedPhaseModification
        || routes.any(|route| route.loss > LossRate::NONE);
    After {
        before: operation.predecessors.iter().map(predecessor).collect(),
        needed,
        sufficient: if may_take_all { all } else { needed },
        pacing: Pacing::of(task.sync),
    }
}

/// How many releases of one instance a timer may make: those of first subtasks, and of whatever a protocol holds back.
fn timed_releases(system: &System, segment: &Segment) -> u64 {
    let held = system.tasks[segment.task].sync != Synchronisation::Greedy;
    let is_timed = |id: &&usize| held || system.operations()[**id].predecessors.is_empty();
    segment.operations.iter().filter(is_timed).count() as u64
}

impl Node {
    fn new(
        system: &System,
        index: usize,
        plan: &Plan,
        segments: &[Segment],
        operations: &mut [Operation],
    ) -> Result<Self, AnalysisError> {
        let lanes: Vec<Lane> = plan.lanes.iter().map(|lane| Lane::new(lane, operations)).collect();
        let here: Vec<usize> = lanes.iter().flat_map(|lane| lane.segments.iter().copied()).collect();
        let processors = system.nodes[index].cpus.len();
        let switch = nanos(system.overhead.switch);
        let timer = nanos(system.overhead.timer);
        let reconsiders = lanes.iter().any(Lane::reconsiders);
        let mut interrupts = Vec::new();
        for segment in here {
            let count = segments[segment].operations.len() as u64;
            let timed = timed_releases(system, &segments[segment]);
            // A message to a guard is an event of the node too.
            let held = match system.tasks[segments[segment].task].sync {
                Synchronisation::Greedy => 0,
                _ => count,
            };
            // A lane that chooses anew at every release and completion of the machine may switch at each: those of
            // its own and of the lanes it runs beside. On one processor lower lanes do not run meanwhile.
            let points = match (reconsiders, processors) {
                (false, _) => 0,
                (true, 1) => 1 + held,
                (true, _) => 2 * count + held,
            };
            let cost = checked(product(timed, timer)?, product(points, switch)?)?;
            if cost > 0 {
                interrupts.push(Interrupt { segment, cost });
            }
        }
        Ok(Node { lanes, processors, interrupts })
    }
}

impl Lane {
    fn new(plan: &LanePlan, operations: &mut [Operation]) -> Self {
        let mut segments: Vec<usize> = Vec::new();
        for member in &plan.members {
            let operation = &mut operations[member.index()];
            operation.lane = plan.level;
            segments.push(operation.segment);
        }
        segments.sort_unstable();
        segments.dedup();
        Lane { discipline: plan.discipline, rules: plan.rules, segments }
    }
}

/// The shortest execution time that work can produce.
fn least(exec: &Execution) -> Work {
    match exec {
        Execution::Constant(work) => *work,
        Execution::Uniform(low, _) => *low,
        Execution::List(list) => list.iter().copied().min().unwrap_or(Work::ZERO),
    }
}

fn nanos(work: Work) -> u64 {
    work.as_nanos().unsigned_abs()
}

fn length(duration: Duration) -> u64 {
    duration.as_nanos().unsigned_abs()
}

fn checked(a: u64, b: u64) -> Result<u64, AnalysisError> {
    a.checked_add(b).ok_or(AnalysisError::Overflow)
}

fn product(a: u64, b: u64) -> Result<u64, AnalysisError> {
    a.checked_mul(b).ok_or(AnalysisError::Overflow)
}

fn sum(parts: impl IntoIterator<Item = u64>) -> Result<u64, AnalysisError> {
    parts.into_iter().try_fold(0, checked)
}
