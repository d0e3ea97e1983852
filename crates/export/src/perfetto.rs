//! Export for the Perfetto UI (<https://ui.perfetto.dev>), as a TrackEvent trace.
//!
//! Each node is a process with
//! * a track per processor, whose slices are the segments in which jobs had it; where several shared it and nobody saw which of
//!   them ran, a slice says that and names them,
//! * a track per lane, whose slices are jobs from start to completion, preempted time included, and whose
//!   instants are releases, skips, abortions, messages to and from other nodes, and deadlines that passed unmet. Jobs
//!   of a lane that are under way at the same time stand on tracks of their own, for slices of one track must nest.
//! * a counter per lane: its queue at the start of each job,
//! * a track per thread of a hierarchy of schedulers in place of a lane, named with the schedulers above it from the root
//!   down (of several ways, the first described), whose slices are its bursts,
//! * a track per processor of what dispatching cost, by kind,
//! * a track and a counter of how late the release thread was,
//! * a track of the changes of its hierarchy, whose instants say who changed which edge, what for, and whether that was forced,
//! * a track per thread of the run, whose slices say when it ran and on which processor.
//!
//! "Kernel" has a track per processor of who really had it, by the kernel's records: threads by name, nothing
//! while it was idle, wake-ups as instants; and one of its interrupts. Threads that are not of the run are under "Other
//! threads". System calls stand under their thread.
//!
//! What the kernel told of its scheduling is there as its own tracing has it, too (`sched_switch`, `sched_waking`), so that viewers show their
//! usual tracks of processors and the states of threads. Processes and threads have their real numbers.
//!
//! Events of a program's own families are instants with their typed fields, on the track of the thread that wrote them; where that is not
//! known, of the thread that the kernel's records say was running, or else on one for their processor; an event whose only field is a number draws
//! a curve. Lost records are instants on a track of their own.
//!
//! Arrows lead from a job's release to its start and to the program's events that carry its causal id, from a job to
//! the releases of its successors, across nodes by way of the message, from where a value is published to where it is taken, which says how old it
//! is then, from where an event is pushed to the jobs that take it, and from a wake-up to the thread's running.
//! Slices carry the number of the instance, the deadline (from [`Metadata::start`]), the response time and the lateness.
//!
//! Memory grows with jobs under way and threads alive, not with the trace.

mod changes;
mod channels;
mod dispatching;
mod jobs;
mod kernel;
mod messages;
mod packets;
mod program;
mod values;

use super::decode::Decoder;
use channels::Channels;
use dispatching::Dispatching;
use jobs::Jobs;
use kernel::Kernel;
use packets::{Flow, Packets, Track};
use std::io::{self, Write};
use talea_record::event::{Lost, builtin};
use talea_record::{Definition, Metadata, NameSpace, Record, Sink, ThreadRole, Typed};
use talea_time::Instant;
use values::Values;

/// Bytes of packets that are written at once.
const WRITE_BYTES: usize = 1 << 16;

/// Writes a Perfetto trace from records in the order of time.
pub struct PerfettoExport<W: Write> {
    output: W,
    out: Packets,
    decoder: Decoder,
    jobs: Jobs,
    values: Values,
    channels: Channels,
    dispatching: Dispatching,
    kernel: Kernel,
    last: Instant,
    /// The first failure, after which nothing more is written.
    failure: Option<io::Error>,
}

impl<W: Write> PerfettoExport<W> {
    /// Begins a trace in `output`, which need not be buffered.
    ///
    /// The processes that run the nodes have the numbers in `processes`, by node, as [`processes_of_nodes`] finds them; of a simulation,
    /// or where a number is not known, one that no other has.
    pub fn new(metadata: &Metadata, names: &NameSpace, processes: &[Option<u32>], output: W) -> Self {
        let mut out = Packets::default();
        PerfettoExport {
            jobs: Jobs::new(metadata, processes, &mut out),
            values: Values::new(metadata),
            channels: Channels::default(),
            out,
            output,
            decoder: Decoder::new(metadata, names),
            dispatching: Dispatching::default(),
            kernel: Kernel::new(metadata),
            last: metadata.start,
            failure: None,
        }
    }

    /// Ends open slices at `end`, marks deadlines that passed before it, and returns the output.
    ///
    /// # Errors
    /// The first failure to write.
    pub fn finish(mut self, end: Instant) -> io::Result<W> {
        let end = end.max(self.last);
        self.jobs.finish(end, &mut self.out);
        self.kernel.finish(end, &mut self.out);
        match self.failure {
            Some(failure) => return Err(failure),
            None => self.output.write_all(self.out.bytes())?,
        }
        self.output.flush()?;
        Ok(self.output)
    }

    /// Shows an event that is not Talea's own.
    fn program_event(&mut self, record: &Record) {
        let writer = self.kernel.writer(record, &mut self.out);
        let track = match writer.or_else(|| self.kernel.running(record.cpu)) {
            Some(tid) => Track::Thread(tid),
            None => program::describe(record.cpu, &mut self.out),
        };
        let flow = self.jobs.is_under_way(record.causal).then_some(Flow::Job(record.causal));
        program::event(&self.decoder, record, track, flow, &mut self.out);
    }
}

/// The processes that run the nodes of a system, as THREAD records tell; looks no further than it has to.
pub fn processes_of_nodes(
    metadata: &Metadata,
    records: impl IntoIterator<Item = Record>,
) -> Vec<Option<u32>> {
    let mut processes = vec![None; metadata.nodes.len()];
    for record in records {
        if processes.iter().all(Option::is_some) {
            break;
        }
        let Typed::Thread(thread) = record.typed() else { continue };
        if thread.role.known().is_some_and(ThreadRole::is_of_system)
            && let Some(process) = processes.get_mut(thread.node as usize)
        {
            process.get_or_insert(thread.pid);
        }
    }
    processes
}

impl<W: Write> Sink for PerfettoExport<W> {
    fn record(&mut self, record: Record) {
        if self.failure.is_some() {
            return;
        }
        if record.is_part() {
            return self.decoder.learn(&record);
        }
        self.last = self.last.max(record.time);
        self.kernel.reach(record.time, &mut self.out);
        self.jobs.record(&record, &mut self.out);
        let metadata = self.decoder.metadata();
        match record.event.family() {
            _ if let Some(lost) = Lost::read(&record) => program::lost(&record, lost, &mut self.out),
            family if usize::from(family) >= builtin::ALL.len() => self.program_event(&record),
            family if family == builtin::DISPATCH.number => {
                self.dispatching.record(metadata, &record, &mut self.out);
            }
            family if family == builtin::PORT.number => self.values.record(metadata, &record, &mut self.out),
            family if family == builtin::EVENT.number => {
                self.channels.record(metadata, &record, &mut self.out);
            }
            family if family == builtin::HLS.number => changes::record(&self.decoder, &record, &mut self.out),
            _ => self.kernel.record(metadata, &record, &mut self.out),
        }
        if self.out.bytes().len() >= WRITE_BYTES {
            self.failure = self.output.write_all(self.out.bytes()).err();
            self.out.clear();
        }
    }

    fn define(&mut self, definition: &Definition) {
        self.decoder.define(definition);
        self.jobs.define(definition);
        self.kernel.define(definition);
    }
}
