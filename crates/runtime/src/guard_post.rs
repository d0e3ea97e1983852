//! The way to the guards of a node, and what its threads share with the release thread that keeps them.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use talea_linux::clock::MonotonicClock;
use talea_linux::ready::{Ready, ReadySet};
use talea_linux::stop::Slept;
use talea_policy::release::guard::Guards;
use talea_ring::bell::{Bell, Waited};
use talea_ring::inbox::Sender;
use talea_time::{Clock, Instant};

/// Nothing has fallen idle since it was looked at.
const NO_IDLE_POINT: i64 = i64::MIN;

/// How the guards of a node are reached.
pub(crate) struct GuardPost {
    sender: Sender,
    summons: Summons,
    /// Whether any guard heeds idle points; else nothing is counted.
    heeds_idle_points: bool,
    /// Released jobs of the node that are unfinished.
    unfinished: AtomicU32,
    /// The latest end of a job so far: who counts last need not have ended last.
    last_end: AtomicI64,
    /// When the count fell to zero last, and the release thread has not seen that yet.
    idle_point: AtomicI64,
    /// Whether anything waits at the guards, so that an idle point is worth a ring.
    is_holding: AtomicBool,
}

/// On what the release thread sleeps.
pub(crate) enum Summons {
    /// On a word.
    Bell(Bell),
    /// On a set of descriptors, where something outside may release tasks of the node.
    Descriptors(ReadySet),
}

impl GuardPost {
    pub fn new(sender: Sender, guards: &Guards, summons: Summons) -> Self {
        GuardPost {
            sender,
            summons,
            heeds_idle_points: guards.heeds_idle_points(),
            unfinished: AtomicU32::new(0),
            last_end: AtomicI64::new(NO_IDLE_POINT),
            idle_point: AtomicI64::new(NO_IDLE_POINT),
            is_holding: AtomicBool::new(false),
        }
    }

    /// Gives the release thread a signalled job, without ringing.
    pub fn push(&self, tag: u32) {
        assert!(self.sender.push(tag).is_ok(), "two signals for the job {tag}");
    }

    /// Tells the release thread that there is something in its inbox, or an idle point.
    pub fn ring(&self) {
        match &self.summons {
            Summons::Bell(bell) => _ = bell.ring(),
            Summons::Descriptors(set) => set.ring(),
        }
    }

    /// The descriptors that release tasks of the node, if something outside may.
    pub fn descriptors(&self) -> Option<&ReadySet> {
        match &self.summons {
            Summons::Bell(_) => None,
            Summons::Descriptors(set) => Some(set),
        }
    }

    /// Sleeps until `until`, a ring, or a descriptor that is ready, whose task `ready` is called with; not if there is something to do.
    pub fn sleep_until(
        &self,
        until: Instant,
        is_there: impl Fn() -> bool,
        ready: impl FnMut(Ready),
    ) -> Slept {
        match &self.summons {
            Summons::Bell(bell) => {
                let until = std::time::Duration::from_nanos(until.as_nanos().max(0).unsigned_abs());
                match bell.wait_until(until, is_there) {
                    Waited::Due => Slept::Due,
                    Waited::HadWork | Waited::Rung => Slept::Stopped,
                }
            }
            // A ring that came before is kept in the descriptor.
            Summons::Descriptors(_) if is_there() => Slept::Stopped,
            Summons::Descriptors(set) => set.wait(MonotonicClock.now(), until, ready),
        }
    }

    /// A job of the node is released.
    #[inline]
    pub fn count_release(&self) {
        if self.heeds_idle_points {
            self.unfinished.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A released job of the node has ended at `now`, before anything that follows it is released. Returns whether that is an idle point for
    /// which something waits, so that the release thread is to be rung for.
    #[inline]
    pub fn count_end(&self, now: Instant) -> bool {
        if !self.heeds_idle_points {
            return false;
        }
        self.last_end.fetch_max(now.as_nanos(), Ordering::SeqCst);
        if self.unfinished.fetch_sub(1, Ordering::SeqCst) != 1 {
            return false;
        }
        // This store and the load behind it, and the release thread's store to the other word and its look at this one, are in the single
        // order of all such operations: one of the two sees the other.
        self.idle_point.store(self.last_end.load(Ordering::SeqCst), Ordering::SeqCst);
        self.is_holding.load(Ordering::SeqCst)
    }

    /// Whether anything waits at the guards. To be said by the release thread before it looks for an idle point and sleeps.
    pub fn set_holding(&self, is_holding: bool) {
        self.is_holding.store(is_holding, Ordering::SeqCst);
    }

    pub fn has_idle_point(&self) -> bool {
        self.idle_point.load(Ordering::SeqCst) != NO_IDLE_POINT
    }

    /// The idle point that has not been seen; if there is none and nothing is unfinished, each instant is one, also `now`.
    pub fn take_idle_point(&self, now: Instant) -> Option<Instant> {
        if !self.heeds_idle_points {
            return None;
        }
        let noted = self.idle_point.swap(NO_IDLE_POINT, Ordering::SeqCst);
        let is_idle = self.unfinished.load(Ordering::SeqCst) == 0;
        (noted != NO_IDLE_POINT).then(|| Instant::from_nanos(noted)).or(is_idle.then_some(now))
    }
}

/// Under modified phase modification, when the timers of a job's predecessors have all expired.
pub(crate) struct Timers {
    /// By tag; empty where no task needs them. Instances of one operation are released in order, so what an earlier instance left behind is
    /// earlier than what comes, and nothing has to be reset.
    expiries: Box<[AtomicI64]>,
}

impl Timers {
    pub fn new(jobs: usize) -> Self {
        Timers { expiries: (0..jobs).map(|_| AtomicI64::new(i64::MIN)).collect() }
    }

    /// The timer of a predecessor of the job expires at `expiry`. To be said before the signal, which publishes it.
    pub fn raise(&self, tag: u32, expiry: Instant) {
        if let Some(of_job) = self.expiries.get(tag as usize) {
            of_job.fetch_max(expiry.as_nanos(), Ordering::Relaxed);
        }
    }

    pub fn expiry(&self, tag: u32) -> Instant {
        let of_job = self.expiries.get(tag as usize);
        Instant::from_nanos(of_job.map_or(i64::MIN, |expiry| expiry.load(Ordering::Relaxed)))
    }
}
