//! Limit: a soft reservation made hard (Regehr and Stankovic 2001, section 5.1).
//!
//! Counts what its single child receives in each period; when that is the budget, it releases the processor and does not ask
//! again until the next period. RESBS becomes RESBH with the same numbers. Costs a few instructions per
//! notification.
//!
//! A parent that promises for *its* periods only may serve at the end of one and at the beginning of the next, and nobody tells when they
//! begin. Of what comes in between, a limit that took them to begin at the one instant has to withhold what one that took
//! them to begin at the other has to let through; so no limit keeps its promise without knowing. It knows where it lays its periods
//! down by its parent's own rule ([`Renewal`]), with the parent's amount and period, and hears of the same requests and the same
//! service: then both keep the same books. Of a parent that promises for every interval, any periods will do. Elsewhere the
//! child may receive less than the parent would have given.

use super::configuration::{boxed, positive};
use super::facts::amounts;
use super::reservation::is_safe_to_keep;
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, Configuration, ConfigureError, Facts, KindError, Row};
use crate::hierarchy::{Context, Parameters, Refusal, Scheduler, Spent};
use talea_guarantee::exact::Share;
use talea_guarantee::scheduler::Periods;
use talea_model::{Request, SchedulerKind, Under};
use talea_time::{Duration, Instant, Work};

/// When a child that wakes up has a new period from then on. While it stays awake, they follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// If its last one has ended: the rule of the resource kernel.
    #[default]
    Over,
    /// Also if what is left of its budget could not have been received at its rate any more: the rule of reservations.
    Unsafe,
}

/// The rule. The one child registers with [`Parameters::None`].
#[derive(Clone, Debug)]
pub struct Limit {
    budget: Work,
    period: Duration,
    renewal: Renewal,
}

/// The one child's allowance.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    left: Work,
    /// End of the current period.
    end: Instant,
    /// It goes on from another scheduler, whose place this one has taken: it does not wake up when it is first heard of.
    goes_on: bool,
}

impl Limit {
    /// A scheduler that lets its child have `budget` in every `period`.
    pub fn scheduler(budget: Work, period: Duration, renewal: Renewal) -> Uniprocessor<Self> {
        Uniprocessor::new(Limit { budget, period, renewal })
    }

    fn begins_anew(&self, allowance: &Allowance, now: Instant) -> bool {
        match self.renewal {
            Renewal::Over => allowance.end <= now,
            Renewal::Unsafe => {
                !is_safe_to_keep(allowance.left, allowance.end - now, (self.budget, self.period))
            }
        }
    }
}

impl Rule for Limit {
    type Account = Allowance;

    fn kind(&self) -> &'static str {
        SchedulerKind::LIMIT.name()
    }

    fn admit(
        &mut self,
        cx: &Context<'_>,
        clients: &Clients<Allowance>,
        given: Parameters,
    ) -> Result<Allowance, Refusal> {
        match given {
            Parameters::None if clients.is_empty() => {
                Ok(Allowance { left: self.budget, end: cx.now(), goes_on: false })
            }
            Parameters::None => Err(Refusal::Taken { scheduler: self.kind(), given }),
            _ => Err(Refusal::unacceptable(self.kind(), "no parameters", given)),
        }
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<Allowance>, place: usize) {
        let account = clients.account_mut(place);
        if !std::mem::take(&mut account.goes_on) && self.begins_anew(account, cx.now()) {
            account.left = self.budget + account.left.min(Work::ZERO);
            account.end = cx.now() + self.period;
        }
    }

    fn spent(
        &self,
        _cx: &Context<'_>,
        clients: &Clients<Allowance>,
        place: usize,
    ) -> Option<(Work, Instant)> {
        let account = clients.account(place);
        Some((self.budget - account.left, account.end))
    }

    fn carry_over(&mut self, cx: &Context<'_>, clients: &mut Clients<Allowance>, place: usize, spent: Spent) {
        *clients.account_mut(place) = Allowance {
            left: (self.budget - spent.used).max(Work::ZERO),
            end: spent.until.min(cx.now() + self.period),
            goes_on: spent.is_pending,
        };
    }

    fn ran(&mut self, _cx: &Context<'_>, clients: &mut Clients<Allowance>, place: usize, used: Work) {
        clients.account_mut(place).left -= used;
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Allowance>) {
        if clients.is_empty() || !clients.wants(cx, 0) {
            return;
        }
        let account = clients.account_mut(0);
        while account.end <= cx.now() {
            account.left = self.budget + account.left.min(Work::ZERO);
            account.end += self.period;
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Allowance>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        clients.wanting(cx).find(|(_, account)| account.left > Work::ZERO).map(|(place, _)| place)
    }

    fn wants(&self, cx: &Context<'_>, clients: &Clients<Allowance>) -> bool {
        clients.wanting(cx).any(|(_, account)| account.left > Work::ZERO)
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Allowance>, stint: Option<Stint>) -> Option<Instant> {
        let used_up = stint.map(|stint| cx.now() + clients.account(stint.place).left.at_full_speed());
        clients.wanting(cx).map(|(_, account)| account.end).chain(used_up).min()
    }
}

/// What a limit is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most the child may have,
    pub budget: Work,
    /// per this much time.
    pub period: Duration,
    /// When such a period begins.
    pub renewal: Renewal,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::LIMIT.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        positive(self, "budget", self.budget.at_full_speed())?;
        if self.budget.at_full_speed() > self.period {
            return Err(KindError::MoreThanWhole { kind: self.name() });
        }
        boxed(Limit::scheduler(self.budget, self.period, self.renewal), announcing)
    }
}

// The amount is the scheduler's own parameter, so that its child registers with none.
pub(super) static ROW: Row =
    Row::new(SchedulerKind::LIMIT, configure).registering(|_, _, _| Ok(Parameters::None));

/// As much as its child asks for, or as it receives itself.
fn configure(facts: &Facts<'_>) -> Result<Configuration, ConfigureError> {
    let asked = facts.requests().find_map(|(child, request)| match request {
        Request::Guarantee(guarantee) => Some((child, guarantee)),
        _ => None,
    });
    let (child, guarantee) = match (facts.given_below(), asked) {
        (Some((child, guarantee)), _) => (child, guarantee),
        (None, Some((child, guarantee))) => (child, guarantee.clone()),
        // It limits nobody, or receives nothing that could be said in numbers: then to the whole.
        (None, None) => {
            let period = Duration::from_millis(1_000);
            return Ok(Config { budget: period.as_work(), period, renewal: Renewal::Over }.into());
        }
    };
    let amounts = guarantee.as_reservation().and_then(|reservation| amounts(reservation, &Share::whole()));
    let (budget, period) = amounts.ok_or_else(|| facts.too_fine(child, &guarantee))?;
    Ok(Config { budget, period, renewal: renewal(facts) }.into())
}

/// By whose rule a limit's periods begin: aligned with the reservation above, else its own.
fn renewal(facts: &Facts<'_>) -> Renewal {
    let schedulers = &facts.system().schedulers;
    let mut below = facts.scheduler();
    while let [Under { scheduler, .. }] = below.under.as_slice() {
        below = &schedulers[*scheduler];
        match below.kind.periods {
            Periods::WhenUnsafe => return Renewal::Unsafe,
            Periods::AsAbove | Periods::PassedOn => {}
            Periods::Own | Periods::WhenOver => break,
        }
    }
    Renewal::Over
}
