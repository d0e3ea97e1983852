//! An event on its way to one consumer, and what comes of it there.

use crate::condition::{EventSet, TimeCame};
use crate::event::Event;
use talea_model::OperationId;
use talea_record::JobId;
use talea_time::Instant;

/// An event for one consumer.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub(crate) event: Event,
    pub(crate) priority: i16,
    pub(crate) pushed: Instant,
    /// It is not delivered before this.
    pub(crate) not_before: Instant,
    /// It is not delivered after this; [`Instant::MAX`] if it never expires.
    pub(crate) expires: Instant,
    /// Its number among all that came to the consumer.
    pub(crate) number: u64,
    /// Its number among those that came to any consumer of the channel, if that limits how many may wait in all of it.
    pub(crate) arrival: Arrival,
    /// The job that pushed it, if one did. What a condition has come true with has several.
    pub(crate) by: Pusher,
}

// As many bytes as the processor fetches at once: deliveries are moved from place to place.
const _: () = assert!(size_of::<Delivery>() <= 64);

/// The number of an event among those that came to any consumer of a channel, from 1, in as many bytes as are left: at a million events a second it
/// begins anew after some nine years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival([u16; 3]);

impl Arrival {
    /// It has none.
    pub const NONE: Arrival = Arrival([0; 3]);

    /// This one.
    #[inline]
    pub fn of(number: u64) -> Self {
        Arrival([32, 16, 0].map(|shift| (number >> shift) as u16))
    }

    /// As a number; none if it has none.
    #[inline]
    pub fn number(self) -> Option<u64> {
        let number = self.0.into_iter().fold(0, |number, part| number << 16 | u64::from(part));
        (number > 0).then_some(number)
    }
}

/// The job that pushed an event, if one did, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pusher(u64);

impl Pusher {
    /// None did. No job has this word: it would be the last one of the last operation that there can be.
    pub const NO_JOB: Pusher = Pusher(u64::MAX);

    /// This one, by its operation and its instance.
    #[inline]
    pub fn of(job: Option<(OperationId, u64)>) -> Self {
        job.map_or(Pusher::NO_JOB, |(operation, instance)| Pusher(JobId { operation, instance }.pack()))
    }

    /// Its operation and its instance.
    #[inline]
    pub fn job(self) -> Option<(OperationId, u64)> {
        (self != Pusher::NO_JOB).then(|| {
            let JobId { operation, instance } = JobId::unpack(self.0);
            (operation, instance)
        })
    }
}

impl Delivery {
    /// The event.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The events of which a [`Condition`](crate::Condition) came true, in the order of its parts; the event alone if there is no condition.
    pub fn events(&self) -> &[Event] {
        match self.event.content::<EventSet>() {
            Some(EventSet(events)) => events,
            None => std::slice::from_ref(&self.event),
        }
    }

    /// Its events that somebody has pushed: time comes from nobody.
    pub(crate) fn pushed_events(&self) -> impl Iterator<Item = &Event> {
        self.events().iter().filter(|event| event.content::<TimeCame>().is_none())
    }

    /// By which it was ordered: what a mapping filter says, or the event, or the quality of service of the consumer.
    pub fn priority(&self) -> i16 {
        self.priority
    }

    /// When it was pushed.
    pub fn pushed(&self) -> Instant {
        self.pushed
    }

    /// When it stops being worth anything, if it does.
    pub fn expires(&self) -> Option<Instant> {
        Some(self.expires).filter(|expires| *expires != Instant::MAX)
    }

    /// Its number among all that came to the consumer, from 0; numbers that are missing were discarded or expired.
    pub fn number(&self) -> u64 {
        self.number
    }
}
