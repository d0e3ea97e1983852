//! The way of a job through the run: released into a lane, completed, its successors released.
//!
//! Releases come from three kinds of threads: the release threads (first subtasks), the threads that
//! run jobs (successors), and the receiver (predecessors that ran in another process). All do the same:
//! claim the job's entry in the table, record, push its tag into the lane's inbox, and after everything
//! that belongs together has been pushed, ring. Ringing last keeps a higher lane from preempting the
//! releaser between two pushes.

use crate::alarms::Alarms;
use crate::guard_post::{GuardPost, Timers};
use crate::job_table::{Abort, Gone, InFlight, JobTable, Tag, WindowFull};
use crate::join::JoinTable;
use crate::kept_events::KeptEvents;
use crate::layout::{Layout, OperationSite, Origin};
use crate::link::{Completion, Link, reason_of};
use crate::occupancy::Processor;
use crate::operation::Behaviour;
use crate::outcome::OperationPanic;
use crate::posting_table::PostingTable;
use crate::recorder::{Recorder, Recording, Subject};
use crate::trigger_table::Triggering;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use talea_linux::burn::Burner;
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::StopFlag;
use talea_manage::Waker;
use talea_model::OperationId;
use talea_operation::{
    LostValues, NotPosted, Posted, PostedOperation, Published, call_on_this_thread, outputs_in,
};
use talea_policy::job::Job;
use talea_policy::lane::JobOrder;
use talea_policy::release::guard::{self, NO_TIMER};
use talea_policy::release::join::Heard;
use talea_record::event;
use talea_record::event::{Answer, Dates, Flag, JobOrNone, JobWcet, MessageLost, Post, Send};
use talea_record::{JobId, LossReason, PostOutcome, SkipReason, ThreadRole};
use talea_ring::bell::Bell;
use talea_ring::inbox::Sender;
use talea_time::{Clock, Duration, Instant};
use talea_transport::{ClockMapping, Message, Refusal, Sent};

/// How a lane is told that there is something in its inbox.
pub(crate) enum Call {
    /// Its thread is the kernel's to dispatch, and sleeps on the bell.
    Bell(Bell),
    /// It is stepped by a thread of the program's, which sleeps on this bell for all lanes that it steps.
    Stepper(Arc<Bell>),
    /// Its thread is a member of a managed set, to which the waker tells that it wants a processor again. Nobody is there to
    /// be told until the thread has been taken in.
    Waker {
        waker: OnceLock<Waker>,
        /// By which it is known for which job the lane wants it.
        order: JobOrder,
    },
}

impl Call {
    fn make(&self) {
        match self {
            Call::Bell(bell) => _ = bell.ring(),
            Call::Stepper(bell) => _ = bell.ring(),
            Call::Waker { waker, .. } => waker.get().into_iter().for_each(Waker::wake),
        }
    }

    fn make_for(&self, shared: &Shared, tag: Tag) {
        match self {
            Call::Bell(bell) => _ = bell.ring(),
            Call::Stepper(bell) => _ = bell.ring(),
            Call::Waker { waker, order } => {
                let precedes = |job: &Job, other: &Job, now| {
                    shared.jobs.is_dead(other.tag, other.number) || order.precedes(job, other, now)
                };
                if let Some(waker) = waker.get() {
                    waker.wake_lane_for(|| shared.job(tag), precedes);
                }
            }
        }
    }
}

/// How to reach a lane.
pub(crate) struct Port {
    /// Takes the tags of jobs: when they are released and, in a preemptive lane, again when they have ended.
    sender: Sender,
    call: Call,
    /// Jobs aborted while they waited that the lane has not dropped yet. They do not count as load.
    pub dead: AtomicU32,
}

impl Port {
    pub fn new(sender: Sender, call: Call) -> Self {
        Port { sender, call, dead: AtomicU32::new(0) }
    }

    /// The lane's bell.
    ///
    /// # Panics
    /// If the lane's thread is a member of a managed set.
    pub fn bell(&self) -> &Bell {
        match &self.call {
            Call::Bell(bell) => bell,
            Call::Stepper(bell) => bell,
            Call::Waker { .. } => unreachable!("a managed thread sleeps on its own word"),
        }
    }

    /// From now on the lane is told by `waker`: before the run begins, so that there is nothing to tell yet.
    ///
    /// # Panics
    /// If the lane has a bell, or a waker.
    pub fn connect(&self, waker: Waker) {
        let Call::Waker { waker: place, .. } = &self.call else { unreachable!("the lane has a bell") };
        assert!(place.set(waker).is_ok(), "a lane has one thread");
    }

    /// Tells the lane that there is something in its inbox. A system call at most if the lane sleeps, or has not run since
    /// it was told; to a managed set also the decision that follows, under the dispatcher's lock.
    pub fn ring(&self) {
        self.call.make();
    }

    /// The same; a managed set may be told that it is for this job.
    pub fn ring_for(&self, shared: &Shared, tag: Tag) {
        self.call.make_for(shared, tag);
    }

    /// Which of two jobs that were pushed the lane is to be rung for.
    fn first(&self, shared: &Shared, (before, tag): (Tag, Tag), now: Instant) -> Tag {
        match &self.call {
            Call::Waker { order, .. } if order.precedes(&shared.job(tag), &shared.job(before), now) => tag,
            Call::Waker { .. } | Call::Bell(_) | Call::Stepper(_) => before,
        }
    }

    /// Tells the lane that there is news of a job, without ringing.
    ///
    /// # Panics
    /// If the lane has not read the news of the job before this one. That cannot be: the lane gives a job
    /// to a slot, which tells of its end, only after it has read of its release from whoever claimed it.
    pub fn push(&self, tag: Tag) {
        let pushed = self.sender.push(tag);
        assert!(pushed.is_ok(), "two pieces of news about the job {tag}");
    }
}

/// Things that should not happen, counted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Successors that were not released because their window was full or overtaken.
    pub overflows: AtomicU64,
    /// Signals to successors that had been released without them.
    pub late: AtomicU64,
    /// Signals that came later than response bounds had promised.
    pub bound_overruns: AtomicU64,
    /// The worst of these. Only locked when a node ends, and after the run.
    pub worst_overrun: Mutex<Option<guard::BoundOverrun>>,
    /// Messages to other processes that could not be sent.
    pub unsent: AtomicU64,
    /// Messages that were not sent because the process of their node had ended.
    pub to_left: AtomicU64,
    /// Calls of triggers that found no room.
    pub triggers_refused: AtomicU64,
    /// Values of jobs that ended after the end of the period at which these were to be published.
    pub late_values: AtomicU64,
    /// Arrivals that came earlier than is declared of their tasks. Only locked when a node ends, and after the run.
    pub early_arrivals: Mutex<Vec<guard::EarlyArrivals>>,
    /// By input of the system, in other processes: values of this one's jobs that a link lost on the way there.
    pub values_lost: Box<[AtomicU64]>,
    /// Values that were too long for a message to another process.
    pub values_unsent: AtomicU64,
    /// Messages from other processes whose bytes were no values of their outputs.
    pub values_unread: AtomicU64,
    /// Elected jobs of preemptive lanes that had to wait for a thread.
    pub slot_shortages: AtomicU64,
    /// Only locked by a job that has just panicked, and after the run.
    pub panics: Mutex<Vec<OperationPanic>>,
}

impl Tally {
    /// Nothing has happened yet, in a system with so many inputs.
    pub fn new(inputs: usize) -> Self {
        Tally { values_lost: (0..inputs).map(|_| AtomicU64::new(0)).collect(), ..Tally::default() }
    }

    fn count_refused(&self, refusal: Refusal) {
        let count = if refusal == Refusal::Left { &self.to_left } else { &self.unsent };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Everything the threads of a process share.
pub(crate) struct Shared {
    pub layout: Layout,
    /// By operation number, of described operations.
    pub behaviours: Vec<Behaviour>,
    /// By input of the system.
    pub input_names: Box<[String]>,
    pub posting: PostingTable,
    pub jobs: JobTable,
    pub joins: JoinTable,
    pub timers: Timers,
    /// By task.
    pub triggering: Box<[Triggering]>,
    /// By node; `None` where nothing is guarded, and for nodes of other processes.
    pub guard_posts: Vec<Option<GuardPost>>,
    /// By lane over all nodes; `None` for lanes of other processes.
    pub ports: Vec<Option<Port>>,
    /// The way to nodes in other processes, if there are any.
    pub link: Option<Link>,
    pub processors: Vec<Processor>,
    pub burner: Burner,
    pub stop: StopFlag,
    pub gate: Gate,
    /// By node; `None` where the run's end is the node's.
    pub ends: Vec<Option<OnceLock<NodeEnd>>>,
    pub tally: Tally,
    /// Who is to be told of the end.
    pub alarms: Mutex<Vec<Alarms>>,
    /// Whether what jobs are answered is recorded, so that they can be replayed.
    pub keeps_answers: bool,
    /// Whether it is recorded with what handle jobs are posted, and what posting is answered.
    pub keeps_posts: bool,
    /// Where that goes which channels of the program hand on, and which jobs push there, if it is recorded.
    pub kept_events: Option<KeptEvents>,
}

/// How the run of a node ended whose hierarchy is lowered.
#[derive(Debug)]
pub(crate) struct NodeEnd {
    /// Why, if by itself.
    pub cause: Option<String>,
    pub at: Instant,
}

impl Shared {
    /// Whether the run is over, or that of the node.
    pub fn is_over(&self, node: usize) -> bool {
        self.stop.is_stopped() || self.ends[node].as_ref().is_some_and(|end| end.get().is_some())
    }

    /// The run of the node is over, if it is not already: as planned, or for a cause. Nobody is rung for. Without a cause this does not
    /// allocate.
    pub fn end_node(&self, node: usize, cause: Option<String>) {
        if let Some(end) = &self.ends[node] {
            // Whoever was first has said it.
            _ = end.set(NodeEnd { cause, at: MonotonicClock.now() });
        }
    }

    /// The values of connections, where each value or that of each instance is to be had, that no job had, and those that links lost which jobs of
    /// this process sent to others. To be asked when no job runs any more.
    pub fn lost_values(&self) -> Vec<LostValues> {
        let mut lost = Vec::new();
        for behaviour in &self.behaviours {
            let Behaviour::Operation { operation, .. } = behaviour else { continue };
            lost.extend(operation.take().lost(|input| self.input_names[input].clone()));
        }
        for (input, values) in self.input_names.iter().zip(&self.tally.values_lost) {
            match values.load(Ordering::Relaxed) {
                0 => {}
                values => {
                    let input = input.clone();
                    LostValues { input, dropped: 0, overtaken: 0, lost: values }.add_to(&mut lost);
                }
            }
        }
        lost
    }

    /// Whether the job is one of this process, has begun and has not ended.
    pub fn is_under_way(&self, job: JobId) -> bool {
        let local = self.layout.operation(job.operation).local;
        local.is_some_and(|local| self.jobs.is_under_way(self.jobs.tag(local, job.instance), job.instance))
    }

    /// What jobs of the operation do.
    #[inline]
    pub fn behaviour(&self, operation: OperationId) -> &Behaviour {
        let described = self.behaviours.get(operation.index());
        described.unwrap_or_else(|| self.posting.behaviour(operation.index()))
    }

    /// The operation behind a tag.
    pub fn operation_of(&self, tag: Tag) -> OperationId {
        self.layout.local[self.jobs.operation(tag)]
    }

    /// The job whose tag came through an inbox.
    pub fn job(&self, tag: Tag) -> Job {
        let site = self.layout.operation(self.operation_of(tag));
        let InFlight { instance, release, deadline } = self.jobs.in_flight(tag);
        let own = matches!(site.origin, Origin::Posting { .. }).then(|| self.posting.wcet(tag)).flatten();
        let wcet = own.unwrap_or(site.wcet);
        Job { release, deadline, wcet, rank: site.rank, number: instance, tag }
    }

    /// The job of the lane is over: its tag may be another one's from now on, and it does not count as dead any more if it was.
    pub fn forget(&self, lane: usize, job: &Job) {
        if self.jobs.forget(job.tag, job.number) == Gone::Dead {
            self.port(lane).dead.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The lane's port.
    ///
    /// # Panics
    /// If the lane belongs to another process.
    pub fn port(&self, lane: usize) -> &Port {
        self.ports[lane].as_ref().expect("a lane of this process")
    }

    /// The way to the guards of a node.
    ///
    /// # Panics
    /// If it has none in this process.
    pub fn guard_post(&self, node: usize) -> &GuardPost {
        self.guard_posts[node].as_ref().expect("a node of this process with guards")
    }

    /// Stops the run: every thread ends after what it is doing.
    pub fn shut_down(&self) {
        self.stop.stop();
        self.guard_posts.iter().flatten().for_each(GuardPost::ring);
        self.gate.bells.iter().for_each(|bell| {
            bell.ring();
        });
        self.ports.iter().flatten().for_each(Port::ring);
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Alarms::end);
    }
}

/// Where release threads wait for the start instant.
pub(crate) struct Gate {
    start: AtomicI64,
    /// One per release thread.
    pub bells: Vec<Bell>,
}

impl Gate {
    const CLOSED: i64 = i64::MIN;

    pub fn new(threads: usize) -> Self {
        Gate { start: AtomicI64::new(Self::CLOSED), bells: (0..threads).map(|_| Bell::new()).collect() }
    }

    /// Announces the start instant.
    pub fn open(&self, start: Instant) {
        self.start.store(start.as_nanos(), Ordering::Release);
        self.bells.iter().for_each(|bell| {
            bell.ring();
        });
    }

    /// Whether the start instant has come.
    pub fn has_begun(&self, now: Instant) -> bool {
        let start = self.start.load(Ordering::Acquire);
        start != Self::CLOSED && now.as_nanos() >= start
    }

    /// Waits for the start instant; `None` if the run is stopped before there is one.
    pub fn wait(&self, thread: usize, stop: &StopFlag) -> Option<Instant> {
        loop {
            let start = self.start.load(Ordering::Acquire);
            if stop.is_stopped() {
                return None;
            }
            if start != Self::CLOSED {
                return Some(Instant::from_nanos(start));
            }
            self.bells[thread]
                .wait_unless(|| self.start.load(Ordering::Acquire) != Self::CLOSED || stop.is_stopped());
        }
    }
}

/// A predecessor of `job` has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub job: JobId,
    /// The absolute end-to-end deadline of the instance.
    pub deadline: Instant,
    /// When the predecessor's timer expires, if its successors wait for that.
    pub timer: Instant,
}

impl Signal {
    /// What a message says, by the own clock. Where that is known with an error only, the deadline is the earliest that it may be, so
    /// that nothing late is taken for being in time, and the timer the latest, so that nothing is released before it has expired.
    pub fn of(message: &Message<'_>, clock: ClockMapping) -> Self {
        Signal {
            job: JobId { operation: message.to, ..message.identity.job },
            deadline: clock.range(message.deadline).0,
            timer: message.timer.map_or(NO_TIMER, |timer| clock.range(timer).1),
        }
    }
}

/// A job about to be released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub operation: OperationId,
    /// The nominal release that goes into the trace.
    pub nominal: Instant,
    pub job: InFlight,
}

/// What a thread's [`JobFlow`] is made of before there is the thread.
pub(crate) struct JobFlowSetUp {
    recording: Recording,
    to_ring: Vec<(usize, Tag)>,
    signalled: Vec<usize>,
    values: Vec<u8>,
    came_of: Vec<Published>,
}

/// What is checked to fit into a message does.
const _: () = assert!(talea_model::MESSAGE_BYTES == talea_transport::PAYLOAD_BYTES);

impl JobFlowSetUp {
    pub fn new(shared: &Shared, recording: Recording) -> Self {
        let (lanes, nodes) = (shared.layout.lanes.len(), shared.guard_posts.len());
        let (to_ring, signalled) = (Vec::with_capacity(lanes), Vec::with_capacity(nodes));
        let values =
            Vec::with_capacity(if shared.link.is_some() { talea_transport::PAYLOAD_BYTES } else { 0 });
        let outputs = shared.layout.operations.iter().map(|site| site.outputs.len()).max();
        let came_of = Vec::with_capacity(outputs.unwrap_or(0));
        JobFlowSetUp { recording, to_ring, signalled, values, came_of }
    }

    /// Of the calling thread, which is at work from now on, for a lane if it has a role in one.
    pub fn begin(self, role: ThreadRole, lane: Option<usize>) -> JobFlow {
        call_on_this_thread();
        let JobFlowSetUp { recording, to_ring, signalled, values, came_of } = self;
        JobFlow { recorder: recording.begin(role, lane), to_ring, signalled, values, came_of }
    }
}

/// One thread's means to take part in the flow.
pub(crate) struct JobFlow {
    pub recorder: Recorder,
    /// Lanes that have been given something since the last ringing, each with the first of it; preallocated.
    to_ring: Vec<(usize, Tag)>,
    /// Nodes whose guards have been given something since the last ringing; preallocated.
    signalled: Vec<usize>,
    /// What the job that has just completed publishes, as bytes for other processes; preallocated.
    pub values: Vec<u8>,
    /// What came of each output of that job; preallocated.
    pub came_of: Vec<Published>,
}

impl JobFlow {
    /// Releases a job of this process at `now` into its lane, without ringing.
    ///
    /// # Errors
    /// [`WindowFull`]; nothing has been recorded.
    pub fn release(&mut self, shared: &Shared, release: Release, now: Instant) -> Result<(), WindowFull> {
        let Release { operation, nominal, job } = release;
        let site = shared.layout.operation(operation);
        let local = site.local.expect("an operation of this process");
        let tag = shared.jobs.claim(local, job)?;
        let dates = Dates { nominal, deadline: job.deadline };
        self.enqueue(shared, site, JobId { operation, instance: job.instance }, tag, dates, now);
        Ok(())
    }

    /// Posts a job of a declared operation, which is released now, and rings. Its deadline is what the operation has, unless another one
    /// is given. Returns its number.
    pub fn post(&mut self, shared: &Shared, posted: Posted) -> Result<u64, NotPosted> {
        let number = self.post_quietly(shared, posted, None)?;
        self.ring(shared);
        Ok(number)
    }

    /// The same without ringing. `by` is the job that posts it, if one does, and when that is due.
    pub fn post_quietly(
        &mut self,
        shared: &Shared,
        posted: Posted,
        by: Option<(JobId, Instant)>,
    ) -> Result<u64, NotPosted> {
        let now = MonotonicClock.now();
        let may = may_post(shared, posted.operation.run, now);
        // Numbers of other runs stand for nothing here, nor do those of a replay, in which no job posts. What jobs are told is recorded below.
        if may == Err(NotPosted::OtherRun) || by.is_none() {
            may?;
        }
        let site = shared.layout.operation(posted.operation.id);
        if let Origin::Posting { .. } = site.origin {
            let (instance, tag) = self.post_apart(shared, posted, by.map(|(job, _)| job), now)?;
            self.hand_over(shared, site.lane, tag, now);
            return Ok(instance);
        }
        may?;
        self.post_task(shared, site.task, (now, by.map(|(_, due)| due)))
    }

    /// Posts a job of a declared operation, which whoever calls this executes or [hands over](Self::hand_over). Returns its number and tag.
    pub fn post_apart(
        &mut self,
        shared: &Shared,
        posted: Posted,
        by: Option<JobId>,
        now: Instant,
    ) -> Result<(u64, Tag), NotPosted> {
        posted.check()?;
        let Posted { operation: PostedOperation { id: operation, run }, deadline, wcet, handle } = posted;
        let site = shared.layout.operation(operation);
        let Origin::Posting { deadline: relative, is_of_channel } = site.origin else {
            unreachable!("jobs of tasks of the system are released otherwise");
        };
        let keeps_post = shared.keeps_posts && !is_of_channel;
        let told = |instance: u64, outcome: PostOutcome| {
            let (job, by, lane) = (JobId { operation, instance }, JobOrNone(by), site.lane as u16);
            Post { job, by, handle, lane, outcome: outcome.into() }
        };
        // A thread of the program that is refused is not called again.
        let refused_by = by.filter(|_| keeps_post);
        let refused = |flow: &mut Self, instance: u64, outcome: PostOutcome| {
            let Some(by) = refused_by else { return };
            flow.recorder.put_if_wanted(now, told(instance, outcome));
            let lane = shared.layout.operation(by.operation).lane as u16;
            let wanted = Answer::refused_wcet(by, operation, wcet.unwrap_or(site.wcet), lane);
            flow.recorder.put_if_wanted(now, wanted);
        };
        if let Err(error) = may_post(shared, run, now) {
            if error == NotPosted::NotRunning {
                refused(self, shared.posting.next(operation.index()), PostOutcome::NotRunning);
            }
            return Err(error);
        }
        let local = site.local.expect("posted work is this process's");
        let deadline = deadline.unwrap_or(now.saturating_add(relative)).max(now);
        let dates = Dates { nominal: now, deadline };
        let first = shared.posting.next_instance(operation.index());
        let claim = |instance: u64| {
            let tag = shared.jobs.claim(local, InFlight { instance, release: now, deadline }).ok()?;
            Some((instance, tag))
        };
        // The place of a number may be that of an old job, while others are free.
        let others = (1..shared.posting.window()).map(|_| shared.posting.next_instance(operation.index()));
        let Some((instance, tag)) = std::iter::once(first).chain(others).find_map(claim) else {
            let subject = Subject { job: JobId { operation, instance: first }, lane: site.lane };
            self.recorder.put(now, subject.skip(dates, SkipReason::Full));
            refused(self, first, PostOutcome::Full);
            return Err(NotPosted::Full);
        };
        let job = JobId { operation, instance };
        if keeps_post {
            self.recorder.put_if_wanted(now, told(instance, PostOutcome::Posted));
        }
        let wcet = wcet.filter(|wcet| *wcet != site.wcet);
        shared.posting.set(tag, (handle, wcet), by);
        if let Some(wcet) = wcet {
            let wcet = Duration::from_nanos(wcet.as_nanos());
            self.recorder.put_if_wanted(now, JobWcet { job, lane: site.lane as u16, wcet });
        }
        self.announce(shared, site, job, dates, now);
        Ok((instance, tag))
    }

    /// Releases a task of the system whose jobs are posted, without ringing; `due` is when the job is due that releases it, if a job does.
    /// Returns the number of the instance.
    fn post_task(
        &mut self,
        shared: &Shared,
        task: usize,
        (now, due): (Instant, Option<Instant>),
    ) -> Result<u64, NotPosted> {
        let next = shared.triggering[task].next.load(Ordering::Relaxed);
        let local = |operation: &OperationId| shared.layout.operation(*operation).local;
        let has_room = |operation| local(operation).is_some_and(|local| shared.jobs.has_room(local, next));
        if !shared.layout.triggered(task).firsts.iter().all(has_room) {
            shared.tally.triggers_refused.fetch_add(1, Ordering::Relaxed);
            return Err(NotPosted::Full);
        }
        Ok(self.arrive_by_trigger(shared, task, (now, due), now).instance)
    }

    /// Releases a job that was held by a guard, without ringing.
    pub fn release_held(&mut self, shared: &Shared, operation: OperationId, job: InFlight, now: Instant) {
        let InFlight { instance, release, deadline } = job;
        let site = shared.layout.operation(operation);
        let tag = shared.jobs.tag(site.local.expect("an operation of this process"), instance);
        shared.jobs.set_release(tag, release);
        let nominal = site.nominal_release(release, deadline);
        let (dates, job) = (Dates { nominal, deadline }, JobId { operation, instance });
        if shared.keeps_answers {
            self.recorder.put_if_wanted(now, Answer::release(job, release, site.lane as u16));
        }
        self.enqueue(shared, site, job, tag, dates, now);
    }

    fn enqueue(
        &mut self,
        shared: &Shared,
        site: &OperationSite,
        job: JobId,
        tag: Tag,
        dates: Dates,
        now: Instant,
    ) {
        self.announce(shared, site, job, dates, now);
        self.hand_over(shared, site.lane, tag, now);
    }

    /// A job is released.
    fn announce(&mut self, shared: &Shared, site: &OperationSite, job: JobId, dates: Dates, now: Instant) {
        let subject = Subject { job, lane: site.lane };
        self.recorder.put(now, subject.release(dates));
        if let Some(post) = &shared.guard_posts[site.node] {
            post.count_release(now);
        }
    }

    /// Puts a released job into its lane, without ringing.
    pub fn hand_over(&mut self, shared: &Shared, lane: usize, tag: Tag, now: Instant) {
        shared.port(lane).push(tag);
        match self.to_ring.iter_mut().find(|(other, _)| *other == lane) {
            Some((lane, first)) => *first = shared.port(*lane).first(shared, (*first, tag), now),
            None => self.to_ring.push((lane, tag)),
        }
    }

    /// One predecessor of a job has completed; releases the job if it was the last one. Does not ring. Returns the instant of
    /// that, or `now`: what is released next must not be dated before.
    pub fn arrive(&mut self, shared: &Shared, signal: Signal, now: Instant) -> Instant {
        let Signal { job: JobId { operation, instance }, deadline, timer } = signal;
        let site = shared.layout.operation(operation);
        let local = site.local.expect("an operation of this process");
        shared.timers.raise(shared.jobs.tag(local, instance), timer);
        let heard = shared.joins.signal(local, instance, site.predecessors, site.needed);
        // Who is heard last need not have ended last.
        let is_joined = heard == Heard::Complete && site.predecessors > 1;
        let now = if is_joined { MonotonicClock.now() } else { now };
        let released = InFlight { instance, release: now, deadline };
        let release = Release { operation, nominal: now, job: released };
        let fits = match heard {
            Heard::Incomplete => true,
            Heard::Complete if site.guard.is_some() => self.hold(shared, site, released, now).is_ok(),
            Heard::Complete => self.release(shared, release, now).is_ok(),
            Heard::Overtaken if site.needed == site.predecessors => false,
            // Where some are enough, what has been overtaken may have been released long ago.
            Heard::Late | Heard::Overtaken => {
                shared.tally.late.fetch_add(1, Ordering::Relaxed);
                true
            }
        };
        if !fits {
            self.refuse(shared, signal.job, deadline, now);
        }
        now
    }

    /// The predecessors of a job with a guard are done: its node's release thread has it from now on. Does not ring.
    pub fn hold(
        &mut self,
        shared: &Shared,
        site: &OperationSite,
        signalled: InFlight,
        now: Instant,
    ) -> Result<(), WindowFull> {
        let tag = shared.jobs.claim(site.local.expect("an operation of this process"), signalled)?;
        let job = JobId { operation: site.id, instance: signalled.instance };
        self.recorder.put_if_wanted(now, event::Signal { job, lane: site.lane as u16 });
        shared.guard_post(site.node).push(tag);
        self.signal(site.node);
        Ok(())
    }

    /// The guards of the node are rung for in the end.
    fn signal(&mut self, node: usize) {
        if !self.signalled.contains(&node) {
            self.signalled.push(node);
        }
    }

    /// The calling thread keeps the guards of the node, and looks what they have been given before it sleeps: nobody has to ring for it.
    pub fn forget_signals(&mut self, node: usize) {
        self.signalled.retain(|signalled| *signalled != node);
    }

    /// A released job of the node has ended, and nothing that follows it has been released. Does not ring.
    #[inline]
    pub fn count_end(&mut self, shared: &Shared, node: usize, now: Instant) {
        if let Some(post) = &shared.guard_posts[node]
            && post.count_end(now)
        {
            self.signal(node);
        }
    }

    /// Aborts the job of `instance` if it is unfinished: one that runs is told to stop.
    pub fn abort(&mut self, shared: &Shared, operation: OperationId, instance: u64, dates: Dates) {
        let site = shared.layout.operation(operation);
        let local = site.local.expect("an operation of this process");
        let port = shared.port(site.lane);
        // Counted before the job can be seen dead, so that the lane never counts down first.
        port.dead.fetch_add(1, Ordering::Relaxed);
        if shared.jobs.abort(local, instance) != Abort::Waiting {
            port.dead.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let now = MonotonicClock.now();
        self.count_end(shared, site.node, now);
        let subject = Subject { job: JobId { operation, instance }, lane: site.lane };
        self.recorder.put(now, subject.abort(dates, Flag(false)));
    }

    /// There is no room for a job, which never comes.
    pub fn refuse(&mut self, shared: &Shared, job: JobId, deadline: Instant, now: Instant) {
        shared.tally.overflows.fetch_add(1, Ordering::Relaxed);
        let subject = Subject { job, lane: shared.layout.operation(job.operation).lane };
        let dates = Dates { nominal: now, deadline };
        self.recorder.put(now, subject.release(dates));
        self.recorder.put(now, subject.abort(dates, Flag(false)));
    }

    /// A job has completed: its successors in this process hear of it at `now`, without ringing.
    pub fn release_successors(&mut self, shared: &Shared, subject: Subject, ended: &Job, now: Instant) {
        let job = subject.job;
        let from = shared.layout.operation(job.operation);
        let timer = from.bound.map_or(NO_TIMER, |bound| ended.release.saturating_add(bound));
        // What its values release may have been skipped or aborted meanwhile, which is recorded when it is.
        let mut latest = now.max(self.recorder.latest());
        for &successor in &from.successors {
            if shared.layout.operation(successor).local.is_some() {
                let job = JobId { operation: successor, ..job };
                latest = self.arrive(shared, Signal { job, deadline: ended.deadline, timer }, latest);
            }
        }
    }

    /// A job has completed at `now`: its successors in other processes are sent word.
    pub fn tell_remote_successors(&mut self, shared: &Shared, subject: Subject, ended: &Job, now: Instant) {
        let job = subject.job;
        let from = shared.layout.operation(job.operation);
        let timer = from.bound.map(|bound| ended.release.saturating_add(bound));
        for &successor in &from.successors {
            let site = shared.layout.operation(successor);
            if site.local.is_some() {
                continue;
            }
            let (at, deadline) = (now, ended.deadline);
            let completion = Completion { job, to: successor, at, deadline, timer, values: &self.values };
            let (to, lane) = (successor.index() as u64, subject.lane as u16);
            let sent = match &shared.link {
                Some(link) => link.tell(site.node, from, completion),
                None => Err(Refusal::Absent),
            };
            let why = match sent {
                Ok(Sent::Sent) => {
                    self.recorder.put_if_wanted(now, Send { job, to, lane });
                    continue;
                }
                Ok(Sent::Lost) => {
                    self.count_lost(shared, from, successor);
                    LossReason::Link
                }
                Err(refusal) => {
                    shared.tally.count_refused(refusal);
                    reason_of(refusal)
                }
            };
            self.recorder.put(now, MessageLost { job, to, instance: job.instance, lane, why: why.into() });
        }
    }

    /// A link loses what the job that has just completed sends to `successor`: the values in it, each at the input that would have had it.
    #[cold]
    fn count_lost(&self, shared: &Shared, from: &OperationSite, successor: OperationId) {
        let outputs = outputs_in(&self.values).filter_map(|output| from.outputs.get(output));
        let readers = outputs.flat_map(|output| &output.readers_elsewhere);
        for (_, input) in readers.filter(|(operation, _)| *operation == successor) {
            shared.tally.values_lost[input.index()].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Rings those who keep guards that have been given something, which is soon done, and then the lanes, in the order in which they were
    /// given it.
    pub fn ring(&mut self, shared: &Shared) {
        for node in self.signalled.drain(..) {
            shared.guard_post(node).ring();
        }
        for (lane, tag) in self.to_ring.drain(..) {
            shared.port(lane).ring_for(shared, tag);
        }
    }
}

/// Whether jobs of operations of that run can be posted now.
fn may_post(shared: &Shared, run: u64, now: Instant) -> Result<(), NotPosted> {
    if run != shared.posting.run() {
        return Err(NotPosted::OtherRun);
    }
    if !shared.gate.has_begun(now) || shared.stop.is_stopped() {
        return Err(NotPosted::NotRunning);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::Criticality;
    use talea_time::Duration;
    use talea_transport::{Identity, Peer};

    #[test]
    fn what_a_message_says_is_meant_on_the_clock_of_its_sender() {
        let (at, ns) = (Instant::from_nanos, Duration::from_nanos);
        let operation = OperationId::from_index;
        let job = JobId { operation: operation(0), instance: 7 };
        let message = |timer| Message {
            identity: Identity { peer: Peer { node: 1, epoch: 1 }, job },
            to: operation(3),
            reply_to: None,
            sent: at(1_000),
            deadline: at(9_000),
            period: ns(10_000),
            band: Criticality::Low,
            timer,
            not_before: None,
            payload: &[],
        };
        let clock = ClockMapping { offset: ns(500), error: ns(20) };
        let told = Signal::of(&message(Some(at(4_000))), clock);
        assert_eq!(told.job, JobId { operation: operation(3), instance: 7 });
        assert_eq!((told.deadline, told.timer), (at(9_480), at(4_520)));
        let exact = Signal::of(&message(Some(at(4_000))), ClockMapping::SAME);
        assert_eq!((exact.deadline, exact.timer), (at(9_000), at(4_000)));
        assert_eq!(Signal::of(&message(None), clock).timer, NO_TIMER, "no timer is none on any clock");
    }
}
