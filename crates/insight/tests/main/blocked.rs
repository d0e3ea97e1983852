//! Jobs that wait for another one to end a call, which has their priority meanwhile, against records written by hand.

use std::convert::Infallible;
use std::path::Path;
use talea_insight::explain::{Kind, Question, Subject, Which, explain};
use talea_insight::verify::{Rule, Verifier};
use talea_insight::*;
use talea_model::{OperationId, System};
use talea_policy::strategy::plan_lanes_of;
use talea_record::event::{Block, Unblock};
use talea_record::*;
use talea_time::{Duration, Instant};

const START: i64 = 1_000_000_000;
const BASE: usize = 0;
const MID: usize = 1;
/// They are posted: in the lane of `mid`, and in that of `slow`, which is the lowest.
const HIGH: usize = 3;
const LOW: usize = 4;

fn system() -> System {
    let task = |name: &str, period: &str| {
        format!("[[task]]\nname = \"{name}\"\nperiod = \"{period}\"\nwcet = \"10ns\"\n")
    };
    let tasks = [task("base", "1s"), task("mid", "1500ms"), task("slow", "2s")].concat();
    let text = format!(
        "[system]\nname = \"blocked\"\nstrategy = \"rms\"\n[[node]]\nname = \"one\"\ncpus = [0]\n{tasks}"
    );
    talea_model::parse("blocked.toml", &text, Path::new(".")).expect("a system").system
}

/// Tables of a run of the system on threads, with the posted operations, of which `high` is in this lane.
fn traced(system: &System, lane_of_high: usize) -> Metadata {
    let plans = plan_lanes_of(system).expect("it can be planned");
    let origin = Origin::Threads { realtime: true };
    let mut metadata = Metadata::new(system, &plans, origin, Instant::from_nanos(START));
    metadata.reserve_posted(2);
    for (number, name, lane) in [(HIGH, "high", lane_of_high), (LOW, "low", 2)] {
        let (mut entry, mut task) = (metadata.operations[number].clone(), metadata.tasks[number].clone());
        (entry.name, entry.lane, task.name) = (name.into(), lane, name.into());
        metadata.define(&Definition::Operation { number, entry, task });
    }
    metadata
}

fn job(operation: usize) -> JobId {
    JobId { operation: OperationId::from_index(operation), instance: 0 }
}

fn at(after: i64) -> Instant {
    Instant::from_nanos(START + after)
}

/// A record of the first job of the operation; `dates` are its nominal release and its deadline.
fn told(event: Event, after: i64, operation: usize, lane: usize, dates: [i64; 2]) -> Record {
    let words = dates.map(|date| (START + date) as u64);
    let words = if dates == [0, 0] { [0, 0] } else { words };
    Record {
        time: at(after),
        causal: job(operation).pack(),
        words,
        event,
        source: lane as u16,
        cpu: 0,
        arg: 0,
    }
}

fn block(after: i64, (waits, lane): (usize, usize), by: usize) -> Record {
    Block { job: job(waits), by: Some(job(by)), lane: lane as u16 }.at(at(after), 0)
}

fn unblock(after: i64, (waits, lane): (usize, usize)) -> Record {
    Unblock { job: job(waits), lane: lane as u16 }.at(at(after), 0)
}

const DUE: i64 = 1_000_000;

fn run(event: Event, after: i64) -> Record {
    Record { time: at(after), causal: 0, words: [0, 0], event, source: 0, cpu: 0, arg: 0 }
}

/// `mid` has preempted `low`, and `high` has preempted `mid`, when it finds that `low` has what it needs.
fn lending() -> Vec<Record> {
    let none = [0, 0];
    vec![
        run(Event::RUN_START, 0),
        told(Event::RELEASE, 0, LOW, 2, [0, DUE]),
        told(Event::START, 0, LOW, 2, none),
        told(Event::RELEASE, 100, MID, 1, [100, DUE]),
        told(Event::PREEMPT, 100, LOW, 2, none),
        told(Event::START, 100, MID, 1, none),
        told(Event::RELEASE, 200, HIGH, 0, [200, DUE]),
        told(Event::PREEMPT, 200, MID, 1, none),
        told(Event::START, 200, HIGH, 0, none),
        block(250, (HIGH, 0), LOW),
        unblock(400, (HIGH, 0)),
        told(Event::COMPLETE, 500, HIGH, 0, [200, DUE]),
        told(Event::RESUME, 500, MID, 1, none),
        told(Event::COMPLETE, 600, MID, 1, [100, DUE]),
        told(Event::RESUME, 600, LOW, 2, none),
        told(Event::COMPLETE, 700, LOW, 2, [0, DUE]),
        run(Event::RUN_END, 700),
    ]
}

/// The same with `high` in the lane of `mid`, and without that: `base` comes before both while one waits for the other.
fn interrupted() -> Vec<Record> {
    let none = [0, 0];
    vec![
        run(Event::RUN_START, 0),
        told(Event::RELEASE, 0, LOW, 2, [0, DUE]),
        told(Event::START, 0, LOW, 2, none),
        told(Event::RELEASE, 200, HIGH, 1, [200, DUE]),
        told(Event::PREEMPT, 200, LOW, 2, none),
        told(Event::START, 200, HIGH, 1, none),
        block(250, (HIGH, 1), LOW),
        told(Event::RELEASE, 300, BASE, 0, [300, DUE]),
        told(Event::PREEMPT, 300, HIGH, 1, none),
        told(Event::START, 300, BASE, 0, none),
        told(Event::COMPLETE, 350, BASE, 0, [300, DUE]),
        told(Event::RESUME, 350, HIGH, 1, none),
        unblock(400, (HIGH, 1)),
        told(Event::COMPLETE, 500, HIGH, 1, [200, DUE]),
        told(Event::RESUME, 500, LOW, 2, none),
        told(Event::COMPLETE, 700, LOW, 2, [0, DUE]),
        run(Event::RUN_END, 700),
    ]
}

fn explained(metadata: &Metadata, records: &[Record], operation: usize) -> Vec<(i64, i64, Kind, String)> {
    let question = Question { which: Which::This(Subject::Job(job(operation))), task: None, limit: 1 };
    let answer = explain(metadata, question, |sink: &mut dyn Sink| {
        records.iter().for_each(|record| sink.record(*record));
        Ok::<(), Infallible>(())
    })
    .expect("it tells enough");
    let since = |at: Instant| at.as_nanos() - START;
    let told = answer.list[0].intervals.iter().filter(|interval| since(interval.to) > 0);
    told.map(|interval| {
        let blamed = answer.blamed_name(interval.cause.blamed());
        (since(interval.from), since(interval.to), interval.cause.kind(), blamed)
    })
    .collect()
}

fn is(from: i64, to: i64, kind: Kind, blamed: &str) -> (i64, i64, Kind, String) {
    (from, to, kind, blamed.into())
}

#[test]
fn who_waits_is_blocked_by_whom_it_lends_its_priority() {
    let (records, metadata) = (lending(), traced(&system(), 0));
    let of = |operation: usize| explained(&metadata, &records, operation);
    assert_eq!(
        of(HIGH),
        [
            is(200, 250, Kind::Execution, ""),
            is(250, 400, Kind::Serial, "low"),
            is(400, 500, Kind::Execution, ""),
        ]
    );
    assert_eq!(
        of(LOW),
        [
            is(0, 100, Kind::Execution, ""),
            is(100, 200, Kind::Higher, "mid"),
            is(200, 250, Kind::Higher, "high"),
            is(250, 400, Kind::Execution, ""),
            is(400, 500, Kind::Higher, "high"),
            is(500, 600, Kind::Higher, "mid"),
            is(600, 700, Kind::Execution, ""),
        ]
    );
    let of_mid = of(MID);
    let expected = [
        is(100, 200, Kind::Execution, ""),
        is(200, 250, Kind::Higher, "high"),
        is(250, 400, Kind::Lent, "low"),
        is(400, 500, Kind::Higher, "high"),
        is(500, 600, Kind::Execution, ""),
    ];
    assert_eq!(of_mid[of_mid.len() - expected.len()..], expected);
}

#[test]
fn neither_runs_while_a_higher_lane_has_the_processor() {
    let (records, metadata) = (interrupted(), traced(&system(), 1));
    assert_eq!(
        explained(&metadata, &records, HIGH),
        [
            is(200, 250, Kind::Execution, ""),
            is(250, 300, Kind::Serial, "low"),
            is(300, 350, Kind::Higher, "base"),
            is(350, 400, Kind::Serial, "low"),
            is(400, 500, Kind::Execution, ""),
        ]
    );
}

#[test]
fn the_processor_is_whose_call_is_waited_for() {
    let metadata = traced(&system(), 0);
    let mut usage = Usage::new(&metadata);
    lending().into_iter().for_each(|record| usage.record(record));
    let report = usage.finish();
    let executed = |name: &str| {
        let operation = report.operations.iter().find(|operation| operation.name == name);
        operation.and_then(|operation| operation.execution).map(|execution| execution.sum_ns)
    };
    assert_eq!(["high", "mid", "low"].map(executed), [Some(150), Some(200), Some(350)]);
    let mut segments = Segments::new(&metadata);
    let mut of_low = Vec::new();
    let mut keep = |segment: Segment| {
        if segment.runner == Runner::Job(job(LOW)) {
            of_low.push((segment.start.as_nanos() - START, segment.end.as_nanos() - START));
        }
    };
    lending().iter().for_each(|record| segments.feed(record, &mut keep));
    segments.finish(at(700), &mut keep);
    assert_eq!(of_low, [(0, 100), (250, 400), (600, 700)]);
}

/// What is found wrong in lives and between lanes.
fn found(records: &[Record], lane_of_high: usize) -> Vec<(Rule, String)> {
    let system = system();
    let (metadata, plans) = (traced(&system, lane_of_high), plan_lanes_of(&system).expect("plans"));
    let mut verifier = Verifier::new(&metadata, &system, &plans, Duration::ZERO).expect("of this system");
    records.iter().for_each(|record| verifier.record(*record));
    let violations = verifier.finish().violations.into_iter();
    violations
        .filter(|violation| matches!(violation.rule, Rule::Life | Rule::Lanes | Rule::Idle))
        .map(|violation| (violation.rule, violation.text))
        .collect()
}

#[test]
fn what_still_waits_when_the_run_ends_is_nobodys_to_judge() {
    let mut records = lending();
    let end = records.pop().expect("the end of the run");
    for place in [10, 11] {
        let mut cut = records.clone();
        let after = if place == 10 { 300 } else { 450 };
        cut.insert(place, Record { time: at(after), ..end });
        assert_eq!(found(&cut, 0), []);
        // Nor what begins to wait then.
        cut.push(block(800, (HIGH, 0), LOW));
        cut.push(unblock(900, (HIGH, 0)));
        assert_eq!(found(&cut, 0), []);
    }
}

#[test]
fn a_lent_priority_is_no_violation_and_what_was_not_lent_is_one() {
    assert_eq!((found(&lending(), 0), found(&interrupted(), 1)), (vec![], vec![]));
    let altered = |alter: &dyn Fn(&mut Record)| {
        let mut records = lending();
        records.iter_mut().for_each(alter);
        found(&records, 0)
    };
    let says = |found: &[(Rule, String)], rule: Rule, text: &str| {
        assert!(found.iter().any(|(of, told)| *of == rule && told.contains(text)), "{text}: {found:?}");
    };
    // Without the wait the trace has `low` run while `mid` and `high` could.
    let mut ran = lending();
    ran.retain(|record| record.event != Event::BLOCK && record.event != Event::UNBLOCK);
    ran.insert(9, told(Event::PREEMPT, 250, HIGH, 0, [0, 0]));
    ran.insert(10, told(Event::RESUME, 250, LOW, 2, [0, 0]));
    ran.insert(11, told(Event::PREEMPT, 400, LOW, 2, [0, 0]));
    ran.insert(12, told(Event::RESUME, 400, HIGH, 0, [0, 0]));
    says(&found(&ran, 0), Rule::Lanes, "");
    says(
        &altered(&|record| {
            if record.event == Event::BLOCK {
                record.words[0] = job(MID).pack();
            }
        }),
        Rule::Life,
        "delivers nothing",
    );
    let by_itself = altered(&|record| {
        if record.event == Event::BLOCK {
            record.words[0] = job(HIGH).pack();
        }
    });
    says(&by_itself, Rule::Life, "waits for itself");
    let mut never_began = lending();
    never_began.retain(|record| record.event != Event::BLOCK);
    says(&found(&never_began, 0), Rule::Life, "did not begin to");
    let mut before = lending();
    before[9].time = at(0);
    before.swap(9, 1);
    assert!(!found(&before, 0).is_empty(), "it waits before it was released");
    let mut unbegun = lending();
    unbegun.retain(|record| record.event != Event::START || record.job() != job(LOW));
    says(&found(&unbegun, 0), Rule::Life, "a delivery that has not begun");
}
