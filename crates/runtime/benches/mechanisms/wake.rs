//! Waking a sleeping lane: what it costs the producer, and how long until the lane's first instruction,
//! beside a bare futex wake that does nothing else.

use super::{Effort, Stage};
use rustix::thread::futex::{self, Flags};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use talea_channel::{Handling, Input as _, Moment, Output as _, OutputPort, Reader, Take, Visible, WhenFull};
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::StopFlag;
use talea_linux::thread::{JoinHandle, spawn};
use talea_measure::{Report, Role, Samples};
use talea_ring::bell::{Bell, Ring};
use talea_ring::inbox::Links;
use talea_time::{Clock, Duration, Instant};

const STACK: usize = 256 * 1024;
/// Long enough for the woken thread to run and fall asleep again.
const PAUSE: Duration = Duration::from_micros(150);
/// Sent last: the lane ends.
const END: u64 = u64::MAX;

/// Where the lane leaves the time of its first instruction, and how often it did.
#[derive(Default)]
struct Arrivals {
    last_ns: AtomicI64,
    count: AtomicU64,
}

impl Arrivals {
    fn note(&self, now: Instant) {
        self.last_ns.store(now.as_nanos(), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// The time of arrival `number`, once it has come and the lane has had time to sleep.
    fn wait_for(&self, number: u64) -> Instant {
        pause();
        while self.count.load(Ordering::Acquire) < number {
            pause();
        }
        Instant::from_nanos(self.last_ns.load(Ordering::Relaxed))
    }
}

fn pause() {
    StopFlag::new().sleep_until(MonotonicClock.now() + PAUSE);
}

/// A sleeping thread and the function that wakes it with a value; it says whether it had to, as far as it knows.
struct Target {
    thread: JoinHandle<()>,
    arrivals: Arc<Arrivals>,
    wake: Box<dyn Fn(u64) -> bool + Send>,
}

/// Starts a target on a processor at a priority.
type Start = fn(&Stage, u16, u8) -> Target;

fn lane(stage: &Stage, cpu: u16, priority: u8) -> Target {
    const JOB: u32 = 0;
    const LAST: u32 = 1;
    let (sender, mut receiver) = Links::new(2).inbox();
    let bell = Arc::new(Bell::new());
    let arrivals = Arc::new(Arrivals::default());
    let (own_bell, own_arrivals) = (Arc::clone(&bell), Arc::clone(&arrivals));
    let thread = spawn("lane", stage.policy(priority), &[cpu], STACK, move || {
        loop {
            let Some(tag) = receiver.pop() else {
                own_bell.wait_unless(|| receiver.has_number());
                continue;
            };
            own_arrivals.note(MonotonicClock.now());
            if tag == LAST {
                return;
            }
        }
    });
    let wake = move |value| {
        let tag = if value == END { LAST } else { JOB };
        sender.push(tag).expect("the lane has taken the job before this one");
        bell.ring() == Ring::Woke
    };
    Target { thread: thread.expect("the policy was tried before"), arrivals, wake: Box::new(wake) }
}

/// The same with a value of 64 bytes, which the lane has taken and looked at when it notes the time.
fn lane_with_value(stage: &Stage, cpu: u16, priority: u8) -> Target {
    const JOB: u32 = 0;
    let reader = Reader { take: Take::Latest, capacity: 1, when_full: WhenFull::DropOldest };
    let (output, mut inputs) = OutputPort::new(&[reader], Handling::NONE, || [0u64; 8]);
    let mut input = inputs.pop().expect("there is one reader");
    let (sender, mut receiver) = Links::new(1).inbox();
    let bell = Arc::new(Bell::new());
    let arrivals = Arc::new(Arrivals::default());
    let (own_bell, own_arrivals) = (Arc::clone(&bell), Arc::clone(&arrivals));
    let thread = spawn("lane", stage.policy(priority), &[cpu], STACK, move || {
        loop {
            let Some(_job) = receiver.pop() else {
                own_bell.wait_unless(|| receiver.has_number());
                continue;
            };
            input.take(Moment { instance: 0, as_of: Instant::MAX });
            let value = input.newest().expect("it was published").0[0];
            own_arrivals.note(MonotonicClock.now());
            input.leave();
            if value == END {
                return;
            }
        }
    });
    let output = RefCell::new(output);
    let wake = move |value| {
        let mut output = output.borrow_mut();
        output.value()[0] = value;
        output.publish(value, Visible::To(Instant::ZERO), &mut |_| ());
        sender.push(JOB).expect("the lane has taken the job before this one");
        bell.ring() == Ring::Woke
    };
    Target { thread: thread.expect("the policy was tried before"), arrivals, wake: Box::new(wake) }
}

/// A thread that receives values of 64 bytes from a channel of the crate crossbeam.
#[cfg(feature = "peers")]
fn crossbeam(stage: &Stage, cpu: u16, priority: u8) -> Target {
    let (sender, receiver) = crossbeam_channel::bounded::<[u64; 8]>(2);
    receiving(stage, cpu, priority, move || receiver.recv().ok(), move |value| sender.send(value).is_ok())
}

/// The same from one of the crate tokio, without its executor.
#[cfg(feature = "peers")]
fn tokio(stage: &Stage, cpu: u16, priority: u8) -> Target {
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<[u64; 8]>(2);
    let receive = move || receiver.blocking_recv();
    receiving(stage, cpu, priority, receive, move |value| sender.try_send(value).is_ok())
}

/// Those of a channel do not say whether the receiver slept: it has had the time to fall asleep.
#[cfg(feature = "peers")]
fn receiving(
    stage: &Stage,
    cpu: u16,
    priority: u8,
    mut receive: impl FnMut() -> Option<[u64; 8]> + Send + 'static,
    send: impl Fn([u64; 8]) -> bool + Send + 'static,
) -> Target {
    let arrivals = Arc::new(Arrivals::default());
    let own_arrivals = Arc::clone(&arrivals);
    let thread = spawn("receiver", stage.policy(priority), &[cpu], STACK, move || {
        while let Some([value, ..]) = receive() {
            own_arrivals.note(MonotonicClock.now());
            if value == END {
                return;
            }
        }
    });
    let wake = move |value| send([value; 8]);
    Target { thread: thread.expect("the policy was tried before"), arrivals, wake: Box::new(wake) }
}

fn bare(stage: &Stage, cpu: u16, priority: u8) -> Target {
    let word = Arc::new(AtomicU32::new(0));
    let arrivals = Arc::new(Arrivals::default());
    let (own_word, own_arrivals) = (Arc::clone(&word), Arc::clone(&arrivals));
    let thread = spawn("bare", stage.policy(priority), &[cpu], STACK, move || {
        let mut seen = 0;
        loop {
            // An error means that the word has changed already or a signal came: both are looked at.
            let _changed = futex::wait(&own_word, Flags::PRIVATE, seen, None);
            let now = MonotonicClock.now();
            let word = own_word.load(Ordering::Relaxed);
            if word == seen {
                continue;
            }
            seen = word;
            own_arrivals.note(now);
            if word == u32::MAX {
                return;
            }
        }
    });
    let wake = move |value: u64| {
        word.store(value as u32, Ordering::Relaxed);
        futex::wake(&word, Flags::PRIVATE, 1) == Ok(1)
    };
    Target { thread: thread.expect("the policy was tried before"), arrivals, wake: Box::new(wake) }
}

/// Cost to the producer and latency to the first instruction.
struct Pair {
    cost: Samples,
    latency: Samples,
}

impl Pair {
    fn new() -> Self {
        Pair { cost: Samples::new(), latency: Samples::new() }
    }

    /// One wake-up; the sample counts only if the target really slept.
    fn sample(&mut self, target: &Target, number: u64) {
        let start = MonotonicClock.now();
        let woke = (target.wake)(number);
        let end = MonotonicClock.now();
        let arrived = target.arrivals.wait_for(number);
        if woke {
            self.cost.add(end - start);
            self.latency.add(arrived - start);
        }
    }
}

const PRODUCER_PRIORITY: u8 = 50;

/// Alternates between the targets, so that all meet the same machine.
fn alternate(stage: &Stage, cpu: u16, priority: u8, effort: Effort, starts: &[Start]) -> Vec<Pair> {
    let targets: Vec<Target> = starts.iter().map(|start| start(stage, cpu, priority)).collect();
    let wakes = u64::from(effort.wakes * effort.repetitions);
    let producer = spawn("producer", stage.policy(PRODUCER_PRIORITY), &[stage.here], STACK, move || {
        let mut pairs: Vec<Pair> = targets.iter().map(|_| Pair::new()).collect();
        pause();
        for number in 1..=wakes {
            for step in 0..targets.len() {
                let index = (number as usize + step) % targets.len();
                pairs[index].sample(&targets[index], number);
            }
        }
        for Target { thread, wake, .. } in targets {
            wake(END);
            thread.join().expect("what is woken does not panic");
        }
        pairs
    });
    let producer = producer.expect("the policy was tried before");
    producer.join().expect("measuring does not panic")
}

/// Between the bare target and the lane.
fn both(stage: &Stage, cpu: u16, priority: u8, effort: Effort) -> [Pair; 2] {
    let pairs = alternate(stage, cpu, priority, effort, &[bare, lane]);
    pairs.try_into().unwrap_or_else(|_| panic!("one for each target"))
}

pub fn measure(stage: &Stage, effort: Effort, report: &mut Report) {
    const FLOOR: &str = "bare futex wake";
    const LANE: &str = "inbox push + bell ring";
    // A lane below the producer does not preempt it, so the cost is the producer's alone.
    let [bare, lane] = both(stage, stage.here, PRODUCER_PRIORITY - 10, effort);
    let group = "wake a sleeping lane, same CPU: cost to the producer";
    report.add(group, FLOOR, Role::Floor, bare.cost);
    report.add(group, LANE, Role::Subject, lane.cost);
    // A lane above it runs before the producer's call returns.
    let [bare, lane] = both(stage, stage.here, PRODUCER_PRIORITY + 10, effort);
    let group = "push to first instruction, same CPU";
    report.add(group, FLOOR, Role::Floor, bare.latency);
    report.add(group, LANE, Role::Subject, lane.latency);
    let Some(there) = stage.there else { return };
    let [bare, lane] = both(stage, there, PRODUCER_PRIORITY + 10, effort);
    let group = "wake a sleeping lane, other CPU: cost to the producer";
    report.add(group, FLOOR, Role::Floor, bare.cost);
    report.add(group, LANE, Role::Subject, lane.cost);
    let group = "push to first instruction, other CPU";
    report.add(group, FLOOR, Role::Floor, bare.latency);
    report.add(group, LANE, Role::Subject, lane.latency);
    let all: &[(&'static str, Role, Start)] = &[
        (FLOOR, Role::Floor, self::bare),
        ("publish + inbox push + bell ring", Role::Subject, lane_with_value),
        #[cfg(feature = "peers")]
        ("crossbeam-channel, bounded", Role::Peer, crossbeam),
        #[cfg(feature = "peers")]
        ("tokio mpsc, blocking_recv", Role::Peer, tokio),
    ];
    let starts: Vec<Start> = all.iter().map(|(_, _, start)| *start).collect();
    let pairs = alternate(stage, there, PRODUCER_PRIORITY + 10, effort, &starts);
    let group = "handing on a value of 64 bytes to first instruction that has it, other CPU";
    for ((name, role, _), pair) in all.iter().zip(pairs) {
        report.add(group, name, *role, pair.latency);
    }
}
