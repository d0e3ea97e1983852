//! A lane as `docs/policies.md` defines it: a list that is scanned at every choice.
//!
//! Nothing here is shared with the crate but the vocabulary: laxity is evaluated at `now`, not as a constant
//! key, lateness is asked of every job anew, and nothing is kept between two choices but who ran last.

use std::cmp::Ordering;
use talea_model::{LaneDispatch, Late, Laxity};
use talea_policy::discipline::Discipline;
use talea_policy::job::Job;
use talea_policy::lane::Ties;
use talea_policy::strategy::LaneRules;
use talea_time::{Instant, Work};

/// An unfinished job and its service so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    pub job: Job,
    pub executed: Work,
}

/// The unfinished jobs of a lane in no order.
#[derive(Clone, Debug)]
pub struct LaneModel {
    discipline: Discipline,
    rules: LaneRules,
    ties: Ties,
    pub entries: Vec<Entry>,
    /// Tag of the job the lane last ran, if it is unfinished.
    last_ran: Option<u32>,
}

impl LaneModel {
    pub fn new(discipline: Discipline, rules: LaneRules, ties: Ties) -> Self {
        LaneModel { discipline, rules, ties, entries: Vec::new(), last_ran: None }
    }

    pub fn push(&mut self, job: Job) {
        self.entries.push(Entry { job, executed: Work::ZERO });
    }

    pub fn remove(&mut self, tag: u32) -> Option<Entry> {
        let position = self.entries.iter().position(|entry| entry.job.tag == tag)?;
        if self.last_ran == Some(tag) {
            self.last_ran = None;
        }
        Some(self.entries.remove(position))
    }

    /// The job `tag` runs for `amount`.
    pub fn run(&mut self, tag: u32, amount: Work) {
        let entry = self.entries.iter_mut().find(|entry| entry.job.tag == tag).expect("it is here");
        entry.executed += amount;
        if amount > Work::ZERO {
            self.last_ran = Some(tag);
        }
    }

    pub fn executed(&self, tag: u32) -> Option<Work> {
        self.entries.iter().find(|entry| entry.job.tag == tag).map(|entry| entry.executed)
    }

    /// The job to run at `now`.
    pub fn choose(&self, now: Instant) -> Option<Job> {
        if self.rules.dispatch == LaneDispatch::NonPreemptive
            && let Some(tag) = self.last_ran
        {
            return self.entries.iter().find(|entry| entry.job.tag == tag).map(|entry| entry.job);
        }
        self.entries.iter().min_by(|a, b| self.compare(a, b, now)).map(|entry| entry.job)
    }

    /// Time left until the discipline's deadline: zero or less is late.
    fn slack_ns(&self, entry: &Entry, now: Instant) -> i64 {
        let until_deadline = entry.job.deadline.as_nanos() - now.as_nanos();
        match self.discipline {
            Discipline::Fifo => entry.job.release.as_nanos() - now.as_nanos(),
            Discipline::Deadline => until_deadline,
            Discipline::Laxity => {
                let declared = entry.job.wcet.as_nanos();
                let left = match self.rules.laxity {
                    Laxity::Declared => declared,
                    Laxity::Remaining => declared - entry.executed.as_nanos(),
                };
                until_deadline - left
            }
        }
    }

    fn compare(&self, a: &Entry, b: &Entry, now: Instant) -> Ordering {
        let late = |entry: &Entry| {
            self.rules.late == Late::Last
                && self.discipline != Discipline::Fifo
                && self.slack_ns(entry, now) <= 0
        };
        let ran = |entry: &Entry| self.last_ran == Some(entry.job.tag);
        let urgency = late(a).cmp(&late(b)).then(self.slack_ns(a, now).cmp(&self.slack_ns(b, now)));
        let members = a.job.rank.cmp(&b.job.rank).then(a.job.number.cmp(&b.job.number));
        match self.ties {
            Ties::MemberOrder => urgency.then(members),
            Ties::LastRan => {
                urgency.then(ran(b).cmp(&ran(a))).then(a.job.release.cmp(&b.job.release)).then(members)
            }
        }
    }
}
