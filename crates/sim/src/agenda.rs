//! Which nodes a step concerns, so that it costs what they cost and not what all nodes do.
//!
//! The next instants of all nodes stand in a tournament: each inner place has the earlier of the two below it. The first place tells when
//! something happens next, a change reaches as far up as it makes a difference, and the nodes that are due are found from above in the order
//! of their indices. A step visits them in this order twice: those with a completion, and then, to decide, those and all that it concerns.

use talea_time::Instant;

/// When each node wants to be visited next.
pub(crate) struct Agenda {
    /// The first place is 1, below place `p` are `2p` and `2p + 1`, and node `n` has place `first_node + n`.
    earliest: Vec<Instant>,
    first_node: usize,
}

impl Agenda {
    /// The agenda of nodes that want to be visited at these instants.
    pub fn new(next: impl ExactSizeIterator<Item = Instant>) -> Self {
        let first_node = next.len().next_power_of_two();
        let mut earliest = vec![Instant::MAX; 2 * first_node];
        earliest[first_node..].iter_mut().zip(next).for_each(|(place, next)| *place = next);
        for place in (1..first_node).rev() {
            earliest[place] = earliest[2 * place].min(earliest[2 * place + 1]);
        }
        Agenda { earliest, first_node }
    }

    /// The next instant at which some node wants to be visited.
    #[inline]
    pub fn next(&self) -> Instant {
        self.earliest[1]
    }

    /// The node wants to be visited at `next`, and not before.
    #[inline]
    pub fn set(&mut self, node: usize, next: Instant) {
        let mut place = self.first_node + node;
        self.earliest[place] = next;
        while place > 1 {
            let winner = self.earliest[place].min(self.earliest[place ^ 1]);
            place /= 2;
            if self.earliest[place] == winner {
                break;
            }
            self.earliest[place] = winner;
        }
    }

    /// The step at `now` concerns the node, which is visited before the step is over.
    #[inline]
    pub fn concern(&mut self, node: usize, now: Instant) {
        if self.earliest[self.first_node + node] > now {
            self.set(node, now);
        }
    }

    /// The first node that wants to be visited by `now`.
    #[inline]
    pub fn first_due(&self, now: Instant) -> Option<usize> {
        (self.earliest[1] <= now).then(|| self.first_below(1, now))
    }

    /// The first node after this one that wants to be visited by `now`.
    #[inline]
    pub fn due_after(&self, node: usize, now: Instant) -> Option<usize> {
        let mut place = self.first_node + node;
        loop {
            // Up to the first place that has one on its right with the same place above; none has after the last.
            place >>= place.trailing_ones();
            if place == 0 {
                return None;
            }
            place += 1;
            if self.earliest[place] <= now {
                return Some(self.first_below(place, now));
            }
        }
    }

    /// The first node below the place, below which there is one that is due.
    #[inline]
    fn first_below(&self, mut place: usize, now: Instant) -> usize {
        while place < self.first_node {
            place *= 2;
            place += usize::from(self.earliest[place] > now);
        }
        place - self.first_node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plain list of instants does the same.
    #[test]
    fn a_tournament_finds_what_a_list_does() {
        let mut state = 1_u64;
        let mut draw = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for nodes in (1..=20).chain([31, 32, 33, 100]) {
            let mut list: Vec<Instant> = (0..nodes).map(|_| Instant::from_nanos(draw(10) as i64)).collect();
            let mut agenda = Agenda::new(list.iter().copied());
            for _ in 0..500 {
                assert_eq!(Some(agenda.next()), list.iter().copied().min());
                let now = Instant::from_nanos(draw(12) as i64);
                let due: Vec<usize> = (0..nodes).filter(|node| list[*node] <= now).collect();
                let first = agenda.first_due(now);
                let found = std::iter::successors(first, |node| agenda.due_after(*node, now));
                assert_eq!(found.collect::<Vec<_>>(), due, "in the order of indices");

                let node = draw(nodes as u64) as usize;
                if draw(2) == 0 {
                    list[node] = list[node].min(now);
                    agenda.concern(node, now);
                } else {
                    let next = draw(15);
                    list[node] = if next > 12 { Instant::MAX } else { Instant::from_nanos(next as i64) };
                    agenda.set(node, list[node]);
                }
            }
        }
    }
}
