//! Where the threads of a program could run before they were bound, also those that it has created since.
//!
//! A thread inherits its creator's CPUs, so a thread that a bound one creates is bound, and nobody has ever noted what it
//! had before. It is known by three things together: it began after the binding, it is bound as we bind, and what its
//! program had before was something else. A thread that has bound itself just so meanwhile is taken for one of these.

use crate::beginning::{Beginning, ticks, ticks_per_second};
use talea_linux::Tid;
use talea_linux::signal_safe::{children_of, threads_of};
use talea_model::ChildProcesses;

/// A CPU mask of 1024 CPUs, as the C library's.
pub(crate) const MASK_WORDS: usize = 16;
/// Processes below one that are looked at.
const OFFSPRING_MAX: usize = 256;
/// How long after its beginning the warden, which looks every 50 ms, may see a thread for the first time.
const YOUNG_MS: u64 = 120;

/// A set of CPUs. All calls are async-signal-safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask(pub(crate) [u64; MASK_WORDS]);

impl Mask {
    /// Whatever there is.
    pub const ALL: Mask = Mask([u64::MAX; MASK_WORDS]);

    pub(crate) fn of_cpus(cpus: &[u16]) -> Self {
        let mut words = [0_u64; MASK_WORDS];
        for cpu in cpus.iter().map(|cpu| usize::from(*cpu)) {
            if let Some(word) = words.get_mut(cpu / 64) {
                *word |= 1 << (cpu % 64);
            }
        }
        Mask(words)
    }

    /// Where a thread may run; nothing if it has gone.
    pub fn of(tid: i32) -> Option<Self> {
        let mut mask = [0_u64; MASK_WORDS];
        // SAFETY: the mask is writable for the size that is passed along.
        let code = unsafe {
            libc::sched_getaffinity(tid, size_of_val(&mask), mask.as_mut_ptr().cast::<libc::cpu_set_t>())
        };
        (code == 0).then_some(Mask(mask))
    }

    /// Whether it is this CPU alone.
    pub(crate) fn is_just(self, cpu: u16) -> bool {
        self == Mask::of_cpus(&[cpu])
    }

    /// Lets a thread run there, as far as its cpuset does. One that has gone needs it no more.
    pub fn give_to(self, tid: i32) {
        // SAFETY: the mask is live and as long as it is said to be; the kernel only reads it.
        unsafe {
            libc::sched_setaffinity(tid, size_of_val(&self.0), self.0.as_ptr().cast::<libc::cpu_set_t>())
        };
    }

    fn is_one_of(self, others: Mask) -> bool {
        let bits: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        bits == 1 && self.0.iter().zip(others.0).all(|(own, other)| own & !other == 0)
    }
}

/// How threads are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// To one of the CPUs at a time.
    ToOne,
    /// To all of them.
    ToAll,
}

/// What the threads of a program had before they were bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Where it could run.
    pub before: Mask,
    pub(crate) lent: Mask,
    pub(crate) binding: Binding,
    /// When it was bound, in ticks since the machine began.
    pub(crate) since: u64,
}

impl Origin {
    /// That of a process that will be bound to `cpus`.
    pub fn of(process: Tid, cpus: &[u16], binding: Binding) -> Self {
        let before = Mask::of(process.as_raw_nonzero().get()).unwrap_or(Mask::ALL);
        Origin { before, lent: Mask::of_cpus(cpus), binding, since: ticks() }
    }

    /// Whether a thread, or a process by its first one, has begun since then; nothing where `beginning` tells nothing. One that is
    /// [overdue](Beginning::Overdue) has if it is bound as we bind: we seldom keep others from going on.
    pub fn has_begun_since(&self, tid: i32, beginning: impl Fn(i32) -> Option<Beginning>) -> Option<bool> {
        Some(match beginning(tid)? {
            Beginning::Known { start, .. } => start >= self.since,
            Beginning::Overdue => self.has_lent(tid),
        })
    }

    /// Whether a process that one of the program's processes has started is scheduled with it, as far as is known; this process never is, nor what it
    /// starts.
    pub fn is_heir(
        &self,
        process: Tid,
        children: ChildProcesses,
        beginning: impl Fn(i32) -> Option<Beginning>,
    ) -> bool {
        let is_later = || self.has_begun_since(process.as_raw_nonzero().get(), beginning) == Some(true);
        process != rustix::process::getpid() && (children == ChildProcesses::All || is_later())
    }

    /// Whether a thread is bound as we bind, and its program was not.
    fn is_lent(&self, mask: Mask) -> bool {
        let is_lent = match self.binding {
            Binding::ToOne => mask.is_one_of(self.lent),
            Binding::ToAll => mask == self.lent,
        };
        mask != self.before && is_lent
    }

    /// Whether a thread is bound as we bind, and its program was not.
    pub(crate) fn has_lent(&self, tid: i32) -> bool {
        Mask::of(tid).is_some_and(|mask| self.is_lent(mask))
    }

    /// What a thread had if it had not been created by a bound one; nothing where `beginning` tells nothing.
    pub fn mask_of(&self, tid: i32, beginning: impl Fn(i32) -> Option<Beginning>) -> Option<Mask> {
        match Mask::of(tid) {
            Some(own) if !self.is_lent(own) => Some(own),
            Some(own) => Some(if self.has_begun_since(tid, beginning)? { self.before } else { own }),
            None => Some(self.before),
        }
    }

    /// Lets a thread run where it could, if it is bound only because its creator was. Whether that is done, or needs not be: not where `beginning` tells
    /// nothing of one that is there.
    pub(crate) fn unbind(&self, tid: i32, beginning: impl Fn(i32) -> Option<Beginning>) -> bool {
        self.unbind_if(tid, || self.has_begun_since(tid, beginning))
    }

    /// The same for one that has just begun. A later identical mask was set by the thread itself.
    pub fn unbind_young(&self, tid: i32, beginning: impl Fn(i32) -> Option<Beginning>) -> bool {
        let young = YOUNG_MS * ticks_per_second() / 1_000;
        let is_young = |beginning| match beginning {
            Beginning::Known { start, asked } => start >= self.since && asked.saturating_sub(start) <= young,
            Beginning::Overdue => true,
        };
        self.unbind_if(tid, || beginning(tid).map(is_young))
    }

    fn unbind_if(&self, tid: i32, is_due: impl FnOnce() -> Option<bool>) -> bool {
        if !self.has_lent(tid) {
            return true;
        }
        match is_due() {
            Some(true) => self.before.give_to(tid),
            Some(false) => {}
            // It has gone, or is not told of yet.
            None => return !self.has_lent(tid),
        }
        true
    }

    /// The same as [`Self::unbind`] for all threads of a process, and of those that it has started and that still are its own. For somebody who may
    /// wait, once nobody keeps them from running; async-signal-safe.
    pub(crate) fn unbind_all(&self, process: i32) {
        let mut all = [0_i32; OFFSPRING_MAX];
        all[0] = process;
        let (mut next, mut known) = (0, 1);
        while next < known {
            let process = all[next];
            threads_of(process, |tid| {
                self.unbind(tid, Beginning::read);
                children_of(process, tid, |child| {
                    if known < OFFSPRING_MAX && !all[..known].contains(&child) {
                        all[known] = child;
                        known += 1;
                    }
                });
            });
            next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beginning::Beginnings;
    use rustix::thread::gettid;
    use std::os::unix::process::CommandExt;

    fn allowed() -> Vec<u16> {
        talea_linux::affinity::allowed().unwrap()
    }

    fn number(tid: Tid) -> i32 {
        tid.as_raw_nonzero().get()
    }

    /// The last CPU, to which a thread that calls this is bound, and where it could run.
    fn bind_self() -> (Origin, Mask) {
        let cpus = allowed();
        let origin = Origin::of(gettid(), &cpus, Binding::ToOne);
        let one = Mask::of_cpus(&cpus[cpus.len() - 1..]);
        one.give_to(number(gettid()));
        (origin, one)
    }

    #[test]
    fn who_was_created_by_a_bound_thread_runs_where_that_one_could() {
        std::thread::spawn(|| {
            let (origin, one) = bind_self();
            if origin.before == one {
                return;
            }
            let in_heir = move || {
                let own = number(gettid());
                let beginnings = Beginnings::default();
                let beginning = |tid| loop {
                    if let told @ Some(_) = beginnings.of(tid) {
                        return told;
                    }
                };
                let has_begun_since = origin.has_begun_since(own, beginning);
                let inherited = (Mask::of(own), has_begun_since, origin.mask_of(own, beginning));
                (inherited, origin.unbind(own, beginning), Mask::of(own))
            };
            let (inherited, is_done, after) = std::thread::spawn(in_heir).join().unwrap();
            assert_eq!(inherited, (Some(one), Some(true), Some(origin.before)));
            assert_eq!((is_done, after), (true, Some(origin.before)));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn whoever_was_there_before_has_bound_itself() {
        std::thread::spawn(|| {
            let (mut origin, one) = bind_self();
            origin.since = ticks() + 1;
            let own = number(gettid());
            assert!(origin.unbind(own, Beginning::read));
            assert_eq!((Mask::of(own), origin.mask_of(own, Beginning::read)), (Some(one), Some(one)));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn an_overdue_thread_counts_as_later_if_it_is_bound_as_we_bind() {
        std::thread::spawn(|| {
            let (mut origin, one) = bind_self();
            if origin.before == one {
                return;
            }
            origin.since = ticks() + 1_000_000;
            let own = number(gettid());
            assert!(!origin.unbind(own, |_| None) && Mask::of(own) == Some(one), "not known yet");
            let overdue = |_| Some(Beginning::Overdue);
            assert_eq!(origin.mask_of(own, overdue), Some(origin.before));
            assert!(origin.unbind(own, overdue) && Mask::of(own) == Some(origin.before));
            assert_eq!(origin.has_begun_since(own, overdue), Some(false), "it is not bound");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn the_programs_of_a_process_are_unbound_with_it() {
        std::thread::spawn(|| {
            let (origin, one) = bind_self();
            let mut shell = std::process::Command::new("sh");
            let mut shell = shell.args(["-c", "sleep 60 & wait"]).process_group(0).spawn().unwrap();
            let pid = shell.id() as i32;
            let mut child = None;
            while child.is_none() {
                threads_of(pid, |tid| children_of(pid, tid, |found| child = Some(found)));
            }
            let child = child.expect("found");
            let before = Mask::of(child);
            origin.unbind_all(pid);
            let after = (Mask::of(pid), Mask::of(child));
            let group = Tid::from_child(&shell);
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
            shell.wait().unwrap();
            assert_eq!(before, Some(one));
            assert_eq!(after, (Some(origin.before), Some(origin.before)));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn all_of_the_cpus_or_one_of_them() {
        let two = Mask::of_cpus(&[1, 70]);
        assert!(Mask::of_cpus(&[70]).is_one_of(two) && !two.is_one_of(two));
        assert!(!Mask::of_cpus(&[2]).is_one_of(two));
    }
}
