//! Synthetic work consumes the processor time it was asked for: measured by the thread's CPU clock,
//! so the test holds on a busy machine too.

use std::cell::Cell;
use talea_runtime::burn::Burner;
use talea_runtime::sys::clock::thread_cpu_time;
use talea_time::Work;

/// 1 % of the work, and at least 5 us.
fn tolerance(work: Work) -> Work {
    Work::from_nanos((work.as_nanos() / 100).max(5_000))
}

#[test]
fn the_median_burn_is_within_one_percent_or_five_microseconds() {
    let burner = Burner::calibrate();
    for us in [0, 1, 5, 20, 100, 500, 3_000] {
        let work = Work::from_nanos(us * 1_000);
        let mut errors: Vec<i64> = (0..41)
            .map(|_| {
                let before = thread_cpu_time();
                let said = burner.burn(work, || false);
                let consumed = thread_cpu_time() - before;
                assert!(consumed >= work, "burnt {consumed} of {work}");
                assert!(consumed >= said, "said {said}, but {consumed} went by");
                (consumed - work).as_nanos()
            })
            .collect();
        errors.sort_unstable();
        let median = Work::from_nanos(errors[errors.len() / 2]);
        assert!(median <= tolerance(work), "{work} was exceeded by {median}");
        println!("{work}: over by {median}, at most {}ns", errors[errors.len() - 1]);
    }
}

#[test]
fn an_abandoned_burn_ends_within_about_a_chunk() {
    let burner = Burner::calibrate();
    let asked = Cell::new(0);
    let consumed = burner.burn(Work::from_millis(1_000), || {
        asked.set(asked.get() + 1);
        asked.get() > 10
    });
    assert_eq!(asked.get(), 11, "the question is not asked again once it was answered");
    assert!(consumed >= Work::from_nanos(250_000), "ten chunks of about 50us, not {consumed}");
    assert!(consumed < Work::from_millis(20), "an abandoned second, not {consumed}");
}

#[test]
fn nothing_is_burnt_for_no_work_or_an_abandoned_job() {
    let burner = Burner::calibrate();
    assert_eq!(burner.burn(Work::ZERO, || panic!("there is nothing to abandon")), Work::ZERO);
    assert_eq!(burner.burn(Work::from_millis(1_000), || true), Work::ZERO);
}
