//! First in, first out: who was released before goes before.
//!
//! A first operation that is released at `a` waits for everything released up to then, and for nothing that comes later
//! to its lane; for one task per lane this is Lehoczky 1990 and Tindell, Burns and Wellings 1994. A job that has
//! been released as late as it can, of a segment of period T, has floor((a + B) / T) instances of its own before it, where B is by how much
//! arrivals may be closer together than periods; a shorter delay gives no worse response, for the same instances go before it. (Instances keep their order here, unless messages
//! overtake each other: all that a FIFO lane's tasks wait for is served in FIFO lanes too, under every strategy.) The next
//! operation of the segment goes to the end of the queue when the one before it completes.

use super::search::Arrivals;
use super::{Counted, Found, View, Worst};
use crate::effort::Effort;
use crate::system::stream::Stream;
use crate::system::{Method, Obstacle};

pub(super) fn responses(view: &View<'_>, effort: &mut Effort) -> Result<Found, Obstacle> {
    let busy_period = view.busy_period(0, effort)?;
    let mut found = Vec::new();
    for index in 0..view.streams.len() {
        found.extend(Queue { view, index }.responses(busy_period, effort)?);
    }
    Ok(found)
}

/// A segment in its queue.
struct Queue<'a> {
    view: &'a View<'a>,
    index: usize,
}

impl Queue<'_> {
    fn own(&self) -> &Stream {
        &self.view.streams[self.index]
    }

    fn operations(&self) -> &[usize] {
        &self.view.segment(self.own()).operations
    }

    fn responses(&self, busy_period: u64, effort: &mut Effort) -> Result<Found, Obstacle> {
        let releases = self.releases();
        let end = i128::from(busy_period) + i128::from(self.own().jitter.saturating_sub(self.own().bunched));
        let in_any_order = i128::from(busy_period) + i128::from(self.own().delay);
        let mut worst = self.serve(0, effort)?;
        let mut release = releases.last_before(end);
        while let Some(at) = release {
            effort.spend(releases.cost())?;
            let windows = self.serve(u64::try_from(at).map_err(|_| Obstacle::Overflow)?, effort)?;
            let mut next = i128::MIN;
            for ((worst, window), &operation) in worst.iter_mut().zip(windows).zip(self.operations()) {
                let completion = i128::from(window.completion) + i128::from(self.own().delay);
                if window.response() > worst.response() {
                    *worst = window;
                }
                self.view.goal.judge(operation, worst.response().min(in_any_order))?;
                next = next
                    .max(completion.saturating_sub(worst.response().max(self.view.goal.floor(operation))));
            }
            release = releases.last_before(at.min(next));
        }
        let any_order = self.view.within(self.own(), busy_period, Method::BusyPeriod);
        let found = self.operations().iter().copied().zip(worst);
        let best = found.map(|(operation, worst)| {
            let worst = if worst.response() <= any_order.response() { worst } else { any_order.clone() };
            (operation, worst)
        });
        best.map(|(operation, worst)| {
            self.view.goal.judge(operation, worst.response())?;
            Ok((operation, worst))
        })
        .collect()
    }

    /// The windows of the segment's operations, where its first one is released at `release`, after its whole jitter.
    fn serve(&self, release: u64, effort: &mut Effort) -> Result<Vec<Worst>, Obstacle> {
        let mut windows: Vec<Worst> = Vec::with_capacity(self.operations().len());
        for &operation in self.operations() {
            let before = self.view.model.operations[operation].after.iter();
            let before = before.map(|place| windows[*place].completion);
            let window = self.turn(operation, release, before.max(), effort)?;
            windows.push(window);
        }
        Ok(windows)
    }

    /// The window of one operation, which is released when the one before it completes, if there is one.
    fn turn(
        &self,
        operation: usize,
        release: u64,
        released: Option<u64>,
        effort: &mut Effort,
    ) -> Result<Worst, Obstacle> {
        let (view, own) = (self.view, self.own());
        let queued = released.unwrap_or(release);
        let earlier = match released {
            None if own.in_order => release.saturating_add(own.bunched) / own.period,
            // Later instances may have been released before.
            None => own.count_through(release) - 1,
            Some(released) => own.count_through(released) - 1,
        };
        effort.spend(view.streams.len() as u64)?;
        let others: u128 = view
            .streams
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != self.index)
            .map(|(_, stream)| stream.through(queued))
            .sum();
        let numbers = &view.model.operations[operation];
        let instances = u128::from(earlier) * u128::from(own.cost);
        let work = others + instances + u128::from(numbers.beside) + u128::from(numbers.cost);
        let completion = view.completion(queued + 1, work, effort)?;
        let alone = view.streams.len() == 1 && released.is_none();
        Ok(Worst {
            method: if alone { Method::ResponseTime } else { Method::Queue },
            completion,
            arrival: i128::from(release) - i128::from(own.delay),
            counted: Counted::Queued { queued, earlier },
            blocking: None,
            start: None,
        })
    }

    /// The releases that can be worst: its own at their earliest distance, and those together with another's.
    fn releases(&self) -> Arrivals {
        let mut releases = Arrivals::new(0);
        for (other, stream) in self.view.streams.iter().enumerate() {
            let jitter = if other == self.index && stream.in_order { stream.bunched } else { stream.jitter };
            releases.add(-i128::from(jitter), stream);
        }
        releases
    }
}
