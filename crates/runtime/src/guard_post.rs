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

    /// A job of the node has been released at `now`, and is in no lane yet.
    #[inline]
    pub fn count_release(&self, now: Instant) {
        if !self.heeds_idle_points {
            return;
        }
        self.unfinished.fetch_add(1, Ordering::SeqCst);
        // Whoever ended the last of the others since, on another processor or before the caller went on, did not know of this one.
        let is_behind = |noted| (noted > now.as_nanos()).then_some(NO_IDLE_POINT);
        _ = self.idle_point.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_behind);
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
        let (last, order) = (self.last_end.load(Ordering::SeqCst), Ordering::SeqCst);
        self.idle_point.store(last, order);
        // Likewise whoever releases a job meanwhile: it withdraws the idle point if it was before that, or is seen here.
        let is_idle = self.unfinished.load(order) == 0;
        let stays = is_idle || self.idle_point.compare_exchange(last, NO_IDLE_POINT, order, order).is_err();
        stays && self.is_holding.load(order)
    }

    /// Whether anything waits at the guards. To be said by the release thread before it looks for an idle point and sleeps.
    pub fn set_holding(&self, is_holding: bool) {
        self.is_holding.store(is_holding, Ordering::SeqCst);
    }

    pub fn has_idle_point(&self) -> bool {
        self.idle_point.load(Ordering::SeqCst) != NO_IDLE_POINT
    }

    /// From when to when there have been idle points that have not been seen, up to `now` if nothing is unfinished.
    pub fn take_idle_points(&self, now: Instant) -> Option<(Instant, Instant)> {
        if !self.heeds_idle_points {
            return None;
        }
        let noted = self.idle_point.swap(NO_IDLE_POINT, Ordering::SeqCst);
        let is_idle = self.unfinished.load(Ordering::SeqCst) == 0;
        match (noted != NO_IDLE_POINT).then(|| Instant::from_nanos(noted)) {
            // It may have been noted since the caller read the clock.
            Some(noted) if is_idle => Some((noted, now.max(noted))),
            Some(noted) => Some((noted, noted)),
            None => is_idle.then_some((now, now)),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::{SubtaskBuilder, Synchronisation, System, TaskBuilder};
    use talea_policy::release::bounds::ResponseBounds;
    use talea_ring::inbox::Links;
    use talea_time::{Duration, Work};

    fn at(ns: i64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn post() -> GuardPost {
        let step = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_nanos(1));
        let chain = TaskBuilder::new("chain", Duration::from_nanos(100))
            .sync(Synchronisation::ReleaseGuardIdle)
            .subtask(step("first"))
            .subtask(step("second"));
        let system = System::builder("post").node("one", [0]).task(chain).build().expect("a system");
        let bounds = ResponseBounds::of(&system).expect("none is needed");
        let (sender, _) = Links::new(1).inbox();
        GuardPost::new(sender, &Guards::of_node(&system, 0, &bounds), Summons::Bell(Bell::new()))
    }

    #[test]
    fn idle_points_last_from_the_last_end_until_now() {
        let post = post();
        assert_eq!(post.take_idle_points(at(5)), Some((at(5), at(5))));
        post.count_release(at(6));
        assert_eq!(post.take_idle_points(at(7)), None);
        post.count_end(at(10));
        assert_eq!(post.take_idle_points(at(12)), Some((at(10), at(12))));
        post.count_release(at(13));
        post.count_end(at(14));
        post.count_release(at(14));
        assert_eq!(
            post.take_idle_points(at(15)),
            Some((at(14), at(14))),
            "what is released then does not matter"
        );
    }

    /// A thread has released a job, and before it says so a job on another processor ends, the last that was known.
    #[test]
    fn a_release_that_is_counted_late_withdraws_the_idle_point_behind_it() {
        let post = post();
        post.count_release(at(5));
        post.count_end(at(10));
        post.count_release(at(9));
        assert_eq!(post.take_idle_points(at(11)), None);
        post.count_end(at(12));
        assert_eq!(post.take_idle_points(at(12)), Some((at(12), at(12))));
    }
}
