//! Threads with lists of jobs on a machine: when each ended, and when it was served.

use crate::hierarchy::Machine;
use talea_policy::hierarchy::{Engine, VpId};
use talea_policy::job::Job;
use talea_time::{Duration, Instant, Work};

pub fn at(ns: i64) -> Instant {
    Instant::from_nanos(ns)
}

pub fn ns(ns: i64) -> Duration {
    Duration::from_nanos(ns)
}

pub fn work(ns: i64) -> Work {
    Work::from_nanos(ns)
}

/// `work` that arrives at `arrival` and is to be done by `deadline`, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub arrival: i64,
    pub work: i64,
    pub deadline: i64,
}

/// One endless job from the start, without a deadline.
pub fn endless() -> Vec<Piece> {
    vec![Piece { arrival: 0, work: i64::MAX / 4, deadline: i64::MAX }]
}

/// A job of `work` at each multiple of `period` before `until`, to be done within the period.
pub fn periodic(work: i64, period: i64, until: i64) -> Vec<Piece> {
    let piece = |arrival| Piece { arrival, work, deadline: arrival + period };
    (0..until).step_by(period as usize).map(piece).collect()
}

/// What became of one thread.
pub struct Trace {
    thread: VpId,
    pieces: Vec<Piece>,
    arrived: usize,
    received: Duration,
    /// By job done: when it ended.
    pub ends: Vec<Instant>,
    /// Disjoint stretches of service, in order.
    pub supply: Vec<(Instant, Instant)>,
}

impl Trace {
    fn is_at_work(&self) -> bool {
        self.ends.len() < self.arrived
    }

    fn left(&self) -> Duration {
        ns(self.pieces[self.ends.len()].work) - self.received
    }

    /// What it received in `from..to`.
    pub fn received(&self, from: i64, to: i64) -> i64 {
        let (from, to) = (at(from), at(to));
        let first = self.supply.partition_point(|(_, end)| *end <= from);
        let from_there = self.supply[first..].iter().take_while(|(start, _)| *start < to);
        from_there.map(|(start, end)| ((*end).min(to) - (*start).max(from)).as_nanos()).sum()
    }

    /// Jobs that ended after their deadline, or have not ended although it is before `now`.
    pub fn late(&self, now: i64) -> Vec<usize> {
        let is_late = |(job, piece): (usize, &Piece)| {
            let end = self.ends.get(job).copied().unwrap_or(Instant::MAX);
            (piece.deadline <= now && end > at(piece.deadline)).then_some(job)
        };
        self.pieces.iter().enumerate().filter_map(is_late).collect()
    }

    fn job(&self) -> Job {
        let number = self.ends.len();
        let piece = self.pieces[number];
        // Endless work declares nothing.
        let wcet = if piece.work > i64::MAX / 8 { Work::ZERO } else { work(piece.work) };
        Job {
            release: at(piece.arrival),
            deadline: at(piece.deadline),
            wcet,
            rank: 0,
            number: number as u64,
            tag: self.thread.index() as u32,
        }
    }
}

/// A machine, what its threads want, and what they have got.
pub struct Script {
    pub machine: Machine,
    pub traces: Vec<Trace>,
}

impl Script {
    pub fn new(engine: Engine, threads: Vec<(VpId, Vec<Piece>)>) -> Self {
        let trace = |(thread, pieces)| Trace {
            thread,
            pieces,
            arrived: 0,
            received: Duration::ZERO,
            ends: Vec::new(),
            supply: Vec::new(),
        };
        Script { machine: Machine::new(engine), traces: threads.into_iter().map(trace).collect() }
    }

    /// Lets everything before `until` happen.
    pub fn run(mut self, until: i64) -> Self {
        self.run_on(until);
        self
    }

    pub fn run_on(&mut self, until: i64) {
        while self.machine.now < at(until) {
            self.complete();
            self.arrive();
            self.machine.settle();
            let timer = self.machine.engine.next_timer().unwrap_or(Instant::MAX);
            assert!(timer > self.machine.now, "a timer that is due has been fired");
            let stop = self.next().min(timer).min(at(until));
            let traces = &mut self.traces;
            self.machine.advance(stop, |thread, start, end| {
                let trace = traces.iter_mut().find(|trace| trace.thread == thread).expect("it is ours");
                trace.received += end - start;
                match trace.supply.last_mut() {
                    Some(last) if last.1 == start => last.1 = end,
                    _ => trace.supply.push((start, end)),
                }
            });
        }
    }

    fn complete(&mut self) {
        for trace in &mut self.traces {
            if self.machine.wants(trace.thread) && trace.left() == Duration::ZERO {
                trace.ends.push(self.machine.now);
                trace.received = Duration::ZERO;
                self.machine.release(trace.thread);
                if trace.is_at_work() {
                    self.machine.request(trace.thread, trace.job());
                }
            }
        }
    }

    fn arrive(&mut self) {
        for trace in &mut self.traces {
            while trace.pieces.get(trace.arrived).is_some_and(|piece| at(piece.arrival) <= self.machine.now) {
                trace.arrived += 1;
            }
            if trace.is_at_work() && !self.machine.wants(trace.thread) {
                self.machine.request(trace.thread, trace.job());
            }
        }
    }

    fn next(&self) -> Instant {
        let arrivals = self.traces.iter().filter_map(|trace| trace.pieces.get(trace.arrived));
        let running: Vec<VpId> = self.machine.running().flatten().collect();
        let ends = self.traces.iter().filter(|trace| running.contains(&trace.thread));
        let ends = ends.map(|trace| self.machine.now + trace.left());
        arrivals.map(|piece| at(piece.arrival)).chain(ends).min().unwrap_or(Instant::MAX)
    }
}
