//! The way of data along a chain: of the longest latency, reaction time or data age, each stretch with its cause.
//!
//! ```text
//!   sample    release   end     visible     release          end
//!      │ timer … │ job … │ period end │ until read │ job: waiting, execution … │   then the next hop
//! ```
//! A reaction begins with the sample that was used before, and waits for the next one first. A job that had been released before the value was
//! there is told of from then on: what it did before took nothing of the time.

use super::answer::{
    Counts, ExplainError, Explanation, Explanations, Outcome, Question, Subject, Unexplainable, Which,
};
use super::cause::Cause;
use super::find::Target;
use super::life::Hop;
use super::sought::Sought;
use super::steal::StealTimes;
use super::watch::{Observations, Watcher};
use super::{Builder, assert_exact, before_first, between, blamed_threads, doubt, taken, totals};
use crate::accounting::{Chains, Measure, Way};
use std::collections::HashMap;
use talea_model::OperationId;
use talea_record::contents::{Contents, Lost};
use talea_record::event::{self, Typed};
use talea_record::{Event, HopEntry, JobId, Metadata, Record, RecordedEvents, Sink};
use talea_time::{Duration, Instant};

/// Explains the longest of these times of chains, by their indices. `replay` gives every record of the trace to a sink, in the order of time; it
/// is called three times. There is none of a chain of which no time ended.
///
/// # Errors
/// Those of `replay`, and if the trace does not tell enough.
///
/// # Panics
/// If `metadata` do not pass [`Metadata::check`], or there is no such chain.
pub fn explain_chains<E>(
    metadata: &Metadata,
    wanted: &[(usize, Measure)],
    mut replay: impl FnMut(&mut dyn Sink) -> Result<(), E>,
) -> Result<Explanations, ExplainError<E>> {
    metadata.check().expect("metadata are consistent");
    let mut first = ((WayFinder::new(metadata), Contents::new(metadata)), StealTimes::default());
    replay(&mut first)?;
    let ((finder, contents), steal) = first;
    let recorded = RecordedEvents::of(metadata, &contents);
    let hops = || wanted.iter().flat_map(|(chain, _)| &metadata.chains[*chain].hops);
    let is_bare = |hop: &HopEntry| matches!(hop, HopEntry::Successor { inputs } if inputs.is_empty());
    let are_released = hops().any(|hop| is_bare(hop) || matches!(hop, HopEntry::Triggers { .. }));
    let have_data = hops().any(|hop| !is_bare(hop));
    let has_all = recorded.has(Event::COMPLETE)
        && (!are_released || recorded.has(Event::RELEASE))
        && (!have_data || recorded.has_all(&[Event::PUBLISH, Event::TAKE]));
    if !has_all {
        let mut missing = recorded.missing_of_jobs();
        missing.extend(recorded.missing(&[Event::PUBLISH, Event::TAKE]));
        return Err(ExplainError::Unexplainable(Unexplainable::Incomplete { missing }));
    }
    let ways: Vec<(usize, Measure, Way)> = wanted
        .iter()
        .filter_map(|(chain, measure)| {
            Some((*chain, *measure, finder.chains.worst(*chain, *measure)?.clone()))
        })
        .collect();
    let mut jobs = JobFinder::new(metadata, &ways);
    replay(&mut jobs)?;
    let described: Vec<Described> = ways.into_iter().filter_map(|way| jobs.describe(way)).collect();
    let doubt = doubt(&recorded, finder.lost);
    let targets: Vec<&Target> = described.iter().map(|described| &described.target).collect();
    let mut watcher = Watcher::new(metadata, &recorded, &targets);
    replay(&mut watcher)?;
    let mut seen = watcher.finish();
    let list: Vec<Explanation> = described
        .iter()
        .enumerate()
        .map(|(index, way)| build(metadata, (&recorded, doubt), way, index, &mut seen))
        .collect();
    let threads = blamed_threads(&list, &seen.occupancy);
    let question = Question { which: Which::Chains, task: None, limit: list.len() };
    let begins = finder.begins.unwrap_or(metadata.start).max(metadata.start);
    let limits = list.iter().filter(|way| way.outcome == Outcome::Missed).count() as u64;
    let (metadata, counts, lost) = (metadata.clone(), Counts { limits, ..Counts::default() }, finder.lost);
    Ok(Explanations { metadata, question, begins, list, counts, lost, recorded, threads, steal })
}

/// The first pass: the ways that took longest.
struct WayFinder {
    chains: Chains,
    lost: Lost,
    begins: Option<Instant>,
}

impl WayFinder {
    fn new(metadata: &Metadata) -> Self {
        WayFinder { chains: Chains::of_worst(metadata), lost: Lost::default(), begins: None }
    }
}

impl Sink for WayFinder {
    fn record(&mut self, record: Record) {
        if record.event != Event::THREAD_NAME {
            self.begins.get_or_insert(record.time);
        }
        match record.typed() {
            Typed::Publish(_) | Typed::Take(_) | Typed::Deliver(_) | Typed::Receive(_) => {
                self.chains.port_event(&record);
            }
            Typed::Lost(lost) => self.lost.add(lost),
            _ if record.event.is_job() => self.chains.job_event(&record),
            _ => {}
        }
    }
}

/// The second pass: what became of the jobs on the ways.
struct JobFinder<'a> {
    metadata: &'a Metadata,
    jobs: HashMap<JobId, Sought>,
    /// From when on what a job has published is visible.
    visible: HashMap<JobId, Instant>,
    received: HashMap<JobId, Instant>,
    signalled: HashMap<JobId, Instant>,
    /// The last TIMER record's wake-up and time, by node.
    timers: Vec<Option<(Instant, Instant)>>,
}

/// A way with what became of its jobs.
struct Described {
    target: Target,
    measure: Measure,
    chain: usize,
    sample: Instant,
    /// By hop, from when on its value was visible.
    visible: Vec<Option<Instant>>,
}

impl<'a> JobFinder<'a> {
    fn new(metadata: &'a Metadata, ways: &[(usize, Measure, Way)]) -> Self {
        let jobs = ways.iter().flat_map(|(chain, _, way)| jobs_of(metadata, *chain, way));
        JobFinder {
            metadata,
            jobs: jobs.map(|job| (job, Sought::new(job))).collect(),
            visible: HashMap::new(),
            received: HashMap::new(),
            signalled: HashMap::new(),
            timers: vec![None; metadata.nodes.len()],
        }
    }

    fn job_event(&mut self, record: &Record) {
        let job = record.job();
        let Some(sought) = self.jobs.get_mut(&job) else { return };
        let Some(entry) = self.metadata.operations.get(job.operation.index()) else { return };
        let node = self.metadata.lanes[entry.lane].node;
        let timer = self.timers[node].filter(|(_, at)| *at <= record.time).map(|(woken, _)| woken);
        // No job of a chain was posted.
        sought.take(record, (timer, None));
    }

    /// The way with all of its jobs; none if the trace does not tell of one of them.
    fn describe(&self, (chain, measure, way): (usize, Measure, Way)) -> Option<Described> {
        let entry = &self.metadata.chains[chain];
        let jobs: Vec<JobId> = jobs_of(self.metadata, chain, &way).collect();
        let end = Instant::from_nanos(way.end_ns);
        let mut first = None;
        let mut path: Vec<Hop> = Vec::new();
        for job in &jobs {
            let found = self.jobs[job].clone().finish(self.metadata, end)?;
            let hop = *found.path.first()?;
            let held = self.signalled.get(job).map(|signalled| (*signalled, hop.released.max(*signalled)));
            path.push(Hop { received: self.received.get(job).copied(), held, ..hop });
            first.get_or_insert(found);
        }
        let first = first?;
        let arrival = Instant::from_nanos(way.from_ns);
        let deadline = measure.limit(entry).map_or(Instant::MAX, |limit| arrival.saturating_add(limit));
        let number = *way.instances.last()?;
        let target = Target {
            subject: Subject::Way { chain, measure, number },
            outcome: if end > deadline { Outcome::Missed } else { Outcome::Met },
            arrival,
            deadline,
            end,
            path,
            ..first
        };
        let visible = jobs.iter().map(|job| self.visible.get(job).copied()).collect();
        Some(Described { target, measure, chain, sample: Instant::from_nanos(way.sample_ns), visible })
    }
}

/// The jobs on the way along a chain, in its order.
fn jobs_of<'a>(metadata: &'a Metadata, chain: usize, way: &'a Way) -> impl Iterator<Item = JobId> + 'a {
    let operations = metadata.chains[chain].operations.iter().zip(&way.instances);
    operations.map(|(operation, instance)| JobId {
        operation: OperationId::from_index(*operation),
        instance: *instance,
    })
}

impl Sink for JobFinder<'_> {
    fn record(&mut self, record: Record) {
        match record.typed() {
            _ if record.event.is_job() => self.job_event(&record),
            Typed::Timer(timer) => {
                if let Some(last) = self.timers.get_mut(usize::from(timer.node)) {
                    *last = Some((timer.woken, record.time));
                }
            }
            Typed::Publish(publish) if self.jobs.contains_key(&publish.job) => {
                self.visible.insert(publish.job, publish.visible);
            }
            Typed::Receive(receive) if self.jobs.contains_key(&receive.job) => {
                self.received.insert(receive.job, record.time);
            }
            Typed::Signal(signal) if self.jobs.contains_key(&signal.job) => {
                self.signalled.insert(signal.job, record.time);
            }
            Typed::Guard(event::Guard { job, until, .. })
            | Typed::Open(event::Open { job, at: until, .. }) => {
                if let Some(sought) = self.jobs.get_mut(&job) {
                    sought.opened = Some(until);
                }
            }
            _ => {}
        }
    }
}

fn build(
    metadata: &Metadata,
    (recorded, doubt): (&RecordedEvents, Cause),
    way: &Described,
    index: usize,
    seen: &mut Observations,
) -> Explanation {
    let Described { target, measure, chain, sample, visible } = way;
    let Target { subject, outcome, arrival, deadline, end, .. } = *target;
    let mut builder = Builder::new(arrival, end);
    if *measure == Measure::Reaction {
        builder.put(*sample, 0, Cause::NextSample);
    }
    for (position, hop) in target.path.iter().enumerate() {
        let kind = position.checked_sub(1).map(|before| (before, &metadata.chains[*chain].hops[before]));
        match kind {
            _ if !recorded.has(Event::RELEASE) => builder.put(hop.released, position, Cause::Unrecorded),
            None => {
                let first = (hop, Cause::Jitter);
                before_first(&mut builder, target, first, seen.releases.get(&index), recorded);
            }
            // A successor that took a value of another instance was not released by it.
            Some((before, HopEntry::Successor { .. }))
                if target.path[before].job.instance == hop.job.instance =>
            {
                between(metadata, &mut builder, &target.path[before], hop, position, recorded);
            }
            Some((before, HopEntry::Triggers { .. } | HopEntry::Events)) => {
                between(metadata, &mut builder, &target.path[before], hop, position, recorded);
            }
            Some((before, HopEntry::Reads { .. } | HopEntry::TakenEvents | HopEntry::Successor { .. })) => {
                if let Some(visible) = visible[before] {
                    builder.put(visible, position, Cause::PeriodEnd);
                }
                builder.put(hop.released, position, Cause::UntilRead);
            }
        }
        if let Some(pieces) = seen.pieces.remove(&(index, position)) {
            builder.join_rest(pieces);
        }
        builder.put(hop.ended.unwrap_or(end), position, doubt);
    }
    builder.put(end, target.path.len().saturating_sub(1), doubt);
    let Builder { intervals, sums, .. } = builder;
    assert_exact(&intervals, arrival, end);
    let (hops, totals) = (target.path.clone(), totals(&sums));
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
        stranding: None,
        because: None,
        stands_for_it: None,
    }
}

/// The measures of a chain that have limits; all if none has.
pub fn limited(metadata: &Metadata, chain: usize) -> Vec<Measure> {
    let entry = &metadata.chains[chain];
    let limited = |measure: &Measure| measure.limit(entry).is_some_and(|limit| limit > Duration::ZERO);
    let measures: Vec<Measure> = Measure::ALL.into_iter().filter(limited).collect();
    if measures.is_empty() { Measure::ALL.to_vec() } else { measures }
}
