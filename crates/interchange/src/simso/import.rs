//! A SimSo simulation as a description.

use super::chains::chains;
use super::document::{Simulation, TimeModel, parse, read};
use super::execution::from_normal;
use super::schedulers::{Counterpart, adopt, counterpart};
use super::task::{Kind, SimTask};
use crate::names::{Taken, is_valid, mended, shown};
use crate::priority::{FixedOrder, fixed_order};
use crate::reading::{Origins, Reading};
use crate::settings::{blank, task};
use crate::{Effect, Problems, Translated};
use std::collections::HashMap;
use talea_model::{CPU_LIMIT, Description, Execution, Join, Node, Overrun, Place, Strategy, Subtask, Task};
use talea_time::Duration;

/// Reads a SimSo file; see [`crate::import`].
///
/// # Errors
/// The first error of the XML, or all problems of its values.
pub fn import(source_name: &str, text: &str) -> Result<Translated<Description>, Problems> {
    let mut reading = Reading::new(source_name, text);
    let Some(document) = parse(&mut reading) else { return reading.reject() };
    let Some(simulation) = read(&document, &mut reading) else { return reading.reject() };
    if reading.has_errors() {
        return reading.reject();
    }
    let chains = chains(&simulation, &mut reading);
    if chains.is_empty() && !reading.has_errors() {
        let remedy = "add <task> elements with a period to <tasks>";
        reading.error(0..1, "the file has no task that is released by time", remedy);
    }
    if reading.has_errors() {
        return reading.reject();
    }
    let (description, origins) = describe(&simulation, &chains, &mut reading);
    reading.finish(description, &origins)
}

fn describe(
    simulation: &Simulation,
    chains: &[Vec<usize>],
    reading: &mut Reading<'_>,
) -> (Description, Origins) {
    let mut description = blank(reading.system_name());
    let mut origins = Origins::default();
    description.nodes.push(read_node(simulation, reading));
    description.overhead.switch = simulation.switch;
    origins.set(Place::Node(0, ""), simulation.processors_span.clone());
    let mut taken = Taken::default();
    for chain in chains {
        let index = description.tasks.len();
        origins.set(Place::Task(index, ""), simulation.tasks[chain[0]].span.clone());
        // Subtasks stand in the order of the file, whatever their order of execution.
        let mut positions = chain.clone();
        positions.sort_unstable();
        for (position, number) in positions.iter().enumerate() {
            origins.set(Place::Subtask(index, position, ""), simulation.tasks[*number].span.clone());
        }
        description.tasks.push(read_chain(simulation, chain, &positions, &mut taken, reading));
    }
    adopt_scheduler(simulation, chains, &mut description, reading);
    (description, origins)
}

fn read_node(simulation: &Simulation, reading: &mut Reading<'_>) -> Node {
    let count = simulation.processors;
    let span = simulation.processors_span.clone();
    if count == 0 {
        let what = "are missing; assumed one";
        reading.lose(Effect::Assumed, span, "the simulation", "processors", what);
    } else if count > usize::from(CPU_LIMIT) {
        let message = format!("the simulation has {count} processors, more than {CPU_LIMIT}");
        reading.error(span, message, "lower their number");
    } else if count > 1 {
        let what = "SimSo moves jobs between processors; here one processor at a time serves a lane";
        reading.lose(Effect::Approximated, span, "the simulation", "processors", what);
    }
    Node { name: "local".into(), cpus: (0..count.clamp(1, CPU_LIMIT.into()) as u16).collect() }
}

fn read_chain(
    simulation: &Simulation,
    chain: &[usize],
    positions: &[usize],
    taken: &mut Taken,
    reading: &mut Reading<'_>,
) -> Task {
    let tasks: Vec<&SimTask> = chain.iter().map(|number| &simulation.tasks[*number]).collect();
    let head = tasks[0];
    let in_file_order: Vec<&SimTask> = positions.iter().map(|number| &simulation.tasks[*number]).collect();
    let (name, names) = names_of(head, &in_file_order, taken, reading);
    let (period, phase) = arrivals(simulation, head, reading);
    let mut made = task(name, period);
    made.phase = phase;
    let mut deadlines = tasks.iter().map(|task| task.deadline);
    let sum = deadlines.try_fold(Duration::ZERO, |sum, deadline| sum.checked_add(deadline));
    made.deadline = sum.unwrap_or(Duration::MAX);
    if tasks.len() > 1 {
        let what = "counts from the task's own activation in SimSo; the deadlines of a chain add up to one";
        reading.lose(Effect::Approximated, head.span.clone(), &head.label, "deadline", what);
    }
    made.overrun = overrun_of(&tasks, &made, reading);
    let before: HashMap<usize, usize> = chain.windows(2).map(|pair| (pair[1], pair[0])).collect();
    for (name, number) in names.into_iter().zip(positions) {
        let after = before.get(number).map(|before| positions.partition_point(|other| other < before));
        let task = &simulation.tasks[*number];
        made.subtasks.push(Subtask {
            name,
            node: 0,
            lanes: None,
            wcet: task.wcet,
            exec: execution_of(simulation.model, task, reading),
            after: after.into_iter().collect(),
            join: Join::All,
            bound: None,
            outputs: Vec::new(),
            inputs: Vec::new(),
            events: Vec::new(),
            subscription: None,
        });
    }
    made
}

/// The period and the phase of a head.
fn arrivals(simulation: &Simulation, head: &SimTask, reading: &mut Reading<'_>) -> (Duration, Duration) {
    if head.kind == Kind::Periodic {
        return (head.period, head.phase);
    }
    let distances = head.dates.windows(2).map(|pair| pair[1] - pair[0]);
    let shortest = distances.filter(|distance| *distance > Duration::ZERO).min();
    let period = shortest.unwrap_or_else(|| simulation.duration.max(head.deadline));
    let what = format!(
        "is released at {} date(s); here every {period} from the first, the shortest distance of two",
        head.dates.len()
    );
    reading.lose(Effect::Approximated, head.span.clone(), &head.label, "list_activation_dates", what);
    (period, head.dates[0])
}

fn overrun_of(tasks: &[&SimTask], made: &Task, reading: &mut Reading<'_>) -> Overrun {
    let head = tasks[0];
    let mut lose = |what: &'static str| {
        reading.lose(Effect::Approximated, head.span.clone(), &head.label, "abort_on_miss", what);
    };
    if tasks.iter().any(|task| task.abort_on_miss != head.abort_on_miss) {
        lose("differs within a chain; that of its first task counts");
    }
    if !head.abort_on_miss {
        return Overrun::Queue;
    }
    if tasks.len() > 1 || made.deadline != made.period {
        lose("stops a job at its deadline; overrun = \"abort\" stops it at the next release");
    }
    Overrun::Abort
}

fn execution_of(model: TimeModel, task: &SimTask, reading: &mut Reading<'_>) -> Execution {
    if model == TimeModel::Worst {
        return Execution::Constant(task.wcet);
    }
    let exec = from_normal(task.acet, task.deviation, task.wcet);
    if !matches!(exec, Execution::Constant(_)) {
        let what = "is normally distributed; here uniformly with the same mean and deviation, up to the WCET";
        reading.lose(Effect::Approximated, task.span.clone(), &task.label, "ACET", what);
    }
    exec
}

/// The name of a task and of its subtasks; tasks called `TASK SUBTASK` say both.
fn names_of(
    head: &SimTask,
    in_file_order: &[&SimTask],
    taken: &mut Taken,
    reading: &mut Reading<'_>,
) -> (String, Vec<String>) {
    if in_file_order.len() > 1
        && let Some(names) = spaced(&head.name, in_file_order)
        && taken.take(&names.0)
    {
        return names;
    }
    let own = taken.unique(&mended(&head.name, "task"));
    note_renamed(head, &own, reading);
    if in_file_order.len() == 1 {
        return (own.clone(), vec![own]);
    }
    let mut inside = Taken::default();
    let mut names = Vec::new();
    for task in in_file_order {
        let name = inside.unique(&mended(&task.name, "subtask"));
        if task.id != head.id {
            note_renamed(task, &name, reading);
        }
        names.push(name);
    }
    (own, names)
}

fn note_renamed(task: &SimTask, name: &str, reading: &mut Reading<'_>) {
    if task.name != name {
        let what = format!("is called {} here; names are unique, of letters, digits, - and _", shown(name));
        reading.lose(Effect::Approximated, task.span.clone(), &task.label, "name", what);
    }
}

fn spaced(head: &str, tasks: &[&SimTask]) -> Option<(String, Vec<String>)> {
    let (name, _) = head.split_once(' ')?;
    let mut inside = Taken::default();
    let subtasks = tasks.iter().map(|task| {
        let subtask = task.name.strip_prefix(name)?.strip_prefix(' ')?;
        (is_valid(subtask) && inside.take(subtask)).then(|| subtask.to_owned())
    });
    let subtasks = subtasks.collect::<Option<_>>()?;
    is_valid(name).then(|| (name.to_owned(), subtasks))
}

/// Chooses the strategy that does what the scheduler does. Only `FP` reads priorities.
fn adopt_scheduler(
    simulation: &Simulation,
    chains: &[Vec<usize>],
    description: &mut Description,
    reading: &mut Reading<'_>,
) {
    let class = simulation.scheduler.as_ref().map(|(class, _)| counterpart(class));
    if class != Some(Some(Counterpart::FixedPriority)) {
        for task in simulation.tasks.iter().filter(|task| task.priority.is_some()) {
            let what = "is read by the scheduler FP only, and this is another one";
            reading.lose(Effect::Lost, task.span.clone(), &task.label, "priority", what);
        }
    }
    let Some((class, span)) = &simulation.scheduler else {
        let span = simulation.processors_span.clone();
        let what = "is missing; the default strategy stands in";
        reading.lose(Effect::Assumed, span, "the simulation", "sched", what);
        return;
    };
    let mut lose = |effect, what: String| reading.lose(effect, span.clone(), "the scheduler", "class", what);
    match counterpart(class) {
        Some(Counterpart::Strategy(strategy)) => adopt(strategy, description),
        Some(Counterpart::FixedPriority) => adopt_priorities(simulation, chains, description, reading),
        None => lose(
            Effect::Approximated,
            format!("no strategy does what {} does; the default one stands in", shown(class)),
        ),
    }
}

fn adopt_priorities(
    simulation: &Simulation,
    chains: &[Vec<usize>],
    description: &mut Description,
    reading: &mut Reading<'_>,
) {
    let mut priorities = Vec::new();
    for (chain, task) in chains.iter().zip(&description.tasks) {
        let mut of_chain = Vec::new();
        for number in chain {
            let task = &simulation.tasks[*number];
            if task.priority.is_none() {
                let what = "is missing, and the scheduler FP asks for it; assumed 0";
                reading.lose(Effect::Assumed, task.span.clone(), &task.label, "priority", what);
            }
            of_chain.push(task.priority.unwrap_or(0));
        }
        priorities.push((task.period, of_chain));
    }
    let mut each = |effect, what: &str| {
        for chain in chains {
            let head = &simulation.tasks[chain[0]];
            reading.lose(effect, head.span.clone(), &head.label, "priority", what.to_owned());
        }
    };
    match fixed_order(&priorities) {
        FixedOrder::RateMonotonic => adopt(Strategy::Rms, description),
        FixedOrder::Criticality(criticalities) => {
            adopt(Strategy::Criticality, description);
            for (task, criticality) in description.tasks.iter_mut().zip(criticalities) {
                task.criticality = criticality;
            }
            each(
                Effect::Approximated,
                "the strategy \"criticality\" keeps the order of the priorities; high and very-high mean hard \
                 deadlines",
            );
        }
        FixedOrder::Unknown { priorities } => each(
            Effect::Lost,
            &format!(
                "no strategy keeps this order of {priorities} priorities; the default one stands in, \
                 \"criticality\" has five levels"
            ),
        ),
    }
}
