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

/// Where an event stands by a discard policy when one has to go: the least goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(i64, u64);

impl Rank {
    /// Of one that waits, which came as that of this number.
    pub fn of(discard: DiscardPolicy, waiting: &Delivery, number: u64) -> Self {
        match discard {
            DiscardPolicy::Any | DiscardPolicy::Fifo => Rank(0, number),
            DiscardPolicy::Lifo => Rank(0, u64::MAX - number),
            DiscardPolicy::Priority => Rank(waiting.priority.into(), number),
            DiscardPolicy::Deadline => Rank(waiting.expires.as_nanos(), number),
        }
    }

    /// Of the one that comes, with its priority, when it expires, and its number: it goes before those that are no more than it.
    pub fn of_coming(discard: DiscardPolicy, (priority, expires): (i16, Instant), number: u64) -> Self {
        match discard {
            DiscardPolicy::Any | DiscardPolicy::Fifo => Rank(0, number),
            DiscardPolicy::Lifo => Rank(0, u64::MAX - number),
            DiscardPolicy::Priority => Rank(priority.into(), 0),
            DiscardPolicy::Deadline => Rank(expires.as_nanos(), 0),
        }
    }
}

/// The queue. Its memory is made beforehand.
#[derive(Debug)]
pub(crate) struct OrderedQueue {
    order: OrderPolicy,
    discard: DiscardPolicy,
    /// Of those that may be delivered and those that may not yet, together.
    bound: usize,
    /// Places of events that have been taken and keep them.
    kept: usize,
    /// What may be delivered, in the order of delivery.
    waiting: VecDeque<Delivery>,
    /// What may not be delivered yet.
    held: Vec<Delivery>,
}

/// From when on an event that comes may be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Now,
    /// Not before it is [let go](OrderedQueue::let_go).
    Later,
}

/// Where an event is.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Waiting(usize),
    Held(usize),
}

impl OrderedQueue {
    pub fn new(order: OrderPolicy, discard: DiscardPolicy, bound: usize) -> Self {
        let (waiting, held) = (VecDeque::with_capacity(bound + 1), Vec::with_capacity(bound + 1));
        OrderedQueue { order, discard, bound, kept: 0, waiting, held }
    }

    /// An event that has just been taken keeps its place.
    pub fn keep_place(&mut self) {
        self.kept += 1;
    }

    /// One such event does not keep its place any more.
    pub fn give_place_up(&mut self) {
        self.kept -= 1;
    }

    /// One with another order and bound, which has nothing yet, where events that have been taken from this one keep their places.
    pub fn replaced_by(&self, order: OrderPolicy, discard: DiscardPolicy, bound: usize) -> Self {
        OrderedQueue { kept: self.kept, ..OrderedQueue::new(order, discard, bound) }
    }

    /// Events that may be delivered.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// What may not be delivered yet.
    pub fn held(&self) -> &[Delivery] {
        &self.held
    }

    /// All of it.
    pub fn all(&self) -> impl Iterator<Item = &Delivery> {
        self.waiting.iter().chain(&self.held)
    }

    /// What it has, in the order of delivery where that is decided.
    pub fn into_events(self) -> impl Iterator<Item = (Delivery, From)> {
        let waiting = self.waiting.into_iter().map(|event| (event, From::Now));
        waiting.chain(self.held.into_iter().map(|event| (event, From::Later)))
    }

    /// Takes any, also what may not be delivered yet.
    pub fn take_any(&mut self) -> Option<Delivery> {
        self.waiting.pop_front().or_else(|| self.held.pop())
    }

    /// Takes the first of those with such a priority.
    pub fn pop_of(&mut self, is_of: impl Fn(i16) -> bool) -> Option<Delivery> {
        let place = self.waiting.iter().position(|waiting| is_of(waiting.priority))?;
        let taken = if place == 0 { self.waiting.pop_front() } else { self.waiting.remove(place) };
        if self.waiting.is_empty() {
            // It begins at the front of its memory again, which is still in the processor's caches.
            self.waiting.clear();
        }
        taken
    }

    pub fn iter(&self) -> impl Iterator<Item = &Delivery> {
        self.waiting.iter()
    }

    /// An event comes, and another one goes if there is no room. With room this takes as many steps as the shorter way to its place; without, as
    /// many as events wait.
    #[inline]
    pub fn push(&mut self, event: Delivery, from: From) -> Came {
        let has_room = self.waiting.len() + self.held.len() + self.kept < self.bound;
        if has_room {
            self.put(event, from);
            return Came::Queued;
        }
        let victim = match self.victim(&event) {
            None => return Came::Refused(event),
            Some(place) => self.remove(place),
        };
        self.put(event, from);
        Came::InPlaceOf(victim)
    }

    /// What is held may be delivered if `now` has come for it.
    pub fn let_go(&mut self, now: Instant) {
        let mut place = 0;
        while let Some(held) = self.held.get(place) {
            if held.not_before <= now {
                let event = self.held.swap_remove(place);
                self.put(event, From::Now);
            } else {
                place += 1;
            }
        }
    }

    /// Takes one out that expires before `now`, if there is one.
    pub fn take_expired(&mut self, now: Instant) -> Option<Delivery> {
        let waiting = self.waiting.iter().position(|waiting| waiting.expires < now).map(Place::Waiting);
        let held = || self.held.iter().position(|held| held.expires < now).map(Place::Held);
        waiting.or_else(held).map(|place| self.remove(place))
    }

    #[inline]
    fn put(&mut self, event: Delivery, from: From) {
        if from == From::Later {
            self.held.push(event);
            return;
        }
        if self.waiting.is_empty() {
            self.waiting.push_back(event);
            return;
        }
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
    fn victim(&self, event: &Delivery) -> Option<Place> {
        let own = Rank::of_coming(self.discard, (event.priority, event.expires), event.number);
        let first = self.first_to_go(|waiting| Some(Rank::of(self.discard, waiting, waiting.number)));
        first.filter(|(rank, _)| *rank < own).map(|(_, place)| place)
    }

    /// The event that goes first of those that have a rank. Takes as many steps as events wait.
    pub fn first_to_go(&self, rank: impl Fn(&Delivery) -> Option<Rank>) -> Option<(Rank, Place)> {
        let waiting = (0..self.waiting.len()).map(Place::Waiting);
        let held = (0..self.held.len()).map(Place::Held);
        let ranked = waiting.chain(held).filter_map(|place| Some((rank(self.at(place))?, place)));
        ranked.min_by_key(|(rank, _)| *rank)
    }

    /// Takes out what is there.
    pub fn remove(&mut self, place: Place) -> Delivery {
        match place {
            Place::Waiting(place) => self.waiting.remove(place).expect("it waits"),
            Place::Held(place) => self.held.swap_remove(place),
        }
    }

    fn at(&self, place: Place) -> &Delivery {
        match place {
            Place::Waiting(place) => &self.waiting[place],
            Place::Held(place) => &self.held[place],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Arrival;
    use crate::event::{Content, Event, EventType, Header};
    use proptest::prelude::*;
    use proptest::sample::select;

    struct Nothing;
    impl Content for Nothing {}

    /// When held events may be delivered.
    const LATER: Instant = Instant::from_nanos(1);

    fn waiting(number: u64, priority: i16, expires: i64, from: From) -> Delivery {
        let event = Event::new(Header::new(EventType::new("Test", "Queue")), Nothing);
        let not_before = if from == From::Later { LATER } else { Instant::ZERO };
        let pushed = Instant::ZERO;
        Delivery {
            event,
            priority,
            pushed,
            not_before,
            expires: Instant::from_nanos(expires),
            number,
            arrival: Arrival::NONE,
            by: crate::delivery::Pusher::NO_JOB,
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

    /// An event as the judge sees it: priority, expiry, number, and whether it may be delivered.
    type Judged = (i16, i64, u64, bool);

    /// What has been taken and keeps its place is room that others lack, also in a queue that takes this one's place; it does not go for them.
    #[test]
    fn events_that_keep_their_places_leave_less_room() {
        let push = |queue: &mut OrderedQueue, number| queue.push(waiting(number, 0, 9, From::Now), From::Now);
        for discard in DISCARDS {
            let mut queue = OrderedQueue::new(OrderPolicy::Fifo, discard, 2);
            for number in 0..2 {
                assert!(matches!(push(&mut queue, number), Came::Queued));
                assert_eq!(queue.pop_of(|_| true).map(|event| event.number), Some(number));
                queue.keep_place();
            }
            assert!(matches!(push(&mut queue, 2), Came::Refused(event) if event.number == 2), "{discard:?}");
            queue.give_place_up();
            assert!(matches!(push(&mut queue, 3), Came::Queued));
            match push(&mut queue, 4) {
                Came::InPlaceOf(event) => assert_eq!(event.number, 3, "{discard:?}"),
                Came::Refused(event) => assert_eq!(event.number, 4, "{discard:?}"),
                Came::Queued => panic!("{discard:?}: there are two places"),
            }
            let mut queue = queue.replaced_by(OrderPolicy::Fifo, discard, 1);
            assert!(matches!(push(&mut queue, 5), Came::Refused(_)), "{discard:?}");
            queue.give_place_up();
            assert!(matches!(push(&mut queue, 6), Came::Queued), "{discard:?}");
        }
    }

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
        let mut list: Vec<Judged> = list.iter().filter(|one| one.3).copied().collect();
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
            steps in prop::collection::vec(prop::option::weighted(0.7, (-2i16..3, 0i64..4, any::<bool>())), 0..40),
            let_go_at in 0usize..80,
        ) {
            let mut queue = OrderedQueue::new(order, discard, bound);
            let mut list: Vec<Judged> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                if number == let_go_at {
                    queue.let_go(Instant::ZERO);
                    prop_assert_eq!(queue.len(), list.iter().filter(|one| one.3).count());
                    queue.let_go(LATER);
                    list.iter_mut().for_each(|one| one.3 = true);
                }
                let number = number as u64;
                match step {
                    Some((priority, expires, is_now)) => {
                        let from = if is_now { From::Now } else { From::Later };
                        let gone = match queue.push(waiting(number, priority, expires, from), from) {
                            Came::Queued => None,
                            Came::InPlaceOf(other) | Came::Refused(other) => Some(other.number),
                        };
                        prop_assert_eq!(gone, judge(&mut list, bound, discard, (priority, expires, number, is_now)));
                    }
                    None => {
                        let expected = next(&list, order);
                        prop_assert_eq!(queue.pop_of(|_| true).map(|waiting| waiting.number), expected);
                        list.retain(|one| Some(one.2) != expected);
                    }
                }
                prop_assert_eq!((queue.len(), queue.all().count()), (list.iter().filter(|one| one.3).count(), list.len()));
                prop_assert_eq!(queue.iter().next().map(|waiting| waiting.number), next(&list, order));
            }
            let mut expired = Vec::new();
            while let Some(waiting) = queue.take_expired(Instant::from_nanos(2)) {
                expired.push(waiting.number);
            }
            expired.sort_unstable();
            let mut expected: Vec<u64> = list.iter().filter(|one| one.1 < 2).map(|one| one.2).collect();
            expected.sort_unstable();
            prop_assert_eq!(expired, expected);
        }
    }
}
