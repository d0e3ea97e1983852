//! The writing end.

use crate::Stamp;
use crate::input::Take;
use crate::slots::{Claim, Hold, Slots};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_ring::bell::Bell;
use talea_ring::queue::{Pushed, Queue, WhenFull as Push};
use talea_time::Duration;

/// What becomes of a value for which the queue of a connection has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The oldest value in the queue is dropped for it.
    DropOldest,
    /// It is dropped itself.
    DropNewest,
    /// Whoever publishes waits up to this long for room; then it is dropped itself.
    Wait(Duration),
}

/// What a connection shares between its two ends.
pub struct Connection {
    pub(crate) queue: Queue,
    /// Rung when an entry has been taken, if whoever publishes may wait for that.
    pub(crate) room: Option<Bell>,
    dropped: AtomicU64,
    overtaken: AtomicU64,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Connection {
    fn new(capacity: usize, when_full: WhenFull) -> Self {
        let room = matches!(when_full, WhenFull::Wait(_)).then(Bell::new);
        let (dropped, overtaken) = (AtomicU64::new(0), AtomicU64::new(0));
        Connection { queue: Queue::new(capacity), room, dropped, overtaken }
    }

    /// Values that no job has had: for which there was no room, the oldest or the new ones, and where only the latest is taken, those before it.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Values of instances whose job had begun without them, or never came.
    pub fn overtaken(&self) -> u64 {
        self.overtaken.load(Ordering::Relaxed)
    }

    pub(crate) fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_overtaken(&self) {
        self.overtaken.fetch_add(1, Ordering::Relaxed);
    }

    /// Sleeps until there is room, or `until` has come, which counts from the origin of CLOCK_MONOTONIC.
    ///
    /// # Panics
    /// If nobody may wait for room here.
    pub fn wait_for_room(&self, until: std::time::Duration) {
        let bell = self.room.as_ref().expect("whoever publishes may wait");
        while self.queue.len() == self.queue.capacity() {
            let waited = bell.wait_until(until, || self.queue.len() < self.queue.capacity());
            if waited == talea_ring::bell::Waited::Due {
                return;
            }
        }
    }
}

/// A reader of an output, as the output sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// What it takes, by which it holds one value or as many as there is room for.
    pub take: Take,
    /// Values that its queue has room for, at least one.
    pub capacity: usize,
    /// What becomes of more.
    pub when_full: WhenFull,
}

impl Reader {
    /// Values that it can have at once: in its queue, and in its hands.
    fn holds(&self) -> usize {
        self.capacity
            + match self.take {
                // The one before it is given up when the next has been taken.
                Take::Latest => 2,
                Take::Each | Take::Instance => self.capacity,
            }
    }
}

/// A value that a connection dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The reader, in the order in which they were given.
    pub reader: usize,
    /// The instance of the value.
    pub instance: u64,
}

/// What publishing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// The job wrote nothing.
    Nothing,
    /// The value is the same as the one before.
    Same,
    /// It is another one, or nobody compares.
    New,
}

/// How a value is compared with the one before.
type Compare<T> = fn(&T, &T) -> bool;

/// An output: where jobs of one operation, one at a time, write their values.
pub struct OutputPort<T> {
    slots: Arc<Slots<T>>,
    readers: Box<[(Arc<Connection>, WhenFull)]>,
    writing: Option<Claim>,
    /// Where to look for a free slot first: behind the one that was claimed last.
    next: usize,
    compare: Option<Compare<T>>,
    /// The value before, if values are compared.
    before: Option<Hold>,
}

impl<T> std::fmt::Debug for OutputPort<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputPort").field("slots", &self.slots.len()).finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> OutputPort<T> {
    /// An output for these readers, with slots for all the values that they can have at once, one that is being written and one to compare
    /// with, each filled by `value`. The inputs follow in the order of the readers.
    pub fn new(
        readers: &[Reader],
        compare: Option<fn(&T, &T) -> bool>,
        value: impl FnMut() -> T,
    ) -> (Self, Vec<crate::InputPort<T>>) {
        let held: usize = readers.iter().map(Reader::holds).sum();
        let slots = Arc::new(Slots::new(held + 1 + usize::from(compare.is_some()), value));
        let connect = |reader: &Reader| Arc::new(Connection::new(reader.capacity, reader.when_full));
        let connections: Vec<_> = readers.iter().map(connect).collect();
        let inputs = readers.iter().zip(&connections).map(|(reader, connection)| {
            crate::InputPort::new(Arc::clone(&slots), Arc::clone(connection), reader.take)
        });
        let inputs = inputs.collect();
        let readers = connections.into_iter().zip(readers.iter().map(|reader| reader.when_full)).collect();
        (OutputPort { slots, readers, writing: None, next: 0, compare, before: None }, inputs)
    }

    /// The value that the current job publishes when it completes. It is what some earlier job left there, until it is written.
    #[inline]
    pub fn value(&mut self) -> &mut T {
        let (slots, next) = (&self.slots, &mut self.next);
        let claim = self.writing.get_or_insert_with(|| {
            let claim = slots.claim(*next).expect("there are slots for all that readers can hold");
            *next = slots.behind(&claim);
            claim
        });
        slots.value_mut(claim)
    }

    fn differs(&self, claim: &Claim) -> bool {
        match (self.compare, &self.before) {
            (Some(same), Some(before)) => !same(self.slots.written(claim), self.slots.value(before)),
            (Some(_), None) | (None, _) => true,
        }
    }
}

/// What is done with an output whatever it carries.
pub trait Output: Any + Send {
    /// The job has completed: its value, if it wrote one, goes to the readers. Says of each that is dropped whose it was. Neither allocates
    /// nor waits.
    fn publish(&mut self, stamp: Stamp, dropped: &mut dyn FnMut(Dropped)) -> Published;
    /// The job did not complete: what it wrote is forgotten.
    fn discard(&mut self);
    /// The connections that have no room now, and for which whoever publishes is to wait so long at most before that.
    fn full(&self) -> Option<(&Arc<Connection>, Duration)>;
    /// The ends of its connections, in the order of the readers.
    fn connections(&self) -> Box<dyn Iterator<Item = &Arc<Connection>> + '_>;
    /// The output itself, an [`OutputPort`].
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Send + Sync + 'static> Output for OutputPort<T> {
    #[inline]
    fn publish(&mut self, stamp: Stamp, dropped: &mut dyn FnMut(Dropped)) -> Published {
        let Some(claim) = self.writing.take() else { return Published::Nothing };
        let is_new = self.compare.is_none() || self.differs(&claim);
        let holds = self.readers.len() as u32 + u32::from(self.compare.is_some());
        let mut holds = self.slots.share(claim, holds);
        if self.compare.is_some()
            && let Some(before) = std::mem::replace(&mut self.before, holds.next())
        {
            self.slots.give_up(before);
        }
        for (reader, ((connection, when_full), hold)) in self.readers.iter().zip(holds).enumerate() {
            let push = match when_full {
                WhenFull::DropOldest => Push::TakeBackOldest,
                WhenFull::DropNewest | WhenFull::Wait(_) => Push::Refuse,
            };
            let number = hold.into_number();
            let entry = [number, stamp.instance, stamp.visible_at.as_nanos() as u64];
            let (lost, instance) = match connection.queue.push(entry, push) {
                Pushed::Taken => continue,
                Pushed::InPlaceOf([oldest, instance, _]) => (oldest, instance),
                Pushed::Full => (number, stamp.instance),
            };
            self.slots.give_up(Hold::from_number(lost));
            connection.count_dropped();
            dropped(Dropped { reader, instance });
        }
        if is_new { Published::New } else { Published::Same }
    }

    fn discard(&mut self) {
        if let Some(claim) = self.writing.take() {
            self.slots.share(claim, 0).for_each(drop);
        }
    }

    fn full(&self) -> Option<(&Arc<Connection>, Duration)> {
        self.writing.as_ref()?;
        self.readers.iter().find_map(|(connection, when_full)| match when_full {
            WhenFull::Wait(limit) if connection.queue.len() == connection.queue.capacity() => {
                Some((connection, *limit))
            }
            _ => None,
        })
    }

    fn connections(&self) -> Box<dyn Iterator<Item = &Arc<Connection>> + '_> {
        Box::new(self.readers.iter().map(|(connection, _)| connection))
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
