//! Explanations of what random hierarchies of schedulers did: exact, and true by the schedule and by the decisions, which is to say
//! by two things that an explanation is not made from alone.

use super::{Schedule, explained};
use crate::replay::Everything;
use proptest::prelude::*;
use std::collections::BTreeMap;
use talea_conformance::forest;
use talea_conformance::promises::{admitted, cases};
use talea_insight::Usage;
use talea_insight::explain::{Cause, Explanation, Kind, Outcome, Question, Which};
use talea_model::{Overhead, System};
use talea_policy::arrangement::Kept;
use talea_policy::demand;
use talea_record::event::Typed;
use talea_record::{Event, Metadata, Record, Sink};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant, Work};

const UNTIL: Instant = Instant::from_nanos(120_000_000);

fn simulated(system: &System) -> (Metadata, Vec<Record>, Vec<Kept>) {
    let simulation = Simulation::new(system).expect("it is admitted").with_dispatch(DispatchRecords::Kept);
    let (metadata, mut simulation) = (simulation.metadata().clone(), simulation);
    let mut everything = Everything::default();
    simulation.advance(UNTIL, &mut everything);
    let kept = simulation.kept(0).expect("the node has a hierarchy");
    simulation.finish(&mut everything);
    (metadata, everything.0, kept)
}

/// What the accounts of the processors say was withheld is what the edges to threads and lanes did not receive of what they were granted.
fn check_withheld(metadata: &Metadata, records: &[Record], kept: &[Kept]) {
    let is_parent = |name: &str| metadata.edges.iter().any(|edge| edge.parent == name);
    let of_threads = kept.iter().filter(|edge| !is_parent(&edge.child));
    let receipts = of_threads.filter_map(|edge| edge.receipts);
    let mut usage = Usage::new(metadata);
    records.iter().for_each(|record| usage.record(*record));
    let node = usage.finish().nodes.remove(0);
    assert_eq!(node.withheld_ns, Some(receipts.map(|receipts| receipts.withheld_ns).sum()));
}

/// From when to when each edge had a processor, in order.
fn grants(metadata: &Metadata, records: &[Record]) -> Vec<Vec<(Instant, Instant)>> {
    let mut list = vec![Vec::new(); metadata.edges.len()];
    let mut since: BTreeMap<u16, Instant> = BTreeMap::new();
    for record in records {
        match record.typed() {
            Typed::VpGrant(grant) => assert_eq!(since.insert(grant.edge, record.time), None, "granted twice"),
            Typed::VpRevoke(_) | Typed::VpRelease(_) => {
                if let Some(from) = since.remove(&record.source) {
                    list[usize::from(record.source)].push((from, record.time));
                }
            }
            _ => {}
        }
    }
    since.into_iter().for_each(|(edge, from)| list[usize::from(edge)].push((from, UNTIL)));
    list
}

/// How much of the time between the instants is in these.
fn within(times: &[(Instant, Instant)], from: Instant, to: Instant) -> Duration {
    let first = times.partition_point(|(_, end)| *end <= from);
    let from_there = times[first..].iter().take_while(|(begin, _)| *begin < to);
    let common = from_there.map(|(begin, end)| ((*begin).max(from), (*end).min(to)));
    common.filter(|(begin, end)| end > begin).map(|(begin, end)| end - begin).sum()
}

fn check(metadata: &Metadata, schedule: &Schedule, given: &[Vec<(Instant, Instant)>], one: &Explanation) {
    let sum: Duration = one.intervals.iter().map(|interval| interval.length()).sum();
    if matches!(one.outcome, Outcome::Skipped { .. }) {
        return assert_eq!(sum, Duration::ZERO);
    }
    assert_eq!(sum, one.response(), "{one:#?}");
    for interval in &one.intervals {
        let own = one.hops[interval.hop].job;
        let (from, to, length) = (interval.from, interval.to, interval.length());
        let lane = &metadata.lanes[metadata.operations[own.operation.index()].lane];
        let place = metadata.place_name(lane).expect("it stands in the hierarchy");
        let to_place = metadata.edges.iter().zip(given).filter(|(edge, _)| edge.child == place);
        let had: Duration = to_place.map(|(_, times)| within(times, from, to)).sum();
        match interval.cause {
            Cause::Execution => {
                assert_eq!(schedule.service(own, from, to), length, "{interval:?}");
                assert_eq!(had, length, "whoever executes has been given a processor: {interval:?}");
            }
            Cause::Turn { edge, last, job } => {
                assert_eq!(had, Duration::ZERO, "{interval:?}");
                assert_eq!(within(&given[edge], from, to), length, "{interval:?}");
                assert_ne!(metadata.edges[edge].child, place, "{interval:?}");
                assert_eq!(within(&given[last], from, to), length, "{interval:?}");
                let job = job.expect("a simulation tells of every processor whose job it executes");
                assert_eq!(schedule.service(job, from, to), length, "{interval:?}");
            }
            Cause::UsedUp { edge } => {
                assert_eq!(had, Duration::ZERO, "{interval:?}");
                let parent = &metadata.edges[edge].parent;
                let below = metadata.edges.iter().zip(given).filter(|(edge, _)| edge.parent == *parent);
                let served: Duration = below.map(|(_, times)| within(times, from, to)).sum();
                assert_eq!(served, Duration::ZERO, "{parent} serves nobody: {interval:?}");
            }
            Cause::Peer { job, .. } | Cause::Higher { job } => {
                assert_eq!(schedule.service(job, from, to), length, "{interval:?}");
                assert_eq!(had, length, "{interval:?}");
            }
            Cause::Jitter | Cause::Dispatch { .. } | Cause::Condensed => {}
            _ => panic!("a simulated hierarchy never lets wait without a reason: {interval:?} in {one:#?}"),
        }
    }
}

/// What executed is what the synthetic work drew, also where mechanisms cost something.
fn check_demand(system: &System, one: &Explanation) {
    if !matches!(one.outcome, Outcome::Met | Outcome::Missed) {
        return;
    }
    let executed = one.totals.iter().filter(|total| total.kind == Kind::Execution);
    let executed: Duration = executed.map(|total| total.sum()).sum();
    let system = &system.with_threads_as_tasks();
    let drawn: Work =
        one.hops.iter().map(|hop| demand::execution(system, hop.job.operation, hop.job.instance)).sum();
    assert_eq!(executed.as_work(), drawn, "{one:#?}");
}

fn explain_all(system: &System) -> usize {
    let (metadata, records, kept) = simulated(system);
    check_withheld(&metadata, &records, &kept);
    let (schedule, given) = (Schedule::of(&metadata, &records, UNTIL), grants(&metadata, &records));
    let mut count = 0;
    for which in [Which::Failed, Which::Worst] {
        let answer = explained(&metadata, &records, Question { which, task: None, limit: 20 });
        for one in &answer.list {
            check(&metadata, &schedule, &given, one);
            check_demand(system, one);
            assert!(!answer.sentence(one).is_empty());
            count += one.intervals.len();
        }
        assert_eq!(answer.gaps().iter().filter(|(_, missing)| !missing.is_empty()).count(), 0);
    }
    count
}

fn costly(overhead: [u16; 3]) -> Overhead {
    let [switch, queue, timer] = overhead.map(|us| Work::from_micros(us.into()));
    Overhead { switch, queue, timer, ..Overhead::default() }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn of_one_processor(tree in forest::trees()) {
        explain_all(&admitted(&tree, &[0]).system_on(&[0]));
    }

    #[test]
    fn of_several_processors(tree in forest::surplus()) {
        explain_all(&admitted(&tree, &[0, 1]).system_on(&[0, 1]));
    }

    #[test]
    fn of_several_processors_where_mechanisms_cost(
        tree in forest::surplus(), overhead in [0_u16..60, 0_u16..30, 0_u16..40],
    ) {
        let system = admitted(&tree, &[0, 1]).system_on(&[0, 1]);
        let description = talea_model::Description { overhead: costly(overhead), ..(*system).clone() };
        explain_all(&System::new(description).expect("it was one before"));
    }

    #[test]
    fn of_limits_where_mechanisms_cost(tree in forest::limited(), overhead in [0_u16..60, 0_u16..30, 0_u16..40]) {
        let system = admitted(&tree, &[0]).system_on(&[0]);
        let description = talea_model::Description { overhead: costly(overhead), ..(*system).clone() };
        explain_all(&System::new(description).expect("it was one before"));
    }
}

/// Lanes below a reservation: what comes before a task is told by its lanes while they are served, and by the turn of others else.
#[test]
fn tasks_in_lanes_below_schedulers() {
    let text = r#"
        [system]
        name = "lanes"
        strategy = "rms"
        lane_dispatch = "preemptive"
        [[node]]
        name = "one"
        cpus = [0]
        [[scheduler]]
        name = "root"
        kind = "reservation"
        [[scheduler]]
        name = "tasks"
        kind = "lanes"
        under = [{ scheduler = "root", guarantee = "RESBH 4ms 10ms" }]
        [[thread]]
        name = "other"
        work = "cpu-bound"
        under = [{ scheduler = "root", guarantee = "RESBH 5ms 10ms" }]
        [[task]]
        name = "fast"
        period = "20ms"
        wcet = "2ms"
        exec = "2ms"
        [[task]]
        name = "slow"
        period = "50ms"
        wcet = "9ms"
        exec = "9ms"
    "#;
    let parsed = talea_model::parse("lanes.toml", text, std::path::Path::new(".")).expect("a system");
    assert!(explain_all(&parsed.system) > 4);
    let (metadata, records, _) = simulated(&parsed.system);
    let question = Question { which: Which::Worst, task: Some(1), limit: 1 };
    let answer = explained(&metadata, &records, question);
    let kinds: Vec<Kind> = answer.list[0].totals.iter().map(|total| total.kind).collect();
    assert!(kinds.contains(&Kind::Higher) && kinds.contains(&Kind::Turn), "{kinds:?}");
    assert!(kinds.contains(&Kind::UsedUp), "the reservation does not last for both: {kinds:?}");
    assert!(records.iter().all(|record| record.event != Event::NEXT_JOB));
}
