//! When the costs of the mechanisms are paid, for a trace that is to tell of them, and for promises that are judged by what is received.
//!
//! Costs are part of the processor time a job needs, so the outcome of a simulation does not depend on when within that
//! time they are paid. The ledger says when: first, before the job gets further. An interrupt is paid at once,
//! then the switch, the queue, the message with what pushing events takes. A payment that a preemption cuts off goes on later, so every payment is a
//! stretch, or several, of the job's time on its processor, and none is longer than it was on it.

use talea_policy::hierarchy::VpId;
use talea_record::CostKind;
use talea_time::{Instant, Work};

/// The order in which a job pays.
const ORDER: [CostKind; 4] = [CostKind::Release, CostKind::Switch, CostKind::Queue, CostKind::Delivery];

/// What a job has yet to pay, and for how many events, in the order of [`ORDER`].
#[derive(Clone, Copy, Debug, Default)]
struct Due([(Work, u32); ORDER.len()]);

/// A payment under way on a processor.
#[derive(Clone, Copy, Debug)]
struct Paying {
    /// Index into [`ORDER`].
    kind: usize,
    since: Instant,
    until: Instant,
}

/// A payment, or a part of one, that has been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paid {
    pub kind: CostKind,
    pub cost: Work,
    /// How many events it is for.
    pub count: u32,
}

/// What the jobs of one node owe and pay. Most simulations have none, hence the cold functions.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// By VP number.
    due: Vec<Due>,
    /// By processor.
    paying: Vec<Option<Paying>>,
    /// Whether a trace is to tell of every payment when it ends.
    pub is_recorded: bool,
}

impl Ledger {
    pub fn new(processors: usize) -> Self {
        Ledger { due: Vec::new(), paying: vec![None; processors], is_recorded: false }
    }

    /// The next instant at which a payment ends that is to be recorded then.
    #[cold]
    pub fn next(&self) -> Instant {
        if !self.is_recorded {
            return Instant::MAX;
        }
        self.paying.iter().flatten().map(|paying| paying.until).min().unwrap_or(Instant::MAX)
    }

    /// A new job takes the slot; it owes nothing yet.
    #[cold]
    pub fn open(&mut self, vp: VpId) {
        if self.due.len() <= vp.index() {
            self.due.resize(vp.index() + 1, Due::default());
        }
        self.due[vp.index()] = Due::default();
    }

    /// The job owes `cost` for one event.
    #[cold]
    pub fn owe(&mut self, vp: VpId, kind: CostKind, cost: Work, count: u32) {
        let place = ORDER.iter().position(|known| *known == kind).expect("every kind has its turn");
        let (sum, events) = &mut self.due[vp.index()].0[place];
        if cost > Work::ZERO {
            *sum += cost;
            *events += count;
        }
    }

    /// The job that has the processor pays what it owes next, from `now` on.
    #[cold]
    pub fn begin(&mut self, processor: usize, vp: VpId, now: Instant) {
        let due = &self.due[vp.index()].0;
        let next = due.iter().position(|(cost, _)| *cost > Work::ZERO);
        self.paying[processor] = next.map(|kind| {
            let until = now + due[kind].0.at_full_speed();
            Paying { kind, since: now, until }
        });
    }

    /// The payment on the processor that is complete by `now`. The job's next one has begun then.
    pub fn complete(&mut self, processor: usize, vp: VpId, now: Instant) -> Option<Paid> {
        let until = self.paying[processor].map(|paying| paying.until).filter(|until| *until <= now)?;
        let paid = self.stop(processor, vp, until);
        self.begin(processor, vp, until);
        paid
    }

    /// When the job on the processor will have paid all that it owes; none if it does not pay.
    pub fn paid_at(&self, processor: usize, vp: VpId) -> Option<Instant> {
        let since = self.paying[processor]?.since;
        let owed = self.due[vp.index()].0.iter().fold(Work::ZERO, |sum, (cost, _)| sum + *cost);
        Some(since.saturating_add(owed.at_full_speed()))
    }

    /// The job stops paying at `now`, because it loses the processor or owes something more urgent. What it has paid so
    /// far, unless that is nothing.
    pub fn stop(&mut self, processor: usize, vp: VpId, now: Instant) -> Option<Paid> {
        let Paying { kind, since, until } = self.paying[processor].take()?;
        let cost = (now.min(until) - since).as_work();
        let (owed, count) = &mut self.due[vp.index()].0[kind];
        *owed -= cost;
        // The events are told with the first part of their payment.
        (cost > Work::ZERO).then(|| Paid { kind: ORDER[kind], cost, count: std::mem::take(count) })
    }
}
