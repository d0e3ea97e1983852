//! When a job has all that it needs of its predecessors.
//!
//! In virtual time that is known to the nanosecond: completions are recorded, and how long a message takes, or that it is lost, follows from
//! its link and the seed. On real threads it is when the job's signal was recorded.

use super::instances::Progress;
use super::judge::{Judge, Known};
use talea_model::OperationId;
use talea_policy::demand::{MessageWay, Passage};
use talea_record::{JobId, Origin};
use talea_time::Instant;

/// The predecessors of a job that have completed.
#[derive(Debug)]
pub(super) struct Join {
    /// When word of each of them was there, in the order of that. On threads what messages take is not known, and this is no later.
    pub heard: Vec<(Instant, JobId)>,
    /// How many the job needs, at least one.
    pub needed: usize,
    /// How many it has.
    pub count: usize,
    /// Whether all of them are on the job's node.
    pub is_local: bool,
}

impl Join {
    /// When as many had been heard of as the job needs.
    pub fn complete(&self) -> Option<Instant> {
        self.heard.get(self.needed - 1).map(|(at, _)| *at)
    }
}

impl Judge<'_> {
    /// When a job on another node hears of the completion of `before` at `done`; `None` if the message is lost.
    pub(super) fn heard_of(&self, before: OperationId, job: JobId, done: Instant) -> Option<Instant> {
        let [from, to] = [before, job.operation].map(|operation| self.node_of(operation.index()));
        let Origin::Simulation { seed } = self.trace.origin else { return Some(done) };
        if from == to {
            return Some(done);
        }
        let way = MessageWay::new(seed, before, job.operation, self.system.route(from, to));
        match way.passage(job.instance) {
            Passage::Arrives(time) => Some(done.saturating_add(time)),
            Passage::Lost => None,
        }
    }

    /// What is known of the job's join; nothing if its instance is not known from the beginning.
    pub(super) fn join_of(&self, job: JobId) -> Option<Join> {
        let index = job.operation.index();
        let entry = &self.trace.operations[index];
        let own = self.system.operations().get(index)?.id;
        match self.known[entry.task] {
            Known::FromTheBeginning => {}
            Known::From(first) if job.instance >= first => {}
            _ => return None,
        }
        let here = self.node_of(index);
        let word = |before: &usize| {
            let id = JobId { operation: OperationId::from_index(*before), ..job };
            match self.instances[entry.task].progress(id) {
                Some(Progress::Completed(done)) => Some((self.heard_of(id.operation, job, done)?, id)),
                _ => None,
            }
        };
        let mut heard: Vec<(Instant, JobId)> = entry.predecessors.iter().filter_map(word).collect();
        heard.sort_unstable_by_key(|(at, id)| (*at, id.operation.index()));
        let count = entry.predecessors.len();
        let is_local = entry.predecessors.iter().all(|before| self.node_of(*before) == here);
        Some(Join { heard, needed: self.system.subtask(own).join.needed(count).max(1), count, is_local })
    }

    /// The node of an operation, as the description has it.
    pub(super) fn node_of(&self, operation: usize) -> usize {
        self.expected.lanes[self.expected.operations[operation].lane].node
    }
}
