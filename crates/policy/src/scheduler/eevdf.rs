//! Earliest eligible virtual deadline first (Stoica, Abdel-Wahab, Jeffay, Baruah, Gehrke and Plaxton 1996).
//!
//! Virtual time `V` passes at one over the sum of the weights of those that want the processor. A request of length `r` becomes
//! eligible at `ve` and is due at `vd = ve + r / weight`; among the requests with `ve <= V` the one with the least
//! `vd` is served, a quantum at a time. The next request of the same child has `ve = vd`. A child that leaves with lag
//! `l` hands it to the others (`V += l / their weights`) and takes it back when it returns.
//!
//! ALL or RESU becomes PSBE for each child with error `q`: with requests of at most `r`, the *lag*, what a child should have had
//! minus what it had, stays above `-r` and below `max(r, q)`. Costs a look at every child per notification.
//!
//! Do not use it under a parent that gives the processor only now and then: the bounds are against what it receives.

use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::virtual_time::{Pace, Virtual};
use crate::hierarchy::{Context, Parameters, Refusal};
use talea_time::{Instant, Work};

/// The rule. Children register with [`Parameters::Weight`], then a request is one quantum, or [`Parameters::Requests`].
#[derive(Clone, Debug)]
pub struct Eevdf {
    quantum: Work,
    /// Sum of the weights of those that want the processor.
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
    eligible: Virtual,
    /// While it sleeps: what it is still owed, or has had too much, in units of service.
    lag: Virtual,
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

    /// How long the child may run before the next choice.
    fn slice(&self, account: &VirtualRequest) -> Work {
        self.quantum.min(account.length - account.used)
    }
}

impl Rule for Eevdf {
    type Account = VirtualRequest;

    fn kind(&self) -> &'static str {
        "eevdf"
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
            lag: Virtual::ZERO,
        })
    }

    fn change(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<VirtualRequest>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let (weight, length) = self.asked(given)?;
        // As if it left and came back at once: it keeps its lag, which is the same service at any weight.
        let wants = clients.wants(cx, place);
        if wants {
            self.slept(cx, clients, place);
        }
        let account = clients.account_mut(place);
        (account.weight, account.pace, account.length) = (weight, Pace::of(u64::from(weight)), length);
        if wants {
            self.woke(cx, clients, place);
        }
        Ok(())
    }

    fn woke(&mut self, _cx: &Context<'_>, clients: &mut Clients<VirtualRequest>, place: usize) {
        let account = clients.account_mut(place);
        if self.weights == 0 {
            // Lags add up to zero, so who is alone has none.
            account.lag = Virtual::ZERO;
        }
        self.weights += u64::from(account.weight);
        self.virtual_time -= account.lag.shared(self.weights);
        account.eligible = self.virtual_time - account.lag.shared(u64::from(account.weight));
    }

    fn slept(&mut self, _cx: &Context<'_>, clients: &mut Clients<VirtualRequest>, place: usize) {
        let account = clients.account_mut(place);
        let served = account.eligible + account.pace.after(account.used);
        account.lag = (self.virtual_time - served).times(account.weight);
        account.used = Work::ZERO;
        self.weights -= u64::from(account.weight);
        if self.weights > 0 {
            self.virtual_time += account.lag.shared(self.weights);
        }
    }

    fn ran(&mut self, _cx: &Context<'_>, _clients: &mut Clients<VirtualRequest>, _place: usize, used: Work) {
        self.virtual_time += Pace::of(self.weights).after(used);
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
        let weights: u64 = clients.wanting(cx).map(|(_, account)| u64::from(account.weight)).sum();
        assert_eq!(weights, self.weights, "virtual time passes at the rate of all that want the processor");
    }
}
