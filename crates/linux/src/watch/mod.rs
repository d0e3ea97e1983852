//! What the kernel tells of chosen threads, at a fraction of what an event for each switch costs: how much processor time groups of
//! them have had, which group had which processor when, and that they wake up, fork, execute another program or end.
//!
//! ```text
//!   sched_switch ──▶ group that had the processor: time received ──▶ [`ThreadWatch::received`], by reading memory
//!                └─▶ record of the processor, if the group changes ──▶ [`SwitchReader`]
//!   sched_waking ──▶ count ──▶ [`ThreadWatch::wake_ups`]; told if wanted ──┐
//!   fork         ──▶ the child is in its parent's group, before it runs ───┼─▶ [`EventReader`], whose descriptor becomes readable
//!   exec, exit ────────────────────────────────────────────────────────────┘
//! ```
//!
//! Small programs in the kernel ([`crate::bpf`]) do that at its tracepoints. Time is exact to the switch, wherever a thread runs, also of
//! threads that came and went between two looks. A switch from a thread to another of the same group is not recorded, and takes the
//! programs two look-ups. What is overwritten before it is read is counted, by processor.
//!
//! All threads are named by the numbers of the initial pid namespace, in which the caller has to be.

mod layout;
mod programs;
mod reader;

pub use reader::{EventReader, SwitchReader, Switched};

use crate::bpf::BpfError;
use crate::bpf::map::{Array, Table};
use crate::bpf::program::Attached;
use crate::bpf::ring::Ring;
use crate::clock::MonotonicClock;
use layout::{EVENT_WORDS, FIRST, IDLE, STRANGERS, THREAD_WORDS, count, group, site, switch};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use talea_time::{Clock, Instant, Work};

/// The number of the namespace file of the first pid namespace is part of the kernel's interface.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";
/// So many threads can be in groups.
const THREADS_MAX: usize = 1 << 15;
/// So many groups there can be at a time.
const GROUPS_MAX: usize = 1 << 12;
/// Room for some thousand events that nobody has taken.
const EVENT_BYTES: usize = 1 << 18;
/// How often what is read is read again because it changed meanwhile.
const READ_AGAIN: usize = 64;

/// A group of threads that are accounted for together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group(u32);

/// Who is in a thread's group without being entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// Nobody.
    Nobody = 0,
    /// The threads that it creates in its own process, and theirs.
    Threads = 1,
    /// All threads and processes that it creates, and theirs.
    Everybody = 2,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadEvents(u32);

impl ThreadEvents {
    /// None of them.
    pub const NONE: Self = ThreadEvents(0);
    /// A thread is being woken.
    pub const WOKEN: Self = ThreadEvents(1);
    /// A thread was created that is in the group.
    pub const FORKED: Self = ThreadEvents(2);
    /// A thread's process executes another program.
    pub const EXECUTED: Self = ThreadEvents(4);
    /// A thread is ending.
    pub const EXITING: Self = ThreadEvents(8);

    /// These and those.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        ThreadEvents(self.0 | others.0)
    }

    const fn bits(self) -> u32 {
        self.0
    }
}

/// What happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadEvent {
    /// When.
    pub at: Instant,
    /// In which group.
    pub group: Group,
    /// Which thread.
    pub tid: u32,
    /// Of which process.
    pub pid: u32,
    /// What.
    pub what: ThreadEventKind,
}

/// What happens to threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadEventKind {
    /// It is being woken.
    Woken,
    /// It was created and has not run yet.
    Forked {
        /// The thread that created it.
        by: u32,
    },
    /// Its process executes another program.
    Executed {
        /// The number that the thread had before.
        before: u32,
    },
    /// It is ending, and may run a little longer.
    Exiting,
}

/// What was lost so far. From the first on, what is told is not all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Threads that are in no group for want of room.
    pub threads: u64,
    /// Events that were not told for want of room.
    pub events: u64,
    /// Times that the kernel ran no program, because it was in the middle of the same one.
    pub missed: u64,
}

/// The tables that the programs and this process share.
#[derive(Debug)]
struct Tables {
    threads: Table<[u64; THREAD_WORDS]>,
    groups: Array,
    sites: Array,
    switches: Array,
    events: Ring<EVENT_WORDS>,
    counts: Array,
}

/// Watches threads. Dropping it, and its readers, ends it.
pub struct ThreadWatch {
    tables: Arc<Tables>,
    programs: Vec<Attached>,
    /// Groups that are free, those first that have been for longest: a processor may yet name one that has just been given back.
    free: Mutex<VecDeque<u32>>,
}

impl ThreadWatch {
    /// Begins. The switches on `cpus` are recorded, for the reader; time is counted on all processors.
    ///
    /// # Errors
    /// See [`BpfError`].
    pub fn open(cpus: &[u16]) -> Result<(Self, SwitchReader, EventReader), BpfError> {
        let namespace = std::fs::read_link("/proc/self/ns/pid");
        if namespace.is_ok_and(|name| name.as_os_str() != FIRST_PID_NAMESPACE) {
            return Err(BpfError::PidNamespace);
        }
        let processors = processors().max(cpus.iter().max().map_or(0, |most| usize::from(*most) + 1));
        let tables = Tables {
            threads: Table::new(THREADS_MAX)?,
            groups: Array::new(GROUPS_MAX, group::WORDS)?,
            sites: Array::new(processors, site::WORDS)?,
            switches: Array::new(cpus.len().max(1) * switch::KEPT, switch::WORDS)?,
            events: Ring::new(EVENT_BYTES)?,
            counts: Array::new(1, count::WORDS)?,
        };
        tables.threads.insert(0, [u64::from(IDLE), 0]).map_err(|errno| BpfError::of("a map", errno))?;
        for (place, cpu) in cpus.iter().enumerate() {
            let record = tables.sites.word(usize::from(*cpu), site::RECORD);
            record.store((place * switch::KEPT + 1) as u64, Ordering::Relaxed);
        }
        let programs = programs::attach(&tables)?;
        let tables = Arc::new(tables);
        let watch = ThreadWatch {
            tables: Arc::clone(&tables),
            programs,
            free: Mutex::new((FIRST..GROUPS_MAX as u32).collect()),
        };
        Ok((watch, SwitchReader::new(Arc::clone(&tables), cpus), EventReader::new(tables)))
    }

    /// A new group without threads that has received nothing; `None` if there are too many.
    pub fn group(&self) -> Option<Group> {
        let number = self.free().pop_front()?;
        for word in [group::RECEIVED, group::WAKE_UPS, group::TOLD] {
            self.tables.groups.word(number as usize, word).store(0, Ordering::Relaxed);
        }
        Some(Group(number))
    }

    /// The group is no more. Its threads have been taken out or have ended.
    pub fn release(&self, group: Group) {
        self.tables.groups.word(group.0 as usize, group::TOLD).store(0, Ordering::Relaxed);
        self.free().push_back(group.0);
    }

    fn free(&self) -> std::sync::MutexGuard<'_, VecDeque<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread is in this group from now on, and in no other. Those that it creates are as `inherit` says.
    ///
    /// # Errors
    /// There is no room.
    pub fn enter(&self, tid: u32, group: Group, inherit: Inherit) -> Result<(), Errno> {
        let now = MonotonicClock.now().as_nanos() as u64;
        self.tables.threads.insert(tid, [u64::from(group.0) | ((inherit as u64) << 32), now])
    }

    /// The group that a thread is in.
    pub fn group_of(&self, tid: u32) -> Option<Group> {
        let [entry, _] = self.tables.threads.get(tid)?;
        Some(Group(entry as u32)).filter(|group| group.0 >= FIRST)
    }

    /// The thread is in no group from now on. What it has of a processor now is still counted, up to the next switch.
    pub fn leave(&self, tid: u32) {
        self.tables.threads.remove(tid);
    }

    /// Processor time that the group's threads have had since they were entered, together, up to now. Reads memory, and asks the kernel
    /// of who has a processor and was in no group when it got it.
    pub fn received(&self, group: Group) -> Work {
        let sites = &self.tables.sites;
        let account = self.tables.groups.word(group.0 as usize, group::RECEIVED);
        let changes = || -> u64 {
            (0..sites.values()).map(|site| sites.word(site, site::CHANGES).load(Ordering::SeqCst)).sum()
        };
        let mut sum = 0;
        for _ in 0..READ_AGAIN {
            let before = changes();
            let now = MonotonicClock.now().as_nanos() as u64;
            sum = account.load(Ordering::SeqCst);
            for site in 0..sites.values() {
                let word = |word| sites.word(site, word).load(Ordering::SeqCst);
                let (holder, since) = (word(site::GROUP), word(site::SINCE));
                let from = if holder == u64::from(STRANGERS) {
                    self.entered(word(site::THREAD) as u32, group).map(|entered| entered.max(since))
                } else {
                    Some(since).filter(|_| holder == u64::from(group.0))
                };
                sum += from.map_or(0, |from| now.saturating_sub(from));
            }
            let is_settled = (0..sites.values())
                .all(|site| sites.word(site, site::CHANGES).load(Ordering::SeqCst).is_multiple_of(2));
            if is_settled && changes() == before {
                break;
            }
        }
        Work::from_nanos(sum as i64)
    }

    /// When the thread was entered, if it is in this group.
    fn entered(&self, tid: u32, group: Group) -> Option<u64> {
        let [entry, entered] = self.tables.threads.get(tid)?;
        (entry as u32 == group.0).then_some(entered)
    }

    /// How often threads of the group have been woken.
    pub fn wake_ups(&self, group: Group) -> u64 {
        self.tables.groups.word(group.0 as usize, group::WAKE_UPS).load(Ordering::SeqCst)
    }

    /// These are the events of the group that are told from now on, and no others. A wake-up that is not told has been
    /// [counted](Self::wake_ups) before this returns.
    pub fn tell(&self, group: Group, events: ThreadEvents) {
        self.tables
            .groups
            .word(group.0 as usize, group::TOLD)
            .store(u64::from(events.bits()), Ordering::SeqCst);
    }

    /// What was lost so far, but for switches, which their reader knows of.
    pub fn lost(&self) -> Lost {
        let count = |word| self.tables.counts.word(0, word).load(Ordering::Relaxed);
        Lost {
            threads: count(count::NOT_ENTERED),
            events: count(count::NOT_TOLD),
            missed: self.programs.iter().filter_map(Attached::missed).sum(),
        }
    }
}

impl fmt::Debug for ThreadWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadWatch").field("lost", &self.lost()).finish_non_exhaustive()
    }
}

/// How many numbers of processors there can be.
fn processors() -> usize {
    let possible = crate::setting::read("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = possible.rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map_or_else(present, |last| last + 1)
}

fn present() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// In which group strangers are counted, for readers.
const fn known(group: u32) -> Option<Group> {
    if group == STRANGERS || group == IDLE { None } else { Some(Group(group)) }
}
