//! What recording the kernel's events adds to a context switch, what watching its threads adds, and what reading events costs.
//!
//! Two threads on one processor wake each other and sleep: each hand-over is one wake-up and one switch. A turn is so many
//! hand-overs without a stream, then as many with each choice of events, in a new order every time.

use super::{Effort, Stage};
use rustix::thread::futex::{self, Flags};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use talea_linux::clock::MonotonicClock;
use talea_linux::thread::spawn;
use talea_linux::watch::{Group, Inherit, ThreadWatch};
use talea_measure::{Report, Role, Samples};
use talea_record::{Event, Metadata, Record, RecordSource, RingFile, Sink};
use talea_recording::kernel::{KernelEvent, KernelOptions, KernelStream, Processors};
use talea_time::{Clock, Instant};

const STACK: usize = 256 * 1024;
/// There and back, in one turn.
const ROUNDS: u32 = 1_000;
/// Holds everything of a turn.
const BUFFER_BYTES: usize = 4 << 20;
const PRIORITY: u8 = 40;

/// What looks at the switches, and what it is called.
struct Choice {
    name: &'static str,
    means: Means,
    samples: Samples,
}

#[derive(Clone, Copy)]
enum Means {
    Events(&'static [KernelEvent]),
    /// Programs in the kernel, for which the two threads are one group, as a program's are, or one each, whose switches are recorded.
    Programs(Groups),
}

#[derive(Clone, Copy)]
enum Groups {
    One,
    OneEach,
}

pub fn measure(stage: &Stage, effort: Effort, report: &mut Report) {
    let choice = |name, means| Choice { name, means, samples: Samples::new() };
    let mut choices = [
        choice("no stream", Means::Events(&[])),
        choice("watched, in one group", Means::Programs(Groups::One)),
        choice("watched, in a group each", Means::Programs(Groups::OneEach)),
        choice("switches", Means::Events(&[KernelEvent::Switches])),
        choice(
            "switches, wake-ups, names",
            Means::Events(&[KernelEvent::Switches, KernelEvent::Wakeups, KernelEvent::Names]),
        ),
        choice("everything, 4 system calls per round", Means::Events(&KernelEvent::ALL)),
    ];
    let mut reading = [Samples::new(), Samples::new()];
    for turn in 0..effort.kernel_turns as usize {
        for step in 0..choices.len() {
            let index = (turn + step) % choices.len();
            let choice = &mut choices[index];
            let events = match choice.means {
                Means::Events(events) => events,
                Means::Programs(groups) => {
                    match ThreadWatch::open(&[stage.here]) {
                        Ok((watch, ..)) => hand_over(stage, &watched(watch, groups), &mut choice.samples),
                        Err(error) if turn == 0 => eprintln!("not measuring what is watched: {error}"),
                        Err(_) => {}
                    }
                    continue;
                }
            };
            let stream = match open(stage.here, events) {
                Ok(stream) => stream,
                Err(error) => return eprintln!("not measuring the kernel stream: {error}"),
            };
            hand_over(stage, &None, &mut choice.samples);
            if let Some(stream) = stream {
                read(stream, &mut reading);
            }
        }
    }
    let group = "context switch with its wake-up, same CPU, while the kernel stream records, or its threads are watched";
    let floor = choices[0].samples.ns(0.5);
    for (place, choice) in choices.into_iter().enumerate() {
        let role = if place == 0 { Role::Floor } else { Role::Subject };
        let note = match role {
            Role::Floor => String::new(),
            _ => format!("{:+.0} ns", choice.samples.ns(0.5) - floor),
        };
        report.add_with_note(group, choice.name, role, choice.samples, note);
    }
    let group = "reading one record";
    let [ring, kernel] = reading;
    report.add(group, "of a ring", Role::Floor, ring);
    report.add(group, "of the kernel, decoded", Role::Subject, kernel);
}

fn open(cpu: u16, events: &[KernelEvent]) -> Result<Option<KernelStream>, talea_recording::KernelError> {
    if events.is_empty() {
        return Ok(None);
    }
    let options = KernelOptions {
        processors: Processors::These([cpu].into()),
        events: events.iter().copied().collect(),
        buffer_bytes: BUFFER_BYTES,
        ..KernelOptions::default()
    };
    KernelStream::open(&options, MonotonicClock.now()).map(Some)
}

/// A watch, and the group of each of the two threads.
type Watched = Option<(Arc<ThreadWatch>, [Group; 2])>;

fn watched(watch: ThreadWatch, groups: Groups) -> Watched {
    let group = || watch.group().expect("nobody else has any");
    let first = group();
    let second = match groups {
        Groups::One => first,
        Groups::OneEach => group(),
    };
    Some((Arc::new(watch), [first, second]))
}

fn enter(watched: &Watched, place: usize) {
    if let Some((watch, groups)) = watched {
        let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        watch.enter(tid, groups[place], Inherit::Nobody).expect("there is room for two");
    }
}

/// Half of each round's time.
fn hand_over(stage: &Stage, watched: &Watched, samples: &mut Samples) {
    let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let theirs = Arc::clone(&words);
    let (of_pong, of_ping) = (watched.clone(), watched.clone());
    let cpus = [stage.here];
    let pong = spawn("pong", stage.policy(PRIORITY), &cpus, STACK, move || {
        enter(&of_pong, 0);
        for round in 1..=ROUNDS {
            wait_for(&theirs[0], round);
            give(&theirs[1], round);
        }
    });
    let ping = spawn("ping", stage.policy(PRIORITY), &cpus, STACK, move || {
        enter(&of_ping, 1);
        let mut times = Vec::with_capacity(ROUNDS as usize);
        let mut start = MonotonicClock.now();
        for round in 1..=ROUNDS {
            give(&words[0], round);
            wait_for(&words[1], round);
            let end = MonotonicClock.now();
            times.push(end - start);
            start = end;
        }
        times
    });
    let times = ping.expect("the policy was tried before").join().expect("ping does not panic");
    pong.expect("the policy was tried before").join().expect("pong does not panic");
    for time in times {
        samples.add_batch(time, 2);
    }
}

fn give(word: &AtomicU32, round: u32) {
    word.store(round, Ordering::Release);
    futex::wake(word, Flags::PRIVATE, 1).expect("the word is a futex");
}

fn wait_for(word: &AtomicU32, round: u32) {
    while word.load(Ordering::Acquire) != round {
        // An error means that the word has changed already or a signal came: both are looked at.
        let _changed = futex::wait(word, Flags::PRIVATE, round - 1, None);
    }
}

/// Reads what a turn has recorded, and as many records from a ring.
fn read(stream: KernelStream, [of_ring, of_kernel]: &mut [Samples; 2]) {
    let (mut control, sources) = stream.split();
    control.stop().expect("events that run can be stopped");
    for source in sources {
        let (count, kernel) = drain(source);
        let directory =
            tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a place for a file");
        let metadata = Metadata::bare("none");
        let mut file =
            RingFile::create(&directory.path().join("ring"), &metadata, &["ring".into()], count as usize)
                .expect("there is room for a ring");
        let mut writer = file.writer(0);
        (0..count).for_each(|n| writer.record(record(n)));
        let (of_one, ring) = drain(file.readers().remove(0));
        of_kernel.add_batch(kernel, count.max(1));
        of_ring.add_batch(ring, of_one.max(1));
    }
}

/// Takes all records and returns their number and the time that took.
fn drain(mut source: impl RecordSource) -> (u32, talea_time::Duration) {
    let start = MonotonicClock.now();
    let mut count = 0;
    while let Some(record) = source.take() {
        black_box(record);
        count += 1;
    }
    (count, MonotonicClock.now() - start)
}

fn record(n: u32) -> Record {
    let (time, words) = (Instant::from_nanos(i64::from(n)), [u64::from(n); 2]);
    Record { time, causal: 0, words, event: Event::WAKE, source: 0, cpu: 0, arg: 0 }
}
