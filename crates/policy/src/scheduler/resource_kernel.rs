//! The reserves of a resource kernel: hard, firm and soft (Oikawa and Rajkumar 1999).
//!
//! A reserve `(C, T, D)` has priority by `D`, shorter first, while it has budget; the budget is `C` again at the start of every period. Without
//! budget a *hard* reserve stops, a *soft* one competes with the children that have no reserve, and a *firm* one runs when
//! nobody else wants to. Those compete round robin. A period starts with the first request after the one before
//! has ended.
//!
//! ALL or RESU becomes RESBS or RESBH for each reserve, NULL for the others. A budget may be claimed at the end of one period
//! and again at the start of the next, so admission is the response-time test with that jitter, for every reserve:
//! `w = C + sum over higher of ceil((w + T - C) / T) C <= D`. That is sound for children that block as they like, and
//! refuses more than the test for strictly periodic ones. Costs a look at every child per notification.
//!
//! Do not use it to fill a processor: reservations by earliest deadline admit up to its whole.

use super::configuration::{boxed, some_quantum};
use super::facts::reservation_in;
use super::round_robin::Turns;
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, ConfigureError, Facts, KindError, Row};
use crate::hierarchy::{Context, Enforcement, Parameters, Refusal, SPARE, Scheduler, Shortage, Spent};
use talea_guarantee::guarantee::Hardness;
use talea_model::{Request, SchedulerKind};
use talea_time::{Duration, Instant, Work};

/// The rule. Children register with [`Parameters::Reserve`], or [`Parameters::None`] for no reserve.
#[derive(Clone, Debug)]
pub struct ResourceKernel {
    /// Of those that run without a reserve's priority.
    quantum: Work,
    turns: Turns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reserve {
    budget: Work,
    period: Duration,
    deadline: Duration,
    enforcement: Enforcement,
}

/// A child with its reserve, if it has one.
#[derive(Clone, Copy, Debug)]
pub struct Reserved {
    reserve: Option<Reserve>,
    left: Work,
    /// End of the current period.
    end: Instant,
    turn: u64,
    /// What is left of the quantum.
    slice: Work,
}

/// Who goes before whom; smaller first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Reserve(Duration),
    Ordinary(u64),
    LeftOver(u64),
}

impl Reserved {
    fn class(&self) -> Option<Class> {
        let Some(reserve) = self.reserve else { return Some(Class::Ordinary(self.turn)) };
        match reserve.enforcement {
            _ if self.left > Work::ZERO => Some(Class::Reserve(reserve.deadline)),
            Enforcement::Hard => None,
            Enforcement::Firm => Some(Class::LeftOver(self.turn)),
            Enforcement::Soft => Some(Class::Ordinary(self.turn)),
        }
    }

    fn refill(&mut self, reserve: Reserve, end: Instant) {
        self.left = reserve.budget + self.left.min(Work::ZERO);
        self.end = end;
    }

    /// How long it may run before something changes.
    fn stretch(&self) -> Work {
        if self.left > Work::ZERO { self.left } else { self.slice }
    }
}

/// How long `reserve` may take to get its budget below `higher`, if it ever does within its deadline.
fn response(reserve: Reserve, higher: impl Iterator<Item = Reserve> + Clone) -> Option<Duration> {
    let mut response = reserve.budget.at_full_speed();
    loop {
        let interference = higher.clone().map(|other| {
            let budget = other.budget.as_nanos();
            let window = i128::from(response.as_nanos()) + i128::from(other.period.as_nanos() - budget);
            let period = i128::from(other.period.as_nanos());
            (window + period - 1) / period * i128::from(budget)
        });
        let next = i128::from(reserve.budget.as_nanos()) + interference.sum::<i128>();
        let next = Duration::from_nanos(i64::try_from(next).ok()?);
        if next == response {
            return Some(response);
        }
        response = next;
        // Beyond the period it is too late anyway, and it may never end.
        if response > reserve.period {
            return None;
        }
    }
}

/// Whether every one of `reserves`, in order of registration, gets its budget in time.
fn all_in_time(reserves: &[Reserve]) -> Result<(), Shortage> {
    for (place, reserve) in reserves.iter().enumerate() {
        let higher = |other: usize| (reserves[other].deadline, other) < (reserve.deadline, place);
        let higher = (0..reserves.len()).filter(|other| higher(*other)).map(|other| reserves[other]);
        let response = response(*reserve, higher);
        if response.is_none_or(|response| response > reserve.deadline) {
            return Err(Shortage::Response { budget: reserve.budget, deadline: reserve.deadline, response });
        }
    }
    Ok(())
}

impl ResourceKernel {
    /// A scheduler with this quantum for whoever runs without budget.
    pub fn scheduler(quantum: Work) -> Uniprocessor<Self> {
        Uniprocessor::new(ResourceKernel { quantum, turns: Turns::default() })
    }
}

impl ResourceKernel {
    /// The reserve that is asked for, if there is room for it beside the `others`.
    fn reserve<'a>(
        &self,
        others: impl Iterator<Item = &'a Reserved>,
        given: Parameters,
    ) -> Result<Option<Reserve>, Refusal> {
        let Parameters::Reserve { budget, period, deadline, enforcement } = given else {
            let wanted = "a reserve or no parameters";
            return match given {
                Parameters::None => Ok(None),
                _ => Err(Refusal::unacceptable(self.kind(), wanted, given)),
            };
        };
        if budget <= Work::ZERO || budget.at_full_speed() > deadline || deadline > period {
            let wanted = "a budget above 0, at most the deadline, which is at most the period";
            return Err(Refusal::unacceptable(self.kind(), wanted, given));
        }
        let new = Reserve { budget, period, deadline, enforcement };
        let reserves: Vec<Reserve> = others.filter_map(|other| other.reserve).chain([new]).collect();
        all_in_time(&reserves)?;
        Ok(Some(new))
    }
}

impl Rule for ResourceKernel {
    type Account = Reserved;

    fn kind(&self) -> &'static str {
        SchedulerKind::RESOURCE_KERNEL.name()
    }

    fn admit(
        &mut self,
        cx: &Context<'_>,
        clients: &Clients<Reserved>,
        given: Parameters,
    ) -> Result<Reserved, Refusal> {
        let reserve = self.reserve(clients.accounts(), given)?;
        Ok(Reserved { reserve, left: Work::ZERO, end: cx.now(), turn: 0, slice: self.quantum })
    }

    fn change(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Reserved>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let others = clients.accounts().enumerate().filter(|(other, _)| *other != place);
        let reserve = self.reserve(others.map(|(_, account)| account), given)?;
        let account = clients.account_mut(place);
        // The current period ends as it would have; without a reserve there is none.
        match (account.reserve, reserve) {
            (Some(_), Some(new)) => account.left = account.left.min(new.budget),
            (None, _) => account.end = cx.now(),
            (Some(_), None) => account.left = Work::ZERO,
        }
        account.reserve = reserve;
        Ok(())
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<Reserved>, place: usize) {
        let account = clients.account_mut(place);
        account.turn = self.turns.next();
        account.slice = self.quantum;
        if let Some(reserve) = account.reserve.filter(|_| account.end <= cx.now()) {
            account.refill(reserve, cx.now() + reserve.period);
        }
    }

    fn spent(&self, _cx: &Context<'_>, clients: &Clients<Reserved>, place: usize) -> Option<(Work, Instant)> {
        let account = clients.account(place);
        account.reserve.map(|reserve| (reserve.budget - account.left, account.end))
    }

    fn carry_over(&mut self, cx: &Context<'_>, clients: &mut Clients<Reserved>, place: usize, spent: Spent) {
        let account = clients.account_mut(place);
        if let Some(reserve) = account.reserve {
            account.left = (reserve.budget - spent.used).max(Work::ZERO);
            account.end = spent.until.min(cx.now() + reserve.period);
        }
    }

    fn ran(&mut self, _cx: &Context<'_>, clients: &mut Clients<Reserved>, place: usize, used: Work) {
        let account = clients.account_mut(place);
        if account.left > Work::ZERO {
            account.left -= used;
            return;
        }
        account.slice -= used;
        if account.slice <= Work::ZERO {
            account.slice = self.quantum;
            account.turn = self.turns.next();
        }
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Reserved>) {
        for place in 0..clients.len() {
            if !clients.wants(cx, place) {
                continue;
            }
            let account = clients.account_mut(place);
            while let Some(reserve) = account.reserve.filter(|_| account.end <= cx.now()) {
                account.refill(reserve, account.end + reserve.period);
            }
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Reserved>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let candidates = clients.wanting(cx).filter_map(|(place, account)| Some((account.class()?, place)));
        candidates.min().map(|(_, place)| place)
    }

    fn wants(&self, cx: &Context<'_>, clients: &Clients<Reserved>) -> bool {
        clients.wanting(cx).any(|(_, account)| account.class().is_some())
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Reserved>, stint: Option<Stint>) -> Option<Instant> {
        let stretch = stint.map(|stint| cx.now() + clients.account(stint.place).stretch().at_full_speed());
        let reserved = clients.wanting(cx).filter(|(_, account)| account.reserve.is_some());
        reserved.map(|(_, account)| account.end).chain(stretch).min()
    }

    fn deadline(&self, cx: &Context<'_>, clients: &Clients<Reserved>) -> Option<Instant> {
        let known = |account: &Reserved| if account.left > Work::ZERO { account.end } else { SPARE };
        clients.wanting(cx).map(|(_, account)| known(account)).min()
    }
}

/// What a resource kernel is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long each without budget runs.
    pub quantum: Work,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::RESOURCE_KERNEL.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        some_quantum(self, self.quantum)?;
        boxed(ResourceKernel::scheduler(self.quantum), announcing)
    }
}

pub(super) static ROW: Row =
    Row::new(SchedulerKind::RESOURCE_KERNEL, |facts| Ok(Config { quantum: facts.quantum() }.into()))
        .registering(parameters);

/// A reserve as its guarantee says: hard, or soft, which the scheduler may take for firm.
fn parameters(facts: &Facts<'_>, child: &str, request: &Request) -> Result<Parameters, ConfigureError> {
    let usual = facts.parameters(child, request)?;
    let Parameters::Reservation { budget, period } = usual else { return Ok(usual) };
    let hardness = reservation_in(request).map(talea_guarantee::guarantee::Reservation::hardness);
    let enforcement = match hardness {
        Some(Hardness::Soft) if facts.word("enforcement") == "firm" => Enforcement::Firm,
        Some(Hardness::Soft) => Enforcement::Soft,
        Some(Hardness::Hard) | None => Enforcement::Hard,
    };
    Ok(Parameters::Reserve { budget, period, deadline: period, enforcement })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve(budget: i64, period: i64, deadline: i64) -> Reserve {
        Reserve {
            budget: Work::from_nanos(budget),
            period: Duration::from_nanos(period),
            deadline: Duration::from_nanos(deadline),
            enforcement: Enforcement::Hard,
        }
    }

    #[test]
    fn a_budget_claimed_late_and_early_counts_twice() {
        // 2 in 10 may be claimed from 8 to 12, so a window of 4 holds both and 3 more need 7 instead of 5.
        let claimed = reserve(2, 10, 10);
        assert_eq!(response(reserve(3, 20, 20), [claimed].into_iter()), Some(Duration::from_nanos(7)));
        assert_eq!(all_in_time(&[claimed, reserve(3, 20, 15)]), Ok(()));
        let refusal = all_in_time(&[claimed, reserve(6, 20, 9)]).unwrap_err();
        // The new reserve has priority; it is the old one that would suffer.
        assert_eq!(refusal.to_string(), "a reserve of 2ns within 10ns would need more than its period");
    }
}
