//! Surplus fair scheduling for several processors (Chandra, Adler, Goyal and Shenoy 2000).
//!
//! A child cannot use more than one processor, so a weight above `1/p` of all is infeasible; such weights are readjusted to exactly that
//! share (`phi`) whenever the set of those that want a processor changes. Start tags advance by `used / phi`; `v` is the least of
//! them. On each processor the child with the least *surplus* `phi (S - v)` runs for a quantum.
//!
//! A child that is owed a whole processor, even if all children want one, goes before all that are not, which is ours. By surplus alone one that wakes up or whose
//! turn ends at the same time may be put in its place, and a quantum that it loses can never be made up: with every
//! wake-up of others it would fall behind by another one, and so receive less than its share however long one waits. That holds while
//! all processors that are asked for are there; of fewer everybody is owed a part.
//!
//! Whoever is further behind than two quanta goes before all who are not, the furthest first, which is ours, too. While others sleep, a child may
//! be worth a whole processor that is worth a little less beside all of them, and by surplus alone it would lose a quantum with
//! every wake-up: more than that little. What a child is behind grows by its part of the time of all processors that are there, used or not, with
//! weights readjusted for all children, while it wants a processor, and falls by what it receives itself, down to nothing. Whoever wakes up is
//! not behind: it waits for the end of somebody's quantum.
//!
//! PS on every processor becomes PS for each child, RESU becomes PS. Own VPs are as many as processors or parents. Costs
//! a sort of the children that want a processor when that set changes, and a look at every child per election.
//!
//! Do not use it on one processor, where it is start-time fair queueing at a higher price, nor for error bounds.

use super::configuration::some_quantum;
use super::uniprocessor::{Clients, Stint};
use super::virtual_time::{Pace, Virtual};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{
    Action, Context, Decision, Message, Parameters, ProcessorId, Refusal, Scheduler, VpId, VpState, Wake,
    Width,
};
use std::cmp::Reverse;
use talea_guarantee::scheduler::Intake;
use talea_model::SchedulerKind;
use talea_time::{Instant, Work};

/// Parts of a weight: readjusted weights are exact for up to eight processors.
const PARTS: i128 = 840;

/// What a weight is worth if all children want a processor, and so at least. It does not change with who does: else the choice of an
/// instant could change with what others make of it, back and forth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owed {
    Processor,
    Less,
}

/// A child's weight and start tag.
#[derive(Clone, Copy, Debug)]
struct Surplus {
    weight: u32,
    /// The readjusted weight in parts.
    phi: i128,
    owed: Owed,
    start: Virtual,
    /// The readjusted weight in parts if all children want a processor.
    rate: i128,
    /// How far it is behind, in nanoseconds times the sum of all rates: never below zero.
    behind: i128,
    demand: Demand,
}

/// What a child wanted when everybody was charged last, which is what it is charged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    Wanting,
    Waiting,
}

/// The scheduler. Children register with [`Parameters::Weight`].
#[derive(Clone, Debug)]
pub struct SurplusFair {
    quantum: Work,
    own: Vec<VpId>,
    /// Who runs on the processor of each own VP.
    stints: Vec<Option<Stint>>,
    clients: Clients<Surplus>,
    /// The largest finish tag so far.
    finished: Virtual,
    /// Weights in parts with places, to be sorted.
    scratch: Vec<(i128, usize)>,
    assessed: Assessed,
    /// The sum of all rates.
    rates: i128,
    /// How many processors have been there since everybody was charged last.
    there: i128,
    charged_at: Instant,
}

/// Whether it is known what everybody is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Assessed {
    Yes,
    /// Children or weights have changed since.
    No,
}

/// Replaces infeasible weights on `processors` by the largest feasible ones. `weights` are in descending order. Gives the number
/// of those that are worth a whole processor, which are the first.
fn readjust(weights: &mut [(i128, usize)], processors: usize) -> usize {
    if weights.len() <= processors {
        // Everybody has a processor.
        weights.iter_mut().for_each(|(weight, _)| *weight = PARTS);
        return weights.len();
    }
    let mut rest: i128 = weights.iter().map(|(weight, _)| weight).sum();
    let mut infeasible = 0;
    // One that is worth exactly a processor is its own readjusted weight.
    while weights[infeasible].0 * (processors - infeasible) as i128 >= rest {
        rest -= weights[infeasible].0;
        infeasible += 1;
    }
    for place in (0..infeasible).rev() {
        weights[place].0 = rest / (processors - place - 1) as i128;
        rest += weights[place].0;
    }
    infeasible
}

/// The feasible weights for `weights` on `processors`, as numerators and a common denominator.
pub fn readjusted(weights: &[u32], processors: usize) -> (Vec<i128>, i128) {
    let mut sorted: Vec<(i128, usize)> =
        weights.iter().enumerate().map(|(place, weight)| (i128::from(*weight) * PARTS, place)).collect();
    sorted.sort_by_key(|(weight, _)| Reverse(*weight));
    readjust(&mut sorted, processors);
    sorted.sort_by_key(|(_, place)| *place);
    (sorted.into_iter().map(|(phi, _)| phi).collect(), PARTS)
}

impl SurplusFair {
    /// A scheduler with this quantum.
    pub fn new(quantum: Work) -> Self {
        SurplusFair {
            quantum,
            own: Vec::new(),
            stints: Vec::new(),
            clients: Clients::default(),
            finished: Virtual::ZERO,
            scratch: Vec::new(),
            assessed: Assessed::No,
            rates: 0,
            there: 0,
            charged_at: Instant::ZERO,
        }
    }

    fn weight(&self, given: Parameters) -> Result<u32, Refusal> {
        given.weight(SchedulerKind::SFS.name())
    }

    fn charge(&mut self, cx: &Context<'_>) {
        let elapsed = i128::from((cx.now() - self.charged_at).as_nanos());
        let there = elapsed * self.there;
        self.charged_at = cx.now();
        // One that nobody has a use for is there, too: it was not asked for.
        self.there = self.own.iter().filter(|own| cx.state(**own) != VpState::Ready).count() as i128;
        if elapsed == 0 {
            return;
        }
        for stint in self.stints.iter_mut().flatten() {
            let used = self.clients.charge(cx, stint.place);
            stint.used += used;
            self.clients.account_mut(stint.place).behind -= self.rates * i128::from(used.as_nanos());
        }
        for account in self.clients.accounts_mut() {
            if account.demand == Demand::Wanting {
                account.behind += account.rate * there;
            }
            account.behind = account.behind.max(0);
        }
    }

    /// How far a child is behind, if that is too far.
    fn arrears(&self, account: &Surplus) -> i128 {
        let tolerated = self.rates * 2 * i128::from(self.quantum.as_nanos());
        if account.behind > tolerated { account.behind } else { 0 }
    }

    fn end_stint(&mut self, own: usize) {
        let Some(stint) = self.stints[own].take() else { return };
        let account = self.clients.account_mut(stint.place);
        // used / phi in parts of virtual time, which are many more than those of phi.
        account.start += Pace::of(1).after(stint.used).times(PARTS as u32).shared(account.phi as u64);
        self.finished = self.finished.max(account.start);
    }

    /// Finds what everybody is owed, if that may have changed.
    fn assess(&mut self) {
        if std::mem::replace(&mut self.assessed, Assessed::Yes) == Assessed::Yes {
            return;
        }
        self.scratch.clear();
        let all = self.clients.accounts().enumerate();
        self.scratch.extend(all.map(|(place, account)| (i128::from(account.weight) * PARTS, place)));
        self.scratch.sort_unstable_by_key(|(weight, place)| (Reverse(*weight), *place));
        let whole = readjust(&mut self.scratch, self.own.len());
        self.rates = self.scratch.iter().map(|(rate, _)| rate).sum();
        for (rank, (rate, place)) in self.scratch.iter().enumerate() {
            let account = self.clients.account_mut(*place);
            account.owed = if rank < whole { Owed::Processor } else { Owed::Less };
            (account.rate, account.behind) = (*rate, 0);
        }
    }

    /// Who wants a processor has changed.
    fn readjust(&mut self, cx: &Context<'_>) {
        self.assess();
        self.scratch.clear();
        let wanting = self.clients.wanting(cx);
        self.scratch.extend(wanting.map(|(place, account)| (i128::from(account.weight) * PARTS, place)));
        self.scratch.sort_unstable_by_key(|(weight, place)| (Reverse(*weight), *place));
        let _whole = readjust(&mut self.scratch, self.own.len());
        for (phi, place) in &self.scratch {
            self.clients.account_mut(*place).phi = *phi;
        }
    }

    fn virtual_time(&self, cx: &Context<'_>, without: Option<usize>) -> Virtual {
        let others = self.clients.wanting(cx).filter(|(place, _)| Some(*place) != without);
        others.map(|(_, account)| account.start).min().unwrap_or(self.finished)
    }

    /// The best of the Ready children and the one that is on `own` already: those that are owed a processor, then those that are too
    /// far behind, then by surplus.
    fn elect(&self, cx: &Context<'_>, incumbent: Option<usize>) -> Option<usize> {
        // As long as there is a processor for everybody who is owed one, nobody who is has to make room for another.
        let is_complete = self.own.iter().all(|own| cx.state(*own) != VpState::Ready);
        let owed = |account: &Surplus| if is_complete { account.owed } else { Owed::Less };
        let is_owed = |place: &usize| owed(self.clients.account(*place)) == Owed::Processor;
        if let Some(place) = incumbent.filter(is_owed)
            && self.clients.wants(cx, place)
        {
            return Some(place);
        }
        let now = self.virtual_time(cx, None);
        let is_free =
            |place: usize| Some(place) == incumbent || cx.state(self.clients.vp(place)) == VpState::Ready;
        let free = self.clients.wanting(cx).filter(|(place, _)| is_free(*place));
        free.min_by_key(|(place, account)| {
            let surplus = account.phi * (account.start - now).coarse();
            (owed(account), Reverse(self.arrears(account)), surplus, *place)
        })
        .map(|(place, _)| place)
    }

    /// Whether a child that runs makes room in the middle of its quantum: for one that is too far behind, of those who are not.
    /// Otherwise one that loses its processor with a parent's, again and again for less than a quantum, would never make that up.
    fn makes_room(&self, cx: &Context<'_>, place: usize) -> bool {
        let is_ready = |other: usize| cx.state(self.clients.vp(other)) == VpState::Ready;
        let is_behind = |account: &Surplus| self.arrears(account) > 0;
        !is_behind(self.clients.account(place))
            && self.clients.wanting(cx).any(|(other, account)| is_ready(other) && is_behind(account))
    }

    /// Elects for the own VP at `own`, which holds `processor`.
    fn pass_on(&mut self, cx: &Context<'_>, own: usize, processor: ProcessorId) -> Decision {
        let before = self.stints[own].map(|stint| stint.place);
        self.end_stint(own);
        let chosen = self.elect(cx, before);
        self.stints[own] = chosen.map(|place| Stint { place, used: Work::ZERO });
        let vp = |place: usize| self.clients.vp(place);
        match (before, chosen) {
            (Some(old), Some(new)) if old != new => Decision::switch(vp(old), vp(new), processor),
            (Some(_), Some(_)) => Decision::NONE,
            (None, Some(new)) => Decision::grant(vp(new), processor),
            (Some(old), None) => Decision::revoke(vp(old)).and(Action::Release(self.own[own])),
            (None, None) => Decision::release(self.own[own]),
        }
    }

    /// An own VP that waits for a processor although fewer children wait for one, of which `served` are about to run.
    fn superfluous(&self, cx: &Context<'_>, served: usize) -> Option<VpId> {
        let mut asking = self.own.iter().copied().filter(|own| cx.state(*own) == VpState::Ready);
        let is_ready = |place: usize| cx.state(self.clients.vp(place)) == VpState::Ready;
        let ready = self.clients.wanting(cx).filter(|(place, _)| is_ready(*place)).count();
        if asking.clone().count() > ready - served { asking.next() } else { None }
    }

    fn next_wake(&self, cx: &Context<'_>) -> Wake {
        let ends =
            self.stints.iter().flatten().map(|stint| cx.now() + (self.quantum - stint.used).at_full_speed());
        ends.min().map_or(Wake::Never, Wake::At)
    }
}

impl Scheduler for SurplusFair {
    fn kind(&self) -> &'static str {
        SchedulerKind::SFS.name()
    }

    fn width(&self) -> Width {
        Width::Any
    }

    fn duplicate(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }

    fn register(&mut self, cx: &Context<'_>, child: VpId, given: Parameters) -> Result<(), Refusal> {
        let weight = self.weight(given)?;
        let phi = i128::from(weight) * PARTS;
        let demand = Demand::Waiting;
        let account =
            Surplus { weight, phi, owed: Owed::Less, start: Virtual::ZERO, rate: phi, behind: 0, demand };
        self.clients.add(cx, child, account);
        self.scratch.reserve(self.clients.len());
        self.assessed = Assessed::No;
        Ok(())
    }

    fn unregister(&mut self, cx: &Context<'_>, child: VpId) {
        self.charge(cx);
        let gone = self.clients.place(child);
        self.clients.remove(child);
        self.assessed = Assessed::No;
        for stint in self.stints.iter_mut().flatten() {
            stint.place -= usize::from(stint.place > gone);
        }
    }

    fn request(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        self.charge(cx);
        let place = self.clients.place(child);
        let now = self.virtual_time(cx, Some(place));
        let account = self.clients.account_mut(place);
        account.start = account.start.max(now);
        // Whoever wakes up waits for the end of somebody's quantum, which one that wakes up often could never make up.
        (account.demand, account.behind) = (Demand::Wanting, 0);
        self.readjust(cx);
        let idle = self.own.iter().find(|own| cx.state(**own) == VpState::Waiting);
        let decision = idle.map_or(Decision::NONE, |own| Decision::request(*own));
        // Choices of this instant may be made anew.
        decision.wake(Wake::AtSchedulingPoint)
    }

    fn release(&mut self, cx: &Context<'_>, child: VpId, held: Option<ProcessorId>) -> Decision {
        self.charge(cx);
        let left = self.clients.place(child);
        self.clients.account_mut(left).demand = Demand::Waiting;
        let Some(processor) = held else {
            self.readjust(cx);
            return self.superfluous(cx, 0).map_or(Decision::NONE, Decision::release);
        };
        let runs = |stint: &Option<Stint>| stint.is_some_and(|stint| stint.place == left);
        let own = self.stints.iter().position(runs).expect("a child runs on what its scheduler holds");
        self.end_stint(own);
        self.readjust(cx);
        let decision = self.pass_on(cx, own, processor);
        // Who runs here now need not wait for the processor that was asked for it.
        let served = usize::from(self.stints[own].is_some());
        let decision =
            self.superfluous(cx, served).map_or(decision, |own| decision.and(Action::Release(own)));
        decision.wake(self.next_wake(cx))
    }

    fn message(
        &mut self,
        cx: &Context<'_>,
        child: Option<VpId>,
        message: Message,
    ) -> Result<Decision, Refusal> {
        let (Some(child), Message::Change(given)) = (child, message) else {
            return Err(Refusal::NotUnderstood { scheduler: self.kind(), message });
        };
        let weight = self.weight(given)?;
        self.charge(cx);
        let place = self.clients.place(child);
        self.clients.account_mut(place).weight = weight;
        self.assessed = Assessed::No;
        self.readjust(cx);
        Ok(Decision::NONE.wake(Wake::AtSchedulingPoint))
    }

    fn grant(&mut self, cx: &Context<'_>, own: VpId, processor: ProcessorId) -> Decision {
        self.charge(cx);
        let own = self.own.iter().position(|known| *known == own).expect("it is one of ours");
        let decision = self.pass_on(cx, own, processor);
        decision.wake(self.next_wake(cx))
    }

    fn revoke(&mut self, cx: &Context<'_>, own: VpId, _processor: ProcessorId) -> Decision {
        self.charge(cx);
        let own = self.own.iter().position(|known| *known == own).expect("it is one of ours");
        let running = self.stints[own].expect("a processor held runs a child").place;
        self.end_stint(own);
        let is_behind = self.arrears(self.clients.account(running)) > 0;
        let wake = if is_behind { Wake::AtSchedulingPoint } else { self.next_wake(cx) };
        Decision::revoke(self.clients.vp(running)).wake(wake)
    }

    fn init(&mut self, own: VpId) {
        self.own.push(own);
        self.stints.push(None);
    }

    fn timer(&mut self, cx: &Context<'_>) -> Decision {
        self.charge(cx);
        for own in 0..self.own.len() {
            let (Some(stint), Some(processor)) = (self.stints[own], cx.processor(self.own[own])) else {
                continue;
            };
            let is_over = stint.used == Work::ZERO || stint.used >= self.quantum;
            if is_over || self.makes_room(cx, stint.place) {
                let decision = self.pass_on(cx, own, processor);
                if !decision.is_empty() {
                    // One processor at a time: the others when this one has changed hands.
                    return decision.wake(Wake::AtSchedulingPoint);
                }
            }
        }
        // Whom it has replaced may have asked for more than it can use.
        match self.superfluous(cx, 0) {
            Some(own) => Decision::release(own).wake(Wake::AtSchedulingPoint),
            None => Decision::NONE.wake(self.next_wake(cx)),
        }
    }

    fn check_invariants(&self, cx: &Context<'_>) {
        for (own, stint) in self.own.iter().zip(&self.stints) {
            let running = stint.and_then(|stint| cx.processor(self.clients.vp(stint.place)));
            assert_eq!(running, cx.processor(*own), "a child runs where the own VP does that it was put on");
        }
        let wanting = self.clients.wanting(cx).count().min(self.own.len());
        let used = self.own.iter().filter(|own| cx.state(**own) != VpState::Waiting).count();
        assert_eq!(wanting, used, "it asks for as many processors as it can use");
    }
}

/// What a surplus fair scheduler is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How long each runs.
    pub quantum: Work,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::SFS.name()
    }

    fn build(&self, _announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        some_quantum(self, self.quantum)?;
        Ok(Box::new(SurplusFair::new(self.quantum)))
    }
}

pub(super) static ROW: Row =
    Row::new(SchedulerKind::SFS, |facts| Ok(Config { quantum: facts.quantum() }.into())).on(Intake::Several);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No weight exceeds what one processor is worth, feasible ones stay, and the order is kept.
        #[test]
        fn readjusted_weights_are_feasible(
            weights in proptest::collection::vec(1..1000u32, 1..12), processors in 1..6usize,
        ) {
            let (phi, parts) = readjusted(&weights, processors);
            let sum: i128 = phi.iter().sum();
            if weights.len() > processors {
                for (phi, weight) in phi.iter().zip(&weights) {
                    prop_assert!(phi * processors as i128 <= sum + parts);
                    prop_assert!(*phi <= i128::from(*weight) * parts);
                }
                let largest = phi.iter().max();
                for (one, weight) in phi.iter().zip(&weights) {
                    prop_assert!(*one == i128::from(*weight) * parts || (largest.unwrap() - one) <= processors as i128);
                }
            }
        }
    }
}
