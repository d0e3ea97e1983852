//! Where the records of this process's threads go: a published stream, which others can find and follow.

use crate::counts::results;
use crate::error::PrepareError;
use crate::flow::Shared;
use crate::layout::Hosted;
use crate::names::{RUNS_AT_ONCE, plain};
use crate::options::RunOptions;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use talea_model::{OperationId, Scheduling, System};
use talea_record::stream::publish::PublishError;
use talea_record::stream::{Consumer, Start, Stream, StreamDirectory};
use talea_record::{Metadata, RingFile, RingShape};
use tempfile::TempDir;

/// Rings for threads that the operations of a system start themselves.
const SPARE: usize = 4;
/// The rings of this process.
pub(crate) struct Store {
    pub metadata: Metadata,
    rings: Rings,
    /// The collector's place, if the collector is in this process.
    pub consumer: Option<Consumer>,
    /// Why others cannot find the stream, or not where they look first.
    pub unpublished: Option<String>,
}

enum Rings {
    Published(Stream),
    /// Only this process reads them, through its mapping. Without a name they go with it, however it ends.
    Private(RingFile),
}

impl Store {
    /// Creates one ring of so many records for each of the names.
    pub fn create(
        system: &System,
        metadata: Metadata,
        (names, capacity): (&[String], usize),
        options: &RunOptions,
        hosted: &Hosted,
    ) -> Result<Self, PrepareError> {
        let shape = RingShape { writers: names, spare: SPARE, capacity, later: 0 };
        let name = match hosted {
            Hosted::Node { node, .. } => format!("{}.{}", system.name, system.nodes[*node].name),
            Hosted::All => system.name.clone(),
        };
        let (rings, unpublished) = match publish(&plain(&name), &metadata, shape) {
            Ok((stream, elsewhere)) => (
                Rings::Published(stream),
                elsewhere.map(|why| format!("its stream is not where others look first: {why}")),
            ),
            Err(PublishError::Create(error)) => return Err(error.into()),
            Err(error) => (
                Rings::Private(private(&metadata, shape)?),
                Some(format!("this run cannot be followed: {error}")),
            ),
        };
        // A program whose own families leave no room for this one counts nothing here, and its results are those of the collector.
        let _ = results::FAMILY.register();
        let mut store = Store { metadata, rings, consumer: None, unpublished };
        store.rings().prefault();
        match hosted {
            Hosted::Node { node, directory } => store.show(&rings_of(directory, *node), shape)?,
            Hosted::All => {
                let consumer = store.rings().attach(COLLECTOR, &options.collected(system), Start::Oldest)?;
                store.consumer = Some(consumer);
            }
        }
        Ok(store)
    }

    /// The rings.
    pub fn rings(&mut self) -> &mut RingFile {
        match &mut self.rings {
            Rings::Published(stream) => &mut stream.rings,
            Rings::Private(rings) => rings,
        }
    }

    /// Gives the rings a second name, by which the coordinator finds them.
    fn show(&mut self, path: &Path, shape: RingShape<'_>) -> Result<(), PrepareError> {
        if let Rings::Published(stream) = &self.rings
            && std::fs::hard_link(stream.path(), path).is_ok()
        {
            return Ok(());
        }
        // Nowhere else, or on another file system.
        let rings = RingFile::create_shaped(path, &self.metadata, shape)?;
        rings.prefault();
        self.rings = Rings::Private(rings);
        Ok(())
    }
}

/// Records that each ring of a process has room for unless told otherwise: what its busiest thread writes of what the collector wants in
/// [`STALL_SECONDS`], during which that need not run.
pub(crate) fn ring_records(system: &System, shared: &Shared, wants_all: bool) -> usize {
    const LEAST: usize = 4 * 1024;
    const MOST: usize = 16 * 1024;
    let layout = &shared.layout;
    // Nobody knows how many events users' code emits, nor how many decisions a hierarchy makes, all into one ring.
    let is_user = |id: &OperationId| shared.behaviour(*id).has_code();
    let hosts_hierarchy =
        (0..system.nodes.len()).any(|node| system.scheduling(node) == Scheduling::Hierarchy);
    if hosts_hierarchy || shared.posting.has_room() || layout.local.iter().any(is_user) {
        return MOST;
    }
    let (of_job, of_release) = match wants_all {
        true => (ALL_OF_JOB, ALL_OF_RELEASE),
        false => (REPORTED_OF_JOB, REPORTED_OF_RELEASE),
    };
    let mut of_lanes = vec![0.0; layout.lanes.len()];
    let mut of_releases = vec![0.0; system.nodes.len()];
    for site in layout.local_operations() {
        let jobs = STALL_SECONDS * 1e9 / system.tasks[site.task].period.as_nanos() as f64;
        of_lanes[site.lane] += jobs * of_job;
        if site.predecessors == 0 {
            of_releases[site.node] += jobs * of_release;
        }
    }
    let most = of_lanes.into_iter().chain(of_releases).fold(0.0, f64::max);
    (most as usize).clamp(LEAST, MOST)
}

/// How long the collector may be kept from running, and no record be lost: twice as long as Linux lets real-time threads
/// have a processor to themselves.
const STALL_SECONDS: f64 = 2.0;
/// What a lane writes about a job if everything is recorded: that it starts, completes and releases successors, a
/// preemption, what dispatching cost, that the lane sleeps and wakes.
const ALL_OF_JOB: f64 = 8.0;
/// What of that a report is made from: that the job starts, completes, or is preempted and goes on, and that values are handed on.
const REPORTED_OF_JOB: f64 = 4.0;
/// What a release thread writes about a job: its release, and the timer and the cost if they are due to this job alone.
const ALL_OF_RELEASE: f64 = 4.0;
/// What of that a report is made from: the release, or that it is left out.
const REPORTED_OF_RELEASE: f64 = 1.0;

/// Publishes the stream under this name, or one with a number where another run of this process has that.
fn publish(
    name: &str,
    metadata: &Metadata,
    shape: RingShape<'_>,
) -> Result<(Stream, Option<String>), PublishError> {
    // Two runs of this process do not look for a free name at the same time.
    static ONE_BY_ONE: Mutex<()> = Mutex::new(());
    let _turn = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = StreamDirectory::of_user()?;
    let mut published = directory.publish(name, metadata, shape);
    for run in 2..RUNS_AT_ONCE {
        if !matches!(published, Err(PublishError::Taken(_))) {
            break;
        }
        published = directory.publish(&format!("{name}-{run}"), metadata, shape);
    }
    Ok((published?, directory.passed_over().map(Into::into)))
}

fn private(metadata: &Metadata, shape: RingShape<'_>) -> Result<RingFile, PrepareError> {
    let directory = temporary_directory()?;
    Ok(RingFile::create_shaped(&rings_of(directory.path(), 0), metadata, shape)?)
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
