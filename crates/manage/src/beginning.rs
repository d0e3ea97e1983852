//! When threads began, for somebody who must not wait.
//!
//! The kernel tells it in a `stat`, whose readers wait for a process that is in the middle of an exec. One that is kept from running just then, may be by
//! those whom the reader is to take the processor from, would keep the reader waiting as long. So threads of their own read, and what they do
//! not know soon is not known yet: whoever asks again later is told.

use std::cell::RefCell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;
use talea_linux::Tid;
use talea_linux::proc::{self, Activity};
use talea_linux::sched::{self, Policy};
use talea_linux::signal_safe::stat_field;
use talea_linux::thread::{SpawnError, spawn};

/// The field of a `stat` that says when a thread began, in ticks since the machine did.
const START: usize = 22;
/// How long whoever asks for the first time waits for an answer, which comes within some microseconds mostly.
const PATIENCE: Duration = Duration::from_millis(2);
/// An answer that has not come for so long is not waited for any more: two looks of the warden.
const OVERDUE_MS: u64 = 100;
/// Threads that read for one asker: so many may be kept from running in the middle of an exec before others are not told of.
const READERS_MAX: usize = 8;
const STACK: usize = 64 * 1024;

/// When a thread that is there began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// The kernel has told.
    Known {
        /// In ticks since the machine began.
        start: u64,
        /// When somebody asked for it, likewise.
        asked: u64,
    },
    /// Whoever reads it has waited for its process since somebody asked, and long.
    Overdue,
}

impl Beginning {
    /// Reads it; nothing of one that has gone. The reader waits for one that is kept from running in the middle of an exec.
    pub(crate) fn read(tid: i32) -> Option<Self> {
        let asked = ticks();
        Some(Beginning::Known { start: stat_field(tid, START)?, asked })
    }
}

/// Who reads when threads began.
#[derive(Default)]
pub struct Beginnings(RefCell<Vec<Reader>>);

impl Beginnings {
    /// When a thread began; nothing if it has gone, or if that is not known yet.
    pub fn of(&self, tid: i32) -> Option<Beginning> {
        let mut readers = self.0.borrow_mut();
        // Where there is no room for a thread, it is asked for again.
        of(&mut readers, tid, || Reader::start(|tid| stat_field(tid, START)).ok())
    }
}

fn of(readers: &mut Vec<Reader>, tid: i32, start: impl FnOnce() -> Option<Reader>) -> Option<Beginning> {
    if let Some(reader) = readers.iter_mut().find(|reader| reader.is_asked_for(tid)) {
        return reader.answer(Duration::ZERO);
    }
    if !readers.iter_mut().any(Reader::is_idle) && readers.len() < READERS_MAX {
        readers.extend(start());
    }
    let reader = readers.iter_mut().find_map(|reader| reader.is_idle().then_some(reader))?;
    reader.ask(tid);
    reader.answer(PATIENCE)
}

/// A thread that reads for one asker, of one thread at a time.
struct Reader {
    tid: Tid,
    questions: SyncSender<i32>,
    answers: Receiver<Option<u64>>,
    /// Of whom no answer has come, and since when.
    asked: Option<(i32, u64)>,
}

impl Reader {
    /// Starts the thread, with the policy of the caller. It ends with this, unless it waits: then as soon as it does not.
    fn start(read: impl Fn(i32) -> Option<u64> + Send + 'static) -> Result<Self, SpawnError> {
        let (questions, asked) = sync_channel(1);
        let (answer, answers) = sync_channel(1);
        let policy = sched::get(None).unwrap_or(Policy::Other);
        let thread = spawn("beginnings", policy, &[], STACK, move || {
            for tid in asked {
                if answer.send(read(tid)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Reader { tid: thread.report().tid, questions, answers, asked: None })
    }

    fn is_asked_for(&self, tid: i32) -> bool {
        self.asked.is_some_and(|(asked, _)| asked == tid)
    }

    /// Whether it can be asked. An answer that nobody has come for is forgotten: whoever asks again is told anew.
    fn is_idle(&mut self) -> bool {
        if self.asked.is_some() && self.answers.try_recv().is_ok() {
            self.asked = None;
        }
        self.asked.is_none()
    }

    fn ask(&mut self, tid: i32) {
        self.asked = Some((tid, ticks()));
        self.questions.send(tid).expect("it lives as long as this");
    }

    /// The answer to what it was asked, if that comes so soon.
    fn answer(&mut self, patience: Duration) -> Option<Beginning> {
        let (_, asked) = self.asked.expect("it was asked");
        match self.answers.recv_timeout(patience) {
            Ok(start) => {
                self.asked = None;
                Some(Beginning::Known { start: start?, asked })
            }
            Err(_) => {
                let overdue = OVERDUE_MS * ticks_per_second() / 1_000;
                let is_overdue = ticks().saturating_sub(asked) >= overdue;
                // One that has no processor does not wait for the process.
                let does_wait = || proc::activity(self.tid) == Activity::Blocked;
                (is_overdue && does_wait()).then_some(Beginning::Overdue)
            }
        }
    }
}

/// Time since the machine began as a `stat` counts it.
pub(crate) fn ticks() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is writable for the call.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    let per_second = ticks_per_second();
    now.tv_sec as u64 * per_second + now.tv_nsec as u64 * per_second / 1_000_000_000
}

pub(crate) fn ticks_per_second() -> u64 {
    // SAFETY: the call takes a number.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Condvar, Mutex};

    /// Files of which some cannot be read until they are let go.
    #[derive(Clone, Default)]
    struct Files(Arc<(Mutex<bool>, Condvar)>);

    impl Files {
        fn read(&self, tid: i32) -> Option<u64> {
            let mut is_open = self.0.0.lock().unwrap();
            while tid < 0 && !*is_open {
                is_open = self.0.1.wait(is_open).unwrap();
            }
            (tid != 3).then_some(u64::from(tid.unsigned_abs()) * 100)
        }

        fn open(&self) {
            *self.0.0.lock().unwrap() = true;
            self.0.1.notify_all();
        }
    }

    fn start_of(told: Option<Beginning>) -> Option<u64> {
        match told? {
            Beginning::Known { start, .. } => Some(start),
            Beginning::Overdue => None,
        }
    }

    #[test]
    fn whoever_asks_does_not_wait_for_files_that_cannot_be_read_yet() {
        let (files, mut readers) = (Files::default(), Vec::new());
        let mut ask = |tid: i32| {
            let files = files.clone();
            of(&mut readers, tid, || Reader::start(move |tid| files.read(tid)).ok())
        };
        // Others are told of although those cannot be.
        for stuck in [-1, -2] {
            assert_eq!(start_of(ask(stuck)), None);
            while start_of(ask(2)) != Some(200) {}
        }
        let overdue = |told| told == Some(Beginning::Overdue);
        while !overdue(ask(-1)) || !overdue(ask(-2)) {}
        files.open();
        for (stuck, start) in [(-2, 200), (-1, 100)] {
            while start_of(ask(stuck)) != Some(start) {}
        }
        assert_eq!(ask(3), None, "it has gone");
        assert!(readers.len() <= 4, "they are asked again: {}", readers.len());
    }

    #[test]
    fn there_are_no_more_readers_than_there_may_be() {
        let (files, mut readers) = (Files::default(), Vec::new());
        let mut ask = |tid: i32| {
            let files = files.clone();
            of(&mut readers, tid, || Reader::start(move |tid| files.read(tid)).ok())
        };
        (1..=READERS_MAX as i32).for_each(|stuck| assert_eq!(start_of(ask(-stuck)), None));
        assert_eq!(ask(2), None, "nobody is left to read");
        files.open();
        while start_of(ask(2)) != Some(200) {}
        assert_eq!(readers.len(), READERS_MAX);
    }
}
