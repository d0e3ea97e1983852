//! How often times came, in memory that grows with how differently they fell and not with how long they are.
//!
//! The cells are those of HdrHistogram (Tene 2012): up to `2^(bits + 1)` every nanosecond has a cell, and each further
//! power of two is divided into `2^bits` cells of equal width, so that a cell is never wider than a fixed share of the
//! times in it. A task's times fall into few of them: a block of cells is there from the first time in it on.

use std::collections::BTreeMap;

/// Cells of a block: one line of the processor's cache.
const BLOCK: usize = 16;

/// Counts of lengths of time.
#[derive(Debug)]
pub(super) struct Histogram {
    /// A power of two of times has `2^bits` cells.
    bits: u32,
    /// The place in `blocks` of each block, counted from 1; 0 where none of its times came. Ends with the longest time.
    places: Vec<u16>,
    blocks: Vec<[u32; BLOCK]>,
    /// What cells counted before they began again at 0, by cell.
    carried: BTreeMap<usize, u64>,
    total: u64,
}

impl Histogram {
    /// An empty histogram that keeps times apart that differ in this many significant decimal digits, at most 3.
    pub fn new(digits: u32) -> Self {
        // Two cells for each unit of the last digit, as half of a power of two goes with the one below.
        let bits = 10u64.pow(digits).next_power_of_two().ilog2();
        Histogram { bits, places: Vec::new(), blocks: Vec::new(), carried: BTreeMap::new(), total: 0 }
    }

    /// Counts a time of so many nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let cell = self.cell_of(ns);
        let place = match self.places.get(cell / BLOCK) {
            Some(&place) if place > 0 => place,
            _ => self.open(cell / BLOCK),
        };
        let count = &mut self.blocks[usize::from(place) - 1][cell % BLOCK];
        *count = count.wrapping_add(1);
        if *count == 0 {
            *self.carried.entry(cell).or_default() += 1 << u32::BITS;
        }
        self.total += 1;
    }

    /// Provides the block of this number and answers its place.
    #[cold]
    fn open(&mut self, block: usize) -> u16 {
        if self.places.len() <= block {
            self.places.reserve_exact(block + 1 - self.places.len());
            self.places.resize(block + 1, 0);
        }
        if self.blocks.len() == self.blocks.capacity() {
            // Doubling would leave half of the memory unused.
            self.blocks.reserve_exact((self.blocks.len() / 4).max(4));
        }
        self.blocks.push([0; BLOCK]);
        let place = u16::try_from(self.blocks.len()).expect("64 powers of two have fewer blocks");
        self.places[block] = place;
        place
    }

    /// How many times were counted.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// The longest time of the cell that holds the time of this rank, counted from 1 in the order of their lengths; 0 if
    /// there are not as many.
    pub fn value_at_rank(&self, rank: u64) -> u64 {
        let mut passed = 0;
        let there = self.places.iter().enumerate().filter(|(_, place)| **place > 0);
        for (block, place) in there {
            for (position, count) in self.blocks[usize::from(*place) - 1].iter().enumerate() {
                let cell = block * BLOCK + position;
                passed += u64::from(*count) + self.carried.get(&cell).copied().unwrap_or(0);
                if passed >= rank {
                    return self.longest_in(cell);
                }
            }
        }
        0
    }

    #[inline]
    fn cell_of(&self, ns: u64) -> usize {
        // How often it must be halved to be below 2^(bits + 1).
        let halvings = (ns >> self.bits | 1).ilog2();
        ((u64::from(halvings) << self.bits) + (ns >> halvings)) as usize
    }

    fn longest_in(&self, cell: usize) -> u64 {
        let halvings = (cell >> self.bits).saturating_sub(1);
        let shortest = (cell - (halvings << self.bits)) as u64;
        ((shortest + 1) << halvings) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram as Dense;
    use proptest::prelude::*;

    #[test]
    fn a_cell_that_is_full_goes_on_counting() {
        let mut histogram = Histogram::new(3);
        histogram.record(5);
        histogram.blocks[0][5] = u32::MAX;
        histogram.record(5);
        histogram.record(6);
        assert_eq!((histogram.value_at_rank(1 << 32), histogram.value_at_rank((1 << 32) + 1)), (5, 6));
    }

    #[test]
    fn takes_memory_for_the_times_that_came_only() {
        let mut histogram = Histogram::new(3);
        (0..1000).for_each(|step| histogram.record(1_000_000_000 + step * 1000));
        assert!(histogram.blocks.len() <= 2);
        assert!(histogram.places.len() < 2048);
    }

    proptest! {
        #[test]
        fn ranks_are_those_of_the_dense_histogram(
            digits in 2u8..4,
            values in prop::collection::vec(prop_oneof![1u64..5_000, 1u64..10_000_000, 1u64..1 << 42], 1..300),
        ) {
            let mut histogram = Histogram::new(u32::from(digits));
            let mut dense = Dense::<u64>::new_with_bounds(1, u64::MAX / 2, digits).unwrap();
            for value in &values {
                histogram.record(*value);
                dense.record(*value).unwrap();
            }
            prop_assert_eq!(histogram.len(), dense.len());
            for rank in 1..=values.len() as u64 {
                let share = (rank as f64 - 0.5) / values.len() as f64;
                prop_assert_eq!(histogram.value_at_rank(rank), dense.value_at_quantile(share));
            }
        }
    }
}
