//! Streams of work, and what delays a lane from outside.

use super::Obstacle;
use super::release::Releases;
use super::supply::Supply;
use crate::division::{quotient, reciprocal};
use crate::effort::{AnalysisError, Effort};
use crate::task::Task;
use crate::utilisation::{Bracket, ONE, compare_with_one};
use std::ops::Range;
use talea_time::{Duration, Work};

/// Instances of a segment as others see them: one a period, or some of them closer together, each of a cost, released up to a delay after its
/// arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub segment: usize,
    pub period: u64,
    reciprocal: u64,
    /// The latest release after an arrival.
    pub delay: u64,
    /// By how much releases can be closer together than periods.
    pub jitter: u64,
    /// By how much arrivals can be closer together than periods.
    pub bunched: u64,
    /// Whether instances are sure to be released in order.
    pub in_order: bool,
    /// Whether nothing bounds how long before its release an instance has arrived.
    pub backlogged: bool,
    pub cost: u64,
}

impl Stream {
    pub fn new(segment: usize, period: u64, releases: Releases, cost: u64) -> Self {
        let Releases { latest: delay, jitter, in_order, bunched, backlogged, .. } = releases;
        let reciprocal = reciprocal(period);
        Stream { segment, period, reciprocal, delay, jitter, bunched, in_order, backlogged, cost }
    }

    /// The same stream, released with another jitter.
    pub fn with_jitter(self, jitter: u64) -> Self {
        Stream { jitter, ..self }
    }

    /// The same stream, of which an instance takes so much less of a processor.
    pub fn without(self, less: u64) -> Self {
        Stream { cost: self.cost - less, ..self }
    }

    /// Most instances released from 0 up to `instant`, itself included, where none was under way at 0:
    /// floor((instant + J) / T) + 1 with the jitter J.
    #[inline]
    pub fn count_through(&self, instant: u64) -> u64 {
        quotient(instant.saturating_add(self.jitter), self.period, self.reciprocal) + 1
    }

    /// The work of those.
    #[inline]
    pub fn through(&self, instant: u64) -> u128 {
        u128::from(self.count_through(instant)) * u128::from(self.cost)
    }

    /// Most instances that arrive no later than `offset` after 0 and are released from 0 on: the first arrives the delay
    /// before 0, with all that may arrive together.
    #[inline]
    pub fn count_arrived_by(&self, offset: i128) -> u64 {
        let since_first = offset + i128::from(self.delay);
        match u64::try_from(since_first) {
            Ok(since_first) => {
                quotient(since_first.saturating_add(self.bunched), self.period, self.reciprocal) + 1
            }
            Err(_) if since_first < 0 => 0,
            Err(_) => u64::MAX,
        }
    }
}

/// The work that streams release from 0 up to and including `instant`.
#[inline]
pub(super) fn work(streams: &[Stream], instant: u64) -> u128 {
    streams.iter().map(|stream| stream.through(instant)).sum()
}

/// Streams summed up: how much they need in the long run, and a straight line above all they need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    bracket: Bracket,
    /// Units of 2^-64, rounded up: the slope of the line.
    slope: u128,
    /// The line at 0: of each stream one job, and its part of the jitter.
    base: u128,
}

impl Load {
    fn add(&mut self, stream: &Stream) -> Result<(), AnalysisError> {
        let Some(task) = as_task(stream)? else { return Ok(()) };
        self.bracket.add(&task);
        let (period, cost) = (u128::from(stream.period), u128::from(stream.cost));
        self.slope = self.slope.saturating_add((cost << 64).div_ceil(period));
        self.base = self.base.saturating_add(cost + (u128::from(stream.jitter) * cost).div_ceil(period));
        Ok(())
    }

    /// A window that holds all its work and `blocking`: (blocking + base + error) / (share - slope), where the supply is at least share
    /// t - error, a bound on the busy period in one division (as in Bini, Nguyen, Richard and Baruah 2009). `None` where it leaves the range of times.
    pub fn linear_window(&self, blocking: u64, supply: &Supply) -> Option<u64> {
        let (share, error) = supply.line();
        let idle = share.checked_sub(self.slope).filter(|idle| *idle > 0)?;
        let base = self.base.checked_add(u128::from(blocking))?.checked_add(error)?;
        let window = base.checked_mul(ONE)?.div_ceil(idle);
        u64::try_from(window).ok().filter(|window| i64::try_from(*window).is_ok())
    }
}

/// The stream as a task, if it costs anything.
fn as_task(stream: &Stream) -> Result<Option<Task>, AnalysisError> {
    let time = |ns: u64| i64::try_from(ns).map_err(|_| AnalysisError::Overflow);
    let (period, cost) = (Duration::from_nanos(time(stream.period)?), Work::from_nanos(time(stream.cost)?));
    Ok((stream.cost > 0).then(|| Task::new(period, cost).expect("both are positive")))
}

/// What delays one lane from outside: the lanes above it on its node, and the node's interrupts.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    /// Of the lanes above, highest first.
    streams: Vec<Stream>,
    /// The parts of `streams`; `None` for a lane whose backlog has no bound.
    lanes: Vec<Option<Range<usize>>>,
    interrupts: Vec<Stream>,
    processors: usize,
    /// The most that interrupts can exceed the time in which they happen.
    burst: u64,
    /// What interrupts need in the long run, in units of 2^-64, rounded down.
    interrupted: u128,
    /// What takes time from the lane at its full rate, what is missing of the processor among it.
    load: Load,
    /// What there is of each processor.
    supply: Supply,
}

impl Outside {
    /// Of the highest lane.
    pub fn new(interrupts: Vec<Stream>, processors: usize, supply: Supply) -> Result<Self, AnalysisError> {
        let mut load = Load::default();
        interrupts.iter().try_for_each(|stream| load.add(stream))?;
        let burst = u64::try_from(load.base).map_err(|_| AnalysisError::Overflow)?;
        let interrupted = load.bracket.low();
        if let Some(missing) = supply.missing() {
            load.bracket.add(&missing);
        }
        Ok(Outside {
            streams: Vec::new(),
            lanes: Vec::new(),
            interrupts,
            processors,
            burst,
            interrupted,
            load,
            supply,
        })
    }

    /// What there is of each processor.
    pub fn supply(&self) -> &Supply {
        &self.supply
    }

    /// Whether nothing but the lane itself takes time from it.
    pub fn is_empty(&self) -> bool {
        self.cost() == 0 && self.supply == Supply::Whole
    }

    /// Goes on to the next lane: the one just looked at is above it. Its streams have the jitter of their releases on
    /// one processor; on several, where a window may begin while they are under way, the response time instead.
    pub fn descend(&mut self, lane: Option<&[Stream]>) -> Result<(), AnalysisError> {
        let begin = self.streams.len();
        self.lanes.push(lane.map(|lane| begin..begin + lane.len()));
        self.streams.extend(lane.into_iter().flatten());
        if self.processors == 1 {
            lane.into_iter().flatten().try_for_each(|stream| self.load.add(stream))?;
        }
        Ok(())
    }

    /// The most that interrupts can have put off until 0 what was under way before: that of all at once, as long as
    /// they do not take the whole processor for good.
    pub fn burst(&self) -> u64 {
        self.burst
    }

    /// What the lane's own streams and those that compete with them at full rate need, unless that is more than a
    /// whole processor.
    pub fn load_with(&self, lane: &[Stream], effort: &mut Effort) -> Result<Load, Obstacle> {
        let mut load = self.load;
        effort.spend(lane.len() as u64)?;
        lane.iter().try_for_each(|stream| load.add(stream))?;
        let order = match load.bracket.compare_with_one() {
            Some(order) => order,
            None => {
                let above = if self.processors == 1 { &self.streams[..] } else { &[] };
                let all = above.iter().chain(&self.interrupts).chain(lane);
                let mut tasks =
                    all.filter_map(|stream| as_task(stream).transpose()).collect::<Result<Vec<Task>, _>>()?;
                tasks.extend(self.supply.missing());
                compare_with_one(&tasks, effort)?
            }
        };
        if order.is_gt() || self.shared_load(&load, effort)? > ONE {
            return Err(Obstacle::Overload);
        }
        Ok(load)
    }

    /// On several processors: what the lane needs with the parts of the lanes above that can hold it up in the long run, rounded down.
    fn shared_load(&self, own: &Load, effort: &mut Effort) -> Result<u128, Obstacle> {
        if !self.shares_processors() {
            return Ok(0);
        }
        effort.spend(self.streams.len() as u64)?;
        let mut above: u128 = 0;
        for lane in &self.lanes {
            let load = match lane {
                None => ONE,
                Some(lane) => {
                    let mut load = Load::default();
                    self.streams[lane.clone()].iter().try_for_each(|stream| load.add(stream))?;
                    load.bracket.low().saturating_add(self.interrupted).min(ONE)
                }
            };
            above = above.saturating_add(load);
        }
        Ok((above / self.processors as u128).saturating_add(own.bracket.low()))
    }

    /// Why the lane may never get a processor: on one processor, because a lane above has no bound.
    pub fn starvation(&self) -> Option<Obstacle> {
        (self.processors == 1 && self.lanes.iter().any(Option::is_none)).then_some(Obstacle::Starved)
    }

    /// Whether [`Self::through`] counts parts of the work above only, so that a line above it says nothing.
    pub fn shares_processors(&self) -> bool {
        self.processors > 1 && self.lanes.len() >= self.processors
    }

    /// The most time that the lane cannot have from 0 up to and including `instant`.
    ///
    /// A node of m processors serves its m highest lanes that have work, each on one processor. The m highest lanes of
    /// all never wait. A lower one waits only while m higher ones run: a part of no more than 1/m of their work.
    pub fn through(&self, instant: u64) -> u128 {
        let interrupts = work(&self.interrupts, instant);
        if self.processors == 1 {
            return interrupts + work(&self.streams, instant);
        }
        interrupts + self.shared_through(instant, interrupts)
    }

    /// The part of it that the lanes above take on several processors.
    pub fn shared_through(&self, instant: u64, interrupts: u128) -> u128 {
        if !self.shares_processors() {
            return 0;
        }
        let window = u128::from(instant) + 1;
        let of_lane = |lane: &Option<Range<usize>>| match lane {
            Some(lane) => window.min(work(&self.streams[lane.clone()], instant) + interrupts),
            None => window,
        };
        self.lanes.iter().map(of_lane).sum::<u128>() / self.processors as u128
    }

    /// How many divisions [`Self::through`] takes.
    pub fn cost(&self) -> u64 {
        (self.streams.len() + self.interrupts.len()) as u64
    }
}
