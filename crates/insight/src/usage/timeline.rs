//! What one processor did, stretch by stretch; the latest stretches can still be divided.

use super::Use;
use std::collections::VecDeque;
use talea_record::{CostKind, JobId};
use talea_time::Instant;

/// Stretches that stay divisible.
const RECENT: usize = 1 << 12;

#[derive(Clone, Copy, Debug)]
struct TimelineSpan {
    from: Instant,
    to: Instant,
    what: Use,
}

impl TimelineSpan {
    fn ns(&self) -> i64 {
        self.to.as_nanos().saturating_sub(self.from.as_nanos())
    }
}

/// What a COST record tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub from: Instant,
    pub to: Instant,
    /// The lane that dispatched; none for what stands above all lanes.
    pub lane: Option<usize>,
    pub kind: CostKind,
}

/// The stretches of one processor, without gaps.
#[derive(Debug)]
pub(super) struct Timeline {
    cpu: u16,
    cursor: Instant,
    recent: VecDeque<TimelineSpan>,
}

impl Timeline {
    pub fn new(cpu: u16, start: Instant) -> Self {
        Timeline { cpu, cursor: start, recent: VecDeque::new() }
    }

    pub fn cpu(&self) -> u16 {
        self.cpu
    }

    /// Everything up to here has its stretch.
    pub fn cursor(&self) -> Instant {
        self.cursor
    }

    /// The time up to `to` went into `what`. Hands out what is settled by that.
    pub fn push(&mut self, to: Instant, what: Use, settle: impl FnMut(Use, i64)) {
        let from = std::mem::replace(&mut self.cursor, to);
        self.append(TimelineSpan { from, to, what });
        let surplus = self.recent.len().saturating_sub(RECENT);
        self.settle_first(surplus, settle);
    }

    /// Hands out everything.
    pub fn settle(&mut self, settle: impl FnMut(Use, i64)) {
        self.settle_first(self.recent.len(), settle);
    }

    fn settle_first(&mut self, count: usize, mut settle: impl FnMut(Use, i64)) {
        self.recent.drain(..count).for_each(|stretch| settle(stretch.what, stretch.ns()));
    }

    fn append(&mut self, stretch: TimelineSpan) {
        match self.recent.back_mut() {
            Some(last) if last.what == stretch.what => last.to = stretch.to,
            _ => self.recent.push_back(stretch),
        }
    }

    /// Gives the time that a COST record tells of to its kind, where it was nobody's, of the same lane, or of a lower
    /// authority. `placed` learns how much, and which job's processor time it was taken from.
    pub fn overlay(
        &mut self,
        cost: Cost,
        lane_of: impl Fn(JobId) -> Option<usize>,
        mut placed: impl FnMut(Option<JobId>, i64),
    ) {
        self.repaint(cost.from, cost.to, |what, ns| {
            let job = match what {
                Use::Job(job) if cost.lane.is_none() || lane_of(job) == cost.lane => Some(job),
                Use::Idle | Use::Dispatch => None,
                // The thread that tells of the cost had the processor then, whoever of the others had it else.
                Use::Shared => None,
                // The kernel knew already who was on the processor.
                Use::Cost(kind) if kind == cost.kind => None,
                _ => return None,
            };
            placed(job, ns);
            Some(Use::Cost(cost.kind))
        });
    }

    /// The time between the instants went into switching, where it was the threads' own and no job's.
    pub fn switching(&mut self, from: Instant, to: Instant) {
        self.repaint(from, to, |what, _| match what {
            Use::Dispatch | Use::Cost(CostKind::Release | CostKind::Delivery) => {
                Some(Use::Cost(CostKind::Switch))
            }
            _ => None,
        });
    }

    /// The processor was withheld between the instants from whom it was granted to. `taken` learns from which jobs.
    pub fn withhold(&mut self, from: Instant, to: Instant, mut taken: impl FnMut(JobId, i64)) {
        self.repaint(from, to, |what, ns| {
            let Use::Job(job) = what else { return None };
            taken(job, ns);
            Some(Use::Withheld)
        });
    }

    /// Records of the time between the instants were lost. `taken` learns from which jobs.
    pub fn doubt(&mut self, from: Instant, to: Instant, mut taken: impl FnMut(JobId, i64)) {
        self.repaint(from, to, |what, ns| {
            if let Use::Job(job) = what {
                taken(job, ns);
            }
            Some(Use::Unknown)
        });
    }

    /// Asks for every stretch between the instants what it is instead.
    fn repaint(&mut self, from: Instant, to: Instant, mut instead: impl FnMut(Use, i64) -> Option<Use>) {
        let mut later = Vec::new();
        while let Some(stretch) = self.recent.pop_back_if(|stretch| stretch.to > from) {
            later.push(stretch);
        }
        for stretch in later.into_iter().rev() {
            let inner = TimelineSpan { from: stretch.from.max(from), to: stretch.to.min(to), ..stretch };
            if inner.from >= inner.to {
                self.append(stretch);
                continue;
            }
            let what = instead(stretch.what, inner.ns()).unwrap_or(stretch.what);
            for part in [
                TimelineSpan { to: inner.from, ..stretch },
                TimelineSpan { what, ..inner },
                TimelineSpan { from: inner.to, ..stretch },
            ] {
                if part.from < part.to {
                    self.append(part);
                }
            }
        }
    }
}
