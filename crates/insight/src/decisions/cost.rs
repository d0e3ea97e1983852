//! What judging costs does not grow with the hierarchy.

use super::{Decisions, Rule};
use std::fmt::Write;
use std::time::{Duration, Instant as Clock};
use talea_model::System;
use talea_record::event::{Trigger, VpGrant, VpRelease, VpRequest};
use talea_record::{DecidedBy, EdgeEntry, Metadata, NodeEntry, Record, SchedulerEntry, Sink, Switches};
use talea_time::Instant;

/// Threads below one scheduler of fixed priorities.
fn flat(threads: usize) -> (System, Metadata) {
    let mut text =
        String::from("[system]\nname = \"flat\"\n[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n");
    for thread in 0..threads {
        let _ = write!(
            text,
            "[[thread]]\nname = \"t{thread}\"\nwork = {{ burst = \"1us\", period = \"1s\" }}\n\
             under = [{{ scheduler = \"FP\", priority = {thread} }}]\n"
        );
    }
    let system = talea_model::parse("flat.toml", &text, ".".as_ref()).expect("a system").system;
    let mut metadata = Metadata::bare("flat");
    let (switches, decided_by) = (Switches::Recorded, DecidedBy::Ours);
    metadata.nodes = vec![NodeEntry { name: "n".into(), cpus: vec![0], switches, decided_by }];
    metadata.schedulers = vec![SchedulerEntry { node: 0, name: "FP".into(), kind: "fixed-priority".into() }];
    let edge = |parent: &str, child: String| EdgeEntry {
        node: 0,
        parent: parent.into(),
        child,
        guarantee: "NULL".into(),
    };
    metadata.edges = (0..threads).map(|thread| edge("FP", format!("t{thread}"))).collect();
    (system, metadata)
}

/// One thread after the other asks for the processor, has it and gives it back, while all of lower priority wait for it.
fn turns(threads: u16, turns: u16) -> Vec<Record> {
    let (trigger, by) = (Trigger::Thread.into(), None);
    let mut records = Vec::new();
    let mut now = 0;
    let mut at = |step| {
        now += step;
        Instant::from_nanos(now)
    };
    for edge in 0..threads / 2 {
        records.push(VpRequest { edge, trigger, by }.at(at(1), Record::NO_CPU));
    }
    for turn in 0..turns {
        let edge = threads / 2 + turn % (threads / 2);
        records.push(VpRequest { edge, trigger, by }.at(at(1), Record::NO_CPU));
        records.push(VpGrant { edge, trigger, by }.at(at(0), 0));
        records.push(VpRelease { edge, trigger, by }.at(at(1), 0));
    }
    records
}

/// The shortest of several judgements of the turns, and how often a priority was judged.
fn judged(threads: u16) -> (Duration, u64) {
    const TURNS: u16 = 2_000;
    let (system, metadata) = flat(threads.into());
    let (records, asked) = (turns(threads, TURNS), usize::from(threads / 2));
    let judge = || {
        let mut decisions = Decisions::new(&metadata, &system);
        records[..asked].iter().for_each(|record| decisions.record(*record));
        let began = Clock::now();
        records[asked..].iter().for_each(|record| decisions.record(*record));
        let took = began.elapsed();
        let report = decisions.finish();
        assert_eq!(report.violations, []);
        (took, report.rules[Rule::Priority as usize].cases)
    };
    (0..5).map(|_| judge()).min().expect("some")
}

#[test]
fn a_record_costs_as_much_with_a_thousand_edges_as_with_ten() {
    let ((few, cases_of_few), (many, cases_of_many)) = (judged(10), judged(1_000));
    assert!(cases_of_few > 10_000 && cases_of_many > 1_000_000, "all that wait are judged each time");
    // A hundred times as many edges; a set of them is some steps deeper.
    assert!(many < few * 8, "{many:?} with a thousand edges, {few:?} with ten");
}
