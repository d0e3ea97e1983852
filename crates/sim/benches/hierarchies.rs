//! How fast hierarchies are simulated: time per scheduling event, 100 threads and five levels, every guarantee monitored.
//!
//! `cargo bench -p talea-sim --bench hierarchies [-- --json] [--quick]`
//!
//! Two thirds of the threads come in bursts, the others never end; bursts ask for about nine tenths of the processor. A
//! scheduling event is a burst that arrives, ends or loses the processor. The floor is the same simulation into a sink that only
//! counts; the subject accounts for every number of a report.

#![forbid(unsafe_code)]

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Instant as WallClock;
use talea_insight::Accounting;
use talea_measure::{Effort, Report, Role, Samples};
use talea_model::{Execution, Request, SchedulerBuilder, SchedulerKind, System, ThreadBuilder, ThreadWork};
use talea_record::{Event, Record, Sink};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

/// What is simulated between two readings of the clock.
const SLICE: Duration = Duration::from_millis(500);

/// Counts scheduling events and passes them on.
struct Counted<S> {
    events: u32,
    sink: S,
}

impl<S: Sink> Sink for Counted<S> {
    fn record(&mut self, record: Record) {
        self.events += u32::from([Event::RELEASE, Event::COMPLETE, Event::PREEMPT].contains(&record.event));
        self.sink.record(record);
    }
}

struct Nowhere;

impl Sink for Nowhere {
    fn record(&mut self, _record: Record) {}
}

/// A simulation that goes on slice by slice.
struct Subject<S> {
    simulation: Simulation,
    counted: Counted<S>,
    samples: Samples,
}

impl<S: Sink> Subject<S> {
    fn new(simulation: Simulation, sink: S) -> Self {
        Subject { simulation, counted: Counted { events: 0, sink }, samples: Samples::new() }
    }

    fn advance(&mut self, end: Instant) {
        let before = self.counted.events;
        let start = WallClock::now();
        self.simulation.advance(end, &mut self.counted);
        let taken = Duration::from_nanos(start.elapsed().as_nanos() as i64);
        self.samples.add_batch(taken, self.counted.events - before);
    }
}

fn main() -> ExitCode {
    talea_measure::main(measured)
}

fn measured(effort: Effort) -> Report {
    let slices = match effort {
        Effort::Smoke => 2,
        Effort::Quick => 20,
        Effort::Full => 200,
    };
    let system = system();
    let simulation = || Simulation::new(&system).expect("the hierarchy can be arranged");
    let mut floor = Subject::new(simulation(), Nowhere);
    let accounting = Accounting::new(simulation().metadata(), Duration::from_secs(1));
    let mut subject = Subject::new(simulation(), accounting);
    let mut end = Instant::ZERO;
    for _ in 0..slices {
        end += SLICE;
        floor.advance(end);
        subject.advance(end);
    }
    let mut report = Report::new(false);
    let group = "scheduling event of a simulation, 100 threads, five levels, every guarantee monitored";
    let rows = [("counted", Role::Floor, floor.samples), ("accounted for", Role::Subject, subject.samples)];
    for (name, role, samples) in rows {
        let millions = 1e3 / samples.ns(0.5);
        report.add_with_note(group, name, role, samples, format!("{millions:.2} M/s"));
    }
    report
}

/// Fixed priority; two reservation schedulers; reservations of shares; round robins; threads.
fn system() -> System {
    use SchedulerKind as K;
    let mut builder = System::builder("benchmark").scheduler(SchedulerBuilder::new("FP", K::FIXED_PRIORITY));
    let mut threads = 0;
    for branch in 0..2 {
        let reserve = format!("RES-{branch}");
        let scheduler = SchedulerBuilder::new(&reserve, K::RESERVATION);
        builder = builder.scheduler(scheduler.under("FP", Request::Priority(branch)));
        for place in 0..5 {
            let fair = format!("PS-{branch}-{place}");
            let budget = Request::Guarantee("RESBH 4 40".parse().expect("a guarantee"));
            let quantum = Duration::from_millis(5);
            let scheduler = SchedulerBuilder::new(&fair, K::SFQ).quantum(quantum);
            builder = builder.scheduler(scheduler.under(&reserve, budget));
            for weight in 1..=2 {
                let turns = format!("RR-{branch}-{place}-{weight}");
                let share = Request::share(NonZeroU32::new(weight).expect("above zero"));
                let scheduler = SchedulerBuilder::new(&turns, K::ROUND_ROBIN).quantum(quantum);
                builder = builder.scheduler(scheduler.under(&fair, share));
                for _ in 0..5 {
                    let thread = ThreadBuilder::new(format!("thread-{threads}"), work(threads));
                    builder = builder.thread(thread.under(&turns, Request::Nothing));
                    threads += 1;
                }
            }
        }
    }
    builder.build().expect("the benchmark's system is valid")
}

fn work(number: i64) -> ThreadWork {
    if number % 3 == 0 {
        return ThreadWork::CpuBound;
    }
    let burst = Execution::Uniform(Work::from_nanos(200_000), Work::from_nanos(800_000));
    ThreadWork::Bursts { burst, period: Duration::from_micros(20_000 + 311 * number) }
}
