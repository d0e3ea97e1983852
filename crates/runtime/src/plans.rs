//! How the lanes of all nodes are planned, and the tables of records that follow from it.

use crate::error::PrepareError;
use crate::hierarchy::{self, HierarchyError, below_others};
use crate::lowering::hierarchy as hierarchy_lowering;
use talea_analysis::system::Leaving;
use talea_linux::sched::Policy;
use talea_model::{Scheduling, System};
use talea_policy::strategy::{Plan, plan_lanes};
use talea_record::{DecidedBy, KernelPolicy, KernelPolicyEntry, Metadata, Origin, Switches};
use talea_time::{Duration, Instant};

/// The plans of all nodes; that of a node with a hierarchy and without tasks is empty.
pub(crate) fn plans(system: &System) -> Result<Vec<Plan>, PrepareError> {
    let plan = |node: usize| {
        let name = || system.nodes[node].name.clone();
        let is_hierarchy = system.scheduling(node) == Scheduling::Hierarchy;
        if is_hierarchy && system.lane_operations_on(node).next().is_none() {
            return Ok(NO_LANES);
        }
        let plan = plan_lanes(system, node)
            .map_err(|anomalies| PrepareError::Anomalies { node: name(), anomalies })?;
        match is_hierarchy {
            true => below_others(system, plan).map_err(|source| unset(system, node, source)),
            false => Ok(plan),
        }
    };
    (0..system.nodes.len()).map(plan).collect()
}

pub(crate) const NO_LANES: Plan = Plan { lanes: Vec::new(), warnings: Vec::new() };

pub(crate) fn unset(system: &System, node: usize, source: HierarchyError) -> PrepareError {
    PrepareError::Hierarchy { node: system.nodes[node].name.clone(), source: Box::new(source) }
}

/// The tables of a run of `system`, whose threads are tasks.
pub(crate) fn metadata(
    system: &System,
    plans: &[Plan],
    realtime: bool,
    start: Instant,
    (lowerings, tolerance): (&[Option<hierarchy_lowering::Lowering>], Duration),
    leaving: &[Leaving],
) -> Result<Metadata, PrepareError> {
    let mut metadata = Metadata::new(system, plans, Origin::Threads { realtime }, start);
    for (node, lowering) in metadata.nodes.iter_mut().zip(lowerings) {
        let settings = lowering.as_ref().and_then(|lowering| lowering.settings.as_ref());
        if settings.is_some() {
            node.decided_by = DecidedBy::Kernel;
        }
        if settings.is_some_and(|settings| settings.switches == hierarchy_lowering::Switches::Unseen) {
            node.switches = Switches::Unseen;
        }
    }
    for (index, node) in metadata.nodes.iter_mut().enumerate() {
        // Threads that are parked go on where their processor is left unused.
        if system.scheduling(index) == Scheduling::Hierarchy && node.decided_by.is_ours() {
            node.switches = Switches::Granted;
        }
    }
    for settings in lowerings.iter().flatten().filter_map(|lowering| lowering.settings.as_ref()) {
        metadata.kernel_policies.extend(settings.threads.iter().filter_map(|setting| {
            let operation = system.operation_of_thread(setting.thread)?;
            let policy = match setting.policy {
                Policy::Deadline { .. } => KernelPolicy::Deadline,
                Policy::Fifo(priority) | Policy::RoundRobin(priority) => KernelPolicy::RealTime(priority),
                Policy::Other => KernelPolicy::Other,
            };
            Some(KernelPolicyEntry { lane: metadata.operations[operation.index()].lane, policy })
        }));
    }
    metadata.edges = hierarchy::edges(system, plans, leaving)
        .map_err(|(node, error)| unset(system, node, error.into()))?;
    let is_judged = metadata.edges.iter().any(|edge| metadata.nodes[edge.node].decided_by.is_ours());
    metadata.promise_tolerance = is_judged.then_some(tolerance);
    Ok(metadata)
}

/// A processor is granted by one hierarchy, whichever process hosts it.
pub(crate) fn check_apart(system: &System) -> Result<(), PrepareError> {
    let ruled = |node: &usize| system.hierarchy(*node).is_some();
    let nodes: Vec<usize> = (0..system.nodes.len()).filter(ruled).collect();
    for (position, &second) in nodes.iter().enumerate() {
        for &first in &nodes[..position] {
            let (first, second) = (&system.nodes[first], &system.nodes[second]);
            if let Some(&cpu) = second.cpus.iter().find(|cpu| first.cpus.contains(cpu)) {
                let (first, second) = (first.name.clone(), second.name.clone());
                return Err(PrepareError::SharedCpu { first, second, cpu });
            }
        }
    }
    Ok(())
}
