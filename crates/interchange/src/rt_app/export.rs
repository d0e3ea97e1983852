//! A system as a use case of rt-app.
//!
//! First the description is reduced to what rt-app can say, which is where everything is lost; then it is
//! written as it stands.

use super::nodes::{ONLY, name_of};
use super::writer::write;
use crate::priority::levels;
use crate::settings::{Losses, blank, subtask_label, task_label};
use crate::{Effect, Format, Translated};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use talea_model::{
    Description, Execution, LaneDispatch, Late, Overrun, Place, Strategy, Subtask, System, Task,
};
use talea_time::{Duration, Work};

/// The longest execution-time list that is written out, a round for each entry.
const ROUNDS: usize = 10_000;

/// How many rounds of all threads are written out.
const ROUNDS_OF_ALL: usize = 1 << 18;

/// The priorities below that of the threads that do nothing but resume others.
pub(super) const PRIORITIES: usize = 98;

/// Writes a system for rt-app; see [`crate::export`].
pub fn export(system: &System) -> Translated<String> {
    let mut losses = Losses::new(Format::RtApp);
    let mut reduced: Description = (**system).clone();
    let mut rounds = ROUNDS_OF_ALL;
    reduce_nodes(system, &mut losses);
    for (index, task) in reduced.tasks.iter_mut().enumerate() {
        reduce_task(index, task, system.strategy, &mut losses);
        for position in 0..task.subtasks.len() {
            reduce_subtask(system, index, position, task, &mut rounds, &mut losses);
        }
    }
    reduce_settings(&reduced, &mut losses);
    Translated { value: write(&reduced), losses: losses.list }
}

/// A time as rt-app counts it: whole microseconds of 31 bits.
fn microseconds(ns: i64, least: i64) -> i64 {
    let rounded = ns / 1_000 + i64::from(ns % 1_000 >= 500);
    rounded.clamp(least, i64::from(i32::MAX)) * 1_000
}

/// What is said of a time that is not what it was.
fn rounded_to(time: Duration) -> String {
    format!("becomes {time}; rt-app counts whole microseconds of 31 bits")
}

fn reduce_task(index: usize, task: &mut Task, strategy: Strategy, losses: &mut Losses) {
    let subject = task_label(&task.name);
    losses.compare_jitter(index, task);
    if task.overrun != Overrun::Queue {
        let what = format!("a late thread of rt-app goes on with its next job ({})", task.overrun);
        losses.add(Effect::Lost, Place::Task(index, "overrun"), &subject, what);
    }
    for (key, time, least) in
        [("period", &mut task.period, 1), ("deadline", &mut task.deadline, 1), ("phase", &mut task.phase, 0)]
    {
        let rounded = Duration::from_nanos(microseconds(time.as_nanos(), least));
        if rounded != *time {
            *time = rounded;
            losses.add(Effect::Approximated, Place::Task(index, key), &subject, rounded_to(rounded));
        }
    }
    if strategy == Strategy::Edf && task.deadline > task.period {
        task.deadline = task.period;
        let what = format!("becomes {}, the period; SCHED_DEADLINE allows no longer one", task.period);
        losses.add(Effect::Approximated, Place::Task(index, "deadline"), &subject, what);
    }
}

fn reduce_subtask(
    system: &System,
    index: usize,
    position: usize,
    task: &mut Task,
    rounds: &mut usize,
    losses: &mut Losses,
) {
    let subject = subtask_label(task, &task.subtasks[position]);
    let subtask = &mut task.subtasks[position];
    let place = |key| Place::Subtask(index, position, key);
    if subtask.after.len() > 1 {
        let operations = system.operations_of(index);
        let last = subtask.after.iter().copied().max_by_key(|before| operations[*before].topological_rank);
        subtask.after = last.into_iter().collect();
        let what = "a thread is resumed by one other; of the predecessors it follows the last one";
        losses.add(Effect::Lost, place("after"), &subject, what);
    }
    let wcet = Work::from_nanos(microseconds(subtask.wcet.as_nanos(), 1));
    if wcet != subtask.wcet {
        losses.add(Effect::Approximated, place("wcet"), &subject, rounded_to(wcet.at_full_speed()));
        subtask.wcet = wcet;
    }
    if let Some(what) = reduce_execution(subtask, rounds) {
        losses.add(Effect::Approximated, place("exec"), &subject, what);
    }
}

/// Makes the execution times sayable; what is said of them if they are not what they were.
fn reduce_execution(subtask: &mut Subtask, rounds: &mut usize) -> Option<String> {
    let whole = |work: &Work| Work::from_nanos(microseconds(work.as_nanos(), 0));
    let (reduced, what) = match &subtask.exec {
        Execution::Constant(work) => {
            (Execution::Constant(whole(work)), rounded_to(whole(work).at_full_speed()))
        }
        Execution::Uniform(low, high) => {
            let mean = whole(&mean_of(&[*low, *high]));
            let what = format!("is uniform from {low} to {high}; a thread runs for the mean, {mean}");
            (Execution::Constant(mean), what)
        }
        Execution::List(works) if works.len() > ROUNDS.min(*rounds) => {
            let mean = whole(&mean_of(works));
            let what = format!(
                "has {} entries, too many to write out; a thread runs for the mean, {mean}",
                works.len()
            );
            (Execution::Constant(mean), what)
        }
        Execution::List(works) => {
            *rounds -= works.len();
            let rounded: Arc<[Work]> = works.iter().map(whole).collect();
            (Execution::List(rounded), "is rounded; rt-app counts whole microseconds of 31 bits".into())
        }
    };
    let changed = reduced != subtask.exec;
    subtask.exec = reduced;
    changed.then_some(what)
}

fn mean_of(works: &[Work]) -> Work {
    let sum: i128 = works.iter().map(|work| i128::from(work.as_nanos())).sum();
    Work::from_nanos((sum / works.len() as i128) as i64)
}

/// Nodes are known by the processors of their threads only.
fn reduce_nodes(system: &System, losses: &mut Losses) {
    let mut used: Vec<usize> = Vec::new();
    for subtask in system.tasks.iter().flat_map(|task| &task.subtasks) {
        if !used.contains(&subtask.node) {
            used.push(subtask.node);
        }
    }
    let set = |node: usize| system.nodes[node].cpus.iter().copied().collect::<BTreeSet<u16>>();
    let mut first_of_set: HashMap<BTreeSet<u16>, usize> = HashMap::new();
    for node in &used {
        first_of_set.entry(set(*node)).or_insert(*node);
    }
    for (index, node) in system.nodes.iter().enumerate() {
        let subject = format!("node \"{}\"", node.name);
        let mut lose =
            |effect, key, what: String| losses.add(effect, Place::Node(index, key), &subject, what);
        if !used.contains(&index) {
            lose(
                Effect::Lost,
                "name",
                "has no subtask, and rt-app knows processors only from threads".to_owned(),
            );
            continue;
        }
        let first = first_of_set[&set(index)];
        let returned =
            if first_of_set.len() == 1 { ONLY.to_owned() } else { name_of(&system.nodes[first].cpus) };
        if first != index {
            let other = &system.nodes[first].name;
            lose(
                Effect::Lost,
                "name",
                format!("has the processors of node \"{other}\" and is the same to rt-app"),
            );
        } else if returned != node.name {
            lose(
                Effect::Lost,
                "name",
                format!("rt-app has no names for processors; read back it is \"{returned}\""),
            );
        }
        if system.nodes[first].cpus != node.cpus {
            lose(
                Effect::Approximated,
                "cpus",
                "the order of the processors is that of the other node".to_owned(),
            );
        }
    }
}

fn reduce_settings(reduced: &Description, losses: &mut Losses) {
    let mut expected = blank(reduced.name.clone());
    let whole = "the system";
    let (_, count) = levels(reduced);
    match reduced.strategy {
        Strategy::Edf => {
            expected.strategy = Strategy::Edf;
            expected.lane_dispatch = LaneDispatch::Preemptive;
            expected.late = Late::None;
        }
        Strategy::Rms | Strategy::Mlf => expected.strategy = Strategy::Rms,
        Strategy::Muf | Strategy::RmsMlf | Strategy::Criticality => {
            expected.strategy = reduced.strategy;
            let what = "fixed priorities by criticality stand in, and by rate among equals";
            losses.add(Effect::Approximated, Place::System("strategy"), whole, what);
        }
    }
    if reduced.strategy != Strategy::Edf && count > PRIORITIES {
        let what =
            format!("{count} levels are more than the {PRIORITIES} priorities; the last ones share one");
        losses.add(Effect::Approximated, Place::System("strategy"), whole, what);
    }
    losses.compare_settings(reduced, &expected);
    for (index, task) in reduced.tasks.iter().enumerate() {
        let by_criticality =
            matches!(reduced.strategy, Strategy::Muf | Strategy::RmsMlf | Strategy::Criticality);
        losses.compare_importance(index, task);
        if by_criticality {
            let what = format!("{} is said by the order of the priorities only", task.criticality);
            let place = Place::Task(index, "criticality");
            losses.add(Effect::Approximated, place, &task_label(&task.name), what);
        } else {
            losses.compare_criticality(index, task);
        }
    }
}
