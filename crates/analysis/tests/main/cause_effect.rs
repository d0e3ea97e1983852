//! No chain of random tasks takes longer than its bounds, by a scheduler that shares nothing with the simulator or the analysis: one
//! processor, tick by tick, fixed priorities by period, FIFO among equal ones, both kinds of communication, triggers with bursts.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use std::sync::Arc;
use talea_analysis::Effort;
use talea_analysis::system::{self, ChainBounds, ChainObstacle, SystemBounds};
use talea_event::qos::{OrderPolicy, QosSettings};
use talea_model::{
    Chain, Channel, Collect, Communication, Condition, Criticality, Description, EventTake, Excess,
    Execution, FieldValues, Full, Input, Join, LaneDispatch, Late, Laxity, Link, LinkEnds, LossRate, Mapped,
    Node, OnValue, OperationAddress, Output, OutputAddress, OutsideArrivals, Overhead, Overrun, Publication,
    Route, Separation, Strategy, Subscription, Subtask, Synchronisation, SyntheticField, System, Take, Task,
    Trigger,
};
use talea_policy::strategy::plan_system;
use talea_time::{Duration, Work};

const CHAINS: u64 = 3_000;
const TICKS: i64 = 1_500;

const NS: fn(i64) -> Duration = Duration::from_nanos;

fn output_of(task: usize) -> OutputAddress {
    OutputAddress { operation: OperationAddress { task, subtask: 0 }, output: 0 }
}

fn task(name: &str, period: i64, wcet: i64) -> Task {
    Task {
        name: name.into(),
        period: NS(period),
        deadline: NS(period),
        phase: Duration::ZERO,
        jitter: Duration::ZERO,
        criticality: Criticality::Medium,
        importance: 0,
        trigger: None,
        inherits_deadline: false,
        inherits_criticality: false,
        separation: None,
        communication: Communication::Implicit,
        overrun: Overrun::Queue,
        sync: Synchronisation::Greedy,
        subtasks: vec![Subtask {
            name: name.into(),
            node: 0,
            lanes: None,
            wcet: Work::from_nanos(wcet),
            exec: Execution::Constant(Work::from_nanos(wcet)),
            after: Vec::new(),
            join: Join::All,
            bound: None,
            outputs: vec![Output { name: "out".into(), bytes: 8, fields: Vec::new() }],
            inputs: Vec::new(),
            events: Vec::new(),
            subscription: None,
        }],
    }
}

fn reads(mut task: Task, from: usize, take: Take) -> Task {
    task.subtasks[0].inputs.push(Input { name: format!("in{from}"), from: output_of(from), take });
    task
}

fn described(tasks: Vec<Task>, path: &[usize]) -> Description {
    Description {
        name: "chains".into(),
        strategy: Strategy::Rms,
        lane_dispatch: LaneDispatch::NonPreemptive,
        laxity: Laxity::ALL[0],
        late: Late::None,
        seed: 1,
        overhead: Overhead::default(),
        links: Vec::new(),
        channels: vec![Channel { name: "c".into(), qos: QosSettings::new() }],
        nodes: vec![Node { name: "n".into(), cpus: vec![0] }],
        schedulers: Vec::new(),
        threads: Vec::new(),
        chains: vec![Chain {
            name: "chain".into(),
            path: path.iter().map(|task| OperationAddress { task: *task, subtask: 0 }).collect(),
            latency: None,
            reaction: None,
            age: None,
        }],
        tasks,
    }
}

/// The task has events of these others, which push one with each job.
fn subscribe(tasks: &mut [Task], index: usize, producers: &[usize], drawn: EventsDrawn) {
    let EventsDrawn { filtered, mapped, qos, timeout } = drawn;
    let mut types = Vec::new();
    for producer in producers {
        let name = format!("T/t{producer}for{index}");
        tasks[*producer].subtasks[0].events.push(Publication {
            channel: 0,
            event_type: name.parse().expect("any text is a type"),
            bytes: 8,
            fields: vec![SyntheticField { name: "x".into(), values: FieldValues::Uniform(0, 9) }],
            header_fields: Vec::new(),
            priority: None,
            timeout: timeout.map(NS),
            source: 0,
        });
        types.push(name.parse().expect("a pattern"));
    }
    let filter = filtered.then(|| "x < 5".to_owned());
    let condition = Condition::of_types(types);
    // Those that hold of no event change nothing, and are tried all the same.
    let priority_by = vec![Mapped::when("x > 9", 1); mapped.len()];
    let timeout_by = mapped.into_iter().map(|timeout| Mapped::when("x < 5", NS(timeout))).collect();
    let trigger =
        Subscription { channel: 0, condition, filter, priority_by, timeout_by, take: EventTake::Next, qos };
    tasks[index].trigger = Some(Trigger::Events(trigger));
}

#[test]
fn what_a_job_pushes_is_in_its_bound() {
    let of_first = |overhead: Overhead, filtered: bool, mapped: Vec<i64>| {
        let mut tasks = vec![task("push", 100, 10), task("follow", 100, 4), task("too", 100, 4)];
        let all = |filtered, mapped| EventsDrawn { filtered, mapped, ..EventsDrawn::default() };
        subscribe(&mut tasks, 1, &[0], all(filtered, Vec::new()));
        subscribe(&mut tasks, 2, &[0], all(false, mapped));
        let (system, bounds, _) = bounds_of(Description { overhead, ..described(tasks, &[0, 1]) });
        bounds.from_release(system.operations()[0].id).expect("there is room").as_nanos()
    };
    let [push, filter, delivery] = [3, 2, 1].map(Work::from_nanos);
    let costs = Overhead { push, filter, delivery, ..Overhead::default() };
    // Two events with a subscription each.
    let without = of_first(Overhead::default(), true, Vec::new());
    let with = |filtered, mapped| of_first(costs, filtered, mapped) - without;
    assert_eq!([with(true, vec![]), with(false, vec![])], [10, 8]);
    // Two priorities and two timeouts may be tried for the event.
    assert_eq!(with(false, vec![100_000; 2]), 8 + 4 * 2);
}

/// How a task has its events.
#[derive(Default)]
struct EventsDrawn {
    filtered: bool,
    /// Timeouts of events that a mapping filter may be about.
    mapped: Vec<i64>,
    qos: QosSettings,
    timeout: Option<i64>,
}

/// Steps for the lanes of a system. A lane whose load is next to a whole processor would take seconds; it gets coarse bounds.
const STEPS: u64 = 20_000_000;

fn bounds_of(description: Description) -> (System, SystemBounds, ChainBounds) {
    let system = System::new(description).expect("a valid system");
    let plans = plan_system(&system).expect("all have periods");
    let bounds = system::analyse(&system, &plans, &mut Effort::new(STEPS)).expect("small numbers");
    let chain = bounds.chains(&system, &mut Effort::new(STEPS)).remove(0);
    (system, bounds, chain)
}

/// Where a value comes from: number, arrival and sampling of the first task's job.
#[derive(Clone, Copy, Debug)]
struct Origin {
    number: usize,
    arrival: i64,
}

#[derive(Clone, Debug)]
struct Job {
    task: usize,
    arrival: i64,
    release: i64,
    left: i64,
    /// What it has taken, once it has begun.
    taken: Option<Option<Origin>>,
}

/// An event that waits for its task.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    from: usize,
    origin: Option<Origin>,
    expires: i64,
}

/// What a run has shown.
#[derive(Default, Debug)]
struct Shown {
    responses: Vec<i64>,
    /// When each job of the first task sampled, and when it arrived.
    samples: Vec<(i64, i64)>,
    /// Completions of the last task's jobs with what they used.
    completions: Vec<(i64, Origin)>,
}

fn run(system: &System, path: &[usize], random: &mut Pcg64Mcg) -> Shown {
    let tasks = &system.tasks;
    let mut shown = Shown { responses: vec![0; tasks.len()], ..Shown::default() };
    // What each has published: when it is visible, and the origin.
    let mut published: Vec<Vec<(i64, Option<Origin>)>> = vec![Vec::new(); tasks.len()];
    let mut values = vec![0_u32; tasks.len()];
    let mut waiting: Vec<VecDeque<Waiting>> = vec![VecDeque::new(); tasks.len()];
    let mut ready: Vec<Job> = Vec::new();
    let mut late: Vec<Job> = Vec::new();
    let mut recent: Vec<Vec<i64>> = vec![Vec::new(); tasks.len()];
    let full = random.random_range(0..3);
    let place = |task: usize| path.iter().position(|step| *step == task);
    for now in 0..TICKS {
        for (index, task) in tasks.iter().enumerate() {
            let (period, phase) = (task.period.as_nanos(), task.phase.as_nanos());
            let mut arrivals = 0;
            match &task.trigger {
                None => arrivals = i64::from(now >= phase && (now - phase) % period == 0),
                Some(Trigger::External { .. }) => {
                    let separation = task.separation.expect("it has one");
                    let burst = separation.burst as usize;
                    // As many as are allowed, or some of them.
                    while random.random_range(0..3) > 0 {
                        let far = |back: usize, far: i64| {
                            recent[index].len() < back
                                || now - recent[index][recent[index].len() - back] >= far
                        };
                        let spaced = (burst..=recent[index].len())
                            .all(|back| far(back, (back - burst + 1) as i64 * period));
                        if !spaced {
                            break;
                        }
                        recent[index].push(now);
                        arrivals += 1;
                    }
                }
                Some(Trigger::Output { .. } | Trigger::Events(_)) => {}
            }
            for _ in 0..arrivals {
                let jitter = task.jitter.as_nanos();
                let release = now + if jitter > 0 { random.random_range(0..=jitter) } else { 0 };
                late.push(Job { task: index, arrival: now, release, left: 0, taken: None });
            }
        }
        let mut due: Vec<Job> = late.extract_if(.., |job| job.release <= now).collect();
        for job in &mut due {
            let wcet = tasks[job.task].subtasks[0].wcet.as_nanos();
            job.left = if full == 0 { random.random_range(1..=wcet) } else { wcet };
        }
        ready.extend(due);
        let order = |job: &Job| (tasks[job.task].period, job.release, job.task, job.arrival);
        let Some(chosen) = (0..ready.len()).min_by_key(|index| order(&ready[*index])) else { continue };
        let job = &mut ready[chosen];
        if job.taken.is_none() {
            let by_event = matches!(tasks[job.task].trigger, Some(Trigger::Events(_))).then(|| {
                waiting[job.task].retain(|event| event.expires >= now);
                waiting[job.task].pop_front()
            });
            let is_let = tasks[job.task].communication == Communication::Let;
            let as_of = if is_let { job.arrival } else { now };
            let origin = match place(job.task) {
                Some(0) => {
                    shown.samples.push((as_of, job.arrival));
                    Some(Origin { number: shown.samples.len() - 1, arrival: job.arrival })
                }
                Some(step) if subscribes(tasks, path[step - 1], job.task) => {
                    let event = by_event.flatten().filter(|event| event.from == path[step - 1]);
                    event.and_then(|event| event.origin)
                }
                Some(step) => {
                    let of = &published[path[step - 1]];
                    of.iter().rfind(|(visible, _)| *visible <= as_of).and_then(|(_, origin)| *origin)
                }
                None => None,
            };
            job.taken = Some(origin);
        }
        job.left -= 1;
        if job.left > 0 {
            continue;
        }
        let done = ready.remove(chosen);
        let end = now + 1;
        shown.responses[done.task] = shown.responses[done.task].max(end - done.arrival);
        let origin = done.taken.expect("it has begun");
        let period = tasks[done.task].period.as_nanos();
        let visible = match tasks[done.task].communication {
            Communication::Let => end.max(done.arrival + period),
            Communication::Implicit => end,
        };
        published[done.task].push((visible, origin));
        if let (Some(origin), true) = (origin, path.last() == Some(&done.task)) {
            shown.completions.push((end, origin));
        }
        values[done.task] += 1;
        for (index, task) in
            tasks.iter().enumerate().filter(|(index, _)| subscribes(tasks, done.task, *index))
        {
            let Some(Trigger::Events(subscription)) = &task.trigger else {
                unreachable!("it has subscribed")
            };
            if subscription.filter.is_some() && random.random_range(0..3) == 0 {
                continue;
            }
            let stated = tasks[done.task].subtasks[0].events[0].timeout;
            let is_mapped = !subscription.timeout_by.is_empty() && random.random_range(0..2) == 0;
            let mapped = subscription.timeout_by.first().filter(|_| is_mapped).map(|entry| entry.value);
            let timeout = mapped.or(stated);
            let expires = timeout.map_or(i64::MAX, |timeout| end + timeout.as_nanos());
            let most = system.subscription_qos(subscription).max_events as usize;
            let queue = &mut waiting[index];
            queue.retain(|event| event.expires >= end);
            let is_full = queue.len() == most;
            if is_full {
                queue.pop_front();
            }
            queue.push_back(Waiting { from: done.task, origin, expires });
            if !is_full {
                let distance = task.separation.map_or(0, |separation| separation.separation.as_nanos());
                let release = recent[index].last().map_or(end, |last| end.max(last + distance));
                recent[index].push(release);
                let arrival = if task.inherits_deadline { done.arrival } else { end };
                late.push(Job { task: index, arrival, release, left: 0, taken: None });
            }
        }
        for (index, task) in tasks.iter().enumerate() {
            if let Some(Trigger::Output { output, every, .. }) = task.trigger
                && output.operation.task == done.task
                && values[done.task].is_multiple_of(every)
            {
                let distance = task.separation.map_or(0, |separation| separation.separation.as_nanos());
                let release = recent[index].last().map_or(end, |last| end.max(last + distance));
                recent[index].push(release);
                let arrival = if task.inherits_deadline { done.arrival } else { end };
                late.push(Job { task: index, arrival, release, left: 0, taken: None });
            }
        }
    }
    shown
}

/// Whether the second has events that the first pushes.
fn subscribes(tasks: &[Task], from: usize, to: usize) -> bool {
    let Some(Trigger::Events(subscription)) = &tasks[to].trigger else { return false };
    let mut pushed = tasks[from].subtasks[0].events.iter();
    pushed.any(|event| subscription.hands_on(event))
}

fn draw(seed: u64) -> (Description, Vec<usize>) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let count = random.random_range(2..=5_usize);
    let mut tasks: Vec<Task> = Vec::new();
    for index in 0..count {
        let period = random.random_range(4..40_i64);
        let wcet = random.random_range(1..=(period / count as i64).max(1));
        let mut drawn = task(&format!("t{index}"), period, wcet);
        let mut subscribed: Option<(Vec<usize>, EventsDrawn)> = None;
        match random.random_range(0..8) {
            0 if index == 0 => {
                drawn.trigger = Some(Trigger::External { arrivals: OutsideArrivals::None });
                let burst = random.random_range(1..=3);
                drawn.separation = Some(Separation { separation: NS(period), burst, excess: Excess::Defer });
            }
            1 | 2 if index > 0 => {
                let producer = random.random_range(0..index);
                if tasks[producer].communication == Communication::Implicit {
                    let every = random.random_range(1..=3);
                    drawn.trigger =
                        Some(Trigger::Output { output: output_of(producer), every, on: OnValue::Value });
                    let root = tasks[producer].period.as_nanos() * i64::from(every);
                    let separation = NS(random.random_range(root / 2 + 1..=root));
                    drawn.separation = (random.random_range(0..2) == 0).then_some(Separation {
                        separation,
                        burst: 1,
                        excess: Excess::Defer,
                    });
                }
            }
            3 | 4 => drawn.communication = Communication::Let,
            5 => drawn.jitter = NS(random.random_range(0..period)),
            6 | 7 if index > 0 => {
                let mut producers: Vec<usize> = (0..random.random_range(1..=2_usize))
                    .map(|_| random.random_range(0..index))
                    .filter(|producer| tasks[*producer].communication == Communication::Implicit)
                    .collect();
                producers.dedup();
                if !producers.is_empty() {
                    subscribed = Some((
                        producers,
                        EventsDrawn {
                            filtered: random.random_range(0..4) == 0,
                            mapped: match random.random_range(0..4) {
                                0 => vec![random.random_range(5..200)],
                                // More than the two constraints may take.
                                1 => vec![random.random_range(100_000..200_000)],
                                _ => Vec::new(),
                            },
                            qos: QosSettings::new().max_events(random.random_range(1..=6)),
                            timeout: (random.random_range(0..4) == 0).then(|| random.random_range(5..200)),
                        },
                    ));
                    let separation = Separation { separation: NS(period), burst: 1, excess: Excess::Defer };
                    drawn.separation = (random.random_range(0..3) == 0).then_some(separation);
                }
            }
            _ => {}
        }
        if drawn.trigger.is_none() && subscribed.is_none() {
            drawn.phase = NS(random.random_range(0..60));
        }
        drawn.deadline = NS(400);
        drawn.inherits_deadline = (drawn.trigger.is_some() || subscribed.is_some())
            && !matches!(drawn.trigger, Some(Trigger::External { .. }))
            && drawn.separation.is_none()
            && random.random_range(0..2) == 0;
        tasks.push(drawn);
        if let Some((producers, drawn)) = subscribed {
            subscribe(&mut tasks, index, &producers, drawn);
        }
    }
    let mut path: Vec<usize> = (0..count).collect();
    for index in (1..count).rev() {
        path.swap(index, random.random_range(0..=index));
    }
    path.truncate(random.random_range(2..=count));
    for step in path.windows(2) {
        let (from, to) = (step[0], step[1]);
        if subscribes(&tasks, from, to) {
            continue;
        }
        let take = match random.random_range(0..4) {
            0 => Take::Each { capacity: random.random_range(1..=20), full: Full::Oldest },
            _ => Take::Latest,
        };
        let reader = std::mem::replace(&mut tasks[to], task("x", 1, 1));
        tasks[to] = reads(reader, from, take);
    }
    (described(tasks, &path), path)
}

#[test]
fn no_chain_takes_longer_than_its_bounds() {
    let only = std::env::var("TALEA_SEED").ok().map(|text| text.parse::<u64>().expect("a number"));
    let (mut bounded, mut tight, mut by_events) = ([0_u64; 3], [0_u64; 3], [0_u64; 3]);
    for seed in only.map_or(0..CHAINS, |seed| seed..seed + 1) {
        let (description, path) = draw(seed);
        let Ok(system) = System::new(description) else { continue };
        let (system, bounds, chain) = bounds_of(Description::clone(&system));
        let shown = run(&system, &path, &mut Pcg64Mcg::seed_from_u64(seed ^ 0xc4a1));
        for (task, response) in shown.responses.iter().enumerate() {
            if let Ok(bound) = bounds.tasks[task].response {
                assert!(
                    *response <= bound.as_nanos(),
                    "seed {seed}: task {task} took {response} of {bound}\n{}",
                    system.to_toml()
                );
            }
        }
        let mut worst = [0_i64; 3];
        let mut first_use = vec![false; shown.samples.len()];
        let is_external = matches!(system.tasks[path[0]].trigger, Some(Trigger::External { .. }));
        // Events: just after each sample, which later samples see; from outside, each arrival, which its own sees.
        let mut seen = 0;
        for (end, origin) in &shown.completions {
            worst[2] = worst[2].max(end - origin.arrival);
            if !std::mem::replace(&mut first_use[origin.number], true) {
                worst[0] = worst[0].max(end - origin.arrival);
            }
            while seen < origin.number + usize::from(is_external) {
                let (sampled, arrival) = shown.samples[seen];
                worst[1] = worst[1].max(end - if is_external { arrival } else { sampled });
                seen += 1;
            }
        }
        // The event after this sample was not seen before the end.
        if let Some((sampled, arrival)) = shown.samples.get(seen) {
            worst[1] = worst[1].max(TICKS - if is_external { arrival } else { sampled });
        }
        for (kind, bound) in [chain.latency, chain.reaction, chain.age].into_iter().enumerate() {
            let Ok(bound) = bound else { continue };
            bounded[kind] += 1;
            let is_subscribed = path.windows(2).any(|step| subscribes(&system.tasks, step[0], step[1]));
            by_events[kind] += u64::from(is_subscribed);
            tight[kind] += u64::from(worst[kind] * 10 >= bound.as_nanos() * 9);
            assert!(
                worst[kind] <= bound.as_nanos(),
                "seed {seed}: time {kind} was {} of {bound}, path {path:?}\n{chain:#?}\n{}",
                worst[kind],
                system.to_toml()
            );
        }
        if let Ok(reaction) = chain.reaction {
            let sum: i64 = chain.steps.iter().map(|step| step.time.as_nanos()).sum();
            assert_eq!(sum, reaction.as_nanos(), "seed {seed}: {chain:#?}");
        }
    }
    println!("bounded {bounded:?}, within a tenth of the bound {tight:?}, by events {by_events:?}");
    if only.is_none() {
        assert!(bounded.iter().all(|count| *count > CHAINS / 3), "{bounded:?}");
        assert!(tight.iter().all(|count| *count > 20), "{tight:?}");
        assert!(by_events.iter().all(|count| *count > CHAINS / 60), "{by_events:?}");
    }
}

/// Davare et al. 2007: the sum of periods and responses. The reader has the higher priority, so that nothing is saved.
#[test]
fn a_chain_from_slow_to_fast_takes_periods_and_responses() {
    let slow = task("slow", 20, 3);
    let fast = reads(task("fast", 10, 2), 0, Take::Latest);
    let (_, bounds, chain) = bounds_of(described(vec![slow, fast], &[0, 1]));
    assert_eq!((bounds.tasks[0].response, bounds.tasks[1].response), (Ok(NS(5)), Ok(NS(2))));
    assert_eq!(chain.latency, Ok(NS(5 + 10 + 2)));
    assert_eq!(chain.reaction, Ok(NS(20 + 5 + 10 + 2)));
    assert_eq!(chain.age, Ok(NS(20 + 5 + 2)));
}

/// Dürr et al. 2019: with the writer above the reader, the writer's response is not waited for.
#[test]
fn a_reader_below_its_writer_does_not_wait_for_it() {
    let fast = task("fast", 10, 2);
    let slow = reads(task("slow", 20, 3), 0, Take::Latest);
    let (_, _, chain) = bounds_of(described(vec![fast, slow], &[0, 1]));
    assert_eq!(chain.latency, Ok(NS(20 + 5)));
    assert_eq!(chain.reaction, Ok(NS(10 + 20 + 5)));
    assert_eq!(chain.age, Ok(NS(10 + 5)));
}

#[test]
fn under_logical_execution_time_values_wait_for_the_end_of_the_period() {
    let mut fast = task("fast", 10, 2);
    fast.communication = Communication::Let;
    let mut slow = reads(task("slow", 20, 3), 0, Take::Latest);
    slow.communication = Communication::Let;
    let (_, _, chain) = bounds_of(described(vec![fast, slow], &[0, 1]));
    assert_eq!(chain.latency, Ok(NS(10 + 20 + 5)));
    assert_eq!(chain.reaction, Ok(NS(10 + 10 + 20 + 5)));
    assert_eq!(chain.age, Ok(NS(10 + 10 + 5)));
}

#[test]
fn what_comes_from_outside_is_answered_in_time_and_may_be_of_any_age() {
    let mut stop = task("stop", 50, 2);
    stop.trigger = Some(Trigger::External { arrivals: OutsideArrivals::Sporadic { mean: NS(60) } });
    stop.separation = Some(Separation { separation: NS(50), burst: 1, excess: Excess::Defer });
    let control = reads(task("control", 10, 3), 0, Take::Latest);
    let (system, _, chain) = bounds_of(described(vec![stop.clone(), control.clone()], &[0, 1]));
    let stopping = system.operations()[0].id;
    assert_eq!(chain.reaction, Ok(NS(5 + 10 + 3)), "counted from the arrival");
    assert_eq!(chain.age, Err(ChainObstacle::Irregular(stopping)));

    let (_, _, chain) =
        bounds_of(described(vec![reads(stop.clone(), 1, Take::Latest), task("control", 10, 3)], &[1, 0]));
    assert_eq!(chain.reaction, Err(ChainObstacle::Irregular(stopping)), "nothing makes it look");
    assert_eq!(
        chain.age,
        Ok(NS(10 + 5)),
        "but what it sees when it does is new; the writer has the higher lane"
    );

    stop.trigger = Some(Trigger::External { arrivals: OutsideArrivals::Poisson { mean: NS(60) } });
    let (system, bounds, chain) = bounds_of(described(vec![stop, control], &[0, 1]));
    assert_eq!(bounds.tasks[0].response, Err(system::Obstacle::Undeclared));
    assert!(bounds.holds(&system, 1), "the guard protects others");
    assert!(chain.reaction.is_err());
}

#[test]
fn values_that_may_be_dropped_and_guards_that_are_overloaded_are_named() {
    let slow = |capacity| reads(task("slow", 100, 3), 0, Take::Each { capacity, full: Full::Oldest });
    let of = |capacity| bounds_of(described(vec![task("fast", 10, 2), slow(capacity)], &[0, 1])).2;
    assert!(matches!(of(4).reaction, Err(ChainObstacle::Dropped(_))));
    assert_eq!(of(16).reaction, Ok(NS(10 + 100 + 5)));

    // What every third value releases has none of the third ones, if the queue keeps two and drops what is new.
    let third = |capacity, full| {
        let mut third = reads(task("third", 30, 1), 0, Take::Each { capacity, full });
        third.trigger = Some(Trigger::Output { output: output_of(0), every: 3, on: OnValue::Value });
        bounds_of(described(vec![task("fast", 10, 2), third], &[0, 1])).2
    };
    assert!(matches!(third(2, Full::Newest).reaction, Err(ChainObstacle::Dropped(_))));
    let of_newest = third(2, Full::Oldest).reaction;
    assert_eq!(of_newest, third(16, Full::Newest).reaction, "it has the third one, whatever it lacks");
    assert_eq!(of_newest, Ok(NS(10 + 20 + 2 + (2 + 1))));

    // Of two in a lane that is overloaded neither waits for the other alone.
    let mut served = reads(task("served", 10, 9), 0, Take::Latest);
    served.trigger = Some(Trigger::Output { output: output_of(0), every: 1, on: OnValue::Value });
    let (_, bounds, _) = bounds_of(described(vec![task("fast", 10, 3), served], &[0, 1]));
    let reasons = bounds.tasks.iter().map(|task| task.response);
    assert_eq!(reasons.collect::<Vec<_>>(), [Err(system::Obstacle::Overload); 2]);

    // What is under way has its room already, and takes that of what a job was released for.
    let away = |capacity, jitter| {
        let mut each = reads(task("each", 20, 1), 0, Take::Each { capacity, full: Full::Oldest });
        each.trigger = Some(Trigger::Output { output: output_of(0), every: 1, on: OnValue::Value });
        each.subtasks[0].node = 1;
        let mut description = described(vec![task("fast", 20, 2), each], &[0, 1]);
        description.nodes.push(Node { name: "other".into(), cpus: vec![1] });
        let route =
            Route { delay: NS(50), jitter: NS(jitter), loss: LossRate::from_share(0.0).expect("a share") };
        description.links.push(Link { ends: LinkEnds::Others, route });
        bounds_of(description).2.reaction
    };
    assert!(away(8, 0).is_ok() && away(8, 10).is_ok());
    assert!(matches!(away(1, 0), Err(ChainObstacle::Dropped(_))));
    assert!(
        matches!(away(8, 19), Err(ChainObstacle::Overtaken(..))),
        "one may come before the one before it"
    );

    let mut log = task("log", 25, 1);
    log.trigger = Some(Trigger::Output { output: output_of(0), every: 2, on: OnValue::Value });
    log.separation = Some(Separation { separation: NS(25), burst: 1, excess: Excess::Defer });
    let (_, bounds, chain) = bounds_of(described(vec![task("fast", 10, 2), log.clone()], &[0, 1]));
    assert_eq!(bounds.tasks[1].response, Err(system::Obstacle::Backlog));
    assert!(matches!(chain.reaction, Err(ChainObstacle::NoResponse(_, system::Obstacle::Backlog))));

    // Signals lie within 2 of 20, 40, …: one may wait for 2, and then for its turn below the other.
    log.separation = Some(Separation { separation: NS(20), burst: 1, excess: Excess::Defer });
    let (_, bounds, _) = bounds_of(described(vec![task("fast", 10, 2), log], &[0, 1]));
    assert_eq!(bounds.tasks[1].response, Ok(NS(2 + 3)));
}

#[test]
fn lists_of_arrivals_are_held_against_the_declaration() {
    let with = |times: &[i64]| {
        let mut stop = task("stop", 10, 2);
        let times: Arc<[Duration]> = times.iter().map(|time| NS(*time)).collect();
        stop.trigger = Some(Trigger::External { arrivals: OutsideArrivals::Listed(times) });
        stop.separation = Some(Separation { separation: NS(10), burst: 2, excess: Excess::Drop });
        let (system, bounds, _) =
            bounds_of(described(vec![stop, reads(task("control", 10, 3), 0, Take::Latest)], &[0, 1]));
        (bounds.holds(&system, 0), system::breaks_declaration(&system, 0))
    };
    assert_eq!(with(&[0, 0, 10, 20, 40, 40]), (true, false));
    assert_eq!(with(&[0, 0, 9]), (false, true));
}

/// A chain that begins behind a message which may be lost does not sample in each period, although nothing is lost on its own way.
#[test]
fn a_message_that_may_be_lost_before_a_chain_leaves_it_without_bounds() {
    let described = |loss: f64| {
        let mut way = task("way", 20, 2);
        let first = Subtask { name: "first".into(), node: 1, ..way.subtasks[0].clone() };
        way.subtasks[0].after = vec![0];
        way.subtasks.insert(0, Subtask { outputs: Vec::new(), ..first });
        let mut reader = task("reader", 20, 1);
        let from = OutputAddress { operation: OperationAddress { task: 0, subtask: 1 }, output: 0 };
        reader.subtasks[0].inputs.push(Input { name: "in".into(), from, take: Take::Latest });
        let mut description = described(vec![way, reader], &[0, 1]);
        description.chains[0].path[0].subtask = 1;
        description.nodes.push(Node { name: "other".into(), cpus: vec![1] });
        let loss = LossRate::from_share(loss).expect("a share");
        let route = Route { delay: NS(1), jitter: NS(0), loss };
        description.links.push(Link { ends: LinkEnds::Others, route });
        description
    };
    let (_, _, chain) = bounds_of(described(0.0));
    assert!(chain.latency.is_ok() && chain.reaction.is_ok() && chain.age.is_ok(), "{chain:?}");
    let (system, _, chain) = bounds_of(described(0.1));
    let [first, second] = [0, 1].map(|operation| system.operations()[operation].id);
    assert_eq!(chain.reaction, Err(ChainObstacle::Lost(first, second)));
}

/// As long as the value stays the same nothing is released, however often it is published.
#[test]
fn a_trigger_by_changes_says_nothing_of_how_long_a_change_takes() {
    let chain = |on| {
        let read = reads(task("read", 20, 1), 1, Take::Latest);
        let mut tasks = vec![task("write", 20, 2), task("react", 20, 3), read];
        tasks[1].trigger = Some(Trigger::Output { output: output_of(0), every: 1, on });
        let (system, bounds, through) = bounds_of(described(tasks.clone(), &[0, 1]));
        let (_, _, behind) = bounds_of(described(tasks, &[0, 1, 2]));
        let response = [0, 1].map(|task: usize| bounds.tasks[task].response.expect("a bound"));
        (system.operations()[1].id, response[0] + response[1], through, behind)
    };
    let (_, sum, through, behind) = chain(OnValue::Value);
    assert_eq!((through.latency, through.reaction), (Ok(sum), Ok(sum + NS(20))));
    assert!(behind.age.is_ok() && behind.reaction.is_ok(), "{behind:?}");
    let (react, _, through, behind) = chain(OnValue::Change);
    let unchanged = Err(ChainObstacle::Unchanged(react));
    assert_eq!((through.latency, through.reaction), (Ok(sum), unchanged));
    assert_eq!((behind.age, behind.reaction), (unchanged, unchanged));
}

/// What keeps a chain through a channel from having bounds, each named.
#[test]
fn events_that_may_not_come_are_named() {
    let chain = |drawn: EventsDrawn, collect: Option<Collect>| {
        let mut tasks = vec![task("push", 20, 2), task("other", 20, 2), task("take", 20, 3)];
        let producers: &[usize] = if collect.is_some() { &[0, 1] } else { &[0] };
        subscribe(&mut tasks, 2, producers, drawn);
        if let (Some(collect), Some(Trigger::Events(subscription))) = (collect, &mut tasks[2].trigger) {
            let types = subscription.condition.types().into_iter().cloned();
            subscription.condition =
                Condition::all(collect, types.map(|one| Condition::of_types([one])).collect::<Vec<_>>());
        }
        let (system, _, chain) = bounds_of(described(tasks, &[0, 2]));
        (system.operations()[2].id, chain)
    };
    let drawn = |filtered, most, timeout| EventsDrawn {
        filtered,
        qos: QosSettings::new().max_events(most),
        timeout,
        ..EventsDrawn::default()
    };
    // Itself behind the other two.
    let (_, plain) = chain(drawn(false, 5, None), None);
    let response = plain.latency.expect("a bound").as_nanos();
    assert_eq!(plain.reaction, Ok(NS(20 + response)));
    assert_eq!(
        (plain.latency, chain(drawn(false, 5, Some(response)), None).1.latency),
        (plain.age, plain.age)
    );
    let of = |drawn, collect| {
        let (take, chain) = chain(drawn, collect);
        (take, chain.latency.err(), chain.reaction.err(), chain.age.err())
    };
    let whole = |obstacle| (Some(obstacle), Some(obstacle), Some(obstacle));
    let (take, latency, reaction, age) = of(drawn(false, 5, Some(1)), None);
    assert_eq!((latency, reaction, age), whole(ChainObstacle::Expired(take)));
    let (take, latency, reaction, age) = of(drawn(false, 5, None), Some(Collect::First));
    assert_eq!((latency, reaction, age), whole(ChainObstacle::Together(take)));
    let ordered =
        EventsDrawn { qos: QosSettings::new().order(OrderPolicy::Priority), ..drawn(false, 5, None) };
    let (take, latency, reaction, age) = of(ordered, None);
    assert_eq!((latency, reaction, age), whole(ChainObstacle::Reordered(take)));
    let (take, latency, reaction, age) = of(drawn(true, 5, None), None);
    assert_eq!((latency, reaction, age), (None, Some(ChainObstacle::Filtered(take)), None));
    // A mapping filter leaves nothing out, and may give less time than a job takes, or than its constraints may: these are of two names, whatever
    // these stand for.
    let mapped = |timeout, stated| EventsDrawn { mapped: vec![timeout], ..drawn(false, 5, stated) };
    let judged = 2 * 40_960;
    assert_eq!(of(mapped(judged, None), None).1, None);
    for drawn in [mapped(judged, Some(judged - 1)), mapped(judged - 1, None), mapped(1, None)] {
        let (take, latency, reaction, age) = of(drawn, None);
        assert_eq!((latency, reaction, age), whole(ChainObstacle::Expired(take)));
    }
}

/// Whoever inherits the deadline goes on with the segment of the task that pushes, and a chain across it takes no longer than without.
#[test]
fn a_chain_goes_through_events_of_heirs() {
    let latency = |inherits_deadline| {
        let mut tasks =
            vec![task("push", 20, 2), task("other", 20, 2), task("take", 20, 3), task("end", 20, 1)];
        for (index, producer) in [(2, 0), (3, 2)] {
            let drawn = EventsDrawn { qos: QosSettings::new().max_events(2), ..EventsDrawn::default() };
            subscribe(&mut tasks, index, &[producer], drawn);
            tasks[index].inherits_deadline = inherits_deadline;
        }
        bounds_of(described(tasks, &[0, 2, 3])).2.latency.expect("a bound").as_nanos()
    };
    // A job of `other`, and one of each on the way.
    assert_eq!(latency(true), 8);
    assert!(latency(false) >= 8, "{}", latency(false));
}

/// Where the task begins with several subtasks, the room has to be enough for the one that is longest under way, and the timeout for the one that
/// may begin first, whichever of them the chain leads through.
#[test]
fn an_event_keeps_its_place_until_the_last_first_subtask_has_begun() {
    let latency = |after: &[usize], through: usize, most: u32, timeout: Option<i64>| {
        let mut tasks = vec![task("push", 20, 1), task("take", 30, 1)];
        let qos = QosSettings::new().max_events(most);
        subscribe(&mut tasks, 1, &[0], EventsDrawn { qos, timeout, ..EventsDrawn::default() });
        tasks[1].deadline = NS(400);
        let quick = tasks[1].subtasks[0].clone();
        for place in 1..3 {
            let (name, wcet) = (format!("slow{place}"), Work::from_nanos(4));
            let after = after.iter().map(|before| place - before).collect();
            tasks[1].subtasks.push(Subtask { name, wcet, after, ..quick.clone() });
        }
        let mut description = described(tasks, &[0, 1]);
        description.chains[0].path[1].subtask = through;
        let (system, _, chain) = bounds_of(description);
        (chain.latency, system.operations()[1 + through].id)
    };
    // One behind the other, the first alone matters.
    assert!(latency(&[1], 0, 1, None).0.is_ok());
    let is_enough = |timeout: &i64| latency(&[], 0, 2, Some(*timeout)).0.is_ok();
    let least = (1..40).find(is_enough).expect("some timeout is enough");
    for through in 0..3 {
        let together = |most, timeout| latency(&[], through, most, timeout);
        let (bound, to) = together(1, None);
        assert_eq!(bound, Err(ChainObstacle::Discarded(to)));
        assert!(together(2, None).0.is_ok() && together(2, Some(least)).0.is_ok(), "{through}");
        assert_eq!(together(2, Some(least - 1)).0, Err(ChainObstacle::Expired(to)));
    }
}
