//! Why a job took as long as it did: its response time split into intervals, each with its cause.
//!
//! An explanation follows an instance of a task from its arrival to its end along its *critical path*: the jobs each of
//! which was released when the one before it completed. The intervals have no gaps and no overlaps, so they add up to
//! the response time exactly, in nanoseconds; that is asserted.
//!
//! ```text
//!   arrival      due        release          start      preempted          end
//!      │ jitter   │ timer ... │ waiting ...    │ execution │ by ... │ execution │   then the next hop
//! ```
//!
//! - Before the release: jitter, timer, withheld, programs, interrupts, releasing, message, hand-over.
//! - While waiting, and when preempted: peers, higher and lower lanes, shared, dispatching, wake-up, idle, withheld, programs,
//!   interrupts.
//! - Own: execution, blocked.
//!
//! The trace is read twice: first to find the instances (`find` keeps those in flight), then to see what happened in
//! their windows (`watch` keeps those that are open). So memory depends on the backlog and on how many explanations
//! are asked for ([`MOST`]), not on the length of the trace.
//!
//! What is told depends on what is recorded. The records of jobs alone leave "ready, processor idle" where dispatch
//! records tell of wake-ups and costs and kernel records of other threads and interrupts ([`talea_record::Event::COST`],
//! [`talea_record::Event::SWITCH`]). What an event would have told that the trace is known to lack ([`RecordedEvents`]) is "not recorded": a
//! processor without a job is idle only where dispatching or the kernel is recorded. Where the kernel chooses between jobs that
//! have begun, and its switches were not recorded, the time is shared and no job's ([`Cause::Shared`]). Where records were lost, or a recording
//! that came to the run under way has not yet heard of who was at work, an interval is uncertain; nothing is guessed. A trace
//! without the ends of jobs explains nothing ([`Unexplainable`]).

mod answer;
mod cause;
mod find;
mod json;
mod life;
mod pieces;
mod sentence;
mod sought;
mod steal;
mod stranded;
mod turns;
mod watch;
mod ways;

pub use crate::accounting::Measure;
pub use crate::occupancy::Interrupt;
pub use answer::{
    Counts, ExplainError, Explanation, Explanations, MOST, Outcome, Question, Standing, Subject, Total,
    Unexplainable, Which,
};
pub use cause::{Blamed, Cause, Interval, KernelOrder, Kind, Order, Stage};
pub use life::{Hop, TakenEvent};
pub use stranded::{LostMessage, Stranding};
pub use ways::{explain_chains, limited};

use crate::occupancy::Occupancy;
use find::{Finder, Target};
use pieces::{Pieces, Sums, add};
use std::collections::BTreeMap;
use steal::StealTimes;
use talea_record::contents::{Contents, Lost};
use talea_record::recorded_events::Beginning;
use talea_record::{Event, JobId, Metadata, RecordedEvents, Sink};
use talea_time::{Duration, Instant};
use watch::{Observations, Release, Watcher};

/// Explains what is asked for. `replay` gives every record of the trace to a sink, in the order of time; it is called
/// twice.
///
/// # Errors
/// Those of `replay`, and if the trace does not tell enough.
///
/// # Panics
/// If `metadata` do not pass [`Metadata::check`].
pub fn explain<E>(
    metadata: &Metadata,
    question: Question,
    mut replay: impl FnMut(&mut dyn Sink) -> Result<(), E>,
) -> Result<Explanations, ExplainError<E>> {
    metadata.check().expect("metadata are consistent");
    let mut finder = ((Finder::new(metadata, question), Contents::new(metadata)), StealTimes::default());
    replay(&mut finder)?;
    let ((finder, contents), steal) = finder;
    let begins = finder.begins();
    let recorded = RecordedEvents::of(metadata, &contents);
    if !recorded.has(Event::COMPLETE) {
        let missing = recorded.missing_of_jobs();
        return Err(ExplainError::Unexplainable(Unexplainable::Incomplete { missing }));
    }
    let (targets, counts, lost, _) = finder.finish();
    let doubt = doubt(&recorded, lost);
    let flat: Vec<&Target> =
        targets.iter().flat_map(|target| std::iter::once(target).chain(target.because.as_deref())).collect();
    let mut watcher = Watcher::new(metadata, &recorded, &flat);
    replay(&mut watcher)?;
    let mut seen = watcher.finish();
    let mut built = flat
        .iter()
        .enumerate()
        .map(|(index, target)| build(metadata, (&recorded, doubt), target, index, &mut seen));
    let mut list: Vec<Explanation> = Vec::new();
    for target in &targets {
        let mut explanation = built.next().expect("one for every target");
        explanation.because = target.because.as_ref().and_then(|_| built.next().map(Box::new));
        list.push(explanation);
    }
    drop(built);
    let threads = blamed_threads(&list, &seen.occupancy);
    let metadata = metadata.clone();
    Ok(Explanations { metadata, question, begins, list, counts, lost, recorded, threads, steal })
}

/// Why records that must have been are not there.
fn doubt(recorded: &RecordedEvents, lost: Lost) -> Cause {
    match recorded.beginning() {
        _ if !recorded.missing_of_jobs().is_empty() => Cause::Unrecorded,
        _ if lost.programs > 0 => Cause::Uncertain,
        Beginning::UnderWay => Cause::Unheard,
        _ => Cause::Unclear,
    }
}

fn blamed_threads(list: &[Explanation], occupancy: &Occupancy) -> BTreeMap<u32, String> {
    let totals = list
        .iter()
        .flat_map(|one| one.totals.iter().chain(one.because.iter().flat_map(|because| &because.totals)));
    let threads = totals.filter_map(|total| match total.blamed {
        Blamed::Thread(thread) => Some(thread),
        _ => None,
    });
    threads.filter_map(|thread| Some((thread, occupancy.thread_name(thread)?.to_owned()))).collect()
}

/// The intervals of a whole response, from what is known of its hops.
struct Builder {
    end: Instant,
    cursor: Instant,
    intervals: Vec<Interval>,
    sums: Sums,
}

impl Builder {
    fn new(from: Instant, end: Instant) -> Self {
        Builder { end, cursor: from, intervals: Vec::new(), sums: Sums::new() }
    }

    /// The intervals of a hop, as far as they are not before what is known so far.
    fn join_rest(&mut self, pieces: Pieces) {
        let (intervals, _) = pieces.finish();
        for interval in intervals {
            let from = interval.from.max(self.cursor);
            let to = interval.to.min(self.end);
            // Otherwise there is a gap, which the caller fills with doubt.
            if from < to && from == self.cursor {
                let interval = Interval { from, to, ..interval };
                add(&mut self.sums, &interval);
                self.intervals.push(interval);
                self.cursor = to;
            }
        }
    }

    /// The time up to `to` had this cause; nothing if that is past already.
    fn put(&mut self, to: Instant, hop: usize, cause: Cause) {
        let to = to.min(self.end);
        if to > self.cursor {
            let interval = Interval { from: self.cursor, to, hop, stage: Stage::Coming, cause };
            add(&mut self.sums, &interval);
            self.intervals.push(interval);
            self.cursor = to;
        }
    }

    /// The intervals of a hop, which begin where the ones so far end.
    fn join(&mut self, pieces: Pieces) {
        let (intervals, sums) = pieces.finish();
        let whole = intervals.first().is_none_or(|first| first.from == self.cursor)
            && intervals.last().is_none_or(|last| last.to <= self.end);
        if whole {
            for (key, (ns, count)) in sums {
                let sum = self.sums.entry(key).or_default();
                *sum = (sum.0.saturating_add(ns), sum.1 + count);
            }
            self.cursor = intervals.last().map_or(self.cursor, |last| last.to);
            self.intervals.extend(intervals);
        }
        // Otherwise the records contradict each other; the caller fills the gap with doubt.
    }
}

fn build(
    metadata: &Metadata,
    (recorded, doubt): (&RecordedEvents, Cause),
    target: &Target,
    index: usize,
    seen: &mut Observations,
) -> Explanation {
    let Target { subject, outcome, arrival, deadline, end, .. } = *target;
    let skipped = matches!(outcome, Outcome::Skipped { .. });
    let mut builder = Builder::new(arrival, end);
    for (position, hop) in target.path.iter().enumerate() {
        match position.checked_sub(1) {
            _ if !recorded.has(Event::RELEASE) => builder.put(hop.released, position, Cause::Unrecorded),
            None if is_first(metadata, hop) => {
                let task = &metadata.tasks[metadata.operations[hop.job.operation.index()].task];
                let until_due = if task.inherits_deadline { Cause::Releaser } else { Cause::Jitter };
                before_first(&mut builder, target, (hop, until_due), seen.releases.get(&index), recorded);
            }
            None => builder.put(hop.released, 0, doubt),
            Some(before) => between(metadata, &mut builder, &target.path[before], hop, position, recorded),
        }
        if let Some(pieces) = seen.pieces.remove(&(index, position)) {
            builder.join(pieces);
        }
        let until = hop.ended.unwrap_or_else(|| target.until(hop));
        builder.put(until, position, doubt);
    }
    let last_hop = target.path.len().saturating_sub(1);
    if !skipped {
        let tail = match target.path.last().filter(|hop| hop.ended.is_some() && recorded.has(Event::RELEASE))
        {
            Some(hop) if target.awaits_message => Cause::Message { of: hop.job },
            // A guard may hold what follows.
            Some(_) if !recorded.has(Event::SIGNAL) => Cause::Unrecorded,
            _ => doubt,
        };
        if let Some(stranding) = target.stranding {
            builder.put(stranding.at(), last_hop, tail);
            builder.put(end, last_hop, stranding.cause());
        }
        builder.put(end, last_hop, tail);
        assert_exact(&builder.intervals, arrival, end);
    }
    let hops = target.path.clone();
    let totals = totals(&builder.sums);
    let intervals = builder.intervals;
    let stranding = target.stranding;
    let events = taken(target, index, seen);
    Explanation {
        subject,
        outcome,
        arrival,
        deadline,
        end,
        hops,
        events,
        intervals,
        totals,
        stranding,
        because: None,
        stands_for_it: target.stands_for_it,
    }
}

/// What the jobs on the target's path took of channels.
fn taken(target: &Target, index: usize, seen: &mut Observations) -> Vec<TakenEvent> {
    let places = (0..target.path.len()).map(|position| (index, position));
    places.filter_map(|place| seen.events.remove(&place)).flatten().collect()
}

/// From the arrival to the release of the first job; up to when that is due `until_due` counts.
fn before_first(
    builder: &mut Builder,
    target: &Target,
    (hop, until_due): (&Hop, Cause),
    release: Option<&Release>,
    recorded: &RecordedEvents,
) {
    let timer = if recorded.has(Event::TIMER) { Cause::Timer } else { Cause::Unrecorded };
    builder.put(target.due.min(hop.released), 0, until_due);
    let opened = if hop.is_released { target.opened.unwrap_or(target.due) } else { hop.released };
    let meant = target.due.max(opened).min(hop.released);
    builder.put(meant, 0, Cause::Guard);
    let woken = target.woken.unwrap_or(hop.released).clamp(meant, hop.released);
    // Idle for less than a moment, it was on the way.
    let detained = release.iter().flat_map(|release| &release.detained);
    for (from, to, cause) in detained.filter(|(_, _, cause)| *cause != Cause::Idle) {
        builder.put((*from).min(woken), 0, timer);
        builder.put((*to).min(woken), 0, *cause);
    }
    builder.put(woken, 0, timer);
    builder.put(hop.released, 0, Cause::Releasing);
}

/// Whether the hop's job waits for no other one.
fn is_first(metadata: &Metadata, hop: &Hop) -> bool {
    metadata.operations[hop.job.operation.index()].predecessors.is_empty()
}

/// From the completion of a job to the release of the next one on the path.
fn between(
    metadata: &Metadata,
    builder: &mut Builder,
    before: &Hop,
    hop: &Hop,
    position: usize,
    recorded: &RecordedEvents,
) {
    let node = |job: JobId| metadata.lanes[metadata.operations[job.operation.index()].lane].node;
    let (signalled, opened) = hop.held.unwrap_or((hop.released, hop.released));
    if node(before.job) == node(hop.job) {
        builder.put(signalled, position, Cause::Handover);
        guarded(builder, opened, hop, position);
        return;
    }
    if !recorded.has(Event::RECEIVE) {
        builder.put(hop.released, position, Cause::Unrecorded);
        return;
    }
    let received = hop.received.unwrap_or(signalled).min(signalled);
    builder.put(received, position, Cause::Message { of: before.job });
    builder.put(signalled, position, Cause::Dispatch { kind: Some(talea_record::CostKind::Delivery) });
    guarded(builder, opened, hop, position);
}

/// From the signal to the release of a job with a guard, which opens at `opened`.
fn guarded(builder: &mut Builder, opened: Instant, hop: &Hop, position: usize) {
    builder.put(opened, position, Cause::Guard);
    builder.put(hop.released, position, Cause::Releasing);
}

/// # Panics
/// If the intervals do not follow each other without gaps from `arrival` to `end`.
fn assert_exact(intervals: &[Interval], arrival: Instant, end: Instant) {
    let mut cursor = arrival;
    for interval in intervals {
        assert!(
            interval.from == cursor && interval.to > cursor,
            "an interval begins where the last one ended"
        );
        cursor = interval.to;
    }
    assert_eq!(cursor, end, "the intervals add up to the response time");
}

fn totals(sums: &Sums) -> Vec<Total> {
    let mut by_cause: BTreeMap<(Kind, Blamed), Total> = BTreeMap::new();
    for (&(stage, kind, blamed), &(ns, count)) in sums {
        let none = Duration::ZERO;
        let fresh = Total { kind, blamed, coming: none, waiting: none, begun: none, intervals: 0 };
        let total = by_cause.entry((kind, blamed)).or_insert(fresh);
        let part = match stage {
            Stage::Coming => &mut total.coming,
            Stage::Waiting => &mut total.waiting,
            Stage::Begun => &mut total.begun,
        };
        *part += Duration::from_nanos(ns);
        total.intervals += count;
    }
    let mut totals: Vec<Total> = by_cause.into_values().collect();
    totals.sort_by_key(|total| std::cmp::Reverse(total.sum()));
    totals
}
