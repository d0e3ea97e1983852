//! A value that is replaced as a whole while others read it without a lock, by [hazard pointers](talea_ring::hazard).

use crate::pi_lock::PiLock;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use talea_ring::hazard::{Hazard, Replaceable, prepare};

/// How many values a thread reads at once with what it has of its own.
const AT_ONCE: usize = 32;

/// What one thread reads. Threads that have ended leave theirs to others.
#[derive(Default)]
#[repr(align(128))]
struct Reader {
    hazards: [Hazard; AT_ONCE],
    is_taken: AtomicBool,
    /// Of all that there are, the next; set before the others know of this one.
    next: Option<&'static Reader>,
}

/// The first of all that there are.
static READERS: AtomicPtr<Reader> = AtomicPtr::new(ptr::null_mut());

impl Reader {
    /// All that there are.
    fn all() -> impl Iterator<Item = &'static Reader> {
        // SAFETY: whoever made a reader has left it for ever, and everything that was written before is seen by who acquires the pointer.
        let first: Option<&'static Reader> = unsafe { READERS.load(Ordering::Acquire).as_ref() };
        std::iter::successors(first, |reader| reader.next)
    }

    /// One for the calling thread, which nobody else has: of a thread that has ended, or a new one, which allocates.
    fn take() -> &'static Reader {
        let is_free = |reader: &&Reader| {
            let free = (false, true, Ordering::Acquire, Ordering::Relaxed);
            reader.is_taken.compare_exchange(free.0, free.1, free.2, free.3).is_ok()
        };
        Reader::all().find(is_free).unwrap_or_else(Reader::add)
    }

    #[cold]
    fn add() -> &'static Reader {
        let reader = Box::leak(Box::new(Reader { is_taken: AtomicBool::new(true), ..Reader::default() }));
        let mut first = READERS.load(Ordering::Acquire);
        loop {
            // SAFETY: as in `all`.
            reader.next = unsafe { first.as_ref() };
            let own: *mut Reader = reader;
            match READERS.compare_exchange_weak(first, own, Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: it was leaked, and from here on nobody changes it but its atomics.
                Ok(_) => return unsafe { &*own },
                Err(other) => first = other,
            }
        }
    }
}

thread_local! {
    /// The reader of this thread, once it has one, and which of its hazards are free, a bit for each.
    static OWN: Cell<(Option<&'static Reader>, u32)> = const { Cell::new((None, 0)) };
    /// Gives it back when the thread ends.
    static GIVES_BACK: GivesBack = const { GivesBack };
}

struct GivesBack;

impl Drop for GivesBack {
    fn drop(&mut self) {
        // What is read still, by what else the thread drops, keeps its hazard, and so the whole reader.
        if let (Some(reader), u32::MAX) = OWN.get() {
            OWN.set((None, 0));
            reader.is_taken.store(false, Ordering::Release);
        }
    }
}

/// A hazard of the calling thread that protects nothing, and where it is: in the thread's own reader, or alone in one.
#[inline]
fn hazard() -> (&'static Reader, usize) {
    let (reader, free) = OWN.get();
    match reader {
        Some(reader) if free != 0 => {
            OWN.set((Some(reader), free & (free - 1)));
            (reader, free.trailing_zeros() as usize)
        }
        _ => more(reader),
    }
}

#[cold]
fn more(reader: Option<&'static Reader>) -> (&'static Reader, usize) {
    let taken = Reader::take();
    if reader.is_none() {
        // Where the thread is just ending, nobody gives it back.
        _ = GIVES_BACK.try_with(|_| ());
        OWN.set((Some(taken), u32::MAX - 1));
    }
    (taken, 0)
}

/// Makes what the calling thread needs of its own to read without allocating.
pub fn prepare_thread() {
    if OWN.get().0.is_none() {
        let (reader, place) = hazard();
        give_back(reader, place);
    }
}

#[inline]
fn give_back(reader: &'static Reader, place: usize) {
    match OWN.get() {
        (Some(own), free) if ptr::eq(own, reader) => OWN.set((Some(own), free | 1 << place)),
        _ => reader.is_taken.store(false, Ordering::Release),
    }
}

/// A value that is replaced as a whole. Former values are freed by who replaces one later, never by a reader; so reading frees no memory.
pub struct Replaced<T> {
    current: Replaceable<T>,
    /// Former values that somebody still read when the value was last replaced. Who replaces it has the lock.
    former: PiLock<Vec<Former<T>>>,
}

/// A value that nobody begins to read any more. No box yet, since boxes have their value alone.
struct Former<T>(*mut T);

impl<T> Former<T> {
    fn is_read(&self) -> bool {
        Reader::all().flat_map(|reader| &reader.hazards).any(|hazard| hazard.protects(self.0))
    }

    /// # Safety
    /// It is not read.
    unsafe fn into_value(self) -> T {
        // SAFETY: it came from a box, and nobody else has it: it was replaced once, and is not read.
        unsafe { *Box::from_raw(self.0) }
    }
}

// SAFETY: a value is made by one thread, read by any (`Sync`) and freed by any (`Send`); hazards keep it while it is read.
unsafe impl<T: Send + Sync> Sync for Replaced<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Send for Replaced<T> {}

impl<T: Default> Default for Replaced<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Replaced<T> {
    /// A value. What readers need is found out, which takes some milliseconds the first time.
    pub fn new(value: T) -> Self {
        prepare();
        Replaced {
            current: Replaceable::new(Box::into_raw(Box::new(value))),
            former: PiLock::new(Vec::new()),
        }
    }

    /// The current value. Allocates once on a thread that has not been [prepared](prepare_thread), and where it reads more than 32 at once.
    #[inline]
    pub fn load(&self) -> Reading<'_, T> {
        let (reader, place) = hazard();
        let value = reader.hazards[place].protect(&self.current);
        // SAFETY: the value is valid until it has been replaced and no hazard names it, and this one does until the guard is dropped.
        Reading { value: unsafe { &*value }, reader, place, of_thread: PhantomData }
    }

    /// Replaces the value, and returns those that nobody reads any more: dropping them may call code of the program.
    pub fn store(&self, value: T) -> Vec<T> {
        self.update(|_| value)
    }

    /// Replaces the value by what `change` makes of it; of several one after the other. Returns what [`Self::store`] does.
    pub fn update(&self, change: impl FnOnce(&T) -> T) -> Vec<T> {
        let mut former = self.former.lock();
        let value = change(&self.load());
        let replaced = self.current.replace(Box::into_raw(Box::new(value)));
        former.push(Former(replaced));
        // SAFETY: who begins to read does not find it any more, so that what is not read now is not read for ever.
        former.extract_if(.., |value| !value.is_read()).map(|value| unsafe { value.into_value() }).collect()
    }
}

impl<T> Drop for Replaced<T> {
    fn drop(&mut self) {
        let current = Former(self.current.get_mut());
        let former = std::mem::take(self.former.get_mut());
        // SAFETY: whoever reads has borrowed this.
        former.into_iter().chain([current]).for_each(|value| drop(unsafe { value.into_value() }));
    }
}

impl<T: fmt::Debug> fmt::Debug for Replaced<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Replaced").field(&*self.load()).finish()
    }
}

/// A value that is being read, as it was when that began.
pub struct Reading<'a, T> {
    value: &'a T,
    reader: &'static Reader,
    place: usize,
    /// The hazard is that of a thread.
    of_thread: PhantomData<*const ()>,
}

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for Reading<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.reader.hazards[self.place].clear();
        give_back(self.reader, self.place);
    }
}

impl<T: fmt::Debug> fmt::Debug for Reading<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier, Mutex, PoisonError, Weak};

    /// Who has or counts many readers of the process does it alone.
    static MANY: Mutex<()> = Mutex::new(());

    #[test]
    fn a_value_that_is_read_is_freed_by_who_replaces_one_later() {
        let (first, second) = (Arc::new(0), Arc::new(1));
        let weak = [&first, &second].map(Arc::downgrade);
        let replaced = Replaced::new(first);
        let read = replaced.load();
        drop(replaced.store(second));
        assert_eq!(weak[0].upgrade().as_deref(), Some(&**read), "it is read");
        drop(replaced.store(Arc::new(2)));
        assert_eq!(weak[1].upgrade(), None, "nobody has read it");
        drop(read);
        assert_eq!(weak[0].upgrade().as_deref(), Some(&0), "reading frees nothing");
        replaced.update(|value| Arc::new(**value + 1));
        assert_eq!((weak[0].upgrade(), **replaced.load()), (None, 3));
    }

    #[test]
    fn any_number_of_values_is_read_at_once_and_given_back_in_any_order() {
        let _alone = MANY.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<Replaced<usize>> = (0..3 * AT_ONCE).map(Replaced::new).collect();
        for round in 0..3 {
            let mut read: Vec<_> = all.iter().map(Replaced::load).collect();
            all.iter().for_each(|one| assert!(one.update(|value| value + 1).is_empty(), "it is read"));
            assert!(read.iter().enumerate().all(|(place, value)| **value == place + 2 * round));
            while !read.is_empty() {
                read.swap_remove(read.len() / 2);
            }
            all.iter().for_each(|one| assert_eq!(one.update(|value| value + 1).len(), 2));
        }
    }

    /// Of a value that changes in two places readers see one or the other whole, while others free what was before; and all are freed in the end.
    #[test]
    fn readers_have_whole_values_and_all_are_freed_once() {
        struct Both(Box<(u64, u64)>, Arc<()>);
        let (token, rounds) = (Arc::new(()), 5_000);
        let alive: Weak<()> = Arc::downgrade(&token);
        let replaced = Replaced::new(Both(Box::new((0, 0)), token));
        let begin = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    begin.wait();
                    let mut newest = 0;
                    while newest < 2 * rounds {
                        let (outer, inner) = (replaced.load(), replaced.load());
                        assert_eq!(outer.0.0, outer.0.1);
                        assert!(newest <= outer.0.0 && outer.0.0 <= inner.0.0);
                        newest = inner.0.0;
                    }
                });
                scope.spawn(|| {
                    begin.wait();
                    let next =
                        |both: &Both| Both(Box::new((both.0.0 + 1, both.0.1 + 1)), Arc::clone(&both.1));
                    (0..rounds).for_each(|_| drop(replaced.update(next)));
                });
            }
        });
        assert_eq!(replaced.load().0.0, 2 * rounds);
        drop(replaced);
        assert_eq!(alive.strong_count(), 0);
    }

    #[test]
    fn threads_that_have_ended_leave_what_they_read_with_to_others() {
        let _alone = MANY.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = Replaced::new(0);
        let count = || Reader::all().count();
        std::thread::scope(|scope| _ = scope.spawn(|| *replaced.load()).join());
        let before = count();
        for _ in 0..50 {
            std::thread::scope(|scope| _ = scope.spawn(|| *replaced.load()).join());
        }
        // Other tests take some, too.
        assert!(count() < before + 25, "{} after {before}", count());
    }
}
