//! Earliest eligible virtual deadline first (Stoica, Abdel-Wahab, Jeffay, Baruah, Gehrke and Plaxton 1996).
//!
//! Virtual time `V` passes at one over the sum of the weights of those that want the processor. A request of length `r` becomes
//! eligible at `ve` and is due at `vd = ve + r / weight`; among the requests with `ve <= V` the one with the least
//! `vd` is served, a quantum at a time. The next request of the same child has `ve = vd`. The *lag* of a child is what it should
//! have had minus what it had; all lags add up to zero.
//!
//! A child that goes to sleep with lag `l` above zero hands it to the others (`V += l / their weights`) and begins anew when it wakes
//! up. One that is in debt stays in the competition, asking for nothing, until the debt is paid, as the third of the published ways
//! to leave has it: if it took its debt away, whoever sleeps for a moment after every burst would be served before everybody else.
//!
//! ALL or RESU becomes PSBE for each child with error `q`: with requests of at most `r`, the lag stays above `-r` and below
//! `max(r, q)`. Costs a look at every child per notification.
//!
//! Do not use it under a parent that gives the processor only now and then: the bounds are against what it receives.

use super::configuration::{boxed, some_quantum};
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::virtual_time::{Pace, Virtual};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{Context, Parameters, Refusal, Scheduler};
use talea_model::SchedulerKind;
use talea_time::{Instant, Work};

/// The rule. Children register with [`Parameters::Weight`], then a request is one quantum, or [`Parameters::Requests`].
#[derive(Clone, Debug)]
pub struct Eevdf {
    quantum: Work,
    /// Sum of the weights of those that want the processor or are in debt.
    weights: u64,
    virtual_time: Virtual,
}

/// A child's request.
#[derive(Clone, Copy, Debug)]
pub struct VirtualRequest {
    weight: u32,
    pace: Pace,
    length: Work,
    /// What it has received of this request.
    used: Work,
    /// Of one in debt: when it is paid.
    eligible: Virtual,
    standing: Standing,
}

/// Whether a child counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It wants the processor.
    Wanting,
    /// It sleeps, but has had more than its share.
    InDebt,
    /// It sleeps.
    Away,
}

impl VirtualRequest {
    /// Virtual time at which the request may be served.
    pub fn eligible(&self) -> Virtual {
        self.eligible
    }

    /// Virtual time at which it is due.
    pub fn deadline(&self) -> Virtual {
        self.eligible + self.pace.after(self.length)
    }
}

impl Eevdf {
    /// The rule with this quantum.
    pub fn new(quantum: Work) -> Self {
        Eevdf { quantum, weights: 0, virtual_time: Virtual::ZERO }
    }

    /// A scheduler by this rule.
    pub fn scheduler(quantum: Work) -> Uniprocessor<Self> {
        Uniprocessor::new(Self::new(quantum))
    }

    /// Weight and length of requests.
    fn asked(&self, given: Parameters) -> Result<(u32, Work), Refusal> {
        match given {
            Parameters::Weight(weight @ 1..) => Ok((weight, self.quantum)),
            Parameters::Requests { weight: weight @ 1.., request } if request > Work::ZERO => {
                Ok((weight, request))
            }
            _ => Err(Refusal::unacceptable(self.kind(), "a weight and a request above 0", given)),
        }
    }

    /// Lets those go who have paid their debts by now, the first first: from then on, virtual time passed faster.
    fn release_debtors(&mut self, clients: &mut Clients<VirtualRequest>) {
        loop {
            let paid = |account: &&mut VirtualRequest| {
                account.standing == Standing::InDebt && account.eligible <= self.virtual_time
            };
            let Some(first) = clients.accounts_mut().filter(paid).min_by_key(|account| account.eligible)
            else {
                return;
            };
            first.standing = Standing::Away;
            let since = (self.virtual_time - first.eligible).times(first.weight);
            self.weights -= u64::from(first.weight);
            if self.weights > 0 {
                self.virtual_time += since.shared(self.weights);
            }
        }
    }

    /// How long the child may run before the next choice.
    fn slice(&self, account: &VirtualRequest) -> Work {
        self.quantum.min(account.length - account.used)
    }
}

impl Rule for Eevdf {
    type Account = VirtualRequest;

    fn kind(&self) -> &'static str {
        SchedulerKind::EEVDF.name()
    }

    fn admit(
        &mut self,
        _cx: &Context<'_>,
        _clients: &Clients<VirtualRequest>,
        given: Parameters,
    ) -> Result<VirtualRequest, Refusal> {
        let (weight, length) = self.asked(given)?;
        let pace = Pace::of(u64::from(weight));
        Ok(VirtualRequest {
            weight,
            pace,
            length,
            used: Work::ZERO,
            eligible: Virtual::ZERO,
            standing: Standing::Away,
        })
    }

    fn change(
        &mut self,
        _cx: &Context<'_>,
        clients: &mut Clients<VirtualRequest>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let (weight, length) = self.asked(given)?;
        let account = clients.account_mut(place);
        if account.standing != Standing::Away {
            self.weights = self.weights - u64::from(account.weight) + u64::from(weight);
            // What it has had and is owed is the same service at any weight.
            account.eligible += account.pace.after(account.used);
            account.used = Work::ZERO;
            let ahead = (account.eligible - self.virtual_time).times(account.weight);
            account.eligible = self.virtual_time + ahead.shared(u64::from(weight));
        }
        (account.weight, account.pace, account.length) = (weight, Pace::of(u64::from(weight)), length);
        Ok(())
    }

    fn regroup(&mut self, _cx: &Context<'_>, clients: &mut Clients<VirtualRequest>) {
        // Whoever has gone may have been in debt.
        let counting = clients.accounts().filter(|account| account.standing != Standing::Away);
        self.weights = counting.map(|account| u64::from(account.weight)).sum();
    }

    fn woke(&mut self, _cx: &Context<'_>, clients: &mut Clients<VirtualRequest>, place: usize) {
        let account = clients.account_mut(place);
        if account.standing == Standing::Away {
            self.weights += u64::from(account.weight);
            account.eligible = self.virtual_time;
        }
        account.standing = Standing::Wanting;
    }

    fn slept(&mut self, cx: &Context<'_>, clients: &mut Clients<VirtualRequest>, place: usize) {
        let account = clients.account_mut(place);
        let served = account.eligible + account.pace.after(account.used);
        account.used = Work::ZERO;
        if served > self.virtual_time {
            (account.standing, account.eligible) = (Standing::InDebt, served);
        } else {
            let lag = (self.virtual_time - served).times(account.weight);
            account.standing = Standing::Away;
            self.weights -= u64::from(account.weight);
            if self.weights > 0 {
                self.virtual_time += lag.shared(self.weights);
            }
        }
        if clients.wanting(cx).next().is_none() {
            // Lags add up to zero, so whoever comes first begins with none, and nobody is left to be paid.
            clients.accounts_mut().for_each(|account| account.standing = Standing::Away);
            self.weights = 0;
        } else {
            self.release_debtors(clients);
        }
    }

    fn ran(&mut self, _cx: &Context<'_>, clients: &mut Clients<VirtualRequest>, _place: usize, used: Work) {
        self.virtual_time += Pace::of(self.weights).after(used);
        self.release_debtors(clients);
    }

    fn stint_over(&mut self, _cx: &Context<'_>, clients: &mut Clients<VirtualRequest>, stint: Stint) {
        let account = clients.account_mut(stint.place);
        account.used += stint.used;
        if account.used >= account.length {
            // More than the request only if the processor was taken too late; that counts as well.
            account.eligible += account.pace.after(account.used);
            account.used = Work::ZERO;
        }
    }

    fn keeps(&self, _cx: &Context<'_>, clients: &Clients<VirtualRequest>, stint: Stint) -> bool {
        stint.used < self.slice(clients.account(stint.place))
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<VirtualRequest>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let eligible = clients.wanting(cx).filter(|(_, account)| account.eligible <= self.virtual_time);
        let due = eligible.min_by_key(|(_, account)| account.deadline());
        // Somebody is always eligible but for the rounding of virtual time.
        due.or_else(|| clients.wanting(cx).min_by_key(|(_, account)| account.eligible))
            .map(|(place, _)| place)
    }

    fn next(
        &self,
        cx: &Context<'_>,
        clients: &Clients<VirtualRequest>,
        stint: Option<Stint>,
    ) -> Option<Instant> {
        let left = |stint: Stint| self.slice(clients.account(stint.place)) - stint.used;
        stint.map(|stint| cx.now() + left(stint).at_full_speed())
    }

    fn check_invariants(&self, cx: &Context<'_>, clients: &Clients<VirtualRequest>) {
        let counting = clients.accounts().filter(|account| account.standing != Standing::Away);
        let weights: u64 = counting.map(|account| u64::from(account.weight)).sum();
        assert_eq!(weights, self.weights, "virtual time passes at the rate of all that count");
        let wanting = clients.accounts().filter(|account| account.standing == Standing::Wanting).count();
        assert_eq!(wanting, clients.wanting(cx).count(), "who wants the processor counts");
    }
}

/// What an earliest-eligible-virtual-deadline scheduler is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long each runs at most before the next choice.
    pub quantum: Work,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::EEVDF.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        some_quantum(self, self.quantum)?;
        boxed(Eevdf::scheduler(self.quantum), announcing)
    }
}

// In any window a child can fall behind by what it is ahead at its beginning, too: by a request and a quantum. The
// promise is one quantum, so both are half of it.
pub(super) static ROW: Row = Row::new(SchedulerKind::EEVDF, |facts| {
    let half = (facts.quantum().as_nanos() / 2).max(1);
    Ok(Config { quantum: Work::from_nanos(half) }.into())
});
