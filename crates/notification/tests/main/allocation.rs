//! Pushing and delivering do not allocate.

use crate::{Number, channel, types};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_notification::qos::{DiscardPolicy, OrderPolicy, QosSettings};
use talea_notification::{
    AdminProperties, Content, EventPool, EventType, Filter, Filterable, MappingFilter, Outcome,
};
use talea_operation::{NotPosted, Post, Posted};
use talea_time::{Duration, Instant};

/// Posts nothing, at an instant that the test says.
pub(crate) struct Nothing(pub Instant);

impl Post for Nothing {
    fn now(&self) -> Instant {
        self.0
    }

    fn post_work(&mut self, _posted: Posted) -> Result<u64, NotPosted> {
        Ok(0)
    }

    fn may_wait(&self) -> bool {
        false
    }
}

#[test]
fn pushing_filtering_queueing_and_taking_do_not_allocate() {
    let tick = EventType::new("Test", "Tick");
    for discard in
        [DiscardPolicy::Fifo, DiscardPolicy::Lifo, DiscardPolicy::Priority, DiscardPolicy::Deadline]
    {
        let settings = QosSettings::new().order(OrderPolicy::Priority).discard(discard).max_events(8);
        let (_time, channel) = channel(settings.timeout(Duration::from_millis(3)));
        // Less than both consumers have room for.
        channel.set_admin_properties(AdminProperties { max_queue_length: 12, ..AdminProperties::default() });
        let matched = Arc::new(AtomicU64::new(0));
        let own = Arc::clone(&matched);
        let filter = Filter::of(&types("Test/T*"), move |event: &talea_notification::Event| {
            own.fetch_add(1, Ordering::Relaxed);
            Ok(crate::number(event) > 2)
        });
        let mapping = MappingFilter::new().with(&types("Test"), |_: &talea_notification::Event| Ok(true), 7);
        let pulled = channel
            .consumer("pulled")
            .filter(filter)
            .map_priority(mapping)
            .connect_pull()
            .expect("connected");
        let called = channel.consumer("called").connect(|_| Outcome::Ok).expect("connected");
        let mut supplier = channel.supplier("s").offer([tick.clone()]).connect().expect("connected");
        let mut pool = EventPool::new(32, &tick, || Number(0));
        let mut taken = 0;
        let mut round = |round: u64| {
            let now = Instant::from_nanos(round as i64 * 1_000_000);
            for number in 0..12 {
                let mut loan = pool.loan().expect("there are more than wait");
                *loan.content() = Number(number);
                loan.header().priority = Some(number as i16 % 3);
                supplier.push(Nothing(now), &loan.done()).expect("pushed");
            }
            while pulled.try_pull(now).is_some() {
                taken += 1;
            }
        };
        round(0);
        let allocations = allocation_counter::measure(|| (1..50).for_each(&mut round));
        assert_eq!(allocations.count_total, 0, "{discard:?}");
        assert!(taken > 0 && matched.load(Ordering::Relaxed) > 0);
        assert!(called.statistics().expired + called.statistics().discarded > 0);
    }
}

/// Fields of the header are set again in events of a pool, and filters find them.
#[test]
fn fields_of_the_header_do_not_allocate_once_they_are_there() {
    #[derive(Filterable)]
    struct Reading {
        level: i64,
    }
    impl Content for Reading {}

    let tick = EventType::new("Test", "Tick");
    let (_time, channel) = channel(QosSettings::new().max_events(8));
    let filter = "$.header.variable_header(round) / 2 * 2 == $.header.variable_header(round) and level > 3";
    let even = channel.consumer("even").filter(Filter::parse::<Reading>(&[], filter).expect("a constraint"));
    let even = even.connect_pull().expect("connected");
    let mut supplier = channel.supplier("s").offer([tick.clone()]).connect().expect("connected");
    let mut pool = EventPool::new(8, &tick, || Reading { level: 0 });
    // Each event of the pool has them once.
    let mut loans = Vec::new();
    while let Some(mut loan) = pool.loan() {
        let fields = &mut loan.header().fields;
        fields.set("round", 0).and_then(|()| fields.set("is_urgent", false)).expect("sound");
        loans.push(loan.done());
    }
    drop(loans);
    let (mut taken, mut urgent) = (0, 0);
    let mut round = |round: i64| {
        let now = Instant::from_nanos(round * 1_000_000);
        for level in 0..8 {
            let mut loan = pool.loan().expect("there are more than wait");
            loan.content().level = level;
            loan.header().fields.set("round", round).expect("sound");
            loan.header().fields.set("is_urgent", level == 7).expect("sound");
            supplier.push(Nothing(now), &loan.done()).expect("pushed");
        }
        while let Some(delivery) = even.try_pull(now) {
            taken += 1;
            urgent += u64::from(delivery.event().variable_header().get("is_urgent") == Some(&true.into()));
        }
    };
    round(-1);
    let allocations = allocation_counter::measure(|| (0..50).for_each(&mut round));
    assert_eq!(allocations.count_total, 0);
    assert_eq!((taken, urgent, even.statistics().filter_errors), (25 * 4, 25, 0));
}
