//! Whether a trace has what a verification needs: what is not recorded is neither obeyed nor violated.

use talea_record::{Contents, Metadata, RecordedEvents};
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
    /// Which events it has.
    pub(super) recorded: RecordedEvents,
}

impl Coverage {
    /// Of a trace that has everything, as a simulation's.
    pub fn whole(metadata: &Metadata) -> Self {
        let all = || vec![true; metadata.nodes.len()];
        Coverage { heard: all(), identified: all(), recorded: RecordedEvents::everything() }
    }

    /// Of a trace with these `contents`.
    ///
    /// # Errors
    /// [`Unjudgeable`] if no rule could be judged from them.
    pub fn of(metadata: &Metadata, contents: &Contents) -> Result<Self, Unjudgeable> {
        if !metadata.has_system() {
            return Err(Unjudgeable::NoSystem);
        }
        let recorded = RecordedEvents::of(metadata, contents);
        let missing = recorded.missing_of_jobs();
        if !missing.is_empty() {
            return Err(Unjudgeable::Incomplete { missing });
        }
        if contents.of_jobs() == 0 {
            return Err(Unjudgeable::NoJobs);
        }
        let nodes = 0..metadata.nodes.len();
        let heard = nodes.clone().map(|node| contents.hears(node)).collect();
        let identified = nodes.map(|node| contents.identifies(node)).collect();
        Ok(Coverage { heard, identified, recorded })
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
