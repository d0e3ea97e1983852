//! One setting: what the paper's strategies serve in each of the twelve regions, and which of its claims that bears out.

use super::super::mechanism::Mechanism;
use super::super::pattern::{Cycle, Follows, Pattern, SURE};
use super::super::runs::{WARM_UP, mean};
use super::super::sampler::{Sample, Sampler};
use super::super::setting::{HYPERPERIOD, Region, Setting};
use crate::compare::CompareError;
use talea_model::Strategy;
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

const REGIONS: usize = 12;

/// Samples of a region with load jitter; without, one is like the other to a leg or two.
const SAMPLES: usize = 2;

/// The paper's strategies in one setting.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Outcome {
    /// The setting.
    pub setting: Setting,
    /// Under RMS.
    pub rms: Served,
    /// Under MUF.
    pub muf: Served,
    /// Under RMS+MLF.
    pub hybrid: Served,
    /// What is found of the two that are alike, MUF first.
    pub shapes: [Shape; 2],
}

/// What a strategy serves, by region.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Served {
    /// Soft deadlines made per sample, a sample with a hard miss counting 0.
    pub soft: [f64; REGIONS],
    /// The share of the samples with a hard miss.
    pub missed: [f64; REGIONS],
}

/// Whether what is served over the regions has the pattern of the paper.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Shape {
    /// The cycle with period four.
    pub cycle: Cycle,
    /// The load jitter beside the load.
    pub follows: Follows,
}

/// What is found of the paper's pattern, the most of it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// MUF or RMS+MLF misses hard deadlines, so that what they serve says nothing of the load jitter.
    HardMisses,
    /// Neither of the two claims holds of both.
    Neither,
    /// They are cyclic.
    Cyclic,
    /// They follow the load jitter more than the load.
    FollowsJitter,
    /// Both claims hold of both.
    Both,
    /// And RMS grows through region 6, serves the most until then, and misses hard deadlines in every sample from region 8 on.
    Whole,
}

impl Found {
    /// Every one.
    pub const ALL: [Found; 6] =
        [Found::HardMisses, Found::Neither, Found::Cyclic, Found::FollowsJitter, Found::Both, Found::Whole];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Found::HardMisses => "hard misses",
            Found::Neither => "neither",
            Found::Cyclic => "cyclic only",
            Found::FollowsJitter => "follows jitter only",
            Found::Both => "both",
            Found::Whole => "both, and RMS as in the paper",
        }
    }
}

impl Shape {
    /// The place in the cycle of four explains more of what the load leaves than chance would.
    pub fn is_cyclic(&self) -> bool {
        self.cycle.p < SURE
    }

    /// The more load jitter, the less is served, and that explains more than the load does.
    pub fn follows_jitter(&self) -> bool {
        self.follows.jitter > self.follows.load && !self.follows.rises_with_jitter
    }
}

impl Outcome {
    /// Simulates `setting` in all regions at the measured prices.
    ///
    /// # Errors
    /// [`CompareError::Simulation`].
    pub fn of(setting: Setting, pattern: &Pattern) -> Result<Self, CompareError> {
        let [rms, muf, hybrid] =
            [Strategy::Rms, Strategy::Muf, Strategy::RmsMlf].map(|strategy| served(setting, strategy));
        let (rms, muf, hybrid) = (rms?, muf?, hybrid?);
        let shape = |served: &Served| Shape {
            cycle: pattern.cycle(&served.soft).expect("there are twelve regions"),
            follows: pattern.follows(&served.soft).expect("there are twelve regions"),
        };
        Ok(Outcome { setting, shapes: [shape(&muf), shape(&hybrid)], rms, muf, hybrid })
    }

    /// What of the paper's pattern it has.
    pub fn found(&self) -> Found {
        let both = |holds: fn(&Shape) -> bool| self.shapes.iter().all(holds);
        if [&self.muf, &self.hybrid].iter().any(|served| served.missed.iter().any(|share| *share > 0.0)) {
            return Found::HardMisses;
        }
        match (both(Shape::is_cyclic), both(Shape::follows_jitter)) {
            (false, false) => Found::Neither,
            (true, false) => Found::Cyclic,
            (false, true) => Found::FollowsJitter,
            (true, true) if self.rms_is_as_in_the_paper() => Found::Whole,
            (true, true) => Found::Both,
        }
    }

    /// RMS serves more with every region through 6 and no less than the others, and misses hard deadlines in every sample from 8 on.
    pub fn rms_is_as_in_the_paper(&self) -> bool {
        let soft = &self.rms.soft;
        // Regions 0 and 1 offer the same.
        let grows = soft[0] <= soft[1] && soft[1..=6].windows(2).all(|pair| pair[0] < pair[1]);
        let is_best = (0..=6)
            .all(|region| soft[region] >= self.muf.soft[region] && soft[region] >= self.hybrid.soft[region]);
        grows && is_best && self.rms.missed[8..].iter().all(|share| *share == 1.0)
    }
}

fn served(setting: Setting, strategy: Strategy) -> Result<Served, CompareError> {
    let mut served = Served { soft: [0.0; REGIONS], missed: [0.0; REGIONS] };
    for region in Region::all() {
        let samples = samples(setting, region, strategy)?;
        served.soft[region.number()] = mean(samples.iter().map(|sample| sample.effectiveness() as f64));
        served.missed[region.number()] =
            mean(samples.iter().map(|sample| f64::from(u8::from(sample.hard_missed()))));
    }
    Ok(served)
}

fn samples(setting: Setting, region: Region, strategy: Strategy) -> Result<Vec<Sample>, CompareError> {
    let (low, high) = region.load_jitter().range();
    let count = WARM_UP + if low == high { 1 } else { SAMPLES };
    let system = Mechanism::MEASURED.charge(&setting.system(region), strategy);
    let mut simulation =
        Simulation::new(&system).map_err(|cause| CompareError::Simulation { strategy, cause })?;
    let mut sampler = Sampler::new(simulation.metadata());
    let length = Duration::from_nanos(HYPERPERIOD.as_nanos() * count as i64);
    simulation.advance(Instant::ZERO + length, &mut sampler);
    simulation.finish(&mut sampler);
    let (mut samples, _) = sampler.finish();
    samples.drain(..WARM_UP.min(samples.len()));
    Ok(samples)
}
