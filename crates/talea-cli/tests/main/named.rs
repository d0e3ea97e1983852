//! Streams by name: where traces are read, followed, recorded; and what is read besides events.

use crate::recording::consumers;
use crate::support::{Done, Program, Running, example, folder, listed, run, talea, within};
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use talea_record::TraceFile;
use talea_record::stream::{Operator, Selection, Start, Stream, Switching};

talea_record::family! {
    /// What a robot does.
    robot {
        /// A step.
        step(number: u64);
        /// Something is said.
        said(message: talea_record::declaration::LongText<100>, number: u64);
        /// Steps so far.
        counter steps;
        /// How long they are.
        histogram length(lower: 0, width: 10, buckets: 2);
        /// Where it is.
        object location: Location { x: f64, room: u8 }
    }
}

/// A name that no stream of another test has.
fn unique(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

#[test]
fn a_running_program_is_read_by_its_name() {
    let place = folder();
    let program = Program::start(&place, "read-by-name");
    let operator = run(&["trace", "enable", &program.name, "run,job"]).exits(0);
    assert!(operator.stdout.contains("job.start"), "{}", operator.stdout);
    let of =
        |command: &str, more: &[&str]| run(&[&["trace", command, &program.name], more].concat()).exits(0);
    crate::support::eventually("jobs are shown", || {
        of("show", &["--event", "complete"]).stdout.contains("tick")
    });
    assert!(of("stats", &[]).stdout.contains("tick"));
    assert!(of("explain", &["--worst"]).stdout.contains("tick"));
    let csv = within(&place, "o.csv");
    of("export", &["--csv", &csv]);
    assert!(std::fs::read_to_string(&csv).expect("written").contains("complete"));
    // A process number and the file mean the same.
    let found = listed(&program.name).expect("it runs");
    for which in [found["pid"].to_string(), found["path"].as_str().expect("a path").to_owned()] {
        assert!(run(&["trace", "show", &which]).exits(0).stdout.contains("tick"), "{which}");
        run(&["trace", "list", &which]).exits(0);
    }
    let wrong = |arguments: &[&str], part: &str| {
        let told = run(arguments).exits(2).stderr;
        assert!(told.contains(part), "{told}");
    };
    wrong(&["trace", "show", &program.name[1..]], &format!("did you mean \"{}\"?", program.name));
    wrong(&["trace", "show", "no-such-stream-anywhere"], "nor is there such a file");
    let results = run(&["trace", "read", &program.name]).exits(0).stdout;
    assert!(
        ["released", "met", "missed"].iter().all(|name| results.contains(&format!("results.{name}"))),
        "{results}"
    );
    wrong(
        &["trace", "show", &program.name, "--follow", "--family", "run", "--event", "start"],
        "all of these",
    );
    wrong(&["trace", "show", &program.name, "--follow", "--event", "strat"], "no family or event \"strat\"");
}

/// A command that follows, once it has printed a line.
fn following(arguments: &[&str]) -> (std::process::Child, BufReader<std::process::ChildStdout>, String) {
    let mut child = talea(&[&["trace", "show", "--follow"], arguments].concat()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("readable");
    (child, lines, line)
}

#[test]
fn a_program_is_followed_until_somebody_ends_it() {
    let place = folder();
    let mut program = Program::start(&place, "followed");
    let some =
        run(&["trace", "show", "--follow", &program.name, "--event", "start", "--limit", "3"]).exits(0);
    assert_eq!(some.stdout.lines().filter(|line| line.contains(" start ")).count(), 3, "{}", some.stdout);
    assert_eq!((some.stdout.lines().count(), some.stderr.as_str()), (3, ""));

    let (child, lines, first) = following(&[&program.name, "--json", "--task", "tick"]);
    assert!(serde_json::from_str::<serde_json::Value>(&first).is_ok(), "{first}");
    let wants = &consumers(&program.name)[0];
    assert_eq!((&wants["name"], &wants["pid"]), (&json!("show --follow"), &json!(child.id())));
    assert!(wants["wants"].as_array().expect("a list").contains(&json!("job.start")), "{wants}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::INT).expect("it is ours");
    assert!(lines.lines().all(|line| line.expect("whole").starts_with('{')));
    let done: Done = child.wait_with_output().expect("ours").into();
    assert_eq!(done.exits(0).stderr, "");
    assert!(consumers(&program.name).is_empty(), "nothing stays on");

    // A reader that goes away takes nothing with it either.
    let (child, lines, _) = following(&[&program.name]);
    drop(lines);
    let done: Done = child.wait_with_output().expect("ours").into();
    assert_eq!(done.exits(0).stderr, "");
    assert!(consumers(&program.name).is_empty());

    let (child, lines, _) = following(&[&program.name]);
    program.running.signal(Signal::INT);
    let rest: Vec<String> = lines.lines().map(|line| line.expect("whole")).collect();
    assert!(rest.iter().any(|line| line.contains("run-end")), "the end is shown");
    let done: Done = child.wait_with_output().expect("ours").into();
    assert!(done.exits(0).stderr.contains("has ended"));
}

#[test]
fn what_is_switched_off_and_stays_on_for_others_is_told() {
    let name = unique("kept-on");
    let stream = Stream::publish(&name).expect("a stream");
    let mut consumer = TraceFile::attach(
        stream.path(),
        "watcher",
        &"job.start,run".parse().expect("a selection"),
        Start::Now,
    )
    .expect("a place");
    let disable = |what: &str| run(&["trace", "disable", &name, what]).exits(0).stdout;
    let told = disable("all");
    let expected = format!("switched on by hand in {}.{name}: nothing\n", std::process::id());
    assert!(told.starts_with(&expected), "{told}");
    let watcher = format!("still on for \"watcher\" (process {}): ", std::process::id());
    assert!(
        told.replace("\n  ", " ").contains(&format!(
            "{watcher}run.run-start, run.run-end, run.lost, run.thread, run.message-lost, run.node-left, run.steal, run.part, job.start\n"
        )),
        "{told}"
    );
    assert!(told.contains("an event stays on as long as anybody follows it"), "{told}");
    assert!(disable("job.st*").contains(&format!("{watcher}job.start\n")), "only what was to go off");
    assert_eq!(disable("job.complete"), expected, "nobody wants it");
    consumer.select(&Selection::nothing()).expect("there");
    assert_eq!(disable("all"), expected);
    // The same spelling switches on.
    let on = run(&["trace", "enable", &name, "job.re*,complete"]).exits(0).stdout;
    assert!(on.ends_with(": job.release, job.resume, job.complete\n"), "{on}");
}

#[test]
fn all_processes_of_a_program_go_by_its_name() {
    let place = folder();
    let name = unique("fleet");
    let parts =
        ["mission", "display"].map(|part| Stream::publish(&format!("{name}.{part}")).expect("a stream"));
    let file = within(&place, "fleet.talea");
    let recording = ["trace", "record", "--kernel", "off", "--out", &file, "--attach", &name];
    let mut recording = Running::start(&recording);
    let is_followed = |part: &&str| {
        let consumers = consumers(&format!("{name}.{part}"));
        consumers.iter().any(|consumer| consumer["name"] == "record into fleet.talea")
    };
    crate::support::eventually("both are followed", || {
        recording.lives();
        ["mission", "display"].iter().all(is_followed)
    });
    let one = run(&["trace", "show", &name]).exits(2);
    for part in ["mission", "display"] {
        assert!(one.stderr.contains(&format!("{}.{name}.{part}", std::process::id())), "{}", one.stderr);
    }
    drop(parts);
    recording.finish().exits(0);
}

#[test]
fn counters_histograms_and_objects_are_read_and_taken() {
    let name = unique("robot");
    let stream = Stream::publish(&name).expect("a stream");
    robot::FAMILY.register().expect("a place");
    let _ring = stream.attach_thread("robot").expect("a ring");
    let mut operator = Operator::open(stream.path()).expect("ours");
    operator.switch(&"robot".parse().expect("a selection"), Switching::On).expect("there");
    robot::steps.add(3);
    [-1, 5, 15, 15, 99].into_iter().for_each(|value| robot::length.add(value));
    let read = |more: &[&str]| run(&[&["trace", "read", &name, "--json"], more].concat()).exits(0).json();
    let steps = |value: u64| json!({ "name": "robot.steps", "about": "Steps so far.", "kind": "counter", "value": value });
    let location = |fields: serde_json::Value| json!({ "name": "robot.location", "about": "Where it is.", "kind": "object", "fields": fields });
    assert_eq!(read(&["robot.location", "robot.steps"]), json!([steps(3), location(json!(null))]));
    robot::location.set(robot::Location { x: 0.5, room: 7 });
    let taken = read(&["robot", "--take"]);
    assert_eq!((&taken[0], &taken[2]), (&steps(3), &location(json!({ "x": 0.5, "room": 7 }))));
    assert_eq!((&taken[1]["below"], &taken[1]["inside"]), (&json!(1), &json!([1, 2])));
    assert_eq!(taken[1]["above"], 1);
    let after = read(&[]);
    assert_eq!(
        (&after[0], &after[2]),
        (&steps(0), &location(json!({ "x": 0.5, "room": 7 }))),
        "an object stays"
    );
    assert_eq!(after[1]["inside"], json!([0, 0]));
    let text = run(&["trace", "read", &name]).exits(0).stdout;
    assert!(text.contains("robot.location") && text.contains("{ x: 0.5, room: 7 }"), "{text}");
    let listed = &listed(&name).expect("it is there")["content"]["passive"];
    assert_eq!(
        (&listed[0]["name"], &listed[0]["value"], &listed[0]["on"]),
        (&json!("robot.steps"), &json!(0), &json!(true))
    );

    let wrong = |arguments: &[&str], part: &str| {
        let told = run(&[&["trace", "read"], arguments].concat()).exits(2).stderr;
        assert!(told.contains(part), "{told}");
    };
    wrong(&[&name, "robot.stebs"], "did you mean \"robot.steps\"?");
    wrong(&[&name, "robot.step"], "is an event, which is followed and not read");
    wrong(&[&name, "robot", "nobody"], "there is no \"nobody\"");
    wrong(&["no-such-stream-anywhere"], "there is no stream");
    let place = folder();
    let out = within(&place, "out");
    run(&["sim", &example("hello.toml"), "--for", "100ms", "--out", &out]).exits(0);
    wrong(&[&within(&place, "out/trace.talea")], "is a log");
    // What a process that is gone has left can be read, and stays.
    robot::steps.add(4);
    let left = within(&place, "left");
    left_by_the_dead(stream.path(), &left);
    assert!(TraceFile::open(left.as_ref()).is_ok());
    let read_left = || run(&["trace", "read", &left, "robot.steps", "--json"]).exits(0).json();
    assert_eq!(read_left(), json!([steps(4)]));
    wrong(&[&left, "robot.steps", "--take"], "has ended, and what it left stays");
    assert_eq!(read_left(), json!([steps(4)]));
}

/// Copies a stream to `left` as the file of a process that is no more: one of this process's number that began at another
/// time.
fn left_by_the_dead(stream: &Path, left: &str) {
    let mut bytes = std::fs::read(stream).expect("readable");
    // Where the control pages begin, the first word of which is the owner: from bit 22 on, when it began.
    let place = u64::from_le_bytes(*bytes[80..].first_chunk().expect("a head")) as usize;
    bytes[place + 4] ^= 1;
    std::fs::write(left, bytes).expect("writable");
}

#[test]
fn long_texts_of_a_program_are_listed_shown_and_exported() {
    let name = unique("speaks");
    let stream = Stream::publish(&name).expect("a place");
    robot::FAMILY.register().expect("there is room");
    let mut operator = Operator::open(stream.path()).expect("a stream");
    operator.switch(&"robot".parse().expect("a selection"), Switching::On).expect("it is there");
    let message = "a message that is longer than a record, with a ü and an end";
    robot::said(message.into(), 1);
    robot::step(2);
    robot::said("x".repeat(101).as_str().into(), 3);

    let listed = run(&["trace", "list", &name]).exits(0).stdout;
    assert!(listed.contains("text[100]"), "{listed}");
    let shown =
        |more: &[&str]| run(&[&["trace", "show", &name], more].concat()).exits(0).stdout.replace("\n  ", " ");
    let cut = format!("message={:?}", "x".repeat(100) + "…");
    for more in [&["--events", "robot.said"][..], &["--family", "robot"], &[]] {
        let shown = shown(more);
        assert!(shown.contains(&format!("message={message:?} number=1")) && shown.contains(&cut), "{shown}");
        assert!(!shown.contains(" part "), "{shown}");
    }
    assert_eq!(shown(&["--events", "robot.said", "--limit", "1"]).lines().count(), 1);
    let json = shown(&["--events", "robot.said", "--json"]);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[0]["fields"], json!({ "message": message, "number": 1 }));
    assert_eq!(lines.len(), 2);

    let place = folder();
    let at = |name: &str| within(&place, name);
    let (csv, ctf, perfetto) = (at("o.csv"), at("ctf"), at("o.pftrace"));
    for more in [&["--events", "robot.said"][..], &[]] {
        run(&[&["trace", "export", &name, "--csv", &csv, "--ctf", &ctf, "--perfetto", &perfetto], more]
            .concat())
        .exits(0);
        let streams = std::fs::read_dir(&ctf).expect("a folder").flatten().map(|entry| entry.path());
        let files = streams.chain([csv.clone().into(), perfetto.clone().into()]);
        let having = files.filter(|file| {
            let bytes = std::fs::read(file).expect("written");
            bytes.windows(message.len()).any(|window| window == message.as_bytes())
        });
        assert_eq!(having.count(), 3, "{more:?}");
    }
}
