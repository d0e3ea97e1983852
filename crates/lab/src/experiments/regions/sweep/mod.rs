//! Where the paper's pattern appears: the twelve regions in ten thousand settings of load, growth and phases.
//!
//! The paper says that what MUF and RMS+MLF serve is cyclic over the regions and follows the load jitter more than the load. Whether it does
//! depends on how much else there is to serve and when, which the paper does not state. So these are varied, each with the
//! others: the constant critical load, the chain's length in region 1, its growth, and the phases of the slower critical
//! operations. Every setting is simulated at the measured prices under the paper's three strategies, and judged by the statistics of the
//! claims. Settings do not depend on each other, so all processors share them.

mod grid;
mod outcome;
mod report;

pub use grid::{AXES, Axis, Grid};
pub use outcome::{Found, Outcome, Served, Shape};

use super::pattern::Pattern;
use crate::compare::{CompareError, Observer};
use crate::experiments::folder::Folder;
use crate::experiments::{ExperimentError, Extent, Findings};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// What became of the settings that were tried, by number.
#[derive(Debug)]
pub struct Sweep {
    /// The settings.
    pub grid: Grid,
    /// What became of each; none of those that a cancellation left out.
    pub outcomes: Vec<Option<Outcome>>,
}

impl Sweep {
    /// Tries every setting of `grid`.
    ///
    /// # Errors
    /// [`CompareError::Simulation`].
    pub fn over(grid: Grid, observer: &mut dyn Observer) -> Result<Self, CompareError> {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; grid.count()];
        let (next, is_cancelled) = (AtomicUsize::new(0), AtomicBool::new(false));
        let pattern = Pattern::of_regions();
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                let sender = sender.clone();
                scope.spawn(|| {
                    let sender = sender;
                    while !is_cancelled.load(Ordering::Relaxed) {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= grid.count() {
                            break;
                        }
                        let outcome = Outcome::of(grid.setting(number), &pattern);
                        if sender.send((number, outcome)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let mut failed = None;
            for (number, outcome) in receiver {
                match outcome {
                    Ok(outcome) => outcomes[number] = Some(outcome),
                    Err(error) => failed = Some(error),
                }
                if failed.is_none() {
                    observer.starting(&format!("setting {}", number + 1), None);
                }
                if failed.is_some() || observer.cancelled() {
                    is_cancelled.store(true, Ordering::Relaxed);
                }
            }
            failed.map_or(Ok(()), Err)
        })?;
        Ok(Sweep { grid, outcomes })
    }

    /// The settings that were tried, with their places on the axes.
    pub fn tried(&self) -> impl Iterator<Item = ([usize; AXES], &Outcome)> {
        let numbered = self.outcomes.iter().enumerate();
        numbered.filter_map(|(number, outcome)| Some((self.grid.place(number), outcome.as_ref()?)))
    }

    /// How many settings were tried.
    pub fn count(&self) -> usize {
        self.tried().count()
    }

    /// Writes what was found to a folder.
    ///
    /// # Errors
    /// [`ExperimentError::Unwritable`].
    pub fn publish(&self, out: &Path) -> Result<Findings, ExperimentError> {
        let (done, all) = (self.count(), self.grid.count());
        let extent = if done == all { Extent::Whole } else { Extent::Cancelled { done, all } };
        report::publish(self, Folder::make(out.join("sweep"))?, extent)
    }
}
