//! What a context switch costs under a hierarchy, beside the kernel's own: from the instruction before a thread blocks to the next
//! thread's first one, on the same processor.
//!
//! | Way | How the next thread is chosen | What it measures |
//! |---|---|---|
//! | kernel | the other thread of the same real-time priority is next | the floor |
//! | sentinel | a thread with a priority just below raises the only other thread | the changes of priorities |
//! | levels | by a hierarchy of as many fixed-priority schedulers | the decisions |
//!
//! In a hierarchy a higher thread, woken by a lower one, takes the time and blocks; the lower one, which goes on as soon as the
//! processor is given back to it, takes it again. The higher thread is below the last scheduler and the lower one below the
//! first, so a block concerns every level.

use crate::experiments::ExperimentError;
use rustix::thread::futex::{self, Flags};
use rustix::thread::{gettid, sched_yield};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use talea_linux::clock::MonotonicClock;
use talea_linux::sched::{self, Policy};
use talea_linux::thread::{JoinHandle, SpawnError, spawn};
use talea_manage::{Admission, Blocked, Blocks, ManagedSet, Options, Parking};
use talea_policy::hierarchy::{Engine, Parameters, SchedulerId};
use talea_policy::scheduler::{Announcing, Config, config};
use talea_runtime::HierarchyError;
use talea_time::{Clock, Duration, Instant};

/// Depths of the hierarchies that are measured.
pub const LEVELS: [usize; 5] = [1, 2, 4, 8, 16];
const STACK: usize = 256 * 1024;
/// Parked, the sentinel's, granted, as in a managed set.
const PARKED: u8 = 10;

/// How the next thread is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// The kernel alone.
    Kernel,
    /// A sentinel that decides nothing.
    Sentinel,
    /// A hierarchy of so many levels.
    Levels(usize),
}

impl Way {
    /// Every one.
    pub fn all() -> impl Iterator<Item = Way> {
        [Way::Kernel, Way::Sentinel].into_iter().chain(LEVELS.map(Way::Levels))
    }

    /// Hands `cpu` over `times` times, and gives how long each took. Of a hierarchy those are left out that were none: while
    /// somebody on another CPU has its lock, its sentinel cannot decide, and the thread that is to be taken off goes on. None if
    /// sentinels missed more blocks than that.
    ///
    /// # Errors
    /// Real-time priorities are not permitted, or the hierarchy ended by itself.
    pub fn measure(self, cpu: u16, times: u32) -> Result<Option<Vec<Duration>>, ExperimentError> {
        match self {
            Way::Kernel => kernel(cpu, times).map(Some),
            Way::Sentinel => sentinel(cpu, times).map(Some),
            Way::Levels(levels) => managed(cpu, levels, times),
        }
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Way::Kernel => f.pad("kernel alone"),
            Way::Sentinel => f.pad("bare sentinel"),
            Way::Levels(1) => f.pad("one scheduler"),
            Way::Levels(levels) => f.pad(&format!("{levels} levels")),
        }
    }
}

fn failed(cause: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Hierarchy { system: "context switches".into(), cause: cause.to_string() }
}

fn not_enforceable(cause: impl std::fmt::Display) -> ExperimentError {
    failed(HierarchyError::NotEnforceable { missing: vec![cause.to_string()] })
}

fn real_time<T: Send + 'static>(
    name: &str,
    level: u8,
    cpu: u16,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, SpawnError> {
    spawn(name, Policy::Fifo(level), &[cpu], STACK, run)
}

/// When a thread blocked.
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

/// Two threads that wake each other and block.
fn kernel(cpu: u16, times: u32) -> Result<Vec<Duration>, ExperimentError> {
    let (turn, stamp) = (Arc::new(AtomicU32::new(0)), Arc::new(Stamp::default()));
    let start = |place: u32| {
        let (turn, stamp) = (Arc::clone(&turn), Arc::clone(&stamp));
        real_time("alternating", PARKED, cpu, move || {
            let mut taken = Vec::with_capacity(times as usize);
            for round in (place..times + place).step_by(2) {
                loop {
                    let seen = turn.load(Ordering::Acquire);
                    if seen == round {
                        break;
                    }
                    let _changed = futex::wait(&turn, Flags::PRIVATE, seen, None);
                }
                taken.push(stamp.elapsed());
                turn.store(round + 1, Ordering::Release);
                // Of the same priority, it has to wait until this one blocks.
                let _woken = futex::wake(&turn, Flags::PRIVATE, 1);
                stamp.set();
            }
            taken
        })
    };
    let first = start(0).map_err(not_enforceable)?;
    let second = start(1).map_err(not_enforceable)?;
    let mut all = first.join().expect("measuring does not panic");
    // The first time was not preceded by a block.
    all.remove(0);
    all.extend(second.join().expect("measuring does not panic"));
    Ok(all)
}

fn sentinel(cpu: u16, times: u32) -> Result<Vec<Duration>, ExperimentError> {
    let stamp = Arc::new(Stamp::default());
    let (word, done) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let (own_stamp, own_word, own_done) = (Arc::clone(&stamp), Arc::clone(&word), Arc::clone(&done));
    let high = real_time("high", PARKED + 2, cpu, move || {
        let mut seen = 0;
        while !own_done.load(Ordering::Acquire) {
            own_stamp.set();
            let _changed = futex::wait(&own_word, Flags::PRIVATE, seen, None);
            seen = own_word.load(Ordering::Acquire);
        }
    });
    let high = high.map_err(not_enforceable)?;
    let (own_done, (tell, hear)) = (Arc::clone(&done), sync_channel(1));
    let low = real_time("low", PARKED + 2, cpu, move || {
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
    let low = low.expect("the policy was permitted before");
    let tid = hear.recv().expect("the lower thread says who it is");
    let sentinel = real_time("sentinel", PARKED + 1, cpu, move || {
        while !done.load(Ordering::Acquire) {
            if sched::set_thread(tid, Policy::Fifo(PARKED + 2)).is_err() {
                // The lower thread has ended.
                sched_yield();
            }
        }
    });
    let taken = low.join().expect("measuring does not panic");
    high.join().expect("blocking does not panic");
    sentinel.expect("the policy was permitted before").join().expect("raising does not panic");
    Ok(taken)
}

/// Fixed priority under fixed priority, as often as there are levels. Gives the parents of the higher and the lower thread: the
/// last and the first.
fn hierarchy(levels: usize) -> (Engine, [SchedulerId; 2]) {
    let build = || config::FixedPriority.build(Announcing::Nothing).expect("it has no parameters");
    let mut engine = Engine::new(1);
    let root = engine.add_root(build());
    let mut last = root;
    for _ in 1..levels {
        last = engine.add(build(), &[(last, Parameters::Priority(2))]).expect("an only child is taken in");
    }
    (engine, [last, root])
}

fn managed(cpu: u16, levels: usize, times: u32) -> Result<Option<Vec<Duration>>, ExperimentError> {
    let (engine, [last, root]) = hierarchy(levels);
    let mut set = ManagedSet::prepare(engine, &Options::on(&[cpu])).map_err(not_enforceable)?;
    let member = |name, parent, priority| Admission {
        name,
        parent,
        parameters: Parameters::Priority(priority),
        parking: Parking::WorkConserving,
        edge: None,
    };
    let (stamp, turns) = (Arc::new(Stamp::default()), Arc::new(AtomicU32::new(0)));
    let (own_stamp, own_turns) = (Arc::clone(&stamp), Arc::clone(&turns));
    let high = set.spawn_waiting(member("high", last, 2), Blocks::ByHandle, move |handle| {
        loop {
            own_turns.fetch_add(1, Ordering::Relaxed);
            own_stamp.set();
            if handle.block() == Blocked::Ended {
                return;
            }
        }
    });
    let (_, waker) = high.map_err(not_enforceable)?;
    let (tell, hear) = sync_channel(1);
    let low = set.spawn(member("low", root, 1), Blocks::ByHandle, move |handle| {
        let mut taken = Vec::with_capacity(times as usize);
        for turn in 1..=times {
            waker.wake();
            let elapsed = stamp.elapsed();
            if turns.load(Ordering::Relaxed) == turn {
                taken.push(elapsed);
            }
            while turns.load(Ordering::Relaxed) < turn && !handle.is_ended() {
                std::hint::spin_loop();
            }
        }
        tell.send(taken).expect("somebody waits");
    });
    low.map_err(not_enforceable)?;
    let taken = hear.recv().map_err(|_| failed("the measuring thread ended early"))?;
    let summary = set.stop().map_err(|_| failed("a thread of the hierarchy panicked"))?;
    match summary.cause {
        Some(cause) => Err(failed(cause)),
        None => Ok((summary.totals.blocks >= taken.len() as u64).then_some(taken)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_threads_are_as_far_apart_as_there_are_levels() {
        for levels in LEVELS {
            let (engine, [last, root]) = hierarchy(levels);
            assert_eq!(last == root, levels == 1);
            assert_eq!(engine.processors(), 1);
        }
    }
}
