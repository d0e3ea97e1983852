//! The validated system: a [`Description`] that satisfies every rule, with its operations numbered.

use crate::channel::{EventTake, Publication, Subscription};
use crate::connection::{ChainSite, Connections, InputId, InputSite, OutputId, OutputSite, PublicationSite};
use crate::description::{
    Criticality, Description, Join, Overhead, Overrun, Strategy, Subtask, Synchronisation, Task,
};
use crate::execution::Execution;
use crate::hierarchy::{Thread, ThreadWork};
use crate::inheritance::{derive_criticalities, derive_deadlines};
use crate::link::LossRate;
use crate::operation::{Operation, OperationAddress, OperationId};
use crate::ports::{Input, Output};
use crate::rate::derive_periods;
use crate::trigger::{Communication, Trigger};
use crate::validate::TIME_LIMIT;
use std::ops::Deref;
use talea_event::qos::{Level, Qos};
use talea_time::{Duration, Work};

/// How long what never ends takes: more than two centuries, with room for costs.
const ENDLESS: Duration = Duration::from_secs(7_000_000_000);

/// What a thread does, as a task.
fn task_of_thread(thread: &Thread) -> Task {
    let (exec, period, deadline) = match &thread.work {
        ThreadWork::Bursts { burst, period } => (burst.clone(), *period, *period),
        // Never, and not the end of the period: a scheduler that serves by deadlines would take that for one.
        ThreadWork::CpuBound
        | ThreadWork::Command(_)
        | ThreadWork::Process { .. }
        | ThreadWork::Thread(_) => (Execution::Constant(ENDLESS.as_work()), ENDLESS, Duration::MAX),
    };
    let work = Subtask {
        name: thread.name.clone(),
        node: thread.node,
        lanes: None,
        wcet: exec.max(),
        exec,
        after: Vec::new(),
        join: Join::All,
        bound: None,
        outputs: Vec::new(),
        inputs: Vec::new(),
        events: Vec::new(),
        subscription: None,
    };
    Task {
        name: thread.name.clone(),
        period,
        deadline,
        inherits_deadline: false,
        inherits_criticality: false,
        phase: Duration::ZERO,
        jitter: Duration::ZERO,
        trigger: None,
        separation: None,
        communication: Communication::Implicit,
        criticality: Criticality::Medium,
        importance: 0,
        overrun: Overrun::Queue,
        sync: Synchronisation::Greedy,
        subtasks: vec![work],
    }
}

/// A validated system. Read-only: change a copy of its description and validate again.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    description: Description,
    operations: Vec<Operation>,
    /// Index of each task's first operation; one more entry than tasks.
    task_starts: Vec<u32>,
    /// Index of the first task that is a thread, see [`System::with_threads_as_tasks`].
    first_thread_task: usize,
    connections: Connections,
    chain_sites: Vec<ChainSite>,
}

impl Deref for System {
    type Target = Description;
    fn deref(&self) -> &Description {
        &self.description
    }
}

impl System {
    /// Validates `description`. The periods of triggered tasks are [derived](Task::period), whatever they are in it.
    ///
    /// # Errors
    /// Every violated rule, as texts that name the offending item, in file order, warnings included.
    /// (Reading a file reports the same rules with positions; see [`crate::parse`].)
    pub fn new(mut description: Description) -> Result<Self, Vec<crate::Violation>> {
        derive_criticalities(&mut description.tasks);
        let violations = crate::validate::violations(&description);
        if violations.iter().any(|violation| violation.severity == crate::Severity::Error) {
            return Err(violations);
        }
        Ok(Self::number(description))
    }

    /// Validates `description` as [`Self::new`] does, but takes one whose threads have all gone: a running hierarchy outlives
    /// them.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn of_running(mut description: Description) -> Result<Self, Vec<crate::Violation>> {
        derive_criticalities(&mut description.tasks);
        let violations = crate::validate::violations_of_running(&description);
        if violations.iter().any(|violation| violation.severity == crate::Severity::Error) {
            return Err(violations);
        }
        Ok(Self::number(description))
    }

    /// What is allowed in this system but probably not meant.
    pub fn warnings(&self) -> Vec<crate::Violation> {
        crate::violations(&self.description)
    }

    /// The system of a description that was found to break no rule.
    pub(crate) fn number(mut description: Description) -> Self {
        derive_periods(&mut description.tasks);
        derive_deadlines(&mut description.tasks);
        let mut operations = Vec::new();
        let mut task_starts = vec![0];
        for (task_index, task) in description.tasks.iter().enumerate() {
            let first = operations.len();
            let ranks =
                crate::validate::topological_ranks(&task.subtasks).expect("validation refuses cyclic tasks");
            let at = |offset: &usize| OperationId::from_index(first + offset);
            for (subtask_index, subtask) in task.subtasks.iter().enumerate() {
                let name = task.operation_name(subtask_index);
                operations.push(Operation {
                    id: at(&subtask_index),
                    task: task_index,
                    subtask: subtask_index,
                    name,
                    predecessors: subtask.after.iter().map(at).collect(),
                    successors: Vec::new(),
                    topological_rank: ranks[subtask_index],
                });
            }
            for (subtask_index, subtask) in task.subtasks.iter().enumerate() {
                for before in &subtask.after {
                    operations[first + before].successors.push(at(&subtask_index));
                }
            }
            task_starts.push(operations.len() as u32);
        }
        let first_thread_task = description.tasks.len();
        let connections = Connections::number(&description);
        let at =
            |step: &OperationAddress| OperationId::from_index(task_starts[step.task] as usize + step.subtask);
        let site = |chain: &crate::Chain| {
            connections.chain(&description.tasks, &chain.path, chain.path.iter().map(at).collect())
        };
        let chain_sites = description.chains.iter().map(site).collect();
        System { description, operations, task_starts, first_thread_task, connections, chain_sites }
    }

    /// The system as it is executed: each thread of a hierarchy is a task too, behind the others, whose only operation is
    /// what the thread does. Whatever executes, counts and records jobs then does so with threads' bursts.
    ///
    /// What always wants the processor, commands and processes among it, arrives once and never ends. It has no deadline:
    /// [`Duration::MAX`], which after any arrival is [`Instant::MAX`](talea_time::Instant::MAX).
    #[must_use]
    pub fn with_threads_as_tasks(&self) -> System {
        if self.threads.is_empty() || self.first_thread_task < self.tasks.len() {
            return self.clone();
        }
        let mut description = self.description.clone();
        description.tasks.extend(self.threads.iter().map(task_of_thread));
        System { first_thread_task: self.tasks.len(), ..Self::number(description) }
    }

    /// The operation of the thread at `index` among the threads, in a system whose [threads are
    /// tasks](Self::with_threads_as_tasks).
    pub fn operation_of_thread(&self, index: usize) -> Option<OperationId> {
        let start = self.task_starts.get(self.first_thread_task + index)?;
        (index < self.threads.len() && self.first_thread_task < self.tasks.len())
            .then(|| OperationId::from_index(*start as usize))
    }

    /// The thread that the task at `index` is, if it is one.
    pub fn thread_of_task(&self, index: usize) -> Option<usize> {
        index.checked_sub(self.first_thread_task)
    }

    /// All operations, indexed by [`OperationId::index`].
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The operations of one task, in file order.
    pub fn operations_of(&self, task: usize) -> &[Operation] {
        &self.operations[self.task_starts[task] as usize..self.task_starts[task + 1] as usize]
    }

    /// The operations placed on one node, in file order.
    pub fn operations_on(&self, node: usize) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(move |operation| self.subtask(operation.id).node == node)
    }

    /// The operations of one node that belong into lanes: all but threads, in file order.
    pub fn lane_operations_on(&self, node: usize) -> impl Iterator<Item = &Operation> {
        self.operations_on(node).filter(|operation| self.thread_of_task(operation.task).is_none())
    }

    /// The threads of one node, by index, in file order.
    pub fn threads_on(&self, node: usize) -> impl Iterator<Item = usize> {
        self.threads.iter().enumerate().filter(move |(_, thread)| thread.node == node).map(|(index, _)| index)
    }

    /// The subtask behind an operation.
    pub fn subtask(&self, id: OperationId) -> &crate::Subtask {
        let operation = &self.operations[id.index()];
        &self.description.tasks[operation.task].subtasks[operation.subtask]
    }

    /// The task an operation belongs to.
    pub fn task_of(&self, id: OperationId) -> &crate::Task {
        &self.description.tasks[self.operations[id.index()].task]
    }

    /// The subscription by which jobs of the operation have events: its own, or that of its task if it is the first one of that.
    pub fn subscription_of(&self, id: OperationId) -> Option<&Subscription> {
        let is_first = self.operations[id.index()].predecessors.is_empty();
        match &self.task_of(id).trigger {
            Some(Trigger::Events(subscription)) if is_first => Some(subscription),
            _ => self.subtask(id).subscription.as_ref(),
        }
    }

    /// Whether jobs of the operation take events of a channel when they begin.
    pub fn takes_events(&self, id: OperationId) -> bool {
        self.subscription_of(id).is_some()
    }

    /// Whether something outside releases the jobs of the operation: it is a first one of a task with that trigger.
    pub fn reads_outside(&self, id: OperationId) -> bool {
        let is_first = self.operations[id.index()].predecessors.is_empty();
        is_first && matches!(self.task_of(id).trigger, Some(crate::Trigger::External { .. }))
    }

    /// All outputs, indexed by [`OutputId::index`].
    pub fn outputs(&self) -> &[OutputSite] {
        &self.connections.outputs
    }

    /// All inputs, indexed by [`InputId::index`].
    pub fn inputs(&self) -> &[InputSite] {
        &self.connections.inputs
    }

    /// The outputs of one operation, in file order.
    pub fn outputs_of(&self, operation: OperationId) -> &[OutputSite] {
        self.connections.outputs_of(operation)
    }

    /// How long a job of the operation waits at most for room in each input that it waits for, in the order in which it does.
    pub fn wait_limits(&self, operation: OperationId) -> impl Iterator<Item = Duration> + Clone + '_ {
        let readers = self.outputs_of(operation).iter().flat_map(|output| &output.readers);
        readers.filter_map(|reader| self.inputs()[reader.index()].take.wait_limit())
    }

    /// The inputs of one operation, in file order.
    pub fn inputs_of(&self, operation: OperationId) -> &[InputSite] {
        self.connections.inputs_of(operation)
    }

    /// All that operations push into channels, indexed by [`PublicationId::index`](crate::PublicationId::index), in file order.
    pub fn publications(&self) -> &[PublicationSite] {
        &self.connections.publications
    }

    /// The declaration of a publication.
    pub fn publication(&self, site: &PublicationSite) -> &Publication {
        &self.subtask(site.operation).events[site.index]
    }

    /// What pushing its events costs a job at most, by operation, at these prices: for each event, looking who has subscribed, and of each
    /// subscription its filter and its queue. No more than [`TIME_LIMIT`], as any time of a system.
    pub fn publishing_costs(&self, prices: &Overhead) -> Vec<Work> {
        let Overhead { push, filter, delivery, .. } = *prices;
        let most = TIME_LIMIT.as_work();
        let mut costs = vec![Work::ZERO; self.operations().len()];
        for site in self.publications() {
            let cost = &mut costs[site.operation.index()];
            *cost = (*cost + push).min(most);
            for subscriber in &site.subscribers {
                let filterings =
                    self.subscription_of(subscriber.operation).map_or(0, Subscription::filterings);
                let of_filters = filter.as_nanos().saturating_mul(filterings as i64);
                *cost = (*cost + Work::from_nanos(of_filters) + delivery).min(most);
            }
        }
        costs
    }

    /// The publications whose events release the task at `index`, each with the leaves of its condition whose event it may be.
    pub fn subscribed_by(&self, task: usize) -> impl Iterator<Item = (&PublicationSite, &[usize])> {
        self.publications().iter().filter_map(move |site| {
            let leaves = &site.released().find(|subscriber| subscriber.task == task)?.leaves;
            (!leaves.is_empty()).then_some((site, leaves.as_slice()))
        })
    }

    /// Values of an output that a `latest` input has room for, so that those which are under way, or not yet to be seen, do not take that of what is:
    /// all that come in that time if deadlines are kept, and no more than [`Self::MOST_LATEST`].
    pub fn room_of_latest(&self, input: InputId) -> usize {
        let site = &self.inputs()[input.index()];
        let (producer, consumer) = (self.outputs()[site.output.index()].operation, site.operation);
        let (writes, reads) = (self.task_of(producer), self.task_of(consumer));
        let (from, to) = (self.subtask(producer).node, self.subtask(consumer).node);
        let is_planned = [writes, reads].iter().any(|task| task.communication == Communication::Let);
        if from == to && !is_planned {
            return 1;
        }
        let behind = if is_planned { reads.deadline } else { Duration::ZERO };
        let spans = [self.route(from, to).longest(), behind, writes.deadline, writes.period];
        let sum = |sum: Duration, span| sum.checked_add(span).unwrap_or(Duration::MAX);
        let all = spans.into_iter().fold(Duration::ZERO, sum).as_nanos() / writes.period.as_nanos();
        usize::try_from(all.saturating_add(2)).map_or(Self::MOST_LATEST, |all| all.min(Self::MOST_LATEST))
    }

    /// The most values of an output that a `latest` input has room for.
    pub const MOST_LATEST: usize = 1024;

    /// How many times at most the condition of a subscription, which is one of this system, has come true for what one job takes.
    ///
    /// # Panics
    /// As [`Self::subscription_qos`].
    pub fn most_taken(&self, subscription: &Subscription) -> u32 {
        match subscription.take {
            EventTake::Next => 1,
            EventTake::All => self.subscription_qos(subscription).max_events,
        }
    }

    /// The quality of service by which the owner of the subscription, which is one of this system, has its events.
    ///
    /// # Panics
    /// If it is not one of this system.
    pub fn subscription_qos(&self, subscription: &Subscription) -> Qos {
        let of_channel = Qos::default().with(&self.channels[subscription.channel].qos, Level::Channel);
        let qos = of_channel.and_then(|qos| qos.with(&subscription.qos, Level::Proxy));
        qos.expect("validation refuses what cannot be")
    }

    /// The declaration of an output.
    pub fn output(&self, id: OutputId) -> &Output {
        let site = &self.connections.outputs[id.index()];
        &self.subtask(site.operation).outputs[site.index]
    }

    /// The declaration of an input.
    pub fn input(&self, id: InputId) -> &Input {
        let site = &self.connections.inputs[id.index()];
        &self.subtask(site.operation).inputs[site.index]
    }

    /// The operation at these indices.
    pub fn operation_at(&self, address: OperationAddress) -> OperationId {
        self.operations_of(address.task)[address.subtask].id
    }

    /// The output that triggers the task, if one does.
    pub fn trigger_output(&self, task: usize) -> Option<OutputId> {
        match self.tasks[task].trigger {
            Some(Trigger::Output { output, .. }) => {
                Some(self.outputs_of(self.operation_at(output.operation))[output.output].id)
            }
            Some(Trigger::External { .. } | Trigger::Events(_)) | None => None,
        }
    }

    /// The chains with their operations and connections by number, in the order of [`Description::chains`].
    pub fn chain_sites(&self) -> &[ChainSite] {
        &self.chain_sites
    }

    /// The messages between operations of the task, from the first to the second, that their link may lose.
    pub fn messages_that_may_be_lost(&self, task: usize) -> impl Iterator<Item = (OperationId, OperationId)> {
        let is_lossy = |from: OperationId, to: OperationId| {
            let node = |id| self.subtask(id).node;
            self.route(node(from), node(to)).loss > LossRate::NONE
        };
        self.operations_of(task).iter().flat_map(move |operation| {
            let lossy = operation.predecessors.iter().filter(move |before| is_lossy(**before, operation.id));
            lossy.map(|before| (*before, operation.id))
        })
    }

    /// Sum of wcet / period over the operations of one node, for display (the analysis is exact).
    pub fn utilisation(&self, node: usize) -> f64 {
        self.operations_on(node)
            .map(|operation| {
                let wcet: Work = self.subtask(operation.id).wcet;
                wcet.as_nanos() as f64 / self.task_of(operation.id).period.as_nanos() as f64
            })
            // An empty sum is -0.
            .fold(0.0, |sum, one| sum + one)
    }

    /// The same system under another strategy.
    pub fn with_strategy(&self, strategy: Strategy) -> Self {
        let mut changed = self.clone();
        changed.description.strategy = strategy;
        changed
    }

    /// The same system with this synchronisation protocol for every task, but for triggered ones, which keep theirs, if it takes
    /// periodic arrivals. Response bounds that it does not need are left out.
    #[must_use]
    pub fn with_synchronisation(&self, sync: Synchronisation) -> Self {
        let mut changed = self.clone();
        for task in &mut changed.description.tasks {
            if task.trigger.is_some() && sync.needs_periodic_arrivals() {
                continue;
            }
            task.sync = sync;
            if !sync.needs_bounds() {
                task.subtasks.iter_mut().for_each(|subtask| subtask.bound = None);
            }
        }
        changed
    }

    /// The same system with response bounds for those operations, by [`OperationId::index`], that `bound` has one for.
    #[must_use]
    pub fn with_response_bounds(&self, bound: impl Fn(OperationId) -> Option<Duration>) -> Self {
        let mut changed = self.clone();
        for operation in &self.operations {
            let subtask = &mut changed.description.tasks[operation.task].subtasks[operation.subtask];
            subtask.bound = bound(operation.id).or(subtask.bound);
        }
        changed
    }

    /// The same system with another seed.
    pub fn with_seed(&self, seed: u64) -> Self {
        let mut changed = self.clone();
        changed.description.seed = seed;
        changed
    }
}
