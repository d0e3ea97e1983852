//! The engine: an arena of schedulers and virtual processors that is driven to a fixed point.

use super::custody::Custody;
use super::membership::Seat;
use super::vp::{Bottom, Context, ProcessorId, Top, Vp, VpId, VpState};
use super::{Action, Message, Parameters, Refusal, SchedulerId, Wake};
use crate::job::Job;
use std::collections::VecDeque;
use std::num::NonZeroU64;
use talea_time::{Instant, Work};

/// A thread and which of its requests it is running for, so that two jobs of one thread can be told apart.
///
/// One word, as it is read right after it is written: what is written in parts and read as a whole stalls a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// One more than the thread's number in the upper half, its request's in the lower.
    word: NonZeroU64,
}

impl Occupant {
    #[inline]
    pub(super) fn new(thread: VpId, epoch: u32) -> Self {
        let word = (u64::from(thread.0) + 1) << 32 | u64::from(epoch);
        Occupant { word: NonZeroU64::new(word).expect("one more than a number") }
    }

    /// The thread.
    #[inline]
    pub fn thread(self) -> VpId {
        VpId((self.word.get() >> 32) as u32 - 1)
    }

    /// Number of its request.
    #[inline]
    pub fn epoch(self) -> u32 {
        self.word.get() as u32
    }
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

/// A virtual processor has come into another state, or wants its processor for another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The virtual processor.
    pub vp: VpId,
    /// Its state from now on.
    pub state: VpState,
    /// What has brought it about.
    pub trigger: Trigger,
}

/// What the hierarchy was told from outside, of which transitions are the consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A thread wants a processor, or none any more.
    Thread(VpId),
    /// A thread wants its processor for another job.
    Job(VpId),
    /// The time for which a scheduler had asked: the end of a budget, quantum, slot or period.
    Timer,
    /// Schedulers were asked again when all that happens at the instant was known.
    SchedulingPoint,
    /// The hierarchy or what is asked for on an edge was changed.
    Change,
    /// The machine took a processor away, or gave it back.
    Supply,
}

#[derive(Clone)]
pub(super) struct Processor {
    pub root: Option<VpId>,
    /// Who may decide about the processor: the scheduler that was granted it last and has not passed it on.
    /// Kept to assert that schedulers give away only what they hold.
    pub holder: Option<SchedulerId>,
    /// Who is being told that the processor is revoked, and will pass it on.
    pub revoking: Option<SchedulerId>,
    /// The machine has [taken it away](Engine::take_away).
    pub(super) is_away: bool,
    /// The thread that runs now, in the course of a fixed point.
    pub(super) current: Option<Occupant>,
    /// The thread that ran when the last list of switches was taken.
    announced: Option<Occupant>,
}

/// A hierarchy of schedulers over the processors of one machine.
///
/// The driver tells what threads do ([`request`](Engine::request), [`release`](Engine::release)) and that
/// time has come ([`fire_timers`](Engine::fire_timers)), in any number at one instant, and then asks with
/// [`settle`](Engine::settle) what the processors are to do. Calls come with instants that never decrease.
///
/// A copy decides as the original would. So several changes of which all or none are wanted can be tried on a copy and
/// then, if none was refused, made.
#[derive(Clone)]
pub struct Engine {
    pub(super) seats: Vec<Seat>,
    pub(super) free_seats: Vec<u32>,
    pub(super) vps: Vec<Vp>,
    /// By VP: what was asked for on the edge.
    pub(super) parameters: Vec<Parameters>,
    pub(super) free_vps: Vec<VpId>,
    pub(super) processors: Vec<Processor>,
    /// Actions still to be applied, the next one last.
    pub(super) pending: Vec<(SchedulerId, Action)>,
    /// Schedulers to be asked at the scheduling point.
    pub(super) reconsider: VecDeque<SchedulerId>,
    /// Those that, while they were asked, asked for it again.
    pub(super) reconsider_next: Vec<SchedulerId>,
    switches: Vec<Switch>,
    /// Whether any scheduler has ever asked for a timer; most compositions never do.
    pub(super) uses_timers: bool,
    /// Transitions since they were last taken, if anybody watches.
    pub(super) transitions: Option<Vec<Transition>>,
    /// What the engine was told last.
    pub(super) trigger: Trigger,
    /// The VPs of a scheduler that is being replaced.
    pub(super) custody: Vec<Custody>,
    pub(super) now: Instant,
}

impl Engine {
    /// An engine for a machine of `processors` processors without schedulers.
    pub fn new(processors: usize) -> Self {
        let processors: Vec<Processor> = (0..processors)
            .map(|_| Processor {
                root: None,
                holder: None,
                revoking: None,
                is_away: false,
                current: None,
                announced: None,
            })
            .collect();
        Engine {
            seats: Vec::new(),
            free_seats: Vec::new(),
            vps: Vec::new(),
            parameters: Vec::new(),
            free_vps: Vec::new(),
            pending: Vec::new(),
            reconsider: VecDeque::new(),
            reconsider_next: Vec::new(),
            switches: Vec::with_capacity(processors.len()),
            processors,
            uses_timers: false,
            transitions: None,
            trigger: Trigger::Change,
            custody: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// Number of processors.
    pub fn processors(&self) -> usize {
        self.processors.len()
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
        self.trigger = Trigger::Thread(thread);
        let mut actor = self.parent(thread);
        let decision = self.apply_request(thread, &mut actor);
        self.run_to_fixed_point(actor, decision);
    }

    /// The thread, which wants a processor, wants it for another job from now on, of which nothing has been done.
    ///
    /// # Panics
    /// If it is Waiting, or time ran backwards.
    pub fn change_job(&mut self, thread: VpId, job: Job, now: Instant) {
        self.advance(now);
        self.vps[thread.index()].begin_job(job, now);
        self.trigger = Trigger::Job(thread);
        self.moved(thread);
        let mut actor = self.parent(thread);
        let decision = self.tell_of_job(thread, &mut actor);
        self.run_to_fixed_point(actor, decision);
    }

    /// The thread has done its job, and the next one waits already: it goes on to want a processor, and keeps the one it has until the
    /// hierarchy decides otherwise. Demand is continuous from the release of a job to its end, so a thread that has work left has
    /// not slept, and nobody's account begins anew. Returns how long it ran for the job that is done.
    ///
    /// # Panics
    /// If it is Waiting, or time ran backwards.
    pub fn follow(&mut self, thread: VpId, next: Job, now: Instant) -> Work {
        self.advance(now);
        let burst = self.context().burst(thread);
        self.vps[thread.index()].begin_job(next, now);
        self.trigger = Trigger::Job(thread);
        self.moved(thread);
        let parent = self.parent(thread);
        let cx = Context { now: self.now, vps: &self.vps };
        let decision = self.seats[parent.index()].scheduler.job_followed(&cx, thread, burst);
        self.run_to_fixed_point(parent, decision);
        burst
    }

    /// Whether a scheduler above the thread asks another one for guarantees for single jobs, of which this is one: then it has to be
    /// told which job the thread is at.
    pub fn asks_by_jobs(&self, thread: VpId) -> bool {
        let Top::Scheduler(parent) = self.vps[thread.index()].top else { return false };
        self.seats[parent.index()].own.iter().any(|own| self.vps[own.index()].passes_jobs)
    }

    /// The thread blocks, ends its job, or is told to give up. Returns how long it ran for this request.
    ///
    /// # Panics
    /// If it is Waiting, or time ran backwards.
    pub fn release(&mut self, thread: VpId, now: Instant) -> Work {
        self.advance(now);
        debug_assert_eq!(self.vps[thread.index()].bottom, Bottom::Thread);
        let burst = self.context().burst(thread);
        self.trigger = Trigger::Thread(thread);
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
        if !self.is_seated(to) {
            return Err(Refusal::Gone);
        }
        let seat = &mut self.seats[to.index()];
        let is_child = |vp: VpId| self.vps.get(vp.index()).is_some_and(|vp| vp.is_below(to));
        if child.is_some_and(|child| !is_child(child)) {
            return Err(Refusal::NotAChild { scheduler: seat.scheduler.kind() });
        }
        let cx = Context { now: self.now, vps: &self.vps };
        let decision = seat.scheduler.message(&cx, child, message)?;
        if let (Some(child), Message::Change(parameters)) = (child, message) {
            self.parameters[child.index()] = parameters;
        }
        self.trigger = Trigger::Change;
        self.run_to_fixed_point(to, decision);
        if matches!(message, Message::Change(_)) {
            self.mark_passing();
        }
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
                self.call_timer(self.seats[index].id);
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
        self.trigger = Trigger::SchedulingPoint;
        let mut patience = 16 * self.seats.len() * self.vps.len();
        while let Some(id) = self.reconsider.pop_front() {
            self.seats[id.index()].at_scheduling_point = false;
            // One decision may be too small for all that has to change, so the scheduler is asked until it
            // has come to rest.
            while self.ask(id) {
                assert!(patience > 0, "schedulers that reconsider come to rest");
                patience -= 1;
            }
        }
        for id in self.reconsider_next.drain(..) {
            let seat = &mut self.seats[id.index()];
            seat.at_next_scheduling_point = false;
            seat.at_scheduling_point = true;
            self.reconsider.push_back(id);
        }
    }

    /// Keeps every transition of a virtual processor from now on until it is taken.
    pub fn watch(&mut self) {
        // Rarely more in one call: each switch of each processor changes a few edges on every level.
        const AT_ONCE: usize = 1024;
        self.transitions.get_or_insert_with(|| Vec::with_capacity(AT_ONCE));
    }

    /// Takes the transitions since the last time, in order: none unless somebody [watches](Engine::watch). All of them
    /// happened at instants of calls in between.
    pub fn transitions(&mut self) -> impl Iterator<Item = Transition> {
        self.transitions.iter_mut().flat_map(|transitions| transitions.drain(..))
    }

    #[inline]
    pub(super) fn moved(&mut self, vp: VpId) {
        if let Some(transitions) = &mut self.transitions {
            let (state, trigger) = (self.vps[vp.index()].state, self.trigger);
            transitions.push(Transition { vp, state, trigger });
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

    /// Lets the engine know that it is `now`: for those that are added next.
    ///
    /// # Panics
    /// If time ran backwards.
    pub fn advance(&mut self, now: Instant) {
        assert!(now >= self.now, "time runs forward: {now} after {}", self.now);
        self.now = now;
    }

    fn call_timer(&mut self, id: SchedulerId) {
        self.trigger = Trigger::Timer;
        let cx = Context { now: self.now, vps: &self.vps };
        let decision = self.seats[id.index()].scheduler.timer(&cx);
        self.run_to_fixed_point(id, decision);
    }

    /// Calls the timer at the scheduling point. Returns whether that changed anything.
    pub(super) fn ask(&mut self, id: SchedulerId) -> bool {
        let cx = Context { now: self.now, vps: &self.vps };
        let seat = &mut self.seats[id.index()];
        let mut decision = seat.scheduler.timer(&cx);
        if decision.timer() == Wake::AtSchedulingPoint {
            decision = decision.wake(Wake::Keep);
            if !seat.at_next_scheduling_point {
                seat.at_next_scheduling_point = true;
                self.reconsider_next.push(id);
            }
        }
        if decision.is_empty() {
            self.set_timer(id, decision.timer());
            return false;
        }
        self.run_to_fixed_point(id, decision);
        true
    }
}
