//! `talea ctl NAME statistics`, of a program that tells them, and of a run of a system file.

use crate::support::{Done, Running, eventually, example, folder, run, write};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use talea_manage::control::protocol::{Command, Force, Insistence, Outcome, Refusal, Statistic};
use talea_manage::control::{Client, CommandHandler, Server, Sockets};
use talea_policy::arrangement::ChangeAuthor;

/// A program with channels.
struct Plant;

impl CommandHandler for Plant {
    fn handle(&self, command: Command, _: Insistence, _: ChangeAuthor) -> Outcome {
        let Command::Statistics { names } = command else {
            let reasons = vec!["it has no hierarchy".into()];
            return Outcome::Refused(Refusal { reasons, remedy: None, force: Force::InVain });
        };
        let number = |last| Statistic::Number {
            last,
            count: 2,
            average: 3.5,
            sum_of_squares: 25.0,
            minimum: 3.0,
            maximum: 4.0,
        };
        let all = BTreeMap::from([
            ("plant/motion/OldestEvent".to_owned(), number(1_250_000.0)),
            ("plant/motion/ConsumerNames".into(), Statistic::Names(vec!["guard".into(), "log".into()])),
            ("plant/motion/SlowestConsumers".into(), Statistic::Names(vec![])),
        ]);
        if let Some(unknown) = names.iter().find(|name| !all.contains_key(*name)) {
            return Outcome::Misstated(format!("there is no statistic \"{unknown}\""));
        }
        let is_wanted = |name: &String| names.is_empty() || names.contains(name);
        Outcome::Statistics(all.into_iter().filter(|(name, _)| is_wanted(name)).collect())
    }
}

#[test]
fn statistics_of_a_program_are_shown_by_name() {
    let name = format!("plant-{}", std::process::id());
    let sockets = Sockets::of_user().expect("a folder");
    let _server = Server::start(&sockets, &name, Arc::new(Plant)).expect("served");
    let ctl = |arguments: &[&str]| -> Done { run(&[&["ctl", &name], arguments].concat()) };
    let all = ctl(&["statistics"]).exits(0).stdout;
    let lines: Vec<String> =
        all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "plant/motion/ConsumerNames guard, log",
        "plant/motion/OldestEvent 1250000",
        "plant/motion/SlowestConsumers",
    ] {
        assert!(lines.iter().any(|shown| shown == line), "{line} is not in\n{all}");
    }
    let json = ctl(&["statistics", "plant/motion/OldestEvent", "--json"]).exits(0).json();
    let oldest = &json["outcome"]["statistics"]["plant/motion/OldestEvent"]["number"];
    assert_eq!((&oldest["last"], &oldest["average"]), (&1_250_000.0.into(), &3.5.into()));
    assert!(ctl(&["statistics", "plant/x"]).exits(2).stderr.contains("no statistic \"plant/x\""));
    assert!(ctl(&["list"]).exits(1).stderr.contains("it has no hierarchy"));
    let listed = run(&["ctl"]).exits(0).stdout;
    assert!(
        listed.lines().any(|line| line.contains(&name) && line.contains("no: it has no hierarchy")),
        "{listed}"
    );
    // The examples of the help, with the name of this program.
    let help = run(&["ctl", "statistics", "--help"]).exits(0).stdout;
    let examples: Vec<&str> =
        help.lines().filter_map(|line| line.trim().strip_prefix("talea ctl plant ")).collect();
    assert_eq!(examples.len(), 2);
    examples.iter().for_each(|example| _ = ctl(&example.split(' ').collect::<Vec<_>>()).exits(0));
}

/// A run of this file that answers under this name.
fn running(name: &str, text: &str) -> (tempfile::TempDir, Running) {
    let place = folder();
    let file = write(&place, "counted.toml", text);
    let mut running = Running::start(&["run", &file, "--for", "300s", "--fail-on", "never"]);
    eventually("the run answers", || {
        running.lives();
        run(&["ctl", name, "statistics"]).status == 0
    });
    (place, running)
}

/// What the channels of a file count is told by the run's own name, to several at once, whoever else is silent or does not read, until the run ends.
#[test]
fn the_channels_of_a_file_are_told_of_while_it_runs() {
    let name = format!("counted-{}", std::process::id());
    let text = std::fs::read_to_string(example("notification.toml")).expect("there");
    let (_place, mut running) = running(&name, &text.replace("\"robot-events\"", &format!("\"{name}\"")));
    let told = |of: &str| {
        let done = run(&["ctl", &name, "statistics", &format!("{name}/{of}"), "--json"]).exits(0);
        done.json()["outcome"]["statistics"].clone()
    };
    let names = |of: &str| told(of)[&format!("{name}/{of}")]["names"].clone();
    assert_eq!(names("ActiveEventChannelNames"), serde_json::json!(["motion", "health"]));
    assert_eq!(names("motion/ConsumerNames"), serde_json::json!(["brake", "silence"]));
    assert_eq!(names("motion/SupplierNames").as_array().map(Vec::len), Some(2));
    assert_eq!(names("health/OfferedTypes"), serde_json::json!(["Robot/Battery", "Robot/Tilt"]));
    assert_eq!(told("motion").as_object().expect("statistics").len(), 17);
    assert!(run(&["ctl", &name, "statistics", "motion"]).exits(2).stderr.contains("no statistic \"motion\""));
    // It has no hierarchy, and says so.
    assert!(run(&["ctl", &name, "list"]).exits(1).stderr.contains("no hierarchy"));
    assert!(run(&["ctl", &name, "remove", "brake"]).exits(1).stderr.contains("ask for `statistics`"));

    let found = Sockets::of_user().expect("a folder").find(&name).expect("it is there");
    // One is silent, and one asks again and again and reads nothing.
    let mut silent = UnixStream::connect(&found.path).expect("connected");
    let mut deaf = UnixStream::connect(&found.path).expect("connected");
    deaf.set_nonblocking(true).expect("it can be");
    let request = "{\"version\":2,\"command\":{\"statistics\":{\"names\":[]}}}\n";
    while deaf.write(request.as_bytes()).is_ok() {}
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let command = Command::Statistics { names: Vec::new() };
                    let answer = Client::of(&found).ask(&command, Insistence::Careful).expect("answered");
                    let Outcome::Statistics(all) = answer else { panic!("{answer:?}") };
                    assert_eq!(all.len(), 1 + 4 + 2 * 17, "{all:?}");
                }
            });
        }
    });
    running.lives();
    // Whoever waits when the run ends is not left waiting.
    running.signal(Signal::INT);
    running.finish();
    let mut rest = Vec::new();
    _ = silent.read_to_end(&mut rest);
    assert!(!found.path.exists());
    assert!(run(&["ctl", &name, "statistics"]).exits(2).stderr.contains("can be controlled"));
}

/// A channel is within one node: each node's process tells of what is used there.
#[test]
fn each_node_of_a_file_tells_of_its_own_channels() {
    if std::thread::available_parallelism().map_or(1, std::num::NonZero::get) < 2 {
        return talea_measure::skip("two processors are needed, and one is here");
    }
    let name = format!("nodes-{}", std::process::id());
    let tasks = ["left", "right"].map(|node| {
        format!(
            r#"
[[task]]
name = "push-{node}"
period = "5ms"
node = "{node}"
wcet = "10us"
events = [{{ channel = "shared", type = "T/{node}" }}]
[[task]]
name = "take-{node}"
subscription = {{ channel = "shared", types = ["T/{node}"] }}
deadline = "5ms"
node = "{node}"
wcet = "10us"
"#
        )
    });
    let text = format!(
        r#"
[system]
name = "{name}"
strategy = "rms"
[[node]]
name = "left"
cpus = [0]
[[node]]
name = "right"
cpus = [1]
[[channel]]
name = "shared"
{}"#,
        tasks.concat()
    );
    let (_place, mut running) = running(&format!("{name}.left"), &text);
    for node in ["left", "right"] {
        let called = format!("{name}.{node}");
        eventually("each has its own", || run(&["ctl", &called, "statistics"]).status == 0);
        let json = run(&["ctl", &called, "statistics", "--json"]).exits(0).json();
        let told =
            |what: &str| json["outcome"]["statistics"][&format!("{called}/shared/{what}")]["names"].clone();
        assert_eq!(told("ConsumerNames"), serde_json::json!([format!("take-{node}")]), "{json}");
        assert_eq!(told("OfferedTypes"), serde_json::json!([format!("T/{node}")]), "{json}");
    }
    running.signal(Signal::INT);
    running.finish();
}
