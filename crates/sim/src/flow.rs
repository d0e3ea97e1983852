//! Precedence: which completions release a subtask with several predecessors, by the rules of [`join`](talea_policy::release::join).

use std::collections::HashMap;
use talea_model::{Operation, OperationId, Synchronisation, System};
use talea_policy::release::guard::NO_TIMER;
use talea_policy::release::join::{Heard, JoinWord};
use talea_time::Instant;

/// Instances for which a join has room before it takes more.
const WINDOW: usize = 4;

/// The signals to the instances of one subtask that are under way.
struct Join {
    /// How many are needed.
    needed: u32,
    predecessors: u32,
    /// Instance `k` has the place `k mod len`; the length is a power of two.
    words: Vec<JoinWord>,
    /// How many signals to an instance will never come.
    lost: HashMap<u64, u32>,
    /// Beside each word, under modified phase modification: when the timers of the predecessors that are done have all expired.
    timers: Option<Vec<Instant>>,
}

impl Join {
    fn new(needed: usize, predecessors: usize, sync: Synchronisation) -> Self {
        let with_timers = sync == Synchronisation::ModifiedPhaseModification;
        Join {
            needed: needed as u32,
            predecessors: predecessors as u32,
            words: vec![JoinWord::EMPTY; WINDOW],
            lost: HashMap::with_capacity(WINDOW),
            timers: with_timers.then(|| vec![NO_TIMER; WINDOW]),
        }
    }

    /// The place of the word for `instance`. Nothing is forgotten that still waits: room is made for as many instances as lie in between.
    fn place(&mut self, instance: u64) -> usize {
        loop {
            let place = instance as usize & (self.words.len() - 1);
            let word = self.words[place];
            if word == JoinWord::EMPTY || word.instance() == instance {
                return place;
            }
            let lost = if self.lost.is_empty() { None } else { self.lost.get(&word.instance()).copied() };
            if word.is_settled(self.predecessors - lost.unwrap_or(0)) {
                if lost.is_some() {
                    self.lost.remove(&word.instance());
                }
                // Jobs of an operation may pass each other, so an earlier instance may come later.
                self.words[place] = JoinWord::EMPTY;
                if let Some(timers) = &mut self.timers {
                    timers[place] = NO_TIMER;
                }
                return place;
            }
            self.grow();
        }
    }

    fn grow(&mut self) {
        let length = 2 * self.words.len();
        let mut words = vec![JoinWord::EMPTY; length];
        let mut timers = self.timers.as_ref().map(|_| vec![NO_TIMER; length]);
        for (old, word) in self.words.iter().enumerate().filter(|(_, word)| **word != JoinWord::EMPTY) {
            let new = word.instance() as usize & (length - 1);
            words[new] = *word;
            if let (Some(to), Some(from)) = (&mut timers, &self.timers) {
                to[new] = from[old];
            }
        }
        (self.words, self.timers) = (words, timers);
    }

    /// A predecessor is done whose timer expires at `timer`. Says what that means, and when all timers have expired.
    fn signal(&mut self, instance: u64, timer: Instant) -> (Heard, Instant) {
        let place = self.place(instance);
        let (heard, after) = self.words[place].signal(instance, self.needed);
        self.words[place] = after;
        let timer = self.timers.as_mut().map_or(timer, |timers| {
            timers[place] = timers[place].max(timer);
            timers[place]
        });
        (heard, timer)
    }

    /// So many more signals to `instance` will never come. Returns whether too few are left since then.
    fn lose(&mut self, instance: u64, lost: u32) -> bool {
        let all = self.lost.entry(instance).or_default();
        *all += lost;
        if self.predecessors - *all >= self.needed {
            return false;
        }
        let place = self.place(instance);
        let is_new = !self.words[place].is_lost();
        self.words[place] = self.words[place].lose(instance);
        is_new
    }
}

/// The joins of a system.
pub(crate) struct Joins {
    /// By operation index; `None` for operations with at most one predecessor.
    joins: Vec<Option<Join>>,
}

impl Joins {
    pub fn new(system: &System) -> Self {
        let join = |operation: &Operation| {
            let predecessors = operation.predecessors.len();
            let needed = system.subtask(operation.id).join.needed(predecessors);
            (predecessors > 1).then(|| Join::new(needed, predecessors, system.tasks[operation.task].sync))
        };
        Joins { joins: system.operations().iter().map(join).collect() }
    }

    /// A predecessor of `operation` is done in `instance`, whose timer expires at `timer`. Says what that means, and when the timers of all
    /// that are done have expired.
    #[inline]
    pub fn signal(&mut self, operation: OperationId, instance: u64, timer: Instant) -> (Heard, Instant) {
        match &mut self.joins[operation.index()] {
            Some(join) => join.signal(instance, timer),
            None => (Heard::Complete, timer),
        }
    }

    /// Of so many more predecessors of `operation` no signal will ever come in `instance`. Returns whether it will not be released, either, for
    /// this reason and for none before.
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

    fn join_of(needed: usize, predecessors: usize) -> Join {
        Join::new(needed, predecessors, Synchronisation::Greedy)
    }

    fn signal(join: &mut Join, instance: u64) -> Heard {
        join.signal(instance, NO_TIMER).0
    }

    #[test]
    fn branches_may_be_any_number_of_instances_apart_and_jobs_may_pass_each_other() {
        let mut join = join_of(2, 2);
        assert!((0..1000).rev().all(|instance| signal(&mut join, instance) == Heard::Incomplete));
        assert!((0..1000).all(|instance| signal(&mut join, instance) == Heard::Complete));
        assert_eq!(join.words.len(), 1024);
    }

    #[test]
    fn late_signals_release_nothing_twice() {
        let mut join = join_of(1, 2);
        assert!((0..100).rev().all(|instance| signal(&mut join, instance) == Heard::Complete));
        assert!((0..100).all(|instance| signal(&mut join, instance) == Heard::Late));
    }

    #[test]
    fn what_is_lost_makes_room() {
        let mut join = join_of(2, 2);
        for instance in 0..1000 {
            assert_eq!(signal(&mut join, instance), Heard::Incomplete);
            assert!(join.lose(instance, 1));
        }
        assert_eq!(join.words.len(), WINDOW);
        let mut join = join_of(2, 3);
        for instance in 0..1000 {
            assert_eq!(signal(&mut join, instance), Heard::Incomplete);
            assert!(!join.lose(instance, 1));
            assert_eq!(signal(&mut join, instance), Heard::Complete);
        }
        assert_eq!((join.words.len(), join.lost.len()), (WINDOW, WINDOW));
    }

    #[test]
    fn the_last_timer_counts() {
        let mut join = Join::new(2, 2, Synchronisation::ModifiedPhaseModification);
        let at = Instant::from_nanos;
        for instance in 0..100 {
            assert_eq!(join.signal(instance, at(30)), (Heard::Incomplete, at(30)));
        }
        for instance in 0..100 {
            assert_eq!(join.signal(instance, at(20)), (Heard::Complete, at(30)));
        }
        assert_eq!(join.signal(128, at(7)), (Heard::Incomplete, at(7)), "nothing is left of the one before");
    }

    #[test]
    fn an_instance_is_lost_once_and_known_until_the_last_signal() {
        let mut join = Join::new(2, 3, Synchronisation::Greedy);
        let heard = |join: &mut Join, instance| join.signal(instance, NO_TIMER).0;
        assert!(!join.lose(0, 1) && join.lose(0, 1), "one of three is not enough");
        for instance in (1..100).flat_map(|instance| [instance; 3]) {
            assert_ne!(heard(&mut join, instance), Heard::Overtaken);
        }
        assert_ne!(heard(&mut join, 0), Heard::Complete, "however late");
        assert!(join.words.len() > WINDOW, "it has kept its word");
        let length = join.words.len();
        for instance in (100..100_000).flat_map(|instance| [instance; 3]) {
            assert_ne!(heard(&mut join, instance), Heard::Overtaken);
        }
        assert!(join.words.len() <= length && join.lost.len() <= 1, "now it is settled");
    }
}
