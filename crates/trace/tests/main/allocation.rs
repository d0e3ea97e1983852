//! Writing to a ring and accounting in the steady state allocate nothing.

use crate::support::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use talea_trace::*;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is handed to the system's allocator unchanged; counting in a thread-local cell
// that needs no initialisation and no destructor cannot allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Allocations of this thread during `work`.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[test]
fn writing_to_a_ring_allocates_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = RingFile::create(&directory.path().join("t"), &metadata(), &writers(1), 1024).unwrap();
    file.prefault();
    let mut writer = file.writer(0);
    let count = allocations(|| (0..10_000).for_each(|n| writer.record(numbered(n))));
    assert_eq!(count, 0);
    assert_ne!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 0, "the counter counts");
}

#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn record(&mut self, _: Record) {
        self.0 += 1;
    }
}

#[test]
fn reading_the_kernel_stream_allocates_nothing() {
    use crate::kernel_support::*;
    use talea_trace::kernel::KernelEvent;
    let Some(cpu) = a_processor() else { return };
    let players = Players::new(cpu);
    let wanted = options(cpu, &[KernelEvent::Switches, KernelEvent::Wakeups, KernelEvent::SystemCalls]);
    let Some(mut stream) = open(&wanted) else { return };
    let mut count = Count::default();
    let mut play_and_read = || {
        players.play(300, Pace::Free);
        allocations(|| {
            stream.poll(at(i64::MAX), &mut count);
        })
    };
    play_and_read();
    assert_eq!((0..5).map(|_| play_and_read()).sum::<u64>(), 0);
    assert!(count.0 > 5 * 600, "{} records", count.0);
}
