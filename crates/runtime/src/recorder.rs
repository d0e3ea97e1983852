//! A thread's way to its own trace ring.

use crate::sys::clock::MonotonicClock;
use crate::sys::cpu;
use talea_policy::job::Job;
use talea_time::{Clock, Instant};
use talea_trace::stream::{LocalWriter, builtin_switch};
use talea_trace::{CostKind, Event, JobId, Record, RingWriter, Sink, ThreadRole};

/// What a thread's recorder is made of before there is the thread.
pub(crate) struct Recording {
    writer: RingWriter,
    node: usize,
    /// The node's only processor; `None` where there are several.
    cpu: Option<u16>,
}

/// Writes the records of the calling thread, in one ring with the events that the code of its operations emits.
pub(crate) struct Recorder {
    writer: LocalWriter,
    node: usize,
    /// The node's only processor; `None` where there are several, and each record asks.
    cpu: Option<u16>,
}

/// Which marks of a node's run somebody records. Each is recorded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    Both,
    /// That it begins. A release thread says so early, before the first release.
    Beginning,
    /// That it ends. A hierarchy says so when the last of its records has been written.
    End,
}

impl Marks {
    /// Whether this one, RUN_START or RUN_END, is among them.
    pub fn include(self, event: Event) -> bool {
        match self {
            Marks::Both => true,
            Marks::Beginning => event == Event::RUN_START,
            Marks::End => event == Event::RUN_END,
        }
    }
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
        Recording { writer, node, cpu }
    }

    /// The recorder of the calling thread, which is at work from now on, for a lane if it has a role in one.
    pub fn begin(self, role: ThreadRole, lane: Option<usize>) -> Recorder {
        let Recording { writer, node, cpu } = self;
        let mut recorder = Recorder { writer: writer.install(), node, cpu };
        recorder.thread(role, lane);
        recorder
    }
}

impl Recorder {
    /// A job event.
    pub fn job(&mut self, time: Instant, event: Event, subject: Subject, words: [u64; 2], arg: u16) {
        let cpu = self.cpu();
        let causal = subject.job.pack();
        let source = subject.lane as u16;
        self.writer.record(Record { time, causal, words, event, source, cpu, arg });
    }

    /// An event of a node's run.
    pub fn run(&mut self, time: Instant, event: Event, word: u64) {
        let (cpu, source) = (Record::NO_CPU, self.node as u16);
        self.writer.record(Record { time, causal: 0, words: [word, 0], event, source, cpu, arg: 0 });
    }

    fn thread(&mut self, role: ThreadRole, lane: Option<usize>) {
        let thread = rustix::thread::gettid().as_raw_nonzero().get() as u64;
        let words = [thread | u64::from(std::process::id()) << 32, self.node as u64];
        let source = lane.map_or(Record::NO_LANE, |lane| lane as u16);
        let (time, cpu) = (MonotonicClock.now(), self.cpu());
        let (event, arg) = (Event::THREAD, role as u16);
        let record = Record { time, causal: 0, words, event, source, cpu, arg };
        self.writer.identify(&record);
        self.writer.record(record);
    }

    /// Starts measuring what dispatching costs, if that is recorded.
    #[inline]
    pub fn stopwatch(&self) -> Stopwatch {
        Stopwatch(self.is_wanted(Event::COST).then(|| MonotonicClock.now()))
    }

    /// The time since `began` went to dispatching `jobs` jobs.
    pub fn cost(&mut self, began: Stopwatch, kind: CostKind, lane: Option<usize>, jobs: usize) {
        let Some(began) = began.0 else { return };
        let time = MonotonicClock.now();
        let words = [(time - began).as_nanos() as u64, jobs as u64 | (self.node as u64) << 32];
        let source = lane.map_or(Record::NO_LANE, |lane| lane as u16);
        let (event, cpu, arg) = (Event::COST, self.cpu(), kind as u16);
        self.writer.record(Record { time, causal: 0, words, event, source, cpu, arg });
    }

    /// A lane's thread goes to sleep or is back.
    pub fn lane(&mut self, event: Event, lane: usize) {
        if self.is_wanted(event) {
            let (time, source, cpu) = (MonotonicClock.now(), lane as u16, self.cpu());
            self.writer.record(Record { time, causal: 0, words: [0, 0], event, source, cpu, arg: 0 });
        }
    }

    /// The release thread begins at `now` to release what was `due`; the kernel had woken it at `woken`.
    pub fn timer(&mut self, now: Instant, due: Instant, woken: Instant) {
        if self.is_wanted(Event::TIMER) {
            let words = [due, woken].map(|instant| instant.as_nanos() as u64);
            let (event, source, cpu) = (Event::TIMER, self.node as u16, self.cpu());
            self.writer.record(Record { time: now, causal: 0, words, event, source, cpu, arg: 0 });
        }
    }

    /// Something about a job passed between this node and another one, at `time`.
    pub fn message(&mut self, time: Instant, event: Event, subject: Subject, word: u64) {
        if self.is_wanted(event) {
            self.job(time, event, subject, [word, 0], 0);
        }
    }

    /// Whether anybody wants this event. Those of jobs and of the run are wanted by the run's own collector.
    fn is_wanted(&self, event: Event) -> bool {
        self.writer.is_wanted(builtin_switch(event))
    }

    fn cpu(&self) -> u16 {
        self.cpu.unwrap_or_else(cpu::current)
    }
}

/// The words of a release, completion, skip or abort.
pub(crate) fn release_words(nominal: Instant, job: &Job) -> [u64; 2] {
    [nominal.as_nanos() as u64, job.deadline.as_nanos() as u64]
}
