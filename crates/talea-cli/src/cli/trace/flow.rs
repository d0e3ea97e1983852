//! `talea trace flow`.

use super::{named, open, unreadable, warn_of_beginning, warn_of_damage};
use crate::cli::failure::{Failure, Verdict};
use crate::cli::output::{self, Sheet, tell, wrap};
use clap::Args;
use serde::Serialize;
use std::collections::HashMap;
use std::path::PathBuf;
use talea_insight::flow::{Direction, Ending, Flow, Limits, Link, NEEDED, Step, flow};
use talea_model::OperationId;
use talea_record::{Damage, Event, JobId, Metadata, RecordedEvents, ReleasedBy, Sink};
use talea_time::{Duration, Instant};

/// Say which jobs led to a job, and what came of it
///
/// Goes from job to job, by successors, by values that one published and another took or was released by, and by events: back to the sensors
/// and the events outside that a job acted on, and forward to whatever acted on it. No [[chain]] has to be described for that. The age of what
/// led to the job counts from the arrival of each to the completion of the job, and what came of it counts from the job's arrival.
///
/// A value that stays the latest is taken by many jobs; of those that took it alike the first two are shown. Of several values that a job took at
/// once the newest is followed. A job that found no value has none here, where chains count with what its operation took before.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea trace flow out/trace.talea --task control --job 57  # what did the drive act on?
  talea trace flow out/trace.talea --task stop --job 0 --forward  # what did the operator's stop set off?
  talea trace flow robot --task control --job 57 --back --json | jq '.led_to_it[] | .job'  # of a run that goes on")]
pub struct Options {
    /// The trace: a file, or a program that runs, by process number or name
    #[arg(value_name = "PID|NAME|FILE")]
    trace: PathBuf,
    /// The task, or one of its subtasks, as task.subtask. Of a task of several the last one that ran is what others led to, and of the first
    /// one others came
    #[arg(long, value_name = "TASK")]
    task: String,
    /// The number of its job; the first is 0
    #[arg(long, value_name = "NUMBER")]
    job: u64,
    /// Only what led to it
    #[arg(long, conflicts_with = "forward")]
    back: bool,
    /// Only what came of it
    #[arg(long)]
    forward: bool,
    /// Go this many jobs far, up to 100
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=100))]
    depth: u32,
    /// Find at most this many jobs each way, up to 100000
    #[arg(long, value_name = "NUMBER", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Print all of them as JSON instead
    #[arg(long)]
    json: bool,
}

/// Jobs alike of which more are only counted.
const ALIKE: usize = 2;

pub fn main(options: &Options) -> crate::cli::Outcome {
    let path = named::file(&options.trace)?;
    let trace = open(&path)?;
    let metadata = trace.metadata();
    super::explain::refuse_what_has_no_system(&path, metadata)?;
    let ends = ends(options, metadata)?;
    let limits = Limits { depth: options.depth as usize, jobs: options.limit as usize };
    let mut damage = Damage::default();
    // Of a task's instance some jobs may be missing: shed, or not released yet.
    let mut found = |jobs: &[JobId], direction: Direction| {
        let mut left_out = None;
        for job in jobs {
            let replay = |mut sink: &mut dyn Sink| {
                damage = trace.replay(&mut sink)?.damage;
                Ok(())
            };
            let flow = flow(metadata, (*job, direction), limits, replay);
            let flow = flow.map_err(|error| unreadable(&path, &error))?;
            if !flow.steps.is_empty() {
                return Ok(flow);
            }
            left_out = left_out.or(flow.left_out);
        }
        let name = metadata.job_name(jobs[0]);
        Err(match left_out {
            Some(reason) => Failure::new(
                format!("{name} was left out, as {}", reason.in_words()),
                "it led to nothing; name another one",
            ),
            None => Failure::new(
                format!("the trace does not tell of {name}"),
                "`talea trace show` lists the jobs it tells of",
            ),
        })
    };
    let back = if options.forward { None } else { Some(found(&ends.lasts, Direction::Back)?) };
    let forward = if options.back { None } else { Some(found(&ends.firsts, Direction::Forward)?) };
    warn_of_damage(&path, &damage);
    if let Some(flow) = back.as_ref().or(forward.as_ref()) {
        warn_of_gaps(metadata, flow);
    }
    if options.json {
        output::json(&report(metadata, back.as_ref(), forward.as_ref()))?;
    } else {
        print(metadata, back.as_ref(), forward.as_ref())?;
    }
    Ok(Verdict::Fine)
}

/// The jobs that may be asked about, those first that are.
struct Ends {
    /// Of which others came.
    firsts: Vec<JobId>,
    /// To which others led.
    lasts: Vec<JobId>,
}

fn ends(options: &Options, metadata: &Metadata) -> Result<Ends, Failure> {
    let name = &options.task;
    let job = |index: usize| JobId { operation: OperationId::from_index(index), instance: options.job };
    if let Some(task) = metadata.tasks.iter().position(|task| task.name == *name) {
        let of_task = (0..metadata.operations.len()).filter(|index| metadata.operations[*index].task == task);
        let (mut firsts, mut lasts): (Vec<usize>, Vec<usize>) =
            (of_task.clone().collect(), of_task.rev().collect());
        firsts.sort_by_key(|index| !metadata.operations[*index].predecessors.is_empty());
        lasts.sort_by_key(|index| !metadata.operations[*index].is_last);
        if !firsts.is_empty() {
            let jobs = |indices: Vec<usize>| indices.into_iter().map(job).collect();
            return Ok(Ends { firsts: jobs(firsts), lasts: jobs(lasts) });
        }
    }
    match metadata.operations.iter().position(|operation| operation.name == *name) {
        Some(index) => Ok(Ends { firsts: vec![job(index)], lasts: vec![job(index)] }),
        None => Err(super::explain::unknown_task(name, metadata)),
    }
}

/// Links are missing of which nothing was recorded, or what was recorded is lost.
fn warn_of_gaps(metadata: &Metadata, flow: &Flow) {
    warn_of_beginning(metadata, &flow.recorded);
    let has_data = |event: &Event| match *event {
        Event::PUBLISH | Event::TAKE => !metadata.outputs.is_empty(),
        Event::RECEIVE => metadata.nodes.len() > 1,
        Event::DELIVER => !metadata.publications.is_empty(),
        _ => true,
    };
    let needed: Vec<Event> = NEEDED.into_iter().filter(has_data).collect();
    let missing = flow.recorded.missing(&needed);
    if !missing.is_empty() {
        tell!(
            "note: not all ways are known, as these events were not recorded: {}; record with {}",
            missing.join(", "),
            RecordedEvents::options_for(&missing)
        );
    }
    if flow.lost.programs > 0 {
        tell!("warning: {} records of the run were lost, and with them perhaps links", flow.lost.programs);
    }
}

fn print(metadata: &Metadata, back: Option<&Flow>, forward: Option<&Flow>) -> Result<(), Failure> {
    let mut lines = output::Lines::new();
    for (flow, direction) in [(back, Direction::Back), (forward, Direction::Forward)] {
        let Some(flow) = flow else { continue };
        lines.line(&section(metadata, flow, direction))?;
    }
    lines.finish()
}

/// A job with what led to it, or what came of it.
fn section(metadata: &Metadata, flow: &Flow, direction: Direction) -> String {
    let job = &flow.steps[0];
    let (what, time) = match direction {
        Direction::Back => ("what led to", "age"),
        Direction::Forward => ("what came of", "after"),
    };
    let mut text = wrap(&format!("{what} {}, which {}", metadata.job_name(job.job), life(metadata, job)));
    if flow.steps.len() == 1 {
        return text + "\n  nothing that the trace tells of\n";
    }
    let mut sheet = Sheet::new(2, &["job", "link", "arrived", "ended", time]);
    let mut rows = Rows { metadata, flow, direction, children: children(flow) };
    rows.below(0, 0, &mut sheet);
    text += "\n";
    text += &sheet.render();
    if flow.is_cut {
        text += "\nthere is more: --depth and --limit say how much is looked for";
    }
    text + "\n"
}

/// The steps that are next to each, in their order.
fn children(flow: &Flow) -> Vec<Vec<usize>> {
    let mut children = vec![Vec::new(); flow.steps.len()];
    for (index, step) in flow.steps.iter().enumerate() {
        if let Some((next_to, _)) = step.next_to {
            children[next_to].push(index);
        }
    }
    children
}

/// Writes steps into a table, each indented below what it is next to.
struct Rows<'a> {
    metadata: &'a Metadata,
    flow: &'a Flow,
    direction: Direction,
    children: Vec<Vec<usize>>,
}

impl Rows<'_> {
    fn below(&mut self, index: usize, indent: usize, sheet: &mut Sheet) {
        let children = std::mem::take(&mut self.children[index]);
        // A job may lead to another in several ways. Forward, one that several led to stands below the first of them.
        let mut ways: Vec<Vec<usize>> = Vec::new();
        let mut places: HashMap<JobId, usize> = HashMap::new();
        for child in children {
            let Step { job, is_again, .. } = self.flow.steps[child];
            match places.get(&job) {
                Some(place) => ways[*place].push(child),
                None if is_again && self.direction == Direction::Forward => {}
                None => {
                    places.insert(job, ways.len());
                    ways.push(vec![child]);
                }
            }
        }
        let kind = |way: &[usize]| {
            let step = &self.flow.steps[way[0]];
            (step.job.operation, step.next_to.map(|(_, link)| link))
        };
        let mut all: HashMap<_, usize> = HashMap::new();
        ways.iter().for_each(|way| *all.entry(kind(way)).or_default() += 1);
        let mut before: HashMap<_, usize> = HashMap::new();
        for way in &ways {
            let alike = before.entry(kind(way)).or_default();
            let rest = all[&kind(way)] - *alike;
            match *alike {
                ALIKE if rest > 1 => self.more(way[0], (rest, indent), sheet),
                // The last one is shown where it is the only one behind the first ones.
                shown if shown < ALIKE || shown == ALIKE && rest == 1 => self.row(way, indent, sheet),
                _ => {}
            }
            *alike += 1;
        }
    }

    /// The steps are of one job, by different links.
    fn row(&mut self, way: &[usize], indent: usize, sheet: &mut Sheet) {
        let step = &self.flow.steps[way[0]];
        let at = |at: Option<Instant>| at.map_or("-".into(), |at| since_start(self.metadata, at));
        let task = &self.metadata.tasks[self.metadata.operations[step.job.operation.index()].task];
        let what = match step.is_again {
            true => ", above",
            false if task.released_by == ReleasedBy::Outside => ", from outside",
            false => "",
        };
        let ended = match step.ended {
            Some((ended, Ending::Completed)) => at(Some(ended)),
            Some((ended, Ending::Aborted)) => format!("{} aborted", at(Some(ended))),
            None => "-".into(),
        };
        sheet.row(vec![
            format!("{}{}{what}", "  ".repeat(indent), self.metadata.job_name(step.job)),
            self.words(way),
            at(step.arrived),
            ended,
            distance(&self.flow.steps[0], step, self.direction)
                .map_or("-".into(), |time| time.rounded().to_string()),
        ]);
        self.below(way[0], indent + 1, sheet);
    }

    /// The links of the steps. That of a successor says nothing that its value does not say.
    fn words(&self, way: &[usize]) -> String {
        let links: Vec<Link> =
            way.iter().filter_map(|step| self.flow.steps[*step].next_to).map(|(_, link)| link).collect();
        let says = |link: &&Link| **link != Link::Successor || links.len() == 1;
        let words: Vec<String> = links.iter().filter(says).map(|link| words(self.metadata, *link)).collect();
        words.join(", ")
    }

    /// So many more like the step at `index`.
    fn more(&self, index: usize, (count, indent): (usize, usize), sheet: &mut Sheet) {
        let name = &self.metadata.operations[self.flow.steps[index].job.operation.index()].name;
        let mut row = vec![format!("{}and {count} more of {name}", "  ".repeat(indent))];
        row.resize(5, String::new());
        sheet.row(row);
    }
}

/// What became of a job, as a clause.
fn life(metadata: &Metadata, step: &Step) -> String {
    let at = |at| since_start(metadata, at);
    let arrived = step.arrived.map(|arrived| format!("arrived at {}", at(arrived)));
    let ended = match step.ended {
        Some((ended, Ending::Completed)) => format!("completed at {}", at(ended)),
        Some((ended, Ending::Aborted)) => format!("was aborted at {}", at(ended)),
        None => "did not end in the trace".into(),
    };
    arrived.map_or(ended.clone(), |arrived| format!("{arrived} and {ended}"))
}

fn since_start(metadata: &Metadata, at: Instant) -> String {
    format!("{:.6}s", (at - metadata.start).as_nanos() as f64 / 1e9)
}

/// How old the job's arrival was when the one that is asked about ended, or how long after the arrival of that it ended.
fn distance(asked: &Step, step: &Step, direction: Direction) -> Option<Duration> {
    match direction {
        Direction::Back => Some(asked.ended?.0 - step.arrived?),
        Direction::Forward => Some(step.ended?.0 - asked.arrived?),
    }
}

fn words(metadata: &Metadata, link: Link) -> String {
    match link {
        Link::Successor => "successor".into(),
        Link::Value(input) => {
            let input = &metadata.inputs[input];
            format!("{} by {}", metadata.outputs[input.output].name, input.name)
        }
        Link::Trigger(output) => format!("released by {}", metadata.outputs[output].name),
        Link::Event(publication) => {
            let publication = &metadata.publications[publication];
            format!("event {} in {}", publication.event_type, publication.channel)
        }
        Link::Posted => "posted".into(),
    }
}

#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    led_to_it: Option<Vec<StepReport>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    came_of_it: Option<Vec<StepReport>>,
    /// Whether there is more than was looked for.
    is_cut: bool,
    lost_records: u64,
}

#[derive(Serialize)]
struct StepReport {
    job: String,
    node: String,
    /// The index of the step that it is next to; none for the job that was asked about.
    next_to: Option<usize>,
    link: Option<&'static str>,
    /// The input, the output or the publication of the link.
    by: Option<String>,
    depth: usize,
    /// Whether an earlier step is of the same job, behind which the way goes on.
    is_again: bool,
    /// Since the start.
    arrived_ns: Option<i64>,
    started_ns: Option<i64>,
    ended_ns: Option<i64>,
    ending: Option<Ending>,
}

fn report(metadata: &Metadata, back: Option<&Flow>, forward: Option<&Flow>) -> Report {
    let steps = |flow: &Flow| flow.steps.iter().map(|step| step_report(metadata, step)).collect();
    let both = || back.into_iter().chain(forward);
    Report {
        led_to_it: back.map(steps),
        came_of_it: forward.map(steps),
        is_cut: both().any(|flow| flow.is_cut),
        lost_records: both().map(|flow| flow.lost.sum()).max().unwrap_or(0),
    }
}

fn step_report(metadata: &Metadata, step: &Step) -> StepReport {
    let since = |at: Instant| (at - metadata.start).as_nanos();
    let lane = metadata.operations[step.job.operation.index()].lane;
    let (link, by) = match step.next_to.map(|(_, link)| link) {
        None => (None, None),
        Some(Link::Successor) => (Some("successor"), None),
        Some(Link::Value(input)) => (Some("value"), Some(metadata.inputs[input].name.clone())),
        Some(Link::Trigger(output)) => (Some("trigger"), Some(metadata.outputs[output].name.clone())),
        Some(Link::Event(publication)) => {
            (Some("event"), Some(metadata.publications[publication].name.clone()))
        }
        Some(Link::Posted) => (Some("posted"), None),
    };
    StepReport {
        job: metadata.job_name(step.job),
        node: metadata.nodes[metadata.lanes[lane].node].name.clone(),
        next_to: step.next_to.map(|(next_to, _)| next_to),
        link,
        by,
        depth: step.depth,
        is_again: step.is_again,
        arrived_ns: step.arrived.map(since),
        started_ns: step.started.map(since),
        ended_ns: step.ended.map(|(at, _)| since(at)),
        ending: step.ended.map(|(_, ending)| ending),
    }
}
