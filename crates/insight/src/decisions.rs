//! Whether the schedulers of hierarchies decided as they may, and kept what they promised, by the records of their decisions.
//!
//! | [`Rule`] | What must hold |
//! |---|---|
//! | transitions | who waits asks before it is given a processor, who has one loses or gives back that one |
//! | processors | a scheduler gives away only what it has, to one child, and keeps nothing for itself |
//! | priority | a scheduler of fixed priorities serves no child while one of a higher priority is ready; nor does the kernel, to which a hierarchy was lowered (`lowered`) |
//! | jobs | a job executes only where the place it stands at was given the processor |
//! | guarantees | every promise that is broken by what was granted, or by what was received, is recorded as broken, and no other |
//!
//! Several decisions fall on one instant and only the last state of it lasts, so the states are judged when it is over. The
//! guarantees are judged anew, by monitors that see only the records; what was withheld, though not which promises that broke, is taken
//! from the records of the auditor, which saw the kernel's switches. In virtual time there are none, and nothing is judged by what was received.
//! After a loss nothing is judged until it is heard of again, guarantees not at all; nor is, after a change of the
//! hierarchy, whether priorities are obeyed and everybody passes on what they are given.

mod children;
#[cfg(test)]
mod cost;
mod lowered;
mod received;

use crate::hierarchy::{EdgeState, Hierarchies};
use crate::verify::default_tolerance;
use children::AllChildren;
use lowered::Lowered;
use received::Received;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{self, Bound, Monitor, Standing};
use talea_model::{Request, SchedulerKind, System, Under};
use talea_record::event::{self, ChangeKind, Trigger, Typed, ViolationSide};
use talea_record::{Event, Metadata, Record, Sink};
use talea_time::{Duration, Instant};

/// Violations that are listed one by one; all are counted.
const LISTED: usize = 1_000;
/// Findings that a loss can still make doubtful. Before a loss is told, records that others wrote meanwhile are there, of so many decisions at most.
const OPEN: usize = 1 << 14;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Who waits asks before it is given a processor, and so on.
    Transitions,
    /// A scheduler gives away only what it has, to one child, and keeps nothing.
    Processors,
    /// No child is served while one of a higher priority is ready.
    Priority,
    /// A job executes only where its place was given the processor.
    Jobs,
    /// What is recorded as broken was, and nothing else.
    Guarantees,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Rule; 5] =
        [Rule::Transitions, Rule::Processors, Rule::Priority, Rule::Jobs, Rule::Guarantees];

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Transitions => "transitions",
            Rule::Processors => "processors",
            Rule::Priority => "priority",
            Rule::Jobs => "jobs",
            Rule::Guarantees => "guarantees",
        }
    }
}

/// What was found of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    /// The rule.
    pub rule: Rule,
    /// How often it was judged.
    pub cases: u64,
    /// How often it was violated.
    pub violations: u64,
}

/// Something that should not have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// When, in nanoseconds since the run's start.
    pub at_ns: i64,
    /// What happened, as a sentence.
    pub text: String,
}

/// What the rules were held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JudgedRecords {
    /// Records of somebody asking for a processor.
    pub requests: u64,
    /// Records of processors that were given.
    pub grants: u64,
    /// Records of processors that were taken away.
    pub revokes: u64,
    /// Records of processors that were given back, and of requests that were withdrawn.
    pub releases: u64,
    /// Changes of a hierarchy while the run lasted.
    pub changes: u64,
    /// Switches of the kernel.
    pub switches: u64,
}

impl JudgedRecords {
    fn count(&mut self, record: &Record) {
        let counter = match record.event {
            Event::VP_REQUEST => &mut self.requests,
            Event::VP_GRANT => &mut self.grants,
            Event::VP_REVOKE => &mut self.revokes,
            Event::VP_RELEASE => &mut self.releases,
            Event::EDGE_CHANGE => &mut self.changes,
            Event::SWITCH => &mut self.switches,
            _ => return,
        };
        *counter += 1;
    }

    /// Decisions of schedulers, of whatever kind.
    pub fn decisions(&self) -> u64 {
        self.requests + self.grants + self.revokes + self.releases
    }
}

/// What was found of all rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionsReport {
    /// What there was to judge.
    pub judged: JudgedRecords,
    /// Every rule, in the order of the documentation.
    pub rules: Vec<RuleReport>,
    /// The first violations, in the order in which they were found.
    pub violations: Vec<Violation>,
    /// Records that were lost. Where there are any, whether guarantees were kept is unknown, and was not judged.
    pub lost_records: u64,
    /// Records of the kernel that were lost. Whether it obeyed priorities then is unknown.
    pub lost_kernel_records: u64,
}

impl DecisionsReport {
    /// How often a rule was judged.
    pub fn cases(&self, rule: Rule) -> u64 {
        self.rules.iter().filter(|report| report.rule == rule).map(|report| report.cases).sum()
    }

    /// All violations.
    pub fn count(&self) -> u64 {
        self.rules.iter().map(|rule| rule.violations).sum()
    }
}

/// A broken promise, as far as two judges have to agree on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Broken {
    edge: usize,
    from: Instant,
    to: Instant,
    is_most: bool,
}

impl Broken {
    fn of(edge: usize, violation: &monitor::Violation) -> Self {
        let monitor::Violation { from, to, bound, .. } = *violation;
        Broken { edge, from, to, is_most: bound == Bound::Most }
    }
}

/// How often each was found by one, less how often by the other.
#[derive(Default)]
struct Balance(BTreeMap<Broken, i64>);

impl Balance {
    fn add(&mut self, broken: Broken, count: i64) {
        *self.0.entry(broken).or_default() += count;
    }
}

/// Judges the decisions of all nodes as they come.
pub struct Decisions<'a> {
    metadata: &'a Metadata,
    hierarchies: Hierarchies,
    /// By edge, where the system says it.
    priorities: Vec<Option<i32>>,
    /// By edge, while they can be judged.
    monitors: Vec<Option<Monitor>>,
    /// By edge: whether what is recorded of its promise can be found again.
    is_repeated: Vec<bool>,
    /// Broken promises: how often each was found here, less how often it was recorded.
    broken: Balance,
    /// Who judges by what was received, while that is known.
    received: Option<Received>,
    /// Who judges the kernel, where it decides.
    lowered: Lowered<'a>,
    /// By node, whether its run is over: who is still at a job executes without anybody's decision.
    is_over: Vec<bool>,
    /// By lane: the processors on which a job of it executes.
    executing: Vec<Vec<(u64, u16)>>,
    children: AllChildren,
    /// By edge: the lanes that have their places there.
    lanes_of: Vec<Vec<usize>>,
    /// Lanes that are to be judged when the instant is over.
    touched_lanes: Vec<usize>,
    is_touched_lane: Vec<bool>,
    is_changed: bool,
    judged: JudgedRecords,
    lost_records: u64,
    now: Instant,
    rules: Vec<RuleReport>,
    violations: Vec<Violation>,
    /// The latest of them, by the instant that was judged, and whether each is listed.
    open: VecDeque<(Rule, Instant, bool)>,
}

impl<'a> Decisions<'a> {
    /// What tells of decisions, all of which it takes to judge any.
    pub const EVENTS: [Event; 7] = Hierarchies::EVENTS;

    /// Of a run of `system` with these tables.
    ///
    /// # Panics
    /// If `metadata` do not pass [`Metadata::check`].
    pub fn new(metadata: &'a Metadata, system: &System) -> Self {
        metadata.check().expect("metadata are consistent");
        let tolerance = metadata.promise_tolerance;
        let monitor = |edge: &talea_record::EdgeEntry| {
            let guarantee: Guarantee = edge.guarantee.parse().ok()?;
            // How far behind a share in the long run may be no trace tells, so whether that was broken nobody can repeat.
            Some(Monitor::new(&guarantee, tolerance?, metadata.start)).filter(Monitor::judges)
        };
        let monitors: Vec<Option<Monitor>> = metadata.edges.iter().map(monitor).collect();
        let hierarchies = Hierarchies::new(metadata);
        let priorities = priorities(metadata, system);
        let mut parents: HashMap<(usize, &str), usize> = HashMap::new();
        for edge in &metadata.edges {
            *parents.entry((edge.node, &edge.child)).or_default() += 1;
        }
        let is_alone = |edge: &talea_record::EdgeEntry| parents[&(edge.node, edge.child.as_str())] == 1;
        let judged = metadata.edges.iter().zip(&priorities);
        let judged = judged.map(|(edge, priority)| priority.filter(|_| is_alone(edge))).collect();
        let mut lanes_of = vec![Vec::new(); metadata.edges.len()];
        for lane in 0..metadata.lanes.len() {
            hierarchies.edges_of_lane(lane).iter().for_each(|edge| lanes_of[*edge].push(lane));
        }
        Decisions {
            children: AllChildren::new(&hierarchies, judged),
            lanes_of,
            touched_lanes: Vec::new(),
            is_touched_lane: vec![false; metadata.lanes.len()],
            hierarchies,
            priorities,
            is_repeated: monitors.iter().map(Option::is_some).collect(),
            monitors,
            broken: Balance::default(),
            received: Received::new(metadata),
            lowered: Lowered::new(metadata, default_tolerance(metadata.origin)),
            is_over: vec![false; metadata.nodes.len()],
            executing: vec![Vec::new(); metadata.lanes.len()],
            is_changed: false,
            judged: JudgedRecords::default(),
            lost_records: 0,
            now: metadata.start,
            rules: Rule::ALL.map(|rule| RuleReport { rule, cases: 0, violations: 0 }).into(),
            violations: Vec::new(),
            open: VecDeque::new(),
            metadata,
        }
    }

    /// The same where a wrong state on real threads may last for so long.
    #[must_use]
    pub fn with_tolerance(mut self, tolerance: Duration) -> Self {
        self.lowered.tolerance = tolerance;
        self
    }

    /// The result at the end of the trace.
    pub fn finish(mut self) -> DecisionsReport {
        // What the end of the trace cut off may lack the rest of its last instant: a run's own end has been judged.
        self.compare_guarantees();
        for ((edge, from_ns, to_ns), count) in self.received.take().map(Received::finish).unwrap_or_default()
        {
            self.differs(edge, (from_ns, to_ns), count, "what was received");
        }
        if self.lost_records > 0 {
            // What was judged before the loss may have gone on in it.
            self.rules[Rule::Guarantees as usize].cases = 0;
        }
        self.judge_lowered();
        let lost_kernel_records = self.lowered.lost;
        let Decisions { judged, rules, violations, lost_records, .. } = self;
        DecisionsReport { judged, rules, violations, lost_records, lost_kernel_records }
    }

    /// What was found of the kernel.
    fn judge_lowered(&mut self) {
        for lowered::Finding { from, text, .. } in self.lowered.finish() {
            self.find_at(Rule::Priority, from, text);
        }
        let report = &mut self.rules[Rule::Priority as usize];
        report.cases += self.lowered.cases;
        report.violations += self.lowered.unlisted;
    }

    fn case(&mut self, rule: Rule) {
        self.rules[rule as usize].cases += 1;
    }

    fn find(&mut self, rule: Rule, text: String) {
        self.find_at(rule, self.now, text);
    }

    fn find_at(&mut self, rule: Rule, at: Instant, text: String) {
        self.rules[rule as usize].violations += 1;
        if self.open.len() == OPEN {
            self.open.pop_front();
        }
        self.open.push_back((rule, self.now, self.violations.len() < LISTED));
        if self.violations.len() < LISTED {
            let at_ns = at.as_nanos().saturating_sub(self.metadata.start.as_nanos());
            self.violations.push(Violation { rule, at_ns, text });
        }
    }

    fn name(&self, edge: usize) -> String {
        self.metadata.edges[edge].name()
    }

    /// A decision about an edge: whether it could be, and what its promise's monitor makes of it.
    fn decided(&mut self, record: &Record, trigger: Option<Trigger>) {
        let edge = usize::from(record.source);
        if edge >= self.metadata.edges.len() {
            return;
        }
        self.is_changed |= trigger == Some(Trigger::Change);
        let before = self.hierarchies.state(edge);
        let is_one = match (record.typed(), before) {
            (_, EdgeState::Unknown) | (Typed::VpRequest(_), EdgeState::Waiting) => true,
            (Typed::VpGrant(_), state) => state == EdgeState::Ready,
            (Typed::VpRevoke(_), state) => state == EdgeState::Running(record.cpu),
            (Typed::VpRelease(_), EdgeState::Running(cpu)) => cpu == record.cpu,
            (Typed::VpRelease(_), EdgeState::Ready) => record.cpu == Record::NO_CPU,
            _ => false,
        };
        self.case(Rule::Transitions);
        if !is_one {
            let (what, was) = (record.event.name().unwrap_or_default(), state_words(before));
            self.find(Rule::Transitions, format!("{what} on {}, which {was}", self.name(edge)));
        }
        self.hierarchies.apply(record);
        self.children.change(&self.hierarchies, edge, before);
        let standing = match self.hierarchies.state(edge) {
            EdgeState::Unknown => return,
            EdgeState::Waiting => Standing::Waiting,
            EdgeState::Ready => Standing::Ready,
            EdgeState::Running(_) => Standing::Running,
        };
        let Decisions { monitors, broken, .. } = &mut *self;
        if let Some(monitor) = &mut monitors[edge] {
            monitor.note(record.time, standing, &mut |violation| broken.add(Broken::of(edge, &violation), 1));
        }
        self.touch_edge(edge);
    }

    /// The run is over on a node: what its promises came to up to now.
    fn close(&mut self, node: usize, at: Instant) {
        self.is_over.get_mut(node).into_iter().for_each(|is_over| *is_over = true);
        let lanes = self.executing.iter_mut().zip(&self.metadata.lanes);
        lanes.filter(|(_, lane)| lane.node == node).for_each(|(executing, _)| executing.clear());
        for edge in 0..self.monitors.len() {
            if self.metadata.edges[edge].node != node {
                continue;
            }
            let standing = match self.hierarchies.state(edge) {
                EdgeState::Running(_) => Standing::Running,
                EdgeState::Ready => Standing::Ready,
                EdgeState::Waiting | EdgeState::Unknown => Standing::Waiting,
            };
            let Some(mut monitor) = self.monitors[edge].take() else { continue };
            let broken = &mut self.broken;
            monitor.note(at, standing, &mut |violation| broken.add(Broken::of(edge, &violation), 1));
            let judged = monitor.tally().judged;
            self.rules[Rule::Guarantees as usize].cases += judged;
        }
    }

    /// What was found broken here beside what is recorded.
    fn compare_guarantees(&mut self) {
        if self.lost_records > 0 {
            return;
        }
        for (Broken { edge, from, to, .. }, count) in std::mem::take(&mut self.broken).0 {
            self.differs(edge, (from.as_nanos(), to.as_nanos()), count, "what was granted");
        }
    }

    /// A promise was found broken more often than it was recorded as broken, or less often.
    fn differs(&mut self, edge: usize, (from_ns, to_ns): (i64, i64), count: i64, by: &str) {
        let why = match count {
            0 => return,
            1.. => format!("was broken by {by}, and not recorded as broken"),
            _ => format!("is recorded as broken, and was not by {by}"),
        };
        let window = Duration::from_nanos(to_ns.saturating_sub(from_ns)).rounded();
        let (name, guarantee) = (self.name(edge), &self.metadata.edges[edge].guarantee);
        let text = format!("{name}, {guarantee}, {why} in the {window} before");
        self.find_at(Rule::Guarantees, Instant::from_nanos(to_ns), text);
    }

    fn job(&mut self, record: &Record) {
        let job = record.job();
        let Some(entry) = self.metadata.operations.get(job.operation.index()) else { return };
        let node = self.metadata.lanes.get(entry.lane).map(|lane| lane.node);
        if node.is_some_and(|node| self.is_over.get(node) == Some(&true)) {
            return;
        }
        let Some(executing) = self.executing.get_mut(entry.lane) else { return };
        match record.typed() {
            Typed::Start(_) | Typed::Resume(_) => executing.push((record.causal, record.cpu)),
            Typed::Preempt(_) | Typed::Wait(_) | Typed::Complete(_) | Typed::Abort(_) => {
                executing.retain(|(other, _)| *other != record.causal);
            }
            _ => return,
        }
        self.touch_lane(entry.lane);
    }

    /// Judges the state in which an instant leaves the schedulers, and lanes, of which a record in it was.
    fn end_instant(&mut self) {
        while let Some(group) = self.children.next_touched() {
            self.judge_served(group);
            self.judge_ready(group);
        }
        while let Some(lane) = self.touched_lanes.pop() {
            self.is_touched_lane[lane] = false;
            self.judge_jobs(lane);
        }
    }

    /// Of the instant in which records were lost not all is known.
    fn forget_touched(&mut self) {
        self.children.forget_touched();
        self.touched_lanes.drain(..).for_each(|lane| self.is_touched_lane[lane] = false);
    }

    /// An edge has come into another state: who decides there, and those who have to do with it, are to be judged.
    fn touch_edge(&mut self, edge: usize) {
        self.children.touch(self.hierarchies.group_of(edge));
        if let Some(below) = self.hierarchies.group_below(edge) {
            self.children.touch(below);
        }
        for index in 0..self.lanes_of[edge].len() {
            self.touch_lane(self.lanes_of[edge][index]);
        }
    }

    fn touch_lane(&mut self, lane: usize) {
        if !std::mem::replace(&mut self.is_touched_lane[lane], true) {
            self.touched_lanes.push(lane);
        }
    }

    /// The scheduler has the processors that it gives away, gives each to one, and passes on those that it has.
    fn judge_served(&mut self, group: usize) {
        let (hierarchies, children) = (&self.hierarchies, &self.children);
        let (above, running) = (hierarchies.above(group), children.running(group));
        let state = |edge: &usize| hierarchies.state(*edge);
        let has = |edges: &[usize], cpu| edges.iter().any(|edge| state(edge) == EdgeState::Running(cpu));
        let is_known = |edges: &[usize]| edges.iter().all(|edge| state(edge) != EdgeState::Unknown);
        let mut found: Vec<String> = Vec::new();
        for (place, edge) in running.iter().enumerate() {
            let EdgeState::Running(cpu) = state(edge) else { continue };
            if !above.is_empty() && is_known(above) && !has(above, cpu) {
                let parent = &self.metadata.edges[*edge].parent;
                found.push(format!("{}: {parent} does not have processor {cpu}", self.name(*edge)));
            }
            if let Some(other) = running[place + 1..].iter().find(|other| state(other) == state(edge)) {
                let (one, other) = (edge.min(other), edge.max(other));
                found.push(format!(
                    "processor {cpu} is given twice: {} and {}",
                    self.name(*one),
                    self.name(*other)
                ));
            }
        }
        let mut judged = running.len();
        // After a change of the hierarchy not all children may be in the tables.
        for edge in above.iter().filter(|_| !self.is_changed && children.is_known(group)) {
            let EdgeState::Running(cpu) = state(edge) else { continue };
            judged += 1;
            if !has(running, cpu) {
                let child = &self.metadata.edges[*edge].child;
                found.push(format!("{child} has processor {cpu} and passes it on to nobody"));
            }
        }
        self.rules[Rule::Processors as usize].cases += judged as u64;
        found.into_iter().for_each(|text| self.find(Rule::Processors, text));
    }

    /// No child of a lower priority is served while one is ready. Who has several parents may be served by another of them.
    fn judge_ready(&mut self, group: usize) {
        if self.is_changed {
            return;
        }
        self.rules[Rule::Priority as usize].cases += self.children.ready(group) as u64;
        let running = self.children.running(group).iter();
        let served = running.filter_map(|edge| Some((self.priorities[*edge]?, *edge)));
        let Some((priority, lowest)) = served.min() else { return };
        let waiting: Vec<usize> = self.children.ready_above(group, priority).collect();
        for edge in waiting {
            let text = format!("{} is served while {} is ready", self.name(lowest), self.name(edge));
            self.find(Rule::Priority, text);
        }
    }

    fn judge_jobs(&mut self, lane: usize) {
        for index in 0..self.executing[lane].len() {
            let (job, cpu) = self.executing[lane][index];
            if !self.hierarchies.knows(lane) {
                continue;
            }
            self.case(Rule::Jobs);
            if !self.hierarchies.has(lane, cpu) {
                let job = self.metadata.job_name(talea_record::JobId::unpack(job));
                self.find(
                    Rule::Jobs,
                    format!("{job} executes on processor {cpu}, which its place was not given"),
                );
            }
        }
    }

    /// Records were lost that had been made at this instant or later, or at any. What was found from then on was found without them.
    fn withdraw(&mut self, since: Option<Instant>) {
        while let Some((rule, _, is_listed)) =
            self.open.pop_back_if(|(_, judged, _)| since.is_none_or(|since| *judged >= since))
        {
            let report = &mut self.rules[rule as usize];
            report.violations -= 1;
            report.cases = report.cases.saturating_sub(1);
            if is_listed {
                self.violations.pop();
            }
        }
    }

    fn forget(&mut self, records: u64) {
        self.lost_records = self.lost_records.saturating_add(records.max(1));
        self.executing.iter_mut().for_each(Vec::clear);
        self.monitors.iter_mut().for_each(|monitor| *monitor = None);
    }
}

/// By edge, the priority of the one below it, where the scheduler above is one of fixed priorities.
fn priorities(metadata: &Metadata, system: &System) -> Vec<Option<i32>> {
    let kind = SchedulerKind::FIXED_PRIORITY.name();
    let fixed = metadata.schedulers.iter().filter(|one| one.kind == kind);
    let fixed: HashSet<(usize, &str)> = fixed.map(|one| (one.node, one.name.as_str())).collect();
    let of_schedulers = system.schedulers.iter().map(|one| (one.name.as_str(), &one.under));
    let of_threads = system.threads.iter().map(|one| (one.name.as_str(), &one.under));
    let mut unders: HashMap<&str, &Vec<Under>> = HashMap::new();
    for (name, under) in of_schedulers.chain(of_threads) {
        unders.entry(name).or_insert(under);
    }
    let priority = |edge: &talea_record::EdgeEntry| {
        let is_fixed = fixed.contains(&(edge.node, edge.parent.as_str()));
        let under = unders.get(edge.child.as_str()).filter(|_| is_fixed)?;
        under.iter().find_map(|one| match one {
            Under { scheduler, request: Request::Priority(priority) }
                if system.schedulers[*scheduler].name == edge.parent =>
            {
                Some(*priority)
            }
            _ => None,
        })
    };
    metadata.edges.iter().map(priority).collect()
}

fn state_words(state: EdgeState) -> &'static str {
    match state {
        EdgeState::Unknown => "was not heard of",
        EdgeState::Waiting => "waited",
        EdgeState::Ready => "was ready",
        EdgeState::Running(_) => "had a processor",
    }
}

impl Sink for Decisions<'_> {
    fn record(&mut self, record: Record) {
        self.judged.count(&record);
        self.lowered.take(&record);
        if self.received.as_mut().is_some_and(|received| !received.take(&record)) {
            self.received = None;
        }
        if record.time > self.now {
            // Of the instant in which records were lost not all is known.
            match event::Lost::read(&record).is_some_and(|lost| !lost.is_of_kernel()) {
                true => self.forget_touched(),
                false => self.end_instant(),
            }
            self.now = record.time;
        }
        match record.typed() {
            Typed::VpRequest(event::VpRequest { trigger, .. })
            | Typed::VpGrant(event::VpGrant { trigger, .. })
            | Typed::VpRevoke(event::VpRevoke { trigger, .. })
            | Typed::VpRelease(event::VpRelease { trigger, .. }) => self.decided(&record, trigger.known()),
            Typed::EdgeChange(change) => {
                self.is_changed = true;
                let edge = usize::from(change.edge);
                let before = (edge < self.metadata.edges.len()).then(|| self.hierarchies.state(edge));
                self.hierarchies.apply(&record);
                if let Some(before) = before {
                    self.children.change(&self.hierarchies, edge, before);
                }
                let Decisions { monitors, broken, .. } = self;
                let monitor = monitors.get_mut(edge).and_then(Option::as_mut);
                if let Some(monitor) = monitor.filter(|_| change.what == ChangeKind::Removed) {
                    let found =
                        &mut |violation: monitor::Violation| broken.add(Broken::of(edge, &violation), 1);
                    monitor.let_go(record.time, found);
                }
            }
            Typed::Violation(broken) => {
                let bound = match broken.side.known() {
                    Some(ViolationSide::Least) => Bound::Least,
                    Some(ViolationSide::Most) => Bound::Most,
                    Some(ViolationSide::Withheld | ViolationSide::Exceeded | ViolationSide::HeldLate)
                    | None => return,
                };
                let (edge, from, to) = (usize::from(broken.edge), broken.from, broken.to);
                if self.is_repeated.get(edge) == Some(&false) {
                    return;
                }
                self.broken.add(Broken { edge, from, to, is_most: bound == Bound::Most }, -1);
            }
            Typed::RunStart(_) => {
                self.hierarchies.apply(&record);
                self.children.rebuild(&self.hierarchies);
            }
            Typed::RunEnd(end) => {
                self.end_instant();
                self.close(end.node.into(), record.time);
            }
            Typed::NodeLeft(node) => self.close(node.left as usize, record.time),
            Typed::Lost(lost) if !lost.is_of_kernel() => {
                self.withdraw(lost.since);
                self.forget(lost.records);
                self.hierarchies.apply(&record);
                self.children.rebuild(&self.hierarchies);
            }
            _ if record.event.is_job() => self.job(&record),
            _ => {}
        }
    }
}
