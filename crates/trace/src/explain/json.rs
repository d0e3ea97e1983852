//! Explanations as JSON, with names instead of numbers; times in nanoseconds from the run's start.

use super::{Explanation, Explanations, Hop, Interval, Outcome, Subject, Total};
use crate::SkipReason;
use serde_json::{Value, json};
use talea_time::Instant;

impl Explanations {
    /// All of it as one object.
    pub fn to_json(&self) -> Value {
        let counts = &self.counts;
        json!({
            "system": self.metadata.system,
            "strategy": self.metadata.strategy,
            "lost_records": self.lost_records,
            "instances": {
                "met": counts.met, "missed": counts.missed, "aborted": counts.aborted, "skipped": counts.skipped,
                "overdue": counts.overdue, "in_flight": counts.in_flight,
            },
            "failed": counts.failed(),
            "explanations": self.list.iter().map(|one| self.explanation(one)).collect::<Vec<_>>(),
        })
    }

    fn explanation(&self, one: &Explanation) -> Value {
        let subject = match one.subject {
            Subject::Instance { task, number } => {
                json!({ "task": self.metadata.tasks[task].name, "instance": number })
            }
            Subject::Job(job) => json!({ "job": self.job_name(job), "instance": job.instance }),
        };
        json!({
            "subject": subject,
            "outcome": outcome(one.outcome),
            "arrival_ns": self.since_start(one.arrival),
            "deadline_ns": self.since_start(one.deadline),
            "end_ns": self.since_start(one.end),
            "response_ns": one.response().as_nanos(),
            "lateness_ns": one.lateness().as_nanos(),
            "uncertain_ns": one.uncertain().as_nanos(),
            "sentence": self.sentence(one),
            "hops": one.hops.iter().map(|hop| self.hop(hop)).collect::<Vec<_>>(),
            "totals": one.totals.iter().map(|total| self.total(total)).collect::<Vec<_>>(),
            "intervals": one.intervals.iter().map(|interval| self.interval(interval)).collect::<Vec<_>>(),
            "because": one.because.as_ref().map(|because| self.explanation(because)),
        })
    }

    fn hop(&self, hop: &Hop) -> Value {
        json!({
            "job": self.job_name(hop.job),
            "released_ns": self.since_start(hop.released),
            "started_ns": hop.started.map(|at| self.since_start(at)),
            "ended_ns": hop.ended.map(|at| self.since_start(at)),
        })
    }

    fn total(&self, total: &Total) -> Value {
        json!({
            "cause": total.kind,
            "blamed": Some(self.blamed_name(total.blamed)).filter(|name| !name.is_empty()),
            "ns": total.sum().as_nanos(),
            "waiting_ns": total.waiting.as_nanos(),
            "preempted_or_executing_ns": total.begun.as_nanos(),
            "intervals": total.intervals,
        })
    }

    fn interval(&self, interval: &Interval) -> Value {
        let blamed = interval
            .cause
            .job()
            .map_or_else(|| self.blamed_name(interval.cause.blamed()), |job| self.job_name(job));
        json!({
            "from_ns": self.since_start(interval.from),
            "to_ns": self.since_start(interval.to),
            "hop": interval.hop,
            "stage": interval.stage,
            "cause": interval.cause.kind(),
            "blamed": Some(blamed).filter(|name| !name.is_empty()),
        })
    }

    fn since_start(&self, at: Instant) -> i64 {
        at.as_nanos().saturating_sub(self.metadata.start.as_nanos())
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "met",
        Outcome::Missed => "missed",
        Outcome::Aborted => "aborted",
        Outcome::Skipped { reason: SkipReason::Overrun } => "skipped-overrun",
        Outcome::Skipped { reason: SkipReason::Full } => "skipped-full",
        Outcome::Unfinished => "unfinished",
    }
}
