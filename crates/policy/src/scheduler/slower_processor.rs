//! Uniformly slower processors: between any two deadlines it announces, a child receives its rate times their distance
//! (BSS-I: Lipari and Baruah 2000; PShED: Lipari, Carpenter and Baruah 2000).
//!
//! Each child is served by earliest deadline first with the earliest deadline inside it, as far as its *entitlement* for that
//! deadline goes. For each announced deadline `D` still to come, the list of the child holds how much it may still receive with
//! deadlines up to `D`:
//!
//! ```text
//!   entitled(D) = rate (D - now)                 if nothing was pending that is due by D, and no earlier D' is in the list
//!               = entitled(D') + rate (D - D')   after the latest D' before D that is
//!   service with deadline d counts against every D >= d; with deadline d, min over D >= d may be received
//! ```
//!
//! A child that has used up its entitlement with work undone goes on with a deadline one *slice* later than the last one used up, so one that
//! misreports its deadlines or overruns harms itself only. Children without deadlines are served like that all the time.
//! The list is the bookkeeping of PShED as far as its promise determines it; the promise of BSS-I, for which
//! children schedule by deadline inside, is the same.
//!
//! ALL or RESU becomes RESU for each child, with rates that count in the processor received: `speed` is the rate
//! of the parent, 1 for ALL. Admission is exact: `sum rate <= 1`. Children have to be
//! [`Announcing::Deadlines`](super::Announcing) or threads. Costs a look at every child and at the list of the one
//! that runs per notification.
//!
//! Do not use it for children that know no deadlines: a reservation says how often they are served.

use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use crate::hierarchy::{Context, Fraction, Load, Parameters, Refusal};
use talea_time::{Duration, Instant, Work};

/// Deadlines a child may have in its list; beyond that two are kept as one, to its disadvantage.
const LIST: usize = 32;

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
    /// What was received beyond the entitlement whose deadline passed last, because the processor was taken too late;
    /// below zero, what was less than a nanosecond of it.
    debt: i128,
    /// What the child announced.
    announced: Instant,
    /// What it is served with, while it wants the processor.
    deadline: Instant,
}

impl Rated {
    /// The deadline it is served with.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    fn over(&self, length: Duration) -> i128 {
        i128::from(length.as_nanos()) * self.absolute.0
    }

    /// What it may receive with `deadline`, and the last deadline that allows no more.
    fn allowed(&self, deadline: Instant) -> Entitlement {
        let covering = self.list.iter().filter(|entry| entry.deadline >= deadline);
        let least = covering.copied().min_by_key(|entry| (entry.scaled, -entry.deadline.as_nanos()));
        least.expect("deadlines are introduced before they are used")
    }

    /// In whole nanoseconds: what is less is nothing.
    fn allowed_work(&self, deadline: Instant) -> Work {
        Work::from_nanos(self.allowed(deadline).scaled.div_euclid(self.absolute.1) as i64)
    }

    /// Adds `deadline`, which is in the future, to the list.
    fn introduce(&mut self, now: Instant, deadline: Instant) {
        if let Some(passed) = self.list.iter().take_while(|entry| entry.deadline <= now).last() {
            self.debt = (-passed.scaled).max(1 - self.absolute.1);
        }
        self.list.retain(|entry| entry.deadline > now);
        if self.list.binary_search_by_key(&deadline, |entry| entry.deadline).is_ok() {
            return;
        }
        self.make_room();
        let position = self.list.partition_point(|entry| entry.deadline < deadline);
        let scaled = match position.checked_sub(1).map(|before| self.list[before]) {
            Some(before) => before.scaled + self.over(deadline - before.deadline),
            None => self.over(deadline - now) - std::mem::take(&mut self.debt),
        };
        self.list.insert(position, Entitlement { deadline, scaled });
    }

    /// Nothing due by `deadline` was pending until now: nothing has been saved up for it.
    fn forget_savings(&mut self, now: Instant, deadline: Instant) {
        let fresh = self.over(deadline - now);
        let entry = self.list.iter_mut().find(|entry| entry.deadline == deadline);
        let entry = entry.expect("it has just been introduced");
        entry.scaled = entry.scaled.min(fresh);
    }

    /// Has another rate from now on. For deadlines that are in the list already, nobody is entitled to more than with either
    /// rate.
    fn slow_down_to(&mut self, now: Instant, rate: Fraction, absolute: (i128, i128)) {
        let before = std::mem::replace(&mut self.absolute, absolute).1;
        self.rate = rate;
        let in_new_units = |scaled: i128| (scaled * absolute.1).div_euclid(before);
        self.debt = in_new_units(self.debt);
        for entry in &mut self.list {
            let fresh = i128::from((entry.deadline - now).as_nanos()) * absolute.0;
            entry.scaled = in_new_units(entry.scaled).min(fresh);
        }
    }

    /// Drops the entry before the last of a full list, which keeps the lower of both entitlements. Service counts against
    /// it all the same, so the child only loses.
    fn make_room(&mut self) {
        if self.list.len() < LIST {
            return;
        }
        let dropped = self.list.remove(self.list.len() - 2);
        let last = self.list.last_mut().expect("a full list has more than one entry");
        last.scaled = last.scaled.min(dropped.scaled);
    }

    /// Finds the earliest deadline not before `from` with which something may be received. `pending` is the deadline up to which work
    /// has been pending until now.
    fn place(&mut self, now: Instant, from: Instant, pending: Instant, slice: Duration) {
        let mut deadline = if from > now && from < Instant::MAX { from } else { now + slice };
        self.introduce(now, deadline);
        if pending > deadline {
            self.forget_savings(now, deadline);
        }
        loop {
            if self.allowed_work(deadline) > Work::ZERO {
                self.deadline = deadline;
                return;
            }
            // Before what is missing is found: it may lower what the last deadline allows.
            self.make_room();
            let allowed = self.allowed(deadline);
            // At least as long as a nanosecond takes at this rate.
            let missing = (self.absolute.1 - allowed.scaled + self.absolute.0 - 1) / self.absolute.0;
            deadline = allowed.deadline + slice.max(Duration::from_nanos(missing as i64));
            self.introduce(now, deadline);
        }
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
        "slower-processor"
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
            debt: 0,
            announced: Instant::MAX,
            deadline: cx.now(),
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
        let announced = cx.deadline(clients.vp(place));
        let account = clients.account_mut(place);
        account.announced = announced;
        account.place(cx.now(), announced, Instant::MAX, self.slice);
    }

    fn ran(&mut self, _cx: &Context<'_>, clients: &mut Clients<Rated>, place: usize, used: Work) {
        let account = clients.account_mut(place);
        let scaled = i128::from(used.as_nanos()) * account.absolute.1;
        let deadline = account.deadline;
        account
            .list
            .iter_mut()
            .filter(|entry| entry.deadline >= deadline)
            .for_each(|entry| entry.scaled -= scaled);
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Rated>) {
        let now = cx.now();
        for place in 0..clients.len() {
            if !clients.wants(cx, place) {
                continue;
            }
            let announced = cx.deadline(clients.vp(place));
            let account = clients.account_mut(place);
            let news = announced != account.announced;
            if news {
                account.announced = announced;
                account.place(now, announced, account.deadline, self.slice);
            } else if account.deadline <= now {
                account.place(now, now, account.deadline, self.slice);
            } else if account.allowed_work(account.deadline) <= Work::ZERO {
                account.place(now, account.deadline, account.deadline, self.slice);
            }
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Rated>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        clients.wanting(cx).min_by_key(|(_, account)| account.deadline).map(|(place, _)| place)
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Rated>, stint: Option<Stint>) -> Option<Instant> {
        let used_up = stint.map(|stint| {
            cx.now() + {
                let account = clients.account(stint.place);
                account.allowed_work(account.deadline).at_full_speed()
            }
        });
        clients.wanting(cx).map(|(_, account)| account.deadline).chain(used_up).min()
    }

    fn deadline(&self, cx: &Context<'_>, clients: &Clients<Rated>) -> Option<Instant> {
        clients.wanting(cx).map(|(_, account)| account.deadline).min()
    }

    fn check_invariants(&self, cx: &Context<'_>, clients: &Clients<Rated>) {
        for (_, account) in clients.wanting(cx) {
            assert!(
                account.allowed_work(account.deadline) > Work::ZERO,
                "whoever is served is entitled to it"
            );
            assert!(account.list.is_sorted_by_key(|entry| entry.deadline));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last two entries of a full list become one with the lower entitlement: what is missing then is more.
    #[test]
    fn a_full_list_of_used_up_deadlines_is_left_behind() {
        let deadline = |number: i64| Instant::from_nanos(number + 1);
        let list: Vec<Entitlement> = (0..LIST as i64)
            .map(|n| Entitlement { deadline: deadline(n), scaled: i128::from(n) - 36 })
            .collect();
        let mut account = Rated {
            rate: Fraction::ONE,
            absolute: (1, 7),
            list,
            debt: 0,
            announced: Instant::MAX,
            deadline: deadline(0),
        };
        account.place(Instant::ZERO, deadline(0), deadline(0), Duration::from_nanos(1));
        assert!(account.allowed_work(account.deadline) > Work::ZERO);
        assert!(account.deadline > deadline(LIST as i64 - 1), "everything before is used up");
        assert!(account.list.len() <= LIST && account.list.is_sorted_by_key(|entry| entry.deadline));
    }
}
