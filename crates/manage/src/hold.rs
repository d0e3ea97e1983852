//! Hard caps: keeping a parked thread from running even on a processor that is otherwise idle.
//!
//! Parking by priority is work-conserving. Where a guarantee is also a maximum, a parked member is held when its
//! processor would go idle, and let go when it is granted one:
//!
//! | Whose | How it is held | Acknowledged by |
//! |---|---|---|
//! | a thread of this process | a signal, whose handler sleeps on a word until it is let go | the handler, in the word |
//! | a command, with cgroup v2 | the cgroup in which it was started is frozen | `cgroup.events` |
//! | another process, with cgroup v2 | it is moved to a cgroup of its own, which is frozen | `cgroup.events` |
//! | a process, without | SIGSTOP, which its parent can see | the states of its threads |
//!
//! A signal reaches a thread when it next runs, which is before it does anything else: what it receives between being asked
//! and being held is the signal's delivery. A thread held in the middle of a library call keeps the locks that it
//! has, as one that is parked under load does; but not the set's own, without which nobody could let it go: it is held after
//! it has given them back ([`Shield`]). The members that the set lets run on idle processors are not touched.
//!
//! Whoever has the set's lock may need one that a held thread has, that of the memory allocator for one. So a held thread looks from time to time: if
//! somebody has waited for the set's lock and it has been in the same hands all the time, the thread goes on, and is held again at the next decision
//! that leaves its processor idle. What it receives meanwhile is seen by who judges maxima. Somebody waits for that lock soon enough: the controller at
//! the next timer, or the auditor, who looks at regular intervals.

use crate::freezer::{FreezeSwitch, Freezer};
use crate::guardian::{Guardian, HeldNote};
use crate::held_group::{CgroupPlace, Group};
use crate::progress::Progress;
use crate::signal_target::SignalTarget;
use rustix::io::Errno;
use rustix::process::Signal;
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use talea_linux::Tid;
use talea_linux::cgroup::{Cgroup, Freeze};
use talea_linux::sched::last_errno;
use talea_time::Duration;

/// Whether a parked member may use a processor that nobody else wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Parking {
    /// Yes: its guarantee is a minimum.
    #[default]
    WorkConserving,
    /// No: its guarantee is a maximum as well.
    Held,
}

/// How far holding a member has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It may run when it is granted a processor, or when nobody else wants one.
    No,
    /// It has been told to, and will be held before it does anything else.
    Asked,
    /// It cannot run.
    Yes,
}

thread_local! {
    /// How many locks of the set the thread has or waits for.
    static SHIELDS: Cell<u32> = const { Cell::new(0) };
    /// The word by which it was to be held meanwhile.
    static DEFERRED: Cell<*const HoldWord> = const { Cell::new(std::ptr::null()) };
}

/// Keeps the calling thread from being held while it lives: whoever has a lock of the set, or waits for it and may be
/// handed it in the next moment, must be able to give it back.
pub(crate) struct Shield(PhantomData<*const ()>);

impl Shield {
    pub fn raise() -> Self {
        SHIELDS.set(SHIELDS.get() + 1);
        compiler_fence(Ordering::SeqCst);
        Shield(PhantomData)
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        SHIELDS.set(SHIELDS.get() - 1);
        compiler_fence(Ordering::SeqCst);
        if SHIELDS.get() == 0 && !DEFERRED.get().is_null() {
            let word = DEFERRED.replace(std::ptr::null());
            // SAFETY: the handler has put it there, and no word is ever freed.
            stay(unsafe { &*word });
        }
    }
}

/// By which one thread is held. Never freed: a signal may be under way to a thread that ends.
struct HoldWord {
    word: AtomicU32,
    /// That of the lock of the set.
    progress: Arc<Progress>,
}

/// Sleeps until the thread is let go, if it is still to be held, or others cannot go on without it.
fn stay(hold: &HoldWord) {
    let HoldWord { word, progress } = hold;
    if word.compare_exchange(ASKED, HELD, Ordering::AcqRel, Ordering::Acquire).is_err() {
        return;
    }
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() };
    let mut stuck = None;
    while word.load(Ordering::Acquire) == HELD {
        if futex::wait(word, Flags::PRIVATE, HELD, Some(&look)) == Err(Errno::TIMEDOUT) {
            let now = progress.waited_for();
            if now.is_some() && now == stuck {
                // If it was let go meanwhile, that is as well.
                _ = word.compare_exchange(HELD, WENT_ON, Ordering::AcqRel, Ordering::Acquire);
                return;
            }
            stuck = now;
        }
    }
}

/// How often a held thread looks whether others can go on without it: much longer than anybody has the lock of the set.
const LOOK: Duration = Duration::from_millis(20);

const FREE: u32 = 0;
const ASKED: u32 = 1;
const HELD: u32 = 2;
/// It was held, and is not.
const WENT_ON: u32 = 3;

/// The means of holding one member, and whether it is used.
pub(crate) struct Hold {
    means: HoldMechanism,
    engaged: bool,
    /// Given up when nothing is left to undo.
    _note: Option<HeldNote>,
}

/// Why there are no means of holding somebody. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CannotHold {
    /// There is no cgroup for them, and not all are reached by a signal.
    OutOfReach,
    /// The guardian cannot remember more.
    NoRoom,
}

enum HoldMechanism {
    Signal {
        hold: &'static HoldWord,
    },
    Freezer {
        group: Arc<Group>,
    },
    /// The cgroup in which a command was started.
    Cgroup {
        switch: Arc<FreezeSwitch>,
    },
    Stop {
        whom: SignalTarget,
    },
}

impl Hold {
    /// Holds a thread of this process by a signal, while there is this progress with the lock of its set.
    pub fn by_signal(progress: &Arc<Progress>) -> Self {
        install_handler();
        let hold = HoldWord { word: AtomicU32::new(FREE), progress: Arc::clone(progress) };
        let hold = Box::leak(Box::new(hold));
        Hold { means: HoldMechanism::Signal { hold }, engaged: false, _note: None }
    }

    /// Holds other programs by the freezer where there is one, by SIGSTOP where there is none. `processes` says who they are
    /// now; those whom one of them starts from then on are held with them.
    pub fn of(
        whom: SignalTarget,
        processes: &dyn Fn() -> Vec<Tid>,
        guardian: &Arc<Guardian>,
        freezer: &Arc<Freezer>,
    ) -> Result<Self, CannotHold> {
        if let Ok(place) = CgroupPlace::around(whom.process())
            && let Some(note) = guardian.note_held(whom, Some((&place.folder, &place.home)))
            && let Ok(group) = Group::around(place, processes, freezer)
        {
            let means = HoldMechanism::Freezer { group: Arc::new(group) };
            return Ok(Hold { means, engaged: false, _note: Some(note) });
        }
        if processes().into_iter().any(|process| !whom.reaches(process)) {
            return Err(CannotHold::OutOfReach);
        }
        let note = guardian.note_held(whom, None).ok_or(CannotHold::NoRoom)?;
        Ok(Hold { means: HoldMechanism::Stop { whom }, engaged: false, _note: Some(note) })
    }

    /// Holds a command in the cgroup in which it was started, with whatever it starts. Should this process be killed, it is ended.
    pub fn in_cgroup(cgroup: &Arc<Cgroup>, freezer: &Arc<Freezer>) -> Self {
        let switch = freezer.switch(Arc::clone(cgroup));
        Hold { means: HoldMechanism::Cgroup { switch }, engaged: false, _note: None }
    }

    /// Whether processes that the member starts are held with it: those of a process that is stopped are not.
    pub fn holds_heirs(&self) -> bool {
        !matches!(self.means, HoldMechanism::Stop { whom: SignalTarget::Process(_) })
    }

    /// Into which a process is to go that belongs to the member now, so that it is held with it.
    pub fn group(&self) -> Option<Arc<Group>> {
        match &self.means {
            HoldMechanism::Freezer { group } => Some(Arc::clone(group)),
            // Those in the group are stopped with it; of a process that is stopped alone no others are taken in, and a thread has none.
            HoldMechanism::Stop { .. } | HoldMechanism::Signal { .. } | HoldMechanism::Cgroup { .. } => None,
        }
    }

    /// Whether the member has been told to stop running, and has not gone on because others could not.
    pub fn is_engaged(&self) -> bool {
        let went_on = match &self.means {
            HoldMechanism::Signal { hold } => hold.word.load(Ordering::Acquire) == WENT_ON,
            _ => false,
        };
        self.engaged && !went_on
    }

    /// Has the member held, now or soon; `thread` is an own member's. Does not wait for who moves processes from one cgroup to another.
    pub fn engage(&mut self, thread: Option<Tid>) {
        if self.is_engaged() {
            return;
        }
        self.engaged = true;
        match (&self.means, thread) {
            (HoldMechanism::Signal { hold }, thread) => {
                hold.word.store(ASKED, Ordering::Release);
                // A thread that has gone needs no holding.
                let _gone = thread.map(|thread| send(thread, hold));
            }
            (HoldMechanism::Freezer { group }, _) => group.switch().want(Freeze::On),
            (HoldMechanism::Cgroup { switch }, _) => switch.want(Freeze::On),
            (HoldMechanism::Stop { whom }, _) => whom.send(Signal::STOP),
        }
    }

    /// Has the member let go, now or soon. Whether it had been told to stop. Does not wait for who moves processes from one cgroup to another.
    pub fn disengage(&mut self) -> bool {
        if !std::mem::replace(&mut self.engaged, false) {
            return false;
        }
        match &self.means {
            HoldMechanism::Signal { hold } => {
                hold.word.store(FREE, Ordering::Release);
                futex::wake(&hold.word, Flags::PRIVATE, 1).expect("waking on a word of our own works");
            }
            HoldMechanism::Freezer { group } => group.switch().want(Freeze::Off),
            HoldMechanism::Cgroup { switch } => switch.want(Freeze::Off),
            HoldMechanism::Stop { whom } => whom.send(Signal::CONT),
        }
        true
    }

    /// The member has been let go when this returns, which may wait for whoever moves processes from one cgroup to another.
    pub fn let_go(&mut self) {
        self.disengage();
        match &self.means {
            HoldMechanism::Freezer { group } => group.switch().settle(),
            HoldMechanism::Cgroup { switch } => switch.settle(),
            HoldMechanism::Signal { .. } | HoldMechanism::Stop { .. } => {}
        }
    }

    /// For how long the member has run on when it was to be held, for somebody moved processes from one cgroup to another.
    pub fn late(&self) -> Duration {
        match &self.means {
            HoldMechanism::Freezer { group } => group.switch().late(),
            HoldMechanism::Cgroup { switch } => switch.late(),
            HoldMechanism::Signal { .. } | HoldMechanism::Stop { .. } => Duration::ZERO,
        }
    }

    /// What is known of it. Reads a file for a process.
    pub fn state(&self) -> Held {
        if !self.is_engaged() {
            return Held::No;
        }
        let acknowledged = match &self.means {
            HoldMechanism::Signal { hold } => hold.word.load(Ordering::Acquire) == HELD,
            HoldMechanism::Freezer { group } => group.switch().cgroup().is_frozen(),
            HoldMechanism::Cgroup { switch } => switch.cgroup().is_frozen(),
            HoldMechanism::Stop { whom } => talea_linux::proc::is_stopped(whom.process()),
        };
        if acknowledged { Held::Yes } else { Held::Asked }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// A real-time signal that the C library leaves to programs and nobody is likely to use.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 9
}

/// `siginfo_t` as the kernel reads it for a signal with a value.
#[repr(C)]
struct Queued {
    number: i32,
    errno: i32,
    code: i32,
    padding: i32,
    pid: i32,
    uid: u32,
    value: *const HoldWord,
    rest: [u64; 12],
}

const _: () = assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>());

fn send(thread: Tid, hold: &'static HoldWord) -> Result<(), Errno> {
    let process = rustix::process::getpid().as_raw_nonzero().get();
    let queued = Queued {
        number: signal(),
        errno: 0,
        code: libc::SI_QUEUE,
        padding: 0,
        pid: process,
        uid: rustix::process::getuid().as_raw(),
        value: std::ptr::from_ref(hold),
        rest: [0; 12],
    };
    let thread = thread.as_raw_nonzero().get();
    // SAFETY: the information is a live `siginfo_t`, which the kernel copies. The word is never
    // freed.
    let code =
        unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal(), &raw const queued) };
    if code == 0 { Ok(()) } else { Err(last_errno()) }
}

fn install_handler() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: zero is a valid `sigaction`, whose fields are set below.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = on_hold as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: the handler has the type SA_SIGINFO asks for and makes async-signal-safe calls alone.
        let code = unsafe { libc::sigaction(signal(), &raw const action, std::ptr::null_mut()) };
        assert_eq!(code, 0, "a real-time signal can be handled");
    });
}

extern "C" fn on_hold(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes the information of this signal.
    let (code, sender, word) = unsafe { ((*info).si_code, (*info).si_pid(), (*info).si_value().sival_ptr) };
    // SAFETY: the call takes nothing.
    if code != libc::SI_QUEUE || sender != unsafe { libc::getpid() } {
        return;
    }
    // SAFETY: `__errno_location` is this thread's own; the interrupted code must find it as it left it.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: signals with a value come from `send` alone, and its word is never freed.
    let hold = unsafe { &*word.cast::<HoldWord>() };
    match SHIELDS.get() {
        0 => stay(hold),
        _ => DEFERRED.set(hold),
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::PiLock;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    #[test]
    fn who_has_a_lock_of_the_set_is_held_after_it() {
        let (tell, hear) = std::sync::mpsc::channel();
        let (give_back, until) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let shield = Shield::raise();
            tell.send(rustix::thread::gettid()).unwrap();
            while DEFERRED.get().is_null() {
                std::hint::spin_loop();
            }
            tell.send(rustix::thread::gettid()).unwrap();
            until.recv().unwrap();
            drop(shield);
        });
        let tid = hear.recv().unwrap();
        let mut hold = Hold::by_signal(&Arc::default());
        hold.engage(Some(tid));
        hear.recv().unwrap();
        assert_eq!(hold.state(), Held::Asked);
        give_back.send(()).unwrap();
        while hold.state() != Held::Yes {
            std::thread::yield_now();
        }
        hold.disengage();
        thread.join().unwrap();
    }

    #[test]
    fn a_held_thread_acknowledges_and_goes_on() {
        let (count, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (tell, hear) = std::sync::mpsc::channel();
        let (counted, stopped) = (Arc::clone(&count), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        let tid = hear.recv().unwrap();
        let mut hold = Hold::by_signal(&Arc::default());
        assert_eq!(hold.state(), Held::No);
        hold.engage(Some(tid));
        while hold.state() != Held::Yes {
            std::thread::yield_now();
        }
        let seen = count.load(Ordering::Relaxed);
        std::thread::yield_now();
        assert_eq!(count.load(Ordering::Relaxed), seen, "held threads do not count");
        hold.disengage();
        while count.load(Ordering::Relaxed) == seen {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap();
    }

    /// Who has the set's lock needs what a held thread has: that goes on, and is held again when it is to be.
    #[test]
    fn a_held_thread_gives_what_others_cannot_go_on_without() {
        let (lock, needed) = (PiLock::new(()), Mutex::new(()));
        let is_held = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (tell, hear) = std::sync::mpsc::channel();
            let (own, is_held) = (&needed, &is_held);
            scope.spawn(move || {
                let guard = own.lock().unwrap();
                tell.send(rustix::thread::gettid()).unwrap();
                while !is_held.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                drop(guard);
                while is_held.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let tid = hear.recv().unwrap();
            let mut hold = Hold::by_signal(lock.progress());
            hold.engage(Some(tid));
            while hold.state() != Held::Yes {
                std::thread::yield_now();
            }
            is_held.store(true, Ordering::Relaxed);
            let guard = lock.lock();
            let waiter = scope.spawn(|| drop(lock.lock()));
            drop(needed.lock().unwrap());
            assert_eq!(hold.state(), Held::No, "it went on");
            drop(guard);
            waiter.join().unwrap();
            hold.engage(Some(tid));
            while hold.state() != Held::Yes {
                std::thread::yield_now();
            }
            hold.disengage();
            is_held.store(false, Ordering::Relaxed);
        });
    }
}
