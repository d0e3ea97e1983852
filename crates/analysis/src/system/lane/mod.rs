//! Response times of the operations of one lane.
//!
//! All bounds look at a *window*: it begins at 0, when the lane and those above it have nothing to do that counts, and
//! ends when the job in question completes. The job arrives `arrival` after that (before it, if its release is
//! delayed). Everything that can happen in the window is counted; the worst over all arrivals is the bound.

mod fifo;
mod urgency;

use super::model::{Lane, Model, Segment};
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
}

/// The worst window found for an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Worst {
    pub method: Method,
    /// From the window's beginning to the completion.
    pub completion: u64,
    /// From the window's beginning to the arrival of the task's instance; negative for a delayed release.
    pub arrival: i128,
    /// How many instances of each of the lane's streams count in full; for the job's own, those besides it.
    pub counts: Vec<u64>,
    /// The rest of a job that had started, and whose segment it is of.
    pub blocking: Option<(usize, u64)>,
    /// Longest time from arrival to start, where the method knows it.
    pub start: Option<i128>,
}

impl Worst {
    /// From arrival to completion.
    pub fn response(&self) -> i128 {
        i128::from(self.completion) - self.arrival
    }
}

/// The operations of a lane, each with its worst window.
pub(super) type Found = Vec<(usize, Worst)>;

impl View<'_> {
    /// The bounds of all operations of the lane.
    pub fn responses(&self, effort: &mut Effort) -> Result<Found, Obstacle> {
        if let Some(obstacle) = self.outside.starvation() {
            return Err(obstacle);
        }
        let load = self.outside.load_with(self.streams)?;
        if load.exceeds_one(effort)? {
            return Err(Obstacle::Overload);
        }
        let exact = match self.lane.discipline {
            Discipline::Fifo => fifo::responses(self, effort),
            Discipline::Deadline | Discipline::Laxity => urgency::responses(self, effort),
        };
        match exact {
            Err(Obstacle::TooCostly) if !self.outside.shares_processors() => {
                let window = load.linear_window(self.longest_blocking()).ok_or(Obstacle::TooCostly)?;
                Ok(self.all_within(window, Method::LinearBound))
            }
            found => found,
        }
    }

    /// The bound that holds in whatever order the lane serves its jobs, as long as it serves one: all of them are done
    /// when the busy period ends.
    fn any_order(&self, effort: &mut Effort) -> Result<Found, Obstacle> {
        let window = self.busy_period(0, effort)?;
        Ok(self.all_within(window, Method::BusyPeriod))
    }

    fn all_within(&self, window: u64, method: Method) -> Found {
        let mut found = Vec::new();
        for (index, stream) in self.streams.iter().enumerate() {
            let mut counts: Vec<u64> =
                self.streams.iter().map(|stream| stream.count_through(window.saturating_sub(1))).collect();
            counts[index] -= 1;
            for &operation in &self.segment(stream).operations {
                let worst = Worst {
                    method,
                    completion: window,
                    arrival: -i128::from(stream.jitter),
                    counts: counts.clone(),
                    blocking: None,
                    start: None,
                };
                found.push((operation, worst));
            }
        }
        found
    }

    /// From 0 until the lane and those above it have nothing left to do.
    fn busy_period(&self, blocking: u64, effort: &mut Effort) -> Result<u64, Obstacle> {
        let demand = |window: u64| {
            u128::from(blocking) + work(self.streams, window - 1) + self.outside.through(window - 1)
        };
        self.window(1, effort, demand)
    }

    /// The least window from `start` on that holds its demand.
    fn window(&self, start: u64, effort: &mut Effort, demand: impl Fn(u64) -> u128) -> Result<u64, Obstacle> {
        match least_fixed_point(start, TIME_MAX, self.cost(), effort, demand)? {
            FixedPoint::At(window) => Ok(window),
            FixedPoint::Beyond => Err(Obstacle::Overflow),
        }
    }

    /// Steps that one look at all that may happen in a window takes.
    fn cost(&self) -> u64 {
        self.streams.len() as u64 + self.outside.cost()
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
