//! The order of jobs inside a lane and between lanes.

use super::posting::{Posted, run_beside};
use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use talea_insight::explain::Kind;
use talea_insight::verify::default_tolerance;
use talea_model::{Criticality, LaneDispatch, Late};
use talea_runtime::Mishaps;

#[test]
fn a_deadline_lane_runs_jobs_released_together_by_deadline() {
    let system = system(Strategy::Edf)
        .late(Late::None)
        .task(task("late", 10_000, 2).deadline(ms(900)))
        .task(task("soon", 10_000, 2).deadline(ms(500)))
        .task(task("middle", 10_000, 2).deadline(ms(700)))
        .build()
        .expect("a system");
    for rt in [RtMode::Off, RtMode::Warn] {
        let run = || run_until(&system, Operations::synthetic(), options(rt, 0), ended("late", 0));
        let ran = run_given(run, Ran::began_together);
        assert_eq!(ran.order_of(Event::START), ["soon#0", "middle#0", "late#0"], "{rt}");
        assert_eq!(ran.order_of(Event::COMPLETE), ["soon#0", "middle#0", "late#0"], "{rt}");
        let depths: Vec<u16> =
            ran.records.iter().filter(|r| r.event == Event::START).map(|r| r.arg).collect();
        assert_eq!(depths, [3, 2, 1], "{rt}");
    }
}

#[test]
fn a_fifo_lane_breaks_ties_by_importance() {
    let system = system(Strategy::Criticality)
        .task(task("plain", 10_000, 1))
        .task(task("weighty", 10_000, 1).importance(5))
        .task(task("weightier", 10_000, 1).importance(9))
        .build()
        .expect("a system");
    let run = || run_until(&system, Operations::synthetic(), options(RtMode::Off, 0), ended("plain", 0));
    let ran = run_given(run, Ran::began_together);
    assert_eq!(ran.order_of(Event::START), ["weightier#0", "weighty#0", "plain#0"]);
}

/// The higher lane's job comes while the lower one's runs, which needs more processor time than that.
#[test]
fn a_higher_lane_preempts_a_lower_one_and_the_records_say_so() {
    let system = system(Strategy::Criticality)
        .task(task("low", 10_000, 60).criticality(Criticality::Low))
        .task(task("high", 10_000, 5).criticality(Criticality::High).phase(ms(20)))
        .build()
        .expect("a system");
    let run = || run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("low", 0));
    let ran = run_given(run, |ran| {
        let arrives_meanwhile = ran.is_before((Event::START, "low"), (Event::RELEASE, "high"))
            && ran.is_before((Event::RELEASE, "high"), (Event::COMPLETE, "low"));
        arrives_meanwhile || !ran.outcome.realtime
    });
    if without_realtime(&ran) {
        return;
    }
    let at = |event, name| ran.position(event, name, 0).unwrap_or_else(|| panic!("no {event:?} of {name}"));
    let sequence = [
        at(Event::START, "low"),
        at(Event::RELEASE, "high"),
        at(Event::PREEMPT, "low"),
        at(Event::START, "high"),
        at(Event::COMPLETE, "high"),
        at(Event::RESUME, "low"),
        at(Event::COMPLETE, "low"),
    ];
    assert!(sequence.is_sorted(), "{sequence:?}");
    let preempt = &ran.records[sequence[2]];
    assert_eq!(ran.name(JobId::unpack(preempt.words[0])), "high");
    assert_eq!(ran.count(Event::PREEMPT, "low"), 1);
}

/// The long job goes on until the short one is over, so it is there to be preempted.
#[test]
fn a_preemptive_lane_lets_the_earlier_deadline_through() {
    let system = system(Strategy::Edf)
        .late(Late::None)
        .lane_dispatch(LaneDispatch::Preemptive)
        .task(task("long", 10_000, 5_000).deadline(ms(9_000)))
        .task(task("short", 10_000, 5).deadline(ms(8_000)).phase(ms(50)))
        .build()
        .expect("a system");
    for rt in [RtMode::Off, RtMode::Warn] {
        let run = || {
            let short_is_over = Arc::new(AtomicBool::new(false));
            let (seen, set) = (Arc::clone(&short_is_over), short_is_over);
            let operations = Operations::synthetic()
                .with("long", move |context| {
                    while !seen.load(Ordering::Relaxed) && !context.aborted() {
                        std::hint::spin_loop();
                    }
                })
                .with("short", move |_| set.store(true, Ordering::Relaxed));
            run_until(&system, operations, options(rt, 0), ended("long", 0))
        };
        let ran = run_given(run, |ran| ran.is_before((Event::START, "long"), (Event::RELEASE, "short")));
        let at = |event, name| ran.position(event, name, 0);
        // Without priorities a job that is outranked may still end before it parks itself.
        let resumed = at(Event::RESUME, "long");
        assert!(resumed.is_some() || !ran.outcome.realtime);
        let sequence = [
            at(Event::START, "long"),
            at(Event::RELEASE, "short"),
            at(Event::PREEMPT, "long"),
            at(Event::START, "short"),
            at(Event::COMPLETE, "short"),
            resumed.or(at(Event::COMPLETE, "long")),
            at(Event::COMPLETE, "long"),
        ];
        assert!(sequence.is_sorted() && sequence[0].is_some(), "{rt}: {sequence:?}");
    }
}

/// The one thread of the lane has a job that has begun: it goes on, and that is held against nobody.
#[test]
fn a_job_that_a_preemptive_lane_has_no_thread_for_waits_and_is_told_of() {
    let system = system(Strategy::Edf)
        .late(Late::None)
        .lane_dispatch(LaneDispatch::Preemptive)
        .task(task("long", 10_000, 50).deadline(ms(9_000)))
        .task(task("short", 10_000, 1).deadline(ms(1)).phase(ms(20)))
        .build()
        .expect("a system");
    for rt in [RtMode::Off, RtMode::Warn] {
        let run = || {
            let (end, last) = mpsc::channel();
            let operations = Operations::synthetic()
                .with("long", |job| {
                    let begin = job.now();
                    while job.now() - begin < ms(50) {}
                })
                .with("short", move |_| end.send(()).expect("heard"));
            let options = RunOptions { slots: 1, ..options(rt, 0) };
            let wait = move |_| last.recv().expect("it is executed");
            run_beside(&system, (operations, options), wait).0
        };
        let until_told = |ran: &Posted| {
            let of = |event| ran.times(event, "short #0").first().copied();
            Some(of(Event::NO_SLOT)? - of(Event::RELEASE)?)
        };
        let is_told_soon = |ran: &Posted| until_told(ran).is_some_and(|time| time < ms(10));
        let ran = (0..ATTEMPTS).map(|_| run()).find(is_told_soon).expect("long begins first");
        // Until it is told, which a busy machine puts off, nothing excuses the long one.
        let tolerance = default_tolerance(ran.origin()) + until_told(&ran).expect("it is told");
        assert!(ran.outcome.mishaps.slot_shortages > 0);
        assert_eq!(ran.violations_beyond(&system, tolerance), Vec::<String>::new());
        let failures = ran.failures_of("short");
        let [short] = &failures.list[..] else { panic!("one job is late") };
        let of_slots = short.totals.iter().filter(|total| total.kind == Kind::NoSlot);
        assert!(of_slots.map(|total| total.sum()).max() > Some(Duration::ZERO), "{:?}", short.totals);
        assert!(!short.totals.iter().any(|total| total.kind == Kind::Behind), "{:?}", short.totals);
    }
}

#[test]
fn a_non_preemptive_lane_finishes_what_it_has_begun() {
    let system = system(Strategy::Edf)
        .task(task("long", 10_000, 60).deadline(ms(900)))
        .task(task("short", 10_000, 5).deadline(ms(200)).phase(ms(20)))
        .build()
        .expect("a system");
    let run = || run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("short", 0));
    let ran = run_given(run, |ran| ran.is_before((Event::START, "long"), (Event::RELEASE, "short")));
    assert_eq!(ran.order_of(Event::COMPLETE), ["long#0", "short#0"]);
    assert_eq!(ran.order_of(Event::PREEMPT), [""; 0]);
}

/// Many short jobs through every kind of lane; [`run`] checks that each lives exactly once.
#[test]
fn no_job_is_lost_or_run_twice() {
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        for strategy in Strategy::ALL {
            let build = |name: &str, period, criticality| {
                let exec =
                    talea_model::Execution::Uniform(Work::from_nanos(20_000), Work::from_nanos(400_000));
                TaskBuilder::new(name, Duration::from_micros(period))
                    .criticality(criticality)
                    .jitter(Duration::from_micros(300))
                    .wcet(Work::from_nanos(400_000))
                    .exec(exec)
            };
            let system = system(*strategy)
                .lane_dispatch(dispatch)
                .task(build("a", 2_000, Criticality::High))
                .task(build("b", 3_000, Criticality::High))
                .task(build("c", 5_000, Criticality::Low))
                .task(build("d", 1_500, Criticality::Low))
                .build()
                .expect("a system");
            let names = ["a", "b", "c", "d"];
            let ran =
                run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), completed(names, 20));
            for name in names {
                let (released, completed) =
                    (ran.count(Event::RELEASE, name), ran.count(Event::COMPLETE, name));
                assert!(20 <= completed && completed <= released, "{strategy} {dispatch} {name}");
            }
            // Where jobs pile up, more of them can be under way than there are threads.
            let mishaps = Mishaps { slot_shortages: 0, ..ran.outcome.mishaps.clone() };
            assert_eq!(mishaps, Mishaps::default());
        }
    }
}
