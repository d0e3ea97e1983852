//! Processors that jobs share: what schedules, pictures of tracks and accounts say where the kernel's records tell which job
//! ran, and where nobody saw it.

use talea_export::*;
use talea_insight::*;
use talea_record::*;
use talea_samples::{RUN_START_NS, at, metadata, overlapping, run_event};

const START: i64 = RUN_START_NS;
const NAV: u64 = 70;
const PLAN: u64 = 71;

fn the_first_of(operation: usize) -> JobId {
    JobId { operation: talea_model::OperationId::from_index(operation), instance: 0 }
}

/// The job of `route.plan`, and that of `nav`.
fn both() -> (JobId, JobId) {
    (the_first_of(1), the_first_of(0))
}

/// One processor, lanes without real-time priorities.
fn ordinary() -> Metadata {
    let mut metadata = Metadata { origin: Origin::Threads { realtime: false }, ..metadata() };
    metadata.nodes[0].cpus = vec![0];
    metadata
}

/// The same with the kernel's switches: the two alternate.
fn alternating() -> Vec<Record> {
    let record = |event, after: i64, source, words, arg| Record {
        time: at(START + after),
        causal: 0,
        words,
        event,
        source,
        cpu: 0,
        arg,
    };
    let met = |lane, thread| record(Event::THREAD, 0, lane, [thread, 0], ThreadRole::Lane as u16);
    let preempted =
        |after, from: u64, to: u64| record(Event::SWITCH, after, Record::KERNEL, [from | to << 32, 0], 1);
    let mut records = overlapping();
    records.splice(1..1, [met(0, NAV), met(1, PLAN), preempted(0, 0, PLAN)]);
    records.extend([preempted(110, PLAN, NAV), preempted(300, NAV, PLAN), preempted(500, PLAN, NAV)]);
    records.extend([preempted(705, NAV, PLAN), preempted(1_010, PLAN, 0)]);
    records.sort_by_key(|record| record.time);
    records
}

/// From when to when after the start who had the processor.
fn segments(metadata: &Metadata, records: &[Record]) -> Vec<(i64, i64, Runner)> {
    let mut segments = Segments::new(metadata);
    let mut list = Vec::new();
    let after = |instant: talea_time::Instant| instant.as_nanos() - START;
    let mut put = |segment: Segment| list.push((after(segment.start), after(segment.end), segment.runner));
    records.iter().for_each(|record| segments.feed(record, &mut put));
    segments.finish(at(START + 2_000), put);
    list
}

fn csv(metadata: &Metadata, records: &[Record]) -> (String, i64) {
    let mut written = Vec::new();
    let mut schedule = ScheduleCsv::new(metadata, &mut written);
    records.iter().for_each(|record| schedule.record(*record));
    let unseen = schedule.finish(at(START + 2_000)).expect("memory takes it");
    (String::from_utf8(written).expect("text"), unseen.as_nanos())
}

fn perfetto(metadata: &Metadata, records: &[Record]) -> String {
    let mut export = PerfettoExport::new(metadata, &NameSpace::default(), &[], Vec::new());
    records.iter().for_each(|record| export.record(*record));
    String::from_utf8_lossy(&export.finish(at(START + 2_000)).expect("memory takes it")).into_owned()
}

fn usage(metadata: &Metadata, records: &[Record]) -> usage::UsageReport {
    let mut usage = Usage::new(metadata);
    records.iter().for_each(|record| usage.record(*record));
    usage.finish()
}

#[test]
fn a_schedule_gives_nobody_what_nobody_saw() {
    let (plan, nav) = both();
    let among = Runner::SharedUnseen(vec![plan, nav]);
    let expected = [(10, 120, Runner::Job(both().0)), (120, 700, among), (700, 1_000, Runner::Job(both().0))];
    assert_eq!(segments(&ordinary(), &overlapping()), expected);
    let (text, unseen_ns) = csv(&ordinary(), &overlapping());
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        rows,
        ["10,120,mission,0,route,plan,0", "120,700,mission,0,?,?,", "700,1000,mission,0,route,plan,0"]
    );
    assert_eq!(unseen_ns, 580);
    let tracks = perfetto(&ordinary(), &overlapping());
    assert!(tracks.contains("shared unseen: route.plan #0, nav #0"), "{tracks}");
}

#[test]
fn a_schedule_follows_the_kernels_switches() {
    let (plan, nav) = (Runner::Job(both().0), Runner::Job(both().1));
    let found = segments(&ordinary(), &alternating());
    let of = |runner: &Runner| -> i64 {
        found.iter().filter(|(.., who)| who == runner).map(|(from, to, _)| to - from).sum()
    };
    assert_eq!((of(&plan), of(&nav)), (100 + 200 + 295, 180 + 200), "{found:?}");
    assert!(found.contains(&(300, 500, plan)), "{found:?}");
    // With priorities they are followed as well.
    let mut with_priorities = ordinary();
    with_priorities.origin = Origin::Threads { realtime: true };
    assert_eq!(segments(&with_priorities, &alternating()), found);
    let (text, unseen_ns) = csv(&ordinary(), &alternating());
    assert!(unseen_ns == 0 && !text.contains('?'), "{text}");
    assert!(!perfetto(&ordinary(), &alternating()).contains("shared unseen"));
    // The accounts have the same.
    let report = usage(&ordinary(), &alternating());
    assert_eq!(report.nodes[0].execution, [(0, Some(380)), (1, Some(595))]);
}

/// Without the kernel's records, real-time priorities and virtual time say who has the one processor.
#[test]
fn priorities_say_who_runs() {
    let mut metadata = ordinary();
    metadata.origin = Origin::Threads { realtime: true };
    let runners = [Runner::Job(both().0), Runner::Job(both().1), Runner::Job(both().0)];
    let found: Vec<Runner> =
        segments(&metadata, &overlapping()).into_iter().map(|(.., runner)| runner).collect();
    assert_eq!(found, runners);
    let node = &usage(&metadata, &overlapping()).nodes[0];
    assert_eq!(
        (node.shared_unseen_ns, &node.execution[..]),
        (Some(0), &[(0, Some(580)), (1, Some(410))][..])
    );
}

#[test]
fn an_account_of_its_own_has_what_nobody_saw() {
    let report = usage(&ordinary(), &overlapping());
    let node = &report.nodes[0];
    assert_eq!((node.execution_ns, node.shared_unseen_ns, node.error_ns), (Some(410), Some(580), 0));
    assert_eq!(node.execution, [(0, None), (1, None)]);
    let parts = [node.execution_ns, node.shared_unseen_ns, node.overhead_ns, node.idle_ns];
    let sum: i64 = parts.into_iter().flatten().sum::<i64>() + node.unknown_ns + node.unrecorded_ns;
    assert_eq!(sum, node.available_ns);
    for operation in &report.operations[..2] {
        assert_eq!((operation.jobs, operation.execution, operation.overhead), (Some(1), None, None));
        assert!(operation.response.is_some());
    }
    // A job that shares with nobody is seen.
    let alone = usage(&ordinary(), &[&overlapping()[..3], &overlapping()[6..]].concat());
    assert_eq!(alone.nodes[0].execution, [(1, Some(990))]);
}

/// A job that another one displaces for good may have gone on anywhere: no processor is known to be without it.
#[test]
fn an_empty_processor_is_nobodys_while_jobs_share_another_one() {
    let mut two = ordinary();
    two.nodes[0].cpus = vec![0, 1];
    let node = &usage(&two, &overlapping()).nodes[0];
    assert_eq!(node.shared_unseen_ns, Some(2 * 580));
    assert_eq!(node.available_ns, 4_000);
}

#[test]
fn how_often_jobs_lost_a_processor_is_not_known_without_priorities() {
    let report = |metadata: &Metadata| {
        let mut accounting = Accounting::new(metadata, talea_time::Duration::from_millis(1));
        overlapping().into_iter().for_each(|record| accounting.record(record));
        accounting.finish(at(START + 2_000)).to_json(&RecordedEvents::everything())
    };
    let (plain, seen) =
        (report(&ordinary()), report(&Metadata { origin: Origin::Threads { realtime: true }, ..ordinary() }));
    for (section, keys) in [
        ("operations", &["preemptions"][..]),
        ("lanes", &["busy_ns", "utilisation"]),
        ("nodes", &["busy_ns", "utilisation", "job_switches", "preemptions"]),
    ] {
        for key in keys {
            assert!(
                plain[section][0][key].is_null() && seen[section][0][key].is_number(),
                "{section} {key}: {plain}"
            );
        }
    }
    assert_eq!(plain["operations"][0]["completed"], 1);
}

/// What stands open when records are lost ends with the last thing that is known.
#[test]
fn a_segment_ends_where_records_were_lost() {
    let mut records = overlapping();
    let lost = Record { words: [5, (START + 60) as u64], ..run_event(Event::LOST, START + 110) };
    records.insert(4, lost);
    let found = segments(&ordinary(), &records);
    assert_eq!(found[0], (10, 60, Runner::Job(both().0)), "{found:?}");
    assert_eq!(found[1], (120, 700, Runner::Job(both().1)), "{found:?}");
}
