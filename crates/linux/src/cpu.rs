//! The CPU a thread runs on.

/// The CPU on which the calling thread is at this moment; it may be another one at the next. Read
/// from the thread's registered area or the vDSO: no system call.
#[inline]
pub fn current() -> u16 {
    u16::try_from(rustix::thread::sched_getcpu()).expect("Linux numbers CPUs below 65536")
}
