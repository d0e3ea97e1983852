//! No job of any simulated system takes longer than its bound.
//!
//! Thousands of random systems with times of a few nanoseconds, so that ties, full loads and late work are
//! frequent; a failure names the seed, and `TALEA_SEED` repeats it alone. `TALEA_SYSTEMS` asks for more of them.

use crate::responses::Responses;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::HashMap;
use talea_analysis::Effort;
use talea_analysis::system::{self, Exactness, Method, OperationBound, SystemBounds};
use talea_event::TypePattern;
use talea_event::qos::QosSettings;
use talea_model::{
    Channel, Collect, Communication, Condition, Criticality, Description, EventTake, EventTypeName, Excess,
    Execution, Full, Input, Join, LaneDispatch, Late, Laxity, Link, LinkEnds, LossRate, Node, OnValue,
    OperationAddress, Output, OutputAddress, OutsideArrivals, Overhead, Overrun, Place, Publication, Route,
    Separation, Strategy, Subscription, Subtask, Synchronisation, System, Take, Task, Trigger,
};
use talea_policy::strategy::{Plan, plan_system};
use talea_samples::conditions::nested;
use talea_sim::Simulation;
use talea_time::{Duration, Instant, Work};

/// Systems looked at in one run of the tests.
const SYSTEMS: u64 = 6_000;

/// Steps that suffice for all lanes, so that nothing is known to one search and not to another.
const ENOUGH: u64 = 20_000_000;

/// Steps that suffice for some lanes and not for others.
const HASTY: u64 = 1_000;

/// How long each is simulated: hundreds of periods.
const SIMULATED: Duration = Duration::from_nanos(6_000);

#[test]
fn no_simulated_response_exceeds_its_bound() {
    hold_bounds_against_simulations(draw, SYSTEMS).suffices();
}

/// The same where tasks have synchronisation protocols, joins of some of their predecessors, and response bounds, right and wrong ones.
#[test]
fn no_simulated_response_exceeds_its_bound_under_any_protocol() {
    hold_bounds_against_simulations(draw_with_protocols, SYSTEMS).has_all_protocols();
}

/// The same where tasks are triggered, by values of others and from outside as declared, with guards, bursts and messages on the way.
#[test]
fn no_simulated_response_exceeds_its_bound_whatever_triggers() {
    hold_bounds_against_simulations(draw_with_triggers, SYSTEMS).has_triggers();
}

/// The same where tasks are released by events of several others as well, alone and in conjunctions, and hand them on.
#[test]
fn no_simulated_response_exceeds_its_bound_with_events() {
    hold_bounds_against_simulations(draw_with_events, SYSTEMS / 3).has_events();
}

/// The same where timers are parts of conditions whose other parts come at about the same time, which is when most come true in a short time.
#[test]
fn no_simulated_response_exceeds_its_bound_with_timers_beside_bursts() {
    let seen = hold_bounds_against_simulations(draw_with_timers, SYSTEMS / 10);
    assert!(seen.is_partial || seen.bounded > 1_500, "only {} bounds were seen", seen.bounded);
}

/// The same where jobs wait for room in inputs of other tasks, in lanes that run jobs to completion.
#[test]
fn no_simulated_response_exceeds_its_bound_where_jobs_wait_for_room() {
    let seen = hold_bounds_against_simulations(draw_with_waits, SYSTEMS / 3);
    let enough = seen.bounded > 3_000 && seen.waits > 3_000 && seen.below_waiting > 300;
    let Seen { bounded, waits, below_waiting, .. } = seen;
    assert!(
        seen.is_partial || enough,
        "only {bounded} bounds, {below_waiting} of these below others that wait {waits} times"
    );
}

fn hold_bounds_against_simulations(draw: impl Fn(u64) -> System, enough: u64) -> Seen {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let only = number("TALEA_SEED");
    let systems = number("TALEA_SYSTEMS").unwrap_or(enough);
    let seeds = only.map_or(0..systems, |seed| seed..seed + 1);
    let mut seen = Seen::default();
    for seed in seeds {
        let system = draw(seed);
        let plans = plan_system(&system).expect("operations have periods and execution times");
        let bounds = system::analyse(&system, &plans, &mut Effort::new(ENOUGH)).expect("small numbers");
        let mut responses = Responses::of(&system);
        agrees_with_the_quick_verdict(&system, &plans, &bounds, seed);
        let mut simulation = Simulation::new(&system).expect("it has lanes");
        simulation.advance(Instant::ZERO + SIMULATED, &mut responses);
        // What is too costly gets coarse bounds, which hold as well.
        let hasty = system::analyse(&system, &plans, &mut Effort::new(HASTY)).expect("small numbers");
        for bounds in [bounds, hasty] {
            let late = responses.beyond(&bounds);
            let lost = responses.lost_although_held(&system, &bounds);
            assert!(
                lost.is_empty(),
                "seed {seed}: tasks {lost:?} lose instances\n{bounds:#?}\n{}",
                system.to_toml()
            );
            assert!(late.is_empty(), "seed {seed}: {late:?}\n{bounds:#?}\n{}", system.to_toml());
            seen.count(&system, &bounds, &responses);
        }
    }
    seen.is_partial = only.is_some() || systems < enough;
    seen
}

/// The verdict that stops at the first response beyond a deadline is that of the whole analysis, and parts add up.
fn agrees_with_the_quick_verdict(system: &System, plans: &[Plan], bounds: &SystemBounds, seed: u64) {
    let tasks = system.tasks.len();
    let holds: Vec<bool> = (0..tasks).map(|task| bounds.holds(system, task)).collect();
    for (task, holds) in holds.iter().enumerate() {
        let targets: Vec<bool> = (0..tasks).map(|other| other == task).collect();
        let quick = system::hold(system, plans, &targets, &mut Effort::new(ENOUGH)).expect("small numbers");
        assert_eq!(quick, *holds, "seed {seed}, task {task}\n{bounds:#?}\n{}", system.to_toml());
    }
    let all =
        system::hold(system, plans, &vec![true; tasks], &mut Effort::new(ENOUGH)).expect("small numbers");
    assert_eq!(all, holds.iter().all(|holds| *holds), "seed {seed}, all tasks");
    for bound in &bounds.operations {
        if let Ok(response) = &bound.response {
            let parts: i64 = bounds.parts(bound.operation).iter().map(|part| part.time.as_nanos()).sum();
            assert_eq!(parts, response.window.as_nanos(), "seed {seed}: {bound:?}");
            assert_eq!(response.window - response.arrival, response.bound, "seed {seed}: {bound:?}");
        }
    }
}

/// The critical instant is a run: all tasks start together and every job takes its worst case.
#[test]
fn exact_bounds_are_reached_from_a_critical_instant() {
    let mut exact = 0;
    for seed in 0..SYSTEMS {
        let mut description = Description::clone(&draw(seed));
        for task in &mut description.tasks {
            task.phase = Duration::ZERO;
            task.jitter = Duration::ZERO;
            task.subtasks.iter_mut().for_each(|subtask| subtask.exec = Execution::Constant(subtask.wcet));
        }
        let system = System::new(description).expect("it is as valid as before");
        let plans = plan_system(&system).expect("operations have periods and execution times");
        let bounds = system::analyse(&system, &plans, &mut Effort::new(ENOUGH)).expect("small numbers");
        let mut responses = Responses::of(&system);
        let mut simulation = Simulation::new(&system).expect("it has lanes");
        simulation.advance(Instant::ZERO + SIMULATED, &mut responses);
        for (bound, worst) in bounds.operations.iter().zip(&responses.worst) {
            if let Ok(response) = &bound.response
                && response.exactness == Exactness::Exact
            {
                exact += 1;
                assert_eq!(*worst, response.bound, "seed {seed}: {response:?}\n{}", system.to_toml());
            }
        }
    }
    assert!(exact >= 1_000, "only {exact} exact bounds were seen");
}

/// That the systems drawn say something: most bounds are finite, of all kinds, and many are reached.
#[derive(Default)]
struct Seen {
    bounded: u64,
    unbounded: u64,
    reached: HashMap<&'static str, (u64, u64)>,
    /// By protocol: bounds of subtasks with predecessors, and how many of those were reached.
    protocols: HashMap<Synchronisation, (u64, u64)>,
    /// Bounds of tasks with triggers: from outside and by values; how many of them were reached, and how many tasks are sure to hold.
    triggered: [(u64, u64, u64); 2],
    /// The same of tasks that are released by events: each alone, and by conjunctions.
    by_events: [(u64, u64, u64); 2],
    /// The same of tasks that inherit their deadlines.
    inherited: (u64, u64, u64),
    /// How often jobs waited for room, and bounds of operations in lanes below such ones.
    waits: u64,
    below_waiting: u64,
    /// Whether too few systems were looked at to expect all of it.
    is_partial: bool,
}

impl Seen {
    fn count(&mut self, system: &System, bounds: &SystemBounds, responses: &Responses) {
        self.waits += responses.waits;
        let waits = |other: &&OperationBound| system.wait_limits(other.operation).next().is_some();
        let waiting: Vec<&OperationBound> = bounds.operations.iter().filter(waits).collect();
        let is_below = |bound: &&OperationBound| {
            let above = |other: &&OperationBound| other.node == bound.node && other.level < bound.level;
            bound.response.is_ok() && waiting.iter().any(above)
        };
        self.below_waiting += bounds.operations.iter().filter(is_below).count() as u64;
        for (bound, worst) in bounds.operations.iter().zip(&responses.worst) {
            let Ok(response) = &bound.response else {
                self.unbounded += 1;
                continue;
            };
            self.bounded += 1;
            if !system.operations()[bound.operation.index()].predecessors.is_empty() {
                let (all, reached) = self.protocols.entry(system.task_of(bound.operation).sync).or_default();
                *all += 1;
                *reached += u64::from(*worst == response.bound);
            }
            let task = system.operations()[bound.operation.index()].task;
            if let Some(trigger) = &system.tasks[task].trigger {
                let (all, reached, hold) = match trigger {
                    Trigger::External { .. } => &mut self.triggered[0],
                    Trigger::Output { .. } => &mut self.triggered[1],
                    Trigger::Events(of) => &mut self.by_events[usize::from(!of.condition.comes_at_once())],
                };
                let count = |(all, reached, hold): (&mut u64, &mut u64, &mut u64)| {
                    *all += 1;
                    *reached += u64::from(*worst == response.bound);
                    *hold += u64::from(bounds.holds(system, task));
                };
                count((all, reached, hold));
                let (all, reached, hold) = &mut self.inherited;
                if system.tasks[task].inherits_deadline {
                    count((all, reached, hold));
                }
            }
            let method = match response.method {
                Method::ResponseTime => "response time",
                Method::Queue => "queue",
                Method::Urgency => "urgency",
                Method::Demand => "demand",
                Method::BusyPeriod => "busy period",
                Method::Server => "server",
                Method::LinearBound => "linear",
            };
            let (all, reached) = self.reached.entry(method).or_default();
            *all += 1;
            *reached += u64::from(*worst == response.bound);
        }
    }

    fn has_all_protocols(&self) {
        println!(
            "{} bounded, {} unbounded; of each protocol: {:?}",
            self.bounded, self.unbounded, self.protocols
        );
        for sync in Synchronisation::ALL.iter().filter(|_| !self.is_partial) {
            let (all, reached) = self.protocols.get(sync).copied().unwrap_or_default();
            assert!(all >= 500, "{sync} was seen {all} times");
            assert!(reached >= all / 100, "bounds under {sync} were reached {reached} times of {all}");
        }
    }

    fn has_triggers(&self) {
        println!("{} bounded, {} unbounded; of triggers: {:?}", self.bounded, self.unbounded, self.triggered);
        for (all, reached, hold) in self.triggered.iter().filter(|_| !self.is_partial) {
            assert!(*all > 1_000 && *hold > all / 10 && *reached > all / 50, "{:?}", self.triggered);
        }
    }

    fn has_events(&self) {
        println!("{} bounded, {} unbounded; of events: {:?}", self.bounded, self.unbounded, self.by_events);
        let [(alone, reached, hold), (joint, _, joint_hold)] = self.by_events;
        let suffices = alone > 1_000
            && hold > alone / 10
            && reached > alone / 50
            && joint > 500
            && joint_hold > joint / 10;
        assert!(self.is_partial || suffices, "{:?}", self.by_events);
        println!("of inherited deadlines: {:?}", self.inherited);
        let (all, reached, hold) = self.inherited;
        assert!(
            self.is_partial || all > 300 && hold > all / 10 && reached > all / 50,
            "{:?}",
            self.inherited
        );
    }

    fn suffices(&self) {
        if self.is_partial {
            return;
        }
        println!(
            "{} bounded, {} unbounded; of each method, how many were reached: {:?}",
            self.bounded, self.unbounded, self.reached
        );
        assert!(self.bounded > self.unbounded, "most systems drawn can be bounded");
        for method in ["response time", "queue", "urgency", "busy period"] {
            let (all, reached) = self.reached.get(method).copied().unwrap_or_default();
            assert!(all >= 100, "{method} was seen {all} times");
            assert!(reached >= all / 50, "{method} was reached {reached} times of {all}");
        }
        for method in ["demand", "linear"] {
            let (all, _) = self.reached.get(method).copied().unwrap_or_default();
            assert!(all >= 100, "{method} was seen {all} times");
        }
    }
}

/// A random system. Every fourth is of one node without costs, jitter and chains, every other one free of costs.
fn draw(seed: u64) -> System {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let plain = seed.is_multiple_of(4);
    let free = plain || seed.is_multiple_of(2);
    let nodes = if plain { 1 } else { random.random_range(1..=3) };
    let cost = |random: &mut Pcg64Mcg, most: i64| if free { 0 } else { random.random_range(0..=most) };
    let overhead = Overhead {
        switch: Work::from_nanos(cost(&mut random, 1)),
        queue: Work::from_nanos(cost(&mut random, 1)),
        timer: Work::from_nanos(cost(&mut random, 1)),
        message: Work::from_nanos(cost(&mut random, 2)),
        ..Overhead::default()
    };
    let processors: Vec<u16> = (0..nodes)
        .map(|_| if plain || random.random_range(0..4) > 0 { 1 } else { random.random_range(2..=3) })
        .collect();
    let links = draw_links(&mut random, nodes);
    let count = random.random_range(1..=6);
    let tasks = (0..count).map(|index| draw_task(&mut random, index, count, plain, nodes)).collect();
    let pick = |random: &mut Pcg64Mcg, count: usize| random.random_range(0..count);
    System::new(Description {
        channels: Vec::new(),
        chains: Vec::new(),
        schedulers: Vec::new(),
        threads: Vec::new(),
        name: "random".into(),
        strategy: Strategy::ALL[pick(&mut random, Strategy::ALL.len())],
        lane_dispatch: LaneDispatch::ALL[pick(&mut random, 2)],
        laxity: Laxity::ALL[pick(&mut random, 2)],
        late: Late::ALL[pick(&mut random, 2)],
        seed,
        overhead,
        links,
        nodes: (0..nodes)
            .map(|index| Node {
                name: format!("n{index}"),
                cpus: (0..processors[index]).map(|cpu| index as u16 * 4 + cpu).collect(),
            })
            .collect(),
        tasks,
    })
    .expect("only valid systems are drawn")
}

/// A random system whose tasks have random protocols, or all the same one. Releases are planned only where there are bounds.
fn draw_with_protocols(seed: u64) -> System {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x5eed);
    let mut description = Description::clone(&draw(seed));
    let any =
        |random: &mut Pcg64Mcg| Synchronisation::ALL[random.random_range(0..Synchronisation::ALL.len())];
    // Messages that overtake each other, and some that are lost.
    if random.random_range(0..3) == 0 {
        for link in &mut description.links {
            link.route.jitter = Duration::from_nanos(random.random_range(0..60));
            let loss = if random.random_range(0..4) == 0 { 200_000_000 } else { 0 };
            link.route.loss = LossRate::from_billionths(loss).expect("less than all");
        }
    }
    let common = any(&mut random);
    let is_mixed = random.random_range(0..2) == 0;
    for task in &mut description.tasks {
        task.sync = if is_mixed { any(&mut random) } else { common };
        for subtask in task.subtasks.iter_mut().filter(|subtask| subtask.after.len() > 1) {
            subtask.join = match random.random_range(0..3) {
                0 => Join::All,
                1 => Join::First,
                _ => Join::Count(random.random_range(1..=subtask.after.len() as u32)),
            };
        }
        if task.sync.needs_bounds() && random.random_range(0..4) == 0 {
            for subtask in &mut task.subtasks {
                let bound = random.random_range(1..=task.period.as_nanos());
                subtask.bound = (random.random_range(0..2) == 0).then_some(Duration::from_nanos(bound));
            }
        }
    }
    let system = System::new(description.clone()).expect("it is as valid as before");
    let plans = plan_system(&system).expect("operations have periods and execution times");
    if let Ok(planned) = system::with_response_bounds(&system, &plans, &mut Effort::new(ENOUGH)) {
        return planned;
    }
    for task in description.tasks.iter_mut().filter(|task| task.sync.needs_bounds()) {
        task.sync = Synchronisation::ReleaseGuard;
    }
    System::new(description).expect("it is as valid as before")
}

/// A random system in which jobs of most tasks wait for readers that come more seldom than they.
fn draw_with_waits(seed: u64) -> System {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x3a17);
    let base = match seed % 3 {
        0 => draw(seed),
        1 => draw_with_protocols(seed),
        _ => draw_with_triggers(seed),
    };
    let mut description = Description::clone(&base);
    description.lane_dispatch = LaneDispatch::NonPreemptive;
    for task in description.tasks.iter_mut().filter(|task| task.criticality.is_critical()) {
        task.criticality = Criticality::Medium;
    }
    for task in 0..description.tasks.len() {
        if random.random_range(0..3) == 0 {
            continue;
        }
        let subtask = random.random_range(0..description.tasks[task].subtasks.len());
        let outputs = &mut description.tasks[task].subtasks[subtask].outputs;
        let output = outputs.len();
        outputs.push(Output { name: format!("w{output}"), bytes: 8, fields: Vec::new() });
        let from = OutputAddress { operation: OperationAddress { task, subtask }, output };
        for reader in (0..description.tasks.len()).filter(|reader| *reader != task) {
            if random.random_range(0..3) > 0 {
                continue;
            }
            let limit = Duration::from_nanos([1, 4, 30, 200][random.random_range(0..4)]);
            let take = Take::Each { capacity: random.random_range(1..=3), full: Full::Block { limit } };
            let inputs = &mut description.tasks[reader].subtasks[0].inputs;
            inputs.push(Input { name: format!("r{}", inputs.len()), from, take });
        }
    }
    System::new(description).expect("it is as valid as before")
}

/// A random system some of whose tasks are triggered.
fn draw_with_triggers(seed: u64) -> System {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x7219);
    let base = if seed.is_multiple_of(2) { draw(seed) } else { draw_with_protocols(seed) };
    let mut description = Description::clone(&base);
    for index in 0..description.tasks.len() {
        let producer = (index > 0).then(|| random.random_range(0..index));
        let kind = random.random_range(0..4);
        if kind < 2 {
            continue;
        }
        let period = description.tasks[index].period;
        let excess = Excess::ALL[random.random_range(0..3)];
        let separation = Separation { separation: period, burst: random.random_range(1..=4), excess };
        let (trigger, separation) = match producer {
            Some(task) if kind == 2 => {
                let subtask = random.random_range(0..description.tasks[task].subtasks.len());
                let outputs = &mut description.tasks[task].subtasks[subtask].outputs;
                let name = format!("o{}", outputs.len());
                outputs.push(Output { name, bytes: 8, fields: Vec::new() });
                let output = outputs.len() - 1;
                let output = OutputAddress { operation: OperationAddress { task, subtask }, output };
                let every = random.random_range(1..=3);
                let on = OnValue::ALL[random.random_range(0..2)];
                let is_held = random.random_range(0..2) == 0;
                (Trigger::Output { output, every, on }, is_held.then_some(separation))
            }
            _ => (Trigger::External { arrivals: draw_arrivals(&mut random, separation) }, Some(separation)),
        };
        let task = &mut description.tasks[index];
        (task.phase, task.jitter) = (Duration::ZERO, Duration::ZERO);
        (task.trigger, task.separation) = (Some(trigger), separation);
        inherit(&mut description, index, &mut random);
        let task = &mut description.tasks[index];
        if task.sync.needs_periodic_arrivals() {
            task.sync = Synchronisation::ReleaseGuard;
        }
    }
    let system = System::new(description.clone()).expect("it is as valid as before");
    let plans = plan_system(&system).expect("operations have periods and execution times");
    if let Ok(planned) = system::with_response_bounds(&system, &plans, &mut Effort::new(ENOUGH)) {
        return planned;
    }
    for task in description.tasks.iter_mut().filter(|task| task.sync.needs_bounds()) {
        task.sync = Synchronisation::ReleaseGuard;
    }
    System::new(description).expect("it is as valid as before")
}

/// Half of the tasks inherit their deadlines whose triggers permit it.
fn inherit(description: &mut Description, index: usize, random: &mut Pcg64Mcg) {
    if random.random_range(0..2) == 0 {
        return;
    }
    description.tasks[index].inherits_deadline = true;
    let Err(violations) = System::new(description.clone()) else { return };
    let is_refused = violations.iter().any(|violation| violation.place == Place::Task(index, "deadline"));
    description.tasks[index].inherits_deadline = !is_refused;
}

/// Some tasks push events at nearly the same instants, and one that takes long awaits them with timers.
fn draw_with_timers(seed: u64) -> System {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x71e5);
    let mut text = "[system]\nname = \"s\"\n[[channel]]\nname = \"c\"\n".to_owned();
    let period = random.random_range(25..40);
    for task in 0..random.random_range(2..=4) {
        let (event, phase) = (["A", "A", "B"][random.random_range(0..3)], period - random.random_range(0..4));
        let period = period - random.random_range(0..=1);
        text += &format!(
            "[[task]]\nname = \"p{task}\"\nperiod = \"{period}ns\"\nphase = \"{phase}ns\"\nwcet = \"1ns\"\ncriticality = \"high\"\n\
             events = [{{ channel = \"c\", type = \"T/{event}\" }}]\n"
        );
    }
    let mut time = || random.random_range(6..16);
    let timers = [
        format!("{{ every = \"{}ns\" }}", time()),
        format!("{{ after = \"{}ns\" }}", time()),
        format!("{{ unless = \"T/B\", within = \"{}ns\" }}", time()),
    ];
    let within = time();
    let timer = &timers[random.random_range(0..3)];
    let condition = match random.random_range(0..5) {
        0 => format!("{{ in_order = [{timer}, \"T/*\"] }}"),
        1 => format!("{{ in_order = [\"T/*\", {timer}] }}"),
        2 => format!("{{ in_order = [{timer}, \"T/*\"], within = \"{within}ns\" }}"),
        3 => format!("{{ all = [{timer}, {{ in_order = [{timer}, \"T/*\"] }}] }}"),
        _ => format!("{{ any = [{timer}, {{ all = [{timer}, \"T/*\"] }}] }}"),
    };
    let wcet = random.random_range(1..8);
    text += &format!(
        "[[task]]\nname = \"t\"\nsubscription = {{ channel = \"c\", when = {condition} }}\ndeadline = \"60ns\"\nwcet = \"{wcet}ns\"\n"
    );
    talea_model::parse("drawn.toml", &text, std::path::Path::new(".")).expect("it breaks no rule").system
}

/// A random system, with triggers or without, some of whose tasks are released by events of those before them.
fn draw_with_events(seed: u64) -> System {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0xe7e7);
    let base = if seed.is_multiple_of(3) { draw_with_triggers(seed) } else { draw(seed) };
    let mut description = Description::clone(&base);
    description.channels.push(Channel { name: "c".into(), qos: QosSettings::new() });
    if !seed.is_multiple_of(2) {
        let mut cost = || Work::from_nanos(random.random_range(0..=1));
        (description.overhead.push, description.overhead.delivery) = (cost(), cost());
    }
    for index in 1..description.tasks.len() {
        let task = &description.tasks[index];
        let firsts: Vec<usize> =
            task.subtasks.iter().filter(|subtask| subtask.after.is_empty()).map(|first| first.node).collect();
        let node = firsts[0];
        if firsts.iter().any(|other| *other != node) || random.random_range(0..2) == 0 {
            continue;
        }
        let earlier = description.tasks[..index].iter().enumerate().flat_map(|(task, described)| {
            let here = described.subtasks.iter().enumerate().filter(|(_, subtask)| subtask.node == node);
            here.map(move |(subtask, _)| (task, subtask))
        });
        let mut producers: Vec<(usize, usize)> = earlier.collect();
        while producers.len() > random.random_range(1..=3) {
            producers.swap_remove(random.random_range(0..producers.len()));
        }
        if producers.is_empty() {
            continue;
        }
        let mut types = Vec::new();
        for (number, (task, subtask)) in producers.iter().enumerate() {
            let event_type = EventTypeName { domain: format!("T{index}"), name: format!("E{number}") };
            types.push(TypePattern::exactly(&event_type.domain, &event_type.name));
            let (bytes, fields, priority, timeout) = (8, Vec::new(), None, None);
            let source = 0;
            let event = Publication {
                channel: 0,
                event_type,
                bytes,
                fields,
                header_fields: Vec::new(),
                priority,
                timeout,
                source,
            };
            description.tasks[*task].subtasks[*subtask].events.push(event);
        }
        let leaves: Vec<Condition> = types.iter().map(|one| Condition::of_types([one.clone()])).collect();
        let condition = match random.random_range(0..4) {
            0 => {
                let within = (random.random_range(0..3) == 0)
                    .then(|| Duration::from_nanos(random.random_range(1..60)));
                let collect = Collect::ALL[random.random_range(0..2)];
                Condition::All { parts: leaves, collect, within }
            }
            1 => {
                let time = Duration::from_nanos(random.random_range(1..10));
                nested(&mut |below| random.random_range(0..below), &leaves, time)
            }
            _ => Condition::of_types(types),
        };
        let qos = match random.random_range(0..4) {
            0 => QosSettings::new().max_events(random.random_range(1..4)),
            1 => QosSettings::new().timeout(Duration::from_nanos(random.random_range(1..60))),
            _ => QosSettings::new(),
        };
        let task = &mut description.tasks[index];
        // A guard keeps apart the releases of one.
        let is_held = firsts.len() == 1 && random.random_range(0..3) == 0;
        let excess = if random.random_range(0..2) == 0 { Excess::Defer } else { Excess::Count };
        task.separation = is_held.then(|| Separation {
            separation: Duration::from_nanos(random.random_range(1..40)),
            burst: random.random_range(1..=4),
            excess,
        });
        (task.phase, task.jitter, task.overrun) = (Duration::ZERO, Duration::ZERO, Overrun::Queue);
        task.inherits_deadline = false;
        task.trigger = Some(Trigger::Events(Subscription {
            channel: 0,
            condition,
            filter: None,
            priority_by: Vec::new(),
            timeout_by: Vec::new(),
            take: EventTake::Next,
            qos,
        }));
        inherit(&mut description, index, &mut random);
        let task = &mut description.tasks[index];
        if task.sync.needs_periodic_arrivals() {
            task.sync = Synchronisation::ReleaseGuard;
        }
    }
    let system = System::new(description.clone()).expect("it is as valid as before");
    let plans = plan_system(&system).expect("operations have periods and execution times");
    if let Ok(planned) = system::with_response_bounds(&system, &plans, &mut Effort::new(ENOUGH)) {
        return planned;
    }
    for task in description.tasks.iter_mut().filter(|task| task.sync.needs_bounds()) {
        task.sync = Synchronisation::ReleaseGuard;
    }
    System::new(description).expect("it is as valid as before")
}

/// Arrivals of all kinds, most of which keep to what is declared.
fn draw_arrivals(random: &mut Pcg64Mcg, separation: Separation) -> OutsideArrivals {
    let Separation { separation, burst, .. } = separation;
    match random.random_range(0..6) {
        0 => OutsideArrivals::Poisson { mean: separation * 2 },
        1 => OutsideArrivals::Sporadic { mean: separation * 2 },
        2 => {
            let jitter = Duration::from_nanos(random.random_range(0..separation.as_nanos()));
            OutsideArrivals::Periodic { period: separation, jitter }
        }
        _ => {
            // As many as are allowed, as early as they are, with pauses.
            let (mut at, mut due, mut times) = (0_i64, 0_i64, Vec::new());
            let (distance, ahead) = (separation.as_nanos(), separation.as_nanos() * i64::from(burst - 1));
            while at < SIMULATED.as_nanos() && times.len() < 300 {
                if random.random_range(0..4) == 0 {
                    at += random.random_range(0..4 * distance);
                }
                at = at.max(due - ahead);
                times.push(Duration::from_nanos(at));
                due = due.max(at) + distance;
            }
            OutsideArrivals::Listed(times.into())
        }
    }
}

#[test]
fn what_may_be_lost_does_not_hold_and_what_is_not_has_the_same_bounds() {
    let mut concerned = 0;
    for seed in 0..300 {
        let system = draw(seed);
        let mut lossy = Description::clone(&system);
        let loss = LossRate::from_share(0.01).expect("a share");
        lossy.links.iter_mut().for_each(|link| link.route.loss = loss);
        let lossy = System::new(lossy).expect("still valid");
        let bounds = |system: &System| {
            let plans = plan_system(system).expect("random systems have no anomalies");
            system::analyse(system, &plans, &mut Effort::new(2_000_000)).ok()
        };
        let (Some(bounds), Some(of_lossy)) = (bounds(&system), bounds(&lossy)) else { continue };
        for task in 0..system.tasks.len() {
            assert_eq!(bounds.tasks[task].response.ok(), of_lossy.tasks[task].response.ok(), "seed {seed}");
            let may_be_lost = lossy.messages_that_may_be_lost(task).next().is_some();
            assert_eq!(
                of_lossy.holds(&lossy, task),
                bounds.holds(&system, task) && !may_be_lost,
                "seed {seed}"
            );
            concerned += u32::from(bounds.holds(&system, task) && may_be_lost);
        }
    }
    assert!(concerned > 10, "only {concerned} tasks send messages and hold otherwise");
}

/// Between every two nodes a link of its own in each direction, or one for all others.
fn draw_links(random: &mut Pcg64Mcg, nodes: usize) -> Vec<Link> {
    let mut links = Vec::new();
    let mut draw = |ends| {
        let mut time = || Duration::from_nanos(random.random_range(0..4));
        let route = Route { delay: time(), jitter: time(), ..Route::default() };
        links.extend((random.random_range(0..3) > 0).then_some(Link { ends, route }));
    };
    for from in 0..nodes {
        (0..nodes).filter(|to| *to != from).for_each(|to| draw(LinkEnds::FromTo(from, to)));
    }
    if nodes > 1 {
        draw(LinkEnds::Others);
    }
    links
}

fn draw_task(random: &mut Pcg64Mcg, index: usize, tasks: usize, plain: bool, nodes: usize) -> Task {
    let period: i64 = random.random_range(6..60);
    let deadline = match random.random_range(0..4) {
        0 => random.random_range(period / 2..=period),
        1 => random.random_range(period..=period * 3),
        _ => period,
    };
    let subtasks = if plain { 1 } else { random.random_range(1..=4) };
    // A share of the processor that lets most systems keep up, and some not.
    let most = (period * 12 / (10 * tasks as i64 * subtasks)).clamp(1, 12);
    let jitter = if plain || random.random_range(0..3) > 0 { 0 } else { random.random_range(0..period / 2) };
    let mut task = Task {
        name: format!("t{index}"),
        period: Duration::from_nanos(period),
        deadline: Duration::from_nanos(deadline),
        phase: Duration::from_nanos(if random.random_range(0..2) == 0 {
            0
        } else {
            random.random_range(0..period)
        }),
        jitter: Duration::from_nanos(jitter),
        criticality: Criticality::from_level(random.random_range(0..5)).unwrap(),
        importance: random.random_range(-1..2),
        trigger: None,
        inherits_deadline: false,
        inherits_criticality: false,
        separation: None,
        communication: Communication::Implicit,
        overrun: Overrun::ALL[random.random_range(0..7usize).saturating_sub(3)],
        sync: Synchronisation::Greedy,
        subtasks: (0..subtasks as usize)
            .map(|position| draw_subtask(random, position, most, plain, nodes))
            .collect(),
    };
    if task.overrun == Overrun::Merge && !task.can_merge() {
        task.overrun = Overrun::Queue;
    }
    task
}

fn draw_subtask(random: &mut Pcg64Mcg, position: usize, most: i64, plain: bool, nodes: usize) -> Subtask {
    let wcet = random.random_range(1..=most);
    let work = Work::from_nanos;
    let after = match random.random_range(0..4) {
        0 => (0..position).filter(|_| random.random_range(0..2) == 0).collect(),
        _ => position.checked_sub(1).into_iter().collect(),
    };
    Subtask {
        name: format!("s{position}"),
        node: random.random_range(0..nodes),
        lanes: None,
        wcet: work(wcet),
        exec: match random.random_range(0..4) {
            0 => Execution::Uniform(work(random.random_range(0..=wcet)), work(wcet)),
            _ if !plain && random.random_range(0..12) == 0 => Execution::Constant(work(wcet + 2)),
            1 => Execution::List([work(wcet), work(random.random_range(1..=wcet))].into()),
            _ => Execution::Constant(work(wcet)),
        },
        after,
        join: Join::All,
        bound: None,
        outputs: Vec::new(),
        inputs: Vec::new(),
        events: Vec::new(),
        subscription: None,
    }
}
