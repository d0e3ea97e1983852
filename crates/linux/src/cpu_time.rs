//! The processor time of another thread of this process, or of another process.

use crate::Tid;
use talea_time::Work;

/// Linux's name for the scheduler's clock (CPUCLOCK_SCHED, 2) of a single thread (4), in the low bits of a
/// dynamic clock id; the bits above hold the complement of the thread id.
const THREAD_SCHED_CLOCK: libc::clockid_t = 6;

/// Linux's name for the scheduler's clock of a whole process.
const PROCESS_SCHED_CLOCK: libc::clockid_t = 2;

/// Processor time that the threads of a process have received since it began, or `None` if there is no such process. A
/// system call.
pub(crate) fn process_cpu_time_of(process: Tid) -> Option<Work> {
    read((!process.as_raw_nonzero().get() << 3) | PROCESS_SCHED_CLOCK)
}

/// Processor time that the thread has received since it began, or `None` if there is no such thread. A
/// system call.
pub fn thread_cpu_time_of(thread: Tid) -> Option<Work> {
    read((!thread.as_raw_nonzero().get() << 3) | THREAD_SCHED_CLOCK)
}

fn read(clock: libc::clockid_t) -> Option<Work> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable for the call; the kernel checks the clock id.
    let code = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (code == 0).then(|| Work::from_nanos(time.tv_sec * 1_000_000_000 + time.tv_nsec))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::thread_cpu_time;

    #[test]
    fn it_reads_the_same_clock_as_the_thread_itself() {
        let before = thread_cpu_time();
        let read = thread_cpu_time_of(rustix::thread::gettid()).expect("this thread exists");
        assert!(before <= read && read <= thread_cpu_time());
    }

    #[test]
    fn a_missing_thread_has_no_clock() {
        assert_eq!(thread_cpu_time_of(Tid::from_raw(4_194_304).expect("not zero")), None);
        assert_eq!(process_cpu_time_of(Tid::from_raw(4_194_304).expect("not zero")), None);
    }

    #[test]
    fn a_process_has_received_what_its_threads_have() {
        let thread = thread_cpu_time();
        let process = process_cpu_time_of(rustix::process::getpid()).expect("this process exists");
        assert!(thread <= process, "{thread} of {process}");
    }
}
