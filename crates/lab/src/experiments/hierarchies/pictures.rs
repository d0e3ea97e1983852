//! Pictures of Table 5, of gaps, of operations and of context switches.

use super::hand_over;
use super::operations::{Operation, Way};
use super::results::{RendererTrial, Results, quantile};
use super::setting::{Configuration, OPERATION_BOUND_NS, published_switch};
use crate::compare::Clock;
use crate::experiments::folder::Picture;
use talea_figure::chart::{Axis, Chart, Joined, Margin, Mark, Scale, Series};

/// Every picture that the results allow.
pub fn pictures(results: &Results) -> Vec<Picture> {
    let gaps = [Clock::Virtual, Clock::Real].into_iter().filter_map(|clock| gaps(results, clock));
    [shares(results), misses(results), operations(results), switches(results)]
        .into_iter()
        .flatten()
        .chain(gaps)
        .collect()
}

fn series(name: &str, colour: usize, mark: Mark, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.into(), colour, mark, joined: Joined::No, points }
}

/// The configurations side by side.
fn configurations() -> Axis {
    let tick = |(place, configuration): (usize, Configuration)| {
        let keyword = configuration.keyword();
        let title = keyword.replace('-', ", ");
        (place as f64, if configuration.reserves() { title } else { format!("{title} pri.") })
    };
    Axis {
        label: "how the renderer is scheduled".into(),
        from: -0.6,
        to: Configuration::ALL.len() as f64 - 0.4,
        scale: Scale::Linear,
        ticks: Some(Configuration::ALL.into_iter().enumerate().map(tick).collect()),
    }
}

/// A value of every configuration, moved a little so that marks do not hide each other.
fn points(shift: f64, value: impl Fn(Configuration) -> Option<f64>) -> Vec<(f64, f64)> {
    let of = |(place, configuration)| Some((place as f64 + shift, value(configuration)?));
    Configuration::ALL.into_iter().enumerate().filter_map(of).collect()
}

fn shares(results: &Results) -> Option<Picture> {
    let of = |clock, share: fn(&RendererTrial) -> f64| {
        move |configuration| results.renderer(configuration, clock).map(|trial| share(trial) * 100.0)
    };
    let renderer: fn(&RendererTrial) -> f64 = |trial| trial.renderer_share;
    let background: fn(&RendererTrial) -> f64 = |trial| trial.background_share;
    let series = vec![
        series("renderer, paper", 0, Mark::Disc, points(-0.24, |one| Some(one.published()?.renderer))),
        series("simulated", 0, Mark::Ring, points(-0.14, of(Clock::Virtual, renderer))),
        series("real", 0, Mark::Cross, points(-0.04, of(Clock::Real, renderer))),
        series("background, paper", 1, Mark::Disc, points(0.08, |one| Some(one.published()?.background))),
        series("simulated", 1, Mark::Ring, points(0.18, of(Clock::Virtual, background))),
        series("real", 1, Mark::Cross, points(0.28, of(Clock::Real, background))),
    ];
    let y = Axis {
        label: "percent of the processor".into(),
        from: 0.0,
        to: 100.0,
        scale: Scale::Linear,
        ticks: None,
    };
    picture(
        "table-5-shares",
        "Table 5: who has the processor",
        conditions(results),
        configurations(),
        y,
        series,
    )
    .filter(|_| !results.renderers.is_empty())
}

fn misses(results: &Results) -> Option<Picture> {
    // Runs are of different lengths, the paper's of 30 s.
    let per_30_s = |trial: &RendererTrial, count: u64| count as f64 * 30e9 / trial.run_ns.max(1) as f64;
    let of = |clock, count: fn(&RendererTrial) -> u64| {
        move |configuration| {
            results.renderer(configuration, clock).map(|trial| per_30_s(trial, count(trial)).max(0.5))
        }
    };
    let gaps: fn(&RendererTrial) -> u64 = |trial| trial.frames.gaps;
    let unexcused: fn(&RendererTrial) -> u64 = |trial| trial.frames.unexcused();
    let series = vec![
        series("paper", 6, Mark::Disc, points(-0.2, |one| Some((one.published()?.misses as f64).max(0.5)))),
        series("simulated", 0, Mark::Ring, points(-0.07, of(Clock::Virtual, gaps))),
        series("real", 5, Mark::Cross, points(0.07, of(Clock::Real, gaps))),
        series("real, nothing withheld", 2, Mark::Triangle, points(0.2, of(Clock::Real, unexcused))),
    ];
    let ticks = [(0.5, "0"), (1.0, "1"), (10.0, "10"), (100.0, "100"), (1000.0, "1000")];
    let y = Axis {
        label: "gaps of more than 33 ms in 30 s".into(),
        from: 0.4,
        to: 1500.0,
        scale: Scale::Logarithmic,
        ticks: Some(ticks.map(|(value, text)| (value, text.to_string())).to_vec()),
    };
    picture(
        "table-5-misses",
        "Table 5: frames that came too late",
        conditions(results),
        configurations(),
        y,
        series,
    )
    .filter(|_| !results.renderers.is_empty())
}

/// The gaps over the time of the runs with reservations.
fn gaps(results: &Results, clock: Clock) -> Option<Picture> {
    let shown = [
        (Configuration::Hard, 0, Mark::Disc),
        (Configuration::Soft, 1, Mark::Ring),
        (Configuration::HardLimited, 4, Mark::Cross),
        (Configuration::SoftLimited, 3, Mark::Triangle),
        (Configuration::HardSufficient, 2, Mark::Square),
        (Configuration::SoftSufficient, 5, Mark::Disc),
    ];
    let of = |(configuration, colour, mark): (Configuration, usize, Mark)| {
        let trial = results.renderer(configuration, clock)?;
        let points = trial.gaps.iter().map(|(at, length)| (*at as f64 / 1e9, *length as f64 / 1e6)).collect();
        Some(series(configuration.keyword(), colour, mark, points))
    };
    let series: Vec<Series> = shown.into_iter().filter_map(of).collect();
    let all = || series.iter().flat_map(|series| &series.points);
    let (longest, last) =
        (all().map(|point| point.1).fold(40.0, f64::max), all().map(|point| point.0).fold(1.0, f64::max));
    let x = Axis { label: "time, s".into(), from: 0.0, to: last, scale: Scale::Linear, ticks: None };
    let y = Axis {
        label: "gap before a frame, ms".into(),
        from: 0.0,
        to: longest * 1.05,
        scale: Scale::Linear,
        ticks: None,
    };
    let (name, where_) = match clock {
        Clock::Virtual => ("gaps-simulated", "simulated"),
        Clock::Real => ("gaps-real", "on real threads"),
    };
    let title = format!("Gaps between frames with a reservation, {where_}");
    picture(name, &title, "33 ms are allowed".into(), x, y, series)
}

fn operations(results: &Results) -> Option<Picture> {
    let at = |way, share: f64| {
        let of = |(place, operation): (usize, Operation)| {
            Some((place as f64, quantile(&results.operation(operation, way)?.ns, share)? / 1e3))
        };
        Operation::ALL.into_iter().enumerate().filter_map(of).collect::<Vec<_>>()
    };
    let published = Operation::ALL.into_iter().enumerate();
    let published = published.filter_map(|(place, one)| Some((place as f64, one.published()?.mean_ns / 1e3)));
    let series = vec![
        series("paper (500 MHz)", 6, Mark::Disc, published.collect()),
        series("library p50", 0, Mark::Disc, at(Way::Library, 0.5)),
        series("p99", 0, Mark::Ring, at(Way::Library, 0.99)),
        series("socket p50", 1, Mark::Square, at(Way::Socket, 0.5)),
        series("p99", 1, Mark::Cross, at(Way::Socket, 0.99)),
    ];
    let ticks = ["refuse", "create", "begin", "change", "end", "replace", "destroy"];
    let x = Axis {
        label: "operation".into(),
        from: -0.5,
        to: 6.5,
        scale: Scale::Linear,
        ticks: Some(ticks.iter().enumerate().map(|(place, text)| (place as f64, text.to_string())).collect()),
    };
    let heights = series.iter().flat_map(|series| &series.points).map(|point| point.1);
    let (least, most) =
        heights.fold((10.0, 100.0), |(least, most): (f64, f64), one| (least.min(one), most.max(one)));
    let powers = (least.log10().floor() as i32)..=(most.log10().ceil() as i32);
    let ticks = powers.clone().map(|power| (10f64.powi(power), format!("{}", 10f64.powi(power)))).collect();
    let y = Axis {
        label: "µs".into(),
        from: 10f64.powi(*powers.start()),
        to: 10f64.powi(*powers.end()),
        scale: Scale::Logarithmic,
        ticks: Some(ticks),
    };
    let conditions =
        format!("while the hierarchy runs; the paper: all below {} µs", OPERATION_BOUND_NS / 1e3);
    picture("table-4", "Table 4: operations on a running hierarchy", conditions, x, y, series)
        .filter(|_| !results.operations.is_empty())
}

fn switches(results: &Results) -> Option<Picture> {
    let at = |share| {
        let of = |levels: usize| {
            let of_way = results.hand_over(hand_over::Way::Levels(levels))?;
            Some((levels as f64, of_way.quantile(share)? / 1e3))
        };
        hand_over::LEVELS.into_iter().filter_map(of).collect::<Vec<_>>()
    };
    let floor = |way| {
        let median = results.hand_over(way).and_then(|of_way| of_way.quantile(0.5));
        median.map(|ns| (0.0, ns / 1e3)).into_iter().collect::<Vec<_>>()
    };
    let paper = |levels: usize| {
        let more = (levels - 1) as f64 * published_switch::PER_LEVEL_NS;
        (levels as f64, (published_switch::HIERARCHY_NS + more) / 1e3)
    };
    let line = |series: Series| Series { joined: Joined::Line, ..series };
    let series = vec![
        line(series("paper (500 MHz)", 6, Mark::Disc, hand_over::LEVELS.map(paper).to_vec())),
        line(series("hierarchy p50", 0, Mark::Disc, at(0.5))),
        line(series("p99", 0, Mark::Ring, at(0.99))),
        series("bare sentinel", 2, Mark::Square, floor(hand_over::Way::Sentinel)),
        series("kernel alone", 5, Mark::Triangle, floor(hand_over::Way::Kernel)),
    ];
    let most = series.iter().flat_map(|series| &series.points).map(|point| point.1).fold(0.0, f64::max);
    let x = Axis {
        label: "levels of schedulers between the two threads".into(),
        from: -0.5,
        to: 16.5,
        scale: Scale::Linear,
        ticks: Some([0, 1, 2, 4, 8, 16].map(|levels| (f64::from(levels), levels.to_string())).to_vec()),
    };
    let y = Axis {
        label: "block to the next thread's first instruction, µs".into(),
        from: 0.0,
        to: most * 1.1 + 0.1,
        scale: Scale::Linear,
        ticks: None,
    };
    let title = "What a context switch costs under a hierarchy";
    picture(
        "switches",
        title,
        "same processor, same process; the paper's at the same depth".into(),
        x,
        y,
        series,
    )
    .filter(|_| !results.hand_overs.is_empty())
}

fn conditions(results: &Results) -> String {
    let length = |clock| {
        let of_clock = results.renderers.iter().filter(|trial| trial.clock == clock);
        of_clock.map(|trial| trial.run_ns / 1_000_000_000).max()
    };
    let parts = [(Clock::Virtual, "simulated"), (Clock::Real, "on real threads")].into_iter();
    let parts = parts.filter_map(|(clock, words)| Some(format!("{} s {words}", length(clock)?)));
    std::iter::once("the paper's runs are of 30 s".to_string()).chain(parts).collect::<Vec<_>>().join(", ")
}

fn picture(
    name: &str,
    title: &str,
    conditions: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
) -> Option<Picture> {
    let series: Vec<Series> = series.into_iter().filter(|series| !series.points.is_empty()).collect();
    let chart = Chart { title: title.into(), conditions, x, y, series, margin: Margin::Empty };
    (!chart.series.is_empty()).then(|| Picture { name: name.into(), chart })
}
