//! The writing end.

use crate::codec::Codec;
use crate::connection::{Connection, WhenFull};
use crate::input::{InputPort, Take};
use crate::kept::{KeptEnd, KeptPort};
use crate::slots::{Claim, Hold, Slots};
use std::any::Any;
use std::sync::Arc;
use talea_ring::queue::{Pushed, WhenFull as Push};
use talea_time::{Duration, Instant};

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
                Take::Each => self.capacity,
                // Those that other jobs are to have, and that of the current one.
                Take::Instance => self.capacity + 1,
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

/// A reader that has no room for a value, and for which the producer waits.
#[derive(Clone, Copy, Debug)]
pub struct FullReader<'a> {
    /// The reader, in the order in which they were given.
    pub reader: usize,
    /// Its connection.
    pub connection: &'a Arc<Connection>,
    /// How long the producer waits at most.
    pub limit: Duration,
}

/// What becomes of a value on its way to one reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The reader sees it from this instant on.
    From(Instant),
    /// It is lost.
    Lost,
    /// It is not meant for the reader.
    Not,
}

/// From when on readers see a value.
pub enum Visible<'a> {
    /// All from this instant on.
    To(Instant),
    /// What this says of the reader's place among the others.
    ToEach(&'a mut dyn FnMut(usize) -> Reach),
}

impl std::fmt::Debug for Visible<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Visible::To(instant) => f.debug_tuple("To").field(instant).finish(),
            Visible::ToEach(_) => f.write_str("ToEach"),
        }
    }
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

/// What can be done with values besides handing them on.
pub struct Handling<T> {
    /// Whether two are the same.
    pub same: Option<fn(&T, &T) -> bool>,
    /// To bytes and back.
    pub codec: Option<Codec<T>>,
}

impl<T> Handling<T> {
    /// Nothing.
    pub const NONE: Handling<T> = Handling { same: None, codec: None };
}

impl<T> std::fmt::Debug for Handling<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (compares, encodes) = (self.same.is_some(), self.codec.is_some());
        f.debug_struct("Handling").field("compares", &compares).field("encodes", &encodes).finish()
    }
}

/// Slots that are used at first.
const FIRST_IN_USE: usize = 8;
/// Slots that are looked at in turn before more are used.
const TRIES: usize = 4;

/// An output: where jobs of one operation, one at a time, write their values.
pub struct OutputPort<T> {
    slots: Arc<Slots<T>>,
    readers: Box<[(Arc<Connection>, WhenFull)]>,
    writing: Option<Claim>,
    /// Where to look for a free slot first: behind the one that was claimed last.
    next: usize,
    /// The slots below this are used in turn, and no others as long as these are enough: what was used lately is near the processor.
    in_use: usize,
    handling: Handling<T>,
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
        handling: Handling<T>,
        value: impl FnMut() -> T,
    ) -> (Self, Vec<InputPort<T>>) {
        let held: usize = readers.iter().map(Reader::holds).sum();
        let slots = Arc::new(Slots::new(held + 1 + usize::from(handling.same.is_some()), value));
        let connect = |reader: &Reader| Arc::new(Connection::new(reader.capacity, reader.when_full));
        let connections: Vec<_> = readers.iter().map(connect).collect();
        let inputs = readers.iter().zip(&connections).map(|(reader, connection)| {
            InputPort::new(Arc::clone(&slots), Arc::clone(connection), reader.take)
        });
        let inputs = inputs.collect();
        let readers = connections.into_iter().zip(readers.iter().map(|reader| reader.when_full)).collect();
        let in_use = slots.len().min(FIRST_IN_USE);
        (OutputPort { slots, readers, writing: None, next: 0, in_use, handling, before: None }, inputs)
    }

    /// The same with a last reader beside them who keeps all values, if they can be bytes; `room` of them at once.
    pub fn kept(
        readers: &[Reader],
        handling: Handling<T>,
        room: usize,
        value: impl FnMut() -> T,
    ) -> (Self, Vec<InputPort<T>>, Option<Box<dyn KeptEnd>>) {
        let Some(codec) = handling.codec else {
            let (output, inputs) = OutputPort::new(readers, handling, value);
            return (output, inputs, None);
        };
        let keeper = Reader { take: Take::Each, capacity: room, when_full: WhenFull::DropNewest };
        let (output, mut inputs) = OutputPort::new(&[readers, &[keeper]].concat(), handling, value);
        let input = inputs.pop().expect("the keeper is the last reader");
        (output, inputs, Some(Box::new(KeptPort { input, codec })))
    }

    /// The value that the current job publishes when it completes. It is what some earlier job left there, until it is written.
    #[inline]
    pub fn value(&mut self) -> &mut T {
        let (slots, next, in_use) = (&self.slots, &mut self.next, &mut self.in_use);
        slots.value_mut(self.writing.get_or_insert_with(|| next_claim(slots, next, in_use)))
    }

    fn differs(&self, claim: &Claim) -> bool {
        match (self.handling.same, &self.before) {
            (Some(same), Some(before)) => !same(self.slots.written(claim), self.slots.value(before)),
            (Some(_), None) | (None, _) => true,
        }
    }
}

/// The slot in turn, or one of the next few; if they are all held, more slots are used from now on.
#[inline]
fn next_claim<T>(slots: &Slots<T>, next: &mut usize, in_use: &mut usize) -> Claim {
    for _ in 0..TRIES {
        let slot = *next;
        *next = if slot + 1 == *in_use { 0 } else { slot + 1 };
        if let Some(claim) = slots.claim_only(slot) {
            return claim;
        }
    }
    let claim = slots.claim(*in_use % slots.len()).expect("there are slots for all that readers can hold");
    *in_use = slots.len().min(2 * *in_use).max(claim.slot() + 1);
    *next = (claim.slot() + 1) % *in_use;
    claim
}

/// What came of writing a value as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// The job wrote none, or values of this output are never bytes.
    Nothing,
    /// So many.
    Bytes(usize),
    /// They do not fit.
    NoRoom,
}

/// What is done with an output whatever it carries; it is an [`OutputPort`].
pub trait Output: Any + Send {
    /// The job of this instance has completed: its value, if it wrote one, goes to each reader. Says of each value that is dropped for want of room
    /// whose it was.
    /// Neither allocates nor waits.
    fn publish(&mut self, instance: u64, visible: Visible<'_>, dropped: &mut dyn FnMut(Dropped))
    -> Published;
    /// The job did not complete: what it wrote is forgotten.
    fn discard(&mut self);
    /// Calls `wait` with each reader that has no room for what the job wrote, and for which the producer is to wait.
    fn wait_for_room(&self, wait: &mut dyn FnMut(FullReader<'_>));
    /// Whether its values can be bytes.
    fn has_bytes(&self) -> bool;
    /// What the job wrote, as bytes.
    fn encode(&self, to: &mut [u8]) -> Encoded;
    /// Writes the value that these bytes are, as a job would. False if they are none.
    fn decode(&mut self, from: &[u8]) -> bool;
    /// The ends of its connections, in the order of the readers.
    fn connections(&self) -> Box<dyn Iterator<Item = &Arc<Connection>> + '_>;
}

impl<T: Send + Sync + 'static> Output for OutputPort<T> {
    #[inline]
    fn publish(
        &mut self,
        instance: u64,
        mut visible: Visible<'_>,
        dropped: &mut dyn FnMut(Dropped),
    ) -> Published {
        let Some(claim) = self.writing.take() else { return Published::Nothing };
        let is_new = self.handling.same.is_none() || self.differs(&claim);
        let holds = self.readers.len() as u32 + u32::from(self.handling.same.is_some());
        let mut holds = self.slots.share(claim, holds);
        if self.handling.same.is_some()
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
            let reach = match &mut visible {
                Visible::To(instant) => Reach::From(*instant),
                Visible::ToEach(reach_of) => reach_of(reader),
            };
            let Reach::From(visible_at) = reach else {
                self.slots.give_up(Hold::from_number(number));
                if reach == Reach::Lost {
                    connection.count_lost();
                }
                continue;
            };
            let (lost, instance) =
                match connection.queue.push([number, instance, visible_at.as_nanos() as u64], push) {
                    Pushed::Taken => continue,
                    Pushed::InPlaceOf([oldest, instance, _]) => (oldest, instance),
                    Pushed::Full => (number, instance),
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

    fn wait_for_room(&self, wait: &mut dyn FnMut(FullReader<'_>)) {
        if self.writing.is_none() {
            return;
        }
        for (reader, (connection, when_full)) in self.readers.iter().enumerate() {
            if let WhenFull::Wait(limit) = *when_full
                && !connection.has_room()
            {
                wait(FullReader { reader, connection, limit });
            }
        }
    }

    fn has_bytes(&self) -> bool {
        self.handling.codec.is_some()
    }

    fn encode(&self, to: &mut [u8]) -> Encoded {
        let Some((claim, codec)) = self.writing.as_ref().zip(self.handling.codec.as_ref()) else {
            return Encoded::Nothing;
        };
        (codec.encode)(self.slots.written(claim), to).map_or(Encoded::NoRoom, Encoded::Bytes)
    }

    fn decode(&mut self, from: &[u8]) -> bool {
        let Some(decode) = self.handling.codec.as_ref().map(|codec| codec.decode) else { return false };
        let is_value = decode(self.value(), from);
        if !is_value {
            self.discard();
        }
        is_value
    }

    fn connections(&self) -> Box<dyn Iterator<Item = &Arc<Connection>> + '_> {
        Box::new(self.readers.iter().map(|(connection, _)| connection))
    }
}
