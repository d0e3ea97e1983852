//! Whether a trace has what a verification needs: what is not recorded is neither obeyed nor violated.

use crate::namespace::builtin;
use crate::{Contents, Event, Metadata};
use thiserror::Error;

/// Why nothing in a trace can be judged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unjudgeable {
    /// It has no tables of a system: it is of the kernel, or of programs that are no Talea system.
    #[error("the trace holds no system, only records of programs or of the kernel")]
    NoSystem,
    /// Events of jobs were not recorded. Without them the life of a job cannot be followed, and every rule follows it.
    #[error("the trace has no records of {}, so the jobs in it cannot be judged", .missing.join(", "))]
    Incomplete {
        /// Names of the events, with their family's.
        missing: Vec<String>,
    },
    /// The events of jobs were recorded, and there are none.
    #[error("the trace tells of no job, so there is nothing to judge")]
    NoJobs,
}

/// What of a run is in its trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Whether anything is known of the node, by its index.
    heard: Vec<bool>,
    /// Whether the kernel's threads are known from those of the node's lanes.
    identified: Vec<bool>,
}

impl Coverage {
    /// Of a trace that has everything, as a simulation's.
    pub fn whole(metadata: &Metadata) -> Self {
        let all = || vec![true; metadata.nodes.len()];
        Coverage { heard: all(), identified: all() }
    }

    /// Of a trace with these `contents`.
    ///
    /// # Errors
    /// [`Unjudgeable`] if no rule could be judged from them.
    pub fn of(metadata: &Metadata, contents: &Contents) -> Result<Self, Unjudgeable> {
        if !metadata.has_system() {
            return Err(Unjudgeable::NoSystem);
        }
        let missing = match &metadata.recorded {
            Some(_) => metadata.unrecorded_job_events(),
            None => absent(metadata, contents).iter().map(|event| name(*event)).collect(),
        };
        if !missing.is_empty() {
            return Err(Unjudgeable::Incomplete { missing });
        }
        if contents.of_jobs() == 0 {
            return Err(Unjudgeable::NoJobs);
        }
        let nodes = 0..metadata.nodes.len();
        let heard = nodes.clone().map(|node| contents.hears(node)).collect();
        Ok(Coverage { heard, identified: nodes.map(|node| contents.identifies(node)).collect() })
    }

    /// Whether anything is known of the node.
    pub(super) fn hears(&self, node: usize) -> bool {
        self.heard[node]
    }

    /// Whether it is known who has the node's processors. It is not where the kernel tells of threads and no record says
    /// which of them are those of the node's lanes.
    pub(super) fn identifies(&self, node: usize) -> bool {
        self.identified[node]
    }

    /// The names of the nodes whose processors the kernel gave to threads that nobody knows.
    pub(super) fn unidentified(&self, metadata: &Metadata) -> Vec<String> {
        let nodes = metadata.nodes.iter().zip(&self.identified);
        nodes.filter(|(_, identified)| !**identified).map(|(node, _)| node.name.clone()).collect()
    }

    /// The names of the nodes of which nothing is known, for which operations wait in vain.
    pub(super) fn unheard(&self, metadata: &Metadata) -> Vec<String> {
        let serves =
            |node: usize| metadata.operations.iter().any(|entry| metadata.lanes[entry.lane].node == node);
        let nodes = metadata.nodes.iter().enumerate();
        nodes
            .filter(|(node, _)| !self.heard[*node] && serves(*node))
            .map(|(_, entry)| entry.name.clone())
            .collect()
    }
}

/// The events of jobs that cannot but have happened, and have no record.
///
/// Nobody says what a ring was asked for, so this goes by what there is: what ended had begun, what began had been
/// released, what goes on was preempted, and no more jobs than lanes are begun and neither ended nor preempted.
fn absent(metadata: &Metadata, contents: &Contents) -> Vec<Event> {
    let count = |event| contents.count(event);
    let ended = count(Event::COMPLETE) + count(Event::ABORT);
    let begun_at_most = count(Event::PREEMPT) + metadata.lanes.len() as u64;
    let lacks = [
        (Event::RELEASE, count(Event::START) + count(Event::COMPLETE) > 0),
        (Event::START, count(Event::COMPLETE) + count(Event::RESUME) > 0),
        (Event::PREEMPT, count(Event::RESUME) > 0),
        (Event::COMPLETE, ended == 0 && count(Event::START) > begun_at_most),
    ];
    let absent = lacks.into_iter().filter(|(event, has_to_be)| *has_to_be && count(*event) == 0);
    absent.map(|(event, _)| event).collect()
}

fn name(event: Event) -> String {
    format!("{}.{}", builtin::JOB.name, event.name().unwrap_or_default())
}
