//! Gauges.

use super::Entity;
use crate::stream::declare::DeclaredFamily;
use crate::stream::thread::stream_number;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which stream it is among all that the process publishes: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamNumber(u64);

impl StreamNumber {
    /// Of the stream of the calling thread.
    #[inline(always)]
    pub(super) fn of_thread() -> Self {
        StreamNumber(stream_number())
    }
}

/// A number that any thread raises and lowers: how many there are of something. Looking never resets it.
#[derive(Debug)]
pub struct Gauge(pub(super) Entity);

impl Gauge {
    /// The gauge with switch `number` of its family, which is registered, with its first word.
    pub(super) const fn placed(family: &'static DeclaredFamily, number: usize, place: u32) -> Self {
        Gauge(Entity::placed(family, number, place))
    }

    /// Adds `amount`, whether or not anybody looks. Returns in which stream, that of the calling thread; `None` if that has none, and then nothing knows
    /// of it.
    #[inline(always)]
    pub fn add(&self, amount: i64) -> Option<StreamNumber> {
        let added = |words: &[AtomicU64]| {
            words[0].fetch_add(amount as u64, Ordering::Relaxed);
        };
        self.0.count(1, added).map(|()| StreamNumber::of_thread())
    }

    /// Its value in the calling thread's stream; `None` if there is none.
    pub fn get(&self) -> Option<i64> {
        self.0.look(1, |words| words[0].load(Ordering::Relaxed) as i64)
    }
}
