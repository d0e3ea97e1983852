//! Hierarchies of schedulers of a description. What each thread receives depends on the machine; that all of it is told, counted
//! and judged does not.

use super::*;
use crate::programs::stage;
use std::path::Path;
use talea_insight::accounting::HierarchyReport;
use talea_model::System;
use talea_runtime::{HierarchyError, ParkingOutcome, PrepareError};

/// The system of these tables on the last CPU. The real one, so that nobody else is disturbed.
pub(super) fn described(cpu: u16, tables: &str) -> System {
    let head = format!("[system]\nname = \"ruled\"\n[[node]]\nname = \"ruled\"\ncpus = [{cpu}]\n");
    talea_model::parse("ruled.toml", &format!("{head}{tables}"), Path::new(".")).expect("a system").system
}

const SHARED: &str = "
[[scheduler]]
name = \"FP\"
kind = \"fixed-priority\"
[[scheduler]]
name = \"RES\"
kind = \"reservation\"
under = [{ scheduler = \"FP\", priority = 2 }]
[[scheduler]]
name = \"PS\"
kind = \"proportional-share\"
quantum = \"5ms\"
under = [{ scheduler = \"FP\", priority = 1 }]
[[thread]]
name = \"video\"
work = { burst = \"2ms\", period = \"20ms\" }
under = [{ scheduler = \"RES\", guarantee = \"RESBH 4ms 20ms\" }]
[[thread]]
name = \"one\"
work = \"cpu-bound\"
under = [{ scheduler = \"PS\", share = 1 }]
[[thread]]
name = \"three\"
work = \"cpu-bound\"
under = [{ scheduler = \"PS\", share = 3 }]
";

/// The violations that the records tell, and those that the result counts; what the kernel withheld is told apart in both.
fn violations(ran: &Ran) -> (usize, u64) {
    const WITHHELD: u16 = 3;
    let is_granted = |record: &&Record| record.event == Event::VIOLATION && record.arg != WITHHELD;
    let recorded = ran.records.iter().filter(is_granted).count();
    let edges = |hierarchy: &HierarchyReport| hierarchy.edges.iter().map(|edge| edge.violations).sum::<u64>();
    (recorded, ran.outcome.report.hierarchies.iter().map(edges).sum())
}

#[test]
fn every_thread_runs_and_all_of_it_is_told() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], SHARED).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("video", 20));
    let report = &ran.outcome.report;
    for (index, name) in ["video", "one", "three"].into_iter().enumerate() {
        let task = &report.tasks[index];
        assert_eq!((task.name.as_str(), ran.count(Event::RELEASE, name) as u64), (name, task.released));
        assert_eq!(ran.count(Event::COMPLETE, name) as u64, task.completed);
        assert_eq!(task.met + task.missed + task.unfinished, task.released, "{task:?}");
        assert!(ran.count(Event::START, name) >= 1, "{name} ran");
        assert!(report.lanes[report.operations[index].lane].busy_ns > 0, "{name} received something");
        let member = &ran.outcome.hierarchies[0].members[index];
        assert!(member.thread == name && member.received_ns > 0 && member.granted_ns > Some(0), "{member:?}");
    }
    assert_eq!(
        (report.tasks[1].released, report.tasks[1].unfinished),
        (1, 1),
        "what never ends arrives once"
    );
    let thread_records = ran.records.iter().filter(|record| record.event == Event::THREAD);
    let places: std::collections::BTreeSet<u16> = thread_records.map(|record| record.source).collect();
    assert_eq!(places.len(), 3, "every thread is introduced");
    for mark in [Event::RUN_START, Event::RUN_END] {
        assert_eq!(ran.records.iter().filter(|record| record.event == mark).count(), 1);
    }
    assert_eq!(report.hierarchies[0].edges.len(), 5);
    let (recorded, counted) = violations(&ran);
    assert_eq!(recorded as u64, counted);
    let busy: i64 = report.lanes.iter().map(|lane| lane.busy_ns).sum();
    assert!(busy <= report.duration_ns, "one processor is granted to one thread at a time");
}

#[test]
fn releases_do_not_drift() {
    let Some((_alone, at)) = stage(1) else { return };
    let system = described(at.cpus[0], SHARED).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("video", 20));
    let start = ran.outcome.report.start_ns;
    for record in ran.of(Event::RELEASE, "video") {
        let nominal = start + record.job().instance as i64 * 20_000_000;
        assert_eq!(record.words, [nominal as u64, nominal as u64 + 20_000_000]);
        assert!(record.time.as_nanos() >= nominal);
    }
}

#[test]
fn a_requirement_that_cannot_be_met_is_found_broken() {
    let Some((_alone, at)) = stage(1) else { return };
    let tables = "
[[scheduler]]
name = \"FP\"
kind = \"fixed-priority\"
[[thread]]
name = \"clock\"
work = { burst = \"1ms\", period = \"10ms\" }
under = [{ scheduler = \"FP\", priority = 3 }]
[[thread]]
name = \"hog\"
work = \"cpu-bound\"
under = [{ scheduler = \"FP\", priority = 2 }]
[[thread]]
name = \"starved\"
work = \"cpu-bound\"
requires = \"PSBE 0.5 10ms\"
under = [{ scheduler = \"FP\", priority = 1 }]
";
    let system = described(at.cpus[0], tables).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("clock", 20));
    let (recorded, counted) = violations(&ran);
    assert!(counted > 0 && recorded as u64 == counted, "{recorded} recorded, {counted} counted");
    assert!(!ran.outcome.report.promises_kept());
    let starved = ran.outcome.report.hierarchies[0].edges.iter().find(|edge| edge.child == "starved");
    assert!(starved.is_some_and(|edge| edge.violations > 0 && edge.worst.is_some()), "{starved:?}");
    assert_eq!(ran.count(Event::START, "starved"), 0, "it never had the processor");
    assert!(ran.outcome.hierarchies[0].shortcomings.is_some(), "and it is said why");
}

#[test]
fn what_is_promised_a_maximum_is_held() {
    let Some((_alone, at)) = stage(1) else { return };
    let tables = "
[[scheduler]]
name = \"RES\"
kind = \"reservation\"
[[thread]]
name = \"clock\"
work = { burst = \"0.1ms\", period = \"20ms\" }
under = [{ scheduler = \"RES\", guarantee = \"RESBS 1ms 20ms\" }]
[[thread]]
name = \"capped\"
work = \"cpu-bound\"
under = [{ scheduler = \"RES\", guarantee = \"RESBH 4ms 20ms\" }]
";
    let tables = tables.replace("RESBS 1ms", "RESBH 1ms");
    let system = described(at.cpus[0], &tables).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("clock", 25));
    let capped = &ran.outcome.hierarchies[0].members[1];
    assert_eq!(capped.parking, ParkingOutcome::Held);
    let share = capped.received_ns as f64 / ran.outcome.report.duration_ns as f64;
    assert!(share < 0.35, "{share} of the processor, which is idle otherwise: {capped:?}");
}

#[test]
fn a_program_runs_from_the_start_to_the_end_of_the_run() {
    let Some((_alone, at)) = stage(1) else { return };
    let program = "run = [\"sh\", \"-c\", \"ulimit -t 60; while :; do :; done\"]";
    let tables = SHARED.replacen("work = \"cpu-bound\"", program, 1);
    let system = described(at.cpus[0], &tables).with_threads_as_tasks();
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("video", 20));
    let member = &ran.outcome.hierarchies[0].members[1];
    assert!(member.received_ns > 0 && member.exit.is_none(), "{member:?}");
    assert_eq!(ran.count(Event::RELEASE, "one"), 1);
}

/// Nothing is started that cannot be run as described.
#[test]
fn what_cannot_be_enforced_is_refused() {
    let Some((_alone, at)) = stage(1) else { return };
    let refusal = |system: &System, rt: RtMode| match Executive::prepare(
        system,
        Operations::synthetic(),
        options(rt, 1_000),
    ) {
        Err(PrepareError::Hierarchy { source, .. }) => *source,
        other => panic!("{other:?}"),
    };
    let system = described(at.cpus[0], SHARED);
    assert!(matches!(refusal(&system, RtMode::Off), HierarchyError::NotEnforceable { .. }));
    let with_lanes = "
[[scheduler]]
name = \"FP\"
kind = \"fixed-priority\"
[[scheduler]]
name = \"jobs\"
kind = \"lanes\"
under = [{ scheduler = \"FP\", priority = 2 }]
[[thread]]
name = \"rest\"
work = \"cpu-bound\"
under = [{ scheduler = \"FP\", priority = 1 }]
[[task]]
name = \"job\"
period = \"10ms\"
wcet = \"1ms\"
";
    let mut description: talea_model::Description = (*described(at.cpus[0], with_lanes)).clone();
    description.lane_dispatch = talea_model::LaneDispatch::Preemptive;
    let system = System::new(description).expect("a system");
    let refused = refusal(&system, RtMode::Warn);
    assert!(
        matches!(&refused, HierarchyError::PreemptiveLanes { scheduler } if scheduler == "jobs"),
        "{refused}"
    );
    assert!(refused.to_string().contains("talea sim"), "{refused}");
    let missing = SHARED.replacen("work = \"cpu-bound\"", "run = [\"/nowhere/at-all\"]", 1);
    let refused = refusal(&described(at.cpus[0], &missing), RtMode::Warn);
    assert!(matches!(refused, HierarchyError::Admit(_)), "{refused}");
    assert!(refused.to_string().contains("/nowhere/at-all"), "{refused}");
}
