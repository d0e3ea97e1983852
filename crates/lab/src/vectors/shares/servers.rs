//! Servers: constant and total bandwidth.

use super::super::{Complaint, same, same_rows};
use super::Rational;
use super::clock::{Actor, Clock, First, at};
use super::observed::{Event, Happening, Log, Observed};
use serde::Deserialize;
use std::collections::BTreeMap;
use talea_policy::hierarchy::{Engine, Fraction, Parameters};
use talea_policy::scheduler::{Budget, Exhaustion, Requests, Reservation, TotalBandwidth, Uniprocessor};
use talea_time::{Duration, Instant, Work};

/// Arrival and work.
type JobRow = (i64, i64);
/// Start, end, task or server, job.
type SegmentRow = (i64, i64, String, usize);
/// When, what, budget and deadline from then on.
type LogRow = (i64, String, i64, i64);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConstantCase {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "alg")]
    _alg: String,
    #[serde(rename = "source")]
    _source: String,
    horizon_ns: i64,
    hard_tasks: Vec<TaskRow>,
    servers: Vec<ServerRow>,
    expect: ConstantExpectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskRow {
    id: String,
    period_ns: i64,
    wcet_ns: i64,
    phase_ns: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerRow {
    id: String,
    budget_ns: i64,
    period_ns: i64,
    jobs_ns: Vec<JobRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstantExpectation {
    segments: Vec<SegmentRow>,
    server_job_finish: Vec<(String, usize, i64)>,
    server_log: BTreeMap<String, Vec<LogRow>>,
}

fn reservation(budget: i64, period: i64) -> Parameters {
    Parameters::Reservation { budget: Work::from_nanos(budget), period: Duration::from_nanos(period) }
}

/// Servers first, then the hard tasks, each a server of its own budget and period: what it asks for is never more than
/// its budget, and its deadline is the end of its period.
pub(super) fn constant_bandwidth(case: &ConstantCase) -> Result<(), Complaint> {
    let log = Log::new();
    let rule = Reservation::new(Exhaustion::Postpone, Fraction::ONE);
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(Uniprocessor::new(Observed::new(rule, &log))));
    let burst = |&(arrival, work): &JobRow| (at(arrival), Work::from_nanos(work));
    let servers = case.servers.iter().map(|server| {
        let jobs: Vec<(Instant, Work)> = server.jobs_ns.iter().map(burst).collect();
        (server.id.clone(), reservation(server.budget_ns, server.period_ns), jobs)
    });
    let tasks = case.hard_tasks.iter().map(|task| {
        let releases = (task.phase_ns..case.horizon_ns).step_by(task.period_ns.max(1) as usize);
        let jobs = releases.map(|release| (at(release), Work::from_nanos(task.wcet_ns))).collect();
        (task.id.clone(), reservation(task.wcet_ns, task.period_ns), jobs)
    });
    let (mut names, mut actors) = (Vec::new(), Vec::new());
    for (name, parameters, jobs) in servers.chain(tasks) {
        let thread = engine.add_thread(root, parameters);
        let thread = thread.map_err(|refusal| Complaint::Unreadable(refusal.to_string()))?;
        names.push(name);
        actors.push(Actor::new(thread, jobs));
    }
    let history = Clock::new(engine, actors, First::Completions).run(at(case.horizon_ns));
    let segments: Vec<SegmentRow> = history
        .pieces
        .iter()
        .map(|piece| (piece.start.as_nanos(), piece.end.as_nanos(), names[piece.actor].clone(), piece.burst))
        .collect();
    same_rows("segment", &case.expect.segments, &segments)?;
    let of_servers = history.finished.iter().filter(|(actor, ..)| *actor < case.servers.len());
    let finished: Vec<(String, usize, i64)> =
        of_servers.map(|(actor, job, end)| (names[*actor].clone(), *job, end.as_nanos())).collect();
    same_rows("server job", &case.expect.server_job_finish, &finished)?;
    let mut logs: BTreeMap<String, Vec<LogRow>> =
        case.servers.iter().map(|server| (server.id.clone(), Vec::new())).collect();
    for event in log.take() {
        if let (Some(rows), Some(row)) = (logs.get_mut(&names[event.place]), log_row(&event)) {
            rows.push(row);
        }
    }
    same("servers", &case.expect.server_log.keys().collect::<Vec<_>>(), &logs.keys().collect::<Vec<_>>())?;
    for (server, expected) in &case.expect.server_log {
        same_rows(&format!("log of {server}"), expected, &logs[server])?;
    }
    Ok(())
}

fn log_row(event: &Event<Budget>) -> Option<LogRow> {
    let renewed = event.before.deadline() != event.after.deadline();
    let what = match (event.happening, renewed) {
        (Happening::Woke, true) => "arrive_new",
        (Happening::Woke, false) => "arrive_keep",
        (Happening::Ran, true) => "recharge",
        _ => return None,
    };
    let (left, deadline) = (event.after.left().as_nanos(), event.after.deadline().as_nanos());
    Some((event.at.as_nanos(), what.into(), left, deadline))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TotalCase {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "alg")]
    _alg: String,
    utilisation: Rational,
    requests_ns: Vec<JobRow>,
    expect: TotalExpectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TotalExpectation {
    deadlines_ns: Vec<Rational>,
}

/// The server alone. Requests are handed over one by one; each is done by its deadline at the latest, so that a deadline does not
/// depend on whether a request that waits is known already.
pub(super) fn total_bandwidth(case: &TotalCase) -> Result<(), Complaint> {
    let log = Log::new();
    let mut engine = Engine::new(1);
    let rule = Observed::new(TotalBandwidth::new(Fraction::ONE, Requests::Whole), &log);
    let root = engine.add_root(Box::new(Uniprocessor::new(rule)));
    let part = |part: i128| i64::try_from(part).map_err(|error| Complaint::Unreadable(error.to_string()));
    let share = reservation(part(case.utilisation.numerator)?, part(case.utilisation.denominator)?);
    let thread = engine.add_thread(root, share);
    let thread = thread.map_err(|refusal| Complaint::Unreadable(refusal.to_string()))?;
    let mut idle_from = Instant::ZERO;
    let bursts = case.requests_ns.iter().map(|&(arrival, work)| {
        let start = at(arrival).max(idle_from);
        idle_from = start + Duration::from_nanos(work);
        (start, Work::from_nanos(work))
    });
    let bursts: Vec<(Instant, Work)> = bursts.collect();
    let horizon = idle_from;
    Clock::new(engine, vec![Actor::new(thread, bursts)], First::Completions).run(horizon);
    let woken = log.take();
    let woken = woken.iter().filter(|event| event.happening == Happening::Woke);
    let deadlines: Vec<Rational> = woken
        .map(|event| {
            let (numerator, denominator) = event.after.deadline();
            Rational::new(numerator, denominator)
        })
        .collect();
    same_rows("request", &case.expect.deadlines_ns, &deadlines)
}
