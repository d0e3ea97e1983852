//! The kernel's context switches during a run on real threads, as far as the user may read them.
//!
//! First those of all threads on the run's processors are asked for. If that is not permitted, those of this process's threads are
//! recorded, which needs no privilege on most machines and is enough for [`super::regions::switching`]. A separate thread reads the
//! records, if possible on processors that the run does not use, so that it does not disturb the run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use talea_linux::affinity;
use talea_linux::clock::MonotonicClock;
use talea_record::Record;
use talea_recording::kernel::{KernelEvent, KernelScope, Processors, Recorder};
use talea_recording::{KernelError, KernelOptions, KernelStream};
use talea_time::{Clock, Duration};

/// Whose context switches were recorded.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedSwitches {
    /// Those of all threads on the processors of the run.
    #[serde(rename = "everybody")]
    OnProcessors,
    /// Those of this process's threads only.
    OwnThreads,
    /// None, for this reason.
    Nothing(String),
}

/// The switches of a run.
#[derive(Debug)]
pub struct KernelSwitches {
    /// Whose.
    pub recorded: RecordedSwitches,
    /// In the order of time.
    pub records: Vec<Record>,
}

/// How long records may wait in the kernel's buffer, which holds those of many seconds.
const LOOK: Duration = Duration::from_millis(100);
/// A switch is in its buffer within microseconds.
const SETTLING: Duration = Duration::from_millis(1);

/// Records context switches until it is finished.
pub struct SwitchRecorder {
    stop: Arc<AtomicBool>,
    recorded: RecordedSwitches,
    thread: Option<JoinHandle<std::io::Result<Vec<Record>>>>,
}

impl SwitchRecorder {
    /// Records the switches on `processors` from when this returns; also of threads that are created later.
    pub fn open(processors: &[u16]) -> SwitchRecorder {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, hear) = mpsc::channel();
        let processors: BTreeSet<u16> = processors.iter().copied().collect();
        let flag = Arc::clone(&stop);
        let work = move || match stream(&processors) {
            Err(error) => {
                let _nobody_waits = tell.send(RecordedSwitches::Nothing(error.to_string()));
                Ok(Vec::new())
            }
            Ok((stream, recorded)) => {
                keep_off(&processors);
                let _nobody_waits = tell.send(recorded);
                collect(stream, &flag)
            }
        };
        match std::thread::Builder::new().name("kernel-recorder".into()).spawn(work) {
            Ok(thread) => {
                let recorded =
                    hear.recv().unwrap_or_else(|_| RecordedSwitches::Nothing("the recorder failed".into()));
                SwitchRecorder { stop, recorded, thread: Some(thread) }
            }
            Err(error) => {
                SwitchRecorder { stop, recorded: RecordedSwitches::Nothing(error.to_string()), thread: None }
            }
        }
    }

    /// Ends the recording and returns the switches.
    pub fn finish(mut self) -> KernelSwitches {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        let joined = thread.map_or(Ok(Vec::new()), |thread| thread.join().expect("listening does not panic"));
        match joined {
            Ok(records) => KernelSwitches { recorded: self.recorded.clone(), records },
            Err(error) => {
                KernelSwitches { recorded: RecordedSwitches::Nothing(error.to_string()), records: Vec::new() }
            }
        }
    }
}

impl Drop for SwitchRecorder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn stream(processors: &BTreeSet<u16>) -> Result<(KernelStream, RecordedSwitches), KernelError> {
    let options = |scope| KernelOptions {
        scope,
        processors: Processors::These(processors.clone()),
        events: [KernelEvent::Switches].into(),
        buffer_bytes: KernelOptions::BUFFER_BYTES,
        recorder: Recorder::Included,
    };
    let open = |scope| KernelStream::open(&options(scope), MonotonicClock.now());
    let everybody = open(KernelScope::Machine).map(|stream| (stream, RecordedSwitches::OnProcessors));
    everybody.or_else(|_| Ok((open(KernelScope::Process(std::process::id()))?, RecordedSwitches::OwnThreads)))
}

/// Moves the calling thread off the run's processors, unless there are no others or they are not permitted.
fn keep_off(processors: &BTreeSet<u16>) {
    let others = affinity::allowed()
        .map(|all| -> Vec<u16> { all.into_iter().filter(|cpu| !processors.contains(cpu)).collect() });
    if let Ok(others) = others
        && !others.is_empty()
    {
        let _stays_where_it_is = affinity::set(None, &others);
    }
}

fn collect(mut stream: KernelStream, stop: &AtomicBool) -> std::io::Result<Vec<Record>> {
    let mut records = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        stream.control().wait(LOOK);
        stream.poll(MonotonicClock.now() - SETTLING, &mut records);
    }
    stream.finish(&mut records)?;
    Ok(records)
}
