//! Stride scheduling (Waldspurger and Weihl 1995).
//!
//! A child's stride is `stride1 / tickets`; the child with the least pass is served for a quantum, after which its pass
//! grows by its stride, or by the used fraction of it. A global pass grows at the rate of all active tickets; a child that
//! leaves takes its distance to it along and gets it back when it returns, so sleeping earns nothing and costs nothing.
//!
//! PS becomes PS for each child, RESU becomes PS. Against what the scheduler receives, a child is off by less than a quantum relative
//! to any *one* other, but by as many as there are children relative to all. Costs a look at every child per notification.
//!
//! Do not use it where an error bound independent of the number of children is needed: EEVDF has one.

use super::configuration::{boxed, some_quantum};
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{Context, Parameters, Refusal, Scheduler};
use talea_model::SchedulerKind;
use talea_time::Work;

/// The large constant that strides are fractions of. Strides are whole, so shares of few tickets are exact (2^20 times the least common
/// multiple of 1 to 20) and others off by less than a part in 2^27. Of the customary 2^20 alone, 600 000 tickets and 1 000 000
/// would have the same stride.
pub const STRIDE1: u64 = (1 << 20) * 232_792_560;

/// The most tickets a child may have.
const TICKETS_MAX: u32 = 1 << 20;

/// The rule. Children register with [`Parameters::Weight`], their tickets, at most 2^20 and `stride1`.
///
/// Passes are kept in parts of one nanosecond's worth, so that fractions of quanta are exact.
#[derive(Clone, Debug)]
pub struct Stride {
    stride1: u64,
    quantum: Work,
    /// Tickets of those that want the processor.
    tickets: u64,
    /// The global pass.
    pass: i128,
}

/// A child's pass.
#[derive(Clone, Copy, Debug)]
pub struct StrideAccount {
    tickets: u32,
    stride: i128,
    /// Its pass while it wants the processor, its distance from the global pass otherwise.
    pass: i128,
}

impl StrideAccount {
    /// The pass in units of `stride1` per ticket and quantum, rounded down.
    pub fn pass(&self, quantum: Work) -> i128 {
        self.pass.div_euclid(i128::from(quantum.as_nanos()))
    }
}

impl Stride {
    /// The rule with strides of `stride1 / tickets`.
    pub fn new(stride1: u64, quantum: Work) -> Self {
        Stride { stride1, quantum, tickets: 0, pass: 0 }
    }

    /// A scheduler by this rule, with [`STRIDE1`].
    pub fn scheduler(quantum: Work) -> Uniprocessor<Self> {
        Uniprocessor::new(Self::new(STRIDE1, quantum))
    }

    fn account(&self, given: Parameters) -> Result<StrideAccount, Refusal> {
        match given {
            Parameters::Weight(tickets @ 1..=TICKETS_MAX) if u64::from(tickets) <= self.stride1 => {
                let stride = i128::from(self.stride1 / u64::from(tickets));
                Ok(StrideAccount { tickets, stride, pass: stride * i128::from(self.quantum.as_nanos()) })
            }
            _ => Err(Refusal::unacceptable(self.kind(), "a weight above 0 and at most 2^20", given)),
        }
    }
}

impl Rule for Stride {
    type Account = StrideAccount;

    fn kind(&self) -> &'static str {
        SchedulerKind::STRIDE.name()
    }

    fn admit(
        &mut self,
        _cx: &Context<'_>,
        _clients: &Clients<StrideAccount>,
        given: Parameters,
    ) -> Result<StrideAccount, Refusal> {
        self.account(given)
    }

    fn change(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<StrideAccount>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let new = self.account(given)?;
        let wants = clients.wants(cx, place);
        let account = clients.account_mut(place);
        // Its distance from the global pass is that part of a stride which it has still to wait (section 4.2).
        let origin = if wants { self.pass } else { 0 };
        let left = (account.pass - origin) * i128::from(account.tickets) / i128::from(new.tickets);
        if wants {
            self.tickets = self.tickets - u64::from(account.tickets) + u64::from(new.tickets);
        }
        *account = StrideAccount { pass: origin + left, ..new };
        Ok(())
    }

    fn woke(&mut self, _cx: &Context<'_>, clients: &mut Clients<StrideAccount>, place: usize) {
        let account = clients.account_mut(place);
        account.pass += self.pass;
        self.tickets += u64::from(account.tickets);
    }

    fn slept(&mut self, _cx: &Context<'_>, clients: &mut Clients<StrideAccount>, place: usize) {
        let account = clients.account_mut(place);
        account.pass -= self.pass;
        self.tickets -= u64::from(account.tickets);
    }

    fn ran(&mut self, _cx: &Context<'_>, _clients: &mut Clients<StrideAccount>, _place: usize, used: Work) {
        self.pass += i128::from(self.stride1) * i128::from(used.as_nanos()) / i128::from(self.tickets);
    }

    fn stint_over(&mut self, _cx: &Context<'_>, clients: &mut Clients<StrideAccount>, stint: Stint) {
        let account = clients.account_mut(stint.place);
        account.pass += account.stride * i128::from(stint.used.as_nanos());
    }

    fn slice(&self, _account: &StrideAccount) -> Option<Work> {
        Some(self.quantum)
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<StrideAccount>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        clients.least(cx, |account| account.pass)
    }

    fn check_invariants(&self, cx: &Context<'_>, clients: &Clients<StrideAccount>) {
        let tickets: u64 = clients.wanting(cx).map(|(_, account)| u64::from(account.tickets)).sum();
        assert_eq!(tickets, self.tickets, "the global pass moves at the rate of all that want the processor");
    }
}

/// What a stride scheduler is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long each runs.
    pub quantum: Work,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::STRIDE.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        some_quantum(self, self.quantum)?;
        boxed(Stride::scheduler(self.quantum), announcing)
    }
}

pub(super) static ROW: Row =
    Row::new(SchedulerKind::STRIDE, |facts| Ok(Config { quantum: facts.quantum() }.into()));
