//! The books of one task: its instances from release to resolution.

use super::distribution::Recorder;
use super::operation::Verdict;
use super::samples::{Kind, SampleClock};
use super::window::{Instance, Stage, Window};
use talea_policy::demand;
use talea_record::event::Dates;
use talea_record::{ReleasedBy, TaskEntry};
use talea_time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct TaskState {
    pub kind: Kind,
    /// The first arrival and the period, for instances whose release was lost.
    pub arrival_ns: i64,
    pub period_ns: i64,
    pub deadline: Duration,
    pub released_by: ReleasedBy,
    /// Whether its instances arrive with the jobs that release them.
    pub inherits: bool,
    pub jitter: Duration,
    pub jitter_stream: u64,
    /// Number of last operations.
    pub lasts: u32,
    pub window: Window,
    pub released: u64,
    pub completed: u64,
    pub met: u64,
    pub missed: u64,
    pub skipped: u64,
    pub merged: u64,
    pub aborted: u64,
    pub messages_lost: u64,
    /// Aborted, and without a deadline to miss.
    pub given_up: u64,
    pub worst_lateness_ns: i64,
    /// `None` for a task of one operation that has the same response times as the operation.
    pub response: Option<Recorder>,
}

impl TaskState {
    /// A task of one operation that is none of the last, until its operations are seen.
    pub fn new(entry: &TaskEntry, start: Instant) -> Self {
        TaskState {
            kind: Kind::of(entry.criticality),
            arrival_ns: start.saturating_add(entry.phase).as_nanos(),
            period_ns: entry.period.as_nanos(),
            deadline: entry.deadline,
            released_by: entry.released_by,
            inherits: entry.inherits_deadline,
            jitter: entry.jitter,
            jitter_stream: entry.jitter_stream,
            lasts: 0,
            window: Window::new(entry),
            released: 0,
            completed: 0,
            met: 0,
            missed: 0,
            skipped: 0,
            merged: 0,
            aborted: 0,
            messages_lost: 0,
            given_up: 0,
            worst_lateness_ns: i64::MIN,
            response: None,
        }
    }

    /// How long after its arrival the instance is meant to be released.
    #[inline]
    pub fn jitter_ns(&self, number: u64) -> i64 {
        demand::release_jitter_from(self.jitter, self.jitter_stream, number).as_nanos()
    }

    /// Follows the instance from now on if it is new, and returns whether it is.
    #[inline(always)]
    pub fn see(&mut self, is_first: bool, number: u64, dates: Dates, samples: &mut SampleClock) -> bool {
        let is_new = self.window.is_new(number);
        if is_new {
            self.follow(is_first, number, dates, samples);
        }
        is_new
    }

    fn follow(&mut self, is_first: bool, number: u64, dates: Dates, samples: &mut SampleClock) {
        let release_ns = if is_first && !self.inherits {
            dates.nominal.as_nanos()
        } else if !self.released_by.is_period() {
            // Nothing but its deadline says when it arrived.
            dates.deadline.saturating_add(-self.deadline).as_nanos()
        } else {
            let since_first = self.period_ns.saturating_mul(i64::try_from(number).expect("44 bits"));
            self.arrival_ns.saturating_add(since_first)
        };
        let deadline_ns = dates.deadline.as_nanos();
        self.released += 1;
        let instance =
            Instance { number, release_ns, deadline_ns, remaining: self.lasts, stage: Stage::Pending };
        if self.window.push(instance).is_some_and(|given_up| given_up.stage == Stage::Pending) {
            self.missed += 1;
            samples.failed(self.kind, 1);
        }
    }

    /// A last operation of the instance completed.
    #[inline]
    pub fn complete_one(&mut self, number: u64, time_ns: i64, samples: &mut SampleClock) {
        let Some(instance) = self.window.find(number) else { return };
        if instance.stage == Stage::Resolved {
            return;
        }
        instance.remaining -= 1;
        if instance.remaining > 0 {
            return;
        }
        let before = std::mem::replace(&mut instance.stage, Stage::Resolved);
        let lateness_ns = time_ns.saturating_sub(instance.deadline_ns);
        if let Some(response) = &mut self.response {
            response.record(time_ns.saturating_sub(instance.release_ns));
        }
        self.completed += 1;
        self.worst_lateness_ns = self.worst_lateness_ns.max(lateness_ns);
        if before == Stage::Pending {
            if lateness_ns <= 0 {
                self.met += 1;
                samples.met(self.kind);
            } else {
                self.missed += 1;
                samples.failed(self.kind, 1);
            }
        }
        self.window.trim();
    }

    pub fn abort(&mut self, number: u64, verdict: Verdict, samples: &mut SampleClock) {
        let Some(instance) = self.window.find(number) else { return };
        let before = std::mem::replace(&mut instance.stage, Stage::Resolved);
        if before != Stage::Resolved {
            self.aborted += 1;
        }
        if before == Stage::Pending {
            match verdict {
                Verdict::NoDeadline => self.given_up += 1,
                Verdict::Missed | Verdict::InTime => {
                    self.missed += 1;
                    samples.failed(self.kind, 1);
                }
            }
        }
        self.window.trim();
    }

    /// Another instance stands for this one.
    pub fn merge(&mut self, number: u64) {
        if self.window.is_new(number) {
            self.merged += 1;
        }
        self.expire(number);
    }

    /// What the instance was for has expired before it was released: it is none.
    pub fn expire(&mut self, number: u64) {
        if self.window.is_new(number) {
            self.window.pass(number);
        }
    }

    /// The instance is skipped, by the first of its first operations that says so.
    pub fn skip(&mut self, number: u64, samples: &mut SampleClock) {
        if self.window.is_new(number) {
            self.window.pass(number);
            self.skipped += 1;
            samples.failed(self.kind, 1);
            return;
        }
        // Another first operation of the instance was released already.
        let Some(instance) = self.window.find(number) else { return };
        if instance.stage == Stage::Pending {
            instance.stage = Stage::Resolved;
            self.released -= 1;
            self.skipped += 1;
            samples.failed(self.kind, 1);
            self.window.trim();
        }
    }
}
