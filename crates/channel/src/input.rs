//! The reading end.

use crate::Stamp;
use crate::connection::Connection;
use crate::slots::{Hold, Slots};
use std::any::Any;
use std::sync::Arc;
use talea_ring::queue::Entry;
use talea_time::Instant;

/// Which of the values that are there a job takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// That of the same instance.
    Instance,
    /// The newest; if there is none since the last one, the same again.
    Latest,
    /// All since the last job.
    Each,
}

/// When, and by which job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The instance of the job.
    pub instance: u64,
    /// As of this instant: what is visible later is not taken. [`Instant::MAX`] for all that is there.
    pub as_of: Instant,
}

/// What was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// How many values the job has.
    pub values: usize,
    /// The newest of them.
    pub newest: Option<Stamp>,
}

/// A value in the hands of the reader.
struct Held {
    hold: Hold,
    stamp: Stamp,
}

impl Held {
    fn of([number, instance, visible_at]: Entry) -> Self {
        let visible_at = Instant::from_nanos(visible_at as i64);
        Held { hold: Hold::from_number(number), stamp: Stamp { instance, visible_at } }
    }
}

/// An input: where jobs of one operation, one at a time, find values of another one's output.
pub struct InputPort<T> {
    slots: Arc<Slots<T>>,
    connection: Arc<Connection>,
    take: Take,
    /// What the current job has; of the latest, what the next one has as well. Preallocated.
    held: Vec<Held>,
    /// Under [`Take::Instance`], what other jobs than the current one are to have. Preallocated.
    waiting: Vec<Held>,
}

impl<T> std::fmt::Debug for InputPort<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InputPort").field("take", &self.take).finish_non_exhaustive()
    }
}

impl<T> InputPort<T> {
    pub(crate) fn new(slots: Arc<Slots<T>>, connection: Arc<Connection>, take: Take) -> Self {
        let capacity = connection.queue.capacity();
        let (held, waiting) = match take {
            Take::Instance => (1, capacity),
            Take::Latest => (1, 0),
            Take::Each => (capacity, 0),
        };
        let (held, waiting) = (Vec::with_capacity(held), Vec::with_capacity(waiting));
        InputPort { slots, connection, take, held, waiting }
    }

    /// The values that the current job has, the oldest first.
    #[inline]
    pub fn values(&self) -> impl ExactSizeIterator<Item = (&T, Stamp)> + DoubleEndedIterator {
        self.held.iter().map(|held| (self.slots.value(&held.hold), held.stamp))
    }

    /// The newest of them.
    #[inline]
    pub fn newest(&self) -> Option<(&T, Stamp)> {
        self.held.last().map(|held| (self.slots.value(&held.hold), held.stamp))
    }

    #[inline]
    fn pop(&self, as_of: Instant) -> Option<Held> {
        let is_visible = |entry: &Entry| entry[2] as i64 <= as_of.as_nanos();
        let held = self.connection.queue.pop_if(is_visible).map(Held::of)?;
        if let Some(bell) = &self.connection.room {
            bell.ring();
        }
        Some(held)
    }

    fn give_up_all(&mut self) {
        while let Some(held) = self.held.pop() {
            self.slots.give_up(held.hold);
        }
    }

    fn take_latest(&mut self, as_of: Instant) {
        let mut is_new = false;
        while let Some(newer) = self.pop(as_of) {
            if is_new {
                self.connection.count_dropped();
            }
            is_new = true;
            self.give_up_all();
            self.held.push(newer);
        }
    }

    fn take_each(&mut self, as_of: Instant) {
        while self.held.len() < self.held.capacity()
            && let Some(next) = self.pop(as_of)
        {
            self.held.push(next);
        }
    }

    fn take_instance(&mut self, instance: u64, as_of: Instant) {
        let is_it = |held: &Held| held.stamp.instance == instance && held.stamp.visible_at <= as_of;
        // Jobs of an operation may pass each other, and so may values: what is for others, or not visible yet, is kept.
        while let Some(next) = self.pop(Instant::MAX) {
            if is_it(&next) {
                self.held.push(next);
                break;
            }
            self.keep(next);
        }
        if self.held.is_empty()
            && let Some(place) = self.waiting.iter().position(is_it)
        {
            self.held.push(self.waiting.swap_remove(place));
        }
    }

    /// Whether the value of this instance is the newest that the job has, with those before it up to so many.
    fn take_up_to(&mut self, newest: u64, values: usize) -> bool {
        let most = if self.take == Take::Latest { 1 } else { self.connection.queue.capacity() };
        let values = values.min(most);
        while self.held.last().is_none_or(|held| held.stamp.instance != newest) {
            let Some(next) = self.pop(Instant::MAX) else { return false };
            if self.held.len() == values.max(1) {
                self.slots.give_up(self.held.remove(0).hold);
            }
            self.held.push(next);
        }
        self.held.len() == values
    }

    fn keep(&mut self, held: Held) {
        if self.waiting.len() == self.waiting.capacity() {
            let oldest = (0..self.waiting.len()).min_by_key(|place| self.waiting[*place].stamp.instance);
            let oldest = self.waiting.swap_remove(oldest.expect("it is full"));
            self.slots.give_up(oldest.hold);
            self.connection.count_overtaken();
        }
        self.waiting.push(held);
    }
}

/// What is done with an input whatever it carries; it is an [`InputPort`].
pub trait Input: Any + Send {
    /// A job begins and takes what there is for it. Neither allocates nor waits.
    fn take(&mut self, moment: Moment) -> Taken;
    /// A job takes again what it once took: so many values, the newest of this instance, and visible from `visible_at` on if that is not when it was
    /// published again. False if they are not there. For connections with room for more than could be there then, so that nothing is dropped that
    /// was not.
    fn take_again(&mut self, newest: u64, values: usize, visible_at: Option<Instant>) -> bool;
    /// The job is over: what it took is free for others, but for the latest value, which the next job has as well.
    fn leave(&mut self);
    /// Another job goes before the one that took values, which takes again when it goes on: what only that job can have is there for it then.
    fn put_back(&mut self);
    /// Whether a value that no job takes is lost: not where only the latest counts.
    fn wants_each(&self) -> bool;
    /// The connection.
    fn connection(&self) -> &Arc<Connection>;
}

impl<T: Send + Sync + 'static> Input for InputPort<T> {
    #[inline]
    fn take(&mut self, Moment { instance, as_of }: Moment) -> Taken {
        match self.take {
            Take::Latest => self.take_latest(as_of),
            Take::Each => self.take_each(as_of),
            Take::Instance => self.take_instance(instance, as_of),
        }
        Taken { values: self.held.len(), newest: self.held.last().map(|held| held.stamp) }
    }

    fn take_again(&mut self, newest: u64, values: usize, visible_at: Option<Instant>) -> bool {
        let is_there = match self.take {
            Take::Instance => {
                self.take_instance(newest, Instant::MAX);
                self.held.len() == values
            }
            Take::Latest | Take::Each => self.take_up_to(newest, values),
        };
        if let (Some(held), Some(visible_at)) = (self.held.last_mut(), visible_at) {
            held.stamp.visible_at = visible_at;
        }
        is_there
    }

    #[inline]
    fn leave(&mut self) {
        if self.take != Take::Latest {
            self.give_up_all();
        }
    }

    fn put_back(&mut self) {
        match self.take {
            Take::Latest => {}
            Take::Each => self.give_up_all(),
            Take::Instance => {
                if let Some(held) = self.held.pop() {
                    self.keep(held);
                }
            }
        }
    }

    fn wants_each(&self) -> bool {
        self.take != Take::Latest
    }

    fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}
