//! What remains to be done of programs that nobody schedules any more.

use crate::beginning::{Beginning, Beginnings};
use crate::guardian::Guardian;
use crate::origin::Origin;
use rustix::process::getpid;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use talea_linux::Tid;
use talea_linux::proc;

/// How often, and how far apart, whoever does it to its end tries what is not known yet: longer than anybody is [waited for](Beginning::Overdue).
const ROUNDS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Of a program, of which all threads that were taken in have what they had: those that they have created and that nobody has taken in are to run
/// where they could.
pub struct Unbinding {
    /// The program; none if it was a thread alone, of which later ones are not its own.
    program: Option<Tid>,
    processes: Vec<Tid>,
    origin: Origin,
}

impl Unbinding {
    /// Of a program with these processes, itself among them or not.
    pub fn of_program(program: Tid, mut processes: Vec<Tid>, origin: Origin) -> Self {
        processes.push(program);
        Unbinding { program: Some(program), processes, origin }
    }

    /// Of a thread of this process: those that have just begun.
    pub fn of_thread(process: Tid, origin: Origin) -> Self {
        Unbinding { program: None, processes: vec![process], origin }
    }

    /// Does what can be done at once, without processes that are scheduled by themselves. Whether that was all.
    pub fn go_on(&self, beginnings: &Beginnings, is_apart: impl Fn(Tid) -> bool) -> bool {
        let is_its = |process: &Tid| self.program == Some(*process) || !is_apart(*process);
        let known = self.processes.iter().copied().filter(is_its).collect();
        let families = proc::families(known, usize::MAX, |child| child != getpid() && !is_apart(child));
        let threads =
            families.into_iter().flat_map(|process| proc::threads(process, usize::MAX).unwrap_or_default());
        let beginning = |tid| -> Option<Beginning> { beginnings.of(tid) };
        threads.fold(true, |is_done, tid| {
            let number = tid.as_raw_nonzero().get();
            is_done
                & match self.program {
                    _ if is_apart(tid) => true,
                    Some(_) => self.origin.unbind(number, beginning),
                    None => self.origin.unbind_young(number, beginning),
                }
        })
    }

    /// Does it to its end. Those whom anybody keeps from running in the middle of an exec are not waited for longer than a second.
    pub fn finish(&self, beginnings: &Beginnings, is_apart: impl Fn(Tid) -> bool) {
        for _ in 0..ROUNDS {
            if self.go_on(beginnings, &is_apart) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// What has been begun and could not be done at once.
#[derive(Default)]
pub(crate) struct Unbindings(Mutex<Vec<Unbinding>>);

impl Unbindings {
    /// Begins another. Waits for nobody.
    pub fn begin(&self, unbinding: Unbinding, guardian: &Guardian, is_apart: impl Fn(Tid) -> bool) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.push(unbinding);
        go_on(&mut pending, &Beginnings::default(), guardian, is_apart);
    }

    /// Does of them what can be done, unless somebody else is about it.
    pub fn go_on(&self, beginnings: &Beginnings, guardian: &Guardian, is_apart: impl Fn(Tid) -> bool) {
        if let Ok(mut pending) = self.0.try_lock() {
            go_on(&mut pending, beginnings, guardian, is_apart);
        }
    }

    /// Does them and others to their ends: before any of them is bound again, and at the end of the set.
    pub fn finish(
        &self,
        others: impl IntoIterator<Item = Unbinding>,
        guardian: &Guardian,
        is_apart: impl Fn(Tid) -> bool,
    ) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let beginnings = Beginnings::default();
        for unbinding in pending.drain(..).chain(others) {
            unbinding.finish(&beginnings, &is_apart);
            forget(&unbinding, guardian);
        }
    }
}

fn go_on(
    pending: &mut Vec<Unbinding>,
    beginnings: &Beginnings,
    guardian: &Guardian,
    is_apart: impl Fn(Tid) -> bool,
) {
    let done = pending.extract_if(.., |unbinding| unbinding.go_on(beginnings, &is_apart));
    done.for_each(|unbinding| forget(&unbinding, guardian));
}

fn forget(unbinding: &Unbinding, guardian: &Guardian) {
    unbinding.program.iter().for_each(|program| guardian.forget_program(*program));
}
