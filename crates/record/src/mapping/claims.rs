//! Ranges of memory that a handler looks up: one of a signal, or of a fork, which may neither allocate nor take a lock.
//!
//! They stand in a list of nodes that are never freed, only used again:
//!
//! ```text
//!  free (0)  --claim-->  claimed (1)  --length, then start-->  start of a mapping  --give up-->  free (0)
//! ```
//! A mapping leaves the list before it is unmapped, and comes into it after it was mapped.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

const FREE: usize = 0;
const CLAIMED: usize = 1;

/// One place in a list.
#[derive(Debug)]
struct Node {
    start: AtomicUsize,
    length: AtomicUsize,
    is_marked: AtomicBool,
    /// The node that was made before this one. It does not change.
    next: *const Node,
}

// SAFETY: `next` is set before the node is shared, and points to a node that is never freed; the rest is atomic.
unsafe impl Sync for Node {}

/// A list of ranges.
#[derive(Debug)]
pub(super) struct Claims(AtomicPtr<Node>);

/// A range in a list, until this is dropped, which is to be before the memory is unmapped.
#[derive(Debug)]
pub(super) struct Claim(&'static Node);

/// A range as a handler finds it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    /// Its address.
    pub start: usize,
    /// In bytes.
    pub length: usize,
    node: &'static Node,
}

impl Claims {
    /// An empty list.
    pub const fn new() -> Self {
        Claims(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Enters so many bytes at `start`.
    pub fn enter(&self, start: *const u8, length: usize) -> Claim {
        let node = self.claim();
        node.is_marked.store(false, Ordering::Relaxed);
        node.length.store(length, Ordering::Relaxed);
        node.start.store(start.expose_provenance(), Ordering::Release);
        Claim(node)
    }

    /// All ranges. Allocates nothing and takes no lock.
    pub fn ranges(&self) -> impl Iterator<Item = Claimed> {
        self.nodes().filter_map(|node| {
            let start = node.start.load(Ordering::Acquire);
            let length = node.length.load(Ordering::Relaxed);
            (start > CLAIMED).then_some(Claimed { start, length, node })
        })
    }

    fn nodes(&self) -> impl Iterator<Item = &'static Node> {
        // SAFETY: the pointer is null or to a node that `claim` has leaked.
        let first = unsafe { self.0.load(Ordering::Acquire).as_ref() };
        // SAFETY: likewise.
        std::iter::successors(first, |node| unsafe { node.next.as_ref() })
    }

    /// A node that nobody uses.
    fn claim(&self) -> &'static Node {
        let take = |node: &&'static Node| {
            node.start.compare_exchange(FREE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        if let Some(node) = self.nodes().find(take) {
            return node;
        }
        let node = Box::leak(Box::new(Node {
            start: AtomicUsize::new(CLAIMED),
            length: AtomicUsize::new(0),
            is_marked: AtomicBool::new(false),
            next: std::ptr::null(),
        }));
        let mut first = self.0.load(Ordering::Acquire);
        loop {
            node.next = first;
            match self.0.compare_exchange_weak(first, node, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return node,
                Err(other) => first = other,
            }
        }
    }
}

impl Claimed {
    /// Tells whoever entered it.
    pub fn mark(&self) {
        self.node.is_marked.store(true, Ordering::Relaxed);
    }
}

impl Claim {
    /// Whether a handler has marked it.
    pub fn is_marked(&self) -> bool {
        self.0.is_marked.load(Ordering::Relaxed)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.start.store(FREE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_marks_are_not() {
        static LIST: Claims = Claims::new();
        let bytes = [0_u8; 4];
        let first = LIST.enter(bytes.as_ptr(), 4);
        let second = LIST.enter(bytes[1..].as_ptr(), 3);
        let place = |start: &[u8]| LIST.ranges().find(|range| range.start == start.as_ptr().addr());
        assert_eq!(place(&bytes).map(|range| range.length), Some(4));
        place(&bytes).expect("it is there").mark();
        assert!(first.is_marked() && !second.is_marked());
        drop(first);
        assert_eq!(LIST.ranges().count(), 1);
        let third = LIST.enter(bytes[2..].as_ptr(), 2);
        assert!(!third.is_marked());
        assert_eq!((LIST.ranges().count(), LIST.nodes().count()), (2, 2));
    }
}
