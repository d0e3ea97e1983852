//! Ends before the planned end.

use super::*;
use std::sync::Barrier;
use talea_runtime::{JobContext, Stopped};

#[test]
fn a_stop_ends_an_endless_run_with_the_results_so_far() {
    let _alone = alone();
    let system = system(Strategy::Edf).task(task("job", 5, 1)).build().expect("a system");
    let options = RunOptions { duration: None, ..options(RtMode::Warn, 0) };
    let barrier = std::sync::Arc::new(Barrier::new(2));
    let operation = {
        let barrier = std::sync::Arc::clone(&barrier);
        move |context: &JobContext<'_>| {
            if context.instance() == 3 {
                barrier.wait();
            }
        }
    };
    let prepared = Executive::prepare(&system, Operations::synthetic().with("job", operation), options)
        .expect("prepared");
    let stop = prepared.stop_handle();
    let stopper = std::thread::spawn(move || {
        barrier.wait();
        stop.stop();
        stop.stop();
    });
    let outcome = prepared.run().expect("run");
    stopper.join().unwrap();
    assert_eq!(outcome.stopped, Stopped::Interrupted);
}

#[test]
fn a_stop_before_the_start_and_a_drop_without_a_run_leave_no_thread_waiting() {
    let _alone = alone();
    let system = system(Strategy::Edf)
        .lane_dispatch(talea_model::LaneDispatch::Preemptive)
        .task(task("job", 5, 1))
        .build()
        .expect("a system");
    let prepare = || {
        let far = RunOptions {
            start: talea_runtime::Start::After(Duration::from_secs(3600)),
            ..options(RtMode::Warn, 10)
        };
        Executive::prepare(&system, Operations::synthetic(), far).expect("prepared")
    };
    drop(prepare());
    let prepared = prepare();
    prepared.stop_handle().stop();
    lasted_no_time(prepared.run().expect("run"));
    // The stop comes before or after the threads have been told the start; both must do.
    let prepared = prepare();
    let stop = prepared.stop_handle();
    let stopper = std::thread::spawn(move || stop.stop());
    lasted_no_time(prepared.run().expect("run"));
    stopper.join().expect("it stops");
}

/// Whoever finds a run that is being prepared may stop it.
#[test]
fn a_stop_before_the_run_is_prepared_ends_it() {
    let _alone = alone();
    let system = system(Strategy::Edf).task(task("job", 5, 1)).build().expect("a system");
    let options = RunOptions { duration: None, ..options(RtMode::Warn, 0) };
    options.stop.stop();
    let prepared = Executive::prepare(&system, Operations::synthetic(), options).expect("prepared");
    lasted_no_time(prepared.run().expect("run"));
}

fn lasted_no_time(outcome: Outcome) {
    assert_eq!(outcome.stopped, Stopped::Interrupted);
    assert_eq!((outcome.report.duration_ns, outcome.late_records), (0, 0));
}
