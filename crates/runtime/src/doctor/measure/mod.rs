//! What this machine costs and withholds, measured.
//!
//! | Cost | Measured as |
//! |---|---|
//! | switch | half of the way there and back between two threads on one processor that wake each other |
//! | queue | an insertion into a lane's queue, or a removal, half of both; or half of what else a job takes beyond its own time, if that is more |
//! | timer | what a thread that computes misses of the processor while another, of higher priority, wakes from a timer and sleeps again |
//! | message | a message written to a pipe and read from it |
//! | push, filter, delivery | what pushing an event takes if nobody has subscribed, and what one more of sixteen subscriptions adds, with a filter of three comparisons and without |
//!
//! Of each the value counts that all but the slowest hundredth stay below. What a computing thread misses beyond that, and what no timer
//! of ours explains, is a stall; throttling cannot be in it, as the thread leaves half of each millisecond idle.

mod pushing;

use super::in_scratch_thread;
use crate::limits::limits;
use crate::{Executive, Operations, RtMode, RunOptions};
use rustix::pipe::pipe;
use rustix::thread::futex::{self, Flags};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use talea_linux::affinity;
use talea_linux::clock::MonotonicClock;
use talea_linux::sched::{self, Policy};
use talea_linux::stop::StopFlag;
use talea_linux::thread::{JoinHandle, spawn};
use talea_model::{Costs, LaneDispatch, Late, Laxity, Machine, Overhead};
use talea_policy::discipline::Discipline;
use talea_policy::job::Job;
use talea_policy::lane::LaneQueue;
use talea_policy::strategy::LaneRules;
use talea_time::{Clock, Duration, Instant, Work};

const STACK: usize = 256 * 1024;

/// How much is measured for each load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoroughness {
    /// Less than a tenth of a second: beside nothing else, and no whole jobs.
    Brief,
    /// About half a second.
    Quick,
    /// About three seconds.
    Thorough,
}

impl Thoroughness {
    const fn samples(self) -> usize {
        match self {
            Thoroughness::Brief => 60,
            Thoroughness::Quick => 400,
            Thoroughness::Thorough => 2_500,
        }
    }
}

/// Measures this machine on one of the processors that the process may use, with real-time threads where they are permitted. `go_on` is
/// asked before each part, with how many there are, and ends the measurement by returning false.
pub fn measure(thoroughness: Thoroughness, mut go_on: impl FnMut(usize, usize) -> bool) -> Option<Machine> {
    let allowed = affinity::allowed().ok()?;
    // The first processor mostly has other duties.
    let cpu = *allowed.last()?;
    let real_time = in_scratch_thread(|| sched::set_self(Policy::Fifo(PRIORITY))).is_ok();
    let samples = thoroughness.samples();
    let mut longest_stall = Duration::ZERO;
    let mut costs = Vec::new();
    let loads: &[Load] = match thoroughness {
        Thoroughness::Brief => &[Load::Idle],
        Thoroughness::Quick | Thoroughness::Thorough => &[Load::Idle, Load::Busy],
    };
    for (index, load) in loads.iter().enumerate() {
        if !go_on(index, loads.len()) {
            return None;
        }
        let _busy = load.begin(&allowed);
        let stage = Stage { cpu, real_time };
        let (timer, stall) = stage.timer(samples);
        longest_stall = longest_stall.max(stall);
        let (switch, message) = (stage.switch(samples), stage.message(samples));
        // What a whole job takes beyond its own time and what is counted of it already is its way into the queue and out of it.
        let rest = stage.job(thoroughness).map_or(Work::ZERO, |job| job - timer - switch);
        let queue = stage.queue(samples).max(half(rest.at_full_speed()));
        let overhead = Overhead { switch, queue, timer, message, ..Overhead::default() };
        let overhead = pushing::measure(stage, samples, overhead);
        costs.push(Costs { load: load.name().into(), overhead });
    }
    Some(Machine { costs, longest_stall, real_time, ..limits() })
}

/// What else the machine does.
#[derive(Clone, Copy)]
enum Load {
    Idle,
    Busy,
}

/// Ordinary threads that compute until this goes.
struct Busy {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Load {
    const fn name(self) -> &'static str {
        match self {
            Load::Idle => "idle",
            Load::Busy => "busy",
        }
    }

    fn begin(self, cpus: &[u16]) -> Busy {
        let ended = Arc::new(AtomicBool::new(false));
        let cpus = if matches!(self, Load::Busy) { cpus } else { &[] };
        let compute = |cpu: &u16| {
            let ended = Arc::clone(&ended);
            // Memory beyond the caches of a core, so that others find theirs cold.
            let work = move || {
                let mut memory = vec![0_u64; 1 << 19];
                let mut at = 0_usize;
                while !ended.load(Ordering::Relaxed) {
                    memory[at] = memory[at].wrapping_add(1);
                    at = (at + 4_099) & (memory.len() - 1);
                }
            };
            spawn("busy", Policy::Other, &[*cpu], STACK, work).ok()
        };
        let threads = cpus.iter().filter_map(compute).collect();
        Busy { ended, threads }
    }
}

/// Of the two threads that something takes, the lower one's; the other has the next.
const PRIORITY: u8 = 40;

/// Where and with what.
#[derive(Clone, Copy)]
struct Stage {
    cpu: u16,
    real_time: bool,
}

impl Stage {
    fn thread<T: Send + 'static>(
        self,
        above: u8,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> Option<JoinHandle<T>> {
        let policy = if self.real_time { Policy::Fifo(PRIORITY + above) } else { Policy::Other };
        spawn("measure", policy, &[self.cpu], STACK, run).ok()
    }

    /// Runs something on the processor and waits for it.
    fn run<T: Send + 'static>(self, run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        self.thread(0, run)?.join().ok()
    }

    /// Two threads that wake each other in turn.
    fn switch(self, samples: usize) -> Work {
        let turn = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&turn);
        let rounds = samples as u32;
        let answering = self.thread(0, move || {
            for round in 0..rounds {
                wait_for(&other, 2 * round + 1);
                pass(&other);
            }
        });
        let asking = self.thread(0, move || {
            let mut taken = Vec::with_capacity(rounds as usize);
            for round in 0..rounds {
                let begin = MonotonicClock.now();
                pass(&turn);
                wait_for(&turn, 2 * round + 2);
                taken.push(MonotonicClock.now() - begin);
            }
            taken
        });
        let taken = asking.and_then(|thread| thread.join().ok());
        drop(answering.map(JoinHandle::join));
        half(high(taken.unwrap_or_default()))
    }

    /// An insertion among as many jobs as a busy lane has, and the removal of one.
    fn queue(self, samples: usize) -> Work {
        /// One of these is too short for the clock.
        const TOGETHER: u32 = 16;
        const WAITING: u32 = 16;
        let taken = self.run(move || {
            let rules = LaneRules {
                dispatch: LaneDispatch::NonPreemptive,
                laxity: Laxity::Declared,
                late: Late::None,
            };
            let mut queue = LaneQueue::new(Discipline::Deadline, rules, 64);
            let job = |number: u32| {
                let deadline = Instant::from_nanos(i64::from(number.wrapping_mul(2_654_435_761) >> 8));
                let (release, wcet) = (Instant::ZERO, Work::from_micros(1));
                Job { release, deadline, wcet, rank: 0, number: u64::from(number), tag: number }
            };
            (0..WAITING).for_each(|number| queue.push(job(number)));
            let mut next = WAITING;
            let mut round = |_| {
                let begin = MonotonicClock.now();
                for _ in 0..TOGETHER {
                    queue.push(job(next));
                    next += 1;
                    if let Some(first) = queue.elect(Instant::ZERO, Work::ZERO) {
                        queue.remove(first.tag);
                    }
                }
                let together = MonotonicClock.now() - begin;
                Duration::from_nanos(together.as_nanos() / i64::from(TOGETHER))
            };
            (0..samples).map(&mut round).collect::<Vec<Duration>>()
        });
        half(high(taken.unwrap_or_default()))
    }

    /// From when a job of a run is due until it is done, without its own time.
    fn job(self, thoroughness: Thoroughness) -> Option<Work> {
        const EVERY: Duration = Duration::from_millis(1);
        const OWN: Work = Work::from_micros(100);
        if thoroughness == Thoroughness::Brief {
            return None;
        }
        let text = format!(
            "[system]\nname = \"measured\"\n[[node]]\nname = \"here\"\ncpus = [{}]\n[[task]]\nname = \"job\"\nperiod = \"{EVERY}\"\nwcet = \"{OWN}\"\n",
            self.cpu
        );
        let system = talea_model::parse("measured", &text, std::path::Path::new(".")).ok()?.system;
        let options = RunOptions {
            duration: Some(EVERY * (thoroughness.samples() as i64 / 2)),
            rt: if self.real_time { RtMode::Warn } else { RtMode::Off },
            ..RunOptions::default()
        };
        let prepared = Executive::prepare(&system, Operations::synthetic(), options).ok()?;
        let report = prepared.run().ok()?.report;
        let response = report.operations.first()?.response_ns?;
        Some(Work::from_nanos(response.p99) - OWN)
    }

    /// What a computing thread misses while another's timer expires, and the longest that it missed otherwise.
    fn timer(self, samples: usize) -> (Work, Duration) {
        const EVERY: Duration = Duration::from_micros(500);
        /// Two looks at the clock are never so far apart unless the processor was elsewhere.
        const GAP: Duration = Duration::from_nanos(400);
        let ended = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ended);
        let (begun, first) = (MonotonicClock.now(), Arc::new(StopFlag::new()));
        let sleeper = Arc::clone(&first);
        let expiring = self.thread(1, move || {
            let mut due = begun + EVERY * 10;
            for _ in 0..samples {
                sleeper.sleep_until(due);
                due += EVERY;
            }
            over.store(true, Ordering::Relaxed);
        });
        let computing = self.thread(0, move || {
            let mut missed: Vec<(Instant, Duration)> = Vec::with_capacity(8 * samples);
            let mut last = MonotonicClock.now();
            while !ended.load(Ordering::Relaxed) {
                let now = MonotonicClock.now();
                if now - last > GAP && missed.len() < missed.capacity() {
                    missed.push((last, now - last));
                }
                last = now;
                // A tenth is left to others, so that nothing is withheld: sleeping ends with a switch that is no gap.
                if (now - begun).as_nanos() % 10_000_000 > 9_000_000 {
                    StopFlag::new().sleep_until(now + Duration::from_millis(1));
                    last = MonotonicClock.now();
                }
            }
            missed
        });
        let missed = computing.and_then(|thread| thread.join().ok()).unwrap_or_default();
        drop(expiring.map(JoinHandle::join));
        // A timer expires at a multiple of the distance; a gap around it is its, others are the host's or the kernel's.
        let (ours, others): (Vec<_>, Vec<_>) = missed.into_iter().partition(|(since, length)| {
            let phase = |instant: Instant| (instant - begun).as_nanos().div_euclid(EVERY.as_nanos());
            phase(*since) != phase(*since + *length + Duration::from_micros(20))
        });
        let timer = high(ours.into_iter().map(|(_, length)| length).collect());
        let stall = others.into_iter().map(|(_, length)| length).max().unwrap_or(Duration::ZERO);
        (timer.as_work(), stall)
    }

    fn message(self, samples: usize) -> Work {
        let taken = self.run(move || {
            let Ok((reader, writer)) = pipe() else { return Vec::new() };
            let mut bytes = [0_u8; 128];
            let round = |_| {
                let begin = MonotonicClock.now();
                let sent = rustix::io::write(&writer, &[1_u8; 128]);
                let received = rustix::io::read(&reader, &mut bytes[..]);
                (sent.is_ok() && received.is_ok()).then(|| MonotonicClock.now() - begin)
            };
            (0..samples).filter_map(round).collect()
        });
        high(taken.unwrap_or_default()).as_work()
    }
}

/// What all but the slowest hundredth stay below.
fn high(mut taken: Vec<Duration>) -> Duration {
    taken.sort_unstable();
    taken.get(taken.len() * 99 / 100).or(taken.last()).copied().unwrap_or(Duration::ZERO)
}

fn half(time: Duration) -> Work {
    Work::from_nanos((time.as_nanos() + 1) / 2)
}

/// Sleeps until the word has this value.
fn wait_for(word: &AtomicU32, value: u32) {
    loop {
        let now = word.load(Ordering::Acquire);
        if now == value {
            return;
        }
        // Woken for another reason, or the word has changed meanwhile: it is looked at again.
        let _ = futex::wait(word, Flags::PRIVATE, now, None);
    }
}

/// It is the other's turn.
fn pass(word: &AtomicU32) {
    word.fetch_add(1, Ordering::Release);
    let _ = futex::wake(word, Flags::PRIVATE, 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_says_something_of_every_cost_and_can_be_ended() {
        assert_eq!(measure(Thoroughness::Quick, |_, _| false), None);
        let machine = measure(Thoroughness::Quick, |_, _| true).expect("a process has a processor");
        println!("{machine}");
        assert_eq!(machine.costs.len(), 2);
        for Costs { load, overhead } in &machine.costs {
            for (name, cost) in overhead.costs() {
                assert!(cost > Work::ZERO || name == "timer", "{name} {load}: {overhead:?}");
            }
        }
        assert_eq!(Machine::parse(&machine.to_string()), Ok(machine));
    }

    #[test]
    fn what_is_high_is_above_ninety_nine_of_a_hundred() {
        let nanos = |count| (1..=count).map(Duration::from_nanos).collect::<Vec<_>>();
        assert_eq!(high(nanos(1_000)), Duration::from_nanos(991));
        assert_eq!(high(nanos(3)), Duration::from_nanos(3));
        assert_eq!(high(Vec::new()), Duration::ZERO);
    }
}
