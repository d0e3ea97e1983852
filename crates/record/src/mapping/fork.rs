//! What a process that is forked off finds in place of its parent's rings: memory of its own, all zeros.
//!
//! A ring has one writer, and after `fork` there would be two, whose pointers lead into the same file. So the child's
//! first step, before `fork` returns in it, is to map private memory over every ring file that its parent writes. There
//! all switches are off, which costs an event of the child what an event costs that nobody wants; what it writes all the
//! same, closes or drops reaches nobody. The parent's event costs nothing for it: there is nothing to check.
//!
//! A process made by `clone` without the C library, or by `vfork`, does not come by here; it is to call `exec`.
//!
//! The step is taken in the child of a process that may have had many threads, so it allocates nothing and takes no lock.
//! It walks a list of [`claims`](super::claims). A fork between mapping and entering, or leaving and unmapping, leaves the
//! child a mapping of the file that nobody has a pointer into.

use super::Mapping;
use super::claims::{Claim, Claims};
use super::unattached::set_unattached;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::io;
use std::sync::OnceLock;

static LIST: Claims = Claims::new();

/// A mapping's place in the list.
#[derive(Debug)]
pub(crate) struct Private {
    _place: Claim,
}

impl Private {
    /// Forks from now on have memory of their own in place of `mapping`, which is to outlive this.
    ///
    /// # Errors
    /// If the system has no memory to remember what to do at a fork.
    pub fn at_fork(mapping: &Mapping) -> io::Result<Self> {
        static HANDLER: OnceLock<i32> = OnceLock::new();
        // SAFETY: the function takes no lock, allocates nothing and does not unwind.
        let refused = *HANDLER.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
        if refused != 0 {
            return Err(io::Error::from_raw_os_error(refused));
        }
        Ok(Private { _place: LIST.enter(mapping.map.as_ptr().cast(), mapping.map.len()) })
    }
}

/// Runs in the one thread of a child, before `fork` returns.
extern "C" fn in_child() {
    // Its threads to come find no stream.
    set_unattached(0);
    for range in LIST.ranges() {
        let (place, length) = (std::ptr::with_exposed_provenance_mut(range.start), range.length);
        // SAFETY: exactly this is a mapping of `Mapping`, whose words are atomics of which every bit pattern is one. It is
        // the child's own, and its one thread is here.
        let mapped = unsafe {
            let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
            mmap_anonymous(place, length, access, flags)
        };
        if mapped.is_err() {
            // Nothing has been unmapped, and to go on would be to write into the parent's rings.
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ring::{RingFile, RingShape};
    use crate::stream::passive::Reading;
    use crate::stream::{Operator, Selection, Switching};
    use crate::{Event, Metadata, Record, RingState, Sink, TraceFile};
    use rustix::process::{Pid, WaitOptions, waitpid};

    crate::family! {
        /// What a parent and its child do.
        forked = 0xe7 {
            /// A step.
            step(number: u64);
            /// Steps.
            counter steps;
        }
    }

    /// Forks; the child does this and ends, and must not fail.
    fn in_a_child(act: impl FnOnce()) {
        // SAFETY: the child runs `act`, which takes no lock that another thread of this process may have had, and ends
        // without running what is registered for the end of the parent.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act));
            // SAFETY: it only ends the process.
            unsafe { libc::_exit(i32::from(done.is_err())) }
        }
        let child = Pid::from_raw(child).expect("there is a child");
        let (_, status) = waitpid(Some(child), WaitOptions::empty()).unwrap().expect("it ends");
        assert_eq!(status.exit_status(), Some(0), "the child failed");
    }

    fn step(number: u64) {
        forked::step(number);
        forked::steps.add(1);
    }

    #[test]
    fn a_child_writes_nothing_into_its_parents_rings() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rings");
        let shape = RingShape { writers: &["own".into(), "other".into()], spare: 1, capacity: 64, later: 0 };
        let mut file = RingFile::create_shaped(&path, &Metadata::bare("forked"), shape).unwrap();
        forked::FAMILY.register().unwrap();
        let mut other = Some(file.writer(1));
        let mut local = Some(file.writer(0).install());
        let wanted: Selection = "forked".parse().unwrap();
        Operator::open(&path).unwrap().switch(&wanted, Switching::On).unwrap();
        let by_hand = Record::from_words([0, 0, 77, 0, u64::from(Event::THREAD.0)]);
        step(1);
        in_a_child(|| {
            // Its events are off, and what writes all the same writes into memory of its own.
            (100..200).for_each(step);
            assert_eq!(local.as_ref().map(|local| local.written()), Some(1));
            for _ in 0..100 {
                local.iter_mut().for_each(|local| local.record(by_hand));
                other.iter_mut().for_each(|other| other.record(by_hand));
            }
            // The parent's are its own.
            drop((local.take(), other.take()));
            (200..300).for_each(step);
        });
        step(2);
        let trace = TraceFile::open(&path).unwrap();
        let numbers: Vec<u64> = trace.records().unwrap().map(|record| record.unwrap().words[0]).collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(trace.reading("forked.steps").unwrap(), Reading::Counter(2));
        let states: Vec<RingState> = file.readers().iter().map(|reader| reader.state()).collect();
        assert_eq!(states, [RingState::Open, RingState::Open, RingState::Unused]);
        drop((local, other));
    }
}
