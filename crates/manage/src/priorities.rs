//! The four priorities that a managed set takes, and the calls that move threads between them.

use rustix::io::Errno;
use std::fmt;
use talea_linux::Tid;
use talea_linux::sched::last_errno;

/// Four SCHED_FIFO priorities in a row: parked, the sentinels', granted, urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priorities {
    parked: u8,
    parked_as: ParkedAs,
}

/// What parked threads are to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParkedAs {
    /// Real-time threads: they run before all ordinary ones.
    RealTime,
    /// Ordinary threads: what they run is no real-time thread's. Programs have this nice value meanwhile, which is rare, so that the kernel can tell
    /// their wake-ups from those of the rest of the machine.
    Ordinary { nice: u8 },
}

impl Priorities {
    /// Priorities from `parked` to `parked + 3`, or `None` unless all are SCHED_FIFO priorities below 99, which is left to
    /// the kernel's own threads.
    pub const fn above(parked: u8) -> Option<Self> {
        if parked >= 1 && parked <= 95 {
            Some(Priorities { parked, parked_as: ParkedAs::RealTime })
        } else {
            None
        }
    }

    /// The same, but for those that are parked, which are ordinary threads: what is left to these goes to them, too, and what they run is
    /// not counted as what real-time threads do.
    #[must_use]
    pub(crate) fn with_ordinary_parking(self) -> Self {
        // Nobody is made more urgent than this process is.
        let own = rustix::process::getpriority_process(None).unwrap_or(0);
        Priorities { parked_as: ParkedAs::Ordinary { nice: own.clamp(1, 19) as u8 }, ..self }
    }

    /// The nice value of programs, if it is theirs that counts while they are parked.
    pub(crate) fn nice_of_programs(self) -> Option<i32> {
        match self.parked_as {
            ParkedAs::RealTime => None,
            ParkedAs::Ordinary { nice } => Some(nice.into()),
        }
    }

    /// The priority of programs at this level as the kernel's events have it: 99 less the real-time priority, or 120 and the nice value.
    pub(crate) fn in_events(self, level: Level) -> u8 {
        match self.parked_as {
            ParkedAs::Ordinary { nice } if level == Level::Parked => 120 + nice,
            _ => 99 - self.priority(level),
        }
    }

    /// The highest of them.
    pub const fn highest(self) -> u8 {
        self.priority(Level::Urgent)
    }

    /// Whether threads of a level are ordinary ones.
    fn is_ordinary(self, level: Level) -> bool {
        level == Level::Parked && self.parked_as != ParkedAs::RealTime
    }

    /// The SCHED_FIFO priority of a level.
    pub(crate) const fn priority(self, level: Level) -> u8 {
        self.parked
            + match level {
                Level::Parked => 0,
                Level::Beside => 1,
                Level::Granted => 2,
                Level::Urgent => 3,
            }
    }
}

impl Default for Priorities {
    /// 10 to 13: above what desktop programs ask for, below lanes and interrupt threads.
    fn default() -> Self {
        Priorities { parked: 10, parked_as: ParkedAs::RealTime }
    }
}

impl fmt::Display for Priorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SCHED_FIFO {} to {}", self.parked, self.priority(Level::Urgent))
    }
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Runs only while no member has the processor.
    Parked,
    /// In the sentinel's own queue: how a sentinel grants without being preempted by it.
    Beside,
    /// Above the sentinel.
    Granted,
    /// Above all that is managed: controllers, and a sentinel that acts for somebody else.
    Urgent,
}

/// How threads of one level and one member take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Until they block.
    Fifo,
    /// By the kernel's time slice.
    RoundRobin,
}

/// With what the threads begin that a thread creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heirs {
    /// With the ordinary policy, so that neither a flood of threads nor a forgotten child is ever real-time by inheritance.
    Ordinary,
    /// With what their creator has at that moment: they belong to its member from their first instruction on, and are contained with it.
    Alike,
}

/// The answer for a thread to which the kernel lends the priority of a deadline thread that waits for a lock of it: its own cannot
/// be changed until it has given the lock back. Only what it is already may be asked for.
pub(crate) const LENT: Errno = Errno::BUSY;

/// Sets a thread's level, and with what its heirs begin from then on.
///
/// # Errors
/// SRCH: there is no such thread (any more). [`LENT`]. PERM, which is not expected of a thread that was set before.
pub(crate) fn set(
    tid: Tid,
    priorities: Priorities,
    level: Level,
    (turns, heirs): (Turns, Heirs),
) -> Result<(), Errno> {
    let number = tid.as_raw_nonzero().get();
    let flag = match heirs {
        Heirs::Ordinary => libc::SCHED_RESET_ON_FORK,
        Heirs::Alike => 0,
    };
    if priorities.is_ordinary(level) {
        return raw_set(number, libc::SCHED_OTHER | flag, 0);
    }
    let policy = match turns {
        Turns::Fifo => libc::SCHED_FIFO,
        Turns::RoundRobin => libc::SCHED_RR,
    };
    raw_set(number, policy | flag, priorities.priority(level).into())
}

/// Whether a thread has the priority of this level and the flag for its heirs; nothing if it has gone. Which real-time policy it has of the two is no
/// matter of how urgent it is.
pub(crate) fn is_at(tid: Tid, priorities: Priorities, level: Level, heirs: Heirs) -> Option<bool> {
    let number = tid.as_raw_nonzero().get();
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the calls take a number, and parameters that are writable meanwhile.
    let (policy, code) =
        unsafe { (libc::sched_getscheduler(number), libc::sched_getparam(number, &raw mut parameters)) };
    if policy < 0 || code != 0 {
        return None;
    }
    let is_level = match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO | libc::SCHED_RR => {
            !priorities.is_ordinary(level)
                && parameters.sched_priority == i32::from(priorities.priority(level))
        }
        libc::SCHED_DEADLINE => false,
        _ => priorities.is_ordinary(level),
    };
    Some(is_level && (policy & libc::SCHED_RESET_ON_FORK != 0) == (heirs == Heirs::Ordinary))
}

/// Sets the level of the calling thread, which is a sentinel or a controller.
pub(crate) fn set_self(priorities: Priorities, level: Level) -> Result<(), Errno> {
    raw_set(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priorities.priority(level).into())
}

/// The SCHED_FIFO priority of the calling thread, inherited ones aside; 0 if it has none.
pub(crate) fn own_priority() -> u8 {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are writable for the call; 0 is the calling thread.
    let code = unsafe { libc::sched_getparam(0, &raw mut parameters) };
    assert_eq!(code, 0, "a thread can read its own priority");
    parameters.sched_priority as u8
}

/// An ordinary policy as a thread had it before it was managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordinary(i32);

impl Ordinary {
    /// The usual one, time sharing.
    pub const OTHER: Ordinary = Ordinary(libc::SCHED_OTHER);

    /// The policy of `tid` if it is one without real-time priority or reservation; `Ok(None)` if it is not.
    pub fn of(tid: Tid) -> Result<Option<Self>, Errno> {
        // SAFETY: the call takes a number.
        let policy = unsafe { libc::sched_getscheduler(tid.as_raw_nonzero().get()) };
        match policy & !libc::SCHED_RESET_ON_FORK {
            _ if policy < 0 => Err(last_errno()),
            libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE => Ok(Some(Ordinary(policy))),
            _ => Ok(None),
        }
    }

    pub(crate) const fn number(self) -> i32 {
        self.0
    }

    /// Gives the policy back; a thread that has gone needs it no more. Where the caller lacks CAP_SYS_NICE, the thread keeps
    /// SCHED_RESET_ON_FORK, which only the privileged take away (sched(7)): to an ordinary thread it means that what it
    /// creates does not inherit a negative nice value. Async-signal-safe.
    ///
    /// # Errors
    /// The thread keeps the priority that it has; if the kernel lends it, not for ever.
    pub fn restore(self, tid: i32) -> Result<(), Errno> {
        let restored = match raw_set(tid, self.0, 0) {
            Err(Errno::PERM) => raw_set(tid, self.0 | libc::SCHED_RESET_ON_FORK, 0),
            other => other,
        };
        if restored == Err(Errno::SRCH) { Ok(()) } else { restored }
    }

    pub(crate) const fn from_number(number: i32) -> Self {
        Ordinary(number)
    }
}

fn raw_set(tid: i32, policy: i32, priority: i32) -> Result<(), Errno> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters are live for the call; the kernel only reads them.
    match unsafe { libc::sched_setscheduler(tid, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_stand_in_a_row_below_99() {
        let priorities = Priorities::above(95).expect("the highest there is");
        let levels = [Level::Parked, Level::Beside, Level::Granted, Level::Urgent];
        assert_eq!(levels.map(|level| priorities.priority(level)), [95, 96, 97, 98]);
        assert_eq!((Priorities::above(96), Priorities::above(0)), (None, None));
        assert_eq!(Priorities::default().to_string(), "SCHED_FIFO 10 to 13");
    }

    /// Who may use real-time priorities by RLIMIT_RTPRIO alone could not take the flag back.
    #[test]
    fn a_thread_becomes_an_ordinary_one_without_the_privilege_to_clear_its_flag() {
        use rustix::thread::{CapabilitySet, capabilities, gettid, set_capabilities};
        use std::io::Write;
        let in_thread = || {
            let tid = gettid();
            if set(tid, Priorities::default(), Level::Parked, (Turns::Fifo, Heirs::Ordinary)).is_err() {
                return None;
            }
            let mut sets = capabilities(None).expect("a thread can read its own");
            sets.effective.remove(CapabilitySet::SYS_NICE);
            sets.permitted.remove(CapabilitySet::SYS_NICE);
            set_capabilities(None, sets).expect("a thread can give up its own");
            let number = tid.as_raw_nonzero().get();
            let plain = raw_set(number, libc::SCHED_OTHER, 0);
            Some((plain, Ordinary::OTHER.restore(number), Ordinary::of(tid)))
        };
        let Some((plain, restored, is)) = std::thread::spawn(in_thread).join().unwrap() else {
            writeln!(std::io::stderr(), "skipped: this needs real-time priorities (CAP_SYS_NICE)").unwrap();
            return;
        };
        assert_eq!((plain, restored), (Err(Errno::PERM), Ok(())));
        assert_eq!(is, Ok(Some(Ordinary(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK))));
    }

    #[test]
    fn who_has_gone_needs_nothing_back() {
        assert_eq!(Ordinary::OTHER.restore(4_194_304), Ok(()));
    }

    #[test]
    fn an_ordinary_thread_is_one() {
        let own = std::thread::spawn(|| Ordinary::of(rustix::thread::gettid())).join().unwrap();
        assert!(matches!(own, Ok(Some(_))), "{own:?}");
    }
}
