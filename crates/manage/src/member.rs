//! Who is managed: a thread of our own, or the threads of somebody else, behind one virtual processor.

use crate::guardian::Guardian;
use crate::hold::Hold;
use crate::keeper::Go;
use crate::member_jobs::MemberJobs;
use crate::origin::Origin;
use crate::priorities::{self, Level, Priorities, Turns};
use crate::signal_target::SignalTarget;
use crate::sleep_word::SleepWord;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::sync::Arc;
use talea_linux::Tid;
use talea_linux::cgroup::Cgroup;
use talea_linux::cpu_account::{CpuAccount, CpuClock};
use talea_linux::proc::{self, Activity};
use talea_policy::hierarchy::VpId;
use talea_policy::job::Job;
use talea_time::{Instant, Work};

/// A member of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId {
    pub(crate) slot: u32,
    pub(crate) vp: VpId,
    /// Slots and virtual processors are used again; this never is.
    pub(crate) serial: u64,
}

impl MemberId {
    /// Its virtual processor, by which the hierarchy knows it.
    pub fn vp(self) -> VpId {
        self.vp
    }
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
pub(crate) type Departed = Vec<Received>;

impl Received {
    pub(crate) fn of(member: &mut Member, granted: Work) -> Self {
        Received { name: member.name.clone(), vp: member.vp, work: member.received(), granted }
    }
}

/// How it is known that a thread of this process can run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// It blocks by its handle and is woken by its wakers. Where it blocks otherwise (a page fault, a mutex), its wake-up
    /// is found by looking, within [`crate::LOOK_EVERY`].
    ByHandle,
    /// It also blocks in system calls; its wake-ups are traced like those of other processes.
    Anywhere,
}

/// A thread and the level it was last set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Managed {
    pub tid: Tid,
    level: Level,
    /// The level that it should have been set to since, which the kernel refused: see [`priorities::LENT`].
    owed: Option<Level>,
}

impl Managed {
    pub fn new(tid: Tid, level: Level) -> Self {
        Managed { tid, level, owed: None }
    }

    /// The kernel's number.
    pub fn number(&self) -> u32 {
        self.tid.as_raw_nonzero().get() as u32
    }

    /// Where it should be.
    fn due(&self) -> Level {
        self.owed.unwrap_or(self.level)
    }

    /// Sets it to `level`, now or as soon as the kernel lets it.
    ///
    /// # Errors
    /// See [`priorities::set`].
    fn set(&mut self, priorities: Priorities, level: Level, turns: Turns) -> Result<(), Errno> {
        let result = priorities::set(self.tid, priorities, level, turns);
        match result {
            Ok(()) => *self = Managed::new(self.tid, level),
            Err(priorities::LENT) => self.owed = Some(level),
            Err(_) => {}
        }
        result
    }
}

pub(crate) enum Body {
    /// A thread of this process, which sleeps on its word; it has no number until it is created.
    Own { sleep_word: Arc<SleepWord>, blocks: Blocks },
    /// A process, with what it starts or without, or one thread of one.
    Opaque { process: Tid, scope: Scope, origin: Box<Origin> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A command of ours with all that it starts.
    Family,
    Process,
    Thread,
}

impl Body {
    /// Who is to be held with it; nobody if it is a thread alone.
    pub fn whom(&self) -> Option<SignalTarget> {
        match *self {
            Body::Opaque { process, scope: Scope::Family, .. } => Some(SignalTarget::Group(process)),
            Body::Opaque { process, scope: Scope::Process, .. } => Some(SignalTarget::Process(process)),
            Body::Opaque { scope: Scope::Thread, .. } | Body::Own { .. } => None,
        }
    }
}

/// What an off-processor member is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Off {
    /// On its word, and nobody has woken it.
    Asleep,
    /// On its word, and woken since.
    Woken,
    /// The kernel knows.
    Elsewhere,
}

pub(crate) struct Member {
    pub name: String,
    pub vp: VpId,
    /// Tells it from others that have had its slot and its virtual processor; see [`crate::MemberId`].
    pub serial: u64,
    pub body: Body,
    /// Its threads; empty once they are gone.
    pub threads: Vec<Managed>,
    /// The place whose CPU the threads are bound to.
    pub place: usize,
    /// A wake-up was told while the hierarchy thought that it could run anyway.
    pub rewoken: bool,
    /// What its next request is for, if not anything in particular and not a job that has arrived.
    pub job: Option<Job>,
    /// What it does in a run, if there is one.
    pub jobs: Option<MemberJobs>,
    /// What lets a program go that waits for its first job.
    pub go: Option<Go>,
    pub hold: Option<Hold>,
    /// Where it was started, if it is a command in one.
    pub cgroup: Option<Arc<Cgroup>>,
    account: CpuAccount,
}

impl Member {
    pub fn new(name: String, vp: VpId, body: Body, threads: Vec<Managed>, hold: Option<Hold>) -> Self {
        Member {
            name,
            vp,
            serial: 0,
            body,
            threads,
            place: usize::MAX,
            rewoken: false,
            job: None,
            jobs: None,
            go: None,
            hold,
            cgroup: None,
            account: CpuAccount::default(),
        }
    }

    /// Begins to count, or begins anew, now that the threads are known.
    pub fn open_account(&mut self) {
        let Some(first) = self.threads.first().map(|thread| thread.tid) else { return };
        self.account.count_in(self.cgroup.clone());
        self.account.open(match &self.body {
            Body::Opaque { process, scope: Scope::Family | Scope::Process, .. } => {
                CpuClock::Process(*process)
            }
            Body::Opaque { scope: Scope::Thread, .. } => CpuClock::Thread(first),
            Body::Own { .. } => CpuClock::OwnThread(first),
        });
    }

    /// A thread of one of its processes is taken in, at `level`.
    pub fn adopt(&mut self, process: Tid, tid: Tid, level: Level) {
        self.account.enter_child(process);
        self.threads.push(Managed::new(tid, level));
        if let Some(hold) = &self.hold {
            hold.extend_to(process);
        }
    }

    /// Those of its processes that are known and there.
    pub fn processes(&mut self) -> Vec<Tid> {
        self.received();
        self.account.processes().collect()
    }

    /// Processor time received since it was registered, whatever for; the last known once its threads are gone.
    pub fn received(&mut self) -> Work {
        self.account.received()
    }

    pub fn sleep_word(&self) -> Option<&Arc<SleepWord>> {
        match &self.body {
            Body::Own { sleep_word, .. } => Some(sleep_word),
            Body::Opaque { .. } => None,
        }
    }

    /// Whether its wake-ups are to be traced.
    pub fn is_traced(&self) -> bool {
        !matches!(self.body, Body::Own { blocks: Blocks::ByHandle, .. })
    }

    fn turns(&self) -> Turns {
        if self.threads.len() > 1 { Turns::RoundRobin } else { Turns::Fifo }
    }

    /// Brings all threads to `level`. Those that have gone are forgotten. Returns how many could not be moved, because a deadline
    /// thread that waits for them lends them its priority: these are moved by [`Self::move_owed`].
    ///
    /// # Errors
    /// The kernel refuses what it granted before.
    pub fn move_to(&mut self, priorities: Priorities, level: Level) -> Result<u64, Errno> {
        self.set_those(priorities, |thread| {
            if thread.level == level {
                thread.owed = None;
                return None;
            }
            Some(level)
        })
    }

    /// Brings threads where they should have been brought when the kernel refused it. Returns and fails like
    /// [`Self::move_to`].
    pub fn move_owed(&mut self, priorities: Priorities) -> Result<u64, Errno> {
        self.set_those(priorities, |thread| thread.owed)
    }

    /// Has all threads take turns by time slice, which they do from the second on.
    pub fn take_turns(&mut self, priorities: Priorities) -> Result<u64, Errno> {
        self.set_those(priorities, |thread| Some(thread.due()))
    }

    fn set_those(
        &mut self,
        priorities: Priorities,
        to: impl Fn(&mut Managed) -> Option<Level>,
    ) -> Result<u64, Errno> {
        let turns = self.turns();
        let mut result = Ok(0);
        self.threads.retain_mut(|thread| {
            let Some(level) = to(thread) else { return true };
            match thread.set(priorities, level, turns) {
                Ok(()) => {}
                Err(Errno::SRCH) => return false,
                Err(priorities::LENT) => result = result.map(|lent| lent + 1),
                Err(errno) => result = Err(errno),
            }
            true
        });
        result
    }

    /// Binds the threads to `cpu`, that of `place`, if they are bound to another.
    pub fn bind(&mut self, place: usize, cpu: u16) {
        if self.place != place {
            self.place = place;
            self.threads.iter().for_each(|thread| bind(thread.tid, cpu));
        }
    }

    /// The lowest level of its threads, as they should be.
    pub fn level(&self) -> Level {
        self.threads.iter().map(Managed::due).min().unwrap_or(Level::Parked)
    }

    /// Why the member, which was granted its processor, is off it.
    pub fn off(&self) -> Off {
        match self.sleep_word() {
            Some(sleep_word) if sleep_word.is_woken() => Off::Woken,
            Some(sleep_word) if sleep_word.is_asleep() => Off::Asleep,
            _ => Off::Elsewhere,
        }
    }

    /// Whether a thread of it could run, by the kernel's word.
    pub fn is_runnable(&self) -> bool {
        self.threads.iter().any(|thread| proc::activity(thread.tid) == Activity::Runnable)
    }

    /// Whether it is the threads of another process, all gone, or an own one that has ended.
    pub fn is_gone(&self) -> bool {
        match &self.body {
            Body::Own { sleep_word, .. } => sleep_word.is_ended(),
            Body::Opaque { .. } => self.threads.is_empty(),
        }
    }

    /// What the hierarchy is asked for on its behalf at `now`, in a run that began at `start`.
    pub fn take_job(&mut self, start: Option<Instant>, now: Instant) -> Job {
        let tag = self.vp.index() as u32;
        let anything =
            Job { release: now, deadline: Instant::MAX, wcet: Work::ZERO, rank: 0, number: 0, tag };
        let arrived = start.and_then(|start| self.jobs.as_ref()?.job(start, now, tag));
        arrived.or_else(|| self.job.take()).unwrap_or(anything)
    }

    /// Gives its threads back what they had, also those of its processes that nobody has taken in yet.
    pub fn give_back(&mut self, guardian: &Guardian) {
        self.threads.iter().for_each(|thread| guardian.restore(thread.tid));
        let processes = self.processes();
        if let Body::Opaque { process, origin, scope } = &self.body {
            if *scope != Scope::Thread {
                processes.iter().for_each(|process| origin.unbind_all(process.as_raw_nonzero().get()));
            }
            guardian.release_program(*process);
        }
    }

    /// Lets a program go on that waits for its first job.
    pub fn set_going(&mut self) {
        self.go.take().iter().for_each(Go::let_go);
    }
}

/// Binds a thread to one CPU. One that has gone, or whose cpuset excludes it, stays as it is: it is then not where it
/// was granted, and the sentinel there takes it for blocked.
pub(crate) fn bind(tid: Tid, cpu: u16) {
    let mut set = CpuSet::new();
    set.set(usize::from(cpu));
    let _elsewhere = sched_setaffinity(Some(tid), &set);
}
