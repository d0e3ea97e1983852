//! Values from many producers to one consumer, bounded, without locks and allocation.
//!
//! A producer claims a slot, puts its value there and pushes the slot's number into an [inbox](talea_ring::inbox); the consumer pops the number, takes
//! the value and frees the slot.
//!
//! ```text
//!            claim            put, push                pop, take
//!   FREE ─────(1)──► CLAIMED ────(2)────► in the inbox ────(3)────► FREE
//! ```
//!
//! 1. A compare-and-swap from FREE, with acquire, which pairs with (3): who claims the slot finds it empty.
//! 2. The push releases what was put, and the pop acquires it.
//! 3. The consumer takes the value before it stores FREE, with release.
//!
//! A producer that is interrupted between (1) and (2) keeps one slot and nothing else from the others.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use talea_ring::inbox::{Links, Receiver, Sender};

/// A slot, and whether somebody has claimed it.
struct Slot<T> {
    is_claimed: AtomicBool,
    value: UnsafeCell<Option<T>>,
}

struct Slots<T> {
    slots: Box<[Slot<T>]>,
    /// Where the next producer looks first: at the slot that was freed last, which is still in the processor's caches, or behind the one that was
    /// claimed last.
    next: AtomicUsize,
}

// SAFETY: a slot's value is reached by who has claimed it until its number is pushed, and by the consumer from its pop until it frees the slot; each
// follows the other in time (see the module). Values go from thread to thread and are never shared (`Send`).
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    fn claim(&self) -> Option<usize> {
        let following = |slot| if slot + 1 < self.slots.len() { slot + 1 } else { 0 };
        let first = self.next.load(Ordering::Relaxed);
        let mut all =
            std::iter::successors(Some(first), |slot| Some(following(*slot))).take(self.slots.len());
        let claimed = all.find(|slot| {
            let is_claimed = &self.slots[*slot].is_claimed;
            !is_claimed.load(Ordering::Relaxed)
                && is_claimed.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })?;
        self.next.store(following(claimed), Ordering::Relaxed);
        Some(claimed)
    }
}

/// The producers' end; clone or share it.
pub struct MailSender<T> {
    slots: Arc<Slots<T>>,
    numbers: Sender,
}

/// The consumer's end; there is one.
pub struct MailReceiver<T> {
    slots: Arc<Slots<T>>,
    numbers: Receiver,
}

/// A mailbox for so many values at once. The only allocation.
///
/// # Panics
/// If that is none, or 2^32 - 2 or more.
pub fn mailbox<T: Send>(capacity: usize) -> (MailSender<T>, MailReceiver<T>) {
    assert!(capacity > 0, "a mailbox has room");
    let slot = || Slot { is_claimed: AtomicBool::new(false), value: UnsafeCell::new(None) };
    let slots = std::iter::repeat_with(slot).take(capacity).collect();
    let slots = Arc::new(Slots { slots, next: AtomicUsize::new(0) });
    let (sender, receiver) = Links::new(capacity).inbox();
    (MailSender { slots: Arc::clone(&slots), numbers: sender }, MailReceiver { slots, numbers: receiver })
}

impl<T: Send> MailSender<T> {
    /// Puts a value in, behind all that were before.
    ///
    /// # Errors
    /// The value, if as many are there as there is room for.
    #[inline]
    pub fn push(&self, value: T) -> Result<(), T> {
        let Some(slot) = self.slots.claim() else { return Err(value) };
        // SAFETY: this producer has claimed the slot and not pushed its number, so nobody else reaches the value.
        unsafe { *self.slots.slots[slot].value.get() = Some(value) };
        self.numbers.push(slot as u32).expect("the number of a slot that was free is in no inbox");
        Ok(())
    }
}

impl<T> Clone for MailSender<T> {
    fn clone(&self) -> Self {
        MailSender { slots: Arc::clone(&self.slots), numbers: self.numbers.clone() }
    }
}

impl<T> std::fmt::Debug for MailSender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MailSender").field("capacity", &self.slots.slots.len()).finish_non_exhaustive()
    }
}

impl<T: Send> MailReceiver<T> {
    /// Takes the oldest value.
    pub fn pop(&mut self) -> Option<T> {
        let number = self.numbers.pop()? as usize;
        let slot = &self.slots.slots[number];
        // SAFETY: the number was popped and the slot is not free yet, so nobody else reaches the value.
        let value = unsafe { (*slot.value.get()).take() };
        slot.is_claimed.store(false, Ordering::Release);
        self.slots.next.store(number, Ordering::Relaxed);
        Some(value.expect("a pushed slot has a value"))
    }

    /// Whether [`Self::pop`] would take one.
    pub fn has_value(&self) -> bool {
        self.numbers.has_number()
    }
}

impl<T> std::fmt::Debug for MailReceiver<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MailReceiver").field("capacity", &self.slots.slots.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_bounded_queue(capacity in 1usize..5, steps in prop::collection::vec(any::<bool>(), 0..60)) {
            let (sender, mut receiver) = mailbox(capacity);
            let mut model = VecDeque::new();
            for (number, is_push) in steps.into_iter().enumerate() {
                if is_push {
                    // What goes through it owns memory, so that a value that was lost or had twice would show.
                    let pushed = sender.push(Box::new(number));
                    prop_assert_eq!(pushed.is_ok(), model.len() < capacity);
                    if pushed.is_ok() {
                        model.push_back(number);
                    }
                } else {
                    prop_assert_eq!(receiver.pop().map(|value| *value), model.pop_front());
                }
                prop_assert_eq!(receiver.has_value(), !model.is_empty());
            }
        }
    }

    #[test]
    fn each_producers_values_come_in_their_order_and_none_is_lost() {
        const PRODUCERS: usize = 3;
        const VALUES: u64 = if cfg!(miri) { 100 } else { 20_000 };
        let (sender, mut receiver) = mailbox(8);
        std::thread::scope(|scope| {
            for producer in 0..PRODUCERS {
                let sender = sender.clone();
                scope.spawn(move || {
                    for number in 0..VALUES {
                        let mut value = Box::new((producer, number));
                        while let Err(refused) = sender.push(value) {
                            value = refused;
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let mut next = [0; PRODUCERS];
            while next.iter().sum::<u64>() < PRODUCERS as u64 * VALUES {
                match receiver.pop() {
                    Some(value) => {
                        assert_eq!(next[value.0], value.1);
                        next[value.0] += 1;
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
        assert!(receiver.pop().is_none());
    }
}
