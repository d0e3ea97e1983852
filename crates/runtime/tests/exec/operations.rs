//! Users' code as operations.

use super::*;
use std::sync::{Arc, mpsc};
use talea_model::{LaneDispatch, Late};
use talea_runtime::{JobContext, PrepareError};

#[test]
fn an_operation_is_told_everything_about_its_job() {
    let (tell, told) = mpsc::channel();
    let operation = move |context: &JobContext<'_>| {
        assert_eq!(context.operation(), "job");
        let span = context.deadline() - context.release();
        tell.send((context.instance(), span, context.now() >= context.release(), context.laxity() <= span))
            .unwrap();
    };
    let system = system(Strategy::Rms).task(task("job", 20, 1).deadline(ms(15))).build().expect("a system");
    let operations = Operations::synthetic().with("job", operation);
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended("job", 3));
    let jobs: Vec<_> = told.iter().collect();
    assert!(jobs.len() >= 4 && jobs.len() >= ran.count(Event::COMPLETE, "job"));
    for (position, job) in jobs.iter().enumerate() {
        assert_eq!(*job, (position as u64, ms(15), true, true));
    }
}

#[test]
fn an_operation_keeps_its_state_from_job_to_job() {
    let (tell, told) = mpsc::channel();
    let mut sum = 0;
    let operation = move |context: &JobContext<'_>| {
        sum += context.instance();
        tell.send(sum).unwrap();
    };
    let system = system(Strategy::Rms).task(task("job", 10, 1)).build().expect("a system");
    let operations = Operations::synthetic().with("job", operation);
    run_until(&system, operations, options(RtMode::Warn, 0), ended("job", 4));
    let sums: Vec<u64> = told.iter().take(5).collect();
    assert_eq!(sums, [0, 1, 3, 6, 10]);
}

/// Late jobs stand last, so the queue prefers a job that can still meet its deadline to one of the same operation that has begun
/// and is late. What the operation keeps belongs to the one that has begun, so the other waits for it.
#[test]
fn jobs_of_one_operation_never_run_at_once() {
    let system = system(Strategy::Edf)
        .late(Late::Last)
        .lane_dispatch(LaneDispatch::Preemptive)
        .task(task("slow", 20, 1))
        .task(task("beside", 200, 1))
        .build()
        .expect("a system");
    // The first jobs take longer than two periods.
    let long_at_first = |longest: Duration| {
        let mut jobs = 0;
        move |context: &JobContext<'_>| {
            let begin = context.now();
            while jobs < 3 && context.now() - begin < longest && !context.aborted() {
                std::hint::spin_loop();
            }
            jobs += 1;
        }
    };
    for rt in [RtMode::Off, RtMode::Warn] {
        let run = || {
            let operations = Operations::synthetic()
                .with("slow", long_at_first(ms(50)))
                .with("beside", long_at_first(ms(30)));
            run_until(&system, operations, options(rt, 0), completed(["slow"], 12))
        };
        // When the third was released, the first had begun and was late.
        let ran = run_given(run, |ran| {
            let at = |event, instance| ran.position(event, "slow", instance);
            at(Event::START, 0) < at(Event::RELEASE, 2) && at(Event::RELEASE, 2) < at(Event::COMPLETE, 0)
        });
        for name in ["slow", "beside"] {
            let mut under_way = None;
            let is_own = |record: &&Record| record.event.0 >> 8 == 1 && ran.name(record.job()) == name;
            for record in ran.records.iter().filter(is_own) {
                let instance = record.job().instance;
                match record.event {
                    Event::START => assert_eq!(under_way.replace(instance), None, "{name} {instance}"),
                    Event::COMPLETE => assert_eq!(under_way.take(), Some(instance), "{name}"),
                    _ => {}
                }
            }
        }
    }
}

talea_record::family! {
    /// What the code of an operation tells.
    told {
        /// A step was made.
        step(instance: u64, part: u32);
    }
}

#[test]
fn events_of_an_operation_stand_in_the_trace_of_its_job() {
    told::FAMILY.register().expect("the only family of its number");
    let operation = |context: &JobContext<'_>| (0..3).for_each(|part| told::step(context.instance(), part));
    let system = system(Strategy::Rms).task(task("job", 10, 1)).build().expect("a system");
    let operations = Operations::synthetic().with("job", operation);
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended("job", 4));
    let family = told::FAMILY.family();
    let step = family.event(&family.events[0]);
    for instance in 0..4 {
        let of_job = |record: &&Record| match record.event {
            Event::START | Event::COMPLETE => record.job().instance == instance,
            event => event == step && record.words[0] == instance,
        };
        let found: Vec<(Event, u64)> =
            ran.records.iter().filter(of_job).map(|record| (record.event, record.words[1])).collect();
        let [start, steps @ .., complete] = &found[..] else { panic!("{found:?}") };
        assert_eq!((start.0, complete.0), (Event::START, Event::COMPLETE));
        assert_eq!(steps, [(step, 0), (step, 1), (step, 2)]);
    }
}

#[test]
fn a_panic_aborts_its_job_and_nothing_else() {
    let operation = |context: &JobContext<'_>| assert!(context.instance() != 2, "number two is broken");
    // Printing the panic may take long; the run lasts until the jobs after it are through.
    let system = system(Strategy::Rms).task(task("job", 10, 1)).build().expect("a system");
    let operations = Operations::synthetic().with("job", operation);
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended("job", 4));
    let [panic] = &ran.outcome.mishaps.panics[..] else { panic!("{:?}", ran.outcome.mishaps) };
    assert_eq!((panic.operation.as_str(), panic.instance), ("job", 2));
    assert!(panic.message.contains("number two is broken"), "{panic:?}");
    assert!(ran.position(Event::ABORT, "job", 2).is_some());
    assert!(ran.position(Event::COMPLETE, "job", 3).is_some());
}

#[test]
fn finished_jobs_are_handed_out() {
    let _alone = alone();
    let finished = Arc::new(Mutex::new(Vec::new()));
    let system = system(Strategy::Rms).task(task("job", 10, 1)).build().expect("a system");
    let sink = Arc::clone(&finished);
    let endless = RunOptions { duration: None, ..options(RtMode::Warn, 0) };
    let prepared = Executive::prepare(&system, Operations::synthetic(), endless).expect("prepared");
    let stop = prepared.stop_handle();
    prepared
        .on_finished(Box::new(move |job| {
            assert_eq!(job.met(), job.lateness <= Duration::ZERO);
            assert_eq!((job.operation, job.ending), ("job", Ending::Completed));
            sink.lock().unwrap().push((job.instance, job.response - job.lateness));
            if job.instance == 3 {
                stop.stop();
            }
        }))
        .run()
        .expect("run");
    let finished = finished.lock().unwrap();
    assert!(finished.len() >= 4);
    assert!(
        finished.iter().enumerate().all(|(position, job)| *job == (position as u64, ms(10))),
        "{finished:?}"
    );
}

#[test]
fn an_unknown_operation_is_refused_with_the_nearest_known() {
    let system = system(Strategy::Edf).task(task("steering", 10, 1)).build().expect("a system");
    let operations = Operations::synthetic().with("stearing", |_| ());
    let error = Executive::prepare(&system, operations, options(RtMode::Off, 10)).unwrap_err();
    assert!(matches!(&error, PrepareError::Operations(_)));
    assert_eq!(error.to_string(), "the system has no operation \"stearing\"; did you mean \"steering\"?");
}
