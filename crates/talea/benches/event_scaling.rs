//! What pushing an event costs beside more and more subscriptions, and through more and more filters, as pictures.
//!
//! `cargo bench -p talea --features figure --bench event_scaling -- --out "$PWD/docs/images"`
//!
//! One thread pushes and takes; each point is the median, or the 99th percentile, of batches of 64 events. Without `--bench`, as tests call it, it measures
//! next to nothing and writes no file.

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use talea::Instant;
use talea::figure::chart::{Axis, Chart, Joined, Margin, Mark, Scale, Series};
use talea::notification::etcl::Filterable;
use talea::notification::qos::QosSettings;
use talea::notification::{
    AdminProperties, Content, Event, EventChannel, EventChannelFactory, EventType, Filter, Header,
    PullConsumer, Supplier, TypePattern,
};
use talea::run::{NotPosted, Post, Posted};

const BATCH: u32 = 64;

/// What an event carries.
#[derive(Filterable)]
#[filterable(crate = "talea::notification::etcl")]
struct Battery {
    charge: f64,
    cell: u32,
}

impl Content for Battery {}

/// Nothing is posted, and no time passes.
struct Nothing;

impl Post for Nothing {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn post_work(&mut self, _posted: Posted) -> Result<u64, NotPosted> {
        Ok(0)
    }

    fn may_wait(&self) -> bool {
        false
    }
}

/// A channel with a supplier, and consumers that take what they have.
struct Bench {
    supplier: Supplier,
    /// Those that have the event.
    consumers: Vec<PullConsumer>,
    /// Connected as long as this.
    _others: Vec<PullConsumer>,
    event: Event,
}

fn pattern(name: &str) -> TypePattern {
    TypePattern::new("Robot", name).expect("a pattern")
}

impl Bench {
    fn new(connect: impl FnOnce(&EventChannel) -> (Vec<PullConsumer>, Vec<PullConsumer>)) -> Self {
        let factory = EventChannelFactory::new();
        let channel =
            factory.create("bench", &QosSettings::new(), AdminProperties::default()).expect("sound");
        let (consumers, others) = connect(&channel);
        let battery = EventType::new("Robot", "Battery");
        let supplier = channel.supplier("s").offer([battery.clone()]).connect().expect("connected");
        let event = Event::new(Header::new(battery), Battery { charge: 11.5, cell: 3 });
        Bench { supplier, consumers, _others: others, event }
    }

    /// One consumer, beside `others` with subscriptions to other types.
    fn of_other_types(others: usize) -> Self {
        Bench::new(|channel| {
            let small = QosSettings::new().max_events(1);
            let other = |number: usize| {
                let consumer = channel.consumer("other").subscribe([pattern(&format!("Other{number}"))]);
                consumer.qos(small.clone()).connect_pull().expect("connected")
            };
            (vec![consumer(channel, Vec::new())], (0..others).map(other).collect())
        })
    }

    /// So many consumers of the type.
    fn of_the_type(consumers: usize) -> Self {
        Bench::new(|channel| ((0..consumers).map(|_| consumer(channel, Vec::new())).collect(), Vec::new()))
    }

    /// One consumer with so many filters, of which the last one alone matches.
    fn filtered(filters: usize) -> Self {
        let filter = |number: usize| {
            let limit = if number == filters { 20 } else { 10 };
            // Different texts, as different people would write them.
            let text = format!("cell == 3 and charge < {limit} and {number} > 0");
            Filter::parse::<Battery>(&[], &text).expect("a constraint")
        };
        Bench::new(|channel| (vec![consumer(channel, (1..=filters).map(filter).collect())], Vec::new()))
    }

    fn step(&mut self) {
        self.supplier.push(Nothing, &self.event).expect("pushed");
        self.consumers.iter().for_each(|consumer| _ = black_box(consumer.try_pull(Instant::ZERO)));
    }

    /// Nanoseconds an event in the median, and in one of a hundred batches.
    fn measure(&mut self, batches: usize) -> [f64; 2] {
        let mut times: Vec<f64> = (0..batches.max(2))
            .map(|_| {
                let begin = std::time::Instant::now();
                (0..BATCH).for_each(|_| self.step());
                begin.elapsed().as_nanos() as f64 / f64::from(BATCH)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        [times[times.len() / 2], times[times.len() * 99 / 100]]
    }
}

fn consumer(channel: &EventChannel, filters: Vec<Filter>) -> PullConsumer {
    let builder = channel.consumer("c").subscribe([pattern("Battery")]);
    let builder = filters.into_iter().fold(builder, |builder, filter| builder.filter(filter));
    builder.qos(QosSettings::new().max_events(4)).connect_pull().expect("connected")
}

/// A family of benches, what its curve is called, and how large they are.
type Family = (&'static str, fn(usize) -> Bench, &'static [usize]);

fn chart(title: &str, x: &str, families: &[Family], batches: usize) -> Chart {
    let mut series = Vec::new();
    for (colour, (name, make, sizes)) in families.iter().enumerate() {
        let mut points = [Vec::new(), Vec::new()];
        for &size in *sizes {
            // Large ones take long enough.
            let figures = make(size).measure(batches / (1 + size / 1_000));
            points.iter_mut().zip(figures).for_each(|(points, figure)| points.push((size as f64, figure)));
        }
        let [median, tail] = points;
        series.push(Series {
            name: format!("{name}, median"),
            colour,
            mark: Mark::Disc,
            joined: Joined::Line,
            points: median,
        });
        series.push(Series {
            name: format!("{name}, 99 %"),
            colour,
            mark: Mark::Ring,
            joined: Joined::No,
            points: tail,
        });
    }
    let all = || series.iter().flat_map(|series| series.points.iter());
    let logarithmic = |label: &str, to: f64, from: f64| {
        let powers = (from.log10().floor() as i32..=to.log10().ceil() as i32).map(|power| 10f64.powi(power));
        let ticks: Vec<(f64, String)> = powers.map(|value| (value, value.to_string())).collect();
        let (from, to) = (ticks[0].0, ticks[ticks.len() - 1].0);
        Axis { label: label.into(), from, to, scale: Scale::Logarithmic, ticks: Some(ticks) }
    };
    let most = |place: fn(&(f64, f64)) -> f64| all().map(place).fold(1.0, f64::max);
    let least = all().map(|point| point.1).fold(f64::INFINITY, f64::min);
    Chart {
        title: title.into(),
        conditions: format!("one thread, from push to take, batches of {BATCH}, no time passes"),
        x: logarithmic(x, most(|point| point.0), 1.0),
        y: logarithmic("nanoseconds an event", most(|point| point.1), least),
        series,
        margin: Margin::Empty,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_real = arguments.iter().any(|argument| argument == "--bench");
    let out =
        arguments.iter().position(|argument| argument == "--out").and_then(|place| arguments.get(place + 1));
    let batches = if is_real { 4_000 } else { 2 };
    let (many, some): (&[usize], &[usize]) = match is_real {
        true => (&[1, 10, 100, 1_000, 10_000, 100_000], &[1, 10, 100, 1_000]),
        false => (&[1, 10], &[1, 10]),
    };
    let subscriptions = chart(
        "An event beside many subscriptions",
        "subscriptions",
        &[("of other types", Bench::of_other_types, many), ("of its type", Bench::of_the_type, some)],
        batches,
    );
    let filters = chart(
        "An event through many filters",
        "filters of one consumer, of which the last matches",
        &[("three comparisons each", Bench::filtered, some)],
        batches,
    );
    for (name, chart) in [("event-subscriptions", subscriptions), ("event-filters", filters)] {
        for series in &chart.series {
            println!("{name}: {}: {:?}", series.name, series.points);
        }
        let svg = chart.svg()?;
        if let (Some(out), true) = (out, is_real) {
            let path = PathBuf::from(out).join(format!("{name}.svg"));
            std::fs::write(&path, svg)?;
            std::fs::write(path.with_extension("png"), chart.png()?)?;
            println!("{}", path.display());
        }
    }
    Ok(())
}
