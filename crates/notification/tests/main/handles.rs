//! Proxies and admins found by their numbers, and what becomes of what was found.

use crate::{Had, channel, connected, event, types};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use talea_notification::qos::QosSettings;
use talea_notification::{
    AdminProperties, Connection, EventChannelFactory, Filter, GroupOperator, NotNow, ObtainInfoMode,
    PushError,
};

#[test]
fn everything_is_listed_and_found_by_its_number() {
    let time = crate::VirtualTime::default();
    let factory = EventChannelFactory::on(time);
    let create = |name| factory.create(name, &QosSettings::new(), AdminProperties::default()).expect("sound");
    let (channel, other) = (create("c"), create("o"));
    let nothing = QosSettings::new();
    let consumers = channel.new_consumer_admin(GroupOperator::Or, &nothing).expect("sound");
    let suppliers = channel.new_supplier_admin(GroupOperator::And, &nothing).expect("sound");
    assert_eq!(channel.consumer_admins(), [0, consumers.id()]);
    assert_eq!(channel.supplier_admins(), [0, suppliers.id()]);
    let (one, _) = connected(consumers.consumer("one").subscribe(types("Test/a")));
    let pulled = channel.consumer("two").connect_pull().expect("connected");
    let supplier = suppliers.supplier("s").connect().expect("connected");
    assert_eq!((consumers.consumers(), suppliers.suppliers()), (vec![one.id()], vec![supplier.id()]));
    for id in consumers.consumers() {
        let found = consumers.consumer_of(id).expect("it is listed");
        assert_eq!((found.name(), found.id(), found.admin()), ("one", one.id(), Some(consumers.id())));
        assert_eq!(found.subscriptions(), types("Test/a"));
    }
    let found = suppliers.supplier_of(supplier.id()).expect("it is listed");
    assert_eq!((found.name(), found.admin(), found.is_connected()), ("s", Some(suppliers.id()), true));
    assert_eq!(channel.consumer_of(pulled.id()).map(|found| found.admin()), Some(Some(0)));
    // Of another admin, another side, another channel, and of nobody.
    assert!(
        consumers.consumer_of(pulled.id()).is_none()
            && channel.consumer_admin().consumer_of(one.id()).is_none()
    );
    assert!(channel.supplier_admin().supplier_of(supplier.id()).is_none());
    assert!(channel.consumer_of(supplier.id()).is_none() && channel.supplier_of(one.id()).is_none());
    assert!(other.consumer_of(one.id()).is_none() && other.supplier_of(supplier.id()).is_none());
    assert!([0, consumers.id(), u32::MAX].into_iter().all(|id| channel.consumer_of(id).is_none()));
    assert!(consumers.destroy() && suppliers.destroy());
    assert_eq!((channel.consumer_admins(), channel.supplier_admins()), (vec![0], vec![0]));
    assert!(channel.consumer_of(one.id()).is_none() && channel.supplier_of(supplier.id()).is_none());
}

#[test]
fn a_handle_leaves_its_proxy_connected_and_knows_when_it_is_not() {
    let (mut time, channel) = channel(QosSettings::new());
    let (consumer, had) = connected(channel.consumer("c"));
    let mut supplier = channel.supplier("s").connect().expect("connected");
    drop((channel.consumer_of(consumer.id()), channel.supplier_of(supplier.id())));
    let of_consumer = channel.consumer_of(consumer.id()).expect("it is connected");
    let of_supplier = channel.supplier_of(supplier.id()).expect("it is connected");
    supplier.push(&mut time, &event(1)).expect("pushed");
    of_consumer.suspend().expect("active");
    assert_eq!(consumer.suspend(), Err(NotNow::AlreadySuspended));
    time.run();
    assert!(had.take().is_empty());
    of_consumer.resume(&mut time).expect("suspended");
    time.run();
    assert_eq!(had.take(), [1]);
    of_consumer
        .filters()
        .add(Filter::of(&types("Other"), |_: &talea_notification::Event| Ok(true)))
        .expect("no limit");
    of_supplier
        .filters()
        .add(Filter::of(&types("Test/Tick"), |_: &talea_notification::Event| Ok(true)))
        .expect("no limit");
    supplier.push(&mut time, &event(2)).expect("pushed");
    assert_eq!(
        (of_consumer.statistics().filtered, of_supplier.filtered(), of_supplier.pushed()),
        (1, (0, 0), 2)
    );
    // Both sides go, one by its handle and one by being dropped.
    assert!(of_supplier.disconnect() && !of_supplier.disconnect());
    assert_eq!(supplier.push(&mut time, &event(3)), Err(PushError::NotConnected));
    drop(consumer);
    assert_eq!((of_consumer.connection(), of_consumer.admin()), (Connection::Closed, None));
    assert_eq!((of_supplier.is_connected(), of_supplier.admin()), (false, None));
    assert!(!of_consumer.disconnect() && of_consumer.resume(&mut time) == Err(NotNow::NotConnected));
    assert!(of_consumer.subscription_change(types("Test/b"), []).is_empty());
    assert!(of_consumer.subscriptions().is_empty() && of_supplier.offered_types().is_empty());
    assert!(of_consumer.partners().is_empty() && of_supplier.partners().is_empty());
    assert_eq!(of_consumer.statistics().delivered, 1, "the counts stay");
    assert!(
        channel.consumer_of(of_consumer.id()).is_none() && channel.supplier_of(of_supplier.id()).is_none()
    );
    drop(supplier);
    assert_eq!(channel.statistics(talea_time::Instant::ZERO).pushed, 2);
}

/// Who is not connected any more is told of nothing, and what it would have been told by is not kept.
#[test]
fn who_is_gone_keeps_no_listener() {
    let (_time, channel) = channel(QosSettings::new());
    let (consumer, _) = connected(channel.consumer("c"));
    let supplier = channel.supplier("s").connect().expect("connected");
    let of_consumer = channel.consumer_of(consumer.id()).expect("it is connected");
    let of_supplier = channel.supplier_of(supplier.id()).expect("it is connected");
    let kept = Arc::new(AtomicUsize::new(0));
    let counting = || {
        let own = Arc::clone(&kept);
        move || _ = own.fetch_add(1, Ordering::Relaxed)
    };
    let listen = || {
        let [a, b, c, d] = [counting(), counting(), counting(), counting()];
        of_consumer.on_offer_change(move |_| a());
        of_consumer.on_partners(move |_| b());
        of_supplier.on_subscription_change(move |_| c());
        of_supplier.on_partners(move |_| d());
    };
    listen();
    listen();
    assert_eq!(Arc::strong_count(&kept), 5, "a later one takes the place of the one before");
    assert!(of_consumer.disconnect());
    drop(supplier);
    assert_eq!(Arc::strong_count(&kept), 1);
    listen();
    _ = of_consumer.obtain_offered_types(ObtainInfoMode::NoneNowUpdatesOff);
    assert_eq!(Arc::strong_count(&kept), 1);
    drop(consumer);
    assert_eq!(Arc::strong_count(&kept), 1);
}

/// A consumer that disconnects itself and its supplier by handles, in the midst of a delivery.
#[test]
fn a_call_back_may_disconnect_by_handles() {
    let (mut time, channel) = channel(QosSettings::new());
    let (own, had) = (channel.clone(), Had::default());
    let seen = had.clone();
    let consumer = channel.consumer("c").connect(move |delivery| {
        seen.add(delivery);
        let mut consumers = own.consumers().into_iter().filter_map(|(id, _)| own.consumer_of(id));
        let mut suppliers = own.suppliers().into_iter().filter_map(|(id, _)| own.supplier_of(id));
        assert!(consumers.all(|one| one.disconnect()) && suppliers.all(|one| one.disconnect()));
        talea_notification::Outcome::Ok
    });
    let consumer = consumer.expect("connected");
    let mut supplier = channel.supplier("s").connect().expect("connected");
    for number in 1..=2 {
        supplier.push(&mut time, &event(number)).expect("pushed");
    }
    time.run();
    assert_eq!((had.take(), consumer.connection()), (vec![1], Connection::Closed));
    assert_eq!(supplier.push(&mut time, &event(3)), Err(PushError::NotConnected));
}
