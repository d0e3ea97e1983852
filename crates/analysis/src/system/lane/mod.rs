//! Response times of the operations of one lane.
//!
//! All bounds look at a *window*: it begins at 0, when the lane and those above it have nothing to do that counts, and
//! ends when the job in question completes. The job arrives `arrival` after that (before it, if its release is
//! delayed). Everything that can happen in the window is counted; the worst over all arrivals is the bound.
//!
//! Windows end later for later arrivals. So the search goes through the arrivals backwards, like the quick processor
//! demand analysis of Zhang and Burns (2009): an arrival whose window ends at w makes every earlier one after
//! w - R superfluous, where R is the worst response so far.

mod demand;
mod fifo;
mod order;
mod search;
mod urgency;

pub(super) use search::{Goal, Interest};

use super::model::{Lane, Model, Segment};
use super::release::Entry;
use super::stream::{Outside, Stream, work};
use super::{Method, Obstacle};
use crate::effort::Effort;
use crate::recurrence::{FixedPoint, TIME_MAX, clamped, least_fixed_point};
use talea_policy::discipline::Discipline;

/// A lane with all that delays it.
pub(super) struct View<'a> {
    pub model: &'a Model,
    pub lane: &'a Lane,
    /// Of its own segments, in their order.
    pub streams: &'a [Stream],
    pub outside: &'a Outside,
    /// Budget and period of a server that serves this lane alone.
    pub server: Option<(u64, u64)>,
    pub goal: Goal<'a>,
}

/// The worst window found for an operation.
#[derive(Clone, Debug)]
pub(super) struct Worst {
    pub method: Method,
    /// From the window's beginning to the completion.
    pub completion: u64,
    /// From the window's beginning to the arrival of the task's instance; negative for a delayed release.
    pub arrival: i128,
    pub counted: Counted,
    /// The rest of a job that had started, and whose segment it is of.
    pub blocking: Option<(usize, u64)>,
    /// Longest time from arrival to start, where the method knows it.
    pub start: Option<i128>,
}

/// Which instances of the lane's streams count in a window.
#[derive(Clone, Copy, Debug)]
pub(super) enum Counted {
    /// Those released up to `queued`; of the own segment, `earlier` ones.
    Queued { queued: u64, earlier: u64 },
    /// Those released up to `instant` whose key is at most `key`.
    Keyed { key: i128, instant: u64 },
    /// All that are released before the window ends.
    All,
    /// It is not known: the window is no more than a deadline.
    Nothing,
}

impl Worst {
    /// From arrival to completion.
    pub fn response(&self) -> i128 {
        i128::from(self.completion) - self.arrival
    }
}

/// The operations of a lane, each with its worst window.
pub(super) type Found = Vec<(usize, Worst)>;

/// How many instances of each of a lane's streams count in the worst window of an operation; of its own segment, those
/// besides it.
pub(super) fn counts(
    model: &Model,
    lane: &Lane,
    streams: &[Stream],
    operation: usize,
    worst: &Worst,
) -> Vec<u64> {
    let segment = model.operations[operation].segment;
    let own = |stream: &Stream| stream.segment == segment;
    match worst.counted {
        Counted::Queued { queued, earlier } => streams
            .iter()
            .map(|stream| if own(stream) { earlier } else { stream.count_through(queued) })
            .collect(),
        Counted::Keyed { key, instant } => {
            let index = streams.iter().position(own).expect("it is of this lane");
            order::Order::new(model, lane, streams).counts(index, key, instant)
        }
        Counted::Nothing => vec![0; streams.len()],
        Counted::All => {
            let end = worst.completion - 1;
            streams.iter().map(|stream| stream.count_through(end) - u64::from(own(stream))).collect()
        }
    }
}

impl View<'_> {
    /// The bounds of all operations of the lane.
    pub fn responses(&self, effort: &mut Effort) -> Result<Found, Obstacle> {
        if let Some(obstacle) = self.outside.starvation() {
            return Err(obstacle);
        }
        let load = self.outside.load_with(self.streams, effort)?;
        if let Some(found) = self.served_alone(effort)? {
            return found
                .iter()
                .try_for_each(|(operation, worst)| self.goal.judge(*operation, worst.response()))
                .map(|()| found);
        }
        let coarse = if self.outside.shares_processors() {
            None
        } else {
            load.linear_window(self.longest_blocking(), self.outside.supply())
        };
        if self.goal.is_coarse(self.operations()) {
            let linear = || Some(self.all_within(coarse?, Method::LinearBound));
            if let Some(found) = linear().filter(|found| self.accepts(found)) {
                return Ok(found);
            }
            match demand::within_deadlines(self, effort) {
                Ok(Some(found)) if self.accepts(&found) => return Ok(found),
                Ok(None) if demand::decides(self) => return Err(Obstacle::BeyondLimit),
                _ => {}
            }
        }
        let found = effort.within_half(|effort| match self.lane.discipline {
            Discipline::Fifo => fifo::responses(self, effort),
            Discipline::Deadline | Discipline::Laxity => urgency::responses(self, effort),
        });
        let found = match (found, coarse) {
            (Err(Obstacle::TooCostly), Some(window)) => self.all_within(window, Method::LinearBound),
            (found, _) => found?,
        };
        Ok(self.or_deadlines(found, effort))
    }

    /// A job that fits into the budget of its server, and comes no sooner than a period after the one before: every one begins a period of the
    /// server, and is done when that ends (Abeni and Buttazzo 1998, theorem 1 with its corollary).
    fn served_alone(&self, effort: &mut Effort) -> Result<Option<Found>, Obstacle> {
        let (Some((budget, period)), [stream]) = (self.server, self.streams) else { return Ok(None) };
        effort.spend(self.cost())?;
        let needed = u128::from(stream.cost) + self.outside.through(period - 1);
        let is_alone =
            stream.jitter == 0 && stream.period >= period && self.segment(stream).operations.len() == 1;
        let shorter = self.outside.supply().time_for(needed) > u128::from(period);
        Ok((is_alone && shorter && needed <= u128::from(budget))
            .then(|| self.all_within(period, Method::Server)))
    }

    /// The same bounds, but no longer than the deadline if the lane's demand says that all deadlines are met.
    fn or_deadlines(&self, mut found: Found, effort: &mut Effort) -> Found {
        let deadline = |operation: usize| {
            i128::from(self.model.segments[self.model.operations[operation].segment].deadline)
        };
        if found.iter().all(|(operation, worst)| worst.response() <= deadline(*operation)) {
            return found;
        }
        if let Ok(Some(within)) = demand::within_deadlines(self, effort) {
            for ((_, worst), (_, other)) in found.iter_mut().zip(within) {
                if other.response() < worst.response() {
                    *worst = other;
                }
            }
        }
        found
    }

    /// Whether bounds are all that the goal wants to know.
    fn accepts(&self, found: &Found) -> bool {
        found.iter().all(|(operation, worst)| self.goal.judge(*operation, worst.response()).is_ok())
    }

    /// The bound that holds in whatever order the lane serves its jobs, as long as it serves one: all of them are done
    /// when the busy period ends.
    fn any_order(&self, effort: &mut Effort) -> Result<Found, Obstacle> {
        let window = self.busy_period(0, effort)?;
        Ok(self.all_within(window, Method::BusyPeriod))
    }

    /// The bound of a segment all of whose operations are done when the window ends.
    fn within(&self, stream: &Stream, window: u64, method: Method) -> Worst {
        Worst {
            method,
            completion: window.max(1),
            arrival: -i128::from(stream.delay),
            counted: Counted::All,
            blocking: None,
            start: None,
        }
    }

    fn all_within(&self, window: u64, method: Method) -> Found {
        let of_stream = |stream: &Stream| {
            let worst = self.within(stream, window, method);
            self.segment(stream).operations.iter().map(move |operation| (*operation, worst.clone()))
        };
        self.streams.iter().flat_map(of_stream).collect()
    }

    fn operations(&self) -> impl Iterator<Item = usize> {
        self.streams.iter().flat_map(|stream| self.segment(stream).operations.iter().copied())
    }

    /// From 0 until the lane and those above it have nothing left to do.
    fn busy_period(&self, blocking: u64, effort: &mut Effort) -> Result<u64, Obstacle> {
        let demand = |window: u64| {
            u128::from(blocking) + work(self.streams, window - 1) + self.outside.through(window - 1)
        };
        self.window(1, effort, demand)
    }

    /// The least window from `start` on that is sure to hold its demand.
    fn window(&self, start: u64, effort: &mut Effort, demand: impl Fn(u64) -> u128) -> Result<u64, Obstacle> {
        let supply = self.outside.supply();
        self.least(start, effort, |window| supply.time_for(demand(window)))
    }

    /// The latest instant from `start` on at which what goes before has been done and the processor is there for what comes next: until
    /// it is, others may come and go before.
    fn start(&self, start: u64, effort: &mut Effort, before: impl Fn(u64) -> u128) -> Result<u64, Obstacle> {
        let supply = self.outside.supply();
        self.least(start, effort, |instant| supply.time_for(before(instant) + 1) - 1)
    }

    fn least(&self, start: u64, effort: &mut Effort, needed: impl Fn(u64) -> u128) -> Result<u64, Obstacle> {
        match least_fixed_point(start, TIME_MAX, self.cost(), effort, needed)? {
            FixedPoint::At(window) => Ok(window),
            FixedPoint::Beyond => Err(Obstacle::Overflow),
        }
    }

    /// Steps that one look at all that may happen in a window takes.
    fn cost(&self) -> u64 {
        self.streams.len() as u64 + self.outside.cost()
    }

    /// Whether an instance of the segment may be released before an earlier one: its predecessors on other nodes may be
    /// late by more than a period, and not all lanes serve instances in order.
    fn overtakes(&self, stream: &Stream) -> bool {
        match self.segment(stream).entry {
            Entry::After(_) => stream.jitter >= stream.period || !stream.in_order,
            Entry::Triggered(_) => !stream.in_order,
            Entry::Release(_) => false,
        }
    }

    fn segment(&self, stream: &Stream) -> &Segment {
        &self.model.segments[stream.segment]
    }

    /// The most that a started job of another segment can hold up a window of this lane.
    fn longest_blocking(&self) -> u64 {
        self.streams.iter().map(|stream| stream.cost).max().unwrap_or(0).saturating_add(self.outside.burst())
    }

    /// When the lane can have done `own` work by, from `start` on, given what delays it from outside.
    fn completion(&self, start: u64, own: u128, effort: &mut Effort) -> Result<u64, Obstacle> {
        let start = start.max(clamped(own)).max(1);
        self.window(start, effort, |window| own + self.outside.through(window - 1))
    }
}
