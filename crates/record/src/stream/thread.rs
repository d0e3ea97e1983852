//! What the calling thread writes to: the way of an event, without checks.
//!
//! An event's cost is a load of the thread's own pointer, a load of the event's number and a load of its switch; and,
//! where it is on, the time stamp and the stores into the ring. Behind these pointers are mappings and writers that
//! others own; [`Attachment`] says why they are there whenever a thread looks.
//!
//! Three kinds of switches have all bits set ([`ASKED`]) and lead to the slow way, which finds out what to do:
//! those of threads that are not attached while a stream could be
//! ([`set_unattached`](crate::mapping::unattached::set_unattached)), those of events that are not registered, and those of
//! streams that have ended.

use crate::live::LiveFile;
use crate::mapping::Mapping;
use crate::mapping::unattached::{Switches, UNATTACHED};
use crate::passive::PASSIVE_WORDS;
use crate::ring::RingWriter;
use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_ring::control::{SWITCHES, SWITCHES_AT};

/// All bits of a switch: ask.
pub(crate) const ASKED: u64 = u64::MAX;

type Passive = [AtomicU64; PASSIVE_WORDS];

struct Thread {
    /// Never null.
    switches: Cell<*const Switches>,
    /// Null or the passive area of the same stream as the switches.
    passive: Cell<*const Passive>,
    /// Null or the thread's writer.
    ring: Cell<*const RingWriter>,
    /// The number of the same stream; 0 if there is none.
    stream: Cell<u64>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            switches: Cell::new(&raw const UNATTACHED),
            passive: Cell::new(std::ptr::null()),
            ring: Cell::new(std::ptr::null()),
            stream: Cell::new(0),
        }
    };
}

/// The switch, for the calling thread.
///
/// `switch` is less than [`SWITCHES`], or another switch is looked at.
#[inline(always)]
pub(crate) fn switch(switch: usize) -> u64 {
    THREAD.with(|thread| {
        // SAFETY: the pointer is to `UNATTACHED` or, set by `Attachment::new`, into a mapping that lives until the
        // attachment's `drop` has replaced the pointer, on this thread.
        let switches = unsafe { &*thread.switches.get() };
        switches[switch & (SWITCHES - 1)].load(Ordering::Relaxed)
    })
}

/// Gives the thread's writer to `use_it`; `None` if it has none.
#[inline(always)]
pub(crate) fn with_ring<T>(use_it: impl FnOnce(&RingWriter) -> T) -> Option<T> {
    THREAD.with(|thread| {
        // SAFETY: the pointer is null or, set by `Attachment::new`, to a shared writer that lives until the
        // attachment's `drop` has replaced the pointer, on this thread. The reference ends with this call, during
        // which nothing drops the attachment: `use_it` is code of this crate that only writes.
        unsafe { thread.ring.get().as_ref() }.map(use_it)
    })
}

/// Gives the words from `place` on of the passive area of the thread's stream to `use_it`; `None` if the thread has no
/// stream or the area no such words.
#[inline(always)]
pub(crate) fn with_passive<T>(
    place: usize,
    length: usize,
    use_it: impl FnOnce(&[AtomicU64]) -> T,
) -> Option<T> {
    THREAD.with(|thread| {
        // SAFETY: as in `with_ring`, for a pointer into the mapping.
        let passive = unsafe { thread.passive.get().as_ref() }?;
        passive.get(place..place.checked_add(length)?).map(use_it)
    })
}

/// The number of the thread's stream among those that the process has published; 0 if it has none.
#[inline]
pub(crate) fn stream_number() -> u64 {
    THREAD.with(|thread| thread.stream.get())
}

/// Whether the thread is attached, to whatever.
pub(crate) fn is_attached() -> bool {
    THREAD.with(|thread| !thread.passive.get().is_null())
}

/// A thread's bond to a stream, from [`Self::new`] to its end on the same thread. Forgetting it leaks the stream's
/// mapping, and the thread stays attached.
#[derive(Debug)]
pub(crate) struct Attachment {
    /// What the thread's pointer points to, wherever the attachment is moved. The attachment itself stays on the
    /// thread, as an `Rc` does.
    ring: Option<Rc<RingWriter>>,
    live: Arc<LiveFile>,
    _thread: PhantomData<*const ()>,
}

impl Attachment {
    /// Attaches the calling thread to the stream, with this writer if there is one for it.
    ///
    /// # Panics
    /// If the thread is attached already.
    pub fn new(live: &Arc<LiveFile>, ring: Option<RingWriter>) -> Self {
        assert!(!is_attached(), "the thread writes to a stream already");
        let ring = ring.map(Rc::new);
        // SAFETY: the attachment keeps `live`, and with it the mapping, until its `drop` has replaced the pointers into
        // the words, on the one thread that looks at them.
        let words = unsafe { Mapping::pinned(&live.mapping) };
        let part = |start: u64, length: usize| &words[(start / 8) as usize..][..length];
        let control = part(live.regions().control.start, SWITCHES_AT + SWITCHES);
        let switches: &Switches =
            control[SWITCHES_AT..].try_into().expect("the control pages end with the switches");
        let passive = part(live.regions().passive.start, PASSIVE_WORDS);
        let passive: &Passive = passive.try_into().expect("the passive area has this length");
        THREAD.with(|thread| {
            thread.switches.set(switches);
            thread.passive.set(passive);
            thread.ring.set(ring.as_deref().map_or(std::ptr::null(), std::ptr::from_ref));
            thread.stream.set(live.number);
        });
        Attachment { ring, live: Arc::clone(live), _thread: PhantomData }
    }

    pub fn live(&self) -> &Arc<LiveFile> {
        &self.live
    }

    /// The thread's writer.
    #[inline]
    pub fn ring(&self) -> Option<&RingWriter> {
        self.ring.as_deref()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        THREAD.with(|thread| {
            thread.switches.set(&raw const UNATTACHED);
            thread.passive.set(std::ptr::null());
            thread.ring.set(std::ptr::null());
            thread.stream.set(0);
        });
    }
}
