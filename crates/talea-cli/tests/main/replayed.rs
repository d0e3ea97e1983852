//! What a trace tells of values: `talea replay` of runs, simulations and programs that are asked, and the picture of their ages.

use crate::support::{example, folder, root, run, traced, within, write};
use std::fs;

fn recorded(command: &str, kept: &str) -> (tempfile::TempDir, String) {
    let time = if command == "sim" { "2s" } else { "500ms" };
    traced(&[command, &example("robot.toml"), "--for", time, "--keep-values", kept])
}

#[test]
fn what_synthetic_operations_publish_is_the_same_again() {
    for command in ["sim", "run"] {
        let (_place, trace) = recorded(command, "all");
        let done = run(&["replay", &trace, "--system", &example("robot.toml")]).exits(0).fits();
        let words = done.words();
        assert!(
            words.contains("values compared: all equal") && words.contains("control.step.command"),
            "{words}"
        );
        let json = run(&["replay", &trace, "--system", &example("robot.toml"), "--json"]).exits(0).json();
        assert!(json["called"].as_u64() > Some(50), "{json}");
        // What they push is compared, too.
        let of_events = |row: &serde_json::Value| row["compared"].as_u64().expect("a number");
        let events: u64 = json["publications"].as_array().expect("a list").iter().map(of_events).sum();
        assert!(events > 50 && words.contains("events and"), "{json}");
        assert_eq!(
            (&json["first"], json["outputs"].as_array().map(Vec::len)),
            (&serde_json::Value::Null, Some(7))
        );
    }
}

/// Synthetic values are drawn again with the seed of the recorded run, whatever seed the file has now; of another distribution they are others.
#[test]
fn the_first_difference_is_named() {
    let place = folder();
    let text = |seed: u32, most: u32| {
        format!(
            "[system]\nname = \"s\"\nseed = {seed}\n[[task]]\nname = \"t\"\nperiod = \"10ms\"\nwcet = \"1ms\"\n\
             outputs = [{{ name = \"v\", bytes = 10, fields = {{ x = {{ uniform = [1, {most}] }} }} }}]\n"
        )
    };
    let (one, two) = (write(&place, "one.toml", &text(1, 1_000_000)), write(&place, "two.toml", &text(1, 7)));
    let reseeded = write(&place, "reseeded.toml", &text(9, 1_000_000));
    let out = within(&place, "out");
    run(&["sim", &one, "--for", "100ms", "--out", &out, "--keep-values", "t.v"]).exits(0);
    let trace = format!("{out}/trace.talea");
    run(&["replay", &trace, "--system", &one]).exits(0);
    run(&["replay", &trace, "--system", &reseeded]).exits(0);
    let out = within(&place, "threads");
    run(&[
        "run",
        &reseeded,
        "--for",
        "100ms",
        "--out",
        &out,
        "--keep-values",
        "t.v",
        "--rt",
        "off",
        "--fail-on",
        "never",
    ])
    .exits(0);
    run(&["replay", &format!("{out}/trace.talea"), "--system", &one]).exits(0);
    let done = run(&["replay", &trace, "--system", &two]).exits(1).fits();
    let words = done.words();
    assert!(
        words.contains("the first: t.v of job 0, 1ms after the start: from byte 0 on, recorded "),
        "{words}"
    );
}

/// What the description has otherwise than the trace is said by name, whether the replay goes on or is refused.
#[test]
fn what_the_description_has_otherwise_is_named() {
    let place = folder();
    let text = |period: u32, strategy: &str, name: &str| {
        format!(
            "[system]\nname = \"s\"\nseed = 3\nstrategy = \"{strategy}\"\n[[task]]\nname = \"t\"\nperiod = \"{period}ms\"\n\
             deadline = \"9ms\"\nwcet = \"1ms\"\noutputs = [{{ name = \"{name}\", bytes = 10 }}]\n"
        )
    };
    let then = write(&place, "then.toml", &text(10, "edf", "v"));
    let now = write(&place, "now.toml", &text(20, "rms", "v"));
    let other = write(&place, "other.toml", &text(20, "edf", "w"));
    let notes = [
        "note: the period of task \"t\" is 10ms in the trace and 20ms in the description",
        "note: the strategy is edf in the trace and rms in the description",
    ];
    for command in [&["sim"][..], &["run", "--rt", "off", "--fail-on", "never"]] {
        let out = within(&place, command[0]);
        let given = [&then[..], "--for", "100ms", "--out", &out, "--keep-values", "all"];
        run(&[command, &given[..]].concat()).exits(0);
        let trace = format!("{out}/trace.talea");
        let same = run(&["replay", &trace, "--system", &then]).exits(0);
        assert!(!same.stdout.contains("note:"), "{}", same.stdout);
        let done = run(&["replay", &trace, "--system", &now]).exits(0).fits();
        for note in notes {
            assert!(done.words().contains(note), "{note} is missing in {}", done.stdout);
        }
        let json = run(&["replay", &trace, "--system", &now, "--json"]).exits(0).json();
        let what = |place: usize| json["differences"][place]["what"].as_str().map(str::to_owned);
        assert_eq!(what(0).as_deref(), Some("the period of task \"t\""), "{json}");
        let refused = run(&["replay", &trace, "--system", &other]).exits(2);
        for part in [
            "it has output \"t.v\", and the description has output \"t.w\"",
            "Besides, the period of task \"t\" is 10ms in the trace and 20ms in the description",
        ] {
            assert!(refused.stderr.contains(part), "{part} is missing in {}", refused.stderr);
        }
    }
}

/// Events that are pushed are drawn again; of another distribution they are others, and their header is another with another priority.
#[test]
fn the_first_push_that_differs_is_named() {
    let place = folder();
    let text = |most: u32, priority: u32| {
        format!(
            "[system]\nname = \"s\"\n[[channel]]\nname = \"c\"\n[[task]]\nname = \"t\"\nperiod = \"10ms\"\nwcet = \"1ms\"\n\
             events = [{{ channel = \"c\", type = \"T/A\", bytes = 16, priority = {priority}, \
             fields = {{ x = {{ uniform = [1, {most}] }} }} }}]\n"
        )
    };
    let one = write(&place, "one.toml", &text(1_000_000, 1));
    let (two, three) =
        (write(&place, "two.toml", &text(7, 1)), write(&place, "three.toml", &text(1_000_000, 2)));
    for command in [&["sim"][..], &["run", "--rt", "off", "--fail-on", "never"]] {
        let out = within(&place, command[0]);
        let given = [&one[..], "--for", "100ms", "--out", &out, "--keep-values", "c"];
        run(&[command, &given[..]].concat()).exits(0);
        let trace = format!("{out}/trace.talea");
        let same = run(&["replay", &trace, "--system", &one]).exits(0).fits();
        assert!(same.words().contains("events and 0 values compared: all equal"), "{}", same.stdout);
        for (file, part) in
            [(&two, ": from byte 0 on, recorded "), (&three, ": its header differs from byte ")]
        {
            let done = run(&["replay", &trace, "--system", file]).exits(1).fits();
            let words = done.words();
            // Threads leave out the first jobs where the machine stands still at the start, of which the table tells then.
            let left_out = words.split_once(" from job ").and_then(|(_, rest)| rest.split_once(" on "));
            let job = left_out.map_or("0", |(job, _)| job);
            assert!(command[0] == "run" || job == "0", "{words}");
            let first = format!("the first: t>c T/A of job {job}, event 0, ");
            assert!(words.contains(&first) && words.contains(part), "{words}");
        }
    }
}

/// A program with a channel of its own: filters, a condition and consumers in several lanes.
#[test]
fn a_program_with_channels_is_replayed_by_the_command() {
    let this = std::env::current_exe().expect("this program has a path");
    let examples = this.parent().and_then(|deps| deps.parent()).map(|folder| folder.join("examples"));
    let program = examples.map(|folder| folder.join("replayed_program")).filter(|program| program.exists());
    let program = program.expect("`cargo test` without `--test` builds the example `replayed_program`");
    let program = program.to_str().expect("a path in UTF-8");
    let place = folder();
    let trace = within(&place, "events.talea");
    let ran = std::process::Command::new(program).args(["1600ms", &trace]).output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));

    let done = run(&["replay", &trace, "--", program]).exits(0).fits();
    let words = done.words();
    assert!(words.contains("sense>robot Robot/Battery") && words.contains("all equal"), "{words}");
    // The consumer that warns is handed the same again, and says it again.
    let warnings = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("the battery is at "));
        lines.map(str::to_owned).collect()
    };
    let (then, now) = (warnings(&said), warnings(&done.stderr));
    // That of a job which is under way at the end may be said, and its job does not complete.
    assert!(!now.is_empty() && then.starts_with(&now) && then.len() <= now.len() + 1, "{then:?} {now:?}");
    let json = run(&["replay", &trace, "--json", "--", program]).exits(0).json();
    assert_eq!(
        (&json["posted"], &json["first"]),
        (&serde_json::json!([]), &serde_json::Value::Null),
        "{json}"
    );
    let compared = |row: &serde_json::Value| row["compared"].as_u64().expect("a number");
    let sum = |rows: &str| -> u64 { json[rows].as_array().expect("a list").iter().map(compared).sum() };
    assert!(sum("publications") > 50, "{json}");
    // And answers the same to it.
    assert!(sum("outcomes") > 5, "{json}");
    let answers = format!("events, {} answers and", sum("outcomes"));
    assert!(words.contains("(answers)") && words.contains("output, events or answers"), "{words}");
    assert!(words.contains(&answers), "{words}");
}

#[test]
fn what_cannot_be_replayed_is_refused_with_a_remedy() {
    let (_place, trace) = recorded("sim", "imu.read.sample");
    let robot = example("robot.toml");
    let refused = |arguments: &[&str], parts: &[&str]| {
        let said = run(arguments).exits(2).stderr;
        for part in parts {
            assert!(said.contains(part), "{part} is missing in: {said}");
        }
    };
    let other = example("ofp.toml");
    refused(
        &["replay", &trace, "--system", &other],
        &["the trace is of another system", "lidar.scan", "sensors"],
    );
    refused(&["replay", &trace], &["nothing is given whose operations could be called", "behind --"]);
    refused(&["replay", &robot, "--system", &robot], &["this is not a Talea trace"]);
    refused(&["replay", "nowhere", "--system", &robot], &["cannot read the trace nowhere"]);
    refused(
        &["replay", &trace, "--", "/nowhere"],
        &["cannot start /nowhere", "the program that ran the system"],
    );
    refused(&["replay", &trace, "--", "true"], &["true ended (exit status: 0) and has not replayed"]);
    let wrong = ["replay", &trace, "--", "sh", "-c", "echo '{\"report\": 7}' > $TALEA_REPLAY_REPORT"];
    refused(&wrong, &["what sh answered is no report", "build it with the same Talea"]);
    let error =
        ["replay", &trace, "--", "sh", "-c", "echo '{\"error\": \"no such port\"}' > $TALEA_REPLAY_REPORT"];
    refused(&error, &["no such port"]);
    let (_place, bare) = traced(&["sim", &robot, "--for", "100ms"]);
    refused(
        &["replay", &bare, "--system", &robot],
        &["the trace keeps neither values nor events", "--keep-values"],
    );
    refused(&["sim", &robot, "--keep-values", "all"], &["--out"]);
    let out = tempfile::tempdir().expect("a folder").path().join("x").display().to_string();
    let unknown = ["sim", &robot, "--out", &out, "--keep-values", "imu.read.sampel"];
    refused(&unknown, &["did you mean \"imu.read.sample\"?"]);
    refused(
        &["run", &example("hello.toml"), "--out", &out, "--keep-values", "all"],
        &["has no outputs or events"],
    );
}

/// A trace that is cut short has the values of its beginning.
#[test]
fn a_trace_that_is_cut_is_replayed_as_far_as_it_goes() {
    let (place, trace) = recorded("sim", "all");
    let bytes = std::fs::read(&trace).expect("readable");
    let cut = within(&place, "cut.talea");
    std::fs::write(&cut, &bytes[..bytes.len() * 3 / 4]).expect("writable");
    let json = run(&["replay", &cut, "--system", &example("robot.toml"), "--json"]).exits(0).json();
    assert!(json["called"].as_u64() > Some(50) && json["first"].is_null(), "{json}");
}

/// The picture in the documentation is what its command draws.
#[test]
fn ages_of_values_are_drawn() {
    let (place, trace) = traced(&["sim", &example("ages.toml"), "--for", "2s"]);
    let picture = within(&place, "ages.svg");
    run(&["trace", "export", &trace, "--ages", &picture, "--length", "1s"]).exits(0);
    let shown = root().join("docs/images/ages.svg");
    assert_eq!(fs::read_to_string(&picture).expect("written"), fs::read_to_string(shown).expect("readable"));
    let (place, without) = traced(&["sim", &example("hello.toml"), "--for", "1s"]);
    let done = run(&["trace", "export", &without, "--ages", &within(&place, "none.svg")]).exits(2);
    assert!(done.stderr.contains("no job took a value"), "{}", done.stderr);
    assert!(!place.path().join("none.svg").exists());
    let done =
        run(&["trace", "export", &trace, "--csv", &within(&place, "x.csv"), "--length", "1s"]).exits(2);
    assert!(done.stderr.contains("--svg") && done.stderr.contains("--ages"), "{}", done.stderr);
}
