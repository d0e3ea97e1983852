//! What is known of the threads that records speak of, at the place in the trace that has been reached.

use std::collections::HashMap;
use talea_record::event::{Thread as ThreadAtWork, ThreadExit, Typed};
use talea_record::{Metadata, Record, ThreadRole};

/// Threads by number, in memory that depends on how many live at one time.
#[derive(Debug, Default)]
pub(super) struct Threads {
    known: HashMap<u32, Thread>,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    /// Its process, 0 if unknown.
    pub pid: u32,
    /// Its name: the kernel's, or what it is for in the run; empty if unknown.
    pub name: String,
    /// Its kernel priority when it was last made ready.
    pub priority: Option<i32>,
}

impl Threads {
    /// The thread, if anything is known of it.
    pub fn get(&self, tid: u32) -> Option<&Thread> {
        self.known.get(&tid)
    }

    /// The thread's name, if it is known.
    pub fn name(&self, tid: u32) -> Option<&str> {
        self.get(tid).map(|thread| thread.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Learns from a record that comes before the next ones.
    pub fn learn(&mut self, metadata: &Metadata, record: &Record) {
        match record.typed() {
            Typed::Thread(at_work) => {
                let thread = self.known.entry(at_work.tid).or_default();
                thread.pid = at_work.pid;
                if thread.name.is_empty() {
                    thread.name = role_name(metadata, at_work);
                }
            }
            Typed::ThreadName(named) => {
                let thread = self.known.entry(named.tid).or_default();
                (thread.pid, thread.name) = (named.pid, named.name.to_string());
            }
            Typed::Wakeup(wakeup) => {
                self.known.entry(wakeup.tid).or_default().priority = Some(wakeup.priority);
            }
            _ => {}
        }
    }

    /// Forgets a thread whose end `record` tells.
    pub fn forget(&mut self, record: &Record) {
        if let Some(exit) = ThreadExit::read(record) {
            self.known.remove(&exit.tid);
        }
    }
}

/// What a thread of the run is for, from its [`THREAD`](talea_record::Event::THREAD) record.
fn role_name(metadata: &Metadata, thread: ThreadAtWork) -> String {
    let lane = metadata.lanes.get(usize::from(thread.lane));
    match (lane, thread.role.known()) {
        (Some(lane), _) => format!("lane {}", lane.label),
        (None, Some(ThreadRole::Release)) => "release".into(),
        (None, Some(ThreadRole::Receiver)) => "receiver".into(),
        (None, Some(ThreadRole::Companion)) => "companion".into(),
        (None, _) => format!("role {}", thread.role.number()),
    }
}
