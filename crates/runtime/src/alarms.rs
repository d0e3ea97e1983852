//! The instants at which jobs are to be posted, for the thread that does it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use talea_model::System;
use talea_ring::bell::Bell;
use talea_time::Instant;

/// No instant is waited for.
pub(crate) const NEVER: i64 = i64::MAX;

/// What the thread that posts at instants shares with who asks for jobs.
pub(crate) struct Instants {
    /// By declared operation, the instant at which a job of it is to be posted, in nanoseconds.
    pub instants: Box<[AtomicI64]>,
    /// By task of the system, the instant at which time brings something that may release it, in nanoseconds.
    pub releases: Box<[AtomicI64]>,
    /// When the run starts, in nanoseconds; tasks are told of nothing before.
    pub start: AtomicI64,
    /// By operation of the system, its task.
    pub tasks: Box<[usize]>,
    pub bell: Bell,
    pub is_over: AtomicBool,
}

impl fmt::Debug for Instants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instants").field("next", &self.next()).finish_non_exhaustive()
    }
}

impl Instants {
    /// None, for a system with so many declared operations beside its own.
    pub fn new(system: &System, declared: usize) -> Self {
        let never = |count: usize| (0..count).map(|_| AtomicI64::new(NEVER)).collect();
        Instants {
            instants: never(declared),
            releases: never(system.tasks.len()),
            start: AtomicI64::new(NEVER),
            tasks: system.operations().iter().map(|operation| operation.task).collect(),
            bell: Bell::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// The earliest instant.
    pub fn next(&self) -> i64 {
        let earliest = |all: &[AtomicI64]| {
            all.iter().map(|instant| instant.load(Ordering::Acquire)).min().unwrap_or(NEVER)
        };
        earliest(&self.instants).min(earliest(&self.releases).max(self.start.load(Ordering::Acquire)))
    }

    /// The word of an operation of the system or a declared one.
    pub fn word(&self, operation: usize) -> &AtomicI64 {
        match self.tasks.get(operation) {
            Some(task) => &self.releases[*task],
            None => &self.instants[operation - self.tasks.len()],
        }
    }
}

/// What start and end of a run tell the thread by.
#[derive(Clone, Debug)]
pub(crate) struct Alarms(pub Arc<Instants>);

impl Alarms {
    /// What tasks have asked for counted from when the run was prepared, and is not wanted any more.
    pub fn forget_releases(&self) {
        self.0.releases.iter().for_each(|instant| instant.store(NEVER, Ordering::Release));
    }

    /// The run starts then.
    pub fn begin(&self, start: Instant) {
        self.0.start.store(start.as_nanos(), Ordering::Release);
        self.0.bell.ring();
    }

    /// The run is over.
    pub fn end(&self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.bell.ring();
    }
}
