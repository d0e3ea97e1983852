//! Where the records of this process's threads go.

use crate::options::RunOptions;
use crate::prepare::{Hosted, PrepareError};
use std::path::{Path, PathBuf};
use talea_model::System;
use talea_policy::strategy::Plan;
use talea_time::Instant;
use talea_trace::{Metadata, Origin, RingFile, RingReader};
use tempfile::TempDir;

/// The rings of this process.
pub(crate) struct Store {
    pub metadata: Metadata,
    pub rings: RingFile,
    pub readers: Vec<RingReader>,
    /// Removes the rings when the run is over, unless they are the coordinator's.
    pub directory: Option<TempDir>,
}

impl Store {
    /// Creates one ring for each of the names.
    pub fn create(
        system: &System,
        plans: &[Plan],
        names: &[String],
        options: &RunOptions,
        hosted: &Hosted,
        realtime: bool,
    ) -> Result<Self, PrepareError> {
        let metadata = Metadata::new(system, plans, Origin::Threads { realtime }, Instant::ZERO);
        let (path, directory) = match hosted {
            Hosted::Node { node, directory } => (rings_of(directory, *node), None),
            Hosted::All => {
                let directory = temporary_directory()?;
                (rings_of(directory.path(), 0), Some(directory))
            }
        };
        let rings = RingFile::create(&path, &metadata, names, options.ring_records)?;
        rings.prefault();
        let readers = rings.readers();
        Ok(Store { metadata, rings, readers, directory })
    }
}

/// The ring file of a node's process in the run's directory.
pub(crate) fn rings_of(directory: &Path, node: usize) -> PathBuf {
    directory.join(format!("rings-{node}"))
}

/// A private directory, in memory where the machine offers that.
pub(crate) fn temporary_directory() -> Result<TempDir, PrepareError> {
    let shared_memory = Path::new("/dev/shm");
    let parent = if shared_memory.is_dir() { shared_memory.into() } else { std::env::temp_dir() };
    tempfile::Builder::new()
        .prefix("talea-")
        .tempdir_in(&parent)
        .map_err(|source| PrepareError::Io { path: parent, source })
}
