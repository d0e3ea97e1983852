//! Keeping the values that operations publish: an ordinary thread takes them as one more reader and writes them down.
//!
//! A job does not wait for that, nor write any bytes: it hands on a value to one reader more. If the thread does not run in time, values are
//! dropped, and counted and recorded as such. Where the collector is in the process, it is that thread and writes into the log; in a process
//! that another one collects from, there is a thread with a ring of its own.

use std::thread::JoinHandle;
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::{Slept, StopFlag};
use talea_model::{OperationId, OutputId, System};
use talea_operation::{Keeper, Keeping, KeptOutputs, OperationError, OperationErrors, OutputKeeper};
use talea_record::event::ValueLost;
use talea_record::values::{self, MOST_BYTES, records_of};
use talea_record::{JobId, Record, RingWriter, Sink, ValueLoss};
use talea_time::{Clock, Duration, Instant};

/// How long the thread may be kept from running, and no value be lost: as long as the collector.
const STALL: Duration = Duration::from_secs(2);
/// Bytes for values that have not been written yet, of all outputs together.
const MEMORY: usize = 64 << 20;
/// Values of an output that wait at most, however often they come.
const MOST: usize = 1 << 16;
/// How often the thread looks.
const INTERVAL: Duration = Duration::from_millis(5);

/// Room for values of an output that are not written yet, when `outputs` are kept: as many as come in [`STALL`], if they are not too large.
pub(crate) fn room(system: &System, output: OutputId, outputs: usize, bytes: usize) -> usize {
    let period = system.task_of(system.outputs()[output.index()].operation).period;
    let in_stall = (STALL.as_nanos() / period.as_nanos().max(1)) as usize + 2;
    // Each is in the queue or in the hands of the thread, and there are slots for both.
    let most = MEMORY / outputs.max(1) / (2 * bytes.max(1));
    in_stall.min(most).clamp(2, MOST)
}

/// Records in a quarter of a second about the values of these outputs, each with the bytes of a value.
pub(crate) fn ring_records(system: &System, outputs: impl Iterator<Item = (OutputId, usize)>) -> usize {
    const MOST: f64 = 65_536.0;
    let rate = |(output, bytes): (OutputId, usize)| {
        let period = system.task_of(system.outputs()[output.index()].operation).period;
        records_of(bytes) as f64 * 0.25e9 / period.as_nanos().max(1) as f64
    };
    outputs.map(rate).sum::<f64>().min(MOST) as usize
}

/// The outputs of a process whose values are kept.
pub(crate) struct ValueKeepers {
    pub all: Vec<KeptOutput>,
    /// The first node of the process, by which records of several processes are told apart.
    node: u16,
    buffer: Vec<u8>,
    too_long: u64,
}

/// An output whose values are kept.
pub(crate) struct KeptOutput {
    pub output: OutputId,
    pub operation: OperationId,
    /// Of a value in its slot.
    pub bytes: usize,
    pub keeper: Box<dyn Keeper>,
}

impl ValueKeepers {
    /// What can be kept of what is to be, in the process whose first node this is; says which outputs never have bytes.
    pub fn new(
        (system, node): (&System, usize),
        keepers: Vec<OutputKeeper>,
        wanted: &KeptOutputs,
    ) -> Result<(Self, Vec<String>), OperationErrors> {
        let (mut all, mut without) = (Vec::new(), Vec::new());
        for OutputKeeper { output, bytes, keeper } in keepers {
            let site = &system.outputs()[output.index()];
            match keeper {
                Some(keeper) => all.push(KeptOutput { output, operation: site.operation, bytes, keeper }),
                None => without.push(site.name.clone()),
            }
        }
        match wanted {
            KeptOutputs::Named(_) if !without.is_empty() => {
                let never = |output| OperationError::NeverBytes { output };
                Err(OperationErrors(without.into_iter().map(never).collect()))
            }
            _ => {
                let buffer = if all.is_empty() { Vec::new() } else { vec![0; MOST_BYTES] };
                Ok((ValueKeepers { all, node: node as u16, buffer, too_long: 0 }, without))
            }
        }
    }

    /// Writes the values since the last call that are visible as of this instant, behind all that `sink` has up to `now`.
    pub fn keep(&mut self, as_of: Instant, sink: &mut impl Sink, now: Instant) {
        let ValueKeepers { all, node, buffer, too_long } = self;
        for KeptOutput { output, operation, keeper, .. } in all {
            let output = output.index() as u32;
            keeper.keep(as_of, buffer, &mut |stamp, value| {
                let job = JobId { operation: *operation, instance: stamp.instance };
                match value {
                    Keeping::Bytes(bytes) => values::write(sink, (job, output), bytes, *node, now),
                    Keeping::TooLong => {
                        *too_long += 1;
                        let lost = ValueLost { job, output, node: *node, cause: ValueLoss::TooLong.into() };
                        sink.record(lost.at(now, Record::NO_CPU));
                    }
                }
            });
        }
    }

    /// Values that were published and are not kept.
    pub fn not_kept(&self) -> u64 {
        self.all.iter().map(|kept| kept.keeper.connection().dropped()).sum::<u64>() + self.too_long
    }

    /// Keeps values on a thread of its own until it is told to finish, in a ring from which another process takes them.
    ///
    /// # Errors
    /// If the thread cannot be created.
    pub fn start(mut self, mut writer: RingWriter) -> std::io::Result<KeepingThread> {
        let done = StopFlag::new();
        let told = done.clone();
        let thread = std::thread::Builder::new().name(THREAD.into()).spawn(move || {
            while told.sleep_until(MonotonicClock.now() + INTERVAL) == Slept::Due {
                self.keep(Instant::MAX, &mut writer, MonotonicClock.now());
            }
            self.keep(Instant::MAX, &mut writer, MonotonicClock.now());
            self.not_kept()
        })?;
        Ok(KeepingThread { done, thread: Some(thread) })
    }
}

/// The name of the thread and of its ring.
pub(crate) const THREAD: &str = "values";

/// Who keeps the values of a process.
pub(crate) enum ValueKeeping {
    /// The collector, which takes this when it begins.
    Collector(ValueKeepers),
    OwnThread(KeepingThread),
}

/// The thread at work. Dropping it ends it.
pub(crate) struct KeepingThread {
    done: StopFlag,
    thread: Option<JoinHandle<u64>>,
}

impl KeepingThread {
    /// All that publish have ended: writes the rest, and returns how many values were published and are not kept.
    ///
    /// # Panics
    /// With what the thread panicked with, which calls users' code to make bytes.
    pub fn finish(mut self) -> u64 {
        self.done.stop();
        let thread = self.thread.take().expect("it ends once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for KeepingThread {
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

    #[test]
    fn there_is_room_for_what_comes_while_the_thread_does_not_run_or_for_what_memory_holds() {
        let system = system();
        let room = |output, bytes| room(&system, OutputId::from_index(output), 2, bytes);
        assert_eq!((room(0, 8), room(1, 8), room(2, 8)), (2_002, 6, MOST));
        // 32 MiB for each of the two, in slots of which there are two for each value.
        assert_eq!((room(0, 1 << 20), room(0, 1 << 30)), (16, 2));
    }
}
