//! Freezing cgroups without waiting for who moves processes from one to another.
//!
//! One lock of the kernel guards all changes of cgroups on a machine, freezing among them. Whoever moves a process, of whatever program, has it until
//! every processor has been seen outside a fork, some 10 ms, and for longer where real-time threads keep the kernel's own thread from running that
//! finds that out: while a program was adopted beside one that forks, a freeze took 85 ms. So a thread of its own, the freezer, writes. Who decides says
//! what is wanted and waits for [`PATIENCE`], many times what it takes while nobody moves anything: a program's threads then stand in line for their
//! processor in the order in which they are raised behind it. While the freezer is behind, nobody waits for it. A program that should have stopped runs
//! meanwhile below all who are granted a processor, and one that should go on stands still; who judges what was received sees both.

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use talea_linux::cgroup::{Cgroup, Freeze};
use talea_linux::clock::MonotonicClock;
use talea_time::{Clock, Duration};

/// For so long who decides waits for the freezer. It takes some 30 us to freeze a program of a few threads.
const PATIENCE: Duration = Duration::from_micros(200);

/// A cgroup, whether it is to be frozen, and whether it is.
pub(crate) struct FreezeSwitch {
    cgroup: Arc<Cgroup>,
    wants_frozen: AtomicBool,
    /// Since when it is to be frozen and is not, in nanoseconds; 0 if that is not so.
    late_since: AtomicI64,
    /// For how long it ran on, in nanoseconds, each time that this was longer than whoever decides waits for.
    late_ns: AtomicI64,
    /// What was written last. Whoever writes has it.
    written: Mutex<Freeze>,
    /// Whether the freezer has it before it.
    is_asked: AtomicBool,
    freezer: Arc<Freezer>,
}

impl FreezeSwitch {
    /// Where it is.
    pub fn cgroup(&self) -> &Cgroup {
        &self.cgroup
    }

    /// Has it frozen or thawed: now, or soon where somebody moves processes. Does not allocate.
    pub fn want(self: &Arc<Self>, freeze: Freeze) {
        self.wants_frozen.store(freeze == Freeze::On, Ordering::Release);
        match freeze {
            Freeze::On => self.late_since.store(MonotonicClock.now().as_nanos(), Ordering::Release),
            Freeze::Off => self.count_late(),
        }
        if !self.freezer.ask(self) {
            self.settle();
        }
    }

    /// It is frozen, or not to be frozen any more.
    fn count_late(&self) {
        let since = self.late_since.swap(0, Ordering::AcqRel);
        let late = MonotonicClock.now().as_nanos() - since;
        if since != 0 && late > PATIENCE.as_nanos() {
            self.late_ns.fetch_add(late, Ordering::Relaxed);
        }
    }

    /// For how long it has run on when it was to be frozen, in all. What it takes while nobody moves anything does not count.
    pub fn late(&self) -> Duration {
        let since = self.late_since.load(Ordering::Acquire);
        let now = if since == 0 { 0 } else { MonotonicClock.now().as_nanos() - since };
        let under_way = if now > PATIENCE.as_nanos() { now } else { 0 };
        Duration::from_nanos(self.late_ns.load(Ordering::Relaxed) + under_way)
    }

    /// It is as is wanted when this returns. May wait for whoever moves processes.
    pub fn settle(&self) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let wanted = if self.wants_frozen.load(Ordering::Acquire) { Freeze::On } else { Freeze::Off };
            if wanted == *written {
                // Of one that was to be thawed, and was not yet when it was to be frozen again, nothing ran on.
                if wanted == Freeze::On {
                    self.late_since.store(0, Ordering::Release);
                }
                return;
            }
            self.cgroup.freeze(wanted);
            *written = wanted;
            if wanted == Freeze::On {
                self.count_late();
            }
        }
    }
}

impl Drop for FreezeSwitch {
    fn drop(&mut self) {
        self.freezer.work().switches -= 1;
    }
}

/// What the freezer has before it.
struct Work {
    asked: VecDeque<Arc<FreezeSwitch>>,
    /// How many switches there are: for so many there is room.
    switches: usize,
    /// Whether there is a thread that freezes.
    is_served: bool,
}

/// Who freezes and thaws: see the module. One thread [serves](Self::serve).
pub(crate) struct Freezer {
    work: Mutex<Work>,
    /// How often it was asked.
    asked: AtomicU32,
    /// How many of these times all was done that had been asked by then.
    done: AtomicU32,
    /// How many wait for that.
    waiting: AtomicU32,
    has_ended: AtomicBool,
    patience: Duration,
}

impl Default for Freezer {
    fn default() -> Self {
        Freezer::patient(PATIENCE)
    }
}

impl Freezer {
    /// For which whoever asks waits for so long.
    fn patient(patience: Duration) -> Self {
        Freezer {
            work: Mutex::new(Work { asked: VecDeque::new(), switches: 0, is_served: false }),
            asked: AtomicU32::new(0),
            done: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            has_ended: AtomicBool::new(false),
            patience,
        }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of a cgroup that is not frozen.
    pub fn switch(self: &Arc<Self>, cgroup: Arc<Cgroup>) -> Arc<FreezeSwitch> {
        let mut work = self.work();
        work.switches += 1;
        let missing = work.switches.saturating_sub(work.asked.len());
        work.asked.reserve(missing);
        drop(work);
        Arc::new(FreezeSwitch {
            cgroup,
            wants_frozen: AtomicBool::new(false),
            late_since: AtomicI64::new(0),
            late_ns: AtomicI64::new(0),
            written: Mutex::new(Freeze::Off),
            is_asked: AtomicBool::new(false),
            freezer: Arc::clone(self),
        })
    }

    /// Asks the freezer to bring about what is wanted, and waits a moment for it. False if there is none.
    fn ask(&self, switch: &Arc<FreezeSwitch>) -> bool {
        let mut work = self.work();
        if !work.is_served {
            return false;
        }
        if !switch.is_asked.swap(true, Ordering::AcqRel) {
            work.asked.push_back(Arc::clone(switch));
        }
        drop(work);
        let before = self.asked.fetch_add(1, Ordering::AcqRel);
        wake(&self.asked);
        if self.done.load(Ordering::Acquire) == before {
            self.wait_for(before.wrapping_add(1));
        }
        true
    }

    fn wait_for(&self, number: u32) {
        let until = MonotonicClock.now() + self.patience;
        self.waiting.fetch_add(1, Ordering::SeqCst);
        loop {
            let done = self.done.load(Ordering::SeqCst);
            // The counts may run over.
            if done.wrapping_sub(number).cast_signed() >= 0 {
                break;
            }
            let left = until - MonotonicClock.now();
            if left <= Duration::ZERO {
                break;
            }
            let left = Timespec {
                tv_sec: left.as_nanos() / 1_000_000_000,
                tv_nsec: left.as_nanos() % 1_000_000_000,
            };
            sleep_while(&self.done, done, Some(&left));
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Brings about what is wanted until it is [ended](Self::end).
    pub fn serve(&self) {
        self.work().is_served = true;
        loop {
            let asked = self.asked.load(Ordering::Acquire);
            while let Some(switch) = self.next() {
                switch.is_asked.store(false, Ordering::Release);
                switch.settle();
            }
            self.done.store(asked, Ordering::SeqCst);
            if self.waiting.load(Ordering::SeqCst) > 0 {
                wake(&self.done);
            }
            if self.has_ended.load(Ordering::Acquire) {
                let mut work = self.work();
                if work.asked.is_empty() {
                    work.is_served = false;
                    return;
                }
                continue;
            }
            sleep_while(&self.asked, asked, None);
        }
    }

    fn next(&self) -> Option<Arc<FreezeSwitch>> {
        self.work().asked.pop_front()
    }

    /// Whoever wants something brings it about himself from now on.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.asked.fetch_add(1, Ordering::AcqRel);
        wake(&self.asked);
    }
}

fn wake(word: &AtomicU32) {
    futex::wake(word, Flags::PRIVATE, i32::MAX.cast_unsigned()).expect("waking on a word of our own works");
}

/// Sleeps while the word has this value, until it is woken, or no longer than this.
fn sleep_while(word: &AtomicU32, value: u32, most: Option<&Timespec>) {
    match futex::wait(word, Flags::PRIVATE, value, most) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
        Err(errno) => panic!("futex wait on a word of our own failed: {errno}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_linux::cgroup::Survey;

    fn wait_until(condition: impl Fn() -> bool) {
        while !condition() {
            std::thread::yield_now();
        }
    }

    /// Does it with a cgroup that one process is in; not where there are none.
    fn with_switch(name: &str, patience: Duration, test: impl FnOnce(&Arc<Freezer>, &Arc<FreezeSwitch>)) {
        let unified = match Survey::take().unified {
            Ok(unified) => unified,
            Err(missing) => return eprintln!("skipped: {missing}"),
        };
        let folder = unified.home.join(format!("talea-{}.{name}", std::process::id()));
        let freezer = Arc::new(Freezer::patient(patience));
        let switch = freezer.switch(Arc::new(Cgroup::create(folder).expect("a cgroup can be made there")));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("there is a sleep");
        switch.cgroup().take(talea_linux::Tid::from_child(&child)).expect("it can be moved");
        test(&freezer, &switch);
        // Whoever settles needs no freezer.
        switch.want(Freeze::Off);
        wait_until(|| !switch.cgroup().is_frozen());
        switch.cgroup().kill();
        child.wait().expect("it is ours");
        wait_until(|| switch.cgroup().remove());
    }

    /// The switch's lock stands for the kernel's: the freezer is kept from writing for as long.
    #[test]
    fn who_decides_does_not_wait_for_the_kernel_and_the_last_word_counts() {
        with_switch("freezer", Duration::from_nanos(1), |freezer, switch| {
            switch.want(Freeze::On);
            assert_eq!(
                *switch.written.lock().expect("nobody panicked"),
                Freeze::On,
                "there is no freezer yet"
            );
            switch.want(Freeze::Off);
            std::thread::scope(|scope| {
                scope.spawn(|| freezer.serve());
                wait_until(|| freezer.work().is_served);
                let kernel = switch.written.lock().expect("nobody panicked");
                switch.want(Freeze::On);
                assert!(!switch.cgroup().is_frozen(), "somebody wrote who has not the lock");
                wait_until(|| switch.late() > PATIENCE);
                drop(kernel);
                wait_until(|| switch.cgroup().is_frozen());
                // Whoever wrote it has counted when he gives the lock back.
                let kernel = switch.written.lock().expect("nobody panicked");
                let late = switch.late();
                assert!(
                    late > PATIENCE && late == switch.late(),
                    "it is counted while it lasts, and after that"
                );
                [Freeze::Off, Freeze::On, Freeze::Off].into_iter().for_each(|freeze| switch.want(freeze));
                assert!(switch.cgroup().is_frozen());
                drop(kernel);
                wait_until(|| !switch.cgroup().is_frozen());
                switch.want(Freeze::On);
                wait_until(|| switch.cgroup().is_frozen());
                let (kernel, late) = (switch.written.lock().expect("nobody panicked"), switch.late());
                [Freeze::Off, Freeze::On].into_iter().for_each(|freeze| switch.want(freeze));
                drop(kernel);
                wait_until(|| !switch.is_asked.load(Ordering::Acquire));
                switch.settle();
                assert!(switch.late() == late, "it was frozen all the time");
                freezer.end();
            });
            assert_eq!(*switch.written.lock().expect("nobody panicked"), Freeze::On, "the last was not done");
            let other = freezer.switch(Arc::clone(&switch.cgroup));
            assert!(freezer.work().switches == 2 && freezer.work().asked.capacity() >= 2);
            drop(other);
            assert_eq!(freezer.work().switches, 1);
        });
    }

    #[test]
    fn who_decides_waits_for_a_freezer_that_is_at_work_and_for_one_that_is_behind_he_does_not() {
        with_switch("patient", Duration::from_secs(600), |freezer, switch| {
            let other = freezer.switch(Arc::clone(&switch.cgroup));
            std::thread::scope(|scope| {
                scope.spawn(|| freezer.serve());
                wait_until(|| freezer.work().is_served);
                switch.want(Freeze::On);
                assert_eq!(*switch.written.lock().expect("nobody panicked"), Freeze::On);
                let kernel = switch.written.lock().expect("nobody panicked");
                let first = scope.spawn(|| switch.want(Freeze::Off));
                wait_until(|| freezer.waiting.load(Ordering::SeqCst) == 1);
                other.want(Freeze::On);
                assert!(other.is_asked.load(Ordering::Acquire) && !first.is_finished());
                drop(kernel);
                first.join().expect("it is told when that is done");
                assert_eq!(*switch.written.lock().expect("nobody panicked"), Freeze::Off);
                wait_until(|| !other.is_asked.load(Ordering::Acquire));
                other.want(Freeze::Off);
                freezer.end();
            });
        });
    }
}
