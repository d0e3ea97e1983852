//! What an event costs on its way through a channel, in one thread: from the push to the consumer that takes it.
//!
//! `cargo bench -p talea-notification --features peers --bench events [-- --json] [--quick]`
//!
//! The floor is a call through a list of boxed closures, which keeps nothing, filters nothing and counts nothing. Events are made beforehand.

mod runs;

use std::hint::black_box;
use std::process::ExitCode;
use talea_linux::clock::MonotonicClock;
use talea_measure::{Effort, Report, Role, Samples};
use talea_notification::qos::QosSettings;
use talea_notification::{
    AdminProperties, Collect, Condition, Content, Event, EventChannel, EventChannelFactory, EventType,
    Header, PullConsumer, Supplier, TypePattern,
};
use talea_operation::{NotPosted, Post, Posted};
use talea_time::{Clock, Instant};

const BATCH: u32 = 256;
const ONE: &str = "an event from push to take or call, in one thread";
const OTHER_LANE: &str = "push to the consumer's first instruction, a higher lane on the same CPU";
const CONDITION: &str = "a conjunction of 8 (per event)";

/// What an event carries: 64 bytes.
#[derive(Clone, Copy, Debug)]
struct Words([u64; 8]);

impl Content for Words {}

/// What a consumer would be called by.
type Code = Box<dyn Fn(&Words)>;

/// Nothing is posted, and no time passes.
struct Nothing;

impl Post for Nothing {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn post_work(&mut self, _posted: Posted) -> Result<u64, NotPosted> {
        Ok(0)
    }

    fn may_wait(&self) -> bool {
        false
    }
}

fn channel() -> EventChannel {
    let factory = EventChannelFactory::new();
    factory.create("bench", &QosSettings::new(), AdminProperties::default()).expect("sound")
}

fn pattern(name: &str) -> TypePattern {
    TypePattern::new("Bench", name).expect("a pattern")
}

fn event(name: &str) -> Event {
    Event::new(Header::new(EventType::new("Bench", name)), Words([1; 8]))
}

/// A channel with one consumer of the type that is pushed, and `others` consumers of other types.
struct Matched {
    supplier: Supplier,
    consumer: PullConsumer,
    event: Event,
    /// Connected as long as this.
    _others: Vec<PullConsumer>,
}

impl Matched {
    fn new(others: usize) -> Self {
        let channel = channel();
        let small = QosSettings::new().max_events(1);
        let other = |number: usize| {
            let consumer = channel.consumer("other").subscribe([pattern(&format!("Other{number}"))]);
            consumer.qos(small.clone()).connect_pull().expect("connected")
        };
        let others = (0..others).map(other).collect();
        let consumer = channel.consumer("c").subscribe([pattern("Tick")]).connect_pull().expect("connected");
        let supplier =
            channel.supplier("s").offer([EventType::new("Bench", "Tick")]).connect().expect("connected");
        Matched { supplier, consumer, event: event("Tick"), _others: others }
    }

    fn step(&mut self) {
        self.supplier.push(Nothing, &self.event).expect("pushed");
        black_box(self.consumer.try_pull(Instant::ZERO));
    }
}

/// A consumer that waits for one event of each of eight types.
struct Conjunction {
    supplier: Supplier,
    consumer: PullConsumer,
    events: Vec<Event>,
}

impl Conjunction {
    fn new() -> Self {
        let channel = channel();
        let names: Vec<String> = (0..8).map(|number| format!("Part{number}")).collect();
        let parts = names.iter().map(|name| Condition::of_types([pattern(name)]));
        let consumer = channel.consumer("c").when(Condition::all(Collect::First, parts));
        let consumer = consumer.connect_pull().expect("connected");
        let types = names.iter().map(|name| EventType::new("Bench", name));
        let supplier = channel.supplier("s").offer(types).connect().expect("connected");
        Conjunction { supplier, consumer, events: names.iter().map(|name| event(name)).collect() }
    }

    fn step(&mut self, number: u32) {
        let event = &self.events[number as usize % 8];
        self.supplier.push(Nothing, event).expect("pushed");
        if number % 8 == 7 {
            black_box(self.consumer.try_pull(Instant::ZERO).expect("all eight have come"));
        }
    }
}

fn measure(effort: Effort) -> Report {
    let batches = match effort {
        Effort::Smoke => 10,
        Effort::Quick => 2_000,
        Effort::Full => 20_000,
    };
    let (most, some) = if effort == Effort::Smoke { (1_000, 100) } else { (100_000, 1_000) };
    let mut report = Report::new(false);
    let time = |samples: &mut Samples, step: &mut dyn FnMut(u32)| {
        let begin = MonotonicClock.now();
        (0..BATCH).for_each(&mut *step);
        samples.add_batch(MonotonicClock.now() - begin, BATCH);
    };
    let closures: [Code; 1] = [Box::new(|words| _ = black_box(words.0[0]))];
    let mut alone = Matched::new(0);
    let (mut among_some, mut among_most) = (Matched::new(some), Matched::new(most));
    let (to_crossbeam, from_crossbeam) = crossbeam_channel::bounded::<Words>(100);
    let (to_tokio, mut from_tokio) = tokio::sync::broadcast::channel::<Words>(128);
    let mut conjunction = Conjunction::new();
    let mut samples = [const { None }; 8].map(|_: Option<()>| Samples::new());
    for _ in 0..batches {
        time(&mut samples[0], &mut |_| black_box(&closures).iter().for_each(|call| call(&Words([1; 8]))));
        time(&mut samples[1], &mut |_| alone.step());
        time(&mut samples[2], &mut |_| among_some.step());
        time(&mut samples[3], &mut |_| among_most.step());
        time(&mut samples[4], &mut |_| {
            to_crossbeam.try_send(Words([1; 8])).expect("there is room");
            _ = black_box(from_crossbeam.try_recv().expect("it was sent").0[0]);
        });
        time(&mut samples[5], &mut |_| {
            to_tokio.send(Words([1; 8])).expect("somebody listens");
            _ = black_box(from_tokio.try_recv().expect("it was sent").0[0]);
        });
        time(&mut samples[6], &mut |number| conjunction.step(number));
        time(&mut samples[7], &mut |_| alone.step());
    }
    let [calls, alone, among_some, among_most, crossbeam, tokio, conjunction, floor] = samples;
    let against =
        |samples: &Samples, other: &Samples| format!("{:.2} of alone", samples.ns(0.5) / other.ns(0.5));
    let (of_some, of_most) = (against(&among_some, &alone), against(&among_most, &alone));
    report.add(ONE, "a list of boxed closures", Role::Floor, calls);
    report.add(ONE, "a channel, no filter", Role::Subject, alone);
    report.add_with_note(
        ONE,
        "beside 1,000 subscriptions to other types",
        Role::Subject,
        among_some,
        of_some,
    );
    report.add_with_note(
        ONE,
        "beside 100,000 subscriptions to other types",
        Role::Subject,
        among_most,
        of_most,
    );
    report.add(ONE, "crossbeam-channel, bounded, 64 bytes copied", Role::Peer, crossbeam);
    report.add(ONE, "tokio broadcast, 64 bytes copied", Role::Peer, tokio);
    let jobs = match effort {
        Effort::Smoke => 10,
        Effort::Quick => 500,
        Effort::Full => 2_500,
    };
    report.add(ONE, "called in the midst of the job that pushes", Role::Subject, runs::in_the_midst(jobs));
    report.add(CONDITION, "a channel without a condition", Role::Floor, floor);
    report.add(CONDITION, "eight types, the first of each", Role::Subject, conjunction);
    if let Some([woken, called]) = runs::another_lane(2 * jobs) {
        report.add(OTHER_LANE, "bare futex wake", Role::Floor, woken);
        report.add(OTHER_LANE, "a channel, no filter", Role::Subject, called);
    }
    report
}

fn main() -> ExitCode {
    talea_measure::main(measure)
}
