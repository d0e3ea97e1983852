//! The paper's Figures 4 to 8, and two of our own about the price of the mechanisms.

use super::hypotheses::Point;
use super::results::Results;
use super::setting::Region;
use crate::experiments::folder::Picture;
use talea_figure::chart::{Axis, Chart, Joined, Margin, Mark, Scale, Series};
use talea_model::Strategy;

/// How a strategy is drawn, the same in all figures.
fn look(strategy: Strategy) -> (usize, Mark) {
    match strategy {
        Strategy::Rms => (5, Mark::Triangle),
        Strategy::Muf => (0, Mark::Ring),
        Strategy::RmsMlf => (1, Mark::Disc),
        Strategy::Edf => (2, Mark::Square),
        Strategy::Mlf | Strategy::Criticality => (3, Mark::Cross),
    }
}

fn title(strategy: Strategy) -> String {
    strategy.keyword().to_uppercase()
}

/// Every figure that the results allow; `conditions` says how they were made.
pub fn pictures(results: &Results, points: &[Point], conditions: &str) -> Vec<Picture> {
    let mut pictures: Vec<Picture> = relative_performance(results, conditions).into_iter().collect();
    pictures.extend((8..=11).filter_map(|region| weighted_fractions(results, region, conditions)));
    pictures.extend(difference_by_price(points));
    pictures.extend(overhead_and_difference(points, conditions));
    pictures
}

/// Figure 4: soft deadlines made by region and strategy.
fn relative_performance(results: &Results, conditions: &str) -> Option<Picture> {
    let mut series = Vec::new();
    // What is drawn last lies on top: the paper's three strategies.
    for strategy in [Strategy::Mlf, Strategy::Edf, Strategy::Rms, Strategy::RmsMlf, Strategy::Muf] {
        let (colour, mark) = look(strategy);
        let points: Vec<(f64, f64)> = Region::all()
            .filter_map(|region| results.trial(region.number(), strategy))
            .map(|trial| (trial.region.number() as f64, trial.effectiveness()))
            .collect();
        if !points.is_empty() {
            series.push(Series { name: title(strategy), colour, mark, joined: Joined::Line, points });
        }
    }
    let most = series.iter().flat_map(|series| &series.points).map(|point| point.1).fold(0.0, f64::max);
    let ticks = Region::all().map(|region| (region.number() as f64, region.number().to_string())).collect();
    let chart = Chart {
        title: "Figure 4: soft deadlines made by operating region".into(),
        conditions: format!(
            "mean over samples of 1 s; a sample with a missed hard deadline counts 0; {conditions}"
        ),
        x: Axis {
            label: "operating region".into(),
            from: -0.4,
            to: 11.4,
            scale: Scale::Linear,
            ticks: Some(ticks),
        },
        y: Axis {
            label: "soft deadlines made per sample".into(),
            from: -most * 0.03,
            to: most * 1.05 + 1.0,
            scale: Scale::Linear,
            ticks: None,
        },
        series,
        margin: Margin::Empty,
    };
    (!chart.series.is_empty()).then(|| Picture { name: "figure-4".into(), chart })
}

/// Figures 5 to 8: the weighted fraction of every sample.
fn weighted_fractions(results: &Results, region: usize, conditions: &str) -> Option<Picture> {
    let mut series = Vec::new();
    for strategy in [Strategy::RmsMlf, Strategy::Muf] {
        let trial = results.trial(region, strategy)?;
        let (colour, mark) = look(strategy);
        let points = trial.efficiencies().into_iter().enumerate();
        let points = points.map(|(number, fraction)| ((number + 1) as f64, fraction)).collect();
        series.push(Series { name: title(strategy), colour, mark, joined: Joined::No, points });
    }
    let count = series.iter().map(|series| series.points.len()).max().unwrap_or(1) as f64;
    let heights = series.iter().flat_map(|series| &series.points).map(|point| point.1);
    let rms = results.trial(region, Strategy::Rms).map_or(String::new(), |trial| {
        format!("; RMS missed hard deadlines in {} of {} samples", trial.hard_missed(), trial.samples.len())
    });
    let jitter = Region::numbered(region)?.load_jitter();
    let chart = Chart {
        title: format!(
            "Figure {}: weighted fraction of soft deadlines made in operating region {region}",
            region - 3
        ),
        conditions: format!("load jitter {jitter}; {conditions}{rms}"),
        y: Axis::over("fraction made, 0 after a hard miss", heights),
        x: Axis {
            label: "sample of 1 s".into(),
            from: 0.0,
            to: count + 1.0,
            scale: Scale::Linear,
            ticks: None,
        },
        series,
        margin: Margin::Distributions,
    };
    Some(Picture { name: format!("figure-{}", region - 3), chart })
}

/// How a region is drawn in our own figures.
fn region_look(region: Region) -> (String, usize, Mark) {
    let marks = [Mark::Square, Mark::Disc, Mark::Triangle, Mark::Cross];
    let place = region.number() % marks.len();
    (format!("region {} ({})", region.number(), region.load_jitter()), [6, 1, 0, 2][place], marks[place])
}

fn by_region(points: &[Point], joined: Joined, place: impl Fn(&Point) -> Option<(f64, f64)>) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for region in Region::all() {
        let (name, colour, mark) = region_look(region);
        let of_region = points.iter().filter(|point| point.region == region);
        let points: Vec<(f64, f64)> = of_region.filter_map(&place).collect();
        if !points.is_empty() {
            series.push(Series { name, colour, mark, joined, points });
        }
    }
    series
}

/// The difference over the price of a switch, where ordering costs nothing.
fn difference_by_price(points: &[Point]) -> Option<Picture> {
    let series = by_region(points, Joined::Line, |point| {
        let mechanism = point.mechanism.filter(|mechanism| mechanism.ordering_ns == 0)?;
        Some((mechanism.switch_ns as f64 / 1e3, point.soft_met.mean))
    });
    let all = || series.iter().flat_map(|series| series.points.iter().copied());
    let (least, most) =
        all().fold((f64::INFINITY, 0f64), |(least, most), (x, _)| (least.min(x), most.max(x)));
    if least >= most {
        return None;
    }
    let ticks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map(f64::from);
    let ticks = ticks.into_iter().filter(|tick| (least..=most).contains(tick));
    let chart = Chart {
        title: "What MUF makes more than RMS+MLF, by the price of a switch".into(),
        conditions:
            "simulated; all prices grow together from those measured on this machine; ordering costs nothing"
                .into(),
        x: Axis {
            label: "price of a switch, µs".into(),
            from: least / 1.2,
            to: most * 1.2,
            scale: Scale::Logarithmic,
            ticks: Some(ticks.map(|tick| (tick, tick.to_string())).collect()),
        },
        y: Axis::over("soft deadlines per sample, MUF minus RMS+MLF", all().map(|point| point.1)),
        series,
        margin: Margin::Empty,
    };
    Some(Picture { name: "difference-by-price".into(), chart })
}

/// The difference over the net difference in overhead.
fn overhead_and_difference(points: &[Point], conditions: &str) -> Option<Picture> {
    let series = by_region(points, Joined::No, |point| Some((point.net_overhead_ms, point.soft_met.mean)));
    if series.is_empty() {
        return None;
    }
    let all = || series.iter().flat_map(|series| series.points.iter().copied());
    let chart = Chart {
        title: "Net difference in overhead, and who is ahead".into(),
        conditions: match points.iter().any(|point| point.mechanism.is_some()) {
            true => "each point: one region at one combination of prices, simulated".into(),
            false => format!("each point: one region; {conditions}"),
        },
        x: Axis::over(
            "overhead that RMS+MLF has more than MUF, ms per sample of 1 s",
            all().map(|point| point.0),
        ),
        y: Axis::over("soft deadlines per sample, MUF minus RMS+MLF", all().map(|point| point.1)),
        series,
        margin: Margin::Empty,
    };
    Some(Picture { name: "overhead-and-difference".into(), chart })
}
