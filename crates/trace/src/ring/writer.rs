//! Writing a ring.

use super::protocol::Slots;
use super::{
    HEAD_WORD, Place, STATE_CLAIMED, STATE_CLOSED, STATE_OPEN, STATE_UNUSED, STATE_WORD, write_name,
};
use crate::stream::live::LiveFile;
use crate::{Record, Sink};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The one writer of a ring. Dropping it marks the ring closed.
#[derive(Debug)]
pub struct RingWriter {
    live: Arc<LiveFile>,
    place: Place,
    /// Records written so far; equal to the ring's head.
    position: u64,
}

impl RingWriter {
    /// The writer of ring `index`, which nobody else has or will have.
    pub(super) fn open(live: &Arc<LiveFile>, index: usize) -> Self {
        let place = live.places[index].clone();
        live.mapping.words()[place.header + STATE_WORD].store(STATE_OPEN, Ordering::Release);
        RingWriter { live: Arc::clone(live), place, position: 0 }
    }

    /// The writer of a spare ring; `None` if all are taken.
    pub(crate) fn claim(live: &Arc<LiveFile>, name: &str) -> Option<Self> {
        let words = live.mapping.words();
        let claimed = |place: &&Place| {
            let state = &words[place.header + STATE_WORD];
            let take =
                |from| state.compare_exchange(from, STATE_CLAIMED, Ordering::Acquire, Ordering::Relaxed);
            take(STATE_UNUSED).is_ok() || take(STATE_CLOSED).is_ok()
        };
        let place = live.spare().iter().find(claimed)?.clone();
        write_name(&live.mapping, &place, name);
        let position = words[place.header + HEAD_WORD].load(Ordering::Relaxed);
        words[place.header + STATE_WORD].store(STATE_OPEN, Ordering::Release);
        Some(RingWriter { live: Arc::clone(live), place, position })
    }

    /// Records written so far, by earlier writers of a spare ring too.
    pub fn written(&self) -> u64 {
        self.position
    }

    /// Whether anybody wants what has this switch.
    #[inline]
    pub fn is_wanted(&self, switch: usize) -> bool {
        self.live.control().switches()[switch].load(Ordering::Relaxed) != 0
    }

    fn head(&self) -> &AtomicU64 {
        &self.live.mapping.words()[self.place.header + HEAD_WORD]
    }
}

impl Sink for RingWriter {
    /// Writes one record: no wait, no allocation, no system call.
    #[inline]
    fn record(&mut self, record: Record) {
        let slots = Slots::new(self.head(), &self.live.mapping.words()[self.place.slots.clone()]);
        slots.write(self.position, record.to_words());
        self.position += 1;
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        self.live.mapping.words()[self.place.header + STATE_WORD].store(STATE_CLOSED, Ordering::Release);
    }
}
