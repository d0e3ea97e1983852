//! The inbox of a lane: many producers, one consumer, bounded, without locks and allocation.
//!
//! Inboxes carry *numbers*: what a number stands for the producer writes down elsewhere before it pushes
//! the number, and the consumer reads it there after the pop. (In a run the numbers are the tags of jobs
//! and the place is the table of jobs in flight.) Whoever pushes a number owns it until the pop, so
//! that no number is in two places at once. Each inbox has one word, the *top*; all of a process share one
//! link for each number. What has been published in an inbox and not taken yet is a chain from its top
//! down, the newest first (a stack after Treiber 1986). The consumer takes the whole chain with one swap,
//! turns it round and then has it to itself.
//!
//! ```text
//!               publish                 take all                 pop
//!   FREE ─────────(1)───────► CHAINED ─────(2)─────► TAKEN ───────(3)───────► FREE
//!   link FREE                 link: the next         link: the next
//!                             older number           newer number
//! ```
//!
//! 1. The producer links the number to the top and moves the top to the number, with release. If the top
//!    has moved since it was read, both are tried again. A number whose link is not FREE is refused before
//!    anything is changed; reading FREE acquires (pairs with 3).
//! 2. The consumer swaps the top for "nothing", with acquire. That pairs with (1) of *every* number of the
//!    chain, not only of the newest: each move of the top is a read-modify-write, so the later ones continue
//!    the release sequences of the earlier ones.
//! 3. The consumer stores FREE with release.
//!
//! A top that was A, became something else and is A again deceives nobody: the link of a number that is about
//! to be published says only what lies below it, and that is A in both cases.
//!
//! **Order.** Numbers arrive in the order in which they were published, those of one producer therefore in
//! the order of its pushes.
//!
//! **Nothing hides behind an unfinished push.** A number is published by one step, the move of the top.
//! Before it no other thread sees a trace of the push, and after it nothing is left to do. So a producer may
//! be preempted anywhere and for any time: it delays its own number only. This matters because producers have
//! different priorities. In a queue where a place is claimed in one step and filled in another, a thread of a
//! low lane that was preempted between the two would hide what the release thread pushes for as long as
//! the lanes in the middle keep the processor.
//!
//! **Progress.** A push retries only when another push or a take moved the top, so somebody always advances.
//! A thread of lower priority on the same processor cannot make it retry: it does not run meanwhile. The
//! consumer never waits for anything inside `pop`.

use crate::primitive::{Arc, AtomicU32, Ordering};
use std::fmt;

/// The number is in an inbox already: it has been pushed and not popped. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied;

impl fmt::Display for Occupied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the number is in an inbox already")
    }
}

impl std::error::Error for Occupied {}

/// In a top: the chain is empty. In a link: no number follows.
const NOTHING: u32 = u32::MAX;
/// In a link: the number is in no inbox.
const FREE: u32 = u32::MAX - 1;

/// The numbers that some inboxes carry.
pub struct Links(Arc<Box<[AtomicU32]>>);

impl Links {
    /// Links for `numbers` numbers from 0. With [`Links::inbox`] the only allocation.
    ///
    /// # Panics
    /// If `numbers` is 2^32 - 2 or more, a broken invariant of the caller.
    pub fn new(numbers: usize) -> Self {
        assert!(numbers < FREE as usize, "inboxes for {numbers} numbers");
        Links(Arc::new((0..numbers).map(|_| AtomicU32::new(FREE)).collect()))
    }

    /// Makes an inbox for these numbers. It never is full: each number has room.
    pub fn inbox(&self) -> (Sender, Receiver) {
        let top = Arc::new(Top(AtomicU32::new(NOTHING)));
        let sender = Sender { top: Arc::clone(&top), links: Arc::clone(&self.0) };
        (sender, Receiver { top, links: Arc::clone(&self.0), first: NOTHING })
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("numbers", &self.0.len()).finish_non_exhaustive()
    }
}

/// The newest published number, alone in its cache lines: the prefetcher of adjacent lines must not couple
/// it with what other threads write.
#[repr(align(128))]
struct Top(AtomicU32);

/// The producers' end; clone or share it.
#[derive(Clone)]
pub struct Sender {
    top: Arc<Top>,
    links: Arc<Box<[AtomicU32]>>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("numbers", &self.links.len()).finish_non_exhaustive()
    }
}

impl Sender {
    /// Publishes a number, and with it whatever was written before. Allocates nothing, takes no lock, calls
    /// nothing; ring the bell afterwards.
    ///
    /// Two threads never push the same number at the same time. The job table sees to that: a tag is
    /// claimed before it is pushed. If they did, the chain could lose numbers or close to a ring.
    ///
    /// # Errors
    /// [`Occupied`] if the number is in this or another inbox of the same [`Links`].
    ///
    /// # Panics
    /// If there is no such number.
    #[inline]
    pub fn push(&self, number: u32) -> Result<(), Occupied> {
        let link = &self.links[number as usize];
        if link.load(Ordering::Acquire) != FREE {
            return Err(Occupied);
        }
        let top = &self.top.0;
        let mut below = top.load(Ordering::Relaxed);
        loop {
            link.store(below, Ordering::Relaxed);
            match top.compare_exchange_weak(below, number, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(moved) => below = moved,
            }
        }
    }
}

/// The consumer's end; there is one.
pub struct Receiver {
    top: Arc<Top>,
    links: Arc<Box<[AtomicU32]>>,
    /// The oldest number that has been taken off the chain and not popped; its link leads to newer ones.
    first: u32,
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("numbers", &self.links.len()).finish_non_exhaustive()
    }
}

impl Receiver {
    /// Takes the oldest number, or `None` if all that were published have been popped. Constant time,
    /// amortised: the pop that takes a chain turns it round.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        if self.first == NOTHING {
            self.first = self.take_all();
        }
        let number = (self.first != NOTHING).then_some(self.first)?;
        let link = &self.links[number as usize];
        self.first = link.load(Ordering::Relaxed);
        link.store(FREE, Ordering::Release);
        Some(number)
    }

    /// Transition 2. Returns the oldest number of the chain, each linked to the next newer one.
    fn take_all(&self) -> u32 {
        // A lane looks more often than it finds something; looking alone writes nothing.
        if self.top.0.load(Ordering::Relaxed) == NOTHING {
            return NOTHING;
        }
        let (mut newer, mut number) = (NOTHING, self.top.0.swap(NOTHING, Ordering::Acquire));
        while number != NOTHING {
            let link = &self.links[number as usize];
            let older = link.load(Ordering::Relaxed);
            link.store(newer, Ordering::Relaxed);
            (newer, number) = (number, older);
        }
        newer
    }

    /// Whether [`pop`](Self::pop) would answer a number; for the re-check before sleeping.
    #[inline]
    pub fn has_number(&self) -> bool {
        self.first != NOTHING || self.top.0.load(Ordering::Relaxed) != NOTHING
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn refuses_a_number_that_is_in_an_inbox_already() {
        let links = Links::new(2);
        let (sender, mut receiver) = links.inbox();
        let (other, _other_receiver) = links.inbox();
        assert_eq!(sender.push(0), Ok(()));
        assert_eq!((sender.push(0), other.push(0)), (Err(Occupied), Err(Occupied)));
        assert_eq!(sender.push(1), Ok(()));
        assert_eq!(receiver.pop(), Some(0));
        assert_eq!(sender.push(1), Err(Occupied), "it has been taken but not popped");
        assert_eq!(other.push(0), Ok(()));
        assert_eq!((receiver.pop(), receiver.pop()), (Some(1), None));
    }

    #[test]
    fn one_number_goes_round_and_round() {
        let (sender, mut receiver) = Links::new(1).inbox();
        for _ in 0..5 {
            assert!(!receiver.has_number());
            assert_eq!(sender.push(0), Ok(()));
            assert!(receiver.has_number());
            assert_eq!((receiver.pop(), receiver.pop()), (Some(0), None));
        }
    }

    #[test]
    fn what_is_published_after_a_take_comes_after_what_was_taken() {
        let (sender, mut receiver) = Links::new(5).inbox();
        [4, 0, 2].into_iter().for_each(|number| sender.push(number).unwrap());
        assert_eq!(receiver.pop(), Some(4));
        [3, 1].into_iter().for_each(|number| sender.push(number).unwrap());
        assert!(receiver.has_number());
        let rest: Vec<u32> = std::iter::from_fn(|| receiver.pop()).collect();
        assert_eq!(rest, [0, 2, 3, 1]);
    }

    proptest! {
        #[test]
        fn two_inboxes_of_the_same_numbers_behave_like_two_queues(
            numbers in 1u32..9,
            steps in prop::collection::vec((0usize..2, prop::option::of(0u32..9)), 0..200),
        ) {
            let links = Links::new(numbers as usize);
            let mut inboxes = [links.inbox(), links.inbox()];
            let mut models = [VecDeque::new(), VecDeque::new()];
            for (which, push) in steps {
                let (sender, receiver) = &mut inboxes[which];
                if let Some(number) = push.map(|number| number % numbers) {
                    let free = models.iter().all(|model| !model.contains(&number));
                    prop_assert_eq!(sender.push(number), if free { Ok(()) } else { Err(Occupied) });
                    if free {
                        models[which].push_back(number);
                    }
                } else {
                    prop_assert_eq!(receiver.has_number(), !models[which].is_empty());
                    prop_assert_eq!(receiver.pop(), models[which].pop_front());
                }
            }
        }
    }
}
