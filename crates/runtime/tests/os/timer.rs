//! Sleepers are never early, end on the stop, and account for what they spin.

use std::thread;
use talea_runtime::sys::clock::MonotonicClock;
use talea_runtime::sys::stop::{Slept, StopFlag};
use talea_runtime::timer::{LEAD_MAX, Sleeper, Tail, Woken};
use talea_time::{Clock, Duration, Instant};

const TAILS: [Tail; 4] = [
    Tail::Off,
    Tail::Fixed(Duration::from_micros(60)),
    Tail::Adaptive { budget: 0.02 },
    Tail::Adaptive { budget: 1.0 },
];

#[test]
fn no_sleeper_returns_early() {
    let stop = StopFlag::new();
    for tail in TAILS {
        let mut sleeper = Sleeper::new(tail);
        let start = MonotonicClock.now();
        for release in 1..=100 {
            let until = start + Duration::from_micros(500) * release;
            let Woken::Due { late_by, spun } = sleeper.sleep_until(until, &stop) else {
                panic!("nobody stops")
            };
            let now = MonotonicClock.now();
            assert!(now >= until && late_by >= Duration::ZERO && late_by <= now - until);
            assert!(spun <= LEAD_MAX.max(late_by + LEAD_MAX), "{tail:?} spun {spun}");
        }
    }
}

#[test]
fn a_past_instant_is_due_at_once() {
    for tail in TAILS {
        let now = MonotonicClock.now();
        let past = now + -Duration::from_millis(5);
        match Sleeper::new(tail).sleep_until(past, &StopFlag::new()) {
            Woken::Due { late_by, spun } => {
                assert!(late_by >= Duration::from_millis(5));
                assert_eq!(spun, Duration::ZERO);
            }
            Woken::Stopped => panic!("nobody stops"),
        }
        let origin = Instant::from_nanos(-1);
        assert!(matches!(Sleeper::new(tail).sleep_until(origin, &StopFlag::new()), Woken::Due { .. }));
    }
}

#[test]
fn the_stop_ends_every_sleep_however_long() {
    for tail in TAILS {
        let stop = StopFlag::new();
        let sleepers = [Instant::MAX, MonotonicClock.now() + Duration::from_secs(3_600)].map(|until| {
            let stop = stop.clone();
            thread::spawn(move || Sleeper::new(tail).sleep_until(until, &stop))
        });
        stop.stop();
        for sleeper in sleepers {
            assert_eq!(sleeper.join().unwrap(), Woken::Stopped);
        }
        assert!(stop.is_stopped());
        assert_eq!(Sleeper::new(tail).sleep_until(Instant::ZERO, &stop), Woken::Stopped);
        assert_eq!(stop.sleep_until(Instant::MAX), Slept::Stopped);
    }
}

#[test]
fn the_cost_is_the_sum_of_what_was_spun() {
    let stop = StopFlag::new();
    for tail in TAILS {
        let mut sleeper = Sleeper::new(tail);
        let start = MonotonicClock.now();
        let mut spun_in_all = Duration::ZERO;
        for release in 1..=50 {
            match sleeper.sleep_until(start + Duration::from_micros(400) * release, &stop) {
                Woken::Due { spun, .. } => spun_in_all += spun,
                Woken::Stopped => panic!("nobody stops"),
            }
        }
        let cost = sleeper.spin_cost();
        assert_eq!(cost.spun, spun_in_all);
        assert!(cost.over >= Duration::from_micros(400) * 49);
        assert!(cost.times <= 50 && cost.share() <= 1.0);
        assert_eq!(tail == Tail::Off, cost.times == 0 && sleeper.lead() == Duration::ZERO, "{tail:?}");
        assert!(sleeper.lead() <= LEAD_MAX);
    }
}

#[test]
#[should_panic(expected = "a budget of 1.5")]
fn a_budget_above_one_processor_is_a_broken_invariant() {
    let _ = Sleeper::new(Tail::Adaptive { budget: 1.5 });
}
