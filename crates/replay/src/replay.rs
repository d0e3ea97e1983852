//! Doing the steps of a recorded run again.

mod outcomes;
mod outputs;
mod posts;
mod pushes;
mod replayed;
mod tables;
mod turns;

pub use tables::ReplayError;

use crate::answers::{Answers, HandedEvent, RecordedPost};
use crate::report::{NotCalled, OutputReport, PostedReport, ReplayReport};
use crate::steps::{End, Ending, Missing, Pushes, Recorded, Step, Steps, Taken};
use crate::unverified::Unverified;
use outputs::has_bytes;
use replayed::{Begun, Replayed, TakenBeside};
use std::collections::{BTreeMap, HashMap};
use tables::{check_recorded, compare_tables};
use talea_model::{OperationId, PublicationId, System};
use talea_notification::declared;
use talea_operation::{DeclaredOperation, Operation, Operations, PostingRoom, ReplayWorkplace, Wiring};
use talea_policy::strategy::plan_lanes_of;
use talea_record::event::{Dates, Deliver, Post, Release, Skip, Typed, ValueLost};
use talea_record::values::{KeptOf, KeptValue, MOST_BYTES, ValueReader};
use talea_record::{Definition, JobId, Metadata, Origin, PostOutcome, Record, Sink, ValueLoss};
use talea_time::{Instant, Work};

/// Runs operations again as the records of a run tell; a [`Sink`] of these.
pub struct Replay {
    system: System,
    /// The tables of the trace, with what was defined while the run lasted.
    tables: Metadata,
    is_simulated: bool,
    /// By operation of the trace; those with code or ports, and those whose jobs were posted that are declared.
    operations: Vec<Option<Replayed>>,
    /// Where operations are declared whose jobs were posted, if they can be.
    workplace: Option<ReplayWorkplace>,
    /// What has been declared there, and the trace does not have, or not yet.
    not_posted: Vec<DeclaredOperation>,
    /// Jobs of posted work that were not called again, by operation and reason.
    not_called: BTreeMap<(usize, NotCalled), u64>,
    /// Whether records are lost.
    has_gaps: bool,
    /// By output.
    kept: Vec<bool>,
    /// By publication.
    kept_pushes: Vec<bool>,
    /// By node, whether the trace has the end of its run.
    ended: Vec<bool>,
    values: ValueReader,
    steps: Steps,
    begun: HashMap<JobId, Begun>,
    answers: HashMap<JobId, Answers>,
    /// When jobs were posted and are due, or would have been if there had been room.
    dates: HashMap<JobId, Dates>,
    /// Ends of jobs that were posted, by the job that posted them, or pushed what they were handed, and has not ended: they have their turn when that is called
    /// again, since their handles, or events, may lead to what it leaves for them.
    posted_within: HashMap<JobId, Vec<End>>,
    /// The same by the jobs whose ends these are.
    waiting_for: HashMap<JobId, JobId>,
    /// And by their operations, in their order.
    held_back: HashMap<OperationId, Vec<JobId>>,
    /// Of code that is called [by turns](talea_operation::PostedCode::by_turns): when its last call was answered of those that have been made again.
    turns: HashMap<usize, Instant>,
    /// Whether the trace has how pushes into channels of the program were answered.
    keeps_push_answers: bool,
    /// The last job that posted then and has no code now, and how often it did.
    silent: Option<(JobId, usize)>,
    unverified: Unverified,
    report: ReplayReport,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("report", &self.report).finish_non_exhaustive()
    }
}

impl Replay {
    /// A replay of a run of `system` with these operations, of which a trace has this metadata.
    ///
    /// # Errors
    /// [`ReplayError`]; no code has been called but that which registers operations.
    pub fn new(system: &System, metadata: &Metadata, operations: Operations) -> Result<Self, ReplayError> {
        let system = system.with_threads_as_tasks();
        let differences = compare_tables(&system, metadata)?;
        // Synthetic values and arrivals are drawn again as they were.
        let system = metadata.seed().map_or_else(|| system.clone(), |seed| system.with_seed(seed));
        let has_values = metadata.outputs.iter().any(|output| output.is_kept);
        let has_reads = metadata.operations.iter().any(|operation| operation.keeps_reads);
        let has_pushes = metadata.publications.iter().any(|publication| publication.is_kept);
        let has_events = system.operations().iter().any(|operation| metadata.keeps_events_of(operation.id));
        if !has_values && !has_reads && !has_pushes && !has_events && !metadata.keeps_posts {
            return Err(ReplayError::NoValues);
        }
        check_recorded(metadata)?;
        // What is pushed waits in channels of which nobody takes anything, and goes when it is too much.
        let operations = declared::connect(&system, operations, declared::Room::NONE).operations;
        let assembled = operations.assemble_as(&system, &Wiring { is_replay: true, ..Wiring::WHOLE })?;
        let replayed = |(operation, described): (Option<Operation>, &talea_model::Operation)| {
            let operation = operation?;
            let taken = TakenBeside::of((&system, metadata), described.id, &operation);
            Some(Replayed { operation, holder: None, is_on_track: true, taken, handed: None, turns: None })
        };
        let mut operations: Vec<_> =
            assembled.operations.into_iter().zip(system.operations()).map(replayed).collect();
        let kept = has_bytes(&system, &mut operations);
        let kept: Vec<bool> =
            kept.into_iter().zip(&metadata.outputs).map(|(has, output)| has && output.is_kept).collect();
        let mut kept_pushes = vec![false; system.publications().len()];
        for replayed in operations.iter_mut().flatten() {
            let is_kept = |publication: PublicationId| {
                metadata.publications.get(publication.index()).is_some_and(|publication| publication.is_kept)
            };
            for publication in replayed.operation.log_pushes(is_kept, MOST_BYTES) {
                kept_pushes[publication.index()] = true;
            }
        }
        let is_outside = |operation: OperationId| {
            let replayed = operations[operation.index()].as_ref();
            replayed.is_some_and(Replayed::is_outside)
        };
        let row = |name: &str, operation, is_kept| OutputReport::new(name, is_kept, is_outside(operation));
        let sites = system.outputs().iter().zip(&kept);
        let outputs = sites.map(|(site, is_kept)| row(&site.name, site.operation, *is_kept)).collect();
        let sites = system.publications().iter().zip(&kept_pushes);
        let publications = sites.map(|(site, is_kept)| row(&site.name, site.operation, *is_kept)).collect();
        operations.resize_with(metadata.operations.len().max(operations.len()), || None);
        Ok(Replay {
            tables: metadata.clone(),
            is_simulated: matches!(metadata.origin, Origin::Simulation { .. }),
            operations,
            workplace: None,
            not_posted: Vec::new(),
            not_called: BTreeMap::new(),
            has_gaps: false,
            kept,
            kept_pushes,
            ended: vec![false; system.nodes.len()],
            values: ValueReader::default(),
            steps: Steps::default(),
            begun: HashMap::new(),
            answers: HashMap::new(),
            dates: HashMap::new(),
            posted_within: HashMap::new(),
            waiting_for: HashMap::new(),
            held_back: HashMap::new(),
            turns: HashMap::new(),
            keeps_push_answers: false,
            silent: None,
            unverified: Unverified::of(&system),
            report: ReplayReport { outputs, publications, differences, ..ReplayReport::default() },
            buffer: vec![0; MOST_BYTES],
            system,
        })
    }

    /// Room for operations whose jobs were posted, and the way in: those that are declared there by the time at which the first of their recorded jobs has
    /// its turn are called again, found by their names.
    pub fn workplace(&mut self, room: PostingRoom) -> ReplayWorkplace {
        let plans = plan_lanes_of(&self.system).expect("the tables of the system were made with its plans");
        let workplace = ReplayWorkplace::new(&self.system, plans, room);
        self.workplace = Some(workplace.clone());
        workplace
    }

    /// All records have come. What is still awaited does not come.
    pub fn finish(mut self) -> ReplayReport {
        self.go_on(true);
        // Of those who posted these, or were called before them, the trace has no end.
        let within = std::mem::take(&mut self.posted_within);
        let never_ended = within.keys().filter(|by| !self.waiting_for.contains_key(by));
        let were_called = |by: &&JobId| self.answers.get(by).is_some_and(|answers| answers.calls.is_some());
        // What their calls have left behind is missing where others are called by turns with them.
        let missing: Vec<OperationId> = never_ended.filter(were_called).map(|by| by.operation).collect();
        missing.into_iter().for_each(|operation| self.leave_track(operation));
        let mut left: Vec<End> = within.into_values().flatten().collect();
        left.sort_by_key(|end| (end.at, end.job));
        left.into_iter().for_each(|end| self.end_in_turn(end));
        self.report.lost_records += self.values.damaged();
        let posted = self.not_called.iter().map(|((operation, why), jobs)| PostedReport {
            operation: self.tables.operations[*operation].name.clone(),
            jobs: *jobs,
            why: *why,
        });
        self.report.posted = posted.collect();
        self.report
    }

    fn ended(&mut self, record: Record, job: JobId, how: Ending) {
        if let Some(dates) = record.dates().filter(|_| self.is_known(job)) {
            let (at, published) = (record.time, BTreeMap::new());
            let (taken, dropped) = (Vec::new(), Vec::new());
            let replayed = self.operations[job.operation.index()].as_ref();
            let takes = replayed
                .is_some_and(|replayed| matches!(replayed.taken, TakenBeside::Events | TakenBeside::Reads));
            let takes =
                takes || self.is_posted(job) && self.tables.operations[job.operation.index()].keeps_events;
            // Who is aborted while it waits for room has no processor, and has done its work.
            let has_returned = self.answers.get(&job).is_some_and(|answers| answers.returned.is_some());
            let has_begun = how != Ending::Unbegun || has_returned;
            let beside = (takes && has_begun).then_some(Recorded::Awaited);
            let is_settled = false;
            let pushes = Pushes::default();
            let end = End {
                job,
                at,
                dates,
                how,
                taken,
                published,
                beside,
                pushes,
                visible: at,
                dropped,
                is_settled,
            };
            self.steps.push(Step::End(end));
        }
    }

    /// Whether it is one of the first jobs of an instance that something has triggered.
    fn is_triggered(&self, job: JobId) -> bool {
        let operation = self.system.operations().get(job.operation.index());
        operation
            .is_some_and(|one| one.predecessors.is_empty() && self.system.tasks[one.task].trigger.is_some())
    }

    /// Whether jobs of the operation have a turn.
    fn is_known(&self, job: JobId) -> bool {
        match self.is_posted(job) {
            false => self.operations[job.operation.index()].is_some(),
            true => self.tables.keeps_posts && job.operation.index() < self.operations.len(),
        }
    }
}

impl Sink for Replay {
    fn record(&mut self, record: Record) {
        if let Some(KeptValue { job, of, bytes }) = self.values.take(&record) {
            match of {
                KeptOf::Output(output) => self.steps.receive(job, output, bytes),
                KeptOf::Taken => self.steps.receive_beside(job, Recorded::Bytes(bytes)),
                KeptOf::Pushed { publication, number } => self.was_pushed(job, (publication, number), bytes),
            }
        }
        if let Typed::Release(Release { job, .. }) | Typed::Skip(Skip { job, .. }) = record.typed()
            && let Some(dates) = record.dates().filter(|_| self.is_posted(job) && self.is_known(job))
        {
            self.dates.insert(job, dates);
        }
        match record.typed() {
            Typed::Start(start) if self.is_known(start.job) => {
                self.steps.push(Step::Begin { job: start.job, at: record.time });
            }
            Typed::Take(take) if self.is_known(take.job) => {
                let site = self.system.inputs().get(take.input as usize);
                if site.is_some_and(|site| site.operation == take.job.operation) {
                    let (newest, values) = (take.from.map(|from| from.instance), take.values as usize);
                    self.steps.take(take.job, Taken { input: take.input as usize, newest, values });
                }
            }
            Typed::Complete(complete) => {
                let place = complete.job.operation.index();
                if self.is_posted(complete.job) && place < self.operations.len() && !self.tables.keeps_posts {
                    let why = match self.tables.operations[place].is_of_channel {
                        true => NotCalled::OfChannel,
                        false => NotCalled::NotRecorded,
                    };
                    *self.not_called.entry((place, why)).or_default() += 1;
                }
                self.ended(record, complete.job, Ending::Completed);
            }
            Typed::Push(push) if self.is_push_kept(push.publication) => {
                self.steps.pushes_of(push.job).tell(push.publication);
            }
            Typed::Push(push) => self.was_pushed_unkept(push),
            Typed::PushUnkept(lost) if self.is_push_kept(lost.publication) => {
                self.steps.pushes_of(lost.job).lose(lost.publication);
            }
            Typed::Abort(abort) => {
                let how = if abort.running.0 { Ending::Aborted } else { Ending::Unbegun };
                self.ended(record, abort.job, how);
            }
            Typed::Publish(publish) => {
                let is_kept = self.kept.get(publish.output as usize).copied().unwrap_or(false);
                self.steps.publish(publish.job, publish.output, publish.visible, is_kept);
            }
            Typed::ValueLost(ValueLost { job, output: None, .. }) => {
                self.steps.receive_beside(job, Recorded::Unrecorded);
            }
            Typed::ValueLost(ValueLost { job, output: Some(output), cause, .. }) => {
                let why = match cause.known() {
                    Some(ValueLoss::NoRoom) => Missing::NeverTaken,
                    Some(ValueLoss::TooLong | ValueLoss::Failed) | None => Missing::Taken,
                };
                self.steps.miss(job, output, why);
            }
            Typed::Drop(drop) => self.steps.drop_value(drop.job, drop.input),
            Typed::RunEnd(end) => {
                if let Some(ended) = self.ended.get_mut(usize::from(end.node)) {
                    *ended = true;
                }
            }
            Typed::Release(release) if self.is_simulated && self.is_known(release.job) => {
                self.answers.entry(release.job).or_default().released = Some(record.time);
            }
            // On threads, what is left out or aborted for it is recorded first, and it is released no earlier. What a guard held has said when that was.
            Typed::Release(release) if self.is_triggered(release.job) && self.is_known(release.job) => {
                let answers = self.answers.entry(release.job).or_default();
                answers.released.get_or_insert(record.time);
            }
            Typed::JobWcet(told) if self.is_known(told.job) => {
                let wcet = Work::from_nanos(told.wcet.as_nanos());
                self.answers.entry(told.job).or_default().wcet = Some(wcet);
            }
            Typed::Wait(wait) if self.is_simulated && self.is_known(wait.job) => {
                self.answers.entry(wait.job).or_default().returned.get_or_insert(record.time);
            }
            Typed::Post(Post { job, by, handle, outcome, .. }) if self.is_known(job) => {
                let outcome = outcome.known();
                match by.0 {
                    Some(by) if self.is_known(by) => {
                        let post = RecordedPost { job, handle, outcome, refused_wcet: None };
                        self.answers.entry(by).or_default().posts.push(post);
                    }
                    Some(by) => self.was_posted_by_silent(by, job, record.time),
                    None => {}
                }
                if outcome == Some(PostOutcome::Posted) {
                    let answers = self.answers.entry(job).or_default();
                    answers.handle = Some(handle);
                    answers.came_from.extend(by.0);
                }
            }
            Typed::Deliver(Deliver { job, from, publication, number, .. })
                if self.is_posted(job) && self.is_known(job) =>
            {
                let answers = self.answers.entry(job).or_default();
                answers.came_from.extend(from);
                answers.hand(number, HandedEvent { publication, from });
            }
            Typed::Answer(answer) if self.is_known(answer.job) => {
                self.answers.entry(answer.job).or_default().take(answer, record.time);
            }
            Typed::Lost(lost) if !lost.is_of_kernel() => {
                self.report.lost_records = self.report.lost_records.saturating_add(lost.records);
                self.steps.push(Step::Gap);
            }
            _ => {}
        }
        self.steps.reach(record.time);
        self.go_on(false);
    }

    // The tables of a trace have what came to them while the run lasted; those of a run that is followed have it from here.
    fn define(&mut self, definition: &Definition) {
        self.tables.define(definition);
        self.operations.resize_with(self.tables.operations.len().max(self.operations.len()), || None);
        self.find_declared();
    }
}
