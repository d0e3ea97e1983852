//! The way in for work that the description of the system does not have: operations are declared, before the run or while it
//! lasts, and jobs of them are posted by threads of the program and by other operations. In their lanes they are jobs like any
//! other, in the records too, where a definition says what they are.

use crate::alarms::Alarms;
use crate::flow::{JobFlowSetUp, Shared};
use crate::layout::{OperationSite, Origin, Visibility};
use crate::poster::Poster;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use talea_model::{Execution, OperationId, PublicationId, System};
use talea_operation::{
    ChannelTask, Declaration, DeclareError, JobContext, LanePlacement, Operation, PostedOperation,
    PostingRoom, ProgramChannel,
};
use talea_policy::strategy::Plan;
use talea_record::ring::Definer;
use talea_record::stream::is_bound;
use talea_record::{Definition, PublicationEntry, ThreadRole};
use thiserror::Error;

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
        let Inner { shared, system, plans, room, definer, .. } = &*self.0;
        let mut state = self.state();
        let LanePlacement { node, level } = declaration.place(system, plans, &state.declared)?;
        let place = state.declared.len();
        if place == room.operations {
            return Err(DeclareError::NoRoom(room.operations));
        }
        let Declaration { name, deadline, wcet, period, criticality, .. } = declaration;
        let number = shared.layout.operations.len() + place;
        let task = system.tasks.len() + place;
        let is_it = |site: &crate::layout::LaneSite| site.node == node && site.level == level;
        let lane = shared.layout.lanes.iter().position(is_it).expect("a lane of the plan is one of the run");
        definer
            .define(&Definition::posted((number, task), &name, (lane, wcet), (deadline, criticality)))
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
            is_kept: false,
        };
        definer.define(&Definition::Publication { number, entry }).ok()?;
        state.channels.insert(channel.number, shown);
        state.publications += 1;
        Some(PublicationId::from_index(number))
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
