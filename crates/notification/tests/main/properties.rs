//! Whatever is pushed, delivered and changed in whichever order: each event is settled once, and nothing is delivered that should not be.

use crate::{MS, channel, event_with};
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::{Arc, Mutex};
use talea_notification::qos::{DiscardPolicy, OrderPolicy, QosSettings};
use talea_notification::{AdminProperties, Outcome};
use talea_operation::{Declaration, Post};
use talea_time::Instant;

const ORDERS: [OrderPolicy; 4] =
    [OrderPolicy::Any, OrderPolicy::Fifo, OrderPolicy::Priority, OrderPolicy::Deadline];
const DISCARDS: [DiscardPolicy; 5] = [
    DiscardPolicy::Any,
    DiscardPolicy::Fifo,
    DiscardPolicy::Lifo,
    DiscardPolicy::Priority,
    DiscardPolicy::Deadline,
];

#[derive(Clone, Debug)]
enum Step {
    Push {
        priority: i16,
        timeout: Option<i64>,
        start: Option<i64>,
    },
    Execute,
    Pass(i64),
    Suspend,
    Resume,
    Limit(usize),
    /// Other orders, and less room.
    Qos {
        order: OrderPolicy,
        discard: DiscardPolicy,
        most: u32,
    },
    /// So many events may wait in the channel.
    Channel(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let within = || prop::option::weighted(0.4, 1i64..8);
    prop_oneof![
        8 => (-2i16..3, within(), within())
            .prop_map(|(priority, timeout, start)| Step::Push { priority, timeout, start }),
        5 => Just(Step::Execute),
        3 => (0i64..5).prop_map(Step::Pass),
        1 => Just(Step::Suspend),
        1 => Just(Step::Resume),
        1 => (1usize..5).prop_map(Step::Limit),
        1 => (select(&ORDERS[..]), select(&DISCARDS[..]), 1u32..5)
            .prop_map(|(order, discard, most)| Step::Qos { order, discard, most }),
        1 => (0usize..4).prop_map(Step::Channel),
    ]
}

#[derive(Clone, Copy, Debug)]
struct Delivered {
    at: Instant,
    pushed: Instant,
    expires: Option<Instant>,
    number: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn each_event_is_settled_once(
        order in select(&ORDERS[..]),
        discard in select(&DISCARDS[..]),
        most in 1u32..5,
        batch in 1u32..3,
        retry_every in prop::option::of(2u64..5),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let settings = QosSettings::new().order(order).discard(discard).max_events(most).max_batch(batch.min(most));
        let (mut time, channel) = channel(settings);
        let had = Arc::new(Mutex::new(Vec::<Delivered>::new()));
        let (own, clock) = (Arc::clone(&had), time.clone());
        let mut calls = 0u64;
        let lane = |level: usize| Declaration::new(&format!("lane {level}"), MS(10)).lane(level);
        let builder = channel.consumer("c").lane_from(1, lane(0)).lane_from(-1, lane(1));
        let consumer = builder.connect_sequence(move |deliveries, _| {
            calls += 1;
            if retry_every.is_some_and(|every| calls.is_multiple_of(every)) {
                return Outcome::Retry;
            }
            let at = clock.now();
            let delivered = deliveries.iter().map(|delivery| Delivered {
                at,
                pushed: delivery.pushed(),
                expires: delivery.expires(),
                number: delivery.number(),
            });
            own.lock().expect("whole").extend(delivered);
            Outcome::Ok
        }).expect("connected");
        let mut supplier = channel.supplier("s").connect().expect("connected");
        let mut pushed = 0;
        for step in steps {
            match step {
                Step::Push { priority, timeout, start } => {
                    let now = time.now();
                    let event = event_with(pushed, |header| {
                        header.priority = Some(priority);
                        header.timeout = timeout.map(MS);
                        header.start = start.map(|start| now + MS(start));
                    });
                    supplier.push(&mut time, &event).expect("pushed");
                    pushed += 1;
                }
                Step::Execute => _ = time.step(),
                Step::Pass(ms) => time.pass(MS(ms)),
                Step::Suspend => _ = consumer.suspend(),
                Step::Resume => _ = consumer.resume(&mut time),
                Step::Limit(jobs) => time.limit_jobs(jobs),
                // More than there is memory for is refused, and then nothing changes.
                Step::Qos { order, discard, most } => {
                    _ = consumer.set_qos(&QosSettings::new().order(order).discard(discard).max_events(most));
                }
                Step::Channel(most) => {
                    let limit = AdminProperties { max_queue_length: most, ..AdminProperties::default() };
                    channel.set_admin_properties(limit);
                }
            }
            let counted = consumer.statistics();
            prop_assert_eq!(counted.settled() + consumer.queued() as u64, pushed);
            prop_assert_eq!(channel.statistics(time.now()).queued, consumer.queued());
        }
        time.limit_jobs(usize::MAX);
        _ = consumer.resume(&mut time);
        // Whatever is tried again succeeds in the end, or expires.
        for _ in 0..60 {
            time.pass(MS(20_000));
        }
        let counted = consumer.statistics();
        prop_assert_eq!((counted.settled(), consumer.queued()), (pushed, 0));
        let had = had.lock().expect("whole");
        prop_assert_eq!(had.len() as u64, counted.delivered);
        let mut numbers: Vec<u64> = had.iter().map(|one| one.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), had.len(), "none comes twice");
        for one in had.iter() {
            prop_assert!(one.at >= one.pushed && one.expires.is_none_or(|expires| one.at <= expires), "{:?}", one);
        }
    }
}
