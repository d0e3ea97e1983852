//! Test vectors: cases with expected results, in the formats of `vectors/README.md`.
//!
//! A file says its format; each format has a runner that turns a case into an [`Outcome`]. What no runner
//! knows is reported as unsupported, never as passed.

mod analysis;
mod chains;
mod constraints;
mod guarantees;
mod shares;
mod traces;

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use talea_text::{ReadError, printable};

/// What became of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything the case lists was as expected.
    Passed,
    /// The first difference.
    Failed(Difference),
    /// This version cannot judge cases of this kind.
    Unsupported(String),
}

/// The first place where result and expectation part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where: a time, a row or a field.
    pub at: String,
    /// What the case lists there.
    pub expected: String,
    /// What was computed.
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: expected {}, got {}", self.at, self.expected, self.got)
    }
}

/// The most bytes that a file of vectors may have: those of a run of minutes have more than other files of text.
const BYTES_LIMIT: u64 = 64 << 20;

/// One case of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseResult {
    /// File it stands in.
    pub file: PathBuf,
    /// Its `id`.
    pub id: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// How many cases ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Cases that passed.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
    /// Cases no runner knows.
    pub unsupported: usize,
}

impl Tally {
    /// Counts `results`.
    pub fn of(results: &[CaseResult]) -> Self {
        results.iter().fold(Tally::default(), |mut tally, result| {
            match result.outcome {
                Outcome::Passed => tally.passed += 1,
                Outcome::Failed(_) => tally.failed += 1,
                Outcome::Unsupported(_) => tally.unsupported += 1,
            }
            tally
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} unsupported", self.passed, self.failed, self.unsupported)
    }
}

/// Why vectors cannot be run. No case has been judged.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    /// A file or folder cannot be read.
    #[error("cannot read {path}: {cause}")]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A file is no text that can be used.
    #[error("cannot read {path}: {cause}; {}", .cause.remedy())]
    Unread {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: ReadError,
    },
    /// A folder holds no vector file.
    #[error("no vector files (*.json) in {0}")]
    Empty(PathBuf),
    /// A file is not JSON.
    #[error("{path}:{line}:{column}: not JSON: {message}")]
    NotJson {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the JSON reader says.
        message: String,
    },
    /// A file is JSON but has no cases where its format says they are.
    #[error("{path}: {message}")]
    NotVectors {
        /// The file.
        path: PathBuf,
        /// What is missing.
        message: String,
    },
}

/// The vector files meant by `path`: itself, or every `*.json` in the folder, sorted by name.
///
/// # Errors
/// [`VectorError::Unreadable`] and [`VectorError::Empty`].
pub fn files(path: &Path) -> Result<Vec<PathBuf>, VectorError> {
    let unreadable = |cause| VectorError::Unreadable { path: path.into(), cause };
    if !std::fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.into()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file.extension().is_some_and(|extension| extension == "json") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() { Err(VectorError::Empty(path.into())) } else { Ok(files) }
}

/// Judges every case of one file.
///
/// # Errors
/// The file cannot be read or holds no cases.
pub fn run_file(path: &Path) -> Result<Vec<CaseResult>, VectorError> {
    let text = talea_text::read::text_up_to(path, BYTES_LIMIT)
        .map_err(|cause| VectorError::Unread { path: path.into(), cause })?;
    let file: Value = serde_json::from_str(&text).map_err(|error| VectorError::NotJson {
        path: path.into(),
        line: error.line(),
        column: error.column(),
        message: error.to_string(),
    })?;
    let cases =
        cases(&file, &text).map_err(|message| VectorError::NotVectors { path: path.into(), message })?;
    let results = cases.into_iter().map(|(id, outcome)| CaseResult { file: path.into(), id, outcome });
    Ok(results.collect())
}

/// Every case of a file with its outcome, by the file's format.
fn cases(file: &Value, text: &str) -> Result<Vec<(String, Outcome)>, String> {
    // The constraint-language vectors are a bare list and the published tables an object without a format.
    let format = match file {
        Value::Array(_) => "etcl-1",
        Value::Object(object) if object.contains_key("contradictions") => "paper-tables-1",
        _ => file["format"].as_str().ok_or("this is not a vector file: it has no \"format\"")?,
    };
    let list = |key: &str| -> Result<Vec<Value>, String> {
        file[key].as_array().cloned().ok_or_else(|| format!("{format}: \"{key}\" is not a list of cases"))
    };
    match format {
        "rt-trace-1" => Ok(judged(&list("cases")?, traces::judge)),
        "rt-analysis-1" => Ok(judged(&list("cases")?, analysis::judge)),
        "rt-shares-1" => Ok(judged(&list("cases")?, shares::judge)),
        "rt-chain-1" => Ok(judged(&list("cases")?, chains::judge)),
        "hls-hierarchy-1" => Ok(judged(&list("cases")?, guarantees::judge_hierarchy)),
        "hls-matrix-1" => Ok(judged(&list("cells")?, guarantees::judge_cell)),
        "hls-conversion-1" => {
            let mut all = list("rewrites")?;
            all.extend(list("sfq_formula")?);
            all.extend(list("uniformly_slower")?);
            Ok(judged(&all, guarantees::judge_conversion))
        }
        "etcl-1" => constraints::judge_all(text),
        "paper-tables-1" => {
            let sections = file.as_object().into_iter().flatten();
            let published = sections.filter(|(name, _)| name.starts_with("seed_"));
            Ok(published.map(|(name, _)| (name.clone(), no_runner("published tables"))).collect())
        }
        other => Ok(vec![("*".into(), no_runner(&format!("format {other}")))]),
    }
}

fn judged(cases: &[Value], judge: fn(&Value) -> Outcome) -> Vec<(String, Outcome)> {
    cases.iter().map(|case| (id(case), judge(case))).collect()
}

fn no_runner(what: &str) -> Outcome {
    Outcome::Unsupported(format!("{what} cannot be judged by this version"))
}

/// A case of a known format that cannot be run is a failure: something is wrong with it or with its runner.
fn unreadable(reason: String) -> Outcome {
    let expected = "a case as vectors/README.md describes it".into();
    Outcome::Failed(Difference { at: "the case itself".into(), expected, got: reason })
}

/// Why a case does not pass.
enum Complaint {
    /// A field is not as expected.
    Differs(Difference),
    /// The case cannot be computed.
    Unreadable(String),
}

/// Reads the case and judges it.
fn with<C: DeserializeOwned>(
    case: &Value,
    judge: impl FnOnce(C) -> Result<(), Complaint>,
) -> Result<(), Complaint> {
    judge(serde_json::from_value(case.clone()).map_err(|error| Complaint::Unreadable(error.to_string()))?)
}

/// Complains if field `at` of the expectation is not what was computed.
fn same<T: PartialEq + fmt::Debug>(at: &str, expected: &T, got: &T) -> Result<(), Complaint> {
    if expected == got {
        return Ok(());
    }
    let (expected, got) = (format!("{expected:?}"), format!("{got:?}"));
    Err(Complaint::Differs(Difference { at: at.into(), expected, got }))
}

/// Complains about the first row in which two lists part.
fn same_rows<T: PartialEq + fmt::Debug>(what: &str, expected: &[T], got: &[T]) -> Result<(), Complaint> {
    for row in 0..expected.len().max(got.len()) {
        same(&format!("{what} {row}"), &expected.get(row), &got.get(row))?;
    }
    Ok(())
}

fn outcome(judged: Result<(), Complaint>) -> Outcome {
    match judged {
        Ok(()) => Outcome::Passed,
        Err(Complaint::Differs(difference)) => Outcome::Failed(difference),
        Err(Complaint::Unreadable(reason)) => unreadable(reason),
    }
}

/// The case's name: its `id`, or for the cells of a matrix the two labels.
fn id(case: &Value) -> String {
    printable(&written_id(case)).into_owned()
}

fn written_id(case: &Value) -> String {
    match (case["id"].as_str(), case["from"].as_str(), case["to"].as_str()) {
        (Some(id), ..) => id.into(),
        (None, Some(from), Some(to)) => format!("{from}->{to}"),
        _ => "?".into(),
    }
}
