//! The judge of an edge by its work: what was due by the work that arrived, and what was received of it.

use super::Promise;
use crate::hierarchy::{VpId, VpState};
use talea_guarantee::due::{Due, Sums};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::LongRun;
use talea_time::{Duration, Instant};

/// What the judge of an edge's work takes for received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// What is granted.
    Grants,
    /// What it is [told](super::Watch::received): not what mechanisms cost.
    Work,
}

/// Somebody whose work is known, and whether there is any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Working {
    pub counts: Counts,
    pub tolerance: Duration,
    pub is_pending: bool,
}

/// Whose work is known, by the number of the virtual processor: it outlives an edge's promise.
#[derive(Debug, Default)]
pub(super) struct Workers(Vec<Option<Working>>);

impl Workers {
    /// The work of who is on `vp` is known from now on.
    pub fn begin(&mut self, vp: VpId, working: Working) {
        if self.0.len() <= vp.index() {
            self.0.resize(vp.index() + 1, None);
        }
        self.0[vp.index()] = Some(working);
    }

    /// Nobody knows it any more.
    pub fn forget(&mut self, vp: VpId) {
        if let Some(working) = self.0.get_mut(vp.index()) {
            *working = None;
        }
    }

    pub fn of(&self, vp: VpId) -> Option<Working> {
        self.0.get(vp.index()).copied().flatten()
    }

    /// Whether that changes anything.
    #[inline]
    pub fn set_pending(&mut self, vp: VpId, is_pending: bool) -> bool {
        let Some(Some(working)) = self.0.get_mut(vp.index()) else { return false };
        std::mem::replace(&mut working.is_pending, is_pending) != is_pending
    }
}

/// The judge of one edge.
#[derive(Debug)]
pub(super) struct ByWork {
    due: Due,
    counts: Counts,
    /// Where what is granted counts as received: since when a processor has been.
    granted: Option<Instant>,
}

impl ByWork {
    /// Of an edge with this promise, whose virtual processor is in `state`, from `at` on.
    pub fn new(promise: Option<&Promise>, working: Working, state: VpState, at: Instant) -> Self {
        let guarantee = promise.map_or(&Guarantee::Null, Promise::guarantee);
        let due = Due::new(guarantee, promise.and_then(Promise::stated), working.tolerance, at);
        let mut judge = ByWork { due, counts: working.counts, granted: None };
        if working.is_pending {
            judge.due.work_arrives(at);
        }
        judge.note_grant(state, at);
        judge
    }

    pub fn restate(&mut self, stated: Option<LongRun>) {
        self.due.restate(stated);
    }

    #[inline]
    pub fn work_arrives(&mut self, now: Instant) {
        self.due.work_arrives(now);
    }

    #[inline]
    pub fn work_is_done(&mut self, now: Instant) {
        self.take_granted(now);
        self.due.work_is_done(now);
    }

    #[inline]
    pub fn received(&mut self, from: Instant, to: Instant) {
        self.due.received(from, to);
    }

    /// What has been granted up to `now` counts as received.
    pub fn take_granted(&mut self, now: Instant) {
        if let Some(since) = &mut self.granted {
            self.due.received(std::mem::replace(since, now), now);
        }
    }

    #[inline]
    pub fn note_grant(&mut self, state: VpState, now: Instant) {
        if self.counts == Counts::Grants {
            self.take_granted(now);
            self.granted = matches!(state, VpState::Running(_)).then_some(now);
        }
    }

    /// What is due by `now` is held against what was received until then.
    pub fn bring_up_to(&mut self, now: Instant) {
        self.take_granted(now);
        let _sums = self.due.until(now);
    }

    pub fn sums(&self) -> Sums {
        self.due.sums()
    }
}
