//! Whose slot it is: the plan that is followed, and the one that takes over at a later instant, if there is one.

use super::cycle::{self, Reserve};
use crate::hierarchy::{Constraint, Shortage};
use crate::scheduler::slots::Slots;
use talea_time::Instant;

/// What is planned for those that reserve.
#[derive(Clone, Debug, Default)]
pub struct Timetable {
    /// None while nobody has a slot.
    current: Option<Slots>,
    /// Follows from this instant on. It has the origin of the current one.
    next: Option<(Instant, Slots)>,
}

/// Whether periods are under way that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// No: none of those that reserve wants the processor.
    Paused,
    /// Some do.
    UnderWay,
}

impl Timetable {
    /// Whose slot it is at `now`, and until when that holds.
    pub fn at(&self, now: Instant) -> (Option<usize>, Instant) {
        let current = || self.current.as_ref().map_or((None, Instant::MAX), |slots| slots.at(now));
        match &self.next {
            Some((from, slots)) if *from <= now => slots.at(now),
            Some((from, _)) => {
                let (owner, until) = current();
                (owner, until.min(*from))
            }
            None => current(),
        }
    }

    /// The earliest start from `from` on at which `piece` is in nobody's slot until its end, if that meets its deadline.
    pub fn fit(&self, piece: &Constraint, from: Instant) -> Option<Instant> {
        let length = piece.work.at_full_speed();
        let (mut start, mut at) = (from, from);
        // What was not found within a cycle of each plan and the beginning of the next will not be.
        let steps: usize = self.plans().map(|slots| 2 * slots.count() + 2).sum();
        for _ in 0..=steps {
            let end = start.saturating_add(length);
            if end > piece.deadline {
                return None;
            }
            let (owner, until) = self.at(at);
            match owner {
                None if until >= end => return Some(start),
                None => {}
                Some(_) => start = until,
            }
            at = until;
        }
        None
    }

    /// The same, from `now` on, without the slots of those that `stays` says no of.
    pub fn keep(&self, now: Instant, stays: impl Fn(usize) -> bool) -> Self {
        let kept = |slots: &Slots| cycle::without(slots, &stays);
        let (current, next) = match (&self.current, &self.next) {
            (_, Some((from, slots))) if *from <= now => (Some(kept(slots)), None),
            (current, next) => {
                (current.as_ref().map(kept), next.as_ref().map(|(from, slots)| (*from, kept(slots))))
            }
        };
        let kept = Timetable { current, next };
        let is_empty = kept.plans().all(|slots| slots.count() == 0);
        if is_empty { Timetable::default() } else { kept }
    }

    /// With slots for `new` beside those of the `others`, who are all that it has slots for, from `now` on. Of the plans that there are, the
    /// first is taken that `suits`; with it comes what that says.
    ///
    /// Nobody notices a plan that begins anew while all pause. Otherwise the others' slots stay, if there is room between them, or all
    /// are planned again, and the plan is followed as soon as that costs nobody a slot.
    ///
    /// # Errors
    /// Why there is none; the last reason if none suits.
    pub fn with<T>(
        &self,
        now: Instant,
        (others, new): (&[Reserve], Reserve),
        demand: Demand,
        effort: u32,
        suits: impl Fn(&Timetable) -> Result<T, Shortage>,
    ) -> Result<(Timetable, T), Shortage> {
        let length = cycle::check(others, &new)?;
        let all: Vec<Reserve> = others.iter().copied().chain([new]).collect();
        let planned = |origin: Instant| {
            let pieces =
                all.iter().map(|reserve| (length.as_nanos() / reserve.period.as_nanos()) as usize).sum();
            cycle::plan(origin, length, &all, effort).map_err(|tried| Shortage::Order { pieces, tried })
        };
        let suited = |timetable: Timetable| suits(&timetable).map(|said| (timetable, said));
        // Nobody asks again because of a registration, so slots that are elsewhere are followed when something was to be done anyway.
        let next_boundary = self.at(now).1;
        let followed = |slots: Slots, earliest: Instant| {
            let current = self.current.as_ref();
            let from = current.and_then(|current| cycle::transition((current, &slots), &all, now, earliest));
            let next = Some((from.ok_or(Shortage::Transition)?, slots));
            suited(Timetable { current: self.current.clone(), next })
        };
        let beside = || {
            let old = self.last()?;
            let earliest = if self.next.is_none() { now } else { next_boundary };
            cycle::beside(old, &new).and_then(|slots| followed(slots, earliest).ok())
        };
        match (demand, self.last().map(Slots::origin)) {
            (Demand::UnderWay, Some(origin)) => {
                beside().map_or_else(|| followed(planned(origin)?, next_boundary), Ok)
            }
            _ => {
                let anew =
                    planned(now).and_then(|slots| suited(Timetable { current: Some(slots), next: None }));
                anew.or_else(|shortage| beside().ok_or(shortage))
            }
        }
    }

    fn plans(&self) -> impl DoubleEndedIterator<Item = &Slots> {
        self.current.iter().chain(self.next.iter().map(|(_, slots)| slots))
    }

    /// The plan that is followed in the end.
    fn last(&self) -> Option<&Slots> {
        self.plans().next_back()
    }
}
