//! What a verification found.

use super::LISTED;
use serde::Serialize;
use std::collections::VecDeque;
use talea_record::{Damage, JobId, Metadata};
use talea_time::{Duration, Instant};

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Every operation is in the lane that the plan gives it.
    Plan,
    /// A job is released, begins and ends, in this order and once.
    Life,
    /// Releases are not early, and have the arrival and deadline of the description.
    Release,
    /// A job is released after its predecessors.
    Precedence,
    /// The overrun policy.
    Overrun,
    /// No lower lane runs while a higher one is ready.
    Lanes,
    /// No processor idles while a lane is ready.
    Idle,
    /// A lane runs the job of the smallest key.
    Order,
    /// A job that has begun keeps a non-preemptive lane.
    NonPreemption,
    /// Every instance that had to arrive was released or skipped, and every successor of what was done released.
    Arrivals,
    /// A job executes for as long as it demands.
    Demand,
    /// A lane's thread that has a processor begins a job that is ready soon enough.
    Dispatching,
    /// What values or the outside release comes when it may.
    Triggers,
    /// A job takes what is there for it.
    Values,
    /// A job takes events that were pushed for its task, each once.
    Events,
}

impl Rule {
    /// Every rule, in the order of the documentation.
    pub const ALL: [Rule; 15] = [
        Rule::Plan,
        Rule::Life,
        Rule::Release,
        Rule::Precedence,
        Rule::Overrun,
        Rule::Lanes,
        Rule::Idle,
        Rule::Order,
        Rule::NonPreemption,
        Rule::Arrivals,
        Rule::Demand,
        Rule::Dispatching,
        Rule::Triggers,
        Rule::Values,
        Rule::Events,
    ];

    /// Those that say who has a processor. They are not judged where schedulers decide that, or where it is not known.
    pub const OF_PROCESSORS: [Rule; 3] = [Rule::Lanes, Rule::Idle, Rule::Dispatching];

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Plan => "plan",
            Rule::Life => "life",
            Rule::Release => "release",
            Rule::Precedence => "precedence",
            Rule::Overrun => "overrun",
            Rule::Lanes => "lanes",
            Rule::Idle => "idle",
            Rule::Order => "order",
            Rule::NonPreemption => "non-preemption",
            Rule::Arrivals => "arrivals",
            Rule::Demand => "demand",
            Rule::Dispatching => "dispatching",
            Rule::Triggers => "triggers",
            Rule::Values => "values",
            Rule::Events => "events",
        }
    }
}

/// Whether a finding is sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// The records leave no other explanation.
    Certain,
    /// Only the kernel could tell who had the processor and whether it was held off, and it was not recorded; or a thread was kept from telling
    /// what it had chosen, and nobody knows whether it chose before that.
    Possible,
}

/// Something that should not have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// Whether it is sure.
    pub certainty: Certainty,
    /// When it began, in nanoseconds since the run's start.
    pub at_ns: i64,
    /// How long it lasted; 0 for what has no length.
    pub duration_ns: i64,
    /// The job that did what it should not have, by name.
    pub job: Option<String>,
    /// The job that suffered from it, by name.
    pub other: Option<String>,
    /// What happened, as a sentence.
    pub text: String,
}

/// The violations of one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    /// The rule.
    pub rule: Rule,
    /// Situations in which the rule says what has to be.
    pub cases: u64,
    /// Violations that are certain.
    pub violations: u64,
    /// What is a violation unless the kernel held a processor or a thread off.
    pub possible: u64,
    /// The longest of those.
    pub longest_possible_ns: i64,
    /// The longest.
    pub longest_ns: i64,
    /// Wrong states that the tolerance let pass.
    pub tolerated: u64,
    /// The longest of those.
    pub longest_tolerated_ns: i64,
    /// Times longer than the tolerance in which only the kernel could tell whether it was obeyed, and did not: jobs of
    /// several lanes had begun on one processor. They are in no other figure.
    pub unseen: u64,
    /// The longest of those.
    pub longest_unseen_ns: i64,
    /// Cases that could not be judged because of what was lost or cut off there, or left out of the recording. They are in no other figure.
    pub unknown: u64,
    /// Whether what it rests on was recorded.
    pub basis: Basis,
}

/// Whether what a rule rests on was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// All of it.
    Recorded,
    /// Something that would clear up what looks wrong was not: what was found is possible only.
    Doubtful,
    /// Something was not, so that not all that is wrong is seen.
    InPart,
    /// Something was not, so that nothing is known.
    Unrecorded,
}

/// Events that a rule rests on and the recording left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnrecordedEvents {
    /// The rule.
    pub rule: Rule,
    /// What that leaves of it.
    pub basis: Basis,
    /// Their names, as `port.take`.
    pub events: Vec<String>,
}

/// What a trace says about a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It had cases, and all of them are as they should be.
    Obeyed,
    /// Not all of them.
    Violated,
    /// Not all of them, unless the kernel held a processor or a thread off.
    PossiblyViolated,
    /// Those cases of it that could be judged are, and others could not be.
    ObeyedInPart,
    /// The trace has no case of it that could be judged.
    NotJudged,
    /// Events that it rests on were not recorded.
    Unknown,
}

impl RuleReport {
    /// What of it stands on such a basis.
    fn rest_on(&mut self, basis: Basis) {
        self.basis = basis;
        match basis {
            Basis::Unrecorded => {
                let RuleReport { rule, cases, violations, possible, unknown, .. } = *self;
                let found = violations.saturating_add(possible);
                let unknown = unknown.saturating_add(cases.max(found));
                *self = RuleReport { unknown, basis, ..RuleReport::of(rule) };
            }
            Basis::Doubtful => {
                self.possible = self.possible.saturating_add(std::mem::take(&mut self.violations));
                self.longest_possible_ns = self.longest_possible_ns.max(std::mem::take(&mut self.longest_ns));
            }
            Basis::Recorded | Basis::InPart => {}
        }
    }

    /// Nothing yet.
    fn of(rule: Rule) -> Self {
        RuleReport {
            rule,
            cases: 0,
            violations: 0,
            possible: 0,
            longest_possible_ns: 0,
            longest_ns: 0,
            tolerated: 0,
            longest_tolerated_ns: 0,
            unseen: 0,
            longest_unseen_ns: 0,
            unknown: 0,
            basis: Basis::Recorded,
        }
    }

    /// What the trace says about the rule.
    pub fn judged(&self) -> Judged {
        match (self.violations, self.possible, self.cases) {
            _ if self.basis == Basis::Unrecorded => Judged::Unknown,
            (0, 0, 0) => Judged::NotJudged,
            (0, 0, _) if self.unseen + self.unknown > 0 || self.basis == Basis::InPart => {
                Judged::ObeyedInPart
            }
            (0, 0, _) => Judged::Obeyed,
            (0, _, _) => Judged::PossiblyViolated,
            _ => Judged::Violated,
        }
    }
}

/// Everything a verification found.
#[derive(Clone, Debug, Serialize)]
pub struct VerifyReport {
    /// Name of the system.
    pub system: String,
    /// The strategy that was asked for.
    pub strategy: String,
    /// The strategy that the trace says it followed.
    pub strategy_of_trace: String,
    /// What is no violation yet.
    pub tolerance_ns: i64,
    /// Jobs of lanes that were judged.
    pub jobs: u64,
    /// Bursts of threads below schedulers that were judged, by what the description says of them whatever else happens.
    pub bursts: u64,
    /// Records about jobs that could not be judged: of what is before them, records were lost or there were none yet. And what would
    /// violate the rules of lanes if posted jobs were in the lanes that are assumed, which another strategy need not give them.
    pub unjudged: u64,
    /// Nodes with operations of which the trace has no record.
    pub unheard_nodes: Vec<String>,
    /// Nodes whose lanes' threads are not known from the others that the kernel tells of, so that neither lanes nor idle
    /// could be judged there.
    pub unidentified_nodes: Vec<String>,
    /// Nodes whose lanes stand below schedulers, which say when these have a processor: what is ready and does not run was not judged
    /// there ([`Rule::OF_PROCESSORS`]).
    pub below_schedulers: Vec<String>,
    /// Whether the kernel told who had the processors. Without, its holding one off cannot be told from idleness.
    pub has_kernel: bool,
    /// Records lost.
    pub lost_records: u64,
    /// Records that cannot be, and were left out.
    pub impossible_records: u64,
    /// Stretches of records that are not what was written.
    pub altered_stretches: u64,
    /// How long a lane's thread may have a processor without a job while one is ready.
    pub overhead_ns: i64,
    /// By rule, what it rests on and was left out of the recording.
    pub unrecorded: Vec<UnrecordedEvents>,
    /// By rule, all of them.
    pub rules: Vec<RuleReport>,
    /// The first [`LISTED`] violations.
    pub violations: Vec<Violation>,
}

impl VerifyReport {
    /// The same of a trace with this damage.
    #[must_use]
    pub fn with_damage(self, damage: &Damage) -> Self {
        VerifyReport { impossible_records: damage.impossible, altered_stretches: damage.altered, ..self }
    }

    /// Whether the trace was as it was written.
    pub fn is_whole(&self) -> bool {
        self.impossible_records + self.altered_stretches == 0
    }

    /// What may be violations.
    pub fn possible(&self) -> u64 {
        self.rules.iter().map(|rule| rule.possible).sum()
    }

    /// All violations that are certain.
    pub fn count(&self) -> u64 {
        self.rules.iter().fold(0, |sum, rule| sum.saturating_add(rule.violations))
    }

    /// Rules of which the trace has no case. Those of which it may have some that were not judged are not among them.
    pub fn without_case(&self) -> impl Iterator<Item = Rule> {
        let is_all_judged = self.below_schedulers.is_empty() && self.unidentified_nodes.is_empty();
        let was_judged = move |rule: Rule| is_all_judged || !Rule::OF_PROCESSORS.contains(&rule);
        let without = move |rule: &&RuleReport| {
            rule.judged() == Judged::NotJudged && rule.unseen == 0 && was_judged(rule.rule)
        };
        self.rules.iter().filter(without).map(|rule| rule.rule)
    }

    /// Rules that could not be judged all of the time, because nobody saw who had a processor.
    pub fn left_open(&self) -> impl Iterator<Item = &RuleReport> {
        self.rules.iter().filter(|rule| rule.unseen > 0)
    }

    /// Whether something that the rules speak of could not be judged for want of records.
    pub fn is_partial(&self) -> bool {
        let unknown = self.unheard_nodes.len() + self.unidentified_nodes.len() + self.unrecorded.len();
        unknown > 0 || self.lost_records > 0 || self.left_open().next().is_some()
    }

    /// The violations of one rule.
    pub fn of(&self, rule: Rule) -> u64 {
        self.rules.iter().filter(|report| report.rule == rule).map(|report| report.violations).sum()
    }
}

/// Collects violations.
#[derive(Debug)]
pub(super) struct Findings {
    rules: Vec<RuleReport>,
    list: Vec<Violation>,
    /// In the order of their judgement, as long as a loss that is told later may withdraw them.
    open: VecDeque<Open>,
}

/// So many violations are kept open; if there are more, the oldest count for good, so that a trace of nothing but violations needs no more memory
/// than this.
const OPEN: usize = 1 << 20;

/// A violation that is not in the figures of its rule yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    rule: Rule,
    certainty: Certainty,
    judged: Instant,
    duration_ns: i64,
    /// How many of these there are.
    count: u64,
    is_listed: bool,
}

/// A violation without its names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finding {
    pub rule: Rule,
    pub certainty: Certainty,
    pub at: Instant,
    pub duration: Duration,
    /// When it was judged, by what had been recorded until then.
    pub judged: Instant,
    pub job: Option<JobId>,
    pub other: Option<JobId>,
}

impl Findings {
    pub fn new() -> Self {
        Findings { rules: Rule::ALL.map(RuleReport::of).into(), list: Vec::new(), open: VecDeque::new() }
    }

    fn of(&mut self, rule: Rule) -> &mut RuleReport {
        // They stand in the order of their declaration.
        &mut self.rules[rule as usize]
    }

    /// The rule said what had to be.
    pub fn count_case(&mut self, rule: Rule) {
        self.of(rule).cases += 1;
    }

    /// A wrong state that the tolerance lets pass.
    pub fn tolerate(&mut self, rule: Rule, duration: Duration) {
        let report = self.of(rule);
        report.tolerated += 1;
        report.longest_tolerated_ns = report.longest_tolerated_ns.max(duration.as_nanos());
    }

    /// A time in which only the kernel could tell whether the rule was obeyed.
    pub fn leave_open(&mut self, rule: Rule, duration: Duration) {
        let report = self.of(rule);
        report.unseen += 1;
        report.longest_unseen_ns = report.longest_unseen_ns.max(duration.as_nanos());
    }

    /// So many cases in which nobody knows what was.
    pub fn leave_unknown(&mut self, rule: Rule, cases: u64) {
        let report = self.of(rule);
        report.unknown = report.unknown.saturating_add(cases);
    }

    /// So many violations that are certain, beyond those that were told one by one.
    pub fn count_more(&mut self, rule: Rule, judged: Instant, count: u64) {
        let (certainty, duration_ns, is_listed) = (Certainty::Certain, 0, false);
        self.keep(Open { rule, certainty, judged, duration_ns, count, is_listed });
    }

    /// Keeps a violation open; with too many the oldest is settled.
    fn keep(&mut self, open: Open) {
        if self.open.len() == OPEN
            && let Some(oldest) = self.open.pop_front()
        {
            self.settle(oldest);
        }
        self.open.push_back(open);
    }

    /// What has been found stands, whatever records are lost.
    pub fn settle_all(&mut self) {
        while let Some(oldest) = self.open.pop_front() {
            self.settle(oldest);
        }
    }

    fn settle(&mut self, Open { rule, certainty, duration_ns, count, .. }: Open) {
        let report = self.of(rule);
        let (violations, longest_ns) = match certainty {
            Certainty::Certain => (&mut report.violations, &mut report.longest_ns),
            Certainty::Possible => (&mut report.possible, &mut report.longest_possible_ns),
        };
        *violations = violations.saturating_add(count);
        *longest_ns = (*longest_ns).max(duration_ns);
    }

    /// Records were lost that had been made at this instant or later, or at any. What was found from then on by rules that rest on them was found
    /// without them, so it is counted as unknown.
    pub fn withdraw(&mut self, since: Option<Instant>, rests_on_them: impl Fn(Rule) -> bool) {
        let mut others = Vec::new();
        while let Some(last) = self.open.back().copied()
            && since.is_none_or(|since| last.judged >= since)
        {
            self.open.pop_back();
            let listed = if last.is_listed { self.list.pop() } else { None };
            if rests_on_them(last.rule) {
                self.leave_unknown(last.rule, last.count);
            } else {
                others.push((last, listed));
            }
        }
        for (open, listed) in others.into_iter().rev() {
            self.open.push_back(open);
            self.list.extend(listed);
        }
    }

    /// Counts a violation and, if it is one of the first, keeps it with `text`.
    pub fn add(&mut self, metadata: &Metadata, finding: Finding, text: impl FnOnce() -> String) {
        let Finding { rule, certainty, at, duration, judged, job, other } = finding;
        let duration_ns = duration.as_nanos();
        let is_listed = self.list.len() < LISTED;
        self.keep(Open { rule, certainty, judged, duration_ns, count: 1, is_listed });
        if is_listed {
            let name = |job: JobId| metadata.job_name(job);
            self.list.push(Violation {
                rule,
                certainty,
                at_ns: at.as_nanos().saturating_sub(metadata.start.as_nanos()),
                duration_ns,
                job: job.map(name),
                other: other.map(name),
                text: text(),
            });
        }
    }

    /// By rule, and the list in the order of time. Of rules that rest on what was not recorded nothing is said that rests on that.
    pub fn finish(mut self, unrecorded: &[UnrecordedEvents]) -> (Vec<RuleReport>, Vec<Violation>) {
        self.settle_all();
        for UnrecordedEvents { rule, basis, .. } in unrecorded {
            let is_of_it = |violation: &Violation| violation.rule == *rule;
            match basis {
                Basis::Unrecorded => self.list.retain(|violation| !is_of_it(violation)),
                Basis::Doubtful => self
                    .list
                    .iter_mut()
                    .filter(|violation| is_of_it(violation))
                    .for_each(|violation| violation.certainty = Certainty::Possible),
                Basis::Recorded | Basis::InPart => {}
            }
            self.of(*rule).rest_on(*basis);
        }
        self.list.sort_by_key(|violation| violation.at_ns);
        (self.rules, self.list)
    }
}
