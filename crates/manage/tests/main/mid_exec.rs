//! Programs that are kept from running in the middle of an exec, where newer kernels have those wait who read a `stat`. Nobody of the set does: what is
//! above goes on, and everybody has back what he had.

use crate::adopted::Group;
use crate::programs::{eventually, stage};
use crate::{REMOVED, admission, after, flat};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use talea_linux::proc::{self, Activity};
use talea_linux::sched::{self, Policy};
use talea_linux::{Tid, affinity};
use talea_manage::{Blocked, Blocks, ManagedSet, MemberId, Target, Waker};
use talea_measure::skip;
use talea_model::ChildProcesses;
use talea_policy::hierarchy::{Parameters, SchedulerId};
use talea_policy::scheduler::config;
use talea_time::Work;

/// How often a program is stopped somewhere.
const ATTEMPTS: usize = 100;
/// How long a reader takes that waits for nobody.
const SOON: std::time::Duration = std::time::Duration::from_millis(20);
/// How long it takes at most to have a processor.
const EVER: std::time::Duration = std::time::Duration::from_secs(20);

/// What comes of it, unless it takes longer.
fn within<T: Send + 'static>(
    patience: std::time::Duration,
    what: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(what()));
    told.recv_timeout(patience).ok()
}

/// Whether somebody who reads the `stat` of one of the threads waits, and not for a processor.
fn has_to_wait_for(threads: &[u32]) -> bool {
    let (tell, told) = channel();
    let threads = threads.to_vec();
    let read = move || {
        tell.send(rustix::thread::gettid()).unwrap();
        threads.iter().for_each(|tid| _ = std::fs::read(format!("/proc/{tid}/stat")));
    };
    within(SOON, read).is_none() && told.recv().is_ok_and(|tid| proc::activity(tid) == Activity::Blocked)
}

/// A thread above the others, which has its processor while it is to keep them from running, and otherwise waits.
struct Above {
    keeps: Arc<AtomicBool>,
    waker: Waker,
}

impl Above {
    fn spawn(set: &mut ManagedSet, root: SchedulerId) -> Self {
        let keeps = Arc::new(AtomicBool::new(false));
        let is_keeping = Arc::clone(&keeps);
        let above = admission("above", root, Parameters::Priority(2));
        let spawned = set.spawn_waiting(above, Blocks::ByHandle, move |handle| {
            while handle.block() != Blocked::Ended {
                while is_keeping.load(Ordering::Acquire) && !handle.is_ended() {
                    std::hint::spin_loop();
                }
            }
        });
        let (_, waker) = spawned.unwrap();
        Above { keeps, waker }
    }

    /// Keeps the others from running from a moment on in which one of `threads` is in the middle of an exec, by the kernel's word: somebody who reads its
    /// `stat` waits. Nothing if there was none.
    fn keep_in_an_exec(&self, set: &ManagedSet, threads: impl Fn() -> Vec<u32>) -> Option<Vec<u32>> {
        for _ in 0..ATTEMPTS {
            after(set, Work::from_micros(500));
            self.keeps.store(true, Ordering::Release);
            self.waker.wake();
            let threads = threads();
            if has_to_wait_for(&threads) {
                return Some(threads);
            }
            self.keeps.store(false, Ordering::Release);
        }
        skip("the kernel tells a `stat` without waiting for who is in the middle of an exec");
        None
    }
}

impl Drop for Above {
    fn drop(&mut self) {
        self.keeps.store(false, Ordering::Release);
    }
}

#[test]
fn a_command() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let again = folder.path().join("again");
    std::fs::write(&again, format!("exec sh {}\n", again.display())).unwrap();
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let mut command = Command::new("sh");
    // More than are left alone without a look whether they sleep.
    command.args(["-c", &format!("ulimit -t 30; {} wait", "sh $0 & ".repeat(8))]).arg(again);
    let below = set.command(admission("below", root, Parameters::Priority(1)), &mut command).unwrap();
    let above = Above::spawn(&mut set, root);
    above.keep_in_an_exec(&set, || set.threads_of(below));
    after(&set, Work::from_millis(60));
    stop(set);
}

/// A process that was there before, with children that begin later and have children; `end` is told the set, its member, and how to list them all, in
/// a moment in which some that nobody has taken in yet are kept from running in the middle of an exec. It returns what goes on.
fn with_children<R>(end: impl FnOnce(ManagedSet, MemberId, &Children<'_>) -> R) -> Option<R> {
    let (_alone, options) = stage(1)?;
    // The more memory a process has the longer its exec is in its middle.
    let much = "much=$(head -c 20000000 /dev/zero | tr '\\0' x)";
    let again = "(while :; do (exec /bin/true); done) & ";
    let script = format!("ulimit -t 30; {much}; read go; {} wait", again.repeat(4));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).stdin(Stdio::piped()).process_group(0);
    let mut group = Group(command.spawn().unwrap());
    let process = Tid::from_child(&group.0);
    let before = affinity::get(Some(process)).unwrap();
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let target = Target::Process(group.0.id(), ChildProcesses::Later);
    let below = set.attach(admission("below", root, Parameters::Priority(1)), target).unwrap();
    let above = Above::spawn(&mut set, root);
    group.0.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let families = || proc::families(vec![process], usize::MAX, |_| true).into_iter();
    let all = || families().filter(|tid| !proc::is_gone(*tid)).collect::<Vec<_>>();
    let number = |tid: Tid| tid.as_raw_nonzero().get() as u32;
    let new = || {
        let known = set.threads_of(below);
        all().into_iter().map(number).filter(|tid| !known.contains(tid)).collect()
    };
    let kept = above.keep_in_an_exec(&set, new)?;
    // The thread above keeps its processor from them still, if it is there.
    let left = end(set, below, &Children { kept, all: &all });
    eventually("all have what they had", || {
        all().into_iter().all(|tid| {
            let cpus = affinity::get(Some(tid)).unwrap_or_else(|_| before.clone());
            let policy = sched::get(Some(tid)).unwrap_or(Policy::Other);
            (cpus, policy) == (before.clone(), Policy::Other)
        })
    });
    Some(left)
}

struct Children<'a> {
    /// One of these is in the middle of an exec.
    kept: Vec<u32>,
    /// Those that there are now, with their parent.
    all: &'a dyn Fn() -> Vec<Tid>,
}

fn stop(set: ManagedSet) {
    assert!(within(EVER, move || set.stop().unwrap()).is_some(), "it does not end");
}

/// How often it is tried that something comes before the kernel gives them a moment, which ordinary threads have once in a second.
const TIMES: usize = 5;
/// Less than until then.
const BEFORE: std::time::Duration = std::time::Duration::from_millis(600);

#[test]
fn children_of_a_process_are_of_its_member() {
    let taken_in_so = |set: ManagedSet, below, children: &Children<'_>| {
        eventually("all are members", || {
            let members = set.threads_of(below);
            let all = (children.all)();
            all.len() > 4 && all.iter().all(|tid| members.contains(&(tid.as_raw_nonzero().get() as u32)))
        });
        let is_so = has_to_wait_for(&children.kept);
        stop(set);
        is_so
    };
    let is_so = (0..TIMES).any(|_| with_children(taken_in_so).unwrap_or(true));
    assert!(is_so, "they are taken in only when they go on");
}

#[test]
fn children_of_a_process_when_the_set_ends() {
    with_children(|set, _, _| stop(set));
}

#[test]
fn children_of_a_process_that_is_dismissed() {
    let has_masks_so = || {
        let mut dismissed = std::time::Instant::now();
        let dismiss = |set: ManagedSet, below, _: &Children<'_>| {
            dismissed = std::time::Instant::now();
            let dismiss = move || {
                set.dismiss(below, REMOVED, |_, _| Ok::<(), ()>(())).unwrap();
                set
            };
            within(EVER, dismiss).expect("it is dismissed")
        };
        with_children(dismiss).is_none_or(|_set| dismissed.elapsed() < BEFORE)
    };
    let is_so = (0..TIMES).any(|_| has_masks_so());
    assert!(is_so, "they have what they had only when they go on");
}
