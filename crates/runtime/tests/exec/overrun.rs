//! What happens at a release while the job before is unfinished.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_model::Overrun;
use talea_trace::SkipReason;

fn overloaded(overrun: Overrun) -> System {
    system(Strategy::Rms).task(task("busy", 10, 25).overrun(overrun)).build().expect("a system")
}

#[test]
fn queued_jobs_all_run_in_their_order() {
    let ran = run_until(&overloaded(Overrun::Queue), Operations::synthetic(), RtMode::Warn, "busy", 8);
    let completed: Vec<u64> = ran.of(Event::COMPLETE, "busy").map(|record| record.job().instance).collect();
    assert!(
        !completed.is_empty() && completed.iter().copied().eq(0..completed.len() as u64),
        "{completed:?}"
    );
    assert_eq!(ran.count(Event::SKIP, "busy") + ran.count(Event::ABORT, "busy"), 0);
}

#[test]
fn skip_next_never_has_two_jobs_unfinished() {
    let ran = run_until(&overloaded(Overrun::SkipNext), Operations::synthetic(), RtMode::Warn, "busy", 30);
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

#[test]
fn abort_stops_the_running_job_and_frees_the_lane() {
    let ran = run_until(&overloaded(Overrun::Abort), Operations::synthetic(), RtMode::Warn, "busy", 12);
    assert!(ran.of(Event::ABORT, "busy").any(|record| record.arg == 1));
    let starts = ran.order_of(Event::START);
    assert!(starts.len() >= 2, "an aborted job makes way for the next: {starts:?}");
}

/// Whoever waits behind a long job is aborted where it waits, and only the last one runs in the end.
#[test]
fn abort_drops_waiting_jobs() {
    let blocker = |context: &talea_runtime::JobContext<'_>| {
        while context.now() - context.release() < ms(150) && !context.aborted() {
            std::hint::spin_loop();
        }
    };
    let system = system(Strategy::Criticality)
        .task(task("blocker", 10_000, 150).importance(1))
        .task(task("victim", 20, 1).overrun(Overrun::Abort))
        .build()
        .expect("a system");
    let ran = run(&system, Operations::synthetic().with("blocker", blocker), options(RtMode::Warn, 600));
    let first_start = ran.of(Event::START, "victim").next().expect("it starts once the lane is free");
    assert!(first_start.job().instance >= 1, "{first_start:?}");
    let aborted: Vec<u64> = ran.of(Event::ABORT, "victim").map(|record| record.job().instance).collect();
    assert!((0..first_start.job().instance).all(|instance| aborted.contains(&instance)), "{aborted:?}");
    assert_eq!(first_start.arg, 1, "dead jobs are no load");
}

#[test]
fn an_operation_sees_that_it_is_to_stop_and_its_successor_is_not_released() {
    let told = Arc::new(AtomicU64::new(0));
    let patient = {
        let told = Arc::clone(&told);
        move |context: &talea_runtime::JobContext<'_>| {
            while !context.aborted() {
                std::hint::spin_loop();
            }
            told.fetch_add(1, Ordering::Relaxed);
        }
    };
    let chain = TaskBuilder::new("chain", ms(20))
        .overrun(Overrun::Abort)
        .subtask(talea_model::SubtaskBuilder::new("first", Work::from_millis(1)))
        .subtask(talea_model::SubtaskBuilder::new("second", Work::from_millis(1)));
    let system = system(Strategy::Edf).task(chain).build().expect("a system");
    let operations = Operations::synthetic().with("chain.first", patient);
    let ran = run_until(&system, operations, RtMode::Warn, "chain.first", 4);
    assert!(told.load(Ordering::Relaxed) >= 1);
    assert!(ran.count(Event::ABORT, "chain.first") >= 1);
    assert_eq!(ran.count(Event::COMPLETE, "chain.first") + ran.count(Event::RELEASE, "chain.second"), 0);
}

#[test]
fn a_full_window_skips_instead_of_blocking() {
    let options = RunOptions { window: Some(4), ..options(RtMode::Warn, 300) };
    let system = system(Strategy::Rms).task(task("busy", 5, 30)).build().expect("a system");
    let ran = run(&system, Operations::synthetic(), options);
    assert!(ran.of(Event::SKIP, "busy").any(|record| record.arg == SkipReason::Full as u16));
    let completed: Vec<u64> = ran.of(Event::COMPLETE, "busy").map(|record| record.job().instance).collect();
    assert!(completed.is_sorted() && !completed.is_empty(), "{completed:?}");
}
