//! A value that is replaced as a whole while others read it without a lock.

use arc_swap::{ArcSwap, Guard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use talea_linux::pi_lock::PiLock;

/// A value that is replaced as a whole. Former values are freed by who replaces one later, never by a reader; so reading frees no memory.
#[derive(Debug)]
pub(crate) struct Replaced<T> {
    current: ArcSwap<T>,
    /// Former values that somebody still read when the value was last replaced.
    former: PiLock<Vec<Arc<T>>>,
}

impl<T: Default> Default for Replaced<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Replaced<T> {
    pub fn new(value: T) -> Self {
        Replaced { current: ArcSwap::from_pointee(value), former: PiLock::new(Vec::new()) }
    }

    /// The current value. Allocates once on a thread that has not been [prepared](prepare_thread).
    #[inline]
    pub fn load(&self) -> Guard<Arc<T>> {
        self.current.load()
    }

    /// Replaces the value, and returns those that nobody reads any more: dropping them may call code of the program.
    pub fn store(&self, value: T) -> Vec<Arc<T>> {
        self.keep(self.current.swap(Arc::new(value)))
    }

    /// Replaces the value by what `change` makes of it, also if others replace it meanwhile. Returns what [`Self::store`] does.
    pub fn update(&self, change: impl Fn(&T) -> T) -> Vec<Arc<T>> {
        self.keep(self.current.rcu(|value| change(value)))
    }

    fn keep(&self, replaced: Arc<T>) -> Vec<Arc<T>> {
        let mut former = self.former.lock().0;
        former.push(replaced);
        // Nobody begins to read a value that is not the current one, so who counts himself alone stays alone.
        former.extract_if(.., |value| Arc::strong_count(value) == 1).collect()
    }
}

/// What may hold nothing, so that there is nothing to ask.
pub(crate) trait Collection {
    fn is_empty(&self) -> bool;
}

/// Filters that several share and that are replaced as a whole. Where there are none, asking costs next to nothing.
#[derive(Debug)]
pub(crate) struct ReplacedFilters<T> {
    are_none: AtomicBool,
    filters: Replaced<T>,
}

impl<T: Collection + Clone> ReplacedFilters<T> {
    pub fn new(filters: T) -> Self {
        ReplacedFilters { are_none: AtomicBool::new(filters.is_empty()), filters: Replaced::new(filters) }
    }

    /// Replaces them. Returns what nobody looks at any more: dropping that may call code of the program.
    pub fn set(&self, filters: T) -> Vec<Arc<T>> {
        let are_none = filters.is_empty();
        let former = self.filters.store(filters);
        self.are_none.store(are_none, Ordering::Release);
        former
    }

    pub fn get(&self) -> T {
        T::clone(&self.filters.load())
    }

    /// Asks them, if there are any.
    #[inline]
    pub fn ask<A>(&self, question: impl FnOnce(&T) -> A) -> Option<A> {
        if self.are_none.load(Ordering::Acquire) { None } else { Some(question(&self.filters.load())) }
    }
}

/// Makes what the calling thread needs of its own to read without allocating.
pub fn prepare_thread() {
    static ANY: LazyLock<ArcSwap<()>> = LazyLock::new(ArcSwap::default);
    drop(ANY.load());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Weak;

    #[test]
    fn a_value_that_is_read_is_freed_by_who_replaces_one_later() {
        let replaced = Replaced::new(0);
        let read = replaced.load();
        let [first, second] = [1, 2].map(|value| {
            let current: Weak<_> = Arc::downgrade(&replaced.current.load_full());
            drop(replaced.store(value));
            current
        });
        assert_eq!(second.upgrade(), None, "nobody reads it");
        assert_eq!(*read, first.upgrade().expect("it is read"));
        drop(read);
        assert_eq!(first.upgrade().as_deref(), Some(&0), "reading frees nothing");
        replaced.update(|value| value + 1);
        assert_eq!((first.upgrade(), **replaced.load()), (None, 3));
    }
}
