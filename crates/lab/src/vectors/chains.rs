//! `rt-chain-1`: chains over several processors under the synchronisation protocols of Sun and Liu.

use super::{Complaint, Outcome, outcome, same, same_rows, with};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use talea_insight::Segments;
use talea_model::{
    LaneDispatch, Late, Laxity, OperationId, Overrun, SubtaskBuilder, Synchronisation, System, TaskBuilder,
};
use talea_policy::discipline::Discipline;
use talea_policy::strategy::{Lane, LaneRules, Plan};
use talea_record::{JobId, Metadata, Record, Sink, Typed};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "source", default)]
    _source: Value,
    #[serde(rename = "paper_says", default)]
    _paper_says: Value,
    sched: String,
    overrun: String,
    horizon_ns: i64,
    tasks: Vec<TaskRow>,
    subtask_bounds_ns: Option<Vec<Vec<i64>>>,
    expect: BTreeMap<String, Expectation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskRow {
    id: String,
    period_ns: i64,
    phase_ns: i64,
    deadline_ns: i64,
    subtasks: Vec<SubtaskRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubtaskRow {
    proc: String,
    wcet_ns: i64,
    #[serde(default)]
    prio: i64,
}

/// Start, end, task, subtask, instance.
type SegmentRow = (i64, i64, String, usize, u64);
/// Task, subtask, instance, signal, release, start, finish.
type InstanceRow = (String, usize, u64, i64, Option<i64>, Option<i64>, Option<i64>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    segments: BTreeMap<String, Vec<SegmentRow>>,
    instances: Vec<InstanceRow>,
    end_to_end: BTreeMap<String, EndToEnd>,
    missed: Vec<(String, u64)>,
    skipped: Vec<(String, u64, i64)>,
}

/// From arrival to the end of the last subtask.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndToEnd {
    count: u64,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    #[serde(default)]
    sum_ns: i64,
}

/// Simulates the case under each protocol that it lists and compares all that it expects.
pub(super) fn judge(case: &Value) -> Outcome {
    outcome(with(case, |case: Case| {
        case.expect.iter().try_for_each(|(protocol, expected)| {
            let differs = |complaint| match complaint {
                Complaint::Differs(mut difference) => {
                    difference.at = format!("{protocol}, {}", difference.at);
                    Complaint::Differs(difference)
                }
                unreadable @ Complaint::Unreadable(_) => unreadable,
            };
            let (system, seen) = simulate(&case, protocol)?;
            compare(&case, expected, &system, &seen).map_err(differs)
        })
    }))
}

fn simulate(case: &Case, protocol: &str) -> Result<(System, Seen), Complaint> {
    let system = system(case, protocol)?;
    let plans: Vec<Plan> = (0..system.nodes.len()).map(|node| plan(case, &system, node)).collect();
    let unreadable = |error: talea_sim::SimulationError| Complaint::Unreadable(error.to_string());
    let mut simulation = Simulation::with_plans(&system, &plans).map_err(unreadable)?;
    let mut seen = Seen::new(simulation.metadata());
    let horizon = Instant::from_nanos(case.horizon_ns);
    simulation.advance(horizon, &mut seen);
    simulation.finish(&mut seen);
    seen.finish(&system, horizon);
    Ok((system, seen))
}

fn unknown(what: &str, given: &str) -> Complaint {
    Complaint::Unreadable(format!("unknown {what} \"{given}\""))
}

fn system(case: &Case, protocol: &str) -> Result<System, Complaint> {
    let sync = match protocol {
        "greedy" => Synchronisation::Greedy,
        "rg12" => Synchronisation::ReleaseGuard,
        "rg123" => Synchronisation::ReleaseGuardIdle,
        "pm" => Synchronisation::PhaseModification,
        "mpm" => Synchronisation::ModifiedPhaseModification,
        other => return Err(unknown("protocol", other)),
    };
    let overrun = match case.overrun.as_str() {
        "queue" => Overrun::Queue,
        "skip_if_previous_running" => Overrun::SkipNext,
        other => return Err(unknown("overrun", other)),
    };
    let mut names: Vec<&str> =
        case.tasks.iter().flat_map(|task| &task.subtasks).map(|row| &*row.proc).collect();
    names.sort_unstable();
    names.dedup();
    let nodes = names.iter().zip(0..);
    let mut builder =
        nodes.fold(System::builder("vector"), |builder, (name, cpu)| builder.node(*name, [cpu]));
    for (index, row) in case.tasks.iter().enumerate() {
        let mut task = TaskBuilder::new(&row.id, Duration::from_nanos(row.period_ns))
            .deadline(Duration::from_nanos(row.deadline_ns))
            .phase(Duration::from_nanos(row.phase_ns))
            .overrun(overrun)
            .sync(sync);
        for (position, subtask) in row.subtasks.iter().enumerate() {
            let built = SubtaskBuilder::new(position.to_string())
                .wcet(Work::from_nanos(subtask.wcet_ns))
                .on(&subtask.proc);
            let bounds = case.subtask_bounds_ns.as_ref().filter(|_| sync.needs_bounds());
            let bound = bounds.and_then(|bounds| bounds.get(index)?.get(position));
            task = task.subtask(match bound {
                Some(bound) => built.bound(Duration::from_nanos(*bound)),
                None => built,
            });
        }
        builder = builder.task(task);
    }
    builder.build().map_err(|violations| Complaint::Unreadable(violations.to_string()))
}

/// The lanes of a node: one by deadlines, or one for each priority. Ties go to the task and subtask that the case lists first.
fn plan(case: &Case, system: &System, node: usize) -> Plan {
    let members = |wanted: Option<i64>| -> Vec<OperationId> {
        let rows = case.tasks.iter().flat_map(|task| &task.subtasks);
        let here = system.operations().iter().zip(rows).filter(|(operation, row)| {
            system.subtask(operation.id).node == node && wanted.is_none_or(|prio| row.prio == prio)
        });
        here.map(|(operation, _)| operation.id).collect()
    };
    let lane = |(level, (dispatch, discipline, members))| Lane {
        under: None,
        level,
        label: level.to_string(),
        discipline,
        rules: LaneRules { dispatch, laxity: Laxity::Declared, late: Late::None },
        tick: None,
        members,
    };
    let lanes: Vec<_> = if case.sched == "npedf" {
        vec![(LaneDispatch::NonPreemptive, Discipline::Deadline, members(None))]
    } else {
        let mut priorities: Vec<i64> =
            case.tasks.iter().flat_map(|task| &task.subtasks).map(|row| row.prio).collect();
        priorities.sort_unstable();
        priorities.dedup();
        let each = |prio| (LaneDispatch::Preemptive, Discipline::Fifo, members(Some(prio)));
        priorities.into_iter().map(each).filter(|(.., members)| !members.is_empty()).collect()
    };
    Plan { lanes: lanes.into_iter().enumerate().map(lane).collect(), warnings: Vec::new() }
}

fn compare(case: &Case, expected: &Expectation, system: &System, seen: &Seen) -> Result<(), Complaint> {
    for (node, description) in system.nodes.iter().enumerate() {
        let nothing = Vec::new();
        let expected = expected.segments.get(&description.name).unwrap_or(&nothing);
        same_rows(&format!("{} segment", description.name), expected, &seen.segments[node])?;
    }
    let instances = seen.instances(system);
    same_rows("instance", &expected.instances, &instances)?;
    let last = |task: &TaskRow| task.subtasks.len() - 1;
    let mut missed = Vec::new();
    let mut end_to_end = BTreeMap::<String, EndToEnd>::new();
    for task in &case.tasks {
        let sum = end_to_end.entry(task.id.clone()).or_default();
        for (_, subtask, instance, _, _, _, finish) in instances.iter().filter(|row| row.0 == task.id) {
            let arrival = task.phase_ns + *instance as i64 * task.period_ns;
            if let Some(finish) = finish.filter(|_| *subtask == last(task)) {
                let length = finish - arrival;
                sum.count += 1;
                sum.min_ns = Some(sum.min_ns.map_or(length, |least| least.min(length)));
                sum.max_ns = Some(sum.max_ns.map_or(length, |most| most.max(length)));
                sum.sum_ns += length;
            }
            if *subtask == 0 {
                let finish = instances
                    .iter()
                    .find(|row| (&row.0, row.1, row.2) == (&task.id, last(task), *instance))
                    .and_then(|row| row.6);
                let deadline = arrival + task.deadline_ns;
                let is_late = finish.map_or(deadline <= case.horizon_ns, |finish| finish > deadline);
                missed.extend(is_late.then(|| (task.id.clone(), *instance)));
            }
        }
    }
    same_rows("missed", &expected.missed, &missed)?;
    same("end_to_end", &expected.end_to_end, &end_to_end)?;
    let mut skipped: Vec<_> =
        seen.skipped.iter().map(|(job, at)| (name(system, *job).0, job.instance, *at)).collect();
    skipped.sort();
    same_rows("skipped", &expected.skipped, &skipped)
}

/// The name of a job's task, and which subtask it is.
fn name(system: &System, job: JobId) -> (String, usize) {
    let operation = &system.operations()[job.operation.index()];
    (system.tasks[operation.task].name.clone(), operation.subtask)
}

#[derive(Clone, Copy, Default)]
struct Life {
    signal: Option<i64>,
    release: Option<i64>,
    start: Option<i64>,
    finish: Option<i64>,
}

/// What a simulation tells.
struct Seen {
    schedule: Option<Segments>,
    pending: Vec<talea_insight::Segment>,
    /// By node.
    segments: Vec<Vec<SegmentRow>>,
    lives: HashMap<JobId, Life>,
    skipped: Vec<(JobId, i64)>,
    successors: Vec<Vec<OperationId>>,
}

impl Seen {
    fn new(metadata: &Metadata) -> Self {
        let mut successors = vec![Vec::new(); metadata.operations.len()];
        for (index, operation) in metadata.operations.iter().enumerate() {
            for before in &operation.predecessors {
                successors[*before].push(OperationId::from_index(index));
            }
        }
        Seen {
            schedule: Some(Segments::new(metadata)),
            pending: Vec::new(),
            segments: Vec::new(),
            lives: HashMap::new(),
            skipped: Vec::new(),
            successors,
        }
    }

    fn finish(&mut self, system: &System, horizon: Instant) {
        self.segments = vec![Vec::new(); system.nodes.len()];
        let mut rest = Vec::new();
        let schedule = self.schedule.take().expect("a simulation ends once");
        schedule.finish(horizon, |segment| rest.push(segment));
        for segment in self.pending.drain(..).chain(rest) {
            let Some(job) = segment.job() else { continue };
            let (task, subtask) = name(system, job);
            let row = (segment.start.as_nanos(), segment.end.as_nanos(), task, subtask, job.instance);
            self.segments[system.subtask(job.operation).node].push(row);
        }
        self.segments.iter_mut().for_each(|rows| rows.sort());
    }

    /// By task as listed, instance and subtask.
    fn instances(&self, system: &System) -> Vec<InstanceRow> {
        let mut jobs: Vec<(&JobId, &Life)> = self.lives.iter().collect();
        let place = |job: &JobId| {
            let operation = &system.operations()[job.operation.index()];
            (operation.task, job.instance, operation.subtask)
        };
        jobs.sort_by_key(|(job, _)| place(job));
        let row = |(job, life): (&JobId, &Life)| {
            let (task, subtask) = name(system, *job);
            let is_timed = system.tasks[system.operations()[job.operation.index()].task].sync.needs_bounds();
            // Where bounds decide, the case lists when they do as the signal.
            let signal = if is_timed { life.release } else { life.signal };
            let signal = signal.expect("what is known of a job begins with its signal");
            (task, subtask, job.instance, signal, life.release, life.start, life.finish)
        };
        jobs.into_iter().map(row).collect()
    }
}

impl Sink for Seen {
    fn record(&mut self, record: Record) {
        let Seen { schedule, pending, lives, .. } = self;
        schedule.iter_mut().for_each(|schedule| schedule.feed(&record, |segment| pending.push(segment)));
        let at = record.time.as_nanos();
        match record.typed() {
            Typed::Release(release) => {
                let life = lives.entry(release.job).or_default();
                life.signal = life.signal.or(Some(at));
                life.release = Some(at);
            }
            Typed::Start(start) => lives.entry(start.job).or_default().start = Some(at),
            Typed::Complete(complete) => {
                lives.entry(complete.job).or_default().finish = Some(at);
                for &operation in &self.successors[complete.job.operation.index()] {
                    let job = JobId { operation, instance: complete.job.instance };
                    lives.entry(job).or_default().signal = Some(at);
                }
            }
            Typed::Skip(skip) => self.skipped.push((skip.job, at)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_analysis::Effort;
    use talea_analysis::system::analyse;

    #[test]
    fn a_wrong_expectation_fails_at_its_first_difference() {
        let case = serde_json::json!({
            "id": "x", "sched": "npedf", "overrun": "queue", "horizon_ns": 10,
            "tasks": [{"id": "A", "period_ns": 10, "phase_ns": 1, "deadline_ns": 10, "subtasks": [{"proc": "P", "wcet_ns": 4}]}],
            "expect": {"rg12": {"segments": {"P": [[1, 6, "A", 0, 0]]}, "instances": [], "end_to_end": {}, "missed": [], "skipped": []}}
        });
        let Outcome::Failed(difference) = judge(&case) else { panic!("the expectation is wrong") };
        assert_eq!(difference.at, "rg12, P segment 0");
        assert_eq!(difference.got, r#"Some((1, 5, "A", 0, 0))"#);
    }

    fn cases() -> Vec<Case> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/release_guard.json");
        let text = std::fs::read_to_string(file).expect("it is there");
        let mut file: Value = serde_json::from_str(&text).expect("it is JSON");
        serde_json::from_value(file["cases"].take()).expect("it is a list of cases")
    }

    fn plans(case: &Case, system: &System) -> Vec<Plan> {
        (0..system.nodes.len()).map(|node| plan(case, system, node)).collect()
    }

    #[test]
    fn no_published_response_exceeds_the_bound_of_its_task() {
        let (mut bounded, mut reached) = (0, 0);
        for case in cases() {
            for (protocol, expected) in &case.expect {
                let Ok(system) = system(&case, protocol) else { panic!("{protocol} is known") };
                let effort = &mut Effort::default();
                let bounds = analyse(&system, &plans(&case, &system), effort).expect("small numbers");
                for (task, row) in case.tasks.iter().enumerate() {
                    let (Some(seen), Ok(bound)) =
                        (expected.end_to_end[&row.id].max_ns, bounds.tasks[task].response)
                    else {
                        continue;
                    };
                    bounded += 1;
                    reached += usize::from(seen == bound.as_nanos());
                    assert!(
                        seen <= bound.as_nanos(),
                        "{}, {protocol}, {}: {seen} > {bound}",
                        case._id,
                        row.id
                    );
                }
            }
        }
        assert!(bounded > 60 && reached > 10, "{bounded} bounds, of which {reached} are reached");
    }

    #[test]
    fn published_response_bounds_are_those_that_the_analysis_finds() {
        let listed =
            cases().into_iter().find(|case| case.subtask_bounds_ns.is_some()).expect("one lists bounds");
        let Ok(system) = system(&Case { subtask_bounds_ns: None, ..listed }, "pm") else {
            panic!("pm is known")
        };
        let case =
            cases().into_iter().find(|case| case.subtask_bounds_ns.is_some()).expect("one lists bounds");
        let bounds = analyse(&system, &plans(&case, &system), &mut Effort::default()).expect("small numbers");
        let found = system
            .operations()
            .iter()
            .map(|operation| bounds.from_release(operation.id).expect("bounded").as_nanos());
        let published: Vec<i64> = case.subtask_bounds_ns.into_iter().flatten().flatten().collect();
        assert_eq!(found.collect::<Vec<_>>(), published);
    }
}
