//! What all parts left, and the figures that claims and tables are made of.

use super::edges::FigureTrial;
use super::frames::{self, Frames};
use super::hand_over;
use super::operations::{Measured, Operation, Way};
use super::runs::Run;
use super::service::{Evidence, total};
use super::setting::{BACKGROUND, Configuration, Picture, RENDERER};
use crate::compare::Clock;
use crate::experiments::kernel_switches::RecordedSwitches;
use talea_statistics::{Interval, bootstrap, slope};

/// Seed of all resampling.
pub const RESAMPLING: u64 = 2001;

/// One configuration of Table 5 on one clock.
#[derive(Clone, Debug, serde::Serialize)]
pub struct RendererTrial {
    /// Which.
    pub configuration: Configuration,
    /// Where it was made.
    pub clock: Clock,
    /// Length of the run, in nanoseconds.
    pub run_ns: i64,
    /// The renderer's frames, by what it received.
    pub frames: Frames,
    /// The same by what the hierarchy granted it.
    pub as_granted: Frames,
    /// The renderer's share of the processor, 0 to 1.
    pub renderer_share: f64,
    /// The background's.
    pub background_share: f64,
    /// The share of the time that the kernel withheld from a thread that was granted the processor.
    pub withheld_share: f64,
    /// The longest time that it did so at once, in nanoseconds.
    pub withheld_longest_ns: i64,
    /// How it is known which thread had the processor.
    pub evidence: Evidence,
    /// Whose context switches were recorded.
    pub kernel: Option<RecordedSwitches>,
    /// Lengths of the gaps between frames, with the instants of their ends since the beginning of the run, in nanoseconds.
    #[serde(skip)]
    pub gaps: Vec<(i64, i64)>,
}

impl RendererTrial {
    /// What a run of the configuration left.
    pub fn of(configuration: Configuration, clock: Clock, run: Run) -> Self {
        let service = &run.service;
        let [frames, as_granted] = frames::of_service(service);
        let run_ns = service.run.length().as_nanos();
        let share = |ns: i64| if run_ns > 0 { ns as f64 / run_ns as f64 } else { 0.0 };
        let received = |name: &str| share(total(&service.account(name).received).as_nanos());
        let done = frames::instants(&service.account(RENDERER).received);
        let gap =
            |gap: &super::service::Spell| ((gap.to - service.run.from).as_nanos(), gap.length().as_nanos());
        RendererTrial {
            configuration,
            clock,
            run_ns,
            frames,
            as_granted,
            renderer_share: received(RENDERER),
            background_share: received(BACKGROUND),
            withheld_share: share(total(&service.withheld).as_nanos()),
            withheld_longest_ns: service
                .withheld
                .iter()
                .map(|spell| spell.length().as_nanos())
                .max()
                .unwrap_or(0),
            evidence: service.evidence,
            kernel: run.recorded,
            gaps: frames::gaps(service.run, &done).iter().map(gap).collect(),
        }
    }

    /// Frames per second.
    pub fn rate(&self) -> f64 {
        self.frames.made as f64 * 1e9 / self.run_ns.max(1) as f64
    }
}

/// Hand-overs made in one way, in turns that alternate with the others'.
#[derive(Clone, Debug)]
pub struct HandOvers {
    /// How the next thread was chosen.
    pub way: hand_over::Way,
    /// The nanoseconds of each, by turn.
    pub turns: Vec<Vec<f64>>,
    /// Turns that do not count, see [`hand_over::Way::measure`].
    pub spoilt: u64,
}

impl HandOvers {
    /// The median of each turn.
    pub fn medians(&self) -> Vec<f64> {
        self.turns.iter().filter_map(|turn| quantile(turn, 0.5)).collect()
    }

    /// The quantile of all turns together.
    pub fn quantile(&self, at: f64) -> Option<f64> {
        quantile(&self.turns.concat(), at)
    }
}

/// What a level costs: the line through the turns' medians over the depth.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct PerLevel {
    /// Nanoseconds for each additional level.
    pub ns: f64,
    /// The bootstrap interval.
    pub interval: Option<Interval>,
    /// The share of the medians' variance that the depth explains.
    pub r_squared: f64,
}

/// Everything that was found.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Part `table-5`.
    pub renderers: Vec<RendererTrial>,
    /// Part `table-4`.
    pub operations: Vec<Measured>,
    /// Part `switches`.
    pub hand_overs: Vec<HandOvers>,
    /// Part `figures`, each with where it was made.
    pub figures: Vec<(Clock, FigureTrial)>,
}

impl Results {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.renderers.is_empty()
            && self.operations.is_empty()
            && self.hand_overs.is_empty()
            && self.figures.is_empty()
    }

    /// The trial of a configuration.
    pub fn renderer(&self, configuration: Configuration, clock: Clock) -> Option<&RendererTrial> {
        self.renderers.iter().find(|trial| trial.configuration == configuration && trial.clock == clock)
    }

    /// The trial of a figure.
    pub fn figure(&self, picture: Picture, clock: Clock) -> Option<&FigureTrial> {
        self.figures
            .iter()
            .find(|(made, trial)| trial.picture == picture && *made == clock)
            .map(|(_, trial)| trial)
    }

    /// The times of an operation.
    pub fn operation(&self, operation: Operation, way: Way) -> Option<&Measured> {
        self.operations.iter().find(|measured| measured.operation == operation && measured.way == way)
    }

    /// The hand-overs made in one way.
    pub fn hand_over(&self, way: hand_over::Way) -> Option<&HandOvers> {
        self.hand_overs.iter().find(|of_way| of_way.way == way)
    }

    /// What an additional level costs.
    pub fn per_level(&self) -> Option<PerLevel> {
        let mut points = Vec::new();
        for levels in hand_over::LEVELS {
            let medians = self.hand_over(hand_over::Way::Levels(levels))?.medians();
            points.extend(medians.into_iter().map(|median| (levels as f64, median)));
        }
        let (depth, ns): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let [interval] = bootstrap(points.len(), RESAMPLING, |drawn| {
            let (depth, ns): (Vec<f64>, Vec<f64>) = drawn.iter().map(|index| points[*index]).unzip();
            [slope(&ns, &depth)]
        });
        let r_squared = talea_statistics::r_squared(&ns, &[&depth])?;
        Some(PerLevel { ns: slope(&ns, &depth)?, interval, r_squared })
    }
}

/// The value below which the share `at` of `values` lies: the nearest rank. None of nothing.
pub fn quantile(values: &[f64], at: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (at * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_of_the_sample() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|at| quantile(&values, at).unwrap()), [1.0, 50.0, 99.0, 100.0]);
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn what_a_level_costs_is_the_slope() {
        let of = |levels: usize| HandOvers {
            way: hand_over::Way::Levels(levels),
            turns: (0..6).map(|turn| vec![2_000.0 + 100.0 * levels as f64 + f64::from(turn % 2)]).collect(),
            spoilt: 0,
        };
        let mut results = Results { hand_overs: hand_over::LEVELS.map(of).to_vec(), ..Results::default() };
        let found = results.per_level().expect("all levels are there");
        assert!((found.ns - 100.0).abs() < 0.5, "{found:?}");
        assert!(found.interval.expect("enough points").contains(100.0), "{found:?}");
        results.hand_overs.pop();
        assert_eq!(results.per_level(), None, "runs are missing");
    }
}
