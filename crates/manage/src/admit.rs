//! Taking members in: own threads, commands, and threads of other processes.

use crate::command::Started;
use crate::guardian::{self, Guardian};
use crate::handle::{Handle, Waker};
use crate::hold::{CannotHold, Hold, Parking};
use crate::member::{Blocks, Body, Managed, Member, Scope, bind};
use crate::member::{Departed, MemberId, Received};
use crate::member_jobs::MemberJobs;
use crate::options::STACK;
use crate::options::{Admission, AdmitError, Target};
use crate::origin::{Binding, Mask, Origin};
use crate::priorities::{self, Level, Ordinary, Turns};
use crate::set::ManagedSet;
use crate::shared::Shared;
use crate::signal_target::SignalTarget;
use crate::sleep_word::{SleepEnd, SleepWord};
use crate::thread_jobs::ThreadJobs;
use rustix::io::Errno;
use rustix::process::{Signal, kill_process_group};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use talea_linux::Tid;
use talea_linux::proc;
use talea_linux::sched::Policy;
use talea_linux::thread::spawn;
use talea_policy::hierarchy::VpId;

/// Of what there are too many where no further program can be held.
pub const MORE_TO_HOLD: &str = "processes that can be held";

/// A thread of this process as a member.
pub struct ThreadOptions {
    /// Where it may block.
    pub blocks: Blocks,
    /// What it does in a run, if there is one.
    pub jobs: Option<MemberJobs>,
    /// Its stack, in bytes.
    pub stack: usize,
}

/// Whether a program waits for the beginning of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Not,
    /// It is somebody else's, and goes on where a processor is idle.
    Parked,
    /// It does nothing.
    Stopped,
}

impl ManagedSet {
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

    /// Creates a thread of this process that takes part in the run. What `ready` makes on the thread, before anything
    /// arrives, is handed to `run`.
    ///
    /// # Errors
    /// See [`AdmitError`].
    pub fn admit_thread<R>(
        &mut self,
        admission: Admission<'_>,
        own: ThreadOptions,
        ready: impl FnOnce() -> R + Send + 'static,
        run: impl FnOnce(R, &Handle) + Send + 'static,
    ) -> Result<(MemberId, Waker), AdmitError> {
        self.create(admission, own, ready, run)
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
        let own = ThreadOptions { blocks, jobs: None, stack: STACK };
        self.create(admission, own, || (), |(), handle| run(handle))
    }

    fn create<R>(
        &mut self,
        admission: Admission<'_>,
        own: ThreadOptions,
        ready: impl FnOnce() -> R + Send + 'static,
        run: impl FnOnce(R, &Handle) + Send + 'static,
    ) -> Result<(MemberId, Waker), AdmitError> {
        let ThreadOptions { blocks, jobs, stack } = own;
        let hold = (admission.parking == Parking::Held).then(Hold::by_signal);
        let (id, sleep_word) = self.register(&admission, |slot, vp| {
            let sleep_word = Arc::new(SleepWord::new(slot));
            let body = Body::Own { sleep_word: Arc::clone(&sleep_word), blocks };
            let mut member = Member::new(admission.name.into(), vp, body, Vec::new(), hold);
            member.jobs = jobs;
            (member, sleep_word)
        })?;
        let leaving = LeaveOnExit {
            shared: Arc::clone(&self.shared),
            guardian: Arc::clone(&self.guardian),
            departed: Arc::clone(&self.departed),
            sleep_word: Arc::clone(&sleep_word),
        };
        let handle = Handle::new(Arc::clone(&self.shared), Arc::clone(&sleep_word));
        let place = id.slot as usize % self.options.cpus.len();
        // It runs only to fall asleep, and must not wait for its turn before anybody knows that it wants one.
        let urgent = Policy::Fifo(self.options.priorities.priority(Level::Urgent));
        let own = Arc::clone(&sleep_word);
        let created = spawn(admission.name, urgent, &[self.options.cpus[place]], stack, move || {
            let leaving = leaving;
            let result = catch_unwind(AssertUnwindSafe(|| {
                let equipment = ready();
                match own.wait() {
                    SleepEnd::Ended => {}
                    SleepEnd::Woken | SleepEnd::AtOnce => run(equipment, &handle),
                }
            }));
            drop(leaving);
            if let Err(panic) = result {
                resume_unwind(panic);
            }
        });
        let thread = match created {
            Ok(thread) => thread,
            Err(error) => {
                self.shared.tell(|state, now| state.expel(id, now));
                return Err(error.into());
            }
        };
        let seated = self.sleep_word(&admission, (id, place), thread.report().tid, blocks);
        if let Err(error) = seated {
            self.shared.tell(|state, now| state.expel(id, now));
            self.guardian.restore(thread.report().tid);
            // It sleeps on its word.
            sleep_word.end();
            let _nothing_ran = thread.join();
            return Err(error);
        }
        self.own.push(thread);
        Ok((id, Waker::new(Arc::clone(&self.shared), sleep_word)))
    }

    /// Makes an own thread that was created its member's.
    fn sleep_word(
        &self,
        admission: &Admission<'_>,
        (id, place): (MemberId, usize),
        tid: Tid,
        blocks: Blocks,
    ) -> Result<(), AdmitError> {
        let mask = Mask::of(tid.as_raw_nonzero().get()).unwrap_or(Mask::ALL);
        if !self.guardian.note(tid, Ordinary::OTHER, mask) {
            return Err(too_many(admission, "threads", guardian::THREADS_MAX));
        }
        let ended = self.shared.tell(|state, _| {
            if let Some(member) = state.member_of(id) {
                member.threads.push(Managed::new(tid, Level::Urgent));
                member.place = place;
                member.open_account();
                state.index_threads();
            }
            state.ended
        });
        if ended {
            return Err(AdmitError::Ended { name: admission.name.into() });
        }
        if blocks == Blocks::Anywhere { self.choose_wakeups(admission) } else { Ok(()) }
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
        self.start(admission, command, None)
    }

    /// The same for a program that has a part in the run. It is stopped until the run begins.
    ///
    /// # Errors
    /// As there.
    pub fn admit_command(
        &mut self,
        admission: Admission<'_>,
        command: &mut Command,
        jobs: ThreadJobs,
    ) -> Result<MemberId, AdmitError> {
        self.start(admission, command, Some(jobs))
    }

    fn start(
        &mut self,
        admission: Admission<'_>,
        command: &mut Command,
        jobs: Option<ThreadJobs>,
    ) -> Result<MemberId, AdmitError> {
        let waits = if jobs.is_some() { Waits::Stopped } else { Waits::Not };
        let mut started = Started::start(admission.name, command).map_err(|source| AdmitError::Command {
            name: admission.name.into(),
            command: command.get_program().to_string_lossy().into_owned(),
            source,
        })?;
        if !started.guard(&self.guardian) {
            return Err(too_many(&admission, "commands", guardian::PROGRAMS_MAX));
        }
        let threads = self.threads_of_process(&admission, started.process)?;
        let member = self.take_in(admission, (started.process, Scope::Family), threads, jobs, waits)?;
        self.commands.push(started);
        Ok(member)
    }

    /// Takes in threads of another process.
    ///
    /// # Errors
    /// See [`AdmitError`].
    pub fn attach(&mut self, admission: Admission<'_>, target: Target) -> Result<MemberId, AdmitError> {
        let (process, scope, threads) = self.resolve(&admission, target)?;
        self.take_in(admission, (process, scope), threads, None, Waits::Not)
    }

    /// The same for one that has a part in the run, until the beginning of which it only uses idle processors.
    ///
    /// # Errors
    /// As there.
    pub fn admit_process(
        &mut self,
        admission: Admission<'_>,
        target: Target,
        jobs: ThreadJobs,
    ) -> Result<MemberId, AdmitError> {
        let (process, scope, threads) = self.resolve(&admission, target)?;
        self.take_in(admission, (process, scope), threads, Some(jobs), Waits::Parked)
    }

    fn take_in(
        &mut self,
        admission: Admission<'_>,
        (process, scope): (Tid, Scope),
        tids: Vec<Tid>,
        jobs: Option<ThreadJobs>,
        waits: Waits,
    ) -> Result<MemberId, AdmitError> {
        let before = self.ordinary_policies(&admission, &tids)?;
        if self.threads_managed() + tids.len() > self.options.threads_max {
            return Err(too_many(&admission, "threads", self.options.threads_max));
        }
        let first = tids.first().copied().filter(|_| scope == Scope::Thread).unwrap_or(process);
        let origin = Origin::of(first, &self.options.cpus, Binding::ToOne);
        let body = Body::Opaque { process, scope, origin: Box::new(origin) };
        let hold = match admission.parking {
            Parking::WorkConserving => None,
            Parking::Held => Some(self.hold_of(admission.name, body.whom(), vec![process])?),
        };
        let registered = self.register(&admission, |_, vp| {
            let mut member = Member::new(admission.name.into(), vp, body, Vec::new(), hold);
            member.jobs = jobs.map(MemberJobs::Thread);
            member.is_stopped = waits == Waits::Stopped;
            (member, ())
        });
        let (id, ()) = registered?;
        let place = id.slot as usize % self.options.cpus.len();
        let taken = match scope != Scope::Thread && !self.guardian.note_program(process, &origin) {
            true => Err(too_many(&admission, "programs", guardian::PROGRAMS_MAX)),
            false => self.take_threads(&admission, (id, place), &tids, &before),
        };
        if let Err(error) = taken {
            return Err(self.undo(id, (process, &tids), error));
        }
        // The guardian kills it if nobody else can let it go on any more; without that it only waits parked.
        if waits == Waits::Stopped {
            let _gone = kill_process_group(process, Signal::STOP);
        }
        // Whether it can run is not known; if it cannot, its sentinel will say so.
        let ended = self.shared.tell(|state, now| {
            if waits == Waits::Not {
                state.request(id.slot, now);
            }
            state.ended
        });
        if ended {
            return Err(self.undo(id, (process, &tids), AdmitError::Ended { name: admission.name.into() }));
        }
        Ok(id)
    }

    /// Parks the threads of another process, and makes them their member's.
    fn take_threads(
        &self,
        admission: &Admission<'_>,
        (id, place): (MemberId, usize),
        tids: &[Tid],
        before: &[Ordinary],
    ) -> Result<(), AdmitError> {
        self.park(admission, tids, before, self.options.cpus[place])?;
        self.shared.tell(|state, _| {
            if let Some(member) = state.member_of(id) {
                member.threads.extend(tids.iter().map(|&tid| Managed::new(tid, Level::Parked)));
                member.place = place;
                member.open_account();
                state.index_threads();
            }
        });
        self.choose_wakeups(admission)
    }

    /// Takes out a member of which `error` has come. Its threads have what they had.
    fn undo(&self, id: MemberId, (process, tids): (Tid, &[Tid]), error: AdmitError) -> AdmitError {
        let member = self.shared.tell(|state, now| state.expel(id, now));
        let adopted = member.iter().flat_map(|member| &member.threads).map(|thread| thread.tid);
        adopted.chain(tids.iter().copied()).for_each(|tid| self.guardian.restore(tid));
        self.guardian.release_program(process);
        error
    }

    /// The means of holding `whom`, of whom these processes are known.
    pub(crate) fn hold_of(
        &self,
        name: &str,
        whom: Option<SignalTarget>,
        known: Vec<Tid>,
    ) -> Result<Hold, AdmitError> {
        let Some(whom) = whom else { return Err(AdmitError::CannotHold { name: name.into() }) };
        let processes = || match whom {
            SignalTarget::Process(process) => vec![process],
            SignalTarget::Group(_) => proc::families(known.clone(), self.options.threads_max),
        };
        Hold::of(whom, &processes, &self.guardian).map_err(|reason| match reason {
            CannotHold::OutOfReach => AdmitError::OutOfReach { name: name.into() },
            CannotHold::NoRoom => {
                AdmitError::TooMany { name: name.into(), what: MORE_TO_HOLD, most: guardian::HELD_MAX }
            }
        })
    }

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
        let serial = state.add(slot, member);
        Ok((MemberId { slot, vp, serial }, result))
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
        if proc::is_kernel_thread(tid) {
            return Err(AdmitError::Kernel { name: admission.name.into(), number });
        }
        if process == rustix::process::getpid() || process == self.guardian_tid() {
            return Err(AdmitError::Own { name: admission.name.into(), number });
        }
        match target {
            Target::Thread(_) => Ok((process, Scope::Thread, vec![tid])),
            Target::Process(_) if process != tid => Err(missing()),
            Target::Process(_) => Ok((process, Scope::Process, self.threads_of_process(admission, process)?)),
        }
    }

    fn threads_of_process(&self, admission: &Admission<'_>, process: Tid) -> Result<Vec<Tid>, AdmitError> {
        let listed = proc::threads(process, self.options.threads_max + 1).unwrap_or_default();
        match listed.is_empty() {
            true => Err(AdmitError::Missing {
                name: admission.name.into(),
                what: "process",
                number: number(process),
            }),
            false => Ok(listed),
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
            let mask = Mask::of(tid.as_raw_nonzero().get()).unwrap_or(Mask::ALL);
            if !self.guardian.note(tid, before, mask) {
                return Err(too_many(admission, "threads", guardian::THREADS_MAX));
            }
            match priorities::set(tid, self.options.priorities, Level::Parked, turns) {
                // One that has ended meanwhile is missed when it is raised.
                Ok(()) | Err(Errno::SRCH) => bind(tid, cpu),
                Err(priorities::LENT) => {
                    return Err(AdmitError::Lent { name: admission.name.into(), tid: number(tid) });
                }
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

/// Takes a thread of our own out when it ends, by return or by panic.
struct LeaveOnExit {
    shared: Arc<Shared>,
    guardian: Arc<Guardian>,
    departed: Arc<Mutex<Departed>>,
    sleep_word: Arc<SleepWord>,
}

impl Drop for LeaveOnExit {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let now = self.shared.now();
        let slot = self.sleep_word.member;
        // One that was dismissed has left already, and its place may be another's.
        let Some(Some(member)) = state.members.get(slot as usize) else { return };
        if !member.sleep_word().is_some_and(|sleep_word| Arc::ptr_eq(sleep_word, &self.sleep_word)) {
            return;
        }
        let granted = state.engine.context().service(member.vp);
        let removed = state.remove(slot, now);
        drop(state);
        if let Some(mut member) = removed {
            let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
            departed.push(Received::of(&mut member, granted));
        }
        self.sleep_word.end();
        // The sentinel of its processor finds nobody granted as soon as it is an ordinary thread again.
        self.guardian.restore(rustix::thread::gettid());
    }
}

fn number(tid: Tid) -> u32 {
    tid.as_raw_nonzero().get() as u32
}

fn too_many(admission: &Admission<'_>, what: &'static str, most: usize) -> AdmitError {
    AdmitError::TooMany { name: admission.name.into(), what, most }
}
