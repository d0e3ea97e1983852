//! `run` of hierarchies of schedulers on real threads. Where real-time priorities are not permitted, that they are refused
//! is tested, and the rest skipped with the reason on standard error.

use crate::support::{Done, Running, TRACE, alone, eventually, example, folder, run, within, write};
use rustix::process::Signal;
use std::fs;
use talea_record::Record;

/// The run, unless it was refused for want of privileges.
fn permitted(done: Done) -> Option<Done> {
    if done.status == 2 && done.stderr.contains("real-time priorities") {
        assert!(done.stderr.contains("talea doctor"), "{}", done.stderr);
        talea_measure::skip(&done.stderr);
        return None;
    }
    Some(done)
}

#[test]
fn without_real_time_priorities_a_hierarchy_is_refused() {
    let done = run(&["run", &example("figure-1.toml"), "--rt", "off", "--for", "1s"]).exits(2);
    for words in ["real-time priorities", "talea sim", "talea doctor"] {
        assert!(done.stderr.contains(words), "{words}: {}", done.stderr);
    }
    assert_eq!(done.stdout, "");
}

#[test]
fn preemptive_lanes_below_schedulers_are_refused_before_anything_runs() {
    let place = folder();
    let text = fs::read_to_string(example("mixed.toml")).expect("an example");
    let file = write(&place, "mixed.toml", &text.replace("\"nonpreemptive\"", "\"preemptive\""));
    let done = run(&["run", &file, "--for", "1s"]).exits(2);
    for words in ["flight", "lane_dispatch = \"nonpreemptive\"", "talea sim"] {
        assert!(done.stderr.contains(words), "{words}: {}", done.stderr);
    }
}

/// What two hierarchies grant is one processor, whichever process each of them is in.
#[test]
fn two_hierarchies_on_one_cpu_are_refused() {
    let place = folder();
    let node = |name: &str| {
        format!(
            "[[node]]\nname = \"{name}\"\ncpus = [0]\n\
             [[scheduler]]\nname = \"fp-{name}\"\nkind = \"fixed-priority\"\nnode = \"{name}\"\n\
             [[thread]]\nname = \"t-{name}\"\nwork = {{ burst = \"1ms\", period = \"10ms\" }}\n\
             under = [{{ scheduler = \"fp-{name}\", priority = 1 }}]\n"
        )
    };
    let text = format!("[system]\nname = \"both\"\n{}{}", node("left"), node("right"));
    let file = write(&place, "both.toml", &text);
    let done = run(&["run", &file, "--for", "100ms"]).exits(2);
    for words in ["\"left\" and \"right\" both have cpu 0", "cpus of its own"] {
        assert!(done.stderr.contains(words), "{words}: {}", done.stderr);
    }
    // They may be different machines to whoever only computes.
    run(&["check", &file]).exits(0);
    run(&["sim", &file, "--for", "100ms"]).exits(0);
}

/// The same jobs as in the simulation, beside a program that would have everything.
#[test]
fn tasks_run_below_schedulers_as_they_are_simulated() {
    let _alone = alone();
    let place = folder();
    let out = within(&place, "out");
    let file = example("mixed.toml");
    let arguments = ["run", &file, "--for", "3s", "--fail-on", "never", "--json", "--out", &out];
    let Some(done) = permitted(run(&arguments)) else { return };
    let ran = done.exits(0).json();
    let simulated = run(&["sim", &file, "--for", "3s", "--json"]).exits(0).json();
    let named = |json: &serde_json::Value, table: &str| -> Vec<String> {
        let entries = json["report"][table].as_array().expect("a table").iter();
        let line = |entry: &serde_json::Value| match table {
            // Instances that have arrived by the end; the last may be a moment late on a machine.
            "tasks" => format!("{} {}", entry["name"], entry["kind"]),
            _ => format!("{} {} {}", entry["node"], entry["label"], entry["discipline"]),
        };
        entries.map(line).collect()
    };
    for table in ["tasks", "lanes"] {
        assert_eq!(named(&ran, table), named(&simulated, table), "{table}");
    }
    let tasks = |json: &serde_json::Value| json["report"]["tasks"].as_array().expect("tasks").clone();
    for (task, expected) in tasks(&ran).iter().zip(tasks(&simulated)).take(3) {
        let [some, all] =
            [&task["released"], &expected["released"]].map(|count| count.as_u64().expect("a count"));
        assert!(some >= 1 && some <= all, "{task}");
        assert!(task["completed"].as_u64() >= Some(1), "{task}");
    }
    let stats = run(&["trace", "stats", &within(&place, "out/trace.talea"), "--json"]).exits(0).json();
    assert_eq!(stats["tasks"], ran["report"]["tasks"], "the trace has what the run counted");
}

/// The report has the parts of a simulation's, and beside them the kernel's account.
#[test]
fn a_hierarchy_runs_and_is_reported_as_a_simulation_is() {
    let _alone = alone();
    let place = folder();
    let out = within(&place, "out");
    let file = example("figure-1.toml");
    let arguments =
        ["run", &file, "--for", "700ms", "--fail-on", "never", "--no-slices", "--json", "--out", &out];
    let Some(done) = permitted(run(&arguments)) else { return };
    let ran = done.exits(0).json();
    let simulated = run(&["sim", &file, "--for", "700ms", "--json"]).exits(0).json();
    let keys = |json: &serde_json::Value, path: &str| -> Vec<String> {
        let found = json.pointer(path).unwrap_or_else(|| panic!("{path} in {json}"));
        found.as_object().expect("an object").keys().cloned().collect()
    };
    for path in ["/report", "/report/tasks/0", "/report/hierarchies/0", "/report/hierarchies/0/edges/0"] {
        assert_eq!(keys(&ran, path), keys(&simulated, path), "{path}");
    }
    let edges = |json: &serde_json::Value| -> Vec<String> {
        let edges = json["report"]["hierarchies"][0]["edges"].as_array().expect("edges");
        edges
            .iter()
            .map(|edge| format!("{} {} {}", edge["parent"], edge["child"], edge["guarantee"]))
            .collect()
    };
    assert_eq!(edges(&ran), edges(&simulated));
    let members = ran["run"]["hierarchies"][0]["members"].as_array().expect("members");
    let parking: Vec<&str> = members.iter().filter_map(|member| member["parking"].as_str()).collect();
    assert_eq!(parking, ["held", "work-conserving", "work-conserving"]);
    assert!(members.iter().any(|member| member["received_ns"].as_i64() > Some(0)), "{members:?}");
    let threads = ran["run"]["threads"].as_array().expect("threads");
    assert!(threads.iter().any(|thread| thread["name"] == "warden"), "{threads:?}");
    let stats = run(&["trace", "stats", &within(&place, "out/trace.talea"), "--json"]).exits(0).json();
    assert_eq!(stats["tasks"], ran["report"]["tasks"], "the trace has what the run counted");
    assert!(fs::metadata(place.path().join("out/schedule.csv")).expect("there").len() > 0);
}

#[test]
fn the_tables_of_a_run_have_the_kernels_account() {
    let _alone = alone();
    let arguments = ["run", &example("figure-1.toml"), "--for", "300ms", "--fail-on", "never"];
    let Some(done) = permitted(run(&arguments)) else { return };
    let done = done.exits(0);
    for words in ["under its schedulers", "guarantees", "processor time", "by the kernel", "held", "parked"] {
        assert!(done.stdout.contains(words), "{words}: {}", done.stdout);
    }
}

#[test]
fn a_broken_guarantee_makes_the_answer_no() {
    let _alone = alone();
    let place = folder();
    let text = "[system]\nname = \"broken\"\n[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\
        [[thread]]\nname = \"hog\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"FP\", priority = 2 }]\n\
        [[thread]]\nname = \"starved\"\nwork = \"cpu-bound\"\nrequires = \"PSBE 0.5 10ms\"\n\
        under = [{ scheduler = \"FP\", priority = 1 }]\n";
    let file = write(&place, "broken.toml", text);
    let Some(done) = permitted(run(&["run", &file, "--for", "300ms"])) else { return };
    assert!(done.exits(1).stdout.contains("NO"), "the table says which");
}

#[test]
fn an_interrupted_hierarchy_reports_what_it_did() {
    let _alone = alone();
    let place = folder();
    let out = within(&place, "out");
    let mut running = Running::start(&[
        "run",
        &example("figure-1.toml"),
        "--forever",
        "--json",
        "--fail-on",
        "never",
        "--out",
        &out,
    ]);
    let trace = place.path().join("out").join(TRACE);
    eventually("the run is refused or has begun", || {
        running.is_over() || fs::metadata(&trace).is_ok_and(|file| file.len() > 0)
    });
    if !running.is_over() {
        running.await_growth(&trace, 8 * Record::BYTES as u64);
        running.signal(Signal::INT);
    }
    let Some(done) = permitted(running.finish()) else { return };
    let json = done.exits(0).json();
    assert_eq!(json["run"]["stopped"], "interrupted");
    assert!(json["report"]["tasks"][0]["released"].as_u64() >= Some(1), "{json}");
}

/// The numbers of a process in `/proc/PID/stat` behind its name: state, parent, …, policy.
fn stat(process: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields = text.rsplit_once(')')?.1;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// The scheduling policy of a process's first thread; 0 is the ordinary one.
fn policy(process: u32) -> Option<u32> {
    stat(process)?.get(38)?.parse().ok()
}

/// A program that does not outlive the test.
struct Left(u32);

impl Drop for Left {
    fn drop(&mut self) {
        if let Some(process) = rustix::process::Pid::from_raw(self.0 as i32) {
            let _gone = rustix::process::kill_process(process, Signal::KILL);
        }
    }
}

/// What a run has started ends with it, also where it is killed.
#[test]
fn a_killed_run_leaves_no_program() {
    let _alone = alone();
    let place = folder();
    let note = within(&place, "number");
    let text = format!(
        "[system]\nname = \"killed\"\n[[scheduler]]\nname = \"RES\"\nkind = \"reservation\"\n\
         [[thread]]\nname = \"program\"\n\
         run = [\"sh\", \"-c\", \"ulimit -t 60; echo $$ > {note}.new; mv {note}.new {note}; while :; do :; done\"]\n\
         under = [{{ scheduler = \"RES\", guarantee = \"RESBH 5ms 20ms\" }}]\n"
    );
    let file = write(&place, "killed.toml", &text);
    let mut running = Running::start(&["run", &file, "--forever"]);
    eventually("the run is refused, or the program has begun", || {
        running.is_over() || fs::metadata(&note).is_ok()
    });
    if running.is_over() {
        permitted(running.finish());
        return;
    }
    let process: u32 = fs::read_to_string(&note).expect("there").trim().parse().expect("a number");
    let _left = Left(process);
    eventually("the program is managed", || policy(process).is_some_and(|policy| policy != 0));
    running.kill();
    eventually("it has ended", || stat(process).is_none_or(|fields| fields[0] == "Z" || fields[0] == "X"));
}

/// The process of this name that another one has started.
fn child_of(parent: u32, name: &str) -> Option<rustix::process::Pid> {
    let is_it = |process: &i32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.split_once(' ').is_some_and(|(_, rest)| {
            let (comm, rest) = rest.rsplit_once(") ").unwrap_or_default();
            comm.trim_start_matches('(') == name && rest.split(' ').nth(1) == Some(&parent.to_string())
        })
    };
    let processes = fs::read_dir("/proc").expect("a machine with processes").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    rustix::process::Pid::from_raw(numbers.into_iter().find(is_it)?)
}

/// What ends a hierarchy before its time is a failure of the run, and what it promised is not said to have been kept.
#[test]
fn a_hierarchy_that_ends_by_itself_fails_the_run() {
    let _alone = alone();
    let place = folder();
    let text = fs::read_to_string(example("shares.toml")).expect("an example");
    let file = write(&place, "shares.toml", &text);
    if permitted(run(&["run", &file, "--for", "100ms", "--fail-on", "never"])).is_none() {
        return;
    }
    for form in [&["--json", "--fail-on", "never"][..], &[]] {
        let out = within(&place, "out");
        let mut running = Running::start(&[&["run", &file, "--for", "120s", "--out", &out], form].concat());
        // The log grows once jobs have been done and windows judged.
        running.await_file(&place.path().join("out").join(TRACE));
        running.await_growth(&place.path().join("out").join(TRACE), 40 * Record::BYTES as u64);
        let guardian = child_of(running.id(), "talea-guardian").expect("its guardian");
        rustix::process::kill_process(guardian, Signal::KILL).expect("ours");
        let done = running.finish().exits(1);
        assert!(done.stderr.contains("ended early") && done.stderr.contains("guardian"), "{}", done.stderr);
        if form.is_empty() {
            assert!(done.stdout.starts_with("FAILED: "), "{}", done.stdout);
            assert!(
                done.stdout.contains("judged until") && !done.stdout.contains("  yes  "),
                "{}",
                done.stdout
            );
            continue;
        }
        let json = done.json();
        let hierarchy = &json["run"]["hierarchies"][0];
        assert!(hierarchy["cause"].as_str().is_some_and(|cause| cause.contains("guardian")), "{hierarchy}");
        let ended = hierarchy["ended_early"]["at_ns"].as_i64().expect("an instant");
        assert!(0 < ended && ended < 120_000_000_000, "{ended}");
        assert_eq!(json["report"]["hierarchies"][0]["ended_early"], hierarchy["ended_early"]);
        assert_eq!(json["run"]["stopped"], "failed");
    }
}
