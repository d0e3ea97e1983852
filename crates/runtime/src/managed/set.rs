//! A managed set: setting it up, taking members in, reading what they received, ending it.

use super::bands::{self, Level, Ordinary, Turns};
use super::controller::{Controller, TIMER, WAKEUPS};
use super::guardian::{self, Guardian};
use super::handle::{Handle, Waker};
use super::hold::{Held, Hold, Parking};
use super::lock::PiLock;
use super::member::{Blocks, Body, Managed, Member, Scope, bind};
use super::options::{
    Admission, AdmitError, CONTROLLER_BUDGET, CONTROLLER_PERIOD, ControllerPolicy, Options, SetError, Target,
};
use super::proc;
use super::seat::{Sat, Seat};
use super::sentinel::Sentinel;
use super::shared::{Post, Shared};
use super::state::{State, Totals};
use super::warden::Warden;
use crate::sys::sched::Policy;
use crate::sys::thread::{JoinHandle, ThreadReport, spawn};
use crate::sys::{Tid, affinity};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use talea_policy::hierarchy::{Engine, Message, Refusal, SchedulerId, VpId};
use talea_time::{Instant, Work};
use talea_trace::kernel::WakeWatch;

const STACK: usize = 256 * 1024;
/// What a set's own threads panic with is told, not passed on: others may depend on the restoration.
const PANICKED: &str = "a thread of the infrastructure panicked";

/// A member of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId {
    slot: u32,
    vp: VpId,
}

/// What a member has received since it was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its name.
    pub name: String,
    /// Its virtual processor, by which the hierarchy knows it. A later member may have the same.
    pub vp: VpId,
    /// Processor time by the kernel's account, on idle processors as well.
    pub work: Work,
    /// Time for which the hierarchy granted it a processor.
    pub granted: Work,
}

/// Members that have gone, with what they received.
pub(super) type Departed = Vec<Received>;

impl Received {
    pub(super) fn of(member: &mut Member, granted: Work) -> Self {
        Received { name: member.name.clone(), vp: member.vp, work: member.received(), granted }
    }
}

/// What became of a set.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What all members received, in the order in which they left.
    pub received: Vec<Received>,
    /// What happened, in numbers.
    pub totals: Totals,
    /// Why the set ended by itself, if it did.
    pub cause: Option<String>,
}

/// Threads under a hierarchy of schedulers. Dropping it ends it.
pub struct ManagedSet {
    shared: Arc<Shared>,
    guardian: Arc<Guardian>,
    wakeups: Option<Arc<PiLock<WakeWatch>>>,
    /// Why wake-ups are not traced, if they are not.
    untraced: Option<String>,
    departed: Arc<Mutex<Departed>>,
    options: Options,
    infrastructure: Vec<JoinHandle<()>>,
    own: Vec<JoinHandle<()>>,
    children: Vec<Child>,
}

impl ManagedSet {
    /// Sets everything up for the hierarchy in `engine`, whose threads are then taken in by the set's own calls.
    ///
    /// # Errors
    /// See [`SetError`].
    pub fn prepare(engine: Engine, options: &Options) -> Result<Self, SetError> {
        check(&engine, options)?;
        let guardian = Arc::new(Guardian::start(options.bands).map_err(SetError::Guardian)?);
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(SetError::Timer)?;
        let state = State::new(engine, options.bands, &options.cpus, options.members_max);
        let shared = Arc::new(Shared {
            state: PiLock::new(state),
            bands: options.bands,
            posts: options.cpus.iter().map(|_| Post::new()).collect(),
            timer,
            stop: crate::sys::stop::StopFlag::new(),
            cause: Mutex::new(None),
        });
        let (wakeups, untraced) = match WakeWatch::open() {
            Ok(watch) => (Some(Arc::new(PiLock::new(watch))), None),
            Err(reason) => (None, Some(reason.to_string())),
        };
        let mut set = ManagedSet {
            shared,
            guardian,
            wakeups,
            untraced,
            departed: Arc::default(),
            options: options.clone(),
            infrastructure: Vec::new(),
            own: Vec::new(),
            children: Vec::new(),
        };
        // What has been created by then is ended by the drop.
        set.start_warden()?;
        set.start_sentinels()?;
        set.start_controller()?;
        Ok(set)
    }

    fn start_warden(&mut self) -> Result<(), SetError> {
        let shared = Arc::clone(&self.shared);
        let (guardian, wakeups) = (Arc::clone(&self.guardian), self.wakeups.clone());
        let (departed, threads_max) = (Arc::clone(&self.departed), self.options.threads_max);
        let urgent = Policy::Fifo(self.options.bands.priority(Level::Urgent));
        let thread = spawn("warden", urgent, &[], STACK, move || {
            let warden = Warden {
                shared: &shared,
                guardian: &guardian,
                wakeups: wakeups.as_deref(),
                departed: &departed,
                threads_max,
                looks: Vec::with_capacity(threads_max),
            };
            guardian.note_warden(rustix::thread::gettid());
            if catch_unwind(AssertUnwindSafe(|| warden.run())).is_err() {
                shared.begin_stop(Some(PANICKED.into()));
                guardian.alarm();
            }
        })?;
        self.infrastructure.push(thread);
        Ok(())
    }

    fn start_sentinels(&mut self) -> Result<(), SetError> {
        let beside = Policy::Fifo(self.options.bands.priority(Level::Beside));
        for (place, &cpu) in self.options.cpus.iter().enumerate() {
            let shared = Arc::clone(&self.shared);
            let thread = spawn(&format!("sentinel/{cpu}"), beside, &[cpu], STACK, move || {
                guarded(&shared, || Sentinel::new(&shared, place).run());
            })?;
            // Before there are members, so that no call is lost.
            self.shared.posts[place].occupy(thread.report().tid);
            self.infrastructure.push(thread);
        }
        Ok(())
    }

    fn start_controller(&mut self) -> Result<(), SetError> {
        let poll = Arc::new(descriptors(&self.shared, self.wakeups.as_deref()).map_err(SetError::Timer)?);
        let (budget, may_fall_back) = match self.options.controller {
            ControllerPolicy::BestPermitted => (Some(CONTROLLER_BUDGET), true),
            ControllerPolicy::Reserved(budget) => (Some(budget), false),
            ControllerPolicy::Urgent => (None, true),
        };
        let create = |policy| {
            let (shared, wakeups, poll) = (Arc::clone(&self.shared), self.wakeups.clone(), Arc::clone(&poll));
            spawn("controller", policy, &[], STACK, move || {
                let controller = Controller { shared: &shared, wakeups: wakeups.as_deref(), poll: &poll };
                guarded(&shared, || controller.run());
            })
        };
        let urgent = Policy::Fifo(self.options.bands.priority(Level::Urgent));
        let reserved =
            |runtime| Policy::Deadline { runtime, deadline: CONTROLLER_PERIOD, period: CONTROLLER_PERIOD };
        let thread = match budget.map(|budget| create(reserved(budget))) {
            Some(Ok(thread)) => thread,
            Some(Err(error)) if !may_fall_back => return Err(error.into()),
            Some(Err(_)) | None => create(urgent)?,
        };
        self.infrastructure.push(thread);
        Ok(())
    }

    /// What the warden, the sentinels and the controller are, as read back from the kernel.
    pub fn threads(&self) -> Vec<ThreadReport> {
        self.infrastructure.iter().map(|thread| thread.report().clone()).collect()
    }

    /// The process that restores the members' threads if this one is killed.
    pub fn guardian(&self) -> u32 {
        self.guardian.process()
    }

    /// Why wake-ups of other processes' threads are found by looking every [`super::LOOK_EVERY`] and not told at once;
    /// `None` if they are told.
    pub fn untraced(&self) -> Option<&str> {
        self.untraced.as_deref()
    }

    /// Whether the set has ended, by itself or by [`Self::stop`].
    pub fn is_ended(&self) -> bool {
        self.shared.is_stopping()
    }

    // Members.

    /// Creates a thread of this process, ready to run, which ends as a member when `run` returns.
    ///
    /// # Errors
    /// See [`AdmitError`].
    pub fn spawn(
        &mut self,
        admission: Admission<'_>,
        blocks: Blocks,
        run: impl FnOnce(&Handle) + Send + 'static,
    ) -> Result<(MemberId, Waker), AdmitError> {
        let (member, waker) = self.spawn_waiting(admission, blocks, run)?;
        waker.wake();
        Ok((member, waker))
    }

    /// The same for a thread that waits for a waker's first call.
    ///
    /// # Errors
    /// See [`AdmitError`].
    pub fn spawn_waiting(
        &mut self,
        admission: Admission<'_>,
        blocks: Blocks,
        run: impl FnOnce(&Handle) + Send + 'static,
    ) -> Result<(MemberId, Waker), AdmitError> {
        let hold = (admission.parking == Parking::Held).then(Hold::by_signal);
        let (id, seat) = self.register(&admission, |slot, vp| {
            let seat = Arc::new(Seat::new(slot));
            let body = Body::Own { seat: Arc::clone(&seat), blocks };
            (Member::new(admission.name.into(), vp, body, Vec::new(), hold), seat)
        })?;
        let leaving = Leaving {
            shared: Arc::clone(&self.shared),
            guardian: Arc::clone(&self.guardian),
            departed: Arc::clone(&self.departed),
            seat: Arc::clone(&seat),
        };
        let handle = Handle::new(Arc::clone(&self.shared), Arc::clone(&seat));
        let place = id.slot as usize % self.options.cpus.len();
        // It runs only to fall asleep, and must not wait for its turn before anybody knows that it wants one.
        let urgent = Policy::Fifo(self.options.bands.priority(Level::Urgent));
        let own = Arc::clone(&seat);
        let created = spawn(admission.name, urgent, &[self.options.cpus[place]], STACK, move || {
            let leaving = leaving;
            let result = match own.wait() {
                Sat::Ended => Ok(()),
                Sat::Woken | Sat::AtOnce => catch_unwind(AssertUnwindSafe(|| run(&handle))),
            };
            drop(leaving);
            if let Err(panic) = result {
                resume_unwind(panic);
            }
        });
        let thread = match created {
            Ok(thread) => thread,
            Err(error) => {
                self.shared.tell(|state, now| state.remove(id.slot, now));
                return Err(error.into());
            }
        };
        let tid = thread.report().tid;
        self.own.push(thread);
        if !self.guardian.note(tid, Ordinary::OTHER) {
            seat.end();
            return Err(too_many(&admission, "threads", guardian::THREADS_MAX));
        }
        self.shared.tell(|state, _| {
            if let Some(Some(member)) = state.members.get_mut(id.slot as usize) {
                member.threads.push(Managed { tid, level: Level::Urgent });
                member.place = place;
                member.open_account();
                state.index_threads();
            }
        });
        if blocks == Blocks::Anywhere {
            self.choose_wakeups(&admission)?;
        }
        Ok((id, Waker::new(Arc::clone(&self.shared), seat)))
    }

    /// Starts a command and takes all its threads in, as one member. It runs unmanaged until it has been taken in, which is a
    /// moment after its first instruction. The end of the set ends it, too.
    ///
    /// # Errors
    /// See [`AdmitError`]; the command has been killed, if it was started.
    pub fn command(
        &mut self,
        admission: Admission<'_>,
        command: &mut Command,
    ) -> Result<MemberId, AdmitError> {
        let mut child = command.spawn().map_err(|source| AdmitError::Command {
            name: admission.name.into(),
            command: command.get_program().to_string_lossy().into_owned(),
            source,
        })?;
        match self.attach(admission, Target::Process(child.id())) {
            Ok(member) => {
                self.children.push(child);
                Ok(member)
            }
            Err(error) => {
                let _gone = child.kill();
                let _reaped = child.wait();
                Err(error)
            }
        }
    }

    /// Takes in threads of another process.
    ///
    /// # Errors
    /// See [`AdmitError`].
    pub fn attach(&mut self, admission: Admission<'_>, target: Target) -> Result<MemberId, AdmitError> {
        let (process, scope, tids) = self.resolve(&admission, target)?;
        let before = self.ordinary_policies(&admission, &tids)?;
        if self.threads_managed() + tids.len() > self.options.threads_max {
            return Err(too_many(&admission, "threads", self.options.threads_max));
        }
        let hold = match (admission.parking, scope) {
            (Parking::WorkConserving, _) => None,
            (Parking::Held, Scope::Process) => Some(Hold::of_process(process)),
            (Parking::Held, Scope::Thread) => {
                return Err(AdmitError::CannotHold { name: admission.name.into() });
            }
        };
        if let Some(hold) = &hold
            && !self.guardian.note_held(process, hold.freezer())
        {
            return Err(too_many(&admission, "processes that can be held", guardian::HELD_MAX));
        }
        let registered = self.register(&admission, |_, vp| {
            let body = Body::Opaque { process, scope };
            (Member::new(admission.name.into(), vp, body, Vec::new(), hold), ())
        });
        let (id, ()) = registered.inspect_err(|_| self.guardian.forget(process))?;
        let place = id.slot as usize % self.options.cpus.len();
        let cpu = self.options.cpus[place];
        if let Err(error) = self.park(&admission, &tids, &before, cpu) {
            tids.iter().for_each(|tid| self.guardian.restore(*tid));
            self.guardian.forget(process);
            self.shared.tell(|state, now| state.remove(id.slot, now));
            return Err(error);
        }
        self.shared.tell(|state, _| {
            if let Some(Some(member)) = state.members.get_mut(id.slot as usize) {
                member.threads.extend(tids.iter().map(|&tid| Managed { tid, level: Level::Parked }));
                member.place = place;
                member.open_account();
                state.index_threads();
            }
        });
        if let Err(error) = self.choose_wakeups(&admission) {
            tids.iter().for_each(|tid| self.guardian.restore(*tid));
            self.guardian.forget(process);
            self.shared.tell(|state, now| state.remove(id.slot, now));
            return Err(error);
        }
        // Whether it can run is not known; if it cannot, its sentinel will say so.
        let ended = self.shared.tell(|state, now| {
            state.request(id.slot, now);
            state.ended
        });
        if ended {
            tids.iter().for_each(|tid| self.guardian.restore(*tid));
            return Err(AdmitError::Ended { name: admission.name.into() });
        }
        Ok(id)
    }

    /// Asks the scheduler above a member for something: other parameters, or a time constraint.
    ///
    /// # Errors
    /// The scheduler's refusal; nothing has changed.
    pub fn message(&self, to: SchedulerId, about: Option<MemberId>, message: Message) -> Result<(), Refusal> {
        self.shared.tell(|state, now| state.engine.message(to, about.map(|member| member.vp), message, now))
    }

    /// Numbers of the threads of a member; none once it has left.
    pub fn threads_of(&self, member: MemberId) -> Vec<u32> {
        let state = self.shared.state.lock();
        let member = state.members.get(member.slot as usize).and_then(Option::as_ref);
        let threads = member.into_iter().flat_map(|member| &member.threads);
        threads.map(|thread| thread.tid.as_raw_nonzero().get() as u32).collect()
    }

    /// How far holding the member has come.
    pub fn held(&self, member: MemberId) -> Held {
        self.shared.state.lock().held(member.slot)
    }

    /// The instant, and what each member has received up to it. A monitor of guarantees compares two such readings. Reads a
    /// clock for each member under the dispatcher's lock, so a few times a second is often enough.
    pub fn received(&self) -> (Instant, Vec<Received>) {
        let mut state = self.shared.state.lock();
        let now = self.shared.now();
        // The hierarchy's account goes up to its last event.
        state.engine.settle(now);
        let received = received(&mut state);
        self.shared.settle_and_call(state, now);
        (now, received)
    }

    /// Members that have left, with what they received.
    pub fn departed(&self) -> Vec<Received> {
        self.departed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What happened so far, in numbers.
    pub fn totals(&self) -> Totals {
        self.shared.state.lock().totals
    }

    /// Ends the set: every thread is an ordinary one again, blocked own threads return from their block, and own threads are
    /// waited for.
    ///
    /// # Errors
    /// What an own thread panicked with.
    pub fn stop(mut self) -> std::thread::Result<Summary> {
        self.end();
        let mut panic = None;
        for thread in self.own.drain(..) {
            if let Err(payload) = thread.join() {
                panic.get_or_insert(payload);
            }
        }
        let mut all = self.departed();
        let mut state = self.shared.state.lock();
        all.extend(received(&mut state));
        let totals = state.totals;
        drop(state);
        let cause = self.shared.cause.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match panic {
            Some(payload) => Err(payload),
            None => Ok(Summary { received: all, totals, cause }),
        }
    }

    fn end(&mut self) {
        self.shared.begin_stop(None);
        for thread in self.infrastructure.drain(..) {
            // It has caught its own panics.
            let _caught = thread.join();
        }
        for mut child in self.children.drain(..) {
            let _gone = child.kill();
            let _reaped = child.wait();
        }
    }

    // Taking in.

    /// Gives the member a slot and a virtual processor.
    fn register<R>(
        &self,
        admission: &Admission<'_>,
        make: impl FnOnce(u32, VpId) -> (Member, R),
    ) -> Result<(MemberId, R), AdmitError> {
        if self.is_ended() {
            return Err(AdmitError::Ended { name: admission.name.into() });
        }
        let most = self.options.members_max;
        let mut state = self.shared.state.lock();
        if state.members.iter().flatten().count() >= most {
            return Err(too_many(admission, "members", most));
        }
        let vp = state.engine.add_thread(admission.parent, admission.parameters);
        let vp = vp.map_err(|source| AdmitError::Refused { name: admission.name.into(), source })?;
        let slot = state.free_slot();
        let (member, result) = make(slot, vp);
        state.add(slot, member);
        Ok((MemberId { slot, vp }, result))
    }

    fn resolve(
        &self,
        admission: &Admission<'_>,
        target: Target,
    ) -> Result<(Tid, Scope, Vec<Tid>), AdmitError> {
        let (what, number) = match target {
            Target::Process(number) => ("process", number),
            Target::Thread(number) => ("thread", number),
        };
        let missing = || AdmitError::Missing { name: admission.name.into(), what, number };
        let tid = i32::try_from(number).ok().and_then(Tid::from_raw).ok_or_else(missing)?;
        let process = proc::process_of(tid).ok_or_else(missing)?;
        if process == rustix::process::getpid() || process == self.guardian_tid() {
            return Err(AdmitError::Own { name: admission.name.into(), number });
        }
        match target {
            Target::Thread(_) => Ok((process, Scope::Thread, vec![tid])),
            Target::Process(_) if process != tid => Err(missing()),
            Target::Process(_) => {
                let listed = proc::threads(tid, self.options.threads_max + 1).map_err(|_| missing())?;
                if listed.is_empty() { Err(missing()) } else { Ok((process, Scope::Process, listed)) }
            }
        }
    }

    fn guardian_tid(&self) -> Tid {
        Tid::from_raw(self.guardian.process() as i32).expect("a process has a number")
    }

    /// The policies of all threads, if they are ordinary ones and nobody's.
    fn ordinary_policies(
        &self,
        admission: &Admission<'_>,
        tids: &[Tid],
    ) -> Result<Vec<Ordinary>, AdmitError> {
        let state = self.shared.state.lock();
        let managed = |tid: &Tid| {
            state.members.iter().flatten().flat_map(|member| &member.threads).any(|thread| thread.tid == *tid)
        };
        let taken = tids.iter().copied().find(managed);
        drop(state);
        let name = || admission.name.to_string();
        if let Some(tid) = taken {
            return Err(AdmitError::Managed { name: name(), tid: number(tid) });
        }
        let policy = |tid: &Tid| match Ordinary::of(*tid) {
            Ok(Some(before)) => Ok(before),
            Ok(None) => Err(AdmitError::RealTime { name: name(), tid: number(*tid) }),
            Err(_) => Err(AdmitError::Missing { name: name(), what: "thread", number: number(*tid) }),
        };
        tids.iter().map(policy).collect()
    }

    fn threads_managed(&self) -> usize {
        self.shared.state.lock().members.iter().flatten().map(|member| member.threads.len()).sum()
    }

    /// Parks the threads and notes what they were.
    fn park(
        &self,
        admission: &Admission<'_>,
        tids: &[Tid],
        before: &[Ordinary],
        cpu: u16,
    ) -> Result<(), AdmitError> {
        let turns = if tids.len() > 1 { Turns::RoundRobin } else { Turns::Fifo };
        for (&tid, &before) in tids.iter().zip(before) {
            if !self.guardian.note(tid, before) {
                return Err(too_many(admission, "threads", guardian::THREADS_MAX));
            }
            match bands::set(tid, self.options.bands, Level::Parked, turns) {
                // One that has ended meanwhile is missed when it is raised.
                Ok(()) | Err(Errno::SRCH) => bind(tid, cpu),
                Err(errno) => {
                    let name = admission.name.into();
                    return Err(AdmitError::NotPermitted { name, tid: number(tid), errno });
                }
            }
        }
        Ok(())
    }

    fn choose_wakeups(&self, admission: &Admission<'_>) -> Result<(), AdmitError> {
        let Some(wakeups) = &self.wakeups else { return Ok(()) };
        let mut watch = wakeups.lock();
        let traced = self.shared.state.lock().traced();
        let chosen = watch.choose(&traced);
        chosen.map_err(|source| AdmitError::Wakeups { name: admission.name.into(), source })
    }
}

impl Drop for ManagedSet {
    fn drop(&mut self) {
        self.end();
    }
}

/// Takes a thread of our own out when it ends, by return or by panic.
struct Leaving {
    shared: Arc<Shared>,
    guardian: Arc<Guardian>,
    departed: Arc<Mutex<Departed>>,
    seat: Arc<Seat>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let now = self.shared.now();
        let slot = self.seat.member;
        let Some(Some(member)) = state.members.get(slot as usize) else { return };
        let granted = state.engine.context().service(member.vp);
        let removed = state.remove(slot, now);
        drop(state);
        if let Some(mut member) = removed {
            let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
            departed.push(Received::of(&mut member, granted));
        }
        self.seat.end();
        // The sentinel of its processor finds nobody granted as soon as it is an ordinary thread again.
        self.guardian.restore(rustix::thread::gettid());
    }
}

fn received(state: &mut State) -> Vec<Received> {
    let State { engine, members, .. } = state;
    let context = engine.context();
    let of = |member: &mut Member| Received::of(member, context.service(member.vp));
    members.iter_mut().flatten().map(of).collect()
}

fn number(tid: Tid) -> u32 {
    tid.as_raw_nonzero().get() as u32
}

fn too_many(admission: &Admission<'_>, what: &'static str, most: usize) -> AdmitError {
    AdmitError::TooMany { name: admission.name.into(), what, most }
}

/// Ends the set if a thread of its infrastructure panics: the warden then gives everything back.
fn guarded(shared: &Shared, run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        shared.begin_stop(Some(PANICKED.into()));
    }
}

/// Everything that can be refused without asking the kernel for threads.
fn check(engine: &Engine, options: &Options) -> Result<(), SetError> {
    let mut cpus = options.cpus.clone();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() != options.cpus.len() || cpus.len() != engine.processors() || cpus.len() > 64 {
        return Err(SetError::Cpus { processors: engine.processors(), cpus: cpus.len() });
    }
    affinity::checked(&cpus)?;
    let limits = [
        ("members", options.members_max, guardian::THREADS_MAX),
        ("threads", options.threads_max, talea_trace::kernel::WATCHED_MAX),
    ];
    for (what, asked, most) in limits {
        if asked > most {
            return Err(SetError::TooMany { what, asked, most });
        }
    }
    Ok(())
}

/// What the controller waits for.
fn descriptors(shared: &Shared, wakeups: Option<&PiLock<WakeWatch>>) -> Result<OwnedFd, Errno> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let readable = epoll::EventFlags::IN;
    epoll::add(&poll, &shared.timer, epoll::EventData::new_u64(TIMER), readable)?;
    if let Some(watch) = wakeups {
        for descriptor in watch.lock().descriptors() {
            epoll::add(&poll, descriptor, epoll::EventData::new_u64(WAKEUPS), readable)?;
        }
    }
    Ok(poll)
}
