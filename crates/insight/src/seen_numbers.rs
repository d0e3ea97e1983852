//! Which of a task's instances a record has come of.
//!
//! Instances of a task with a period come in the order of their numbers, so one below the greatest seen is over. Others need not: of two threads that
//! post, the one that is later by the clock may get the earlier number; and of what comes from outside too early, some waits while later ones are
//! dropped. So their gaps are remembered.

use std::collections::VecDeque;
use std::ops::Range;
use talea_record::TaskEntry;

/// The numbers of one task's instances that have been seen.
#[derive(Debug)]
pub(crate) struct SeenNumbers {
    /// One more than the greatest number seen.
    next: u64,
    /// Of what has no period; apart, so that what is looked at for every record of a task is small.
    gaps: Option<Box<Gaps>>,
}

/// The numbers below the next one that have not been seen, in ascending order.
#[derive(Debug, PartialEq, Eq)]
struct Gaps(VecDeque<Range<u64>>);

/// As many gaps are remembered: more than threads post at a time, and more than wait for a guard while later ones are dropped. Older ones can only be
/// numbers whose records were lost.
const GAPS: usize = 1 << 16;

impl SeenNumbers {
    pub fn of(task: &TaskEntry) -> Self {
        let is_in_order = task.released_by.is_period() && !task.activity.is_posted();
        if is_in_order { SeenNumbers::in_order() } else { SeenNumbers::in_any_order() }
    }

    fn in_order() -> Self {
        SeenNumbers { next: 0, gaps: None }
    }

    fn in_any_order() -> Self {
        SeenNumbers::in_any_order_from(0)
    }

    /// Of numbers from `next` on; what is below is not asked about.
    pub fn in_any_order_from(next: u64) -> Self {
        SeenNumbers { next, gaps: Some(Box::new(Gaps(VecDeque::new()))) }
    }

    /// One more than the greatest number seen.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The numbers below the greatest seen that have not been seen, in ascending order.
    pub fn gaps(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.gaps.iter().flat_map(|gaps| gaps.0.iter().cloned())
    }

    /// Whether the numbers may come in any order.
    #[inline]
    pub fn is_unordered(&self) -> bool {
        self.gaps.is_some()
    }

    /// Whether this number has not been seen, and could still come.
    #[inline]
    pub fn is_new(&self, number: u64) -> bool {
        number >= self.next || self.has_gaps() && self.gap_of(number).is_some()
    }

    #[inline]
    fn has_gaps(&self) -> bool {
        self.gaps.as_ref().is_some_and(|gaps| !gaps.0.is_empty())
    }

    /// A record of this number came.
    #[inline]
    pub fn note(&mut self, number: u64) {
        if number == self.next || !self.is_unordered() {
            self.next = number + 1;
        } else {
            self.note_unordered(number);
        }
    }

    #[cold]
    fn gap_of(&self, number: u64) -> Option<usize> {
        let Gaps(gaps) = self.gaps.as_deref()?;
        let place = gaps.partition_point(|gap| gap.end <= number);
        gaps.get(place).filter(|gap| gap.contains(&number)).map(|_| place)
    }

    #[cold]
    fn note_unordered(&mut self, number: u64) {
        let place = self.gap_of(number);
        let Some(Gaps(gaps)) = self.gaps.as_deref_mut() else { return };
        if let Some(place) = place {
            let (before, after) = (gaps[place].start..number, number + 1..gaps[place].end);
            match (before.is_empty(), after.is_empty()) {
                (true, true) => _ = gaps.remove(place),
                (true, false) => gaps[place] = after,
                (false, true) => gaps[place] = before,
                (false, false) => {
                    gaps[place] = before;
                    gaps.insert(place + 1, after);
                }
            }
        } else if number >= self.next {
            if number > self.next {
                gaps.push_back(self.next..number);
            }
            self.next = number + 1;
        }
        if gaps.len() > GAPS {
            gaps.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_what_has_no_period_are_new_once_in_any_order() {
        let mut seen = SeenNumbers::in_any_order();
        for number in [3, 1, 0, 7, 5, 2, 6, 4] {
            assert!(seen.is_new(number), "{number}");
            seen.note(number);
            assert!(!seen.is_new(number), "{number}");
        }
        assert!((0..8).all(|number| !seen.is_new(number)) && seen.is_new(8));
        assert_eq!(seen.gaps.as_deref(), Some(&Gaps(VecDeque::new())));
    }

    #[test]
    fn the_oldest_gaps_are_forgotten() {
        let mut seen = SeenNumbers::in_any_order();
        let last = GAPS as u64 + 100;
        (0..last).for_each(|number| seen.note(2 * number + 1));
        assert!(!seen.is_new(0) && seen.is_new(200) && seen.is_new(2 * (last - 1)));
        assert_eq!(seen.gaps.as_ref().map(|gaps| gaps.0.len()), Some(GAPS));
    }

    /// Of what comes too early some waits, and more is dropped, before the first of those that waited is released.
    #[test]
    fn whatever_waits_while_later_ones_are_dropped_is_new() {
        let mut seen = SeenNumbers::in_any_order();
        let waits = |number: u64| number < 1_000 || number.is_multiple_of(7);
        (0..5_000).filter(|number| !waits(*number)).for_each(|number| seen.note(number));
        assert!((0..5_000).all(|number| seen.is_new(number) == waits(number)));
    }

    #[test]
    fn a_task_with_a_period_is_never_behind() {
        let mut seen = SeenNumbers::in_order();
        seen.note(5);
        assert!(!seen.is_new(4) && !seen.is_new(5) && seen.is_new(6));
    }
}
