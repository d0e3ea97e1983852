//! Many perf events into one buffer: the one thing the perf library does not offer.
//!
//! All events of a processor must share a buffer, so that their order is the kernel's and locked memory does
//! not grow with their number.

use perf_event::{Counter, Sampler};
use rustix::io;
use rustix::ioctl::{IntegerSetter, Opcode, ioctl};
use std::os::fd::{AsRawFd, BorrowedFd};

/// `PERF_EVENT_IOC_SET_OUTPUT`, which is `_IO('$', 5)`.
const SET_OUTPUT: Opcode = rustix::ioctl::opcode::none(b'$', 5);

/// Lets `event` write into the buffer of `ring` from now on.
pub(super) fn redirect(event: &Counter, ring: &Sampler) -> io::Result<()> {
    let number = ring.as_raw_fd() as usize;
    // SAFETY: the opcode takes the number of a perf event's descriptor by value and touches no memory of this
    // process; `ring` lives during the call, so that the number is its own.
    unsafe { ioctl(descriptor(event), IntegerSetter::<SET_OUTPUT>::new_usize(number)) }
}

/// The event's descriptor, which becomes readable when its buffer is filled up to the watermark.
pub(super) fn descriptor(event: &Counter) -> BorrowedFd<'_> {
    // SAFETY: the event owns its descriptor and outlives the borrow.
    unsafe { BorrowedFd::borrow_raw(event.as_raw_fd()) }
}
