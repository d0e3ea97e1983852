//! Events of channels in virtual time: every delivery follows from the definitions, and traces of them are clean.

mod definition;
mod systems;

use crate::replay::{metadata, records_with};
use definition::faults;
use proptest::prelude::*;
use proptest::sample::Index;
use systems::systems;
use talea_event::TypePattern;
use talea_event::qos::QosSettings;
use talea_insight::verify::{Rule, Verifier, VerifyReport};
use talea_model::{
    Channel, Condition, Description, EventTake, EventTypeName, FieldValues, Overhead, Overrun, Publication,
    PublicationBuilder, Strategy as StrategyKind, Subscription, SubscriptionBuilder, System, Task,
    TaskBuilder, Trigger,
};
use talea_policy::strategy::plan_lanes_of;
use talea_record::event::{Cost, Deliver, EventsLost, Push};
use talea_record::{CostKind, Event, JobId, Record, Sink};
use talea_sim::DispatchRecords;
use talea_time::{Duration, Instant, Work};

const UNTIL: i64 = 400;

fn records(system: &System) -> Vec<Record> {
    records_with(system, &[], UNTIL, DispatchRecords::Dropped)
}

fn judged(system: &System, records: &[Record]) -> VerifyReport {
    let plans = plan_lanes_of(system).expect("no anomalies");
    let metadata = metadata(system);
    let mut verifier = Verifier::new(&metadata, system, &plans, Duration::ZERO).expect("the same system");
    records.iter().for_each(|record| verifier.record(*record));
    verifier.finish()
}

/// One of those records that `choose` makes another one, made so.
fn change(records: &mut [Record], which: Index, choose: impl Fn(&Record) -> Option<Record>) -> bool {
    let changed: Vec<(usize, Record)> =
        records.iter().enumerate().filter_map(|(place, record)| Some((place, choose(record)?))).collect();
    let Some((place, record)) = (!changed.is_empty()).then(|| which.get(&changed)) else { return false };
    records[*place] = *record;
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(768))]

    #[test]
    fn every_delivery_follows_from_the_definitions(system in systems()) {
        let records = records(&system);
        let faults = faults(&system, &records);
        prop_assert!(faults.is_empty(), "{faults:#?}\n{}", system.to_toml());
        let report = judged(&system, &records);
        prop_assert_eq!(report.count(), 0, "{:#?}\n{}", report.violations, system.to_toml());
    }

    /// `deliver-unpushed`: what nobody has pushed cannot be taken.
    #[test]
    fn a_delivery_of_what_nobody_pushed_is_found(system in systems(), which in any::<Index>()) {
        let mut records = records(&system);
        let later = |record: &Record| {
            let deliver = Deliver::read(record)?;
            let from = deliver.from.map(|from| JobId { instance: from.instance + 1000, ..from });
            Some(Deliver { from, ..deliver }.at(record.time, record.cpu))
        };
        prop_assume!(change(&mut records, which, later));
        prop_assert!(judged(&system, &records).of(Rule::Events) > 0);
    }

    /// `deliver-twice`: a task has each event once.
    #[test]
    fn a_second_delivery_of_an_event_is_found(system in systems(), which in any::<Index>()) {
        let mut records = records(&system);
        let all: Vec<Deliver> = records.iter().filter_map(Deliver::read).collect();
        // Nested parts may each keep the event.
        let is_kept_once = |deliver: &Deliver| {
            let site = &system.publications()[deliver.publication? as usize];
            (site.subscriber(deliver.job.operation)?.leaves.len() == 1).then_some(())
        };
        let again = |record: &Record| {
            let deliver = Deliver::read(record)?;
            is_kept_once(&deliver)?;
            let other = all.iter().find(|other| {
                let is_earlier = other.job.operation == deliver.job.operation && other.job.instance < deliver.job.instance;
                is_earlier && other.publication == deliver.publication
            })?;
            Some(Deliver { from: other.from, ..deliver }.at(record.time, record.cpu))
        };
        prop_assume!(change(&mut records, which, again));
        prop_assert!(judged(&system, &records).of(Rule::Events) > 0);
    }

    /// `push-elsewhere`: an operation pushes what it publishes.
    #[test]
    fn a_push_by_another_operation_is_found(system in systems(), which in any::<Index>()) {
        let mut records = records(&system);
        let other = |record: &Record| {
            let push = Push::read(record)?;
            let publication = system.publications().iter().find(|site| site.operation != push.job.operation)?.id;
            Some(Push { publication: publication.index() as u32, ..push }.at(record.time, record.cpu))
        };
        prop_assume!(change(&mut records, which, other));
        prop_assert!(judged(&system, &records).of(Rule::Events) > 0);
    }
}

/// The generator reaches what it is there for.
#[test]
fn random_systems_lose_collect_filter_and_hand_on() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen = std::collections::BTreeMap::<&str, u32>::new();
    for _ in 0..200 {
        let system = systems().new_tree(&mut runner).expect("a system").current();
        let records = records(&system);
        for lost in records.iter().filter_map(EventsLost::read) {
            *seen.entry(if lost.why.number() == 1 { "discarded" } else { "expired" }).or_default() += 1;
        }
        let skipped = records.iter().filter(|record| record.event == Event::SKIP).count() as u32;
        *seen.entry("skipped").or_default() += skipped;
        for deliver in records.iter().filter_map(Deliver::read) {
            let taker = &system.operations()[deliver.job.operation.index()];
            let subscription = system.subscription_of(taker.id).expect("it has events");
            if let Some(own) = &system.subtask(taker.id).subscription {
                assert_eq!(own, subscription);
                let is_first = taker.predecessors.is_empty();
                *seen.entry(if is_first { "taken" } else { "taken later" }).or_default() += 1;
                if subscription.take == EventTake::All && deliver.number > 0 {
                    *seen.entry("taken together").or_default() += 1;
                }
            }
            let firsts =
                system.operations_of(taker.task).iter().filter(|first| first.predecessors.is_empty());
            if taker.predecessors.is_empty() && firsts.skip(1).any(|first| first.id == taker.id) {
                *seen.entry("had beside another").or_default() += 1;
            }
            let from = system.operations()[deliver.from.expect("a job").operation.index()].task;
            *seen.entry(if deliver.number > 0 { "collected" } else { "delivered" }).or_default() += 1;
            if subscription.filter.is_some() {
                *seen.entry("filtered").or_default() += 1;
            }
            if !subscription.priority_by.is_empty() {
                *seen.entry("prioritised").or_default() += 1;
            }
            if !subscription.timeout_by.is_empty() {
                *seen.entry("mapped timeout").or_default() += 1;
            }
            if system.tasks[from].trigger.is_some() {
                *seen.entry("handed on").or_default() += 1;
            }
        }
    }
    let kinds = [
        "had beside another",
        "collected",
        "delivered",
        "discarded",
        "expired",
        "filtered",
        "prioritised",
        "mapped timeout",
        "handed on",
        "skipped",
        "taken",
        "taken later",
        "taken together",
    ];
    assert!(kinds.iter().all(|kind| seen.get(kind).is_some_and(|count| *count >= 50)), "{seen:?}");
}

/// A job that began takes what is most urgent then, not what released it.
#[test]
fn a_job_takes_the_most_urgent_event() {
    let us = Duration::from_micros;
    let event = |name: &str, priority| {
        PublicationBuilder::new("c", format!("T/{name}"))
            .priority(priority)
            .field("x", FieldValues::Constant(1))
    };
    let qos = talea_event::qos::QosSettings::new().order(talea_event::qos::OrderPolicy::Priority);
    let system = System::builder("s")
        .channel("c", qos)
        .task(TaskBuilder::new("low", us(100)).wcet(Work::from_micros(1)).event(event("Low", 1)))
        .task(
            TaskBuilder::new("high", us(100)).phase(us(2)).wcet(Work::from_micros(1)).event(event("High", 9)),
        )
        .task(
            TaskBuilder::triggered_by("busy", SubscriptionBuilder::new("c").types(["T/Low"]))
                .deadline(us(50))
                .criticality(talea_model::Criticality::VeryHigh)
                .wcet(Work::from_micros(10)),
        )
        .task(
            TaskBuilder::triggered_by("both", SubscriptionBuilder::new("c"))
                .deadline(us(50))
                .criticality(talea_model::Criticality::Low)
                .wcet(Work::from_micros(10)),
        )
        .build()
        .expect("a system");
    let records = records_with(&system, &[], 90_000, DispatchRecords::Dropped);
    assert_eq!(faults(&system, &records), Vec::<String>::new());
    let of_both = records
        .iter()
        .filter_map(Deliver::read)
        .filter(|deliver| system.operations()[deliver.job.operation.index()].name == "both");
    let publications: Vec<u32> = of_both.filter_map(|deliver| deliver.publication).collect();
    assert_eq!(publications, [1, 0], "the urgent one that came later goes first");
}

/// Looking who has subscribed, filters and queues take the time of the job that pushes, by what its operation has declared.
#[test]
fn a_job_pays_for_what_it_pushes() {
    let (us, work) = (Duration::from_micros, Work::from_micros);
    let event =
        |name: &str| PublicationBuilder::new("c", format!("T/{name}")).field("x", FieldValues::Constant(1));
    let costs = Overhead { push: work(3), filter: work(2), delivery: work(1), ..Overhead::default() };
    let follower = |name: &str, subscription| {
        TaskBuilder::triggered_by(name, subscription).deadline(us(90)).wcet(Work::from_micros(4))
    };
    let system = System::builder("s")
        .overhead(costs)
        .channel("c", QosSettings::new())
        .channel("other", QosSettings::new())
        .task(TaskBuilder::new("push", us(100)).wcet(work(10)).event(event("One")).event(event("Two")))
        .task(follower("filtering", SubscriptionBuilder::new("c").types(["T/One"]).filter("x > 1")))
        .task(follower("all", SubscriptionBuilder::new("c")))
        .build()
        .expect("a system");
    let records = records_with(&system, &[], 90_000, DispatchRecords::Kept);
    let completed: Vec<(usize, i64)> = records
        .iter()
        .filter(|record| record.event == Event::COMPLETE)
        .map(|record| (record.job().operation.index(), record.time.as_nanos()))
        .collect();
    // Of the first event 3 for the push, 3 for the subscription with a filter, 1 for the other; of the second one 3 and 1.
    assert_eq!(completed, [(0, 21_000), (2, 25_000), (2, 29_000)], "which push nothing themselves");
    let costs = records.iter().filter_map(Cost::read);
    let of_delivery = costs.filter(|cost| cost.kind.known() == Some(CostKind::Delivery));
    assert_eq!(of_delivery.map(|cost| cost.length_ns()).sum::<i64>(), 11_000);
}

/// The same system with each successor as a task of its own, which an event of its predecessor releases.
fn over_a_channel(system: &System) -> System {
    let mut description = Description::clone(system);
    description.channels.push(Channel { name: "edges".into(), qos: QosSettings::new() });
    let mut tasks = Vec::new();
    for task in &description.tasks {
        let name = |position: usize| match position {
            0 => task.name.clone(),
            _ => format!("{}-{}", task.name, task.subtasks[position].name),
        };
        let event = |position: usize| EventTypeName { domain: "Done".into(), name: name(position) };
        for (position, subtask) in task.subtasks.iter().enumerate() {
            let mut subtask = subtask.clone();
            let before = std::mem::take(&mut subtask.after);
            // What goes along is the events' own.
            (subtask.inputs, subtask.outputs) = (Vec::new(), Vec::new());
            subtask.name = name(position);
            let is_followed = task.subtasks.iter().any(|other| other.after.contains(&position));
            let (channel, bytes, fields, priority, timeout) = (0, 8, Vec::new(), None, None);
            if is_followed {
                let event_type = event(position);
                let source = 0;
                let event = Publication {
                    channel,
                    event_type,
                    bytes,
                    fields,
                    header_fields: Vec::new(),
                    priority,
                    timeout,
                    source,
                };
                subtask.events.push(event);
            }
            let mut one = Task { name: name(position), subtasks: vec![subtask], ..task.clone() };
            if let [before] = before[..] {
                let EventTypeName { domain, name } = event(before);
                one.trigger = Some(Trigger::Events(Subscription {
                    channel: 0,
                    condition: Condition::of_types([TypePattern::exactly(&domain, &name)]),
                    filter: None,
                    priority_by: Vec::new(),
                    timeout_by: Vec::new(),
                    take: EventTake::Next,
                    qos: QosSettings::new(),
                }));
                (one.phase, one.jitter, one.overrun) = (Duration::ZERO, Duration::ZERO, Overrun::Queue);
            }
            tasks.push(one);
        }
    }
    description.tasks = tasks;
    System::new(description).expect("it breaks no rule")
}

/// A guard has room for as many releases as events may wait, so that none of them is left without one.
#[test]
fn each_event_of_a_long_burst_has_its_release() {
    let burst: Vec<String> = (0..300).map(|at| format!("\"{at}us\"")).collect();
    let text = format!(
        r#"
        [system]
        name = "burst"
        strategy = "rms"
        [[channel]]
        name = "c"
        [[task]]
        name = "push"
        trigger = "external"
        separation = "1us"
        arrivals = {{ list = [{}, "1s"] }}
        deadline = "1ms"
        wcet = "100ns"
        events = [{{ channel = "c", type = "T/One", fields = {{ x = {{ uniform = [0, 9] }} }} }}]
        [[task]]
        name = "take"
        subscription = {{ channel = "c", types = ["T/One"], qos = {{ MaxEventsPerConsumer = 300 }} }}
        separation = "1ms"
        deadline = "1ms"
        wcet = "100ns"
        "#,
        burst.join(", ")
    );
    let system = talea_model::parse("burst.toml", &text, ".".as_ref()).expect("it is sound").system;
    let records = records_with(&system, &[], 2_000_000_000, DispatchRecords::Dropped);
    let taken: Vec<u64> =
        records.iter().filter_map(Deliver::read).filter_map(|taken| Some(taken.from?.instance)).collect();
    assert_eq!(taken, (0..301).collect::<Vec<_>>());
    assert_eq!(faults(&system, &records), [""; 0]);
}

/// The current time of a constraint is the instant of the push, which is virtual; and mapping filters are evaluated then.
#[test]
fn constraints_see_the_time_of_the_simulation() {
    let text = r#"
        [system]
        name = "time"
        strategy = "rms"
        [[channel]]
        name = "c"
        qos = { OrderPolicy = "Priority" }
        [[task]]
        name = "push"
        period = "50ns"
        wcet = "1ns"
        events = [{ channel = "c", type = "T/One", priority = 1 }]
        [[task]]
        name = "take"
        subscription = { channel = "c", filter = "$curtime >= 200", priority_by = [{ filter = "$curtime > 300", priority = 9 }] }
        separation = "120ns"
        deadline = "50ns"
        wcet = "1ns"
        "#;
    let system = talea_model::parse("time.toml", text, ".".as_ref()).expect("it is sound").system;
    let records = records_with(&system, &[], 520, DispatchRecords::Dropped);
    let taken: Vec<(i64, u64)> = records
        .iter()
        .filter_map(|record| Some((record.time.as_nanos(), Deliver::read(record)?.from?.instance)))
        .collect();
    // Pushed at 201, 251, 301 and so on; of what waits at 321 the event of 301 comes first, and so do those behind it.
    assert_eq!(taken, [(201, 4), (321, 6), (441, 7)]);
}

/// As the published flight program ran: its operations were consumers of events.
#[test]
fn the_flight_program_keeps_its_schedule_over_a_channel() {
    let text = include_str!("../../../../examples/ofp.toml");
    let read = talea_model::parse("ofp.toml", text, ".".as_ref()).expect("the example is sound").system;
    for strategy in [StrategyKind::Rms, StrategyKind::Criticality] {
        let direct = read.with_strategy(strategy);
        let over_channel = over_a_channel(&direct);
        // Each operation with when its jobs began, lost and had the processor again, and ended.
        let lived = |system: &System| -> Vec<(usize, u64, Event, Instant)> {
            let records = records_with(system, &[], 20_000_000_000, DispatchRecords::Dropped);
            let of_life =
                [Event::RELEASE, Event::START, Event::PREEMPT, Event::RESUME, Event::COMPLETE, Event::SKIP];
            let life = records.iter().filter(|record| of_life.contains(&record.event));
            life.map(|record| {
                (record.job().operation.index(), record.job().instance, record.event, record.time)
            })
            .collect()
        };
        let (direct, over_channel) = (lived(&direct), lived(&over_channel));
        let skips =
            |life: &[(usize, u64, Event, Instant)]| life.iter().filter(|one| one.2 == Event::SKIP).count();
        assert!(direct.len() > 5_000, "{strategy}: {}", direct.len());
        // Who leaves an instance out has a number for it, and who is released by what was done has none.
        let without_numbers = |life: Vec<(usize, u64, Event, Instant)>| -> Vec<(usize, Event, Instant)> {
            let mut life: Vec<_> =
                life.into_iter().map(|(operation, _, event, at)| (operation, event, at)).collect();
            life.sort_by_key(|(operation, event, at)| (*at, *operation, event.0));
            life
        };
        assert_eq!(skips(&direct), skips(&over_channel));
        assert_eq!(without_numbers(direct), without_numbers(over_channel), "{strategy}");
    }
}

/// A task that begins with two subtasks, of which one is held up by others of its lanes.
const TOGETHER: &str = r#"
    [system]
    name = "together"
    strategy = "criticality"
    [[node]]
    name = "n"
    cpus = [0]
    [[scheduler]]
    name = "top"
    kind = "fixed-priority"
    [[scheduler]]
    name = "fast"
    kind = "lanes"
    under = [{ scheduler = "top", priority = 2 }]
    [[scheduler]]
    name = "slow"
    kind = "lanes"
    under = [{ scheduler = "top", priority = 1 }]
    [[channel]]
    name = "c"
    qos = { MaxEventsPerConsumer = 3 }
    [[task]]
    name = "push"
    lanes = "fast"
    period = "10ns"
    wcet = "1ns"
    events = [{ channel = "c", type = "T/One", fields = { x = { uniform = [0, 9] } } }]
    [[task]]
    name = "hog"
    criticality = "high"
    lanes = "slow"
    period = "100ns"
    phase = "5ns"
    wcet = "42ns"
    [[task]]
    name = "take"
    subscription = { channel = "c", types = ["T/One"] }
    deadline = "200ns"
      [[task.subtask]]
      name = "quick"
      lanes = "fast"
      wcet = "1ns"
      [[task.subtask]]
      name = "late"
      after = []
      lanes = "slow"
      wcet = "1ns"
"#;

/// The jobs of an operation, each with the instance of who pushed the event that it has.
fn had(system: &System, records: &[Record], name: &str) -> Vec<(u64, u64)> {
    let of_name = |deliver: &Deliver| system.operations()[deliver.job.operation.index()].name == name;
    let delivers = records.iter().filter_map(Deliver::read).filter(of_name);
    delivers
        .map(|deliver| (deliver.job.instance, deliver.from.expect("a job has pushed it").instance))
        .collect()
}

#[test]
fn first_subtasks_of_an_instance_have_the_same_event_and_it_keeps_its_place() {
    let system = talea_model::parse("together.toml", TOGETHER, ".".as_ref()).expect("it is sound").system;
    let records = records(&system);
    assert_eq!(faults(&system, &records), [""; 0]);
    let report = judged(&system, &records);
    assert_eq!(report.count(), 0, "{:#?}", report.violations);
    let (quick, late) = (had(&system, &records, "take.quick"), had(&system, &records, "take.late"));
    // While the one is held up, the other begins with three events, which leave no place for a fourth.
    assert_eq!(quick[..6], [(0, 0), (1, 1), (2, 2), (3, 3), (4, 6), (5, 7)]);
    assert_eq!(quick[..late.len()], late);
    let lost = records.iter().filter_map(EventsLost::read);
    assert!(lost.clone().all(|lost| lost.why.known() == Some(talea_record::EventLossReason::Discarded)));
    assert!(lost.count() >= 8);
}

/// `deliver-otherwise`: another event than the one that a job of its instance has is found, whichever of them has it.
#[test]
fn another_event_than_that_of_its_instance_is_found() {
    let system = talea_model::parse("together.toml", TOGETHER, ".".as_ref()).expect("it is sound").system;
    let records = records(&system);
    for name in ["take.quick", "take.late"] {
        let is_it = |record: &Record| {
            Deliver::read(record).is_some_and(|deliver| {
                let operation = &system.operations()[deliver.job.operation.index()];
                operation.name == name && deliver.job.instance == 4
            })
        };
        let place = records.iter().position(is_it).expect("it has one");
        let mut without = records.clone();
        without.remove(place);
        let report = judged(&system, &without);
        assert_eq!(report.of(Rule::Events), 1, "{:#?}", report.violations);
        // One that was lost for others, so that no other rule is broken.
        let mut otherwise = records.clone();
        let deliver = Deliver::read(&otherwise[place]).expect("it is one");
        let from = deliver.from.map(|from| JobId { instance: 4, ..from });
        otherwise[place] = Deliver { from, ..deliver }.at(otherwise[place].time, otherwise[place].cpu);
        let report = judged(&system, &otherwise);
        assert!(report.of(Rule::Events) >= 1, "{:#?}", report.violations);
    }
}
