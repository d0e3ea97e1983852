//! Will it hold on this machine, whose mechanisms cost something and whose kernel keeps a part of each second from real-time threads?
//!
//! * The **costs** of the machine's profile take the place of those of the file where they are higher.
//! * **What is withheld** is withheld only from threads that would take it. So first the most is found that the system takes in any of the
//!   kernel's periods: if that leaves the kernel its part, nothing is withheld. (If something were, it would have been taken
//!   before, while all responses kept to their bounds.) Otherwise hierarchies leave the kernel its part in small slices, if everybody then still
//!   receives what they need, and are derived from the rest; or else every processor gives what the profile says, and they are derived from that.
//! * **Stalls** of a host are no rule, and no bound counts with them.

use super::report::CheckReport;
use super::verdict::Verdict;
use super::{CheckError, EFFORT, check_lanes_on};
use serde::Serialize;
use talea_analysis::Effort;
use talea_analysis::system::{Leaving, NodeLoad, leaving, load};
use talea_guarantee::derivation::{Finding, NotDerived, derive};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::hierarchy::Hierarchy;
use talea_model::{Description, Machine, Overhead, System};
use talea_policy::strategy::Plan;
use talea_time::Work;

/// What holds on a machine.
#[derive(Clone, Debug, Serialize)]
pub struct MachineCheck {
    /// Its kernel.
    pub kernel: String,
    /// The costs that count: those of the file and of the machine, whichever is higher.
    pub costs: CountedCosts,
    /// What the system takes of what the kernel withholds, node by node; empty if it withholds nothing.
    pub load: Vec<NodeLoad>,
    /// Of each node, what its processors give it where a run leaves the kernel's part in small slices, so that it takes nothing.
    pub sliced: Vec<Option<Guarantee>>,
    /// The verdicts about the tasks and the bounds of the threads.
    pub report: CheckReport,
    /// The schedulers and threads that do not receive what they need, as what the root is given is less.
    pub findings: Vec<Finding>,
    /// The longest time without a processor that no rule explains.
    pub longest_stall_ns: i64,
}

/// Costs in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CountedCosts {
    /// A switch.
    pub switch_ns: i64,
    /// An insertion into a queue, or a removal.
    pub queue_ns: i64,
    /// A timer expiry.
    pub timer_ns: i64,
    /// A message.
    pub message_ns: i64,
    /// Looking who has subscribed to an event.
    pub push_ns: i64,
    /// A subscription's filter.
    pub filter_ns: i64,
    /// A subscription's queue.
    pub delivery_ns: i64,
}

impl MachineCheck {
    /// Whether every critical task holds, and every scheduler and thread receives what it needs.
    pub fn holds(&self) -> bool {
        self.report.critical == Verdict::Holds && self.findings.is_empty()
    }

    /// The nodes from which something is withheld.
    pub fn beyond(&self) -> impl Iterator<Item = &NodeLoad> {
        self.load.iter().filter(|node| node.is_beyond())
    }
}

/// Checks `system` as it would be on `machine`.
///
/// # Errors
/// See [`CheckError`].
pub fn check_on(system: &System, plans: &[Plan], machine: &Machine) -> Result<MachineCheck, CheckError> {
    let costly = with_costs(system, system.overhead.or_more(&machine.highest_costs()));
    let load = load_on(&costly, plans, machine)?;
    let is_beyond = |index: usize| load.get(index).is_some_and(NodeLoad::is_beyond);
    let leaving = match machine.slices() {
        Some(slices) => leaving(system, &load, slices),
        None => vec![Leaving::Nothing; system.nodes.len()],
    };
    let given: Vec<Guarantee> = (0..system.nodes.len())
        .map(|node| match &leaving[node] {
            Leaving::Slices(slices) => slices.given(),
            _ if is_beyond(node) => machine.gives(),
            _ => Guarantee::All,
        })
        .collect();
    let report = check_lanes_on(&costly, plans, &given)?;
    let findings = (0..system.nodes.len()).flat_map(|node| findings(system, node, &given[node])).collect();
    let Overhead { switch, queue, timer, message, push, filter, delivery } = costly.overhead;
    let ns = |cost: Work| cost.as_nanos();
    Ok(MachineCheck {
        kernel: machine.kernel.clone(),
        costs: CountedCosts {
            switch_ns: ns(switch),
            queue_ns: ns(queue),
            timer_ns: ns(timer),
            message_ns: ns(message),
            push_ns: ns(push),
            filter_ns: ns(filter),
            delivery_ns: ns(delivery),
        },
        load,
        sliced: leaving.iter().map(|node| node.slices().map(|slices| slices.given())).collect(),
        report,
        findings,
        longest_stall_ns: machine.longest_stall.as_nanos(),
    })
}

/// Those nodes from which the kernel withholds something, for it leaves less than they take: what is to be said before a run. `limits` is
/// what it withholds; `measure` is asked what the mechanisms cost only where that may decide.
///
/// # Errors
/// See [`CheckError`].
pub fn beyond_limits(
    system: &System,
    plans: &[Plan],
    limits: &Machine,
    measure: impl FnOnce() -> Option<Machine>,
) -> Result<Vec<NodeLoad>, CheckError> {
    let free = load_on(system, plans, limits)?;
    let measured = free.iter().any(NodeLoad::is_near).then(measure).flatten();
    let load = match measured {
        Some(machine) => {
            let costly = with_costs(system, system.overhead.or_more(&machine.highest_costs()));
            load_on(&costly, plans, limits)?
        }
        None => free,
    };
    Ok(load.into_iter().filter(NodeLoad::is_beyond).collect())
}

/// What every node takes of what the kernel of `machine` leaves it; nothing if it withholds nothing.
fn load_on(system: &System, plans: &[Plan], machine: &Machine) -> Result<Vec<NodeLoad>, CheckError> {
    Ok(load(system, plans, machine, &mut Effort::new(EFFORT))?)
}

fn with_costs(system: &System, overhead: Overhead) -> System {
    let mut description = Description::clone(system);
    description.overhead = overhead;
    System::new(description).unwrap_or_else(|_| system.clone())
}

/// Who does not receive what it needs where the root is given this; none where it is given everything, of which the check itself tells.
fn findings(system: &System, node: usize, given: &Guarantee) -> Vec<Finding> {
    let Some(hierarchy) = system.hierarchy(node).filter(|_| *given != Guarantee::All) else {
        return Vec::new();
    };
    match derive(&Hierarchy { given: given.clone(), ..hierarchy }) {
        Err(NotDerived::Failed(failure)) => failure.findings,
        _ => Vec::new(),
    }
}
