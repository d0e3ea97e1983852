//! What is known of the threads that records speak of, at the place in the trace that has been reached.

use std::collections::HashMap;
use talea_record::declaration::FIRST_FREE;
use talea_record::event::{Thread as ThreadAtWork, ThreadExit, Typed};
use talea_record::{Event, Metadata, Record, ThreadRole};

/// Threads by number, in memory that depends on how many live at one time.
#[derive(Debug, Default)]
pub(super) struct Threads {
    known: HashMap<u32, Thread>,
    writers: Writers,
}

/// Which threads wrote the events of programs: THREAD records number the threads, and an event has the number as its source.
#[derive(Clone, Debug, Default)]
pub struct Writers(HashMap<u16, Writer>);

/// A thread that wrote events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
}

impl Writers {
    /// Learns from a record that comes before the next ones.
    pub(crate) fn learn(&mut self, record: &Record) {
        if record.event == Event::THREAD
            && let Some(thread) = ThreadAtWork::read(record)
            && let Some(number) = record.causal.checked_sub(1).and_then(|number| u16::try_from(number).ok())
        {
            self.0.insert(number, Writer { pid: thread.pid, tid: thread.tid });
        }
    }

    /// The thread that wrote an event of a program, if it is known.
    pub(crate) fn of(&self, record: &Record) -> Option<Writer> {
        let is_program_event = record.event.family() >= FIRST_FREE && record.source != Record::NO_WRITER;
        is_program_event.then(|| self.0.get(&record.source).copied())?
    }
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

    /// The thread that wrote an event of a program, if it is known.
    pub fn writer(&self, record: &Record) -> Option<Writer> {
        self.writers.of(record)
    }

    /// Learns from a record that comes before the next ones.
    pub fn learn(&mut self, metadata: &Metadata, record: &Record) {
        self.writers.learn(record);
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
    let lane = thread.lane.and_then(|lane| metadata.lanes.get(usize::from(lane)));
    match (lane, thread.role.known()) {
        (Some(lane), _) => format!("lane {}", lane.label),
        (None, Some(ThreadRole::Release)) => "release".into(),
        (None, Some(ThreadRole::Receiver)) => "receiver".into(),
        (None, Some(ThreadRole::Companion)) => "companion".into(),
        (None, Some(ThreadRole::Program)) => "program".into(),
        (None, _) => format!("role {}", thread.role.number()),
    }
}
