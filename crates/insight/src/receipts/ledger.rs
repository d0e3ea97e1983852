//! Decisions and the kernel's switches in the order of time: what every edge received, and what was withheld of it.

use super::delayed::{Delayed, Due};
use super::edges::EdgeReceipts;
use super::processors::{GrantedBy, Processors, Right, Spell, Turn};
use super::{DISAGREEMENT, MOMENT};
use crate::hierarchy::EdgeState;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{LongRun, Violation};
use talea_policy::arrangement::Receipts;
use talea_record::event::{ChangeKind, Thread, Typed};
use talea_record::{Record, Sink, ThreadRole};
use talea_time::{Duration, Instant, Work};

/// What is withheld on all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// For how long, together.
    pub withheld: Duration,
    /// How often.
    pub spells: u64,
    /// The longest of these times.
    pub longest: Option<Spell>,
}

/// Takes the records of one node and the kernel's switches, all in the order of time, and judges.
///
/// Of a hierarchy it needs the decisions, who its threads are, and the run's end, after which nothing counts. Where the
/// kernel decides, it needs the run's threads, and when release threads were due.
#[derive(Debug)]
pub struct Ledger {
    /// The lanes whose threads have reservations of the kernel's.
    reserved_lanes: Vec<usize>,
    processors: Processors,
    delayed: Delayed,
    /// By edge: what was decided last, which the edges hear of when it is due.
    states: Vec<EdgeState>,
    total: Total,
    /// Times for which a processor was withheld that are over, not taken yet.
    spells: Vec<Spell>,
    now: Instant,
    is_over: bool,
    /// Switches that the kernel did not tell.
    pub lost_switches: u64,
}

impl Ledger {
    /// For a hierarchy on these processors. What is short by no more than `tolerance` is no broken promise.
    pub fn new(cpus: &[u16], tolerance: Duration) -> Self {
        Ledger::granted_by(GrantedBy::Schedulers, cpus, tolerance)
    }

    /// The same where these say who is to have a processor.
    pub(super) fn granted_by(granted_by: GrantedBy, cpus: &[u16], tolerance: Duration) -> Self {
        Ledger {
            reserved_lanes: Vec::new(),
            processors: Processors::new(cpus, granted_by),
            delayed: Delayed::new(EdgeReceipts::new(tolerance)),
            states: Vec::new(),
            total: Total::default(),
            spells: Vec::new(),
            now: Instant::ZERO,
            is_over: false,
            lost_switches: 0,
        }
    }

    /// The same where threads of these lanes have reservations of the kernel's.
    pub(super) fn with_reserved(self, lanes: Vec<usize>) -> Self {
        Ledger { reserved_lanes: lanes, ..self }
    }

    /// What is promised at an edge, before the first record of it, and how far behind that may be in the long run.
    pub fn promise(&mut self, edge: usize, guarantee: &Guarantee, stated: Option<LongRun>) {
        self.delayed.edges.promise(edge, guarantee, stated);
    }

    /// Threads of programs are other than those of the run that serve lanes and release jobs.
    fn meet(&mut self, thread: Thread) {
        let is_lanes = thread.lane.is_some();
        if is_lanes || matches!(thread.role.known(), Some(ThreadRole::Release | ThreadRole::Receiver)) {
            let is_reserved = |lane: u16| self.reserved_lanes.contains(&usize::from(lane));
            let right = match thread.lane.is_some_and(is_reserved) {
                true => Right::WhileReserved,
                false => Right::Whenever,
            };
            self.processors.meet(thread.tid, right);
        }
    }

    fn decided(&mut self, edge: usize, state: EdgeState) {
        if self.states.len() <= edge {
            self.states.resize(edge + 1, EdgeState::Unknown);
        }
        self.states[edge] = state;
        self.processors.decided(edge, state);
    }

    /// Time never runs backwards, though several threads decided at almost one instant.
    fn advance(&mut self, at: Instant) {
        let at = self.now.max(at);
        self.now = at;
        self.processors.advance(at);
        self.take_turns();
        self.delayed.reach(at - MOMENT);
    }

    fn take_turns(&mut self) {
        for (when, cpu, turn) in self.processors.turns() {
            match turn {
                Turn::Withheld => self.delayed.insert(when, Due::Withheld(cpu)),
                Turn::Given(spell) => {
                    self.delayed.insert(when, Due::Given(cpu));
                    self.total.add(spell);
                    self.spells.push(spell);
                }
            }
        }
    }

    /// Nothing counts from the last instant on of which it has heard, which it returns.
    pub fn close(&mut self) -> Instant {
        if !self.is_over {
            self.processors.close();
            self.take_turns();
            self.delayed.close(self.now);
            self.is_over = true;
        }
        self.now
    }

    /// Promises found broken since the last call, in windows in which something was withheld, by edge.
    pub fn broken(&mut self) -> impl Iterator<Item = (usize, Violation)> {
        self.delayed.edges.broken()
    }

    /// Times for which a processor was withheld that were found to be over since the last call.
    pub fn spells(&mut self) -> impl Iterator<Item = Spell> {
        self.spells.drain(..)
    }

    /// Since when a processor has been withheld, or may have been, of those of which it is not over.
    pub(super) fn open_since(&self) -> Option<Instant> {
        self.processors.open_since().filter(|_| !self.is_over)
    }

    /// What became of the edge's promise by what was received.
    pub fn receipts(&self, edge: usize) -> Receipts {
        self.delayed.edges.of(edge)
    }

    /// What was withheld in all.
    pub fn total(&self) -> Total {
        self.total
    }

    /// Members' threads whose own clocks say something else than the switches, which must then have been others.
    pub fn contradictions(&mut self, clocks: &[(u32, Work)]) -> Vec<u32> {
        let most = self.processors.length().as_nanos() / DISAGREEMENT;
        let received = self.processors.received();
        let differs = |thread: &u32, clock: Work| {
            let had = received.get(thread).copied().unwrap_or(Work::ZERO);
            (had.as_nanos() - clock.as_nanos()).abs() > most
        };
        clocks.iter().filter(|(thread, clock)| differs(thread, *clock)).map(|(thread, _)| *thread).collect()
    }
}

impl Sink for Ledger {
    fn record(&mut self, record: Record) {
        if self.is_over {
            return;
        }
        self.advance(record.time);
        match record.typed() {
            Typed::Switch(switch) => self.processors.switched(record.cpu, Some(switch)),
            Typed::Lost(lost) if lost.is_of_kernel() => {
                self.lost_switches += lost.records;
                self.processors.switched(record.cpu, None);
            }
            // What is found after that is worth nothing.
            Typed::Lost(_) => self.processors.forget(),
            Typed::Thread(thread) => self.meet(thread),
            Typed::Timer(timer) => {
                self.processors.was_due(record.cpu, timer.due);
                self.take_turns();
            }
            Typed::Member(member) => {
                let states = &self.states;
                let state = |edge: usize| states.get(edge).copied().unwrap_or_default();
                self.processors.introduce(member, state);
            }
            Typed::EdgeChange(change) if change.what == ChangeKind::Removed => {
                let edge = usize::from(change.edge);
                self.decided(edge, EdgeState::Waiting);
                self.processors.removed(edge);
                self.delayed.insert(self.now, Due::Removed(edge));
            }
            Typed::RunEnd(_) => _ = self.close(),
            _ => {
                if let Some((edge, state)) = EdgeState::told_by(&record) {
                    self.decided(edge, state);
                    self.delayed.insert(self.now, Due::Decided(edge, state));
                }
            }
        }
    }
}

impl Total {
    fn add(&mut self, spell: Spell) {
        self.withheld = self.withheld.checked_add(spell.length()).unwrap_or(Duration::MAX);
        self.spells += 1;
        if self.longest.is_none_or(|longest| spell.length() > longest.length()) {
            self.longest = Some(spell);
        }
    }
}
