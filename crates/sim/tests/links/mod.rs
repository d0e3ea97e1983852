//! Messages between nodes: which are lost, and what a report says of it.

use crate::replay::records;
use crate::systems::{Scope, systems};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use talea_insight::Accounting;
use talea_model::{LinkBuilder, LossRate, Strategy as Strategies, SubtaskBuilder, System, TaskBuilder};
use talea_record::{Event, JobId, Record, Sink};
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

const UNTIL: i64 = 400;

/// The messages whose fate the records tell: from a job to an operation, and whether it was lost.
fn fates(system: &System, records: &[Record]) -> BTreeMap<(JobId, u64), bool> {
    let lost = records.iter().filter(|record| record.event == Event::MESSAGE_LOST);
    let lost: HashSet<(JobId, u64)> = lost.map(|record| (record.job(), record.words[0])).collect();
    let done =
        records.iter().filter(|record| record.event == Event::COMPLETE && record.time.as_nanos() < UNTIL);
    let messages = done.flat_map(|record| {
        let operation = &system.operations()[record.job().operation.index()];
        let node = |id| system.subtask(id).node;
        let others =
            operation.successors.iter().filter(move |successor| node(**successor) != node(operation.id));
        others.map(|successor| (record.job(), successor.index() as u64))
    });
    messages.map(|message| (message, lost.contains(&message))).collect()
}

proptest! {
    /// The seed decides about each message, and neither the order of events nor the strategy does.
    #[test]
    fn the_same_messages_are_lost_under_every_strategy(system in systems(Scope::FREE)) {
        let of = |strategy| {
            let system = system.with_strategy(strategy);
            fates(&system, &records(&system, &[], UNTIL))
        };
        let (one, other) = (of(Strategies::Rms), of(Strategies::Edf));
        for (message, lost) in one {
            prop_assert!(other.get(&message).is_none_or(|there| *there == lost), "{message:?}");
        }
    }
}

#[test]
fn reports_count_lost_messages_and_what_waited_for_them_is_missed() {
    let ms = Duration::from_millis;
    let step = |name: &str, node: &str| SubtaskBuilder::new(name).wcet(Work::from_millis(1)).on(node);
    // A fork whose two branches meet again, each of them over the link and back.
    let task = TaskBuilder::new("t", ms(20))
        .subtask(step("fork", "a"))
        .subtask(step("left", "b").after(["fork"]))
        .subtask(step("right", "b").after(["fork"]))
        .subtask(step("join", "a").after(["left", "right"]))
        .subtask(step("end", "b").after(["join"]));
    let loss = LossRate::from_share(0.1).expect("a share");
    let link = LinkBuilder::others().delay(ms(1)).jitter(ms(2)).loss(loss);
    let system = System::builder("s").node("a", [0]).node("b", [1]).link(link).task(task);
    let system = system.build().expect("a system");
    let mut simulation = Simulation::new(&system).expect("it can be simulated");
    let mut accounting = Accounting::new(simulation.metadata(), ms(1_000));
    let mut lost = Lost::default();
    let end = Instant::ZERO + ms(20_000);
    simulation.advance(end, &mut Both(&mut accounting, &mut lost));
    let report = accounting.finish(end);
    let task = &report.tasks[0];
    assert_eq!((task.released, task.messages_lost), (1_000, lost.messages));
    // The last instance may still be under way.
    assert!((0..=1).contains(&(1_000 - task.met - lost.instances.len() as u64)), "{task:?}");
    assert!(task.missed >= lost.instances.len() as u64 - 1 && task.response_ns.is_some());
    let each = lost.messages as f64
        / report.operations.iter().map(|operation| operation.completed).sum::<u64>() as f64;
    assert!((0.05..0.15).contains(&each), "about a tenth of the messages: {each}");
}

#[derive(Default)]
struct Lost {
    messages: u64,
    instances: HashSet<u64>,
}

struct Both<'a>(&'a mut Accounting, &'a mut Lost);

impl Sink for Both<'_> {
    fn record(&mut self, record: Record) {
        if record.event == Event::MESSAGE_LOST {
            self.1.messages += 1;
            self.1.instances.insert(record.job().instance);
        }
        self.0.record(record);
    }
}
