//! Joins: which completion of a predecessor lets a subtask go on.
//!
//! A subtask waits for all of its predecessors, for the first, or for some number of them; each completion is a signal to it. What is known
//! of one instance is one word, which threads exchange atomically and the simulator changes in place. A word stands for a place in a window
//! of instances and holds the number of the instance that it counts for, so nothing has to be reset: the first signal to an instance takes
//! the word over from an older one, finished or abandoned.
//!
//! ```text
//!  (any older instance) ──signal──► 1 of k ──signal──► … ──signal: Complete──► k of k ──signal: Late──► k+1 of k …
//!                                     │
//!                                     └─ lose: so many predecessors will never be done that k cannot be reached
//! ```

/// Predecessors of one operation: fewer than operations in a system.
const COUNT_BITS: u32 = 19;
const COUNT: u64 = (1 << COUNT_BITS) - 1;
/// The instance will never have the signals that it needs.
const LOST: u64 = 1 << COUNT_BITS;
const INSTANCE_SHIFT: u32 = COUNT_BITS + 1;

/// What a signal means for the instance that it is sent to.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It was the last that was needed: the subtask goes on.
    Complete,
    /// More are needed.
    Incomplete,
    /// The subtask has gone on without it.
    Late,
    /// A newer instance has taken the word: the branches are further apart than the window.
    Overtaken,
}

/// The signals to one instance of a subtask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinWord(u64);

impl JoinWord {
    /// Of no instance yet.
    pub const EMPTY: JoinWord = JoinWord(0);

    /// As it is kept in an atomic.
    pub const fn from_bits(bits: u64) -> Self {
        JoinWord(bits)
    }

    /// To be kept in an atomic.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The instance that it counts for.
    pub const fn instance(self) -> u64 {
        self.0 >> INSTANCE_SHIFT
    }

    /// Whether the instance is known never to have the signals that it needs.
    pub const fn is_lost(self) -> bool {
        self.0 & LOST != 0
    }

    const fn count(self) -> u64 {
        self.0 & COUNT
    }

    /// A signal comes to `instance`, which needs `needed` of them, at least one. The word is as it is after that.
    #[inline]
    pub const fn signal(self, instance: u64, needed: u32) -> (Heard, JoinWord) {
        if self.instance() > instance {
            return (Heard::Overtaken, self);
        }
        let before = if self.instance() == instance { self.0 } else { instance << INSTANCE_SHIFT };
        let after = JoinWord(before + 1);
        let heard = match after.count() {
            count if count < needed as u64 => Heard::Incomplete,
            count if count == needed as u64 => Heard::Complete,
            _ => Heard::Late,
        };
        (heard, after)
    }

    /// The word after it is known that `instance` will never have the signals that it needs.
    pub const fn lose(self, instance: u64) -> JoinWord {
        match self.instance() {
            holder if holder > instance => self,
            holder if holder == instance => JoinWord(self.0 | LOST),
            _ => JoinWord(instance << INSTANCE_SHIFT | LOST),
        }
    }

    /// Whether another instance may take the word without anything being forgotten, as all signals that ever come (`to_come` of them) have come.
    /// An instance that is lost is remembered until then, so that nobody who hears of another loss later takes it for news.
    pub const fn is_settled(self, to_come: u32) -> bool {
        self.count() >= to_come as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signals(word: &mut JoinWord, instance: u64, needed: u32, count: usize) -> Vec<Heard> {
        let one = |_| {
            let (heard, after) = word.signal(instance, needed);
            *word = after;
            heard
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn the_last_that_is_needed_completes_and_the_rest_are_late() {
        use Heard::{Complete, Incomplete, Late};
        let all = signals(&mut { JoinWord::EMPTY }, 0, 3, 3);
        assert_eq!(all, [Incomplete, Incomplete, Complete]);
        assert_eq!(signals(&mut { JoinWord::EMPTY }, 5, 1, 3), [Complete, Late, Late]);
        assert_eq!(signals(&mut { JoinWord::EMPTY }, 5, 2, 3), [Incomplete, Complete, Late]);
    }

    #[test]
    fn how_many_are_needed_may_differ_from_instance_to_instance() {
        let mut word = JoinWord::EMPTY;
        assert_eq!(signals(&mut word, 0, 2, 2), [Heard::Incomplete, Heard::Complete]);
        assert_eq!(signals(&mut word, 4, 1, 1), [Heard::Complete]);
        assert_eq!(signals(&mut word, 8, 3, 3), [Heard::Incomplete, Heard::Incomplete, Heard::Complete]);
    }

    #[test]
    fn an_abandoned_instance_is_overtaken_and_a_straggler_is_told() {
        let mut word = JoinWord::EMPTY;
        assert_eq!(signals(&mut word, 0, 2, 1), [Heard::Incomplete]);
        assert!(!word.is_settled(2));
        assert_eq!(signals(&mut word, 2, 2, 1), [Heard::Incomplete]);
        assert_eq!(signals(&mut word, 0, 2, 1), [Heard::Overtaken]);
        assert_eq!(signals(&mut word, 2, 2, 1), [Heard::Complete]);
        assert!(word.is_settled(2));
    }

    #[test]
    fn what_is_lost_never_completes_and_is_settled_by_the_last_signal() {
        let mut word = JoinWord::EMPTY.lose(3);
        assert!(word.is_lost() && !word.is_settled(1), "one of two is still to come");
        assert_eq!((signals(&mut word, 3, 2, 1), word.is_settled(1)), (vec![Heard::Incomplete], true));
        assert!(word.is_lost());
        assert_eq!(word.lose(2), word, "a newer instance has it");
        assert_eq!(signals(&mut word, 4, 2, 2), [Heard::Incomplete, Heard::Complete]);
    }

    #[test]
    fn the_widest_join_and_the_last_instance_fit() {
        let last = (1 << 44) - 1;
        let word = JoinWord::from_bits(last << INSTANCE_SHIFT | (COUNT - 1));
        let (heard, after) = word.signal(last, COUNT as u32);
        assert_eq!(
            (heard, after.instance(), JoinWord::from_bits(after.to_bits())),
            (Heard::Complete, last, after)
        );
    }
}
