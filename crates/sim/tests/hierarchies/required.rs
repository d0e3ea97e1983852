//! A requirement of which the check says that it is kept, is kept.

use super::{admitted, derived, doubted, forest::Tree};
use proptest::prelude::*;
use std::collections::HashMap;
use talea_guarantee::exact::{Span, ratio};
use talea_guarantee::guarantee::{Guarantee, Kind, Reservation};
use talea_guarantee::label::Label;
use talea_guarantee::monitor::{Monitor, Standing};
use talea_guarantee::rewrite::Choice;
use talea_model::System;
use talea_record::{Event, JobId, Record, Sink};
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

const END: Instant = Instant::from_nanos(2_000_000_000);

/// What a thread could require, given what it receives: that as a guarantee of this kind, or somewhat more.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    kind: Kind,
    period_ms: u64,
    extent: Extent,
}

#[derive(Clone, Copy, Debug)]
enum Extent {
    /// As much as there is.
    All,
    /// Nine tenths of it.
    Less,
    /// A tenth more.
    More,
}

const KINDS: [Kind; 4] = [Kind::Resbs, Kind::Rescs, Kind::Psbe, Kind::Resbh];

pub fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    let extents = vec![Extent::All, Extent::Less, Extent::More];
    let wish = (prop::sample::select(KINDS.to_vec()), 1..150u64, prop::sample::select(extents))
        .prop_map(|(kind, period_ms, extent)| Wish { kind, period_ms, extent });
    prop::collection::vec(wish, 1..6)
}

impl Wish {
    /// Of this kind or of the next one that what is received can become; none if it can become nothing.
    fn of(&self, received: &Label) -> Option<Guarantee> {
        let choice = Choice { period: Some(Span::from_millis(self.period_ms)), ..Choice::default() };
        let kinds = KINDS.iter().cycle().skip_while(|kind| **kind != self.kind).take(KINDS.len());
        let reached = kinds.filter_map(|kind| received.rewrite(*kind, &choice).ok()).next()?;
        let (more, of) = match self.extent {
            Extent::All => (1, 1),
            Extent::Less => (9, 10),
            Extent::More => (11, 10),
        };
        let scaled = |span: &Span, more, of| span.scaled(&ratio(more, of));
        match reached.label.guarantee() {
            Guarantee::Reservation(all) => {
                let amount = scaled(all.amount(), more, of)?;
                let reservation =
                    Reservation::new(all.continuity(), all.hardness(), amount, all.period().clone());
                Some(reservation.ok()?.into())
            }
            // What is more of an error is less of the share.
            Guarantee::Psbe { share, error } => {
                Some(Guarantee::Psbe { share: share.clone(), error: scaled(error, of, more)? })
            }
            other => Some(other.clone()),
        }
    }
}

/// Holds threads to their requirements, by the records alone.
struct Judges(Vec<Option<Judge>>);

struct Judge {
    monitor: Monitor,
    /// Bursts that have come and are not done.
    pending: u32,
}

impl Sink for Judges {
    fn record(&mut self, record: Record) {
        let event = record.event;
        if ![Event::RELEASE, Event::START, Event::RESUME, Event::PREEMPT, Event::COMPLETE].contains(&event) {
            return;
        }
        let thread = JobId::unpack(record.causal).operation.index();
        if let Some(judge) = &mut self.0[thread] {
            judge.note(event, record.time);
        }
    }
}

impl Judge {
    fn note(&mut self, event: Event, now: Instant) {
        let standing = match event {
            Event::RELEASE => {
                self.pending += 1;
                // The others wait behind it.
                if self.pending > 1 {
                    return;
                }
                Standing::Ready
            }
            Event::START | Event::RESUME => Standing::Running,
            Event::PREEMPT => Standing::Ready,
            // One whose next burst waits goes on wanting, and begins it at once if it keeps its processor.
            _ => {
                self.pending -= 1;
                if self.pending > 0 { Standing::Ready } else { Standing::Waiting }
            }
        };
        self.monitor.note(now, standing, &mut |_| {});
    }
}

/// Lets the threads require what they wish, and fails if one does not receive it of which the check says that it does. Gives the
/// number of requirements of which that was said.
pub fn assert_kept(tree: &Tree, wishes: &[Wish]) -> Result<u32, TestCaseError> {
    let tree = &admitted(tree, &[0]);
    let received = derived(&tree.system_on(&[0]));
    let mut required = HashMap::new();
    for (thread, wish) in received.threads.iter().zip(wishes.iter().cycle()) {
        if let Some(wanted) = wish.of(&thread.receives) {
            required.insert(thread.name.clone(), wanted);
        }
    }
    let system = tree.system_requiring(&[0], &required);
    let (mut judges, said) = judges(&system);
    let mut simulation = Simulation::new(&system).map_err(|error| TestCaseError::fail(error.to_string()))?;
    simulation.advance(END, &mut judges);
    for (index, judge) in judges.0.iter_mut().enumerate() {
        let Some(judge) = judge else { continue };
        judge.monitor.pass(END, &mut |_| {});
        let tally = judge.monitor.tally();
        let thread = &system.threads[index];
        prop_assert!(
            tally.violations == 0,
            "{} requires {:?} and receives {tally:#?}\n{}",
            thread.name,
            thread.requires.as_ref().map(ToString::to_string),
            tree.drawn()
        );
    }
    Ok(said)
}

/// A judge for every thread that is said to receive what it requires.
fn judges(system: &System) -> (Judges, u32) {
    let doubted = doubted(system);
    let derivation = derived(system);
    let mut judges: Vec<Option<Judge>> = system.threads.iter().map(|_| None).collect();
    let mut said = 0;
    for thread in &derivation.threads {
        let edge = &derivation.edges.iter().find(|edge| edge.edge == thread.edge).expect("it has one");
        let is_doubted = doubted.contains(&(edge.parent.clone(), edge.child.clone()));
        let Some(required) = thread.requires.as_ref().filter(|_| !is_doubted) else { continue };
        let index = system.threads.iter().position(|known| known.name == thread.name).expect("it is there");
        let required = thread.receives.wanted(required).absolute();
        let monitor = Monitor::new(&required, Duration::from_nanos(ROUNDING_NS), Instant::ZERO);
        judges[index] = Some(Judge { monitor, pending: 0 });
        said += 1;
    }
    (Judges(judges), said)
}

/// Requirements are parts of nanoseconds of what is given in whole ones.
const ROUNDING_NS: i64 = 1_000;
