//! When segments are released, counted from the arrivals of their task: what the synchronisation protocols make of the
//! completions before them (Sun and Liu 1996).
//!
//! * *Greedy*: at the completion. All of the delay is jitter.
//! * *Release guards*, rules 1 and 2: instance m is released at max(signal(m), release(m - 1) + T). By induction over m that is
//!   no later after its arrival than its predecessors complete at the latest, for arrivals are T apart; and releases are T
//!   apart, so for everybody else there is no jitter.
//! * Rule 3 resets guards at idle points. No idle point lies inside a window, so that windows of fixed priorities see releases T
//!   apart all the same (Sun and Liu, section 4). For non-preemptive lanes that order by deadline or laxity nobody has published
//!   that, so there the delay counts as jitter, as under greedy release: a bound for every rule that lets an instance pass
//!   sooner.
//! * *Phase modification*: at a fixed distance from the arrival, the sum of response bounds R before it. *Modified*: R after the
//!   predecessor's release, whose jitter it keeps. If R is exceeded the successor waits for the completion. R lasts until
//!   the successors know of the completion, so it includes the messages to them.

use super::model::Lane;
use talea_model::{LaneDispatch, Synchronisation};
use talea_policy::discipline::Discipline;

/// When a segment is released.
#[derive(Debug)]
pub(super) enum Entry {
    /// With its task, which has this jitter.
    Release(u64),
    /// When others have completed.
    After(After),
}

/// A release that waits for predecessors.
#[derive(Debug)]
pub(super) struct After {
    pub before: Vec<Predecessor>,
    /// How many of them the release waits for at least.
    pub needed: usize,
    /// With how many of them it is sure to be: some may never complete, and what completes first may be planned to be last.
    pub sufficient: usize,
    pub pacing: Pacing,
}

/// An operation that another one waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predecessor {
    pub operation: usize,
    /// How long its message travels.
    pub delay: u64,
    /// How long the slowest of its messages travels, to whatever successor.
    pub slowest_delay: u64,
    /// The response bound that the description gives, for planned releases.
    pub bound: Option<u64>,
}

/// What keeps releases apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pacing {
    /// Nothing.
    Greedy,
    /// A guard.
    Guarded(IdlePoints),
    /// Response bounds from the arrival on.
    FromArrival,
    /// Response bounds from the predecessor's release on.
    FromRelease,
}

/// What idle points do to guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdlePoints {
    /// Nothing, or nothing that a window of the segment's lane can see.
    Harmless,
    /// They may bring releases together inside a window.
    Open,
}

impl Pacing {
    /// That of a segment whose lane is not known yet.
    pub fn of(sync: Synchronisation) -> Self {
        match sync {
            Synchronisation::Greedy => Pacing::Greedy,
            Synchronisation::ReleaseGuard => Pacing::Guarded(IdlePoints::Harmless),
            Synchronisation::ReleaseGuardIdle | Synchronisation::ReleaseGuardIdleOne => {
                Pacing::Guarded(IdlePoints::Open)
            }
            Synchronisation::PhaseModification => Pacing::FromArrival,
            Synchronisation::ModifiedPhaseModification => Pacing::FromRelease,
        }
    }

    /// The same in its lane.
    pub fn within(self, lane: &Lane) -> Self {
        let by_order = lane.discipline == Discipline::Fifo || lane.rules.dispatch == LaneDispatch::Preemptive;
        match self {
            Pacing::Guarded(_) if by_order => Pacing::Guarded(IdlePoints::Harmless),
            pacing => pacing,
        }
    }
}

/// What is known of a segment's releases, all counted from the arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Releases {
    pub earliest: u64,
    pub latest: u64,
    /// By how much two of them can be closer together than a period.
    pub jitter: u64,
}

/// What is known of a predecessor: its releases, and its latest completion after the arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub released: Releases,
    pub latest: u64,
    /// What it takes from its own release on.
    pub response: u64,
}

impl Entry {
    /// Whether idle points may bring its releases together.
    pub fn is_open(&self) -> bool {
        matches!(self, Entry::After(after) if after.pacing == Pacing::Guarded(IdlePoints::Open))
    }

    /// Before anything is known of others.
    pub fn first(&self) -> Releases {
        match self {
            Entry::Release(jitter) => Releases { earliest: 0, latest: *jitter, jitter: *jitter },
            Entry::After(_) => Releases { earliest: 0, latest: 0, jitter: 0 },
        }
    }
}

impl After {
    /// The releases, given what is known of each predecessor; `None` if they may be put off for ever or beyond what can be
    /// counted.
    pub fn releases(&self, completion: impl Fn(usize) -> Option<Completion>) -> Option<Releases> {
        let mut planned = Vec::with_capacity(self.before.len());
        let mut latest = Vec::with_capacity(self.before.len());
        for predecessor in &self.before {
            let known = completion(predecessor.operation);
            latest.push(known.and_then(|known| self.latest_after(predecessor, known)).unwrap_or(u64::MAX));
            planned.push(known.map_or(0, |known| self.planned_after(predecessor, known)));
        }
        let latest = nth_smallest(latest, self.sufficient);
        let earliest = match self.pacing {
            Pacing::FromArrival | Pacing::FromRelease => nth_smallest(planned, self.needed).min(latest),
            Pacing::Greedy | Pacing::Guarded(_) => 0,
        };
        let jitter = match self.pacing {
            Pacing::Guarded(IdlePoints::Harmless) => 0,
            _ => latest - earliest,
        };
        (latest < u64::MAX).then_some(Releases { earliest, latest, jitter })
    }

    /// When the message of a predecessor lets the release be, at the latest.
    fn latest_after(&self, predecessor: &Predecessor, known: Completion) -> Option<u64> {
        let bound = predecessor.response_bound(known);
        let planned = match self.pacing {
            Pacing::Greedy | Pacing::Guarded(_) => 0,
            Pacing::FromArrival => known.released.earliest.checked_add(bound)?,
            Pacing::FromRelease => known.released.latest.checked_add(bound)?,
        };
        Some(planned.max(known.latest.checked_add(predecessor.delay)?))
    }

    /// When it lets the release be, at the earliest, if releases are planned.
    fn planned_after(&self, predecessor: &Predecessor, known: Completion) -> u64 {
        known.released.earliest.saturating_add(predecessor.response_bound(known))
    }
}

impl Predecessor {
    /// R: the described bound, or what is known of its response and messages.
    fn response_bound(&self, known: Completion) -> u64 {
        self.bound.unwrap_or(known.response.saturating_add(self.slowest_delay))
    }
}

/// When this many of some moments have passed.
fn nth_smallest(mut moments: Vec<u64>, count: usize) -> u64 {
    moments.sort_unstable();
    moments[count - 1]
}
