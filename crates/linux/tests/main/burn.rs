//! Synthetic work consumes the processor time it was asked for. How closely is measured by the benchmark
//! `mechanisms`; on a machine that others use too, nothing here depends on it.

use std::cell::Cell;
use std::sync::mpsc::channel;
use std::thread;
use talea_linux::burn::Burner;
use talea_linux::clock::thread_cpu_time;
use talea_time::Work;

/// The thread's CPU clock from before to after `work`, and what `work` returns.
fn measured<T>(work: impl FnOnce() -> T) -> (Work, T) {
    let before = thread_cpu_time();
    let result = work();
    (thread_cpu_time() - before, result)
}

#[test]
fn a_burn_consumes_at_least_what_was_asked_and_says_how_much() {
    let burner = Burner::calibrate();
    for us in [0, 1, 5, 20, 100, 500, 3_000] {
        let work = Work::from_nanos(us * 1_000);
        let (consumed, said) = measured(|| burner.burn(work, || false));
        assert!(work <= said && said <= consumed, "asked {work}, said {said}, consumed {consumed}");
    }
}

/// Between any two chunks this thread waits while another one consumes as much as is to be burnt. A burner that
/// counted the time that passes would be done after the first wait.
#[test]
fn the_time_of_others_does_not_count() {
    let burner = Burner::calibrate();
    let work = Work::from_millis(1);
    let (ask, asked) = channel::<()>();
    let (answer, answered) = channel();
    let other =
        thread::spawn(move || asked.iter().for_each(|()| answer.send(burner.burn(work, || false)).unwrap()));
    let (consumed, said) = measured(|| {
        burner.burn(work, || {
            ask.send(()).unwrap();
            answered.recv().unwrap() < work
        })
    });
    drop(ask);
    other.join().unwrap();
    assert!(work <= said && said <= consumed, "asked {work}, said {said}, consumed {consumed}");
}

#[test]
fn an_abandoned_burn_ends_at_the_answer() {
    let burner = Burner::calibrate();
    let asked = Cell::new(0);
    let work = Work::from_millis(60_000);
    let (consumed, said) = measured(|| {
        burner.burn(work, || {
            asked.set(asked.get() + 1);
            asked.get() > 10
        })
    });
    assert_eq!(asked.get(), 11, "the question is not asked again once it was answered");
    assert!(Work::ZERO < said && said <= consumed && said < work, "said {said}, consumed {consumed}");
}

#[test]
fn nothing_is_burnt_for_no_work_or_an_abandoned_job() {
    let burner = Burner::calibrate();
    assert_eq!(burner.burn(Work::ZERO, || panic!("there is nothing to abandon")), Work::ZERO);
    assert_eq!(burner.burn(Work::from_millis(1_000), || true), Work::ZERO);
}
