//! What each thread of a run gets of the kernel: name, stack, policy; and what follows from who schedules its node.

use super::{BARE_STACK, ThreadPlan, ThreadPurpose};
use crate::error::PrepareError;
use crate::lowering::hierarchy::Switches;
use crate::lowering::{LanePriorities, NodeSettings};
use crate::plans::unset;
use talea_linux::sched::Policy;
use talea_linux::thread::SpawnError;
use talea_manage::SetError;
use talea_model::{OperationId, Scheduling};

impl ThreadPlan<'_> {
    /// The stack of the thread: with memory locked, all of it takes memory.
    pub(super) fn stack(&self, role: ThreadPurpose) -> usize {
        let runs_code_of_users = match role {
            ThreadPurpose::Lane { lane } | ThreadPurpose::Slot { lane, .. } => {
                let has_code = |member: &OperationId| self.shared.behaviour(*member).has_code();
                self.shared.posting.has_room() || self.lane(lane).members.iter().any(has_code)
            }
            ThreadPurpose::Release { .. }
            | ThreadPurpose::Receive { .. }
            | ThreadPurpose::Controller { .. } => false,
        };
        if runs_code_of_users { self.options.stack } else { self.options.stack.min(BARE_STACK) }
    }

    pub(super) fn node(&self, role: ThreadPurpose) -> usize {
        match role {
            ThreadPurpose::Release { node } | ThreadPurpose::Receive { node } => node,
            ThreadPurpose::Lane { lane }
            | ThreadPurpose::Slot { lane, .. }
            | ThreadPurpose::Controller { lane } => self.shared.layout.lanes[lane].node,
        }
    }

    /// A name that says what the thread is within the 15 characters that Linux keeps.
    pub fn name(&self, role: ThreadPurpose) -> String {
        let node = &self.system.nodes[self.node(role)].name;
        let level = |lane: usize| self.shared.layout.lanes[lane].level;
        match role {
            ThreadPurpose::Release { .. } => format!("rel:{node}"),
            ThreadPurpose::Receive { .. } => format!("rcv:{node}"),
            ThreadPurpose::Lane { lane } if self.is_own(lane) => self.lane(lane).label.clone(),
            ThreadPurpose::Lane { lane } => format!("l{}:{node}", level(lane)),
            ThreadPurpose::Slot { lane, slot } => format!("l{}s{slot}:{node}", level(lane)),
            ThreadPurpose::Controller { lane } => format!("l{}c:{node}", level(lane)),
        }
    }

    pub(super) fn settings(&self, node: usize) -> &NodeSettings {
        let found = self.nodes.iter().find(|(own, _)| *own == node);
        &found.expect("a node of this process").1
    }

    /// Whether the lane is an own thread of a lowered hierarchy.
    pub(super) fn is_own(&self, lane: usize) -> bool {
        matches!(self.settings(self.shared.layout.lanes[lane].node), NodeSettings::Hierarchy(_))
    }

    pub(super) fn policy(&self, role: ThreadPurpose) -> Policy {
        let level = |lane: usize| self.shared.layout.lanes[lane].level;
        let lowering = match (self.settings(self.node(role)), role) {
            (NodeSettings::Hierarchy(settings), ThreadPurpose::Lane { lane }) => {
                return settings.threads[level(lane)].policy;
            }
            (NodeSettings::Hierarchy(settings), _) => return settings.release,
            (NodeSettings::Lanes(_), _) if !self.realtime => return Policy::Other,
            (NodeSettings::Lanes(lowering), _) => lowering,
        };
        let lane = |lane: usize| lowering.lanes[level(lane)];
        Policy::Fifo(match role {
            ThreadPurpose::Release { .. } | ThreadPurpose::Receive { .. } => lowering.release,
            ThreadPurpose::Lane { lane: number }
            | ThreadPurpose::Slot { lane: number, .. }
            | ThreadPurpose::Controller { lane: number } => match (lane(number), role) {
                (LanePriorities::Single(priority), _) => priority,
                (LanePriorities::Banded { controller, .. }, ThreadPurpose::Controller { .. }) => controller,
                (LanePriorities::Banded { granted, .. }, _) => granted,
            },
        })
    }

    /// The processor whose word a node's lanes use: its only one, unless it shares that with a node
    /// of several processors, or the kernel does not keep the lanes nested.
    pub(super) fn processor(&self, node: usize) -> Option<usize> {
        let [cpu] = self.system.nodes[node].cpus[..] else { return None };
        let shares = |(other, _): &(usize, NodeSettings)| {
            let cpus = &self.system.nodes[*other].cpus;
            cpus.len() > 1 && cpus.contains(&cpu)
        };
        let are_nested = match self.settings(node) {
            NodeSettings::Hierarchy(settings) => settings.switches == Switches::Nested,
            NodeSettings::Lanes(_) => self.realtime && !self.nodes.iter().any(shares),
        };
        are_nested.then_some(usize::from(cpu))
    }

    /// Whether the lanes of the node have places below other schedulers.
    pub(super) fn is_managed(&self, node: usize) -> bool {
        let is_lowered = matches!(self.settings(node), NodeSettings::Hierarchy(_));
        self.system.scheduling(node) == Scheduling::Hierarchy && !is_lowered
    }

    pub(super) fn refused(&self, node: usize, error: SpawnError) -> PrepareError {
        match self.settings(node) {
            NodeSettings::Hierarchy(_) => unset(self.system, node, SetError::Thread(error).into()),
            NodeSettings::Lanes(_) => error.into(),
        }
    }
}
