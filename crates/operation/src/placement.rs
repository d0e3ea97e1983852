//! In which lane an operation is whose jobs are posted.

use crate::posting::Declaration;
use talea_model::{OperationId, System, TIME_LIMIT, UNDEFINED};
use talea_policy::discipline::Discipline;
use talea_policy::strategy::{Lane, OperationTraits, Plan, lane_for, sorts_by_period};
use talea_time::{Duration, Work};
use thiserror::Error;

/// A lane of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LanePlacement {
    /// Index of the node.
    pub node: usize,
    /// Index of the lane among those of the node's plan.
    pub level: usize,
}

/// Why an operation was not declared. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeclareError {
    /// All places are taken.
    #[error("{0} operations have been declared, for which there is room; give PostingRoom more operations")]
    NoRoom(usize),
    /// A deadline, period or execution time that cannot be.
    #[error("operation \"{name}\": its {what} is {value}; it has to be {least}")]
    Value {
        /// The operation.
        name: String,
        /// Which.
        what: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        least: &'static str,
    },
    /// The name is empty, begins with `?`, or is that of another operation.
    #[error(
        "an operation cannot be called \"{0}\": the name is empty, begins with '?' as those that are not declared, or another \
         operation has it"
    )]
    Name(String),
    /// There is no such node, or it has no lanes.
    #[error("operation \"{name}\": no node \"{node}\" with lanes; the nodes with lanes are {}", list(nodes))]
    NoNode {
        /// The operation.
        name: String,
        /// What was asked for.
        node: String,
        /// Those that there are.
        nodes: Vec<String>,
    },
    /// It does not say in which of several schedulers of kind `lanes` it is, or there is no such one.
    #[error(
        "operation \"{name}\": {}; the schedulers of kind lanes on node \"{node}\" that have work are {}",
        match wanted {
            Some(wanted) => format!("no lanes \"{wanted}\""),
            None => "say in which lanes it is (Declaration::in_lanes, or Declaration::lane)".to_owned(),
        },
        list(known)
    )]
    NoLanes {
        /// The operation.
        name: String,
        /// Its node.
        node: String,
        /// What was asked for.
        wanted: Option<String>,
        /// Those that there are.
        known: Vec<String>,
    },
    /// There is no such lane, or it is not under the scheduler of kind `lanes` that is named beside it.
    #[error(
        "operation \"{name}\": node \"{node}\" has no lane {level}{}; its lanes are {}",
        under.as_ref().map_or(String::new(), |under| format!(" under \"{under}\"")),
        list(lanes)
    )]
    NoLane {
        /// The operation.
        name: String,
        /// Its node.
        node: String,
        /// What was asked for.
        level: usize,
        /// The scheduler of kind `lanes` that was named beside it.
        under: Option<String>,
        /// Those that there are.
        lanes: Vec<String>,
    },
    /// All lanes are of more urgent work.
    #[error(
        "operation \"{name}\": all lanes that it may have on node \"{node}\" are for more urgent work ({}); say in which it is to run all the \
         same (Declaration::lane), or give it another criticality or period",
        list(lanes)
    )]
    NoLaneForIt {
        /// The operation.
        name: String,
        /// Its node.
        node: String,
        /// The lanes that there are.
        lanes: Vec<String>,
    },
    /// Readers of the run's records could not be told of it.
    #[error(
        "operation \"{0}\": there is no room in the run's records to say what it is; use shorter names, or fewer"
    )]
    Unrecorded(String),
}

/// The scheduler of kind `lanes` that is `wanted` among those of some lanes, or the only one of them; none where they are below none. Or the
/// names of all of them.
fn place_of(system: &System, lanes: &[Lane], wanted: Option<&str>) -> Result<Option<usize>, Vec<String>> {
    let mut places: Vec<Option<usize>> = lanes.iter().map(|lane| lane.under).collect();
    places.dedup();
    let name = |place: &Option<usize>| place.map(|scheduler| system.schedulers[scheduler].name.as_str());
    let found = match (wanted, &places[..]) {
        (None, [only]) => Some(*only),
        (None, _) => None,
        (wanted, places) => places.iter().find(|place| name(place) == wanted).copied(),
    };
    found.ok_or_else(|| places.iter().filter_map(name).map(String::from).collect())
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

impl Declaration {
    /// The lane that the operation is for, under `plans`, one per node, beside others that were `declared` by these names.
    ///
    /// # Errors
    /// [`DeclareError`].
    pub fn place(
        &self,
        system: &System,
        plans: &[Plan],
        declared: &[String],
    ) -> Result<LanePlacement, DeclareError> {
        let name = || self.name.clone();
        let is_taken = system.operations().iter().any(|operation| operation.name == self.name)
            || system.tasks.iter().any(|task| task.name == self.name)
            || declared.contains(&self.name);
        if self.name.is_empty() || self.name.starts_with(UNDEFINED) || is_taken {
            return Err(DeclareError::Name(name()));
        }
        let wrong = |what, value: String, least| DeclareError::Value { name: name(), what, value, least };
        if self.deadline <= Duration::ZERO {
            return Err(wrong("deadline", self.deadline.to_string(), "more than 0"));
        }
        if self.wcet < Work::ZERO || self.period < Duration::ZERO {
            let value = format!("{}, {}", self.wcet.at_full_speed(), self.period);
            return Err(wrong("execution time and period", value, "0 or more"));
        }
        if self.wcet > TIME_LIMIT.as_work() {
            return Err(wrong("execution time", self.wcet.at_full_speed().to_string(), "ten years at most"));
        }
        let has_lanes = |node: &usize| !plans[*node].lanes.is_empty();
        let mut candidates = (0..system.nodes.len()).filter(has_lanes);
        let found = match &self.node {
            None => candidates.next(),
            Some(wanted) => candidates.find(|node| system.nodes[*node].name == *wanted),
        };
        let Some(node) = found else {
            let nodes = (0..system.nodes.len()).filter(has_lanes);
            let nodes = nodes.map(|node| system.nodes[node].name.clone()).collect();
            let wanted = self.node.clone().unwrap_or_default();
            return Err(DeclareError::NoNode { name: name(), node: wanted, nodes });
        };
        let lanes = &plans[node].lanes;
        let shown = |lane: &Lane| format!("{} ({})", lane.level, lane.label);
        let of_node = || (name(), system.nodes[node].name.clone());
        let traits = OperationTraits {
            id: OperationId::from_index(0),
            name: name(),
            period: self.period,
            deadline: self.deadline,
            wcet: self.wcet,
            criticality: self.criticality,
            importance: 0,
            topological_rank: 0,
        };
        let place = || {
            place_of(system, lanes, self.lanes.as_deref()).map_err(|known| {
                let ((name, node), wanted) = (of_node(), self.lanes.clone());
                DeclareError::NoLanes { name, node, wanted, known }
            })
        };
        // What is named beside a lane has to be above it.
        let named = self.lanes.as_ref().map(|_| place()).transpose()?;
        let is_there = |lane: &&Lane| named.is_none_or(|under| lane.under == under);
        let level = match self.level {
            Some(level) if lanes.get(level).filter(is_there).is_some() => level,
            Some(level) => {
                let ((name, node), under) = (of_node(), self.lanes.clone());
                let lanes = lanes.iter().filter(is_there).map(shown).collect();
                return Err(DeclareError::NoLane { name, node, level, under, lanes });
            }
            None if self.period == Duration::ZERO && sorts_by_period(system.strategy, self.criticality) => {
                let least =
                    "more than 0, since the strategy sorts by it, unless Declaration::lane says the lane";
                return Err(wrong("period", self.period.to_string(), least));
            }
            None => {
                let under = place()?;
                lane_for(system, &plans[node], under, &traits).ok_or_else(|| {
                    let (name, node) = of_node();
                    let there = lanes.iter().filter(|lane| lane.under == under).map(shown);
                    DeclareError::NoLaneForIt { name, node, lanes: there.collect() }
                })?
            }
        };
        if lanes[level].discipline == Discipline::Laxity && self.wcet == Work::ZERO {
            let least = "more than 0, since its lane goes by laxity";
            return Err(wrong("execution time", "0".into(), least));
        }
        Ok(LanePlacement { node, level })
    }
}
