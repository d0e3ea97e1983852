//! A file that is written beside its place and takes its name when it is whole, so that a failure loses nothing that was
//! there and leaves nothing that looks like an export.

use crate::cli::artefacts;
use crate::cli::failure::Failure;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// A file under way; dropping it removes it.
pub enum Draft {
    /// Beside its place.
    Beside { file: NamedTempFile, place: PathBuf },
    /// In its place, which is a device or a pipe and not to be replaced.
    InPlace { file: File, place: PathBuf },
}

impl Draft {
    /// Begins what is to be at `place`, readable for those only who may read `like`.
    pub fn create(place: &Path, like: &Path) -> Result<Self, Failure> {
        if place == Path::new("-") {
            return Err(Failure::new(
                "an export goes to a file, not to standard output",
                "give it a name; ./- is the file that is called -",
            ));
        }
        if place.exists() && !place.is_file() {
            return Ok(Draft::InPlace { file: artefacts::create(place)?, place: place.into() });
        }
        let failed = |error: io::Error| Failure::uncreated("the file", place, &io::Error::from(error.kind()));
        let mode = std::fs::metadata(like).map_err(failed)?.permissions().mode() & 0o666;
        // Where a link leads, it goes on leading.
        let target = place.canonicalize().unwrap_or_else(|_| place.into());
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = Builder::new()
            .prefix(".talea-export-")
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(failed)?;
        Ok(Draft::Beside { file, place: target })
    }

    /// What to write to.
    pub fn file(&self) -> &File {
        match self {
            Draft::Beside { file, .. } => file.as_file(),
            Draft::InPlace { file, .. } => file,
        }
    }

    /// Where that is for now.
    pub fn path(&self) -> &Path {
        match self {
            Draft::Beside { file, .. } => file.path(),
            Draft::InPlace { place, .. } => place,
        }
    }

    /// What there is of it if it is given up.
    pub fn left(&self, place: &Path) -> String {
        match self {
            Draft::Beside { .. } if place.exists() => format!("{} is as it was before", place.display()),
            Draft::Beside { .. } => format!("there is no {}", place.display()),
            Draft::InPlace { .. } => format!("{} is incomplete; do not use it", place.display()),
        }
    }

    /// It is whole and takes its place.
    pub fn finish(self) -> io::Result<()> {
        match self {
            Draft::Beside { file, place } => file.persist(place).map(|_| ()).map_err(|error| error.error),
            Draft::InPlace { .. } => Ok(()),
        }
    }
}
