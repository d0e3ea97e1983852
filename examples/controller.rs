//! A motor's speed under control: a system built in code and checked before it runs, operations that keep state between
//! their jobs, events of their own in the trace, and an explanation of every deadline that was missed.
//!
//! `cargo run --example controller [-- TIME]`, such as `5s`; one second unless given.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea::run::Outcome;
use talea::trace::explain::{Question, Which, explain};
use talea::trace::{Record, Sink, TraceFile};
use talea::{Criticality, Duration, Run, SubtaskBuilder, System, TaskBuilder, Work};

talea::family! {
    /// What the controller does.
    motor {
        /// A speed was measured and filtered, both in radians per second.
        speed(measured: f64, filtered: f64);
        /// The drive was set, from -1 to 1.
        drive(share: f64);
        /// Another speed is wanted.
        target(speed: f64);
    }
}

/// A number that operations on different threads hand to each other.
#[derive(Default)]
struct Signal(AtomicU64);

impl Signal {
    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }
}

/// What the operations share.
#[derive(Default)]
struct Signals {
    target: Signal,
    speed: Signal,
    drive: Signal,
}

/// Between two jobs of the control loop.
const PERIOD: Duration = Duration::from_millis(5);

/// Stands in for a motor: 200 rad/s at full drive, reached with a time constant of 50 ms, and a noisy sensor.
struct Motor {
    speed: f64,
    noise: u32,
}

impl Motor {
    /// Moves on by a period and measures.
    fn measure(&mut self, drive: f64) -> f64 {
        self.speed += (200.0 * drive - self.speed) * PERIOD.as_secs_f64() / 0.05;
        self.noise = self.noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.speed + 4.0 * (f64::from(self.noise) / f64::from(u32::MAX) - 0.5)
    }
}

/// A proportional and integral controller.
#[derive(Default)]
struct Controller {
    integral: f64,
}

impl Controller {
    fn drive(&mut self, deviation: f64) -> f64 {
        let wanted = 0.01 * deviation + self.integral;
        // Beyond full drive, integrating would only have to be undone.
        if wanted.abs() < 1.0 {
            self.integral += 0.1 * deviation * PERIOD.as_secs_f64();
        }
        wanted.clamp(-1.0, 1.0)
    }
}

fn system() -> Result<System, talea::system::Violations> {
    let step = |name| SubtaskBuilder::new(name).wcet(Work::from_micros(200));
    System::builder("motor")
        .task(
            TaskBuilder::new("control", PERIOD)
                .criticality(Criticality::High)
                .subtask(step("measure"))
                .subtask(step("drive")),
        )
        .task(TaskBuilder::new("plan", Duration::from_millis(50)).wcet(Work::from_micros(100)))
        .task(
            TaskBuilder::new("report", Duration::from_millis(100))
                .criticality(Criticality::Low)
                .wcet(Work::from_millis(2)),
        )
        .build()
}

/// Whether all deadlines are sure to be met, with the longest response of every task.
fn holds(system: &System) -> Result<bool, talea::check::CheckError> {
    let check = talea::check(system)?;
    for task in &check.report.tasks {
        let bound = task.bound_ns.map_or("no bound".into(), |bound| Duration::from_nanos(bound).to_string());
        println!("{}: longest response {bound}, {:?}", task.name, task.verdict);
    }
    Ok(check.holds())
}

/// Runs the loop, each operation with what it keeps from job to job.
fn run(
    system: &System,
    signals: &Arc<Signals>,
    duration: Duration,
    trace: &Path,
) -> Result<Outcome, Box<dyn Error>> {
    motor::FAMILY.register()?;
    let shared = || Arc::clone(signals);
    let (measuring, driving, planning, reporting) = (shared(), shared(), shared(), shared());
    let mut device = Motor { speed: 0.0, noise: 1 };
    let mut filtered = 0.0;
    let mut controller = Controller::default();
    let outcome = Run::new(system)
        .operation("control.measure", move |_| {
            let measured = device.measure(measuring.drive.get());
            filtered += 0.3 * (measured - filtered);
            motor::speed(measured, filtered);
            measuring.speed.set(filtered);
        })
        .operation("control.drive", move |_| {
            let share = controller.drive(driving.target.get() - driving.speed.get());
            motor::drive(share);
            driving.drive.set(share);
        })
        .operation("plan", move |job| {
            // Every second twice as fast for half of it.
            let speed = if job.instance() % 20 < 10 { 50.0 } else { 100.0 };
            if speed != planning.target.get() {
                motor::target(speed);
                planning.target.set(speed);
            }
        })
        .operation("report", move |_| {
            println!("target {:5.1} speed {:5.1}", reporting.target.get(), reporting.speed.get());
        })
        .duration(duration)
        .keep_trace(trace)
        .run()?;
    Ok(outcome)
}

/// Counts records of the controller's own events.
struct OwnEvents(usize);

impl Sink for OwnEvents {
    fn record(&mut self, record: Record) {
        let own = [motor::speed::EVENT, motor::drive::EVENT, motor::target::EVENT];
        self.0 += usize::from(own.contains(&record.event));
    }
}

/// What the trace tells beside the numbers: own events, and why deadlines were missed.
fn look_back(trace: &Path) -> Result<(), Box<dyn Error>> {
    let trace = TraceFile::open(trace)?;
    let mut events = OwnEvents(0);
    trace.replay(&mut events)?;
    println!("{} events of the controller", events.0);
    let question = Question { which: Which::Failed, task: None, limit: 3 };
    let answer = explain(trace.metadata(), question, |mut sink| trace.replay(&mut sink).map(drop))?;
    for missed in &answer.list {
        println!("{}: {}", answer.name(missed.subject), answer.sentence(missed));
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let duration = std::env::args().nth(1).map_or(Ok(Duration::from_secs(1)), |text| text.parse())?;
    let system = system()?;
    if !holds(&system)? {
        return Err("a deadline is not sure to be met, so it does not run".into());
    }
    let signals = Arc::new(Signals::default());
    let trace = std::env::temp_dir().join(format!("controller-{}.talea", std::process::id()));
    let outcome = run(&system, &signals, duration, &trace)?;
    for task in &outcome.report.tasks {
        println!("{}: {} of {} in time", task.name, task.met, task.released);
    }
    let seen = look_back(&trace);
    std::fs::remove_file(&trace)?;
    seen
}
