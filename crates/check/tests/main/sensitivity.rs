//! Margins: what is said of a shorter period holds of the file that says it, and does not hold of a shorter one.

use std::path::Path;
use talea_check::sensitivity::sensitivity;
use talea_check::{Verdict, check};
use talea_model::System;

/// Two tasks that hand their deadline on to the same one, one that something outside releases, and one that this one releases.
const HANDED_ON: &str = r#"
[system]
name = "handed-on"
strategy = "rms"
[[node]]
name = "n"
cpus = [0]
[[channel]]
name = "c"
[[task]]
name = "a"
period = "20ms"
wcet = "2ms"
events = [{ channel = "c", type = "A/x", bytes = 8 }]
[[task]]
name = "b"
period = "20ms"
deadline = "20ms"
wcet = "2ms"
events = [{ channel = "c", type = "A/y", bytes = 8 }]
[[task]]
name = "heir"
subscription = { channel = "c", types = ["A"] }
deadline = "inherited"
wcet = "1ms"
[[task]]
name = "outside"
trigger = "external"
separation = "25ms"
deadline = "25ms"
wcet = "1ms"
outputs = [{ name = "v" }]
[[task]]
name = "triggered"
trigger = { output = "outside.v" }
deadline = "10ms"
wcet = "1ms"
"#;

fn system(text: &str) -> System {
    talea_model::parse("margins.toml", text, Path::new(".")).expect("a system").system
}

fn all_hold(system: &System) -> bool {
    check(system).expect("it has bounds").report.tasks.iter().all(|task| task.verdict == Verdict::Holds)
}

#[test]
fn a_shortest_period_is_that_of_the_file_with_it() {
    let found = sensitivity(&system(HANDED_ON), |_, _| {});
    let shortest = |task: &str| {
        let margin = found.tasks.iter().find(|margin| margin.name == task).expect("a task with margins");
        assert_eq!(margin.has_period, margin.shortest_period_ns.is_some(), "{margin:?}");
        margin.shortest_period_ns.map(|period| period / 1_000)
    };
    let is_shortest = |task: &str, grain: i64, with: &dyn Fn(i64) -> String| {
        let shortest = shortest(task).expect("it has a period");
        assert!(all_hold(&system(&with(shortest))), "{task} with {shortest}us");
        assert!(!all_hold(&system(&with(shortest - grain))), "{task} with less than {shortest}us");
    };
    // The deadline stays that of the other one, and for what comes from outside it is that of its separation.
    is_shortest("a", 20, &|us| {
        HANDED_ON.replacen("period = \"20ms\"", &format!("period = \"{us}us\"\ndeadline = \"20ms\""), 1)
    });
    is_shortest("outside", 25, &|us| HANDED_ON.replace("25ms", &format!("{us}us")));
    assert_eq!(["heir", "triggered"].map(shortest), [None, None]);
}
