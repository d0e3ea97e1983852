//! A node with a hierarchy of schedulers as the run knows it: scheduled by a managed set, or by the kernel alone.

use crate::error::PrepareError;
use crate::flow::Shared;
use crate::hierarchy::{Hierarchy, HierarchyError, HierarchyParts, LaneMember, leaving};
use crate::lowered::{LoweredNode, OwnThread};
use crate::lowering::hierarchy::{Lowering, PartAccount, Reason, lower_hierarchy};
use crate::lowering::machine::{Machine, admits};
use crate::options::{Lower, RtMode, RunOptions};
use crate::outcome::{HierarchyOutcome, ThreadAttributes};
use crate::plans::plans;
use std::sync::Arc;
use talea_analysis::system::Leaving;
use talea_linux::sched::Policy;
use talea_model::{Scheduling, System};
use talea_policy::strategy::Plan;
use talea_record::RingWriter;
use talea_time::Instant;

/// A node whose threads are all there.
pub(crate) enum HierarchyNode {
    /// By its schedulers.
    Managed {
        hierarchy: Box<Hierarchy>,
        /// What was asked about lowering it, if that was.
        lowering: Vec<PartAccount>,
    },
    /// By the kernel.
    Lowered(Box<LoweredNode>),
}

/// What the pure function says becomes of the hierarchy of a node on this machine, if that is asked.
pub(crate) fn plan_lowering(system: &System, node: usize, options: &RunOptions) -> Option<Lowering> {
    if options.lower == Lower::Never || system.scheduling(node) == Scheduling::Lanes {
        return None;
    }
    let mut machine = Machine::examine(&system.nodes[node].cpus);
    if options.rt == RtMode::Off {
        machine.real_time = Err("no real-time scheduling is asked for (`--rt off`)".into());
    }
    lower_hierarchy(system, node, &machine)
}

/// What becomes of the hierarchy of a node on this machine, if that is asked: what the pure function says, and whether the
/// kernel admits all its reservations now. `None` if it is not asked, or the node has none.
pub(crate) fn confirm_lowering(system: &System, node: usize, options: &RunOptions) -> Option<Lowering> {
    let mut lowering = plan_lowering(system, node, options)?;
    let cpus = &system.nodes[node].cpus;
    let Some(settings) = &lowering.settings else { return Some(lowering) };
    let reserved: Vec<(Policy, Option<usize>)> = std::iter::once((settings.release, None))
        .chain(settings.threads.iter().map(|setting| (setting.policy, Some(setting.thread))))
        .filter(|(policy, _)| matches!(policy, Policy::Deadline { .. }))
        .collect();
    let policies: Vec<Policy> = reserved.iter().map(|(policy, _)| *policy).collect();
    if let Err((position, refused)) = admits(&policies, cpus) {
        let thread = reserved[position].1.or_else(|| reserved.iter().find_map(|(_, thread)| *thread));
        let thread = thread.expect("who releases is reserved for somebody");
        let name = system.threads[thread].name.clone();
        lowering.keep(&name, Reason::NotPermitted { refused });
    }
    Some(lowering)
}

impl HierarchyNode {
    /// Sets a node up as was decided.
    ///
    /// # Errors
    /// See [`HierarchyError`].
    pub fn set_up(
        parts: &HierarchyParts<'_>,
        decided: Option<&Lowering>,
        (plan, lanes): (&Plan, Vec<LaneMember>),
        rings: Vec<RingWriter>,
        shared: &Arc<Shared>,
    ) -> Result<Self, HierarchyError> {
        let account = decided.map_or_else(Vec::new, Lowering::account);
        match decided.and_then(|lowering| lowering.settings.as_ref()) {
            Some(settings) => {
                let node = LoweredNode::set_up(parts, (settings, account), rings, shared)?;
                Ok(HierarchyNode::Lowered(Box::new(node)))
            }
            None => Ok(HierarchyNode::Managed {
                hierarchy: Box::new(parts.set_up(plan, lanes, rings)?),
                lowering: account,
            }),
        }
    }

    /// The threads that are no lanes, as the kernel has them.
    pub fn attributes(&self) -> Vec<ThreadAttributes> {
        match self {
            HierarchyNode::Managed { hierarchy, .. } => hierarchy.attributes(),
            HierarchyNode::Lowered(node) => node.attributes(),
        }
    }

    /// Those of them, if the node is lowered, that the kernel gave something else than was asked for.
    pub fn not_as_wanted(&self) -> Vec<String> {
        match self {
            HierarchyNode::Managed { .. } => Vec::new(),
            HierarchyNode::Lowered(node) => node.not_as_wanted(),
        }
    }

    /// The run will last from `start` to `end`.
    pub fn begin(&mut self, start: Instant, end: Instant) {
        match self {
            HierarchyNode::Managed { hierarchy, .. } => hierarchy.begin(start, end),
            HierarchyNode::Lowered(node) => node.begin(start, end),
        }
    }

    pub fn is_lowered(&self) -> bool {
        matches!(self, HierarchyNode::Lowered(_))
    }

    /// Whether it has ended, at the planned end or before.
    pub fn is_over(&self) -> bool {
        match self {
            HierarchyNode::Managed { hierarchy, .. } => hierarchy.is_over(),
            HierarchyNode::Lowered(node) => node.is_over(),
        }
    }

    /// Ends it, unless it is over, and says what came of it. If it is lowered, its own threads have ended, of which `own` came.
    pub fn end(self, own: &[OwnThread]) -> HierarchyOutcome {
        match self {
            HierarchyNode::Managed { hierarchy, lowering } => {
                HierarchyOutcome { lowering, ..hierarchy.end() }
            }
            HierarchyNode::Lowered(node) => node.end(own),
        }
    }
}

/// What each node of `system` will leave of its processors in a run with these options on this machine as it is set now.
///
/// # Errors
/// The lanes of a node cannot be planned.
pub fn leaving_of(system: &System, options: &RunOptions) -> Result<Vec<Leaving>, PrepareError> {
    let system = &system.with_threads_as_tasks();
    let plans = plans(system)?;
    let is_lowered = |node: usize| {
        plan_lowering(system, node, options).is_some_and(|lowering| lowering.settings.is_some())
    };
    Ok(leaving(system, &plans, options.slicing, is_lowered))
}
