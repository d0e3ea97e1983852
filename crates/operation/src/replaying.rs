//! Where a program declares operations whose jobs are called again, in place of a run or a simulation.

use crate::context::JobContext;
use crate::operation::Operation;
use crate::placement::{DeclareError, LanePlacement};
use crate::posting::{Declaration, NotPosted, PostedOperation, PostingRoom};
use crate::publications::ProgramPublications;
use crate::workplace::{ChannelTask, PostedCode, ProgramChannel, Workplace};
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use talea_model::{OperationId, PublicationId, System};
use talea_policy::strategy::Plan;
use talea_time::Instant;

/// An operation that was declared for a replay.
#[derive(Debug)]
pub struct DeclaredOperation {
    /// What it is.
    pub declaration: Declaration,
    /// The lane that it would have.
    pub placement: LanePlacement,
    /// Its code.
    pub operation: Operation,
    /// Where a job finds what it was handed by a channel, of one that hands on events.
    pub handed: Option<HandedAgain>,
    /// See [`PostedCode::by_turns`].
    pub turns: Option<usize>,
}

/// What the job that is called next was handed by a channel when it was recorded, and whether its code could read that.
#[derive(Clone, Debug, Default)]
pub struct HandedAgain(Arc<Mutex<(Vec<u8>, bool)>>);

impl HandedAgain {
    /// This is what it was handed.
    pub fn hand(&self, bytes: Vec<u8>) {
        *self.inner() = (bytes, false);
    }

    /// Whether the job that was called could read it.
    pub fn was_read(&self) -> bool {
        self.inner().1
    }

    fn inner(&self) -> MutexGuard<'_, (Vec<u8>, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A replay as the place where operations are declared that the description does not have. Nothing is executed here: the replay takes what has been
/// declared. All copies are of the same replay.
#[derive(Clone)]
pub struct ReplayWorkplace(Arc<Inner>);

struct Inner {
    /// Its number among the runs and simulations of the process.
    run: u64,
    system: System,
    plans: Vec<Plan>,
    /// Operations that can be declared.
    room: usize,
    /// The instant at which the job ended that is called again, in nanoseconds.
    now: AtomicI64,
    declared: Mutex<Declared>,
}

/// What has been declared.
#[derive(Default)]
struct Declared {
    names: Vec<String>,
    /// What is pushed into channels of the program, and its names, by number from the first that is not the description's on.
    publications: Option<ProgramPublications>,
    published: Vec<String>,
    /// Likewise, whether a channel posts its jobs.
    of_channels: Vec<bool>,
    /// What the replay has not taken.
    new: Vec<DeclaredOperation>,
}

impl fmt::Debug for ReplayWorkplace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayWorkplace").field("room", &self.0.room).finish_non_exhaustive()
    }
}

impl ReplayWorkplace {
    /// One of a run of `system`, whose nodes have these lanes, with room for so much.
    pub fn new(system: &System, plans: Vec<Plan>, room: PostingRoom) -> Self {
        ReplayWorkplace(Arc::new(Inner {
            run: PostedOperation::next_run(),
            system: system.clone(),
            plans,
            room: room.operations,
            now: AtomicI64::new(Instant::ZERO.as_nanos()),
            declared: Mutex::default(),
        }))
    }

    /// Whose the operations are that are declared here: [`PostedOperation::run`].
    pub fn run(&self) -> u64 {
        self.0.run
    }

    /// Declares an operation, of each of whose recorded jobs `code` is called again, found by its name.
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
    ///
    /// # Errors
    /// [`DeclareError`].
    pub fn declare_code(
        &self,
        declaration: Declaration,
        mut code: PostedCode,
    ) -> Result<PostedOperation, DeclareError> {
        let Inner { run, system, plans, room, .. } = &*self.0;
        let mut declared = self.declared();
        let placement = declaration.place(system, plans, &declared.names)?;
        let place = declared.names.len();
        if place == *room {
            return Err(DeclareError::NoRoom(*room));
        }
        let id = OperationId::from_index(system.operations().len() + place);
        let (handed, turns) = (code.has_again().then(HandedAgain::default), code.turns());
        let code = match (code.take_again(), handed.clone()) {
            (Some(mut again), Some(handed)) => Box::new(move |job: &JobContext<'_>| {
                let bytes = std::mem::take(&mut handed.inner().0);
                let was_read = again(job, &bytes);
                handed.inner().1 = was_read;
            }),
            _ => code.whole(),
        };
        let mut operation = Operation::without_ports(id, code);
        operation.is_outside = declaration.is_outside;
        declared.names.push(declaration.name.clone());
        declared.of_channels.push(declaration.is_of_channel);
        declared.new.push(DeclaredOperation { declaration, placement, operation, handed, turns });
        Ok(PostedOperation { id, run: *run })
    }

    /// What has been declared since this was asked last.
    pub fn take_new(&self) -> Vec<DeclaredOperation> {
        std::mem::take(&mut self.declared().new)
    }

    /// The names of all that has been declared, in that order.
    pub fn names(&self) -> Vec<String> {
        self.declared().names.clone()
    }

    /// The name of what is pushed under this number into a channel of the program, as records have it.
    pub fn name_of(&self, publication: PublicationId) -> Option<String> {
        let place = publication.index().checked_sub(self.0.system.publications().len())?;
        self.declared().published.get(place).cloned()
    }

    /// Somebody posts a job of the operation. Returns its name.
    ///
    /// # Errors
    /// It was not declared here, or a channel posts, which hands on no events in a replay.
    pub fn posted(&self, operation: PostedOperation) -> Result<String, NotPosted> {
        let place = operation.id.index().checked_sub(self.0.system.operations().len());
        let declared = self.declared();
        let place = place.filter(|place| operation.run == self.0.run && *place < declared.names.len());
        let place = place.ok_or(NotPosted::OtherRun)?;
        if declared.of_channels[place] { Err(NotPosted::Replayed) } else { Ok(declared.names[place].clone()) }
    }

    /// The replay has come to a job that ended then.
    pub fn reach(&self, now: Instant) {
        self.0.now.store(now.as_nanos(), Ordering::Relaxed);
    }

    fn declared(&self) -> MutexGuard<'_, Declared> {
        self.0.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workplace for ReplayWorkplace {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.now.load(Ordering::Relaxed))
    }

    fn declare(
        &self,
        declaration: Declaration,
        code: PostedCode,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        Ok(self.declare_code(declaration, code)?)
    }

    /// Tasks are not released in a replay: their jobs are those of the trace.
    fn task(
        &self,
        first: OperationId,
        _channel_task: Box<dyn ChannelTask>,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        let name = &self.0.system.operations()[first.index()].name;
        Err(format!("\"{name}\" is not released in a replay, whose jobs are those of the trace").into())
    }

    /// Nothing is posted in a replay: all jobs are those of the trace.
    fn post_at(&self, _at: Instant, _operation: PostedOperation) {}

    fn publication(&self, channel: ProgramChannel<'_>, event_type: &str) -> Option<PublicationId> {
        let Declared { publications, published, .. } = &mut *self.declared();
        let publications = publications.get_or_insert_with(|| ProgramPublications::of(&self.0.system));
        publications.add(channel, event_type, |_, shown| {
            published.push(format!("{shown} {event_type}"));
            Some(())
        })
    }
}
