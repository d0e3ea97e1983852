//! Jobs that wait for room in an input, held against their definition, nanosecond by nanosecond: who has the processor follows from periods, room
//! and limits alone.

use super::ns;
use crate::explain::explained;
use crate::replay::{metadata, records_with};
use crate::verify::verify;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::{HashMap, VecDeque};
use talea_insight::explain::{Explanation, Kind, Question, Which};
use talea_model::{
    Communication, Criticality, Full, InputBuilder, LaneDispatch, Late, LinkBuilder, OutputBuilder, Overrun,
    Strategy as By, System, SystemBuilder, Take, TaskBuilder, TriggerBuilder,
};
use talea_record::event::{Complete, Start, Typed, Wait};
use talea_record::{Event, JobId, Record};
use talea_sim::{DispatchRecords, Simulation, SimulationError};
use talea_time::{Duration, Instant, Work};

/// A task that writes a value, by rate: of two the earlier has the shorter period, and a lane of its own.
#[derive(Clone, Debug)]
struct Drawn {
    period: i64,
    wcet: i64,
    phase: i64,
    reads: Vec<Read>,
}

/// All values of a task, of which so many wait, and for how long who writes one more.
#[derive(Clone, Copy, Debug)]
struct Read {
    from: usize,
    capacity: u32,
    /// Nothing if the oldest is dropped.
    limit: Option<i64>,
}

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let read = (0..4usize, 1..4u32, prop::option::weighted(0.8, 1..30i64))
        .prop_map(|(from, capacity, limit)| Read { from, capacity, limit });
    let task = (1..9i64, 1..5i64, 0..9i64, prop::collection::vec(read, 0..3));
    prop::collection::vec(task, 2..5).prop_map(|tasks| {
        let count = tasks.len();
        let mut period = 2;
        let task = |(own, (longer, wcet, phase, mut reads)): (usize, (i64, i64, i64, Vec<Read>))| {
            period += longer;
            reads.retain(|read| read.from != own && read.from < count);
            reads.sort_by_key(|read| read.from);
            reads.dedup_by_key(|read| read.from);
            Drawn { period, wcet, phase, reads }
        };
        tasks.into_iter().enumerate().map(task).collect()
    })
}

fn name(task: usize) -> String {
    format!("t{task}")
}

fn built(tasks: &[Drawn]) -> System {
    described(System::builder("waits").strategy(By::Rms).node("n", [0]), tasks, |_| {
        ("n", Communication::Implicit)
    })
}

/// The tasks, each on the node and with the communication that `set` says.
fn described(
    builder: SystemBuilder,
    tasks: &[Drawn],
    set: impl Fn(usize) -> (&'static str, Communication),
) -> System {
    let builder = builder.late(Late::None).lane_dispatch(LaneDispatch::NonPreemptive);
    let of_task = |(index, task): (usize, &Drawn)| {
        let own = TaskBuilder::new(name(index), ns(task.period))
            .phase(ns(task.phase))
            .wcet(Work::from_nanos(task.wcet))
            .output(OutputBuilder::new("v"))
            .criticality(if index == 0 { Criticality::Low } else { Criticality::VeryLow })
            .communication(set(index).1)
            .on(set(index).0);
        task.reads.iter().fold(own, |own, read| {
            let full = read.limit.map_or(Full::Oldest, |limit| Full::Block { limit: ns(limit) });
            let input = InputBuilder::new(format!("i{}", read.from)).from(format!("{}.v", name(read.from)));
            own.input(input.take(Take::Each { capacity: read.capacity, full }))
        })
    };
    let all = tasks.iter().enumerate().map(of_task).fold(builder, |builder, task| builder.task(task));
    all.build().expect("sound")
}

/// What happens to a job: task, instance, and the instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happened {
    Starts(usize, u64, i64),
    /// For room in an input of this task, until then.
    Waits(usize, u64, i64, usize, i64),
    Completes(usize, u64, i64),
}

/// The first job of a lane.
#[derive(Clone, Copy, Debug)]
struct First {
    left: i64,
    has_begun: bool,
    /// The last reader for which it has waited, by its place.
    waited_for: Option<usize>,
    /// Since when it waits, and until when at most.
    waits: Option<(i64, i64)>,
}

/// An input of a task, by what writes it in the order of the file.
#[derive(Clone, Copy, Debug)]
struct Input {
    reader: usize,
    capacity: u32,
    limit: Option<i64>,
    /// Values that wait.
    has: u32,
}

/// How long jobs have waited, by task and instance.
type Waited = HashMap<(usize, u64), i64>;

/// The definition: one processor, a lane for each task, and the earlier one goes first.
fn defined(tasks: &[Drawn], end: i64) -> (Vec<Happened>, Waited) {
    let (mut told, mut waited) = (Vec::new(), Waited::new());
    let mut lanes: Vec<Lane> = vec![VecDeque::new(); tasks.len()];
    let mut readers: Vec<Vec<Input>> = vec![Vec::new(); tasks.len()];
    for (reader, task) in tasks.iter().enumerate() {
        for Read { from, capacity, limit } in &task.reads {
            readers[*from].push(Input { reader, capacity: *capacity, limit: *limit, has: 0 });
        }
    }
    let mut running = None;
    for now in 0..end {
        // Whoever has done its work ends before others come.
        if let Some(own) =
            running.filter(|own: &usize| lanes[*own].front().is_some_and(|(_, one)| one.left == 0))
        {
            end_work(&mut lanes, &mut readers, own, now, &mut told);
        }
        for (lane, task) in tasks.iter().enumerate() {
            let since = now - task.phase;
            if since >= 0 && since % task.period == 0 {
                let first = First { left: task.wcet, has_begun: false, waited_for: None, waits: None };
                lanes[lane].push_back(((since / task.period) as u64, first));
            }
        }
        // All that takes no time.
        running = loop {
            wake(&mut lanes, &readers, now, &mut waited);
            let Some(own) = lanes.iter().position(is_ready) else { break None };
            let (instance, first) = lanes[own].front_mut().expect("it is ready");
            if !std::mem::replace(&mut first.has_begun, true) {
                told.push(Happened::Starts(own, *instance, now));
                let own_inputs = readers.iter_mut().flatten().filter(|input| input.reader == own);
                own_inputs.for_each(|input| input.has = 0);
            } else if first.left == 0 {
                end_work(&mut lanes, &mut readers, own, now, &mut told);
            } else if !wake(&mut lanes, &readers, now, &mut waited) {
                break Some(own);
            }
        };
        if let Some(own) = running {
            lanes[own].front_mut().expect("it runs").1.left -= 1;
        }
    }
    for (own, lane) in lanes.iter().enumerate() {
        if let Some((instance, First { waits: Some((since, _)), .. })) = lane.front() {
            *waited.entry((own, *instance)).or_default() += end - since;
        }
    }
    (told, waited)
}

type Lane = VecDeque<(u64, First)>;

fn is_ready(lane: &Lane) -> bool {
    lane.front().is_some_and(|(_, one)| one.waits.is_none())
}

/// The first job of the lane has done its work: it waits for the next reader without room, or completes.
fn end_work(lanes: &mut [Lane], inputs: &mut [Vec<Input>], own: usize, now: i64, told: &mut Vec<Happened>) {
    let (instance, first) = lanes[own].front_mut().expect("it has done its work");
    let is_full = |(place, input): &(usize, &Input)| {
        input.limit.is_some()
            && input.has == input.capacity
            && first.waited_for.is_none_or(|last| *place > last)
    };
    if let Some((place, input)) = inputs[own].iter().enumerate().find(is_full) {
        let until = now + input.limit.expect("it is waited for");
        (first.waited_for, first.waits) = (Some(place), Some((now, until)));
        told.push(Happened::Waits(own, *instance, now, input.reader, until));
        return;
    }
    told.push(Happened::Completes(own, *instance, now));
    lanes[own].pop_front();
    inputs[own].iter_mut().for_each(|input| input.has = (input.has + 1).min(input.capacity));
}

/// Those wait no longer that have room, or whose limit is over. Returns whether there are any.
fn wake(lanes: &mut [Lane], inputs: &[Vec<Input>], now: i64, waited: &mut Waited) -> bool {
    let mut woken = false;
    for (own, (lane, inputs)) in lanes.iter_mut().zip(inputs).enumerate() {
        let Some((instance, first)) = lane.front_mut() else { continue };
        let Some(((since, until), place)) = first.waits.zip(first.waited_for) else { continue };
        if until <= now || inputs[place].has < inputs[place].capacity {
            *waited.entry((own, *instance)).or_default() += now - since;
            first.waits = None;
            woken = true;
        }
    }
    woken
}

fn happened(system: &System, records: &[Record]) -> Vec<Happened> {
    let at = |record: &Record| record.time.as_nanos();
    let of = |job: JobId| (job.operation.index(), job.instance);
    let told = records.iter().filter_map(|record| match record.typed() {
        Typed::Start(Start { job, .. }) => Some(Happened::Starts(of(job).0, of(job).1, at(record))),
        Typed::Wait(Wait { job, input, until, .. }) => {
            let reader = system.inputs()[input as usize].operation.index();
            Some(Happened::Waits(of(job).0, of(job).1, at(record), reader, until.as_nanos()))
        }
        Typed::Complete(Complete { job, .. }) => Some(Happened::Completes(of(job).0, of(job).1, at(record))),
        _ => None,
    });
    told.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn jobs_wait_and_go_on_as_the_definition_says(tasks in drawn(), slices in prop::collection::vec(1..150i64, 0..4)) {
        const END: i64 = 150;
        let system = built(&tasks);
        let mut slices = slices;
        slices.sort_unstable();
        let records = records_with(&system, &slices, END, DispatchRecords::Kept);
        let mut simulated = happened(&system, &records);
        // What happens at the very end is not in the definition.
        simulated.retain(|one| {
            let (Happened::Starts(.., at) | Happened::Waits(_, _, at, ..) | Happened::Completes(.., at)) = one;
            *at < END
        });
        let (mut defined, waited) = defined(&tasks, END);
        defined.sort_unstable();
        simulated.sort_unstable();
        prop_assert_eq!(&simulated, &defined);

        let metadata = metadata(&system);
        let report = verify(&metadata, &records, &system, Duration::ZERO);
        prop_assert_eq!(report.count(), 0, "{:#?}", report);
        let all = explained(&metadata, &records, Question { which: Which::Worst, task: None, limit: usize::MAX / 4 });
        for one in &all.list {
            prop_assert_eq!(sum_of(one, Kind::Room), ns(waited.get(&of_job(one)).copied().unwrap_or(0)), "{:#?}", one);
            prop_assert_eq!(sum_of(one, Kind::Idle) + sum_of(one, Kind::Unclear) + sum_of(one, Kind::Lower), Duration::ZERO, "{:#?}", one);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Completions of one instant act on each other before anybody is switched: on several processors, and where others are released by values.
    #[test]
    fn jobs_wait_beside_others_that_they_release(
        tasks in drawn(),
        triggered in prop::collection::vec((0..2usize, prop::option::weighted(0.3, 1..6i64), 1..3i64), 1..3),
        apart in prop::collection::vec(prop::bool::weighted(0.2), 4),
        lets in prop::collection::vec(any::<bool>(), 4),
        delay in 0..4i64,
        processors in 1..3u16,
        strategy in select(&[By::Rms, By::Criticality][..]),
    ) {
        let builder = System::builder("released").strategy(strategy).node("n", 0..processors).node("m", [2]);
        let builder = builder.link(LinkBuilder::others().delay(ns(delay)));
        let node = |index: usize| if apart[index] { "m" } else { "n" };
        let builder = triggered.iter().enumerate().fold(builder, |builder, (number, (by, separation, wcet))| {
            let by = by % tasks.len();
            let trigger = TriggerBuilder::output(format!("{}.v", name(by)));
            let task = TaskBuilder::triggered_by(format!("by{number}"), trigger);
            let task = separation.map_or(task.clone(), |separation| task.separation(ns(separation)));
            let criticality = [Criticality::Medium, Criticality::Low][number];
            builder.task(task.deadline(ns(20)).wcet(Work::from_nanos(*wcet)).criticality(criticality).on(node(by)))
        });
        // Nobody waits for readers, nor is released, with values that are held until the end of a period.
        let is_source = |index: usize| {
            let waits = |read: &Read| read.from == index && read.limit.is_some();
            triggered.iter().any(|(by, ..)| by % tasks.len() == index)
                || tasks.iter().flat_map(|task| &task.reads).any(waits)
        };
        let communication = |index: usize| match lets[index] && !is_source(index) {
            true => Communication::Let,
            false => Communication::Implicit,
        };
        let system = described(builder, &tasks, |index| (node(index), communication(index)));
        let slices: Vec<i64> = (1..150).collect();
        let records = records_with(&system, &slices, 150, DispatchRecords::Kept);
        let report = verify(&metadata(&system), &records, &system, Duration::ZERO);
        prop_assert_eq!(report.count(), 0, "{:#?}", report);
    }
}

fn of_job(one: &Explanation) -> (usize, u64) {
    let job = one.hops.last().expect("it has a job").job;
    (job.operation.index(), job.instance)
}

fn sum_of(one: &Explanation, kind: Kind) -> Duration {
    one.totals.iter().filter(|total| total.kind == kind).map(|total| total.sum()).sum()
}

/// Two tasks of one lane: the first waits for the reader, which has not come yet, and the second for the first.
fn of_one_lane(limit: i64) -> SystemBuilder {
    let full = Full::Block { limit: ns(limit) };
    let input = InputBuilder::new("v").from("first.v").take(Take::Each { capacity: 1, full });
    System::builder("lane")
        .strategy(By::Rms)
        .node("n", [0])
        .task(TaskBuilder::new("first", ns(20)).wcet(Work::from_nanos(2)).output(OutputBuilder::new("v")))
        .task(TaskBuilder::new("second", ns(20)).wcet(Work::from_nanos(3)))
        .task(TaskBuilder::new("reader", ns(100)).phase(ns(90)).wcet(Work::from_nanos(1)).input(input))
}

#[test]
fn whoever_waits_keeps_its_lane_and_the_others_are_told_so() {
    let system = of_one_lane(7).build().expect("sound");
    let records = records_with(&system, &[], 40, DispatchRecords::Kept);
    let explanations =
        explained(&metadata(&system), &records, Question { which: Which::Worst, task: Some(1), limit: 1 });
    let one = &explanations.list[0];
    assert_eq!(one.response(), ns(2 + 7 + 3), "{one:#?}");
    let by_first = sum_of(one, Kind::Ahead) + sum_of(one, Kind::RunsToCompletion);
    assert_eq!((by_first, sum_of(one, Kind::Execution)), (ns(2 + 7), ns(3)), "{one:#?}");
}

/// It is aborted by its next instance, and its lane is free again.
#[test]
fn a_job_that_waits_can_be_aborted() {
    let mut builder = of_one_lane(1_000);
    builder = builder.task(
        TaskBuilder::new("short", ns(5))
            .wcet(Work::from_nanos(1))
            .overrun(Overrun::Abort)
            .output(OutputBuilder::new("v")),
    );
    let full = Full::Block { limit: ns(1_000) };
    let late = TaskBuilder::new("late", ns(500)).phase(ns(60)).wcet(Work::from_nanos(1));
    let input = InputBuilder::new("v").from("short.v").take(Take::Each { capacity: 1, full });
    let system = builder.task(late.input(input)).build().expect("sound");
    let slices: Vec<i64> = (1..100).collect();
    let records = records_with(&system, &slices, 100, DispatchRecords::Kept);
    let short = |record: &&Record| system.operations()[record.job().operation.index()].name == "short";
    let count = |event: Event| records.iter().filter(|record| record.event == event).filter(short).count();
    // The first completes, and each of the others waits and is aborted by the next one, but for the one that the reader lets go on at 60 and the last.
    assert_eq!((count(Event::WAIT), count(Event::ABORT)), (19, 17));
    assert_eq!(verify(&metadata(&system), &records, &system, Duration::ZERO).count(), 0);
}

#[test]
fn jobs_of_preemptive_lanes_that_wait_are_not_simulated() {
    let system = of_one_lane(7).lane_dispatch(LaneDispatch::Preemptive).build().expect("sound");
    let refused = Simulation::new(&system).err();
    assert_eq!(refused, Some(SimulationError::Blocking("reader.v".into())));
    let text = refused.expect("it is").to_string();
    let word = LaneDispatch::NonPreemptive.keyword();
    assert!(text.contains(&format!("lane_dispatch = \"{word}\"")), "{text}");
}

/// What a job has written before the run ends, and waits with, is published no more.
#[test]
fn a_run_can_end_while_jobs_wait() {
    let system = of_one_lane(50).build().expect("sound");
    let records = records_with(&system, &[], 22, DispatchRecords::Kept);
    let count = |event: Event| records.iter().filter(|record| record.event == event).count();
    assert_eq!((count(Event::WAIT), count(Event::RESUME), count(Event::PUBLISH)), (1, 0, 1), "{records:#?}");
    assert_eq!(
        records.last().map(|record| (record.event, record.time)),
        Some((Event::RUN_END, Instant::from_nanos(22)))
    );
}
