//! How much an analysis may cost.
//!
//! Exact tests have pseudo-polynomial or exponential cost: a utilisation just below 1 makes busy periods as long as
//! one likes, and periods without a common divisor make hyperperiods of astronomic length. Every search therefore
//! draws on an [`Effort`] and ends with [`AnalysisError::TooCostly`] when it is used up.

use thiserror::Error;

/// A budget of steps that one or several analyses share.
///
/// A step is about as much as looking at one task once: a division by its period, or the product of two words of a
/// long number. An optimised build does some hundred million steps a second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    limit: u64,
    /// Never more than `limit`.
    left: u64,
}

/// Why an analysis has no answer. Nothing is known about the tasks then, neither good nor bad.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnalysisError {
    /// The budget of steps was used up before the search ended.
    #[error(
        "given up after {steps} steps: the utilisation is close to 1, the periods have a long common multiple, or there are too many tasks"
    )]
    TooCostly {
        /// The whole budget.
        steps: u64,
    },
    /// A time in the search left the range of 64 bits.
    #[error("a result is longer than 292 years, the range of all times")]
    Overflow,
}

impl Effort {
    /// A budget of `steps`.
    pub fn new(steps: u64) -> Self {
        Effort { limit: steps, left: steps }
    }

    /// Steps taken so far.
    pub fn spent(&self) -> u64 {
        self.limit - self.left
    }

    /// Does something with half of what is left, so that one costly part leaves enough for the others.
    pub(crate) fn within_half<T>(&mut self, action: impl FnOnce(&mut Effort) -> T) -> T {
        let mut half = Effort::new(self.left / 2);
        let result = action(&mut half);
        self.left -= half.spent();
        result
    }

    /// Takes `steps`, before the work is done.
    #[inline]
    pub(crate) fn spend(&mut self, steps: u64) -> Result<(), AnalysisError> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(AnalysisError::TooCostly { steps: self.limit })
            }
        }
    }
}

impl Default for Effort {
    /// Five hundred million steps: some seconds at most.
    fn default() -> Self {
        Effort::new(500_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_up_budget_stays_used_up() {
        let mut effort = Effort::new(10);
        assert_eq!(effort.spend(7), Ok(()));
        assert_eq!(effort.spent(), 7);
        assert_eq!(effort.spend(4), Err(AnalysisError::TooCostly { steps: 10 }));
        assert_eq!(effort.spend(1), Err(AnalysisError::TooCostly { steps: 10 }));
    }
}
