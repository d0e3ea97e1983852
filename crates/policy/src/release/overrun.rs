//! Overruns: an instance arrives on a node while a first subtask of the one before is unfinished there.
//!
//! Each node decides about its own first subtasks of a task, and none waits for another to do so. Where instances are merged there is one first
//! subtask. What its guard holds waits, too, so that no more than one instance waits at the guard and in the lane together.

use talea_model::Overrun;

/// The instance before the one that arrives, on the node that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// No first subtask of it is unfinished.
    Done,
    /// Its first subtask has not begun.
    Waiting,
    /// At least one is.
    Unfinished,
}

/// What becomes of an arrival.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnArrival {
    /// Its first subtasks are released.
    Release,
    /// It is left out.
    Skip,
    /// It is left out, and the one before, which has not begun, stands for both.
    Merge,
    /// What is unfinished of the instance before is aborted; then its first subtasks are released.
    AbortPrevious,
}

impl OnArrival {
    /// Whether the instance that arrives is not released.
    pub fn leaves_out(self) -> bool {
        matches!(self, OnArrival::Skip | OnArrival::Merge)
    }
}

/// What `overrun` says about an arrival.
#[inline]
pub fn decide(overrun: Overrun, previous: Previous) -> OnArrival {
    match (overrun, previous) {
        (_, Previous::Done) | (Overrun::Queue, _) | (Overrun::Merge, Previous::Unfinished) => {
            OnArrival::Release
        }
        (Overrun::SkipNext, _) => OnArrival::Skip,
        (Overrun::Merge, Previous::Waiting) => OnArrival::Merge,
        (Overrun::Abort, _) => OnArrival::AbortPrevious,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unfinished_work_makes_an_overrun() {
        for overrun in Overrun::ALL {
            assert_eq!(decide(*overrun, Previous::Done), OnArrival::Release);
        }
        for previous in [Previous::Waiting, Previous::Unfinished] {
            assert_eq!(decide(Overrun::Queue, previous), OnArrival::Release);
            assert_eq!(decide(Overrun::SkipNext, previous), OnArrival::Skip);
            assert_eq!(decide(Overrun::Abort, previous), OnArrival::AbortPrevious);
        }
    }

    #[test]
    fn instances_are_merged_only_with_one_that_has_not_begun() {
        assert_eq!(decide(Overrun::Merge, Previous::Waiting), OnArrival::Merge);
        assert_eq!(decide(Overrun::Merge, Previous::Unfinished), OnArrival::Release);
    }
}
