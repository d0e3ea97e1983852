//! Reads text files, refusing what cannot be one before it fills the memory.

use super::{Parsed, parse};
use crate::problem::Problems;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes a system file or an execution-time trace may have.
pub const FILE_BYTES_LIMIT: u64 = 16 << 20;

/// Reads the system file at `path`.
///
/// # Errors
/// All problems of the file: it cannot be read, is not text, is larger than [`FILE_BYTES_LIMIT`], or
/// what [`parse`] reports.
pub fn read(path: &Path) -> Result<Parsed, Problems> {
    let name = path.display().to_string();
    let text =
        text(path).map_err(|Fault { message, remedy }| Problems::whole_file(&name, message, remedy))?;
    let base_dir = path.parent().unwrap_or(Path::new(""));
    parse(&name, &text, base_dir)
}

/// Why a file is not text that can be used.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub message: String,
    pub remedy: String,
}

fn fault(message: impl Into<String>, remedy: impl Into<String>) -> Fault {
    Fault { message: message.into(), remedy: remedy.into() }
}

/// The text of the file at `path`.
pub(super) fn text(path: &Path) -> Result<String, Fault> {
    let file = File::open(path).map_err(cannot_open)?;
    let metadata = file.metadata().map_err(cannot_open)?;
    if metadata.is_dir() {
        return Err(fault("this is a directory", "name the file in it"));
    }
    if metadata.len() > FILE_BYTES_LIMIT {
        return Err(too_large(&format!("{:.1} MiB", metadata.len() as f64 / f64::from(1 << 20))));
    }
    // Pipes and devices do not say how long they are, and some never end.
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_LIMIT + 1).read_to_end(&mut bytes).map_err(cannot_read)?;
    if bytes.len() as u64 > FILE_BYTES_LIMIT {
        return Err(too_large("more"));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(error.as_bytes(), error.utf8_error().valid_up_to()))
}

fn too_large(size: &str) -> Fault {
    fault(
        format!("the file has {size}; at most {} MiB are read", FILE_BYTES_LIMIT >> 20),
        "check that this is the file you mean",
    )
}

fn cannot_open(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::NotFound => fault("there is no such file", "check the path"),
        io::ErrorKind::PermissionDenied => fault("the file may not be read", "check its permissions"),
        _ => cannot_read(error),
    }
}

fn cannot_read(error: io::Error) -> Fault {
    fault(format!("the file cannot be read: {error}"), "check the path and the device")
}

fn not_utf8(bytes: &[u8], valid_up_to: usize) -> Fault {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return fault("the file is UTF-16, not UTF-8", "save it as UTF-8");
    }
    let before = &bytes[..valid_up_to];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    fault(
        format!(
            "the file is not UTF-8: line {line}, byte {} of the line is {:#04x}",
            valid_up_to - line_start + 1,
            bytes[valid_up_to]
        ),
        "save it as UTF-8; only text can be read",
    )
}
