//! When segments are released, counted from the arrivals of their task: what the synchronisation protocols make of the
//! completions before them (Sun and Liu 1996).
//!
//! * *Greedy*: at the completion. All of the delay is jitter.
//! * *Release guards*, rules 1 and 2: instance m is released at max(signal(m), release(m - 1) + T). By induction over m that is
//!   no later after its arrival than its predecessors complete at the latest, for arrivals are T apart; and releases are T
//!   apart, so for everybody else there is no jitter.
//!   That needs signals in the order of the instances. Where lanes may complete them in another order, let S be the latest signal
//!   after an arrival: of j signals in a row, the j arrivals lie within S and their distance, so that none waits for longer than S.
//! * Rule 3 resets guards at idle points. No idle point lies inside a window, so that windows of fixed priorities see releases T
//!   apart all the same (Sun and Liu, section 4). For non-preemptive lanes that order by deadline or laxity nobody has published
//!   that, so there the delay counts as jitter, as under greedy release: a bound for every rule that lets an instance pass
//!   sooner.
//! * *Phase modification*: at a fixed distance from the arrival, the sum of response bounds R before it. *Modified*: R after the
//!   predecessor's release, whose jitter it keeps. If R is exceeded the successor waits for the completion. R lasts until
//!   the successors know of the completion, so it includes the messages to them.

use super::model::Lane;
use super::triggered::{Curve, Triggered};
use talea_model::{LaneDispatch, Synchronisation};
use talea_policy::discipline::Discipline;

/// When a segment is released.
#[derive(Debug)]
pub(super) enum Entry {
    /// With its task, which has this jitter.
    Release(u64),
    /// With its task, which has a trigger.
    Triggered(Triggered),
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
    /// The distance that a guard keeps: that of the declared arrivals, which may come closer together than they declare.
    pub guard_period: u64,
}

/// An operation that another one waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Predecessor {
    pub operation: usize,
    /// How long its message travels at most.
    pub delay: u64,
    /// Whether messages take equally long, so that none overtakes another.
    pub keeps_order: bool,
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
    /// Whether they are sure to be in the order of the instances.
    pub in_order: bool,
    /// By how much some arrivals in a row can be closer together than as many periods: nothing where a period releases.
    pub bunched: u64,
    /// How long the guard of a trigger holds an arrival back at most.
    pub held: u64,
    /// Whether that guard may hold arrivals back without end. Everything is counted from the release of the first subtasks then.
    pub backlogged: bool,
}

impl Releases {
    /// Those of what is released at its arrivals, a period apart.
    pub const PERIODIC: Releases = Releases {
        earliest: 0,
        latest: 0,
        jitter: 0,
        in_order: true,
        bunched: 0,
        held: 0,
        backlogged: false,
    };
}

/// What is known of a predecessor: its releases, and its latest completion after the arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion {
    pub released: Releases,
    pub latest: u64,
    /// What it takes from its own release on.
    pub response: u64,
    /// Whether instances are sure to complete in order.
    pub in_order: bool,
}

impl Entry {
    /// Whether idle points may bring its releases together.
    pub fn is_open(&self) -> bool {
        matches!(self, Entry::After(after) if after.pacing == Pacing::Guarded(IdlePoints::Open))
    }

    /// What comes to the guard of a trigger, before anything is known of others.
    pub fn first_signals(&self) -> Option<Curve> {
        match self {
            Entry::Triggered(triggered) => triggered.first_signals(),
            Entry::Release(_) | Entry::After(_) => None,
        }
    }

    /// Before anything is known of others.
    pub fn first(&self) -> Releases {
        match self {
            Entry::Release(jitter) => Releases { latest: *jitter, jitter: *jitter, ..Releases::PERIODIC },
            Entry::Triggered(triggered) => triggered.first(),
            Entry::After(_) => Releases::PERIODIC,
        }
    }
}

impl After {
    /// The releases of a segment of this period, given what is known of each predecessor; `None` if they may be put off for ever or
    /// beyond what can be counted.
    pub fn releases(
        &self,
        period: u64,
        completion: impl Fn(usize) -> Option<Completion>,
    ) -> Option<Releases> {
        let count = self.before.len();
        let (mut signals, mut plans) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut earliest_plans = Vec::with_capacity(count);
        let (mut bunched, mut held, mut backlogged) = (0, 0, false);
        // One that may be missing from an instance makes the next instance go ahead by it.
        let mut in_order = self.sufficient == self.needed || self.needed == count;
        for predecessor in &self.before {
            let known = completion(predecessor.operation);
            let signal = known.and_then(|known| known.latest.checked_add(predecessor.delay));
            if let Some(Completion { released, .. }) = known {
                (bunched, held) = (bunched.max(released.bunched), held.max(released.held));
                backlogged |= released.backlogged;
            }
            signals.push(signal.unwrap_or(u64::MAX));
            plans.push(
                known.map_or(u64::MAX, |known| self.planned(predecessor, known, known.released.latest)),
            );
            earliest_plans
                .push(known.map_or(0, |known| self.planned(predecessor, known, known.released.earliest)));
            in_order &= known.is_none_or(|known| {
                let apart = period.saturating_add(known.released.earliest);
                let never_two =
                    signal.is_some_and(|signal| signal.saturating_add(known.released.bunched) <= apart);
                never_two || known.in_order && predecessor.keeps_order
            });
        }
        let latest_of = |index: usize| signals[index].max(plans[index]);
        let latest = nth_smallest((0..count).map(latest_of).collect(), self.sufficient);
        let latest = if in_order { latest } else { self.out_of_order(period, latest, signals) };
        let latest = latest.saturating_add(self.behind_others(period, bunched, held)?);
        let earliest = nth_smallest(earliest_plans, self.needed).min(latest);
        let jitter = match self.pacing {
            Pacing::Guarded(IdlePoints::Harmless) if self.guard_period == period => 0,
            _ => (latest - earliest).saturating_add(bunched),
        };
        (latest < u64::MAX).then_some(Releases {
            earliest,
            latest,
            jitter,
            in_order,
            bunched,
            held,
            backlogged,
        })
    }

    /// How much longer an instance waits because others may have arrived closer before it than a period; `None` if ever longer.
    ///
    /// A guard releases m no later than max(signal(j) + (m - j) T) over the instances j up to m. Let a(j) be the release of j's first subtask:
    /// m - j of those take at least (m - j) T - bunched, and signal(j) is at most the latest signal after a(j), so that m is released at most
    /// `bunched` after its own latest signal. That counts from a(m), which is at most `held` after the arrival.
    fn behind_others(&self, period: u64, bunched: u64, held: u64) -> Option<u64> {
        match self.pacing {
            Pacing::Greedy => Some(0),
            Pacing::Guarded(_) if self.guard_period > period => None,
            Pacing::Guarded(_) if bunched == 0 && held == 0 => Some(0),
            Pacing::Guarded(_) => bunched.checked_add(held),
            // Those planned for the same instant follow each other a nanosecond apart.
            Pacing::FromArrival | Pacing::FromRelease if bunched == 0 => Some(0),
            Pacing::FromArrival | Pacing::FromRelease => (bunched / period).checked_add(2)?.checked_add(held),
        }
    }

    /// The latest release, if an instance may have to wait behind later ones at the guard.
    fn out_of_order(&self, period: u64, latest: u64, signals: Vec<u64>) -> u64 {
        let signal = nth_smallest(signals, self.sufficient);
        match self.pacing {
            Pacing::Greedy => latest,
            Pacing::Guarded(_) => latest.saturating_add(signal),
            // Those ahead have arrived by its signal and are released as planned, each a nanosecond after the other.
            Pacing::FromArrival | Pacing::FromRelease => {
                latest.saturating_add(signal).saturating_add(signal / period).saturating_add(2)
            }
        }
    }

    /// When the release is planned after a predecessor that is released at `released`; at once if time plans nothing.
    fn planned(&self, predecessor: &Predecessor, known: Completion, released: u64) -> u64 {
        let bound = predecessor.bound.unwrap_or(known.response.saturating_add(predecessor.slowest_delay));
        match self.pacing {
            Pacing::Greedy | Pacing::Guarded(_) => 0,
            Pacing::FromArrival => known.released.earliest.saturating_add(bound),
            Pacing::FromRelease => released.saturating_add(bound),
        }
    }
}

/// When this many of some moments have passed.
fn nth_smallest(mut moments: Vec<u64>, count: usize) -> u64 {
    moments.sort_unstable();
    moments[count - 1]
}
