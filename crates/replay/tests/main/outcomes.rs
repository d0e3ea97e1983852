//! What consumers of a program's own channels answer (`Outcome`), held against what they answered then: one at a time, several at once, by two lanes.

use crate::posted::{Recorded, lost, ms};
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::{Arc, Mutex};
use talea_model::{LaneDispatch, Strategy as By, System, TaskBuilder};
use talea_notification::qos::{PropertyName, PropertyValue, QosSettings};
use talea_notification::{
    ConnectedConsumer, Content, Delivery, Event, EventChannel, EventChannelFactory, EventType, Header,
    Outcome,
};
use talea_operation::{Declaration, KeptOutputs, Operations, OutputKind, PostingRoom};
use talea_policy::strategy::plan_lanes_of;
use talea_record::event::Answer;
use talea_record::{CallOutcome, Event as RecordedEvent, JobId, Metadata, Question, Record, Sink};
use talea_replay::{Difference, Replay, ReplayReport, What};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

const ROOM: PostingRoom = PostingRoom { operations: 8, jobs: 8, posters: 1 };

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Step(u64);

impl Content for Step {}

/// A call: of which operation, in which of its jobs, what the first event carried, and the answer, if the code did not panic.
type Called = (String, u64, u64, Option<Outcome>);

/// The call, by its place among those of all consumers, in which another answer is given, or the code panics, and which.
type Changed = Option<(usize, Option<Outcome>)>;

struct Program {
    factory: EventChannelFactory,
    called: Arc<Mutex<Vec<Called>>>,
    operations: Operations,
    _consumers: Vec<ConnectedConsumer>,
}

impl Program {
    fn new(changed: Changed) -> Self {
        let factory = EventChannelFactory::new();
        let channel = factory.create_with_defaults("steps");
        let event_type = EventType::new("Robot", "Step");
        channel.carries::<Step>(&event_type, &OutputKind::any().serialized()).expect("it has bytes");
        let supplier = channel.supplier("watch").offer([event_type.clone()]).connect();
        let mut supplier = supplier.expect("there is room");
        let operations = Operations::synthetic().with("watch", move |job| {
            for number in 0..2 {
                let mut header = Header::new(event_type.clone());
                header.priority = Some((job.instance() % 3) as i16);
                let event = Event::new(header, Step(10 * job.instance() + number));
                supplier.push(job, &event).expect("it is taken");
            }
        });
        let called = Arc::new(Mutex::new(Vec::new()));
        let _consumers = consumers(&channel, changed, &called);
        Program { factory, called, operations, _consumers }
    }
}

fn consumers(
    channel: &EventChannel,
    changed: Changed,
    called: &Arc<Mutex<Vec<Called>>>,
) -> Vec<ConnectedConsumer> {
    // By what it is handed, as sooner or later each of them does.
    let answering = |first_to_panic: u64| {
        let called = Arc::clone(called);
        move |deliveries: &[Delivery], job: &talea_operation::JobContext<'_>| {
            let Step(step) = *deliveries[0].event().content().expect("a step");
            let answer = match step % 7 {
                1 => Some(Outcome::Discard),
                2 if job.instance().is_multiple_of(2) => Some(Outcome::Retry),
                _ if step >= first_to_panic => None,
                _ => Some(Outcome::Ok),
            };
            let mut called = called.lock().expect("whole");
            let answer =
                changed.filter(|(place, _)| *place == called.len()).map_or(answer, |(_, other)| other);
            called.push((job.operation().to_owned(), job.instance(), step, answer));
            drop(called);
            answer.expect("it was to panic")
        }
    };
    let lane = |name: &str, level| Declaration::new(name, ms(9)).wcet(Work::from_micros(300)).lane(level);
    // They are handed what is to be tried again after this.
    let qos = QosSettings::new().with(PropertyName::RetryInterval, PropertyValue::Time(ms(3)));
    let batches = qos.clone().with(PropertyName::MaximumBatchSize, PropertyValue::Number(3));
    let serial = answering(200);
    let serial = channel
        .consumer("serial")
        .qos(qos.clone())
        .lane_from(2, lane("serial.high", 0))
        .lane_from(0, lane("serial.low", 1))
        .connect_with_job(move |delivery, job| serial(std::slice::from_ref(delivery), job));
    let batch = channel.consumer("batch").qos(batches).lane(lane("batch", 1));
    let batch = batch.connect_sequence(answering(u64::MAX));
    let concurrent = answering(u64::MAX);
    let concurrent = channel
        .consumer("concurrent")
        .qos(qos)
        .lane(lane("concurrent", 0))
        .connect_concurrent(move |delivery, job| concurrent(std::slice::from_ref(delivery), job));
    [serial, batch, concurrent].into_iter().map(|one| one.expect("it can be connected")).collect()
}

fn system(dispatch: LaneDispatch) -> System {
    let task = |name: &str, period: i64| TaskBuilder::new(name, ms(period)).wcet(Work::from_micros(900));
    System::builder("answering")
        .strategy(By::Rms)
        .lane_dispatch(dispatch)
        .task(task("watch", 7))
        .task(task("idle", 23))
        .build()
        .expect("a system")
}

fn recorded(system: &System) -> (Metadata, Vec<Record>, Vec<Called>) {
    let program = Program::new(None);
    let plans = plan_lanes_of(system).expect("sorted");
    let called = Arc::clone(&program.called);
    let (simulation, workplace) =
        Simulation::with_posting(system, &plans, program.operations, ROOM).expect("simulated");
    program.factory.bind(workplace).expect("it can be bound");
    let mut simulation = simulation.with_kept_values(system, &KeptOutputs::All).expect("it can be kept");
    let mut recorded = Recorded::default();
    simulation.advance(Instant::ZERO + ms(170), &mut recorded);
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut recorded);
    let called = called.lock().expect("whole").clone();
    (metadata, recorded.records, called)
}

fn replayed(
    system: &System,
    (metadata, records): (&Metadata, &[Record]),
    changed: Changed,
) -> (ReplayReport, Vec<Called>) {
    let program = Program::new(changed);
    let called = Arc::clone(&program.called);
    let mut replay = Replay::new(system, metadata, program.operations).expect("it can be replayed");
    program.factory.bind(replay.workplace(ROOM)).expect("it can be bound");
    records.iter().for_each(|record| replay.record(*record));
    let report = replay.finish();
    let called = called.lock().expect("whole").clone();
    (report, called)
}

/// Compared, differing, unknown and not recorded.
fn answers(report: &ReplayReport) -> [u64; 4] {
    let sum = |of: fn(&talea_replay::OutputReport) -> u64| report.outcomes.iter().map(of).sum();
    [sum(|row| row.compared), sum(|row| row.differing), sum(|row| row.unknown), sum(|row| row.unrecorded)]
}

fn code(answer: Option<Outcome>) -> CallOutcome {
    answer.unwrap_or(Outcome::Fail).into()
}

fn is_outcome(record: &Record) -> bool {
    Answer::read(record).is_some_and(|answer| answer.what.known() == Some(Question::Outcome))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn another_answer_to_a_delivery_is_named(
        dispatch in select(&[LaneDispatch::NonPreemptive, LaneDispatch::Preemptive][..]),
        chosen in any::<prop::sample::Index>(),
        other in select(&[None, Some(Outcome::Ok), Some(Outcome::Retry), Some(Outcome::Discard), Some(Outcome::Fail)][..]),
    ) {
        let system = system(dispatch);
        let (metadata, records, then) = recorded(&system);
        for answer in [None, Some(Outcome::Ok), Some(Outcome::Retry), Some(Outcome::Discard)] {
            prop_assert!(then.iter().any(|(.., one)| *one == answer), "{:?}: {:?}", answer, then);
        }
        for name in ["serial.high", "serial.low", "batch", "concurrent"] {
            prop_assert!(then.iter().filter(|(one, ..)| one == name).count() > 3, "{}: {:?}", name, then);
        }
        let trace = (&metadata, &records[..]);
        let (same, now) = replayed(&system, trace, None);
        prop_assert_eq!((&same.first, same.unknown(), &same.posted), (&None, 0, &Vec::new()));
        prop_assert_eq!(&now, &then);
        prop_assert_eq!(answers(&same), [then.len() as u64, 0, 0, 0]);
        prop_assert!(same.outcomes.iter().all(|row| row.is_kept && row.compared > 0));

        let place = chosen.index(then.len());
        let (name, instance, step, answer) = &then[place];
        let (changed, now) = replayed(&system, trace, Some((place, other)));
        prop_assert_eq!(now.len(), then.len(), "others are handed what they were handed");
        if code(*answer) == code(other) {
            prop_assert_eq!(changed.first, None, "a panic is a failure");
            return Ok(());
        }
        prop_assert_eq!((changed.differing(), answers(&changed)), (1, [then.len() as u64, 1, 0, 0]));
        let Difference { output, instance: job, what, call, .. } = changed.first.clone().expect("it is found");
        prop_assert_eq!((&output, job, call.is_some()), (name, *instance, true));
        let What::Outcome { event, recorded, now, .. } = what else { panic!("{what:?}") };
        prop_assert_eq!(event, Some(format!("steps Robot/Step of watch #{}", step / 10)));
        prop_assert_eq!((recorded, now), (code(*answer), code(other)));
        let said = changed.first.expect("it is found").to_string();
        let said_so = format!("the consumer answered {}, and answers {} now", recorded.name(), now.name());
        prop_assert!(said.contains(&said_so), "{}", said);
    }
}

/// Traces of before, and of later, have answers that nobody knows here: they are neither equal nor do they differ.
#[test]
fn answers_that_are_not_recorded_are_unknown() {
    let system = system(LaneDispatch::NonPreemptive);
    let (metadata, records, then) = recorded(&system);
    let is_ok = |(.., answer): &Called| *answer == Some(Outcome::Ok);
    let changed = Some((then.iter().position(is_ok).expect("there is one"), Some(Outcome::Discard)));
    let all = then.len() as u64;
    let before: Vec<Record> = records.iter().filter(|record| !is_outcome(record)).copied().collect();
    assert_eq!(before.len() + then.len(), records.len(), "one record for each call");
    let as_of_later = |record: &Record| match Answer::read(record).filter(|_| is_outcome(record)) {
        Some(answer) => Answer { answer: 77, ..answer }.at(record.time, record.cpu),
        None => *record,
    };
    let later: Vec<Record> = records.iter().map(as_of_later).collect();
    for (records, is_kept) in [(before, false), (later, true)] {
        let (report, now) = replayed(&system, (&metadata, &records), changed);
        assert_eq!((&report.first, report.unknown(), answers(&report)), (&None, 0, [0, 0, 0, all]));
        assert!(report.outcomes.len() == 4 && report.outcomes.iter().all(|row| row.is_kept == is_kept));
        assert_eq!(now.len(), then.len());
    }
    // Where records are lost, nobody knows what the code kept of the jobs before: another answer proves nothing.
    let (report, _) = replayed(&system, (&metadata, &[&[lost(1)], &records[..]].concat()), changed);
    assert_eq!((&report.first, answers(&report)), (&None, [all - 1, 0, 1, 0]));
}

/// Two jobs of the consumer that is called one at a time, of different lanes, that follow each other: each with the place of its call.
fn one_after_the_other(metadata: &Metadata, records: &[Record]) -> [(JobId, usize); 2] {
    let name = |job: JobId| metadata.operations[job.operation.index()].name.as_str();
    let calls = records.iter().enumerate().filter(|(_, record)| is_outcome(record));
    let calls: Vec<(JobId, usize)> = calls.map(|(place, record)| (record.job(), place)).collect();
    let calls: Vec<_> = calls.into_iter().filter(|(job, _)| name(*job).starts_with("serial.")).collect();
    let pairs = calls.windows(2).map(|pair| [pair[0], pair[1]]);
    let mut pairs = pairs.filter(|[(one, _), (other, _)]| one.operation != other.operation);
    pairs.nth(2).expect("both lanes have events")
}

/// On threads, who has been called first may end last: between the end of its call and its own, others of the consumer's lanes are called.
#[test]
fn calls_of_a_consumer_go_by_their_own_order() {
    let system = system(LaneDispatch::NonPreemptive);
    let (metadata, mut records, then) = recorded(&system);
    let [(first, place), (second, _)] = one_after_the_other(&metadata, &records);
    let end_of = |records: &[Record], job: JobId| {
        let is_end = |record: &Record| record.event == RecordedEvent::COMPLETE && record.job() == job;
        records.iter().position(is_end).expect("it has ended")
    };
    let ended = records.remove(end_of(&records, first));
    let behind = end_of(&records, second);
    records.insert(behind + 1, Record { time: records[behind].time, ..ended });
    let (same, now) = replayed(&system, (&metadata, &records), None);
    let serial = |called: &[Called]| -> Vec<Called> {
        called.iter().filter(|(name, ..)| name.starts_with("serial.")).cloned().collect()
    };
    let (now, then_serial) = (serial(&now), serial(&then));
    assert_eq!(now.iter().zip(&then_serial).find(|(now, then)| now != then), None);
    assert_eq!((&same.first, same.unknown(), now.len()), (&None, 0, then_serial.len()));

    // Where calls of two jobs are not one behind the other, their code is not called again as it was: what it says otherwise proves nothing.
    let (metadata, mut records, then) = recorded(&system);
    let place =
        records.iter().position(|record| is_outcome(record) && record.job() == first).unwrap_or(place);
    let answer = records.remove(place);
    let behind = end_of(&records, second);
    let last = records[behind + 1..].iter().position(|record| is_outcome(record) && record.job() == second);
    let behind = last.map_or(behind, |last| behind + 1 + last);
    let time = records[behind].time + Duration::from_nanos(1);
    records.insert(behind + 1, Record { time, ..answer });
    let of_second = |(name, instance, ..): &Called| {
        let entry = &metadata.operations[second.operation.index()];
        (name, *instance) == (&entry.name, second.instance)
    };
    let changed = then.iter().position(of_second).expect("it is called");
    let (report, _) = replayed(&system, (&metadata, &records), Some((changed, Some(Outcome::Fail))));
    assert_eq!((&report.first, answers(&report)[1..3].to_vec()), (&None, vec![0, 1]), "{report:?}");
}
