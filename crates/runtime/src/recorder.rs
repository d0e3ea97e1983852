//! A thread's way to its own trace ring.

use crate::counts;
use talea_linux::clock::MonotonicClock;
use talea_linux::cpu;
use talea_manage::naming::define_thread;
use talea_record::event::{
    Abort, BuiltinEvent, Complete, Cost, Dates, Flag, JobOrNone, Preempt, Release, Resume, RunEnd, RunStart,
    Skip, Sleep, Start, Thread, Timer, Wake,
};
use talea_record::stream::{LocalWriter, builtin_switch};
use talea_record::{CostKind, Event, JobId, Record, RingWriter, RunOutcome, Sink, SkipReason, ThreadRole};
use talea_time::{Clock, Instant};

/// What a thread's recorder is made of before there is the thread.
pub(crate) struct Recording {
    writer: RingWriter,
    node: usize,
    /// The node's only processor; `None` where there are several.
    cpu: Option<u16>,
    detail: Detail,
}

/// How much a thread's records tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// What becomes of jobs.
    Jobs,
    /// What dispatching them costs and when the thread sleeps, too.
    Dispatching,
}

/// Writes the records of the calling thread, in one ring with the events that the code of its operations emits.
pub(crate) struct Recorder {
    writer: LocalWriter,
    node: usize,
    /// The node's only processor; `None` where there are several, and each record asks.
    cpu: Option<u16>,
    detail: Detail,
}

/// What a job event is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub job: JobId,
    pub lane: usize,
}

/// When dispatching began, where its cost is recorded.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Stopwatch(Option<Instant>);

impl Recording {
    /// For a thread of `node`, which runs on `cpus`.
    pub fn new(writer: RingWriter, node: usize, cpus: &[u16]) -> Self {
        let cpu = if let [only] = cpus { Some(*only) } else { None };
        Recording { writer, node, cpu, detail: Detail::Dispatching }
    }

    /// The same, but of dispatching nothing is told.
    pub fn of_jobs_alone(self) -> Self {
        Recording { detail: Detail::Jobs, ..self }
    }

    /// The recorder of the calling thread, which is at work from now on, for a lane if it has a role in one.
    pub fn begin(self, role: ThreadRole, lane: Option<usize>) -> Recorder {
        let Recording { writer, node, cpu, detail } = self;
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        // Where the stream has no room for its name, readers have its role.
        let _has_room = define_thread(&writer.definer(), tid, MonotonicClock.now(), node);
        let mut recorder = Recorder { writer: writer.install(), node, cpu, detail };
        recorder.thread(role, lane);
        recorder
    }
}

impl Recorder {
    /// Something happened at `time`.
    pub fn put<E: BuiltinEvent>(&mut self, time: Instant, event: E) {
        let record = event.at(time, self.cpu());
        counts::count::<E>(&record);
        self.writer.record(record);
    }

    /// The latest instant that it has recorded; what follows is recorded with no earlier one.
    pub fn latest(&self) -> Instant {
        self.writer.latest()
    }

    /// The same of an event that not everybody wants.
    pub fn put_if_wanted<E: BuiltinEvent>(&mut self, time: Instant, event: E) {
        if self.is_wanted(E::EVENT) {
            self.put(time, event);
        }
    }

    /// The node's run begins, and is planned to end, if it is.
    pub fn run_start(&mut self, time: Instant, planned_end: Option<Instant>) {
        let start = RunStart { planned_end, node: self.node as u16 };
        self.writer.record(start.at(time, Record::NO_CPU));
    }

    /// The node's run is over.
    pub fn run_end(&mut self, time: Instant) {
        let end = RunEnd { node: self.node as u16, how: RunOutcome::Over.into() };
        self.writer.record(end.at(time, Record::NO_CPU));
    }

    fn thread(&mut self, role: ThreadRole, lane: Option<usize>) {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let (pid, node, lane) = (std::process::id(), self.node as u32, lane.map(|lane| lane as u16));
        let record = Thread { tid, pid, node, lane, role: role.into() }.at(MonotonicClock.now(), self.cpu());
        self.writer.identify(&record);
        self.writer.record(record);
    }

    /// Starts measuring what dispatching costs, if that is recorded.
    #[inline]
    pub fn stopwatch(&self) -> Stopwatch {
        Stopwatch(self.tells_of(Event::COST).then(|| MonotonicClock.now()))
    }

    /// The time since `began` went to dispatching `jobs` jobs.
    pub fn cost(&mut self, began: Stopwatch, kind: CostKind, lane: Option<usize>, jobs: usize) {
        let Some(began) = began.0 else { return };
        let time = MonotonicClock.now();
        let (cost, count, node) = (time - began, jobs as u32, self.node as u32);
        self.put(time, Cost { cost, count, node, lane: lane.map(|lane| lane as u16), kind: kind.into() });
    }

    /// A lane's thread goes to sleep.
    pub fn sleep(&mut self, lane: usize) {
        if self.tells_of(Event::SLEEP) {
            self.put(MonotonicClock.now(), Sleep { lane: lane as u16 });
        }
    }

    /// A lane's thread is back.
    pub fn wake(&mut self, lane: usize) {
        if self.tells_of(Event::WAKE) {
            self.put(MonotonicClock.now(), Wake { lane: lane as u16 });
        }
    }

    /// The release thread begins at `now` to release what was `due`; the kernel had woken it at `woken`.
    pub fn timer(&mut self, now: Instant, due: Instant, woken: Instant) {
        self.put_if_wanted(now, Timer { due, woken, node: self.node as u16 });
    }

    /// Whether anybody wants this event. Those of jobs and of the run are wanted by the run's own collector.
    pub fn is_wanted(&self, event: Event) -> bool {
        self.writer.is_wanted(builtin_switch(event))
    }

    /// Whether anybody wants this event of dispatching, and the thread tells of that.
    fn tells_of(&self, event: Event) -> bool {
        self.detail == Detail::Dispatching && self.is_wanted(event)
    }

    fn cpu(&self) -> u16 {
        self.cpu.unwrap_or_else(cpu::current)
    }
}

impl Subject {
    pub fn release(self, Dates { nominal, deadline }: Dates) -> Release {
        Release { job: self.job, lane: self.lane as u16, nominal, deadline }
    }

    /// `depth` jobs are in its lane.
    pub fn start(self, depth: u16, posted_by: JobOrNone) -> Start {
        Start { job: self.job, lane: self.lane as u16, depth, posted_by }
    }

    pub fn preempt(self, by: JobId) -> Preempt {
        Preempt { job: self.job, lane: self.lane as u16, by: Some(by) }
    }

    pub fn resume(self) -> Resume {
        Resume { job: self.job, lane: self.lane as u16 }
    }

    pub fn complete(self, Dates { nominal, deadline }: Dates) -> Complete {
        Complete { job: self.job, lane: self.lane as u16, nominal, deadline }
    }

    pub fn abort(self, Dates { nominal, deadline }: Dates, running: Flag) -> Abort {
        Abort { job: self.job, lane: self.lane as u16, nominal, deadline, running }
    }

    pub fn skip(self, Dates { nominal, deadline }: Dates, reason: SkipReason) -> Skip {
        Skip { job: self.job, lane: self.lane as u16, nominal, deadline, reason: reason.into() }
    }
}
