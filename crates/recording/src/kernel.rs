//! The kernel stream: who had which processor, who woke whom, what interrupted, as records on the clock of the run.
//!
//! The kernel writes its events into one buffer per processor through perf, stamped with CLOCK_MONOTONIC, which is the
//! clock of a run's own records. [`KernelStream`] opens these buffers, each becomes a [`KernelSource`] of
//! [`talea_record::Record`]s of the builtin family `kernel` in the order of time, and [`Merge`] joins them with each other and with
//! rings ([`AnySource`](crate::AnySource)).
//!
//! ```text
//!  switch, comm, fork, exit ──┐
//!  tracepoints ───────────────┴─► buffer of CPU 0 ─► KernelSource ─┐
//!                                 buffer of CPU 1 ─► KernelSource ─┼─► Merge ─► Sink
//!                                                    RingReader ───┘
//! ```
//!
//! | File | What it does |
//! |---|---|
//! | `options` | what to record |
//! | `preflight` | what stands in the way, and the way around it |
//! | `tracepoint` | tracepoints by name, their fields |
//! | `assemble` | opens the events and buffers |
//! | `decode` | perf's records into ours |
//! | `occupancy` | who has a processor, from both sides of a switch |
//! | `names` | names of threads that nobody announces |
//! | `source` | a buffer as a source of records |
//! | `drawn` | the same by two threads: one empties the buffer |
//! | `wakeups` | wake-ups of chosen threads, told at once |
//! | `redirect` | the two calls that the perf library lacks |
//!
//! **What an event says.** A switch is recorded when the leaving thread is still on the processor. So its time is
//! earlier than any reading of the clock by the arriving thread, and later than any by the leaving one. (The kernel
//! reads its fast clock, which can step by some nanoseconds against CLOCK_MONOTONIC in the moment its rate is adjusted.)
//! A wake-up is recorded when it is asked for, on the processor of the waker: before the woken thread is ready, and so
//! before its switch. The target processor is the one the woken thread was last on, corrected if the kernel moves it in
//! the same step. Where a wake-up's context is not a thread, `waker_tid` is who was interrupted. Interrupts are handlers
//! of devices, soft interrupts and, on x86, those of the processor's own controller (timer, rescheduling, calls between
//! processors); elsewhere the timer is a device.
//!
//! After a gap, and where the kernel tells nothing of a thread (some virtual machines hide their agent's), who arrives can be
//! [`talea_record::Record::UNSEEN_THREAD`]: it is who leaves next on that processor.
//!
//! **Losses.** If a buffer is full the kernel drops events and says how many, which becomes an [`talea_record::Event::LOST`]
//! record with that processor's number and source [`talea_record::Record::KERNEL`], at the time of the first event after the gap. What
//! is lost at the very end is known from the events' own counts once they stop (Linux 6.0 and later).
//!
//! **Threads of one process** ([`KernelScope::Process`]). Their switches and names need no privilege, but the kernel
//! tells only that a thread comes or goes, not who was or is there instead: that side of the record is
//! [`talea_record::Record::UNSEEN_THREAD`]. Wake-ups are those by these threads, and those of them by others (timers too) only if
//! the kernel tells a sleeping thread's events, which Linux 6.18 does not. Interrupts are those that interrupt them. A
//! thread that has a processor when the stream is opened is first seen when it leaves it; threads that others create
//! during the opening may be missed.
//!
//! **Cost.** The reader is woken when a buffer is filled to a quarter and not for each event. What events cost the
//! programs that cause them is measured by `cargo bench -p talea-runtime --bench mechanisms`.

mod assemble;
mod decode;
mod drawn;
mod names;
mod occupancy;
mod options;
mod preflight;
#[expect(unsafe_code, reason = "an ioctl takes the number of a descriptor; the perf library lacks these")]
mod redirect;
mod source;
mod tracepoint;
mod wakeups;

pub use drawn::{KernelDrawer, KernelFeed};
pub use options::{KernelEvent, KernelOptions, KernelScope, Processors, Recorder, UnknownKernelEvent};
pub use preflight::{Cause, KernelPart, Obstacle, Preflight, preflight};
pub use source::{KernelSource, Rest};
pub use wakeups::{Chosen, Unwatchable, WATCHED_MAX, WakeChoice, WakeUp, WakeWatch, Woken};

use assemble::{Assembled, Assembly};
use decode::Decoder;
use names::Names;
use perf_event::{Counter, ReadFormat};
use preflight::Facts;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use source::{Delivery, Tally};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_record::Sink;
use talea_record::merge::Merge;
use talea_time::{Duration, Instant};
use thiserror::Error;

/// Why a kernel stream was not opened. Nothing is left open.
#[derive(Debug, Error)]
pub enum KernelError {
    /// No kind of event is wanted.
    #[error("a kernel stream needs at least one kind of event")]
    NoEvents,
    /// No processor is wanted.
    #[error("a kernel stream needs at least one processor")]
    NoProcessors,
    /// Something wanted cannot be had. What can be is in the [`Preflight`]; ask for that alone to go on without.
    #[error("the kernel withholds events: {}", list(&.0.obstacles))]
    Refused(Preflight),
    /// The events were opened but did not start.
    #[error("the kernel's events did not start: {0}")]
    Start(std::io::Error),
}

fn list(obstacles: &[Obstacle]) -> String {
    let lines: Vec<String> = obstacles.iter().map(Obstacle::to_string).collect();
    lines.join("\n")
}

/// What a kernel stream has delivered and lost so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelTotals {
    /// Records delivered, LOST records and names from the start included.
    pub records: u64,
    /// Events that the kernel dropped, by processor.
    pub lost: Vec<(u16, u64)>,
    /// Events delivered by the kernel that this version cannot decode.
    pub undecodable: u64,
}

impl KernelTotals {
    /// Events that the kernel dropped on all processors.
    pub fn lost_in_all(&self) -> u64 {
        self.lost.iter().map(|(_, lost)| lost).sum()
    }
}

/// Why [`KernelControl::wait`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// A buffer is filled to its watermark.
    Filled,
    /// The time is over, or a signal came.
    Elapsed,
}

/// The events of a kernel stream, apart from what they deliver. Dropping it stops them.
pub struct KernelControl {
    processors: Vec<Processor>,
    caveats: Vec<String>,
}

struct Processor {
    cpu: u16,
    bell: Counter,
    events: Vec<Counter>,
    tally: Arc<Tally>,
}

impl KernelControl {
    /// Waits until a buffer is filled to its watermark, or for `timeout`. Records can be taken without waiting.
    pub fn wait(&self, timeout: Duration) -> Waited {
        let ns = timeout.as_nanos().max(0);
        let timeout = Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
        let mut bells: Vec<PollFd<'_>> = self
            .processors
            .iter()
            .map(|processor| PollFd::from_borrowed_fd(redirect::descriptor(&processor.bell), PollFlags::IN))
            .collect();
        loop {
            if poll(&mut bells, Some(&timeout)).unwrap_or(0) == 0 {
                return Waited::Elapsed;
            }
            if bells.iter().any(|bell| bell.revents().contains(PollFlags::IN)) {
                return Waited::Filled;
            }
            // The thread that opened the stream has ended, and with it the bells; the buffers go on.
            bells.retain(|bell| bell.revents().is_empty());
        }
    }

    /// Stops the events. Sources deliver what was recorded until then, and at the end what was lost.
    ///
    /// # Errors
    /// If the kernel refuses, which it has no reason to; what is already recorded stays readable.
    pub fn stop(&mut self) -> std::io::Result<()> {
        for processor in &mut self.processors {
            // The last first: ends are switched on after beginnings, so no end is told whose beginning was not.
            processor.events.iter_mut().rev().try_for_each(Counter::disable)?;
        }
        for processor in &mut self.processors {
            let mut lost = 0;
            for event in &mut processor.events {
                if event.config().read_format().contains(ReadFormat::LOST) {
                    lost += event.read_full()?.lost().unwrap_or(0);
                }
            }
            processor.tally.lost_in_all.store(lost, Ordering::Release);
        }
        Ok(())
    }

    /// What the sources have delivered so far.
    pub fn totals(&self) -> KernelTotals {
        let mut totals = KernelTotals::default();
        for Processor { cpu, tally, .. } in &self.processors {
            totals.records += tally.records.load(Ordering::Relaxed);
            totals.undecodable += tally.undecodable.load(Ordering::Relaxed);
            totals.lost.push((*cpu, tally.lost.load(Ordering::Relaxed)));
        }
        totals
    }

    /// What to know about the events of this stream, as sentences.
    pub fn caveats(&self) -> &[String] {
        &self.caveats
    }
}

impl fmt::Debug for KernelControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelControl").field("totals", &self.totals()).finish_non_exhaustive()
    }
}

/// The kernel's events as one stream. To merge them with rings, [`Self::split`] it.
#[derive(Debug)]
pub struct KernelStream {
    control: KernelControl,
    merge: Merge<KernelSource>,
}

impl KernelStream {
    /// Opens and starts what `options` ask for. The names of threads that exist already are told at the instant `now`,
    /// read before the call, so that they come before everything else.
    ///
    /// # Errors
    /// See [`KernelError`].
    pub fn open(options: &KernelOptions, now: Instant) -> Result<Self, KernelError> {
        let (control, sources) = open(options, now)?;
        Ok(KernelStream { control, merge: Merge::new(sources) })
    }

    /// The events, and one source for each processor, to be merged with others.
    pub fn split(self) -> (KernelControl, Vec<KernelSource>) {
        (self.control, self.merge.into_sources())
    }

    /// See [`KernelControl`].
    pub fn control(&self) -> &KernelControl {
        &self.control
    }

    /// Delivers every record before `horizon` in the order of time and returns their number. A record is in its buffer
    /// within microseconds of its time, so a horizon a millisecond ago is safe.
    pub fn poll(&mut self, horizon: Instant, sink: &mut impl Sink) -> u64 {
        self.merge.poll(horizon, sink)
    }

    /// Stops, delivers everything that is left and returns the totals.
    ///
    /// # Errors
    /// If the kernel refuses to stop the events.
    pub fn finish(mut self, sink: &mut impl Sink) -> std::io::Result<KernelTotals> {
        self.control.stop()?;
        self.merge.drain(sink);
        Ok(self.control.totals())
    }
}

fn open(options: &KernelOptions, now: Instant) -> Result<(KernelControl, Vec<KernelSource>), KernelError> {
    if options.events.is_empty() {
        return Err(KernelError::NoEvents);
    }
    if matches!(&options.processors, Processors::These(chosen) if chosen.is_empty()) {
        return Err(KernelError::NoProcessors);
    }
    let assembly = assemble::assemble(options, &Facts::read());
    if !assembly.obstacles.is_empty() {
        return Err(KernelError::Refused(assembly.preflight(options)));
    }
    let (mut control, mut sources) = connect(options, assembly, now);
    let mut events = control.processors.iter_mut().flat_map(|processor| &mut processor.events);
    events.try_for_each(Counter::enable).map_err(KernelError::Start)?;
    // After the start, so that no name falls between; told as of before it.
    if let (Some(first), true) = (sources.first_mut(), options.events.contains(&KernelEvent::Names)) {
        first.begin_with(names::scan(options.scope, now));
    }
    Ok((control, sources))
}

/// Gives every buffer its decoder.
fn connect(options: &KernelOptions, assembly: Assembly, now: Instant) -> (KernelControl, Vec<KernelSource>) {
    let names = Arc::new(Names::default());
    let tracepoints = Arc::from(assembly.tracepoints);
    let left_out: Arc<[u32]> = match options.recorder {
        Recorder::Included => Arc::default(),
        Recorder::Excluded => names::threads(std::process::id()).unwrap_or_default().into(),
    };
    let mut processors = Vec::with_capacity(assembly.processors.len());
    let mut sources = Vec::with_capacity(assembly.processors.len());
    for Assembled { cpu, ring, bell, events } in assembly.processors {
        let view = assemble::view(options.scope);
        let decoder = Decoder::new(cpu, view, Arc::clone(&tracepoints), Arc::clone(&left_out));
        let tally = Arc::new(Tally::default());
        let delivery = Delivery { names: Arc::clone(&names), tally: Arc::clone(&tally) };
        sources.push(KernelSource::new(cpu, ring, decoder, delivery, now));
        processors.push(Processor { cpu, bell, events, tally });
    }
    (KernelControl { processors, caveats: assembly.caveats }, sources)
}
