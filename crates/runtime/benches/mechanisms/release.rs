//! Release lateness at a period of 1 ms: the kernel's timer bare, and the sleeper's tails.

use super::{Effort, Stage};
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::StopFlag;
use talea_linux::thread::spawn;
use talea_linux::timer::{Sleeper, Tail, Woken};
use talea_measure::{Report, Role, Samples};
use talea_time::{Clock, Duration, Instant};

const STACK: usize = 256 * 1024;
const PERIOD: Duration = Duration::from_millis(1);

const TAILS: [(&str, Tail); 5] = [
    ("sleeper, no tail", Tail::Off),
    ("sleeper, fixed 80us", Tail::Fixed(Duration::from_micros(80))),
    ("sleeper, adaptive, 2 % of a CPU", Tail::Adaptive { budget: 0.02 }),
    ("sleeper, adaptive, 5 % of a CPU", Tail::Adaptive { budget: 0.05 }),
    ("sleeper, adaptive, 20 % of a CPU", Tail::Adaptive { budget: 0.20 }),
];

pub fn measure(stage: &Stage, effort: Effort, report: &mut Report) {
    let thread = spawn("release", stage.policy(80), &[stage.here], STACK, move || {
        let stop = StopFlag::new();
        let mut bare = Samples::new();
        let mut sleepers = TAILS.map(|(name, tail)| (name, Sleeper::new(tail), Samples::new()));
        // Long turns: a sleeper must meet its own period, not the pauses between its turns.
        for _ in 0..effort.repetitions {
            releases(effort.releases, |until| {
                clock_nanosleep_absolute(ClockId::Monotonic, &timespec(until)).expect("no signals here");
                bare.add(MonotonicClock.now() - until);
            });
            for (_, sleeper, samples) in &mut sleepers {
                releases(effort.releases, |until| match sleeper.sleep_until(until, &stop) {
                    Woken::Due { .. } => samples.add(MonotonicClock.now() - until),
                    Woken::Stopped => unreachable!("nobody stops"),
                });
            }
        }
        (bare, sleepers)
    });
    let thread = thread.expect("the policy was tried before");
    let (bare, sleepers) = thread.join().expect("measuring does not panic");
    let group = "release lateness at 1 ms";
    report.add(group, "bare clock_nanosleep", Role::Floor, bare);
    for (name, sleeper, samples) in sleepers {
        // The sleeper's own share counts the turns of the others as well.
        let spun = sleeper.spin_cost().spun.as_secs_f64();
        let share = 100.0 * spun / (PERIOD * i64::from(effort.releases * effort.repetitions)).as_secs_f64();
        let note = format!("{share:.2} % of a CPU spun, lead {}", sleeper.lead());
        report.add_with_note(group, name, Role::Subject, samples, note);
    }
}

/// One turn of absolute releases, from now on.
fn releases(count: u32, mut release: impl FnMut(Instant)) {
    let start = MonotonicClock.now();
    (1..=i64::from(count)).for_each(|number| release(start + PERIOD * number));
}

fn timespec(instant: Instant) -> Timespec {
    let ns = instant.as_nanos();
    Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
}
