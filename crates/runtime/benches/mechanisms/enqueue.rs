//! Enqueueing to a lane that is awake: busy with a job, so that nobody touches the inbox meanwhile, or
//! taking values at the same time on another CPU.

use super::report::{Report, Role, Samples};
use super::{Effort, Stage};
use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use talea_runtime::bell::Bell;
use talea_runtime::inbox::{self, Receiver, Sender};
use talea_runtime::sys::clock::MonotonicClock;
use talea_runtime::sys::sched::Policy;
use talea_runtime::sys::thread::spawn;
use talea_time::Clock;

/// About what a lane is sent for a job.
type Value = [u64; 4];

const BATCH: u32 = 64;
const CAPACITY: usize = 1_024;
const STACK: usize = 256 * 1024;

/// The least a push of several producers into an array can do: claim a cell by one atomic addition,
/// write, publish. It neither notices a full ring nor a sleeping consumer.
struct BareRing {
    tail: AtomicU64,
    cells: Vec<(AtomicU64, [AtomicU64; 4])>,
}

impl BareRing {
    fn new() -> Self {
        let cell = || (AtomicU64::new(0), [const { AtomicU64::new(0) }; 4]);
        BareRing { tail: AtomicU64::new(0), cells: (0..CAPACITY).map(|_| cell()).collect() }
    }

    fn push(&self, value: Value) {
        let position = self.tail.fetch_add(1, Ordering::Relaxed);
        let (published, words) = &self.cells[position as usize % CAPACITY];
        words.iter().zip(value).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        published.store(position + 1, Ordering::Release);
    }

    fn pop(&self, head: &mut u64) -> Option<Value> {
        let (published, words) = &self.cells[*head as usize % CAPACITY];
        if published.load(Ordering::Acquire) != *head + 1 {
            return None;
        }
        *head += 1;
        Some([0, 1, 2, 3].map(|word| words[word].load(Ordering::Relaxed)))
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
        let (sender, mut receiver): (Sender<Value>, Receiver<Value>) = inbox::channel(CAPACITY);
        let bell = Bell::new();
        let push = move |value| {
            sender.push(value).expect("the inbox is drained between batches");
            bell.ring();
        };
        (push, move || receiver.pop())
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

pub fn measure(stage: &Stage, effort: Effort, report: &mut Report) {
    let busy = "enqueue, lane awake and busy (per push)";
    let taking = "enqueue, lane awake and taking on another CPU (per push)";
    let mut samples = [(); 6].map(|()| Samples::new());
    for _ in 0..effort.repetitions {
        let [a, b, c, d, e, f] = &mut samples;
        on_stage(stage, effort, Bare, a, d);
        on_stage(stage, effort, Inbox, b, e);
        on_stage(stage, effort, StdMpsc, c, f);
    }
    let [a, b, c, d, e, f] = samples;
    report.add(busy, Bare.name(), Bare.role(), a);
    report.add(busy, Inbox.name(), Inbox.role(), b);
    report.add(busy, StdMpsc.name(), StdMpsc.role(), c);
    if stage.there.is_some() {
        report.add(taking, Bare.name(), Bare.role(), d);
        report.add(taking, Inbox.name(), Inbox.role(), e);
        report.add(taking, StdMpsc.name(), StdMpsc.role(), f);
    }
}

/// Measures one way with a thread on its own CPU; the samples travel with it.
fn on_stage<W: Way + Copy + 'static>(
    stage: &Stage,
    effort: Effort,
    way: W,
    busy: &mut Samples,
    taking: &mut Samples,
) {
    let there = stage.there;
    let mut own = [std::mem::replace(busy, Samples::new()), std::mem::replace(taking, Samples::new())];
    // Ordinary threads: a real-time spin would only fight the kernel's throttling here.
    let producer = spawn("producer", Policy::Other, &[stage.here], STACK, move || {
        lane_busy(way, effort.batches, &mut own[0]);
        if let Some(there) = there {
            lane_taking(way, there, effort.batches / 4, &mut own[1]);
        }
        own
    });
    let producer = producer.expect("an ordinary thread on an allowed CPU");
    [*busy, *taking] = producer.join().expect("measuring does not panic");
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

fn lane_taking(way: impl Way, there: u16, batches: u32, samples: &mut Samples) {
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
                None => spin_loop(),
            }
        }
    });
    let lane = lane.expect("an ordinary thread on an allowed CPU");
    let (taken, done) = &*shared;
    for batch in 0..batches {
        let value = black_box([u64::from(batch); 4]);
        let start = MonotonicClock.now();
        (0..BATCH).for_each(|_| push(value));
        samples.add_batch(MonotonicClock.now() - start, BATCH);
        while taken.load(Ordering::Acquire) < u64::from(batch + 1) * u64::from(BATCH) {
            spin_loop();
        }
    }
    done.store(true, Ordering::Relaxed);
    lane.join().expect("taking does not panic");
}
