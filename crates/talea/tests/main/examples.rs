//! The programs in `examples/`.

use std::path::Path;
use std::process::Command;

/// The repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The example `name`, to be run in the repository.
fn program(name: &str) -> Command {
    let this = std::env::current_exe().expect("this program has a path");
    let examples = this.parent().and_then(|deps| deps.parent()).map(|folder| folder.join("examples"));
    let program = examples.map(|folder| folder.join(name)).filter(|program| program.exists());
    let program =
        program.unwrap_or_else(|| panic!("`cargo test` without `--test` builds the example `{name}`"));
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// What the example `name` prints. `cargo test` builds examples beside the tests' folder.
fn output_of(name: &str, arguments: &[&str]) -> String {
    let output = program(name).args(arguments).output().expect("the example starts");
    let text = |bytes| String::from_utf8(bytes).expect("it prints UTF-8");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(output.status.success(), "{}: {stdout}{stderr}", output.status);
    stdout
}

#[test]
fn the_embedding_example_runs() {
    let stdout = output_of("embed", &[]);
    let met = stdout.lines().filter(|line| line.starts_with("blink ") && line.contains(": true in "));
    let met = format!("; {} jobs met their deadline", met.count());
    let last = stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("sum ") && last.ends_with(&met), "{stdout}");
}

#[test]
fn the_controller_checks_runs_and_looks_back() {
    let stdout = output_of("controller", &["300ms"]);
    for task in ["control", "plan", "report"] {
        let line = |begin: &str, rest: &str| {
            stdout.lines().any(|line| line.starts_with(&format!("{task}: {begin}")) && line.ends_with(rest))
        };
        assert!(line("longest response ", ", Holds") && line("", " in time"), "{task}: {stdout}");
    }
    let events = stdout.lines().find_map(|line| line.strip_suffix(" events of the controller"));
    let events: u64 = events.expect("it counts its own events").parse().expect("a number");
    // Each job of the control loop tells two; how many there are in the time is the machine's affair.
    assert!(events >= 2, "{stdout}");
}

#[test]
fn posted_work_is_in_the_report() {
    let stdout = output_of("posted_work", &["300ms"]);
    let count = |suffix: &str| stdout.lines().find_map(|line| line.strip_suffix(suffix)?.parse::<u64>().ok());
    let posted = count(" alarms").expect("it says how many");
    let row = |name: &str| {
        let line = stdout.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        let released = line.and_then(|line| line.strip_suffix(" in time")?.split(" of ").nth(1));
        released.and_then(|released| released.parse::<u64>().ok()).expect("a row of the report")
    };
    // The last ones may come when the run is over, which whoever posts, every 20 ms, may hear a moment later.
    let alarms = row("alarm");
    assert!(posted >= 1 && (posted - 1..=posted).contains(&alarms), "{stdout}");
    assert!((1..=alarms).contains(&row("note")), "{stdout}");
}

/// Asked for a replay, it gets as far as it declares what it posts, and its jobs are called again.
#[test]
fn posted_work_is_replayed_by_the_program_that_posts_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, report) = (folder.path().join("alarms.talea"), folder.path().join("report.json"));
    let stdout = output_of("posted_work", &["300ms", trace.to_str().expect("a path in UTF-8")]);
    let asked =
        program("posted_work").env("TALEA_REPLAY", &trace).env("TALEA_REPLAY_REPORT", &report).output();
    let asked = asked.expect("the example starts");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(asked.status.code(), Some(0), "{}{}", said(&asked.stdout), said(&asked.stderr));
    // What it prints of the alarms it prints again, and nothing of a result.
    let of_alarms =
        |text: &str| text.lines().filter(|line| line.starts_with("noted: ")).map(str::to_owned).collect();
    let (then, now): (Vec<String>, Vec<String>) = (of_alarms(&stdout), of_alarms(&said(&asked.stdout)));
    assert!(!then.is_empty() && then == now, "{then:?} {now:?}");
    assert!(!said(&asked.stdout).contains("in time"));
    let report = std::fs::read_to_string(&report).expect("it is written");
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let report = &report["report"];
    assert_eq!((&report["first"], &report["posted"]), (&serde_json::Value::Null, &serde_json::json!([])));
    assert_eq!(report["posts"][0]["output"], "alarm>note");
    assert!(report["posts"][0]["compared"].as_u64() >= Some(then.len() as u64), "{report}");
}

/// Of alarms among more pictures than can be looked at, none is late but where all wait in one line.
#[test]
fn what_matters_is_in_time_under_overload_by_events() {
    let stdout = output_of("event_overload", &[]);
    let row = |name: &str| -> Vec<f64> {
        let line = stdout.lines().find_map(|line| line.strip_prefix(name)).expect("a row");
        line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let fifo = row("first come, first served ");
    assert!(fifo[0] > 5_900.0 && fifo[1] > 0.9 * fifo[0], "{stdout}");
    for name in ["MUF ", "RMS+MLF ", "reservation "] {
        let [alarms, late, lost, ..] = row(name)[..] else { panic!("{stdout}") };
        assert_eq!((alarms, late, lost), (6_000.0, 0.0, 0.0), "{name}: {stdout}");
    }
}

#[test]
fn the_readme_shows_the_files_as_they_are() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).expect("the file is there");
    let readme = read("README.md");
    assert!(readme.contains(&read("examples/hello.toml")), "README's first system is examples/hello.toml");
    let program = read("examples/embed.rs");
    let code =
        program.find("use std").map(|start| &program[start..]).expect("the program begins with imports");
    assert!(readme.contains(code), "README's program is examples/embed.rs");
    let program = read("examples/events.rs");
    let code =
        program.find("use talea").map(|start| &program[start..]).expect("the program begins with imports");
    assert!(readme.contains(code), "README's program with events is examples/events.rs");
    let stdout = output_of("events", &[]);
    assert!(stdout.lines().next().is_some_and(|line| line.starts_with("low battery: event ")), "{stdout}");
}

#[test]
fn the_robot_is_stopped_over_a_socket() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let mut robot = program("robot");
    let mut robot = robot.args(["60s", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(robot.stdout.take().expect("it prints")).lines().map_while(Result::ok);
    let first = lines.next().expect("it says where it listens");
    let mut words = first.split("nc -u -w0 ").nth(1).expect("how to reach it").split_whitespace();
    let port = words.nth(1).map(|port| port.trim_end_matches('`')).expect("a port").to_owned();
    lines.find(|line| line == "drives on").expect("it drives");
    let operator = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let say = |word: &str| operator.send_to(word.as_bytes(), format!("127.0.0.1:{port}")).expect("sent");
    say("stop");
    lines.find(|line| line.starts_with("stopped ")).expect("it stops");
    say("go");
    lines.find(|line| line == "drives on").expect("it drives on");
    robot.kill().expect("it runs");
    robot.wait().expect("it ends");
}

#[test]
fn the_project_to_start_from_runs() {
    let stdout = output_of("new", &["1"]);
    assert!(stdout.lines().any(|line| line.contains("published") && line.contains("ago")), "{stdout}");
    assert!(stdout.lines().any(|line| line.starts_with("filter: ")), "{stdout}");
}
