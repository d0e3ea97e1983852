//! What one processor did, stretch by stretch; the latest stretches can still be divided.

use super::Use;
use std::collections::VecDeque;
use talea_record::{CostKind, JobId};
use talea_time::Instant;

/// Stretches that stay divisible.
const RECENT: usize = 1 << 15;

/// Who says what a stretch went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToldBy {
    /// The run's own records.
    Run,
    /// The kernel's switches.
    Kernel,
}

#[derive(Clone, Copy, Debug)]
struct TimelineSpan {
    from: Instant,
    to: Instant,
    what: Use,
    told_by: ToldBy,
    /// The thread that took it first from whom it was granted to, if it was withheld; 0 is the idle one.
    withheld: Option<u32>,
}

impl TimelineSpan {
    fn is_alike(&self, other: &TimelineSpan) -> bool {
        (self.what, self.told_by, self.withheld) == (other.what, other.told_by, other.withheld)
    }

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
    pub fn push(
        &mut self,
        to: Instant,
        (what, told_by): (Use, ToldBy),
        settle: impl FnMut(Use, Option<u32>, i64),
    ) {
        let from = std::mem::replace(&mut self.cursor, to);
        self.append(TimelineSpan { from, to, what, told_by, withheld: None });
        let surplus = self.recent.len().saturating_sub(RECENT);
        self.settle_first(surplus, settle);
    }

    /// Hands out everything: what each stretch went into, who took it if it was withheld, and its length.
    pub fn settle(&mut self, settle: impl FnMut(Use, Option<u32>, i64)) {
        self.settle_first(self.recent.len(), settle);
    }

    fn settle_first(&mut self, count: usize, mut settle: impl FnMut(Use, Option<u32>, i64)) {
        let settled = self.recent.drain(..count);
        settled.for_each(|stretch| settle(stretch.what, stretch.withheld, stretch.ns()));
    }

    fn append(&mut self, stretch: TimelineSpan) {
        match self.recent.back_mut() {
            Some(last) if last.is_alike(&stretch) => last.to = stretch.to,
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
        self.repaint(cost.from, cost.to, |stretch| {
            let job = match stretch.what {
                Use::Job(job) if cost.lane.is_none() || lane_of(job) == cost.lane => Some(job),
                Use::Idle | Use::Dispatch => None,
                // What stands above all lanes stands above who was added, too.
                Use::Member(_) if cost.lane.is_none() => None,
                // The thread that tells of the cost had the processor then, whoever of the others had it else.
                Use::Shared => None,
                // The kernel knew already who was on the processor.
                Use::Cost(kind) if kind == cost.kind => None,
                _ => return,
            };
            placed(job, stretch.ns());
            stretch.what = Use::Cost(cost.kind);
        });
    }

    /// The time between the instants went into switching, where it was the threads' own and no job's.
    pub fn switching(&mut self, from: Instant, to: Instant) {
        self.repaint(from, to, |stretch| {
            if let Use::Dispatch | Use::Cost(CostKind::Release | CostKind::Delivery) = stretch.what {
                stretch.what = Use::Cost(CostKind::Switch);
            }
        });
    }

    /// The processor was withheld between the instants from whom it was granted to, and had by `thread` first. What the run's own
    /// records say of a job or a member then is not so: `taken` says what that time went into, and learns how much it was.
    pub fn withhold(
        &mut self,
        (from, to): (Instant, Instant),
        thread: u32,
        mut taken: impl FnMut(Use, i64) -> Use,
    ) {
        self.repaint(from, to, |stretch| {
            if let (Use::Job(_) | Use::Member(_), ToldBy::Run) = (stretch.what, stretch.told_by) {
                stretch.what = taken(stretch.what, stretch.ns());
            }
            stretch.withheld = Some(thread);
        });
    }

    /// Records of the time between the instants were lost. `taken` learns from which jobs.
    pub fn doubt(&mut self, from: Instant, to: Instant, mut taken: impl FnMut(JobId, i64)) {
        self.repaint(from, to, |stretch| {
            if let Use::Job(job) = stretch.what {
                taken(job, stretch.ns());
            }
            stretch.what = Use::Unknown;
        });
    }

    /// Every stretch between the instants is changed.
    fn repaint(&mut self, from: Instant, to: Instant, mut change: impl FnMut(&mut TimelineSpan)) {
        let mut later = Vec::new();
        while let Some(stretch) = self.recent.pop_back_if(|stretch| stretch.to > from) {
            later.push(stretch);
        }
        for stretch in later.into_iter().rev() {
            let mut inner = TimelineSpan { from: stretch.from.max(from), to: stretch.to.min(to), ..stretch };
            if inner.from >= inner.to {
                self.append(stretch);
                continue;
            }
            change(&mut inner);
            for part in [
                TimelineSpan { to: inner.from, ..stretch },
                inner,
                TimelineSpan { from: inner.to, ..stretch },
            ] {
                if part.from < part.to {
                    self.append(part);
                }
            }
        }
    }
}
