//! Threads with a pattern of demand on a machine, and what they receive.

use crate::hierarchy::Machine;
use talea_policy::hierarchy::{Engine, Fraction, Parameters, VpId};
use talea_policy::job::Job;
use talea_policy::scheduler::{Exhaustion, FairQueue, Reservation, Uniprocessor, WakeUp};
use talea_time::{Duration, Instant, Work};

pub fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms)
}

/// Hard reservations of a whole processor.
pub fn hard() -> Uniprocessor<Reservation> {
    Reservation::scheduler(Exhaustion::Suspend, Fraction::ONE)
}

/// Start-time fair queueing with a quantum of `quantum` milliseconds.
pub fn fair(quantum: i64) -> Uniprocessor<FairQueue> {
    FairQueue::scheduler(Work::from_millis(quantum), WakeUp::Waits)
}

/// `budget` in every `period`, in milliseconds.
pub fn reservation(budget: i64, period: i64) -> Parameters {
    Parameters::Reservation { budget: Work::from_millis(budget), period: ms(period) }
}

/// When a thread wants a processor.
#[derive(Clone, Copy, Debug)]
pub enum Demand {
    /// Always.
    Endless,
    /// `burst` of work at every multiple of `period`; what is undone by then is added.
    Periodic { burst: Duration, period: Duration },
}

struct Actor {
    thread: VpId,
    demand: Demand,
    left: Duration,
    arrival: Instant,
    /// Disjoint stretches of service in order.
    supply: Vec<(Instant, Instant)>,
}

/// A machine with its threads.
pub struct Workload {
    pub machine: Machine,
    actors: Vec<Actor>,
}

impl Workload {
    pub fn new(engine: Engine, threads: &[(VpId, Demand)]) -> Self {
        let actors = threads
            .iter()
            .map(|&(thread, demand)| Actor {
                thread,
                demand,
                left: Duration::ZERO,
                arrival: Instant::ZERO,
                supply: Vec::new(),
            })
            .collect();
        Workload { machine: Machine::new(engine), actors }
    }

    /// Lets everything up to `until` happen.
    pub fn run(mut self, until: Duration) -> Self {
        let until = Instant::ZERO + until;
        while self.machine.now < until {
            self.finish_and_arrive();
            self.machine.settle();
            // Timers move threads, which changes who completes next.
            let timer = self.machine.engine.next_timer().unwrap_or(Instant::MAX);
            let stop = self.next().min(timer).min(until);
            let actors = &mut self.actors;
            self.machine.advance(stop, |thread, start, end| {
                let actor = actors.iter_mut().find(|actor| actor.thread == thread);
                actor.expect("it is ours").serve(start, end);
            });
        }
        self
    }

    fn finish_and_arrive(&mut self) {
        let now = self.machine.now;
        for actor in &mut self.actors {
            if self.machine.wants(actor.thread) && actor.left == Duration::ZERO {
                self.machine.release(actor.thread);
            }
            if actor.arrival <= now {
                match actor.demand {
                    Demand::Endless => {
                        actor.left = Duration::MAX;
                        actor.arrival = Instant::MAX;
                    }
                    Demand::Periodic { burst, period } => {
                        actor.left += burst;
                        actor.arrival += period;
                    }
                }
                if !self.machine.wants(actor.thread) {
                    let tag = actor.thread.index() as u32;
                    let job = Job {
                        release: now,
                        deadline: actor.arrival,
                        wcet: actor.left_work(),
                        rank: 0,
                        number: 0,
                        tag,
                    };
                    self.machine.request(actor.thread, job);
                }
            }
        }
    }

    fn next(&self) -> Instant {
        let arrival = self.actors.iter().map(|actor| actor.arrival).min();
        let running: Vec<VpId> = self.machine.running().flatten().collect();
        let end = self
            .actors
            .iter()
            .filter(|actor| running.contains(&actor.thread))
            .map(|actor| self.machine.now.saturating_add(actor.left))
            .min();
        arrival.unwrap_or(Instant::MAX).min(end.unwrap_or(Instant::MAX))
    }

    fn supply(&self, thread: VpId) -> &[(Instant, Instant)] {
        &self.actors.iter().find(|actor| actor.thread == thread).expect("it is ours").supply
    }

    /// What `thread` received in `from..to`.
    pub fn received(&self, thread: VpId, from: Duration, to: Duration) -> Duration {
        let (from, to) = (Instant::ZERO + from, Instant::ZERO + to);
        self.supply(thread)
            .iter()
            .map(|&(start, end)| (end.min(to) - start.max(from)).max(Duration::ZERO))
            .fold(Duration::ZERO, |sum, part| sum + part)
    }

    /// The least and most that `thread` received in one of the windows of length `period` that fill
    /// `0..until`.
    pub fn per_period(&self, thread: VpId, period: Duration, until: Duration) -> (Duration, Duration) {
        let windows = until.as_nanos() / period.as_nanos();
        let received = |window: i64| self.received(thread, period * window, period * window + period);
        let all: Vec<Duration> = (0..windows).map(received).collect();
        (*all.iter().min().expect("one window"), *all.iter().max().expect("one window"))
    }

    /// The smallest `delta` for which every interval of any length `t` within `0..until` holds
    /// `share / 100 * t - delta`: the error of a proportional share (Regehr and Stankovic, section 4).
    pub fn share_error(&self, thread: VpId, share: i64, until: Duration) -> Duration {
        // At the start of service the lag 100 S(t) - share t is smallest, at its end largest; the error is
        // the deepest fall from a peak to a later trough.
        let (mut peak, mut deepest, mut received) = (0, 0, 0);
        for &(start, end) in self.supply(thread) {
            let trough = 100 * received - share * start.as_nanos();
            deepest = deepest.max(peak - trough);
            received += (end - start).as_nanos();
            peak = peak.max(100 * received - share * end.as_nanos());
        }
        let trough = 100 * received - share * until.as_nanos();
        Duration::from_nanos(deepest.max(peak - trough) / 100)
    }
}

impl Actor {
    /// What it declares; nothing if it never ends.
    fn left_work(&self) -> Work {
        if self.left == Duration::MAX { Work::ZERO } else { self.left.as_work() }
    }

    fn serve(&mut self, start: Instant, end: Instant) {
        if self.left != Duration::MAX {
            self.left -= end - start;
        }
        match self.supply.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => self.supply.push((start, end)),
        }
    }
}
