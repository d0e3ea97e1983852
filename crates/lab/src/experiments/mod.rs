//! Experiments: a question, runs that answer it, and a verdict on every claim.

mod strategies;

use crate::compare::{Clock, CompareError, Observer};
use std::path::{Path, PathBuf};

/// How an experiment is to be done.
#[derive(Clone, Debug)]
pub struct Options {
    /// In the simulator or on real threads.
    pub clock: Clock,
    /// How thorough.
    pub effort: Effort,
    /// Folder for its results.
    pub out: PathBuf,
}

/// How long an experiment may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Enough to see the pattern.
    Quick,
    /// Enough to trust it.
    Full,
}

/// A statement about the results, and whether they bear it out.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Claim {
    /// The statement.
    pub statement: String,
    /// Whether it holds here.
    pub holds: bool,
    /// The figures that show it.
    pub figures: String,
}

/// What an experiment found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The table of results, as text.
    pub table: String,
    /// Every claim with its verdict.
    pub claims: Vec<Claim>,
    /// Files written.
    pub files: Vec<PathBuf>,
}

/// Why an experiment could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A run failed.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// It was cancelled before all of its runs were made.
    #[error("the experiment was cancelled after {done} of {all} runs")]
    Cancelled {
        /// Runs made.
        done: usize,
        /// Runs planned.
        all: usize,
    },
    /// A result cannot be written.
    #[error("cannot write {path}: {cause}")]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

impl ExperimentError {
    fn unwritable(path: &Path, cause: impl std::fmt::Display) -> Self {
        ExperimentError::Unwritable { path: path.into(), cause: cause.to_string() }
    }
}

/// An experiment by name.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// What to type.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Where the question comes from.
    pub source: &'static str,
    run: fn(&Options, &mut dyn Observer) -> Result<Findings, ExperimentError>,
}

/// Every experiment.
pub const ALL: &[Experiment] = &[strategies::EXPERIMENT];

impl Experiment {
    /// The experiment called `name`.
    pub fn named(name: &str) -> Option<&'static Experiment> {
        ALL.iter().find(|experiment| experiment.name == name)
    }

    /// Does the experiment and writes its results.
    ///
    /// # Errors
    /// See [`ExperimentError`].
    pub fn run(&self, options: &Options, observer: &mut dyn Observer) -> Result<Findings, ExperimentError> {
        std::fs::create_dir_all(&options.out)
            .map_err(|cause| ExperimentError::unwritable(&options.out, cause))?;
        (self.run)(options, observer)
    }
}
