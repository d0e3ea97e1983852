//! Writing to a ring allocates nothing.

use allocation_counter::measure;
use talea_record::{RingFile, Sink};
use talea_samples::*;

#[test]
fn writing_to_a_ring_allocates_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = RingFile::create(&directory.path().join("t"), &metadata(), &writers(1), 1024).unwrap();
    file.prefault();
    let mut writer = file.writer(0);
    let allocated = measure(|| (0..10_000).for_each(|n| writer.record(numbered(n))));
    assert_eq!(allocated.count_total, 0);
    assert_ne!(measure(|| drop(std::hint::black_box(Box::new(1)))).count_total, 0, "the counter counts");
}
