//! `talea ctl NAME statistics`, of a program that tells them.

use crate::support::{Done, run};
use std::collections::BTreeMap;
use std::sync::Arc;
use talea_manage::control::protocol::{Command, Force, Insistence, Outcome, Refusal, Statistic};
use talea_manage::control::{CommandHandler, Server, Sockets};
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
