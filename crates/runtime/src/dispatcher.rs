//! The way in for work that the description of the system does not have: operations are declared, before the run or while it
//! lasts, and jobs of them are posted by threads of the program and by other operations. In their lanes they are jobs like any
//! other, in the records too, where a definition says what they are.

use crate::alarms::Alarms;
use crate::flow::{JobFlowSetUp, Shared};
use crate::layout::{OperationSite, Origin, Visibility};
use crate::poster::Poster;
use crate::posting::PostingRoom;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use talea_model::{Execution, OperationId, PublicationId, System};
use talea_operation::{ChannelTask, Declaration, JobContext, Operation, PostedOperation, ProgramChannel};
use talea_policy::discipline::Discipline;
use talea_policy::strategy::{Lane, OperationTraits, Plan, lane_for, sorts_by_period};
use talea_record::ring::Definer;
use talea_record::stream::is_bound;
use talea_record::{
    Activity, Definition, OperationEntry, PublicationEntry, ReleasedBy, TaskEntry, ThreadRole, UNDEFINED,
};
use talea_time::{Duration, Work};
use thiserror::Error;

/// Why an operation was not declared. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeclareError {
    /// All places are taken.
    #[error(
        "{0} operations have been declared, for which the run has room; give RunOptions::posting more operations"
    )]
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

/// Declares operations. Made by [`Prepared::dispatcher`](crate::Prepared::dispatcher); all copies are of the same run.
#[derive(Clone)]
pub struct Dispatcher(Arc<Inner>);

/// What all copies share.
pub(crate) struct Inner {
    pub shared: Arc<Shared>,
    pub system: System,
    pub plans: Vec<Plan>,
    pub room: PostingRoom,
    pub definer: Definer,
    pub state: Mutex<State>,
}

/// Types of events in channels of programs that have numbers in the records of a run: their definitions share the room of the directory with those of
/// operations.
const PUBLICATIONS_MOST: usize = 256;
/// Bytes of the names of a channel and a type that have a number.
const PUBLICATION_NAMES_MOST: usize = 256;

/// What changes.
#[derive(Default)]
pub(crate) struct State {
    /// Names of what has been declared.
    pub declared: Vec<String>,
    /// The channels of programs of which records tell, by their numbers, with the names that they have there: no two the same.
    pub channels: BTreeMap<u64, String>,
    /// How many types of events in these have numbers.
    pub publications: usize,
    /// Of posters that nobody has yet.
    pub posters: Vec<JobFlowSetUp>,
}

/// See [`Dispatcher::weak`].
#[derive(Clone)]
pub(crate) struct WeakDispatcher(Weak<Inner>);

impl WeakDispatcher {
    pub fn upgrade(&self) -> Option<Dispatcher> {
        self.0.upgrade().map(Dispatcher)
    }
}

impl std::fmt::Debug for WeakDispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WeakDispatcher").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher").field("room", &self.0.room).finish_non_exhaustive()
    }
}

impl Dispatcher {
    pub(crate) fn new(inner: Inner) -> Self {
        Dispatcher(Arc::new(inner))
    }

    /// A way to it that does not keep it.
    pub(crate) fn weak(&self) -> WeakDispatcher {
        WeakDispatcher(Arc::downgrade(&self.0))
    }

    /// These are told when the run starts, and when it is over.
    pub(crate) fn keep_alarms(&self, alarms: Alarms) {
        self.0.shared.alarms.lock().unwrap_or_else(PoisonError::into_inner).push(alarms);
    }

    /// What releases the task, and is told when the run starts.
    ///
    /// # Errors
    /// Something else does.
    pub(crate) fn keep_channel_task(
        &self,
        task: usize,
        channel_task: Box<dyn ChannelTask>,
    ) -> Result<(), &'static str> {
        let channel = &self.0.shared.triggering[task].channel;
        channel.set(channel_task).map_err(|_| "the task is released by another consumer")
    }

    /// The operation of the system as one whose jobs can be posted.
    pub(crate) fn posted(&self, operation: OperationId) -> PostedOperation {
        PostedOperation { id: operation, run: self.0.shared.posting.run() }
    }

    /// The number of the first operation that can be declared, and how many can.
    pub(crate) fn declarable(&self) -> (usize, usize) {
        (self.0.shared.layout.operations.len(), self.0.room.operations)
    }

    /// The system of the run.
    pub(crate) fn system(&self) -> &System {
        &self.0.system
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Declares an operation, for each job of which `code` is called, one job at a time. Allocates, and may wait for another
    /// thread that declares one.
    ///
    /// # Errors
    /// [`DeclareError`].
    pub fn declare(
        &self,
        declaration: Declaration,
        code: impl FnMut(&JobContext<'_>) + Send + 'static,
    ) -> Result<PostedOperation, DeclareError> {
        let Inner { shared, system, room, definer, .. } = &*self.0;
        let mut state = self.state();
        let (node, level) = self.place(&declaration, &state)?;
        let place = state.declared.len();
        if place == room.operations {
            return Err(DeclareError::NoRoom(room.operations));
        }
        let Declaration { name, deadline, wcet, period, criticality, .. } = declaration;
        let number = shared.layout.operations.len() + place;
        let task = system.tasks.len() + place;
        let is_it = |site: &crate::layout::LaneSite| site.node == node && site.level == level;
        let lane = shared.layout.lanes.iter().position(is_it).expect("a lane of the plan is one of the run");
        let entry =
            OperationEntry { name: name.clone(), task, lane, wcet, predecessors: Vec::new(), is_last: true };
        let described = TaskEntry {
            name: name.clone(),
            period: Duration::ZERO,
            deadline,
            phase: Duration::ZERO,
            jitter: Duration::ZERO,
            jitter_stream: 0,
            criticality,
            activity: Activity::Posted,
            released_by: ReleasedBy::Outside,
            inherits_deadline: false,
            keeps_events: false,
        };
        definer
            .define(&Definition::Operation { number, entry, task: described })
            .map_err(|_no_room| DeclareError::Unrecorded(name.clone()))?;
        let id = OperationId::from_index(number);
        shared.posting.declare(number, Operation::without_ports(id, Box::new(code)));
        shared.layout.declare(OperationSite {
            id,
            name: name.as_str().into(),
            task,
            node,
            lane,
            // Behind all members of its lane.
            rank: number as u32,
            wcet,
            predecessors: 0,
            needed: 0,
            successors: Box::default(),
            local: Some(shared.layout.local.len() - room.operations + place),
            guard: None,
            origin: Origin::Posting { deadline },
            bound: None,
            period,
            band: criticality,
            exec: Execution::Constant(wcet),
            stream: 0,
            visibility: Visibility::AtOnce,
            inputs: Box::default(),
            outputs: Box::default(),
        });
        state.declared.push(name);
        Ok(PostedOperation { id, run: shared.posting.run() })
    }

    /// The number of a type of events that a program pushes into a channel of its own. A channel of a name that another one has already, of the program or
    /// of the description, has its own with a number behind it: `motion (2)`.
    pub(crate) fn publication(&self, channel: ProgramChannel<'_>, event_type: &str) -> Option<PublicationId> {
        let Inner { system, definer, .. } = &*self.0;
        let mut state = self.state();
        if channel.name.len() + event_type.len() > PUBLICATION_NAMES_MOST
            || state.publications == PUBLICATIONS_MOST
        {
            return None;
        }
        let shown = state.channels.get(&channel.number).cloned().unwrap_or_else(|| {
            let of_system = system.channels.iter().map(|described| described.name.as_str());
            let taken: BTreeSet<&str> =
                of_system.chain(state.channels.values().map(String::as_str)).collect();
            let numbered = (2..).map(|number| format!("{} ({number})", channel.name));
            let mut names = std::iter::once(channel.name.to_owned()).chain(numbered);
            names.find(|name| !taken.contains(name.as_str())).expect("there is no end of them")
        });
        let number = system.publications().len() + state.publications;
        let entry = PublicationEntry {
            name: format!("{shown} {event_type}"),
            operation: None,
            channel: shown.clone(),
            event_type: event_type.to_owned(),
            subscribers: Vec::new(),
        };
        definer.define(&Definition::Publication { number, entry }).ok()?;
        state.channels.insert(channel.number, shown);
        state.publications += 1;
        Some(PublicationId::from_index(number))
    }

    /// The node and the lane that an operation is for.
    fn place(&self, declaration: &Declaration, state: &State) -> Result<(usize, usize), DeclareError> {
        let Inner { system, plans, .. } = &*self.0;
        let name = || declaration.name.clone();
        let is_taken = system.operations().iter().any(|operation| operation.name == declaration.name)
            || system.tasks.iter().any(|task| task.name == declaration.name)
            || state.declared.contains(&declaration.name);
        if declaration.name.is_empty() || declaration.name.starts_with(UNDEFINED) || is_taken {
            return Err(DeclareError::Name(name()));
        }
        let wrong = |what, value: String, least| DeclareError::Value { name: name(), what, value, least };
        if declaration.deadline <= Duration::ZERO {
            return Err(wrong("deadline", declaration.deadline.to_string(), "more than 0"));
        }
        if declaration.wcet < Work::ZERO || declaration.period < Duration::ZERO {
            let value = format!("{}, {}", declaration.wcet.at_full_speed(), declaration.period);
            return Err(wrong("execution time and period", value, "0 or more"));
        }
        let has_lanes = |node: &usize| !plans[*node].lanes.is_empty();
        let mut candidates = (0..system.nodes.len()).filter(has_lanes);
        let found = match &declaration.node {
            None => candidates.next(),
            Some(wanted) => candidates.find(|node| system.nodes[*node].name == *wanted),
        };
        let Some(node) = found else {
            let nodes = (0..system.nodes.len()).filter(has_lanes);
            let nodes = nodes.map(|node| system.nodes[node].name.clone()).collect();
            let wanted = declaration.node.clone().unwrap_or_default();
            return Err(DeclareError::NoNode { name: name(), node: wanted, nodes });
        };
        let lanes = &plans[node].lanes;
        let shown = |lane: &Lane| format!("{} ({})", lane.level, lane.label);
        let of_node = || (name(), system.nodes[node].name.clone());
        let traits = OperationTraits {
            id: OperationId::from_index(0),
            name: name(),
            period: declaration.period,
            deadline: declaration.deadline,
            wcet: declaration.wcet,
            criticality: declaration.criticality,
            importance: 0,
            topological_rank: 0,
        };
        let place = || {
            place_of(system, lanes, declaration.lanes.as_deref()).map_err(|known| {
                let ((name, node), wanted) = (of_node(), declaration.lanes.clone());
                DeclareError::NoLanes { name, node, wanted, known }
            })
        };
        // What is named beside a lane has to be above it.
        let named = declaration.lanes.as_ref().map(|_| place()).transpose()?;
        let is_there = |lane: &&Lane| named.is_none_or(|under| lane.under == under);
        let level = match declaration.level {
            Some(level) if lanes.get(level).filter(is_there).is_some() => level,
            Some(level) => {
                let ((name, node), under) = (of_node(), declaration.lanes.clone());
                let lanes = lanes.iter().filter(is_there).map(shown).collect();
                return Err(DeclareError::NoLane { name, node, level, under, lanes });
            }
            None if declaration.period == Duration::ZERO
                && sorts_by_period(system.strategy, declaration.criticality) =>
            {
                let least =
                    "more than 0, since the strategy sorts by it, unless Declaration::lane says the lane";
                return Err(wrong("period", declaration.period.to_string(), least));
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
        if lanes[level].discipline == Discipline::Laxity && declaration.wcet == Work::ZERO {
            let least = "more than 0, since its lane goes by laxity";
            return Err(wrong("execution time", "0".into(), least));
        }
        Ok((node, level))
    }

    /// The means of the calling thread to post.
    ///
    /// # Errors
    /// [`NoPoster`].
    pub fn poster(&self) -> Result<Poster, NoPoster> {
        if is_bound() {
            return Err(NoPoster::Bound);
        }
        let set_up = self.state().posters.pop().ok_or(NoPoster::AllTaken(self.0.room.posters))?;
        let shared = Arc::clone(&self.0.shared);
        Ok(Poster::new(shared, set_up.begin(ThreadRole::Program, None)))
    }
}

/// Why a thread cannot post.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoPoster {
    /// As many threads as there is room for have one, or had one.
    #[error(
        "{0} threads have had a poster, for which the run has room; give RunOptions::posting more posters"
    )]
    AllTaken(usize),
    /// The thread writes records already: it has a poster, steps lanes, or is one of the run's own.
    #[error(
        "the thread has a poster, or steps lanes, or is one of the run's own, and posts by that: \
         Poster::post, SteppedLanes::poster, JobContext::post"
    )]
    Bound,
}
