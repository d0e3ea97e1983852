//! Hostile programs beside a neighbour with a reservation: judged by what the neighbour receives and by the kernel's account of the program.

use crate::programs::{eventually, lives, stage};
use crate::{flat, hog, reservation};
use std::process::Command;
use talea_linux::Tid;
use talea_linux::seccomp::SchedulingCall;
use talea_manage::{Admission, Blocks, ManagedSet, MemberId, Options, Parking, Received};
use talea_policy::hierarchy::Fraction;
use talea_policy::scheduler::config;
use talea_time::Duration;

/// How long a program is watched.
const WATCHED: Duration = Duration::from_millis(800);
/// What the kernel may keep from real-time threads in that time, for ordinary ones, and some: half of its period's part comes at any instant.
const KEPT: Duration = Duration::from_millis(55);
/// In percent, what one of a quarter may receive with what it takes to hold it.
const USUAL: i64 = 35;
/// The same where hundreds of its processes begin and end between two looks: each runs once more until it is held.
const CROWD: i64 = 45;

/// How often it is watched at most: moments in which a virtual machine stands still are nobody's fault, and seldom.
const TIMES: usize = 3;

/// Runs a script, held to 5 ms in 20 ms, beside an endless thread that reserves 8 ms in 20 ms on the same processor. Returns what `look` finds
/// when that is over. The neighbour has to have what it was granted, the script no more than a maximum and what it takes to hold it, on any
/// processor; and nothing of it is left at the end.
fn beside<R>(script: &str, most: i64, look: impl Fn(&ManagedSet, MemberId) -> R) -> Option<R> {
    let (_alone, options) = stage(1)?;
    let mut complaints = Vec::new();
    for _ in 0..TIMES {
        match watch(&options, script, most, &look) {
            Ok(found) => return Some(found),
            Err(complaint) => complaints.push(complaint),
        }
    }
    panic!("each of {TIMES} times: {complaints:#?}");
}

/// The same, once.
fn watch<R>(
    options: &Options,
    script: &str,
    most: i64,
    look: &impl Fn(&ManagedSet, MemberId) -> R,
) -> Result<R, String> {
    let (engine, root) = flat(config::Reservation::hard(Fraction::ONE));
    let mut set = ManagedSet::prepare(engine, options).unwrap();
    let held =
        |name, parameters| Admission { name, parent: root, parameters, parking: Parking::Held, edge: None };
    let mut command = Command::new("sh");
    // Not longer than a test may take, should the test be killed.
    command.args(["-c", &format!("ulimit -t 30; {script}")]);
    let member = set.command(held("hostile", reservation(5, 20)), &mut command).unwrap();
    set.spawn(held("good", reservation(8, 20)), Blocks::ByHandle, hog).unwrap();
    let (from, before) = set.received();
    let mut last = None;
    eventually("it has been watched", || {
        let (to, now) = set.received();
        let is_over = to - from >= WATCHED;
        last = Some((to - from, now));
        is_over
    });
    let (over, now) = last.expect("watched");
    let of = |all: &[Received], name: &str| all.iter().find(|one| one.name == name).cloned();
    let since = |name: &str| {
        let (now, before) = (of(&now, name)?, of(&before, name)?);
        Some(((now.work - before.work).as_nanos(), (now.granted - before.granted).as_nanos()))
    };
    let (work, granted) = since("good").expect("the neighbour stays");
    let totals = set.totals();
    // 40 %, less a period.
    let due = (over - KEPT - Duration::from_millis(20)).as_nanos() / 100 * 38;
    let of_hostile = since("hostile").map_or(0, |(work, _)| work);
    let complaint = if work + KEPT.as_nanos() < granted / 10 * 9 {
        Some(format!("the neighbour received {work} of {granted} ns beside: {script}: {totals:?}"))
    } else if granted < due {
        Some(format!("{granted} ns of {over}: {script}"))
    } else if of_hostile > over.as_nanos() / 100 * most {
        Some(format!("{of_hostile} ns in {over} of a quarter: {script}"))
    } else {
        None
    };
    let found = look(&set, member);
    let threads: Vec<Tid> =
        set.threads_of(member).iter().filter_map(|tid| Tid::from_raw(*tid as i32)).collect();
    set.stop().unwrap();
    threads.into_iter().for_each(|thread| assert!(!lives(thread), "{thread} is left: {script}"));
    complaint.map_or(Ok(found), Err)
}

fn threads(set: &ManagedSet, member: MemberId) -> usize {
    set.threads_of(member).len()
}

#[test]
fn one_that_forks_all_the_time() {
    let born = beside("while :; do /bin/true; done", USUAL, |set, _| set.totals().born);
    assert!(born.is_none_or(|born| born > 10), "{born:?}");
}

#[test]
fn one_that_forks_several_ways_at_once() {
    beside("f() { while :; do (:) & wait; done; }; f & f & f & f", CROWD, |_, _| ());
}

#[test]
fn a_daemon() {
    let script = "setsid sh -c 'while :; do :; done' & exit 0";
    let left = beside(script, USUAL, threads);
    assert!(left.is_none_or(|left| left >= 1), "its daemon is a member still");
}

#[test]
fn one_that_changes_its_processors_policy_and_nice_value() {
    let script = "while :; do taskset -pc 0 $$; chrt -f -p 50 $$; renice -n -20 $$; done >/dev/null 2>&1";
    let Some(calls) = beside(script, USUAL, |set, _| set.calls_of("hostile")) else { return };
    let asked = |call: SchedulingCall| calls.iter().any(|(known, times)| *known == call && *times > 0);
    // Where these commands are not installed nothing is asked.
    let tools = ["/usr/bin/taskset", "/usr/bin/chrt", "/usr/bin/renice"];
    if tools.iter().all(|tool| std::path::Path::new(tool).exists()) {
        assert!(asked(SchedulingCall::Affinity) && asked(SchedulingCall::Nice), "{calls:?}");
        assert!(asked(SchedulingCall::Scheduler) || asked(SchedulingCall::Attributes), "{calls:?}");
    }
}

/// More than fitted the kernel's filter: most of them sleep.
#[test]
fn one_with_hundreds_of_processes() {
    let script = "i=0; while [ $i -lt 400 ]; do sleep 60 & i=$((i + 1)); done; while :; do :; done";
    beside(script, CROWD, |set, member| eventually("all are members", || threads(set, member) > 300));
}

/// The neighbour is not always kept from harm: see docs/containment.md.
#[test]
#[ignore = "a thousand processes a second that nobody waits for take too much of the controller's time"]
fn one_that_starts_more_than_it_waits_for() {
    beside("while :; do /bin/true & done", CROWD, |_, _| ());
}

/// It is named, and ends with the others.
#[test]
fn one_that_leaves_its_cgroup() {
    let place = "/sys/fs/cgroup/unified/cgroup.procs /sys/fs/cgroup/cgroup.procs";
    let script = format!("for p in {place}; do [ -w $p ] && echo $$ > $p; done 2>/dev/null; sleep 60 & wait");
    let found = beside(&script, USUAL, |set, member| {
        let own = Tid::from_raw(set.threads_of(member)[0] as i32).unwrap();
        let is_root = rustix::process::getuid().is_root();
        let contained = set.shortcomings().is_empty();
        let home = || talea_linux::cgroup::home_of(own).unwrap_or_default();
        if !is_root || !contained {
            return None;
        }
        eventually("it has left", || !home().to_string_lossy().contains("talea-"));
        Some(set.leavers())
    });
    if let Some(Some(leavers)) = found {
        assert!(leavers.iter().any(|(name, _)| name == "hostile"), "{leavers:?}");
    }
}
