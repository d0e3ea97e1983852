//! Histograms.

use super::Entity;
use crate::passive::{HistogramReading, OUTSIDE, PassiveKind, histogram};
use crate::ring::RingWriter;
use crate::stream::declare::DeclaredFamily;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// How often values fell below, into each of and above `BUCKETS` buckets of `WIDTH` from `LOWER` on. A value on the
/// border of two buckets is in the upper one.
#[derive(Debug)]
pub struct Histogram<const LOWER: i64, const WIDTH: u64, const BUCKETS: u32>(Entity);

impl<const LOWER: i64, const WIDTH: u64, const BUCKETS: u32> Histogram<LOWER, WIDTH, BUCKETS> {
    /// The histogram with switch `number` of its family; made by [`crate::family!`].
    #[doc(hidden)]
    pub const fn new(family: &'static DeclaredFamily, number: usize) -> Self {
        assert!(WIDTH > 0 && BUCKETS > 0, "a histogram has buckets of some width");
        Histogram(Entity::new(family, number))
    }

    #[doc(hidden)]
    pub const KIND: PassiveKind = PassiveKind::Histogram { lower: LOWER, width: WIDTH, buckets: BUCKETS };

    const WORDS: usize = OUTSIDE + BUCKETS as usize;

    #[doc(hidden)]
    pub const fn place(&'static self) -> &'static AtomicU32 {
        &self.0.place
    }

    /// Counts `value`, whether or not anybody looks.
    #[inline(always)]
    pub fn add(&self, value: i64) {
        _ = self.0.count(Self::WORDS, |words| {
            words[Self::word(value)].fetch_add(1, Relaxed);
        });
    }

    /// Counts `value` in the stream of `writer`, as [`Counter::add_in`](super::Counter::add_in) does.
    #[inline]
    pub fn add_in(&self, writer: &RingWriter, value: i64) {
        self.0.count_in(writer, Self::WORDS, |words| {
            words[Self::word(value)].fetch_add(1, Relaxed);
        });
    }

    #[inline(always)]
    fn word(value: i64) -> usize {
        if value < LOWER {
            return 0;
        }
        match (value.wrapping_sub(LOWER) as u64) / WIDTH {
            bucket if bucket < u64::from(BUCKETS) => OUTSIDE + bucket as usize,
            _ => 1,
        }
    }

    /// Its counts in the calling thread's stream; `None` if there is none.
    pub fn get(&self) -> Option<HistogramReading> {
        self.0.look(Self::WORDS, |words| histogram(LOWER, WIDTH, words, |word| word.load(Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_fall_where_they_belong() {
        type Tens = Histogram<-10, 10, 3>;
        let words = [-11, -10, -1, 0, 9, 10, 19, 20, i64::MIN, i64::MAX].map(Tens::word);
        assert_eq!(words, [0, 2, 2, 3, 3, 4, 4, 1, 0, 1]);
        assert_eq!(Histogram::<{ i64::MIN }, { u64::MAX }, 1>::word(i64::MAX), 1);
        assert_eq!(Histogram::<{ i64::MIN }, { u64::MAX }, 1>::word(i64::MAX - 1), 2);
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_span(value in -200i64..200) {
            let expected = match value {
                ..-50 => 0,
                100.. => 1,
                _ => OUTSIDE + ((value + 50) / 25) as usize,
            };
            prop_assert_eq!(Histogram::<-50, 25, 6>::word(value), expected);
        }
    }
}
