//! What happens at a release while the job before is unfinished.

use super::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use talea_insight::verify::{Rule, Verifier, default_tolerance};
use talea_linux::burn::Burner;
use talea_model::{
    Criticality, Excess, InputBuilder, LaneDispatch, OutputBuilder, OutsideArrivals, Overrun, TriggerBuilder,
};
use talea_policy::strategy::plan_system;
use talea_record::event::Cost;
use talea_record::{CostKind, Metadata, Origin, Record, Sink, SkipReason};
use talea_runtime::JobContext;

fn overloaded(overrun: Overrun) -> System {
    system(Strategy::Rms).task(task("busy", 10, 25).overrun(overrun)).build().expect("a system")
}

#[test]
fn queued_jobs_all_run_in_their_order() {
    let ran = run_until(
        &overloaded(Overrun::Queue),
        Operations::synthetic(),
        options(RtMode::Warn, 0),
        ended("busy", 8),
    );
    let completed: Vec<u64> = ran.of(Event::COMPLETE, "busy").map(|record| record.job().instance).collect();
    assert!(
        !completed.is_empty() && completed.iter().copied().eq(0..completed.len() as u64),
        "{completed:?}"
    );
    assert_eq!(ran.count(Event::SKIP, "busy") + ran.count(Event::ABORT, "busy"), 0);
}

#[test]
fn skip_next_never_has_two_jobs_unfinished() {
    let ran = run_until(
        &overloaded(Overrun::SkipNext),
        Operations::synthetic(),
        options(RtMode::Warn, 0),
        ended("busy", 30),
    );
    // A job takes two periods and a half, and what comes late is released or skipped at once.
    assert!(ran.count(Event::SKIP, "busy") >= 10);
    assert!(ran.of(Event::SKIP, "busy").all(|record| record.arg == SkipReason::Overrun as u16));
    let mut unfinished = 0;
    for record in &ran.records {
        match record.event {
            Event::RELEASE => unfinished += 1,
            Event::COMPLETE => unfinished -= 1,
            _ => {}
        }
        assert!(unfinished <= 1);
    }
    let numbers: Vec<u64> = ran
        .records
        .iter()
        .filter(|record| [Event::RELEASE, Event::SKIP].contains(&record.event))
        .map(|record| record.job().instance)
        .collect();
    assert!(
        numbers.iter().copied().eq(0..numbers.len() as u64),
        "skipped instances are counted: {numbers:?}"
    );
}

/// The overloaded task again, released by values of another task, and from outside behind a guard.
fn overloaded_otherwise(overrun: Overrun) -> [System; 2] {
    let busy = |task: TaskBuilder| {
        task.deadline(Duration::from_millis(60)).wcet(Work::from_millis(25)).overrun(overrun)
    };
    let source = task("source", 10, 1).criticality(Criticality::High).output(OutputBuilder::new("value"));
    let by_values = TaskBuilder::triggered_by("busy", TriggerBuilder::output("source.value"));
    let period = Duration::from_millis(10);
    let outside = TaskBuilder::external("busy", period)
        .arrivals(OutsideArrivals::Periodic { period, jitter: Duration::ZERO });
    let system = |tasks: [TaskBuilder; 2]| {
        let [one, other] = tasks;
        system(Strategy::Criticality).task(one).task(other).build().expect("a system")
    };
    [system([source.clone(), busy(by_values)]), system([source, busy(outside)])]
}

/// How many instances of `busy` are unfinished after each record at most.
fn most_unfinished(ran: &Ran) -> usize {
    let of_busy = |record: &&Record| {
        let ends = [Event::RELEASE, Event::COMPLETE, Event::ABORT];
        ends.contains(&record.event) && ran.name(record.job()) == "busy"
    };
    let mut unfinished = BTreeSet::new();
    let after = |record: &Record| {
        let instance = record.job().instance;
        let changed = match record.event {
            Event::RELEASE => unfinished.insert(instance),
            _ => unfinished.remove(&instance),
        };
        assert!(changed, "it is released once and ends once: {record:?}");
        unfinished.len()
    };
    ran.records.iter().filter(of_busy).map(after).max().unwrap_or(0)
}

/// Two and a half instances come while one runs: also the second of those that are left out finds it unfinished.
#[test]
fn skip_next_never_has_two_jobs_unfinished_that_others_release() {
    for system in overloaded_otherwise(Overrun::SkipNext) {
        let over = ended("busy", 20);
        let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), over);
        assert!(ran.of(Event::SKIP, "busy").all(|record| record.arg == SkipReason::Overrun as u16));
        assert!(ran.count(Event::SKIP, "busy") >= 8);
        assert_eq!(most_unfinished(&ran), 1);
    }
}

#[test]
fn abort_stops_jobs_that_others_release() {
    for system in overloaded_otherwise(Overrun::Abort) {
        let told = Arc::new(AtomicU64::new(0));
        let operations = Operations::synthetic().with("busy", endless(&told));
        let over = move |_: &FinishedJob<'_>| told.load(Ordering::Relaxed) >= 4;
        let ran = run_until(&system, operations, options(RtMode::Warn, 0), over);
        assert!(ran.of(Event::ABORT, "busy").filter(|record| record.arg == 1).count() >= 4);
        assert_eq!(ran.count(Event::COMPLETE, "busy"), 0);
        // The one that has been told to stop is there until it has.
        assert!(most_unfinished(&ran) <= 2);
    }
}

/// Work without end that notes how often it was told to stop.
fn endless(told: &Arc<AtomicU64>) -> impl Fn(&JobContext<'_>) + Send + Sync + 'static {
    let (told, burner) = (Arc::clone(told), Burner::calibrate());
    move |context| {
        burner.burn(Work::from_millis(3_600_000), || context.aborted());
        told.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn abort_stops_the_running_job_and_frees_the_lane() {
    let told = Arc::new(AtomicU64::new(0));
    let operations = Operations::synthetic().with("busy", endless(&told));
    let over = move |_: &FinishedJob<'_>| told.load(Ordering::Relaxed) >= 2;
    let ran = run_until(&overloaded(Overrun::Abort), operations, options(RtMode::Warn, 0), over);
    assert!(ran.of(Event::ABORT, "busy").filter(|record| record.arg == 1).count() >= 2);
    let starts = ran.order_of(Event::START);
    assert!(starts.len() >= 2, "an aborted job makes way for the next: {starts:?}");
}

/// Whoever waits behind a long job is aborted where it waits, and only the last one runs in the end. The long
/// job is over when the third that waited for it is known to be aborted.
#[test]
fn abort_drops_waiting_jobs() {
    let enough = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&enough);
    let blocker = move |context: &JobContext<'_>| {
        while !seen.load(Ordering::Relaxed) && !context.aborted() {
            std::hint::spin_loop();
        }
    };
    let system = system(Strategy::Criticality)
        .task(task("blocker", 10_000_000, 150).importance(1))
        .task(task("victim", 20, 1).overrun(Overrun::Abort))
        .build()
        .expect("a system");
    let operations = Operations::synthetic().with("blocker", blocker).with("victim", |_| ());
    let over = move |job: &FinishedJob<'_>| {
        let is_victim = job.operation == "victim";
        enough.fetch_or(is_victim && job.ending == Ending::Aborted && job.instance >= 2, Ordering::Relaxed);
        is_victim && job.ending == Ending::Completed
    };
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), over);
    let first_start = ran.of(Event::START, "victim").next().expect("it starts once the lane is free");
    assert!(first_start.job().instance >= 3, "{first_start:?}");
    let aborted: Vec<u64> = ran.of(Event::ABORT, "victim").map(|record| record.job().instance).collect();
    assert!((0..first_start.job().instance).all(|instance| aborted.contains(&instance)), "{aborted:?}");
    assert_eq!(first_start.arg, 1, "dead jobs are no load");
}

#[test]
fn an_operation_sees_that_it_is_to_stop_and_its_successor_is_not_released() {
    let told = Arc::new(AtomicU64::new(0));
    let chain = TaskBuilder::new("chain", ms(20))
        .overrun(Overrun::Abort)
        .subtask(talea_model::SubtaskBuilder::new("first").wcet(Work::from_millis(1)))
        .subtask(talea_model::SubtaskBuilder::new("second").wcet(Work::from_millis(1)));
    let system = system(Strategy::Edf).task(chain).build().expect("a system");
    let operations = Operations::synthetic().with("chain.first", endless(&told));
    let over = move |_: &FinishedJob<'_>| told.load(Ordering::Relaxed) >= 2;
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), over);
    assert!(ran.of(Event::ABORT, "chain.first").filter(|record| record.arg == 1).count() >= 2);
    assert_eq!(ran.count(Event::COMPLETE, "chain.first") + ran.count(Event::RELEASE, "chain.second"), 0);
}

#[test]
fn a_full_window_skips_instead_of_blocking() {
    let options = RunOptions { window: Some(4), ..options(RtMode::Warn, 0) };
    let system = system(Strategy::Rms).task(task("busy", 5, 30)).build().expect("a system");
    let (mut skipped, mut completed) = (false, false);
    let over = move |job: &FinishedJob<'_>| {
        skipped |= job.ending == Ending::Skipped;
        completed |= job.ending == Ending::Completed;
        skipped && completed
    };
    let ran = run_until(&system, Operations::synthetic(), options, over);
    assert!(ran.of(Event::SKIP, "busy").all(|record| record.arg == SkipReason::Full as u16));
    let completed: Vec<u64> = ran.of(Event::COMPLETE, "busy").map(|record| record.job().instance).collect();
    assert!(completed.is_sorted(), "{completed:?}");
}

/// Of the arrivals while one waits, none is released.
#[test]
fn merged_instances_leave_no_more_than_one_waiting() {
    let [by_values, outside] = overloaded_otherwise(Overrun::Merge);
    for system in [overloaded(Overrun::Merge), by_values, outside] {
        let over = ended("busy", 20);
        let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), over);
        assert!(ran.of(Event::SKIP, "busy").all(|record| record.arg == SkipReason::Merged as u16));
        assert!(ran.count(Event::SKIP, "busy") >= 8);
        assert!(most_unfinished(&ran) <= 2, "one that runs and one that waits");
    }
}

/// The reader is slower than the writer, and has no period by which it would see the last value anyway.
#[test]
fn what_is_merged_is_taken_by_the_job_that_stands_for_it() {
    const VALUES: u64 = 300;
    let writer = TaskBuilder::new("writer", Duration::from_millis(1))
        .wcet(Work::from_micros(50))
        .criticality(Criticality::High)
        .output(OutputBuilder::new("value"));
    let reader = TaskBuilder::triggered_by("reader", TriggerBuilder::output("writer.value"))
        .overrun(Overrun::Merge)
        .deadline(Duration::from_millis(100))
        .wcet(Work::from_millis(1))
        .input(InputBuilder::new("in").from("writer.value"));
    for separation in [None, Some(Duration::from_millis(7))] {
        let reader = reader.clone();
        let reader = if let Some(separation) = separation { reader.separation(separation) } else { reader };
        let system =
            system(Strategy::Criticality).task(writer.clone()).task(reader).build().expect("a system");
        let (seen, last) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (taking, over) = (Arc::clone(&seen), Arc::clone(&last));
        let burner = Burner::calibrate();
        let operations = Operations::synthetic()
            .with_ports("writer", |ports| {
                let out = ports.output::<u64>("value");
                let mut count = 0;
                move |job: &JobContext<'_>| {
                    // It publishes no more, so what is not taken by then never is.
                    if count < VALUES {
                        count += 1;
                        job.set(out, count);
                    }
                }
            })
            .with_ports("reader", move |ports| {
                let input = ports.input::<u64>("in");
                move |context: &JobContext<'_>| {
                    let newest = *context.get(input).expect("it is released by a value");
                    burner.burn(Work::from_micros(2_500), || context.aborted());
                    taking.fetch_add(1, Ordering::Relaxed);
                    over.store(newest, Ordering::Relaxed);
                }
            });
        let done = Arc::clone(&last);
        let over = move |_: &FinishedJob<'_>| done.load(Ordering::Relaxed) == VALUES;
        let ran = run_until(&system, operations, options(RtMode::Warn, 0), over);
        assert!(ran.of(Event::SKIP, "reader").all(|record| record.arg == SkipReason::Merged as u16));
        let merged = ran.count(Event::SKIP, "reader") as u64;
        assert!(merged >= VALUES / 3, "{merged} of {VALUES} were merged");
        assert_eq!(
            seen.load(Ordering::Relaxed) + merged,
            VALUES,
            "each value has a job, or one that stands for it"
        );
    }
}

/// The program fires five times while the first job runs, or before it begins. A guard that is to drop what is early drops none that another one stands for.
#[test]
fn what_the_program_fires_is_merged_at_the_guard() {
    for excess in [Excess::Defer, Excess::Drop, Excess::Count] {
        let stop = TaskBuilder::external("stop", Duration::from_millis(20))
            .excess(excess)
            .overrun(Overrun::Merge)
            .deadline(Duration::from_millis(100))
            .wcet(Work::from_micros(20));
        let system =
            system(Strategy::Criticality).task(stop).task(task("clock", 5, 1)).build().expect("a system");
        let _alone = alone();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let log = directory.path().join("log");
        let options = RunOptions { duration: None, keep_log: Some(log.clone()), ..options(RtMode::Warn, 0) };
        let (fired, begins) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (seen, clock) = (Arc::clone(&fired), Arc::clone(&begins));
        let operations = Operations::synthetic()
            .with("clock", move |_: &JobContext<'_>| clock.store(true, Ordering::Relaxed))
            .with("stop", move |context: &JobContext<'_>| {
                while !seen.load(Ordering::Relaxed) && !context.aborted() {
                    std::hint::spin_loop();
                }
            });
        let prepared = Executive::prepare(&system, operations, options).expect("prepared");
        let mut trigger = prepared.trigger("stop").expect("it is external");
        let handle = prepared.stop_handle();
        let mut left = 12;
        let prepared = prepared.on_finished(Box::new(move |job: &FinishedJob<'_>| {
            left -= i32::from(job.operation == "clock");
            if left == 0 {
                handle.stop();
            }
        }));
        let fires = std::thread::spawn(move || {
            while !begins.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            (0..5).for_each(|_| _ = trigger.fire().expect("there is room"));
            fired.store(true, Ordering::Relaxed);
        });
        let outcome = prepared.run().expect("it runs");
        fires.join().expect("it ends");
        let records = records_of(&log);
        let ran = Ran { outcome, records, system: system.clone() };
        let of = |reason| ran.of(Event::SKIP, "stop").filter(|record| record.arg == reason as u16).count();
        let (merged, early) = (of(SkipReason::Merged), of(SkipReason::Early));
        let released = ran.count(Event::RELEASE, "stop") + ran.count(Event::HELD, "stop");
        assert_eq!(released + merged + early, 5, "{excess}");
        match excess {
            // One that is not early, since the firing thread stood still meanwhile, waits.
            Excess::Drop => assert!((1..=2).contains(&released), "{merged} were merged and {early} early"),
            Excess::Defer | Excess::Count => {
                assert!(merged >= 3 && early == 0, "{excess}: {merged} and {early}")
            }
        }
        let opened = |release: &Record| {
            let mut openings = ran.of(Event::OPEN, "stop").filter(|open| open.causal == release.causal);
            let at = openings.next().map(|open| open.words[0] as i64);
            at.is_some_and(|at| (release.words[0] as i64..=release.time.as_nanos()).contains(&at))
        };
        assert!(ran.of(Event::RELEASE, "stop").all(opened), "{excess}: each says when its guard opened");
        assert_eq!(wrong(&ran), [""; 0], "{excess}");
    }
}

/// What `trace verify` finds wrong in releases, and in what became of arrivals. Who ran when is the machine's business.
fn wrong(ran: &Ran) -> Vec<String> {
    let plans = plan_system(&ran.system).expect("lanes");
    let begin = ran.records.iter().find(|record| record.event == Event::RUN_START).expect("it begins").time;
    let origin = Origin::Threads { realtime: true };
    let metadata = Metadata::new(&ran.system, &plans, origin, begin);
    let mut verifier =
        Verifier::new(&metadata, &ran.system, &plans, default_tolerance(origin)).expect("the same system");
    ran.records.iter().for_each(|record| verifier.record(*record));
    let rules = [Rule::Release, Rule::Triggers, Rule::Overrun, Rule::Arrivals];
    let found = verifier.finish().violations.into_iter().filter(|found| rules.contains(&found.rule));
    found.map(|found| format!("{:?}: {}", found.job, found.text)).collect()
}

/// A preemptive lane hears of what comes once, also where jobs are aborted before they begin, and chooses then alone: the cost of choosing is told of so many.
#[test]
fn costs_of_a_preemptive_lane_tell_of_all_that_came_to_it() {
    let aborted = |name: &str| task(name, 10, 25).overrun(Overrun::Abort);
    let system = system(Strategy::Edf)
        .lane_dispatch(LaneDispatch::Preemptive)
        .task(aborted("busy").importance(1))
        .task(aborted("waiting"))
        .build()
        .expect("a system");
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("busy", 30));
    let waited = ran.of(Event::ABORT, "waiting").filter(|record| record.arg == 0).count();
    assert!(waited >= 10, "aborted before they began: {waited}");
    let costs = ran.records.iter().filter_map(Cost::read);
    let told: Vec<u32> =
        costs.filter(|cost| cost.kind.known() == Some(CostKind::Queue)).map(|cost| cost.count).collect();
    assert!(told.iter().all(|count| *count > 0), "{told:?}");
    let came: u64 = told.iter().copied().map(u64::from).sum();
    let names = ["busy", "waiting"];
    let of = |event: Event| names.iter().map(|name| ran.count(event, name)).sum::<usize>() as u64;
    // Those that are released when the run is over come to nobody.
    assert!(came + 2 >= of(Event::RELEASE), "{came} of {}", of(Event::RELEASE));
    assert!(came <= of(Event::RELEASE) + of(Event::START), "{came}");
}
