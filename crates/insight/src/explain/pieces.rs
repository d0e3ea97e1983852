//! The intervals of one job as they come: settled in order, the latest still open to what is learnt afterwards.
//!
//! A COST record tells of the time *before* it, so the latest intervals stay divisible for a while. What is older goes
//! into the totals; of it the first few thousand intervals are listed one by one and the rest as one condensed interval,
//! so that a job that starves for hours needs no more memory than any other.

use super::cause::{Blamed, Cause, Interval, Kind, Stage, length};
use crate::receipts::Spell;
use std::collections::{BTreeMap, VecDeque};
use talea_record::CostKind;
use talea_time::Instant;

/// Intervals that stay divisible.
const RECENT: usize = 1 << 12;
/// Settled intervals that are listed one by one.
const LISTED: usize = 1 << 12;

/// Where a piece's time was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpentAt {
    /// The processor in question; none where it is about none.
    pub cpu: Option<u16>,
    /// The lane whose thread was on it; none where nobody was.
    pub lane: Option<usize>,
}

/// Whose the processor in question was to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// This job's: its place was granted it, or the kernel decides.
    Own,
    Others,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    interval: Interval,
    spent_at: SpentAt,
    claim: Claim,
}

/// A stretch of dispatching that a COST record tells of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub from: Instant,
    pub to: Instant,
    pub cpu: u16,
    /// The lane that dispatched; none for the release thread and the like, which stand above all lanes.
    pub lane: Option<usize>,
    pub kind: Option<CostKind>,
}

/// Sums by hop, stage, kind and blame: nanoseconds and number of intervals.
pub(super) type Sums = BTreeMap<(Stage, Kind, Blamed), (i64, u64)>;

/// The pieces of one job.
#[derive(Debug)]
pub(super) struct Pieces {
    hop: usize,
    /// Everything up to here has its piece.
    cursor: Instant,
    listed: Vec<Interval>,
    condensed: Option<Interval>,
    recent: VecDeque<Piece>,
    sums: Sums,
}

impl Pieces {
    pub fn new(hop: usize, from: Instant) -> Self {
        Pieces {
            hop,
            cursor: from,
            listed: Vec::new(),
            condensed: None,
            recent: VecDeque::new(),
            sums: Sums::new(),
        }
    }

    pub fn cursor(&self) -> Instant {
        self.cursor
    }

    /// The time from the end of the last piece up to `to` had this cause.
    pub fn push(&mut self, to: Instant, stage: Stage, cause: Cause, (spent_at, claim): (SpentAt, Claim)) {
        if to <= self.cursor {
            return;
        }
        let interval = Interval { from: self.cursor, to, hop: self.hop, stage, cause };
        self.cursor = to;
        self.append(Piece { interval, spent_at, claim });
        while self.recent.len() > RECENT {
            self.settle_first();
        }
    }

    fn append(&mut self, piece: Piece) {
        match self.recent.back_mut() {
            Some(last)
                if last.interval.cause == piece.interval.cause
                    && last.interval.stage == piece.interval.stage
                    && (last.spent_at, last.claim) == (piece.spent_at, piece.claim) =>
            {
                last.interval.to = piece.interval.to;
            }
            _ => self.recent.push_back(piece),
        }
    }

    fn settle_first(&mut self) {
        let Some(Piece { interval, .. }) = self.recent.pop_front() else { return };
        add(&mut self.sums, &interval);
        if self.listed.len() < LISTED {
            self.listed.push(interval);
            return;
        }
        match &mut self.condensed {
            Some(condensed) => condensed.to = interval.to,
            None => self.condensed = Some(Interval { cause: Cause::Condensed, ..interval }),
        }
    }

    /// The time between the instants was not what it seemed: `instead` says, piece by piece, what it was.
    fn repaint(&mut self, from: Instant, to: Instant, instead: impl Fn(&Piece) -> Option<Cause>) {
        let mut later = Vec::new();
        while let Some(piece) = self.recent.pop_back_if(|piece| piece.interval.to > from) {
            later.push(piece);
        }
        for piece in later.into_iter().rev() {
            let Interval { from: begin, to: end, .. } = piece.interval;
            let (inner_from, inner_to) = (begin.max(from), end.min(to));
            let cause = if inner_from < inner_to { instead(&piece) } else { None };
            let Some(cause) = cause else {
                self.append(piece);
                continue;
            };
            for (from, to, cause) in [
                (begin, inner_from, piece.interval.cause),
                (inner_from, inner_to, cause),
                (inner_to, end, piece.interval.cause),
            ] {
                if from < to {
                    self.append(Piece { interval: Interval { from, to, cause, ..piece.interval }, ..piece });
                }
            }
        }
    }

    /// A COST record tells what part of the time went into. It overrides what the records of jobs tell of the same lane
    /// and of nobody; jobs of other lanes ran in between. What dispatches above all lanes overrides all of them.
    pub fn overlay(&mut self, cost: Cost, own_lane: usize) {
        self.repaint(cost.from, cost.to, |Piece { interval, spent_at, .. }| {
            let here = spent_at.cpu.is_none_or(|cpu| cpu == cost.cpu);
            let concerned = match interval.cause {
                Cause::Idle | Cause::WakeUp | Cause::Dispatch { kind: None } => {
                    here || cost.lane == Some(own_lane)
                }
                Cause::Execution
                | Cause::Peer { .. }
                | Cause::Higher { .. }
                | Cause::Lower { .. }
                | Cause::Kernel { .. } => here && (cost.lane.is_none() || cost.lane == spent_at.lane),
                _ => false,
            };
            concerned.then_some(Cause::Dispatch { kind: cost.kind })
        });
    }

    /// The processor was withheld from whom it was granted to. `taker` says who took it, given what was known to happen there.
    pub fn withhold(&mut self, spell: Spell, taker: impl Fn(Cause) -> u32) {
        self.repaint(spell.from, spell.to, |Piece { interval, spent_at, claim }| {
            let is_granted = *claim == Claim::Own && spent_at.cpu == Some(spell.cpu);
            is_granted.then(|| Cause::Withheld { thread: taker(interval.cause) })
        });
    }

    /// Records of the time between the instants were lost.
    pub fn doubt(&mut self, from: Instant, to: Instant) {
        self.repaint(from, to, |_| Some(Cause::Uncertain));
    }

    /// All intervals in order, and their sums.
    pub fn finish(mut self) -> (Vec<Interval>, Sums) {
        for piece in &self.recent {
            add(&mut self.sums, &piece.interval);
        }
        let mut intervals = self.listed;
        intervals.extend(self.condensed);
        intervals.extend(self.recent.iter().map(|piece| piece.interval));
        (intervals, self.sums)
    }
}

/// Adds an interval to the sums.
pub(super) fn add(sums: &mut Sums, interval: &Interval) {
    let key = (interval.stage, interval.cause.kind(), interval.cause.blamed());
    let (sum_ns, count) = sums.entry(key).or_default();
    *sum_ns = sum_ns.saturating_add(length(interval.from, interval.to).as_nanos());
    *count += 1;
}
