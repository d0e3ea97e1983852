//! What own threads and their wakers call.

use crate::lock::Guard;
use crate::shared::Shared;
use crate::sleep_word::{Notified, SleepEnd, SleepWord};
use crate::state::State;
use rustix::thread::sched_yield;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_policy::job::Job;
use talea_record::JobId;
use talea_time::Instant;

/// How [`Handle::block`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// Somebody woke the thread, and it has been granted a processor.
    Woken,
    /// The set has ended: the thread is an ordinary one again and is expected to return.
    Ended,
}

/// A managed thread's own end.
pub struct Handle {
    shared: Arc<Shared>,
    sleep_word: Arc<SleepWord>,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>, sleep_word: Arc<SleepWord>) -> Self {
        Handle { shared, sleep_word }
    }

    /// Blocks until a waker's next call, or not at all if there was one since the last time.
    pub fn block(&self) -> Blocked {
        match self.sleep_word.block() {
            SleepEnd::Woken => Blocked::Woken,
            SleepEnd::Ended => Blocked::Ended,
            // The hierarchy is told that one job has ended and the next begins, for which the thread has not slept.
            SleepEnd::AtOnce => {
                self.shared.tell(|state, now| state.follow(self.sleep_word.member, now));
                Blocked::Woken
            }
        }
    }

    /// Blocks until a waker's next call unless `has_work`, which is asked after wake-ups so far have been taken back: whoever
    /// publishes work and then wakes is either seen or wakes the sleeper.
    pub fn block_unless(&self, has_work: impl Fn() -> bool) -> Blocked {
        match self.sleep_word.block_unless(has_work) {
            SleepEnd::Woken | SleepEnd::AtOnce => Blocked::Woken,
            SleepEnd::Ended => Blocked::Ended,
        }
    }

    /// The thread, which serves a lane, is about to begin `job`, which schedulers that guarantee single jobs hear of before. Returns whether
    /// others may have run meanwhile, and released what comes first now: while they heard of it, or while the thread waited for its processor.
    /// Those who heard of another job then have granted the processor for that one, and must not hear of this one instead.
    pub fn offer_in_lane(&self, job: &Job) -> bool {
        if !self.sleep_word.offers_jobs.load(Ordering::Relaxed) {
            return false;
        }
        let Some(mut state) = self.lock_unless_displaced() else {
            drop(self.lock_in_turn());
            return true;
        };
        let now = self.shared.now();
        let is_told = state.offer(self.sleep_word.member, *job, now);
        if is_told {
            self.shared.settle_and_call(state, now);
        }
        is_told
    }

    /// Waits until the thread, which serves a lane, has its turn, in which it may begin a job.
    pub fn turn(&self) -> LaneTurn<'_> {
        LaneTurn { handle: self, state: self.lock_in_turn() }
    }

    /// The same for a job that the thread has `offered`. None if the choice `is_outdated` by then: others had their turn meanwhile.
    pub fn turn_for(&self, offered: Option<&Job>, is_outdated: impl Fn() -> bool) -> Option<LaneTurn<'_>> {
        loop {
            let mut turn = self.turn();
            if is_outdated() {
                return None;
            }
            // Another one may have been released and offered since.
            let offers = self.sleep_word.offers_jobs.load(Ordering::Relaxed);
            let Some(offered) = offered.filter(|_| offers) else { return Some(turn) };
            let now = self.shared.now();
            if !turn.state.offer(self.sleep_word.member, *offered, now) {
                return Some(turn);
            }
            self.shared.settle_and_call(turn.state, now);
        }
    }

    /// The job that it began has ended. `record` is called with the instant, between two decisions; with none if the run was over before: of the
    /// decisions since then nothing is recorded, so nobody would know whether the job had a processor.
    pub fn end_in_lane<R>(&self, record: impl FnOnce(Option<Instant>) -> R) -> R {
        let mut state = self.lock_in_turn();
        let is_over = state.run.as_ref().is_some_and(|run| run.is_over());
        let recorded = record((!is_over).then(|| self.shared.now()));
        state.end_in_lane(self.sleep_word.member);
        recorded
    }

    /// Calls `act` with the instant, between two decisions, while the thread has its turn. It must not block, nor ask anything of the set.
    pub fn in_turn<R>(&self, act: impl FnOnce(Instant) -> R) -> R {
        let _state = self.lock_in_turn();
        act(self.shared.now())
    }

    /// The lock, to say that a job begins or has ended. A thread that lost its processor while it waited for the lock is lent it for as long as it
    /// has the lock; its job begins or ends when the processor is its own again.
    fn lock_in_turn(&self) -> Guard<'_, State> {
        loop {
            if let Some(state) = self.lock_unless_displaced() {
                return state;
            }
            // While its processor is left to ordinary threads it is one of them.
            sched_yield();
        }
    }

    /// The lock, unless the thread has [lost its processor](State::is_displaced). Of one that blocked and goes on already the hierarchy hears by
    /// this, if nobody has told it yet.
    fn lock_unless_displaced(&self) -> Option<Guard<'_, State>> {
        let (shared, member) = (&self.shared, self.sleep_word.member);
        let mut state = shared.state.lock();
        if state.is_waiting(member) && !state.ended {
            let now = shared.now();
            state.request(member, now);
            shared.settle_and_call(state, now);
            state = shared.state.lock();
        }
        (!state.is_displaced(member)).then_some(state)
    }

    /// The job that has arrived and is not done, of a thread that has a part in a run; waits for one. None once the set has
    /// ended.
    pub fn next_job(&self) -> Option<u64> {
        while !self.is_ended() {
            let current = self.shared.state.lock().current_job(self.sleep_word.member);
            match current {
                Some(number) => return Some(number),
                None => _ = self.block(),
            }
        }
        None
    }

    /// That job is done.
    pub fn end_job(&self) {
        let mut state = self.lock_in_turn();
        let now = self.shared.now();
        state.complete(self.sleep_word.member, now);
        self.shared.settle_and_call(state, now);
    }

    /// Whether the set has ended: a thread that never blocks looks now and then.
    pub fn is_ended(&self) -> bool {
        self.sleep_word.is_ended()
    }

    /// What wakes this thread.
    pub fn waker(&self) -> Waker {
        Waker { shared: Arc::clone(&self.shared), sleep_word: Arc::clone(&self.sleep_word) }
    }
}

/// While a lane's thread has it, between two decisions, nobody else of the set is let run.
pub struct LaneTurn<'a> {
    handle: &'a Handle,
    state: Guard<'a, State>,
}

impl LaneTurn<'_> {
    /// The lane begins `job`. `record` is called with the instant and whether the thread has a processor: one that runs on an idle processor
    /// without having been granted it does not.
    pub fn begin(mut self, job: JobId, record: impl FnOnce(Instant, bool)) {
        let has_processor = self.state.begin_in_lane(self.handle.sleep_word.member, job);
        record(self.handle.shared.now(), has_processor);
    }
}

/// Wakes one managed thread, from any thread of the process.
#[derive(Clone)]
pub struct Waker {
    shared: Arc<Shared>,
    sleep_word: Arc<SleepWord>,
}

impl Waker {
    pub(crate) fn new(shared: Arc<Shared>, sleep_word: Arc<SleepWord>) -> Self {
        Waker { shared, sleep_word }
    }

    /// Ends the thread's block, this one or the next. Several calls before it blocks are one. If the thread is granted the
    /// caller's processor, it runs before this returns, unless the caller is as urgent as the set's [highest
    /// priority](crate::Priorities::highest).
    pub fn wake(&self) {
        self.wake_with(None);
    }

    /// The same, for a job with a deadline, by which lanes and servers order their threads.
    pub fn wake_for(&self, job: Job) {
        self.wake_with(Some(job));
    }

    /// Ends the block of a thread that serves a lane. If it sleeps, the schedulers above it hear that it is for this job; and also if it has yet
    /// to begin another one that this one `precedes`, where they hear of each.
    pub fn wake_lane_for(
        &self,
        job: impl FnOnce() -> Job,
        precedes: impl FnOnce(&Job, &Job, Instant) -> bool,
    ) {
        let member = self.sleep_word.member;
        match self.sleep_word.notify() {
            Notified::Sleeper => {
                let job = job();
                self.shared.tell(|state, now| {
                    state.offer_to_sleeper(member, job);
                    state.notified(member, now);
                });
            }
            Notified::Later if self.sleep_word.offers_jobs.load(Ordering::Relaxed) => {
                let job = job();
                let mut state = self.shared.state.lock();
                let now = self.shared.now();
                if state.offer_before(member, job, |offered| precedes(&job, offered, now), now) {
                    self.shared.settle_and_call(state, now);
                }
            }
            Notified::Later | Notified::Ended => {}
        }
    }

    fn wake_with(&self, job: Option<Job>) {
        if let Some(job) = job {
            let mut state = self.shared.state.lock();
            // The place of one that has left may be another's.
            if let Some(Some(member)) = state.members.get_mut(self.sleep_word.member as usize)
                && member.sleep_word().is_some_and(|sleep_word| Arc::ptr_eq(sleep_word, &self.sleep_word))
            {
                member.job = Some(job);
            }
        }
        if self.sleep_word.notify() == Notified::Sleeper {
            self.shared.tell(|state, now| state.notified(self.sleep_word.member, now));
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl fmt::Debug for LaneTurn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneTurn").finish_non_exhaustive()
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").finish_non_exhaustive()
    }
}
