//! Decisions: what a scheduler answers to a notification.

use super::vp::{ProcessorId, VpId};
use talea_time::Instant;

/// One change a scheduler makes to a VP: to a child's as its parent, or to an own one as its child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Take the processor from a Running child.
    Revoke(VpId),
    /// Give a processor that the scheduler holds to a Ready child.
    Grant(VpId, ProcessorId),
    /// Ask the parent of an own, Waiting VP for a processor.
    Request(VpId),
    /// Tell the parent of an own VP that is not Waiting that it is not needed (any more).
    Release(VpId),
    /// The earliest deadline of the work behind an own VP is this instant from now on.
    Announce(VpId, Instant),
}

/// When a scheduler wants its timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// As decided before.
    Keep,
    /// Not at all.
    Never,
    /// At this instant, which replaces any other.
    At(Instant),
    /// When everything else that happens at the current or else at the next scheduling point is known: a
    /// scheduling point is an instant with a request or release anywhere under the same machine. The timer is
    /// then called until its decision changes nothing. Any `At` remains in force.
    AtSchedulingPoint,
}

/// The answer to a notification: up to [`Decision::CAPACITY`] actions in order, and when to be asked again.
#[derive(Clone, Copy, Debug)]
#[must_use = "a decision has no effect until the engine applies it"]
pub struct Decision {
    /// The first `len` count.
    actions: [Action; Decision::CAPACITY],
    len: u8,
    wake: Wake,
}

impl Decision {
    /// The most actions one notification can need: a revoked processor may displace the child of another
    /// processor (revoke, revoke, grant) while an own VP changes too.
    pub const CAPACITY: usize = 4;

    /// Nothing changes.
    pub const NONE: Decision =
        Decision { actions: [Action::Release(VpId(0)); Decision::CAPACITY], len: 0, wake: Wake::Keep };

    /// Give `processor` to `child`.
    pub fn grant(child: VpId, processor: ProcessorId) -> Self {
        Self::NONE.and(Action::Grant(child, processor))
    }

    /// Take `processor` from `from` and give it to `to`.
    pub fn switch(from: VpId, to: VpId, processor: ProcessorId) -> Self {
        Self::NONE.and(Action::Revoke(from)).and(Action::Grant(to, processor))
    }

    /// Take the processor from `child`.
    pub fn revoke(child: VpId) -> Self {
        Self::NONE.and(Action::Revoke(child))
    }

    /// Ask for a processor for the own VP `own`.
    pub fn request(own: VpId) -> Self {
        Self::NONE.and(Action::Request(own))
    }

    /// Give up the own VP `own`.
    pub fn release(own: VpId) -> Self {
        Self::NONE.and(Action::Release(own))
    }

    /// This decision, then `action`.
    ///
    /// # Panics
    /// If the decision is full.
    pub fn and(mut self, action: Action) -> Self {
        assert!(usize::from(self.len) < Self::CAPACITY, "a decision has at most four actions");
        self.actions[usize::from(self.len)] = action;
        self.len += 1;
        self
    }

    /// This decision, and the timer as `wake` says.
    pub fn wake(mut self, wake: Wake) -> Self {
        self.wake = wake;
        self
    }

    /// This decision, and the timer at the scheduling point if `wanted`.
    pub fn reconsider_if(self, wanted: bool) -> Self {
        if wanted { self.wake(Wake::AtSchedulingPoint) } else { self }
    }

    /// The actions in order.
    pub fn actions(&self) -> &[Action] {
        &self.actions[..usize::from(self.len)]
    }

    /// What becomes of the timer.
    pub fn timer(&self) -> Wake {
        self.wake
    }
}
