//! Recordings of some events only: what is said for want of the others.

use super::{START, cost, explained, explained_from, list, nav, one_processor, record, told};
use std::convert::Infallible;
use talea_insight::explain::{ExplainError, Explanations, Kind, Stage, Subject};
use talea_insight::*;
use talea_record::*;
use talea_samples::{job, metadata, run_event};

/// Whoever had the processor while a job waited may be one whose records were not asked for.
#[test]
fn waiting_is_not_recorded_where_events_of_jobs_are_not() {
    let mut metadata = one_processor();
    metadata.recorded = Some(["job.release", "job.complete"].map(str::to_owned).into());
    let records = [
        run_event(Event::RUN_START, START),
        nav(Event::RELEASE, 80),
        nav(Event::COMPLETE, 1_000),
        run_event(Event::RUN_END, START + 2_000),
    ];
    let subject = Subject::Instance { task: 0, number: 0 };
    let answer = explained_from(&metadata, &records, subject).expect("it tells enough");
    let one = &answer.list[0];
    assert_eq!(list(one).last(), Some(&(80, 1_000, Stage::Waiting, Kind::Unrecorded)));
    let sentence = answer.sentence(one);
    assert!(sentence.contains("was not recorded; for want of "), "{sentence}");
    assert!(sentence.contains("job.start") && sentence.contains("--events run,job,dispatch"), "{sentence}");
}

/// Explains the first instance of a task from a recording that was asked for these events only.
fn asked(events: &[&str], metadata: Metadata, records: &[Record]) -> Explanations {
    try_asked(events, metadata, records).expect("it tells enough")
}

fn try_asked(
    events: &[&str],
    metadata: Metadata,
    records: &[Record],
) -> Result<Explanations, ExplainError<Infallible>> {
    let names = NameSpace::default();
    let is_asked = |record: &Record| {
        let (family, entry) = names.event(record.event).expect("builtin");
        let name = format!("{}.{}", family.name, entry.name);
        family.name == "kernel" || name == "run.thread" || events.contains(&name.as_str())
    };
    let kept: Vec<Record> = records.iter().copied().filter(is_asked).collect();
    let recorded = Some(events.iter().map(|name| (*name).to_owned()).collect());
    let metadata = Metadata { recorded, ..metadata };
    explained_from(&metadata, &kept, Subject::Instance { task: 0, number: 0 })
}

const JOBS: [&str; 7] =
    ["job.release", "job.start", "job.preempt", "job.resume", "job.complete", "job.skip", "job.abort"];

#[test]
fn without_the_ends_of_jobs_nothing_is_explained() {
    let error = try_asked(&["job.release", "job.start"], one_processor(), &told()).unwrap_err();
    assert!(error.to_string().contains("no records of job.preempt, job.resume, job.complete"), "{error}");
}

/// Each event that is missing leaves open what it would have told, and blames nobody for it.
#[test]
fn nobody_is_blamed_for_what_was_not_recorded() {
    use Stage::{Begun, Coming, Waiting};
    let without_kernel: Vec<Record> = told().into_iter().filter(|one| one.event.family() < 3).collect();
    let kinds = |events: &[&str]| list(&asked(events, one_processor(), &without_kernel).list[0]);
    assert_eq!(kinds(&["job.complete"]), [(0, 1_000, Coming, Kind::Unrecorded)]);
    let begun = [(0, 210, Coming, Kind::Unrecorded), (210, 1_000, Begun, Kind::Execution)];
    assert_eq!(kinds(&["job.start", "job.complete", "job.abort"]), begun);
    assert_eq!(
        kinds(&JOBS),
        [
            (0, 80, Coming, Kind::Unrecorded),
            (80, 210, Waiting, Kind::Unrecorded),
            (210, 1_000, Begun, Kind::Execution),
        ],
        "neither the timer nor the lanes are told of"
    );
    // On two processors, who was preempted and went on elsewhere is not known either.
    let two = asked(&["job.start", "job.complete", "job.abort"], metadata(), &without_kernel);
    assert_eq!(list(&two.list[0]).last(), Some(&(210, 1_000, Begun, Kind::Unrecorded)));
    let gaps = two.gaps();
    assert!(gaps.iter().any(|(what, missing)| {
        *what == "who had the processors" && *missing == ["job.preempt", "job.resume"]
    }));
}

/// Of the kernel alone is known what others did on the one processor.
#[test]
fn the_kernel_tells_of_others_where_jobs_are_not_recorded() {
    let answer = asked(&["job.release", "job.complete", "dispatch.timer"], one_processor(), &told());
    let of = |kind: Kind| {
        let totals = &answer.list[0].totals;
        totals.iter().find(|total| total.kind == kind).map(|total| total.sum().as_nanos())
    };
    assert_eq!((of(Kind::Program), of(Kind::Interrupt)), (Some(200), Some(30)));
    assert_eq!((of(Kind::Execution), of(Kind::Idle)), (None, None));
    assert_eq!(of(Kind::Unrecorded), Some(1_000 - 80 - 230));
}

/// What was overwritten, what is from before the recording, and what was not recorded have remedies of their own.
#[test]
fn each_doubt_has_its_remedy() {
    let told = told();
    let place = told.iter().position(|record| record.event == Event::START).expect("it began");
    let mut lost = told.clone();
    lost.truncate(place);
    lost.push(record(Event::LOST, 1_000, 0, [9, START as u64], 0));
    lost.extend(told[place + 9..].iter().copied());
    let one = explained(&lost, 0);
    let sentence = one.sentence(&one.list[0]);
    assert!(sentence.contains("records were lost; larger rings"), "{sentence}");
    // The lane had begun with something when the recording came.
    let joined: Vec<Record> = vec![
        nav(Event::RELEASE, 10),
        record(Event::TIMER, 20, 0, [0, 0], 0),
        nav(Event::COMPLETE, 1_000),
        record(Event::COST, 1_001, 0, [0, 1], 1),
        record(Event::WAKE, 1_002, 0, [0, 0], 0),
        record(Event::SLEEP, 1_003, 0, [0, 0], 0),
    ];
    let all: Vec<&str> = JOBS
        .into_iter()
        .chain(["run.run-start", "dispatch.cost", "dispatch.wake", "dispatch.sleep", "dispatch.timer"])
        .collect();
    let one = asked(&all, one_processor(), &joined);
    let sentence = one.sentence(&one.list[0]);
    assert!(sentence.contains("from before the recording; the recording began when"), "{sentence}");
    assert!(!sentence.contains("larger rings"), "{sentence}");
}

/// The accounts have no figure for what was not recorded, and add up all the same.
#[test]
fn accounts_without_their_events_have_no_figure() {
    let node = |recorded: &[&str], records: &[Record]| {
        let recorded = Some(recorded.iter().map(|name| (*name).to_owned()).collect());
        let mut usage = Usage::new(&Metadata { recorded, ..one_processor() });
        records.iter().for_each(|record| usage.record(*record));
        let report = usage.finish();
        let node = report.nodes[0].clone();
        let known = [
            node.execution_ns,
            node.overhead_ns,
            node.interrupts_ns,
            node.programs_ns,
            node.unobserved_ns,
            node.withheld_ns,
            node.idle_ns,
        ];
        let sum: i64 = known.into_iter().flatten().sum();
        assert_eq!(sum + node.unknown_ns + node.unrecorded_ns, node.available_ns, "{node:#?}");
        assert_eq!(node.error_ns, 0);
        (node, report)
    };
    let of_family = |families: &[u8]| -> Vec<Record> {
        told().into_iter().filter(|record| families.contains(&record.event.family())).collect()
    };
    let run = ["run.run-start", "run.run-end"];
    let (jobs, report) = node(&[&run[..], &JOBS].concat(), &of_family(&[0, 1]));
    assert_eq!((jobs.execution_ns, jobs.overhead_ns, jobs.idle_ns), (Some(790), None, None));
    assert_eq!((jobs.interrupts_ns, jobs.programs_ns, jobs.withheld_ns), (None, None, None));
    assert_eq!((jobs.unrecorded_ns, jobs.costs[0].ns, jobs.costs[0].count), (1_210, None, None));
    assert_eq!(report.operations[0].jobs, Some(1));
    assert_eq!(report.operations[0].overhead, None);
    assert_eq!(
        report.not_recorded,
        ["dispatch.cost", "dispatch.wake", "dispatch.sleep", "kernel.switch", "kernel.irq-enter"]
    );
    let complete: Vec<Record> =
        of_family(&[0, 1]).into_iter().filter(|record| record.event != Event::START).collect();
    let (jobs, report) = node(&[&run[..], &["job.release", "job.complete"]].concat(), &complete);
    assert_eq!((jobs.execution_ns, jobs.idle_ns, jobs.unrecorded_ns), (None, None, 2_000));
    assert_eq!((report.operations[0].jobs, report.operations[0].execution), (None, None));
}

/// Dispatching that was switched on for a part of the run gives bounds.
#[test]
fn dispatching_recorded_in_part_is_said() {
    let mut usage = Usage::new(&one_processor());
    usage.record(run_event(Event::RUN_START, START));
    for event in [Event::WAKE, Event::SLEEP] {
        usage.record(record(event, 0, 0, [0, 0], 0));
    }
    usage.record(cost(1, 1, 0, CostKind::Queue));
    for round in 0..400 {
        let words = [START + round * 10, START + 10_000_000];
        for (event, after) in [(Event::RELEASE, 2), (Event::START, 3), (Event::COMPLETE, 7)] {
            usage.record(job(event, START + round * 10 + after, 0, round as u64, words, 1));
        }
    }
    usage.record(run_event(Event::RUN_END, START + 5_000));
    assert_eq!(usage.finish().nodes[0].dispatching, usage::Dispatching::InPart);
}
