//! Rules about channels, what is published into them and who subscribes.

use super::criticality::Supply;
use super::ports::{check_bytes, check_fields, check_numbers};
use super::times::{Least, violation_of};
use super::{
    NAME_BYTES_LIMIT, Place, Severity, Spelling, Unresolved, Violation, check_name, check_unique, label,
};
use crate::channel::{
    Condition, EventTake, EventTypeName, Mapped, Publication, PublicationAddress, Subscription,
    SubscriptionOwner,
};
use crate::description::{Description, Overrun, Task};
use crate::operation::OperationAddress;
use crate::ports::{PORT_LIMIT, SyntheticField};
use crate::rate::{Published, comes_every, periods};
use crate::suggest::known_words;
use crate::trigger::{Communication, Excess, Trigger};
use std::collections::{BTreeSet, HashMap};
use talea_etcl::syntax::{Expression, Node, Path, Root, Step, StepKind};
use talea_etcl::{Constraint, VARIABLE_HEADER};
use talea_event::qos::{DiscardPolicy, Level, PropertyName, Qos, QosProblem, QosProblems, QosSettings};
use talea_event::{AnyEvent, FIELDS_BYTES_MOST, FIELDS_MOST, HEADER, KNOWN_FIELDS, TypePattern};
use talea_time::Duration;

/// The most pairs of a publication and a subscription of the same channel.
const PAIRS_LIMIT: usize = 1 << 22;

/// The most conditions of which one consists, itself included.
const CONDITIONS_LIMIT: usize = 64;

/// What a job that takes one event at a time has no use for.
const OF_CALL_BACKS: [PropertyName; 7] = [
    PropertyName::MaximumBatchSize,
    PropertyName::PacingInterval,
    PropertyName::BlockingPolicy,
    PropertyName::MinimumSeparation,
    PropertyName::RetryInterval,
    PropertyName::StartTimeSupported,
    PropertyName::StopTimeSupported,
];

/// Checks all channels, publications and subscriptions. What names a channel that was not found is left alone. Returns who has whose events.
pub(super) fn check(
    description: &Description,
    unresolved: &Unresolved,
    found: &mut Vec<Violation>,
) -> Vec<Supply> {
    let mut supplies = Vec::new();
    let names = description.channels.iter().map(|channel| channel.name.as_str());
    check_unique("channel", "channel", names, found, |channel| Place::Channel(channel, "name"));
    for (index, channel) in description.channels.iter().enumerate() {
        check_name("channel", &channel.name, Spelling::OneWord, Place::Channel(index, "name"), found);
        let subject = || format!("channel \"{}\"", channel.name);
        check_qos(
            (&channel.qos, Level::Channel),
            &Qos::default(),
            Place::Channel(index, "qos"),
            subject,
            found,
        );
    }
    if description.channels.len() > PORT_LIMIT || description.publications().count() > PORT_LIMIT {
        let message = format!("the system has more than {PORT_LIMIT} channels, or events that are published");
        found.push(Violation::error(Place::Whole, message, "describe it as several systems"));
        return supplies;
    }
    let subscribed = description.subscriptions().map(|(_, subscription)| subscription.channel);
    let published = description.publications().map(|(_, publication)| publication.channel);
    let used: BTreeSet<usize> = published.chain(subscribed).collect();
    for (index, channel) in description.channels.iter().enumerate() {
        if !used.contains(&index) {
            let message =
                format!("nobody publishes into channel \"{}\", and nobody subscribes to it", channel.name);
            let remedy = "remove it, or name it in events = [{ channel = ..., type = ... }] of an operation";
            found.push(Violation::warning(Place::Channel(index, "name"), message, remedy));
        }
    }
    let is_known = |place| !unresolved.contains(&place);
    let mut of_channel: HashMap<usize, Vec<(PublicationAddress, &Publication)>> = HashMap::new();
    for (address, publication) in description.publications() {
        let PublicationAddress { operation, event } = address;
        let place = |key| Place::Publication(operation.task, operation.subtask, event, key);
        check_publication(description, address, publication, found);
        if is_known(place("channel")) {
            match publication.channel < description.channels.len() {
                true => of_channel.entry(publication.channel).or_default().push((address, publication)),
                false => found.push(no_such_channel(description, place("channel"), publication.channel)),
            }
        }
    }
    let (mut pairs, mut wanted) = (0, BTreeSet::new());
    let (published, periods) = (Published::of(&description.tasks), periods(&description.tasks));
    let rates = Rates { published: &published, periods: &periods };
    for (owner, subscription) in description.subscriptions() {
        let task = &description.tasks[owner.task()];
        let place = Place::Subscription(owner, "channel");
        let called = match owner {
            SubscriptionOwner::Task(_) => format!("task \"{}\"", task.name),
            SubscriptionOwner::Operation(OperationAddress { subtask, .. }) => {
                label(task, &task.subtasks[subtask])
            }
        };
        let Some(channel) = description.channels.get(subscription.channel) else {
            if is_known(place) {
                found.push(no_such_channel(description, place, subscription.channel));
            }
            continue;
        };
        let published = of_channel.get(&subscription.channel).map_or(&[][..], Vec::as_slice);
        let is_wanted = |(_, publication): &&(PublicationAddress, &Publication)| {
            subscription.leaves_of(publication).is_some()
        };
        pairs += published.len();
        if pairs > PAIRS_LIMIT {
            let message = format!(
                "with {called} channels have more than {PAIRS_LIMIT} pairs of who publishes and who subscribes"
            );
            found.push(Violation::error(place, message, "use several channels"));
            return supplies;
        }
        let matching: Vec<_> = published.iter().filter(is_wanted).collect();
        wanted.extend(matching.iter().map(|(address, _)| *address));
        let above = Qos::default().with(&channel.qos, Level::Channel).unwrap_or_default();
        let subject = || format!("the subscription of {called}");
        let settings = (&subscription.qos, Level::Proxy);
        check_qos(settings, &above, Place::Subscription(owner, "qos"), subject, found);
        let is_read = |key| is_known(Place::Subscription(owner, key));
        let is_resolved = is_known(place) && is_read("types") && is_read("when");
        if is_resolved {
            let had = matching.iter().filter(|(_, publication)| subscription.hands_on(publication));
            let suppliers: BTreeSet<usize> = had.map(|(address, _)| address.operation.task).collect();
            let place = Place::Subscription(owner, key_of(subscription));
            let what = match owner {
                SubscriptionOwner::Task(_) => "events that release",
                SubscriptionOwner::Operation(_) => "events that go to",
            };
            let supply = |supplier| Supply { supplier, consumer: owner.task(), place, what };
            supplies.extend(suppliers.into_iter().map(supply));
            let subscribed = Subscribed { description, owner, called: &called, task, subscription, matching };
            subscribed.check(&above, rates, found);
        }
    }
    for (address, publication) in
        of_channel.values().flatten().filter(|(address, _)| !wanted.contains(address))
    {
        let PublicationAddress { operation, event } = *address;
        let place = Place::Publication(operation.task, operation.subtask, event, "type");
        let task = &description.tasks[operation.task];
        let message = format!(
            "nobody subscribes to the events {} that {} publishes",
            publication.event_type,
            label(task, &task.subtasks[operation.subtask])
        );
        let remedy = "add subscription = { channel = ..., types = [...] } to a task or a subtask; programs may connect consumers of their own";
        found.push(Violation::warning(place, message, remedy));
    }
    supplies
}

fn no_such_channel(description: &Description, place: Place, channel: usize) -> Violation {
    let count = description.channels.len();
    let message = format!("channel number {channel} does not exist");
    Violation::error(place, message, format!("the system has {count} channels, counted from 0"))
}

fn check_qos(
    (settings, level): (&QosSettings, Level),
    above: &Qos,
    place: Place,
    subject: impl Fn() -> String,
    found: &mut Vec<Violation>,
) {
    let mut problems =
        above.with(settings, level).err().map_or_else(Vec::new, |QosProblems(problems)| problems);
    problems.retain(|problem| !OF_CALL_BACKS.iter().any(|property| property.as_str() == problem.property));
    for QosProblem { property, allowed, .. } in problems {
        let message = format!("the property {property} of {} cannot be so", subject());
        found.push(Violation::error(place, message, allowed));
    }
    for (property, _) in settings.iter().filter(|(property, _)| OF_CALL_BACKS.contains(property)) {
        let message = format!("the property {property} of {} has no effect on tasks", subject());
        let remedy = match property {
            PropertyName::MinimumSeparation => {
                "write separation = ... at the task, which the analysis counts with, and MaxEventsPerConsumer = 1 to have only the newest"
            }
            PropertyName::BlockingPolicy => "remove it; jobs that push events wait for nobody",
            _ => {
                "remove it; a job takes one event, and consumers that take several are connected by programs"
            }
        };
        found.push(Violation::error(place, message, remedy));
    }
}

fn check_publication(
    description: &Description,
    address: PublicationAddress,
    publication: &Publication,
    found: &mut Vec<Violation>,
) {
    let PublicationAddress { operation, event } = address;
    let place = |key| Place::Publication(operation.task, operation.subtask, event, key);
    let task = &description.tasks[operation.task];
    let subtask = &task.subtasks[operation.subtask];
    let owner = label(task, subtask);
    let EventTypeName { domain, name } = &publication.event_type;
    let is_word = |part: &str| {
        !part.is_empty()
            && part.len() <= NAME_BYTES_LIMIT
            && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
    };
    if !is_word(domain) || !is_word(name) {
        found.push(Violation::error(
            place("type"),
            format!("{owner} publishes events of the type \"{}\"", publication.event_type),
            format!(
                "write a domain and a name, such as \"Robot/Battery\", each of letters, digits, -, _, . and :, at most {NAME_BYTES_LIMIT} bytes"
            ),
        ));
    }
    let same = |before: &&Publication| {
        (before.channel, &before.event_type) == (publication.channel, &publication.event_type)
    };
    if let Some(before) = subtask.events[..event].iter().position(|before| same(&before)) {
        found.push(Violation {
            related: Some(Place::Publication(operation.task, operation.subtask, before, "type")),
            ..Violation::error(
                place("type"),
                format!("{owner} publishes {} twice in the same channel", publication.event_type),
                "remove one, or give it another type",
            )
        });
    }
    let subject = format!("the events {} of {owner}", publication.event_type);
    check_bytes(publication.bytes, &subject, place("bytes"), found);
    check_fields((publication.bytes, &publication.fields), &subject, place("fields"), found);
    check_header_fields(publication, &subject, place("header_fields"), found);
    if publication.priority.is_some_and(|priority| !Publication::PRIORITIES.contains(&priority)) {
        let message = format!("the priority of {subject} is out of range");
        let remedy = "write a whole number from -32767 to 32767";
        found.push(Violation::error(place("priority"), message, remedy));
    }
    if let Some(timeout) = publication.timeout {
        found
            .extend(violation_of(timeout, Least::AboveZero, place("timeout"), "timeout", || subject.clone()));
    }
    if task.communication == Communication::Let {
        found.push(Violation {
            related: Some(Place::Task(operation.task, "communication")),
            ..Violation::error(
                place("channel"),
                format!("{owner} publishes events, and its task has logical execution time"),
                "write communication = \"implicit\"; events are pushed when a job completes, not at the end of its period",
            )
        });
    }
}

/// What a header has room for, under names by which filters find nothing else.
fn check_header_fields(publication: &Publication, subject: &str, place: Place, found: &mut Vec<Violation>) {
    let Publication { fields, header_fields, .. } = publication;
    let subject = &format!("the header of {subject}");
    check_numbers(header_fields, subject, place, found);
    let (most, bytes) = (FIELDS_MOST as usize, publication.header_bytes());
    if header_fields.len() > most || bytes > FIELDS_BYTES_MOST {
        found.push(Violation::error(
            place,
            format!("{subject} has {} fields with up to {bytes} bytes", header_fields.len()),
            format!(
                "write at most {most}, with {FIELDS_BYTES_MOST} bytes together: what is more belongs into fields"
            ),
        ));
    }
    for SyntheticField { name, .. } in header_fields {
        let own = KNOWN_FIELDS.iter().find(|(known, _)| known == name);
        let remedy = match own {
            Some((_, key @ ("priority" | "timeout"))) => format!("write {key} = ... of the event"),
            Some(_) => "call it otherwise; tasks of a description have no such events".to_owned(),
            None if fields.iter().any(|field| field.name == *name) => {
                "call one of the two otherwise, so that a filter cannot mean both".to_owned()
            }
            None => continue,
        };
        let what = if own.is_some() { "which the service knows" } else { "as what the events carry does" };
        found.push(Violation::error(place, format!("{subject} has a field {name}, {what}"), remedy));
    }
}

/// The key that says which events a subscription is about.
fn key_of(subscription: &Subscription) -> &'static str {
    if let Condition::Types(_) = subscription.condition { "types" } else { "when" }
}

/// The times in a condition, with their keys.
fn times_of(condition: &Condition) -> Vec<(&'static str, Duration)> {
    let own = match condition {
        Condition::All { within, .. }
        | Condition::InOrder { within, .. }
        | Condition::Times { within, .. } => within.map(|time| ("within", time)),
        Condition::Unless { within, .. } => Some(("within", *within)),
        Condition::After(time) => Some(("after", *time)),
        Condition::Every(period) => Some(("every", *period)),
        _ => None,
    };
    own.into_iter().chain(condition.parts().iter().flat_map(times_of)).collect()
}

/// Whether something in it is counted.
fn counts(condition: &Condition) -> bool {
    matches!(condition, Condition::Times { .. }) || condition.parts().iter().any(counts)
}

/// The key of a part that time makes come true.
fn time_in(condition: &Condition) -> Option<&'static str> {
    match condition {
        Condition::Unless { .. } => Some("unless"),
        Condition::After(_) => Some("after"),
        Condition::Every(_) => Some("every"),
        _ => condition.parts().iter().find_map(time_in),
    }
}

/// How often events are published, and tasks released.
#[derive(Clone, Copy)]
struct Rates<'d> {
    published: &'d Published<'d>,
    /// By task.
    periods: &'d [Option<Duration>],
}

/// A subscription to a channel that exists.
struct Subscribed<'d> {
    description: &'d Description,
    owner: SubscriptionOwner,
    /// What messages call its owner.
    called: &'d str,
    /// The task that it releases, or that of the operation.
    task: &'d Task,
    subscription: &'d Subscription,
    /// What is published there that it wants.
    matching: Vec<&'d (PublicationAddress, &'d Publication)>,
}

impl Subscribed<'_> {
    fn place(&self, key: &'static str) -> Place {
        Place::Subscription(self.owner, key)
    }

    fn check(&self, above: &Qos, rates: Rates<'_>, found: &mut Vec<Violation>) {
        self.check_condition(found);
        self.check_types(found);
        match self.owner {
            SubscriptionOwner::Task(task) => self.check_release(task, found),
            SubscriptionOwner::Operation(address) => {
                self.check_taken(address, found);
                self.check_rate(address, above, rates, found);
            }
        }
        self.check_nodes(found);
        let name = self.called;
        if let Some(filter) = &self.subscription.filter {
            self.check_filter(self.place("filter"), &format!("the filter of {name}"), filter, found);
        }
        for filter in self.subscription.condition.filters() {
            self.check_filter(
                self.place("when"),
                &format!("a filter in the condition of {name}"),
                filter,
                found,
            );
        }
        let Subscription { priority_by, timeout_by, .. } = self.subscription;
        self.check_mapping(
            "priority_by",
            priority_by,
            |entry, key| Place::PriorityBy(self.owner, entry, key),
            found,
        );
        for (entry, Mapped { value, .. }) in priority_by.iter().enumerate() {
            if !Publication::PRIORITIES.contains(value) {
                let message =
                    format!("the priority in entry {} of priority_by of {name} is out of range", entry + 1);
                let place = Place::PriorityBy(self.owner, entry, "priority");
                found.push(Violation::error(place, message, "write a whole number from -32767 to 32767"));
            }
        }
        self.check_mapping(
            "timeout_by",
            timeout_by,
            |entry, key| Place::TimeoutBy(self.owner, entry, key),
            found,
        );
        for (entry, Mapped { value, .. }) in timeout_by.iter().enumerate() {
            let place = Place::TimeoutBy(self.owner, entry, "timeout");
            let owner = || format!("entry {} of timeout_by of {name}", entry + 1);
            found.extend(violation_of(*value, Least::AboveZero, place, "timeout", owner));
        }
        self.check_time_left(above, found);
    }

    /// Events are worth being delivered for as long as filters may take to judge them.
    fn check_time_left(&self, above: &Qos, found: &mut Vec<Violation>) {
        let Subscribed { called, subscription, matching, .. } = self;
        let longest = subscription.longest_filtering();
        let Ok(qos) = above.with(&subscription.qos, Level::Proxy) else { return };
        let timeouts = |(_, publication): &&(PublicationAddress, &Publication)| {
            subscription.timeouts(publication.timeout.or(qos.timeout)).min()
        };
        let short = |one: &&&(PublicationAddress, &Publication)| {
            timeouts(one).is_some_and(|timeout| timeout > Duration::ZERO && timeout < longest)
        };
        let Some((_, publication)) = matching.iter().find(short) else { return };
        let key = match subscription {
            Subscription { filter: Some(_), .. } => "filter",
            Subscription { timeout_by, .. } if !timeout_by.is_empty() => "timeout_by",
            Subscription { priority_by, .. } if !priority_by.is_empty() => "priority_by",
            _ => key_of(subscription),
        };
        found.push(Violation::warning(
            self.place(key),
            format!(
                "filters of {called} may take up to {longest} for an event, and events {} are worth being delivered for less: they may expire before they are judged",
                publication.event_type
            ),
            "give them a longer timeout, or none; constraints that compare nothing but $priority, $source and times are judged faster",
        ));
    }

    /// The entries of a mapping filter are about events, and each may be tried.
    fn check_mapping<Value>(
        &self,
        key: &'static str,
        entries: &[Mapped<Value>],
        place: impl Fn(usize, &'static str) -> Place,
        found: &mut Vec<Violation>,
    ) {
        let name = self.called;
        if entries.len() > Mapped::<Value>::LIMIT {
            let message = format!("{key} of {name} has {} entries", entries.len());
            let remedy = format!("write at most {}", Mapped::<Value>::LIMIT);
            found.push(Violation::error(self.place(key), message, remedy));
            return;
        }
        for (entry, Mapped { filter, .. }) in entries.iter().enumerate() {
            let called = format!("entry {} of {key} of {name}", entry + 1);
            match filter {
                Some(filter) => self.check_filter(place(entry, "filter"), &called, filter, found),
                None if entry + 1 < entries.len() => found.push(Violation::error(
                    place(entry, "filter"),
                    format!("{called} has no filter, and those behind it are never tried"),
                    "put it last, or give it a filter",
                )),
                None => {}
            }
        }
    }

    /// The condition makes sense, and is about events.
    fn check_condition(&self, found: &mut Vec<Violation>) {
        let Subscribed { called, subscription: Subscription { condition, .. }, .. } = self;
        let place = self.place(key_of(self.subscription));
        let owner = || format!("the condition of {called}");
        let times = times_of(condition).into_iter();
        let wrong: Vec<Violation> =
            times.filter_map(|(key, time)| violation_of(time, Least::AboveZero, place, key, owner)).collect();
        if !wrong.is_empty() {
            return found.extend(wrong);
        }
        if let Some(problem) = condition.problem() {
            let message = format!("the condition of {called} makes no sense: {problem}");
            let remedy = match counts(condition) {
                true => {
                    "write a count from 2 on, of no more than 256 events in all; put nothing but types, filters and sources into all_of_one and not"
                }
                false => "put nothing but types, filters and sources into all_of_one and not",
            };
            return found.push(Violation::error(place, message, remedy));
        }
        if condition.size() > CONDITIONS_LIMIT {
            let message = format!("the condition of {called} consists of {} conditions", condition.size());
            let remedy =
                format!("write at most {CONDITIONS_LIMIT}, or let a task publish what part of it has come");
            found.push(Violation::error(place, message, remedy));
        }
        let is_released = matches!(self.owner, SubscriptionOwner::Task(_));
        if condition.leaves().is_empty() && is_released {
            let message = format!("{called} is released by events, and its condition awaits none");
            let remedy =
                "write period = \"...\" in place of the subscription, or add a type to the condition";
            found.push(Violation::error(place, message, remedy));
        }
        if let Some(time) = time_in(condition).filter(|_| !is_released) {
            let message = format!(
                "{called} takes events when its jobs begin, and its condition has \"{time}\", by which time releases jobs"
            );
            let remedy = "leave that out, or let a task without a period or a trigger have the subscription";
            found.push(Violation::error(place, message, remedy));
        }
    }

    /// Each of the types is published by somebody.
    fn check_types(&self, found: &mut Vec<Violation>) {
        let Subscribed { task, called, subscription, matching, .. } = self;
        let is_published = |pattern: &TypePattern| {
            let of_channel = self.description.publications().map(|(_, publication)| publication);
            let mut types = of_channel
                .filter(|publication| publication.channel == subscription.channel)
                .map(|publication| &publication.event_type);
            types.any(|EventTypeName { domain, name }| pattern.matches(domain, name))
        };
        let types: BTreeSet<&TypePattern> = subscription.condition.types().into_iter().collect();
        let nobody: Vec<String> =
            types.into_iter().filter(|pattern| !is_published(pattern)).map(TypePattern::to_string).collect();
        // Without a separation nothing says how often programs push them.
        let arrivals = subscription.arrivals(|leaves| {
            let is_one = |(_, publication): &&(_, &Publication)| {
                let of = subscription.leaves_of(publication);
                of.iter().flatten().any(|leaf| leaves.contains(leaf))
            };
            matching.iter().filter(|one| is_one(&&***one)).map(|_| ()).collect()
        });
        let by_programs = matches!(self.owner, SubscriptionOwner::Task(_)) && task.separation.is_some();
        let is_never = !arrivals.can_come() && !by_programs;
        if nobody.is_empty() && !is_never {
            return;
        }
        let severity = if is_never { Severity::Error } else { Severity::Warning };
        let channel = &self.description.channels[subscription.channel].name;
        let published: BTreeSet<String> = self
            .description
            .publications()
            .filter(|(_, publication)| publication.channel == subscription.channel)
            .map(|(_, publication)| publication.event_type.to_string())
            .collect();
        let add = || format!("add events = [{{ channel = \"{channel}\", type = \"...\" }}] to an operation");
        let (message, remedy) = match &nobody[..] {
            [] => {
                (format!("{called} has subscribed to what nobody publishes in channel \"{channel}\""), add())
            }
            all => (
                format!(
                    "{called} subscribes to {} in channel \"{channel}\", which nobody publishes there",
                    all.join(", ")
                ),
                match published.is_empty() {
                    true => add(),
                    false => known_words(&all[0], published.iter().map(String::as_str)),
                },
            ),
        };
        let place = self.place(key_of(subscription));
        found.push(Violation { severity, ..Violation::error(place, message, remedy) });
    }

    /// One job has an event, and every event a job.
    fn check_release(&self, index: usize, found: &mut Vec<Violation>) {
        let task = self.task;
        let name = &task.name;
        if self.subscription.take != EventTake::Next {
            let take = self.subscription.take;
            found.push(Violation::error(
                self.place("take"),
                format!("task \"{name}\" is released by events, each of which has its job, and has take = \"{take}\""),
                "remove it, or write period = \"...\" beside the subscription: then its jobs take what waits",
            ));
        }
        let mut refuse = |key, message: String, remedy: &str| {
            found.push(Violation {
                related: Some(self.place("channel")),
                ..Violation::error(Place::Task(index, key), message, remedy)
            });
        };
        let firsts = task.subtasks.iter().filter(|subtask| subtask.after.is_empty()).count();
        if firsts > 1 && task.separation.is_some() {
            let message = format!(
                "task \"{name}\" is released by events, begins with {firsts} subtasks and has a separation: each of them would have its turn by itself, and one might come for an event that has expired when the other comes"
            );
            let remedy =
                "remove the separation, or let it begin with one subtask, behind which the others come";
            refuse("separation", message, remedy);
        }
        if task.overrun != Overrun::Queue {
            let message =
                format!("task \"{name}\" is released by events and has overrun = \"{}\"", task.overrun);
            refuse(
                "overrun",
                message,
                "remove it; MaxEventsPerConsumer and DiscardPolicy say which events go",
            );
        }
        if task.separation.is_some_and(|separation| separation.excess == Excess::Drop) {
            let message = format!("task \"{name}\" is released by events and has excess = \"drop\"");
            refuse(
                "excess",
                message,
                "remove it; MaxEventsPerConsumer and DiscardPolicy say which events go",
            );
        }
    }

    /// A job has the events of one subscription, and takes them when it begins.
    fn check_taken(
        &self,
        OperationAddress { task: index, subtask }: OperationAddress,
        found: &mut Vec<Violation>,
    ) {
        let (task, called) = (self.task, self.called);
        let mut refuse = |related, message: String, remedy: &str| {
            found.push(Violation {
                related: Some(related),
                ..Violation::error(self.place("channel"), message, remedy)
            });
        };
        if matches!(task.trigger, Some(Trigger::Events(_))) && task.subtasks[subtask].after.is_empty() {
            let message = format!("{called} takes events, and has those that release task \"{}\"", task.name);
            let remedy = "remove one of the two subscriptions, name the types of both in one, or let a later subtask have this one";
            refuse(Place::Subscription(SubscriptionOwner::Task(index), "channel"), message, remedy);
        }
        if task.communication == Communication::Let {
            let message = format!("{called} takes events, and its task has logical execution time");
            let remedy =
                "write communication = \"implicit\"; events are taken when a job begins, not at its arrival";
            refuse(Place::Task(index, "communication"), message, remedy);
        }
    }

    /// A job takes one event, or as many as may wait, so that no more come until the next one begins, unless only so many are to wait.
    fn check_rate(
        &self,
        OperationAddress { task: index, .. }: OperationAddress,
        above: &Qos,
        Rates { published, periods }: Rates<'_>,
        found: &mut Vec<Violation>,
    ) {
        let Subscribed { called, subscription, .. } = *self;
        let arrivals = published.arrivals(subscription);
        let every = comes_every(&arrivals, |producer| periods.get(producer).copied().flatten());
        let (Some(every), Some(period)) = (every, periods[index]) else { return };
        let Ok(qos) = above.with(&subscription.qos, Level::Proxy) else { return };
        // What filters leave out nobody knows, and whoever has room for one event, in whose place a newer one comes, wants no more than that.
        let has_newest =
            qos.max_events == 1 && matches!(qos.discard, DiscardPolicy::Any | DiscardPolicy::Fifo);
        let is_timed = time_in(&subscription.condition).is_some();
        let taken = match subscription.take {
            EventTake::Next => 1,
            EventTake::All => i64::from(qos.max_events),
        };
        if Duration::from_nanos(every.as_nanos().saturating_mul(taken)) >= period
            || subscription.is_filtered()
            || has_newest
            || is_timed
        {
            return;
        }
        found.push(Violation::warning(
            self.place("channel"),
            format!(
                "events for {called} come every {every}, and its jobs take {} every {period}: they may be lost when {} wait",
                if subscription.take == EventTake::All { "those that wait" } else { "one" },
                qos.max_events
            ),
            match subscription.take {
                EventTake::Next => "have it begin more often, let events release it, write take = \"all\", or qos = { MaxEventsPerConsumer = 1, DiscardPolicy = \"Fifo\" } to have the newest alone",
                EventTake::All => "have it begin more often, let events release it, or raise MaxEventsPerConsumer",
            },
        ));
    }

    /// A channel does not leave its node.
    fn check_nodes(&self, found: &mut Vec<Violation>) {
        let tasks = &self.description.tasks;
        let nodes: BTreeSet<usize> = match self.owner {
            SubscriptionOwner::Operation(OperationAddress { subtask, .. }) => {
                BTreeSet::from([self.task.subtasks[subtask].node])
            }
            SubscriptionOwner::Task(_) => {
                let firsts = self.task.subtasks.iter().filter(|subtask| subtask.after.is_empty());
                firsts.map(|subtask| subtask.node).collect()
            }
        };
        let node_of = |address: &PublicationAddress| {
            tasks[address.operation.task].subtasks[address.operation.subtask].node
        };
        let apart =
            self.matching.iter().find(|(address, _)| nodes.iter().any(|node| *node != node_of(address)));
        let Some((address, publication)) = apart else { return };
        let producer = &tasks[address.operation.task];
        let subtask = &producer.subtasks[address.operation.subtask];
        found.push(Violation::error(
            self.place("channel"),
            format!(
                "{} and {}, which publishes {}, are on different nodes",
                self.called,
                label(producer, subtask),
                publication.event_type
            ),
            "a channel is within one node: put both on one, or let a subtask on this node publish it that comes \"after\" the other",
        ));
    }

    /// Whether the filter is one, and names what the events have.
    fn check_filter(&self, place: Place, called: &str, filter: &str, found: &mut Vec<Violation>) {
        let parsed = Constraint::parse(filter);
        let compiled = parsed.and_then(|constraint| constraint.compile::<AnyEvent>().map(|_| constraint));
        let constraint = match compiled {
            Ok(constraint) => constraint,
            Err(problem) => {
                let at = if problem.line > 1 { format!("line {}, ", problem.line) } else { String::new() };
                found.push(Violation::error(
                    place,
                    format!("{called}, at {at}character {}: {}", problem.column, problem.message),
                    problem.remedy,
                ));
                return;
            }
        };
        let fields: BTreeSet<&str> = self
            .matching
            .iter()
            .flat_map(|(_, publication)| publication.fields.iter().map(|field| field.name.as_str()))
            .collect();
        // What programs push has fields of its own.
        if self.matching.is_empty() {
            return;
        }
        let states = |name: &str| {
            self.matching.iter().any(|(_, publication)| match name {
                "priority" => publication.priority.is_some(),
                "Timeout" => publication.timeout.is_some(),
                "domain_name" | "type_name" | "event_name" | "source" => true,
                // Others are for code, unless they are fields of the header.
                name => has_in_header(publication, name),
            })
        };
        let mut unvisited = vec![constraint.expression()];
        while let Some(expression) = unvisited.pop() {
            unvisited.extend(expression.operands());
            let of_header = path_of(expression).and_then(named_in_header);
            if let Some((name, written)) = of_header.filter(|(name, _)| !states(name)) {
                found.push(Violation::warning(
                    place,
                    format!("{called} names {written}, which none of its events state"),
                    match name {
                        "priority" => {
                            "give them priority = ...; a filter does not see what the quality of service says where they do not"
                        }
                        "Timeout" => {
                            "give them timeout = ...; a filter does not see what the quality of service says where they do not"
                        }
                        _ => "programs may state it, in the header of what they push, and so may header_fields; else remove it",
                    },
                ));
                return;
            }
            let Some(unknown) = path_of(expression).and_then(|path| unknown_name(path, &fields)) else {
                continue;
            };
            let name = unknown.trim_start_matches('$');
            let is_in_header = self.matching.iter().any(|(_, publication)| has_in_header(publication, name));
            let mut known: Vec<&str> = fields.iter().copied().collect();
            known.extend(HEADER.iter().map(|(name, _)| *name).filter(|_| unknown.starts_with('$')));
            found.push(Violation::error(
                place,
                format!("{called} names {unknown}, which none of its events have"),
                match known.is_empty() {
                    _ if is_in_header => {
                        format!("their header has it: write $.{}({name})", VARIABLE_HEADER.join("."))
                    }
                    true => "give the events fields = { ... }, or filter by $priority".to_owned(),
                    false => known_words(name, known),
                },
            ));
            return;
        }
    }
}

fn has_in_header(publication: &Publication, name: &str) -> bool {
    publication.header_fields.iter().any(|field| field.name == name)
}

fn path_of(expression: &Expression) -> Option<&Path> {
    match &expression.node {
        Node::Path(path) | Node::In(_, path) | Node::Exist(path) | Node::Default(path) => Some(path),
        _ => None,
    }
}

/// What a path names in the header of events by one name, and how that is written: `$name`, or spelled out.
fn named_in_header(path: &Path) -> Option<(&str, String)> {
    match (&path.root, &path.steps[..]) {
        (Root::Dollar(name), _) if name != CURRENT_TIME && is_of_header(name) => {
            Some((name, format!("${name}")))
        }
        (Root::Event, [header, list, Step { kind: StepKind::Pick(name), .. }, ..])
            if is_member(header, VARIABLE_HEADER[0]) && is_member(list, VARIABLE_HEADER[1]) =>
        {
            let known = if name == "Priority" { "priority" } else { name };
            Some((known, format!("$.{}({name})", VARIABLE_HEADER.join("."))))
        }
        _ => None,
    }
}

fn is_member(step: &Step, name: &str) -> bool {
    matches!(&step.kind, StepKind::Member(member) if member == name)
}

/// What is no property of an event, though written as one.
const CURRENT_TIME: &str = "curtime";

/// Whether every event has this, written with a `$`: the header's names, and the current time.
fn is_of_header(name: &str) -> bool {
    name == CURRENT_TIME || HEADER.iter().any(|(known, _)| *known == name)
}

/// The name at the beginning of the path, if no event has it.
fn unknown_name(path: &Path, fields: &BTreeSet<&str>) -> Option<String> {
    match &path.root {
        Root::Event => None,
        Root::Dollar(name) => {
            let is_known = fields.contains(name.as_str()) || is_of_header(name);
            (!is_known).then(|| format!("${name}"))
        }
        Root::Bare(name) => (!fields.contains(name.as_str())).then(|| name.clone()),
    }
}
