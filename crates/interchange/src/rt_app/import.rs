//! A use case of rt-app as a description.

use super::chains::{Chain, Crew};
use super::json::{Kind, Member, Value, read};
use super::nodes::Nodes;
use super::policies::{Scheduled, adopt_policies};
use super::release::release_of;
use super::role::role_of;
use super::thread::{Policy, Thread, Threads};
use super::values::{policy, wrong};
use crate::names::{Taken, is_valid, mended};
use crate::reading::{Origins, Reading};
use crate::settings::{blank, task, task_label};
use crate::{Effect, Problems, Translated};
use talea_model::{Description, Join, Place, Subtask};

/// Reads an rt-app or workgen file; see [`crate::import`].
///
/// # Errors
/// All problems of the text; after one in the syntax nothing is certain, so it is reported alone.
pub fn import(source_name: &str, text: &str) -> Result<Translated<Description>, Problems> {
    let mut reading = Reading::new(source_name, text);
    let root = read(&mut reading);
    if reading.has_errors() {
        return reading.reject();
    }
    let default_policy = read_global(&root, &mut reading);
    let mut threads = read_threads(&root, &mut reading);
    if reading.has_errors() {
        return reading.reject();
    }
    drop_slices(&mut threads, default_policy, &mut reading);
    let policy_of = |thread: &Thread| thread.attributes.policy.unwrap_or(default_policy);
    let roles: Vec<_> = threads
        .iter()
        .map(|thread| {
            let release = release_of(thread, policy_of(thread), &mut reading);
            role_of(thread, release, &mut reading)
        })
        .collect();
    let mut crew = Crew::new(&threads, &roles);
    let chains = crew.chains(&mut reading);
    if chains.is_empty() && !reading.has_errors() {
        let message = "no thread of this file is released by time, so there is no task to import";
        reading.error(
            tasks_span(&root),
            message,
            "give a thread a timer: \"timer\" : { \"ref\" : \"unique\", \"period\" : 10000 }",
        );
    }
    if reading.has_errors() {
        return reading.reject();
    }
    let (description, origins) = describe(&crew, &chains, policy_of, &mut reading);
    reading.finish(description, &origins)
}

/// Every member of the file that is called `key`.
fn sections<'m, 't>(root: &'m [Member<'t>], key: &str) -> impl Iterator<Item = &'m Member<'t>> {
    root.iter().filter(move |member| member.key == key)
}

fn tasks_span(root: &[Member<'_>]) -> std::ops::Range<usize> {
    sections(root, "tasks").next().map_or(0..0, |member| member.key_span.clone())
}

const GLOBAL: [&str; 15] = [
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "frag",
    "spacing",
];

/// The policy of threads that have none. The other settings concern a run of rt-app.
fn read_global(root: &[Member<'_>], reading: &mut Reading<'_>) -> Policy {
    let mut default = Policy::Other;
    for section in sections(root, "global") {
        let Some(Value { kind: Kind::Object(members), .. }) = &section.value else {
            wrong(reading, "the file", section, "an object", "{ \"default_policy\" : \"SCHED_FIFO\" }");
            continue;
        };
        for member in members {
            if member.key == "default_policy" {
                default = policy(reading, "global", member).unwrap_or(default);
                continue;
            }
            let key = member.key.as_ref();
            if GLOBAL.contains(&key) {
                let what = "concerns a run of rt-app; talea's commands have options for it";
                reading.lose(Effect::Setting, member.span(), "global", key.to_owned(), what);
            } else {
                reading.ignore(member.span(), "global", key, "rt-app", GLOBAL);
            }
        }
    }
    for member in root {
        match member.key.as_ref() {
            "global" | "tasks" => {}
            "resources" => {
                let what = "declares resources, which rt-app makes when threads use them";
                reading.lose(Effect::Setting, member.key_span.clone(), "the file", "resources", what);
            }
            other => {
                let known = ["tasks", "global", "resources"];
                reading.ignore(member.key_span.clone(), "the file", other, "rt-app", known);
            }
        }
    }
    default
}

/// How many threads a file may start.
const THREADS: usize = 100_000;

fn read_threads<'t>(root: &[Member<'t>], reading: &mut Reading<'t>) -> Vec<Thread> {
    if sections(root, "tasks").next().is_none() {
        let remedy = "write \"tasks\" : { \"name\" : { \"run\" : 1000, ... } }";
        reading.error(0..1, "the file has no \"tasks\"", remedy);
    }
    let mut threads = Vec::new();
    let mut reader = Threads::new(reading);
    let mut count = 0;
    for section in sections(root, "tasks") {
        let Some(Value { kind: Kind::Object(members), .. }) = &section.value else {
            wrong(reader.reading, "the file", section, "an object", "{ \"name\" : { \"run\" : 1000, ... } }");
            continue;
        };
        for member in members {
            let Some(thread) = reader.read(member) else { continue };
            count += thread.instances;
            if count > THREADS {
                let message = format!("with {} the file starts more than {THREADS} threads", thread.label());
                reader.reading.error(thread.span, message, "lower its \"instance\"");
                return threads;
            }
            threads.push(thread);
        }
    }
    threads
}

/// Under SCHED_OTHER the keys of reservations ask for a time slice, or for nothing.
fn drop_slices(threads: &mut [Thread], default_policy: Policy, reading: &mut Reading<'_>) {
    let is_other = |thread: &&mut Thread| {
        thread.attributes.policy.unwrap_or(default_policy) == Policy::Other && !thread.is_plain
    };
    for thread in threads.iter_mut().filter(is_other) {
        let attributes = &mut thread.attributes;
        let given = [
            ("dl-runtime", attributes.runtime.take()),
            ("dl-period", attributes.period.take()),
            ("dl-deadline", attributes.deadline.take()),
        ];
        for (key, _) in given.into_iter().filter(|(_, time)| time.is_some()) {
            let what = "is no reservation under SCHED_OTHER; there are no time slices";
            reading.lose(Effect::Lost, thread.span.clone(), &thread.label(), key, what);
        }
    }
}

/// Gives the tasks their names, nodes and ranks.
fn describe(
    crew: &Crew<'_>,
    chains: &[Chain],
    policy_of: impl Fn(&Thread) -> Policy,
    reading: &mut Reading<'_>,
) -> (Description, Origins) {
    let mut description = blank(reading.system_name());
    let mut origins = Origins::default();
    let mut nodes = Nodes::of(crew.threads);
    let mut taken = Taken::default();
    let mut scheduled = Vec::new();
    for chain in chains {
        let (name, names) = names_of(crew, chain, &mut taken, reading);
        let index = description.tasks.len();
        let head = crew.thread(chain.head);
        origins.set(Place::Task(index, ""), head.span.clone());
        let mut made = task(name, chain.period);
        made.phase = chain.phase;
        made.deadline = deadline_of(crew, chain, reading);
        for (position, (step, name)) in chain.steps.iter().zip(names).enumerate() {
            let thread = crew.thread(step.unit);
            origins.set(Place::Subtask(index, position, ""), thread.span.clone());
            made.subtasks.push(Subtask {
                name,
                node: nodes.node_of(thread, reading),
                lanes: None,
                wcet: step.wcet,
                exec: step.exec.clone(),
                after: step.after.clone(),
                join: Join::All,
                bound: None,
                outputs: Vec::new(),
                inputs: Vec::new(),
                events: Vec::new(),
                subscription: None,
            });
        }
        let threads = chain.steps.iter().map(|step| crew.thread(step.unit));
        scheduled.push(Scheduled {
            period: chain.period,
            threads: threads.map(|thread| (thread, policy_of(thread))).collect(),
        });
        description.tasks.push(made);
    }
    description.nodes = nodes.into_nodes();
    adopt_policies(&scheduled, &mut description, reading);
    (description, origins)
}

/// The deadline of the first subtask that has one, else the period.
fn deadline_of(crew: &Crew<'_>, chain: &Chain, reading: &mut Reading<'_>) -> talea_time::Duration {
    let threads = || {
        let steps = chain.steps.iter().map(|step| crew.thread(step.unit));
        std::iter::once(crew.thread(chain.head)).chain(steps)
    };
    let mut deadlines = threads().filter_map(|thread| thread.attributes.deadline.map(|time| (thread, time)));
    let deadline = deadlines.next().map_or(chain.period, |(_, deadline)| deadline);
    if let Some((thread, other)) = deadlines.find(|(_, other)| *other != deadline) {
        let what = format!("is {other}, but the whole task has one deadline, {deadline}");
        reading.lose(Effect::Lost, thread.span.clone(), &thread.label(), "dl-deadline", what);
    }
    for thread in threads() {
        if let Some(period) = thread.attributes.period.filter(|period| *period != chain.period) {
            let what = format!(
                "the reservation's period is {period}, but the task is released every {}",
                chain.period
            );
            reading.lose(Effect::Lost, thread.span.clone(), &thread.label(), "dl-period", what);
        }
    }
    deadline
}

/// The name of a task and of its subtasks. Threads called `task.subtask` say both.
fn names_of(
    crew: &Crew<'_>,
    chain: &Chain,
    taken: &mut Taken,
    reading: &mut Reading<'_>,
) -> (String, Vec<String>) {
    let name = |unit: usize| crew.units[unit].name.as_str();
    let head = match chain.number {
        Some(number) => format!("{}-{number}", name(chain.head)),
        None => name(chain.head).to_owned(),
    };
    if let Some(names) = dotted(&head, chain, name)
        && taken.take(&names.0)
    {
        return names;
    }
    let own = taken.unique(&mended(&head, "task"));
    let thread = crew.thread(chain.head);
    note_renamed(thread, &head, &own, reading);
    if let [alone] = chain.steps.as_slice()
        && alone.unit == chain.head
    {
        return (own.clone(), vec![own]);
    }
    let mut inside = Taken::default();
    let mut steps = Vec::new();
    for step in &chain.steps {
        let step_name = inside.unique(&mended(name(step.unit), "subtask"));
        if step.unit != chain.head {
            note_renamed(crew.thread(step.unit), name(step.unit), &step_name, reading);
        }
        steps.push(step_name);
    }
    (own, steps)
}

fn note_renamed(thread: &Thread, before: &str, after: &str, reading: &mut Reading<'_>) {
    if before != after {
        let what = format!("is called \"{after}\" here; names are unique, of letters, digits, - and _");
        reading.lose(Effect::Approximated, thread.span.clone(), &task_label(before), "name", what);
    }
}

/// The names of a chain whose threads are all called `task.subtask`, with one task for all. The head may
/// be called `task`, if it does nothing but to resume the others.
fn dotted<'a>(
    head: &'a str,
    chain: &Chain,
    name: impl Fn(usize) -> &'a str,
) -> Option<(String, Vec<String>)> {
    let task = head.split_once('.').map_or(head, |(task, _)| task);
    let is_step = chain.steps.iter().any(|step| step.unit == chain.head);
    if is_step != head.contains('.') || !is_valid(task) {
        return None;
    }
    let mut inside = Taken::default();
    let subtasks = chain.steps.iter().map(|step| {
        let subtask = name(step.unit).strip_prefix(task)?.strip_prefix('.')?;
        (is_valid(subtask) && inside.take(subtask)).then(|| subtask.to_owned())
    });
    Some((task.to_owned(), subtasks.collect::<Option<_>>()?))
}
