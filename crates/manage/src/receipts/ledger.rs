//! Decisions and switches in the order of time: what every edge received, held against what it was promised.

use super::withholding::{Infrastructure, MOMENT, Turn, Withholding};
use crate::notes::{Note, What};
use std::collections::{HashMap, VecDeque};
use talea_guarantee::monitor::Violation;
use talea_policy::arrangement::{Breach, Change, Receipts, Watch};
use talea_policy::hierarchy::{Transition, Trigger, VpId, VpState};
use talea_record::{Record, Typed};
use talea_time::{Duration, Instant, Work};

/// Spells of an edge that are remembered to say whether a window held any.
const REMEMBERED: usize = 32;

/// From when to when a processor was withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WithheldInterval {
    pub from: Instant,
    pub to: Instant,
}

impl WithheldInterval {
    pub fn length(&self) -> Duration {
        self.to - self.from
    }
}

/// What happens when it has become certain that nothing before it is missing.
#[derive(Debug)]
enum Due {
    Change(Box<Change>),
    State(Transition),
    Turn(usize, Turn),
}

/// What is known of one edge.
#[derive(Clone, Debug, Default)]
struct Account {
    withheld: Duration,
    /// The latest spells of it.
    spells: VecDeque<WithheldInterval>,
}

/// What is withheld on all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total {
    pub withheld: Duration,
    pub spells: u64,
    pub longest: Option<WithheldInterval>,
}

/// Takes notes and the kernel's records, each in the order of time, and judges.
#[derive(Debug)]
pub(super) struct Ledger {
    withholding: Withholding,
    watch: Watch,
    due: VecDeque<(Instant, Due)>,
    /// What was decided, by virtual processor.
    granted: Vec<VpState>,
    /// Since when what was granted has been withheld, by virtual processor.
    withheld_since: Vec<Option<Instant>>,
    /// Since when each processor has been withheld, and by which thread's having it.
    sites: Vec<Option<(Instant, u32)>>,
    accounts: Vec<Account>,
    total: Total,
    /// Promises that were broken in windows in which something was withheld, not taken yet.
    broken: Vec<(usize, Violation)>,
    /// Times for which a processor was withheld, by place, and which thread had it at first; not taken yet.
    spells: Vec<(usize, WithheldInterval, u32)>,
    is_over: bool,
    /// Switches that the kernel did not tell.
    pub lost: u64,
}

impl Ledger {
    /// For a set on these processors. `watch` is the [companion](Watch::companion) of the watch over what is granted.
    pub fn new(cpus: &[u16], infrastructure: Infrastructure, watch: Watch) -> Self {
        Ledger {
            withholding: Withholding::new(cpus, infrastructure),
            watch,
            due: VecDeque::new(),
            granted: Vec::new(),
            withheld_since: Vec::new(),
            sites: vec![None; cpus.len()],
            accounts: Vec::new(),
            total: Total::default(),
            broken: Vec::new(),
            spells: Vec::new(),
            is_over: false,
            lost: 0,
        }
    }

    /// Takes what was decided.
    pub fn note(&mut self, Note { at, what }: Note) {
        if self.is_over {
            return;
        }
        self.advance(at);
        match what {
            What::Change(change) => self.due.push_back((at, Due::Change(change))),
            What::State(transition) => {
                self.withholding.decided(transition);
                self.due.push_back((at, Due::State(transition)));
            }
            What::Thread(thread, vp) => self.withholding.introduce(thread, vp),
            What::Begun => self.withholding.begin(),
            What::Over => self.close(at),
        }
    }

    /// Takes what the kernel tells.
    pub fn record(&mut self, record: &Record) {
        if self.is_over {
            return;
        }
        self.advance(record.time);
        match record.typed() {
            Typed::Switch(switch) => {
                let to = switch.to_tid;
                self.withholding.switched(record.cpu, Some(to).filter(|to| *to != Record::UNSEEN_THREAD));
            }
            Typed::Lost(lost) => {
                self.lost += lost.records;
                self.withholding.switched(record.cpu, None);
            }
            _ => {}
        }
    }

    fn advance(&mut self, at: Instant) {
        self.withholding.advance(at);
        for (when, place, turn) in self.withholding.turns() {
            let position = self.due.partition_point(|(due, _)| *due <= when);
            self.due.insert(position, (when, Due::Turn(place, turn)));
        }
        while self.due.front().is_some_and(|(when, _)| at - *when > MOMENT) {
            let (when, due) = self.due.pop_front().expect("there is a first");
            self.happen(when, due);
        }
    }

    fn happen(&mut self, at: Instant, due: Due) {
        match due {
            Due::Change(change) => {
                let vp = match &*change {
                    Change::Held { vp, .. } | Change::LetGo { vp, .. } => *vp,
                };
                self.give(vp, at);
                let held = match &*change {
                    Change::Held { state, .. } => Some(*state),
                    Change::LetGo { .. } => None,
                };
                self.watch.apply(*change);
                if let Some(state) = held {
                    self.stand(vp, state, at);
                }
            }
            Due::State(Transition { vp, state, .. }) => self.stand(vp, state, at),
            Due::Turn(place, turn) => self.turn(place, turn, at),
        }
    }

    /// `vp` has been given `state` by decision.
    fn stand(&mut self, vp: VpId, state: VpState, at: Instant) {
        if self.granted.len() <= vp.index() {
            self.granted.resize(vp.index() + 1, VpState::Waiting);
            self.withheld_since.resize(vp.index() + 1, None);
        }
        self.granted[vp.index()] = state;
        self.weigh(vp, at);
    }

    fn turn(&mut self, place: usize, turn: Turn, at: Instant) {
        match turn {
            Turn::Withheld(thread) => self.sites[place] = Some((at, thread)),
            Turn::Given => {
                if let Some((from, thread)) = self.sites[place].take() {
                    let interval = WithheldInterval { from, to: at };
                    self.total.add(interval);
                    self.spells.push((place, interval, thread));
                }
            }
        }
        for index in 0..self.granted.len() {
            if matches!(self.granted[index], VpState::Running(processor) if processor.index() == place) {
                self.weigh(VpId::from_index(index as u32), at);
            }
        }
    }

    /// Whoever is granted a processor that is withheld stands as if it were ready.
    fn weigh(&mut self, vp: VpId, at: Instant) {
        let granted = self.granted[vp.index()];
        let is_withheld =
            matches!(granted, VpState::Running(processor) if self.sites[processor.index()].is_some());
        let state = if is_withheld { VpState::Ready } else { granted };
        match is_withheld {
            true => _ = self.withheld_since[vp.index()].get_or_insert(at),
            false => self.give(vp, at),
        }
        if let Some((edge, violation)) =
            self.watch.note(Transition { vp, state, trigger: Trigger::Change }, at)
        {
            self.found(edge, violation, at);
        }
    }

    /// Nothing is withheld from `vp` any more.
    fn give(&mut self, vp: VpId, at: Instant) {
        let Some(from) = self.withheld_since.get_mut(vp.index()).and_then(Option::take) else { return };
        if let Some(edge) = self.watch.edge_of(vp) {
            self.account(edge).add(WithheldInterval { from, to: at });
        }
    }

    fn account(&mut self, edge: usize) -> &mut Account {
        if self.accounts.len() <= edge {
            self.accounts.resize(edge + 1, Account::default());
        }
        &mut self.accounts[edge]
    }

    /// A promise was not received. What was not granted either is the hierarchy's to tell.
    fn found(&mut self, edge: usize, violation: Violation, now: Instant) {
        let since = self.withheld_since.iter().enumerate().filter_map(|(vp, since)| {
            (*since).filter(|_| self.watch.edge_of(VpId::from_index(vp as u32)) == Some(edge))
        });
        let open: Vec<WithheldInterval> = since.map(|from| WithheldInterval { from, to: now }).collect();
        let account = self.account(edge);
        let within = |spell: &WithheldInterval| spell.from < violation.to && spell.to > violation.from;
        if account.spells.iter().chain(&open).any(within) {
            self.broken.push((edge, violation));
        }
    }

    fn close(&mut self, at: Instant) {
        while let Some((when, due)) = self.due.pop_front() {
            self.happen(when, due);
        }
        self.is_over = true;
        for place in 0..self.sites.len() {
            self.turn(place, Turn::Given, at);
        }
        let mut broken = Vec::new();
        self.watch.close_at(at, |edge, violation| broken.push((edge, violation)));
        broken.into_iter().for_each(|(edge, violation)| self.found(edge, violation, at));
    }

    /// Promises found broken since the last call, in windows in which something was withheld, by edge.
    pub fn broken(&mut self) -> Vec<(usize, Violation)> {
        std::mem::take(&mut self.broken)
    }

    /// Times for which a processor was withheld that ended since the last call, by place, and the thread that had it at first.
    pub fn spells(&mut self) -> Vec<(usize, WithheldInterval, u32)> {
        std::mem::take(&mut self.spells)
    }

    /// What became of every edge's promise by what was received, edges by number.
    pub fn receipts(&self) -> Vec<Receipts> {
        let receipts = |(edge, violations, worst): (usize, u64, Option<Breach>)| Receipts {
            withheld_ns: self.accounts.get(edge).map_or(0, |account| account.withheld.as_nanos()),
            violations,
            worst,
        };
        let kept = self.watch.so_far().into_iter().enumerate();
        kept.map(|(edge, kept)| receipts((edge, kept.violations, kept.worst))).collect()
    }

    /// What was withheld in all.
    pub fn total(&self) -> Total {
        self.total
    }

    /// Members whose own clocks say something else than the switches, which must then have been others.
    pub fn contradictions(&mut self, clocks: &[(VpId, Work)]) -> Vec<VpId> {
        let most = self.withholding.length().as_nanos() / DISAGREEMENT;
        let received: &HashMap<VpId, Work> = self.withholding.received();
        let differs = |vp: &VpId, clock: Work| {
            let had = received.get(vp).copied().unwrap_or(Work::ZERO);
            (had.as_nanos() - clock.as_nanos()).abs() > most
        };
        clocks.iter().filter(|(vp, clock)| differs(vp, *clock)).map(|(vp, _)| *vp).collect()
    }
}

/// A clock may differ from the switches by this part of the run: it begins and ends a moment from it.
const DISAGREEMENT: i64 = 50;

impl Account {
    fn add(&mut self, spell: WithheldInterval) {
        self.withheld += spell.length();
        if self.spells.len() == REMEMBERED {
            self.spells.pop_front();
        }
        self.spells.push_back(spell);
    }
}

impl Total {
    fn add(&mut self, spell: WithheldInterval) {
        self.withheld += spell.length();
        self.spells += 1;
        if self.longest.is_none_or(|longest| spell.length() > longest.length()) {
            self.longest = Some(spell);
        }
    }
}
