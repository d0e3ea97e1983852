//! Traces made wrong in one way each.

use super::verify;
use crate::replay::{metadata, records_with};
use std::path::Path;
use talea_insight::verify::{Rule, Verifier, VerifyReport};
use talea_model::System;
use talea_policy::strategy::{Plan, plan_system};
use talea_record::{Event, Record, SkipReason, ThreadRole};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant};

/// A system of one node. `tasks` are name, period, deadline, phase, execution and criticality.
fn system(settings: &str, tasks: &[(&str, i64, i64, i64, i64, &str)]) -> System {
    let mut text =
        format!("[system]\nname = \"mutated\"\n{settings}\n[[node]]\nname = \"one\"\ncpus = [0]\n");
    for (name, period, deadline, phase, exec, rest) in tasks {
        text.push_str(&format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period}ns\"\ndeadline = \"{deadline}ns\"\nphase = \"{phase}ns\"\nwcet = \"{exec}ns\"\n{rest}\n"
        ));
    }
    talea_model::parse("mutated.toml", &text, Path::new(".")).expect("a system").system
}

fn records(system: &System) -> Vec<Record> {
    records_with(system, &[], 100, DispatchRecords::Dropped)
}

fn judged(system: &System, records: &[Record]) -> VerifyReport {
    verify(&metadata(system), records, system, Duration::ZERO)
}

/// The only rules found broken.
fn broken(report: &VerifyReport) -> Vec<Rule> {
    report.rules.iter().filter(|rule| rule.violations > 0).map(|rule| rule.rule).collect()
}

/// Runs `ran` and verifies its trace against `asked`, which has the same lanes.
fn compared(ran: &System, asked: &System) -> VerifyReport {
    verify(&metadata(ran), &records(ran), asked, Duration::ZERO)
}

const PEERS: [(&str, i64, i64, i64, i64, &str); 2] =
    [("long", 100, 90, 0, 30, ""), ("short", 100, 20, 10, 5, "")];

#[test]
fn preemption_in_a_nonpreemptive_lane() {
    let keeps = system("strategy = \"edf\"", &PEERS);
    let preempts = system("strategy = \"edf\"\nlane_dispatch = \"preemptive\"", &PEERS);
    let report = compared(&preempts, &keeps);
    assert_eq!(broken(&report), [Rule::NonPreemption], "{report:#?}");
    assert_eq!(report.violations[0].job.as_deref(), Some("short #0"));
    assert_eq!(report.violations[0].other.as_deref(), Some("long #0"));
    assert_eq!(report.violations[0].at_ns, 10);
    let report = compared(&keeps, &preempts);
    assert_eq!(broken(&report), [Rule::Order], "no preemption where there should be one: {report:#?}");
    assert_eq!((report.violations[0].at_ns, report.violations[0].duration_ns), (10, 20));
    let report = verify(&metadata(&keeps), &records(&keeps), &preempts, Duration::from_nanos(20));
    assert_eq!(report.count(), 0, "the tolerance is what may last");
}

#[test]
fn swapped_starts() {
    let three =
        [("first", 100, 90, 0, 10, ""), ("second", 100, 50, 2, 10, ""), ("third", 100, 70, 3, 10, "")];
    let system = system("strategy = \"edf\"", &three);
    let mut records = records(&system);
    assert_eq!(judged(&system, &records).count(), 0);
    let [second, third] = [1, 2].map(|index| {
        records
            .iter()
            .find(|record| record.event == Event::RELEASE && record.job().operation.index() == index)
            .expect("released")
            .causal
    });
    for record in records.iter_mut().filter(|record| matches!(record.event, Event::START | Event::COMPLETE)) {
        record.causal = match record.causal {
            causal if causal == second => third,
            causal if causal == third => second,
            causal => causal,
        };
    }
    let report = judged(&system, &records);
    // And they end with each other's dates.
    assert_eq!(broken(&report), [Rule::Life, Rule::Order], "{report:#?}");
    assert_eq!(report.violations[0].job.as_deref(), Some("third #0"));
    assert_eq!(report.violations[0].other.as_deref(), Some("second #0"));
}

#[test]
fn the_wrong_key() {
    let tasks =
        [("busy", 200, 200, 0, 10, ""), ("loose", 200, 190, 1, 10, ""), ("tight", 200, 60, 2, 10, "")];
    let edf = system("strategy = \"edf\"", &tasks);
    let mut plans = plan_system(&edf).expect("no anomalies");
    plans[0].lanes[0].discipline = talea_policy::discipline::Discipline::Fifo;
    let report = judged(&edf, &with_plans(&edf, &plans));
    assert_eq!(broken(&report), [Rule::Order], "{report:#?}");
}

fn with_plans(system: &System, plans: &[Plan]) -> Vec<Record> {
    let mut simulation = Simulation::with_plans(system, plans).expect("no anomalies");
    let mut records: Vec<Record> = Vec::new();
    simulation.advance(Instant::from_nanos(100), &mut records);
    simulation.finish(&mut records);
    records
}

#[test]
fn late_work_in_the_wrong_place() {
    let tasks =
        [("busy", 200, 200, 0, 30, ""), ("late", 200, 10, 1, 10, ""), ("timely", 200, 100, 2, 10, "")];
    let last = system("strategy = \"edf\"\nlate = \"last\"", &tasks);
    let first = system("strategy = \"edf\"\nlate = \"none\"", &tasks);
    for (ran, asked) in [(&last, &first), (&first, &last)] {
        let report = compared(ran, asked);
        assert_eq!(broken(&report), [Rule::Order], "{report:#?}");
    }
}

const LEVELS: [(&str, i64, i64, i64, i64, &str); 2] =
    [("high", 50, 50, 5, 10, "criticality = \"high\""), ("low", 100, 100, 0, 30, "criticality = \"low\"")];

#[test]
fn a_lower_lane_first() {
    let system = system("strategy = \"criticality\"", &LEVELS);
    let mut plans = plan_system(&system).expect("no anomalies");
    plans[0].lanes.reverse();
    for (level, lane) in plans[0].lanes.iter_mut().enumerate() {
        lane.level = level;
    }
    let mut records = with_plans(&system, &plans);
    // The lanes are numbered in the order of the plan.
    records
        .iter_mut()
        .filter(|record| record.event.is_job())
        .for_each(|record| record.source = 1 - record.source);
    let report = judged(&system, &records);
    assert_eq!(broken(&report), [Rule::Lanes], "{report:#?}");
    let violation = &report.violations[0];
    assert_eq!((violation.job.as_deref(), violation.other.as_deref()), (Some("low #0"), Some("high #0")));
    assert_eq!((violation.at_ns, violation.duration_ns), (5, 25));
    assert_eq!(report.rules.iter().find(|rule| rule.rule == Rule::Lanes).expect("there").longest_ns, 25);
}

#[test]
fn an_idle_processor() {
    let system = system("strategy = \"criticality\"", &LEVELS);
    let mut records = records(&system);
    let start = records.iter().position(|record| record.event == Event::START).expect("something starts");
    records[start].time = Instant::from_nanos(3);
    records.sort_by_key(|record| record.time);
    let report = judged(&system, &records);
    assert_eq!(broken(&report), [Rule::Idle, Rule::Demand], "{report:#?}");
    assert_eq!(report.violations[0].duration_ns, 3);
}

#[test]
fn early_and_misdated_releases() {
    let system = system("strategy = \"criticality\"", &LEVELS);
    let release = |records: &[Record]| {
        records
            .iter()
            .position(|record| record.event == Event::RELEASE && record.job().operation.index() == 0)
            .expect("released")
    };
    let mut early = records(&system);
    let place = release(&early);
    early[place].time = Instant::from_nanos(4);
    early.sort_by_key(|record| record.time);
    let report = judged(&system, &early);
    assert!(broken(&report).contains(&Rule::Release), "{report:#?}");
    assert!(report.violations.iter().any(|violation| violation.text.contains("1ns early")), "{report:#?}");
    let mut misdated = records(&system);
    let place = release(&misdated);
    misdated[place].words[1] += 1;
    assert_eq!(broken(&judged(&system, &misdated)), [Rule::Life, Rule::Release], "its end has other dates");
}

#[test]
fn overruns_against_the_policy() {
    let tasks = |policy: &'static str| [("slow", 10, 40, 0, 15, policy)];
    let of = |policy| system("strategy = \"edf\"", &tasks(policy));
    let policies = ["overrun = \"queue\"", "overrun = \"skip-next\"", "overrun = \"abort\""];
    for ran in policies {
        for asked in policies {
            let report = compared(&of(ran), &of(asked));
            let expected: &[Rule] = if ran == asked { &[] } else { &[Rule::Overrun] };
            assert_eq!(broken(&report), expected, "{ran} {asked} {report:#?}");
        }
    }
    // A skip for which there is no reason.
    let system = of("overrun = \"skip-next\"");
    let mut records = records(&system);
    let release = records.iter().position(|record| record.event == Event::RELEASE).expect("released");
    records[release].event = Event::SKIP;
    records[release].arg = SkipReason::Overrun as u16;
    let job = records[release].causal;
    records.retain(|record| record.event == Event::SKIP || record.causal != job || !record.event.is_job());
    assert!(broken(&judged(&system, &records)).contains(&Rule::Overrun));
}

const CHAIN: &str = r#"
    [system]
    name = "mutated"
    strategy = "edf"
    [[node]]
    name = "one"
    cpus = [0]
    [[task]]
    name = "chain"
    period = "50ns"
    [[task.subtask]]
    name = "a"
    wcet = "5ns"
    [[task.subtask]]
    name = "b"
    wcet = "5ns"
"#;

#[test]
fn a_successor_before_its_predecessor() {
    let system = talea_model::parse("chain.toml", CHAIN, Path::new(".")).expect("a system").system;
    let mut records = records(&system);
    let place = records
        .iter()
        .position(|record| record.event == Event::RELEASE && record.job().operation.index() == 1)
        .expect("released");
    records[place].time = Instant::from_nanos(4);
    records[place].words[0] = 4;
    records.sort_by_key(|record| record.time);
    let report = judged(&system, &records);
    // And it ends with the dates that it was released with before.
    assert_eq!(broken(&report), [Rule::Life, Rule::Precedence], "{report:#?}");
    assert_eq!(report.violations[0].other.as_deref(), Some("chain.a #0"));
}

#[test]
fn impossible_lives() {
    let system = system("strategy = \"criticality\"", &LEVELS);
    let all = records(&system);
    for missing in [Event::RELEASE, Event::START, Event::RESUME] {
        let mut records = all.clone();
        let place = records.iter().position(|record| record.event == missing).expect("there is one");
        records.remove(place);
        let report = judged(&system, &records);
        assert!(report.of(Rule::Life) > 0, "without {missing:?}: {report:#?}");
    }
    for twice in [Event::RELEASE, Event::START, Event::COMPLETE] {
        let mut records = all.clone();
        let place = records.iter().position(|record| record.event == twice).expect("there is one");
        records.insert(place, records[place]);
        assert!(judged(&system, &records).of(Rule::Life) > 0, "{twice:?} twice");
    }
}

#[test]
fn another_system_is_refused_by_name() {
    let own = system("strategy = \"criticality\"", &LEVELS);
    let mut tasks = LEVELS;
    tasks[1].1 = 200;
    let other = system("strategy = \"criticality\"", &tasks);
    let metadata = metadata(&own);
    let plans = plan_system(&other).expect("no anomalies");
    let error = Verifier::new(&metadata, &other, &plans, Duration::ZERO).expect_err("another period");
    assert_eq!(
        error.to_string(),
        "the trace belongs to another system: the period of task \"low\" is 100ns in the trace and 200ns in the system file"
    );
}

/// What a kernel tells of the run: it gives the processor to a lane's thread 2 ns after the job says that it begins or
/// goes on, and to nobody where no job follows. `resumes` is the thread it gives it to where a job goes on.
fn with_kernel(records: &[Record], resumes: impl Fn(u64) -> u64) -> Vec<Record> {
    let thread = |lane: u16| u64::from(lane) + 1;
    let kernel = |after: &Record, delay: i64, event, words| Record {
        time: after.time + Duration::from_nanos(delay),
        causal: 0,
        words,
        event,
        source: Record::KERNEL,
        cpu: 0,
        arg: 0,
    };
    let mut all = records.to_vec();
    let lanes: std::collections::BTreeSet<u16> =
        records.iter().filter(|record| record.event.is_job()).map(|record| record.source).collect();
    for lane in lanes {
        let met = kernel(&records[0], 0, Event::THREAD, [thread(lane), 0]);
        all.push(Record { source: lane, arg: ThreadRole::Lane as u16, ..met });
    }
    for record in records {
        let follows =
            |other: &Record| other.time == record.time && matches!(other.event, Event::START | Event::RESUME);
        let to = match record.event {
            Event::START => thread(record.source),
            Event::RESUME => resumes(thread(record.source)),
            Event::COMPLETE if !records.iter().any(follows) => 0,
            _ => continue,
        };
        all.push(kernel(record, 2, Event::SWITCH, [to << 32, 0]));
        if record.event == Event::COMPLETE {
            all.push(Record { source: record.source, ..kernel(record, 1, Event::SLEEP, [0, 0]) });
        }
    }
    all.sort_by_key(|record| record.time);
    all
}

/// A job goes on before its thread has the processor, while a third lane waits: what counts is who gets it.
#[test]
fn the_kernel_gives_the_processor_after_the_job_goes_on() {
    let three = [("high", 98, 90, 10, 5, ""), ("mid", 99, 90, 0, 30, ""), ("low", 100, 90, 0, 10, "")];
    let system = system("strategy = \"rms\"", &three);
    let records: Vec<Record> =
        records(&system).into_iter().filter(|record| record.time.as_nanos() < 90).collect();
    assert!(records.iter().any(|record| record.event == Event::RESUME), "one is preempted");
    let tolerance = Duration::from_nanos(4);
    let check = |records: &[Record]| verify(&metadata(&system), records, &system, tolerance);
    let report = check(&with_kernel(&records, |thread| thread));
    assert_eq!(report.count(), 0, "{report:#?}");
    let idles = check(&with_kernel(&records, |_| 0));
    assert_eq!(broken(&idles), [Rule::Idle], "{idles:#?}");
    // From the switch to nobody to the end of the job that has no processor, after which the next one begins.
    assert!(idles.violations[0].duration_ns > 10, "{idles:#?}");
}

/// Interrupts come more often than the tolerance: the processor idles on, and what they take is not counted.
#[test]
fn interrupts_do_not_begin_a_wrong_state_anew() {
    let three = [("high", 98, 90, 10, 5, ""), ("mid", 99, 90, 0, 30, ""), ("low", 100, 90, 0, 10, "")];
    let system = system("strategy = \"rms\"", &three);
    let records: Vec<Record> =
        records(&system).into_iter().filter(|record| record.time.as_nanos() < 90).collect();
    let idles = with_kernel(&records, |_| 0);
    let check = |records: &[Record]| verify(&metadata(&system), records, &system, Duration::from_nanos(4));
    let undisturbed = check(&idles).violations[0].clone();
    let mut disturbed = idles.clone();
    let end = undisturbed.at_ns + undisturbed.duration_ns;
    let mut taken_ns = 0;
    for at in (undisturbed.at_ns + 2..end - 2).step_by(3) {
        for (time, event) in [(at, Event::IRQ_ENTER), (at + 1, Event::IRQ_EXIT)] {
            let (time, source) = (Instant::from_nanos(time), Record::KERNEL);
            disturbed.push(Record { time, causal: 0, words: [1, 0], event, source, cpu: 0, arg: 1 });
        }
        taken_ns += 1;
    }
    disturbed.sort_by_key(|record| record.time);
    let report = check(&disturbed);
    assert_eq!(broken(&report), [Rule::Idle], "{report:#?}");
    let violation = &report.violations[0];
    assert_eq!((violation.at_ns, &violation.job), (undisturbed.at_ns, &undisturbed.job));
    assert_eq!(violation.duration_ns, undisturbed.duration_ns - taken_ns, "{taken_ns} ns of interrupts");
}

/// A successor for which a full guard has no room is released and aborted at once: it was never in its lane, which has nobody to choose.
#[test]
fn a_job_that_a_guard_refuses_has_no_lane_choose_anew() {
    let text = r#"
[system]
name = "refused"
strategy = "muf"
lane_dispatch = "preemptive"
[[node]]
name = "n0"
cpus = [0]
[[node]]
name = "n2"
cpus = [1]
[[task]]
name = "t0"
period = "50ms"
jitter = "25ms"
criticality = 4
[[task.subtask]]
name = "s0"
wcet = "5824us"
node = "n2"
[[task.subtask]]
name = "s1"
wcet = "8336us"
node = "n0"
[[task]]
name = "t1"
trigger = "external"
separation = "5ms"
excess = "count"
arrivals = { periodic = "1ms" }
criticality = 4
sync = "release-guard-idle-one"
[[task.subtask]]
name = "s0"
wcet = "561us"
node = "n2"
[[task.subtask]]
name = "s1"
wcet = "950us"
node = "n0"
"#;
    let system = talea_model::parse("refused.toml", text, ".".as_ref()).expect("it is sound").system;
    let records = records_with(&system, &[], 2_000_000_000, DispatchRecords::Dropped);
    assert!(records.iter().filter(|record| record.event == Event::ABORT).count() > 5, "the guard is full");
    assert_eq!(broken(&judged(&system, &records)), []);
}

/// Each job that waits beside another one should have been merged with it.
#[test]
fn every_instance_that_should_have_been_merged_is_found() {
    let system = |overrun: &str| system("", &[("t", 10, 500, 0, 25, &format!("overrun = \"{overrun}\""))]);
    let report = judged(&system("merge"), &records(&system("queue")));
    let overruns = report.rules.iter().find(|rule| rule.rule == Rule::Overrun).expect("it is judged");
    // Of ten, four have begun by the end; #2, #3 and #4 were released while the one before each of them waited.
    assert_eq!(overruns.violations, 3, "{report:?}");
}

/// A value comes every 10 ns to a task whose guard lets one through each 30 ns, or whose jobs take 25 ns, if it has none.
fn triggered(overrun: &str, guard: &str, wcet: i64) -> System {
    let text = format!(
        "[system]\nname = \"merged\"\nstrategy = \"criticality\"\n[[node]]\nname = \"one\"\ncpus = [0]\n\
         [[task]]\nname = \"source\"\nperiod = \"10ns\"\nwcet = \"2ns\"\ncriticality = \"high\"\nnode = \"one\"\noutputs = [{{ name = \"out\", bytes = 8 }}]\n\
         [[task]]\nname = \"t\"\ntrigger = {{ output = \"source.out\" }}\ndeadline = \"100ns\"\nwcet = \"{wcet}ns\"\nnode = \"one\"\n\
         overrun = \"{overrun}\"\n{guard}\n"
    );
    talea_model::parse("merged.toml", &text, Path::new(".")).expect("a system").system
}

const GUARD: &str = "separation = \"30ns\"";

/// What waits at a guard beside another one should have been merged with it.
#[test]
fn every_instance_that_waits_at_a_guard_beside_another_one_is_found() {
    let merges = triggered("merge", GUARD, 1);
    let right = judged(&merges, &records(&merges));
    assert_eq!(right.count(), 0, "{:?}", right.violations);
    let report = judged(&merges, &records(&triggered("queue", GUARD, 1)));
    // They arrive at 2, 12, ... and are released at 2, 32, 62 and 92. That of 12 waits alone, and six wait at the end.
    let found: Vec<&str> = report.violations.iter().filter_map(|found| found.job.as_deref()).collect();
    assert_eq!(found, ["t #2", "t #3", "t #5", "t #6", "t #7", "t #8", "t #9"], "{:?}", report.violations);
    assert_eq!(broken(&report), [Rule::Overrun]);
}

/// Instances that are numbered as they arrive leave a record each, whatever becomes of them.
#[test]
fn every_instance_of_which_no_record_tells_is_found() {
    for (guard, wcet) in [(GUARD, 1), ("", 25)] {
        let system = triggered("merge", guard, wcet);
        let right = records(&system);
        let merged = |record: &Record| record.event == Event::SKIP;
        let places: Vec<usize> = (0..right.len()).filter(|place| merged(&right[*place])).collect();
        assert!(places.len() > 1, "{guard}");
        // Of the last one there is no later one to tell that it arrived.
        let last = right
            .iter()
            .filter(|record| record.job().operation.index() == 1)
            .map(|record| record.job().instance)
            .max();
        for place in places.into_iter().filter(|place| Some(right[*place].job().instance) != last) {
            let mut records = right.clone();
            let gone = records.remove(place);
            let report = judged(&system, &records);
            assert_eq!(broken(&report), [Rule::Arrivals], "{guard}: {:?}", report.violations);
            assert_eq!(report.violations[0].job, Some(metadata(&system).job_name(gone.job())));
        }
    }
}

/// What is merged is so with one that waits.
#[test]
fn every_instance_that_is_merged_with_nothing_is_found() {
    for (guard, wcet) in [(GUARD, 1), ("", 25)] {
        let system = triggered("merge", guard, wcet);
        let right = records(&system);
        let is_of_task = |record: &&Record| record.event.is_job() && record.job().operation.index() == 1;
        let released: Vec<Record> = right
            .iter()
            .filter(is_of_task)
            .filter(|record| record.event == Event::RELEASE)
            .copied()
            .collect();
        for gone in &released {
            // As if it had been merged when it arrived.
            let mut records = right.clone();
            records.retain(|record| !(record.event.is_job() && record.causal == gone.causal));
            let time = Instant::from_nanos(gone.words[0] as i64);
            let skip = Record { event: Event::SKIP, arg: SkipReason::Merged as u16, time, ..*gone };
            let place = records.partition_point(|record| record.time <= time);
            records.insert(place, skip);
            let report = judged(&system, &records);
            assert!(report.of(Rule::Overrun) > 0, "{guard}: {gone:?}: {:?}", report.rules);
        }
    }
}
