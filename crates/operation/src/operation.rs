//! An operation with what it runs: its code, and the ends of its connections.

use crate::context::{Code, JobContext};
use crate::ends::Ends;
use crate::events::{EventNote, TakenEvent};
use crate::pushes::PushedBytes;
use crate::services::JobServices;
use crate::synthetic::Fields;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use talea_channel::{
    Dropped, Encoded, FullReader, Input, KeptEnd, Moment, Output, Published, Reach, Stamp, Taken, Visible,
};
use talea_model::{OperationId, PublicationId};
use talea_policy::job::Job;
use talea_time::Instant;

/// What its jobs do.
pub enum Body {
    /// They use processor time as the system describes; what executes them sees to that.
    Synthetic,
    /// They call the program's code.
    User(Code),
}

/// Values of a connection that no job had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostValues {
    /// The input.
    pub input: String,
    /// For which there was no room.
    pub dropped: u64,
    /// Of instances whose job had begun without them, or never came.
    pub overtaken: u64,
    /// That a link lost on the way.
    #[serde(default)]
    pub lost: u64,
}

impl LostValues {
    /// Adds this to what has been counted of several inputs, one entry for each.
    pub fn add_to(self, counted: &mut Vec<LostValues>) {
        match counted.iter_mut().find(|other| other.input == self.input) {
            Some(other) => {
                other.dropped += self.dropped;
                other.overtaken += self.overtaken;
                other.lost += self.lost;
            }
            None => counted.push(self),
        }
    }
}

/// A value that a job has taken: of which input of its operation, and the newest there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenValue {
    /// The place of the input among those of its operation.
    pub input: usize,
    /// What was taken.
    pub taken: Taken,
}

/// Bytes ahead of each value in a message: the place of its output, and its length.
const HEADER: usize = talea_model::VALUE_HEADER_BYTES;

/// The first value of a message: the place of its output, its bytes, and what comes after it. None where these bytes are none.
fn first_value(from: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let (header, rest) = from.split_first_chunk::<HEADER>()?;
    let header = u32::from_le_bytes(*header);
    let (value, rest) = rest.split_at_checked((header & 0xffff) as usize)?;
    Some(((header >> 16) as usize, value, rest))
}

/// The places of the outputs whose values are in a message, as [`Operation::encode`] wrote it.
pub fn outputs_in(mut message: &[u8]) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let (output, _, rest) = first_value(message)?;
        message = rest;
        Some(output)
    })
}

/// An operation, whose jobs run one at a time.
pub struct Operation {
    pub(crate) body: Body,
    pub(crate) ends: Ends,
    /// By output, what synthetic values are made of; empty with code.
    pub(crate) fields: Box<[Fields]>,
    /// Whether its code has to do with something outside.
    pub(crate) is_outside: bool,
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operation").field("operation", &self.ends.operation).finish_non_exhaustive()
    }
}

impl Operation {
    /// Code without ports, as of an operation that is declared while a run lasts.
    pub fn without_ports(operation: OperationId, code: Code) -> Self {
        let (inputs, input_ids, outputs) = (Box::default(), Box::default(), Box::default());
        let ends = Ends { operation, inputs, input_ids, outputs, events: None, reading: None };
        Operation { body: Body::User(code), ends, fields: Box::default(), is_outside: false }
    }

    /// Whether its jobs call the program's code.
    pub fn has_code(&self) -> bool {
        matches!(self.body, Body::User(_))
    }

    /// Whether its code has said that it has to do with something [outside](crate::Ports::outside).
    pub fn is_outside(&self) -> bool {
        self.is_outside
    }

    /// Whether it reads or writes values, or takes or pushes events.
    pub fn has_ports(&self) -> bool {
        !self.ends.inputs.is_empty() || !self.ends.outputs.is_empty() || self.ends.events.is_some()
    }

    /// A job begins: takes what there is for it, by each input as of a moment. Says of each what that was.
    #[inline]
    pub fn take(&mut self, moment: impl Fn(usize) -> Moment, mut taken: impl FnMut(TakenValue)) {
        for (input, port) in self.ends.inputs.iter_mut().enumerate() {
            taken(TakenValue { input, taken: port.take(moment(input)) });
        }
    }

    /// A job begins: takes its events, if it has subscribed to any. Says of each where it is from, and what else the channel has to tell.
    #[inline]
    pub fn take_events(
        &mut self,
        Moment { instance, as_of }: Moment,
        mut taken: impl FnMut(TakenEvent),
        mut noted: impl FnMut(EventNote),
    ) {
        if let Some(events) = &mut self.ends.events {
            events.get_mut().begin(instance, as_of, &mut taken, &mut noted);
        }
    }

    /// A job begins, and has of its events what it once had, as bytes. False if they are none.
    pub fn take_events_again(&mut self, instance: u64, from: &[u8]) -> bool {
        self.ends.events.as_mut().is_some_and(|events| events.get_mut().begin_again(instance, from))
    }

    /// Whether it takes events, and all of them can be bytes.
    pub fn events_are_bytes(&self) -> bool {
        self.ends.events.as_ref().is_some_and(|events| events.borrow().are_bytes())
    }

    /// From now on, the events that its jobs take come to this end, too; none if they are never bytes, or it takes none.
    pub fn keep_events(&mut self) -> Option<Box<dyn KeptEnd>> {
        self.ends.events.as_mut().and_then(|events| events.get_mut().keep())
    }

    /// From now on, what its jobs push comes to these ends, too, by publication, of those for which there was to be room; none if it is never bytes.
    pub fn keep_pushes(&mut self) -> Vec<(PublicationId, Option<Box<dyn KeptEnd>>)> {
        self.ends.events.as_mut().map_or_else(Vec::new, |events| events.get_mut().keep_pushes())
    }

    /// From now on, what its jobs push as one of these publications is made bytes of, up to so many, to be [taken](Self::pushed). Returns of which it is.
    pub fn log_pushes(&mut self, wanted: impl Fn(PublicationId) -> bool, most: usize) -> Vec<PublicationId> {
        self.ends.events.as_mut().map_or_else(Vec::new, |events| events.get_mut().log_pushes(&wanted, most))
    }

    /// What jobs have pushed since the last call, if it is [logged](Self::log_pushes).
    pub fn pushed(&mut self) -> Vec<PushedBytes> {
        self.ends.events.as_mut().map_or_else(Vec::new, |events| events.get_mut().pushed())
    }

    /// The job that is called next is told of its pushes of these numbers that there is no room, as it once was.
    pub fn refuse_again(&mut self, refused: Vec<u16>) {
        if let Some(events) = &mut self.ends.events {
            events.get_mut().refuse_again(refused);
        }
    }

    /// How many bytes are kept at most of what a job reads of the descriptor that releases its task; none if its code has not
    /// [opened](crate::Ports::descriptor) that.
    pub fn reads(&self) -> Option<usize> {
        self.ends.reading.as_ref().map(|reading| reading.borrow().most_kept())
    }

    /// From now on, what its jobs read comes to this end, too, with room for so many jobs; none if its code reads nothing.
    pub fn keep_reads(&mut self, room: usize) -> Option<Box<dyn KeptEnd>> {
        self.ends.reading.as_mut().and_then(|reading| reading.get_mut().keep(room))
    }

    /// A job of this instance, which began at `started`, has been called: what it has read goes where it is [kept](Self::keep_reads). False if there was
    /// no room for it.
    #[inline]
    pub fn end_reads(&mut self, instance: u64, started: Instant) -> bool {
        self.ends.reading.as_mut().is_none_or(|reading| reading.get_mut().end(instance, started))
    }

    /// A job, which begins, reads again what it once read, as bytes; none if that is not known. False if these are none.
    pub fn read_again(&mut self, recorded: Option<&[u8]>) -> bool {
        self.ends.reading.as_mut().is_some_and(|reading| reading.get_mut().begin_again(recorded))
    }

    /// Whether the job that [reads again](Self::read_again) has asked otherwise than it did then, so that what it was answered proves nothing.
    pub fn has_read_otherwise(&self) -> bool {
        self.ends.reading.as_ref().is_some_and(|reading| reading.borrow().has_diverged())
    }

    /// A job takes of the input at this place what it once took: so many values, the newest of this instance, visible from `visible_at`
    /// on if that is not when it was published again. False if they are not there.
    pub fn take_again(
        &mut self,
        input: usize,
        newest: u64,
        values: usize,
        visible_at: Option<Instant>,
    ) -> bool {
        self.ends.inputs[input].take_again(newest, values, visible_at)
    }

    /// Runs the code of a job that has taken its values, or writes the values of a synthetic one.
    ///
    /// # Panics
    /// If the code does. The operation is as the code left it, and what was written is there to be [discarded](Self::discard).
    #[inline]
    pub fn call(&mut self, services: &dyn JobServices, name: &str, job: &Job, started: Instant, handle: u64) {
        if let Some(reading) = &mut self.ends.reading {
            reading.get_mut().begin();
        }
        let ends = &self.ends;
        match &mut self.body {
            Body::User(code) => code(&JobContext { services, name, job, started, handle, ends }),
            Body::Synthetic => {
                for (port, fields) in self.ends.outputs.iter_mut().zip(&self.fields) {
                    fields.write(port.get_mut().as_mut(), job.number);
                }
            }
        }
    }

    /// Whether its jobs can do anything but take values and write them: they have code, or events of channels.
    #[inline]
    pub fn has_code_or_events(&self) -> bool {
        matches!(self.body, Body::User(_)) || self.ends.events.is_some()
    }

    /// A job of an operation without code has completed: pushes its events.
    #[inline]
    pub fn push_events(&mut self, services: &dyn JobServices, instance: u64) {
        if let (Body::Synthetic, Some(events)) = (&self.body, &mut self.ends.events) {
            events.get_mut().push_synthetic(services, instance);
        }
    }

    /// Whether it has ends at channels.
    pub fn has_events(&self) -> bool {
        self.ends.events.is_some()
    }

    /// The job of this instance has done with what it took.
    #[inline]
    pub fn leave(&mut self, instance: u64) {
        self.ends.inputs.iter_mut().for_each(|port| port.leave());
        self.leave_events(instance);
    }

    /// The job of this instance has done with its events, while values are another one's.
    #[inline]
    pub fn leave_events(&mut self, instance: u64) {
        if let Some(events) = &mut self.ends.events {
            events.get_mut().leave(instance);
        }
    }

    /// Another job goes before the one that has taken values, which [takes](Self::take) again when it goes on. It has the value of its instance then,
    /// and of those that each job has only once none.
    pub fn put_back(&mut self) {
        self.ends.inputs.iter_mut().for_each(|port| port.put_back());
    }

    /// What the job wrote into the outputs that are sent, for [`Self::receive`] in another process: behind what is in `to`, as far as that has
    /// room. Returns whether all of it had.
    pub fn encode(&mut self, to: &mut Vec<u8>, is_sent: impl Fn(usize) -> bool) -> bool {
        let (mut fits, full) = (true, to.capacity());
        let sent = self.ends.outputs.iter_mut().enumerate().filter(|(output, _)| is_sent(*output));
        for (output, port) in sent {
            let begin = to.len();
            to.resize(full, 0);
            let (header, room) = to[begin..].split_at_mut(HEADER.min(full - begin));
            let end = match port.get_mut().encode(room) {
                Encoded::Bytes(length) if header.len() == HEADER => {
                    header.copy_from_slice(&(((output as u32) << 16) | length as u32).to_le_bytes());
                    begin + HEADER + length
                }
                Encoded::Nothing => begin,
                Encoded::Bytes(_) | Encoded::NoRoom => {
                    fits = false;
                    begin
                }
            };
            to.truncate(end);
        }
        fits
    }

    /// A job of the operation has completed in another process, which sent these bytes: publishes its values here, to those readers of an output for
    /// which `is_meant`. False if they are none; then nothing is published.
    pub fn receive(&mut self, from: &[u8], stamp: Stamp, is_meant: impl Fn(usize, usize) -> bool) -> bool {
        let are_values = self.decode(from);
        if are_values {
            let reach = |output, reader| match is_meant(output, reader) {
                true => Reach::From(stamp.visible_at),
                false => Reach::Not,
            };
            self.publish_to(stamp, reach, |_, _| (), |_, _| ());
        } else {
            self.discard();
        }
        are_values
    }

    fn decode(&mut self, mut from: &[u8]) -> bool {
        while let Some((output, value, rest)) = first_value(from) {
            let is_value = self.ends.outputs.get_mut(output).is_some_and(|port| port.get_mut().decode(value));
            if !is_value {
                return false;
            }
            from = rest;
        }
        from.is_empty()
    }

    /// The job of this stamp has completed: its values go to their readers. Says of each output what came of that, and of each value that is
    /// dropped at which output.
    #[inline]
    pub fn publish(
        &mut self,
        stamp: Stamp,
        mut published: impl FnMut(usize, Published),
        mut dropped: impl FnMut(usize, Dropped),
    ) {
        for (output, port) in self.ends.outputs.iter_mut().enumerate() {
            let visible = Visible::To(stamp.visible_at);
            let came = port.get_mut().publish(stamp.instance, visible, &mut |one| dropped(output, one));
            published(output, came);
        }
    }

    /// The same where readers of an output see it from different instants on, or not at all.
    #[inline]
    pub fn publish_to(
        &mut self,
        stamp: Stamp,
        mut reach: impl FnMut(usize, usize) -> Reach,
        mut published: impl FnMut(usize, Published),
        mut dropped: impl FnMut(usize, Dropped),
    ) {
        for (output, port) in self.ends.outputs.iter_mut().enumerate() {
            let mut to_reader = |reader| reach(output, reader);
            let visible = Visible::ToEach(&mut to_reader);
            let came = port.get_mut().publish(stamp.instance, visible, &mut |one| dropped(output, one));
            published(output, came);
        }
    }

    /// Calls `wait` with the output and each reader that has no room for what the job wrote there, and for which the job is to wait.
    #[inline]
    pub fn wait_for_room(&mut self, mut wait: impl FnMut(usize, FullReader<'_>)) {
        for (output, port) in self.ends.outputs.iter_mut().enumerate() {
            port.get_mut().wait_for_room(&mut |full| wait(output, full));
        }
    }

    /// The job did not complete: what it wrote is forgotten.
    pub fn discard(&mut self) {
        self.ends.outputs.iter_mut().for_each(|port| port.get_mut().discard());
    }

    /// What its inputs lost, those that lost any: by a link, and where they are to have each value, or that of each instance, otherwise. `name` says how
    /// an input is called, by its number among all.
    pub fn lost(&self, name: impl Fn(usize) -> String) -> Vec<LostValues> {
        let counts = self.ends.inputs.iter().zip(&self.ends.input_ids).filter_map(|(port, input)| {
            let connection = port.connection();
            let (dropped, overtaken) = match port.wants_each() {
                true => (connection.dropped(), connection.overtaken()),
                false => (0, 0),
            };
            let lost = connection.lost();
            let are_lost = dropped + overtaken + lost > 0;
            are_lost.then(|| LostValues { input: name(*input), dropped, overtaken, lost })
        });
        counts.collect()
    }

    /// Its outputs, in the order of the description.
    pub fn outputs(&mut self) -> impl Iterator<Item = &mut Box<dyn Output>> {
        self.ends.outputs.iter_mut().map(RefCell::get_mut)
    }

    /// Its inputs, in the order of the description.
    pub fn inputs(&self) -> impl Iterator<Item = &dyn Input> {
        self.ends.inputs.iter().map(|port| port.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_channel::{Codec, Handling, OutputPort, Reader, Take, WhenFull};

    const ROOM: usize = 64;

    /// An operation with two outputs of bytes, each with a reader, and what these read.
    fn of_two_outputs() -> (Operation, Vec<Box<dyn Input>>) {
        let reader = Reader { take: Take::Latest, capacity: 1, when_full: WhenFull::DropOldest };
        let codec = || Codec::<[u8; 2]> {
            encode: |value, to| {
                to.get_mut(..2)?.copy_from_slice(value);
                Some(2)
            },
            decode: |value, from| from.try_into().map(|from| *value = from).is_ok(),
        };
        let (mut outputs, mut readers) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let handling = Handling { same: None, codec: Some(codec()) };
            let (output, inputs) = OutputPort::new(&[reader], handling, || [0; 2]);
            outputs.push(RefCell::new(Box::new(output) as Box<dyn Output>));
            readers.extend(inputs.into_iter().map(|input| Box::new(input) as Box<dyn Input>));
        }
        let mut operation = Operation::without_ports(OperationId::from_index(0), Box::new(|_| ()));
        operation.ends.outputs = outputs.into();
        (operation, readers)
    }

    fn write(operation: &Operation, output: usize, bytes: [u8; 2]) {
        assert!(operation.ends.outputs[output].borrow_mut().decode(&bytes));
    }

    fn taken(readers: &mut [Box<dyn Input>]) -> Vec<usize> {
        let moment = Moment { instance: 9, as_of: Instant::MAX };
        readers.iter_mut().map(|reader| reader.take(moment).values).collect()
    }

    #[test]
    fn what_a_job_did_not_write_is_no_value_without_room() {
        let (mut sender, _) = of_two_outputs();
        let mut message = Vec::with_capacity(ROOM);
        assert!(sender.encode(&mut message, |_| true) && message.is_empty());
        write(&sender, 1, [3, 4]);
        assert!(sender.encode(&mut message, |_| true));
        let (mut receiver, mut readers) = of_two_outputs();
        assert!(receiver.receive(&message, Stamp { instance: 9, visible_at: Instant::ZERO }, |_, _| true));
        assert_eq!(taken(&mut readers), [0, 1]);
        for room in 0..message.len() {
            let mut short = Vec::with_capacity(room);
            assert!(!sender.encode(&mut short, |_| true) && short.is_empty(), "{room} bytes are too few");
        }
    }

    #[test]
    fn what_nobody_elsewhere_reads_takes_no_room_in_a_message() {
        let (mut sender, _) = of_two_outputs();
        (0..2).for_each(|output| write(&sender, output, [1, 2]));
        let mut message = Vec::with_capacity(HEADER + 2);
        assert!(sender.encode(&mut message, |output| output == 1));
        let (mut receiver, mut readers) = of_two_outputs();
        assert!(receiver.receive(&message, Stamp { instance: 9, visible_at: Instant::ZERO }, |_, _| true));
        assert_eq!(taken(&mut readers), [0, 1]);
    }

    #[test]
    fn of_a_damaged_message_nothing_is_published() {
        let (mut sender, _) = of_two_outputs();
        (0..2).for_each(|output| write(&sender, output, [1, 2]));
        let mut message = Vec::with_capacity(ROOM);
        assert!(sender.encode(&mut message, |_| true));
        let (mut receiver, mut readers) = of_two_outputs();
        let stamp = Stamp { instance: 9, visible_at: Instant::ZERO };
        // Whole up to the first value's end it is a message of its own.
        for length in (1..message.len()).filter(|length| *length != message.len() / 2) {
            assert!(!receiver.receive(&message[..length], stamp, |_, _| true), "{length} bytes");
            assert!(receiver.receive(&[], stamp, |_, _| true));
            assert_eq!(taken(&mut readers), [0, 0], "{length} bytes");
        }
        assert!(receiver.receive(&message, stamp, |_, _| true));
        assert_eq!(taken(&mut readers), [1, 1]);
    }
}
