//! What the processors' time went into: execution, overhead and idleness (Zhang et al., tables 1 to 5).
//!
//! Every nanosecond of every processor between a node's beginning and its end goes into exactly one account, so the
//! accounts add up to the number of processors times the duration; what the records leave open is stated beside them.
//!
//! | Account | What it holds |
//! |---|---|
//! | execution | jobs, by operation |
//! | overhead | dispatching, by the kind that COST records tell; what lanes' threads did besides, not broken down |
//! | interrupts, programs | what the kernel's records tell of others on the processor |
//! | withheld | nobody, although a thread of the run could go on: the kernel held it off |
//! | unobserved | threads that the kernel does not show to the user who recorded |
//! | idle | nobody that any record tells of: without WAKE, SLEEP and kernel records, unrecorded dispatching too |
//! | unknown | time of which records were lost, or of which nothing was heard yet |
//!
//! A COST record tells of the time before it. The latest few thousand stretches of each processor therefore stay open;
//! [`NodeUsage::unplaced_ns`] says how much of the costs found no time of their own, because a job of another lane ran
//! meanwhile.

mod jobs;
mod report;
mod strip;

pub use report::{CostUsage, NodeUsage, OperationUsage, ProgramUsage, Spread, UsageReport};

use crate::occupancy::{Interrupt, Occupancy, Occupant};
use crate::{CostKind, Event, JobId, Metadata, Record, Sink};
use jobs::Jobs;
use std::collections::HashMap;
use strip::{Cost, Strip};
use talea_time::Instant;

/// What a stretch of a processor's time went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Job(JobId),
    /// Dispatching that a COST record tells of.
    Cost(CostKind),
    /// A thread of the run between jobs.
    Dispatch,
    Program(u32),
    /// A thread that the kernel does not name to who recorded.
    Unobserved,
    Interrupt(Interrupt),
    Withheld,
    Idle,
    Unknown,
}

impl Use {
    fn of(occupant: Occupant) -> Self {
        match occupant {
            Occupant::Job(job) => Use::Job(job),
            Occupant::Lane(_) => Use::Dispatch,
            Occupant::Release => Use::Cost(CostKind::Release),
            Occupant::Receiver => Use::Cost(CostKind::Delivery),
            Occupant::Program(Record::UNSEEN_THREAD) => Use::Unobserved,
            Occupant::Program(thread) => Use::Program(thread),
            Occupant::Interrupt(interrupt) => Use::Interrupt(interrupt),
            Occupant::Withheld => Use::Withheld,
            Occupant::Idle => Use::Idle,
            Occupant::Unknown => Use::Unknown,
        }
    }
}

/// The accounts of one node, in nanoseconds.
#[derive(Debug, Default)]
struct Accounts {
    /// By operation index.
    execution: Vec<i64>,
    costs: [i64; CostKind::ALL.len()],
    counts: [u64; CostKind::ALL.len()],
    dispatch: i64,
    programs: HashMap<u32, i64>,
    /// Threads that are not observed.
    unobserved: i64,
    interrupts: i64,
    withheld: i64,
    idle: i64,
    unknown: i64,
    /// Part of the COST records that overlapped with what was not theirs.
    unplaced: i64,
    /// Time in which jobs had a processor that had displaced others unseen.
    ambiguous: i64,
}

impl Accounts {
    fn add(&mut self, what: Use, ns: i64) {
        let account = match what {
            Use::Job(job) => &mut self.execution[job.operation.index()],
            Use::Cost(kind) => &mut self.costs[kind.place()],
            Use::Dispatch => &mut self.dispatch,
            Use::Program(thread) => self.programs.entry(thread).or_default(),
            Use::Unobserved => &mut self.unobserved,
            Use::Interrupt(_) => &mut self.interrupts,
            Use::Withheld => &mut self.withheld,
            Use::Idle => &mut self.idle,
            Use::Unknown => &mut self.unknown,
        };
        *account = account.saturating_add(ns);
    }
}

#[derive(Debug)]
struct Node {
    start: Option<Instant>,
    end: Option<Instant>,
    strips: Vec<Strip>,
    accounts: Accounts,
}

/// Which records the trace has, and so what it can tell.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    costs: bool,
    wakes: bool,
    kernel: bool,
}

/// Computes a [`UsageReport`] from records, in memory that does not grow with them.
#[derive(Debug)]
pub struct Usage {
    metadata: Metadata,
    occupancy: Occupancy,
    nodes: Vec<Node>,
    jobs: Jobs,
    told: Told,
    last: Instant,
}

impl Usage {
    /// For a run of the system that `metadata` describe.
    ///
    /// # Panics
    /// If `metadata` do not pass [`Metadata::check`].
    pub fn new(metadata: &Metadata) -> Self {
        metadata.check().expect("metadata are consistent");
        let accounts = || Accounts { execution: vec![0; metadata.operations.len()], ..Accounts::default() };
        let node = |_| Node { start: None, end: None, strips: Vec::new(), accounts: accounts() };
        Usage {
            metadata: metadata.clone(),
            occupancy: Occupancy::new(metadata),
            nodes: metadata.nodes.iter().map(node).collect(),
            jobs: Jobs::new(metadata),
            told: Told::default(),
            last: metadata.start,
        }
    }

    /// The accounts of a run whose nodes without an end of their own ended with the last record.
    pub fn finish(mut self) -> UsageReport {
        let end = self.last;
        for index in 0..self.nodes.len() {
            self.close(index, end);
        }
        report::build(self)
    }

    /// Every processor of the node was used up to `now` as it is. Nothing before the node's start or after its end counts.
    fn reach(&mut self, index: usize, now: Instant) {
        let node = &mut self.nodes[index];
        let Some(start) = node.start else { return };
        let now = node.end.map_or(now, |end| now.min(end));
        let processors = self.occupancy.processors(index);
        while node.strips.len() < processors.len() {
            node.strips.push(Strip::new(processors[node.strips.len()].cpu, start));
        }
        for (place, strip) in node.strips.iter_mut().enumerate() {
            if now <= strip.cursor() {
                continue;
            }
            let what = Use::of(self.occupancy.occupant(index, place));
            let ns = now.as_nanos().saturating_sub(strip.cursor().as_nanos());
            if self.occupancy.is_ambiguous(index, place) {
                node.accounts.ambiguous = node.accounts.ambiguous.saturating_add(ns);
            }
            if let Use::Job(job) = what {
                self.jobs.executes(job, ns);
            }
            let accounts = &mut node.accounts;
            strip.push(now, what, |what, ns| accounts.add(what, ns));
        }
    }

    fn reach_all(&mut self, now: Instant) {
        (0..self.nodes.len()).for_each(|index| self.reach(index, now));
    }

    /// The node ends: nothing after `end` counts.
    fn close(&mut self, index: usize, end: Instant) {
        self.reach(index, end);
        let node = &mut self.nodes[index];
        node.end = node.end.or(Some(end));
        let accounts = &mut node.accounts;
        node.strips.iter_mut().for_each(|strip| strip.settle(|what, ns| accounts.add(what, ns)));
    }

    fn cost(&mut self, record: &Record) {
        let Some(kind) = CostKind::from_arg(record.arg) else { return };
        let lane = Some(usize::from(record.source)).filter(|lane| *lane < self.metadata.lanes.len());
        let index = lane.map_or((record.words[1] >> 32) as usize, |lane| self.metadata.lanes[lane].node);
        if index >= self.nodes.len() || self.nodes[index].end.is_some() {
            return;
        }
        self.told.costs = true;
        self.reach(index, record.time);
        let cost_ns = i64::try_from(record.words[0]).unwrap_or(i64::MAX);
        let from = Instant::from_nanos(record.time.as_nanos().saturating_sub(cost_ns));
        let node = &mut self.nodes[index];
        let count = &mut node.accounts.counts[kind.place()];
        *count = count.saturating_add(u64::from(record.words[1] as u32));
        let strip = node.strips.iter_mut().find(|strip| strip.cpu() == record.cpu);
        let mut placed_ns = 0i64;
        if let Some(strip) = strip {
            let cost = Cost { from, to: record.time, lane, kind };
            let (occupancy, jobs) = (&self.occupancy, &mut self.jobs);
            strip.overlay(
                cost,
                |job| occupancy.lane_of(job),
                |job, ns| {
                    placed_ns = ns.saturating_add(placed_ns);
                    match job {
                        Some(job) => jobs.pays(job, ns),
                        None => jobs.lane_pays(lane, kind, ns),
                    }
                },
            );
        }
        node.accounts.unplaced = node.accounts.unplaced.saturating_add(cost_ns.saturating_sub(placed_ns));
    }

    fn lost(&mut self, record: &Record) {
        self.reach_all(record.time);
        if record.source == Record::KERNEL {
            return;
        }
        let since = Instant::from_nanos(record.words[1] as i64);
        for node in self.nodes.iter_mut().filter(|node| node.end.is_none()) {
            let jobs = &mut self.jobs;
            for strip in &mut node.strips {
                strip.doubt(since, record.time, |job, ns| jobs.executes(job, ns.saturating_neg()));
            }
        }
    }
}

impl Sink for Usage {
    fn record(&mut self, record: Record) {
        self.last = self.last.max(record.time);
        let node_of_lane =
            |usage: &Self| usage.metadata.lanes.get(usize::from(record.source)).map(|lane| lane.node);
        match record.event {
            Event::RUN_START => {
                if let Some(node) = self.nodes.get_mut(usize::from(record.source)) {
                    node.start = node.start.or(Some(record.time));
                }
            }
            Event::RUN_END if usize::from(record.source) < self.nodes.len() => {
                self.close(usize::from(record.source), record.time);
            }
            event if event.is_job() => {
                if let Some(node) = node_of_lane(self) {
                    self.nodes[node].start = self.nodes[node].start.or(Some(record.time));
                    self.reach(node, record.time);
                }
                self.jobs.take(&record);
            }
            Event::WAKE | Event::SLEEP => {
                self.told.wakes = true;
                if let Some(node) = node_of_lane(self) {
                    self.reach(node, record.time);
                }
            }
            Event::SWITCH | Event::IRQ_ENTER | Event::IRQ_EXIT => {
                self.told.kernel |= record.event == Event::SWITCH;
                self.reach_all(record.time);
            }
            Event::COST => self.cost(&record),
            Event::LOST => self.lost(&record),
            _ => {}
        }
        self.occupancy.apply(&record);
    }
}
