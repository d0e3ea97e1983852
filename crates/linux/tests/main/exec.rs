//! A process that is kept from running in the middle of an exec, when newer kernels have those wait who read its `stat`.

use crate::may_use_fifo;
use std::fs;
use std::hint::spin_loop;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use talea_linux::affinity;
use talea_linux::proc::{self, Activity};
use talea_linux::sched::{self, Policy};
use talea_linux::thread::spawn;
use talea_linux::{Tid, signal_safe};

/// How often it is stopped somewhere: most of its time it spends in exec.
const ATTEMPTS: usize = 100;
/// How long a reader may take that waits for nobody.
const SOON: Duration = Duration::from_millis(50);
/// How long it takes at most to have a processor.
const EVER: Duration = Duration::from_secs(20);

/// What `read` returns, unless it waits as long as `patience`.
fn within<T: Send + 'static>(patience: Duration, read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = channel();
    thread::spawn(move || tell.send(read()));
    told.recv_timeout(patience).ok()
}

#[test]
fn what_a_process_does_is_told_without_waiting_for_it() {
    let allowed = affinity::allowed().unwrap();
    let [own, .., other] = allowed[..] else { return talea_measure::skip("this needs 2 CPUs") };
    if !may_use_fifo(2) {
        return;
    }
    affinity::set(None, &[own]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("again");
    fs::write(&script, format!("exec sh {}\n", script.display())).unwrap();
    let mut child = Command::new("sh").arg(&script).spawn().unwrap();
    let process = Tid::from_child(&child);
    affinity::set(Some(process), &[other]).unwrap();
    sched::lend(process, Policy::Fifo(1)).unwrap();
    let mut met = Vec::new();
    let mut is_locked = false;
    while met.len() < ATTEMPTS && !is_locked {
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let above = spawn("above", Policy::Fifo(2), &[other], 64 * 1024, move || {
            while !told.load(Ordering::Acquire) {
                spin_loop();
            }
        });
        let (tell, reader) = channel();
        let stat = move || {
            tell.send(rustix::thread::gettid()).unwrap();
            signal_safe::stat_field(process.as_raw_nonzero().get(), 4).is_some()
        };
        // Somebody who has no processor does not wait for the process.
        is_locked =
            within(SOON, stat).is_none() && proc::activity(reader.recv().unwrap()) == Activity::Blocked;
        let found = within(EVER, move || {
            let (activity, switches) = proc::activity_and_switches(process);
            assert_eq!(activity, proc::activity(process));
            assert!(
                !proc::is_gone(process) && !proc::is_stopped(process) && !proc::is_kernel_thread(process)
            );
            let known =
                proc::threads(process, 4).unwrap() == [process] && proc::thread_count(process) == Some(1);
            let relatives = (proc::process_of(process), proc::parent_of(process));
            let named =
                proc::name_of(process).is_some() && proc::families(vec![process], 4, |_| true).len() == 1;
            (activity, switches.is_some(), known, relatives, named)
        });
        is_over.store(true, Ordering::Release);
        above.unwrap().join().unwrap();
        met.push(found);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let parent = Some(rustix::process::getpid());
    let expected = Some((Activity::Runnable, true, true, (Some(process), parent), true));
    assert!(met.iter().all(|found| *found == expected), "{met:?}");
    if !is_locked {
        talea_measure::skip("the kernel tells a `stat` without waiting for who is in the middle of an exec");
    }
}
