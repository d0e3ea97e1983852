//! A machine that does not always supply its processors: it takes one away from the root for a while and gives it back.
//!
//! Schedulers need to know nothing of that: to the root it is what a revocation is to everybody below another scheduler. What
//! they have promised in amounts is not charged while nobody runs, so it is received from the rest.

use super::engine::{Engine, Trigger};
use super::vp::{Bottom, Context, ProcessorId, VpState};
use talea_time::Instant;

impl Engine {
    /// The machine takes a processor away, until it is [given back](Engine::give_back). Nothing if it has been taken away already.
    ///
    /// # Panics
    /// If time ran backwards.
    pub fn take_away(&mut self, processor: ProcessorId, now: Instant) {
        self.advance(now);
        let place = &mut self.processors[processor.index()];
        let was_away = std::mem::replace(&mut place.is_away, true);
        let Some(root) = place.root.filter(|_| !was_away) else { return };
        let vp = &mut self.vps[root.index()];
        let (VpState::Running(_), Bottom::Scheduler(id)) = (vp.state, vp.bottom) else { return };
        vp.revoke(now);
        // Further down the processor belongs to nobody but the machine.
        (place.holder, place.revoking) = (None, Some(id));
        self.trigger = Trigger::Supply;
        self.moved(root);
        let cx = Context { now: self.now, vps: &self.vps };
        let decision = self.seats[id.index()].scheduler.revoke(&cx, root, processor);
        self.run_to_fixed_point(id, decision);
    }

    /// The machine gives a processor back that it had [taken away](Engine::take_away).
    ///
    /// # Panics
    /// If time ran backwards.
    pub fn give_back(&mut self, processor: ProcessorId, now: Instant) {
        self.advance(now);
        let place = &mut self.processors[processor.index()];
        let was_away = std::mem::replace(&mut place.is_away, false);
        let Some(root) = place.root.filter(|_| was_away) else { return };
        let vp = &mut self.vps[root.index()];
        let (VpState::Ready, Bottom::Scheduler(id)) = (vp.state, vp.bottom) else { return };
        vp.grant(processor, now);
        place.holder = Some(id);
        self.trigger = Trigger::Supply;
        self.moved(root);
        let decision = self.notify_grant(id, root, processor);
        self.run_to_fixed_point(id, decision);
    }

    /// Whether the machine has taken the processor away.
    pub fn is_away(&self, processor: ProcessorId) -> bool {
        self.processors[processor.index()].is_away
    }

    /// Whether somebody wants the processor, or has it.
    pub fn is_wanted(&self, processor: ProcessorId) -> bool {
        let root = self.processors[processor.index()].root;
        root.is_some_and(|root| self.vps[root.index()].state != VpState::Waiting)
    }
}
