//! Channels of the description on real threads: what the filters let through comes once, in the order of each who pushes, wherever the lanes are.

use super::*;
use crate::programs::stage;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_model::{
    Collect, Condition, Criticality, EventTake, FieldValues, LaneDispatch, OperationId, PublicationBuilder,
    SubscriptionBuilder, SubtaskBuilder,
};
use talea_notification::declared::{EventPorts, JobEvents, SyntheticEvent};
use talea_notification::{Content, Filterable};
use talea_policy::demand::{self, Purpose};
use talea_record::event::{Deliver, EventsLost, Push};
use talea_record::{EventLossReason, JobId, SkipReason};
use talea_runtime::{JobContext, Lower, Ports, PrepareError};
use talea_time::Instant;

fn pushing(name: &str, period_ms: i64, event_type: &str) -> TaskBuilder {
    let event = PublicationBuilder::new("c", event_type).field("x", FieldValues::Uniform(0, 9)).priority(3);
    TaskBuilder::new(name, ms(period_ms)).wcet(Work::from_micros(50)).event(event)
}

fn taking(name: &str, subscription: SubscriptionBuilder) -> TaskBuilder {
    TaskBuilder::triggered_by(name, subscription).deadline(ms(50)).wcet(Work::from_micros(20))
}

/// Four that push in lanes of their own, on as many processors as there are, and several that take.
fn busy(dispatch: LaneDispatch, cpus: std::ops::Range<u16>) -> System {
    let all = || SubscriptionBuilder::new("c");
    let both = ["T/One", "T/Four"].map(|pattern| pattern.parse().expect("a pattern"));
    let both = Condition::all(Collect::First, both);
    let two = "T/Two".parse().expect("a pattern");
    let level = |task: TaskBuilder, level| task.criticality(level);
    system(Strategy::Criticality)
        .lane_dispatch(dispatch)
        .node("n", cpus)
        .channel("c", talea_event::qos::QosSettings::new().max_events(4_000))
        .task(level(pushing("one", 1, "T/One"), Criticality::VeryHigh))
        .task(level(pushing("two", 1, "T/Two"), Criticality::High))
        .task(level(pushing("three", 2, "T/Three"), Criticality::Medium))
        .task(level(pushing("four", 3, "T/Four"), Criticality::Low))
        .task(level(taking("all", all()), Criticality::VeryLow))
        .task(level(taking("few", all().types(["T/O*", "T/Three"]).filter("x < 3")), Criticality::High))
        .task(level(taking("both", all().when(both)), Criticality::Low))
        .task(level(taking("thirds", all().when(Condition::times(3, two))), Criticality::Low))
        .task(level(taking("apart", all().types(["T/Two"])).separation(ms(1)).burst(3), Criticality::Medium))
        .build()
        .expect("a system")
}

/// Operations that their period or their predecessor releases take what waits, one event each: all in their order, the newest alone, and what a filter
/// lets through.
fn looking(dispatch: LaneDispatch, cpus: std::ops::Range<u16>) -> System {
    let all = || SubscriptionBuilder::new("c");
    let newest = talea_event::qos::QosSettings::new().max_events(1);
    let look = |name: &str, period: i64| TaskBuilder::new(name, ms(period)).wcet(Work::from_micros(20));
    let step = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_micros(20));
    system(Strategy::Criticality)
        .lane_dispatch(dispatch)
        .node("n", cpus)
        .channel("c", talea_event::qos::QosSettings::new().max_events(4_000))
        .task(pushing("one", 2, "T/One").criticality(Criticality::VeryHigh))
        .task(look("all", 1).criticality(Criticality::Low).subscription(all()))
        .task(look("newest", 9).criticality(Criticality::High).subscription(all().qos(newest)))
        .task(
            TaskBuilder::new("pair", ms(1))
                .criticality(Criticality::Medium)
                .subtask(step("first"))
                .subtask(step("second").subscription(all().filter("x < 5"))),
        )
        .build()
        .expect("a system")
}

/// Whoever asks a run in one process for what its channels count asks each node, from when it is prepared until it has ended.
#[test]
fn each_node_of_a_process_tells_what_its_channels_count() {
    use talea_manage::control::protocol::{Command, Insistence, Outcome, Statistic};
    use talea_manage::control::{Client, Sockets};

    let name = format!("telling-{}", std::process::id());
    let on = |task: &str, node: &str| (task.to_owned(), node.to_owned());
    let nodes = [on("a", "left"), on("b", "right")];
    let mut builder =
        System::builder(&name).strategy(Strategy::Rms).channel("c", talea_event::qos::QosSettings::new());
    for node in ["left", "right", "idle"] {
        builder = builder.node(node, [0]);
    }
    for (task, node) in &nodes {
        let event = PublicationBuilder::new("c", format!("T/{task}"));
        let push = SubtaskBuilder::new("s").wcet(Work::from_micros(10)).on(node).event(event);
        let take = SubtaskBuilder::new("s").wcet(Work::from_micros(10)).on(node);
        let subscription = SubscriptionBuilder::new("c").types([&*format!("T/{task}")]);
        builder = builder.task(TaskBuilder::new(format!("push-{task}"), ms(2)).subtask(push)).task(
            TaskBuilder::triggered_by(format!("take-{task}"), subscription).deadline(ms(50)).subtask(take),
        );
    }
    let idle = SubtaskBuilder::new("s").wcet(Work::from_micros(10)).on("idle");
    let system = builder.task(TaskBuilder::new("other", ms(5)).subtask(idle)).build().expect("a system");

    let _alone = alone();
    let prepared =
        Executive::prepare(&system, Operations::synthetic(), options(RtMode::Off, 60_000)).expect("prepared");
    let sockets = Sockets::of_user().expect("a folder");
    let clients = nodes.each_ref().map(|(task, node)| {
        let called = format!("{name}.{node}");
        (task, Client::of(&sockets.find(&called).expect("it has one")), called)
    });
    sockets.find(&format!("{name}.idle")).expect_err("it has no channels");
    sockets.find(&name).expect_err("each node has its own");
    let ask = |client: &Client| {
        let command = Command::Statistics { names: Vec::new() };
        let Ok(Outcome::Statistics(all)) = client.ask(&command, Insistence::Careful) else { panic!("told") };
        all
    };
    for (task, client, called) in &clients {
        let all = ask(client);
        assert_eq!(all[&format!("{called}/c/ConsumerNames")], Statistic::Names(vec![format!("take-{task}")]));
        assert_eq!(all[&format!("{called}/c/OfferedTypes")], Statistic::Names(vec![format!("T/{task}")]));
    }
    let stop = prepared.stop_handle();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| prepared.run().expect("it runs"));
        // The events of a run grow old from its start on: when the channel was made, on the clock of the run, was before.
        let (_, client, called) = &clients[0];
        let Statistic::Number { last, .. } = ask(client)[&format!("{called}/c/CreationTime")] else {
            panic!("a number")
        };
        let now = talea_time::Clock::now(&talea_linux::clock::MonotonicClock);
        assert!(last > 0.0 && last <= now.as_nanos() as f64, "{last}");
        stop.stop();
        run.join().expect("it ends");
    });
    for (_, client, _) in &clients {
        client.ask(&Command::List, Insistence::Careful).expect_err("the run has ended");
    }
}

#[test]
fn operations_take_events_that_release_nothing() {
    let ways =
        [(LaneDispatch::NonPreemptive, 1), (LaneDispatch::NonPreemptive, 2), (LaneDispatch::Preemptive, 1)];
    for (dispatch, cpus) in ways.map(|(dispatch, cpus)| (dispatch, 0..cpus)) {
        if cpus.end > 1 && std::thread::available_parallelism().is_ok_and(|count| count.get() < 2) {
            talea_measure::skip("one processor is here");
            continue;
        }
        let counts: Arc<[AtomicU64; 2]> = Arc::default();
        let had = Arc::clone(&counts);
        let code = Operations::synthetic().with_ports("all", move |ports: &mut Ports<'_>| {
            ports.subscription();
            move |job: &JobContext<'_>| {
                _ = had[usize::from(job.event().is_some())].fetch_add(1, Ordering::Relaxed)
            }
        });
        let system = looking(dispatch, cpus);
        let ended = completed(["one", "all", "newest", "pair.second"], 30);
        let ran = run_until(&system, code, options(RtMode::Warn, 0), ended);
        let [without, with] = counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        assert!(without > 0 && with > 0, "{dispatch}: an event comes every other time: {without}, {with}");
        let pushed = ran.records.iter().filter_map(Push::read).count() as u64;
        let mut taken: HashMap<&str, Vec<(u64, JobId)>> = HashMap::new();
        for Deliver { job, from, .. } in ran.records.iter().filter_map(Deliver::read) {
            taken.entry(ran.name(job)).or_default().push((from.expect("a job has pushed it").instance, job));
        }
        for (name, taken) in &taken {
            let instances: Vec<u64> = taken.iter().map(|(instance, _)| *instance).collect();
            let mut jobs: Vec<JobId> = taken.iter().map(|(_, job)| *job).collect();
            jobs.dedup();
            assert_eq!(jobs.len(), taken.len(), "{name}: each job has one event");
            assert!(instances.is_sorted() && taken.len() >= 4, "{name}, {dispatch}: {instances:?}");
            match *name {
                "all" => assert_eq!(instances, (0..instances.len() as u64).collect::<Vec<_>>()),
                "pair.second" => {
                    let mut wanted: Vec<u64> =
                        (0..pushed).filter(|instance| field(&system, 0, *instance) < 5).collect();
                    wanted.truncate(instances.len());
                    assert_eq!(instances, wanted, "{dispatch}");
                }
                "newest" => assert!(instances.windows(2).any(|pair| pair[1] > pair[0] + 1), "{instances:?}"),
                other => panic!("{other} has not subscribed"),
            }
        }
        assert_eq!(taken.len(), 3, "{dispatch}");
        for lost in ran.records.iter().filter_map(EventsLost::read) {
            let name = &system.operations()[lost.operation as usize].name;
            assert_eq!((name.as_str(), lost.why.known()), ("newest", Some(EventLossReason::Discarded)));
        }
        // They arrive by their period, whatever is pushed.
        assert!(ran.count(Event::RELEASE, "all") > pushed as usize, "{dispatch}");
    }
}

/// Jobs of one operation have all events that wait, in their order; of another one, for which more come than may wait, the newest of these, and the others are
/// counted as discarded. Code sees what the trace says.
fn draining(dispatch: LaneDispatch, cpus: std::ops::Range<u16>) -> System {
    let all = || SubscriptionBuilder::new("c").take(EventTake::All);
    let look = |name: &str| TaskBuilder::new(name, ms(10)).wcet(Work::from_micros(20));
    system(Strategy::Criticality)
        .lane_dispatch(dispatch)
        .node("n", cpus)
        .channel("c", talea_event::qos::QosSettings::new().max_events(4_000))
        .task(pushing("one", 1, "T/One").criticality(Criticality::VeryHigh))
        .task(look("drain").criticality(Criticality::Low).subscription(all()))
        .task(
            look("few")
                .criticality(Criticality::Medium)
                .subscription(all().qos(talea_event::qos::QosSettings::new().max_events(FEW as u32))),
        )
        .build()
        .expect("a system")
}

const FEW: usize = 3;

/// The same with the lanes below a scheduler.
fn below(system: &System) -> System {
    let schedulers = "[[scheduler]]\nname = \"top\"\nkind = \"fixed-priority\"\n\
                      [[scheduler]]\nname = \"lanes\"\nkind = \"lanes\"\nunder = [{ scheduler = \"top\", priority = 1 }]\n";
    let text = format!("{}{schedulers}", system.to_toml());
    talea_model::parse("below.toml", &text, std::path::Path::new(".")).expect("a system").system
}

#[test]
fn a_job_takes_all_events_that_wait_and_no_more_wait_than_may() {
    for way in ["lanes", "preemptive lanes", "lowered", "a hierarchy"] {
        let staged = if way == "a hierarchy" { stage(1) } else { None };
        let (dispatch, lower) = match way {
            "preemptive lanes" => (LaneDispatch::Preemptive, Lower::WherePossible),
            "a hierarchy" => (LaneDispatch::NonPreemptive, Lower::Never),
            _ => (LaneDispatch::NonPreemptive, Lower::WherePossible),
        };
        let cpu = match (&staged, lower) {
            (Some((_, at)), _) => at.cpus[0],
            (None, Lower::WherePossible) => 0,
            // It has said why.
            (None, Lower::Never) => continue,
        };
        let lanes = draining(dispatch, cpu..cpu + 1);
        let system = if way.ends_with("lanes") { lanes } else { below(&lanes) };
        let had: Arc<AtomicU64> = Arc::default();
        let code = Operations::synthetic().with_ports("drain", {
            let had = Arc::clone(&had);
            move |ports: &mut Ports<'_>| {
                ports.subscription();
                move |job: &JobContext<'_>| {
                    let numbers: Vec<u64> = job.events().map(|event| event.number()).collect();
                    assert!(numbers.is_sorted(), "{numbers:?}");
                    assert_eq!(job.event().map(|event| event.number()), numbers.first().copied());
                    _ = had.fetch_add(numbers.len() as u64, Ordering::Relaxed);
                }
            }
        });
        let ended = completed(["drain", "few"], 12);
        let ran = run_until(&system, code, RunOptions { lower, ..options(RtMode::Warn, 0) }, ended);
        let mut taken: HashMap<&str, Vec<(u64, u64)>> = HashMap::new();
        for Deliver { job, from, .. } in ran.records.iter().filter_map(Deliver::read) {
            let from = from.expect("a job has pushed it").instance;
            taken.entry(ran.name(job)).or_default().push((job.instance, from));
        }
        let drained = &taken["drain"];
        let instances: Vec<u64> = drained.iter().map(|(_, from)| *from).collect();
        assert_eq!(instances, (0..instances.len() as u64).collect::<Vec<_>>(), "{way}: all, in their order");
        assert_eq!(had.load(Ordering::Relaxed), instances.len() as u64, "{way}");
        assert!(drained.chunk_by(|one, other| one.0 == other.0).any(|of_job| of_job.len() > 1), "{way}");
        let of_few = taken["few"].chunk_by(|one, other| one.0 == other.0);
        let (mut delivered, mut most) = (0, 0);
        for of_job in of_few {
            assert!(of_job.windows(2).all(|pair| pair[0].1 < pair[1].1), "{way}: {of_job:?}");
            (delivered, most) = (delivered + of_job.len(), most.max(of_job.len()));
        }
        assert_eq!(most, FEW, "{way}: more come than may wait");
        let lost = ran.records.iter().filter_map(EventsLost::read).map(|lost| {
            let name =
                ran.name(JobId { operation: OperationId::from_index(lost.operation as usize), instance: 0 });
            assert_eq!((name, lost.why.known()), ("few", Some(EventLossReason::Discarded)), "{way}");
            lost.events as usize
        });
        let lost: usize = lost.sum();
        let pushed = ran.records.iter().filter_map(Push::read).count();
        assert!(lost > 0 && delivered + lost <= pushed && pushed <= delivered + lost + 2 * FEW + 1, "{way}");
    }
}

/// What a field of a publication is.
fn field(system: &System, publication: u32, instance: u64) -> i64 {
    /// Streams of publications do not overlap.
    const FIELDS: usize = 1 << 10;
    let described = system.publication(&system.publications()[publication as usize]);
    let stream = demand::stream(system.seed, Purpose::Event, publication as usize * FIELDS);
    demand::field_from(&described.fields[0].values, stream, instance)
}

#[test]
fn what_filters_let_through_is_delivered_once_and_in_order() {
    let ways =
        [(LaneDispatch::NonPreemptive, 1), (LaneDispatch::NonPreemptive, 2), (LaneDispatch::Preemptive, 1)];
    for (dispatch, cpus) in ways.map(|(dispatch, cpus)| (dispatch, 0..cpus)) {
        if cpus.end > 1 && std::thread::available_parallelism().is_ok_and(|count| count.get() < 2) {
            talea_measure::skip("one processor is here");
            continue;
        }
        let system = busy(dispatch, cpus);
        let ended = completed(["one", "two", "three", "four", "all", "few", "both", "thirds", "apart"], 60);
        let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended);
        let lost: u32 = ran.records.iter().filter_map(EventsLost::read).map(|lost| lost.events).sum();
        assert_eq!(lost, 0, "{dispatch}");
        let when_pushed = |record: &Record| Push::read(record).map(|push| (push, record.time));
        let (pushed, times): (Vec<Push>, Vec<Instant>) = ran.records.iter().filter_map(when_pushed).unzip();
        // Of a type that waits for the other one further events are passed over. What is pushed at about the same time may come in either order.
        let waits_for_one = |four: u64, before: u64| {
            let of = |instance| {
                let is_it = |push: &&Push| ran.name(push.job) == "four" && push.job.instance == instance;
                times[pushed.iter().position(|push| is_it(&push)).expect("it was pushed")]
            };
            let (from, to) = (of(before), of(four));
            let ones = pushed.iter().zip(&times).filter(|(push, _)| ran.name(push.job) == "one");
            ones.filter(|(_, time)| (from..to).contains(*time)).count() <= 1
        };
        // One job for three events, and it has all three.
        let of_thirds = ran.records.iter().filter_map(Deliver::read);
        let of_thirds: Vec<Deliver> = of_thirds.filter(|deliver| ran.name(deliver.job) == "thirds").collect();
        for of_job in of_thirds.chunk_by(|one, other| one.job == other.job) {
            let events = of_job.iter().map(|deliver| deliver.from.expect("a job has pushed it").instance);
            let first = 3 * of_job[0].job.instance;
            assert!(events.eq(first..first + of_job.len() as u64) && of_job.len() <= 3, "{of_job:?}");
        }
        assert!(of_thirds.len() >= 3 * 60, "{dispatch}: {}", of_thirds.len());
        let mut taken: HashMap<OperationId, Vec<(u32, u64)>> = HashMap::new();
        for Deliver { job, from, publication, .. } in ran.records.iter().filter_map(Deliver::read) {
            let (from, publication) = from.zip(publication).expect("a job has pushed it");
            assert_eq!(from.operation, system.publications()[publication as usize].operation);
            taken.entry(job.operation).or_default().push((publication, from.instance));
        }
        for operation in system.operations().iter().filter(|operation| taken.contains_key(&operation.id)) {
            let taken = &taken[&operation.id];
            for site in system.publications() {
                let publication = site.id.index() as u32;
                let had: Vec<u64> = taken
                    .iter()
                    .filter(|(of, _)| *of == publication)
                    .map(|(_, instance)| *instance)
                    .collect();
                let is_wanted = |instance: &u64| match operation.name.as_str() {
                    "few" => field(&system, publication, *instance) < 3,
                    _ => true,
                };
                let subscribes = site.subscriber(operation.id).is_some();
                let pushed = pushed.iter().filter(|push| push.publication == publication && subscribes);
                let mut wanted: Vec<u64> = pushed.map(|push| push.job.instance).filter(is_wanted).collect();
                let name = (&operation.name, &site.name, dispatch);
                if operation.name == "both" {
                    // Of each type one with each of the other, and the rarer is not passed over, unless the machine stalls.
                    let mut before = None;
                    wanted.retain(|instance| match (had.contains(instance), before) {
                        (true, _) => {
                            before = Some(*instance);
                            true
                        }
                        (false, Some(before)) => {
                            site.name.ends_with("T/Four") && !waits_for_one(*instance, before)
                        }
                        (false, None) => site.name.ends_with("T/Four"),
                    });
                }
                // At the end some wait.
                wanted.truncate(had.len());
                assert_eq!(had, wanted, "{name:?}");
                assert!(had.len() >= 10 || !subscribes, "{name:?}: {}", had.len());
            }
        }
    }
}

/// Events that expire while the guard keeps releases apart take their releases with them: no job goes without an event, and the guard is not held
/// shut by it.
#[test]
fn what_has_expired_at_the_guard_releases_nothing() {
    let event = PublicationBuilder::new("c", "T/One").timeout(ms(5));
    let push = TaskBuilder::new("push", ms(1)).wcet(Work::from_micros(20)).event(event);
    let system = system(Strategy::Criticality)
        .node("n", [0])
        .channel("c", talea_event::qos::QosSettings::new())
        .task(push.criticality(Criticality::High))
        .task(taking("apart", SubscriptionBuilder::new("c")).separation(ms(20)))
        .build()
        .expect("a system");
    let ended = completed(["apart"], 6);
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended);
    let of = |event: Event| ran.of(event, "apart").collect::<Vec<_>>();
    let skipped = of(Event::SKIP);
    assert!(skipped.iter().all(|skip| skip.arg == SkipReason::Expired as u16), "{skipped:?}");
    // Between two releases twenty are pushed, and five are worth anything when the guard opens.
    assert!(skipped.len() >= 20, "{}", skipped.len());
    let delivered: Vec<JobId> =
        ran.records.iter().filter_map(Deliver::read).map(|deliver| deliver.job).collect();
    for start in of(Event::START) {
        let released = of(Event::RELEASE).into_iter().find(|release| release.job() == start.job());
        let waited = start.time - released.expect("it was released").time;
        // Unless the machine stalls, not all of the five expire meanwhile.
        assert!(delivered.contains(&start.job()) || waited > ms(1), "{:?} after {waited}", start.job());
    }
}

/// Time releases jobs when something comes of it and no others, whatever else comes meanwhile.
#[test]
fn time_releases_what_comes_of_it() {
    let of = |pattern: &str| pattern.parse::<Condition>().expect("a pattern");
    let when = |condition| SubscriptionBuilder::new("c").when(condition);
    let few = Condition::all_of_one([of("T/One"), Condition::Matching("x < 3".into())]);
    for dispatch in [LaneDispatch::NonPreemptive, LaneDispatch::Preemptive] {
        let system = system(Strategy::Rms)
            .lane_dispatch(dispatch)
            .node("n", [0])
            .channel("c", talea_event::qos::QosSettings::new().max_events(4_000))
            .task(pushing("one", 2, "T/One"))
            // Once, at the beginning.
            .task(pushing("once", 3_600_000, "T/Once"))
            .task(taking("missed", when(Condition::unless_within(ms(20), of("T/Once")))))
            .task(taking("ticks", when(Condition::any([of("T/Once"), Condition::every(ms(7))]))))
            .task(taking(
                "later",
                when(Condition::all(Collect::First, [Condition::after(ms(30)), of("T/One")])),
            ))
            .task(taking(
                "unanswered",
                when(Condition::in_order([of("T/One"), Condition::unless_within(ms(9), of("T/Once"))])),
            ))
            .task(taking(
                "paced",
                when(Condition::all(Collect::Latest, [Condition::every(ms(5)), few.clone()])),
            ))
            .build()
            .expect("a system");
        let ended = completed(["ticks", "paced"], 12);
        let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended);
        let released = |name: &str| -> Vec<Instant> {
            let all = ran.records.iter().filter(|record| record.event == Event::RELEASE);
            let all = all.filter(|record| ran.name(record.job()) == name);
            all.map(|record| record.time).collect()
        };
        let taken = |name: &str| -> Vec<(u64, u64)> {
            let all = ran.records.iter().filter_map(Deliver::read);
            let of_task = all.filter(|deliver| ran.name(deliver.job) == name);
            of_task.map(|deliver| (deliver.job.instance, deliver.from.expect("a job").instance)).collect()
        };
        // A part of a sequence is awaited from when its turn comes.
        let unanswered = released("unanswered");
        let pushed_at = |instance: u64| {
            let is_it = |push: Push| ran.name(push.job) == "one" && push.job.instance == instance;
            let push = ran.records.iter().find(|record| Push::read(record).is_some_and(is_it));
            push.expect("it was pushed").time
        };
        let began: Vec<Instant> = taken("unanswered").iter().map(|(_, from)| pushed_at(*from)).collect();
        assert!(unanswered.len() >= 3 && began.len() <= unanswered.len(), "{dispatch}: {unanswered:?}");
        let late = unanswered.iter().zip(&began).all(|(released, began)| *released >= *began + ms(9));
        assert!(late && began.len() + 1 >= unanswered.len(), "{dispatch}: {began:?} and {unanswered:?}");
        let (missed, later) = (released("missed"), released("later"));
        let pushed = ran
            .records
            .iter()
            .find(|record| Push::read(record).is_some_and(|push| ran.name(push.job) == "once"));
        // Where the machine stalls at the beginning, it is missed before it comes as well.
        let (pushed, begin) = (pushed.expect("it pushed").time, ran.records[0].time);
        let most = if pushed < begin + ms(20) { 1 } else { 2 };
        assert!((1..=most).contains(&missed.len()) && taken("missed").is_empty(), "{dispatch}: {missed:?}");
        assert!(*missed.last().expect("one") >= pushed + ms(20), "{dispatch}");
        assert_eq!((later.len(), taken("later").len()), (1, 1), "{dispatch}");
        assert!(later[0] >= begin + ms(30), "{dispatch}");
        // Of several that are over when the machine stalls, time tells once.
        let ticks = released("ticks");
        let most = (*ticks.last().expect("some") - ticks[0]).as_nanos() / ms(7).as_nanos() + 2;
        assert!((12..=most + 1).contains(&(ticks.len() as i64)), "{dispatch}: {}", ticks.len());
        assert_eq!(taken("ticks").len(), 1, "{dispatch}");
        let paced = taken("paced");
        assert!(
            paced.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1),
            "{dispatch}: {paced:?}"
        );
        let publication = system.publications()[0].id.index() as u32;
        assert!(paced.iter().all(|(_, instance)| field(&system, publication, *instance) < 3), "{dispatch}");
    }
}

/// What a program's events carry.
#[derive(Debug, Default, Filterable)]
#[filterable(crate = "talea_notification::etcl")]
struct Tilt {
    angle: i64,
    /// What filters do not know.
    count: u64,
}

impl Content for Tilt {}

fn tilting(filter: &str) -> System {
    system(Strategy::Criticality)
        .channel("c", talea_event::qos::QosSettings::new().max_events(1_000))
        .task(
            TaskBuilder::new("imu", ms(1))
                .wcet(Work::from_micros(10))
                .criticality(Criticality::High)
                .event(PublicationBuilder::new("c", "Robot/Tilt").field("angle", FieldValues::Constant(1))),
        )
        .task(pushing("other", 2, "Robot/Other"))
        .task(taking("guard", SubscriptionBuilder::new("c").types(["Robot/Tilt"]).filter(filter)))
        .task(taking("log", SubscriptionBuilder::new("c")).criticality(Criticality::Low))
        .build()
        .expect("a system")
}

#[test]
fn code_pushes_and_takes_events_of_its_own_types() {
    let sums: Arc<[AtomicU64; 3]> = Arc::default();
    let (guard, log) = (Arc::clone(&sums), Arc::clone(&sums));
    let operations = Operations::synthetic()
        .with_ports("imu", |ports: &mut Ports<'_>| {
            let tilt = ports.publication::<Tilt>("Robot/Tilt");
            move |job: &JobContext<'_>| {
                let is_pushed = job.push(tilt, |tilt, header| {
                    tilt.angle = (job.instance() % 10) as i64;
                    tilt.count += 1;
                    header.priority = Some(5);
                });
                assert!(is_pushed);
            }
        })
        .with_ports("guard", |ports: &mut Ports<'_>| {
            ports.subscription();
            move |job: &JobContext<'_>| {
                let event = job.event().expect("nothing expires");
                let tilt = event.event().content::<Tilt>().expect("a tilt");
                assert!(tilt.angle > 6 && event.priority() == 5 && tilt.count > 0, "{tilt:?}");
                guard[0].fetch_add(1, Ordering::Relaxed);
            }
        })
        .with_ports("log", |ports: &mut Ports<'_>| {
            ports.subscription();
            move |job: &JobContext<'_>| {
                let event = job.event().expect("nothing expires");
                let other = event.event().content::<SyntheticEvent>();
                let place =
                    if let Some(other) = other { 1 + usize::from(other.field("x").is_none()) } else { 2 };
                log[place].fetch_add(1, Ordering::Relaxed);
            }
        });
    let system = tilting("angle > 6");
    let ended = completed(["imu", "guard", "log", "other"], 30);
    let ran = run_until(&system, operations, options(RtMode::Warn, 0), ended);
    assert_eq!(ran.outcome.mishaps.panics, []);
    let counts = sums.each_ref().map(|sum| sum.load(Ordering::Relaxed) as usize);
    let delivered = |name: &str| ran.count(Event::DELIVER, name);
    let unfinished = |name: &str| delivered(name) - ran.count(Event::COMPLETE, name);
    assert!(counts[0] + unfinished("guard") >= delivered("guard") && counts[0] >= 30, "{counts:?}");
    assert!(counts[1] + counts[2] + unfinished("log") >= delivered("log"), "{counts:?}");
    assert!(counts[1] > 0 && counts[2] > 0, "{counts:?}");
}

#[test]
fn what_code_opens_wrongly_is_told_at_once() {
    let told = |operations: Operations| {
        let system = tilting("angle > 6");
        let _alone = alone();
        match Executive::prepare(&system, operations, options(RtMode::Off, 10)) {
            Err(PrepareError::Operations(errors)) => errors.to_string(),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was prepared"),
        }
    };
    let with = |name: &str, register: fn(&mut Ports<'_>)| {
        told(Operations::synthetic().with_ports(name, move |ports: &mut Ports<'_>| {
            register(ports);
            |_: &JobContext<'_>| ()
        }))
    };
    for (name, register, expected) in [
        ("imu", (|_| ()) as fn(&mut Ports<'_>), "does not open its events Robot/Tilt"),
        ("guard", |_| (), "does not open its subscription"),
        ("imu", |ports| _ = ports.publication::<Tilt>("Robot/Tild"), "it publishes Robot/Tilt"),
        (
            "imu",
            |ports| {
                ports.publication::<Tilt>("Robot/Tilt");
                ports.publication::<Tilt>("Robot/Tilt");
            },
            "twice",
        ),
        ("imu", |ports| ports.subscription(), "nor of a task of which it is a first subtask"),
        ("guard", |ports| _ = ports.publication::<Tilt>("Robot/Tilt"), "it publishes none"),
    ] {
        let told = with(name, register);
        assert!(told.contains(expected), "{told}");
    }

    /// Has no angle.
    #[derive(Default, Filterable)]
    #[filterable(crate = "talea_notification::etcl")]
    struct Level {
        level: f64,
    }
    impl Content for Level {}
    let told = with("imu", |ports| _ = ports.publication::<Level>("Robot/Tilt"));
    assert!(told.contains("filter of task \"guard\"") && told.contains("angle"), "{told}");
}

/// A task that begins with two subtasks in lanes of two schedulers, of which the lower ones are held up again and again, so that the other begins instance after
/// instance before it.
fn together(dispatch: LaneDispatch) -> System {
    let text = format!(
        r#"
        [system]
        name = "together"
        strategy = "criticality"
        lane_dispatch = "{dispatch}"
        [[node]]
        name = "n"
        cpus = [0]
        [[scheduler]]
        name = "top"
        kind = "fixed-priority"
        [[scheduler]]
        name = "fast"
        kind = "lanes"
        under = [{{ scheduler = "top", priority = 2 }}]
        [[scheduler]]
        name = "slow"
        kind = "lanes"
        under = [{{ scheduler = "top", priority = 1 }}]
        [[channel]]
        name = "c"
        qos = {{ MaxEventsPerConsumer = 3 }}
        [[task]]
        name = "push"
        lanes = "fast"
        period = "1ms"
        wcet = "20us"
        events = [{{ channel = "c", type = "T/One", fields = {{ x = {{ uniform = [0, 1000000] }} }} }}]
        [[task]]
        name = "hog"
        criticality = "high"
        lanes = "slow"
        period = "20ms"
        wcet = "7ms"
        [[task]]
        name = "take"
        subscription = {{ channel = "c", types = ["T/One"] }}
        deadline = "30ms"
          [[task.subtask]]
          name = "quick"
          lanes = "fast"
          wcet = "20us"
          [[task.subtask]]
          name = "late"
          after = []
          lanes = "slow"
          wcet = "20us"
        "#
    );
    talea_model::parse("together.toml", &text, std::path::Path::new(".")).expect("a system").system
}

/// What a job had: its instance, who pushed it, and the field of the event as it read it.
type Had = Arc<std::sync::Mutex<Vec<(u64, Option<(u64, i64)>)>>>;

#[test]
fn first_subtasks_of_an_instance_have_the_same_event() {
    let system = together(LaneDispatch::NonPreemptive);
    let had: [Had; 2] = [Arc::default(), Arc::default()];
    let names = ["take.quick", "take.late"];
    let mut code = Operations::synthetic();
    for (name, had) in names.into_iter().zip(&had) {
        let had = Arc::clone(had);
        code = code.with_ports(name, move |ports: &mut Ports<'_>| {
            ports.subscription();
            move |job: &JobContext<'_>| {
                let read = job.event().map(|delivery| {
                    let event = delivery.event();
                    let content = event.content::<SyntheticEvent>().expect("nothing else is pushed");
                    let origin = event.header().origin.expect("a job has pushed it");
                    (origin.instance, content.field("x").expect("it has it"))
                });
                had.lock().expect("nobody panics").push((job.instance(), read));
            }
        });
    }
    let ended = completed(["take.late"], 60);
    let ran = run_until(&system, code, options(RtMode::Warn, 0), ended);
    let [quick, late] = had.map(|had| std::mem::take(&mut *had.lock().expect("nobody panics")));
    let quick: HashMap<u64, Option<(u64, i64)>> = quick.into_iter().collect();
    let ahead = |(instance, _): &&(u64, Option<(u64, i64)>)| quick.contains_key(instance);
    assert!(late.iter().filter(ahead).count() >= 60, "{late:?}");
    for (instance, read) in late.iter().filter(ahead) {
        assert_eq!(quick[instance], *read, "{instance}");
        let from = read.map(|(from, _)| from).expect("nothing expires");
        assert_eq!(read.map(|(_, x)| x), Some(field(&system, 0, from)), "it is as it was pushed");
    }
    let mut taken: Vec<u64> = quick.values().flatten().map(|(from, _)| *from).collect();
    let all = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), all, "each event is one instance's");
    // More come while the lower one is held up than may wait, and those that it is to have stay.
    let lost = ran.records.iter().filter_map(EventsLost::read);
    let lost: u32 = lost.map(|lost| lost.events).sum();
    let pushed = ran.records.iter().filter_map(Push::read).count();
    assert!(lost > 0 && pushed <= all + lost as usize + 4, "{pushed} pushed, {all} taken, {lost} lost");
}
