//! Removing and moving while everything runs.
//!
//! Whoever moves keeps its number, its service and what it wants: it asks its new parents in the same instant. For them it is a
//! child that registers and then requests; for the old ones a child that releases and then leaves.
//!
//! ```text
//!   new parent: register (the only one that can refuse; it is shown a VP that waits)
//!   old parent: release, unregister        new parent: request
//! ```

use super::membership::check_width;
use super::vp::{Bottom, Context, Top, Vp, VpId, VpState};
use super::{Engine, Message, Parameters, Refusal, SchedulerId, Trigger};
use talea_guarantee::scheduler::article;
use talea_time::Instant;

/// Why the hierarchy was not changed. It is as before: every later decision is what it would have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReconfigureError {
    /// The scheduler has been removed, or is one of another engine.
    #[error("there is no such scheduler any more")]
    NoScheduler(SchedulerId),
    /// The VP is no thread's, or the thread has been removed.
    #[error("there is no such thread any more")]
    NoThread(VpId),
    /// The root is what everything hangs on.
    #[error("the root can be replaced, but neither removed nor moved")]
    Root(SchedulerId),
    /// Somebody would be left without a parent.
    #[error(
        "{} {kind} scheduler with {children} children cannot be removed: remove or move them before",
        article(kind)
    )]
    HasChildren {
        /// Kind of the scheduler.
        kind: &'static str,
        /// How many there are.
        children: usize,
    },
    /// The scheduler would hang on itself.
    #[error("{} {kind} scheduler cannot be moved below itself", article(kind))]
    BelowItself {
        /// Kind of the scheduler.
        kind: &'static str,
    },
    /// A scheduler moves with all its VPs, so each needs a parent.
    #[error("{} {kind} scheduler with {has} parents cannot be moved under {given}", article(kind))]
    Parents {
        /// Kind of the scheduler.
        kind: &'static str,
        /// Parents it has.
        has: usize,
        /// Parents it was to have.
        given: usize,
    },
    /// A child of the scheduler to be replaced for which no parameters were given.
    #[error("VP {} has no parameters for the new scheduler", .0.index())]
    Missing(VpId),
    /// Parameters for a VP that is no child of the scheduler to be replaced, or not one of its own.
    #[error("VP {} does not belong to the scheduler", .0.index())]
    Stranger(VpId),
    /// Parameters for the same VP twice.
    #[error("VP {} was given parameters twice", .0.index())]
    Twice(VpId),
    /// The new parent refuses.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The new scheduler refuses one of the children.
    #[error("child {}: {refusal}", .child.index())]
    Child {
        /// Which.
        child: VpId,
        /// Why.
        refusal: Refusal,
    },
    /// A parent of the replaced scheduler refuses what the new one asks of it.
    #[error("own VP {}: {refusal}", .own.index())]
    Parent {
        /// On which edge.
        own: VpId,
        /// Why.
        refusal: Refusal,
    },
}

impl Engine {
    /// Removes a scheduler that has no children: its VPs leave their parents, its seat is free.
    ///
    /// # Errors
    /// It is the root, it has children, or it is not there; nothing has changed.
    ///
    /// # Panics
    /// If time ran backwards.
    pub fn remove(&mut self, scheduler: SchedulerId, now: Instant) -> Result<(), ReconfigureError> {
        self.begin_change(now);
        self.check_movable(scheduler)?;
        let children = self.children(scheduler).count();
        if children > 0 {
            let kind = self.seats[scheduler.index()].scheduler.kind();
            return Err(ReconfigureError::HasChildren { kind, children });
        }
        let own = std::mem::take(&mut self.seats[scheduler.index()].own);
        for vp in own {
            // One of its wishes may be left that was to be taken back at the scheduling point.
            self.withdraw(vp);
            self.unregister(vp);
        }
        self.unseat(scheduler).deinit();
        Ok(())
    }

    /// Moves a thread under `parent`. It keeps its number, its state, its job and its service, so that what runs runs on if
    /// both parents have it that way. Under the parent it has already, this is a [`Message::Change`].
    ///
    /// # Errors
    /// The new parent's refusal, or somebody is not there; nothing has changed.
    ///
    /// # Panics
    /// If time ran backwards.
    pub fn move_thread(
        &mut self,
        thread: VpId,
        parent: SchedulerId,
        parameters: Parameters,
        now: Instant,
    ) -> Result<(), ReconfigureError> {
        self.begin_change(now);
        if self.vps.get(thread.index()).is_none_or(|vp| vp.bottom != Bottom::Thread) {
            return Err(ReconfigureError::NoThread(thread));
        }
        if self.vps[thread.index()].is_below(parent) {
            return Ok(self.message(parent, Some(thread), Message::Change(parameters), now)?);
        }
        self.enter(thread, parent, parameters)?;
        self.change_over(thread, parent, parameters);
        Ok(())
    }

    /// Moves a scheduler with all that is below it under `parents`, as many as it has: its first VP under the first, and so
    /// on. Everybody below keeps what [`Engine::move_thread`] keeps.
    ///
    /// # Errors
    /// A new parent's refusal, it is the root, a parent is below it, or somebody is not there; nothing has changed.
    ///
    /// # Panics
    /// If time ran backwards.
    pub fn move_scheduler(
        &mut self,
        scheduler: SchedulerId,
        parents: &[(SchedulerId, Parameters)],
        now: Instant,
    ) -> Result<(), ReconfigureError> {
        self.begin_change(now);
        self.check_movable(scheduler)?;
        let own = self.seats[scheduler.index()].own.clone();
        let moving = &self.seats[scheduler.index()].scheduler;
        let kind = moving.kind();
        if own.len() != parents.len() {
            check_width(moving.as_ref(), parents.len())?;
            return Err(ReconfigureError::Parents { kind, has: own.len(), given: parents.len() });
        }
        for &(parent, _) in parents {
            if !self.is_seated(parent) {
                return Err(ReconfigureError::NoScheduler(parent));
            }
            if self.is_below(parent, scheduler) {
                return Err(ReconfigureError::BelowItself { kind });
            }
        }
        let moves = || own.iter().zip(parents).map(|(vp, (parent, parameters))| (*vp, *parent, *parameters));
        // Who asks several may be refused by the last, or take the place of another of its own VPs, so each leaves before
        // the next enters. Nobody is told that nobody else is sure of yet.
        if own.len() > 1 {
            let mut rehearsal = self.clone();
            moves().try_for_each(|(vp, parent, parameters)| rehearsal.carry(vp, parent, parameters))?;
        }
        moves().try_for_each(|(vp, parent, parameters)| self.carry(vp, parent, parameters))
    }

    /// Moves one of a scheduler's VPs.
    fn carry(
        &mut self,
        vp: VpId,
        parent: SchedulerId,
        parameters: Parameters,
    ) -> Result<(), ReconfigureError> {
        if self.vps[vp.index()].is_below(parent) {
            if self.parameters[vp.index()] != parameters {
                self.message(parent, Some(vp), Message::Change(parameters), self.now)?;
            }
            return Ok(());
        }
        self.enter(vp, parent, parameters)?;
        self.change_over(vp, parent, parameters);
        Ok(())
    }

    /// Registers `vp` with `parent`, to which it is shown as Waiting, while it still is another's child.
    fn enter(
        &mut self,
        vp: VpId,
        parent: SchedulerId,
        parameters: Parameters,
    ) -> Result<(), ReconfigureError> {
        if !self.is_seated(parent) {
            return Err(ReconfigureError::NoScheduler(parent));
        }
        let as_it_is = self.vps[vp.index()];
        self.vps[vp.index()] = as_it_is.laid_aside(self.now);
        let cx = Context { now: self.now, vps: &self.vps };
        let answer = self.seats[parent.index()].scheduler.register(&cx, vp, parameters);
        self.vps[vp.index()] = as_it_is;
        Ok(answer?)
    }

    /// Takes `vp` from its parent to `parent`, where it is registered, and lets it ask there if it wants anything.
    fn change_over(&mut self, vp: VpId, parent: SchedulerId, parameters: Parameters) {
        let before = self.vps[vp.index()];
        self.withdraw(vp);
        self.part(vp);
        self.vps[vp.index()].top = Top::Scheduler(parent);
        self.parameters[vp.index()] = parameters;
        self.mark_passing();
        self.regrouped(parent);
        // Whoever is below may have asked on the way.
        if before.state != VpState::Waiting && self.vps[vp.index()].state == VpState::Waiting {
            self.want_again(vp, before);
            self.moved(vp);
            self.tell_request(vp, parent);
        }
    }

    /// Lets `vp`, which waits, want a processor as it did `before`: for the same job, as the same request.
    pub(super) fn want_again(&mut self, vp: VpId, before: Vp) {
        let resumed = &mut self.vps[vp.index()];
        resumed.assume(VpState::Ready, self.now);
        (resumed.epoch, resumed.service_at_request) = (before.epoch, before.service_at_request);
    }

    /// Tells `parent` that `vp` is Ready.
    pub(super) fn tell_request(&mut self, vp: VpId, parent: SchedulerId) {
        let cx = Context { now: self.now, vps: &self.vps };
        let decision = self.seats[parent.index()].scheduler.request(&cx, vp);
        self.run_to_fixed_point(parent, decision);
    }

    /// Takes back on behalf of whoever is below what `vp` wants, without a word to them but that a processor is revoked.
    pub(super) fn withdraw(&mut self, vp: VpId) {
        let Vp { state, bottom, .. } = self.vps[vp.index()];
        if state == VpState::Waiting {
            return;
        }
        if let (VpState::Running(_), Bottom::Scheduler(_)) = (state, bottom) {
            self.take_back(vp);
            // The parent, who does not know of it, has given the processor and gets it back.
            self.vps[vp.index()].assume(state, self.now);
        }
        let mut actor = self.parent(vp);
        let decision = self.apply_release(vp, &mut actor);
        self.run_to_fixed_point(actor, decision);
    }

    /// Takes the processor from `vp`, which is Running, without a word to its parent, who may do with it what it likes.
    pub(super) fn take_back(&mut self, vp: VpId) {
        let parent = self.parent(vp);
        let mut actor = parent;
        let decision = self.apply_revoke(vp, &mut actor);
        self.run_to_fixed_point(actor, decision);
    }

    /// Whether `scheduler` is `above` or somewhere below it.
    fn is_below(&self, scheduler: SchedulerId, above: SchedulerId) -> bool {
        let mut reached = vec![false; self.seats.len()];
        let mut left = vec![scheduler];
        while let Some(id) = left.pop() {
            if id == above {
                return true;
            }
            if std::mem::replace(&mut reached[id.index()], true) {
                continue;
            }
            left.extend(self.seats[id.index()].own.iter().filter_map(|vp| match self.vps[vp.index()].top {
                Top::Scheduler(parent) => Some(parent),
                Top::Machine(_) | Top::Custody => None,
            }));
        }
        false
    }

    /// What happens from here on is the consequence of a change at `now`.
    pub(super) fn begin_change(&mut self, now: Instant) {
        self.advance(now);
        self.trigger = Trigger::Change;
    }

    fn check_movable(&self, scheduler: SchedulerId) -> Result<(), ReconfigureError> {
        if !self.is_seated(scheduler) {
            return Err(ReconfigureError::NoScheduler(scheduler));
        }
        let own = self.seats[scheduler.index()].own[0];
        match self.vps[own.index()].top {
            Top::Machine(_) => Err(ReconfigureError::Root(scheduler)),
            _ => Ok(()),
        }
    }
}
