//! An observer that keeps its own books of who runs where and compares them with the engine's at every
//! decision.

use talea_policy::hierarchy::{Engine, Occupant, ProcessorId, Switch, VpId, VpState};
use talea_policy::job::Job;
use talea_time::{Instant, Work};

/// A machine as its operating system sees it: threads that want processors, and processors.
pub struct Machine {
    /// The engine that is watched.
    pub engine: Engine,
    /// The instant up to which everything has happened.
    pub now: Instant,
    running: Vec<Option<Occupant>>,
    /// By VP number: service since the last request, of those that want a processor.
    wanting: Vec<Option<Work>>,
    /// Every decision so far.
    pub log: Vec<(Instant, Switch)>,
}

impl Machine {
    /// A machine on which nobody wants anything yet.
    pub fn new(engine: Engine) -> Self {
        let running = vec![None; engine.processors()];
        Machine { engine, now: Instant::ZERO, running, wanting: Vec::new(), log: Vec::new() }
    }

    /// Whether the thread wants a processor.
    pub fn wants(&self, thread: VpId) -> bool {
        self.wanting.get(thread.index()).is_some_and(Option::is_some)
    }

    /// The thread asks for a processor for this job.
    pub fn request(&mut self, thread: VpId, job: Job) {
        if self.wanting.len() <= thread.index() {
            self.wanting.resize(thread.index() + 1, None);
        }
        let old = self.wanting[thread.index()].replace(Work::ZERO);
        assert_eq!(old, None, "a thread asks once");
        self.engine.request(thread, job, self.now);
    }

    /// The thread ends its request. Its service must be what it was seen to run.
    pub fn release(&mut self, thread: VpId) {
        let seen = self.wanting[thread.index()].take().expect("it wants a processor");
        assert_eq!(self.engine.release(thread, self.now), seen, "service is the time on processors");
    }

    /// The thread ends its request and goes on with another one.
    pub fn follow(&mut self, thread: VpId, job: Job) {
        let seen = self.wanting[thread.index()].replace(Work::ZERO).expect("it wants a processor");
        assert_eq!(self.engine.follow(thread, job, self.now), seen, "service is the time on processors");
    }

    /// The threads on processors, by processor.
    pub fn running(&self) -> impl Iterator<Item = Option<VpId>> + '_ {
        self.running.iter().map(|occupant| occupant.map(|occupant| occupant.thread()))
    }

    /// Ends the scheduling point: the switches lead from the arrangement known to the engine's new one, each
    /// is a real one, and everybody's books agree.
    pub fn settle(&mut self) {
        let switches = self.engine.settle(self.now).to_vec();
        assert_eq!(switches, self.engine.switches());
        let mut changed = vec![false; self.running.len()];
        for switch in &switches {
            let index = switch.processor.index();
            assert!(!std::mem::replace(&mut changed[index], true), "a processor changes hands once");
            assert_eq!(self.running[index], switch.from, "a switch starts where the last one ended");
            assert_ne!(switch.from, switch.to, "a switch is a change");
            self.running[index] = switch.to;
            self.log.push((self.now, *switch));
        }
        self.engine.check_invariants();
        for (index, occupant) in self.running.iter().enumerate() {
            let processor = ProcessorId::from_index(index as u16);
            assert_eq!(self.engine.running(processor), *occupant, "the switches are complete");
        }
        self.compare_states();
    }

    fn compare_states(&self) {
        for (index, wanting) in self.wanting.iter().enumerate() {
            let thread = VpId::from_index(index as u32);
            let places: Vec<usize> = (0..self.running.len())
                .filter(|place| self.running[*place].is_some_and(|occupant| occupant.thread() == thread))
                .collect();
            assert!(places.len() <= 1, "a thread runs in one place");
            if wanting.is_none() {
                assert!(places.is_empty(), "who wants nothing runs nowhere");
                continue;
            }
            match self.engine.context().state(thread) {
                VpState::Waiting => panic!("the request of thread {index} is lost"),
                VpState::Ready => assert!(places.is_empty()),
                VpState::Running(processor) => assert_eq!(places, [processor.index()]),
            }
        }
    }

    /// Lets time pass up to `until`, firing timers on the way. Calls `ran` with every thread that ran,
    /// from when and until when.
    pub fn advance(&mut self, until: Instant, mut ran: impl FnMut(VpId, Instant, Instant)) {
        while self.now < until {
            let timer = self.engine.next_timer().filter(|timer| *timer <= until);
            let next = timer.unwrap_or(until);
            for occupant in self.running.iter().flatten() {
                let service = &mut self.wanting[occupant.thread().index()];
                *service.as_mut().expect("who runs wants to") += (next - self.now).as_work();
                ran(occupant.thread(), self.now, next);
            }
            self.now = next;
            if timer.is_some() {
                self.engine.fire_timers(self.now);
                self.settle();
            }
        }
    }
}
