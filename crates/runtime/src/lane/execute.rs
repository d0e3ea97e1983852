//! Running one job: from START to COMPLETE or ABORT, on whatever thread the lane chose.

use super::enforcement::{JobHost, Sleep};
use crate::flow::{JobFlow, Shared};
use crate::job_table::{Begin, Finish};
use crate::kept_events::JobKeeping;
use crate::layout::{OperationSite, Origin};
use crate::operation::Behaviour;
use crate::outcome::OperationPanic;
use crate::recorder::Subject;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use talea_linux::clock::MonotonicClock;
use talea_operation::{EventNote, FullReader, JobServices, KeptEvent, NotPosted, NotRead, Operation, Posted};
use talea_policy::demand;
use talea_policy::job::Job;
use talea_record::event::{Answer, Dates, Flag, Wait};
use talea_record::{CostKind, JobId, Question};
use talea_time::{Clock, Instant};

/// As many answers to a job that asks the time are recorded, of a consumer's for each call of its code: some ask again and again until it has come.
const TIMES_KEPT: u64 = 16;

/// How the code of a job came back.
enum Return {
    /// It ran to its end.
    Whole,
    /// It was told that the run is over and may have left early: it neither completed nor was aborted.
    CutShort,
    /// It panicked.
    Panicked,
}

/// What else of a lane wants to be executed while one of its jobs is.
pub(crate) trait OthersOfLane {
    /// Whether one of them may have to go first, which the lane did not choose: some have come since, or the chosen one has become late.
    fn may_go_first(&self) -> bool;
    /// Whether the lane, had it to choose now, would choose this job, which is not among them.
    fn let_first(&self, shared: &Shared, job: &Job, now: Instant) -> bool;
}

/// By what a job is chosen to be executed.
#[derive(Clone, Copy)]
pub(crate) enum Chosen<'a> {
    /// By its lane, which has so many jobs. If jobs of it may execute others in their midst, these wait.
    ByLane { depth: usize, waiting: Option<&'a dyn OthersOfLane> },
    /// By another job of the lane, in whose midst it is executed, and which goes on when it has ended.
    OnTheSpot { within: Subject, depth: usize },
}

impl Chosen<'_> {
    fn depth(&self) -> usize {
        let (Chosen::ByLane { depth, .. } | Chosen::OnTheSpot { depth, .. }) = self;
        *depth
    }
}

/// A job that has been chosen and is about to begin.
pub(crate) struct Candidate<'a> {
    pub id: JobId,
    shared: &'a Shared,
    job: &'a Job,
    chosen: Chosen<'a>,
}

impl Candidate<'_> {
    /// Whether others of the lane may have to go first by now.
    pub fn is_outdated(&self) -> bool {
        match self.chosen {
            Chosen::ByLane { waiting, .. } => waiting.is_some_and(OthersOfLane::may_go_first),
            Chosen::OnTheSpot { .. } => false,
        }
    }

    /// The job begins for everybody, unless it is dead or outdated.
    pub fn begin(&self) -> Begin {
        if self.is_outdated() { Begin::NotYet } else { self.shared.jobs.begin(self.job.tag, self.job.number) }
    }
}

/// Runs `job`, records it, and releases its successors without ringing. Returns whether the job ran; neither a dead nor an outdated one does.
pub(crate) fn execute<H: JobHost>(
    shared: &Shared,
    flow: &mut JobFlow,
    host: &mut H,
    job: &Job,
    chosen: Chosen<'_>,
) -> Begin {
    let id = shared.operation_of(job.tag);
    let site = shared.layout.operation(id);
    let subject = Subject { job: JobId { operation: id, instance: job.number }, lane: site.lane };
    let depth = chosen.depth().min(usize::from(u16::MAX)) as u16;
    let mut started = Instant::ZERO;
    let candidate = Candidate { id: subject.job, shared, job, chosen };
    let begun = host.start(flow, &candidate, |flow, now| {
        started = now;
        if let Chosen::OnTheSpot { within, .. } = chosen {
            flow.recorder.put(now, within.preempt(subject.job));
        }
        flow.recorder.put(now, subject.start(depth, shared.posting.poster(job.tag)));
    });
    if begun != Begin::Run {
        return begun;
    }

    let mut operation = match shared.behaviour(id) {
        Behaviour::Synthetic => None,
        Behaviour::Operation { operation, .. } => Some(operation.take()),
    };
    if let Some(operation) = &mut operation {
        flow.take_values(site, operation, (subject, job, started), shared.keeps_answers);
        if operation.has_events() {
            flow.take_events(site, operation, subject, started);
        }
    }
    let returned = call(shared, site, (job, started, chosen), operation.as_deref_mut(), (host, flow));
    if let Some(operation) = &mut operation {
        if !operation.end_reads(job.number, started) {
            flow.note(site, subject.job, (EventNote::NotKept, MonotonicClock.now()));
        }
        operation.leave(job.number);
        if matches!(returned, Return::Whole) {
            wait_for_room(site, subject, operation, (host, flow));
        }
    }

    let finish = || shared.jobs.finish(job.tag, job.number);
    let record = |flow: &mut JobFlow, end: Instant, finish: Finish| {
        flow.count_end(shared, site.node, end);
        let dates =
            Dates { nominal: site.nominal_release(job.release, job.deadline), deadline: job.deadline };
        match (returned, finish) {
            (Return::Panicked, _) | (_, Finish::Aborted) => {
                flow.recorder.put(end, subject.abort(dates, Flag(true)));
                None
            }
            (Return::CutShort, Finish::Completed) => None,
            (Return::Whole, Finish::Completed) => {
                flow.recorder.put(end, subject.complete(dates));
                Some(end)
            }
        }
    };
    let completion = match chosen {
        Chosen::ByLane { .. } => host.end(flow, finish, record),
        Chosen::OnTheSpot { within, .. } => {
            let resume = |flow: &mut JobFlow, at: Instant| flow.recorder.put(at, within.resume());
            host.end_within(flow, (finish, record), (within.job, resume))
        }
    };
    if let Origin::Trigger { .. } = site.origin
        && shared.triggering[site.task].count_end()
    {
        shared.arm_descriptor(site.task);
    }
    let Some(end) = completion else {
        if let Some(operation) = &mut operation {
            operation.discard();
        }
        return Begin::Run;
    };
    let has_ports = operation.as_ref().is_some_and(|operation| operation.has_ports());
    if !has_ports && site.successors.is_empty() {
        return Begin::Run;
    }
    // The job around one that runs on the spot still has to send its values, which are in `flow`.
    assert!(
        matches!(chosen, Chosen::ByLane { .. }),
        "only consumers run on the spot, and they have neither ports nor successors"
    );
    let began = flow.recorder.stopwatch();
    let mut now = end;
    if let Some(operation) = &mut operation {
        flow.publish(shared, site, operation, (subject, job), end);
        if site.outputs.iter().any(|output| !output.triggers.is_empty()) {
            now = host.in_turn(flow, end, |flow, now| {
                flow.release_by_values(shared, site, (end, job.deadline), now);
                now
            });
        }
        if operation.has_events() {
            push_events(shared, site, (job, chosen), operation, (host, flow));
            // Pushing takes its time, and successors are released after it.
            now = MonotonicClock.now();
        }
    }
    flow.tell_remote_successors(shared, subject, job, now);
    if site.successors.iter().any(|successor| shared.layout.operation(*successor).local.is_some()) {
        host.in_turn(flow, now, |flow, now| flow.release_successors(shared, subject, job, now));
    }
    flow.recorder.cost(began, CostKind::Delivery, Some(site.lane), site.successors.len());
    Begin::Run
}

/// The job sleeps until readers have room for what it wrote that are to be waited for, or no longer.
fn wait_for_room<H: JobHost>(
    site: &OperationSite,
    subject: Subject,
    operation: &mut Operation,
    (host, flow): (&mut H, &mut JobFlow),
) {
    operation.wait_for_room(|output, FullReader { reader, connection, limit }| {
        let until = MonotonicClock.now().saturating_add(limit);
        let sleep = || {
            let until = std::time::Duration::from_nanos(until.as_nanos().max(0).unsigned_abs());
            connection.wait_for_room(until);
        };
        let (job, input, lane) = (subject.job, site.outputs[output].readers[reader], subject.lane as u16);
        host.sleep_within(flow, job, sleep, |flow, now, sleep_event| match sleep_event {
            Sleep::Begins => flow.recorder.put(now, Wait { job, input, lane, until }),
            Sleep::IsOver => flow.recorder.put(now, subject.resume()),
        });
    });
}

/// What a job can ask of the run.
struct Services<'a, H> {
    shared: &'a Shared,
    site: &'a OperationSite,
    job: &'a Job,
    host: RefCell<&'a mut H>,
    flow: RefCell<&'a mut JobFlow>,
    chosen: Chosen<'a>,
    told_the_end: Cell<bool>,
    /// How often the time was asked, and up to which of these questions the answers are recorded.
    times_asked: Cell<u64>,
    times_kept: Cell<u64>,
    /// How often whether to stop was asked.
    stops_asked: Cell<u64>,
    was_told_to_stop: Cell<bool>,
    /// What is kept of its events.
    keeping: JobKeeping,
    /// Whether the lanes of jobs that it posts are rung for at once; else whoever executes it does so in the end.
    rings: bool,
}

impl<'a, H: JobHost> Services<'a, H> {
    /// If the job may execute one of the posted operation in its midst, should that come first in its lane: what else waits in that, and how many
    /// jobs it has. A job that was posted does not, so that nobody who pushes events when he is given some is called in his own midst.
    fn may_execute(&self, posted: Posted) -> Option<(&'a dyn OthersOfLane, usize)> {
        let Chosen::ByLane { depth, waiting } = self.chosen else { return None };
        let is_posted = |origin: &Origin| matches!(origin, Origin::Posting { .. });
        let site = self.shared.layout.operation(posted.operation.id);
        let is_allowed = self.rings
            && site.lane == self.site.lane
            && is_posted(&site.origin)
            && !is_posted(&self.site.origin)
            && self.host.borrow().may_execute_within();
        waiting.filter(|_| is_allowed).map(|waiting| (waiting, depth))
    }

    fn id(&self) -> JobId {
        JobId { operation: self.site.id, instance: self.job.number }
    }

    /// Records what the job is answered, if it is to be replayed.
    fn note(&self, what: Question, question: u64, answer: u64) {
        let (job, lane) = (self.id(), self.site.lane as u16);
        let answer = Answer { job, answer, question, lane, what: what.into() };
        self.flow.borrow_mut().recorder.put_if_wanted(MonotonicClock.now(), answer);
    }
}

impl<H: JobHost> JobServices for Services<'_, H> {
    fn now(&self) -> Instant {
        let now = MonotonicClock.now();
        if self.shared.keeps_answers {
            let question = self.times_asked.replace(self.times_asked.get() + 1);
            if question < self.times_kept.get() {
                self.note(Question::Time, question, now.as_nanos().max(0).unsigned_abs());
            }
        }
        now
    }

    fn clock(&self) -> Instant {
        MonotonicClock.now()
    }

    fn is_to_stop(&self) -> bool {
        self.host.borrow().checkpoint();
        let over = self.shared.is_over(self.site.node);
        self.told_the_end.set(self.told_the_end.get() || over);
        let stop = over || self.shared.jobs.is_stopping(self.job.tag, self.job.number);
        if self.shared.keeps_answers {
            let question = self.stops_asked.replace(self.stops_asked.get() + 1);
            if stop && !self.was_told_to_stop.replace(true) {
                self.note(Question::Stop, question, 1);
            }
        }
        stop
    }

    fn post(&self, posted: Posted) -> Result<u64, NotPosted> {
        let mut flow = self.flow.borrow_mut();
        let by = Some((self.id(), self.job.deadline));
        let release = |flow: &mut JobFlow, _| flow.post_quietly(self.shared, posted, by);
        let number = self.host.borrow_mut().in_turn(&mut flow, Instant::ZERO, release)?;
        if self.rings {
            flow.ring(self.shared);
        }
        Ok(number)
    }

    fn post_here(&self, posted: Posted, released: Option<Instant>) -> Result<u64, NotPosted> {
        let Some((waiting, depth)) = self.may_execute(posted) else { return self.post(posted) };
        let (shared, lane) = (self.shared, self.site.lane);
        let mut flow = self.flow.borrow_mut();
        let now = released.unwrap_or_else(|| MonotonicClock.now());
        let (instance, tag) = flow.post_apart(shared, posted, Some(self.id()), now)?;
        let job = shared.job(tag);
        if !waiting.let_first(shared, &job, now) {
            flow.hand_over(shared, lane, tag, now);
            flow.ring(shared);
            return Ok(instance);
        }
        let within = Subject { job: self.id(), lane };
        let mut host = self.host.borrow_mut();
        let chosen = Chosen::OnTheSpot { within, depth: depth + 1 };
        let _ = execute(shared, &mut flow, &mut **host, &job, chosen);
        shared.forget(lane, &job);
        flow.ring(shared);
        Ok(instance)
    }

    fn read(&self, buffer: &mut [u8]) -> Result<usize, NotRead> {
        self.shared.triggering[self.site.task].read(buffer)
    }

    fn note(&self, note: EventNote, at: Instant) {
        if matches!(note, EventNote::Answered { .. }) {
            self.times_kept.set(self.times_asked.get() + TIMES_KEPT);
        }
        self.flow.borrow_mut().note(self.site, self.id(), (note, at));
    }

    fn keeps_events(&self) -> bool {
        self.shared.kept_events.is_some()
    }

    fn keep(&self, event: KeptEvent, bytes: Option<&[u8]>) {
        let Some(kept_events) = &self.shared.kept_events else { return };
        if let Some(lost) = self.keeping.keep(kept_events, self.id(), event, bytes) {
            self.flow.borrow_mut().lose_event(self.site, self.id(), lost, MonotonicClock.now());
        }
    }
}

fn call<H: JobHost>(
    shared: &Shared,
    site: &OperationSite,
    (job, started, chosen): (&Job, Instant, Chosen<'_>),
    operation: Option<&mut Operation>,
    (host, flow): (&mut H, &mut JobFlow),
) -> Return {
    let (host, flow, told_the_end) = (RefCell::new(host), RefCell::new(flow), Cell::new(false));
    let (times_asked, times_kept) = (Cell::new(0), Cell::new(TIMES_KEPT));
    let (stops_asked, was_told_to_stop, rings) = (Cell::new(0), Cell::new(false), true);
    let services = Services {
        shared,
        site,
        job,
        host,
        flow,
        chosen,
        told_the_end,
        times_asked,
        times_kept,
        stops_asked,
        was_told_to_stop,
        keeping: JobKeeping::default(),
        rings,
    };
    if !operation.as_ref().is_some_and(|operation| operation.has_code()) {
        let demand = demand::execution_from(&site.exec, site.stream, job.number);
        shared.burner.burn(demand, || services.is_to_stop());
    }
    match operation {
        None => {}
        Some(operation) => {
            let handle = shared.posting.handle(job.tag);
            let code = AssertUnwindSafe(|| operation.call(&services, &site.name, job, started, handle));
            // The user's closure is called again for the next job whatever state a panic left it in;
            // what it keeps is its own business.
            if let Err(panic) = catch_unwind(code) {
                note_panic(shared, site, job, panic);
                return Return::Panicked;
            }
        }
    }
    if services.told_the_end.get() { Return::CutShort } else { Return::Whole }
}

/// A job without code has completed and pushes its events. Does not ring.
fn push_events<H: JobHost>(
    shared: &Shared,
    site: &OperationSite,
    (job, chosen): (&Job, Chosen<'_>),
    operation: &mut Operation,
    (host, flow): (&mut H, &mut JobFlow),
) {
    let (host, flow, told_the_end, rings) = (RefCell::new(host), RefCell::new(flow), Cell::new(false), false);
    let (times_asked, times_kept) = (Cell::new(0), Cell::new(0));
    let (stops_asked, was_told_to_stop) = (Cell::new(0), Cell::new(false));
    let services = Services {
        shared,
        site,
        job,
        host,
        flow,
        chosen,
        told_the_end,
        times_asked,
        times_kept,
        stops_asked,
        was_told_to_stop,
        keeping: JobKeeping::default(),
        rings,
    };
    operation.push_events(&services, job.number);
}

fn note_panic(shared: &Shared, site: &OperationSite, job: &Job, panic: Box<dyn Any + Send>) {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = text
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned());
    let operation = site.name.to_string();
    let mut panics = shared.tally.panics.lock().unwrap_or_else(PoisonError::into_inner);
    panics.push(OperationPanic { operation, instance: job.number, message });
}
