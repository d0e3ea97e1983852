//! Precedence: which completions release a subtask with several predecessors, by the rules of [`join`](talea_policy::release::join).

use std::collections::HashMap;
use talea_model::{OperationId, System};
use talea_policy::release::join::{Heard, JoinWord};

/// Instances for which a join has room before it takes more.
const WINDOW: usize = 4;

/// The signals to the instances of one subtask that are under way.
struct Join {
    /// How many are needed.
    needed: u32,
    predecessors: u32,
    /// Instance `k` has the place `k mod len`; the length is a power of two.
    words: Vec<JoinWord>,
    /// How many predecessors of an instance will never be done, where the others may be enough.
    lost: HashMap<u64, u32>,
}

impl Join {
    fn new(needed: u32, predecessors: u32) -> Self {
        Join { needed, predecessors, words: vec![JoinWord::EMPTY; WINDOW], lost: HashMap::new() }
    }

    /// The word for `instance`. Nothing is forgotten that still waits: room is made for as many instances as lie in between.
    fn word(&mut self, instance: u64) -> &mut JoinWord {
        loop {
            let place = instance as usize & (self.words.len() - 1);
            let holder = self.words[place].instance();
            if holder == instance || self.words[place] == JoinWord::EMPTY {
                return &mut self.words[place];
            }
            let lost = if self.lost.is_empty() { None } else { self.lost.get(&holder) };
            if self.words[place].is_settled(self.predecessors - lost.copied().unwrap_or(0)) {
                if lost.is_some() {
                    self.lost.remove(&holder);
                }
                // Jobs of an operation may pass each other, so an earlier instance may come later.
                self.words[place] = JoinWord::EMPTY;
                return &mut self.words[place];
            }
            self.grow();
        }
    }

    fn signal(&mut self, instance: u64) -> Heard {
        let needed = self.needed;
        let word = self.word(instance);
        let (heard, after) = word.signal(instance, needed);
        *word = after;
        heard
    }

    /// So many predecessors will never be done in `instance`. Returns whether too few are left.
    fn lose(&mut self, instance: u64, lost: u32) -> bool {
        let is_lost = self.predecessors - lost < self.needed;
        if is_lost {
            let word = self.word(instance);
            *word = word.lose(instance);
        } else {
            self.lost.insert(instance, lost);
        }
        is_lost
    }

    fn grow(&mut self) {
        let length = 2 * self.words.len();
        let mut words = vec![JoinWord::EMPTY; length];
        for word in self.words.drain(..).filter(|word| *word != JoinWord::EMPTY) {
            words[word.instance() as usize & (length - 1)] = word;
        }
        self.words = words;
    }
}

/// The joins of a system.
pub(crate) struct Joins {
    /// By operation index; `None` for operations with at most one predecessor.
    joins: Vec<Option<Join>>,
}

impl Joins {
    pub fn new(system: &System) -> Self {
        let join = |predecessors: usize| {
            (predecessors > 1).then(|| Join::new(predecessors as u32, predecessors as u32))
        };
        Joins {
            joins: system.operations().iter().map(|operation| join(operation.predecessors.len())).collect(),
        }
    }

    /// A predecessor of `operation` is done in `instance`.
    #[inline]
    pub fn signal(&mut self, operation: OperationId, instance: u64) -> Heard {
        match &mut self.joins[operation.index()] {
            Some(join) => join.signal(instance),
            None => Heard::Complete,
        }
    }

    /// So many predecessors of `operation` will never be done in `instance`. Returns whether it will not be released, either.
    pub fn lose(&mut self, operation: OperationId, instance: u64, lost: usize) -> bool {
        match &mut self.joins[operation.index()] {
            Some(join) => join.lose(instance, lost as u32),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_may_be_any_number_of_instances_apart_and_jobs_may_pass_each_other() {
        let mut join = Join::new(2, 2);
        assert!((0..1000).rev().all(|instance| join.signal(instance) == Heard::Incomplete));
        assert!((0..1000).all(|instance| join.signal(instance) == Heard::Complete));
        assert_eq!(join.words.len(), 1024);
    }

    #[test]
    fn late_signals_release_nothing_twice() {
        let mut join = Join::new(1, 2);
        assert!((0..100).rev().all(|instance| join.signal(instance) == Heard::Complete));
        assert!((0..100).all(|instance| join.signal(instance) == Heard::Late));
    }

    #[test]
    fn what_is_lost_makes_room() {
        let mut join = Join::new(2, 2);
        for instance in 0..1000 {
            assert_eq!(join.signal(instance), Heard::Incomplete);
            assert!(join.lose(instance, 1));
        }
        assert_eq!(join.words.len(), WINDOW);
        let mut join = Join::new(2, 3);
        for instance in 0..1000 {
            assert_eq!(join.signal(instance), Heard::Incomplete);
            assert!(!join.lose(instance, 1));
            assert_eq!(join.signal(instance), Heard::Complete);
        }
        assert_eq!((join.words.len(), join.lost.len()), (WINDOW, WINDOW));
    }
}
