//! Taking in threads of other processes, and commands with theirs.

use super::{MORE_TO_HOLD, number, too_many};
use crate::command::Started;
use crate::guardian;
use crate::hold::{CannotHold, Hold, Parking};
use crate::keeper::Go;
use crate::member::{Body, Managed, Member, MemberId, Scope, bind};
use crate::member_jobs::MemberJobs;
use crate::options::{Admission, AdmitError, Target};
use crate::origin::{Binding, Mask, Origin};
use crate::priorities::{self, Heirs, Level, Ordinary, Turns};
use crate::set::ManagedSet;
use crate::signal_target::SignalTarget;
use crate::thread_jobs::ThreadJobs;
use rustix::io::Errno;
use rustix::process::setpriority_process;
use std::process::Command;
use std::sync::Arc;
use talea_linux::Tid;
use talea_linux::cgroup::Cgroup;
use talea_linux::proc;

/// Threads that are looked at with the dispatcher's lock held.
const AT_A_TIME: usize = 32;

/// What is to be taken in.
struct Program {
    process: Tid,
    scope: Scope,
    threads: Vec<Tid>,
    /// What the threads had.
    before: Vec<Ordinary>,
    /// What lets it go, if it waits.
    go: Option<Go>,
    /// Where it was started.
    cgroup: Option<Arc<Cgroup>>,
}

impl ManagedSet {
    /// Starts a command as one member with all that it will start. Its first instruction is a member's. It reads nothing, and what it prints goes
    /// to standard error. The end of the set ends it, too.
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

    /// The same for a program that has a part in the run. It waits until its first job arrives.
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
        let started = Started::start(admission.name, command, &self.keeper);
        let mut started = started.map_err(|source| AdmitError::Command {
            name: admission.name.into(),
            command: command.get_program().to_string_lossy().into_owned(),
            source,
        })?;
        if !started.guard(&self.guardian) {
            return Err(too_many(&admission, "commands", guardian::PROGRAMS_MAX));
        }
        if let Some(nice) = self.options.priorities.nice_of_programs() {
            // Should it be refused, wake-ups of parked threads are found by looking.
            let _refused = setpriority_process(Some(started.process), nice);
        }
        let program = Program {
            process: started.process,
            scope: Scope::Family,
            threads: vec![started.process],
            before: vec![Ordinary::OTHER],
            go: Some(started.go()),
            cgroup: started.cgroup().map(Arc::clone),
        };
        let member = self.take_in(admission, program, jobs)?;
        self.commands.push(started);
        Ok(member)
    }

    /// Takes in threads of another process.
    ///
    /// # Errors
    /// See [`AdmitError`].
    pub fn attach(&mut self, admission: Admission<'_>, target: Target) -> Result<MemberId, AdmitError> {
        let program = self.resolve(&admission, target)?;
        self.take_in(admission, program, None)
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
        let program = self.resolve(&admission, target)?;
        self.take_in(admission, program, Some(jobs))
    }

    fn take_in(
        &mut self,
        admission: Admission<'_>,
        program: Program,
        jobs: Option<ThreadJobs>,
    ) -> Result<MemberId, AdmitError> {
        let Program { process, scope, threads: tids, before, go, cgroup } = program;
        if scope != Scope::Family && self.threads_managed() + tids.len() > self.options.threads_max {
            return Err(too_many(&admission, "threads", self.options.threads_max));
        }
        let first = tids.first().copied().filter(|_| scope == Scope::Thread).unwrap_or(process);
        let origin = Origin::of(first, &self.options.cpus, Binding::ToOne);
        let body = Body::Opaque { process, scope, origin: Box::new(origin) };
        let hold = match (admission.parking, &cgroup) {
            (Parking::WorkConserving, _) => None,
            (Parking::Held, Some(cgroup)) => Some(Hold::in_cgroup(cgroup)),
            (Parking::Held, None) => Some(self.hold_of(admission.name, body.whom(), vec![process])?),
        };
        let waits = jobs.is_some();
        // A command's heirs are contained with it. Where nobody hears of them, they begin as ordinary threads and are looked for.
        let heirs = match scope {
            Scope::Family if self.wakeups.is_some() => Heirs::Alike,
            _ => Heirs::Ordinary,
        };
        let registered = self.register(&admission, |_, vp| {
            let mut member = Member::new(admission.name.into(), vp, body, Vec::new(), hold);
            member.jobs = jobs.map(MemberJobs::Thread);
            member.cgroup = cgroup;
            member.go = go.clone().filter(|_| waits);
            member.heirs = heirs;
            (member, ())
        });
        let (id, ()) = registered?;
        let place = id.slot as usize % self.options.cpus.len();
        let taken = match scope != Scope::Thread && !self.guardian.note_program(process, &origin) {
            true => Err(too_many(&admission, "programs", guardian::PROGRAMS_MAX)),
            false => self.take_threads(&admission, (id, place), heirs, (&tids, &before)),
        };
        if let Err(error) = taken {
            return Err(self.undo(id, (process, &tids), error));
        }
        // Whether it can run is not known; if it cannot, its sentinel will say so.
        let ended = self.shared.tell(|state, now| {
            if !waits {
                state.request(id.slot, now);
            }
            state.ended
        });
        if ended {
            return Err(self.undo(id, (process, &tids), AdmitError::Ended { name: admission.name.into() }));
        }
        if !waits {
            go.iter().for_each(Go::let_go);
        }
        Ok(id)
    }

    /// Parks the threads of another process, and makes them their member's.
    fn take_threads(
        &self,
        admission: &Admission<'_>,
        (id, place): (MemberId, usize),
        heirs: Heirs,
        (tids, before): (&[Tid], &[Ordinary]),
    ) -> Result<(), AdmitError> {
        let cpu = self.options.cpus[place];
        self.park(admission, heirs, (tids, before), cpu)?;
        // Not longer at a time than a decision may wait.
        for tids in tids.chunks(AT_A_TIME) {
            self.shared.tell(|state, _| {
                if let Some(member) = state.member_of(id) {
                    member.threads.extend(tids.iter().map(|&tid| Managed::new(tid, Level::Parked)));
                    member.is_bound(place, cpu);
                    member.open_account();
                    tids.iter().for_each(|tid| state.index_thread(number(*tid), id.slot));
                }
            });
        }
        self.choose_wakeups(admission)
    }

    /// Takes out a member of which `error` has come. Its threads have what they had.
    fn undo(&self, id: MemberId, (process, tids): (Tid, &[Tid]), error: AdmitError) -> AdmitError {
        let member = self.shared.tell(|state, now| state.expel(id, now));
        let adopted = member.iter().flat_map(Member::all_threads).map(|thread| thread.tid);
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
            SignalTarget::Group(_) => proc::families(known.clone(), self.options.threads_max, |_| true),
        };
        Hold::of(whom, &processes, &self.guardian).map_err(|reason| match reason {
            CannotHold::OutOfReach => AdmitError::OutOfReach { name: name.into() },
            CannotHold::NoRoom => {
                AdmitError::TooMany { name: name.into(), what: MORE_TO_HOLD, most: guardian::HELD_MAX }
            }
        })
    }

    fn resolve(&self, admission: &Admission<'_>, target: Target) -> Result<Program, AdmitError> {
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
        let (scope, threads) = match target {
            Target::Thread(_) => (Scope::Thread, vec![tid]),
            Target::Process(_) if process != tid => return Err(missing()),
            Target::Process(_) => (Scope::Process, self.threads_of_process(admission, process)?),
        };
        let before = self.ordinary_policies(admission, &threads)?;
        Ok(Program { process, scope, threads, before, go: None, cgroup: None })
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
        let mut taken = None;
        for tids in tids.chunks(AT_A_TIME) {
            let state = self.shared.state.lock_patiently();
            taken = taken.or_else(|| tids.iter().copied().find(|tid| state.is_managed(number(*tid))));
        }
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

    /// Threads of processes that were there before.
    fn threads_managed(&self) -> usize {
        let state = self.shared.state.lock_patiently();
        let members = state.members.iter().flatten().filter(|member| member.heirs == Heirs::Ordinary);
        members.map(|member| member.threads.len()).sum()
    }

    /// Parks the threads and notes what they were. A command has nothing that it gets back: it ends with the run.
    fn park(
        &self,
        admission: &Admission<'_>,
        heirs: Heirs,
        (tids, before): (&[Tid], &[Ordinary]),
        cpu: u16,
    ) -> Result<(), AdmitError> {
        let turns = if tids.len() > 1 { Turns::RoundRobin } else { Turns::Fifo };
        for (&tid, &before) in tids.iter().zip(before) {
            let mask = Mask::of(tid.as_raw_nonzero().get()).unwrap_or(Mask::ALL);
            if heirs == Heirs::Ordinary && !self.guardian.note(tid, before, mask) {
                return Err(too_many(admission, "threads", guardian::THREADS_MAX));
            }
            match priorities::set(tid, self.options.priorities, Level::Parked, (turns, heirs)) {
                // One that has ended meanwhile is missed when it is raised.
                Ok(()) | Err(Errno::SRCH) => _ = bind(tid, cpu),
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
}
