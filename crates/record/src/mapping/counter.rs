//! The processor's time-stamp counter, and its number.

/// Whether this processor architecture has a counter that a program can read.
pub(crate) const IS_READABLE: bool = cfg!(target_arch = "x86_64");

/// The counter's value. It counts evenly and alike on all processors where the kernel takes its time from it; the
/// processor may read it a little before or after neighbouring instructions.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn read() -> u64 {
    // SAFETY: every x86-64 processor has the instruction. Linux leaves it to programs unless they give it up
    // themselves (PR_SET_TSC).
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// There is none: time comes from the system.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn read() -> u64 {
    0
}

/// The number of the processor that the calling thread is on, or 65535 if it cannot be known. The C library reads it where the kernel
/// keeps it for each thread (rseq(2)), or asks for it by a way that is no system call.
#[inline]
pub(crate) fn processor() -> u16 {
    // SAFETY: the function reads and returns a number.
    let number = unsafe { libc::sched_getcpu() };
    u16::try_from(number).unwrap_or(u16::MAX)
}
