//! Inputs and places that somebody has prepared: names that command the terminal, files that never end, links that lead elsewhere, a stream
//! that is cut while it is followed.

use crate::support::{Program, example, folder, run, talea, within, write};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use talea_record::declaration::Text;
use talea_record::event::ThreadName;
use talea_record::{Event, LogWriter, Metadata, Record, Sink, TraceFile};
use talea_text::is_hidden;

/// Clears the screen, in both ways of saying so, turns the line around, and pretends to be another line.
const EVIL: &str = "a\u{1b}[2J\u{9b}2J\u{202e}\u{7}\nerror: forged";

/// Fails if there is anything in the text that a terminal would obey.
fn is_harmless(what: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let hidden = text.chars().find(|c| is_hidden(*c) && *c != '\n');
    assert_eq!(hidden, None, "{what}: {text:?}");
    let forged = text.lines().find(|line| line.starts_with("error: forged"));
    assert_eq!(forged, None, "{what}: {text:?}");
}

/// A trace whose names are all evil: of the system, its node, lane, task and operation, and of a thread.
fn evil_trace(place: &tempfile::TempDir) -> String {
    let out = within(place, "out");
    run(&["sim", &example("hello.toml"), "--for", "300ms", "--out", &out]).exits(0);
    let whole = TraceFile::open(&Path::new(&out).join("trace.talea")).expect("a trace");
    let evil = |name: &mut String| *name = EVIL.into();
    let mut metadata: Metadata = whole.metadata().clone();
    evil(&mut metadata.system);
    metadata.nodes.iter_mut().for_each(|entry| evil(&mut entry.name));
    metadata.lanes.iter_mut().for_each(|entry| evil(&mut entry.label));
    metadata.tasks.iter_mut().for_each(|entry| evil(&mut entry.name));
    metadata.operations.iter_mut().for_each(|entry| evil(&mut entry.name));
    let path = within(place, "evil.talea");
    let mut log = LogWriter::create(Path::new(&path), &metadata).expect("writable");
    let named = ThreadName { name: Text::new("\u{1b}[2J\n\u{9b}x"), tid: 7, pid: 7 };
    log.record(named.at(metadata.start, Record::NO_CPU));
    for record in whole.records().expect("records").map(Result::unwrap) {
        log.record(record);
        if record.event == Event::START {
            let (event, source) = (Event::SWITCH, Record::KERNEL);
            log.record(Record { event, source, causal: 0, words: [7 << 32, 0], ..record });
        }
    }
    log.finish().expect("written");
    path
}

#[test]
fn names_in_traces_are_shown_and_not_obeyed() {
    let place = folder();
    let trace = evil_trace(&place);
    let at = |name: &str| within(&place, name);
    for arguments in [
        &["stats"][..],
        &["stats", "--json"],
        &["stats", "--jobs"],
        &["show"],
        &["show", "--json"],
        &["explain", "--worst"],
        &["explain", "--worst", "--json"],
        &["export", "--csv", &at("a.csv"), "--schedule", &at("b.csv"), "--svg", &at("c.svg")],
        &["export", "--perfetto", &at("d.pftrace"), "--ctf", &at("ctf")],
    ] {
        let arguments = [&["trace", arguments[0], &trace], &arguments[1..]].concat();
        let output = talea(&arguments).output().expect("it starts");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        is_harmless(&arguments.join(" "), &[output.stdout, output.stderr].concat());
    }
    for file in ["a.csv", "b.csv", "c.svg", "ctf/metadata"] {
        is_harmless(file, &fs::read(at(file)).expect("written"));
    }
    // What is written as bytes is searched for the bytes.
    for file in ["d.pftrace", "ctf/cpu_0"] {
        let bytes = fs::read(at(file)).expect("written");
        let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has("\\u{1b}[2J") && !has("\u{1b}[2J"), "{file}");
    }
    // JSON has what was read, and nothing else.
    let json = run(&["trace", "stats", &trace, "--json"]).exits(0).json();
    assert!(json.to_string().contains("u{1b}[2J"), "{json}");
}

#[test]
fn names_in_files_and_of_files_are_shown_and_not_obeyed() {
    let place = folder();
    let keys = "[system]\nname = \"x\"\n\"\\u001b[2J\\u009b\\u202e\\nerror: forged\" = 1\n[[task]]\nname = \"a\\u001b\"\n";
    let tasks = "task,period_ms,wcet_ms\n\"a\u{1b}[2J\n\",x\u{9b},1\n";
    let json = "{ \"tasks\": { \"a\\u001b[2J\\nerror: forged\": { \"what\\u009b\\u202e\": 1 } } }";
    let files = [
        write(&place, "keys.toml", keys),
        write(&place, "tasks.csv", tasks),
        write(&place, "use.json", json),
        write(&place, &format!("{EVIL}.toml").replace('/', "_"), "?"),
    ];
    for file in &files {
        for command in ["check", "import", "sim", "vectors", "no-such-command"] {
            let output = talea(&[command, file]).output().expect("it starts");
            is_harmless(&format!("{command} {file:?}"), &[output.stdout, output.stderr].concat());
        }
        let output = talea(&["trace", "stats", file]).output().expect("it starts");
        is_harmless(file, &[output.stdout, output.stderr].concat());
    }
    for (expression, event) in [
        (
            "$a == 1",
            "{\"domain_name\": \"\", \"type_name\": \"\", \"event_name\": \"\", \"variable_header\": {}, \"filterable_data\": {\"a\": \"\\u001b[2J\\u009b\\nerror: forged\"}}",
        ),
        ("TRUE", "{\"\\u001b[2J\\nerror: forged\": 1}"),
        ("TRUE", "{\"domain_name\": \u{1b}[2J}"),
    ] {
        let event = write(&place, "event.json", event);
        let output =
            talea(&["filter", expression, "--event", &event, "--explain"]).output().expect("it starts");
        is_harmless(expression, &[output.stdout, output.stderr].concat());
    }
    // Lines in one's own arguments are one's own.
    let evil = EVIL.replace('\n', "");
    let output = talea(&["check", &format!("--{evil}"), "--strategy", &evil]).output().expect("it starts");
    is_harmless("arguments", &[output.stdout, output.stderr].concat());
}

/// Fails unless the command refuses with these words.
fn refused(arguments: &[&str], words: &str) {
    let done = run(arguments).exits(2);
    assert!(done.stderr.contains(words), "{arguments:?}: {}", done.stderr);
}

#[test]
fn what_is_no_file_is_named_and_waited_for_by_nobody() {
    let place = folder();
    for (command, most) in
        [("check", "16 MiB"), ("import", "16 MiB"), ("sim", "16 MiB"), ("vectors", "64 MiB")]
    {
        refused(&[command, "/dev/zero"], &format!("at most {most} are read"));
    }
    refused(&["ctl", "x", "replace", "PS", "--kind", "rialto", "--set", "plan=@/dev/zero"], "at most 16 MiB");
    let pipe = within(&place, "pipe.talea");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    refused(&["trace", "stats", &pipe], "this is a pipe or a device, and a file is needed");
    let socket = within(&place, "socket");
    let _listening = UnixListener::bind(&socket).expect("a socket");
    for command in [&["check"][..], &["import"], &["vectors"], &["trace", "show"]] {
        refused(&[command, &[&socket]].concat(), "this is a socket");
    }
    let folder = place.path().display().to_string();
    for command in ["check", "import"] {
        refused(&[command, &folder], "this is a directory");
    }
    // What names a file may be a pipe that somebody writes to.
    let pipe = within(&place, "pipe.toml");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    let text = fs::read(example("hello.toml")).expect("there");
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, text)
    });
    run(&["check", &pipe]).exits(0);
    writer.join().expect("no panic").expect("somebody reads");
}

#[test]
fn results_are_files_of_their_folder_and_as_private_as_the_trace() {
    let hello = example("hello.toml");
    for command in [&["sim"][..], &["run", "--rt", "off", "--fail-on", "never"]] {
        let place = folder();
        let (out, elsewhere) = (within(&place, "out"), within(&place, "precious"));
        fs::create_dir(&out).expect("writable");
        fs::write(&elsewhere, "precious").expect("writable");
        let names = ["result.json", "schedule.csv", "trace.talea"].map(|name| Path::new(&out).join(name));
        names.iter().for_each(|name| symlink(&elsewhere, name).expect("writable"));
        run(&[&command[..1], &[&hello], &command[1..], &["--for", "100ms", "--out", &out]].concat()).exits(0);
        assert_eq!(fs::read_to_string(&elsewhere).expect("there"), "precious");
        for name in &names {
            let found = fs::symlink_metadata(name).expect("written");
            assert!(found.is_file() && found.len() > 0, "{}", name.display());
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{}", name.display());
        }
    }
}

#[test]
fn a_file_of_another_tool_and_words_of_another_tool_are_recognised() {
    let place = folder();
    let json = within(&place, "ofp.json");
    run(&["export", &example("ofp.toml"), "--to", "rt-app", "--out", &json]).exits(0);
    refused(&["check", &json], &format!("talea import {json} --out"));
    let xml = write(&place, "use.xml", "<simulation/>");
    refused(&["sim", &xml], &format!("talea import {xml} --out"));
    let hard = "[system]\nname = \"x\"\n[[task]]\nname = \"a\"\nperiod = \"5ms\"\nwcet = \"1ms\"\ncriticality = \"hard\"\n";
    refused(&["check", &write(&place, "hard.toml", hard)], "write \"high\"");
    let table = write(&place, "hard.csv", "task,period_ms,wcet_ms,criticality\na,5,1,hard\n");
    refused(&["import", &table], "write \"high\"");
}

#[test]
fn programs_that_are_not_there_come_with_their_lines() {
    let place = folder();
    let text = "[system]\nname = \"m\"\n\n[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\n[[thread]]\nname = \"a\"\n\
                run = [\"no-such-program\\u001b[2J\"]\nunder = [{ scheduler = \"FP\", priority = 1 }]\n\n[[thread]]\nname = \"b\"\n\
                under = [{ scheduler = \"FP\", priority = 2 }]\npid = 4194304\n";
    let file = write(&place, "m.toml", text);
    let checked = run(&["check", &file]);
    let ran = run(&["run", &file, "--for", "100ms"]).exits(2);
    for said in [&checked.stderr, &ran.stderr] {
        assert!(said.contains(&format!("{file}:10: thread \"a\"")), "{said}");
        assert!(said.contains(&format!("{file}:16: thread \"b\"")), "{said}");
        is_harmless("run", said.as_bytes());
    }
    let json = run(&["check", &file, "--json"]).json();
    let warnings = json["hierarchies"][0]["warnings"].as_array().expect("a list");
    assert!(
        warnings[0].as_str().is_some_and(|warning| warning.starts_with(&format!("{file}:10: "))),
        "{json}"
    );
}

/// Whoever follows a stream whose file somebody shortens says so, and the program goes on.
#[test]
fn a_stream_that_is_cut_ends_who_follows_it_and_not_the_program() {
    let place = folder();
    let mut program = Program::start(&place, "cut");
    let stream = run(&["trace", "list", &program.name, "--json"]).exits(0).json();
    let path = stream["path"].as_str().expect("a path").to_owned();
    let (recording, file) = program.record(&place, "all");
    fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(4096)).expect("it is ours");
    let done = recording.finish().exits(2);
    assert!(done.stderr.contains("was made shorter while it was followed"), "{}", done.stderr);
    run(&["trace", "stats", &file]);
    for command in [&["stats"][..], &["show"], &["list"]] {
        let done = run(&[&["trace", command[0], &path], &command[1..]].concat());
        assert!(
            done.status == 2 || done.status == 0 && command[0] == "list",
            "{} {}",
            done.stdout,
            done.stderr
        );
    }
    program.running.lives();
    program.running.signal(rustix::process::Signal::INT);
    // Its own collector cannot read what was taken away; that is said, and nothing worse comes of it.
    let done = program.running.finish();
    assert!(done.status >= 0 && done.status <= 2, "a signal ended it: {}", done.stderr);
}
