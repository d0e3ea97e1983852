//! Chains and graphs over nodes of one process.

use super::*;
use talea_model::SubtaskBuilder;
use talea_record::event::Release;

/// Two nodes, on two processors where there are two.
fn fork_and_join() -> System {
    let second = u16::from(std::thread::available_parallelism().is_ok_and(|count| count.get() > 1));
    let step = |name: &str, node: &str| SubtaskBuilder::new(name).wcet(Work::from_nanos(300_000)).on(node);
    let task = TaskBuilder::new("graph", ms(8))
        .deadline(ms(40))
        .subtask(step("source", "one"))
        .subtask(step("left", "two").after(["source"]))
        .subtask(step("right", "two").after(["source"]))
        .subtask(step("near", "one").after(["source"]))
        .subtask(step("join", "one").after(["left", "right", "near"]))
        .subtask(step("last", "two").after(["join"]));
    system(Strategy::Edf).node("one", [0]).node("two", [second]).task(task).build().expect("a system")
}

#[test]
fn a_join_waits_for_all_its_predecessors() {
    for rt in [RtMode::Off, RtMode::Warn] {
        let ran =
            run_until(&fork_and_join(), Operations::synthetic(), options(rt, 0), ended("graph.last", 8));
        for release in ran.of(Event::RELEASE, "graph.join") {
            let instance = release.job().instance;
            let released = ran.position(Event::RELEASE, "graph.join", instance).expect("it is there");
            for before in ["graph.left", "graph.right", "graph.near"] {
                let completed = ran.position(Event::COMPLETE, before, instance).expect("it has completed");
                assert!(completed < released, "{rt}: {before}#{instance}");
            }
            let source = ran.position(Event::RELEASE, "graph.source", instance).expect("it has a source");
            assert_eq!(ran.records[source].words[1], release.words[1], "the deadline is end to end");
        }
        let (joins, ends) =
            (ran.count(Event::RELEASE, "graph.join"), ran.count(Event::COMPLETE, "graph.last"));
        assert!(0 < ends && ends <= joins, "{rt}: {joins} joins, {ends} ends");
    }
}

/// What joins its predecessors is released by a later reading of the clock than its last predecessor ended by. What the same job releases
/// after it is released no earlier, so that its record has the instant that it names.
#[test]
fn successors_beside_a_join_are_released_when_their_records_say() {
    let step = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_nanos(100_000));
    let task = TaskBuilder::new("graph", ms(4))
        .deadline(ms(40))
        .subtask(step("one"))
        .subtask(step("two").after::<&str>([]))
        .subtask(step("join").after(["one", "two"]))
        .subtask(step("beside").after(["two"]));
    let system = system(Strategy::Edf).task(task).build().expect("a system");
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Off, 0), ended("graph.beside", 20));
    let mut count = 0;
    for record in ["graph.join", "graph.beside"].iter().flat_map(|name| ran.of(Event::RELEASE, name)) {
        let release = Release::read(record).expect("a release");
        assert_eq!(release.nominal, record.time, "{}", ran.name(record.job()));
        count += 1;
    }
    assert!(count >= 20, "{count}");
}
