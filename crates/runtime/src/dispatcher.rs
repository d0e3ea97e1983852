//! The way in for work that the description of the system does not have: operations are declared, before the run or while it
//! lasts, and jobs of them are posted by threads of the program and by other operations. In their lanes they are jobs like any
//! other, in the records too, where a definition says what they are.

use crate::alarms::Alarms;
use crate::flow::{JobFlowSetUp, Shared};
use crate::layout::{OperationSite, Origin, Visibility};
use crate::poster::Poster;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use talea_model::{Execution, OperationId, PublicationId, System};
use talea_operation::{
    ChannelTask, Declaration, DeclareError, JobContext, LanePlacement, Operation, PostedCode,
    PostedOperation, PostingRoom, ProgramChannel, ProgramPublications, ReplayWorkplace, Workplace,
};
use talea_policy::strategy::Plan;
use talea_record::ring::Definer;
use talea_record::stream::is_bound;
use talea_record::{Definition, ThreadRole};
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
    /// Where operations are declared in place of this run, if it is to be replayed.
    pub replayed: Option<ReplayWorkplace>,
    pub state: Mutex<State>,
}

/// What changes.
pub(crate) struct State {
    /// Names of what has been declared.
    pub declared: Vec<String>,
    /// What is pushed into channels of the program.
    pub publications: ProgramPublications,
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
        self.declare_code(declaration, PostedCode::new(code))
    }

    /// The same with code that may know what to do in place of a job that was recorded.
    pub(crate) fn declare_code(
        &self,
        declaration: Declaration,
        code: PostedCode,
    ) -> Result<PostedOperation, DeclareError> {
        if let Some(workplace) = &self.0.replayed {
            return workplace.declare_code(declaration, code);
        }
        let keeps_events = self.0.shared.kept_events.is_some() && code.has_again();
        let Inner { shared, system, plans, room, definer, .. } = &*self.0;
        let mut state = self.state();
        let LanePlacement { node, level } = declaration.place(system, plans, &state.declared)?;
        let place = state.declared.len();
        if place == room.operations {
            return Err(DeclareError::NoRoom(room.operations));
        }
        let Declaration { name, deadline, wcet, period, criticality, is_of_channel, .. } = declaration;
        let number = shared.layout.operations.len() + place;
        let task = system.tasks.len() + place;
        let is_it = |site: &crate::layout::LaneSite| site.node == node && site.level == level;
        let lane = shared.layout.lanes.iter().position(is_it).expect("a lane of the plan is one of the run");
        let definition = Definition::posted((number, task), &name, (lane, wcet), (deadline, criticality));
        definer
            .define(&definition.of_channel(is_of_channel).keeping_events(keeps_events))
            .map_err(|_no_room| DeclareError::Unrecorded(name.clone()))?;
        let id = OperationId::from_index(number);
        shared.posting.declare(number, Operation::without_ports(id, code.whole()));
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
            origin: Origin::Posting { deadline, is_of_channel },
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

    /// The number of a type of events that a program pushes into a channel of its own.
    pub(crate) fn publication(&self, channel: ProgramChannel<'_>, event_type: &str) -> Option<PublicationId> {
        if let Some(workplace) = &self.0.replayed {
            return workplace.publication(channel, event_type);
        }
        let keeps_events = self.0.shared.kept_events.is_some();
        let define = |number: usize, shown: &str| {
            let definition = Definition::of_program(number, shown, event_type);
            self.0.definer.define(&definition.keeping_events(keeps_events)).ok()
        };
        self.state().publications.add(channel, event_type, define)
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
