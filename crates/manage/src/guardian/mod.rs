//! The guardian: a process of its own that gives everybody back what they had when the set's process is killed.
//!
//! It is forked before anything is changed, knows the threads from a table in shared memory, and sleeps until the set's process
//! has ended or says that it is in trouble. A killed process has not ended before all its threads have, and its sentinels
//! cannot as long as those whom they granted their processors keep them. So the guardian looks now and then whether the
//! warden, which nobody keeps from ending, is still there.
//!
//! Then it kills the commands that the run had started, lets go whoever is held, moves them back to their cgroups, which it
//! removes, and gives threads their policies and CPUs back: those in its table what they had, those that their programs
//! have created since what their programs had (see [`crate::origin`]). What it cannot give back it says on standard error.

mod table;
mod watch;

use crate::origin::{Mask, Origin};
use crate::priorities::{LENT, Ordinary, Priorities};
use crate::signal_target::SignalTarget;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{PidfdFlags, WaitOptions, getpid, pidfd_open, waitpid};
use std::ffi::c_void;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
pub(crate) use table::HELD_MAX;
pub use table::{PROGRAMS_MAX, THREADS_MAX};
use table::{Table, fits};
use talea_linux::Tid;
use talea_linux::sched::last_errno;
pub(crate) use watch::close_all_but;
use watch::{QUIT, RESTORE, guard};

/// How often, and how far apart, what is owed at the end of a set is tried to be given back.
const OWED_ROUNDS: u32 = 100;
const OWED_PAUSE: Duration = Duration::from_millis(10);

/// The guardian of a run. It ends with this.
pub struct Guardian {
    process: Tid,
    table: *mut Table,
    tell: OwnedFd,
    /// Who could not be given back what it had.
    unrestored: Mutex<Vec<(Tid, Errno)>>,
}

// SAFETY: the table is made of atomics, and mapped until the guardian is dropped.
unsafe impl Send for Guardian {}
// SAFETY: as above.
unsafe impl Sync for Guardian {}

impl Guardian {
    /// Forks the guardian, which knows nobody yet.
    pub fn start(priorities: Priorities) -> Result<Self, Errno> {
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
            0 => unsafe { guard(&*table, process, own.as_raw_fd(), hear.as_raw_fd(), priorities) },
            process => {
                let process = Tid::from_raw(process).expect("a process has a number");
                Ok(Guardian { process, table, tell, unrestored: Mutex::default() })
            }
        }
    }

    fn table(&self) -> &Table {
        // SAFETY: mapped until `self` is dropped, and zeroed memory is a table.
        unsafe { &*self.table }
    }

    /// Notes the thread whose end is that of the set.
    pub fn note_warden(&self, tid: Tid) {
        self.table().warden.store(raw(tid), Ordering::Release);
    }

    /// Forgets it: the set ends in order, and whoever ends it ends its programs. That they have not ended by themselves could
    /// not be told otherwise.
    pub fn dismiss_warden(&self) {
        self.table().warden.store(0, Ordering::Release);
    }

    /// Where that is noted, for others who watch it; 0 before and after.
    pub(crate) fn warden(&self) -> &AtomicI32 {
        &self.table().warden
    }

    /// Notes what to give back to a thread; false if the table is full.
    pub fn note(&self, tid: Tid, before: Ordinary, mask: Mask) -> bool {
        self.table().threads.fill(raw(tid), |entry| entry.note(before, mask))
    }

    /// Whether there is something to give back to a thread of this number.
    pub fn has_note(&self, tid: Tid) -> bool {
        self.table().threads.used().any(|(noted, _)| noted == raw(tid))
    }

    /// Notes what the threads of a program had that it has and will have; false if the table is full.
    pub fn note_program(&self, process: Tid, origin: &Origin) -> bool {
        self.table().programs.fill(raw(process), |entry| entry.note(origin))
    }

    /// Notes a command, and its cgroup if it has one, that is to end with the run; none if the table is full.
    pub(crate) fn note_command(self: &Arc<Self>, leader: Tid, cgroup: Option<&Path>) -> Option<CommandNote> {
        let cgroup = cgroup.map(|folder| folder.as_os_str().as_bytes()).unwrap_or_default();
        let is_noted =
            fits(cgroup) && self.table().commands.fill(raw(leader), |entry| entry.note(raw(leader), cgroup));
        is_noted.then(|| CommandNote { guardian: Arc::clone(self), leader })
    }

    /// Notes who may be held, and the cgroups where it is and where it was if it is held in one; none if the table is full or a
    /// path too long.
    pub(crate) fn note_held(
        self: &Arc<Self>,
        whom: SignalTarget,
        cgroups: Option<(&Path, &Path)>,
    ) -> Option<HeldNote> {
        let paths =
            cgroups.map(|(folder, home)| (folder.as_os_str().as_bytes(), home.as_os_str().as_bytes()));
        if paths.is_some_and(|(folder, home)| !fits(folder) || !fits(home)) {
            return None;
        }
        let is_noted = self.table().held.fill(whom.as_raw(), |entry| {
            assert!(entry.note(paths), "both paths fit");
        });
        is_noted.then(|| HeldNote { guardian: Arc::clone(self), whom })
    }

    /// Gives back to a thread what was noted of it, and forgets it. One that runs with the priority of a deadline thread that waits
    /// for it cannot have it yet, and is left to a later attempt.
    pub fn restore(&self, tid: Tid) {
        for (_, entry) in self.table().threads.used().filter(|(noted, _)| *noted == raw(tid)) {
            match entry.restore(raw(tid)) {
                Ok(()) => {}
                Err(LENT) => return entry.owe(),
                Err(errno) => self.give_up(tid, errno),
            }
        }
        self.table().threads.clear(raw(tid));
    }

    /// Gives back what should have been given back before. Returns who cannot have it yet.
    pub(crate) fn restore_owed(&self) -> impl Iterator<Item = Tid> + '_ {
        let owed = || self.table().threads.used().filter(|(_, entry)| entry.is_owed());
        owed().filter_map(|(tid, _)| Tid::from_raw(tid)).for_each(|tid| self.restore(tid));
        owed().filter_map(|(tid, _)| Tid::from_raw(tid))
    }

    /// The same at the end, with patience for a hundred times ten milliseconds.
    pub fn restore_all_owed(&self) {
        for _ in 0..OWED_ROUNDS {
            if self.restore_owed().next().is_none() {
                return;
            }
            std::thread::sleep(OWED_PAUSE);
        }
        self.restore_owed().for_each(|tid| self.give_up(tid, LENT));
    }

    fn give_up(&self, tid: Tid, errno: Errno) {
        self.unrestored.lock().unwrap_or_else(PoisonError::into_inner).push((tid, errno));
    }

    /// Forgets a program of which nothing is to be given back any more.
    pub fn forget_program(&self, process: Tid) {
        self.table().programs.clear(raw(process));
    }

    /// Who could not be given back what it had, in a sentence; nothing if all could.
    pub fn complaint(&self) -> Option<String> {
        let unrestored = self.unrestored.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, errno) = unrestored.first()?;
        let threads: Vec<String> = unrestored.iter().map(|(tid, _)| tid.to_string()).collect();
        Some(format!(
            "threads that keep their real-time priority: {} ({errno}); `chrt -o -p 0 {first}` takes it away",
            threads.join(", ")
        ))
    }

    /// Forgets a thread that has gone.
    pub fn forget(&self, tid: Tid) {
        self.table().threads.clear(raw(tid));
    }

    /// Forgets threads that have gone without anybody having noticed.
    pub fn sweep(&self) {
        for (tid, _) in self.table().threads.used() {
            if let Some(thread) = Tid::from_raw(tid)
                && Ordinary::of(thread) == Err(Errno::SRCH)
            {
                self.table().threads.clear(tid);
            }
        }
    }

    /// Whether it still watches.
    pub fn is_alive(&self) -> bool {
        matches!(waitpid(Some(self.process), WaitOptions::NOHANG), Ok(None))
    }

    /// Its process, for those who look.
    pub(crate) fn process(&self) -> u32 {
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

/// That the guardian knows of somebody who may be held, for as long as this lives.
pub(crate) struct HeldNote {
    guardian: Arc<Guardian>,
    whom: SignalTarget,
}

impl Drop for HeldNote {
    fn drop(&mut self) {
        self.guardian.table().held.clear(self.whom.as_raw());
    }
}

/// That the guardian knows of a command that is to end with the run, for as long as this lives.
pub(crate) struct CommandNote {
    guardian: Arc<Guardian>,
    leader: Tid,
}

impl Drop for CommandNote {
    fn drop(&mut self) {
        self.guardian.table().commands.clear(raw(self.leader));
    }
}

fn raw(tid: Tid) -> i32 {
    tid.as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_held_again_needs_no_more_room_and_gives_it_back() {
        let guardian = Arc::new(Guardian::start(Priorities::default()).unwrap());
        let whom = |number: usize| SignalTarget::Process(Tid::from_raw(4_000_000 + number as i32).unwrap());
        let note = |number| guardian.note_held(whom(number), None);
        for _ in 0..3 * HELD_MAX {
            drop(note(0).expect("there is room"));
        }
        let notes: Vec<HeldNote> = (0..HELD_MAX).map(|number| note(number).expect("room")).collect();
        assert!(note(HELD_MAX).is_none(), "all are in use");
        drop(note(7).expect("known already"));
        drop(note(HELD_MAX).expect("one has been given up"));
        drop(notes);
        let long = "x".repeat(500);
        let path = Path::new(&long);
        assert!(guardian.note_held(whom(0), Some((path, path))).is_none(), "a path that does not fit");
    }
}
