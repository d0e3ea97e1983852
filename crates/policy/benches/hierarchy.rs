//! What a decision costs: a thread blocks, and the next one is granted the processor.
//!
//! *Through levels*: the thread that blocks and the one that runs next meet only at the root, so that every level below gives the
//! processor back on one side and passes it on on the other. *By kind*: both are children of one scheduler below
//! the root. Engines are measured in batches, because reading the clock costs as much as a decision.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant as WallClock;
use talea_measure::{Effort, Report, Role, Samples};
use talea_model::{LaneDispatch, Late, Laxity};
use talea_policy::discipline::Discipline;
use talea_policy::hierarchy::{Enforcement, Engine, Fraction, Parameters, SchedulerId, VpId};
use talea_policy::job::Job;
use talea_policy::scheduler::{
    Announcing, Configuration, Exhaustion, FixedPriority, Gaps, Habits, PlanEntry, Renewal, Repeat, Requests,
    WakeUp, config,
};
use talea_policy::strategy::LaneRules;
use talea_time::{Duration, Instant, Work};

/// Engines per reading of the clock.
const BATCH: usize = 32;

const QUANTUM: Work = Work::from_millis(10);

/// Where a thread blocks again and again.
struct Stage {
    engine: Engine,
    /// Runs whenever it wants to, or takes turns with the others.
    blocking: VpId,
    now: Instant,
}

impl Stage {
    fn new(mut engine: Engine, threads: &[VpId]) -> Self {
        let now = Instant::ZERO;
        for thread in threads {
            engine.request(*thread, job(*thread, now), now);
        }
        let _ = engine.settle(now);
        Stage { engine, blocking: threads[0], now }
    }

    fn running(&self) -> VpId {
        self.engine
            .running(talea_policy::hierarchy::ProcessorId::from_index(0))
            .expect("somebody runs")
            .thread()
    }

    /// The decision: whoever runs blocks.
    fn block(&mut self) {
        self.engine.release(self.blocking, self.now);
        black_box(self.engine.settle(self.now));
    }

    /// Wakes who blocked, and lets time pass.
    fn restore(&mut self) {
        self.engine.request(self.blocking, job(self.blocking, self.now), self.now);
        let _ = self.engine.settle(self.now);
        self.now += Duration::from_micros(50);
        self.engine.fire_timers(self.now);
        let _ = self.engine.settle(self.now);
        self.blocking = self.running();
    }
}

fn job(thread: VpId, now: Instant) -> Job {
    let deadline = now + Duration::from_millis(20);
    Job { release: now, deadline, wcet: Work::from_millis(1), rank: 0, number: 0, tag: thread.index() as u32 }
}

fn measure(effort: Effort, stage: impl Fn() -> Stage) -> Samples {
    let rounds = match effort {
        Effort::Smoke => 5,
        Effort::Quick => 2_000,
        Effort::Full => 20_000,
    };
    let mut stages: Vec<Stage> = (0..BATCH).map(|_| stage()).collect();
    let mut samples = Samples::new();
    for _ in 0..rounds {
        let start = WallClock::now();
        stages.iter_mut().for_each(Stage::block);
        let taken = Duration::from_nanos(start.elapsed().as_nanos() as i64);
        samples.add_batch(taken, BATCH as u32);
        stages.iter_mut().for_each(Stage::restore);
    }
    samples
}

fn part() -> Fraction {
    Fraction::new(1, 8).expect("above zero")
}

/// Two branches of `levels - 1` schedulers below fixed priority, with a thread at the end of each.
fn branches(levels: usize) -> Stage {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let ends = [1, 0].map(|priority| {
        let mut edge = (root, Parameters::Priority(priority));
        for level in 1..levels {
            let (kind, below) = match level % 3 {
                1 => (config::Reservation::hard(Fraction::ONE).into(), whole()),
                2 => (fair(), Parameters::Weight(3)),
                _ => (config::RoundRobin { quantum: QUANTUM }.into(), Parameters::None),
            };
            edge = (add(&mut engine, &kind, edge), below);
        }
        engine.add_thread(edge.0, edge.1).expect("there is room")
    });
    Stage::new(engine, &ends)
}

fn add(engine: &mut Engine, kind: &Configuration, edge: (SchedulerId, Parameters)) -> SchedulerId {
    let scheduler = kind.build(Announcing::Nothing).expect("in range");
    engine.add(scheduler, &[edge]).expect("there is room")
}

/// A budget that is never used up.
fn whole() -> Parameters {
    Parameters::Reservation { budget: Work::from_millis(80), period: Duration::from_millis(80) }
}

fn fair() -> Configuration {
    config::ProportionalShare { quantum: QUANTUM, wake_up: WakeUp::Waits }.into()
}

/// Four threads below one scheduler, or one beside a lower thread where there is room for one only.
fn siblings(kind: &Configuration) -> Stage {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let parent = add(&mut engine, kind, (root, Parameters::Priority(1)));
    let count = if matches!(kind.name(), "join" | "limit") { 1 } else { 4 };
    let mut threads: Vec<VpId> = (0..count)
        .map(|place| engine.add_thread(parent, parameters(kind, place)).expect("there is room"))
        .collect();
    threads.push(engine.add_thread(root, Parameters::Priority(0)).expect("free"));
    Stage::new(engine, &threads)
}

fn parameters(kind: &Configuration, place: u32) -> Parameters {
    let (budget, period) = (Work::from_millis(10), Duration::from_millis(80));
    match kind.name() {
        "fixed-priority" => Parameters::Priority(-(place as i32)),
        "proportional-share" | "sfq" | "stride" | "lottery" | "eevdf" | "sfs" => {
            Parameters::Weight(place + 1)
        }
        "reservation" | "soft-cbs" | "tbs" | "rialto" | "srms" => Parameters::Reservation { budget, period },
        "bss-i" => Parameters::Rate(part()),
        "resource-kernel" => {
            Parameters::Reserve { budget, period, deadline: period, enforcement: Enforcement::Soft }
        }
        "explicit-plan" => Parameters::Process(place),
        _ => Parameters::None,
    }
}

fn kinds() -> Vec<(&'static str, Configuration)> {
    let (one, quantum) = (Fraction::ONE, QUANTUM);
    let rules = LaneRules { dispatch: LaneDispatch::Preemptive, laxity: Laxity::Declared, late: Late::None };
    let entries = vec![PlanEntry { start: Duration::ZERO, process: 0, duration: Work::from_millis(5) }];
    let repeat = Repeat::Every(Duration::from_millis(10));
    let ms = Duration::from_millis;
    let kinds: Vec<Configuration> = vec![
        config::FixedPriority.into(),
        config::Join { takes: 0 }.into(),
        config::Limit { budget: Work::from_millis(50), period: ms(80), renewal: Renewal::Over }.into(),
        config::Lane { discipline: Discipline::Deadline, rules, capacity: 8 }.into(),
        config::RoundRobin { quantum }.into(),
        fair(),
        config::Stride { quantum }.into(),
        config::Lottery { quantum, seed: 1 }.into(),
        config::Eevdf { quantum }.into(),
        config::TimeSharing(Habits::default()).into(),
        config::Reservation::hard(one).into(),
        config::Reservation { exhaustion: Exhaustion::Postpone, capacity: one }.into(),
        config::TotalBandwidth { capacity: one, requests: Requests::InPieces }.into(),
        config::SlowerProcessor { speed: one, slice: ms(10) }.into(),
        config::ResourceKernel { quantum }.into(),
        config::Rialto { base: ms(10), levels: 3, quantum }.into(),
        config::Spring { effort: 10, quantum }.into(),
        config::StatisticalRateMonotonic { last: 1, quantum }.into(),
        config::ExplicitPlan { entries, repeat, gaps: Gaps::EventDriven, beginning: Instant::ZERO.into() }
            .into(),
        config::SurplusFair { quantum }.into(),
    ];
    kinds.into_iter().map(|kind| (kind.name(), kind)).collect()
}

fn main() -> ExitCode {
    talea_measure::main(measured)
}

fn measured(effort: Effort) -> Report {
    let mut report = Report::new(false);
    let group = "block to next grant, through levels on both sides of the root";
    let levels = [("1 level", 1), ("2 levels", 2), ("4 levels", 4), ("8 levels", 8), ("16 levels", 16)];
    let mut base = 0.0;
    for (name, levels) in levels {
        let samples = measure(effort, || branches(levels));
        let median = samples.ns(0.5);
        if levels == 1 {
            base = median;
            report.add(group, name, Role::Floor, samples);
        } else {
            let each = (median - base) / (levels - 1) as f64;
            report.add_with_note(
                group,
                name,
                Role::Subject,
                samples,
                format!("{each:.1} ns per further level"),
            );
        }
    }
    let group = "block to next grant, four threads below one scheduler";
    for (name, kind) in kinds() {
        let role = if kind.name() == "fixed-priority" { Role::Floor } else { Role::Subject };
        report.add(group, name, role, measure(effort, || siblings(&kind)));
    }
    report
}
