//! Runs on real threads, replayed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use talea::notification::qos::QosSettings;
use talea::notification::{
    ConnectedConsumer, Content, Event, EventChannelFactory, EventType, Filterable, Header, Outcome, Supplier,
};
use talea::replay::{Difference, ReplayRun, What};
use talea::run::{
    Declaration, KeptOutputs, NotPosted, NotRead, Operations, OutputKind, Ports, Posted, PostedOperation,
    PostingRoom,
};
use talea::{
    Communication, Duration, InputBuilder, JobContext, LaneDispatch, OutputBuilder, Overrun,
    PublicationBuilder, RtMode, Run, Strategy, SubscriptionBuilder, SubtaskBuilder, Synchronisation, System,
    TaskBuilder, Work,
};

/// Tasks of several rates over two lanes: one is aborted again and again, one is held by guards, one takes and publishes at its periods' ends, and
/// one is released by values, but not too often.
fn system(dispatch: LaneDispatch) -> System {
    let step = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_micros(100));
    let input = |name: &str, from: &str| InputBuilder::new(name).from(from);
    let sense = TaskBuilder::new("sense", Duration::from_millis(2))
        .sync(Synchronisation::ReleaseGuard)
        .subtask(step("read").output(OutputBuilder::new("raw")))
        .subtask(step("filter").input(input("raw", "sense.read.raw")).output(OutputBuilder::new("out")));
    let act = TaskBuilder::new("act", Duration::from_millis(5))
        .communication(Communication::Let)
        .wcet(Work::from_micros(100))
        .input(input("latest", "sense.filter.out"))
        .input(input("slow", "slow.out"))
        .output(OutputBuilder::new("out"));
    let log = TaskBuilder::new("log", Duration::from_millis(20))
        .wcet(Work::from_micros(100))
        .input(input("each", "sense.filter.out").each().capacity(4))
        .output(OutputBuilder::new("out"));
    let slow = TaskBuilder::new("slow", Duration::from_millis(10))
        .deadline(Duration::from_millis(5))
        .overrun(Overrun::Abort)
        .wcet(Work::from_millis(1))
        .output(OutputBuilder::new("out"));
    let echo = TaskBuilder::triggered_by("echo", "sense.filter.out")
        .separation(Duration::from_millis(3))
        .wcet(Work::from_micros(50))
        .input(input("act", "act.out"))
        .output(OutputBuilder::new("out"));
    let builder = System::builder("replayed").strategy(Strategy::Rms).lane_dispatch(dispatch).node("n", [0]);
    builder.task(sense).task(act).task(log).task(slow).task(echo).build().expect("sound")
}

type Digest = [u64; 2];

/// An event's content.
#[derive(Clone, Copy, Default, PartialEq, Filterable, serde::Serialize, serde::Deserialize)]
#[filterable(crate = "talea::notification::etcl")]
struct Count {
    number: u64,
}

impl Content for Count {}

/// An operation that publishes a digest of everything that it was ever handed, with `twist` in it.
fn digest(
    ports: &mut Ports<'_>,
    inputs: &[&str],
    output: &str,
    twist: u64,
) -> impl FnMut(&JobContext<'_>) + Send + use<> {
    let inputs: Vec<_> = inputs.iter().map(|name| ports.input::<Digest>(name)).collect();
    let output = ports.output_of::<Digest>(output, OutputKind::any().serialized(), Digest::default);
    let mut state = 0u64;
    move |job: &JobContext<'_>| {
        let mut hasher = DefaultHasher::new();
        (twist, state, job.instance(), job.started(), job.now(), job.laxity()).hash(&mut hasher);
        (job.release(), job.deadline()).hash(&mut hasher);
        for input in &inputs {
            job.all(*input).for_each(|value| value.hash(&mut hasher));
            job.stamp(*input).map(|stamp| (stamp.instance, stamp.visible_at)).hash(&mut hasher);
            job.age(*input).hash(&mut hasher);
        }
        state = hasher.finish();
        job.set(output, [job.instance(), state]);
    }
}

/// `twist` goes into what `act` publishes.
fn operations(twist: u64) -> Operations {
    Operations::synthetic()
        .with_ports("sense.read", |ports| digest(ports, &[], "raw", 0))
        .with_ports("sense.filter", |ports| digest(ports, &["raw"], "out", 0))
        .with_ports("act", move |ports| digest(ports, &["latest", "slow"], "out", twist))
        .with_ports("echo", |ports| digest(ports, &["act"], "out", 0))
        .with_ports("log", |ports| digest(ports, &["each"], "out", 0))
        .with_ports("slow", |ports| {
            let out = ports.output_of::<Digest>("out", OutputKind::any().plain(), Digest::default);
            let mut asked = 0u64;
            move |job: &JobContext<'_>| {
                // Every other job works until it is aborted; how often it has asked is what it keeps.
                while !job.instance().is_multiple_of(2) && !job.aborted() {
                    asked += 1;
                }
                job.set(out, [job.instance(), asked]);
            }
        })
}

fn run(system: &System, kept: KeptOutputs, trace: &Path) {
    let outcome = Run::new(system)
        .operations(operations(0))
        .keep_values(kept)
        .keep_trace(trace)
        .realtime(RtMode::Warn)
        .duration(Duration::from_millis(400))
        .run()
        .expect("it runs");
    assert!(outcome.mishaps.panics.is_empty());
}

#[test]
fn what_ran_on_threads_is_the_same_when_it_is_replayed_and_what_was_changed_is_found() {
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        let (system, folder) = (system(dispatch), tempfile::tempdir().expect("a folder"));
        let trace = folder.path().join("trace.talea");
        run(&system, KeptOutputs::All, &trace);
        let same = talea::replay(&system, operations(0), &trace).expect("it can be replayed");
        assert_eq!(same.first, None, "{dispatch}: {same:?}");
        // Where the machine stood still for long, records may be lost, and values; nothing may differ for that.
        if same.lost_records == 0 {
            assert_eq!(same.unknown(), 0, "{same:?}");
            assert!(same.compared() >= 400, "{same:?}");
        }

        let other = talea::replay(&system, operations(1), &trace).expect("it can be replayed");
        for row in &other.outputs {
            assert_eq!(row.differing > 0, row.output == "act.out" && row.compared > 0, "{row:?}");
        }
        let first = other.first.expect("it differs");
        assert!(first.output == "act.out" && matches!(first.what, What::Bytes { .. }), "{first:?}");
    }
}

#[test]
fn values_of_the_outputs_that_are_named_are_recorded_and_no_others() {
    let (system, folder) = (system(LaneDispatch::NonPreemptive), tempfile::tempdir().expect("a folder"));
    let trace = folder.path().join("trace.talea");
    run(&system, KeptOutputs::Named(vec!["sense.filter.out".into()]), &trace);
    let report = talea::replay(&system, operations(1), &trace).expect("it can be replayed");
    let kept: Vec<&str> =
        report.outputs.iter().filter(|row| row.is_kept).map(|row| row.output.as_str()).collect();
    assert_eq!((kept, report.first), (vec!["sense.filter.out"], None));

    let unknown = Run::new(&system).keep_values(KeptOutputs::Named(vec!["sense.filter.ou".into()])).prepare();
    let error = unknown.expect_err("there is no such output").to_string();
    assert!(error.contains("did you mean \"sense.filter.out\"?"), "{error}");
    let nowhere = Run::new(&system).keep_values(KeptOutputs::All).prepare();
    assert!(nowhere.expect_err("there is no trace").to_string().contains("`Run::keep_trace`"));
    let never = Run::new(&system)
        .operation_with_ports("slow", |ports| {
            let out = ports.output::<Digest>("out");
            move |job| job.set(out, [job.instance(), 0])
        })
        .keep_values("slow.out".parse().expect("a name"))
        .keep_trace(&trace)
        .prepare();
    let error = never.expect_err("it has no bytes").to_string();
    assert!(error.contains("\"slow.out\" cannot be kept, for they are never bytes"), "{error}");
}

/// A task pushes events, another one takes them, and a third reads what that makes of them.
fn of_events(dispatch: LaneDispatch) -> System {
    let task = |name: &str| TaskBuilder::new(name, Duration::from_millis(2)).wcet(Work::from_micros(50));
    let taking = TaskBuilder::triggered_by("take", SubscriptionBuilder::new("c").types(["T/Count"]));
    let taking = taking.deadline(Duration::from_millis(9)).wcet(Work::from_micros(20));
    let reading = task("read").input(InputBuilder::new("taken").from("take.out"));
    System::builder("pushing")
        .lane_dispatch(dispatch)
        .node("n", [0])
        .channel("c", QosSettings::new().max_events(2))
        .task(
            task("push").event(PublicationBuilder::new("c", "T/Count")).output(OutputBuilder::new("pushed")),
        )
        .task(taking.output(OutputBuilder::new("out")))
        .task(reading.output(OutputBuilder::new("out")))
        .build()
        .expect("sound")
}

/// How events become bytes, if they do.
type Kind = fn() -> OutputKind<Count>;

/// Its code, in which events that `kind` says how to make bytes of carry more by `twist`.
fn with_events(kind: Kind, twist: u64) -> Operations {
    use talea::notification::declared::{EventPorts, JobEvents};
    Operations::synthetic()
        .with_ports("push", move |ports| {
            let (events, pushed) = (
                ports.publication_of::<Count>("T/Count", kind()),
                ports.output_of("pushed", OutputKind::any().plain(), || 0),
            );
            move |job: &JobContext<'_>| {
                let is_pushed = job.push(events, |count, _| count.number = job.instance() + twist);
                let now = job.now().as_nanos().unsigned_abs();
                job.set(pushed, 2 * now + u64::from(is_pushed));
            }
        })
        .with_ports("take", |ports| {
            ports.subscription();
            let out = ports.output_of::<Digest>("out", OutputKind::any().plain(), Digest::default);
            move |job: &JobContext<'_>| {
                let Some(taken) = job.event() else { return };
                let mut hasher = DefaultHasher::new();
                (taken.number(), taken.pushed(), taken.priority(), job.started()).hash(&mut hasher);
                let number = taken.event().content::<Count>().expect("it carries one").number;
                job.set(out, [number, hasher.finish()]);
            }
        })
        .with_ports("read", |ports| {
            let taken = ports.input::<Digest>("taken");
            let out = ports.output_of::<Digest>("out", OutputKind::any().plain(), Digest::default);
            move |job: &JobContext<'_>| job.set(out, job.get(taken).copied().unwrap_or_default())
        })
}

/// What code pushes into a channel nobody takes in a replay, however much it is. Who takes events is handed those that it had, if they were kept; else
/// what it published then is there for who reads it.
#[test]
fn operations_that_take_events_are_called_again_where_these_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.talea");
    let kinds: [(Kind, bool, LaneDispatch); 3] = [
        (|| OutputKind::any().serialized(), true, LaneDispatch::NonPreemptive),
        (|| OutputKind::any().serialized(), true, LaneDispatch::Preemptive),
        (OutputKind::any, false, LaneDispatch::NonPreemptive),
    ];
    for (kind, are_kept, dispatch) in kinds {
        let system = of_events(dispatch);
        let run = Run::new(&system).operations(with_events(kind, 0)).keep_values(KeptOutputs::All);
        let run = run.keep_trace(&trace).realtime(RtMode::Warn).duration(Duration::from_millis(300));
        let ran = run.run().expect("it runs");
        let of_events = |said: &&String| said.contains("the events that \"take\" takes cannot be kept");
        assert_eq!(ran.missing.iter().filter(of_events).count(), usize::from(!are_kept), "{:?}", ran.missing);
        // Whatever is pushed now, they have what they had.
        for twist in [0, 1] {
            let report =
                talea::replay(&system, with_events(kind, twist), &trace).expect("it can be replayed");
            assert!(report.outputs.iter().all(|row| row.differing == 0), "{report:?}");
            // What is pushed otherwise is found, where it was kept.
            let pushes = &report.publications[0];
            let is_found = are_kept && twist > 0;
            assert_eq!((pushes.is_kept, pushes.differing > 0), (are_kept, is_found), "{report:?}");
            assert_eq!(report.first.as_ref().map(|first| first.push), is_found.then_some(Some(0)));
            let row =
                |name: &str| report.outputs.iter().find(|row| row.output == name).expect("it has a row");
            let is_outside = |name: &str| row(name).is_outside;
            assert_eq!(["push.pushed", "take.out", "read.out"].map(is_outside), [false, !are_kept, false]);
            if report.lost_records > 0 {
                continue;
            }
            assert_eq!(report.unknown(), 0, "{report:?}");
            let completed = |name: &str| {
                ran.report.tasks.iter().find(|task| task.name == name).expect("it has a row").completed
            };
            if are_kept {
                assert_eq!((pushes.compared, pushes.unrecorded), (completed("push"), 0), "{report:?}");
            }
            let (others, taking) = (completed("push") + completed("read"), completed("take"));
            let expected = if are_kept { (others + taking, 0) } else { (others, taking) };
            assert_eq!((report.called, report.outside), expected, "{report:?}");
        }
    }
}

/// A task that a socket releases, and whose jobs read it: until nothing is there, or with a buffer of three bytes once.
fn reading(is_greedy: bool) -> (System, Operations, std::sync::mpsc::Receiver<Vec<u8>>) {
    let task =
        TaskBuilder::external("read", Duration::from_millis(1)).burst(4).deadline(Duration::from_secs(1));
    let task = task.wcet(Work::from_micros(20)).output(OutputBuilder::new("out"));
    let system = System::builder("reading").node("n", [0]).task(task).build().expect("sound");
    let (tell, told) = std::sync::mpsc::channel();
    let operations = Operations::synthetic().with_ports("read", move |ports| {
        let outside = ports.descriptor(64);
        let out = ports.output_of::<Vec<u8>>("out", OutputKind::any().serialized(), Vec::new);
        move |job: &JobContext<'_>| {
            let (mut all, mut buffer) = (Vec::new(), [0; 3]);
            loop {
                match job.read(outside, &mut buffer) {
                    Ok(0) => break all.extend(b"."),
                    Ok(length) => all.extend(&buffer[..length]),
                    Err(NotRead::Nothing) => break,
                    Err(error) => panic!("{error}"),
                }
                if !is_greedy {
                    break;
                }
            }
            let _ = tell.send(all.clone());
            job.set(out, all);
        }
    });
    (system, operations, told)
}

/// Bytes of a socket that nobody has any more are read again, also those at its end.
#[test]
fn what_jobs_read_of_a_descriptor_they_read_again() {
    use std::io::Write;
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.talea");
    let (system, operations, told) = reading(true);
    let prepared = Run::new(&system)
        .operations(operations)
        .keep_values(KeptOutputs::All)
        .keep_trace(&trace)
        .realtime(RtMode::Warn)
        .duration(Duration::from_secs(60))
        .prepare()
        .expect("it can be prepared");
    let (mut writer, reader) = std::os::unix::net::UnixStream::pair().expect("two sockets");
    prepared.descriptor("read", reader).expect("a socket can be waited for");
    let stop = prepared.stop_handle();
    let running = std::thread::spawn(move || prepared.run().expect("it runs"));
    let mut read = Vec::new();
    for word in ["go", "stop now", "on"] {
        writer.write_all(word.as_bytes()).expect("there is room");
        let expected = read.len() + word.len();
        while read.len() < expected {
            read.extend(told.recv().expect("it is read"));
        }
    }
    drop(writer);
    while !read.ends_with(b".") {
        read.extend(told.recv().expect("its end is read"));
    }
    stop.stop();
    assert!(running.join().expect("no thread panics").mishaps.panics.is_empty());
    assert_eq!(read, b"gostop nowon.");

    let (_, operations, told) = reading(true);
    let same = talea::replay(&system, operations, &trace).expect("it can be replayed");
    assert_eq!((&same.first, same.outside, same.unknown()), (&None, 0, 0), "{same:?}");
    assert!(same.lost_records > 0 || told.iter().flatten().eq(*b"gostop nowon."));
    // Reading less of the second word is found.
    let (_, operations, _told) = reading(false);
    let less = talea::replay(&system, operations, &trace).expect("it can be replayed");
    assert!(same.lost_records > 0 || less.first.is_some_and(|first| first.output == "read.out"));
}

#[test]
fn a_descriptor_is_opened_once_and_where_one_can_be() {
    let (system, _, _told) = reading(true);
    let refused = |register: fn(&mut Ports<'_>), part: &str| {
        let run = Run::new(&system).operation_with_ports("read", move |ports| {
            let _out = ports.output_of::<Vec<u8>>("out", OutputKind::any().serialized(), Vec::new);
            register(ports);
            |_| ()
        });
        let error = run.prepare().expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
    };
    let twice = |ports: &mut Ports<'_>| {
        let _both = (ports.descriptor(1), ports.descriptor(1));
    };
    refused(twice, "opens \"its descriptor\" twice");
    let periodic = of_events(LaneDispatch::NonPreemptive);
    let error = Run::new(&periodic)
        .operations(with_events(OutputKind::any, 0))
        .operation_with_ports("read", |ports| {
            ports.descriptor(1);
            digest(ports, &["taken"], "out", 0)
        })
        .prepare()
        .expect_err("refused");
    let part = "opens the descriptor that releases its task, and none can: write trigger = \"external\"";
    assert!(error.to_string().contains(part), "{error}");
    let folder = tempfile::tempdir().expect("a folder");
    let unread = Run::new(&system)
        .keep_trace(folder.path().join("trace.talea"))
        .keep_values("read".parse().expect("a name"))
        .prepare();
    let error = unread.expect_err("refused").to_string();
    assert!(error.contains("nothing that \"read\" reads from outside can be kept"), "{error}");
}

const POSTED: PostingRoom = PostingRoom { operations: 2, jobs: 4, posters: 1 };

/// What a posted job saw: its number and handle, its dates with what it was told, and how posting was answered.
type Seen = (u64, u64, [talea::Instant; 4], Vec<Result<u64, NotPosted>>);

/// What the third post of the alarm of this handle has otherwise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangedPost {
    Nothing,
    Handle(u64),
    Wcet(u64),
}

/// Declares notes, and alarms that post as many of them as their handles say, with handles that depend on what time it is, and some with an execution time
/// of their own. What both see comes to who is returned with the alarms.
fn declare_alarms(
    changed: ChangedPost,
    declare: impl Fn(Declaration, Box<dyn FnMut(&JobContext<'_>) + Send>) -> PostedOperation,
) -> (PostedOperation, [std::sync::mpsc::Receiver<Seen>; 2]) {
    let [alarms, notes] = [(); 2].map(|()| std::sync::mpsc::channel());
    let seen = |job: &JobContext<'_>| {
        let times = [job.started(), job.now(), job.release(), job.deadline()];
        (job.instance(), job.handle(), times, Vec::new())
    };
    let tell = notes.0;
    let note = Declaration::new("note", Duration::from_millis(500)).lane(1);
    let note = declare(note, Box::new(move |job| _ = tell.send(seen(job))));
    let tell = alarms.0;
    let alarm = Declaration::new("alarm", Duration::from_millis(5)).lane(0);
    let alarm = declare(
        alarm,
        Box::new(move |job| {
            let mut own = seen(job);
            let time = own.2[1].as_nanos().unsigned_abs() / 1_000 * 1_000;
            for number in 0..job.handle() {
                let is_other = |change| number == 2 && changed == change;
                let other = u64::from(is_other(ChangedPost::Handle(job.handle())));
                let wcet = Some(Work::from_micros(10 + number as i64)).filter(|_| number < 3);
                let wcet = wcet.filter(|_| !is_other(ChangedPost::Wcet(job.handle())));
                own.3.push(job.post_work(Posted { wcet, ..Posted::new(note).handle(time + number + other) }));
            }
            _ = tell.send(own);
        }),
    );
    (alarm, [alarms.1, notes.1])
}

/// On threads, with more posts than there is room for, and after the end.
#[test]
fn posted_work_is_called_again_with_what_it_had() {
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        let (system, folder) = (system(dispatch), tempfile::tempdir().expect("a folder"));
        let trace = folder.path().join("trace.talea");
        let prepared = Run::new(&system)
            .operations(operations(0))
            .keep_values(KeptOutputs::All)
            .keep_trace(&trace)
            .realtime(RtMode::Warn)
            .posting(POSTED)
            .duration(Duration::from_secs(60))
            .prepare()
            .expect("it can be prepared");
        let dispatcher = prepared.dispatcher();
        let declare = |declaration, code| dispatcher.declare(declaration, code).expect("there is room");
        let (alarm, [alarms, notes]) = declare_alarms(ChangedPost::Nothing, declare);
        let mut poster = dispatcher.poster().expect("there is room");
        let stop = prepared.stop_handle();
        let running = std::thread::spawn(move || prepared.run().expect("it runs"));
        let mut then = Vec::new();
        for handle in 0..8 {
            while poster.post(alarm, handle).is_err() {
                std::thread::yield_now();
            }
            then.push(alarms.recv().expect("it is called"));
        }
        stop.stop();
        let outcome = running.join().expect("no thread panics");
        assert!(outcome.mishaps.panics.is_empty());
        let then = [then, notes.try_iter().collect()];
        let answers: Vec<_> = then[0].iter().flat_map(|(.., answers)| answers).collect();
        assert!(answers.iter().any(|answer| answer.is_ok()), "{answers:?}");
        // Where nothing keeps lanes apart, the lower one may make room meanwhile.
        assert!(!outcome.realtime || answers.contains(&&Err(NotPosted::Full)), "{answers:?}");

        let replayed = |changed: ChangedPost| {
            let replay = ReplayRun::new(&system).operations(operations(0)).posting(POSTED);
            let replay = replay.prepare(&trace).expect("it can be replayed");
            let workplace = replay.workplace();
            let declare = |declaration, code| workplace.declare(declaration, code).expect("there is room");
            let (_, seen) = declare_alarms(changed, declare);
            let report = replay.run().expect("it can be replayed");
            (report, seen.map(|seen| seen.try_iter().collect::<Vec<Seen>>()))
        };
        let (same, now) = replayed(ChangedPost::Nothing);
        assert_eq!((&same.first, same.unknown()), (&None, 0), "{same:?}");
        if same.lost_records > 0 {
            return println!("skipped: {} records are lost", same.lost_records);
        }
        let ended = |seen: &[Vec<Seen>; 2]| seen.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!((&same.posted, &now[0]), (&Vec::new(), &then[0]), "{dispatch}");
        // A note may be under way when the run ends, and does not complete then.
        assert!(then[1].starts_with(&now[1]) && then[1].len() <= now[1].len() + 1, "{:?}", ended(&now));
        let posts = same.posts.iter().find(|row| row.output == "alarm>note").expect("there are posts");
        assert_eq!(posts.compared, answers.len() as u64);

        let changed = then[0].iter().find(|(_, handle, ..)| *handle == 5).expect("it is called");
        let first_of = |change| replayed(change).0.first.expect("it is found");
        let is_it = |first: &Difference| {
            (first.output.as_str(), first.instance, first.post) == ("alarm>note", changed.0, Some(2))
        };
        let first = first_of(ChangedPost::Handle(5));
        let is_other = matches!(first.what, What::Handle { recorded, now } if recorded + 1 == now);
        assert!(is_it(&first) && is_other, "{first}");
        // Also of one for which there was no room.
        let first = first_of(ChangedPost::Wcet(5));
        let (recorded_ns, now_ns) = (12_000, 0);
        assert!(is_it(&first) && first.what == What::Wcet { recorded_ns, now_ns }, "{first}");
    }
}

/// Room for two consumers, and a thread for each node and for instants.
const DELIVERED: PostingRoom = PostingRoom { operations: 4, jobs: 64, posters: 2 };

/// What a consumer was handed: its name, the number in the event, the instant of the push and what number it was there, and what time it was.
type Handed = (&'static str, u64, talea::Instant, u64, talea::Instant);

/// A channel of counts, of which one consumer pushes answers to each, one more than `changed` to that. Where consumers tell what they are handed, and who
/// pushes counts.
fn counting(
    changed: u64,
    factory: &EventChannelFactory,
) -> (std::sync::mpsc::Receiver<Handed>, impl Fn(&str) -> Supplier + use<>, [ConnectedConsumer; 2]) {
    let counts = factory.create_with_defaults("counts");
    let event_types = ["Count", "Answer"].map(|name| EventType::new("T", name));
    let kind = OutputKind::<Count>::any().serialized();
    event_types.iter().for_each(|of| counts.carries(of, &kind).expect("it has bytes"));
    let (tell, told) = std::sync::mpsc::channel();
    let hand = move |name: &'static str, delivery: &talea::notification::Delivery, job: &JobContext<'_>| {
        let number = delivery.event().content::<Count>().expect("a count").number;
        _ = tell.send((name, number, delivery.pushed(), delivery.number(), job.now()));
        number
    };
    let supplier = {
        let (counts, event_types) = (counts.clone(), event_types.clone());
        move |name: &str| counts.supplier(name).offer(event_types.clone()).connect().expect("there is room")
    };
    let (mut answers, event_type, own) = (supplier("answers"), event_types[1].clone(), hand.clone());
    let answer = counts.consumer("answer").subscribe(["T/Count".parse().expect("a pattern")]);
    let answer = answer.lane(Declaration::new("answer", Duration::from_millis(50)).lane(0));
    let answer = answer.connect_with_job(move |delivery, job| {
        let number = own("answer", delivery, job);
        let time = job.now().as_nanos().unsigned_abs() / 1_000;
        let other = u64::from(number == changed);
        let answer = Event::new(Header::new(event_type.clone()), Count { number: time + other });
        answers.push(job, &answer).expect("it is taken");
        Outcome::Ok
    });
    let log = counts.consumer("log").lane(Declaration::new("logged", Duration::from_millis(50)).lane(1));
    let log = log.connect_concurrent(move |delivery, job| {
        hand("log", delivery, job);
        Outcome::Ok
    });
    (told, supplier, [answer, log].map(|consumer| consumer.expect("it can be connected")))
}

/// The code of the system, of which `act` pushes counts.
fn pushing(mut supplier: Supplier) -> Operations {
    let event_type = EventType::new("T", "Count");
    operations(0).with_ports("act", move |ports| {
        let [_, _] = ["latest", "slow"].map(|input| ports.input::<Digest>(input));
        let out = ports.output_of::<Digest>("out", OutputKind::any().serialized(), Digest::default);
        move |job| {
            let event = Event::new(Header::new(event_type.clone()), Count { number: job.instance() });
            supplier.push(job, &event).expect("it is taken");
            job.set(out, [job.instance(), 0]);
        }
    })
}

/// On threads, pushed by jobs and by a thread of the program, whose events are not pushed again.
#[test]
fn consumers_of_a_programs_channel_are_handed_again_what_they_were_handed() {
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        let (system, folder) = (system(dispatch), tempfile::tempdir().expect("a folder"));
        let trace = folder.path().join("trace.talea");
        let factory = EventChannelFactory::new();
        let (told, supplier, _consumers) = counting(u64::MAX, &factory);
        let prepared = Run::new(&system)
            .operations(pushing(supplier("act")))
            .keep_values(KeptOutputs::All)
            .keep_trace(&trace)
            .realtime(RtMode::Warn)
            .posting(DELIVERED)
            .duration(Duration::from_secs(60))
            .prepare()
            .expect("it can be prepared");
        let dispatcher = prepared.dispatcher();
        factory.bind(dispatcher.workplace().expect("there is room")).expect("it can be bound");
        let mut poster = dispatcher.poster().expect("there is room");
        let stop = prepared.stop_handle();
        let running = std::thread::spawn(move || prepared.run().expect("it runs"));
        let mut outside = supplier("outside");
        let mut then: Vec<Handed> = Vec::new();
        for number in 1_000_000..1_000_040 {
            let event = Event::new(Header::new(EventType::new("T", "Count")), Count { number });
            outside.push(&mut poster, &event).expect("it is taken");
            for consumer in ["answer", "log"] {
                while !then.iter().any(|(name, pushed, ..)| (*name, *pushed) == (consumer, number)) {
                    then.push(told.recv().expect("both are handed it"));
                }
            }
        }
        stop.stop();
        let outcome = running.join().expect("no thread panics");
        then.extend(told.try_iter());
        assert_eq!(outcome.mishaps.values_unkept, 0);

        let replayed = |changed: u64| {
            let factory = EventChannelFactory::new();
            let (told, supplier, _consumers) = counting(changed, &factory);
            let replay = ReplayRun::new(&system).operations(pushing(supplier("act"))).posting(DELIVERED);
            let replay = replay.prepare(&trace).expect("it can be replayed");
            factory.bind(replay.workplace()).expect("it can be bound");
            let report = replay.run().expect("it can be replayed");
            (report, told.try_iter().collect::<Vec<Handed>>())
        };
        let (same, now) = replayed(u64::MAX);
        if same.lost_records > 0 {
            return println!("skipped: {} records are lost", same.lost_records);
        }
        assert_eq!((&same.first, same.unknown(), &same.posted), (&None, 0, &Vec::new()), "{same:?}");
        for consumer in ["answer", "log"] {
            let of = |handed: &[Handed]| -> Vec<Handed> {
                handed.iter().filter(|(name, ..)| *name == consumer).copied().collect()
            };
            let (then, now) = (of(&then), of(&now));
            // A delivery that was under way when the run ended does not complete then.
            let differs = then.iter().zip(&now).position(|(then, now)| then != now);
            let at = differs.map(|at| (at, then[at], now[at]));
            assert!(at.is_none(), "{consumer} {dispatch}: {at:?}");
            let lengths = (then.len(), now.len());
            assert!(now.len() > 20 && then.len() <= now.len() + 1, "{consumer} {dispatch}: {lengths:?}");
        }
        let answers = same.publications.iter().find(|row| row.output == "answer>counts T/Answer");
        let answers = answers.expect("there are answers").compared;
        let counts = same.publications.iter().find(|row| row.output == "act>counts T/Count");
        assert!(answers > 20 && counts.expect("there are counts").compared > 0);

        let (other, _) = replayed(1_000_007);
        let first = other.first.clone().expect("it is found");
        assert_eq!((first.output.as_str(), other.differing()), ("answer>counts T/Answer", 1), "{first}");
    }
}

/// Jobs that were posted are not replayed where nothing can be declared, and named.
#[test]
fn posted_work_is_named_and_not_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace.talea");
    let system = system(LaneDispatch::NonPreemptive);
    let prepared = Run::new(&system)
        .operations(operations(0))
        .keep_values(KeptOutputs::All)
        .keep_trace(&trace)
        .realtime(RtMode::Warn)
        .posting(PostingRoom { operations: 2, jobs: 4, posters: 1 })
        .duration(Duration::from_secs(60))
        .prepare()
        .expect("it can be prepared");
    let dispatcher = prepared.dispatcher();
    let (tell, told) = std::sync::mpsc::channel();
    let alarm = Declaration::new("alarm", Duration::from_millis(5)).lane(0);
    let alarm = dispatcher.declare(alarm, move |job: &JobContext<'_>| _ = tell.send(job.handle()));
    let alarm = alarm.expect("there is room");
    let mut poster = dispatcher.poster().expect("there is room");
    let stop = prepared.stop_handle();
    let running = std::thread::spawn(move || prepared.run().expect("it runs"));
    for handle in 0..3 {
        while poster.post(alarm, handle).is_err() {
            std::thread::yield_now();
        }
        assert_eq!(told.recv().expect("it is called"), handle);
    }
    stop.stop();
    running.join().expect("no thread panics");
    let report = talea::replay(&system, operations(0), &trace).expect("it can be replayed");
    let posted: Vec<_> =
        report.posted.iter().map(|posted| (posted.operation.as_str(), posted.jobs)).collect();
    assert_eq!(
        (posted, report.first.is_none(), report.differences.is_empty()),
        (vec![("alarm", 3)], true, true)
    );
}

#[test]
fn events_of_the_tasks_that_are_named_are_recorded() {
    let (system, folder) = (of_events(LaneDispatch::NonPreemptive), tempfile::tempdir().expect("a folder"));
    let trace = folder.path().join("trace.talea");
    let prepared = |kind: Kind, names: &str| {
        let run = Run::new(&system).operations(with_events(kind, 0)).keep_trace(&trace);
        run.keep_values(names.parse().expect("names")).duration(Duration::from_millis(50)).run()
    };
    prepared(|| OutputKind::any().serialized(), "take,take.out").expect("it runs");
    let report = talea::replay(&system, with_events(|| OutputKind::any().serialized(), 0), &trace);
    let report = report.expect("it can be replayed");
    let kept =
        report.outputs.iter().filter(|row| row.is_kept).map(|row| (row.output.as_str(), row.is_outside));
    assert_eq!((kept.collect::<Vec<_>>(), report.first), (vec![("take.out", false)], None));

    let refused = |kind, names, part: &str| {
        let error = prepared(kind, names).expect_err("refused").to_string();
        assert!(error.contains(part), "{error}");
    };
    refused(
        OutputKind::any,
        "take",
        "the events that \"take\" takes cannot be kept, for some are never bytes",
    );
    refused(
        OutputKind::any,
        "tak",
        "and no operation of that name that takes events; did you mean \"take\"?",
    );
    refused(OutputKind::any, "push", "the system has no output \"push\"");
    let part = "events T/Count of a kind that is compared, and events are not";
    refused(|| OutputKind::any().encoded(|_, _| None, |_, _| false).compared(), "take", part);
}
