//! `trace flow`: what led to a job and what came of it.

use crate::support::{example, folder, recorded, run, traced, within, write};
use serde_json::Value;
use std::collections::BTreeSet;

/// The jobs of a list of steps.
fn jobs(list: &Value) -> BTreeSet<&str> {
    list.as_array().expect("a list").iter().map(|step| step["job"].as_str().expect("a name")).collect()
}

/// In the examples' robot, from the operator's stop to the drive and back, over events, values and successors.
#[test]
fn the_way_from_a_stop_to_the_drive_is_the_same_in_both_directions() {
    let (_place, trace) = traced(&["sim", &example("robot.toml"), "--for", "2s"]);
    let flow = |task: &str, job: u64| {
        let job = job.to_string();
        run(&["trace", "flow", &trace, "--task", task, "--job", &job, "--json"]).exits(0).json()
    };
    let of_stop = flow("stop", 1);
    let came = of_stop["came_of_it"].as_array().expect("a list");
    assert_eq!(jobs(&of_stop["led_to_it"]), ["stop #1"].into(), "something outside released it");
    let drives: Vec<&Value> = came
        .iter()
        .filter(|step| step["job"].as_str().is_some_and(|job| job.starts_with("control.drive")))
        .collect();
    assert!(drives.len() > 10, "the word stays the latest until the next one: {of_stop}");
    for drive in [drives[0], drives[drives.len() - 1]] {
        let number: u64 =
            drive["job"].as_str().expect("a name")["control.drive #".len()..].parse().expect("a number");
        let back = flow("control.drive", number);
        let led = jobs(&back["led_to_it"]);
        let way = [format!("control.step #{number}"), "halt #1".into(), "stop #1".into()];
        assert!(way.iter().all(|job| led.contains(job.as_str())), "{led:?}");
        // Of the sensors it acted on one job each.
        for sensor in ["imu.read #", "lidar.scan #"] {
            assert_eq!(led.iter().filter(|job| job.starts_with(sensor)).count(), 1, "{led:?}");
        }
    }
}

/// What the chain says of its longest age, and what led to that job.
#[test]
fn the_age_of_what_led_to_a_job_is_that_of_the_chain() {
    let (_place, trace) = traced(&["sim", &example("robot.toml"), "--for", "2s"]);
    let chain = ["trace", "explain", &trace, "--chain", "imu to drive", "--time", "age", "--json"];
    let oldest = run(&chain).exits(0).json()["explanations"][0].clone();
    let hops = oldest["hops"].as_array().expect("a list");
    let name = |hop: usize| hops[hop]["job"].as_str().expect("a name").to_owned();
    let last = name(hops.len() - 1);
    let number = last.rsplit('#').next().expect("a number");
    let options = ["--task", "control.drive", "--job", number, "--back"];
    let back = run(&[&["trace", "flow", &trace], &options[..], &["--json"]].concat()).exits(0).json();
    let led = back["led_to_it"].as_array().expect("a list");
    let first = led.iter().find(|step| step["job"] == *name(0)).expect("the sample led to it");
    let age =
        led[0]["ended_ns"].as_i64().zip(first["arrived_ns"].as_i64()).map(|(end, arrived)| end - arrived);
    assert_eq!(age, oldest["response_ns"].as_i64(), "{oldest}");
    let text = run(&[&["trace", "flow", &trace], &options[..]].concat()).exits(0).fits();
    assert!(
        text.stdout.contains(&format!("what led to {last}")) && text.stdout.contains(&name(0)),
        "{}",
        text.stdout
    );
}

#[test]
fn limits_of_a_way_are_said_and_so_is_what_is_not_there() {
    let (place, trace) = traced(&["sim", &example("robot.toml"), "--for", "500ms"]);
    let flow = |options: &[&str]| run(&[&["trace", "flow", &trace, "--task"], options].concat());
    let cut = flow(&["control", "--job", "10", "--back", "--depth", "1"]).exits(0).fits();
    assert!(cut.stdout.contains("there is more: --depth and --limit"), "{}", cut.stdout);
    assert!(
        flow(&["control", "--job", "10", "--back", "--depth", "1", "--json"]).exits(0).json()["is_cut"]
            == true
    );
    let none = flow(&["control", "--job", "9999"]).exits(2);
    assert!(none.stderr.contains("the trace does not tell of control.drive #9999"), "{}", none.stderr);
    let unknown = flow(&["contrl", "--job", "0"]).exits(2);
    assert!(unknown.stderr.contains("the trace has no task \"contrl\""), "{}", unknown.stderr);
    assert!(flow(&["control", "--job", "1", "--depth", "0"]).exits(2).stderr.contains("1..=100"));
    // Nobody is linked to whoever is alone.
    let alone = "[system]\nname = \"alone\"\n[[node]]\nname = \"n\"\ncpus = [0]\n[[task]]\nname = \"t\"\nperiod = \"5ms\"\nwcet = \"1ms\"\n";
    let alone = write(&place, "alone.toml", alone);
    let out = within(&place, "alone");
    run(&["sim", &alone, "--for", "100ms", "--out", &out]).exits(0);
    let text =
        run(&["trace", "flow", &within(&place, "alone/trace.talea"), "--task", "t", "--job", "3"]).exits(0);
    assert_eq!(text.stdout.matches("nothing that the trace tells of").count(), 2, "{}", text.stdout);
}

#[test]
fn what_was_not_recorded_is_no_way_that_is_not_there() {
    let flow = |trace: &str| run(&["trace", "flow", trace, "--task", "imu", "--job", "2", "--back"]).exits(0);
    let (_place, trace) = recorded(&example("robot.toml"), &["--events", "run,job"]);
    let done = flow(&trace);
    let text = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("port.publish, port.take, event.deliver"), "{text}");
    assert!(text.contains("record with --events run,job,port,event"), "{text}");
    assert!(done.stdout.contains("imu.read #2"), "a successor is known all the same: {}", done.stdout);
    let (_place, trace) = recorded(&example("robot.toml"), &["--events", "run,job,port,event"]);
    let done = flow(&trace);
    assert!(!done.stderr.contains("not all ways"), "{}", done.stderr);
    assert!(done.stdout.contains("imu.read.sample by imu.estimate.sample"), "{}", done.stdout);
}

/// Of a task of which some jobs never came the others are told of, and of one that was left out why.
#[test]
fn what_was_left_out_or_aborted_is_said() {
    let place = folder();
    let text = r#"
[system]
name = "shed"
strategy = "criticality"
[[node]]
name = "n"
cpus = [0]
[[task]]
name = "source"
period = "10ms"
wcet = "1ms"
criticality = "high"
outputs = [{ name = "value" }]
[[task]]
name = "aborted"
trigger = { output = "source.value" }
deadline = "60ms"
overrun = "abort"
subtask = [{ name = "first", wcet = "15ms" }, { name = "second", wcet = "1ms" }]
[[task]]
name = "early"
trigger = "external"
separation = "20ms"
excess = "drop"
arrivals = { list = ["5ms", "6ms"] }
wcet = "1ms"
"#;
    let file = write(&place, "shed.toml", text);
    let out = within(&place, "out");
    run(&["sim", &file, "--for", "200ms", "--fail-on", "never", "--out", &out]).exits(0);
    let trace = within(&place, "out/trace.talea");
    let flow = |task: &str, job: &str| run(&["trace", "flow", &trace, "--task", task, "--job", job]);
    let aborted = flow("aborted", "3").exits(0);
    assert!(
        aborted.stdout.contains("what led to aborted.first #3") && aborted.stdout.contains("was aborted at"),
        "{}",
        aborted.stdout
    );
    assert!(aborted.stdout.contains("released by source.value"), "{}", aborted.stdout);
    let early = flow("early", "1").exits(2);
    assert!(early.stderr.contains("early #1 was left out, as it came too early"), "{}", early.stderr);
    let rules = run(&["trace", "verify", &file, &trace, "--json"]).exits(0).json();
    let overrun = rules["rules"]
        .as_array()
        .expect("rules")
        .iter()
        .find(|rule| rule["rule"] == "overrun")
        .expect("judged")
        .clone();
    assert_eq!(overrun["violations"], 0, "{overrun}");
}
