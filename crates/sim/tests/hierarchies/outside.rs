//! A judge from outside: of the records of jobs alone it says what was wanted and received of every thread, and from these what was due.
//!
//! It hears nothing of schedulers, virtual processors or windows of theirs. Work is there from a burst's release until it ends; service is where
//! a burst has a processor. It holds these against the definitions, as far as they are lines: everything that a promise comes to in every
//! interval. What it finds and what the run says have to agree.

use super::shares::float;
use crate::replay::Everything;
use proptest::prelude::*;
use std::collections::BTreeMap;
use talea_conformance::forest::{self, Tree};
use talea_conformance::promises::{admitted, cases, doubted};
use talea_guarantee::guarantee::{Continuity, Guarantee, Hardness};
use talea_model::{
    Execution, Overhead, Request, SchedulerBuilder, SchedulerKind, System, ThreadBuilder, ThreadWork,
};
use talea_policy::arrangement::{Basis, Kept};
use talea_record::{Event, JobId, Record};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

/// What happened to one thread: when there was work, and when it was worked at; both in order and apart.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pending: Vec<(i64, i64)>,
    served: Vec<(i64, i64)>,
}

/// By thread, in the order of the description.
pub fn seen(system: &System, records: &[Record], end: i64) -> Vec<Seen> {
    let mut open: BTreeMap<usize, (u32, i64, Option<i64>)> = BTreeMap::new();
    let mut seen = vec![Seen::default(); system.threads.len()];
    for record in records {
        let (event, now) = (record.event, record.time.as_nanos());
        if ![Event::RELEASE, Event::START, Event::RESUME, Event::PREEMPT, Event::COMPLETE].contains(&event) {
            continue;
        }
        let thread = JobId::unpack(record.causal).operation.index();
        let (pending, since, running) = open.entry(thread).or_insert((0, 0, None));
        match event {
            Event::RELEASE => {
                *since = if *pending == 0 { now } else { *since };
                *pending += 1;
            }
            Event::START | Event::RESUME => *running = Some(now),
            _ => {
                seen[thread].served.extend(running.take().map(|from| (from, now)));
                *pending -= u32::from(event == Event::COMPLETE);
                if *pending == 0 {
                    seen[thread].pending.push((*since, now));
                }
            }
        }
    }
    for (thread, (pending, since, running)) in open {
        seen[thread].served.extend(running.map(|from| (from, end)));
        if pending > 0 {
            seen[thread].pending.push((since, end));
        }
    }
    seen
}

impl Seen {
    fn wanted(&self) -> i64 {
        self.pending.iter().map(|(from, to)| to - from).sum()
    }

    fn received(&self) -> i64 {
        self.served.iter().map(|(from, to)| to - from).sum()
    }

    /// The most that any interval with work in all of it holds less than `share` of it.
    fn deficit(&self, share: f64) -> f64 {
        let mut worst = 0.0_f64;
        for (from, to) in &self.pending {
            // What is missing is greatest where service begins, and counts from where service has ended.
            let (mut lag, mut lowest, mut at) = (0.0_f64, 0.0_f64, *from);
            let inside = self.served.iter().filter(|(begin, end)| end > from && begin < to);
            for (begin, end) in inside {
                lag += share * (begin - at) as f64;
                worst = worst.max(lag - lowest);
                lag -= (1.0 - share) * (end - begin) as f64;
                lowest = lowest.min(lag);
                at = *end;
            }
            lag += share * (to - at) as f64;
            worst = worst.max(lag - lowest);
        }
        worst
    }

    /// The most that any interval holds more than `share` of it.
    fn excess(&self, share: f64) -> f64 {
        let (mut worst, mut lead, mut lowest, mut at) = (0.0_f64, 0.0_f64, 0.0_f64, 0);
        for (begin, end) in &self.served {
            lead -= share * (begin - at) as f64;
            lowest = lowest.min(lead);
            lead += (1.0 - share) * (end - begin) as f64;
            worst = worst.max(lead - lowest);
            at = *end;
        }
        worst
    }

    /// By how much the guarantee was missed; below zero if it was kept.
    fn missed(&self, guarantee: &Guarantee) -> Option<f64> {
        let nanos = float;
        match guarantee {
            Guarantee::All => Some(self.deficit(1.0)),
            Guarantee::Psbe { share, error } => {
                Some(self.deficit(nanos(share.ratio())) - nanos(error.nanos()))
            }
            Guarantee::Reservation(reservation) => {
                let (amount, period) =
                    (nanos(reservation.amount().nanos()), nanos(reservation.period().nanos()));
                let share = amount / period;
                let gap = match reservation.continuity() {
                    Continuity::Basic => 2.0 * (period - amount),
                    Continuity::Continuous => period - amount,
                };
                let least = self.deficit(share) - share * gap;
                let most = match reservation.hardness() {
                    Hardness::Hard => self.excess(share) - 2.0 * amount,
                    Hardness::Soft => f64::MIN,
                };
                Some(least.max(most))
            }
            Guarantee::Resu(_) | Guarantee::Ps(_) | Guarantee::Null => None,
        }
    }
}

const END: i64 = 2_000_000_000;

/// What is rounded on the way.
const ROUNDING: f64 = 200_000.0;

fn run(system: &System) -> Result<(Vec<Kept>, Vec<Seen>), TestCaseError> {
    let mut simulation = Simulation::new(system).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let mut records = Everything::default();
    simulation.advance(Instant::from_nanos(END), &mut records);
    let kept = simulation.kept(0).expect("the node has a hierarchy");
    simulation.finish(&mut records);
    let seen = seen(system, &records.0, END);
    Ok((kept, seen))
}

/// The judge and the run agree about every thread: about the sums, and that what is missing is told.
fn assert_agree(system: &System, drawn: &str) -> Result<u32, TestCaseError> {
    let (kept, seen) = run(system)?;
    let (doubted, mut judged) = (doubted(system), 0);
    for (thread, seen) in system.threads.iter().zip(&seen) {
        let Some(edge) = kept.iter().find(|edge| edge.child == thread.name) else { continue };
        let sums = edge.sums.expect("the simulation knows the work of its threads");
        prop_assert_eq!(sums.wanted_ns, seen.wanted(), "{} {:#?}\n{}", thread.name, edge, drawn);
        prop_assert_eq!(sums.received_ns, seen.received(), "{} {:#?}\n{}", thread.name, edge, drawn);
        // Nobody sleeps who has work: what the hierarchy took for demand is just that.
        prop_assert_eq!(edge.wanted_ns, Some(seen.wanted()), "{} {:#?}\n{}", thread.name, edge, drawn);
        let guarantee: Guarantee = edge.guarantee.parse().expect("it was printed");
        let Some(missed) = seen.missed(&guarantee) else { continue };
        judged += 1;
        let is_promised =
            edge.basis == Basis::Derived && !doubted.contains(&(edge.parent.clone(), edge.child.clone()));
        prop_assert!(!is_promised || missed <= ROUNDING, "{missed} ns missed of {edge:#?}\n{drawn}");
        prop_assert!(
            missed <= ROUNDING || edge.is_broken(),
            "{missed} ns missed unseen of {edge:#?}\n{drawn}"
        );
    }
    Ok(judged)
}

fn agree(trees: impl Strategy<Value = Tree>, cpus: &[u16], number: u32) {
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { failure_persistence: None, ..cases(number) });
    let outcome = runner.run(&trees, |tree| {
        let tree = admitted(&tree, cpus);
        assert_agree(&tree.system_on(cpus), &tree.drawn()).map(|_| ())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn the_run_and_a_judge_of_its_records_agree() {
    agree(forest::trees(), &[0], 48);
}

#[test]
fn they_agree_on_several_processors_too() {
    agree(forest::surplus(), &[0, 1], 24);
}

/// Threads beside one that always wants the processor, each in bursts that are shorter than what it is promised, longer, or exactly that.
#[derive(Clone, Debug)]
struct Beside {
    kind: SchedulerKind,
    quantum_us: i64,
    /// Share or budget in hundredths, length of a burst in microseconds, and demand in hundredths of what is promised.
    threads: Vec<(u32, i64, i64)>,
}

fn beside() -> impl Strategy<Value = Beside> {
    use SchedulerKind as K;
    let kind = prop::sample::select(vec![
        K::SFQ,
        K::PROPORTIONAL_SHARE,
        K::EEVDF,
        K::RESERVATION,
        K::CBS,
        K::TBS,
        K::RESOURCE_KERNEL,
        K::RIALTO,
        K::STRIDE,
        K::SOFT_CBS,
        K::BSS_I,
    ]);
    let demand = prop_oneof![Just(100_i64), 50..100_i64, 101..300_i64];
    let thread = (5..20_u32, 20..4_000_i64, demand);
    (kind, 200..6_000_i64, prop::collection::vec(thread, 1..4))
        .prop_map(|(kind, quantum_us, threads)| Beside { kind, quantum_us, threads })
}

impl Beside {
    fn system(&self) -> System {
        let is_share = self.kind.declaration().demand() == talea_guarantee::scheduler::Demand::Weight;
        let asked = |hundredths: u32| match self.kind {
            _ if is_share => Request::share(std::num::NonZeroU32::new(hundredths).expect("above zero")),
            kind if kind == SchedulerKind::BSS_I => {
                Request::Guarantee(format!("RESU 0.{hundredths:02}").parse().expect("a rate"))
            }
            kind => {
                let hardness = if matches!(kind.name, "rialto") { "RESCS" } else { "RESBS" };
                let hardness = match kind.name {
                    "reservation" | "cbs" | "resource-kernel" => "RESBH",
                    _ => hardness,
                };
                let amount = hundredths * 80;
                Request::Guarantee(format!("{hardness} {amount}us 8ms").parse().expect("an amount"))
            }
        };
        let mut scheduler = SchedulerBuilder::new("S", self.kind);
        if self.kind.has_quantum() {
            scheduler = scheduler.quantum(Duration::from_micros(self.quantum_us));
        }
        let us = |us: i64| Work::from_nanos(us * 1_000);
        let mut system = System::builder("beside").scheduler(scheduler);
        let all: u32 = self.threads.iter().map(|(hundredths, ..)| hundredths).sum();
        for (place, (hundredths, burst, demand)) in self.threads.iter().enumerate() {
            // Of the whole, in hundredths: with weights, exactly what they ask for; the greedy one has the rest.
            let period = (burst * 10_000 / (i64::from(*hundredths) * demand)).max(1);
            let work = ThreadWork::Bursts {
                burst: Execution::Constant(us(*burst)),
                period: Duration::from_micros(period),
            };
            system =
                system.thread(ThreadBuilder::new(format!("t{place}"), work).under("S", asked(*hundredths)));
        }
        // The resource kernel admits less than a processor.
        let greedy = if self.kind.name == "resource-kernel" { 5 } else { 95 - all };
        let greedy = if is_share { 100 - all } else { greedy };
        system
            .thread(ThreadBuilder::new("greedy", ThreadWork::CpuBound).under("S", asked(greedy)))
            .build()
            .expect("sound")
    }
}

/// Whatever kind, and whether threads are ahead, behind or exactly at what they are promised, in bursts from 20 µs up.
#[test]
fn threads_that_are_behind_are_given_what_they_are_promised() {
    let mut runner =
        proptest::test_runner::TestRunner::new(ProptestConfig { failure_persistence: None, ..cases(160) });
    let outcome = runner.run(&beside(), |beside| {
        let system = beside.system();
        if Simulation::new(&system).is_err() {
            return Err(TestCaseError::reject("not admitted"));
        }
        assert_agree(&system, &format!("{beside:?}"))?;
        let (kept, seen) = run(&system)?;
        let edges = kept.iter().filter(|edge| edge.child != "greedy");
        for (edge, (seen, (hundredths, _, demand))) in edges.zip(seen.iter().zip(&beside.threads)) {
            prop_assert!(!edge.is_broken() && !edge.is_unjudged(), "{edge:#?}\n{beside:?}");
            // Two seconds are long beside quanta and periods: who always wants more has what it is promised, but for a twentieth.
            let promised = i64::from(*hundredths) * END / 100;
            let least = promised * (*demand).min(100) / 100 * 9 / 10 - 100_000_000;
            prop_assert!(seen.received() >= least, "{} of {least} {edge:#?}\n{beside:?}", seen.received());
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

/// The same demand, whole or cut into bursts of any length, under switches that cost more or less, gets one verdict.
#[test]
fn one_demand_has_one_verdict_however_it_is_cut() {
    for switch_us in [20, 100, 900, 1_500] {
        let verdict = |work: ThreadWork| {
            let asked = || Request::Guarantee("RESBH 5ms 10ms".parse().expect("a guarantee"));
            let system = System::builder("cut")
                .overhead(Overhead { switch: Work::from_nanos(switch_us * 1_000), ..Overhead::default() })
                .scheduler(SchedulerBuilder::new("R", SchedulerKind::RESERVATION))
                .thread(ThreadBuilder::new("a", work).under("R", asked()))
                .thread(ThreadBuilder::new("b", ThreadWork::CpuBound).under("R", asked()))
                .build()
                .expect("sound");
            let mut simulation = Simulation::new(&system).expect("it is admitted");
            simulation.advance(Instant::from_nanos(END), &mut super::Nowhere);
            simulation.kept(0).expect("a hierarchy")[0].verdict()
        };
        let bursts = |burst_us: i64| ThreadWork::Bursts {
            burst: Execution::Constant(Work::from_nanos(burst_us * 1_000)),
            period: Duration::from_micros(burst_us * 2),
        };
        let whole = verdict(ThreadWork::CpuBound);
        for burst_us in [50, 500, 2_000, 5_000, 50_000] {
            assert_eq!(
                verdict(bursts(burst_us)),
                whole,
                "bursts of {burst_us} µs, switches of {switch_us} µs"
            );
        }
        let is_dear = switch_us >= 900;
        assert_eq!(whole != talea_policy::arrangement::Verdict::Kept, is_dear, "{switch_us} µs of 5 ms");
    }
}
