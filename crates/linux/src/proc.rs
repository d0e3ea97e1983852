//! What proc tells of threads: which a process has, and whether one of them can run.

use crate::Tid;
use std::fs;
use std::io::{self, Read, Write};
use std::str::FromStr;

/// The threads of a process, at most `most` of them.
pub fn threads(pid: Tid, most: usize) -> io::Result<Vec<Tid>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    Ok(entries.filter_map(number).filter_map(Tid::from_raw).take(most).collect())
}

/// `known` processes, and all that they have started and that still is theirs. Those for which `is_heir` is false are left out, with what they have
/// started. No more than `most` are looked at, the youngest first. Who starts something and ends before anybody looks has left an orphan, which is
/// not found.
pub fn families(known: Vec<Tid>, most: usize, is_heir: impl Fn(Tid) -> bool) -> Vec<Tid> {
    let mut all = known;
    let (mut next, mut refused) = (0, 0);
    while let Some(&process) = all.get(next).filter(|_| all.len() < most) {
        for thread in threads(process, most).unwrap_or_default() {
            let children = fs::read_to_string(format!("/proc/{process}/task/{thread}/children"));
            let children = children.unwrap_or_default();
            let children = children.split_whitespace().rev();
            for child in children.filter_map(|child| Tid::from_raw(child.parse().ok()?)) {
                if all.len() + refused >= most {
                    break;
                }
                match all.contains(&child) {
                    true => {}
                    false if is_heir(child) => all.push(child),
                    false => refused += 1,
                }
            }
        }
        next += 1;
    }
    all.truncate(most);
    all
}

/// The process of a thread.
pub fn process_of(tid: Tid) -> Option<Tid> {
    Tid::from_raw(number_in_status(tid, "Tgid")?)
}

/// The process that has started a process; none of one that is in another PID namespace.
pub fn parent_of(pid: Tid) -> Option<Tid> {
    Tid::from_raw(number_in_status(pid, "PPid")?)
}

/// The number of the leader of this process's session; 0 of one that is in another PID namespace.
pub fn own_session() -> i32 {
    // SAFETY: the call takes a number.
    unsafe { libc::getsid(0) }
}

/// Whether a process is in the group of this leader; nothing if it has gone.
pub fn is_in_group(pid: Tid, leader: Tid) -> Option<bool> {
    // SAFETY: the call takes a number. It returns 0 where the leader is in another PID namespace.
    match unsafe { libc::getpgid(pid.as_raw_nonzero().get()) } {
        -1 => None,
        group => Some(group == leader.as_raw_nonzero().get()),
    }
}

/// The name of a thread, as it calls itself.
pub fn name_of(tid: Tid) -> Option<String> {
    let name = fs::read(format!("/proc/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// Whether it is the kernel's own, which nobody else schedules.
pub fn is_kernel_thread(tid: Tid) -> bool {
    // Those have no memory of their own, nor has who has ended.
    let has_none =
        |status: Vec<u8>| activity_in(&status) != Activity::Gone && value_in(&status, "VmSize").is_none();
    whole_status(tid).is_some_and(has_none)
}

/// How many threads a process has.
pub fn thread_count(pid: Tid) -> Option<usize> {
    number_in_status(pid, "Threads")
}

/// Whether a thread could use a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It runs, or would if it had a processor.
    Runnable,
    /// It waits for something.
    Blocked,
    /// It has ended.
    Gone,
}

/// What a thread is doing, by its `status`. Allocates nothing, and waits for nobody, unlike a reader of `stat`: see [`crate::signal_safe::stat_field`].
pub fn activity(tid: Tid) -> Activity {
    read_status(tid, &mut [0; 256]).map_or(Activity::Gone, activity_in)
}

/// The same, and how often it has given up its processor or lost it, if that stands in the first 4 KiB of its `status`. Allocates nothing.
pub fn activity_and_switches(tid: Tid) -> (Activity, Option<u64>) {
    let mut buffer = [0; STATUS];
    let Some(status) = read_status(tid, &mut buffer) else { return (Activity::Gone, None) };
    let switches = number_in::<u64>(status, "voluntary_ctxt_switches");
    let switches = switches.zip(number_in::<u64>(status, "nonvoluntary_ctxt_switches"));
    (activity_in(status), switches.map(|(given_up, lost)| given_up + lost))
}

/// Bytes of a `status` that are read: all of it, but for threads of many hundred groups.
const STATUS: usize = 4096;

fn activity_in(status: &[u8]) -> Activity {
    match value_in(status, "State").and_then(<[u8]>::first) {
        Some(b'R') => Activity::Runnable,
        Some(b'Z' | b'X') | None => Activity::Gone,
        Some(_) => Activity::Blocked,
    }
}

/// The value of a whole line of a `status`. A name cannot be taken for one: in names the kernel escapes line feeds.
fn value_in<'a>(status: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let mut lines = status.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    lines.find_map(|line| line.strip_prefix(key.as_bytes())?.strip_prefix(b":\t"))
}

fn number_in<N: FromStr>(status: &[u8], key: &str) -> Option<N> {
    std::str::from_utf8(value_in(status, key)?).ok()?.parse().ok()
}

fn number_in_status<N: FromStr>(tid: Tid, key: &str) -> Option<N> {
    number_in(&whole_status(tid)?, key)
}

/// All of a `status`, which lists all groups of a thread in its midst.
fn whole_status(tid: Tid) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{tid}/status")).ok()
}

/// The `status` of a thread, as far as it fits.
fn read_status(tid: Tid, buffer: &mut [u8]) -> Option<&[u8]> {
    let mut path = [0_u8; 32];
    let mut rest = &mut path[..];
    write!(rest, "/proc/{tid}/status").expect("a thread's number has at most seven digits");
    let length = 32 - rest.len();
    let path = std::str::from_utf8(&path[..length]).expect("digits and letters");
    let length = fs::File::open(path).and_then(|mut file| file.read(buffer)).ok()?;
    Some(&buffer[..length])
}

/// Whether nothing of a process, or of a thread, is left. A process may live on after its first thread.
pub fn is_gone(tid: Tid) -> bool {
    let all_are = |threads: Vec<Tid>| threads.into_iter().all(is_thread_gone);
    is_thread_gone(tid) && threads(tid, usize::MAX).map_or(true, all_are)
}

/// Whether nothing of a thread is left.
pub fn is_thread_gone(tid: Tid) -> bool {
    activity(tid) == Activity::Gone
}

/// Whether a process is stopped by a signal.
pub fn is_stopped(pid: Tid) -> bool {
    read_status(pid, &mut [0; 256]).and_then(|status| value_in(status, "State")?.first()) == Some(&b'T')
}

/// Processor time of a thread in nanoseconds, as the kernel last accounted it.
pub(crate) fn run_time_ns(tid: Tid) -> Option<i64> {
    let text = fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::gettid;

    #[test]
    fn the_reader_is_running() {
        assert_eq!(activity(gettid()), Activity::Runnable);
        assert_eq!(activity(Tid::from_raw(4_194_304).unwrap()), Activity::Gone);
        let process = process_of(gettid()).unwrap();
        assert_eq!(process, rustix::process::getpid());
        assert_eq!(parent_of(process), rustix::process::getppid());
        let group = rustix::process::getpgrp();
        let gone = Tid::from_raw(4_194_304).unwrap();
        assert_eq!((is_in_group(process, group), is_in_group(gone, group)), (Some(true), None));
        assert!(own_session() >= 0);
        assert!(threads(process, 4_096).unwrap().contains(&gettid()));
        assert!(run_time_ns(gettid()).is_some());
        assert!(!is_kernel_thread(gettid()));
    }

    #[test]
    fn who_sleeps_has_given_up_its_processor() {
        let (before, after) = std::thread::spawn(|| {
            let before = activity_and_switches(gettid());
            std::thread::sleep(std::time::Duration::from_millis(1));
            (before, activity_and_switches(gettid()))
        })
        .join()
        .unwrap();
        assert_eq!((before.0, after.0), (Activity::Runnable, Activity::Runnable));
        assert!(after.1.unwrap() > before.1.unwrap(), "{before:?}, {after:?}");
        assert_eq!(activity_and_switches(Tid::from_raw(4_194_304).unwrap()), (Activity::Gone, None));
    }

    #[test]
    fn a_name_is_not_taken_for_a_state() {
        let status = b"Name:\ta\\nState:\tZ\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t12";
        assert_eq!(activity_in(status), Activity::Blocked);
        assert_eq!((value_in(status, "Umask"), value_in(status, "Tgid")), (Some(&b"0022"[..]), None));
    }

    #[test]
    fn the_kernels_own_threads_are_known() {
        // Where process numbers are the machine's own, the second is the parent of all others of its kind.
        let kthreadd = Tid::from_raw(2).unwrap();
        let is_it = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd");
        assert_eq!(is_kernel_thread(kthreadd), is_it);
    }
}
