//! Who goes before whom in a deadline or laxity lane.
//!
//! A job's key lies between two bounds, counted from its arrival. They differ where the operations of a segment declare
//! different worst cases, and where the laxity of a started job moves. The greatest key counts where a segment waits
//! and the least where it is waited for, with ties against it.

use super::search::Arrivals;
use crate::system::model::{Lane, Model, Segment};
use crate::system::stream::Stream;
use talea_policy::discipline::Discipline;

/// Bounds of a segment's keys, counted from its arrival.
#[derive(Clone, Copy)]
struct Keys {
    least: i128,
    greatest: i128,
}

pub(super) struct Order<'a> {
    streams: &'a [Stream],
    keys: Vec<Keys>,
}

impl<'a> Order<'a> {
    pub fn new(model: &Model, lane: &Lane, streams: &'a [Stream]) -> Self {
        let keys = streams.iter().map(|stream| keys(lane, &model.segments[stream.segment])).collect();
        Order { streams, keys }
    }

    /// The greatest key of segment `index`, counted from its arrival.
    pub fn greatest(&self, index: usize) -> i128 {
        self.keys[index].greatest
    }

    /// Whether the keys of segment `index` may differ within an instance.
    pub fn varies(&self, index: usize) -> bool {
        self.keys[index].least != self.keys[index].greatest
    }

    /// The least key of `other` that may go before a job of `index`, counted from its own arrival. A later instance of
    /// the same segment goes before an earlier one only if their keys differ by more than their arrivals do at least.
    fn least_against(&self, index: usize, other: usize) -> i128 {
        let Keys { least, greatest } = self.keys[other];
        let apart = self.streams[other].period.saturating_sub(self.streams[other].bunched);
        let in_order = other == index && greatest - least < i128::from(apart);
        if in_order { greatest } else { least }
    }

    /// How many instances of `other` go before a job of `index` with this key, of those released up to `instant`; of
    /// its own segment, how many besides it.
    fn count(&self, index: usize, other: usize, key: i128, instant: u64) -> u64 {
        let stream = &self.streams[other];
        let by_key = stream.count_arrived_by(key - self.least_against(index, other));
        let count = stream.count_through(instant).min(by_key);
        if other == index { count.saturating_sub(1) } else { count }
    }

    /// Those of every segment.
    pub fn counts(&self, index: usize, key: i128, instant: u64) -> Vec<u64> {
        (0..self.streams.len()).map(|other| self.count(index, other, key, instant)).collect()
    }

    /// The work of those.
    pub fn ahead(&self, index: usize, key: i128, instant: u64) -> u128 {
        let work = |(other, stream): (usize, &Stream)| {
            u128::from(self.count(index, other, key, instant)) * u128::from(stream.cost)
        };
        self.streams.iter().enumerate().map(work).sum()
    }

    /// The arrivals of segment `index` that can be worst: those at which one more instance, of whatever segment, goes
    /// before it.
    pub fn arrivals(&self, index: usize) -> Arrivals {
        let own = &self.streams[index];
        let mut arrivals = Arrivals::new(-i128::from(own.delay));
        arrivals.add_counted(arrivals.earliest, own);
        for (other, stream) in self.streams.iter().enumerate() {
            let shift = self.least_against(index, other) - self.keys[index].greatest;
            arrivals.add_counted(shift - i128::from(stream.delay), stream);
        }
        arrivals
    }
}

fn keys(lane: &Lane, segment: &Segment) -> Keys {
    let deadline = i128::from(segment.deadline);
    let (least, greatest) = segment.declared;
    match lane.discipline {
        Discipline::Fifo | Discipline::Deadline => Keys { least: deadline, greatest: deadline },
        // What is left of a started job shrinks down to nothing, and below if it takes longer than it declares.
        Discipline::Laxity if lane.key_moves() => {
            Keys { least: deadline - i128::from(greatest), greatest: deadline + i128::from(segment.excess) }
        }
        Discipline::Laxity => {
            Keys { least: deadline - i128::from(greatest), greatest: deadline - i128::from(least) }
        }
    }
}
