//! Where to look for the worst window.

use super::super::Obstacle;
use super::super::stream::Stream;

/// What is to be found out about an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::system) enum Interest {
    /// Its worst response.
    Worst,
    /// Whether its responses are within a limit. What is found up to there need not be the worst.
    Limit(u64),
    /// Nothing.
    Nothing,
}

/// What a search is for: something about every operation, by number.
#[derive(Clone, Copy)]
pub(in crate::system) struct Goal<'a>(pub &'a [Interest]);

impl Goal<'_> {
    /// What is to be found out about the operation.
    pub fn interest(self, operation: usize) -> Interest {
        self.0[operation]
    }

    /// The response up to which the operation's search is of no interest.
    pub fn floor(self, operation: usize) -> i128 {
        match self.0[operation] {
            Interest::Worst => i128::MIN,
            Interest::Limit(limit) => i128::from(limit),
            Interest::Nothing => i128::MAX,
        }
    }

    /// Ends a search that has its answer.
    ///
    /// # Errors
    /// [`Obstacle::BeyondLimit`] if the response is.
    pub fn judge(self, operation: usize, response: i128) -> Result<(), Obstacle> {
        match self.0[operation] {
            Interest::Limit(limit) if response > i128::from(limit) => Err(Obstacle::BeyondLimit),
            _ => Ok(()),
        }
    }

    /// Whether any bound that is within the limits is good enough.
    pub fn is_coarse(self, mut operations: impl Iterator<Item = usize>) -> bool {
        operations.all(|operation| self.0[operation] != Interest::Worst)
    }
}

/// The arrivals of a segment that can be worst: some sequences of one period each, from an earliest one on.
pub(super) struct Arrivals {
    pub earliest: i128,
    /// First member and period.
    sequences: Vec<(i128, i128)>,
}

impl Arrivals {
    pub fn new(earliest: i128) -> Self {
        Arrivals { earliest, sequences: Vec::new() }
    }

    /// Adds `first` and what follows it by periods of `stream`.
    pub fn add(&mut self, first: i128, stream: &Stream) {
        self.sequences.push((first, i128::from(stream.period)));
    }

    /// Adds the arrivals from `first` on at which one more instance of `stream` can have arrived; with the first all that may come
    /// together do.
    pub fn add_counted(&mut self, first: i128, stream: &Stream) {
        self.add(first, stream);
        if !stream.bunched.is_multiple_of(stream.period) {
            self.add(first - i128::from(stream.bunched), stream);
        }
    }

    /// The last arrival before `end` and after the earliest one.
    pub fn last_before(&self, end: i128) -> Option<i128> {
        if end <= self.earliest {
            return None;
        }
        let last = |(first, period): &(i128, i128)| first + (end - 1 - first).div_euclid(*period) * period;
        // A sequence may begin before the first arrival and may be continued backwards, up to the earliest one.
        self.sequences.iter().map(last).max().filter(|last| *last > self.earliest)
    }

    pub fn cost(&self) -> u64 {
        self.sequences.len() as u64
    }
}
