//! Overruns: an instance arrives on a node while a first subtask of the one before is unfinished there.
//!
//! Each node decides about its own first subtasks of a task, and none waits for another to do so.

use talea_model::Overrun;

/// The instance before the one that arrives, on the node that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// No first subtask of it is unfinished.
    Done,
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
    /// What is unfinished of the instance before is aborted; then its first subtasks are released.
    AbortPrevious,
}

/// What `overrun` says about an arrival.
#[inline]
pub fn decide(overrun: Overrun, previous: Previous) -> OnArrival {
    match (overrun, previous) {
        (Overrun::SkipNext, Previous::Unfinished) => OnArrival::Skip,
        (Overrun::Abort, Previous::Unfinished) => OnArrival::AbortPrevious,
        (Overrun::Queue, _) | (_, Previous::Done) => OnArrival::Release,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unfinished_work_makes_an_overrun() {
        for overrun in [Overrun::Queue, Overrun::SkipNext, Overrun::Abort] {
            assert_eq!(decide(overrun, Previous::Done), OnArrival::Release);
        }
        let unfinished = |overrun| decide(overrun, Previous::Unfinished);
        assert_eq!(unfinished(Overrun::Queue), OnArrival::Release);
        assert_eq!(unfinished(Overrun::SkipNext), OnArrival::Skip);
        assert_eq!(unfinished(Overrun::Abort), OnArrival::AbortPrevious);
    }
}
