//! The guardian: a process of its own that gives everybody back what they had when the set's process is killed.
//!
//! It is forked before anything is changed, knows the threads from a table in shared memory, and sleeps until the set's process
//! has ended or says that it is in trouble. A killed process has not ended before all its threads have, and its sentinels
//! cannot as long as those whom they granted their processors keep them. So the guardian looks now and then whether the
//! warden, which nobody keeps from ending, is still there. A process forked from one with several threads may make async-signal-safe
//! calls alone, so this is all that it does: no allocation, no lock, no panic.

use super::bands::{Bands, Level, Ordinary};
use super::hold::Whom;
use crate::sys::Tid;
use crate::sys::sched::last_errno;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, WaitOptions, getpid, pidfd_open, waitpid};
use std::ffi::c_void;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering};

/// Threads that fit the table.
pub(crate) const THREADS_MAX: usize = 1024;
/// Held processes and groups that fit the table.
pub(crate) const HELD_MAX: usize = 128;
const PATH_MAX: usize = 256;
/// A CPU mask of 1024 CPUs, as the C library's.
const MASK_WORDS: usize = 16;
/// How often it goes over the table, with a pause between: a thread may just be on its way into a table or a state.
const ROUNDS: u32 = 3;
const PAUSE_NS: i64 = 20_000_000;

/// How often it looks for the warden.
const LOOK_MS: i32 = 50;

const QUIT: u8 = b'q';
const RESTORE: u8 = b'r';

struct ThreadEntry {
    /// 0: free. Written last.
    tid: AtomicI32,
    policy: AtomicI32,
    mask: [AtomicU64; MASK_WORDS],
}

struct HeldEntry {
    /// As [`Whom::as_raw`]; 0: free. Written last.
    whom: AtomicI32,
    /// Where to thaw it, ended by 0; empty if it is held by a signal.
    path: [AtomicU8; PATH_MAX],
}

/// All zeroes is the empty table.
struct Table {
    /// The warden's thread; 0 before there is one, and nothing to give back.
    warden: AtomicI32,
    threads: [ThreadEntry; THREADS_MAX],
    held: [HeldEntry; HELD_MAX],
}

pub(crate) struct Guardian {
    process: Tid,
    table: *mut Table,
    tell: OwnedFd,
}

// SAFETY: the table is made of atomics, and mapped until the guardian is dropped.
unsafe impl Send for Guardian {}
// SAFETY: as above.
unsafe impl Sync for Guardian {}

impl Guardian {
    /// Forks the guardian, which knows nobody yet.
    pub fn start(bands: Bands) -> Result<Self, Errno> {
        let process = getpid();
        let own = pidfd_open(process, PidfdFlags::empty())?;
        let (hear, tell) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let table = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                size_of::<Table>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )
        }?;
        let table = table.cast::<Table>();
        // SAFETY: the child makes async-signal-safe calls alone and never returns.
        match unsafe { libc::fork() } {
            -1 => {
                let errno = last_errno();
                // SAFETY: mapped above and used by nobody.
                let _leaked = unsafe { munmap(table.cast::<c_void>(), size_of::<Table>()) };
                Err(errno)
            }
            // SAFETY: zeroed memory is an empty table, which stays mapped in the child.
            0 => unsafe { guard(&*table, process, own.as_raw_fd(), hear.as_raw_fd(), bands) },
            process => {
                Ok(Guardian { process: Tid::from_raw(process).expect("a process has a number"), table, tell })
            }
        }
    }

    fn table(&self) -> &Table {
        // SAFETY: mapped until `self` is dropped, and zeroed memory is a table.
        unsafe { &*self.table }
    }

    /// Notes the thread whose end is that of the set.
    pub fn note_warden(&self, tid: Tid) {
        self.table().warden.store(tid.as_raw_nonzero().get(), Ordering::Release);
    }

    /// Notes what to give back to a thread; false if the table is full.
    pub fn note(&self, tid: Tid, before: Ordinary) -> bool {
        let tid = tid.as_raw_nonzero().get();
        let Some(entry) = self.table().threads.iter().find(|entry| entry.tid.load(Ordering::Acquire) == 0)
        else {
            return false;
        };
        let mut mask = [0_u64; MASK_WORDS];
        // SAFETY: the mask is writable for the size that is passed along.
        let length = unsafe {
            libc::sched_getaffinity(tid, size_of_val(&mask), mask.as_mut_ptr().cast::<libc::cpu_set_t>())
        };
        if length != 0 {
            mask = [u64::MAX; MASK_WORDS];
        }
        entry.policy.store(before.number(), Ordering::Relaxed);
        entry.mask.iter().zip(mask).for_each(|(to, from)| to.store(from, Ordering::Relaxed));
        entry.tid.store(tid, Ordering::Release);
        true
    }

    /// Notes who may be held; false if the table is full or the path too long.
    pub fn note_held(&self, whom: Whom, freezer: Option<&Path>) -> bool {
        let path = freezer.map_or(&[][..], |path| path.as_os_str().as_bytes());
        let free = self.table().held.iter().find(|entry| entry.whom.load(Ordering::Acquire) == 0);
        let Some(entry) = free.filter(|_| path.len() < PATH_MAX) else { return false };
        let ended = path.iter().copied().chain([0]);
        entry.path.iter().zip(ended).for_each(|(to, from)| to.store(from, Ordering::Relaxed));
        entry.whom.store(whom.as_raw(), Ordering::Release);
        true
    }

    /// Gives back to a thread what was noted of it, and forgets it.
    pub fn restore(&self, tid: Tid) {
        let tid = tid.as_raw_nonzero().get();
        for entry in self.table().threads.iter().filter(|entry| entry.tid.load(Ordering::Acquire) == tid) {
            restore_thread(entry, tid);
            entry.tid.store(0, Ordering::Release);
        }
    }

    /// Forgets a thread or process that has gone.
    pub fn forget(&self, tid: Tid) {
        let tid = tid.as_raw_nonzero().get();
        let table = self.table();
        let forget = |number: &AtomicI32, gone| {
            let _another = number.compare_exchange(gone, 0, Ordering::AcqRel, Ordering::Relaxed);
        };
        table.threads.iter().for_each(|entry| forget(&entry.tid, tid));
        for entry in &table.held {
            forget(&entry.whom, tid);
            forget(&entry.whom, -tid);
        }
    }

    /// Forgets threads that have gone without anybody having noticed.
    pub fn sweep(&self) {
        for entry in &self.table().threads {
            let tid = entry.tid.load(Ordering::Acquire);
            if let Some(thread) = Tid::from_raw(tid)
                && Ordinary::of(thread) == Err(Errno::SRCH)
            {
                entry.tid.store(0, Ordering::Release);
            }
        }
    }

    /// Whether it still watches.
    pub fn is_alive(&self) -> bool {
        matches!(waitpid(Some(self.process), WaitOptions::NOHANG), Ok(None))
    }

    /// Its process, for those who look.
    pub fn process(&self) -> u32 {
        self.process.as_raw_nonzero().get() as u32
    }

    /// Has everything given back now: the set's own threads are in trouble. It ends then.
    pub fn alarm(&self) {
        let _ended = rustix::io::write(&self.tell, &[RESTORE]);
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        let _ended = rustix::io::write(&self.tell, &[QUIT]);
        while matches!(waitpid(Some(self.process), WaitOptions::empty()), Err(Errno::INTR)) {}
        // SAFETY: mapped in `start`; no reference outlives `self`.
        let _leaked = unsafe { munmap(self.table.cast::<c_void>(), size_of::<Table>()) };
    }
}

/// The guardian's life.
///
/// # Safety
/// Only in a process just forked; the descriptors are its copies.
unsafe fn guard(table: &Table, process: Tid, watched: i32, hear: i32, bands: Bands) -> ! {
    let mut polled = [
        libc::pollfd { fd: watched, events: libc::POLLIN, revents: 0 },
        libc::pollfd { fd: hear, events: libc::POLLIN, revents: 0 },
    ];
    // SAFETY: async-signal-safe calls with live arguments.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"talea-guardian".as_ptr());
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        let (low, high) = (watched.min(hear) as u32, watched.max(hear) as u32);
        for (first, last) in [(0, low.wrapping_sub(1)), (low + 1, high - 1), (high + 1, u32::MAX)] {
            if first <= last && !(first == 0 && low == 0) {
                libc::syscall(libc::SYS_close_range, first, last, 0);
            }
        }
        let priority = libc::sched_param { sched_priority: bands.priority(Level::Urgent).into() };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority);
        loop {
            libc::poll(polled.as_mut_ptr(), 2, LOOK_MS);
            let mut word = 0_u8;
            let told = polled[1].revents != 0 && libc::read(hear, (&raw mut word).cast(), 1) == 1;
            if told && word == QUIT {
                libc::_exit(0);
            }
            let warden = table.warden.load(Ordering::Acquire);
            let is_gone = warden != 0
                && libc::syscall(libc::SYS_tgkill, process.as_raw_nonzero().get(), warden, 0) != 0;
            if is_gone || polled[0].revents != 0 || polled[1].revents != 0 {
                restore_all(table);
                libc::_exit(0);
            }
        }
    }
}

fn restore_all(table: &Table) {
    for _ in 0..ROUNDS {
        for entry in &table.held {
            match entry.whom.load(Ordering::Acquire) {
                0 => {}
                whom => let_go(whom, &entry.path),
            }
        }
        for entry in &table.threads {
            match entry.tid.load(Ordering::Acquire) {
                0 => {}
                tid => restore_thread(entry, tid),
            }
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS };
        // SAFETY: the time is live for the call.
        unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
    }
}

/// Async-signal-safe.
fn restore_thread(entry: &ThreadEntry, tid: i32) {
    Ordinary::from_number(entry.policy.load(Ordering::Relaxed)).restore(tid);
    let mut mask = [0_u64; MASK_WORDS];
    mask.iter_mut().zip(&entry.mask).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
    // SAFETY: the mask is live and as long as it is said to be; the kernel only reads it.
    unsafe { libc::sched_setaffinity(tid, size_of_val(&mask), mask.as_ptr().cast::<libc::cpu_set_t>()) };
}

/// Async-signal-safe.
fn let_go(whom: i32, path: &[AtomicU8; PATH_MAX]) {
    let mut text = [0_u8; PATH_MAX + 1];
    text.iter_mut().zip(path).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
    // SAFETY: the text is live and ends with a zero; the calls take numbers besides.
    unsafe {
        if text[0] == 0 {
            libc::kill(whom, libc::SIGCONT);
            return;
        }
        let file = libc::open(text.as_ptr().cast(), libc::O_WRONLY);
        if file >= 0 {
            libc::write(file, b"0".as_ptr().cast(), 1);
            libc::close(file);
        }
    }
}
