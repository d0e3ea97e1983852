//! Who is managed: a thread of our own, or the threads of somebody else, behind one virtual processor.

use crate::guardian::Guardian;
use crate::hold::Hold;
use crate::keeper::Go;
use crate::member_jobs::MemberJobs;
use crate::origin::{Mask, Origin};
use crate::priorities::{self, Heirs, Level, Ordinary, Priorities, Turns};
use crate::signal_target::SignalTarget;
use crate::sleep_word::SleepWord;
use crate::unbinding::Unbinding;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use talea_linux::Tid;
use talea_linux::cgroup::Cgroup;
use talea_linux::cpu_account::{CpuAccount, CpuClock};
use talea_linux::proc::{self, Activity};
use talea_model::ChildProcesses;
use talea_policy::hierarchy::VpId;
use talea_policy::job::Job;
use talea_time::{Duration, Instant, Work};

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
    /// What somebody else has changed of it, if it was there before.
    pub changes: ForeignChanges,
    /// For how long it ran on when it was to be held, for somebody moved processes from one cgroup to another, which the kernel lets nobody freeze a program
    /// beside.
    pub held_late: Duration,
}

/// How often somebody else has changed how a program's threads are scheduled, and had it put back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignChanges {
    /// Where a thread may run.
    pub processors: u64,
    /// A thread's policy or priority.
    pub priorities: u64,
}

impl ForeignChanges {
    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        *self == ForeignChanges::default()
    }
}

/// Members that have gone, with what they received.
pub(crate) type Departed = Vec<Received>;

impl Received {
    pub(crate) fn of(member: &mut Member, granted: Work) -> Self {
        let (name, vp, changes) = (member.name.clone(), member.vp, member.changes);
        let held_late = member.held_late + member.hold.as_ref().map_or(Duration::ZERO, Hold::late);
        Received { name, vp, work: member.received(), granted, changes, held_late }
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
    /// How it was last told to take turns with the others.
    turns: Option<Turns>,
    /// The level that it should have been set to since, which the kernel refused: see [`priorities::LENT`].
    owed: Option<Level>,
    /// The CPU to which it was last bound.
    bound: u16,
    /// Whether it has run there since.
    arrival: Arrival,
    /// Nobody has set its level since it began: it has the one that its creator had then, or a moment before.
    is_newborn: bool,
    /// A wake-up was told, or may not have been because it was raised, since somebody began to look whether it sleeps.
    is_rewoken: bool,
}

/// Whether a thread has run on the CPU to which it was last bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// It has, or is bound to none.
    Seen,
    /// It may not have.
    Awaited,
    /// The same, and when somebody first looked it slept and had left a processor so often.
    AwaitedFrom(u64),
}

/// Threads whose files are read in a decision.
const FEW: usize = 4;

/// A CPU that there is not.
const NOWHERE: u16 = u16::MAX;

impl Managed {
    pub fn new(tid: Tid, level: Level) -> Self {
        Managed {
            tid,
            level,
            turns: None,
            owed: None,
            bound: NOWHERE,
            arrival: Arrival::Seen,
            is_newborn: false,
            is_rewoken: false,
        }
    }

    /// The kernel's number.
    pub fn number(&self) -> u32 {
        self.tid.as_raw_nonzero().get() as u32
    }

    /// Where it should be.
    fn due(&self) -> Level {
        self.owed.unwrap_or(self.level)
    }

    fn is_where_bound(&self) -> bool {
        let is_there = |mask: Mask| mask.is_just(self.bound);
        self.bound == NOWHERE || Mask::of(self.tid.as_raw_nonzero().get()).is_none_or(is_there)
    }

    /// It was seen like this, having left a processor so often. What can run is on a CPU to which it is bound, and so is what has run since it was
    /// bound.
    fn look_for(&mut self, activity: Activity, switches: Option<u64>) {
        let has_run = |since: u64| switches.is_some_and(|switches| switches != since);
        let has_arrived = match self.arrival {
            Arrival::Seen => true,
            Arrival::Awaited => activity != Activity::Blocked,
            Arrival::AwaitedFrom(since) => activity != Activity::Blocked || has_run(since),
        };
        self.arrival = match (has_arrived && self.is_where_bound(), switches) {
            (true, _) => Arrival::Seen,
            (false, Some(switches)) => Arrival::AwaitedFrom(switches),
            (false, None) => Arrival::Awaited,
        };
    }

    /// Whether it has its level; nothing if it has gone.
    fn is_at_level(&self, priorities: Priorities, heirs: Heirs) -> Option<bool> {
        let is_at = priorities::is_at(self.tid, priorities, self.level, heirs)?;
        Some(is_at || self.owed.is_some() || self.is_newborn)
    }

    /// Whether it is scheduled as it was told to be; nothing if it has gone. Three system calls.
    pub fn is_as_set(&self, priorities: Priorities, heirs: Heirs) -> Option<bool> {
        Some(self.is_at_level(priorities, heirs)? && self.is_where_bound())
    }

    /// Sets it to `level`, now or as soon as the kernel lets it.
    ///
    /// # Errors
    /// See [`priorities::set`].
    fn set(&mut self, priorities: Priorities, level: Level, how: (Turns, Heirs)) -> Result<(), Errno> {
        let result = priorities::set(self.tid, priorities, level, how);
        match result {
            Ok(()) => {
                (self.level, self.turns) = (level, Some(how.0));
                (self.owed, self.is_newborn) = (None, false);
                // Not all of its wake-ups are told until it is parked again.
                self.is_rewoken |= level != Level::Parked;
            }
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
    Opaque {
        process: Tid,
        scope: Scope,
        origin: Box<Origin>,
        /// Children that the process had before and that are not of the member.
        elders: Arc<HashSet<Tid>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A command of ours with all that it starts.
    Family,
    /// A process that was there before, with those of its children.
    Process(ChildProcesses),
    Thread,
}

impl Body {
    /// Who is to be held with it; nobody if it is a thread alone.
    pub fn whom(&self) -> Option<SignalTarget> {
        match *self {
            Body::Opaque { process, scope: Scope::Family, .. } => Some(SignalTarget::Group(process)),
            Body::Opaque { process, scope: Scope::Process(_), .. } => Some(SignalTarget::Process(process)),
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
    /// Its threads; where [they are heard of](Self::heirs), those that may be able to run. These alone are raised, lowered and bound, so that
    /// a decision costs nothing for threads that sleep.
    pub threads: Vec<Managed>,
    /// Threads that sleep, [`Level::Parked`], until the kernel tells that they are woken.
    sleepers: HashMap<u32, Managed>,
    /// [`Heirs::Alike`]: its threads and processes are heard of as they begin, are woken and end.
    pub heirs: Heirs,
    /// A thread was woken, or created, since the member was raised, and may not be where the others are.
    pub lags: bool,
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
    /// For how long it ran on when earlier means were to hold it.
    pub held_late: Duration,
    /// Where it was started, if it is a command in one.
    pub cgroup: Option<Arc<Cgroup>>,
    /// Threads that were missed. There is room for all.
    gone: Vec<Tid>,
    /// The state of what draws the threads' order; never 0.
    draw: u64,
    account: CpuAccount,
    /// What was put back.
    pub changes: ForeignChanges,
}

impl Member {
    pub fn new(name: String, vp: VpId, body: Body, threads: Vec<Managed>, hold: Option<Hold>) -> Self {
        Member {
            name,
            vp,
            serial: 0,
            body,
            threads,
            sleepers: HashMap::new(),
            heirs: Heirs::Ordinary,
            lags: false,
            place: usize::MAX,
            rewoken: false,
            job: None,
            jobs: None,
            go: None,
            hold,
            held_late: Duration::ZERO,
            cgroup: None,
            gone: Vec::new(),
            draw: 1,
            account: CpuAccount::default(),
            changes: ForeignChanges::default(),
        }
    }

    /// These are its processes, too, if it is more than a thread.
    pub fn count_processes(&mut self, processes: impl Iterator<Item = Tid>) {
        if let Body::Opaque { scope: Scope::Process(_), .. } = self.body {
            processes.for_each(|process| self.account.enter_child(process));
        }
    }

    /// Begins to count, or begins anew, now that the threads are known.
    pub fn open_account(&mut self) {
        let Some(first) = self.threads.first().map(|thread| thread.tid) else { return };
        self.make_room();
        self.account.count_in(self.cgroup.clone());
        self.account.open(match &self.body {
            Body::Opaque { process, scope: Scope::Family | Scope::Process(_), .. } => {
                CpuClock::Process(*process)
            }
            Body::Opaque { scope: Scope::Thread, .. } => CpuClock::Thread(first),
            Body::Own { .. } => CpuClock::OwnThread(first),
        });
    }

    /// What is dispatched later allocates nothing: all may sleep, wake and go.
    pub fn make_room(&mut self) {
        let Member { threads, sleepers, gone, .. } = self;
        threads.reserve(sleepers.len());
        sleepers.reserve(threads.len());
        gone.reserve(threads.len() + sleepers.len());
    }

    /// A thread of a process, which began before the member or is its `child`, is taken in, at `level` and bound to `cpu`.
    pub fn adopt(&mut self, (process, is_child): (Tid, bool), tid: Tid, level: Level, cpu: u16) {
        match is_child {
            true => self.account.enter_child(process),
            false => self.account.enter_elder(process),
        }
        self.threads.push(Managed { bound: cpu, arrival: Arrival::Awaited, ..Managed::new(tid, level) });
        self.make_room();
    }

    /// A thread of it has created another, which has what its creator has.
    pub fn born(&mut self, parent: u32, process: Tid, tid: Tid) {
        let creator = self.threads.iter().find(|thread| thread.number() == parent);
        let unknown = || Managed::new(tid, self.level());
        let Managed { level, bound, turns, arrival, .. } = creator.copied().unwrap_or_else(unknown);
        let arrival = if arrival == Arrival::Seen { arrival } else { Arrival::Awaited };
        if self.cgroup.is_none() {
            self.account.enter_child(process);
        }
        let newborn = Managed { bound, turns, arrival, is_newborn: true, ..Managed::new(tid, level) };
        self.threads.push(newborn);
        self.make_room();
        // From the second on they take turns, which its creator may not have been told.
        self.lags |= turns != Some(Turns::RoundRobin);
    }

    /// A thread of it has ended.
    pub fn ended(&mut self, number: u32) {
        if self.sleepers.remove(&number).is_none()
            && let Some(at) = self.threads.iter().position(|thread| thread.number() == number)
        {
            self.threads.swap_remove(at);
        }
    }

    /// The kernel wakes a thread of it.
    pub fn wake(&mut self, number: u32) {
        if let Some(thread) = self.sleepers.remove(&number) {
            self.threads.push(thread);
            self.lags = true;
        } else if self.heirs == Heirs::Alike {
            let known = self.threads.iter_mut().find(|thread| thread.number() == number);
            known.into_iter().for_each(|thread| thread.is_rewoken = true);
        }
    }

    /// It has been let go, which wakes all of its threads: what they waited for may have come while they could not hear of it.
    pub fn wake_all(&mut self) {
        self.threads.extend(self.sleepers.drain().map(|(_, thread)| thread));
        self.threads.iter_mut().for_each(|thread| thread.is_rewoken = true);
        self.lags = true;
        self.rewoken = true;
    }

    /// Whether a thread that nobody has raised or lowered yet can run. Reads a file for each.
    pub fn has_runnable_newborn(&self) -> bool {
        self.threads
            .iter()
            .any(|thread| thread.is_newborn && proc::activity(thread.tid) == Activity::Runnable)
    }

    /// All of its threads sleep. Those that are heard of when they are woken are left alone until then.
    pub fn fall_asleep(&mut self) {
        if self.heirs == Heirs::Alike {
            let owed = self.threads.extract_if(.., |thread| thread.owed.is_none());
            self.sleepers.extend(owed.map(|thread| (thread.number(), thread)));
        }
    }

    /// Threads that may be able to run, of which there are more than `few`: somebody is to look whether they are.
    pub fn doubtful(&mut self, few: usize) -> impl Iterator<Item = Tid> + '_ {
        let are_many = self.heirs == Heirs::Alike && self.threads.len() > few;
        let doubtful =
            self.threads.iter_mut().filter(move |thread| are_many && thread.level == Level::Parked);
        doubtful.map(|thread| {
            thread.is_rewoken = false;
            thread.tid
        })
    }

    /// A thread was seen asleep since it was [doubtful](Self::doubtful). If it is parked still and nobody has told that it was woken, it is.
    pub fn seen_asleep(&mut self, tid: Tid) {
        let is_parked = |thread: &Managed| thread.level == Level::Parked && thread.owed.is_none();
        let is_it = |thread: &Managed| thread.tid == tid && is_parked(thread) && !thread.is_rewoken;
        if let Some(at) = self.threads.iter().position(is_it) {
            let thread = self.threads.swap_remove(at);
            self.sleepers.insert(thread.number(), thread);
        }
    }

    /// Threads that sleep, as far as anybody has told.
    pub fn sleepers(&self) -> impl Iterator<Item = &Managed> {
        self.sleepers.values()
    }

    /// All of its threads, also those that sleep.
    pub fn all_threads(&self) -> impl Iterator<Item = &Managed> {
        self.threads.iter().chain(self.sleepers.values())
    }

    /// Those of its processes that are known and there.
    pub fn processes(&mut self) -> Vec<Tid> {
        if let Some(cgroup) = &self.cgroup {
            return cgroup.processes();
        }
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

    fn how(&self) -> (Turns, Heirs) {
        (if self.threads.len() > 1 { Turns::RoundRobin } else { Turns::Fifo }, self.heirs)
    }

    /// Brings all threads to `level`. Those that have gone are forgotten. Returns how many could not be moved, because a deadline
    /// thread that waits for them lends them its priority: these are moved by [`Self::move_owed`].
    ///
    /// # Errors
    /// The kernel refuses what it granted before.
    pub fn move_to(&mut self, priorities: Priorities, level: Level) -> Result<u64, Errno> {
        self.set_those(priorities, |thread| {
            if thread.level == level && !thread.is_newborn {
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
        let (turns, _) = self.how();
        self.set_those(priorities, |thread| {
            let is_so = thread.turns == Some(turns) && thread.level == thread.due() && !thread.is_newborn;
            if is_so { None } else { Some(thread.due()) }
        })
    }

    fn set_those(
        &mut self,
        priorities: Priorities,
        to: impl Fn(&mut Managed) -> Option<Level>,
    ) -> Result<u64, Errno> {
        let how = self.how();
        let mut result = Ok(0);
        self.threads.retain_mut(|thread| {
            let Some(level) = to(thread) else { return true };
            match thread.set(priorities, level, how) {
                Ok(()) => {}
                Err(Errno::SRCH) => {
                    self.gone.push(thread.tid);
                    return false;
                }
                Err(priorities::LENT) => result = result.map(|lent| lent + 1),
                Err(errno) => result = Err(errno),
            }
            true
        });
        result
    }

    /// What somebody else has changed of a thread is put back, and counted. Where a cpuset keeps it from where it is bound, it stays. Fails like
    /// [`Self::move_to`].
    pub fn put_back(&mut self, priorities: Priorities, tid: Tid) -> Result<(), Errno> {
        let how = self.how();
        let Some(thread) = self.threads.iter_mut().find(|thread| thread.tid == tid) else { return Ok(()) };
        // The policy first: a deadline thread cannot be bound.
        if thread.is_at_level(priorities, how.1) == Some(false) {
            match thread.set(priorities, thread.level, how) {
                Ok(()) => self.changes.priorities += 1,
                Err(Errno::SRCH | priorities::LENT) => return Ok(()),
                Err(errno) => return Err(errno),
            }
        }
        if !thread.is_where_bound() {
            match bind(tid, thread.bound) {
                Ok(()) => {
                    thread.arrival = Arrival::Awaited;
                    self.changes.processors += 1;
                }
                Err(Errno::INVAL) => thread.bound = NOWHERE,
                // The next look finds it again.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// A thread has gone without having been missed. One that is a member alone ends with that.
    pub fn miss(&mut self, tid: Tid) {
        let is_alone = matches!(self.body, Body::Opaque { scope: Scope::Thread, .. });
        let at = self.threads.iter().position(|thread| thread.tid == tid && !is_alone);
        if let Some(at) = at {
            self.threads.swap_remove(at);
            self.gone.push(tid);
        }
    }

    /// The threads that have gone since the last time, of which somebody may still think that they are its own.
    pub fn take_gone(&mut self) -> impl Iterator<Item = Tid> + '_ {
        self.gone.drain(..)
    }

    /// Binds the threads to `cpu`, that of `place`, if they are bound to another.
    pub fn bind(&mut self, place: usize, cpu: u16) {
        self.place = place;
        for thread in self.threads.iter_mut().filter(|thread| thread.bound != cpu) {
            (thread.bound, thread.arrival) = (cpu, Arrival::Awaited);
            // See `bind`: it is not where it was granted then.
            let _elsewhere = bind(thread.tid, cpu);
        }
    }

    /// The threads have been bound to the place's CPU one by one.
    pub fn is_bound(&mut self, place: usize, cpu: u16) {
        self.place = place;
        self.threads.iter_mut().for_each(|thread| (thread.bound, thread.arrival) = (cpu, Arrival::Awaited));
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

    /// Whether it is an own thread that waits for a lock of the set.
    pub fn is_in_line(&self) -> bool {
        self.sleep_word().is_some_and(|sleep_word| sleep_word.is_in_line())
    }

    /// Whether a thread of it can run that may have been on another CPU than the one to which it is bound, by the kernel's word. Reads a file for each
    /// of a few that were bound since this was asked; the others are asked for later.
    pub fn is_woken_elsewhere(&mut self) -> bool {
        let mut any = false;
        for thread in self.threads.iter_mut().filter(|thread| thread.arrival != Arrival::Seen).take(FEW) {
            let (activity, switches) = proc::activity_and_switches(thread.tid);
            thread.look_for(activity, switches);
            any |= activity == Activity::Runnable;
        }
        any
    }

    /// Whether a thread of it is not where it should be.
    pub fn owes(&self) -> bool {
        self.threads.iter().any(|thread| thread.owed.is_some())
    }

    /// Draws in what order the threads come from now on: threads of one level run in the order in which they were raised. The kernel's time slices alone
    /// do not have them take turns: they end where a tick of its clock finds a thread running, which one that runs for a part of each period may never be.
    /// Who of them sleeps is not known here, so that in an order that only moved on a thread behind sleeping ones would come first more often than others.
    pub fn draw_order(&mut self) {
        for left in (2..=self.threads.len()).rev() {
            // Marsaglia's xorshift, with the shifts 13, 7 and 17.
            self.draw ^= self.draw << 13;
            self.draw ^= self.draw >> 7;
            self.draw ^= self.draw << 17;
            self.threads.swap(left - 1, (self.draw % left as u64) as usize);
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
            Body::Opaque { .. } => self.threads.is_empty() && self.sleepers.is_empty(),
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

    /// The threads of a program that may have a processor, and are nobody's from now on, are ordinary ones before anybody else decides. Whoever gives them
    /// back all that they had may be an ordinary thread, which they would keep from it.
    pub fn come_down(&self) {
        if let Body::Opaque { .. } = self.body {
            // One to which the kernel lends a priority has its own back later, with the rest.
            self.threads
                .iter()
                .for_each(|thread| _ = Ordinary::OTHER.restore(thread.tid.as_raw_nonzero().get()));
        }
    }

    /// Gives its threads back what they had, and all that a command has started. Waits for nobody.
    pub fn restore_threads(&mut self, guardian: &Guardian) {
        match self.heirs {
            Heirs::Alike => self.make_ordinary(),
            Heirs::Ordinary => {
                self.threads.iter().for_each(|thread| guardian.restore(thread.tid));
                if matches!(self.body, Body::Opaque { scope: Scope::Family, .. }) {
                    self.make_ordinary();
                }
            }
        }
    }

    /// What remains to be done of it once its threads have been [restored](Self::restore_threads): nothing of own threads and commands.
    pub fn unbinding(&mut self) -> Option<Unbinding> {
        let processes = self.processes();
        match &self.body {
            Body::Opaque { process, origin, scope: Scope::Process(_), elders } => {
                Some(Unbinding::of_program(*process, processes, Arc::clone(elders), **origin))
            }
            Body::Opaque { process, origin, scope: Scope::Thread, .. } => {
                Some(Unbinding::of_thread(*process, **origin))
            }
            Body::Opaque { scope: Scope::Family, .. } | Body::Own { .. } => None,
        }
    }

    /// Makes all that it has started ordinary threads, also those that have begun since it was last heard of.
    fn make_ordinary(&mut self) {
        let Body::Opaque { process, origin, .. } = &self.body else { return };
        let (process, before) = (*process, origin.before);
        loop {
            let mut known = self.processes();
            known.push(process);
            let mut changed = false;
            for process in proc::families(known, usize::MAX, |_| true) {
                for tid in proc::threads(process, usize::MAX).unwrap_or_default() {
                    let number = tid.as_raw_nonzero().get();
                    if Ordinary::of(tid) == Ok(None) {
                        // One that keeps its priority is not tried for ever.
                        changed |= Ordinary::OTHER.restore(number).is_ok();
                    }
                    // Calls for other ones are refused, so it has none of its own.
                    before.give_to(number);
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Lets a program go on that waits for its first job.
    pub fn set_going(&mut self) {
        if let Some(go) = self.go.take() {
            go.let_go();
            self.wake_all();
        }
    }
}

/// Binds a thread to one CPU. One that has gone, or whose cpuset excludes it, stays as it is: it is then not where it
/// was granted, and the sentinel there takes it for blocked.
pub(crate) fn bind(tid: Tid, cpu: u16) -> Result<(), Errno> {
    let mut set = CpuSet::new();
    set.set(usize::from(cpu));
    sched_setaffinity(Some(tid), &set)
}
