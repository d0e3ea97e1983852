//! `check`: verdicts, reasons, margins, advice and pictures.

use crate::support::{example, folder, run, within};
use std::fs;

/// A system with these tasks on one processor, in a file of its own.
fn system(place: &tempfile::TempDir, strategy: &str, tasks: &[&str]) -> String {
    let path = within(place, "system.toml");
    let tasks: String = tasks.iter().map(|task| format!("[[task]]\n{task}\n")).collect();
    let head = format!(
        "[system]\nname = \"tested\"\nstrategy = \"{strategy}\"\n[[node]]\nname = \"n\"\ncpus = [0]\n"
    );
    fs::write(&path, head + &tasks).expect("the folder is there");
    path
}

/// The response times of Burns and Wellings' example are 3, 6 and 20 ms.
const TEXTBOOK: [&str; 3] = [
    "name = \"a\"\nperiod = \"7ms\"\nwcet = \"3ms\"\ncriticality = \"high\"",
    "name = \"b\"\nperiod = \"12ms\"\nwcet = \"3ms\"\ncriticality = \"high\"",
    "name = \"c\"\nperiod = \"20ms\"\nwcet = \"5ms\"\ncriticality = \"high\"",
];

#[test]
fn exact_response_times_are_those_of_the_textbook() {
    let place = folder();
    let json = run(&["check", &system(&place, "rms", &TEXTBOOK), "--json"]).exits(0).json();
    let bounds: Vec<i64> =
        (0..3).map(|task| json["tasks"][task]["bound_ns"].as_i64().expect("a bound")).collect();
    assert_eq!(bounds, [3_000_000, 6_000_000, 20_000_000]);
    assert!((0..3).all(|task| json["tasks"][task]["exact"] == true), "{json}");
    assert_eq!(json["critical"], "holds");
}

#[test]
fn a_miss_is_refuted_with_an_instance_and_a_reason() {
    let place = folder();
    let mut tasks = TEXTBOOK;
    tasks[2] = "name = \"c\"\nperiod = \"20ms\"\nwcet = \"6ms\"\ncriticality = \"high\"";
    let path = system(&place, "rms", &tasks);
    let done = run(&["check", &path]).exits(1);
    for part in [
        "why not",
        "c: it is sure only after",
        "a in lane 7ms",
        "the instance arriving at 0s is",
        "a critical task can miss",
    ] {
        assert!(done.stdout.contains(part), "{part} in\n{}", done.stdout);
    }
    let json = run(&["check", &path, "--json"]).exits(1).json();
    assert_eq!(json["tasks"][2]["verdict"], "misses");
    // The first job completes after its own 6 ms, three jobs of a and two of b: 21 ms.
    assert_eq!(json["tasks"][2]["miss"]["lateness_ns"], 1_000_000);
    assert_eq!(json["tasks"][0]["verdict"], "holds");
    run(&["check", &path, "--fail-on", "never"]).exits(0);
}

#[test]
fn an_overload_says_what_still_holds() {
    let done = run(&["check", &example("overload.toml")]).exits(0);
    for part in ["no bound", "130.0 %", "critical set", "every critical task holds: 1 of 1"] {
        assert!(done.stdout.contains(part), "{part} in\n{}", done.stdout);
    }
    run(&["check", &example("overload.toml"), "--fail-on", "any"]).exits(1);
}

#[test]
fn margins_are_the_last_values_that_hold() {
    let place = folder();
    let path = system(&place, "rms", &TEXTBOOK);
    let json = run(&["check", &path, "--sensitivity", "--json"]).exits(0).json();
    // c ends exactly at its deadline, so nothing that comes before it may grow by a thousandth.
    assert_eq!(json["sensitivity"]["all_ppm"], 1_000_000);
    assert_eq!(json["sensitivity"]["tasks"][2]["wcet_ppm"], 1_000_000);
    let mut light = TEXTBOOK;
    light[2] =
        "name = \"c\"\nperiod = \"40ms\"\ndeadline = \"20ms\"\nwcet = \"2500us\"\ncriticality = \"high\"";
    let json = run(&["check", &system(&place, "rms", &light), "--sensitivity", "--json"]).exits(0).json();
    assert_eq!(
        json["sensitivity"]["tasks"][2]["wcet_ppm"], 2_000_000,
        "up to the 5 ms of the textbook: {json}"
    );
    let text = run(&["check", &path, "--sensitivity"]).exits(0).stdout;
    assert!(text.contains("shortest period") && text.contains("× 2.000"), "{text}");
}

#[test]
fn an_instance_lost_to_its_overrun_policy_does_not_hold() {
    let place = folder();
    let lossy = "name = \"t\"\nperiod = \"10ms\"\njitter = \"9ms\"\ndeadline = \"11ms\"\nwcet = \"2ms\"\ncriticality = \"high\"\n";
    for (policy, status) in [("abort", 1), ("skip-next", 1), ("queue", 0)] {
        let task = format!("{lossy}overrun = \"{policy}\"");
        let path = system(&place, "rms", &[&task]);
        let checked = run(&["check", &path, "--json"]).exits(status).json();
        assert_eq!(checked["tasks"][0]["bound_ns"], 11_000_000, "{policy}");
        let simulated = run(&["sim", &path, "--for", "60s", "--json", "--fail-on", "never"]).exits(0).json();
        let lost = ["aborted", "skipped"]
            .map(|how| simulated["report"]["tasks"][0][how].as_i64().expect("a number"));
        assert_eq!(lost.iter().sum::<i64>() > 0, status == 1, "{policy}: {simulated}");
    }
    let text =
        run(&["check", &system(&place, "rms", &[&format!("{lossy}overrun = \"abort\"")])]).exits(1).stdout;
    assert!(text.contains("may still run when the next instance arrives"), "{text}");
}

#[test]
fn advice_and_margins_are_bounded_for_numbers_without_measure() {
    let place = folder();
    let hostile = ["name = \"year\"\nperiod = \"1ns\"\nwcet = \"8760h\"\ncriticality = \"high\""];
    let json = run(&["check", &system(&place, "rms", &hostile), "--advise", "--sensitivity", "--json"])
        .exits(1)
        .json();
    assert_eq!(json["advice"]["simulated_ns"], 1_000_000, "a million jobs");
    let many: Vec<String> = (0..300)
        .map(|task| {
            format!("name = \"t{task}\"\nperiod = \"{}ns\"\nwcet = \"2us\"", 1_000_000 + 7_919 * task)
        })
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let json = run(&["check", &system(&place, "mlf", &many), "--sensitivity", "--json"]).json();
    let margins = &json["sensitivity"];
    let computed = margins["tasks"].as_array().expect("a list").len() as u64;
    assert_eq!(computed + margins["left_out"].as_u64().expect("a number"), 300, "{margins}");
}

#[test]
fn advice_puts_hard_assurance_before_soft_deadlines() {
    let done = run(&["check", &example("ofp.toml"), "--advise", "--for", "5s", "--json"]).exits(0);
    let json = done.json();
    let ranking = json["advice"]["ranking"].as_array().expect("a list");
    assert_eq!(ranking.len(), 6, "every strategy is ranked");
    let place = |ranked: &serde_json::Value| {
        (ranked["hard"]["missed"].as_i64() > Some(0), -ranked["critical_proved"].as_i64().expect("a number"))
    };
    assert!(ranking.is_sorted_by_key(place), "{ranking:?}");
    let names: Vec<&str> =
        ranking.iter().map(|ranked| ranked["strategy"].as_str().expect("a name")).collect();
    assert!(["muf", "rms+mlf"].contains(&names[0]), "{names:?}");
    assert!(ranking.iter().all(|ranked| ranked["reason"].as_str().is_some_and(|reason| !reason.is_empty())));
    let rms = ranking.iter().find(|ranked| ranked["strategy"] == "rms").expect("it is there");
    assert!(rms["hard"]["missed"].as_i64() > Some(0), "the data link comes last under rms: {rms}");
}

#[test]
fn the_picture_shows_every_task() {
    let place = folder();
    let picture = within(&place, "bounds.svg");
    run(&["check", &example("ofp.toml"), "--plot", &picture]).exits(0);
    let svg = fs::read_to_string(&picture).expect("it was drawn");
    for name in ["sensors", "navigation", "stores", "data-link", "route", "display", "deadline"] {
        assert!(svg.contains(name), "{name} is not in the picture");
    }
    let refused =
        run(&["check", &example("ofp.toml"), "--plot", &within(&place, "missing/bounds.svg")]).exits(2);
    assert!(refused.stderr.contains("make it first"), "{}", refused.stderr);
}

#[test]
fn numbers_without_measure_get_an_answer() {
    let place = folder();
    let hostile = ["name = \"year\"\nperiod = \"1ns\"\nwcet = \"8760h\"\ncriticality = \"high\""];
    let done = run(&["check", &system(&place, "rms", &hostile)]).exits(1);
    assert!(done.stdout.contains("no bound"), "{}", done.stdout);
    let full: Vec<String> = [1_000_003_i64, 1_000_033, 1_000_037]
        .iter()
        .map(|period| format!("name = \"t{period}\"\nperiod = \"{period}ns\"\nwcet = \"{}ns\"", period / 3))
        .collect();
    let full: Vec<&str> = full.iter().map(String::as_str).collect();
    for strategy in ["rms", "edf", "mlf", "muf", "rms+mlf", "criticality"] {
        let done = run(&["check", &system(&place, strategy, &full), "--sensitivity"]);
        assert!(
            done.words().contains("of 3 other tasks are proved"),
            "{strategy}: {}\n{}",
            done.stdout,
            done.stderr
        );
    }
    let zero = ["name = \"z\"\nperiod = \"1ms\"\ndeadline = \"0ms\"\nwcet = \"1us\""];
    let refused = run(&["check", &system(&place, "rms", &zero)]).exits(2);
    assert!(
        refused.stderr.contains("system.toml:10:12") && refused.stderr.contains("zero"),
        "{}",
        refused.stderr
    );
}

/// A profile of a machine with high costs, whose kernel withholds 50 ms of each second.
const MACHINE: &str = "[machine]\nkernel = \"6.1\"\nreal_time = true\nlongest_stall = \"2ms\"\n\
    [[costs]]\nload = \"busy\"\nswitch = \"2us\"\nqueue = \"10us\"\ntimer = \"30us\"\nmessage = \"1us\"\n\
    push = \"1us\"\nfilter = \"1us\"\ndelivery = \"1us\"\n\
    [[withheld]]\nby = \"throttling\"\namount = \"50ms\"\nperiod = \"1s\"\n";

/// Though no task is critical, and so the exit status says nothing of them.
#[test]
fn what_misses_on_a_machine_is_not_said_to_hold_there() {
    let place = folder();
    let machine = within(&place, "machine.toml");
    fs::write(&machine, MACHINE).expect("the folder is there");
    let tasks = [
        "name = \"a\"\nperiod = \"50us\"\nwcet = \"5us\"",
        "name = \"b\"\nperiod = \"100us\"\nwcet = \"10us\"",
    ];
    let done = run(&["check", &system(&place, "rms", &tasks), "--machine", &machine]).exits(0);
    let words = done.words();
    assert!(words.contains("ideal machine: every task holds: 0 of 0 critical and 2 of 2"), "{words}");
    assert!(
        words.contains("this machine: no task is critical, and not every task is sure to hold"),
        "{words}"
    );
    assert!(words.contains("with the costs in [overhead] more is needed"), "{words}");

    // A hierarchy without bursts has no rows to be shown.
    let capped = within(&place, "capped.toml");
    let text = "[system]\nname = \"capped\"\n[[scheduler]]\nname = \"R\"\nkind = \"reservation\"\n\
                [[thread]]\nname = \"hog\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"R\", guarantee = \"RESBH 47ms 50ms\" }]\n";
    fs::write(&capped, text).expect("the folder is there");
    let done = run(&["check", &capped, "--machine", &machine]).exits(0);
    assert!(
        done.words()
            .ends_with("ideal machine: every hierarchy composes this machine: every hierarchy composes")
    );
    assert!(!done.stdout.contains("this machine   "), "{}", done.stdout);
}
