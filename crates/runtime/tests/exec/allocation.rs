//! From the start instant on, the threads that release, dispatch and trace do not allocate.

use super::*;
use std::alloc::{GlobalAlloc, Layout, System as SystemAllocator};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use talea_model::{LaneDispatch, SubtaskBuilder};
use talea_runtime::JobContext;

/// Counts allocations of the runtime's threads while [`COUNTING`] is set.
struct Counting;

static COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The runtime names its threads for what they do and their node, `l0:frugal`; nothing else in this
/// process contains that node's name.
fn is_watched() -> bool {
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes with a terminating NUL to the buffer.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name.windows(7).any(|window| window == b":frugal")
}

fn count() {
    if COUNTING.load(Ordering::Relaxed) && is_watched() {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { SystemAllocator.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { SystemAllocator.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is passed on.
        unsafe { SystemAllocator.realloc(pointer, layout, size) }
    }
}

talea_trace::family! {
    /// What the code of an operation tells.
    counted {
        /// A job ran.
        ran(instance: u64);
    }
}

#[test]
fn releasing_dispatching_and_tracing_do_not_allocate() {
    allocations_are_counted();
    counted::FAMILY.register().expect("the only family of its number");
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        // The highest lane switches the counting on and off while all kinds of releases go on.
        let step = |name: &str| SubtaskBuilder::new(name, Work::from_nanos(50_000));
        let overloaded = task("overloaded", 2, 5).overrun(talea_model::Overrun::Abort);
        let system = system(Strategy::Rms)
            .lane_dispatch(dispatch)
            .node("frugal", [0])
            .task(TaskBuilder::new("chain", ms(1)).subtask(step("a")).subtask(step("b")))
            .task(task("clock", 4, 1))
            .task(overloaded)
            .task(task("skipping", 7, 9).overrun(talea_model::Overrun::SkipNext))
            .build()
            .expect("a system");
        let switch = |context: &JobContext<'_>| {
            match context.instance() {
                5 => COUNTING.store(true, Ordering::Relaxed),
                60.. => COUNTING.store(false, Ordering::Relaxed),
                _ => {}
            }
            counted::ran(context.instance());
        };
        let operations = Operations::synthetic().with("chain.a", switch);
        // A log is kept, so everything between the jobs is recorded as well.
        let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended("chain.a", 61));
        assert!(ran.position(Event::COMPLETE, "chain.a", 5).is_some(), "the counting was on");
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), 0, "{dispatch}");
    }
}

/// Without this the test would also pass if nothing were counted.
fn allocations_are_counted() {
    let allocating = |context: &JobContext<'_>| {
        COUNTING.store(true, Ordering::Relaxed);
        std::hint::black_box(vec![context.instance()]);
        COUNTING.store(false, Ordering::Relaxed);
    };
    let system =
        system(Strategy::Edf).node("frugal", [0]).task(task("job", 10_000, 1)).build().expect("a system");
    let operations = Operations::synthetic().with("job", allocating);
    let _ = run_until(&system, operations, options(RtMode::Off, 0), ended("job", 0));
    assert!(ALLOCATIONS.swap(0, Ordering::Relaxed) > 0);
}
