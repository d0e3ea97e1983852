//! Runs on real threads of programs whose channels filter, discard and reject, replayed: on one processor, on two, and in reservations of a hierarchy.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use talea::notification::declared::answered_push;
use talea::notification::qos::{DiscardPolicy, QosSettings};
use talea::notification::{
    AdminProperties, ConnectedConsumer, Content, Delivery, Event, EventChannel, EventChannelFactory,
    EventType, Filter, Filterable, Header, Outcome, PushError, Pushed,
};
use talea::replay::{ReplayReport, ReplayRun, What};
use talea::run::{Declaration, KeptOutputs, Operations, OutputKind, PostingRoom};
use talea::{Duration, JobContext, RtMode, Run, System};
use talea_operation::PushAnswer;
use talea_record::values::{self, KeptOf, KeptValue, ValueReader};
use talea_record::{CallOutcome, Event as Kind, JobId, LogWriter, Sink, TraceFile};

/// Room for four consumers, and a thread for each node and for instants.
const ROOM: PostingRoom = PostingRoom { operations: 8, jobs: 16, posters: 4 };

#[derive(Clone, Copy, Default, PartialEq, Filterable, serde::Serialize, serde::Deserialize)]
#[filterable(crate = "talea::notification::etcl")]
struct Count {
    number: u64,
}

impl Content for Count {}

/// Where consumers are that have much to do and little time.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the lower lane of the only processor.
    Below,
    /// On the other of two processors.
    Beside,
    /// In a reservation of its own.
    InCabin,
}

const HEAD: &str = "[system]\nname = \"channels\"\nstrategy = \"rms\"\n";
const PUSH: &str = "wcet = \"100us\"\nperiod = \"4ms\"\noutputs = [{ name = \"out\" }]\n";
const IDLE: &str = "wcet = \"100us\"\nperiod = \"20ms\"\n";
const HIERARCHY: &str = "
[[scheduler]]
name = \"RES\"
kind = \"reservation\"
[[scheduler]]
name = \"flight\"
kind = \"lanes\"
under = [{ scheduler = \"RES\", guarantee = \"RESBH 10ms 25ms\" }]
[[scheduler]]
name = \"cabin\"
kind = \"lanes\"
under = [{ scheduler = \"RES\", guarantee = \"RESBH 8ms 25ms\" }]
";

impl Place {
    /// A task that pushes, and one that does nothing beside the slow consumers.
    fn system(self) -> System {
        let task = |name: &str, rest: &str, of: &str| format!("[[task]]\nname = \"{name}\"\n{rest}{of}");
        let node = |name: &str, cpu: u16| format!("[[node]]\nname = \"{name}\"\ncpus = [{cpu}]\n");
        let (nodes, hierarchy, push, idle) = match self {
            Place::Below => (node("a", 0), "", "", ""),
            Place::Beside => (node("a", 0) + &node("b", 1), "", "node = \"a\"\n", "node = \"b\"\n"),
            Place::InCabin => (node("a", 0), HIERARCHY, "lanes = \"flight\"\n", "lanes = \"cabin\"\n"),
        };
        let text =
            format!("{HEAD}{nodes}{hierarchy}{}{}", task("push", PUSH, push), task("idle", IDLE, idle));
        talea::parse("channels.toml", &text, Path::new(".")).expect("a system").system
    }

    /// The work of a consumer that has little to do.
    fn quick(self, name: &str) -> Declaration {
        let declaration = Declaration::new(name, Duration::from_millis(50)).period(Duration::from_millis(4));
        match self {
            Place::Below => declaration,
            Place::Beside => declaration.node("a"),
            Place::InCabin => declaration.in_lanes("flight"),
        }
    }

    /// That of one that has much to do.
    fn slow(self, name: &str) -> Declaration {
        let declaration = Declaration::new(name, Duration::from_millis(50)).period(Duration::from_millis(20));
        match self {
            Place::Below => declaration,
            Place::Beside => declaration.node("b"),
            Place::InCabin => declaration.in_lanes("cabin"),
        }
    }
}

/// What happened to a job: of what task or consumer it is, and its number; what was handed to it, and how its pushes were answered.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    name: &'static str,
    instance: u64,
    handed: Vec<(u64, talea::Instant, u64)>,
    answers: Vec<Result<Pushed, PushError>>,
}

fn digest(of: impl std::fmt::Debug) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{of:?}").hash(&mut hasher);
    hasher.finish()
}

/// What the consumer of high counts does otherwise than it did.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Changed {
    Nothing,
    /// It pushes another event when it is handed this one.
    Push(u64),
    /// It answers something else when it is handed this one.
    Answer(u64),
}

/// What it answers.
fn answer_to(number: u64) -> Outcome {
    if number.is_multiple_of(3) { Outcome::Discard } else { Outcome::Ok }
}

/// The channels, who consumes of them, and the code that pushes. The consumer of high counts does what is `changed` otherwise.
struct Program {
    factory: EventChannelFactory,
    seen: Receiver<Seen>,
    operations: Operations,
    _consumers: Vec<ConnectedConsumer>,
}

impl Program {
    fn new(place: Place, changed: Changed) -> Self {
        let factory = EventChannelFactory::new();
        let rejecting =
            AdminProperties { max_queue_length: 1, reject_new_events: true, ..AdminProperties::default() };
        let discarding = QosSettings::new().max_events(1).discard(DiscardPolicy::Lifo);
        let counts = factory.create("counts", &discarding, AdminProperties::default()).expect("sound");
        let narrow = factory.create("narrow", &QosSettings::new(), rejecting).expect("sound");
        let event_types = ["Count", "Answer"].map(|name| EventType::new("T", name));
        for (channel, event_type) in
            [&counts, &narrow].into_iter().flat_map(|one| event_types.iter().map(move |of| (one, of)))
        {
            channel.carries::<Count>(event_type, &OutputKind::any().serialized()).expect("it has bytes");
        }
        let (tell, seen) = channel();
        let supplier = |channel: &EventChannel, name: &str| {
            channel.supplier(name).offer(event_types.clone()).connect().expect("there is room")
        };
        let (mut pushing, mut refused) = (supplier(&counts, "push"), supplier(&narrow, "push"));
        let (event_type, own) = (event_types[0].clone(), tell.clone());
        let operations = Operations::synthetic().with_ports("push", move |ports| {
            let out = ports.output_of::<u64>("out", OutputKind::any().plain(), || 0);
            let mut state = 0;
            move |job: &JobContext<'_>| {
                let event = |number| Event::new(Header::new(event_type.clone()), Count { number });
                let counted = event(job.instance());
                let answers = vec![
                    refused.push(job, &counted),
                    refused.push(job, &counted),
                    pushing.push(job, &counted),
                ];
                state = digest((state, &answers));
                // Whoever is refused pushes something else.
                let answers = match answers[1] {
                    Err(_) => [&answers[..], &[pushing.push(job, &event(state))]].concat(),
                    Ok(_) => answers,
                };
                _ = own.send(Seen { name: "push", instance: job.instance(), handed: Vec::new(), answers });
                job.set(out, state);
            }
        });
        let types = |name: &str| [format!("T/{name}").parse().expect("a pattern")];
        let high = Filter::parse::<Count>(&[], "number >= 10").expect("a constraint");
        let high = counts.consumer("high").subscribe(types("Count")).filter(high).lane(place.quick("high"));
        let (mut answering, event_type, own) =
            (supplier(&counts, "high"), event_types[1].clone(), tell.clone());
        let high = high.connect_with_job(move |delivery, job| {
            let number = number_of(delivery);
            let time = job.now().as_nanos().unsigned_abs();
            let other = u64::from(changed == Changed::Push(number));
            let answer = Count { number: digest((number, time)).wrapping_add(other) };
            let answer = answering.push(job, &Event::new(Header::new(event_type.clone()), answer));
            tell_of("high", (delivery, job), vec![answer], &own);
            if changed == Changed::Answer(number) { Outcome::Fail } else { answer_to(number) }
        });
        let slow = |channel: &EventChannel, name: &'static str, of: &str, millis: u64| {
            let consumer = channel.consumer(name).subscribe(types(of)).lane(place.slow(name));
            let own = tell.clone();
            consumer.connect_with_job(move |delivery, job| {
                // Also in a replay, where nobody waits for it.
                let begun = std::time::Instant::now();
                while begun.elapsed() < std::time::Duration::from_millis(millis) {
                    std::hint::spin_loop();
                }
                tell_of(name, (delivery, job), Vec::new(), &own);
                Outcome::Ok
            })
        };
        let all = [high, slow(&counts, "answered", "Answer", 1), slow(&narrow, "narrow", "*", 5)];
        let _consumers = all.map(|consumer| consumer.expect("it can be connected")).into();
        Program { factory, seen, operations, _consumers }
    }
}

fn number_of(delivery: &Delivery) -> u64 {
    delivery.event().content::<Count>().expect("a count").number
}

fn tell_of(
    name: &'static str,
    (delivery, job): (&Delivery, &JobContext<'_>),
    answers: Vec<Result<Pushed, PushError>>,
    to: &Sender<Seen>,
) {
    let handed = vec![(number_of(delivery), delivery.pushed(), delivery.number())];
    _ = to.send(Seen { name, instance: job.instance(), handed, answers });
}

/// Runs the program until it has been refused, and more than a few consumers have been called. What was seen then.
fn recorded(place: Place, system: &System, trace: &Path) -> Vec<Seen> {
    let Program { factory, seen, operations, _consumers } = Program::new(place, Changed::Nothing);
    let prepared = Run::new(system)
        .operations(operations)
        .keep_values(KeptOutputs::All)
        .keep_trace(trace)
        .realtime(RtMode::Warn)
        .posting(ROOM)
        .duration(Duration::from_secs(60))
        .prepare()
        .expect("it can be prepared");
    factory.bind(prepared.dispatcher().workplace().expect("there is room")).expect("it can be bound");
    let stop = prepared.stop_handle();
    let running = std::thread::spawn(move || prepared.run().expect("it runs"));
    let mut then: Vec<Seen> = Vec::new();
    let has =
        |then: &[Seen], name: &str, most: usize| then.iter().filter(|one| one.name == name).count() > most;
    let is_rejected = |one: &Seen| one.answers.contains(&Err(PushError::Rejected));
    while !(has(&then, "high", 15)
        && has(&then, "answered", 5)
        && has(&then, "narrow", 5)
        && then.iter().any(is_rejected))
    {
        then.push(seen.recv().expect("the run goes on"));
    }
    stop.stop();
    let outcome = running.join().expect("no thread panics");
    assert!(outcome.mishaps.panics.is_empty());
    assert_eq!(outcome.mishaps.values_unkept, 0);
    then.extend(seen.try_iter());
    then
}

fn replayed(place: Place, system: &System, trace: &Path, changed: Changed) -> (ReplayReport, Vec<Seen>) {
    let Program { factory, seen, operations, _consumers } = Program::new(place, changed);
    let replay = ReplayRun::new(system).operations(operations).posting(ROOM);
    let replay = replay.prepare(trace).expect("it can be replayed");
    factory.bind(replay.workplace()).expect("it can be bound");
    let report = replay.run().expect("it can be replayed");
    (report, seen.try_iter().collect())
}

fn is_the_same_again(place: Place) {
    let (system, folder) = (place.system(), tempfile::tempdir().expect("a folder"));
    let trace = folder.path().join("trace.talea");
    let then = recorded(place, &system, &trace);
    let (same, now) = replayed(place, &system, &trace, Changed::Nothing);
    assert_eq!((&same.first, same.unknown()), (&None, 0), "{place:?}: {same:?}");
    if same.lost_records > 0 {
        return println!("skipped: {} records are lost", same.lost_records);
    }
    assert_eq!(same.posted, []);
    for name in ["push", "high", "answered", "narrow"] {
        let of = |seen: &[Seen]| seen.iter().filter(|one| one.name == name).cloned().collect::<Vec<_>>();
        let (then, now) = (of(&then), of(&now));
        let differs = then.iter().zip(&now).find(|(then, now)| then != now);
        assert_eq!(differs, None, "{name}, {place:?}");
        // One may be under way when the run ends, and does not complete then.
        assert!(now.len() > 5 && now.len() <= then.len() && then.len() <= now.len() + 1, "{name}, {place:?}");
    }
    let rows = |report: &ReplayReport, name: &str| {
        report.publications.iter().find(|row| row.output == name).cloned()
    };
    for row in ["push>counts T/Count", "push>narrow T/Count", "high>counts T/Answer"] {
        assert!(rows(&same, row).is_some_and(|row| row.compared > 5), "{row}: {:?}", same.publications);
    }

    let is_called = |one: &&Seen| one.name == "high";
    let changed = now.iter().filter(is_called).nth(3).expect("it is called").handed[0].0;
    let (other, _) = replayed(place, &system, &trace, Changed::Push(changed));
    let first = other.first.clone().expect("it is found");
    assert_eq!((first.output.as_str(), other.differing()), ("high>counts T/Answer", 1), "{first}, {place:?}");
    let calls = |name: &str| now.iter().filter(|one| one.name == name).count() as u64;
    for name in ["high", "answered", "narrow"] {
        let row = same.outcomes.iter().find(|row| row.output == name).expect("it answers");
        assert_eq!((row.compared, row.unrecorded), (calls(name), 0), "{row:?}, {place:?}");
    }
    let (other, _) = replayed(place, &system, &trace, Changed::Answer(changed));
    let first = other.first.clone().expect("it is found");
    let What::Outcome { event: Some(event), recorded, now, .. } = &first.what else { panic!("{first}") };
    assert_eq!((first.output.as_str(), other.differing()), ("high", 1), "{first}, {place:?}");
    assert!(event.starts_with("counts T/Count of push #"), "{first}");
    assert_eq!((*recorded, *now), (answer_to(changed).into(), CallOutcome::Fail), "{first}");
}

/// The trace as it was written before it was kept how pushes were answered, and what went on to nobody.
fn as_of_before(trace: &Path, to: &Path) {
    let file = TraceFile::open(trace).expect("a trace");
    let metadata = file.metadata().clone();
    let mut log = LogWriter::create(to, &metadata).expect("writable");
    let mut values = ValueReader::default();
    // What went on to nobody did not count.
    let mut numbers: HashMap<JobId, u16> = HashMap::new();
    for record in file.records().expect("records").map(|record| record.expect("a record")) {
        let (is_push, is_part) = (record.event == Kind::PUSH_KEPT, record.event == Kind::VALUE_PART);
        let kept = values.take(&record);
        // Of each value the last part has come with this one.
        if let Some(KeptValue { job, of, bytes }) = kept {
            let node = record.source;
            match of {
                KeptOf::Pushed { publication, .. } => {
                    if let (event, Some(PushAnswer::Pushed { .. }) | None) = answered_push(&bytes) {
                        let number = numbers.entry(job).or_default();
                        let of = KeptOf::Pushed { publication, number: *number };
                        *number += 1;
                        values::write(&mut log, (job, of), event, node, record.time);
                    }
                }
                KeptOf::Output(_) | KeptOf::Taken => {
                    values::write(&mut log, (job, of), &bytes, node, record.time);
                }
            }
        } else if !is_push && !is_part && record.event != Kind::VALUE {
            log.record(record);
        }
    }
    log.finish().expect("written");
}

/// Nobody knows what the jobs of such a trace were told when they pushed: what they do otherwise now is no difference of theirs.
#[test]
fn pushes_of_traces_that_do_not_say_how_they_were_answered_show_no_differences() {
    let place = Place::Below;
    let (system, folder) = (place.system(), tempfile::tempdir().expect("a folder"));
    let [trace, before] = ["trace.talea", "before.talea"].map(|name| folder.path().join(name));
    recorded(place, &system, &trace);
    as_of_before(&trace, &before);
    let (now, _) = replayed(place, &system, &trace, Changed::Nothing);
    let (old, seen) = replayed(place, &system, &before, Changed::Nothing);
    assert_eq!((&now.first, now.unknown()), (&None, 0), "{now:?}");
    if now.lost_records > 0 {
        return println!("skipped: {} records are lost", now.lost_records);
    }
    assert_eq!(old.first, None, "{old:?}");
    assert!(old.unknown() > 0, "the pushing job was refused, and is not again: {old:?}");
    let changed = seen.iter().filter(|one| one.name == "high").nth(3).expect("it is called").handed[0].0;
    let (other, _) = replayed(place, &system, &before, Changed::Push(changed));
    assert_eq!(other.first, None, "what follows from an unknown answer is unknown: {other:?}");
}

#[test]
fn consumers_with_filters_and_pushes_that_are_refused_are_the_same_again() {
    is_the_same_again(Place::Below);
}

#[test]
fn so_are_they_on_several_processors() {
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        return println!("skipped: it takes two processors");
    }
    is_the_same_again(Place::Beside);
}

#[test]
fn so_are_they_in_reservations_of_a_hierarchy() {
    is_the_same_again(Place::InCabin);
}
