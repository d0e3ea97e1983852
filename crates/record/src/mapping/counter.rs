//! The processor's time-stamp counter.

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
