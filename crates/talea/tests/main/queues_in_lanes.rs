//! Whose turn it is, the lane decides; which of its events a consumer has then, its order policy: of each pair of
//! these, what comes of it.
//!
//! The judge has lists and no queues: of each event that waits a job, which the lane orders by what it looks at, and
//! the first of the events of its lane that wait for the consumer when the job's turn comes. Beside it stands another
//! one, which orders the heads of queues, and the table says where both are the same.

use std::sync::{Arc, Mutex};
use talea::notification::qos::{OrderPolicy, QosSettings};
use talea::notification::{
    AdminProperties, ConnectedConsumer, Content, Event, EventChannelFactory, EventType, Header, Outcome,
};
use talea::run::{Declaration, PostingRoom};
use talea::simulation::VirtualRun;
use talea::{Criticality, Duration, Instant, LaneDispatch, Strategy, System, TaskBuilder, Work};

struct Number(usize);
impl Content for Number {}

fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms)
}

/// By what lanes order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    Fifo,
    Deadline,
    Laxity,
    /// Lanes by level, in each of which it goes by release.
    StaticPriority,
}

const LANES: [Lanes; 4] = [Lanes::Fifo, Lanes::Deadline, Lanes::Laxity, Lanes::StaticPriority];
const ORDERS: [OrderPolicy; 4] =
    [OrderPolicy::Any, OrderPolicy::Fifo, OrderPolicy::Priority, OrderPolicy::Deadline];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    OneAtATime,
    Concurrent,
}

/// How the lanes of the first consumer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneCount {
    One,
    /// One for priorities from 1 on, and one for the rest.
    Two,
}

/// Consumers, of which an event is for one.
const CONSUMERS: usize = 2;
/// How long deliveries to each take.
const WCET_MS: [i64; CONSUMERS] = [1, 3];

/// An event that is pushed; each a millisecond after the one before.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    consumer: usize,
    priority: i16,
    timeout_ms: i64,
}

/// The events of a seed, all of which are pushed before any is delivered, and which expire at different instants, after
/// the end.
fn drawn(seed: u64) -> Vec<Drawn> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let count = 3 + next(6) as usize;
    let mut timeouts: Vec<i64> = (0..count as i64).map(|place| 500 + 20 * place).collect();
    (0..count)
        .map(|left| Drawn {
            consumer: next(CONSUMERS as u64) as usize,
            priority: next(4) as i16 - 1,
            timeout_ms: timeouts.swap_remove(next((count - left) as u64) as usize),
        })
        .collect()
}

/// One combination.
#[derive(Clone, Copy, Debug)]
struct Case {
    lanes: Lanes,
    order: OrderPolicy,
    calls: Calls,
    count: LaneCount,
}

impl Case {
    fn strategy(self) -> Strategy {
        match self.lanes {
            Lanes::Fifo => Strategy::Criticality,
            Lanes::Deadline => Strategy::Edf,
            Lanes::Laxity => Strategy::Muf,
            Lanes::StaticPriority => Strategy::Rms,
        }
    }

    /// The urgent lane, which a task of the system keeps busy while events are pushed, and one below it.
    fn system(self) -> System {
        let task = |name: &str, period_ms: i64, wcet: Work, criticality| {
            TaskBuilder::new(name, ms(period_ms)).wcet(wcet).criticality(criticality)
        };
        System::builder("queues")
            .strategy(self.strategy())
            .lane_dispatch(LaneDispatch::NonPreemptive)
            .node("n", [0])
            .task(task("busy", 1_000, Work::from_millis(20), Criticality::High))
            .task(task("low", 2_000, Work::from_micros(1), Criticality::Low))
            .build()
            .expect("sound")
    }

    /// The level of the lane in which an event is delivered.
    fn level(self, event: &Drawn) -> usize {
        usize::from(event.consumer != 0 || self.count == LaneCount::One || event.priority < 1)
    }

    fn work(self, consumer: usize, level: usize) -> Declaration {
        let (period_ms, criticality) = [(1_000, Criticality::High), (2_000, Criticality::Low)][level];
        let work = Declaration::new(&format!("c{consumer} in {level}"), ms(5_000));
        work.wcet(Work::from_millis(WCET_MS[consumer])).period(ms(period_ms)).criticality(criticality)
    }

    /// The numbers of the events in the order in which they are delivered.
    fn run(self, events: &[Drawn]) -> Vec<usize> {
        let factory = EventChannelFactory::new();
        let settings = QosSettings::new().order(self.order);
        let channel = factory.create("c", &settings, AdminProperties::default()).expect("sound");
        let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
        let connected = |consumer: usize| -> ConnectedConsumer {
            let own = Arc::clone(&seen);
            let note = move |event: &Event| {
                own.lock().expect("whole").push(event.content::<Number>().expect("a number").0);
                Outcome::Ok
            };
            let builder = channel.consumer(&format!("c{consumer}"));
            let builder = builder.subscribe([format!("Test/{consumer}").parse().expect("a pattern")]);
            let builder = match (consumer, self.count) {
                (0, LaneCount::Two) => {
                    builder.lane_from(1, self.work(0, 0)).lane_from(i16::MIN, self.work(0, 1))
                }
                _ => builder.lane(self.work(consumer, 1)),
            };
            match self.calls {
                Calls::OneAtATime => builder.connect(move |delivery| note(delivery.event())),
                Calls::Concurrent => builder.connect_concurrent(move |delivery, _| note(delivery.event())),
            }
            .expect("connected")
        };
        let _consumers: [ConnectedConsumer; CONSUMERS] = std::array::from_fn(connected);
        let mut supplier = channel.supplier("outside").connect().expect("connected");
        let system = self.system();
        let room = PostingRoom { operations: 3, jobs: 16, ..Default::default() };
        let prepared = VirtualRun::new(&system).events(&factory).posting(room).prepare().expect("sound");
        let mut left: Vec<(usize, Drawn)> = events.iter().copied().enumerate().rev().collect();
        prepared.workplace().call_at(Instant::ZERO + ms(1), move |outside| {
            let (number, event) = left.pop().expect("it is called for one");
            let mut header = Header::new(EventType::new("Test", &event.consumer.to_string()));
            (header.priority, header.timeout) = (Some(event.priority), Some(ms(event.timeout_ms)));
            supplier.push(&mut *outside, &Event::new(header, Number(number))).expect("it may be pushed");
            (!left.is_empty()).then(|| outside.now() + ms(1))
        });
        prepared.run(ms(200));
        seen.lock().expect("whole").clone()
    }

    /// By what the lane orders something that is for this event, the least first.
    fn key(self, number: usize, event: &Drawn) -> (usize, i64) {
        let (pushed, level) = (number as i64, self.level(event));
        let due = pushed + event.timeout_ms;
        match self.lanes {
            Lanes::Fifo | Lanes::StaticPriority => (level, pushed),
            // All of it is one lane.
            Lanes::Deadline => (0, due),
            Lanes::Laxity => (level, due - WCET_MS[event.consumer]),
        }
    }

    /// By what the consumer orders its events, the least first.
    fn place(self, number: usize, event: &Drawn) -> (i64, usize) {
        let first = match self.order {
            OrderPolicy::Any | OrderPolicy::Fifo => 0,
            OrderPolicy::Priority => -i64::from(event.priority),
            OrderPolicy::Deadline => number as i64 + event.timeout_ms,
        };
        (first, number)
    }

    /// Of the events that wait, the first of the same consumer and lane as this one.
    fn head(self, waiting: &[usize], events: &[Drawn], of: usize) -> usize {
        let queue = |number: usize| (events[number].consumer, self.level(&events[number]));
        let of_queue = waiting.iter().copied().filter(|number| queue(*number) == queue(of));
        of_queue.min_by_key(|number| self.place(*number, &events[*number])).expect("it waits itself")
    }

    /// Each event has a job, of which the lane takes the first, and that the first event of its queue.
    fn by_jobs(self, events: &[Drawn]) -> Vec<usize> {
        let mut jobs: Vec<usize> = (0..events.len()).collect();
        jobs.sort_by_key(|number| self.key(*number, &events[*number]));
        let (mut waiting, mut order) = ((0..events.len()).collect::<Vec<_>>(), Vec::new());
        for job in jobs {
            // The event of the job itself may have gone by another one; its queue has as many as jobs.
            let queue = |number: usize| (events[number].consumer, self.level(&events[number]));
            let of = *waiting.iter().find(|number| queue(**number) == queue(job)).expect("one for each job");
            let head = self.head(&waiting, events, of);
            waiting.retain(|number| *number != head);
            order.push(head);
        }
        order
    }

    /// The lane takes the first of those that stand first in their queues.
    fn by_heads(self, events: &[Drawn]) -> Vec<usize> {
        let (mut waiting, mut order) = ((0..events.len()).collect::<Vec<_>>(), Vec::new());
        while !waiting.is_empty() {
            let heads = waiting.iter().map(|number| self.head(&waiting, events, *number));
            let next = heads.min_by_key(|number| self.key(*number, &events[*number])).expect("some wait");
            waiting.retain(|number| *number != next);
            order.push(next);
        }
        order
    }

    /// What `docs/notification.md` says: whether a queue and its lane look at the same, so that a job has its own
    /// event.
    fn is_by_heads(self) -> bool {
        match self.lanes {
            Lanes::Fifo | Lanes::StaticPriority => matches!(self.order, OrderPolicy::Any | OrderPolicy::Fifo),
            Lanes::Deadline | Lanes::Laxity => self.order == OrderPolicy::Deadline,
        }
    }
}

#[test]
fn lanes_order_the_jobs_of_events_and_queues_the_events() {
    const SEEDS: u64 = 25;
    for lanes in LANES {
        for order in ORDERS {
            for calls in [Calls::OneAtATime, Calls::Concurrent] {
                for count in [LaneCount::One, LaneCount::Two] {
                    let case = Case { lanes, order, calls, count };
                    let mut unlike_heads = 0;
                    for seed in 0..SEEDS {
                        let events = drawn(seed);
                        let seen = case.run(&events);
                        assert_eq!(seen, case.by_jobs(&events), "{case:?}, seed {seed}: {events:?}");
                        unlike_heads += usize::from(seen != case.by_heads(&events));
                    }
                    assert_eq!(unlike_heads == 0, case.is_by_heads(), "{case:?}: {unlike_heads} of {SEEDS}");
                }
            }
        }
    }
}
