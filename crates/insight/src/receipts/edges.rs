//! What every edge receives, held against what it was promised.

use crate::hierarchy::EdgeState;
use std::collections::VecDeque;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{LongRun, Monitor, Standing, Violation};
use talea_policy::arrangement::{Breach, Receipts};
use talea_time::{Duration, Instant};

/// Times of withholding of an edge that are remembered to say whether a window held any; of more, those that lie closest count as one.
const REMEMBERED: usize = 32;

/// The edges of a hierarchy by number, and the processors that are withheld.
///
/// Of who is granted a processor that is withheld its monitor hears that it is ready.
#[derive(Debug)]
pub struct EdgeReceipts {
    /// What is short by no more is no violation.
    tolerance: Duration,
    edges: Vec<Edge>,
    /// Processors that are withheld now, by the numbers that states have.
    withheld: Vec<u16>,
    /// Promises that were broken in windows in which something was withheld, not taken yet.
    broken: Vec<(usize, Violation)>,
    /// Up to when every edge has been judged last.
    reached: Option<Instant>,
}

#[derive(Debug)]
struct Edge {
    /// None where nothing is known to be promised.
    monitor: Option<Monitor>,
    state: EdgeState,
    /// What the monitor heard last.
    standing: Standing,
    /// Since when what was granted has been withheld.
    since: Option<Instant>,
    withheld: Duration,
    /// The times for which it was, from when to when, in their order: those that windows may hold which are still to be judged.
    times: VecDeque<(Instant, Instant)>,
}

impl Edge {
    /// Nothing is withheld any more.
    fn give(&mut self, at: Instant) {
        let Some(from) = self.since.take().filter(|from| *from < at) else { return };
        self.withheld += at - from;
        let earliest = self.monitor.as_ref().map_or(at, Monitor::earliest);
        while self.times.pop_front_if(|(_, to)| *to <= earliest).is_some() {}
        if self.times.len() == REMEMBERED {
            let apart = |place: &usize| self.times[place + 1].0 - self.times[*place].1;
            let closest = (0..REMEMBERED - 1).min_by_key(apart).expect("there are several");
            let (_, to) = self.times.remove(closest + 1).expect("it is there");
            self.times[closest].1 = to;
        }
        self.times.push_back((from, at));
    }
}

impl EdgeReceipts {
    /// Nobody has been promised anything. What will be short by no more than `tolerance` is no violation.
    pub fn new(tolerance: Duration) -> Self {
        EdgeReceipts { tolerance, edges: Vec::new(), withheld: Vec::new(), broken: Vec::new(), reached: None }
    }

    /// What is promised at an edge of which nothing has been heard, and how far behind that may be in the long run.
    pub fn promise(&mut self, edge: usize, guarantee: &Guarantee, stated: Option<LongRun>) {
        let monitor = Monitor::with_bound(guarantee, stated, self.tolerance, Instant::ZERO);
        self.at(edge).monitor = Some(monitor);
    }

    /// Whether the promise to the edge can be judged.
    pub fn judges(&self, edge: usize) -> bool {
        self.edges.get(edge).and_then(|edge| edge.monitor.as_ref()).is_some_and(Monitor::judges)
    }

    fn at(&mut self, edge: usize) -> &mut Edge {
        while self.edges.len() <= edge {
            self.edges.push(Edge {
                monitor: None,
                state: EdgeState::Waiting,
                standing: Standing::Waiting,
                since: None,
                withheld: Duration::ZERO,
                times: VecDeque::with_capacity(REMEMBERED),
            });
        }
        &mut self.edges[edge]
    }

    /// Who is below the edge has been brought into this state by decision.
    pub fn decided(&mut self, edge: usize, state: EdgeState, at: Instant) {
        self.at(edge).state = state;
        self.weigh(edge, at);
    }

    /// The edge is none any more.
    pub fn removed(&mut self, number: usize, at: Instant) {
        self.at(number).give(at);
        self.note(number, at);
        let edge = &mut self.edges[number];
        (edge.state, edge.standing) = (EdgeState::Waiting, Standing::Waiting);
        edge.monitor.iter_mut().for_each(|monitor| monitor.let_go(at, &mut |_| {}));
    }

    /// Whether the processor is withheld, from the instant on to which the edges are [weighed](Self::weigh_all) next.
    pub fn set_withheld(&mut self, processor: u16, is_withheld: bool) {
        self.withheld.retain(|other| *other != processor);
        self.withheld.extend(is_withheld.then_some(processor));
    }

    /// Takes into account what processors have been [withheld](Self::set_withheld) and given.
    pub fn weigh_all(&mut self, at: Instant) {
        (0..self.edges.len()).for_each(|edge| self.weigh(edge, at));
    }

    fn weigh(&mut self, number: usize, at: Instant) {
        let edge = &mut self.edges[number];
        let is_withheld = matches!(edge.state, EdgeState::Running(cpu) if self.withheld.contains(&cpu));
        match is_withheld {
            true => _ = edge.since.get_or_insert(at),
            false => edge.give(at),
        }
        let standing = match edge.state {
            EdgeState::Running(_) if !is_withheld => Standing::Running,
            EdgeState::Running(_) | EdgeState::Ready => Standing::Ready,
            EdgeState::Waiting | EdgeState::Unknown => Standing::Waiting,
        };
        if standing != std::mem::replace(&mut edge.standing, standing) {
            self.note(number, at);
        }
    }

    /// Judges the edge up to `at`, from where on it stands as it does now. What was not granted either is the hierarchy's to tell.
    fn note(&mut self, number: usize, at: Instant) {
        let Edge { monitor, times, since, standing, .. } = &mut self.edges[number];
        let Some(monitor) = monitor else { return };
        let open = since.map(|since| (since, at));
        monitor.note(at, *standing, &mut |violation| {
            let within = |(from, to): &(Instant, Instant)| *from < violation.to && *to > violation.from;
            if times.iter().chain(&open).any(within) {
                self.broken.push((number, violation));
            }
        });
    }

    /// Judges every edge up to `now`, and counts what has been withheld until then.
    pub fn reach(&mut self, now: Instant) {
        // Whoever asks again at once begins no new windows.
        if self.reached.replace(now) == Some(now) {
            return;
        }
        for number in 0..self.edges.len() {
            let edge = &mut self.edges[number];
            if edge.since.is_some() {
                edge.give(now);
                edge.since = Some(now);
            }
            self.note(number, now);
        }
    }

    /// Promises found broken since the last call, in windows in which something was withheld, by edge.
    pub fn broken(&mut self) -> impl Iterator<Item = (usize, Violation)> {
        self.broken.drain(..)
    }

    /// What became of the edge's promise by what was received.
    pub fn of(&self, edge: usize) -> Receipts {
        let edge = self.edges.get(edge);
        let monitor = edge.and_then(|edge| edge.monitor.as_ref());
        let tally = monitor.map(Monitor::tally).copied().unwrap_or_default();
        Receipts {
            withheld_ns: edge.map_or(0, |edge| edge.withheld.as_nanos()),
            judged: monitor.filter(|monitor| monitor.judges()).map(|_| tally.judged),
            violations: tally.violations,
            worst: tally.worst.map(Breach::from),
            known_until_ns: None,
        }
    }
}
