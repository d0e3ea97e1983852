//! Rialto: continuous reservations by a precomputed plan, and time constraints (Jones, Roşu and Roşu 1997).
//!
//! ```text
//!   |AA BBB.. |AA CCCC. |AA BBB.. |AA CCCC. |    A: 2 in 10, B: 3 in 20, C: 4 in 20; dots are free
//! ```
//!
//! Periods are a base times a power of two, rounded down to one, so that the plan is a cycle in which every reservation
//! has the processor at the same offsets in each of its periods: every window of that length holds the budget. Free time, and time whose owner does
//! not want it, goes to *time constraints* (start, deadline, estimate), which are accepted only if the free time suffices for all of
//! them, by earliest deadline first; and then, in turn, to whoever wants it.
//!
//! A child asks for a time constraint by a message; one that registers for its jobs has each ask, when it arrives, for its worst case by its
//! deadline, until it is done. Lanes ask for the job that they have elected: for what remains of its worst case, until it is done or
//! another one is elected.
//!
//! ALL or RESU becomes RESCS for each child. Admission is exact for the rounded periods: `sum x / y <= 1`. Costs a binary
//! search in the plan, whose size is the number of pieces in the longest period, and a look at every child per notification.
//! A new reservation leaves those with shorter periods where they are and may move others once.
//!
//! Do not use it for periods that lose much by rounding, nor for children that wake up at offsets of their own: their slot
//! passes without them.

mod plan;

use super::asking::Asking;
use super::configuration::{boxed, positive, some_quantum};
use super::facts::{parameters_or_jobs, reservation_in};
use super::round_robin::Turns;
use super::slots::Slots;
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, Configuration, ConfigureError, Facts, KindError, Row};
use crate::hierarchy::{
    Constraint, Context, Fraction, Load, Parameters, Refusal, Scheduler, Shortage, Whose,
};
use num_rational::BigRational;
use plan::{Overload, Reserve, suffice};
use talea_guarantee::conversion::admission::common_base;
use talea_model::SchedulerKind;
use talea_time::{Duration, Instant, Work};

/// The rule. Children register with [`Parameters::Reservation`], or with [`Parameters::None`] or [`Parameters::Jobs`] for what is left.
#[derive(Clone, Debug)]
pub struct Rialto {
    base: Duration,
    cycle: Duration,
    quantum: Work,
    turns: Turns,
    slots: Slots,
    served: Served,
}

/// By which right the running child runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    Slot,
    Constraint,
    Turn,
}

/// A child's reservation, time constraint and turn.
#[derive(Clone, Copy, Debug)]
pub struct Rialtoed {
    reserve: Option<(Work, Duration)>,
    asking: Asking,
    /// Its work is what is left of the estimate.
    constraint: Option<Constraint>,
    turn: u64,
    slice: Work,
}

impl Rialto {
    /// A scheduler for periods from `base` to `base * 2^levels`; what is free is shared with this quantum.
    pub fn scheduler(base: Duration, levels: u32, quantum: Work) -> Uniprocessor<Self> {
        let cycle = base * (1 << levels.min(16));
        let slots = Slots::empty(cycle);
        let turns = Turns::default();
        Uniprocessor::new(Rialto { base, cycle, quantum, turns, slots, served: Served::Turn })
    }

    /// The longest period of the plan that is at most `period`.
    fn rounded(&self, period: Duration) -> Option<Duration> {
        let mut rounded = self.base;
        if period < rounded {
            return None;
        }
        while rounded + rounded <= period.min(self.cycle) {
            rounded = rounded + rounded;
        }
        Some(rounded)
    }

    /// The reservation that is asked for, if there is room for it beside the `others`.
    fn reserve<'a>(
        &self,
        others: impl Iterator<Item = &'a Rialtoed>,
        given: Parameters,
    ) -> Result<Option<(Work, Duration)>, Refusal> {
        let wanted = "a reservation with a period of at least the base, or no parameters";
        let refusal = Refusal::unacceptable(self.kind(), wanted, given);
        let (budget, period) = match given {
            Parameters::None | Parameters::Jobs => return Ok(None),
            Parameters::Reservation { budget, period } => {
                (budget, self.rounded(period).ok_or(refusal.clone())?)
            }
            _ => return Err(refusal),
        };
        let share = Fraction::of(budget, period).ok_or(refusal)?;
        let taken = others.filter_map(|other| other.reserve);
        Load::of(taken.filter_map(|(budget, period)| Fraction::of(budget, period)))
            .admit(share, Fraction::ONE)?;
        Ok(Some((budget, period)))
    }

    /// The job that the child at `place` wants the processor for asks for what remains of it.
    fn ask(&mut self, cx: &Context<'_>, clients: &mut Clients<Rialtoed>, place: usize) {
        let job = clients.job(cx, place);
        clients.account_mut(place).asking.note(job);
        if let Some(constraint) = clients.constraint(cx, place) {
            // Refused, the job runs in turn with those that asked for nothing.
            let _ = self.constrain(cx, clients, place, constraint);
        }
    }

    fn plan<'a>(&self, accounts: impl Iterator<Item = &'a Rialtoed>) -> Slots {
        let reserve = |(place, account): (usize, &Rialtoed)| {
            account.reserve.map(|(budget, period)| Reserve { place, budget, period })
        };
        plan::plan(self.cycle, accounts.enumerate().filter_map(reserve).collect())
    }
}

impl Overload {
    /// What is missing `now` for an admission that would keep this deadline.
    fn shortage(self, whose: Whose, now: Instant) -> Shortage {
        Shortage::Demand { whose, within: self.deadline - now, missing: self.missing }
    }
}

fn constraints(clients: &Clients<Rialtoed>) -> impl Iterator<Item = Constraint> + Clone {
    clients.accounts().filter_map(|account| account.constraint)
}

impl Rule for Rialto {
    type Account = Rialtoed;

    fn kind(&self) -> &'static str {
        SchedulerKind::RIALTO.name()
    }

    fn admit(
        &mut self,
        cx: &Context<'_>,
        clients: &Clients<Rialtoed>,
        given: Parameters,
    ) -> Result<Rialtoed, Refusal> {
        let reserve = self.reserve(clients.accounts(), given)?;
        let asking = Asking::of(given);
        let new = Rialtoed { reserve, asking, constraint: None, turn: 0, slice: self.quantum };
        if reserve.is_some() {
            let slots = self.plan(clients.accounts().chain([&new]));
            suffice(&slots, cx.now(), constraints(clients))
                .map_err(|overload| overload.shortage(Whose::Accepted, cx.now()))?;
        }
        Ok(new)
    }

    fn change(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Rialtoed>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let others = clients.accounts().enumerate().filter(|(other, _)| *other != place);
        let reserve = self.reserve(others.map(|(_, account)| account), given)?;
        let old = std::mem::replace(&mut clients.account_mut(place).reserve, reserve);
        let slots = self.plan(clients.accounts());
        match suffice(&slots, cx.now(), constraints(clients)) {
            Ok(()) => {
                self.slots = slots;
                let account = clients.account_mut(place);
                if std::mem::replace(&mut account.asking, Asking::of(given)).is_by_jobs() {
                    account.constraint = None;
                }
            }
            Err(overload) => {
                clients.account_mut(place).reserve = old;
                return Err(overload.shortage(Whose::Accepted, cx.now()).into());
            }
        }
        Ok(())
    }

    fn constrain(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Rialtoed>,
        place: usize,
        constraint: Constraint,
    ) -> Result<(), Refusal> {
        if clients.account(place).constraint.is_some() {
            return Err(Shortage::Table { most: 1, what: "time constraint of a child" }.into());
        }
        let all = constraints(clients).chain([constraint]);
        if let Some(shortage) = Shortage::of_piece(&constraint, cx.now()) {
            return Err(shortage.into());
        }
        suffice(&self.slots, cx.now(), all).map_err(|overload| {
            let is_own = overload.deadline == constraint.deadline;
            overload.shortage(if is_own { Whose::Own } else { Whose::Accepted }, cx.now())
        })?;
        clients.account_mut(place).constraint = Some(constraint);
        Ok(())
    }

    fn regroup(&mut self, _cx: &Context<'_>, clients: &mut Clients<Rialtoed>) {
        self.slots = self.plan(clients.accounts());
    }

    fn end_constraint(&mut self, clients: &mut Clients<Rialtoed>, place: usize) -> Result<(), Refusal> {
        let ended = clients.account_mut(place).constraint.take();
        ended.map(drop).ok_or(Refusal::NothingAccepted { scheduler: self.kind() })
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<Rialtoed>, place: usize) {
        let account = clients.account_mut(place);
        (account.turn, account.slice) = (self.turns.next(), self.quantum);
        if account.asking.is_by_jobs() {
            self.ask(cx, clients, place);
        }
    }

    fn asks_for(&self, cx: &Context<'_>, clients: &Clients<Rialtoed>, place: usize) -> bool {
        clients.account(place).asking.is_due(clients.job(cx, place))
    }

    fn job_changed(&mut self, cx: &Context<'_>, clients: &mut Clients<Rialtoed>, place: usize) {
        clients.account_mut(place).constraint = None;
        self.ask(cx, clients, place);
    }

    fn slept(&mut self, _cx: &Context<'_>, clients: &mut Clients<Rialtoed>, place: usize) {
        let account = clients.account_mut(place);
        account.constraint = account.constraint.filter(|_| !account.asking.is_by_jobs());
        account.asking.note(None);
    }

    fn ran(&mut self, cx: &Context<'_>, clients: &mut Clients<Rialtoed>, place: usize, used: Work) {
        let account = clients.account_mut(place);
        if let Some(constraint) = account.constraint.as_mut().filter(|constraint| constraint.start < cx.now())
        {
            constraint.work -= used;
        }
        if self.served == Served::Turn {
            account.slice -= used;
            if account.slice <= Work::ZERO {
                (account.turn, account.slice) = (self.turns.next(), self.quantum);
            }
        }
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Rialtoed>) {
        for account in clients.accounts_mut() {
            let over =
                |constraint: &Constraint| constraint.deadline <= cx.now() || constraint.work <= Work::ZERO;
            account.constraint = account.constraint.filter(|constraint| !over(constraint));
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Rialtoed>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let owner = self.slots.at(cx.now()).0.filter(|place| clients.wants(cx, *place));
        if owner.is_some() {
            self.served = Served::Slot;
            return owner;
        }
        let open = clients.wanting(cx).filter_map(|(place, account)| {
            let constraint = account.constraint.filter(|constraint| constraint.start <= cx.now())?;
            Some((constraint.deadline, place))
        });
        if let Some((_, place)) = open.min() {
            self.served = Served::Constraint;
            return Some(place);
        }
        self.served = Served::Turn;
        clients.wanting(cx).min_by_key(|(_, account)| account.turn).map(|(place, _)| place)
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Rialtoed>, stint: Option<Stint>) -> Option<Instant> {
        let account = clients.account(stint?.place);
        let used_up = match (self.served, account.constraint) {
            (Served::Turn, _) => Some(account.slice),
            (_, Some(constraint)) if constraint.start <= cx.now() => Some(constraint.work),
            _ => None,
        };
        let starts =
            clients.wanting(cx).filter_map(|(_, account)| account.constraint).flat_map(|constraint| {
                let instants = [constraint.start, constraint.deadline];
                instants.into_iter().filter(|instant| *instant > cx.now())
            });
        let slot_ends = self.slots.at(cx.now()).1;
        starts.chain([slot_ends]).chain(used_up.map(|left| cx.now() + left.at_full_speed())).min()
    }
}

/// What a plan of continuous reservations is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The shortest period.
    pub base: Duration,
    /// The longest is the base times two to this power, at most 16.
    pub levels: u32,
    /// How long each runs in what is left.
    pub quantum: Work,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::RIALTO.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        positive(self, "base", self.base)?;
        some_quantum(self, self.quantum)?;
        boxed(Rialto::scheduler(self.base, self.levels, self.quantum), announcing)
    }
}

pub(super) static ROW: Row = Row::new(SchedulerKind::RIALTO, configure).registering(parameters_or_jobs);
pub(super) static NT: Row = Row::new(SchedulerKind::RIALTO_NT, configure).registering(parameters_or_jobs);

/// The most levels of a plan that a description asks for.
const LEVELS_MAX: u32 = 16;

/// A plan whose base is the common one for which the children were admitted.
fn configure(facts: &Facts<'_>) -> Result<Configuration, ConfigureError> {
    let quantum = facts.quantum();
    let reservations: Vec<_> = facts.requests().filter_map(|(_, request)| reservation_in(request)).collect();
    let claims: Vec<_> =
        reservations.iter().map(|reservation| (reservation.amount(), reservation.period())).collect();
    let nanos = |ratio: &BigRational| i64::try_from(ratio.to_integer()).unwrap_or(i64::MAX);
    let Some(base) = common_base(&claims) else {
        return Ok(Config { base: Duration::from_millis(1), levels: 10, quantum }.into());
    };
    let base = Duration::from_nanos(nanos(&base).max(1));
    let longest = claims.iter().map(|(_, period)| nanos(period.nanos())).max().unwrap_or_default();
    let levels = (longest / base.as_nanos()).max(1).ilog2();
    Ok(Config { base, levels: levels.min(LEVELS_MAX), quantum }.into())
}
