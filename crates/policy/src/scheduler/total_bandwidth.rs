//! Total bandwidth server (Spuri and Buttazzo 1996).
//!
//! The `k`-th request of a child with share `U` arrives at `r` and declares the execution time `C`; it is served by earliest deadline
//! first with `d(k) = max(r, d(k-1)) + C / U`. A request that declares nothing is taken for one of the child's budget. The
//! published server trusts the declaration. Here a request that runs longer than it declared is followed by requests of the child's budget
//! each, so that others are not harmed.
//!
//! *As published*, with [`Requests::Whole`], a child may run ahead of its deadlines while others sleep, and waits for as long when they come
//! back; so it does for a request that declares much more than the budget. No reservation in every period allows that. With
//! [`Requests::InPieces`] a request is served in pieces of at most the budget. A piece counts from the deadline of the one before on;
//! until then it is served only if everybody else is ahead too, and is not charged. What is not needed of the last piece is given
//! back (Spuri, Buttazzo and Sensini 1995, exact reclaiming), or if the next request waits already, that one's beginning fills the piece up.
//!
//! In pieces, ALL or RESU becomes RESBS for each child. Admission is exact: `sum U <= capacity`. Costs a look at every child per notification.
//!
//! Do not use it where declared times are far too long: deadlines, and so responses, are proportional to them up to the budget.

use super::configuration::{at_most_whole, boxed};
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{Context, Fraction, Load, Parameters, Refusal, SPARE, Scheduler};
use talea_model::SchedulerKind;
use talea_time::{Instant, Work};

/// The rule. Children register with [`Parameters::Reservation`], of which only the ratio matters for requests that declare their
/// execution time.
#[derive(Clone, Debug)]
pub struct TotalBandwidth {
    capacity: Fraction,
    requests: Requests,
    served: Served,
}

/// How requests are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// Each with one deadline, at once.
    Whole,
    /// Cut by the budget, each piece in its time.
    InPieces,
}

/// How the running child is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// By its deadline.
    OnTime,
    /// Before its piece's time, because nobody else has anything to do on time.
    Ahead,
}

/// A child's request.
#[derive(Clone, Copy, Debug)]
pub struct Bandwidth {
    share: Fraction,
    /// Deadline of the current request in nanoseconds, times the budget: exact.
    scaled: i128,
    /// The current piece,
    piece: Work,
    /// and what is left of it.
    left: Work,
    /// What is declared beyond it.
    declared: Work,
    /// Whether the piece is one that nobody declared.
    overrun: Overrun,
    /// From when on it counts.
    opens: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overrun {
    No,
    Yes,
}

impl Bandwidth {
    fn budget(&self) -> i128 {
        i128::from(self.share.numerator())
    }

    /// The deadline as `numerator / denominator` nanoseconds.
    pub fn deadline(&self) -> (i128, i128) {
        (self.scaled, self.budget())
    }

    /// The deadline, rounded up.
    fn due(&self) -> Instant {
        let whole = self.scaled.div_euclid(self.budget()) + i128::from(self.scaled % self.budget() > 0);
        Instant::from_nanos(i64::try_from(whole).unwrap_or(i64::MAX))
    }

    /// The deadline, rounded down: a piece that counts from then on has no less time than what it takes at the reserved rate, and what is due within
    /// any time is no more than that.
    fn opening(&self) -> Instant {
        let whole = self.scaled.div_euclid(self.budget());
        Instant::from_nanos(i64::try_from(whole).unwrap_or(i64::MAX))
    }

    /// The next piece: of what is declared, or if that is over, a whole budget.
    fn begin_piece(&mut self, requests: Requests) {
        let budget = Work::from_nanos(self.share.numerator());
        self.overrun = if self.declared > Work::ZERO { Overrun::No } else { Overrun::Yes };
        let piece = match (self.overrun, requests) {
            (Overrun::Yes, _) => budget,
            (Overrun::No, Requests::Whole) => self.declared,
            (Overrun::No, Requests::InPieces) => self.declared.min(budget),
        };
        self.declared = (self.declared - piece).max(Work::ZERO);
        self.piece = piece;
        self.left += piece;
        self.opens = match requests {
            Requests::Whole => Instant::ZERO,
            Requests::InPieces => self.opening(),
        };
        self.extend(piece);
    }

    /// A request that has waited follows the current one, whose last piece it fills up: while there is work, pieces are whole budgets, and
    /// so follow each other in whole periods.
    fn follow(&mut self, declared: Work) {
        let budget = Work::from_nanos(self.share.numerator());
        let room = (budget - self.piece).max(Work::ZERO);
        // What declares nothing goes on in pieces that nobody declared.
        let filled = if declared > Work::ZERO { room.min(declared) } else { room };
        self.declared = (declared - filled).max(Work::ZERO);
        (self.piece, self.left) = (self.piece + filled, self.left + filled);
        self.extend(filled);
    }

    /// Gives back what is not needed of the piece, unless it was declared and is served as a whole.
    fn give_back(&mut self, requests: Requests) {
        if self.overrun == Overrun::Yes || requests == Requests::InPieces {
            self.extend(Work::ZERO - self.left.max(Work::ZERO));
        }
        self.left = Work::ZERO;
    }

    /// Moves the deadline by what `work` takes at the reserved rate.
    fn extend(&mut self, work: Work) {
        self.scaled += i128::from(work.as_nanos()) * i128::from(self.share.denominator());
    }
}

impl TotalBandwidth {
    /// The rule for a processor of which at most `capacity` is given away.
    pub fn new(capacity: Fraction, requests: Requests) -> Self {
        TotalBandwidth { capacity, requests, served: Served::OnTime }
    }

    /// A scheduler by this rule.
    pub fn scheduler(capacity: Fraction, requests: Requests) -> Uniprocessor<Self> {
        Uniprocessor::new(Self::new(capacity, requests))
    }
}

impl TotalBandwidth {
    fn share<'a>(
        &self,
        others: impl Iterator<Item = &'a Bandwidth>,
        given: Parameters,
    ) -> Result<Fraction, Refusal> {
        let refusal = Refusal::unacceptable(self.kind(), "a budget above 0 and at most its period", given);
        let Parameters::Reservation { budget, period } = given else { return Err(refusal) };
        let share =
            Fraction::of(budget, period).filter(|_| budget.at_full_speed() <= period).ok_or(refusal)?;
        Load::of(others.map(|other| other.share)).admit(share, self.capacity)?;
        Ok(share)
    }
}

impl Rule for TotalBandwidth {
    type Account = Bandwidth;

    fn kind(&self) -> &'static str {
        SchedulerKind::TBS.name()
    }

    fn admit(
        &mut self,
        _cx: &Context<'_>,
        clients: &Clients<Bandwidth>,
        given: Parameters,
    ) -> Result<Bandwidth, Refusal> {
        let share = self.share(clients.accounts(), given)?;
        let opens = Instant::ZERO;
        Ok(Bandwidth {
            share,
            scaled: 0,
            piece: Work::ZERO,
            left: Work::ZERO,
            declared: Work::ZERO,
            overrun: Overrun::No,
            opens,
        })
    }

    fn change(
        &mut self,
        _cx: &Context<'_>,
        clients: &mut Clients<Bandwidth>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let others = clients.accounts().enumerate().filter(|(other, _)| *other != place);
        let share = self.share(others.map(|(_, account)| account), given)?;
        let account = clients.account_mut(place);
        // The current request keeps its deadline, rounded up.
        let due = account.due();
        account.share = share;
        account.scaled = i128::from(due.as_nanos()) * account.budget();
        Ok(())
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<Bandwidth>, place: usize) {
        let declared = cx.job(clients.vp(place)).wcet;
        let account = clients.account_mut(place);
        account.scaled = account.scaled.max(i128::from(cx.now().as_nanos()) * account.budget());
        (account.declared, account.left) = (declared, Work::ZERO);
        account.begin_piece(self.requests);
    }

    fn slept(&mut self, _cx: &Context<'_>, clients: &mut Clients<Bandwidth>, place: usize) {
        clients.account_mut(place).give_back(self.requests);
    }

    fn job_followed(&mut self, cx: &Context<'_>, clients: &mut Clients<Bandwidth>, place: usize) {
        match self.requests {
            // As published, each request has a deadline of its own.
            Requests::Whole => {
                self.slept(cx, clients, place);
                self.woke(cx, clients, place);
            }
            Requests::InPieces => {
                let declared = cx.job(clients.vp(place)).wcet;
                clients.account_mut(place).follow(declared);
            }
        }
    }

    fn ran(&mut self, _cx: &Context<'_>, clients: &mut Clients<Bandwidth>, place: usize, used: Work) {
        if self.served == Served::OnTime {
            clients.account_mut(place).left -= used;
        }
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Bandwidth>) {
        for place in 0..clients.len() {
            let wants = clients.wants(cx, place);
            let account = clients.account_mut(place);
            while wants && account.left <= Work::ZERO {
                account.begin_piece(self.requests);
            }
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Bandwidth>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let on_time = clients.wanting(cx).filter(|(_, account)| account.opens <= cx.now());
        if let Some((place, _)) = on_time.min_by_key(|(_, account)| account.due()) {
            self.served = Served::OnTime;
            return Some(place);
        }
        self.served = Served::Ahead;
        clients.wanting(cx).min_by_key(|(_, account)| account.due()).map(|(place, _)| place)
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Bandwidth>, stint: Option<Stint>) -> Option<Instant> {
        let opens = clients.wanting(cx).map(|(_, account)| account.opens).filter(|opens| *opens > cx.now());
        let used_up = match self.served {
            Served::OnTime => stint.map(|stint| cx.now() + clients.account(stint.place).left.at_full_speed()),
            Served::Ahead => None,
        };
        opens.chain(used_up).min()
    }

    fn deadline(&self, cx: &Context<'_>, clients: &Clients<Bandwidth>) -> Option<Instant> {
        // Pieces before their time are for a processor that nobody else has a use for.
        let known = |account: &Bandwidth| if account.opens <= cx.now() { account.due() } else { SPARE };
        clients.wanting(cx).map(|(_, account)| known(account)).min()
    }
}

/// What total-bandwidth servers is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most that is reserved.
    pub capacity: Fraction,
    /// How requests are served.
    pub requests: Requests,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::TBS.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        at_most_whole(self, self.capacity)?;
        boxed(TotalBandwidth::scheduler(self.capacity, self.requests), announcing)
    }
}

pub(super) static ROW: Row = Row::new(SchedulerKind::TBS, |facts| {
    Ok(Config { capacity: facts.speed(), requests: Requests::InPieces }.into())
});
