//! Guards before tasks that values, events or the outside release.

use crate::replay::records_with;
use talea_model::{
    OutputBuilder, Overrun, PublicationBuilder, SubscriptionBuilder, SubtaskBuilder, Synchronisation, System,
    TaskBuilder, TriggerBuilder,
};
use talea_record::SkipReason;
use talea_record::event::{Release, Skip};
use talea_sim::DispatchRecords;
use talea_time::{Duration, Work};

fn us(time: i64) -> Duration {
    Duration::from_micros(time)
}

/// When jobs of the operation were released, in microseconds.
fn released(system: &System, name: &str, until: i64) -> Vec<i64> {
    let records = records_with(system, &[], until * 1_000, DispatchRecords::Dropped);
    let of = |release: &Release| system.operations()[release.job.operation.index()].name == name;
    let at = |record: &talea_record::Record| {
        Release::read(record).filter(of).map(|_| record.time.as_nanos() / 1_000)
    };
    records.iter().filter_map(at).collect()
}

/// Under modified phase modification a successor follows its predecessor's release by the bound, whatever has released that.
#[test]
fn timers_of_triggered_tasks_expire() {
    let step = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_micros(1)).bound(us(5));
    for by in ["values", "events", "outside"] {
        let source = TaskBuilder::new("source", us(20)).wcet(Work::from_micros(2));
        let source = source.output(OutputBuilder::new("out")).event(PublicationBuilder::new("c", "T/E"));
        let task = match by {
            "values" => TaskBuilder::triggered_by("task", TriggerBuilder::output("source.out")),
            "events" => TaskBuilder::triggered_by("task", SubscriptionBuilder::new("c")),
            _ => TaskBuilder::external("task", us(20)),
        };
        let task = task.deadline(us(20)).sync(Synchronisation::ModifiedPhaseModification);
        let system = System::builder("s").channel("c", Default::default()).task(source);
        let system = system.task(task.subtask(step("one")).subtask(step("two"))).build().expect("a system");
        let first = if by == "outside" { 0 } else { 2 };
        assert_eq!(released(&system, "task.one", 50), [first, first + 20, first + 40], "{by}");
        assert_eq!(released(&system, "task.two", 50), [first + 5, first + 25, first + 45], "{by}");
    }
}

/// Each node decides about its own first subtasks, and those of one instance are not before each other.
#[test]
fn first_subtasks_of_one_instance_do_not_overrun_each_other() {
    let step = |name: &str, node: &str| SubtaskBuilder::new(name).wcet(Work::from_micros(5)).on(node);
    let task = TaskBuilder::external("task", us(20)).overrun(Overrun::SkipNext);
    let task = task.subtask(step("here", "a")).subtask(step("beside", "a").after([""; 0]));
    let task = task.subtask(step("there", "b").after([""; 0]));
    let system = System::builder("s").node("a", [0]).node("b", [1]).task(task).build().expect("a system");
    let records = records_with(&system, &[], 100_000, DispatchRecords::Dropped);
    assert_eq!(records.iter().filter_map(Skip::read).count(), 0);
    for name in ["task.here", "task.beside", "task.there"] {
        assert_eq!(released(&system, name, 100), [0, 20, 40, 60, 80], "{name}");
    }
}

/// A value comes every 10 us, and a job takes 25: the first runs at once, and of those that come until the next begins one waits. A guard lets one
/// through every 30 us, and keeps no more than one.
#[test]
fn instances_that_come_while_one_waits_are_merged_with_it() {
    let source = TaskBuilder::new("source", us(10))
        .wcet(Work::from_micros(2))
        .output(OutputBuilder::new("out"))
        .on("a");
    let by_values = TaskBuilder::triggered_by("task", TriggerBuilder::output("source.out"));
    let cases = [
        ("period", TaskBuilder::new("task", us(10)), vec![0, 10, 30, 60, 80], vec![2, 4, 5, 7, 9]),
        ("values", by_values.clone(), vec![2, 12, 32, 62, 82], vec![2, 4, 5, 7, 9]),
        ("guard", by_values.separation(us(30)), vec![2, 32, 62, 92], vec![2, 3, 5, 6, 8, 9]),
    ];
    for (by, task, expected, merged) in cases {
        let task = task.overrun(Overrun::Merge).deadline(us(60)).wcet(Work::from_micros(25)).on("b");
        let system = System::builder("s").node("a", [0]).node("b", [1]);
        let system = system.task(source.clone()).task(task).build().expect("a system");
        assert_eq!(released(&system, "task", 100), expected, "{by}");
        let records = records_with(&system, &[], 100_000, DispatchRecords::Dropped);
        let skips: Vec<Skip> = records.iter().filter_map(Skip::read).collect();
        assert!(skips.iter().all(|skip| skip.reason == SkipReason::Merged), "{by}: {skips:?}");
        let numbers: Vec<u64> = skips.iter().map(|skip| skip.job.instance).collect();
        assert_eq!(numbers, merged, "{by}");
    }
}
