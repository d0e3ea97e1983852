//! By deadline or laxity: the smallest key goes first (Spuri 1996, sections 4 and 6, preemptive; George, Rivierre and
//! Spuri 1996, section 4.3, non-preemptive), below lanes that take the processor away at any time.
//!
//! A job that arrives at `a` has the key a + D, or a + D - C in a laxity lane. It waits for what is released before it
//! starts (before it completes, in a preemptive lane) and has a key no greater than its own; and where a started job
//! keeps the lane, for one job with a greater key that started a nanosecond before. With ties against it, the
//! bound is sound for any rule that breaks them.
//!
//! The operations of a segment may have different keys in a laxity lane. Then the greatest counts where the segment
//! waits and the least where it is waited for.
//!
//! Where late work goes last the order holds only as long as nothing is late. If the bounds say that every job
//! starts before its key, none ever is: the first to be late would have followed the order up to then. Otherwise
//! nothing is known of the order, and the bound for any order applies.

use super::{Found, View, Worst};
use crate::effort::Effort;
use crate::system::model::Segment;
use crate::system::stream::Stream;
use crate::system::{Method, Obstacle};
use talea_model::LaneDispatch;
use talea_policy::discipline::Discipline;

/// Bounds of a segment's keys, counted from its arrival.
#[derive(Clone, Copy)]
struct Keys {
    least: i128,
    greatest: i128,
}

struct Order<'a> {
    view: &'a View<'a>,
    keys: Vec<Keys>,
}

pub(super) fn responses(view: &View<'_>, effort: &mut Effort) -> Result<Found, Obstacle> {
    if !keys_are_known(view) {
        return view.any_order(effort);
    }
    let keys = view.streams.iter().map(|stream| keys(view, view.segment(stream))).collect();
    let order = Order { view, keys };
    let found = order.responses(effort)?;
    if view.lane.separates_late() && !order.nothing_is_late(&found) {
        return view.any_order(effort);
    }
    Ok(found)
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
    !(grows || laxity && view.streams.iter().any(jumps))
}

fn keys(view: &View<'_>, segment: &Segment) -> Keys {
    let deadline = i128::from(segment.deadline);
    let (least, greatest) = segment.declared;
    match view.lane.discipline {
        Discipline::Fifo | Discipline::Deadline => Keys { least: deadline, greatest: deadline },
        // What is left of a started job shrinks down to nothing, and below if it takes longer than it declares.
        Discipline::Laxity if view.lane.key_moves() => {
            Keys { least: deadline - i128::from(greatest), greatest: deadline + i128::from(segment.excess) }
        }
        Discipline::Laxity => {
            Keys { least: deadline - i128::from(greatest), greatest: deadline - i128::from(least) }
        }
    }
}

impl Order<'_> {
    fn responses(&self, effort: &mut Effort) -> Result<Found, Obstacle> {
        let longest = (0..self.view.streams.len()).map(|index| self.rest_of(index)).max().unwrap_or(0);
        let busy_period = self.view.busy_period(longest, effort)?;
        let mut found = Vec::new();
        for (index, stream) in self.view.streams.iter().enumerate() {
            let arrivals = self.arrivals(index, busy_period, effort)?;
            for &operation in &self.view.segment(stream).operations {
                found.push((operation, self.worst(index, operation, &arrivals, effort)?));
            }
        }
        Ok(found)
    }

    /// The worst window of an operation of segment `index`.
    fn worst(
        &self,
        index: usize,
        operation: usize,
        arrivals: &[i128],
        effort: &mut Effort,
    ) -> Result<Worst, Obstacle> {
        let mut worst: Option<Worst> = None;
        let mut latest_start = i128::MIN;
        for &arrival in arrivals {
            let window = self.serve(index, operation, arrival, effort)?;
            latest_start = latest_start.max(window.start.expect("it is known here"));
            if worst.as_ref().is_none_or(|worst| window.response() > worst.response()) {
                worst = Some(window);
            }
        }
        let mut worst = worst.expect("a job may arrive first");
        worst.start = Some(latest_start);
        Ok(worst)
    }

    /// The window of an operation whose segment arrives at `arrival`.
    fn serve(
        &self,
        index: usize,
        operation: usize,
        arrival: i128,
        effort: &mut Effort,
    ) -> Result<Worst, Obstacle> {
        let (view, own) = (self.view, &self.view.streams[index]);
        let operation = &view.model.operations[operation];
        let key = arrival + self.keys[index].greatest;
        let blocking = self.blocking(index, key);
        let rest = blocking.map_or(0, |(_, rest)| rest);
        let begin = u128::from(rest) + u128::from(operation.beside);
        let nonpreemptive = view.lane.rules.dispatch == LaneDispatch::NonPreemptive;
        let waiting = |instant: u64| begin + self.ahead(index, key, instant) + view.outside.through(instant);
        let from = u64::try_from(arrival.max(0)).map_err(|_| Obstacle::Overflow)?;
        effort.spend(1)?;
        let (start, counted, completion) = if nonpreemptive {
            // Whatever is released up to the start, itself included, is chosen before.
            let start = view.window(from, effort, waiting)?;
            let own_work = begin + self.ahead(index, key, start) + u128::from(operation.cost);
            (start, start, view.completion(start + 1, own_work, effort)?)
        } else {
            let cost = u128::from(operation.cost);
            let first = from.saturating_add(1).max(operation.cost);
            let completion = view.window(first, effort, |window| waiting(window - 1) + cost)?;
            (completion, completion - 1, completion)
        };
        let counts = (0..view.streams.len()).map(|other| self.count(index, other, key, counted)).collect();
        let alone = own.jitter == 0 && view.streams.len() == 1 && operation.beside == 0;
        Ok(Worst {
            method: if alone { Method::ResponseTime } else { Method::Urgency },
            completion,
            arrival,
            counts,
            blocking,
            start: Some(i128::from(start) - arrival),
        })
    }

    /// The least key of `other` that may go before a job of `index`, counted from its own arrival. A later instance of
    /// the same segment goes before an earlier one only if their keys differ by more than the period.
    fn least_against(&self, index: usize, other: usize) -> i128 {
        let Keys { least, greatest } = self.keys[other];
        let in_order = other == index && greatest - least < i128::from(self.view.streams[other].period);
        if in_order { greatest } else { least }
    }

    /// How many instances of `other` go before a job of `index` with this key, of those released up to `instant`; of
    /// its own segment, how many besides it.
    fn count(&self, index: usize, other: usize, key: i128, instant: u64) -> u64 {
        let stream = &self.view.streams[other];
        let by_key = stream.count_arrived_by(key - self.least_against(index, other));
        let count = stream.count_through(instant).min(by_key);
        if other == index { count.saturating_sub(1) } else { count }
    }

    /// The work of those.
    fn ahead(&self, index: usize, key: i128, instant: u64) -> u128 {
        let work = |(other, stream): (usize, &Stream)| {
            u128::from(self.count(index, other, key, instant)) * u128::from(stream.cost)
        };
        self.view.streams.iter().enumerate().map(work).sum()
    }

    /// The longest rest of an instance of another segment that was under way before 0 although its key is greater.
    fn blocking(&self, index: usize, key: i128) -> Option<(usize, u64)> {
        let greater = |other: &usize| *other != index && self.keys[*other].greatest > key;
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
        let (segment, keys) = (self.view.segment(stream), self.keys[index]);
        let varies = segment.operations.len() > 1 && keys.least != keys.greatest;
        let cost = match self.view.lane.rules.dispatch {
            _ if varies => stream.cost,
            LaneDispatch::NonPreemptive => segment.longest,
            LaneDispatch::Preemptive => return 0,
        };
        // Interrupts from before 0 may have put it off.
        (cost - 1).saturating_add(self.view.outside.burst())
    }

    /// The arrivals of segment `index` in a busy period that can be worst: those at which one more instance, of
    /// whatever segment, goes before it.
    fn arrivals(&self, index: usize, busy_period: u64, effort: &mut Effort) -> Result<Vec<i128>, Obstacle> {
        let own = &self.view.streams[index];
        let earliest = -i128::from(own.jitter);
        let end = i128::from(busy_period);
        let mut arrivals = vec![earliest];
        let mut add = |first: i128, period: u64| -> Result<(), Obstacle> {
            let period = i128::from(period);
            let skipped = if first < earliest { (earliest - first).div_euclid(period) } else { 0 };
            let first = first + skipped * period;
            let count = u64::try_from(((end - first).max(0)).div_euclid(period) + 1)
                .map_err(|_| Obstacle::Overflow)?;
            effort.spend(count.saturating_mul(self.view.cost()))?;
            arrivals.extend((0..count).map(|number| first + i128::from(number) * period));
            Ok(())
        };
        add(earliest, own.period)?;
        for (other, stream) in self.view.streams.iter().enumerate() {
            let shift = self.least_against(index, other) - self.keys[index].greatest;
            add(shift - i128::from(stream.jitter), stream.period)?;
        }
        arrivals.retain(|arrival| (earliest..end).contains(arrival));
        arrivals.sort_unstable();
        arrivals.dedup();
        Ok(arrivals)
    }

    /// Whether every job is sure to be out of the queue before its key.
    fn nothing_is_late(&self, found: &Found) -> bool {
        found.iter().all(|(operation, worst)| {
            let operation = &self.view.model.operations[*operation];
            let deadline = i128::from(self.view.model.segments[operation.segment].deadline);
            let key = match self.view.lane.discipline {
                Discipline::Laxity => deadline - i128::from(operation.declared),
                Discipline::Fifo | Discipline::Deadline => deadline,
            };
            match (self.view.lane.rules.dispatch, self.view.lane.key_moves()) {
                (LaneDispatch::NonPreemptive, _) => worst.start.is_some_and(|start| start < key),
                // A started job competes too; its key stays, or ends at its deadline.
                (LaneDispatch::Preemptive, false) => worst.response() <= key,
                (LaneDispatch::Preemptive, true) => worst.response() < deadline,
            }
        })
    }
}
