//! Enqueueing to a lane that is awake: busy with a job, so that nobody touches the inbox meanwhile; on another
//! CPU, where it looks into the inbox between short jobs; and on another CPU where it does nothing but look.
//! No lane does the last: it sleeps. It is the worst case for the cache lines that both sides write.

use super::{Effort, Stage};
use std::cell::Cell;
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use talea_linux::clock::MonotonicClock;
use talea_linux::sched::Policy;
use talea_linux::thread::spawn;
use talea_measure::{Report, Role, Samples};
use talea_ring::bell::Bell;
use talea_ring::inbox::Links;
use talea_time::{Clock, Duration};

/// More than a releaser writes down of a job for its lane.
type Value = [u64; 4];

/// Where a value is written for another thread to read; something else says when.
#[derive(Default)]
struct Words([AtomicU64; 4]);

impl Words {
    fn write(&self, value: Value) {
        self.0.iter().zip(value).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    fn read(&self) -> Value {
        [0, 1, 2, 3].map(|word| self.0[word].load(Ordering::Relaxed))
    }
}

const BATCH: u32 = 64;
const CAPACITY: usize = 1_024;
const STACK: usize = 256 * 1024;

/// The least a push of several producers into an array can do: claim a cell by one atomic addition,
/// write, publish. It notices neither a full ring nor a sleeping consumer, and a producer that is preempted
/// before it publishes hides what others push after it.
struct BareRing {
    tail: AtomicU64,
    cells: Vec<(AtomicU64, Words)>,
}

impl BareRing {
    fn new() -> Self {
        let cells = (0..CAPACITY).map(|_| Default::default()).collect();
        BareRing { tail: AtomicU64::new(0), cells }
    }

    fn push(&self, value: Value) {
        let position = self.tail.fetch_add(1, Ordering::Relaxed);
        let (published, words) = &self.cells[position as usize % CAPACITY];
        words.write(value);
        published.store(position + 1, Ordering::Release);
    }

    fn pop(&self, head: &mut u64) -> Option<Value> {
        let (published, words) = &self.cells[*head as usize % CAPACITY];
        if published.load(Ordering::Acquire) != *head + 1 {
            return None;
        }
        *head += 1;
        Some(words.read())
    }
}

/// The two ends of one way to hand values over.
trait Way: Send {
    fn role(&self) -> Role;
    fn name(&self) -> &'static str;
    /// A function that pushes one value, and one that takes one if there is one.
    fn ends(self) -> (impl Fn(Value), impl FnMut() -> Option<Value> + Send + 'static);
}

#[derive(Clone, Copy)]
struct Bare;
#[derive(Clone, Copy)]
struct Inbox;
#[derive(Clone, Copy)]
struct StdMpsc;

impl Way for Bare {
    fn role(&self) -> Role {
        Role::Floor
    }
    fn name(&self) -> &'static str {
        "bare fetch_add ring"
    }
    fn ends(self) -> (impl Fn(Value), impl FnMut() -> Option<Value> + Send + 'static) {
        let ring = Arc::new(BareRing::new());
        let (consumer, mut head) = (Arc::clone(&ring), 0);
        (move |value| ring.push(value), move || consumer.pop(&mut head))
    }
}

impl Way for Inbox {
    fn role(&self) -> Role {
        Role::Subject
    }
    fn name(&self) -> &'static str {
        "inbox push + bell ring"
    }
    fn ends(self) -> (impl Fn(Value), impl FnMut() -> Option<Value> + Send + 'static) {
        let jobs: Arc<[Words]> = (0..CAPACITY).map(|_| Words::default()).collect();
        let (sender, mut receiver) = Links::new(CAPACITY).inbox();
        let bell = Bell::new();
        let written = Arc::clone(&jobs);
        // As the instances of one operation come: each job in the next entry of the table.
        let next = Cell::new(0);
        let push = move |value| {
            let tag = next.get();
            next.set((tag + 1) % CAPACITY);
            written[tag].write(value);
            sender.push(tag as u32).expect("the inbox is drained between batches");
            bell.ring();
        };
        (push, move || receiver.pop().map(|tag| jobs[tag as usize].read()))
    }
}

impl Way for StdMpsc {
    fn role(&self) -> Role {
        Role::Peer
    }
    fn name(&self) -> &'static str {
        "std::sync::mpsc, bounded"
    }
    fn ends(self) -> (impl Fn(Value), impl FnMut() -> Option<Value> + Send + 'static) {
        let (sender, receiver) = mpsc::sync_channel(CAPACITY);
        (move |value| sender.send(value).expect("connected"), move || receiver.try_recv().ok())
    }
}

/// What the lane on the other CPU does.
#[derive(Clone, Copy)]
enum Pace {
    /// It has short jobs and looks into its inbox between them.
    Working,
    /// It does nothing but look.
    Spinning,
}

/// A short job.
const JOB: Duration = Duration::from_micros(2);

/// The samples of one way.
struct Results {
    busy: Samples,
    working: Samples,
    spinning: Samples,
}

impl Results {
    fn new() -> Self {
        Results { busy: Samples::new(), working: Samples::new(), spinning: Samples::new() }
    }
}

pub fn measure(stage: &Stage, effort: Effort, report: &mut Report) {
    let (mut bare, mut inbox, mut std) = (Results::new(), Results::new(), Results::new());
    for _ in 0..effort.repetitions {
        bare = on_stage(stage, effort, Bare, bare);
        inbox = on_stage(stage, effort, Inbox, inbox);
        std = on_stage(stage, effort, StdMpsc, std);
    }
    let mut add = |group, [bare, inbox, std]: [Samples; 3]| {
        report.add(group, Bare.name(), Bare.role(), bare);
        report.add(group, Inbox.name(), Inbox.role(), inbox);
        report.add(group, StdMpsc.name(), StdMpsc.role(), std);
    };
    add("enqueue, lane awake and busy (per push)", [bare.busy, inbox.busy, std.busy]);
    if stage.there.is_some() {
        let group = "enqueue, lane on another CPU looks every 2 us (one push and a clock)";
        add(group, [bare.working, inbox.working, std.working]);
        let group = "enqueue, lane spins on another CPU (per push)";
        add(group, [bare.spinning, inbox.spinning, std.spinning]);
    }
}

/// Measures one way with a thread on its own CPU; the samples travel with it.
fn on_stage<W: Way + Copy + 'static>(stage: &Stage, effort: Effort, way: W, mut own: Results) -> Results {
    let there = stage.there;
    // Ordinary threads: a real-time spin would only fight the kernel's throttling here.
    let producer = spawn("producer", Policy::Other, &[stage.here], STACK, move || {
        lane_busy(way, effort.batches, &mut own.busy);
        if let Some(there) = there {
            let batches = effort.batches / 4;
            lane_there(way, there, Pace::Working, [batches, 1], &mut own.working);
            lane_there(way, there, Pace::Spinning, [batches, BATCH], &mut own.spinning);
        }
        own
    });
    let producer = producer.expect("an ordinary thread on an allowed CPU");
    producer.join().expect("measuring does not panic")
}

fn lane_busy(way: impl Way, batches: u32, samples: &mut Samples) {
    let (push, mut pop) = way.ends();
    for batch in 0..batches {
        let value = black_box([u64::from(batch); 4]);
        let start = MonotonicClock.now();
        (0..BATCH).for_each(|_| push(value));
        samples.add_batch(MonotonicClock.now() - start, BATCH);
        while let Some(value) = pop() {
            black_box(value);
        }
    }
}

/// Pushes `batches` times `size` values to a lane on the CPU `there`, and waits for each batch to be taken.
fn lane_there(way: impl Way, there: u16, pace: Pace, [batches, size]: [u32; 2], samples: &mut Samples) {
    let (push, mut pop) = way.ends();
    let shared = Arc::new((AtomicU64::new(0), AtomicBool::new(false)));
    let lane_shared = Arc::clone(&shared);
    let lane = spawn("lane", Policy::Other, &[there], STACK, move || {
        let (taken, done) = &*lane_shared;
        while !done.load(Ordering::Relaxed) {
            match pop() {
                Some(value) => {
                    black_box(value);
                    taken.fetch_add(1, Ordering::Release);
                }
                None => pass(pace),
            }
        }
    });
    let lane = lane.expect("an ordinary thread on an allowed CPU");
    let (taken, done) = &*shared;
    for batch in 0..batches {
        let value = black_box([u64::from(batch); 4]);
        let start = MonotonicClock.now();
        (0..size).for_each(|_| push(value));
        samples.add_batch(MonotonicClock.now() - start, size);
        while taken.load(Ordering::Acquire) < u64::from(batch + 1) * u64::from(size) {
            spin_loop();
        }
    }
    done.store(true, Ordering::Relaxed);
    lane.join().expect("taking does not panic");
}

fn pass(pace: Pace) {
    match pace {
        Pace::Spinning => spin_loop(),
        Pace::Working => {
            let end = MonotonicClock.now() + JOB;
            while MonotonicClock.now() < end {
                spin_loop();
            }
        }
    }
}
