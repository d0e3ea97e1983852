//! Taking in threads of other processes, and commands with theirs.

use super::{MORE_TO_HOLD, number, too_many};
use crate::beginning::Beginnings;
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
use rustix::process::{getpid, setpriority_process};
use std::collections::HashSet;
use std::process::Command;
use std::sync::Arc;
use talea_linux::Tid;
use talea_linux::cgroup::Cgroup;
use talea_linux::proc;
use talea_model::ChildProcesses;
use talea_policy::arrangement::ChangeCause;

/// Threads that are looked at with the dispatcher's lock held.
const AT_A_TIME: usize = 32;

/// What is to be taken in.
struct Program {
    process: Tid,
    scope: Scope,
    origin: Origin,
    /// Children that it had before and that are not its own.
    elders: HashSet<Tid>,
    threads: Vec<ProgramThread>,
    /// What lets it go, if it waits.
    go: Option<Go>,
    /// Where it was started.
    cgroup: Option<Arc<Cgroup>>,
}

/// Where threads could run before any member was bound: one that a member's bound thread has created is bound as well.
struct MasksBefore {
    origins: Vec<Origin>,
    beginnings: Beginnings,
}

impl MasksBefore {
    fn of(&self, tid: Tid) -> Mask {
        let tid = number(tid) as i32;
        let own = Mask::of(tid).unwrap_or(Mask::ALL);
        let given = self.origins.iter().filter(|origin| origin.has_lent(tid));
        let mut given = given.filter_map(|origin| origin.mask_of(tid, |tid| self.beginnings.of(tid)));
        given.find(|mask| *mask != own).unwrap_or(own)
    }
}

/// One of its threads.
struct ProgramThread {
    process: Tid,
    tid: Tid,
    /// What it had.
    before: Ordinary,
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
            origin: Origin::of(started.process, &self.options.cpus, Binding::ToOne),
            elders: HashSet::new(),
            threads: vec![ProgramThread {
                process: started.process,
                tid: started.process,
                before: Ordinary::OTHER,
            }],
            go: Some(started.go()),
            cgroup: started.cgroup().map(Arc::clone),
        };
        let member = self.take_in(admission, program, jobs)?;
        self.commands.push(started);
        Ok(member)
    }

    /// These processes will be members by themselves, and are not taken in with those that have started them.
    pub fn keep_apart(&self, processes: impl IntoIterator<Item = u32>) {
        self.shared.state.lock_patiently().keep_apart(processes);
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
        let Program { process, scope, origin, elders, threads, go, cgroup } = program;
        let tids: Vec<Tid> = threads.iter().map(|thread| thread.tid).collect();
        if scope != Scope::Family && self.threads_managed() + tids.len() > self.options.threads_max {
            return Err(too_many(&admission, "threads", self.options.threads_max));
        }
        let body = Body::Opaque { process, scope, origin: Box::new(origin), elders: Arc::new(elders) };
        let hold = match (admission.parking, &cgroup) {
            (Parking::WorkConserving, _) => None,
            (Parking::Held, Some(cgroup)) => Some(Hold::in_cgroup(cgroup, &self.freezer)),
            (Parking::Held, None) => {
                let mut known: Vec<Tid> = threads.iter().map(|thread| thread.process).collect();
                known.dedup();
                Some(self.hold_of(admission.name, body.whom(), known)?)
            }
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
        // What a command has started ends with it, and is given nothing back.
        let is_noted = !matches!(scope, Scope::Process(_)) || self.guardian.note_program(process, &origin);
        let taken = match !is_noted {
            true => Err(too_many(&admission, "programs", guardian::PROGRAMS_MAX)),
            false => self.take_threads(&admission, (id, place), heirs, &threads),
        };
        if let Err(error) = taken {
            return Err(self.undo(id, (process, &tids), admission.not_admitted(), error));
        }
        // Whether it can run is not known; if it cannot, its sentinel will say so.
        let ended = self.shared.tell(|state, now| {
            if !waits {
                state.request(id.slot, now);
            }
            state.ended
        });
        if ended {
            let error = AdmitError::Ended { name: admission.name.into() };
            return Err(self.undo(id, (process, &tids), admission.not_admitted(), error));
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
        threads: &[ProgramThread],
    ) -> Result<(), AdmitError> {
        let cpu = self.options.cpus[place];
        self.park(admission, heirs, threads, cpu)?;
        // Not longer at a time than a decision may wait.
        for threads in threads.chunks(AT_A_TIME) {
            self.shared.tell(|state, _| {
                if let Some(member) = state.member_of(id) {
                    member.threads.extend(threads.iter().map(|one| Managed::new(one.tid, Level::Parked)));
                    member.is_bound(place, cpu);
                    member.count_processes(threads.iter().map(|one| one.process));
                    member.open_account();
                    threads.iter().for_each(|one| state.index_thread(number(one.tid), id.slot));
                }
            });
        }
        self.choose_wakeups(admission)
    }

    /// Takes out a member of which `error` has come. Its threads have what they had.
    fn undo(
        &self,
        id: MemberId,
        (process, tids): (Tid, &[Tid]),
        cause: ChangeCause,
        error: AdmitError,
    ) -> AdmitError {
        let member = self.shared.tell(|state, now| state.expel(id, cause, now));
        let adopted = member.iter().flat_map(Member::all_threads).map(|thread| thread.tid);
        adopted.chain(tids.iter().copied()).for_each(|tid| self.guardian.restore(tid));
        match member.and_then(|mut member| member.unbinding()) {
            Some(unbinding) => {
                let is_apart = |process| self.shared.is_apart(process);
                self.shared.unbindings.begin(unbinding, &self.guardian, is_apart);
            }
            None => self.guardian.forget_program(process),
        }
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
            SignalTarget::Process(_) => known.clone(),
            SignalTarget::Group(_) => proc::families(known.clone(), self.options.threads_max, |_| true),
        };
        Hold::of(whom, &processes, &self.guardian, &self.freezer).map_err(|reason| match reason {
            CannotHold::OutOfReach => AdmitError::OutOfReach { name: name.into() },
            CannotHold::NoRoom => {
                AdmitError::TooMany { name: name.into(), what: MORE_TO_HOLD, most: guardian::HELD_MAX }
            }
        })
    }

    fn resolve(&self, admission: &Admission<'_>, target: Target) -> Result<Program, AdmitError> {
        let (process, tid) = target.find(admission.name)?;
        if process == self.guardian_tid() {
            return Err(AdmitError::Own { name: admission.name.into(), number: number(tid) });
        }
        // It may have been dismissed just now, with some of its threads bound still.
        self.shared.unbindings.judge(process, &[tid].into(), &self.guardian);
        // Before anybody looks: what begins meanwhile is later than this.
        let mut origin = Origin::of(tid, &self.options.cpus, Binding::ToOne);
        origin.before = self.masks_before().of(tid);
        let (scope, elders, threads) = match target {
            Target::Thread(_) => (Scope::Thread, HashSet::new(), vec![(process, tid)]),
            Target::Process(_, children) => {
                let elders = match children {
                    ChildProcesses::Later => self.families(process).into_iter().skip(1).collect(),
                    ChildProcesses::All => HashSet::new(),
                };
                (Scope::Process(children), elders, self.threads_of_program(process, children))
            }
        };
        let tids = threads.iter().map(|(_, tid)| *tid).collect();
        self.shared.unbindings.judge(process, &tids, &self.guardian);
        let threads = self.ordinary_policies(admission, &threads)?;
        if threads.first().is_none_or(|first| first.process != process) {
            return Err(target.missing(admission.name));
        }
        Ok(Program { process, scope, origin, elders, threads, go: None, cgroup: None })
    }

    /// The threads of a process, and of those that it has started, each with its process. Others that are managed already are left where they are, with
    /// what they have started.
    fn threads_of_program(&self, process: Tid, children: ChildProcesses) -> Vec<(Tid, Tid)> {
        let most = self.options.threads_max + 1;
        let processes = match children {
            ChildProcesses::Later => vec![process],
            ChildProcesses::All => self.families(process),
        };
        let threads = |process| proc::threads(process, most).unwrap_or_default().into_iter();
        let all = processes.into_iter().flat_map(|process| threads(process).map(move |tid| (process, tid)));
        all.take(most).collect()
    }

    /// A process, and what it has started and what is not scheduled by itself.
    fn families(&self, process: Tid) -> Vec<Tid> {
        let is_its = |child| child != getpid() && !self.shared.is_apart(child);
        proc::families(vec![process], self.options.threads_max + 1, is_its)
    }

    fn masks_before(&self) -> MasksBefore {
        let state = self.shared.state.lock_patiently();
        let origin = |member: &Member| match &member.body {
            Body::Opaque { scope: Scope::Process(_), origin, .. } => Some(**origin),
            Body::Opaque { .. } | Body::Own { .. } => None,
        };
        let origins = state.members.iter().flatten().filter_map(origin).collect();
        MasksBefore { origins, beginnings: Beginnings::default() }
    }

    fn guardian_tid(&self) -> Tid {
        Tid::from_raw(self.guardian.process() as i32).expect("a process has a number")
    }

    /// All threads with the policies that they have, if these are ordinary ones and the threads nobody's.
    fn ordinary_policies(
        &self,
        admission: &Admission<'_>,
        threads: &[(Tid, Tid)],
    ) -> Result<Vec<ProgramThread>, AdmitError> {
        let mut taken = None;
        for threads in threads.chunks(AT_A_TIME) {
            let state = self.shared.state.lock_patiently();
            taken = taken.or_else(|| threads.iter().find(|(_, tid)| state.is_managed(number(*tid))));
        }
        let name = || admission.name.to_string();
        if let Some((_, tid)) = taken {
            return Err(AdmitError::Managed { name: name(), tid: number(*tid) });
        }
        let policy = |&(process, tid): &(Tid, Tid)| match Ordinary::of(tid) {
            Ok(Some(before)) => Some(Ok(ProgramThread { process, tid, before })),
            Ok(None) => Some(Err(AdmitError::RealTime { name: name(), tid: number(tid) })),
            // It has ended meanwhile.
            Err(_) => None,
        };
        let threads: Vec<ProgramThread> = threads.iter().filter_map(policy).collect::<Result<_, _>>()?;
        Ok(threads)
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
        threads: &[ProgramThread],
        cpu: u16,
    ) -> Result<(), AdmitError> {
        let turns = if threads.len() > 1 { Turns::RoundRobin } else { Turns::Fifo };
        let masks = self.masks_before();
        for &ProgramThread { tid, before, .. } in threads {
            let mask = masks.of(tid);
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
