//! Random systems that break no rule, with what operations exchange, what triggers tasks, and chains.

use proptest::collection::{hash_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::collections::BTreeSet;
use std::sync::Arc;
use talea_event::qos::QosSettings;
use talea_model::{
    CPU_LIMIT, ChainBuilder, Collect, Communication, Condition, Criticality, EventTake, Excess, Execution,
    FieldValues, Full, InputBuilder, Join, LaneDispatch, Late, Laxity, LinkBuilder, LossRate, Mapped,
    OnValue, Output, OutputBuilder, OutsideArrivals, Overhead, Overrun, PORT_LIMIT, PublicationBuilder,
    Separation, SubscriptionBuilder, SubtaskBuilder, Synchronisation, SyntheticField, System, SystemBuilder,
    TIME_LIMIT, TaskBuilder, TriggerBuilder,
};
use talea_time::{Duration, Work};

const LONGEST_NS: i64 = TIME_LIMIT.as_nanos();

fn name() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_µß-]{1,20}"
}

fn time(least: i64) -> impl Strategy<Value = Duration> {
    (least..=LONGEST_NS).prop_map(Duration::from_nanos)
}

fn work(least: i64) -> impl Strategy<Value = Work> {
    (least..=LONGEST_NS).prop_map(Work::from_nanos)
}

fn execution() -> impl Strategy<Value = Execution> {
    prop_oneof![
        work(0).prop_map(Execution::Constant),
        (work(0), work(0)).prop_map(|(a, b)| Execution::Uniform(a.min(b), a.max(b))),
        vec(work(0), 1..5).prop_map(|works| Execution::List(Arc::from(works))),
    ]
}

/// A subtask; indices are taken modulo what there is, and names are made unique by position.
#[derive(Clone, Debug)]
struct DrawnSubtask {
    name: String,
    node: Index,
    wcet: Work,
    exec: Option<Execution>,
    after: Option<Vec<Index>>,
    join: Option<Index>,
    bound: Option<Duration>,
    outputs: Vec<DrawnOutput>,
    inputs: Vec<DrawnInput>,
    events: Vec<DrawnEvent>,
    taken: Option<DrawnSubscription>,
}

/// Fields of what events carry, and of their headers.
type DrawnFields = [Vec<(String, FieldValues)>; 2];

/// Channel, bytes beyond those of the fields, fields, priority and timeout.
type DrawnEvent = (Index, u32, DrawnFields, Option<i16>, Option<Duration>);

/// Name, bytes beyond those of the fields, and fields.
type DrawnOutput = (String, u32, Vec<(String, FieldValues)>);

/// Name, the output among all, and what is asked of it.
type DrawnInput = (String, Index, DrawnTake);

#[derive(Clone, Debug)]
enum DrawnTake {
    Preset,
    Latest,
    Each { capacity: u32, full: Full },
}

#[derive(Clone, Debug)]
struct DrawnTask {
    period: Duration,
    deadline: Duration,
    phase: Duration,
    jitter: Index,
    level: u8,
    importance: i32,
    overrun: Overrun,
    sync: Synchronisation,
    communication: Communication,
    release: DrawnRelease,
    subtasks: Vec<DrawnSubtask>,
}

#[derive(Clone, Debug)]
enum DrawnRelease {
    Periodic,
    Outside {
        separation: Separation,
        arrivals: OutsideArrivals,
    },
    /// By an output among those of the tasks before it; every so many as leave the period in its range.
    Values {
        output: Index,
        every: Index,
        on: OnValue,
        separation: Option<Separation>,
    },
    /// By events among those of the tasks before it.
    Events {
        subscription: DrawnSubscription,
        separation: Option<Separation>,
    },
}

/// Which events of those that there are, and what is asked of them.
#[derive(Clone, Debug)]
struct DrawnSubscription {
    picks: Vec<Index>,
    /// Also how many times.
    all: Option<(Collect, Option<Duration>, Option<u32>)>,
    filtered: bool,
    mapped: DrawnMapping,
    /// Where something else releases it.
    take: EventTake,
    qos: QosSettings,
}

/// Priorities, timeouts, and whether the last ones are those of all others.
type DrawnMapping = (Vec<i16>, Vec<Duration>, bool);

fn entries<Value: Copy>(values: &[Value], others: bool) -> Vec<Mapped<Value>> {
    let entry = |(place, value): (usize, &Value)| match others && place + 1 == values.len() {
        true => Mapped::otherwise(*value),
        false => Mapped::when(format!("$source > {place} and $type_name != '\"'"), *value),
    };
    values.iter().enumerate().map(entry).collect()
}

fn field() -> impl Strategy<Value = (String, FieldValues)> {
    let values = prop_oneof![
        any::<i64>().prop_map(FieldValues::Constant),
        any::<(i64, i64)>().prop_map(|(a, b)| FieldValues::Uniform(a.min(b), a.max(b))),
        vec(any::<i64>(), 1..4).prop_map(|numbers| FieldValues::List(numbers.into())),
    ];
    (name(), values)
}

fn output() -> impl Strategy<Value = DrawnOutput> {
    (name(), 0..=Output::BYTES_LIMIT - 100, vec(field(), 0..4))
}

fn input() -> impl Strategy<Value = DrawnInput> {
    let full =
        prop_oneof![Just(Full::Oldest), Just(Full::Newest), time(1).prop_map(|limit| Full::Block { limit }),];
    let take = prop_oneof![
        Just(DrawnTake::Preset),
        Just(DrawnTake::Latest),
        (1..=PORT_LIMIT as u32, full).prop_map(|(capacity, full)| DrawnTake::Each { capacity, full }),
    ];
    (name(), any::<Index>(), take)
}

prop_compose! {
    fn subtask()(
        name in name(),
        node in any::<Index>(),
        wcet in work(1),
        exec in option::of(execution()),
        (after, join) in (option::of(vec(any::<Index>(), 0..3)), option::of(any::<Index>())),
        bound in option::of(time(1)),
        outputs in vec(output(), 0..3),
        inputs in vec(input(), 0..3),
        (events, taken) in (vec(event(), 0..3), option::weighted(0.3, subscription())),
    ) -> DrawnSubtask {
        DrawnSubtask { name, node, wcet, exec, after, join, bound, outputs, inputs, events, taken }
    }
}

fn event() -> impl Strategy<Value = DrawnEvent> {
    (
        any::<Index>(),
        0..Output::BYTES_LIMIT - 100,
        [vec(field(), 0..3), vec(field(), 0..3)],
        option::of(-32_767i16..=32_767),
        option::of(time(1)),
    )
}

fn qos() -> impl Strategy<Value = QosSettings> {
    use talea_event::qos::{DiscardPolicy, OrderPolicy};
    let orders = [OrderPolicy::Any, OrderPolicy::Fifo, OrderPolicy::Priority, OrderPolicy::Deadline];
    let discards =
        [DiscardPolicy::Fifo, DiscardPolicy::Lifo, DiscardPolicy::Priority, DiscardPolicy::Deadline];
    let some =
        (option::of(select(orders.to_vec())), option::of(select(discards.to_vec())), option::of(1u32..100));
    let time = option::of((0..1_000_000i64).prop_map(Duration::from_micros));
    (some, time, option::of(-9i16..9)).prop_map(|((order, discard, most), timeout, priority)| {
        let mut qos = QosSettings::new();
        qos = order.into_iter().fold(qos, QosSettings::order);
        qos = discard.into_iter().fold(qos, QosSettings::discard);
        qos = most.into_iter().fold(qos, QosSettings::max_events);
        qos = timeout.into_iter().fold(qos, QosSettings::timeout);
        priority.into_iter().fold(qos, QosSettings::priority)
    })
}

fn separation() -> impl Strategy<Value = Separation> {
    (time(1), 1..=PORT_LIMIT as u32, select(Excess::ALL)).prop_map(|(separation, burst, excess)| Separation {
        separation,
        burst,
        excess,
    })
}

fn arrivals(separation: Duration) -> impl Strategy<Value = OutsideArrivals> {
    let least = separation.as_nanos();
    prop_oneof![
        Just(OutsideArrivals::None),
        (time(1), any::<Index>()).prop_map(|(period, jitter)| OutsideArrivals::Periodic {
            period,
            jitter: Duration::from_nanos(jitter.index(period.as_nanos() as usize) as i64),
        }),
        time(least).prop_map(|mean| OutsideArrivals::Sporadic { mean }),
        time(1).prop_map(|mean| OutsideArrivals::Poisson { mean }),
        vec(time(0), 1..4).prop_map(|mut times| {
            times.sort_unstable();
            OutsideArrivals::Listed(times.into())
        }),
    ]
}

fn subscription() -> impl Strategy<Value = DrawnSubscription> {
    let all = option::of((select(Collect::ALL), option::of(time(1)), option::of(2u32..9)));
    let mapped = (vec(-32_767..=i16::MAX, 0..4), vec(time(1), 0..4), any::<bool>());
    let take = select(EventTake::ALL);
    (vec(any::<Index>(), 1..4), all, any::<bool>(), mapped, (take, qos())).prop_map(
        |(picks, all, filtered, mapped, (take, qos))| DrawnSubscription {
            picks,
            all,
            filtered,
            mapped,
            take,
            qos,
        },
    )
}

fn release() -> impl Strategy<Value = DrawnRelease> {
    let outside = separation().prop_flat_map(|separation| {
        arrivals(separation.separation)
            .prop_map(move |arrivals| DrawnRelease::Outside { separation, arrivals })
    });
    let values = (any::<(Index, Index)>(), select(OnValue::ALL), option::of(separation()))
        .prop_map(|((output, every), on, separation)| DrawnRelease::Values { output, every, on, separation });
    let events = (subscription(), option::of(separation()))
        .prop_map(|(subscription, separation)| DrawnRelease::Events { subscription, separation });
    prop_oneof![2 => Just(DrawnRelease::Periodic), 1 => outside, 2 => values, 2 => events]
}

prop_compose! {
    fn task()(
        (period, deadline, phase, jitter) in (time(2), time(1), time(0), any::<Index>()),
        (level, importance) in (0u8..=4, any::<i32>()),
        (overrun, sync) in (select(Overrun::ALL), select(Synchronisation::ALL)),
        communication in select(Communication::ALL),
        release in release(),
        subtasks in vec(subtask(), 1..6),
    ) -> DrawnTask {
        DrawnTask {
            period, deadline, phase, jitter, level, importance, overrun, sync, communication, release, subtasks,
        }
    }
}

fn settings() -> impl Strategy<Value = SystemBuilder> {
    let words = (
        select(talea_model::Strategy::ALL),
        select(LaneDispatch::ALL),
        select(Laxity::ALL),
        select(Late::ALL),
    );
    let costs = (work(0), work(0), work(0), work(0), any::<u64>());
    (name(), words, costs).prop_map(|(name, (strategy, dispatch, laxity, late), costs)| {
        let (switch, queue, timer, message, seed) = costs;
        System::builder(name)
            .strategy(strategy)
            .lane_dispatch(dispatch)
            .laxity(laxity)
            .late(late)
            .seed(seed)
            .overhead(Overhead {
                switch,
                queue,
                timer,
                message,
                push: timer,
                filter: switch,
                delivery: queue,
            })
    })
}

/// Whom a link joins, delay, jitter and loss; nodes are taken modulo what there is.
type Joint = (Option<(Index, Index, bool)>, Work, Work, u32);

fn link() -> impl Strategy<Value = Joint> {
    (option::of(any::<(Index, Index, bool)>()), work(0), work(0), 0..=1_000_000_000_u32)
}

/// The links among these that join nodes which none before them joins.
fn linked(mut system: SystemBuilder, nodes: usize, links: Vec<Joint>) -> SystemBuilder {
    let mut joined = std::collections::HashSet::new();
    for (ends, delay, jitter, loss) in links {
        let name = |node: usize| format!("node-{node}");
        let (link, directions) = match ends.map(|(a, b, both)| (a.index(nodes), b.index(nodes), both)) {
            None => (LinkBuilder::others(), vec![None]),
            Some((a, b, true)) => (LinkBuilder::between(name(a), name(b)), vec![Some((a, b)), Some((b, a))]),
            Some((a, b, false)) => (LinkBuilder::from_to(name(a), name(b)), vec![Some((a, b))]),
        };
        let is_same = matches!(ends, Some((a, b, _)) if a.index(nodes) == b.index(nodes));
        if !is_same && directions.iter().all(|direction| !joined.contains(direction)) {
            joined.extend(directions);
            let loss = LossRate::from_billionths(loss).expect("at most all");
            system = system.link(link.delay(delay.at_full_speed()).jitter(jitter.at_full_speed()).loss(loss));
        }
    }
    system
}

/// The first connection, further ones along it, and limits.
type DrawnChain = (Index, Vec<Index>, [Option<Duration>; 3]);

fn chain() -> impl Strategy<Value = DrawnChain> {
    let limit = || option::of(time(1));
    (any::<Index>(), vec(any::<Index>(), 0..4), (limit(), limit(), limit()))
        .prop_map(|(first, further, (latency, reaction, age))| (first, further, [latency, reaction, age]))
}

prop_compose! {
    pub fn any_system()(
        settings in settings(),
        node_cpus in vec(hash_set(0u16..CPU_LIMIT, 1..4), 1..4),
        links in vec(link(), 0..4),
        channels in vec(qos(), 1..3),
        tasks in vec(task(), 1..5),
        chains in vec(chain(), 0..4),
    ) -> System {
        let nodes = node_cpus.len();
        let mut system = settings;
        for (index, cpus) in node_cpus.into_iter().enumerate() {
            system = system.node(format!("node-{index}"), cpus);
        }
        system = linked(system, nodes, links);
        let count = channels.len();
        for (index, qos) in channels.into_iter().enumerate() {
            system = system.channel(format!("channel-{index}"), qos);
        }
        let mut drawn = Drawn { tasks, nodes, channels: count, periods: Vec::new(), connections: BTreeSet::new() };
        for number in 0..drawn.tasks.len() {
            system = system.task(drawn.task(number));
        }
        for (number, chain) in chains.into_iter().enumerate() {
            if let Some(chain) = drawn.chain(&format!("chain {number}"), chain) {
                system = system.chain(chain);
            }
        }
        system.build().expect("generated systems are valid")
    }
}

/// A type that only this operation publishes.
fn event_type((task, subtask): Step, index: usize) -> String {
    format!("Task{task}/Step{subtask}-{index}")
}

/// Events that an operation pushes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PublishedEvent {
    by: Step,
    channel: usize,
    event_type: String,
}

/// A subscription as it was drawn.
struct Subscribed {
    builder: SubscriptionBuilder,
    /// What it is to.
    wanted: Vec<PublishedEvent>,
    /// Whether it waits for all of these.
    is_conjunction: bool,
}

impl DrawnSubscription {
    /// To some of these, of one channel, each type once.
    fn to(&self, published: &[PublishedEvent]) -> Subscribed {
        let DrawnSubscription { picks, all, filtered, mapped, take: _, qos } = self;
        let picked: Vec<_> = picks.iter().map(|pick| &published[pick.index(published.len())]).collect();
        let channel = picked[0].channel;
        let mut wanted: Vec<_> =
            picked.into_iter().filter(|event| event.channel == channel).cloned().collect();
        wanted.sort();
        wanted.dedup();
        let types = wanted.iter().map(|event| event.event_type.clone());
        let subscription = SubscriptionBuilder::new(format!("channel-{channel}")).qos(qos.clone());
        let is_conjunction = all.is_some() && wanted.len() > 1;
        let mut builder = match (all, is_conjunction) {
            (Some((collect, within, count)), true) => {
                let all = Condition::all(*collect, types.map(|one| one.parse().expect("a type")));
                let all = count.iter().fold(all, |all, count| Condition::times(*count, all));
                subscription.when(within.iter().fold(all, |all, within| all.within(*within)))
            }
            _ => subscription.types(types),
        };
        if *filtered {
            // A name with letters that names in constraints do not have is written with quotes there.
            builder = builder.filter("$priority > 3 or not exist $priority");
        }
        let (priorities, timeouts, others) = mapped;
        builder = builder.priority_by(entries(priorities, *others));
        builder = builder.timeout_by(entries(timeouts, *others));
        Subscribed { builder, wanted, is_conjunction }
    }
}

/// A task and a subtask by index.
type Step = (usize, usize);

/// What was drawn, made valid where its parts relate to each other.
struct Drawn {
    tasks: Vec<DrawnTask>,
    nodes: usize,
    channels: usize,
    /// Of the tasks that were made, with those that follow from others.
    periods: Vec<Duration>,
    /// From the first operation to the second.
    connections: BTreeSet<(Step, Step)>,
}

impl Drawn {
    fn step_name(&self, (task, subtask): Step) -> String {
        format!("{}-{subtask}", self.tasks[task].subtasks[subtask].name)
    }

    fn operation_name(&self, step: Step) -> String {
        let (task, name) = (format!("task-{}", step.0), self.step_name(step));
        if self.tasks[step.0].subtasks.len() == 1 && name == task { task } else { format!("{task}.{name}") }
    }

    fn output_name(&self, (step, output): (Step, usize)) -> String {
        let name = &self.tasks[step.0].subtasks[step.1].outputs[output].0;
        format!("{}.{name}-{output}", self.operation_name(step))
    }

    /// All outputs of the tasks that `suitable` takes.
    fn outputs(&self, suitable: impl Fn(usize) -> bool) -> Vec<(Step, usize)> {
        let mut found = Vec::new();
        for (index, task) in self.tasks.iter().enumerate().filter(|(index, _)| suitable(*index)) {
            for (position, subtask) in task.subtasks.iter().enumerate() {
                found.extend((0..subtask.outputs.len()).map(|output| ((index, position), output)));
            }
        }
        found
    }

    /// What the operations of the first so many tasks publish on the node of this one.
    fn events_of(&self, tasks: usize, here: Step) -> Vec<PublishedEvent> {
        let node = |subtask: &DrawnSubtask| subtask.node.index(self.nodes);
        let here = node(&self.tasks[here.0].subtasks[here.1]);
        let mut found = Vec::new();
        for (task, drawn) in self.tasks[..tasks].iter().enumerate().filter(|(task, _)| !self.is_let(*task)) {
            for (position, subtask) in drawn.subtasks.iter().enumerate().filter(|(_, of)| node(of) == here) {
                for (index, (channel, ..)) in subtask.events.iter().enumerate() {
                    let (by, channel) = ((task, position), channel.index(self.channels));
                    found.push(PublishedEvent { by, channel, event_type: event_type(by, index) });
                }
            }
        }
        found
    }

    /// What a task has that awaits events; none if there is nothing for it.
    fn subscription(&self, number: usize) -> Option<(SubscriptionBuilder, Duration, Option<Separation>)> {
        let drawn = &self.tasks[number];
        let DrawnRelease::Events { subscription, separation } = &drawn.release else { return None };
        let firsts: Vec<usize> =
            (0..drawn.subtasks.len()).filter(|at| self.predecessors((number, *at)).is_empty()).collect();
        let node = |at: &usize| drawn.subtasks[*at].node.index(self.nodes);
        let before = self.events_of(number, (number, 0));
        if before.is_empty() || firsts.iter().any(|first| node(first) != node(&0)) {
            return None;
        }
        let Subscribed { builder, wanted, is_conjunction } = subscription.to(&before);
        let periods = wanted.iter().map(|event| event.by.0).collect::<Vec<_>>();
        let periods = periods.into_iter().map(|task| i128::from(self.periods[task].as_nanos()));
        let period = match is_conjunction {
            true => periods.max(),
            false => periods.reduce(|one, other| (one * other / (one + other)).max(1)),
        };
        let separation =
            separation.filter(|separation| separation.excess != Excess::Drop && firsts.len() == 1);
        Some((builder, Duration::from_nanos(period? as i64), separation))
    }

    /// What jobs of an operation take that something else releases, if anything.
    fn taken(&self, step: Step) -> Option<Subscribed> {
        let has_others = self.predecessors(step).is_empty()
            && matches!(self.tasks[step.0].release, DrawnRelease::Events { .. });
        let published = self.events_of(self.tasks.len(), step);
        let drawn = self.tasks[step.0].subtasks[step.1].taken.as_ref()?;
        (!has_others && !self.is_let(step.0) && !published.is_empty()).then(|| {
            let Subscribed { builder, wanted, is_conjunction } = drawn.to(&published);
            Subscribed { builder: builder.take(drawn.take), wanted, is_conjunction }
        })
    }

    fn is_let(&self, task: usize) -> bool {
        let task = &self.tasks[task];
        task.communication == Communication::Let && matches!(task.release, DrawnRelease::Periodic)
    }

    /// The predecessors of a subtask; the one before it unless others were drawn.
    fn predecessors(&self, (task, position): Step) -> BTreeSet<usize> {
        match &self.tasks[task].subtasks[position].after {
            Some(after) if position > 0 => after.iter().map(|index| index.index(position)).collect(),
            _ => position.checked_sub(1).into_iter().collect(),
        }
    }

    fn precedes(&self, earlier: Step, later: Step) -> bool {
        let before = self.predecessors(later);
        earlier.0 == later.0
            && before.iter().any(|before| *before == earlier.1 || self.precedes(earlier, (later.0, *before)))
    }

    fn task(&mut self, number: usize) -> TaskBuilder {
        let drawn = self.tasks[number].clone();
        let name = format!("task-{number}");
        let earlier = self.outputs(|task| task < number && !self.is_let(task));
        let subscription = self.subscription(number);
        let (mut task, period) = match drawn.release {
            DrawnRelease::Events { .. } if subscription.is_some() => {
                let (subscription, period, separation) = subscription.expect("it is there");
                let task = TaskBuilder::triggered_by(name, subscription);
                match separation {
                    Some(limited) => (separated(task, limited), limited.separation),
                    None => (task, period),
                }
            }
            DrawnRelease::Values { output, every, on, separation } if !earlier.is_empty() => {
                let output = earlier[output.index(earlier.len())];
                let producer = self.periods[output.0.0];
                let most = (LONGEST_NS / producer.as_nanos()).clamp(1, u32::MAX.into());
                let every = 1 + every.index(most as usize) as u32;
                for (position, _) in drawn.subtasks.iter().enumerate() {
                    if self.predecessors((number, position)).is_empty() {
                        self.connections.insert((output.0, (number, position)));
                    }
                }
                let trigger = TriggerBuilder::output(self.output_name(output)).every(every).on(on);
                let task = TaskBuilder::triggered_by(name, trigger);
                match separation {
                    Some(limited) => (separated(task, limited), limited.separation),
                    None => (task, producer * i64::from(every)),
                }
            }
            DrawnRelease::Outside { separation, arrivals } => {
                let task = TaskBuilder::triggered_by(name, TriggerBuilder::external()).arrivals(arrivals);
                (separated(task, separation), separation.separation)
            }
            DrawnRelease::Periodic | DrawnRelease::Values { .. } | DrawnRelease::Events { .. } => {
                // What was to be triggered and is not has no logical execution time either.
                let communication = match drawn.release {
                    DrawnRelease::Periodic => drawn.communication,
                    _ => Communication::Implicit,
                };
                self.tasks[number].communication = communication;
                self.tasks[number].release = DrawnRelease::Periodic;
                let jitter = drawn.jitter.index(drawn.period.as_nanos() as usize) as i64;
                let task = TaskBuilder::new(name, drawn.period)
                    .phase(drawn.phase)
                    .jitter(Duration::from_nanos(jitter))
                    .communication(communication);
                (task, drawn.period)
            }
        };
        self.periods.push(period);
        let is_periodic = matches!(self.tasks[number].release, DrawnRelease::Periodic);
        let sync = match drawn.sync {
            Synchronisation::PhaseModification if !is_periodic => Synchronisation::ModifiedPhaseModification,
            sync => sync,
        };
        task = match self.tasks[number].release {
            DrawnRelease::Values { separation: None, .. } if drawn.level == 0 => task.inherit_deadline(),
            _ => task.deadline(drawn.deadline),
        };
        task = task
            .criticality(Criticality::from_level(drawn.level).expect("0 to 4"))
            .importance(drawn.importance)
            .overrun(match self.tasks[number].release {
                DrawnRelease::Events { .. } => Overrun::Queue,
                _ => match drawn.overrun {
                    // It needs one first subtask that takes what there is when it begins.
                    Overrun::Merge if !self.can_merge(number) => Overrun::Queue,
                    overrun => overrun,
                },
            })
            .sync(sync);
        (0..drawn.subtasks.len()).fold(task, |task, position| task.subtask(self.subtask((number, position))))
    }

    fn can_merge(&self, number: usize) -> bool {
        let drawn = &self.tasks[number];
        let firsts = (0..drawn.subtasks.len()).filter(|place| self.predecessors((number, *place)).is_empty());
        firsts.count() == 1 && !self.is_let(number)
    }

    fn subtask(&mut self, step: Step) -> SubtaskBuilder {
        let drawn = self.tasks[step.0].subtasks[step.1].clone();
        let mut subtask = SubtaskBuilder::new(self.step_name(step))
            .wcet(drawn.wcet)
            .on(format!("node-{}", drawn.node.index(self.nodes)));
        if let Some(exec) = drawn.exec {
            subtask = subtask.exec(exec);
        }
        let before = self.predecessors(step);
        self.connections.extend(before.iter().map(|before| ((step.0, *before), step)));
        if let (Some(_), true) = (&drawn.after, step.1 > 0) {
            if let (Some(join), true) = (drawn.join, before.len() > 1) {
                subtask = subtask.join(match join.index(before.len() + 2) {
                    0 => Join::First,
                    1 => Join::All,
                    count => Join::Count(count as u32 - 1),
                });
            }
            subtask = subtask.after(before.iter().map(|before| self.step_name((step.0, *before))));
        }
        if let Some(bound) = drawn.bound {
            subtask = subtask.bound(bound);
        }
        for (index, (name, spare, fields)) in drawn.outputs.into_iter().enumerate() {
            let bytes = spare + fields.len() as u32 * SyntheticField::BYTES;
            let output = OutputBuilder::new(format!("{name}-{index}")).bytes(bytes);
            let fields = fields.into_iter().enumerate();
            subtask = subtask.output(fields.fold(output, |output, (index, (name, values))| {
                output.field(format!("{name}-{index}"), values)
            }));
        }
        // Under logical execution time nobody pushes events.
        let events = drawn.events.into_iter().enumerate().filter(|_| !self.is_let(step.0));
        for (index, (channel, spare, [fields, of_header], priority, timeout)) in events {
            let channel = format!("channel-{}", channel.index(self.channels));
            let bytes = spare + fields.len() as u32 * SyntheticField::BYTES;
            let event = PublicationBuilder::new(channel, event_type(step, index)).bytes(bytes);
            let fields = fields.into_iter().enumerate();
            let event = fields
                .fold(event, |event, (index, (name, values))| event.field(format!("{name}-{index}"), values));
            let of_header = of_header.into_iter().enumerate();
            let event = of_header.fold(event, |event, (index, (name, values))| {
                event.header_field(format!("h-{name}-{index}"), values)
            });
            let event = priority.into_iter().fold(event, PublicationBuilder::priority);
            subtask = subtask.event(timeout.into_iter().fold(event, PublicationBuilder::timeout));
        }
        if let Some(Subscribed { builder, wanted, is_conjunction }) = self.taken(step) {
            subtask = subtask.subscription(builder);
            if !is_conjunction {
                let others = wanted.iter().map(|event| event.by).filter(|by| *by != step);
                self.connections.extend(others.map(|by| (by, step)));
            }
        }
        for (index, (name, output, take)) in drawn.inputs.into_iter().enumerate() {
            let mut others = self.outputs(|_| true);
            others.retain(|(other, _)| *other != step);
            if others.is_empty() {
                break;
            }
            let from = others[output.index(others.len())];
            self.connections.insert((from.0, step));
            let input = InputBuilder::new(format!("{name}-{index}")).from(self.output_name(from));
            subtask = subtask.input(match take {
                DrawnTake::Preset if self.precedes(from.0, step) => input.instance(),
                DrawnTake::Preset => input,
                DrawnTake::Latest => input.latest(),
                DrawnTake::Each { capacity, full } => {
                    input.each().capacity(capacity).full(self.possible(full, from.0, step))
                }
            });
        }
        subtask
    }

    /// Blocking only where the producer may wait for the consumer.
    fn possible(&self, full: Full, producer: Step, consumer: Step) -> Full {
        let may_wait = self.tasks[producer.0].level < 3
            && !self.is_let(producer.0)
            && !self.precedes(producer, consumer)
            && !self.precedes(consumer, producer);
        match full {
            Full::Block { .. } if !may_wait => Full::Newest,
            full => full,
        }
    }

    /// A walk along connections that comes nowhere twice.
    fn chain(&self, name: &str, (first, further, limits): DrawnChain) -> Option<ChainBuilder> {
        let connections: Vec<_> = self.connections.iter().copied().collect();
        if connections.is_empty() {
            return None;
        }
        let (from, to) = connections[first.index(connections.len())];
        let mut path = vec![from, to];
        for index in further {
            let end = path[path.len() - 1];
            let ways: Vec<Step> = connections
                .iter()
                .filter(|(from, to)| *from == end && !path.contains(to))
                .map(|(_, to)| *to)
                .collect();
            if ways.is_empty() {
                break;
            }
            path.push(ways[index.index(ways.len())]);
        }
        let mut chain = ChainBuilder::new(name, path.into_iter().map(|step| self.operation_name(step)));
        let [latency, reaction, age] = limits;
        if let Some(limit) = latency {
            chain = chain.latency(limit);
        }
        if let Some(limit) = reaction {
            chain = chain.reaction(limit);
        }
        if let Some(limit) = age {
            chain = chain.age(limit);
        }
        Some(chain)
    }
}

fn separated(task: TaskBuilder, separation: Separation) -> TaskBuilder {
    let Separation { separation, burst, excess } = separation;
    task.separation(separation).burst(burst).excess(excess)
}
