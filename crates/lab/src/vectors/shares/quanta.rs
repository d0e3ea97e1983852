//! Schedulers with quanta: start-time fair queueing, EEVDF, stride and lottery.

use super::super::{Complaint, same, same_rows};
use super::Rational;
use super::clock::{Actor, Clock, First, at};
use super::observed::{Event, Happening, Log, Observed};
use serde::Deserialize;
use talea_policy::hierarchy::{Engine, Parameters, ProcessorId, SchedulerId, VpId};
use talea_policy::job::Job;
use talea_policy::scheduler::{
    Draws, Eevdf, FairQueue, Lottery, Rule, Stride, TICKET_PARTS, Tickets, Uniprocessor, Virtual, WakeUp,
};
use talea_time::{Duration, Instant, Work};

/// Start, end, thread, the two tags.
type QuantumRow = (i64, i64, String, Rational, Rational);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FairQueueCase {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "alg")]
    _alg: String,
    quantum_ns: i64,
    horizon_ns: i64,
    threads: Vec<ThreadRow>,
    expect: Vec<QuantumRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadRow {
    id: String,
    weight: u32,
    warp_ns: i64,
    bursts_ns: Vec<(i64, i64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EevdfCase {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "alg")]
    _alg: String,
    quantum_ns: i64,
    horizon_ns: i64,
    clients: Vec<ClientRow>,
    expect: Vec<QuantumRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientRow {
    id: String,
    weight: u32,
    arrive_ns: i64,
    request_ns: i64,
}

fn engine<R: Rule + 'static>(rule: R) -> (Engine, SchedulerId) {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(Uniprocessor::new(rule)));
    (engine, root)
}

fn thread(engine: &mut Engine, root: SchedulerId, parameters: Parameters) -> Result<VpId, Complaint> {
    engine.add_thread(root, parameters).map_err(|refusal| Complaint::Unreadable(refusal.to_string()))
}

/// One row per quantum.
fn rows<A>(
    log: &Log<Event<A>>,
    names: &[String],
    tags: fn(&Event<A>) -> (Virtual, Virtual),
) -> Vec<QuantumRow> {
    let row = |event: &Event<A>| {
        let Happening::StintOver(used) = event.happening else { return None };
        let end = event.at.as_nanos();
        let exact = |tag: Virtual| {
            let (numerator, denominator) = tag.as_nanos();
            Rational::new(numerator, denominator)
        };
        let (first, second) = tags(event);
        Some((end - used.as_nanos(), end, names[event.place].clone(), exact(first), exact(second)))
    };
    log.take().iter().filter_map(row).collect()
}

pub(super) fn fair_queue(case: &FairQueueCase) -> Result<(), Complaint> {
    let log = Log::new();
    let works =
        case.threads.iter().map(|row| row.bursts_ns.iter().map(|burst| Work::from_nanos(burst.1)).collect());
    let rule = FairQueue::new(Work::from_nanos(case.quantum_ns), WakeUp::Waits);
    let (mut engine, root) = engine(Observed::new(rule, &log).with_bursts(works));
    let mut actors = Vec::new();
    for row in &case.threads {
        let warp = Duration::from_nanos(row.warp_ns);
        let thread = thread(&mut engine, root, Parameters::WarpedWeight { weight: row.weight, warp })?;
        let burst = |&(arrival, work): &(i64, i64)| (at(arrival), Work::from_nanos(work));
        actors.push(Actor::new(thread, row.bursts_ns.iter().map(burst).collect()));
    }
    Clock::new(engine, actors, First::Arrivals).run(at(case.horizon_ns));
    let names: Vec<String> = case.threads.iter().map(|row| row.id.clone()).collect();
    let rows = rows(&log, &names, |event| (event.before.start(), event.after.start()));
    same_rows("quantum", &case.expect, &rows)
}

pub(super) fn eevdf(case: &EevdfCase) -> Result<(), Complaint> {
    let log = Log::new();
    let (mut engine, root) = engine(Observed::new(Eevdf::new(Work::from_nanos(case.quantum_ns)), &log));
    let mut actors = Vec::new();
    for row in &case.clients {
        let request = Work::from_nanos(row.request_ns);
        let thread = thread(&mut engine, root, Parameters::Requests { weight: row.weight, request })?;
        let endless = Work::from_nanos(case.horizon_ns + 1);
        actors.push(Actor::new(thread, vec![(at(row.arrive_ns), endless)]));
    }
    Clock::new(engine, actors, First::Arrivals).run(at(case.horizon_ns));
    let names: Vec<String> = case.clients.iter().map(|row| row.id.clone()).collect();
    let rows = rows(&log, &names, |event| (event.before.eligible(), event.before.deadline()));
    same_rows("quantum", &case.expect, &rows)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StrideCase {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "alg")]
    _alg: String,
    stride1: u32,
    tickets: Vec<u32>,
    quanta: usize,
    expect: StrideExpectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrideExpectation {
    sequence: Vec<usize>,
    final_pass: Vec<i128>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LotteryCase {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "alg")]
    _alg: String,
    tickets: Vec<u32>,
    draws: Vec<u64>,
    expect: LotteryExpectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LotteryExpectation {
    sequence: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompensatedCase {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "alg")]
    _alg: String,
    tickets: Vec<u32>,
    quantum_ns: i64,
    used_ns: Vec<i64>,
    draws: Vec<Rational>,
    expect: CompensatedExpectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompensatedExpectation {
    sequence: Vec<usize>,
    final_values: Vec<Rational>,
}

/// Where only the order of quanta matters.
const QUANTUM: Work = Work::from_nanos(1_000);

/// Who ran, in order, and the last account of each.
type Turns<A> = (Vec<usize>, Vec<Option<A>>);

/// Threads with tickets that use as much of each quantum as `used` says and want more at once.
fn take_turns<R: Rule<Account: Copy> + 'static>(
    rule: R,
    tickets: &[u32],
    quantum: Work,
    used: impl Iterator<Item = Work>,
) -> Result<Turns<R::Account>, Complaint> {
    let log = Log::new();
    let (mut engine, root) = engine(Observed::new(rule, &log));
    let mut now = Instant::ZERO;
    let job = |thread: VpId, now| Job {
        release: now,
        deadline: Instant::MAX,
        wcet: Work::ZERO,
        rank: 0,
        number: 0,
        tag: thread.index() as u32,
    };
    for tickets in tickets {
        let thread = thread(&mut engine, root, Parameters::Weight(*tickets))?;
        engine.request(thread, job(thread, now), now);
    }
    for used in used {
        let _ = engine.settle(now);
        let Some(running) = engine.running(ProcessorId::from_index(0)) else { break };
        now += used.at_full_speed();
        if used < quantum {
            engine.release(running.thread(), now);
            engine.request(running.thread(), job(running.thread(), now), now);
        } else {
            engine.fire_timers(now);
        }
    }
    let events = log.take();
    let over = events.iter().filter(|event| matches!(event.happening, Happening::StintOver(_)));
    let sequence = over.clone().map(|event| event.place).collect();
    let last = |place: usize| events.iter().rfind(|event| event.place == place).map(|event| event.after);
    Ok((sequence, (0..tickets.len()).map(last).collect()))
}

pub(super) fn stride(case: &StrideCase) -> Result<(), Complaint> {
    let used = std::iter::repeat_n(QUANTUM, case.quanta);
    let (sequence, last) =
        take_turns(Stride::new(case.stride1.into(), QUANTUM), &case.tickets, QUANTUM, used)?;
    same("sequence", &case.expect.sequence, &sequence)?;
    let passes: Vec<i128> = last.into_iter().flatten().map(|account| account.pass(QUANTUM)).collect();
    same("final_pass", &case.expect.final_pass, &passes)
}

/// Random draws that are given by the case.
#[derive(Clone)]
struct Drawn {
    /// In parts of a ticket, rounded down, which compares with whole parts as the exact draw does.
    draws: Vec<u128>,
    next: usize,
}

impl Drawn {
    fn new(draws: impl Iterator<Item = Rational>) -> Self {
        let parts = |draw: Rational| (draw.numerator * TICKET_PARTS as i128 / draw.denominator) as u128;
        Drawn { draws: draws.map(parts).collect(), next: 0 }
    }
}

impl Draws for Drawn {
    fn below(&self, total: u128) -> u128 {
        // After the last one, and while not all threads have asked yet, any draw will do.
        self.draws.get(self.next).copied().unwrap_or(0).min(total - 1)
    }

    fn advance(&mut self) {
        self.next += 1;
    }
}

pub(super) fn lottery(case: &LotteryCase) -> Result<(), Complaint> {
    let draws = Drawn::new(case.draws.iter().map(|draw| Rational::new(i128::from(*draw), 1)));
    let used = std::iter::repeat_n(QUANTUM, case.draws.len());
    let (sequence, _) = take_turns(Lottery::new(QUANTUM, draws), &case.tickets, QUANTUM, used)?;
    same("sequence", &case.expect.sequence, &sequence)
}

pub(super) fn compensated_lottery(case: &CompensatedCase) -> Result<(), Complaint> {
    let quantum = Work::from_nanos(case.quantum_ns);
    let rule = Lottery::new(quantum, Drawn::new(case.draws.iter().copied()));
    let used = case.used_ns.iter().map(|used| Work::from_nanos(*used));
    let (sequence, last) = take_turns(rule, &case.tickets, quantum, used)?;
    same("sequence", &case.expect.sequence, &sequence)?;
    let value = |tickets: Tickets| {
        let (numerator, denominator) = tickets.value();
        Rational::new(numerator as i128, denominator as i128)
    };
    let values: Vec<Rational> = last.into_iter().flatten().map(value).collect();
    same("final_values", &case.expect.final_values, &values)
}
