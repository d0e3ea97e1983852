//! `trace` on a simulated trace.

use crate::support::{TRACE, example, folder, run, within};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use talea_record::{Event, Record, TraceFile};

/// A folder with the trace of two simulated seconds of the overload example in `out`.
fn traced() -> (tempfile::TempDir, String) {
    let place = folder();
    let out = within(&place, "out");
    run(&["sim", &example("overload.toml"), "--for", "2s", "--out", &out]).exits(0);
    let trace = place.path().join("out").join(TRACE).display().to_string();
    (place, trace)
}

#[test]
fn show_prints_records() {
    let (_place, trace) = traced();
    let all = run(&["trace", "show", &trace]).exits(0);
    assert!(all.stdout.lines().next().is_some_and(|line| line.contains("run-start")), "{}", all.stdout);
    assert!(all.last_line().contains("run-end"), "{}", all.last_line());
    assert_eq!(all.stderr, "");
    assert_eq!(run(&["trace", "show", &trace, "--limit", "3"]).exits(0).stdout.lines().count(), 3);
    let of_one = run(&["trace", "show", &trace, "--task", "skipping"]).exits(0);
    assert!(of_one.stdout.contains("skip"), "{}", of_one.stdout);
    assert!(of_one.stdout.lines().all(|line| line.contains("skipping #")), "{}", of_one.stdout);
}

#[test]
fn stats_are_those_of_the_run() {
    let (place, trace) = traced();
    let stats = run(&["trace", "stats", &trace, "--json"]).exits(0);
    assert_eq!(stats.stderr, "", "a whole trace gives no warning");
    let result = fs::read(place.path().join("out/result.json")).expect("written");
    let result: serde_json::Value = serde_json::from_slice(&result).expect("JSON");
    let mut told = stats.json();
    let mut beside =
        |name: &str| told.as_object_mut().and_then(|told| told.remove(name)).expect("beside the report");
    let [usage, contents, machine] = ["usage", "contents", "machine"].map(&mut beside);
    let [damage, promises] = ["damage", "promises"].map(&mut beside);
    assert_eq!((&damage["impossible"], &promises["edges"][0]), (&0.into(), &serde_json::Value::Null));
    assert_eq!(beside("beginning"), "recorded");
    assert_eq!(beside("has_system"), true);
    assert!(contents["records"].as_u64() > Some(0) && machine.is_null(), "{contents} {machine}");
    assert_eq!(told, result["report"]);
    let node = &usage["nodes"][0];
    assert_eq!((node["available_ns"].as_i64(), node["error_ns"].as_i64()), (Some(2_000_000_000), Some(0)));
    let text = run(&["trace", "stats", &trace, "--jobs"]).exits(0).stdout;
    for part in ["overload under criticality", "sum: 2s of 2s (1 processor for 2s), error 0", "per job"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_cut_trace_is_read_as_far_as_it_goes() {
    let (place, trace) = traced();
    let bytes = fs::read(&trace).expect("there");
    let cut = within(&place, "cut.talea");
    fs::write(&cut, &bytes[..bytes.len() - 7]).expect("writable");
    for command in ["show", "stats"] {
        let done = run(&["trace", command, &cut]).exits(0);
        assert!(done.stderr.contains("the last 33 bytes are part of a record"), "{}", done.stderr);
    }
}

#[test]
fn exports_are_written_together() {
    let (place, trace) = traced();
    let [perfetto, ctf, csv, schedule, svg] =
        ["o.pftrace", "ctf", "o.csv", "schedule.csv", "o.svg"].map(|name| within(&place, name));
    let arguments = [
        "trace",
        "export",
        &trace,
        "--perfetto",
        &perfetto,
        "--ctf",
        &ctf,
        "--csv",
        &csv,
        "--schedule",
        &schedule,
        "--svg",
        &svg,
    ];
    let done = run(&arguments).exits(0);
    assert_eq!(done.stdout, format!("written: {perfetto}, {ctf}, {csv}, {schedule}, {svg}\n"));
    assert!(
        fs::read_to_string(within(&place, "ctf/metadata")).expect("there").contains("system = \"overload\";")
    );
    assert!(fs::metadata(&perfetto).expect("there").len() > 1_000);
    assert!(fs::read_to_string(&csv).expect("there").lines().count() > 100);
    assert!(fs::read_to_string(&svg).expect("there").starts_with("<svg"));
    let exported = fs::read(&schedule).expect("there");
    let live = fs::read(place.path().join("out/schedule.csv")).expect("there");
    assert!(exported == live, "the exported schedule is that of the run");
}

#[test]
fn an_export_needs_a_format_and_never_replaces_the_trace() {
    let (place, trace) = traced();
    let done = run(&["trace", "export", &trace]).exits(2);
    assert!(done.stderr.contains("--perfetto"), "{}", done.stderr);
    let done = run(&["trace", "export", &trace, "--csv", &trace]).exits(2);
    assert!(done.stderr.contains("written over"), "{}", done.stderr);
    let svg = within(&place, "o.svg");
    let done = run(&["trace", "export", &trace, "--svg", &svg, "--from", "10h"]).exits(2);
    assert!(done.stderr.contains("of which the trace tells from 0 to 2.00s"), "{}", done.stderr);
    run(&["trace", "export", &trace, "--svg", &svg, "--from", "1s", "--length", "2562047h"]).exits(0);
    run(&["trace", "stats", &trace]).exits(0);
}

#[test]
fn a_picture_of_a_damaged_trace_is_drawn_or_refused() {
    let (place, trace) =
        crate::support::traced(&["run", &example("hello.toml"), "--rt", "off", "--for", "300ms"]);
    let (damaged, svg) = (within(&place, "damaged.talea"), within(&place, "o.svg"));
    let records: Vec<Record> = {
        let trace = TraceFile::open(trace.as_ref()).expect("a trace");
        trace.records().expect("readable").map(|record| record.expect("whole")).collect()
    };
    let whole = fs::read(&trace).expect("there");
    let head = u64::from_le_bytes(whole[48..56].try_into().expect("a word")) as usize;
    for event in [Event::START, Event::COMPLETE] {
        let mut places = records.iter().enumerate().filter(|(_, record)| record.event == event);
        let (index, _) = places.next_back().expect("jobs ran");
        for time in [i64::MIN + 5, i64::MAX - 5] {
            let mut bytes = whole.clone();
            bytes[head + (index + index / 256) * Record::BYTES..][..8].copy_from_slice(&time.to_le_bytes());
            fs::write(&damaged, bytes).expect("writable");
            // A seal stands after every 256 records.
            let read = TraceFile::open(damaged.as_ref()).expect("a trace").replay(&mut Vec::new());
            assert_eq!(read.expect("readable").damage.impossible, 1);
            let long = run(&["trace", "export", &damaged, "--svg", &svg, "--length", "2562047h"]).exits(0);
            assert!(long.stderr.contains("1 record cannot be and is left out"), "{}", long.stderr);
            run(&["trace", "export", &damaged, "--svg", &svg]).exits(0);
        }
    }
}

/// What babeltrace2 prints of a folder; `None`, visibly, if there is no babeltrace2.
fn babeltrace(folder: &str) -> Option<String> {
    match Command::new("babeltrace2").args(["--clock-cycles", "--no-delta", folder]).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8(output.stdout).expect("UTF-8"))
        }
        Err(error) => {
            talea_measure::skip(format!(
                "babeltrace2 does not run; install the package babeltrace2 ({error})"
            ));
            None
        }
    }
}

#[test]
fn babeltrace_finds_every_event_of_a_simulated_run() {
    let (place, trace) = traced();
    let ctf = within(&place, "ctf");
    run(&["trace", "export", &trace, "--ctf", &ctf]).exits(0);
    let Some(printed) = babeltrace(&ctf) else { return };
    let file = TraceFile::open(trace.as_ref()).expect("a trace");
    let names = talea_record::NameSpace::default();
    let mut expected: Vec<String> = Vec::new();
    for record in file.records().expect("readable") {
        let record = record.expect("readable");
        let (family, entry) = names.event(record.event).expect("builtin");
        let mut line = format!("{:020} {}:{}", record.time.as_nanos(), family.name, entry.name);
        if record.event.is_job() {
            let (job, lane) = (record.job(), record.source);
            let name = &file.metadata().operations[job.operation.index()].name;
            let operation = job.operation.index();
            line += &format!(
                " job_operation = ( \"{name}\" : container = {operation} ), job_instance = {}",
                job.instance
            );
            line += &format!(
                ", lane = ( \"{}\" : container = {lane} )",
                file.metadata().lanes[usize::from(lane)].label
            );
        }
        expected.push(line);
    }
    // `[time] name: { cpu_id = 0 }, { job_operation = …, lane = …, … }` up to the lane, without the processor.
    let mut found: Vec<String> = Vec::new();
    for line in printed.lines() {
        let (time, rest) = line[1..].split_once("] ").expect("a time");
        let (name, fields) = rest.split_once(": { ").expect("a name");
        let fields = fields.strip_prefix("cpu_id = 0 }, { ").unwrap_or(fields);
        let end = fields.find("lane = ").and_then(|lane| Some(lane + fields[lane..].find(')')? + 1));
        found.push(match end {
            Some(end) if name.starts_with("job:") => format!("{time} {name} {}", &fields[..end]),
            _ => format!("{time} {name}"),
        });
    }
    assert!(expected.len() > 100, "{} events", expected.len());
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_is_written_beside_other_formats() {
    let (place, trace) = traced();
    let [parquet, csv] = ["o.parquet", "o.csv"].map(|name| within(&place, name));
    let done = run(&["trace", "export", &trace, "--csv", &csv, "--parquet", &parquet]).exits(0);
    assert_eq!(done.stdout, format!("written: {parquet}, {csv}\n"));
    assert!(fs::read(&parquet).expect("there").ends_with(b"PAR1"));
    let done = run(&["trace", "export", &trace, "--csv", &csv, "--parquet", &csv]).exits(2);
    assert!(done.stderr.contains("written over"), "{}", done.stderr);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_parquet_nothing_is_written_where_it_is_asked_for() {
    let (place, trace) = traced();
    let [parquet, csv] = ["o.parquet", "o.csv"].map(|name| within(&place, name));
    let done = run(&["trace", "export", &trace, "--csv", &csv, "--parquet", &parquet]).exits(2);
    assert!(done.stderr.contains("--features parquet"), "{}", done.stderr);
    assert!(!Path::new(&parquet).exists() && !Path::new(&csv).exists());
}

#[test]
fn exports_never_replace_each_other_or_files_of_others() {
    let (place, trace) = traced();
    let (same, folder) = (within(&place, "same"), within(&place, "folder"));
    let done = run(&["trace", "export", &trace, "--csv", &same, "--perfetto", &same]).exits(2);
    assert!(done.stderr.contains("written over"), "{}", done.stderr);
    fs::create_dir(&folder).expect("writable");
    fs::write(within(&place, "folder/letter.txt"), "dear").expect("writable");
    let done = run(&["trace", "export", &trace, "--ctf", &folder]).exits(2);
    assert!(done.stderr.contains("letter.txt") && done.stderr.contains("empty folder"), "{}", done.stderr);
    let done = run(&["trace", "export", &trace, "--perfetto", "/dev/full"]).exits(2);
    assert!(done.stderr.contains("/dev/full is incomplete"), "{}", done.stderr);
    let done = run(&["trace", "export", &trace, "--csv", "-"]).exits(2);
    assert!(done.stderr.contains("not to standard output"), "{}", done.stderr);
    let done = run(&["trace", "export", &trace, "--ctf", &trace]).exits(2);
    assert!(done.stderr.contains("written over"), "{}", done.stderr);
}

#[test]
fn an_export_that_fails_leaves_what_was_there() {
    let (place, trace) = traced();
    let kept = place.path().join("kept");
    fs::create_dir(&kept).expect("writable");
    let formats: &[&str] = &[
        "--perfetto",
        #[cfg(feature = "parquet")]
        "--parquet",
        "--csv",
        "--schedule",
    ];
    let files: Vec<_> = formats.iter().map(|format| kept.join(&format[2..])).collect();
    for (format, file) in formats.iter().zip(&files) {
        fs::write(file, "precious").expect("writable");
        // A file may grow to one block of 512 bytes, as on a full disk; the signal for that is ignored.
        let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
        let file_name = file.display().to_string();
        let command = [env!("CARGO_BIN_EXE_talea"), "trace", "export", &trace, format, &file_name];
        let output = Command::new("sh").args(["-c", script, "sh"]).args(command).output().expect("sh runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{format}: {told}");
        for part in [&format!("cannot write {file_name}: "), "File too large"] {
            assert!(told.contains(part), "{told}");
        }
        assert!(told.contains(&format!("{file_name} is as it was before")), "{told}");
        assert_eq!(fs::read_to_string(file).expect("there"), "precious");
    }
    assert_eq!(fs::read_dir(&kept).expect("there").count(), files.len(), "drafts are removed");
    for (format, file) in formats.iter().zip(&files) {
        let file_name = file.display().to_string();
        run(&["trace", "export", &trace, format, &file_name]).exits(0);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode(file), mode(trace.as_ref()), "whoever may read the trace");
    }
}

#[test]
fn records_are_picked_by_family_and_event_and_shown_as_json() {
    let (_place, trace) = traced();
    let count = |arguments: &[&str]| {
        run(&[&["trace", "show", &trace], arguments].concat()).exits(0).stdout.lines().count()
    };
    let (all, starts, completes) =
        (count(&[]), count(&["--event", "start"]), count(&["--event", "job:complete"]));
    assert!(starts > 0 && completes > 0 && starts + completes < all, "{starts} {completes} {all}");
    assert_eq!(count(&["--event", "start", "--event", "complete"]), starts + completes);
    assert_eq!(count(&["--family", "run", "--event", "start"]), 0);
    for (same, other) in [
        ("job.start", "job:start"),
        ("job,-job.start", "job.*,-start"),
        ("all", "*"),
        ("start,complete", "job.start,job.comp*"),
        ("st*", "job.st*"),
    ] {
        assert_eq!(count(&["--event", same]), count(&["--events", other]), "{same} {other}");
    }
    assert_eq!(count(&["--event", "job.start,job.complete"]), starts + completes);
    assert_eq!(count(&["--event", "all"]), all);
    assert_eq!(count(&["--family", "run", "--family", "job"]) + count(&["--family", "dispatch"]), all);
    let done = run(&["trace", "show", &trace, "--json", "--event", "complete", "--limit", "2"]).exits(0);
    for line in done.stdout.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["event"], "complete");
        assert!(line["fields"]["nominal"].is_number() && line["task"].is_string(), "{line}");
    }
    let done = run(&["trace", "show", &trace, "--event", "strat"]).exits(2);
    assert!(
        done.stderr.contains("no family or event \"strat\"; did you mean \"start\"?")
            && done.stderr.contains("job.start"),
        "{}",
        done.stderr
    );
    let done = run(&["trace", "show", &trace, "--family", "jobs"]).exits(2);
    assert!(done.stderr.contains("choose one of: run, job, dispatch, kernel"), "{}", done.stderr);
}

#[test]
fn only_the_events_that_are_asked_for_are_exported() {
    let (place, trace) = crate::support::traced(&["sim", &example("hello.toml"), "--for", "1s"]);
    let table = within(&place, "some.csv");
    let events = |selection: &[&str]| {
        run(&[&["trace", "export", &trace, "--csv", &table], selection].concat()).exits(0);
        let text = std::fs::read_to_string(&table).expect("written");
        let events = text.lines().skip(1).map(|row| row.split(',').nth(1).expect("an event").to_owned());
        events.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(events(&["--events", "job.re*,run.run-end,-resume"]), ["release", "run-end"]);
    assert_eq!(events(&["--events", "complete", "--event", "start"]), ["complete", "start"]);
    assert!(events(&[]).len() > 3);
    let svg = within(&place, "some.svg");
    let refused = run(&["trace", "export", &trace, "--svg", &svg, "--events", "job"]).exits(2);
    assert!(refused.stderr.contains("--perfetto"), "{}", refused.stderr);
    let unknown = run(&["trace", "export", &trace, "--csv", &table, "--events", "jib"]).exits(2);
    assert!(unknown.stderr.contains("did you mean \"job\"?"), "{}", unknown.stderr);
}
