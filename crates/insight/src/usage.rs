//! What the processors' time went into: execution, overhead and idleness (Zhang et al., tables 1 to 5).
//!
//! Every nanosecond of every processor between a node's beginning and its end goes into exactly one account, so the
//! accounts add up to the number of processors times the duration; what the records leave open is stated beside them.
//!
//! | Account | What it holds |
//! |---|---|
//! | execution | jobs, by operation; what was added to a hierarchy while the run lasted, and has no jobs, by its name |
//! | shared unseen | jobs that had begun on one processor, of which nobody saw which one ran |
//! | overhead | dispatching, by the kind that COST records tell; what lanes' threads did besides, not broken down |
//! | companions | other threads of the run's own processes: their collectors, say |
//! | interrupts, programs | what the kernel's records tell of others on the processor; without these, others that took what was withheld |
//! | unobserved | threads that the kernel does not show to the user who recorded |
//! | slices | nobody, because a hierarchy leaves the processor to the kernel in a slice, though somebody wants it |
//! | idle | nobody that any record tells of: without WAKE, SLEEP and kernel records, unrecorded dispatching too |
//! | unknown | time of which records were lost, or of which nothing was heard yet |
//! | unrecorded | time that only events would tell of that the trace is known to lack ([`talea_record::RecordedEvents`]) |
//!
//! The accounts say who had a processor. What of that was *withheld* from whom it was granted to ([`crate::receipts`]) is stated beside
//! them, by who took it.
//!
//! An account of which the events were not recorded has no figure, `None`. Its time is in *unrecorded*, so that the accounts
//! add up all the same.
//!
//! What going from one thread to another costs is told by COST records in virtual time, and on real threads by the kernel's
//! switches (`switches`).
//!
//! COST and WITHHELD records tell of the time before them. The latest few thousand stretches of each processor therefore stay open;
//! [`NodeUsage::unplaced_ns`] says how much of the costs found no time of their own, because a job of another lane ran
//! meanwhile.

mod jobs;
mod report;
mod switches;
mod timeline;

pub use report::{
    CostUsage, Dispatching, MemberUsage, NodeUsage, OperationUsage, ProgramUsage, Spread, UsageReport,
    WithheldBy, WithheldUsage,
};

use crate::hierarchy::Hierarchies;
use crate::occupancy::{Interrupt, Occupancy, Occupant, ProcessorHolder};
use crate::receipts::{Spell, Withholdings};
use jobs::Jobs;
use std::collections::{BTreeSet, HashMap};
use switches::{Switches, ThreadOwner};
use talea_record::event::{self, Lost, Switch, Typed};
use talea_record::{Contents, CostKind, Event, JobId, Metadata, Record, Sink};
use talea_time::Instant;
use timeline::{Cost, Timeline, ToldBy};

/// What a stretch of a processor's time went into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Job(JobId),
    /// One of several jobs; nobody saw which.
    Shared,
    /// Dispatching that a COST record tells of.
    Cost(CostKind),
    /// A thread of the run between jobs.
    Dispatch,
    /// A thread of what was added to a hierarchy, behind this edge.
    Member(usize),
    Companion(u32),
    Program(u32),
    /// A thread that the kernel does not name to who recorded.
    Unobserved,
    Interrupt(Interrupt),
    /// Left to the kernel in a slice.
    Slice,
    Idle,
    Unknown,
}

impl Use {
    fn of(holder: ProcessorHolder) -> Self {
        let ProcessorHolder::By(occupant) = holder else { return Use::Shared };
        match occupant {
            Occupant::Job(job) => Use::Job(job),
            Occupant::Lane(_) => Use::Dispatch,
            Occupant::Release => Use::Cost(CostKind::Release),
            Occupant::Receiver => Use::Cost(CostKind::Delivery),
            Occupant::Member(edge) => Use::Member(edge),
            Occupant::Companion(thread) => Use::Companion(thread),
            Occupant::Program(Record::UNSEEN_THREAD) => Use::Unobserved,
            Occupant::Program(thread) => Use::Program(thread),
            Occupant::Interrupt(interrupt) => Use::Interrupt(interrupt),
            Occupant::Idle | Occupant::IdleBeforeReady => Use::Idle,
            Occupant::Unknown(_) => Use::Unknown,
        }
    }
}

/// The accounts of one node, in nanoseconds.
#[derive(Debug, Default)]
struct Accounts {
    /// By operation index.
    execution: Vec<i64>,
    /// By edge.
    members: HashMap<usize, i64>,
    /// Time in which several jobs shared a processor unseen.
    shared: i64,
    /// The operations that these were of, by index.
    sharing: BTreeSet<usize>,
    costs: [i64; CostKind::ALL.len()],
    counts: [u64; CostKind::ALL.len()],
    dispatch: i64,
    companions: HashMap<u32, i64>,
    programs: HashMap<u32, i64>,
    /// Threads that are not observed.
    unobserved: i64,
    interrupts: i64,
    /// What of all accounts was withheld, by who took it.
    withheld: HashMap<Taker, i64>,
    slices: i64,
    idle: i64,
    unknown: i64,
    /// Part of the COST records that overlapped with what was not theirs.
    unplaced: i64,
}

/// Who took what was withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Taker {
    /// The thread of this number; 0 is the idle one.
    Thread(u32),
    /// What mechanisms cost in virtual time.
    Overhead,
}

impl Accounts {
    /// `withheld` is the thread that took it first, if it was withheld.
    fn add(&mut self, what: Use, withheld: Option<u32>, ns: i64) {
        if let Some(first) = withheld {
            let taker = match what {
                Use::Program(thread) | Use::Companion(thread) => Taker::Thread(thread),
                Use::Unobserved => Taker::Thread(Record::UNSEEN_THREAD),
                Use::Idle => Taker::Thread(0),
                Use::Cost(_) if first == 0 => Taker::Overhead,
                _ => Taker::Thread(first),
            };
            let of_taker = self.withheld.entry(taker).or_default();
            *of_taker = of_taker.saturating_add(ns);
        }
        let account = match what {
            Use::Job(job) => &mut self.execution[job.operation.index()],
            Use::Shared => &mut self.shared,
            Use::Cost(kind) => &mut self.costs[kind.place()],
            Use::Dispatch => &mut self.dispatch,
            Use::Member(edge) => self.members.entry(edge).or_default(),
            Use::Companion(thread) => self.companions.entry(thread).or_default(),
            Use::Program(thread) => self.programs.entry(thread).or_default(),
            Use::Unobserved => &mut self.unobserved,
            Use::Interrupt(_) => &mut self.interrupts,
            Use::Slice => &mut self.slices,
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
    timelines: Vec<Timeline>,
    accounts: Accounts,
    undispatched: UndispatchedJobs,
}

/// Jobs that began and no record of dispatching with them: where dispatching is recorded throughout there are few.
#[derive(Debug, Default)]
struct UndispatchedJobs {
    now: u64,
    longest: u64,
}

impl UndispatchedJobs {
    /// So many mean that dispatching was not recorded then.
    const TOO_LONG: u64 = 256;

    fn count(&mut self, event: Event) {
        match event {
            Event::START => self.now += 1,
            _ => self.now = 0,
        }
        self.longest = self.longest.max(self.now);
    }

    fn is_too_long(&self) -> bool {
        self.longest > Self::TOO_LONG
    }
}

/// Computes a [`UsageReport`] from records, in memory that does not grow with them.
#[derive(Debug)]
pub struct Usage {
    metadata: Metadata,
    occupancy: Occupancy,
    hierarchies: Hierarchies,
    withholdings: Withholdings,
    nodes: Vec<Node>,
    jobs: Jobs,
    contents: Contents,
    switches: Switches,
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
        let node = |_| Node {
            start: None,
            end: None,
            timelines: Vec::new(),
            accounts: accounts(),
            undispatched: UndispatchedJobs::default(),
        };
        Usage {
            metadata: metadata.clone(),
            occupancy: Occupancy::new(metadata),
            hierarchies: Hierarchies::new(metadata),
            withholdings: Withholdings::new(metadata),
            nodes: metadata.nodes.iter().map(node).collect(),
            jobs: Jobs::new(metadata),
            contents: Contents::new(metadata),
            switches: Switches::default(),
            last: metadata.start,
        }
    }

    /// The accounts of a run whose nodes without an end of their own ended with the last record.
    pub fn finish(mut self) -> UsageReport {
        let end = self.last;
        (0..self.nodes.len()).for_each(|index| self.close(index, end));
        self.withholdings.close();
        self.withhold(end);
        for index in 0..self.nodes.len() {
            let Node { timelines, accounts, .. } = &mut self.nodes[index];
            timelines
                .iter_mut()
                .for_each(|timeline| timeline.settle(|what, by, ns| accounts.add(what, by, ns)));
        }
        report::build(self)
    }

    /// Every processor of the node was used up to `now` as it is. Nothing before the node's start or after its end counts.
    fn reach(&mut self, index: usize, now: Instant) {
        let node = &mut self.nodes[index];
        let Some(start) = node.start else { return };
        let now = node.end.map_or(now, |end| now.min(end));
        let processors = self.occupancy.processors(index);
        while node.timelines.len() < processors.len() {
            node.timelines.push(Timeline::new(processors[node.timelines.len()].cpu, start));
        }
        for (place, timeline) in node.timelines.iter_mut().enumerate() {
            if now <= timeline.cursor() {
                continue;
            }
            let cpu = timeline.cpu();
            let holder = self.occupancy.known_holder(index, place);
            let waits = |lane: usize| self.hierarchies.knows(lane) && !self.hierarchies.has(lane, cpu);
            let held = match holder {
                // A lane that is awake below schedulers without having been given the processor does nothing with it.
                ProcessorHolder::By(Occupant::Lane(_))
                    if !self.occupancy.hears_kernel()
                        && self.occupancy.lanes_awake(index, cpu).all(waits) =>
                {
                    Use::Idle
                }
                holder => Use::of(holder),
            };
            let what = match held {
                Use::Idle if self.hierarchies.is_left_in_slice(index, cpu) => Use::Slice,
                what => what,
            };
            let ns = now.as_nanos().saturating_sub(timeline.cursor().as_nanos());
            match what {
                Use::Job(job) => self.jobs.executes(job, ns),
                Use::Shared => {
                    for job in self.occupancy.unseen_sharers(index) {
                        self.jobs.shares(job);
                        node.accounts.sharing.insert(job.operation.index());
                    }
                }
                _ => {}
            }
            let accounts = &mut node.accounts;
            let told_by = match self.occupancy.is_told_by_kernel(index, place) {
                true => ToldBy::Kernel,
                false => ToldBy::Run,
            };
            timeline.push(now, (what, told_by), |what, by, ns| accounts.add(what, by, ns));
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
    }

    /// Notes what has been found to be withheld by `now`, which may come to light after the end.
    fn withhold(&mut self, now: Instant) {
        let spells: Vec<(usize, Spell)> = self.withholdings.spells().collect();
        for (index, Spell { cpu, thread, from, to }) in spells {
            self.reach(index, now);
            let (occupancy, jobs) = (&self.occupancy, &mut self.jobs);
            // Which of its jobs a thread of the run was at nobody tells.
            let taken = match occupancy.of_thread(index, thread) {
                Occupant::Job(_) | Occupant::Lane(_) | Occupant::Unknown(_) => Use::Dispatch,
                other => Use::of(ProcessorHolder::By(other)),
            };
            let takes = occupancy.lane_of_thread(thread);
            let timelines = self.nodes[index].timelines.iter_mut();
            for timeline in timelines.filter(|timeline| timeline.cpu() == cpu) {
                timeline.withhold((from, to), thread, |what, ns| match what {
                    Use::Job(job) if takes.is_some() && takes == occupancy.lane_of(job) => what,
                    Use::Job(job) => {
                        jobs.executes(job, ns.saturating_neg());
                        taken
                    }
                    _ => taken,
                });
            }
        }
    }

    fn cost(&mut self, record: &Record, told: event::Cost) {
        let Some(kind) = told.kind.known() else { return };
        let lane = told.lane.map(usize::from).filter(|lane| *lane < self.metadata.lanes.len());
        let index = lane.map_or(told.node as usize, |lane| self.metadata.lanes[lane].node);
        if index >= self.nodes.len() || self.nodes[index].end.is_some() {
            return;
        }
        self.reach(index, record.time);
        let cost_ns = told.length_ns();
        let from = Instant::from_nanos(record.time.as_nanos().saturating_sub(cost_ns));
        let node = &mut self.nodes[index];
        node.undispatched.count(record.event);
        let count = &mut node.accounts.counts[kind.place()];
        *count = count.saturating_add(u64::from(told.count));
        let timeline = node.timelines.iter_mut().find(|timeline| timeline.cpu() == record.cpu);
        let mut placed_ns = 0i64;
        if let Some(timeline) = timeline {
            let cost = Cost { from, to: record.time, lane, kind };
            let (occupancy, jobs) = (&self.occupancy, &mut self.jobs);
            timeline.overlay(
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

    /// Somebody gets the processor, which takes what the thread before has not told of.
    fn switch(&mut self, record: &Record, switch: Switch) {
        let whose = |thread: u32| match self.occupancy.is_of_run(thread) {
            true => ThreadOwner::Run,
            false => ThreadOwner::Others,
        };
        let (from, to) = (whose(switch.from_tid), whose(switch.to_tid));
        let left = self.switches.switch(record.cpu, record.time, from, to);
        if from == ThreadOwner::Others && to == ThreadOwner::Others {
            return;
        }
        if let Some(node) = self.node_on(record.cpu) {
            self.nodes[node].accounts.counts[CostKind::Switch.place()] += 1;
        }
        if let Some(left) = left {
            self.paint(record.cpu, left, record.time);
        }
    }

    /// A thread of the run tells something on its processor: it has arrived there.
    fn follow_switches(&mut self, record: &Record) {
        if record.cpu == Record::NO_CPU {
            return;
        }
        let cost_ns = event::Cost::read(record).map_or(0, |cost| cost.length_ns());
        if let Some(since) = self.switches.saw_active(record.cpu, record.time) {
            self.reach_all(record.time);
            let until = Instant::from_nanos(record.time.as_nanos().saturating_sub(cost_ns));
            self.paint(record.cpu, since, until);
        }
    }

    fn paint(&mut self, cpu: u16, from: Instant, to: Instant) {
        if let Some(node) = self.node_on(cpu) {
            let timelines = self.nodes[node].timelines.iter_mut();
            timelines
                .filter(|timeline| timeline.cpu() == cpu)
                .for_each(|timeline| timeline.switching(from, to));
        }
    }

    /// The running node that has the processor and whose threads are known.
    fn node_on(&self, cpu: u16) -> Option<usize> {
        let runs = |node: &Node| node.start.is_some() && node.end.is_none();
        let is_on = |index: usize| {
            let timelines = &self.nodes[index].timelines;
            runs(&self.nodes[index]) && timelines.iter().any(|timeline| timeline.cpu() == cpu)
        };
        (0..self.nodes.len()).find(|index| is_on(*index) && self.occupancy.identifies(*index))
    }

    fn lost(&mut self, record: &Record, lost: Lost) {
        self.reach_all(record.time);
        if lost.is_of_kernel() {
            self.switches.forget(record.cpu);
            return;
        }
        let since = lost.since_or_zero();
        for node in self.nodes.iter_mut().filter(|node| node.end.is_none()) {
            let jobs = &mut self.jobs;
            for timeline in &mut node.timelines {
                timeline.doubt(since, record.time, |job, ns| jobs.executes(job, ns.saturating_neg()));
            }
        }
    }
}

impl Sink for Usage {
    fn record(&mut self, record: Record) {
        self.last = self.last.max(record.time);
        self.contents.record(record);
        if record.event.family() != Event::SWITCH.family() {
            self.follow_switches(&record);
        }
        let node_of_lane = |usage: &Self| usage.metadata.lanes.get(record.lane()?).map(|lane| lane.node);
        match record.typed() {
            Typed::RunStart(start) => {
                if let Some(node) = self.nodes.get_mut(usize::from(start.node)) {
                    node.start = node.start.or(Some(record.time));
                }
            }
            Typed::RunEnd(end) if usize::from(end.node) < self.nodes.len() => {
                self.close(usize::from(end.node), record.time);
            }
            _ if record.event.is_job() => {
                if let Some(node) = node_of_lane(self) {
                    self.nodes[node].start = self.nodes[node].start.or(Some(record.time));
                    self.reach(node, record.time);
                    if record.event == Event::START {
                        self.nodes[node].undispatched.count(record.event);
                    }
                }
                self.jobs.take(&record);
            }
            Typed::Block(_) | Typed::Unblock(_) => {
                if let Some(node) = node_of_lane(self) {
                    self.reach(node, record.time);
                }
            }
            Typed::Wake(_) | Typed::Sleep(_) => {
                if let Some(node) = node_of_lane(self) {
                    self.nodes[node].undispatched.count(record.event);
                    self.reach(node, record.time);
                }
            }
            Typed::Switch(switch) => {
                self.reach_all(record.time);
                self.switch(&record, switch);
            }
            Typed::IrqEnter(_)
            | Typed::IrqExit(_)
            | Typed::Thread(_)
            | Typed::Member(_)
            | Typed::EdgeChange(_) => self.reach_all(record.time),
            Typed::VpRequest(_) | Typed::VpGrant(_) | Typed::VpRevoke(_) | Typed::VpRelease(_) => {
                let edge = self.metadata.edges.get(usize::from(record.source));
                if let Some(node) = edge.map(|edge| edge.node) {
                    self.reach(node, record.time);
                }
            }
            Typed::Supply(supply) if usize::from(supply.node) < self.nodes.len() => {
                self.reach(usize::from(supply.node), record.time);
            }
            Typed::Cost(cost) => self.cost(&record, cost),
            Typed::Lost(lost) => self.lost(&record, lost),
            _ => {}
        }
        self.withholdings.record(record);
        self.withhold(record.time);
        self.occupancy.apply(&record);
        self.hierarchies.apply(&record);
    }
}
