//! Why a hierarchy cannot be run.

use talea_linux::sched::SchedError;
use talea_manage::{AdmitError, Priorities, SetError, ShortQuantum};
use talea_policy::arrangement::ArrangeError;
use talea_time::Duration;
use thiserror::Error;

/// Why a hierarchy cannot be run. No thread is left over, and no program.
#[derive(Debug, Error)]
pub enum HierarchyError {
    /// The schedulers refuse what the description asks of them.
    #[error(transparent)]
    Arrange(#[from] ArrangeError),
    /// The infrastructure could not be set up.
    #[error(transparent)]
    Set(#[from] SetError),
    /// A thread was refused.
    #[error(transparent)]
    Admit(#[from] AdmitError),
    /// Threads would take turns faster than real ones can.
    #[error(transparent)]
    ShortQuantum(#[from] ShortQuantum),
    /// A lane whose jobs preempt each other has several threads, among which the schedulers above would have to choose.
    #[error(
        "scheduler \"{scheduler}\": on real threads lanes below other schedulers run every job they begin to its end; write \
         `lane_dispatch = \"nonpreemptive\"`, give the tasks a node of their own, or simulate it (`talea sim`)"
    )]
    PreemptiveLanes {
        /// The scheduler of the lanes.
        scheduler: String,
    },
    /// A lane that chooses anew at every tick needs the simulator.
    #[error(
        "scheduler \"{scheduler}\": lane \"{lane}\" chooses anew every {tick}, which only the simulator does"
    )]
    Ticks {
        /// The scheduler of the lanes.
        scheduler: String,
        /// The lane's label.
        lane: String,
        /// Its tick.
        tick: Duration,
    },
    /// Who releases the tasks of the lanes has to stand above all that the schedulers grant a processor.
    #[error(
        "the release thread of the tasks has priority {top}, but the schedulers above their lanes use {priorities}; raise the top of \
         the band"
    )]
    ReleaseTooLow {
        /// The highest priority that the run may use.
        top: u8,
        /// Those of the hierarchy.
        priorities: Priorities,
    },
    /// The kernel does not give a thread the policy that the hierarchy was lowered to.
    #[error("{thread}: {source}\n  `--no-lower` leaves the hierarchy to the infrastructure")]
    Kernel {
        /// The thread of the description.
        thread: String,
        /// What is refused, with its remedy.
        source: SchedError,
    },
    /// Without real-time priorities nobody is kept from running.
    #[error(
        "a hierarchy of schedulers is enforced by real-time priorities, which this process does not have{}\n  \
         `talea doctor` tests what is permitted; `talea sim` needs none of it",
        reasons(missing)
    )]
    NotEnforceable {
        /// What is not permitted, each with its remedy; nothing if nobody asked.
        missing: Vec<String>,
    },
}

fn reasons(missing: &[String]) -> String {
    match missing {
        [] => "; leave out `--rt off`".into(),
        _ => format!(":\n  {}", missing.join("\n  ")),
    }
}
