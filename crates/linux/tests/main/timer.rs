//! Sleepers are never early, end on the stop, and account for what they spin.

use std::thread;
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::{Slept, StopFlag};
use talea_linux::timer::{LEAD_MAX, Sleeper, Tail, Woken};
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
    // Longer than any wait here, so that every wait is spun whole.
    let always = Tail::Fixed(Duration::from_secs(10));
    for tail in TAILS.into_iter().chain([always]) {
        let mut sleeper = Sleeper::new(tail);
        let (mut spun_in_all, mut times) = (Duration::ZERO, 0);
        let before = MonotonicClock.now();
        for _ in 0..50 {
            match sleeper.sleep_until(MonotonicClock.now() + Duration::from_micros(400), &stop) {
                Woken::Due { spun, .. } => {
                    spun_in_all += spun;
                    times += u64::from(spun > Duration::ZERO);
                }
                Woken::Stopped => panic!("nobody stops"),
            }
        }
        let after = MonotonicClock.now();
        let cost = sleeper.spin_cost();
        assert_eq!((cost.spun, cost.times), (spun_in_all, times), "{tail:?}");
        // It counts from within the first call.
        assert!(Duration::from_micros(400) * 49 <= cost.over && cost.over <= after - before, "{tail:?}");
        assert!(cost.share() <= 1.0, "{tail:?}");
        assert!(tail != always || times > 0, "nothing was spun");
        match tail {
            Tail::Off => assert_eq!((cost.times, sleeper.lead()), (0, Duration::ZERO)),
            Tail::Fixed(lead) => assert_eq!(sleeper.lead(), lead),
            Tail::Adaptive { .. } => assert!(sleeper.lead() <= LEAD_MAX),
        }
    }
}

#[test]
#[should_panic(expected = "a budget of 1.5")]
fn a_budget_above_one_processor_is_a_broken_invariant() {
    let _ = Sleeper::new(Tail::Adaptive { budget: 1.5 });
}
