//! Channels: what operations push, who is released by it, and chains that lead through.

use super::{micros, one_of};
use rand::{Rng, RngExt};
use talea_event::TypePattern;
use talea_event::qos::{DiscardPolicy, OrderPolicy, QosSettings};
use talea_model::{
    Chain, Channel, Collect, Communication, Condition, Criticality, Description, EventTake, EventTypeName,
    Excess, Execution, FieldValues, Join, Mapped, OperationAddress, Overrun, Publication, Separation,
    Subscription, Subtask, Synchronisation, SyntheticField, Task, Trigger,
};
use talea_time::{Duration, Work};

/// An event that some operation pushes, and where it is.
struct Pushed {
    channel: usize,
    event_type: EventTypeName,
    operation: OperationAddress,
    node: usize,
}

/// Adds channels, what operations push into them, tasks that are released by it, and chains.
pub fn add(description: &mut Description, rng: &mut impl Rng) {
    for channel in 0..one_of(rng, &[1, 1, 2]) {
        description.channels.push(Channel { name: format!("c{channel}"), qos: qos(rng) });
    }
    let mut pushed = Vec::new();
    for task in 0..description.tasks.len() {
        publish(description, rng, task, &mut pushed);
    }
    for number in 0..rng.random_range(1..=3) {
        if pushed.is_empty() {
            return;
        }
        let causes = subscribe(description, rng, number, &pushed);
        let task = description.tasks.len() - 1;
        chains(description, rng, (number, task), causes);
        publish(description, rng, task, &mut pushed);
    }
}

/// Events have fields in their headers, and subscriptions ask for these: by filters, and for priorities and timeouts.
pub fn head(description: &mut Description, rng: &mut impl Rng) {
    let subtasks = description.tasks.iter_mut().flat_map(|task| &mut task.subtasks);
    for publication in subtasks.flat_map(|subtask| &mut subtask.events) {
        if rng.random_ratio(1, 2) {
            let field = |name: &str, values| SyntheticField { name: name.into(), values };
            publication.header_fields.push(field("leg", FieldValues::Uniform(0, 9)));
            let wide = FieldValues::Uniform(i64::MIN, i64::MAX);
            (0..one_of(rng, &[0, 1, 40])).for_each(|number| {
                publication.header_fields.push(field(&format!("wide{number}"), wide.clone()));
            });
        }
    }
    const ASKED: [&str; 4] = [
        "$.header.variable_header(leg) < 5",
        "exist $.header.variable_header(wide0)",
        "$.header.variable_header(leg) == x",
        "not (exist $.header.variable_header(leg))",
    ];
    let subscriptions = description.tasks.iter_mut().flat_map(|task| {
        let releasing = match &mut task.trigger {
            Some(Trigger::Events(subscription)) => Some(subscription),
            _ => None,
        };
        releasing
            .into_iter()
            .chain(task.subtasks.iter_mut().filter_map(|subtask| subtask.subscription.as_mut()))
    });
    for subscription in subscriptions {
        if rng.random_ratio(1, 2) {
            subscription.filter = Some(one_of(rng, &ASKED).into());
        }
        if let Some(Mapped { filter: Some(filter), .. }) = subscription.priority_by.first_mut() {
            *filter = one_of(rng, &ASKED).into();
        }
        if let Some(Mapped { filter: Some(filter), .. }) = subscription.timeout_by.first_mut() {
            *filter = one_of(rng, &ASKED).into();
        }
    }
}

fn qos(rng: &mut impl Rng) -> QosSettings {
    let order =
        one_of(rng, &[OrderPolicy::Any, OrderPolicy::Fifo, OrderPolicy::Priority, OrderPolicy::Deadline]);
    let discards = [
        DiscardPolicy::Any,
        DiscardPolicy::Fifo,
        DiscardPolicy::Lifo,
        DiscardPolicy::Priority,
        DiscardPolicy::Deadline,
    ];
    let qos = QosSettings::new().max_events(one_of(rng, &[1, 3, 20, 100]));
    let qos = if rng.random_ratio(1, 3) { qos.order(order) } else { qos };
    let qos = if rng.random_ratio(1, 3) { qos.discard(one_of(rng, &discards)) } else { qos };
    if rng.random_ratio(1, 4) { qos.timeout(micros(one_of(rng, &[700, 6_000, 90_000]))) } else { qos }
}

/// Some operations of the task push something.
fn publish(description: &mut Description, rng: &mut impl Rng, task: usize, pushed: &mut Vec<Pushed>) {
    for subtask in 0..description.tasks[task].subtasks.len() {
        if !rng.random_ratio(1, 2) {
            continue;
        }
        let name = format!("t{task}s{subtask}");
        let event_type = EventTypeName { domain: "T".into(), name };
        let channel = rng.random_range(0..description.channels.len());
        let publication = Publication {
            channel,
            event_type: event_type.clone(),
            bytes: one_of(rng, &[8, 64]),
            fields: vec![SyntheticField { name: "x".into(), values: FieldValues::Uniform(0, 9) }],
            header_fields: Vec::new(),
            priority: rng.random_ratio(1, 2).then(|| rng.random_range(-3..4)),
            timeout: rng.random_ratio(1, 5).then(|| micros(one_of(rng, &[900, 9_000]))),
            source: 0,
        };
        let subtasks = &mut description.tasks[task].subtasks;
        subtasks[subtask].events.push(publication);
        let operation = OperationAddress { task, subtask };
        pushed.push(Pushed { channel, event_type, operation, node: subtasks[subtask].node });
    }
}

/// What events with small fields have, and perhaps what all others do; mostly nothing.
fn mapping<R: Rng, Value>(rng: &mut R, mut value: impl FnMut(&mut R) -> Value) -> Vec<Mapped<Value>> {
    if !rng.random_ratio(1, 4) {
        return Vec::new();
    }
    let mut entries = vec![Mapped::when("x < 3", value(rng))];
    if rng.random_ratio(1, 2) {
        entries.push(Mapped::when("x > 7", value(rng)));
    }
    if rng.random_ratio(1, 2) {
        entries.push(Mapped::otherwise(value(rng)));
    }
    entries
}

/// Some operations take what is pushed on their nodes when something else has released them.
pub fn take(description: &mut Description, rng: &mut impl Rng) {
    let node = |of: OperationAddress| description.tasks[of.task].subtasks[of.subtask].node;
    let pushed = description.publications().map(|(address, publication)| Pushed {
        channel: publication.channel,
        event_type: publication.event_type.clone(),
        operation: address.operation,
        node: node(address.operation),
    });
    let pushed: Vec<Pushed> = pushed.collect();
    for task in description.tasks.iter_mut().filter(|task| task.communication == Communication::Implicit) {
        let has_events = matches!(task.trigger, Some(Trigger::Events(_)));
        for subtask in &mut task.subtasks {
            let here: Vec<&Pushed> = pushed.iter().filter(|one| one.node == subtask.node).collect();
            let may_take = !(here.is_empty() || has_events && subtask.after.is_empty());
            if may_take && rng.random_ratio(1, 4) {
                let own = subscription(rng, &here).0;
                let take = one_of(rng, &[EventTake::Next, EventTake::All]);
                subtask.subscription = Some(Subscription { take, ..own });
            }
        }
    }
}

/// A subscription to some of what is pushed into one channel on one node, with what that is.
fn subscription<'p>(rng: &mut impl Rng, pushed: &[&'p Pushed]) -> (Subscription, Vec<&'p Pushed>) {
    let first = pushed[rng.random_range(0..pushed.len())];
    let (channel, node) = (first.channel, first.node);
    let is_first = |other: &&Pushed| std::ptr::eq(*other, first);
    let mut wanted: Vec<&Pushed> = pushed
        .iter()
        .copied()
        .filter(|other| is_first(other) || other.channel == channel && other.node == node)
        .filter(|other| is_first(other) || rng.random_ratio(1, 3))
        .collect();
    wanted.truncate(4);
    let types: Vec<TypePattern> =
        wanted.iter().map(|one| TypePattern::exactly(&one.event_type.domain, &one.event_type.name)).collect();
    let collect =
        (types.len() > 1 && rng.random_ratio(1, 3)).then(|| one_of(rng, &[Collect::First, Collect::Latest]));
    let filter = rng.random_ratio(1, 4).then(|| "x < 6".to_owned());
    let within = collect.and_then(|_| rng.random_ratio(1, 2).then_some(micros(15_000)));
    let condition = match collect {
        None => Condition::of_types(types),
        Some(collect) => {
            let parts = types.into_iter().map(|one| Condition::of_types([one])).collect();
            Condition::All { parts, collect, within }
        }
    };
    let qos = if rng.random_ratio(1, 2) { qos(rng) } else { QosSettings::new() };
    let priority_by = mapping(rng, |rng| rng.random_range(-3..4));
    let timeout_by = mapping(rng, |rng| micros(one_of(rng, &[800, 7_000, 80_000])));
    (Subscription { channel, condition, filter, priority_by, timeout_by, take: EventTake::Next, qos }, wanted)
}

/// A task that has some of what is pushed into one channel on one node. Returns who pushes it.
fn subscribe(
    description: &mut Description,
    rng: &mut impl Rng,
    number: usize,
    pushed: &[Pushed],
) -> Vec<OperationAddress> {
    let all: Vec<&Pushed> = pushed.iter().collect();
    let (subscription, wanted) = subscription(rng, &all);
    let node = wanted[0].node;
    let separation = rng.random_ratio(1, 3).then(|| Separation {
        separation: micros(one_of(rng, &[1_000, 3_000, 9_000])),
        burst: one_of(rng, &[1, 1, 4]),
        excess: one_of(rng, &[Excess::Defer, Excess::Count]),
    });
    let subtasks = one_of(rng, &[1, 1, 2, 3]);
    // Several begin with an event only where no guard keeps releases apart.
    let firsts = if separation.is_none() && subtasks > 1 { one_of(rng, &[1, 2]) } else { 1 };
    let own = micros(one_of(rng, &[2_000, 10_000, 60_000]));
    let mut handed_on = wanted.iter().map(|one| description.tasks[one.operation.task].deadline);
    let handed_on = handed_on.next().filter(|first| handed_on.all(|other| other == *first));
    let may_inherit = separation.is_none() && subscription.condition.comes_at_once();
    let inherited = handed_on.filter(|_| may_inherit && rng.random_ratio(1, 2));
    let (deadline, inherits) = (inherited.unwrap_or(own), inherited.is_some());
    description.tasks.push(Task {
        name: format!("e{number}"),
        // What follows from what releases it.
        period: deadline,
        deadline,
        phase: Duration::ZERO,
        jitter: Duration::ZERO,
        criticality: one_of(rng, Criticality::ALL),
        importance: 0,
        trigger: Some(Trigger::Events(subscription)),
        inherits_deadline: inherits,
        inherits_criticality: false,
        separation,
        communication: Communication::Implicit,
        overrun: Overrun::Queue,
        sync: Synchronisation::Greedy,
        subtasks: (0..subtasks).map(|place| subtask(rng, (place, firsts), node)).collect(),
    });
    wanted.iter().map(|one| one.operation).collect()
}

/// One of those of a task that begins with so many; the others come after all that stand before them.
fn subtask(rng: &mut impl Rng, (place, firsts): (usize, usize), node: usize) -> Subtask {
    let wcet = Work::from_micros(one_of(rng, &[20, 100, 400]));
    Subtask {
        name: format!("s{place}"),
        node,
        lanes: None,
        wcet,
        exec: match rng.random_range(0..2) {
            0 => Execution::Uniform(Work::from_nanos(wcet.as_nanos() / 2), wcet),
            _ => Execution::Constant(wcet),
        },
        after: if place < firsts { Vec::new() } else { (0..place).collect() },
        join: Join::All,
        bound: None,
        outputs: Vec::new(),
        inputs: Vec::new(),
        events: Vec::new(),
        subscription: None,
    }
}

/// A chain from one of those that push to the end of the task.
fn chains(
    description: &mut Description,
    rng: &mut impl Rng,
    (number, task): (usize, usize),
    causes: Vec<OperationAddress>,
) {
    let cause = causes[rng.random_range(0..causes.len())];
    let subtasks = &description.tasks[task].subtasks;
    let firsts = subtasks.iter().filter(|subtask| subtask.after.is_empty()).count();
    let first = rng.random_range(0..firsts);
    let rest = std::iter::once(first).chain(firsts..subtasks.len());
    let rest = rest.map(|subtask| OperationAddress { task, subtask });
    let limit = |rng: &mut dyn Rng| (rng.random_ratio(1, 2)).then_some(micros(20_000));
    description.chains.push(Chain {
        name: format!("chain {number}"),
        path: std::iter::once(cause).chain(rest).collect(),
        latency: limit(rng),
        reaction: limit(rng),
        age: limit(rng),
    });
}
