//! `trace explain` on simulated and real traces.

use crate::support::{example, folder, run, traced, within, write};
use serde_json::Value;
use std::fs;

/// Checks that the intervals of every explanation have no gaps and add up to its response.
fn add_up(answer: &Value) {
    let list = answer["explanations"].as_array().expect("a list");
    for one in list {
        let intervals = one["intervals"].as_array().expect("a list");
        let mut cursor = one["arrival_ns"].as_i64().expect("a number");
        for interval in intervals {
            assert_eq!(interval["from_ns"].as_i64(), Some(cursor), "{one}");
            cursor = interval["to_ns"].as_i64().expect("a number");
        }
        let skipped = one["outcome"].as_str().is_some_and(|outcome| outcome.starts_with("skipped"));
        assert!(skipped || one["end_ns"].as_i64() == Some(cursor), "{one}");
        let totals = one["totals"].as_array().expect("a list");
        let sum: i64 = totals.iter().filter_map(|total| total["ns"].as_i64()).sum();
        assert!(skipped || one["response_ns"].as_i64() == Some(sum), "{one}");
        let stages = ["before_release_ns", "waiting_ns", "preempted_or_executing_ns"];
        for total in totals {
            let sum: i64 = stages.iter().filter_map(|stage| total[stage].as_i64()).sum();
            assert_eq!(total["ns"].as_i64(), Some(sum), "{total}");
        }
    }
}

#[test]
fn misses_are_explained_the_worst_first() {
    let overload = example("overload.toml");
    let (_place, trace) = traced(&["sim", &overload, "--for", "2s"]);
    let text = run(&["trace", "explain", &trace, "--limit", "2"]).exits(0);
    assert!(text.stdout.contains("the 2 worst"), "{}", text.stdout);
    assert!(text.stdout.contains("patient #17: MISSED by 88.0ms"), "{}", text.stdout);
    assert!(text.stdout.contains("higher lane: control"), "{}", text.stdout);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 100), "{}", text.stdout);
    let json = run(&["trace", "explain", &trace, "--limit", "1000", "--json"]).exits(0).json();
    add_up(&json);
    let list = json["explanations"].as_array().expect("a list");
    assert_eq!(list.len() as u64, json["failed"].as_u64().expect("a number"));
    let lateness: Vec<i64> = list.iter().filter_map(|one| one["lateness_ns"].as_i64()).collect();
    assert!(lateness.is_sorted_by(|a, b| a >= b), "{lateness:?}");
}

#[test]
fn a_skip_names_the_instance_in_its_way() {
    let (place, trace) = traced(&["sim", &example("overload.toml"), "--for", "1s"]);
    let svg = within(&place, "skip.svg");
    let text = run(&["trace", "explain", &trace, "--task", "skipping", "--job", "1", "--svg", &svg]).exits(0);
    assert!(text.stdout.contains("skipping #1: SKIPPED"), "{}", text.stdout);
    assert!(
        text.stdout.contains("skipping #0 was still unfinished 120ms after its release"),
        "{}",
        text.stdout
    );
    let picture = fs::read_to_string(&svg).expect("written");
    assert!(picture.starts_with("<svg") && picture.contains("skipping #0"), "{picture}");
}

#[test]
fn a_chain_is_followed_hop_by_hop_over_nodes() {
    let (_place, trace) = traced(&["sim", &example("two-nodes.toml"), "--for", "1s"]);
    let json = run(&["trace", "explain", &trace, "--task", "grasp", "--job", "3", "--json"]).exits(0).json();
    add_up(&json);
    let one = &json["explanations"][0];
    let hops: Vec<&str> =
        one["hops"].as_array().expect("a list").iter().filter_map(|hop| hop["job"].as_str()).collect();
    assert_eq!((hops[0], hops[hops.len() - 1]), ("grasp.camera #3", "grasp.move #3"));
    let message = |total: &&Value| total["cause"] == "message" && total["blamed"] == "grasp.camera";
    let totals = one["totals"].as_array().expect("a list");
    assert_eq!(totals.iter().find(message).expect("it crosses over")["ns"], 500_000);
    let job =
        run(&["trace", "explain", &trace, "--task", "grasp.plan", "--job", "3", "--json"]).exits(0).json();
    assert_eq!(job["explanations"][0]["subject"]["job"], "grasp.plan #3");
}

#[test]
fn the_slowest_are_limited_too() {
    let (_place, trace) = traced(&["sim", &example("two-nodes.toml"), "--for", "1s"]);
    let list = |options: &[&str]| {
        let all = ["trace", "explain", &trace, "--worst", "--json"];
        let json = run(&[&all[..], options].concat()).exits(0).json();
        json["explanations"].as_array().expect("a list").clone()
    };
    let all = list(&[]);
    assert_eq!(all.len(), 3, "one of every task");
    assert_eq!(list(&["--limit", "1"]), all[..1]);
    let text = run(&["trace", "explain", &trace, "--worst", "--limit", "1"]).exits(0).stdout;
    assert!(text.contains("the slowest 1 of 3 tasks; the others with --limit"), "{text}");
    let text = run(&["trace", "explain", &trace, "--worst"]).exits(0).stdout;
    assert!(!text.contains("--limit"), "{text}");
}

#[test]
fn a_real_run_is_explained_like_a_simulated_one() {
    let (_place, trace) = traced(&["run", &example("two-nodes.toml"), "--rt", "warn", "--for", "300ms"]);
    let json = run(&["trace", "explain", &trace, "--worst", "--json"]).exits(0).json();
    add_up(&json);
    assert!(!json["explanations"].as_array().expect("a list").is_empty());
    run(&["trace", "explain", &trace]).exits(0);
}

#[test]
fn what_the_trace_does_not_have_is_refused() {
    let (place, trace) = traced(&["sim", &example("hello.toml"), "--for", "1s"]);
    let done = run(&["trace", "explain", &trace]).exits(0);
    assert!(done.stdout.contains("no deadline was missed"), "{}", done.stdout);
    let done = run(&["trace", "explain", &trace, "--task", "blonk"]).exits(2);
    assert!(done.stderr.contains("blink"), "{}", done.stderr);
    let done = run(&["trace", "explain", &trace, "--task", "blink", "--job", "99999"]).exits(2);
    assert!(done.stderr.contains("blink #99999"), "{}", done.stderr);
    let done = run(&["trace", "explain", &trace, "--svg", &within(&place, "none.svg")]).exits(2);
    assert!(done.stderr.contains("--worst"), "{}", done.stderr);
}

/// Where the lanes' threads have no priorities and the kernel was not recorded, nobody knows which of the jobs that have begun
/// on the one processor ran, and nothing says so.
#[test]
fn jobs_that_share_a_processor_unseen_are_said_to() {
    let place = folder();
    let trace = within(&place, "off.talea");
    let (talea, ofp) = (env!("CARGO_BIN_EXE_talea"), example("ofp.toml"));
    let record = ["trace", "record", "--kernel", "off", "--out", &trace, "--"];
    let command = [talea, "run", &ofp, "--rt", "off", "--for", "2s", "--fail-on", "never"];
    run(&[&record[..], &command].concat()).exits(0);
    let json = run(&["trace", "explain", &trace, "--worst", "--json"]).exits(0).json();
    add_up(&json);
    let list = json["explanations"].as_array().expect("a list");
    let totals = || list.iter().flat_map(|one| one["totals"].as_array().expect("a list"));
    let shared = totals().find(|total| total["cause"] == "shared").expect("2 s of overload overlap");
    assert!(shared["blamed"].is_null() && shared["ns"].as_i64() > Some(0), "{shared}");
    let svg = within(&place, "shared.svg");
    let text = run(&["trace", "explain", &trace, "--worst", "--svg", &svg]).exits(0).stdout;
    assert!(text.contains("shared unseen by several begun jobs"), "{text}");
    assert!(text.contains("for want of kernel.switch: which of several begun jobs"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(fs::read_to_string(&svg).expect("written").contains("shared unseen"));
}

#[test]
fn what_is_counted_is_said() {
    let (place, trace) = traced(&["sim", &example("overload.toml"), "--for", "2s"]);
    let first = |options: &[&str]| {
        let text = run(&[&["trace", "explain", &trace][..], options].concat()).exits(0).stdout;
        text.lines().next().expect("a line").to_owned()
    };
    assert!(first(&[]).contains(" instances did not end"), "{}", first(&[]));
    let control = first(&["--task", "control"]);
    assert!(control.ends_with(": no deadline of control was missed"), "{control}");
    let patient = first(&["--task", "patient"]);
    assert!(patient.contains(" instances of patient did not end"), "{patient}");
    let one = first(&["--task", "control", "--job", "3"]);
    assert_eq!(one, "overload under criticality", "the others have nothing to do with it");
    let svg = within(&place, "none.svg");
    let done = run(&["trace", "explain", &trace, "--task", "control", "--svg", &svg]).exits(2);
    assert!(done.stderr.contains("no deadline of control was missed, so"), "{}", done.stderr);
    let json = run(&["trace", "explain", &trace, "--task", "control", "--json"]).exits(0).json();
    assert_eq!((&json["task"], &json["failed"]), (&"control".into(), &0.into()));
}

#[test]
fn the_way_of_data_along_a_chain_is_taken_apart() {
    let robot = example("robot.toml");
    let (_place, trace) = traced(&["sim", &robot, "--for", "2s"]);
    let done = run(&["trace", "explain", &trace, "--chain", "lidar to drive"]).exits(0).fits();
    let words = done.words();
    for part in [
        "data age of chain \"lidar to drive\", to control.drive #",
        "until the job that used the value",
        "lidar.localise #",
    ] {
        assert!(words.contains(part), "{part} is missing in: {words}");
    }
    let json =
        run(&["trace", "explain", &trace, "--chain", "lidar to drive", "--time", "reaction", "--json"]);
    let json = json.exits(0).json();
    let one = &json["explanations"][0];
    assert_eq!(
        (&one["subject"]["measure"], one["hops"].as_array().map(Vec::len)),
        (&"reaction".into(), Some(5))
    );
    let report = run(&["trace", "stats", &trace, "--json"]).exits(0).json();
    let chains = report["chains"].as_array().expect("chains");
    let chain = chains.iter().find(|chain| chain["name"] == "lidar to drive").expect("it is measured");
    let longest = chain["reaction"]["time_ns"]["max"].as_i64().expect("a time");
    let explained = one["response_ns"].as_i64().expect("a time");
    // Of long times the report knows three digits.
    assert!((explained - longest).abs() * 500 <= longest, "{explained} and {longest}");
}

#[test]
fn exceeded_limits_of_chains_are_explained_with_the_missed_deadlines() {
    let place = folder();
    let text = std::fs::read_to_string(example("robot.toml"))
        .expect("readable")
        .replace("age = \"250ms\"", "age = \"40ms\"");
    let (file, out) = (write(&place, "tight.toml", &text), within(&place, "out"));
    run(&["sim", &file, "--for", "2s", "--out", &out, "--fail-on", "never"]).exits(0);
    let words = run(&["trace", "explain", &format!("{out}/trace.talea")]).exits(0).fits().words();
    assert!(words.contains("data age of chain \"lidar to drive\"") && words.contains("MISSED by"), "{words}");
    assert!(words.contains("no deadline was missed; 1 limit of a chain was exceeded"), "{words}");
    let json = run(&["trace", "explain", &format!("{out}/trace.talea"), "--json"]).exits(0).json();
    assert_eq!(json["exceeded_limits"], 1);

    // As many as are asked for, and no more.
    let text = text.replace("[[chain]]", "[[chain]]\nlatency = \"1us\"");
    let (file, out) = (write(&place, "tighter.toml", &text), within(&place, "tighter"));
    run(&["sim", &file, "--for", "2s", "--out", &out, "--fail-on", "never"]).exits(0);
    let trace = format!("{out}/trace.talea");
    let words = run(&["trace", "explain", &trace, "--limit", "1"]).exits(0).fits().words();
    assert_eq!(words.matches("MISSED by").count(), 1, "{words}");
    assert!(words.contains("of the limits are not explained here: give --chain"), "{words}");
    run(&["trace", "explain", &trace, "--chain", "lidar to drive", "--task", "x", "--job", "1"]).exits(2);
    let one = run(&["trace", "explain", &trace, "--chain", "imu to drive", "--time", "reaction", "--json"]);
    let json = one.exits(0).json();
    let null = serde_json::Value::Null;
    let (way, instances) = (&json["explanations"][0], &json["instances"]);
    assert_eq!((&way["deadline_ns"], &way["lateness_ns"], instances), (&null, &null, &null));
    let refused =
        run(&["trace", "explain", &format!("{out}/trace.talea"), "--chain", "lidar"]).exits(2).stderr;
    assert!(
        refused.contains("no chain \"lidar\"") && refused.contains("choose one of: stop to drive"),
        "{refused}"
    );
    let refused = run(&["trace", "explain", &out, "--chain", "x", "--time", "speed"]).exits(2).stderr;
    assert!(refused.contains("latency, reaction or age"), "{refused}");
}
