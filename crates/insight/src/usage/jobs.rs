//! Execution, overhead and response of single jobs, summed up by operation.

use super::report::Spread;
use crate::receipts::lingering;
use std::collections::HashMap;
use talea_record::event::Typed;
use talea_record::{CostKind, JobId, Metadata, Record};
use talea_time::{Duration, Instant};

/// Unfinished jobs at most; more can only be jobs whose end was lost.
const LIMIT: usize = 1 << 18;

/// One job so far, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    execution: i64,
    overhead: i64,
    response: i64,
    attribution: Attribution,
}

/// Whether it was seen when a job had a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Attribution {
    #[default]
    Seen,
    /// It shared one with others, and nobody saw which of them ran.
    Shared,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// The job it ran last, by its causal id.
    last: Option<u64>,
    /// Dispatching since then, for the next job.
    ahead_ns: i64,
}

/// The sums of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub jobs: u64,
    /// Those among them that shared a processor unseen: what they executed is not known.
    pub unseen: u64,
    pub execution: Spread,
    pub overhead: Spread,
    pub response: Spread,
}

/// The accounts of jobs, from their beginning until shortly after their end.
#[derive(Debug)]
pub(super) struct Jobs {
    lanes: Vec<Lane>,
    accounts: HashMap<u64, Account>,
    /// Completed jobs in the order of their ends, still open to records that come late.
    completed: std::collections::VecDeque<(Instant, u64)>,
    /// By operation index.
    sums: Vec<Sums>,
    /// For how long they are open.
    lingering: Duration,
}

impl Jobs {
    pub fn new(metadata: &Metadata) -> Self {
        Jobs {
            lanes: vec![Lane::default(); metadata.lanes.len()],
            accounts: HashMap::new(),
            completed: std::collections::VecDeque::new(),
            sums: vec![Sums::default(); metadata.operations.len()],
            lingering: lingering(!metadata.edges.is_empty()),
        }
    }

    /// The job had a processor.
    pub fn executes(&mut self, job: JobId, ns: i64) {
        if let Some(account) = self.accounts.get_mut(&job.pack()) {
            account.execution = account.execution.saturating_add(ns);
        }
    }

    /// The job may have had a processor, or another one.
    pub fn shares(&mut self, job: JobId) {
        if let Some(account) = self.accounts.get_mut(&job.pack()) {
            account.attribution = Attribution::Shared;
        }
    }

    /// Part of the time in which the job had a processor went into dispatching.
    pub fn pays(&mut self, job: JobId, ns: i64) {
        if let Some(account) = self.accounts.get_mut(&job.pack()) {
            account.execution = account.execution.saturating_sub(ns);
            account.overhead = account.overhead.saturating_add(ns);
        }
    }

    /// A lane dispatched between its jobs: what it hands on is for the job before, everything else for the next one.
    pub fn lane_pays(&mut self, lane: Option<usize>, kind: CostKind, ns: i64) {
        let Some(lane) = lane.map(|lane| &mut self.lanes[lane]) else { return };
        let before = lane.last.filter(|_| kind == CostKind::Delivery);
        match before.and_then(|last| self.accounts.get_mut(&last)) {
            Some(account) => account.overhead = account.overhead.saturating_add(ns),
            None => lane.ahead_ns = lane.ahead_ns.saturating_add(ns),
        }
    }

    pub fn take(&mut self, record: &Record) {
        self.settle(record.time);
        match record.typed() {
            Typed::Start(start) => {
                if self.accounts.len() >= LIMIT {
                    self.accounts.clear();
                }
                let account = self.accounts.entry(record.causal).or_default();
                if let Some(lane) = self.lanes.get_mut(usize::from(start.lane)) {
                    account.overhead = account.overhead.saturating_add(std::mem::take(&mut lane.ahead_ns));
                    lane.last = Some(record.causal);
                }
            }
            Typed::Complete(complete) => {
                if let Some(account) = self.accounts.get_mut(&record.causal) {
                    account.response = record.time.as_nanos().saturating_sub(complete.nominal.as_nanos());
                    self.completed.push_back((record.time, record.causal));
                }
            }
            Typed::Abort(_) => {
                self.accounts.remove(&record.causal);
            }
            _ => {}
        }
    }

    /// Sums up the jobs that completed long enough before `now`.
    fn settle(&mut self, now: Instant) {
        while let Some((at, causal)) = self.completed.front().copied()
            && at.saturating_add(self.lingering) < now
        {
            self.completed.pop_front();
            self.sum_up(causal);
        }
    }

    fn sum_up(&mut self, causal: u64) {
        let Some(account) = self.accounts.remove(&causal) else { return };
        let Some(sums) = self.sums.get_mut(JobId::unpack(causal).operation.index()) else { return };
        sums.jobs += 1;
        sums.unseen += u64::from(account.attribution == Attribution::Shared);
        sums.execution.add(account.execution, sums.jobs);
        sums.overhead.add(account.overhead, sums.jobs);
        sums.response.add(account.response, sums.jobs);
    }

    /// By operation index.
    pub fn finish(mut self) -> Vec<Sums> {
        let rest: Vec<u64> = self.completed.drain(..).map(|(_, causal)| causal).collect();
        rest.into_iter().for_each(|causal| self.sum_up(causal));
        self.sums
    }
}
