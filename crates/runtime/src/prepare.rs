//! Preparing a run: everything that may fail, allocate or take time.

use crate::burn::Burner;
use crate::cluster::link::{Inlet, InletStop, Link};
use crate::crew::{Inboxes, Staff, Station};
use crate::flow::{Call, Gate, Port, Shared, Tally};
use crate::hierarchy::{self, HierarchyError, Stage, below_others, release_is_above};
use crate::job_table::JobTable;
use crate::join::JoinTable;
use crate::layout::{LaneSite, Layout, SiteKind};
use crate::lowering::hierarchy as hierarchy_lowering;
use crate::lowering::{Lowering, LoweringError, lower};
use crate::operation::{Operations, UnknownOperation};
use crate::options::{RtMode, RunOptions};
use crate::ruled::{Ruled, decide};
use crate::run::{Cast, Prepared};
use crate::seat::Processor;
use crate::store::{Store, ring_records};
use crate::sys::affinity::{self, AffinityError};
use crate::sys::memory::lock_all;
use crate::sys::sched::Policy;
use crate::sys::thread::{SpawnError, spawn};
use crate::window;
use rustix::io::Errno;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use talea_model::{Scheduling, System};
use talea_policy::strategy::{Anomaly, Plan, plan_lanes};
use talea_record::stream::AttachError;
use talea_record::{CreateError, Metadata, Origin, Switches};
use talea_ring::bell::Bell;
use talea_ring::inbox::Links;
use talea_time::Instant;
use thiserror::Error;

/// Why a run could not be prepared. No thread is left over.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The strategy cannot sort the operations of a node into lanes.
    #[error("node \"{node}\": {}", anomalies.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Anomalies {
        /// The node.
        node: String,
        /// All of them.
        anomalies: Vec<Anomaly>,
    },
    /// The lanes of a node do not fit what the kernel offers.
    #[error("node \"{node}\": {source}")]
    Lowering {
        /// The node.
        node: String,
        /// What does not fit.
        source: LoweringError,
    },
    /// A node's hierarchy of schedulers cannot be run.
    #[error("node \"{node}\": {source}")]
    Hierarchy {
        /// The node.
        node: String,
        /// Why.
        source: Box<HierarchyError>,
    },
    /// Code was given for an operation that the system does not have.
    #[error(transparent)]
    UnknownOperation(#[from] UnknownOperation),
    /// A node names processors that this machine does not have or this process may not use.
    #[error(
        "node \"{node}\" is to run on cpu {}, but this process may use only {}; \
         change `cpus` of the node, or run where those cpus are available",
        affinity::list(missing),
        affinity::list(available)
    )]
    MissingCpus {
        /// The node.
        node: String,
        /// Processors it names in vain.
        missing: Vec<u16>,
        /// Processors there are.
        available: Vec<u16>,
    },
    /// Two hierarchies would each grant the same processor.
    #[error(
        "nodes \"{first}\" and \"{second}\" both have cpu {cpu}, and a hierarchy of schedulers each, which would both grant it; \
         give each node cpus of its own, or put both hierarchies below one root (`talea sim` and `talea check` take them to \
         be different machines)"
    )]
    SharedCpu {
        /// A node.
        first: String,
        /// The other.
        second: String,
        /// What both have.
        cpu: u16,
    },
    /// The processors of this process could not be determined.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// Strict mode, and something that real-time scheduling needs is not permitted.
    #[error(
        "real-time scheduling is not available to this process:\n  {}\nRun `talea doctor` for details, or choose `--rt warn` to run without",
        missing.join("\n  ")
    )]
    NotPermitted {
        /// What was refused, each with its remedy.
        missing: Vec<String>,
    },
    /// A thread could not be created.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Strict mode, and the kernel gave a thread something else than was asked for.
    #[error("the kernel did not give these threads what they need: {}", threads.join("; "))]
    OtherAttributes {
        /// The threads with what they have and what was wanted.
        threads: Vec<String>,
    },
    /// The rings for the trace could not be created.
    #[error(transparent)]
    Rings(#[from] CreateError),
    /// The rings cannot be followed.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The directory for the rings, or a log, could not be created.
    #[error("cannot create {path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The collector's thread could not be created.
    #[error("cannot create the collector's thread: {0}; look at `ulimit -u` and the cgroup's pids.max")]
    Collector(#[source] std::io::Error),
    /// The pipes to the other processes of the run could not be opened.
    #[error("cannot open the pipes to the other nodes in {directory}: {source}")]
    Link {
        /// The run's directory.
        directory: PathBuf,
        /// What the system said.
        source: Errno,
    },
}

/// Which nodes this process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hosted {
    /// All of them.
    All,
    /// One of several processes that share a directory.
    Node { node: usize, directory: PathBuf },
}

impl Hosted {
    pub fn hosts(&self, node: usize) -> bool {
        match self {
            Hosted::All => true,
            Hosted::Node { node: own, .. } => *own == node,
        }
    }
}

/// Runs systems on threads of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Executive;

impl Executive {
    /// Prepares a run of all nodes of `system` in this process.
    ///
    /// # Errors
    /// See [`PrepareError`].
    pub fn prepare(
        system: &System,
        operations: Operations,
        options: RunOptions,
    ) -> Result<Prepared, PrepareError> {
        prepare(system, operations, options, Hosted::All)
    }
}

/// The plans of all nodes; that of a node with a hierarchy and without tasks is empty.
pub(crate) fn plans(system: &System) -> Result<Vec<Plan>, PrepareError> {
    let plan = |node: usize| {
        let name = || system.nodes[node].name.clone();
        let is_hierarchy = system.scheduling(node) == Scheduling::Hierarchy;
        if is_hierarchy && system.lane_operations_on(node).next().is_none() {
            return Ok(NO_LANES);
        }
        let plan = plan_lanes(system, node)
            .map_err(|anomalies| PrepareError::Anomalies { node: name(), anomalies })?;
        match is_hierarchy {
            true => below_others(system, node, plan).map_err(|source| unset(system, node, source)),
            false => Ok(plan),
        }
    };
    (0..system.nodes.len()).map(plan).collect()
}

const NO_LANES: Plan = Plan { lanes: Vec::new(), warnings: Vec::new() };

fn unset(system: &System, node: usize, source: HierarchyError) -> PrepareError {
    PrepareError::Hierarchy { node: system.nodes[node].name.clone(), source: Box::new(source) }
}

/// The tables of a run of `system`, whose threads are tasks.
pub(crate) fn metadata(
    system: &System,
    plans: &[Plan],
    realtime: bool,
    start: Instant,
    lowerings: &[Option<hierarchy_lowering::Lowering>],
) -> Result<Metadata, PrepareError> {
    let mut metadata = Metadata::new(system, plans, Origin::Threads { realtime }, start);
    for (node, lowering) in metadata.nodes.iter_mut().zip(lowerings) {
        let settings = lowering.as_ref().and_then(|lowering| lowering.settings.as_ref());
        if settings.is_some_and(|settings| settings.switches == hierarchy_lowering::Switches::Unseen) {
            node.switches = Switches::Unseen;
        }
    }
    metadata.edges =
        hierarchy::edges(system, plans).map_err(|(node, error)| unset(system, node, error.into()))?;
    Ok(metadata)
}

/// Prepares a run of the hosted nodes.
pub(crate) fn prepare(
    system: &System,
    operations: Operations,
    options: RunOptions,
    hosted: Hosted,
) -> Result<Prepared, PrepareError> {
    let system = &system.with_threads_as_tasks();
    let plans = plans(system)?;
    let nodes = lower_nodes(system, &plans, &options, &hosted)?;
    let behaviours = operations.resolve(system)?;
    check_apart(system)?;
    check_cpus(system, &hosted)?;
    let Privileges { realtime, mut missing } = Privileges::obtain(options.rt, options.band.top)?;
    let is_hierarchy = |node: &usize| system.scheduling(*node) == Scheduling::Hierarchy;
    let hierarchies: Vec<usize> =
        (0..system.nodes.len()).filter(is_hierarchy).filter(|node| hosted.hosts(*node)).collect();
    let decided = |node: usize| hosted.hosts(node).then(|| decide(system, node, &options)).flatten();
    let lowerings: Vec<_> = (0..system.nodes.len()).map(decided).collect();
    let enforced = |node: usize| lowerings[node].as_ref().is_some_and(|lowering| lowering.settings.is_some());
    if let Some(&node) = hierarchies.iter().find(|node| !realtime && !enforced(**node)) {
        return Err(unset(system, node, HierarchyError::NotEnforceable { missing }));
    }

    let metadata = metadata(system, &plans, realtime, Instant::ZERO, &lowerings)?;
    let layout = Layout::new(system, &plans, |node| hosted.hosts(node));
    let windows = choose_windows(&layout, &options);
    let jobs = JobTable::new(&windows);
    let (ports, inboxes) = open_ports(system, &layout, &jobs, &hosted);
    let (link, inlet) = open_link(system, &hosted)?;
    let highest_cpu = system.nodes.iter().flat_map(|node| &node.cpus).max().copied().unwrap_or(0);
    let burner = Burner::calibrate();
    let shared = Arc::new(Shared {
        behaviours,
        jobs,
        joins: JoinTable::new(
            windows.iter().copied().zip(layout.local_operations().map(|site| site.predecessors)),
        ),
        ports,
        link,
        processors: (0..=highest_cpu).map(|_| Processor::default()).collect(),
        burner,
        stop: options.stop.flag(),
        gate: Gate::new(nodes.len()),
        tally: Tally::default(),
        layout,
    });
    let station = Station {
        system,
        plans: &plans,
        options: &options,
        shared: &shared,
        nodes: &nodes,
        realtime,
        windows: &windows,
    };
    let roles = station.roles();
    let mut names: Vec<String> = roles.iter().map(|role| station.name(*role)).collect();
    let mut first_ring = names.len();
    names.extend(hierarchies.iter().flat_map(|node| hierarchy::rings_of(system, *node)));
    let rings = (&names[..], ring_records(&options, system, &shared));
    let mut store = Store::create(system, metadata, rings, &options, &hosted)?;
    let Staff { crew, mut berths } = station.employ(&roles, store.rings(), inboxes, inlet)?;
    let mut others = crew.not_as_wanted();
    let mut set_up = Vec::new();
    for node in hierarchies {
        let count = hierarchy::rings_of(system, node).len();
        let rings = (first_ring..first_ring + count).map(|ring| store.rings().writer(ring)).collect();
        first_ring += count;
        let stage = Stage { system, node, metadata: &store.metadata, burner, tolerance: options.tolerance };
        let lanes = berths.extract_if(.., |berth| berth.node == node).collect();
        let ruled = Ruled::set_up(&stage, lowerings[node].as_ref(), (&plans[node], lanes), rings)
            .map_err(|source| unset(system, node, source))?;
        others.extend(ruled.not_as_wanted());
        set_up.push(ruled);
    }
    if options.rt == RtMode::Strict && !others.is_empty() {
        return Err(PrepareError::OtherAttributes { threads: others });
    }
    missing.extend(others);
    missing.extend(store.unpublished.as_ref().map(|reason| format!("this run cannot be followed: {reason}")));
    Ok(Prepared::new(Cast { crew, hierarchies: set_up }, store, options, realtime, missing))
}

/// How many instances of each operation of this process may be in flight.
fn choose_windows(layout: &Layout, options: &RunOptions) -> Vec<usize> {
    let periods: Vec<_> = layout.local_operations().map(|site| layout.tasks[site.task].period).collect();
    window::choose(options.window, &periods, options.duration)
}

fn lower_nodes(
    system: &System,
    plans: &[Plan],
    options: &RunOptions,
    hosted: &Hosted,
) -> Result<Vec<(usize, Lowering)>, PrepareError> {
    let lower_node = |node: usize| {
        let description = &system.nodes[node];
        let lanes = match system.scheduling(node) {
            Scheduling::Lanes => &plans[node],
            // They have the hierarchy's priorities.
            Scheduling::Hierarchy => {
                release_is_above(options.band.top).map_err(|source| unset(system, node, source))?;
                &NO_LANES
            }
        };
        let lowering = lower(lanes, description.cpus.len(), options.band);
        let error = |source| PrepareError::Lowering { node: description.name.clone(), source };
        lowering.map(|lowering| (node, lowering)).map_err(error)
    };
    let has_lanes = |node: &usize| hosted.hosts(*node) && !plans[*node].lanes.is_empty();
    (0..system.nodes.len()).filter(has_lanes).map(lower_node).collect()
}

/// A processor is granted by one hierarchy, whichever process hosts it.
pub(crate) fn check_apart(system: &System) -> Result<(), PrepareError> {
    let ruled = |node: &usize| system.hierarchy(*node).is_some();
    let nodes: Vec<usize> = (0..system.nodes.len()).filter(ruled).collect();
    for (position, &second) in nodes.iter().enumerate() {
        for &first in &nodes[..position] {
            let (first, second) = (&system.nodes[first], &system.nodes[second]);
            if let Some(&cpu) = second.cpus.iter().find(|cpu| first.cpus.contains(cpu)) {
                let (first, second) = (first.name.clone(), second.name.clone());
                return Err(PrepareError::SharedCpu { first, second, cpu });
            }
        }
    }
    Ok(())
}

/// The processors that nodes of this process name must exist.
fn check_cpus(system: &System, hosted: &Hosted) -> Result<(), PrepareError> {
    let available = affinity::allowed()?;
    for (_, description) in system.nodes.iter().enumerate().filter(|(node, _)| hosted.hosts(*node)) {
        let missing: Vec<u16> =
            description.cpus.iter().copied().filter(|cpu| !available.contains(cpu)).collect();
        if !missing.is_empty() {
            return Err(PrepareError::MissingCpus { node: description.name.clone(), missing, available });
        }
    }
    Ok(())
}

/// What the process may do.
struct Privileges {
    realtime: bool,
    /// What was refused, with its remedy.
    missing: Vec<String>,
}

impl Privileges {
    /// Locks memory and tries a real-time thread, as far as the mode wants it.
    fn obtain(rt: RtMode, top: u8) -> Result<Self, PrepareError> {
        if rt == RtMode::Off {
            return Ok(Privileges { realtime: false, missing: Vec::new() });
        }
        let mut missing = Vec::new();
        if let Err(refused) = lock_all() {
            missing.push(refused.to_string());
        }
        let probe = spawn("probe", Policy::Fifo(top), &[], PROBE_STACK, || ());
        let realtime = match probe {
            Ok(thread) => {
                // The thread does nothing that could panic.
                let _ = thread.join();
                true
            }
            Err(refused) => {
                missing.push(refused.to_string());
                false
            }
        };
        if rt == RtMode::Strict && !missing.is_empty() {
            return Err(PrepareError::NotPermitted { missing });
        }
        Ok(Privileges { realtime, missing })
    }
}

const PROBE_STACK: usize = 64 * 1024;

fn open_ports(
    system: &System,
    layout: &Layout,
    jobs: &JobTable,
    hosted: &Hosted,
) -> (Vec<Option<Port>>, Inboxes) {
    let links = Links::new(jobs.capacity());
    let open = |site: &LaneSite| {
        let is_ours = hosted.hosts(site.node) && site.kind == SiteKind::Lane;
        let inbox = is_ours.then(|| links.inbox());
        let call = || match system.scheduling(site.node) {
            Scheduling::Lanes => Call::Bell(Bell::new()),
            Scheduling::Hierarchy => Call::Waker(OnceLock::new()),
        };
        inbox.map(|(sender, receiver)| (Port::new(sender, call()), receiver)).unzip()
    };
    layout.lanes.iter().map(open).unzip()
}

fn open_link(system: &System, hosted: &Hosted) -> Result<(Link, Option<(Inlet, InletStop)>), PrepareError> {
    let Hosted::Node { node, directory } = hosted else { return Ok((Link::default(), None)) };
    let error = |source| PrepareError::Link { directory: directory.clone(), source };
    let link = Link::open(directory, system.nodes.len(), *node).map_err(error)?;
    let inlet = Inlet::open(directory, *node).map_err(error)?;
    Ok((link, Some(inlet)))
}
