//! Writes a description that rt-app can say.

use super::export::PRIORITIES;
use crate::priority::levels;
use std::collections::HashMap;
use std::fmt::Write;
use talea_model::{Description, Execution, Strategy, Task};
use talea_time::{Duration, Work};

/// A key with its value as JSON.
type Member = (&'static str, String);

/// The file. Subtasks have at most one predecessor, times are whole microseconds, execution times are
/// constant or lists.
pub(super) fn write(description: &Description) -> String {
    let (levels, _) = levels(description);
    let mut threads = Vec::new();
    for (task, level) in description.tasks.iter().zip(levels) {
        write_task(description, task, level, &mut threads);
    }
    let policy = if description.strategy == Strategy::Edf { "SCHED_DEADLINE" } else { "SCHED_FIFO" };
    let global: Vec<Member> = vec![
        ("duration", "-1".into()),
        ("calibration", quoted("CPU0")),
        ("default_policy", quoted(policy)),
        ("lock_pages", "true".into()),
        ("logdir", quoted("./")),
        ("log_basename", quoted(&description.name)),
    ];
    format!(
        "{{\n\t\"tasks\" : {{\n{}\n\t}},\n\t\"global\" : {{\n{}\n\t}}\n}}\n",
        threads.join(",\n"),
        lines(&global, "\t\t")
    )
}

fn write_task(description: &Description, task: &Task, level: usize, threads: &mut Vec<String>) {
    let name = |position: usize| match task.subtasks.as_slice() {
        [alone] if alone.name == task.name => task.name.clone(),
        subtasks => format!("{}.{}", task.name, subtasks[position].name),
    };
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); task.subtasks.len()];
    let mut first = Vec::new();
    for (position, subtask) in task.subtasks.iter().enumerate() {
        match subtask.after.as_slice() {
            [] => first.push(position),
            [before, ..] => successors[*before].push(position),
        }
    }
    let resumes = |positions: &[usize]| -> Vec<Member> {
        positions.iter().map(|position| ("resume", quoted(&name(*position)))).collect()
    };
    let timer = (
        "timer",
        format!("{{ \"ref\" : \"unique\", \"period\" : {}, \"mode\" : \"absolute\" }}", micros(task.period)),
    );
    let is_alone = first.len() == 1;
    if !is_alone {
        // Several first subtasks are released together by a thread that does nothing else.
        let node = task.subtasks[first[0]].node;
        let mut members = vec![cpus(description, node)];
        members.push(("policy", quoted("SCHED_FIFO")));
        members.push(("priority", (PRIORITIES + 1).to_string()));
        members.extend(delay(task));
        members.extend(resumes(&first));
        members.push(timer.clone());
        threads.push(thread(&task.name, &members));
    }
    for (position, subtask) in task.subtasks.iter().enumerate() {
        let mut members = vec![cpus(description, subtask.node)];
        if description.strategy != Strategy::Edf {
            members.push(("priority", PRIORITIES.saturating_sub(level).max(1).to_string()));
        }
        members.push(("dl-runtime", micros(subtask.wcet.at_full_speed()).to_string()));
        members.push(("dl-deadline", micros(task.deadline).to_string()));
        members.push(("dl-period", micros(task.period).to_string()));
        let is_head = is_alone && position == first[0];
        if is_head {
            members.extend(delay(task));
        }
        for work in rounds(&subtask.exec) {
            if !is_head {
                members.push(("suspend", quoted(&name(position))));
            }
            members.push(("run", micros(work.at_full_speed()).to_string()));
            members.extend(resumes(&successors[position]));
            if is_head {
                members.push(timer.clone());
            }
        }
        threads.push(thread(&name(position), &members));
    }
}

fn rounds(exec: &Execution) -> Vec<Work> {
    match exec {
        Execution::Constant(work) => vec![*work],
        Execution::List(works) => works.to_vec(),
        Execution::Uniform(..) => unreachable!("reduced to its mean"),
    }
}

fn cpus(description: &Description, node: usize) -> Member {
    let cpus: Vec<String> = description.nodes[node].cpus.iter().map(u16::to_string).collect();
    ("cpus", format!("[{}]", cpus.join(", ")))
}

fn delay(task: &Task) -> Option<Member> {
    (task.phase > Duration::ZERO).then(|| ("delay", micros(task.phase).to_string()))
}

fn micros(time: Duration) -> i64 {
    time.as_nanos() / 1_000
}

/// No text that is written here contains a character that needs an escape: names are letters, digits,
/// `-`, `_`, and a point between two.
fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn thread(name: &str, members: &[Member]) -> String {
    format!("\t\t{} : {{\n{}\n\t\t}}", quoted(name), lines(members, "\t\t\t"))
}

/// A line per member. Repeated keys get a number, by whose beginning rt-app still knows them.
fn lines(members: &[Member], indent: &str) -> String {
    let mut text = String::new();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for (index, (key, value)) in members.iter().enumerate() {
        let number = count.entry(key).and_modify(|count| *count += 1).or_insert(0);
        let suffix = if *number == 0 { String::new() } else { number.to_string() };
        let separator = if index == 0 { "" } else { ",\n" };
        write!(text, "{separator}{indent}\"{key}{suffix}\" : {value}").expect("writing to a string succeeds");
    }
    text
}
