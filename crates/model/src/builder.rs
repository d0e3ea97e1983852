//! Systems written in Rust, with the defaults and the rules of system files. Whatever a file can say can be said here: files are
//! read by these builders.
//!
//! ```
//! use talea_model::{Criticality, SubtaskBuilder, System, TaskBuilder};
//! use talea_time::{Duration, Work};
//!
//! let system = System::builder("arm")
//!     .node("control", [0])
//!     .node("vision", [1])
//!     .task(
//!         TaskBuilder::new("balance", Duration::from_millis(5))
//!             .criticality(Criticality::High)
//!             .wcet(Work::from_millis(1))
//!             .on("control"),
//!     )
//!     .task(
//!         TaskBuilder::new("grasp", Duration::from_millis(40))
//!             .subtask(SubtaskBuilder::new("camera").wcet(Work::from_millis(9)).on("vision"))
//!             .subtask(SubtaskBuilder::new("plan").wcet(Work::from_millis(6)).on("control")),
//!     )
//!     .build()?;
//! assert_eq!(system.operations().len(), 3);
//! # Ok::<(), talea_model::Violations>(())
//! ```

mod chain;
mod channel;
mod hierarchy;
mod link;
mod names;
mod ports;
mod trigger;

use crate::channel::{Channel, Publication, SubscriptionOwner};
use crate::description::*;
use crate::execution::Execution;
use crate::inheritance::{derive_criticalities, derive_deadlines};
use crate::operation::OperationAddress;
use crate::ports::Input;
use crate::rate::derive_periods;
use crate::suggest::known_words;
use crate::trigger::{Communication, Excess, OutsideArrivals, Separation};
use crate::validate::{TIME_LIMIT, violations_besides};
use crate::{Place, Severity, System, Violation};
use hierarchy::HierarchyBuilder;
use names::OperationNames;
use std::collections::HashMap;
use std::fmt;
use talea_event::qos::QosSettings;
use talea_time::{Duration, Work};

pub use chain::ChainBuilder;
pub use channel::{PublicationBuilder, SubscriptionBuilder};
pub use hierarchy::{SchedulerBuilder, ThreadBuilder};
pub use link::LinkBuilder;
pub use ports::{InputBuilder, OutputBuilder};
pub use trigger::TriggerBuilder;

/// The node a system has if none is described.
const DEFAULT_NODE: &str = "local";

/// Every rule a description breaks, warnings included, as an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations(pub Vec<Violation>);

impl std::error::Error for Violations {}

/// One violation per line.
impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{violation}")?;
        }
        Ok(())
    }
}

/// A system under construction; start with [`System::builder`].
#[derive(Clone, Debug)]
pub struct SystemBuilder {
    /// Everything but the links, the tasks and the chains.
    description: Description,
    links: Vec<LinkBuilder>,
    tasks: Vec<TaskBuilder>,
    chains: Vec<ChainBuilder>,
    /// Of tasks that name no protocol.
    sync: Synchronisation,
    hierarchy: HierarchyBuilder,
}

impl System {
    /// Begins a system: RMS+MLF in non-preemptive lanes, declared laxity, late work last, seed 1, no
    /// costs, and one node `local` on processor 0 unless nodes are added.
    pub fn builder(name: impl Into<String>) -> SystemBuilder {
        SystemBuilder {
            description: Description {
                name: name.into(),
                strategy: Strategy::DEFAULT,
                lane_dispatch: LaneDispatch::NonPreemptive,
                laxity: Laxity::Declared,
                late: Late::Last,
                seed: 1,
                overhead: Overhead::default(),
                nodes: Vec::new(),
                links: Vec::new(),
                channels: Vec::new(),
                tasks: Vec::new(),
                chains: Vec::new(),
                schedulers: Vec::new(),
                threads: Vec::new(),
            },
            links: Vec::new(),
            tasks: Vec::new(),
            chains: Vec::new(),
            sync: Synchronisation::DEFAULT,
            hierarchy: HierarchyBuilder::default(),
        }
    }
}

impl SystemBuilder {
    /// How operations are sorted into lanes.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.description.strategy = strategy;
        self
    }

    /// What happens inside one lane when a more urgent job arrives.
    pub fn lane_dispatch(mut self, dispatch: LaneDispatch) -> Self {
        self.description.lane_dispatch = dispatch;
        self
    }

    /// Which laxity orders a laxity lane.
    pub fn laxity(mut self, laxity: Laxity) -> Self {
        self.description.laxity = laxity;
        self
    }

    /// Where late jobs stand in deadline and laxity lanes.
    pub fn late(mut self, late: Late) -> Self {
        self.description.late = late;
        self
    }

    /// When subtasks with predecessors are released, in tasks that do not say it themselves.
    pub fn sync(mut self, sync: Synchronisation) -> Self {
        self.sync = sync;
        self
    }

    /// Seed of every pseudo-random choice.
    pub fn seed(mut self, seed: u64) -> Self {
        self.description.seed = seed;
        self
    }

    /// Costs the simulator charges.
    pub fn overhead(mut self, overhead: Overhead) -> Self {
        self.description.overhead = overhead;
        self
    }

    /// Adds a node with its processors by Linux number.
    pub fn node(mut self, name: impl Into<String>, cpus: impl IntoIterator<Item = u16>) -> Self {
        self.description.nodes.push(Node { name: name.into(), cpus: cpus.into_iter().collect() });
        self
    }

    /// Adds what lies between nodes.
    pub fn link(mut self, link: LinkBuilder) -> Self {
        self.links.push(link);
        self
    }

    /// Adds a channel of events with the quality of service of what comes out of it.
    pub fn channel(mut self, name: impl Into<String>, qos: QosSettings) -> Self {
        self.description.channels.push(Channel { name: name.into(), qos });
        self
    }

    /// Adds a task.
    pub fn task(mut self, task: TaskBuilder) -> Self {
        self.tasks.push(task);
        self
    }

    /// Adds a cause-effect chain.
    pub fn chain(mut self, chain: ChainBuilder) -> Self {
        self.chains.push(chain);
        self
    }

    /// Adds a scheduler.
    pub fn scheduler(mut self, scheduler: SchedulerBuilder) -> Self {
        self.hierarchy.schedulers.push(scheduler);
        self
    }

    /// Adds a thread.
    pub fn thread(mut self, thread: ThreadBuilder) -> Self {
        self.hierarchy.threads.push(thread);
        self
    }

    /// Validates the system.
    ///
    /// # Errors
    /// Every violated rule and every name that stands for nothing.
    pub fn build(self) -> Result<System, Violations> {
        let (description, unresolved) = self.resolve();
        let violations = violations_besides(unresolved, &description);
        if violations.iter().any(|violation| violation.severity == Severity::Error) {
            return Err(Violations(violations));
        }
        Ok(System::number(description))
    }

    /// Turns names into indices. Where a name means nothing the first node or no predecessor stands
    /// in, so that the other rules can still be checked.
    pub(crate) fn resolve(self) -> (Description, Vec<Violation>) {
        let mut description = self.description;
        if description.nodes.is_empty() {
            description.nodes.push(Node { name: DEFAULT_NODE.into(), cpus: vec![0] });
        }
        let mut numbers = HashMap::new();
        for (index, node) in description.nodes.iter().enumerate() {
            numbers.entry(node.name.as_str()).or_insert(index);
        }
        let nodes = NodeNames { nodes: &description.nodes, numbers };
        let lanes = self.hierarchy.lanes();
        let mut violations = Vec::new();
        let resolved = self
            .tasks
            .into_iter()
            .enumerate()
            .map(|(index, task)| task.resolve(index, self.sync, (&nodes, &lanes), &mut violations));
        let (mut tasks, unconnected): (Vec<Task>, Vec<Unconnected>) = resolved.unzip();
        let names = OperationNames::of(&tasks);
        for (index, ports) in unconnected.into_iter().enumerate() {
            ports.connect(index, &mut tasks, (&names, &description.channels), &mut violations);
        }
        derive_periods(&mut tasks);
        derive_deadlines(&mut tasks);
        derive_criticalities(&mut tasks);
        let chains = self.chains.into_iter().enumerate();
        let chains = chains.map(|(index, chain)| chain.resolve(index, &names, &mut violations)).collect();
        let links = self.links.into_iter().enumerate();
        let links = links.map(|(index, link)| link.resolve(index, &nodes, &mut violations)).collect();
        let (schedulers, threads) = self.hierarchy.resolve(&nodes, &mut violations);
        description = Description { links, tasks, chains, schedulers, threads, ..description };
        (description, violations)
    }
}

/// The nodes a subtask may name.
pub(crate) struct NodeNames<'a> {
    nodes: &'a [Node],
    numbers: HashMap<&'a str, usize>,
}

impl NodeNames<'_> {
    /// The number of the node called `name`, or the message and the remedy if there is none.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<usize, (String, String)> {
        let names = || self.nodes.iter().map(|node| node.name.as_str());
        match name {
            None if self.nodes.len() == 1 => Ok(0),
            None => {
                let names: Vec<_> = names().take(4).map(|name| format!("\"{name}\"")).collect();
                let remedy = format!("the system has several nodes; write node = {}", names.join(" or "));
                Err(("does not say on which node it runs".into(), remedy))
            }
            Some(name) => self.numbers.get(name).copied().ok_or_else(|| {
                (format!("is on node \"{name}\", which does not exist"), known_words(name, names()))
            }),
        }
    }
}

/// The schedulers in whose lanes a subtask may say that it is.
pub(crate) struct LanesNames {
    /// The numbers of all schedulers.
    pub(crate) numbers: HashMap<String, usize>,
    /// Those of kind `lanes`, in file order.
    pub(crate) names: Vec<String>,
}

impl LanesNames {
    /// The number of the scheduler called `name`, or the message and the remedy if there is none.
    fn find(&self, name: &str) -> Result<usize, (String, String)> {
        self.numbers.get(name).copied().ok_or_else(|| {
            let remedy = match self.names.is_empty() {
                true => "remove the key; only nodes with [[scheduler]] tables have several places for lanes"
                    .into(),
                false => known_words(name, self.names.iter().map(String::as_str)),
            };
            (format!("is in the lanes \"{name}\", which do not exist"), remedy)
        })
    }
}

/// A task under construction: either one operation (give it a [`wcet`](Self::wcet)) or
/// [subtasks](Self::subtask).
#[derive(Clone, Debug)]
pub struct TaskBuilder {
    /// Everything but what is below.
    task: Task,
    /// This or the trigger, unless the file says both.
    period: Option<Duration>,
    trigger: Option<TriggerBuilder>,
    deadline: Option<Duration>,
    separation: Option<Duration>,
    burst: Option<u32>,
    excess: Option<Excess>,
    arrivals: Option<OutsideArrivals>,
    sync: Option<Synchronisation>,
    own: Step,
    subtasks: Vec<SubtaskBuilder>,
}

/// What a task of one operation and a subtask have in common.
#[derive(Clone, Debug, Default)]
struct Step {
    wcet: Option<Work>,
    exec: Option<Execution>,
    node: Option<String>,
    lanes: Option<String>,
    outputs: Vec<OutputBuilder>,
    inputs: Vec<InputBuilder>,
    events: Vec<PublicationBuilder>,
    subscription: Option<SubscriptionBuilder>,
}

/// The ports of a task that name operations of others, until all tasks are there.
struct Unconnected {
    trigger: Option<TriggerBuilder>,
    arrivals: OutsideArrivals,
    /// By subtask.
    ports: Vec<UnconnectedPorts>,
}

/// The ports of a subtask that name operations of others, or channels.
struct UnconnectedPorts {
    inputs: Vec<InputBuilder>,
    events: Vec<PublicationBuilder>,
    subscription: Option<SubscriptionBuilder>,
}

impl Unconnected {
    /// Finds what the trigger and the inputs of the task at `index` name.
    fn connect(
        self,
        index: usize,
        tasks: &mut [Task],
        (names, channels): (&OperationNames, &[Channel]),
        violations: &mut Vec<Violation>,
    ) {
        if let Some(trigger) = self.trigger {
            let names = (names, channels);
            tasks[index].trigger = trigger.resolve(index, self.arrivals, tasks, names, violations);
        }
        let mut inputs = Vec::with_capacity(self.ports.len());
        for (subtask, ports) in self.ports.into_iter().enumerate() {
            let operation = OperationAddress { task: index, subtask };
            inputs.push(ports.inputs);
            if let Some(subscription) = ports.subscription {
                let owner = SubscriptionOwner::Operation(operation);
                let subscription = subscription.resolve(owner, tasks, channels, violations);
                tasks[index].subtasks[subtask].subscription = Some(subscription);
            }
            let events = ports.events.into_iter().enumerate();
            let resolve = |(position, event): (usize, PublicationBuilder)| {
                event.resolve((operation, position), tasks, channels, violations)
            };
            let events: Vec<Publication> = events.map(resolve).collect();
            tasks[index].subtasks[subtask].events = events;
        }
        for (subtask, inputs) in inputs.into_iter().enumerate() {
            let operation = OperationAddress { task: index, subtask };
            let inputs = inputs.into_iter().enumerate();
            let resolve = |(position, input): (usize, InputBuilder)| {
                input.resolve(operation, position, tasks, names, violations)
            };
            let inputs: Vec<Input> = inputs.map(resolve).collect();
            tasks[index].subtasks[subtask].inputs = inputs;
        }
    }
}

impl TaskBuilder {
    /// Begins a task released every `period`, which is also its deadline: medium criticality,
    /// importance 0, no phase, no jitter, overruns queue.
    pub fn new(name: impl Into<String>, period: Duration) -> Self {
        Self::released(name, Some(period), None)
    }

    /// Begins a task that a trigger releases in place of a period. It needs a [deadline](Self::deadline) or a
    /// [separation](Self::separation).
    pub fn triggered_by(name: impl Into<String>, trigger: impl Into<TriggerBuilder>) -> Self {
        Self::released(name, None, Some(trigger.into()))
    }

    /// Begins a task that something outside releases, in the long run no more often than every `separation`, which is also its
    /// deadline. Where there is no outside, it is released as often as that.
    pub fn external(name: impl Into<String>, separation: Duration) -> Self {
        Self::triggered_by(name, TriggerBuilder::external()).separation(separation)
    }

    /// Begins a task released by a period or a trigger.
    pub(crate) fn released(
        name: impl Into<String>,
        period: Option<Duration>,
        trigger: Option<TriggerBuilder>,
    ) -> Self {
        TaskBuilder {
            task: Task {
                name: name.into(),
                period: period.unwrap_or(TIME_LIMIT),
                deadline: TIME_LIMIT,
                inherits_deadline: false,
                inherits_criticality: false,
                phase: Duration::ZERO,
                jitter: Duration::ZERO,
                trigger: None,
                separation: None,
                communication: Communication::DEFAULT,
                criticality: Criticality::DEFAULT,
                importance: 0,
                overrun: Overrun::Queue,
                sync: Synchronisation::DEFAULT,
                subtasks: Vec::new(),
            },
            period,
            trigger,
            deadline: None,
            separation: None,
            burst: None,
            excess: None,
            arrivals: None,
            sync: None,
            own: Step::default(),
            subtasks: Vec::new(),
        }
    }

    /// Another name, for tasks made from a common beginning.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.task.name = name.into();
        self
    }

    /// End-to-end deadline after the arrival.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self.task.inherits_deadline = false;
        self
    }

    /// Each instance has arrival and deadline of the job that releases it: one deadline from the first operation to the last, across triggers
    /// and events. All that may release it have to have the same deadline after their arrivals.
    pub fn inherit_deadline(mut self) -> Self {
        self.deadline = None;
        self.task.inherits_deadline = true;
        self
    }

    /// How far apart releases by the trigger are in the long run.
    pub fn separation(mut self, separation: Duration) -> Self {
        self.separation = Some(separation);
        self
    }

    /// How many releases by the trigger may come at once after a pause; one unless given. Needs a separation.
    pub fn burst(mut self, burst: u32) -> Self {
        self.burst = Some(burst);
        self
    }

    /// What happens to what triggers it too early; it waits unless given. Needs a separation.
    pub fn excess(mut self, excess: Excess) -> Self {
        self.excess = Some(excess);
        self
    }

    /// When an outside that is not there triggers it; every separation unless given.
    pub fn arrivals(mut self, arrivals: OutsideArrivals) -> Self {
        self.arrivals = Some(arrivals);
        self
    }

    /// When values between it and other tasks are published and taken.
    pub fn communication(mut self, communication: Communication) -> Self {
        self.task.communication = communication;
        self
    }

    /// Arrival of the first job after the common start.
    pub fn phase(mut self, phase: Duration) -> Self {
        self.task.phase = phase;
        self
    }

    /// Greatest delay between arrival and release.
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.task.jitter = jitter;
        self
    }

    /// What a missed deadline means.
    pub fn criticality(mut self, criticality: Criticality) -> Self {
        self.task.criticality = criticality;
        self.task.inherits_criticality = false;
        self
    }

    /// It is as critical as the most critical of the tasks that it releases, by values or events, or that take its events, directly or through others.
    pub fn inherit_criticality(mut self) -> Self {
        self.task.inherits_criticality = true;
        self
    }

    /// Static subpriority in a lane; larger is more important.
    pub fn importance(mut self, importance: i32) -> Self {
        self.task.importance = importance;
        self
    }

    /// What happens at a release while the previous job's first subtask is unfinished.
    pub fn overrun(mut self, overrun: Overrun) -> Self {
        self.task.overrun = overrun;
        self
    }

    /// When its subtasks with predecessors are released, instead of as in the [system](SystemBuilder::sync).
    pub fn sync(mut self, sync: Synchronisation) -> Self {
        self.sync = Some(sync);
        self
    }

    /// Makes this a task of one operation with this worst case.
    pub fn wcet(mut self, wcet: Work) -> Self {
        self.own.wcet = Some(wcet);
        self
    }

    /// What the one operation's synthetic work takes; the worst case unless given.
    pub fn exec(mut self, exec: Execution) -> Self {
        self.own.exec = Some(exec);
        self
    }

    /// The one operation's node, by name; needed if the system has several.
    pub fn on(mut self, node: impl Into<String>) -> Self {
        self.own.node = Some(node.into());
        self
    }

    /// The scheduler of kind `lanes` in whose lanes the one operation is, by name; needed if its node has several.
    pub fn in_lanes(mut self, scheduler: impl Into<String>) -> Self {
        self.own.lanes = Some(scheduler.into());
        self
    }

    /// Adds an output to the one operation.
    pub fn output(mut self, output: OutputBuilder) -> Self {
        self.own.outputs.push(output);
        self
    }

    /// Adds an input to the one operation.
    pub fn input(mut self, input: InputBuilder) -> Self {
        self.own.inputs.push(input);
        self
    }

    /// Adds events that the one operation pushes.
    pub fn event(mut self, event: PublicationBuilder) -> Self {
        self.own.events.push(event);
        self
    }

    /// Has each job take the next of these events when it begins, if one waits, whatever releases the task; for a task that they release, see
    /// [`triggered_by`](Self::triggered_by).
    pub fn subscription(mut self, subscription: SubscriptionBuilder) -> Self {
        self.own.subscription = Some(subscription);
        self
    }

    /// Adds a subtask.
    pub fn subtask(mut self, subtask: SubtaskBuilder) -> Self {
        self.subtasks.push(subtask);
        self
    }

    fn resolve(
        mut self,
        index: usize,
        sync: Synchronisation,
        places: (&NodeNames<'_>, &LanesNames),
        violations: &mut Vec<Violation>,
    ) -> (Task, Unconnected) {
        let (trigger, arrivals) = self.resolve_release(index, violations);
        let mut task = Task { sync: self.sync.unwrap_or(sync), ..self.task };
        if self.subtasks.is_empty() {
            if self.own.wcet.is_some() {
                let alone = SubtaskBuilder { step: self.own, ..SubtaskBuilder::new(task.name.clone()) };
                self.subtasks.push(alone);
            }
        } else {
            let given = [
                ("wcet", self.own.wcet.is_some()),
                ("exec", self.own.exec.is_some()),
                ("node", self.own.node.is_some()),
                ("lanes", self.own.lanes.is_some()),
                ("outputs", !self.own.outputs.is_empty()),
                ("inputs", !self.own.inputs.is_empty()),
                ("events", !self.own.events.is_empty()),
                ("subscription", self.own.subscription.is_some()),
            ];
            for (key, _) in given.into_iter().filter(|(_, given)| *given) {
                violations.push(Violation::error(
                    Place::Task(index, key),
                    format!("task \"{}\" has subtasks and also its own {key}", task.name),
                    match key {
                        "lanes" | "outputs" | "inputs" | "events" => {
                            format!("move the {key} into the subtasks they belong to")
                        }
                        "subscription" => {
                            "move it into the subtask whose jobs take the events; if they release the task, leave out its period or trigger".into()
                        }
                        _ => format!("move the {key} into the subtask it belongs to"),
                    },
                ));
            }
        }
        let names: Vec<String> = self.subtasks.iter().map(|subtask| subtask.name.clone()).collect();
        let mut positions = HashMap::with_capacity(names.len());
        for (position, name) in names.iter().enumerate() {
            positions.entry(name.as_str()).or_insert(position);
        }
        let siblings = Siblings { task: index, task_name: &task.name, names: &names, positions };
        let subtasks = self.subtasks.into_iter().enumerate();
        let resolved =
            subtasks.map(|(position, subtask)| subtask.resolve(position, &siblings, places, violations));
        let (subtasks, ports): (_, Vec<_>) = resolved.unzip();
        task.subtasks = subtasks;
        (task, Unconnected { trigger, arrivals, ports })
    }

    /// Fills in what follows from period, trigger and separation, and says what does not fit to them.
    fn resolve_release(
        &mut self,
        index: usize,
        violations: &mut Vec<Violation>,
    ) -> (Option<TriggerBuilder>, OutsideArrivals) {
        let name = &self.task.name;
        let trigger = self.trigger.take();
        let mut refuse = |key, related, message: String, remedy: &str| {
            violations.push(Violation {
                related: Some(Place::Task(index, related)),
                ..Violation::error(Place::Task(index, key), message, remedy)
            });
        };
        if self.period.is_some() && trigger.is_some() {
            let what = trigger.as_ref().map_or("trigger", TriggerBuilder::key);
            let message = format!("task \"{name}\" has a period and also a {what}");
            refuse(what, "period", message, "remove one of them; a task is released by one or the other");
        }
        let least = self.separation.or(self.period);
        if self.deadline.or(least).is_none() && !self.task.inherits_deadline {
            let what = trigger.as_ref().map_or("trigger", TriggerBuilder::key);
            let message = format!("task \"{name}\" has a {what} and no deadline");
            let remedy = match trigger.as_ref().is_some_and(TriggerBuilder::is_external) {
                true => "add deadline = \"50ms\", or a separation, which is then the deadline too",
                false => {
                    "add deadline = \"50ms\", or deadline = \"inherited\" for that of the job that releases it, or a separation, which is then \
                     the deadline too"
                }
            };
            refuse(what, "deadline", message, remedy);
        }
        self.task.deadline = self.deadline.or(least).unwrap_or(TIME_LIMIT);
        for (key, is_given) in [("burst", self.burst.is_some()), ("excess", self.excess.is_some())] {
            if is_given && self.separation.is_none() {
                let message = format!("task \"{name}\" has \"{key}\" and no separation");
                let remedy =
                    "add separation = \"5ms\", how far apart releases by its trigger are, or remove it";
                refuse(key, "separation", message, remedy);
            }
        }
        self.task.separation = self.separation.map(|separation| Separation {
            separation,
            burst: self.burst.unwrap_or(Separation::DEFAULT_BURST),
            excess: self.excess.unwrap_or(Excess::DEFAULT),
        });
        let is_external = trigger.as_ref().is_some_and(TriggerBuilder::is_external);
        if self.arrivals.is_some() && !is_external {
            let message = format!("task \"{name}\" has arrivals and no trigger from outside");
            let remedy = "remove them; they say when something outside happens, of trigger = \"external\"";
            refuse("arrivals", "trigger", message, remedy);
        }
        let as_separated = |period| OutsideArrivals::Periodic { period, jitter: Duration::ZERO };
        let preset = self.separation.map_or(OutsideArrivals::None, as_separated);
        (trigger, self.arrivals.take().unwrap_or(preset))
    }
}

/// The subtasks of one task, for those that name each other.
struct Siblings<'a> {
    task: usize,
    task_name: &'a str,
    /// In file order, so that suggestions are the same on every run.
    names: &'a [String],
    positions: HashMap<&'a str, usize>,
}

/// A subtask under construction.
#[derive(Clone, Debug)]
pub struct SubtaskBuilder {
    name: String,
    step: Step,
    after: Option<Vec<String>>,
    join: Join,
    bound: Option<Duration>,
}

impl SubtaskBuilder {
    /// Begins a subtask that follows the one added before it. It needs a [`wcet`](Self::wcet).
    pub fn new(name: impl Into<String>) -> Self {
        SubtaskBuilder { name: name.into(), step: Step::default(), after: None, join: Join::All, bound: None }
    }

    /// Its worst case.
    pub fn wcet(mut self, wcet: Work) -> Self {
        self.step.wcet = Some(wcet);
        self
    }

    /// What synthetic work takes; the worst case unless given.
    pub fn exec(mut self, exec: Execution) -> Self {
        self.step.exec = Some(exec);
        self
    }

    /// The node it runs on, by name; needed if the system has several.
    pub fn on(mut self, node: impl Into<String>) -> Self {
        self.step.node = Some(node.into());
        self
    }

    /// The scheduler of kind `lanes` in whose lanes it is, by name; needed if its node has several.
    pub fn in_lanes(mut self, scheduler: impl Into<String>) -> Self {
        self.step.lanes = Some(scheduler.into());
        self
    }

    /// The predecessors by name, instead of the subtask before it; none makes it a first subtask.
    pub fn after<Name: Into<String>>(mut self, predecessors: impl IntoIterator<Item = Name>) -> Self {
        self.after = Some(predecessors.into_iter().map(Into::into).collect());
        self
    }

    /// How many of the predecessors it waits for; all unless given.
    pub fn join(mut self, join: Join) -> Self {
        self.join = join;
        self
    }

    /// A bound on its response time, for the protocols whose releases depend on it.
    pub fn bound(mut self, bound: Duration) -> Self {
        self.bound = Some(bound);
        self
    }

    /// Adds an output.
    pub fn output(mut self, output: OutputBuilder) -> Self {
        self.step.outputs.push(output);
        self
    }

    /// Adds an input.
    pub fn input(mut self, input: InputBuilder) -> Self {
        self.step.inputs.push(input);
        self
    }

    /// Adds events that it pushes.
    pub fn event(mut self, event: PublicationBuilder) -> Self {
        self.step.events.push(event);
        self
    }

    /// Has each job take the next of these events when it begins, if one waits.
    pub fn subscription(mut self, subscription: SubscriptionBuilder) -> Self {
        self.step.subscription = Some(subscription);
        self
    }

    fn resolve(
        self,
        position: usize,
        siblings: &Siblings<'_>,
        (nodes, lanes): (&NodeNames<'_>, &LanesNames),
        violations: &mut Vec<Violation>,
    ) -> (Subtask, UnconnectedPorts) {
        let place = |key| Place::Subtask(siblings.task, position, key);
        let label = || match siblings.names.len() {
            1 if self.name == siblings.task_name => format!("task \"{}\"", self.name),
            _ => format!("subtask \"{}\" of task \"{}\"", self.name, siblings.task_name),
        };
        let node = nodes.find(self.step.node.as_deref()).unwrap_or_else(|(fault, remedy)| {
            violations.push(Violation::error(place("node"), format!("{} {fault}", label()), remedy));
            0
        });
        let lanes = self.step.lanes.as_deref().and_then(|name| {
            let refuse = |(fault, remedy)| {
                violations.push(Violation::error(place("lanes"), format!("{} {fault}", label()), remedy));
            };
            lanes.find(name).map_err(refuse).ok()
        });
        let after = match &self.after {
            None => position.checked_sub(1).into_iter().collect(),
            Some(names) => {
                let mut after = Vec::with_capacity(names.len());
                for name in names {
                    if let Some(before) = siblings.positions.get(name.as_str()) {
                        after.push(*before);
                        continue;
                    }
                    let message = format!("{} is after \"{name}\", which its task does not have", label());
                    let others = siblings.names.iter().map(String::as_str);
                    let others = others.filter(|other| *other != self.name);
                    let remedy = match siblings.names.len() {
                        1 => "leave \"after\" out; this is the only subtask".into(),
                        _ => known_words(name, others),
                    };
                    violations.push(Violation::error(place("after"), message, remedy));
                }
                after
            }
        };
        let wcet = self.step.wcet.unwrap_or(Work::ZERO);
        let exec = self.step.exec.unwrap_or(Execution::Constant(wcet));
        let outputs = self.step.outputs.into_iter().map(OutputBuilder::resolve).collect();
        let (join, bound, inputs, events) = (self.join, self.bound, Vec::new(), Vec::new());
        let (name, subscription) = (self.name, None);
        let subtask = Subtask {
            name,
            node,
            lanes,
            wcet,
            exec,
            after,
            join,
            bound,
            outputs,
            inputs,
            events,
            subscription,
        };
        let Step { inputs, events, subscription, .. } = self.step;
        (subtask, UnconnectedPorts { inputs, events, subscription })
    }
}
