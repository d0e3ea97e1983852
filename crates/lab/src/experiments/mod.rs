//! Experiments: a question, runs that answer it, and a verdict on every claim.

mod folder;
pub mod hierarchies;
pub mod kernel_switches;
pub mod regions;
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
    /// The parts to do, by [`Experiment::parts`]; all of them if none is named.
    pub parts: Vec<String>,
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
    pub verdict: Verdict,
    /// The figures that show it.
    pub figures: String,
}

/// Whether a statement holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The results bear it out.
    Holds,
    /// They do not.
    DoesNotHold,
    /// The runs that would decide it were not made.
    Undecided,
}

impl Verdict {
    /// The verdict of a decided statement.
    pub fn of(holds: bool) -> Self {
        if holds { Verdict::Holds } else { Verdict::DoesNotHold }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold here",
            Verdict::Undecided => "undecided",
        })
    }
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
    /// Whether all of it was done.
    pub extent: Extent,
}

impl Findings {
    /// These, and those of the experiment's `next` part.
    #[must_use]
    fn and(mut self, next: Findings) -> Findings {
        self.table = format!("{}\n\n{}", self.table, next.table);
        self.claims.extend(next.claims);
        self.files.extend(next.files);
        self
    }
}

/// How much of an experiment was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// It was cancelled; the results are of the runs made so far.
    Cancelled {
        /// Runs made.
        done: usize,
        /// Runs planned.
        all: usize,
    },
}

/// Why an experiment could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// A run failed.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A run of a hierarchy failed.
    #[error("{system}: {cause}")]
    Hierarchy {
        /// The system that was to run.
        system: String,
        /// Why it did not.
        cause: String,
    },
    /// The experiment has no part of this name.
    #[error("{experiment} has no part \"{part}\"{}", offered(parts))]
    NoSuchPart {
        /// The experiment.
        experiment: &'static str,
        /// What was asked for.
        part: String,
        /// The parts there are.
        parts: &'static [&'static str],
    },
    /// It was cancelled before all of its runs were made.
    #[error("the experiment was cancelled after {done} of {all} runs")]
    Cancelled {
        /// Runs made.
        done: usize,
        /// Runs planned.
        all: usize,
    },
    /// A run failed after others had been made.
    #[error("{cause}\n  the results of the {done} of {all} runs before it are in {folder}")]
    Broken {
        /// Runs made.
        done: usize,
        /// Runs planned.
        all: usize,
        /// Where their results are.
        folder: PathBuf,
        /// Why there are no more.
        cause: Box<ExperimentError>,
    },
    /// The trace of a run cannot be read back.
    #[error("cannot read the trace {path} of a run: {cause}")]
    Unreadable {
        /// The trace.
        path: PathBuf,
        /// Why.
        cause: talea_record::TraceError,
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

fn offered(parts: &[&str]) -> String {
    match parts {
        [] => "; it is done as a whole".into(),
        _ => format!("; choose of: {}", parts.join(", ")),
    }
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
    /// The clock if none is asked for.
    pub usual_clock: Clock,
    /// The names of parts that can be done alone.
    pub parts: &'static [&'static str],
    run: fn(&Options, &mut dyn Observer) -> Result<Findings, ExperimentError>,
}

/// Every experiment.
pub const ALL: &[Experiment] = &[regions::EXPERIMENT, hierarchies::EXPERIMENT, strategies::EXPERIMENT];

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
        if let Some(part) = options.parts.iter().find(|part| !self.parts.contains(&part.as_str())) {
            return Err(ExperimentError::NoSuchPart {
                experiment: self.name,
                part: part.clone(),
                parts: self.parts,
            });
        }
        std::fs::create_dir_all(&options.out)
            .map_err(|cause| ExperimentError::unwritable(&options.out, cause))?;
        (self.run)(options, observer)
    }
}
