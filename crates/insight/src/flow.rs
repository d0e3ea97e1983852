//! Which jobs led to a job, and what came of it: from the sensor or the event outside to what acted on it, whether or not a chain is described.
//!
//! | One job led to another because | which is told by |
//! |---|---|
//! | the other is a successor of it | the release of a job whose operation has predecessors, and their completions before; of those on other nodes, their messages |
//! | the other took a value of it | `port.take`; of an input that takes each value, of the newest one |
//! | a value of it released the other | the release of a task that values release, and what was published before; over a link, its message |
//! | the other took an event of it | `event.deliver` |
//! | it posted the other, or pushed to a consumer of the program whose delivery that is | the start of the other |
//!
//! What came of a job is found in one pass over the records, since whatever leads to something is recorded before it, between nodes as far as
//! their clocks agree. What led to a job takes a pass for each step back.

use crate::releasing::{Messages, Publications, ReleaseRule, are_apart};
use serde::Serialize;
use std::collections::{HashMap, HashSet, VecDeque};
use talea_model::OperationId;
use talea_record::contents::{Contents, Lost};
use talea_record::event::{Deliver, JobOrNone, Publish, Receive, Release, Take, Typed};
use talea_record::{CountedValues, Event, JobId, Metadata, Record, RecordedEvents, Sink, SkipReason};
use talea_time::Instant;

/// Completions of an operation that are remembered, for the joins that wait for them.
const COMPLETED: usize = 4096;

/// Which way is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To what led to a job.
    Back,
    /// To what came of it.
    Forward,
}

/// How one job led to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    /// The other is its successor, in the same instance.
    Successor,
    /// The other took a value of it, by the input of this index.
    Value(usize),
    /// A value on the output of this index released the other.
    Trigger(usize),
    /// The other took an event of it, of the publication of this index.
    Event(usize),
    /// It posted the other.
    Posted,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// It completed.
    Completed,
    /// It was aborted.
    Aborted,
}

/// A job on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which one.
    pub job: JobId,
    /// The index of the step that it is next to, on the side of the job that is asked about, and how they are linked; none for that one.
    pub next_to: Option<(usize, Link)>,
    /// How many links it is away from the job that is asked about.
    pub depth: usize,
    /// Whether an earlier step is of the same job, behind which the way goes on.
    pub is_again: bool,
    /// When it arrived, or was released by others.
    pub arrived: Option<Instant>,
    /// When it began.
    pub started: Option<Instant>,
    /// When and how it ended.
    pub ended: Option<(Instant, Ending)>,
}

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most links from the job that is asked about.
    pub depth: usize,
    /// The most jobs beside it.
    pub jobs: usize,
}

/// The jobs that led to a job, or came of it.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The job that is asked about first; whatever a step is next to stands before it. Empty if nothing tells of it, or it was left out.
    pub steps: Vec<Step>,
    /// Why the job was left out, if it was.
    pub left_out: Option<SkipReason>,
    /// Whether there is more, beyond a limit.
    pub is_cut: bool,
    /// What the trace has lost, with which links may be missing.
    pub lost: Lost,
    /// Which events it has.
    pub recorded: RecordedEvents,
}

/// The jobs that led to `job`, or came of it, as far as the records tell. `replay` gives every record of the trace to a sink, in the order of time;
/// it is called several times.
///
/// # Errors
/// Those of `replay`.
///
/// # Panics
/// If `metadata` do not pass [`Metadata::check`].
pub fn flow<E>(
    metadata: &Metadata,
    (job, direction): (JobId, Direction),
    limits: Limits,
    mut replay: impl FnMut(&mut dyn Sink) -> Result<(), E>,
) -> Result<Flow, E> {
    metadata.check().expect("metadata are consistent");
    let mut search = Search::new(metadata, (job, direction), limits);
    loop {
        let known = search.steps.len();
        search.links = Links::new(metadata);
        replay(&mut search)?;
        if direction == Direction::Forward || !search.goes_on(known) {
            break;
        }
    }
    let mut seen = (Lives::default(), Contents::new(metadata));
    seen.0.jobs.extend(search.steps.iter().map(|step| (step.job, Life::default())));
    replay(&mut seen)?;
    let (lives, contents) = seen;
    let Search { mut steps, is_cut, .. } = search;
    for step in &mut steps {
        let Life { arrived, started, ended, .. } = lives.jobs[&step.job];
        (step.arrived, step.started, step.ended) = (arrived, started, ended);
    }
    let left_out = lives.jobs[&job].left_out;
    if steps[0].arrived.is_none() && steps[0].started.is_none() && steps[0].ended.is_none() {
        steps.clear();
    }
    let recorded = RecordedEvents::of(metadata, &contents);
    Ok(Flow { steps, left_out, is_cut, lost: lives.lost, recorded })
}

/// Turns records into links.
struct Links<'a> {
    metadata: &'a Metadata,
    /// By operation: instances that completed last.
    completed: Vec<VecDeque<u64>>,
    /// By output whose values release something: what was published.
    published: Vec<Option<Publications>>,
    /// By operation: whom it has heard of by messages, by the operation of that.
    messages: Vec<Vec<(usize, Messages)>>,
    /// Whether messages are told of.
    are_told: bool,
    /// By task: the output whose values release it, and which of them.
    released_by: Vec<Option<(usize, u32, CountedValues)>>,
}

impl<'a> Links<'a> {
    fn new(metadata: &'a Metadata) -> Self {
        let mut released_by = vec![None; metadata.tasks.len()];
        for (output, entry) in metadata.outputs.iter().enumerate() {
            for releases in &entry.releases {
                released_by[releases.task] = Some((output, releases.every, releases.on));
            }
        }
        Links {
            metadata,
            completed: vec![VecDeque::new(); metadata.operations.len()],
            // Without chains a simulation may be without.
            are_told: !metadata.chains.is_empty() && metadata.tells_messages(),
            messages: (0..metadata.operations.len()).map(|_| Vec::new()).collect(),
            published: metadata
                .outputs
                .iter()
                .map(|output| (!output.releases.is_empty()).then(Publications::new))
                .collect(),
            released_by,
        }
    }

    /// Tells `found` of each job that led to one by this record: which, to which, and how.
    fn take(&mut self, record: &Record, mut found: impl FnMut(JobId, JobId, Link)) {
        match record.typed() {
            Typed::Take(Take { job, from: Some(from), input, .. }) => {
                found(from, job, Link::Value(input as usize));
            }
            Typed::Deliver(Deliver { job, from: Some(from), publication: Some(publication), .. }) => {
                found(from, job, Link::Event(publication as usize));
            }
            Typed::Publish(Publish { job, output, .. }) => {
                if let Some(Some(published)) = self.published.get_mut(output as usize) {
                    published.note(job.instance, record.time.as_nanos());
                }
            }
            Typed::Complete(complete) => {
                if let Some(completed) = self.completed.get_mut(complete.job.operation.index()) {
                    if completed.len() == COMPLETED {
                        completed.pop_front();
                    }
                    completed.push_back(complete.job.instance);
                }
            }
            Typed::Send(_) => self.are_told |= self.metadata.tells_messages(),
            Typed::Receive(Receive { job, from: JobOrNone(Some(from)), .. }) => {
                let Some(messages) = self.messages.get_mut(job.operation.index()) else { return };
                let of = from.operation.index();
                let place = messages.iter().position(|(known, _)| *known == of).unwrap_or_else(|| {
                    messages.push((of, Messages::new()));
                    messages.len() - 1
                });
                messages[place].1.note(job.instance, from.instance);
            }
            Typed::Start(start) => {
                if let Some(from) = self.metadata.posted_by(&start) {
                    found(from, start.job, Link::Posted);
                }
            }
            Typed::Release(release) => self.release(release, found),
            _ => {}
        }
    }

    fn release(&self, Release { job, nominal, .. }: Release, mut found: impl FnMut(JobId, JobId, Link)) {
        let to = job.operation.index();
        let Some(entry) = self.metadata.operations.get(to) else { return };
        let of =
            |operation: usize, instance| JobId { operation: OperationId::from_index(operation), instance };
        let heard = |of: usize| {
            let messages = self.messages[to].iter().find(|(known, _)| *known == of);
            messages.and_then(|(_, messages)| messages.heard(job.instance))
        };
        for before in &entry.predecessors {
            // Behind a join that does not wait for all it may be done, and its message under way.
            let leads = match self.are_told && are_apart(self.metadata, *before, to) {
                true => heard(*before).is_some(),
                false => self.completed[*before].iter().rev().any(|done| *done == job.instance),
            };
            if leads {
                found(of(*before, job.instance), job, Link::Successor);
            }
        }
        if let (true, Some((output, every, on))) =
            (entry.predecessors.is_empty(), self.released_by[entry.task])
        {
            let from = self.metadata.outputs[output].operation;
            let rule = ReleaseRule::of(self.metadata, (from, to), every, on);
            let published = self.published[output].as_ref();
            let releasing = heard(from).or_else(|| {
                published.and_then(|published| published.releasing(job.instance, nominal.as_nanos(), rule))
            });
            if let Some(instance) = releasing {
                found(of(from, instance), job, Link::Trigger(output));
            }
        }
    }
}

/// Finds the jobs on the way.
struct Search<'a> {
    links: Links<'a>,
    direction: Direction,
    limits: Limits,
    steps: Vec<Step>,
    /// The steps from which this pass goes on; forward those that it finds are among them.
    frontier: HashMap<JobId, usize>,
    known: HashMap<JobId, usize>,
    /// Which job is next to which step, and by what.
    links_seen: HashSet<(JobId, usize, Link)>,
    is_cut: bool,
}

impl<'a> Search<'a> {
    fn new(metadata: &'a Metadata, (job, direction): (JobId, Direction), limits: Limits) -> Self {
        let first =
            Step { job, next_to: None, depth: 0, is_again: false, arrived: None, started: None, ended: None };
        Search {
            links: Links::new(metadata),
            direction,
            limits,
            steps: vec![first],
            frontier: HashMap::from([(job, 0)]),
            known: HashMap::from([(job, 0)]),
            links_seen: HashSet::new(),
            is_cut: false,
        }
    }

    /// The next pass is about what the last one has found, if that is anything.
    fn goes_on(&mut self, known: usize) -> bool {
        let found = self.steps.iter().enumerate().skip(known).filter(|(_, step)| !step.is_again);
        self.frontier = found.map(|(index, step)| (step.job, index)).collect();
        !self.frontier.is_empty()
    }
}

impl Sink for Search<'_> {
    fn record(&mut self, record: Record) {
        let Search { links, direction, limits, steps, frontier, known, links_seen, is_cut } = self;
        links.take(&record, |from, to, link| {
            let (next_to, job) = match direction {
                Direction::Back => (to, from),
                Direction::Forward => (from, to),
            };
            let Some(&index) = frontier.get(&next_to) else { return };
            // A join is told of by each of the jobs that it waits for, and a job may take again what it had.
            if !links_seen.insert((job, index, link)) {
                return;
            }
            // A job that was posted for an event tells of the event when it takes it, which says more.
            if matches!(link, Link::Event(_)) && links_seen.remove(&(job, index, Link::Posted)) {
                let is_posted =
                    |step: &&mut Step| step.job == job && step.next_to == Some((index, Link::Posted));
                if let Some(posted) = steps.iter_mut().find(is_posted) {
                    posted.next_to = Some((index, link));
                    return;
                }
            }
            let depth = steps[index].depth + 1;
            let is_again = known.contains_key(&job);
            if !is_again && (depth > limits.depth || known.len() > limits.jobs) {
                *is_cut = true;
                return;
            }
            let next_to = Some((index, link));
            steps.push(Step { job, next_to, depth, is_again, arrived: None, started: None, ended: None });
            if !is_again {
                known.insert(job, steps.len() - 1);
                if *direction == Direction::Forward {
                    frontier.insert(job, steps.len() - 1);
                }
            }
        });
    }
}

/// What is known of a job.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    arrived: Option<Instant>,
    started: Option<Instant>,
    ended: Option<(Instant, Ending)>,
    left_out: Option<SkipReason>,
}

/// The lives of jobs.
#[derive(Default)]
struct Lives {
    jobs: HashMap<JobId, Life>,
    lost: Lost,
}

impl Sink for Lives {
    fn record(&mut self, record: Record) {
        if let Typed::Lost(lost) = record.typed() {
            self.lost.add(lost);
        }
        if !record.event.is_job() {
            return;
        }
        let Some(life) = self.jobs.get_mut(&record.job()) else { return };
        match record.typed() {
            Typed::Release(release) => life.arrived = Some(release.nominal),
            Typed::Start(_) => life.started = life.started.or(Some(record.time)),
            Typed::Complete(complete) => {
                life.arrived = life.arrived.or(Some(complete.nominal));
                life.ended = Some((record.time, Ending::Completed));
            }
            Typed::Abort(_) => life.ended = Some((record.time, Ending::Aborted)),
            Typed::Skip(skip) => life.left_out = skip.reason.known(),
            _ => {}
        }
    }
}

/// The events without which links are missing.
pub const NEEDED: [Event; 7] = [
    Event::RELEASE,
    Event::START,
    Event::COMPLETE,
    Event::RECEIVE,
    Event::PUBLISH,
    Event::TAKE,
    Event::DELIVER,
];
