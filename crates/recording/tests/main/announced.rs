//! Programs that a recorder starts, with threads that come and go.
//!
//! A program is this test binary again, with a variable that says where its streams go: run as an ordinary test, its part does nothing.

use std::path::Path;
use std::process::{Command, Stdio};
use talea_record::declaration::{LongText, Value};
use talea_record::stream::*;
use talea_record::*;
use talea_recording::recording::{Recorded, Recording, RecordingOptions};

const STREAMS: &str = "TALEA_TEST_STREAMS";
const THREADS: u64 = 200;
const EVENTS: u64 = 20;

talea_record::family! {
    /// What the short threads write.
    pub brief {
        /// An event of a thread.
        event(thread: u64, number: u64, text: LongText<40>);
    }
}

/// The program: writes from its first moment on, by many threads of which each lives for a moment.
#[test]
fn program() {
    let Some(streams) = std::env::var_os(STREAMS) else { return };
    let streams = StreamDirectory::at(streams.as_ref()).unwrap();
    let shape = RingShape { writers: &[], spare: 2, capacity: 64, later: 500 };
    let stream = streams.publish("brief", &Metadata::bare("brief"), shape).unwrap();
    write(0, 0);
    for thread in 1..=THREADS {
        std::thread::spawn(move || (0..EVENTS).for_each(|number| write(thread, number))).join().unwrap();
    }
    drop(stream);
}

/// An event of three records at most, so that those of a thread fit into its ring.
fn write(thread: u64, number: u64) {
    brief::event(thread, number, LongText::new(&text(thread, number)));
}

fn text(thread: u64, number: u64) -> String {
    format!("event {number} of thread {thread}, {}", "~".repeat(number as usize))
}

/// The same as it is recorded.
fn recorded_text(thread: u64, number: u64) -> String {
    let text = text(thread, number);
    match text.len() {
        ..=40 => text,
        _ => text[..40].to_owned() + "…",
    }
}

/// Starts the program, records it with `selection`, and says what came of it.
fn recorded(place: &Path, selection: &str, recorder: &str, log: &Path) -> Recorded {
    let streams = StreamDirectory::at(&place.join("streams")).unwrap();
    let mut recording = Recording::new(log, "brief", RecordingOptions::default()).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "announced::program", "--nocapture"])
        .env(STREAMS, streams.path())
        .env(RECORDER, recorder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let selection: Selection = selection.parse().unwrap();
    let mut is_followed = false;
    while child.try_wait().unwrap().is_none() {
        let published = streams.published().unwrap();
        if !is_followed && let Some((_, path)) = published.into_iter().find(|(pid, _)| *pid == child.id()) {
            is_followed = recording.follow_as_it_grows(&path, &selection, Start::Oldest).is_ok();
        }
        recording.poll(clock::now()).unwrap();
        std::thread::yield_now();
    }
    assert!(child.wait().unwrap().success() && is_followed);
    recording.finish().unwrap()
}

#[test]
fn the_first_event_and_all_of_short_threads_are_recorded_and_their_threads_known() {
    let place = tempfile::tempdir().unwrap();
    let streams = place.path().join("streams");
    // By name, the family is chosen only when the program has registered it, which its first event does.
    for selection in ["all", "brief"] {
        let log = place.path().join(selection);
        let recorded = recorded(place.path(), selection, &announcement(&streams), &log);
        assert_eq!(recorded.lost_in_all(), 0, "{recorded:?}");
        let trace = TraceFile::open(&log).unwrap();
        let names = trace.name_space().unwrap();
        let number = names.family("brief").unwrap().number;
        let records: Vec<Record> = trace.records().unwrap().map(Result::unwrap).collect();
        let mut writers = std::collections::HashMap::new();
        let mut parts = EventParts::default();
        let (mut seen, mut by_thread) = (Vec::new(), std::collections::HashMap::new());
        for record in &records {
            assert!(parts.learn(record));
            if let Some(thread) = event::Thread::read(record) {
                writers.insert(record.causal, thread.tid);
            } else if record.event.family() == number {
                let (thread, number) = (record.words[0], record.words[1]);
                seen.push((thread, number));
                let text = names.event(record.event).unwrap().1.fields[2].value(record, parts.of(record));
                assert_eq!(text, Value::Text(recorded_text(thread, number)));
                let tid = writers[&(u64::from(record.source) + 1)];
                assert_eq!(*by_thread.entry(record.words[0]).or_insert(tid), tid, "all of one thread");
            }
        }
        let all = (1..=THREADS).flat_map(|thread| (0..EVENTS).map(move |number| (thread, number)));
        assert_eq!(seen, [(0, 0)].into_iter().chain(all).collect::<Vec<_>>(), "with {selection}");
    }
}
