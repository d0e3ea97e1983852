//! The events that wait for one consumer: in the order in which they are delivered, no more than there may be.

use crate::delivery::Delivery;
use crate::qos::{DiscardPolicy, OrderPolicy};
use std::cmp::Reverse;
use std::collections::VecDeque;
use talea_time::Instant;

/// What became of an event that came.
#[derive(Debug)]
pub(crate) enum Came {
    /// There was room.
    Queued,
    /// It is there, and this one is not any more.
    InPlaceOf(Delivery),
    /// It is not.
    Refused(Delivery),
}

/// The queue. Its memory is made beforehand.
#[derive(Debug)]
pub(crate) struct OrderedQueue {
    order: OrderPolicy,
    discard: DiscardPolicy,
    bound: usize,
    /// In the order of delivery.
    waiting: VecDeque<Delivery>,
}

impl OrderedQueue {
    pub fn new(order: OrderPolicy, discard: DiscardPolicy, bound: usize) -> Self {
        OrderedQueue { order, discard, bound, waiting: VecDeque::with_capacity(bound + 1) }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn pop(&mut self) -> Option<Delivery> {
        self.waiting.pop_front()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Delivery> {
        self.waiting.iter()
    }

    /// An event comes, and another one goes if there is no room, or if `is_full` for another reason. With room this takes as many steps as the
    /// shorter way to its place; without, as many as events wait.
    pub fn push(&mut self, event: Delivery, is_full: bool) -> Came {
        if self.waiting.len() < self.bound && !is_full {
            self.put(event);
            return Came::Queued;
        }
        let Some(victim) = self.victim(&event) else { return Came::Refused(event) };
        let victim = self.waiting.remove(victim).expect("it waits");
        self.put(event);
        Came::InPlaceOf(victim)
    }

    /// Takes those out that expire before `now`.
    pub fn expire(&mut self, now: Instant, mut expired: impl FnMut(Delivery)) {
        while let Some(place) = self.waiting.iter().position(|waiting| waiting.expires < now) {
            expired(self.waiting.remove(place).expect("it waits"));
        }
    }

    fn put(&mut self, event: Delivery) {
        let place = match self.order {
            OrderPolicy::Any | OrderPolicy::Fifo => self.place_by(&event, |waiting| waiting.number),
            OrderPolicy::Priority => {
                self.place_by(&event, |waiting| (Reverse(waiting.priority), waiting.number))
            }
            OrderPolicy::Deadline => self.place_by(&event, |waiting| (waiting.expires, waiting.number)),
        };
        self.waiting.insert(place, event);
    }

    fn place_by<K: Ord>(&self, event: &Delivery, key: impl Fn(&Delivery) -> K) -> usize {
        let own = key(event);
        self.waiting.partition_point(|waiting| key(waiting) < own)
    }

    /// The one that goes for this event; none if that is the event itself.
    fn victim(&self, event: &Delivery) -> Option<usize> {
        match self.discard {
            DiscardPolicy::Any | DiscardPolicy::Fifo => self.least_by(|waiting| waiting.number),
            DiscardPolicy::Lifo => None,
            DiscardPolicy::Priority => {
                let victim = self.least_by(|waiting| (waiting.priority, waiting.number))?;
                (self.waiting[victim].priority < event.priority).then_some(victim)
            }
            DiscardPolicy::Deadline => {
                let victim = self.least_by(|waiting| (waiting.expires, waiting.number))?;
                (self.waiting[victim].expires < event.expires).then_some(victim)
            }
        }
    }

    fn least_by<K: Ord>(&self, key: impl Fn(&Delivery) -> K) -> Option<usize> {
        (0..self.waiting.len()).min_by_key(|place| key(&self.waiting[*place]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Content, Event, EventType, Header};
    use proptest::prelude::*;
    use proptest::sample::select;

    struct Nothing;
    impl Content for Nothing {}

    fn waiting(number: u64, priority: i16, expires: i64) -> Delivery {
        let event = Event::new(Header::new(EventType::new("Test", "Queue")), Nothing);
        let (pushed, not_before) = (Instant::ZERO, Instant::ZERO);
        Delivery {
            event,
            priority,
            pushed,
            not_before,
            expires: Instant::from_nanos(expires),
            number,
            is_counted: false,
        }
    }

    const ORDERS: [OrderPolicy; 4] =
        [OrderPolicy::Any, OrderPolicy::Fifo, OrderPolicy::Priority, OrderPolicy::Deadline];
    const DISCARDS: [DiscardPolicy; 5] = [
        DiscardPolicy::Any,
        DiscardPolicy::Fifo,
        DiscardPolicy::Lifo,
        DiscardPolicy::Priority,
        DiscardPolicy::Deadline,
    ];

    /// An event as the judge sees it: priority, expiry and number.
    type Judged = (i16, i64, u64);

    /// A list without order, of which each step is written down as the definition says it.
    fn judge(list: &mut Vec<Judged>, bound: usize, discard: DiscardPolicy, new: Judged) -> Option<u64> {
        list.push(new);
        if list.len() <= bound {
            return None;
        }
        let goes = |list: &[Judged]| -> u64 {
            let oldest_first = |of: &dyn Fn(&Judged) -> i64| {
                let least = list.iter().map(of).min().expect("somebody waits");
                let mut candidates: Vec<u64> =
                    list.iter().filter(|one| of(one) == least).map(|one| one.2).collect();
                candidates.sort_unstable();
                // The one that comes is no more than those that wait.
                if candidates.contains(&new.2) { new.2 } else { candidates[0] }
            };
            match discard {
                DiscardPolicy::Any | DiscardPolicy::Fifo => list.iter().map(|one| one.2).min().expect("some"),
                DiscardPolicy::Lifo => new.2,
                DiscardPolicy::Priority => oldest_first(&|one| one.0.into()),
                DiscardPolicy::Deadline => oldest_first(&|one| one.1),
            }
        };
        let gone = goes(list);
        list.retain(|one| one.2 != gone);
        Some(gone)
    }

    fn next(list: &[Judged], order: OrderPolicy) -> Option<u64> {
        let mut list = list.to_vec();
        list.sort_by_key(|one| match order {
            OrderPolicy::Any | OrderPolicy::Fifo => (0, one.2),
            OrderPolicy::Priority => (-i64::from(one.0), one.2),
            OrderPolicy::Deadline => (one.1, one.2),
        });
        list.first().map(|one| one.2)
    }

    proptest! {
        #[test]
        fn it_delivers_and_discards_as_defined(
            order in select(&ORDERS[..]),
            discard in select(&DISCARDS[..]),
            bound in 1usize..6,
            steps in prop::collection::vec(prop::option::weighted(0.7, (-2i16..3, 0i64..4)), 0..40),
        ) {
            let mut queue = OrderedQueue::new(order, discard, bound);
            let mut list: Vec<Judged> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                let number = number as u64;
                match step {
                    Some((priority, expires)) => {
                        let gone = match queue.push(waiting(number, priority, expires), false) {
                            Came::Queued => None,
                            Came::InPlaceOf(other) | Came::Refused(other) => Some(other.number),
                        };
                        prop_assert_eq!(gone, judge(&mut list, bound, discard, (priority, expires, number)));
                    }
                    None => {
                        let expected = next(&list, order);
                        prop_assert_eq!(queue.pop().map(|waiting| waiting.number), expected);
                        list.retain(|one| Some(one.2) != expected);
                    }
                }
                prop_assert_eq!(queue.len(), list.len());
                prop_assert_eq!(queue.iter().next().map(|waiting| waiting.number), next(&list, order));
            }
            let mut expired = Vec::new();
            queue.expire(Instant::from_nanos(2), |waiting| expired.push(waiting.number));
            expired.sort_unstable();
            let mut expected: Vec<u64> = list.iter().filter(|one| one.1 < 2).map(|one| one.2).collect();
            expected.sort_unstable();
            prop_assert_eq!(expired, expected);
        }
    }

    #[test]
    fn a_channel_without_room_is_a_queue_without_room() {
        let mut queue = OrderedQueue::new(OrderPolicy::Fifo, DiscardPolicy::Fifo, 3);
        assert!(matches!(queue.push(waiting(0, 0, 9), true), Came::Refused(_)), "nobody else can go");
        assert!(matches!(queue.push(waiting(1, 0, 9), false), Came::Queued));
        assert!(matches!(queue.push(waiting(2, 0, 9), true), Came::InPlaceOf(other) if other.number == 1));
    }
}
