//! CPU reservations: a budget in every period, by earliest deadline first (Regehr and Stankovic 2001, section 5.1, "RES";
//! Abeni and Buttazzo 1998, constant bandwidth server).
//!
//! ```text
//!   asleep ──wake: keep what is left if that is safe, else a new period from now──▶ eligible
//!                                                                                   │  ▲
//!                                   budget used up ┌── suspended until the deadline ◀┘  │ then a new period  (hard)
//!                                                  └── new budget, deadline one period later ──┘       (soft)
//! ```
//!
//! The rule at a wake-up is the constant bandwidth server's: what is left of budget `Q` and deadline `d` may be kept only if it could have
//! been received at the reserved rate, `left < (d - now) Q / P`. Without it a child that sleeps through most of its
//! period and then claims its whole budget takes it from others. Periods therefore start when a child wakes up late, and
//! follow each other without a gap while it stays awake. In any `t` a child receives at most `2 Q + t Q / P`.
//!
//! *Hard*: ALL or RESU becomes RESBH for each child: at least and at most the budget in each of its periods; this is
//! Regehr's scheduler and the hard form of the server. *Soft*: the server as published, which is not hard: a child that has used
//! up its budget competes on with a later deadline, so the processor is never left idle while somebody wants it. Admission is exact:
//! `sum Q / P <= capacity`. Costs a look at every child per notification, plus a timer per budget and per
//! period.
//!
//! Do not use the soft form to cap anybody, nor the hard one below a parent that promises less than ALL or RESU: budgets
//! would be promised that cannot be had. A *change* of a child's reservation takes its effect with the next period.

use super::configuration::{at_most_whole, boxed};
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{Context, Fraction, Load, Parameters, Refusal, Scheduler, Spent};
use talea_model::SchedulerKind;
use talea_time::{Duration, Instant, Work};

/// What happens to a child whose budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhaustion {
    /// It waits for its next period: hard.
    Suspend,
    /// It gets a new budget with a deadline one period later: soft.
    Postpone,
}

/// The rule. Children register with [`Parameters::Reservation`].
#[derive(Clone, Debug)]
pub struct Reservation {
    exhaustion: Exhaustion,
    capacity: Fraction,
}

/// A child's reservation.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    budget: Work,
    period: Duration,
    share: Fraction,
    /// What is left until `deadline`. Below zero if the processor was taken later than it should have been.
    left: Work,
    /// End of the current period.
    deadline: Instant,
    /// It goes on from another scheduler, whose place this one has taken: it does not wake up when it is first heard of.
    goes_on: bool,
}

impl Budget {
    /// What is left of the budget.
    pub fn left(&self) -> Work {
        self.left
    }

    /// End of the current period.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The next budget; what was overdrawn is paid back.
    fn refill(&mut self, deadline: Instant) {
        self.left = self.budget + self.left.min(Work::ZERO);
        self.deadline = deadline;
    }

    fn is_safe_to_keep(&self, now: Instant) -> bool {
        is_safe_to_keep(self.left, self.deadline - now, (self.budget, self.period))
    }
}

/// Whether what is `left` is less than the reserved rate, a budget in a period, delivers until the deadline.
pub(super) fn is_safe_to_keep(
    left: Work,
    until_deadline: Duration,
    (budget, period): (Work, Duration),
) -> bool {
    let left = i128::from(left.as_nanos()) * i128::from(period.as_nanos());
    left < i128::from(until_deadline.as_nanos()) * i128::from(budget.as_nanos())
}

impl Reservation {
    /// The rule for a processor of which at most `capacity` is reserved.
    pub fn new(exhaustion: Exhaustion, capacity: Fraction) -> Self {
        Reservation { exhaustion, capacity }
    }

    /// A scheduler by this rule.
    pub fn scheduler(exhaustion: Exhaustion, capacity: Fraction) -> Uniprocessor<Self> {
        Uniprocessor::new(Self::new(exhaustion, capacity))
    }

    fn budget<'a>(
        &self,
        now: Instant,
        others: impl Iterator<Item = &'a Budget>,
        given: Parameters,
    ) -> Result<Budget, Refusal> {
        let wanted = "a budget above 0 and at most its period";
        let refusal = Refusal::unacceptable(self.kind(), wanted, given);
        let Parameters::Reservation { budget, period } = given else { return Err(refusal) };
        let share =
            Fraction::of(budget, period).filter(|_| budget.at_full_speed() <= period).ok_or(refusal)?;
        Load::of(others.map(|other| other.share)).admit(share, self.capacity)?;
        Ok(Budget { budget, period, share, left: budget, deadline: now + period, goes_on: false })
    }
}

impl Rule for Reservation {
    type Account = Budget;

    fn kind(&self) -> &'static str {
        match self.exhaustion {
            Exhaustion::Suspend => SchedulerKind::RESERVATION.name(),
            Exhaustion::Postpone => SchedulerKind::SOFT_CBS.name(),
        }
    }

    fn admit(
        &mut self,
        cx: &Context<'_>,
        clients: &Clients<Budget>,
        given: Parameters,
    ) -> Result<Budget, Refusal> {
        let mut account = self.budget(cx.now(), clients.accounts(), given)?;
        // The first period starts when the child wakes up.
        account.deadline = cx.now();
        Ok(account)
    }

    fn change(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Budget>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let others = clients.accounts().enumerate().filter(|(other, _)| *other != place);
        let new = self.budget(cx.now(), others.map(|(_, account)| account), given)?;
        let account = clients.account_mut(place);
        *account = Budget { left: account.left.min(new.budget), deadline: account.deadline, ..new };
        Ok(())
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<Budget>, place: usize) {
        let account = clients.account_mut(place);
        if !std::mem::take(&mut account.goes_on) && !account.is_safe_to_keep(cx.now()) {
            account.refill(cx.now() + account.period);
        }
    }

    fn spent(&self, _cx: &Context<'_>, clients: &Clients<Budget>, place: usize) -> Option<(Work, Instant)> {
        let account = clients.account(place);
        // Who gets new budgets as soon as one is used up has no maximum.
        (self.exhaustion == Exhaustion::Suspend).then(|| (account.budget - account.left, account.deadline))
    }

    fn carry_over(&mut self, cx: &Context<'_>, clients: &mut Clients<Budget>, place: usize, spent: Spent) {
        let account = clients.account_mut(place);
        account.left = (account.budget - spent.used).max(Work::ZERO);
        account.deadline = spent.until.min(cx.now() + account.period);
        account.goes_on = spent.is_pending;
        while self.exhaustion == Exhaustion::Postpone && account.left <= Work::ZERO {
            account.refill(account.deadline + account.period);
        }
    }

    fn ran(&mut self, _cx: &Context<'_>, clients: &mut Clients<Budget>, place: usize, used: Work) {
        let account = clients.account_mut(place);
        account.left -= used;
        while self.exhaustion == Exhaustion::Postpone && account.left <= Work::ZERO {
            account.refill(account.deadline + account.period);
        }
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Budget>) {
        if self.exhaustion == Exhaustion::Postpone {
            return;
        }
        for place in 0..clients.len() {
            if !clients.wants(cx, place) {
                continue;
            }
            let account = clients.account_mut(place);
            while account.deadline <= cx.now() {
                account.refill(account.deadline + account.period);
            }
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Budget>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let eligible = clients.wanting(cx).filter(|(_, account)| account.left > Work::ZERO);
        eligible.min_by_key(|(_, account)| account.deadline).map(|(place, _)| place)
    }

    fn wants(&self, cx: &Context<'_>, clients: &Clients<Budget>) -> bool {
        clients.wanting(cx).any(|(_, account)| account.left > Work::ZERO)
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Budget>, stint: Option<Stint>) -> Option<Instant> {
        let used_up = stint.map(|stint| cx.now() + clients.account(stint.place).left.at_full_speed());
        if self.exhaustion == Exhaustion::Postpone {
            return used_up;
        }
        let period_ends = clients.wanting(cx).map(|(_, account)| account.deadline);
        period_ends.chain(used_up).min()
    }

    fn deadline(&self, cx: &Context<'_>, clients: &Clients<Budget>) -> Option<Instant> {
        let eligible = clients.wanting(cx).filter(|(_, account)| account.left > Work::ZERO);
        eligible.map(|(_, account)| account.deadline).min()
    }

    fn check_invariants(&self, cx: &Context<'_>, clients: &Clients<Budget>) {
        for (_, account) in clients.wanting(cx) {
            assert!(account.left <= account.budget, "no budget is saved up");
            let suspended = account.left <= Work::ZERO;
            assert!(!suspended || account.deadline > cx.now(), "a suspended child waits for something");
        }
    }
}

/// What reservations, which are constant-bandwidth servers, is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What happens to a child whose budget is used up.
    pub exhaustion: Exhaustion,
    /// The most that is reserved.
    pub capacity: Fraction,
}

impl Config {
    /// Hard reservations of at most `capacity` together.
    pub const fn hard(capacity: Fraction) -> Self {
        Config { exhaustion: Exhaustion::Suspend, capacity }
    }

    fn rule(&self) -> Reservation {
        Reservation::new(self.exhaustion, self.capacity)
    }
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        self.rule().kind()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        at_most_whole(self, self.capacity)?;
        boxed(Uniprocessor::new(self.rule()), announcing)
    }
}

const fn row(kind: SchedulerKind) -> Row {
    Row::new(kind, |facts| Ok(Config::hard(facts.speed()).into()))
}

pub(super) static ROW: Row = row(SchedulerKind::RESERVATION);
pub(super) static CBS: Row = row(SchedulerKind::CBS);
pub(super) static SOFT_CBS: Row = Row::new(SchedulerKind::SOFT_CBS, |facts| {
    Ok(Config { exhaustion: Exhaustion::Postpone, capacity: facts.speed() }.into())
});
