//! Reading what the kernel's programs have written.

use super::layout::{EVENT_WORDS, site, switch};
use super::{Group, Tables, ThreadEvent, ThreadEventKind, ThreadEvents, known};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_time::Instant;

/// One thing of a processor's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// A thread of another group, or one of no group, got the processor.
    To {
        /// When.
        at: Instant,
        /// The thread; 0 is the idle one.
        tid: u32,
        /// Its group.
        group: Option<Group>,
    },
    /// So many switches were overwritten before they were read, all before the next one that is told.
    Lost(u64),
}

/// Reads the record of switches.
pub struct SwitchReader {
    tables: Arc<Tables>,
    /// Processors and how many of the switches there have been read.
    read: Vec<(u16, u64)>,
    copied: VecDeque<[u64; switch::WORDS]>,
}

impl SwitchReader {
    pub(super) fn new(tables: Arc<Tables>, cpus: &[u16]) -> Self {
        let read = cpus.iter().map(|cpu| (*cpu, 0)).collect();
        SwitchReader { tables, read, copied: VecDeque::with_capacity(switch::KEPT) }
    }

    /// Tells what has been recorded since the last time, processor by processor, each in the order of time.
    pub fn drain(&mut self, mut tell: impl FnMut(u16, Switched)) {
        for (place, (cpu, read)) in self.read.iter_mut().enumerate() {
            let recorded = self.tables.sites.word(usize::from(*cpu), site::RECORDED);
            let first = *read;
            let end = recorded.load(Ordering::SeqCst);
            self.copied.clear();
            for number in (*read).max(end.saturating_sub(switch::KEPT as u64))..end {
                let value = place * switch::KEPT + (number as usize & (switch::KEPT - 1));
                self.copied.push_back(std::array::from_fn(|word| {
                    self.tables.switches.word(value, word).load(Ordering::SeqCst)
                }));
            }
            // What may have been overwritten while it was copied, the one that is being written now included.
            let oldest = (recorded.load(Ordering::SeqCst) + 1).saturating_sub(switch::KEPT as u64);
            let copied_from = end - self.copied.len() as u64;
            let sound = copied_from.max(oldest.min(end));
            self.copied.drain(..(sound - copied_from) as usize);
            if sound > first {
                tell(*cpu, Switched::Lost(sound - first));
            }
            for [time, to] in &self.copied {
                let (tid, group) = (*to as u32, (*to >> 32) as u32);
                tell(*cpu, Switched::To { at: Instant::from_nanos(*time as i64), tid, group: known(group) });
            }
            *read = end;
        }
    }
}

/// Takes events as they are told.
pub struct EventReader {
    tables: Arc<Tables>,
}

impl EventReader {
    pub(super) fn new(tables: Arc<Tables>) -> Self {
        EventReader { tables }
    }

    /// Takes all that was told. Neither waits, allocates nor makes a system call.
    pub fn drain(&mut self, mut tell: impl FnMut(ThreadEvent)) {
        self.tables.events.drain(|event| {
            if let Some(event) = read(event) {
                tell(event);
            }
        });
    }
}

fn read([kind, thread, other, at]: [u64; EVENT_WORDS]) -> Option<ThreadEvent> {
    let other = other as u32;
    let what = match ThreadEvents(kind as u32) {
        ThreadEvents::WOKEN => ThreadEventKind::Woken,
        ThreadEvents::FORKED => ThreadEventKind::Forked { by: other },
        ThreadEvents::EXECUTED => ThreadEventKind::Executed { before: other },
        ThreadEvents::EXITING => ThreadEventKind::Exiting,
        _ => return None,
    };
    Some(ThreadEvent {
        at: Instant::from_nanos(at as i64),
        group: known((kind >> 32) as u32)?,
        tid: thread as u32,
        pid: (thread >> 32) as u32,
        what,
    })
}

impl AsFd for EventReader {
    /// Readable once something was told.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tables.events.as_fd()
    }
}

impl fmt::Debug for SwitchReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SwitchReader").field("read", &self.read).finish_non_exhaustive()
    }
}

impl fmt::Debug for EventReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventReader").finish_non_exhaustive()
    }
}
