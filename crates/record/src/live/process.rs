//! Whether a process is still the one that left its mark.

use rustix::process::{Pid, getpid, test_kill_process};
use std::io;

/// Bits of a process number: Linux numbers processes up to 2^22.
const PID_BITS: u32 = 22;

/// A process: its number and when it started, in one word that is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u64);

/// Whether a process is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It is.
    Alive,
    /// It ended, however it did.
    Dead,
}

impl Owner {
    /// This process.
    pub fn current() -> Self {
        let pid = getpid().as_raw_pid();
        let started = stat("self").map_or(0, |stat| stat.started);
        Owner(started << PID_BITS | pid as u64)
    }

    /// The process in a word of a control page; `None` for 0 and for what cannot be a process.
    pub fn from_word(word: u64) -> Option<Self> {
        let owner = Owner(word);
        Pid::from_raw(owner.pid() as i32).map(|_| owner)
    }

    /// The word for a control page.
    pub fn word(self) -> u64 {
        self.0
    }

    pub fn pid(self) -> u32 {
        (self.0 & ((1 << PID_BITS) - 1)) as u32
    }

    fn started(self) -> u64 {
        self.0 >> PID_BITS
    }

    /// Whether this very process is there. One that is over but not yet waited for is dead.
    pub fn liveness(self) -> Liveness {
        let Some(pid) = Pid::from_raw(self.pid() as i32) else { return Liveness::Dead };
        match stat(&self.pid().to_string()) {
            Ok(stat) if stat.is_over => Liveness::Dead,
            Ok(stat) if self.started() != 0 && stat.started != self.started() => Liveness::Dead,
            Ok(_) => Liveness::Alive,
            // Without /proc, or where it hides others' processes, their number alone has to do.
            Err(_) if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) => Liveness::Dead,
            Err(_) => Liveness::Alive,
        }
    }
}

/// Whether the owner in a word of a control page is dead; words that no process wrote count as dead.
pub(crate) fn is_dead(word: u64) -> bool {
    Owner::from_word(word).is_none_or(|owner| owner.liveness() == Liveness::Dead)
}

/// Whether the process `pid` is `ancestor` or was started by it, directly or through others that are still there.
pub fn descends_from(pid: u32, ancestor: u32) -> bool {
    // Longer chains than this are loops that numbers used anew could make while they are followed.
    const GENERATIONS: usize = 64;
    let parent =
        |pid: &u32| stat(&pid.to_string()).ok().map(|stat| stat.parent).filter(|parent| *parent != 0);
    std::iter::successors(Some(pid), parent).take(GENERATIONS).any(|pid| pid == ancestor)
}

struct Stat {
    is_over: bool,
    parent: u32,
    /// Clock ticks from the machine's start to the process's, cut to the bits that an [`Owner`] has.
    started: u64,
}

/// Reads `/proc/PROCESS/stat` (see proc_pid_stat(5)); fields count from the state, which is the third.
fn stat(process: &str) -> io::Result<Stat> {
    const PARENT: usize = 4 - 3;
    const THREADS: usize = 20 - 3;
    const STARTED: usize = 22 - 3;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    // The name of the program, in parentheses, may hold anything.
    let (_, rest) = text.rsplit_once(')').ok_or_else(malformed)?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).ok_or_else(malformed);
    // Where only the first thread is over, the process goes on.
    let is_over = matches!(fields.first(), Some(&("Z" | "X" | "x"))) && number(THREADS)? <= 1;
    let parent = u32::try_from(number(PARENT)?).map_err(|_| malformed())?;
    Ok(Stat { is_over, parent, started: number(STARTED)? & (u64::MAX >> PID_BITS) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_lives_until_it_is_over_also_before_it_is_waited_for() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let started = stat(&child.id().to_string()).unwrap().started;
        let owner = Owner(started << PID_BITS | u64::from(child.id()));
        assert_eq!(owner.liveness(), Liveness::Alive);
        assert_eq!(Owner(owner.0 + (1 << PID_BITS)).liveness(), Liveness::Dead, "another start");
        child.kill().unwrap();
        // Returns when the child is over and leaves it waitable, so that its entry stays.
        let id = rustix::process::WaitId::Pid(Pid::from_raw(child.id() as i32).unwrap());
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(id, options).unwrap();
        assert_eq!(owner.liveness(), Liveness::Dead, "over, not yet waited for");
        child.wait().unwrap();
        assert_eq!(owner.liveness(), Liveness::Dead);
    }

    #[test]
    fn a_child_descends_from_its_parent_and_not_the_other_way_round() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let me = std::process::id();
        assert!(descends_from(child.id(), me) && descends_from(me, me));
        assert!(!descends_from(me, child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descends_from(child.id(), me), "it is gone");
    }

    #[test]
    fn this_process_is_alive_and_no_process_is_not() {
        let me = Owner::current();
        assert_eq!((me.pid(), me.liveness()), (std::process::id(), Liveness::Alive));
        assert_eq!(Owner::from_word(me.word()), Some(me));
        assert!(is_dead(0) && is_dead(u64::MAX << PID_BITS));
    }
}
