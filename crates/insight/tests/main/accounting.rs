//! The accounting against scenarios done by hand, and against a slow reference that keeps everything.

use super::posted::with_posted;
use proptest::prelude::*;
use std::collections::BTreeMap;
use talea_insight::*;
use talea_record::*;
use talea_samples::*;
use talea_time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
const MS: i64 = 1_000_000;

fn run(records: &[Record], end: Instant) -> Report {
    let mut accounting = Accounting::new(&metadata(), SECOND).with_samples(Samples::Keep);
    records.iter().for_each(|record| accounting.record(*record));
    accounting.finish(end)
}

/// Start of the runs here, as in the metadata.
const START: i64 = 1_000_000_000;

fn ms(value: i64) -> i64 {
    START + value * MS
}

/// What the host took counts for the nodes that have the processor, also when it is known after the end only, which stays where it is.
#[test]
fn steal_time_is_added_up_by_node() {
    let steal = |cpu: u16, to: i64, amount: i64| {
        let amount = Duration::from_nanos(amount * MS);
        event::Steal { amount, from: START.at(), to: ms(to).at() }.at(ms(to).at(), cpu)
    };
    let cpus: Vec<Vec<u16>> = metadata().nodes.iter().map(|node| node.cpus.clone()).collect();
    let own = cpus[0][0];
    let records = [
        run_event(Event::RUN_START, START),
        steal(own, 10, 20),
        steal(4_000, 10, 20),
        run_event(Event::RUN_END, ms(55)),
        steal(own, 60, 10),
    ];
    let report = run(&records, ms(99).at());
    assert_eq!((report.end_ns, report.records_after_end, report.unknown_records), (ms(55), 0, 0));
    for (node, cpus) in report.nodes.iter().zip(&cpus) {
        let expected = if cpus.contains(&own) { 30 * MS as u64 } else { 0 };
        assert_eq!(node.stolen_ns, expected, "{}", node.name);
    }
}

/// Parts have a lane's number where they say how long a text is, and may come when a node has ended.
#[test]
fn parts_of_long_texts_are_of_no_job_and_no_lane() {
    let part = |time: i64, bytes| {
        event::EventPart { first: [1; 8], second: [0; 8], third: [0; 8], bytes, number: 1 }
            .at(ms(time).at(), 0)
    };
    let marks = [run_event(Event::RUN_START, START), run_event(Event::RUN_END, ms(55))];
    let parts = (0..4).flat_map(|bytes| [part(20, bytes), part(90, bytes)]);
    let mut with_parts: Vec<Record> = marks.into_iter().chain(parts).collect();
    with_parts.sort_by_key(|record| record.time);
    let report = run(&with_parts, ms(99).at());
    assert_eq!((report.end_ns, report.records_after_end, report.unknown_records), (ms(55), 0, 0));
}

#[test]
fn a_run_done_by_hand() {
    let nav =
        |event, time, k: i64, arg| job(event, ms(time), 0, k as u64, [ms(10 * k), ms(10 * k + 10)], arg);
    let plan = |event, time| job(event, ms(time), 1, 0, [ms(0), ms(20)], 0);
    let draw = |event, time| job(event, ms(time), 2, 0, [ms(7), ms(20)], 0);
    let records = [
        run_event(Event::RUN_START, START),
        nav(Event::RELEASE, 1, 0, 0),
        plan(Event::RELEASE, 1),
        nav(Event::START, 1, 0, 1),
        nav(Event::COMPLETE, 4, 0, 0),
        plan(Event::START, 4),
        plan(Event::COMPLETE, 7),
        draw(Event::RELEASE, 7),
        draw(Event::START, 7),
        nav(Event::RELEASE, 10, 1, 0),
        draw(Event::PREEMPT, 10),
        nav(Event::START, 10, 1, 2),
        nav(Event::COMPLETE, 21, 1, 0),
        draw(Event::RESUME, 21),
        draw(Event::COMPLETE, 23),
        nav(Event::SKIP, 23, 2, 1),
        nav(Event::RELEASE, 30, 3, 0),
        nav(Event::START, 30, 3, 1),
        nav(Event::ABORT, 32, 3, 1),
        nav(Event::RELEASE, 40, 4, 0),
        nav(Event::RELEASE, 50, 5, 0),
        run_event(Event::RUN_END, ms(55)),
        nav(Event::START, 56, 4, 1),
    ];
    let report = run(&records, ms(99).at());
    assert_eq!((report.start_ns, report.end_ns, report.duration_ns), (START, ms(55), 55 * MS));
    assert_eq!((report.lost_records, report.unknown_records, report.records_after_end), (0, 0, 1));
    let nav = &report.tasks[0];
    assert_eq!((nav.offered, nav.released, nav.completed, nav.met), (6, 5, 2, 1));
    assert_eq!((nav.missed, nav.skipped, nav.aborted, nav.unfinished), (3, 1, 1, 1));
    assert_eq!(nav.worst_lateness_ns, Some(MS));
    let response = nav.response_ns.unwrap();
    assert_eq!((response.count, response.min, response.max), (2, 4 * MS, 11 * MS));
    let route = &report.tasks[1];
    assert_eq!((route.completed, route.missed, route.worst_lateness_ns), (1, 1, Some(3 * MS)));
    assert_eq!(route.response_ns.unwrap().max, 23 * MS, "from the instance's arrival to its last completion");
    assert_eq!(report.operations[2].response_ns.unwrap().max, 16 * MS, "from the job's own release");
    assert_eq!(report.operations[0].release_lateness_ns.unwrap().max, MS);
    assert_eq!(report.operations[2].release_lateness_ns, None, "nothing is nominal about a successor");
    assert_eq!(report.operations[2].preemptions, 1);
    assert_eq!([report.lanes[0].busy_ns, report.lanes[1].busy_ns], [16 * MS, 8 * MS]);
    assert_eq!((report.lanes[0].max_queue, report.lanes[0].jobs), (2, 3));
    assert_eq!((report.nodes[0].job_switches, report.nodes[0].preemptions), (6, 1));
    assert_eq!((report.samples.samples, report.samples.samples_with_critical_failure), (1, 1));
    assert!(!report.critical_met() && !report.all_met());
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
}

#[test]
fn what_is_recorded_of_a_run_under_way_is_a_share_of_the_recording() {
    let nav = |event, time| job(event, ms(time), 0, 500, [ms(5_000), ms(5_010)], 1);
    let records = [nav(Event::RELEASE, 5_000), nav(Event::START, 5_000), nav(Event::COMPLETE, 5_500)];
    let report = run(&records, at(ms(6_000)));
    assert_eq!((report.start_ns, report.duration_ns), (ms(5_000), 1_000 * MS));
    assert_eq!((report.lanes[0].utilisation, report.samples.samples), (0.5, 1));
}

#[test]
fn a_miss_belongs_to_the_sample_in_which_the_deadline_expired() {
    let route = |event, time, operation, k: i64| {
        job(event, ms(time), operation, k as u64, [ms(20 * k), ms(20 * k + 1000)], 0)
    };
    let records = [
        // Met at the very end of sample 0.
        route(Event::RELEASE, 0, 1, 0),
        route(Event::COMPLETE, 1000, 2, 0),
        // Its deadline is in sample 1, its completion in sample 3.
        route(Event::RELEASE, 20, 1, 1),
        route(Event::COMPLETE, 3500, 2, 1),
        // Met in sample 3.
        route(Event::RELEASE, 3500, 1, 150),
        route(Event::COMPLETE, 3600, 2, 150),
    ];
    let mut sorted = records.to_vec();
    sorted.sort_by_key(|record| record.time);
    let report = run(&sorted, ms(4000).at()).samples;
    let found: Vec<_> =
        report.list.iter().map(|s| (s.index, s.soft_met, s.soft_offered, s.effectiveness)).collect();
    assert_eq!(found, [(0, 1, 1, 1), (1, 0, 1, 0), (3, 1, 1, 1)]);
    assert_eq!((report.samples, report.mean_effectiveness), (4, 0.5));
    assert_eq!(report.mean_efficiency, Some(2.0 / 3.0), "samples 0, 1 and 3 had a soft instance");
}

#[test]
fn a_critical_miss_spoils_its_sample() {
    let mut records = vec![
        job(Event::RELEASE, ms(0), 1, 0, [ms(0), ms(20)], 0),
        job(Event::COMPLETE, ms(10), 2, 0, [ms(0), ms(20)], 0),
        job(Event::RELEASE, ms(1000), 1, 50, [ms(1000), ms(1020)], 0),
        job(Event::COMPLETE, ms(1010), 2, 50, [ms(1000), ms(1020)], 0),
    ];
    records.insert(2, job(Event::RELEASE, ms(100), 0, 10, [ms(100), ms(110)], 0));
    let report = run(&records, ms(2000).at()).samples;
    let found: Vec<_> =
        report.list.iter().map(|s| (s.critical_failures, s.soft_met, s.effectiveness)).collect();
    assert_eq!(found, [(1, 1, 0), (0, 1, 1)]);
    assert_eq!((report.samples_with_critical_failure, report.mean_efficiency), (1, Some(0.5)));
}

#[test]
fn losses_and_strangers_are_counted() {
    let mut stranger = numbered(5);
    stranger.event = Event(0x0177);
    let mut foreign = numbered(5);
    foreign.causal = u64::MAX;
    let other_family = Record { event: Event(0x4001), ..numbered(5) };
    let lost = Record { event: Event::LOST, words: [17, 0], ..numbered(5) };
    let report = run(&[stranger, foreign, other_family, lost], ms(1).at());
    assert_eq!((report.unknown_records, report.lost_records), (2, 17));
}

#[test]
fn a_completion_whose_release_was_lost_still_counts() {
    let report = run(&[job(Event::COMPLETE, ms(215), 2, 10, [ms(212), ms(220)], 0)], ms(300).at());
    let route = &report.tasks[1];
    assert_eq!((route.released, route.met), (1, 1));
    assert_eq!(route.response_ns.unwrap().max, 15 * MS, "instance 10 arrives at 200 ms");
}

proptest! {
    /// Whatever the records say, accounting survives and its sums hold.
    #[test]
    fn nonsense_keeps_the_sums(
        records in prop::collection::vec(
            (prop_oneof![0x0001u16..0x0004, 0x0101u16..0x0109], 0i64..4, 0u64..40, any::<u64>(), 0u16..3, any::<bool>()),
            0..300,
        ),
    ) {
        let mut accounting = Accounting::new(&with_posted(), SECOND).with_samples(Samples::Keep);
        for (event, operation, instance, word, arg, wild) in records {
            let time = if wild { word as i64 } else { START + (word % (10 * SECOND.as_nanos() as u64)) as i64 };
            let words = if wild { [word, word.rotate_left(13)].map(|word| word as i64) } else { [START, time + 1000] };
            accounting.record(job(Event(event), time, operation as usize, instance, words, arg));
        }
        let report = accounting.finish(at(START + 10 * SECOND.as_nanos()));
        for task in &report.tasks {
            prop_assert_eq!(task.offered, task.released + task.skipped);
            prop_assert_eq!(task.released, task.met + task.missed + task.unfinished);
        }
    }

    #[test]
    fn agrees_with_a_reference_that_keeps_everything(
        nav in prop::collection::vec(plan(), 1..80),
        route in prop::collection::vec(plan(), 1..80),
        sample_ms in 5i64..200,
        end_ms in 1i64..1000,
    ) {
        let mut records = Vec::new();
        instances(&mut records, &nav, 10, &[0]);
        instances(&mut records, &route, 20, &[1, 2]);
        records.sort_by_key(|record| record.time);
        let end = ms(end_ms);
        records.retain(|record| record.time <= end.at());
        records.push(run_event(Event::RUN_END, end));
        let sample = Duration::from_millis(sample_ms);
        let mut accounting = Accounting::new(&metadata(), sample).with_samples(Samples::Keep);
        records.iter().for_each(|record| accounting.record(*record));
        let report = accounting.finish(Instant::MAX);
        let mut samples = BTreeMap::new();
        for (task, last) in [(0, 0), (1, 2)] {
            let expected = reference(&records, task, last, sample, &mut samples);
            let found = &report.tasks[task];
            let counts = [found.released, found.completed, found.met, found.missed, found.skipped, found.aborted, found.unfinished];
            prop_assert_eq!(counts, expected.counts);
            prop_assert_eq!(found.response_ns.map(|d| (d.count, d.min, d.max)), expected.response);
            prop_assert_eq!(found.worst_lateness_ns, expected.worst_lateness);
        }
        let complete = ((end_ms / sample_ms) as u64).max(1);
        prop_assert_eq!(report.samples.samples, complete);
        let list: BTreeMap<u64, [u64; 3]> =
            report.samples.list.iter().map(|s| (s.index, [s.soft_met, s.soft_offered, s.critical_failures])).collect();
        samples.retain(|index, sample| *index < complete && sample[1] + sample[2] > 0);
        prop_assert_eq!(list, samples);
    }
}

/// What becomes of an instance in the random runs.
#[derive(Clone, Copy, Debug)]
struct Plan {
    fate: u8,
    delay_ms: i64,
}

fn plan() -> impl Strategy<Value = Plan> {
    (0u8..10, 0i64..60).prop_map(|(fate, delay_ms)| Plan { fate, delay_ms })
}

/// Records of a task whose operations `chain` follow each other. Fate 0: skipped, 1: aborted, 2: never
/// completes, otherwise completes after the delay.
fn instances(records: &mut Vec<Record>, plans: &[Plan], period_ms: i64, chain: &[usize]) {
    for (k, plan) in plans.iter().enumerate() {
        let arrival = k as i64 * period_ms;
        let words = [ms(arrival), ms(arrival + period_ms)];
        let mut push =
            |event, time, operation| records.push(job(event, ms(time), operation, k as u64, words, 0));
        if plan.fate == 0 {
            push(Event::SKIP, arrival, chain[0]);
            continue;
        }
        let end = arrival + plan.delay_ms;
        for (position, operation) in chain.iter().enumerate() {
            let share = chain.len() as i64;
            push(Event::RELEASE, arrival + plan.delay_ms * position as i64 / share, *operation);
            match plan.fate {
                1 if position + 1 == chain.len() => push(Event::ABORT, end, *operation),
                2 if position + 1 == chain.len() => {}
                _ => {
                    push(Event::COMPLETE, arrival + plan.delay_ms * (position as i64 + 1) / share, *operation)
                }
            }
        }
    }
}

/// What always wants a processor, and is taken away, has missed nothing.
#[test]
fn who_has_no_deadline_does_not_miss_it_by_being_given_up() {
    let never = ms(0) + 200 * 365 * 86_400 * 1_000_000_000;
    let endless = |event, time, arg| job(event, ms(time), 0, 0, [ms(0), never], arg);
    let records = [
        run_event(Event::RUN_START, START),
        endless(Event::RELEASE, 0, 0),
        endless(Event::START, 0, 1),
        endless(Event::ABORT, 9, 1),
        run_event(Event::RUN_END, ms(20)),
    ];
    let report = run(&records, ms(20).at());
    let (task, operation) = (&report.tasks[0], &report.operations[0]);
    assert_eq!((task.aborted, task.met, task.missed, task.unfinished), (1, 0, 0, 1));
    assert_eq!((operation.aborted, operation.met, operation.missed), (1, 0, 0));
}

/// A recording that comes to a run under way hears of some jobs only that they ended.
#[test]
fn jobs_that_are_only_heard_to_end_were_released_as_well() {
    let mut accounting = Accounting::new(&metadata(), Duration::from_millis(100));
    let words = |number: i64, period: i64| [ms(number * period), ms((number + 1) * period)];
    for record in [
        job(Event::COMPLETE, ms(31), 0, 3, words(3, 10), 0),
        job(Event::COMPLETE, ms(32), 1, 1, words(1, 20), 0),
        job(Event::RELEASE, ms(32), 2, 1, words(1, 20), 0),
        job(Event::ABORT, ms(33), 2, 1, words(1, 20), 1),
        job(Event::RELEASE, ms(40), 0, 4, words(4, 10), 0),
        job(Event::COMPLETE, ms(41), 0, 4, words(4, 10), 0),
    ] {
        accounting.record(record);
    }
    let report = accounting.finish(at(ms(50)));
    let operations = report.operations.iter().map(|entry| (entry.released, entry.completed + entry.aborted));
    assert_eq!(operations.collect::<Vec<_>>(), [(2, 2), (1, 1), (1, 1)]);
    let tasks = report.tasks.iter().map(|entry| (entry.released, entry.completed + entry.aborted));
    assert_eq!(tasks.collect::<Vec<_>>(), [(2, 2), (1, 1)]);
}

struct Expected {
    counts: [u64; 7],
    response: Option<(u64, i64, i64)>,
    worst_lateness: Option<i64>,
}

/// The numbers of one task, instance by instance; adds to `samples` [met, offered] of soft tasks and the
/// failures of critical ones.
fn reference(
    records: &[Record],
    task: usize,
    last: usize,
    sample: Duration,
    samples: &mut BTreeMap<u64, [u64; 3]>,
) -> Expected {
    let first = if task == 0 { 0 } else { 1 };
    let end = records.last().unwrap().time;
    let mut counts = [0; 7];
    let (mut responses, mut lateness) = (Vec::new(), Vec::new());
    let of = |record: &&Record, event, operation| {
        record.event == event && record.job().operation.index() == operation
    };
    let mut decide = |at: Instant, met: bool| {
        let since = (at - START.at()).as_nanos();
        let index = ((since + sample.as_nanos() - 1) / sample.as_nanos() - 1).max(0) as u64;
        let entry = samples.entry(index).or_default();
        match task {
            0 => entry[2] += u64::from(!met),
            _ => {
                entry[0] += u64::from(met);
                entry[1] += 1;
            }
        }
    };
    for skip in records.iter().filter(|record| of(record, Event::SKIP, first)) {
        counts[4] += 1;
        decide(skip.time, false);
    }
    for release in records.iter().filter(|record| of(record, Event::RELEASE, first)) {
        counts[0] += 1;
        let (arrival, deadline) = ((release.words[0] as i64).at(), (release.words[1] as i64).at());
        let find = |event| {
            records
                .iter()
                .find(|record| of(record, event, last) && record.job().instance == release.job().instance)
        };
        let missed_at = match (find(Event::COMPLETE), find(Event::ABORT)) {
            (Some(complete), _) => {
                counts[1] += 1;
                responses.push((complete.time - arrival).as_nanos());
                lateness.push((complete.time - deadline).as_nanos());
                (complete.time > deadline).then_some(deadline)
            }
            (None, Some(abort)) => {
                counts[5] += 1;
                Some(deadline.min(abort.time))
            }
            (None, None) if deadline <= end => Some(deadline),
            (None, None) => {
                counts[6] += 1;
                continue;
            }
        };
        counts[2] += u64::from(missed_at.is_none());
        counts[3] += u64::from(missed_at.is_some());
        decide(missed_at.unwrap_or_else(|| find(Event::COMPLETE).unwrap().time), missed_at.is_none());
    }
    let response =
        responses.iter().min().map(|min| (responses.len() as u64, *min, *responses.iter().max().unwrap()));
    Expected { counts, response, worst_lateness: lateness.into_iter().max() }
}

/// Nanoseconds as an instant.
trait At {
    fn at(self) -> Instant;
}

impl At for i64 {
    fn at(self) -> Instant {
        at(self)
    }
}
