//! Jobs that call the code of a consumer many times, on real threads: where a run has no room for a job for each event, one does for several. What time it
//! was is recorded for each call, and told again.

use std::sync::mpsc::{Receiver, channel};
use talea::notification::{
    ConnectedConsumer, Content, Event, EventChannelFactory, EventType, Header, Outcome,
};
use talea::replay::{ReplayReport, ReplayRun};
use talea::run::{Declaration, KeptOutputs, Operations, OutputKind, PostingRoom};
use talea::{Duration, Instant, JobContext, RtMode, Run, System};

/// Pushed by each job, far more than the 16 times that are recorded of one call.
const EVENTS: u64 = 40;
/// Jobs of which all events are to be handed on before the run ends.
const JOBS: u64 = 3;

#[derive(Clone, Copy, Default, serde::Serialize, serde::Deserialize)]
struct Count(u64);

impl Content for Count {}

/// The job, the event, and the first and the last time that the code was told in this call.
type Call = (u64, u64, [Instant; 2]);

struct Program {
    factory: EventChannelFactory,
    operations: Operations,
    seen: Receiver<Call>,
    _consumer: ConnectedConsumer,
}

impl Program {
    /// Its consumer asks the time so often in a call for the event of this number, and once for others.
    fn new((asked, often): (u64, usize)) -> Self {
        let (factory, event_type) = (EventChannelFactory::new(), EventType::new("T", "Count"));
        let counts = factory.create_with_defaults("counts");
        counts.carries::<Count>(&event_type, &OutputKind::any().serialized()).expect("it has bytes");
        let supplier = counts.supplier("push").offer([event_type.clone()]).connect();
        let mut supplier = supplier.expect("there is room");
        let operations = Operations::synthetic().with("push", move |job: &JobContext<'_>| {
            for number in 0..EVENTS {
                let count = Count(EVENTS * job.instance() + number);
                let event = Event::new(Header::new(event_type.clone()), count);
                supplier.push(job, &event).expect("it is taken");
            }
        });
        let (tell, seen) = channel();
        let lane = Declaration::new("counted", Duration::from_secs(1)).lane(1);
        let consumer = counts.consumer("counted").lane(lane).connect_with_job(move |delivery, job| {
            let Count(number) = *delivery.event().content().expect("a count");
            let first = job.now();
            let more = if number == asked { often } else { 0 };
            let last = (0..more).fold(first, |_, _| job.now());
            _ = tell.send((job.instance(), number, [first, last]));
            // So that its answer is another one if it is told another time.
            if last.as_nanos() % 2 == 0 { Outcome::Ok } else { Outcome::Discard }
        });
        Program { factory, operations, seen, _consumer: consumer.expect("it can be connected") }
    }
}

/// Room for the consumer, with one job that waits, and for the thread of the node and that for instants.
const ROOM: PostingRoom = PostingRoom { operations: 1, jobs: 1, posters: 2 };

fn system() -> System {
    let text = "[system]\nname = \"times\"\nstrategy = \"rms\"\n\
                [[task]]\nname = \"push\"\nperiod = \"20ms\"\nwcet = \"1ms\"\n\
                [[task]]\nname = \"idle\"\nperiod = \"50ms\"\nwcet = \"1us\"\n";
    talea::parse("times.toml", text, std::path::Path::new(".")).expect("a system").system
}

/// What was called while it ran, and when it is replayed. None if records were lost.
fn again(asks: (u64, usize)) -> Option<(Vec<Call>, ReplayReport, Vec<Call>)> {
    let (system, folder) = (system(), tempfile::tempdir().expect("a folder"));
    let trace = folder.path().join("trace.talea");
    let Program { factory, operations, seen, _consumer } = Program::new(asks);
    let run = Run::new(&system).operations(operations).keep_values(KeptOutputs::All).keep_trace(&trace);
    let run = run.realtime(RtMode::Warn).posting(ROOM).duration(Duration::from_secs(60));
    let prepared = run.prepare().expect("it can be prepared");
    factory.bind(prepared.dispatcher().workplace().expect("there is room")).expect("it can be bound");
    let stop = prepared.stop_handle();
    let running = std::thread::spawn(move || prepared.run().expect("it runs"));
    let mut then: Vec<Call> = Vec::new();
    while then.last().is_none_or(|(_, number, _)| *number + 1 < JOBS * EVENTS) {
        then.push(seen.recv().expect("the run goes on"));
    }
    stop.stop();
    running.join().expect("no thread panics");
    let Program { factory, operations, seen, _consumer } = Program::new(asks);
    let replay = ReplayRun::new(&system).operations(operations).posting(ROOM);
    let replay = replay.prepare(&trace).expect("it can be replayed");
    factory.bind(replay.workplace()).expect("it can be bound");
    let report = replay.run().expect("it can be replayed");
    (report.lost_records == 0).then(|| (then, report, seen.try_iter().collect()))
}

/// Of those that both have: a job that has not ended when the run does is not called again.
fn differing(then: &[Call], now: &[Call]) -> Vec<u64> {
    then.iter().zip(now).filter(|(then, now)| then != now).map(|((_, number, _), _)| *number).collect()
}

#[test]
fn each_call_of_a_job_is_told_the_time_again() {
    let Some((then, same, now)) = again((u64::MAX, 0)) else { return println!("skipped: records are lost") };
    let calls_of = |job: u64| now.iter().filter(|(of, ..)| *of == job).count();
    let most = now.iter().map(|(job, ..)| calls_of(*job)).max();
    assert!(most.is_some_and(|most| most > 20), "one job has many events: {most:?}");
    assert_eq!((&same.first, same.unknown()), (&None, 0), "{same:?}");
    assert_eq!(differing(&then, &now), Vec::<u64>::new());
}

/// What is told beyond the 16 times is another one, and only that; what the job answers from then on proves nothing.
#[test]
fn a_call_that_asks_too_often_leaves_the_others_what_they_were_told() {
    let asked = EVENTS + 5;
    let Some((then, same, now)) = again((asked, 30)) else { return println!("skipped: records are lost") };
    assert!(now.iter().any(|(_, number, _)| *number > asked + 20), "{now:?}");
    assert_eq!(same.first, None);
    assert_eq!(differing(&then, &now), [asked]);
}
