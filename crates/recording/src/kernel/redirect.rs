//! Many perf events into one buffer, and filters: what the perf library does not offer.
//!
//! All events of a processor must share a buffer, so that their order is the kernel's and locked memory does
//! not grow with their number.

use perf_event::Counter;
use rustix::io;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, ioctl};
use std::os::fd::{AsRawFd, BorrowedFd};

/// `PERF_EVENT_IOC_SET_OUTPUT`, which is `_IO('$', 5)`.
const SET_OUTPUT: Opcode = rustix::ioctl::opcode::none(b'$', 5);

/// The most text the kernel takes as a filter, with the NUL at its end.
const FILTER_BYTES: usize = 4096;
/// `PERF_EVENT_IOC_SET_FILTER`, which is `_IOW('$', 6, char *)`.
const SET_FILTER: Opcode = rustix::ioctl::opcode::write::<*const u8>(b'$', 6);

/// Lets the tracepoint `event` tell only what satisfies `expression`, which the kernel takes once per event.
pub(super) fn filter(event: &Counter, expression: &str) -> io::Result<()> {
    let mut text = [0_u8; FILTER_BYTES];
    let room = text[..FILTER_BYTES - 1].get_mut(..expression.len()).ok_or(io::Errno::TOOBIG)?;
    room.copy_from_slice(expression.as_bytes());
    // SAFETY: the opcode takes the address of text that ends with a NUL, which the array does, and copies it.
    unsafe { ioctl(descriptor(event), Setter::<SET_FILTER, [u8; FILTER_BYTES]>::new(text)) }
}

/// Lets `event` write into the buffer of `ring` from now on.
pub(super) fn redirect(event: &Counter, ring: &impl AsRawFd) -> io::Result<()> {
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
