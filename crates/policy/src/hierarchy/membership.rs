//! Who sits where: seats for schedulers, numbers for virtual processors, and coming and going.
//!
//! Both are used again. A scheduler's id says how many sat in its seat before; a VP's number is an index of many tables, and
//! its requests are told from those of who had it before because their count goes on.

use super::engine::Engine;
use super::inspect::Vacant;
use super::vp::{Bottom, Context, ProcessorId, Top, Vp, VpId, VpState};
use super::{Decision, Parameters, Refusal, Scheduler, SchedulerId, Wake, Width};
use talea_time::Instant;

pub(super) struct Seat {
    pub scheduler: Box<dyn Scheduler>,
    /// Who sits here now.
    pub id: SchedulerId,
    /// The VPs of its own, in the order of its parents. None if nobody sits here.
    pub own: Vec<VpId>,
    pub timer: Option<Instant>,
    /// Whether it stands in [`Engine::reconsider`].
    pub at_scheduling_point: bool,
    /// Whether it stands in [`Engine::reconsider_next`].
    pub at_next_scheduling_point: bool,
}

impl Seat {
    fn empty(id: SchedulerId) -> Self {
        Seat {
            scheduler: Box::new(Vacant),
            id,
            own: Vec::new(),
            timer: None,
            at_scheduling_point: false,
            at_next_scheduling_point: false,
        }
    }
}

impl Clone for Seat {
    fn clone(&self) -> Self {
        Seat { scheduler: self.scheduler.duplicate(), own: self.own.clone(), ..*self }
    }
}

impl Engine {
    /// Adds the root: the machine grants it every processor it asks for.
    ///
    /// # Panics
    /// If there is a root already, or the scheduler cannot use as many processors as there are.
    pub fn add_root(&mut self, scheduler: Box<dyn Scheduler>) -> SchedulerId {
        assert!(self.processors.iter().all(|processor| processor.root.is_none()), "a machine has one root");
        check_width(scheduler.as_ref(), self.processors.len()).expect("the root is given every processor");
        let id = self.next_id();
        let own = (0..self.processors.len())
            .map(|index| {
                let top = Top::Machine(ProcessorId(index as u16));
                let vp = self.allocate(Vp::new(top, Bottom::Scheduler(id)), Parameters::None);
                self.processors[index].root = Some(vp);
                vp
            })
            .collect();
        self.seat(id, scheduler, own);
        id
    }

    /// Adds a scheduler under one parent or, for a join, several; under each as often as it is listed.
    ///
    /// # Errors
    /// The first parent's refusal, or that the scheduler uses one processor; the hierarchy is then as before.
    pub fn add(
        &mut self,
        scheduler: Box<dyn Scheduler>,
        parents: &[(SchedulerId, Parameters)],
    ) -> Result<SchedulerId, Refusal> {
        check_width(scheduler.as_ref(), parents.len())?;
        let id = self.next_id();
        let vp = |parent| Vp::new(Top::Scheduler(parent), Bottom::Scheduler(id));
        if parents.len() > 1 {
            let mut rehearsal = self.clone();
            for &(parent, parameters) in parents {
                rehearsal.register(vp(parent), parent, parameters)?;
            }
        }
        let mut own = Vec::with_capacity(parents.len());
        for &(parent, parameters) in parents {
            own.push(self.register(vp(parent), parent, parameters)?);
        }
        self.seat(id, scheduler, own);
        Ok(id)
    }

    /// Adds a thread under `parent`. It is Waiting.
    ///
    /// # Errors
    /// The parent's refusal.
    pub fn add_thread(&mut self, parent: SchedulerId, parameters: Parameters) -> Result<VpId, Refusal> {
        self.register(Vp::new(Top::Scheduler(parent), Bottom::Thread), parent, parameters)
    }

    /// Removes a thread. Its number is given to others later; their epochs go on from its last.
    ///
    /// # Panics
    /// If it is not a thread or not Waiting.
    pub fn remove_thread(&mut self, thread: VpId) {
        assert_eq!(self.vps[thread.index()].bottom, Bottom::Thread, "only threads are removed here");
        assert_eq!(self.vps[thread.index()].state, VpState::Waiting, "a thread leaves while it waits");
        self.unregister(thread);
    }

    /// The id of the next scheduler that is seated.
    fn next_id(&self) -> SchedulerId {
        match self.free_seats.last() {
            Some(seat) => self.seats[*seat as usize].id,
            None => SchedulerId { seat: self.seats.len() as u32, generation: 0 },
        }
    }

    /// Whether `id` is a scheduler that has not been removed.
    pub(super) fn is_seated(&self, id: SchedulerId) -> bool {
        self.seats.get(id.index()).is_some_and(|seat| seat.id == id && !seat.own.is_empty())
    }

    /// Seats a scheduler with `id`, which is the next.
    fn seat(&mut self, id: SchedulerId, mut scheduler: Box<dyn Scheduler>, own: Vec<VpId>) {
        debug_assert_eq!(id, self.next_id());
        own.iter().for_each(|vp| scheduler.init(*vp));
        if self.free_seats.pop().is_none() {
            self.seats.push(Seat::empty(id));
        }
        let seat = &mut self.seats[id.index()];
        (seat.scheduler, seat.own) = (scheduler, own);
        self.reserve();
        self.mark_passing();
    }

    /// Notes which schedulers pass on jobs: those that ask a parent for guarantees for single jobs, and all below them, as far as they have
    /// one parent each. Who has not done so, and wants a processor, does so at the scheduling point.
    pub(super) fn mark_passing(&mut self) {
        for index in 0..self.seats.len() {
            let [own] = self.seats[index].own[..] else { continue };
            let passes = self.is_to_pass(own);
            let vp = &mut self.vps[own.index()];
            if vp.passes_jobs == passes {
                continue;
            }
            (vp.passes_jobs, vp.behind) = (passes, None);
            if passes {
                self.set_timer(self.seats[index].id, Wake::AtSchedulingPoint);
            }
        }
    }

    fn is_to_pass(&self, own: VpId) -> bool {
        let mut own = own;
        while self.parameters[own.index()] != Parameters::Jobs {
            let Top::Scheduler(parent) = self.vps[own.index()].top else { return false };
            let [above] = self.seats[parent.index()].own[..] else { return false };
            own = above;
        }
        true
    }

    /// Room for all that a decision can lead to.
    fn reserve(&mut self) {
        // One path of the hierarchy at a time has decisions under way, and nobody is in the list twice.
        let more = |size: usize, len: usize| size.saturating_sub(len);
        let (pending, seats) = (self.seats.len() * Decision::CAPACITY, self.seats.len());
        self.pending.reserve(more(pending, self.pending.len()));
        self.reconsider.reserve(more(seats, self.reconsider.len()));
        self.reconsider_next.reserve(more(seats, self.reconsider_next.len()));
    }

    /// Empties the seat of a scheduler whose VPs are gone. Its id names nobody from now on.
    pub(super) fn unseat(&mut self, id: SchedulerId) -> Box<dyn Scheduler> {
        self.forget_wakes(id);
        let next = SchedulerId { generation: id.generation + 1, ..id };
        let seat = std::mem::replace(&mut self.seats[id.index()], Seat::empty(next));
        self.free_seats.push(id.seat);
        seat.scheduler
    }

    /// Drops every wish of the scheduler to be asked.
    pub(super) fn forget_wakes(&mut self, id: SchedulerId) {
        let seat = &mut self.seats[id.index()];
        (seat.timer, seat.at_scheduling_point, seat.at_next_scheduling_point) = (None, false, false);
        self.reconsider.retain(|other| *other != id);
        self.reconsider_next.retain(|other| *other != id);
    }

    fn allocate(&mut self, vp: Vp, parameters: Parameters) -> VpId {
        match self.free_vps.pop() {
            Some(id) => {
                let epoch = self.vps[id.index()].epoch;
                self.vps[id.index()] = vp;
                // Requests of different threads with the same number are told apart, too.
                self.vps[id.index()].epoch = epoch;
                self.parameters[id.index()] = parameters;
                id
            }
            None => {
                self.vps.push(vp);
                self.parameters.push(parameters);
                VpId(self.vps.len() as u32 - 1)
            }
        }
    }

    fn register(&mut self, vp: Vp, parent: SchedulerId, parameters: Parameters) -> Result<VpId, Refusal> {
        if !self.is_seated(parent) {
            return Err(Refusal::Gone);
        }
        let id = self.allocate(vp, parameters);
        let cx = Context { now: self.now, vps: &self.vps };
        match self.seats[parent.index()].scheduler.register(&cx, id, parameters) {
            Ok(()) => {
                self.regrouped(parent);
                Ok(id)
            }
            Err(refusal) => {
                self.vps[id.index()].bottom = Bottom::Nobody;
                self.free_vps.push(id);
                Err(refusal)
            }
        }
    }

    /// Takes `vp`, which is Waiting, from its parent and frees its number.
    pub(super) fn unregister(&mut self, vp: VpId) {
        self.part(vp);
        self.vps[vp.index()].bottom = Bottom::Nobody;
        self.free_vps.push(vp);
    }

    /// Takes `vp`, which is Waiting, from its parent.
    pub(super) fn part(&mut self, vp: VpId) {
        let parent = self.parent(vp);
        let cx = Context { now: self.now, vps: &self.vps };
        self.seats[parent.index()].scheduler.unregister(&cx, vp);
        self.regrouped(parent);
    }

    /// A child of `parent` has come or gone. Where somebody wants a processor already, that may be another choice or another
    /// instant at which to choose.
    pub(super) fn regrouped(&mut self, parent: SchedulerId) {
        let is_at_work = |own: &VpId| self.vps[own.index()].state != VpState::Waiting;
        if self.seats[parent.index()].own.iter().any(is_at_work) {
            self.set_timer(parent, Wake::AtSchedulingPoint);
        }
    }
}

/// Whether `scheduler` can serve `given` own VPs.
pub(super) fn check_width(scheduler: &dyn Scheduler, given: usize) -> Result<(), Refusal> {
    match scheduler.width() {
        _ if given == 0 => Err(Refusal::NoParent { scheduler: scheduler.kind() }),
        Width::One if given > 1 => Err(Refusal::OneProcessor { scheduler: scheduler.kind(), given }),
        _ => Ok(()),
    }
}
