//! Virtual processors and the view schedulers have of them.

use super::SchedulerId;
use crate::job::Job;
use talea_time::{Instant, Work};

/// A virtual processor's number in its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VpId(pub(crate) u32);

impl VpId {
    /// The number, for tables indexed by VP and for [`Job::tag`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The VP with the number [`Self::index`] gave.
    pub const fn from_index(index: u32) -> Self {
        VpId(index)
    }
}

/// A processor's number on its machine, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessorId(pub(crate) u16);

impl ProcessorId {
    /// The processor with this number, to ask [`Engine::running`](super::Engine::running) about.
    pub const fn from_index(index: u16) -> Self {
        ProcessorId(index)
    }

    /// The number.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// State of a virtual processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VpState {
    /// Has no use for a processor.
    Waiting,
    /// Could use a processor.
    Ready,
    /// Has one.
    Running(ProcessorId),
}

/// Who is above a VP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Top {
    Machine(ProcessorId),
    Scheduler(SchedulerId),
    /// Nobody for the moment: the scheduler below is being replaced, and its parents are not to notice.
    Custody,
}

/// Who is below a VP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bottom {
    Scheduler(SchedulerId),
    Thread,
    /// Unregistered; the slot is free.
    Nobody,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Vp {
    pub state: VpState,
    pub top: Top,
    pub bottom: Bottom,
    /// Service up to `since`.
    service: Work,
    /// Start of the current grant; meaningless unless Running.
    since: Instant,
    /// `service` at the last request.
    pub service_at_request: Work,
    /// Requests so far, which tells the jobs of one thread apart.
    pub epoch: u32,
    /// What a thread wants its processor for; the last one requested.
    pub job: Job,
    /// Whether a scheduler passes on whose job it wants this one for, as somebody above guarantees single jobs.
    pub passes_jobs: bool,
    /// That job's thread, as far as it has been passed on.
    pub behind: Option<VpId>,
}

impl Vp {
    pub fn new(top: Top, bottom: Bottom) -> Self {
        let job = Job {
            release: Instant::ZERO,
            deadline: Instant::MAX,
            wcet: Work::ZERO,
            rank: 0,
            number: 0,
            tag: 0,
        };
        Vp {
            state: VpState::Waiting,
            top,
            bottom,
            service: Work::ZERO,
            since: Instant::ZERO,
            service_at_request: Work::ZERO,
            epoch: 0,
            job,
            passes_jobs: false,
            behind: None,
        }
    }

    pub fn request(&mut self) {
        assert_eq!(self.state, VpState::Waiting, "only a waiting VP requests");
        self.state = VpState::Ready;
        self.service_at_request = self.service;
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// What it receives from now on is for `job`.
    pub fn begin_job(&mut self, job: Job, now: Instant) {
        assert_ne!(self.state, VpState::Waiting, "only who wants a processor changes what it is wanted for");
        (self.job, self.service_at_request) = (job, self.service_at(now));
    }

    pub fn grant(&mut self, processor: ProcessorId, now: Instant) {
        assert_eq!(self.state, VpState::Ready, "only a ready VP is granted a processor");
        self.state = VpState::Running(processor);
        self.since = now;
    }

    pub fn revoke(&mut self, now: Instant) -> ProcessorId {
        let VpState::Running(processor) = self.state else {
            panic!("only a running VP is revoked, this one is {:?}", self.state)
        };
        self.service = self.service_at(now);
        self.state = VpState::Ready;
        processor
    }

    pub fn release(&mut self, now: Instant) -> Option<ProcessorId> {
        assert_ne!(self.state, VpState::Waiting, "a waiting VP has nothing to release");
        self.service = self.service_at(now);
        match std::mem::replace(&mut self.state, VpState::Waiting) {
            VpState::Running(processor) => Some(processor),
            _ => None,
        }
    }

    /// Whether it is a child of `parent`.
    pub fn is_below(&self, parent: SchedulerId) -> bool {
        self.bottom != Bottom::Nobody && self.top == Top::Scheduler(parent)
    }

    /// As it would be if it wanted nothing from `now` on. Nobody is told.
    pub fn laid_aside(mut self, now: Instant) -> Self {
        self.service = self.service_at(now);
        self.state = VpState::Waiting;
        self
    }

    /// Comes into `state` at `now` without a transition.
    pub fn assume(&mut self, state: VpState, now: Instant) {
        *self = Vp { state, since: now, ..self.laid_aside(now) };
    }

    pub fn service_at(&self, now: Instant) -> Work {
        match self.state {
            VpState::Running(_) => self.service + (now - self.since).as_work(),
            _ => self.service,
        }
    }
}

/// What a scheduler may know when it decides: the time, and the states of the VPs it is an end of.
pub struct Context<'a> {
    pub(super) now: Instant,
    pub(super) vps: &'a [Vp],
}

impl Context<'_> {
    /// The current instant.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The state of `vp`.
    pub fn state(&self, vp: VpId) -> VpState {
        self.vps[vp.index()].state
    }

    /// The processor `vp` runs on.
    pub fn processor(&self, vp: VpId) -> Option<ProcessorId> {
        match self.state(vp) {
            VpState::Running(processor) => Some(processor),
            _ => None,
        }
    }

    /// Processor time `vp` has received since it was registered, up to now.
    pub fn service(&self, vp: VpId) -> Work {
        self.vps[vp.index()].service_at(self.now)
    }

    /// Processor time `vp` has received since its last request, up to now.
    pub fn burst(&self, vp: VpId) -> Work {
        let vp = &self.vps[vp.index()];
        vp.service_at(self.now) - vp.service_at_request
    }

    /// The deadline of `vp`: its job's if it is a thread, what it announced if it is a scheduler's,
    /// [`Instant::MAX`] if there is none.
    pub fn deadline(&self, vp: VpId) -> Instant {
        self.vps[vp.index()].job.deadline
    }

    /// Whether `vp` is a thread.
    pub fn is_thread(&self, vp: VpId) -> bool {
        self.vps[vp.index()].bottom == Bottom::Thread
    }

    /// What the thread `vp` wants its processor for.
    pub fn job(&self, vp: VpId) -> &Job {
        &self.vps[vp.index()].job
    }

    /// Whether a scheduler passes on by `vp`, its own, whose job it wants the processor for: one above guarantees single jobs.
    pub fn passes_jobs(&self, vp: VpId) -> bool {
        self.vps[vp.index()].passes_jobs
    }

    /// The thread whose job `vp` wants its processor for: itself, or one below the scheduler that it is of, if that passes on whose
    /// job it is.
    pub fn behind(&self, vp: VpId) -> Option<VpId> {
        let Vp { bottom, behind, .. } = self.vps[vp.index()];
        if bottom == Bottom::Thread { Some(vp) } else { behind }
    }
}
