//! Channels in system files: checked, simulated, run and traced by the command.

use crate::support::{Running, TRACE, alone, eventually, example, folder, listed, run, talea, within, write};
use serde_json::Value;

/// What came of the events of each task, without how long they were on the way.
fn subscriptions(report: &Value) -> Vec<(String, [u64; 4])> {
    let of = |one: &Value| {
        let count = |key: &str| one[key].as_u64().expect("a number");
        let counts = ["pushed", "delivered", "discarded", "expired"].map(count);
        (one["task"].as_str().expect("a name").to_owned(), counts)
    };
    report["report"]["subscriptions"].as_array().expect("a list").iter().map(of).collect()
}

#[test]
fn the_example_is_checked_simulated_and_run_alike() {
    let (place, file) = (folder(), example("notification.toml"));
    run(&["check", &file, "--fail-on", "any"]).exits(0);
    let (simulated, ran) = (within(&place, "sim"), within(&place, "run"));
    let of_sim = run(&["sim", &file, "--for", "2s", "--out", &simulated, "--json"]).exits(0).json();
    // Real-time work of other tests would take its processor.
    let alone = alone();
    let of_run =
        run(&["run", &file, "--for", "2s", "--out", &ran, "--json", "--fail-on", "never"]).exits(0).json();
    drop(alone);
    let (of_sim, of_run) = (subscriptions(&of_sim), subscriptions(&of_run));
    assert_eq!(of_sim.len(), 4);
    for ((task, simulated), (other, ran)) in of_sim.iter().zip(&of_run) {
        assert_eq!(task, other);
        // The watchdog has jobs when nothing comes, and those have no event.
        assert!(simulated[0] >= 400 && (simulated[1] > 100) != (task == "silence"), "{task}: {simulated:?}");
        // On threads a stall of the machine may cost some their time or their room.
        let near = |one: u64, other: u64| one.abs_diff(other) <= 8 + one / 10;
        assert!(near(simulated[0], ran[0]), "{task}: {simulated:?} and {ran:?}");
        assert!(near(simulated[1], ran[1] + ran[2] + ran[3]), "{task}: {simulated:?} and {ran:?}");
    }
    let trace = format!("{simulated}/{TRACE}");
    let shown = run(&["trace", "show", &trace, "--events", "event"]).exits(0).stdout;
    assert!(
        shown.contains("Robot/Tilt into motion") && shown.contains("Robot/Battery, from battery #0"),
        "{shown}"
    );
    run(&["trace", "verify", &file, &trace]).exits(0);
    // Which event a job had, of whom; and the way of the data that led through it.
    let explained = run(&["trace", "explain", &trace, "--task", "brake", "--worst"]).exits(0).fits().stdout;
    assert!(
        explained.contains("took Robot/") && explained.contains("from channel motion, pushed by "),
        "{explained}"
    );
    for trace in [trace, format!("{ran}/{TRACE}")] {
        let way = run(&["trace", "explain", &trace, "--chain", "tilt to brake", "--json"]).exits(0).json();
        let way = &way["explanations"][0];
        let (hops, event) = (way["hops"].as_array().expect("jobs"), &way["events"][0]);
        assert_eq!((&event["job"], &event["pushed_by"]), (&hops[2]["job"], &hops[1]["job"]), "{way}");
        assert_eq!((&event["channel"], &event["type"]), (&"motion".into(), &"Robot/Tilt".into()));
    }
    // What was not recorded is not said to be nothing.
    let table = run(&["sim", &file, "--for", "1s"]).exits(0).stdout;
    assert!(table.contains("events\n") && table.contains("delivered"), "{table}");
}

/// Who takes all that wait has everything; what is more than may wait is discarded, and counted at who lost it; and who is released by each fourth event has
/// a bound, which it would not have were it released by each.
#[test]
fn batches_are_taken_by_who_has_time() {
    let (place, file) = (folder(), example("batches.toml"));
    let checked = run(&["check", &file, "--json"]).exits(0).json();
    let tasks = checked["tasks"].as_array().expect("a list");
    assert!(tasks.iter().all(|task| task["bound_ns"].is_number()), "{tasks:?}");
    let outs = ["sim", "run"].map(|verb| within(&place, verb));
    let of_sim = run(&["sim", &file, "--for", "2s", "--out", &outs[0], "--json"]).exits(0).json();
    // Real-time work of other tests would take its processor.
    let alone = alone();
    let of_run = run(&["run", &file, "--for", "2s", "--out", &outs[1], "--json", "--fail-on", "never"]);
    let of_run = of_run.exits(0).json();
    drop(alone);
    let of = |report: &Value| -> Vec<(String, [u64; 4])> {
        let all = report["report"]["subscriptions"].as_array().expect("a list");
        let name =
            |one: &Value| one["operation"].as_str().or(one["task"].as_str()).expect("a name").to_owned();
        all.iter().map(name).zip(subscriptions(report).into_iter().map(|(_, counts)| counts)).collect()
    };
    let named = |all: &[(String, [u64; 4])], name: &str| {
        all.iter().find(|(of, _)| of == name).unwrap_or_else(|| panic!("{name} is in {all:?}")).1
    };
    let (of_sim, of_run) = (of(&of_sim), of(&of_run));
    for all in [&of_sim, &of_run] {
        let [pushed, delivered, discarded, expired] = named(all, "ledger.count");
        assert!(pushed > 250 && discarded + expired == 0 && pushed - delivered < 20, "{all:?}");
        assert!(named(all, "ledger.book")[1] > 80, "{all:?}");
        let [pushed, delivered, discarded, _] = named(all, "samples");
        assert!(delivered >= 45 && discarded > pushed / 2 && delivered + discarded <= pushed, "{all:?}");
        let [pushed, delivered, ..] = named(all, "pack");
        assert!(delivered % 4 == 0 && delivered >= 60 && pushed - delivered < 12, "{all:?}");
        let [_, delivered, discarded, _] = named(all, "display");
        assert!((20..30).contains(&delivered) && discarded > 150, "{all:?}");
    }
    for out in &outs {
        let trace = format!("{out}/{TRACE}");
        let shown = run(&["trace", "show", &trace, "--events", "event.deliver"]).exits(0).stdout;
        let first = shown.lines().filter(|line| line.contains(" ledger.count #1 ")).count();
        assert!(first > 2, "one job has several: {shown}");
        let packed = shown.lines().filter(|line| line.contains(" pack #3 ")).count();
        assert_eq!(packed, 4, "one job for four: {shown}");
    }
    run(&["trace", "verify", &file, &format!("{}/{TRACE}", outs[0])]).exits(0);
}

/// Fields of headers decide which events a task has, in which order and for how long, in simulations as in runs.
#[test]
fn diagnostics_go_by_fields_of_headers() {
    let (place, file) = (folder(), example("diagnostics.toml"));
    // But for the log, which is to get more than it has time for.
    let checked = run(&["check", &file, "--json"]).exits(0).json();
    let tasks = checked["tasks"].as_array().expect("a list");
    let unbounded: Vec<&Value> = tasks.iter().filter(|task| task["bound_ns"].is_null()).collect();
    assert!(matches!(&unbounded[..], [task] if task["name"] == "log"), "{unbounded:?}");
    let outs = ["sim", "run"].map(|verb| within(&place, verb));
    let of_sim = run(&["sim", &file, "--for", "2s", "--out", &outs[0], "--json"]).exits(0).json();
    // Real-time work of other tests would take its processor.
    let alone = alone();
    let of_run = run(&["run", &file, "--for", "2s", "--out", &outs[1], "--json", "--fail-on", "never"])
        .exits(0)
        .json();
    drop(alone);
    let named = |all: &[(String, [u64; 4])], task: &str| {
        all.iter().find(|(name, _)| name == task).unwrap_or_else(|| panic!("{task} is in {all:?}")).1
    };
    for report in [&of_sim, &of_run] {
        let all = subscriptions(report);
        let [pushed, delivered, ..] = named(&all, "log");
        assert!(pushed > 200 && (10..pushed / 2).contains(&delivered), "{all:?}");
        let tasks = report["report"]["tasks"].as_array().expect("a list");
        let merging = tasks.iter().find(|task| task["name"] == "ui").expect("it is there");
        assert!(merging["merged"].as_u64().is_some_and(|merged| merged > 100), "{merging}");
    }
    let of_sim = subscriptions(&of_sim);
    assert_eq!(named(&of_sim, "stop"), [200, 20, 0, 0]);
    let [_, _, discarded, expired] = named(&of_sim, "log");
    assert!(discarded > 0 && expired > 0, "{of_sim:?}");
    for out in &outs {
        let trace = format!("{out}/{TRACE}");
        let shown = run(&["trace", "show", &trace, "--events", "event.deliver"]).exits(0).stdout;
        // Which jobs of what each task had events of.
        let had = |task: &str, of: &str| -> Vec<u64> {
            let lines = shown.lines().filter(|line| line.contains(&format!(" {task} #")));
            let number = |line: &str| line.split_once(&format!("from {of} #"))?.1.trim().parse().ok();
            lines.filter_map(number).collect()
        };
        let stops = had("stop", "motors");
        assert!(stops.len() >= 15 && stops.iter().all(|job| job % 10 == 9), "the severe ones: {stops:?}");
        assert!(had("stop", "battery").is_empty());
        let reports = had("log", "motors");
        // Of mission 7, and none of mission 8.
        assert!(!reports.is_empty() && reports.iter().all(|job| job % 4 != 3), "{reports:?}");
        // All that is severe and of mission 7 is told in the end: it goes before the rest, which is discarded for it.
        let severe = reports.iter().filter(|job| **job % 10 == 9).count();
        assert!(severe >= 8, "{severe}: {reports:?}");
        run(&["trace", "verify", &file, &trace]).exits(0);
    }
}

/// The flight program whose route are consumers of events is scheduled as the one whose route are successors: each leg has the deadline of the
/// route that it belongs to.
#[test]
fn legs_of_a_route_are_scheduled_alike_as_successors_and_as_consumers() {
    let place = folder();
    let names = ["ofp", "ofp-events"];
    let schedules = names.map(|name| {
        let schedule = within(&place, &format!("{name}.csv"));
        let arguments = ["--for", "10s", "--schedule", &schedule, "--fail-on", "never"];
        run(&[&["sim", &example(&format!("{name}.toml"))], &arguments[..]].concat()).exits(0);
        // Who ran where and when; tasks and instances are counted otherwise.
        let text = std::fs::read_to_string(&schedule).expect("it was written");
        let column = |line: &str, index: usize| line.split(',').nth(index).expect("seven").to_owned();
        let of_line = |line: &str| [0, 1, 2, 3, 5].map(|index| column(line, index));
        text.lines().map(of_line).collect::<Vec<_>>()
    });
    assert!(schedules[0].len() > 1_000);
    assert_eq!(schedules[0], schedules[1]);

    let bounds =
        names.map(|name| run(&["check", &example(&format!("{name}.toml")), "--json"]).exits(0).json());
    let bound = |report: &Value, task: &str| {
        let tasks = report["tasks"].as_array().expect("a list");
        tasks.iter().find(|one| one["name"] == task).expect("it is there")["bound_ns"].clone()
    };
    for (successor, consumer) in [("route", "leg-6"), ("sensors", "sensors"), ("display", "display")] {
        let (one, other) = (bound(&bounds[0], successor), bound(&bounds[1], consumer));
        assert!(one.is_u64() && one == other, "{successor} {one}, {consumer} {other}");
    }

    // On threads, too, each has the deadline of who released it, by the judge's reckoning. Where other runs leave the soft lane no time, there is
    // no event, and another run is asked.
    let (file, out) = (example("ofp-events.toml"), within(&place, "run"));
    let _alone = alone();
    let has_cases = |attempt: usize| {
        let out = format!("{out}-{attempt}");
        run(&["run", &file, "--for", "1s", "--out", &out, "--fail-on", "never"]).exits(0);
        let verify = ["trace", "verify", &file, &format!("{out}/{TRACE}"), "--json"];
        // Whatever else a busy machine does to the run, the deadlines are right.
        let output = talea(&verify).output().expect("it starts");
        let verified: Value = serde_json::from_slice(&output.stdout).expect("a verdict");
        let rules = verified["rules"].as_array().expect("a list");
        ["release", "triggers", "events"].into_iter().all(|name| {
            let rule = rules.iter().find(|rule| rule["rule"] == name).expect("it is judged");
            assert_eq!(rule["violations"], 0, "{rule}");
            rule["cases"].as_u64() > Some(0)
        })
    };
    assert!((0..10).any(has_cases), "no leg of a route was released in ten runs");
}

/// What a task leaves out never arrives at those that it releases: they lose nothing.
#[test]
fn what_is_left_out_ahead_is_no_loss_of_who_inherits() {
    let place = folder();
    let file = write(
        &place,
        "ahead.toml",
        r#"
[system]
name = "ahead"
strategy = "edf"
[[task]]
name = "ahead"
trigger = "external"
separation = "10ms"
burst = 2
deadline = "30ms"
overrun = "skip-next"
wcet = "3ms"
outputs = [{ name = "value" }]
[[task]]
name = "heir"
trigger = { output = "ahead.value" }
deadline = "inherited"
wcet = "1ms"
"#,
    );
    let report = run(&["check", &file, "--json", "--fail-on", "never"]).exits(0).json();
    let verdict = |index: usize| report["tasks"][index]["verdict"].as_str().expect("a word").to_owned();
    assert_eq!((verdict(0), verdict(1)), ("open".into(), "holds".into()), "{report}");
}

/// Of a task with first subtasks on two nodes the one may be released long after the other, and later instances of this.
#[test]
fn who_inherits_on_two_nodes_has_its_deadline_on_both() {
    let place = folder();
    let file = write(
        &place,
        "firsts.toml",
        r#"
[system]
name = "firsts"
strategy = "edf"
[[node]]
name = "near"
cpus = [0]
[[node]]
name = "far"
cpus = [1]
[[link]]
between = ["near", "far"]
delay = "25ms"
jitter = "15ms"
[[task]]
name = "ahead"
period = "10ms"
deadline = "60ms"
wcet = "2ms"
node = "near"
outputs = [{ name = "value" }]
[[task]]
name = "heir"
trigger = { output = "ahead.value" }
deadline = "inherited"
subtask = [{ name = "far", node = "far", after = [], wcet = "1ms" }, { name = "near", node = "near", after = [], wcet = "1ms" }]
"#,
    );
    let out = within(&place, "out");
    run(&["sim", &file, "--for", "2s", "--out", &out]).exits(0);
    let report = run(&["trace", "verify", &file, &within(&place, "out/trace.talea"), "--json"]).json();
    let rules = report["rules"].as_array().expect("rules");
    let release = rules.iter().find(|rule| rule["rule"] == "release").expect("it is judged");
    assert_eq!(release["violations"], 0, "{release}");
    assert!(release["cases"].as_u64() > Some(500), "{release}");
}

/// Messages that pass each other release an earlier instance beside a later one: the next one aborts both.
#[test]
fn all_that_is_unfinished_of_earlier_instances_is_aborted() {
    let place = folder();
    let text = |overrun: &str| {
        format!(
            r#"
[system]
name = "passing"
strategy = "edf"
[[node]]
name = "near"
cpus = [0]
[[node]]
name = "far"
cpus = [1]
[[link]]
between = ["near", "far"]
delay = "1ms"
jitter = "20ms"
[[task]]
name = "ahead"
period = "3ms"
wcet = "100us"
node = "near"
outputs = [{{ name = "value" }}]
[[task]]
name = "behind"
trigger = {{ output = "ahead.value" }}
deadline = "50ms"
overrun = "{overrun}"
node = "far"
wcet = "8ms"
"#
        )
    };
    for (overrun, failed) in [("abort", "aborted"), ("skip-next", "skipped")] {
        let file = write(&place, "passing.toml", &text(overrun));
        let out = within(&place, overrun);
        let options = ["--for", "2s", "--fail-on", "never", "--out", &out, "--json"];
        let result = run(&[&["sim", &file], &options[..]].concat()).exits(0).json();
        assert!(result["report"]["tasks"][1][failed].as_u64() > Some(100), "{result}");
        let trace = within(&place, &format!("{overrun}/trace.talea"));
        let report = run(&["trace", "verify", &file, &trace, "--json"]).exits(0).json();
        let rules = report["rules"].as_array().expect("rules");
        let rule = rules.iter().find(|rule| rule["rule"] == "overrun").expect("it is judged");
        assert!(rule["violations"] == 0 && rule["cases"].as_u64() > Some(500), "{rule}");
    }
}

/// Who looks at a run that nobody records finds what its channels count.
#[test]
fn what_channels_count_is_read_while_they_run() {
    let (place, name) = (folder(), format!("counting-{}", std::process::id()));
    let text = std::fs::read_to_string(example("notification.toml")).expect("there");
    let file = write(&place, "counting.toml", &text.replace("\"robot-events\"", &format!("\"{name}\"")));
    let running = Running::start(&["run", &file, "--for", "120s", "--json", "--fail-on", "never"]);
    eventually("the run is there", || listed(&name).is_some());
    // By the standard's names: two channels, of which each has what the description says.
    let shown = || {
        let names = ["ConsumerCount", "SupplierCount", "ConsumerAdminCount", "SupplierAdminCount"];
        let of = |channel: &str| names.map(|what| format!("channel-{channel}.{what}"));
        let channels =
            ["ActiveEventChannelCount", "InactiveEventChannelCount"].map(|what| format!("channels.{what}"));
        let wanted = [&of("motion")[..], &of("health"), &channels].concat();
        let arguments: Vec<&str> =
            ["trace", "read", &name, "--json"].into_iter().chain(wanted.iter().map(String::as_str)).collect();
        let read = run(&arguments).exits(0).json();
        let gauge = |one: &serde_json::Value| {
            assert_eq!(one["kind"], "gauge", "{one}");
            one["value"].as_i64().expect("a number")
        };
        read.as_array().expect("readings").iter().map(gauge).collect::<Vec<_>>()
    };
    let members = shown();
    assert_eq!(members, [2, 2, 1, 1, 2, 2, 1, 1, 2, 0]);
    eventually("events are counted", || {
        let of =
            |channel: &str| ["pushed", "delivered", "queued"].map(|what| format!("channel-{channel}.{what}"));
        let counts = [of("motion"), of("health")].concat();
        let arguments: Vec<&str> =
            ["trace", "read", &name, "--json"].into_iter().chain(counts.iter().map(String::as_str)).collect();
        let read = run(&arguments).exits(0).json();
        let counted = |index: usize| read[index]["value"].as_u64().expect("a counter");
        // They are read one after the other, and what is delivered has been queued before.
        assert!(counted(1) <= counted(2) && counted(4) <= counted(5), "{read}");
        assert_eq!(shown(), members, "how many there are does not change");
        counted(0) > 100 && counted(1) > 20 && counted(3) > 100 && counted(4) > 50
    });
    drop(running);
}

#[test]
fn a_filter_that_names_nothing_is_refused_with_its_place() {
    let place = folder();
    let text = std::fs::read_to_string(example("notification.toml")).expect("there");
    let wrong = write(&place, "wrong.toml", &text.replace("angle > 60", "angel > 60"));
    let done = run(&["sim", &wrong, "--for", "1s"]).exits(2);
    assert!(
        done.stderr.contains("angel") && done.stderr.contains("did you mean \"angle\"?"),
        "{}",
        done.stderr
    );
}

/// Jobs that something else releases have events by a subscription of their operation's: checked, simulated, shown, verified and explained.
#[test]
fn operations_take_events_that_do_not_release_them() {
    let text = r#"
[system]
name = "looking"
strategy = "rms"
[[channel]]
name = "c"
[[task]]
name = "push"
period = "5ms"
wcet = "1ms"
events = [{ channel = "c", type = "T/A" }]
[[task]]
name = "look"
period = "4ms"
wcet = "200us"
subscription = { channel = "c" }
[[task]]
name = "pair"
period = "10ms"
  [[task.subtask]]
  name = "sense"
  wcet = "100us"
  [[task.subtask]]
  name = "act"
  wcet = "100us"
  subscription = { channel = "c", qos = { MaxEventsPerConsumer = 3 } }
[[chain]]
name = "seen"
path = ["push", "look"]
latency = "20ms"
"#;
    let place = folder();
    let file = write(&place, "looking.toml", text);
    let check = run(&["check", &file, "--fail-on", "never"]).exits(0);
    let told = format!("{}{}", check.stdout, check.stderr);
    assert!(told.contains("each job of look takes one event when it begins"), "{told}");
    assert!(told.contains("they may be lost when 3 wait"), "{told}");
    let out = within(&place, "sim");
    let report = run(&["sim", &file, "--for", "1s", "--out", &out, "--json"]).exits(0).json();
    assert_eq!(
        subscriptions(&report),
        [("look".into(), [200, 200, 0, 0]), ("pair".into(), [200, 100, 97, 0])]
    );
    assert_eq!(report["report"]["subscriptions"][1]["operation"], "pair.act");
    let table = run(&["sim", &file, "--for", "1s"]).exits(0).stdout;
    assert!(table.contains("pair.act"), "{table}");
    let trace = format!("{out}/{TRACE}");
    let shown = run(&["trace", "show", &trace, "--events", "event.deliver"]).exits(0).stdout;
    assert!(shown.contains("pair.act #") && shown.contains("from push #"), "{shown}");
    run(&["trace", "verify", &file, &trace]).exits(0);
    let way = run(&["trace", "explain", &trace, "--chain", "seen", "--json"]).exits(0).json();
    let way = &way["explanations"][0];
    assert_eq!(way["events"][0]["pushed_by"], way["hops"][0]["job"], "{way}");
}
