//! Threads under a hierarchy of schedulers, in virtual time.
//!
//! The same [`Engine`] decides as over real threads. A thread's demand is a [`Load`]; what becomes of it is counted by
//! thread ([`ThreadTally`]), and what every virtual processor receives is compared with its guarantee by
//! [`Monitor`]s. Nothing that is kept grows with simulated time, only with the backlog.
//!
//! At one instant, in this order: bursts end; bursts arrive; schedulers' timers fire; then the hierarchy decides once.
//!
//! A switch costs processor time: whoever gets a processor that another thread had works only after it. To the
//! hierarchy that is service, as on a real machine.

mod actor;

use actor::{Actor, Finished};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{Monitor, Standing, Tally, Violation};
use talea_model::Execution;
use talea_policy::hierarchy::{Engine, ProcessorId, Switch, VpId, VpState};
use talea_time::{Duration, Instant, Work};

/// When a thread wants a processor.
#[derive(Clone, Debug, PartialEq)]
pub enum Load {
    /// Always.
    Endless,
    /// In bursts.
    Bursts {
        /// How long each takes.
        exec: Execution,
        /// What a scheduler is told before that it takes.
        wcet: Work,
        /// From one arrival to the next; longer than zero.
        period: Duration,
        /// When the first arrives.
        phase: Duration,
        /// How long after its arrival each is to be done.
        deadline: Duration,
    },
}

/// What became of a thread's demand so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTally {
    /// Processor time it has had, costs included.
    pub received: Work,
    /// Bursts that have arrived.
    pub arrived: u64,
    /// Bursts that have ended by their deadlines.
    pub met: u64,
    /// Bursts that have ended later.
    pub late: u64,
    /// The longest time from arrival to end.
    pub longest_response: Duration,
    /// How often it got a processor.
    pub grants: u64,
}

/// What has happened on the whole so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Scheduling events: bursts that arrived and ended, and timers that fired.
    pub events: u64,
    /// Times a processor changed hands, to and from idleness too.
    pub switches: u64,
    /// Processor time that switches cost.
    pub overhead: Work,
}

/// Something a simulation tells while it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A processor changes hands.
    Switch(Switch),
    /// A guarantee was broken.
    Broken(VpId, Violation),
}

#[derive(Clone, Copy, Debug)]
struct Processor {
    thread: Option<u32>,
    /// Who had it last, though it was idle since.
    last: Option<u32>,
    /// Until then the switch is being paid.
    paying_until: Instant,
}

/// Threads under a hierarchy, from instant 0 on.
pub struct ThreadSimulation {
    engine: Engine,
    actors: Vec<Actor>,
    /// By VP number: which actor.
    actor_of: Vec<Option<u32>>,
    /// Next arrivals.
    arrivals: BinaryHeap<Reverse<(Instant, u32)>>,
    processors: Vec<Processor>,
    /// By VP number.
    monitors: Vec<Option<Monitor>>,
    switch: Work,
    now: Instant,
    counts: Counts,
}

impl ThreadSimulation {
    /// Threads of `engine`, all waiting, with their loads; draws come from `seed`, and a switch costs `switch`.
    ///
    /// # Panics
    /// If a period is not above zero, or a thread is given twice.
    pub fn new(engine: Engine, threads: Vec<(VpId, Load)>, seed: u64, switch: Work) -> Self {
        let processor = Processor { thread: None, last: None, paying_until: Instant::ZERO };
        let mut simulation = ThreadSimulation {
            processors: vec![processor; engine.processors()],
            engine,
            actors: Vec::with_capacity(threads.len()),
            actor_of: Vec::new(),
            arrivals: BinaryHeap::with_capacity(threads.len()),
            monitors: Vec::new(),
            switch,
            now: Instant::ZERO,
            counts: Counts::default(),
        };
        for (vp, load) in threads {
            simulation.add(vp, load, seed);
        }
        simulation
    }

    fn add(&mut self, vp: VpId, load: Load, seed: u64) {
        let number = self.actors.len() as u32;
        if self.actor_of.len() <= vp.index() {
            self.actor_of.resize(vp.index() + 1, None);
        }
        assert!(self.actor_of[vp.index()].replace(number).is_none(), "a thread has one load");
        let actor = Actor::new(vp, load, seed, number);
        self.arrivals.push(Reverse((actor.next_arrival(), number)));
        self.actors.push(actor);
    }

    /// Holds whoever schedules `vp` to `guarantee` from now on. What is short by no more than `tolerance` is none.
    pub fn monitor(&mut self, vp: VpId, guarantee: &Guarantee, tolerance: Duration) {
        self.engine.watch();
        if self.monitors.len() <= vp.index() {
            self.monitors.resize(vp.index() + 1, None);
        }
        let mut monitor = Monitor::new(guarantee, tolerance, self.now);
        monitor.note(self.now, standing(self.engine.context().state(vp)));
        self.monitors[vp.index()] = Some(monitor);
    }

    /// The instant up to which everything has happened.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The hierarchy.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What became of the demand of the thread `vp`; nothing if it has no load here.
    pub fn tally(&self, vp: VpId) -> Option<ThreadTally> {
        let actor = (*self.actor_of.get(vp.index())?)?;
        Some(self.actors[actor as usize].tally())
    }

    /// What `vp` has received beside its guarantee, if it is monitored.
    pub fn kept(&mut self, vp: VpId) -> Option<Tally> {
        let monitor = self.monitors.get_mut(vp.index())?.as_mut()?;
        monitor.note(self.now, standing(self.engine.context().state(vp)));
        Some(*monitor.tally())
    }

    /// What has happened on the whole.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Lets everything before `until` happen. Calling it in slices gives the same as at once.
    pub fn advance(&mut self, until: Instant, mut tell: impl FnMut(Instant, Happening)) {
        loop {
            let next = self.next();
            if next >= until {
                break;
            }
            self.pass(next);
            self.end_bursts();
            self.let_arrive();
            if self.engine.next_timer().is_some_and(|timer| timer <= next) {
                self.counts.events += 1;
                self.engine.fire_timers(next);
            }
            self.switch(&mut tell);
            self.judge(&mut tell);
        }
        if until > self.now {
            self.pass(until);
        }
    }

    /// The next instant at which anything happens.
    fn next(&self) -> Instant {
        let arrival = self.arrivals.peek().map_or(Instant::MAX, |first| first.0.0);
        let timer = self.engine.next_timer().unwrap_or(Instant::MAX);
        let ends = self.processors.iter().filter_map(|processor| {
            let actor = &self.actors[processor.thread? as usize];
            Some(actor.ends(self.now.max(processor.paying_until)))
        });
        // A timer may be overdue: it was asked for an instant that has passed.
        ends.fold(arrival.min(timer), Instant::min).max(self.now)
    }

    /// Whoever runs works until `to`.
    fn pass(&mut self, to: Instant) {
        for processor in &self.processors {
            if let Some(thread) = processor.thread {
                let actor = &mut self.actors[thread as usize];
                actor.receive((to - self.now).as_work());
                let from = self.now.max(processor.paying_until);
                if to > from {
                    actor.work((to - from).as_work());
                }
            }
        }
        self.now = to;
    }

    fn end_bursts(&mut self) {
        for index in 0..self.processors.len() {
            let Some(thread) = self.processors[index].thread else { continue };
            if self.processors[index].paying_until > self.now {
                continue;
            }
            let actor = &mut self.actors[thread as usize];
            // Bursts that need nothing end as soon as they are begun.
            while let Some(finished) = actor.finish(self.now) {
                self.counts.events += 1;
                self.engine.release(actor.vp(), self.now);
                match finished {
                    Finished::Last => break,
                    // A new job, which its scheduler may rank differently.
                    Finished::Next(job) => self.engine.request(actor.vp(), job, self.now),
                }
                if self.engine.running(ProcessorId::from_index(index as u16)).map(|now| now.thread)
                    != Some(actor.vp())
                {
                    break;
                }
            }
        }
    }

    fn let_arrive(&mut self) {
        while let Some(mut first) = self.arrivals.peek_mut() {
            let Reverse((at, number)) = *first;
            if at > self.now {
                break;
            }
            let actor = &mut self.actors[number as usize];
            let begun = actor.arrive(self.now);
            *first = Reverse((actor.next_arrival(), number));
            drop(first);
            self.counts.events += 1;
            if let Some(job) = begun {
                self.engine.request(actor.vp(), job, self.now);
            }
        }
    }

    fn switch(&mut self, tell: &mut impl FnMut(Instant, Happening)) {
        let now = self.now;
        for &switch in self.engine.settle(now) {
            let processor = &mut self.processors[switch.processor.index()];
            let thread = switch.to.and_then(|to| self.actor_of[to.thread.index()]);
            if processor.thread == thread {
                // Another job of the same thread.
                continue;
            }
            self.counts.switches += 1;
            processor.thread = thread;
            if let Some(thread) = thread {
                self.actors[thread as usize].granted();
                if processor.last.replace(thread).is_some_and(|last| last != thread) {
                    processor.paying_until = now + self.switch.at_full_speed();
                    self.counts.overhead += self.switch;
                }
            }
            tell(now, Happening::Switch(switch));
        }
    }

    fn judge(&mut self, tell: &mut impl FnMut(Instant, Happening)) {
        for transition in self.engine.transitions() {
            let monitor = self.monitors.get_mut(transition.vp.index());
            let Some(monitor) = monitor.and_then(Option::as_mut) else { continue };
            if let Some(violation) = monitor.note(self.now, standing(transition.state)) {
                tell(self.now, Happening::Broken(transition.vp, violation));
            }
        }
    }
}

fn standing(state: VpState) -> Standing {
    match state {
        VpState::Waiting => Standing::Waiting,
        VpState::Ready => Standing::Ready,
        VpState::Running(_) => Standing::Running,
    }
}
