//! What is known per kind of event, found by the number in a record without searching.

use talea_record::Event;

/// A value for some events.
#[derive(Debug)]
pub(crate) struct EventTable<T> {
    /// By event, 1 + the place in `values`; 0 for none.
    places: Vec<u32>,
    values: Vec<T>,
}

impl<T> EventTable<T> {
    /// A table of these.
    pub fn new(values: impl IntoIterator<Item = (Event, T)>) -> Self {
        let mut table = EventTable { places: vec![0; 1 << 16], values: Vec::new() };
        values.into_iter().for_each(|(event, value)| table.insert(event, value));
        table
    }

    /// Adds a value for an event that has none.
    pub fn insert(&mut self, event: Event, value: T) {
        debug_assert!(self.get(event).is_none(), "an event has one value");
        self.values.push(value);
        self.places[usize::from(event.0)] = self.values.len() as u32;
    }

    /// The event's value.
    #[inline]
    pub fn get(&self, event: Event) -> Option<&T> {
        self.values.get((self.places[usize::from(event.0)] as usize).wrapping_sub(1))
    }

    /// All values in the order in which they were added.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}
