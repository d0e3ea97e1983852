//! Explanations of random simulated systems: exact, and true.

mod hierarchies;

use crate::replay::{metadata, records, records_with};
use crate::systems::{Scope, dispatch, systems};
use proptest::prelude::*;
use std::collections::HashMap;
use std::convert::Infallible;
use talea_insight::explain::{
    Cause, Explanation, Explanations, Kind, MOST, Order, Outcome, Question, Standing, Subject, Which, explain,
};
use talea_insight::{Accounting, Report, Segment, Segments};
use talea_model::{LaneDispatch, OutputBuilder, Overrun, System, TaskBuilder, TriggerBuilder};
use talea_policy::demand;
use talea_record::{Event, JobId, Metadata, Record, Sink, SkipReason};
use talea_sim::DispatchRecords;
use talea_time::{Duration, Instant, Work};

const UNTIL: i64 = 120;

pub fn explained(metadata: &Metadata, records: &[Record], question: Question) -> Explanations {
    let replay = |sink: &mut dyn Sink| {
        records.iter().for_each(|record| sink.record(*record));
        Ok::<(), Infallible>(())
    };
    explain(metadata, question, replay).expect("memory can be read")
}

pub const EVERYTHING: Question = Question { which: Which::Failed, task: None, limit: usize::MAX / 4 };

/// When each job had a processor, in the order of time.
struct Schedule(HashMap<JobId, Vec<Segment>>);

impl Schedule {
    fn of(metadata: &Metadata, records: &[Record], until: Instant) -> Self {
        let mut of_jobs: HashMap<JobId, Vec<Segment>> = HashMap::new();
        let mut add = |segment: Segment| {
            if let Some(job) = segment.job() {
                of_jobs.entry(job).or_default().push(segment);
            }
        };
        let mut segments = Segments::new(metadata);
        records.iter().for_each(|record| segments.feed(record, &mut add));
        segments.finish(until, &mut add);
        let in_order = |own: &Vec<Segment>| own.is_sorted_by(|one, next| one.end <= next.start);
        assert!(of_jobs.values().all(in_order), "a job has one processor at a time");
        Schedule(of_jobs)
    }

    /// How long the job had a processor between the instants.
    fn service(&self, job: JobId, from: Instant, to: Instant) -> Duration {
        let own = self.0.get(&job).map_or(&[][..], Vec::as_slice);
        let first = own.partition_point(|segment| segment.end <= from);
        let within = own[first..].iter().take_while(|segment| segment.start < to);
        within.map(|segment| segment.end.min(to) - segment.start.max(from)).sum()
    }
}

fn report(metadata: &Metadata, records: &[Record]) -> Report {
    let mut accounting = Accounting::new(metadata, Duration::from_nanos(1_000));
    records.iter().for_each(|record| accounting.record(*record));
    accounting.finish(Instant::from_nanos(UNTIL))
}

/// Checks one explanation against the schedule.
fn check(metadata: &Metadata, schedule: &Schedule, one: &Explanation) {
    let sum: Duration = one.intervals.iter().map(|interval| interval.length()).sum();
    let totals: Duration = one.totals.iter().map(|total| total.sum()).sum();
    if matches!(one.outcome, Outcome::Skipped { .. }) {
        assert_eq!(sum, Duration::ZERO);
        return;
    }
    assert_eq!(sum, one.response(), "{one:#?}");
    assert_eq!(totals, one.response());
    let level = |job: JobId| metadata.lanes[metadata.operations[job.operation.index()].lane].level;
    for interval in &one.intervals {
        let own = one.hops[interval.hop].job;
        let ran = |job| schedule.service(job, interval.from, interval.to);
        match interval.cause {
            Cause::Execution => assert_eq!(ran(own), interval.length()),
            _ if matches!(interval.cause, Cause::Dispatch { .. }) => {}
            _ => assert_eq!(ran(own), Duration::ZERO, "{interval:?} of {own:?}"),
        }
        match interval.cause {
            Cause::Higher { job } => assert!(level(job) < level(own) && ran(job) == interval.length()),
            Cause::Peer { job, order } => {
                assert!(level(job) == level(own) && job != own && ran(job) == interval.length());
                assert_ne!(order, Order::Unknown);
            }
            Cause::Lower { .. }
            | Cause::Idle
            | Cause::Withheld { .. }
            | Cause::WakeUp
            | Cause::Blocked
            | Cause::Program { .. }
            | Cause::Interrupt { .. }
            | Cause::Uncertain
            | Cause::Unheard
            | Cause::Unclear
            | Cause::Unrecorded
            | Cause::Timer
            | Cause::Releasing
            | Cause::Handover => {
                panic!("a simulated lane never waits without a reason: {interval:?} in {one:#?}")
            }
            _ => {}
        }
    }
}

/// With records of dispatching, what is left of the time on a processor is what the synthetic work drew.
fn check_demand(system: &System, one: &Explanation) {
    if !matches!(one.outcome, Outcome::Met | Outcome::Missed) {
        return;
    }
    let execution: Duration =
        one.totals.iter().filter(|total| total.kind == Kind::Execution).map(|total| total.sum()).sum();
    let drawn: Work =
        one.hops.iter().map(|hop| demand::execution(system, hop.job.operation, hop.job.instance)).sum();
    assert_eq!(execution.as_work(), drawn, "{one:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn intervals_add_up_and_are_true(system in systems(Scope::COSTLY), dispatch in dispatch()) {
        let metadata = metadata(&system);
        let records = records_with(&system, &[], UNTIL, dispatch);
        let schedule = Schedule::of(&metadata, &records, Instant::from_nanos(UNTIL));
        let answer = explained(&metadata, &records, EVERYTHING);
        for one in &answer.list {
            check(&metadata, &schedule, one);
            if dispatch == DispatchRecords::Kept {
                check_demand(&system, one);
            }
            if let Some(because) = &one.because {
                check(&metadata, &schedule, because);
                prop_assert_eq!(because.end, one.end, "the one in the way is explained up to the skip");
            }
            prop_assert!(!answer.sentence(one).is_empty());
        }
        let report = report(&metadata, &records);
        let sum = |of: fn(&talea_insight::accounting::TaskReport) -> u64| report.tasks.iter().map(of).sum::<u64>();
        prop_assert_eq!(answer.counts.met, sum(|task| task.met));
        prop_assert_eq!(answer.counts.skipped, sum(|task| task.skipped));
        prop_assert_eq!(answer.counts.aborted, sum(|task| task.aborted));
        prop_assert_eq!(answer.list.len() as u64, answer.counts.failed(), "nothing that failed is left out");
        prop_assert_eq!(answer.counts.failed(), sum(|task| task.missed + task.skipped));
    }

    #[test]
    fn every_instance_and_job_can_be_asked_about(
        system in systems(Scope::COSTLY), dispatch in dispatch(), pick: prop::sample::Index,
    ) {
        let metadata = metadata(&system);
        let records = records_with(&system, &[], UNTIL, dispatch);
        let schedule = Schedule::of(&metadata, &records, Instant::from_nanos(UNTIL));
        let released: Vec<&Record> = records.iter().filter(|record| record.event == Event::RELEASE).collect();
        prop_assume!(!released.is_empty());
        let record = released[pick.index(released.len())];
        let job = record.job();
        let task = metadata.operations[job.operation.index()].task;
        for subject in [Subject::Job(job), Subject::Instance { task, number: job.instance }] {
            let question = Question { which: Which::This(subject), task: None, limit: 1 };
            let answer = explained(&metadata, &records, question);
            prop_assert_eq!(answer.list.len(), 1, "{:?}", subject);
            prop_assert_eq!(answer.list[0].subject, subject);
            check(&metadata, &schedule, &answer.list[0]);
        }
    }

    #[test]
    fn the_worst_of_each_task_is_the_reports_maximum(system in systems(Scope::COSTLY), limit in 1_usize..4) {
        let metadata = metadata(&system);
        let records = records(&system, &[], UNTIL);
        let worst = |limit| explained(&metadata, &records, Question { which: Which::Worst, task: None, limit });
        let answer = worst(MOST);
        let names = |answer: &Explanations| answer.list.iter().map(|one| one.subject).collect::<Vec<_>>();
        let first: Vec<Subject> = names(&answer).into_iter().take(limit).collect();
        prop_assert_eq!(names(&worst(limit)), first, "a limit keeps the slowest");
        let report = report(&metadata, &records);
        for one in &answer.list {
            let Subject::Instance { task, .. } = one.subject else { panic!("an instance") };
            let max = report.tasks[task].response_ns.as_ref().map_or(0, |response| response.max);
            prop_assert!(one.response().as_nanos() >= max);
        }
    }

    /// Records that are lost make an explanation uncertain, never inexact and never a failure.
    #[test]
    fn lost_records_are_said(
        system in systems(Scope::COSTLY), lane in prop::option::of(any::<prop::sample::Index>()), from in 0..UNTIL, length in 1..UNTIL,
    ) {
        let metadata = metadata(&system);
        let all = records(&system, &[], UNTIL);
        // All threads lose them, or that of one lane while all others go on.
        let lane = lane.map(|lane| lane.index(metadata.lanes.len()));
        let is_of_it = |record: &Record| lane.is_none_or(|lane| record.event.is_job() && usize::from(record.source) == lane);
        let is_lost = |record: &Record| is_of_it(record) && (from..from + length).contains(&record.time.as_nanos());
        let count = all.iter().filter(|record| is_lost(record)).count() as u64;
        let since = all.iter().rfind(|record| is_of_it(record) && record.time.as_nanos() < from);
        let since = since.map_or(0, |record| record.time.as_nanos());
        let first = all.iter().find(|record| is_of_it(record) && record.time.as_nanos() >= from + length);
        let Some(first) = first.copied() else { return Ok(()) };
        let mut kept: Vec<Record> = all.iter().filter(|record| !is_lost(record)).copied().collect();
        let (event, cpu) = (Event::LOST, Record::NO_CPU);
        let words = [count, since as u64];
        let place = kept.iter().position(|record| *record == first).expect("it is not lost");
        kept.insert(place, Record { time: first.time, causal: 0, words, event, source: 0, cpu, arg: 0 });
        let answer = explained(&metadata, &kept, EVERYTHING);
        prop_assert_eq!(answer.lost.sum(), count);
        for one in &answer.list {
            for interval in &one.intervals {
                let inside = interval.from.as_nanos() >= since && interval.to <= first.time;
                let fact = matches!(
                    interval.cause.kind(),
                    Kind::Uncertain | Kind::Lost | Kind::Jitter | Kind::Timer | Kind::Releasing | Kind::Message | Kind::Handover
                );
                prop_assert!(!inside || fact || count == 0, "{:?}", interval);
            }
        }
    }
}

/// A started job keeps a non-preemptive lane, and its peers are told so.
#[test]
fn blocking_by_a_peer_is_told_from_being_outranked() {
    let text = r#"
        [system]
        name = "blocking"
        strategy = "edf"
        [[node]]
        name = "one"
        cpus = [0]
        [[task]]
        name = "long"
        period = "100ns"
        [[task.subtask]]
        name = "long"
        wcet = "50ns"
        exec = "50ns"
        [[task]]
        name = "short"
        period = "100ns"
        deadline = "20ns"
        phase = "10ns"
        [[task.subtask]]
        name = "short"
        wcet = "5ns"
        exec = "5ns"
    "#;
    let system =
        talea_model::parse("blocking.toml", text, std::path::Path::new(".")).expect("a system").system;
    assert_eq!(system.lane_dispatch, LaneDispatch::NonPreemptive);
    let metadata = metadata(&system);
    let answer = explained(&metadata, &records(&system, &[], 100), EVERYTHING);
    let [one] = answer.list.as_slice() else { panic!("one miss: {:#?}", answer.list) };
    assert_eq!(one.response(), Duration::from_nanos(45));
    assert_eq!(one.totals[0].kind, Kind::RunsToCompletion);
    assert_eq!(one.totals[0].waiting, Duration::from_nanos(40));
    let sentence = answer.sentence(one);
    assert!(sentence.contains("89 %") && sentence.contains("split long"), "{sentence}");
    assert!(sentence.contains("would have been met"), "{sentence}");
    let json = answer.to_json();
    assert_eq!(json["explanations"][0]["intervals"][0]["blamed"], "long #0");
}

/// A subtask that the one before it left no time is not to blame for what others did to it.
#[test]
fn a_subtask_released_late_is_not_held_against_its_deadline() {
    let text = r#"
        [system]
        name = "late"
        strategy = "criticality"
        lane_dispatch = "preemptive"
        [[node]]
        name = "one"
        cpus = [0]
        [[task]]
        name = "route"
        period = "200ns"
        deadline = "40ns"
        criticality = "low"
        [[task.subtask]]
        name = "first"
        wcet = "50ns"
        exec = "50ns"
        [[task.subtask]]
        name = "second"
        wcet = "6ns"
        exec = "6ns"
        [[task]]
        name = "nav"
        period = "200ns"
        phase = "52ns"
        criticality = "high"
        wcet = "30ns"
        exec = "30ns"
    "#;
    let system = talea_model::parse("late.toml", text, std::path::Path::new(".")).expect("a system").system;
    let metadata = metadata(&system);
    let records = records(&system, &[], 200);
    let sentence = |which| {
        let answer = explained(&metadata, &records, Question { which, task: None, limit: 1 });
        answer.sentence(&answer.list[0])
    };
    let second = records.iter().map(|record| record.job()).find(|job| job.operation.index() == 1);
    let job = sentence(Which::This(Subject::Job(second.expect("it is released"))));
    assert!(job.starts_with("83 % of the response, 30ns, was higher lane: nav"), "{job}");
    let before = "It was released 10ns after its deadline: route #0 as a whole tells of the time up to then.";
    assert!(job.ends_with(before), "{job}");
    // Of the whole, its own 56 ns are more than the 40 ns that the deadline allows.
    let whole = sentence(Which::Failed);
    assert!(whole.contains("own execution") && whole.ends_with("allow it more than 40ns."), "{whole}");
}

/// A value comes every 10 us, a job takes 25, and a guard, if there is one, lets one through every 30. The explanation of what is merged is that of the
/// instance which stands for it, up to then, and tells what became of that.
#[test]
fn what_is_merged_is_explained_by_the_instance_that_stands_for_it() {
    let us = |us: i64| Instant::from_nanos(1_000 * us);
    let source = TaskBuilder::new("source", Duration::from_micros(10)).wcet(Work::from_micros(2));
    let source = source.output(OutputBuilder::new("out")).on("a");
    let by_values = TaskBuilder::triggered_by("task", TriggerBuilder::output("source.out"));
    let guarded = by_values.separation(Duration::from_micros(30));
    // Which waits since then, for what, and when it begins.
    let cases = [
        (TaskBuilder::new("task", Duration::from_micros(10)), 10, Kind::Ahead, 25),
        (guarded, 12, Kind::Guard, 32),
    ];
    for (task, arrival, waits_for, begins) in cases {
        let task = task
            .overrun(Overrun::Merge)
            .deadline(Duration::from_micros(60))
            .wcet(Work::from_micros(25))
            .on("b");
        let system = System::builder("s").node("a", [0]).node("b", [1]);
        let system = system.task(source.clone()).task(task).build().expect("a system");
        let records = records_with(&system, &[], 100_000, DispatchRecords::Dropped);
        let subject = Subject::Instance { task: 1, number: 2 };
        let question = Question { which: Which::This(subject), ..EVERYTHING };
        let answer = explained(&metadata(&system), &records, question);
        let [one] = answer.list.as_slice() else { panic!("it is in the trace") };
        assert_eq!(one.outcome, Outcome::Skipped { reason: SkipReason::Merged });
        assert_eq!((one.arrival, one.end), (us(arrival + 10), us(arrival + 10)));
        let job = JobId { operation: system.operations_of(1)[0].id, instance: 1 };
        let because = one.because.as_deref().expect("one before it waits");
        assert_eq!(
            (because.subject, because.arrival, because.end),
            (Subject::Job(job), us(arrival), one.end)
        );
        let totals: Vec<(Kind, Duration)> =
            because.totals.iter().map(|total| (total.kind, total.sum())).collect();
        assert_eq!(totals, [(waits_for, Duration::from_micros(10))]);
        let (began, end) = (Some(us(begins)), Some(us(begins + 25)));
        assert_eq!(
            one.stands_for_it,
            Some(Standing { task: 1, number: 1, began, end, outcome: Outcome::Met })
        );
        let sentence = answer.sentence(one);
        assert!(
            sentence.starts_with("It was merged with task #1, which had arrived 10.0us before and not begun"),
            "{sentence}"
        );
    }
}
