//! `talea check` on hierarchies of schedulers.

use crate::support::{alone, example, folder, run, traced, within, write};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// The label on the edge from `parent` to `child` in what `check --json` prints.
fn label(json: &Value, parent: &str, child: &str) -> String {
    let edges = json["hierarchies"][0]["derivation"]["edges"].as_array().expect("labelled edges");
    let edge = edges.iter().find(|edge| edge["parent"] == parent && edge["child"] == child);
    let edge = edge.unwrap_or_else(|| panic!("no edge from {parent} to {child}"));
    edge["guarantee"]["notation"].as_str().expect("a text").into()
}

fn changed(place: &tempfile::TempDir, file: &str, from: &str, to: &str) -> String {
    let text = fs::read_to_string(example(file)).expect("there");
    assert!(text.contains(from), "{from}");
    write(place, file, &text.replacen(from, to, 1))
}

/// Figure 3 of Regehr and Stankovic (2001).
#[test]
fn the_published_hierarchy_is_promised_what_the_paper_says() {
    let done = run(&["check", &example("figure-1.toml")]).exits(0);
    for (row, because) in [
        ("├─ RES ", "it has the highest priority"),
        ("│  └─ video ", "asked for and admitted"),
        ("│  ├─ J ", "asked for and admitted"),
        ("│  │  └─ PS ", "it runs whenever this parent runs it"),
        ("│  │     ├─ words ", "of 0.5 the fraction 0.2"),
        ("│  │     └─ voice ", "of 0.5 the fraction 0.8"),
        ("└─ J ", "a higher child may run for ever"),
    ] {
        let starts = |line: &&str| line.trim_start_matches(' ').starts_with(row.trim_start_matches(' '));
        let line = done.stdout.lines().find(starts);
        let line = line.unwrap_or_else(|| panic!("no {row} in {}", done.stdout));
        let mark = line.split_whitespace().last().expect("the mark of a rule");
        let rule = done.stdout.lines().find(|line| line.trim_start().starts_with(mark));
        assert!(rule.is_some_and(|rule| rule.contains(because)), "{line}: {rule:?}");
    }
    let (_, used) = done.stdout.split_once("PSBE 0.5 10ms ").expect("what PS uses it as");
    let mark = used.split_whitespace().next().expect("the mark of a rule");
    assert!(done.stdout.contains(&format!("  {mark} Theorem 4\n")), "{}", done.stdout);
    let closing = "all 3 threads receive what they are promised, whatever the threads do; the bursts of 1 of 3 threads are not sure to be in \
                   time: video";
    assert!(done.words().ends_with(closing), "{}", done.stdout);
    let json = run(&["check", &example("figure-1.toml"), "--json"]).exits(0).json();
    for (parent, child, expected) in [
        ("FP", "RES", "ALL"),
        ("FP", "J", "NULL"),
        ("RES", "video", "RESBH 5ms 33ms"),
        ("RES", "J", "RESBH 10ms 20ms"),
        ("J", "PS", "RESBS 10ms 20ms"),
        ("PS", "words", "PSBE 0.1 22ms"),
        ("PS", "voice", "PSBE 0.4 58ms"),
    ] {
        assert_eq!(label(&json, parent, child), expected, "{parent} -> {child}");
    }
    assert_eq!(json["hierarchies"][0]["verdict"], "composes");
    let explained = run(&["check", &example("figure-1.toml"), "--explain"]).exits(0);
    assert!(explained.stdout.contains("PS takes it as: PSBE 0.5 10ms  (Theorem 4:"), "{}", explained.stdout);
}

#[test]
fn a_hierarchy_that_does_not_compose_says_where_why_and_what_would_help() {
    let place = folder();
    let file = changed(&place, "figure-1.toml", "PSBE 0.4 60ms", "PSBE 0.4 50ms");
    let done = run(&["check", &file]).exits(1);
    for words in [
        "voice: it requires PSBE 0.4 50ms, but receives PSBE 0.4 58ms",
        "not enough",
        "what would help voice",
    ] {
        assert!(done.stdout.contains(words), "{words}: {}", done.stdout);
    }
    assert!(done.words().contains("does not compose: 2 of 3 threads are sure"), "{}", done.stdout);
    run(&["check", &file, "--fail-on", "never"]).exits(0);
    let json = run(&["check", &file, "--json"]).exits(1).json();
    let remedies = json["hierarchies"][0]["advice"]["each"][0]["remedies"].as_array().expect("remedies");
    // The advice is right: with the quantum that it names the check passes.
    let quantum = remedies.iter().flat_map(|remedy| remedy["changes"].as_array().expect("changes"));
    let quantum = quantum.filter(|change| change["change"] == "quantum").map(|change| &change["to"]).next();
    let quantum = quantum.and_then(Value::as_str).unwrap_or_else(|| panic!("a quantum in {remedies:?}"));
    let text = fs::read_to_string(&file).expect("there");
    let mended = text.replace("quantum = \"10ms\"", &format!("quantum = \"{quantum}ns\""));
    run(&["check", &write(&place, "mended.toml", &mended)]).exits(0);
}

#[test]
fn several_problems_are_advised_about_at_once_and_one_by_one() {
    let place = folder();
    let file = changed(&place, "figure-1.toml", "PSBE 0.4 60ms", "PSBE 0.4 50ms");
    let text = fs::read_to_string(&file).expect("there");
    let words = "work = { burst = \"10ms\", period = \"100ms\" }\n";
    assert_eq!(text.matches(words).count(), 1, "{text}");
    let both = text.replace(words, &format!("{words}requires = \"PSBE 0.1 18ms\"\n"));
    let file = write(&place, "both.toml", &both);
    let done = run(&["check", &file]).exits(1);
    let sections = ["help everybody at once", "help words alone", "help voice alone"];
    let places: Vec<_> = sections.iter().map(|section| done.stdout.find(section)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{}", done.stdout);
    assert_eq!(done.stderr, "", "progress is for terminals");
    let json = run(&["check", &file, "--json"]).exits(1).json();
    let advice = &json["hierarchies"][0]["advice"];
    let nodes: Vec<&Value> =
        advice["each"].as_array().expect("a list").iter().map(|each| &each["node"]).collect();
    assert_eq!(nodes, ["words", "voice"]);
    let changes = advice["everybody"]["remedies"].as_array().expect("remedies").iter();
    let mut changes = changes.flat_map(|remedy| remedy["changes"].as_array().expect("changes"));
    let quantum =
        changes.find(|change| change["change"] == "quantum").and_then(|change| change["to"].as_str());
    let quantum = format!("quantum = \"{}ns\"", quantum.unwrap_or_else(|| panic!("a quantum in {advice}")));
    run(&["check", &write(&place, "mended.toml", &both.replace("quantum = \"10ms\"", &quantum))]).exits(0);
}

#[test]
fn whom_a_scheduler_refuses_is_a_problem_among_others() {
    let place = folder();
    let thread = |name: &str, asked: &str, required: &str| {
        format!(
            "[[thread]]\nname = \"{name}\"\nwork = \"cpu-bound\"\n{required}under = [{{ scheduler = \"K\", guarantee = \"{asked}\" }}]\n"
        )
    };
    let kernel = "[system]\nname = \"k\"\n[[scheduler]]\nname = \"K\"\nkind = \"resource-kernel\"\n";
    let (one, two) = (thread("a", "RESBH 3ms 10ms", ""), thread("b", "RESBH 3ms 12ms", ""));
    let three = thread("c", "RESBH 1ms 40ms", "requires = \"RESBS 3ms 5ms\"\n");
    let four = thread("d", "RESBH 3ms 13ms", "");
    let all = write(&place, "kernel.toml", &[kernel, &one, &two, &three, &four].concat());
    let done = run(&["check", &all]).exits(1);
    for words in ["c: it requires", "refuses \"d\"", "what would help c", "what would help d\n"] {
        assert!(done.stdout.contains(words), "{words}: {}", done.stdout);
    }
    let json = run(&["check", &all, "--json"]).exits(1).json();
    let refusals = json["hierarchies"][0]["refusals"].as_array().expect("a list");
    assert!(refusals.iter().any(|refusal| refusal["child"] == "d"), "{refusals:?}");
}

#[test]
fn a_scheduler_without_enough_fails_all_below_it() {
    let place = folder();
    let file = changed(&place, "figure-1.toml", "RESBH 10ms 20ms", "RESBH 18ms 20ms");
    let done = run(&["check", &file]).exits(1);
    assert!(done.stdout.contains("RES: ") && done.stdout.contains("not derived"), "{}", done.stdout);
    assert!(done.stdout.contains("let J ask RES for RESBH"), "{}", done.stdout);
}

/// What is broken and was promised by the published table alone says so where it is broken, not only where it is derived.
#[test]
fn a_broken_promise_says_that_it_was_not_known_to_be_kept() {
    let place = folder();
    let file = write(&place, "on-paper.toml", ON_PAPER);
    let done = run(&["sim", &file, "--for", "2s", "--fail-on", "never"]).exits(0);
    assert!(done.stdout.contains("worst of RI to a") && done.stdout.contains("BROKEN"), "{}", done.stdout);
    let said = done.stderr.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(said.contains("note: node n: a from RI: derived by the published table"), "{said}");
    assert!(!said.contains("b from RI"), "it was kept: {said}");
}

/// A slower processor, and below it a scheduler that tells it no deadlines of its own.
const ON_PAPER: &str = r#"
[system]
name = "on-paper"
[[node]]
name = "n"
cpus = [0]
[[scheduler]]
name = "ROOT"
kind = "pshed"
node = "n"
[[scheduler]]
name = "RI"
kind = "rialto"
quantum = "5ms"
under = [{ scheduler = "ROOT", guarantee = "RESU 0.5" }]
[[scheduler]]
name = "RES"
kind = "reservation"
under = [{ scheduler = "ROOT", guarantee = "RESU 0.5" }]
[[thread]]
name = "a"
work = "cpu-bound"
under = [{ scheduler = "RI", guarantee = "RESCS 800us 8ms" }]
[[thread]]
name = "b"
work = "cpu-bound"
under = [{ scheduler = "RI", guarantee = "RESCS 1000us 20ms" }]
[[thread]]
name = "c"
work = "cpu-bound"
under = [{ scheduler = "RES", guarantee = "RESBH 12000us 40ms" }]
[[thread]]
name = "d"
work = { burst = "500us", period = "25000us" }
under = [{ scheduler = "RES", guarantee = "RESBH 1000us 5ms" }]
"#;

#[test]
fn service_classes_share_an_overrun_partition() {
    let json = run(&["check", &example("service-classes.toml"), "--json"]).exits(0).json();
    for (parent, child, expected) in [
        ("RES", "T1", "RESBH 2ms 10ms"),
        ("RES", "OVR", "RESBH 8ms 40ms"),
        ("OVR", "J2", "NULL"),
        ("OVR", "J3", "NULL"),
        ("J2", "T2", "RESBS 6ms 33ms"),
        ("J3", "T3", "RESBS 8ms 40ms"),
    ] {
        assert_eq!(label(&json, parent, child), expected, "{parent} -> {child}");
    }
}

#[test]
fn tasks_whose_lanes_are_promised_nothing_stay_open() {
    let done = run(&["check", &example("resource-kernel.toml")]).exits(0);
    assert!(done.stdout.contains("it is promised nothing"), "{}", done.stdout);
    run(&["check", &example("resource-kernel.toml"), "--fail-on", "any"]).exits(1);
}

/// Lanes and threads with bursts have bounds from what their schedulers promise them.
#[test]
fn lanes_below_a_reservation_have_bounds_and_margins() {
    let mixed = example("mixed.toml");
    let json = run(&["check", &mixed, "--json", "--sensitivity"]).exits(0).json();
    for task in json["tasks"].as_array().expect("there are tasks") {
        assert_eq!(task["verdict"], "holds", "{task}");
        assert!(task["bound_ns"].as_i64() > Some(0), "{task}");
    }
    assert_eq!(
        (&json["threads"][0]["name"], &json["threads"][0]["verdict"]),
        (&"camera".into(), &"holds".into())
    );
    let margins = json["sensitivity"]["tasks"].as_array().expect("there are margins");
    let names: Vec<&Value> = margins.iter().map(|margin| &margin["name"]).collect();
    assert_eq!(names, ["control", "navigation", "display", "camera"]);
    for margin in margins {
        assert!(margin["wcet_ppm"].as_u64() > Some(1_000_000), "{margin}");
    }
    let advised = run(&["check", &mixed, "--advise", "--for", "2s"]).exits(0);
    assert!(advised.stdout.contains("advice: the choice rests on"), "{}", advised.stdout);
}

/// What one partition wants is nothing to the tasks of another, in bounds and in virtual time; and what is simulated obeys the rules.
#[test]
fn partitions_do_not_see_each_others_load() {
    let place = folder();
    let text = std::fs::read_to_string(example("partitions.toml")).expect("the example is there");
    let film = "wcet = \"31ms\"";
    assert!(text.contains(film), "the film that is changed");
    let of_flight = |wcet: &str| -> Vec<Value> {
        let name = format!("partitions-{wcet}.toml");
        let file = write(&place, &name, &text.replace(film, &format!("wcet = \"{wcet}\"")));
        let json = run(&["check", &file, "--json"]).exits(0).json();
        let tasks = json["tasks"].as_array().expect("there are tasks").iter();
        let flight =
            tasks.filter(|task| ["attitude", "position"].contains(&task["name"].as_str().unwrap_or("")));
        let bounds: Vec<Value> = flight.map(|task| task["bound_ns"].clone()).collect();
        let out = place.path().join(wcet);
        let out = out.to_str().expect("a path of text");
        let simulated = run(&["sim", &file, "--for", "2s", "--json", "--out", out]).exits(0).json();
        let hard = simulated["report"]["tasks"].as_array().expect("there are tasks").iter().take(2);
        hard.for_each(|task| assert_eq!(task["missed"], 0, "{task}"));
        run(&["trace", "verify", &file, &format!("{out}/trace.talea")]).exits(0);
        bounds
    };
    let (light, heavy) = (of_flight("1ms"), of_flight("95ms"));
    assert_eq!(light.len(), 2);
    assert!(light.iter().all(Value::is_i64), "{light:?}");
    assert_eq!(light, heavy);
}

/// The timers of threads delay the lanes beside them.
#[test]
fn timers_of_threads_count_in_the_bounds_of_lanes() {
    let place = folder();
    let thread = |index: u32| {
        format!(
            "[[thread]]\nname = \"h{index}\"\nwork = {{ burst = \"1us\", period = \"1ms\" }}\n\
             under = [{{ scheduler = \"FP\", priority = {index} }}]\n"
        )
    };
    let threads: String = (1..=6).map(thread).collect();
    let text = format!(
        "[system]\nname = \"timers\"\n[overhead]\ntimer = \"50us\"\n[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\
         [[scheduler]]\nname = \"flight\"\nkind = \"lanes\"\nunder = [{{ scheduler = \"FP\", priority = 9 }}]\n\
         [[task]]\nname = \"a\"\nperiod = \"1ms\"\nwcet = \"100us\"\ndeadline = \"400us\"\ncriticality = \"high\"\n{threads}"
    );
    let file = write(&place, "timers.toml", &text);
    let json = run(&["check", &file, "--json"]).exits(1).json();
    assert_eq!(json["tasks"][0]["bound_ns"], 450_000);
    assert_eq!(json["tasks"][0]["verdict"], "misses");
}

/// A miss is looked for beside the threads of a hierarchy, too.
#[test]
fn a_task_beside_a_busy_thread_may_miss() {
    let place = folder();
    let text = "[system]\nname = \"s\"\n[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\
                [[scheduler]]\nname = \"flight\"\nkind = \"lanes\"\nunder = [{ scheduler = \"FP\", priority = 2 }]\n\
                [[thread]]\nname = \"camera\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"FP\", priority = 1 }]\n\
                [[task]]\nname = \"control\"\nperiod = \"10ms\"\nwcet = \"4ms\"\ndeadline = \"5ms\"\ncriticality = \"high\"\n\
                [[task]]\nname = \"route\"\nperiod = \"20ms\"\nwcet = \"8ms\"\ndeadline = \"10ms\"\ncriticality = \"high\"\n";
    let file = write(&place, "beside.toml", text);
    let json = run(&["check", &file, "--json"]).exits(1).json();
    let verdicts: Vec<&Value> = (0..2).map(|task| &json["tasks"][task]["verdict"]).collect();
    assert_eq!(verdicts, ["holds", "misses"]);
}

/// Lanes at the highest priority have the processor for themselves, so that their bounds are those of a node without schedulers.
#[test]
fn lanes_with_the_whole_processor_have_their_bounds() {
    let place = folder();
    let tasks = "[[task]]\nname = \"a\"\nperiod = \"10ms\"\nwcet = \"2ms\"\ncriticality = \"high\"\n\
                 [[task]]\nname = \"b\"\nperiod = \"50ms\"\nwcet = \"20ms\"\ncriticality = \"high\"\n";
    let alone = write(&place, "alone.toml", &format!("[system]\nname = \"s\"\n{tasks}"));
    let below = |priority: i32| {
        format!(
            "[system]\nname = \"s\"\n[[scheduler]]\nname = \"root\"\nkind = \"fixed-priority\"\n\
             [[scheduler]]\nname = \"tasks\"\nkind = \"lanes\"\nunder = [{{ scheduler = \"root\", priority = {priority} }}]\n\
             [[thread]]\nname = \"t\"\nwork = \"cpu-bound\"\nunder = [{{ scheduler = \"root\", priority = 1 }}]\n{tasks}"
        )
    };
    let highest = write(&place, "highest.toml", &below(2));
    let expected = run(&["check", &alone, "--json"]).exits(0).json();
    let found = run(&["check", &highest, "--json"]).exits(0).json();
    assert_eq!(found["tasks"], expected["tasks"]);
    assert_eq!(found["critical"], "holds");
    let lowest = write(&place, "lowest.toml", &below(0));
    // The thread never lets them run.
    let starved = run(&["check", &lowest, "--json"]).exits(1).json();
    assert_eq!((&starved["critical"], &starved["tasks"][0]["bound_ns"]), (&"misses".into(), &Value::Null));
}

#[test]
fn the_picture_shows_everybody_and_every_promise() {
    let place = folder();
    let picture = within(&place, "hierarchy.svg");
    for (file, words) in [
        (
            "figure-1.toml",
            &["FP", "RES", "video", "voice", "RESBH 10ms 20ms", "PSBE 0.4 58ms", "NULL", "ALL"][..],
        ),
        ("service-classes.toml", &["OVR", "round-robin", "J2", "T3", "RESBS 8ms 40ms"][..]),
        ("resource-kernel.toml", &["lanes of tasks", "housekeeping", "firm", "RESBH 2ms 10ms"][..]),
    ] {
        run(&["check", &example(file), "--plot", &picture]).exits(0);
        let svg = fs::read_to_string(&picture).expect("it was drawn");
        for words in words {
            assert!(svg.contains(words), "{words} is not in the picture of {file}");
        }
    }
}

#[test]
fn what_only_knows_lanes_refuses() {
    let file = example("figure-1.toml");
    for (arguments, words) in [
        (vec!["compare", &file, "--sim", "--for", "1s"], "the schedulers of the file say who runs next"),
        (vec!["check", &file, "--strategy", "rms"], "--strategy sorts tasks into lanes"),
        (vec!["check", &file, "--advise"], "--advise ranks strategies by what they make of tasks"),
        (vec!["export", &file, "--to", "csv"], "the file has no task"),
    ] {
        let done = run(&arguments).exits(2);
        assert!(done.stderr.contains(words) && done.stdout.is_empty(), "{arguments:?}: {}", done.stderr);
    }
}

#[test]
fn problems_are_shown_where_they_are() {
    let place = folder();
    let file = changed(&place, "figure-1.toml", "RESBH 5ms 33ms", "RESBH 5ms 33mss");
    let done = run(&["check", &file]).exits(2);
    for words in ["unknown unit \"mss\"", ":38:54", "help: write one of ns, us, ms"] {
        assert!(done.stderr.contains(words), "{words}: {}", done.stderr);
    }
}

/// A chain of schedulers, each of which gives the one below what it is given, and a thread.
fn chain(levels: usize, kind: &str, request: &str, requires: &str) -> String {
    let mut text = format!("[system]\nname = \"deep\"\n[[scheduler]]\nname = \"s0\"\nkind = \"{kind}\"\n");
    for level in 1..levels {
        let above = level - 1;
        text += &format!(
            "[[scheduler]]\nname = \"s{level}\"\nkind = \"{kind}\"\nunder = [{{ scheduler = \"s{above}\", {request} }}]\n"
        );
    }
    let last = levels - 1;
    text + &format!(
        "[[thread]]\nname = \"t\"\nwork = \"cpu-bound\"\nrequires = \"{requires}\"\n\
         under = [{{ scheduler = \"s{last}\", {request} }}]\n"
    )
}

#[test]
fn a_thousand_levels_are_derived_and_drawn() {
    let place = folder();
    let deep = write(&place, "deep.toml", &chain(1000, "fixed-priority", "priority = 1", "ALL"));
    let done = run(&["check", &deep, "--plot", &within(&place, "deep.svg")]).exits(0);
    assert!(done.stdout.contains("… 1000 levels below … t"), "{}", done.last_line());
    let svg = fs::read_to_string(within(&place, "deep.svg")).expect("it was drawn");
    assert!(svg.contains("701 more edges are left out"));
}

/// Numbers of hundreds of digits are calculated with, but nobody can read them.
#[test]
fn long_numbers_are_shortened() {
    let place = folder();
    let deep = write(&place, "deep.toml", &chain(60, "pshed", "guarantee = \"RESU 0.999\"", "PS 0.99"));
    let done = run(&["check", &deep]).exits(1);
    assert!(
        done.stdout.contains("… (") && done.stdout.lines().all(|line| line.chars().count() < 400),
        "{}",
        done.stdout
    );
}

#[test]
fn simulating_what_does_not_compose_says_so() {
    let place = folder();
    let file = changed(&place, "figure-1.toml", "PSBE 0.4 60ms", "PSBE 0.4 50ms");
    let done = run(&["sim", &file, "--for", "1s"]).exits(0);
    assert!(done.stderr.contains("warning: node local:"), "{}", done.stderr);
    assert!(done.stderr.contains("`talea check` explains it"), "{}", done.stderr);
    assert!(run(&["sim", &example("figure-1.toml"), "--for", "1s"]).exits(0).stderr.is_empty());
}

/// What always wants the processor has no deadline, in any form that a trace is given.
#[test]
fn endless_threads_have_no_deadline() {
    let own = folder();
    let file = changed(&own, "figure-1.toml", "{ burst = \"10ms\", period = \"100ms\" }", "\"cpu-bound\"");
    let (place, trace) = traced(&["sim", &file, "--for", "100ms"]);
    let at = |name: &str| within(&place, name);
    let shown = run(&["trace", "show", &trace, "--event", "job.release"]).exits(0).stdout;
    let of = |text: &str, name: &str| {
        let found = text.lines().find(|line| line.contains(name)).map(str::to_owned);
        found.unwrap_or_else(|| panic!("no {name} in {text}"))
    };
    assert!(of(&shown, "words #0").ends_with("no deadline"), "{shown}");
    assert!(of(&shown, "video #0").ends_with("due in 66.0ms"), "{shown}");
    let json = run(&["trace", "show", &trace, "--event", "job.release", "--json"]).exits(0).stdout;
    let words: Value = serde_json::from_str(&of(&json, "\"words\"")).expect("JSON");
    assert!(words["deadline_ns"].is_null() && words["fields"]["deadline"].is_null(), "{words}");
    let (csv, ctf, perfetto) = (at("f.csv"), at("ctf"), at("f.pftrace"));
    run(&["trace", "export", &trace, "--csv", &csv, "--ctf", &ctf, "--perfetto", &perfetto]).exits(0);
    let csv = fs::read_to_string(csv).expect("written");
    let row = of(&csv, "job=words#0;lane=words;nominal=0;");
    assert!(row.ends_with(";deadline=,,") && row.contains(",words,words,words,0,0,,"), "{row}");
    let ctf_metadata = fs::read_to_string(place.path().join("ctf/metadata")).expect("written");
    assert!(ctf_metadata.contains(&format!("no_deadline = {};", i64::MAX)), "{ctf_metadata}");
    match Command::new("babeltrace2").arg(&ctf).output() {
        Ok(read) => {
            let read = String::from_utf8(read.stdout).expect("text");
            let released =
                read.lines().filter(|line| line.contains("job:release")).collect::<Vec<_>>().join("\n");
            assert!(of(&released, "\"words\"").contains(&format!("deadline = {} ", i64::MAX)), "{released}");
            assert!(of(&released, "\"video\"").contains("deadline = 66000000 "), "{released}");
        }
        Err(error) => talea_measure::skip(format!("babeltrace2 does not start: {error}")),
    }
    let perfetto = String::from_utf8_lossy(&fs::read(perfetto).expect("written")).into_owned();
    for track in ["thread video (FP / RES)", "thread voice (FP / RES / J / PS)"] {
        assert!(perfetto.contains(track), "{track}");
    }
    assert!(!perfetto.contains("lane 0") && !perfetto.contains("queue"), "threads are no lanes");
}

/// A hierarchy need not have threads: where a reservation holds the lanes off, the processor does not idle for want of policy.
#[test]
fn the_time_in_which_lanes_are_held_off_is_told_from_waiting_in_them() {
    let place = folder();
    let text = "[system]\nname = \"below\"\nstrategy = \"rms\"\nlane_dispatch = \"nonpreemptive\"\n\
                [[node]]\nname = \"mission\"\ncpus = [0]\n\
                [[scheduler]]\nname = \"RES\"\nkind = \"reservation\"\n\
                [[scheduler]]\nname = \"flight\"\nkind = \"lanes\"\n\
                under = [{ scheduler = \"RES\", guarantee = \"RESBH 5ms 25ms\" }]\n\
                [[task]]\nname = \"control\"\nperiod = \"50ms\"\nwcet = \"12ms\"\ndeadline = \"20ms\"\n";
    let system = write(&place, "below.toml", text);
    let out = within(&place, "out");
    run(&["sim", &system, "--for", "1s", "--out", &out, "--fail-on", "never"]).exits(0);
    let trace = within(&place, "out/trace.talea");
    let done = run(&["trace", "explain", &trace]).exits(0);
    for part in ["time beyond what is kept for flight below RES", "RES keeps RESBH 5ms 25ms for flight"] {
        assert!(done.stdout.contains(part), "{part} is not in\n{}", done.stdout);
    }
    let done = run(&["trace", "verify", &system, &trace]).exits(0);
    assert!(
        done.stdout
            .contains("not judged on mission, where schedulers say when lanes have a processor: lanes, idle"),
        "{}",
        done.stdout
    );
    assert!(!done.stdout.contains("; 0 jobs"), "{}", done.stdout);
    let cases = done.stdout.lines().find(|line| line.contains("no case of it")).unwrap_or_default();
    assert!(!cases.contains("lanes") && !cases.contains("overrun"), "{cases}");
}

/// Of a hierarchy without tasks it is said what was judged: decisions, windows of guarantees, bursts of threads.
#[test]
fn what_was_verified_of_a_hierarchy_without_tasks_is_said() {
    let place = folder();
    let (file, out) = (example("figure-1.toml"), within(&place, "out"));
    run(&["sim", &file, "--for", "2s", "--out", &out]).exits(0);
    let trace = within(&place, "out/trace.talea");
    let json = run(&["trace", "verify", &file, &trace, "--json"]).exits(0).json();
    let judged = |what: &str| json["decisions"]["judged"][what].as_u64().expect("a number");
    let [requests, grants, revokes, releases] = ["requests", "grants", "revokes", "releases"].map(judged);
    assert!(requests > 0 && grants >= requests && judged("changes") == 0, "{json:#}");
    let bursts = json["lanes"]["bursts"].as_u64().expect("a number");
    assert!(bursts > 10 && json["lanes"]["jobs"] == 0, "{json:#}");
    let text = run(&["trace", "verify", &file, &trace]).exits(0).fits().stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let decisions = requests + grants + revokes + releases;
    for part in [
        format!("verified: {decisions} decisions ({requests} requests, {grants} grants,"),
        "no change of the hierarchy,".into(),
        "windows of guarantees".into(),
        format!("under its schedulers: obeyed; {bursts} bursts of threads, tolerance 0s"),
    ] {
        assert!(text.contains(&part), "{part} is not in\n{text}");
    }
}

/// One more program of a higher priority makes bursts late, on real threads as in a simulation.
#[test]
fn a_late_burst_is_explained_by_whose_turn_it_was() {
    let _alone = alone();
    let place = folder();
    let more = "[[thread]]\nname = \"busy\"\nwork = { burst = \"30ms\", period = \"50ms\" }\n\
                under = [{ scheduler = \"FP\", priority = 3 }]\n";
    let text = format!("{}\n{more}", fs::read_to_string(example("figure-1.toml")).expect("the example"));
    let system = write(&place, "late.toml", &text);
    for (number, how) in ["sim", "run"].into_iter().enumerate() {
        let out = within(&place, &format!("out{number}"));
        let done = run(&[how, &system, "--for", "2s", "--out", &out, "--fail-on", "never"]);
        if done.status != 0 && done.stderr.contains("talea doctor") {
            return talea_measure::skip(
                "hierarchies need real-time priorities, which are not permitted here",
            );
        }
        done.exits(0);
        let trace = format!("{out}/trace.talea");
        let done = run(&["trace", "explain", &trace, "--task", "video"]).exits(0);
        for part in ["the turn of busy below FP", "FP promises RES nothing"] {
            assert!(done.stdout.contains(part), "{how}: {part} is not in\n{}", done.stdout);
        }
        let json = run(&["trace", "explain", &trace, "--json"]).exits(0).json();
        for one in json["explanations"].as_array().expect("some are late") {
            let sum: i64 =
                one["totals"].as_array().expect("causes").iter().filter_map(|part| part["ns"].as_i64()).sum();
            assert_eq!(Some(sum), one["response_ns"].as_i64(), "{how}: {one}");
        }
        let verified = run(&["trace", "verify", &system, &trace, "--json"]).json();
        let rules = verified["decisions"]["rules"].as_array().expect("decisions are judged");
        assert!(rules.iter().all(|rule| rule["violations"] == 0), "{how}: {}", verified["decisions"]);
    }
}

/// A node with a hierarchy, one with lanes, and a task that goes from one to the other and is held by a guard there.
const HALVES: &str = r#"
    [system]
    name = "halves"
    strategy = "rms"
    [[node]]
    name = "a"
    cpus = [0]
    [[node]]
    name = "b"
    cpus = [1]
    [[scheduler]]
    name = "S"
    node = "a"
    kind = "round-robin"
    quantum = "1ms"
    [[scheduler]]
    name = "jobs"
    node = "a"
    kind = "lanes"
    under = [{ scheduler = "S" }]
    [[thread]]
    name = "hog"
    work = { burst = "1ms", period = "10ms" }
    under = [{ scheduler = "S" }]
    [[task]]
    name = "way"
    period = "20ms"
    sync = "release-guard"
      [[task.subtask]]
      name = "there"
      node = "a"
      wcet = "1ms"
      [[task.subtask]]
      name = "here"
      node = "b"
      wcet = "2ms"
    [[task]]
    name = "often"
    node = "b"
    period = "5ms"
    wcet = "2ms"
    [[task]]
    name = "seldom"
    node = "b"
    period = "40ms"
    wcet = "12ms"
"#;

#[test]
fn lanes_and_guards_beside_a_node_with_a_hierarchy_are_verified() {
    let place = folder();
    let (system, out) = (write(&place, "halves.toml", HALVES), within(&place, "out"));
    run(&["sim", &system, "--for", "2s", "--out", &out, "--fail-on", "never"]).exits(0);
    let trace = within(&place, "out/trace.talea");
    let verified = run(&["trace", "verify", &system, &trace, "--json"]).exits(0).json();
    assert_eq!(verified["not_judged"], serde_json::json!([]));
    assert_eq!(verified["lanes"]["below_schedulers"], serde_json::json!(["a"]));
    let cases = |verified: &serde_json::Value, rule: &str, what: &str| {
        let rules = verified["lanes"]["rules"].as_array().expect("lanes are judged").clone();
        let found = rules.iter().find(|one| one["rule"] == rule).and_then(|one| one[what].as_u64());
        found.unwrap_or_else(|| panic!("no {what} of {rule} in {rules:?}"))
    };
    for rule in ["plan", "life", "release", "precedence", "lanes", "idle"] {
        assert!(cases(&verified, rule, "cases") > 0 && cases(&verified, rule, "violations") == 0, "{rule}");
    }
    // Guards are judged for themselves: twice as many releases as jobs of the guarded subtask beyond the others'.
    let greedy = write(&place, "greedy.toml", &HALVES.replace("sync = \"release-guard\"", ""));
    let without = run(&["trace", "verify", &greedy, &trace, "--json"]).json();
    assert_eq!(cases(&verified, "release", "cases") - cases(&without, "release", "cases"), 100);
    let other = write(&place, "other.toml", &HALVES.replace("\"rms\"", "\"edf\""));
    let wrong = run(&["trace", "verify", &other, &trace, "--json"]).exits(1).json();
    // All four operations, also the one in the lanes below a scheduler.
    assert!(cases(&wrong, "plan", "violations") == 4 && cases(&wrong, "non-preemption", "violations") > 0);
    let text = run(&["trace", "verify", &other, &trace]).exits(1).fits().stdout;
    assert!(text.contains("non-preemption") && text.contains("guarantees"), "{text}");
}

/// The derivation knows no costs, and of bursts it says nothing.
#[test]
fn the_closing_line_promises_no_more_than_was_shown() {
    let place = folder();
    let half = "under = [{ scheduler = \"R\", guarantee = \"RESBH 5ms 10ms\" }]\n";
    let text = |head: &str, burst: &str| {
        format!(
            "[system]\nname = \"switches\"\n{head}[[scheduler]]\nname = \"R\"\nkind = \"reservation\"\n\
             [[thread]]\nname = \"a\"\nwork = {{ burst = \"{burst}\", period = \"20ms\" }}\n{half}\
             [[thread]]\nname = \"b\"\nwork = \"cpu-bound\"\n{half}"
        )
    };
    let fine = write(&place, "fine.toml", &text("", "4ms"));
    let done = run(&["check", &fine, "--fail-on", "any"]).exits(0);
    let closing = "every scheduler and all 2 threads receive what they are promised, whatever the threads do; \
                   the bursts of 1 thread are in time";
    assert!(done.words().ends_with(closing), "{}", done.stdout);

    let costly = write(&place, "costly.toml", &text("[overhead]\nswitch = \"900us\"\n", "4ms"));
    let done = run(&["check", &costly]).exits(0);
    assert!(done.words().contains("as far as the costs in [overhead] leave it to them"), "{}", done.stdout);
    assert!(!done.stdout.contains("whatever the threads do"), "{}", done.stdout);

    let late = write(&place, "late.toml", &text("", "11ms"));
    let done = run(&["check", &late]).exits(0);
    let closing = "the bursts of 1 of 1 thread are not sure to be in time: a";
    assert!(done.words().ends_with(closing), "{}", done.stdout);
    run(&["check", &late, "--fail-on", "any"]).exits(1);
}
