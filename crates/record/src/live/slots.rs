//! A ring's words, for as long as its writer is there.

use super::LiveFile;
use crate::mapping::Mapping;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use talea_ring::slots::Slots;

/// Slots of a stream's file together with the stream.
#[derive(Debug)]
pub(crate) struct PinnedSlots {
    slots: Slots<'static, AtomicU64>,
    mapping: Arc<Mapping>,
    live: Arc<LiveFile>,
}

impl PinnedSlots {
    /// The slots in the words `slots` of a mapping of the stream's file, whose head is the word `head`.
    pub fn new(live: &Arc<LiveFile>, mapping: &Arc<Mapping>, head: usize, slots: Range<usize>) -> Self {
        // SAFETY: the mapping is kept beside the words, which are only lent out with `self`.
        let words = unsafe { Mapping::pinned(mapping) };
        let slots = Slots::new(&words[head], &words[slots]);
        PinnedSlots { slots, mapping: Arc::clone(mapping), live: Arc::clone(live) }
    }

    /// The memory that the slots are in.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    #[inline]
    pub fn slots(&self) -> &Slots<'_, AtomicU64> {
        &self.slots
    }

    #[inline]
    pub fn live(&self) -> &Arc<LiveFile> {
        &self.live
    }
}
