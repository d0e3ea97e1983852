//! Accounts, records and events of watched threads, against the kernel's own clocks and against what is known to have happened.

use rustix::thread::{CpuSet, gettid, sched_setaffinity};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use talea_linux::bpf::BpfError;
use talea_linux::clock::{MonotonicClock, thread_cpu_time};
use talea_linux::watch::{
    EventReader, Inherit, SwitchReader, Switched, ThreadEvent, ThreadEventKind, ThreadEvents, ThreadWatch,
};
use talea_measure::eventually;
use talea_time::{Clock, Work};

/// A watch that records the switches of one processor; says so if there can be none.
fn watch() -> Option<(ThreadWatch, SwitchReader, EventReader, u16)> {
    let cpu = talea_linux::affinity::allowed().expect("readable").last().copied().expect("there is one");
    match ThreadWatch::open(&[cpu]) {
        Ok((watch, switches, events)) => Some((watch, switches, events, cpu)),
        Err(error @ (BpfError::NotPermitted { .. } | BpfError::NoTypes(_) | BpfError::PidNamespace)) => {
            talea_measure::skip(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn own_tid() -> u32 {
    gettid().as_raw_nonzero().get() as u32
}

fn bind(cpu: u16) {
    let mut set = CpuSet::new();
    set.set(usize::from(cpu));
    sched_setaffinity(None, &set).expect("one of the own processors");
}

fn spin(amount: Work) {
    let end = thread_cpu_time() + amount;
    while thread_cpu_time() < end {
        std::hint::spin_loop();
    }
}

/// Hands over `times` times each way between the caller and a thread that first calls `begin`, all on one processor.
fn ping_pong(cpu: u16, times: u32, begin: impl FnOnce(u32)) {
    let (mut here, mut there) = UnixStream::pair().expect("a pair of sockets");
    let (tell, told) = channel();
    bind(cpu);
    let other = std::thread::spawn(move || {
        bind(cpu);
        tell.send(own_tid()).expect("the other end waits");
        let mut byte = [0];
        for _ in 0..times {
            there.read_exact(&mut byte).expect("it is written");
            there.write_all(&byte).expect("it is read");
        }
    });
    begin(told.recv().expect("it begins"));
    let mut byte = [7];
    for _ in 0..times {
        here.write_all(&byte).expect("it is read");
        here.read_exact(&mut byte).expect("it is written");
    }
    other.join().expect("it does not panic");
}

fn drained(events: &mut EventReader) -> Vec<ThreadEvent> {
    let mut all = Vec::new();
    events.drain(|event| all.push(event));
    all
}

#[test]
fn a_thread_has_received_what_its_own_clock_says_wherever_it_ran() {
    let Some((watch, _switches, _events, cpu)) = watch() else { return };
    let group = watch.group().expect("there is room");
    let account = std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            watch.enter(own_tid(), group, Inherit::Nobody).expect("there is room");
            // Accounted for from its entry on, also before its first switch.
            for cpu in [None, Some(cpu), Some(0), Some(cpu)] {
                cpu.into_iter().for_each(bind);
                // Each reading is within the one before it.
                let (from, before, clock) = (MonotonicClock.now(), watch.received(group), thread_cpu_time());
                spin(Work::from_micros(700));
                std::thread::yield_now();
                let clock = thread_cpu_time() - clock;
                let account = watch.received(group) - before;
                let elapsed = (MonotonicClock.now() - from).as_work();
                // The kernel's clock begins a little before the switch to a thread that wakes an idle processor.
                let slack = Work::from_nanos(clock.as_nanos() / 10 + 100_000);
                assert!(account + slack >= clock, "{account} of at least {clock}");
                assert!(account <= elapsed, "{account} of at most {elapsed}");
            }
            watch.received(group)
        });
        measured.join().expect("it does not panic")
    });
    // Whoever joins a thread goes on before the kernel has ended it. Between two looks lie some milliseconds.
    let mut after = None;
    eventually("it grows no more", || {
        let last = after.replace(watch.received(group));
        last == after
    });
    assert!(after >= Some(account), "what it had when it ended is kept: {after:?} after {account}");
    assert_eq!(watch.lost(), talea_linux::watch::Lost::default());
}

#[test]
fn what_a_program_starts_is_in_its_group_from_the_first_instruction_to_the_last() {
    const CHILDREN: usize = 20;
    let Some((watch, _switches, mut events, _)) = watch() else { return };
    let group = watch.group().expect("there is room");
    watch.tell(group, ThreadEvents::FORKED.and(ThreadEvents::EXECUTED).and(ThreadEvents::EXITING));
    let script =
        format!("read line; for i in $(seq {CHILDREN}); do (exec true); done; (exec sh -c 'exec sh -c :')");
    let mut shell =
        Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().expect("there is sh");
    watch.enter(shell.id(), group, Inherit::Everybody).expect("there is room");
    shell.stdin.take().expect("piped").write_all(b"go\n").expect("it reads");
    assert!(shell.wait().expect("it ends").success());
    let told = drained(&mut events);
    let count = |is: fn(&ThreadEventKind) -> bool| told.iter().filter(|event| is(&event.what)).count();
    let forked = count(|what| matches!(what, ThreadEventKind::Forked { .. }));
    assert!(forked > CHILDREN, "{forked} of {CHILDREN} and more, in {told:?}");
    let ended = count(|what| *what == ThreadEventKind::Exiting);
    assert_eq!(ended, forked + 1, "all that came and the shell itself ended");
    assert!(count(|what| matches!(what, ThreadEventKind::Executed { .. })) >= CHILDREN + 2);
    assert!(told.is_sorted_by_key(|event| event.at) && told.iter().all(|event| event.group == group));
    let mut known = vec![shell.id()];
    for event in &told {
        match event.what {
            ThreadEventKind::Forked { by } => {
                assert!(known.contains(&by), "children have a parent");
                known.push(event.tid);
            }
            _ => assert!(known.contains(&event.tid), "{event:?} of one that has been told"),
        }
    }
    assert!(watch.received(group) > Work::ZERO);
    assert!(watch.wake_ups(group) > 0, "the shell waits for its children");
    let left: Vec<u32> = known.into_iter().filter(|tid| watch.group_of(*tid) == Some(group)).collect();
    assert_eq!(left, [] as [u32; 0], "numbers can be others' now");
}

#[test]
fn a_program_that_another_thread_of_it_executes_stays_in_its_group() {
    let Some((watch, _switches, mut events, _)) = watch() else { return };
    let group = watch.group().expect("there is room");
    watch.tell(group, ThreadEvents::EXECUTED.and(ThreadEvents::EXITING));
    // Its second thread becomes the only one, with the first one's number.
    let python = "import os,sys,threading;sys.stdin.readline();\
                  t=threading.Thread(target=lambda:os.execvp('sh',['sh','-c','read line']));t.start();t.join()";
    let mut program = match Command::new("python3").args(["-c", python]).stdin(Stdio::piped()).spawn() {
        Ok(program) => program,
        Err(error) => return talea_measure::skip(format!("no python3: {error}")),
    };
    watch.enter(program.id(), group, Inherit::Threads).expect("there is room");
    let mut stdin = program.stdin.take().expect("piped");
    stdin.write_all(b"go\n").expect("it reads");
    let pid = program.id();
    let executed = loop {
        let told = drained(&mut events);
        let found = told.iter().find_map(|event| match event.what {
            // The command may be a script that executes the interpreter.
            ThreadEventKind::Executed { before } if before != event.tid => Some((event.tid, before)),
            _ => None,
        });
        match found {
            Some(found) => break found,
            None => std::thread::yield_now(),
        }
    };
    assert_eq!(executed.0, pid);
    assert_eq!((watch.group_of(pid), watch.group_of(executed.1)), (Some(group), None));
    drop(stdin);
    program.wait().expect("it ends");
    assert_eq!(watch.group_of(pid), None);
}

#[test]
fn switches_between_groups_are_recorded_and_within_one_they_are_not() {
    const TIMES: u32 = 500;
    let Some((watch, mut switches, _events, cpu)) = watch() else { return };
    let (first, second) = (watch.group().expect("room"), watch.group().expect("room"));
    let mut handed_over = |second| {
        switches.drain(|_, _| ());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                ping_pong(cpu, TIMES, |other| {
                    watch.enter(own_tid(), first, Inherit::Nobody).expect("room");
                    watch.enter(other, second, Inherit::Nobody).expect("room");
                });
            });
        });
        let (mut recorded, mut last, mut instants) = (HashMap::new(), None, Vec::new());
        switches.drain(|of, switched| match switched {
            Switched::To { at, group, .. } => {
                assert_eq!(of, cpu);
                instants.push(at);
                if last != Some(group) {
                    *recorded.entry(group).or_insert(0_u32) += 1;
                }
                last = Some(group);
            }
            Switched::Lost(lost) => panic!("{lost} lost"),
        });
        assert!(instants.is_sorted());
        recorded
    };
    let apart = handed_over(second);
    assert!(apart[&Some(first)] >= TIMES && apart[&Some(second)] >= TIMES, "{apart:?}");
    let together = handed_over(first);
    assert!(!together.contains_key(&Some(second)), "{together:?}");
    // Others who have the processor in between are recorded, so there may be some.
    assert!(together[&Some(first)] < TIMES, "{together:?}");
    assert!(watch.received(first) > Work::ZERO && watch.received(second) > Work::ZERO);
}

#[test]
fn switches_that_were_overwritten_are_counted() {
    const TIMES: u32 = 50_000;
    let Some((watch, mut switches, _events, cpu)) = watch() else { return };
    let (first, second) = (watch.group().expect("room"), watch.group().expect("room"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            ping_pong(cpu, TIMES, |other| {
                watch.enter(own_tid(), first, Inherit::Nobody).expect("room");
                watch.enter(other, second, Inherit::Nobody).expect("room");
            });
        });
    });
    let (mut told, mut lost) = (0_u64, 0_u64);
    switches.drain(|_, switched| match switched {
        Switched::To { .. } => told += 1,
        Switched::Lost(more) => {
            assert_eq!(told, 0, "what is lost is before what is left");
            lost += more;
        }
    });
    assert!(told > 0 && lost > 0 && told + lost >= u64::from(2 * TIMES), "{told} told, {lost} lost");
}

#[test]
fn wake_ups_are_told_where_they_are_wanted_and_counted_everywhere() {
    const TIMES: u32 = 50;
    let Some((watch, _switches, mut events, cpu)) = watch() else { return };
    for wanted in [ThreadEvents::NONE, ThreadEvents::WOKEN] {
        let group = watch.group().expect("room");
        watch.tell(group, wanted);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                ping_pong(cpu, TIMES, |other| {
                    watch.enter(own_tid(), group, Inherit::Nobody).expect("room");
                    watch.enter(other, group, Inherit::Nobody).expect("room");
                });
            });
        });
        let woken = drained(&mut events);
        assert!(woken.iter().all(|event| event.what == ThreadEventKind::Woken && event.group == group));
        let counted = watch.wake_ups(group);
        // One of the two may find what it waits for whenever it looks; the other one never does.
        assert!(counted >= u64::from(TIMES), "{counted}");
        let told = if wanted == ThreadEvents::NONE { 0 } else { counted };
        assert_eq!(woken.len() as u64, told, "{:?}", watch.lost());
    }
}

#[test]
fn a_group_is_given_out_again_as_late_as_possible_and_empty() {
    let Some((watch, ..)) = watch() else { return };
    let first = watch.group().expect("room");
    watch.enter(own_tid(), first, Inherit::Nobody).expect("room");
    spin(Work::from_micros(100));
    watch.leave(own_tid());
    watch.release(first);
    let next = watch.group().expect("room");
    assert_ne!(next, first);
    assert_eq!(watch.received(next), Work::ZERO);
}
