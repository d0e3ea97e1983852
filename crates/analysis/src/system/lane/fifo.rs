//! First in, first out: who was released before goes before.
//!
//! A first operation that is released at `a` waits for everything released up to then, and for nothing that comes later
//! to its lane (theory of FIFO queues; for one task per lane it is Lehoczky 1990 and Tindell, Burns and Wellings 1994).
//! A job that has waited out its whole release jitter J, of a segment of period T, has floor(a / T) instances of its
//! own before it; a shorter delay gives no worse response, for the same instances go before it. The next operation of
//! the segment goes to the end of the queue when the one before it completes.

use super::{Found, View, Worst};
use crate::effort::Effort;
use crate::system::{Method, Obstacle};

pub(super) fn responses(view: &View<'_>, effort: &mut Effort) -> Result<Found, Obstacle> {
    let busy_period = view.busy_period(0, effort)?;
    let mut found = Vec::new();
    for index in 0..view.streams.len() {
        of_segment(view, index, busy_period, &mut found, effort)?;
    }
    Ok(found)
}

fn of_segment(
    view: &View<'_>,
    index: usize,
    busy_period: u64,
    found: &mut Found,
    effort: &mut Effort,
) -> Result<(), Obstacle> {
    let own = &view.streams[index];
    let operations = &view.segment(own).operations;
    let releases = releases(view, index, busy_period.saturating_add(own.jitter), effort)?;
    let mut worst: Vec<Option<Worst>> = vec![None; operations.len()];
    let mut completions = vec![0; operations.len()];
    for release in releases {
        for (place, &operation) in operations.iter().enumerate() {
            let before = &view.model.operations[operation].after;
            let released = before.iter().map(|before| {
                let place = operations.iter().position(|other| other == before);
                completions[place.expect("predecessors inside a segment stand before")]
            });
            let released = released.max();
            let turn = Turn { release, released };
            let window = turn.serve(view, index, operation, completions[place], effort)?;
            completions[place] = window.completion;
            if worst[place].as_ref().is_none_or(|worst| window.response() > worst.response()) {
                worst[place] = Some(window);
            }
        }
    }
    let limit = i128::from(busy_period) + i128::from(own.jitter);
    for (worst, &operation) in worst.into_iter().zip(operations) {
        let worst = worst.expect("a busy period has a release");
        if worst.response() <= limit {
            found.push((operation, worst));
        } else {
            let any_order = view.all_within(busy_period, Method::BusyPeriod);
            found.extend(any_order.into_iter().filter(|(other, _)| *other == operation));
        }
    }
    Ok(())
}

/// An operation's place in the queue.
struct Turn {
    /// Of its segment, from the window's beginning.
    release: u64,
    /// Of the operation itself, if it follows another one.
    released: Option<u64>,
}

impl Turn {
    fn serve(
        &self,
        view: &View<'_>,
        index: usize,
        operation: usize,
        last: u64,
        effort: &mut Effort,
    ) -> Result<Worst, Obstacle> {
        let own = &view.streams[index];
        let queued = self.released.unwrap_or(self.release);
        let mut counts: Vec<u64> = view.streams.iter().map(|stream| stream.count_through(queued)).collect();
        counts[index] = match self.released {
            None => self.release / own.period,
            Some(released) => own.count_through(released) - 1,
        };
        effort.spend(counts.len() as u64)?;
        let operation = &view.model.operations[operation];
        let others: u128 = counts
            .iter()
            .zip(view.streams)
            .map(|(count, stream)| u128::from(*count) * u128::from(stream.cost))
            .sum();
        let work = others + u128::from(operation.beside) + u128::from(operation.cost);
        // Later turns complete later.
        let completion = view.completion(last.max(queued + 1), work, effort)?;
        let method = if view.streams.len() == 1 && self.released.is_none() {
            Method::ResponseTime
        } else {
            Method::Queue
        };
        Ok(Worst {
            method,
            completion,
            arrival: i128::from(self.release) - i128::from(own.jitter),
            counts,
            blocking: None,
            start: None,
        })
    }
}

/// The releases of segment `index` from 0 on, before `end`, that can be worst: its own at their earliest distance, and
/// those together with another's.
fn releases(view: &View<'_>, index: usize, end: u64, effort: &mut Effort) -> Result<Vec<u64>, Obstacle> {
    let mut releases = Vec::new();
    for (other, stream) in view.streams.iter().enumerate() {
        let jitter = if other == index { 0 } else { stream.jitter };
        let first = (jitter.div_ceil(stream.period)) * stream.period - jitter;
        let count = end.saturating_sub(first).div_ceil(stream.period);
        effort.spend(count.saturating_mul(view.cost()))?;
        releases.extend((0..count).map(|number| first + number * stream.period));
    }
    releases.push(0);
    releases.sort_unstable();
    releases.dedup();
    Ok(releases)
}
