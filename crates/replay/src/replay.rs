//! Doing the steps of a recorded run again.

use crate::answers::{Answering, Answers, PostNow, RecordedPost};
use crate::compare::{compare, compare_posts, compare_pushes};
use crate::report::{Compared, NotCalled, OutputReport, PostedReport, ReplayReport, What};
use crate::steps::{End, Ending, Missing, Pushes, Recorded, Step, Steps, Taken};
use crate::unverified::Unverified;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use talea_model::{OperationId, PublicationId, System};
use talea_notification::declared;
use talea_operation::{
    DeclaredOperation, Encoded, Operation, OperationErrors, Operations, PostingRoom, PushedBytes, Reach,
    ReplayWorkplace, Stamp, Wiring,
};
use talea_policy::demand;
use talea_policy::job::Job;
use talea_policy::strategy::{NodeAnomaly, plan_lanes_of};
use talea_record::difference::{
    Difference as TableDifference, connection_differences, declaration_differences, list_differences,
    schedule_differences,
};
use talea_record::event::{Post, Typed, ValueLost};
use talea_record::values::{KeptOf, KeptValue, MOST_BYTES, ValueReader};
use talea_record::{Definition, JobId, Metadata, Origin, PostOutcome, Record, Sink, ValueLoss};
use talea_time::Instant;
use thiserror::Error;

/// Why a run cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The trace is of another system.
    #[error(
        "the trace is of another system: it has {trace}, and the description has {description}; replay it with what was run then{}",
        besides(differences)
    )]
    OtherSystem {
        /// What the trace has, and the description does not.
        trace: String,
        /// What the description has in its place.
        description: String,
        /// What else differs.
        differences: Vec<TableDifference>,
    },
    /// The description cannot be run, so the trace is not of a run of it.
    #[error("the description cannot be run: {}", .0.iter().map(|one| format!("{}: {}", one.node, one.anomaly)).collect::<Vec<_>>().join("; "))]
    Anomalies(Vec<NodeAnomaly>),
    /// The trace has no values of outputs, no events, neither taken nor pushed, nothing that was read from outside, and not what was posted.
    #[error(
        "the trace keeps neither values nor events; record them with `--keep-values`, or `Run::keep_values`"
    )]
    NoValues,
    /// The code does not fit the system: all that is wrong.
    #[error(transparent)]
    Operations(#[from] OperationErrors),
}

/// A job that has begun.
#[derive(Debug)]
struct Begun {
    started: Instant,
    /// Whether it has what it had then.
    is_intact: bool,
}

/// What is replayed of an operation.
struct Replayed {
    operation: Operation,
    /// The job that has taken values last and has not ended.
    holder: Option<JobId>,
    /// Whether all its jobs have been done again as they were, so that it has kept what it kept then.
    is_on_track: bool,
    taken: TakenBeside,
}

impl Replayed {
    /// What its jobs do besides, or have had besides, is not in the trace: they are not done again.
    fn is_outside(&self) -> bool {
        self.operation.is_outside() || self.taken == TakenBeside::Unkept && self.operation.has_code()
    }
}

/// What jobs of an operation take beside values: events, or what they read from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakenBeside {
    Nothing,
    /// Events that are in the trace.
    Events,
    /// What they read, which is in the trace.
    Reads,
    /// It is not in the trace.
    Unkept,
}

impl TakenBeside {
    fn of((system, metadata): (&System, &Metadata), id: OperationId, operation: &Operation) -> Self {
        match (system.takes_events(id), operation.reads()) {
            (false, None) => TakenBeside::Nothing,
            (false, Some(_)) if metadata.operations[id.index()].keeps_reads => TakenBeside::Reads,
            // A run of several processes says only that they were to be kept.
            (true, _) if metadata.keeps_events_of(id) && operation.events_are_bytes() => TakenBeside::Events,
            _ => TakenBeside::Unkept,
        }
    }
}

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
    /// Ends of jobs that were posted, by the job that posted them and has not ended: they have their turn when that is called again, since their
    /// handles may lead to what it leaves for them.
    posted_within: HashMap<JobId, Vec<End>>,
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
        // What is pushed waits in channels of which nobody takes anything, and goes when it is too much.
        let operations = declared::connect(&system, operations, declared::Room::NONE);
        let assembled = operations.assemble_as(&system, &Wiring { is_replay: true, ..Wiring::WHOLE })?;
        let replayed = |(operation, described): (Option<Operation>, &talea_model::Operation)| {
            let operation = operation?;
            let taken = TakenBeside::of((&system, metadata), described.id, &operation);
            Some(Replayed { operation, holder: None, is_on_track: true, taken })
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
            posted_within: HashMap::new(),
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
        // Of those who posted these the trace has no end.
        let mut left: Vec<End> = std::mem::take(&mut self.posted_within).into_values().flatten().collect();
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

    fn go_on(&mut self, is_over: bool) {
        while let Some(step) = self.steps.next(is_over) {
            match step {
                Step::Begin { job, at } => {
                    self.begun.insert(job, Begun { started: at, is_intact: true });
                }
                Step::Take { job, taken } => self.take(job, taken),
                Step::End(end) => self.end(end),
                Step::Gap => {
                    self.has_gaps = true;
                    self.operations.iter_mut().flatten().for_each(|replayed| replayed.is_on_track = false);
                }
            }
        }
    }

    fn take(&mut self, job: JobId, Taken { input, newest, values }: Taken) {
        let site = &self.system.inputs()[input];
        let Some(replayed) = &mut self.operations[job.operation.index()] else { return };
        if replayed.holder.is_some_and(|holder| holder != job) {
            replayed.operation.put_back();
        }
        replayed.holder = Some(job);
        let Some(newest) = newest else { return };
        let visible_at = self.answers.get(&job).and_then(|answers| answers.visible_at(input));
        let is_there = replayed.operation.take_again(site.index, newest, values, visible_at);
        let is_verified = self.unverified.take(site, newest, values);
        if let Some(begun) = self.begun.get_mut(&job) {
            begun.is_intact &= is_there && is_verified;
        }
    }

    /// The job has ended, and so those have their turn that it posted and that ended before.
    fn end(&mut self, end: End) {
        let by = self.answers.get(&end.job).and_then(|answers| answers.posted_by);
        if let Some(by) = by.filter(|by| self.begun.contains_key(by)) {
            return self.posted_within.entry(by).or_default().push(end);
        }
        let mut ended = std::collections::VecDeque::from([end]);
        while let Some(end) = ended.pop_front() {
            let job = end.job;
            self.end_in_turn(end);
            ended.extend(self.posted_within.remove(&job).into_iter().flatten());
        }
    }

    fn end_in_turn(&mut self, end: End) {
        end.taken.iter().for_each(|taken| self.take(end.job, *taken));
        let (begun, answers) =
            (self.begun.remove(&end.job), self.answers.remove(&end.job).unwrap_or_default());
        if let Some(workplace) = &self.workplace {
            workplace.reach(end.at);
            self.take_declared();
        }
        if self.is_posted(end.job)
            && let Some(why) = self.reason_not_to_call(end.job, &answers)
        {
            return self.leave_out(&end, why);
        }
        let Some(replayed) = &mut self.operations[end.job.operation.index()] else { return };
        // That of a job whose beginning was lost, too: it is as if nothing was known of what it took.
        let Begun { started, mut is_intact } = begun.unwrap_or(Begun { started: end.at, is_intact: false });
        let is_outside = replayed.is_outside();
        let operation = &mut replayed.operation;
        if let Some(beside) = &end.beside {
            is_intact &= match (replayed.taken, beside) {
                (TakenBeside::Reads, Recorded::Bytes(bytes)) => operation.read_again(Some(bytes)),
                (TakenBeside::Reads, Recorded::Awaited | Recorded::Unrecorded) => {
                    operation.read_again(None);
                    false
                }
                (_, Recorded::Bytes(bytes)) => operation.take_events_again(end.job.instance, bytes),
                (_, Recorded::Awaited | Recorded::Unrecorded) => false,
            };
        }
        let is_done = match end.how {
            Ending::Completed => true,
            // Simulations call code when its job has done its work, and after that it may wait for room.
            Ending::Aborted | Ending::Unbegun if self.is_simulated => answers.returned.is_some(),
            Ending::Aborted => true,
            Ending::Unbegun => false,
        };
        let is_called = is_done && !is_outside;
        let posting = (self.workplace.as_ref(), self.tables.keeps_posts);
        let answering = Answering::new(&answers, answers.returned.unwrap_or(end.at), posting);
        is_intact &= !end.pushes.may_lack_a_refusal();
        let refused = end.pushes.kept.iter().filter(|(_, _, bytes)| bytes.is_empty());
        operation.refuse_again(refused.map(|(_, number, _)| *number).collect());
        let panicked = if is_called {
            self.report.called += 1;
            let job = job_of(&self.system, &self.tables, &end, answers.released);
            let name = self.tables.operations[end.job.operation.index()].name.as_str();
            let handle = answers.handle.unwrap_or(0);
            // What the code keeps is its own business, as in a run.
            let code = AssertUnwindSafe(|| operation.call(&answering, name, &job, started, handle));
            let panicked = catch_unwind(code).err().map(text_of);
            if end.how == Ending::Completed {
                operation.push_events(&answering, end.job.instance);
            }
            panicked
        } else {
            self.report.outside += u64::from(is_done && is_outside);
            None
        };
        if replayed.holder == Some(end.job) {
            operation.leave(end.job.instance);
            replayed.holder = None;
        } else {
            operation.leave_events(end.job.instance);
        }
        let is_answered = answering.has_known() && !operation.has_read_otherwise();
        replayed.is_on_track &= !is_called || is_intact && is_answered;
        let pushed = operation.pushed();
        let posted = answering.posted();
        self.settle_pushes(&end, is_called, pushed, panicked.as_deref());
        if is_called {
            self.settle_posts(&end, &answers.posts, &posted, panicked.as_deref());
        }
        if self.is_posted(end.job) {
            return;
        }
        if end.how != Ending::Completed {
            if let Some(replayed) = &mut self.operations[end.job.operation.index()] {
                replayed.operation.discard();
            }
            return;
        }
        self.settle_outputs(&end, is_called, panicked);
        self.publish(&end);
    }

    /// The trace may end between a job and what it published, or pushed.
    fn is_cut(&self, end: &End) -> bool {
        let lane = self.tables.operations[end.job.operation.index()].lane;
        !end.is_settled && !self.ended[self.tables.lanes[lane].node]
    }

    /// The job's number, and when it ended after the start, in nanoseconds.
    fn known_as(&self, end: &End) -> (u64, i64) {
        (end.job.instance, end.at.as_nanos().saturating_sub(self.tables.start.as_nanos()))
    }

    /// Whether it is a job of work that was posted.
    fn is_posted(&self, job: JobId) -> bool {
        job.operation.index() >= self.system.operations().len()
    }

    /// Operations that have been declared are those of the same names that the trace has.
    fn take_declared(&mut self) {
        let Some(workplace) = &self.workplace else { return };
        let new = workplace.take_new();
        if new.is_empty() {
            return;
        }
        self.not_posted.extend(new);
        self.find_declared();
    }

    /// The same of those that the trace did not have before.
    fn find_declared(&mut self) {
        let described = self.system.operations().len();
        for declared in std::mem::take(&mut self.not_posted) {
            let DeclaredOperation { declaration, placement, .. } = &declared;
            let mut posted = self.tables.operations.iter().skip(described);
            let Some(place) = posted.position(|entry| entry.name == declaration.name) else {
                self.not_posted.push(declared);
                continue;
            };
            let (wcet, lane) = (declaration.wcet, (placement.node, placement.level));
            let dates = (declaration.deadline, declaration.criticality);
            let differences = declaration_differences(&self.tables, described + place, (wcet, lane), dates);
            self.report.differences.extend(differences);
            let (is_on_track, taken) = (!self.has_gaps, TakenBeside::Nothing);
            let operation = declared.operation;
            self.operations[described + place] =
                Some(Replayed { operation, holder: None, is_on_track, taken });
        }
    }

    /// Why a job of posted work is not called again, if it is not.
    fn reason_not_to_call(&self, job: JobId, answers: &Answers) -> Option<NotCalled> {
        let place = job.operation.index();
        if self.tables.operations[place].is_of_channel {
            return Some(NotCalled::OfChannel);
        }
        let Some(replayed) = &self.operations[place] else { return Some(NotCalled::NotDeclared) };
        match answers.handle {
            _ if replayed.is_outside() => Some(NotCalled::Outside),
            None => Some(NotCalled::Lost),
            Some(_) => None,
        }
    }

    /// A job of posted work is not called again.
    fn leave_out(&mut self, end: &End, why: NotCalled) {
        if end.how != Ending::Completed {
            return;
        }
        let place = end.job.operation.index();
        let jobs = self.not_called.entry((place, why)).or_default();
        *jobs += 1;
        let is_first = *jobs == 1;
        match why {
            NotCalled::NotDeclared if is_first && self.workplace.is_some() => {
                let declared = self.workplace.as_ref().map_or_else(Vec::new, ReplayWorkplace::names);
                let (what, job) = (What::NotDeclared { declared }, self.known_as(end));
                let row = self.report.row_of_posts(&self.tables.operations[place].name);
                self.report.count(Compared::Post { row, post: None }, job, true, Some(what));
            }
            NotCalled::Lost => {
                if let Some(replayed) = &mut self.operations[place] {
                    replayed.is_on_track = false;
                }
            }
            NotCalled::Outside => self.report.outside += 1,
            NotCalled::NotDeclared | NotCalled::OfChannel | NotCalled::NotRecorded => {}
        }
    }

    /// Compares what the job posted with what was recorded.
    fn settle_posts(
        &mut self,
        end: &End,
        recorded: &[RecordedPost],
        now: &[PostNow],
        panicked: Option<&str>,
    ) {
        let place = end.job.operation.index();
        let Some(replayed) = self.operations[place].as_ref().filter(|_| self.tables.keeps_posts) else {
            return;
        };
        let (is_on_track, job) = (replayed.is_on_track, self.known_as(end));
        let name = self.tables.operations[place].name.clone();
        // Where nothing can be declared, nothing can be posted either.
        let comparable = if self.workplace.is_some() { recorded.len().max(now.len()) } else { 0 };
        for post in 0..comparable {
            let (recorded, now) = (recorded.get(post), now.get(post));
            let recorded = recorded.map(|recorded| {
                let operation = &self.tables.operations[recorded.job.operation.index()].name;
                (operation.as_str(), recorded.handle)
            });
            let now = now.map(|now| (now.operation.as_str(), now.handle));
            let Some((posted, _)) = recorded.or(now) else { continue };
            let row = self.report.row_of_posts(&format!("{name}>{posted}"));
            let what = compare_posts(recorded, now, panicked);
            self.report.count(Compared::Post { row, post: Some(post) }, job, is_on_track, what);
        }
        let was_posted = self.is_posted(end.job) && end.how == Ending::Completed;
        if let Some(message) = panicked.filter(|_| was_posted) {
            let what = What::CompletedThen { message: message.to_owned() };
            let row = self.report.row_of_posts(&name);
            self.report.count(Compared::Post { row, post: None }, job, is_on_track, Some(what));
        }
    }

    /// A job of the description posted then, and its operation has no code now.
    fn was_posted_by_silent(&mut self, by: JobId, job: JobId, at: Instant) {
        if self.workplace.is_none() || !self.tables.keeps_posts {
            return;
        }
        let post = self.silent.filter(|(other, _)| *other == by).map_or(0, |(_, posts)| posts);
        self.silent = Some((by, post + 1));
        let name = |job: JobId| self.tables.operations[job.operation.index()].name.as_str();
        let row = format!("{}>{}", name(by), name(job));
        let row = self.report.row_of_posts(&row);
        let since_start = at.as_nanos().saturating_sub(self.tables.start.as_nanos());
        let known_as = (by.instance, since_start);
        let compared = Compared::Post { row, post: Some(post) };
        self.report.count(compared, known_as, !self.has_gaps, Some(What::NothingNow));
    }

    /// Compares what the job pushed with what was recorded.
    fn settle_pushes(
        &mut self,
        end: &End,
        is_called: bool,
        pushed: Vec<PushedBytes>,
        panicked: Option<&str>,
    ) {
        let Some(replayed) = &self.operations[end.job.operation.index()] else { return };
        let (is_on_track, is_cut) = (replayed.is_on_track, self.is_cut(end));
        // In the order in which they were pushed, so that the first difference is that of the job.
        let mut found: Vec<(u16, usize, usize, Option<What>)> = Vec::new();
        for site in self.system.publications().iter().filter(|site| site.operation == end.job.operation) {
            let place = site.id.index();
            let row = &mut self.report.publications[place];
            if !self.kept_pushes[place] {
                continue;
            }
            let missing = end.pushes.missing(place as u32);
            if missing > 0 {
                row.unrecorded += missing as u64;
                continue;
            }
            if !is_called {
                continue;
            }
            let then = end.pushes.kept.iter().filter(|(publication, ..)| *publication as usize == place);
            let mut then = then.map(|(_, number, bytes)| (*number, &bytes[..]));
            let mut now = pushed.iter().filter(|push| push.publication == site.id);
            for push in 0.. {
                let (recorded, now) = (then.next(), now.next());
                let (turn, what) = match (recorded, now) {
                    (None, None) => break,
                    (None, Some(_)) if is_cut => {
                        row.unrecorded += 1;
                        continue;
                    }
                    (None, Some(now)) => (now.number, Some(What::NothingThen)),
                    (Some((number, _)), None) => {
                        let message = panicked.map(str::to_owned);
                        let panicked = |message| What::Panicked { message };
                        (number, Some(message.map_or(What::NothingNow, panicked)))
                    }
                    (Some((number, recorded)), Some(now)) => {
                        let what = match &now.bytes {
                            Some(bytes) => compare_pushes((number, recorded), (now.number, bytes)),
                            None => {
                                let recorded_length = recorded.len();
                                Some(What::TooLongNow { recorded_length, most: MOST_BYTES })
                            }
                        };
                        (number.min(now.number), what)
                    }
                };
                found.push((turn, place, push, what));
            }
        }
        found.sort_by_key(|(turn, ..)| *turn);
        let job = self.known_as(end);
        for (_, publication, push, what) in found {
            self.report.count(Compared::Push { publication, push }, job, is_on_track, what);
        }
    }

    /// Compares what the job wrote with what was recorded, and puts that in its place.
    fn settle_outputs(&mut self, end: &End, is_called: bool, panicked: Option<String>) {
        let (is_cut, job) = (self.is_cut(end), self.known_as(end));
        let Some(replayed) = &mut self.operations[end.job.operation.index()] else { return };
        let is_on_track = replayed.is_on_track;
        let sites = self.system.outputs_of(end.job.operation);
        for (port, site) in replayed.operation.outputs().zip(sites) {
            let place = site.id.index();
            let recorded = end.published.get(&(place as u32));
            let row = &mut self.report.outputs[place];
            if !self.kept[place] {
                if recorded.is_some() {
                    self.unverified.publish(site.id, end.job.instance);
                }
                continue;
            }
            let now = port.encode(&mut self.buffer);
            let what = match (recorded, now) {
                (Some(Recorded::Bytes(recorded)), Encoded::Bytes(length)) => {
                    Some(compare(recorded, &self.buffer[..length]))
                }
                (Some(Recorded::Bytes(recorded)), Encoded::NoRoom) => {
                    Some(Some(What::TooLongNow { recorded_length: recorded.len(), most: MOST_BYTES }))
                }
                (Some(Recorded::Bytes(_)), Encoded::Nothing) => Some(Some(match &panicked {
                    Some(message) => What::Panicked { message: message.clone() },
                    None => What::NothingNow,
                })),
                (None, Encoded::Nothing) => Some(None),
                (None, Encoded::Bytes(_) | Encoded::NoRoom) if is_cut => {
                    row.unrecorded += 1;
                    None
                }
                (None, Encoded::Bytes(_) | Encoded::NoRoom) => Some(Some(What::NothingThen)),
                (Some(Recorded::Awaited | Recorded::Unrecorded), _) => {
                    row.unrecorded += 1;
                    self.unverified.publish(site.id, end.job.instance);
                    None
                }
            };
            match recorded {
                Some(Recorded::Bytes(bytes)) => {
                    if what != Some(None) && !port.decode(bytes) {
                        port.discard();
                    }
                }
                Some(Recorded::Awaited | Recorded::Unrecorded) => {}
                None => port.discard(),
            }
            if let Some(what) = what.filter(|_| is_called) {
                self.report.count(Compared::Output(place), job, is_on_track, what);
            }
        }
    }

    fn publish(&mut self, end: &End) {
        let Some(replayed) = &mut self.operations[end.job.operation.index()] else { return };
        let sites = self.system.outputs_of(end.job.operation);
        let stamp = Stamp { instance: end.job.instance, visible_at: end.visible };
        let reach = |output: usize, reader: usize| {
            let input = sites[output].readers[reader].index() as u32;
            if end.dropped.contains(&input) { Reach::Not } else { Reach::From(end.visible) }
        };
        replayed.operation.publish_to(stamp, reach, |_, _| (), |_, _| ());
    }

    fn ended(&mut self, record: Record, job: JobId, how: Ending) {
        if let Some(dates) = record.dates().filter(|_| self.is_known(job)) {
            let (at, published) = (record.time, BTreeMap::new());
            let (taken, dropped) = (Vec::new(), Vec::new());
            let replayed = self.operations[job.operation.index()].as_ref();
            let takes = replayed
                .is_some_and(|replayed| matches!(replayed.taken, TakenBeside::Events | TakenBeside::Reads));
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

    fn is_push_kept(&self, publication: u32) -> bool {
        self.kept_pushes.get(publication as usize).copied().unwrap_or(false)
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
                KeptOf::Pushed { publication, number } => {
                    self.steps.pushes_of(job).keep(publication, number, bytes);
                }
            }
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
            Typed::Wait(wait) if self.is_simulated && self.is_known(wait.job) => {
                self.answers.entry(wait.job).or_default().returned.get_or_insert(record.time);
            }
            Typed::Post(Post { job, by, handle, outcome, .. }) if self.is_known(job) => {
                let outcome = outcome.known();
                match by.0 {
                    Some(by) if self.is_known(by) => {
                        self.answers.entry(by).or_default().posts.push(RecordedPost { job, handle, outcome });
                    }
                    Some(by) => self.was_posted_by_silent(by, job, record.time),
                    None => {}
                }
                if outcome == Some(PostOutcome::Posted) {
                    let answers = self.answers.entry(job).or_default();
                    (answers.handle, answers.posted_by) = (Some(handle), by.0);
                }
            }
            Typed::Answer(answer) if self.is_known(answer.job) => {
                self.answers.entry(answer.job).or_default().take(answer);
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

/// By output, whether its values can be bytes.
fn has_bytes(system: &System, operations: &mut [Option<Replayed>]) -> Vec<bool> {
    let mut has_bytes = vec![false; system.outputs().len()];
    for (operation, replayed) in system.operations().iter().zip(operations) {
        let Some(replayed) = replayed else { continue };
        for (port, site) in replayed.operation.outputs().zip(system.outputs_of(operation.id)) {
            has_bytes[site.id.index()] = port.has_bytes();
        }
    }
    has_bytes
}

/// The job as its code saw it; where its release is not the nominal one, what was recorded of it.
fn job_of(system: &System, tables: &Metadata, end: &End, released: Option<Instant>) -> Job {
    let JobId { operation, instance } = end.job;
    let described = system.operations().get(operation.index());
    let nominal = end.dates.nominal;
    let release = released.unwrap_or_else(|| match described.filter(|one| one.predecessors.is_empty()) {
        Some(first) => nominal.saturating_add(demand::release_jitter(system, first.task, instance)),
        None => nominal,
    });
    let of_posted = || tables.operations[operation.index()].wcet;
    let wcet = described.map_or_else(of_posted, |described| system.subtask(described.id).wcet);
    let deadline = end.dates.deadline;
    Job { release, deadline, wcet, rank: 0, number: instance, tag: 0 }
}

/// Holds the tables of the trace against those of the description. Returns what differs and does not keep records from being understood.
fn compare_tables(system: &System, trace: &Metadata) -> Result<Vec<TableDifference>, ReplayError> {
    let plans = plan_lanes_of(system).map_err(ReplayError::Anomalies)?;
    let described = Metadata::new(system, &plans, trace.origin, trace.start);
    let mut differences = schedule_differences(trace, &described);
    differences.extend(connection_differences(trace, &described));
    let lists = |metadata: &Metadata| {
        // Behind the operations that are described, there may be places for those that programs declare.
        let operations = metadata.operations.iter().take(described.operations.len());
        let publications = metadata.described_publications();
        [
            ("operation", names(operations.map(|operation| &operation.name))),
            ("output", names(metadata.outputs.iter().map(|output| &output.name))),
            ("input", metadata.inputs.iter().map(|input| metadata.connection(input)).collect()),
            ("publication", names(publications.map(|publication| &publication.name))),
        ]
    };
    for ((what, in_trace), (_, in_description)) in lists(trace).into_iter().zip(lists(&described)) {
        if in_trace == in_description {
            continue;
        }
        let place = in_trace.iter().zip(&in_description).take_while(|(one, other)| one == other).count();
        let shown = |list: &[String]| match list.get(place) {
            Some(name) => format!("{what} \"{name}\""),
            None => format!("no other {what}"),
        };
        let (trace, description) = (shown(&in_trace), shown(&in_description));
        return Err(ReplayError::OtherSystem { trace, description, differences });
    }
    differences.extend(list_differences(trace, &described));
    Ok(differences)
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    names.cloned().collect()
}

/// Differences that are told with a refusal.
const TOLD: usize = 8;

/// What else differs, in words.
fn besides(differences: &[TableDifference]) -> String {
    if differences.is_empty() {
        return String::new();
    }
    let mut told: Vec<String> = differences.iter().take(TOLD).map(ToString::to_string).collect();
    if differences.len() > TOLD {
        told.push(format!("and {} more", differences.len() - TOLD));
    }
    format!(". Besides, {}", told.join("; "))
}

fn text_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}
