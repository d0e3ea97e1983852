//! Verification: simulated traces are clean without any tolerance, and whatever is made wrong is found.

mod beginnings;
mod below;
mod decisions;
mod displaced;
mod events;
mod mutations;
mod protocols;
mod unrecorded;
mod values;

use crate::replay::{metadata, records_with};
use crate::systems::{Scope, dispatch, systems};
use proptest::prelude::*;
use talea_insight::verify::{Rule, Verifier, VerifyReport};
use talea_model::{Strategy as StrategyKind, SubtaskBuilder, System, TaskBuilder};
use talea_policy::strategy::plan_system;
use talea_record::event::{Lost, NodeLeft};
use talea_record::{Event, LossCause, Metadata, Record, Sink};
use talea_sim::DispatchRecords;
use talea_time::{Duration, Instant, Work};

const UNTIL: i64 = 120;

/// Verifies `records`, whose tables are `metadata`, against `system`.
pub fn verify(metadata: &Metadata, records: &[Record], system: &System, tolerance: Duration) -> VerifyReport {
    let plans = plan_system(system).expect("no anomalies");
    let mut verifier = Verifier::new(metadata, system, &plans, tolerance).expect("it is the same system");
    records.iter().for_each(|record| verifier.record(*record));
    verifier.finish()
}

/// Its jobs are held against nobody from then on.
#[test]
fn a_node_that_has_left_neither_idles_nor_keeps_anybody_waiting() {
    let task = |name: &str, node: &str| {
        TaskBuilder::new(name, Duration::from_nanos(10)).wcet(Work::from_nanos(4)).on(node)
    };
    let system = System::builder("two").strategy(StrategyKind::Rms).node("a", [0]).node("b", [1]);
    let system =
        system.task(task("x", "a")).task(task("y", "b")).task(task("z", "b")).build().expect("a system");
    let (metadata, all) = (metadata(&system), records_with(&system, &[], UNTIL, DispatchRecords::Kept));
    // Killed when its jobs had been released and none had begun.
    let left = Instant::from_nanos(30);
    let is_before =
        |record: &Record| record.time < left || record.time == left && record.event == Event::RELEASE;
    let is_of_it =
        |record: &Record| record.event.is_job() && metadata.lanes[usize::from(record.source)].node == 1;
    let mut records: Vec<Record> = all
        .into_iter()
        .filter(|record| is_before(record) || !is_of_it(record))
        .filter(|record| record.event != Event::RUN_END)
        .collect();
    assert!(
        verify(&metadata, &records, &system, Duration::ZERO).of(Rule::Idle) > 0,
        "somebody waits until the end"
    );
    let place = records.partition_point(|record| record.time <= left);
    records.insert(place, NodeLeft { epoch: 1, left: 1, node: 0 }.at(left, Record::NO_CPU));
    let report = verify(&metadata, &records, &system, Duration::ZERO);
    assert_eq!(report.violations, []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_simulated_trace_is_clean(system in systems(Scope::GUARDED), dispatch in dispatch()) {
        let metadata = metadata(&system);
        let records = records_with(&system, &[], UNTIL, dispatch);
        let report = verify(&metadata, &records, &system, Duration::ZERO);
        prop_assert_eq!(report.count(), 0, "{:#?}", report.violations);
        let released = records.iter().filter(|record| record.event == Event::RELEASE).count();
        prop_assert_eq!((report.jobs, report.unjudged), (released as u64, 0));
    }

    #[test]
    fn jobs_that_take_no_time_are_clean_too(system in systems(Scope::FREE)) {
        let metadata = metadata(&system);
        let records = records_with(&system, &[], UNTIL, DispatchRecords::Dropped);
        let report = verify(&metadata, &records, &system, Duration::ZERO);
        prop_assert_eq!(report.count(), 0, "{:#?}", report.violations);
    }

    /// Under another strategy the lanes differ, or else the two are the same for this system.
    #[test]
    fn the_wrong_strategy_is_found(
        system in systems(Scope::GUARDED), other in prop::sample::select(StrategyKind::ALL),
    ) {
        let metadata = metadata(&system);
        let records = records_with(&system, &[], UNTIL, DispatchRecords::Dropped);
        let wrong = system.clone().with_strategy(other);
        let report = verify(&metadata, &records, &wrong, Duration::ZERO);
        let lanes = |system: &System| {
            let plans = plan_system(system).expect("no anomalies");
            plans.iter().flat_map(|plan| &plan.lanes).map(|lane| (lane.level, lane.label.clone(), lane.discipline, lane.members.clone())).collect::<Vec<_>>()
        };
        prop_assert_eq!(report.of(Rule::Plan) > 0, lanes(&system) != lanes(&wrong));
    }

    /// Lost records lead to fewer judgements, not to wrong ones.
    #[test]
    fn nothing_is_held_against_what_was_lost(
        system in systems(Scope::GUARDED), from in 0..UNTIL, length in 1..UNTIL,
    ) {
        let metadata = metadata(&system);
        let all = records_with(&system, &[], UNTIL, DispatchRecords::Kept);
        let lost = |record: &&Record| (from..from + length).contains(&record.time.as_nanos());
        let count = all.iter().filter(lost).count() as u64;
        prop_assume!(count > 0);
        let mut kept: Vec<Record> = all.iter().filter(|record| record.time.as_nanos() < from).copied().collect();
        let after: Vec<Record> =
            all.iter().filter(|record| record.time.as_nanos() >= from + length).copied().collect();
        let Some(first) = after.first().copied() else { return Ok(()) };
        let since = kept.last().map(|record| record.time);
        let lost = Lost { records: count, since, ring: 0, cause: LossCause::Overwritten.into() };
        kept.push(lost.at(first.time, Record::NO_CPU));
        kept.extend(after);
        let report = verify(&metadata, &kept, &system, Duration::ZERO);
        prop_assert_eq!(report.count(), 0, "{:#?}", report.violations);
        prop_assert_eq!(report.lost_records, count);
    }

    /// One thread loses records while all others go on, and says so when it has room again.
    #[test]
    fn nothing_is_held_against_what_one_thread_lost(
        system in systems(Scope::GUARDED), lane in any::<prop::sample::Index>(), from in 0..UNTIL, length in 1..UNTIL,
        dispatch in prop::sample::select(vec![DispatchRecords::Kept, DispatchRecords::Dropped]),
    ) {
        let metadata = metadata(&system);
        let all = records_with(&system, &[], UNTIL, dispatch);
        let lane = lane.index(metadata.lanes.len()) as u16;
        let is_of_it = |record: &Record| record.event.is_job() && record.source == lane;
        let is_lost = |record: &Record| is_of_it(record) && (from..from + length).contains(&record.time.as_nanos());
        let since = all.iter().rfind(|record| is_of_it(record) && record.time.as_nanos() < from);
        let records = all.iter().filter(|record| is_lost(record)).count() as u64;
        if records == 0 {
            return Ok(());
        }
        let lost = Lost { records, since: since.map(|record| record.time), ring: 0, cause: LossCause::Overwritten.into() };
        let (mut kept, mut told) = (Vec::new(), false);
        for record in all.iter().filter(|record| !is_lost(record)) {
            let is_over = is_of_it(record) && record.time.as_nanos() >= from || record.event == Event::RUN_END;
            if is_over && !std::mem::replace(&mut told, true) {
                kept.push(lost.at(record.time, Record::NO_CPU));
            }
            kept.push(*record);
        }
        if !told {
            return Ok(());
        }
        let report = verify(&metadata, &kept, &system, Duration::ZERO);
        prop_assert_eq!((report.count(), report.possible()), (0, 0), "{:#?}", report.violations);
        prop_assert_eq!(report.lost_records, records);
    }

    /// A recording that begins with the run under way, in every lane at another instant, within less than any two releases of
    /// a task are apart.
    #[test]
    fn nothing_is_held_against_what_came_before(
        system in systems(Scope::GUARDED), from in 1..UNTIL, skew in proptest::collection::vec(0..3i64, 8),
    ) {
        let metadata = metadata(&system);
        let all = records_with(&system, &[], UNTIL, DispatchRecords::Dropped);
        // Jitter brings releases closer together than a period.
        let between = system.tasks.iter().map(|task| task.period.as_nanos() - task.jitter.as_nanos());
        let most = between.min().expect("there are tasks").max(1) - 1;
        let begins = |record: &Record| from + skew[usize::from(record.source) % skew.len()].min(most);
        let kept: Vec<Record> =
            all.iter().filter(|record| record.time.as_nanos() >= begins(record)).copied().collect();
        let report = verify(&metadata, &kept, &system, Duration::ZERO);
        prop_assert_eq!(report.count(), 0, "{:#?}", report.violations);
    }

    /// Anything at all in the fields of records gives a report.
    #[test]
    fn nothing_makes_it_panic(
        system in systems(Scope::GUARDED),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<[u64; 5]>(), 0..6usize), 1..20),
    ) {
        let metadata = metadata(&system);
        let mut records = records_with(&system, &[], UNTIL, DispatchRecords::Kept);
        for (place, words, field) in damage {
            let place = place.index(records.len());
            let mut damaged = records[place].to_words();
            match field {
                5 => damaged = words,
                4 => damaged[4] = damaged[4] & !0xffff | words[4] & 0x0107,
                field => damaged[field] = words[field],
            }
            records[place] = Record::from_words(damaged);
        }
        verify(&metadata, &records, &system, Duration::ZERO);
        let mut usage = talea_insight::Usage::new(&metadata);
        records.iter().for_each(|record| usage.record(*record));
        usage.finish();
        // Where no job is left that ended, it is refused.
        let replay = |sink: &mut dyn Sink| {
            records.iter().for_each(|record| sink.record(*record));
            Ok::<(), std::convert::Infallible>(())
        };
        let _ = talea_insight::explain::explain(&metadata, crate::explain::EVERYTHING, replay);
    }
}

/// What was found before anything was lost stays found, and after that nobody knows.
#[test]
fn what_was_found_before_a_loss_is_a_violation() {
    let task = TaskBuilder::new("t", Duration::from_nanos(10)).wcet(Work::from_nanos(4));
    let system = System::builder("one").strategy(StrategyKind::Rms).task(task).build().expect("a system");
    let (metadata, mut records) =
        (metadata(&system), records_with(&system, &[], UNTIL, DispatchRecords::Dropped));
    let release = records.iter().position(|record| record.event == Event::RELEASE).expect("one");
    records.insert(release, records[release]);
    let with_loss = |records: &[Record], since: Option<i64>, ring: u16| {
        let lost = Lost {
            records: 1,
            since: since.map(Instant::from_nanos),
            ring,
            cause: LossCause::Overwritten.into(),
        };
        let mut records = records.to_vec();
        let place = records.partition_point(|record| record.time < Instant::from_nanos(60));
        records.insert(place, lost.at(Instant::from_nanos(60), Record::NO_CPU));
        verify(&metadata, &records, &system, Duration::ZERO)
    };
    let judged = |since: Option<i64>, ring: u16| {
        let report = with_loss(&records, since, ring);
        let life = report.rules.iter().find(|report| report.rule == Rule::Life).expect("each rule is there");
        assert_eq!((report.lost_records, report.violations.len() as u64), (1, life.violations));
        (life.violations, life.unknown)
    };
    assert_eq!(judged(Some(50), 0), (1, 0));
    assert_eq!(judged(Some(0), 0), (0, 1), "that it was released twice may be what was lost");
    assert_eq!(judged(None, 0), (0, 1));
    // Threads that have no ring, and the kernel, say nothing of the lives of jobs, neither before nor after.
    let release = records.iter().rposition(|record| record.event == Event::RELEASE).expect("one");
    let job = records[release].job();
    let last = records.iter().position(|record| record.event == Event::COMPLETE && record.job() == job);
    let last = last.expect("it ends");
    records.insert(last, records[last]);
    for ring in [Record::NO_RING, Record::KERNEL] {
        let report = with_loss(&records, None, ring);
        assert_eq!((report.of(Rule::Life), report.unjudged, report.lost_records), (2, 0, 1), "{ring}");
    }
}

/// More instances of a chain wait than are remembered once they are over: one between two of its legs is not over.
#[test]
fn a_chain_far_behind_is_clean() {
    let leg = |name: &str, after: &[&str]| {
        SubtaskBuilder::new(name).wcet(Work::from_nanos(5)).after(after.to_vec())
    };
    let route = TaskBuilder::new("route", Duration::from_nanos(10));
    let route =
        route.subtask(leg("plan", &[])).subtask(leg("draw", &["plan"])).subtask(leg("show", &["draw"]));
    let system = System::builder("behind").task(route).build().expect("a system");
    let records = records_with(&system, &[], 4_000, DispatchRecords::Dropped);
    let report = verify(&metadata(&system), &records, &system, Duration::ZERO);
    assert_eq!(report.count(), 0, "{:#?}", report.violations);
}
