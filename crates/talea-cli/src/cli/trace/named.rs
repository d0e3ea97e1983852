//! What a command is about: a file, or streams by process number or name.
//!
//! A file that is there goes before a stream of the same name; a name with a slash is always a file's.

use crate::cli::failure::Failure;
use crate::cli::failure::path_shown;
use crate::cli::output::tell;
use std::path::{Path, PathBuf};
use talea_record::stream::StreamDirectory;
use talea_record::stream::publish::{FindError, Listed};

const HELP: &str = "`talea trace list` shows the streams there are; a file can be named, too";

/// The file to read: that of a trace, or of the one stream that is meant.
pub fn file(which: &Path) -> Result<PathBuf, Failure> {
    match name(which) {
        None => Ok(which.into()),
        Some(name) => directory()?.find(name).map(|found| found.path).map_err(|error| unfound(which, &error)),
    }
}

/// The one stream that is meant.
pub fn stream(which: &Path) -> Result<Listed, Failure> {
    match name(which) {
        None => Ok(Listed::at(which)),
        Some(name) => directory()?.find(name).map_err(|error| unfound(which, &error)),
    }
}

/// All streams that are meant, at least one: those of all processes of a program, by its name.
pub fn streams(which: &Path) -> Result<Vec<Listed>, Failure> {
    match name(which) {
        None => Ok(vec![Listed::at(which)]),
        Some(name) => directory()?.find_all(name).map_err(|error| unfound(which, &error)),
    }
}

/// The name, if it is not that of a file.
fn name(which: &Path) -> Option<&str> {
    let name = which.to_str()?;
    let is_file = name.contains('/') || which.exists() && !which.is_dir();
    (!is_file).then_some(name)
}

/// The user's directory of streams; says so where it is not the usual one.
pub fn directory() -> Result<StreamDirectory, Failure> {
    let directory = StreamDirectory::of_user().map_err(|error| Failure::new(error, ""))?;
    if let Some(why) = directory.passed_over() {
        tell!("note: {why}");
    }
    Ok(directory)
}

fn unfound(which: &Path, error: &FindError) -> Failure {
    match error {
        FindError::Unknown { .. } if which.is_dir() => Failure::new(
            format!("{} is a folder, and {error}", path_shown(which)),
            "name a file in the folder, such as trace.talea",
        ),
        FindError::Unknown { .. } => Failure::new(format!("{error}; nor is there such a file"), HELP),
        FindError::Ambiguous { .. } | FindError::Place(_) => Failure::new(error, HELP),
    }
}
