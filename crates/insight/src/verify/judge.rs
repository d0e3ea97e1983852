//! The replay: what is known of every job, and whom to ask about each record and about the time in between.
//!
//! Several records fall on one instant, and only the last state of an instant lasts. So releases, ends and beginnings are
//! judged when their records come, and who runs is judged when the instant is over. What is judged stands by rules in
//! `plans`, `lives`, `releases`, `choices` and `processors`.

use super::Coverage;
use super::arrivals::Arrivals;
use super::choosing::{Choosing, Heard};
use super::events::Events;
use super::guards::Guards;
use super::idle_points::IdlePoints;
use super::inheritance::Inheritance;
use super::instances::Instances;
use super::merging::Merging;
use super::order::{LaneOrder, Ready};
use super::report::{Certainty, Finding, Findings, Rule, VerifyReport};
use super::service::Services;
use super::suspicion::Suspicion;
use super::values::Values;
use crate::hierarchy::Hierarchies;
use crate::occupancy::Occupancy;
use crate::own_wcets::OwnWcets;
use std::collections::{BTreeMap, HashSet};
use talea_model::{LaneDispatch, Scheduling, System};
use talea_policy::strategy::Plan;
use talea_record::event::{ChangeKind, Lost, RunOutcome, Typed};
use talea_record::{Event, JobId, LaneEntry, Metadata, OperationEntry, Origin, Record};
use talea_time::{Duration, Instant};

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
    /// Since when it may have made the choice that it tells next.
    pub choosing: Choosing,
    /// The job that got a processor in this instant.
    pub chosen: Option<u64>,
    /// A job that executes another one, which was posted, in its midst, and that one.
    pub within: Option<(u64, u64)>,
    /// The job that came first when the lane, a preemptive one, had no thread for it.
    pub without_slot: Option<u64>,
    /// Something was released into it, ended, or got a processor in this instant.
    pub touched: bool,
    /// A job of its own was released, began or ended since its choice was judged last. Lanes of real threads choose anew then, and not when
    /// another lane is done.
    pub has_to_choose: bool,
    /// It is ready and does not run, and why that would be wrong.
    pub starved: Option<Suspicion>,
    /// It runs a job although another one is before it.
    pub misordered: Option<Suspicion>,
}

/// Whether something has happened in a lane, and whether it has to choose because of that.
#[derive(Clone, Copy, Debug)]
struct Choice {
    touched: bool,
    has_to_choose: bool,
}

/// Since when the instances of a task are known from their beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    FromTheBeginning,
    /// From the next release of a first operation on, but not before this instance, which none had reached when records were lost.
    AfterLoss(u64),
    /// The recording began with the run under way, in every ring at another instant: from the second first release on.
    Joining,
    From(u64),
}

impl Known {
    /// The first instance that may be known from its beginning.
    fn least(self) -> u64 {
        match self {
            Known::FromTheBeginning | Known::Joining => 0,
            Known::AfterLoss(first) | Known::From(first) => first,
        }
    }
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
    /// By node: whether its lanes, by the rules of strategies, decide what runs on it. Elsewhere schedulers do: when lanes have a processor is
    /// theirs to say, and what the lanes do with it is judged all the same.
    pub lanes_decide: Vec<bool>,
    /// As the expected tables number them.
    pub lanes: Vec<Lane>,
    /// Position of each operation in its lane.
    pub ranks: Vec<u32>,
    /// The place of the next job that is posted in a simulation, behind all members of its lane.
    pub next_rank: u32,
    pub instances: Vec<Instances>,
    /// By task.
    pub merging: Vec<Merging>,
    /// The job of which the release was the last record, with what was known of its lane before.
    entered: Option<(JobId, Choice)>,
    pub known: Vec<Known>,
    pub now: Instant,
    pub findings: Findings,
    pub guards: Guards,
    pub idle_points: IdlePoints,
    pub own_wcets: OwnWcets,
    pub arrivals: Arrivals,
    pub services: Services,
    pub values: Values,
    pub events: Events,
    pub inheritance: Inheritance,
    /// How long a lane's thread may dispatch while a job is ready.
    pub overhead: Duration,
    pub unjudged: u64,
    pub lost: u64,
    /// Records that were lost and are not about jobs: of the kernel, and of threads without a ring.
    lost_of_others: u64,
    pub jobs: u64,
    pub bursts: u64,
    pub occupancy: Occupancy,
    /// Whose turn it is, where schedulers decide.
    pub hierarchies: Hierarchies,
    pub node_touched: Vec<bool>,
    /// By node: when its threads were heard of last, of nodes of one processor in runs on threads.
    pub heard: Vec<Option<Heard>>,
    /// Whether the node has more than one lane.
    pub has_levels: Vec<bool>,
    /// By node.
    pub ends: Vec<Option<Instant>>,
    /// Jobs that began in this instant, and no record of their release had come yet.
    pub unreleased: Vec<Record>,
    /// Operations already found in another lane.
    pub misplaced: Vec<bool>,
    /// Likewise, as a record of it told.
    pub misplaced_by_record: Vec<bool>,
    /// Bursts that threads gave up, and when.
    pub given_up: Vec<(JobId, Instant)>,
    /// Who is no longer below some edge.
    left: HashSet<&'a str>,
    /// Posted operations of which nobody knows in which lane the plan would have them: no description has their period.
    unplaced: Vec<bool>,
}

impl<'a> Judge<'a> {
    pub fn new(
        trace: &'a Metadata,
        mut expected: Metadata,
        system: &'a System,
        plans: &[Plan],
        tolerance: Duration,
    ) -> Self {
        let described = expected.operations.len();
        // What was posted can only be taken as it was defined, in a lane of its place.
        let lane_of = |operation: &OperationEntry| {
            let known = &trace.lanes[operation.lane];
            let place = trace.place_name(known);
            let is_beside = |lane: &LaneEntry| {
                lane.node == known.node && expected.place_name(lane) == place && !lane.is_thread()
            };
            let same = expected.lanes.iter().position(|lane| is_beside(lane) && lane.level == known.level);
            same.or_else(|| expected.lanes.iter().rposition(is_beside))
        };
        let placed = |operation: &OperationEntry| OperationEntry {
            lane: lane_of(operation).unwrap_or(0),
            ..operation.clone()
        };
        let posted: Vec<OperationEntry> = trace.operations[described..].iter().map(placed).collect();
        expected.operations.extend(posted);
        expected.tasks.extend_from_slice(&trace.tasks[expected.tasks.len()..]);
        let unplaced = trace.operations.iter().enumerate().map(|(index, operation)| {
            let lane = &trace.lanes[operation.lane];
            let is_same = |other: &LaneEntry| {
                (other.node, other.level, &other.label) == (lane.node, lane.level, &lane.label)
            };
            let is_known = trace.strategy == expected.strategy && expected.lanes.iter().any(is_same);
            index >= described && !is_known
        });
        let unplaced = unplaced.collect();
        // It stands behind the members of its lane, in the order of its numbers.
        let mut ranks: Vec<u32> = (0..expected.operations.len() as u32).collect();
        let of_plans = plans.iter().flat_map(|plan| &plan.lanes);
        for (rank, member) in of_plans.flat_map(|lane| lane.members.iter().enumerate()) {
            ranks[member.index()] = rank as u32;
        }
        let lanes_decide = |node: usize| system.scheduling(node) != Scheduling::Hierarchy;
        let lane = |entry: &LaneEntry| Lane {
            node: entry.node,
            level: entry.level,
            order: plans[entry.node].lanes.get(entry.level).map_or(LaneOrder::OF_THREAD, LaneOrder::of),
            ready: BTreeMap::new(),
            last_ran: None,
            choosing: Choosing::new(trace.start),
            chosen: None,
            within: None,
            without_slot: None,
            touched: false,
            has_to_choose: false,
            starved: None,
            misordered: None,
        };
        let heeds_idle_points = |task: &talea_model::Task| task.sync.heeds_idle_points();
        let is_simulated = matches!(trace.origin, Origin::Simulation { .. });
        let has_idle_points = is_simulated && system.tasks.iter().any(heeds_idle_points);
        let mut judge = Judge {
            trace,
            system,
            tolerance,
            coverage: Coverage::whole(trace),
            lanes_decide: (0..trace.nodes.len()).map(lanes_decide).collect(),
            lanes: expected.lanes.iter().map(lane).collect(),
            ranks,
            merging: vec![Merging::default(); trace.tasks.len()],
            next_rank: 0,
            entered: None,
            instances: (0..trace.tasks.len()).map(|task| Instances::new(trace, system, task)).collect(),
            beginning: Beginning::Awaited,
            known: vec![Known::FromTheBeginning; trace.tasks.len()],
            now: trace.start,
            findings: Findings::new(),
            guards: Guards::new(system),
            idle_points: IdlePoints::new(trace.nodes.len(), has_idle_points),
            own_wcets: OwnWcets::default(),
            arrivals: Arrivals::new(trace, system),
            services: Services::new(system),
            values: Values::new(trace, system),
            events: Events::new(trace, system),
            inheritance: Inheritance::new(system, is_simulated, tolerance),
            overhead: super::default_overhead(trace.origin).max(tolerance),
            unjudged: 0,
            lost: 0,
            lost_of_others: 0,
            jobs: 0,
            bursts: 0,
            occupancy: Occupancy::new(&expected),
            hierarchies: Hierarchies::with_lanes(trace, &expected),
            node_touched: vec![false; trace.nodes.len()],
            heard: trace
                .nodes
                .iter()
                .map(|node| (!is_simulated && node.cpus.len() == 1).then(|| Heard::nothing(trace.start)))
                .collect(),
            has_levels: plans.iter().map(|plan| plan.lanes.len() > 1).collect(),
            ends: vec![None; trace.nodes.len()],
            unreleased: Vec::new(),
            misplaced: vec![false; trace.operations.len()],
            misplaced_by_record: vec![false; trace.operations.len()],
            given_up: Vec::new(),
            left: HashSet::new(),
            unplaced,
            expected,
        };
        judge.compare_plans();
        judge
    }

    /// Whether the task is one that no description has.
    pub fn is_posted(&self, task: usize) -> bool {
        self.trace.tasks[task].activity.is_posted()
    }

    /// Whether it is a posted job of the lane, which another one of that may execute in its midst.
    fn is_executed_within(&self, job: JobId, lane: usize) -> bool {
        let operation = job.operation.index();
        let expected = self.expected.operations.get(operation);
        expected.is_some_and(|entry| entry.lane == lane)
            && self.is_posted(self.trace.operations[operation].task)
    }

    /// Whether it is not known to which lane one of the jobs belongs. What rests on that cannot be judged.
    pub fn is_unplaced(&self, job: JobId, other: Option<JobId>) -> bool {
        let is_unplaced =
            |job: JobId| self.unplaced.get(job.operation.index()).is_some_and(|unplaced| *unplaced);
        is_unplaced(job) || other.is_some_and(is_unplaced)
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
        self.hear(record);
        match record.typed() {
            _ if record.event.is_job() => {
                if std::mem::replace(&mut self.beginning, Beginning::Passed) == Beginning::Awaited {
                    // The recording began when the run was under way.
                    self.known.fill(Known::Joining);
                    self.arrivals.join(record.time);
                    self.guards.forget();
                    self.idle_points.forget();
                    self.values.forget();
                    self.events.forget();
                }
                self.job_event(record);
            }
            Typed::JobWcet(told) => self.own_wcets.hear(told),
            Typed::Publish(publish) => self.publish(publish),
            Typed::Take(take) => self.take_values(take),
            Typed::Drop(drop) => self.drop_value(drop),
            Typed::Push(push) => self.push(push),
            Typed::Deliver(deliver) => self.deliver(deliver),
            Typed::Block(block) => self.block(block),
            Typed::Unblock(unblock) => self.unblock(unblock.job),
            Typed::Signal(signal) => self.signal(signal.job, record),
            Typed::Guard(guard) => self.waits_at_guard(guard.job),
            Typed::Open(open) => self.guards.open(open),
            Typed::Held(held) => self.check_held(held),
            Typed::NoSlot(told) => self.has_no_slot(told),
            Typed::Timer(timer) if usize::from(timer.node) < self.node_touched.len() => {
                self.hear_late(usize::from(timer.node), timer.due);
            }
            Typed::RunStart(start) => {
                self.beginning = Beginning::Passed;
                self.arrivals.plan_end(usize::from(start.node), start.planned_end);
            }
            Typed::EdgeChange(change) => {
                self.arrivals.forget_threads(self.trace);
                if change.what == ChangeKind::Removed {
                    self.left
                        .extend(self.trace.edges.get(change.edge as usize).map(|edge| edge.child.as_str()));
                }
            }
            Typed::Lost(lost) if lost.is_of_kernel() => self.forget_processors(lost),
            // What threads without a ring had to say is not about jobs.
            Typed::Lost(lost) if lost.ring == Record::NO_RING => {
                self.lost_of_others = self.lost_of_others.saturating_add(lost.records);
            }
            Typed::Lost(lost) => self.forget(lost),
            Typed::RunEnd(end) => {
                if end.how == RunOutcome::Over {
                    self.arrivals.end(usize::from(end.node));
                }
                self.end_node(usize::from(end.node));
            }
            // Of what its process had begun nothing more comes.
            Typed::NodeLeft(node) => self.end_node(node.left as usize),
            _ => {}
        }
        let kernel_was_heard = self.occupancy.hears_kernel();
        self.occupancy.apply(record);
        self.hierarchies.apply(record);
        if self.occupancy.hears_kernel() != kernel_was_heard {
            // From now on it has to tell of every processor.
            self.node_touched.fill(true);
        }
        self.touch_nodes(record);
    }

    pub fn finish(mut self) -> VerifyReport {
        self.end_instant();
        (0..self.ends.len()).for_each(|node| self.end_node(node));
        self.judge_numbers();
        self.judge_merged_last();
        self.judge_given_up();
        self.judge_unexplained();
        let unheard_nodes = self.coverage.unheard(self.trace);
        let below_schedulers = self.below_schedulers();
        let unrecorded = self.unrecorded();
        let (rules, violations) = self.findings.finish(&unrecorded);
        VerifyReport {
            system: self.expected.system,
            strategy: self.expected.strategy,
            strategy_of_trace: self.trace.strategy.clone(),
            tolerance_ns: self.tolerance.as_nanos(),
            jobs: self.jobs,
            bursts: self.bursts,
            unjudged: self.unjudged,
            unheard_nodes,
            unidentified_nodes: self.coverage.unidentified(self.trace),
            below_schedulers,
            has_kernel: self.occupancy.hears_kernel(),
            lost_records: self.lost.saturating_add(self.lost_of_others),
            impossible_records: 0,
            altered_stretches: 0,
            overhead_ns: self.overhead.as_nanos(),
            unrecorded,
            rules,
            violations,
        }
    }

    /// Whether it is a burst of a thread below schedulers.
    pub fn is_of_thread(&self, job: JobId) -> bool {
        self.trace.tasks[self.trace.operations[job.operation.index()].task].activity.is_thread()
    }

    /// Bursts are given up by threads that leave their hierarchy, and by no others. Where records were lost, that of the leaving may be
    /// among them.
    fn judge_given_up(&mut self) {
        if self.lost > 0 {
            return;
        }
        let (trace, left) = (self.trace, std::mem::take(&mut self.left));
        for (job, at) in std::mem::take(&mut self.given_up) {
            if !left.contains(trace.operations[job.operation.index()].name.as_str()) {
                self.now = at;
                self.find(Rule::Overrun, job, None, || "it was given up by a thread that stayed".into());
            }
        }
    }

    /// The names of the nodes with lanes whose having a processor is for schedulers to say.
    fn below_schedulers(&self) -> Vec<String> {
        let lanes = &self.expected.lanes;
        let has_lanes = |node: usize| lanes.iter().any(|lane| lane.node == node && !lane.is_thread());
        let nodes = self.trace.nodes.iter().enumerate();
        let below = nodes.filter(|(node, _)| !self.lanes_decide[*node] && has_lanes(*node));
        below.map(|(_, node)| node.name.clone()).collect()
    }

    /// A violation at this instant.
    pub fn find(&mut self, rule: Rule, job: JobId, other: Option<JobId>, text: impl FnOnce() -> String) {
        self.find_with(rule, Certainty::Certain, (job, other), text);
    }

    /// The same, or what may be one.
    pub fn find_with(
        &mut self,
        rule: Rule,
        certainty: Certainty,
        (job, other): (JobId, Option<JobId>),
        text: impl FnOnce() -> String,
    ) {
        let (at, duration) = (self.now, Duration::ZERO);
        let finding = Finding { rule, certainty, at, duration, judged: at, job: Some(job), other };
        self.findings.add(self.trace, finding, text);
    }

    /// Whether the run of the lane's node has ended, so that what is still under way there is nobody's to judge.
    pub(super) fn is_over(&self, lane: usize) -> bool {
        self.ends[self.lanes[lane].node].is_some_and(|end| self.now > end)
    }

    fn job_event(&mut self, record: &Record) {
        let job = record.job();
        let Some(entry) = self.expected.operations.get(job.operation.index()) else {
            return self.find(Rule::Life, job, None, || "the system has no such operation".into());
        };
        let lane = entry.lane;
        if self.is_over(lane) {
            return;
        }
        self.idle_points.take(self.lanes[lane].node, record);
        if let Typed::Release(release) = record.typed() {
            self.inheritance.see(&release);
            if self.expected.lanes[lane].is_thread() {
                // The controller tells of a burst that begins with its period.
                self.hear_late(self.lanes[lane].node, release.nominal);
            }
        }
        // A thread below schedulers is no lane: of its jobs is known only how far they are.
        let has_order = !self.expected.lanes[lane].is_thread();
        self.hear_arrival(record);
        self.check_merging(record);
        self.check_lane(record);
        if !has_order {
            if self.is_half_known(record) {
                self.unjudged += 1;
            } else {
                self.findings.count_case(Rule::Life);
                self.bursts += u64::from(record.event == Event::RELEASE);
                self.serve(record, has_order);
                self.check_alone(record);
            }
            return self.follow(record);
        }
        if record.event == Event::START {
            self.events.begins(job, record.time);
        }
        if matches!(record.event, Event::COMPLETE | Event::ABORT) {
            self.compare_events(job);
        }
        if let Typed::Start(start) = record.typed()
            && self.lanes[lane].order.rules.dispatch == LaneDispatch::NonPreemptive
        {
            self.values.begins(start.lane, record.time);
        }
        // Also a job that is not judged takes a processor or leaves it.
        self.node_touched[self.lanes[lane].node] = true;
        if self.is_half_known(record) || self.is_of_unknown_length(record) {
            self.unjudged += 1;
            if record.event == Event::RELEASE {
                self.guards.pass_by(job);
            }
            return self.pass_by(record, lane);
        }
        self.findings.count_case(Rule::Life);
        self.serve(record, has_order);
        match record.typed() {
            Typed::Release(release) => self.release(record, release, lane),
            Typed::Start(_) | Typed::Resume(_) => self.begin(record, lane),
            Typed::Preempt(preempt) => {
                self.stop(job, lane);
                self.lanes[lane].within = preempt
                    .by
                    .filter(|by| self.is_executed_within(*by, lane))
                    .map(|by| (job.pack(), by.pack()));
            }
            Typed::Wait(told) => self.wait(told, lane),
            Typed::Complete(_) => self.complete(job, lane),
            Typed::Abort(abort) => self.abort(abort, lane),
            Typed::Skip(skip) => self.skip(record, skip),
            _ => unreachable!("an event of a job's life"),
        }
        self.touch(record, lane);
    }

    /// What the record says of the lane's choice: neither a preemption nor a wait nor a skip has the lane choose anew.
    fn touch(&mut self, record: &Record, lane: usize) {
        let (job, entered) = (record.job(), self.entered.take());
        let known = &mut self.lanes[lane];
        let before = Choice { touched: known.touched, has_to_choose: known.has_to_choose };
        // Nor does a job that a guard has no room for: in simulations it is released and aborted at once, and never was in its lane.
        if let (Event::ABORT, Some((released, before)), Origin::Simulation { .. }) =
            (record.event, entered, &self.trace.origin)
            && released == job
        {
            (known.touched, known.has_to_choose) = (before.touched, before.has_to_choose);
            return;
        }
        known.touched |= !matches!(record.event, Event::PREEMPT | Event::WAIT | Event::SKIP);
        known.has_to_choose |=
            !matches!(record.event, Event::PREEMPT | Event::WAIT | Event::RESUME | Event::SKIP);
        self.entered = (record.event == Event::RELEASE).then_some((job, before));
    }

    /// A first job is released or skipped.
    fn hear_arrival(&mut self, record: &Record) {
        match record.typed() {
            Typed::Release(told) => self.arrived(told.job, told.nominal),
            Typed::Skip(told) => self.skipped(told.job, told.nominal),
            _ => {}
        }
    }

    /// Time goes on: whoever has a processor executes.
    fn advance(&mut self, now: Instant) {
        let stood = (self.now, now.saturating_since(self.now));
        self.now = now;
        let mut holders = None;
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            let executing =
                lane.ready.iter().find(|(_, ready)| ready.running.is_some_and(|since| since < now));
            match executing {
                Some((job, _)) => {
                    lane.last_ran = Some(*job);
                    lane.choosing.begin_anew();
                }
                None => self.count_choosing(index, stood, &mut holders),
            }
        }
    }

    /// Judges the state in which an instant leaves the processors.
    fn end_instant(&mut self) {
        self.check_guards();
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

    /// Nothing of the node counts after this instant.
    fn end_node(&mut self, node: usize) {
        if self.ends.get(node).is_none_or(Option::is_some) {
            return;
        }
        if self.beginning == Beginning::Awaited {
            self.arrivals.join(self.now);
        }
        self.judge_completeness(node);
        self.judge_unended(node);
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

    /// Records of the kernel were lost: who had the processors is not known since then.
    fn forget_processors(&mut self, lost: Lost) {
        self.lost_of_others = self.lost_of_others.saturating_add(lost.records);
        self.findings.withdraw(lost.since, |rule| Rule::OF_PROCESSORS.contains(&rule));
        for suspicion in self.lanes.iter_mut().filter_map(|lane| lane.starved.take()) {
            self.findings.leave_unknown(suspicion.rule(), 1);
        }
    }

    /// Records were lost: what was known may not be so any more.
    fn forget(&mut self, lost: Lost) {
        self.lost = self.lost.saturating_add(lost.records);
        self.findings.withdraw(lost.since, |_| true);
        self.own_wcets.lose(self.now);
        for lane in &mut self.lanes {
            lane.ready.clear();
            (lane.last_ran, lane.chosen) = (None, None);
            for suspicion in [lane.starved.take(), lane.misordered.take()].into_iter().flatten() {
                self.findings.leave_unknown(suspicion.rule(), 1);
            }
        }
        self.misplaced_by_record.fill(false);
        for (instances, known) in self.instances.iter_mut().zip(&mut self.known) {
            let next = instances.list.last_key_value().map_or(0, |(instance, _)| instance + 1);
            instances.list.clear();
            *known = Known::AfterLoss(known.least().max(next));
        }
        self.guards.forget();
        self.merging.iter_mut().for_each(Merging::forget);
        self.idle_points.forget();
        self.arrivals.forget(self.now);
        self.values.forget();
        self.events.forget();
        self.inheritance.forget(lost.since);
        self.services.forget();
    }
}
