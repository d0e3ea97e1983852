//! Threads have the attributes they were created with, and say what they have.

use crate::{may_use_fifo, status_field};
use std::sync::mpsc::channel;
use talea_linux::affinity::{self, AffinityError};
use talea_linux::sched::{self, Policy, SchedError};
use talea_linux::thread::{SpawnError, spawn};
use talea_linux::{cpu, memory};
use talea_time::{Duration, Work};

const STACK: usize = 256 * 1024;

#[test]
fn an_ordinary_thread_runs_on_the_cpu_it_was_given() {
    for cpu in affinity::allowed().unwrap() {
        let thread = spawn("pinned", Policy::Other, &[cpu], STACK, cpu::current).unwrap();
        let report = thread.report().clone();
        assert!(report.is_as_wanted(), "{report}");
        assert_eq!((report.name.as_str(), report.actual_policy), ("pinned", Policy::Other));
        assert_eq!(report.actual_cpus, [cpu]);
        assert_eq!(thread.join().unwrap(), cpu);
    }
}

#[test]
fn no_list_means_every_cpu_even_from_a_pinned_creator() {
    let allowed = affinity::allowed().unwrap();
    let first = allowed[0];
    let creator = spawn("creator", Policy::Other, &[first], STACK, || {
        spawn("free", Policy::Other, &[], STACK, || ()).map(|thread| thread.report().clone())
    });
    let report = creator.unwrap().join().unwrap().unwrap();
    assert_eq!(report.actual_cpus, allowed);
}

#[test]
fn a_real_time_thread_is_created_as_one() {
    if !may_use_fifo(7) {
        return;
    }
    let first = affinity::allowed().unwrap()[0];
    let thread = spawn("lane", Policy::Fifo(7), &[first], STACK, || sched::get(None)).unwrap();
    assert!(thread.report().is_as_wanted(), "{}", thread.report());
    assert_eq!(thread.report().actual_policy, Policy::Fifo(7));
    assert_eq!(thread.join().unwrap(), Ok(Policy::Fifo(7)));
}

#[test]
fn an_ordinary_thread_can_be_created_by_a_real_time_one() {
    // It must not inherit its creator's policy, and the creator need not give way for it to start.
    if !may_use_fifo(3) {
        return;
    }
    let creator = spawn("creator", Policy::Fifo(3), &[], STACK, || {
        spawn("child", Policy::Other, &[], STACK, || sched::get(None)).unwrap().join().unwrap()
    });
    assert_eq!(creator.unwrap().join().unwrap(), Ok(Policy::Other));
}

#[test]
fn a_deadline_thread_has_its_reservation() {
    let policy = Policy::Deadline {
        runtime: Work::from_millis(1),
        deadline: Duration::from_millis(50),
        period: Duration::from_millis(100),
    };
    match spawn("reserved", policy, &[], STACK, || sched::get(None)) {
        Ok(thread) => {
            assert!(thread.report().is_as_wanted(), "{}", thread.report());
            assert_eq!(thread.join().unwrap(), Ok(policy));
        }
        // The bandwidth is the whole machine's, and others may have it.
        Err(SpawnError::Policy {
            source: source @ (SchedError::DeadlineNotPermitted { .. } | SchedError::NoBandwidth { .. }),
            ..
        }) => talea_measure::skip(source),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn more_bandwidth_than_there_is_is_refused_with_the_reason() {
    if !may_use_fifo(1) {
        return;
    }
    let whole = Duration::from_millis(100);
    let policy = Policy::Deadline { runtime: whole.as_work(), deadline: whole, period: whole };
    let threads: Vec<_> = (0..=affinity::allowed().unwrap().len())
        .map(|_| {
            let (release, held) = channel::<()>();
            (spawn("greedy", policy, &[], STACK, move || held.recv().is_err()), release)
        })
        .collect();
    let refused = threads.iter().find_map(|(thread, _)| thread.as_ref().err());
    let source = refused.expect("one more whole CPU than there are cannot be admitted");
    assert!(matches!(source, SpawnError::Policy { source: SchedError::NoBandwidth { .. }, .. }), "{source}");
    for (thread, release) in threads {
        drop(release);
        thread.into_iter().for_each(|thread| assert!(thread.join().unwrap()));
    }
}

#[test]
fn the_name_and_timer_slack_are_the_kernels() {
    let (release, held) = channel::<()>();
    let thread = spawn("mission/navigation", Policy::Other, &[], STACK, move || {
        let _released = held.recv();
        rustix::thread::current_timer_slack()
    });
    let thread = thread.unwrap();
    let tid = thread.report().tid;
    assert_eq!(thread.report().name, "mission/navigat");
    assert_eq!(status_field(tid, "Name"), "mission/navigat");
    assert!(!thread.is_finished());
    drop(release);
    assert_eq!(thread.join().unwrap(), Ok(1));
}

#[test]
fn wrong_wishes_are_refused_before_a_thread_exists() {
    let spawn = |name, policy, cpus: &[u16], stack| spawn(name, policy, cpus, stack, || ()).map(drop);
    assert_eq!(spawn("", Policy::Other, &[], STACK), Err(SpawnError::Name(String::new())));
    assert!(matches!(
        spawn("cpu", Policy::Other, &[1023], STACK),
        Err(SpawnError::Cpus { source: AffinityError::NotAvailable { refused, .. }, .. }) if refused == [1023]
    ));
    assert!(matches!(
        spawn("priority", Policy::Fifo(100), &[], STACK),
        Err(SpawnError::Policy { source: SchedError::OutOfRange { .. }, .. })
    ));
    assert!(matches!(spawn("stack", Policy::Other, &[], 100), Err(SpawnError::Stack { asked: 100, .. })));
    let too_much = spawn("memory", Policy::Other, &[], 1 << 60);
    assert!(matches!(too_much, Err(SpawnError::NoRoom { .. })), "{too_much:?}");
}

#[test]
fn a_panic_is_handed_to_whoever_joins() {
    let thread = spawn("unlucky", Policy::Other, &[], STACK, || panic!("as arranged"));
    let panic = thread.unwrap().join().map(|()| "returned").unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"as arranged"));
}

#[test]
fn a_dropped_handle_lets_the_thread_run_on() {
    let (say, hear) = channel();
    let (release, held) = channel::<()>();
    let thread = spawn("free", Policy::Other, &[], STACK, move || {
        let _released = held.recv();
        say.send(42).unwrap();
    });
    drop(thread.unwrap());
    drop(release);
    assert_eq!(hear.recv(), Ok(42));
}

/// A stack that is not there yet faults on every page, always. One that is there may still fault on some when the
/// kernel moves pages meanwhile, so one thread of several without any is proof.
#[test]
fn a_prefaulted_stack_takes_no_page_faults() {
    let faults = || {
        let thread = spawn("prefault", Policy::Other, &[], STACK, || {
            memory::prefault_stack(128 * 1024);
            // Reading the count has its own first faults, in the thread's heap.
            minor_faults();
            let before = minor_faults();
            memory::prefault_stack(120 * 1024);
            minor_faults() - before
        });
        thread.unwrap().join().unwrap()
    };
    let seen: Vec<u64> = (0..10).map(|_| faults()).collect();
    assert!(seen.contains(&0), "{seen:?}");
}

#[test]
fn prefaulting_more_than_the_stack_panics_instead_of_crashing() {
    let thread = spawn("prefault", Policy::Other, &[], STACK, || memory::prefault_stack(STACK));
    assert!(thread.unwrap().join().is_err());
}

/// Minor page faults of the calling thread so far: field 10 of its `stat`.
fn minor_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let after_name = stat.rsplit_once(") ").unwrap().1;
    after_name.split(' ').nth(7).unwrap().parse().unwrap()
}
