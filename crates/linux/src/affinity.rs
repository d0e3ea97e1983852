//! Which CPUs a thread may use.

use crate::Tid;
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::thread::Builder;
use thiserror::Error;

/// Why a thread's CPUs could not be set or read. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AffinityError {
    /// The list is empty: a thread needs a CPU.
    #[error("the list of CPUs is empty; name at least one of {}", list(.allowed))]
    Empty {
        /// The CPUs this process may use.
        allowed: Vec<u16>,
    },
    /// None or not all of the CPUs exist and are allowed to this process.
    #[error(
        "CPUs {} are not available to this process, which may use {}; \
         choose among those, or widen its cpuset (`taskset -p`, systemd AllowedCPUs=)",
        list(.refused), list(.allowed)
    )]
    NotAvailable {
        /// The CPUs asked for that are missing.
        refused: Vec<u16>,
        /// The CPUs this process may use.
        allowed: Vec<u16>,
    },
    /// The thread ended or never existed.
    #[error("there is no thread {0}")]
    NoSuchThread(i32),
    /// The thread belongs to somebody else.
    #[error("thread {0} belongs to another user; this needs CAP_SYS_NICE")]
    NotPermitted(i32),
    /// The kernel refused for another reason.
    #[error("the kernel refused to handle CPU affinity: {0}")]
    Os(Errno),
}

/// Sets the CPUs of a thread (`None`: the calling one) to exactly `cpus`.
///
/// The kernel silently narrows a list to the cpuset of the process; a narrowed list is an error
/// here, before anything is changed.
///
/// # Errors
/// See [`AffinityError`].
pub fn set(thread: Option<Tid>, cpus: &[u16]) -> Result<(), AffinityError> {
    let set = checked(cpus)?;
    sched_setaffinity(thread, &set).map_err(|errno| explain(thread, errno))
}

/// The CPUs a thread (`None`: the calling one) may use, ascending.
///
/// # Errors
/// See [`AffinityError`].
pub fn get(thread: Option<Tid>) -> Result<Vec<u16>, AffinityError> {
    let set = sched_getaffinity(thread).map_err(|errno| explain(thread, errno))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u16).collect())
}

/// The CPUs this process may use: those its main thread's cpuset leaves it and that are online,
/// whatever narrower list the calling thread has. Found by asking for all of them in a scratch thread.
///
/// # Errors
/// See [`AffinityError`].
pub fn allowed() -> Result<Vec<u16>, AffinityError> {
    // With memory locked, every page of a stack is there; and the C library would keep a large one for the next thread.
    let scratch = Builder::new().stack_size(SCRATCH_STACK).spawn(|| {
        let mut all = CpuSet::new();
        (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
        sched_setaffinity(None, &all).map_err(|errno| explain(None, errno))?;
        get(None)
    });
    let scratch = scratch.expect("there is room for one more thread");
    scratch.join().expect("the scratch thread does not panic")
}

const SCRATCH_STACK: usize = 64 * 1024;

/// The set of `cpus`, if each of them is available.
///
/// # Errors
/// See [`AffinityError`].
pub fn checked(cpus: &[u16]) -> Result<CpuSet, AffinityError> {
    let allowed = allowed()?;
    if cpus.is_empty() {
        return Err(AffinityError::Empty { allowed });
    }
    let refused: Vec<u16> = cpus.iter().copied().filter(|cpu| !allowed.contains(cpu)).collect();
    if !refused.is_empty() {
        return Err(AffinityError::NotAvailable { refused, allowed });
    }
    let mut set = CpuSet::new();
    cpus.iter().for_each(|&cpu| set.set(usize::from(cpu)));
    Ok(set)
}

fn explain(thread: Option<Tid>, errno: Errno) -> AffinityError {
    let tid = thread.unwrap_or_else(rustix::thread::gettid).as_raw_nonzero().get();
    match errno {
        Errno::SRCH => AffinityError::NoSuchThread(tid),
        Errno::PERM => AffinityError::NotPermitted(tid),
        other => AffinityError::Os(other),
    }
}

/// CPU numbers as people write them: `0-3,7`.
pub fn list(cpus: &[u16]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [one] => one.to_string(),
            [first, second] => format!("{first},{second}"),
            [first, .., last] => format!("{first}-{last}"),
            [] => unreachable!("chunk_by makes no empty chunks"),
        })
        .collect::<Vec<_>>()
        .join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_with_ranges() {
        assert_eq!(list(&[]), "");
        assert_eq!(list(&[3]), "3");
        assert_eq!(list(&[1, 0]), "0,1");
        assert_eq!(list(&[7, 0, 1, 2, 3, 2]), "0-3,7");
    }

    #[test]
    fn an_empty_list_names_what_there_is() {
        let Err(AffinityError::Empty { allowed }) = set(None, &[]) else { panic!("accepted") };
        assert_eq!(allowed, super::allowed().unwrap());
    }

    #[test]
    fn missing_cpus_are_named_and_nothing_changes() {
        let before = get(None).unwrap();
        let first = super::allowed().unwrap()[0];
        let error = set(None, &[first, 1023, 40_000]).unwrap_err();
        assert!(
            matches!(&error, AffinityError::NotAvailable { refused, .. } if *refused == [1023, 40_000]),
            "{error}"
        );
        assert_eq!(get(None).unwrap(), before);
    }
}
