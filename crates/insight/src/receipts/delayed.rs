//! What edges hear when it has become certain that nothing before it is missing.

use super::edges::EdgeReceipts;
use crate::hierarchy::EdgeState;
use std::collections::VecDeque;
use talea_time::{Duration, Instant};

/// What edges hear.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    /// Who is below the edge comes into this state.
    Decided(usize, EdgeState),
    /// The edge is none any more.
    Removed(usize),
    /// The processor is withheld.
    Withheld(u16),
    /// It is withheld no more.
    Given(u16),
}

/// Edges, and what they have yet to hear.
#[derive(Debug)]
pub(crate) struct Delayed {
    pub edges: EdgeReceipts,
    /// In the order of time; of one instant, in the order in which it was told.
    due: VecDeque<(Instant, Due)>,
    /// The last instant of which the edges have heard.
    pub reached: Instant,
}

impl Delayed {
    pub fn new(edges: EdgeReceipts) -> Self {
        Delayed { edges, due: VecDeque::new(), reached: Instant::ZERO }
    }

    /// They are to hear this of an instant, which is none before that which they have [reached](Self::reached).
    pub fn insert(&mut self, at: Instant, due: Due) {
        let position = self.due.partition_point(|(other, _)| *other <= at);
        self.due.insert(position, (at, due));
    }

    /// They hear of everything before `horizon`.
    pub fn reach(&mut self, horizon: Instant) {
        while let Some((at, due)) = self.due.pop_front_if(|(at, _)| *at < horizon) {
            self.reached = at;
            match due {
                Due::Decided(edge, state) => self.edges.decided(edge, state, at),
                Due::Removed(edge) => self.edges.removed(edge, at),
                Due::Withheld(cpu) => self.set_withheld(cpu, true, at),
                Due::Given(cpu) => self.set_withheld(cpu, false, at),
            }
        }
    }

    fn set_withheld(&mut self, cpu: u16, is_withheld: bool, at: Instant) {
        self.edges.set_withheld(cpu, is_withheld);
        self.edges.weigh_all(at);
    }

    /// They hear of everything up to `at`, and nothing comes after that.
    pub fn close(&mut self, at: Instant) {
        self.reach(at.saturating_add(Duration::from_nanos(1)));
        self.due.clear();
        self.edges.reach(at.max(self.reached));
    }
}
