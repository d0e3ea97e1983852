//! Where the records of this process's threads go.

use crate::options::RunOptions;
use crate::prepare::{Hosted, PrepareError};
use std::path::{Path, PathBuf};
use talea_model::System;
use talea_policy::strategy::Plan;
use talea_time::Instant;
use talea_trace::stream::{Consumer, Selection, Start};
use talea_trace::{Metadata, Origin, RingFile};
use tempfile::TempDir;

/// The rings of this process.
pub(crate) struct Store {
    pub metadata: Metadata,
    pub rings: RingFile,
    /// The collector's place, if the collector is in this process.
    pub consumer: Option<Consumer>,
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
        let create = |path: PathBuf| RingFile::create(&path, &metadata, names, options.ring_records);
        let (rings, consumer) = match hosted {
            Hosted::Node { node, directory } => (create(rings_of(directory, *node))?, None),
            Hosted::All => {
                // Only this process reads them, through its mapping. Without a name they go with it,
                // however it ends.
                let directory = temporary_directory()?;
                let rings = create(rings_of(directory.path(), 0))?;
                let consumer = rings.attach(COLLECTOR, &Selection::all(), Start::Oldest)?;
                (rings, Some(consumer))
            }
        };
        rings.prefault();
        Ok(Store { metadata, rings, consumer })
    }
}

/// What a run's collector calls itself.
pub(crate) const COLLECTOR: &str = "collector";

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
