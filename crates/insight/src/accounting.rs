//! What a run achieved, computed from its records alone, in memory that does not grow with it.
//!
//! [`Accounting`] is a [`Sink`]: the simulator feeds it while it runs, and so does a collector or the
//! replay of a file; there is no other source of numbers. It costs a few nanoseconds a record: no
//! allocation once times have come before, no hashing, tables indexed by operation.
//!
//! **A task's instance** is followed from the release of its first operation to the completion of all its
//! last ones in a window of the instances in flight. It is counted once as met or missed, whichever
//! comes first: completion, abortion, or its deadline, which is noticed when a sample ends (see
//! [`SampleReport`]) or when it completes late.
//!
//! **Busy time** of a lane is the sum of the times at which its jobs leave a processor minus the sum of
//! those at which they get one, so that no record has to be remembered.
//!
//! **Lost records** leave instances without beginning or end. A completion without release counts as
//! a release as well, with the arrival computed from the period; an instance whose end was lost counts
//! as missed once its deadline has passed. The number of lost records stands in the report.

mod chains;
mod departed;
mod distribution;
mod figures;
mod histogram;
mod operation;
mod report;
mod samples;
mod subscriptions;
mod task;
mod window;

pub use chains::{ChainReport, ChainTimes, Measure};
pub(crate) use chains::{Chains, Way};
pub use distribution::Distribution;
pub use figures::Figure;
pub use report::{EndedEarly, HierarchyReport, LaneReport, NodeReport, OperationReport, Report, TaskReport};
pub use samples::{Sample, SampleReport, Samples};
pub use subscriptions::SubscriptionReport;

use distribution::{Precision, Recorder};
use operation::{OperationState, Verdict};
use samples::{Kind, SampleClock};
use subscriptions::Subscriptions;
use talea_record::event::{Abort, Complete, Dates, Held, Lost, NodeLeft, Release, Start, Steal, builtin};
use talea_record::{Definition, Event, LaneEntry, Metadata, NodeEntry, Record, Sink, SkipReason};
use talea_time::{Duration, Instant};
use task::TaskState;
use window::Window;

/// Computes a [`Report`] from records.
#[derive(Debug)]
pub struct Accounting {
    metadata: Metadata,
    operations: Vec<OperationState>,
    tasks: Vec<TaskState>,
    lanes: Vec<LaneState>,
    nodes: Vec<NodeState>,
    samples: SampleClock,
    chains: Chains,
    subscriptions: Subscriptions,
    start: Option<Instant>,
    last: Instant,
    /// Whether a node has ended, so that records must be checked for coming after that.
    ended: bool,
    lost: u64,
    unknown: u64,
    after_end: u64,
}

#[derive(Debug, Default)]
struct LaneState {
    node: u32,
    processors: u32,
    /// Jobs on a processor now.
    running: u32,
    /// Times of leaving minus times of getting a processor, modulo 2^64.
    busy_ns: i64,
    jobs: u64,
    max_queue: u16,
}

#[derive(Debug, Default)]
struct NodeState {
    end: Option<Instant>,
    /// It has left before the end.
    left: Option<Instant>,
    job_switches: u64,
    preemptions: u64,
    stolen_ns: u64,
}

impl Accounting {
    /// Accounting for a run of the system that `metadata` describe, with samples of this length from
    /// `metadata.start` on.
    ///
    /// # Panics
    /// If `sample` is not positive, or `metadata` do not pass [`Metadata::check`].
    pub fn new(metadata: &Metadata, sample: Duration) -> Self {
        metadata.check().expect("metadata are consistent");
        let precision = Precision::for_operations(metadata.operations.len());
        let mut tasks: Vec<TaskState> =
            metadata.tasks.iter().map(|task| TaskState::new(task, metadata.start)).collect();
        let mut operation_counts = vec![0; tasks.len()];
        for operation in &metadata.operations {
            tasks[operation.task].lasts += u32::from(operation.is_last);
            operation_counts[operation.task] += 1;
        }
        let counts = tasks.iter_mut().zip(&operation_counts);
        for (task, _) in counts.filter(|(task, count)| **count > 1 || task.inherits) {
            task.response = Some(Recorder::new(precision));
        }
        let mut operations: Vec<OperationState> = metadata
            .operations
            .iter()
            .map(|operation| OperationState {
                task: operation.task as u32,
                lane: operation.lane as u32,
                is_first: operation.predecessors.is_empty(),
                is_last: operation.is_last,
                released: 0,
                completed: 0,
                aborted: 0,
                preemptions: 0,
                met: 0,
                missed: 0,
                in_flight: None,
                response: Recorder::new(precision),
                lateness: Recorder::new(precision),
            })
            .collect();
        for operation in
            operations.iter_mut().filter(|operation| operation_counts[operation.task as usize] > 1)
        {
            operation.in_flight = Some(Window::new(&metadata.tasks[operation.task as usize]));
        }
        let lanes = metadata.lanes.iter().map(|lane| LaneState {
            node: lane.node as u32,
            processors: metadata.nodes[lane.node].cpus.len().max(1) as u32,
            ..LaneState::default()
        });
        Accounting {
            operations,
            tasks,
            lanes: lanes.collect(),
            nodes: metadata.nodes.iter().map(|_| NodeState::default()).collect(),
            samples: SampleClock::new(metadata.start, sample, Samples::Totals),
            chains: Chains::new(metadata, precision),
            subscriptions: Subscriptions::new(metadata, precision),
            start: None,
            last: metadata.start,
            ended: false,
            lost: 0,
            unknown: 0,
            after_end: 0,
            metadata: metadata.clone(),
        }
    }

    /// The same, keeping or not keeping single samples.
    pub fn with_samples(mut self, keep: Samples) -> Self {
        self.samples.keep(keep);
        self
    }

    /// The time of the latest record that counts: the end of a trace that has no end in it.
    pub fn last(&self) -> Instant {
        self.last
    }

    /// The results of a run that ended at its last [`Event::RUN_END`], or at `end` if it has none.
    pub fn finish(mut self, end: Instant) -> Report {
        let end = self.nodes.iter().filter_map(|node| node.end).max().unwrap_or(end);
        let end_ns = end.as_nanos();
        if end_ns > self.samples.boundary_ns() {
            self.close_samples(end_ns);
        }
        self.expire(end_ns);
        self.operations.iter_mut().for_each(|operation| operation.expire(end_ns));
        let start = self.start.unwrap_or(self.metadata.start);
        let duration_ns = end_ns.saturating_sub(start.as_nanos());
        let lanes = self.lane_reports(end_ns, duration_ns);
        let cut_off = self.cut_off();
        Report {
            system: self.metadata.system.clone(),
            strategy: self.metadata.strategy.clone(),
            origin: self.metadata.origin,
            start_ns: start.as_nanos(),
            end_ns,
            duration_ns,
            lost_records: self.lost,
            unknown_records: self.unknown,
            records_after_end: self.after_end,
            tasks: self.task_reports(&cut_off),
            operations: self.operation_reports(),
            nodes: self.node_reports(&lanes, start, duration_ns),
            lanes,
            chains: self.chains.reports(end_ns),
            subscriptions: self.subscriptions.reports(&self.metadata),
            samples: self.samples.finish(end_ns),
            hierarchies: Vec::new(),
        }
    }

    fn lane_reports(&self, end_ns: i64, duration_ns: i64) -> Vec<LaneReport> {
        let report = |(lane, entry): (&LaneState, &LaneEntry)| {
            let busy_ns = lane.busy_until(end_ns);
            LaneReport {
                node: self.metadata.nodes[entry.node].name.clone(),
                level: entry.level,
                label: entry.label.clone(),
                discipline: entry.discipline.clone(),
                jobs: lane.jobs,
                busy_ns,
                utilisation: share(busy_ns, duration_ns, 1),
                max_queue: lane.max_queue,
            }
        };
        self.lanes.iter().zip(&self.metadata.lanes).map(report).collect()
    }

    fn node_reports(&self, lanes: &[LaneReport], start: Instant, duration_ns: i64) -> Vec<NodeReport> {
        let mut busy_ns = vec![0i64; self.nodes.len()];
        for (lane, state) in lanes.iter().zip(&self.lanes) {
            let sum = &mut busy_ns[state.node as usize];
            *sum = sum.saturating_add(lane.busy_ns);
        }
        let report = |((node, entry), busy_ns): ((&NodeState, &NodeEntry), i64)| NodeReport {
            name: entry.name.clone(),
            processors: entry.cpus.len(),
            left_ns: node.left.map(|at| (at - start).as_nanos()),
            switches: entry.switches,
            busy_ns,
            utilisation: share(busy_ns, duration_ns, entry.cpus.len().max(1)),
            job_switches: node.job_switches,
            preemptions: node.preemptions,
            stolen_ns: node.stolen_ns,
        };
        self.nodes.iter().zip(&self.metadata.nodes).zip(busy_ns).map(report).collect()
    }

    fn task_reports(&self, cut_off: &[u64]) -> Vec<TaskReport> {
        let only_operation = |task: usize| {
            self.operations
                .iter()
                .find(|operation| operation.task as usize == task)
                .expect("a task has operations")
        };
        self.tasks
            .iter()
            .zip(&self.metadata.tasks)
            .enumerate()
            .filter(|(task, _)| self.metadata.is_there(*task))
            .map(|(index, (task, entry))| {
                let response = task.response.as_ref().unwrap_or_else(|| &only_operation(index).response);
                TaskReport {
                    name: entry.name.clone(),
                    activity: entry.activity,
                    criticality: entry.criticality.level(),
                    critical: entry.criticality.is_critical(),
                    period_ns: entry.period.as_nanos(),
                    deadline_ns: entry.deadline.as_nanos(),
                    offered: task.released + task.skipped,
                    released: task.released,
                    completed: task.completed,
                    met: task.met,
                    missed: task.missed,
                    skipped: task.skipped,
                    merged: task.merged,
                    aborted: task.aborted,
                    messages_lost: task.messages_lost,
                    cut_off: cut_off[index],
                    unfinished: task.window.pending() + task.given_up,
                    response_ns: response.distribution(),
                    worst_lateness_ns: (task.completed > 0).then_some(task.worst_lateness_ns),
                }
            })
            .collect()
    }

    fn operation_reports(&self) -> Vec<OperationReport> {
        self.operations
            .iter()
            .zip(&self.metadata.operations)
            .filter(|(_, entry)| self.metadata.is_there(entry.task))
            .map(|(operation, entry)| (operation, entry, &self.tasks[entry.task]))
            .map(|(operation, entry, task)| OperationReport {
                name: entry.name.clone(),
                task: self.metadata.tasks[entry.task].name.clone(),
                lane: entry.lane,
                released: operation.released,
                completed: operation.completed,
                met: if operation.in_flight.is_some() { operation.met } else { task.met },
                missed: if operation.in_flight.is_some() { operation.missed } else { task.missed },
                skipped: task.skipped,
                aborted: operation.aborted,
                preemptions: operation.preemptions,
                response_ns: operation.response.distribution(),
                release_lateness_ns: operation.lateness.distribution(),
            })
            .collect()
    }

    /// Ends samples until the current one contains `time_ns`.
    #[cold]
    fn close_samples(&mut self, time_ns: i64) {
        while time_ns > self.samples.boundary_ns() {
            let next_deadline_ns = self.expire(self.samples.boundary_ns());
            self.samples.close();
            self.samples.skip_to(next_deadline_ns.map_or(time_ns, |deadline_ns| deadline_ns.min(time_ns)));
        }
    }

    /// Counts the instances whose deadlines have passed at `boundary_ns` and returns the next deadline.
    fn expire(&mut self, boundary_ns: i64) -> Option<i64> {
        let mut earliest: Option<i64> = None;
        for task in &mut self.tasks {
            let (missed, next_ns) = task.window.expire(boundary_ns);
            task.missed += missed;
            self.samples.failed(task.kind, missed);
            earliest = [earliest, next_ns].into_iter().flatten().min();
        }
        earliest
    }

    /// Whether the record is one of a node that has ended before it.
    #[cold]
    fn is_after_end(&self, record: &Record) -> bool {
        let node = match record.event {
            Event::RUN_START | Event::RUN_END | Event::NODE_LEFT => usize::from(record.source),
            _ => match self.lanes.get(usize::from(record.source)) {
                Some(lane) => lane.node as usize,
                None => return false,
            },
        };
        self.nodes.get(node).and_then(|node| node.end).is_some_and(|end| record.time > end)
    }

    fn run_event(&mut self, record: &Record) {
        let Some(node) = self.nodes.get_mut(usize::from(record.source)) else {
            self.unknown += 1;
            return;
        };
        if record.event == Event::RUN_START {
            self.start = Some(self.start.map_or(record.time, |start| start.min(record.time)));
        } else {
            node.end = Some(record.time);
            self.ended = true;
        }
    }

    /// An instance has arrived that its guard holds up to the end.
    #[cold]
    fn hold(&mut self, record: &Record) {
        let Some(Held { job, nominal, deadline, .. }) = Held::read(record) else { return };
        match self.operations.get(job.operation.index()) {
            Some(operation) => {
                let task = &mut self.tasks[operation.task as usize];
                task.see(operation.is_first, job.instance, Dates { nominal, deadline }, &mut self.samples);
            }
            None => self.unknown += 1,
        }
    }

    /// What was lost: records, or a message.
    #[cold]
    fn loss_event(&mut self, record: &Record) {
        if let Some(lost) = Lost::read(record) {
            self.lost = self.lost.saturating_add(lost.records);
            return;
        }
        if let Some(left) = NodeLeft::read(record) {
            return self.leave(left, record.time);
        }
        if let Some(steal) = Steal::read(record) {
            return self.steal(record.cpu, steal.amount);
        }
        match self.operations.get(record.job_numbers().0).filter(|_| record.event == Event::MESSAGE_LOST) {
            Some(operation) => self.tasks[operation.task as usize].messages_lost += 1,
            None => self.unknown += 1,
        }
    }

    /// A record that comes when a node has ended: only what was stolen up to then can count still.
    #[cold]
    fn count_late(&mut self, record: &Record) {
        match Steal::read(record) {
            Some(steal) => self.steal(record.cpu, steal.amount),
            None => self.after_end += 1,
        }
    }

    /// A hypervisor has taken so much of a processor.
    fn steal(&mut self, cpu: u16, amount: Duration) {
        let nodes = self.nodes.iter_mut().zip(&self.metadata.nodes);
        for (node, _) in nodes.filter(|(_, entry)| entry.cpus.contains(&cpu)) {
            node.stolen_ns = node.stolen_ns.saturating_add(amount.as_nanos().max(0).unsigned_abs());
        }
    }

    /// The beginning was not recorded, or is lost: what is told begins at `time`.
    #[cold]
    fn begin_late(&mut self, time: Instant) {
        self.start = Some(time);
        self.samples.begin(time);
    }

    /// What the record says of a job is read where its event is known, so that only its fields are.
    #[inline]
    fn job_event(&mut self, record: &Record) {
        if self.start.is_none() {
            self.begin_late(record.time);
        }
        let ((index, instance), time_ns) = (record.job_numbers(), record.time.as_nanos());
        let Some(operation) = self.operations.get_mut(index) else {
            self.unknown += 1;
            return;
        };
        let task = &mut self.tasks[operation.task as usize];
        let lane = &mut self.lanes[operation.lane as usize];
        let samples = &mut self.samples;
        if let Some(Release { nominal, deadline, .. }) = Release::read(record) {
            operation.released += 1;
            operation.begin(instance, nominal.as_nanos(), deadline.as_nanos());
            if operation.is_first {
                let jitter_ns = task.jitter_ns(instance);
                let meant_ns = nominal.as_nanos().saturating_add(jitter_ns);
                operation.lateness.record(time_ns.saturating_sub(meant_ns));
            }
            task.see(operation.is_first, instance, Dates { nominal, deadline }, samples);
        } else if let Some(start) = Start::read(record) {
            lane.get_processor(time_ns);
            lane.jobs += 1;
            lane.max_queue = lane.max_queue.max(start.depth);
            self.nodes[lane.node as usize].job_switches += 1;
        } else if let Some(Complete { nominal, deadline, .. }) = Complete::read(record) {
            lane.leave_processor(time_ns);
            operation.completed += 1;
            let in_time = record.time <= deadline;
            let is_unseen = operation.is_unseen(instance);
            operation.end(instance, if in_time { Verdict::InTime } else { Verdict::Missed });
            operation.response.record(time_ns.saturating_sub(nominal.as_nanos()));
            let dates = Dates { nominal, deadline };
            let is_new = task.see(operation.is_first, instance, dates, samples);
            operation.released += u64::from(is_unseen || is_new && operation.is_alone());
            if operation.is_last {
                task.complete_one(instance, time_ns, samples);
            }
        } else if let Some(Abort { nominal, deadline, running, .. }) = Abort::read(record) {
            if running.0 {
                lane.leave_processor(time_ns);
            }
            operation.aborted += 1;
            let verdict = if record.deadline().is_some() { Verdict::Missed } else { Verdict::NoDeadline };
            let is_unseen = operation.is_unseen(instance);
            operation.end(instance, verdict);
            let dates = Dates { nominal, deadline };
            let is_new = task.see(operation.is_first, instance, dates, samples);
            operation.released += u64::from(is_unseen || is_new && operation.is_alone());
            task.abort(instance, verdict, samples);
        } else {
            match record.event {
                Event::RESUME => {
                    lane.get_processor(time_ns);
                    self.nodes[lane.node as usize].job_switches += 1;
                }
                Event::PREEMPT => {
                    lane.leave_processor(time_ns);
                    operation.preemptions += 1;
                    self.nodes[lane.node as usize].preemptions += 1;
                }
                Event::WAIT => lane.leave_processor(time_ns),
                // Its event is among those that have expired.
                Event::SKIP if record.arg == SkipReason::Expired as u16 => task.expire(instance),
                Event::SKIP if record.arg == SkipReason::Merged as u16 => task.merge(instance),
                Event::SKIP => task.skip(instance, samples),
                _ => unreachable!("an event of a job's life"),
            }
        }
    }
}

/// Busy time as a share of what `processors` could have given.
fn share(busy_ns: i64, duration_ns: i64, processors: usize) -> f64 {
    if duration_ns > 0 { busy_ns as f64 / duration_ns as f64 / processors as f64 } else { 0.0 }
}

impl Sink for Accounting {
    fn record(&mut self, record: Record) {
        if record.is_part() {
            return;
        }
        // Other families have their own readers.
        if record.event.family() > builtin::JOB.number {
            let is_of_chains = [builtin::PORT.number, builtin::EVENT.number].contains(&record.event.family())
                || record.event == Event::RECEIVE;
            if is_of_chains && !self.chains.is_empty() {
                self.chains.port_event(&record);
            }
            if record.event.family() == builtin::EVENT.number {
                self.subscriptions.record(&record);
            }
            return;
        }
        if self.ended && (record.event == Event::STEAL || self.is_after_end(&record)) {
            return self.count_late(&record);
        }
        if record.time.as_nanos() > self.samples.boundary_ns() {
            if self.start.is_none() {
                self.begin_late(record.time);
            }
            self.close_samples(record.time.as_nanos());
        }
        self.last = self.last.max(record.time);
        match record.event {
            Event::RELEASE
            | Event::START
            | Event::PREEMPT
            | Event::RESUME
            | Event::COMPLETE
            | Event::SKIP
            | Event::ABORT
            | Event::WAIT => {
                self.job_event(&record);
                if !self.chains.is_empty() {
                    self.chains.job_event(&record);
                }
            }
            Event::HELD => self.hold(&record),
            Event::RUN_START | Event::RUN_END => self.run_event(&record),
            Event::THREAD | Event::JOB_WCET => {}
            _ => self.loss_event(&record),
        }
    }

    fn define(&mut self, definition: &Definition) {
        self.metadata.define(definition);
        if let Definition::Operation { number, .. } = definition
            && let Some(entry) = self.metadata.operations.get(*number)
        {
            self.operations[*number].lane = entry.lane as u32;
            let task = &self.metadata.tasks[entry.task];
            self.tasks[entry.task].kind = Kind::of(task.criticality);
        }
    }
}

impl LaneState {
    #[inline]
    fn get_processor(&mut self, time_ns: i64) {
        if self.running == self.processors {
            // The record of a job leaving its processor was lost; it left by now.
            return;
        }
        self.running += 1;
        self.busy_ns = self.busy_ns.wrapping_sub(time_ns);
    }

    #[inline]
    fn leave_processor(&mut self, time_ns: i64) {
        if self.running > 0 {
            self.running -= 1;
            self.busy_ns = self.busy_ns.wrapping_add(time_ns);
        }
    }

    fn busy_until(&self, end_ns: i64) -> i64 {
        self.busy_ns.wrapping_add(end_ns.wrapping_mul(i64::from(self.running)))
    }
}
