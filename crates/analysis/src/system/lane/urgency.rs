//! By deadline or laxity: the smallest key goes first (Spuri 1996, sections 4 and 6, preemptive; George, Rivierre and
//! Spuri 1996, section 4.3, non-preemptive), below lanes that take the processor away at any time.
//!
//! A job that arrives at `a` has the key a + D, or a + D - C in a laxity lane. It waits for what is released before it
//! starts (before it completes, in a preemptive lane) and has a key no greater than its own; and where a started job
//! keeps the lane, for one job with a greater key that started a nanosecond before. With ties against it, the
//! bound is sound for any rule that breaks them.
//!
//! Where late work goes last the order holds only as long as nothing is late. If the bounds say that every job
//! starts before its key, none ever is: the first to be late would have followed the order up to then. Otherwise
//! nothing is known of the order, and the bound for any order applies.

use super::order::Order;
use super::search::Arrivals;
use super::{Counted, Found, View, Worst};
use crate::effort::Effort;
use crate::system::stream::Stream;
use crate::system::{Method, Obstacle};
use talea_model::LaneDispatch;
use talea_policy::discipline::Discipline;

/// How long the window of a job is held up by one that had started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blocking {
    /// As long as any whose key is greater than the job's can.
    Possible,
    /// As long as if it had arrived first, which is longest.
    Longest,
}

/// Responses and starts up to which an operation is of no interest.
struct Floors {
    response: i128,
    start: i128,
}

struct Search<'a> {
    view: &'a View<'a>,
    order: Order<'a>,
}

pub(super) fn responses(view: &View<'_>, effort: &mut Effort) -> Result<Found, Obstacle> {
    if !keys_are_known(view) {
        return view.any_order(effort);
    }
    Search { view, order: Order::new(view.model, view.lane, view.streams) }.responses(effort)
}

/// Whether bounds of the keys say enough of the order.
fn keys_are_known(view: &View<'_>) -> bool {
    // A job's time of coming back and of interrupts passes for its execution, so its laxity may grow for long.
    let grows = view.lane.key_moves() && (view.model.switches_cost || view.outside.burst() > 0);
    // Several segments may change their keys at the instant at which a window begins.
    let jumps = |stream: &Stream| {
        let segment = view.segment(stream);
        segment.operations.len() > 1 && segment.instantaneous
    };
    let laxity = view.lane.discipline == Discipline::Laxity;
    // What a guard has held back without end may have any key.
    let any_key = view.streams.iter().any(|stream| stream.backlogged);
    !(grows || any_key || laxity && view.streams.iter().any(jumps))
}

impl Search<'_> {
    fn responses(&self, effort: &mut Effort) -> Result<Found, Obstacle> {
        let longest = (0..self.view.streams.len()).map(|index| self.rest_of(index)).max().unwrap_or(0);
        let busy_period = self.view.busy_period(longest, effort)?;
        let any_order = self.view.any_order(effort)?;
        let mut found = Vec::with_capacity(any_order.len());
        for (index, stream) in self.view.streams.iter().enumerate() {
            let arrivals = self.order.arrivals(index);
            for &operation in &self.view.segment(stream).operations {
                let worst = self.worst(index, operation, &arrivals, busy_period, effort)?;
                if !self.is_in_time(operation, &worst) {
                    // Nothing is known of the order then, whatever the other bounds are.
                    return self.judged(any_order);
                }
                found.push((operation, worst));
            }
        }
        for ((_, worst), (_, other)) in found.iter_mut().zip(any_order) {
            if other.response() < worst.response() {
                *worst = other;
            }
        }
        self.judged(found)
    }

    /// The same, unless one of them is beyond its limit.
    fn judged(&self, found: Found) -> Result<Found, Obstacle> {
        found.iter().try_for_each(|(operation, worst)| self.view.goal.judge(*operation, worst.response()))?;
        Ok(found)
    }

    /// The worst window of an operation of segment `index`, and its latest start.
    fn worst(
        &self,
        index: usize,
        operation: usize,
        arrivals: &Arrivals,
        busy_period: u64,
        effort: &mut Effort,
    ) -> Result<Worst, Obstacle> {
        let floors = self.floors(operation);
        let started = |window: &Worst| window.start.expect("it is known here");
        let mut worst = self.serve(index, operation, arrivals.earliest, Blocking::Possible, effort)?;
        let mut latest_start = started(&worst);
        let mut arrival = arrivals.last_before(i128::from(busy_period));
        while let Some(at) = arrival {
            effort.spend(arrivals.cost())?;
            // Blocked as long as the earliest, so that its end bounds those of all before it.
            let bound = self.serve(index, operation, at, Blocking::Longest, effort)?;
            let (response, start) = (worst.response().max(floors.response), latest_start.max(floors.start));
            if bound.response() > response || started(&bound) > start {
                let window = self.serve(index, operation, at, Blocking::Possible, effort)?;
                latest_start = latest_start.max(started(&window));
                if window.response() > worst.response() {
                    worst = window;
                }
            }
            let (response, start) = (worst.response().max(floors.response), latest_start.max(floors.start));
            let next = (i128::from(bound.completion) - response).max(started(&bound) + at - start);
            arrival = arrivals.last_before(at.min(next));
        }
        worst.start = Some(latest_start);
        Ok(worst)
    }

    /// What is of no interest about an operation: a response up to its limit, as long as nothing is late, and a start
    /// in time.
    fn floors(&self, operation: usize) -> Floors {
        let wanted = self.view.goal.floor(operation);
        if !self.view.lane.separates_late() {
            return Floors { response: wanted, start: i128::MAX };
        }
        let in_time = self.key_of(operation) - 1;
        match self.view.lane.rules.dispatch {
            LaneDispatch::NonPreemptive => Floors { response: wanted, start: in_time },
            LaneDispatch::Preemptive => Floors { response: wanted.min(in_time), start: i128::MAX },
        }
    }

    /// The window of an operation whose segment arrives at `arrival`.
    fn serve(
        &self,
        index: usize,
        operation: usize,
        arrival: i128,
        blocking: Blocking,
        effort: &mut Effort,
    ) -> Result<Worst, Obstacle> {
        let (view, own) = (self.view, &self.view.streams[index]);
        let operation = &view.model.operations[operation];
        let key = arrival + self.order.greatest(index);
        let blocked_with = match blocking {
            Blocking::Possible => key,
            Blocking::Longest => self.order.greatest(index) - i128::from(own.delay),
        };
        let blocking = self.blocking(index, blocked_with);
        let rest = blocking.map_or(0, |(_, rest)| rest);
        let begin = u128::from(rest) + u128::from(operation.beside);
        let nonpreemptive = view.lane.rules.dispatch == LaneDispatch::NonPreemptive;
        let waiting =
            |instant: u64| begin + self.order.ahead(index, key, instant) + view.outside.through(instant);
        let from = u64::try_from(arrival.max(0)).map_err(|_| Obstacle::Overflow)?;
        effort.spend(1)?;
        let (start, counted, completion) = if nonpreemptive {
            // Whatever is released up to the start, itself included, is chosen before.
            let start = view.start(from, effort, waiting)?;
            let own_work = begin + self.order.ahead(index, key, start) + u128::from(operation.cost);
            (start, start, view.completion(start + 1, own_work, effort)?)
        } else {
            let cost = u128::from(operation.cost);
            let first = from.saturating_add(1).max(operation.cost);
            let completion = view.window(first, effort, |window| waiting(window - 1) + cost)?;
            (completion, completion - 1, completion)
        };
        let alone = own.delay == 0 && view.streams.len() == 1 && operation.beside == 0;
        Ok(Worst {
            method: if alone { Method::ResponseTime } else { Method::Urgency },
            completion,
            arrival,
            counted: Counted::Keyed { key, instant: counted },
            blocking,
            start: Some(i128::from(start) - arrival),
        })
    }

    /// The longest rest of an instance that was under way before 0 although its key is greater: of another segment, or a
    /// later one that has overtaken.
    fn blocking(&self, index: usize, key: i128) -> Option<(usize, u64)> {
        let greater = |other: &usize| match *other == index {
            true => self.view.overtakes(&self.view.streams[index]),
            false => self.order.greatest(*other) > key,
        };
        let others = (0..self.view.streams.len()).filter(greater);
        others
            .map(|other| (self.view.streams[other].segment, self.rest_of(other)))
            .filter(|(_, rest)| *rest > 0)
            .max_by_key(|(_, rest)| *rest)
    }

    /// What may be left of an instance of segment `index` that was under way when a window begins.
    ///
    /// Where a started job keeps the lane, all of it but a nanosecond. Where the segment's operations have different
    /// keys, one of a greater key may complete at 0 and release one of a smaller key: then all that follows it,
    /// whatever the lane's dispatch.
    fn rest_of(&self, index: usize) -> u64 {
        let stream = &self.view.streams[index];
        let segment = self.view.segment(stream);
        let varies = segment.operations.len() > 1 && self.order.varies(index);
        let cost = match self.view.lane.rules.dispatch {
            _ if varies => stream.cost,
            LaneDispatch::NonPreemptive => segment.longest,
            LaneDispatch::Preemptive => return 0,
        };
        // Interrupts from before 0 may have put it off.
        (cost - 1).saturating_add(self.view.outside.burst())
    }

    /// When an operation that waits counts as late, from its arrival.
    fn key_of(&self, operation: usize) -> i128 {
        let operation = &self.view.model.operations[operation];
        let deadline = i128::from(self.view.model.segments[operation.segment].deadline);
        match self.view.lane.discipline {
            Discipline::Laxity => deadline - i128::from(operation.declared),
            Discipline::Fifo | Discipline::Deadline => deadline,
        }
    }

    /// Whether every job of an operation is sure to be out of the queue before it counts as late, where that matters.
    fn is_in_time(&self, operation: usize, worst: &Worst) -> bool {
        if !self.view.lane.separates_late() {
            return true;
        }
        let key = self.key_of(operation);
        match (self.view.lane.rules.dispatch, self.view.lane.key_moves()) {
            (LaneDispatch::NonPreemptive, _) => worst.start.is_some_and(|start| start < key),
            // A started job competes too. Its key stays, so it must end before it; or its key moves on to its deadline.
            (LaneDispatch::Preemptive, false) => worst.response() <= key,
            (LaneDispatch::Preemptive, true) => {
                let segment = self.view.model.operations[operation].segment;
                worst.response() < i128::from(self.view.model.segments[segment].deadline)
            }
        }
    }
}
