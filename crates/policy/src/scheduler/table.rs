//! Every scheduler that can be made of a description: the built-in ones, a row each, and those that the program has registered.
//!
//! What a kind is called, promises and takes says its declaration (`talea_guarantee::scheduler`); a row adds what it takes to make one
//! and to have a child register with it. Both come from one place for a program's own scheduler: [`register`].

use super::configuration::Configuration;
use super::facts::{ConfigureError, Facts};
use crate::hierarchy::Parameters;
use std::sync::{PoisonError, RwLock};
use talea_guarantee::scheduler::{Intake, RegisterError};
use talea_model::{Request, SchedulerKind};

/// What a scheduler of a description is made from.
pub type Configure = fn(&Facts<'_>) -> Result<Configuration, ConfigureError>;

/// What a child, by name, registers with that makes this request.
pub type Register = fn(&Facts<'_>, &str, &Request) -> Result<Parameters, ConfigureError>;

/// How schedulers of one kind are made.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    kind: SchedulerKind,
    processors: Intake,
    configure: Configure,
    register: Register,
}

impl Row {
    /// Schedulers of this kind are made so, on one virtual processor, and children register with what most schedulers understand
    /// by their request.
    pub const fn new(kind: SchedulerKind, configure: Configure) -> Self {
        Row { kind, processors: Intake::One, configure, register: usual }
    }

    /// The same, on as many virtual processors.
    pub const fn on(self, processors: Intake) -> Self {
        Row { processors, ..self }
    }

    /// The same, with another understanding of what children ask for.
    pub const fn registering(self, register: Register) -> Self {
        Row { register, ..self }
    }

    /// The kind.
    pub const fn kind(&self) -> SchedulerKind {
        self.kind
    }

    /// How many virtual processors such a scheduler can make use of, which may be fewer than its kind is known to take.
    pub const fn processors(&self) -> Intake {
        self.processors
    }

    /// What the scheduler is made from.
    ///
    /// # Errors
    /// See [`ConfigureError`].
    pub fn configure(&self, facts: &Facts<'_>) -> Result<Configuration, ConfigureError> {
        (self.configure)(facts)
    }

    /// What `child` registers with that makes this request.
    ///
    /// # Errors
    /// See [`ConfigureError`].
    pub fn parameters(
        &self,
        facts: &Facts<'_>,
        child: &str,
        request: &Request,
    ) -> Result<Parameters, ConfigureError> {
        (self.register)(facts, child, request)
    }
}

fn usual(facts: &Facts<'_>, child: &str, request: &Request) -> Result<Parameters, ConfigureError> {
    facts.parameters(child, request)
}

static BUILT_IN: &[&Row] = &[
    &super::fixed_priority::ROW,
    &super::join::ROW,
    &super::limit::ROW,
    &super::fair_queue::PREEMPTING,
    &super::fair_queue::WAITING,
    &super::eevdf::ROW,
    &super::lottery::ROW,
    &super::stride::ROW,
    &super::surplus_fair::ROW,
    &super::reservation::ROW,
    &super::reservation::CBS,
    &super::total_bandwidth::ROW,
    &super::resource_kernel::ROW,
    &super::rialto::ROW,
    &super::rialto::NT,
    &super::spring::ROW,
    &super::srms::ROW,
    &super::slower_processor::BSS_I,
    &super::slower_processor::PSHED,
    &super::reservation::SOFT_CBS,
    &super::time_sharing::ROW,
    &super::time_sharing::LINUX,
    &super::time_sharing::WINDOWS_2000,
    &super::round_robin::ROW,
    &super::explicit_plan::ROW,
    &super::lane::FIFO,
    &super::lane::EDF,
    &super::lane::LAXITY,
];

static REGISTERED: RwLock<Vec<&'static Row>> = RwLock::new(Vec::new());

/// Every row: the built-in ones in the order of the documentation, then the registered ones.
pub fn rows() -> Vec<&'static Row> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.iter().chain(registered.iter()).copied().collect()
}

/// How schedulers of a kind are made. None if this program has only heard of it.
pub fn row(kind: SchedulerKind) -> Option<&'static Row> {
    rows().into_iter().find(|row| row.kind == kind)
}

/// Makes an own scheduler one that can be named: by system files, `check`, the simulator, the runtime, and changes of what runs.
///
/// # Errors
/// Its name or something else about its declaration is another kind's; nothing has changed then.
pub fn register(row: &'static Row) -> Result<SchedulerKind, RegisterError> {
    // Whoever finds the kind finds the row too: it is entered before the lock is let go.
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let kind = talea_guarantee::scheduler::register(row.kind.declaration())?;
    registered.push(row);
    Ok(kind)
}
