//! What all threads of a managed set share, and how any of them has a decision brought about.

use crate::lock::{Guard, PiLock};
use crate::priorities::{self, Heirs, Level, Priorities, Turns};
use crate::state::State;
use crate::unbinding::Unbindings;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use talea_linux::clock::{MonotonicClock, timespec};
use talea_linux::stop::StopFlag;
use talea_linux::{Tid, cpu};
use talea_time::{Clock, Instant};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// How often a sentinel that lowers itself is raised before it is waited for.
const RAISES: usize = 4;

/// A sentinel as the others see it.
pub(crate) struct SentinelState {
    cpu: u16,
    tid: AtomicI32,
    /// AWAKE or ASLEEP. Set to ASLEEP by the sentinel under the lock.
    sleep_state: AtomicU32,
    /// Raises that were begun, and that are over. Where the two agree with what the sentinel saw before it last lowered
    /// itself, it still is in its own place.
    begun: AtomicU64,
    over: AtomicU64,
    /// Raises that had been begun when the sentinel last brought about what others had decided. Written under the lock of the state.
    answered: AtomicU64,
    /// Held by whoever changes the sentinel's level, so that nobody raises one that lowers itself afterwards. A sentinel that
    /// lowers itself is mostly preempted before it can give it back: see [`Shared::call`].
    level: PiLock<()>,
}

pub(crate) struct Shared {
    pub state: PiLock<State>,
    pub priorities: Priorities,
    pub sentinels: Vec<SentinelState>,
    pub timer: OwnedFd,
    pub stop: StopFlag,
    /// Why the set came to an end by itself.
    pub cause: Mutex<Option<String>>,
    /// What remains to be done of programs that have been dismissed.
    pub unbindings: Unbindings,
}

impl SentinelState {
    /// Of the sentinel on `cpu`.
    pub fn new(cpu: u16) -> Self {
        SentinelState {
            cpu,
            tid: AtomicI32::new(0),
            sleep_state: AtomicU32::new(AWAKE),
            begun: AtomicU64::new(0),
            over: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            level: PiLock::new(()),
        }
    }

    pub fn set_thread(&self, tid: Tid) {
        self.tid.store(tid.as_raw_nonzero().get(), Ordering::Release);
    }

    /// The sentinel's word that it is about to sleep, given under the lock.
    pub fn announce_sleep(&self) {
        // By an exchange, as in `wake`: who wakes it before this has his stop seen in `sleep`, and who does so after it sees it asleep.
        self.sleep_state.swap(ASLEEP, Ordering::AcqRel);
    }

    /// Sleeps until somebody is granted the processor, the sentinel is called, or the set has stopped, which is said without the lock.
    pub fn sleep(&self, stop: &StopFlag) {
        while self.sleep_state.load(Ordering::Acquire) == ASLEEP && !stop.is_stopped() {
            match futex::wait(&self.sleep_state, Flags::PRIVATE, ASLEEP, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => panic!("futex wait on a word of our own failed: {errno}"),
            }
        }
    }

    /// Wakes the sentinel if it sleeps.
    pub fn wake(&self) {
        if self.sleep_state.swap(AWAKE, Ordering::AcqRel) == ASLEEP {
            futex::wake(&self.sleep_state, Flags::PRIVATE, 1).expect("waking on a word of our own works");
        }
    }

    /// Lowers the sentinel, which is the caller, unless it was raised again since it knew of `raises` begun. Those that it
    /// knows of have been brought about. Returns whether it did.
    ///
    /// # Errors
    /// The kernel refuses what it granted before.
    pub fn step_down(&self, priorities: Priorities, raises: u64) -> Result<bool, Errno> {
        let _level = self.level.lock();
        if self.raises_begun() != raises {
            return Ok(false);
        }
        match priorities::set_self(priorities, Level::Beside) {
            Ok(()) => Ok(true),
            // A deadline thread waits for `level`, itself or behind others of whom the first does. All who wait for it are about
            // to raise this sentinel, and have said so in `begun`.
            Err(priorities::LENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Raises that were begun so far, if all of them are over.
    pub fn raises_over(&self) -> Option<u64> {
        let over = self.over.load(Ordering::Acquire);
        (self.begun.load(Ordering::Acquire) == over).then_some(over)
    }

    /// The sentinel's word that it has brought about what was decided before so many raises had begun, given under the lock of the state.
    pub fn answer(&self, raises: u64) {
        self.answered.store(raises, Ordering::Release);
    }

    /// Whether somebody has raised the sentinel, and it has not brought about yet what it was raised for.
    fn has_to_answer(&self) -> bool {
        self.answered.load(Ordering::Acquire) != self.raises_begun()
    }

    /// Raises that were begun so far.
    pub fn raises_begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }
}

impl Shared {
    pub fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.is_stopped()
    }

    /// See [`State::is_apart`].
    pub fn is_apart(&self, process: Tid) -> bool {
        self.state.lock_patiently().is_apart(process)
    }

    /// For anybody but sentinels and controllers: tells the hierarchy something, and has what it decides brought about
    /// by sentinels, which are raised for it. If a sentinel's processor is the caller's, it runs before this
    /// returns, unless the caller outranks it.
    pub fn tell<R>(&self, what: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.state.lock();
        let now = self.now();
        let result = what(&mut state, now);
        self.settle_and_call(state, now);
        result
    }

    /// Ends the scheduling point and leaves what has to be done to sentinels, of which that of the caller's processor does it before
    /// this returns, unless the caller outranks it.
    ///
    /// All calls are made under the lock: the caller may be a thread that does not run again for long once somebody is granted its
    /// processor. While it holds the lock, whoever waits for it lends it the priority to go on; so a sentinel that
    /// preempts its caller costs two switches more, and nothing stays undone.
    pub fn settle_and_call(&self, mut state: Guard<'_, State>, now: Instant) {
        self.arm(state.settle(now));
        self.call_others(&state, None);
        drop(state);
        self.give_precedence();
    }

    /// Lets the sentinel of the caller's processor bring about first what it was called for.
    ///
    /// It preempts the caller, but if others got in line for the lock before it, it sleeps until they have had their turn, and the caller
    /// would run on meanwhile. So the caller gets in line, too. Being less urgent, it comes after the sentinel, also after one that
    /// is woken on another CPU first.
    fn give_precedence(&self) {
        let mut unanswered = self.sentinels.iter().filter(|sentinel| sentinel.has_to_answer());
        if unanswered.any(|sentinel| sentinel.cpu == cpu::current()) {
            drop(self.state.lock());
        }
    }

    /// Calls the sentinels of all places but `own` where somebody has to bring a decision about.
    pub fn call_others(&self, state: &State, own: Option<usize>) {
        let others = (0..state.places()).filter(|place| Some(*place) != own);
        others.filter(|place| state.differs(*place)).for_each(|place| self.call(place));
    }

    /// Raises the sentinel of `place` above everybody, so that it brings about what was decided.
    pub fn call(&self, place: usize) {
        let sentinel = &self.sentinels[place];
        let Some(tid) = Tid::from_raw(sentinel.tid.load(Ordering::Acquire)) else { return };
        let priorities = self.priorities;
        sentinel.begun.fetch_add(1, Ordering::AcqRel);
        // The sentinel lives as long as the set. The kernel refuses to raise one that runs with a deadline thread's priority
        // because that waits for a lock of the sentinel's: see [`priorities::LENT`]. With `level` held that lock is neither `level` nor, if
        // the caller has the state, the state; so only at the end of the set a raise can come to nothing, and the warden, which
        // gives everybody their ordinary priorities then, lets the sentinel run.
        let raise = || _ = priorities::set(tid, priorities, Level::Urgent, (Turns::Fifo, Heirs::Ordinary));
        {
            let mut level = sentinel.level.take_free();
            // One that was preempted while it lowered itself runs now, and gives it back. One that is about to lower itself is
            // raised in the next attempt; if it takes longer than that, by whoever needs the caller's lock next.
            for _ in 0..RAISES {
                if level.is_some() {
                    break;
                }
                raise();
                level = sentinel.level.take_free();
            }
            let _level = level.unwrap_or_else(|| sentinel.level.lock());
            raise();
        }
        sentinel.over.fetch_add(1, Ordering::AcqRel);
        sentinel.wake();
    }

    /// Sets the controller's timer to `when`. Under the lock, so that the earliest wins.
    pub fn arm(&self, when: Option<Instant>) {
        let Some(when) = when else { return };
        let mut value = timespec(when);
        if (value.tv_sec, value.tv_nsec) == (0, 0) {
            // Zero would disarm it.
            value.tv_nsec = 1;
        }
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting).expect("our own timer can be set");
    }

    /// Ends the set: everybody leaves their loops.
    pub fn begin_stop(&self, cause: Option<String>) {
        if let Some(cause) = cause {
            let mut first = self.cause.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            first.get_or_insert(cause);
        }
        if self.is_stopping() {
            // Sentinels may have ended by now, and their numbers be others'.
            return;
        }
        self.stop.stop();
        (0..self.sentinels.len()).for_each(|place| self.call(place));
        self.arm(Some(Instant::ZERO));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentinel_that_was_called_for_the_stop_before_it_says_that_it_sleeps_does_not() {
        let (sentinel, stop) = (SentinelState::new(0), StopFlag::new());
        stop.stop();
        sentinel.wake();
        sentinel.announce_sleep();
        sentinel.sleep(&stop);
        assert_eq!(sentinel.sleep_state.load(Ordering::Relaxed), ASLEEP, "nobody would wake it");
    }
}
