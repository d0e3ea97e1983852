//! From a descriptor that becomes ready to the first instruction of the operation that it releases, in a real run, beside a thread of the same
//! priority that waits for the descriptor and does nothing else; and what it costs to keep the values of a run.

use super::{Effort, Stage};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::time::{ClockId, clock_gettime};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::StopFlag;
use talea_linux::thread::spawn;
use talea_measure::{Report, Role, Samples};
use talea_model::{OutputBuilder, System, TaskBuilder};
use talea_runtime::{Executive, JobContext, KeptOutputs, Operations, OutputKind, RtMode, RunOptions};
use talea_time::{Clock, Duration, Instant, Work};

const STACK: usize = 256 * 1024;
/// Long enough for the woken threads to sleep again.
const PAUSE: Duration = Duration::from_micros(300);
/// Written last.
const END: u64 = 1 << 40;

/// When who was woken had its first instruction, and how often that was.
#[derive(Default)]
struct Arrivals {
    last_ns: AtomicI64,
    count: AtomicU64,
}

impl Arrivals {
    fn note(&self) {
        self.last_ns.store(MonotonicClock.now().as_nanos(), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }

    fn wait_for(&self, number: u64) -> Instant {
        pause(PAUSE);
        while self.count.load(Ordering::Acquire) < number {
            pause(PAUSE);
        }
        Instant::from_nanos(self.last_ns.load(Ordering::Relaxed))
    }
}

fn pause(time: Duration) {
    StopFlag::new().sleep_until(MonotonicClock.now() + time);
}

fn counter() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC).expect("there is room for a descriptor")
}

fn add(counter: &OwnedFd, number: u64) {
    rustix::io::write(counter, &number.to_ne_bytes()).expect("there is room in it");
}

/// Takes all that was added.
fn take(counter: &OwnedFd) -> u64 {
    let mut bytes = [0; 8];
    rustix::io::read(counter, &mut bytes).expect("it is ready");
    u64::from_ne_bytes(bytes)
}

pub fn measure(stage: &Stage, effort: Effort, report: &mut Report) {
    readiness(stage, effort, report);
    keeping(stage, effort, report);
}

fn readiness(stage: &Stage, effort: Effort, report: &mut Report) {
    let wakes = u64::from(effort.wakes * effort.repetitions);
    let options = RunOptions { duration: None, rt: RtMode::Warn, ..RunOptions::default() };
    // The lane of the only operation has the priority below the release thread's.
    let priority = options.band.top - 1;

    let (bare, of_bare) = (counter(), Arc::new(Arrivals::default()));
    let (waited, noted) = (bare.try_clone().expect("another descriptor of it"), Arc::clone(&of_bare));
    let thread = spawn("bare", stage.policy(priority), &[stage.here], STACK, move || {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("there is room for a descriptor");
        let data = epoll::EventData::new_u64(0);
        epoll::add(&poll, &waited, data, epoll::EventFlags::IN).expect("it can be polled");
        let mut events = [const { std::mem::MaybeUninit::uninit() }; 4];
        loop {
            epoll::wait(&poll, &mut events, None).expect("no signals here");
            noted.note();
            if take(&waited) >= END {
                return;
            }
        }
    });
    let thread = thread.expect("the policy was tried before");

    let period = Duration::from_millis(1);
    let task = TaskBuilder::external("ready", period).deadline(period).wcet(Work::from_nanos(10_000));
    let builder = System::builder("outside").node("here", [stage.here]).task(task.burst(1_000));
    let system = builder.build().expect("the description is sound");
    let (outside, of_lane) = (counter(), Arc::new(Arrivals::default()));
    let (read, noted) = (outside.try_clone().expect("another descriptor of it"), Arc::clone(&of_lane));
    let operations = Operations::synthetic().with("ready", move |_: &JobContext<'_>| {
        noted.note();
        take(&read);
    });
    let prepared = Executive::prepare(&system, operations, options).expect("it can be run");
    prepared.descriptor("ready", outside.try_clone().expect("another one")).expect("it can be polled");
    let stop = prepared.stop_handle();
    let running = std::thread::spawn(move || prepared.run().expect("it runs"));
    pause(Duration::from_millis(200));

    let [mut floor, mut subject] = [Samples::new(), Samples::new()];
    for number in 1..=wakes {
        for (counter, arrivals, samples) in
            [(&bare, &of_bare, &mut floor), (&outside, &of_lane, &mut subject)]
        {
            let written = MonotonicClock.now();
            add(counter, 1);
            samples.add(arrivals.wait_for(number) - written);
        }
    }
    stop.stop();
    running.join().expect("no thread of it panics");
    add(&bare, END);
    thread.join().expect("it does not panic");
    let group = "a descriptor is ready to first instruction";
    report.add(group, "bare epoll_wait", Role::Floor, floor);
    report.add(group, "an operation that it releases", Role::Subject, subject);
}

/// Values of a kilobyte, ten thousand of them a second.
fn keeping(stage: &Stage, effort: Effort, report: &mut Report) {
    let task = TaskBuilder::new("fast", Duration::from_micros(100)).wcet(Work::from_nanos(5_000));
    let builder = System::builder("keeping").node("here", [stage.here]);
    let system = builder.task(task.output(OutputBuilder::new("value"))).build().expect("it is sound");
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let duration = Duration::from_millis(if effort.repetitions > 1 { 2_000 } else { 50 });
    let [mut floor, mut subject] = [Samples::new(), Samples::new()];
    for _ in 0..effort.repetitions {
        for (kept, samples) in [(KeptOutputs::None, &mut floor), (KeptOutputs::All, &mut subject)] {
            let used = used_by_run(&system, kept, duration, folder.path());
            samples.add(Duration::from_nanos(used.as_nanos() * 1_000_000_000 / duration.as_nanos()));
        }
    }
    let more = (subject.ns(0.5) - floor.ns(0.5)) / 1e7;
    let group = "processor time in a second of a run that publishes 10,000 values of 1 KiB";
    report.add(group, "none is kept", Role::Floor, floor);
    let note = format!("{more:+.1} % of a processor");
    report.add_with_note(group, "all are kept in the trace", Role::Subject, subject, note);
}

/// The processor time that the process uses while the system runs.
fn used_by_run(system: &System, kept: KeptOutputs, duration: Duration, folder: &Path) -> Duration {
    let operations = Operations::synthetic().with_ports("fast", |ports| {
        let kind = OutputKind::any().plain();
        let value = ports.output_of::<[u64; 128]>("value", kind, || [0; 128]);
        move |job: &JobContext<'_>| job.write(value).fill(job.instance())
    });
    let options = RunOptions {
        duration: Some(duration),
        keep_log: Some(folder.join("trace.talea")),
        keep_values: kept,
        ..RunOptions::default()
    };
    let prepared = Executive::prepare(system, operations, options).expect("it can be run");
    let before = processor_time();
    let outcome = prepared.run().expect("it runs");
    assert_eq!(outcome.mishaps.panics, []);
    processor_time() - before
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::from_nanos(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}
