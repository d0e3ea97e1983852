//! Verification of posted work, against records written by hand.

use std::path::Path;
use talea_insight::verify::{Certainty, Rule, Verifier, VerifyReport};
use talea_model::{OperationId, System};
use talea_policy::strategy::{Plan, plan_lanes_of};
use talea_record::*;
use talea_time::{Duration, Instant};

const START: i64 = 1_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;

/// A system of two tasks on one processor.
fn system(settings: &str) -> System {
    system_of(settings, "")
}

/// The same with more keys of the first task.
fn system_of(settings: &str, of_base: &str) -> System {
    let text = format!(
        "[system]\nname = \"verified\"\n{settings}\n[[node]]\nname = \"one\"\ncpus = [0]\n\
         [[task]]\nname = \"base\"\nperiod = \"1s\"\nwcet = \"10ns\"\n{of_base}\n\
         [[task]]\nname = \"slow\"\nperiod = \"2s\"\nwcet = \"10ns\"\n"
    );
    talea_model::parse("verified.toml", &text, Path::new(".")).expect("a system").system
}

fn plans(system: &System) -> Vec<Plan> {
    plan_lanes_of(system).expect("it can be planned")
}

/// Operations of [`traced`].
const BASE: usize = 0;
const SLOW: usize = 1;
const LONG: usize = 2;
const SHORT: usize = 3;

/// Tables of a run of the system on threads, in which `long` and `short` were posted into these lanes.
fn traced(system: &System, lanes: [usize; 2]) -> Metadata {
    let origin = Origin::Threads { realtime: true };
    let mut metadata = Metadata::new(system, &plans(system), origin, Instant::from_nanos(START));
    metadata.reserve_posted(2);
    for (number, name, lane) in [(LONG, "long", lanes[0]), (SHORT, "short", lanes[1])] {
        let (mut entry, mut task) = (metadata.operations[number].clone(), metadata.tasks[number].clone());
        (entry.name, entry.lane, task.name) = (name.into(), lane, name.into());
        metadata.define(&Definition::Operation { number, entry, task });
    }
    metadata
}

/// Records of jobs of operations in these lanes.
struct Trace {
    lanes: Vec<usize>,
    records: Vec<Record>,
}

impl Trace {
    fn new(metadata: &Metadata) -> Self {
        let lanes = metadata.operations.iter().map(|operation| operation.lane).collect();
        let mut trace = Trace { lanes, records: Vec::new() };
        trace.tell(Event::RUN_START, 0, (BASE, 0), [0, 0]);
        trace
    }

    fn tell(&mut self, event: Event, after: i64, (operation, instance): (usize, u64), words: [i64; 2]) {
        let is_of_run = matches!(event, Event::RUN_START | Event::RUN_END);
        let job = JobId { operation: OperationId::from_index(operation), instance };
        let (causal, source) = if is_of_run { (0, 0) } else { (job.pack(), self.lanes[operation] as u16) };
        let words = words.map(|word| word as u64);
        let time = Instant::from_nanos(START + after);
        self.records.push(Record { time, causal, words, event, source, cpu: 0, arg: 0 });
    }

    /// A job is posted and due at these instants.
    fn post(&mut self, after: i64, job: (usize, u64), due: i64) {
        self.tell(Event::RELEASE, after, job, [START + after, START + due]);
    }

    fn begin(&mut self, after: i64, job: (usize, u64)) {
        self.tell(Event::START, after, job, [0, 0]);
    }

    fn preempt(&mut self, after: i64, job: (usize, u64)) {
        self.tell(Event::PREEMPT, after, job, [0, 0]);
    }

    fn resume(&mut self, after: i64, job: (usize, u64)) {
        self.tell(Event::RESUME, after, job, [0, 0]);
    }

    fn complete(&mut self, after: i64, job: (usize, u64), [posted, due]: [i64; 2]) {
        self.tell(Event::COMPLETE, after, job, [START + posted, START + due]);
    }

    fn verified(self, metadata: &Metadata, system: &System) -> VerifyReport {
        self.verified_within(Duration::ZERO, metadata, system)
    }

    fn verified_within(mut self, tolerance: Duration, metadata: &Metadata, system: &System) -> VerifyReport {
        let end = self.records.last().expect("it has records").time - Instant::from_nanos(START);
        self.tell(Event::RUN_END, end.as_nanos(), (BASE, 0), [0, 0]);
        let plans = plans(system);
        let mut verifier = Verifier::new(metadata, system, &plans, tolerance).expect("of this system");
        self.records.iter().for_each(|record| verifier.record(*record));
        verifier.finish()
    }
}

/// The only rules found broken.
fn broken(report: &VerifyReport) -> Vec<Rule> {
    report.rules.iter().filter(|rule| rule.violations + rule.possible > 0).map(|rule| rule.rule).collect()
}

const PREEMPTIVE: &str = "strategy = \"edf\"\nlane_dispatch = \"preemptive\"\nlate = \"none\"";

/// `long` has begun, `short` preempts it, and then a second `long` is due before both.
fn lent(metadata: &Metadata) -> Trace {
    let mut trace = Trace::new(metadata);
    trace.post(0, (LONG, 0), 400);
    trace.begin(0, (LONG, 0));
    trace.post(10, (SHORT, 0), 200);
    trace.preempt(10, (LONG, 0));
    trace.begin(10, (SHORT, 0));
    trace.post(20, (LONG, 1), 150);
    trace
}

#[test]
fn a_job_that_has_begun_has_the_turn_of_a_more_urgent_one_of_its_operation() {
    let system = system(PREEMPTIVE);
    let metadata = traced(&system, [0, 0]);
    let mut trace = lent(&metadata);
    trace.preempt(20, (SHORT, 0));
    trace.resume(20, (LONG, 0));
    trace.complete(60, (LONG, 0), [0, 400]);
    trace.begin(60, (LONG, 1));
    trace.complete(80, (LONG, 1), [20, 150]);
    trace.resume(80, (SHORT, 0));
    trace.complete(90, (SHORT, 0), [10, 200]);
    let report = trace.verified(&metadata, &system);
    assert_eq!(broken(&report), [], "{report:#?}");
    assert_eq!((report.jobs, report.unjudged), (3, 0));
}

#[test]
fn a_lent_turn_is_that_of_the_lender_and_no_better() {
    let system = system(PREEMPTIVE);
    let metadata = traced(&system, [0, 0]);
    // Whoever lends its turn comes before the one that runs.
    let mut trace = lent(&metadata);
    trace.complete(50, (SHORT, 0), [10, 200]);
    let report = trace.verified(&metadata, &system);
    assert_eq!(broken(&report), [Rule::Order], "{report:#?}");
    assert_eq!(report.violations[0].other.as_deref(), Some("long #1"));
    // The turn of one that is due at 300 is not enough to go on before one that is due at 200.
    let mut trace = Trace::new(&metadata);
    trace.post(0, (LONG, 0), 400);
    trace.begin(0, (LONG, 0));
    trace.post(10, (LONG, 1), 300);
    trace.post(10, (SHORT, 0), 200);
    trace.complete(50, (LONG, 0), [0, 400]);
    let report = trace.verified(&metadata, &system);
    assert_eq!(broken(&report), [Rule::Order], "{report:#?}");
    assert_eq!(report.violations[0].other.as_deref(), Some("short #0"));
    // In a lane that is not preemptive the more urgent one begins first.
    let keeps = self::system("strategy = \"edf\"");
    let metadata = traced(&keeps, [0, 0]);
    let mut trace = Trace::new(&metadata);
    trace.post(0, (LONG, 0), 400);
    trace.post(0, (LONG, 1), 300);
    trace.begin(1, (LONG, 0));
    trace.complete(5, (LONG, 0), [0, 400]);
    let report = trace.verified(&metadata, &keeps);
    assert_eq!(report.of(Rule::Order), 1, "{report:#?}");
}

/// The trace of one strategy says nothing about the lanes that posted work would have with another one.
#[test]
fn in_which_lane_posted_work_belongs_is_known_of_the_strategy_of_the_trace_only() {
    let (rms, edf) = (system("strategy = \"rms\""), system("strategy = \"edf\""));
    let preempted = || {
        let metadata = traced(&rms, [1, 0]);
        let mut trace = Trace::new(&metadata);
        trace.post(0, (LONG, 0), 200);
        trace.begin(0, (LONG, 0));
        trace.post(10, (SHORT, 0), 300);
        trace.preempt(10, (LONG, 0));
        trace.begin(10, (SHORT, 0));
        trace.complete(20, (SHORT, 0), [10, 300]);
        trace.resume(20, (LONG, 0));
        trace.complete(30, (LONG, 0), [0, 200]);
        (metadata, trace)
    };
    let (metadata, trace) = preempted();
    let report = trace.verified(&metadata, &rms);
    assert_eq!((broken(&report), report.unjudged), (vec![], 0), "{report:#?}");
    let (metadata, trace) = preempted();
    let report = trace.verified(&metadata, &edf);
    assert_eq!((broken(&report), report.unjudged), (vec![Rule::Plan], 1), "{report:#?}");
    // A lane that waits for a lower one is judged of tasks only, which are known to be in it.
    let waits = |job, due, expected| {
        let metadata = traced(&edf, [0, 0]);
        let mut trace = Trace::new(&metadata);
        let slow_due = 2 * SECOND_NS;
        trace.post(0, (SLOW, 0), slow_due);
        trace.post(0, job, due);
        trace.begin(0, (SLOW, 0));
        trace.complete(20, (SLOW, 0), [0, slow_due]);
        trace.begin(20, job);
        trace.complete(30, job, [0, due]);
        let report = trace.verified(&metadata, &rms);
        assert_eq!((broken(&report), report.unjudged), expected, "{report:#?}");
    };
    waits((SHORT, 0), 300, (vec![Rule::Plan], 1));
    waits((BASE, 0), SECOND_NS, (vec![Rule::Plan, Rule::Lanes], 0));
}

/// In a lane below that of `base`, `short` is due before `long`, which executes. `base` preempts it for long, and then `long` goes on.
fn outranked(metadata: &Metadata) -> Trace {
    let mut trace = Trace::new(metadata);
    trace.post(0, (LONG, 0), 1_000_000);
    trace.begin(1, (LONG, 0));
    trace.post(100, (SHORT, 0), 5_000);
    trace.post(105, (BASE, 0), SECOND_NS);
    trace.preempt(110, (LONG, 0));
    trace.begin(111, (BASE, 0));
    trace.complete(1_110, (BASE, 0), [0, SECOND_NS]);
    trace.resume(1_111, (LONG, 0));
    trace
}

#[test]
fn who_is_preempted_by_a_higher_lane_keeps_nobody_of_its_own_from_the_processor() {
    let text = "strategy = \"rms+mlf\"\nlane_dispatch = \"preemptive\"\nlate = \"none\"";
    let system = system_of(text, "criticality = \"high\"");
    let (metadata, tolerance) = (traced(&system, [1, 1]), Duration::from_nanos(200));
    let mut chosen = outranked(&metadata);
    chosen.preempt(1_113, (LONG, 0));
    chosen.begin(1_114, (SHORT, 0));
    let report = chosen.verified_within(tolerance, &metadata, &system);
    assert_eq!(report.of(Rule::Order), 0, "{:?}", report.violations);
    let mut kept = outranked(&metadata);
    kept.complete(1_400, (LONG, 0), [0, 1_000_000]);
    kept.begin(1_401, (SHORT, 0));
    let report = kept.verified_within(tolerance, &metadata, &system);
    let order = report.violations.iter().find(|violation| violation.rule == Rule::Order);
    // The kernel was not recorded, and may have held off the thread that chooses.
    let found = order.map(|violation| (violation.duration_ns, violation.certainty));
    assert_eq!(found, Some((10 + 289, Certainty::Possible)), "{:?}", report.violations);
}

/// What the thread of a lane has chosen it tells when it goes on; what was released meanwhile it could not know of.
#[test]
fn a_lane_may_have_chosen_before_it_lost_its_processor() {
    let system = system_of("strategy = \"rms+mlf\"\nlate = \"none\"", "criticality = \"high\"");
    let (metadata, tolerance) = (traced(&system, [1, 1]), Duration::from_nanos(200));
    // `base` has the processor from `since` to 1 100.
    let order = |since: Option<i64>| {
        let mut trace = Trace::new(&metadata);
        trace.post(0, (LONG, 0), 1_000_000);
        if let Some(since) = since {
            trace.post(since, (BASE, 0), SECOND_NS);
            trace.begin(since, (BASE, 0));
        }
        trace.post(400, (SHORT, 0), 5_000);
        if since.is_some() {
            trace.complete(1_100, (BASE, 0), [0, SECOND_NS]);
        }
        trace.begin(1_110, (LONG, 0));
        trace.complete(1_200, (LONG, 0), [0, 1_000_000]);
        let report = trace.verified_within(tolerance, &metadata, &system);
        let found = report.violations.iter().filter(|violation| violation.rule == Rule::Order);
        found.map(|violation| violation.certainty).collect::<Vec<_>>()
    };
    assert_eq!(order(Some(190)), [Certainty::Possible], "it had 190 ns before, and 10 after");
    assert_eq!(order(Some(191)), [Certainty::Certain], "it had more than it takes to choose");
    assert_eq!(order(None), [Certainty::Certain], "nobody kept it off");
    // What it was given while it had no processor, it had not chosen.
    let mut trace = Trace::new(&metadata);
    trace.post(0, (BASE, 0), SECOND_NS);
    trace.begin(0, (BASE, 0));
    trace.post(50, (LONG, 0), 1_000_000);
    trace.post(400, (SHORT, 0), 5_000);
    trace.complete(1_100, (BASE, 0), [0, SECOND_NS]);
    trace.begin(1_110, (LONG, 0));
    trace.complete(1_200, (LONG, 0), [50, 1_000_000]);
    let report = trace.verified_within(tolerance, &metadata, &system);
    assert_eq!(report.of(Rule::Order), 1, "{:?}", report.violations);
}

/// Whoever wakes up late above the lanes tells that nobody has gone on, if nobody is heard of meanwhile.
#[test]
fn a_lane_may_have_chosen_before_the_machine_stood_still() {
    let system = system_of("strategy = \"rms+mlf\"\nlate = \"none\"", "criticality = \"high\"");
    let (metadata, tolerance) = (traced(&system, [1, 1]), Duration::from_nanos(200));
    // A thread that was to wake up at `due` does at 1 100; something is written at `between`.
    let order = |due: Option<i64>, between: Option<i64>| {
        let mut trace = Trace::new(&metadata);
        trace.post(0, (LONG, 0), 1_000_000);
        trace.post(100, (SHORT, 0), 5_000);
        if let Some(between) = between {
            trace.post(between, (LONG, 1), 1_000_000);
        }
        if let Some(due) = due {
            let [due, woken] = [due, 1_100].map(|after| Instant::from_nanos(START + after));
            trace.records.push(event::Timer { due, woken, node: 0 }.at(woken, 0));
        }
        trace.begin(1_110, (LONG, 0));
        trace.complete(1_200, (LONG, 0), [0, 1_000_000]);
        let report = trace.verified_within(tolerance, &metadata, &system);
        let found = report.violations.iter().filter(|violation| violation.rule == Rule::Order);
        found.map(|violation| violation.certainty).collect::<Vec<_>>()
    };
    assert_eq!(order(Some(190), None), [Certainty::Possible], "it had 190 ns before, and 10 after");
    assert_eq!(order(Some(191), None), [Certainty::Certain], "it had more than it takes to choose");
    assert_eq!(order(Some(150), Some(600)), [Certainty::Certain], "somebody went on");
    assert_eq!(order(None, None), [Certainty::Certain], "nobody came late");
}

/// Below schedulers a lane goes on when these have given the lanes a processor, and no higher one has it.
#[test]
fn a_lane_below_schedulers_goes_on_when_it_is_its_turn() {
    let text = "strategy = \"rms+mlf\"\nlate = \"none\"";
    let below = "[[scheduler]]\nname = \"top\"\nkind = \"fixed-priority\"\n\
                 [[scheduler]]\nname = \"lanes\"\nkind = \"lanes\"\nunder = [{ scheduler = \"top\", priority = 1 }]\n";
    let system = system_of(text, &format!("criticality = \"high\"\n{below}"));
    let mut metadata = traced(&system, [1, 1]);
    let (parent, child, guarantee) = ("top".into(), "lanes".into(), "NULL".into());
    metadata.edges = vec![EdgeEntry { node: 0, parent, child, guarantee }];
    let tolerance = Duration::from_nanos(200);
    let at = |after: i64| Instant::from_nanos(START + after);
    let trigger = Trigger::Timer.into();
    let begun = || {
        let mut trace = Trace::new(&metadata);
        let request = event::VpRequest { edge: 0, by: None, trigger };
        trace.records.push(request.at(at(0), Record::NO_CPU));
        trace.records.push(event::VpGrant { edge: 0, by: None, trigger }.at(at(0), 0));
        trace.post(0, (LONG, 0), 1_000_000);
        trace
    };
    let ended = |mut trace: Trace, system: &System| {
        trace.begin(1_110, (LONG, 0));
        trace.complete(1_200, (LONG, 0), [0, 1_000_000]);
        let report = trace.verified_within(tolerance, &metadata, system);
        let found = report.violations.iter().filter(|violation| violation.rule == Rule::Order);
        found.map(|violation| violation.certainty).collect::<Vec<_>>()
    };
    // The lanes have no processor from 190 to 1 100.
    let mut revoked = begun();
    revoked.records.push(event::VpRevoke { edge: 0, by: None, trigger }.at(at(190), 0));
    revoked.post(400, (SHORT, 0), 5_000);
    revoked.records.push(event::VpGrant { edge: 0, by: None, trigger }.at(at(1_100), 0));
    assert_eq!(ended(revoked, &system), [Certainty::Possible]);
    // They have one, and the higher lane has it.
    let mut higher = begun();
    higher.post(190, (BASE, 0), SECOND_NS);
    higher.begin(190, (BASE, 0));
    higher.post(400, (SHORT, 0), 5_000);
    higher.complete(1_100, (BASE, 0), [190, SECOND_NS + 190]);
    assert_eq!(ended(higher, &system), [Certainty::Possible]);
    let mut free = begun();
    free.post(400, (SHORT, 0), 5_000);
    assert_eq!(ended(free, &system), [Certainty::Certain]);
    // Against a strategy with fewer lanes, or with more, than the run had.
    let other = system_of("strategy = \"edf\"\nlate = \"none\"", &format!("criticality = \"high\"\n{below}"));
    assert_eq!(ended(begun(), &other), []);
    let fewer = Metadata { edges: metadata.edges.clone(), ..traced(&other, [0, 0]) };
    let mut trace = Trace::new(&fewer);
    trace.post(0, (SLOW, 0), 2 * SECOND_NS);
    trace.begin(10, (SLOW, 0));
    assert!(trace.verified_within(tolerance, &fewer, &system).jobs > 0);
}

/// A processor that the kernel leaves idle although the thread that lost it could go on, as real-time throttling does, is not the lanes' fault.
#[test]
fn a_processor_that_the_kernel_holds_off_does_not_idle() {
    let system = system_of("strategy = \"rms+mlf\"\nlate = \"none\"", "criticality = \"high\"");
    let metadata = traced(&system, [1, 1]);
    let threads = [71_u32, 72];
    let idle = |preempted: bool| {
        let switch = |after: i64, from_tid: u32, to_tid: u32, preempted: bool| {
            let preempted = event::Flag(preempted);
            let switch = event::Switch { from_tid, to_tid, from_pid: 5, to_pid: 5, preempted };
            switch.at(Instant::from_nanos(START + after), 0)
        };
        let mut trace = Trace::new(&metadata);
        for (lane, tid) in threads.into_iter().enumerate() {
            let lane = Some(lane as u16);
            let thread = event::Thread { tid, pid: 5, node: 0, lane, role: ThreadRole::Lane.into() };
            trace.records.push(thread.at(Instant::from_nanos(START), 0));
        }
        trace.records.push(switch(0, 0, threads[0], false));
        trace.post(0, (BASE, 0), SECOND_NS);
        trace.begin(0, (BASE, 0));
        trace.post(50, (LONG, 0), 1_000_000);
        trace.records.push(switch(100, threads[0], 0, preempted));
        trace.records.push(switch(100_000, 0, threads[0], true));
        trace.complete(100_010, (BASE, 0), [0, SECOND_NS]);
        trace.records.push(switch(100_020, threads[0], threads[1], false));
        trace.begin(100_030, (LONG, 0));
        trace.complete(100_040, (LONG, 0), [50, 1_000_000]);
        broken(&trace.verified_within(Duration::from_nanos(200), &metadata, &system))
    };
    assert_eq!(idle(true), []);
    assert_eq!(idle(false), [Rule::Idle], "`base` sleeps, and `long` could have run");
}
