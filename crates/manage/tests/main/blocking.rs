//! Who blocks hands over at once, and who wakes up is granted what its scheduler says.

use crate::programs::{endless, eventually, stage};
use crate::{admission, flat, hog, proportional, whole};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use talea_linux::sched::Policy;
use talea_linux::thread::spawn;
use talea_manage::{Blocked, Blocks, Handle, ManagedSet, STACK};
use talea_policy::hierarchy::{Parameters, SchedulerId};
use talea_policy::job::Job;
use talea_policy::scheduler::config;
use talea_time::{Instant, Work};

/// The higher thread runs whenever it is woken, the lower one whenever it blocks.
#[test]
fn a_thread_that_blocks_hands_over() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    hand_over(&mut set, root, Arc::default(), || ());
    set.stop().unwrap();
}

/// The same while a thread on another processor, as urgent as the set's own, is in line for the lock again and again.
#[test]
fn a_thread_hands_over_while_others_are_in_line() {
    let Some((_alone, mut options)) = stage(2) else { return };
    let elsewhere = options.cpus.remove(0);
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let lowest = admission("lowest", root, Parameters::Priority(0));
    let ended = |handle: &Handle| while handle.block() != Blocked::Ended {};
    let (_, waker) = set.spawn_waiting(lowest, Blocks::ByHandle, ended).unwrap();
    let (begin, begun) = std::sync::mpsc::channel();
    let done = Arc::new(AtomicBool::new(false));
    let is_done = done.clone();
    let urgent = Policy::Fifo(options.priorities.highest());
    let other = spawn("elsewhere", urgent, &[elsewhere], STACK, move || {
        begun.recv().unwrap();
        let (release, deadline, wcet) = (Instant::ZERO, Instant::MAX, Work::ZERO);
        while !is_done.load(Ordering::Relaxed) {
            waker.wake_for(Job { release, deadline, wcet, rank: 0, number: 0, tag: 0 });
        }
    })
    .unwrap();
    hand_over(&mut set, root, done, move || begin.send(()).unwrap());
    other.join().unwrap();
    set.stop().unwrap();
}

/// A lower thread wakes a higher one again and again, after `begin`, until it is `done`: each time the higher one runs and blocks before the
/// call returns.
fn hand_over(
    set: &mut ManagedSet,
    root: SchedulerId,
    done: Arc<AtomicBool>,
    begin: impl FnOnce() + Send + 'static,
) {
    let order = Arc::new(Mutex::new(Vec::new()));
    let high_order = Arc::new(AtomicU64::new(0));
    let (count, times) = (high_order.clone(), 200);
    let (_, waker) = set
        .spawn_waiting(admission("high", root, Parameters::Priority(2)), Blocks::ByHandle, move |handle| {
            loop {
                count.fetch_add(1, Ordering::Relaxed);
                if handle.block() == Blocked::Ended {
                    return;
                }
            }
        })
        .unwrap();
    let (low_order, high) = (order.clone(), high_order.clone());
    let low_done = done.clone();
    set.spawn(admission("low", root, Parameters::Priority(1)), Blocks::ByHandle, move |_| {
        begin();
        for _ in 0..times {
            let before = high.load(Ordering::Relaxed);
            waker.wake();
            // The waker's processor is the woken thread's, so it has run and blocked again.
            low_order.lock().unwrap().push((before, high.load(Ordering::Relaxed)));
        }
        low_done.store(true, Ordering::Release);
    })
    .unwrap();
    eventually("the lower thread is done", || done.load(Ordering::Acquire));
    let order = order.lock().unwrap();
    assert!(order.iter().enumerate().all(|(n, seen)| *seen == (n as u64, n as u64 + 1)), "{order:?}");
    let totals = set.totals();
    assert_eq!((totals.stalls, totals.found), (0, 0), "{totals:?}");
}

/// A wake-up before the block makes the block no block.
#[test]
fn a_wake_up_is_not_lost() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(config::RoundRobin { quantum: Work::from_millis(1) });
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let rounds = Arc::new(AtomicU64::new(0));
    let counted = rounds.clone();
    set.spawn(admission("own waker", root, Parameters::None), Blocks::ByHandle, move |handle| {
        for _ in 0..1_000 {
            handle.waker().wake();
            assert_eq!(handle.block(), Blocked::Woken);
            counted.fetch_add(1, Ordering::Relaxed);
        }
    })
    .unwrap();
    eventually("a thread that wakes itself goes on", || rounds.load(Ordering::Relaxed) == 1_000);
    eventually("it has left", || set.departed().len() == 1);
    set.stop().unwrap();
}

/// Wakers on other processors, all the time, while quanta end: nobody is forgotten.
#[test]
fn wakers_elsewhere_forget_nobody() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let counts = Arc::new([const { AtomicU64::new(0) }; 3]);
    let mut wakers = Vec::new();
    for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
        let counts = counts.clone();
        let admission = admission(name, root, Parameters::Weight(1));
        let (_, waker) = set
            .spawn_waiting(admission, Blocks::ByHandle, move |handle| {
                loop {
                    counts[index].fetch_add(1, Ordering::Release);
                    if handle.block() == Blocked::Ended {
                        return;
                    }
                }
            })
            .unwrap();
        wakers.push(waker);
    }
    set.spawn(admission("hog", root, Parameters::Weight(1)), Blocks::ByHandle, hog).unwrap();
    for round in 1..=300 {
        wakers.iter().for_each(|waker| waker.wake());
        eventually("all have run", || counts.iter().all(|count| count.load(Ordering::Acquire) == round));
    }
    assert_eq!(set.stop().unwrap().cause, None);
}

/// Own threads that block in system calls: traced or found by looking.
#[test]
fn a_thread_that_sleeps_in_the_kernel_goes_on() {
    let Some((_alone, options)) = stage(1) else { return };
    for blocks in [Blocks::Anywhere, Blocks::ByHandle] {
        let (engine, root) = flat(config::FixedPriority);
        let mut set = ManagedSet::prepare(engine, &options).unwrap();
        let rounds = Arc::new(AtomicU64::new(0));
        let counted = rounds.clone();
        let (mut from, mut to) = std::io::pipe().unwrap();
        set.spawn(admission("sleeper", root, Parameters::Priority(2)), blocks, move |_| {
            for _ in 0..20 {
                from.read_exact(&mut [0]).unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        })
        .unwrap();
        set.spawn(admission("hog", root, Parameters::Priority(1)), Blocks::ByHandle, hog).unwrap();
        for round in 0..20 {
            // A sleep that is over before it is known is none.
            let is_unknown = || set.untraced().is_some() || blocks == Blocks::ByHandle;
            eventually("it is known to sleep", || is_unknown() || set.totals().blocks > round);
            to.write_all(&[1]).unwrap();
            eventually("the sleeper goes on", || rounds.load(Ordering::Relaxed) > round);
        }
        let totals = set.totals();
        if set.untraced().is_none() && blocks == Blocks::Anywhere {
            assert!(totals.wakeups >= 15, "{totals:?}");
        }
        set.stop().unwrap();
    }
}

/// Whether a process of one thread sleeps, by the kernel's word.
fn is_asleep(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}

/// Another program that waits for input is granted its processor when the input comes, above a hog.
#[test]
fn a_program_that_waits_is_woken() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(config::FixedPriority);
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    set.command(admission("hog", root, Parameters::Priority(1)), &mut endless()).unwrap();
    let mut echo = std::process::Command::new("cat");
    let mut echo = echo.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let target = whole(echo.id());
    set.attach(admission("echo", root, Parameters::Priority(2)), target).unwrap();
    let (mut to, from) = (echo.stdin.take().unwrap(), echo.stdout.take().unwrap());
    let mut from = BufReader::new(from);
    for round in 0..50 {
        // Otherwise the line may be there before it is waited for, and nobody is woken.
        // And nobody is woken of whom it is not known that he sleeps: he has his processor all the time.
        let is_known = || set.untraced().is_some() || set.totals().blocks > round;
        eventually("the program waits", || is_asleep(echo.id()) && is_known());
        writeln!(to, "{round}").unwrap();
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), round.to_string());
    }
    if set.untraced().is_none() {
        // Beside its sentinel it may have answered the last time before its wake-up is heard of.
        let heard = || set.totals().wakeups + set.totals().found;
        eventually("all wake-ups are heard of", || heard() >= 50);
        // The warden may find one before its wake-up is told.
        assert!(set.totals().wakeups >= 40, "{:?}", set.totals());
    }
    drop(to);
    echo.wait().unwrap();
    eventually("the program has left", || set.departed().iter().any(|gone| gone.name == "echo"));
    assert_eq!(set.stop().unwrap().cause, None);
}
