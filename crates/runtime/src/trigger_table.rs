//! What the threads of a process share about tasks that are released otherwise than by a period.

use rustix::io::ioctl_fionread;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of the arrivals of a task with a trigger, while the run lasts. One thread at a time brings arrivals about: that of
/// the one operation whose values do, the release thread, or the one of the program that has the trigger. Only events may be pushed by several
/// threads at once, of which each has a number of its own then.
#[derive(Debug, Default)]
pub(crate) struct Triggering {
    /// Values so far that count.
    pub values: AtomicU64,
    /// The number of the next instance.
    pub next: AtomicU64,
    /// Whether something outside was given: nothing is drawn then.
    pub is_driven: AtomicBool,
    /// That, if it is a descriptor.
    pub descriptor: OnceLock<OwnedFd>,
    /// Whether that has ended: its other side has closed it, and all has been read.
    has_ended: AtomicBool,
}

impl Triggering {
    /// Something outside is given, which nothing was before. Returns whether that is so.
    pub fn drive(&self) -> bool {
        !self.is_driven.swap(true, Ordering::Relaxed)
    }

    /// The descriptor, if there is one to wait for.
    pub fn open_descriptor(&self) -> Option<&OwnedFd> {
        self.descriptor.get().filter(|_| !self.has_ended())
    }

    /// The other side has closed the descriptor. It has ended if nothing is left to be read; else that comes first.
    pub fn note_hang_up(&self) {
        let Some(descriptor) = self.descriptor.get() else { return };
        if ioctl_fionread(descriptor) == Ok(0) {
            self.has_ended.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it had a descriptor, and that has ended.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    pub fn take_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}
