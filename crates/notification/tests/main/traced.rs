//! What records of a run tell of events in channels that a program has made.

use crate::{event_of, event_with, types};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use talea_model::{OperationId, PublicationId, System, TaskBuilder};
use talea_notification::{Collect, Condition, EventChannel, EventChannelFactory, EventType, Origin, Outcome};
use talea_operation::{JobContext, Operations};
use talea_record::event::{Deliver, Push};
use talea_record::{Metadata, Record, TraceFile, Typed};
use talea_runtime::{Executive, PostingRoom, RtMode, RunOptions, StopHandle};
use talea_time::{Duration, Work};

/// Ends the run also where the thread that was to do it panics.
struct StopAtEnd(StopHandle);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The names of channel and type.
fn named(metadata: &Metadata, publication: u32) -> (&str, &str) {
    let entry = &metadata.publications[publication as usize];
    (&entry.channel, &entry.event_type)
}

/// A job pushes into two channels of one name, into one of them also a type that was not offered; a thread pushes as well; and a consumer waits for two types.
#[test]
fn events_of_programs_channels_have_names_and_origins() {
    let (one, other) = (EventChannelFactory::new(), EventChannelFactory::new());
    let channel = |factory: &EventChannelFactory| factory.create_with_defaults("motion");
    let (first, second) = (channel(&one), channel(&other));
    let delivered = Arc::new(AtomicU64::new(0));
    let counting = |name: &str, channel: &EventChannel, wanted: &str| {
        let own = Arc::clone(&delivered);
        let consumer = channel.consumer(name).subscribe(types(wanted)).connect(move |_| {
            own.fetch_add(1, Ordering::Relaxed);
            Outcome::Ok
        });
        consumer.expect("connected")
    };
    let guard = counting("guard", &first, "Test");
    let brake = counting("brake", &second, "Test");
    let of = |name: &str| Condition::of_types(types(name));
    let both = Condition::all(Collect::Latest, [of("Test/Tick"), of("Test/Tock")]);
    let both = first.consumer("both").when(both).connect(|_| Outcome::Ok).expect("connected");
    let offered = |name: &str| [EventType::new("Test", name)];
    let mut of_first = first.supplier("job").offer(offered("Tick")).connect().expect("connected");
    let mut of_second = second.supplier("job").offer(offered("Tick")).connect().expect("connected");
    let code = move |job: &JobContext<'_>| {
        for event in ["Tick", "Tock"] {
            of_first.push(job, &event_of(event, job.instance())).expect("pushed");
        }
        // As if it were handed on from a channel of the description.
        let (publication, operation) = (PublicationId::from_index(0), OperationId::from_index(0));
        let origin = Some(Origin { publication, operation, instance: 7 });
        of_second.push(job, &event_with(job.instance(), |header| header.origin = origin)).expect("pushed");
    };
    let task = TaskBuilder::new("control", Duration::from_millis(2)).wcet(Work::from_micros(50));
    let system = System::builder("traced").node("n", [0]).task(task).build().expect("sound");
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    let posting = PostingRoom { operations: 3, jobs: 128, posters: 3 };
    let options = RunOptions {
        posting,
        rt: RtMode::Warn,
        duration: None,
        keep_log: Some(log.clone()),
        ..RunOptions::default()
    };
    let operations = Operations::synthetic().with("control", code);
    let prepared = Executive::prepare(&system, operations, options).expect("the run can be prepared");
    let (stop, dispatcher) = (prepared.stop_handle(), prepared.dispatcher());
    for factory in [&one, &other] {
        factory.bind(dispatcher.workplace().expect("there is a poster")).expect("it can be declared");
    }
    thread::scope(|scope| {
        let acting = scope.spawn(|| {
            let _stop = StopAtEnd(stop);
            let mut poster = dispatcher.poster().expect("there is room");
            let mut of_thread = first.supplier("thread").connect().expect("connected");
            while delivered.load(Ordering::Relaxed) < 60 || both.statistics().delivered < 5 {
                let before = delivered.load(Ordering::Relaxed);
                of_thread.push(&mut poster, &event_of("Tick", 1_000_000)).expect("pushed");
                while delivered.load(Ordering::Relaxed) == before {
                    thread::yield_now();
                }
            }
            // A channel with more types than are named, and names that are too long.
            let many = one.create_with_defaults("many");
            let types = (0..300).map(|number| EventType::new("Many", &format!("T{number}")));
            let long = EventType::new("Many", &"long".repeat(80));
            let many = many.supplier("many").offer([long].into_iter().chain(types)).connect();
            drop(many.expect("connected"));
        });
        let outcome = prepared.run().expect("it runs");
        acting.join().expect("it pushes");
        assert!(outcome.mishaps.panics.is_empty());
    });
    drop((guard, brake));

    let trace = TraceFile::open(&log).expect("a trace");
    let metadata = trace.metadata();
    let entries = &metadata.publications;
    let channels: BTreeSet<&str> = entries.iter().map(|entry| entry.channel.as_str()).collect();
    assert_eq!(channels, BTreeSet::from(["many", "motion", "motion (2)"]), "none is taken for another one");
    assert_eq!(entries.len(), 256, "as many as have numbers");
    assert!(entries.iter().all(|entry| entry.event_type.len() < 256 && entry.operation.is_none()));
    assert_eq!(metadata.check(), Ok(()));
    let records: Vec<Record> = trace.records().expect("readable").map(|one| one.expect("whole")).collect();
    let operation = |job: talea_record::JobId| metadata.operations[job.operation.index()].name.as_str();
    let (mut pushed, mut taken) = (BTreeMap::new(), BTreeMap::new());
    for record in &records {
        match record.typed() {
            Typed::Push(Push { job, publication, .. }) => {
                assert_eq!(operation(job), "control");
                *pushed.entry(named(metadata, publication)).or_insert(0u64) += 1;
            }
            Typed::Deliver(Deliver { job, from, publication, .. }) => {
                let (channel, event_type) = named(metadata, publication.expect("all have numbers"));
                let from = from.map(operation);
                *taken.entry((operation(job), channel, event_type, from)).or_insert(0u64) += 1;
            }
            _ => {}
        }
    }
    let kinds: Vec<(&str, &str)> = pushed.keys().copied().collect();
    assert_eq!(kinds, [("motion", "Test/Tick"), ("motion", "Test/Tock"), ("motion (2)", "Test/Tick")]);
    let kinds: Vec<_> = taken.keys().copied().collect();
    let expected = [
        ("motion.both", "motion", "Test/Tick", None),
        ("motion.both", "motion", "Test/Tock", None),
        ("motion.brake", "motion (2)", "Test/Tick", Some("control")),
        ("motion.guard", "motion", "Test/Tick", None),
        ("motion.guard", "motion", "Test/Tick", Some("control")),
        ("motion.guard", "motion", "Test/Tock", Some("control")),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(taken[&expected[0]], taken[&expected[1]], "each time one of both");
    let of_second = taken[&expected[2]];
    assert!(of_second > 0 && of_second <= pushed[&("motion (2)", "Test/Tick")]);
}
