//! What remains to be done of programs that nobody schedules any more: threads that were created while their program was bound, and never taken in, are
//! bound still, and are to run where they could.

use crate::beginning::{Beginning, Beginnings};
use crate::guardian::Guardian;
use crate::origin::Origin;
use rustix::process::getpid;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use talea_linux::Tid;
use talea_linux::proc;

/// How often, and how far apart, threads of which the kernel tells nothing are tried before they are judged by where they are bound.
const ROUNDS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);
/// How often is looked for threads: one that was just beginning is there the second time.
const SEARCHES: u32 = 2;
/// Threads of a program that the warden tries at a time.
const MOST: usize = 64;

/// A program of which all threads that were taken in have what they had.
pub struct Unbinding {
    /// None if it was a thread alone, of which later ones are not its own.
    program: Option<Tid>,
    /// Where is looked for its threads.
    processes: Vec<Tid>,
    /// Children that it had before it was bound, and that are not its own.
    elders: Arc<HashSet<Tid>>,
    origin: Origin,
    searches: u32,
    /// Threads that are bound as its own were, and of which is not known yet whether they began meanwhile.
    doubtful: VecDeque<Tid>,
}

impl Unbinding {
    /// Of a program with these processes, itself among them or not, and with those elder children that are not its own.
    pub fn of_program(
        program: Tid,
        mut processes: Vec<Tid>,
        elders: Arc<HashSet<Tid>>,
        origin: Origin,
    ) -> Self {
        processes.push(program);
        let (searches, doubtful) = (SEARCHES, VecDeque::new());
        Unbinding { program: Some(program), processes, elders, origin, searches, doubtful }
    }

    /// Of a thread of this process: those that have just begun.
    pub fn of_thread(process: Tid, origin: Origin) -> Self {
        Unbinding { program: None, ..Unbinding::of_program(process, Vec::new(), Arc::default(), origin) }
    }

    /// Does what can be done at once of so many threads, without processes that are scheduled by themselves. Whether that was all.
    fn go_on(&mut self, most: usize, beginnings: &Beginnings, is_apart: impl Fn(Tid) -> bool) -> bool {
        while self.searches > 0 {
            self.searches -= 1;
            self.search(&is_apart);
        }
        for _ in 0..self.doubtful.len().min(most) {
            let tid = self.doubtful.pop_front().expect("there are so many");
            if !self.unbind(tid, |tid| beginnings.of(tid)) {
                self.doubtful.push_back(tid);
            }
        }
        self.doubtful.is_empty()
    }

    fn search(&mut self, is_apart: &impl Fn(Tid) -> bool) {
        let is_its =
            |process: Tid| process != getpid() && !self.elders.contains(&process) && !is_apart(process);
        let known = self.processes.iter().copied();
        let known = known.filter(|process| self.program == Some(*process) || is_its(*process)).collect();
        let families = proc::families(known, usize::MAX, is_its);
        let mut found: HashSet<Tid> = self.doubtful.iter().copied().collect();
        for tid in families.iter().flat_map(|process| proc::threads(*process, usize::MAX).unwrap_or_default())
        {
            if self.origin.has_lent(tid.as_raw_nonzero().get()) && !is_apart(tid) && found.insert(tid) {
                self.doubtful.push_back(tid);
            }
        }
        // Whose parent ends meanwhile is known still.
        self.processes = families;
    }

    fn unbind(&self, tid: Tid, beginning: impl Fn(i32) -> Option<Beginning>) -> bool {
        let number = tid.as_raw_nonzero().get();
        match self.program {
            Some(_) => self.origin.unbind(number, beginning),
            None => self.origin.unbind_young(number, beginning),
        }
    }

    /// Does it to its end. Threads of which the kernel tells nothing for a second are judged by where they are bound.
    pub fn finish(&mut self, beginnings: &Beginnings, is_apart: impl Fn(Tid) -> bool) {
        for _ in 0..ROUNDS {
            if self.go_on(usize::MAX, beginnings, &is_apart) {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        self.judge(|_| true);
    }

    /// Judges those threads by where they are bound. Whether none is left.
    fn judge(&mut self, is_meant: impl Fn(Tid) -> bool) -> bool {
        let (meant, others) = self.doubtful.iter().partition::<VecDeque<Tid>, _>(|tid| is_meant(**tid));
        meant.into_iter().for_each(|tid| _ = self.unbind(tid, |_| Some(Beginning::Overdue)));
        self.doubtful = others;
        self.doubtful.is_empty()
    }
}

/// What has been begun and could not be done at once.
#[derive(Default)]
pub(crate) struct Unbindings(Mutex<Vec<Unbinding>>);

impl Unbindings {
    /// Begins another. Waits for no program.
    pub fn begin(&self, unbinding: Unbinding, guardian: &Guardian, is_apart: impl Fn(Tid) -> bool) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.push(unbinding);
        go_on(&mut pending, (usize::MAX, &Beginnings::default()), guardian, is_apart);
    }

    /// Does of them what can be done, unless somebody else is about it.
    pub fn go_on(&self, beginnings: &Beginnings, guardian: &Guardian, is_apart: impl Fn(Tid) -> bool) {
        if let Ok(mut pending) = self.0.try_lock() {
            go_on(&mut pending, (MOST, beginnings), guardian, is_apart);
        }
    }

    /// A process is about to be bound, with these threads of it and of its children: what is not known of them, or of it, is judged now.
    pub fn judge(&self, process: Tid, threads: &HashSet<Tid>, guardian: &Guardian) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let done = pending.extract_if(.., |unbinding| {
            let is_it = unbinding.program == Some(process);
            unbinding.judge(|tid| is_it || threads.contains(&tid))
        });
        done.for_each(|unbinding| forget(&unbinding, guardian));
    }

    /// Does them and others to their ends, at the end of the set.
    pub fn finish(
        &self,
        others: impl IntoIterator<Item = Unbinding>,
        guardian: &Guardian,
        is_apart: impl Fn(Tid) -> bool,
    ) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let beginnings = Beginnings::default();
        for mut unbinding in pending.drain(..).chain(others) {
            unbinding.finish(&beginnings, &is_apart);
            forget(&unbinding, guardian);
        }
    }
}

fn go_on(
    pending: &mut Vec<Unbinding>,
    (most, beginnings): (usize, &Beginnings),
    guardian: &Guardian,
    is_apart: impl Fn(Tid) -> bool,
) {
    let done = pending.extract_if(.., |unbinding| unbinding.go_on(most, beginnings, &is_apart));
    done.for_each(|unbinding| forget(&unbinding, guardian));
}

fn forget(unbinding: &Unbinding, guardian: &Guardian) {
    unbinding.program.iter().for_each(|program| guardian.forget_program(*program));
}
