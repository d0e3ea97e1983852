//! The kernel's switches during a run on real threads, as far as the user may have them.
//!
//! What happens on the run's processors is asked for first; where that is not permitted, what happens to this process's own threads,
//! which needs no privilege on most machines and is enough for [`super::regions::switching`]. A thread of its own takes the records
//! off, on other processors than the run's where there are any, so that it takes nothing from the run.

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

/// Whose switches the kernel told.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// Everybody's on the processors of the run.
    Everybody,
    /// Those of the threads of this process.
    OwnThreads,
    /// None, for this reason.
    Nothing(String),
}

/// The switches of a run.
#[derive(Debug)]
pub struct Heard {
    /// Whose.
    pub told: Told,
    /// In the order of time.
    pub records: Vec<Record>,
}

/// How long records may wait in the kernel's buffer, which holds those of many seconds.
const LOOK: Duration = Duration::from_millis(100);
/// A switch is in its buffer within microseconds.
const SETTLING: Duration = Duration::from_millis(1);

/// Listens until told to stop.
pub struct Listener {
    stop: Arc<AtomicBool>,
    told: Told,
    thread: Option<JoinHandle<std::io::Result<Vec<Record>>>>,
}

impl Listener {
    /// Listens on `processors` from when this returns; threads created afterwards are heard as well.
    pub fn open(processors: &[u16]) -> Listener {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, hear) = mpsc::channel();
        let processors: BTreeSet<u16> = processors.iter().copied().collect();
        let flag = Arc::clone(&stop);
        let work = move || match stream(&processors) {
            Err(error) => {
                let _nobody_waits = tell.send(Told::Nothing(error.to_string()));
                Ok(Vec::new())
            }
            Ok((stream, told)) => {
                keep_off(&processors);
                let _nobody_waits = tell.send(told);
                collect(stream, &flag)
            }
        };
        match std::thread::Builder::new().name("kernel-listener".into()).spawn(work) {
            Ok(thread) => {
                let told = hear.recv().unwrap_or_else(|_| Told::Nothing("the listener failed".into()));
                Listener { stop, told, thread: Some(thread) }
            }
            Err(error) => Listener { stop, told: Told::Nothing(error.to_string()), thread: None },
        }
    }

    /// What was heard.
    pub fn finish(mut self) -> Heard {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        let joined = thread.map_or(Ok(Vec::new()), |thread| thread.join().expect("listening does not panic"));
        match joined {
            Ok(records) => Heard { told: self.told.clone(), records },
            Err(error) => Heard { told: Told::Nothing(error.to_string()), records: Vec::new() },
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn stream(processors: &BTreeSet<u16>) -> Result<(KernelStream, Told), KernelError> {
    let options = |scope| KernelOptions {
        scope,
        processors: Processors::These(processors.clone()),
        events: [KernelEvent::Switches].into(),
        buffer_bytes: KernelOptions::BUFFER_BYTES,
        recorder: Recorder::Included,
    };
    let open = |scope| KernelStream::open(&options(scope), MonotonicClock.now());
    let everybody = open(KernelScope::Machine).map(|stream| (stream, Told::Everybody));
    everybody.or_else(|_| Ok((open(KernelScope::Process(std::process::id()))?, Told::OwnThreads)))
}

/// Leaves the run's processors alone. Where there are no others, or they are refused, it is heard on the run's.
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
