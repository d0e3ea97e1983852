//! The guardian's life, in a process forked from one with several threads: async-signal-safe calls alone, no allocation, no
//! lock, no panic. Standard error stays open, for what cannot be given back.

use super::table::Table;
use crate::priorities::{LENT, Level, Priorities};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use talea_linux::Tid;
use talea_linux::signal_safe::{Text, fork_alone};

/// How often it goes over the table, with a pause between: a thread may just be on its way into a table or a state.
const ROUNDS: u32 = 3;
/// Rounds after which it gives up on cgroups that cannot be removed yet, because who was killed in them is still there, and on threads
/// to which the kernel lends a priority.
const ROUNDS_MAX: u32 = 50;
const PAUSE_NS: i64 = 20_000_000;

/// How often it looks for the warden.
const LOOK_MS: i32 = 50;

pub(super) const QUIT: u8 = b'q';
pub(super) const RESTORE: u8 = b'r';

/// The guardian's life.
///
/// # Safety
/// Only in a process just forked; the descriptors are its copies.
pub(super) unsafe fn guard(
    table: &Table,
    process: Tid,
    watched: i32,
    hear: i32,
    priorities: Priorities,
) -> ! {
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
        close_all_but([libc::STDERR_FILENO, watched, hear]);
        let priority = libc::sched_param { sched_priority: priorities.priority(Level::Urgent).into() };
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

/// Closes all other descriptors, in a process just forked, which uses none of them. Async-signal-safe.
pub(crate) fn close_all_but(mut kept: [i32; 3]) {
    kept.sort_unstable();
    let mut first = 0_u32;
    for kept in kept.map(|kept| kept as u32).into_iter().chain([u32::MAX]) {
        if first < kept {
            // SAFETY: nobody uses them in this process.
            unsafe { libc::syscall(libc::SYS_close_range, first, kept - 1, 0) };
        }
        first = first.max(kept.saturating_add(1));
    }
}

/// The run's own commands end with it; everybody else goes on as before, and nothing of what was made for them is left.
fn restore_all(table: &Table) {
    table.commands.used().for_each(|(_, command)| command.kill_cgroup());
    table.commands.used().for_each(|(leader, command)| in_a_child_process(|| command.kill_group(leader)));
    for round in 1..=ROUNDS_MAX {
        let mut is_clear = all_children_have_ended();
        for (whom, held) in table.held.used() {
            is_clear &= held.let_go(whom);
        }
        for (tid, thread) in table.threads.used() {
            match (thread.restore(tid), round) {
                // Not yet.
                (Err(LENT), 1..ROUNDS_MAX) => is_clear = false,
                (Err(errno), ROUNDS | ROUNDS_MAX) => complain(tid, errno),
                _ => {}
            }
        }
        if is_clear && round >= ROUNDS {
            break;
        }
        pause();
    }
    // Last, for they may wait for somebody who is kept from running by others. A thread that was just beginning is there the second time.
    for _ in 0..2 {
        table.programs.used().for_each(|(process, program)| program.origin().unbind_all(process));
        pause();
    }
}

fn pause() {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: PAUSE_NS };
    // SAFETY: the time is live for the call.
    unsafe { libc::nanosleep(&raw const pause, std::ptr::null_mut()) };
}

/// Does what may wait for one command until another that keeps it from running is killed, in a process of its own.
fn in_a_child_process(what: impl FnOnce()) {
    match fork_alone() {
        0 => {
            what();
            // SAFETY: nothing is left to be done.
            unsafe { libc::_exit(0) };
        }
        1.. => {}
        // No room.
        _ => what(),
    }
}

fn all_children_have_ended() -> bool {
    loop {
        // SAFETY: nothing is written.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            1.. => {}
            0 => return false,
            _ => return true,
        }
    }
}

/// Says on standard error, if anybody reads it, who could not be given back what it had.
fn complain(tid: i32, errno: Errno) {
    let text = Text::<192>::empty().with(b"talea-guardian: thread ").with_number(tid);
    let text = text.with(b" keeps its real-time priority (error ").with_number(errno.raw_os_error());
    let text = text.with(b"); `chrt -o -p 0 ").with_number(tid).with(b"` takes it away\n");
    let bytes = text.bytes();
    // SAFETY: the bytes are live.
    let _unheard = unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
}
