//! Whether a scheduler does what its declaration says of an idle processor and of timers, seen from outside: by the records of what was
//! decided on one processor, and by nothing that a scheduler says of itself.

use crate::forest::{self, Tree};
use crate::promises::{admitted, cases};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use talea_guarantee::scheduler::{Conserving, Timers};
use talea_model::SchedulerKind;
use talea_record::event::{Trigger, Typed};
use talea_record::{Metadata, Record, Sink};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant};

const LENGTH: Duration = Duration::from_millis(500);

/// Fails unless schedulers of this kind keep the processor busy and set no timers, where they are declared so.
pub(crate) fn check(kind: SchedulerKind, number: u32) {
    if kind.conserving == Conserving::Unstated && kind.timers != Timers::None {
        return;
    }
    let config = ProptestConfig { failure_persistence: None, ..cases(number) };
    let outcome = TestRunner::new(config).run(&forest::trees_with(kind), |tree| {
        let seen = seen(&tree, kind)?;
        prop_assert!(seen.is_none(), "{}\n{}", seen.unwrap_or_default(), tree.drawn());
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{kind}: {error}"));
}

/// What a scheduler of the kind did against its declaration, if anything.
fn seen(tree: &Tree, kind: SchedulerKind) -> Result<Option<String>, TestCaseError> {
    let system = admitted(tree, &[0]).system_on(&[0]);
    let simulation = Simulation::new(&system).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let mut simulation = simulation.with_dispatch(DispatchRecords::Kept);
    let mut observer = Observer::new(simulation.metadata(), kind);
    simulation.advance(Instant::ZERO + LENGTH, &mut observer);
    Ok(observer.fault)
}

/// Where an edge stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Waits,
    Wants,
    Runs,
}

struct Edge {
    parent: String,
    child: String,
    standing: Standing,
    /// At this instant: it came to want the processor, or lost it to a timer.
    came: bool,
    timed_out: bool,
}

/// Looks at the schedulers of a kind at the end of each instant at which anything happens.
struct Observer {
    kind: SchedulerKind,
    /// The schedulers of the kind, each with whether it had the processor after the last instant.
    schedulers: Vec<(String, bool)>,
    edges: Vec<Edge>,
    now: Instant,
    fault: Option<String>,
}

impl Observer {
    fn new(metadata: &Metadata, kind: SchedulerKind) -> Self {
        let of_kind = metadata.schedulers.iter().filter(|scheduler| scheduler.kind == kind.name());
        let edges = metadata.edges.iter().map(|edge| {
            let (parent, child) = (edge.parent.clone(), edge.child.clone());
            Edge { parent, child, standing: Standing::Waits, came: false, timed_out: false }
        });
        Observer {
            kind,
            schedulers: of_kind.map(|scheduler| (scheduler.name.clone(), false)).collect(),
            edges: edges.collect(),
            now: Instant::ZERO,
            fault: None,
        }
    }

    /// The root has the processor whenever somebody wants it.
    fn has_processor(&self, scheduler: &str) -> bool {
        let mut above = self.edges.iter().filter(|edge| edge.child == scheduler).peekable();
        above.peek().is_none() || above.any(|edge| edge.standing == Standing::Runs)
    }

    fn look(&mut self) {
        for place in 0..self.schedulers.len() {
            let (name, had) = &self.schedulers[place];
            let (has, had) = (self.has_processor(name), *had);
            let children = || self.edges.iter().filter(|edge| edge.parent == *name);
            let serves = children().any(|edge| edge.standing == Standing::Runs);
            let waiting = children().find(|edge| edge.standing == Standing::Wants);
            let timed_out = children().find(|edge| edge.timed_out && edge.standing == Standing::Wants);
            let is_own = has && had && !children().any(|edge| edge.came);
            let fault = match (waiting, timed_out) {
                (Some(waiting), _) if has && !serves && self.kind.conserving == Conserving::Always => {
                    Some(format!(
                        "{name} has the processor at {}, serves nobody, and {} wants it",
                        self.now, waiting.child
                    ))
                }
                (_, Some(child)) if is_own && self.kind.timers == Timers::None => Some(format!(
                    "a timer of {name} takes the processor from {} at {}",
                    child.child, self.now
                )),
                _ => None,
            };
            self.fault = self.fault.take().or(fault);
            self.schedulers[place].1 = has;
        }
        for edge in &mut self.edges {
            (edge.came, edge.timed_out) = (false, false);
        }
    }
}

impl Sink for Observer {
    fn record(&mut self, record: Record) {
        if record.time > self.now {
            self.look();
            self.now = record.time;
        }
        let Some(edge) = self.edges.get_mut(usize::from(record.source)) else { return };
        match record.typed() {
            Typed::VpRequest(_) => (edge.standing, edge.came) = (Standing::Wants, true),
            Typed::VpGrant(_) => edge.standing = Standing::Runs,
            Typed::VpRevoke(revoke) => {
                edge.standing = Standing::Wants;
                edge.timed_out |= revoke.trigger == Trigger::Timer;
            }
            Typed::VpRelease(_) => edge.standing = Standing::Waits,
            _ => {}
        }
    }
}
