//! The replay: what is known of every job, and what that says about each record and about the time in between.
//!
//! Several records fall on one instant, and only the last state of an instant lasts. So releases, ends and beginnings are
//! judged when their records come, and who runs is judged when the instant is over.

use super::Coverage;
use super::instances::{Instances, Progress};
use super::length;
use super::order::{LaneOrder, LastRan, Ready};
use super::report::{Finding, Findings, Rule, VerifyReport};
use crate::occupancy::{Occupancy, Occupant};
use crate::{Event, JobId, Metadata, Origin, Record};
use std::collections::BTreeMap;
use talea_model::{LaneDispatch, System};
use talea_policy::job::Job;
use talea_policy::strategy::Plan;
use talea_time::{Duration, Instant, Work};

/// A state that is wrong if it lasts.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    rule: Rule,
    since: Instant,
    /// Who has what it should not have, if somebody has.
    running: Option<JobId>,
    waiting: JobId,
}

/// What is known of one lane of the plan.
#[derive(Debug)]
pub(super) struct Lane {
    pub node: usize,
    pub level: usize,
    pub order: LaneOrder,
    /// Released and unfinished, by packed job.
    pub ready: BTreeMap<u64, Ready>,
    /// The unfinished job that last executed.
    pub last_ran: Option<u64>,
    /// The job that got a processor in this instant.
    chosen: Option<u64>,
    pub hearing: Hearing,
    /// Something was released into it, ended, or got a processor in this instant.
    touched: bool,
    /// It is ready and does not run, and why that would be wrong.
    starved: Option<Suspicion>,
    /// It runs a job although another one is before it.
    misordered: Option<Suspicion>,
}

/// Whether it is known what a lane does, which may have begun to run a job before the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    Awaited,
    Begun,
}

/// Since when the instances of a task are known from their beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    FromTheBeginning,
    /// From the next first release on.
    AfterLoss,
    /// The recording began with the run under way, in every ring at another instant: from the second first release on.
    Joining,
    From(u64),
}

/// Whether the beginning of the run is in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    Awaited,
    Passed,
}

#[derive(Debug)]
pub(super) struct Judge<'a> {
    beginning: Beginning,
    pub trace: &'a Metadata,
    /// What the trace's tables should be.
    pub expected: Metadata,
    pub system: &'a System,
    pub tolerance: Duration,
    pub coverage: Coverage,
    pub lanes: Vec<Lane>,
    /// Position of each operation in its lane.
    pub ranks: Vec<u32>,
    pub instances: Vec<Instances>,
    pub known: Vec<Known>,
    pub now: Instant,
    pub findings: Findings,
    pub unjudged: u64,
    pub lost: u64,
    jobs: u64,
    occupancy: Occupancy,
    node_touched: Vec<bool>,
    /// Whether the node has more than one lane.
    has_levels: Vec<bool>,
    ends: Vec<Option<Instant>>,
    /// Jobs that began in this instant, and no record of their release had come yet.
    unreleased: Vec<Record>,
    /// Operations already found in another lane.
    misplaced: Vec<bool>,
}

impl<'a> Judge<'a> {
    pub fn new(
        trace: &'a Metadata,
        expected: Metadata,
        system: &'a System,
        plans: &[Plan],
        tolerance: Duration,
    ) -> Self {
        let of_plans = plans.iter().enumerate();
        let lanes: Vec<(usize, &talea_policy::strategy::Lane)> =
            of_plans.flat_map(|(node, plan)| plan.lanes.iter().map(move |lane| (node, lane))).collect();
        let mut ranks = vec![0; expected.operations.len()];
        for (rank, member) in lanes.iter().flat_map(|(_, lane)| lane.members.iter().enumerate()) {
            ranks[member.index()] = rank as u32;
        }
        let lane = |(node, lane): (usize, &talea_policy::strategy::Lane)| Lane {
            node,
            level: lane.level,
            order: LaneOrder { discipline: lane.discipline, rules: lane.rules },
            ready: BTreeMap::new(),
            last_ran: None,
            chosen: None,
            hearing: Hearing::Begun,
            touched: false,
            starved: None,
            misordered: None,
        };
        let mut judge = Judge {
            trace,
            system,
            tolerance,
            coverage: Coverage::whole(trace),
            lanes: lanes.into_iter().map(lane).collect(),
            ranks,
            instances: (0..trace.tasks.len()).map(|task| Instances::new(trace, task)).collect(),
            beginning: Beginning::Awaited,
            known: vec![Known::FromTheBeginning; trace.tasks.len()],
            now: trace.start,
            findings: Findings::new(),
            unjudged: 0,
            lost: 0,
            jobs: 0,
            occupancy: Occupancy::new(&expected),
            node_touched: vec![false; trace.nodes.len()],
            has_levels: plans.iter().map(|plan| plan.lanes.len() > 1).collect(),
            ends: vec![None; trace.nodes.len()],
            unreleased: Vec::new(),
            misplaced: vec![false; trace.operations.len()],
            expected,
        };
        judge.compare_plans();
        judge
    }

    pub fn is_simulated(&self) -> bool {
        matches!(self.trace.origin, Origin::Simulation { .. })
    }

    /// Takes the next record.
    pub fn take(&mut self, record: &Record) {
        if record.time > self.now {
            self.end_instant();
            self.advance(record.time);
        }
        match record.event {
            event if event.is_job() => {
                if std::mem::replace(&mut self.beginning, Beginning::Passed) == Beginning::Awaited {
                    // The recording began when the run was under way.
                    self.known.fill(Known::Joining);
                    self.occupancy.doubt_everything();
                    self.lanes.iter_mut().for_each(|lane| lane.hearing = Hearing::Awaited);
                }
                self.job_event(record);
            }
            Event::RUN_START => self.beginning = Beginning::Passed,
            Event::LOST if record.source != Record::KERNEL => self.forget(record),
            Event::RUN_END => self.end_node(usize::from(record.source)),
            _ => {}
        }
        self.occupancy.apply(record);
        self.touch_nodes(record);
    }

    /// Who has the processors of a node is judged anew after each record that may have changed it: a job's thread gets
    /// its processor from the kernel some time before or after the job says so.
    fn touch_nodes(&mut self, record: &Record) {
        let is_of_processor = match record.event {
            Event::SWITCH | Event::IRQ_ENTER | Event::IRQ_EXIT | Event::WAKE | Event::SLEEP => true,
            // A thread that has the processor already is known from now on.
            Event::THREAD => return self.node_touched.fill(true),
            event => event == Event::LOST && record.source == Record::KERNEL,
        };
        if !is_of_processor {
            return;
        }
        for (node, touched) in self.node_touched.iter_mut().enumerate() {
            let processors = self.occupancy.processors(node);
            *touched |= processors.iter().any(|processor| processor.cpu == record.cpu);
        }
    }

    pub fn finish(mut self) -> VerifyReport {
        self.end_instant();
        (0..self.ends.len()).for_each(|node| self.end_node(node));
        let unheard_nodes = self.coverage.unheard(self.trace);
        let (rules, violations) = self.findings.finish();
        VerifyReport {
            system: self.expected.system,
            strategy: self.expected.strategy,
            strategy_of_trace: self.trace.strategy.clone(),
            tolerance_ns: self.tolerance.as_nanos(),
            jobs: self.jobs,
            unjudged: self.unjudged,
            unheard_nodes,
            unidentified_nodes: self.coverage.unidentified(self.trace),
            lost_records: self.lost,
            rules,
            violations,
        }
    }

    /// The lanes of the trace and those of the plan.
    fn compare_plans(&mut self) {
        for index in 0..self.trace.operations.len() {
            let of = |metadata: &Metadata| {
                let lane = &metadata.lanes[metadata.operations[index].lane];
                format!("level {} \"{}\" ({})", lane.level, lane.label, lane.discipline)
            };
            self.findings.count_case(Rule::Plan);
            let (is, should) = (of(self.trace), of(&self.expected));
            if is != should {
                let name = &self.trace.operations[index].name;
                let text = format!("{name} is in lane {is}; the plan puts it into {should}");
                let (at, duration) = (self.trace.start, Duration::ZERO);
                self.findings.add(
                    self.trace,
                    Finding { rule: Rule::Plan, at, duration, job: None, other: None },
                    || text,
                );
                self.misplaced[index] = true;
            }
        }
    }

    /// A violation at this instant.
    pub fn find(&mut self, rule: Rule, job: JobId, other: Option<JobId>, text: impl FnOnce() -> String) {
        let finding = Finding { rule, at: self.now, duration: Duration::ZERO, job: Some(job), other };
        self.findings.add(self.trace, finding, text);
    }

    fn job_event(&mut self, record: &Record) {
        let job = record.job();
        let Some(entry) = self.expected.operations.get(job.operation.index()) else {
            return self.find(Rule::Life, job, None, || "the system has no such operation".into());
        };
        let lane = entry.lane;
        if self.ends[self.lanes[lane].node].is_some_and(|end| record.time > end) {
            return;
        }
        self.check_lane(record);
        if !matches!(record.event, Event::RELEASE | Event::SKIP) {
            self.lanes[lane].hearing = Hearing::Begun;
        }
        if self.is_half_known(record) {
            self.unjudged += 1;
            return self.pass_by(record, lane);
        }
        self.findings.count_case(Rule::Life);
        match record.event {
            Event::RELEASE => self.release(record, lane),
            Event::START | Event::RESUME => self.begin(record, lane),
            Event::PREEMPT => self.stop(job, lane),
            Event::COMPLETE => self.complete(job, lane),
            Event::ABORT => self.abort(record, lane),
            _ => self.skip(record),
        }
        // Neither a preemption nor a skip has the lane choose anew.
        self.lanes[lane].touched |= !matches!(record.event, Event::PREEMPT | Event::SKIP);
        self.node_touched[self.lanes[lane].node] = true;
    }

    /// A job that is not judged has the lane, or leaves it: what it last ran decides between equals.
    fn pass_by(&mut self, record: &Record, lane: usize) {
        let job = record.job();
        match record.event {
            Event::START | Event::RESUME => self.lanes[lane].last_ran = Some(job.pack()),
            Event::COMPLETE | Event::ABORT => drop(self.leave(job, lane)),
            _ => {}
        }
    }

    /// Whether the job is of an instance that was under way when the recording began.
    fn is_half_known(&mut self, record: &Record) -> bool {
        let job = record.job();
        let entry = &self.trace.operations[job.operation.index()];
        let known = &mut self.known[entry.task];
        let is_release =
            matches!(record.event, Event::RELEASE | Event::SKIP) && entry.predecessors.is_empty();
        if *known == Known::Joining && is_release {
            *known = Known::From(job.instance + 1);
        }
        match *known {
            Known::Joining => true,
            Known::From(first) => self.lost == 0 && job.instance < first,
            Known::FromTheBeginning | Known::AfterLoss => false,
        }
    }

    /// Whether the record is from the lane that the trace itself says.
    fn check_lane(&mut self, record: &Record) {
        let index = record.job().operation.index();
        let said = self.trace.operations[index].lane;
        if usize::from(record.source) != said && !std::mem::replace(&mut self.misplaced[index], true) {
            let (source, job) = (record.source, record.job());
            self.find(Rule::Plan, job, None, || {
                format!("it was served by lane {source} instead of lane {said}")
            });
        }
    }

    /// Enters a released job; `release` is the instant that the policy orders by.
    pub fn enter(&mut self, record: &Record, lane: usize, release: Instant) {
        let job = record.job();
        let operation = job.operation.index();
        let policy_job = Job {
            release,
            deadline: Instant::from_nanos(record.words[1] as i64),
            wcet: self.expected.operations[operation].wcet,
            rank: self.ranks[operation],
            number: job.instance,
            tag: 0,
        };
        let (service, running, begun) = (Work::ZERO, None, false);
        let ready = Ready { job: policy_job, released: self.now, service, running, begun };
        self.lanes[lane].ready.insert(job.pack(), ready);
        self.jobs += 1;
    }

    fn begin(&mut self, record: &Record, lane: usize) {
        let (job, now) = (record.job(), self.now);
        let Some(ready) = self.lanes[lane].ready.get_mut(&job.pack()) else {
            // Rings are merged by time alone: the release of this very instant may come right after.
            return self.unreleased.push(*record);
        };
        let wrong = match (record.event, ready.begun, ready.running) {
            (_, _, Some(_)) => Some("it got a processor while it had one"),
            (Event::START, true, _) => Some("it began twice"),
            (Event::RESUME, false, _) => Some("it went on before it had begun"),
            _ => None,
        };
        ready.begun = true;
        ready.running = Some(now);
        self.lanes[lane].chosen = Some(job.pack());
        if let Some(text) = wrong {
            self.find(Rule::Life, job, None, || text.into());
        }
    }

    /// The job loses its processor.
    fn stop(&mut self, job: JobId, lane: usize) {
        let now = self.now;
        let lane = &mut self.lanes[lane];
        let Some(ready) = lane.ready.get_mut(&job.pack()) else { return self.unknown(job) };
        if ready.running.is_none() {
            return self.find(Rule::Life, job, None, || "it lost a processor that it did not have".into());
        }
        ready.service = ready.executed(now);
        ready.running = None;
        if lane.chosen == Some(job.pack()) {
            lane.chosen = None;
        }
    }

    /// The job is over. Returns whether it was known.
    pub fn leave(&mut self, job: JobId, lane: usize) -> Option<Ready> {
        let lane = &mut self.lanes[lane];
        let ready = lane.ready.remove(&job.pack());
        if lane.last_ran == Some(job.pack()) {
            lane.last_ran = None;
        }
        if lane.chosen == Some(job.pack()) {
            lane.chosen = None;
        }
        ready
    }

    /// A record about a job of which nothing else is known.
    pub fn unknown(&mut self, job: JobId) {
        let task = self.trace.operations[job.operation.index()].task;
        let is_known = match self.known[task] {
            Known::FromTheBeginning => true,
            Known::From(first) => job.instance >= first,
            Known::AfterLoss | Known::Joining => false,
        };
        if self.lost > 0 || !is_known {
            self.unjudged += 1;
        } else {
            self.find(Rule::Life, job, None, || "it was not released, or had ended".into());
        }
    }

    /// Time goes on: whoever has a processor executes.
    fn advance(&mut self, now: Instant) {
        self.now = now;
        for lane in &mut self.lanes {
            let executing =
                lane.ready.iter().find(|(_, ready)| ready.running.is_some_and(|since| since < now));
            if let Some((job, _)) = executing {
                lane.last_ran = Some(*job);
            }
        }
    }

    /// Judges the state in which an instant leaves the processors.
    fn end_instant(&mut self) {
        for record in std::mem::take(&mut self.unreleased) {
            let lane = self.expected.operations[record.job().operation.index()].lane;
            if self.lanes[lane].ready.contains_key(&record.causal) {
                self.begin(&record, lane);
            } else {
                // From now on it is the job that the lane last ran.
                self.lanes[lane].last_ran = None;
                self.unknown(record.job());
            }
        }
        for lane in 0..self.lanes.len() {
            if std::mem::take(&mut self.lanes[lane].touched) {
                self.judge_order(lane);
            }
            self.lanes[lane].chosen = None;
        }
        for node in 0..self.node_touched.len() {
            if std::mem::take(&mut self.node_touched[node]) {
                self.judge_node(node);
            }
        }
    }

    /// Whether the lane runs the job that it should.
    fn judge_order(&mut self, index: usize) {
        let lane = &self.lanes[index];
        let mut running = lane.ready.iter().filter(|(_, ready)| ready.running.is_some());
        let (first, second) = (running.next(), running.next());
        let Some((&own, ready)) = first else { return self.suspect_order(index, None) };
        if lane.ready.len() > 1 {
            self.findings.count_case(Rule::Order);
        }
        if let (Some((&other, _)), true) = (second, self.is_simulated()) {
            let (job, other) = (JobId::unpack(own), Some(JobId::unpack(other)));
            return self.find(Rule::Life, job, other, || "two jobs of a lane have processors".into());
        }
        let better = self.better(lane, own, ready);
        if lane.order.rules.dispatch == LaneDispatch::Preemptive {
            let (since, running) = (self.now, Some(JobId::unpack(own)));
            let suspicion = better.map(|waiting| Suspicion { rule: Rule::Order, since, running, waiting });
            return self.suspect_order(index, suspicion);
        }
        if lane.chosen != Some(own) || ready.service > Work::ZERO {
            return;
        }
        if lane.ready.len() > 1 {
            self.findings.count_case(Rule::NonPreemption);
        }
        let begun = lane.ready.iter().find(|(job, other)| **job != own && other.service > Work::ZERO);
        if let Some((&other, _)) = begun {
            let (job, other) = (JobId::unpack(own), Some(JobId::unpack(other)));
            self.find(Rule::NonPreemption, job, other, || "it got the lane of a job that had begun".into());
        } else if let Some(other) = better {
            let job = JobId::unpack(own);
            self.find(Rule::Order, job, Some(other), || {
                "it got the lane before a job that comes first".into()
            });
        }
    }

    /// The job of the lane that should have it instead of `own`, if there is one.
    fn better(&self, lane: &Lane, own: u64, ready: &Ready) -> Option<JobId> {
        let in_time = |other: &Ready| other.released.saturating_add(self.tolerance) <= self.now;
        let preemptive = lane.order.rules.dispatch == LaneDispatch::Preemptive;
        let outranks = |(job, other): &(&u64, &Ready)| {
            let last_ran = match lane.last_ran {
                Some(last) if last == own => LastRan::Running,
                Some(last) if last == **job => LastRan::Waiting,
                _ => LastRan::Neither,
            };
            lane.order.outranks(other, ready, last_ran, self.now, self.tolerance)
        };
        let others = lane.ready.iter().filter(|(job, _)| **job != own);
        let mut rivals = others.filter(|(_, other)| preemptive || in_time(other));
        rivals.find(outranks).map(|(job, _)| JobId::unpack(*job))
    }

    fn suspect_order(&mut self, index: usize, suspicion: Option<Suspicion>) {
        let known = self.lanes[index].misordered;
        let lasts = known.zip(suspicion).is_some_and(|(known, new)| known.running == new.running);
        if !lasts {
            self.lanes[index].misordered = suspicion;
            self.conclude(known);
        }
    }

    /// Whether a lane of the node waits that should run.
    fn judge_node(&mut self, node: usize) {
        if !self.coverage.identifies(node) {
            return;
        }
        let count = self.occupancy.processors(node).len();
        let occupants: Vec<Occupant> = (0..count).map(|index| self.occupancy.occupant(node, index)).collect();
        let idle = occupants.iter().any(|who| matches!(who, Occupant::Idle | Occupant::Lane(_)));
        let level = |job: JobId| self.occupancy.lane_of(job).map(|lane| self.lanes[lane].level);
        let lowest = occupants
            .iter()
            .filter_map(|who| match who {
                Occupant::Job(job) => Some((level(*job)?, *job)),
                _ => None,
            })
            .max_by_key(|(level, _)| *level);
        // Whoever a lane ran before the recording may have any processor.
        let awaited = |lane: &Lane| lane.node == node && lane.hearing == Hearing::Awaited;
        if self.lanes.iter().any(awaited) {
            return;
        }
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            if lane.node != node {
                continue;
            }
            // The job it runs may be one of which only that is known.
            let runs =
                lane.ready.values().any(|ready| ready.running.is_some()) || self.occupancy.runs(node, index);
            let oldest = lane.ready.iter().min_by_key(|(_, ready)| ready.released);
            // After a loss, a processor that has not been heard of may run a job of this very lane.
            let is_known = !runs && !occupants.contains(&Occupant::Unknown);
            if oldest.is_some() && (runs || is_known) {
                self.findings.count_case(Rule::Idle);
                if self.has_levels[node] {
                    self.findings.count_case(Rule::Lanes);
                }
            }
            let suspicion = oldest.filter(|_| is_known).and_then(|(job, _)| {
                let (since, waiting) = (self.now, JobId::unpack(*job));
                match lowest.filter(|(level, _)| *level > lane.level) {
                    Some((_, job)) => {
                        Some(Suspicion { rule: Rule::Lanes, since, running: Some(job), waiting })
                    }
                    None => idle.then_some(Suspicion { rule: Rule::Idle, since, running: None, waiting }),
                }
            });
            self.suspect_lane(index, suspicion);
        }
    }

    fn suspect_lane(&mut self, index: usize, suspicion: Option<Suspicion>) {
        let known = self.lanes[index].starved;
        let lasts = known.zip(suspicion).is_some_and(|(known, new)| known.rule == new.rule);
        if !lasts {
            self.lanes[index].starved = suspicion;
            self.conclude(known);
        }
    }

    /// A suspicious state is over; it was a violation if it lasted.
    fn conclude(&mut self, suspicion: Option<Suspicion>) {
        let Some(Suspicion { rule, since, running, waiting }) = suspicion else { return };
        let duration = length(since, self.now);
        if duration <= self.tolerance {
            if duration > Duration::ZERO {
                self.findings.tolerate(rule, duration);
            }
            return;
        }
        let (job, other) = (running.or(Some(waiting)), running.map(|_| waiting));
        self.findings.add(self.trace, Finding { rule, at: since, duration, job, other }, || match rule {
            Rule::Lanes => "it ran while a job of a higher lane was ready".into(),
            Rule::Idle => "it was ready while a processor idled".into(),
            _ => "it kept the lane while a job that comes first waited".into(),
        });
    }

    /// Nothing of the node counts after this instant.
    fn end_node(&mut self, node: usize) {
        if self.ends.get(node).is_none_or(Option::is_some) {
            return;
        }
        self.ends[node] = Some(self.now);
        for index in 0..self.lanes.len() {
            if self.lanes[index].node == node {
                let lane = &mut self.lanes[index];
                let (starved, misordered) = (lane.starved.take(), lane.misordered.take());
                lane.ready.clear();
                (lane.touched, lane.chosen) = (false, None);
                self.conclude(starved);
                self.conclude(misordered);
            }
        }
    }

    /// Records were lost: what was known may not be so any more.
    fn forget(&mut self, record: &Record) {
        self.lost = self.lost.saturating_add(record.words[0]);
        for lane in &mut self.lanes {
            lane.ready.clear();
            (lane.last_ran, lane.chosen, lane.starved, lane.misordered) = (None, None, None, None);
        }
        for (instances, known) in self.instances.iter_mut().zip(&mut self.known) {
            instances.list.clear();
            *known = Known::AfterLoss;
        }
    }

    fn complete(&mut self, job: JobId, lane: usize) {
        let Some(ready) = self.leave(job, lane) else { return self.unknown(job) };
        if !ready.begun || ready.running.is_none() && self.is_simulated() {
            self.find(Rule::Life, job, None, || "it completed without having a processor".into());
        }
        self.completes(job);
    }

    fn abort(&mut self, record: &Record, lane: usize) {
        let job = record.job();
        if self.leave(job, lane).is_none() {
            return self.unknown(job);
        }
        self.check_abort(record);
        let task = self.trace.operations[job.operation.index()].task;
        self.instances[task].set(job, Progress::Aborted(self.now));
    }
}
