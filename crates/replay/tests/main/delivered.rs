//! Simulated runs of programs with channels of their own, replayed: consumers are handed again what they were handed, and what they push and post is held
//! against what they pushed and posted then.

use crate::posted::{Recorded, lost, ms};
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::{Arc, Mutex};
use talea_model::{LaneDispatch, Strategy as By, System, TaskBuilder};
use talea_notification::qos::{PropertyName, PropertyValue, QosSettings};
use talea_notification::{
    Collect, Condition, ConnectedConsumer, Content, Delivery, Event, EventChannel, EventChannelFactory,
    EventType, Header, Outcome, StructuredEvent, Supplier, TypePattern,
};
use talea_operation::{Declaration, JobContext, KeptOutputs, Operations, OutputKind, PostingRoom};
use talea_policy::strategy::plan_lanes_of;
use talea_record::event::{Deliver, Typed};
use talea_record::{Event as RecordedEvent, JobId, Metadata, Record, Sink};
use talea_replay::{NotCalled, Replay, ReplayReport, What};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

const ROOM: PostingRoom = PostingRoom { operations: 8, jobs: 8, posters: 1 };

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Step(u64);

impl Content for Step {}

/// What a consumer was handed in a call, and what its job saw.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    consumer: &'static str,
    job: (u64, Instant, Instant),
    /// Its release, its deadline and its handle.
    dates: (Instant, Instant, u64),
    deliveries: Vec<Handed>,
}

/// What the events of a delivery carry, its priority, when it was pushed and expires, and its number.
type Handed = (Vec<String>, i16, Instant, Option<Instant>, u64);

/// The delivery in the code of the consumer `guard` that does something else, by its place among all, and what.
type Changed = Option<(usize, Change)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    OtherContent,
    OtherHeader,
    NothingPushed,
    OneMore,
    Panic,
}

#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<Seen>>>);

impl Diary {
    fn write(&self, consumer: &'static str, deliveries: &[Delivery], of_job: &JobContext<'_>) {
        let carried = |event: &Event| match event.content::<Step>() {
            Some(Step(step)) => format!("{} {step} {}", event.event_type(), event.header().source),
            None => format!("{} {:?}", event.event_type(), event.content::<StructuredEvent>()),
        };
        let deliveries = deliveries.iter().map(|delivery| {
            let carried = delivery.events().iter().map(carried).collect();
            (carried, delivery.priority(), delivery.pushed(), delivery.expires(), delivery.number())
        });
        let job = (of_job.instance(), of_job.started(), of_job.now());
        let dates = (of_job.release(), of_job.deadline(), of_job.handle());
        self.0.lock().expect("whole").push(Seen { consumer, job, dates, deliveries: deliveries.collect() });
    }

    fn seen(&self) -> Vec<Seen> {
        self.0.lock().expect("whole").clone()
    }
}

/// A program with a channel of steps, which a task pushes and something outside, and one of alerts, which a consumer of steps pushes.
struct Program {
    factory: EventChannelFactory,
    steps: EventChannel,
    diary: Diary,
    consumers: Vec<ConnectedConsumer>,
    operations: Option<Operations>,
}

fn step(number: u64) -> Event {
    let mut header = Header::new(EventType::new("Robot", "Step"));
    (header.source, header.priority) = (number as u32 + 1, Some((number % 5) as i16));
    header.timeout = Some(ms(8 + number as i64 % 40));
    Event::new(header, Step(number))
}

fn note(number: u64) -> Event {
    let fields = [("number", number as i64)].into_iter().collect();
    let event = StructuredEvent::new("Robot", "Note", "said").with_filterable_data(fields);
    let event = if number.is_multiple_of(2) { event } else { event.with_remainder_of_body("rest") };
    Event::structured(event).expect("sound")
}

fn supplier(channel: &EventChannel, name: &str, event_type: &str) -> Supplier {
    channel.supplier(name).offer([EventType::new("Robot", event_type)]).connect().expect("there is room")
}

impl Program {
    /// Says how steps become bytes if `says`.
    fn new(changed: Changed, says: bool) -> Self {
        let factory = EventChannelFactory::new();
        let [steps, alerts] = ["steps", "alerts"].map(|name| factory.create_with_defaults(name));
        if says {
            for channel in [&steps, &alerts] {
                for event_type in ["Step", "Alert"] {
                    let event_type = EventType::new("Robot", event_type);
                    channel
                        .carries::<Step>(&event_type, &OutputKind::any().serialized())
                        .expect("it has bytes");
                }
            }
        }
        let pushing = Arc::new(Mutex::new(["Step", "Note"].map(|one| supplier(&steps, "watch", one))));
        let diary = Diary::default();
        let own = diary.clone();
        let operations = Operations::synthetic().with("watch", move |job| {
            own.write("watch", &[], job);
            let [first, second] = &mut *pushing.lock().expect("whole");
            for number in 0..job.instance() % 4 {
                let number = 10 * job.instance() + number;
                _ = first.push(job, &step(number)).expect("it is taken");
                if number % 3 == 1 {
                    _ = second.push(job, &note(number)).expect("it is taken");
                }
            }
        });
        let mut own = Program { factory, steps, diary, consumers: Vec::new(), operations: Some(operations) };
        own.connect(&alerts, changed);
        own
    }

    fn connect(&mut self, alerts: &EventChannel, changed: Changed) {
        let types = |names: &[&str]| -> Vec<TypePattern> {
            names.iter().map(|name| format!("Robot/{name}").parse().expect("a pattern")).collect()
        };
        let lane = |name: &str, level| Declaration::new(name, ms(3)).wcet(Work::from_micros(400)).lane(level);
        let (diary, mut pushing) = (self.diary.clone(), supplier(alerts, "guard", "Alert"));
        let mut calls = 0;
        let guard = move |delivery: &Delivery, job: &JobContext<'_>| {
            diary.write("guard", std::slice::from_ref(delivery), job);
            let change = changed.filter(|(place, _)| *place == calls).map(|(_, change)| change);
            calls += 1;
            let mut header = Header::new(EventType::new("Robot", "Alert"));
            header.source = delivery.number() as u32 + 1;
            let mut alert = delivery.number() * 7;
            match change {
                Some(Change::OtherContent) => alert += 1,
                Some(Change::OtherHeader) => header.source += 1,
                Some(Change::Panic) => panic!("it was to panic"),
                Some(_) | None => {}
            }
            let event = Event::new(header, Step(alert));
            let pushes = match change {
                Some(Change::NothingPushed) => 0,
                Some(Change::OneMore) => 2,
                Some(_) | None => 1,
            };
            (0..pushes).for_each(|_| _ = pushing.push(job, &event));
            Outcome::Ok
        };
        // Two lanes, of which the serial code is called by turns.
        let builder = self.steps.consumer("guard").subscribe(types(&["Step"]));
        let builder = builder.lane_from(2, lane("guard.high", 0)).lane_from(0, lane("guard.low", 1));
        self.consumers.push(builder.connect_with_job(guard).expect("it can be connected"));

        let batches = QosSettings::new()
            .with(PropertyName::MaximumBatchSize, PropertyValue::Number(3))
            .with(PropertyName::PacingInterval, PropertyValue::Time(ms(9)));
        let diary = self.diary.clone();
        let batch = self.steps.consumer("batch").subscribe(types(&["*"])).qos(batches);
        let batch = batch.lane(lane("batch", 1)).connect_sequence(move |deliveries, job| {
            diary.write("batch", deliveries, job);
            Outcome::Ok
        });
        self.consumers.push(batch.expect("it can be connected"));

        let [first, second] = ["Step", "Note"].map(|one| Condition::Types(types(&[one]).into()));
        let both = Condition::All { parts: vec![first, second], collect: Collect::Latest, within: None };
        let diary = self.diary.clone();
        let both = self.steps.consumer("both").when(both).lane(lane("both", 0));
        let both = both.connect_with_job(move |delivery, job| {
            diary.write("both", std::slice::from_ref(delivery), job);
            // Some are tried again.
            if job.instance() % 3 == 1 { Outcome::Retry } else { Outcome::Ok }
        });
        self.consumers.push(both.expect("it can be connected"));

        let (diary, missing) = (self.diary.clone(), self.diary.clone());
        let on_alert = alerts.consumer("log").lane(lane("log", 1)).on_deadline_miss(move |miss| {
            let job = (miss.instance, miss.due, miss.due + miss.lateness);
            let dates = (Instant::ZERO, Instant::ZERO, 0);
            let seen = Seen { consumer: "missed", job, dates, deliveries: Vec::new() };
            missing.0.lock().expect("whole").push(seen);
        });
        let on_alert = on_alert.connect_concurrent(move |delivery, job| {
            diary.write("log", std::slice::from_ref(delivery), job);
            Outcome::Ok
        });
        self.consumers.push(on_alert.expect("it can be connected"));
    }
}

fn system(dispatch: LaneDispatch) -> System {
    let task = |name: &str, period: i64| TaskBuilder::new(name, ms(period)).wcet(Work::from_micros(900));
    System::builder("delivering")
        .strategy(By::Rms)
        .lane_dispatch(dispatch)
        .task(task("watch", 7))
        .task(task("idle", 23))
        .build()
        .expect("a system")
}

/// A simulation of it, in which something outside pushes, too.
fn recorded(system: &System, mut program: Program) -> (Metadata, Recorded, Vec<Seen>) {
    let plans = plan_lanes_of(system).expect("sorted");
    let operations = program.operations.take().expect("once");
    let (simulation, workplace) =
        Simulation::with_posting(system, &plans, operations, ROOM).expect("simulated");
    program.factory.bind(workplace.clone()).expect("it can be bound");
    let mut outside = supplier(&program.steps, "outside", "Step");
    let mut number = 1_000;
    workplace.call_at(Instant::ZERO + ms(2), move |poster| {
        number += 1;
        let now = poster.now();
        _ = outside.push(poster, &step(number)).expect("it is taken");
        Some(now + Duration::from_micros(4_700))
    });
    let mut simulation = simulation.with_kept_values(system, &KeptOutputs::All).expect("it can be kept");
    let mut recorded = Recorded::default();
    simulation.advance(Instant::ZERO + ms(150), &mut recorded);
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut recorded);
    (metadata, recorded, program.diary.seen())
}

fn replayed(
    system: &System,
    metadata: &Metadata,
    records: &[Record],
    mut program: Program,
) -> (ReplayReport, Vec<Seen>) {
    let operations = program.operations.take().expect("once");
    let mut replay = Replay::new(system, metadata, operations).expect("it can be replayed");
    program.factory.bind(replay.workplace(ROOM)).expect("it can be bound");
    records.iter().for_each(|record| replay.record(*record));
    (replay.finish(), program.diary.seen())
}

/// The jobs that were not called again, by operation.
fn not_called(report: &ReplayReport) -> Vec<(&str, NotCalled)> {
    report.posted.iter().map(|posted| (posted.operation.as_str(), posted.why)).collect()
}

/// How often consumers were called.
fn of_consumers(seen: &[Seen]) -> usize {
    seen.iter().filter(|seen| seen.consumer != "watch").count()
}

/// What was compared of pushes, and is not recorded.
fn pushes(report: &ReplayReport) -> Vec<(&str, u64, u64)> {
    report.publications.iter().map(|row| (row.output.as_str(), row.compared, row.unrecorded)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn consumers_are_called_again_as_they_were_and_a_change_is_named(
        dispatch in select(&[LaneDispatch::NonPreemptive, LaneDispatch::Preemptive][..]),
        chosen in 0usize..20,
        change in select(
            &[Change::OtherContent, Change::OtherHeader, Change::NothingPushed, Change::OneMore, Change::Panic][..]
        ),
    ) {
        let system = system(dispatch);
        let (metadata, trace, then) = recorded(&system, Program::new(None, true));
        let of = |name: &str| then.iter().filter(|seen| seen.consumer == name).count();
        let all = ["guard", "batch", "both", "log", "missed"].map(of);
        prop_assert!(all.iter().all(|calls| *calls > 2), "{:?}", all);

        let (same, now) = replayed(&system, &metadata, &trace.records, Program::new(None, true));
        prop_assert_eq!((&same.first, same.unknown(), not_called(&same)), (&None, 0, vec![]));
        prop_assert_eq!(&now, &then);
        let compared = pushes(&same);
        let guarded: u64 = compared.iter().filter(|(name, ..)| name.ends_with(">alerts Robot/Alert")).map(|(_, pushes, _)| pushes).sum();
        prop_assert_eq!(guarded as usize, all[0], "{:?}", compared);
        prop_assert!(compared.iter().any(|(name, pushes, _)| *name == "watch>steps Robot/Note" && *pushes > 2), "{:?}", compared);
        prop_assert!(compared.iter().all(|(_, _, unrecorded)| *unrecorded == 0), "{:?}", compared);

        let (other, now) = replayed(&system, &metadata, &trace.records, Program::new(Some((chosen, change)), true));
        let first = other.first.clone().expect("it is found");
        let guards = ["guard.high>alerts Robot/Alert", "guard.low>alerts Robot/Alert"];
        prop_assert!(guards.contains(&first.output.as_str()), "{}", first);
        let is_it = match first.what {
            What::Bytes { .. } => change == Change::OtherContent,
            What::Header { .. } => change == Change::OtherHeader,
            // A panic is caught, and the consumer would have been disconnected.
            What::NothingNow => matches!(change, Change::NothingPushed | Change::Panic),
            What::NothingThen => change == Change::OneMore,
            _ => false,
        };
        prop_assert!(is_it, "{}", first);
        // Who panics has failed, too, and had not then.
        prop_assert_eq!(other.differing(), 1 + u64::from(change == Change::Panic));
        // The others are handed what they had all the same.
        prop_assert_eq!(now.len(), then.len());
    }
}

/// Where the trace, or the program, lacks something, it is said.
#[test]
fn what_cannot_be_handed_again_is_named() {
    let system = system(LaneDispatch::NonPreemptive);
    let (metadata, trace, then) = recorded(&system, Program::new(None, true));
    let whole = |metadata: &Metadata, records: &[Record], says: bool| {
        replayed(&system, metadata, records, Program::new(None, says))
    };
    // A trace of before has no events, and no word of that they are to be there.
    let mut before = metadata.clone();
    before.operations.iter_mut().for_each(|entry| entry.keeps_events = false);
    before.publications.iter_mut().for_each(|entry| entry.is_kept = false);
    let is_kept = |record: &&Record| {
        !matches!(record.event, RecordedEvent::VALUE | RecordedEvent::VALUE_PART | RecordedEvent::PUSH_KEPT)
    };
    let without: Vec<Record> = trace.records.iter().filter(is_kept).copied().collect();
    let (report, now) = whole(&before, &without, true);
    let of_channels = ["guard.high", "guard.low", "batch", "both", "log"];
    assert_eq!(not_called(&report), of_channels.map(|name| (name, NotCalled::OfChannel)));
    assert_eq!((of_consumers(&now), report.first), (0, None));
    let unkept =
        report.publications.iter().filter(|row| !row.is_kept && row.unrecorded > 0 && row.compared == 0);
    assert_eq!(unkept.count(), report.publications.len());
    assert!(report.publications.len() > 3);

    // They are lost.
    let (report, now) = whole(&metadata, &[&[lost(3)], &without[..]].concat(), true);
    assert_eq!(not_called(&report), of_channels.map(|name| (name, NotCalled::Lost)));
    assert_eq!((of_consumers(&now), report.first), (0, None));

    // The program does not say how they become bytes any more; structured ones always do, and headers.
    let (report, now) = whole(&metadata, &trace.records, false);
    assert!(not_called(&report).iter().all(|(_, why)| *why == NotCalled::Unreadable), "{:?}", report.posted);
    assert!(now.len() < then.len());

    // Nor did it then.
    let (silent, of_silent, _) = recorded(&system, Program::new(None, false));
    let (report, _) = whole(&silent, &of_silent.records, false);
    assert!(not_called(&report).contains(&("guard.high", NotCalled::Lost)), "{:?}", report.posted);
    assert!(report.first.is_none(), "{:?}", report.first);
    let of_steps = pushes(&report).into_iter().find(|(name, ..)| *name == "watch>steps Robot/Step");
    let (_, compared, unrecorded) = of_steps.expect("headers are compared");
    assert!(compared > 3 && compared == unrecorded, "{:?}", pushes(&report));

    // Where nothing can be declared, they are named, and no difference.
    let mut program = Program::new(None, true);
    let operations = program.operations.take().expect("once");
    let mut replay = Replay::new(&system, &metadata, operations).expect("it can be replayed");
    trace.records.iter().for_each(|record| replay.record(*record));
    let report = replay.finish();
    assert_eq!(not_called(&report), of_channels.map(|name| (name, NotCalled::NotDeclared)));
    assert_eq!(report.first, None);
}

/// On threads, who is handed what a job has pushed may end before that job has, and others meanwhile.
#[test]
fn who_is_handed_what_a_job_pushed_has_its_turn_after_it() {
    let system = system(LaneDispatch::NonPreemptive);
    let (metadata, trace, then) = recorded(&system, Program::new(None, true));
    let mut records = trace.records;
    let place_of = |records: &[Record], wanted: &dyn Fn(&Record) -> bool| records.iter().position(wanted);
    // The first job that is handed something by a job, which is moved to before the end of that.
    let handed = records.iter().find_map(|record| match record.typed() {
        Typed::Deliver(Deliver { job, from: Some(from), .. }) => Some((job, from)),
        _ => None,
    });
    let (job, from) = handed.expect("there is one");
    let is_end =
        |job: JobId| move |record: &Record| record.event == RecordedEvent::COMPLETE && record.job() == job;
    let is_start = |record: &Record| record.event == RecordedEvent::START && record.job() == job;
    let end_of_from = place_of(&records, &is_end(from)).expect("it has ended");
    let (start, end) = (place_of(&records, &is_start), place_of(&records, &is_end(job)));
    let (start, end) = (start.expect("it has begun"), end.expect("it has ended"));
    assert!(end_of_from < start && start < end);
    let at = records[end_of_from].time;
    let (moved, others): (Vec<Record>, Vec<Record>) = records.drain(..=end).partition(|record| {
        let is_of_job = matches!(record.typed(), Typed::Value(_) | Typed::ValuePart(_) | Typed::PushKept(_));
        record.job() == job || is_of_job && record.time >= at
    });
    let moved = moved.into_iter().map(|record| Record { time: at, ..record });
    let (before, after) = others.split_at(end_of_from);
    let moved: Vec<Record> =
        before.iter().copied().chain(moved).chain(after.iter().copied()).chain(records).collect();
    let (report, now) = replayed(&system, &metadata, &moved, Program::new(None, true));
    assert_eq!((&report.first, report.unknown(), not_called(&report)), (&None, 0, vec![]));
    let first =
        |seen: &[Seen]| seen.iter().take(6).map(|seen| (seen.consumer, seen.job.0)).collect::<Vec<_>>();
    assert_eq!(first(&now), first(&then));
}
