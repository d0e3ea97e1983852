//! The threads that records speak of, at the place in a trace that has been reached.
//!
//! Two sources tell of them: [definitions](crate::Definition::Thread), which a run enters for its own threads and those that it schedules, and the
//! kernel's records of names, which it has of all threads, if it was recorded. What was told last holds, until the thread ends.

use crate::definition::Definition;
use crate::event::Typed;
use crate::metadata::{Metadata, ThreadEntry};
use crate::record::Record;
use std::collections::HashMap;
use talea_time::Instant;

/// More threads than this are not known at one time.
const THREADS: usize = 1 << 16;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownThread {
    /// The number of its process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The node that it works for, of those that a run has defined.
    pub node: Option<usize>,
}

/// Threads by number, in memory that depends on how many live at one time and how many a run defined.
#[derive(Clone, Debug, Default)]
pub struct KnownThreads {
    known: HashMap<u32, KnownThread>,
    /// Those that are defined from a later instant on, the earliest last.
    later: Vec<ThreadEntry>,
}

impl KnownThreads {
    /// Those of a run whose records are yet to come.
    pub fn of(metadata: &Metadata) -> Self {
        let mut threads = KnownThreads { known: HashMap::new(), later: metadata.threads.clone() };
        threads.sort();
        threads
    }

    /// Takes what was defined meanwhile.
    pub fn define(&mut self, definition: &Definition) {
        if let Definition::Thread(entry) = definition {
            self.later.push(entry.clone());
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.later.sort_by_key(|entry| std::cmp::Reverse(entry.since));
    }

    /// The thread, if it is known.
    pub fn get(&self, tid: u32) -> Option<&KnownThread> {
        self.known.get(&tid)
    }

    /// The thread's name, if it is known.
    pub fn name(&self, tid: u32) -> Option<&str> {
        self.get(tid).map(|thread| thread.name.as_str())
    }

    /// Comes to a record, of which it may learn. A thread that ends by it is still known; see [`Self::forget`].
    pub fn learn(&mut self, record: &Record) {
        self.reach(record.time, |_| ());
        if let Typed::ThreadName(named) = record.typed() {
            let node =
                self.get(named.tid).filter(|known| known.pid == named.pid).and_then(|known| known.node);
            self.enter(named.tid, KnownThread { pid: named.pid, name: named.name.to_string(), node });
        }
    }

    /// Comes to an instant, and says which threads were defined by then.
    pub fn reach(&mut self, time: Instant, mut defined: impl FnMut(u32)) {
        while let Some(entry) = self.later.pop_if(|entry| entry.since <= time) {
            self.enter(entry.tid, KnownThread { pid: entry.pid, name: entry.name, node: Some(entry.node) });
            defined(entry.tid);
        }
    }

    /// Forgets a thread whose end `record` tells: another one may have its number next.
    pub fn forget(&mut self, record: &Record) {
        if let Typed::ThreadExit(exit) = record.typed() {
            self.known.remove(&exit.tid);
        }
    }

    fn enter(&mut self, tid: u32, thread: KnownThread) {
        if self.known.len() < THREADS || self.known.contains_key(&tid) {
            self.known.insert(tid, thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::Text;
    use crate::event::{ThreadExit, ThreadName};

    fn at(time: i64) -> Instant {
        Instant::from_nanos(time)
    }

    fn entry(since: i64, tid: u32, name: &str) -> ThreadEntry {
        ThreadEntry { since: at(since), tid, pid: 5, name: name.into(), node: 0 }
    }

    fn named(time: i64, tid: u32, name: &str) -> Record {
        ThreadName { name: Text::new(name), tid, pid: 5 }.at(at(time), Record::NO_CPU)
    }

    #[test]
    fn what_was_told_last_holds_until_the_thread_ends() {
        let mut metadata = Metadata::bare("x");
        metadata.threads = vec![entry(30, 7, "renamed"), entry(10, 7, "defined"), entry(60, 8, "other")];
        let mut threads = KnownThreads::of(&metadata);
        let mut name_at = |record: Record| {
            threads.learn(&record);
            let name = threads.name(7).map(str::to_owned);
            threads.forget(&record);
            name
        };
        assert_eq!(name_at(named(9, 9, "stranger")), None, "not yet");
        assert_eq!(name_at(named(10, 9, "stranger")).as_deref(), Some("defined"));
        assert_eq!(name_at(named(20, 7, "kernel")).as_deref(), Some("kernel"));
        assert_eq!(name_at(named(30, 9, "stranger")).as_deref(), Some("renamed"));
        let exit = ThreadExit { tid: 7, pid: 5 }.at(at(40), 0);
        assert_eq!(name_at(exit).as_deref(), Some("renamed"), "it ends by that");
        assert_eq!(name_at(named(50, 9, "stranger")), None);
        threads.define(&Definition::Thread(entry(55, 7, "next")));
        threads.learn(&named(58, 9, "stranger"));
        assert_eq!((threads.name(7), threads.name(8)), (Some("next"), None));
        assert_eq!(threads.get(7).and_then(|thread| thread.node), Some(0));
    }

    #[test]
    fn threads_without_end_take_no_memory_without_end() {
        let mut threads = KnownThreads::default();
        let all = THREADS as u32 + 9;
        (1..=all).for_each(|tid| threads.learn(&named(1, tid, "x")));
        assert_eq!((threads.name(all), threads.name(1)), (None, Some("x")));
        threads.learn(&named(2, 1, "y"));
        assert_eq!(threads.name(1), Some("y"), "who is known may get another name");
    }
}
