//! The way into a simulation for work that its system does not describe: operations are declared, and jobs of them posted by jobs, at instants, and by
//! code of the program that is called at instants; tasks of the system are released when jobs push events, or when time brings something. The
//! simulation takes from here what has come before each of its decisions.

mod poster;

pub(crate) use poster::Told;
pub use poster::VirtualPoster;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use talea_model::{OperationId, PublicationId, System};
use talea_operation::{
    ChannelTask, Declaration, DeclareError, JobContext, LanePlacement, NotPosted, Posted, PostedCode,
    PostedOperation, PostingRoom, ProgramChannel, ProgramPublications, Workplace,
};
use talea_policy::release::guard::WaitingEvents;
use talea_policy::strategy::Plan;
use talea_record::{Definition, JobId};
use talea_time::{Duration, Instant, Work};

/// A job that has been posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostedJob {
    pub id: JobId,
    pub deadline: Instant,
    /// The longest that it executes, if that is its own.
    pub wcet: Option<Work>,
    pub handle: u64,
    /// The job that has posted it, if one has.
    pub by: Option<JobId>,
}

/// What is to be released, or was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arriving {
    /// An instance of a task of the system.
    Instance(usize),
    /// A job of a declared operation.
    Job(PostedJob),
    /// One for which there is no room.
    NoRoom(PostedJob),
}

/// What an instant brings.
pub(crate) enum Comes {
    /// So many instances of a task of the system are released.
    Instances { task: usize, jobs: usize },
    /// A job of this declared operation is to be posted.
    Job(PostedOperation),
    /// Code of the program is called.
    Call(Call),
}

/// Code that is called at an instant, and says when it is to be called again.
pub(crate) type Call = Box<dyn FnMut(&mut VirtualPoster<'_>) -> Option<Instant> + Send>;

/// An operation that has been declared and is not known to the simulation yet.
pub(crate) struct NewOperation {
    pub id: OperationId,
    pub placement: LanePlacement,
    pub declaration: Declaration,
    pub code: PostedCode,
}

/// Where a simulation has work done that its system does not describe. All copies are of the same simulation.
#[derive(Clone, Debug)]
pub struct VirtualWorkplace(Arc<Inner>);

struct Inner {
    /// Its number among the runs and simulations of the process.
    run: u64,
    system: System,
    plans: Vec<Plan>,
    room: PostingRoom,
    /// By operation of the system, its task.
    tasks: Box<[usize]>,
    /// Whether what is posted is released still.
    is_over: AtomicBool,
    /// In nanoseconds.
    now: AtomicI64,
    /// When the first is due, in nanoseconds: most steps of a simulation need no more.
    next: AtomicI64,
    due: Mutex<Due>,
    /// By task, and then by declared operation, the earliest instant for which it waits, in nanoseconds.
    asked: Box<[AtomicI64]>,
    /// By task, the channel whose events release it.
    channels: Box<[OnceLock<Box<dyn ChannelTask>>]>,
    /// Whether operations have been declared that the simulation does not know.
    has_new: AtomicBool,
    declared: Mutex<Declared>,
    /// Whether what is pushed into channels of the program, and what they hand on, is recorded.
    keeps_events: AtomicBool,
    /// Whether types of events have numbers that the simulation does not know.
    has_new_publications: AtomicBool,
    publications: Mutex<Publications>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("now", &self.now).field("room", &self.room).finish_non_exhaustive()
    }
}

/// No instant is waited for.
const NEVER: i64 = i64::MAX;

/// So many jobs are posted at one instant by nobody whose jobs let time go by.
const MOST_AT_ONCE: u32 = 1 << 20;

/// What waits for instants.
#[derive(Default)]
struct Due {
    /// Tasks, and behind them declared operations, each for its earliest.
    releases: BTreeSet<(Instant, usize)>,
    /// Code, in the order in which it was given.
    calls: BTreeMap<(Instant, u64), Call>,
    /// Instants so far for which code has waited.
    calls_before: u64,
}

/// What has been declared.
#[derive(Default)]
struct Declared {
    names: Vec<String>,
    operations: Vec<DeclaredOperation>,
    new: Vec<NewOperation>,
    /// The instant at which jobs were posted last, and how many.
    burst: (Instant, u32),
}

/// What is pushed into channels of the program.
struct Publications {
    numbers: ProgramPublications,
    /// What the simulation does not know.
    new: Vec<Definition>,
}

struct DeclaredOperation {
    deadline: Duration,
    /// The number of the next job.
    next: u64,
    /// Whether a job is unfinished, by its number, of as many as there is room for.
    unfinished: Box<[bool]>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl VirtualWorkplace {
    pub(crate) fn new(system: &System, plans: &[Plan], room: PostingRoom) -> Self {
        let tasks: Box<[usize]> = system.operations().iter().map(|operation| operation.task).collect();
        let (now, next) = (Instant::ZERO.as_nanos().into(), Instant::MAX.as_nanos().into());
        let asked = (0..system.tasks.len() + room.operations).map(|_| AtomicI64::new(NEVER)).collect();
        let channels = system.tasks.iter().map(|_| OnceLock::new()).collect();
        VirtualWorkplace(Arc::new(Inner {
            run: PostedOperation::next_run(),
            system: system.clone(),
            plans: plans.to_vec(),
            room,
            tasks,
            is_over: AtomicBool::new(false),
            now,
            next,
            due: Mutex::default(),
            asked,
            channels,
            has_new: AtomicBool::new(false),
            declared: Mutex::default(),
            keeps_events: AtomicBool::new(false),
            has_new_publications: AtomicBool::new(false),
            publications: Mutex::new(Publications {
                numbers: ProgramPublications::of(system),
                new: Vec::new(),
            }),
        }))
    }

    /// Declares an operation, for each job of which `code` is called, one job at a time, when the job has done its work: each job needs
    /// [`Declaration::wcet`] of a processor, or what it was [posted](Posted::wcet) with, whatever the code does.
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

    fn declare_code(
        &self,
        declaration: Declaration,
        code: PostedCode,
    ) -> Result<PostedOperation, DeclareError> {
        let Inner { run, system, plans, room, .. } = &*self.0;
        let mut declared = lock(&self.0.declared);
        let placement = declaration.place(system, plans, &declared.names)?;
        let place = declared.operations.len();
        if place == room.operations {
            return Err(DeclareError::NoRoom(room.operations));
        }
        let id = OperationId::from_index(system.operations().len() + place);
        declared.names.push(declaration.name.clone());
        declared.operations.push(DeclaredOperation {
            deadline: declaration.deadline,
            next: 0,
            unfinished: vec![false; room.window()].into(),
        });
        declared.new.push(NewOperation { id, placement, declaration, code });
        self.0.has_new.store(true, Ordering::Relaxed);
        Ok(PostedOperation { id, run: *run })
    }

    /// Calls `code` when this instant has come, or at the next one if it is over, as a thread of the program might do something then: it posts, and pushes
    /// events. It is called again at the instant that it returns.
    ///
    /// The simulation panics if that is not a later one.
    pub fn call_at(
        &self,
        at: Instant,
        code: impl FnMut(&mut VirtualPoster<'_>) -> Option<Instant> + Send + 'static,
    ) {
        self.call_boxed_at(at, Box::new(code));
    }

    pub(crate) fn call_boxed_at(&self, at: Instant, code: Call) {
        self.change(|due| {
            due.calls.insert((at, due.calls_before), code);
            due.calls_before += 1;
        });
    }

    /// Whether operations have been declared, or types of events have got numbers, of which the simulation does not know. Each job asks when it
    /// completes, and hardly ever there are any.
    #[inline]
    pub(crate) fn has_new(&self) -> bool {
        self.0.has_new.load(Ordering::Relaxed) || self.has_new_publications()
    }

    /// Whether that is so of types of events.
    #[inline]
    pub(crate) fn has_new_publications(&self) -> bool {
        self.0.has_new_publications.load(Ordering::Relaxed)
    }

    /// The operations that have been declared since this was asked last.
    pub(crate) fn take_new(&self) -> Vec<NewOperation> {
        self.0.has_new.store(false, Ordering::Relaxed);
        std::mem::take(&mut lock(&self.0.declared).new)
    }

    /// The types of events that have got numbers since this was asked last.
    pub(crate) fn take_new_publications(&self) -> Vec<Definition> {
        self.0.has_new_publications.store(false, Ordering::Relaxed);
        let keeps_events = self.0.keeps_events.load(Ordering::Relaxed);
        let new = std::mem::take(&mut lock(&self.0.publications).new);
        new.into_iter().map(|definition| definition.keeping_events(keeps_events)).collect()
    }

    /// What is pushed into channels of the program, and what they hand on, is recorded.
    pub(crate) fn keep_events(&self) {
        self.0.keeps_events.store(true, Ordering::Relaxed);
    }

    /// Somebody posts at `now`.
    ///
    /// # Errors
    /// Nothing comes of that, and nothing tells of it.
    pub(crate) fn claim(
        &self,
        posted: Posted,
        by: Option<JobId>,
        now: Instant,
    ) -> Result<Arriving, NotPosted> {
        let Posted { operation: PostedOperation { id, run }, deadline, wcet, handle } = posted;
        if run != self.0.run {
            return Err(NotPosted::OtherRun);
        }
        posted.check()?;
        if self.0.is_over.load(Ordering::Relaxed) {
            return Err(NotPosted::NotRunning);
        }
        let Some(place) = id.index().checked_sub(self.0.tasks.len()) else {
            return Ok(Arriving::Instance(self.0.tasks[id.index()]));
        };
        let mut declared = lock(&self.0.declared);
        let Declared { operations, names, burst, .. } = &mut *declared;
        let operation = &mut operations[place];
        *burst = if burst.0 == now { (now, burst.1 + 1) } else { (now, 1) };
        assert!(
            burst.1 < MOST_AT_ONCE,
            "{MOST_AT_ONCE} jobs were posted at one instant, {now} after the start, the last one of operation \"{}\": virtual time goes on only if \
             jobs that post each other execute for some time; give it a wcet",
            names[place]
        );
        let deadline = deadline.unwrap_or(now.saturating_add(operation.deadline)).max(now);
        let first = operation.next;
        let job = |instance| PostedJob { id: JobId { operation: id, instance }, deadline, wcet, handle, by };
        // As on threads, where the place of a number may be that of an old job while others are free.
        let window = operation.unfinished.len() as u64;
        for instance in first..first + window {
            operation.next = instance + 1;
            let unfinished = &mut operation.unfinished[(instance % window) as usize];
            if !std::mem::replace(unfinished, true) {
                return Ok(Arriving::Job(job(instance)));
            }
        }
        Ok(Arriving::NoRoom(job(first)))
    }

    /// The number that the next job of a declared operation may have.
    pub(crate) fn next_number(&self, operation: OperationId) -> Option<u64> {
        let place = operation.index().checked_sub(self.0.tasks.len())?;
        lock(&self.0.declared).operations.get(place).map(|operation| operation.next)
    }

    /// A job of an operation has ended, which leaves room for another one if it was posted.
    #[inline]
    pub(crate) fn leave(&self, job: JobId) {
        if let Some(place) = job.operation.index().checked_sub(self.0.tasks.len()) {
            let unfinished = &mut lock(&self.0.declared).operations[place].unfinished;
            let window = unfinished.len() as u64;
            unfinished[(job.instance % window) as usize] = false;
        }
    }

    /// Nothing is released any more.
    pub(crate) fn end(&self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }

    /// The simulation is gone: code that nobody calls any more may have suppliers of channels, which have this.
    pub(crate) fn close(&self) {
        self.end();
        let calls = self.change(|due| std::mem::take(&mut due.calls));
        let new = std::mem::take(&mut lock(&self.0.declared).new);
        // Dropped without a lock: it may be whatever the program's code is.
        drop((calls, new));
    }

    /// Lets `change` change what is due.
    fn change<T>(&self, change: impl FnOnce(&mut Due) -> T) -> T {
        let mut due = lock(&self.0.due);
        let result = change(&mut due);
        let release = due.releases.first().map_or(Instant::MAX, |(at, _)| *at);
        let call = due.calls.first_key_value().map_or(Instant::MAX, |((at, _), _)| *at);
        self.0.next.store(release.min(call).as_nanos(), Ordering::Relaxed);
        result
    }

    /// When something is due next.
    pub(crate) fn next(&self) -> Instant {
        Instant::from_nanos(self.0.next.load(Ordering::Relaxed))
    }

    /// It is `now`.
    pub(crate) fn reach(&self, now: Instant) {
        self.0.now.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// The next that was due by `now`.
    pub(crate) fn pop(&self, now: Instant) -> Option<Comes> {
        if self.next() > now {
            return None;
        }
        let (place, call) = self.change(|due| match due.releases.first().copied() {
            Some(first @ (at, place)) if at <= now => {
                due.releases.remove(&first);
                (Some(place), None)
            }
            _ => (None, due.calls.pop_first()),
        });
        if let Some((_, call)) = call {
            return Some(Comes::Call(call));
        }
        let place = place?;
        // Whoever asks from now on asks anew.
        self.0.asked[place].store(NEVER, Ordering::Relaxed);
        Some(match place.checked_sub(self.0.channels.len()) {
            None => {
                let jobs = self.0.channels[place].get().map_or(0, |channel| channel.time_came(now));
                Comes::Instances { task: place, jobs }
            }
            Some(declared) => {
                let id = OperationId::from_index(self.0.tasks.len() + declared);
                Comes::Job(PostedOperation { id, run: self.0.run })
            }
        })
    }

    /// The events that wait `now` for jobs of the task, against a release at that instant, if events release it.
    pub(crate) fn waiting(&self, task: usize, release: Instant, now: Instant) -> Option<WaitingEvents> {
        Some(self.0.channels[task].get()?.waiting(release, now))
    }
}

impl Workplace for VirtualWorkplace {
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

    fn task(
        &self,
        first: OperationId,
        channel_task: Box<dyn ChannelTask>,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        let task = self.0.tasks[first.index()];
        self.0.channels[task].set(channel_task).map_err(|_| "the task is released by another consumer")?;
        Ok(PostedOperation { id: first, run: self.0.run })
    }

    fn publication(&self, channel: ProgramChannel<'_>, event_type: &str) -> Option<PublicationId> {
        let Publications { numbers, new } = &mut *lock(&self.0.publications);
        let id = numbers.add(channel, event_type, |number, shown| {
            new.push(Definition::of_program(number, shown, event_type));
            Some(())
        })?;
        self.0.has_new_publications.store(true, Ordering::Relaxed);
        Some(id)
    }

    fn post_at(&self, at: Instant, operation: PostedOperation) {
        let (id, described) = (operation.id.index(), self.0.tasks.len());
        let place = match id.checked_sub(described) {
            None => self.0.tasks[id],
            Some(declared) => self.0.channels.len() + declared,
        };
        let before = self.0.asked[place].fetch_min(at.as_nanos(), Ordering::Relaxed);
        if at.as_nanos() < before {
            self.change(|due| {
                due.releases.remove(&(Instant::from_nanos(before), place));
                due.releases.insert((at, place));
            });
        }
    }
}
