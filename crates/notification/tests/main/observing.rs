//! Who observes a channel: what is subscribed to and offered there, put together, as gateways to other channels need
//! it.

use crate::virtual_time::{VirtualTime, number};
use crate::{Number, channel, connected, event_of, event_with, types};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use talea_notification::qos::QosSettings;
use talea_notification::{
    Collect, Condition, ConnectedConsumer, EventChannel, EventChannelFactory, EventType, Filter,
    GroupOperator, Observed, Observer, Outcome, PullConsumer, TypePattern,
};
use talea_time::Instant;

fn event_types(names: &[&str]) -> Vec<EventType> {
    names.iter().map(|name| EventType::new("Test", name)).collect()
}

/// What an observer was told.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Observed>>>);

impl Told {
    fn observe(channel: &EventChannel) -> (Observer, Told) {
        let told = Told::default();
        let own = told.clone();
        let observer =
            channel.observe_in_place(move |observed| own.0.lock().expect("whole").push(observed.clone()));
        (observer, told)
    }

    fn take(&self) -> Vec<Observed> {
        std::mem::take(&mut *self.0.lock().expect("whole"))
    }

    /// The types and sources of each.
    fn subscribed(&self) -> Vec<Vec<String>> {
        self.take().iter().map(said).collect()
    }

    fn offered(&self) -> Vec<Vec<EventType>> {
        self.take().into_iter().map(|observed| observed.offered).collect()
    }
}

/// Types, with a source or a mask if not all sources are meant, and how many filters there are.
fn said(observed: &Observed) -> Vec<String> {
    let one = |interest: &talea_notification::Interest| {
        let sources = match interest.sources.only() {
            Some(source) => format!(" from {source}"),
            None if interest.sources.mask() == 0 => String::new(),
            None => format!(" from {:x}&{:x}", interest.sources.value(), interest.sources.mask()),
        };
        let filters = match interest.filters.len() {
            0 => String::new(),
            filters => format!(" by {filters}"),
        };
        format!("{}{sources}{filters}", interest.types)
    };
    observed.subscribed.iter().map(one).collect()
}

fn pulled(channel: &EventChannel, patterns: &str) -> PullConsumer {
    channel.consumer("c").subscribe(types(patterns)).connect_pull().expect("connected")
}

const NOTHING: [&[&str]; 1] = [&[]];

#[test]
fn what_all_have_subscribed_to_is_told_once_whenever_it_is_something_else() {
    let (_time, channel) = channel(QosSettings::new());
    let (_observer, told) = Told::observe(&channel);
    assert_eq!(told.subscribed(), NOTHING, "also that there is nothing");
    let narrow = pulled(&channel, "Test/a Test/b");
    assert_eq!(told.subscribed(), [["Test/a", "Test/b"]]);
    let same = pulled(&channel, "Test/b");
    assert_eq!(told.subscribed().len(), 0, "somebody has that already");
    let wide = pulled(&channel, "Test/*");
    assert_eq!(told.subscribed(), [["Test/*"]]);
    // Of what is covered nothing is told until that is gone which covers it.
    narrow.subscription_change(types("Other/c Test/c"), types("Test/b"));
    assert_eq!(told.subscribed(), [["Other/c", "Test/*"]]);
    drop(wide);
    assert_eq!(told.subscribed(), [["Other/c", "Test/a", "Test/b", "Test/c"]]);
    // Who comes late is told what there is.
    let (late, of_late) = Told::observe(&channel);
    assert_eq!(of_late.subscribed(), [["Other/c", "Test/a", "Test/b", "Test/c"]]);
    drop((narrow, same));
    let last = [strings(vec!["Test/b"]), vec![]];
    assert_eq!((told.subscribed(), of_late.subscribed()), (last.to_vec(), last.to_vec()));
    drop(late);
    let _one = pulled(&channel, "Test/a");
    assert_eq!((told.take().len(), of_late.take().len()), (1, 0), "who is dropped is told of nothing");
}

fn strings(all: Vec<&str>) -> Vec<String> {
    all.into_iter().map(String::from).collect()
}

#[test]
fn what_all_offer_is_told_once_whenever_it_is_something_else() {
    let (mut time, channel) = channel(QosSettings::new());
    let (_observer, told) = Told::observe(&channel);
    assert_eq!(told.offered(), [[]]);
    let mut one = channel.supplier("one").offer(event_types(&["b", "a"])).connect().expect("connected");
    let two = channel.supplier("two").offer(event_types(&["b"])).connect().expect("connected");
    assert_eq!(told.offered(), [event_types(&["a", "b"])]);
    one.offer_change(event_types(&["c", "b"]), event_types(&["b", "a"])).expect("no limit");
    assert_eq!(told.offered(), [event_types(&["b", "c"])], "one change, of the two that b is in nobody's");
    // What nobody has offered may be pushed, and is told to nobody.
    one.push(&mut time, &event_of("d", 1)).expect("pushed");
    assert!(told.take().is_empty());
    assert!(channel.remove_supplier(one.id()));
    drop(one);
    assert_eq!(told.offered(), [event_types(&["b"])]);
    drop(two);
    assert_eq!(told.offered(), [[]]);
}

/// What a gateway does in one channel because of another one is nobody's interest.
#[test]
fn what_gateways_say_is_left_out() {
    let (_time, channel) = channel(QosSettings::new());
    let (_observer, told) = Told::observe(&channel);
    told.take();
    let gateway = channel.consumer("g").subscribe(types("*")).gateway().connect_pull().expect("connected");
    let from_beyond =
        channel.supplier("g").offer(event_types(&["a"])).gateway().connect().expect("connected");
    gateway.subscription_change(types("Test/b"), []);
    assert!(told.take().is_empty());
    assert_eq!((channel.subscribed_types().len(), channel.offered_types().len()), (0, 1), "they are there");
    let _own = pulled(&channel, "Test/a");
    assert_eq!(told.subscribed(), [["Test/a"]]);
    drop((gateway, from_beyond));
    assert!(told.take().is_empty());
}

#[test]
fn conditions_say_sources_and_types_as_far_as_they_do() {
    let (_time, channel) = channel(QosSettings::new());
    let of = |patterns: &str, condition: Condition| {
        let builder = channel.consumer("c").subscribe(types(patterns)).when(condition);
        let consumer = builder.connect_pull().expect("connected");
        let (observer, told) = Told::observe(&channel);
        let said = told.subscribed().remove(0);
        drop((consumer, observer));
        said
    };
    let of_types = |patterns: &str| Condition::of_types(types(patterns));
    let even = || Condition::matching(Filter::of(&[], |_: &talea_notification::Event| Ok(true)));
    assert_eq!(of("", Condition::from_source(3)), ["*/* from 3"]);
    assert_eq!(of("Test/a", Condition::from_source(3)), ["Test/a from 3"]);
    assert_eq!(of("Test/*", Condition::masked(0xf0, 0x30)), ["Test/* from 30&f0"]);
    assert!(of("Test/*", Condition::masked(0xf0, 0x31)).is_empty(), "no source is that");
    // Of what is subscribed to only what the condition is about, and the other way round.
    assert_eq!(of("Test/*", of_types("Test/a Other/b")), ["Test/a"]);
    assert_eq!(of("Test/a Test/b", of_types("Test/b* *")), ["Test/a", "Test/b"]);
    let both = Condition::all_of_one([of_types("Test/a* Other/c"), Condition::from_source(3)]);
    assert_eq!(of("Test/ab Test/b", both), ["Test/ab from 3"]);
    let never = Condition::all_of_one([Condition::from_source(1), Condition::from_source(2)]);
    assert!(of("*", never).is_empty());
    let masks = Condition::all_of_one([Condition::masked(0x0f, 0x01), Condition::masked(0xf8, 0x20)]);
    assert_eq!(of("*", masks), ["*/* from 21&ff"]);
    // What is not, says nothing; nor does time.
    assert_eq!(of("Test/*", Condition::negation(of_types("Test/a"))), ["Test/*"]);
    assert!(of("Test/*", Condition::every(crate::MS(5))).is_empty());
    let late = Condition::unless_within(crate::MS(5), of_types("Test/a"));
    assert_eq!(of("Test/*", late), ["Test/a"], "it has to come to keep the condition from coming true");
    let parts = [Condition::from_source(1), of_types("Test/b"), Condition::from_source(1), even()];
    let several = Condition::all(Collect::First, parts);
    assert_eq!(of("Test/a Test/b", several.clone()), ["Test/a by 1", "Test/a from 1", "Test/b"]);
    assert_eq!(of("", Condition::in_order([several, of_types("*")])), ["*/*"]);
}

/// Whether a filter lets through who knows what, only it can say; whose they are is known.
#[test]
fn filters_are_told_of_where_everybody_has_some() {
    let (_time, channel) = channel(QosSettings::new());
    let filter = || Filter::of(&[], |event: &talea_notification::Event| Ok(event.header().source > 5));
    let (_observer, told) = Told::observe(&channel);
    told.take();
    let one = channel
        .consumer("one")
        .subscribe(types("Test/a"))
        .filter(filter())
        .connect_pull()
        .expect("connected");
    assert_eq!(told.subscribed(), [["Test/a by 1"]]);
    let id = one.filters().add(filter()).expect("no limit");
    assert_eq!(told.subscribed(), [["Test/a by 2"]], "a filter that comes is a change as well");
    let all = pulled(&channel, "Test/a");
    assert_eq!(told.subscribed(), [["Test/a"]]);
    one.filters().remove(id);
    assert!(told.take().is_empty(), "somebody takes all of them");
    drop(all);
    assert_eq!(told.subscribed(), [["Test/a by 1"]]);
    one.filters().replace(one.filters().ids()[0], filter()).expect("no limit");
    assert_eq!(told.subscribed(), [["Test/a by 1"]], "another filter");
    drop(one);
    told.take();
    // An admin's filters are those of all who have none, and by OR beside theirs.
    for (operator, alone, with_own) in [(GroupOperator::And, 2, 1), (GroupOperator::Or, 2, 3)] {
        let admin = channel.new_consumer_admin(operator, &QosSettings::new()).expect("sound");
        admin.filters().set([filter(), filter()]).expect("no limit");
        let consumer = admin.consumer("c").subscribe(types("Test/a")).connect_pull().expect("connected");
        assert_eq!(told.subscribed(), [[format!("Test/a by {alone}")]], "{operator:?}");
        consumer.filters().add(filter()).expect("no limit");
        assert_eq!(told.subscribed(), [[format!("Test/a by {with_own}")]], "{operator:?}");
        admin.filters().clear();
        consumer.filters().clear();
        assert_eq!(told.subscribed().last(), Some(&vec![String::from("Test/a")]), "{operator:?}");
        assert!(admin.destroy());
        told.take();
    }
}

/// What goes together is one change: an admin with its members, and a channel.
#[test]
fn what_goes_together_is_told_together() {
    let (_time, channel) = channel(QosSettings::new());
    let consumers = channel.new_consumer_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let suppliers = channel.new_supplier_admin(GroupOperator::And, &QosSettings::new()).expect("sound");
    let member =
        |pattern: &str| consumers.consumer("c").subscribe(types(pattern)).connect_pull().expect("connected");
    let of_consumers = ["Test/a", "Test/b", "Test/c"].map(member);
    let of_suppliers =
        ["a", "b", "c"].map(|name| suppliers.supplier("s").offer(event_types(&[name])).connect());
    let (_observer, told) = Told::observe(&channel);
    told.take();
    consumers.subscription_change(types("Test/d"), types("Test/a"));
    assert_eq!(told.subscribed(), [["Test/b", "Test/c", "Test/d"]]);
    suppliers.offer_change(event_types(&["d"]), event_types(&["a"])).expect("no limit");
    assert_eq!(told.offered(), [event_types(&["b", "c", "d"])]);
    assert!(consumers.destroy() && suppliers.destroy());
    let last = told.take();
    let counted: Vec<_> = last.iter().map(|one| (one.subscribed.len(), one.offered.len())).collect();
    assert_eq!(counted, [(0, 3), (0, 0)]);
    drop((of_consumers, of_suppliers));

    let factory = EventChannelFactory::new();
    let channel = factory.create_with_defaults("without consumers");
    let _supplier = channel.supplier("s").offer(event_types(&["a"])).connect().expect("connected");
    let (_observer, told) = Told::observe(&channel);
    assert_eq!(told.take().len(), 1);
    assert!(factory.destroy(channel.id()));
    assert_eq!(told.take(), [Observed::default()]);
    let channel = factory.create_with_defaults("two");
    let _members = ["Test/a", "Test/b"].map(|pattern| pulled(&channel, pattern));
    let _supplier = channel.supplier("s").offer(event_types(&["a"])).connect().expect("connected");
    let (_observer, told) = Told::observe(&channel);
    told.take();
    assert!(factory.destroy(channel.id()));
    assert_eq!(told.take(), [Observed::default()]);
    let (_late, told) = Told::observe(&channel);
    assert_eq!(told.take(), [Observed::default()]);
}

/// The observer may do whatever it wants with the channel; it is not called within its own call, but after it.
#[test]
fn an_observer_connects_disconnects_and_observes_from_within_its_call() {
    let (_time, channel) = channel(QosSettings::new());
    let told = Told::default();
    let (own, inner, is_called) = (told.clone(), channel.clone(), AtomicBool::new(false));
    let (mut consumers, mut suppliers, mut late, mut calls) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let observer = channel.observe_in_place(move |observed| {
        assert!(!is_called.swap(true, Ordering::Relaxed), "one call at a time");
        own.0.lock().expect("whole").push(observed.clone());
        calls += 1;
        match calls {
            2 => {
                consumers.extend(["Test/x", "Test/y"].map(|pattern| pulled(&inner, pattern)));
                consumers[0].filters().add(Filter::of_types(&types("Test/x"))).expect("no limit");
                suppliers.push(inner.supplier("s").offer(event_types(&["x"])).connect().expect("connected"));
                late.push(Told::observe(&inner));
            }
            3 => {
                consumers.clear();
                late.clear();
            }
            _ => {}
        }
        is_called.store(false, Ordering::Relaxed);
    });
    assert_eq!(told.subscribed(), NOTHING);
    let _one = pulled(&channel, "Test/a");
    let all = told.take();
    let of_types: Vec<_> = all.iter().map(said).collect();
    let own = vec!["Test/a", "Test/x by 1", "Test/y"];
    assert_eq!(of_types, [vec!["Test/a"], own, vec!["Test/a"]], "what it does in one call is one change");
    let offered: Vec<_> = all.iter().map(|observed| observed.offered.len()).collect();
    assert_eq!(offered, [0, 1, 1]);
    // Dropping what it has, among that a supplier of the channel, deadlocks nobody.
    drop(observer);
    assert!(channel.offered_types().is_empty());
}

#[test]
fn an_observer_may_end_itself() {
    let (_time, channel) = channel(QosSettings::new());
    let own: Arc<Mutex<Option<Observer>>> = Arc::default();
    let (inner, calls) = (Arc::clone(&own), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&calls);
    let observer = channel.observe_in_place(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        drop(inner.lock().expect("whole").take());
    });
    *own.lock().expect("whole") = Some(observer);
    let _consumers = ["Test/a", "Test/b"].map(|pattern| pulled(&channel, pattern));
    assert_eq!(calls.load(Ordering::Relaxed), 2, "at first, and then once");
    assert_eq!(Arc::strong_count(&own), 1, "its code is gone");
}

#[test]
fn an_observer_that_panics_concerns_nobody_else() {
    let (mut time, channel) = channel(QosSettings::new());
    let mut calls = 0;
    let bad = channel.observe_in_place(move |_| {
        calls += 1;
        assert!(calls < 2, "it fails, as it is to");
    });
    let (good, told) = Told::observe(&channel);
    let (apart, called) = mpsc::channel();
    let bad_apart = channel.observe(move |_| {
        apart.send(()).expect("awaited");
        panic!("it fails, as it is to");
    });
    let bad_apart = bad_apart.expect("a thread");
    called.recv().expect("called");
    assert_eq!(called.recv(), Err(mpsc::RecvError), "its code is dropped");
    let (_consumer, had) = connected(channel.consumer("c").subscribe(types("Test/a")));
    let mut supplier = channel.supplier("s").offer(event_types(&["a"])).connect().expect("connected");
    supplier.push(&mut time, &event_of("a", 1)).expect("pushed");
    time.run();
    assert_eq!((had.take(), told.take().len()), (vec![1], 3));
    assert_eq!([bad.is_connected(), bad_apart.is_connected(), good.is_connected()], [false, false, true]);
}

/// While an observer does not come back, everybody else goes on, and of what has changed meanwhile it is told at once.
#[test]
fn an_observer_that_is_slow_keeps_nobody_waiting() {
    let (mut time, channel) = channel(QosSettings::new());
    let (tell, told) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let observer = channel.observe(move |observed| {
        tell.send(said(observed)).expect("awaited");
        _ = may_go_on.recv();
    });
    let observer = observer.expect("a thread");
    assert_eq!(told.recv(), Ok(vec![]));
    let (other, of_other) = Told::observe(&channel);
    let (one, had) = connected(channel.consumer("c").subscribe(types("Test/a")));
    let mut supplier = channel.supplier("s").offer(event_types(&["a"])).connect().expect("connected");
    supplier.push(&mut time, &event_of("a", 1)).expect("pushed");
    time.run();
    let passing = pulled(&channel, "Test/b");
    drop(passing);
    let _late = pulled(&channel, "Test/c");
    assert_eq!((had.take(), of_other.take().len()), (vec![1], 6));
    assert!(told.try_recv().is_err(), "it is being called still");
    go_on.send(()).expect("awaited");
    assert_eq!(told.recv(), Ok(strings(vec!["Test/a", "Test/c"])), "at once, and nothing of what has passed");
    // Who ends it does not wait for it either.
    drop((observer, one));
    drop(go_on);
    assert_eq!(told.recv(), Err(mpsc::RecvError), "it is told of nothing any more, and its code is dropped");
    drop(other);
}

/// Of many threads that change something at once one calls, one call at a time, and the last call has what there is at
/// last.
#[test]
fn whoever_changes_something_at_once_the_last_word_is_what_there_is() {
    const THREADS: usize = 3;
    const TIMES: usize = 300;
    let (_time, channel) = channel(QosSettings::new());
    let names = ["a", "b", "c"];
    let watch = |observed: Arc<Mutex<Observed>>| {
        let is_called = AtomicBool::new(false);
        move |now: &Observed| {
            assert!(!is_called.swap(true, Ordering::SeqCst), "one call at a time");
            *observed.lock().expect("whole") = now.clone();
            is_called.store(false, Ordering::SeqCst);
        }
    };
    let [in_place, apart]: [Arc<Mutex<Observed>>; 2] = Default::default();
    let observers = (
        channel.observe_in_place(watch(Arc::clone(&in_place))),
        channel.observe(watch(Arc::clone(&apart))).expect("a thread"),
    );
    let kept = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let channel = channel.clone();
                scope.spawn(move || {
                    let mut kept = None;
                    for time in 0..TIMES {
                        let name = names[(number + time) % 3];
                        let supplier = channel.supplier("s").offer(event_types(&[name])).connect();
                        let consumer = pulled(&channel, &format!("Test/{name}"));
                        consumer.subscription_change(types("Test/d"), []);
                        consumer.filters().add(Filter::of_types(&types("*"))).expect("no limit");
                        drop(Told::observe(&channel));
                        kept = Some((supplier.expect("connected"), consumer));
                    }
                    kept
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it changes something")).collect::<Vec<_>>()
    });
    assert!(observers.0.is_connected() && observers.1.is_connected());
    let (_now, told) = Told::observe(&channel);
    let now = told.take().remove(0);
    assert_eq!((now.subscribed.len(), now.offered.len()), (4, 3));
    // Who changed something last has called it, or left that to another one, who has come back by now.
    assert_eq!(*in_place.lock().expect("whole"), now);
    drop(kept);
    drop(observers);
    // The thread of the other one has ended when nobody but the test has what it writes to; what it has written then is
    // something that was there.
    while Arc::strong_count(&apart) > 1 {
        thread::yield_now();
    }
}

/// A gateway from one channel to another: it has what is wanted beyond, offers there what is offered here, and passes
/// events on.
struct Gateway {
    _observers: [Observer; 2],
    consumer: ConnectedConsumer,
}

fn gateway(from: &EventChannel, to: &EventChannel) -> Gateway {
    let supplier = Arc::new(Mutex::new(to.supplier("gateway").gateway().connect().expect("connected")));
    let own = Arc::clone(&supplier);
    let nothing_yet = Observed::default().filter();
    let builder = from.consumer("gateway").gateway().queued().filter(nothing_yet);
    let consumer = builder.connect_with_job(move |delivery, job| {
        // What has come this way before does not go back.
        let header = delivery.event().header();
        if header.fields.properties().get("hops").is_some() {
            return Outcome::Ok;
        }
        let mut header = header.clone();
        header.fields.set("hops", 1).expect("there is room");
        let event = talea_notification::Event::new(header, Number(number(delivery.event())));
        own.lock().expect("whole").push(job, &event).expect("pushed");
        Outcome::Ok
    });
    let consumer = consumer.expect("connected");
    let handle = from.consumer_of(consumer.id()).expect("connected");
    let mut before = Vec::new();
    let of_wishes = to.observe_in_place(move |beyond| {
        let wanted = beyond.types();
        handle.subscription_change(wanted.clone(), std::mem::replace(&mut before, wanted));
        handle.filters().set([beyond.filter()]).expect("no limit");
    });
    let mut before = Vec::new();
    let of_offers = from.observe_in_place(move |here| {
        let now = here.offered.clone();
        let before = std::mem::replace(&mut before, now.clone());
        supplier.lock().expect("whole").offer_change(now, before).expect("no limit");
    });
    Gateway { _observers: [of_wishes, of_offers], consumer }
}

#[test]
fn gateways_both_ways_pass_on_what_is_wanted_beyond_and_nothing_else() {
    let mut time = VirtualTime::default();
    let factory = EventChannelFactory::on(time.clone());
    let [one, two] = ["one", "two"].map(|name| factory.create_with_defaults(name));
    let mut of_one = one.supplier("s").offer(event_types(&["a", "b"])).connect().expect("connected");
    let gateways = [gateway(&one, &two), gateway(&two, &one)];
    assert_eq!(
        (two.offered_types().len(), one.offered_types().len()),
        (2, 2),
        "what is offered here is there, too"
    );
    let mut push = |supplier: &mut talea_notification::Supplier, name: &str, source| {
        let event = event_with(u64::from(source), |header| {
            header.event_type = EventType::new("Test", name);
            header.source = source;
        });
        supplier.push(&mut time, &event).expect("pushed");
        time.run();
    };
    let passed = || gateways.each_ref().map(|gateway| gateway.consumer.statistics().delivered);
    push(&mut of_one, "a", 1);
    assert_eq!(passed(), [0, 0], "nobody wants it beyond");
    let (far, had) =
        connected(two.consumer("far").subscribe(types("Test/a")).when(Condition::from_source(2)));
    let (_near, of_near) = connected(one.consumer("near").subscribe(types("Test/*")));
    for source in [1, 2] {
        push(&mut of_one, "a", source);
        push(&mut of_one, "b", source);
    }
    assert_eq!((had.take(), of_near.take(), passed()), (vec![2], vec![1, 1, 2, 2], [1, 1]));
    // The other way, and back it does not come. What near wants goes through the second gateway.
    let mut of_two = two.supplier("s").offer(event_types(&["a"])).connect().expect("connected");
    push(&mut of_two, "a", 2);
    assert_eq!((had.take(), of_near.take()), (vec![2], vec![2]));
    drop(far);
    let before = passed();
    push(&mut of_one, "a", 2);
    assert_eq!((of_near.take(), passed()), (vec![2], before), "nobody wants it beyond any more");
}

/// A consumer as it is drawn: patterns, a condition, its own filter's least source, and its admin.
#[derive(Clone, Debug)]
struct Drawn {
    patterns: Vec<&'static str>,
    condition: Option<Condition>,
    own: Option<u32>,
    admin: usize,
}

fn least(source: u32) -> Filter {
    Filter::of(&[], move |event: &talea_notification::Event| Ok(event.header().source >= source))
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let patterns = subsequence(vec!["Test/a", "Test/a*", "Test/ab", "Other/*", "*/b"], 1..4);
    let leaf = prop_oneof![
        (0u32..4).prop_map(Condition::from_source),
        (0u32..4, 0u32..4).prop_map(|(mask, value)| Condition::masked(mask, value)),
        select(vec!["Test/*", "*/ab", "Other/b"]).prop_map(|pattern| Condition::of_types(types(pattern))),
    ];
    let one = leaf.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(Condition::negation),
            prop::collection::vec(inner, 1..3).prop_map(Condition::all_of_one),
        ]
    });
    let condition = prop::collection::vec(one, 1..3).prop_map(Condition::any);
    (patterns, prop::option::of(condition), prop::option::of(0u32..4), 0usize..5)
        .prop_map(|(patterns, condition, own, admin)| Drawn { patterns, condition, own, admin })
}

/// Whether a condition has a part that says what an event is not.
fn negates(condition: &Condition) -> bool {
    matches!(condition, Condition::Not(_)) || condition.parts().iter().any(negates)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Held against what consumers are really given: what one of them has is always among what an observer was told,
    /// and where no filters and no negations are, nothing else is.
    #[test]
    fn what_somebody_takes_is_what_observers_are_told(all in prop::collection::vec(drawn(), 0..4)) {
        let (mut time, channel) = channel(QosSettings::new());
        let operators = [GroupOperator::And, GroupOperator::Or];
        let admins: Vec<_> = [None, Some(1), Some(3)]
            .into_iter()
            .flat_map(|least| operators.map(|operator| (operator, least)))
            .map(|(operator, of_admin)| {
                let admin = channel.new_consumer_admin(operator, &QosSettings::new()).expect("sound");
                of_admin.map(|of_admin| admin.filters().add(least(of_admin)).expect("no limit"));
                admin
            })
            .collect();
        let consumers: Vec<_> = all
            .iter()
            .map(|drawn| {
                let mut builder = admins[drawn.admin].consumer("c");
                let pattern = |one: &&str| one.parse::<TypePattern>().expect("sound");
                builder = builder.subscribe(drawn.patterns.iter().map(pattern));
                let condition = drawn.condition.clone().into_iter();
                builder = condition.fold(builder, |builder, condition| builder.when(condition));
                builder = drawn.own.into_iter().fold(builder, |builder, own| builder.filter(least(own)));
                builder.connect_pull().expect("connected")
            })
            .collect();
        let (_observer, told) = Told::observe(&channel);
        let observed = told.take().remove(0);
        let (filter, patterns) = (observed.filter(), observed.types());
        let is_exact = all.iter().all(|drawn| {
            drawn.own.is_none() && drawn.admin < 2 && !drawn.condition.as_ref().is_some_and(negates)
        });
        let mut supplier = channel.supplier("s").connect().expect("connected");
        for (domain, name) in [("Test", "a"), ("Test", "ab"), ("Test", "b"), ("Other", "a"), ("Other", "b")] {
            for source in 0..5 {
                let event = event_with(0, |header| {
                    header.event_type = EventType::new(domain, name);
                    header.source = source;
                });
                let pushed = supplier.push(&mut time, &event).expect("pushed");
                consumers.iter().for_each(|consumer| _ = consumer.try_iter(|| Instant::ZERO).count());
                let is_wanted = filter.judge(&event, Instant::ZERO).matches;
                prop_assert!(is_wanted || pushed.queued == 0, "{domain}/{name} from {source}: {observed:?}");
                prop_assert!(!is_wanted || patterns.iter().any(|pattern| pattern.matches(domain, name)));
                if is_exact {
                    let is_taken = pushed.queued > 0;
                    prop_assert_eq!(is_wanted, is_taken, "{}/{} from {}: {:?}", domain, name, source, observed);
                }
            }
        }
    }
}
