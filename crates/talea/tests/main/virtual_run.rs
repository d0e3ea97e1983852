//! The same program on threads and in virtual time: its operations, consumers, suppliers and posted work.

use std::sync::{Arc, Mutex, OnceLock};
use talea::notification::qos::{OrderPolicy, PropertyName, PropertyValue, QosSettings};
use talea::notification::{
    AdminProperties, Condition, ConnectedConsumer, ConsumerStatistics, Content, Event, EventChannel,
    EventChannelFactory, EventType, Filter, Header, Outcome, PullPace, PullSupplier, Supplied, ThreadPool,
};
use talea::run::{Declaration, Operations, Posted, PostedOperation, PostingRoom};
use talea::simulation::VirtualRun;
use talea::trace::export::{CtfExport, PerfettoExport, ScheduleCsv, export_csv};
use talea::trace::{LogWriter, NameSpace, Record, TraceFile, format_record};
use talea::{
    Criticality, Duration, JobContext, LaneDispatch, RtMode, Run, Strategy, System, TaskBuilder, Work,
};

struct Number(u64);
impl Content for Number {}

fn number(event: &Event) -> u64 {
    event.content::<Number>().expect("a number").0
}

fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms)
}

/// What was called, in its order: in which lane, and what.
type Diary = Arc<Mutex<Vec<(Criticality, String)>>>;

const ROOM: PostingRoom = PostingRoom { operations: 2, jobs: 8, posters: 0 };

fn system() -> System {
    let task = |name: &str, period: i64, criticality| {
        TaskBuilder::new(name, ms(period)).wcet(Work::from_micros(50)).criticality(criticality)
    };
    let builder = System::builder("program").strategy(Strategy::Criticality).node("n", [0]);
    builder
        .task(task("gauge", 20, Criticality::High))
        .task(task("report", 1_000, Criticality::Medium))
        .task(task("idle", 1_000, Criticality::Low))
        .build()
        .expect("sound")
}

/// A program: channels with consumers in several lanes and suppliers, and code of operations that pushes and posts.
struct Program {
    factory: EventChannelFactory,
    consumers: Vec<ConnectedConsumer>,
    _pulled: PullSupplier,
    diary: Diary,
    /// The work that `gauge` and `alarm` post, when it is declared.
    posted: Arc<OnceLock<[PostedOperation; 2]>>,
}

fn event(name: &str, number: u64, priority: i16) -> Event {
    let mut header = Header::new(EventType::new("Test", name));
    header.priority = Some(priority);
    Event::new(header, Number(number))
}

fn lane(name: &str, criticality: Criticality) -> Declaration {
    Declaration::new(name, ms(15)).wcet(Work::from_micros(20)).criticality(criticality)
}

impl Program {
    fn new() -> (Self, Operations) {
        let (factory, diary) = (EventChannelFactory::new(), Diary::default());
        let settings = QosSettings::new().order(OrderPolicy::Priority).max_events(16);
        let create = |name| factory.create(name, &settings, AdminProperties::default()).expect("sound");
        let (measured, alarms) = (create("measured"), create("alarms"));
        let pool = ThreadPool::client_propagated()
            .lane_from(5, lane("high", Criticality::High))
            .lane_from(i16::MIN, lane("low", Criticality::Low));
        measured.set_thread_pool(pool).expect("a pool");
        let note = |criticality, text: String, diary: &Diary| {
            diary.lock().expect("whole").push((criticality, text));
        };
        let of_priority = |priority: i16| if priority >= 5 { Criticality::High } else { Criticality::Low };
        let mut consumers = Vec::new();
        // In two lanes, by the priority of each event.
        let own = Arc::clone(&diary);
        let all = measured.consumer("all").connect(move |delivery| {
            let text = format!("all has {} of {}", number(delivery.event()), delivery.priority());
            note(of_priority(delivery.priority()), text, &own);
            Outcome::Ok
        });
        consumers.push(all.expect("connected"));
        // Every other one, and it pushes again.
        let even = Filter::of(&[], |event: &Event| Ok(number(event).is_multiple_of(2)));
        let mut alarm = alarms.supplier("even").connect().expect("connected");
        let own = Arc::clone(&diary);
        let relay = measured.consumer("relay").filter(even).lane(lane("relay", Criticality::Low));
        let relay = relay.connect_with_job(move |delivery, job| {
            note(Criticality::Low, format!("relay has {}", number(delivery.event())), &own);
            alarm.push(job, &event("Alarm", number(delivery.event()), 0)).expect("pushed");
            Outcome::Ok
        });
        consumers.push(relay.expect("connected"));
        // Three at once, of both channels' kinds.
        let own = Arc::clone(&diary);
        let batch = alarms.consumer("batch").lane(lane("batch", Criticality::Medium));
        let batch = batch.qos(QosSettings::new().max_batch(3).pacing(Duration::from_secs(100)));
        let batch = batch.connect_sequence(move |deliveries, _| {
            let numbers: Vec<u64> = deliveries.iter().map(|one| number(one.event())).collect();
            note(Criticality::Medium, format!("batch has {numbers:?}"), &own);
            Outcome::Ok
        });
        consumers.push(batch.expect("connected"));
        // One that tries again.
        let (own, mut tries) = (Arc::clone(&diary), 0);
        let stubborn = alarms.consumer("stubborn").lane(lane("stubborn", Criticality::Low));
        let stubborn =
            stubborn.qos(QosSettings::new().with(PropertyName::RetryInterval, PropertyValue::Time(ms(7))));
        let stubborn = stubborn.connect(move |delivery| {
            tries += 1;
            // So it is with what comes again: a thread without real-time priority keeps the time.
            note(Criticality::VeryHigh, format!("stubborn has {}", number(delivery.event())), &own);
            if tries % 2 == 0 { Outcome::Ok } else { Outcome::Retry }
        });
        consumers.push(stubborn.expect("connected"));
        // One that is asked, in the lane of its priority.
        let mut asked = 1_000;
        let asking = move |_: &JobContext<'_>| {
            asked += 1;
            Supplied::Event(event("Asked", asked, 1))
        };
        let asked = create("asked");
        let pulled = asked.supplier("asked").connect_pull(PullPace::every(ms(60)), asking);
        let own = Arc::clone(&diary);
        let hearing = asked.consumer("hearing").lane(lane("hearing", Criticality::Low));
        let hearing = hearing.connect(move |delivery| {
            // When its pace begins, on threads, is not exactly when the run does: beside those of its lane.
            note(Criticality::VeryLow, format!("hearing has {}", number(delivery.event())), &own);
            Outcome::Ok
        });
        consumers.push(hearing.expect("connected"));
        let mut supplier = measured.supplier("gauge").connect().expect("connected");
        let (own, posted) = (Arc::clone(&diary), Arc::<OnceLock<[PostedOperation; 2]>>::default());
        let declared = Arc::clone(&posted);
        let gauge = move |job: &JobContext<'_>| {
            note(Criticality::High, format!("gauge {}", job.instance()), &own);
            // Low before high.
            for (place, priority) in [1, 9, 3, 7].into_iter().enumerate() {
                let number = 4 * job.instance() + place as u64;
                supplier.push(job, &event("Measured", number, priority)).expect("pushed");
            }
            let [alarm, _] = *declared.get().expect("it was declared before the run");
            let lots = [(30, 1), (10, 2), (20, 3)];
            for (after, lot) in lots {
                let due = job.release() + ms(after);
                job.post_work(Posted::new(alarm).handle(10 * job.instance() + lot).due(due))
                    .expect("there is room");
            }
        };
        let operations = Operations::synthetic().with("gauge", gauge);
        let pulled = pulled.expect("connected");
        (Program { factory, consumers, _pulled: pulled, diary, posted }, operations)
    }

    /// Declares the work that is posted, by whatever declares.
    fn declare(
        &self,
        mut declare: impl FnMut(Declaration, Box<dyn FnMut(&JobContext<'_>) + Send>) -> PostedOperation,
    ) {
        let own = Arc::clone(&self.diary);
        let log = move |job: &JobContext<'_>| {
            own.lock().expect("whole").push((Criticality::Low, format!("log {}", job.handle())));
        };
        let log = declare(lane("log", Criticality::Low), Box::new(log));
        let own = Arc::clone(&self.diary);
        let alarm = move |job: &JobContext<'_>| {
            own.lock().expect("whole").push((Criticality::Medium, format!("alarm {}", job.handle())));
            job.post(log, job.handle()).expect("there is room");
        };
        let alarm = declare(lane("alarm", Criticality::Medium), Box::new(alarm));
        assert!(self.posted.set([alarm, log]).is_ok());
    }

    fn of_lane(&self, wanted: Criticality) -> Vec<String> {
        let diary = self.diary.lock().expect("whole");
        let of_lane = diary.iter().filter(|(criticality, _)| *criticality == wanted);
        of_lane.map(|(_, text)| text.clone()).collect()
    }

    fn statistics(&self) -> Vec<ConsumerStatistics> {
        self.consumers.iter().map(|consumer| consumer.statistics()).collect()
    }
}

/// A system whose only lane is busy with `base` for some of each 20 ms.
fn one(base_us: i64, dispatch: LaneDispatch) -> System {
    let task = |name: &str, us: i64, criticality| {
        TaskBuilder::new(name, ms(20)).wcet(Work::from_micros(us)).criticality(criticality)
    };
    let builder = System::builder("one").strategy(Strategy::Criticality).lane_dispatch(dispatch);
    let builder = builder.node("n", [0]).task(task("base", base_us, Criticality::Low));
    builder.task(task("urgent", 100, Criticality::High)).build().expect("sound")
}

/// What became of events that are pushed from outside at these instants, by number and priority, with this quality of service and work of 1 ms.
fn delivered(
    system: &System,
    settings: &QosSettings,
    pushes: Vec<(i64, u64, i16)>,
) -> (Vec<(u64, i64)>, ConsumerStatistics) {
    let factory = EventChannelFactory::new();
    let channel = factory.create("c", settings, AdminProperties::default()).expect("sound");
    let seen: Arc<Mutex<Vec<(u64, i64)>>> = Arc::default();
    let own = Arc::clone(&seen);
    let work = Declaration::new("c", ms(50)).wcet(Work::from_millis(1)).criticality(Criticality::Low);
    let consumer = channel.consumer("c").lane(work).connect_with_job(move |delivery, job| {
        let at_us = job.now().as_nanos() / 1_000;
        own.lock().expect("whole").push((number(delivery.event()), at_us));
        Outcome::Ok
    });
    let consumer = consumer.expect("connected");
    let mut supplier = channel.supplier("outside").connect().expect("connected");
    // Where there is no room for a job for each event, one has several.
    let run = VirtualRun::new(system).events(&factory).posting(PostingRoom { jobs: 8, ..Default::default() });
    let prepared = run.prepare().expect("it can be simulated");
    let mut pushes = pushes.into_iter().peekable();
    let instant = |us: i64| talea::Instant::ZERO + Duration::from_micros(us);
    let first = pushes.peek().expect("there is one").0;
    prepared.workplace().call_at(instant(first), move |outside| {
        let (_, number, priority) = pushes.next().expect("it is called for one");
        supplier.push(outside, &event("Outside", number, priority)).expect("pushed");
        pushes.peek().map(|next| instant(next.0))
    });
    prepared.run(ms(20));
    let seen = seen.lock().expect("whole").clone();
    (seen, consumer.statistics())
}

/// A delivery that has begun has its event, whatever comes then, and leaves its place in the queue to another one.
#[test]
fn a_delivery_in_virtual_time_has_the_event_that_was_first_when_it_began() {
    let settings = QosSettings::new().order(OrderPolicy::Priority).max_events(1);
    // The urgent job of instant 0 goes before all, and then the base.
    let pushes = vec![(5_000, 1, 0), (5_500, 2, 9), (5_700, 3, 9)];
    let (seen, counted) = delivered(&one(500, LaneDispatch::NonPreemptive), &settings, pushes);
    assert_eq!(seen, [(1, 6_000), (3, 7_000)], "the second one made room for the third");
    assert_eq!((counted.delivered, counted.discarded, counted.settled()), (2, 1, 3));
}

#[test]
fn events_expire_in_virtual_time_while_their_delivery_waits_for_its_turn() {
    let settings = QosSettings::new().max_events(8).timeout(ms(2));
    // The base has the lane until 6.1 ms.
    let pushes = vec![(1_000, 1, 0), (4_500, 2, 0), (5_500, 3, 0)];
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        let (seen, counted) = delivered(&one(6_000, dispatch), &settings, pushes.clone());
        assert_eq!(seen, [(2, 7_100), (3, 8_100)], "{dispatch}");
        assert_eq!((counted.delivered, counted.expired), (2, 1));
    }
}

/// A lane of a consumer that is served by two nodes: whoever is free delivers the next event, again and again.
#[test]
fn several_servers_of_a_lane_share_its_events_in_virtual_time() {
    let idle = |node: &str| TaskBuilder::new(node, ms(1_000)).wcet(Work::from_micros(1)).on(node);
    let system = System::builder("servers").node("first", [0]).node("second", [1]);
    let system = system.task(idle("first")).task(idle("second")).build().expect("sound");
    let factory = EventChannelFactory::new();
    let channel = factory.create_with_defaults("c");
    let work = |name: &str, node: &str| Declaration::new(name, ms(50)).wcet(Work::from_millis(2)).node(node);
    let seen: Arc<Mutex<Vec<(String, u64, i64)>>> = Arc::default();
    let own = Arc::clone(&seen);
    let shared = channel.consumer("shared").lane(work("one", "first")).server(work("other", "second"));
    let shared = shared.connect_concurrent(move |delivery, job| {
        let at_ms = job.now().as_nanos() / 1_000_000;
        own.lock().expect("whole").push((job.operation().to_owned(), number(delivery.event()), at_ms));
        Outcome::Ok
    });
    let shared = shared.expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let run = VirtualRun::new(&system).events(&factory);
    let prepared = run.prepare().expect("it can be simulated");
    let mut time = 0;
    prepared.workplace().call_at(talea::Instant::ZERO + ms(10), move |outside| {
        time += 1;
        for place in 0..4 {
            supplier.push(&mut *outside, &event("Shared", 10 * time + place, 0)).expect("pushed");
        }
        (time < 3).then(|| outside.now() + ms(10))
    });
    prepared.run(ms(60));
    let seen = seen.lock().expect("whole").clone();
    let turn = |time: i64| {
        let number = |place: u64| 10 * time as u64 + place;
        let of = |name: &str, place, after| (name.to_owned(), number(place), 10 * time + after);
        [of("one", 0, 2), of("other", 1, 2), of("one", 2, 4), of("other", 3, 4)]
    };
    assert_eq!(seen, [turn(1), turn(2), turn(3)].concat());
    assert_eq!(shared.statistics().delivered, 12);
}

/// The condition is that of a channel of the program: no task of the system.
#[test]
fn conditions_over_time_come_true_in_virtual_time() {
    let factory = EventChannelFactory::new();
    let channel = factory.create_with_defaults("c");
    let of = |name: &str| Condition::of_types([name.parse().expect("a pattern")]);
    let seen: Arc<Mutex<Vec<i64>>> = Arc::default();
    let own = Arc::clone(&seen);
    let silence = Condition::unless_within(ms(5), of("Test/Alive"));
    let work = || Declaration::new("watchdog", ms(50)).criticality(Criticality::Low);
    let watchdog = channel.consumer("w").when(silence).lane(work()).connect_with_job(move |_, job| {
        own.lock().expect("whole").push(job.now().as_nanos() / 1_000);
        Outcome::Ok
    });
    let _watchdog = watchdog.expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    let system = one(100, LaneDispatch::NonPreemptive);
    let prepared = VirtualRun::new(&system).events(&factory).prepare().expect("it can be simulated");
    let mut left = vec![30_000, 12_000, 9_000, 6_000, 3_000];
    let instant = |us: i64| talea::Instant::ZERO + Duration::from_micros(us);
    prepared.workplace().call_at(instant(3_000), move |outside| {
        left.pop();
        supplier.push(outside, &event("Alive", 0, 0)).expect("pushed");
        left.last().map(|next| instant(*next))
    });
    prepared.run(ms(50));
    assert_eq!(*seen.lock().expect("whole"), [17_000, 35_000], "once for each silence");
}

/// Lanes below other schedulers, in which a task of the system and consumers of a channel are served by a reservation.
#[test]
fn consumers_in_lanes_below_schedulers_have_their_events_and_the_trace_is_clean() {
    let text = r#"
        [system]
        name = "below"
        strategy = "edf"
        [[node]]
        name = "n"
        cpus = [0]
        [[scheduler]]
        name = "RES"
        kind = "reservation"
        [[scheduler]]
        name = "jobs"
        kind = "lanes"
        under = [{ scheduler = "RES", guarantee = "RESBH 3ms 10ms" }]
        [[thread]]
        name = "hog"
        work = "cpu-bound"
        under = [{ scheduler = "RES", guarantee = "RESBH 4ms 10ms" }]
        [[task]]
        name = "base"
        period = "10ms"
        wcet = "1ms"
    "#;
    let system = talea::parse("below.toml", text, std::path::Path::new(".")).expect("a system").system;
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        let mut description = (*system).clone();
        description.lane_dispatch = dispatch;
        let system = System::new(description).expect("as sound");
        let factory = EventChannelFactory::new();
        let channel = factory.create_with_defaults("c");
        let work = Declaration::new("c", ms(30)).wcet(Work::from_micros(700));
        let consumer = channel.consumer("c").lane(work).connect(|_| Outcome::Ok).expect("connected");
        let mut supplier = channel.supplier("s").connect().expect("connected");
        let run = VirtualRun::new(&system).events(&factory).operation("base", move |job| {
            for number in 0..2 {
                supplier.push(job, &event("Below", number, 0)).expect("pushed");
            }
        });
        let mut simulation = run.prepare().expect("it can be simulated").into_simulation();
        let mut records = Vec::new();
        simulation = simulation.with_dispatch(talea::simulation::DispatchRecords::Kept);
        simulation.advance(talea::Instant::ZERO + ms(200), &mut records);
        let metadata = simulation.metadata().clone();
        simulation.finish(&mut records);
        assert_eq!(consumer.statistics().delivered, 40, "{dispatch}");
        let mut accounting = talea::trace::Accounting::new(&metadata, ms(1_000));
        records.iter().for_each(|record| talea::trace::Sink::record(&mut accounting, *record));
        let report = accounting.finish(talea::Instant::ZERO + ms(200));
        let row = report.tasks.iter().find(|task| task.name == "c").expect("a row");
        assert_eq!((row.released, row.met), (40, 40), "{dispatch}");
    }
}

const LENGTH: Duration = Duration::from_millis(700);

fn simulated() -> (Program, talea::Report) {
    let (program, operations) = Program::new();
    let system = system();
    let run = VirtualRun::new(&system).operations(operations).events(&program.factory).posting(ROOM);
    let prepared = run.prepare().expect("it can be simulated");
    let workplace = prepared.workplace();
    program.declare(|declaration, code| workplace.declare(declaration, code).expect("there is room"));
    let report = prepared.run(LENGTH);
    (program, report)
}

/// In each lane the same is called in the same order, where the kernel keeps lanes apart and nothing was late.
#[test]
fn a_program_does_the_same_on_threads_and_in_virtual_time() {
    let (virtual_program, virtual_report) = simulated();
    let (program, operations) = Program::new();
    let system = system();
    let run = Run::new(&system).operations(operations).events(&program.factory).posting(ROOM);
    let prepared = run.realtime(RtMode::Warn).duration(LENGTH).prepare().expect("it can run");
    let dispatcher = prepared.dispatcher();
    program.declare(|declaration, code| dispatcher.declare(declaration, code).expect("there is room"));
    let outcome = prepared.run().expect("it runs");
    assert!(outcome.mishaps.panics.is_empty(), "{:?}", outcome.mishaps.panics);

    let row = |report: &talea::Report, name: &str| {
        report.tasks.iter().find(|task| task.name == name).map(|task| (task.activity, task.deadline_ns))
    };
    for name in
        ["gauge", "measured.all.high", "measured.all.low", "relay", "batch", "stubborn", "alarm", "log"]
    {
        assert!(row(&outcome.report, name).is_some(), "{name}");
        assert_eq!(row(&outcome.report, name), row(&virtual_report, name));
    }
    // The way from a gauge's job to the last that comes of it has three legs, in 20 ms.
    let responses = outcome.report.tasks.iter().filter_map(|task| task.response_ns.as_ref());
    let is_punctual = outcome.realtime && responses.map(|times| times.max).max() < Some(5_000_000);
    if !is_punctual {
        return println!("skipped: the lanes were not kept apart, or jobs were late: {:?}", outcome.missing);
    }
    for (criticality, least) in [
        (Criticality::High, 90),
        (Criticality::Medium, 90),
        (Criticality::Low, 200),
        (Criticality::VeryLow, 9),
    ] {
        let (own, other) = (program.of_lane(criticality), virtual_program.of_lane(criticality));
        let common = own.len().min(other.len());
        assert!(common >= least, "{criticality}: {common}");
        assert_eq!(own[..common], other[..common], "{criticality}");
    }
}

/// To the last event, and again.
#[test]
fn what_became_of_each_event_in_virtual_time_is_what_the_channels_say_and_the_same_again() {
    let (program, report) = simulated();
    // 35 jobs of the gauge push four events each, and every other one is relayed.
    let counts: Vec<_> = program.statistics();
    let [all, relay, batch, stubborn, hearing] = &counts[..] else { panic!("there are five") };
    assert_eq!((all.delivered, all.settled()), (140, 140));
    assert_eq!((relay.delivered, relay.filtered), (70, 70));
    assert_eq!(
        (batch.delivered, hearing.delivered),
        (69, 12),
        "three at once; asked for at 0, 60, … and 660 ms"
    );
    assert!(stubborn.delivered + stubborn.retried > 70 && stubborn.delivered > 60, "{stubborn:?}");
    assert!(report.tasks.iter().all(|task| task.missed == 0));
    let (again, _) = simulated();
    assert_eq!(*program.diary.lock().expect("whole"), *again.diary.lock().expect("whole"));
    assert_eq!(program.statistics(), again.statistics());
    let high = program.of_lane(Criticality::High);
    assert_eq!(high[..3], ["gauge 0", "all has 1 of 9", "all has 3 of 7"]);
    let medium = program.of_lane(Criticality::Medium);
    assert_eq!(medium[..3], ["alarm 1", "alarm 2", "alarm 3"], "its lane is FIFO");
}

/// Two nodes; the job of the first pushes into two channels of one name, one of them a type that nobody has offered, and has work declared in the midst of
/// everything. Whatever takes the records has the names, though it was made before anything had one.
#[test]
fn what_a_program_pushes_in_virtual_time_has_a_name_in_every_output() {
    let idle = |node: &str| TaskBuilder::new(node, ms(20)).wcet(Work::from_micros(50)).on(node);
    let system = System::builder("two").node("first", [0]).node("second", [1]);
    let system = system.task(idle("first")).task(idle("second")).build().expect("sound");
    let factory = EventChannelFactory::new();
    let (one, other) = (factory.create_with_defaults("motion"), factory.create_with_defaults("health"));
    let also = EventChannelFactory::new();
    let third = also.create_with_defaults("motion");
    let work = |name: &str, node: &str| Declaration::new(name, ms(50)).wcet(Work::from_micros(10)).node(node);
    let taking = |channel: &EventChannel, name: &str, node: &str| {
        channel.consumer(name).lane(work(name, node)).connect(|_| Outcome::Ok).expect("connected")
    };
    let consumers =
        [taking(&one, "alpha", "first"), taking(&other, "beta", "second"), taking(&third, "gamma", "second")];
    let mut offering =
        one.supplier("s").offer([EventType::new("Test", "Offered")]).connect().expect("connected");
    let mut suppliers = [&other, &third].map(|channel| channel.supplier("s").connect().expect("connected"));
    let run = VirtualRun::new(&system).events(&factory);
    let run = run.posting(PostingRoom { operations: 2, ..ROOM }).operation("first", move |job| {
        offering.push(job, &event("Offered", 1, 0)).expect("pushed");
        suppliers.iter_mut().for_each(|supplier| {
            supplier.push(job, &event("Unoffered", 2, 0)).expect("pushed");
        });
    });
    let prepared = run.prepare().expect("it can be simulated");
    also.bind(prepared.workplace()).expect("there is room");
    let workplace = prepared.workplace();
    prepared.workplace().call_at(talea::Instant::ZERO + ms(10), move |outside| {
        let late = workplace.declare(work("late", "second"), |_| ()).expect("there is room");
        outside.post(late, 0).expect("there is room");
        None
    });
    let mut simulation = prepared.into_simulation();
    let (metadata, names) = (simulation.metadata().clone(), NameSpace::default());
    assert!(metadata.publications.is_empty());
    let folder = tempfile::tempdir().expect("a folder");
    let (log, ctf) = (folder.path().join("log"), folder.path().join("ctf"));
    let mut logged = LogWriter::create(&log, &metadata).expect("created");
    let mut perfetto = PerfettoExport::new(&metadata, &names, &[], Vec::new());
    let mut common = CtfExport::create(&ctf, &metadata, &names).expect("created");
    let (mut schedule, mut rows, mut records) = (Vec::new(), Vec::new(), Vec::<Record>::new());
    let mut segments = ScheduleCsv::new(&metadata, &mut schedule);
    let end = talea::Instant::ZERO + ms(40);
    let mut sinks = ((&mut logged, &mut perfetto), ((&mut common, &mut segments), &mut records));
    simulation.advance(end, &mut sinks);
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut sinks);
    logged.finish().expect("written");
    let perfetto = perfetto.finish(end).expect("written");
    common.finish().expect("written");
    segments.finish(end).expect("written");
    export_csv(&metadata, &names, records.iter().copied(), &mut rows).expect("written");
    assert_eq!(consumers.each_ref().map(|consumer| consumer.statistics().delivered), [2, 2, 2]);

    let named = ["motion Test/Offered", "health Test/Unoffered", "motion (2) Test/Unoffered"];
    let entries: Vec<&str> = metadata.publications.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(entries, named);
    let trace = TraceFile::open(&log).expect("a trace");
    assert_eq!(trace.metadata().publications, metadata.publications);
    let read = |path: &std::path::Path| String::from_utf8(std::fs::read(path).expect("read")).expect("text");
    let shown: String = records.iter().map(|record| format_record(&metadata, record) + "\n").collect();
    let (rows, described) = (String::from_utf8(rows).expect("text"), read(&ctf.join("metadata")));
    for (name, entry) in named.into_iter().zip(&metadata.publications) {
        assert_eq!(rows.matches(&format!("publication={name}")).count(), 4, "pushed and taken twice: {rows}");
        assert!(described.contains(&format!("\"{name}\"")), "{described}");
        let told = format!("{} into {}", entry.event_type, entry.channel);
        assert!(shown.contains(&told), "{told}: {shown}");
    }
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    for text in ["push: Test/Offered #0", "deliver: Test/Unoffered #1", "motion (2)", "beta", "gamma", "late"]
    {
        assert!(has(&perfetto, text), "{text} is not in the Perfetto trace");
    }
    assert!(!shown.contains('?'), "{shown}");
    let schedule = String::from_utf8(schedule).expect("text");
    let on = |node: &str, task: &str| {
        schedule.lines().any(|row| row.contains(&format!(",{node},")) && row.contains(&format!(",{task},")))
    };
    assert!(
        on("first", "alpha") && ["beta", "gamma", "late"].iter().all(|task| on("second", task)),
        "{schedule}"
    );
}
