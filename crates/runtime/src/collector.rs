//! The collector: an ordinary thread that reads the rings while the run goes on, keeps the accounts,
//! writes the log, and hands finished jobs to whoever wants them.
//!
//! Real-time threads only ever write into their rings. Whatever may block, allocate or take long happens
//! here.

use crate::keeping::ValueLog;
use crate::steal::StealWatch;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use talea_insight::{Accounting, Report, Samples};
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::{Slept, StopFlag};
use talea_manage::STACK;
use talea_record::event::Dates;
use talea_record::stream::{Consumer, ConsumerSlot, clock};
use talea_record::{
    CreateError, Definition, Event, LogWriter, Merge, Metadata, Record, RingReader, Sink, SkipReason,
};
use talea_time::{Clock, Duration, Instant};

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It completed, by its deadline or later.
    Completed,
    /// It was aborted, or its code panicked.
    Aborted,
    /// It was never released: left out.
    Skipped,
    /// It was not released, since one before it had not begun, which stands for both.
    Merged,
}

/// A job that is over, as handed out during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedJob<'a> {
    /// The operation's name.
    pub operation: &'a str,
    /// Number of the task's instance.
    pub instance: u64,
    /// How it ended.
    pub ending: Ending,
    /// When, on CLOCK_MONOTONIC.
    pub at: Instant,
    /// From its nominal release to its end.
    pub response: Duration,
    /// From its deadline to its end: positive if it missed.
    pub lateness: Duration,
}

impl FinishedJob<'_> {
    /// Whether it completed by its deadline.
    pub fn met(&self) -> bool {
        self.ending == Ending::Completed && self.lateness <= Duration::ZERO
    }
}

/// Whoever wants the finished jobs. Called on the collector's thread, never on a real-time thread.
pub type OnFinished = Box<dyn FnMut(&FinishedJob<'_>) + Send>;

/// How often the rings are looked at.
const INTERVAL: Duration = Duration::from_millis(10);
/// A record younger than this may be preceded by one that is not written yet.
const SETTLING: Duration = Duration::from_millis(20);
/// Records that are written later than that are out of order anyway.
const LATEST: Duration = Duration::from_secs(1);
/// How often the log is written out, in looks.
const FLUSH_EVERY: u32 = 50;

/// What the records go to.
struct RecordSinks {
    metadata: Metadata,
    accounting: Accounting,
    log: Option<LogWriter>,
    on_finished: Option<OnFinished>,
}

impl Sink for RecordSinks {
    fn record(&mut self, record: Record) {
        self.accounting.record(record);
        if let Some(log) = &mut self.log {
            log.record(record);
        }
        if let Some(on_finished) = &mut self.on_finished
            && let Some(job) = finished(&record, &self.metadata)
        {
            on_finished(&job);
        }
    }

    /// The log has it of the stream's directory.
    fn define(&mut self, definition: &Definition) {
        self.metadata.define(definition);
        self.accounting.define(definition);
    }
}

fn finished<'a>(record: &Record, metadata: &'a Metadata) -> Option<FinishedJob<'a>> {
    let ending = match record.event {
        Event::COMPLETE => Ending::Completed,
        Event::ABORT => Ending::Aborted,
        Event::SKIP if record.arg == SkipReason::Merged as u16 => Ending::Merged,
        Event::SKIP => Ending::Skipped,
        _ => return None,
    };
    let Dates { nominal, deadline } = record.dates()?;
    Some(FinishedJob {
        operation: &metadata.operations[record.job().operation.index()].name,
        instance: record.job().instance,
        ending,
        at: record.time,
        response: record.time - nominal,
        lateness: record.time - deadline,
    })
}

/// Reads the rings of a run.
pub(crate) struct Collector {
    merge: Merge,
    /// The collector's places in the streams, which keep switched on what it wants.
    slots: Vec<ConsumerSlot>,
    sinks: RecordSinks,
    /// How many of each stream's definitions are known.
    known_definitions: Vec<usize>,
    /// Whether operations can be defined while the run lasts.
    has_posted: bool,
    /// What writes values of this process into the log.
    values: Option<ValueLog>,
    steal: Option<StealWatch>,
    /// Why the log does not name all families.
    unnamed: Option<String>,
}

/// What the collector has at the end.
#[derive(Debug)]
pub(crate) struct Collected {
    pub report: Report,
    pub late: u64,
    pub log: Option<PathBuf>,
    pub log_failure: Option<String>,
    /// Values of this process that were to be kept and are not.
    pub values_unkept: u64,
}

impl Collector {
    /// A collector of these streams, and of values of this process, with samples of this length, which keeps a log if a path is given.
    ///
    /// # Errors
    /// If the log cannot be created.
    pub fn new(
        mut metadata: Metadata,
        (consumers, values): (Vec<Consumer>, Option<ValueLog>),
        sample: (Duration, Samples),
        log: Option<&Path>,
        on_finished: Option<OnFinished>,
    ) -> Result<Self, CreateError> {
        metadata.realtime_offset_ns = Some(clock::realtime_offset_ns());
        let log = log.map(|path| LogWriter::create(path, &metadata)).transpose()?;
        let has_posted = metadata.tasks.iter().any(|task| task.activity.is_posted());
        let accounting = Accounting::new(&metadata, sample.0).with_samples(sample.1);
        let steal = StealWatch::new(&metadata, MonotonicClock.now());
        let sinks = RecordSinks { metadata, accounting, log, on_finished };
        let (slots, rings): (Vec<_>, Vec<_>) = consumers.into_iter().map(Consumer::into_parts).unzip();
        let mut rings: Vec<Vec<RingReader>> = rings;
        let mut base = 0;
        for stream in &mut rings {
            // Threads are numbered through all streams, and a log says who they are.
            let number = |ring: RingReader| match &sinks.log {
                Some(_) => ring.numbered_from(base).announcing(),
                None => ring,
            };
            let count = stream.len() as u16;
            *stream = std::mem::take(stream).into_iter().map(number).collect();
            base = base.saturating_add(count);
        }
        Ok(Collector {
            merge: Merge::new(rings.into_iter().flatten().collect()),
            known_definitions: vec![0; slots.len()],
            slots,
            sinks,
            has_posted,
            values: values.filter(|values| !values.is_empty()),
            steal,
            unnamed: None,
        })
    }

    /// Collects on a thread of its own until it is told to finish.
    ///
    /// # Errors
    /// If the thread cannot be created.
    pub fn start(self, log: Option<PathBuf>) -> std::io::Result<Collecting> {
        let done = StopFlag::new();
        let told = done.clone();
        let mut thread = std::thread::Builder::new().name("collector".into());
        // With memory locked, all of a stack takes memory. Users' code has what Rust gives every thread.
        if self.sinks.on_finished.is_none() && self.values.is_none() {
            thread = thread.stack_size(STACK);
        }
        let thread = thread.spawn(move || self.collect(&told, log))?;
        Ok(Collecting { done, thread })
    }

    /// Collects until `done`, when all writers have ended, and then the rest.
    fn collect(mut self, done: &StopFlag, log: Option<PathBuf>) -> Collected {
        let mut looks = 0u32;
        while done.sleep_until(MonotonicClock.now() + INTERVAL) == Slept::Due {
            let horizon = MonotonicClock.now() - SETTLING;
            // What records are about is known, and in the log, before they are: all of it that could be written about by the horizon.
            self.enter_definitions();
            self.merge.poll(horizon, &mut self.sinks);
            self.keep_values(horizon, horizon);
            if let Some(steal) = &mut self.steal {
                steal.look(MonotonicClock.now());
            }
            self.tell_steal(horizon);
            looks = looks.wrapping_add(1);
            if let Some(log) = &mut self.sinks.log
                && looks.is_multiple_of(FLUSH_EVERY)
            {
                log.flush();
            }
        }
        self.enter_definitions();
        self.merge.drain(&mut self.sinks);
        self.keep_values(Instant::MAX, MonotonicClock.now());
        if let Some(steal) = &mut self.steal {
            steal.look_now(MonotonicClock.now());
        }
        self.tell_steal(MonotonicClock.now());
        self.enter_definitions();
        let log_failure = self.sinks.log.take().and_then(|log| log.finish().err());
        let last = self.sinks.accounting.last();
        Collected {
            report: self.sinks.accounting.finish(last),
            late: self.merge.late(),
            log,
            values_unkept: self.values.map_or(0, |values| values.not_kept()),
            log_failure: log_failure.map(|failure| failure.to_string()).or(self.unnamed),
        }
    }

    /// Writes values that are visible as of this instant into the log, behind the records up to `now`: so each comes behind word of its job.
    fn keep_values(&mut self, as_of: Instant, now: Instant) {
        if let (Some(values), Some(log)) = (&mut self.values, &mut self.sinks.log)
            && values.keep(as_of, log, now)
        {
            self.merge.wrote_beside(now);
        }
    }

    /// Hands on what a hypervisor has taken, with the instant of the last record if that is not long ago: a record that is written late would be out
    /// of order behind a newer one.
    fn tell_steal(&mut self, horizon: Instant) {
        let at = self.merge.latest().max(horizon.saturating_add(-LATEST));
        if let Some(steal) = &mut self.steal
            && steal.put(&mut self.sinks, at)
        {
            self.merge.wrote_beside(at);
        }
    }

    /// Takes what was defined in the streams, and enters it with their families into the log.
    fn enter_definitions(&mut self) {
        if self.sinks.log.is_none() && !self.has_posted {
            return;
        }
        for (slot, known) in self.slots.iter_mut().zip(&mut self.known_definitions) {
            let entered = match slot.directory() {
                Ok(directory) => {
                    let definitions = directory.definitions();
                    definitions[*known..].iter().for_each(|definition| self.sinks.define(definition));
                    *known = definitions.len();
                    let log = self.sinks.log.as_mut();
                    log.map_or(Ok(()), |log| log.enter(directory).map_err(|error| error.to_string()))
                }
                Err(error) => Err(format!("the directory of a stream is damaged: {error}")),
            };
            if let Err(reason) = entered {
                self.unnamed.get_or_insert(reason);
            }
        }
    }
}

/// A collector at work.
pub(crate) struct Collecting {
    done: StopFlag,
    thread: JoinHandle<Collected>,
}

impl Collecting {
    /// All writers have ended: takes the rest.
    ///
    /// # Panics
    /// With what the collector, or whoever was handed finished jobs, panicked with.
    pub fn finish(self) -> Collected {
        self.done.stop();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
