//! What nodes take of what a machine's kernel leaves real-time threads.

use super::analyse;
use super::taken::Taken;
use crate::effort::{AnalysisError, Effort};
use serde::Serialize;
use std::fmt;
use talea_model::{Machine, System, Withheld};
use talea_policy::strategy::Plan;
use talea_time::Duration;

/// What a node takes of its processors, beside what the kernel leaves.
#[derive(Clone, Debug, Serialize)]
pub struct NodeLoad {
    /// Its name.
    pub node: String,
    /// The most that it and whoever shares a processor with it takes in any of the kernel's periods; none if that has no bound.
    pub takes_ns: Option<i64>,
    /// What the kernel leaves of each,
    pub leaves_ns: i64,
    /// of these.
    pub period_ns: i64,
    /// Those that never end, or of whose jobs no bound is known how many pile up: why it may take everything.
    pub endless: Vec<String>,
    /// What arrives for these processors in each of the periods in the long run; none if somebody never ends.
    pub in_the_long_run_ns: Option<i64>,
}

impl NodeLoad {
    /// Whether something is withheld from the node.
    pub fn is_beyond(&self) -> bool {
        self.takes_ns.is_none_or(|takes| takes > self.leaves_ns)
    }

    /// Whether nothing is, and something may be as soon as the costs of mechanisms count.
    pub fn is_near(&self) -> bool {
        /// Costs are seldom more than this part of what is taken.
        const COSTS: i64 = 8;
        let with_costs = self.takes_ns.map(|takes| takes.saturating_add(takes / COSTS));
        !self.is_beyond() && with_costs.is_some_and(|takes| takes > self.leaves_ns)
    }
}

/// `node mission: real-time threads take up to 952ms of each 1s, of which the kernel leaves them 950ms`.
impl fmt::Display for NodeLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMED: usize = 4;
        let time = Duration::from_nanos;
        let (period, leaves) = (time(self.period_ns), time(self.leaves_ns));
        let mut names = self.endless.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        if self.endless.len() > NAMED {
            names += ", …";
        }
        write!(f, "node {}: ", self.node)?;
        match (self.takes_ns, self.in_the_long_run_ns) {
            (Some(takes), _) => {
                write!(f, "its threads take up to {} of each {period}", time(takes).rounded())?;
            }
            (None, None) => {
                write!(f, "its threads take all of each {period}, for nothing bounds what {names} may take")?;
            }
            (None, Some(wanted)) => write!(
                f,
                "in the long run its threads want up to {} of each {period}, but may take all of one, for no bound is known on how many jobs \
                 of {names} wait at a time",
                time(wanted).rounded()
            )?,
        }
        match self.is_beyond() {
            true => write!(
                f,
                ", and the kernel leaves real-time threads {leaves}: it takes up to {} at a time from any of them, \
                 whatever its priority",
                (period - leaves).rounded()
            ),
            false => {
                write!(f, ", less than the {leaves} that the kernel leaves them, so it withholds nothing")
            }
        }
    }
}

/// What every node takes of what the kernel of `machine` leaves it; nothing if it withholds nothing.
///
/// # Errors
/// As for [`analyse`].
pub fn load(
    system: &System,
    plans: &[Plan],
    machine: &Machine,
    effort: &mut Effort,
) -> Result<Vec<NodeLoad>, AnalysisError> {
    let Some(Withheld { amount, period, .. }) = machine.greatest_part() else { return Ok(Vec::new()) };
    let bounds = analyse(system, plans, effort)?;
    let leaves = *period - amount.at_full_speed();
    let taken: Vec<_> = (0..system.nodes.len()).map(|node| bounds.taken(system, node, *period)).collect();
    let of_node = |node: usize| {
        // Whoever shares a processor with it counts too.
        let shares = |other: &usize| {
            let cpus = &system.nodes[*other].cpus;
            system.nodes[node].cpus.iter().any(|cpu| cpus.contains(cpu))
        };
        let sharing: Vec<&Taken> = (0..taken.len()).filter(shares).map(|other| &taken[other]).collect();
        let sum = |of: fn(&Taken) -> Option<Duration>| {
            sharing.iter().try_fold(0_i64, |sum, taken| sum.checked_add(of(taken)?.as_nanos()))
        };
        let in_the_long_run_ns = sum(|taken| taken.in_the_long_run);
        // Where some never end, it is they.
        let named =
            sharing.iter().filter(|taken| in_the_long_run_ns.is_some() || taken.in_the_long_run.is_none());
        let endless = named.flat_map(|taken| taken.endless.iter().cloned()).collect();
        NodeLoad {
            node: system.nodes[node].name.clone(),
            takes_ns: sum(|taken| taken.most),
            leaves_ns: leaves.as_nanos(),
            period_ns: period.as_nanos(),
            endless,
            in_the_long_run_ns,
        }
    };
    Ok((0..taken.len()).map(of_node).collect())
}
