//! Who is told of whom, and what strangers may ask of a channel.

use crate::{Number, channel, connected, event_of, types};
use std::sync::{Arc, Mutex};
use talea_notification::qos::QosSettings;
use talea_notification::{
    AdminProperties, Changed, ConnectError, Content, Event, EventType, Filter, GroupOperator, Header,
    ObtainInfoMode, PartnersChanged, PushError,
};

/// A text, which has bytes of its own on the heap.
struct Text(String);

impl Content for Text {
    fn bytes(&self) -> usize {
        self.0.len()
    }
}

fn event_type(name: &str) -> EventType {
    EventType::new("Test", name)
}

/// What somebody was told.
fn teller<T: Clone + Send + 'static>() -> (Arc<Mutex<Vec<T>>>, impl Fn(&T) + Send + Sync + 'static) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&told);
    (told, move |news: &T| own.lock().expect("whole").push(news.clone()))
}

fn taken<T>(told: &Arc<Mutex<Vec<T>>>) -> Vec<T> {
    std::mem::take(&mut *told.lock().expect("whole"))
}

/// Numbers of those that matched, that do not fit, and that are gone.
fn numbers(told: &Arc<Mutex<Vec<PartnersChanged>>>) -> Vec<[Vec<u32>; 3]> {
    let of = |partners: &[talea_notification::Partner]| partners.iter().map(|one| one.number).collect();
    taken(told).iter().map(|one| [of(&one.matched), of(&one.incompatible), of(&one.gone)]).collect()
}

#[test]
fn partners_come_change_and_go_and_each_side_is_told() {
    let (_time, channel) = channel(QosSettings::new());
    let mut supplier = channel.supplier("s").offer([event_type("a")]).connect().expect("connected");
    let (one, _) = connected(channel.consumer("one").subscribe(types("Test/*")));
    let (of_supplier, tell) = teller();
    supplier.on_partners(tell);
    assert_eq!(numbers(&of_supplier), [[vec![one.id()], vec![], vec![]]], "who is there is told at once");
    let (of_one, tell) = teller();
    one.on_partners(tell);
    assert_eq!(numbers(&of_one), [[vec![supplier.id()], vec![], vec![]]]);

    // Nothing in common, and then something.
    let (two, _) = connected(channel.consumer("two").subscribe(types("Test/b")));
    assert!(numbers(&of_supplier).is_empty());
    supplier.offer_change([event_type("b")], []).expect("no limit");
    assert_eq!(
        numbers(&of_supplier),
        [[vec![one.id(), two.id()], vec![], vec![]]],
        "one has b in common, too"
    );
    assert_eq!(numbers(&of_one), [[vec![supplier.id()], vec![], vec![]]]);
    let partners = supplier.partners();
    let of_two = partners.iter().find(|partner| partner.number == two.id()).expect("a partner");
    assert_eq!((of_two.name.as_str(), &of_two.types), ("two", &vec![event_type("b")]));
    two.subscription_change(types("Test/c"), types("Test/b"));
    assert_eq!(numbers(&of_supplier), [[vec![], vec![], vec![two.id()]]]);
    drop((one, two));
    assert_eq!(numbers(&of_supplier).len(), 1, "of one alone");
    assert!(supplier.partners().is_empty());
}

#[test]
fn partners_whose_events_carry_something_else_are_named_and_their_events_counted() {
    let (mut time, channel) = channel(QosSettings::new());
    let builder = channel.supplier("s").offer([event_type("a")]).content::<Text>();
    let mut supplier = builder.connect().expect("connected");
    let (of_supplier, tell) = teller();
    supplier.on_partners(tell);
    let (numeric, had) = connected(channel.consumer("numeric").content::<Number>());
    let (any, of_any) = connected(channel.consumer("any").content::<Number>().subscribe(types("Test/z")));
    let told = numbers(&of_supplier);
    assert_eq!(told, [[vec![], vec![numeric.id()], vec![]]]);
    let mismatch = numeric.partners()[0].mismatch.expect("it carries something else");
    assert!(mismatch.0.ends_with("Text") && mismatch.1.ends_with("Number"), "{mismatch:?}");
    assert!(any.partners().is_empty());

    let text = Event::new(Header::new(event_type("a")), Text("seven".into()));
    supplier.push(&mut time, &text).expect("pushed");
    supplier.push(&mut time, &event_of("a", 7)).expect("what it carries all the same is for who takes it");
    time.run();
    let counted = numeric.statistics();
    assert_eq!((had.take(), counted.incompatible, counted.delivered, counted.settled()), (vec![7], 1, 1, 2));
    assert!(of_any.take().is_empty());
}

#[test]
fn who_obtains_types_is_told_of_changes_only_if_it_wants() {
    let (_time, channel) = channel(QosSettings::new());
    let supplier = channel.supplier("s").offer([event_type("a")]).connect().expect("connected");
    let (told, tell) = teller::<Changed>();
    supplier.on_subscription_change(tell);
    let (one, _) = connected(channel.consumer("one").subscribe(types("Test/a")));
    assert_eq!(taken(&told).len(), 1, "as it is for who has never asked");
    let all = |mode| supplier.obtain_subscription_types(mode);
    assert_eq!(all(ObtainInfoMode::AllNowUpdatesOff), [event_type("a")]);
    one.subscription_change(types("Test/b"), []);
    drop(one);
    assert!(taken(&told).is_empty());
    assert!(all(ObtainInfoMode::NoneNowUpdatesOff).is_empty());
    assert!(all(ObtainInfoMode::NoneNowUpdatesOn).is_empty());
    let (two, _) = connected(channel.consumer("two").subscribe(types("Test/a")));
    assert_eq!(taken(&told).len(), 1);
    assert_eq!(two.obtain_offered_types(ObtainInfoMode::AllNowUpdatesOn), [event_type("a")]);
    // Partners are told of whatever the mode is.
    let (of_supplier, tell) = teller();
    supplier.on_partners(tell);
    assert_eq!(all(ObtainInfoMode::AllNowUpdatesOff), [event_type("a")]);
    drop(two);
    assert_eq!((taken(&told).len(), numbers(&of_supplier).len()), (0, 2));
}

#[test]
fn each_limit_has_its_own_error_and_changes_nothing() {
    let (mut time, channel) = channel(QosSettings::new());
    let limits = AdminProperties {
        max_types_per_supplier: 2,
        max_filters: 1,
        max_constraints: 2,
        max_event_bytes: 8,
        ..Default::default()
    };
    channel.set_admin_properties(limits);
    assert_eq!(channel.admin_properties(), limits);
    let filter = |constraints: usize| {
        let mut filter = Filter::new();
        for _ in 0..constraints {
            filter.add_types(&types("Test"));
        }
        filter
    };
    let property = |error: ConnectError| match error {
        ConnectError::Limit(limit) => limit.property(),
        other => panic!("{other}"),
    };
    let builder = || channel.consumer("c");
    let twice = builder().filter(filter(1)).filter(filter(1)).connect_pull().unwrap_err();
    assert_eq!(property(twice), "max_filters");
    assert_eq!(property(builder().filter(filter(3)).connect_pull().unwrap_err()), "max_constraints");
    let consumer = builder().filter(filter(2)).connect_pull().expect("connected");
    let error = consumer.filters().set([filter(3)]).unwrap_err();
    let expected = "3 constraints of one filter are more than the 2 that the channel allows \
                    (AdminProperties::max_constraints)";
    assert_eq!(error.to_string(), expected);
    let admin = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    admin.filters().add(filter(1)).expect("there is room");
    assert_eq!(admin.filters().add(filter(1)).unwrap_err().wanted_and_most(), (2, 1));

    let offers =
        |names: &[&str]| channel.supplier("s").offer(names.iter().map(|name| event_type(name))).connect();
    assert_eq!(property(offers(&["a", "b", "c"]).unwrap_err()), "max_types_per_supplier");
    let mut supplier = offers(&["a", "a", "b"]).expect("twice the same is one");
    assert!(supplier.offer_change([event_type("c")], []).is_err());
    assert_eq!(channel.offered_types().len(), 2);
    supplier.offer_change([event_type("c")], [event_type("b")]).expect("one for another");
    supplier.offer_change([event_type("b")], [event_type("c")]).expect("and back");
    let text = |text: &str| Event::new(Header::new(event_type("a")), Text(text.into()));
    assert!(supplier.push(&mut time, &text("12345678")).is_ok());
    let refused = supplier.push(&mut time, &text("123456789"));
    assert!(
        matches!(refused, Err(PushError::Limit(limit)) if limit.wanted_and_most() == (9, 8)),
        "{refused:?}"
    );
    assert!(supplier.push(&mut time, &event_of("b", 1)).is_ok(), "eight bytes");
    let unoffered = supplier.push(&mut time, &event_of("d", 1));
    assert!(
        matches!(unoffered, Err(PushError::Limit(limit)) if limit.property() == "max_types_per_supplier")
    );
    assert_eq!(consumer.queued(), 2);
}
