//! Explanations as JSON, with names instead of numbers; times in nanoseconds from the run's start.

use super::{Explanation, Explanations, Hop, Interval, Outcome, Standing, Subject, TakenEvent, Total, Which};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};
use talea_record::SkipReason;
use talea_time::Instant;

/// One object; an explanation is made when it is written, so that a long list takes no more memory than it has.
///
/// | Key | What it is |
/// |---|---|
/// | `task` | the task asked about; null if all were, or one job |
/// | `instances`, `failed` | instances of that task, otherwise of all tasks, by how they ended; null if a chain was asked about |
/// | `exceeded_limits` | limits of chains that were exceeded, each once |
/// | `lost_records`, `lost_kernel_records` | records that were lost, all of them and those of the kernel |
/// | `subject` | a task and instance, a job, or a chain with the time that is explained and the instance of its last operation |
/// | `gaps` | what the trace leaves open for want of events, and their names |
/// | `explanations` | one object each, the worst first |
/// | `response_ns`, `lateness_ns` | from arrival and from deadline to `end_ns`; null of what was skipped, which never ran; the second, and `deadline_ns`, also of what has no deadline |
/// | `end_ns` | its end, the end of what is known, or the instant at which it was skipped |
/// | `uncertain_ns` | part of the response of which records were lost, or are from before the recording |
/// | `unrecorded_ns` | part of the response that only events would tell of that were not recorded, `shared` included |
/// | `hops` | the jobs on its critical path |
/// | `events` | what these took of channels: `job`, `channel`, `type` and `pushed_by`; null where a program pushed it otherwise |
/// | `intervals` | the response from arrival to end without gaps; empty of what was skipped |
/// | `totals` | the same by cause, with the same sum; an `ns` is that of all stages together; empty of what was skipped |
/// | `stranding` | of what is unfinished the lost message, or the node that left the run, because of which it never completes; otherwise null |
/// | `because` | of what was skipped the instance in its way, or with which it was merged, explained up to `end_ns`; otherwise null |
/// | `stands_for_it` | of what was merged the instance with which it was: `task`, `instance`, `outcome`, and when it began and ended, null if it did not; otherwise null |
impl Serialize for Explanations {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let counts = &self.counts;
        let instances = json!({
            "met": counts.met, "missed": counts.missed, "aborted": counts.aborted, "skipped": counts.skipped,
            "overdue": counts.overdue, "in_flight": counts.in_flight,
        });
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("system", &self.metadata.system)?;
        map.serialize_entry("strategy", &self.metadata.strategy)?;
        map.serialize_entry("lost_records", &self.lost.sum())?;
        map.serialize_entry("lost_kernel_records", &self.lost.kernel)?;
        let task = self.question.task.map(|task| &self.metadata.tasks[task].name);
        map.serialize_entry("task", &task)?;
        let counts_instances = self.question.which != Which::Chains;
        map.serialize_entry("instances", &counts_instances.then_some(instances))?;
        map.serialize_entry("failed", &counts_instances.then(|| counts.failed()))?;
        map.serialize_entry("exceeded_limits", &counts.limits)?;
        let gaps: Vec<Value> = self
            .gaps()
            .into_iter()
            .map(|(unknown, not_recorded)| json!({ "unknown": unknown, "not_recorded": not_recorded }))
            .collect();
        map.serialize_entry("gaps", &gaps)?;
        map.serialize_entry("explanations", &List(self))?;
        map.end()
    }
}

/// The explanations, one after the other.
struct List<'a>(&'a Explanations);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.list.iter().map(|one| self.0.explanation(one)))
    }
}

impl Explanations {
    /// All of it as one object, in memory.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("names are texts, and numbers are finite")
    }

    fn explanation(&self, one: &Explanation) -> Value {
        let subject = match one.subject {
            Subject::Instance { task, number } => {
                json!({ "task": self.metadata.tasks[task].name, "instance": number })
            }
            Subject::Job(job) => json!({ "job": self.job_name(job), "instance": job.instance }),
            Subject::Way { chain, measure, number } => {
                json!({ "chain": self.metadata.chains[chain].name, "measure": measure, "instance": number })
            }
        };
        let is_skipped = matches!(one.outcome, Outcome::Skipped { .. });
        json!({
            "subject": subject,
            "outcome": outcome(one.outcome),
            "arrival_ns": self.since_start(one.arrival),
            "deadline_ns": one.due().map(|due| self.since_start(due)),
            "end_ns": self.since_start(one.end),
            "response_ns": (!is_skipped).then(|| one.response().as_nanos()),
            "lateness_ns": one.due().filter(|_| !is_skipped).map(|_| one.lateness().as_nanos()),
            "unrecorded_ns": one.unrecorded().as_nanos(),
            "uncertain_ns": one.uncertain().as_nanos(),
            "stolen_ns_max": self.stolen(one).as_nanos(),
            "sentence": self.sentence(one),
            "hops": one.hops.iter().map(|hop| self.hop(hop)).collect::<Vec<_>>(),
            "events": one.events.iter().map(|event| self.event(event)).collect::<Vec<_>>(),
            "totals": one.totals.iter().map(|total| self.total(total)).collect::<Vec<_>>(),
            "intervals": one.intervals.iter().map(|interval| self.interval(interval)).collect::<Vec<_>>(),
            "stranding": one.stranding.map(|stranding| self.stranding_json(stranding)),
            "stands_for_it": one.stands_for_it.map(|standing| self.standing(standing)),
            "because": one.because.as_ref().map(|because| self.explanation(because)),
        })
    }

    fn standing(&self, Standing { task, number, began, end, outcome: ended }: Standing) -> Value {
        json!({
            "task": self.metadata.tasks[task].name,
            "instance": number,
            "outcome": outcome(ended),
            "began_ns": began.map(|at| self.since_start(at)),
            "end_ns": end.map(|at| self.since_start(at)),
        })
    }

    fn hop(&self, hop: &Hop) -> Value {
        json!({
            "job": self.job_name(hop.job),
            "released_ns": hop.is_released.then(|| self.since_start(hop.released)),
            "started_ns": hop.started.map(|at| self.since_start(at)),
            "ended_ns": hop.ended.map(|at| self.since_start(at)),
        })
    }

    fn event(&self, event: &TakenEvent) -> Value {
        let entry = event.publication.map(|publication| &self.metadata.publications[publication]);
        json!({
            "job": self.job_name(event.job),
            "channel": entry.map(|entry| &entry.channel),
            "type": entry.map(|entry| &entry.event_type),
            "pushed_by": event.from.map(|from| self.job_name(from)),
        })
    }

    fn total(&self, total: &Total) -> Value {
        json!({
            "cause": total.kind,
            "blamed": Some(self.blamed_name(total.blamed)).filter(|name| !name.is_empty()),
            "ns": total.sum().as_nanos(),
            "before_release_ns": total.coming.as_nanos(),
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

    pub(super) fn since_start(&self, at: Instant) -> i64 {
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
        Outcome::Skipped { reason: SkipReason::Early } => "skipped-early",
        Outcome::Skipped { reason: SkipReason::Expired } => "skipped-expired",
        Outcome::Skipped { reason: SkipReason::Merged } => "skipped-merged",
        Outcome::Unfinished => "unfinished",
    }
}
