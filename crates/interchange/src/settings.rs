//! What a description says about the system as a whole, which no foreign format says in the same words.

use crate::{Effect, Format, Loss, Origin};
use std::borrow::Cow;
use talea_model::{Description, Place, Route, Separation, Subtask, System, Task, TaskBuilder, Trigger};
use talea_time::{Duration, Work};

/// A description with the model's defaults, without nodes and tasks.
pub(crate) fn blank(name: String) -> Description {
    Description { name, nodes: Vec::new(), tasks: Vec::new(), ..defaults() }
}

/// A task with the model's defaults, without subtasks.
pub(crate) fn task(name: String, period: Duration) -> Task {
    let Description { mut tasks, .. } = defaults();
    Task { name, period, deadline: period, subtasks: Vec::new(), ..tasks.swap_remove(0) }
}

/// The model's own defaults, so that they are written down once.
fn defaults() -> Description {
    let period = Duration::from_secs(1);
    let task = TaskBuilder::new("default", period).wcet(Work::from_millis(1));
    let system = System::builder("default").task(task).build().expect("the defaults break no rule");
    (*system).clone()
}

/// How losses call a task.
pub(crate) fn task_label(name: &str) -> String {
    format!("task \"{name}\"")
}

/// How losses call a subtask: one that is all of its task is the task.
pub(crate) fn subtask_label(task: &Task, subtask: &Subtask) -> String {
    if task.subtasks.len() == 1 {
        task_label(&task.name)
    } else {
        format!("subtask \"{}\" of task \"{}\"", subtask.name, task.name)
    }
}

/// The losses of one export.
pub(crate) struct Losses {
    format: Format,
    default: Task,
    pub list: Vec<Loss>,
}

impl Losses {
    pub fn new(format: Format) -> Self {
        let default = task(String::new(), Duration::ZERO);
        Losses { format, default, list: Vec::new() }
    }

    pub fn add(&mut self, effect: Effect, place: Place, subject: &str, what: impl Into<Cow<'static, str>>) {
        let key = match place {
            Place::Whole => "",
            Place::PlanEntry(..) => "plan",
            Place::System(key)
            | Place::Overhead(key)
            | Place::Node(_, key)
            | Place::Link(_, key)
            | Place::Task(_, key)
            | Place::Subtask(_, _, key)
            | Place::Output(_, _, _, key)
            | Place::Input(_, _, _, key)
            | Place::Trigger(_, key)
            | Place::Channel(_, key)
            | Place::Publication(_, _, _, key)
            | Place::Subscription(_, key)
            | Place::PriorityBy(_, _, key)
            | Place::TimeoutBy(_, _, key)
            | Place::Chain(_, key)
            | Place::Scheduler(_, key)
            | Place::SchedulerUnder(_, _, key)
            | Place::Thread(_, key)
            | Place::ThreadUnder(_, _, key) => key,
        };
        self.list.push(Loss {
            effect,
            origin: Origin::Model(place),
            subject: subject.into(),
            key: key.into(),
            what: what.into(),
        });
    }

    /// A value that the format has no word for.
    pub fn unsayable(&mut self, place: Place, subject: &str, value: impl std::fmt::Display) {
        self.add(Effect::Lost, place, subject, format!("{} has no word for it ({value})", self.name()));
    }

    fn name(&self) -> &'static str {
        match self.format {
            Format::RtApp => "rt-app",
            Format::SimSo => "SimSo",
            Format::Csv => "a table of tasks",
        }
    }

    /// The settings of `system` that differ from those `expected` after the way back.
    pub fn compare_settings(&mut self, system: &Description, expected: &Description) {
        let whole = "the system";
        let pairs = [
            ("strategy", system.strategy.keyword(), expected.strategy.keyword()),
            ("lane_dispatch", system.lane_dispatch.keyword(), expected.lane_dispatch.keyword()),
            ("laxity", system.laxity.keyword(), expected.laxity.keyword()),
            ("late", system.late.keyword(), expected.late.keyword()),
        ];
        for (key, value, _) in pairs.into_iter().filter(|(_, value, expected)| value != expected) {
            self.unsayable(Place::System(key), whole, value);
        }
        if system.seed != expected.seed {
            self.unsayable(Place::System("seed"), whole, system.seed);
        }
        for (index, link) in system.links.iter().enumerate() {
            let Route { delay, jitter, loss } = link.route;
            let value = format!("delay {delay}, jitter {jitter}, loss {loss}");
            self.unsayable(Place::Link(index, "link"), "a link between nodes", value);
        }
        let costs = system.overhead.costs().zip(expected.overhead.costs());
        for ((key, value), _) in costs.filter(|(value, expected)| value != expected) {
            self.unsayable(Place::Overhead(key), "the overhead", value);
        }
    }

    /// When subtasks with predecessors are released, where it is not greedily and after all of them.
    pub fn compare_releases(&mut self, system: &Description) {
        for (index, task) in system.tasks.iter().enumerate() {
            let has_successors = task.subtasks.iter().any(|subtask| !subtask.after.is_empty());
            if task.sync != self.default.sync && has_successors {
                self.unsayable(Place::Task(index, "sync"), &task_label(&task.name), task.sync);
            }
            for (position, subtask) in task.subtasks.iter().enumerate() {
                let subject = subtask_label(task, subtask);
                if !subtask.join.waits_for_all(subtask.after.len()) {
                    self.unsayable(Place::Subtask(index, position, "join"), &subject, subtask.join);
                }
                if let Some(bound) = subtask.bound {
                    self.unsayable(Place::Subtask(index, position, "bound"), &subject, bound);
                }
            }
        }
    }

    /// What operations exchange, what releases tasks in place of periods, and chains, of which no format knows anything.
    pub fn compare_data(&mut self, system: &System) {
        for (index, task) in system.tasks.iter().enumerate() {
            let subject = task_label(&task.name);
            if let Some(trigger) = &task.trigger {
                let by = match (trigger, system.trigger_output(index)) {
                    (Trigger::Output { .. }, Some(output)) => {
                        format!("values of {}", system.outputs()[output.index()].name)
                    }
                    (Trigger::Events(subscription), _) => {
                        format!("events of channel {}", system.channels[subscription.channel].name)
                    }
                    _ => "something outside".into(),
                };
                let what = format!("it is released every {}, not by {by}", task.period);
                let key = if matches!(trigger, Trigger::Events(_)) { "subscription" } else { "trigger" };
                self.add(Effect::Approximated, Place::Task(index, key), &subject, what);
            }
            if let Some(Separation { burst, excess, .. }) = task.separation {
                let value = format!("burst {burst}, excess {excess}");
                self.unsayable(Place::Task(index, "separation"), &subject, value);
            }
            if task.communication != self.default.communication {
                let place = Place::Task(index, "communication");
                self.unsayable(place, &subject, task.communication);
            }
            for (position, subtask) in task.subtasks.iter().enumerate() {
                let subject = subtask_label(task, subtask);
                for (number, output) in subtask.outputs.iter().enumerate() {
                    self.unsayable(Place::Output(index, position, number, "outputs"), &subject, &output.name);
                }
                for (number, input) in subtask.inputs.iter().enumerate() {
                    self.unsayable(Place::Input(index, position, number, "inputs"), &subject, &input.name);
                }
                for (number, event) in subtask.events.iter().enumerate() {
                    let place = Place::Publication(index, position, number, "events");
                    self.unsayable(place, &subject, &event.event_type);
                }
                if let Some(subscription) = &subtask.subscription {
                    let channel = &system.channels[subscription.channel].name;
                    let place = Place::Subtask(index, position, "subscription");
                    self.unsayable(place, &subject, format!("events of channel {channel}"));
                }
            }
        }
        for (index, chain) in system.chains.iter().enumerate() {
            let subject = format!("chain \"{}\"", chain.name);
            self.add(Effect::Lost, Place::Chain(index, "name"), &subject, "only tasks are written");
        }
    }

    /// Schedulers and threads, of which no format knows anything.
    pub fn compare_hierarchies(&mut self, system: &Description) {
        for (index, scheduler) in system.schedulers.iter().enumerate() {
            let subject = format!("scheduler \"{}\"", scheduler.name);
            self.unsayable(Place::Scheduler(index, "kind"), &subject, scheduler.kind);
        }
        for (index, task) in system.tasks.iter().enumerate() {
            for (position, subtask) in task.subtasks.iter().enumerate() {
                let Some(lanes) = subtask.lanes.and_then(|lanes| system.schedulers.get(lanes)) else {
                    continue;
                };
                let subject = subtask_label(task, subtask);
                self.unsayable(Place::Subtask(index, position, "lanes"), &subject, &lanes.name);
            }
        }
        for (index, thread) in system.threads.iter().enumerate() {
            let subject = format!("thread \"{}\"", thread.name);
            self.add(Effect::Lost, Place::Thread(index, "name"), &subject, "only tasks are written");
        }
    }

    /// The criticality of a task, where it is not the default.
    pub fn compare_criticality(&mut self, index: usize, task: &Task) {
        if task.criticality != self.default.criticality {
            let place = Place::Task(index, "criticality");
            self.unsayable(place, &task_label(&task.name), task.criticality);
        }
    }

    /// The importance of a task, where it is not the default.
    pub fn compare_importance(&mut self, index: usize, task: &Task) {
        if task.importance != self.default.importance {
            self.unsayable(Place::Task(index, "importance"), &task_label(&task.name), task.importance);
        }
    }

    /// The jitter of a task, if it has one.
    pub fn compare_jitter(&mut self, index: usize, task: &Task) {
        if task.jitter != Duration::ZERO {
            let what = format!("jobs are released when they arrive, not up to {} later", task.jitter);
            self.add(Effect::Lost, Place::Task(index, "jitter"), &task_label(&task.name), what);
        }
    }
}
