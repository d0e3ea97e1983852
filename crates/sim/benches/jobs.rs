//! How fast the simulator is: jobs per second of one core, with every number of a report accounted for.
//!
//! `cargo bench -p talea-sim --bench jobs [-- --json] [--quick] [FILTER]`; a filter such as `rms` or
//! `"muf preemptive"` measures only the subjects whose names begin so.
//!
//! The system has 10 tasks of harmonic periods on one node and 78 % load. The floor is the same simulation into a
//! sink that only counts: what the policies and the engine cost without the accounting. Two rows compare pairs of operations that hand values
//! on with others, and two more tasks that events release with periodic ones. Two more rows (`rms 10 nodes`, `rms 100 nodes`)
//! have the same 1000 tasks on 10 and on 100 nodes: a job costs what its own node costs, however many others there are.

use std::process::ExitCode;
use talea_event::qos::QosSettings;
use talea_insight::Accounting;
use talea_model::{
    Criticality, Execution, InputBuilder, LaneDispatch, OutputBuilder, PublicationBuilder, Strategy,
    SubscriptionBuilder, SubtaskBuilder, System, TaskBuilder,
};
use talea_record::{Event, Record, Sink};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

/// Counts completed jobs.
struct Counter(u64);

impl Sink for Counter {
    fn record(&mut self, record: Record) {
        self.0 += u64::from(record.event == Event::COMPLETE);
    }
}

struct Effort {
    repetitions: usize,
    simulated: Duration,
}

const FULL: Effort = Effort { repetitions: 9, simulated: Duration::from_secs(1_000) };
const QUICK: Effort = Effort { repetitions: 3, simulated: Duration::from_secs(300) };
/// Enough to see that everything runs.
const SMOKE: Effort = Effort { repetitions: 1, simulated: Duration::from_secs(1) };

fn main() -> ExitCode {
    let (mut effort, mut json) = (SMOKE, false);
    let (mut quick, mut filter) = (false, String::new());
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--bench" => effort = FULL,
            "--quick" => quick = true,
            "--json" => json = true,
            unknown if unknown.starts_with('-') => {
                eprintln!("unknown argument {unknown}; this takes --quick, --json and a filter");
                return ExitCode::from(2);
            }
            subject => filter = subject.into(),
        }
    }
    if quick {
        effort = QUICK;
    }
    for &strategy in Strategy::ALL {
        for &dispatch in LaneDispatch::ALL {
            let subject = format!("{strategy} {dispatch}");
            if subject.starts_with(&filter) {
                measure(&subject, &system(strategy, dispatch), &effort, json);
            }
        }
    }
    for (subject, with_values) in [("rms pairs", false), ("rms pairs, values handed on", true)] {
        if subject.starts_with(&filter) {
            measure(subject, &pairs(with_values), &effort, json);
        }
    }
    for (subject, by_events) in [("rms 20 tasks", false), ("rms 20 tasks, half of them by events", true)] {
        if subject.starts_with(&filter) {
            measure(subject, &twenty(by_events), &effort, json);
        }
    }
    // As many jobs as above in a hundredth of the simulated time.
    let effort = Effort { simulated: Duration::from_nanos(effort.simulated.as_nanos() / 100), ..effort };
    for nodes in [10, 100] {
        let subject = format!("rms {nodes} nodes");
        if subject.starts_with(&filter) {
            measure(&subject, &distributed(nodes), &effort, json);
        }
    }
    ExitCode::SUCCESS
}

/// Ten tasks of a pair of operations each, the first of which may hand a value on.
fn pairs(with_values: bool) -> System {
    let builder = System::builder("benchmark").strategy(Strategy::Rms);
    let task = |index: usize| {
        let step = |name| SubtaskBuilder::new(name).wcet(Work::from_micros(300));
        let (first, second) = match with_values {
            false => (step("first"), step("second")),
            true => {
                let input = InputBuilder::new("value").from(format!("task-{index}.first.value"));
                let output = OutputBuilder::new("value").bytes(64);
                (step("first").output(output), step("second").input(input))
            }
        };
        TaskBuilder::new(format!("task-{index}"), Duration::from_millis(10)).subtask(first).subtask(second)
    };
    (0..10).map(task).fold(builder, |builder, task| builder.task(task)).build().expect("it is valid")
}

/// Twenty tasks, half of which may be released by events that the others push.
fn twenty(by_events: bool) -> System {
    let period = Duration::from_millis(10);
    let task = |index: usize| {
        let name = format!("task-{index}");
        let task = match (by_events, index % 2) {
            (false, _) => TaskBuilder::new(name, period),
            (true, 0) => TaskBuilder::new(name, period)
                .event(PublicationBuilder::new("c", format!("Bench/Tick{index}"))),
            (true, _) => {
                let subscription = SubscriptionBuilder::new("c").types([format!("Bench/Tick{}", index - 1)]);
                TaskBuilder::triggered_by(name, subscription).deadline(period)
            }
        };
        task.wcet(Work::from_micros(300))
    };
    let builder = System::builder("benchmark").strategy(Strategy::Rms).channel("c", QosSettings::new());
    (0..20).map(task).fold(builder, |builder, task| builder.task(task)).build().expect("it is valid")
}

/// 1000 tasks on this many nodes. The periods of the tasks of a node are those of [`system`] or, so that few jobs of different nodes are
/// released at one instant, up to a tenth longer; a task needs at most a thousandth of its node's time, for a tenth of them may be all on one.
fn distributed(nodes: usize) -> System {
    let periods_us = [5, 5, 10, 10, 20, 20, 40, 40, 50, 100].map(|period_ms| period_ms * 1_000);
    let mut builder =
        System::builder("benchmark").strategy(Strategy::Rms).lane_dispatch(LaneDispatch::NonPreemptive);
    for node in 0..nodes {
        builder = builder.node(format!("node-{node}"), [node as u16]);
    }
    for index in 0..1_000_usize {
        let (group, kind) = (index / 10, index % 10);
        let period = Duration::from_micros(periods_us[kind] * (1_000 + group as i64) / 1_000);
        let work = |thousandths: i64| Work::from_nanos(period.as_nanos() * thousandths / 1_000);
        let subtask = SubtaskBuilder::new("work").wcet(work(7)).exec(Execution::Uniform(work(4), work(7)));
        let subtask = subtask.on(format!("node-{}", group * nodes / 100));
        builder = builder.task(TaskBuilder::new(format!("task-{index}"), period).subtask(subtask));
    }
    builder.build().expect("the benchmark's system is valid")
}

fn system(strategy: Strategy, dispatch: LaneDispatch) -> System {
    let periods_ms = [5, 5, 10, 10, 20, 20, 40, 40, 50, 100];
    let criticality = [4, 1, 3, 1, 3, 1, 3, 1, 3, 0];
    let tasks = periods_ms.iter().zip(criticality).enumerate().map(|(index, (&period, criticality))| {
        let work = |percent: i64| Work::from_nanos(period * 10_000 * percent);
        TaskBuilder::new(format!("task-{index}"), Duration::from_millis(period))
            .criticality(Criticality::from_level(criticality).expect("0 to 4"))
            .wcet(work(10))
            .exec(Execution::Uniform(work(5), work(10)))
    });
    let builder = System::builder("benchmark").strategy(strategy).lane_dispatch(dispatch);
    tasks.fold(builder, |builder, task| builder.task(task)).build().expect("the benchmark's system is valid")
}

fn measure(subject: &str, system: &System, effort: &Effort, json: bool) {
    let (mut accounted, mut counted) = (Vec::new(), Vec::new());
    for _ in 0..effort.repetitions {
        let mut counter = Counter(0);
        let time_s = simulate(system, effort, &mut counter);
        counted.push(counter.0 as f64 / time_s);

        let simulation = Simulation::new(system).expect("the system can be simulated");
        let mut accounting = Accounting::new(simulation.metadata(), Duration::from_secs(1));
        let time_s = simulate(system, effort, &mut accounting);
        let report = accounting.finish(Instant::ZERO + effort.simulated);
        let jobs: u64 = report.operations.iter().map(|operation| operation.completed).sum();
        accounted.push(jobs as f64 / time_s);
    }
    let (accounted, floor) = (Spread::of(accounted), Spread::of(counted));
    if json {
        println!(
            "{{\"group\":\"simulated jobs per second\",\"subject\":\"{subject}\",\"min\":{:.0},\"median\":{:.0},\"max\":{:.0},\"floor_median\":{:.0}}}",
            accounted.min, accounted.median, accounted.max, floor.median
        );
    } else {
        println!(
            "{subject:<28} {:>6.2} M jobs/s (min {:.2}, max {:.2}); without accounting {:.2}",
            accounted.median / 1e6,
            accounted.min / 1e6,
            accounted.max / 1e6,
            floor.median / 1e6
        );
    }
}

/// The processor time it takes, which other programs on the machine disturb less than wall time, in seconds.
fn simulate(system: &System, effort: &Effort, sink: &mut impl Sink) -> f64 {
    let mut simulation = Simulation::new(system).expect("the system can be simulated");
    let start = processor_time_s();
    simulation.advance(Instant::ZERO + effort.simulated, sink);
    processor_time_s() - start
}

fn processor_time_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

impl Spread {
    fn of(mut rates: Vec<f64>) -> Self {
        rates.sort_by(f64::total_cmp);
        Spread { min: rates[0], median: rates[rates.len() / 2], max: rates[rates.len() - 1] }
    }
}
