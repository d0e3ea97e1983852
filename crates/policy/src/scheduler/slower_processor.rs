//! Uniformly slower processors: between any two deadlines it announces, a child receives its rate times their distance
//! (BSS-I: Lipari and Baruah 2000; PShED: Lipari, Carpenter and Baruah 2000).
//!
//! Each child is served by earliest deadline first with the earliest deadline inside it, as far as its *entitlement* for that
//! deadline goes. For each announced deadline `D` still to come, the list of the child holds how much it may still receive with
//! deadlines up to `D`:
//!
//! ```text
//!   entitled(D) = entitled(D') + rate (D - D')   after the latest D' before D, be it past
//!   entitled(D) <= rate (D - now)                whenever nothing was pending that is due by D and may be received
//!   service with deadline d counts against every D >= d; with deadline d, min over D >= d may be received
//! ```
//!
//! So in no interval a child receives more by its deadlines than its rate times the interval's length, of work that came and is due in it,
//! and as rates do not add up to more than the processor's, earliest deadline first keeps all deadlines for whoever asks for no more than
//! a processor of its rate could do. That is so for an earliest-deadline-first scheduler of admitted work below, and so for one of this
//! kind: the promise nests.
//!
//! A child without deadlines is served in *slices*: it is entitled to its rate times a slice by the end of each, which is a
//! reservation. Who has used up its entitlement with work undone is not entitled to anything until the last deadline that it
//! was used up for, and what is less than a nanosecond of it is lost: a parent of this kind, which hears of no deadline meanwhile,
//! saves nothing up either. Until then, like those that announce [`SPARE`], it has what entitled children leave, in proportion
//! to rates; that is not charged, so nobody pays later for what nobody else wanted.
//! The list is the bookkeeping of PShED as far as its promise determines it; the promise of BSS-I, for which
//! children schedule by deadline inside, is the same.
//!
//! ALL or RESU becomes RESU for each child, with rates that count in the processor received: `speed` is the rate
//! of the parent, 1 for ALL. Admission is exact: `sum rate <= 1`. Children that are schedulers have to be
//! [`Announcing`](super::Announcing), or are served in slices. Costs a look at every child and at the list of the one
//! that runs per notification.
//!
//! Do not use it above schedulers that order by something else than deadlines: what they owe first is not what they serve first.

use super::configuration::{at_most_whole, boxed, positive};
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{Context, Fraction, Load, Parameters, Refusal, SPARE, Scheduler};
use talea_model::SchedulerKind;
use talea_time::{Duration, Instant, Work};

/// Deadlines a child may have in its list; beyond that two are kept as one, to its disadvantage. A server below that serves a backlog of short
/// requests announces a deadline for each of them, as far ahead as its own reservation reaches.
const LIST: usize = 256;

/// The rule. Children register with [`Parameters::Rate`].
#[derive(Clone, Debug)]
pub struct SlowerProcessor {
    speed: Fraction,
    slice: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entitlement {
    deadline: Instant,
    /// Nanoseconds of service times the denominator of the rate.
    scaled: i128,
}

/// A child's list, and the deadline it is served with.
#[derive(Clone, Debug)]
pub struct Rated {
    rate: Fraction,
    /// Rate times speed, as numerator and denominator.
    absolute: (i128, i128),
    /// By deadline, all in the future.
    list: Vec<Entitlement>,
    /// The entitlement whose deadline passed last: what was left of it belongs to work that was pending beside, and what was received
    /// beyond it, because the processor was taken too late, is paid back.
    passed: Entitlement,
    /// What the child announced.
    announced: Instant,
    /// What it is served with, while it wants the processor: see [`Claim`].
    deadline: Instant,
    claim: Claim,
    /// The slice that it is served in, or was last if it has not announced a deadline since.
    slice: Option<Entitlement>,
    /// Whether the end of the slice is in the list for its own sake.
    is_slice_listed: bool,
    /// What it has received beyond its entitlement, in nanoseconds by its rate.
    spared: i128,
}

/// On what grounds a child that wants the processor has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// It is entitled to something by its deadline.
    Entitled,
    /// It has received all that it is entitled to until its deadline.
    UsedUp,
    /// It asks for what is spared, and has no deadline.
    Spare,
}

impl Rated {
    /// The deadline it is served with.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    fn is_entitled(&self) -> bool {
        self.claim == Claim::Entitled
    }

    /// The deadline up to which it has work pending, of which it may receive something.
    fn pending(&self) -> Instant {
        if self.is_entitled() { self.deadline } else { Instant::MAX }
    }

    fn over(&self, length: Duration) -> i128 {
        i128::from(length.as_nanos()) * self.absolute.0
    }

    /// What it may receive with `deadline`, and the last deadline that allows no more.
    fn allowed(&self, deadline: Instant) -> Entitlement {
        let covering = self.list.iter().filter(|entry| entry.deadline >= deadline);
        let covering = covering.chain(self.slice.iter().filter(|slice| slice.deadline == deadline));
        let least = covering.copied().min_by_key(|entry| (entry.scaled, -entry.deadline.as_nanos()));
        least.expect("deadlines are introduced before they are used")
    }

    /// In whole nanoseconds: what is less is nothing.
    fn allowed_work(&self, deadline: Instant) -> Work {
        Work::from_nanos(self.allowed(deadline).scaled.div_euclid(self.absolute.1) as i64)
    }

    /// Adds `deadline`, which is in the future, to the list. Whether it was not there before.
    fn introduce(&mut self, now: Instant, deadline: Instant) -> bool {
        if let Some(passed) = self.list.iter().take_while(|entry| entry.deadline <= now).last() {
            self.passed = *passed;
        }
        self.list.retain(|entry| entry.deadline > now);
        if self.list.binary_search_by_key(&deadline, |entry| entry.deadline).is_ok() {
            return false;
        }
        self.make_room();
        let position = self.list.partition_point(|entry| entry.deadline < deadline);
        let before = position.checked_sub(1).map_or(self.passed, |before| self.list[before]);
        let scaled = before.scaled + self.over(deadline - before.deadline);
        self.list.insert(position, Entitlement { deadline, scaled });
        true
    }

    /// Ends the slice, for the child announces a deadline. One that began at this instant began because the last deadline is over, before the
    /// child was asked for the next one: nothing was received in it, and its end is none of the child's deadlines.
    fn end_slice(&mut self, now: Instant) {
        let Some(slice) = self.slice.take() else { return };
        if self.is_slice_listed && slice.scaled == self.over(slice.deadline - now) {
            self.list.retain(|entry| entry.deadline != slice.deadline);
        }
    }

    /// Nothing was pending until now that is due from `deadline` on and before `pending`: nothing has been saved up for it.
    fn forget_savings(&mut self, now: Instant, deadline: Instant, pending: Instant) {
        let (rate, _) = self.absolute;
        let unsaved = |entry: &&mut Entitlement| entry.deadline >= deadline && entry.deadline < pending;
        for entry in self.list.iter_mut().filter(unsaved) {
            let fresh = i128::from((entry.deadline - now).as_nanos()) * rate;
            entry.scaled = entry.scaled.min(fresh);
        }
    }

    /// Has another rate from now on. For deadlines that are in the list already, nobody is entitled to more than with either
    /// rate.
    fn slow_down_to(&mut self, now: Instant, rate: Fraction, absolute: (i128, i128)) {
        let before = std::mem::replace(&mut self.absolute, absolute).1;
        self.rate = rate;
        let in_new_units = |scaled: i128| (scaled * absolute.1).div_euclid(before);
        self.passed = Entitlement { deadline: now, scaled: in_new_units(self.passed.scaled).min(0) };
        for entry in self.list.iter_mut().chain(&mut self.slice) {
            let fresh = i128::from((entry.deadline - now).as_nanos()) * absolute.0;
            entry.scaled = in_new_units(entry.scaled).min(fresh);
        }
    }

    /// Of a full list, keeps two neighbours as one, the later one with the lower of both entitlements, where that costs least. Service counts
    /// against it all the same, so the child only loses.
    fn make_room(&mut self) {
        if self.list.len() < LIST {
            return;
        }
        let loss = |before: usize| (self.list[before + 1].scaled - self.list[before].scaled).max(0);
        let cheapest = (0..self.list.len() - 1).min_by_key(|before| loss(*before));
        let dropped = self.list.remove(cheapest.expect("a full list has more than one entry"));
        let kept = &mut self.list[cheapest.expect("as above")];
        kept.scaled = kept.scaled.min(dropped.scaled);
    }

    /// Finds what it is entitled to by what it announced. `pending` is the deadline up to which work has been pending until now.
    fn place(&mut self, now: Instant, pending: Instant, slice: Duration) {
        let deadline = match self.announced {
            SPARE => {
                (self.claim, self.deadline) = (Claim::Spare, Instant::MAX);
                return;
            }
            announced if announced > now && announced < SPARE => {
                self.end_slice(now);
                announced
            }
            // It has none, or overran it.
            _ => self.slice_at(now, slice, pending),
        };
        let is_new = self.introduce(now, deadline);
        if self.slice.is_some_and(|slice| slice.deadline == deadline) {
            self.is_slice_listed |= is_new;
        } else {
            self.is_slice_listed = false;
        }
        self.forget_savings(now, deadline, pending);
        (self.claim, self.deadline) = match self.allowed_work(deadline) > Work::ZERO {
            true => (Claim::Entitled, deadline),
            false => (Claim::UsedUp, self.allowed(deadline).deadline),
        };
    }

    /// When the slice ends that is going on at `now`: a new one if the last has ended. At least a nanosecond is in it, and what is less
    /// than one more is not carried over to the next, since that would be more than its rate there. Who has been pending by it keeps what it
    /// is entitled to; for anybody else nothing has been saved up.
    fn slice_at(&mut self, now: Instant, slice: Duration, pending: Instant) -> Instant {
        let (rate, unit) = self.absolute;
        let left = |deadline: Instant| i128::from((deadline - now).as_nanos()) * rate;
        let kept = |slice: Entitlement| match pending == slice.deadline {
            true => slice,
            false => Entitlement { scaled: slice.scaled.min(left(slice.deadline)), ..slice },
        };
        let current = self.slice.filter(|slice| slice.deadline > now).map(kept);
        let begun = || {
            let shortest = Duration::from_nanos(((unit + rate - 1) / rate) as i64);
            let deadline = now + slice.max(shortest);
            Entitlement { deadline, scaled: left(deadline) }
        };
        let is_new = current.is_none();
        let slice = *self.slice.insert(current.unwrap_or_else(begun));
        self.is_slice_listed &= !is_new;
        slice.deadline
    }
}

impl SlowerProcessor {
    /// A scheduler on a processor of `speed` that postpones exhausted children by `slice`.
    pub fn scheduler(speed: Fraction, slice: Duration) -> Uniprocessor<Self> {
        Uniprocessor::new(SlowerProcessor { speed, slice })
    }

    fn rate<'a>(
        &self,
        others: impl Iterator<Item = &'a Rated>,
        given: Parameters,
    ) -> Result<Fraction, Refusal> {
        let Parameters::Rate(rate) = given else {
            return Err(Refusal::unacceptable(self.kind(), "a rate", given));
        };
        Load::of(others.map(|other| other.rate)).admit(rate, Fraction::ONE)?;
        Ok(rate)
    }
}

impl Rule for SlowerProcessor {
    type Account = Rated;

    fn kind(&self) -> &'static str {
        SchedulerKind::BSS_I.name()
    }

    fn admit(
        &mut self,
        cx: &Context<'_>,
        clients: &Clients<Rated>,
        given: Parameters,
    ) -> Result<Rated, Refusal> {
        let rate = self.rate(clients.accounts(), given)?;
        Ok(Rated {
            rate,
            absolute: rate.times(self.speed),
            list: Vec::with_capacity(LIST),
            passed: Entitlement { deadline: cx.now(), scaled: 0 },
            announced: Instant::MAX,
            deadline: cx.now(),
            claim: Claim::Spare,
            slice: None,
            is_slice_listed: false,
            spared: 0,
        })
    }

    fn change(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Rated>,
        place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        let others = clients.accounts().enumerate().filter(|(other, _)| *other != place);
        let rate = self.rate(others.map(|(_, account)| account), given)?;
        clients.account_mut(place).slow_down_to(cx.now(), rate, rate.times(self.speed));
        Ok(())
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<Rated>, place: usize) {
        let others = clients.wanting(cx).filter(|(other, _)| *other != place);
        let spared = others.map(|(_, account)| account.spared).min();
        let announced = cx.deadline(clients.vp(place));
        let account = clients.account_mut(place);
        // Who was away has no claim to what was spared then.
        account.spared = account.spared.max(spared.unwrap_or(account.spared));
        account.announced = announced;
        account.place(cx.now(), Instant::MAX, self.slice);
    }

    fn ran(&mut self, _cx: &Context<'_>, clients: &mut Clients<Rated>, place: usize, used: Work) {
        let account = clients.account_mut(place);
        let (rate, unit) = account.absolute;
        let scaled = i128::from(used.as_nanos()) * unit;
        if !account.is_entitled() {
            account.spared += scaled / rate;
            return;
        }
        let deadline = account.deadline;
        let covering = account.list.iter_mut().filter(|entry| entry.deadline >= deadline);
        covering.chain(&mut account.slice).for_each(|entry| entry.scaled -= scaled);
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Rated>) {
        let now = cx.now();
        for place in 0..clients.len() {
            if !clients.wants(cx, place) {
                continue;
            }
            let announced = cx.deadline(clients.vp(place));
            let account = clients.account_mut(place);
            let is_used_up = account.is_entitled() && account.allowed_work(account.deadline) <= Work::ZERO;
            if announced != account.announced || account.deadline <= now || is_used_up {
                account.announced = announced;
                account.place(now, account.pending(), self.slice);
            }
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Rated>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let entitled = clients.wanting(cx).filter(|(_, account)| account.is_entitled());
        let due_first = entitled.min_by_key(|(_, account)| account.deadline);
        let chosen = due_first.or_else(|| clients.wanting(cx).min_by_key(|(_, account)| account.spared));
        chosen.map(|(place, _)| place)
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Rated>, stint: Option<Stint>) -> Option<Instant> {
        let ends = stint.map(|stint| {
            let account = clients.account(stint.place);
            match account.claim {
                Claim::Entitled => cx.now() + account.allowed_work(account.deadline).at_full_speed(),
                Claim::UsedUp | Claim::Spare => cx.now() + self.slice,
            }
        });
        let deadlines = clients.wanting(cx).filter(|(_, account)| account.claim != Claim::Spare);
        deadlines.map(|(_, account)| account.deadline).chain(ends).min()
    }

    fn deadline(&self, cx: &Context<'_>, clients: &Clients<Rated>) -> Option<Instant> {
        let known =
            |(_, account): (usize, &Rated)| if account.is_entitled() { account.deadline } else { SPARE };
        clients.wanting(cx).map(known).min()
    }

    fn check_invariants(&self, cx: &Context<'_>, clients: &Clients<Rated>) {
        for (_, account) in clients.wanting(cx) {
            assert!(
                !account.is_entitled() || account.allowed_work(account.deadline) > Work::ZERO,
                "who is served by a deadline is entitled to it"
            );
            assert!(account.list.is_sorted_by_key(|entry| entry.deadline));
        }
    }
}

/// What uniformly slower processors is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The speed of the processor it receives.
    pub speed: Fraction,
    /// By how much the deadline of an exhausted child is postponed.
    pub slice: Duration,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::BSS_I.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        at_most_whole(self, self.speed)?;
        positive(self, "slice", self.slice)?;
        boxed(SlowerProcessor::scheduler(self.speed, self.slice), announcing)
    }
}

const fn row(kind: SchedulerKind) -> Row {
    Row::new(kind, |facts| Ok(Config { speed: facts.speed(), slice: facts.quantum_time() }.into()))
}

pub(super) static BSS_I: Row = row(SchedulerKind::BSS_I);
pub(super) static PSHED: Row = row(SchedulerKind::PSHED);

#[cfg(test)]
mod tests {
    use super::*;

    fn account(list: Vec<Entitlement>, absolute: (i128, i128)) -> Rated {
        Rated {
            rate: Fraction::ONE,
            absolute,
            list,
            passed: Entitlement { deadline: Instant::ZERO, scaled: 0 },
            announced: Instant::from_nanos(1),
            deadline: Instant::from_nanos(1),
            claim: Claim::Entitled,
            slice: None,
            is_slice_listed: false,
            spared: 0,
        }
    }

    fn at(nanos: i64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// The last two entries of a full list become one with the lower entitlement, and what is used up is waited for.
    #[test]
    fn a_full_list_of_used_up_deadlines_is_waited_for() {
        let list: Vec<Entitlement> = (0..LIST as i64)
            .map(|n| Entitlement { deadline: at(n + 1), scaled: i128::from(n) - 36 })
            .collect();
        let mut account = account(list, (1, 7));
        account.place(Instant::ZERO, at(1), Duration::from_nanos(1));
        assert_eq!((account.claim, account.deadline), (Claim::UsedUp, at(1)));
        account.announced = at(LIST as i64 + 9);
        account.place(at(1), at(1), Duration::from_nanos(1));
        assert!(account.list.len() <= LIST && account.list.is_sorted_by_key(|entry| entry.deadline));
    }

    /// Of two neighbours with nearly the same entitlement the later one stays, with the lower; all others are as they were.
    #[test]
    fn a_full_list_loses_least() {
        let list: Vec<Entitlement> = (1..=LIST as i64)
            .map(|n| Entitlement {
                deadline: at(100 * n),
                scaled: i128::from(if n == 7 { 601 } else { 100 * n }),
            })
            .collect();
        let mut account = account(list.clone(), (1, 1));
        account.make_room();
        assert_eq!(account.list.len(), LIST - 1);
        let kept: Vec<Entitlement> = list.iter().filter(|entry| entry.deadline != at(600)).copied().collect();
        let lower = |entry: Entitlement| match entry.deadline == at(700) {
            true => Entitlement { scaled: 600, ..entry },
            false => entry,
        };
        assert_eq!(account.list, kept.into_iter().map(lower).collect::<Vec<_>>());
    }

    /// A deadline that is over before the next one is announced, at the same instant, leaves nothing behind.
    #[test]
    fn a_slice_of_no_length_is_forgotten() {
        let mut account = account(Vec::new(), (5, 7));
        for n in 1..100 {
            let now = at(70 * n);
            account.announced = now;
            account.place(now, account.pending(), Duration::from_nanos(2_750));
            assert_eq!(account.list.last().map(|entry| entry.deadline), Some(at(70 * n + 2_750)));
            account.announced = at(70 * (n + 1));
            account.place(now, account.pending(), Duration::from_nanos(2_750));
            let deadlines: Vec<Instant> = account.list.iter().map(|entry| entry.deadline).collect();
            assert_eq!(deadlines, [at(70 * (n + 1))]);
        }
    }

    /// Half of a processor, of which nothing was wanted from 0 to 90 by 100: after a nanosecond by 92 it may have 4 of the 8 that are
    /// left, not the 50 that it could have had.
    #[test]
    fn nothing_is_saved_up_for_later_deadlines_while_nothing_is_pending() {
        let mut account = account(Vec::new(), (1, 2));
        let slice = Duration::from_nanos(10);
        account.announced = at(100);
        account.place(Instant::ZERO, Instant::MAX, slice);
        assert_eq!(account.allowed_work(at(100)), Work::from_nanos(50));
        account.announced = at(92);
        account.place(at(90), Instant::MAX, slice);
        assert_eq!(account.allowed_work(at(92)), Work::from_nanos(1));
        assert_eq!(account.allowed_work(at(100)), Work::from_nanos(5));
    }

    /// The same with work pending that is due by 100: that keeps what it is entitled to.
    #[test]
    fn pending_work_keeps_its_entitlement() {
        let mut account = account(Vec::new(), (1, 2));
        let slice = Duration::from_nanos(10);
        account.announced = at(100);
        account.place(Instant::ZERO, Instant::MAX, slice);
        account.announced = at(92);
        account.place(at(90), at(100), slice);
        assert_eq!(account.allowed_work(at(92)), Work::from_nanos(1));
        assert_eq!(account.allowed_work(at(100)), Work::from_nanos(50));
    }
}
