//! The keeper's life, in a process forked from one with several threads: async-signal-safe calls alone, no allocation, no lock, no panic.

use super::region::{FAILED, GO, READY, Region, Request, Slot, ask, text};
use crate::origin::Mask;
use std::sync::atomic::{AtomicI32, Ordering};
use talea_linux::Tid;
use talea_linux::cgroup::KILL;
use talea_linux::sched::last_errno;
use talea_linux::seccomp::Filter;
use talea_linux::signal_safe::{Text, children_of, remove_folder, write_to};

/// How often it looks whether the process that it serves is in trouble, and for orphans that have ended.
const LOOK_MS: i32 = 50;
/// How long it tries to end what it has started, in rounds of a millisecond.
const ROUNDS: u32 = 1_000;
const PAUSE_NS: i64 = 1_000_000;
/// Bytes on the way to a file in a cgroup.
const FILE_MAX: usize = super::region::PATH_MAX + 32;

/// All that a keeper knows.
pub(super) struct Keeper<'a> {
    pub region: &'a Region,
    pub filter: &'a Filter,
    /// The process that it serves, and a descriptor of it.
    pub process: Tid,
    pub watched: i32,
    /// Where it is asked and answers.
    pub socket: i32,
    /// A thread without which that process is ending; 0 before there is one.
    pub warden: &'a AtomicI32,
}

impl Keeper<'_> {
    /// Until the other end of the socket is closed, or the process has ended.
    ///
    /// # Safety
    /// Only in a process just forked.
    pub unsafe fn live(&self) -> ! {
        // SAFETY: async-signal-safe calls with live arguments.
        unsafe {
            libc::setsid();
            libc::prctl(libc::PR_SET_NAME, super::NAME.as_ptr());
            // Orphans of what it starts become its own children.
            libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
            // Never a real-time one: where it waits in the kernel for those that it ends, which may be parked on its processor, it would keep
            // them from ending.
            let ordinary = libc::sched_param { sched_priority: 0 };
            libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const ordinary);
        }
        Mask::ALL.give_to(0);
        let mut polled = [
            libc::pollfd { fd: self.watched, events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: self.socket, events: libc::POLLIN, revents: 0 },
        ];
        loop {
            // SAFETY: the descriptors are its copies.
            unsafe { libc::poll(polled.as_mut_ptr(), 2, LOOK_MS) };
            let is_ending = polled[0].revents != 0 || !self.warden_is_there();
            let mut word = 0_u8;
            let told = !is_ending && polled[1].revents != 0;
            // SAFETY: the word is writable.
            let read = if told { unsafe { libc::read(self.socket, (&raw mut word).cast(), 1) } } else { 1 };
            if is_ending || read != 1 {
                self.end_all();
                self.remove_cpuset();
                // SAFETY: nothing is left to be done.
                unsafe { libc::_exit(0) };
            }
            if told {
                self.serve(word);
                // SAFETY: as above.
                let _unheard = unsafe { libc::write(self.socket, (&raw const word).cast(), 1) };
            }
            self.reap_orphans();
        }
    }

    fn warden_is_there(&self) -> bool {
        let warden = self.warden.load(Ordering::Acquire);
        let process = self.process.as_raw_nonzero().get();
        // SAFETY: the call takes numbers.
        warden == 0 || unsafe { libc::syscall(libc::SYS_tgkill, process, warden, 0) } == 0
    }

    fn serve(&self, word: u8) {
        // SAFETY: whoever asks has written it before, and waits for the answer.
        let request = unsafe { *self.region.request.get() };
        match word {
            ask::START => self.start(&request),
            ask::END => self.end(&self.region.slots[request.slot]),
            ask::END_ALL => self.end_all(),
            _ => {}
        }
    }

    /// Starts a program in its cgroup, where it waits until it is let go.
    fn start(&self, request: &Request) {
        let slot = &self.region.slots[request.slot];
        let keeper = own_number();
        let folder = slot.folder();
        let has_cgroup = !folder.bytes().is_empty();
        let cgroup = if has_cgroup { open_folder(&folder) } else { -1 };
        let mut process = clone_into(cgroup);
        if process < 0 && cgroup >= 0 {
            // Outside, and known to be.
            slot.set_folder(b"");
            process = clone_into(-1);
        }
        if process == 0 {
            // SAFETY: in a process just forked.
            unsafe { become_program(self.region, request, self.filter, keeper) }
        }
        if cgroup >= 0 {
            // SAFETY: it was opened here.
            unsafe { libc::close(cgroup) };
        }
        match process {
            1.. => slot.process.store(process, Ordering::Release),
            _ => {
                slot.errno.store(last_errno().raw_os_error(), Ordering::Relaxed);
                slot.process.store(0, Ordering::Release);
            }
        }
    }

    /// Ends a program with all that is in its cgroup or group.
    fn end(&self, slot: &Slot) {
        self.kill(slot);
        for _ in 0..ROUNDS {
            self.reap_orphans();
            if reap(slot) && remove_cgroup(slot) {
                return;
            }
            pause();
        }
    }

    /// Ends all programs, and whatever they have started, wherever it has gone: orphans are the keeper's own children, so what is ended from
    /// the top down comes to it bit by bit.
    fn end_all(&self) {
        let used = || self.region.slots.iter().filter(|slot| !slot.is_free());
        used().for_each(|slot| self.kill(slot));
        for _ in 0..ROUNDS {
            let own = own_number();
            let mut left = false;
            children_of(own, own, |child| {
                left = true;
                // SAFETY: the call takes numbers.
                unsafe { libc::kill(child, libc::SIGKILL) };
            });
            let all_are = used().fold(true, |all, slot| (reap(slot) && remove_cgroup(slot)) & all);
            self.reap_orphans();
            if !left && all_are {
                return;
            }
            pause();
        }
    }

    /// Notes whether the program had ended, and kills what there is.
    fn kill(&self, slot: &Slot) {
        let process = slot.process.load(Ordering::Acquire);
        if process == 0 {
            return;
        }
        // SAFETY: the information is writable; all zeroes means that nobody has ended.
        let had_ended = unsafe {
            let mut told: libc::siginfo_t = std::mem::zeroed();
            let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, process as libc::id_t, &raw mut told, how) == 0
                && told.si_pid() == process
        };
        slot.had_ended.store(u8::from(had_ended), Ordering::Relaxed);
        if !slot.folder().bytes().is_empty() {
            write_to(&slot.folder().with(b"/").with(KILL.as_bytes()), b"1");
        }
        // SAFETY: the calls take numbers. The process has not been reaped, so that its number and its group's are its own.
        unsafe {
            libc::kill(-process, libc::SIGKILL);
            libc::kill(process, libc::SIGKILL);
        }
    }

    /// What has lost its parent and ended would keep its number for ever. The programs themselves keep theirs until their end is asked for.
    fn reap_orphans(&self) {
        let own = own_number();
        children_of(own, own, |child| {
            let is_program = |slot: &Slot| slot.process.load(Ordering::Acquire) == child;
            if !self.region.slots.iter().any(is_program) {
                // SAFETY: nothing is written.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), libc::WNOHANG) };
            }
        });
    }

    fn remove_cpuset(&self) {
        let folder = text::<FILE_MAX>(&self.region.cpuset);
        if !folder.bytes().is_empty() {
            remove_folder(&folder);
        }
    }
}

fn own_number() -> i32 {
    // SAFETY: the call takes nothing.
    unsafe { libc::getpid() }
}

fn pause() {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS };
    // SAFETY: the time is live for the call.
    unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
}

/// Waits for a program that was killed. True if it is not there any more.
fn reap(slot: &Slot) -> bool {
    let process = slot.process.load(Ordering::Acquire);
    if process == 0 {
        return true;
    }
    let mut status = 0;
    // SAFETY: the status is writable.
    let reaped = unsafe { libc::waitpid(process, &raw mut status, libc::WNOHANG) };
    if reaped == 0 {
        return false;
    }
    slot.status.store(status, Ordering::Relaxed);
    slot.process.store(0, Ordering::Release);
    true
}

/// True if it is not there any more.
fn remove_cgroup(slot: &Slot) -> bool {
    let folder = slot.folder();
    let is_gone = folder.bytes().is_empty() || remove_folder(&folder);
    if is_gone {
        slot.set_folder(b"");
    }
    is_gone
}

fn open_folder<const N: usize>(path: &Text<N>) -> i32 {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the path is live and ends with a zero.
    unsafe { libc::open(path.bytes().as_ptr().cast(), flags) }
}

/// A new process, in this cgroup of version 2 if it is one. Returns like `fork`.
fn clone_into(cgroup: i32) -> i32 {
    /// `struct clone_args` up to the cgroup.
    #[repr(C)]
    #[derive(Default)]
    struct Arguments {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
        set_tid: u64,
        set_tid_size: u64,
        cgroup: u64,
    }
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let mut arguments = Arguments { exit_signal: libc::SIGCHLD as u64, ..Arguments::default() };
    if cgroup >= 0 {
        (arguments.flags, arguments.cgroup) = (CLONE_INTO_CGROUP, cgroup as u64);
    }
    // SAFETY: the caller has one thread, and the child makes async-signal-safe calls alone.
    unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<Arguments>()) as i32 }
}

/// In the new process: waits until it is let go, then executes the program.
///
/// # Safety
/// Only in a process just forked, which shares the region with those that forked it.
unsafe fn become_program(region: &Region, request: &Request, filter: &Filter, keeper: i32) -> ! {
    let slot = &region.slots[request.slot];
    // SAFETY: async-signal-safe calls with live arguments; what the request points to is in the region.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != keeper {
            libc::_exit(127);
        }
        libc::setpgid(0, 0);
        let Some(request) = region.with_own_text(request) else { fail(slot) };
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if null != libc::STDIN_FILENO {
            libc::dup2(null, libc::STDIN_FILENO);
        } else {
            libc::fcntl(null, libc::F_SETFD, 0);
        }
        libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
        if !request.directory.is_null() && libc::chdir(request.directory) != 0 {
            fail(slot);
        }
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        match request.filtered.then(|| filter.install()) {
            Some(Ok(listener)) => slot.listener.store(listener, Ordering::Relaxed),
            Some(Err(errno)) => slot.errno.store(errno, Ordering::Relaxed),
            None => {}
        }
        slot.word.store(READY, Ordering::Release);
        wake(slot);
        while slot.word.load(Ordering::Acquire) != GO {
            libc::syscall(
                libc::SYS_futex,
                slot.word.as_ptr(),
                libc::FUTEX_WAIT,
                READY,
                std::ptr::null::<u8>(),
            );
        }
        libc::execvpe(request.program, request.arguments, request.environment);
        fail(slot);
    }
}

/// Says why a program has not begun, and ends.
fn fail(slot: &Slot) -> ! {
    slot.errno.store(last_errno().raw_os_error(), Ordering::Relaxed);
    slot.word.store(FAILED, Ordering::Release);
    wake(slot);
    // SAFETY: nothing is left to be done.
    unsafe { libc::_exit(127) }
}

fn wake(slot: &Slot) {
    // SAFETY: the word is shared by the processes that map the region.
    unsafe { libc::syscall(libc::SYS_futex, slot.word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
