//! The settings that are tried: every combination of values on four axes.

use super::super::setting::{Frames, Phasing, Setting};
use crate::experiments::Effort;
use talea_time::Work;

/// How many axes there are.
pub const AXES: usize = 4;

/// Values on the axes.
#[derive(Clone, Debug)]
pub struct Grid {
    critical_percent: Vec<u8>,
    chain_us: Vec<i64>,
    growth_us: Vec<i64>,
    phasing: Vec<Phasing>,
}

/// An axis in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// What varies along it.
    pub label: &'static str,
    /// The values.
    pub values: Vec<String>,
}

impl Grid {
    /// Ten values on each axis, or half as many on the three that can be halved. [`Setting::OURS`] is one of them.
    pub fn of(effort: Effort) -> Self {
        let every = match effort {
            Effort::Full => 1,
            Effort::Quick => 2,
        };
        let phasing =
            |frames| [0, 25, 50, 75, 100].map(|lateness_percent| Phasing { frames, lateness_percent });
        Grid {
            critical_percent: (10..=82).step_by(8).skip(every - 1).step_by(every).collect(),
            chain_us: (1..=10).map(|step| step * 5_000).step_by(every).collect(),
            growth_us: (1..=10).map(|step| step * 500).skip(every - 1).step_by(every).collect(),
            phasing: [Frames::Own, Frames::Shared].into_iter().flat_map(phasing).collect(),
        }
    }

    /// How many settings there are.
    pub fn count(&self) -> usize {
        self.lengths().iter().product()
    }

    fn lengths(&self) -> [usize; AXES] {
        [self.critical_percent.len(), self.chain_us.len(), self.growth_us.len(), self.phasing.len()]
    }

    /// The place of a setting on each axis, by its number.
    pub fn place(&self, number: usize) -> [usize; AXES] {
        let mut rest = number;
        self.lengths().map(|length| {
            let place = rest % length;
            rest /= length;
            place
        })
    }

    /// The setting of this number.
    pub fn setting(&self, number: usize) -> Setting {
        let [critical, chain, growth, phasing] = self.place(number);
        Setting {
            critical_percent: self.critical_percent[critical],
            chain: Work::from_nanos(self.chain_us[chain] * 1_000),
            growth: Work::from_nanos(self.growth_us[growth] * 1_000),
            phasing: self.phasing[phasing],
        }
    }

    /// The place of the setting that the experiment's other results are of.
    pub fn ours(&self) -> [usize; AXES] {
        let number = (0..self.count()).find(|number| self.setting(*number) == Setting::OURS);
        self.place(number.expect("it is on every grid, which a test checks"))
    }

    /// The axes in words.
    pub fn axes(&self) -> [Axis; AXES] {
        let percent_of_frame = |us: &i64| format!("{} %", *us as f64 / 500.0);
        let phasing = |phasing: &Phasing| {
            let frames = match phasing.frames {
                Frames::Own => "own frames",
                Frames::Shared => "same frames",
            };
            format!("{frames}, {} %", phasing.lateness_percent)
        };
        [
            Axis {
                label: "constant critical load",
                values: self.critical_percent.iter().map(|percent| format!("{percent} %")).collect(),
            },
            Axis { label: "chain in region 1", values: self.chain_us.iter().map(percent_of_frame).collect() },
            Axis {
                label: "growth of the chain per region",
                values: self.growth_us.iter().map(percent_of_frame).collect(),
            },
            Axis {
                label: "slower critical operations: frames, and how late in them",
                values: self.phasing.iter().map(phasing).collect(),
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_is_tried_once() {
        let grid = Grid::of(Effort::Full);
        assert_eq!(grid.count(), 10_000);
        let mut seen: Vec<_> = (0..grid.count()).map(|number| grid.place(number)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), grid.count());
        for effort in [Effort::Full, Effort::Quick] {
            let grid = Grid::of(effort);
            let lengths = grid.axes().map(|axis| axis.values.len());
            assert_eq!(lengths.iter().product::<usize>(), grid.count());
            assert_eq!(
                grid.setting((0..grid.count()).find(|n| grid.place(*n) == grid.ours()).unwrap()),
                Setting::OURS
            );
        }
    }
}
