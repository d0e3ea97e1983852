//! The engine: an arena of schedulers and virtual processors that is driven to a fixed point.

use super::vp::{Bottom, Context, ProcessorId, Top, Vp, VpId, VpState};
use super::{Action, Decision, Message, Parameters, Refusal, Scheduler, SchedulerId, Wake};
use crate::job::Job;
use std::collections::VecDeque;
use talea_time::{Instant, Work};

/// A thread and which of its requests it is running for, so that two jobs of one thread can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The thread.
    pub thread: VpId,
    /// Number of its request.
    pub epoch: u32,
}

/// A processor changes hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The processor.
    pub processor: ProcessorId,
    /// Who ran on it before; it may have released it since, or run elsewhere now.
    pub from: Option<Occupant>,
    /// Who runs on it now.
    pub to: Option<Occupant>,
}

/// A virtual processor has come into another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The virtual processor.
    pub vp: VpId,
    /// Its state from now on.
    pub state: VpState,
}

struct Processor {
    root: Option<VpId>,
    /// Who may decide about the processor: the scheduler that was granted it last and has not passed it on.
    /// Kept to assert that schedulers give away only what they hold.
    holder: Option<SchedulerId>,
    /// The thread that runs now, in the course of a fixed point.
    current: Option<Occupant>,
    /// The thread that ran when the last list of switches was taken.
    announced: Option<Occupant>,
}

struct Seat {
    scheduler: Box<dyn Scheduler>,
    timer: Option<Instant>,
    /// Whether it stands in [`Engine::reconsider`].
    at_scheduling_point: bool,
    /// Whether it stands in [`Engine::reconsider_next`].
    at_next_scheduling_point: bool,
}

/// A hierarchy of schedulers over the processors of one machine.
///
/// The driver tells what threads do ([`request`](Engine::request), [`release`](Engine::release)) and that
/// time has come ([`fire_timers`](Engine::fire_timers)), in any number at one instant, and then asks with
/// [`settle`](Engine::settle) what the processors are to do. Calls come with instants that never decrease.
pub struct Engine {
    seats: Vec<Seat>,
    vps: Vec<Vp>,
    free_vps: Vec<VpId>,
    processors: Vec<Processor>,
    /// Actions still to be applied, the next one last.
    pending: Vec<(SchedulerId, Action)>,
    /// Schedulers to be asked at the scheduling point.
    reconsider: VecDeque<SchedulerId>,
    /// Those that, while they were asked, asked for it again.
    reconsider_next: Vec<SchedulerId>,
    switches: Vec<Switch>,
    /// Whether any scheduler has ever asked for a timer; most compositions never do.
    uses_timers: bool,
    /// Transitions since they were last taken, if anybody watches.
    transitions: Option<Vec<Transition>>,
    now: Instant,
}

impl Engine {
    /// An engine for a machine of `processors` processors without schedulers.
    pub fn new(processors: usize) -> Self {
        let processors: Vec<Processor> = (0..processors)
            .map(|_| Processor { root: None, holder: None, current: None, announced: None })
            .collect();
        Engine {
            seats: Vec::new(),
            vps: Vec::new(),
            free_vps: Vec::new(),
            pending: Vec::new(),
            reconsider: VecDeque::new(),
            reconsider_next: Vec::new(),
            switches: Vec::with_capacity(processors.len()),
            processors,
            uses_timers: false,
            transitions: None,
            now: Instant::ZERO,
        }
    }

    /// Number of processors.
    pub fn processors(&self) -> usize {
        self.processors.len()
    }

    /// Adds the root: the machine grants it every processor it asks for.
    ///
    /// # Panics
    /// If there is a root already.
    pub fn add_root(&mut self, scheduler: Box<dyn Scheduler>) -> SchedulerId {
        assert!(self.processors.iter().all(|processor| processor.root.is_none()), "a machine has one root");
        let id = self.seat(scheduler);
        for index in 0..self.processors.len() {
            let vp = self.allocate(Vp::new(Top::Machine(ProcessorId(index as u16)), Bottom::Scheduler(id)));
            self.processors[index].root = Some(vp);
            self.seats[id.0 as usize].scheduler.init(vp);
        }
        id
    }

    /// Adds a scheduler under one parent or, for a join, several.
    ///
    /// # Errors
    /// The first parent's refusal; the hierarchy is then as before.
    pub fn add(
        &mut self,
        scheduler: Box<dyn Scheduler>,
        parents: &[(SchedulerId, Parameters)],
    ) -> Result<SchedulerId, Refusal> {
        let id = SchedulerId(self.seats.len() as u32);
        let mut own: Vec<VpId> = Vec::new();
        for &(parent, parameters) in parents {
            match self.register(Vp::new(Top::Scheduler(parent), Bottom::Scheduler(id)), parent, parameters) {
                Ok(vp) => own.push(vp),
                Err(refusal) => {
                    own.into_iter().for_each(|vp| self.unregister(vp));
                    return Err(refusal);
                }
            }
        }
        let seated = self.seat(scheduler);
        debug_assert_eq!(seated, id);
        own.into_iter().for_each(|vp| self.seats[id.0 as usize].scheduler.init(vp));
        Ok(id)
    }

    /// Adds a thread under `parent`. It is Waiting.
    ///
    /// # Errors
    /// The parent's refusal.
    pub fn add_thread(&mut self, parent: SchedulerId, parameters: Parameters) -> Result<VpId, Refusal> {
        self.register(Vp::new(Top::Scheduler(parent), Bottom::Thread), parent, parameters)
    }

    /// Removes a thread.
    ///
    /// # Panics
    /// If it is not a thread or not Waiting.
    pub fn remove_thread(&mut self, thread: VpId) {
        assert_eq!(self.vps[thread.index()].bottom, Bottom::Thread, "only threads are removed here");
        assert_eq!(self.vps[thread.index()].state, VpState::Waiting, "a thread leaves while it waits");
        self.unregister(thread);
    }

    /// The thread unblocks and wants a processor for `job`.
    ///
    /// # Panics
    /// If it is not Waiting, or time ran backwards.
    pub fn request(&mut self, thread: VpId, job: Job, now: Instant) {
        self.advance(now);
        let vp = &mut self.vps[thread.index()];
        debug_assert_eq!(vp.bottom, Bottom::Thread);
        vp.job = job;
        let mut actor = self.parent(thread);
        let decision = self.apply_request(thread, &mut actor);
        self.run_to_fixed_point(actor, decision);
    }

    /// The thread blocks, ends its job, or is told to give up. Returns how long it ran for this request.
    ///
    /// # Panics
    /// If it is Waiting, or time ran backwards.
    pub fn release(&mut self, thread: VpId, now: Instant) -> Work {
        self.advance(now);
        debug_assert_eq!(self.vps[thread.index()].bottom, Bottom::Thread);
        let burst = self.context().burst(thread);
        let mut actor = self.parent(thread);
        let decision = self.apply_release(thread, &mut actor);
        self.run_to_fixed_point(actor, decision);
        burst
    }

    /// Sends a message to a scheduler, about a child of it or about itself.
    ///
    /// # Errors
    /// The scheduler's refusal; nothing has changed.
    pub fn message(
        &mut self,
        to: SchedulerId,
        child: Option<VpId>,
        message: Message,
        now: Instant,
    ) -> Result<(), Refusal> {
        self.advance(now);
        let decision = {
            let cx = Context { now: self.now, vps: &self.vps };
            self.seats[to.0 as usize].scheduler.message(&cx, child, message)?
        };
        self.run_to_fixed_point(to, decision);
        Ok(())
    }

    /// The earliest instant at which a scheduler wants its timer.
    pub fn next_timer(&self) -> Option<Instant> {
        if !self.uses_timers {
            return None;
        }
        self.seats.iter().filter_map(|seat| seat.timer).min()
    }

    /// Fires every timer that is due, in the order of the schedulers.
    pub fn fire_timers(&mut self, now: Instant) {
        self.advance(now);
        for index in 0..self.seats.len() {
            if self.seats[index].timer.is_some_and(|due| due <= now) {
                self.seats[index].timer = None;
                self.call_timer(SchedulerId(index as u32));
            }
        }
    }

    /// Ends the scheduling point: asks the schedulers that wanted to reconsider, and returns every processor
    /// that changes hands. A processor that was given away and back within the instant does not.
    pub fn settle(&mut self, now: Instant) -> &[Switch] {
        self.advance(now);
        if !self.reconsider.is_empty() {
            self.reconsider();
        }
        self.switches.clear();
        for (index, processor) in self.processors.iter_mut().enumerate() {
            if processor.current != processor.announced {
                let processor_id = ProcessorId(index as u16);
                let (from, to) = (processor.announced, processor.current);
                self.switches.push(Switch { processor: processor_id, from, to });
                processor.announced = processor.current;
            }
        }
        &self.switches
    }

    /// Asks every scheduler that wanted to be asked at the scheduling point, and those to whom something happens on
    /// the way that makes them want it too. Who asks again while it is asked means the next scheduling point.
    fn reconsider(&mut self) {
        // Each moves each VP a few times at most, or they disagree forever.
        let mut patience = 16 * self.seats.len() * self.vps.len();
        while let Some(id) = self.reconsider.pop_front() {
            self.seats[id.0 as usize].at_scheduling_point = false;
            // One decision may be too small for all that has to change, so the scheduler is asked until it
            // has come to rest.
            while self.ask(id) {
                assert!(patience > 0, "schedulers that reconsider come to rest");
                patience -= 1;
            }
        }
        for id in self.reconsider_next.drain(..) {
            let seat = &mut self.seats[id.0 as usize];
            seat.at_next_scheduling_point = false;
            seat.at_scheduling_point = true;
            self.reconsider.push_back(id);
        }
    }

    /// Keeps every transition of a virtual processor from now on until it is taken.
    pub fn watch(&mut self) {
        self.transitions.get_or_insert_default();
    }

    /// Takes the transitions since the last time, in order: none unless somebody [watches](Engine::watch). All of them
    /// happened at instants of calls in between.
    pub fn transitions(&mut self) -> impl Iterator<Item = Transition> {
        self.transitions.iter_mut().flat_map(|transitions| transitions.drain(..))
    }

    #[inline]
    fn moved(&mut self, vp: VpId) {
        if let Some(transitions) = &mut self.transitions {
            transitions.push(Transition { vp, state: self.vps[vp.index()].state });
        }
    }

    /// What the last [`Engine::settle`] returned.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// The thread that runs on `processor`.
    pub fn running(&self, processor: ProcessorId) -> Option<Occupant> {
        self.processors[processor.index()].current
    }

    /// The view schedulers have, at the instant of the last call.
    pub fn context(&self) -> Context<'_> {
        Context { now: self.now, vps: &self.vps }
    }

    /// Lets every scheduler check its invariants, and checks those of the hierarchy: a thread runs on a
    /// processor if and only if every VP on one path from it to the root does.
    ///
    /// # Panics
    /// If one is broken.
    pub fn check_invariants(&self) {
        let cx = self.context();
        self.seats.iter().for_each(|seat| seat.scheduler.check_invariants(&cx));
        for (index, processor) in self.processors.iter().enumerate() {
            let here = VpState::Running(ProcessorId(index as u16));
            let on_path = self.vps.iter().filter(|vp| vp.bottom != Bottom::Nobody && vp.state == here);
            let threads = on_path.clone().filter(|vp| vp.bottom == Bottom::Thread).count();
            assert_eq!(threads, usize::from(processor.current.is_some()), "one thread runs on a processor");
            let held = processor.root.is_some_and(|root| self.vps[root.index()].state == here);
            assert_eq!(held, on_path.count() > 0, "whoever runs does so below the root");
        }
    }

    fn seat(&mut self, scheduler: Box<dyn Scheduler>) -> SchedulerId {
        self.seats.push(Seat {
            scheduler,
            timer: None,
            at_scheduling_point: false,
            at_next_scheduling_point: false,
        });
        // One path of the hierarchy at a time has decisions under way, and nobody is in the list twice.
        self.pending.reserve(self.seats.len() * Decision::CAPACITY);
        self.reconsider.reserve(self.seats.len());
        self.reconsider_next.reserve(self.seats.len());
        SchedulerId(self.seats.len() as u32 - 1)
    }

    fn allocate(&mut self, vp: Vp) -> VpId {
        match self.free_vps.pop() {
            Some(id) => {
                self.vps[id.index()] = vp;
                id
            }
            None => {
                self.vps.push(vp);
                VpId(self.vps.len() as u32 - 1)
            }
        }
    }

    fn register(&mut self, vp: Vp, parent: SchedulerId, parameters: Parameters) -> Result<VpId, Refusal> {
        let id = self.allocate(vp);
        let cx = Context { now: self.now, vps: &self.vps };
        match self.seats[parent.0 as usize].scheduler.register(&cx, id, parameters) {
            Ok(()) => Ok(id),
            Err(refusal) => {
                self.vps[id.index()].bottom = Bottom::Nobody;
                self.free_vps.push(id);
                Err(refusal)
            }
        }
    }

    fn unregister(&mut self, vp: VpId) {
        let parent = self.parent(vp);
        let cx = Context { now: self.now, vps: &self.vps };
        self.seats[parent.0 as usize].scheduler.unregister(&cx, vp);
        self.vps[vp.index()].bottom = Bottom::Nobody;
        self.free_vps.push(vp);
    }

    fn advance(&mut self, now: Instant) {
        assert!(now >= self.now, "time runs forward: {now} after {}", self.now);
        self.now = now;
    }

    fn call_timer(&mut self, id: SchedulerId) {
        let cx = Context { now: self.now, vps: &self.vps };
        let decision = self.seats[id.0 as usize].scheduler.timer(&cx);
        self.run_to_fixed_point(id, decision);
    }

    /// Calls the timer at the scheduling point. Returns whether that changed anything.
    fn ask(&mut self, id: SchedulerId) -> bool {
        let cx = Context { now: self.now, vps: &self.vps };
        let seat = &mut self.seats[id.0 as usize];
        let mut decision = seat.scheduler.timer(&cx);
        if decision.timer() == Wake::AtSchedulingPoint {
            decision = decision.wake(Wake::Keep);
            if !seat.at_next_scheduling_point {
                seat.at_next_scheduling_point = true;
                self.reconsider_next.push(id);
            }
        }
        let changes = !decision.actions().is_empty();
        self.run_to_fixed_point(id, decision);
        changes
    }

    /// Applies `actor`'s decision and all that follows from it. What follows from one action comes before
    /// the decision's next action.
    ///
    /// Whoever an action reaches answers with a decision of its own; the functions below write who that is
    /// to `actor`, because a decision that is returned alone is built in place and not copied.
    fn run_to_fixed_point(&mut self, mut actor: SchedulerId, mut decision: Decision) {
        loop {
            self.set_timer(actor, decision.timer());
            let next = match decision.actions() {
                [] => self.pending.pop(),
                [first, rest @ ..] => {
                    for &action in rest.iter().rev() {
                        self.pending.push((actor, action));
                    }
                    Some((actor, *first))
                }
            };
            let Some((scheduler, action)) = next else { return };
            actor = scheduler;
            decision = match action {
                Action::Revoke(child) => self.apply_revoke(child, &mut actor),
                Action::Grant(child, processor) => self.apply_grant(child, processor, &mut actor),
                Action::Request(own) => {
                    self.assert_own(scheduler, own);
                    self.apply_request(own, &mut actor)
                }
                Action::Release(own) => {
                    self.assert_own(scheduler, own);
                    self.apply_release(own, &mut actor)
                }
                Action::Announce(own, deadline) => {
                    self.assert_own(scheduler, own);
                    self.apply_announcement(own, deadline, &mut actor)
                }
            };
        }
    }

    #[inline]
    fn set_timer(&mut self, scheduler: SchedulerId, wake: Wake) {
        let seat = &mut self.seats[scheduler.0 as usize];
        match wake {
            Wake::Keep => {}
            Wake::Never => seat.timer = None,
            Wake::At(instant) => {
                seat.timer = Some(instant);
                self.uses_timers = true;
            }
            Wake::AtSchedulingPoint => {
                if !seat.at_scheduling_point {
                    seat.at_scheduling_point = true;
                    self.reconsider.push_back(scheduler);
                }
            }
        }
    }

    /// Transition 1, and the parent's reaction.
    fn apply_request(&mut self, child: VpId, actor: &mut SchedulerId) -> Decision {
        let vp = &mut self.vps[child.index()];
        vp.request();
        let (top, bottom) = (vp.top, vp.bottom);
        self.moved(child);
        match (top, bottom) {
            (Top::Scheduler(parent), _) => {
                *actor = parent;
                let cx = Context { now: self.now, vps: &self.vps };
                self.seats[parent.0 as usize].scheduler.request(&cx, child)
            }
            (Top::Machine(processor), Bottom::Scheduler(root)) => {
                self.vps[child.index()].grant(processor, self.now);
                self.moved(child);
                self.processors[processor.index()].holder = Some(root);
                *actor = root;
                self.notify_grant(root, child, processor)
            }
            (Top::Machine(_), _) => unreachable!("below the machine there is only the root"),
        }
    }

    /// Transitions 4 and 5, and the parent's reaction.
    fn apply_release(&mut self, child: VpId, actor: &mut SchedulerId) -> Decision {
        let vp = &mut self.vps[child.index()];
        let held = vp.release(self.now);
        let (top, bottom) = (vp.top, vp.bottom);
        self.moved(child);
        if let Some(processor) = held {
            let processor = &mut self.processors[processor.index()];
            if bottom == Bottom::Thread {
                processor.current = None;
            } else {
                debug_assert_eq!(processor.current, None, "a scheduler releases what no child of it uses");
            }
            processor.holder = match top {
                Top::Scheduler(parent) => Some(parent),
                Top::Machine(_) => None,
            };
        }
        match (top, bottom) {
            (Top::Scheduler(parent), _) => {
                *actor = parent;
                let cx = Context { now: self.now, vps: &self.vps };
                self.seats[parent.0 as usize].scheduler.release(&cx, child, held)
            }
            (Top::Machine(_), Bottom::Scheduler(root)) => {
                *actor = root;
                Decision::NONE
            }
            (Top::Machine(_), _) => unreachable!("below the machine there is only the root"),
        }
    }

    /// Transition 2, and the child's reaction.
    fn apply_grant(&mut self, child: VpId, processor: ProcessorId, actor: &mut SchedulerId) -> Decision {
        let vp = &mut self.vps[child.index()];
        assert_eq!(vp.top, Top::Scheduler(*actor), "a scheduler grants to its own children");
        vp.grant(processor, self.now);
        let (bottom, epoch) = (vp.bottom, vp.epoch);
        self.moved(child);
        let place = &mut self.processors[processor.index()];
        assert_eq!(place.holder, Some(*actor), "a scheduler gives away only a processor it holds");
        match bottom {
            Bottom::Scheduler(id) => {
                place.holder = Some(id);
                *actor = id;
                self.notify_grant(id, child, processor)
            }
            Bottom::Thread => {
                place.holder = None;
                place.current = Some(Occupant { thread: child, epoch });
                Decision::NONE
            }
            Bottom::Nobody => unreachable!("an unregistered VP is never granted"),
        }
    }

    /// Stores the deadline; a parent that is already dealing with the VP is told.
    fn apply_announcement(&mut self, own: VpId, deadline: Instant, actor: &mut SchedulerId) -> Decision {
        let vp = &mut self.vps[own.index()];
        vp.job.deadline = deadline;
        match vp.top {
            Top::Scheduler(parent) if vp.state != VpState::Waiting => {
                *actor = parent;
                let cx = Context { now: self.now, vps: &self.vps };
                self.seats[parent.0 as usize].scheduler.announced(&cx, own)
            }
            _ => Decision::NONE,
        }
    }

    fn notify_grant(&mut self, to: SchedulerId, own: VpId, processor: ProcessorId) -> Decision {
        let cx = Context { now: self.now, vps: &self.vps };
        self.seats[to.0 as usize].scheduler.grant(&cx, own, processor)
    }

    /// Transition 3, and the child's reaction. The processor is the actor's again once the child has passed
    /// the revocation down, which happens before the actor's next action.
    fn apply_revoke(&mut self, child: VpId, actor: &mut SchedulerId) -> Decision {
        let vp = &mut self.vps[child.index()];
        assert_eq!(vp.top, Top::Scheduler(*actor), "a scheduler revokes from its own children");
        let processor = vp.revoke(self.now);
        let bottom = vp.bottom;
        self.moved(child);
        let place = &mut self.processors[processor.index()];
        // Further down the same revocation the processor already belongs to whoever started it.
        place.holder.get_or_insert(*actor);
        match bottom {
            Bottom::Thread => {
                place.current = None;
                Decision::NONE
            }
            Bottom::Scheduler(id) => {
                *actor = id;
                let cx = Context { now: self.now, vps: &self.vps };
                self.seats[id.0 as usize].scheduler.revoke(&cx, child, processor)
            }
            Bottom::Nobody => unreachable!("an unregistered VP never runs"),
        }
    }

    /// Who is above `child`, which is not the root's.
    fn parent(&self, child: VpId) -> SchedulerId {
        match self.vps[child.index()].top {
            Top::Scheduler(parent) => parent,
            Top::Machine(_) => panic!("root VPs are the machine's"),
        }
    }

    fn assert_own(&self, actor: SchedulerId, own: VpId) {
        let bottom = self.vps[own.index()].bottom;
        assert_eq!(bottom, Bottom::Scheduler(actor), "a scheduler asks and releases for itself only");
    }
}
