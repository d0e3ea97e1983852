//! How fast threads under a hierarchy are simulated: time per scheduling event, 100 threads and five levels.
//!
//! `cargo bench -p talea-sim --bench threads [-- --json] [--quick]`
//!
//! Two thirds of the threads come in bursts, the others never end; bursts ask for about nine tenths of the processor. A
//! scheduling event is a burst that arrives or ends, or a timer. The floor is the same without monitors.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Instant as WallClock;
use talea_guarantee::guarantee::Guarantee;
use talea_measure::{Effort, Report, Request, Role, Samples};
use talea_model::Execution;
use talea_policy::hierarchy::{Engine, Fraction, Parameters, SchedulerId};
use talea_policy::scheduler::{Announcing, FixedPriority, Kind, WakeUp};
use talea_sim::threads::{Load, ThreadSimulation};
use talea_time::{Duration, Instant, Work};

const QUANTUM: Work = Work::from_millis(5);

/// What is simulated between two readings of the clock.
const SLICE: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let request = match Request::from_arguments(std::env::args().skip(1)) {
        Ok(request) => request,
        Err(message) => {
            eprintln!("threads: {message}");
            return ExitCode::from(2);
        }
    };
    let slices = match request.effort {
        Effort::Smoke => 2,
        Effort::Quick => 20,
        Effort::Full => 200,
    };
    let mut subjects =
        [(simulation(Watched::Nobody), Samples::new()), (simulation(Watched::Everybody), Samples::new())];
    let mut end = Instant::ZERO;
    for _ in 0..slices {
        end += SLICE;
        for (simulation, samples) in &mut subjects {
            let before = simulation.counts().events;
            let start = WallClock::now();
            simulation.advance(end, |_, _| {});
            let taken = Duration::from_nanos(start.elapsed().as_nanos() as i64);
            samples.add_batch(taken, (simulation.counts().events - before) as u32);
        }
    }
    let mut report = Report::new(false);
    let group = "scheduling event of a simulation, 100 threads, five levels";
    for ((_, samples), (name, role)) in
        subjects.into_iter().zip([("unmonitored", Role::Floor), ("every guarantee monitored", Role::Subject)])
    {
        let millions = 1e3 / samples.ns(0.5);
        report.add_with_note(group, name, role, samples, format!("{millions:.2} M/s"));
    }
    report.print(request.format);
    ExitCode::SUCCESS
}

enum Watched {
    Nobody,
    Everybody,
}

/// Fixed priority; two reservation schedulers; reservations of fair queues; round robins; threads.
fn simulation(watched: Watched) -> ThreadSimulation {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let mut threads = Vec::new();
    let mut promises = Vec::new();
    for branch in 0..2 {
        let reserve = add(
            &mut engine,
            &Kind::Reservation { capacity: Fraction::ONE },
            (root, Parameters::Priority(branch)),
        );
        for _ in 0..5 {
            let budget =
                Parameters::Reservation { budget: Work::from_millis(4), period: Duration::from_millis(40) };
            let fair = Kind::ProportionalShare { quantum: QUANTUM, wake_up: WakeUp::Waits };
            let fair = add(&mut engine, &fair, (reserve, budget));
            for weight in 1..=2 {
                let turns = Kind::RoundRobin { quantum: QUANTUM };
                let turns = add(&mut engine, &turns, (fair, Parameters::Weight(weight)));
                for _ in 0..5 {
                    let vp = engine.add_thread(turns, Parameters::None).expect("there is room");
                    threads.push((vp, load(threads.len())));
                    promises.push(vp);
                }
            }
        }
    }
    let mut simulation = ThreadSimulation::new(engine, threads, 1, Work::ZERO);
    if let Watched::Everybody = watched {
        let promise: Guarantee = "PSBE 0.002 400".parse().expect("a guarantee");
        for vp in promises {
            simulation.monitor(vp, &promise, Duration::ZERO);
        }
    }
    simulation
}

fn load(number: usize) -> Load {
    if number.is_multiple_of(3) {
        return Load::Endless;
    }
    let period = Duration::from_micros(20_000 + 311 * number as i64);
    let (least, most) = (Work::from_nanos(200_000), Work::from_nanos(800_000));
    let exec = Execution::Uniform(least, most);
    Load::Bursts {
        exec,
        wcet: most,
        period,
        phase: Duration::from_micros(number as i64 * 97),
        deadline: period,
    }
}

fn add(engine: &mut Engine, kind: &Kind, edge: (SchedulerId, Parameters)) -> SchedulerId {
    let scheduler = kind.build(Announcing::Nothing).expect("in range");
    engine.add(scheduler, &[edge]).expect("there is room")
}
