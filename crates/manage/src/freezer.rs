//! Freezing cgroups without waiting for who moves processes from one to another.
//!
//! One lock of the kernel guards all changes of cgroups on a machine, freezing among them. Whoever moves a process has it until every processor has
//! been seen outside a fork, some 10 ms, and for longer where real-time threads keep the kernel's own thread from running that finds that out: while a
//! program was adopted beside one that forks, a freeze took 85 ms. So while somebody of this process [moves](Moving) processes, who decides says what
//! is wanted and goes on, and a thread of its own, the freezer, waits. A program that should have stopped runs meanwhile below all who are granted a
//! processor, and one that should go on stands still; who judges what was received sees both. Otherwise whoever decides writes it himself: a program's
//! threads then stand in line for their processor in the order in which they are raised behind it.

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use talea_linux::cgroup::{Cgroup, Freeze};

/// A cgroup, whether it is to be frozen, and whether it is.
pub(crate) struct FreezeSwitch {
    cgroup: Arc<Cgroup>,
    wants_frozen: AtomicBool,
    /// What was written last. Whoever writes has it.
    written: Mutex<Freeze>,
    bell: Arc<Bell>,
    access: Arc<Access>,
}

impl FreezeSwitch {
    /// Where it is.
    pub fn cgroup(&self) -> &Cgroup {
        &self.cgroup
    }

    /// Has it frozen or thawed, now or soon. Neither allocates nor waits for somebody of this process who moves processes.
    pub fn want(&self, freeze: Freeze) {
        self.wants_frozen.store(freeze == Freeze::On, Ordering::Release);
        if self.access.unless_moving(|| self.try_settle()) != Some(true) {
            self.bell.ring();
        }
    }

    /// As [`Self::settle`], unless somebody is just at it.
    fn try_settle(&self) -> bool {
        let written = match self.written.try_lock() {
            Ok(written) => written,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.write(written);
        true
    }

    /// To be had by whoever of this process moves processes into the cgroup or out of it.
    pub fn moving(&self) -> Moving<'_> {
        Moving::begin(&self.access)
    }

    /// It is as is wanted when this returns. May wait for whoever moves processes.
    pub fn settle(&self) {
        self.write(self.written.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn write(&self, mut written: MutexGuard<'_, Freeze>) {
        loop {
            let wanted = if self.wants_frozen.load(Ordering::Acquire) { Freeze::On } else { Freeze::Off };
            if wanted == *written {
                return;
            }
            self.cgroup.freeze(wanted);
            *written = wanted;
        }
    }
}

/// How many of this process's threads are at the kernel's lock: those that move processes, and those that decide.
#[derive(Default)]
struct Access {
    moving: AtomicUsize,
    deciding: AtomicUsize,
}

impl Access {
    /// Does it unless somebody moves processes, who then waits until it is done.
    fn unless_moving<R>(&self, what: impl FnOnce() -> R) -> Option<R> {
        // Each says first that he is there and looks for the other then, in one order for all: at least one sees the other.
        self.deciding.fetch_add(1, Ordering::SeqCst);
        let result = (self.moving.load(Ordering::SeqCst) == 0).then(what);
        self.deciding.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

/// Somebody of this process moves processes from one cgroup to another while this lives.
pub(crate) struct Moving<'a>(&'a Access);

impl<'a> Moving<'a> {
    fn begin(access: &'a Access) -> Self {
        access.moving.fetch_add(1, Ordering::SeqCst);
        while access.deciding.load(Ordering::SeqCst) > 0 {
            // Some 30 us, but whoever decides may have been preempted.
            std::thread::sleep(LOOK);
        }
        Moving(access)
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.moving.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How often whoever begins to move processes looks for those who decide.
const LOOK: std::time::Duration = std::time::Duration::from_micros(50);

/// What the freezer sleeps on.
#[derive(Default)]
struct Bell {
    /// How often it was rung.
    rings: AtomicU32,
    has_ended: AtomicBool,
}

impl Bell {
    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::AcqRel);
        futex::wake(&self.rings, Flags::PRIVATE, 1).expect("waking on a word of our own works");
    }

    /// Sleeps until it has been rung more often.
    fn wait(&self, rings: u32) {
        while self.rings.load(Ordering::Acquire) == rings {
            match futex::wait(&self.rings, Flags::PRIVATE, rings, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(errno) => panic!("futex wait on a word of our own failed: {errno}"),
            }
        }
    }
}

/// Who freezes and thaws while somebody moves processes: see the module. One thread [runs](Self::run) it.
#[derive(Default)]
pub(crate) struct Freezer {
    switches: Mutex<Vec<Weak<FreezeSwitch>>>,
    bell: Arc<Bell>,
    access: Arc<Access>,
}

impl Freezer {
    /// Of a cgroup that is not frozen.
    pub fn switch(&self, cgroup: Arc<Cgroup>) -> Arc<FreezeSwitch> {
        let (wants_frozen, written) = (AtomicBool::new(false), Mutex::new(Freeze::Off));
        let (bell, access) = (Arc::clone(&self.bell), Arc::clone(&self.access));
        let switch = Arc::new(FreezeSwitch { cgroup, wants_frozen, written, bell, access });
        self.switches.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&switch));
        switch
    }

    /// Brings about what is wanted until it is [ended](Self::end).
    pub fn run(&self) {
        let mut known = Vec::new();
        loop {
            let rings = self.bell.rings.load(Ordering::Acquire);
            if self.bell.has_ended.load(Ordering::Acquire) {
                return;
            }
            // Nobody who adds one waits for the kernel.
            self.switches.lock().unwrap_or_else(PoisonError::into_inner).retain(|switch| {
                known.extend(switch.upgrade());
                switch.strong_count() > 0
            });
            known.drain(..).for_each(|switch: Arc<FreezeSwitch>| switch.settle());
            self.bell.wait(rings);
        }
    }

    /// Nobody brings anything about any more but [who settles](FreezeSwitch::settle).
    pub fn end(&self) {
        self.bell.has_ended.store(true, Ordering::Release);
        self.bell.ring();
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

    /// The switch's lock stands for the kernel's: the freezer is kept from writing for as long.
    #[test]
    fn who_decides_does_not_wait_for_the_kernel_and_the_last_word_counts() {
        let unified = match Survey::take().unified {
            Ok(unified) => unified,
            Err(missing) => return eprintln!("skipped: {missing}"),
        };
        let folder = unified.home.join(format!("talea-{}.freezer", std::process::id()));
        let freezer = Freezer::default();
        let cgroup = Arc::new(Cgroup::create(folder).expect("a cgroup can be made there"));
        let switch = freezer.switch(Arc::clone(&cgroup));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("there is a sleep");
        let process = talea_linux::Tid::from_child(&child);
        switch.cgroup().take(process).expect("it can be moved");
        // Where nobody moves processes, no freezer is needed.
        switch.want(Freeze::On);
        wait_until(|| switch.cgroup().is_frozen());
        let moving = switch.moving();
        switch.want(Freeze::Off);
        assert!(switch.cgroup().is_frozen(), "somebody wrote who would have waited");
        std::thread::scope(|scope| {
            scope.spawn(|| freezer.run());
            wait_until(|| !switch.cgroup().is_frozen());
            drop(moving);
            let kernel = switch.written.lock().expect("nobody panicked");
            switch.want(Freeze::On);
            assert!(!switch.cgroup().is_frozen(), "somebody wrote who has not the lock");
            drop(kernel);
            wait_until(|| switch.cgroup().is_frozen());
            let kernel = switch.written.lock().expect("nobody panicked");
            [Freeze::Off, Freeze::On, Freeze::Off].into_iter().for_each(|freeze| switch.want(freeze));
            assert!(switch.cgroup().is_frozen());
            drop(kernel);
            wait_until(|| !switch.cgroup().is_frozen());
            switch.want(Freeze::On);
            switch.settle();
            assert_eq!(*switch.written.lock().expect("nobody panicked"), Freeze::On);
            // Of those that have gone nothing is kept.
            drop(freezer.switch(Arc::clone(&cgroup)));
            freezer.bell.ring();
            wait_until(|| freezer.switches.lock().expect("nobody panicked").len() == 1);
            freezer.end();
        });
        // Whoever settles needs no freezer.
        switch.want(Freeze::Off);
        switch.settle();
        wait_until(|| !switch.cgroup().is_frozen());
        switch.cgroup().kill();
        child.wait().expect("it is ours");
        wait_until(|| switch.cgroup().remove());
    }
}
