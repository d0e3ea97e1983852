//! The records of what the schedulers of a hierarchy decide: one for each transition of a virtual processor that stands at an edge.
//!
//! The engine tells which state a virtual processor has come into and what had set it off. Readers know edges and processors by
//! number, and want to know what happened. So this keeps the state before, and makes of
//!
//! | Before | After | Record |
//! |---|---|---|
//! | Waiting | Ready | request |
//! | Ready | Running | grant |
//! | Running | Ready | revoke |
//! | Ready, Running | Waiting | release |
//! | as before | | next job |

use crate::Record;
use crate::event::{Code, NextJob, Trigger, VpGrant, VpRelease, VpRequest, VpRevoke};
use talea_policy::arrangement::Watch;
use talea_policy::hierarchy::{self, Transition, VpId, VpState};
use talea_time::Instant;

/// Makes records of the decisions of one node's hierarchy.
#[derive(Debug)]
pub struct DecisionRecords {
    /// Linux numbers, in the order of the hierarchy's processors.
    cpus: Vec<u16>,
    edges: EdgeNumbers,
    /// By VP number.
    states: Vec<VpState>,
}

/// How a node's edges are numbered in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeNumbers {
    /// The node's first one that the tables have from the beginning.
    pub first: usize,
    /// How many of the node the tables have from the beginning.
    pub known: usize,
}

impl EdgeNumbers {
    /// The number in records of the node's edge `own`; none if the tables do not have it.
    pub fn number(self, own: usize) -> Option<u16> {
        (own < self.known).then(|| u16::try_from(self.first + own).ok()).flatten()
    }
}

/// Virtual processors that a hierarchy has, with those that come, without allocating.
const VPS: usize = 1024;

impl DecisionRecords {
    /// Of a hierarchy on these processors in which everybody waits.
    pub fn new(cpus: &[u16], edges: EdgeNumbers) -> Self {
        DecisionRecords { cpus: cpus.to_vec(), edges, states: vec![VpState::Waiting; VPS] }
    }

    /// The record of a transition at `now`; none where it is at no edge that the tables have. `watch` knows who stands at which edge.
    #[inline]
    pub fn record(&mut self, transition: Transition, watch: &Watch, now: Instant) -> Option<Record> {
        let Transition { vp, state, trigger } = transition;
        if self.states.len() <= vp.index() {
            self.states.resize(vp.index() + 1, VpState::Waiting);
        }
        let before = std::mem::replace(&mut self.states[vp.index()], state);
        let edge = self.number(watch, vp)?;
        let (trigger, by) = self.told(trigger, watch);
        self.of(edge, (before, state), (trigger, by), now)
    }

    /// The records at the run's beginning, of who is not waiting then.
    pub fn beginning<'a>(&'a self, watch: &'a Watch, now: Instant) -> impl Iterator<Item = Record> + 'a {
        let told = (Trigger::Beginning.into(), Record::NO_EDGE);
        let of = move |(index, state): (usize, &VpState)| {
            let edge = self.number(watch, VpId::from_index(index as u32))?;
            let wants = (*state != VpState::Waiting).then_some((VpState::Waiting, VpState::Ready));
            let has = matches!(state, VpState::Running(_)).then_some((VpState::Ready, *state));
            Some([wants, has].into_iter().flatten().filter_map(move |turn| self.of(edge, turn, told, now)))
        };
        self.states.iter().enumerate().filter_map(of).flatten()
    }

    fn number(&self, watch: &Watch, vp: VpId) -> Option<u16> {
        self.edges.number(watch.edge_of(vp)?)
    }

    /// What set a transition off, as records have it, and the edge of the thread behind it.
    fn told(&self, trigger: hierarchy::Trigger, watch: &Watch) -> (Code<Trigger>, u32) {
        let (trigger, thread) = match trigger {
            hierarchy::Trigger::Thread(vp) => (Trigger::Thread, Some(vp)),
            hierarchy::Trigger::Job(vp) => (Trigger::Job, Some(vp)),
            hierarchy::Trigger::Timer(_) => (Trigger::Timer, None),
            hierarchy::Trigger::SchedulingPoint => (Trigger::SchedulingPoint, None),
            hierarchy::Trigger::Change => (Trigger::Change, None),
        };
        let by = thread.and_then(|vp| self.number(watch, vp));
        (trigger.into(), by.map_or(Record::NO_EDGE, u32::from))
    }

    fn of(
        &self,
        edge: u16,
        (before, after): (VpState, VpState),
        (trigger, by): (Code<Trigger>, u32),
        now: Instant,
    ) -> Option<Record> {
        let cpu = |state: VpState| match state {
            VpState::Running(processor) => self.cpus[processor.index()],
            VpState::Waiting | VpState::Ready => Record::NO_CPU,
        };
        Some(match (before, after) {
            (VpState::Waiting, VpState::Ready) => VpRequest { edge, by, trigger }.at(now, Record::NO_CPU),
            (VpState::Ready, VpState::Running(_)) => VpGrant { edge, by, trigger }.at(now, cpu(after)),
            (VpState::Running(_), VpState::Ready) => VpRevoke { edge, by, trigger }.at(now, cpu(before)),
            (VpState::Ready | VpState::Running(_), VpState::Waiting) => {
                VpRelease { edge, by, trigger }.at(now, cpu(before))
            }
            _ if trigger == Trigger::Job => NextJob { edge }.at(now, cpu(after)),
            _ => return None,
        })
    }
}
