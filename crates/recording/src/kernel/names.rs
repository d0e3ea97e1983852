//! The names of threads: those that exist at the start, and those that are born with their parent's.
//!
//! A new thread has its creator's name until it gives itself another one, and the kernel tells only the second. A thread
//! can name itself on one processor and create another thread on the next, so that who inherits what is known only in
//! the order of time over all processors: births stay births until they are taken from the merged stream. The table is
//! shared by the sources of all processors and locked when a thread is created, named or ends.

use super::options::KernelScope;
use std::collections::HashMap;
use std::sync::Mutex;
use talea_record::declaration::Text;
use talea_record::event::{ThreadExit, ThreadName, Typed};
use talea_record::{Event, Record};
use talea_time::Instant;

/// A thread is created. Only between a decoder and the merged stream: what is taken from there is its name.
const BIRTH: Event = Event(u16::MAX);

/// The thread `tid` of the process `pid` is created by the thread `parent`.
pub(super) fn birth(time: Instant, cpu: u16, tid: u32, pid: u32, parent: u32) -> Record {
    let named = ThreadName { name: Text::new(""), tid, pid }.at(time, cpu);
    Record { event: BIRTH, words: [u64::from(parent), 0], ..named }
}

/// Names by thread number.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashMap<u32, Text>>);

impl Names {
    /// What `record`, the next one in the order of time over all processors, says: the name of a thread that is created,
    /// or nothing where its creator's name is not known; any other record as it is.
    #[inline]
    pub fn told(&self, record: Record) -> Option<Record> {
        match record.event {
            BIRTH => self.inherited(record),
            Event::THREAD_NAME | Event::THREAD_EXIT => {
                self.note(&record);
                Some(record)
            }
            _ => Some(record),
        }
    }

    fn note(&self, record: &Record) {
        match record.typed() {
            Typed::ThreadName(ThreadName { name, tid, .. }) => {
                self.table().insert(tid, name);
            }
            Typed::ThreadExit(ThreadExit { tid, .. }) => {
                self.table().remove(&tid);
            }
            _ => {}
        }
    }

    fn inherited(&self, birth: Record) -> Option<Record> {
        let (parent, child, pid) = (birth.words[0] as u32, birth.causal as u32, (birth.causal >> 32) as u32);
        let mut table = self.table();
        let name = *table.get(&parent)?;
        table.insert(child, name);
        Some(ThreadName { name, tid: child, pid }.at(birth.time, birth.cpu))
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Text>> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

/// Reads the names of all threads in scope from /proc and returns them as records of the instant `now`. Threads that
/// end meanwhile, and those that /proc hides, are left out.
pub(super) fn scan(scope: KernelScope, now: Instant) -> Vec<Record> {
    let mut records = Vec::new();
    for pid in processes(scope) {
        for tid in threads(pid).unwrap_or_default() {
            let Ok(name) = std::fs::read(format!("/proc/{pid}/task/{tid}/comm")) else { continue };
            let name = Text::from_bytes(name.strip_suffix(b"\n").unwrap_or(&name));
            records.push(ThreadName { name, tid, pid }.at(now, Record::NO_CPU));
        }
    }
    records
}

fn processes(scope: KernelScope) -> Vec<u32> {
    match scope {
        KernelScope::Process(pid) => vec![pid],
        KernelScope::Machine => numbers("/proc").unwrap_or_default(),
    }
}

/// The numbers of a process's threads, in ascending order.
pub(super) fn threads(pid: u32) -> std::io::Result<Vec<u32>> {
    numbers(&format!("/proc/{pid}/task"))
}

/// The entries of a directory that are numbers, in ascending order.
fn numbers(directory: &str) -> std::io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(directory)?;
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::source::{Delivery, Tally};
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use talea_record::merge::{Merge, RecordSource};

    /// What one processor tells, as it is decoded.
    struct Decoded(VecDeque<Record>, Delivery);

    impl RecordSource for Decoded {
        fn peek(&mut self) -> Option<Record> {
            self.0.front().copied()
        }
        fn take(&mut self) -> Option<Record> {
            let record = self.0.pop_front()?;
            self.1.told(record)
        }
    }

    fn at(ns: i64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn named(time: i64, cpu: u16, tid: u32, name: &str) -> Record {
        ThreadName { name: Text::new(name), tid, pid: 70 }.at(at(time), cpu)
    }

    fn born(time: i64, cpu: u16, tid: u32, parent: u32) -> Record {
        birth(at(time), cpu, tid, 70, parent)
    }

    fn ended(time: i64, cpu: u16, tid: u32) -> Record {
        ThreadExit { tid, pid: 70 }.at(at(time), cpu)
    }

    /// The records of processors, each in its order, as they are told.
    fn told(processors: [Vec<Record>; 2]) -> Vec<Record> {
        let names = Arc::new(Names::default());
        let delivery = || Delivery { names: Arc::clone(&names), tally: Arc::new(Tally::default()) };
        let mut merge =
            Merge::new(processors.map(|records| Decoded(records.into(), delivery())).into_iter().collect());
        let mut told = Vec::new();
        let delivered = merge.drain(&mut told);
        assert_eq!(delivered, told.len() as u64);
        let counted = merge.sources().iter().map(|source| source.1.tally.records.load(Ordering::Relaxed));
        assert_eq!(counted.sum::<u64>(), delivered, "what is not told is not counted");
        told
    }

    #[test]
    fn a_thread_inherits_the_name_that_its_creator_had_wherever_either_was() {
        // It names itself on processor 1 and goes on to 0, where it creates others before and after its next name.
        let on_0 = vec![named(10, 0, 7, "creator"), born(30, 0, 8, 7), born(35, 0, 9, 8), born(50, 0, 10, 7)];
        let on_1 = vec![named(20, 1, 7, "first"), named(40, 1, 7, "second")];
        let expected = [
            named(10, 0, 7, "creator"),
            named(20, 1, 7, "first"),
            named(30, 0, 8, "first"),
            named(35, 0, 9, "first"),
            named(40, 1, 7, "second"),
            named(50, 0, 10, "second"),
        ];
        assert_eq!(told([on_0.clone(), on_1.clone()]), expected);
        assert_eq!(told([on_1, on_0]), expected);
    }

    #[test]
    fn a_number_is_forgotten_when_its_thread_ends_and_not_before() {
        let on_0 = vec![named(10, 0, 7, "ends"), ended(40, 0, 7)];
        let on_1 = vec![born(30, 1, 8, 7), born(50, 1, 9, 7), born(60, 1, 7, 8)];
        let expected =
            [named(10, 0, 7, "ends"), named(30, 1, 8, "ends"), ended(40, 0, 7), named(60, 1, 7, "ends")];
        assert_eq!(told([on_0, on_1]), expected, "nobody knows the name of a forgotten thread's child");
    }
}
