//! What the threads of a process share about tasks that are released otherwise than by a period.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread, retry_on_intr};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use talea_operation::{ChannelTask, NotRead};

/// What is known of the arrivals of a task with a trigger, while the run lasts. One thread at a time brings arrivals about: that of
/// the one operation whose values do, the release thread, or the one of the program that has the trigger. Only events may be pushed by several
/// threads at once, of which each has a number of its own then.
#[derive(Default)]
pub(crate) struct Triggering {
    /// Values so far that count.
    pub values: AtomicU64,
    /// The number of the next instance.
    pub next: AtomicU64,
    /// One more than the instance that was released last, by the first subtasks of this process; 0 before the first.
    released: Box<[AtomicU64]>,
    /// The instance about which the nodes of this process decided last whether it is left out, and what: twice its number and 2, and one
    /// more if so; by the first subtask that stands for its node.
    decided: Box<[AtomicU64]>,
    /// The channel whose events release the task, if one's do and it is known.
    pub channel: OnceLock<Box<dyn ChannelTask>>,
    /// Whether something outside was given: nothing is drawn then.
    pub is_driven: AtomicBool,
    /// That, if it is a descriptor.
    pub descriptor: OnceLock<OwnedFd>,
    /// First subtasks of the instance that it released last which have not ended. It is not looked at before they have.
    unfinished: AtomicU32,
    /// Whether it has ended, and its task been released for that: its other side has closed it, and all has been read.
    has_ended: AtomicBool,
}

impl Triggering {
    /// Of a task with so many first subtasks in this process.
    pub fn new(firsts: usize) -> Self {
        let each = || (0..firsts).map(|_| AtomicU64::new(0)).collect();
        Triggering { released: each(), decided: each(), ..Triggering::default() }
    }

    /// Whether the node decided to leave the instance out, if it has decided; by the place of the first subtask that stands for it.
    pub fn decided(&self, lead: usize, instance: u64) -> Option<bool> {
        let decided = self.decided[lead].load(Ordering::Relaxed);
        (decided >> 1 == instance + 1).then_some(decided & 1 == 1)
    }

    /// The node decides.
    pub fn decide(&self, lead: usize, instance: u64, is_left_out: bool) {
        self.decided[lead].store(((instance + 1) << 1) | u64::from(is_left_out), Ordering::Relaxed);
    }

    /// The instance of the first subtask at this place is released.
    pub fn set_released(&self, place: usize, instance: u64) {
        self.released[place].store(instance + 1, Ordering::Relaxed);
    }

    /// The instance of the first subtask at this place that was released last before this one.
    pub fn released_before(&self, place: usize, instance: u64) -> Option<u64> {
        let last = self.released[place].load(Ordering::Relaxed).checked_sub(1)?;
        (last < instance).then_some(last)
    }

    /// Something outside is given, which nothing was before. Returns whether that is so.
    pub fn drive(&self) -> bool {
        !self.is_driven.swap(true, Ordering::Relaxed)
    }

    /// The descriptor, if there is one to wait for.
    pub fn open_descriptor(&self) -> Option<&OwnedFd> {
        self.descriptor.get().filter(|_| !self.has_ended())
    }

    /// The descriptor is ready: it releases an instance of so many first subtasks, or tries to. If the other side has closed it and nothing is
    /// left to be read, that is for its end. What cannot say how much is left, as a terminal that is gone, has nothing.
    pub fn begin_ready(&self, firsts: usize, is_hung_up: bool) {
        let Some(descriptor) = self.descriptor.get() else { return };
        self.unfinished.store(firsts as u32, Ordering::Relaxed);
        let is_empty = || ioctl_fionread(descriptor).unwrap_or(0) == 0;
        self.has_ended.store(is_hung_up && is_empty(), Ordering::Relaxed);
    }

    /// Reads of the descriptor, if there is one, without waiting.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize, NotRead> {
        const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let descriptor = self.descriptor.get().ok_or(NotRead::NoDescriptor)?;
        let failed = |error: Errno| match error {
            Errno::AGAIN => NotRead::Nothing,
            error => NotRead::Failed(error.raw_os_error()),
        };
        // It may be one that waits, and something may have been there that was not as the kernel saw when it came to read it.
        let mut ready = [PollFd::new(descriptor, PollFlags::IN)];
        match retry_on_intr(|| poll(&mut ready, Some(&NO_TIME))).map_err(failed)? {
            0 => Err(NotRead::Nothing),
            _ => retry_on_intr(|| rustix::io::read(descriptor, &mut *buffer)).map_err(failed),
        }
    }

    /// One first subtask of an instance has ended. Returns whether its descriptor, if there is one, is to be looked at again.
    pub fn count_end(&self) -> bool {
        self.open_descriptor().is_some() && self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The instance is not released, so the operation has not seen what the descriptor was ready for, not even its end.
    pub fn undo_ready(&self) {
        self.has_ended.store(false, Ordering::Relaxed);
    }

    /// Whether it had a descriptor, and that has ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    pub fn take_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}
