//! What is said over a control socket: one request in one line of JSON, one answer in one line.
//!
//! ```text
//! {"version":2,"command":"list"}
//! {"version":2,"command":{"replace":{"name":"PS","kind":"eevdf","quantum":"5ms"}}}
//! {"version":2,"insistence":"forced","command":{"remove":{"name":"words"}}}
//! ```

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use talea_guarantee::guarantee::Guarantee;
use talea_model::{ChildProcesses, Request as Wish};
pub use talea_policy::arrangement::live::Insistence;
use talea_time::Duration;

/// The version that is spoken.
pub const VERSION: u32 = 2;

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// [`VERSION`].
    pub version: u32,
    /// Whether promises may break by it.
    #[serde(default)]
    pub insistence: Insistence,
    /// What is to be done.
    pub command: Command,
}

/// What can be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Says who there is, with guarantees and received time.
    List,
    /// Adds a scheduler.
    AddScheduler {
        /// Its name.
        name: String,
        /// The name of its kind, which only the run itself has to know: it may be one of the program's own.
        kind: String,
        /// Its quantum, if it has one; the usual one if not given.
        #[serde(default)]
        quantum: Option<Duration>,
        /// What else is said of it, by key, in the words of system files; a plan is a table of text.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        settings: BTreeMap<String, String>,
        /// Where it belongs.
        under: Vec<ParentRequest>,
    },
    /// Adds a thread: a command, or a process.
    AddThread {
        /// Its name.
        name: String,
        /// What is taken in.
        program: Program,
        /// What it has to receive.
        #[serde(default)]
        requires: Option<Guarantee>,
        /// Where it belongs.
        under: ParentRequest,
    },
    /// Removes a scheduler without children, or lets a thread go.
    Remove {
        /// Which.
        name: String,
    },
    /// Moves a thread or a scheduler.
    Move {
        /// Who.
        name: String,
        /// Where to.
        under: Vec<ParentRequest>,
    },
    /// Moves somebody under a scheduler for a time: a reservation begins.
    Reserve {
        /// Who.
        name: String,
        /// Where to.
        under: ParentRequest,
    },
    /// Asks the parent for something else.
    Change {
        /// Who asks.
        name: String,
        /// Which parent, if there are several.
        #[serde(default)]
        of: Option<String>,
        /// What for.
        asks: EdgeRequest,
    },
    /// Moves somebody back to where it was before it reserved.
    Release {
        /// Who.
        name: String,
    },
    /// Asks a planning scheduler for one piece of work of a thread.
    Constrain {
        /// Whose.
        name: String,
        /// How long from now it is to begin at the earliest; at once if not given.
        #[serde(default)]
        after: Duration,
        /// How long from now it has to be done.
        within: Duration,
        /// Its worst case, as processor time.
        work: Duration,
    },
    /// That piece of work is done, or not needed any more.
    EndConstraint {
        /// Whose.
        name: String,
    },
    /// Tells statistics of channels, as the standard's monitoring names them.
    Statistics {
        /// Their names, or the paths above them, as `plant/motion`; all if there are none.
        #[serde(default)]
        names: Vec<String>,
    },
    /// Puts a scheduler of another kind, or with another quantum, in the place of one.
    Replace {
        /// Which.
        name: String,
        /// The name of the kind, which only the run itself has to know: it may be one of the program's own.
        kind: String,
        /// The quantum; that of the old one if not given.
        #[serde(default)]
        quantum: Option<Duration>,
        /// What else is said of it, by key, in the words of system files; a plan is a table of text.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        settings: BTreeMap<String, String>,
        /// Children that ask for something else then.
        #[serde(default)]
        children: Vec<Child>,
    },
}

/// A parent and what is asked of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParentRequest {
    /// The scheduler above.
    pub scheduler: String,
    /// What is asked for.
    #[serde(default)]
    pub asks: EdgeRequest,
}

/// A child and what it asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Child {
    /// Which.
    pub name: String,
    /// What it asks for.
    pub asks: EdgeRequest,
}

/// What is asked of a scheduler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum EdgeRequest {
    /// Nothing in particular.
    #[default]
    Nothing,
    /// A priority.
    Priority(i32),
    /// A share.
    Share(NonZeroU32),
    /// A share with a warp.
    WarpedShare {
        /// The share.
        weight: NonZeroU32,
        /// The warp.
        warp: Duration,
    },
    /// A guarantee, as in system files: `"RESBH 5ms 33ms"`.
    Guarantee(Guarantee),
}

/// A program to be managed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Program {
    /// A command with its arguments, started in the folder and environment of the run.
    Command(Vec<String>),
    /// A running process.
    Process {
        /// Its number.
        number: u32,
        /// Which of the processes that it has started are scheduled with it.
        #[serde(default)]
        children: ChildProcesses,
    },
    /// One thread of a running process, by number.
    Thread(u32),
}

impl EdgeRequest {
    /// In the words of the model.
    pub fn wish(&self) -> Wish {
        match self {
            EdgeRequest::Nothing => Wish::Nothing,
            EdgeRequest::Priority(priority) => Wish::Priority(*priority),
            EdgeRequest::Share(weight) => Wish::share(*weight),
            EdgeRequest::WarpedShare { weight, warp } => Wish::Share { weight: *weight, warp: *warp },
            EdgeRequest::Guarantee(guarantee) => Wish::Guarantee(guarantee.clone()),
        }
    }
}

/// What a client is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// [`VERSION`].
    pub version: u32,
    /// What has come of the request.
    pub outcome: Outcome,
}

/// What has come of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Who there is.
    Listing(Listing),
    /// What was asked for, by name.
    Statistics(BTreeMap<String, Statistic>),
    /// It is done.
    Done(Done),
    /// It is not done; everything is as before.
    Refused(Refusal),
    /// The request says nothing that could be done: a name that is nobody's, say.
    Misstated(String),
    /// Too many clients at a time; to be tried again.
    Busy,
    /// The run has ended.
    Ended,
}

/// A statistic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// It is a number; times in nanoseconds. Asking takes a sample of it.
    Number {
        /// The number now.
        last: f64,
        /// How many samples have been taken, by whomever.
        count: u64,
        /// Their mean.
        average: f64,
        /// The sum of their squares.
        sum_of_squares: f64,
        /// The least.
        minimum: f64,
        /// The greatest.
        maximum: f64,
    },
    /// It is a list of names, as it is now.
    Names(Vec<String>),
}

/// What a change has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Edges that are promised something else now.
    pub promises: Vec<Promised>,
    /// What goes with it: promises that were broken by force, or are not known to be kept any more, threads that cannot be held to
    /// a maximum.
    pub warnings: Vec<String>,
}

/// An edge and what it is promised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promised {
    /// The scheduler above.
    pub parent: String,
    /// The scheduler or thread below.
    pub child: String,
    /// The guarantee before, in time of the real processor; none if nothing was promised.
    pub before: Option<String>,
    /// The guarantee now; none if nothing is promised.
    pub after: Option<String>,
    /// What the child, a thread, requires, if nothing is promised to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requires: Option<String>,
    /// Why it is not known to be kept; none if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proviso: Option<String>,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reasons, in the words of the derivation, of the model's rules or of the scheduler that refuses.
    pub reasons: Vec<String>,
    /// The nearest change that would do.
    pub remedy: Option<String>,
    /// Whether insisting helps.
    pub force: Force,
}

/// Whether insisting helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Force {
    /// Only promises would break.
    Helps,
    /// It cannot be done.
    InVain,
}

/// A hierarchy as it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The system's name.
    pub system: String,
    /// The node's.
    pub node: String,
    /// The CPUs.
    pub cpus: Vec<u16>,
    /// One for each edge, and one for the root, from the root down.
    pub rows: Vec<Row>,
    /// Who does not receive what it needs by derivation.
    pub findings: Vec<String>,
}

/// An edge of a running hierarchy, or the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// How far below the root.
    pub depth: usize,
    /// Who is below the edge.
    pub name: String,
    /// A scheduler's kind; `thread`, or `elsewhere` where its children are listed with another of its edges.
    pub kind: String,
    /// A scheduler's quantum.
    pub quantum: Option<Duration>,
    /// The parent.
    pub parent: Option<String>,
    /// What is asked of it.
    pub asks: Option<String>,
    /// What is promised, in time of the real processor; none if nothing could be derived.
    pub guarantee: Option<String>,
    /// Why that is not known to be kept; none if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proviso: Option<String>,
    /// What a thread has to receive.
    pub requires: Option<String>,
    /// `waiting`, `ready` or `running`; none for a thread that is not there.
    pub state: Option<String>,
    /// Processor time that was granted on the edge.
    pub granted_ns: i64,
    /// What of that was received: the rest the kernel withheld. None if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_ns: Option<i64>,
    /// A thread's processor time by the kernel's account.
    pub used_ns: Option<i64>,
    /// Windows judged since the promise is what it is; none if nobody watches it.
    pub judged: Option<u64>,
    /// How many of them broke it.
    pub violations: u64,
}
