//! What is received of what is granted where the mechanisms cost something.
//!
//! A job pays first, before it gets further, with time that its thread has been granted (`ledger` says in which order; here the sum is
//! enough). Meanwhile neither the thread nor anybody above it receives anything. So a second watch over the same edges sees them
//! as ready while they run and pay.

use talea_guarantee::monitor::Violation;
use talea_policy::arrangement::{Change, Kept, Receipts, Watch};
use talea_policy::hierarchy::{ProcessorId, Transition, Trigger, VpId, VpState};
use talea_time::{Instant, Work};

/// A payment under way on a processor.
#[derive(Clone, Copy, Debug)]
struct Paying {
    vp: VpId,
    since: Instant,
    until: Instant,
}

/// A virtual processor as the engine has it, and as the watch was told.
#[derive(Clone, Copy, Debug)]
struct Standing {
    is: VpState,
    told: VpState,
}

/// What the jobs of a node's hierarchy owe, and a watch over what they receive.
#[derive(Debug)]
pub(crate) struct Toll {
    watch: Watch,
    /// By VP number.
    owed: Vec<Work>,
    standing: Vec<Standing>,
    /// By processor.
    paying: Vec<Option<Paying>>,
    /// Broken promises that have come to light, by edge.
    broken: Vec<(usize, Violation)>,
}

impl Toll {
    /// Nobody owes anything; `watch` is the companion of the one over what is granted, and `held` what this one told.
    pub fn new(mut watch: Watch, held: impl Iterator<Item = Change>, processors: usize) -> Self {
        held.for_each(|change| watch.apply(change));
        let paying = vec![None; processors];
        Toll { watch, owed: Vec::new(), standing: Vec::new(), paying, broken: Vec::new() }
    }

    fn owed(&mut self, vp: VpId) -> &mut Work {
        if self.owed.len() <= vp.index() {
            self.owed.resize(vp.index() + 1, Work::ZERO);
        }
        &mut self.owed[vp.index()]
    }

    /// A new job has the virtual processor, and owes this much.
    #[cold]
    pub fn open(&mut self, vp: VpId, cost: Work) {
        *self.owed(vp) = cost;
    }

    /// A job that does not pay at the moment owes more.
    #[cold]
    pub fn owe(&mut self, vp: VpId, cost: Work) {
        *self.owed(vp) += cost;
    }

    /// The job that has the processor pays, from `now` on.
    #[cold]
    pub fn begin(&mut self, processor: usize, vp: VpId, now: Instant) {
        let owed = *self.owed(vp);
        let until = now.saturating_add(owed.at_full_speed());
        self.paying[processor] = (owed > Work::ZERO).then_some(Paying { vp, since: now, until });
    }

    /// The job on the processor stops paying at `now`: it loses the processor, ends or owes more.
    #[cold]
    pub fn stop(&mut self, processor: usize, now: Instant) {
        self.settle_payments(now);
        if let Some(Paying { vp, since, .. }) = self.paying[processor].take() {
            *self.owed(vp) -= (now - since).as_work();
        }
    }

    /// What has become of virtual processors at `now`, after everybody has begun or stopped paying.
    #[cold]
    pub fn note(&mut self, transitions: &[Transition], now: Instant) {
        self.settle_payments(now);
        for Transition { vp, state, .. } in transitions.iter().copied() {
            if self.standing.len() <= vp.index() {
                let waiting = Standing { is: VpState::Waiting, told: VpState::Waiting };
                self.standing.resize(vp.index() + 1, waiting);
            }
            self.standing[vp.index()].is = state;
            self.tell(vp.index(), now);
        }
        // Those above run on when the thread below them is another one.
        (0..self.standing.len()).for_each(|vp| self.tell(vp, now));
    }

    /// Ends the payments that are complete at `now`: from then on is received what is granted.
    fn settle_payments(&mut self, now: Instant) {
        for processor in 0..self.paying.len() {
            let Some(Paying { vp, until, .. }) = self.paying[processor].filter(|paying| paying.until <= now)
            else {
                continue;
            };
            self.paying[processor] = None;
            *self.owed(vp) = Work::ZERO;
            let own = VpState::Running(ProcessorId::from_index(processor as u16));
            for vp in 0..self.standing.len() {
                if self.standing[vp].is == own {
                    self.tell(vp, until);
                }
            }
        }
    }

    /// Tells the watch how the virtual processor stands.
    fn tell(&mut self, vp: usize, now: Instant) {
        let Standing { is, told } = self.standing[vp];
        let seen = match is {
            VpState::Running(processor) if self.paying[processor.index()].is_some() => VpState::Ready,
            other => other,
        };
        if seen != told {
            self.standing[vp].told = seen;
            let transition =
                Transition { vp: VpId::from_index(vp as u32), state: seen, trigger: Trigger::Change };
            self.broken.extend(self.watch.note(transition, now));
        }
    }

    /// The broken promises that have come to light since the last call.
    pub fn broken(&mut self) -> impl Iterator<Item = (usize, Violation)> {
        self.broken.drain(..)
    }

    /// What was granted up to `now`, with what of it was received.
    pub fn received(&mut self, granted: Vec<Kept>, now: Instant) -> Vec<Kept> {
        self.settle_payments(now);
        for vp in 0..self.standing.len() {
            let transition = Transition {
                vp: VpId::from_index(vp as u32),
                state: self.standing[vp].told,
                trigger: Trigger::Change,
            };
            self.broken.extend(self.watch.note(transition, now));
        }
        let with = |(granted, received): (Kept, Kept)| {
            let withheld_ns = granted.received_ns - received.received_ns;
            let (violations, worst) = (received.violations, received.worst);
            granted.with_receipts(Receipts { withheld_ns, violations, worst })
        };
        granted.into_iter().zip(self.watch.so_far()).map(with).collect()
    }
}
