//! Two processes: one writes a stream, the other follows and switches it; and either is killed.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use talea_record::stream::*;
use talea_record::*;
use talea_samples::*;

const CHILD: &str = "TALEA_TRACE_TEST_CHILD";
const RECORDS: u64 = 5000;
const READY: &str = "ready";

talea_record::family! {
    /// What the child does.
    child_family = 0x9b {
        /// A step.
        step(number: u64);
        /// A turn.
        turn(number: u64);
        /// Something is said, in nine records.
        said(text: declaration::LongText<200>, number: u64);
        /// Steps and turns.
        counter moves;
    }
}

/// This test binary again, which runs the test of this name with the path in its environment.
struct Other {
    process: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(test: &str, path: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("killed::{test}"), "--nocapture"])
            .env(CHILD, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut other = Other { process, orders, answers };
        other.await_ready();
        other
    }

    fn await_ready(&mut self) {
        assert!(self.answers.any(|line| line.unwrap() == READY), "the other process failed");
    }

    /// Has it do the next thing, and waits until it has.
    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
        self.await_ready();
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        assert!(!self.process.wait().unwrap().success());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may be over already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The other process's part: answers, and takes the next order. One whose parent died finds its standard input closed
/// and gets an empty order.
fn next_order() -> String {
    println!("\n{READY}");
    let mut order = String::new();
    std::io::stdin().read_line(&mut order).unwrap();
    order.trim_end().to_owned()
}

/// Run as an ordinary test it has nothing to do.
#[test]
fn writer() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let mut file = RingFile::create(path.as_ref(), &metadata(), &writers(2), 8192).unwrap();
    let mut writer = file.writer(1);
    (0..RECORDS).for_each(|n| writer.record(numbered(n)));
    next_order();
}

/// Run as an ordinary test it has nothing to do.
#[test]
fn publisher() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let streams = StreamDirectory::at(path.as_ref()).unwrap();
    let shape = RingShape { writers: &[], spare: 2, capacity: 64, later: 0 };
    let stream = streams.publish("robot", &Metadata::bare("robot"), shape).unwrap();
    child_family::FAMILY.register().unwrap();
    let local = stream.attach_thread("mover").unwrap();
    let mut number = 0;
    while next_order() == "move" {
        number += 1;
        child_family::step(number);
        child_family::turn(number);
        child_family::moves.add(1);
    }
    drop((local, stream));
    next_order();
}

/// Run as an ordinary test it has nothing to do.
#[test]
fn speaker() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let streams = StreamDirectory::at(path.as_ref()).unwrap();
    let shape = RingShape { writers: &[], spare: 1, capacity: 64, later: 0 };
    let stream = streams.publish("robot", &Metadata::bare("robot"), shape).unwrap();
    child_family::FAMILY.register().unwrap();
    let _local = stream.attach_thread("speaker").unwrap();
    next_order();
    println!("\n{READY}");
    // Until it is killed.
    for number in 0..50_000_000 {
        child_family::said(declaration::LongText::new(&spoken(number)), number);
    }
}

fn spoken(number: u64) -> String {
    format!("{number:-<190}")
}

/// Run as an ordinary test it has nothing to do.
#[test]
fn follower() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let _consumer = TraceFile::attach(path.as_ref(), "follower", &Selection::all(), Start::Now).unwrap();
    next_order();
}

#[test]
fn a_killed_process_leaves_all_its_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    Other::start("writer", &path).kill();
    let file = TraceFile::open(&path).unwrap();
    assert_eq!(file.rings()[1].state(), RingState::Open);
    let mut records = Vec::new();
    file.replay(&mut records).unwrap();
    assert_eq!(records, (0..RECORDS).map(numbered).collect::<Vec<_>>());
}

/// The numbers of the steps and of the turns that the consumer has got.
fn moves(consumer: &mut Consumer) -> (Vec<u64>, Vec<u64>) {
    let mut records = Vec::new();
    consumer.drain(&mut records);
    let of =
        |event| records.iter().filter(|record| record.event == event).map(|record| record.words[0]).collect();
    let (steps, turns): (Vec<u64>, Vec<u64>) = (of(child_family::step::EVENT), of(child_family::turn::EVENT));
    assert_eq!(records.len(), steps.len() + turns.len(), "nothing else");
    (steps, turns)
}

#[test]
fn consumers_switch_another_process_and_see_exactly_what_they_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
    let mut other = Other::start("publisher", streams.path());
    let found = streams.find("robot").unwrap();
    assert_eq!((found.pid, found.liveness), (other.process.id(), Liveness::Alive));
    let attach = |name: &str, selection: &str| {
        TraceFile::attach(&found.path, name, &selection.parse().unwrap(), Start::Now).unwrap()
    };
    other.order("move");
    let mut steps = attach("steps", "child_family.step,child_family.moves");
    other.order("move");
    let mut turns = attach("turns", "child_family.turn");
    other.order("move");
    steps.select(&"child_family,-child_family.step".parse().unwrap()).unwrap();
    other.order("move");
    drop(turns.select(&Selection::nothing()));
    other.order("move");
    assert_eq!(moves(&mut steps), (vec![2, 3], vec![4, 5]));
    assert_eq!(moves(&mut turns), (vec![], vec![3, 4]));
    let counted = TraceFile::open(&found.path).unwrap().reading("child_family.moves").unwrap();
    assert_eq!(counted, passive::Reading::Counter(5));

    other.order("end");
    assert!(!found.path.exists(), "removed at its end");
    assert_eq!(moves(&mut steps), (vec![], vec![]));
}

#[test]
fn a_stream_whose_process_was_killed_is_found_and_read() {
    let place = tempfile::tempdir().unwrap();
    let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
    let mut other = Other::start("publisher", streams.path());
    let path = streams.find("robot").unwrap().path;
    let mut operator = Operator::open(&path).unwrap();
    operator.switch(&"child_family".parse().unwrap(), Switching::On).unwrap();
    other.order("move");
    other.order("move");
    other.kill();
    let found = streams.find("robot").unwrap();
    assert_eq!(found.liveness, Liveness::Dead);
    let content = found.content.unwrap();
    let ring = (content.rings[0].name.as_str(), content.rings[0].state, content.rings[0].written);
    assert_eq!(ring, ("mover", RingState::Open, 5));
    let trace = TraceFile::open(&path).unwrap();
    let space = trace.name_space().unwrap();
    let name = |record: &Record| space.event(record.event).unwrap().1.name.clone().into_owned();
    let names: Vec<_> = trace.records().unwrap().map(|record| name(&record.unwrap())).collect();
    assert_eq!(names, ["thread", "step", "turn", "step", "turn"]);
    assert_eq!(trace.reading("child_family.moves").unwrap(), passive::Reading::Counter(2));
}

/// Killed anywhere, most often in the midst of one of the nine records of an event.
#[test]
fn texts_of_a_process_that_was_killed_are_whole() {
    for _ in 0..12 {
        let place = tempfile::tempdir().unwrap();
        let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
        let mut other = Other::start("speaker", streams.path());
        let path = streams.find("robot").unwrap().path;
        let mut operator = Operator::open(&path).unwrap();
        operator.switch(&"child_family".parse().unwrap(), Switching::On).unwrap();
        other.order("speak");
        let live = TraceFile::open(&path).unwrap();
        while live.rings()[0].written() < 1000 {
            std::thread::yield_now();
        }
        other.kill();
        let trace = TraceFile::open(&path).unwrap();
        let space = trace.name_space().unwrap();
        let (mut parts, mut numbers) = (EventParts::default(), Vec::new());
        let mut records = trace.records().unwrap();
        for record in &mut records {
            let record = record.unwrap();
            assert!(parts.learn(&record));
            if record.event == child_family::said::EVENT {
                let fields = &space.event(record.event).unwrap().1.fields;
                let text = fields[0].value(&record, parts.of(&record));
                assert_eq!(text, declaration::Value::Text(spoken(record.words[0])));
                numbers.push(record.words[0]);
            }
        }
        assert!(records.damage().is_none(), "{:?}", records.damage());
        // The ring has room for seven, of which the oldest and the latest may not be whole.
        assert!((5..=7).contains(&numbers.len()), "{numbers:?}");
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    }
}

#[test]
fn what_a_killed_consumer_wanted_is_switched_off_by_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let mut file = RingFile::create(&path, &metadata(), &writers(1), 64).unwrap();
    let writer = file.writer(0);
    let wanted = || [Event::START, Event::SWITCH].map(|event| writer.is_wanted(builtin_switch(event)));
    let other = Other::start("follower", &path);
    let switches =
        TraceFile::attach(&path, "switches", &"kernel.switch".parse().unwrap(), Start::Now).unwrap();
    assert_eq!(wanted(), [true, true]);
    other.kill();
    assert_eq!(wanted(), [true, true], "nobody has come yet");
    let next = file.attach("next", &Selection::nothing(), Start::Now).unwrap();
    assert_eq!(wanted(), [false, true], "the living keep what they want");
    drop((switches, next));
    assert_eq!(wanted(), [false, false]);
}
