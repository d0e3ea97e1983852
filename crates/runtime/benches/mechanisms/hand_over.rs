//! From a block to the next thread's first instruction under a hierarchy of schedulers, beside a sentinel that decides nothing.
//!
//! A higher thread, woken by a lower one on the same CPU, takes the time and blocks; the lower one, which goes on as soon
//! as its CPU is given back to it, takes it again. Bare, the sentinel only raises the lower thread; its hierarchy is known to it, and the
//! blocked thread is not parked.

use super::{Effort, Stage};
use rustix::thread::futex::{self, Flags};
use rustix::thread::{gettid, sched_yield};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use talea_measure::{Report, Role, Samples};
use talea_policy::hierarchy::{Engine, Parameters, SchedulerId};
use talea_policy::scheduler::{Announcing, Kind};
use talea_runtime::managed::{Admission, Blocked, Blocks, ManagedSet, Options, Parking};
use talea_runtime::sys::clock::MonotonicClock;
use talea_runtime::sys::sched::{self, Policy};
use talea_runtime::sys::thread::spawn;
use talea_time::{Clock, Duration, Instant};

const LEVELS: [(usize, &str); 5] =
    [(1, "one scheduler"), (2, "2 levels"), (4, "4 levels"), (8, "8 levels"), (16, "16 levels")];
const STACK: usize = 256 * 1024;
/// Parked, the sentinel's, granted, as in a managed set.
const PARKED: u8 = 10;

pub fn measure(stage: &Stage, effort: Effort, report: &mut Report) {
    if !stage.real_time {
        return eprintln!("not measuring hand-overs: they are made by real-time priorities");
    }
    let mut floor = Samples::new();
    let mut subjects = LEVELS.map(|(levels, name)| (levels, name, Samples::new()));
    for turn in 0..effort.hand_over_turns as usize {
        bare(stage.here, effort.hand_overs, &mut floor);
        for step in 0..LEVELS.len() {
            let (levels, _, samples) = &mut subjects[(turn + step) % LEVELS.len()];
            managed(stage.here, *levels, effort.hand_overs, samples);
        }
    }
    let group = "block to the next thread's first instruction, same CPU";
    let bare = floor.ns(0.5);
    report.add(group, "bare sentinel", Role::Floor, floor);
    for (_, name, samples) in subjects {
        let median = samples.ns(0.5);
        let note = format!("{:.2} x, {:+.0} ns", median / bare, median - bare);
        report.add_with_note(group, name, Role::Subject, samples, note);
    }
}

/// When the higher thread blocked.
#[derive(Default)]
struct Stamp(AtomicI64);

impl Stamp {
    fn set(&self) {
        self.0.store(MonotonicClock.now().as_nanos(), Ordering::Relaxed);
    }

    fn elapsed(&self) -> Duration {
        MonotonicClock.now() - Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

fn bare(cpu: u16, times: u32, samples: &mut Samples) {
    let stamp = Arc::new(Stamp::default());
    let (word, done) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let (own_stamp, own_word, own_done) = (Arc::clone(&stamp), Arc::clone(&word), Arc::clone(&done));
    let high = spawn("high", Policy::Fifo(PARKED + 2), &[cpu], STACK, move || {
        let mut seen = 0;
        while !own_done.load(Ordering::Acquire) {
            own_stamp.set();
            let _changed = futex::wait(&own_word, Flags::PRIVATE, seen, None);
            seen = own_word.load(Ordering::Acquire);
        }
    });
    let (own_done, (tell, hear)) = (Arc::clone(&done), sync_channel(1));
    let low = spawn("low", Policy::Fifo(PARKED + 2), &[cpu], STACK, move || {
        tell.send(gettid()).expect("the sentinel's creator waits");
        let mut taken = Vec::with_capacity(times as usize);
        for round in 1..=times {
            word.store(round, Ordering::Release);
            // On the same level it does not preempt; it does when this thread lowers itself.
            let _woken = futex::wake(&word, Flags::PRIVATE, 1);
            sched::set_self(Policy::Fifo(PARKED)).expect("permitted before");
            taken.push(stamp.elapsed());
        }
        own_done.store(true, Ordering::Release);
        word.store(u32::MAX, Ordering::Release);
        let _woken = futex::wake(&word, Flags::PRIVATE, 1);
        taken
    });
    let low = low.expect("the policy was tried before");
    let tid = hear.recv().expect("the lower thread says who it is");
    let sentinel = spawn("sentinel", Policy::Fifo(PARKED + 1), &[cpu], STACK, move || {
        while !done.load(Ordering::Acquire) {
            if sched::set_thread(tid, Policy::Fifo(PARKED + 2)).is_err() {
                // The lower thread has ended.
                sched_yield();
            }
        }
    });
    let taken = low.join().expect("measuring does not panic");
    taken.into_iter().for_each(|one| samples.add(one));
    high.expect("the policy was tried before").join().expect("blocking does not panic");
    sentinel.expect("the policy was tried before").join().expect("raising does not panic");
}

/// Fixed priority under fixed priority, as often as there are levels. Gives the parents of the higher and the lower thread: the
/// last and the first, so that a block concerns every level.
fn hierarchy(levels: usize) -> (Engine, [SchedulerId; 2]) {
    let build = || Kind::FixedPriority.build(Announcing::Nothing).expect("it has no parameters");
    let mut engine = Engine::new(1);
    let root = engine.add_root(build());
    let mut last = root;
    for _ in 1..levels {
        last = engine.add(build(), &[(last, Parameters::Priority(2))]).expect("an only child is taken in");
    }
    (engine, [last, root])
}

fn managed(cpu: u16, levels: usize, times: u32, samples: &mut Samples) {
    let (engine, [last, root]) = hierarchy(levels);
    let mut set = match ManagedSet::prepare(engine, &Options::on(&[cpu])) {
        Ok(set) => set,
        Err(error) => return eprintln!("not measuring a hierarchy of {levels}: {error}"),
    };
    let member = |name, parent, priority| Admission {
        name,
        parent,
        parameters: Parameters::Priority(priority),
        parking: Parking::WorkConserving,
    };
    let stamp = Arc::new(Stamp::default());
    let own_stamp = Arc::clone(&stamp);
    let high = set.spawn_waiting(member("high", last, 2), Blocks::ByHandle, move |handle| {
        loop {
            own_stamp.set();
            if handle.block() == Blocked::Ended {
                return;
            }
        }
    });
    let (_, waker) = high.expect("fixed priority admits everybody");
    let (tell, hear) = sync_channel(1);
    let low = set.spawn(member("low", root, 1), Blocks::ByHandle, move |_| {
        let mut taken = Vec::with_capacity(times as usize);
        for _ in 0..times {
            waker.wake();
            taken.push(stamp.elapsed());
        }
        tell.send(taken).expect("the bench waits");
    });
    low.expect("fixed priority admits everybody");
    let taken = hear.recv().expect("the lower thread measures");
    let summary = set.stop().expect("measuring does not panic");
    // Each hand-over is a block that the sentinel sees.
    if summary.cause.is_some() || summary.totals.blocks < u64::from(times) {
        return eprintln!(
            "a turn with a hierarchy of {levels} does not count: {:?} {:?}",
            summary.cause, summary.totals
        );
    }
    taken.into_iter().for_each(|one| samples.add(one));
}
