//! `rt-trace-1`: who runs when on one processor, under every strategy.

use super::{Difference, Outcome, unreadable};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Debug;
use talea_insight::{Segment, Segments};
use talea_model::{
    Communication, Criticality, Description, Execution, Join, LaneDispatch, Late, Laxity, Node, Overhead,
    Overrun, Strategy, Subtask, Synchronisation, System, Task,
};
use talea_policy::strategy::plan_node;
use talea_record::{JobId, Metadata, Record, Sink, Typed};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(rename = "id")]
    _id: String,
    policy: String,
    lane_dispatch: Option<String>,
    laxity: Option<String>,
    late: Option<String>,
    tick_ns: Option<i64>,
    horizon_ns: i64,
    tasks: Vec<TaskRow>,
    expect: Expectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskRow {
    id: String,
    period_ns: i64,
    wcet_ns: i64,
    deadline_ns: i64,
    phase_ns: i64,
    criticality: u8,
    exec_ns: Option<Vec<i64>>,
}

/// Start, end, task, job.
type SegmentRow = (i64, i64, String, u64);
/// Task, job, release, deadline, finish if finished, missed if decided.
type JobRow = (String, u64, i64, i64, Option<i64>, Option<bool>);
/// Discipline, members.
type LaneRow = (String, Vec<String>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expectation {
    lanes: Option<Vec<LaneRow>>,
    segments: Vec<SegmentRow>,
    jobs: Option<Vec<JobRow>>,
    preemptions: Option<u64>,
}

/// Simulates the case and compares lanes, segments, jobs and preemptions, whichever it lists.
pub(super) fn judge(case: &Value) -> Outcome {
    let case: Case = match serde_json::from_value(case.clone()) {
        Ok(case) => case,
        Err(error) => return unreadable(error.to_string()),
    };
    let system = match system(&case) {
        Ok(system) => system,
        Err(Reason::Unknown(what)) => return Outcome::Unsupported(what),
        Err(Reason::Invalid(what)) => return unreadable(what),
    };
    let mut plan = match plan_node(&system, 0) {
        Ok(plan) => plan,
        Err(anomalies) => {
            let reasons: Vec<String> = anomalies.iter().map(ToString::to_string).collect();
            return unreadable(reasons.join("; "));
        }
    };
    for lane in &mut plan.lanes {
        lane.tick = case.tick_ns.map(Duration::from_nanos);
    }
    let lanes: Vec<LaneRow> = plan
        .lanes
        .iter()
        .map(|lane| {
            let name = |id: &talea_model::OperationId| system.operations()[id.index()].name.clone();
            (lane.discipline.to_string(), lane.members.iter().map(name).collect())
        })
        .collect();
    let mut simulation = match Simulation::with_plans(&system, &[plan]) {
        Ok(simulation) => simulation,
        Err(error) => return unreadable(error.to_string()),
    };
    let horizon = Instant::from_nanos(case.horizon_ns);
    let mut observer = Observer::new(&system, simulation.metadata());
    simulation.advance(horizon, &mut observer);
    simulation.finish(&mut observer);
    let seen = observer.conclude(horizon);

    let expect = case.expect;
    let differences = [
        expect.lanes.and_then(|expected| first_difference("lane", |row| row.to_string(), &expected, &lanes)),
        first_difference(
            "segment",
            |row| expect.segments.get(row).map_or("the end".into(), |segment| format!("{} ns", segment.0)),
            &expect.segments,
            &seen.segments,
        ),
        expect
            .jobs
            .and_then(|expected| first_difference("job", |row| row.to_string(), &expected, &seen.jobs)),
        expect.preemptions.filter(|expected| *expected != seen.preemptions).map(|expected| Difference {
            at: "preemptions".into(),
            expected: expected.to_string(),
            got: seen.preemptions.to_string(),
        }),
    ];
    differences.into_iter().flatten().next().map_or(Outcome::Passed, Outcome::Failed)
}

/// Why a case cannot be made a system.
enum Reason {
    /// It asks for something this version does not have.
    Unknown(String),
    /// It contradicts itself or the rules of systems.
    Invalid(String),
}

fn first_difference<T: PartialEq + Debug>(
    what: &str,
    place: impl Fn(usize) -> String,
    expected: &[T],
    got: &[T],
) -> Option<Difference> {
    let row = (0..expected.len().max(got.len())).find(|row| expected.get(*row) != got.get(*row))?;
    let show = |list: &[T]| list.get(row).map_or("nothing more".into(), |item| format!("{item:?}"));
    Some(Difference { at: format!("{what} {}", place(row)), expected: show(expected), got: show(got) })
}

fn system(case: &Case) -> Result<System, Reason> {
    let unknown = |what: &str, given: &str| Reason::Unknown(format!("unknown {what} \"{given}\""));
    let strategy = match case.policy.as_str() {
        "RMS" => Strategy::Rms,
        "EDF" => Strategy::Edf,
        "MLF" | "LLF_TICK" => Strategy::Mlf,
        "MUF" => Strategy::Muf,
        "RMS_MLF" => Strategy::RmsMlf,
        other => return Err(unknown("policy", other)),
    };
    // A ticking case leaves out what it fixes itself.
    let lane_dispatch = case.lane_dispatch.as_deref().unwrap_or("preemptive");
    let laxity = case.laxity.as_deref().unwrap_or("remaining");
    let late = match case.late.as_deref().unwrap_or("none") {
        "ace" => Late::Last,
        "none" => Late::None,
        other => return Err(unknown("late rule", other)),
    };
    let tasks = case
        .tasks
        .iter()
        .map(|row| {
            let criticality = Criticality::from_level(row.criticality)
                .ok_or_else(|| Reason::Invalid(format!("criticality of {}", row.id)))?;
            let wcet = Work::from_nanos(row.wcet_ns);
            let exec = row.exec_ns.as_ref().map_or(Execution::Constant(wcet), |list| {
                Execution::List(list.iter().map(|ns| Work::from_nanos(*ns)).collect())
            });
            Ok(Task {
                name: row.id.clone(),
                period: Duration::from_nanos(row.period_ns),
                deadline: Duration::from_nanos(row.deadline_ns),
                phase: Duration::from_nanos(row.phase_ns),
                jitter: Duration::ZERO,
                trigger: None,
                inherits_deadline: false,
                inherits_criticality: false,
                separation: None,
                communication: Communication::Implicit,
                criticality,
                importance: 0,
                overrun: Overrun::Queue,
                sync: Synchronisation::Greedy,
                subtasks: vec![Subtask {
                    name: row.id.clone(),
                    node: 0,
                    lanes: None,
                    wcet,
                    exec,
                    after: Vec::new(),
                    join: Join::All,
                    bound: None,
                    outputs: Vec::new(),
                    inputs: Vec::new(),
                    events: Vec::new(),
                    subscription: None,
                }],
            })
        })
        .collect::<Result<_, Reason>>()?;
    let description = Description {
        chains: Vec::new(),
        schedulers: Vec::new(),
        threads: Vec::new(),
        name: "vector".into(),
        strategy,
        lane_dispatch: lane_dispatch
            .parse::<LaneDispatch>()
            .map_err(|_| unknown("lane dispatch", lane_dispatch))?,
        laxity: laxity.parse::<Laxity>().map_err(|_| unknown("laxity", laxity))?,
        late,
        seed: 0,
        overhead: Overhead::default(),
        links: Vec::new(),
        channels: Vec::new(),
        nodes: vec![Node { name: "processor".into(), cpus: vec![0] }],
        tasks,
    };
    System::new(description).map_err(|violations| {
        let messages: Vec<String> = violations.into_iter().map(|violation| violation.message).collect();
        Reason::Invalid(messages.join("; "))
    })
}

/// What the vectors list, as a simulation had it.
struct Seen {
    segments: Vec<SegmentRow>,
    /// By task in list order, then job.
    jobs: Vec<JobRow>,
    preemptions: u64,
}

/// Collects it from the records.
struct Observer<'a> {
    system: &'a System,
    schedule: Segments,
    segments: Vec<SegmentRow>,
    released: Vec<(JobId, Instant, Instant)>,
    finished: HashMap<JobId, Instant>,
    preemptions: u64,
}

impl<'a> Observer<'a> {
    fn new(system: &'a System, metadata: &Metadata) -> Self {
        Observer {
            system,
            schedule: Segments::new(metadata),
            segments: Vec::new(),
            released: Vec::new(),
            finished: HashMap::new(),
            preemptions: 0,
        }
    }

    /// Ends the observation at `horizon`.
    fn conclude(self, horizon: Instant) -> Seen {
        let Observer { system, schedule, mut segments, mut released, finished, preemptions } = self;
        schedule.finish(horizon, |segment| segments.extend(segment_row(system, &segment)));
        released.sort_by_key(|(job, ..)| *job);
        let row = |(job, release, deadline): &(JobId, Instant, Instant)| {
            let finish = finished.get(job).copied();
            let missed = match finish {
                Some(finish) => Some(finish > *deadline),
                None => (*deadline <= horizon).then_some(true),
            };
            let finish = finish.map(Instant::as_nanos);
            (name(system, *job), job.instance, release.as_nanos(), deadline.as_nanos(), finish, missed)
        };
        Seen { segments, jobs: released.iter().map(row).collect(), preemptions }
    }
}

/// In virtual time it is always known whose it is.
fn segment_row(system: &System, segment: &Segment) -> Option<SegmentRow> {
    let job = segment.job()?;
    Some((segment.start.as_nanos(), segment.end.as_nanos(), name(system, job), job.instance))
}

fn name(system: &System, job: JobId) -> String {
    system.operations()[job.operation.index()].name.clone()
}

impl Sink for Observer<'_> {
    fn record(&mut self, record: Record) {
        let Observer { system, schedule, segments, .. } = self;
        schedule.feed(&record, |segment| segments.extend(segment_row(system, &segment)));
        match record.typed() {
            Typed::Release(release) => self.released.push((release.job, record.time, release.deadline)),
            Typed::Preempt(_) => self.preemptions += 1,
            Typed::Complete(complete) => {
                self.finished.insert(complete.job, record.time);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_expectation_fails_at_its_first_difference() {
        let case = serde_json::json!({
            "id": "x", "policy": "EDF", "lane_dispatch": "preemptive", "laxity": "remaining", "late": "none",
            "horizon_ns": 10,
            "tasks": [{"id": "A", "period_ns": 10, "wcet_ns": 4, "deadline_ns": 10, "phase_ns": 1, "criticality": 0}],
            "expect": {"segments": [[1, 6, "A", 0]]}
        });
        let Outcome::Failed(difference) = judge(&case) else { panic!("the expectation is wrong") };
        assert_eq!(difference.at, "segment 1 ns");
        assert_eq!(difference.got, r#"(1, 5, "A", 0)"#);
    }
}
