//! A managed set: setting it up, reading what its members received, ending it.

use crate::auditor::{Audit, Auditor};
use crate::beginning::Beginnings;
use crate::command::{self, Started};
use crate::controller::{Controller, TIMER, WAKEUPS};
use crate::definitions::UNNAMED;
use crate::freezer::Freezer;
use crate::guardian::{self, Guardian};
use crate::hold::{Held, Hold};
use crate::keeper::{Keeper, ProgramEnd};
use crate::lock::PiLock;
use crate::managed_run::{EndedRun, ManagedRun};
use crate::member::{Departed, Member, MemberId, Received};
use crate::options::{
    CONTROLLER_BUDGET, CONTROLLER_BUDGET_MIN, CONTROLLER_PERIOD, ControllerPolicy, Options, STACK, SetError,
};
use crate::priorities::Level;
use crate::sentinel::Sentinel;
use crate::shared::{SentinelState, Shared};
use crate::state::{State, Totals};
use crate::switches::SwitchStream;
use crate::unbinding::Unbindings;
use crate::wakeups::Chooser;
use crate::warden::{Firsts, LOOKS_MAX, Warden};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use talea_insight::receipts::Ledger;
use talea_linux::cgroup::{Cgroup, home_of};
use talea_linux::sched::Policy;
use talea_linux::seccomp::SchedulingCall;
use talea_linux::thread::{JoinHandle, ThreadReport, spawn};
use talea_linux::{Tid, affinity, proc};
use talea_policy::arrangement::Receipts;
use talea_policy::hierarchy::{Engine, Message, Refusal, SchedulerId};
use talea_record::{EdgeNumbers, MemberRole, RingWriter};
use talea_recording::kernel::WakeWatch;
use talea_time::{Duration, Instant};

/// What a set's own threads panic with is told, not passed on: others may depend on the restoration.
const PANICKED: &str = "a thread of the infrastructure panicked";

/// What the threads of that kind are called.
const SENTINEL: &str = "sentinel/";
const WARDEN: &str = "warden";
const NO_RUN: &str = "there is no run";
/// Threads of a command that are asked where they are.
const LEAVERS_MAX: usize = 256;

/// What became of a set.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What all members received, in the order in which they left.
    pub received: Vec<Received>,
    /// What happened, in numbers.
    pub totals: Totals,
    /// Why the set ended by itself, if it did.
    pub cause: Option<String>,
    /// The programs that had ended before the set did, and how.
    pub exits: Vec<(String, ProgramEnd)>,
    /// Threads of others that keep a real-time priority, because the kernel refused to take it away, in a sentence.
    pub unrestored: Option<String>,
}

/// Threads under a hierarchy of schedulers. Dropping it ends it.
pub struct ManagedSet {
    pub(crate) shared: Arc<Shared>,
    pub(crate) guardian: Arc<Guardian>,
    /// Who starts and ends commands.
    pub(crate) keeper: Arc<Keeper>,
    /// Who freezes and thaws programs.
    pub(crate) freezer: Arc<Freezer>,
    /// By whom the kernel is asked to tell wake-ups, if it does.
    pub(crate) wakeups: Option<Arc<Mutex<Chooser>>>,
    /// Why wake-ups are not traced, if they are not.
    pub(crate) untraced: Option<String>,
    pub(crate) departed: Arc<Mutex<Departed>>,
    pub(crate) options: Options,
    pub(crate) infrastructure: Vec<JoinHandle<()>>,
    pub(crate) own: Vec<JoinHandle<()>>,
    /// Those that were started.
    pub(crate) commands: Vec<Started>,
    /// Who judges what was received; or why nobody does.
    pub(crate) auditor: Result<Auditor, String>,
}

impl ManagedSet {
    /// Sets everything up for the hierarchy in `engine`, whose threads are then taken in by the set's own calls.
    ///
    /// # Errors
    /// See [`SetError`].
    pub fn prepare(engine: Engine, options: &Options) -> Result<Self, SetError> {
        check(&engine, options)?;
        let guardian = Arc::new(Guardian::start(options.priorities).map_err(SetError::Guardian)?);
        let keeper = Keeper::start(&guardian, &options.cpus).map_err(SetError::Keeper)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).map_err(SetError::Timer)?;
        let priorities = match options.slices {
            Some(_) => options.priorities.with_ordinary_parking(),
            None => options.priorities,
        };
        let options = &Options { priorities, ..options.clone() };
        let mut state = State::new(engine, priorities, (&options.cpus, options.slices), options.members_max);
        let poll = epoll_on(&timer).map_err(SetError::Timer)?;
        let (wakeups, untraced) = match WakeWatch::open() {
            Ok((watch, choice)) => {
                add_wakeups(&poll, &watch).map_err(SetError::Timer)?;
                state.watch = Some(watch);
                (Some(Arc::new(Mutex::new(Chooser::new(choice, priorities)))), None)
            }
            Err(reason) => (None, Some(reason.to_string())),
        };
        let shared = Arc::new(Shared {
            state: PiLock::new(state),
            priorities,
            sentinels: options.cpus.iter().map(|&cpu| SentinelState::new(cpu)).collect(),
            timer,
            stop: talea_linux::stop::StopFlag::new(),
            cause: Mutex::new(None),
            unbindings: Unbindings::default(),
        });
        let mut set = ManagedSet {
            shared,
            guardian,
            keeper: Arc::new(keeper),
            freezer: Arc::default(),
            wakeups,
            untraced,
            departed: Arc::default(),
            options: options.clone(),
            infrastructure: Vec::new(),
            own: Vec::new(),
            commands: Vec::new(),
            auditor: Err(NO_RUN.into()),
        };
        // What has been created by then is ended by the drop.
        set.start_warden()?;
        set.start_freezer()?;
        set.start_sentinels()?;
        set.start_controller(poll)?;
        // The warden lets nobody go.
        let wakers = set.infrastructure.iter().map(|thread| thread.report());
        let wakers = wakers.filter(|report| report.name != WARDEN);
        let wakers = wakers.map(|report| report.tid.as_raw_nonzero().get() as u32).collect();
        if let Some(wakeups) = &set.wakeups {
            wakeups.lock().unwrap_or_else(PoisonError::into_inner).exclude_wakers(wakers);
        }
        Ok(set)
    }

    fn start_warden(&mut self) -> Result<(), SetError> {
        let shared = Arc::clone(&self.shared);
        let (guardian, wakeups) = (Arc::clone(&self.guardian), self.wakeups.clone());
        let keeper = Arc::clone(&self.keeper);
        let (departed, threads_max) = (Arc::clone(&self.departed), self.options.threads_max);
        let urgent = Policy::Fifo(self.options.priorities.priority(Level::Urgent));
        let thread = spawn(WARDEN, urgent, &[], STACK, move || {
            let warden = Warden {
                shared: &shared,
                guardian: &guardian,
                keeper: &keeper,
                chooser: wakeups.as_deref(),
                departed: &departed,
                threads_max,
                looks: Vec::with_capacity(LOOKS_MAX),
                settings: Vec::with_capacity(LOOKS_MAX),
                first: Firsts::default(),
                beginnings: Beginnings::default(),
                unnamed: Vec::with_capacity(UNNAMED),
                naming: None,
            };
            guardian.note_warden(rustix::thread::gettid());
            match catch_unwind(AssertUnwindSafe(|| warden.run())) {
                Ok(()) => guardian.dismiss_warden(),
                Err(_) => {
                    shared.state.lock().give_up();
                    shared.begin_stop(Some(PANICKED.into()));
                    guardian.alarm();
                }
            }
        })?;
        self.infrastructure.push(thread);
        Ok(())
    }

    fn start_freezer(&mut self) -> Result<(), SetError> {
        let (shared, freezer) = (Arc::clone(&self.shared), Arc::clone(&self.freezer));
        let urgent = Policy::Fifo(self.options.priorities.priority(Level::Urgent));
        let thread = spawn("freezer", urgent, &[], STACK, move || guarded(&shared, || freezer.serve()))?;
        self.infrastructure.push(thread);
        Ok(())
    }

    fn start_sentinels(&mut self) -> Result<(), SetError> {
        let beside = Policy::Fifo(self.options.priorities.priority(Level::Beside));
        for (place, &cpu) in self.options.cpus.iter().enumerate() {
            let shared = Arc::clone(&self.shared);
            let thread = spawn(&format!("{SENTINEL}{cpu}"), beside, &[cpu], STACK, move || {
                guarded(&shared, || Sentinel::new(&shared, place).run());
            })?;
            // Before there are members, so that no call is lost.
            self.shared.sentinels[place].set_thread(thread.report().tid);
            self.infrastructure.push(thread);
        }
        Ok(())
    }

    fn start_controller(&mut self, poll: OwnedFd) -> Result<(), SetError> {
        let poll = Arc::new(poll);
        let (budgets, may_fall_back) = match self.options.controller {
            ControllerPolicy::BestPermitted => (vec![CONTROLLER_BUDGET, CONTROLLER_BUDGET_MIN], true),
            ControllerPolicy::Reserved(budget) => (vec![budget], false),
            ControllerPolicy::Urgent => (Vec::new(), true),
        };
        let cpus = &self.options.controller_cpus;
        let create = |policy| {
            let (shared, poll) = (Arc::clone(&self.shared), Arc::clone(&poll));
            spawn("controller", policy, cpus, STACK, move || {
                let controller = Controller { shared: &shared, poll: &poll };
                guarded(&shared, || controller.run());
            })
        };
        let urgent = Policy::Fifo(self.options.priorities.priority(Level::Urgent));
        let reserved =
            |runtime| Policy::Deadline { runtime, deadline: CONTROLLER_PERIOD, period: CONTROLLER_PERIOD };
        let mut refusal = None;
        let mut granted = None;
        for budget in budgets {
            match create(reserved(budget)) {
                Ok(thread) => {
                    granted = Some(thread);
                    break;
                }
                Err(error) => refusal = Some(error),
            }
        }
        let thread = match (granted, refusal) {
            (Some(thread), _) => thread,
            (None, Some(error)) if !may_fall_back => return Err(error.into()),
            (None, _) => create(urgent)?,
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

    /// Why wake-ups of other processes' threads are found by looking every [`crate::LOOK_EVERY`] and not told at once;
    /// `None` if they are told.
    pub fn untraced(&self) -> Option<&str> {
        self.untraced.as_deref()
    }

    /// Whether the set has ended, by itself or by [`Self::stop`].
    pub fn is_ended(&self) -> bool {
        self.shared.is_stopping()
    }

    /// Asks the scheduler above a member for something: other parameters, or a time constraint.
    ///
    /// # Errors
    /// The scheduler's refusal; nothing has changed.
    pub fn message(&self, to: SchedulerId, about: Option<MemberId>, message: Message) -> Result<(), Refusal> {
        self.shared.tell(|state, now| {
            let told = state.engine.message(to, about.map(|member| member.vp), message, now);
            state.refresh_offers(now);
            told
        })
    }

    /// Numbers of the threads of a member; none once it has left.
    pub fn threads_of(&self, member: MemberId) -> Vec<u32> {
        self.shared.tell(|_, _| ());
        let mut state = self.shared.state.lock_patiently();
        let threads = state.member_of(member).into_iter().flat_map(|member| member.all_threads());
        threads.map(|thread| thread.tid.as_raw_nonzero().get() as u32).collect()
    }

    /// How often a command has called to change how it is scheduled, by call.
    pub fn calls_of(&self, name: &str) -> Vec<(SchedulingCall, u64)> {
        self.keeper.calls(name)
    }

    /// What keeps commands from being contained wholly on this machine, in a sentence each.
    pub fn shortcomings(&self) -> Vec<String> {
        let unfiltered =
            self.commands.iter().filter_map(|command| Some((&command.name, command.unfiltered()?)));
        let unfiltered = unfiltered.map(|(name, reason)| {
            format!("{name} may change how it is scheduled, for its calls cannot be filtered: {reason}")
        });
        let mut all = self.keeper.shortcomings();
        all.extend(unfiltered);
        all
    }

    /// Commands some of whose processes have left the cgroup that they were started in, which takes root's privileges, with one of these
    /// processes. They are scheduled and ended with the others, but not held to a maximum.
    pub fn leavers(&self) -> Vec<(String, u32)> {
        let state = self.shared.state.lock_patiently();
        let contained = state.members.iter().flatten().filter_map(|member| {
            let threads: Vec<Tid> = member.all_threads().take(LEAVERS_MAX).map(|thread| thread.tid).collect();
            Some((member.name.clone(), Arc::clone(member.cgroup.as_ref()?), threads))
        });
        let contained: Vec<_> = contained.collect();
        drop(state);
        let left = |(name, cgroup, threads): (String, Arc<Cgroup>, Vec<Tid>)| {
            let is_outside = |tid: &Tid| home_of(*tid).is_ok_and(|home| home != cgroup.folder());
            let first = threads.into_iter().find(|tid| is_outside(tid) && !proc::is_gone(*tid))?;
            Some((name, first.as_raw_nonzero().get() as u32))
        };
        contained.into_iter().filter_map(left).collect()
    }

    /// How far holding the member has come.
    pub fn held(&self, member: MemberId) -> Held {
        let mut state = self.shared.state.lock_patiently();
        state.member_of(member).and_then(|member| member.hold.as_ref()).map_or(Held::No, Hold::state)
    }

    /// The instant, and what each member has received up to it. A monitor of guarantees compares two such readings. Reads a
    /// clock for each member under the dispatcher's lock, so a few times a second is often enough.
    pub fn received(&self) -> (Instant, Vec<Received>) {
        let mut state = self.shared.state.lock();
        let now = self.shared.now();
        // The hierarchy's account goes up to its last event.
        state.decide(now);
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
        self.shared.state.lock_patiently().totals
    }

    // A run.

    /// Gives the members' parts the run that they are parts in. Before there are members.
    pub fn set_run(&self, mut run: ManagedRun) {
        let role = |thread: &ThreadReport| match thread.name.starts_with(SENTINEL) {
            true => MemberRole::Sentinel,
            false => MemberRole::Infrastructure,
        };
        let threads = self.infrastructure.iter().map(JoinHandle::report);
        let number = |thread: &ThreadReport| thread.tid.as_raw_nonzero().get() as u32;
        run.serve(threads.map(|thread| (number(thread), role(thread))).collect());
        self.shared.state.lock().run = Some(Box::new(run));
    }

    /// Has somebody judge what is received, beside what is granted. What is found broken goes to a ring, by these numbers.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn audit(
        &mut self,
        sight: Result<SwitchStream, String>,
        told_to: (RingWriter, EdgeNumbers),
    ) -> Result<(), SetError> {
        let run = self.shared.state.lock().run.as_mut().map(|run| run.audit());
        self.auditor = match (sight, run) {
            (Ok(sight), Some((decisions, tolerance))) => {
                let ledger = Ledger::new(&self.options.cpus, tolerance);
                let auditor = Auditor::start(Arc::clone(&self.shared), sight, (decisions, ledger), told_to);
                Ok(auditor.map_err(SetError::Auditor)?)
            }
            (Ok(_), None) => Err(NO_RUN.into()),
            (Err(reason), _) => Err(reason),
        };
        Ok(())
    }

    /// What every edge has received by now, edges by number; nothing if nobody knows.
    pub fn receipts(&self) -> Vec<Receipts> {
        self.auditor.as_ref().map_or_else(|_| Vec::new(), Auditor::receipts)
    }

    /// Ends the audit of the run that came to this end.
    pub fn close_audit(&mut self, ended_run: &EndedRun) -> Audit {
        match std::mem::replace(&mut self.auditor, Err(NO_RUN.into())) {
            Ok(auditor) => auditor.finish(ended_run),
            Err(reason) => Audit::of_grants(reason),
        }
    }

    /// The run lasts from `start` to `end`.
    pub fn begin_run(&self, start: Instant, end: Instant) {
        self.shared.tell(|state, _| {
            if let Some(run) = &mut state.run {
                run.await_start(start, end);
            }
        });
    }

    /// Ends the run now, unless it is over, and says what came of it.
    pub fn close_run(&self) -> Option<EndedRun> {
        self.shared.tell(|state, now| {
            state.come_due(now);
            state.close(now);
            state.run.as_mut()?.ended_run.take()
        })
    }

    /// Records that on the edge of this number by the kernel's account so much more was received in the run that ended than a maximum allows, and whether that
    /// is because it was held late.
    pub fn tell_exceeded(&self, edge: usize, amount: (Duration, bool), ended_run: &EndedRun) {
        let window = (ended_run.start, ended_run.end);
        self.shared.tell(|state, now| {
            if let Some(run) = &mut state.run {
                run.exceeded(edge, amount, window, now);
            }
        });
    }

    /// Ends the set: every thread is an ordinary one again, blocked own threads return from their block, and own threads are
    /// waited for.
    ///
    /// # Errors
    /// What an own thread panicked with.
    pub fn stop(mut self) -> std::thread::Result<Summary> {
        let exits = self.end();
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
            None => {
                let unrestored = self.guardian.complaint();
                Ok(Summary { received: all, totals, cause, exits, unrestored })
            }
        }
    }

    fn end(&mut self) -> Vec<(String, ProgramEnd)> {
        self.shared.begin_stop(None);
        self.freezer.end();
        for thread in self.infrastructure.drain(..) {
            // It has caught its own panics.
            let _caught = thread.join();
        }
        // Who has been dismissed since the warden ended.
        self.shared.unbindings.finish(None, &self.guardian, |_| false);
        command::end_all(&mut self.commands)
    }
}

impl Drop for ManagedSet {
    fn drop(&mut self) {
        let _exits = self.end();
    }
}

fn received(state: &mut State) -> Vec<Received> {
    let State { engine, members, .. } = state;
    let context = engine.context();
    let of = |member: &mut Member| Received::of(member, context.service(member.vp));
    members.iter_mut().flatten().map(of).collect()
}

/// Ends the set if a thread of its infrastructure panics: the warden then gives everything back.
fn guarded(shared: &Shared, run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        shared.state.lock().give_up();
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
        ("threads", options.threads_max, guardian::THREADS_MAX),
    ];
    for (what, asked, most) in limits {
        if asked > most {
            return Err(SetError::TooMany { what, asked, most });
        }
    }
    Ok(())
}

/// What the controller waits for.
fn epoll_on(timer: &OwnedFd) -> Result<OwnedFd, Errno> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&poll, timer, epoll::EventData::new_u64(TIMER), epoll::EventFlags::IN)?;
    Ok(poll)
}

fn add_wakeups(poll: &OwnedFd, watch: &WakeWatch) -> Result<(), Errno> {
    let add =
        |descriptor| epoll::add(poll, descriptor, epoll::EventData::new_u64(WAKEUPS), epoll::EventFlags::IN);
    watch.descriptors().try_for_each(add)
}
