//! Whether a trace obeyed the policy of a system.
//!
//! The records are replayed against the plan that the system's strategy gives, with nothing but the rules of
//! `docs/policies.md`: who was ready is known from releases and ends, who should have run from levels and keys.
//!
//! | [`Rule`] | What must hold |
//! |---|---|
//! | plan | every operation is in the lane and level that the plan gives it |
//! | life | a job is released, begins, completes, in this order and once |
//! | release | not before arrival plus jitter, or when its protocol says, with the arrival and deadline that the description gives |
//! | precedence | a job is released after all its predecessors have completed, or as many as its join needs |
//! | overrun | what happens to an instance that arrives while the one before is unfinished |
//! | lanes | no job of a lower lane runs while a higher lane is ready |
//! | idle | no processor idles while a lane is ready; a thread that dispatches does not idle |
//! | order | a lane runs the job of the smallest key, late ones last if the system says so |
//! | non-preemption | a job that has begun keeps a non-preemptive lane, but for a posted one that it executes in its midst |
//! | arrivals | every instance that had to arrive was released or skipped, and every successor of what was done released |
//! | demand | in virtual time a job executes for as long as the description and the seed say |
//! | dispatching | a lane's thread that has a processor begins a job that is ready within the allowed overhead |
//! | triggers | what values or the outside release keeps its separation and burst unless what comes too early is only counted, and has a value that released it |
//! | values | a job takes what is there for it: the newest, that of its instance, or each once |
//!
//! Real threads take time to wake up, so `lanes`, `idle` and `order` have a tolerance: a wrong state shorter than it, and a
//! job released less than it before its lane chose, are no violations; nor is an instance that `overrun` ends or skips
//! that much late. The time of interrupts is not counted, and they neither begin nor end a wrong state. Simulated traces
//! need none. The default for threads is a rule of thumb, measured on no machine; the report has the longest wrong state
//! that it let pass, for whoever wants to choose a better one.
//!
//! A job that has begun runs only if the kernel lets it. Where the kernel's switches were recorded, one that could go on and has no
//! processor while a lower lane has one violates `lanes`. Where they were not, and jobs of several lanes have begun on one
//! processor without a record of preemption, nobody knows which of them runs: `lanes` is
//! [judged in part](Judged::ObeyedInPart), or not at all.
//!
//! A processor of real threads that seems idle may be held off by the kernel, as real-time throttling does. Where the kernel
//! was not recorded nobody can tell, and what `idle` finds is [possible](Certainty::Possible) only. So is a wrong order that lasts in a preemptive lane, as
//! the thread that chooses there may have been held off. In other lanes a wrong choice is possible only if the lane could not go on for a while before it
//! told what it had chosen, and what was there before that had been chosen rightly. That a reader has missed a value is possible only unless the lane that
//! published it had begun another job since; of events, which are pushed some time after that is told, likewise.
//!
//! What is not recorded is neither obeyed nor violated. Where records were lost, or the recording began with the run under
//! way, nothing is known of the jobs before; they are not judged, and counted. What a processor does is unknown until the
//! first record that tells of it, and what the lanes of a node do until each was heard of. A trace without all events of
//! jobs' lives is not judged at all ([`Coverage`]), `lanes` and `idle` are not where the kernel tells of threads and nothing says
//! which are the lanes', and a rule of which it has no case is [not judged](Judged::NotJudged). Of a rule that rests on other events which
//! the recording left out nothing is known, or not everything ([`Basis`]).

mod arrivals;
mod choices;
mod choosing;
mod coverage;
mod events;
mod grounds;
mod guards;
mod idle_points;
mod inheritance;
mod instances;
mod joins;
mod judge;
mod lives;
mod merging;
mod order;
mod plans;
mod processors;
mod releases;
mod report;
mod same;
mod service;
mod shared_events;
mod suspicion;
mod values;

pub use coverage::{Coverage, Unjudgeable};
pub use report::{Basis, Certainty, Judged, Rule, RuleReport, UnrecordedEvents, VerifyReport, Violation};
pub use same::OtherSystem;

use judge::Judge;
use talea_model::System;
use talea_policy::strategy::Plan;
use talea_record::{Metadata, Origin, Sink};
use talea_time::{Duration, Instant};

/// Violations that are listed one by one; all are counted.
pub const LISTED: usize = 1_000;

/// The tolerance for a trace of this origin unless another one is asked for: none in virtual time, and on real threads
/// what waking up a thread may take.
pub fn default_tolerance(origin: Origin) -> Duration {
    match origin {
        Origin::Simulation { .. } => Duration::ZERO,
        Origin::Threads { .. } => Duration::from_micros(200),
    }
}

/// How long a lane's thread may have a processor without a job, while one is ready, unless another time is asked for. What dispatching
/// takes on real threads are microseconds; a millisecond lets the largest inboxes and cold caches pass. In virtual time it takes what the
/// description says, and that is in the jobs' own time.
pub fn default_overhead(origin: Origin) -> Duration {
    match origin {
        Origin::Simulation { .. } => Duration::ZERO,
        Origin::Threads { .. } => Duration::from_millis(1),
    }
}

/// Checks records as they come, in memory that depends on the backlog only.
#[derive(Debug)]
pub struct Verifier<'a> {
    judge: Judge<'a>,
}

impl<'a> Verifier<'a> {
    /// For the trace with `metadata` of a run that should have followed `system`, whose nodes have `plans`. The trace is
    /// taken to have everything. Releases by response bounds are judged if `system` has all that it needs, given or from the analysis.
    ///
    /// # Errors
    /// [`OtherSystem`] if the trace belongs to a system that differs in more than its strategy and lanes.
    ///
    /// # Panics
    /// If `metadata` do not pass [`Metadata::check`], or the plans are not those of `system`.
    pub fn new(
        metadata: &'a Metadata,
        system: &'a System,
        plans: &'a [Plan],
        tolerance: Duration,
    ) -> Result<Self, OtherSystem> {
        metadata.check().expect("metadata are consistent");
        let expected = Metadata::new(system, plans, metadata.origin, metadata.start);
        same::check(metadata, &expected)?;
        Ok(Verifier { judge: Judge::new(metadata, expected, system, plans, tolerance) })
    }

    /// The same for a trace that has less than everything.
    #[must_use]
    pub fn with_coverage(mut self, coverage: Coverage) -> Self {
        self.judge.values.rest_on(&coverage.recorded);
        self.judge.events.rest_on(&coverage.recorded);
        self.judge.coverage = coverage;
        self
    }

    /// The same with another bound on dispatching.
    #[must_use]
    pub fn with_overhead(mut self, overhead: Duration) -> Self {
        self.judge.overhead = overhead;
        self
    }

    /// The result at the end of the trace.
    pub fn finish(self) -> VerifyReport {
        self.judge.finish()
    }
}

impl Sink for Verifier<'_> {
    fn record(&mut self, record: talea_record::Record) {
        self.judge.take(&record);
    }
}

/// `to - from`; records of damaged files may be centuries apart.
fn length(from: Instant, to: Instant) -> Duration {
    Duration::from_nanos(to.as_nanos().saturating_sub(from.as_nanos()))
}
