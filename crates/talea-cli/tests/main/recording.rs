//! Recording, listing and switching programs from outside.

use crate::support::{Done, Program, Running, eventually, example, folder, listed, recorded, run, within};
use serde_json::Value;
use std::path::Path;
use talea_record::{Event, Record, RunOutcome, ThreadRole, TraceFile};

/// Who follows it besides the program itself.
pub fn consumers(name: &str) -> Vec<Value> {
    let content = listed(name).expect("it is there")["content"].clone();
    let all = content["consumers"].as_array().expect("a list").iter();
    all.filter(|consumer| consumer["name"] != "collector").cloned().collect()
}

fn events(file: &str) -> Vec<Event> {
    let trace = TraceFile::open(Path::new(file)).expect("a trace");
    trace.records().expect("records").map(|record| record.expect("whole").event).collect()
}

/// What was asked for: of whose rings they are, and when the run began and ended, a recording says unasked.
fn asked_events(file: &str) -> Vec<Event> {
    let mut events = events(file);
    events.retain(|event| ![Event::THREAD, Event::RUN_START, Event::RUN_END].contains(event));
    events
}

fn stats(file: &str) -> Value {
    run(&["trace", "stats", file, "--json"]).exits(0).json()
}

#[test]
fn a_recorded_command_has_the_results_it_reports_itself() {
    let place = folder();
    let file = within(&place, "recorded.talea");
    let record = ["trace", "record", "--kernel", "off", "--out", &file, "--"];
    let command = [env!("CARGO_BIN_EXE_talea"), "run", &example("hello.toml"), "--rt", "off"];
    let options = ["--for", "300ms", "--json", "--fail-on", "never"];
    let done = run(&[&record[..], &command, &options].concat()).exits(0);
    let (own, recorded) = (done.json(), stats(&file));
    for (own, recorded) in own["report"]["tasks"]
        .as_array()
        .expect("tasks")
        .iter()
        .zip(recorded["tasks"].as_array().expect("tasks"))
    {
        for count in ["name", "released", "completed", "met", "missed", "response"] {
            assert_eq!(own[count], recorded[count], "{count}");
        }
    }
    assert!(events(&file).contains(&Event::TIMER), "dispatching is recorded as well");
}

/// What is taken out of rings waits until it has settled, so that next to no memory is full with the first records.
#[test]
fn what_a_recorder_has_no_memory_for_is_lost_with_its_cause_and_an_exit_status() {
    let place = folder();
    let file = within(&place, "recorded.talea");
    let record =
        ["trace", "record", "--kernel", "off", "--memory", "1", "--ring-records", "2", "--out", &file];
    let command = ["--", env!("CARGO_BIN_EXE_talea"), "run", &example("hello.toml"), "--rt", "off"];
    let options = ["--for", "300ms", "--json", "--fail-on", "never"];
    let lossy = run(&[&record[..], &["--fail-on-loss"], &command, &options].concat()).exits(1);
    assert!(lossy.stderr.contains("while the recorder had no memory for them"), "{}", lossy.stderr);
    let lost = run(&["trace", "show", &file, "--event", "lost", "--json"]).exits(0).stdout;
    assert!(lost.contains("\"cause\":\"recorder-full\""), "{lost}");
    let shown = run(&["trace", "show", &file, "--event", "lost"]).exits(0).stdout;
    assert!(shown.contains("for the recorder had no memory left"), "{shown}");
    let by_cause = stats(&file)["contents"]["lost_by_cause"].clone();
    assert!(by_cause["recorder-full"].as_u64() > Some(0), "{by_cause}");
    let whole = ["trace", "record", "--kernel", "off", "--fail-on-loss", "--out", &file];
    run(&[&whole[..], &command, &options].concat()).exits(0);
    run(&["trace", "record", "--memory", "much", "--", "true"]).exits(2);
    run(&["trace", "record", "--attach", "x", "--ring-records", "8"]).exits(2);
}

#[test]
fn a_command_of_several_processes_is_one_recording() {
    let place = folder();
    let file = within(&place, "recorded.talea");
    let record = ["trace", "record", "--kernel", "off", "--out", &file, "--"];
    let command = [env!("CARGO_BIN_EXE_talea"), "run", &example("two-nodes.toml"), "--rt", "off"];
    let options = ["--for", "300ms", "--json", "--fail-on", "never"];
    let own = run(&[&record[..], &command, &options].concat()).exits(0).json();
    let recorded = stats(&file);
    let names = |report: &Value| -> Vec<Value> {
        let nodes = report["nodes"].as_array().expect("nodes");
        nodes.iter().map(|node| node["name"].clone()).collect()
    };
    assert_eq!(names(&own["report"]), names(&recorded));
    let starts = events(&file).into_iter().filter(|event| *event == Event::RUN_START).count();
    assert_eq!(starts, names(&recorded).len());
}

/// Without it every time would be one since the machine was started, and every release a violation.
#[test]
fn times_count_from_the_start_of_the_run_whatever_is_asked_for() {
    let hello = example("hello.toml");
    for selection in ["job", "dispatch.cost", "all,-run"] {
        let (_place, file) = recorded(&hello, &["--events", selection]);
        let trace = TraceFile::open(Path::new(&file)).expect("a trace");
        let records = trace.records().expect("records").map(|record| record.expect("whole"));
        let begun = records.into_iter().find(|record| record.event == Event::RUN_START).expect("it is told");
        assert_eq!(begun.time, trace.metadata().start, "{selection}");
        if selection == "dispatch.cost" {
            continue;
        }
        let judged = run(&["trace", "verify", &hello, &file, "--json"]).json();
        let rules = judged["rules"].as_array().expect("a list");
        let release = rules.iter().find(|rule| rule["rule"] == "release").expect("it is judged");
        assert!(release["cases"].as_u64() > Some(0), "{judged}");
        assert_eq!(release["violations"], 0, "{judged}");
    }
}

#[test]
fn a_selection_may_begin_with_what_is_taken_away() {
    let place = folder();
    let file = within(&place, "none.talea");
    let refused = run(&["trace", "record", "--events", "-job", "--out", &file, "--", "true"]).exits(2);
    assert!(refused.stderr.contains("write all,-job"), "{}", refused.stderr);
}

#[test]
fn two_recordings_of_one_program_see_what_each_asked_for() {
    let place = folder();
    let program = Program::start(&place, "two-readers");
    let (jobs, job_file) = program.record(&place, "job");
    let (dispatch, dispatch_file) = program.record(&place, "dispatch.timer");
    drop(program);
    for recording in [jobs, dispatch] {
        recording.finish().exits(0);
    }
    assert!(asked_events(&job_file).iter().all(|event| event.is_job()), "jobs alone");
    assert!(asked_events(&dispatch_file).iter().all(|event| *event == Event::TIMER), "timers alone");
}

/// That the run has no end of its own is told by the recording and by everybody who reads it.
fn is_said_to_be_cut_off(place: &tempfile::TempDir, file: &str) {
    let trace = TraceFile::open(Path::new(file)).expect("a trace");
    let records: Vec<Record> =
        trace.records().expect("records").map(|record| record.expect("whole")).collect();
    let last = records.last().expect("there are some");
    assert_eq!(
        (last.event, last.arg),
        (Event::RUN_END, RunOutcome::CutOff as u16),
        "behind all that it wrote"
    );
    let system = within(place, "system.toml");
    let table = within(place, "cut.csv");
    let readers: [&[&str]; 5] = [
        &["trace", "show", file],
        &["trace", "stats", file],
        &["trace", "verify", &system, file],
        &["trace", "explain", file],
        &["trace", "export", file, "--csv", &table],
    ];
    for arguments in readers {
        let done = run(arguments);
        assert_eq!(done.stderr.matches("the run was cut off").count(), 1, "{arguments:?}: {}", done.stderr);
    }
    assert_eq!(stats(file)["damage"]["cut_off"], 1);
}

#[test]
fn a_run_that_ends_or_goes_on_is_not_cut_off() {
    let (_place, file) = recorded(&example("hello.toml"), &[]);
    assert_eq!(stats(&file)["damage"]["cut_off"], 0);
    let place = folder();
    let program = Program::start(&place, "goes-on");
    let (mut recording, file) = program.record(&place, "all");
    recording.signal(rustix::process::Signal::INT);
    recording.finish().exits(0);
    assert_eq!(stats(&file)["damage"]["cut_off"], 0);
}

#[test]
fn a_killed_program_leaves_what_it_wrote() {
    let place = folder();
    let mut program = Program::start(&place, "killed");
    let (recording, file) = program.record(&place, "run,job");
    program.running.kill();
    // The recording ends by itself, with everything up to the kill.
    let done = recording.finish().exits(0);
    assert!(done.stderr.contains("the run was cut off"), "{}", done.stderr);
    is_said_to_be_cut_off(&place, &file);
    assert!(stats(&file)["tasks"][0]["completed"].as_u64() >= Some(1));
    let left = listed(&program.name).expect("the stream is there");
    assert_eq!(left["state"], "ended");
    let path = left["path"].as_str().expect("a path");
    let of_rings = stats(path);
    assert!(of_rings["tasks"][0]["completed"].as_u64() >= Some(1), "{of_rings:#}");
    let refused = run(&["trace", "record", "--attach", &program.name, "--out", &file]).exits(2);
    assert!(refused.stderr.contains("has ended"), "{}", refused.stderr);
    std::fs::remove_file(path).expect("it is ours");
}

#[test]
fn a_killed_recorder_leaves_what_it_had_seen() {
    let place = folder();
    let program = Program::start(&place, "recorder-killed");
    let (mut recording, file) = program.record(&place, "job");
    let seen = events(&file).len();
    assert!(seen >= 20, "{seen}");
    recording.kill();
    let shown = run(&["trace", "show", &file]).exits(0);
    assert!(shown.stdout.lines().count() >= seen, "{}", shown.stderr);
    // Its place among the consumers is free for the next one.
    let (next, file) = program.record(&place, "job.start");
    let consumers = consumers(&program.name);
    let [consumer] = &consumers[..] else { panic!("{consumers:?}") };
    assert_eq!(consumer["name"], "record into job.start.talea");
    assert!(asked_events(&file).iter().all(|event| *event == Event::START));
    drop(program);
    next.finish().exits(0);
}

#[test]
fn names_that_a_command_does_not_have_are_told() {
    let place = folder();
    let (file, begun) = (within(&place, "o.talea"), within(&place, "begun"));
    let record = |events: &str, command: &[&str]| {
        let options = ["trace", "record", "--kernel", "off", "--out", &file, "--events", events, "--"];
        run(&[&options[..], command].concat())
    };
    let refused = record("job.strat", &["touch", &begun]).exits(2);
    assert!(refused.stderr.contains("did you mean \"job.start\"?"), "{}", refused.stderr);
    assert!(!Path::new(&begun).exists(), "the command was not started");
    let hello = example("hello.toml");
    let talea = env!("CARGO_BIN_EXE_talea");
    let command = [talea, "run", &hello, "--rt", "off", "--for", "200ms", "--fail-on", "never"];
    let nothing = record("dispach", &command).exits(2);
    for part in ["nothing of the command was recorded", "did you mean \"dispatch\"?", "trace list"] {
        assert!(nothing.stderr.contains(part), "{}", nothing.stderr);
    }
    let some = record("job,dispach", &command).exits(0);
    assert!(some.stderr.contains("warning: there is no family or event \"dispach\""), "{}", some.stderr);
    assert!(asked_events(&file).iter().all(|event| event.is_job()) && !asked_events(&file).is_empty());
    let nothing = record("nosuch", &["true"]).exits(2);
    for part in [
        "no stream was followed",
        "nothing of the command was recorded: there is no family or event \"nosuch\"",
    ] {
        assert!(nothing.stderr.contains(part), "{}", nothing.stderr);
    }
    let silent = record("all", &["true"]).exits(0);
    assert!(silent.stderr.contains("no stream was followed, for true published none"), "{}", silent.stderr);
    assert!(silent.stderr.contains("--kernel auto") && silent.stderr.contains("Stream::publish"));
}

#[test]
fn events_are_switched_while_the_program_runs() {
    let place = folder();
    let program = Program::start(&place, "switched");
    let by_hand = |name: &str| listed(name).expect("it runs")["content"]["by_hand"].clone();
    assert_eq!(by_hand(&program.name), serde_json::json!([]));
    let on = run(&["trace", "enable", &program.name, "dispatch.timer,dispatch.cost"]).exits(0);
    assert!(on.stdout.contains("dispatch.cost, dispatch.timer"), "{}", on.stdout);
    run(&["trace", "disable", &program.name, "dispatch.cost"]).exits(0);
    assert_eq!(by_hand(&program.name), serde_json::json!(["dispatch.timer"]));
    let path = listed(&program.name).expect("it runs")["path"].as_str().expect("a path").to_owned();
    eventually("timers are written", || events(&path).contains(&Event::TIMER));
    let told = |arguments: &[&str]| run(arguments).exits(2).stderr;
    let text = told(&["trace", "enable", &program.name, "dispach"]);
    assert!(text.contains("did you mean \"dispatch\"?"), "{text}");
    let text = told(&["trace", "enable", &program.name, "job.relese"]);
    assert!(text.contains("did you mean \"job.release\"?"), "{text}");
    let text = told(&["trace", "disable", &program.name[1..], "job"]);
    assert!(text.contains(&format!("did you mean \"{}\"?", program.name)), "{text}");
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let place = folder();
    let file = within(&place, "no.talea");
    let record = |arguments: &[&str]| -> Done {
        run(&[&["trace", "record", "--out", &file, "--kernel", "off"], arguments].concat())
    };
    assert!(record(&[]).exits(2).stderr.contains("--attach"));
    assert!(record(&["--", "/nowhere/at/all"]).exits(2).stderr.contains("/nowhere/at/all"));
    assert!(record(&["--attach", "nobody-has-this-name"]).exits(2).stderr.contains("there is no stream"));
    assert!(record(&["--events", "job,,run", "--", "true"]).exits(2).stderr.contains("a name is missing"));
    let failed = record(&["--", "false"]).exits(1);
    assert!(failed.stderr.contains("the command ended with exit status: 1"), "{}", failed.stderr);
    let unknown = run(&["trace", "record", "--kernel", "swiches", "--", "true"]).exits(2);
    assert!(unknown.stderr.contains("no kernel event is called \"swiches\""), "{}", unknown.stderr);
    // What was there before is still there when nothing was recorded, and nothing new stays behind.
    std::fs::write(&file, "precious").expect("writable");
    record(&["--attach", "nobody-has-this-name"]).exits(2);
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "precious");
    std::fs::remove_file(&file).expect("there");
    record(&["--", "/nowhere/at/all"]).exits(2);
    assert!(!Path::new(&file).exists());
    let nowhere = run(&["trace", "record", "--out", "/nowhere/at/all.talea", "--", "true"]).exits(2);
    assert!(nowhere.stderr.contains("/nowhere/at/all.talea"), "{}", nowhere.stderr);
}

#[test]
fn a_recording_never_replaces_a_stream_or_another_recording() {
    let place = folder();
    let program = Program::start(&place, "kept");
    let path = listed(&program.name).expect("it runs")["path"].as_str().expect("a path").to_owned();
    let identity = |path: &str| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).expect("there"));
    let (stream, link) = (identity(&path), within(&place, "link.talea"));
    let record = |attached: &str, out: &str| {
        run(&["trace", "record", "--attach", attached, "--kernel", "off", "--for", "20ms", "--out", out])
    };
    let refused = record(&program.name, &path).exits(2);
    assert!(refused.stderr.contains("among the streams"), "{}", refused.stderr);
    std::os::unix::fs::symlink(&path, &link).expect("writable");
    let refused = record(&link, &link).exits(2);
    assert!(refused.stderr.contains("among the streams"), "{}", refused.stderr);
    assert_eq!(identity(&path), stream);
    let (first, file) = program.record(&place, "job");
    let refused = record(&program.name, &file).exits(2);
    assert!(refused.stderr.contains(&format!("another recorder is writing {file}")), "{}", refused.stderr);
    drop(program);
    first.finish().exits(0);
    assert!(!events(&file).is_empty() && !Path::new(&format!("{file}.lock")).exists());
}

#[test]
fn what_is_no_stream_is_not_taken_for_one_that_has_ended() {
    let place = folder();
    let (text, log) = (within(&place, "text"), within(&place, "log.talea"));
    std::fs::write(&text, "dear").expect("writable");
    talea_record::LogWriter::create(Path::new(&log), &talea_record::Metadata::bare("log"))
        .expect("writable")
        .finish()
        .expect("written");
    for (file, what) in [(&text, "not a"), (&log, "this is a log of a run, not a stream")] {
        for arguments in
            [&["enable", file, "job"][..], &["record", "--kernel", "off", "--out", "x", "--attach", file]]
        {
            let arguments = [&["trace"], arguments].concat();
            let done =
                crate::support::talea(&arguments).current_dir(place.path()).output().expect("it starts");
            let told = Done::from(done).exits(2).stderr;
            assert!(told.contains(what) && told.contains(file) && !told.contains("has ended"), "{told}");
        }
    }
}

#[test]
fn a_recording_that_is_told_to_end_ends_its_command() {
    let place = folder();
    let file = within(&place, "ended.talea");
    // A shell with a child: both are to go.
    let record = ["trace", "record", "--kernel", "off", "--out", &file, "--for", "50ms", "--"];
    let pid = within(&place, "pid");
    let script = format!("sleep 1000 & echo $! > {pid}.new; mv {pid}.new {pid}; wait");
    run(&[&record[..], &["sh", "-c", &script]].concat()).exits(0);
    if let Ok(child) = std::fs::read_to_string(&pid) {
        let stat = format!("/proc/{}/stat", child.trim());
        let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        eventually("what the command started has ended", is_gone);
    }
    // An interrupt of the recorder alone reaches the command, too.
    let begun = place.path().join("begun");
    let script = format!("echo begun > {}; exec sleep 1000", begun.display());
    let mut recording = Running::start(&[&record[..6], &["--", "sh", "-c", &script]].concat());
    recording.await_file(&begun);
    recording.signal(rustix::process::Signal::INT);
    recording.finish().exits(0);
}

#[test]
fn kernel_and_program_are_on_one_clock() {
    let place = folder();
    let file = within(&place, "both.talea");
    let record = ["trace", "record", "--kernel", "switches", "--out", &file, "--"];
    let command = [env!("CARGO_BIN_EXE_talea"), "run", &example("hello.toml"), "--rt", "off"];
    let options = ["--for", "300ms", "--fail-on", "never"];
    let done = run(&[&record[..], &command, &options].concat());
    if done.status == 2 && done.stderr.contains("the kernel withholds events") {
        talea_measure::skip(&done.stderr);
        return;
    }
    done.exits(0);
    let trace = TraceFile::open(Path::new(&file)).expect("a trace");
    let mut records: Vec<Record> = trace.records().expect("records").map(Result::unwrap).collect();
    // Ordinary threads may be held up for long between reading the clock and writing.
    records.sort_by_key(|record| record.time);
    // The thread that starts a job has been switched to before: its number is the last that came to the processor.
    let lane_of = |tid: u64| {
        let thread = |record: &&Record| record.event == Event::THREAD && record.words[0] & 0xffff_ffff == tid;
        records.iter().find(thread).map(|record| record.source)
    };
    let mut running = std::collections::HashMap::new();
    let mut seen = 0;
    for record in &records {
        match record.event {
            Event::SWITCH => {
                running.insert(record.cpu, record.words[0] >> 32);
            }
            Event::START => {
                if let Some(lane) = running.get(&record.cpu).and_then(|tid| lane_of(*tid)) {
                    assert_eq!(lane, record.source, "the kernel saw the lane's thread arrive first");
                    seen += 1;
                }
            }
            _ => {}
        }
    }
    assert!(seen > 0, "no job started on a processor that was seen to switch");
}

/// The lanes' threads of a recording.
fn lane_threads(file: &str) -> Vec<u64> {
    let trace = TraceFile::open(Path::new(file)).expect("a trace");
    let records = trace.records().expect("records").map(|record| record.expect("whole"));
    let of_lane = |record: &Record| record.event == Event::THREAD && record.arg == ThreadRole::Lane as u16;
    records.filter(of_lane).map(|record| record.words[0] & 0xffff_ffff).collect()
}

#[test]
fn whose_a_ring_is_is_recorded_whatever_is_asked_for() {
    let place = folder();
    let program = Program::start(&place, "whose");
    let (mut recording, file) = program.record(&place, "job");
    recording.signal(rustix::process::Signal::INT);
    recording.finish().exits(0);
    assert_eq!(lane_threads(&file).len(), 1, "one lane, whose thread wrote its own record long before");
    let hello = example("hello.toml");
    let (_place, file) = recorded(&hello, &["--events", "job"]);
    assert!(!lane_threads(&file).is_empty(), "the threads took their rings after the recorder came");
}

/// The kernel's events would turn the program's own threads into others, had nobody said which they are.
#[test]
fn a_recording_that_came_later_knows_the_threads_from_others() {
    let place = folder();
    let file = within(&place, "probe.talea");
    let done = run(&["trace", "record", "--kernel", "switches", "--out", &file, "--", "true"]);
    if done.status == 2 && done.stderr.contains("the kernel withholds events") {
        talea_measure::skip(&done.stderr);
        return;
    }
    let program = Program::start(&place, "later");
    let (mut recording, file) = program.record_with(&place, "job", "switches");
    recording.await_growth(Path::new(&file), 4_000 * Record::BYTES as u64);
    recording.signal(rustix::process::Signal::INT);
    recording.finish().exits(0);
    let usage = stats(&file)["usage"].clone();
    let node = &usage["nodes"][0];
    assert_eq!((&usage["has_kernel"], &node["has_threads"]), (&Value::Bool(true), &Value::Bool(true)));
    let own = lane_threads(&file);
    let others = node["programs"].as_array().expect("a list");
    let is_own = |program: &&Value| own.contains(&program["thread"].as_u64().expect("a number"));
    assert_eq!(others.iter().find(is_own), None, "no thread of a lane is another program");
    // What the jobs say that they took; other programs may have had the processor in between, and for long.
    let trace = TraceFile::open(Path::new(&file)).expect("a trace");
    let (mut began, mut took_ns) = (None, 0);
    for record in trace.records().expect("records").map(|record| record.expect("whole")) {
        match record.event {
            Event::START => began = Some(record.time),
            Event::COMPLETE => took_ns += began.take().map_or(0, |began| (record.time - began).as_nanos()),
            _ => {}
        }
    }
    let execution_ns = node["execution_ns"].as_i64().expect("a time");
    assert!(took_ns > 0 && execution_ns <= took_ns * 11 / 10, "{execution_ns} of {took_ns}");
    assert!(execution_ns >= took_ns / 4, "{execution_ns} of {took_ns}");
}
