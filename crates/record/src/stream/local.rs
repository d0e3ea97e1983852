//! The calling thread's ring: where its events go.
//!
//! A thread writes to one stream: the one whose [`LocalWriter`] it holds, or else, from its first event on, the stream
//! that the process published last. Its events, and the records it writes through the [`LocalWriter`], stand in one
//! ring in the order in which they were written, with time stamps that do not go back.
//!
//! ```text
//!            LocalWriter made                    first event, a stream is published
//!  bound  <-------------------  unattached  ------------------------------------->  lazy
//!         ------------------->              <-------------------------------------
//!            LocalWriter dropped                 the stream ends, or the thread; or a LocalWriter is made
//! ```
//! **What an event may cost.** On a bound thread, of a family that is registered: no allocation, lock or system call.
//! The first event of a family that is not registered yet registers it, whoever emits it: that allocates, locks and
//! enters the family into the files of the process's streams. Programs with real-time threads therefore register their
//! families when they start. A thread that becomes lazy allocates, locks and reads the operating system once, at its
//! first event; real-time threads are bound before.
//! Where all spare rings are taken, a thread's events are counted in the stream ([`super::publish::Content::unringed`])
//! until a ring is free. Events are not for signal handlers, which could come in the middle of another event.

use super::clock;
use super::declare::{DeclaredFamily, LongPayload, Payload};
use super::thread::{ASKED, Attachment, is_attached, switch, with_ring};
use crate::event::Thread;
use crate::live::LiveFile;
use crate::mapping::counter;
use crate::mapping::unattached::set_unattached;
use crate::ring::RingWriter;
use crate::{Record, Sink, ThreadRole};
use rustix::process::getpid;
use rustix::thread::gettid;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use talea_time::Instant;
use thiserror::Error;

/// The streams that the process publishes, the last one last.
static PUBLISHED: Mutex<Vec<Weak<LiveFile>>> = Mutex::new(Vec::new());

thread_local! {
    /// The bond of a lazy thread.
    static LAZY: RefCell<Option<Attachment>> = const { RefCell::new(None) };
}

/// Why a thread has no ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AttachThreadError {
    /// The process publishes no stream.
    #[error("this process publishes no stream that the thread could write to")]
    NoStream,
    /// All spare rings are taken.
    #[error("all spare rings of the stream are taken; publish it with more of them")]
    Exhausted,
}

/// The calling thread's bond to a ring, and the ring's writer. The events of the thread go there until it is dropped.
#[derive(Debug)]
pub struct LocalWriter(Attachment);

impl LocalWriter {
    fn bind(writer: RingWriter) -> Self {
        LAZY.with_borrow_mut(|lazy| drop(lazy.take()));
        let live = Arc::clone(writer.live());
        LocalWriter(Attachment::new(&live, Some(writer)))
    }

    /// Whether anybody wants what has this switch; see [`builtin_switch`](super::builtin_switch).
    #[inline]
    pub fn is_wanted(&self, number: usize) -> bool {
        switch(number) != 0
    }

    /// As [`RingWriter::identify`].
    pub fn identify(&self, thread: &Record) {
        if let Some(ring) = self.0.ring() {
            ring.identify(thread);
        }
    }

    /// The latest instant of these; what is written next has none before.
    #[inline]
    pub fn latest(&self) -> Instant {
        self.0.ring().map_or(Instant::from_nanos(i64::MIN), RingWriter::latest)
    }

    /// Records written so far.
    pub fn written(&self) -> u64 {
        self.0.ring().map_or(0, RingWriter::written)
    }
}

impl Sink for LocalWriter {
    /// Writes one record: no wait, no allocation, no system call. Its instant becomes that of the record before it, if
    /// that is later.
    #[inline]
    fn record(&mut self, record: Record) {
        if let Some(ring) = self.0.ring() {
            ring.put(record.to_words());
        }
    }
}

impl RingWriter {
    /// Makes this the writer of the calling thread, so that its records and its events share the ring.
    ///
    /// # Panics
    /// If the thread holds a [`LocalWriter`] already.
    pub fn install(self) -> LocalWriter {
        LocalWriter::bind(self)
    }
}

/// Whether the calling thread holds a [`LocalWriter`].
pub fn is_bound() -> bool {
    is_attached() && LAZY.with_borrow(Option::is_none)
}

/// Gives the calling thread a ring, called `name`, of the stream that this process published last. Allocates.
///
/// # Errors
/// If there is no stream or no ring.
///
/// # Panics
/// If the thread holds a [`LocalWriter`] already.
pub fn attach_thread(name: &str) -> Result<LocalWriter, AttachThreadError> {
    attach_to(&published().ok_or(AttachThreadError::NoStream)?, name)
}

pub(super) fn attach_to(live: &Arc<LiveFile>, name: &str) -> Result<LocalWriter, AttachThreadError> {
    let writer = RingWriter::claim(live, name).ok_or(AttachThreadError::Exhausted)?;
    let local = LocalWriter::bind(writer);
    introduce();
    Ok(local)
}

/// Threads without a ring of their own write to this stream from now on.
pub(super) fn publish(live: &Arc<LiveFile>) {
    let mut published = PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
    published.push(Arc::downgrade(live));
    set_unattached(ASKED);
}

/// The stream ends: threads that write to it find out at their next event.
pub(super) fn end(live: &Arc<LiveFile>) {
    let mut published = PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner);
    published.retain(|other| other.upgrade().is_some_and(|other| !Arc::ptr_eq(&other, live)));
    if published.is_empty() {
        set_unattached(0);
    }
    live.control().end();
}

fn published() -> Option<Arc<LiveFile>> {
    PUBLISHED.lock().unwrap_or_else(PoisonError::into_inner).last()?.upgrade()
}

/// Writes what thread the ring is of.
fn introduce() {
    let [tid, pid] = [gettid(), getpid()].map(|id| id.as_raw_pid() as u32);
    let (lane, role) = (None, ThreadRole::Program.into());
    let record = Thread { tid, pid, node: 0, lane, role }.at(clock::now(), counter::processor());
    with_ring(|ring| {
        ring.identify(&record);
        // Wanted or not: readers know by it whose the events behind it are.
        ring.put(record.to_words());
    });
}

/// What an event says, as a ring takes it.
trait Written: Copy {
    /// Its number within its family.
    fn number(self) -> usize;
    /// Writes it at this instant.
    fn write(self, ring: &RingWriter);
}

impl Written for Payload {
    fn number(self) -> usize {
        Payload::number(self)
    }

    #[inline(always)]
    fn write(self, ring: &RingWriter) {
        ring.put(self.at(clock::now(), counter::processor()));
    }
}

impl Written for LongPayload<'_> {
    fn number(self) -> usize {
        LongPayload::number(&self)
    }

    #[inline(always)]
    fn write(self, ring: &RingWriter) {
        let (event, bytes) = self.at(clock::now(), counter::processor());
        ring.put_long(event, bytes);
    }
}

/// Writes an event whose switch was `found`, not 0.
#[inline(never)]
pub(super) fn emit(found: u64, family: &'static DeclaredFamily, payload: Payload) {
    // A closure of its own, here and in `ask`: one that both had would be a call more.
    if found == ASKED || with_ring(|ring| payload.write(ring)).is_none() {
        ask(family, payload);
    }
}

/// As [`emit`], of an event with a long field.
#[inline(never)]
pub(super) fn emit_long(found: u64, family: &'static DeclaredFamily, payload: LongPayload<'_>) {
    if found == ASKED || with_ring(|ring| payload.write(ring)).is_none() {
        ask(family, payload);
    }
}

/// The slow way of an event: finds out whether it is wanted, registers its family, and gets its thread a ring.
#[cold]
fn ask(family: &'static DeclaredFamily, payload: impl Written) {
    if !is_wanted(family, payload.number()) {
        return;
    }
    if with_ring(|ring| payload.write(ring)).is_none() {
        // A lazy thread, or one that is ending.
        let _ = LAZY.try_with(|lazy| {
            let mut lazy = lazy.borrow_mut();
            if let Some(attachment) = lazy.take() {
                let live = Arc::clone(attachment.live());
                drop(attachment);
                *lazy = Some(Attachment::new(&live, RingWriter::claim(&live, &thread_name())));
                introduce();
                if with_ring(|ring| payload.write(ring)).is_none() {
                    live.control().count_unringed();
                }
            }
        });
    }
}

/// Whether the entity that is `number` switches behind the first of its family is wanted, with everything done that
/// the answer needs.
pub(super) fn is_wanted(family: &'static DeclaredFamily, number: usize) -> bool {
    // What cannot be registered has no switch to be wanted by; it is counted instead.
    let is_registered = family.is_registered();
    // Twice: a thread may leave a stream that has ended and find another.
    for _ in 0..2 {
        let Some(live) = bond() else { return false };
        if !live.control().has_ended() {
            if !is_registered {
                live.control().count_unringed();
            }
            return is_registered && switch(family.switch(number)) != 0;
        }
        let left = LAZY.try_with(|lazy| lazy.borrow_mut().take().is_some());
        if left != Ok(true) {
            return false;
        }
    }
    false
}

/// The stream that the thread is attached to. One that is not becomes lazy, if there is a stream.
fn bond() -> Option<Arc<LiveFile>> {
    if let Some(live) = with_ring(|ring| Arc::clone(ring.live())) {
        return Some(live);
    }
    LAZY.try_with(|lazy| {
        let mut lazy = lazy.borrow_mut();
        if lazy.is_none() {
            *lazy = Some(Attachment::new(&published()?, None));
        }
        lazy.as_ref().map(|attachment| Arc::clone(attachment.live()))
    })
    .ok()?
}

fn thread_name() -> String {
    std::thread::current().name().unwrap_or("unnamed").to_owned()
}
