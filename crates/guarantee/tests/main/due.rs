//! What was due, against its definition on random work and service; and what the other judge cannot see.

use proptest::prelude::*;
use talea_guarantee::due::Due;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{LongRun, Monitor, Standing};
use talea_time::{Duration, Instant};

fn at(ns: usize) -> Instant {
    Instant::from_nanos(ns as i64)
}

fn promise(text: &str) -> Guarantee {
    text.parse().expect("a guarantee")
}

/// Nanosecond by nanosecond: whether there is work, and if so whether it is worked at.
fn days() -> impl Strategy<Value = Vec<(bool, bool)>> {
    let stretch = (prop::bool::weighted(0.7), any::<bool>(), 1..30_usize);
    prop::collection::vec(stretch, 0..25).prop_map(|stretches| {
        let of = |(pending, served, length)| vec![(pending, pending && served); length];
        stretches.into_iter().map(of).collect::<Vec<_>>().concat()
    })
}

fn judged(due: &mut Due, days: &[(bool, bool)]) -> talea_guarantee::due::Sums {
    let mut pending = false;
    for (now, (wants, served)) in days.iter().enumerate() {
        if *wants != pending {
            match wants {
                true => due.work_arrives(at(now)),
                false => due.work_is_done(at(now)),
            }
            pending = *wants;
        }
        if *served {
            due.received(at(now), at(now + 1));
        }
    }
    due.until(at(days.len()))
}

/// The most that `share` of an interval is more than what it holds, among all that are pending throughout.
fn missing(days: &[(bool, bool)], share: f64) -> f64 {
    let mut worst = 0.0_f64;
    for from in 0..days.len() {
        let mut served = 0.0;
        for (length, (wants, serves)) in days[from..].iter().enumerate() {
            if !wants {
                break;
            }
            served += f64::from(u8::from(*serves));
            worst = worst.max(share * (length + 1) as f64 - served);
        }
    }
    worst
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_interval_with_work_in_all_of_it_may_hold_less(days in days(), tenths in 1..10_u32, error in 0..40_u32) {
        let share = f64::from(tenths) / 10.0;
        let mut due = Due::new(&promise(&format!("PSBE 0.{tenths} {error}ns")), None, Duration::ZERO, at(0));
        let sums = judged(&mut due, &days);
        let expected = missing(&days, share) - f64::from(error);
        // Shares are rounded by a ten-thousandth.
        prop_assert!((sums.missing_ns as f64 - expected.max(0.0)).abs() <= 1.1, "{sums:?} {expected}");
        prop_assert_eq!(sums.wanted_ns, days.iter().filter(|day| day.0).count() as i64);
        prop_assert_eq!(sums.received_ns, days.iter().filter(|day| day.1).count() as i64);
    }

    #[test]
    fn no_interval_at_all_may_hold_more_than_twice_a_maximum_and_its_part(days in days(), amount in 1..10_i64) {
        let mut due = Due::new(&promise(&format!("RESBH {amount}ns 20ns")), None, Duration::ZERO, at(0));
        let sums = judged(&mut due, &days);
        let mut worst = 0.0_f64;
        for from in 0..days.len() {
            let mut served = 0;
            for (length, (_, serves)) in days[from..].iter().enumerate() {
                served += i64::from(*serves);
                worst = worst.max(served as f64 - amount as f64 * (length + 1) as f64 / 20.0 - 2.0 * amount as f64);
            }
        }
        prop_assert!((sums.excess_ns as f64 - worst).abs() <= 1.1, "{sums:?} {worst}");
    }
}

/// A scheduler that takes every end of a burst for sleep tells the monitor so, which finds nothing. The work tells otherwise.
#[test]
fn a_pause_that_is_none_is_seen_by_the_work_alone() {
    let third = promise("PSBE 0.3 20ms");
    let mut monitor = Monitor::new(&third, Duration::ZERO, at(0));
    let mut due = Due::new(&third, None, Duration::ZERO, at(0));
    due.work_arrives(at(0));
    let ms = 1_000_000;
    for round in 0..500 {
        // A burst of half a millisecond waits for ten; the next one arrived long ago.
        let begin = round * 21 * ms / 2;
        let (run, end) = (begin + 10 * ms, begin + 21 * ms / 2);
        monitor.note(at(begin), Standing::Ready, &mut |_| {});
        monitor.note(at(run), Standing::Running, &mut |_| {});
        monitor.note(at(end), Standing::Waiting, &mut |_| {});
        due.received(at(run), at(end));
    }
    assert_eq!(monitor.tally().violations, 0);
    assert!(due.sums().missing_ns > 1_000_000_000, "{:?}", due.sums());
}

/// A share in the long run is judged by all stretches together, each of which may add the bound once.
#[test]
fn a_share_in_the_long_run_is_judged_by_a_bound_that_is_stated() {
    let half = promise("PS 0.5");
    let stated = Some(LongRun { behind: Duration::from_nanos(100), chance: Duration::ZERO });
    for (wait, broken) in [(90, false), (400, true)] {
        let mut monitor = Monitor::with_bound(&half, stated, Duration::ZERO, at(0));
        let mut due = Due::new(&half, stated, Duration::ZERO, at(0));
        for round in 0..10 {
            let begin = round * 1_000;
            due.work_arrives(at(begin));
            monitor.note(at(begin), Standing::Ready, &mut |_| {});
            monitor.note(at(begin + wait), Standing::Running, &mut |_| {});
            due.received(at(begin + wait), at(begin + wait + 10));
            monitor.note(at(begin + wait + 10), Standing::Waiting, &mut |_| {});
            due.work_is_done(at(begin + wait + 10));
        }
        assert_eq!(monitor.tally().violations > 0, broken, "{wait}");
        assert_eq!(due.sums().missing_ns > 0, broken, "{wait}");
    }
    let unstated = Monitor::new(&half, Duration::ZERO, at(0));
    assert!(!unstated.judges() && !Due::new(&half, None, Duration::ZERO, at(0)).judges());
}
