//! `check`, `sim` and `compare --sim`: everything in virtual time.

use crate::support::{TRACE, example, folder, run, traced, within, write};
use std::fs;

#[test]
fn check_shows_the_lanes_of_every_example() {
    for name in ["hello.toml", "ofp.toml", "overload.toml", "release-guards.toml", "two-nodes.toml"] {
        let done = run(&["check", &example(name)]).exits(0);
        assert!(done.stdout.contains("worst-case utilisation"), "{}", done.stdout);
        let json = run(&["check", &example(name), "--json"]).exits(0).json();
        assert!(!json["nodes"][0]["lanes"].as_array().expect("a list").is_empty(), "{json}");
    }
    let muf = run(&["check", &example("ofp.toml"), "--strategy", "muf", "--json"]).exits(0).json();
    assert_eq!(muf["nodes"][0]["lanes"].as_array().expect("a list").len(), 2, "two criticalities, two lanes");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let place = folder();
    let simulate = |seed: &str, name: &str| {
        let out = within(&place, name);
        let arguments = ["sim", &example("ofp.toml"), "--for", "5s", "--seed", seed, "--json", "--out", &out];
        let stdout = run(&arguments).exits(0).stdout;
        let files = [TRACE, "schedule.csv", "result.json"];
        (stdout, files.map(|file| fs::read(place.path().join(name).join(file)).expect("written")))
    };
    let (one, again, other) = (simulate("7", "one"), simulate("7", "again"), simulate("8", "other"));
    assert!(one == again, "two runs of seed 7 differ");
    assert!(one.1[0] != other.1[0], "seed 8 gives another load");
}

#[test]
fn json_is_all_that_is_on_standard_output() {
    let json = run(&["sim", &example("ofp.toml"), "--for", "2s", "--json"]).exits(0).json();
    assert_eq!(json["run"]["mode"], "sim");
    assert_eq!(json["report"]["end_ns"], 2_000_000_000_i64);
    assert_eq!(json["report"]["tasks"].as_array().expect("a list").len(), 6);
}

#[test]
fn a_schedule_has_its_columns() {
    let place = folder();
    let path = within(&place, "schedule.csv");
    run(&["sim", &example("hello.toml"), "--for", "1s", "--schedule", &path]).exits(0);
    let text = fs::read_to_string(&path).expect("written");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("start_ns,end_ns,node,cpu,task,subtask,job"));
    assert_eq!(lines.next(), Some("0,5000000,local,0,blink,blink,0"));
}

#[test]
fn the_exit_status_says_which_deadlines_were_missed() {
    let overload = example("overload.toml");
    run(&["sim", &overload, "--for", "2s"]).exits(0);
    run(&["sim", &overload, "--for", "2s", "--fail-on", "any"]).exits(1);
    run(&["sim", &overload, "--for", "2s", "--fail-on", "never"]).exits(0);
    run(&["sim", &example("ofp.toml"), "--for", "2s", "--strategy", "rms"]).exits(1);
}

#[test]
fn compare_puts_strategies_side_by_side() {
    let ofp = example("ofp.toml");
    let text =
        run(&["compare", &ofp, "--sim", "--for", "2s", "--strategy", "rms", "--strategy", "muf"]).exits(0);
    for word in ["rms", "muf", "effectiveness", "navigation"] {
        assert!(text.stdout.contains(word), "{}", text.stdout);
    }
    let all = run(&["compare", &ofp, "--sim", "--for", "2s", "--json"]).exits(0).json();
    let strategies: Vec<&str> =
        all.as_array().expect("a list").iter().filter_map(|trial| trial["strategy"].as_str()).collect();
    assert_eq!(strategies, ["rms", "edf", "mlf", "muf", "rms+mlf", "criticality"]);
}

/// The example with another protocol for all tasks.
fn synchronised(place: &tempfile::TempDir, sync: &str) -> String {
    let text = fs::read_to_string(example("release-guards.toml")).expect("there");
    let changed = text.replace("sync = \"release-guard\"\n", &format!("sync = \"{sync}\"\n"));
    write(place, &format!("{sync}.toml"), &changed)
}

#[test]
fn guards_keep_what_greedy_releases_miss_and_idle_points_bring_the_miss_back() {
    let place = folder();
    for (sync, missed, skipped) in [
        ("greedy", 2, 2),
        ("release-guard", 0, 0),
        ("release-guard-idle", 2, 2),
        ("release-guard-idle-one", 2, 2),
    ] {
        let json = run(&["sim", &synchronised(&place, sync), "--for", "240ms", "--json"]).exits(0).json();
        let tasks = json["report"]["tasks"].as_array().expect("a list");
        let sonar = tasks.iter().find(|task| task["name"] == "sonar").expect("it is in the file");
        assert_eq!((&sonar["missed"], &sonar["skipped"]), (&missed.into(), &skipped.into()), "{sync}");
    }
}

/// Each protocol's trace against each protocol, which have no bounds in the file: what is released at other instants is found, and nothing else.
#[test]
fn a_trace_under_another_protocol_is_no_obedience() {
    let place = folder();
    let protocols = [
        "greedy",
        "release-guard",
        "release-guard-idle",
        "release-guard-idle-one",
        "phase-modification",
        "modified-phase-modification",
    ];
    // In this example an idle point opens every guard at once, and every phase is a timer's.
    let kind = |sync: &str| match sync {
        "release-guard" => 1,
        "phase-modification" | "modified-phase-modification" => 2,
        _ => 0,
    };
    for ran in protocols {
        let out = within(&place, &format!("out-{ran}"));
        let of_it = ["--for", "240ms", "--fail-on", "never", "--out", &out];
        run(&[&["sim", &synchronised(&place, ran)][..], &of_it].concat()).exits(0);
        for asked in protocols {
            let trace = format!("{out}/trace.talea");
            let verified = run(&["trace", "verify", &synchronised(&place, asked), &trace, "--json"]);
            let json = verified.exits(i32::from(kind(ran) != kind(asked))).json();
            let wrong = json["rules"].as_array().expect("a list").iter();
            let wrong: Vec<&serde_json::Value> =
                wrong.filter(|rule| rule["violations"] != 0).map(|rule| &rule["rule"]).collect();
            assert!(wrong.iter().all(|rule| *rule == "release"), "{ran} by {asked}: {wrong:?}");
        }
    }
}

#[test]
fn the_worst_overrun_of_a_bound_is_named() {
    let place = folder();
    let system = r#"
[system]
name = "short"
strategy = "rms"
sync = "modified-phase-modification"
[[node]]
name = "one"
cpus = [0]
[[task]]
name = "chain"
period = "10ms"
subtask = [{ name = "a", wcet = "2ms", exec = { list = ["1ms", "2ms", "1500us"] }, bound = "1ms" }, { name = "b", wcet = "1ms" }]
"#;
    let file = write(&place, "short.toml", system);
    let done = run(&["sim", &file, "--for", "60ms", "--json"]).exits(0);
    let text = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("4 signals came later than the response bounds had promised")
            && text.contains("at worst that to chain.b #1, by 1.00ms"),
        "{text}"
    );
    let worst = &done.json()["run"]["mishaps"]["worst_overrun"];
    assert_eq!((&worst["operation"], &worst["instance"]), (&"chain.b".into(), &1.into()), "{worst}");
}

#[test]
fn what_a_guard_kept_back_is_explained() {
    let (_place, trace) = traced(&["sim", &example("release-guards.toml"), "--for", "240ms"]);
    let json = run(&["trace", "explain", &trace, "--task", "frames", "--job", "1", "--json"]).exits(0).json();
    let totals = json["explanations"][0]["totals"].as_array().expect("a list");
    let guard = totals.iter().find(|total| total["cause"] == "guard").expect("it was held");
    assert_eq!(guard["ns"], 19_000_000, "from 79 to 98 ms");
    let shown = run(&["trace", "show", &trace]).exits(0).stdout;
    let held = shown.lines().find(|line| line.contains("guard") && line.contains("frames.find #1"));
    assert!(
        held.is_some_and(|line| line.contains("0.079000000") && line.contains("until=0.098000000s")),
        "{held:?}"
    );
}

/// Of each task what came earlier than declared is told with what became of it.
#[test]
fn early_arrivals_are_told_task_by_task() {
    let place = folder();
    let task = |excess: &str| {
        format!(
            "[[task]]\nname = \"{excess}s\"\ntrigger = \"external\"\nseparation = \"20ms\"\nexcess = \"{excess}\"\n\
             arrivals = {{ list = [\"5ms\", \"6ms\"] }}\nwcet = \"1ms\"\n"
        )
    };
    let tasks = ["defer", "drop", "count"].map(task).concat();
    let late = "[[task]]\nname = \"calm\"\ntrigger = \"external\"\nseparation = \"1ms\"\narrivals = { list = [\"5ms\"] }\nwcet = \"1ms\"\n";
    let file = write(&place, "early.toml", &format!("[system]\nname = \"early\"\n{tasks}{late}"));
    let out = within(&place, "out");
    let said = run(&["sim", &file, "--for", "1s", "--fail-on", "never", "--out", &out]).exits(0).stderr;
    for (task, fate) in
        [("defers", "waited"), ("drops", "were dropped"), ("counts", "were counted, and released at once")]
    {
        let line = said.lines().find(|line| line.contains(&format!("task {task}: "))).expect("it is told");
        assert!(line.contains("arrivals came earlier than its separation and burst declare"), "{line}");
        assert!(said.replace("\n  ", " ").contains(&format!("declare, and {fate}")), "{said}");
    }
    assert!(!said.contains("calm"), "{said}");
    let result = std::fs::read_to_string(within(&place, "out/result.json")).expect("written");
    let result: serde_json::Value = serde_json::from_str(&result).expect("JSON");
    let early = result["run"]["mishaps"]["early_arrivals"].as_array().expect("a list");
    let told: Vec<_> = early.iter().map(|early| (early["task"].as_str(), early["excess"].as_str())).collect();
    let expected = ["defer", "drop", "count"].map(|excess| (format!("{excess}s"), excess));
    assert_eq!(told, expected.each_ref().map(|(task, excess)| (Some(task.as_str()), Some(*excess))));
    assert!(early.iter().all(|early| early["arrivals"].as_u64() > Some(0)), "{early:?}");
}
