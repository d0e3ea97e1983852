//! The header of a ring: whether somebody writes it, who, and what that one is called.
//!
//! ```text
//!            open                       close
//!   UNUSED ───────────────► OPEN ─────────────────► CLOSED
//!      │                      ▲                       │
//!      └──────► CLAIMED ──────┘◄──────────────────────┘
//!        claim            open                  claim
//! ```
//! A spare ring is claimed by one compare-and-exchange, so two threads never take the same one; the next thread goes on behind
//! what the last one wrote.
//!
//! **Who writes** stands in three words, of which the first is 0 while the others change: whoever finds the same in the first
//! before and after has all of one thread. The third is the number of the first record that may be this thread's, so that a reader
//! that is behind does not take an earlier thread's records for those of the thread that has the ring now.
//!
//! **Kept until read.** A writer that closes a ring notes which pass over the rings each consumer had begun (see
//! [`crate::control`]). When all of them have finished a later one, everything in the ring has been read, and the ring can be
//! taken over without losing any of it.

use crate::control::{CONSUMERS, Control};
use crate::primitive::{Memory, SharedWord};
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

const STATE_WORD: usize = 0;
const NAME_LENGTH_WORD: usize = 1;
const NAME_WORDS: Range<usize> = 2..18;
const NAME_BYTES: usize = 128;
const THREAD_WORD: usize = 18;
const PLACE_WORD: usize = 19;
const FIRST_WORD: usize = 20;
const HEAD_WORD: usize = 32;
const PASSES_AT: usize = 64;

/// Words that a header has at least.
pub const HEADER_WORDS: usize = PASSES_AT + CONSUMERS;

const UNUSED: u64 = 0;
const OPEN: u64 = 1;
const CLOSED: u64 = 2;
const CLAIMED: u64 = 3;

/// Where a ring is in a memory, in words.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where its header begins.
    pub header: usize,
    /// Its slots.
    pub slots: Range<usize>,
}

/// What a ring's writer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingState {
    /// Nobody has taken the ring's writer yet.
    Unused,
    /// The writer is at work, or died without closing.
    Open,
    /// The writer closed the ring; nothing more will come.
    Closed,
}

/// Who writes a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The thread, as [`Header::identify`] was told.
    pub thread: u64,
    /// Where it belongs.
    pub place: u64,
    /// Number of the first record that may be its own.
    pub first: u64,
}

/// A ring's header in memory.
#[derive(Debug)]
pub struct Header<'a, W>(&'a [W]);

impl Place {
    /// The word of `memory` that is the ring's head.
    pub fn head(&self) -> usize {
        self.header + HEAD_WORD
    }

    /// The ring's header in `memory`.
    #[inline]
    pub fn header_in<'a, M: Memory + ?Sized>(&self, memory: &'a M) -> Header<'a, M::Word> {
        Header::new(&memory.words()[self.header..])
    }
}

impl<'a, W: SharedWord> Header<'a, W> {
    /// The header in the first of these words, all 0 at first.
    ///
    /// # Panics
    /// If there are fewer than [`HEADER_WORDS`].
    #[inline]
    pub fn new(words: &'a [W]) -> Self {
        Header(&words[..HEADER_WORDS])
    }

    /// The ring's head: records ever written.
    #[inline]
    pub fn head(&self) -> &'a W {
        &self.0[HEAD_WORD]
    }

    /// The ring has a writer, who has prepared what readers see.
    pub fn open(&self) {
        self.0[STATE_WORD].store(OPEN, Release);
    }

    /// The writer writes no more. The consumers of `control` have to read what it has written before it is
    /// [drained](Self::is_drained).
    pub fn close<C: SharedWord>(&self, control: &Control<'_, C>) {
        // Before what the fence is for: a pass that begins behind it finds everything that was written.
        W::fence(SeqCst);
        for (word, begun) in self.0[PASSES_AT..].iter().zip(control.passes_begun()) {
            word.store(begun, Relaxed);
        }
        self.0[STATE_WORD].store(CLOSED, Release);
    }

    /// Whether nobody writes the ring and nobody has anything to read in it: it was never used, or all of `finished`, the passes that
    /// consumers have [finished](Control::passes_finished), were begun after it was closed.
    pub fn is_drained(&self, finished: &[(usize, u64)]) -> bool {
        match self.0[STATE_WORD].load(Acquire) {
            UNUSED => true,
            CLOSED => finished.iter().all(|(slot, pass)| *pass > self.0[PASSES_AT + slot].load(Relaxed)),
            _ => false,
        }
    }

    /// Takes a ring that nobody writes; false if somebody does, or another one was faster. It has to be [opened](Self::open).
    pub fn claim(&self) -> bool {
        let state = &self.0[STATE_WORD];
        let found = state.load(Relaxed);
        let is_claimed =
            matches!(found, UNUSED | CLOSED) && state.compare_exchange(found, CLAIMED, Acquire).is_ok();
        if is_claimed {
            self.0[THREAD_WORD].store(0, Relaxed);
        }
        is_claimed
    }

    /// What the writer is doing.
    pub fn state(&self) -> RingState {
        let state = self.0[STATE_WORD].load(Relaxed);
        W::fence(Acquire);
        match state {
            UNUSED => RingState::Unused,
            CLOSED => RingState::Closed,
            _ => RingState::Open,
        }
    }

    /// What the writer calls itself, cut at 128 bytes.
    pub fn set_name(&self, name: &str) {
        let name = &name.as_bytes()[..name.floor_char_boundary(NAME_BYTES)];
        self.0[NAME_LENGTH_WORD].store(name.len() as u64, Relaxed);
        for (word, chunk) in self.0[NAME_WORDS].iter().zip(name.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(padded), Relaxed);
        }
    }

    /// What the writer calls itself.
    pub fn name(&self) -> String {
        let length = self.0[NAME_LENGTH_WORD].load(Relaxed).min(NAME_BYTES as u64) as usize;
        let bytes: Vec<u8> =
            self.0[NAME_WORDS].iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    /// Says who writes; the thread is not 0.
    pub fn identify(&self, writer: Writer) {
        self.0[THREAD_WORD].store(0, Relaxed);
        W::fence(Release);
        self.0[PLACE_WORD].store(writer.place, Relaxed);
        self.0[FIRST_WORD].store(writer.first, Relaxed);
        self.0[THREAD_WORD].store(writer.thread, Release);
    }

    /// Who writes; `None` if nobody does, or has said so.
    pub fn writer(&self) -> Option<Writer> {
        let load = |word: usize| {
            let value = self.0[word].load(Relaxed);
            W::fence(Acquire);
            value
        };
        let (thread, place, first) = (load(THREAD_WORD), load(PLACE_WORD), load(FIRST_WORD));
        // Another thread may be taking the ring over.
        let is_whole = thread != 0 && load(THREAD_WORD) == thread && self.state() == RingState::Open;
        is_whole.then_some(Writer { thread, place, first })
    }
}
