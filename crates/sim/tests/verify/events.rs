//! Events that come out of turn.

use super::verify;
use crate::replay::{metadata, records_with};
use talea_insight::verify::Rule;
use talea_record::event::Deliver;
use talea_record::{Origin, Record};
use talea_sim::DispatchRecords;
use talea_time::Duration;

const TWO_PUBLISHERS: &str = r#"
[system]
name = "turns"
strategy = "criticality"
[[node]]
name = "one"
cpus = [0]
[[channel]]
name = "news"
[[task]]
name = "a"
criticality = "high"
period = "10ms"
wcet = "1ms"
events = [{ channel = "news", type = "T/a" }]
[[task]]
name = "b"
criticality = "high"
period = "10ms"
wcet = "1ms"
events = [{ channel = "news", type = "T/b" }]
[[task]]
name = "c"
criticality = "low"
subscription = { channel = "news", types = ["T/a", "T/b"] }
wcet = "6ms"
deadline = "1s"
"#;

/// On threads the order in which pushes are told is not always that in which they are made, unless whole jobs were between them.
#[test]
fn an_event_out_of_turn_is_certain_where_its_operation_had_gone_on() {
    let file = std::path::Path::new(".");
    let system = talea_model::parse("turns.toml", TWO_PUBLISHERS, file).expect("a system").system;
    let simulated = metadata(&system);
    let mut on_threads = simulated.clone();
    on_threads.origin = Origin::Threads { realtime: true };
    let records = records_with(&system, &[], 200_000_000, DispatchRecords::Kept);
    // What the jobs 12 and `other` of the subscriber, which is behind, took, each for the other.
    let exchanged = |other: u64| {
        let taken = |instance: u64| {
            let all = records.iter().filter_map(Deliver::read);
            all.into_iter().find(|deliver| deliver.job.instance == instance).expect("it took an event")
        };
        let exchange = |record: &Record| {
            let Some(deliver) = Deliver::read(record) else { return *record };
            let Deliver { from, publication, .. } = match deliver.job.instance {
                12 => taken(other),
                instance if instance == other => taken(12),
                _ => deliver,
            };
            Deliver { from, publication, ..deliver }.at(record.time, record.cpu)
        };
        records.iter().map(exchange).collect::<Vec<_>>()
    };
    let found = |metadata: &talea_record::Metadata, other: u64| {
        let tolerance = if metadata.origin == simulated.origin { 0 } else { 200 };
        let report = verify(metadata, &exchanged(other), &system, Duration::from_micros(tolerance));
        let rule = report.rules.iter().find(|rule| rule.rule == Rule::Events).expect("each rule is there");
        (rule.violations > 0, rule.possible > 0)
    };
    assert_eq!([found(&simulated, 12), found(&on_threads, 12)], [(false, false); 2], "nothing is exchanged");
    assert!(found(&simulated, 13).0, "in virtual time both orders are one");
    let (is_certain, is_possible) = found(&on_threads, 13);
    assert!(!is_certain && is_possible, "the jobs that pushed them followed each other");
    assert!(found(&on_threads, 15).0, "the operation that pushed the first one had begun its next job");
}
