//! What keeps an instance from ever completing: word of a job that was lost between two nodes, or a node that left the run.

use super::life::{JobLife, LIMIT, Life, Lives};
use super::{Explanation, Explanations};
use crate::explain::cause::{Cause, length};
use serde_json::{Value, json};
use talea_model::OperationId;
use talea_record::{JobId, LossReason, Metadata};
use talea_time::{Duration, Instant};

/// Why an instance never completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stranding {
    /// Word of a completed job did not reach another node.
    Message(LostMessage),
    /// A node left the run before its job of the instance had completed.
    Node {
        /// The node, by index.
        node: usize,
        /// When it was heard to have left.
        at: Instant,
        /// The job.
        job: JobId,
    },
}

/// Word of a completed job that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostMessage {
    /// The completed job.
    pub of: JobId,
    /// The operation that it was for.
    pub to: OperationId,
    /// When it was lost.
    pub at: Instant,
    /// Why, if the trace says so in a word that is known.
    pub why: Option<LossReason>,
}

impl Stranding {
    /// When it came about.
    pub fn at(self) -> Instant {
        match self {
            Stranding::Message(LostMessage { at, .. }) | Stranding::Node { at, .. } => at,
        }
    }

    /// What the time from then on went into.
    pub(super) fn cause(self) -> Cause {
        match self {
            Stranding::Message(LostMessage { of, .. }) => Cause::Lost { of },
            Stranding::Node { job, .. } => Cause::Left { job },
        }
    }
}

impl Lives {
    /// Word of a job was lost, which the instance waits for: perhaps before anything else is heard of it.
    pub fn message_lost(&mut self, instance: u64, lost: LostMessage) {
        if let Some(life) = self.in_flight.get_mut(&instance) {
            life.lost.push(lost);
        } else if self.seen.is_new(instance) {
            self.lost_triggers.entry(instance).or_default().push(lost);
            if self.lost_triggers.len() > LIMIT {
                self.lost_triggers.pop_first();
            }
        }
    }

    /// What keeps an unfinished instance from completing, where `left` says of each node when it left.
    pub fn stranding(
        &self,
        metadata: &Metadata,
        instance: u64,
        life: &Life,
        left: &[Option<Instant>],
    ) -> Option<Stranding> {
        let of = |operation: usize| self.operations.iter().position(|index| *index == operation);
        let job = |operation: usize| of(operation).map_or(JobLife::default(), |place| life.jobs[place]);
        let waits = |lost: &&LostMessage| job(lost.to.index()).released.is_none();
        if let Some(lost) = life.lost.iter().find(waits) {
            return Some(Stranding::Message(*lost));
        }
        self.operations.iter().find_map(|&index| {
            let entry = &metadata.operations[index];
            let node = metadata.lanes[entry.lane].node;
            let at = left.get(node).copied().flatten()?;
            let is_its_turn = || entry.predecessors.iter().all(|before| job(*before).ended.is_some());
            let own = job(index);
            let is_cut_off = own.ended.is_none() && (own.released.or(own.started).is_some() || is_its_turn());
            let job = JobId { operation: OperationId::from_index(index), instance };
            is_cut_off.then_some(Stranding::Node { node, at, job })
        })
    }
}

impl Explanations {
    /// Why the instance never completes.
    pub(super) fn stranded(&self, explanation: &Explanation, stranding: Stranding) -> String {
        let when = match length(explanation.arrival, stranding.at()) {
            after if after >= Duration::ZERO => format!("{} after the arrival", after.rounded()),
            before => format!("{} before the arrival", (-before).rounded()),
        };
        let node_of = |operation: OperationId| {
            let entry = self.metadata.operations.get(operation.index());
            entry.map_or("?", |entry| &self.metadata.nodes[self.metadata.lanes[entry.lane].node].name)
        };
        match stranding {
            Stranding::Message(LostMessage { of, to, why, .. }) => {
                let to_node = node_of(to);
                let why = match why {
                    Some(LossReason::Link) => {
                        format!("on the link from node {} to node {to_node}", node_of(of.operation))
                    }
                    Some(LossReason::Full) => format!("for the way to node {to_node} was full"),
                    Some(LossReason::Left) => format!("because node {to_node} had left the run"),
                    Some(LossReason::Absent) | None => format!("for there was no way to node {to_node}"),
                    Some(LossReason::TooLong) => "for it was longer than a message may be".into(),
                    Some(LossReason::NoRoom) => {
                        format!("for node {to_node} had no room to hold it until it was due")
                    }
                };
                let to = self.metadata.operations.get(to.index()).map_or("?", |entry| &entry.name);
                let of = self.job_name(of);
                format!(
                    "The message of {of} to {to} was lost {when}, {why}: what waits for it is never released."
                )
            }
            Stranding::Node { node, job, .. } => format!(
                "{} never completed, because node {} left the run {when}: what waits for its message is never released.",
                self.job_name(job),
                self.metadata.nodes[node].name,
            ),
        }
    }

    pub(super) fn stranding_json(&self, stranding: Stranding) -> Value {
        let at_ns = self.since_start(stranding.at());
        match stranding {
            Stranding::Message(LostMessage { of, to, why, .. }) => json!({
                "message_of": self.job_name(of), "at_ns": at_ns, "why": why,
                "to": self.metadata.operations.get(to.index()).map(|entry| &entry.name),
            }),
            Stranding::Node { node, job, .. } => {
                json!({ "node_left": self.metadata.nodes[node].name, "at_ns": at_ns, "job": self.job_name(job) })
            }
        }
    }
}
