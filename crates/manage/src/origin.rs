//! Where the threads of a program could run before they were bound, also those that it has created since.
//!
//! A thread inherits its creator's CPUs, so a thread that a bound one creates is bound, and nobody has ever noted what it
//! had before. It is known by three things together: it began after the binding, it is bound as we bind, and what its
//! program had before was something else. A thread that has bound itself just so meanwhile is taken for one of these.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use talea_linux::Tid;
use talea_linux::sched::{self, Policy};
use talea_linux::signal_safe::{children_of, stat_field, threads_of};
use talea_linux::thread::{SpawnError, spawn};
use talea_model::ChildProcesses;

/// A CPU mask of 1024 CPUs, as the C library's.
pub(crate) const MASK_WORDS: usize = 16;
/// Processes below one that are looked at.
const OFFSPRING_MAX: usize = 256;
/// The field of a `stat` that says when a thread began, in ticks since the machine did.
const START: usize = 22;
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

    /// Whether a thread, or a process by its first one, has begun since then; nothing where `beginning` tells nothing.
    pub fn precedes(&self, tid: i32, beginning: impl Fn(i32) -> Option<Beginning>) -> Option<bool> {
        beginning(tid).map(|beginning| beginning.start >= self.since)
    }

    /// Whether a process that one of the program's processes has started is scheduled with it, as far as is known; this process never is, nor what it
    /// starts.
    pub fn is_heir(
        &self,
        process: Tid,
        children: ChildProcesses,
        beginning: impl Fn(i32) -> Option<Beginning>,
    ) -> bool {
        let is_later = || self.precedes(process.as_raw_nonzero().get(), beginning) == Some(true);
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

    /// What a thread had if it had not been created by a bound one; nothing where `beginning` tells nothing.
    pub fn mask_of(&self, tid: i32, beginning: impl Fn(i32) -> Option<Beginning>) -> Option<Mask> {
        match Mask::of(tid) {
            Some(own) if !self.is_lent(own) => Some(own),
            Some(own) => Some(if self.precedes(tid, beginning)? { self.before } else { own }),
            None => Some(self.before),
        }
    }

    /// Lets a thread run where it could, if it is bound only because its creator was. Reads a file.
    pub fn unbind(&self, tid: i32) {
        if Mask::of(tid).is_some_and(|mask| self.is_lent(mask))
            && self.precedes(tid, Beginning::read) == Some(true)
        {
            self.before.give_to(tid);
        }
    }

    /// The same for one that has just begun. A later identical mask was set by the thread itself.
    pub fn unbind_young(&self, tid: i32, beginning: impl Fn(i32) -> Option<Beginning>) {
        let is_young = |beginning: Beginning| {
            beginning.start >= self.since && beginning.age() <= YOUNG_MS * ticks_per_second() / 1_000
        };
        if Mask::of(tid).is_some_and(|mask| self.is_lent(mask)) && beginning(tid).is_some_and(is_young) {
            self.before.give_to(tid);
        }
    }

    /// The same as [`Self::unbind`] for all threads of a process, and of those that it has started and that still are its own. For somebody who may
    /// wait, or once nobody keeps them from running.
    pub fn unbind_all(&self, process: i32) {
        let mut all = [0_i32; OFFSPRING_MAX];
        all[0] = process;
        let (mut next, mut known) = (0, 1);
        while next < known {
            let process = all[next];
            threads_of(process, |tid| {
                self.unbind(tid);
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

/// When a thread began, which is not known of one that has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// In ticks since the machine did.
    start: u64,
    /// When somebody asked for it, likewise.
    asked: u64,
}

impl Beginning {
    /// Reads it. The reader waits for one that is kept from running in the middle of an exec.
    fn read(tid: i32) -> Option<Self> {
        let asked = ticks();
        Some(Beginning { start: stat_field(tid, START)?, asked })
    }

    /// How long ago that was when somebody asked, in ticks.
    fn age(self) -> u64 {
        self.asked.saturating_sub(self.start)
    }
}

/// Tells when threads began, to somebody who must not wait.
///
/// The kernel tells it in a `stat`, whose readers wait for a process that is in the middle of an exec. One that is kept from running just then, may be by
/// those whom the reader is to take the processor from, would keep the reader waiting as long. So a thread of its own reads, and what
/// it does not know soon is not known yet: whoever asks again later is told.
#[derive(Default)]
pub struct Beginnings(RefCell<Option<BeginningsReader>>);

struct BeginningsReader {
    questions: SyncSender<i32>,
    answers: Receiver<(i32, Option<u64>)>,
    /// Of whom no answer has come, and since when.
    asked: Option<(i32, u64)>,
}

/// How long whoever asks waits for an answer, which comes within some microseconds mostly.
const PATIENCE: Duration = Duration::from_millis(2);
const STACK: usize = 64 * 1024;

impl Beginnings {
    /// When a thread began; nothing if it has gone, or if that is not known yet.
    pub fn of(&self, tid: i32) -> Option<Beginning> {
        let mut reader = self.0.borrow_mut();
        if reader.is_none() {
            // Where there is no room for a thread, it is asked for again.
            *reader = BeginningsReader::start(|tid| stat_field(tid, START)).ok();
        }
        reader.as_mut()?.of(tid)
    }
}

impl BeginningsReader {
    /// Starts the thread, with the policy of the caller. It ends with this, unless it waits: then as soon as it does not.
    fn start(read: impl Fn(i32) -> Option<u64> + Send + 'static) -> Result<Self, SpawnError> {
        let (questions, asked) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let policy = sched::get(None).unwrap_or(Policy::Other);
        let _detached = spawn("beginnings", policy, &[], STACK, move || {
            for tid in asked {
                if answer.send((tid, read(tid))).is_err() {
                    return;
                }
            }
        })?;
        Ok(BeginningsReader { questions, answers, asked: None })
    }

    fn of(&mut self, tid: i32) -> Option<Beginning> {
        if let Some((earlier, _)) = self.asked.filter(|(earlier, _)| *earlier != tid) {
            // Whoever asks for that one again is told anew.
            let (answered, _) = self.answers.try_recv().ok()?;
            assert_eq!(answered, earlier, "it answers in order");
            self.asked = None;
        }
        let (_, asked) = *self.asked.get_or_insert_with(|| {
            self.questions.send(tid).expect("it lives as long as this");
            (tid, ticks())
        });
        let (_, start) = self.answers.recv_timeout(PATIENCE).ok()?;
        self.asked = None;
        Some(Beginning { start: start?, asked })
    }
}

/// Time since the machine began as a `stat` counts it.
fn ticks() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    let per_second = ticks_per_second();
    now.tv_sec as u64 * per_second + now.tv_nsec as u64 * per_second / 1_000_000_000
}

fn ticks_per_second() -> u64 {
    // SAFETY: the call takes a number.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
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
                let beginning = |tid| beginnings.of(tid);
                let inherited =
                    (Mask::of(own), origin.precedes(own, beginning), origin.mask_of(own, beginning));
                origin.unbind(own);
                (inherited, Mask::of(own))
            };
            let (inherited, after) = std::thread::spawn(in_heir).join().unwrap();
            assert_eq!(inherited, (Some(one), Some(true), Some(origin.before)));
            assert_eq!(after, Some(origin.before));
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
            origin.unbind(own);
            assert_eq!((Mask::of(own), origin.mask_of(own, Beginning::read)), (Some(one), Some(one)));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn whoever_asks_does_not_wait_for_a_file_that_cannot_be_read_yet() {
        let (release, released) = sync_channel(0);
        let read = move |tid| {
            if tid == 1 {
                released.recv().unwrap();
            }
            (tid != 3).then_some(tid as u64 * 100)
        };
        let mut reader = BeginningsReader::start(read).unwrap();
        let of = |reader: &mut BeginningsReader, tid| reader.of(tid).map(|beginning| beginning.start);
        let answered = |reader: &mut BeginningsReader, tid| loop {
            if let Some(start) = of(reader, tid) {
                return start;
            }
        };
        assert_eq!(answered(&mut reader, 2), 200);
        assert_eq!((of(&mut reader, 1), of(&mut reader, 2), of(&mut reader, 1)), (None, None, None));
        let asked = reader.asked;
        release.send(()).unwrap();
        let beginning = loop {
            if let Some(beginning) = reader.of(1) {
                break beginning;
            }
        };
        assert_eq!((beginning.start, Some((1, beginning.asked))), (100, asked), "asked for once");
        // Nobody asks for the first one again, whose answer is not taken for the other's.
        assert_eq!(of(&mut reader, 1), None);
        release.send(()).unwrap();
        assert_eq!((answered(&mut reader, 2), of(&mut reader, 3)), (200, None));
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
