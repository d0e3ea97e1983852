//! A virtual clock for one engine on one processor: threads with bursts of work.

use talea_policy::hierarchy::{Engine, ProcessorId, VpId};
use talea_policy::job::Job;
use talea_time::{Duration, Instant, Work};

/// What comes first of what happens at one instant; timers come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Arrivals,
    Completions,
}

/// A thread with its bursts: arrival and work, in order. Bursts that arrive while it works queue up.
pub(super) struct Actor {
    pub thread: VpId,
    bursts: Vec<(Instant, Work)>,
    arrived: usize,
    /// Bursts done.
    pub done: usize,
    /// Received of the burst that is being worked on.
    received: Work,
}

impl Actor {
    pub fn new(thread: VpId, bursts: Vec<(Instant, Work)>) -> Self {
        Actor { thread, bursts, arrived: 0, done: 0, received: Work::ZERO }
    }

    fn is_at_work(&self) -> bool {
        self.done < self.arrived
    }

    fn left(&self) -> Work {
        self.bursts[self.done].1 - self.received
    }
}

/// `start..end` of a burst of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub start: Instant,
    pub end: Instant,
    pub actor: usize,
    pub burst: usize,
}

/// What happened.
#[derive(Default)]
pub(super) struct History {
    /// Merged.
    pub pieces: Vec<Piece>,
    /// Actor, burst, end.
    pub finished: Vec<(usize, usize, Instant)>,
}

pub(super) struct Clock {
    pub engine: Engine,
    pub actors: Vec<Actor>,
    first: First,
    now: Instant,
    history: History,
}

impl Clock {
    pub fn new(engine: Engine, actors: Vec<Actor>, first: First) -> Self {
        Clock { engine, actors, first, now: Instant::ZERO, history: History::default() }
    }

    /// Plays everything before `horizon`; the thread that runs then stops.
    pub fn run(mut self, horizon: Instant) -> History {
        loop {
            match self.first {
                First::Arrivals => {
                    self.arrive();
                    self.complete();
                }
                First::Completions => {
                    self.complete();
                    self.arrive();
                }
            }
            if self.engine.next_timer().is_some_and(|timer| timer <= self.now) {
                self.engine.fire_timers(self.now);
            }
            let _ = self.engine.settle(self.now);
            self.engine.check_invariants();
            let next = self.next().min(horizon);
            self.pass(next);
            if next == horizon {
                break;
            }
        }
        self.complete();
        if let Some(running) = self.running() {
            self.engine.release(self.actors[running].thread, self.now);
        }
        self.history
    }

    fn running(&self) -> Option<usize> {
        let occupant = self.engine.running(ProcessorId::from_index(0))?;
        self.actors.iter().position(|actor| actor.thread == occupant.thread())
    }

    fn arrive(&mut self) {
        for actor in &mut self.actors {
            let was_at_work = actor.is_at_work();
            while actor.bursts.get(actor.arrived).is_some_and(|(arrival, _)| *arrival <= self.now) {
                actor.arrived += 1;
            }
            if actor.is_at_work() && !was_at_work {
                let wcet = actor.bursts[actor.done].1;
                let tag = actor.thread.index() as u32;
                let job = Job {
                    release: self.now,
                    deadline: Instant::MAX,
                    wcet,
                    rank: 0,
                    number: actor.done as u64,
                    tag,
                };
                self.engine.request(actor.thread, job, self.now);
            }
        }
    }

    fn complete(&mut self) {
        let Some(running) = self.running() else { return };
        let actor = &mut self.actors[running];
        if actor.left() > Work::ZERO {
            return;
        }
        self.history.finished.push((running, actor.done, self.now));
        actor.done += 1;
        actor.received = Work::ZERO;
        if !actor.is_at_work() {
            let thread = actor.thread;
            self.engine.release(thread, self.now);
        }
    }

    fn next(&self) -> Instant {
        let arrivals =
            self.actors.iter().filter_map(|actor| actor.bursts.get(actor.arrived)).map(|burst| burst.0);
        let completion = self.running().map(|running| self.now + self.actors[running].left().at_full_speed());
        arrivals.chain(completion).chain(self.engine.next_timer()).min().unwrap_or(Instant::MAX)
    }

    fn pass(&mut self, until: Instant) {
        if let Some(running) = self.running()
            && until > self.now
        {
            let actor = &mut self.actors[running];
            actor.received += (until - self.now).as_work();
            let burst = actor.done;
            match self.history.pieces.last_mut() {
                Some(last) if (last.end, last.actor, last.burst) == (self.now, running, burst) => {
                    last.end = until
                }
                _ => self.history.pieces.push(Piece { start: self.now, end: until, actor: running, burst }),
            }
        }
        self.now = until;
    }
}

/// An instant of a case.
pub(super) fn at(ns: i64) -> Instant {
    Instant::ZERO + Duration::from_nanos(ns)
}
