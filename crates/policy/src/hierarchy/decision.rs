//! Decisions: what a scheduler answers to a notification.

use super::vp::{ProcessorId, VpId};
use talea_time::Instant;

/// What is announced instead of a deadline on behalf of those who are to have only what a uniformly slower processor spares: nothing
/// that they receive counts against what later deadlines entitle to.
///
/// [`Instant::MAX`] is different: work that wants its rate all the time, by no deadline of its own.
pub const SPARE: Instant = Instant::from_nanos(i64::MAX - 1);

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
    /// The earliest deadline of the work behind an own VP is this instant from now on; [`SPARE`] if there is none for which
    /// anything is to be kept.
    Announce(VpId, Instant),
    /// The job that the scheduler's only own VP wants its processor for is the one behind this child from now on.
    PassJob(VpId),
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
///
/// A decision is read within nanoseconds of being written, on every level. So its actions are single words: what was written in
/// parts and is read as a whole stalls a processor until all parts have reached its cache.
#[derive(Clone, Copy, Debug)]
#[must_use = "a decision has no effect until the engine applies it"]
pub struct Decision {
    /// The first `len` count.
    steps: [Step; Decision::CAPACITY],
    len: usize,
    wake: Wake,
    /// What the announcements announce.
    deadline: Instant,
}

/// An action without its deadline: the VP in the lower half, then the processor, then the kind.
#[derive(Clone, Copy, Debug)]
struct Step(u64);

impl Step {
    const NONE: Step = Step(0);
    const KIND: u32 = 48;
    const PROCESSOR: u32 = 32;

    #[inline]
    fn of(action: Action) -> Step {
        let (kind, vp, processor) = match action {
            Action::Revoke(vp) => (0, vp, 0),
            Action::Grant(vp, processor) => (1, vp, processor.0),
            Action::Request(vp) => (2, vp, 0),
            Action::Release(vp) => (3, vp, 0),
            Action::Announce(vp, _) => (4, vp, 0),
            Action::PassJob(vp) => (5, vp, 0),
        };
        Step(kind << Self::KIND | u64::from(processor) << Self::PROCESSOR | u64::from(vp.0))
    }

    #[inline]
    fn action(self, deadline: Instant) -> Action {
        let vp = VpId(self.0 as u32);
        match self.0 >> Self::KIND {
            0 => Action::Revoke(vp),
            1 => Action::Grant(vp, ProcessorId((self.0 >> Self::PROCESSOR) as u16)),
            2 => Action::Request(vp),
            3 => Action::Release(vp),
            4 => Action::Announce(vp, deadline),
            5 => Action::PassJob(vp),
            _ => unreachable!("there are six kinds"),
        }
    }
}

impl Decision {
    /// The most actions one notification can need: a revoked processor may displace the child of another
    /// processor (revoke, revoke, grant) while an own VP changes too.
    pub const CAPACITY: usize = 4;

    /// Nothing changes.
    pub const NONE: Decision = Decision {
        steps: [Step::NONE; Decision::CAPACITY],
        len: 0,
        wake: Wake::Keep,
        deadline: Instant::ZERO,
    };

    #[inline]
    fn first(action: Action) -> Self {
        let mut decision = Self::NONE;
        decision.steps[0] = Step::of(action);
        decision.len = 1;
        decision
    }

    /// Give `processor` to `child`.
    #[inline]
    pub fn grant(child: VpId, processor: ProcessorId) -> Self {
        Self::first(Action::Grant(child, processor))
    }

    /// Take `processor` from `from` and give it to `to`.
    #[inline]
    pub fn switch(from: VpId, to: VpId, processor: ProcessorId) -> Self {
        let mut decision = Self::revoke(from);
        decision.steps[1] = Step::of(Action::Grant(to, processor));
        decision.len = 2;
        decision
    }

    /// Take the processor from `child`.
    #[inline]
    pub fn revoke(child: VpId) -> Self {
        Self::first(Action::Revoke(child))
    }

    /// Ask for a processor for the own VP `own`.
    #[inline]
    pub fn request(own: VpId) -> Self {
        Self::first(Action::Request(own))
    }

    /// Give up the own VP `own`.
    #[inline]
    pub fn release(own: VpId) -> Self {
        Self::first(Action::Release(own))
    }

    /// This decision, then `action`.
    ///
    /// # Panics
    /// If the decision is full, or announces another deadline already.
    #[inline]
    pub fn and(mut self, action: Action) -> Self {
        assert!(self.len < Self::CAPACITY, "a decision has at most four actions");
        if let Action::Announce(_, deadline) = action {
            let is_other = |action| matches!(action, Action::Announce(_, other) if other != deadline);
            assert!(!self.actions().any(is_other), "a decision announces one deadline");
            self.deadline = deadline;
        }
        self.steps[self.len] = Step::of(action);
        self.len += 1;
        self
    }

    /// This decision, then the actions of `later`, whose timer is forgotten.
    ///
    /// # Panics
    /// As [`Decision::and`].
    pub fn then(self, later: Decision) -> Self {
        later.actions().fold(self, Decision::and)
    }

    /// This decision, and the timer as `wake` says.
    #[inline]
    pub fn wake(mut self, wake: Wake) -> Self {
        self.set_timer(wake);
        self
    }

    /// The timer as `wake` says.
    #[inline]
    pub fn set_timer(&mut self, wake: Wake) {
        self.wake = wake;
    }

    /// This decision, and the timer at the scheduling point if `wanted`.
    pub fn reconsider_if(self, wanted: bool) -> Self {
        if wanted { self.wake(Wake::AtSchedulingPoint) } else { self }
    }

    /// The actions in order.
    #[inline]
    pub fn actions(&self) -> impl DoubleEndedIterator<Item = Action> + ExactSizeIterator {
        self.steps[..self.len].iter().map(|step| step.action(self.deadline))
    }

    /// How many actions there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing changes but, perhaps, the timer.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What becomes of the timer.
    #[inline]
    pub fn timer(&self) -> Wake {
        self.wake
    }
}
