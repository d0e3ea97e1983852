//! The controller: timers of the schedulers, and wake-ups that the kernel tells.
//!
//! It is one thread for the whole set, bound to no CPU, under a small reservation of the kernel (SCHED_DEADLINE) where that is
//! permitted: below a thread that spins with real-time priority, the kernel's own server of ordinary threads can keep a
//! FIFO thread from running for 50 ms a second, a reserved one not. It outranks everybody whom it raises, so it
//! brings decisions about itself.

use crate::shared::Shared;
use crate::state::Caller;
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// What a descriptor that is ready means.
pub(crate) const TIMER: u64 = 0;
pub(crate) const WAKEUPS: u64 = 1;

/// Events that are taken at a time.
const AT_A_TIME: usize = 16;

pub(crate) struct Controller<'a> {
    pub shared: &'a Shared,
    pub poll: &'a OwnedFd,
}

impl Controller<'_> {
    /// Until the set stops.
    pub fn run(self) {
        let mut ready = Vec::with_capacity(AT_A_TIME);
        while !self.shared.is_stopping() {
            ready.clear();
            match epoll::wait(self.poll, rustix::buffer::spare_capacity(&mut ready), None) {
                Ok(_) => self.turn(&ready),
                Err(Errno::INTR) => {}
                Err(errno) => panic!("waiting for the timer failed: {errno}"),
            }
        }
    }

    fn turn(&self, ready: &[epoll::Event]) {
        let timer_is_due = ready.iter().any(|event| event.data.u64() == TIMER);
        if timer_is_due {
            let mut count = [0; 8];
            // The timer may have been set anew in between; then it is not due any more.
            let _not_due = rustix::io::read(&self.shared.timer, &mut count);
        }
        // Wake-ups are heard of with each decision.
        let mut state = self.shared.state.lock();
        let now = self.shared.now();
        if timer_is_due {
            state.armed = None;
        }
        self.shared.arm(state.settle(now));
        loop {
            for place in 0..state.places() {
                if state.differs(place) {
                    let _nothing = state.bring(place, Caller::Above, now);
                    self.shared.sentinels[place].wake();
                }
            }
            if !std::mem::take(&mut state.recheck) {
                break;
            }
            self.shared.arm(state.settle(now));
        }
        let is_over = state.run.as_ref().is_some_and(|run| run.is_over());
        drop(state);
        if is_over {
            // At once, and not when the ordinary thread that waits for it gets a processor.
            self.shared.begin_stop(None);
        }
    }
}
