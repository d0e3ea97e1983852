//! The fixed point: an action of a decision, what whoever it reaches decides, and so on until nobody decides anything more.
//!
//! One function for each transition of a virtual processor. It changes the state, keeps the books of who holds which processor,
//! and asks the one that the transition reaches.

use super::engine::{Engine, Occupant};
use super::vp::{Bottom, Context, ProcessorId, Top, Vp, VpId, VpState};
use super::{Action, Decision, SchedulerId, Wake};
use talea_time::Instant;

impl Engine {
    /// Applies `actor`'s decision and all that follows from it. What follows from one action comes before
    /// the decision's next action.
    ///
    /// Whoever an action reaches answers with a decision of its own; the functions below write who that is
    /// to `actor`. Decisions are read where they were built: to copy one that has just been written would wait for the writing.
    pub(super) fn run_to_fixed_point(&mut self, actor: SchedulerId, decision: Decision) {
        let mut next = self.begin(actor, &decision);
        while let Some((scheduler, action)) = next {
            let mut actor = scheduler;
            let decision = match action {
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
                Action::PassJob(child) => self.apply_pass(child, &mut actor),
            };
            next = self.begin(actor, &decision);
        }
    }

    /// Sets the timer as `actor` decided, and returns its first action, or the next one of those that wait.
    #[inline(always)]
    fn begin(&mut self, actor: SchedulerId, decision: &Decision) -> Option<(SchedulerId, Action)> {
        self.set_timer(actor, decision.timer());
        let mut actions = decision.actions();
        let Some(first) = actions.next() else { return self.next_pending() };
        self.pending.extend(actions.rev().map(|action| (actor, action)));
        Some((actor, first))
    }

    /// The next action that has not been overtaken by what earlier ones of its decision have led to: who is granted a
    /// processor while it is about to take its request back has released it already.
    #[inline]
    fn next_pending(&mut self) -> Option<(SchedulerId, Action)> {
        loop {
            let next = self.pending.pop()?;
            let is_overtaken = match next.1 {
                Action::Release(own) => self.vps[own.index()].state == VpState::Waiting,
                Action::Request(own) => self.vps[own.index()].state != VpState::Waiting,
                Action::Revoke(_) | Action::Grant(..) | Action::Announce(..) | Action::PassJob(_) => false,
            };
            if !is_overtaken {
                return Some(next);
            }
        }
    }

    #[inline]
    pub(super) fn set_timer(&mut self, scheduler: SchedulerId, wake: Wake) {
        let seat = &mut self.seats[scheduler.index()];
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
    pub(super) fn apply_request(&mut self, child: VpId, actor: &mut SchedulerId) -> Decision {
        let vp = &mut self.vps[child.index()];
        vp.request();
        let (top, bottom) = (vp.top, vp.bottom);
        self.moved(child);
        match (top, bottom) {
            (Top::Scheduler(parent), _) => {
                *actor = parent;
                let cx = Context { now: self.now, vps: &self.vps };
                self.seats[parent.index()].scheduler.request(&cx, child)
            }
            (Top::Machine(processor), Bottom::Scheduler(root))
                if self.processors[processor.index()].is_away =>
            {
                *actor = root;
                Decision::NONE
            }
            (Top::Machine(processor), Bottom::Scheduler(root)) => {
                self.vps[child.index()].grant(processor, self.now);
                self.moved(child);
                self.processors[processor.index()].holder = Some(root);
                *actor = root;
                self.notify_grant(root, child, processor)
            }
            (Top::Custody, Bottom::Scheduler(id)) => {
                *actor = id;
                self.request_in_custody(id, child)
            }
            (Top::Machine(_) | Top::Custody, _) => {
                unreachable!("a thread is below a scheduler")
            }
        }
    }

    /// Transitions 4 and 5, and the parent's reaction.
    pub(super) fn apply_release(&mut self, child: VpId, actor: &mut SchedulerId) -> Decision {
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
            processor.revoking = None;
            processor.holder = match top {
                Top::Scheduler(parent) => Some(parent),
                Top::Machine(_) | Top::Custody => None,
            };
        }
        match (top, bottom) {
            (Top::Scheduler(parent), _) => {
                *actor = parent;
                let cx = Context { now: self.now, vps: &self.vps };
                self.seats[parent.index()].scheduler.release(&cx, child, held)
            }
            (Top::Machine(_) | Top::Custody, Bottom::Scheduler(id)) => {
                *actor = id;
                Decision::NONE
            }
            (Top::Machine(_) | Top::Custody, _) => unreachable!("a thread is below a scheduler"),
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
        place.revoking = None;
        match bottom {
            Bottom::Scheduler(id) => {
                place.holder = Some(id);
                *actor = id;
                self.notify_grant(id, child, processor)
            }
            Bottom::Thread => {
                place.holder = None;
                place.current = Some(Occupant::new(child, epoch));
                Decision::NONE
            }
            Bottom::Nobody => unreachable!("an unregistered VP is never granted"),
        }
    }

    /// Stores the deadline; a parent that is already dealing with the VP is told.
    pub(super) fn apply_announcement(
        &mut self,
        own: VpId,
        deadline: Instant,
        actor: &mut SchedulerId,
    ) -> Decision {
        let vp = &mut self.vps[own.index()];
        vp.job.deadline = deadline;
        match vp.top {
            Top::Scheduler(parent) if vp.state != VpState::Waiting => {
                *actor = parent;
                let cx = Context { now: self.now, vps: &self.vps };
                self.seats[parent.index()].scheduler.announced(&cx, own)
            }
            _ => Decision::NONE,
        }
    }

    /// Stores whose job it is; a parent that is already dealing with the VP is told.
    fn apply_pass(&mut self, child: VpId, actor: &mut SchedulerId) -> Decision {
        let [own] = self.seats[actor.index()].own[..] else { panic!("who has several VPs passes on no job") };
        let behind = Context { now: self.now, vps: &self.vps }.behind(child);
        self.vps[own.index()].behind = behind;
        self.tell_of_job(own, actor)
    }

    /// Tells the parent of `vp`, unless that waits, that it wants its processor for another job.
    pub(super) fn tell_of_job(&mut self, vp: VpId, actor: &mut SchedulerId) -> Decision {
        let Vp { top, state, .. } = self.vps[vp.index()];
        match top {
            Top::Scheduler(parent) if state != VpState::Waiting => {
                *actor = parent;
                let cx = Context { now: self.now, vps: &self.vps };
                self.seats[parent.index()].scheduler.job_changed(&cx, vp)
            }
            _ => Decision::NONE,
        }
    }

    pub(super) fn notify_grant(&mut self, to: SchedulerId, own: VpId, processor: ProcessorId) -> Decision {
        let cx = Context { now: self.now, vps: &self.vps };
        self.seats[to.index()].scheduler.grant(&cx, own, processor)
    }

    /// Transition 3, and the child's reaction. The processor is the actor's again once the child has passed
    /// the revocation down, which happens before the actor's next action.
    pub(super) fn apply_revoke(&mut self, child: VpId, actor: &mut SchedulerId) -> Decision {
        let vp = &mut self.vps[child.index()];
        assert_eq!(vp.top, Top::Scheduler(*actor), "a scheduler revokes from its own children");
        let processor = vp.revoke(self.now);
        let bottom = vp.bottom;
        self.moved(child);
        let place = &mut self.processors[processor.index()];
        // Further down the same revocation the processor already belongs to whoever started it. Otherwise it is the actor's,
        // even if a thread below has just released it and a scheduler in between was about to.
        if place.revoking != Some(*actor) {
            place.holder = Some(*actor);
        }
        place.revoking = match bottom {
            Bottom::Scheduler(id) => Some(id),
            Bottom::Thread | Bottom::Nobody => None,
        };
        match bottom {
            Bottom::Thread => {
                place.current = None;
                Decision::NONE
            }
            Bottom::Scheduler(id) => {
                *actor = id;
                let cx = Context { now: self.now, vps: &self.vps };
                self.seats[id.index()].scheduler.revoke(&cx, child, processor)
            }
            Bottom::Nobody => unreachable!("an unregistered VP never runs"),
        }
    }

    /// Who is above `child`, which is not the root's.
    pub(super) fn parent(&self, child: VpId) -> SchedulerId {
        match self.vps[child.index()].top {
            Top::Scheduler(parent) => parent,
            Top::Machine(_) | Top::Custody => panic!("root VPs are the machine's"),
        }
    }

    pub(super) fn is_root_vp(&self, vp: VpId) -> bool {
        matches!(self.vps[vp.index()].top, Top::Machine(_))
    }

    fn assert_own(&self, actor: SchedulerId, own: VpId) {
        let bottom = self.vps[own.index()].bottom;
        assert_eq!(bottom, Bottom::Scheduler(actor), "a scheduler asks and releases for itself only");
    }
}
