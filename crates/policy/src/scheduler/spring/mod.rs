//! Planning on arrival (Ramamritham and Stankovic 1989; Stankovic et al. 1999, the Spring kernel).
//!
//! ```text
//!   |AA BBBB.. |..AA CC.. |AA BBBB.. |AA ...... |    reserved: A 2 in 10, B 4 in 20, C 2 in 40, each without interruption
//!           pp            ..       pppp              a piece of 2 that is asked for, and one of 4, in gaps that are long enough
//! ```
//!
//! A child that *reserves* a budget in every period gets one slot of it, without interruption, in each. When it comes or changes, all
//! slots until the periods begin together again are planned, and if not everything meets its deadline, the end of its period, it is refused. A
//! child without a reservation asks with a message for a guarantee for one *piece* of work: start, deadline, worst-case execution
//! time. The scheduler looks for an order of all that is accepted and the new piece in which everything meets its deadline, each in one
//! gap between slots; if it finds one, that is the plan from now on, else the piece is refused and the plan stays. The search
//! goes back a limited number of times: an order may exist that is not found.
//!
//! A slot belongs to its child while it wants the processor, and to nobody else; a child that comes late has the rest. A piece whose turn it
//! is starts as soon as it may, at the latest when planned, and keeps the processor but for slots. It loses its guarantee, and only
//! that, when its planned time is over. Those without a reservation run in turn when nothing else does.
//!
//! *While it runs*, slots stay where they are if what is new fits between them. If not, all are planned again with the same
//! periods, and that plan is followed from an instant at which nobody has a slot of one period by both plans, or by none; if there
//! is none soon enough for the newcomer, it is refused.
//!
//! ALL becomes RESBH for each child that reserves, hard because it runs in its slots only, and for each accepted piece, that it is done by its
//! deadline. Below a slower processor slots are the same, whatever it gives in them: of RESU nothing is known to be kept. A reservation costs at most `effort` choices among the children for some 4096 slots, a message as many among
//! the accepted pieces; a decision, a binary search among the slots and a look at every child.
//!
//! Do not use it for endless work without a reservation, for long budgets beside short periods, since nothing is interrupted, nor where
//! refusals come too late to do something else instead.

mod cycle;
mod order;
mod search;
mod timetable;

use super::asking::Asking;
use super::configuration::{boxed, some_quantum};
use super::facts::parameters_or_jobs;
use super::round_robin::Turns;
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{Constraint, Context, Parameters, Refusal, Scheduler, Shortage, Spent};
use cycle::Reserve;
use order::Order;
use talea_model::SchedulerKind;
use talea_time::{Duration, Instant, Work};
use timetable::{Demand, Timetable};

/// The rule. Children register with [`Parameters::Reservation`], or with [`Parameters::None`] and send
/// [`Message::Constrain`](crate::hierarchy::Message), or with [`Parameters::Jobs`], which does so for each job.
#[derive(Clone, Debug)]
pub struct Spring {
    quantum: Work,
    effort: u32,
    turns: Turns,
    timetable: Timetable,
    /// How many reservations there have been.
    tickets: usize,
    /// Has room for a piece of each child.
    order: Order,
}

/// A child's reservation, or its accepted piece of work and turn.
#[derive(Clone, Copy, Debug)]
pub struct Guaranteed {
    reserve: Option<Reserve>,
    asking: Asking,
    piece: Option<Accepted>,
    turn: u64,
    slice: Work,
    /// What it has had in its slots since the first instant from which on it is less than a period until now, and the end of that period.
    recent: (Work, Instant),
    /// What its slots may still give it until this instant, because it had the rest from another scheduler, whose place this one took.
    carried: Option<(Work, Instant)>,
}

#[derive(Clone, Copy, Debug)]
struct Accepted {
    constraint: Constraint,
    left: Work,
    planned: Window,
}

/// Start and end in the plan.
type Window = (Instant, Instant);

impl Guaranteed {
    /// Whether it has had before this scheduler came all that it may have for now.
    fn is_barred(&self, now: Instant) -> bool {
        self.carried.is_some_and(|(left, until)| left <= Work::ZERO && until > now)
    }

    /// It has had `used` in its slot up to `now`.
    fn note_slot(&mut self, now: Instant, used: Work, period: Duration) {
        let (since, end) = (now - used.at_full_speed(), self.recent.1);
        self.recent = match end {
            end if end <= since => (used, since + period),
            // It was served across the end.
            end if end < now => ((now - end).as_work(), end + period),
            end => (self.recent.0 + used, end),
        };
        if let Some((left, _)) = &mut self.carried {
            *left -= used;
        }
    }

    /// When the accepted piece is to run at the latest.
    pub fn planned(&self) -> Option<(Instant, Instant)> {
        self.piece.map(|piece| piece.planned)
    }
}

impl Spring {
    /// A scheduler that tries at most `effort` choices per reservation and message; those without a guarantee share with this quantum.
    pub fn scheduler(effort: u32, quantum: Work) -> Uniprocessor<Self> {
        let (turns, timetable) = (Turns::default(), Timetable::default());
        let order = Order::default();
        Uniprocessor::new(Spring { quantum, effort, turns, timetable, tickets: 0, order })
    }

    /// What is asked for in `given`, under a new number.
    fn reserve(&mut self, now: Instant, given: Parameters) -> Result<Option<Reserve>, Refusal> {
        let refusal = || {
            Refusal::unacceptable(
                self.kind(),
                "a budget above 0 and at most its period, or no parameters",
                given,
            )
        };
        match given {
            Parameters::None | Parameters::Jobs => Ok(None),
            Parameters::Reservation { budget, period }
                if budget > Work::ZERO && budget.at_full_speed() <= period =>
            {
                self.tickets += 1;
                Ok(Some(Reserve { ticket: self.tickets, budget, period, since: now }))
            }
            _ => Err(refusal()),
        }
    }

    /// Plans slots for `new` beside those of all children but the one at `except`, and windows for all pieces but its.
    fn plan(
        &self,
        cx: &Context<'_>,
        clients: &Clients<Guaranteed>,
        except: Option<usize>,
        new: Reserve,
    ) -> Result<(Timetable, Order), Shortage> {
        let others = || clients.accounts().enumerate().filter(|(place, _)| Some(*place) != except);
        let reserves: Vec<Reserve> = others().filter_map(|(_, account)| account.reserve).collect();
        let wants = others().any(|(place, account)| account.reserve.is_some() && clients.wants(cx, place));
        let demand = if wants { Demand::UnderWay } else { Demand::Paused };
        let staying = |ticket| reserves.iter().any(|reserve| reserve.ticket == ticket);
        let suits = |timetable: &Timetable| {
            let mut order = Order::default();
            order.gather(clients, except);
            order.find(cx.now(), timetable, self.effort).map(|()| order)
        };
        let timetable = self.timetable.keep(cx.now(), staying);
        timetable.with(cx.now(), (&reserves, new), demand, self.effort, suits)
    }

    /// The accepted piece whose turn it is.
    fn first(clients: &Clients<Guaranteed>) -> Option<(usize, Accepted)> {
        let accepted = clients.accounts().enumerate();
        let accepted = accepted.filter_map(|(place, account)| account.piece.map(|piece| (place, piece)));
        accepted.min_by_key(|(_, piece)| piece.planned.0)
    }

    /// The child whose slot it is, if it wants it.
    fn owner(&self, cx: &Context<'_>, clients: &Clients<Guaranteed>) -> Option<usize> {
        let ticket = self.timetable.at(cx.now()).0?;
        let is_its = |account: &Guaranteed| account.reserve.is_some_and(|reserve| reserve.ticket == ticket);
        let has_it =
            |place: &usize| clients.wants(cx, *place) && !clients.account(*place).is_barred(cx.now());
        clients.accounts().position(is_its).filter(has_it)
    }
}

fn unreserved<'a>(
    cx: &'a Context<'_>,
    clients: &'a Clients<Guaranteed>,
) -> impl Iterator<Item = (usize, &'a Guaranteed)> {
    clients.wanting(cx).filter(|(_, account)| account.reserve.is_none())
}

fn has_started(piece: &Accepted) -> bool {
    piece.left < piece.constraint.work
}

impl Accepted {
    /// What is left of a piece that has started, as far as its time is not over before.
    fn rest(&self, now: Instant) -> Work {
        match self.planned.0 <= now {
            true => self.left.min((self.planned.1 - now).as_work()),
            false => self.left,
        }
    }
}

impl Rule for Spring {
    type Account = Guaranteed;

    fn kind(&self) -> &'static str {
        SchedulerKind::SPRING.name()
    }

    fn admit(
        &mut self,
        cx: &Context<'_>,
        clients: &Clients<Guaranteed>,
        given: Parameters,
    ) -> Result<Guaranteed, Refusal> {
        let reserve = self.reserve(cx.now(), given)?;
        if let Some(new) = reserve {
            (self.timetable, _) = self.plan(cx, clients, None, new)?;
        }
        let asking = Asking::of(given);
        let recent = (Work::ZERO, cx.now());
        Ok(Guaranteed { reserve, asking, piece: None, turn: 0, slice: self.quantum, recent, carried: None })
    }

    fn change(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Guaranteed>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let reserve = self.reserve(cx.now(), given)?;
        if let Some(new) = reserve {
            let (timetable, order) = self.plan(cx, clients, Some(place), new)?;
            self.timetable = timetable;
            order.settle(clients);
            clients.account_mut(place).piece = None;
        }
        let account = clients.account_mut(place);
        account.reserve = reserve;
        if std::mem::replace(&mut account.asking, Asking::of(given)).is_by_jobs() {
            account.piece = None;
        }
        self.forget(cx, clients);
        Ok(())
    }

    fn regroup(&mut self, cx: &Context<'_>, clients: &mut Clients<Guaranteed>) {
        self.forget(cx, clients);
        self.order.reserve(clients.len());
        self.order.gather(clients, None);
        // Where slots have gone, the windows that there are stay good.
        if self.order.find(cx.now(), &self.timetable, self.effort).is_ok() {
            self.order.settle(clients);
        }
    }

    fn constrain(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Guaranteed>,
        place: usize,
        constraint: Constraint,
    ) -> Result<(), Refusal> {
        if clients.account(place).reserve.is_some() {
            return Err(Shortage::Reserved.into());
        }
        if clients.account(place).piece.is_some() {
            return Err(Shortage::Table { most: 1, what: "accepted piece of work of a child" }.into());
        }
        if let Some(shortage) = Shortage::of_piece(&constraint, cx.now()) {
            return Err(shortage.into());
        }
        let new =
            Accepted { constraint, left: constraint.work, planned: (constraint.start, constraint.deadline) };
        self.order.gather(clients, None);
        self.order.add(place, new);
        self.order.find(cx.now(), &self.timetable, self.effort)?;
        clients.account_mut(place).piece = Some(new);
        self.order.settle(clients);
        Ok(())
    }

    fn end_constraint(&mut self, clients: &mut Clients<Guaranteed>, place: usize) -> Result<(), Refusal> {
        let ended = clients.account_mut(place).piece.take();
        ended.map(drop).ok_or(Refusal::NothingAccepted { scheduler: self.kind() })
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<Guaranteed>, place: usize) {
        let account = clients.account_mut(place);
        (account.turn, account.slice) = (self.turns.next(), self.quantum);
        if account.asking.is_by_jobs() {
            self.ask(cx, clients, place);
        }
    }

    fn asks_for(&self, cx: &Context<'_>, clients: &Clients<Guaranteed>, place: usize) -> bool {
        clients.account(place).asking.is_due(clients.job(cx, place))
    }

    fn job_changed(&mut self, cx: &Context<'_>, clients: &mut Clients<Guaranteed>, place: usize) {
        clients.account_mut(place).piece = None;
        self.ask(cx, clients, place);
    }

    fn job_followed(&mut self, cx: &Context<'_>, clients: &mut Clients<Guaranteed>, place: usize) {
        self.slept(cx, clients, place);
        if self.asks_for(cx, clients, place) {
            self.ask(cx, clients, place);
        }
    }

    fn slept(&mut self, _cx: &Context<'_>, clients: &mut Clients<Guaranteed>, place: usize) {
        let account = clients.account_mut(place);
        account.piece = account.piece.filter(|piece| !account.asking.is_by_jobs() && !has_started(piece));
        account.asking.note(None);
    }

    fn ran(&mut self, cx: &Context<'_>, clients: &mut Clients<Guaranteed>, place: usize, used: Work) {
        let first = Self::first(clients).map(|(first, _)| first);
        let account = clients.account_mut(place);
        if let Some(reserve) = account.reserve {
            return account.note_slot(cx.now(), used, reserve.period);
        }
        match &mut account.piece {
            Some(piece) if first == Some(place) && piece.constraint.start < cx.now() => piece.left -= used,
            _ => {
                account.slice -= used;
                if account.slice <= Work::ZERO {
                    (account.turn, account.slice) = (self.turns.next(), self.quantum);
                }
            }
        }
    }

    fn spent(
        &self,
        _cx: &Context<'_>,
        clients: &Clients<Guaranteed>,
        place: usize,
    ) -> Option<(Work, Instant)> {
        let account = clients.account(place);
        account.reserve.map(|_| account.recent)
    }

    fn carry_over(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Guaranteed>,
        place: usize,
        spent: Spent,
    ) {
        let account = clients.account_mut(place);
        if let Some(reserve) = account.reserve {
            let until = spent.until.min(cx.now() + reserve.period);
            account.recent = (spent.used, until);
            account.carried = Some((reserve.budget - spent.used, until));
        }
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Guaranteed>) {
        for account in clients.accounts_mut() {
            account.carried = account.carried.filter(|(_, until)| *until > cx.now());
            let over = |piece: &Accepted| piece.left <= Work::ZERO || piece.planned.1 <= cx.now();
            account.piece = account.piece.filter(|piece| !over(piece));
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Guaranteed>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let first = Self::first(clients).filter(|(_, piece)| piece.constraint.start <= cx.now());
        let first = || first.map(|(place, _)| place).filter(|place| clients.wants(cx, *place));
        let in_turn =
            || unreserved(cx, clients).min_by_key(|(_, account)| account.turn).map(|(place, _)| place);
        self.owner(cx, clients).or_else(first).or_else(in_turn)
    }

    fn wants(&self, cx: &Context<'_>, clients: &Clients<Guaranteed>) -> bool {
        unreserved(cx, clients).next().is_some() || self.owner(cx, clients).is_some()
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Guaranteed>, stint: Option<Stint>) -> Option<Instant> {
        let (_, slot_ends) = self.timetable.at(cx.now());
        let slot_ends = Some(slot_ends).filter(|end| *end < Instant::MAX);
        let alone = |stint: &Stint| clients.account(stint.place).reserve.is_none();
        let unplanned = stint.filter(alone).and_then(|stint| Self::next_unplanned(cx, clients, stint));
        let used_up = stint.and_then(|stint| {
            let (left, _) = clients.account(stint.place).carried?;
            Some(cx.now() + left.at_full_speed()).filter(|used_up| *used_up > cx.now())
        });
        let unbarred = clients.wanting(cx).filter_map(|(_, account)| Some(account.carried?.1));
        slot_ends.into_iter().chain(unplanned).chain(used_up).chain(unbarred).min()
    }
}

impl Spring {
    /// The job that the child at `place` wants the processor for asks for what remains of it to be a piece.
    fn ask(&mut self, cx: &Context<'_>, clients: &mut Clients<Guaranteed>, place: usize) {
        let job = clients.job(cx, place);
        clients.account_mut(place).asking.note(job);
        if let Some(piece) = clients.constraint(cx, place) {
            // Refused, the job runs in turn with those that asked for nothing.
            let _ = self.constrain(cx, clients, place, piece);
        }
    }

    /// Forgets the slots of those that have gone or reserve something else.
    fn forget(&mut self, cx: &Context<'_>, clients: &Clients<Guaranteed>) {
        let staying = |ticket| {
            let reserves = clients.accounts().filter_map(|account| account.reserve);
            reserves.into_iter().any(|reserve| reserve.ticket == ticket)
        };
        self.timetable = self.timetable.keep(cx.now(), staying);
    }

    /// When to decide again with a child that has no slots at work, but for slots.
    fn next_unplanned(cx: &Context<'_>, clients: &Clients<Guaranteed>, stint: Stint) -> Option<Instant> {
        let first = Self::first(clients);
        let of_piece = first.map(|(place, piece)| match piece.constraint.start > cx.now() {
            true => piece.constraint.start,
            false if place == stint.place => piece.planned.1.min(cx.now() + piece.left.at_full_speed()),
            false => piece.planned.1,
        });
        let runs_piece =
            first.is_some_and(|(place, piece)| place == stint.place && piece.constraint.start <= cx.now());
        let slice = (!runs_piece).then(|| cx.now() + clients.account(stint.place).slice.at_full_speed());
        of_piece.into_iter().chain(slice).min()
    }
}

/// What a planning scheduler is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Choices tried per reservation and piece of work.
    pub effort: u32,
    /// How long each without a guarantee runs.
    pub quantum: Work,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::SPRING.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        some_quantum(self, self.quantum)?;
        boxed(Spring::scheduler(self.effort, self.quantum), announcing)
    }
}

pub(super) static ROW: Row = Row::new(SchedulerKind::SPRING, |facts| {
    let effort = u32::try_from(facts.integer("effort")).expect("its kind declares the range");
    Ok(Config { effort, quantum: facts.quantum() }.into())
})
.registering(parameters_or_jobs);
