//! The ends of one operation at channels.

use super::filters::ByContent;
use super::instances::Instances;
use super::pushes::{Keeper, PushKeeping, PushPlace};
use super::synthetic::SyntheticSource;
use crate::channel::EventChannelFactory;
use crate::connected::{ConnectedConsumer, Watched};
use crate::delivery::Delivery;
use crate::event::{Content, Event, EventPool, Origin};
use crate::kept::{Contents, Taken, taken_again};
use crate::supplier::Supplier;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_channel::{Handling, KeptEnd, Output, OutputPort, Visible};
use talea_model::{EventTake, EventTypeName, OperationId, PublicationId};
use talea_operation::{EventEnds, EventLoss, EventNote, JobServices, PushedBytes, TakenEvent};
use talea_time::{Duration, Instant};

/// See the module.
#[derive(Default)]
pub(super) struct Ends {
    pub subscribed: Option<Subscribed>,
    pub published: Vec<Published>,
    /// Of those who have what it pushes.
    watched: Vec<Losses>,
    /// What it belongs to.
    factory: Option<EventChannelFactory>,
    /// The instance of the job that pushed last, and how often it has.
    pushes: (u64, u16),
    /// Pushes of the job that is called next for which there is no room, where it is replayed.
    refused: Option<Vec<u16>>,
}

/// What an operation publishes.
pub(super) struct Published {
    pub supplier: Supplier,
    pub event_type: EventTypeName,
    pub origin: Origin,
    pub priority: Option<i16>,
    pub timeout: Option<Duration>,
    /// Events that can be under way at once.
    pub events: usize,
    /// Where its events come from, unless code makes them.
    pub source: Option<SyntheticSource>,
    /// The events that code fills in.
    pub pool: Option<Box<dyn Any + Send>>,
    /// The number of their source.
    pub number_of_source: u32,
    /// The constraints that subscribers hold against them.
    pub filters: Vec<ByContent>,
    /// How the events of all publications become bytes.
    pub contents: Arc<Contents>,
    /// As many pushes as wait to be recorded; 0 if none ever are.
    pub pushed_room: usize,
    pub keeping: PushKeeping,
}

impl Published {
    /// The events that code of the operation fills in.
    ///
    /// # Panics
    /// If they carry something else.
    pub fn pool_of<T: Content>(&mut self) -> &mut EventPool<T> {
        let pool = self.pool.as_mut().expect("a token is had by opening the events");
        pool.downcast_mut().expect("a token has the type with which it was opened")
    }

    /// What is pushed is kept, if it is to be; no event: there was no room for it.
    pub fn keep(&mut self, services: &dyn JobServices, place: PushPlace, event: Option<&Event>) {
        let publication = self.origin.publication;
        if !self.keeping.take(Keeper { contents: &self.contents, publication }, place, event) {
            services.note(EventNote::PushNotKept(publication), services.clock());
        }
    }

    /// Pushes an event in this job.
    pub fn push(&mut self, services: &dyn JobServices, place: PushPlace, event: &Event) {
        let now = services.clock();
        services.note(EventNote::Pushed(self.origin.publication), now);
        self.keep(services, place, Some(event));
        // The channel of a description rejects nothing, and the type was offered.
        _ = self.supplier.push_at(services, event, now);
    }
}

/// What jobs of an operation take, whether or not it releases them.
pub(super) struct Subscribed {
    consumer: Arc<ConnectedConsumer>,
    losses: Losses,
    /// What it has together with the other first subtasks of its task, if there are any.
    instances: Option<Arc<Instances>>,
    /// What jobs have that have begun, by instance. As a rule that is one job; where another one goes before it, both.
    taken: Vec<(u64, Vec<Delivery>)>,
    /// Memory for what others take.
    spare: Vec<Vec<Delivery>>,
    /// How often its condition has come true at most for what a job has.
    most: usize,
    /// The instance of the job that began last.
    current: u64,
    /// The constraints that it holds against events; of several first subtasks the one has them that stands for all.
    pub filters: Vec<ByContent>,
    pub is_opened: bool,
    keeping: Keeping,
}

/// What is needed to keep what jobs take, and to hand it to them again.
pub(super) struct Keeping {
    pub contents: Arc<Contents>,
    /// All that may come.
    pub publications: Vec<PublicationId>,
    /// As much as waits to be recorded; 0 if nothing ever is.
    pub room: usize,
    /// How many a job takes.
    pub take: EventTake,
    /// Where it goes, while it is kept.
    pub port: Option<OutputPort<Taken>>,
}

impl Keeping {
    fn are_bytes(&self) -> bool {
        self.publications.iter().all(|publication| self.contents.has(*publication))
    }

    /// Deliveries that may be held at once for who records them.
    fn held(&self) -> usize {
        if self.room == 0 { 0 } else { 2 * self.room + 1 }
    }

    /// The job of this instance has this from `now` on. Whether there was room for it, if it is kept.
    fn keep(&mut self, instance: u64, deliveries: &[Delivery], now: Instant) -> bool {
        let Some(port) = &mut self.port else { return true };
        port.value().set(deliveries);
        let mut has_room = true;
        port.publish(instance, Visible::To(now), &mut |_| has_room = false);
        has_room
    }
}

/// Events that a consumer has lost, of which word is to be recorded once.
#[derive(Clone)]
pub(super) struct Losses {
    /// Whose jobs take its events.
    taker: OperationId,
    consumer: Watched,
    told: Arc<[AtomicU64; 2]>,
}

impl Losses {
    fn tell(&self, noted: &mut dyn FnMut(EventNote)) {
        let (discarded, expired) = self.consumer.lost();
        let all = [(discarded, EventLoss::Discarded), (expired, EventLoss::Expired)];
        for ((lost, why), told) in all.into_iter().zip(self.told.iter()) {
            if lost <= told.load(Ordering::Relaxed) {
                continue;
            }
            // Several may look at once, of which each tells what no other has.
            let before = told.fetch_max(lost, Ordering::Relaxed);
            if lost > before {
                let events = u32::try_from(lost - before).unwrap_or(u32::MAX);
                noted(EventNote::Lost { operation: self.taker, events, why });
            }
        }
    }
}

impl Subscribed {
    pub fn new(
        consumer: ConnectedConsumer,
        taker: OperationId,
        filters: Vec<ByContent>,
        instances: Option<Instances>,
        (most, keeping): (usize, Keeping),
    ) -> Self {
        let losses = Losses { taker, consumer: consumer.watched(), told: Arc::default() };
        let (consumer, instances) = (Arc::new(consumer), instances.map(Arc::new));
        Subscribed::of((consumer, losses, instances), filters, (most, keeping))
    }

    /// Of another first subtask of the same task.
    pub fn beside(&self, keeping: Keeping) -> Self {
        let shared = (Arc::clone(&self.consumer), self.losses(), self.instances.clone());
        Subscribed::of(shared, Vec::new(), (self.most, keeping))
    }

    fn of(
        (consumer, losses, instances): (Arc<ConnectedConsumer>, Losses, Option<Arc<Instances>>),
        filters: Vec<ByContent>,
        (most, keeping): (usize, Keeping),
    ) -> Self {
        Subscribed {
            consumer,
            losses,
            instances,
            taken: Vec::with_capacity(JOBS),
            spare: (0..JOBS).map(|_| Vec::with_capacity(most)).collect(),
            most,
            current: 0,
            filters,
            is_opened: false,
            keeping,
        }
    }

    pub fn losses(&self) -> Losses {
        self.losses.clone()
    }

    /// Events of one publication that it can have at once, waiting, in hand and to be recorded, if so many of them are in one delivery at most.
    pub fn room(&self, at_once: usize) -> usize {
        // That a job has one is reckoned there.
        let in_hand = 2 * (self.most - 1) * self.consumer.most_at_once();
        self.consumer.memory() + in_hand + self.keeping.held() * self.most * at_once
    }

    /// What the current job has.
    pub fn taken(&self) -> &[Delivery] {
        let of_job = self.taken.iter().find(|(instance, _)| *instance == self.current);
        of_job.map_or(&[], |(_, deliveries)| deliveries)
    }

    /// The job does not have what it took any more.
    fn leave(&mut self, instance: u64) {
        while let Some(place) = self.taken.iter().position(|(known, _)| *known == instance) {
            let (_, mut deliveries) = self.taken.swap_remove(place);
            deliveries.clear();
            self.spare.push(deliveries);
        }
    }
}

/// Jobs of an operation that have begun at once, for which there is room before more is taken.
const JOBS: usize = 4;

impl Ends {
    /// Word of what these lose is told by who pushes, too.
    pub fn watch(&mut self, losses: impl Iterator<Item = Losses>) {
        for one in losses {
            if self.watched.iter().all(|known| known.taker != one.taker) {
                self.watched.push(one);
            }
        }
    }

    pub fn keep(&mut self, factory: EventChannelFactory) {
        self.factory = Some(factory);
    }

    /// The next push of the job of this instance, and whether there is no room for it because there once was none.
    pub fn next_push(&mut self, instance: u64, begun: Instant) -> (PushPlace, bool) {
        if self.pushes.0 != instance {
            self.pushes = (instance, 0);
        }
        let number = self.pushes.1;
        self.pushes.1 = number.saturating_add(1);
        let is_refused = self.refused.as_ref().is_some_and(|refused| refused.contains(&number));
        (PushPlace { instance, number, begun }, is_refused)
    }

    /// Tells what has been lost by what was pushed.
    pub fn tell_losses(&self, services: &dyn JobServices) {
        self.watched.iter().for_each(|losses| losses.tell(&mut |note| services.note(note, services.clock())));
    }
}

impl EventEnds for Ends {
    fn begin(
        &mut self,
        instance: u64,
        now: Instant,
        taken: &mut dyn FnMut(TakenEvent),
        noted: &mut dyn FnMut(EventNote),
    ) {
        let Some(subscribed) = &mut self.subscribed else { return };
        subscribed.current = instance;
        if subscribed.taken.iter().any(|(known, _)| *known == instance) {
            return;
        }
        // There is room for as many jobs as begin before one of them ends.
        let mut deliveries = subscribed.spare.pop().unwrap_or_else(|| Vec::with_capacity(subscribed.most));
        match &subscribed.instances {
            None => subscribed.consumer.take_for_job(subscribed.most, now, &mut deliveries),
            Some(instances) => deliveries.extend(instances.begin(&subscribed.consumer, instance, now)),
        }
        if !subscribed.keeping.keep(instance, &deliveries, now) {
            noted(EventNote::NotKept);
        }
        subscribed.taken.push((instance, deliveries));
        subscribed.losses.tell(noted);
        for event in subscribed.taken().iter().flat_map(Delivery::pushed_events) {
            let origin = event.header().origin;
            taken(TakenEvent {
                publication: origin.map(|origin| origin.publication),
                from: origin.map(|origin| (origin.operation, origin.instance)),
            });
        }
    }

    fn begin_again(&mut self, instance: u64, from: &[u8]) -> bool {
        let Some(subscribed) = &mut self.subscribed else { return false };
        let Keeping { contents, take, .. } = &subscribed.keeping;
        let Ok(deliveries) = taken_again(&**contents, *take, from) else { return false };
        subscribed.current = instance;
        subscribed.leave(instance);
        subscribed.taken.push((instance, deliveries));
        true
    }

    fn are_bytes(&self) -> bool {
        self.subscribed.as_ref().is_some_and(|subscribed| subscribed.keeping.are_bytes())
    }

    fn keep(&mut self) -> Option<Box<dyn KeptEnd>> {
        let Subscribed { keeping, consumer, most, .. } = self.subscribed.as_mut()?;
        if keeping.room == 0 || !keeping.are_bytes() {
            return None;
        }
        let Keeping { contents, room, take, port, .. } = keeping;
        let handling = Handling { same: None, codec: Some(Taken::CODEC) };
        let slots = Taken::slots(contents, *take, (*most, consumer.most_at_once()));
        let (made, _no_readers, end) = OutputPort::kept(&[], handling, *room, slots);
        *port = Some(made);
        end
    }

    fn keep_pushes(&mut self) -> Vec<(PublicationId, Option<Box<dyn KeptEnd>>)> {
        let kept = self.published.iter_mut().filter(|published| published.pushed_room > 0);
        let ends = kept.map(|Published { origin, contents, pushed_room, keeping, .. }| {
            let publication = origin.publication;
            (publication, keeping.keep(Keeper { contents, publication }, *pushed_room))
        });
        ends.collect()
    }

    fn log_pushes(&mut self, wanted: &dyn Fn(PublicationId) -> bool, most: usize) -> Vec<PublicationId> {
        let mut logged = Vec::new();
        for Published { origin, contents, keeping, .. } in &mut self.published {
            if wanted(origin.publication) && contents.has(origin.publication) {
                *keeping = PushKeeping::AtOnce { buffer: vec![0; most], pushed: Vec::new() };
                logged.push(origin.publication);
            }
        }
        logged
    }

    fn pushed(&mut self) -> Vec<PushedBytes> {
        let logs = self.published.iter_mut().filter_map(|published| match &mut published.keeping {
            PushKeeping::AtOnce { pushed, .. } => Some(pushed),
            PushKeeping::Nothing | PushKeeping::Port(_) => None,
        });
        let mut all: Vec<PushedBytes> = logs.flat_map(std::mem::take).collect();
        all.sort_by_key(|pushed| pushed.number);
        all
    }

    fn refuse_again(&mut self, refused: Vec<u16>) {
        // A job that is called for the second time pushes from the beginning.
        self.pushes.1 = 0;
        self.refused = Some(refused);
    }

    fn push_synthetic(&mut self, services: &dyn JobServices, instance: u64) {
        for place in 0..self.published.len() {
            let is_kept = !matches!(self.published[place].keeping, PushKeeping::Nothing);
            let begun = if is_kept { services.clock() } else { Instant::ZERO };
            let (push_place, _) = self.next_push(instance, begun);
            let published = &mut self.published[place];
            let Published { origin, priority, timeout, source, number_of_source, .. } = published;
            let Some(source) = source else { continue };
            let origin = Origin { instance, ..*origin };
            let event = source.event((origin, *number_of_source), *priority, *timeout);
            // There is one for each place in which one can be.
            let event = event.expect("an event is free");
            published.push(services, push_place, &event);
        }
        self.tell_losses(services);
    }

    fn leave(&mut self, instance: u64) {
        if let Some(subscribed) = &mut self.subscribed {
            subscribed.leave(instance);
            subscribed.consumer.tidy();
        }
    }

    fn unopened(&self) -> Vec<String> {
        let subscription = self.subscribed.iter().filter(|subscribed| !subscribed.is_opened);
        let subscription = subscription.map(|_| "its subscription".to_owned());
        let publications = self.published.iter().filter(|published| published.source.is_some());
        let publications = publications.map(|published| format!("its events {}", published.event_type));
        subscription.chain(publications).collect()
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
