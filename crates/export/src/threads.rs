//! What is known of the threads that records speak of, at the place in the trace that has been reached.

use std::collections::HashMap;
use talea_record::declaration::FIRST_FREE;
use talea_record::event::{Thread as ThreadAtWork, ThreadExit, Typed};
use talea_record::{Definition, Event, KnownThreads, Metadata, Record, ThreadRole};
use talea_time::Instant;

/// Threads by number, in memory that depends on how many live at one time.
#[derive(Debug, Default)]
pub(super) struct Threads {
    known: KnownThreads,
    at_work: HashMap<u32, Work>,
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

/// What a thread does in the run, and how the kernel last made it ready.
#[derive(Clone, Debug, Default)]
struct Work {
    pid: u32,
    role: Option<String>,
    priority: Option<i32>,
}

impl Threads {
    /// Those of a run whose records are yet to come.
    pub fn of(metadata: &Metadata) -> Self {
        Threads { known: KnownThreads::of(metadata), ..Threads::default() }
    }

    /// Takes what was defined meanwhile.
    pub fn define(&mut self, definition: &Definition) {
        self.known.define(definition);
    }

    /// The thread's process; 0 if it is not known.
    pub fn process(&self, tid: u32) -> u32 {
        let known = self.known.get(tid).map(|thread| thread.pid);
        known.or_else(|| self.at_work.get(&tid).map(|work| work.pid)).unwrap_or(0)
    }

    /// The node that the thread works for, as its definition says.
    pub fn node(&self, tid: u32) -> Option<usize> {
        self.known.get(tid)?.node
    }

    /// The thread's kernel priority when it was last made ready.
    pub fn priority(&self, tid: u32) -> Option<i32> {
        self.at_work.get(&tid)?.priority
    }

    /// The thread's name, or what it is for in the run where nobody tells that; none if neither is known.
    pub fn name(&self, tid: u32) -> Option<&str> {
        let role = || self.at_work.get(&tid)?.role.as_deref();
        self.known.name(tid).filter(|name| !name.is_empty()).or_else(role)
    }

    /// The thread that wrote an event of a program, if it is known.
    pub fn writer(&self, record: &Record) -> Option<Writer> {
        self.writers.of(record)
    }

    /// Comes to an instant, and says which threads were defined by then.
    pub fn reach(&mut self, time: Instant, defined: impl FnMut(u32)) {
        self.known.reach(time, defined);
    }

    /// Learns from a record that comes before the next ones.
    pub fn learn(&mut self, metadata: &Metadata, record: &Record) {
        self.writers.learn(record);
        self.known.learn(record);
        match record.typed() {
            Typed::Thread(at_work) => {
                let work = self.at_work.entry(at_work.tid).or_default();
                (work.pid, work.role) = (at_work.pid, Some(role_name(metadata, at_work)));
            }
            Typed::Wakeup(wakeup) => {
                self.at_work.entry(wakeup.tid).or_default().priority = Some(wakeup.priority);
            }
            _ => {}
        }
    }

    /// Forgets a thread whose end `record` tells.
    pub fn forget(&mut self, record: &Record) {
        self.known.forget(record);
        if let Some(exit) = ThreadExit::read(record) {
            self.at_work.remove(&exit.tid);
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
