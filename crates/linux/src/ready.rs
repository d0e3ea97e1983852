//! Waiting for an instant, a ring, or descriptors that become ready, whichever comes first.

use crate::stop::Slept;
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::Timespec;
use talea_time::{Duration, Instant};

/// The number of the ring among those of descriptors.
const RING: u64 = u64::MAX;
/// Nobody writes any more to what the descriptor reads.
const HANG_UP: epoll::EventFlags = epoll::EventFlags::HUP.union(epoll::EventFlags::RDHUP);

/// A descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its number.
    pub number: u32,
    /// Whether the other side has closed it. What was written before can still be read.
    pub is_hung_up: bool,
}

/// The descriptors that one thread waits for, and a ring for what else it is to be woken for. A descriptor is looked at once, and not again
/// before it is [armed](ReadySet::arm).
#[derive(Debug)]
pub struct ReadySet {
    poll: OwnedFd,
    ring: OwnedFd,
}

impl ReadySet {
    /// Without descriptors.
    ///
    /// # Errors
    /// The system has no room for two more descriptors.
    pub fn new() -> Result<Self, Errno> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let ring = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&poll, &ring, epoll::EventData::new_u64(RING), epoll::EventFlags::IN)?;
        Ok(ReadySet { poll, ring })
    }

    /// Adds a descriptor, by whose number it is known when it is ready. Nobody waits for it before it is armed.
    ///
    /// # Errors
    /// It cannot be polled, as files cannot, or is closed.
    pub fn add(&self, descriptor: impl AsFd, number: u32) -> Result<(), Errno> {
        let data = epoll::EventData::new_u64(number.into());
        epoll::add(&self.poll, descriptor, data, epoll::EventFlags::ONESHOT)
    }

    /// From now on the descriptor is waited for, once.
    ///
    /// # Errors
    /// It is closed.
    pub fn arm(&self, descriptor: impl AsFd, number: u32) -> Result<(), Errno> {
        let events = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ONESHOT;
        epoll::modify(&self.poll, descriptor, epoll::EventData::new_u64(number.into()), events)
    }

    /// Wakes the thread that waits.
    pub fn ring(&self) {
        // It can only be full, and then it rings.
        let _ = rustix::io::write(&self.ring, &1u64.to_ne_bytes());
    }

    /// Sleeps until `until` on CLOCK_MONOTONIC, a ring or a ready descriptor; `now` is the current instant. Calls `ready` for each
    /// descriptor that is.
    pub fn wait(&self, now: Instant, until: Instant, mut ready: impl FnMut(Ready)) -> Slept {
        let left = (until - now).max(Duration::ZERO);
        let timeout =
            Timespec { tv_sec: left.as_nanos() / 1_000_000_000, tv_nsec: left.as_nanos() % 1_000_000_000 };
        // Without an end no timer has to be set.
        let timeout = (until < Instant::MAX).then_some(&timeout);
        let mut events = [const { std::mem::MaybeUninit::uninit() }; 16];
        let found = match epoll::wait(&self.poll, &mut events, timeout) {
            Ok((found, _)) => found,
            Err(Errno::INTR) => return Slept::Stopped,
            Err(error) => panic!("waiting for descriptors of our own failed: {error}"),
        };
        if found.is_empty() {
            return Slept::Due;
        }
        for event in found {
            match event.data.u64() {
                RING => {
                    let _ = rustix::io::read(&self.ring, &mut [0u8; 8]);
                }
                number => {
                    let flags = event.flags;
                    ready(Ready { number: number as u32, is_hung_up: flags.intersects(HANG_UP) });
                }
            }
        }
        Slept::Stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MonotonicClock;
    use talea_time::Clock;

    fn wait(set: &ReadySet, ms: i64) -> (Slept, Vec<(u32, bool)>) {
        let (now, mut ready) = (MonotonicClock.now(), Vec::new());
        let slept = set
            .wait(now, now + Duration::from_millis(ms), |found| ready.push((found.number, found.is_hung_up)));
        (slept, ready)
    }

    /// Not at ticks of a millisecond. A machine that is busy wakes late now and then, and not every time.
    #[test]
    fn it_wakes_between_milliseconds() {
        let set = ReadySet::new().unwrap();
        let slept = || {
            let now = MonotonicClock.now();
            assert_eq!(set.wait(now, now + Duration::from_micros(100), |_| ()), Slept::Due);
            MonotonicClock.now() - now
        };
        let least = (0..500).map(|_| slept()).min().unwrap();
        assert!((Duration::from_micros(100)..Duration::from_micros(900)).contains(&least), "{least}");
    }

    #[test]
    fn a_descriptor_is_told_of_once_for_each_time_that_it_is_armed() {
        let set = ReadySet::new().unwrap();
        let pipe = rustix::pipe::pipe().unwrap();
        set.add(&pipe.0, 7).unwrap();
        rustix::io::write(&pipe.1, b"x").unwrap();
        assert_eq!(wait(&set, 0), (Slept::Due, vec![]), "nobody waits for it");
        set.arm(&pipe.0, 7).unwrap();
        assert_eq!(wait(&set, 10_000), (Slept::Stopped, vec![(7, false)]));
        assert_eq!(wait(&set, 0), (Slept::Due, vec![]));
        set.arm(&pipe.0, 7).unwrap();
        assert_eq!(
            wait(&set, 10_000),
            (Slept::Stopped, vec![(7, false)]),
            "what was not read is there still"
        );
    }

    #[test]
    fn what_the_other_side_has_closed_is_ready_and_hung_up() {
        let set = ReadySet::new().unwrap();
        let pipe = rustix::pipe::pipe().unwrap();
        let (own, other) = std::os::unix::net::UnixStream::pair().unwrap();
        drop(pipe.1);
        other.shutdown(std::net::Shutdown::Write).unwrap();
        set.add(&pipe.0, 1).unwrap();
        set.add(&own, 2).unwrap();
        for (descriptor, number) in [(pipe.0.as_fd(), 1), (own.as_fd(), 2)] {
            set.arm(descriptor, number).unwrap();
            assert_eq!(wait(&set, 10_000), (Slept::Stopped, vec![(number, true)]));
        }
    }

    #[test]
    fn a_ring_is_heard_though_it_came_before() {
        let set = ReadySet::new().unwrap();
        set.ring();
        set.ring();
        assert_eq!(wait(&set, 10_000), (Slept::Stopped, vec![]));
        assert_eq!(wait(&set, 0), (Slept::Due, vec![]));
    }

    #[test]
    fn what_cannot_be_polled_is_refused() {
        let set = ReadySet::new().unwrap();
        assert!(set.add(std::fs::File::open("/proc/self/exe").unwrap(), 0).is_err());
    }
}
