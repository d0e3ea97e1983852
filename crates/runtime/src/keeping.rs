//! Recording the values that operations publish, and what their jobs take, read from outside, and push: an ordinary thread takes them as one more reader and writes
//! them into the trace.
//!
//! A job does not wait for that, nor write any bytes: it hands on a value to one reader more. If the thread does not run in time, values are
//! dropped, and counted and recorded as such. Where the collector is in the process, it is that thread and writes into the log; in a process
//! that another one collects from, there is a thread with a ring of its own.

use crate::kept_events::KeptEventsEnd;
use std::thread::JoinHandle;
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::{Slept, StopFlag};
use talea_model::{
    Excess, OperationId, OutputId, Publication, PublicationId, PublicationSite, Separation, System,
};
use talea_notification::declared::numbered_push;
use talea_operation::{
    KeptBytes, KeptEnd, KeptOutput, KeptOutputs, KeptParts, Operation, OperationError, OperationErrors,
};
use talea_record::event::{PushUnkept, ValueLost};
use talea_record::values::{self, KeptOf, MOST_BYTES, records_of};
use talea_record::{JobId, Record, RingWriter, Sink, ValueLoss};
use talea_time::{Clock, Duration, Instant};

/// How long the thread may be kept from running, and no value be lost: as long as the collector.
const STALL: Duration = Duration::from_secs(2);
/// Bytes for values that have not been written yet, of all outputs together.
const MEMORY: usize = 64 << 20;
/// Values for which there is room at least where nothing bounds how fast they come.
const LEAST_UNBOUNDED: usize = 64;
/// Values of an output that wait at most, however often they come.
const MOST: usize = 1 << 16;
/// How often the thread looks.
const INTERVAL: Duration = Duration::from_millis(5);

/// Bytes of an event beside what it carries, about: its header, in memory and in the trace.
const EVENT_BYTES: usize = 128;

/// Room for what each job of the operation publishes on one output, or takes of a channel, and is not written yet, when `kept` of these are: as much as
/// comes in [`STALL`], if it is not too large.
pub(crate) fn room(system: &System, operation: OperationId, kept: usize, bytes: usize) -> usize {
    let task = system.task_of(operation);
    let burst = task.separation.map_or(Separation::DEFAULT_BURST, |separation| separation.burst);
    let in_stall = (STALL.as_nanos() / task.period.as_nanos().max(1)) as usize + burst as usize + 1;
    let is_bounded = match (&task.trigger, task.separation) {
        (None, _) => true,
        (Some(_), Some(separation)) => separation.excess != Excess::Count,
        (Some(_), None) => false,
    };
    let in_stall = if is_bounded { in_stall } else { in_stall.max(LEAST_UNBOUNDED) };
    // Each is in the queue or in the hands of the thread, and there are slots for both.
    let most = MEMORY / kept.max(1) / (2 * bytes.max(1));
    in_stall.min(most).clamp(2, MOST)
}

/// About how many bytes the events have that a job of the operation takes: so many as there may be of each publication, since each has memory for these.
pub(crate) fn event_bytes(system: &System, operation: OperationId) -> usize {
    let of_site = |site: &PublicationSite| {
        let leaves = &site.subscriber(operation)?.leaves;
        let subscription = system.subscription_of(operation)?;
        let events = leaves.len().max(1) * subscription.condition.events_of_leaf();
        Some(events * system.most_taken(subscription) as usize * bytes_of(system.publication(site)))
    };
    system.publications().iter().filter_map(of_site).sum::<usize>().max(EVENT_BYTES)
}

/// Records in a quarter of a second, when they come as fast as planned, about what jobs of these operations publish or take, with so many bytes each.
pub(crate) fn ring_records(system: &System, kept: impl Iterator<Item = (OperationId, usize)>) -> usize {
    const MOST: f64 = 65_536.0;
    let rate = |(operation, bytes): (OperationId, usize)| {
        let period = system.task_of(operation).period;
        records_of(bytes) as f64 * 0.25e9 / period.as_nanos().max(1) as f64
    };
    kept.map(rate).sum::<f64>().min(MOST) as usize
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// The values of an output.
    Output(OutputId),
    /// The events that the jobs of an operation take.
    Events,
    /// What they read of the descriptor that releases them.
    Reads,
    /// What they push as this publication.
    Pushes(PublicationId),
}

/// What is to be written of an operation, beside values.
pub(crate) struct Wanted {
    pub operation: OperationId,
    pub what: Kept,
    /// Of what one job takes or pushes, about.
    pub bytes: usize,
    /// Where it comes; none where it is never bytes, or nothing is read.
    pub end: Option<Box<dyn KeptEnd>>,
}

/// About how many bytes an event of this publication has.
pub(crate) fn push_bytes(system: &System, publication: PublicationId) -> usize {
    bytes_of(system.publication(&system.publications()[publication.index()]))
}

fn bytes_of(publication: &Publication) -> usize {
    EVENT_BYTES + publication.bytes as usize + publication.header_bytes()
}

/// What of the operations, beside values, is to be kept by `parts` in a process that hosts these operations, with where it comes.
pub(crate) fn beside_values(
    system: &System,
    operations: &mut [Option<Operation>],
    parts: &KeptParts,
    is_here: impl Fn(OperationId) -> bool,
) -> Vec<Wanted> {
    let mut all = Vec::new();
    for (operation, described) in operations.iter_mut().zip(system.operations()) {
        let id = described.id;
        if !is_here(id) {
            continue;
        }
        if parts.events[id.index()] {
            let end = operation.as_mut().and_then(Operation::keep_events);
            all.push(Wanted { operation: id, what: Kept::Events, bytes: event_bytes(system, id), end });
        }
        if parts.reads[id.index()] {
            let bytes = operation.as_ref().and_then(Operation::reads).unwrap_or(0);
            let room = room(system, id, parts.count(), bytes);
            let end = operation.as_mut().and_then(|operation| operation.keep_reads(room));
            all.push(Wanted { operation: id, what: Kept::Reads, bytes, end });
        }
        for (publication, end) in operation.as_mut().map_or_else(Vec::new, Operation::keep_pushes) {
            let bytes = push_bytes(system, publication);
            all.push(Wanted { operation: id, what: Kept::Pushes(publication), bytes, end });
        }
    }
    all
}

/// Writes the values of a process's outputs, and what its jobs take and push, into the trace.
pub(crate) struct ValueLog {
    pub all: Vec<Logged>,
    /// What channels of the program hand on, and jobs push there, if that is kept.
    of_program: Option<KeptEventsEnd>,
    /// The first node of the process, by which records of several processes are told apart.
    node: u16,
    buffer: Vec<u8>,
    /// Values that were taken and could not be written.
    unwritten: u64,
}

/// An output whose values are written, or an operation with what its jobs take or push.
pub(crate) struct Logged {
    pub what: Kept,
    pub operation: OperationId,
    /// Of a value in its slot, or of what a job takes.
    pub bytes: usize,
    pub end: Box<dyn KeptEnd>,
}

impl ValueLog {
    /// What can be kept of what is to be, in the process whose first node this is: says of what never has bytes why it is not.
    pub fn new(
        (system, node): (&System, usize),
        (kept, beside): (Vec<KeptOutput>, Vec<Wanted>),
        of_program: Option<KeptEventsEnd>,
        wanted: &KeptOutputs,
    ) -> Result<(Self, Vec<OperationError>), OperationErrors> {
        let (mut all, mut without) = (Vec::new(), Vec::new());
        for KeptOutput { output, bytes, end } in kept {
            let site = &system.outputs()[output.index()];
            match end {
                Some(end) => {
                    all.push(Logged { what: Kept::Output(output), operation: site.operation, bytes, end });
                }
                None => without.push(OperationError::NeverBytes { output: site.name.clone() }),
            }
        }
        let is_named = matches!(wanted, KeptOutputs::Named(_));
        for Wanted { operation, what, bytes, end } in beside {
            if let Some(end) = end {
                all.push(Logged { what, operation, bytes, end });
                continue;
            }
            let name = || system.operations()[operation.index()].name.clone();
            match what {
                Kept::Events => without.push(OperationError::EventsNeverBytes { operation: name() }),
                Kept::Pushes(publication) => {
                    let publication = system.publications()[publication.index()].name.clone();
                    without.push(OperationError::PushesNeverBytes { publication });
                }
                Kept::Reads if is_named => without.push(OperationError::NotReadHere { operation: name() }),
                // It reads nothing, so nothing of that is missing.
                Kept::Reads => {}
                Kept::Output(_) => unreachable!("outputs have been looked at"),
            }
        }
        match wanted {
            _ if is_named && !without.is_empty() => Err(OperationErrors(without)),
            _ => {
                let buffer = if all.is_empty() { Vec::new() } else { vec![0; MOST_BYTES] };
                Ok((ValueLog { all, of_program, node: node as u16, buffer, unwritten: 0 }, without))
            }
        }
    }

    /// Writes the values since the last call that are visible as of this instant, behind all that `sink` has up to `now`. Returns whether there
    /// were any.
    pub fn keep(&mut self, as_of: Instant, sink: &mut impl Sink, now: Instant) -> bool {
        let mut were_any = false;
        let ValueLog { all, of_program, node, buffer, unwritten } = self;
        for Logged { what, operation, end, .. } in all {
            end.take_all(as_of, buffer, &mut |stamp, value| {
                were_any = true;
                let job = JobId { operation: *operation, instance: stamp.instance };
                let cause = match value {
                    KeptBytes::Bytes(bytes) => {
                        let (of, bytes) = match *what {
                            Kept::Output(output) => (KeptOf::Output(output.index() as u32), bytes),
                            Kept::Events | Kept::Reads => (KeptOf::Taken, bytes),
                            Kept::Pushes(publication) => {
                                let (number, bytes) = numbered_push(bytes).expect("it was numbered");
                                let publication = publication.index() as u32;
                                (KeptOf::Pushed { publication, number }, bytes)
                            }
                        };
                        return values::write(sink, (job, of), bytes, *node, now);
                    }
                    KeptBytes::TooLong => ValueLoss::TooLong,
                    KeptBytes::Failed => ValueLoss::Failed,
                };
                *unwritten += 1;
                let cause = cause.into();
                sink.record(match *what {
                    Kept::Pushes(publication) => {
                        let publication = publication.index() as u32;
                        let lost = PushUnkept { job, publication, node: *node, cause };
                        lost.at(now, Record::NO_CPU)
                    }
                    Kept::Output(_) | Kept::Events | Kept::Reads => {
                        let output = match *what {
                            Kept::Output(output) => Some(output.index() as u32),
                            _ => None,
                        };
                        ValueLost { job, output, node: *node, cause }.at(now, Record::NO_CPU)
                    }
                });
            });
        }
        if let Some(of_program) = of_program {
            of_program.take_all(as_of, &mut |job, of, bytes| {
                were_any = true;
                values::write(sink, (job, of), bytes, *node, now);
            });
        }
        were_any
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.of_program.is_none()
    }

    /// Values that were published and are not kept.
    pub fn not_kept(&self) -> u64 {
        let dropped = self.all.iter().map(|kept| kept.end.connection().dropped()).sum::<u64>();
        dropped + self.of_program.as_ref().map_or(0, KeptEventsEnd::lost) + self.unwritten
    }

    /// Keeps values on a thread of its own until it is told to finish, in a ring from which another process takes them.
    ///
    /// # Errors
    /// If the thread cannot be created.
    pub fn start(mut self, mut writer: RingWriter) -> std::io::Result<ValueThread> {
        let done = StopFlag::new();
        let told = done.clone();
        let thread = std::thread::Builder::new().name(THREAD.into()).spawn(move || {
            while told.sleep_until(MonotonicClock.now() + INTERVAL) == Slept::Due {
                // What has ended by now has said so by now: each value comes behind word of its job.
                let now = MonotonicClock.now();
                self.keep(now, &mut writer, now);
            }
            self.keep(Instant::MAX, &mut writer, MonotonicClock.now());
            self.not_kept()
        })?;
        Ok(ValueThread { done, thread: Some(thread) })
    }
}

/// The name of the thread and of its ring.
pub(crate) const THREAD: &str = "values";

/// Who writes the values of a process.
pub(crate) enum ValueWriting {
    /// The collector, which takes this when it begins.
    Collector(ValueLog),
    OwnThread(ValueThread),
}

/// The thread at work. Dropping it ends it.
pub(crate) struct ValueThread {
    done: StopFlag,
    thread: Option<JoinHandle<u64>>,
}

impl ValueThread {
    /// All that publish have ended: writes the rest, and returns how many values were published and are not kept.
    ///
    /// # Panics
    /// With what the thread panicked with.
    pub fn finish(mut self) -> u64 {
        self.done.stop();
        let thread = self.thread.take().expect("it ends once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for ValueThread {
    fn drop(&mut self) {
        self.done.stop();
        // What it panicked with, the run that was dropped does not tell.
        _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::{OutputBuilder, TaskBuilder};
    use talea_time::Work;

    fn system() -> System {
        let task = |name: &str, period: i64| {
            TaskBuilder::new(name, Duration::from_millis(period))
                .wcet(Work::from_nanos(1))
                .output(OutputBuilder::new("out"))
        };
        let often = TaskBuilder::new("often", Duration::from_micros(10)).wcet(Work::from_nanos(1));
        let builder = System::builder("test").task(task("fast", 1)).task(task("slow", 500));
        builder.task(often.output(OutputBuilder::new("out"))).build().expect("a system")
    }

    /// Released from outside, 20 at once, and then one each second; one keeps to that, the other need not.
    fn in_bursts() -> System {
        let task = |name: &str, excess| {
            TaskBuilder::external(name, Duration::from_secs(1))
                .burst(20)
                .excess(excess)
                .wcet(Work::from_nanos(1))
                .output(OutputBuilder::new("out"))
        };
        let builder = System::builder("test").task(task("kept", Excess::Defer));
        builder.task(task("free", Excess::Count)).build().expect("a system")
    }

    #[test]
    fn there_is_room_for_what_comes_while_the_thread_does_not_run_or_for_what_memory_holds() {
        let system = system();
        let room = |operation, bytes| room(&system, OperationId::from_index(operation), 2, bytes);
        assert_eq!((room(0, 8), room(1, 8), room(2, 8)), (2_002, 6, MOST));
        // 32 MiB for each of the two, in slots of which there are two for each value.
        assert_eq!((room(0, 1 << 20), room(0, 1 << 30)), (16, 2));

        let system = in_bursts();
        let room = |operation| super::room(&system, OperationId::from_index(operation), 2, 8);
        assert_eq!((room(0), room(1)), (23, LEAST_UNBOUNDED));
    }
}
