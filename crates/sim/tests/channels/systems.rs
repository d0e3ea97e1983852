//! Random systems whose operations publish events, with tasks that are released by them, also by each other's, and operations that take them when
//! something else has released them.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use talea_event::qos::{DiscardPolicy, OrderPolicy, QosSettings};
use talea_model::{
    Collect, Condition, Criticality, EventTake, FieldValues, LaneDispatch, Mapped, Overhead, Overrun,
    PublicationBuilder, Strategy as StrategyKind, SubscriptionBuilder, SubtaskBuilder, System, TaskBuilder,
};
use talea_samples::conditions::nested;
use talea_time::{Duration, Work};

fn ns(value: i64) -> Duration {
    Duration::from_nanos(value)
}

/// The types that tasks with periods publish; each has a field `x` from 0 to 9.
const TYPES: [&str; 4] = ["A/One", "A/Two", "B/One", "B/Three"];

/// What a task publishes: a type, a priority and a timeout.
type Published = (&'static str, Option<i16>, Option<i64>);

/// What events with smaller fields than these have.
type Below<Drawn> = Vec<(i64, Drawn)>;

/// Priorities and timeouts, and whether the last ones are those of all others.
type Mappings = (Below<i16>, Below<i64>, bool);

#[derive(Clone, Debug)]
struct Subscribed {
    patterns: Vec<&'static str>,
    /// Events with a smaller field pass.
    below: Option<i64>,
    all: Option<(Collect, Option<i64>)>,
    mapped: Mappings,
    /// By which a condition is drawn, without preemption.
    nested: Option<u64>,
    qos: QosSettings,
    separation: Option<i64>,
    wcet: i64,
    /// Of further subtasks with which it begins, unless its releases are kept apart.
    beside: Vec<i64>,
    level: u8,
    deadline: i64,
    /// What it publishes itself, of types of its own.
    publishes: bool,
}

/// Long enough for some filters, or for none.
fn timeout() -> impl Strategy<Value = i64> {
    prop_oneof![3 => 1..40i64, 1 => 40..200i64]
}

fn entries<Drawn: Copy, Value>(
    drawn: &[(i64, Drawn)],
    others: bool,
    value: impl Fn(Drawn) -> Value,
) -> Vec<Mapped<Value>> {
    let last = drawn.len().wrapping_sub(1);
    let entry = |(place, (below, drawn)): (usize, &(i64, Drawn))| match others && place == last {
        true => Mapped::otherwise(value(*drawn)),
        false => Mapped::when(format!("x < {below}"), value(*drawn)),
    };
    drawn.iter().enumerate().map(entry).collect()
}

fn qos() -> impl Strategy<Value = QosSettings> {
    let order =
        select(vec![OrderPolicy::Any, OrderPolicy::Fifo, OrderPolicy::Priority, OrderPolicy::Deadline]);
    let discard = select(vec![
        DiscardPolicy::Any,
        DiscardPolicy::Fifo,
        DiscardPolicy::Lifo,
        DiscardPolicy::Priority,
        DiscardPolicy::Deadline,
    ]);
    let some = (prop::option::of(order), prop::option::of(discard), prop::option::of(1u32..5));
    (some, prop::option::of(timeout()), prop::option::of(-3i16..4)).prop_map(
        |((order, discard, most), timeout, priority)| {
            let mut qos = QosSettings::new();
            qos = order.into_iter().fold(qos, QosSettings::order);
            qos = discard.into_iter().fold(qos, QosSettings::discard);
            qos = most.into_iter().fold(qos, QosSettings::max_events);
            qos = timeout.into_iter().fold(qos, |qos, timeout| qos.timeout(ns(timeout)));
            priority.into_iter().fold(qos, QosSettings::priority)
        },
    )
}

fn published() -> impl Strategy<Value = Vec<Published>> {
    let one = (prop::option::of(-3i16..4), prop::option::of(timeout()));
    (subsequence(TYPES.to_vec(), 1..3), prop::collection::vec(one, 2)).prop_map(|(types, of)| {
        types
            .into_iter()
            .zip(of)
            .map(|(event_type, (priority, timeout))| (event_type, priority, timeout))
            .collect()
    })
}

fn subscribed() -> impl Strategy<Value = Subscribed> {
    let patterns = subsequence(vec!["A/*", "B", "A/One", "*/One", "B/Three"], 1..4);
    let all = prop::option::of((select(Collect::ALL.to_vec()), prop::option::of(1..60i64)));
    let priorities = prop::collection::vec((0..11i64, -3i16..4), 0..3);
    let mapped = (priorities, prop::collection::vec((0..11i64, timeout()), 0..3), any::<bool>());
    let mapped = prop_oneof![1 => Just((Vec::new(), Vec::new(), false)), 1 => mapped];
    let several = (all, prop::option::of(any::<u64>()), mapped);
    let times = (1..5i64, 0u8..=4, 5..80i64, prop::option::of(1..30i64));
    let beside = prop_oneof![1 => Just(Vec::new()), 1 => prop::collection::vec(1..8i64, 1..3)];
    (patterns, prop::option::of(0..11i64), several, qos(), (times, beside), any::<bool>()).prop_map(
        |(patterns, below, (all, nested, mapped), qos, (times, beside), publishes)| {
            let (wcet, level, deadline, separation) = times;
            Subscribed {
                beside: if separation.is_some() { Vec::new() } else { beside },
                all: all.filter(|_| patterns.len() > 1),
                nested,
                mapped,
                patterns,
                below,
                qos,
                separation,
                wcet,
                level,
                deadline,
                publishes,
            }
        },
    )
}

/// When a task is released that takes events: period and phase, what becomes of overruns, the place of the one of its subtasks that does, and how many it takes.
type Looking = (i64, i64, Overrun, usize, EventTake);

fn looking() -> impl Strategy<Value = Looking> {
    (4..50i64, 0..10i64, select(Overrun::ALL.to_vec()), 0..3usize, select(EventTake::ALL.to_vec()))
}

impl Subscribed {
    /// To events of these types; what time brings is for tasks that it releases.
    fn to(&self, patterns: Vec<String>, may_nest: bool) -> SubscriptionBuilder {
        let leaves: Vec<Condition> =
            patterns.iter().map(|pattern| pattern.parse().expect("a pattern")).collect();
        let subscription = SubscriptionBuilder::new("c").qos(self.qos.clone());
        let mut subscription = match (self.all, self.nested) {
            (_, Some(seed)) if may_nest => {
                let mut random = Pcg64Mcg::seed_from_u64(seed);
                subscription.when(nested(&mut |below| random.random_range(0..below), &leaves, ns(6)))
            }
            (Some((collect, within)), _) if leaves.len() > 1 => {
                let all = Condition::all(collect, leaves);
                subscription.when(within.into_iter().fold(all, |all, within| all.within(ns(within))))
            }
            _ => subscription.types(patterns),
        };
        if let Some(below) = self.below {
            subscription = subscription.filter(format!("x < {below}"));
        }
        let (priorities, timeouts, others) = &self.mapped;
        subscription = subscription.priority_by(entries(priorities, *others, |priority| priority));
        subscription.timeout_by(entries(timeouts, *others, ns))
    }
}

fn event((event_type, priority, timeout): Published) -> PublicationBuilder {
    let event = PublicationBuilder::new("c", event_type).field("x", FieldValues::Uniform(0, 9));
    let event = priority.into_iter().fold(event, PublicationBuilder::priority);
    timeout.into_iter().fold(event, |event, timeout| event.timeout(ns(timeout)))
}

prop_compose! {
    pub fn systems()(
        (strategy, dispatch, seed) in (select(StrategyKind::ALL.to_vec()), select(LaneDispatch::ALL.to_vec()), any::<u64>()),
        channel in qos(),
        pushers in prop::collection::vec(((6..40i64, 0..10i64, 0..5i64, 1..4i64), 0u8..=4, published()), 2..5),
        subscribers in prop::collection::vec((subscribed(), prop::option::weighted(0.3, subscribed())), 1..5),
        takers in prop::collection::vec((subscribed(), looking()), 0..3),
        cpus in 1u16..3,
        costs in prop::option::of((0..3i64, 0..3i64, 0..3i64)),
    ) -> System {
        let level = |level| Criticality::from_level(level).expect("0 to 4");
        let mut system = System::builder("events").strategy(strategy).lane_dispatch(dispatch).seed(seed);
        system = system.node("n", 0..cpus).channel("c", channel);
        if let Some((push, filter, delivery)) = costs {
            let [push, filter, delivery] = [push, filter, delivery].map(Work::from_nanos);
            system = system.overhead(Overhead { push, filter, delivery, ..Overhead::default() });
        }
        for (number, ((period, phase, jitter, wcet), of, events)) in pushers.iter().cloned().enumerate() {
            let task = TaskBuilder::new(format!("push{number}"), ns(period)).criticality(level(of));
            let task = task.phase(ns(phase)).jitter(ns(jitter.min(period - 1)));
            let step = SubtaskBuilder::new("s").wcet(Work::from_nanos(wcet));
            system = system.task(task.subtask(events.into_iter().fold(step, |step, one| step.event(event(one)))));
        }
        let is_published = |pattern: &str| {
            let pattern: talea_event::TypePattern = pattern.parse().expect("a pattern");
            let mut events = pushers.iter().flat_map(|(_, _, events)| events);
            events.any(|(event_type, ..)| {
                let (domain, name) = event_type.split_once('/').expect("two parts");
                pattern.matches(domain, name)
            })
        };
        let published_of = |one: &Subscribed| -> Vec<String> {
            one.patterns.iter().filter(|pattern| is_published(pattern)).map(|pattern| (*pattern).to_owned()).collect()
        };
        let mut own = 0;
        for (number, (one, later)) in subscribers.into_iter().enumerate() {
            let mut patterns = published_of(&one);
            if own > 0 && number % 2 == 1 {
                patterns.push(format!("Own/T{}", own - 1));
            }
            if patterns.is_empty() {
                continue;
            }
            let subscription = one.to(patterns, dispatch == LaneDispatch::NonPreemptive);
            let mut task = TaskBuilder::triggered_by(format!("take{number}"), subscription)
                .deadline(ns(one.deadline))
                .criticality(level(one.level));
            task = one.separation.into_iter().fold(task, |task, separation| task.separation(ns(separation)));
            let mut step = SubtaskBuilder::new("s").wcet(Work::from_nanos(one.wcet));
            if one.publishes {
                let event_type = format!("Own/T{own}");
                step = step.event(PublicationBuilder::new("c", event_type).field("x", FieldValues::Uniform(0, 9)));
                own += 1;
            }
            task = task.subtask(step);
            for (place, wcet) in one.beside.iter().enumerate() {
                let step = SubtaskBuilder::new(format!("beside{place}")).wcet(Work::from_nanos(*wcet));
                task = task.subtask(step.after([""; 0]));
            }
            if let Some(later) = later.filter(|later| !published_of(later).is_empty()) {
                let step = SubtaskBuilder::new("t").wcet(Work::from_nanos(later.wcet));
                task = task.subtask(step.subscription(later.to(published_of(&later), false)));
            }
            system = system.task(task);
        }
        for (number, (one, (period, phase, overrun, place, take))) in takers.into_iter().enumerate() {
            let patterns = published_of(&one);
            if patterns.is_empty() {
                continue;
            }
            let task = TaskBuilder::new(format!("look{number}"), ns(period)).phase(ns(phase)).overrun(overrun);
            let task = task.deadline(ns(one.deadline)).criticality(level(one.level));
            let subscription = one.to(patterns, false).take(take);
            system = system.task((0..=place).fold(task, |task, at| {
                let mut step = SubtaskBuilder::new(format!("s{at}")).wcet(Work::from_nanos(one.wcet));
                if at == place {
                    step = step.subscription(subscription.clone());
                }
                if one.publishes && at == 0 {
                    let event_type = format!("Own/T{own}");
                    own += 1;
                    step = step.event(PublicationBuilder::new("c", event_type).field("x", FieldValues::Uniform(0, 9)));
                }
                task.subtask(step)
            }));
        }
        system.build().expect("it breaks no rule")
    }
}
