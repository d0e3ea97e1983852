//! Programs on real threads of this process, replayed: the same code does the same again, and of one job that does otherwise it is said.
//!
//! What is drawn has channels of its own and of the program, and code that goes by all that it is handed and answered, so that whatever the replay hands it
//! otherwise shows. The judge is the code itself, which notes what it has seen, apart from what the replay says.

use super::{Fault, in_folder};
use crate::Counts;
use crate::draw::{self, Called, Calls, Changed, Deliveries};
use rand::RngExt;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use talea_model::System;
use talea_operation::{KeptOutputs, Operations, PostingRoom};
use talea_policy::strategy::{Plan, plan_lanes_of};
use talea_record::{Event, Record, Sink, TraceFile};
use talea_replay::{OutputReport, PreparedReplay, ReplayError, ReplayFileError, ReplayReport};
use talea_runtime::{Executive, Outcome, PrepareError, RtMode, RunOptions};
use talea_time::Duration;

/// Several of the longest periods drawn.
const RUN: Duration = Duration::from_millis(150);
/// Jobs that do otherwise, one at a time.
const CHANGES: usize = 3;

pub fn attempt(seed: u64, counts: &mut Counts) -> Result<(), Fault> {
    let system = draw::system_with_channels(seed);
    let Some(system) = system.as_ref().and_then(draw::with_digests) else {
        counts.refused += 1;
        return Ok(());
    };
    let Ok(plans) = plan_lanes_of(&system) else {
        counts.refused += 1;
        return Ok(());
    };
    let text = system.to_toml();
    in_folder(|folder| judge((seed, folder), &system, &plans, counts)).map_err(|what| Fault::new(what, text))
}

/// A program of this seed: the code of its operations, and its channel.
struct Program {
    operations: Operations,
    deliveries: Deliveries,
    room: PostingRoom,
}

impl Program {
    fn new(seed: u64, system: &System, plans: &[Plan], calls: &Calls) -> Result<Self, String> {
        let rng = &mut draw::numbers(!seed);
        let deliveries = Deliveries::new((system, plans), rng, calls)?;
        let pushing = |name: &str| rng.random_ratio(1, 2).then(|| deliveries.pushing(name));
        let operations = draw::code(system, calls, pushing);
        let (operations_needed, jobs) = deliveries.factory.needs();
        let room = PostingRoom { operations: operations_needed, jobs, posters: 2 };
        Ok(Program { operations, deliveries, room })
    }
}

fn judge(
    (seed, folder): (u64, &Path),
    system: &System,
    plans: &[Plan],
    counts: &mut Counts,
) -> Result<(), String> {
    let trace = folder.join("trace.talea");
    let calls = Calls::that_take_time();
    let Some(outcome) = recorded((seed, &calls), system, plans, &trace)? else {
        counts.refused += 1;
        return Ok(());
    };
    if let Some(panic) = outcome.mishaps.panics.first() {
        return Err(format!("a job panicked: {panic:?}"));
    }
    let then = calls.called();
    counts.hold("runs of programs", 1);
    counts.hold("calls of their code", then.len() as u64);

    let calls = Calls::default();
    let replayed = |calls: &Calls| replayed((seed, calls), system, plans, &trace);
    let Some(same) = replayed(&calls)? else { return Ok(()) };
    if let Some(first) = &same.first {
        return Err(format!("replayed, it differs: {first}"));
    }
    if !same.differences.is_empty() {
        return Err(format!("replayed, the same description differs: {:?}", same.differences));
    }
    let has_all = same.lost_records == 0 && outcome.mishaps.values_unkept == 0;
    // What a consumer says after that is unknown if it differs.
    let completed = completed(&trace)?;
    let loses_order = draw::loses_order(&then, |one| completed.contains(&named(one)));
    counts.hold("runs whose calls cannot be made in their order", u64::from(loses_order));
    let is_whole = has_all && !loses_order;
    if is_whole && (same.unknown() > 0 || !same.posted.is_empty()) {
        return Err(format!("replayed, not all is known: {same:?}"));
    }
    let now = calls.called();
    if is_whole {
        has_seen_the_same(&then, &now)?;
    }
    let sum = |rows: &[OutputReport]| rows.iter().map(|row| row.compared).sum();
    counts.hold("values replayed", sum(&same.outputs));
    counts.hold("pushes replayed", sum(&same.publications));
    counts.hold("answers of consumers replayed", sum(&same.outcomes));
    if !is_whole {
        counts.hold("traces that are not whole", u64::from(!has_all));
        return Ok(());
    }
    let can_differ: Vec<&Called> =
        now.iter().filter(|one| one.has_handed_on && completed.contains(&named(one))).collect();
    let rng = &mut draw::numbers(seed.rotate_left(30));
    for _ in 0..CHANGES.min(can_differ.len()) {
        let Called { operation, instance, .. } = can_differ[rng.random_range(0..can_differ.len())].clone();
        let changed = Changed { operation, instance };
        let Some(other) = replayed(&Calls::with_change(changed.clone()))? else { continue };
        is_found(&changed, &other)?;
        counts.hold("changes found", 1);
    }
    Ok(())
}

fn named(one: &Called) -> (String, u64) {
    (one.operation.clone(), one.instance)
}

/// Runs the program on threads. None if it is refused.
fn recorded(
    (seed, calls): (u64, &Calls),
    system: &System,
    plans: &[Plan],
    trace: &Path,
) -> Result<Option<Outcome>, String> {
    let Program { operations, deliveries, room } = Program::new(seed, system, plans, calls)?;
    let planned = talea_check::planned(system, plans).unwrap_or_else(|_| system.clone());
    let options = RunOptions {
        duration: Some(RUN),
        rt: RtMode::Warn,
        posting: room,
        keep_log: Some(trace.into()),
        keep_values: KeptOutputs::All,
        ..RunOptions::default()
    };
    let prepared = match Executive::prepare(&planned, operations, options) {
        Ok(prepared) => prepared,
        Err(PrepareError::Operations(errors)) => return Err(format!("its code is refused: {errors}")),
        Err(_) => return Ok(None),
    };
    let workplace = prepared.dispatcher().workplace().map_err(|error| error.to_string())?;
    deliveries.factory.bind(workplace).map_err(|error| format!("its channel: {error}"))?;
    prepared.run().map(Some).map_err(|error| error.to_string())
}

/// Replays it. None if nothing of it is kept.
fn replayed(
    (seed, calls): (u64, &Calls),
    system: &System,
    plans: &[Plan],
    trace: &Path,
) -> Result<Option<ReplayReport>, String> {
    let Program { operations, deliveries, room } = Program::new(seed, system, plans, calls)?;
    let mut prepared = match PreparedReplay::open(system, operations, trace) {
        Ok(prepared) => prepared,
        Err(ReplayFileError::Replay { source: ReplayError::NoValues, .. }) => return Ok(None),
        Err(error) => return Err(format!("it cannot be replayed: {error}")),
    };
    deliveries.factory.bind(prepared.workplace(room)).map_err(|error| format!("its channel: {error}"))?;
    prepared.run().map(Some).map_err(|error| error.to_string())
}

/// Each job that was called again has seen what it saw, as often as it saw something.
fn has_seen_the_same(then: &[Called], now: &[Called]) -> Result<(), String> {
    let mut seen: HashMap<(String, u64), Vec<u64>> = HashMap::new();
    then.iter().for_each(|one| seen.entry(named(one)).or_default().push(one.digest));
    let mut again: HashMap<(String, u64), Vec<u64>> = HashMap::new();
    now.iter().for_each(|one| again.entry(named(one)).or_default().push(one.digest));
    match again.into_iter().find(|(job, digests)| seen.get(job) != Some(digests)) {
        Some(((operation, instance), _)) => Err(format!(
            "replayed, job {instance} of {operation} has seen something else, and it is not said"
        )),
        None => Ok(()),
    }
}

/// The jobs that completed, by the names of their operations.
fn completed(trace: &Path) -> Result<HashSet<(String, u64)>, String> {
    #[derive(Default)]
    struct Completed(Vec<(usize, u64)>);
    impl Sink for Completed {
        fn record(&mut self, record: Record) {
            if record.event == Event::COMPLETE {
                let job = record.job();
                self.0.push((job.operation.index(), job.instance));
            }
        }
    }
    let file = TraceFile::open(trace).map_err(|error| error.to_string())?;
    let mut completed = Completed::default();
    file.replay(&mut completed).map_err(|error| error.to_string())?;
    let name = |operation: usize| file.metadata().operations[operation].name.clone();
    Ok(completed.0.into_iter().map(|(operation, instance)| (name(operation), instance)).collect())
}

/// The first difference is that of the job that does otherwise, and only its operation differs.
fn is_found(changed: &Changed, report: &ReplayReport) -> Result<(), String> {
    let Changed { operation, instance } = changed;
    let Some(first) = &report.first else {
        return Err(format!("job {instance} of {operation} does otherwise, and it is not said"));
    };
    let is_of_operation = |name: &str| {
        let rest = name.strip_prefix(operation.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '>']))
    };
    if !is_of_operation(&first.output) || first.instance != *instance {
        return Err(format!("job {instance} of {operation} does otherwise, and this is said: {first}"));
    }
    let rows = [&report.outputs, &report.publications, &report.posts, &report.outcomes];
    match rows.into_iter().flatten().find(|row| row.differing > 0 && !is_of_operation(&row.output)) {
        Some(row) => {
            Err(format!("job {instance} of {operation} does otherwise, and another differs: {row:?}"))
        }
        None => Ok(()),
    }
}
