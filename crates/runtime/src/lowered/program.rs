//! A program of somebody else under a policy of the kernel: a command of the run, or a process that was there.

use crate::hierarchy::HierarchyError;
use crate::outcome::ThreadAttributes;
use std::collections::HashSet;
use std::sync::Arc;
use talea_linux::clock::MonotonicClock;
use talea_linux::cpu_account::{CpuAccount, CpuClock};
use talea_linux::proc;
use talea_linux::proc::{is_gone, is_thread_gone};
use talea_linux::sched::{self, Policy};
use talea_linux::{Tid, affinity};
use talea_manage::beginning::Beginnings;
use talea_manage::guardian::{Guardian, PROGRAMS_MAX, THREADS_MAX};
use talea_manage::keeper::Go;
use talea_manage::naming::Naming;
use talea_manage::origin::{Binding, Mask, Origin};
use talea_manage::unbinding::Unbinding;
use talea_manage::{AdmitError, ForeignChanges, Ordinary, ThreadJobs};
use talea_model::ChildProcesses;
use talea_record::event::{Complete, Dates, Release, Thread};
use talea_record::{Record, RingWriter, Sink, ThreadRole};
use talea_time::{Clock, Instant, Work};

/// Threads of a process that are taken in; more stay ordinary ones.
const THREADS_OF_ONE: usize = 256;

/// What belongs to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// A command, which has not begun, and all that it will start.
    Command,
    /// A process, which goes on as it is until the start of the run, with those of its children.
    Process(ChildProcesses),
    /// A thread of one.
    Thread(Tid),
}

pub(super) struct Program {
    pub post: Post,
    origin: Origin,
    beginnings: Beginnings,
    /// Children that the process had before and that are not the program's.
    elders: Arc<HashSet<Tid>>,
    threads: Vec<Tid>,
    /// Its threads with the policy, as the kernel had them when that was first given.
    pub attributes: Vec<ThreadAttributes>,
    account: CpuAccount,
    /// Processor time received since the start, as far as is known.
    pub received: Work,
    /// What somebody else has changed of it.
    pub changes: ForeignChanges,
    naming: Naming,
    /// Names of threads that the trace does not tell, for want of room.
    pub undefined: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Released,
    Gone,
}

/// What a program is to be.
pub(super) struct Post {
    /// What the description calls it.
    pub name: String,
    pub process: Tid,
    pub extent: Extent,
    /// What lets a command begin.
    pub go: Option<Go>,
    pub policy: Policy,
    pub cpus: Vec<u16>,
    pub jobs: ThreadJobs,
    pub node: usize,
    pub ring: RingWriter,
    /// Processes that are scheduled by themselves, whoever has started them.
    pub apart: Arc<[u32]>,
}

/// Everything is as it was before these programs were taken in. A command that has not begun never will.
pub(super) fn give_back(programs: &mut [Program], guardian: &Guardian) {
    // All of them first: nobody is kept from running any more by whoever is looked at later.
    programs.iter_mut().for_each(|program| program.restore_threads(guardian));
    guardian.restore_all_owed();
    let beginnings = Beginnings::default();
    for program in programs {
        if let Some(mut unbinding) = program.unbinding(guardian) {
            unbinding.finish(&beginnings, |_| false);
        }
        program.forget(guardian);
    }
}

impl Program {
    /// Takes a process in: gives a command that has yet to begin its policy, or tries it and gives back what the process has until the run begins. What its threads had is
    /// noted first.
    ///
    /// # Errors
    /// It is not there, has a real-time policy already, or may not have this one. It has what it had.
    pub fn engage(post: Post, guardian: &Guardian) -> Result<Self, HierarchyError> {
        let process = post.process;
        let first = if let Extent::Thread(tid) = post.extent { tid } else { process };
        // Before anybody looks: what begins meanwhile is later than this.
        let origin = Origin::of(first, &post.cpus, Binding::ToAll);
        let naming = Naming::of_node(post.node);
        let mut program = Program {
            post,
            origin,
            beginnings: Beginnings::default(),
            elders: Arc::default(),
            threads: Vec::new(),
            attributes: Vec::new(),
            account: CpuAccount::default(),
            received: Work::ZERO,
            changes: ForeignChanges::default(),
            naming,
            undefined: 0,
            state: State::Waiting,
        };
        if program.post.extent == Extent::Process(ChildProcesses::Later) {
            let elders = proc::families(vec![process], THREADS_OF_ONE, |_| true);
            program.elders = Arc::new(elders.into_iter().skip(1).collect());
        }
        program.introduce_first();
        // What a command has started ends with it, and is given nothing back.
        let is_process = matches!(program.post.extent, Extent::Process(_));
        if is_process && !guardian.note_program(process, &program.origin) {
            return Err(program.too_many("programs", PROGRAMS_MAX));
        }
        let taken = program.take_threads(guardian);
        if taken.is_err() {
            give_back(std::slice::from_mut(&mut program), guardian);
        }
        taken?;
        Ok(program)
    }

    fn take_threads(&mut self, guardian: &Guardian) -> Result<(), HierarchyError> {
        let program = self.post.name.clone();
        let missing = |what: &'static str, tid: Tid| {
            HierarchyError::from(AdmitError::Missing { name: program.clone(), what, number: number(tid) })
        };
        let listed = self.listed(guardian);
        if listed.first().is_none_or(|(process, _)| *process != self.post.process) {
            return Err(missing("process", self.post.process));
        }
        let mut noted = Vec::with_capacity(listed.len());
        for (process, tid) in listed {
            if guardian.has_note(tid) {
                let (name, tid) = (self.post.name.clone(), number(tid));
                return Err(AdmitError::Managed { name, tid }.into());
            }
            let before = match Ordinary::of(tid) {
                // It has the priority of whoever has started it.
                _ if self.post.extent == Extent::Command => Ordinary::OTHER,
                Ok(Some(before)) => before,
                Ok(None) => {
                    return Err(
                        AdmitError::RealTime { name: self.post.name.clone(), tid: number(tid) }.into()
                    );
                }
                Err(_) if tid == self.first() => return Err(missing("thread", tid)),
                // It has ended meanwhile.
                Err(_) => continue,
            };
            let Some(mask) = self.mask_of(tid) else { continue };
            if !guardian.note(tid, before, mask) {
                return Err(self.too_many("threads", THREADS_MAX));
            }
            self.threads.push(tid);
            if tid != self.first() {
                let _told = self.introduce(process, tid);
            }
            if !matches!(self.post.extent, Extent::Thread(_)) {
                self.account.enter_child(process);
            }
            noted.push((tid, before, mask));
        }
        self.lend_all()?;
        self.attributes = self.threads.iter().map(|tid| self.attributes_of(*tid)).collect();
        if self.post.extent != Extent::Command {
            for (tid, before, mask) in noted {
                guardian.restore(tid);
                guardian.note(tid, before, mask);
            }
        }
        Ok(())
    }

    /// The threads that it has now, each with its process.
    fn listed(&self, guardian: &Guardian) -> Vec<(Tid, Tid)> {
        let process = self.post.process;
        let processes = match self.post.extent {
            Extent::Thread(tid) => return vec![(process, tid)],
            Extent::Command | Extent::Process(ChildProcesses::Later) => vec![process],
            Extent::Process(ChildProcesses::All) => self.with_heirs(vec![process], guardian),
        };
        let threads = |process| proc::threads(process, THREADS_OF_ONE).unwrap_or_default().into_iter();
        let all = processes.into_iter().flat_map(|process| threads(process).map(move |tid| (process, tid)));
        all.take(THREADS_OF_ONE).collect()
    }

    /// The thread by whose number it was named; the first thread of a process has that of the process.
    fn first(&self) -> Tid {
        match self.post.extent {
            Extent::Thread(tid) => tid,
            Extent::Command | Extent::Process(_) => self.post.process,
        }
    }

    fn too_many(&self, what: &'static str, most: usize) -> HierarchyError {
        AdmitError::TooMany { name: self.post.name.clone(), what, most }.into()
    }

    /// The policy of each of its threads: those of one program take turns at their priority.
    fn policy_of_each(&self) -> Policy {
        match self.post.policy {
            Policy::Fifo(priority) if self.threads.len() > 1 => Policy::RoundRobin(priority),
            policy => policy,
        }
    }

    fn lend(&self, tid: Tid) -> Result<(), HierarchyError> {
        let refused = |source| HierarchyError::Kernel { thread: self.post.name.clone(), source };
        match sched::lend(tid, self.policy_of_each()) {
            // One that has ended needs nothing.
            Err(sched::SchedError::NoSuchThread(_)) => return Ok(()),
            lent => lent.map_err(refused)?,
        }
        // A cpuset that excludes them leaves the thread where it is, which reading back shows.
        let _elsewhere = affinity::set(Some(tid), &self.post.cpus);
        Ok(())
    }

    fn lend_all(&self) -> Result<(), HierarchyError> {
        self.threads.iter().try_for_each(|tid| self.lend(*tid))
    }

    fn attributes_of(&self, tid: Tid) -> ThreadAttributes {
        ThreadAttributes {
            name: self.post.name.clone(),
            tid: tid.as_raw_nonzero().get(),
            wanted_policy: self.policy_of_each().to_string(),
            actual_policy: sched::get(Some(tid)).map_or_else(|_| "-".into(), |policy| policy.to_string()),
            wanted_cpus: self.post.cpus.clone(),
            actual_cpus: affinity::get(Some(tid)).unwrap_or_default(),
        }
    }

    /// The run begins at `start`: the program has its policy and goes on.
    ///
    /// # Errors
    /// The kernel refuses what it granted before.
    pub fn release(&mut self, start: Instant) -> Result<(), HierarchyError> {
        self.state = State::Released;
        // Whoever looks after it from now on is above those whom it takes the processor from, and those who read when threads began are, too.
        self.beginnings = Beginnings::default();
        self.account.open(match self.post.extent {
            Extent::Thread(tid) => CpuClock::Thread(tid),
            Extent::Command | Extent::Process(_) => CpuClock::Process(self.post.process),
        });
        self.note_released(start);
        match self.post.extent {
            Extent::Command => {
                self.post.go.iter().for_each(Go::let_go);
                Ok(())
            }
            Extent::Process(_) | Extent::Thread(_) => self.lend_all(),
        }
    }

    /// Takes in threads that it has created, and notices that it has gone. False once it has.
    ///
    /// # Errors
    /// The kernel refuses what it granted before.
    pub fn look_after(&mut self, guardian: &Guardian, start: Instant) -> Result<(), HierarchyError> {
        if self.state != State::Released {
            return Ok(());
        }
        self.note_received();
        let is_alone = matches!(self.post.extent, Extent::Thread(_));
        if (is_alone || is_gone(self.post.process)) && self.threads.iter().all(|tid| is_thread_gone(*tid)) {
            self.state = State::Gone;
            self.note_completed(start);
            self.threads.drain(..).for_each(|tid| guardian.forget(tid));
            self.forget(guardian);
            return Ok(());
        }
        guardian.sweep();
        self.threads.retain(|tid| !is_thread_gone(*tid));
        self.put_back_changes()?;
        let known = self.threads.len();
        for process in self.processes(guardian) {
            for tid in proc::threads(process, THREADS_OF_ONE).unwrap_or_default() {
                self.adopt(process, tid, guardian);
            }
        }
        self.unbind_young(guardian);
        self.undefined += self.naming.look_again(&self.post.ring.definer(), MonotonicClock.now());
        if self.threads.len() > known { self.lend_all() } else { Ok(()) }
    }

    fn adopt(&mut self, process: Tid, tid: Tid, guardian: &Guardian) {
        if self.threads.len() == THREADS_OF_ONE || self.threads.contains(&tid) || is_thread_gone(tid) {
            return;
        }
        // Its process may be scheduled by itself.
        if guardian.has_note(tid) {
            return;
        }
        // One that has made itself a real-time thread, or was created by one that had, becomes what the others are.
        let Ok(policy) = Ordinary::of(tid) else { return };
        let beginning = |tid| self.beginnings.of(tid);
        let is_child = match self.post.extent {
            Extent::Command => Some(true),
            _ => self.origin.has_begun_since(process.as_raw_nonzero().get(), beginning),
        };
        // Where the kernel does not tell at once, the next look asks again.
        let Some((is_child, mask)) = is_child.zip(self.mask_of(tid)) else { return };
        if guardian.note(tid, policy.unwrap_or(Ordinary::OTHER), mask) {
            self.changes.priorities += u64::from(policy.is_none() && self.post.extent != Extent::Command);
            match is_child {
                true => self.account.enter_child(process),
                false => self.account.enter_elder(process),
            }
            self.threads.push(tid);
            let _told = self.introduce(process, tid);
        }
    }

    /// Where a thread of it could run, as far as the kernel tells at once. What a command starts is not asked for: it ends with the run.
    fn mask_of(&self, tid: Tid) -> Option<Mask> {
        match self.post.extent {
            Extent::Command => Some(self.origin.before),
            _ => self.origin.mask_of(tid.as_raw_nonzero().get(), |tid| self.beginnings.of(tid)),
        }
    }

    /// Its process and what it has started, as far as that belongs to it; none if it is a thread.
    fn processes(&self, guardian: &Guardian) -> Vec<Tid> {
        self.with_heirs(self.account.processes().collect(), guardian)
    }

    fn with_heirs(&self, known: Vec<Tid>, guardian: &Guardian) -> Vec<Tid> {
        let is_apart =
            |process: Tid| self.post.apart.contains(&number(process)) || guardian.has_note(process);
        proc::families(known, THREADS_OF_ONE, |process| match self.post.extent {
            Extent::Command => true,
            Extent::Process(children) => {
                let is_its = !self.elders.contains(&process) && !is_apart(process);
                is_its && self.origin.is_heir(process, children, |tid| self.beginnings.of(tid))
            }
            Extent::Thread(_) => false,
        })
    }

    /// What a thread that is scheduled alone creates is bound like it, and is to run where it could.
    fn unbind_young(&self, guardian: &Guardian) {
        let beginning = |tid| self.beginnings.of(tid);
        if let Extent::Thread(own) = self.post.extent {
            for process in proc::families(vec![self.post.process], THREADS_OF_ONE, |_| true) {
                let threads = proc::threads(process, THREADS_OF_ONE).unwrap_or_default();
                for tid in threads.into_iter().filter(|tid| *tid != own && !guardian.has_note(*tid)) {
                    // Where the kernel does not tell at once, the next look asks again.
                    let _is_done = self.origin.unbind_young(tid.as_raw_nonzero().get(), beginning);
                }
            }
        }
    }

    /// What somebody else has changed of how its threads are scheduled is put back, and counted. A command is kept from calling for it.
    fn put_back_changes(&mut self) -> Result<(), HierarchyError> {
        if self.post.extent == Extent::Command {
            return Ok(());
        }
        let due = self.policy_of_each();
        for at in 0..self.threads.len() {
            let tid = self.threads[at];
            let has_moved = || affinity::get(Some(tid)).is_ok_and(|cpus| cpus != self.post.cpus);
            let is_elsewhere = has_moved();
            let is_other = match sched::get(Some(tid)) {
                Err(sched::SchedError::NoSuchThread(_)) => false,
                found => {
                    !found.is_ok_and(|found| is_as_urgent(found, due))
                        || due != Policy::Other && !sched::resets_on_fork(tid)
                }
            };
            if is_elsewhere || is_other {
                self.lend(tid)?;
                // A cpuset may keep it where it is.
                self.changes.processors += u64::from(is_elsewhere && !has_moved());
                self.changes.priorities += u64::from(is_other);
            }
        }
        Ok(())
    }

    /// Threads that it has beyond those that are taken in.
    pub fn unmanaged(&self, guardian: &Guardian) -> u64 {
        let all: usize = self.processes(guardian).into_iter().filter_map(proc::thread_count).sum();
        all.saturating_sub(self.threads.len()) as u64
    }

    fn note_received(&mut self) {
        self.received = self.account.received();
    }

    /// Its threads are as they were. Waits for nobody.
    fn restore_threads(&mut self, guardian: &Guardian) {
        if self.state == State::Released {
            self.note_received();
        }
        self.threads.iter().for_each(|tid| guardian.restore(*tid));
    }

    /// What remains to be done once its threads have been restored: nothing of a command, which ends.
    fn unbinding(&self, guardian: &Guardian) -> Option<Unbinding> {
        match self.post.extent {
            Extent::Command => None,
            Extent::Process(_) => {
                let processes = self.processes(guardian);
                let elders = Arc::clone(&self.elders);
                Some(Unbinding::of_program(self.post.process, processes, elders, self.origin))
            }
            Extent::Thread(_) => Some(Unbinding::of_thread(self.post.process, self.origin)),
        }
    }

    /// Nothing is to be given back any more.
    fn forget(&self, guardian: &Guardian) {
        // Another thread of the process may be scheduled alone, too.
        if !matches!(self.post.extent, Extent::Thread(_)) {
            guardian.forget_program(self.post.process);
        }
    }

    /// Tells those who follow the run which thread it is: the first thread of a process has its number.
    fn introduce_first(&mut self) {
        let record = self.introduce(self.post.process, self.first());
        self.post.ring.identify(&record);
    }

    /// Tells them that a thread is the program's.
    fn introduce(&mut self, process: Tid, tid: Tid) -> Record {
        let (tid, pid, now) = (number(tid), number(process), MonotonicClock.now());
        let (node, lane) = (self.post.node as u32, self.post.jobs.lane);
        self.undefined += u64::from(!self.naming.define(&self.post.ring.definer(), tid, now));
        let thread = Thread { tid, pid, node, lane: Some(lane), role: ThreadRole::Lane.into() };
        let record = thread.at(now, Record::NO_CPU);
        self.post.ring.record(record);
        record
    }

    /// Its only job is released.
    fn note_released(&mut self, start: Instant) {
        let jobs = &mut self.post.jobs;
        jobs.arrive();
        let Dates { nominal, deadline } = jobs.dates(0, start);
        let release = Release { job: jobs.id(0), lane: jobs.lane, nominal, deadline };
        self.post.ring.record(release.at(MonotonicClock.now(), Record::NO_CPU));
    }

    /// Its only job is done.
    fn note_completed(&mut self, start: Instant) {
        let jobs = &self.post.jobs;
        let Dates { nominal, deadline } = jobs.dates(0, start);
        let complete = Complete { job: jobs.id(0), lane: jobs.lane, nominal, deadline };
        self.post.ring.record(complete.at(MonotonicClock.now(), Record::NO_CPU));
    }
}

/// Whether threads of the two policies come before the same others; one that takes turns is no less urgent than one that does not.
fn is_as_urgent(found: Policy, due: Policy) -> bool {
    match (found, due) {
        (Policy::Fifo(found) | Policy::RoundRobin(found), Policy::Fifo(due) | Policy::RoundRobin(due)) => {
            found == due
        }
        (found, due) => found == due,
    }
}

fn number(tid: Tid) -> u32 {
    tid.as_raw_nonzero().get() as u32
}
