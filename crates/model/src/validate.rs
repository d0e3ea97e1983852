//! The rules every system satisfies, checked on plain values, so that systems from files and systems
//! from the builder obey the same ones.

mod apart;
mod chain;
mod channel;
mod criticality;
mod graph;
mod hierarchy;
mod inheritance;
mod link;
mod plan;
mod ports;
mod shape;
mod times;
mod trigger;

pub use apart::{MESSAGE_BYTES, VALUE_HEADER_BYTES, message_bytes};
pub(crate) use graph::topological_ranks;
pub use hierarchy::HIERARCHY_LIMIT;
pub use times::TIME_LIMIT;

use self::plan::Missing;
use crate::channel::SubscriptionOwner;
use crate::composition::Scheduling;
use crate::description::{Description, Node, Overrun, Strategy, Subtask, Task};
use crate::operation::{OperationAddress, OperationId};
use crate::rate::periods;
use crate::trigger::Communication;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// How bad a violated rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The system has no meaning; nothing runs.
    Error,
    /// Allowed, but probably not meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// The item of a description that a violation is about, so that a reader of a file finds the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The description as a whole.
    Whole,
    /// A key of the `[system]` table.
    System(&'static str),
    /// A key of the `[overhead]` table.
    Overhead(&'static str),
    /// A node by index, and the key.
    Node(usize, &'static str),
    /// A link by index, and the key.
    Link(usize, &'static str),
    /// A task by index, and the key.
    Task(usize, &'static str),
    /// A subtask by task and subtask index, and the key.
    Subtask(usize, usize, &'static str),
    /// An output by task, subtask and its own index, and the key.
    Output(usize, usize, usize, &'static str),
    /// An input by task, subtask and its own index, and the key.
    Input(usize, usize, usize, &'static str),
    /// The trigger of a task by the task's index, and the key in the trigger's table.
    Trigger(usize, &'static str),
    /// A channel by index, and the key.
    Channel(usize, &'static str),
    /// A publication by task, subtask and its own index, and the key.
    Publication(usize, usize, usize, &'static str),
    /// A subscription by whose it is, and the key in its table.
    Subscription(SubscriptionOwner, &'static str),
    /// An entry of `priority_by` in a subscription by whose that is and its own index, and the key.
    PriorityBy(SubscriptionOwner, usize, &'static str),
    /// An entry of `timeout_by` in a subscription by whose that is and its own index, and the key.
    TimeoutBy(SubscriptionOwner, usize, &'static str),
    /// A chain by index, and the key.
    Chain(usize, &'static str),
    /// A scheduler by index, and the key.
    Scheduler(usize, &'static str),
    /// An entry of a scheduler's plan by the indices of both.
    PlanEntry(usize, usize),
    /// An entry of a scheduler's `under` by the indices of both, and the key.
    SchedulerUnder(usize, usize, &'static str),
    /// A thread by index, and the key.
    Thread(usize, &'static str),
    /// An entry of a thread's `under` by the indices of both, and the key.
    ThreadUnder(usize, usize, &'static str),
}

impl Place {
    /// The task that it belongs to, by index.
    pub fn task(self) -> Option<usize> {
        match self {
            Place::Task(task, _)
            | Place::Subtask(task, _, _)
            | Place::Output(task, _, _, _)
            | Place::Input(task, _, _, _)
            | Place::Publication(task, _, _, _)
            | Place::Trigger(task, _) => Some(task),
            Place::Subscription(owner, _)
            | Place::PriorityBy(owner, _, _)
            | Place::TimeoutBy(owner, _, _) => Some(owner.task()),
            _ => None,
        }
    }
}

/// The places of names that were found to stand for nothing, so that no more is said of them.
type Unresolved = HashSet<Place>;

/// A rule that a description breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Error or warning.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// Another item that has to do with it, such as the first of two items of one name.
    pub related: Option<Place>,
    /// What is wrong, naming the item.
    pub message: String,
    /// What to write instead.
    pub remedy: String,
}

impl Violation {
    pub(crate) fn error(place: Place, message: String, remedy: impl Into<String>) -> Self {
        Violation { severity: Severity::Error, place, related: None, message, remedy: remedy.into() }
    }

    pub(crate) fn warning(place: Place, message: String, remedy: impl Into<String>) -> Self {
        Violation { severity: Severity::Warning, ..Self::error(place, message, remedy) }
    }
}

/// `error: message (remedy)` on one line.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.severity, self.message, self.remedy)
    }
}

/// The most nodes a system may have.
pub const NODE_LIMIT: usize = 1024;

/// One more than the greatest processor number a node may name.
pub const CPU_LIMIT: u16 = 1024;

/// The most bytes a name may have; names become track names and fields of tables.
pub const NAME_BYTES_LIMIT: usize = 64;

/// Every violated rule, in file order.
pub fn violations(description: &Description) -> Vec<Violation> {
    violations_besides(Vec::new(), description)
}

/// As [`violations`], of a system that runs: threads may have ended, the last one and those whom a plan has entries for.
pub(crate) fn violations_of_running(description: &Description) -> Vec<Violation> {
    let mut found = Vec::new();
    check_contents(description, Missing::Departed, &mut found);
    found
}

/// As [`violations`], together with those that were found in making the description.
pub(crate) fn violations_besides(mut found: Vec<Violation>, description: &Description) -> Vec<Violation> {
    if description.tasks.is_empty() && description.threads.is_empty() {
        found.push(emptiness(description));
    }
    check_contents(description, Missing::Nobody, &mut found);
    found
}

fn emptiness(description: &Description) -> Violation {
    let (message, remedy) = match description.schedulers.is_empty() {
        true => ("the system has no task", "add a [[task]] with a name, a period and a wcet"),
        false => (
            "the schedulers have nothing to schedule",
            "add a [[thread]] under one of them, or a [[task]] where one is of kind lanes",
        ),
    };
    Violation::error(Place::Whole, message.into(), remedy)
}

fn check_contents(description: &Description, missing: Missing, found: &mut Vec<Violation>) {
    let unresolved: Unresolved = found.iter().map(|violation| violation.place).collect();
    check_name("system", &description.name, Spelling::OneWord, Place::System("name"), found);
    times::check_system(description, found);
    check_nodes(&description.nodes, found);
    link::check(description, found);
    check_unique("task", "task", description.tasks.iter().map(|task| task.name.as_str()), found, |task| {
        Place::Task(task, "name")
    });
    check_operation_count(&description.tasks, found);
    for (index, task) in description.tasks.iter().enumerate() {
        check_task(description, index, task, found);
    }
    ports::check(description, &unresolved, found);
    trigger::check(description, &unresolved, found);
    inheritance::check(&description.tasks, &unresolved, found);
    let supplies = channel::check(description, &unresolved, found);
    criticality::check(description, &unresolved, supplies, found);
    chain::check(description, &unresolved, found);
    hierarchy::check(description, missing, found);
    if description.strategy != Strategy::DEFAULT {
        found.extend(misplaced_strategy(description));
    }
    // With errors the load is not known: a task may be on the wrong node.
    if found.iter().all(|violation| violation.severity == Severity::Warning) {
        check_load(description, found);
        apart::check(description, found);
    }
    found.sort_by_key(|violation| file_order(violation.place));
}

/// A strategy sorts tasks into lanes, which no node of this description has.
pub(crate) fn misplaced_strategy(description: &Description) -> Option<Violation> {
    let violation = Violation::error(
        Place::System("strategy"),
        "a strategy sorts tasks into lanes, but [[scheduler]] tables say who runs next on every node".into(),
        "remove it, or add a scheduler of kind \"lanes\" for the tasks",
    );
    (!description.schedulers.is_empty() && !description.has_lanes()).then_some(violation)
}

/// The order in which [`crate::System::to_toml`] writes the items.
fn file_order(place: Place) -> (u8, usize, usize) {
    match place {
        Place::Whole => (0, 0, 0),
        Place::System(_) => (1, 0, 0),
        Place::Overhead(_) => (2, 0, 0),
        Place::Node(node, _) => (3, node, 0),
        Place::Link(link, _) => (4, link, 0),
        Place::Channel(channel, _) => (5, channel, 0),
        Place::Task(task, _) | Place::Trigger(task, _) => (6, task, 0),
        Place::Subscription(owner, _) | Place::PriorityBy(owner, _, _) | Place::TimeoutBy(owner, _, _) => {
            match owner {
                SubscriptionOwner::Task(task) => (6, task, 0),
                SubscriptionOwner::Operation(OperationAddress { task, subtask }) => (6, task, subtask + 1),
            }
        }
        Place::Subtask(task, subtask, _)
        | Place::Output(task, subtask, _, _)
        | Place::Input(task, subtask, _, _)
        | Place::Publication(task, subtask, _, _) => (6, task, subtask + 1),
        Place::Chain(chain, _) => (7, chain, 0),
        Place::Scheduler(scheduler, _) => (8, scheduler, 0),
        Place::PlanEntry(scheduler, _) => (8, scheduler, 0),
        Place::SchedulerUnder(scheduler, edge, _) => (8, scheduler, edge + 1),
        Place::Thread(thread, _) => (9, thread, 0),
        Place::ThreadUnder(thread, edge, _) => (9, thread, edge + 1),
    }
}

fn check_nodes(nodes: &[Node], found: &mut Vec<Violation>) {
    if nodes.is_empty() {
        found.push(Violation::error(
            Place::Whole,
            "the system has no node".into(),
            "add a [[node]] with a name and its cpus",
        ));
    }
    if nodes.len() > NODE_LIMIT {
        found.push(Violation::error(
            Place::Node(NODE_LIMIT, "name"),
            format!("the system has {} nodes, more than {NODE_LIMIT}", nodes.len()),
            "describe it as several systems",
        ));
    }
    check_unique("node", "node", nodes.iter().map(|node| node.name.as_str()), found, |node| {
        Place::Node(node, "name")
    });
    let mut owners: HashMap<u16, usize> = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        check_name("node", &node.name, Spelling::OneWord, Place::Node(index, "name"), found);
        check_cpus(index, node, found);
        for &cpu in &node.cpus {
            let owner = *owners.entry(cpu).or_insert(index);
            if owner != index {
                found.push(Violation {
                    related: Some(Place::Node(owner, "cpus")),
                    ..Violation::warning(
                        Place::Node(index, "cpus"),
                        format!("nodes \"{}\" and \"{}\" both have cpu {cpu}", nodes[owner].name, node.name),
                        "give each node its own, or they compete for it when they run on this machine",
                    )
                });
            }
        }
    }
}

fn check_cpus(index: usize, node: &Node, found: &mut Vec<Violation>) {
    let place = Place::Node(index, "cpus");
    if node.cpus.is_empty() {
        found.push(Violation::error(
            place,
            format!("node \"{}\" has no cpu", node.name),
            "name at least one, such as cpus = [0]",
        ));
    }
    let mut sorted = node.cpus.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        found.push(Violation::error(
            place,
            format!("node \"{}\" has cpu {} twice", node.name, pair[0]),
            "list each processor once",
        ));
    }
    if let Some(cpu) = sorted.last().filter(|cpu| **cpu >= CPU_LIMIT) {
        found.push(Violation::error(
            place,
            format!("node \"{}\" has cpu {cpu}, beyond the last possible number", node.name),
            format!("use the numbers 0 to {}", CPU_LIMIT - 1),
        ));
    }
}

/// What is merged with the instance before has to lead to the same job, and that job has to take what came later.
fn check_merge(index: usize, task: &Task, found: &mut Vec<Violation>) {
    let mut refuse = |related, message, remedy| {
        found.push(Violation { related, ..Violation::error(Place::Task(index, "overrun"), message, remedy) });
    };
    let name = &task.name;
    let firsts = task.subtasks.iter().filter(|subtask| subtask.after.is_empty()).count();
    if firsts > 1 {
        let message = format!(
            "task \"{name}\" has overrun = \"merge\" and begins with {firsts} subtasks, of which some may have begun when others have not"
        );
        refuse(None, message, "let one subtask begin, and the others come after it");
    }
    if task.communication == Communication::Let {
        let message = format!(
            "task \"{name}\" has overrun = \"merge\" and logical execution time, so that a job takes nothing that is newer than its own arrival"
        );
        let place = Some(Place::Task(index, "communication"));
        refuse(place, message, "write communication = \"implicit\", or another overrun");
    }
}

fn check_task(description: &Description, index: usize, task: &Task, found: &mut Vec<Violation>) {
    check_name("task", &task.name, Spelling::OneWord, Place::Task(index, "name"), found);
    times::check_task(index, task, found);
    if task.subtasks.is_empty() {
        found.push(Violation::error(
            Place::Task(index, "subtask"),
            format!("task \"{}\" does nothing", task.name),
            "give it a wcet, or add [[task.subtask]] tables",
        ));
    }
    if task.overrun == Overrun::Merge && !task.can_merge() {
        check_merge(index, task, found);
    }
    let owner = format!("task \"{}\": subtask", task.name);
    check_unique(
        "subtask",
        &owner,
        task.subtasks.iter().map(|subtask| subtask.name.as_str()),
        found,
        |subtask| Place::Subtask(index, subtask, "name"),
    );
    for (position, subtask) in task.subtasks.iter().enumerate() {
        if !is_alone(task, subtask) {
            check_name(
                "subtask",
                &subtask.name,
                Spelling::OneWord,
                Place::Subtask(index, position, "name"),
                found,
            );
        }
        if subtask.node >= description.nodes.len() {
            found.push(Violation::error(
                Place::Subtask(index, position, "node"),
                format!("{} is on node number {}, which does not exist", label(task, subtask), subtask.node),
                format!("the system has {} nodes, counted from 0", description.nodes.len()),
            ));
        }
        times::check_subtask(index, position, task, found);
    }
    graph::check(index, task, found);
}

/// How messages call a subtask: a task of one subtask of its own name is just the task.
pub(crate) fn label(task: &Task, subtask: &Subtask) -> String {
    if is_alone(task, subtask) {
        format!("task \"{}\"", task.name)
    } else {
        format!("subtask \"{}\" of task \"{}\"", subtask.name, task.name)
    }
}

/// Whether the subtask is all of a task that has its wcet directly.
fn is_alone(task: &Task, subtask: &Subtask) -> bool {
    task.subtasks.len() == 1 && task.name == subtask.name
}

/// What a name may consist of.
#[derive(Clone, Copy, PartialEq)]
enum Spelling {
    OneWord,
    /// Words with one space between each two.
    Words,
}

fn check_name(what: &str, name: &str, spelling: Spelling, place: Place, found: &mut Vec<Violation>) {
    let has_gap = spelling == Spelling::Words && name.split(' ').any(str::is_empty);
    let is_stray = |c: &char| match c {
        '-' | '_' => false,
        ' ' => spelling == Spelling::OneWord,
        c => !c.is_alphanumeric(),
    };
    let stray = name.chars().find(is_stray);
    let (message, remedy) = if name.is_empty() {
        let article = if what.starts_with(['i', 'o']) { "an" } else { "a" };
        (
            format!("{article} {what} has an empty name"),
            "give it a name of letters, digits, - and _".to_owned(),
        )
    } else if let Some(stray) = stray {
        let mended: String = name.chars().map(|c| if is_stray(&c) { '-' } else { c }).collect();
        (
            format!("{what} name {name:?} contains {stray:?}"),
            format!("names consist of letters, digits, - and _; write \"{mended}\""),
        )
    } else if has_gap {
        let words: Vec<&str> = name.split_whitespace().collect();
        (
            format!("{what} name {name:?} has a space too many"),
            format!("words have one space between them; write \"{}\"", words.join(" ")),
        )
    } else if name.len() > NAME_BYTES_LIMIT {
        (
            format!("{what} name \"{name}\" has {} bytes", name.len()),
            format!("a name has at most {NAME_BYTES_LIMIT}"),
        )
    } else {
        return;
    };
    found.push(Violation::error(place, message, remedy));
}

fn check_unique<'a>(
    what: &str,
    label: &str,
    names: impl Iterator<Item = &'a str>,
    found: &mut Vec<Violation>,
    place: impl Fn(usize) -> Place,
) {
    let mut first_use: HashMap<&str, usize> = HashMap::new();
    for (index, name) in names.enumerate() {
        let first = *first_use.entry(name).or_insert(index);
        if first != index {
            found.push(Violation {
                related: Some(place(first)),
                ..Violation::error(
                    place(index),
                    format!("{label} \"{name}\" exists already"),
                    format!("give each {what} its own name"),
                )
            });
        }
    }
}

fn check_operation_count(tasks: &[Task], found: &mut Vec<Violation>) {
    let mut count = 0;
    for (index, task) in tasks.iter().enumerate() {
        count += task.subtasks.len();
        if count > OperationId::LIMIT {
            found.push(Violation::error(
                Place::Task(index, "name"),
                format!(
                    "with task \"{}\" the system has more than {} subtasks",
                    task.name,
                    OperationId::LIMIT
                ),
                "describe it as several systems",
            ));
            return;
        }
    }
}

/// Overload is allowed on purpose, because what a strategy does in overload is what distinguishes it.
fn check_load(description: &Description, found: &mut Vec<Violation>) {
    let mut load = vec![0.0; description.nodes.len()];
    let mut used = vec![false; description.nodes.len()];
    for (task, period) in description.tasks.iter().zip(periods(&description.tasks)) {
        let period = period.unwrap_or(task.period);
        for subtask in &task.subtasks {
            if subtask.node >= load.len() {
                continue;
            }
            used[subtask.node] = true;
            if period.as_nanos() > 0 {
                load[subtask.node] += subtask.wcet.as_nanos() as f64 / period.as_nanos() as f64;
            }
        }
    }
    for (index, node) in description.nodes.iter().enumerate() {
        let place = Place::Node(index, "cpus");
        let processors = node.cpus.len() as f64;
        // The sum of shares such as 1/3 is not exact.
        if load[index] > processors + 1e-9 {
            found.push(Violation::warning(
                place,
                format!(
                    "node \"{}\" is asked for {:.1} % of a processor and has {:.0} %",
                    node.name,
                    load[index] * 100.0,
                    processors * 100.0
                ),
                "lower a wcet, lengthen a period or add a cpu, unless the overload is meant",
            ));
        }
        let is_scheduled = description.scheduling(index) == Scheduling::Hierarchy;
        if !used[index] && !is_scheduled {
            found.push(Violation::warning(
                Place::Node(index, "name"),
                format!("node \"{}\" has nothing to do", node.name),
                "place a subtask on it, or remove it",
            ));
        }
    }
}

#[cfg(test)]
mod tests;
