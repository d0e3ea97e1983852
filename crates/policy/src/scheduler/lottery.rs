//! Lottery scheduling with compensation tickets (Waldspurger and Weihl 1994).
//!
//! For every quantum a winner is drawn among the children that want the processor, each with the chance of its
//! tickets. A child that used only the fraction `f` of its quantum counts `tickets / f` until it next wins, so that those
//! that block early get their share as well. Draws come from a seed: the same events give the same winners.
//!
//! PS becomes PS for each child, RESU becomes PS: shares hold in expectation, with a standard deviation of
//! `sqrt(n p (1 - p))` quanta after `n` draws at share `p`. Costs a look at every child per notification.
//!
//! Do not use it where anything has to be bounded: unlucky series of any length have some probability.

use super::configuration::{boxed, some_quantum};
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, KindError, Row};
use crate::demand::mix;
use crate::hierarchy::{Context, Parameters, Refusal, Scheduler};
use talea_model::SchedulerKind;
use talea_time::{Instant, Work};

/// Parts per ticket: the least common multiple of 1 to 20, so that common fractions of quanta are compensated exactly.
pub const TICKET_PARTS: u128 = 232_792_560;

/// Where the winning tickets come from.
pub trait Draws: Clone + Send + 'static {
    /// The current draw as a number below `total`. It stays the same draw, for whatever total, until [`Draws::advance`].
    fn below(&self, total: u128) -> u128;

    /// Goes on to the next draw.
    fn advance(&mut self);
}

/// Draws that follow from a seed.
#[derive(Clone, Copy, Debug)]
pub struct SeededDraws {
    seed: u64,
    number: u64,
}

impl SeededDraws {
    /// The draws of `seed`.
    pub fn new(seed: u64) -> Self {
        SeededDraws { seed: mix(seed), number: 0 }
    }
}

impl Draws for SeededDraws {
    fn below(&self, total: u128) -> u128 {
        let word = u128::from(mix(self.seed.wrapping_add(self.number)));
        // The upper part of word * total, of which the product of the halves need not fit.
        (total >> 64) * word + (((total & u128::from(u64::MAX)) * word) >> 64)
    }

    fn advance(&mut self) {
        self.number = self.number.wrapping_add(1);
    }
}

/// The rule. Children register with [`Parameters::Weight`], their tickets.
#[derive(Clone, Debug)]
pub struct Lottery<D> {
    quantum: Work,
    draws: D,
}

/// A child's tickets.
#[derive(Clone, Copy, Debug)]
pub struct Tickets {
    tickets: u32,
    /// What they count with compensation, in parts.
    value: u128,
}

impl Tickets {
    /// What they count at the next draw, as `numerator / denominator`.
    pub fn value(&self) -> (u128, u128) {
        (self.value, TICKET_PARTS)
    }
}

impl<D: Draws> Lottery<D> {
    /// The rule with draws from `draws`.
    pub fn new(quantum: Work, draws: D) -> Self {
        Lottery { quantum, draws }
    }
}

impl Lottery<SeededDraws> {
    /// A scheduler by this rule.
    pub fn scheduler(quantum: Work, seed: u64) -> Uniprocessor<Self> {
        Uniprocessor::new(Self::new(quantum, SeededDraws::new(seed)))
    }
}

impl<D: Draws> Lottery<D> {
    fn tickets(&self, given: Parameters) -> Result<u32, Refusal> {
        given.weight(self.kind())
    }
}

impl<D: Draws> Rule for Lottery<D> {
    type Account = Tickets;

    fn kind(&self) -> &'static str {
        SchedulerKind::LOTTERY.name()
    }

    fn admit(
        &mut self,
        _cx: &Context<'_>,
        _clients: &Clients<Tickets>,
        given: Parameters,
    ) -> Result<Tickets, Refusal> {
        let tickets = self.tickets(given)?;
        Ok(Tickets { tickets, value: u128::from(tickets) * TICKET_PARTS })
    }

    fn change(
        &mut self,
        _cx: &Context<'_>,
        clients: &mut Clients<Tickets>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let tickets = self.tickets(given)?;
        let account = clients.account_mut(place);
        // It is compensated as before.
        account.value = account.value * u128::from(tickets) / u128::from(account.tickets);
        account.tickets = tickets;
        Ok(())
    }

    fn stint_over(&mut self, _cx: &Context<'_>, clients: &mut Clients<Tickets>, stint: Stint) {
        let account = clients.account_mut(stint.place);
        let full = u128::from(account.tickets) * TICKET_PARTS;
        let (used, quantum) = (stint.used.as_nanos() as u128, self.quantum.as_nanos() as u128);
        account.value = if used < quantum { full * quantum / used } else { full };
        self.draws.advance();
    }

    fn keeps(&self, _cx: &Context<'_>, _clients: &Clients<Tickets>, stint: Stint) -> bool {
        stint.used < self.quantum
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Tickets>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let total: u128 = clients.wanting(cx).map(|(_, account)| account.value).sum();
        let drawn = self.draws.below(total);
        let mut sum = 0;
        let mut running_sums = clients.wanting(cx).map(|(place, account)| {
            sum += account.value;
            (place, sum)
        });
        running_sums.find(|(_, sum)| *sum > drawn).map(|(place, _)| place)
    }

    fn next(&self, cx: &Context<'_>, _clients: &Clients<Tickets>, stint: Option<Stint>) -> Option<Instant> {
        stint.map(|stint| cx.now() + (self.quantum - stint.used).at_full_speed())
    }
}

/// What a lottery is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long each runs.
    pub quantum: Work,
    /// Where the draws come from.
    pub seed: u64,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::LOTTERY.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        some_quantum(self, self.quantum)?;
        boxed(Lottery::scheduler(self.quantum, self.seed), announcing)
    }
}

pub(super) static ROW: Row = Row::new(SchedulerKind::LOTTERY, |facts| {
    Ok(Config { quantum: facts.quantum(), seed: facts.system().seed }.into())
});
