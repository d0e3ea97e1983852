//! What pushes into channels of a program are answered: code that goes by it goes the same way in the replay, whatever has become of these channels.

use crate::posted::{Recorded, lost, ms};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use talea_model::{LaneDispatch, Strategy as By, System, TaskBuilder};
use talea_notification::qos::{DiscardPolicy, QosSettings, Reliability};
use talea_notification::{
    AdminProperties, ConnectedConsumer, Content, Event, EventChannel, EventChannelFactory, EventType, Filter,
    Header, Outcome, PushError, Pushed, Supplier,
};
use talea_operation::{Declaration, KeptOutputs, Operations, OutputKind, PostingRoom};
use talea_policy::strategy::plan_lanes_of;
use talea_record::event::{PushKept, PushUnkept};
use talea_record::{Event as RecordedEvent, Metadata, Record, Sink, ValueLoss};
use talea_replay::{Replay, ReplayReport, What};
use talea_sim::Simulation;
use talea_time::{Instant, Work};

const ROOM: PostingRoom = PostingRoom { operations: 8, jobs: 8, posters: 1 };

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Step(u64);

impl Content for Step {}

/// A job of the task with what its pushes were answered, or what an auditor was handed.
type Seen = (&'static str, u64, Vec<Result<Pushed, PushError>>);

/// A task pushes into a channel that rejects, into one that discards, by a supplier with a filter and by one that is removed, and into one that is destroyed
/// before that; what these pushes were answered decides what it pushes into a channel of audits.
struct Program {
    factory: EventChannelFactory,
    narrow: EventChannel,
    lossy: EventChannel,
    ended: EventChannel,
    /// The number of the supplier that is to be removed, and of the consumer.
    removed: (u32, u32),
    diary: Arc<Mutex<Vec<Seen>>>,
    operations: Operations,
    _consumers: Vec<ConnectedConsumer>,
}

fn step(number: u64) -> Event {
    let mut header = Header::new(EventType::new("Robot", "Step"));
    header.source = number as u32 + 1;
    header.reliability = (number % 11 == 5).then_some(Reliability::Persistent);
    Event::new(header, Step(number))
}

fn digest(answers: &[Result<Pushed, PushError>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{answers:?}").hash(&mut hasher);
    hasher.finish()
}

impl Program {
    /// The job of this number pushes its second event otherwise.
    fn new(changed: Option<u64>) -> Self {
        let factory = EventChannelFactory::new();
        let rejecting =
            AdminProperties { max_queue_length: 2, reject_new_events: true, ..AdminProperties::default() };
        let narrow = factory.create("narrow", &QosSettings::new(), rejecting).expect("sound");
        let discarding = QosSettings::new().max_events(1).discard(DiscardPolicy::Lifo);
        let lossy = factory.create("lossy", &discarding, AdminProperties::default()).expect("sound");
        let [audit, ended] = ["audit", "ended"].map(|name| factory.create_with_defaults(name));
        let event_type = EventType::new("Robot", "Step");
        for channel in [&narrow, &lossy, &ended, &audit] {
            channel.carries::<Step>(&event_type, &OutputKind::any().serialized()).expect("it has bytes");
        }
        let supplier =
            |channel: &EventChannel, name: &str| channel.supplier(name).offer([event_type.clone()]);
        let filter = Filter::of(&[], |event: &Event| Ok(!event.header().source.is_multiple_of(3)));
        let builders = [
            supplier(&narrow, "narrow"),
            supplier(&lossy, "filtered").filter(filter),
            supplier(&lossy, "removed"),
            // What it pushes it has not offered.
            ended.supplier("ended"),
            supplier(&audit, "audit"),
        ];
        let mut suppliers: [Supplier; 5] = builders.map(|builder| builder.connect().expect("there is room"));
        let diary = Arc::new(Mutex::new(Vec::new()));
        let lane = |name: &str, level| Declaration::new(name, ms(9)).wcet(Work::from_millis(3)).lane(level);
        let consumer = |channel: &EventChannel, name: &'static str, level| {
            let own = Arc::clone(&diary);
            let builder = channel.consumer(name).lane(lane(name, level));
            let connected = builder.connect_with_job(move |delivery, job| {
                let Step(step) = delivery.event().content().expect("a step");
                own.lock().expect("whole").push((name, step.wrapping_mul(31) ^ job.instance(), Vec::new()));
                Outcome::Ok
            });
            connected.expect("it can be connected")
        };
        let consumers = vec![
            consumer(&narrow, "slow", 1),
            consumer(&lossy, "first", 1),
            consumer(&lossy, "second", 0),
            consumer(&audit, "auditor", 0),
        ];
        let removed = (suppliers[2].id(), consumers[2].id());
        let own = Arc::clone(&diary);
        let operations = Operations::synthetic().with("watch", move |job| {
            let mut answers = Vec::new();
            let [pushing @ .., audits] = &mut suppliers;
            for (place, supplier) in (0..).zip(pushing) {
                for number in 0..2 {
                    let other = u64::from(changed == Some(job.instance()) && (place, number) == (1, 0));
                    let event = step(10 * job.instance() + 3 * place + number + 99 * other);
                    answers.push(supplier.push(job, &event));
                }
            }
            let digest = digest(&answers);
            own.lock().expect("whole").push(("watch", job.instance(), answers));
            // How often it pushes goes by that, too.
            for number in 0..1 + digest % 2 {
                let event = Event::new(Header::new(event_type.clone()), Step(digest.wrapping_add(number)));
                audits.push(job, &event).expect("it is taken");
            }
        });
        Program { factory, narrow, lossy, ended, removed, diary, operations, _consumers: consumers }
    }
}

fn system(dispatch: LaneDispatch) -> System {
    let task = |name: &str, period: i64| TaskBuilder::new(name, ms(period)).wcet(Work::from_micros(900));
    System::builder("answered")
        .strategy(By::Rms)
        .lane_dispatch(dispatch)
        .task(task("watch", 7))
        .task(task("idle", 23))
        .build()
        .expect("a system")
}

/// A simulation of it in which a consumer is removed, a supplier, and at last a channel.
fn recorded(system: &System, program: Program) -> (Metadata, Vec<Record>, Vec<Seen>) {
    let Program { factory, narrow, lossy, ended, removed, diary, operations, _consumers } = program;
    let plans = plan_lanes_of(system).expect("sorted");
    let (simulation, workplace) =
        Simulation::with_posting(system, &plans, operations, ROOM).expect("simulated");
    factory.bind(workplace.clone()).expect("it can be bound");
    let own = lossy.clone();
    workplace.call_at(Instant::ZERO + ms(60), move |_| {
        assert!(own.remove_consumer(removed.1));
        None
    });
    workplace.call_at(Instant::ZERO + ms(100), move |_| {
        assert!(lossy.remove_supplier(removed.0));
        None
    });
    let own = factory.clone();
    workplace.call_at(Instant::ZERO, move |_| {
        assert!(own.destroy(ended.id()));
        None
    });
    workplace.call_at(Instant::ZERO + ms(130), move |_| {
        assert!(factory.destroy(narrow.id()));
        None
    });
    let mut simulation = simulation.with_kept_values(system, &KeptOutputs::All).expect("it can be kept");
    let mut recorded = Recorded::default();
    simulation.advance(Instant::ZERO + ms(170), &mut recorded);
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut recorded);
    let seen = diary.lock().expect("whole").clone();
    (metadata, recorded.records, seen)
}

/// It is replayed: nobody is removed, no channel is destroyed, and nobody's events wait.
fn replayed(
    system: &System,
    (metadata, records): (&Metadata, &[Record]),
    program: Program,
) -> (ReplayReport, Vec<Seen>) {
    let mut replay = Replay::new(system, metadata, program.operations).expect("it can be replayed");
    program.factory.bind(replay.workplace(ROOM)).expect("it can be bound");
    records.iter().for_each(|record| replay.record(*record));
    let report = replay.finish();
    let seen = program.diary.lock().expect("whole").clone();
    (report, seen)
}

#[test]
fn pushes_are_answered_as_they_were_and_code_goes_the_same_way() {
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        let system = system(dispatch);
        let (metadata, records, then) = recorded(&system, Program::new(None));
        let answers: Vec<_> = then.iter().flat_map(|(.., answers)| answers).collect();
        let some =
            |what: &dyn Fn(&Result<Pushed, PushError>) -> bool| answers.iter().any(|answer| what(answer));
        let pushed = |subscribed, queued, discarded| {
            move |answer: &Result<Pushed, PushError>| *answer == Ok(Pushed { subscribed, queued, discarded })
        };
        assert!(some(&pushed(2, 2, 0)) && some(&pushed(1, 1, 0)) && some(&pushed(0, 0, 0)), "{answers:?}");
        assert!(some(&|answer| answer.as_ref().is_ok_and(|pushed| pushed.discarded > 0)), "{answers:?}");
        for refused in [PushError::Rejected, PushError::NotConnected, PushError::Closed] {
            assert!(some(&|answer| *answer == Err(refused.clone())), "{refused}: {answers:?}");
        }
        assert!(some(&|answer| matches!(answer, Err(PushError::Qos(_)))), "{answers:?}");

        let (same, now) = replayed(&system, (&metadata, &records), Program::new(None));
        assert_eq!((&same.first, same.unknown(), &same.posted), (&None, 0, &Vec::new()));
        assert_eq!(now, then);
        // Every push is compared, whatever it was answered.
        let of_watch = |row: &str| -> u64 {
            let rows = same.publications.iter().filter(|one| one.output == row);
            rows.map(|row| row.compared).sum()
        };
        let jobs = then.iter().filter(|(name, ..)| *name == "watch").count() as u64;
        let of_channels = ["narrow", "lossy", "ended"];
        let rows = of_channels.map(|channel| of_watch(&format!("watch>{channel} Robot/Step")));
        assert_eq!(rows, [2 * jobs, 4 * jobs, 2 * jobs]);
        assert!(same.publications.iter().all(|row| row.unrecorded == 0), "{:?}", same.publications);

        // One push that is another is told, though it is answered as it was.
        let (other, now) = replayed(&system, (&metadata, &records), Program::new(Some(9)));
        let first = other.first.clone().expect("it is found");
        let is_header = matches!(first.what, What::Header { .. });
        assert!(is_header && first.instance == 9 && first.push == Some(0), "{first}");
        assert_eq!((first.output.as_str(), other.differing()), ("watch>lossy Robot/Step", 1), "{first}");
        assert_eq!(now, then);
    }
}

/// What a push was answered of which nothing is kept is not known, and what comes of that proves nothing.
#[test]
fn answers_that_are_lost_are_not_made_up() {
    let system = system(LaneDispatch::NonPreemptive);
    let (metadata, records, then) = recorded(&system, Program::new(None));
    // In place of the first push that the channel rejected: all that is known is that it is not kept.
    let is_rejected = |(.., answers): &&Seen| answers.contains(&Err(PushError::Rejected));
    let (_, instance, answers) = then.iter().find(is_rejected).expect("one is rejected");
    let number = answers.iter().position(|answer| *answer == Err(PushError::Rejected)).expect("it is there");
    let kept = |record: &Record| PushKept::read(record).filter(|kept| kept.job.instance == *instance);
    let is_it = |record: &Record| {
        kept(record).is_some_and(|kept| {
            metadata.operations[kept.job.operation.index()].name == "watch"
                && usize::from(kept.number) == number
        })
    };
    let place = records.iter().position(is_it).expect("it is kept");
    let PushKept { job, publication, node, .. } = PushKept::read(&records[place]).expect("it is one");
    let parts = records[place + 1..].iter().take_while(|record| record.event == RecordedEvent::VALUE_PART);
    let behind = place + 1 + parts.count();
    let lost_push = PushUnkept { job, publication, node, cause: ValueLoss::NoRoom.into() };
    let lost_push = lost_push.at(records[place].time, Record::NO_CPU);
    let with_loss: Vec<Record> = [&records[..place], &[lost_push], &records[behind..]].concat();
    let (report, _) = replayed(&system, (&metadata, &with_loss), Program::new(None));
    assert_eq!(report.first, None);
    let unknown = report.publications.iter().filter(|row| row.unknown > 0);
    let unknown: BTreeSet<&str> = unknown.map(|row| row.output.as_str()).collect();
    assert_eq!(unknown, ["watch>audit Robot/Step"].into_iter().collect());
    let of_narrow = report.publications.iter().find(|row| row.output == "watch>narrow Robot/Step");
    assert_eq!(of_narrow.expect("they are compared").unrecorded, 1);
    let (report, _) =
        replayed(&system, (&metadata, &[&[lost(1)], &records[..]].concat()), Program::new(None));
    assert_eq!((&report.first, report.unknown()), (&None, 0));
}
