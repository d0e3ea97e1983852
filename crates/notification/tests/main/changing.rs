//! Subscriptions and offers of whole admins, and who is told of them.

use crate::{channel, connected, event_of, types};
use std::sync::{Arc, Mutex};
use std::thread;
use talea_notification::qos::QosSettings;
use talea_notification::{
    AdminProperties, Changed, Condition, Connection, EventChannelFactory, EventType, GroupOperator,
    ObtainInfoMode, PushError,
};

fn event_type(name: &str) -> EventType {
    EventType::new("Test", name)
}

fn event_types(names: &[&str]) -> Vec<EventType> {
    names.iter().map(|name| event_type(name)).collect()
}

fn changed(gained: &[&str], lost: &[&str]) -> Changed {
    Changed { gained: event_types(gained), lost: event_types(lost) }
}

/// What somebody was told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Changed>>>);

impl Told {
    fn tell(&self) -> impl Fn(&Changed) + Send + Sync + 'static {
        let own = Arc::clone(&self.0);
        move |changed| {
            // The order of types that change at once is nobody's promise.
            let mut changed = changed.clone();
            changed.gained.sort_by(|one, other| one.name().cmp(other.name()));
            changed.lost.sort_by(|one, other| one.name().cmp(other.name()));
            own.lock().expect("whole").push(changed);
        }
    }

    fn take(&self) -> Vec<Changed> {
        std::mem::take(&mut *self.0.lock().expect("whole"))
    }
}

#[test]
fn an_admin_subscribes_for_all_of_its_consumers() {
    let (mut time, channel) = channel(QosSettings::new());
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let mut supplier =
        channel.supplier("s").offer(event_types(&["a", "b", "c"])).connect().expect("connected");
    let told = Told::default();
    supplier.on_subscription_change(told.tell());
    let (one, of_one) = connected(admin.consumer("one"));
    let (two, of_two) = connected(admin.consumer("two").subscribe(types("Test/a")));
    let (_outside, outside) = connected(channel.consumer("outside").subscribe(types("Test/c")));
    assert_eq!(told.take(), [changed(&["a", "b", "c"], &[])]);
    assert_eq!(admin.subscriptions(), types("*"));
    // Specific types take the place of all, of the admin and of who had all; nobody else's change.
    assert_eq!(admin.subscription_change(types("Test/b"), []), Changed::default(), "each has somebody still");
    assert_eq!((one.subscriptions(), two.subscriptions()), (types("Test/b"), types("Test/a Test/b")));
    let (_three, of_three) = connected(admin.consumer("three"));
    let (_own, of_own) = connected(admin.consumer("own").subscribe(types("Test/c")));
    let mut push = || {
        for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
            supplier.push(&mut time, &event_of(name, number as u64)).expect("pushed");
        }
        time.run();
        [&of_one, &of_two, &of_three, &of_own, &outside].map(|had| had.take())
    };
    assert_eq!(push(), [vec![1], vec![0, 1], vec![1], vec![2], vec![2]]);
    // All types take the place of everything else, and are not removed.
    admin.subscription_change(types("*"), types("Test/b"));
    admin.subscription_change([], types("*"));
    let all = vec![0, 1, 2];
    assert_eq!(push(), [all.clone(), all.clone(), all.clone(), all, vec![2]]);
    admin.subscription_change(types("Test/a Test/b"), types("Test/b"));
    let a = vec![0];
    assert_eq!(push(), [a.clone(), a.clone(), a.clone(), a, vec![2]]);
    assert!(admin.destroy());
    assert!(admin.subscription_change(types("Test/c"), []).is_empty());
    assert_eq!(admin.subscriptions(), types("Test/a"));
}

/// What all consumers of an admin together gain and lose, suppliers and their admin are told once, and of what goes from one consumer to another not at all.
#[test]
fn the_other_side_is_told_once_of_what_all_come_to() {
    let (_time, channel) = channel(QosSettings::new());
    let consumers = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let suppliers = channel.new_supplier_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let supplier = suppliers.supplier("s").offer(event_types(&["a", "b"])).connect().expect("connected");
    let _second = suppliers.supplier("t").offer(event_types(&["a", "b"])).connect().expect("connected");
    let (of_supplier, of_admin, of_default) = (Told::default(), Told::default(), Told::default());
    supplier.on_subscription_change(of_supplier.tell());
    suppliers.on_subscription_change(of_admin.tell());
    channel.supplier_admin().on_subscription_change(of_default.tell());
    let take = || [of_supplier.take(), of_admin.take(), of_default.take()];
    let told = |changed: &Changed| [vec![changed.clone()], vec![changed.clone()], vec![changed.clone()]];
    let (one, _) = connected(consumers.consumer("one").subscribe(types("Test/a")));
    let (two, _) = connected(consumers.consumer("two").subscribe(types("Test/a")));
    assert_eq!(take(), told(&changed(&["a"], &[])));
    consumers.subscription_change(types("Test/b"), types("Test/a"));
    assert_eq!(take(), told(&changed(&["b"], &["a"])));
    // One has all types, of which it loses a, and the other gains it: nothing has changed for anybody else.
    one.subscription_change(types("*"), []);
    assert_eq!(take(), told(&changed(&["a"], &[])));
    assert_eq!(two.subscriptions(), types("Test/b"));
    assert!(consumers.subscription_change(types("Test/a"), types("Test/b")).lost == event_types(&["b"]));
    assert_eq!(take(), told(&changed(&[], &["b"])));
    assert!(consumers.destroy());
    assert_eq!(take(), told(&changed(&[], &["a"])));
    // And the other way.
    let admin = channel.consumer_admin();
    let (of_consumers, of_proxy) = (Told::default(), Told::default());
    admin.on_offer_change(of_consumers.tell());
    let (proxy, _) = connected(admin.consumer("proxy"));
    proxy.on_offer_change(of_proxy.tell());
    let both = |changed: Changed| [vec![changed.clone()], vec![changed]];
    let take = || [of_consumers.take(), of_proxy.take()];
    assert_eq!(suppliers.offer_change(event_types(&["c"]), event_types(&["a"])), Ok(changed(&["c"], &["a"])));
    assert_eq!(take(), both(changed(&["c"], &["a"])));
    assert_eq!(suppliers.offered_types(), event_types(&["c"]));
    let _late = suppliers.supplier("late").connect().expect("connected");
    let _own = suppliers.supplier("own").offer(event_types(&["d"])).connect().expect("connected");
    assert_eq!(take(), both(changed(&["d"], &[])), "the late one offers what the others do");
    drop(supplier);
    assert_eq!(take(), [vec![], vec![]]);
    assert!(suppliers.destroy());
    // One after the other they go, and with the last one of a type that.
    let last = take();
    assert_eq!(last[0], last[1]);
    let lost: usize = last[0].iter().map(|changed| changed.lost.len()).sum();
    assert_eq!((lost, suppliers.offer_change(event_types(&["e"]), [])), (3, Ok(Changed::default())));
}

#[test]
fn an_admin_obtains_types_by_the_four_modes() {
    let (_time, channel) = channel(QosSettings::new());
    let consumers = channel.consumer_admin();
    let suppliers = channel.supplier_admin();
    let mut supplier = suppliers.supplier("s").offer(event_types(&["a"])).connect().expect("connected");
    let (consumer, _) = connected(consumers.consumer("c").subscribe(types("Test/a")));
    let (of_offers, of_subscriptions) = (Told::default(), Told::default());
    consumers.on_offer_change(of_offers.tell());
    suppliers.on_subscription_change(of_subscriptions.tell());
    let modes = [
        (ObtainInfoMode::AllNowUpdatesOff, true, false),
        (ObtainInfoMode::AllNowUpdatesOn, true, true),
        (ObtainInfoMode::NoneNowUpdatesOff, false, false),
        (ObtainInfoMode::NoneNowUpdatesOn, false, true),
    ];
    // The default admins have one number, and what one wants is not what the other wants.
    for (of_consumers, all_offers, is_told_of_offers) in modes {
        for (of_suppliers, all_subscriptions, is_told_of_subscriptions) in modes {
            let a = event_types(&["a"]);
            let obtained = consumers.obtain_offered_types(of_consumers);
            assert_eq!(obtained, if all_offers { a.clone() } else { vec![] }, "{of_consumers:?}");
            let obtained = suppliers.obtain_subscription_types(of_suppliers);
            assert_eq!(obtained, if all_subscriptions { a } else { vec![] }, "{of_suppliers:?}");
            supplier.offer_change(event_types(&["b"]), []).expect("no limit");
            consumer.subscription_change(types("Test/b"), []);
            supplier.offer_change([], event_types(&["b"])).expect("no limit");
            consumer.subscription_change([], types("Test/b"));
            let told = |is_told: bool| if is_told { 2 } else { 0 };
            assert_eq!(of_offers.take().len(), told(is_told_of_offers), "{of_consumers:?} {of_suppliers:?}");
            let counted = of_subscriptions.take().len();
            assert_eq!(counted, told(is_told_of_subscriptions), "{of_consumers:?} {of_suppliers:?}");
        }
    }
}

#[test]
fn limits_of_types_hold_for_all_suppliers_of_an_admin_or_for_none() {
    let (mut time, channel) = channel(QosSettings::new());
    let limits = AdminProperties { max_types_per_supplier: 2, ..AdminProperties::default() };
    channel.set_admin_properties(limits);
    let admin = channel.supplier_admin();
    let mut one = admin.supplier("one").offer(event_types(&["a"])).connect().expect("connected");
    let two = admin.supplier("two").offer(event_types(&["b", "c"])).connect().expect("connected");
    let refused = admin.offer_change(event_types(&["d"]), []).unwrap_err();
    assert_eq!((refused.property(), refused.wanted_and_most()), ("max_types_per_supplier", (3, 2)));
    assert_eq!((one.offered_types(), admin.offered_types()), (event_types(&["a"]), vec![]));
    drop(two);
    admin.offer_change(event_types(&["d"]), []).expect("there is room");
    // What the admin has offered for it, it may push, and nothing beyond.
    assert!(one.push(&mut time, &event_of("d", 1)).is_ok() && one.push(&mut time, &event_of("a", 1)).is_ok());
    assert!(matches!(one.push(&mut time, &event_of("e", 1)), Err(PushError::Limit(_))));
    admin.offer_change(event_types(&["e"]), event_types(&["a"])).expect("one for another");
    assert!(one.push(&mut time, &event_of("e", 1)).is_ok(), "it is offered");
    let refused = admin.offer_change(event_types(&["f"]), []).unwrap_err();
    assert_eq!(refused.wanted_and_most(), (3, 2), "the admin itself has two");
    assert_eq!(admin.offered_types(), event_types(&["d", "e"]));
}

/// What is kept of a type comes to each consumer of the admin that had not subscribed to it.
#[test]
fn what_is_retained_comes_to_who_is_subscribed_by_its_admin() {
    let (mut time, channel) = channel(QosSettings::new());
    let admin = channel.consumer_admin();
    let (_one, of_one) = connected(admin.consumer("one").subscribe(types("Test/state")));
    let (_two, of_two) = connected(admin.consumer("two").subscribe(types("Test/other")));
    let supplier = channel.supplier("s").offer_retained([event_type("state")], 2).connect();
    let mut supplier = supplier.expect("connected");
    supplier.push(&mut time, &event_of("state", 1)).expect("pushed");
    time.run();
    assert_eq!((of_one.take(), of_two.take()), (vec![1], vec![]));
    admin.subscription_change(types("Test/state"), []);
    time.pass(crate::MS(1));
    assert_eq!((of_one.take(), of_two.take()), (vec![], vec![1]));
}

/// A consumer that says what it waits for by its condition alone has that, and one that waits for time nothing.
#[test]
fn a_condition_says_what_is_subscribed_to_before_the_admin() {
    let (_time, channel) = channel(QosSettings::new());
    let admin = channel.consumer_admin();
    admin.subscription_change(types("Test/a"), []);
    let of =
        |condition| admin.consumer("c").when(condition).connect_pull().expect("connected").subscriptions();
    assert_eq!(of(Condition::of_types(types("Test/b"))), types("Test/b"));
    assert_eq!(of(Condition::every(crate::MS(5))), []);
    assert_eq!(of(Condition::from_source(3)), types("Test/a"));
}

/// Whose listener panics is disconnected, and nobody else: who changes something goes on, and the others are told.
#[test]
fn a_listener_that_panics_takes_only_its_owner_with_it() {
    let (mut time, channel) = channel(QosSettings::new());
    let mut failing = channel.supplier("failing").offer(event_types(&["a"])).connect().expect("connected");
    let mut good = channel.supplier("good").offer(event_types(&["a"])).connect().expect("connected");
    let (told, of_admin) = (Told::default(), Told::default());
    failing.on_subscription_change(|_| panic!("this supplier fails"));
    good.on_subscription_change(told.tell());
    let admin = channel.supplier_admin();
    admin.on_subscription_change(|_| panic!("this admin's listener fails"));
    let (first, had) = connected(channel.consumer("first").subscribe(types("Test/a")));
    assert_eq!(told.take(), [changed(&["a"], &[])]);
    assert_eq!((failing.is_connected(), good.is_connected()), (false, true));
    assert_eq!(failing.push(&mut time, &event_of("a", 1)), Err(PushError::NotConnected));
    good.push(&mut time, &event_of("a", 2)).expect("pushed");
    time.run();
    assert_eq!(had.take(), [2]);
    drop(first);
    assert_eq!(told.take(), [changed(&[], &["a"])], "the admin that failed is there, and told of nothing");
    admin.on_subscription_change(of_admin.tell());
    let (one, _) = connected(channel.consumer("one"));
    assert_eq!(of_admin.take().len(), 1, "by another listener it is");
    // Consumers by their offers and partners.
    one.on_offer_change(|_| panic!("this consumer fails"));
    let (two, _) = connected(channel.consumer("two"));
    let (three, _) = connected(channel.consumer("three"));
    two.on_partners(|_| panic!("this consumer fails"));
    assert_eq!(two.connection(), Connection::Closed, "it is told at once of who is there");
    let last = channel.supplier("last").offer(event_types(&["z"])).connect().expect("connected");
    assert_eq!((one.connection(), three.connection()), (Connection::Closed, Connection::Active));
    assert!(last.is_connected() && channel.consumers().len() == 1);
}

/// What a listener keeps may be a proxy of the same channel, whose end is told of, too.
#[test]
fn a_listener_may_keep_proxies_of_its_channel() {
    let (_time, channel) = channel(QosSettings::new());
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    for _ in 0..2 {
        let kept = channel.supplier("kept").offer(event_types(&["a"])).connect().expect("connected");
        let (other, _) = connected(channel.consumer("kept"));
        // `Supplier` is no more shared than a thread's own.
        let kept = Mutex::new((kept, other));
        admin.on_offer_change(move |_| drop(kept.lock().expect("whole")));
    }
    assert_eq!((channel.suppliers().len(), channel.consumers().len()), (1, 1), "the one before is dropped");
    assert!(admin.destroy());
    assert_eq!((channel.suppliers().len(), channel.consumers().len()), (0, 0));
    admin.on_offer_change(|_| unreachable!("it is destroyed"));
    let _other = channel.supplier("other").offer(event_types(&["b"])).connect().expect("connected");
}

/// Admins change what is subscribed to and offered while others push, connect and go. In the end everybody knows the same.
#[test]
fn admins_change_types_while_events_are_pushed() {
    const TIMES: usize = 150;
    let factory = EventChannelFactory::new();
    let channel = factory.create("c", &QosSettings::new(), AdminProperties::default()).expect("sound");
    let names = ["a", "b", "c"];
    let net: Arc<Mutex<[i64; 3]>> = Arc::default();
    let own = Arc::clone(&net);
    channel.consumer_admin().on_offer_change(move |changed| {
        let mut net = own.lock().expect("whole");
        let place = |one: &EventType| names.iter().position(|name| *name == one.name()).expect("one of them");
        changed.gained.iter().for_each(|one| net[place(one)] += 1);
        changed.lost.iter().for_each(|one| net[place(one)] -= 1);
    });
    let pulled = channel.consumer("pulled").connect_pull().expect("connected");
    let mut pushed = 0;
    thread::scope(|scope| {
        let changing = |first: usize| {
            let (suppliers, consumers) = (channel.supplier_admin(), channel.consumer_admin());
            move || {
                for time in 0..TIMES {
                    let (added, removed) = (names[(first + time) % 3], names[(first + 2 * time + 1) % 3]);
                    suppliers.offer_change(event_types(&[added]), event_types(&[removed])).expect("no limit");
                    let type_of = |name: &str| types(&format!("Test/{name}"));
                    consumers.subscription_change(type_of(added), type_of(removed));
                }
            }
        };
        let threads = [scope.spawn(changing(0)), scope.spawn(changing(1))];
        let mut supplier = channel.supplier("s").connect().expect("connected");
        while threads.iter().any(|thread| !thread.is_finished()) {
            for name in names {
                let post = crate::allocation::Nothing(talea_time::Instant::ZERO);
                pushed += supplier.push(post, &event_of(name, 0)).expect("pushed").subscribed;
            }
            let late = channel.supplier("late").connect().expect("connected");
            _ = late.partners();
        }
    });
    let counted = pulled.statistics();
    assert_eq!(counted.settled() + pulled.queued() as u64, pushed as u64);
    let admin = channel.consumer_admin();
    admin.subscription_change(types("*"), []);
    assert_eq!(pulled.subscriptions(), types("*"));
    // The only supplier is gone, and each type that was gained has been lost.
    assert!(channel.offered_types().is_empty(), "{:?}", channel.offered_types());
    assert_eq!(*net.lock().expect("whole"), [0; 3]);
}
