//! A C program declares and writes events, and a recording has them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use talea_record::declaration::Value;
use talea_record::stream::{RECORDER, Selection, Start, StreamDirectory, announcement};
use talea_record::{EventParts, Record, TraceFile};
use talea_recording::recording::{Recording, RecordingOptions};

/// The library that Cargo has built for this test: the newest, for it may have built others before.
fn library() -> Option<PathBuf> {
    let folder = std::env::current_exe().ok()?.parent()?.to_path_buf();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libtalea_c") && name.ends_with(".a")
    };
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.filter(is_ours).max_by_key(|path| path.metadata().and_then(|found| found.modified()).ok())
}

fn compiled(folder: &Path) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if Command::new("cc").arg("--version").output().is_err() {
        talea_measure::skip("there is no C compiler");
        return None;
    }
    let (program, library) = (folder.join("program"), library().expect("Cargo builds it with this test"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"]).arg(root.join("include"));
    compiler.arg(root.join("tests/program.c")).arg(library).args(["-lpthread", "-ldl", "-lm", "-o"]);
    let output = compiler.arg(&program).output().expect("it was there a moment ago");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

#[test]
fn a_c_program_declares_and_writes_events() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled(place.path()) else { return };
    let directory = StreamDirectory::of_user().unwrap();
    let log = place.path().join("c.talea");
    let mut recording = Recording::new(&log, "c", RecordingOptions::default()).unwrap();
    let mut child = Command::new(program)
        .env(RECORDER, announcement(directory.path()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut is_followed = false;
    while child.try_wait().unwrap().is_none() {
        let published = directory.published().unwrap();
        if !is_followed && let Some((_, path)) = published.into_iter().find(|(pid, _)| *pid == child.id()) {
            is_followed = recording.follow_as_it_grows(&path, &Selection::all(), Start::Oldest).is_ok();
        }
        recording.poll(talea_record::stream::clock::now()).unwrap();
        std::thread::yield_now();
    }
    let (pid, output) = (child.id(), child.wait_with_output().unwrap());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    let told =
        ["\"no/name\" cannot name a stream", "\"wide\" do not fit", "\"two\" do not fit", "1 to 256 bytes"];
    assert!(told.iter().all(|part| errors.contains(part)), "{errors}");
    assert_eq!(recording.finish().unwrap().lost_in_all(), 0);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let said: Vec<u32> = said.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(said[0], 1, "a recorder wants it");
    let thread = said[1];

    let trace = TraceFile::open(&log).unwrap();
    let names = trace.name_space().unwrap();
    let nav = names.family("nav").unwrap();
    let records: Vec<Record> = trace.records().unwrap().map(Result::unwrap).collect();
    let of_nav = records.iter().filter(|record| record.event.family() == nav.number);
    let mut parts = EventParts::default();
    let mut told: Vec<(String, Vec<Value>)> = Vec::new();
    for record in &records {
        assert!(parts.learn(record));
        if record.event.family() == nav.number {
            let entry = names.event(record.event).unwrap().1;
            let values = entry.fields.iter().map(|field| field.value(record, parts.of(record)));
            told.push((entry.name.to_string(), values.collect()));
        }
    }
    let bytes = Value::Bytes(vec![1, 2, 3, 4, 5, 6, 7, 0xff]);
    let said =
        |message: &str| ("said", vec![Value::Unsigned(3), Value::Text(message.into()), Value::Unsigned(17)]);
    let expected = [
        ("fix", vec![Value::Float(47.25), Value::Unsigned(9), Value::Signed(-5)]),
        ("raw", vec![bytes, Value::Signed(-1), Value::Bool(true)]),
        said("exactly forty bytes of a message, or not"),
        said("what is longer is cut between characters…"),
        said("what is longer is cut between character…"),
        said(""),
        ("frame", vec![Value::Bytes(vec![0, 1, 2])]),
        ("frame", vec![Value::CutBytes((0..=255).collect())]),
        ("frame", vec![Value::Bytes(Vec::new())]),
        ("named", vec![Value::Text("a text that is l".into())]),
    ];
    assert_eq!(told, expected.map(|(name, values)| (name.to_owned(), values)));
    let threads: Vec<u32> = of_nav
        .map(|event| {
            let wrote = |record: &&Record| record.causal == u64::from(event.source) + 1;
            let thread = records.iter().filter_map(|record| Some((record, thread_of(record)?)));
            thread.rev().find(|(record, _)| wrote(record)).unwrap().1
        })
        .collect();
    let by_main = vec![pid; 9];
    assert_eq!(threads, [by_main, vec![thread]].concat(), "who wrote them");
}

fn thread_of(record: &Record) -> Option<u32> {
    talea_record::event::Thread::read(record).map(|thread| thread.tid)
}
