//! Random systems whose operations hand values on: from a source of two subtasks or from outside, over a filter and an end that read at
//! rates of their own, to a task that values release.

use proptest::prelude::*;
use proptest::sample::select;
use talea_event::qos::{DiscardPolicy, OrderPolicy, QosSettings};
use talea_model::{
    ChainBuilder, Collect, Communication, Condition, EventTake, Excess, FieldValues, Full, InputBuilder,
    Join, LaneDispatch, LinkBuilder, LossRate, OnValue, OutputBuilder, Overrun, PublicationBuilder,
    Strategy as StrategyKind, SubscriptionBuilder, SubtaskBuilder, Synchronisation, System, Take,
    TaskBuilder, TriggerBuilder,
};
use talea_time::{Duration, Work};

fn ns(value: i64) -> Duration {
    Duration::from_nanos(value)
}

fn work(value: i64) -> Work {
    Work::from_nanos(value)
}

/// How a task takes the values of another one.
#[derive(Clone, Copy, Debug)]
enum Taking {
    Latest,
    Each(u32, Full),
}

fn taking() -> impl Strategy<Value = Taking> {
    let each = (1..5u32, select(vec![Full::Oldest, Full::Newest]));
    prop_oneof![Just(Taking::Latest), each.prop_map(|(capacity, full)| Taking::Each(capacity, full))]
}

fn input(from: &str, taking: Taking) -> InputBuilder {
    input_named("in", from, taking)
}

fn input_named(name: &str, from: &str, taking: Taking) -> InputBuilder {
    let input = InputBuilder::new(name).from(from);
    match taking {
        Taking::Latest => input.latest(),
        Taking::Each(capacity, full) => input.take(Take::Each { capacity, full }),
    }
}

/// Times of a task with a period, and what it does with values.
#[derive(Clone, Copy, Debug)]
struct Rated {
    period: i64,
    phase: i64,
    jitter: i64,
    wcet: i64,
    communication: Communication,
    overrun: Overrun,
    taking: Taking,
    /// How it takes them once more, by an input ahead of the other or behind it.
    again: Option<(Taking, bool)>,
    node: &'static str,
}

fn rated() -> impl Strategy<Value = Rated> {
    let communication = select(vec![Communication::Implicit, Communication::Implicit, Communication::Let]);
    let node = select(vec!["one", "one", "other"]);
    let taking = (taking(), prop::option::weighted(0.3, (taking(), any::<bool>())));
    ((4..40i64, 0..10i64, 0..4i64, 1..6i64), communication, select(Overrun::ALL), taking, node).prop_map(
        |((period, phase, jitter, wcet), communication, overrun, (taking, again), node)| Rated {
            period,
            phase,
            jitter,
            wcet,
            communication,
            overrun,
            taking,
            again,
            node,
        },
    )
}

impl Rated {
    fn task(&self, name: &str) -> TaskBuilder {
        let task = TaskBuilder::new(name, ns(self.period)).phase(ns(self.phase)).jitter(ns(self.jitter));
        let overrun = match (self.overrun, self.communication) {
            // A job under logical execution time takes nothing that is newer than its arrival.
            (Overrun::Merge, Communication::Let) => Overrun::Queue,
            (overrun, _) => overrun,
        };
        task.overrun(overrun).communication(self.communication)
    }

    /// It reads that output.
    fn single(&self, name: &str, from: &str) -> TaskBuilder {
        let task = self.task(name).wcet(work(self.wcet)).on(self.node);
        let first = input(from, self.taking);
        match self.again {
            None => task.input(first),
            Some((taking, is_ahead)) => {
                let again = input_named("again", from, taking);
                if is_ahead { task.input(again).input(first) } else { task.input(first).input(again) }
            }
        }
    }
}

/// How the second subtask of a source goes on with the first, and with another one beside that.
#[derive(Clone, Copy, Debug)]
struct Going {
    wcet: i64,
    /// By what it takes the value of the first: that of its instance, or others; `None` if it takes none.
    taking: Option<Option<Taking>>,
    /// What the other takes, where, and whether the second waits for either or both.
    beside: Option<(i64, &'static str, Join)>,
}

fn going() -> impl Strategy<Value = Going> {
    let taking = prop_oneof![2 => Just(Some(None)), 1 => taking().prop_map(|taking| Some(Some(taking))), 1 => Just(None)];
    let beside = (1..6i64, select(vec!["one", "other"]), select(vec![Join::All, Join::First]));
    (1..4i64, taking, prop::option::of(beside)).prop_map(|(wcet, taking, beside)| Going {
        wcet,
        taking,
        beside,
    })
}

/// What links do beside their delay.
#[derive(Clone, Copy, Debug)]
struct Links {
    delay: i64,
    jitter: i64,
    loss: f64,
}

fn links() -> impl Strategy<Value = Links> {
    let jitter = prop_oneof![2 => Just(0), 1 => 1..12i64];
    let loss = prop_oneof![3 => Just(0.0), 1 => Just(0.3)];
    (0..6i64, jitter, loss).prop_map(|(delay, jitter, loss)| Links { delay, jitter, loss })
}

impl Links {
    fn link(self) -> LinkBuilder {
        let loss = LossRate::from_share(self.loss).expect("a share");
        LinkBuilder::others().delay(ns(self.delay)).jitter(ns(self.jitter)).loss(loss)
    }
}

/// Where a chain begins.
#[derive(Clone, Copy, Debug)]
enum Beginning {
    Rated(Rated, Going),
    Outside(i64, u32, Excess),
}

fn beginning() -> impl Strategy<Value = Beginning> {
    let excess = select(vec![Excess::Defer, Excess::Drop, Excess::Count]);
    prop_oneof![
        3 => (rated(), going()).prop_map(|(rated, going)| Beginning::Rated(rated, going)),
        1 => (4..40i64, 1..4u32, excess).prop_map(|(separation, burst, excess)| Beginning::Outside(separation, burst, excess)),
    ]
}

/// How a task has events that the end of the chain pushes, and its filter as well if they are on the same node.
#[derive(Clone, Debug)]
struct Subscribing {
    filtered: bool,
    collect: Option<Collect>,
    qos: QosSettings,
    timeout: Option<i64>,
    separation: Option<i64>,
    /// The period of a task that takes them when its jobs begin, in place of one that they release, and how many.
    looks: Option<(i64, EventTake)>,
    wcet: i64,
}

fn subscribing() -> impl Strategy<Value = Subscribing> {
    let collect =
        prop_oneof![4 => Just(None), 1 => select(vec![Some(Collect::First), Some(Collect::Latest)])];
    let order =
        select(vec![OrderPolicy::Fifo, OrderPolicy::Fifo, OrderPolicy::Priority, OrderPolicy::Deadline]);
    let timeout = prop_oneof![3 => Just(None), 1 => (1..60i64).prop_map(Some)];
    let separation = prop_oneof![3 => Just(None), 1 => (1..30i64).prop_map(Some)];
    let filtered = prop::bool::weighted(0.3);
    let take = select(vec![EventTake::Next, EventTake::All, EventTake::All]);
    let looks = prop_oneof![1 => Just(None), 1 => (4..40i64, take).prop_map(Some)];
    let policies = (order, select(DiscardPolicy::ALL));
    (filtered, collect, policies, 1..9u32, timeout, (separation, looks), 1..4i64).prop_map(
        |(filtered, collect, (order, discard), most, timeout, (separation, looks), wcet)| Subscribing {
            filtered,
            collect,
            qos: QosSettings::new().order(order).discard(discard).max_events(most),
            timeout,
            separation,
            looks,
            wcet,
        },
    )
}

impl Subscribing {
    fn event(&self, name: &str, priority: i16) -> PublicationBuilder {
        let event =
            PublicationBuilder::new("c", name).field("x", FieldValues::Uniform(0, 9)).priority(priority);
        match self.timeout {
            Some(timeout) => event.timeout(ns(timeout)),
            None => event,
        }
    }

    fn task(&self, node: &str, with_filter: bool) -> TaskBuilder {
        let types = if with_filter { vec!["T/End", "T/Filter"] } else { vec!["T/End"] };
        let mut subscription = SubscriptionBuilder::new("c").qos(self.qos.clone());
        if self.filtered {
            subscription = subscription.filter("x < 5");
        }
        if let Some(collect) = self.collect.filter(|_| with_filter) {
            let parts = ["T/End", "T/Filter"].map(|pattern| pattern.parse().expect("a pattern"));
            subscription = subscription.when(Condition::all(collect, parts));
        } else {
            subscription = subscription.types(types);
        }
        let task = match (self.looks, self.separation) {
            (Some((period, take)), _) => {
                TaskBuilder::new("alarm", ns(period)).subscription(subscription.take(take))
            }
            (None, None) => TaskBuilder::triggered_by("alarm", subscription),
            (None, Some(apart)) => TaskBuilder::triggered_by("alarm", subscription).separation(ns(apart)),
        };
        task.deadline(ns(60)).wcet(work(self.wcet)).on(node)
    }
}

/// Any of them.
pub fn systems() -> impl Strategy<Value = System> {
    let changes = prop::bool::weighted(0.3);
    let log =
        (1..4u32, prop::option::of(1..30i64), prop::option::of(taking()), changes, prop::bool::weighted(0.3));
    let limits = (1..60i64, 1..60i64, 1..60i64);
    let strategy = select(vec![StrategyKind::Rms, StrategyKind::Edf, StrategyKind::Muf]);
    let strategy = (strategy, select(LaneDispatch::ALL));
    let rates = (beginning(), rated(), rated(), subscribing());
    (rates, log, limits, strategy, any::<u64>(), links()).prop_map(
        |(rates, (every, separation, reads, changes, merges), limits, (strategy, dispatch), seed, links)| {
            let (beginning, filter, end, subscribing) = rates;
            let (source, path) = source(beginning);
            let after = path.last().copied().expect("it has operations");
            let with_filter = filter.node == end.node && filter.communication == Communication::Implicit;
            let alarm = subscribing.task(end.node, with_filter);
            let filter = filter.single("filter", &format!("{after}.out"));
            // Nothing is triggered by values that are held until the end of a period.
            let end = Rated { communication: Communication::Implicit, ..end };
            let end = end.single("end", "filter.out");
            let counted = if changes { OnValue::Change } else { OnValue::Value };
            let trigger = TriggerBuilder::output("end.out").every(every).on(counted);
            let mut log = TaskBuilder::triggered_by("log", trigger).deadline(ns(50)).wcet(work(2)).on("one");
            if let Some(separation) = separation {
                log = log.separation(ns(separation));
            }
            if merges {
                log = log.overrun(Overrun::Merge);
            }
            if let Some(taking) = reads {
                log = log.input(input("end.out", taking));
            }
            let (latency, reaction, age) = limits;
            let whole = path.iter().copied().chain(["filter", "end"]);
            let whole = ChainBuilder::new("whole", whole).latency(ns(latency)).reaction(ns(reaction));
            let logged = ChainBuilder::new("logged", [after, "filter", "end", "log"]).age(ns(age));
            let system = System::builder("data").strategy(strategy).lane_dispatch(dispatch).seed(seed);
            let system = system.node("one", [0]).node("other", [1]).link(links.link());
            let system = system.task(source);
            let filter = filter.output(OutputBuilder::new("out"));
            let filter = if with_filter { filter.event(subscribing.event("T/Filter", 3)) } else { filter };
            let out = OutputBuilder::new("out").field("x", FieldValues::Uniform(0, 2));
            let end = end.output(out).event(subscribing.event("T/End", 2));
            let alarmed = ChainBuilder::new("alarmed", [after, "filter", "end", "alarm"]);
            let alarmed = alarmed.latency(ns(latency)).reaction(ns(reaction)).age(ns(age));
            let short = ChainBuilder::new("short", ["end", "alarm"]).reaction(ns(reaction));
            let system = system.channel("c", QosSettings::new());
            let system = system.task(filter).task(end).task(log).task(alarm).chain(alarmed).chain(short);
            system.chain(whole).chain(logged).sync(Synchronisation::Greedy).build().expect("a system")
        },
    )
}

fn source(beginning: Beginning) -> (TaskBuilder, Vec<&'static str>) {
    let out = || OutputBuilder::new("out");
    match beginning {
        Beginning::Rated(rated, Going { wcet, taking, beside }) => {
            let task = rated.task("source");
            let read = SubtaskBuilder::new("read").wcet(work(rated.wcet)).on("one").output(out());
            let estimate = SubtaskBuilder::new("estimate").wcet(work(wcet)).on(rated.node).output(out());
            let estimate = match taking {
                None => estimate,
                Some(None) => estimate.input(InputBuilder::new("in").from("source.read.out")),
                Some(Some(taking)) => estimate.input(input("source.read.out", taking)),
            };
            let task = match beside {
                None => task.subtask(read).subtask(estimate.after(["read"])),
                Some((wcet, node, join)) => {
                    let beside =
                        SubtaskBuilder::new("beside").wcet(work(wcet)).on(node).after([] as [&str; 0]);
                    let estimate = estimate.after(["read", "beside"]).join(join);
                    // Instances are merged only where one subtask begins.
                    let task =
                        if rated.overrun == Overrun::Merge { task.overrun(Overrun::Queue) } else { task };
                    task.subtask(read).subtask(beside).subtask(estimate)
                }
            };
            (task, vec!["source.read", "source.estimate"])
        }
        Beginning::Outside(separation, burst, excess) => {
            let task = TaskBuilder::external("source", ns(separation)).burst(burst).excess(excess);
            (task.deadline(ns(30)).wcet(work(1)).on("one").output(out()), vec!["source"])
        }
    }
}
