//! What can be wrong with a hierarchy before anything is derived.

use crate::scheduler::article;
use thiserror::Error;

/// Something about a hierarchy that makes no sense, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// There is no scheduler.
    #[error("there is no scheduler; the hierarchy needs one at its root")]
    Empty,
    /// Two schedulers or threads have the same name.
    #[error("\"{0}\" names more than one scheduler or thread; give each a name of its own")]
    Duplicate(String),
    /// An edge names something that is not there.
    #[error("the edge {parent} -> {child} names \"{unknown}\", which is not there{}", hint(.nearest))]
    Unknown {
        /// The edge's parent.
        parent: String,
        /// The edge's child.
        child: String,
        /// The one that is not there.
        unknown: String,
        /// The most similar name, if there is one.
        nearest: Option<String>,
    },
    /// A thread schedules something.
    #[error("\"{thread}\" is a thread and schedules nothing; put \"{child}\" under a scheduler")]
    ThreadAsParent {
        /// The thread.
        thread: String,
        /// Its child.
        child: String,
    },
    /// More than one scheduler has no parent.
    #[error("the schedulers {} have no parent; a hierarchy has one root, so put all but one under it", .0.join(", "))]
    SeveralRoots(Vec<String>),
    /// Nothing schedules a thread.
    #[error("nothing schedules the thread \"{0}\"; put it under a scheduler")]
    Orphan(String),
    /// Schedulers schedule each other.
    #[error("{} schedule each other in a circle; guarantees only go down, so take out one of these edges", .0.join(" -> "))]
    Circle(Vec<String>),
    /// A thread or a scheduler of one processor has several parents.
    #[error("\"{child}\" is scheduled by {}, but takes one virtual processor; put a join above it", .parents.join(" and "))]
    SeveralParents {
        /// The thread or scheduler.
        child: String,
        /// Its parents.
        parents: Vec<String>,
    },
    /// The scheduler at the root schedules one processor, and there are several.
    #[error(
        "\"{root}\" schedules one processor, but there are {processors} processors; put a fixed-priority or an sfs scheduler above it"
    )]
    SeveralProcessors {
        /// The scheduler at the root.
        root: String,
        /// How many there are.
        processors: u32,
    },
    /// A join or a limit has several children.
    #[error(
        "\"{scheduler}\" is a {algorithm} and has one child, not {children}; put a scheduler of several between"
    )]
    SeveralChildren {
        /// The scheduler.
        scheduler: String,
        /// Its algorithm.
        algorithm: &'static str,
        /// How many children it has.
        children: usize,
    },
    /// An edge asks for something that its parent does not give.
    #[error("{child} asks {parent} for {request}, but {} {algorithm} scheduler takes {wanted}", article(.algorithm))]
    Request {
        /// The edge's parent.
        parent: String,
        /// The edge's child.
        child: String,
        /// What it asks for.
        request: String,
        /// The parent's algorithm.
        algorithm: &'static str,
        /// What to ask for.
        wanted: String,
    },
    /// Two children of a fixed-priority scheduler share a priority.
    #[error("{} and {} both have priority {priority} under {scheduler}; it gives guarantees only with one child at each", .children.0, .children.1)]
    SamePriority {
        /// The scheduler.
        scheduler: String,
        /// Two of its children.
        children: (String, String),
        /// Their priority.
        priority: i32,
    },
    /// A quantum of zero.
    #[error("the quantum of \"{0}\" is zero; write a longer one, such as 10ms")]
    NoQuantum(String),
    /// A join takes the guarantee of something that is not its parent.
    #[error("the join \"{join}\" takes the guarantee of \"{takes}\", which is not its parent; its parents are {}", .parents.join(", "))]
    TakesFromStranger {
        /// The join.
        join: String,
        /// Whose guarantee it is to take.
        takes: String,
        /// Its parents.
        parents: Vec<String>,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default()
}
