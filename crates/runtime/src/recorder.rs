//! A thread's way to its own trace ring.

use crate::sys::cpu;
use talea_policy::job::Job;
use talea_time::Instant;
use talea_trace::{Event, JobId, Record, RingWriter, Sink};

/// Writes the records of one thread.
pub(crate) struct Recorder {
    writer: RingWriter,
    /// The node's only processor; `None` where there are several, and each record asks.
    cpu: Option<u16>,
}

/// What a job event is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub job: JobId,
    pub lane: usize,
}

impl Recorder {
    /// A recorder for a thread that runs on `cpus`.
    pub fn new(writer: RingWriter, cpus: &[u16]) -> Self {
        let cpu = if let [only] = cpus { Some(*only) } else { None };
        Recorder { writer, cpu }
    }

    /// A job event.
    pub fn job(&mut self, time: Instant, event: Event, subject: Subject, words: [u64; 2], arg: u16) {
        let cpu = self.cpu.unwrap_or_else(cpu::current);
        let causal = subject.job.pack();
        let source = subject.lane as u16;
        self.writer.record(Record { time, causal, words, event, source, cpu, arg });
    }

    /// An event of a node's run.
    pub fn run(&mut self, time: Instant, event: Event, node: usize, word: u64) {
        let (cpu, source) = (Record::NO_CPU, node as u16);
        self.writer.record(Record { time, causal: 0, words: [word, 0], event, source, cpu, arg: 0 });
    }
}

/// The words of a release, completion, skip or abort.
pub(crate) fn release_words(nominal: Instant, job: &Job) -> [u64; 2] {
    [nominal.as_nanos() as u64, job.deadline.as_nanos() as u64]
}
