//! Events of a robot: its battery, its position, the operator's stop. One channel carries them; who has which, in which lane and for how long it is
//! worth anything, is each consumer's own business.
//!
//! `cargo run --example notification [-- TIME [TRACE]]`, such as `2s events.talea`: how long it runs, one second unless given, and where the
//! trace of it is kept, which `talea trace stats`, `show` and `explain` read. `talea replay events.talea -- target/debug/examples/notification` calls the
//! code of the task and of the consumers again.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea::notification::qos::{OrderPolicy, QosSettings};
use talea::notification::{
    AdminProperties, Collect, Condition, Content, EventChannelFactory, EventPool, EventType, Filter,
    Filterable, Outcome, TypePattern,
};
use talea::run::{Declaration, KeptOutputs, OutputKind};
use talea::{Criticality, Duration, Run, Strategy, System, TaskBuilder, Work};

/// How full the battery is. What derives `Filterable` can be filtered by constraints that are texts, from a file for one.
#[derive(Clone, Copy, Default, Filterable, Serialize, Deserialize)]
#[filterable(crate = "talea::notification::etcl")]
struct Battery {
    /// In percent.
    charge: f64,
}

/// Where the robot is, in metres.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Position {
    x: f64,
    y: f64,
}

/// Somebody has pressed the button.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Pressed;

impl Content for Battery {}
impl Content for Position {}
impl Content for Pressed {}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let duration: Duration = std::env::args().nth(1).as_deref().unwrap_or("1s").parse()?;
    let factory = EventChannelFactory::new();
    let settings =
        QosSettings::new().order(OrderPolicy::Priority).max_events(32).timeout(Duration::from_millis(200));
    let channel = factory.create("robot", &settings, AdminProperties::default())?;
    let types = |text: &str| text.parse::<TypePattern>();
    let lane = |name: &str, deadline: i64, criticality| {
        Declaration::new(name, Duration::from_millis(deadline))
            .criticality(criticality)
            .wcet(Work::from_micros(50))
    };
    // The stop is urgent, and each one counts.
    let stops = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&stops);
    let stop = channel.consumer("stop").subscribe([types("Operator/Stop")?]);
    let stop = stop.lane(lane("stop", 2, Criticality::High)).connect(move |_| {
        own.fetch_add(1, Ordering::Relaxed);
        Outcome::Ok
    })?;
    // Of the battery only what is low, and no more often than every 100 ms.
    let low = Filter::parse::<Battery>(&[], "charge < 20 and $domain_name == 'Robot'")?;
    let warning = channel.consumer("warning").subscribe([types("Robot/Battery")?]).filter(low);
    let warning = warning.qos(QosSettings::new().separation(Duration::from_millis(100)));
    let warning = warning.lane(lane("warning", 50, Criticality::Low)).connect(|delivery| {
        if let Some(Battery { charge }) = delivery.event().content() {
            println!("the battery is at {charge:.1} %");
        }
        Outcome::Ok
    })?;
    // The log wants battery and position together, whenever there is a new one of each.
    let both = Condition::all(
        Collect::Latest,
        [Condition::of_types([types("Robot/Battery")?]), Condition::of_types([types("Robot/Position")?])],
    );
    let far = Arc::new(AtomicU64::new(0));
    let own = Arc::clone(&far);
    let log = channel.consumer("log").when(both).lane(lane("log", 100, Criticality::Low)).connect(
        move |delivery| {
            let position = delivery.events().iter().find_map(|event| event.content::<Position>());
            let is_far = position.is_some_and(|Position { x, y }| x.hypot(*y) > 5.0);
            own.fetch_add(u64::from(is_far), Ordering::Relaxed);
            Outcome::Ok
        },
    )?;

    // A task of the robot pushes: all three types from its own jobs, from events that are made beforehand.
    let [battery, position, button] = [("Robot", "Battery"), ("Robot", "Position"), ("Operator", "Stop")]
        .map(|(domain, name)| EventType::new(domain, name));
    // How they become bytes, by which a trace keeps them.
    channel.carries::<Battery>(&battery, &OutputKind::any().serialized())?;
    channel.carries::<Position>(&position, &OutputKind::any().serialized())?;
    channel.carries::<Pressed>(&button, &OutputKind::any().serialized())?;
    let offered = [battery.clone(), position.clone(), button.clone()];
    let mut supplier = channel.supplier("robot").offer(offered).connect()?;
    let mut batteries = EventPool::new(64, &battery, || Battery { charge: 100.0 });
    let mut positions = EventPool::new(64, &position, || Position { x: 0.0, y: 0.0 });
    let mut buttons = EventPool::new(64, &button, || Pressed);
    let mut sense = move |job: &talea::JobContext<'_>| -> Option<()> {
        let step = job.instance() as f64 / 100.0;
        let mut event = batteries.loan()?;
        *event.content() = Battery { charge: (40.0 - 8.0 * step).max(5.0) };
        supplier.push(job, &event.done()).ok()?;
        let mut event = positions.loan()?;
        *event.content() = Position { x: 10.0 * step.cos(), y: 3.0 * step.sin() };
        supplier.push(job, &event.done()).ok()?;
        if job.instance().is_multiple_of(50) {
            let mut event = buttons.loan()?;
            event.header().priority = Some(100);
            supplier.push(job, &event.done()).ok()?;
        }
        Some(())
    };
    let control = TaskBuilder::new("control", Duration::from_millis(5)).wcet(Work::from_millis(1));
    let sensing = TaskBuilder::new("sense", Duration::from_millis(5)).wcet(Work::from_micros(100));
    let map = TaskBuilder::new("map", Duration::from_millis(100)).wcet(Work::from_millis(10));
    let system = System::builder("robot")
        .strategy(Strategy::Criticality)
        .task(control.criticality(Criticality::High))
        .task(sensing.criticality(Criticality::High))
        .task(map.criticality(Criticality::Low))
        .build()?;
    let unsent = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&unsent);
    let run = Run::new(&system).events(&factory).duration(duration).operation("sense", move |job| {
        counted.fetch_add(u64::from(sense(job).is_none()), Ordering::Relaxed);
    });
    let outcome = match std::env::args().nth(2) {
        Some(trace) => run.keep_trace(trace).keep_values(KeptOutputs::All).run()?,
        None => run.run()?,
    };
    println!(
        "{} stops, {} times far away, {} times nothing to send with",
        stops.load(Ordering::Relaxed),
        far.load(Ordering::Relaxed),
        unsent.load(Ordering::Relaxed)
    );
    for (name, consumer) in [("stop", &stop), ("warning", &warning), ("log", &log)] {
        let counted = consumer.statistics();
        println!(
            "{name}: {} delivered, the slowest after {}; {} filtered, {} too soon, {} taken in, {} discarded, {} expired",
            counted.delivered,
            counted.latency_max.rounded(),
            counted.filtered,
            counted.too_soon,
            counted.grouped,
            counted.discarded,
            counted.expired,
        );
    }
    for task in &outcome.report.tasks {
        println!("{}: {} of {} in time", task.name, task.met, task.released);
    }
    Ok(())
}
