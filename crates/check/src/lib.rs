//! Will it hold? The verdicts about a deployed system before it runs, and what to change.
//!
//! The bounds come from [`talea_analysis::system`]. Where they do not prove a deadline, a simulation in which every
//! job takes its worst case looks for a miss. A bound within the deadline proves that a task holds, a simulated miss (a *witness*) that
//! it does not; otherwise the verdict is *open*. Limits of cause-effect chains hold or are open. [`sensitivity`] finds by how much times may change before the verdict does, [`advice`]
//! how other strategies and synchronisation protocols would serve the system, [`hierarchy`] what schedulers promise, [`machine`] what of
//! it all holds on a machine that costs and withholds something. Nothing here
//! draws or prints: a [`Check`] is a value.

#![forbid(unsafe_code)]

pub mod advice;
mod chains;
pub mod hierarchy;
pub mod machine;
mod merging;
mod names;
mod part;
mod planned;
pub mod protocols;
mod report;
pub mod score;
pub mod sensitivity;
mod triggers;
mod verdict;
mod why;
mod witness;

pub use chains::{ChainCheck, ChainStepCheck, ChainTimeCheck};
pub use part::{PartCheck, PartKind};
pub use planned::{PlannedError, planned};
pub use report::{CheckReport, LaneCheck, NodeCheck, SubtaskCheck, TaskCheck, ThreadCheck};
pub use verdict::Verdict;
pub use witness::{Fate, Miss};

use hierarchy::{Composition, HierarchyCheck, hierarchies};
use talea_analysis::system::{SystemBounds, analyse_on, with_response_bounds_on};
use talea_analysis::{AnalysisError, Effort};
use talea_guarantee::guarantee::Guarantee;
use talea_model::System;
use talea_policy::strategy::{NodeAnomaly, Plan, plan_lanes_of};
use thiserror::Error;

/// Steps that the analysis of one system may take: a second or some.
pub const EFFORT: u64 = 200_000_000;

/// Systems of more operations get their verdicts without what each bound is made of, for that grows with the square.
pub const ITEMISED: usize = 1_000;

/// What is known of a system before it runs.
#[derive(Clone, Debug)]
pub struct Check {
    /// The verdicts about tasks, which run in lanes.
    pub report: CheckReport,
    /// What schedulers promise, node by node, for those that are scheduled by a hierarchy.
    pub hierarchies: Vec<HierarchyCheck>,
}

/// Why a system cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CheckError {
    /// The strategy cannot sort the operations into lanes.
    #[error("{}", anomalies(.0))]
    Lanes(Vec<NodeAnomaly>),
    /// The costs of one task already exceed the range of times.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
}

fn anomalies(found: &[NodeAnomaly]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Checks `system`: every task's longest response against its deadline, every chain's times against their limits, and what every scheduler and thread is promised.
///
/// # Errors
/// See [`CheckError`].
pub fn check(system: &System) -> Result<Check, CheckError> {
    let plans = plan_lanes_of(system).map_err(CheckError::Lanes)?;
    Ok(Check::new(system, &plans, &mut |_, _| ())?)
}

impl Check {
    /// Checks `system` under `plans`, one per node. `progress` is told how many searches for remedies of one node are
    /// done, and of how many.
    ///
    /// # Errors
    /// [`AnalysisError::Overflow`] where the costs of one task already exceed the range of times.
    pub fn new(
        system: &System,
        plans: &[Plan],
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, AnalysisError> {
        let report = check_lanes(system, plans)?;
        let hierarchies = hierarchies(system, plans, progress);
        Ok(Check { report, hierarchies })
    }

    /// Whether every critical task is sure to meet its deadlines and every critical chain its limits, and all schedulers and threads of hierarchies to receive what they need.
    pub fn holds(&self) -> bool {
        self.report.critical == Verdict::Holds && self.composes()
    }

    /// Whether all schedulers and threads of all hierarchies receive what they need, whatever the threads do.
    pub fn composes(&self) -> bool {
        self.hierarchies.iter().all(|check| check.verdict == Composition::Composes)
    }
}

/// Analyses the lanes of `system` under `plans`, one per node, and looks for a miss wherever that proves nothing.
///
/// # Errors
/// [`AnalysisError::Overflow`] where the costs of one task already exceed the range of times.
fn check_lanes(system: &System, plans: &[Plan]) -> Result<CheckReport, AnalysisError> {
    check_lanes_on(system, plans, &[])
}

/// The same where each processor of a node gives no more than this: a whole one where nothing is said of the node.
fn check_lanes_on(
    system: &System,
    plans: &[Plan],
    given: &[Guarantee],
) -> Result<CheckReport, AnalysisError> {
    // Planned releases are simulated as they would run: with the bounds that the analysis finds.
    let planned = with_response_bounds_on(system, plans, given, &mut Effort::new(EFFORT));
    let system = planned.as_ref().unwrap_or(system);
    let bounds = analyse_on(system, plans, given, &mut Effort::new(EFFORT))?;
    let open: Vec<usize> = (0..system.tasks.len()).filter(|task| !bounds.holds(system, *task)).collect();
    let misses = witness::search(system, plans, &open);
    let chains = bounds.chains(system, &mut Effort::new(EFFORT));
    Ok(report::report(system, plans, &bounds, (misses, &chains)))
}

/// The tasks a verdict about the whole system may be about.
fn tasks_that_hold(system: &System, bounds: &SystemBounds) -> Vec<bool> {
    (0..system.tasks.len()).map(|task| bounds.holds(system, task)).collect()
}
