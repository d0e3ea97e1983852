//! Filters that are replaced as a whole while others read them without a lock.

use std::sync::atomic::{AtomicBool, Ordering};
use talea_linux::replaced::Replaced;

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
    pub fn set(&self, filters: T) -> Vec<T> {
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
