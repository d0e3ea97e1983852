//! What is known of the threads that records speak of, at the place in the trace that has been reached.

use crate::namespace::{Field, FieldKind, Part, Value};
use crate::{Event, Metadata, Record, ThreadRole};
use std::collections::HashMap;

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
        let [first, _] = record.words;
        match record.event {
            Event::THREAD => {
                let thread = self.known.entry(first as u32).or_default();
                thread.pid = (first >> 32) as u32;
                if thread.name.is_empty() {
                    thread.name = role_name(metadata, record);
                }
            }
            Event::THREAD_NAME => {
                let thread = self.known.entry(record.causal as u32).or_default();
                thread.pid = (record.causal >> 32) as u32;
                if let Value::Text(name) = NAME.value(record) {
                    thread.name = name;
                }
            }
            Event::WAKEUP => {
                let priority = (record.words[1] >> 32) as i32;
                self.known.entry(first as u32).or_default().priority = Some(priority);
            }
            _ => {}
        }
    }

    /// Forgets a thread whose end `record` tells.
    pub fn forget(&mut self, record: &Record) {
        if record.event == Event::THREAD_EXIT {
            self.known.remove(&(record.words[0] as u32));
        }
    }
}

const NAME: Field = Field::new("name", FieldKind::Text, Part::First);

/// What a thread of the run is for, from its [`Event::THREAD`] record.
fn role_name(metadata: &Metadata, record: &Record) -> String {
    let lane = metadata.lanes.get(usize::from(record.source));
    match (lane, record.arg) {
        (Some(lane), _) => format!("lane {}", lane.label),
        (None, role) if role == ThreadRole::Release as u16 => "release".into(),
        (None, role) if role == ThreadRole::Receiver as u16 => "receiver".into(),
        (None, role) if role == ThreadRole::Companion as u16 => "companion".into(),
        (None, role) => format!("role {role}"),
    }
}
