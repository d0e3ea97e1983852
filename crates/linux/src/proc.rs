//! What proc tells of threads: which a process has, and whether one of them can run.

use crate::Tid;
use crate::signal_safe::stat_field;
use std::fs;
use std::io::{self, Read, Write};

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
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    Tid::from_raw(line.trim().parse().ok()?)
}

/// The name of a thread, as it calls itself.
pub fn name_of(tid: Tid) -> Option<String> {
    let name = fs::read(format!("/proc/{tid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// Whether it is the kernel's own, which nobody else schedules.
pub fn is_kernel_thread(tid: Tid) -> bool {
    /// Of the kernel's `sched.h`, which proc(5) refers to for the ninth field.
    const PF_KTHREAD: u64 = 0x0020_0000;
    stat_field(tid.as_raw_nonzero().get(), 9).is_some_and(|flags| flags & PF_KTHREAD != 0)
}

/// How many threads a process has.
pub fn thread_count(pid: Tid) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Threads:"))?.trim().parse().ok()
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

/// What a thread is doing, by the third field of its `stat`. Allocates nothing.
pub fn activity(tid: Tid) -> Activity {
    read_stat(tid, &mut [0; 128]).map_or(Activity::Gone, activity_in)
}

/// The same, and the processor on which it is or was last. Allocates nothing.
pub fn activity_and_cpu(tid: Tid) -> (Activity, Option<u16>) {
    let mut buffer = [0; 1024];
    let Some(stat) = read_stat(tid, &mut buffer) else { return (Activity::Gone, None) };
    // The 39th field; the state, with which this begins, is the third.
    let field = stat.split(|byte| *byte == b' ').nth(39 - 3);
    let cpu = field.and_then(|field| std::str::from_utf8(field).ok()?.parse().ok());
    (activity_in(stat), cpu)
}

fn activity_in(stat: &[u8]) -> Activity {
    match stat.first() {
        Some(b'R') => Activity::Runnable,
        Some(b'Z' | b'X') | None => Activity::Gone,
        Some(_) => Activity::Blocked,
    }
}

/// The `stat` of a thread from its state on, as far as it fits.
fn read_stat(tid: Tid, buffer: &mut [u8]) -> Option<&[u8]> {
    let mut path = [0_u8; 32];
    let mut rest = &mut path[..];
    write!(rest, "/proc/{tid}/stat").expect("a thread's number has at most seven digits");
    let length = 32 - rest.len();
    let path = std::str::from_utf8(&path[..length]).expect("digits and letters");
    let length = fs::File::open(path).and_then(|mut file| file.read(buffer)).ok()?;
    // The name, in parentheses, may contain anything; it has at most 64 bytes.
    let text = &buffer[..length];
    let state = text.iter().rposition(|byte| *byte == b')')? + 2;
    text.get(state..)
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
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:\tT"))
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
        assert!(threads(process, 4_096).unwrap().contains(&gettid()));
        assert!(run_time_ns(gettid()).is_some());
        assert!(!is_kernel_thread(gettid()));
    }

    #[test]
    fn a_thread_has_run_last_where_it_was_bound() {
        let bound = std::thread::spawn(|| {
            let processor = rustix::thread::sched_getcpu();
            let mut set = rustix::thread::CpuSet::new();
            set.set(processor);
            rustix::thread::sched_setaffinity(None, &set).unwrap();
            (activity_and_cpu(gettid()), processor as u16)
        });
        let (last, processor) = bound.join().unwrap();
        assert_eq!(last, (Activity::Runnable, Some(processor)));
        assert_eq!(activity_and_cpu(Tid::from_raw(4_194_304).unwrap()), (Activity::Gone, None));
    }

    #[test]
    fn the_kernels_own_threads_are_known() {
        // Where process numbers are the machine's own, the second is the parent of all others of its kind.
        let kthreadd = Tid::from_raw(2).unwrap();
        let is_it = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd");
        assert_eq!(is_kernel_thread(kthreadd), is_it);
    }
}
