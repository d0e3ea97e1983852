//! What tests of real threads have in common, those of whole systems too: the processors, and programs that end with their test.

use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use talea_linux::sched::{self, Policy, SchedError};
use talea_linux::{Tid, affinity};
use talea_manage::Options;
pub(crate) use talea_measure::eventually;
use talea_measure::skip;

/// One set at a time: all use the same CPU.
static ALONE: Mutex<()> = Mutex::new(());

/// The CPUs to manage, or `None`, said on standard error, where the privilege is missing. The last ones, because interrupts
/// tend to be on the first.
pub(crate) fn stage(cpus: usize) -> Option<(MutexGuard<'static, ()>, Options)> {
    let asked = std::thread::spawn(|| sched::set_self(Policy::Fifo(13))).join().unwrap();
    match asked {
        Ok(()) => {}
        Err(error @ SchedError::PriorityNotPermitted { .. }) => {
            skip(error);
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    let allowed = affinity::allowed().unwrap();
    if allowed.len() < cpus {
        skip(format!("this needs {cpus} CPUs, and there are {}", allowed.len()));
        return None;
    }
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Who is managed and who is not is seen by the policies of parked threads.
    Some((alone, Options { slices: None, ..Options::on(&allowed[allowed.len() - cpus..]) }))
}

/// A program that uses its processor for ever, and is killed with the test.
pub(crate) fn endless() -> Command {
    let mut command = Command::new("sh");
    // Not longer than a test may take, should the test be killed before it can end it.
    command.args(["-c", "ulimit -t 60; while :; do :; done"]);
    command
}

/// A program that does not outlive its test.
pub(crate) struct Program(pub(crate) Child);

impl Program {
    pub(crate) fn start() -> Self {
        Program(endless().spawn().unwrap())
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Starts another process, which uses its processor for ever and whose number is written to `note`, and waits.
pub(crate) fn parent(note: &Path) -> [String; 3] {
    let script =
        format!("ulimit -t 60; (while :; do :; done) & echo $! > '{}'; wait; exit 3", note.display());
    ["sh".into(), "-c".into(), script]
}

/// The number in `note`, once it is there.
pub(crate) fn child_of(note: &Path) -> Option<Tid> {
    let text = std::fs::read_to_string(note).ok()?;
    Tid::from_raw(text.strip_suffix('\n')?.parse().ok()?)
}

/// Whether there is a process of this number that has not ended.
pub(crate) fn lives(process: Tid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}
