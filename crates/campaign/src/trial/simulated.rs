//! A system as a user meets it: written, read, checked, simulated, verified, explained. What each says is held against the others.

mod program;

use super::Fault;
use crate::Counts;
use crate::draw::{self, Size};
use rand::RngExt;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::Path;
use talea_check::hierarchy::Composition;
use talea_check::{Check, CheckReport, Verdict};
use talea_conformance::promises::doubted;
use talea_insight::accounting::{Accounting, Report};
use talea_insight::explain::{Measure, Question, Which, explain, explain_chains};
use talea_insight::flow::{Direction, Limits, flow};
use talea_insight::verify::{Coverage, Judged, Verifier, VerifyReport};
use talea_model::{System, Trigger, parse};
use talea_operation::KeptOutputs;
use talea_policy::arrangement::{Basis, Kept};
use talea_policy::strategy::{Plan, plan_lanes_of};
use talea_record::event::{Take, Violation};
use talea_record::{Contents, Event, JobId, Metadata, Record, Sink, ViolationSide};
use talea_replay::{Replay, ReplayError};
use talea_samples::recordings::{events_to_leave_out, name_of, recorded_without};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant};

/// Several of the longest periods drawn.
const SIMULATED: Duration = Duration::from_millis(400);

/// A simulated run.
struct Run {
    metadata: Metadata,
    records: Vec<Record>,
    /// By node.
    kept: Vec<Option<Vec<Kept>>>,
}

/// All records, in memory.
#[derive(Default)]
struct Everything(Vec<Record>);

impl Sink for Everything {
    fn record(&mut self, record: Record) {
        self.0.push(record);
    }
}

pub fn attempt(seed: u64, counts: &mut Counts) -> Result<(), Fault> {
    let Some(system) = draw::system(seed, Size::Large) else {
        counts.refused += 1;
        return Ok(());
    };
    let text = system.to_toml();
    let judged = judge(seed, &system, &text, counts);
    judged.map_err(|what| Fault::new(what, text))
}

fn judge(seed: u64, system: &System, text: &str, counts: &mut Counts) -> Result<(), String> {
    reads_the_same(system, text)?;
    let Ok(plans) = plan_lanes_of(system) else {
        counts.refused += 1;
        return Ok(());
    };
    let check = Check::new(system, &plans, &mut |_, _| ()).map_err(|error| format!("check: {error}"))?;
    let Some(run) = simulate(system, &[]) else {
        counts.refused += 1;
        return Ok(());
    };
    counts.hold("records", run.records.len() as u64);
    happens_again(seed, system, &run)?;
    obeys_the_rules(system, &plans, &run)?;
    bounds_hold(system, &check.report, &run, counts)?;
    promises_are_kept(system, &check, &run, counts)?;
    breaches_are_told(&run, counts)?;
    explanations_add_up(&run, counts)?;
    ways_agree(&run, counts)?;
    let waits = run.records.iter().filter(|record| record.event == Event::WAIT);
    counts.hold("waits for room", waits.count() as u64);
    is_the_same_replayed(system, &plans, counts)?;
    program::holds(seed, system, &plans, &check, counts)
}

fn reads_the_same(system: &System, text: &str) -> Result<(), String> {
    let read = parse("drawn.toml", text, Path::new("."))
        .map_err(|problems| format!("its own file is refused: {problems}"))?;
    match read.system == *system {
        true => Ok(()),
        false => Err("the file that is written of it says something else".into()),
    }
}

/// None if a scheduler has no room for its children.
fn simulate(system: &System, slices: &[Instant]) -> Option<Run> {
    Some(advance(system, Simulation::new(system).ok()?, slices))
}

fn advance(system: &System, simulation: Simulation, slices: &[Instant]) -> Run {
    let mut simulation = simulation.with_dispatch(DispatchRecords::Kept);
    let mut everything = Everything::default();
    for slice in slices {
        simulation.advance(*slice, &mut everything);
        simulation.check_invariants();
    }
    simulation.advance(Instant::ZERO + SIMULATED, &mut everything);
    let metadata = simulation.metadata().clone();
    let kept = (0..system.nodes.len()).map(|node| simulation.kept(node)).collect();
    simulation.finish(&mut everything);
    Run { metadata, records: everything.0, kept }
}

/// Code that is called again with what it was handed publishes the same.
fn is_the_same_replayed(system: &System, plans: &[Plan], counts: &mut Counts) -> Result<(), String> {
    let system = &draw::with_digests(system).ok_or("with one output more, it is refused")?;
    let code = || draw::code(system, &draw::Calls::default(), |_| None);
    let simulation = Simulation::with_operations(system, plans, code());
    let simulation = simulation.map_err(|error| format!("with code: {error}"))?;
    let mut simulation =
        simulation.with_kept_values(system, &KeptOutputs::All).expect("what has no bytes is left out");
    let metadata = simulation.metadata().clone();
    let mut replay = match Replay::new(system, &metadata, code()) {
        Ok(replay) => replay,
        Err(ReplayError::NoValues) => return Ok(()),
        Err(error) => return Err(format!("replay: {error}")),
    };
    simulation.advance(Instant::ZERO + SIMULATED, &mut replay);
    simulation.finish(&mut replay);
    let report = replay.finish();
    match &report.first {
        Some(first) => Err(format!("replayed, it differs: {first}")),
        None if !report.differences.is_empty() => {
            Err(format!("replayed, the same description differs: {:?}", report.differences))
        }
        None if report.unknown() + report.outside > 0 => {
            Err(format!("replayed, not all is known: {report:?}"))
        }
        None => {
            counts.hold("values replayed", report.compared());
            Ok(())
        }
    }
}

/// The same system gives the same records, however it is advanced.
fn happens_again(seed: u64, system: &System, run: &Run) -> Result<(), String> {
    let slices = slices(seed);
    let again = simulate(system, &slices).ok_or("it is refused the second time")?;
    is_the_same(run, &again, &slices)
}

fn slices(seed: u64) -> Vec<Instant> {
    let mut rng = draw::numbers(!seed);
    let mut slices: Vec<i64> = (0..3).map(|_| rng.random_range(0..SIMULATED.as_nanos())).collect();
    slices.sort_unstable();
    slices.into_iter().map(Instant::from_nanos).collect()
}

fn is_the_same(run: &Run, again: &Run, slices: &[Instant]) -> Result<(), String> {
    match again.records.iter().zip(&run.records).position(|(a, b)| a != b) {
        Some(place) => {
            Err(format!("record {place} is another one when it is simulated in slices: {slices:?}"))
        }
        None if again.records.len() != run.records.len() => Err("there are more records in slices".into()),
        None => Ok(()),
    }
}

fn obeys_the_rules(system: &System, plans: &[Plan], run: &Run) -> Result<(), String> {
    let system = system.with_threads_as_tasks();
    let verifier = Verifier::new(&run.metadata, &system, plans, Duration::ZERO);
    let mut verifier = verifier.map_err(|error| format!("verify: {error}"))?;
    run.records.iter().for_each(|record| verifier.record(*record));
    let report = verifier.finish();
    match report.violations.first() {
        Some(violation) => Err(format!("a rule is violated: {violation:?}")),
        None if report.count() + report.possible() > 0 => Err("a violation is not listed".into()),
        None => nothing_is_wrong_for_want_of_events(&system, plans, run, &report),
    }
}

/// Kinds of events of which the trace is without one at a time.
const LEFT_OUT: usize = 3;

/// A recording that left a kind of events out shows nothing wrong, and calls no rule obeyed of which it shows less.
fn nothing_is_wrong_for_want_of_events(
    system: &System,
    plans: &[Plan],
    run: &Run,
    whole: &VerifyReport,
) -> Result<(), String> {
    let there: HashSet<Event> = run.records.iter().map(|record| record.event).collect();
    let there: Vec<Event> = events_to_leave_out().filter(|event| there.contains(event)).collect();
    for turn in 0..LEFT_OUT.min(there.len()) {
        // Another one with each run.
        let left_out = there[(run.records.len() + turn * there.len() / LEFT_OUT) % there.len()];
        let (metadata, records) = recorded_without(&run.metadata, &run.records, &[left_out]);
        let mut contents = Contents::new(&metadata);
        records.iter().for_each(|record| contents.record(*record));
        let Ok(coverage) = Coverage::of(&metadata, &contents) else { continue };
        let verifier = Verifier::new(&metadata, system, plans, Duration::ZERO);
        let mut verifier = verifier.map_err(|error| format!("verify: {error}"))?.with_coverage(coverage);
        records.iter().for_each(|record| verifier.record(*record));
        let report = verifier.finish();
        let name = name_of(left_out);
        if let Some(violation) = report.violations.first() {
            return Err(format!("without {name} a rule is violated: {violation:?}"));
        }
        let seen_less = report
            .rules
            .iter()
            .zip(&whole.rules)
            .find(|(rule, whole)| rule.judged() == Judged::Obeyed && rule.cases < whole.cases);
        if let Some((rule, whole)) = seen_less {
            return Err(format!("without {name} it is called obeyed: {rule:?}, and whole {whole:?}"));
        }
    }
    Ok(())
}

/// No response is longer than its bound, and what holds misses nothing.
fn bounds_hold(system: &System, report: &CheckReport, run: &Run, counts: &mut Counts) -> Result<(), String> {
    let mut worst: HashMap<usize, Duration> = HashMap::new();
    for record in run.records.iter().filter(|record| record.event == Event::COMPLETE) {
        let operation = record.job().operation;
        let Some(known) = system.operations().get(operation.index()) else { continue };
        let Some(dates) = record.dates() else { continue };
        let response = record.time - (dates.deadline - system.tasks[known.task].deadline);
        let longest = worst.entry(operation.index()).or_default();
        *longest = response.max(*longest);
    }
    let names: HashMap<&str, usize> =
        system.operations().iter().map(|operation| (operation.name.as_str(), operation.id.index())).collect();
    for subtask in report.tasks.iter().flat_map(|task| &task.subtasks) {
        let Some(bound) = subtask.bound_ns else { continue };
        counts.hold("bounds", 1);
        let Some(longest) = names.get(subtask.name.as_str()).and_then(|index| worst.get(index)) else {
            continue;
        };
        counts.hold("bounds reached", u64::from(longest.as_nanos() == bound));
        if longest.as_nanos() > bound {
            return Err(format!(
                "{} took {longest}, its bound is {bound} ns ({})",
                subtask.name, subtask.method
            ));
        }
    }
    let mut accounting = Accounting::new(&run.metadata, Duration::from_secs(1));
    run.records.iter().for_each(|record| accounting.record(*record));
    let results = accounting.finish(Instant::ZERO + SIMULATED);
    events_add_up(system, &results, counts)?;
    for (chain, result) in report.chains.iter().zip(&results.chains) {
        let times = [&result.latency, &result.reaction, &result.age];
        for (bound, found) in chain.times.iter().zip(times) {
            let Some(bound_ns) = bound.bound_ns else { continue };
            counts.hold("bounds of chains", 1);
            let longest = found.time_ns.map_or(0, |time| time.max);
            if longest > bound_ns {
                let (name, time) = (&chain.name, bound.time);
                return Err(format!("the {time} of {name} was {longest} ns, its bound is {bound_ns} ns"));
            }
        }
    }
    for task in report.tasks.iter().filter(|task| task.verdict == Verdict::Holds) {
        let Some(result) = results.tasks.iter().find(|result| result.name == task.name) else { continue };
        counts.hold("verdicts", 1);
        let failed = result.missed + result.skipped + result.aborted;
        if failed > 0 && result.messages_lost == 0 {
            return Err(format!("{} holds, and {failed} instances failed", task.name));
        }
    }
    Ok(())
}

/// Events that were pushed came, were lost, or wait; where nothing else can be, no more wait than may.
fn events_add_up(system: &System, results: &Report, counts: &mut Counts) -> Result<(), String> {
    for one in &results.subscriptions {
        let subscription = match &one.operation {
            Some(name) => system
                .operations()
                .iter()
                .find(|operation| operation.name == *name)
                .and_then(|taker| system.subtask(taker.id).subscription.as_ref()),
            None => {
                system.tasks.iter().find(|task| task.name == one.task).and_then(|task| match &task.trigger {
                    Some(Trigger::Events(subscription)) => Some(subscription),
                    _ => None,
                })
            }
        };
        let Some(subscription) = subscription else {
            return Err(format!("{} has events and no subscription", one.subscriber()));
        };
        let qos = system.subscription_qos(subscription);
        counts.hold("events", one.pushed);
        let settled = one.delivered + one.discarded + one.expired;
        let condition = &subscription.condition;
        let waits = !subscription.is_filtered() && condition.comes_at_once() && !condition.is_timed();
        // Whatever time brings is lost like events, and nobody has pushed it.
        let brought = condition.is_timed() && one.delivered <= one.pushed;
        if settled > one.pushed && !brought || waits && one.others() > u64::from(qos.max_events) {
            return Err(format!("events do not add up: {one:?}"));
        }
    }
    Ok(())
}

/// What is promised is received, as the monitors see it and by the work that was there; and the two agree.
fn promises_are_kept(system: &System, check: &Check, run: &Run, counts: &mut Counts) -> Result<(), String> {
    let is_free = system.overhead == talea_model::Overhead::default();
    for (node, kept) in run.kept.iter().enumerate() {
        let Some(edges) = kept else { continue };
        let composes = check.hierarchies.iter().any(|hierarchy| {
            hierarchy.node == system.nodes[node].name && hierarchy.verdict == Composition::Composes
        });
        let doubted = if system.nodes.len() == 1 { doubted(system) } else { Vec::new() };
        for edge in edges {
            counts.hold("promises", 1);
            let by_work = edge.sums.unwrap_or_default();
            let is_broken =
                edge.violations > 0 || edge.receipts.is_some_and(|receipts| receipts.violations > 0);
            let misses = by_work.missing_ns > 0 || by_work.excess_ns > 0;
            if misses && edge.verdict() == talea_policy::arrangement::Verdict::Kept {
                return Err(format!(
                    "by the work that was there it is broken, and is called kept: {edge:#?}"
                ));
            }
            // What a machine withholds, the monitors see by windows and the other judge at every instant.
            if is_free && misses && !is_broken {
                return Err(format!(
                    "by the work that was there it is broken, and not by the monitor: {edge:#?}"
                ));
            }
            let is_doubted = doubted.contains(&(edge.parent.clone(), edge.child.clone()));
            let is_promised =
                composes && edge.basis == Basis::Derived && !is_doubted && system.nodes.len() == 1;
            if is_free && is_promised && is_broken {
                return Err(format!("a promise is broken on a machine without costs: {edge:#?}"));
            }
            if edge.received_ns > SIMULATED.as_nanos() * system.nodes[node].cpus.len() as i64 {
                return Err(format!("it received more than there is: {edge:#?}"));
            }
        }
        if is_free {
            received_is_executed(edges, run)?;
        }
    }
    Ok(())
}

/// Each window in which a promise was broken is told once by the records, and nothing else is.
fn breaches_are_told(run: &Run, counts: &mut Counts) -> Result<(), String> {
    let mut told: HashMap<usize, (u64, u64)> = HashMap::new();
    for broken in run.records.iter().filter_map(Violation::read) {
        let (granted, withheld) = told.entry(usize::from(broken.edge)).or_default();
        *(if broken.side == ViolationSide::Withheld { withheld } else { granted }) += 1;
    }
    let edges = run.kept.iter().flatten().flatten();
    for (number, edge) in edges.enumerate() {
        let (granted, withheld) = told.remove(&number).unwrap_or_default();
        let received = edge.receipts.map_or(0, |receipts| receipts.violations);
        counts.hold("breaches", granted + withheld);
        // What is not granted is not received either.
        let are_told = granted == edge.violations && (granted > 0 || withheld == received);
        if !are_told {
            return Err(format!("told {granted} and {withheld} times that a promise is broken: {edge:#?}"));
        }
    }
    if told.is_empty() { Ok(()) } else { Err(format!("broken is told what nobody promised: {told:?}")) }
}

/// What threads received by the books of the hierarchy is what their jobs executed by the records of jobs.
fn received_is_executed(edges: &[Kept], run: &Run) -> Result<(), String> {
    let mut executed: HashMap<usize, i64> = HashMap::new();
    let mut running: HashMap<usize, Instant> = HashMap::new();
    for record in &run.records {
        let begins = record.event == Event::START || record.event == Event::RESUME;
        let ends = [Event::PREEMPT, Event::WAIT, Event::COMPLETE, Event::ABORT].contains(&record.event);
        if !begins && !ends {
            continue;
        }
        let operation = record.job().operation.index();
        if begins {
            running.insert(operation, record.time);
        } else if let Some(since) = running.remove(&operation) {
            *executed.entry(operation).or_default() += (record.time - since).as_nanos();
        }
    }
    for (operation, since) in running {
        *executed.entry(operation).or_default() += (Instant::ZERO + SIMULATED - since).as_nanos();
    }
    let mut received: HashMap<&str, i64> = HashMap::new();
    for edge in edges {
        *received.entry(edge.child.as_str()).or_default() += edge.received_ns;
    }
    for (index, operation) in run.metadata.operations.iter().enumerate() {
        let task = &run.metadata.tasks[operation.task];
        if task.activity.is_task() {
            continue;
        }
        let Some(received) = received.get(task.name.as_str()) else { continue };
        let executed = executed.get(&index).copied().unwrap_or_default();
        if executed != *received {
            return Err(format!(
                "{} executed {executed} ns, and is said to have received {received} ns",
                task.name
            ));
        }
    }
    Ok(())
}

/// The parts of each explained response are the response.
fn explanations_add_up(run: &Run, counts: &mut Counts) -> Result<(), String> {
    for which in [Which::Failed, Which::Worst] {
        let question = Question { which, task: None, limit: 50 };
        let explanations = explain(&run.metadata, question, |sink| {
            run.records.iter().for_each(|record| sink.record(*record));
            Ok::<_, Infallible>(())
        });
        let explanations = explanations.map_err(|error| format!("explain: {error:?}"))?;
        for one in explanations.list.iter().filter(|one| !one.intervals.is_empty()) {
            counts.hold("explanations", 1);
            let sum: Duration = one.totals.iter().map(|total| total.sum()).sum();
            if sum != one.response() {
                return Err(format!("{:?} took {}, and its parts {sum}", one.subject, one.response()));
            }
            if one.uncertain() > Duration::ZERO {
                return Err(format!(
                    "of {:?}, {} are uncertain, though nothing was lost",
                    one.subject,
                    one.uncertain()
                ));
            }
        }
    }
    Ok(())
}

/// The longest ways along chains are explained without gaps, and each of their jobs led to the last one. A way goes on from what an operation took
/// before where one of its jobs found nothing; that job has nothing to do with it.
fn ways_agree(run: &Run, counts: &mut Counts) -> Result<(), String> {
    let replay = |sink: &mut dyn Sink| {
        run.records.iter().for_each(|record| sink.record(*record));
        Ok::<_, Infallible>(())
    };
    let chains = 0..run.metadata.chains.len();
    let wanted: Vec<(usize, Measure)> =
        chains.flat_map(|chain| Measure::ALL.map(|measure| (chain, measure))).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let explanations = explain_chains(&run.metadata, &wanted, replay);
    let explanations = explanations.map_err(|error| format!("explain a chain: {error:?}"))?;
    let without_value = |record: &Record| Take::read(record).filter(|take| take.from.is_none());
    let without_value: HashSet<JobId> =
        run.records.iter().filter_map(|record| Some(without_value(record)?.job)).collect();
    for one in &explanations.list {
        counts.hold("ways", 1);
        let sum: Duration = one.totals.iter().map(|total| total.sum()).sum();
        if sum != one.response() {
            return Err(format!("{:?} took {}, and its parts {sum}", one.subject, one.response()));
        }
        let Some(last) = one.hops.last() else { continue };
        let limits = Limits { depth: one.hops.len() + 8, jobs: 5_000 };
        let Ok(flow) = flow(&run.metadata, (last.job, Direction::Back), limits, replay);
        let led: HashSet<JobId> = flow.steps.iter().map(|step| step.job).collect();
        let own = one.hops.iter().rposition(|hop| without_value.contains(&hop.job)).unwrap_or(0);
        if let Some(hop) = one.hops[own..].iter().find(|hop| !led.contains(&hop.job) && !flow.is_cut) {
            let [hop, last] = [hop.job, last.job].map(|job| run.metadata.job_name(job));
            return Err(format!("{hop} stands on {:?} and did not lead to {last}", one.subject));
        }
    }
    Ok(())
}
