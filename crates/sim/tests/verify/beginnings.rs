//! Recordings that come to a run under way: nothing is asserted of what they did not see.

use super::verify;
use crate::replay::{metadata, records_with};
use std::path::Path;
use talea_insight::Usage;
use talea_insight::verify::Rule;
use talea_model::System;
use talea_record::{Event, Metadata, Record, Sink, ThreadRole};
use talea_sim::DispatchRecords;
use talea_time::{Duration, Instant};

fn system(cpus: &str, tasks: &str) -> System {
    let text = format!(
        "[system]\nname = \"joined\"\nstrategy = \"criticality\"\n[[node]]\nname = \"one\"\ncpus = {cpus}\n{tasks}"
    );
    talea_model::parse("joined.toml", &text, Path::new(".")).expect("a system").system
}

fn task(name: &str, period: i64, deadline: i64, phase: i64, wcet: i64, criticality: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\nperiod = \"{period}ns\"\ndeadline = \"{deadline}ns\"\nphase = \"{phase}ns\"\n\
         wcet = \"{wcet}ns\"\ncriticality = \"{criticality}\"\n"
    )
}

/// What the run leaves from `from` on.
fn joined(system: &System, from: i64) -> Vec<Record> {
    let all = records_with(system, &[], 200, DispatchRecords::Dropped);
    all.into_iter().filter(|record| record.time.as_nanos() >= from).collect()
}

fn sort(records: &mut [Record]) {
    records.sort_by_key(|record| record.time);
}

fn lane(metadata: &Metadata, operation: usize) -> u16 {
    metadata.operations[operation].lane as u16
}

fn of_kernel(time: i64, cpu: u16, event: Event, words: [u64; 2]) -> Record {
    let time = Instant::from_nanos(time);
    Record { time, causal: 0, words, event, source: Record::KERNEL, cpu, arg: 0 }
}

/// A job whose release may be from before the recording takes the processor, a little after the lane above went to sleep.
/// What waits meanwhile does not wait for an idle processor.
#[test]
fn a_job_that_is_not_judged_takes_the_processor() {
    let tasks = [
        task("high", 50, 50, 0, 10, "high"),
        task("slow", 100, 40, 0, 20, "low"),
        task("fast", 50, 50, 0, 5, "low"),
    ];
    let system = system("[0]", &tasks.concat());
    let metadata = metadata(&system);
    let mut records = joined(&system, 50);
    let is_start = |record: &Record, operation: usize, instance: u64| {
        let job = record.job();
        record.event == Event::START && (job.operation.index(), job.instance) == (operation, instance)
    };
    let start = records.iter().position(|record| is_start(record, 1, 1)).expect("slow #1 runs first");
    assert!(records[start + 1..].iter().any(|record| is_start(record, 2, 2)), "fast #2 waits for it");
    let before = records[start].time;
    records[start].time = before + Duration::from_nanos(3);
    let sleep = of_kernel(before.as_nanos() + 1, 0, Event::SLEEP, [0, 0]);
    records.push(Record { source: lane(&metadata, 0), ..sleep });
    sort(&mut records);
    let report = verify(&metadata, &records, &system, Duration::from_nanos(5));
    assert_eq!(report.count(), 0, "{report:#?}");
    assert!(report.rules.iter().any(|rule| rule.rule == Rule::Idle && rule.cases > 0), "{report:#?}");
}

/// The kernel tells of one processor before it tells of the other, which need not be idle until then.
#[test]
fn a_processor_is_unknown_until_the_kernel_tells_of_it() {
    let system = system("[0, 1]", &task("only", 100, 100, 20, 10, "high"));
    let metadata = metadata(&system);
    let mut records = joined(&system, 0);
    records.retain(|record| record.time.as_nanos() < 100);
    let cpu = records.iter().find(|record| record.event == Event::START).expect("it runs").cpu;
    for record in records.iter_mut().filter(|record| matches!(record.event, Event::START | Event::COMPLETE)) {
        record.time += Duration::from_nanos(30);
    }
    let met = of_kernel(0, 0, Event::THREAD, [7, 0]);
    records.push(Record { source: 0, arg: ThreadRole::Lane as u16, ..met });
    let with_first_switches = |cpus: &[(u16, u64)]| {
        let mut records = records.clone();
        let switches = cpus.iter().map(|(cpu, to)| of_kernel(10, *cpu, Event::SWITCH, [to << 32, 0]));
        records.extend(switches);
        records.push(of_kernel(50, cpu, Event::SWITCH, [7 << 32, 0]));
        sort(&mut records);
        verify(&metadata, &records, &system, Duration::from_nanos(5))
    };
    let (other, program) = (1 - cpu, 99);
    let report = with_first_switches(&[(other, program)]);
    assert_eq!(report.count(), 0, "{report:#?}");
    let report = with_first_switches(&[(other, program), (cpu, program)]);
    assert_eq!(report.count(), 0, "programs have both: {report:#?}");
    let report = with_first_switches(&[(other, program), (cpu, 0)]);
    assert_eq!(report.of(Rule::Idle), 1, "one is idle and known to be: {report:#?}");
}

/// A job of before the recording has the processor; without the kernel's records only its end says so.
#[test]
fn what_ran_before_the_recording_is_not_idleness() {
    let tasks = [task("high", 100, 100, 0, 30, "high"), task("low", 100, 100, 10, 5, "low")];
    let system = system("[0]", &tasks.concat());
    let metadata = metadata(&system);
    let usage = |records: &[Record]| {
        let mut usage = Usage::new(&metadata);
        records.iter().for_each(|record| usage.record(*record));
        usage.finish().nodes[0].clone()
    };
    let records: Vec<Record> =
        joined(&system, 5).into_iter().take_while(|record| record.time.as_nanos() <= 35).collect();
    // From the release of low to the end of high, and then to the end of low.
    let node = usage(&records);
    assert_eq!((node.unknown_ns, node.idle_ns), (20, Some(0)), "{node:#?}");
    let whole: Vec<Record> =
        joined(&system, 0).into_iter().take_while(|record| record.time.as_nanos() <= 35).collect();
    let node = usage(&whole);
    assert_eq!((node.unknown_ns, node.idle_ns), (0, Some(0)), "{node:#?}");
}
