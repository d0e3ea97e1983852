//! The experiment of the twelve operating regions.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use talea_lab::compare::{Clock, Observer};
use talea_lab::experiments::kernel_switches::RecordedSwitches;
use talea_lab::experiments::regions::hypotheses::{Observed, Study};
use talea_lab::experiments::regions::mechanism::Mechanism;
use talea_lab::experiments::regions::pattern::Pattern;
use talea_lab::experiments::regions::results::Results;
use talea_lab::experiments::regions::runs::{Course, Trial};
use talea_lab::experiments::regions::sampler::{Sample, Sampler};
use talea_lab::experiments::regions::setting::{
    Frames, HYPERPERIOD, LEGS_PER_STEP, Phasing, Region, Setting,
};
use talea_lab::experiments::regions::sweep::{Found, Grid, Outcome, Sweep};
use talea_lab::experiments::{Effort, Experiment, ExperimentError, Extent, Options, Verdict};
use talea_model::{Execution, Strategy};
use talea_policy::demand;
use talea_policy::strategy::plan_system;
use talea_record::{Event, Record, Sink};
use talea_runtime::StopHandle;
use talea_sim::Simulation;
use talea_statistics::Explained;
use talea_time::{Duration, Instant, Work};

/// Cancels when a number of runs have begun.
struct Patience {
    begun: usize,
    most: usize,
    planned: usize,
}

impl Patience {
    fn of(most: usize) -> Self {
        Patience { begun: 0, most, planned: 0 }
    }

    fn endless() -> Self {
        Self::of(usize::MAX)
    }
}

impl Observer for Patience {
    fn planned(&mut self, runs: usize) {
        self.planned = runs;
    }

    fn starting(&mut self, _: &str, _: Option<StopHandle>) {
        self.begun += 1;
    }

    fn cancelled(&self) -> bool {
        self.begun > self.most
    }
}

fn region(number: usize) -> Region {
    Region::numbered(number).expect("a region")
}

fn simulated(number: usize, strategy: Strategy, mechanism: Mechanism, samples: usize) -> Trial {
    let course = Course { clock: Clock::Virtual, samples };
    course.run(region(number), strategy, mechanism, &mut Patience::endless()).expect("it can be simulated")
}

fn experiment() -> &'static Experiment {
    Experiment::named("s0").expect("it is listed")
}

fn options(out: &Path) -> Options {
    Options { clock: Clock::Virtual, effort: Effort::Quick, parts: vec!["regions".into()], out: out.into() }
}

#[test]
fn load_jitter_is_that_of_the_papers_table_2() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/paper_tables.json");
    let text = std::fs::read_to_string(path).expect("the tables are part of the repository");
    let tables: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rows = tables["seed_000"]["table_2_load_jitter"]["rows"].as_array().expect("rows");
    let mut seen = 0;
    for row in rows {
        let expected = [&row[1], &row[2]].map(|ns| Work::from_nanos(ns.as_i64().expect("nanoseconds")));
        for number in row[0].as_array().expect("regions") {
            let region = region(number.as_u64().expect("a number") as usize);
            let (low, high) = region.load_jitter().range();
            assert_eq!([low, high], expected, "{region:?}");
            let system = region.system();
            let consumers = system.tasks.iter().filter(|task| task.name.starts_with("consumer"));
            let mut rates = Vec::new();
            for task in consumers {
                let range = match task.subtasks[0].exec {
                    Execution::Constant(work) => (work, work),
                    Execution::Uniform(low, high) => (low, high),
                    Execution::List(_) => panic!("a range"),
                };
                assert_eq!(range, (low, high), "{region:?} {}", task.name);
                assert!(task.criticality.is_critical());
                rates.push(1_000 / (task.period.as_nanos() / 1_000_000));
            }
            assert_eq!(rates, [10, 5, 1], "{region:?}");
            seen += 1;
        }
    }
    assert_eq!(seen, 12);
}

#[test]
fn the_chain_grows_from_region_1_to_11_and_is_a_chain() {
    let lengths: Vec<usize> = Region::all().map(Region::legs).collect();
    assert_eq!(lengths[0], lengths[1]);
    assert!(lengths[1..].windows(2).all(|pair| pair[1] == pair[0] + LEGS_PER_STEP), "{lengths:?}");
    for region in Region::all() {
        let system = region.system();
        let route = system.tasks.iter().find(|task| task.name == "route").expect("a route");
        assert_eq!(route.subtasks.len(), region.legs());
        assert!(!route.criticality.is_critical());
        assert_eq!(route.period, Duration::from_millis(50));
        for (leg, subtask) in route.subtasks.iter().enumerate() {
            assert_eq!(subtask.after.as_slice(), leg.checked_sub(1).as_slice(), "each leg requests the next");
        }
    }
}

#[test]
fn overload_begins_at_region_7_and_the_critical_load_is_always_feasible() {
    let loads: Vec<_> = Region::all().map(Region::load).collect();
    for (number, load) in loads.iter().enumerate() {
        assert_eq!(load.worst > 1.0, number >= 7, "{number}: {load:?}");
        assert_eq!(load.mean > 1.0, number >= 8, "{number}: {load:?}");
        assert!(load.critical_worst < 0.5, "{number}: {load:?}");
        // The constant critical load is what regions without load jitter have.
        let (low, high) = region(number).load_jitter().range();
        let per_second = 10.0 + 5.0 + 1.0;
        let jitter = [low, high].map(|work| work.as_nanos() as f64 / 1e9 * per_second);
        assert!((load.critical_worst - loads[0].critical_worst - jitter[1]).abs() < 1e-12);
        assert!((load.critical_mean - loads[0].critical_worst - (jitter[0] + jitter[1]) / 2.0).abs() < 1e-12);
    }
}

#[test]
fn every_strategy_sorts_every_region_and_rms_puts_the_route_above_slower_critical_work() {
    for region in Region::all() {
        for strategy in Strategy::ALL {
            assert!(plan_system(&region.system().with_strategy(*strategy)).is_ok(), "{region:?} {strategy}");
        }
        let system = region.system().with_strategy(Strategy::Rms);
        let plan = &plan_system(&system).expect("sorted")[0];
        let level = |name: &str| {
            let operation = system.operations().iter().find(|operation| operation.name == name);
            plan.lane_of(operation.expect("there").id).expect("placed")
        };
        assert!(level("route.leg-01") < level("navigation"));
        assert_eq!(level("route.leg-01"), level("sensors"));
    }
}

#[test]
fn written_systems_read_back_as_they_are() {
    for region in Region::all() {
        let system = region.system();
        let parsed = talea_model::parse("region.toml", &system.to_toml(), Path::new(".")).expect("readable");
        assert_eq!(parsed.system, system);
    }
}

/// Execution of every completed job, by operation and instance.
#[derive(Default)]
struct Executed {
    since: HashMap<u64, Instant>,
    sums: HashMap<u64, Duration>,
    completed: BTreeMap<u64, Duration>,
}

impl Sink for Executed {
    fn record(&mut self, record: Record) {
        match record.event {
            Event::START | Event::RESUME => {
                self.since.insert(record.causal, record.time);
            }
            Event::PREEMPT | Event::COMPLETE => {
                let since = self.since.remove(&record.causal).expect("it ran");
                let sum = self.sums.entry(record.causal).or_insert(Duration::ZERO);
                *sum += record.time - since;
                if record.event == Event::COMPLETE {
                    self.completed.insert(record.causal, *sum);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn every_strategy_faces_the_identical_demand() {
    let executed = |strategy| {
        let system = Mechanism::FREE.charge(&region(11).system(), strategy);
        let mut simulation = Simulation::new(&system).expect("it can be simulated");
        let mut executed = Executed::default();
        simulation.advance(Instant::ZERO + Duration::from_secs(5), &mut executed);
        executed.completed
    };
    let muf = executed(Strategy::Muf);
    for strategy in [Strategy::Rms, Strategy::RmsMlf, Strategy::Edf, Strategy::Mlf] {
        let other = executed(strategy);
        let common: Vec<u64> = muf.keys().copied().filter(|job| other.contains_key(job)).collect();
        assert!(common.len() > 500, "{strategy}: {}", common.len());
        for job in common {
            assert_eq!(muf[&job], other[&job], "{strategy}, job {job:x}");
        }
    }
}

#[test]
fn the_price_of_ordering_moves_demand_and_changes_no_draw() {
    let plain = region(9).system();
    let priced = Mechanism::FREE.with_ordering(7_000);
    let (muf, hybrid) = (priced.charge(&plain, Strategy::Muf), priced.charge(&plain, Strategy::RmsMlf));
    for operation in plain.operations() {
        let critical = plain.task_of(operation.id).criticality.is_critical();
        for instance in 0..200 {
            let of = |system| demand::execution(system, operation.id, instance).as_nanos();
            assert_eq!(of(&muf), of(&plain) + 7_000, "{}: MUF's lanes are all ordered", operation.name);
            let fifo = if critical { 0 } else { 7_000 };
            assert_eq!(of(&hybrid), of(&plain) + fifo, "{}", operation.name);
        }
    }
}

#[test]
fn without_load_jitter_no_critical_job_is_preempted() {
    for number in [0, 4, 8] {
        let trial = simulated(number, Strategy::RmsMlf, Mechanism::MEASURED, 3);
        assert!(trial.samples.iter().all(|sample| sample.hard_preemptions == 0), "region {number}");
    }
    let trial = simulated(9, Strategy::RmsMlf, Mechanism::MEASURED, 3);
    assert!(trial.samples.iter().any(|sample| sample.hard_preemptions > 0));
}

#[test]
fn samples_offer_the_same_under_every_strategy() {
    let trials = Strategy::ALL.iter().map(|strategy| simulated(7, *strategy, Mechanism::MEASURED, 4));
    for trial in trials {
        assert_eq!(trial.samples.len(), 4);
        for sample in &trial.samples {
            // 20 + 2 * (10 + 5 + 1) critical requests a second; 14 legs at 20 Hz and the display at 5 Hz.
            assert_eq!((sample.hard_offered, sample.soft_offered), (52, 285), "{}", trial.strategy);
            assert!(sample.hard_met <= 52 && sample.soft_met <= 285);
        }
    }
}

#[test]
fn rms_serves_everything_in_region_6_and_misses_hard_deadlines_in_every_sample_of_region_8() {
    let six = simulated(6, Strategy::Rms, Mechanism::MEASURED, 10);
    assert!(six.samples.iter().all(|sample| !sample.hard_missed() && sample.efficiency() == 1.0));
    for number in [8, 10] {
        let trial = simulated(number, Strategy::Rms, Mechanism::MEASURED, 10);
        assert_eq!(trial.hard_missed(), 10, "region {number}");
        assert_eq!(trial.effectiveness(), 0.0);
    }
}

#[test]
fn muf_and_rms_mlf_keep_hard_deadlines_and_serve_less_with_more_load_jitter() {
    for strategy in [Strategy::Muf, Strategy::RmsMlf] {
        let served: Vec<f64> = [8, 9, 11, 10]
            .map(|number| {
                let trial = simulated(number, strategy, Mechanism::MEASURED, 20);
                assert_eq!(trial.hard_missed(), 0, "{strategy} in region {number}");
                trial.effectiveness()
            })
            .to_vec();
        assert!(served.windows(2).all(|pair| pair[0] > pair[1]), "{strategy}: {served:?}");
    }
}

#[test]
fn nothing_but_costs_tells_muf_from_rms_mlf() {
    let mut results = Results::default();
    for strategy in [Strategy::Muf, Strategy::RmsMlf] {
        results.add(simulated(9, strategy, Mechanism::FREE, 20));
    }
    let differences = results.pairs(9).expect("both").differences(|sample| sample.soft_met as f64);
    assert_eq!(differences, [0.0; 20]);
    // At 200 times the measured prices RMS+MLF pays for its preemptions.
    let dear = Mechanism::MEASURED.times(200);
    let mut results = Results::default();
    for strategy in [Strategy::Muf, Strategy::RmsMlf] {
        results.add(simulated(10, strategy, dear, 20));
    }
    let difference = results.pairs(10).expect("both").difference(|sample| sample.soft_met as f64);
    assert!(difference.expect("samples").is_above_zero(), "{difference:?}");
}

#[test]
fn real_threads_make_the_samples_that_virtual_time_does() {
    let course = Course { clock: Clock::Real, samples: 1 };
    let trial = course.run(region(1), Strategy::RmsMlf, Mechanism::FREE, &mut Patience::endless());
    let trial = trial.expect("it can be run");
    let simulated = simulated(1, Strategy::RmsMlf, Mechanism::FREE, 1);
    assert_eq!((trial.samples.len(), trial.lost_records), (1, 0));
    let offered = |trial: &Trial| (trial.samples[0].hard_offered, trial.samples[0].soft_offered);
    assert_eq!(offered(&trial), offered(&simulated));
    // What is offered and what begins are the same on any machine; what is met depends on it.
    assert!(trial.samples[0].hard_starts > 0);
    assert!(trial.realtime.is_some());
    let sample = trial.samples[0];
    match trial.recorded.expect("it was on threads") {
        RecordedSwitches::Nothing(reason) => {
            talea_measure::skip(format!("what switches cost: {reason}"));
            assert_eq!((sample.hard_switch_ns, sample.threads), (None, None), "nothing stands for it");
        }
        RecordedSwitches::OnProcessors | RecordedSwitches::OwnThreads => {
            assert!(sample.hard_switch_ns.is_some_and(|ns| ns > 0), "{sample:?}");
            assert!(sample.threads.is_some_and(|threads| threads.critical_switches > 0), "{sample:?}");
        }
    }
}

#[test]
fn what_was_not_measured_is_no_factor_and_no_point() {
    let priced = |known: fn(Option<i64>) -> Option<i64>| {
        let mut results = Results::default();
        for number in 8..=11 {
            for strategy in [Strategy::Muf, Strategy::RmsMlf] {
                let mut trial = simulated(number, strategy, Mechanism::MEASURED.times(200), 6);
                trial
                    .samples
                    .iter_mut()
                    .for_each(|sample| sample.hard_switch_ns = known(sample.hard_switch_ns));
                results.add(trial);
            }
        }
        Study { mechanism: None, results }
    };
    let factors = |study: &Study| -> Vec<String> {
        match study.explain(Observed::SoftMet).expect("all regions").explained {
            Explained::By(regression) => regression.factors.into_iter().map(|factor| factor.name).collect(),
            other => panic!("{other:?}"),
        }
    };
    const SWITCHING: &str = "cost of switching to critical jobs, ms";
    let known = priced(|ns| ns);
    assert_eq!(known.points().len(), 4);
    assert!(factors(&known).iter().any(|name| name == SWITCHING));
    assert!(!factors(&known).iter().any(|name| name == "context switches to critical lanes"));
    let unknown = priced(|_| None);
    assert!(unknown.points().is_empty());
    assert!(!factors(&unknown).iter().any(|name| name == SWITCHING));
}

#[test]
fn costs_are_those_of_the_records() {
    let dear = Mechanism::MEASURED.times(10).with_ordering(1_000);
    for strategy in [Strategy::Muf, Strategy::RmsMlf] {
        let trial = simulated(9, strategy, dear, 10);
        let sum = |of: fn(&Sample) -> i64| trial.samples.iter().map(of).sum::<i64>();
        let switches = sum(|sample| sample.hard_switches as i64);
        // A payment at the end of the last sample is recorded after it.
        assert!(
            (sum(|sample| sample.hard_switch_ns.expect("charged")) - switches * dear.switch_ns).abs()
                <= dear.switch_ns
        );
        let starts = sum(|sample| sample.hard_starts as i64);
        let ordering = if strategy == Strategy::Muf { starts * dear.ordering_ns } else { 0 };
        let queue = sum(|sample| sample.hard_queue_ns) - ordering;
        assert!((queue - starts * 2 * dear.queue_ns).abs() <= 2 * dear.queue_ns, "{strategy}: {queue}");
    }
}

#[test]
fn samples_count_operations_by_their_deadlines() {
    let system = region(1).system();
    let simulation = Simulation::new(&system).expect("it can be simulated");
    let mut sampler = Sampler::new(simulation.metadata());
    let operation = |name: &str| {
        let found = system.operations().iter().find(|operation| operation.name == name).expect("there");
        (found.id, simulation.metadata().operations[found.id.index()].lane as u16)
    };
    let mut give = |event, name: &str, ms: i64, arrival_ms: i64, deadline_ms: i64| {
        let (operation, source) = operation(name);
        let at = |ms: i64| (ms * 1_000_000) as u64;
        sampler.record(Record {
            time: Instant::from_nanos(ms * 1_000_000),
            causal: talea_record::JobId { operation, instance: 0 }.pack(),
            words: [at(arrival_ms), at(deadline_ms)],
            event,
            source,
            cpu: 0,
            arg: 3,
        });
    };
    give(Event::START, "sensors", 950, 950, 1000);
    // Done exactly at its deadline, which is the end of the first sample.
    give(Event::COMPLETE, "sensors", 1000, 950, 1000);
    give(Event::START, "route.leg-01", 1001, 950, 1000);
    give(Event::PREEMPT, "route.leg-01", 1002, 950, 1000);
    give(Event::START, "navigation", 1002, 992, 1092);
    give(Event::PREEMPT, "navigation", 1003, 992, 1092);
    give(Event::RESUME, "navigation", 1003, 992, 1092);
    give(Event::COMPLETE, "navigation", 1008, 992, 1092);
    give(Event::RESUME, "route.leg-01", 1008, 950, 1000);
    // Late: it counts in no sample as met, and its latency does.
    give(Event::COMPLETE, "route.leg-01", 1010, 950, 1000);
    give(Event::RUN_END, "sensors", 2000, 0, 0);
    let (samples, lost) = sampler.finish();
    assert_eq!((samples.len(), lost), (2, 0));
    let [first, second] = [samples[0], samples[1]];
    assert_eq!((first.hard_met, first.soft_met, first.hard_starts, first.hard_depth), (1, 0, 1, 3));
    assert_eq!((first.routes, first.route_latency_ns), (1, 60_000_000));
    assert_eq!((second.hard_met, second.hard_preemptions, second.hard_switches), (1, 1, 1));
    assert!(first.hard_missed() && first.effectiveness() == 0);
}

#[test]
fn the_whole_experiment_leaves_figures_tables_and_systems() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut observer = Patience::endless();
    let findings = experiment().run(&options(folder.path()), &mut observer).expect("it runs");
    assert_eq!(findings.extent, Extent::Whole);
    assert_eq!(observer.begun, observer.planned);
    assert!(findings.claims.iter().all(|claim| claim.verdict != Verdict::Undecided), "{:?}", findings.claims);
    for claim in ["RMS misses hard deadlines in every sample", "by policy alone"] {
        let found = findings.claims.iter().find(|found| found.statement.contains(claim)).expect(claim);
        assert_eq!(found.verdict, Verdict::Holds, "{found:?}");
    }
    for path in &findings.files {
        let bytes = std::fs::read(path).expect("it was written");
        assert!(bytes.len() > 1_000, "{}", path.display());
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("png") => assert!(bytes.starts_with(b"\x89PNG"), "{}", path.display()),
            Some("svg") => assert!(bytes.starts_with(b"<svg"), "{}", path.display()),
            _ => {}
        }
    }
    let figures = findings.files.iter().filter(|path| path.extension().is_some_and(|end| end == "svg"));
    assert_eq!(figures.count(), 7);
    for region in Region::all() {
        let path = folder.path().join(format!("systems/region-{:02}.toml", region.number()));
        assert!(talea_model::read(&path).is_ok(), "{}", path.display());
    }
}

#[test]
fn a_cancelled_experiment_keeps_what_was_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let findings =
        experiment().run(&options(folder.path()), &mut Patience::of(10)).expect("ten runs were made");
    assert!(matches!(findings.extent, Extent::Cancelled { done: 10, .. }), "{:?}", findings.extent);
    assert!(findings.claims.iter().all(|claim| claim.verdict == Verdict::Undecided));
    let rows = std::fs::read_to_string(folder.path().join("sim/samples.csv")).expect("written");
    // Two regions under five strategies, sixty samples each, and the headings.
    assert_eq!(rows.lines().count(), 10 * 60 + 1);
    let left = std::fs::read_dir(folder.path().join("sim")).expect("a folder");
    for entry in left {
        let name = entry.expect("readable").file_name();
        assert!(!name.to_string_lossy().contains("partial"), "{name:?}");
    }
    let nothing = experiment().run(&options(folder.path()), &mut Patience::of(0));
    assert!(matches!(nothing, Err(ExperimentError::Cancelled { done: 0, .. })), "{nothing:?}");
}

/// The setting at these values, with the phases of the experiment's own.
fn setting(critical_percent: u8, chain_us: i64, growth_us: i64) -> Setting {
    let us = |us: i64| Work::from_nanos(us * 1_000);
    Setting { critical_percent, chain: us(chain_us), growth: us(growth_us), ..Setting::OURS }
}

#[test]
fn settings_have_the_load_and_the_phases_that_they_say() {
    let frame_ns = Setting::OURS.system(region(0)).tasks[0].period.as_nanos() as f64;
    for (setting, number) in [
        (setting(18, 5_000, 5_000), 4),
        (setting(42, 25_000, 500), 9),
        (setting(66, 15_000, 3_500), 6),
        (setting(82, 50_000, 4_500), 11),
    ] {
        let system = setting.system(region(number));
        let load = |wanted: &dyn Fn(&talea_model::Task) -> bool| -> f64 {
            let of = |task: &talea_model::Task| -> f64 {
                let sum: i64 = task.subtasks.iter().map(|subtask| subtask.wcet.as_nanos()).sum();
                sum as f64 / task.period.as_nanos() as f64
            };
            system.tasks.iter().filter(|task| wanted(task)).map(of).sum()
        };
        let constant =
            |task: &talea_model::Task| task.criticality.is_critical() && !task.name.starts_with("consumer");
        assert!((load(&constant) - f64::from(setting.critical_percent) / 100.0).abs() < 1e-6, "{setting:?}");
        // A chain has whole legs.
        let steps = number.max(1) as i64 - 1;
        let chain = (setting.chain.as_nanos() + setting.growth.as_nanos() * steps) as f64 / frame_ns;
        let leg = setting.leg().as_nanos() as f64 / frame_ns;
        let route = load(&|task: &talea_model::Task| task.name == "route");
        assert!((route - chain).abs() <= leg / 2.0 + 1e-6, "{setting:?}: {route} for {chain}");
        for frames in [Frames::Own, Frames::Shared] {
            let early = Setting { phasing: Phasing { frames, lateness_percent: 0 }, ..setting };
            for task in
                early.system(region(number)).tasks.iter().filter(|task| task.criticality.is_critical())
            {
                assert_eq!(task.phase.as_nanos() % frame_ns as i64, 0, "{}", task.name);
                assert!(task.phase < HYPERPERIOD);
            }
        }
    }
}

#[test]
fn the_setting_of_the_tables_has_not_the_papers_pattern_and_one_of_constant_overload_has() {
    let pattern = Pattern::of_regions();
    let ours = Outcome::of(Setting::OURS, &pattern).expect("it can be simulated");
    assert_eq!(ours.found(), Found::Neither);
    assert!(ours.rms_is_as_in_the_paper(), "{:?}", ours.rms);
    // Without load jitter a sample is like the other, but for which of the late legs come first.
    for (served, strategy) in
        [(&ours.rms, Strategy::Rms), (&ours.muf, Strategy::Muf), (&ours.hybrid, Strategy::RmsMlf)]
    {
        for number in [0, 4, 8] {
            let trial = simulated(number, strategy, Mechanism::MEASURED, 3);
            let difference = (served.soft[number] - trial.effectiveness()).abs();
            assert!(difference <= 1.0, "{strategy} in region {number}: {difference}");
            assert_eq!(served.missed[number] > 0.0, trial.hard_missed() > 0, "{strategy} in region {number}");
        }
    }
    let overloaded = Outcome::of(setting(34, 40_000, 2_500), &pattern).expect("it can be simulated");
    assert_eq!(overloaded.found(), Found::Both, "{overloaded:?}");
    assert!(overloaded.shapes.iter().all(|shape| shape.cycle.share > 0.9), "{overloaded:?}");
}

#[test]
fn a_sweep_that_is_cancelled_leaves_a_map_of_what_was_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut patience = Patience::of(2);
    let swept = Sweep::over(Grid::of(Effort::Quick), &mut patience).expect("they can be simulated");
    let tried = swept.count();
    // Each processor may be at one more.
    assert!((3..100).contains(&tried), "{tried}");
    let findings = swept.publish(folder.path()).expect("it can be written");
    assert_eq!(findings.extent, Extent::Cancelled { done: tried, all: 1250 });
    assert!(findings.claims.iter().all(|claim| claim.figures.contains(&format!("of {tried} settings"))));
    let rows = std::fs::read_to_string(folder.path().join("sweep/settings.csv")).expect("written");
    assert_eq!(rows.lines().count(), tried + 1);
    let svg = std::fs::read_to_string(folder.path().join("sweep/map.svg")).expect("written");
    assert!(svg.contains(&format!("{tried} of 1250 settings")), "{svg}");
    for file in ["map.png", "report.md", "results.json"] {
        assert!(folder.path().join("sweep").join(file).exists(), "{file}");
    }
}
