//! The service in virtual time, where each step and each instant is the test's, and on threads.

mod allocation;
mod changing;
mod delivering;
mod dropping;
mod handles;
mod kept;
mod limit;
mod mapping;
mod monitoring;
mod negotiating;
mod observing;
mod partners;
mod properties;
mod pulling;
mod subscribing;
mod threads;
mod traced;
mod virtual_time;
mod waiting;

use std::sync::{Arc, Mutex};
use talea_notification::qos::QosSettings;
use talea_notification::{
    AdminProperties, ConnectedConsumer, ConsumerBuilder, Delivery, Event, EventChannel, EventChannelFactory,
    EventType, Header, Outcome, TypePattern,
};
use talea_time::Duration;
use virtual_time::{Number, VirtualTime, number};

pub(crate) const MS: fn(i64) -> Duration = Duration::from_millis;

/// A channel in virtual time.
pub(crate) fn channel(settings: QosSettings) -> (VirtualTime, EventChannel) {
    let time = VirtualTime::default();
    let factory = EventChannelFactory::on(time.clone());
    (time, factory.create("test", &settings, AdminProperties::default()).expect("sound"))
}

pub(crate) fn event_of(name: &str, number: u64) -> Event {
    Event::new(Header::new(EventType::new("Test", name)), Number(number))
}

pub(crate) fn event(number: u64) -> Event {
    event_of("Tick", number)
}

/// An event with a header that is changed.
pub(crate) fn event_with(number: u64, change: impl FnOnce(&mut Header)) -> Event {
    let mut header = Header::new(EventType::new("Test", "Tick"));
    change(&mut header);
    Event::new(header, Number(number))
}

pub(crate) fn types(text: &str) -> Vec<TypePattern> {
    text.split_whitespace().map(|pattern| pattern.parse().expect("a pattern")).collect()
}

/// What a consumer has had.
#[derive(Clone, Default)]
pub(crate) struct Had(Arc<Mutex<Vec<u64>>>);

impl Had {
    pub(crate) fn add(&self, delivery: &Delivery) {
        self.0.lock().expect("whole").push(number(delivery.event()));
    }

    pub(crate) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock().expect("whole"))
    }
}

/// A consumer that has each event, and what it has had.
pub(crate) fn connected(builder: ConsumerBuilder) -> (ConnectedConsumer, Had) {
    let had = Had::default();
    let own = had.clone();
    let consumer = builder.connect(move |delivery| {
        own.add(delivery);
        Outcome::Ok
    });
    (consumer.expect("connected"), had)
}
