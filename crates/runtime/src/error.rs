//! Why a run cannot be.

use crate::hierarchy::HierarchyError;
use crate::lowering::LoweringError;
use rustix::io::Errno;
use std::path::PathBuf;
use talea_linux::affinity::{self, AffinityError};
use talea_linux::thread::SpawnError;
use talea_operation::OperationErrors;
use talea_policy::release::bounds::MissingBound;
use talea_policy::strategy::Anomaly;
use talea_record::CreateError;
use talea_record::stream::AttachError;
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
    /// A protocol lacks a response bound.
    #[error(transparent)]
    MissingBound(#[from] MissingBound),
    /// The lanes of a node do not fit what the kernel offers.
    #[error("node \"{node}\": {source}")]
    Lowering {
        /// The node.
        node: String,
        /// What does not fit.
        source: LoweringError,
    },
    /// Room for posted work where no lane of this process could execute it.
    #[error(
        "RunOptions::posting asks for room, but no node has lanes, or the nodes are processes of their own; describe a task at least, or run all nodes in one process"
    )]
    NoLanesToPost,
    /// A lane of several threads, which a caller cannot step.
    #[error(
        "RunOptions::stepped: lane \"{lane}\" is preemptive, which takes threads of its own; make lanes nonpreemptive"
    )]
    SteppedPreemptive {
        /// The lane's label.
        lane: String,
    },
    /// A node's hierarchy of schedulers cannot be run.
    #[error("node \"{node}\": {source}")]
    Hierarchy {
        /// The node.
        node: String,
        /// Why.
        source: Box<HierarchyError>,
    },
    /// The code that was given does not fit the system: all that is wrong.
    #[error(transparent)]
    Operations(#[from] OperationErrors),
    /// Values or events are to be in the trace, and none is kept.
    #[error(
        "values of outputs or events are to be kept, and no trace to keep them in: call `Run::keep_trace`, too"
    )]
    ValuesWithoutTrace,
    /// The deliveries of a notification service cannot be work of this run.
    #[error("events cannot be delivered: {0}")]
    Events(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// There is no room for the descriptors by which something outside releases tasks.
    #[error("cannot open descriptors to wait for what releases tasks from outside: {0}; look at `ulimit -n`")]
    Descriptors(#[source] Errno),
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
    #[error(
        "cannot create the thread of the collector or of kept values: {0}; look at `ulimit -u` and the cgroup's pids.max"
    )]
    Collector(#[source] std::io::Error),
    /// Links are to be imposed, and all nodes are in one process, where no messages go between them.
    #[error(
        "links can be imposed only on nodes in processes of their own, and all nodes are in this one: see `cluster::run_cluster`"
    )]
    LinksWithinProcess,
    /// The pipes to the other processes of the run could not be opened.
    #[error("cannot open the pipes to the other nodes in {directory}: {source}")]
    Link {
        /// The run's directory.
        directory: PathBuf,
        /// What the system said.
        source: Errno,
    },
}
