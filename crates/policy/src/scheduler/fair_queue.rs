//! Proportional share: start-time fair queueing with warp (Goyal, Guo and Vin 1996; Regehr and Stankovic 2001, section 5.1;
//! warp after Duda and Cheriton 1999).
//!
//! A quantum starts with tag `S = max(v, F)` after waking and with `S = F` otherwise, and ends with
//! `F = S + used / weight`; the child with the least `S - warp` is served. `v` is the `S` of the child that is or was last in service
//! (with warps, the least `S` of those that wanted the processor then), and the largest `F` so far while nobody wants it. It is taken
//! when a child is elected: who sleeps for a moment in which nobody else is elected is as far behind afterwards as before. How long
//! a quantum will be need not be known beforehand, so a processor that comes and goes is no trouble.
//!
//! PS becomes PS for each child, PSBE becomes PSBE, RESU becomes PSBE (believed, with the end of a quantum as deadline). With
//! `T` children, quantum `q` and input PSBE `s, delta`, a child with the fraction `r` of the weights has
//! PSBE `s r, r T q / s + r delta / s + q`, if no warp is used. Costs a look at every child per notification.
//!
//! Do not use it for deadlines: the error grows with the number of children. Warp lets a child run earlier, not more; used
//! by everybody it does nothing.

use super::configuration::{boxed, some_quantum};
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::virtual_time::{Pace, Virtual};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{Context, Parameters, Refusal, Scheduler};
use talea_model::SchedulerKind;
use talea_time::{Instant, Work};

/// What a child that wakes up does to the one that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeUp {
    /// It waits for the end of the quantum (Goyal et al.).
    Waits,
    /// It is served at once if its tag is less, and the quantum is cut short (Regehr's scheduler).
    Preempts,
}

impl WakeUp {
    /// The kind of scheduler that does so.
    const fn kind(self) -> SchedulerKind {
        match self {
            WakeUp::Waits => SchedulerKind::SFQ,
            WakeUp::Preempts => SchedulerKind::PROPORTIONAL_SHARE,
        }
    }
}

/// The rule. Children register with [`Parameters::Weight`] or [`Parameters::WarpedWeight`].
#[derive(Clone, Debug)]
pub struct FairQueue {
    quantum: Work,
    wake_up: WakeUp,
    /// `v`.
    virtual_time: Virtual,
    /// The largest finish tag so far.
    finished: Virtual,
    /// Somebody woke up who may preempt.
    woken: bool,
}

/// A child's tags.
#[derive(Clone, Copy, Debug)]
pub struct FairShare {
    pace: Pace,
    warp: Virtual,
    start: Virtual,
}

impl FairShare {
    /// Start tag of the current quantum, or of the next one.
    pub fn start(&self) -> Virtual {
        self.start
    }

    fn effective(&self) -> Virtual {
        self.start - self.warp
    }
}

impl FairQueue {
    /// The rule with this quantum.
    pub fn new(quantum: Work, wake_up: WakeUp) -> Self {
        FairQueue { quantum, wake_up, virtual_time: Virtual::ZERO, finished: Virtual::ZERO, woken: false }
    }

    /// A scheduler by this rule.
    pub fn scheduler(quantum: Work, wake_up: WakeUp) -> Uniprocessor<Self> {
        Uniprocessor::new(Self::new(quantum, wake_up))
    }

    fn share(&self, given: Parameters) -> Result<FairShare, Refusal> {
        let (weight, warp) = match given {
            Parameters::Weight(weight @ 1..) => (weight, Work::ZERO),
            Parameters::WarpedWeight { weight: weight @ 1.., warp } => (weight, warp.as_work()),
            _ => return Err(Refusal::unacceptable(self.kind(), "a weight above 0", given)),
        };
        Ok(FairShare { pace: Pace::of(u64::from(weight)), warp: Virtual::of(warp), start: Virtual::ZERO })
    }
}

impl Rule for FairQueue {
    type Account = FairShare;

    fn kind(&self) -> &'static str {
        self.wake_up.kind().name()
    }

    fn admit(
        &mut self,
        _cx: &Context<'_>,
        _clients: &Clients<FairShare>,
        given: Parameters,
    ) -> Result<FairShare, Refusal> {
        self.share(given)
    }

    fn change(
        &mut self,
        _cx: &Context<'_>,
        clients: &mut Clients<FairShare>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let start = clients.account(place).start;
        *clients.account_mut(place) = FairShare { start, ..self.share(given)? };
        Ok(())
    }

    fn woke(&mut self, _cx: &Context<'_>, clients: &mut Clients<FairShare>, place: usize) {
        let account = clients.account_mut(place);
        account.start = account.start.max(self.virtual_time);
        self.woken = true;
    }

    fn slept(&mut self, cx: &Context<'_>, clients: &mut Clients<FairShare>, _place: usize) {
        if clients.wanting(cx).next().is_none() {
            self.virtual_time = self.virtual_time.max(self.finished);
        }
    }

    fn stint_over(&mut self, _cx: &Context<'_>, clients: &mut Clients<FairShare>, stint: Stint) {
        let account = clients.account_mut(stint.place);
        account.start += account.pace.after(stint.used);
        self.finished = self.finished.max(account.start);
    }

    fn keeps(&self, _cx: &Context<'_>, _clients: &Clients<FairShare>, stint: Stint) -> bool {
        stint.used < self.quantum && !(self.woken && self.wake_up == WakeUp::Preempts)
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<FairShare>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        self.woken = false;
        if let Some(least) = clients.wanting(cx).map(|(_, account)| account.start).min() {
            self.virtual_time = self.virtual_time.max(least);
        }
        clients.wanting(cx).min_by_key(|(_, account)| account.effective()).map(|(place, _)| place)
    }

    fn next(&self, cx: &Context<'_>, _clients: &Clients<FairShare>, stint: Option<Stint>) -> Option<Instant> {
        stint.map(|stint| cx.now() + (self.quantum - stint.used).at_full_speed())
    }
}

/// What a fair queue is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long each runs.
    pub quantum: Work,
    /// What waking up does.
    pub wake_up: WakeUp,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        self.wake_up.kind().name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        some_quantum(self, self.quantum)?;
        boxed(FairQueue::scheduler(self.quantum, self.wake_up), announcing)
    }
}

pub(super) static PREEMPTING: Row = Row::new(SchedulerKind::PROPORTIONAL_SHARE, |facts| {
    Ok(Config { quantum: facts.quantum(), wake_up: WakeUp::Preempts }.into())
});

pub(super) static WAITING: Row = Row::new(SchedulerKind::SFQ, |facts| {
    Ok(Config { quantum: facts.quantum(), wake_up: WakeUp::Waits }.into())
});
