//! Verification of what a guard held before its first subtask, against records of real threads written by hand.

use talea_insight::verify::{Rule, Verifier, VerifyReport};
use talea_model::{OperationId, System};
use talea_policy::strategy::plan_lanes_of;
use talea_record::*;
use talea_time::{Duration, Instant};

const START: i64 = 1_000_000_000;
const TOLERANCE: Duration = Duration::from_micros(200);

/// The operations, in one lane.
const LONG: usize = 0;
const PEER: usize = 1;
const HELD: usize = 2;

/// A lane in the order of releases: two tasks with periods, and one that a guard holds, with more keys.
fn system(keys: &str) -> System {
    let text = format!(
        "[system]\nname = \"held\"\nstrategy = \"criticality\"\n[[node]]\nname = \"one\"\ncpus = [0]\n\
         [[task]]\nname = \"long\"\nperiod = \"1s\"\nwcet = \"2ms\"\n\
         [[task]]\nname = \"peer\"\nperiod = \"1s\"\nphase = \"1100us\"\nwcet = \"1ms\"\n\
         [[task]]\nname = \"held\"\ntrigger = \"external\"\nseparation = \"10ms\"\ndeadline = \"100ms\"\nwcet = \"1ms\"\n{keys}\n"
    );
    talea_model::parse("held.toml", &text, ".".as_ref()).expect("a system").system
}

/// Records, whose times are in microseconds after the start.
struct Trace(Vec<Record>);

impl Trace {
    fn new() -> Self {
        let mut trace = Trace(Vec::new());
        trace.tell(Event::RUN_START, 0, (LONG, 0), [0, 0], 0);
        trace
    }

    fn tell(
        &mut self,
        event: Event,
        us: i64,
        (operation, instance): (usize, u64),
        words: [i64; 2],
        arg: u16,
    ) {
        let job = JobId { operation: OperationId::from_index(operation), instance };
        let causal = if event == Event::RUN_START || event == Event::RUN_END { 0 } else { job.pack() };
        let (words, time) = (words.map(|word| word as u64), Instant::from_nanos(START + 1_000 * us));
        self.0.push(Record { time, causal, words, event, source: 0, cpu: 0, arg });
    }

    /// A job of the task arrived at `arrival`.
    fn dated(&mut self, event: Event, us: i64, job: (usize, u64), arrival: i64, arg: u16) {
        let relative = if job.0 == HELD { 100_000 } else { 1_000_000 };
        self.tell(event, us, job, [arrival, arrival + relative].map(|us| START + 1_000 * us), arg);
    }

    fn release(&mut self, us: i64, job: (usize, u64), arrival: i64) {
        self.dated(Event::RELEASE, us, job, arrival, 0);
    }

    /// The guard lets the job through as of `at`, when its thread gets around to that.
    fn open(&mut self, us: i64, job: (usize, u64), arrival: i64, at: i64) {
        self.tell(Event::OPEN, us, job, [START + 1_000 * at, 0], 0);
        self.release(us, job, arrival);
    }

    fn execute(&mut self, from: i64, to: i64, job: (usize, u64), arrival: i64) {
        self.tell(Event::START, from, job, [-1, 0], 1);
        self.dated(Event::COMPLETE, to, job, arrival, 0);
    }

    fn merge(&mut self, us: i64, job: (usize, u64), arrival: i64) {
        self.dated(Event::SKIP, us, job, arrival, SkipReason::Merged as u16);
    }

    fn verified(mut self, keys: &str, end: i64) -> VerifyReport {
        self.tell(Event::RUN_END, end, (LONG, 0), [0, 0], 0);
        let system = system(keys);
        let plans = plan_lanes_of(&system).expect("lanes");
        let origin = Origin::Threads { realtime: true };
        let metadata = Metadata::new(&system, &plans, origin, Instant::from_nanos(START));
        let mut verifier = Verifier::new(&metadata, &system, &plans, TOLERANCE).expect("of this system");
        self.0.iter().for_each(|record| verifier.record(*record));
        verifier.finish()
    }
}

fn of(report: &VerifyReport, rule: Rule) -> Vec<&str> {
    report.violations.iter().filter(|found| found.rule == rule).map(|found| found.text.as_str()).collect()
}

/// While `long` executes, the guard opens for `held`, `peer` is released, and half a millisecond later the release thread gets around to `held`.
fn opened(told: bool, first: usize) -> VerifyReport {
    let mut trace = Trace::new();
    trace.release(0, (LONG, 0), 0);
    trace.tell(Event::START, 10, (LONG, 0), [-1, 0], 1);
    trace.release(1_100, (PEER, 0), 1_100);
    match told {
        true => trace.open(1_500, (HELD, 0), 1_000, 1_000),
        false => trace.release(1_500, (HELD, 0), 1_000),
    }
    trace.dated(Event::COMPLETE, 2_000, (LONG, 0), 0, 0);
    let jobs = [((HELD, 0), 1_000), ((PEER, 0), 1_100)];
    let [one, other] = if first == HELD { jobs } else { [jobs[1], jobs[0]] };
    trace.execute(2_001, 3_000, one.0, one.1);
    trace.execute(3_001, 4_000, other.0, other.1);
    trace.verified("", 4_001)
}

#[test]
fn a_held_job_stands_where_its_guard_opened_however_late_its_release_is_told() {
    let right = opened(true, HELD);
    assert_eq!(right.count(), 0, "{:?}", right.violations);
    let wrong = opened(true, PEER);
    assert_eq!(of(&wrong, Rule::Order), ["it got the lane before a job that comes first"]);
    assert_eq!(wrong.violations[0].job.as_deref(), Some("peer #0"));
    // Without the record of the opening either may have come first.
    for first in [HELD, PEER] {
        let report = opened(false, first);
        assert_eq!(of(&report, Rule::Order), [""; 0], "{:?}", report.violations);
    }
}

#[test]
fn a_guard_opens_between_arrival_and_release() {
    for (at, found) in [(999, 1), (1_000, 0), (1_500, 0), (1_501, 1)] {
        let mut trace = Trace::new();
        trace.open(1_500, (HELD, 0), 1_000, at);
        trace.execute(1_501, 1_600, (HELD, 0), 1_000);
        assert_eq!(of(&trace.verified("", 1_700), Rule::Release).len(), found, "{at}");
    }
    // And as far after the one before as is declared, to the nanosecond.
    for (at, found) in [(10_999, 1), (11_000, 0)] {
        let mut trace = Trace::new();
        trace.open(1_500, (HELD, 0), 1_000, 1_000);
        trace.execute(1_501, 1_600, (HELD, 0), 1_000);
        trace.open(11_500, (HELD, 1), 2_000, at);
        trace.execute(11_501, 11_600, (HELD, 1), 2_000);
        assert_eq!(of(&trace.verified("", 11_700), Rule::Triggers).len(), found, "{at}");
    }
}

const MERGE: &str = "overrun = \"merge\"";

/// The first is let through at once; of two that come while its guard is closed one waits, and with that the other is merged.
fn merged(trace: &mut Trace) {
    trace.release(0, (LONG, 0), 0);
    trace.execute(10, 500, (LONG, 0), 0);
    trace.open(1_010, (HELD, 0), 1_000, 1_000);
    trace.execute(1_020, 1_099, (HELD, 0), 1_000);
    trace.release(1_100, (PEER, 0), 1_100);
    trace.execute(1_110, 1_200, (PEER, 0), 1_100);
    trace.tell(Event::GUARD, 3_000, (HELD, 1), [START + 11_000_000, 0], 0);
    trace.merge(4_010, (HELD, 2), 4_000);
    trace.open(11_010, (HELD, 1), 3_000, 11_000);
    trace.execute(11_020, 11_100, (HELD, 1), 3_000);
}

#[test]
fn what_is_merged_at_a_guard_leaves_a_record_and_waits_for_nobody() {
    let mut trace = Trace::new();
    merged(&mut trace);
    let report = trace.verified(MERGE, 300_000);
    assert_eq!(report.count(), 0, "{:?}", report.violations);
    // One record less.
    let mut trace = Trace::new();
    merged(&mut trace);
    trace.0.retain(|record| record.event != Event::SKIP);
    trace.open(21_010, (HELD, 3), 13_000, 21_000);
    trace.execute(21_020, 21_100, (HELD, 3), 13_000);
    let report = trace.verified(MERGE, 300_000);
    assert_eq!(of(&report, Rule::Arrivals), ["it arrived, and was neither released nor skipped"]);
    assert_eq!(report.violations[0].job.as_deref(), Some("held #2"));
    // At the end of a run on threads its record may be on its way.
    let mut trace = Trace::new();
    merged(&mut trace);
    trace.0.retain(|record| record.event != Event::SKIP);
    trace.open(21_010, (HELD, 3), 13_000, 21_000);
    trace.execute(21_020, 21_100, (HELD, 3), 13_000);
    assert_eq!(of(&trace.verified(MERGE, 22_000), Rule::Arrivals), [""; 0]);
    // It waits at its guard, too, instead.
    let mut trace = Trace::new();
    merged(&mut trace);
    let skip = trace.0.iter().position(|record| record.event == Event::SKIP).expect("it is merged");
    trace.0[skip].event = Event::GUARD;
    trace.open(21_010, (HELD, 2), 4_000, 21_000);
    trace.execute(21_020, 21_100, (HELD, 2), 4_000);
    assert_eq!(of(&trace.verified(MERGE, 300_000), Rule::Overrun).len(), 1);
}

#[test]
fn nothing_is_merged_with_what_does_not_wait() {
    // The one that waited was released and begun long before.
    let mut trace = Trace::new();
    merged(&mut trace);
    trace.merge(15_010, (HELD, 3), 15_000);
    let report = trace.verified(MERGE, 300_000);
    assert_eq!(of(&report, Rule::Overrun), ["it was merged, and nothing before it was waiting"]);
    assert_eq!(report.violations[0].job.as_deref(), Some("held #3"));
    // A guard holds one before it at the end.
    let mut trace = Trace::new();
    merged(&mut trace);
    trace.tell(Event::GUARD, 14_000, (HELD, 3), [START + 21_000_000, 0], 0);
    trace.merge(15_010, (HELD, 4), 15_000);
    trace.dated(Event::HELD, 16_000, (HELD, 3), 14_000, 0);
    let report = trace.verified(MERGE, 300_000);
    assert_eq!(report.count(), 0, "{:?}", report.violations);
}
