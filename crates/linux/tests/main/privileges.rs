//! Everything works, or is refused with a remedy, without privileges: tried by really giving them
//! up in a child process.

use crate::is_root;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::process::Command;
use talea_linux::memory::{self, LockError};
use talea_linux::sched::{Policy, SchedError};
use talea_linux::thread::{SpawnError, spawn};
use talea_time::{Duration, Work};

/// The user and group "nobody".
const NOBODY: u32 = 65_534;
const STACK: usize = 64 * 1024;
/// Tells the ignored tests that they are in a process of their own, which they may cripple.
const OWN_PROCESS: &str = "TALEA_TEST_IN_OWN_PROCESS";

/// Runs one of the ignored tests below in a process of its own and expects it to pass.
fn run_in_own_process(test: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).env(OWN_PROCESS, "yes");
    let output = talea_measure::output_of(&mut command).unwrap();
    let (said, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{test}:\n{said}{failed}");
}

/// Sets the limits and becomes "nobody" with no way back; says so if root may not do that here.
fn is_nobody(limits: [(Resource, u64); 2]) -> bool {
    assert!(std::env::var_os(OWN_PROCESS).is_some(), "this test ends its process's privileges");
    let became = become_nobody(limits);
    if let Err(errno) = became {
        talea_measure::skip(format!(
            "root lacks CAP_SETUID and CAP_SETGID, or CAP_SYS_RESOURCE to raise limits, here: {errno}"
        ));
    }
    became.is_ok()
}

fn become_nobody(limits: [(Resource, u64); 2]) -> Result<(), Errno> {
    for (resource, limit) in limits {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    // SAFETY: the calls take plain numbers and an empty list. The C library's functions change every
    // thread of the process, which runs nothing but this test.
    unsafe {
        permitted(libc::setgroups(0, std::ptr::null()))?;
        permitted(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
        permitted(libc::setresuid(NOBODY, NOBODY, NOBODY))
    }
}

fn permitted(code: libc::c_int) -> Result<(), Errno> {
    match code {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).expect("the call has set it")),
    }
}

#[test]
fn without_privileges_real_time_is_refused_with_the_remedy() {
    if is_root() {
        run_in_own_process("privileges::as_nobody_without_limits");
    }
}

#[test]
#[ignore = "run by without_privileges_real_time_is_refused_with_the_remedy, as nobody"]
fn as_nobody_without_limits() {
    if !is_nobody([(Resource::Rtprio, 0), (Resource::Memlock, 64 * 1024)]) {
        return;
    }
    let error = spawn("lane", Policy::Fifo(7), &[], STACK, || ()).unwrap_err();
    let SpawnError::Policy { source, .. } = &error else { panic!("{error}") };
    let wanted = Policy::Fifo(7);
    assert_eq!(*source, SchedError::PriorityNotPermitted { wanted, priority: 7, limit: 0 });
    for part in ["thread lane", "SCHED_FIFO 7", "CAP_SYS_NICE", "RLIMIT_RTPRIO of at least 7", "setcap"] {
        assert!(error.to_string().contains(part), "\"{part}\" is missing in: {error}");
    }

    let period = Duration::from_millis(100);
    let wanted = Policy::Deadline { runtime: Work::from_millis(1), deadline: period, period };
    let error = spawn("reserved", wanted, &[], STACK, || ()).unwrap_err();
    let SpawnError::Policy { source, .. } = &error else { panic!("{error}") };
    assert_eq!(*source, SchedError::DeadlineNotPermitted { wanted });

    let error = memory::lock_all().unwrap_err();
    assert_eq!(error, LockError::Limit { limit: "64 KiB".into() });
    assert!(error.to_string().contains("ulimit -l unlimited"), "{error}");

    // And what needs no privilege works.
    let thread = spawn("ordinary", Policy::Other, &[], STACK, || 7).unwrap();
    assert!(thread.report().is_as_wanted());
    assert_eq!(thread.join().unwrap(), 7);
}

#[test]
fn the_limit_grants_what_the_capability_would() {
    if is_root() {
        run_in_own_process("privileges::as_nobody_with_limits");
    }
}

#[test]
#[ignore = "run by the_limit_grants_what_the_capability_would, as nobody"]
fn as_nobody_with_limits() {
    if !is_nobody([(Resource::Rtprio, 10), (Resource::Memlock, 1 << 40)]) {
        return;
    }
    let thread = spawn("lane", Policy::Fifo(10), &[], STACK, || 7).unwrap();
    assert!(thread.report().is_as_wanted(), "{}", thread.report());
    assert_eq!(thread.join().unwrap(), 7);
    let error = spawn("lane", Policy::Fifo(11), &[], STACK, || ()).unwrap_err();
    let SpawnError::Policy { source, .. } = &error else { panic!("{error}") };
    let wanted = Policy::Fifo(11);
    assert_eq!(*source, SchedError::PriorityNotPermitted { wanted, priority: 11, limit: 10 });
    memory::lock_all().unwrap();
    memory::unlock_all().unwrap();
}

#[test]
fn locked_memory_is_there() {
    run_in_own_process("privileges::in_locked_memory");
}

#[test]
#[ignore = "run by locked_memory_is_there: all memory of its process is locked"]
fn in_locked_memory() {
    if let Err(refused) = memory::lock_all() {
        return talea_measure::skip(refused.to_string());
    }
    let before = not_there();
    let later = vec![1_u8; 1 << 20];
    // What is allocated from now on is there, too; and what only unwinding reads need not be.
    assert_eq!((before, not_there()), (Vec::new(), Vec::new()), "{}", later.len());
}

/// The mapped code and data of this process of which not every page is in memory.
fn not_there() -> Vec<String> {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut missing = Vec::new();
    let (mut mapped, mut size) = ("", "");
    for line in smaps.lines() {
        match line.split_once(':').filter(|(key, _)| !key.contains(' ')) {
            Some(("Size", kibibytes)) => size = kibibytes.trim(),
            Some(("Rss", kibibytes)) if kibibytes.trim() != size => {
                missing.push(format!("{mapped}: {} of {size}", kibibytes.trim()))
            }
            Some(_) => (),
            None => mapped = line,
        }
    }
    let permissions = |mapped: &String| {
        mapped.split_once(' ').is_some_and(|(_, rest)| rest.starts_with("rw") || rest.starts_with("r-x"))
    };
    missing.into_iter().filter(permissions).collect()
}
