//! Reads system files and what they name.

use super::{Parsed, parse};
use crate::problem::Problems;
use std::path::Path;
pub use talea_text::FILE_BYTES_LIMIT;
use talea_text::ReadError;

/// Reads the system file at `path`.
///
/// # Errors
/// All problems of the file: it cannot be read, is not text, is larger than [`FILE_BYTES_LIMIT`], or
/// what [`parse`] reports.
pub fn read(path: &Path) -> Result<Parsed, Problems> {
    let name = path.display().to_string();
    let text = talea_text::read::text(path)
        .map_err(|error| Problems::whole_file(&name, error.to_string(), error.remedy()))?;
    let base_dir = path.parent().unwrap_or(Path::new(""));
    parse(&name, &text, base_dir)
}

/// Why a file is not text that can be used.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub message: String,
    pub remedy: String,
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Fault { message: error.to_string(), remedy: error.remedy().into() }
    }
}
