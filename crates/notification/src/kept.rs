//! What jobs take of channels, as bytes: for who records it, and to hand the same to the same job again.
//!
//! ```text
//!   nothing             the job took no event: what had released it was not worth being delivered any more
//!   head                priority, pushed, expires, number (little-endian, 26 bytes)
//!   (header, content)…  each with its length in front (4 bytes); of several events of a condition first one that stands for all
//! ```
//!
//! Of an operation whose jobs take all that wait, that stands there for each of these, with its length in front (4 bytes).

use crate::condition::{EventSet, TimeCame};
use crate::delivery::{Arrival, Delivery, Pusher};
use crate::event::{Content, Event, EventType, Header};
use std::sync::{Arc, OnceLock};
use talea_channel::Codec;
use talea_linux::replaced::Replaced;
use talea_model::{EventTake, PublicationId};
use talea_operation::PushAnswer;
use talea_time::Instant;
use talea_wire::{Body, Encoding, Limits, Message};

/// How the events of one publication become bytes, and bytes events.
trait ContentCoding: Send + Sync {
    fn encode(&self, event: &Event, to: &mut [u8]) -> Option<usize>;
    fn decode(&self, message: &Message<'_>, from: &[u8]) -> Option<Event>;
}

/// Of events that carry a `T`, of which `empty` makes one to be read into.
struct Coding<T, E> {
    codec: Codec<T>,
    empty: E,
}

impl<T: Content, E: Fn() -> T + Send + Sync> ContentCoding for Coding<T, E> {
    fn encode(&self, event: &Event, to: &mut [u8]) -> Option<usize> {
        (self.codec.encode)(event.content().expect("a publication has events of one kind"), to)
    }

    fn decode(&self, message: &Message<'_>, from: &[u8]) -> Option<Event> {
        let mut content = (self.empty)();
        (self.codec.decode)(&mut content, from).then(|| Event::received(message, content))
    }
}

/// How events become bytes, and bytes events.
pub(crate) trait Codings {
    /// Writes what the event carries. None if there is no room for it, or it is never bytes.
    fn encode(&self, event: &Event, to: &mut [u8]) -> Option<usize>;
    /// The event with this header that carries what these bytes say.
    fn decode(&self, header: &Message<'_>, from: &[u8]) -> Option<Event>;
}

/// How the events of each publication become bytes, as far as they do.
pub(crate) struct Contents(Box<[OnceLock<Box<dyn ContentCoding>>]>);

impl Contents {
    /// Of so many publications.
    pub fn new(publications: usize) -> Arc<Self> {
        Arc::new(Contents((0..publications).map(|_| OnceLock::new()).collect()))
    }

    /// The events of the publication carry a `T`, which this codec makes bytes of, and `empty` makes one to be read into. The first codec counts.
    pub fn set_codec<T: Content>(
        &self,
        publication: PublicationId,
        codec: Codec<T>,
        empty: impl Fn() -> T + Send + Sync + 'static,
    ) {
        _ = self.0[publication.index()].set(Box::new(Coding { codec, empty }));
    }

    pub fn has(&self, publication: PublicationId) -> bool {
        self.0[publication.index()].get().is_some()
    }

    fn of(&self, publication: PublicationId) -> Option<&dyn ContentCoding> {
        self.0.get(publication.index())?.get().map(AsRef::as_ref)
    }
}

impl Codings for Contents {
    fn encode(&self, event: &Event, to: &mut [u8]) -> Option<usize> {
        match event.header().origin {
            Some(origin) => {
                let coding = self.of(origin.publication);
                coding.expect("only events that can be bytes are kept").encode(event, to)
            }
            // It is time, or stands for several.
            None => Some(0),
        }
    }

    fn decode(&self, header: &Message<'_>, from: &[u8]) -> Option<Event> {
        let origin = header.header.origin?;
        self.of(PublicationId::from_index(origin.publication as usize))?.decode(header, from)
    }
}

/// How the events of a program's channel become bytes: structured ones always do, others if the program has said how.
pub(crate) struct Kinds {
    /// In the order of the numbers of their types.
    by_type: Replaced<Vec<(usize, Arc<dyn ContentCoding>)>>,
    several: Event,
}

impl Kinds {
    pub fn new() -> Self {
        Kinds { by_type: Replaced::new(Vec::new()), several: several() }
    }

    /// Events of this type carry a `T`, which this codec makes bytes of, from now on.
    pub fn set_codec<T: Content + Default>(&self, event_type: &EventType, codec: Codec<T>) {
        let coding: Arc<dyn ContentCoding> = Arc::new(Coding { codec, empty: T::default });
        drop(self.by_type.update(|by_type| {
            let mut by_type = by_type.clone();
            match by_type.binary_search_by_key(&event_type.number(), |(number, _)| *number) {
                Ok(place) => by_type[place].1 = Arc::clone(&coding),
                Err(place) => by_type.insert(place, (event_type.number(), Arc::clone(&coding))),
            }
            by_type
        }));
    }

    /// What `use_it` makes of the coding of events of this type, if there is one.
    fn with<R>(&self, number: usize, use_it: impl FnOnce(&dyn ContentCoding) -> Option<R>) -> Option<R> {
        let by_type = self.by_type.load();
        let place = by_type.binary_search_by_key(&number, |(known, _)| *known).ok()?;
        use_it(by_type[place].1.as_ref())
    }

    /// Writes what a job is handed, behind its length and when it may be delivered. Does not allocate.
    pub fn encode_delivery(&self, delivery: &Delivery, of_call: OfCall, to: &mut [u8]) -> Option<usize> {
        let (head, rest) = to.split_at_mut_checked(PART_HEAD)?;
        let head_of = Head::of(delivery);
        let length = match delivery.event.content::<EventSet>() {
            Some(EventSet(events)) => {
                encode_taken(self, head_of, std::iter::once(&self.several).chain(events), rest)
            }
            None => encode_taken(self, head_of, std::iter::once(&delivery.event), rest),
        }?;
        head[0] = u8::from(of_call == OfCall::First);
        head[1..9].copy_from_slice(&delivery.not_before.as_nanos().to_le_bytes());
        head[9..].copy_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
        Some(PART_HEAD + length)
    }

    /// What a job was handed that had these bytes, call by call.
    pub fn decode_calls(&self, mut from: &[u8]) -> Result<Vec<Vec<Delivery>>, NotTaken> {
        let mut calls: Vec<Vec<Delivery>> = Vec::new();
        while !from.is_empty() {
            let (head, rest) = from.split_first_chunk::<PART_HEAD>().ok_or(NotTaken)?;
            let [first, not_before @ .., b0, b1, b2, b3] = *head;
            let length = u32::from_le_bytes([b0, b1, b2, b3]) as usize;
            let (taken, rest) = rest.split_at_checked(length).ok_or(NotTaken)?;
            from = rest;
            let delivery = delivery_again(self, taken)?;
            let not_before = Instant::from_nanos(i64::from_le_bytes(not_before));
            if first != 0 {
                calls.push(Vec::new());
            }
            calls.last_mut().ok_or(NotTaken)?.push(Delivery { not_before, ..delivery });
        }
        Ok(calls)
    }
}

/// The longest event of a program's channel that is kept: who is handed it or pushes it makes bytes of it on its own stack.
pub(crate) const EVENT_BYTES: usize = 4 * 1024;

/// Bytes of what is kept of a push at most.
pub(crate) const PUSH_BYTES: usize = EVENT_BYTES + LENGTH + PushAnswer::BYTES;

/// In place of the length of the content: nobody has said how it becomes bytes.
const NO_CONTENT: u32 = u32::MAX;

/// Writes what a job pushes into a channel of the program, or its header alone, and behind it how that is answered. None if it is too long. Does not allocate.
pub(crate) fn encode_push(
    kinds: &Kinds,
    event: &Event,
    answer: PushAnswer,
    to: &mut [u8; PUSH_BYTES],
) -> Option<usize> {
    let room = &mut to[..EVENT_BYTES];
    let end = match encode_event(kinds, event, room) {
        Some(end) => end,
        None => {
            let end = encode_header(event, room)?;
            to[end..end + LENGTH].copy_from_slice(&NO_CONTENT.to_le_bytes());
            end + LENGTH
        }
    };
    Some(end + answer.encode(&mut to[end..])?)
}

/// The event, or its header, in the bytes of what a job pushed into a channel of the program, and how that was answered, of which nothing is said in the bytes of events that
/// a description declares, nor in those of traces of before.
pub fn answered_push(from: &[u8]) -> (&[u8], Option<PushAnswer>) {
    let mut rest = from;
    let header = behind_length(&mut rest).map(|header| LENGTH + header.len());
    let end = header.and_then(|header| match rest.strip_prefix(&NO_CONTENT.to_le_bytes()) {
        Some(behind) => {
            rest = behind;
            Some(header)
        }
        None => behind_length(&mut rest).map(|content| header + LENGTH + content.len()),
    });
    match end.zip(PushAnswer::decode(rest)) {
        Some((end, answer)) => (&from[..end], Some(answer)),
        None => (from, None),
    }
}

/// With which call the code is handed a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfCall {
    /// A call begins with it.
    First,
    /// That of the delivery before it.
    Further,
}

/// Bytes in front of what a job is handed: whether a call begins with it, when it may be delivered, and its length.
const PART_HEAD: usize = 1 + 8 + 4;

impl Codings for Kinds {
    fn encode(&self, event: &Event, to: &mut [u8]) -> Option<usize> {
        match event.content::<talea_etcl::Event>() {
            // The rest of it is in the message of the header.
            Some(structured) => Message::remainder_into(structured, to).ok(),
            None if event.content::<EventSet>().is_some() || event.content::<TimeCame>().is_some() => Some(0),
            None => self.with(event.event_type().number(), |coding| coding.encode(event, to)),
        }
    }

    fn decode(&self, header: &Message<'_>, from: &[u8]) -> Option<Event> {
        let event_type = EventType::new(header.header.domain, header.header.type_name);
        let of_program = self.with(event_type.number(), |coding| coding.decode(header, from));
        of_program.or_else(|| {
            let (encoding, bytes) =
                if from.is_empty() { (Encoding::Raw, from) } else { (Encoding::Value, from) };
            let message = Message { body: Body { encoding, bytes }, ..header.clone() };
            Some(Event::received(header, message.to_structured(&Limits::default()).ok()?))
        })
    }
}

/// Stands for all events of a condition; that which the job took is needed again.
fn several() -> Event {
    Event::new(Header::new(EventType::new(EventSet::DOMAIN, "")), EventSet::default())
}

/// What one job took: in a slot of a connection, and used again.
pub(crate) struct Taken {
    contents: Arc<Contents>,
    take: EventTake,
    /// Of each delivery, with how many of the events are its; none if it took nothing.
    heads: Vec<(Head, usize)>,
    /// Of all of them; of several events of a condition [one](Self::several) that stands for all is the first.
    events: Vec<Event>,
    /// Stands for all events of a condition; that which the job took is needed again.
    several: Event,
}

#[derive(Clone, Copy)]
struct Head {
    priority: i16,
    pushed: Instant,
    expires: Instant,
    number: u64,
}

const HEAD: usize = 2 + 3 * 8;
const LENGTH: usize = 4;

impl Taken {
    pub const CODEC: Codec<Taken> = Codec { encode: |taken, to| taken.encode(to), decode: |_, _| false };

    /// Makes slots with memory for so many deliveries of so many events each.
    pub fn slots(
        contents: &Arc<Contents>,
        take: EventTake,
        (deliveries, events): (usize, usize),
    ) -> impl FnMut() -> Self + use<> {
        let contents = Arc::clone(contents);
        let several = several();
        move || Taken {
            contents: Arc::clone(&contents),
            take,
            heads: Vec::with_capacity(deliveries),
            events: Vec::with_capacity(deliveries * (events + 1)),
            several: several.clone(),
        }
    }

    /// Writes what a job took in place of what was there. Does not allocate.
    pub fn set(&mut self, deliveries: &[Delivery]) {
        self.events.clear();
        self.heads.clear();
        debug_assert!(deliveries.len() <= self.heads.capacity(), "a job takes no more");
        for delivery in deliveries {
            let before = self.events.len();
            if let Some(EventSet(events)) = delivery.event.content() {
                self.events.push(self.several.clone());
                self.events.extend(events.iter().cloned());
            } else {
                self.events.push(delivery.event.clone());
            }
            self.heads.push((Head::of(delivery), self.events.len() - before));
        }
        debug_assert!(self.events.len() <= self.events.capacity(), "a condition has no more");
    }

    /// None if there is no room for it.
    fn encode(&self, to: &mut [u8]) -> Option<usize> {
        let mut events = &self.events[..];
        let mut end = 0;
        for (head, count) in &self.heads {
            let own;
            (own, events) = events.split_at(*count);
            let to = to.get_mut(end..)?;
            let encode = |to: &mut [u8]| encode_taken(&*self.contents, *head, own, to);
            end += match self.take {
                EventTake::Next => encode(to)?,
                EventTake::All => with_length(to, encode)?,
            };
        }
        Some(end)
    }
}

impl Head {
    fn of(delivery: &Delivery) -> Self {
        let Delivery { priority, pushed, expires, number, .. } = *delivery;
        Head { priority, pushed, expires, number }
    }
}

/// Writes what a job took. None if there is no room for it.
fn encode_taken<'a>(
    codings: &impl Codings,
    Head { priority, pushed, expires, number }: Head,
    events: impl IntoIterator<Item = &'a Event>,
    to: &mut [u8],
) -> Option<usize> {
    let head = to.get_mut(..HEAD)?;
    head[..2].copy_from_slice(&priority.to_le_bytes());
    let words = [pushed.as_nanos() as u64, expires.as_nanos() as u64, number];
    for (place, word) in words.iter().enumerate() {
        head[2 + 8 * place..][..8].copy_from_slice(&word.to_le_bytes());
    }
    let mut end = HEAD;
    for event in events {
        end += encode_event(codings, event, to.get_mut(end..)?)?;
    }
    Some(end)
}

/// Writes header and content of an event, each behind its length. None if there is no room for it.
pub(crate) fn encode_event(codings: &impl Codings, event: &Event, to: &mut [u8]) -> Option<usize> {
    let end = encode_header(event, to)?;
    let content = with_length(to.get_mut(end..)?, |to| codings.encode(event, to))?;
    Some(end + content)
}

/// Writes the header of an event behind its length, with the lists of a structured one. None if there is no room for it.
pub(crate) fn encode_header(event: &Event, to: &mut [u8]) -> Option<usize> {
    let message = event.message(Body::raw(&[]));
    with_length(to, |to| message.encode_into(to).ok())
}

/// What `write` writes, behind its length.
fn with_length(to: &mut [u8], write: impl FnOnce(&mut [u8]) -> Option<usize>) -> Option<usize> {
    let (head, rest) = to.split_at_mut_checked(LENGTH)?;
    let length = write(rest)?;
    head.copy_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
    Some(LENGTH + length)
}

/// What stands behind its length at the beginning of `from`, which is shorter by that then.
pub(crate) fn behind_length<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = from.split_first_chunk::<LENGTH>()?;
    let (taken, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *from = rest;
    Some(taken)
}

/// What a job took that had these bytes. `Err` if they are none.
pub(crate) fn taken_again(
    codings: &impl Codings,
    take: EventTake,
    mut from: &[u8],
) -> Result<Vec<Delivery>, NotTaken> {
    let mut deliveries = Vec::new();
    while !from.is_empty() {
        let one = match take {
            EventTake::Next => std::mem::take(&mut from),
            EventTake::All => behind_length(&mut from).ok_or(NotTaken)?,
        };
        deliveries.push(delivery_again(codings, one)?);
    }
    Ok(deliveries)
}

fn delivery_again(codings: &impl Codings, mut from: &[u8]) -> Result<Delivery, NotTaken> {
    let (head, rest) = from.split_at_checked(HEAD).ok_or(NotTaken)?;
    from = rest;
    let word = |place: usize| {
        let bytes = head[2 + 8 * place..][..8].try_into().expect("eight bytes");
        u64::from_le_bytes(bytes)
    };
    let [pushed, expires] = [0, 1].map(|place| Instant::from_nanos(word(place) as i64));
    let mut events = Vec::new();
    while !from.is_empty() {
        let header = behind_length(&mut from).ok_or(NotTaken)?;
        let content = behind_length(&mut from).ok_or(NotTaken)?;
        let message = Message::decode(header, &Limits::default()).map_err(|_| NotTaken)?;
        events.push(event(codings, &message, content).ok_or(NotTaken)?);
    }
    let (first, others) = events.split_first().ok_or(NotTaken)?;
    let event = match first.content::<EventSet>() {
        Some(_) => {
            let mut header = first.header().clone();
            EventSet::describe(&mut header, others);
            Event::new(header, EventSet(others.to_vec()))
        }
        None if others.is_empty() => first.clone(),
        None => return Err(NotTaken),
    };
    let priority = i16::from_le_bytes([head[0], head[1]]);
    let (number, not_before) = (word(2), pushed);
    Ok(Delivery {
        event,
        priority,
        pushed,
        not_before,
        expires,
        number,
        arrival: Arrival::NONE,
        by: Pusher::NO_JOB,
    })
}

/// These bytes say not what a job took.
#[derive(Debug)]
pub(crate) struct NotTaken;

fn event(codings: &impl Codings, message: &Message<'_>, content: &[u8]) -> Option<Event> {
    match message.header.domain {
        _ if message.header.origin.is_some() => codings.decode(message, content),
        EventSet::DOMAIN => Some(Event::received(message, EventSet::default())),
        TimeCame::DOMAIN => Some(Event::received(message, TimeCame)),
        _ => codings.decode(message, content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Origin;
    use talea_model::OperationId;

    #[derive(Debug, Default, PartialEq)]
    struct Charge(u8);
    impl Content for Charge {}

    const CODEC: Codec<Charge> = Codec {
        encode: |charge, to| {
            *to.first_mut()? = charge.0;
            Some(1)
        },
        decode: |charge, from| from.try_into().map(|[byte]: [u8; 1]| charge.0 = byte).is_ok(),
    };

    fn contents() -> Arc<Contents> {
        let contents = Contents::new(2);
        contents.set_codec(PublicationId::from_index(1), CODEC, Charge::default);
        contents
    }

    fn charge(number: u8) -> Event {
        let (publication, operation) = (PublicationId::from_index(1), OperationId::from_index(3));
        let origin = Some(Origin { publication, operation, instance: 9 });
        let event_name = Some("left".into());
        Event::new(
            Header { origin, event_name, ..Header::new(EventType::new("Robot", "Battery")) },
            Charge(number),
        )
    }

    fn delivery(event: Event) -> Delivery {
        let [pushed, expires] = [5, 7].map(Instant::from_nanos);
        Delivery {
            event,
            priority: -3,
            pushed,
            not_before: pushed,
            expires,
            number: 12,
            arrival: Arrival::NONE,
            by: Pusher::NO_JOB,
        }
    }

    fn several(events: Vec<Event>) -> Event {
        Event::new(Header::new(EventType::new(EventSet::DOMAIN, "")), EventSet(events))
    }

    fn bytes_of(take: EventTake, deliveries: &[Delivery]) -> Vec<u8> {
        let mut taken = Taken::slots(&contents(), take, (3, 4))();
        taken.set(deliveries);
        let mut bytes = vec![0; 1 << 10];
        let length = taken.encode(&mut bytes).expect("there is room");
        bytes.truncate(length);
        for short in 0..length {
            assert_eq!(taken.encode(&mut vec![0; short]), None);
        }
        bytes
    }

    #[test]
    fn what_a_job_took_is_the_same_again() {
        let time = Event::new(Header::new(EventType::new(TimeCame::DOMAIN, "")), TimeCame);
        let said = |delivery: &Delivery| {
            (delivery.priority(), delivery.pushed(), delivery.expires(), delivery.number())
        };
        let carried = |delivery: &Delivery| -> Vec<_> {
            let events = delivery.events().iter();
            let carried = |event: &Event| {
                (
                    event.header().clone(),
                    event.content().map(|Charge(number)| *number),
                    event.content() == Some(&TimeCame),
                )
            };
            events.map(carried).collect()
        };
        let each = [charge(11), time.clone(), several(vec![charge(1), time.clone(), charge(2)])];
        let each = each.map(delivery);
        let one_by_one = each.iter().map(|one| (EventTake::Next, std::slice::from_ref(one)));
        let at_once = (0..=each.len()).map(|count| (EventTake::All, &each[..count]));
        for (take, then) in one_by_one.chain(at_once).chain([(EventTake::Next, &[][..])]) {
            let now = taken_again(&*contents(), take, &bytes_of(take, then)).expect("it was taken");
            assert_eq!(now.len(), then.len());
            for (now, then) in now.iter().zip(then) {
                assert_eq!((said(now), now.event().header()), (said(then), then.event().header()));
                assert_eq!(carried(now), carried(then));
            }
        }
    }

    #[test]
    fn bytes_that_are_no_events_are_refused() {
        let next = EventTake::Next;
        let bytes = bytes_of(next, &[delivery(several(vec![charge(1), charge(2)]))]);
        for short in 1..bytes.len() {
            // Where an event ends, fewer were taken.
            let _any = taken_again(&*contents(), next, &bytes[..short]);
        }
        assert!(taken_again(&*contents(), next, &bytes[..HEAD]).is_err(), "an event that is none");
        assert!(taken_again(&*contents(), next, &bytes[..bytes.len() - 1]).is_err());
        assert!(taken_again(&*Contents::new(2), next, &bytes).is_err(), "nobody says what they carry");
        let unlike = bytes_of(next, &[delivery(charge(1))]);
        let longer = [&unlike[..], &[0]].concat();
        assert!(taken_again(&*contents(), next, &longer).is_err());
        let two = bytes_of(EventTake::All, &[delivery(charge(1)), delivery(charge(2))]);
        for short in 1..two.len() {
            assert_eq!(
                taken_again(&*contents(), EventTake::All, &two[..short]).is_ok(),
                short == two.len() / 2
            );
        }
    }
}
