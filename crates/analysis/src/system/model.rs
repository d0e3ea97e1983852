//! A system as numbers: what the analysis knows of nodes, lanes, tasks and costs.
//!
//! **Segments.** Subtasks of one task that follow each other on one node without leaving it form a *segment*: from the
//! release of its first subtask until all of them are done there is always one of them ready, because a successor on
//! the same node is released at the instant at which its last predecessor completes. All strategies put the subtasks
//! of a task on one node into one lane. So for everybody else a segment is one job with the work of all its subtasks,
//! and no window of a lane begins in the middle of one. Only where a task comes from another node does jitter grow.
//! Under other protocols than greedy release, and where a subtask waits for some of its predecessors only, every subtask
//! with predecessors is a segment of its own. A task of the same lane that each job of another one's operation releases, and that inherits its
//! deadline, goes on with the segment.
//!
//! **Costs** (after Katcher, Arakawa and Strosnider 1993, and Burns, Tindell and Wellings 1995): every job pays for its
//! way into and out of the queue and for being switched to; to others it also costs the switch back to the one it
//! preempted. Every timer expiry on the node delays everybody there, whatever it releases. In a hierarchy whoever the processor comes back to
//! pays for the switch once more; how often that is, `interruption.rs` says.

use super::Obstacle;
use super::interruption::Interruption;
use super::lane::Interest;
use super::place::LanePlacement;
use super::release::{After, Entry, Pacing, Predecessor};
use super::segments::{Order, segments};
use super::supply::Supply;
use super::triggered::{Triggered, released_every};
use crate::effort::{AnalysisError, Effort};
use crate::recurrence::TIME_MAX;
use std::collections::{HashMap, HashSet};
use talea_model::{
    Execution, LaneDispatch, Late, Laxity, LossRate, Operation as Subtask, OperationId, Overhead, Overrun,
    Route, Scheduling, Synchronisation, System, Trigger,
};
use talea_policy::discipline::Discipline;
use talea_policy::strategy::{Lane as LanePlan, LaneRules};
use talea_time::{Duration, Work};

#[derive(Debug)]
pub(super) struct Model {
    /// The places, of which a node without a hierarchy is one.
    pub nodes: Vec<Node>,
    pub segments: Vec<Segment>,
    /// By operation number.
    pub operations: Vec<Operation>,
    /// Whether a job that is preempted pays for coming back.
    pub switches_cost: bool,
}

/// What lanes share: a node, or a place in a node's hierarchy.
#[derive(Debug)]
pub(super) struct Node {
    /// The node of the description, whose places delay each other.
    pub site: usize,
    /// Highest first.
    pub lanes: Vec<Lane>,
    pub processors: usize,
    /// What they receive of each processor, or why that cannot be said.
    pub supply: Result<Supply, Obstacle>,
    /// What delays every lane: a cost with each of some events.
    pub interrupts: Vec<Interrupt>,
    /// Budget and period of the server that serves it, see [`LanePlacement::server`].
    pub server: Option<(u64, u64)>,
    /// Whether the processor is never idle while it wants it, see [`LanePlacement::may_lag`].
    pub may_lag: bool,
}

#[derive(Debug)]
pub(super) struct Interrupt {
    pub events: Events,
    pub cost: u64,
    pub kind: InterruptKind,
}

/// When something delays all lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Events {
    /// With each release of a segment.
    Releases(usize),
    /// With each arrival of a task with a trigger at a segment, whether or not a guard lets it through.
    Signals(usize),
    /// Once a period, and as often as would be in this time beyond.
    Timer { period: u64, beyond: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InterruptKind {
    /// A timer expires, or a lane chooses anew.
    Timer,
    /// The processor comes back from others.
    Return,
}

#[derive(Debug)]
pub(super) struct Lane {
    /// Its place in the plan of its node.
    pub level: usize,
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
    /// How much of that its jobs wait for room in inputs and leave the processor to others.
    pub waits: u64,
    /// How often they wake up from that.
    pub wakes: u64,
    /// The largest cost of one of its operations.
    pub longest: u64,
    /// Least and greatest worst case that its operations declare.
    pub declared: (u64, u64),
    /// Whether one of its operations may take no time at all.
    pub instantaneous: bool,
    /// Whether an instance may be skipped or aborted.
    pub sheds: bool,
    /// Whether an instance may be merged with one before it.
    pub merges: bool,
    /// Whether tasks that inherit its deadline go on with it. Where a job publishes or pushes nothing, theirs do not come: `cost` is the most.
    pub has_followers: bool,
    /// By how much one of its operations can exceed the worst case it declares, its costs included.
    pub excess: u64,
}

#[derive(Debug)]
pub(super) struct Operation {
    /// The place that it is in.
    pub node: usize,
    pub lane: usize,
    pub segment: usize,
    /// Its own task, which may go on with a segment that another one begins.
    pub task: usize,
    /// Processor time of one job, its costs included, and the time in which it waits for room in inputs.
    pub cost: u64,
    /// That time, and how often it may wait.
    waits: Waits,
    /// What others of the same segment may do before it in the same instance: everything but its successors.
    pub beside: u64,
    /// Its direct predecessors inside the segment, by their places among the segment's operations.
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
    pub fn new(
        system: &System,
        places: &[LanePlacement],
        effort: &mut Effort,
    ) -> Result<Self, AnalysisError> {
        let order = Order::of(system, places);
        let segment_of = segments(system, &order);
        let count = segment_of.iter().copied().max().map_or(0, |last| last + 1);
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (operation, segment) in segment_of.iter().enumerate() {
            members[*segment].push(operation);
        }
        let mut operations = Vec::with_capacity(segment_of.len());
        let publishing = system.publishing_costs(&system.overhead);
        for (subtask, publishing) in system.operations().iter().zip(publishing) {
            operations.push(Operation::new(system, subtask, &segment_of, nanos(publishing))?);
        }
        for own in &mut members {
            own.sort_by_key(|index| (order.depth[*index], system.operations()[*index].topological_rank));
        }
        let mut segments: Vec<Segment> = members
            .iter()
            .map(|own| Segment::new(system, own, &operations))
            .collect::<Result<_, AnalysisError>>()?;
        set_after(&order, &segments, &mut operations);
        set_beside(system, &order, (&segments, &mut operations), effort)?;
        for (index, place) in places.iter().enumerate() {
            for (level, lane) in place.lanes.iter().enumerate() {
                lane.members.iter().for_each(|member| operations[member.index()].stands(index, level));
            }
        }
        let mut by_node: Vec<Vec<usize>> = vec![Vec::new(); system.nodes.len()];
        for (index, segment) in segments.iter().enumerate() {
            let first = system.operations()[segment.operations[0]].id;
            by_node[system.subtask(first).node].push(index);
        }
        let nodes: Vec<Node> = places
            .iter()
            .map(|place| Node::new(system, place, &by_node[place.node], &segments, &operations))
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
        let subscribed = system.publications().iter().filter(|site| site.released().next().is_some());
        let pushes: HashSet<OperationId> = subscribed.map(|site| site.operation).collect();
        let of_operation = |(index, operation): (usize, &Operation)| {
            let described = &system.operations()[index];
            let elsewhere =
                |successor: &OperationId| self.operations[successor.index()].segment != operation.segment;
            let by_values = system.outputs_of(described.id).iter().any(|output| !output.triggers.is_empty());
            let triggers = by_values || pushes.contains(&described.id);
            // How close arrivals come is not known before the end, and so not which response loses an instance.
            let segment = &self.segments[operation.segment];
            let may_lose = segment.sheds && matches!(segment.entry, Entry::Triggered(_));
            let lane = &self.nodes[operation.node].lanes[operation.lane];
            let waits = lane.segments.iter().any(|segment| self.segments[*segment].waits > 0);
            // Its response delays something else: a release, or on several processors, and where jobs of its lane wait for room, the lanes below.
            if described.successors.iter().any(elsewhere)
                || triggers
                || may_lose
                || waits
                || shared(&self.nodes[operation.node])
            {
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
        // What goes on with the segment of another task sheds nothing itself.
        let begins = described.predecessors.is_empty() && segment.task == described.task;
        let period = (begins && segment.sheds).then_some(segment.period);
        deadline.into_iter().chain(period).min()
    }
}

/// What an operation may find done by the others of its segment before it is its turn: all but what follows it.
///
/// Along a chain that is a sum. Where branches part, what follows has to be gone through once for each operation; where that is too
/// costly nothing is taken to follow, which is a bound.
fn set_beside(
    system: &System,
    order: &Order,
    (segments, operations): (&[Segment], &mut [Operation]),
    effort: &mut Effort,
) -> Result<(), AnalysisError> {
    let switch = nanos(system.overhead.switch);
    let mut reached_from = vec![usize::MAX; operations.len()];
    for segment in segments.iter().filter(|segment| segment.operations.len() > 1) {
        let number = operations[segment.operations[0]].segment;
        let cost = |operations: &[Operation], index: usize| checked(operations[index].cost, switch);
        let mut all = 0;
        for &operation in &segment.operations {
            all = checked(all, cost(operations, operation)?)?;
        }
        // What follows an operation with itself, successors before predecessors.
        let mut following: HashMap<usize, u64> = HashMap::new();
        for &operation in segment.operations.iter().rev() {
            let next: Vec<usize> = inside(order, operations, number, operation).collect();
            let own = cost(operations, operation)?;
            let after = match next[..] {
                [] => own,
                [only] => checked(own, following[&only])?,
                _ => {
                    let mut sum = own;
                    let mut waiting = next;
                    while let Some(later) = waiting.pop() {
                        if std::mem::replace(&mut reached_from[later], operation) == operation {
                            continue;
                        }
                        if effort.spend(1).is_err() {
                            sum = own;
                            break;
                        }
                        sum = checked(sum, cost(operations, later)?)?;
                        waiting.extend(inside(order, operations, number, later));
                    }
                    sum
                }
            };
            following.insert(operation, after);
            operations[operation].beside = all - after;
        }
    }
    Ok(())
}

/// Which operations of its segment an operation waits for.
fn set_after(order: &Order, segments: &[Segment], operations: &mut [Operation]) {
    let mut place_of = vec![0; operations.len()];
    for segment in segments.iter().filter(|segment| segment.operations.len() > 1) {
        for (place, &operation) in segment.operations.iter().enumerate() {
            place_of[operation] = place;
        }
        for &operation in &segment.operations {
            let number = operations[operation].segment;
            let inside: Vec<usize> = order.before[operation]
                .iter()
                .copied()
                .filter(|before| operations[*before].segment == number)
                .map(|before| place_of[before])
                .collect();
            operations[operation].after = inside;
        }
    }
}

/// The successors of an operation in its segment.
fn inside<'a>(
    order: &'a Order,
    operations: &'a [Operation],
    segment: usize,
    operation: usize,
) -> impl Iterator<Item = usize> + 'a {
    order.after[operation].iter().copied().filter(move |successor| operations[*successor].segment == segment)
}

impl Operation {
    fn stands(&mut self, place: usize, lane: usize) {
        (self.node, self.lane) = (place, lane);
    }

    /// `publishing` is what pushing its events costs.
    fn new(
        system: &System,
        operation: &Subtask,
        segment_of: &[usize],
        publishing: u64,
    ) -> Result<Self, AnalysisError> {
        let segment = segment_of[operation.id.index()];
        let subtask = system.subtask(operation.id);
        let (overhead, waits) = (&system.overhead, waits_of(system, operation.id)?);
        let remote = operation.predecessors.iter().any(|before| system.subtask(*before).node != subtask.node)
            || operation.predecessors.is_empty()
                && Triggered::comes_as_message(system, operation.task, operation.id);
        let costs = [
            nanos(subtask.wcet.max(subtask.exec.max())),
            nanos(overhead.queue),
            nanos(overhead.queue),
            nanos(overhead.switch),
            if remote { nanos(overhead.message) } else { 0 },
            publishing,
            waits.longest,
            // It is switched to again when it has waited, and wants the processor once more, if only for no time: what comes in that instant goes first.
            waits.switching(overhead)?,
            u64::from(waits.times > 0),
        ];
        Ok(Operation {
            node: usize::MAX,
            lane: 0,
            segment,
            task: operation.task,
            cost: sum(costs)?,
            waits,
            beside: 0,
            after: Vec::new(),
            declared: nanos(subtask.wcet),
        })
    }
}

impl Segment {
    fn new(system: &System, own: &[usize], operations: &[Operation]) -> Result<Self, AnalysisError> {
        let first = &system.operations()[own[0]];
        let task = &system.tasks[first.task];
        let switch = nanos(system.overhead.switch);
        let entry = match (first.predecessors.is_empty(), &task.trigger) {
            (true, None) => Entry::Release(length(task.jitter)),
            (true, Some(_)) => Entry::Triggered(Triggered::new(system, first.task, first.id)),
            (false, _) => Entry::After(after(system, first)),
        };
        let costs = || own.iter().map(|operation| operations[*operation].cost);
        let declared = || own.iter().map(|operation| operations[*operation].declared);
        let excess = own.iter().map(|operation| {
            let operation = &operations[*operation];
            operation.cost.saturating_sub(operation.declared)
        });
        let waits = || own.iter().map(|operation| operations[*operation].waits);
        // Whoever ran before is switched to again, when a job is done and when it waits.
        let wakes = waits().map(|waits| waits.times).sum::<u64>();
        let back = switch.checked_mul(own.len() as u64 + wakes).ok_or(AnalysisError::Overflow)?;
        Ok(Segment {
            task: first.task,
            period: released_every(system, first.task),
            deadline: length(task.deadline),
            entry,
            operations: own.to_vec(),
            cost: checked(sum(costs())?, back)?,
            waits: sum(waits().map(|waits| waits.longest))?,
            wakes,
            longest: costs().max().unwrap_or(0),
            declared: (declared().min().unwrap_or(0), declared().max().unwrap_or(0)),
            instantaneous: own.iter().any(|operation| {
                least(&system.subtask(system.operations()[*operation].id).exec) == Work::ZERO
            }),
            sheds: task.overrun.loses(),
            merges: task.overrun == Overrun::Merge,
            has_followers: own.iter().any(|operation| operations[*operation].task != first.task),
            excess: excess.max().unwrap_or(0),
        })
    }
}

/// How a job waits for room at inputs that read its outputs: in its lane, which serves nobody else meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waits {
    /// How long at most, all in all.
    pub longest: u64,
    /// How often.
    pub times: u64,
}

impl Waits {
    /// What switching to it costs when it has waited.
    fn switching(self, overhead: &Overhead) -> Result<u64, AnalysisError> {
        nanos(overhead.switch).checked_mul(self.times).ok_or(AnalysisError::Overflow)
    }
}

pub(super) fn waits_of(system: &System, operation: OperationId) -> Result<Waits, AnalysisError> {
    let limits = || system.wait_limits(operation).map(length);
    Ok(Waits { longest: sum(limits())?, times: limits().count() as u64 })
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
        guard_period: length(task.period),
    }
}

/// Whether jobs of others release the task at once, when they complete.
fn is_released_by_jobs(system: &System, task: usize) -> bool {
    let task = &system.tasks[task];
    let by_jobs = match &task.trigger {
        Some(Trigger::Output { .. }) => true,
        // A timer makes it come true, or begin anew.
        Some(Trigger::Events(subscription)) => !subscription.condition.is_timed(),
        Some(Trigger::External { .. }) | None => false,
    };
    by_jobs && task.separation.is_none()
}

/// How many releases of one instance a timer may make: those of first subtasks, and of whatever a protocol holds back.
fn timed_releases(system: &System, segment: &Segment) -> u64 {
    let held = system.tasks[segment.task].sync != Synchronisation::Greedy;
    let is_timed = |id: &&usize| {
        let operation = &system.operations()[**id];
        held || operation.predecessors.is_empty() && !is_released_by_jobs(system, operation.task)
    };
    segment.operations.iter().filter(is_timed).count() as u64
}

impl Node {
    /// The place, with all the segments of its node.
    fn new(
        system: &System,
        place: &LanePlacement,
        on_node: &[usize],
        segments: &[Segment],
        operations: &[Operation],
    ) -> Result<Self, AnalysisError> {
        let lanes: Vec<Lane> = place.lanes.iter().map(|lane| Lane::new(lane, operations)).collect();
        let own: HashSet<usize> = lanes.iter().flat_map(|lane| lane.segments.iter().copied()).collect();
        let processors = place.processors;
        let switch = nanos(system.overhead.switch);
        let timer = nanos(system.overhead.timer);
        let reconsiders = lanes.iter().any(Lane::reconsiders);
        let mut interrupts = Vec::new();
        // Timers delay whoever runs, wherever in a hierarchy that is.
        for &segment in on_node {
            let count = segments[segment].operations.len() as u64;
            let timed = timed_releases(system, &segments[segment]);
            // A message to a guard is an event of the node too.
            let held = match system.tasks[segments[segment].task].sync {
                Synchronisation::Greedy => 0,
                _ => count,
            };
            // A lane that chooses anew at every release and completion of the machine may switch at each: those of
            // its own and of the lanes it runs beside. On one processor lower lanes do not run meanwhile.
            let points = match (reconsiders && own.contains(&segment), processors) {
                (false, _) => 0,
                (true, 1) => 1 + held,
                (true, _) => 2 * count + held,
            };
            let cost = checked(product(timed, timer)?, product(points, switch)?)?;
            if let Entry::Triggered(triggered) = &segments[segment].entry
                && triggered.is_guarded()
            {
                // Each arrival is an event of the node, beside what opens the guard.
                let points = if reconsiders && own.contains(&segment) { count } else { 0 };
                let cost = checked(product(timed, timer)?, product(points, switch)?)?;
                let (events, kind) = (Events::Signals(segment), InterruptKind::Timer);
                interrupts.extend((cost > 0).then_some(Interrupt { events, cost, kind }));
            }
            if cost > 0 {
                interrupts.push(Interrupt {
                    events: Events::Releases(segment),
                    cost,
                    kind: InterruptKind::Timer,
                });
            }
        }
        for interruption in &place.interruptions {
            interrupts.extend(returns(interruption, switch, on_node, segments, system)?);
        }
        // A guarantee is for whoever wants to run all along, unless it is the whole processor, or what the kernel leaves lanes of it.
        let sleeps = own.iter().any(|segment| segments[*segment].wakes > 0);
        let is_asked_anew = system.scheduling(place.node) == Scheduling::Hierarchy;
        let supply = match place.supply {
            Ok(supply) if sleeps && is_asked_anew && supply != Supply::Whole => Err(Obstacle::Sleeps),
            supply => supply,
        };
        Ok(Node {
            site: place.node,
            lanes,
            processors,
            supply,
            interrupts,
            server: place.server,
            may_lag: place.may_lag,
        })
    }
}

/// What it costs to come back after what takes the processor away: a switch after each.
fn returns(
    interruption: &Interruption,
    switch: u64,
    on_node: &[usize],
    segments: &[Segment],
    system: &System,
) -> Result<Vec<Interrupt>, AnalysisError> {
    // A release, and what a scheduler makes of it.
    const RELEASE: u64 = 2;
    let kind = InterruptKind::Return;
    let with = |segment: usize| {
        let cost = product(RELEASE * (1 + segments[segment].wakes), switch)?;
        Ok(Interrupt { events: Events::Releases(segment), cost, kind })
    };
    match *interruption {
        Interruption::Timer { period, count, events } => {
            let beyond = period.saturating_mul(count.saturating_sub(1)).min(TIME_MAX);
            Ok(vec![Interrupt {
                events: Events::Timer { period, beyond },
                cost: product(events, switch)?,
                kind,
            }])
        }
        Interruption::Thread(thread) => {
            let of_thread = |segment: &&usize| segments[**segment].operations.contains(&thread.index());
            on_node.iter().filter(of_thread).map(|segment| with(*segment)).collect()
        }
        Interruption::Lanes(scheduler) => {
            let is_in_them = |segment: &&usize| {
                let segment = &segments[**segment];
                let first = system.operations()[segment.operations[0]].id;
                system.thread_of_task(segment.task).is_none()
                    && system.lanes_with(system.subtask(first)) == Some(scheduler)
            };
            on_node.iter().filter(is_in_them).map(|segment| with(*segment)).collect()
        }
    }
}

impl Lane {
    fn new(plan: &LanePlan, operations: &[Operation]) -> Self {
        let mut segments: Vec<usize> =
            plan.members.iter().map(|member| operations[member.index()].segment).collect();
        segments.sort_unstable();
        segments.dedup();
        Lane { level: plan.level, discipline: plan.discipline, rules: plan.rules, segments }
    }
}

/// The shortest execution time that work can produce.
pub(super) fn least(exec: &Execution) -> Work {
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
