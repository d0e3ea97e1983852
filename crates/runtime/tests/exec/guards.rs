//! Synchronisation protocols on threads. What is checked are nominal releases, which depend on signals and guards and not on how late a thread
//! is; so a busy machine changes when things happen and not whether the rules are kept.

use super::*;
use talea_insight::verify::Verifier;
use talea_model::{Join, Late, Scheduling, SubtaskBuilder, Synchronisation};
use talea_policy::strategy::plan_system;
use talea_record::{Sink, Typed};
use talea_time::Instant;

/// Section 3.4 of Huang and Gill's paper in thousandths of its time, and a fork with a join behind guards; the second node on another processor
/// if there is one.
fn guarded(sync: Synchronisation) -> System {
    let second = u16::from(std::thread::available_parallelism().is_ok_and(|count| count.get() > 1));
    let step = |name: &str, node: &str| {
        let step = SubtaskBuilder::new(name).wcet(Work::from_nanos(300_000)).on(node);
        if sync.needs_bounds() { step.bound(ms(3)) } else { step }
    };
    let chain = TaskBuilder::new("chain", ms(6)).subtask(step("first", "one")).subtask(step("second", "two"));
    let fork = TaskBuilder::new("fork", ms(10))
        .deadline(ms(40))
        .subtask(step("source", "two"))
        .subtask(step("left", "one").after(["source"]))
        .subtask(step("right", "two").after(["source"]))
        .subtask(step("join", "two").after(["left", "right"]));
    // Late work keeps its place, so that instances do not overtake each other.
    system(Strategy::Edf)
        .late(Late::None)
        .node("one", [0])
        .node("two", [second])
        .task(chain.sync(sync))
        .task(fork.sync(sync))
        .task(task("busy", 7, 2).on("two"))
        .build()
        .expect("a system")
}

/// The nominal releases of an operation with their records' times, in the order of the records.
fn releases(ran: &Ran, name: &str) -> Vec<(u64, Instant, Instant)> {
    let released = ran.of(Event::RELEASE, name).filter_map(|record| match record.typed() {
        Typed::Release(release) => Some((release.job.instance, release.nominal, record.time)),
        _ => None,
    });
    released.collect()
}

fn completed_at(ran: &Ran, name: &str, instance: u64) -> Option<Instant> {
    ran.position(Event::COMPLETE, name, instance).map(|position| ran.records[position].time)
}

const GUARDED: [(&str, &[&str], i64); 4] = [
    ("chain.second", &["chain.first"], 6),
    ("fork.left", &["fork.source"], 10),
    ("fork.right", &["fork.source"], 10),
    ("fork.join", &["fork.left", "fork.right"], 10),
];

#[test]
fn every_protocol_keeps_its_rules_on_threads() {
    for sync in Synchronisation::ALL.iter().copied().filter(|sync| *sync != Synchronisation::Greedy) {
        for rt in [RtMode::Off, RtMode::Warn] {
            let system = guarded(sync);
            let over = completed(["chain.second", "fork.join"], 12);
            let ran = run_until(&system, Operations::synthetic(), options(rt, 0), over);
            for (name, predecessors, period) in GUARDED {
                let released = releases(&ran, name);
                assert!(!released.is_empty(), "{sync} {rt}: {name}");
                for (instance, nominal, time) in &released {
                    assert!(
                        nominal <= time,
                        "{sync} {rt}: {name}#{instance} was released before its guard opened"
                    );
                    for before in predecessors {
                        let done = completed_at(&ran, before, *instance);
                        assert!(
                            done.is_some_and(|done| done <= *nominal),
                            "{sync} {rt}: {name}#{instance} is due at {nominal:?}, {before} ended at {done:?}"
                        );
                    }
                }
                let least =
                    if sync == Synchronisation::ReleaseGuard { ms(period) } else { Duration::from_nanos(1) };
                for pair in released.windows(2) {
                    assert!(pair[0].0 < pair[1].0, "{sync} {rt}: {name}: first come, first served");
                    assert!(
                        pair[1].1 - pair[0].1 >= least,
                        "{sync} {rt}: {name}#{} came too early",
                        pair[1].0
                    );
                }
            }
            assert_eq!(ran.outcome.mishaps.overflows, 0, "{sync} {rt}");
        }
    }
}

/// Whether a signal's guard was open is decided by the same code as in the simulator, so a trace can be judged by its own records alone.
#[test]
fn traces_of_threads_with_guards_are_judged_clean() {
    for sync in Synchronisation::ALL.iter().copied().filter(|sync| *sync != Synchronisation::Greedy) {
        let system = guarded(sync);
        let ran =
            run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("chain.second", 8));
        assert!(
            ran.count(Event::SIGNAL, "chain.second") >= ran.count(Event::RELEASE, "chain.second"),
            "{sync}"
        );
        let plans = plan_system(&system).expect("lanes");
        assert!((0..2).all(|node| system.scheduling(node) == Scheduling::Lanes));
        let metadata = talea_record::Metadata::new(
            &system,
            &plans,
            talea_record::Origin::Threads { realtime: true },
            ran.records.iter().find(|record| record.event == Event::RUN_START).expect("it begins").time,
        );
        // Who ran when is the machine's business; only releases are asked about.
        let mut verifier =
            Verifier::new(&metadata, &system, &plans, Duration::from_secs(60)).expect("the same system");
        ran.records.iter().for_each(|record| verifier.record(*record));
        let report = verifier.finish();
        let wrong: Vec<_> = report.violations.iter().filter(|found| found.rule.name() == "release").collect();
        assert!(wrong.is_empty(), "{sync}: {wrong:#?}");
        // Idle points are not recorded, nor whether a timer came from another process.
        let knows_all = [Synchronisation::ReleaseGuard, Synchronisation::PhaseModification].contains(&sync);
        let release =
            report.rules.iter().find(|rule| rule.rule.name() == "release").expect("each rule is there");
        assert!(release.unknown == 0 || !knows_all, "{sync}: {release:?}");
    }
}

#[test]
fn a_join_of_some_goes_on_without_the_others_and_counts_them() {
    let step = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_nanos(200_000)).on("one");
    let task = TaskBuilder::new("task", ms(8))
        .deadline(ms(40))
        .subtask(step("a").after::<&str>([]))
        .subtask(step("b").after::<&str>([]))
        .subtask(step("c").after::<&str>([]))
        .subtask(step("join").after(["a", "b", "c"]).join(Join::Count(2)));
    let system = system(Strategy::Edf).node("one", [0]).task(task).build().expect("a system");
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Off, 0), ended("task.join", 8));
    for (instance, _, released) in releases(&ran, "task.join") {
        let done = ["a", "b", "c"].map(|name| completed_at(&ran, &format!("task.{name}"), instance));
        let earlier = done.iter().flatten().filter(|done| **done <= released).count();
        assert_eq!(earlier, 2, "#{instance}: the lane runs them one after the other");
    }
    assert!(ran.outcome.mishaps.late_signals > 0, "the third of each instance is late");
}

#[test]
fn a_protocol_without_its_bounds_is_refused() {
    let step = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_nanos(200_000));
    let task = TaskBuilder::new("task", ms(8)).sync(Synchronisation::PhaseModification);
    let task = task.subtask(step("a")).subtask(step("b"));
    let system = system(Strategy::Edf).task(task).build().expect("a system");
    let refused = Executive::prepare(&system, Operations::synthetic(), options(RtMode::Off, 0));
    let Err(refused) = refused else { panic!("there is no bound") };
    let message = refused.to_string();
    assert!(message.contains("\"task.a\"") && message.contains("phase-modification"), "{message}");
}
